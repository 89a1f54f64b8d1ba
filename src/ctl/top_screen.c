/* SPDX-License-Identifier: MIT */
#include <ncurses.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "top.h"

#define ESCAPE_MS 25 /* to distinguish the key from the beginning of a sequence */

struct nm_top_screen {
	SCREEN *screen;
	bool color;
};

enum pair {
	PAIR_WARNING = 1,
	PAIR_TITLE,
};

static void init_screen(struct nm_top_screen *screen, bool color)
{
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)keypad(stdscr, TRUE);
	(void)nodelay(stdscr, TRUE);
	(void)set_escdelay(ESCAPE_MS);
	(void)curs_set(0);
	screen->color = color && has_colors() && start_color() == OK;
	if (!screen->color)
		return;
	(void)use_default_colors();
	(void)init_pair(PAIR_WARNING, COLOR_RED, -1);
	(void)init_pair(PAIR_TITLE, COLOR_CYAN, -1);
}

int nm_top_screen_new(bool color, struct nm_top_screen **ret)
{
	nm_auto(nm_top_screen_freep) struct nm_top_screen *screen =
		nm_must(calloc(1, sizeof(*screen)));
	screen->screen = newterm(NULL, stdout, stdin);
	if (!screen->screen)
		return -ENOTTY;
	init_screen(screen, color);
	*ret = NM_TAKE(screen);
	return 0;
}

void nm_top_screen_free(struct nm_top_screen *screen)
{
	if (screen && screen->screen) {
		(void)endwin();
		delscreen(screen->screen);
	}
	free(screen);
}

void nm_top_screen_resize(struct nm_top_screen *screen)
{
	struct winsize size;
	(void)screen;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		(void)resizeterm(size.ws_row, size.ws_col);
}

void nm_top_screen_size(size_t *ret_rows, size_t *ret_columns)
{
	*ret_rows = (size_t)getmaxy(stdscr);
	*ret_columns = (size_t)getmaxx(stdscr);
}

static chtype attribute(const struct nm_top_screen *screen, enum nm_top_look look)
{
	switch (look) {
	case NM_TOP_TITLE:
		return screen->color ? A_BOLD | (chtype)COLOR_PAIR(PAIR_TITLE) : A_BOLD;
	case NM_TOP_HEAD:
		return A_UNDERLINE;
	case NM_TOP_SELECTED:
		return A_REVERSE;
	case NM_TOP_WARNING:
		return screen->color ? A_BOLD | (chtype)COLOR_PAIR(PAIR_WARNING) : A_BOLD;
	case NM_TOP_FOOT:
		return A_DIM;
	case NM_TOP_PLAIN:
	default:
		return A_NORMAL;
	}
}

void nm_top_screen_draw(const struct nm_top_screen *screen, const struct nm_top_frame *frame)
{
	(void)erase();
	for (size_t i = 0; i < frame->rows; i++) {
		chtype look = attribute(screen, frame->lines[i].look);
		(void)attrset((int)look);
		(void)mvaddstr((int)i, 0, frame->lines[i].text);
	}
	(void)attrset(A_NORMAL);
	(void)refresh();
}

int nm_top_screen_key(void)
{
	static const struct {
		int from, to;
	} keys[] = {
		{KEY_UP, NM_TOP_KEY_UP},
		{KEY_DOWN, NM_TOP_KEY_DOWN},
		{KEY_PPAGE, NM_TOP_KEY_PAGE_UP},
		{KEY_NPAGE, NM_TOP_KEY_PAGE_DOWN},
		{KEY_HOME, NM_TOP_KEY_HOME},
		{KEY_END, NM_TOP_KEY_END},
		{KEY_ENTER, NM_TOP_KEY_ENTER},
		{'\r', NM_TOP_KEY_ENTER},
		{'\n', NM_TOP_KEY_ENTER},
		{27, NM_TOP_KEY_ESCAPE},
		{KEY_BACKSPACE, NM_TOP_KEY_ESCAPE},
		{127, NM_TOP_KEY_ESCAPE},
		{8, NM_TOP_KEY_ESCAPE},
		{KEY_RIGHT, NM_TOP_KEY_RIGHT},
		{KEY_LEFT, NM_TOP_KEY_LEFT},
	};
	int key = getch();
	for (size_t i = 0; i < NM_ARRAY_SIZE(keys); i++)
		if (keys[i].from == key)
			return keys[i].to;
	return key == ERR ? -1 : key;
}

/* SPDX-License-Identifier: MIT */
/* numa-migrctl top: its data, its state, and the screen rendered from both. Pure. */
#ifndef NM_CTL_TOP_H
#define NM_CTL_TOP_H

#include <jansson.h>

#include "cell.h"
#include "numa-migrd/base.h"

/* ---- last data from the daemon ---- */

struct nm_top_model {
	json_t *document;
	char error[512]; /* error of the last query; "" if it was answered */
};

void nm_top_model_clear(struct nm_top_model *model);

/* ---- state of the display ---- */

enum nm_top_page {
	NM_TOP_PROCESSES,
	NM_TOP_THREADS,
	NM_TOP_PAGE_MAX,
};

enum nm_top_key {
	NM_TOP_KEY_UP = 0x110000, /* above all characters */
	NM_TOP_KEY_DOWN,
	NM_TOP_KEY_PAGE_UP,
	NM_TOP_KEY_PAGE_DOWN,
	NM_TOP_KEY_HOME,
	NM_TOP_KEY_END,
	NM_TOP_KEY_ENTER,
	NM_TOP_KEY_ESCAPE,
	NM_TOP_KEY_RIGHT,
	NM_TOP_KEY_LEFT,
};

struct nm_top_view {
	enum nm_top_page page;
	uint32_t pid;		      /* threads of this process; 0: all */
	size_t sort[NM_TOP_PAGE_MAX]; /* column index */
	bool help, quit;
	json_int_t selected;	      /* pid or tid, which stays selected while rows move */
	size_t cursor, first, height; /* in rows */
};

void nm_top_view_init(struct nm_top_view *view);

/* Returns the table of the current page. */
const struct nm_table *nm_top_table(const struct nm_top_view *view);

/* Returns the rows of the current page, sorted, which the caller releases. */
json_t *nm_top_rows(const struct nm_top_model *model, const struct nm_top_view *view);

/* Moves the cursor to the selected row, and the window around it. */
void nm_top_settle(struct nm_top_view *view, const json_t *rows, size_t height);

/* Handles a key or a character. */
void nm_top_press(struct nm_top_view *view, int key, const json_t *rows);

/* ---- rendering ---- */

enum nm_top_look {
	NM_TOP_PLAIN,
	NM_TOP_TITLE,
	NM_TOP_HEAD,
	NM_TOP_SELECTED,
	NM_TOP_WARNING,
	NM_TOP_FOOT,
};

struct nm_top_line {
	enum nm_top_look look;
	char text[1024];
};

struct nm_top_frame {
	size_t rows, columns;
	struct nm_top_line *lines;
};

void nm_top_frame_init(struct nm_top_frame *frame, size_t rows, size_t columns);
void nm_top_frame_clear(struct nm_top_frame *frame);

/* Renders the frame, with no line wider than it, and settles the view. */
void nm_top_render(struct nm_top_frame *frame, const struct nm_top_model *model,
		   struct nm_top_view *view, const struct nm_style *style);

/* ---- the terminal (ncurses) ---- */

struct nm_top_screen;

/* Returns -ENOTTY if the terminal does not support it. */
int nm_top_screen_new(bool color, struct nm_top_screen **ret);
void nm_top_screen_free(struct nm_top_screen *screen);
NM_DEFINE_CLEANUP(struct nm_top_screen, nm_top_screen_free);

void nm_top_screen_resize(struct nm_top_screen *screen);
void nm_top_screen_size(size_t *ret_rows, size_t *ret_columns);
void nm_top_screen_draw(const struct nm_top_screen *screen, const struct nm_top_frame *frame);

/* Returns the next key, or -1 if there is none. */
int nm_top_screen_key(void);

#endif

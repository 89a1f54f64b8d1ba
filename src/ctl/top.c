/* SPDX-License-Identifier: MIT */
/* The full-screen display: queries the bus every two seconds asynchronously, so that keys always
 * work. */
#include <signal.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"
#include "top.h"

#define PERIOD_USEC UINT64_C(2000000)
#define TIMEOUT_USEC UINT64_C(10000000)

struct top {
	const struct nm_ctl *ctl;
	sd_event *event;
	sd_event_source *timer;
	sd_bus *bus;
	struct nm_top_screen *screen;
	struct nm_top_model model;
	struct nm_top_view view;
	sd_bus_slot *query; /* NULL: none is pending */
};

static void draw(struct top *top)
{
	nm_auto(nm_top_frame_clear) struct nm_top_frame frame = {0};
	size_t rows, columns;
	nm_top_screen_size(&rows, &columns);
	nm_top_frame_init(&frame, rows, columns);
	nm_top_render(&frame, &top->model, &top->view, &top->ctl->style);
	nm_top_screen_draw(top->screen, &frame);
}

static void note_failure(struct top *top, const sd_bus_error *error, int r)
{
	struct nm_failure failure;
	nm_ctl_explain_failure(error, r, false, &failure);
	(void)snprintf(top->model.error, sizeof(top->model.error), "%.*s",
		       (int)sizeof(top->model.error) - 1, failure.text);
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *unused)
{
	struct top *top = userdata;
	json_t *document = NULL;
	(void)unused;
	top->query = sd_bus_slot_unref(top->query);
	int r = -sd_bus_message_get_errno(reply);
	if (r >= 0)
		r = nm_ctl_read_document(reply, &document);
	if (r < 0) {
		const sd_bus_error *error = sd_bus_message_get_error(reply);
		note_failure(top, error ? error : &SD_BUS_ERROR_NULL, r);
	} else {
		json_decref(top->model.document);
		top->model.document = document;
		top->model.error[0] = '\0';
	}
	draw(top);
	return 0;
}

static void ask(struct top *top)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	if (top->query)
		return; /* the last one is still pending */
	int r = nm_ctl_new_call(top->bus, "Dump", &call);
	if (r >= 0)
		r = sd_bus_call_async(top->bus, &top->query, call, on_answer, top, TIMEOUT_USEC);
	if (r < 0)
		note_failure(top, &SD_BUS_ERROR_NULL, r);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct top *top = userdata;
	(void)usec;
	ask(top);
	int r = sd_event_source_set_time_relative(source, PERIOD_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int press(struct top *top, int key)
{
	nm_auto(json_decrefp) json_t *rows = nm_top_rows(&top->model, &top->view);
	nm_top_press(&top->view, key, rows);
	return top->view.quit ? sd_event_exit(top->event, EXIT_SUCCESS) : 0;
}

static int on_keys(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct top *top = userdata;
	int key, r = 0;
	(void)source;
	(void)fd;
	while (r >= 0 && !top->view.quit && (key = nm_top_screen_key()) >= 0)
		r = press(top, key);
	if (r < 0 || top->view.quit)
		return r;
	if ((events & (EPOLLHUP | EPOLLERR)) != 0) /* the terminal was closed */
		return sd_event_exit(top->event, EXIT_FAILURE);
	draw(top);
	return 0;
}

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct top *top = userdata;
	(void)source;
	(void)info;
	nm_top_screen_resize(top->screen);
	draw(top);
	return 0;
}

static int watch_daemon(struct top *top)
{
	int r = sd_event_new(&top->event);
	if (r >= 0)
		r = sd_event_add_signal(top->event, NULL, SIGWINCH | SD_EVENT_SIGNAL_PROCMASK,
					on_resize, top);
	/* Without a function, a signal ends the loop with EXIT_SUCCESS. */
	if (r >= 0)
		r = sd_event_add_signal(top->event, NULL, SIGINT | SD_EVENT_SIGNAL_PROCMASK, NULL,
					NULL);
	if (r >= 0)
		r = sd_event_add_signal(top->event, NULL, SIGTERM | SD_EVENT_SIGNAL_PROCMASK, NULL,
					NULL);
	if (r >= 0)
		r = sd_event_add_io(top->event, NULL, STDIN_FILENO, EPOLLIN, on_keys, top);
	if (r >= 0)
		r = sd_event_add_time_relative(top->event, &top->timer, CLOCK_MONOTONIC,
					       PERIOD_USEC, 0, on_time, top);
	if (r >= 0)
		r = sd_bus_attach_event(top->bus, top->event, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0)
		r = sd_bus_set_exit_on_disconnect(top->bus, 1);
	return r;
}

static void close_top(struct top *top)
{
	nm_top_screen_free(top->screen);
	sd_bus_slot_unref(top->query);
	sd_event_source_disable_unref(top->timer);
	sd_bus_flush_close_unref(top->bus);
	sd_event_unref(top->event);
	nm_top_model_clear(&top->model);
}

static int complain(const char *text)
{
	(void)fprintf(stderr, "numa-migrctl: %s\n", text);
	return EXIT_FAILURE;
}

static int run_screen(struct top *top)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return complain("top needs a terminal: try processes or threads");
	int r = watch_daemon(top);
	if (r >= 0)
		r = nm_top_screen_new(top->ctl->style.color, &top->screen);
	if (r == -ENOTTY)
		return complain("this terminal cannot show a full screen: is TERM right?");
	if (r >= 0) {
		draw(top);
		r = sd_event_loop(top->event);
	}
	nm_top_screen_free(NM_TAKE(top->screen));
	if (r < 0)
		return complain(strerror(-r));
	if (r == 0 || sd_bus_is_open(top->bus) > 0)
		return r;
	(void)complain("connection to the system bus lost");
	return NM_CTL_UNAVAILABLE;
}

int nm_ctl_top(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(close_top) struct top top = {.ctl = ctl};
	(void)words;
	nm_top_view_init(&top.view);
	/* Before the screen changes, so that errors are printed below the command line. */
	int r = nm_ctl_open(&top.bus);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_fetch(top.bus, &top.model.document);
	return r == EXIT_SUCCESS ? run_screen(&top) : r;
}

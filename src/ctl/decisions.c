/* SPDX-License-Identifier: MIT */
/* The last decisions with their verdicts, and those to come. */
#include <signal.h>
#include <string.h>

#include "cell.h"
#include "ctl.h"
#include "numa-migrd/control.h"
#include "rows.h"

#define USUAL_LINES 20
#define FOLLOWED_LINES 10

const struct nm_column nm_decision_columns[NM_DECISION_COLUMNS] = {
	{.key = "decision", .head = "ID", .least = 5},
	{.key = "time_usec", .head = "TIME", .kind = NM_CELL_TIME, .left = true, .least = 15},
	{.key = "kind", .head = "KIND", .left = true, .least = 8},
	{.key = "tid", .head = "TID", .least = 7},
	{.key = "comm", .head = "COMMAND", .left = true, .least = 10},
	{.key = "from_node", .second = "to_node", .head = "NODES", .kind = NM_CELL_ARROW},
	{.key = "pages", .head = "PAGES"},
	{.key = "before", .head = "BEFORE", .kind = NM_CELL_MEASURE},
	{.key = "after", .head = "AFTER", .kind = NM_CELL_MEASURE},
	{.key = "result", .head = "RESULT", .left = true, .least = 7},
	{.key = "verdict", .head = "VERDICT", .kind = NM_CELL_VERDICT, .left = true},
};

/* All that the ring has, so that the last ones are those shown. */
static int ask(sd_bus *bus, uint32_t lines, json_t **ret)
{
	json_t *rows = NULL;
	int r = nm_ctl_ask(bus, "Decisions", &rows, "tu", (uint64_t)0, UINT32_MAX);
	if (r != EXIT_SUCCESS)
		return r;
	while (json_array_size(rows) > lines)
		(void)json_array_remove(rows, 0);
	*ret = rows;
	return EXIT_SUCCESS;
}

static int show_last(const struct nm_ctl *ctl, json_t **rows)
{
	if (ctl->json)
		return nm_ctl_print_document("decisions", NM_TAKE(*rows));
	nm_table_print(stdout, &ctl->style, nm_decision_columns, NM_DECISION_COLUMNS, *rows);
	nm_table_explain_empty(stdout, *rows);
	return nm_ctl_close_output();
}

/* ---- -f ---- */

struct follower {
	const struct nm_ctl *ctl;
	json_t *shown; /* at the start: signals that crossed the answer tell them again */
	bool gone;     /* the daemon; told */
};

static void print_one(const struct follower *follower, const json_t *row)
{
	if (!follower->ctl->json) {
		nm_table_line(stdout, &follower->ctl->style, nm_decision_columns,
			      NM_DECISION_COLUMNS, row);
		return;
	}
	nm_auto(json_decrefp) json_t *document =
		json_pack("{sisO}", "version", NM_CTL_JSON_VERSION, "decision", row);
	(void)json_dumpf(document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	(void)putchar('\n');
}

static bool same(const json_t *a, const json_t *b, const char *name)
{
	return json_equal(json_object_get(a, name), json_object_get(b, name)) != 0;
}

static bool was_shown(const struct follower *follower, const json_t *row)
{
	size_t index;
	json_t *shown;
	json_array_foreach(follower->shown, index, shown)
	{
		if (same(shown, row, "decision") && same(shown, row, "verdict") &&
		    same(shown, row, "time_usec"))
			return true;
	}
	return false;
}

static int on_decision(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	const struct follower *follower = userdata;
	nm_auto(json_decrefp) json_t *row = NULL;
	(void)error;
	if (nm_value_read(message, &row) >= 0 && !was_shown(follower, row))
		print_one(follower, row);
	return 0;
}

/* It may be restarted: its decisions go on then. */
static int on_owner(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	struct follower *follower = userdata;
	const char *name, *before, *after;
	(void)error;
	if (sd_bus_message_read(message, "sss", &name, &before, &after) < 0)
		return 0;
	(void)json_array_clear(follower->shown);
	(void)fprintf(stderr, "numa-migrctl: numa-migrd %s\n",
		      after[0] != '\0' ? "is there again" : "has ended: waiting for it");
	return 0;
}

static int subscribe(sd_bus *bus, struct follower *follower)
{
	int r = sd_bus_match_signal(bus, NULL, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
				    "Decision", on_decision, follower);
	if (r < 0)
		return r;
	return sd_bus_add_match(bus, NULL,
				"type='signal',sender='org.freedesktop.DBus',"
				"member='NameOwnerChanged',arg0='" NM_BUS_NAME "'",
				on_owner, follower);
}

/* Until the bus goes away or the reader does. */
static int listen_on(sd_bus *bus)
{
	int r = 0;
	while (r >= 0) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
		if (r == -EINTR)
			r = 0;
	}
	(void)fputs("numa-migrctl: the system bus has gone\n", stderr);
	return NM_CTL_UNAVAILABLE;
}

static void print_shown(const struct follower *follower)
{
	size_t index;
	json_t *row;
	if (!follower->ctl->json)
		nm_table_line(stdout, &follower->ctl->style, nm_decision_columns,
			      NM_DECISION_COLUMNS, NULL);
	json_array_foreach(follower->shown, index, row)
	{
		print_one(follower, row);
	}
}

static int follow(const struct nm_ctl *ctl, sd_bus *bus, uint32_t lines)
{
	nm_auto(json_decrefp) json_t *shown = NULL;
	struct follower follower = {.ctl = ctl};
	int r = subscribe(bus, &follower);
	if (r < 0) {
		(void)fprintf(stderr, "numa-migrctl: cannot listen on the bus: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	r = ask(bus, lines, &shown);
	if (r != EXIT_SUCCESS)
		return r;
	follower.shown = shown;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	print_shown(&follower);
	return listen_on(bus);
}

int nm_ctl_decisions(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(json_decrefp) json_t *rows = NULL;
	uint32_t lines = ctl->follow ? FOLLOWED_LINES : USUAL_LINES;
	(void)words;
	lines = ctl->lines_given ? ctl->lines : lines;
	int r = nm_ctl_open(&bus);
	if (r != EXIT_SUCCESS)
		return r;
	if (ctl->follow)
		return follow(ctl, bus, lines);
	r = ask(bus, lines, &rows);
	return r == EXIT_SUCCESS ? show_last(ctl, &rows) : r;
}

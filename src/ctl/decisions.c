/* SPDX-License-Identifier: MIT */
/* The last decisions with their verdicts. */

#include "cell.h"
#include "ctl.h"
#include "rows.h"

#define USUAL_LINES 20

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

int nm_ctl_decisions(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(json_decrefp) json_t *rows = NULL;
	(void)words;
	int r = nm_ctl_open(&bus);
	if (r != EXIT_SUCCESS)
		return r;
	r = ask(bus, ctl->lines_given ? ctl->lines : USUAL_LINES, &rows);
	return r == EXIT_SUCCESS ? show_last(ctl, &rows) : r;
}

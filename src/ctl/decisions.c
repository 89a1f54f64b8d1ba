/* SPDX-License-Identifier: MIT */
/* The last decisions with their verdicts. */

#include "cell.h"
#include "ctl.h"
#include "rows.h"

#define USUAL_LINES 20

const struct nm_column nm_decision_columns[NM_DECISION_COLUMNS] = {
	{.key = "decision", .head = "ID"},
	{.key = "time_usec", .head = "TIME", .kind = NM_CELL_TIME, .left = true},
	{.key = "kind", .head = "KIND", .left = true},
	{.key = "tid", .head = "TID"},
	{.key = "comm", .head = "COMMAND", .left = true},
	{.key = "from_node", .second = "to_node", .head = "NODES", .kind = NM_CELL_ARROW},
	{.key = "pages", .head = "PAGES"},
	{.key = "before", .head = "BEFORE", .kind = NM_CELL_MEASURE},
	{.key = "after", .head = "AFTER", .kind = NM_CELL_MEASURE},
	{.key = "result", .head = "RESULT", .left = true},
	{.key = "verdict", .head = "VERDICT", .kind = NM_CELL_VERDICT, .left = true},
};

int nm_ctl_decisions(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *rows = NULL;
	uint32_t lines = ctl->lines_given ? ctl->lines : USUAL_LINES;
	(void)words;
	/* Fetches the whole history, so that the last ones are shown. */
	int r = nm_ctl_ask_once("Decisions", NM_RIGHT_READ, &rows, "tu", (uint64_t)0, UINT32_MAX);
	if (r != EXIT_SUCCESS)
		return r;
	while (json_array_size(rows) > lines)
		(void)json_array_remove(rows, 0);
	if (ctl->json)
		return nm_ctl_print_document("decisions", NM_TAKE(rows));
	nm_table_print(stdout, &ctl->style, nm_decision_columns, NM_DECISION_COLUMNS, rows);
	nm_table_explain_empty(stdout, rows);
	return nm_ctl_close_output();
}

/* SPDX-License-Identifier: MIT */
/* Explains one process: its management or the reason for its absence, and the decisions about it in
 * the history. */
#include <inttypes.h>

#include "cell.h"
#include "ctl.h"
#include "rows.h"

/* Returns the row of that process, borrowed; NULL: none. */
static json_t *row_of(const json_t *rows, uint32_t pid)
{
	size_t index;
	json_t *row;
	json_array_foreach(rows, index, row)
	{
		if (json_integer_value(json_object_get(row, "pid")) == pid)
			return row;
	}
	return NULL;
}

/* Removes decisions about other processes. */
static void keep_those_of(json_t *decisions, uint32_t pid)
{
	for (size_t i = json_array_size(decisions); i-- > 0;) {
		const json_t *row = json_array_get(decisions, i);
		if (json_integer_value(json_object_get(row, "pid")) != pid &&
		    json_integer_value(json_object_get(row, "partner_pid")) != pid)
			(void)json_array_remove(decisions, i);
	}
}

static int show(const struct nm_ctl *ctl, const json_t *process, const json_t *decisions)
{
	if (ctl->json)
		return nm_ctl_print_pair("process", process, "decisions", decisions);
	nm_ctl_print_lines(stdout, &ctl->style, process);
	(void)fputs("\ndecisions:\n", stdout);
	nm_table_print(stdout, &ctl->style, nm_decision_columns, NM_DECISION_COLUMNS, decisions);
	nm_table_explain_empty(stdout, decisions);
	return nm_ctl_close_output();
}

int nm_ctl_explain_process(const struct nm_ctl *ctl, const char *word)
{
	nm_auto(json_decrefp) json_t *processes = NULL;
	nm_auto(json_decrefp) json_t *decisions = NULL;
	uint32_t pid;
	int r = nm_ctl_pid(word, &pid);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_ask_once("ListProcesses", NM_RIGHT_READ, &processes, "");
	if (r == EXIT_SUCCESS)
		r = nm_ctl_ask_once("Decisions", NM_RIGHT_READ, &decisions, "tu", (uint64_t)0,
				    UINT32_MAX);
	if (r != EXIT_SUCCESS)
		return r;
	const json_t *process = row_of(processes, pid);
	if (!process) {
		(void)fprintf(stderr,
			      "numa-migrctl: process %" PRIu32 " is not managed: it used less CPU "
			      "than targets.min_cpu_percent, or it ended\n",
			      pid);
		return EXIT_FAILURE;
	}
	keep_those_of(decisions, pid);
	return show(ctl, process, decisions);
}

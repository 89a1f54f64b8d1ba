/* SPDX-License-Identifier: MIT */
/* Lists of the daemon: status, processes, threads, pages, decisions. */
#include <string.h>

#include "cell.h"
#include "ctl.h"

#define USUAL_LINES 20

const struct nm_column nm_process_columns[NM_PROCESS_COLUMNS] = {
	{.key = "pid", .head = "PID"},
	{.key = "comm", .head = "COMMAND", .left = true},
	{.key = "state", .head = "STATE", .left = true},
	{.key = "node", .head = "NODE"},
	{.key = "threads", .head = "THR"},
	{.key = "run_share", .head = "RUN", .kind = NM_CELL_SHARE},
	{.key = "local_share", .head = "LOCAL", .kind = NM_CELL_SHARE},
	{.key = "latency_cycles", .head = "LAT", .kind = NM_CELL_FIGURE},
	{.key = "intensity", .head = "INT", .kind = NM_CELL_FIGURE},
	{.key = "performance", .head = "PERF", .kind = NM_CELL_FIGURE},
	{.key = "rss_bytes", .head = "RSS", .kind = NM_CELL_BYTES},
	{.key = "last_decision", .head = "DEC"},
	{.key = "leases", .head = "LEASE"},
	{.key = "home", .head = "HOME"},
	{.key = "exclusivity", .head = "EXCL", .kind = NM_CELL_SHARE},
	{.key = "shared_page_share", .head = "SHARED", .kind = NM_CELL_SHARE},
	{.key = "steer", .head = "STEER", .left = true},
	{.key = "reason", .head = "REASON", .left = true},
	{.key = "unit", .head = "UNIT", .left = true},
};

const struct nm_column nm_thread_columns[NM_THREAD_COLUMNS] = {
	{.key = "tid", .head = "TID"},
	{.key = "pid", .head = "PID"},
	{.key = "comm", .head = "COMMAND", .left = true},
	{.key = "cpu", .head = "CPU"},
	{.key = "node", .head = "NODE"},
	{.key = "preferred_node", .head = "PREF"},
	{.key = "local_share", .head = "LOCAL", .kind = NM_CELL_SHARE},
	{.key = "latency_cycles", .head = "LAT", .kind = NM_CELL_FIGURE},
	{.key = "intensity", .head = "INT", .kind = NM_CELL_FIGURE},
	{.key = "relative_performance",
	 .head = "P\xcc\x82", /* P with a circumflex: relative to the mean of the process */
	 .plain_head = "P^",
	 .kind = NM_CELL_FIGURE},
	{.key = "run_share", .head = "RUN", .kind = NM_CELL_SHARE},
	{.key = "last_decision", .head = "DEC"},
	{.key = "leased", .head = "LEASE"},
	{.key = "accesses", .head = "ACC", .kind = NM_CELL_FIGURE},
	{.key = "operations_per_s", .head = "OPS/S", .kind = NM_CELL_FIGURE},
	{.key = "instructions_per_s", .head = "INS/S", .kind = NM_CELL_FIGURE},
	{.key = "performance", .head = "PERF", .kind = NM_CELL_FIGURE},
};

const struct nm_column nm_region_columns[NM_REGION_COLUMNS] = {
	{.key = "kind", .head = "KIND", .left = true},
	{.key = "node", .head = "NODE"},
	{.key = "bytes", .head = "SIZE", .kind = NM_CELL_BYTES},
	{.key = "samples", .head = "SAMPLES"},
	{.key = "exclusivity", .head = "EXCL", .kind = NM_CELL_SHARE},
	{.key = "start", .head = "START", .kind = NM_CELL_ADDRESS},
	{.key = "end", .head = "END", .kind = NM_CELL_ADDRESS},
};

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

int nm_ctl_status(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *status = NULL;
	(void)words;
	int r = nm_ctl_ask_once("Status", NM_RIGHT_READ, &status, "");
	if (r != EXIT_SUCCESS)
		return r;
	if (ctl->json)
		return nm_ctl_print_document("status", NM_TAKE(status));
	nm_ctl_print_lines(stdout, &ctl->style, status);
	return nm_ctl_close_output();
}

static int show_rows(const struct nm_ctl *ctl, const char *name, json_t **rows,
		     const struct nm_column *columns, size_t count)
{
	if (ctl->json)
		return nm_ctl_print_document(name, NM_TAKE(*rows));
	nm_table_print(stdout, &ctl->style, columns, count, *rows);
	nm_table_explain_empty(stdout, *rows);
	return nm_ctl_close_output();
}

int nm_ctl_processes(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *rows = NULL;
	(void)words;
	int r = nm_ctl_ask_once("ListProcesses", NM_RIGHT_READ, &rows, "");
	if (r != EXIT_SUCCESS)
		return r;
	return show_rows(ctl, "processes", &rows, nm_process_columns, NM_PROCESS_COLUMNS);
}

int nm_ctl_threads(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *rows = NULL;
	uint32_t pid = 0; /* all */
	int r = words[0] ? nm_ctl_pid(words[0], &pid) : EXIT_SUCCESS;
	if (r == EXIT_SUCCESS)
		r = nm_ctl_ask_once("ListThreads", NM_RIGHT_READ, &rows, "u", pid);
	if (r != EXIT_SUCCESS)
		return r;
	return show_rows(ctl, "threads", &rows, nm_thread_columns, NM_THREAD_COLUMNS);
}

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
	return show_rows(ctl, "decisions", &rows, nm_decision_columns, NM_DECISION_COLUMNS);
}

static int show_pages(const struct nm_ctl *ctl, const json_t *summary, const json_t *regions)
{
	if (ctl->json)
		return nm_ctl_print_pair("pages", summary, "regions", regions);
	if (json_object_size(summary) == 0)
		(void)fputs("its pages are not counted: see pages.policy in numa-migrd.conf(5)\n",
			    stdout);
	nm_ctl_print_lines(stdout, &ctl->style, summary);
	if (json_array_size(regions) > 0) {
		(void)fputc('\n', stdout);
		nm_table_print(stdout, &ctl->style, nm_region_columns, NM_REGION_COLUMNS,
			       regions);
	}
	return nm_ctl_close_output();
}

int nm_ctl_pages(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *both = NULL;
	uint32_t pid;
	int r = nm_ctl_pid(words[0], &pid);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_ask_once("Pages", NM_RIGHT_READ, &both, "u", pid);
	if (r != EXIT_SUCCESS)
		return r;
	return show_pages(ctl, json_array_get(both, 0), json_array_get(both, 1));
}

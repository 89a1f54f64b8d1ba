/* SPDX-License-Identifier: MIT */
/* Lists of the daemon: processes, threads, decisions. */
#include <string.h>

#include "cell.h"
#include "ctl.h"

#define USUAL_LINES 20

/* Takes over the rows. */
static int show_rows(const struct nm_ctl *ctl, const struct nm_table *table, json_t *rows)
{
	if (ctl->json)
		return nm_ctl_print_document(table->name, rows);
	nm_table_print(stdout, &ctl->style, table, rows);
	nm_table_explain_empty(stdout, rows);
	json_decref(rows);
	return nm_ctl_close_output();
}

/* Returns the rows of a process, or all with pid 0; NULL: out of memory. */
static json_t *rows_of(const json_t *document, const struct nm_table *table, uint32_t pid)
{
	json_t *row, *rows = json_array();
	size_t index;
	json_array_foreach(nm_ctl_rows(document, table), index, row)
	{
		if (pid == 0 || json_integer_value(json_object_get(row, "pid")) == pid)
			(void)json_array_append(rows, row);
	}
	return rows;
}

/* Threads or processes of the PID, if it is given. */
static int list_tasks(const struct nm_ctl *ctl, const struct nm_table *table, const char *word,
		      bool (*is_hidden)(const json_t *row))
{
	nm_auto(json_decrefp) json_t *document = NULL;
	uint32_t pid = 0;
	int r = word ? nm_ctl_pid(word, &pid) : EXIT_SUCCESS;
	if (r == EXIT_SUCCESS)
		r = nm_ctl_fetch(NULL, &document);
	if (r != EXIT_SUCCESS)
		return r;
	json_t *rows = rows_of(document, table, pid);
	if (pid && json_array_size(rows) == 0 &&
	    !nm_ctl_find_row(nm_ctl_rows(document, &nm_process_table), "pid", pid)) {
		json_decref(rows);
		return nm_ctl_unknown_process(document, pid);
	}
	for (size_t i = json_array_size(rows); !pid && is_hidden && i-- > 0;)
		if (is_hidden(json_array_get(rows, i)))
			(void)json_array_remove(rows, i);
	return show_rows(ctl, table, rows);
}

/* Small and idle programs, and those that the configuration excludes: most of a machine's. */
static bool is_ignored(const json_t *row)
{
	const char *state = json_string_value(json_object_get(row, "state"));
	return state && strcmp(state, "ignored") == 0;
}

int nm_ctl_processes(const struct nm_ctl *ctl, char *const *words)
{
	return list_tasks(ctl, &nm_process_table, words[0], is_ignored);
}

int nm_ctl_threads(const struct nm_ctl *ctl, char *const *words)
{
	return list_tasks(ctl, &nm_thread_table, words[0], NULL);
}

int nm_ctl_decisions(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	uint32_t lines = ctl->lines_given ? ctl->lines : USUAL_LINES;
	(void)words;
	int r = nm_ctl_fetch(NULL, &document);
	if (r != EXIT_SUCCESS)
		return r;
	json_t *rows = rows_of(document, &nm_decision_table, 0);
	while (json_array_size(rows) > lines)
		(void)json_array_remove(rows, 0);
	return show_rows(ctl, &nm_decision_table, rows);
}

/* SPDX-License-Identifier: MIT */
/* Lists of the daemon: processes, threads, decisions. */
#include <pwd.h>
#include <string.h>

#include "cell.h"
#include "ctl.h"

#define USUAL_LINES 20
#define NARROW_COLUMNS 80
#define NARROW_FIELDS 11 /* the first ones, up to REASON */

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

/* Returns EXIT_SUCCESS, or prints that the process does not exist. */
static int check_known(const json_t *document, uint32_t pid)
{
	const json_t *processes = nm_ctl_rows(document, &nm_process_table);
	return pid && !nm_ctl_find_row(processes, "pid", pid)
		       ? nm_ctl_unknown_process(document, pid)
		       : EXIT_SUCCESS;
}

/* The document, and the process if its PID is given. */
static int fetch_for(const char *word, uint32_t *ret_pid, json_t **ret)
{
	int r = word ? nm_ctl_pid(word, ret_pid) : EXIT_SUCCESS;
	if (r == EXIT_SUCCESS)
		r = nm_ctl_fetch(NULL, ret);
	return r == EXIT_SUCCESS ? check_known(*ret, *ret_pid) : r;
}

int nm_ctl_threads(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	uint32_t pid = 0;
	int r = fetch_for(words[0], &pid, &document);
	return r == EXIT_SUCCESS
		       ? show_rows(ctl, &nm_thread_table, rows_of(document, &nm_thread_table, pid))
		       : r;
}

/* ---- processes ---- */

/* Small and idle programs, and those that the configuration excludes: most of a machine's. */
static bool is_ignored(const json_t *row)
{
	const char *state = json_string_value(json_object_get(row, "state"));
	return state && strcmp(state, "ignored") == 0;
}

/* The rows that the options select. */
struct selection {
	bool all;
	bool has_user;
	uint64_t uid;
	char unit[NM_CTL_UNIT_BYTES]; /* "": any */
	const char *sort;	      /* name of a value; NULL: as they are */
};

static bool is_selected(const struct selection *selection, const json_t *row)
{
	const char *unit = json_string_value(json_object_get(row, "unit"));
	const json_t *uid = json_object_get(row, "uid");
	if (!selection->all && is_ignored(row))
		return false;
	if (selection->unit[0] && (!unit || strcmp(unit, selection->unit) != 0))
		return false;
	return !selection->has_user ||
	       (json_is_integer(uid) && (uint64_t)json_integer_value(uid) == selection->uid);
}

/* Finds a column by its head or its name, in any case. */
static const char *find_column(const char *word)
{
	for (size_t i = 0; i < nm_process_table.count; i++) {
		const struct nm_field *field = &nm_process_table.fields[i];
		if (strcasecmp(field->name, word) == 0 ||
		    (field->head && strcasecmp(field->head, word) == 0))
			return field->name;
	}
	return NULL;
}

static int parse_selection(const struct nm_ctl *ctl, struct selection *ret)
{
	*ret = (struct selection){.all = ctl->all, .has_user = ctl->user != NULL};
	const struct passwd *user = ctl->user ? getpwnam(ctl->user) : NULL;
	if (user)
		ret->uid = user->pw_uid;
	else if (ctl->user && !nm_ctl_number(ctl->user, 0, UINT32_MAX, &ret->uid))
		return nm_ctl_wrong_usage("there is no such user", ctl->user);
	if (ctl->unit && !nm_ctl_unit_name(ctl->unit, ret->unit))
		return nm_ctl_wrong_usage("not the name of a unit", ctl->unit);
	ret->sort = ctl->sort ? find_column(ctl->sort) : NULL;
	return ctl->sort && !ret->sort ? nm_ctl_wrong_usage("not a column of processes", ctl->sort)
				       : EXIT_SUCCESS;
}

static json_t *select_rows(const struct selection *selection, const json_t *rows)
{
	nm_auto(json_decrefp) json_t *selected = nm_must(json_array());
	json_t *row;
	size_t index;
	json_array_foreach(rows, index, row)
	{
		if (is_selected(selection, row))
			nm_must_do(json_array_append(selected, row));
	}
	return selection->sort ? nm_rows_sorted(selected, selection->sort) : NM_TAKE(selected);
}

/* The columns that an administrator needs, in 80 columns; with --all, all of them. */
static int show_processes(const struct nm_ctl *ctl, json_t *rows)
{
	if (ctl->json || ctl->all)
		return show_rows(ctl, &nm_process_table, rows);
	struct nm_table narrow = nm_process_table;
	narrow.count = NARROW_FIELDS;
	nm_table_print_within(stdout, &ctl->style, &narrow, rows, NARROW_COLUMNS);
	nm_table_explain_empty(stdout, rows);
	json_decref(rows);
	return nm_ctl_close_output();
}

int nm_ctl_processes(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	struct selection selection;
	uint32_t pid = 0;
	int r = parse_selection(ctl, &selection);
	if (r == EXIT_SUCCESS)
		r = fetch_for(words[0], &pid, &document);
	if (r != EXIT_SUCCESS)
		return r;
	nm_auto(json_decrefp) json_t *rows = rows_of(document, &nm_process_table, pid);
	selection.all |= pid > 0;
	return show_processes(ctl, select_rows(&selection, rows));
}

/* ---- decisions ---- */

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

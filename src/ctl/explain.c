/* SPDX-License-Identifier: MIT */
/* Explains one decision (the change, its reasons, and its verdict), or one process. */
#include <inttypes.h>
#include <string.h>

#include "cell.h"
#include "ctl.h"

static const char *text_of(const json_t *decision, const char *name)
{
	const char *text = json_string_value(json_object_get(decision, name));
	return text && text[0] != '\0' ? text : NULL;
}

/* Prints nothing if the daemon did not keep the text. */
static void print_text(FILE *out, const struct nm_style *style, const char *title, const char *text)
{
	char clean[2048];
	if (!text)
		return;
	(void)nm_text_fit(clean, sizeof(clean), text, NM_TEXT_ANY_WIDTH, style);
	(void)fprintf(out, "%s%s:%s %s\n", style->color ? NM_BOLD : "", title,
		      style->color ? NM_USUAL : "", clean);
}

static void print_value(FILE *out, const struct nm_style *style, const char *title,
			const struct nm_field *column, const json_t *decision)
{
	char text[NM_CELL_SIZE];
	if (!json_object_get(decision, column->name))
		return;
	(void)nm_cell(column, decision, style, text);
	print_text(out, style, title, text);
}

static void print_head(FILE *out, const struct nm_style *style, const json_t *decision)
{
	static const struct nm_field time = {.name = "time_usec", .kind = NM_CELL_TIME};
	static const struct nm_field id = {.name = "decision"};
	static const struct nm_field kind_field = {.name = "kind"};
	static const struct nm_field policy_field = {.name = "policy"};
	char when[NM_CELL_SIZE], number[NM_CELL_SIZE], kind[NM_CELL_SIZE], policy[NM_CELL_SIZE];
	(void)nm_cell(&time, decision, style, when);
	(void)nm_cell(&id, decision, style, number);
	(void)nm_cell(&kind_field, decision, style, kind);
	(void)nm_cell(&policy_field, decision, style, policy);
	(void)fprintf(out, "%sdecision %s%s, %s: %s by policy %s\n", style->color ? NM_BOLD : "",
		      number, style->color ? NM_USUAL : "", when, kind, policy);
}

/* The first candidate won. */
static void print_candidates(FILE *out, const struct nm_style *style, const json_t *decision)
{
	static const struct nm_field count = {.name = "candidates_count"};
	const json_t *candidates = nm_ctl_rows(decision, &nm_candidate_table);
	char all[NM_CELL_SIZE];
	if (json_array_size(candidates) == 0)
		return;
	(void)nm_cell(&count, decision, style, all);
	(void)fprintf(out, "\ncandidates (%zu of %s):\n", json_array_size(candidates), all);
	nm_table_print(out, style, &nm_candidate_table, candidates);
}

/* Prints the fields of the journal entry, one per line. */
static void print_fields(FILE *out, const struct nm_style *style, const json_t *decision)
{
	const char *text = text_of(decision, "fields");
	nm_autofree char *copy = text ? strdup(text) : NULL;
	char *rest = copy, *line, clean[1024];
	if (!copy)
		return;
	(void)fputs("\nfields in the journal:\n", out);
	while ((line = strsep(&rest, "\n"))) {
		(void)nm_text_fit(clean, sizeof(clean), line, NM_TEXT_ANY_WIDTH, style);
		if (clean[0] != '\0')
			(void)fprintf(out, "  %s\n", clean);
	}
}

/* In chronological order. */
static void print_decision(FILE *out, const struct nm_style *style, const json_t *decision)
{
	static const struct nm_field before = {.name = "before", .kind = NM_CELL_MEASURE};
	static const struct nm_field after = {.name = "after", .kind = NM_CELL_MEASURE};
	const char *verdict = text_of(decision, "verdict");
	print_head(out, style, decision);
	print_text(out, style, "what", text_of(decision, "message"));
	print_text(out, style, "result", text_of(decision, "result"));
	print_text(out, style, "verdict", verdict ? verdict : "pending");
	print_text(out, style, "because", text_of(decision, "verdict_message"));
	print_text(out, style, "judged by", text_of(decision, "figure"));
	print_value(out, style, "before", &before, decision);
	print_value(out, style, "after", &after, decision);
	print_candidates(out, style, decision);
	print_fields(out, style, decision);
}

/* ---- processes ---- */

/* Returns the reason that does not depend on the process: nothing is sampled. */
static const char *reason_of_service(const json_t *document)
{
	const json_t *status = json_object_get(document, "status");
	const char *source = text_of(status, "source");
	if (json_is_true(json_object_get(status, "paused")))
		return "is paused";
	if (json_is_true(json_object_get(status, "idle")))
		return "is idle, because one node has CPUs: nothing is sampled or moved";
	if (source && strcmp(source, "none") == 0)
		return "samples nothing: there is no sampling source (see numa-migrctl doctor)";
	return NULL;
}

int nm_ctl_unknown_process(const json_t *document, uint32_t pid)
{
	const char *of_service = reason_of_service(document);
	char path[32], name[64] = "";
	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	FILE *file = fopen(path, "re");
	if (!file) {
		(void)fprintf(stderr,
			      "numa-migrctl: there is no process %" PRIu32
			      ": it has ended, or never existed\n",
			      pid);
		return EXIT_FAILURE;
	}
	size_t length = fread(name, 1, sizeof(name) - 1, file);
	(void)fclose(file);
	if (of_service) {
		(void)fprintf(stderr, "numa-migrctl: numa-migrd %s\n", of_service);
		return EXIT_FAILURE;
	}
	char escaped[4 * sizeof(name)];
	name[length] = '\0';
	(void)nm_escape(escaped, sizeof(escaped), name, strcspn(name, "\n"));
	(void)fprintf(stderr,
		      "numa-migrctl: numa-migrd does not know process %" PRIu32
		      " (%s): none of its threads has used enough CPU time to be sampled\n",
		      pid, escaped);
	return EXIT_FAILURE;
}

/* Returns the decisions about a process; NULL: out of memory. */
static json_t *decisions_about(const json_t *document, uint32_t pid)
{
	json_t *row, *found = json_array();
	size_t index;
	json_array_foreach(nm_ctl_rows(document, &nm_decision_table), index, row)
	{
		if (json_integer_value(json_object_get(row, "pid")) == pid ||
		    json_integer_value(json_object_get(row, "partner_pid")) == pid)
			(void)json_array_append(found, row);
	}
	return found;
}

static int show_process(const struct nm_ctl *ctl, const json_t *process, const json_t *decisions)
{
	if (ctl->json)
		return nm_ctl_print_pair("process", process, "decisions", decisions);
	nm_ctl_print_lines(stdout, &ctl->style, process);
	(void)fputs("\ndecisions:\n", stdout);
	nm_table_print(stdout, &ctl->style, &nm_decision_table, decisions);
	nm_table_explain_empty(stdout, decisions);
	return nm_ctl_close_output();
}

/* Explains why it is or is not managed, with its decisions in the history. */
static int explain_process(const struct nm_ctl *ctl, const json_t *document, uint32_t pid)
{
	const json_t *process =
		nm_ctl_find_row(nm_ctl_rows(document, &nm_process_table), "pid", pid);
	if (!process)
		return nm_ctl_unknown_process(document, pid);
	nm_auto(json_decrefp) json_t *decisions = decisions_about(document, pid);
	return show_process(ctl, process, decisions);
}

/* ---- the command ---- */

static int explain_decision(const struct nm_ctl *ctl, const json_t *document, uint64_t id)
{
	const json_t *decision =
		nm_ctl_find_row(nm_ctl_rows(document, &nm_decision_table), "decision", id);
	if (!decision) {
		(void)fprintf(stderr,
			      "numa-migrctl: decision %" PRIu64
			      " is not among those remembered; the journal may have it: "
			      "journalctl DECISION=%" PRIu64 "\n",
			      id, id);
		return EXIT_FAILURE;
	}
	if (ctl->json)
		return nm_ctl_print_document("decision", json_incref((json_t *)decision));
	print_decision(stdout, &ctl->style, decision);
	return nm_ctl_close_output();
}

int nm_ctl_explain(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	bool process = strcmp(words[0], "process") == 0;
	uint32_t pid = 0;
	uint64_t id = 0;
	int r = EXIT_SUCCESS;
	if (process)
		r = words[1] ? nm_ctl_pid(words[1], &pid)
			     : nm_ctl_wrong_usage("explain process needs a process id", NULL);
	else if (!nm_ctl_number(words[0], 0, UINT64_MAX, &id))
		r = nm_ctl_wrong_usage("not the number of a decision", words[0]);
	else if (words[1])
		r = nm_ctl_wrong_usage("one argument too many", words[1]);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_fetch(NULL, &document);
	if (r != EXIT_SUCCESS)
		return r;
	return process ? explain_process(ctl, document, pid) : explain_decision(ctl, document, id);
}

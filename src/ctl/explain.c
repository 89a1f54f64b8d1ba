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

/* The text of the decision, and that of its verdict. */
static void print_sentences(FILE *out, const struct nm_style *style, const json_t *decision)
{
	static const char *const names[] = {"message", "verdict_message"};
	char clean[2048];
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++) {
		const char *text = text_of(decision, names[i]);
		if (!text)
			continue;
		(void)nm_text_fit(clean, sizeof(clean), text, NM_TEXT_ANY_WIDTH, style);
		(void)fprintf(out, "%s\n", clean);
	}
}

/* In chronological order. */
static void print_decision(FILE *out, const struct nm_style *style, const json_t *decision)
{
	static const struct nm_field before = {.name = "before", .kind = NM_CELL_MEASURE};
	static const struct nm_field after = {.name = "after", .kind = NM_CELL_MEASURE};
	const char *verdict = text_of(decision, "verdict");
	print_sentences(out, style, decision);
	print_head(out, style, decision);
	print_text(out, style, "result", text_of(decision, "result"));
	print_text(out, style, "verdict", verdict ? verdict : "pending");
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

/* "perf[4711]: it is managed", before all values. */
static void print_sentence(const struct nm_ctl *ctl, const json_t *process)
{
	static const struct nm_field pid = {.name = "pid"}, comm = {.name = "comm"};
	char number[NM_CELL_SIZE], name[NM_CELL_SIZE], sentence[1024];
	const char *text = text_of(process, "explanation");
	const char *state = text_of(process, "state");
	(void)nm_cell(&pid, process, &ctl->style, number);
	(void)nm_cell(&comm, process, &ctl->style, name);
	(void)nm_text_fit(sentence, sizeof(sentence),
			  text	  ? text
			  : state ? state
				  : "no reason",
			  NM_TEXT_ANY_WIDTH, &ctl->style);
	(void)printf("%s[%s]: %s\n", name, number, sentence);
}

static int show_process(const struct nm_ctl *ctl, const json_t *process, const json_t *decisions)
{
	if (ctl->json)
		return nm_ctl_print_pair("process", process, "decisions", decisions);
	print_sentence(ctl, process);
	(void)fputc('\n', stdout);
	nm_ctl_print_lines(stdout, &ctl->style, process);
	(void)fputs("\ndecisions:\n", stdout);
	nm_table_print(stdout, &ctl->style, &nm_decision_table, decisions);
	nm_table_explain_empty(stdout, decisions);
	return nm_ctl_close_output();
}

/* Explains each process of a service or scope. */
static int explain_unit(const struct nm_ctl *ctl, const json_t *document, const char *word)
{
	nm_auto(json_decrefp) json_t *found = nm_must(json_array());
	char unit[NM_CTL_UNIT_BYTES];
	json_t *row;
	size_t index;
	if (!nm_ctl_unit_name(word, unit))
		return nm_ctl_fail(word, "not the name of a unit");
	json_array_foreach(nm_ctl_rows(document, &nm_process_table), index, row)
	{
		const char *of = text_of(row, "unit");
		if (of && strcmp(of, unit) == 0)
			nm_must_do(json_array_append(found, row));
	}
	if (json_array_size(found) == 0)
		return nm_ctl_fail(unit, "numa-migrd knows no process of it: none has used enough "
					 "CPU time to be sampled");
	if (ctl->json)
		return nm_ctl_print_document("processes", NM_TAKE(found));
	json_array_foreach(found, index, row)
	{
		print_sentence(ctl, row);
	}
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

/* Without a word, the last one. */
static int explain_id(const struct nm_ctl *ctl, const json_t *document, const char *word)
{
	const json_t *decisions = nm_ctl_rows(document, &nm_decision_table);
	const json_t *last = json_array_get(decisions, json_array_size(decisions) - 1);
	uint64_t id = (uint64_t)json_integer_value(json_object_get(last, "decision"));
	if (!word && !last) {
		(void)puts("No decision was made since the start. numa-migrctl explain process PID "
			   "and\nexplain unit NAME show why.");
		return nm_ctl_close_output();
	}
	if (word)
		(void)nm_ctl_number(word, 0, UINT64_MAX, &id);
	return explain_decision(ctl, document, id);
}

int nm_ctl_explain(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	bool process = words[0] && strcmp(words[0], "process") == 0;
	bool unit = words[0] && strcmp(words[0], "unit") == 0;
	uint32_t pid = 0;
	uint64_t id;
	int r = EXIT_SUCCESS;
	if (process)
		r = words[1] ? nm_ctl_pid(words[1], &pid)
			     : nm_ctl_wrong_usage("explain process needs a process id", NULL);
	else if (unit && !words[1])
		r = nm_ctl_wrong_usage("explain unit needs the name of a unit", NULL);
	else if (!unit && words[0] && !nm_ctl_number(words[0], 0, UINT64_MAX, &id))
		r = nm_ctl_wrong_usage("not the number of a decision", words[0]);
	else if (!unit && words[0] && words[1])
		r = nm_ctl_wrong_usage("one argument too many", words[1]);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_fetch(NULL, &document);
	if (r != EXIT_SUCCESS)
		return r;
	if (unit)
		return explain_unit(ctl, document, words[1]);
	return process ? explain_process(ctl, document, pid) : explain_id(ctl, document, words[0]);
}

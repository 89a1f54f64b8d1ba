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
			const struct nm_column *column, const json_t *decision)
{
	char text[NM_CELL_SIZE];
	if (!json_object_get(decision, column->key))
		return;
	(void)nm_cell(column, decision, style, text);
	print_text(out, style, title, text);
}

static void print_head(FILE *out, const struct nm_style *style, const json_t *decision)
{
	static const struct nm_column time = {.key = "time_usec", .kind = NM_CELL_TIME};
	static const struct nm_column id = {.key = "decision"};
	char when[NM_CELL_SIZE], number[NM_CELL_SIZE];
	const char *kind = text_of(decision, "kind"), *policy = text_of(decision, "policy");
	(void)nm_cell(&time, decision, style, when);
	(void)nm_cell(&id, decision, style, number);
	(void)fprintf(out, "%sdecision %s%s, %s: %s by policy %s\n", style->color ? NM_BOLD : "",
		      number, style->color ? NM_USUAL : "", when, kind ? kind : "-",
		      policy ? policy : "-");
}

/* The first candidate won. */
static void print_candidates(FILE *out, const struct nm_style *style, const json_t *decision)
{
	static const struct nm_column columns[] = {
		{.key = "tickets", .head = "TICKETS"}, {.key = "to_node", .head = "NODE"},
		{.key = "to_cpu", .head = "CPU"},      {.key = "partner_tid", .head = "PARTNER"},
		{.key = "won", .head = "WON"},
	};
	static const struct nm_column count = {.key = "candidates_count"};
	const json_t *candidates = json_object_get(decision, "candidates");
	char all[NM_CELL_SIZE];
	if (json_array_size(candidates) == 0)
		return;
	(void)nm_cell(&count, decision, style, all);
	(void)fprintf(out, "\ncandidates (%zu of %s):\n", json_array_size(candidates), all);
	nm_table_print(out, style, columns, NM_ARRAY_SIZE(columns), candidates);
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
	static const struct nm_column tickets = {.key = "tickets"};
	static const struct nm_column draw = {.key = "draw"};
	static const struct nm_column before = {.key = "before", .kind = NM_CELL_MEASURE};
	static const struct nm_column after = {.key = "after", .kind = NM_CELL_MEASURE};
	const char *verdict = text_of(decision, "verdict");
	print_head(out, style, decision);
	print_text(out, style, "what", text_of(decision, "message"));
	print_text(out, style, "result", text_of(decision, "result"));
	print_text(out, style, "why", text_of(decision, "reasons"));
	print_value(out, style, "tickets", &tickets, decision);
	print_text(out, style, "tickets of", text_of(decision, "tickets_parts"));
	print_value(out, style, "draw", &draw, decision);
	print_text(out, style, "verdict", verdict ? verdict : "pending");
	print_text(out, style, "because", text_of(decision, "verdict_message"));
	print_text(out, style, "judged by", text_of(decision, "figure"));
	print_value(out, style, "before", &before, decision);
	print_value(out, style, "after", &after, decision);
	print_candidates(out, style, decision);
	print_fields(out, style, decision);
}

/* ---- processes ---- */

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

static int show_process(const struct nm_ctl *ctl, const json_t *process, const json_t *decisions)
{
	if (ctl->json)
		return nm_ctl_print_pair("process", process, "decisions", decisions);
	nm_ctl_print_lines(stdout, &ctl->style, process);
	(void)fputs("\ndecisions:\n", stdout);
	nm_table_print(stdout, &ctl->style, nm_decision_columns, NM_DECISION_COLUMNS, decisions);
	nm_table_explain_empty(stdout, decisions);
	return nm_ctl_close_output();
}

/* Explains why it is or is not managed, with its decisions in the history. */
static int explain_process(const struct nm_ctl *ctl, const char *word)
{
	nm_auto(json_decrefp) json_t *process = NULL;
	nm_auto(json_decrefp) json_t *decisions = NULL;
	uint32_t pid;
	int r = nm_ctl_pid(word, &pid);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_ask_once("ExplainProcess", NM_RIGHT_READ, &process, "u", pid);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_ask_once("Decisions", NM_RIGHT_READ, &decisions, "tu", (uint64_t)0,
				    UINT32_MAX);
	if (r != EXIT_SUCCESS)
		return r;
	keep_those_of(decisions, pid);
	return show_process(ctl, process, decisions);
}

/* ---- the command ---- */

int nm_ctl_explain(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *decision = NULL;
	uint64_t id;
	if (strcmp(words[0], "process") == 0)
		return words[1] ? explain_process(ctl, words[1])
				: nm_ctl_wrong_usage("explain process needs a process id", NULL);
	if (!nm_ctl_number(words[0], 0, UINT64_MAX, &id))
		return nm_ctl_wrong_usage("not the number of a decision", words[0]);
	if (words[1])
		return nm_ctl_wrong_usage("one argument too many", words[1]);
	int r = nm_ctl_ask_once("Explain", NM_RIGHT_READ, &decision, "t", id);
	if (r != EXIT_SUCCESS)
		return r;
	if (ctl->json)
		return nm_ctl_print_document("decision", NM_TAKE(decision));
	print_decision(stdout, &ctl->style, decision);
	return nm_ctl_close_output();
}

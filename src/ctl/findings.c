/* SPDX-License-Identifier: MIT */
#include "findings.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl.h"

#define HEAD_COLUMNS 9 /* of the severity, and what follows begins below */
#define WIDTH_LEAST 40U
#define WIDTH_USUAL 80U
#define WIDTH_MOST 120U /* longer lines are hard to read */

/* ---- for people ---- */

/* Columns of UTF-8 text in which every character takes one. */
static size_t columns_of(const char *text, size_t length)
{
	size_t columns = 0;

	for (size_t i = 0; i < length; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

/* Goes on at column `used`; a new line begins at HEAD_COLUMNS. */
static void write_words(FILE *out, const char *text, size_t used, size_t width)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " ");
		size_t columns = columns_of(text, length);
		if (!first && used + 1 + columns > width) {
			(void)fprintf(out, "\n%*s", HEAD_COLUMNS, "");
			used = HEAD_COLUMNS;
		} else if (!first) {
			(void)fputc(' ', out);
			used++;
		}
		(void)fwrite(text, 1, length, out);
		used += columns;
		first = false;
		text += length;
		text += strspn(text, " ");
	}
	(void)fputc('\n', out);
}

static void write_part(FILE *out, const char *name, const char *text, size_t width)
{
	if (!text)
		return;
	(void)fprintf(out, "%*s%s ", HEAD_COLUMNS, "", name);
	write_words(out, text, HEAD_COLUMNS + strlen(name) + 1, width);
}

static void write_finding(FILE *out, const struct nm_finding *finding, size_t width)
{
	size_t used = HEAD_COLUMNS + strlen(finding->check) + 2;

	(void)fprintf(out, "%-*s%s: ", HEAD_COLUMNS, nm_severity_name(finding->severity),
		      finding->check);
	write_words(out, finding->what, used, width);
	if (finding->severity != NM_SEVERITY_FINE)
		write_part(out, "seen:", finding->evidence, width);
	write_part(out, "remedy:", finding->remedy, width);
}

/* The worst first: "1 problem, 2 notes". "fine" and "unseen" have no plural. */
static void write_counts(FILE *out, const struct nm_findings *findings)
{
	const char *between = "";

	for (int i = NM_SEVERITY_MAX; i-- > 0;) {
		enum nm_severity severity = (enum nm_severity)i;
		size_t count = nm_findings_count(findings, severity);
		bool countable = severity != NM_SEVERITY_FINE && severity != NM_SEVERITY_UNSEEN;
		if (count == 0)
			continue;
		(void)fprintf(out, "%s%zu %s%s", between, count, nm_severity_name(severity),
			      countable && count > 1 ? "s" : "");
		between = ", ";
	}
	(void)fputc('\n', out);
}

void nm_ctl_write_findings(FILE *out, const struct nm_findings *findings, size_t leading,
			   size_t width)
{
	for (size_t i = 0; i < leading && i < findings->count; i++)
		write_finding(out, &findings->items[i], width);
	for (int severity = NM_SEVERITY_MAX; severity-- > 0;)
		for (size_t i = leading; i < findings->count; i++)
			if ((int)findings->items[i].severity == severity)
				write_finding(out, &findings->items[i], width);
	(void)fputc('\n', out);
	write_counts(out, findings);
}

/* ---- for programs ---- */

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *to_json(const struct nm_finding *finding)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "check", finding->check, "severity",
			 nm_severity_name(finding->severity), "what", finding->what, "evidence",
			 text_or_null(finding->evidence), "remedy", text_or_null(finding->remedy));
}

static json_t *list(const struct nm_findings *findings)
{
	json_t *items = json_array();

	for (size_t i = 0; items && i < findings->count; i++)
		if (json_array_append_new(items, to_json(&findings->items[i])) < 0) {
			json_decref(items);
			return NULL;
		}
	return items;
}

static json_t *counts(const struct nm_findings *findings)
{
	json_t *object = json_object();

	for (int i = 0; object && i < NM_SEVERITY_MAX; i++) {
		enum nm_severity severity = (enum nm_severity)i;
		json_int_t count = (json_int_t)nm_findings_count(findings, severity);
		if (json_object_set_new(object, nm_severity_name(severity), json_integer(count)) <
		    0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

json_t *nm_ctl_findings_document(const struct nm_findings *findings)
{
	return json_pack("{s:i, s:o, s:o}", "version", NM_CTL_JSON_VERSION, "findings",
			 list(findings), "counts", counts(findings));
}

/* ---- both ---- */

static size_t terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH_USUAL;
	if (size.ws_col < WIDTH_LEAST)
		return WIDTH_LEAST;
	return size.ws_col < WIDTH_MOST ? size.ws_col : WIDTH_MOST;
}

static int show_document(const struct nm_findings *findings)
{
	json_t *document = nm_ctl_findings_document(findings);
	int r = document ? json_dumpf(document, stdout, JSON_INDENT(2)) : -1;

	json_decref(document);
	(void)putchar('\n');
	return r;
}

int nm_ctl_show_findings(const struct nm_findings *findings, size_t leading, bool json)
{
	int r = 0;

	if (json)
		r = show_document(findings);
	else
		nm_ctl_write_findings(stdout, findings, leading, terminal_width());
	if (r < 0 || fflush(stdout) != 0 || ferror(stdout)) {
		perror("numa-migrctl: standard output");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

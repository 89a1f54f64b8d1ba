/* SPDX-License-Identifier: MIT */
#include "show_findings.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HEAD_COLUMNS 9 /* for the severity; further lines begin below it */
#define WIDTH_LEAST 40U
#define WIDTH_USUAL 80U
#define WIDTH_MOST 120U /* longer lines are hard to read */

/* The width and style of the output. */
struct page {
	FILE *out;
	const struct nm_style *style;
	size_t width;
};

static const char *color_of(enum nm_severity severity)
{
	static const char *const colors[] = {
		[NM_SEVERITY_FINE] = "\033[32m",      [NM_SEVERITY_NOTE] = "",
		[NM_SEVERITY_UNSEEN] = "\033[36m",    [NM_SEVERITY_WARNING] = "\033[33m",
		[NM_SEVERITY_PROBLEM] = "\033[1;31m",
	};

	return colors[severity];
}

/* Writes the name at the beginning of the line, with padding outside its color. */
static void write_severity(const struct page *page, enum nm_severity severity)
{
	const char *name = nm_severity_name(severity);
	const char *color = page->style->color ? color_of(severity) : "";

	(void)fprintf(page->out, "%s%s%s%*s", color, name, color[0] != '\0' ? NM_USUAL : "",
		      HEAD_COLUMNS - (int)strlen(name), "");
}

/* Continues at column `used`; a new line begins at HEAD_COLUMNS. */
static void write_words(const struct page *page, const char *text, size_t used)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " ");
		nm_autofree char *word = strndup(text, length), *shown = malloc(length + 1);
		if (!word || !shown)
			return;
		size_t columns =
			nm_text_fit(shown, length + 1, word, NM_TEXT_ANY_WIDTH, page->style);
		if (!first && used + 1 + columns > page->width) {
			(void)fprintf(page->out, "\n%*s", HEAD_COLUMNS, "");
			used = HEAD_COLUMNS;
		} else if (!first) {
			(void)fputc(' ', page->out);
			used++;
		}
		(void)fputs(shown, page->out);
		used += columns;
		first = false;
		text += length;
		text += strspn(text, " ");
	}
	(void)fputc('\n', page->out);
}

static void write_part(const struct page *page, const char *name, const char *text)
{
	if (!text)
		return;
	(void)fprintf(page->out, "%*s%s ", HEAD_COLUMNS, "", name);
	write_words(page, text, HEAD_COLUMNS + strlen(name) + 1);
}

static void write_finding(const struct page *page, const struct nm_finding *finding)
{
	bool color = page->style->color;

	write_severity(page, finding->severity);
	(void)fprintf(page->out, "%s%s:%s ", color ? NM_BOLD : "", finding->check,
		      color ? NM_USUAL : "");
	write_words(page, finding->what, HEAD_COLUMNS + strlen(finding->check) + 2);
	if (finding->severity != NM_SEVERITY_FINE)
		write_part(page, "seen:", finding->evidence);
	write_part(page, "remedy:", finding->remedy);
}

/* In descending order of severity: "1 problem, 2 notes". "fine" and "unseen" have no plural. */
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

void nm_ctl_write_findings(FILE *out, const struct nm_style *style,
			   const struct nm_findings *findings, size_t leading, size_t width)
{
	const struct page page = {out, style, width};

	for (size_t i = 0; i < leading && i < findings->count; i++)
		write_finding(&page, &findings->items[i]);
	for (int severity = NM_SEVERITY_MAX; severity-- > 0;)
		for (size_t i = leading; i < findings->count; i++)
			if ((int)findings->items[i].severity == severity)
				write_finding(&page, &findings->items[i]);
	(void)fputc('\n', out);
	write_counts(out, findings);
}

static json_t *to_json(const struct nm_finding *finding)
{
	return json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "check", finding->check, "severity",
			 nm_severity_name(finding->severity), "what", finding->what, "evidence",
			 finding->evidence, "remedy", finding->remedy);
}

static json_t *list(const struct nm_findings *findings)
{
	nm_auto(json_decrefp) json_t *items = json_array();

	for (size_t i = 0; i < findings->count; i++)
		if (json_array_append_new(items, to_json(&findings->items[i])) < 0)
			return NULL;
	return NM_TAKE(items);
}

static json_t *counts(const struct nm_findings *findings)
{
	nm_auto(json_decrefp) json_t *object = json_object();

	for (int i = 0; i < NM_SEVERITY_MAX; i++) {
		size_t count = nm_findings_count(findings, (enum nm_severity)i);
		if (json_object_set_new(object, nm_severity_name((enum nm_severity)i),
					json_integer((json_int_t)count)) < 0)
			return NULL;
	}
	return NM_TAKE(object);
}

json_t *nm_ctl_findings_document(const struct nm_findings *findings)
{
	return json_pack("{s:i, s:o, s:o}", "version", NM_CTL_JSON_VERSION, "findings",
			 list(findings), "counts", counts(findings));
}

static size_t terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH_USUAL;
	if (size.ws_col < WIDTH_LEAST)
		return WIDTH_LEAST;
	return size.ws_col < WIDTH_MOST ? size.ws_col : WIDTH_MOST;
}

int nm_ctl_show_findings(const struct nm_ctl *ctl, const struct nm_findings *findings,
			 size_t leading)
{
	if (ctl->json) {
		nm_auto(json_decrefp) json_t *document = nm_ctl_findings_document(findings);
		return nm_ctl_print_json(document);
	}
	nm_ctl_write_findings(stdout, &ctl->style, findings, leading, terminal_width());
	return nm_ctl_close_output();
}

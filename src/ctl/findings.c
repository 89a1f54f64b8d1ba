/* SPDX-License-Identifier: MIT */
#include "findings.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const severity_names[NM_SEVERITY_MAX] = {
	[NM_SEVERITY_FINE] = "fine",	   [NM_SEVERITY_NOTE] = "note",
	[NM_SEVERITY_UNSEEN] = "unseen",   [NM_SEVERITY_WARNING] = "warning",
	[NM_SEVERITY_PROBLEM] = "problem",
};

const char *nm_severity_name(enum nm_severity severity)
{
	return severity_names[severity];
}

void nm_findings_add(struct nm_findings *findings, const char *check, enum nm_severity severity,
		     const char *format, ...)
{
	va_list arguments;
	char *what = NULL;

	va_start(arguments, format);
	NM_RESERVE(findings->items, findings->capacity, findings->count);
	nm_must_do(vasprintf(&what, format, arguments));
	va_end(arguments);
	findings->items[findings->count++] =
		(struct nm_finding){.check = check, .severity = severity, .what = what};
}

/* Appends to the evidence or the remedy at `place`. */
static void __attribute__((format(printf, 2, 0)))
append_text(char **place, const char *format, va_list arguments)
{
	nm_autofree char *more = NULL;
	nm_autofree char *before = *place;

	nm_must_do(vasprintf(&more, format, arguments));
	if (before)
		nm_must_do(asprintf(place, "%s; %s", before, more));
	else
		*place = NM_TAKE(more);
}

void nm_findings_evidence(struct nm_findings *findings, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	append_text(&findings->items[findings->count - 1].evidence, format, arguments);
	va_end(arguments);
}

void nm_findings_remedy(struct nm_findings *findings, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	append_text(&findings->items[findings->count - 1].remedy, format, arguments);
	va_end(arguments);
}

size_t nm_findings_count(const struct nm_findings *findings, enum nm_severity severity)
{
	size_t count = 0;

	for (size_t i = 0; i < findings->count; i++)
		count += findings->items[i].severity == severity;
	return count;
}

void nm_findings_clear(struct nm_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		free(findings->items[i].what);
		free(findings->items[i].evidence);
		free(findings->items[i].remedy);
	}
	free(findings->items);
	*findings = (struct nm_findings){0};
}

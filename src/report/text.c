/* SPDX-License-Identifier: MIT */
/* The exposition format, version 0.0.4. "# EOF" is a comment in it, and shows that the file is
 * complete. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/statistics.h"

#define NUMBER_BYTES 32

static int reserve_text(struct nm_export *out, size_t more)
{
	size_t wanted = out->capacity ? out->capacity : 4096;

	while (wanted - out->length <= more)
		wanted *= 2;
	if (wanted == out->capacity)
		return 0;
	char *grown = realloc(out->text, wanted);
	if (!grown)
		return -ENOMEM;
	out->text = grown;
	out->capacity = wanted;
	return 0;
}

static void add_text(struct nm_export *out, const char *text, size_t length)
{
	if (out->error == 0)
		out->error = reserve_text(out, length);
	if (out->error < 0)
		return;
	memcpy(out->text + out->length, text, length);
	out->length += length;
	out->text[out->length] = '\0';
}

static void append(struct nm_export *out, const char *text)
{
	add_text(out, text, strlen(text));
}

/* Escapes backslash, quote and newline; a help text is not quoted. */
static void append_escaped(struct nm_export *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (!strchr(special, *text)) {
			add_text(out, text, 1);
			continue;
		}
		const char escaped[] = {'\\', *text == '\n' ? 'n' : *text};
		add_text(out, escaped, sizeof(escaped));
	}
}

/* The shortest text that yields the same number. */
static void append_number(struct nm_export *out, double value)
{
	char text[NUMBER_BYTES];

	if (isinf(value)) {
		append(out, value > 0 ? "+Inf" : "-Inf");
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	append(out, text);
}

static void append_head(struct nm_export *out, const struct nm_metric_kind *kind)
{
	append(out, "# HELP ");
	append(out, kind->name);
	append(out, " ");
	append_escaped(out, kind->help, "\\\n");
	append(out, "\n# TYPE ");
	append(out, kind->name);
	append(out, kind->counter ? " counter\n" : " gauge\n");
}

static void append_labels(struct nm_export *out, const struct nm_metric_kind *kind,
			  const char *const *labels)
{
	for (unsigned i = 0; i < NM_METRIC_LABELS && kind->labels[i]; i++) {
		append(out, i == 0 ? "{" : ",");
		append(out, kind->labels[i]);
		append(out, "=\"");
		append_escaped(out, labels[i], "\\\"\n");
		append(out, "\"");
	}
	if (kind->labels[0])
		append(out, "}");
}

void nm_export_put(struct nm_export *out, enum nm_metric metric, const char *const *labels,
		   double value)
{
	const struct nm_metric_kind *kind = nm_metric_kind(metric);
	bool goes_on = metric + 1 == out->next;

	if (isnan(value) || out->error < 0)
		return;
	if (metric < out->next && !goes_on) {
		out->error = -EINVAL;
		return;
	}
	if (!goes_on)
		append_head(out, kind);
	out->next = metric + 1;
	append(out, kind->name);
	append_labels(out, kind, labels);
	append(out, " ");
	append_number(out, value);
	append(out, "\n");
}

int nm_export_finish(struct nm_export *out)
{
	append(out, "# EOF\n");
	return out->error;
}

void nm_export_clear(struct nm_export *out)
{
	free(out->text);
	*out = (struct nm_export){0};
}

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

static void say(struct nm_export *out, const char *text)
{
	add_text(out, text, strlen(text));
}

/* Escapes backslash, quote and newline; a help text is not quoted. */
static void say_escaped(struct nm_export *out, const char *text, const char *special)
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
static void say_number(struct nm_export *out, double value)
{
	char text[NUMBER_BYTES];

	if (isinf(value)) {
		say(out, value > 0 ? "+Inf" : "-Inf");
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	say(out, text);
}

static void say_head(struct nm_export *out, const struct nm_metric_kind *kind)
{
	say(out, "# HELP ");
	say(out, kind->name);
	say(out, " ");
	say_escaped(out, kind->help, "\\\n");
	say(out, "\n# TYPE ");
	say(out, kind->name);
	say(out, kind->counter ? " counter\n" : " gauge\n");
}

static void say_labels(struct nm_export *out, const struct nm_metric_kind *kind,
		       const char *const *labels)
{
	for (unsigned i = 0; i < NM_METRIC_LABELS && kind->labels[i]; i++) {
		say(out, i == 0 ? "{" : ",");
		say(out, kind->labels[i]);
		say(out, "=\"");
		say_escaped(out, labels[i], "\\\"\n");
		say(out, "\"");
	}
	if (kind->labels[0])
		say(out, "}");
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
		say_head(out, kind);
	out->next = metric + 1;
	say(out, kind->name);
	say_labels(out, kind, labels);
	say(out, " ");
	say_number(out, value);
	say(out, "\n");
}

int nm_export_finish(struct nm_export *out)
{
	say(out, "# EOF\n");
	return out->error;
}

void nm_export_clear(struct nm_export *out)
{
	free(out->text);
	*out = (struct nm_export){0};
}

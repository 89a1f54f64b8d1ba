/* SPDX-License-Identifier: MIT */
#include "field_report.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "ctl.h"
#include "numa-migrd/file.h"

#define REPORT_VERSION 1
#define ROWS 500	/* of an array; the newest decisions are the last ones */
#define WORD_LENGTH 24U /* of a word that the service chooses */

/* Text is left out unless it is listed here: a new field must not reveal a name. */
enum treatment {
	LEFT_OUT,
	WORD,	   /* from a list of the service: kept */
	RESULT,	   /* of known words only: kept */
	CPU_LIST,  /* kept */
	NUMBERED,  /* replaced by the kind of its name, and a number */
	VARIABLES, /* NAME=value lines, of which those with a number are kept */
};

static const struct rule {
	const char *field;
	enum treatment treatment;
	const char *kind;
} rules[] = {
	{"comm", NUMBERED, "program"},
	{"partner_comm", NUMBERED, "program"},
	{"unit", NUMBERED, "unit"},
	{"uid", NUMBERED, "user"},
	{"compared_today", RESULT, NULL},
	{"fields", VARIABLES, NULL},
	{"cpus", CPU_LIST, NULL},
	{"version", WORD, NULL},
	{"source", WORD, NULL},
	{"policy", WORD, NULL},
	{"selection", WORD, NULL},
	{"dtas", WORD, NULL},
	{"state", WORD, NULL},
	{"reason", WORD, NULL},
	{"steer", WORD, NULL},
	{"kind", WORD, NULL},
	{"result", RESULT, NULL},
	{"verdict", WORD, NULL},
	{"figure", WORD, NULL},
};

static const struct rule *rule_of(const char *field)
{
	static const struct rule unknown = {"", LEFT_OUT, NULL};
	for (size_t i = 0; i < NM_ARRAY_SIZE(rules); i++)
		if (strcmp(rules[i].field, field) == 0)
			return &rules[i];
	return &unknown;
}

/* Returns "KIND N", the same for the same name. `known` has an object for each kind. */
static json_t *numbered(json_t *known, const char *kind, const char *name)
{
	json_t *names = json_object_get(known, kind);
	if (!names) {
		names = nm_must(json_object());
		nm_must_do(json_object_set_new(known, kind, names));
	}
	json_t *number = json_object_get(names, name);
	if (!number) {
		number = nm_must(json_integer((json_int_t)json_object_size(names) + 1));
		nm_must_do(json_object_set_new(names, name, number));
	}
	return nm_must(json_sprintf("%s %lld", kind, (long long)json_integer_value(number)));
}

static bool consists_of(const char *text, const char *characters)
{
	return text[strspn(text, characters)] == '\0';
}

/* Only fields whose text is from a list get here; anything else than a word is an error. */
static bool is_word(const char *text)
{
	return strlen(text) <= WORD_LENGTH &&
	       consists_of(text, "abcdefghijklmnopqrstuvwxyz0123456789.+_-");
}

/* The words of nm_trial_describe(), and of the results of decisions. */
static const char *const vocabulary[] = {
	"a",	"alone",      "and",	 "applied", "are",    "asked",	 "at",	 "comparison",
	"cpu",	"difference", "dry",	 "each",    "fewer",  "found",	 "in",	 "least",
	"left", "machine",    "managed", "more",    "needed", "no",	 "of",	 "on",
	"one",	"process",    "refused", "run",	    "same",   "seconds", "than", "the",
	"to",	"typical",    "units",	 "used",
};

static bool is_known_word(const char *word, size_t length)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(vocabulary); i++)
		if (strlen(vocabulary[i]) == length &&
		    strncasecmp(vocabulary[i], word, length) == 0)
			return true;
	return false;
}

static bool has_known_words(const char *text)
{
	static const char between[] = " 0123456789+-.,:;()%";
	for (text += strspn(text, between); *text; text += strspn(text, between)) {
		size_t length = strcspn(text, between);
		if (!is_known_word(text, length))
			return false;
		text += length;
	}
	return true;
}

/* Keeps "NAME=12.5" and "NAME=-3 %", so that the values of a decision are in the report. */
static json_t *variables(const char *text)
{
	json_t *kept = nm_must(json_object());
	while (*text) {
		size_t length = strcspn(text, "\n"), name = strcspn(text, "=\n");
		nm_autofree char *value = NULL, *key = nm_must(strndup(text, name));
		if (name < length) {
			value = nm_must(strndup(text + name + 1, length - name - 1));
			if (consists_of(value, "0123456789.+-e %") &&
			    consists_of(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"))
				nm_must_do(json_object_set_new(kept, key,
							       nm_must(json_string(value))));
		}
		text += length + (text[length] == '\n');
	}
	return kept;
}

/* Returns NULL for text that is left out. */
static json_t *clean_text(json_t *known, const struct rule *rule, const char *text)
{
	switch (rule->treatment) {
	case WORD:
		return is_word(text) ? nm_must(json_string(text)) : NULL;
	case RESULT:
		return has_known_words(text) ? nm_must(json_string(text)) : NULL;
	case CPU_LIST:
		return consists_of(text, "0123456789,-") ? nm_must(json_string(text)) : NULL;
	case NUMBERED:
		return text[0] ? numbered(known, rule->kind, text) : NULL;
	case VARIABLES:
		return variables(text);
	case LEFT_OUT:
		return NULL;
	}
	return NULL;
}

static json_t *clean(json_t *known, const struct rule *rule, json_t *value);

static json_t *clean_object(json_t *known, json_t *object)
{
	json_t *result = nm_must(json_object());
	const char *name;
	json_t *value;
	json_object_foreach(object, name, value)
	{
		json_t *cleaned = clean(known, rule_of(name), value);
		if (cleaned)
			nm_must_do(json_object_set_new(result, name, cleaned));
	}
	return result;
}

static json_t *clean_array(json_t *known, const struct rule *rule, const json_t *array)
{
	json_t *result = nm_must(json_array());
	size_t count = json_array_size(array);
	for (size_t i = count > ROWS ? count - ROWS : 0; i < count; i++) {
		json_t *cleaned = clean(known, rule, json_array_get(array, i));
		if (cleaned)
			nm_must_do(json_array_append_new(result, cleaned));
	}
	return result;
}

/* The depth is that of the document, which has been parsed (jansson limits it). */
static json_t *clean(json_t *known, const struct rule *rule,
		     json_t *value) // NOLINT(misc-no-recursion)
{
	char digits[32];
	if (json_is_object(value))
		return clean_object(known, value);
	if (json_is_array(value))
		return clean_array(known, rule, value);
	if (json_is_string(value))
		return clean_text(known, rule, json_string_value(value));
	if (rule->treatment != NUMBERED)
		return json_incref(value);
	(void)snprintf(digits, sizeof(digits), "%lld", (long long)json_integer_value(value));
	return numbered(known, rule->kind, digits);
}

/* Threads are many, and their processes have the sums. */
static json_t *of_service(const json_t *document, bool names)
{
	nm_auto(json_decrefp) json_t *copy = nm_must(json_deep_copy(document));
	nm_auto(json_decrefp) json_t *known = nm_must(json_object());
	(void)json_object_del(copy, "threads");
	return names ? NM_TAKE(copy) : clean_object(known, copy);
}

static json_t *of_findings(const struct nm_findings *findings, bool names)
{
	json_t *list = nm_must(json_array());
	for (size_t i = 0; i < findings->count; i++) {
		const struct nm_finding *item = &findings->items[i];
		json_t *row = nm_must(json_pack("{ssss}", "check", item->check, "severity",
						nm_severity_name(item->severity)));
		if (names)
			nm_must_do(json_object_update_new(
				row, nm_must(json_pack("{ssss*}", "what", item->what, "evidence",
						       item->evidence))));
		nm_must_do(json_array_append_new(list, row));
	}
	return list;
}

json_t *nm_report_compose(const struct nm_report_source *source, bool names)
{
	json_t *report = nm_must(json_pack("{sisb}", "report", REPORT_VERSION, "names", names));
	if (source->kernel) {
		/* The text behind the number may be the name of a company or of a host. */
		size_t length = strspn(source->kernel, "0123456789.");
		nm_must_do(
			json_object_set_new(report, "kernel",
					    nm_must(names ? json_string(source->kernel)
							  : json_stringn(source->kernel, length))));
	}
	if (source->cpu)
		nm_must_do(json_object_set_new(report, "cpu", nm_must(json_string(source->cpu))));
	if (source->facts)
		nm_must_do(json_object_set_new(report, "machine",
					       nm_must(json_deep_copy(source->facts))));
	if (source->nodes)
		nm_must_do(json_object_set_new(report, "topology",
					       nm_must(json_deep_copy(source->nodes))));
	if (source->findings)
		nm_must_do(json_object_set_new(report, "checks",
					       of_findings(source->findings, names)));
	if (source->document)
		nm_must_do(json_object_set_new(report, "service",
					       of_service(source->document, names)));
	return report;
}

int nm_report_write(const char *path, const json_t *report)
{
	nm_auto(nm_closep) int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	errno = 0;
	if (json_dumpfd(report, fd, JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII) <
		    0 ||
	    write(fd, "\n", 1) != 1 || fsync(fd) < 0) {
		int r = errno ? -errno : -EIO;
		(void)unlink(path);
		return r;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Tests in words:
 *
 *	SCRIPT(pages_follow_their_thread,
 *	       "space 16 node2; touch 1000 0-15 from cpu0; begin pages",
 *	       "until pages node0 = 16 within 20; keep n = submitted",
 *	       "run 30; submitted = n; journal decision KIND=pages NODE_TO=0")
 *
 * A step ends at ";" or at the end of its string, which is a line of the script. Its first word is
 * defined by WORD() or ACTION(), or is a quantity, defined by QUANTITY(), KNOB() or TEXT():
 *
 *	QUANTITY ARGUMENTS = VALUE	fails if it is another one; also !=, <, <=, >, >=, in A..B
 *	TEXT ARGUMENTS ~ WORDS		fails if the text does not contain this; also !~, =, !=
 *	set KNOB ARGUMENTS = VALUE	changes it
 *	keep NAME = QUANTITY ...	later values are NAME, NAME+3, NAME-3 or NAME*0.5
 *	until CONDITION within 20	makes steps until it holds (SCRIPT_STEP); 20s are seconds
 *	each 5: STEPS			repeats the rest of the line
 *
 * A number may end in K, M or G (of 1024), and begin with "node", "cpu" or "page"; 4-7 is two
 * numbers; the value EPERM is -EPERM. Arguments that are no numbers explain the others, or are read
 * by the word. A failure prints the line, the step, and the value found.
 */
#ifndef NM_SCRIPT_H
#define NM_SCRIPT_H

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { SCRIPT_WORDS = 24, SCRIPT_NUMBERS = 24, SCRIPT_KEPT = 16, SCRIPT_DEFINED = 200 };

struct step {
	unsigned line;
	char text[400], copy[400];
	char *word[SCRIPT_WORDS]; /* after the first one */
	unsigned count;
	const char *name;
	double number[SCRIPT_NUMBERS];
	unsigned nr_numbers;
};

struct script_word {
	const char *name;
	void (*run)(const struct step *step);
};

struct script_quantity {
	const char *name;
	double (*value)(const struct step *step, const double *set);
	bool is_knob;
};

struct script_text {
	const char *name;
	const char *(*value)(const struct step *step);
};

/* The name of a value of a quantity. */
struct script_name {
	const char *quantity, *name;
	double value;
};

static struct script_word script_words[SCRIPT_DEFINED];
static struct script_quantity script_quantities[SCRIPT_DEFINED];
static struct script_text script_texts[SCRIPT_DEFINED];
static struct script_name script_names[SCRIPT_DEFINED];
static size_t nr_script_words, nr_script_quantities, nr_script_texts, nr_script_names;

static struct script_kept {
	char name[32];
	double value;
} script_kept[SCRIPT_KEPT];
static size_t nr_script_kept;

#define WORD(word)                                                                                 \
	static void word_##word(const struct step *step);                                          \
	__attribute__((constructor)) static void word_##word##_define(void)                        \
	{                                                                                          \
		assert(nr_script_words < SCRIPT_DEFINED);                                          \
		script_words[nr_script_words++] = (struct script_word){#word, word_##word};        \
	}                                                                                          \
	static void word_##word(__attribute__((unused)) const struct step *step)

/* A word that does one thing. */
#define ACTION(word, ...)                                                                          \
	WORD(word)                                                                                 \
	{                                                                                          \
		__VA_ARGS__;                                                                       \
	}

#define SCRIPT_QUANTITY(word, knob, assignment, expression)                                        \
	static double quantity_##word(__attribute__((unused)) const struct step *step,             \
				      __attribute__((unused)) const double *set)                   \
	{                                                                                          \
		assignment;                                                                        \
		return (double)(expression);                                                       \
	}                                                                                          \
	__attribute__((constructor)) static void quantity_##word##_define(void)                    \
	{                                                                                          \
		assert(nr_script_quantities < SCRIPT_DEFINED);                                     \
		script_quantities[nr_script_quantities++] =                                        \
			(struct script_quantity){#word, quantity_##word, knob};                    \
	}
#define QUANTITY(word, expression) SCRIPT_QUANTITY(word, false, (void)0, expression)
#define KNOB(word, place)                                                                          \
	SCRIPT_QUANTITY(word, true, if (set) place = (__typeof__(place))*set, place)

/* NULL is "none". */
#define TEXT(word, expression)                                                                     \
	static const char *text_##word(__attribute__((unused)) const struct step *step)            \
	{                                                                                          \
		return expression;                                                                 \
	}                                                                                          \
	__attribute__((constructor)) static void text_##word##_define(void)                        \
	{                                                                                          \
		assert(nr_script_texts < SCRIPT_DEFINED);                                          \
		script_texts[nr_script_texts++] = (struct script_text){#word, text_##word};        \
	}

#define NAMES(quantity, ...)                                                                       \
	__attribute__((constructor)) static void names_##quantity##_define(void)                   \
	{                                                                                          \
		static const struct {                                                              \
			const char *name;                                                          \
			double value;                                                              \
		} of[] = {__VA_ARGS__};                                                            \
		for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {                          \
			assert(nr_script_names < SCRIPT_DEFINED);                                  \
			script_names[nr_script_names++] =                                          \
				(struct script_name){#quantity, of[i].name, of[i].value};          \
		}                                                                                  \
	}

/* Called before a failure, as by a test that redirects its messages. */
#ifndef SCRIPT_FAILING
#define SCRIPT_FAILING() (void)0
#endif

/* Fails with the line and the step. */
__attribute__((noreturn, format(printf, 2, 3))) static inline void
script_fail(const struct step *step, const char *format, ...)
{
	char text[2000];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	SCRIPT_FAILING();
	fail_msg("line %u: %s: %s", step->line, step->text, text);
	abort(); /* not reached */
}

/* ---- values ---- */

static inline double script_number(const char *text, const char **ret_end)
{
	static const char *const prefixes[] = {"node", "cpu", "page"};
	char *end;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0 &&
		    isdigit((unsigned char)text[strlen(prefixes[i])]))
			text += strlen(prefixes[i]);
	double value = strtod(text, &end);
	for (unsigned i = 0; i < 3 && end > text; i++)
		if (*end == "KMG"[i]) {
			value *= (double)(1ULL << 10 * (i + 1));
			end++;
			break;
		}
	*ret_end = end == text ? NULL : end;
	return value;
}

/* A kept value, or one with an operator and a number. */
static inline bool script_recall(const char *text, double *ret)
{
	const size_t length = strcspn(text, "+-*");
	const char *end;
	for (size_t i = 0; i < nr_script_kept; i++) {
		const double kept = script_kept[i].value;
		if (strlen(script_kept[i].name) != length ||
		    strncmp(script_kept[i].name, text, length) != 0)
			continue;
		double by = text[length] ? script_number(text + length + 1, &end) : 0;
		if (text[length] && !end)
			(void)script_recall(text + length + 1, &by);
		*ret = text[length] == '*'   ? kept * by
		       : text[length] == '-' ? kept - by
					     : kept + by;
		return true;
	}
	return false;
}

/* The value of a number, a name of the quantity, or an expression of a kept value. */
static inline double script_value(const struct step *step, const char *quantity, const char *text)
{
	const char *end;
	double value = script_number(text, &end);
	if (end && !*end)
		return value;
	for (size_t i = 0; i < nr_script_names; i++)
		if (strcmp(script_names[i].quantity, quantity) == 0 &&
		    strcmp(script_names[i].name, text) == 0)
			return script_names[i].value;
	if (script_recall(text, &value))
		return value;
	for (int error = 1; text[0] == 'E' && error < 200; error++)
		if (strerrorname_np(error) && strcmp(strerrorname_np(error), text) == 0)
			return -error;
	script_fail(step, "no value: %s", text);
	return 0;
}

/* The name of the value, or the number. */
static inline const char *script_show(const char *quantity, double value)
{
	static char text[64];
	for (size_t i = 0; i < nr_script_names; i++)
		if (strcmp(script_names[i].quantity, quantity) == 0 &&
		    fabs(script_names[i].value - value) < 1e-9)
			return script_names[i].name;
	const char *error = value < 0 && value > -200 ? strerrorname_np((int)-value) : NULL;
	snprintf(text, sizeof(text), "%.10g%s%s", value, error ? ", -" : "", error ? error : "");
	return text;
}

/* The number at this place among those that follow the first word. */
static inline double step_number(const struct step *step, unsigned place)
{
	if (place >= step->nr_numbers)
		script_fail(step, "number %u is missing", place + 1);
	return step->number[place];
}

/* Returns the text after the first word. */
static inline const char *step_rest(const struct step *step)
{
	const char *blank = strchr(step->text, ' ');
	return blank ? blank + 1 : "";
}

#define N(place) step_number(step, place)
#define U(place) ((uint32_t)step_number(step, place))

/* Returns true if the word is among those of the step. */
static inline bool step_has(const struct step *step, const char *word)
{
	for (unsigned i = 0; i < step->count; i++)
		if (strcmp(step->word[i], word) == 0)
			return true;
	return false;
}

/* ---- steps ---- */

static inline void script_split(struct step *step)
{
	char *rest = step->copy, *word;
	snprintf(step->copy, sizeof(step->copy), "%s", step->text);
	step->name = "";
	step->count = step->nr_numbers = 0;
	while ((word = strsep(&rest, " \t"))) {
		if (!*word)
			continue;
		if (!*step->name) {
			step->name = word;
			continue;
		}
		assert_true(step->count < SCRIPT_WORDS);
		step->word[step->count++] = word;
	}
}

/* Reads the numbers among the words from `from` to `to`. */
static inline void script_numbers(struct step *step, unsigned from, unsigned to)
{
	const char *end;
	step->nr_numbers = 0;
	for (unsigned i = from; i < to && step->nr_numbers + 2 <= SCRIPT_NUMBERS; i++) {
		double value = script_number(step->word[i], &end);
		if (!end && !script_recall(step->word[i], &value))
			continue;
		step->number[step->nr_numbers++] = value;
		if (end && *end == '-')
			step->number[step->nr_numbers++] = script_number(end + 1, &end);
	}
}

static inline const struct script_quantity *script_quantity_of(const char *name)
{
	for (size_t i = nr_script_quantities; i > 0; i--)
		if (strcmp(script_quantities[i - 1].name, name) == 0)
			return &script_quantities[i - 1];
	return NULL;
}

static inline const struct script_quantity *script_find_quantity(const struct step *step,
								 const char *name)
{
	const struct script_quantity *quantity = script_quantity_of(name);
	if (!quantity)
		script_fail(step, "no word or quantity: %s", name);
	return quantity;
}

static inline bool script_compare(double found, const char *relation, double expected)
{
	const double slack = 1e-9 * fabs(expected);
	bool equal = fabs(found - expected) <= slack || (isnan(found) && isnan(expected));
	switch (relation[0]) {
	case '<':
		return relation[1] ? found <= expected || equal : found < expected && !equal;
	case '>':
		return relation[1] ? found >= expected || equal : found > expected && !equal;
	case '!':
		return !equal;
	default:
		return equal;
	}
}

/* The place of the relation among the words, or `count`. */
static inline unsigned script_relation(const struct step *step)
{
	static const char *const relations[] = {"=", "!=", "<", "<=", ">", ">=", "in"};
	for (unsigned i = 0; i < step->count; i++)
		for (unsigned k = 0; k < sizeof(relations) / sizeof(relations[0]); k++)
			if (strcmp(step->word[i], relations[k]) == 0)
				return i;
	return step->count;
}

/* Returns whether the condition holds that begins at the first word. */
static inline bool script_holds(struct step *step, double *ret_found)
{
	const unsigned at = script_relation(step);
	const struct script_quantity *quantity = script_find_quantity(step, step->name);
	if (at + 1 >= step->count)
		script_fail(step, "no relation to a value");
	const char *expected = step->word[at + 1], *range = strstr(expected, "..");
	script_numbers(step, 0, at);
	*ret_found = quantity->value(step, NULL);
	if (strcmp(step->word[at], "in") != 0)
		return script_compare(*ret_found, step->word[at],
				      script_value(step, step->name, expected));
	if (!range)
		script_fail(step, "no range: %s", expected);
	char first[64];
	snprintf(first, sizeof(first), "%.*s", (int)(range - expected), expected);
	return *ret_found >= script_value(step, step->name, first) &&
	       *ret_found <= script_value(step, step->name, range + 2);
}

/* Removes the first word. */
static inline void script_shift(struct step *step)
{
	if (step->count == 0)
		script_fail(step, "incomplete");
	step->name = step->word[0];
	memmove(step->word, step->word + 1, --step->count * sizeof(step->word[0]));
}

#ifndef SCRIPT_STEP
#define SCRIPT_STEP() script_fail(step, "this test has no steps")
#endif
#ifndef SCRIPT_SECOND
#define SCRIPT_SECOND() script_fail(step, "this test has no seconds")
#endif

static unsigned script_waited; /* by the last "until" */

static inline void script_until(struct step *step)
{
	double found;
	script_shift(step);
	if (step->count < 2 || strcmp(step->word[step->count - 2], "within") != 0)
		script_fail(step, "\"within\" is missing");
	const char *limit = step->word[step->count - 1];
	const bool seconds = limit[strlen(limit) - 1] == 's';
	const unsigned most = (unsigned)atoi(limit);
	for (script_waited = 0; !script_holds(step, &found); script_waited++) {
		if (script_waited == most)
			script_fail(step, "found %s", script_show(step->name, found));
		if (seconds)
			SCRIPT_SECOND();
		else
			SCRIPT_STEP();
	}
}

static inline void script_set(struct step *step)
{
	script_shift(step);
	const unsigned at = script_relation(step);
	const struct script_quantity *knob = script_find_quantity(step, step->name);
	if (at + 1 >= step->count || !knob->is_knob)
		script_fail(step, "cannot be set");
	const double value = script_value(step, step->name, step->word[at + 1]);
	script_numbers(step, 0, at);
	(void)knob->value(step, &value);
}

static inline void script_keep(struct step *step)
{
	struct script_kept *kept = script_kept;
	double value;
	script_shift(step);
	const char *name = step->name;
	script_shift(step);
	script_shift(step);
	if (script_quantity_of(step->name) || !script_recall(step->name, &value)) {
		script_numbers(step, 0, step->count);
		value = script_find_quantity(step, step->name)->value(step, NULL);
	}
	while (kept < script_kept + nr_script_kept && strcmp(kept->name, name) != 0)
		kept++;
	nr_script_kept += kept == script_kept + nr_script_kept;
	assert_true(nr_script_kept <= SCRIPT_KEPT);
	snprintf(kept->name, sizeof(kept->name), "%s", name);
	kept->value = value;
}

/* Returns false if the first word is no text. */
static inline bool script_check_text(struct step *step)
{
	const char *const relations[] = {" = ", " != ", " ~ ", " !~ "};
	const struct script_text *text = script_texts;
	const char *expected = NULL;
	unsigned relation = 0;
	while (text < script_texts + nr_script_texts && strcmp(text->name, step->name) != 0)
		text++;
	if (text == script_texts + nr_script_texts)
		return false;
	for (unsigned i = 0; i < 4; i++) {
		const char *at = strstr(step->text, relations[i]);
		if (at && (!expected || at < expected)) {
			expected = at;
			relation = i;
		}
	}
	if (!expected)
		script_fail(step, "no relation to a text");
	expected += strlen(relations[relation]);
	script_numbers(step, 0, step->count);
	const char *found = text->value(step);
	found = found ? found : "none";
	const bool same =
		relation < 2 ? strcmp(found, expected) == 0 : strstr(found, expected) != NULL;
	if (same == (relation % 2 == 1))
		script_fail(step, "found %s", found);
	return true;
}

static inline void script_run_step(struct step *step)
{
	double found;
	script_split(step);
	if (!*step->name)
		return;
	if (strcmp(step->name, "until") == 0) {
		script_until(step);
		return;
	}
	if (strcmp(step->name, "set") == 0) {
		script_set(step);
		return;
	}
	if (strcmp(step->name, "keep") == 0) {
		script_keep(step);
		return;
	}
	for (size_t i = nr_script_words; i > 0; i--)
		if (strcmp(script_words[i - 1].name, step->name) == 0) {
			script_numbers(step, 0, step->count);
			script_words[i - 1].run(step);
			return;
		}
	if (!script_check_text(step) && !script_holds(step, &found))
		script_fail(step, "found %s", script_show(step->name, found));
}

static inline void script_run_line(unsigned line, const char *text)
{
	unsigned times = 1;
	int length = 0;
	if (sscanf(text, " each %u:%n", &times, &length) == 1 && length > 0)
		text += length;
	else
		times = 1;
	while (times-- > 0)
		for (const char *at = text; *at;) {
			struct step step = {.line = line};
			size_t size = strcspn(at, ";"), blanks = strspn(at, " \t");
			assert_true(size < sizeof(step.text));
			if (blanks < size)
				snprintf(step.text, sizeof(step.text), "%.*s", (int)(size - blanks),
					 at + blanks);
			script_run_step(&step);
			at += size + (at[size] == ';');
		}
}

static inline void run_script(const char *const *lines)
{
	nr_script_kept = 0;
	for (unsigned i = 0; lines[i]; i++)
		script_run_line(i + 1, lines[i]);
}

QUANTITY(waited, script_waited)

#define SCRIPT(name, ...)                                                                          \
	TEST(name)                                                                                 \
	{                                                                                          \
		run_script((const char *const[]){__VA_ARGS__, NULL});                              \
	}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Every message is one line of at most 120 characters. The formats of journal entries, of errors on
 * the bus and of findings are read from the source, and conversions replaced by values of usual
 * length. Entries of decisions and verdicts are composed of parts and are tested in test_journal.
 */
#include "../support/test.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "../../src/sample/problem.h"
#include "numa-migrd/base.h"

#define LENGTH_MOST 120U
#define TEXT_BYTES 4096U
#define SOURCE_BYTES (1U << 18)

static const char *const calls[] = {"nm_report(", "nm_entry_text(", "nm_findings_add(",
				    "sd_bus_error_setf(", "sd_bus_error_set("};
static const char *const folders[] = {"daemon", "ctl/doctor", "report"};

/* Composed of clauses or names that are short. */
static const char *const composed[] = {
	"numa-migrd would %s%s%s%s%s.",
	"Only first touches sampled: kernel.numa_balancing is %s; %s, or set it to %d",
	"Started: %u node%s, %u CPU%s, source %s, policy %s%s%s",
	("%u thread%s managed, %s of accesses local; %u move%s (%u improved, %u rolled back); cost "
	 "%.2f %% of one CPU"),
};

struct format {
	char text[TEXT_BYTES];
	size_t length;
};

static char source[SOURCE_BYTES];
static unsigned seen;

/* Returns an example of a name or error, a number, or a fraction. */
static const char *example(char conversion)
{
	switch (conversion) {
	case 's':
		return "Cannot allocate memory..";
	case 'f':
	case 'g':
		return "12.34";
	default:
		return "12345";
	}
}

/* Counts characters: continuation bytes of UTF-8 are not counted. */
static size_t length_of(const char *format)
{
	size_t length = 0;
	for (const char *at = format; *at; at++) {
		if (*at == '%' && at[1] == '%') {
			at++;
		} else if (*at == '%') {
			bool ending =
				at > format && isalpha((unsigned char)at[-1]); /* "thread%s" */
			at += 1 + strspn(at + 1, "+-#0123456789.lzh");
			length += ending && *at == 's' ? 1 : strlen(example(*at));
			continue;
		}
		length += ((unsigned char)*at & 0xc0) != 0x80;
	}
	return length;
}

/* "%u threads" is wrong for one thread; fractions and counts that are never 1 do not matter. */
static bool has_fixed_plural(const char *format)
{
	for (const char *at = format; (at = strchr(at, '%')); at++) {
		const char *word = at + 1 + strspn(at + 1, "lzh");
		size_t letters;
		if ((*word != 'u' && *word != 'd') || word[1] != ' ')
			continue;
		letters = strspn(word + 2, "abcdefghijklmnopqrstuvwxyzACPU");
		if (letters > 2 && word[1 + letters] == 's' && word[2 + letters] != '%')
			return true;
	}
	return false;
}

static void check(const char *file, const char *format)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(composed); i++)
		if (strcmp(format, composed[i]) == 0)
			return;
	seen++;
	if (length_of(format) > LENGTH_MOST)
		fail_msg("%s: \"%s\" has %zu characters", file, format, length_of(format));
	if (strstr(format, "\\n"))
		fail_msg("%s: \"%s\" is more than one line", file, format);
	if (has_fixed_plural(format))
		fail_msg("%s: \"%s\" has a plural that is wrong for 1", file, format);
}

static void add(struct format *format, const char *text, size_t length)
{
	assert_true(format->length + length < sizeof(format->text));
	memcpy(format->text + format->length, text, length);
	format->length += length;
	format->text[format->length] = '\0';
}

static void finish(const char *file, struct format *format)
{
	if (format->length > 0)
		check(file, format->text);
	format->length = 0;
}

/* Appends the literal that begins here, without escapes, and returns its end. */
static const char *literal(const char *at, struct format *format)
{
	for (at++; *at != '"'; at++) {
		if (*at == '\\' && at[1] == '"')
			at++;
		add(format, at, 1);
	}
	return at;
}

/* The literals of the arguments; adjacent ones, or those joined by a PRIu64, are one. */
static void read_call(const char *file, const char *at)
{
	struct format format = {.length = 0};
	int depth = 0;
	for (; *at; at++) {
		depth += (*at == '(') - (*at == ')');
		if (depth == 0)
			break;
		if (*at == '"') {
			at = literal(at, &format);
		} else if (strncmp(at, "PRI", 3) == 0) {
			add(&format, at + 3, 1);
			at += strspn(at, "PRIuxd0123456789") - 1;
		} else if (!isspace((unsigned char)*at)) {
			finish(file, &format);
		}
	}
	finish(file, &format);
}

static void read_source(const char *file)
{
	FILE *stream = fopen(file, "re");
	assert_non_null(stream);
	size_t size = fread(source, 1, sizeof(source) - 1, stream);
	(void)fclose(stream);
	assert_true(size < sizeof(source) - 1);
	source[size] = '\0';
	for (size_t i = 0; i < NM_ARRAY_SIZE(calls); i++)
		for (const char *at = source; (at = strstr(at, calls[i])); at++)
			read_call(file, at + strlen(calls[i]) - 1);
}

TEST(test_every_message_is_one_short_line)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(folders); i++) {
		char pattern[256];
		glob_t files;
		(void)snprintf(pattern, sizeof(pattern), NM_SOURCE_DIR "/src/%s/*.c", folders[i]);
		assert_int_equal(glob(pattern, 0, NULL, &files), 0);
		for (size_t k = 0; k < files.gl_pathc; k++)
			read_source(files.gl_pathv[k]);
		globfree(&files);
	}
	assert_true(seen > 100);
}

/* Moves are disabled if forks and exits cannot be sampled: pipeline.c. */
static size_t problem_length(enum nm_problem_step step, enum nm_event_kind kind, int error)
{
	struct nm_problems problems = {.count = 0};
	for (unsigned i = 0; i < 200; i++)
		nm_problems_add(&problems, step, kind, 100, error);
	return strlen(problems.items[0].text) +
	       (kind == NM_EVENT_SIDEBAND ? strlen("Nothing moved: ") : 0);
}

TEST(test_problems_of_sampling_are_short)
{
	static const int errors[] = {-EACCES, -ENODEV, -EMFILE, -ENFILE,       -ENOENT,
				     -ENOSYS, -EBUSY,  -EINVAL, -ENOMEM,       -ENOPKG,
				     -EPERM,  -ENOSPC, -EIO,	-ECONNREFUSED, -ETIMEDOUT};
	for (int step = NM_STEP_OPEN; step <= NM_STEP_EVENT; step++)
		for (int kind = 0; kind < NM_EVENT_KIND_MAX; kind++)
			for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
				/* That all hardware sources are refused concerns only memory
				 * accesses. */
				bool chosen = step == NM_STEP_SOURCE || step == NM_STEP_EVENT;
				if (chosen && kind != NM_EVENT_MEMORY)
					continue;
				size_t length = problem_length((enum nm_problem_step)step,
							       (enum nm_event_kind)kind, errors[i]);
				if (length > LENGTH_MOST)
					fail_msg("step %d, kind %d, %s: %zu characters", step, kind,
						 strerrorname_np(-errors[i]), length);
			}
}

TEST(test_subjects_of_the_catalog_are_short)
{
	char line[512];
	unsigned subjects = 0;
	FILE *catalog = fopen(NM_SOURCE_DIR "/systemd/numa-migrd.catalog", "re");
	assert_non_null(catalog);
	while (fgets(line, sizeof(line), catalog)) {
		subjects += strncmp(line, "Subject: ", 9) == 0;
		if (strlen(line) > LENGTH_MOST)
			fail_msg("\"%s\" is too long", line);
	}
	(void)fclose(catalog);
	assert_true(subjects > 10);
}

TEST(test_the_test_detects_nonuniformity)
{
	assert_int_equal(length_of("98 %% \xe2\x86\x92 %u"), 12);
	assert_int_equal(length_of("%.2f: %s"), 31);
	assert_int_equal(length_of("%u thread%s"), 13);
	assert_true(has_fixed_plural("%u threads managed"));
	assert_true(has_fixed_plural("%lu pages"));
	assert_false(has_fixed_plural("%u thread%s managed"));
	assert_false(has_fixed_plural("CPU %d is busy"));
	assert_false(has_fixed_plural("%.1f CPUs"));
}

RUN_TESTS()

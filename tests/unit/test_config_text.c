/* SPDX-License-Identifier: MIT */
/* Parsing of the file: numbers, syntax, bytes, files. */
#define SET_UP make_folder
#define TEAR_DOWN remove_folder
#include "../support/test.h"

#include <sys/stat.h>

#include "../../src/config/settings.h"
#include "../support/script.h"
#include "config_cases.h"
#include "fixture.h"
#include "numa-migrd/base.h"

/*
 * Used by the leak checker, if linked: libconfig leaks a misplaced string (`profile "paper";`),
 * some bytes for each file with such an error.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so";
}

/* The files are conf, those of conf.d, and parameters, in the current folder. */
static char folder[FIXTURE_PATH];
static struct nm_config_files files;

static int make_folder(void **state)
{
	(void)state;
	fixture_make(folder, sizeof(folder));
	files = (struct nm_config_files){.path = "conf", .folder = "conf.d"};
	return chdir(folder);
}

static int remove_folder(void **state)
{
	(void)state;
	fixture_remove(folder);
	return chdir("/");
}

/* Returns the settings, or "ERROR: message". */
static const char *load(void)
{
	static char text[1024];
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	int r = nm_config_load(&files, geteuid(), &errors, &config);
	nm_autofree char *reading = print_reading(config, &errors);
	assert_true((config != NULL) == (r == 0));
	(void)snprintf(text, sizeof(text), "%s%s%s", r < 0 ? strerrorname_np(-r) : "",
		       r < 0 ? ": " : "", reading);
	return text;
}

/* ---- words ---- */

/* write NAME TEXT, of which ; is no part */
WORD(write)
{
	const char *text = strchr(step_rest(step), ' ');
	fixture_file(".", step->word[0], text ? text + 1 : "");
}

ACTION(mode, assert_int_equal(chmod(step->word[0], (mode_t)strtol(step->word[1], NULL, 8)), 0))
ACTION(link, assert_int_equal(symlink(step->word[1], step->word[0]), 0))
ACTION(fifo, assert_int_equal(mkfifo(step->word[0], 0600), 0))
ACTION(folder, assert_int_equal(mkdir(step->word[0], 0700), 0))
ACTION(remove, assert_int_equal(remove(step->word[0]), 0))
ACTION(parameters, files.parameters = "parameters")
ACTION(may_be_missing, files.may_be_missing = true)
TEXT(load, load())

/* ---- numbers ---- */

#define WHOLE "conf:2: whole numbers are at most 2147483647"
#define LARGE "conf:2: this number is too large"

/* libconfig would wrap the first ones, and read the last ones as infinite. */
READINGS(
	test_numbers_that_libconfig_changes,
	{"pages: {\n max_mb_per_s = 4294967304; };", WHOLE}, /* 2^32 + 8 */
	{"pages: {\n max_mb_per_s = 2147483648; };", WHOLE},
	{"pages: {\n max_mb_per_s = -5000000000; };", WHOLE},
	{"pages: {\n max_mb_per_s = 5000000000L; };", WHOLE},
	{"pages: {\n max_mb_per_s = 0x1FFFFFFFF; };", WHOLE},
	{"pages: {\n max_mb_per_s = 99999999999999999999999999; };", WHOLE},
	{"parameters: { general: {\n interval_s = 1e999; }; };", LARGE},
	{"parameters: { general: {\n interval_s = -.5e999; }; };", LARGE},
	{"parameters: { general: {\n interval_s = 0.5e999; }; };", LARGE},
	{"pages: { max_mb_per_s = 2147483647; };",
	 "conf:1: pages.max_mb_per_s: found 2147483647, allowed: a whole number from 1 to 1000000"})

READINGS(test_spellings_of_numbers,
	 {"pages: { max_mb_per_s = 0xFF; };", "pages.max_mb_per_s = 255"},
	 {"parameters: { general: { interval_s = 3; }; };", "general.interval_s = 3"},
	 {"parameters: { general: { interval_s = .5; }; };", "general.interval_s = 0.5"},
	 {"parameters: { general: { interval_s = 2.5e+1; }; };", "general.interval_s = 25"},
	 {"pages: { max_mb_per_s = 8.0; };",
	  "conf:1: pages.max_mb_per_s: found 8, allowed: a whole number from 1 to 1000000"},
	 {"pages: { max_mb_per_s = -1; };",
	  "conf:1: pages.max_mb_per_s: found -1, allowed: a whole number from 1 to 1000000"},
	 {"parameters: { general: { interval_s = 1.2.3; }; };", "conf:1: syntax error…"},
	 {"pages: { max_mb_per_s = 12a; };", "conf:1: …"})

/* Numbers in strings, names and comments are text. */
READINGS(test_numbers_in_text, {"# 5000000000\n// 5000000000\n/* 5000000000\n6 */\n"
				"targets: { exclude = ( { command = '5000000000 \\' '; } ); };\n",
				"targets.exclude = ({ command = '5000000000 ' '; })"})

/* ---- syntax ---- */

#define TWICE                                                                                      \
	"the second one in this file; a group or setting stands once in a file: keep one, with "   \
	"the contents of both if they are groups"

READINGS(test_notations_of_others,
	 {"\ngeneral.dry_run = true;",
	  "conf:2: found general.dry_run = true;, write: general: { dry_run = true; };"},
	 {"general: {\n dry_run = yes;\n};", "conf:2: found yes, write true or false"},
	 {"general: { dry_run = off; };", "conf:1: found off, write true or false"},
	 {"threads: {\n policy = lbma-paper;\n};",
	  "conf:2: found lbma-paper, write it in quotes: 'lbma-paper'"},
	 {"[general]\ndry_run = true\n", "conf:1: found [general], write: general: { … };"},
	 {"general: {\n dry_run = true;\n\nthreads: { };\n", "conf:1: this '{' is never closed"},
	 {"general: { dry_run = true; };\ntargets: {\n exclude = ( { command = 'x'; };\n};\n",
	  "conf:2: this '{' is never closed"},
	 {"general: { };\ngeneral: { };", "conf:2: general: " TWICE},
	 {"general: { dry_run = true; dry_run = false; };", "conf:1: dry_run: " TWICE},
	 {"threads: { }; journal: { }; threads: { };", "conf:1: threads: " TWICE},
	 {".dry_run = true;",
	  "conf:1: syntax error, in this line or just before it: .dry_run = true;"},
	 {"parameters: { general: { interval_s = nan; }; };", "conf:1: found nan, write a number"},
	 {"parameters: { general: { interval_s = inf; }; };", "conf:1: found inf, write a number"},
	 {"journal: {\n level = \u201cdebug\u201d; };",
	  "conf:2: this line contains a typographic quote: write '"},
	 {"\xef\xbb\xbfgeneral: { };",
	  "conf:1: this file begins with a byte order mark (BOM): save it as UTF-8 without one"})

READINGS(test_syntax_error_alone,
	 {"parameters: { general: { interval_s = 5000; }; };\n  policy 5;\nxyz = 1;\n",
	  "conf:2: syntax error, in this line or just before it: policy 5;"})

READINGS(test_include_refused,
	 {"\n@include '/etc/passwd'\n",
	  "conf:2: @include and other directives are not allowed here"},
	 {"\n\t @include '/nonesuch'\n",
	  "conf:2: @include and other directives are not allowed here"},
	 {"# @include 'x'\n/*\n@include 'y'\n*/\n"
	  "targets: { exclude = ( { unit = 'getty@*'; } ); };",
	  "targets.exclude = ({ unit = 'getty@*'; })"})

#define OPEN_STRING ": this string is not closed on its line"

READINGS(test_open_comment_and_string,
	 {"general: { };\n/* threads: { n = 5; };\n\n", "conf:2: this comment is never closed"},
	 {"/*", "conf:1: this comment is never closed"},
	 {"/*/", "conf:1: this comment is never closed"},
	 {"\nx = 'paper;\ngeneral: { };\n", "conf:2" OPEN_STRING},
	 {"x = 'paper", "conf:1" OPEN_STRING}, {"x = 'paper\\'", "conf:1" OPEN_STRING})

READINGS(test_comment_without_newline, {"general: { }; # the end", ""},
	 {"general: { }; // end", ""})

#define NOT_UTF8 "conf:2: this line is not valid UTF-8 (in a string, other bytes are written \\xNN)"

READINGS(test_bytes, {"# one\n# \xff\n", NOT_UTF8}, {"# one\n# \xc3\n", NOT_UTF8},
	 {"\n\ngeneral: { };\0xyz", "conf:3: this line contains a NUL byte", .length = 19},
	 {"\0", "conf:1: this line contains a NUL byte", .length = 1},
	 {"targets: {\n exclude = ( { command = 'a\\x00b'; } ); };",
	  "conf:2: \\x00 in a string would end it"},
	 {"# größer\r\ntargets: { exclude = ( { command = '\\xff\\\\'; } ); };\r\n",
	  "targets.exclude = ({ command = '\\xff\\x5c'; })"},
	 {"))))", "conf:1: syntax error…"})

TEST(test_deep_nesting)
{
	static char text[4000] = "\nx = ";

	memset(text + 5, '(', sizeof(text) - 6);
	check_reading(&(struct reading){text, "conf:2: brackets are nested too deeply"});
}

/* ---- files ---- */

SCRIPT(test_load, "write conf parameters: { general: { interval_s = 5 } }",
       "load = general.interval_s = 5; write conf parameters: { general: {\n interval_s = 0 } }",
       "load = EINVAL: conf:2: general.interval_s: found 0, allowed: a number from 0.1 to 60")

SCRIPT(test_load_failures, "load = ENOENT: conf: cannot be read: No such file or directory",
       "fifo conf; load = EMEDIUMTYPE: conf: is not a regular file",
       "remove conf; folder conf; load = EMEDIUMTYPE: conf: is not a regular file")

TEST(test_load_unreadable)
{
	bool root = geteuid() == 0; /* may read every file */
	fixture_file(".", "conf", "");
	assert_int_equal(chmod("conf", 0), 0);
	if (root)
		assert_int_equal(chmod(folder, 0755) | seteuid(65534), 0);
	assert_string_equal(load(), "EACCES: conf: cannot be read: Permission denied");
	if (root)
		assert_int_equal(seteuid(0), 0);
}

static const char others_can_write[] =
	"EPERM: conf: must belong to root or to the user of numa-migrd, and be writable by its "
	"owner only (chown root FILE; chmod go-w FILE)";

/* SECURITY: administrator, configuration */
TEST(test_load_writable_by_others)
{
	static const mode_t modes[] = {0666, 0664, 0646, 0620, 0602};
	fixture_file(".", "conf", "");
	for (size_t i = 0; i < NM_ARRAY_SIZE(modes); i++) {
		assert_int_equal(chmod("conf", modes[i]), 0);
		assert_string_equal(load(), others_can_write);
	}
}

/* SECURITY: administrator, configuration */
TEST(test_load_another_users)
{
	if (geteuid() != 0) {
		print_message("needs root to change the owner of a file: skipped\n");
		skip();
	}
	fixture_file(".", "conf", "");
	assert_int_equal(chown("conf", 65534, 65534), 0);
	assert_string_equal(load(), others_can_write);
}

/* Even if it leads to a valid file. The owner of the folder could redirect it. */
/* SECURITY: configuration */
SCRIPT(test_load_link, "write real; link conf real",
       "load = ELOOP: conf: is a symbolic link, which is not accepted: replace it with the file")

/* In all files together. */
TEST(test_load_size)
{
	static char text[(1 << 20) + 2];
	memset(text, '\n', sizeof(text) - 2);
	fixture_file(".", "conf", text);
	assert_string_equal(load(), "");
	text[sizeof(text) - 2] = '\n';
	fixture_file(".", "conf", text);
	assert_string_equal(load(),
			    "EFBIG: conf: cannot be read: File too large (at most 1 MiB in all)");
	text[1 << 19] = '\0';
	fixture_file(".", "conf", text);
	fixture_file(".", "conf.d/10.conf", text);
	assert_non_null(strstr(load(), "EFBIG: conf.d/10.conf: "));
	text[(1 << 19) - 10] = '\0';
	fixture_file(".", "conf.d/10.conf", text);
	assert_string_equal(load(), "");
}

/* ---- several files ---- */

SCRIPT(test_drop_ins, "write conf parameters: { general: { interval_s = 1 } }",
       "write conf.d/20.conf parameters: { general: { interval_s = 20 } }",
       "write conf.d/10.conf general: { dry_run = true } parameters: { general: { interval_s = 10 "
       "} }",
       "write conf.d/30.conf.bak parameters: { general: { interval_s = 30 } }",
       "write conf.d/.40.conf parameters: { general: { interval_s = 40 } }",
       "load ~ general.interval_s = 20; load ~ general.dry_run = true",
       "write conf.d/15.conf \nparameters: { general: { interval_s = 0 } }",
       "load ~ EINVAL: conf.d/15.conf:2: general.interval_s: found 0")

/* SECURITY: administrator, configuration */
SCRIPT(test_drop_ins_of_others, "write conf; write conf.d/10.conf",
       "mode conf.d/10.conf 0664; load ~ EPERM: conf.d/10.conf: must belong to root",
       "mode conf.d/10.conf 0644; load = ",
       "mode conf.d 0777; load ~ EPERM: conf.d: must belong to root")

TEST(test_many_drop_ins)
{
	char name[32];
	fixture_file(".", "conf", "");
	for (int i = 0; i < 65; i++) {
		assert_string_equal(load(), i > 0 ? "general.dry_run = true" : "");
		(void)snprintf(name, sizeof(name), "conf.d/%02d.conf", i);
		fixture_file(".", name, "general: { dry_run = true; };");
	}
	assert_string_equal(load(), "EINVAL: conf.d: contains 65 files, allowed: at most 64");
}

/* Only the file itself, and only if the caller permits it. */
SCRIPT(test_missing_file, "write conf.d/10.conf general: { dry_run = true }; load ~ ENOENT: conf: ",
       "may_be_missing; load = general.dry_run = true; link conf /etc/passwd; load ~ ELOOP: conf: ")

SCRIPT(test_parameters_file, "write conf threads: { policy = \"imar2\" }; parameters",
       "load ~ ENOENT: parameters: ; write parameters n = 2; load ~ n = 2",
       "mode parameters 0666; load ~ EPERM: parameters: ")

static char *read_whole(const char *path)
{
	FILE *file = fopen(path, "r");
	if (!file)
		fail_msg("%s cannot be opened", path);
	char *text = calloc(1, 1 << 16);
	assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
	assert_int_equal(fclose(file), 0);
	return text;
}

/* The shipped file changes nothing, and shows every setting with its default, and no parameter:
 * uncommented, all are accepted and change nothing. */
TEST(test_shipped_file)
{
	nm_autofree char *text = read_whole(NM_SOURCE_DIR "/conf/numa-migrd.conf");
	nm_auto(nm_config_freep) struct nm_config *shipped = accept(text);
	nm_auto(nm_config_freep) struct nm_config *defaults = NULL;
	size_t settings = 0, known = 0;

	for (size_t i = 0; i < nm_setting_count; i++)
		known += !nm_settings[i].parameter;
	assert_int_equal(nm_config_default(&defaults), 0);
	same_settings(shipped, defaults);
	for (char *hash = text; (hash = strchr(hash, '#')) != NULL; hash++) {
		if (hash[1] == ' ')
			continue;
		*hash = ' ';
		settings += memchr(hash, '=', strcspn(hash, "\n")) != NULL;
	}
	assert_int_equal(settings, known);
	nm_auto(nm_config_freep) struct nm_config *parsed = accept(text);
	same_settings(parsed, defaults);
}

/* Any mutation of the file is accepted completely or refused with at least one message. */
/* SECURITY: configuration */
TEST(test_mutations)
{
	static const char letters[] = "{}()[];:=,.\"\\/*#@+-0x9eL \n\x80\xc3";
	nm_autofree char *plain = read_whole(NM_SOURCE_DIR "/conf/numa-migrd.conf");
	size_t length = strlen(plain);
	nm_autofree char *text = malloc(length);
	struct nm_rng rng;

	for (char *hash = plain; (hash = strchr(hash, '#')) != NULL; hash++)
		*hash = hash[1] == ' ' ? '#' : ' ';
	nm_rng_seed(&rng, 1);
	for (int round = 0; round < 2000; round++) {
		nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
		nm_auto(nm_config_freep) struct nm_config *parsed = NULL;
		memcpy(text, plain, length);
		for (uint64_t edits = nm_rng_below(&rng, 4); edits < 4; edits++)
			text[nm_rng_below(&rng, length)] =
				letters[nm_rng_below(&rng, sizeof(letters) - 1)];
		int r = nm_config_parse("conf", text, length - nm_rng_below(&rng, 3), &errors,
					&parsed);
		assert_int_equal(r, errors.count > 0 ? -EINVAL : 0);
		assert_true((parsed != NULL) == (r == 0));
	}
}

TEST(test_free_null)
{
	struct nm_config_errors errors = {0};

	nm_config_free(NULL);
	nm_config_errors_clear(&errors);
	assert_int_equal(errors.count, 0);
}

RUN_TESTS()

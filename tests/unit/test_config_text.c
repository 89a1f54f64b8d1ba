/* SPDX-License-Identifier: MIT */
/* Parsing of the file: numbers, syntax, bytes, files. */
#define SET_UP make_folder
#define TEAR_DOWN remove_folder
#include "../support/test.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/config/settings.h"
#include "config_cases.h"
#include "numa-migrd/base.h"
#include "numa-migrd/config.h"

/*
 * Used by the leak checker, if linked: libconfig leaks a misplaced string (`profile "paper";`),
 * some bytes for each file with such an error.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so";
}

/* ---- numbers ---- */

/* libconfig would wrap the first ones, and read the last ones as infinite. */
TEST_BETWEEN(NULL, NULL, test_numbers_that_libconfig_changes)
{
	static const char whole[] = "conf:2: whole numbers are at most 2147483647";
	static const char large[] = "conf:2: this number is too large";

	refuse("pages: {\n max_mb_per_s = 4294967304; };", whole); /* 2^32 + 8 */
	refuse("pages: {\n max_mb_per_s = 2147483648; };", whole);
	refuse("pages: {\n max_mb_per_s = -5000000000; };", whole);
	refuse("pages: {\n max_mb_per_s = 5000000000L; };", whole);
	refuse("pages: {\n max_mb_per_s = 0x1FFFFFFFF; };", whole);
	refuse("pages: {\n max_mb_per_s = 99999999999999999999999999; };", whole);
	refuse("parameters: { general: {\n interval_s = 1e999; }; };", large);
	refuse("parameters: { general: {\n interval_s = -.5e999; }; };", large);
	refuse_prefix(TEXT("pages: { max_mb_per_s = 2147483647; };"),
		      "conf:1: pages.max_mb_per_s: found 2147483647, allowed: ");
}

TEST_BETWEEN(NULL, NULL, test_spellings_of_numbers)
{
	nm_auto(nm_config_freep) struct nm_config *hex = accept("pages: { max_mb_per_s = 0xFF; };");
	nm_auto(nm_config_freep) struct nm_config *whole =
		accept("parameters: { general: { interval_s = 3; }; };");
	nm_auto(nm_config_freep) struct nm_config *point =
		accept("parameters: { general: { interval_s = .5; }; };");
	nm_auto(nm_config_freep) struct nm_config *power =
		accept("parameters: { general: { interval_s = 2.5e+1; }; };");

	assert_int_equal(hex->pages.max_mb_per_s, 255);
	assert_true(whole->general.interval_s == 3);
	assert_true(point->general.interval_s == 0.5);
	assert_true(power->general.interval_s == 25);
	refuse_prefix(TEXT("pages: { max_mb_per_s = 8.0; };"),
		      "conf:1: pages.max_mb_per_s: found 8, allowed: a whole number");
	refuse_prefix(TEXT("pages: { max_mb_per_s = -1; };"),
		      "conf:1: pages.max_mb_per_s: found -1, allowed: ");
	refuse_prefix(TEXT("parameters: { general: { interval_s = 1.2.3; }; };"),
		      "conf:1: syntax error");
	refuse_prefix(TEXT("pages: { max_mb_per_s = 12a; };"), "conf:1: ");
}

/* Numbers in strings, names and comments are text. */
TEST_BETWEEN(NULL, NULL, test_numbers_in_text)
{
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("# 5000000000\n// 5000000000\n/* 5000000000\n6 */ targets: { exclude = ( "
		       "{ command = \"5000000000 \\\" \"; } ); };\n");

	assert_string_equal(config->targets.exclude.items[0].command, "5000000000 \" ");
}

/* ---- syntax ---- */

/* Notations of other configuration formats. */
TEST_BETWEEN(NULL, NULL, test_notations_of_others)
{
	static const char *const cases[][2] = {
		{"\ngeneral.dry_run = true;",
		 "conf:2: found general.dry_run = true;, write: general: { dry_run = true; };"},
		{"general: {\n dry_run = yes;\n};", "conf:2: found yes, write true or false"},
		{"general: { dry_run = off; };", "conf:1: found off, write true or false"},
		{"threads: {\n policy = lbma-paper;\n};",
		 "conf:2: found lbma-paper, write it in quotes: \"lbma-paper\""},
		{"[general]\ndry_run = true\n", "conf:1: found [general], write: general: { … };"},
		{"general: {\n dry_run = true;\n\nthreads: { };\n",
		 "conf:1: this \"{\" is never closed"},
		{"general: { dry_run = true; };\ntargets: {\n exclude = ( { command = \"x\"; "
		 "};\n};\n",
		 "conf:2: this \"{\" is never closed"},
		{"general: { };\ngeneral: { };", "conf:2: general: the second one in this file; a "
						 "group or setting stands once in a "
						 "file: keep one, with the contents of both if "
						 "they are groups"},
		{"general: { dry_run = true; dry_run = false; };",
		 "conf:1: dry_run: the second one in this file; a group or setting stands once in "
		 "a file: keep one, with the contents of both if they are groups"},
		{"parameters: { general: { interval_s = nan; }; };",
		 "conf:1: found nan, write a number"},
		{"parameters: { general: { interval_s = inf; }; };",
		 "conf:1: found inf, write a number"},
		{"journal: {\n level = \u201cdebug\u201d; };",
		 "conf:2: this line contains a typographic quote: write \""},
		{"\xef\xbb\xbfgeneral: { };", "conf:1: this file begins with a byte order mark "
					      "(BOM): save it as UTF-8 without one"},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++)
		refuse(cases[i][0], cases[i][1]);
}

TEST_BETWEEN(NULL, NULL, test_syntax_error_alone)
{
	refuse("parameters: { general: { interval_s = 5000; }; };\n  policy 5;\nxyz = 1;\n",
	       "conf:2: syntax error, in this line or just before it: policy 5;");
}

TEST_BETWEEN(NULL, NULL, test_include_refused)
{
	static const char message[] = "conf:2: @include and other directives are not allowed here";

	refuse("\n@include \"/etc/passwd\"\n", message);
	refuse("\n\t @include \"/nonesuch\"\n", message);
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("# @include \"x\"\n/*\n@include \"y\"\n*/\n"
		       "targets: { exclude = ( { unit = \"getty@*\"; } ); };");
	assert_string_equal(config->targets.exclude.items[0].unit, "getty@*");
}

TEST_BETWEEN(NULL, NULL, test_open_comment_and_string)
{
	refuse("general: { };\n/* threads: { n = 5; };\n\n",
	       "conf:2: this comment is never closed");
	refuse("/*", "conf:1: this comment is never closed");
	refuse("/*/", "conf:1: this comment is never closed");
	refuse("\nx = \"paper;\ngeneral: { };\n", "conf:2: this string is not closed on its line");
	refuse("x = \"paper", "conf:1: this string is not closed on its line");
	refuse("x = \"paper\\\"", "conf:1: this string is not closed on its line");
}

TEST_BETWEEN(NULL, NULL, test_comment_without_newline)
{
	nm_config_free(accept("general: { }; # the end"));
	nm_config_free(accept("general: { }; // end"));
}

TEST_BETWEEN(NULL, NULL, test_bytes)
{
	static const char *const not_utf8 = "conf:2: this line is not valid UTF-8 "
					    "(in a string, other bytes are written \\xNN)";

	refuse_prefix(TEXT("# one\n# \xff\n"), not_utf8);
	refuse_prefix(TEXT("# one\n# \xc3\n"), not_utf8);
	refuse_prefix(TEXT("\n\ngeneral: { };\0xyz"), "conf:3: this line contains a NUL byte");
	refuse_prefix(TEXT("\0"), "conf:1: this line contains a NUL byte");
	refuse("targets: {\n exclude = ( { command = \"a\\x00b\"; } ); };",
	       "conf:2: \\x00 in a string would end it");
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("# größer\r\ntargets: { exclude = ( { command = \"\\xff\\\\\"; } ); };\r\n");
	assert_string_equal(config->targets.exclude.items[0].command, "\xff\\");
}

TEST_BETWEEN(NULL, NULL, test_deep_nesting)
{
	static char text[20000];

	memset(text, '(', sizeof(text));
	memcpy(text, TEXT("\nx ="));
	refuse_prefix(text, sizeof(text), "conf:2: brackets are nested too deeply");
	refuse_prefix(TEXT("))))"), "conf:1: syntax error");
}

/* ---- files ---- */

static int make_folder(void **state)
{
	static char folder[64];
	(void)snprintf(folder, sizeof(folder), "/tmp/test_config.XXXXXX");
	*state = mkdtemp(folder);
	return *state ? 0 : -1;
}

static void remove_files(const char *folder)
{
	DIR *listing = opendir(folder);
	for (struct dirent *entry; listing && (entry = readdir(listing));)
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(listing), entry->d_name, 0);
	if (listing)
		(void)closedir(listing);
	(void)rmdir(folder);
}

static int remove_folder(void **state)
{
	char drop_ins[128];
	(void)snprintf(drop_ins, sizeof(drop_ins), "%s/conf.d", (const char *)*state);
	remove_files(drop_ins);
	remove_files(*state);
	return 0;
}

static const char *write_conf(void **state, const char *text, size_t length)
{
	static char path[128];
	(void)snprintf(path, sizeof(path), "%s/conf", (const char *)*state);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
	return path;
}

static int load(const char *path, struct nm_config_errors *errors, struct nm_config **ret)
{
	const struct nm_config_files files = {.path = path};
	return nm_config_load(&files, geteuid(), errors, ret);
}

static void load_fails(const char *path, int expected, const char *message)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_config *config = NULL;
	char whole[512];
	assert_int_equal(load(path, &errors, &config), expected);
	assert_null(config);
	assert_int_equal(errors.count, 1);
	(void)snprintf(whole, sizeof(whole), "%s%s", path, message);
	assert_string_equal(errors.text[0], whole);
}

TEST(test_load)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	const char *path =
		write_conf(state, TEXT("parameters: { general: { interval_s = 5; }; };\n"));
	assert_int_equal(load(path, &errors, &config), 0);
	assert_true(config->general.interval_s == 5);
}

TEST(test_load_failures)
{
	load_fails("/nonesuch/conf", -ENOENT, ": cannot be read: No such file or directory");
	load_fails(*state, -EMEDIUMTYPE, ": is not a regular file");
	load_fails(write_conf(state, TEXT("parameters: { general: {\n interval_s = 0; }; };")),
		   -EINVAL, ":2: general.interval_s: found 0, allowed: a number from 0.1 to 60");
}

TEST(test_load_unreadable)
{
	const char *path = write_conf(state, TEXT(""));
	bool root = geteuid() == 0; /* may read every file */
	assert_int_equal(chmod(path, 0), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	load_fails(path, -EACCES, ": cannot be read: Permission denied");
	if (root)
		assert_int_equal(seteuid(0), 0);
}

static const char others_can_write[] =
	": must belong to root or to the user of numa-migrd, and be writable by its owner only "
	"(chown root FILE; chmod go-w FILE)";

/* SECURITY: administrator, configuration */
TEST(test_load_writable_by_others)
{
	static const mode_t modes[] = {0666, 0664, 0646, 0620, 0602};
	const char *path =
		write_conf(state, TEXT("parameters: { general: { interval_s = 5; }; };\n"));
	for (size_t i = 0; i < NM_ARRAY_SIZE(modes); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		load_fails(path, -EPERM, others_can_write);
	}
}

/* SECURITY: administrator, configuration */
TEST(test_load_another_users)
{
	const char *path = write_conf(state, TEXT(""));
	if (geteuid() != 0) {
		print_message("needs root to change the owner of a file: skipped\n");
		skip();
	}
	assert_int_equal(chown(path, 65534, 65534), 0);
	load_fails(path, -EPERM, others_can_write);
}

/* Even if it leads to a valid file. The owner of the folder could redirect it. */
/* SECURITY: configuration */
TEST(test_load_link)
{
	char link[160];
	const char *path = write_conf(state, TEXT(""));
	(void)snprintf(link, sizeof(link), "%s/link", (const char *)*state);
	assert_int_equal(symlink(path, link), 0);
	load_fails(link, -ELOOP,
		   ": is a symbolic link, which is not accepted: replace it with the file");
	assert_int_equal(unlink(link), 0);
}

TEST(test_load_fifo)
{
	char fifo[160];
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", (const char *)*state);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	load_fails(fifo, -EMEDIUMTYPE, ": is not a regular file");
	assert_int_equal(unlink(fifo), 0);
}

TEST(test_load_size)
{
	const size_t limit = (size_t)1 << 20;
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	nm_autofree char *text = malloc(limit + 1);
	memset(text, '\n', limit + 1);
	assert_int_equal(load(write_conf(state, text, limit), &errors, &config), 0);
	load_fails(write_conf(state, text, limit + 1), -EFBIG,
		   ": cannot be read: File too large (at most 1 MiB in all)");
}

/* ---- several files ---- */

/* The file, its drop-ins and parameters in the folder of the test. */
struct files {
	char path[80], folder[80], parameters[80];
	struct nm_config_files files;
	struct nm_config_errors errors;
	struct nm_config *config;
};

static void prepare(struct files *all, void **state)
{
	*all = (struct files){0};
	(void)snprintf(all->path, sizeof(all->path), "%s/conf", (const char *)*state);
	(void)snprintf(all->folder, sizeof(all->folder), "%s/conf.d", (const char *)*state);
	(void)snprintf(all->parameters, sizeof(all->parameters), "%s/parameters",
		       (const char *)*state);
	all->files = (struct nm_config_files){.path = all->path, .folder = all->folder};
	assert_int_equal(mkdir(all->folder, 0755), 0);
}

static void put(const struct files *all, const char *name, const char *text)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/%s", all->folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int load_all(struct files *all)
{
	nm_config_errors_clear(&all->errors);
	nm_config_free(all->config);
	all->config = NULL;
	return nm_config_load(&all->files, geteuid(), &all->errors, &all->config);
}

static void files_clear(struct files *all)
{
	nm_config_errors_clear(&all->errors);
	nm_config_free(all->config);
}

TEST(test_drop_ins)
{
	nm_auto(files_clear) struct files all;
	prepare(&all, state);
	(void)write_conf(state, TEXT("parameters: { general: { interval_s = 1; }; };"));
	put(&all, "20.conf", "parameters: { general: { interval_s = 20; }; };");
	put(&all, "10.conf",
	    "general: { dry_run = true; }; parameters: { general: { interval_s = 10; }; };");
	put(&all, "30.conf.bak", "parameters: { general: { interval_s = 30; }; };");
	put(&all, ".40.conf", "parameters: { general: { interval_s = 40; }; };");
	assert_int_equal(load_all(&all), 0);
	assert_true(all.config->general.interval_s == 20);
	assert_true(all.config->general.dry_run);
	put(&all, "15.conf", "\nparameters: { general: { interval_s = 0; }; };");
	assert_int_equal(load_all(&all), -EINVAL);
	assert_null(all.config);
	assert_non_null(
		strstr(all.errors.text[0], "/conf.d/15.conf:2: general.interval_s: found 0"));
}

/* SECURITY: administrator, configuration */
TEST(test_drop_ins_of_others)
{
	char path[128];
	nm_auto(files_clear) struct files all;
	prepare(&all, state);
	(void)write_conf(state, TEXT(""));
	put(&all, "10.conf", "");
	(void)snprintf(path, sizeof(path), "%s/10.conf", all.folder);
	assert_int_equal(chmod(path, 0664), 0);
	assert_int_equal(load_all(&all), -EPERM);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(load_all(&all), 0);
	assert_int_equal(chmod(all.folder, 0777), 0);
	assert_int_equal(load_all(&all), -EPERM);
	assert_int_equal(all.errors.count, 1);
	assert_null(all.config);
}

TEST(test_many_drop_ins)
{
	nm_auto(files_clear) struct files all;
	char name[32];
	prepare(&all, state);
	(void)write_conf(state, TEXT(""));
	for (int i = 0; i < 64; i++) {
		(void)snprintf(name, sizeof(name), "%02d.conf", i);
		put(&all, name, "general: { dry_run = true; };");
	}
	assert_int_equal(load_all(&all), 0);
	put(&all, "64.conf", "");
	assert_int_equal(load_all(&all), -EINVAL);
	assert_non_null(strstr(all.errors.text[0], "contains 65 files, allowed: at most 64"));
}

TEST(test_size_of_all_files)
{
	const size_t half = (size_t)1 << 19;
	nm_autofree char *text = calloc(1, half + 2);
	nm_auto(files_clear) struct files all;
	prepare(&all, state);
	memset(text, '\n', half);
	(void)write_conf(state, text, half);
	put(&all, "10.conf", text);
	assert_int_equal(load_all(&all), -EFBIG);
	text[half - 10] = '\0';
	put(&all, "10.conf", text);
	assert_int_equal(load_all(&all), 0);
}

/* Only the file itself, and only if the caller permits it. */
TEST(test_missing_file)
{
	nm_auto(files_clear) struct files all;
	prepare(&all, state);
	put(&all, "10.conf", "general: { dry_run = true; };");
	assert_int_equal(load_all(&all), -ENOENT);
	all.files.may_be_missing = true;
	assert_int_equal(load_all(&all), 0);
	assert_true(all.config->general.dry_run);
	assert_int_equal(symlink("/etc/passwd", all.path), 0);
	assert_int_equal(load_all(&all), -ELOOP);
}

TEST(test_parameters_file)
{
	nm_auto(files_clear) struct files all;
	prepare(&all, state);
	(void)write_conf(state, TEXT("threads: { policy = \"imar2\"; };"));
	all.files.parameters = all.parameters;
	assert_int_equal(load_all(&all), -ENOENT);
	FILE *file = fopen(all.parameters, "w");
	assert_non_null(file);
	assert_true(fputs("n = 2;\n", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(load_all(&all), 0);
	assert_int_equal(all.config->rules.n, 2);
	assert_int_equal(chmod(all.parameters, 0666), 0);
	assert_int_equal(load_all(&all), -EPERM);
}

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
TEST_BETWEEN(NULL, NULL, test_shipped_file)
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
TEST_BETWEEN(NULL, NULL, test_mutations)
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
		nm_auto(nm_config_freep) struct nm_config *config = NULL;
		for (size_t i = 0; i < length; i++)
			text[i] = plain[i];
		for (uint64_t edits = nm_rng_below(&rng, 4); edits < 4; edits++)
			text[nm_rng_below(&rng, length)] =
				letters[nm_rng_below(&rng, sizeof(letters) - 1)];
		int r = nm_config_parse("conf", text, length - nm_rng_below(&rng, 3), &errors,
					&config);
		assert_int_equal(r, errors.count > 0 ? -EINVAL : 0);
		assert_true((config != NULL) == (r == 0));
	}
}

TEST_BETWEEN(NULL, NULL, test_free_null)
{
	struct nm_config_errors errors = {0};

	nm_config_free(NULL);
	nm_config_errors_clear(&errors);
	assert_int_equal(errors.count, 0);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Parsing of the file: numbers, syntax, bytes, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/write_defaults.h"
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

static void test_big_integers_do_not_wrap(void **state)
{
	(void)state;
	refuse("threads: { n = 4294967304; };", /* 2^32 + 8 */
	       "conf:1: threads.n: found 4294967304, allowed: a whole number from 1 to 1024");
	refuse("\n\nthreads: {\n n = 99999999999999999999999999; };",
	       "conf:4: threads.n: found 99999999999999999999999999, "
	       "allowed: a whole number from 1 to 1024");
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("general: { seed = 5000000000; };");
	assert_true(config->general.seed == 5000000000);
}

static void test_integer_spellings(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *hex =
		accept("general: { seed = 0x1FFFFFFFFFF; };");
	nm_auto(nm_config_freep) struct nm_config *suffixed = accept("general: { seed = 42L; };");
	nm_auto(nm_config_freep) struct nm_config *signed_one = accept("general: { seed = +42; };");

	(void)state;
	assert_true(hex->general.seed == 0x1FFFFFFFFFF);
	assert_int_equal(suffixed->general.seed, 42);
	assert_int_equal(signed_one->general.seed, 42);
}

static void test_integer_traps(void **state)
{
	static const char *const spellings[] = {"08",  "010", "-1",  "1e3",   "8.0", "0x",
						"1_0", "12a", "0b1", "42LLL", "-0",  "."};

	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(spellings); i++) {
		char text[64], message[128];
		(void)snprintf(text, sizeof(text), "threads: { n = %s; };", spellings[i]);
		(void)snprintf(
			message, sizeof(message),
			"conf:1: threads.n: found %s, allowed: a whole number from 1 to 1024",
			spellings[i]);
		refuse(text, message);
	}
}

static void test_reals(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *whole = accept("general: { interval_s = 3; };");
	nm_auto(nm_config_freep) struct nm_config *point =
		accept("threads: { q1 = .5; q2 = 5.; };");
	nm_auto(nm_config_freep) struct nm_config *power =
		accept("threads: { q1 = 2.5e2; q2 = 1e-3; };");

	(void)state;
	assert_true(whole->general.interval_s == 3.0);
	assert_true(point->threads.q1 == 0.5 && point->threads.q2 == 5);
	assert_true(power->threads.q1 == 250 && power->threads.q2 == 0.001);
}

static void test_real_traps(void **state)
{
	static const char *const spellings[] = {"1e999", "-1e999", "1e-999", "08.5", "0x10",
						"1.2.3", "-1",	   ".",	     "1e",   "3L"};

	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(spellings); i++) {
		char text[64], message[128];
		(void)snprintf(text, sizeof(text), "threads: { q1 = %s; };", spellings[i]);
		(void)snprintf(message, sizeof(message),
			       "conf:1: threads.q1: found %s, allowed: a number from 0 to 1000",
			       spellings[i]);
		refuse(text, message);
	}
}

static void test_endless_number(void **state)
{
	nm_autofree char *text = NULL;

	(void)state;
	assert_true(asprintf(&text, "threads: { n = 1%0100000d; };", 1) > 100000);
	refuse_prefix(text, strlen(text), "conf:1: threads.n: found 1000");
}

/* Numbers in strings, names and comments are ignored, and the others keep their positions. */
static void test_numbers_keep_their_places(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("# 1 2 3\n// 4\n/* 5\n6 */ targets: { exclude = ( { command = \"7 8 \\\" "
		       "9\"; } ); };\n"
		       "general: { seed = 10; interval_s=11 }; threads: { q1 = 12, q2 = 13; };");

	(void)state;
	assert_int_equal(config->general.seed, 10);
	assert_true(config->general.interval_s == 11);
	assert_true(config->threads.q1 == 12 && config->threads.q2 == 13);
	assert_string_equal(config->targets.exclude.items[0].command, "7 8 \" 9");
}

static void test_number_after_name(void **state)
{
	(void)state;
	refuse_prefix(TEXT("threads: { q.1 = 5; };"), "conf:1: syntax error");
	refuse_prefix(TEXT("threads: { n = 1-2; };"), "conf:1: syntax error");
	refuse_prefix(TEXT("threads: { 1n = 2; };"), "conf:1: syntax error");
	refuse_prefix(TEXT("threads: { n = -; };"), "conf:1: ");
}

/* ---- syntax ---- */

static void test_syntax_error_alone(void **state)
{
	(void)state;
	refuse("threads: { n = 5000; };\n  policy = lbma;\nxyz = 1;\n",
	       "conf:2: syntax error, in this line or just before it: policy = lbma;");
	refuse_prefix(TEXT("threads: {\n n = 3;\n"), "conf:");
	refuse_prefix(TEXT("threads: { rollback = yes; };"), "conf:1: syntax error");
	refuse_prefix(TEXT("\xef\xbb\xbfprofile = \"paper\";"), "conf:1: syntax error");
}

static void test_duplicate_alone(void **state)
{
	(void)state;
	refuse("threads: {\n\tn = 3;\n\tn = 4000;\n};\nxyz = 1;",
	       "conf:3: duplicate setting name, in this line or just before it: n = 4000;");
	refuse_prefix(TEXT("threads: { };\nthreads: { };"), "conf:2: duplicate setting name");
}

static void test_include_refused(void **state)
{
	static const char message[] = "conf:2: @include and other directives are not allowed here";

	(void)state;
	refuse("\n@include \"/etc/passwd\"\n", message);
	refuse("\n\t @include \"/nonesuch\"\n", message);
	refuse("\nprofile = @paper;\n", message);
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("# @include \"x\"\n/*\n@include \"y\"\n*/\n"
		       "targets: { exclude = ( { unit = \"getty@*\"; } ); };");
	assert_string_equal(config->targets.exclude.items[0].unit, "getty@*");
}

static void test_open_comment_and_string(void **state)
{
	(void)state;
	refuse("general: { };\n/* threads: { n = 5; };\n\n",
	       "conf:2: this comment is never closed");
	refuse("/*", "conf:1: this comment is never closed");
	refuse("/*/", "conf:1: this comment is never closed");
	refuse("\nprofile = \"paper;\ngeneral: { };\n",
	       "conf:2: this string is not closed on its line");
	refuse("profile = \"paper", "conf:1: this string is not closed on its line");
	refuse("profile = \"paper\\\"", "conf:1: this string is not closed on its line");
}

static void test_comment_without_newline(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *hash = accept("profile = \"paper\"; # the end");
	nm_auto(nm_config_freep) struct nm_config *slashes = accept("profile = \"paper\"; // end");

	(void)state;
	assert_int_equal(hash->profile, NM_PROFILE_PAPER);
	assert_int_equal(slashes->profile, NM_PROFILE_PAPER);
}

static void test_bytes(void **state)
{
	static const char *const not_utf8 = "conf:2: this line is not valid UTF-8 "
					    "(in a string, other bytes are written \\xNN)";

	(void)state;
	refuse_prefix(TEXT("# one\n# \xff\n"), not_utf8);
	refuse_prefix(TEXT("# one\n# \xc3\n"), not_utf8);
	refuse_prefix(TEXT("\n\nprofile = \"paper\";\0xyz"), "conf:3: this line contains a NUL byte");
	refuse_prefix(TEXT("\0"), "conf:1: this line contains a NUL byte");
	refuse("targets: {\n exclude = ( { command = \"a\\x00b\"; } ); };",
	       "conf:2: \\x00 in a string would end it");
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("# größer\r\ntargets: { exclude = ( { command = \"\\xff\\\\\"; } ); };\r\n");
	assert_string_equal(config->targets.exclude.items[0].command, "\xff\\");
}

static void test_deep_nesting(void **state)
{
	static char text[20000];

	(void)state;
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

static int remove_folder(void **state)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/conf", (const char *)*state);
	(void)unlink(path);
	return rmdir(*state);
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

static void load_fails(const char *path, int expected, const char *message)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_config *config = NULL;
	char whole[512];
	assert_int_equal(nm_config_load(path, &errors, &config), expected);
	assert_null(config);
	assert_int_equal(errors.count, 1);
	(void)snprintf(whole, sizeof(whole), "%s%s", path, message);
	assert_string_equal(errors.text[0], whole);
}

static void test_load(void **state)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	const char *path = write_conf(state, TEXT("threads: { n = 5; };\n"));
	assert_int_equal(nm_config_load(path, &errors, &config), 0);
	assert_int_equal(config->threads.n, 5);
}

static void test_load_failures(void **state)
{
	load_fails("/nonesuch/conf", -ENOENT, ": cannot be read: No such file or directory");
	load_fails(*state, -EMEDIUMTYPE, ": is not a regular file");
	load_fails(write_conf(state, TEXT("threads: {\n n = 0; };")), -EINVAL,
		   ":2: threads.n: found 0, allowed: a whole number from 1 to 1024");
}

static void test_load_unreadable(void **state)
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
static void test_load_writable_by_others(void **state)
{
	static const mode_t modes[] = {0666, 0664, 0646, 0620, 0602};
	const char *path = write_conf(state, TEXT("threads: { n = 5; };\n"));
	for (size_t i = 0; i < NM_ARRAY_SIZE(modes); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		load_fails(path, -EPERM, others_can_write);
	}
}

/* SECURITY: administrator, configuration */
static void test_load_another_users(void **state)
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
static void test_load_link(void **state)
{
	char link[160];
	const char *path = write_conf(state, TEXT(""));
	(void)snprintf(link, sizeof(link), "%s/link", (const char *)*state);
	assert_int_equal(symlink(path, link), 0);
	load_fails(link, -ELOOP,
		   ": is a symbolic link, which is not accepted: replace it with the file");
	assert_int_equal(unlink(link), 0);
}

static void test_load_fifo(void **state)
{
	char fifo[160];
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", (const char *)*state);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	load_fails(fifo, -EMEDIUMTYPE, ": is not a regular file");
	assert_int_equal(unlink(fifo), 0);
}

static void test_load_size(void **state)
{
	const size_t limit = (size_t)1 << 20;
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	nm_autofree char *text = malloc(limit + 1);
	memset(text, '\n', limit + 1);
	assert_int_equal(nm_config_load(write_conf(state, text, limit), &errors, &config), 0);
	load_fails(write_conf(state, text, limit + 1), -EFBIG,
		   ": cannot be read: File too large (at most 1 MiB)");
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

static char *written_defaults(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	write_defaults(out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void test_shipped_file(void **state)
{
	nm_autofree char *shipped = read_whole(NM_SOURCE_DIR "/conf/numa-migrd.conf");
	nm_autofree char *written = written_defaults();
	nm_auto(nm_config_freep) struct nm_config *parsed = accept(shipped);
	nm_auto(nm_config_freep) struct nm_config *defaults = NULL;

	(void)state;
	assert_string_equal(shipped, written);
	assert_int_equal(nm_config_default(&defaults), 0);
	same_settings(parsed, defaults);
}

/* Each commented setting has its default value: uncommented, all are accepted and change
 * nothing. */
static void test_shipped_file_uncommented(void **state)
{
	nm_autofree char *text = written_defaults();
	nm_auto(nm_config_freep) struct nm_config *defaults = NULL;
	size_t settings = 0;

	(void)state;
	for (char *hash = text; (hash = strchr(hash, '#')) != NULL; hash++) {
		if (hash[1] != ' ') {
			*hash = ' ';
			settings++;
		}
	}
	assert_int_equal(settings, nm_setting_count);
	nm_auto(nm_config_freep) struct nm_config *parsed = accept(text);
	assert_int_equal(nm_config_default(&defaults), 0);
	same_settings(parsed, defaults);
}

/* Any mutation of the file is accepted completely or refused with at least one message. */
/* SECURITY: configuration */
static void test_mutations(void **state)
{
	static const char letters[] = "{}()[];:=,.\"\\/*#@+-0x9eL \n\x80\xc3";
	nm_autofree char *plain = written_defaults();
	size_t length = strlen(plain);
	nm_autofree char *text = malloc(length);
	struct nm_rng rng;

	(void)state;
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

static void test_free_null(void **state)
{
	struct nm_config_errors errors = {0};

	(void)state;
	nm_config_free(NULL);
	nm_config_errors_clear(&errors);
	assert_int_equal(errors.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_big_integers_do_not_wrap),
		cmocka_unit_test(test_integer_spellings),
		cmocka_unit_test(test_integer_traps),
		cmocka_unit_test(test_reals),
		cmocka_unit_test(test_real_traps),
		cmocka_unit_test(test_endless_number),
		cmocka_unit_test(test_numbers_keep_their_places),
		cmocka_unit_test(test_number_after_name),
		cmocka_unit_test(test_syntax_error_alone),
		cmocka_unit_test(test_duplicate_alone),
		cmocka_unit_test(test_include_refused),
		cmocka_unit_test(test_open_comment_and_string),
		cmocka_unit_test(test_comment_without_newline),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test_setup_teardown(test_load, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_load_failures, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_load_unreadable, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_load_writable_by_others, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_load_another_users, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_load_link, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_load_fifo, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_load_size, make_folder, remove_folder),
		cmocka_unit_test(test_shipped_file),
		cmocka_unit_test(test_shipped_file_uncommented),
		cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_free_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

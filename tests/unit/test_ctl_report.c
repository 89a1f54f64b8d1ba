/* SPDX-License-Identifier: MIT */
/* numa-migrctl report: where its page is written, and its messages if it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "../support/made_recording.h"
#include "bus_fixture.h"

#include "../support/run_ctl.h"

static char folder[] = "/tmp/numa-migrd-report-XXXXXX";
static char words[512];

static const char *with(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *with(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	return words;
}

static int begin(void **state)
{
	(void)state;
	char path[128];
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/run", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int r = made_recording(fd, &made_usual);
	close(fd);
	return r;
}

static int finish(void **state)
{
	(void)state;
	return system(with("rm -r %s", folder)); /* NOLINT(cert-env33-c): a name of this test */
}

static void assert_files(const char *listed)
{
	char text[256] = "";
	FILE *pipe = popen(with("ls %s | tr '\\n' ' '", folder), "re"); /* NOLINT(cert-env33-c) */
	assert_non_null(pipe);
	assert_non_null(fgets(text, sizeof(text), pipe));
	pclose(pipe);
	assert_string_equal(text, listed);
}

static void test_page_is_its_owners(void **state)
{
	(void)state;
	struct stat about;
	assert_ctl(with("report %s/run -o %s/page.html", folder, folder), 0, "");
	assert_int_equal(stat(with("%s/page.html", folder), &about), 0);
	assert_int_equal(about.st_mode & 07777, 0600);
	assert_true(about.st_size > 10000);
	/* A second run replaces the file and leaves no other. */
	assert_ctl(with("report -o %s/page.html %s/run", folder, folder), 0, "");
	assert_files("page.html run ");
	unlink(with("%s/page.html", folder));
}

static void test_standard_output(void **state)
{
	(void)state;
	assert_ctl(with("report %s/run | head -c 300", folder), 0, "<!DOCTYPE html>");
	assert_ctl(with("report %s/run --output - | grep -a '<h1>'", folder), 0, "<h1>run</h1>");
}

/* An existing file stays, and no temporary file is left. */
static void test_failures(void **state)
{
	(void)state;
	assert_ctl(with("report %s/missing -o %s/page.html", folder, folder), 1,
		   "missing: No such file");
	assert_ctl(with("report /dev/null -o %s/page.html", folder), 1, "/dev/null: ");
	assert_ctl(with("report %s/run -o %s/no/page.html", folder, folder), 1, "No such file");
	assert_ctl(with("report %s/run -o %s", folder, folder), 1, "not a regular file");
	assert_ctl(with("report %s/run -o /dev/full", folder), 1, "not a regular file");
	assert_ctl(with("report %s/run >/dev/full", folder), 1, "");
	assert_ctl(with("report %s/run -o %s/run", folder, folder), 1,
		   "is a recording; not overwritten");
	assert_int_equal(symlink("/etc/passwd", with("%s/page.html", folder)), 0);
	assert_ctl(with("report %s/run -o %s/page.html", folder, folder), 1, "not a regular file");
	unlink(with("%s/page.html", folder));
	assert_files("run ");
}

static void test_wrong_usage(void **state)
{
	(void)state;
	assert_ctl("report", 64, "report needs a recording");
	assert_ctl("report one two", 64, "one argument too many");
	assert_ctl("dump one -o two", 64, "-o goes with report, not with: dump");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page_is_its_owners),
		cmocka_unit_test(test_standard_output),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_wrong_usage),
	};
	return cmocka_run_group_tests(tests, begin, finish);
}

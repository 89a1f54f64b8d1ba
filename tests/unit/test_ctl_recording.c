/* SPDX-License-Identifier: MIT */
/* numa-migrctl record, replay and dump; recordings are those of simulations,
 * and of a service that is made up. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sysexits.h>

#include <cmocka.h>

#include "bus_fixture.h"

#include "../support/fake_service.h"
#include "../support/run_ctl.h"
#include "fixture.h"
#include "numa-migrd/recording.h"

#define NOT_ALLOWED 77
#define UNAVAILABLE 69

static char root[FIXTURE_PATH], file[FIXTURE_PATH + 16];

/* Moves happen within seconds, as all memory is where the first thread began. */
static const char workload[] =
	"limit_s = 20;\n"
	"users = ({ programs = ({ name = \"mysqld\"; like = \"stream\"; threads = 8; touch = "
	"\"master\"; }); repeat = true; });\n";

static int with_service(void **state)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	(void)setenv("TZ", "UTC", 1);
	fixture_make(root, sizeof(root));
	fixture_file(root, "workload", workload);
	(void)snprintf(file, sizeof(file), "%s/recording", root);
	return setup(state, open_policy, fake_service);
}

static int tear_down(void **state)
{
	fixture_remove(root);
	return teardown(state);
}

static void simulate(const char *policy)
{
	char arguments[512], text[8192];
	(void)snprintf(
		arguments, sizeof(arguments),
		"simulate --machine=ring-4x10 --workload=%s/workload --policy=%s --record=%s", root,
		policy, file);
	int status = ctl(arguments, text, sizeof(text));
	if (status != 0)
		fail_msg("%s: %d: %s", arguments, status, text);
}

static void assert_on_file(const char *before, const char *behind, int status, const char *says)
{
	char arguments[512];
	(void)snprintf(arguments, sizeof(arguments), "%s %s %s", before, file, behind);
	assert_ctl(arguments, status, says);
}

static void test_words(void **state)
{
	(void)state;
	assert_ctl("record", EX_USAGE, "record needs the name of a new file");
	assert_ctl("replay", EX_USAGE, "replay needs a recording");
	assert_ctl("dump", EX_USAGE, "dump needs a recording");
	assert_ctl("dump a b", EX_USAGE, "one argument too many: b");
	assert_ctl("explain 1 a", EX_USAGE, "one argument too many: a");
	assert_ctl("dump --seconds=1 a", EX_USAGE, "go with record, not with: dump");
	assert_ctl("record --seconds=0 a", EX_USAGE,
		   "--seconds is a whole number from 1 to 1000000, not: 0");
	assert_ctl("status --record=a", EX_USAGE, "these options go with simulate, not with");
	assert_ctl("replay --json a", EX_USAGE, "--json does not go with: replay");
	assert_ctl("dump --json a", EX_USAGE, "--json does not go with: dump");
}

/* ---- record ---- */

static void test_record(void **state)
{
	struct stat about;
	need_bus(state);
	assert_on_file("record --seconds 1", "", 0, " bytes");
	assert_int_equal(stat(file, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0600);
	assert_on_file("dump", "", 0, "limit=1073741824 seconds=61");
	assert_on_file("record --seconds 1", "", 1, "exists; recordings are not overwritten");
}

static void test_options_of_record(void **state)
{
	need_bus(state);
	assert_on_file("record --seconds 1 --limit-mb=3", "", 0, "");
	assert_on_file("dump", "", 0, "limit=3145728 seconds=61");
}

/* A failed recording leaves no file. */
static void test_record_is_refused(void **state)
{
	struct bus *bus = *state;
	need_bus(state);
	assert_on_file("record --seconds=1 --limit-mb=13", "", NOT_ALLOWED, "");
	assert_int_equal(access(file, F_OK), -1);
	end(&bus->server);
	assert_on_file("record --seconds=1", "", UNAVAILABLE, "numa-migrd is not running");
	assert_int_equal(access(file, F_OK), -1);
	assert_ctl("record --seconds=1 /nonexistent/a", 1, "/nonexistent/a: No such file");
}

/* ---- files ---- */

static void test_replay(void **state)
{
	(void)state;
	simulate("lbma");
	assert_on_file("replay", "", 0, "the same decisions, bit for bit");
}

/* Policy "auto" also reads the clock between intervals. */
static void test_replay_of_auto(void **state)
{
	(void)state;
	simulate("auto");
	assert_on_file("replay", "", 0, "the same decisions, bit for bit");
}

#define LOST "2>&1 >/dev/full; exit"

/* A full disk is reported as a failure with any output. */
static void test_output_that_is_lost(void **state)
{
	char words[512];
	(void)state;
	simulate("lbma");
	assert_on_file("replay", LOST, 1, "standard output: No space left");
	assert_on_file("dump", LOST, 1, "standard output: No space left");
	(void)snprintf(words, sizeof(words),
		       "simulate --machine=ring-4x10 --workload=%s/workload --policy=none " LOST,
		       root);
	assert_ctl(words, 1, "standard output: No space left");
	assert_ctl("--help " LOST, 1, "standard output: No space left");
}

static void test_pipe(void **state)
{
	int ends[2], before = dup(STDIN_FILENO);
	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	assert_ctl("dump /dev/stdin", 1,
		   "/dev/stdin: cannot be read: a file is needed, not a pipe");
	assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
	close(before);
}

static void test_dump(void **state)
{
	(void)state;
	simulate("imar2");
	assert_on_file("dump", "| head -n 1", 0, "start version=");
	assert_on_file("dump", "| grep '^decision ' | head -n 1", 0, "policy=imar2 ");
	assert_on_file("dump", "| grep '^verdict ' | head -n 1", 0, "policy=imar2 ");
}

static void test_homes(void **state)
{
	(void)state;
	simulate("auto");
	assert_on_file("dump", "| grep '^decision ' | head -n 1", 0, " kind=home policy=auto ");
	assert_on_file("dump", "| grep '^verdict ' | head -n 1", 0, " of=home ");
	assert_on_file("report", "| grep -o 'inconclusive</td><td>Placed mysqld'", 0, "Placed");
}

/* The readable part of a truncated file is shown with a remark. */
static void test_damage(void **state)
{
	struct stat about;
	(void)state;
	simulate("lbma");
	assert_int_equal(stat(file, &about), 0);
	assert_int_equal(truncate(file, about.st_size - 7), 0);
	assert_on_file("report", "2>&1 >/dev/null; exit", 0, "are incomplete, and were dropped");
	assert_on_file("replay", "", 0, "dropped");
	char byte;
	int fd = open(file, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, about.st_size / 2), 1);
	byte ^= 0x55;
	assert_int_equal(pwrite(fd, &byte, 1, about.st_size / 2), 1);
	assert_on_file("replay", "", 1, file);
	assert_int_equal(pwrite(fd, "\1", 1, 8), 1);
	assert_on_file("dump", "", 1, "a recording of version 1, by an older numa-migrd");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_on_file("dump", "", 1, "not a recording");
	close(fd);
	assert_ctl("dump /nonexistent", 1, "/nonexistent: No such file");
	assert_ctl("replay /dev/null", 1, "/dev/null");
}

/* Truncates the file to the part before the first call of the daemon. */
static void keep_the_beginning(void)
{
	char error[256];
	struct nm_recorded record;
	struct nm_recorder_writer *writer;
	nm_auto(nm_recording_freep) struct nm_recording *recording = NULL;
	assert_int_equal(nm_recording_open(open(file, O_RDONLY), error, sizeof(error), &recording),
			 0);
	assert_int_equal(unlink(file), 0);
	int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(nm_recording_create(fd, 0, &writer), 0);
	while (nm_recording_next(recording, &record) == 1 && record.kind != NM_RECORDED_CALL)
		assert_int_equal(nm_recording_add(writer, &record), 0);
	nm_recording_close(writer);
}

/* Replay of an empty beginning does not claim identical decisions. */
static void test_replay_of_a_beginning(void **state)
{
	char text[1 << 12], words[512];
	(void)state;
	simulate("lbma");
	keep_the_beginning();
	(void)snprintf(words, sizeof(words), "replay %s", file);
	if (ctl(words, text, sizeof(text)) != 0 || !strstr(text, "nothing was decided in it"))
		fail_msg("%s", text);
	assert_null(strstr(text, "the same decisions"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_SERVICE(name) cmocka_unit_test_setup_teardown(name, with_service, tear_down)
		WITH_SERVICE(test_words),
		WITH_SERVICE(test_record),
		WITH_SERVICE(test_options_of_record),
		WITH_SERVICE(test_record_is_refused),
		WITH_SERVICE(test_replay),
		WITH_SERVICE(test_replay_of_auto),
		WITH_SERVICE(test_output_that_is_lost),
		WITH_SERVICE(test_pipe),
		WITH_SERVICE(test_dump),
		WITH_SERVICE(test_homes),
		WITH_SERVICE(test_damage),
		WITH_SERVICE(test_replay_of_a_beginning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The metrics file of a running daemon; promtool must accept it. */
#define SET_UP world_open
#define TEAR_DOWN world_close
#include "../support/test.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon_fixture.h"
#include "numa-migrd/file.h"

static struct nm_config *config(void)
{
	return world.daemon.config;
}

static const char *use_file(const char *name)
{
	char *path = config()->metrics.file;
	(void)snprintf(path, sizeof(config()->metrics.file), "%s/%s", world.root, name);
	return path;
}

static void begin(void)
{
	config()->threads.policy = NM_POLICY_IMAR2;
	add_worker(1000, 0, 2);
	add_worker(1000, 1, 2);
	add_worker(1100, 2, 3);
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static char *written(const char *path)
{
	char *text = calloc(1, 1 << 16);
	assert_non_null(text);
	int r = nm_read_text(AT_FDCWD, path, text, 1 << 16);
	if (r < 0)
		fail_msg("%s: %s", path, strerror(-r));
	return text;
}

/* Returns the value with this name and these labels; NaN if absent. */
static double value_of(const char *text, const char *series)
{
	char start[160];
	(void)snprintf(start, sizeof(start), "\n%s ", series);
	const char *at = strstr(text, start);
	return at ? strtod(at + strlen(start), NULL) : (double)NAN;
}

/* Policy "auto" extends intervals while no process waits for a home. */
TEST(metrics_are_written_during_an_interval)
{
	begin();
	config()->threads.policy = NM_POLICY_AUTO;
	live(40);
	const char *path = use_file("x.prom");
	uint64_t intervals = world.daemon.tally.intervals;
	world.daemon.tally.homes = (struct nm_home_tally){7, 1, 2, 40, 163840};
	assert_true(nm_loop_interval_continues(&world.daemon));
	nm_loop_on_timer(&world.daemon);
	assert_int_equal(world.daemon.tally.intervals, intervals);
	nm_autofree char *text = written(path);
	assert_true(value_of(text, "numa_migrd_intervals_total") == (double)intervals);
	assert_true(value_of(text, "numa_migrd_homes_total{event=\"granted\"}") == 7);
	assert_true(value_of(text, "numa_migrd_homes_total{event=\"expired\"}") == 1);
	assert_true(value_of(text, "numa_migrd_homes_total{event=\"yielded\"}") == 2);
	assert_true(value_of(text, "numa_migrd_home_pages_total") == 40);
	assert_true(value_of(text, "numa_migrd_home_moved_bytes_total") == 163840);
	assert_true(value_of(text, "numa_migrd_placed_processes") >= 0);
}

TEST(exported_values_match_the_daemon)
{
	struct nm_tally *tally = &world.daemon.tally;
	begin();
	const char *path = use_file("x.prom");
	live(40);
	nm_exporter_tick(&world.daemon);
	nm_autofree char *text = written(path);
	assert_true(value_of(text, "numa_migrd_intervals_total") == 40);
	assert_true(value_of(text, "numa_migrd_threads") == 3);
	assert_true(value_of(text, "numa_migrd_processes{state=\"managed\"}") == 2);
	assert_true(value_of(text, "numa_migrd_moves_total{result=\"applied\"}") ==
		    (double)tally->applied);
	assert_true(tally->applied > 0 && tally->verdicts[NM_VERDICT_IMPROVED] > 0);
	assert_true(
		value_of(text, "numa_migrd_verdicts_total{of=\"threads\",verdict=\"improved\"}") ==
		(double)tally->verdicts[NM_VERDICT_IMPROVED]);
	assert_true(value_of(text, "numa_migrd_local_access_ratio") == 1);
	assert_true(value_of(text, "numa_migrd_node_threads{node=\"2\"}") == 2);
	assert_true(value_of(text, "numa_migrd_node_threads{node=\"0\"}") == 0);
	assert_true(value_of(text, "numa_migrd_node_access_ratio{node=\"3\"}") > 0);
	assert_true(value_of(text, "numa_migrd_node_cpu_busy_ratio{node=\"2\"}") == 1);
	assert_true(value_of(text, "numa_migrd_access_latency_cycles") > 0);
	assert_true(isnan(value_of(text, "numa_migrd_waiting_threads")));
	assert_int_equal(strcmp(text + strlen(text) - strlen("# EOF\n"), "# EOF\n"), 0);
	nm_exporter_close(&world.daemon);
}

/* node_exporter runs as another user and must always find a complete file. */
TEST(the_file_is_world_readable)
{
	struct stat st;
	begin();
	const char *path = use_file("x.prom");
	mode_t before = umask(0077);
	nm_exporter_tick(&world.daemon);
	umask(before);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	nm_exporter_close(&world.daemon);
	assert_int_equal(stat(path, &st), -1);
}

static void tick_when_due(unsigned times)
{
	while (times--) {
		world.daemon.exporter.written_ns = 0;
		nm_exporter_tick(&world.daemon);
	}
}

/* An error is logged once, and again when it is resolved. */
TEST(errors_are_logged_once)
{
	char directory[FIXTURE_PATH + 16];
	begin();
	(void)use_file("none/x.prom");
	tick_when_due(5);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 1);
	(void)snprintf(directory, sizeof(directory), "%s/none", world.root);
	assert_int_equal(mkdir(directory, 0755), 0);
	tick_when_due(5);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 2);
	nm_exporter_close(&world.daemon);
}

TEST(the_configuration_file_can_be_replaced)
{
	struct stat st;
	char old[NM_CONFIG_PATH_BYTES];
	begin();
	(void)snprintf(old, sizeof(old), "%s", use_file("a.prom"));
	nm_exporter_tick(&world.daemon);
	assert_int_equal(stat(old, &st), 0);
	const char *path = use_file("b.prom");
	nm_exporter_tick(&world.daemon);
	assert_int_equal(stat(old, &st), -1);
	assert_int_equal(stat(path, &st), 0);
	config()->metrics.file[0] = '\0';
	nm_exporter_tick(&world.daemon);
	(void)use_file("b.prom");
	assert_int_equal(stat(config()->metrics.file, &st), -1);
	nm_exporter_close(&world.daemon);
}

/* As soon as it is enabled, and then once per period. */
TEST(the_file_is_written_once_per_period)
{
	struct stat st;
	begin();
	const char *path = use_file("x.prom");
	nm_exporter_tick(&world.daemon);
	assert_int_equal(unlink(path), 0);
	nm_exporter_tick(&world.daemon);
	assert_int_equal(stat(path, &st), -1);
	world.daemon.exporter.written_ns -= 16 * NM_NSEC_PER_SEC;
	nm_exporter_tick(&world.daemon);
	assert_int_equal(stat(path, &st), 0);
	nm_exporter_close(&world.daemon);
}

TEST(promtool_accepts_the_file)
{
	char command[512];
	if (system("command -v promtool >/dev/null") != 0) {
		print_message("promtool (Debian's package prometheus) is not installed\n");
		skip();
	}
	begin();
	config()->pages.policy = NM_PAGES_EXCLUSIVITY;
	nm_pipeline_configure_pages(&world.daemon, false);
	const char *path = use_file("x.prom");
	live(20);
	nm_exporter_tick(&world.daemon);
	nm_autofree char *text = written(path);
	assert_non_null(strstr(text, "numa_migrd_page_moved_bytes_total"));
	(void)snprintf(command, sizeof(command), "promtool check metrics <'%s' >&2", path);
	int status = system(command);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	nm_exporter_close(&world.daemon);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* The daemon from start to end: its actions, the reasons for its end, and the state afterwards. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sys/eventfd.h>
#include <sysexits.h>

#include "whole_daemon_fixture.h"

#define LONG 60 /* seconds until an expected event is given up */

static struct world *world;

/* Worker 100 runs on node 0 with its memory on node 1; the memory of 101 is local. */
static int set_up(void **state)
{
	(void)state;
	world = world_new();
	world_worker(world, 100, 1);
	world_worker(world, 101, 0);
	fake_sleep(world->fake, 60000);
	return 0;
}

static int tear_down(void **state)
{
	unsigned open_fds = fake_open_fds(world->fake);
	unsigned open_events = world->perf.open_count, maps = world->perf.map_count;
	(void)state;
	world_free(world);
	assert_int_equal(open_fds, 0);
	assert_int_equal(open_events, 0);
	assert_int_equal(maps, 0);
	return 0;
}

static void assert_no_trace(void)
{
	const struct fake_thread *thread = fake_trace(world->fake);
	if (thread)
		fail_msg("thread %u has %#" PRIx64, thread->tid, thread->mask);
}

static bool there_is(const char *name)
{
	char path[FIXTURE_PATH + 64];
	snprintf(path, sizeof(path), "%s/%s", world->root, name);
	return access(path, F_OK) == 0;
}

static void stop_when_moved(struct world *w)
{
	w->seen_moved = w->seen_moved || world_moved(w, 100);
	if (w->seen_moved || w->seconds > LONG)
		raise(SIGTERM);
}

TEST(the_daemon_moves_a_thread_and_restores_it)
{
	fake_get(world->fake, 100)->rss_kb = 4096; /* it creates no task for long */
	world->each_second = stop_when_moved;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_true(world->seen_moved);
	assert_no_trace();
	assert_false(there_is("moves"));
	assert_false(there_is("lock"));
	world_assert_logged(world, "Started: 2 nodes, 4 CPUs, source clock+faults");
	world_assert_logged(world, "\nMoved prog100[100/100] from CPU 0 (node 0) to node 1");
	world_assert_logged(world, "Stopped: all affinities restored");
}

/* It runs nevertheless. */
TEST(a_kernel_that_is_not_tested_is_reported)
{
	world->release = "5.15.0-91-generic\n";
	world->each_second = stop_when_moved;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_true(world->seen_moved);
	world_assert_logged(world, "Linux 5.15.0-91-generic is older than 6.1");
}

TEST(a_dry_run_changes_nothing)
{
	world->options.dry_run = true;
	world->each_second = stop_when_moved;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_true(world->seconds > LONG);
	assert_int_equal(world->fake->calls[FAKE_SET], 0);
	world_assert_logged(world, "dry run: nothing is changed");
	world_assert_logged(world, "\nWould move prog100[100/100]");
}

static void interrupt_at_once(struct world *w)
{
	(void)w;
	raise(SIGINT);
}

TEST(interrupting_ends_it_too)
{
	world->each_second = interrupt_at_once;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	world_assert_logged(world, "Stopped: ");
}

/* Any program can choose a name, and only root runs numad. */
TEST(other_thread_movers_are_reported)
{
	snprintf(fake_process(world->fake, 200, 1)->comm, 16, "numad");
	fake_get(world->fake, 200)->uid = 1000;
	snprintf(fake_process(world->fake, 201, 1)->comm, 16, "numad");
	fake_get(world->fake, 201)->uid = 0;
	snprintf(fake_process(world->fake, 202, 1)->comm, 16, "numad");
	fake_get(world->fake, 202)->uid = 0;
	world->each_second = interrupt_at_once;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	world_assert_logged(world, "numad (PID 201) is running: moves the same threads");
	world_assert_not_logged(world, "numad (PID 200)");
	world_assert_not_logged(world, "numad (PID 202)");
}

/* SECURITY: many-groups-of-a-process */
TEST(false_names_cost_little)
{
	for (uint32_t pid = 300; pid < 320; pid++) {
		struct fake_thread *thread = fake_process(world->fake, pid, 1);
		snprintf(thread->comm, sizeof(thread->comm), "numad");
		thread->uid = 1000;
		thread->many_groups = true;
		fake_move(world->fake, pid, "/user.slice/user-1000.slice/session-1.scope");
	}
	world->each_second = interrupt_at_once;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_int_equal(world->fake->long_statuses, 0);
}

TEST(tiering_shows_no_accesses)
{
	world->balancing = "2\n";
	world->each_second = interrupt_at_once;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	world_assert_logged(world, "kernel.numa_balancing is 2 (tiers of memory only); set ");
	world_assert_not_logged(world, "the kernel moves pages and threads, too");
}

/* SECURITY: confined */
TEST(running_unconfined_as_root_is_logged)
{
	world->each_second = interrupt_at_once;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	if (geteuid() == 0)
		world_assert_logged(world, "Not confined by Landlock: run as root");
	else
		world_assert_not_logged(world, "numa-migrd is not confined");
}

TEST(an_invalid_file_prevents_the_start)
{
	char place[FIXTURE_PATH + 64];
	world_configure(world, "parameters: { general: { interval_s = 0.1; }; };\nverify: { "
			       "control_percent = -1; };\n");
	assert_int_equal(world_run(world), EX_CONFIG);
	snprintf(place, sizeof(place), "%s:2", world->config);
	world_assert_logged(world, place);
	assert_int_equal(world->seconds, 0);
}

TEST(only_one_runs)
{
	struct nm_daemon other = {.runtime.directory = -1};
	assert_int_equal(nm_runtime_open(&other.runtime), 0);
	assert_int_equal(world_run(world), EXIT_FAILURE);
	world_assert_logged(world, "Another numa-migrd is running");
	world->options.restore = true;
	assert_int_equal(world_run(world), EXIT_FAILURE);
	assert_true(there_is("lock"));
	nm_runtime_close(&other.runtime, true);
}

/* ---- affinities that cannot be restored ---- */

TEST(a_stop_with_unrestored_affinities_fails)
{
	fake_fail(world->fake, FAKE_SET, 2, 1000000, EPERM); /* the first one narrows */
	world->each_second = stop_when_moved;
	assert_int_equal(world_run(world), EXIT_FAILURE);
	assert_non_null(fake_trace(world->fake));
	assert_true(there_is("moves"));
	world_assert_logged(world, "Stopped; affinities not restored: 1 ");
	world_assert_not_logged(world, "all affinities restored");

	world->options.restore = true;
	assert_int_equal(world_run(world), EXIT_FAILURE);
	assert_true(there_is("moves"));
	world_assert_logged(world, "0 affinities restored, 1 failed");

	fake_calm(world->fake);
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_no_trace();
	assert_false(there_is("moves"));
	assert_false(there_is("lock"));
}

/* ---- reload ---- */

static unsigned reloaded_at;

static void reload_with(struct world *w, const char *text)
{
	world_configure(w, text);
	reloaded_at = w->seconds;
	raise(SIGHUP);
}

/* Installs an invalid file after two seconds; the daemon continues with the old one and moves the
 * thread. */
static void reload_a_bad_file(struct world *w)
{
	if (w->seconds == 2)
		reload_with(w, "parameters: { general: { interval_s = 0.1; }; };\n\nthreads: { "
			       "policy = \"none\"; m "
			       "= 1; };\n");
	stop_when_moved(w);
}

TEST(an_invalid_file_is_rejected)
{
	char place[FIXTURE_PATH + 64];
	world->each_second = reload_a_bad_file;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_true(world->seen_moved);
	snprintf(place, sizeof(place), "%s:3", world->config);
	world_assert_logged(world, place);
	world_assert_logged(world, "; keeping previous configuration");
}

static void reload_when_moved(struct world *w)
{
	if (!w->seen_moved && world_moved(w, 100)) {
		w->seen_moved = true;
		reload_with(w, WORLD_SETTINGS "threads: { policy = \"none\"; };\n");
	} else if (w->seen_moved && w->seconds > reloaded_at + 5) {
		w->seen_returned = !fake_trace(w->fake);
		raise(SIGTERM);
	} else if (w->seconds > LONG) {
		raise(SIGTERM);
	}
}

TEST(a_valid_file_is_accepted)
{
	world->each_second = reload_when_moved;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_true(world->seen_moved);
	assert_true(world->seen_returned);
	world_assert_logged(world, "Configuration reloaded: ");
}

static void reload_to_dry_run(struct world *w)
{
	if (!w->seen_moved && world_moved(w, 100)) {
		w->seen_moved = true;
		reload_with(w, "general: { dry_run = true; }; parameters: { general: { interval_s "
			       "= 0.1; }; };\n"
			       "targets: { min_cpu_percent = 0; min_rss_mb = 1; };\n");
	} else if ((w->seen_moved && w->seconds > reloaded_at + 20) || w->seconds > LONG) {
		w->seen_returned = !fake_trace(w->fake);
		raise(SIGTERM);
	}
}

TEST(a_reload_to_dry_run_restores_affinities)
{
	world->each_second = reload_to_dry_run;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_true(world->seen_moved);
	assert_true(world->seen_returned);
}

/* ---- queries ---- */

static int query_fd; /* an eventfd that reports an answer to a query */
static unsigned progressed;

static int world_query_fd(struct nm_platform *platform)
{
	(void)platform;
	return query_fd;
}

static void world_query_progress(struct nm_platform *platform)
{
	eventfd_t value;
	(void)platform;
	assert_int_equal(eventfd_read(query_fd, &value), 0);
	progressed++;
}

/* Once before a reload that opens the machine again, and once after. */
static void let_answers_come(struct world *w)
{
	if (w->seconds == 1 || (reloaded_at && w->seconds == reloaded_at + 2))
		assert_int_equal(eventfd_write(query_fd, 1), 0);
	else if (progressed == 1 && !reloaded_at)
		reload_with(w, "general: { dry_run = true; }; parameters: { general: { interval_s "
			       "= 0.1; }; };\n");
	else if (progressed == 2 || w->seconds > LONG)
		raise(SIGTERM);
}

TEST(queries_advance_in_the_loop)
{
	struct nm_platform_ops ops = *world->platform.ops;
	ops.query_fd = world_query_fd;
	ops.query_progress = world_query_progress;
	world->platform.ops = &ops;
	query_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	progressed = reloaded_at = 0;
	world->each_second = let_answers_come;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_int_equal(progressed, 2);
	close(query_fd);
}

/* ---- after a crash ---- */

/* Within a move: the affinity is about to be restored. */
static void die(struct fake *fake)
{
	(void)fake;
	_exit(FAKE_DIED);
}

/* As with kill -9; the machine is in memory shared by both processes. */
static void crash(void)
{
	int status;
	fake_at(world->fake, FAKE_SET, 2, die);
	world->each_second = stop_when_moved;
	pid_t child = fork();
	if (child == 0) {
		(void)world_run(world);
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), FAKE_DIED);
	memset(world->fake->open, 0, sizeof(world->fake->open));
	fake_calm(world->fake);
	assert_non_null(fake_trace(world->fake));
	world->each_second = NULL;
}

TEST(restore_recovers_after_a_crash)
{
	crash();
	world->options.restore = true;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_no_trace();
	world_assert_logged(world,
			    "Recovered after unclean shutdown: 1 affinity restored, 0 failed");
	assert_false(there_is("moves"));
}

/* With any configuration, since this is how to recover from a bad one. */
TEST(restore_needs_no_configuration)
{
	crash();
	world_configure(world, "rubbish");
	world->options.restore = true;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_no_trace();
}

TEST(a_start_restores_it_too)
{
	crash();
	world_configure(world, WORLD_SETTINGS "threads: { policy = \"none\"; };\n");
	world->each_second = interrupt_at_once;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_no_trace();
	world_assert_logged(world, "1 affinity restored");
}

/* Of a version before 0.9. */
TEST(damage_in_a_ledger_is_reported)
{
	static const char damaged[] = "numa-migrd-ledger 1 " BOOT "\ngive nonsense\n";
	fixture_file(world->root, "ledger", damaged);
	world->options.restore = true;
	assert_int_equal(world_run(world), EXIT_FAILURE); /* the content of that line is unknown */
	world_assert_logged(world, "/run/numa-migrd/ledger damaged: 1 line from line 2 on");
	assert_string_equal(fixture_read(world->root, "ledger.damaged"), damaged);
}

TEST(a_file_of_another_form_is_set_aside)
{
	fixture_file(world->root, "ledger", "rubbish\n");
	fixture_file(world->root, "moves", "rubbish\n");
	world->options.restore = true;
	assert_int_equal(world_run(world), EXIT_FAILURE);
	world_assert_logged(world, "/run/numa-migrd/ledger unreadable, kept as ledger.damaged");
	world_assert_logged(world, "/run/numa-migrd/moves unreadable, kept as moves.damaged");
	assert_string_equal(fixture_read(world->root, "ledger.damaged"), "rubbish\n");
	assert_false(there_is("ledger") || there_is("moves"));
}

TEST(injection_state_survives_the_stop)
{
	fixture_file(world->root, "ledger", "rubbish\n");
	world->each_second = stop_when_moved;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	world_assert_logged(world, "but not those of a damaged file");
	world_assert_not_logged(world, "Stopped: all affinities restored");
}

int main(void)
{
	umask(022);
	return RUN_REGISTERED(NULL, NULL);
}

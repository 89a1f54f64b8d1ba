/* SPDX-License-Identifier: MIT */
/* Ticks and commands of an administrator, one by one, with simulated time. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>

#include "dump_fixture.h"
#include "fake_mover.h"
#include "ticks_fixture.h"

#define USER 1000

static struct world *world;
static struct nm_daemon *service;
static int kept_stderr;

static void open_daemon(void)
{
	service = service_open(world);
}

static void close_daemon(void)
{
	service_close(service);
	service = NULL;
}

static int set_up(void **state)
{
	(void)state;
	world = world_new();
	fake_mover = (struct fake_mover){0};
	world_worker(world, 100, 1);
	world_worker(world, 101, 0);
	fake_sleep(world->fake, 60000);
	kept_stderr = world_mute(world);
	open_daemon();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_daemon();
	world_unmute(kept_stderr);
	const struct fake_thread *trace = fake_trace(world->fake);
	unsigned open_fds = fake_open_fds(world->fake), open_events = world->perf.open_count;
	world_free(world);
	assert_null(trace);
	assert_int_equal(open_fds, 0);
	assert_int_equal(open_events, 0);
	return 0;
}

static void ticks(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(nm_tick(service), 0);
}

static bool tick_until_moved(uint32_t tid)
{
	for (unsigned i = 0; i < 30 && !world_moved(world, tid); i++)
		ticks(1);
	return world_moved(world, tid);
}

/* The kernel moves the worker away from its memory again if its affinity permits. */
static void drift_away(void)
{
	assert_null(fake_trace(world->fake));
	fake_get(world->fake, 100)->processor = 0;
}

/* NULL: not in the status. */
static const char *status(const char *name)
{
	show_document(nm_command_dump(service), "status");
	return shown_text(0, name);
}

static double status_number(const char *name)
{
	(void)status(name);
	return shown_number(0, name);
}

TEST(a_tick_watches_before_it_acts)
{
	ticks(3); /* the warm-up */
	assert_true(status_number("decisions") == 0);
	assert_true(status_number("threads_managed") == 2);
	assert_true(status_number("threads_measured") == 2);
	assert_non_null(status("threads_undersampled"));
	assert_true(status_number("intervals") == 3);
	assert_true(fabs(status_number("local_share") - 0.5) < 0.01);
	assert_true(tick_until_moved(100));
	assert_false(world_moved(world, 101));
	assert_true(status_number("decisions") == 1);
	assert_true(status_number("moves_applied") == 1);
	assert_true(status_number("threads_assigned") == 1);
}

static void count_workers(struct nm_platform *platform, struct nm_worker_counts *ret)
{
	(void)platform;
	*ret = (struct nm_worker_counts){.given_up = 7, .stuck = 2};
}

TEST(stuck_workers_are_shown)
{
	struct nm_platform_ops ops = *world->platform.ops;
	const struct nm_platform_ops *before = world->platform.ops;
	ticks(1);
	assert_true(status_number("workers_given_up") == 0);
	ops.worker_counts = count_workers;
	world->platform.ops = &ops;
	unsigned long long given_up = (unsigned long long)status_number("workers_given_up");
	unsigned long long stuck = (unsigned long long)status_number("workers_stuck");
	world->platform.ops = before;
	assert_int_equal(given_up, 7);
	assert_int_equal(stuck, 2);
}

/* Anyone may read the status, and the seed would make draws predictable. */
/* SECURITY: seed */
TEST(a_status_has_no_seed)
{
	ticks(2);
	assert_non_null(status("policy"));
	assert_null(status("seed"));
}

TEST(a_verdict_follows)
{
	assert_true(tick_until_moved(100));
	ticks(15);
	assert_true(status_number("verdicts_improved") == 1);
	assert_true(status_number("local_share") > 0.9);
	assert_true(world_moved(world, 100));
	world_assert_logged(world, "improved");
}

TEST(an_affinity_changed_by_its_owner_is_kept)
{
	assert_true(tick_until_moved(100));
	fake_pin(world->fake, 100, fake_cpus(0, 2));
	ticks(40);
	assert_int_equal(fake_get(world->fake, 100)->mask, fake_cpus(0, 2));
	assert_true(status_number("decisions") == 1);
}

TEST(a_pause_restores_and_stops_decisions)
{
	assert_true(tick_until_moved(100));
	assert_int_equal(nm_command_pause(service), 0);
	assert_null(fake_trace(world->fake));
	assert_int_equal(world->perf.open_count, 0);
	assert_int_equal(nm_command_pause(service), 0); /* again */
	assert_string_equal(status("paused"), "true");
	assert_null(status("threads_assigned"));
	ticks(30);
	assert_null(fake_trace(world->fake));
	assert_int_equal(nm_command_resume(service), 0);
	assert_int_equal(nm_command_resume(service), 0);
	drift_away();
	assert_true(tick_until_moved(100));
	world_assert_logged(world, "Paused: all affinities restored");
	world_assert_logged(world, "Resumed");
}

static void assert_rows(const char *section, size_t rows)
{
	show_document(nm_command_dump(service), section);
	assert_int_equal(shown.rows, rows);
}

TEST(a_pause_shows_earlier_state_only)
{
	assert_true(tick_until_moved(100));
	assert_string_equal(status("paused"), "false");
	assert_string_equal(status("version"), NM_VERSION);
	assert_string_not_equal(status("source"), "none");
	assert_int_equal(nm_command_pause(service), 0);
	assert_string_equal(status("paused"), "true");
	assert_string_equal(status("source"), "none");
	assert_rows("nodes", 0);
	assert_rows("processes", 0);
	assert_rows("threads", 0);
	assert_rows("decisions", 1);
	assert_shown(1, "tid", "100");
	assert_int_equal(nm_command_resume(service), 0);
	assert_rows("nodes", NODES);
	assert_null(shown_text(1, "access_share")); /* no interval yet */
}

static bool is_dry_run(void)
{
	return strcmp(status("dry_run"), "true") == 0;
}

TEST(a_dry_run_can_be_asked_for)
{
	assert_true(tick_until_moved(100));
	assert_int_equal(nm_command_set_dry_run(service, true), 0);
	assert_true(is_dry_run());
	assert_null(fake_trace(world->fake)); /* every affinity is restored */
	drift_away();
	assert_false(tick_until_moved(100));
	assert_int_equal(nm_command_set_dry_run(service, true), 0);
	assert_int_equal(nm_command_set_dry_run(service, false), 0);
	assert_false(is_dry_run());
	assert_true(tick_until_moved(100));
	service->options.dry_run = true; /* as at the start */
	assert_int_equal(nm_command_set_dry_run(service, false), -EPERM);
	assert_int_equal(nm_command_set_dry_run(service, true), 0);
	service->options.dry_run = false;
	world_assert_logged(world, "Dry run: all affinities restored");
	world_assert_logged(world, "Dry run ended");
}

/* A dry run by command ends by command. */
TEST(a_configured_dry_run_is_ended_there_only)
{
	service->config->general.dry_run = true;
	assert_int_equal(nm_command_set_dry_run(service, false), -EACCES);
	assert_true(is_dry_run());
	assert_int_equal(nm_command_set_dry_run(service, true), 0);
	assert_int_equal(nm_command_set_dry_run(service, false), -EACCES);
	assert_true(is_dry_run());
	service->config->general.dry_run = false;
	assert_int_equal(nm_command_set_dry_run(service, false), 0);
	assert_false(is_dry_run());
}

/* While paused it is only stored, and a reload resets it to the configuration. */
/* The topology cannot be read when everything is opened again. */
static void break_topology(bool broken)
{
	service->options.topology.xml_path = broken ? "/nonexistent.xml" : world->xml;
	if (!broken)
		assert_int_equal(nm_pipeline_open(service), 0);
}

TEST(a_dry_run_that_does_not_end_is_not_logged_as_ended)
{
	assert_int_equal(nm_command_set_dry_run(service, true), 0);
	break_topology(true);
	assert_true(nm_command_set_dry_run(service, false) < 0);
	world_assert_not_logged(world, "Dry run ended");
	world_assert_logged(world, "Dry run not ended: ");
	break_topology(false);
}

TEST(a_dry_run_that_does_not_begin_is_not_logged_as_begun)
{
	break_topology(true);
	assert_true(nm_command_set_dry_run(service, true) < 0);
	world_assert_not_logged(world, "Dry run: ");
	world_assert_logged(world, "Dry run not begun: ");
	break_topology(false);
}

TEST(a_reload_that_fails_is_not_logged_as_one)
{
	char error[256] = "";
	world_configure(world, "general: { dry_run = true; };\n");
	break_topology(true);
	assert_true(nm_command_reload(service, error, sizeof(error)) < 0);
	world_assert_not_logged(world, "Configuration reloaded");
	world_assert_logged(world, "Configuration not applied: ");
	break_topology(false);
}

TEST(decisions_are_not_logged_as_carried_out_in_a_pause)
{
	assert_int_equal(nm_command_set_dry_run(service, true), 0);
	assert_int_equal(nm_command_pause(service), 0);
	assert_int_equal(nm_command_set_dry_run(service, false), 0);
	world_assert_not_logged(world, "decisions are carried out");
	world_assert_logged(world, "Dry run ended: decisions will be carried out");
	assert_int_equal(nm_command_resume(service), 0);
}

/* Nothing happened: nothing is logged. */
TEST(a_second_command_logs_nothing)
{
	assert_int_equal(nm_command_resume(service), 0);
	assert_int_equal(nm_command_manage(service, 100), 0);
	assert_int_equal(nm_command_raise_control(service, 0, 0), 0);
	world_assert_not_logged(world, "Resumed");
	world_assert_not_logged(world, "is managed again");
}

TEST(a_trial_ends_with_a_dry_run)
{
	assert_int_equal(nm_command_raise_control(service, 60, 50), 0);
	assert_int_equal(nm_command_set_dry_run(service, true), 0);
	world_assert_logged(world, "Trial ended early (dry run): ");
	assert_int_equal(nm_command_raise_control(service, 60, 50), -EROFS);
	assert_int_equal(nm_command_set_dry_run(service, false), 0);
	assert_int_equal(nm_command_raise_control(service, 60, 50), 0);
}

/* Its result stays. */
TEST(a_trial_ends_with_a_pause)
{
	assert_int_equal(nm_command_raise_control(service, 60, 50), 0);
	assert_int_equal(nm_command_pause(service), 0);
	world_assert_logged(world, "Trial ended early (paused): no comparison: ");
	assert_int_equal(nm_command_raise_control(service, 60, 50), -EAGAIN);
	assert_int_equal(nm_command_raise_control(service, 0, 0), 0);
	for (unsigned turn = 0; turn < 2; turn++) {
		show_document(nm_command_dump(service), "trial");
		assert_non_null(strstr(shown_text(0, "result"), "managed units"));
		assert_shown(0, "remaining_s", "0");
		assert_int_equal(nm_command_resume(service), 0);
	}
}

TEST(a_dry_run_outlives_a_pause_but_no_reload)
{
	char error[256] = "";
	assert_int_equal(nm_command_pause(service), 0);
	assert_int_equal(nm_command_set_dry_run(service, true), 0);
	assert_int_equal(nm_command_resume(service), 0);
	assert_false(tick_until_moved(100));
	assert_int_equal(nm_command_reload(service, error, sizeof(error)), 0);
	assert_string_equal(error, "");
	assert_false(is_dry_run());
	assert_true(tick_until_moved(100));
}

TEST(an_invalid_file_is_rejected_with_its_line)
{
	char error[512] = "", small[8] = "";
	world_configure(world, WORLD_SETTINGS
			"verify: { control_percent = -1;\n controlpercent = 5; };\n");
	assert_true(nm_command_reload(service, error, sizeof(error)) < 0);
	assert_non_null(strstr(error, "numa-migrd.conf:3:"));
	assert_non_null(strstr(error, "\n"));
	assert_non_null(strstr(error, "numa-migrd.conf:4:"));
	assert_true(nm_command_reload(service, small, sizeof(small)) < 0);
	assert_string_equal(small, "");	    /* no line fits */
	assert_true(tick_until_moved(100)); /* the old settings stay in force */
}

/* Start and reload accept only a file that root or the user of the daemon can write. */
/* SECURITY: administrator, configuration */
TEST(a_file_writable_by_others_is_refused_at_reload)
{
	char error[512] = "", path[FIXTURE_PATH], elsewhere[FIXTURE_PATH];
	world_configure(world, WORLD_SETTINGS "general: { dry_run = true; };\n");
	assert_int_equal(chmod(world->config, 0666), 0);
	assert_int_equal(nm_command_reload(service, error, sizeof(error)), -EPERM);
	assert_non_null(strstr(error, "must belong to root"));
	assert_false(is_dry_run());
	assert_int_equal(chmod(world->config, 0644), 0);

	snprintf(path, sizeof(path), "%s", world->config);
	snprintf(elsewhere, sizeof(elsewhere), "%.200s.else", path);
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, path), 0);
	assert_int_equal(nm_command_reload(service, error, sizeof(error)), -ELOOP);
	assert_false(is_dry_run());
	assert_true(tick_until_moved(100));
}

TEST(a_release_lasts_until_exit)
{
	assert_true(tick_until_moved(100));
	assert_int_equal(nm_command_release(service, 100), 0);
	drift_away();
	assert_false(tick_until_moved(100));
	assert_int_equal(nm_command_release(service, 4711), -ESRCH);
	world_assert_logged(world, "Released PID 100");
}

/* Before its first sample, or without sampling. */
TEST(an_unsampled_process_can_be_released)
{
	assert_int_equal(nm_command_release(service, 100), 0);
	assert_false(tick_until_moved(100));
	fake_clone(world->fake, 100, 102);
	assert_int_equal(nm_command_release(service, 102), -ESRCH); /* a thread's number */
}

TEST(a_second_release_succeeds)
{
	for (unsigned turn = 0; turn < 4; turn++) {
		assert_int_equal(nm_command_release(service, 100), 0);
		if (turn == 1) /* and while it is paused */
			assert_int_equal(nm_command_pause(service), 0);
	}
	assert_int_equal(nm_command_pause(service), 0);
	assert_int_equal(nm_command_manage(service, 100), 0);
	assert_int_equal(nm_command_manage(service, 100), 0);
	assert_int_equal(nm_command_resume(service), 0);
}

TEST(a_release_while_paused)
{
	assert_int_equal(nm_command_pause(service), 0);
	assert_int_equal(nm_command_release(service, 4711), -ESRCH);
	assert_int_equal(nm_command_release(service, 100), 0);
	assert_int_equal(nm_command_resume(service), 0);
	drift_away();
	assert_false(tick_until_moved(100));
	assert_int_equal(nm_command_pause(service), 0);
	assert_int_equal(nm_command_manage(service, 100), 0);
	assert_int_equal(nm_command_manage(service, 100), 0); /* again */
	assert_int_equal(nm_command_manage(service, 4711), -ESRCH);
	close_daemon(); /* also after a restart */
	open_daemon();
	assert_true(tick_until_moved(100));
}

TEST(a_release_outlives_restart_and_pause)
{
	ticks(2);
	assert_int_equal(nm_command_release(service, 100), 0);
	close_daemon();
	open_daemon();
	assert_false(tick_until_moved(100));
	assert_int_equal(nm_command_pause(service), 0);
	assert_int_equal(nm_command_resume(service), 0);
	assert_false(tick_until_moved(100));
}

TEST(unwritable_marks_are_reported_once)
{
	ticks(2);
	fixture_directory(world->root, "given-back.new/in-the-way");
	assert_int_equal(nm_command_release(service, 100), 0);
	world_assert_logged(world, "given-back in the runtime directory not written");
	nm_runtime_save(service);
	static char text[1 << 14];
	snprintf(text, sizeof(text), "%s", fixture_read(world->root, "log"));
	char *first = strstr(text, "not written");
	assert_non_null(first);
	assert_null(strstr(first + 1, "not written"));
}

TEST(an_unreadable_unresponsive_process_is_logged_once)
{
	close_daemon();
	fixture_file(world->root, "unanswered", "rubbish\n");
	open_daemon();
	world_assert_logged(world, "unanswered in the runtime directory not fully read");
	assert_true(tick_until_moved(100));
}

static struct nm_unresponsive_list *handed[2];
static unsigned handed_count;
static bool starts_workers;

static int note_platform(void *context, const struct nm_platform_options *options,
			 struct nm_platform **ret)
{
	if (handed_count < NM_ARRAY_SIZE(handed))
		handed[handed_count++] = options->unresponsive;
	starts_workers = options->start_workers;
	return world->options.open_platform(context, options, ret);
}

/* Clients are created and freed with the platform. */
TEST(a_pause_keeps_the_clients_state)
{
	handed_count = 0;
	service->options.open_platform = note_platform;
	for (unsigned i = 0; i < NM_ARRAY_SIZE(handed); i++) {
		assert_int_equal(nm_command_pause(service), 0);
		assert_int_equal(nm_command_resume(service), 0);
	}
	assert_int_equal(handed_count, NM_ARRAY_SIZE(handed));
	assert_ptr_equal(handed[0], service->runtime.unresponsive);
	assert_ptr_equal(handed[1], service->runtime.unresponsive);
}

static bool starts_workers_with(const char *settings)
{
	char error[256];
	assert_int_equal(nm_command_pause(service), 0);
	world_configure(world, settings);
	assert_int_equal(nm_command_reload(service, error, sizeof(error)), 0);
	assert_int_equal(nm_command_resume(service), 0);
	return starts_workers;
}

TEST(workers_start_with_a_service_that_moves_memory)
{
	service->options.open_platform = note_platform;
	assert_true(starts_workers_with("threads: { policy = \"auto\"; };"));
	assert_false(starts_workers_with("threads: { policy = \"lbma\"; };"));
	assert_false(starts_workers_with("threads: { policy = \"auto\"; };\n"
					 "general: { dry_run = true; };"));
	assert_true(starts_workers_with("threads: { policy = \"lbma\"; };\n"
					"pages: { policy = \"exclusivity\"; };"));
	world_write_xml(world->xml, "numa:1 core:4 pu:1");
	assert_false(starts_workers_with("threads: { policy = \"auto\"; };"));
}

TEST(a_tick_without_a_source_makes_no_decision)
{
	assert_true(tick_until_moved(100));
	ticks(15);
	for (unsigned kind = 0; kind < NM_EVENT_KIND_MAX; kind++)
		world->perf.open_error[kind] = -EACCES;
	nm_pipeline_open_source(service);
	assert_string_equal(status("blind"), "true");
	ticks(40);
	assert_null(fake_trace(world->fake));
	world_assert_logged(world, "Nothing moved: ");
	memset(world->perf.open_error, 0, sizeof(world->perf.open_error));
	nm_pipeline_open_source(service);
	service->machine.balancing = 1; /* page faults recur */
	assert_string_equal(status("blind"), "false");
	drift_away();
	assert_true(tick_until_moved(100));
}

static void assert_line(bool no_source, const char *part)
{
	nm_report_status(service);
	assert_string_equal(status("blind"), no_source ? "true" : "false");
	assert_true((strstr(service->reported.status, "sampl") != NULL) == no_source);
	assert_non_null(strstr(service->reported.status, part));
}

/* A change of a number within a line of text does not cause a signal. */
TEST(numbers_of_the_status_are_sent_after_a_while)
{
	service->config->sampling.inject = NM_INJECT_NONE;
	service->config->threads.policy = NM_POLICY_AUTO;
	assert_line(true, "0 assigned");
	uint64_t sent_ns = service->reported.status_ns;
	(void)snprintf(service->reported.status, sizeof(service->reported.status),
		       "Only first touches sampled: 7 threads managed, 7 assigned");
	nm_report_status(service);
	assert_int_equal(service->reported.status_ns, sent_ns);
	service->reported.status_ns -= 11 * NM_NSEC_PER_SEC;
	assert_line(true, "0 assigned");
	service->machine.balancing = 1;
	assert_line(false, "threads managed");
}

/* Only page faults are sampled, and pages do not fault again. The flag and the line have the same
 * meaning with any policy. */
TEST(first_touch_faults_are_no_sampling_source)
{
	service->config->sampling.inject = NM_INJECT_NONE;
	service->machine.balancing = 1;
	assert_line(false, "threads managed");
	service->machine.balancing = 0;
	assert_line(true, "Only first touches sampled: ");
	service->config->threads.policy = NM_POLICY_AUTO;
	assert_line(true, "Only first touches sampled: ");
	assert_non_null(strstr(service->reported.status, "threads managed"));
	service->machine.balancing = 1;
	assert_line(false, "threads managed");
}

/* The clock samples threads that run, but not accesses. */
TEST(a_clock_alone_is_no_sampling_source)
{
	service->machine.balancing = 1;
	world->perf.open_error[NM_EVENT_FAULT_MIN] = -EACCES;
	world->perf.open_error[NM_EVENT_FAULT_MAJ] = -EACCES;
	nm_pipeline_open_source(service);
	assert_string_equal(nm_source_status(service->pipeline.source)->name, "runs-only");
	assert_line(true, "No memory sampling: ");
	service->config->threads.policy = NM_POLICY_AUTO;
	assert_line(true, "threads managed");
	memset(world->perf.open_error, 0, sizeof(world->perf.open_error));
	nm_pipeline_open_source(service);
	assert_line(false, "threads managed");
}

/* The sysctl is read only if pages can be moved. */
TEST(a_switch_of_the_sysctl_is_seen)
{
	world->balancing = "1\n";
	ticks(15);
	assert_line(false, "threads managed");
	world->balancing = "0\n";
	ticks(15);
	assert_line(true, "Only first touches sampled: ");
	world_assert_logged(world,
			    "sampled: kernel.numa_balancing is 0; set parameters.sampling.inject");
	world->balancing = "1\n";
	ticks(15);
	assert_line(false, "threads managed");
	world_assert_logged(world, "Repeated accesses are sampled again");
}

TEST(a_single_node_is_not_a_missing_source)
{
	struct nm_topology *nodes = service->pipeline.topology;
	struct nm_topology one = *nodes;
	one.nr_nodes = 1;
	service->pipeline.topology = &one;
	nm_pipeline_open_source(service);
	assert_null(service->pipeline.source);
	assert_string_equal(status("blind"), "false");
	service->pipeline.topology = nodes;
	nm_pipeline_open_source(service);
}

/* ---- isolated CPUs ---- */

static const char *isolated_list, *partition_kind;

static ssize_t read_isolation(struct nm_platform *platform, int directory, const char *path,
			      char *buffer, size_t size)
{
	if (strcmp(path, "sys/fs/cgroup/cpuset.cpus.isolated") == 0)
		return isolated_list ? world_give(buffer, size, isolated_list) : -ENOENT;
	if (partition_kind && strcmp(path, "sys/fs/cgroup/cpuset.cpus.effective") == 0)
		return world_give(buffer, size, "0-2\n");
	if (partition_kind && strcmp(path, "sys/fs/cgroup/a/cpuset.cpus.partition") == 0)
		return world_give(buffer, size, partition_kind);
	if (partition_kind && strcmp(path, "sys/fs/cgroup/a/cpuset.cpus.effective") == 0)
		return world_give(buffer, size, "3\n");
	return world_read_file(platform, directory, path, buffer, size);
}

static int list_isolation(struct nm_platform *platform, int directory, const char *path,
			  nm_name_fn each, void *context)
{
	if (strcmp(path, "sys/fs/cgroup") == 0)
		return each(context, "a");
	return world_list_directory(platform, directory, path, each, context);
}

static bool is_isolated(unsigned cpu)
{
	return service->pipeline.topology->cpus[cpu].isolated &&
	       !hwloc_bitmap_isset(service->pipeline.topology->usable, cpu);
}

TEST(isolation_is_followed)
{
	const struct nm_platform_ops *before = world->platform.ops;
	struct nm_platform_ops ops = *before;
	ops.read_file = read_isolation;
	ops.list_directory = list_isolation;
	world->platform.ops = &ops;
	isolated_list = "\n";
	ticks(1);
	assert_false(is_isolated(2));
	/* The list of the kernel. */
	isolated_list = "2\n";
	ticks(1);
	assert_true(is_isolated(2));
	assert_false(is_isolated(3));
	world_assert_logged(world, "Isolated CPUs or partitions changed; isolated: 2");
	isolated_list = NULL;
	ticks(1);
	assert_false(is_isolated(2));
	/* Without the list. */
	partition_kind = "isolated\n";
	ticks(1);
	assert_true(is_isolated(3));
	partition_kind = "root\n";
	for (unsigned i = 0; i < 10 && is_isolated(3); i++)
		ticks(1);
	assert_false(is_isolated(3));
	partition_kind = NULL;
	ticks(1);
	world->platform.ops = before;
}

/* One node has CPUs, the other one memory only: nothing is sampled, until CPUs appear there. */
TEST(one_node_with_cpus_is_idle)
{
	ticks(1);
	assert_non_null(service->pipeline.source);
	assert_string_equal(status("idle"), "false");
	world_write_xml(world->xml, "numa:1 core:2 pu:1");
	service->machine.online.cpus[0] = 'x'; /* as if it had been another list */
	ticks(1);
	assert_true(nm_topology_is_single(service->pipeline.topology));
	assert_null(service->pipeline.source);
	assert_true(nm_loop_wakeup_s(service) >= 60);
	assert_string_equal(status("idle"), "true");
	assert_string_equal(status("blind"), "false");
	assert_line(false, "nothing to move");
	world_assert_logged(world, "one node has CPUs: nothing to move");
	world_write_xml(world->xml, "numa:2 core:2 pu:1");
	service->machine.online.cpus[0] = 'x';
	ticks(1);
	assert_non_null(service->pipeline.source);
	assert_true(nm_loop_wakeup_s(service) < 1);
	assert_string_equal(status("idle"), "false");
}

/* Also if CPUs of the others go offline meanwhile. */
TEST(a_trial_needs_two_nodes)
{
	ticks(1);
	assert_int_equal(nm_command_raise_control(service, 60, 50), 0);
	world_write_xml(world->xml, "numa:1 core:2 pu:1");
	service->machine.online.cpus[0] = 'x';
	ticks(2);
	world_assert_logged(world, "Trial ended early (one node has CPUs): ");
	assert_int_equal(nm_command_raise_control(service, 60, 50), -ENODEV);
}

/* Other nodes have memory only. */
TEST(nodes_with_cpus_are_counted)
{
	struct nm_topology *topology = service->pipeline.topology;
	hwloc_bitmap_t cpus = hwloc_bitmap_dup(topology->nodes[1].cpus);
	assert_int_equal(nm_topology_cpu_nodes(topology), 2);
	hwloc_bitmap_zero(topology->nodes[1].cpus);
	assert_true(nm_topology_is_single(topology));
	nm_pipeline_open_source(service);
	assert_null(service->pipeline.source);
	assert_true(nm_loop_wakeup_s(service) >= 60);
	ticks(2);
	assert_null(service->pipeline.source);
	hwloc_bitmap_copy(topology->nodes[1].cpus, cpus);
	nm_pipeline_open_source(service);
	assert_non_null(service->pipeline.source);
	hwloc_bitmap_free(cpus);
}

/* ---- pages ---- */

static void reload_with(const char *pages)
{
	char text[512];
	snprintf(text, sizeof(text), WORLD_SETTINGS "pages: { %s };\n", pages);
	world_configure(world, text);
	(void)nm_command_reload(service, NULL, 0);
}

TEST(pages_move_while_they_are_to)
{
	ticks(1);
	assert_null(status("pages_moved"));
	reload_with("policy = \"exclusivity\";");
	assert_int_equal(fake_mover.alive, 1);
	ticks(3);
	assert_true(status_number("pages_moved") == 0);
	assert_string_equal(status("pages_standing"), "moves");
	assert_true(status_number("page_backoffs") == 3);
	reload_with("policy = \"exclusivity\"; max_mb_per_s = 1;");
	assert_int_equal(fake_mover.alive, 1);
	assert_int_equal(fake_mover.configured, 1);
	reload_with("policy = \"watch\";");
	assert_int_equal(fake_mover.alive, 0);
	assert_non_null(status("pages_tracked"));
	assert_null(status("pages_moved"));
	ticks(2);
}

static void reload_auto_with(const char *pages)
{
	char text[512];
	snprintf(text, sizeof(text),
		 WORLD_SETTINGS "threads: { policy = \"auto\"; };\npages: { %s };\n", pages);
	world_configure(world, text);
	assert_int_equal(nm_command_reload(service, NULL, 0), 0);
}

/* Policy "auto" uses the mover for memory that follows a home. */
TEST(a_reload_applies_to_homes)
{
	ticks(1);
	reload_auto_with("");
	ticks(1);
	assert_int_equal(fake_mover.alive, 1);
	assert_int_equal(fake_mover.configured, 0);
	reload_auto_with("max_mb_per_s = 1;");
	assert_int_equal(fake_mover.alive, 1);
	assert_int_equal(fake_mover.configured, 1);
	reload_with("");
	assert_int_equal(fake_mover.alive, 0);
}

TEST(policies_share_the_mover)
{
	ticks(1);
	reload_auto_with("policy = \"exclusivity\";");
	ticks(1);
	assert_int_equal(fake_mover.alive, 1);
	reload_auto_with("");
	ticks(1);
	assert_int_equal(fake_mover.alive, 1);
	reload_auto_with("policy = \"exclusivity\";");
	reload_with("policy = \"exclusivity\";");
	ticks(1);
	assert_int_equal(fake_mover.alive, 1);
	reload_with("");
	assert_int_equal(fake_mover.alive, 0);
}

TEST(a_pause_stops_page_moves)
{
	reload_with("policy = \"exclusivity\";");
	ticks(2);
	assert_int_equal(nm_command_pause(service), 0);
	assert_int_equal(fake_mover.alive, 0);
	ticks(2);
	assert_int_equal(nm_command_resume(service), 0);
	assert_int_equal(fake_mover.alive, 1);
	ticks(2);
	assert_true(status_number("pages_tracked") > 0);
}

int main(void)
{
	umask(022);
	return RUN_REGISTERED(NULL, NULL);
}

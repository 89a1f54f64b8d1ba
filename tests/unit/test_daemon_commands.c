/* SPDX-License-Identifier: MIT */
/* Ticks and commands of an administrator. */
#define SET_UP open_ticks
#define TEAR_DOWN close_ticks
#include "../support/test.h"

#include "ticks_words.h"

/* The kernel moves the worker away from its memory again if its affinity permits. */
#define DRIFT_AWAY "narrow = 0; set processor 100 = 0; "

/* ---- ticks ---- */

/* The warm-up takes three. */
SCRIPT(a_tick_watches_before_it_acts,
       "tick 3; number decisions = 0; number threads_managed = 2; number threads_measured = 2",
       "status threads_undersampled != none; number intervals = 3",
       "number local_share in 0.49..0.51; moves 100 = 1; moved 101 = 0; number decisions = 1",
       "number moves_applied = 1; number threads_assigned = 1")

static void count_workers(struct nm_platform *platform, struct nm_worker_counts *ret)
{
	(void)platform;
	*ret = (struct nm_worker_counts){.given_up = 7, .stuck = 2};
}

WORD(stick_workers)
{
	struct nm_platform_ops ops = *world->platform.ops;
	ops.worker_counts = count_workers;
	change_ops(ops);
}

SCRIPT(stuck_workers_are_shown,
       "tick 1; number workers_given_up = 0; stick_workers; number workers_given_up = 7",
       "number workers_stuck = 2; restore_calls")

/* Anyone may read the status, and the seed would make draws predictable. */
/* SECURITY: seed */
SCRIPT(a_status_has_no_seed, "tick 2; status policy != none; status seed = none")

SCRIPT(a_verdict_follows,
       "moves 100 = 1; tick 15; number verdicts_improved = 1; number local_share > 0.9",
       "moved 100 = 1; log ~ improved")

SCRIPT(an_affinity_changed_by_its_owner_is_kept,
       "moves 100 = 1; pin 100 0-2; tick 40; affinity 100 = 7; number decisions = 1")

/* ---- pause, dry run, trial ---- */

SCRIPT(a_pause_restores_and_stops_decisions,
       "moves 100 = 1; pause = 0; narrow = 0; events = 0; pause = 0; status paused = true",
       "status threads_assigned = none; tick 30; narrow = 0; resume = 0; resume = 0",
       DRIFT_AWAY "moves 100 = 1; log ~ Paused: all affinities restored; log ~ Resumed")

SCRIPT(a_pause_shows_earlier_state_only,
       "moves 100 = 1; status paused = false; status version = " NM_VERSION "; rows nodes = 2",
       "pause = 0; status paused = true; status source = none; rows nodes = 0; rows processes = 0",
       "rows threads = 0; rows decisions = 1; shown 1 tid = 100; resume = 0; rows nodes = 2",
       "shown 1 access_share = none") /* no interval yet */

/* In the row of the section that was counted last. */
TEXT(shown, shown_text(U(0), step->word[1]))

/* A dry run since the start cannot be ended. */
SCRIPT(a_dry_run_can_be_asked_for,
       "moves 100 = 1; dry_run 1 = 0; status dry_run = true; " DRIFT_AWAY "moves 100 = 0",
       "dry_run 1 = 0; dry_run 0 = 0; status dry_run = false; moves 100 = 1; set started_dry = 1",
       "dry_run 0 = EPERM; dry_run 1 = 0; set started_dry = 0",
       "log ~ Dry run: all affinities restored; log ~ Dry run ended")

/* A dry run by command ends by command. */
SCRIPT(a_configured_dry_run_is_ended_there_only,
       "set configured_dry = 1; dry_run 0 = EACCES; status dry_run = true; dry_run 1 = 0",
       "dry_run 0 = EACCES; status dry_run = true; set configured_dry = 0; dry_run 0 = 0",
       "status dry_run = false")

SCRIPT(a_dry_run_that_does_not_end_is_not_logged_as_ended,
       "dry_run 1 = 0; break_topology; dry_run 0 < 0; log !~ Dry run ended",
       "log ~ Dry run not ended: ; mend_topology")

SCRIPT(a_dry_run_that_does_not_begin_is_not_logged_as_begun,
       "break_topology; dry_run 1 < 0; log !~ Dry run: ; log ~ Dry run not begun: ",
       "mend_topology")

SCRIPT(a_reload_that_fails_is_not_logged_as_one,
       "write general: { dry_run = true| }|; break_topology; reload < 0",
       "log !~ Configuration reloaded; log ~ Configuration not applied: ; mend_topology")

/* It is only stored. */
SCRIPT(decisions_are_not_logged_as_carried_out_in_a_pause,
       "dry_run 1 = 0; pause = 0; dry_run 0 = 0; log !~ decisions are carried out",
       "log ~ Dry run ended: decisions will be carried out; resume = 0")

/* Nothing happened: nothing is logged. */
SCRIPT(a_second_command_logs_nothing,
       "resume = 0; manage 100 = 0; raise_control 0 0 = 0; log !~ Resumed",
       "log !~ is managed again")

SCRIPT(a_trial_ends_with_a_dry_run,
       "raise_control 60 50 = 0; dry_run 1 = 0; log ~ Trial ended early (dry run): ",
       "raise_control 60 50 = EROFS; dry_run 0 = 0; raise_control 60 50 = 0")

static bool trial_has_result(void)
{
	show_document(nm_command_dump(service), "trial");
	return strstr(shown_text(0, "result"), "managed units") != NULL;
}

QUANTITY(trial_has_result, trial_has_result())

/* Its result stays. */
SCRIPT(a_trial_ends_with_a_pause,
       "raise_control 60 50 = 0; pause = 0; log ~ Trial ended early (paused): no comparison: ",
       "raise_control 60 50 = EAGAIN; raise_control 0 0 = 0; trial_has_result = 1",
       "shown 0 remaining_s = 0; resume = 0; trial_has_result = 1; shown 0 remaining_s = 0")

/* ---- reload ---- */

SCRIPT(a_dry_run_outlives_a_pause_but_no_reload,
       "pause = 0; dry_run 1 = 0; resume = 0; moves 100 = 0; reload = 0; status dry_run = false",
       "moves 100 = 1")

/* The old settings stay in force. */
SCRIPT(an_invalid_file_is_rejected_with_its_line,
       "write verify: { control_percent = -1|\n controlpercent = 5| }|; reload < 0",
       "answer ~ numa-migrd.conf:3:; answer ~ \n; answer ~ numa-migrd.conf:4:; short_answer = 0",
       "moves 100 = 1")

static size_t short_answer(void)
{
	char small[8] = "";
	assert_true(reload(small, sizeof(small)) < 0);
	return strlen(small);
}

/* The length of an answer of which no line fits. */
QUANTITY(short_answer, short_answer())
ACTION(chmod, assert_int_equal(chmod(world->config, (mode_t)strtoul(step->word[0], NULL, 8)), 0))

WORD(make_link)
{
	char path[FIXTURE_PATH], elsewhere[FIXTURE_PATH];
	snprintf(path, sizeof(path), "%s", world->config);
	snprintf(elsewhere, sizeof(elsewhere), "%.200s.else", path);
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, path), 0);
}

/* Start and reload accept only a file that root or the user of the daemon can write. */
/* SECURITY: administrator, configuration */
SCRIPT(a_file_writable_by_others_is_refused_at_reload,
       "write general: { dry_run = true| }|; chmod 0666; reload = EPERM",
       "answer ~ must belong to root; status dry_run = false; chmod 0644; make_link; reload = "
       "ELOOP",
       "status dry_run = false; moves 100 = 1")

/* ---- release ---- */

SCRIPT(a_release_lasts_until_exit,
       "moves 100 = 1; release 100 = 0; " DRIFT_AWAY "moves 100 = 0; release 4711 = ESRCH",
       "log ~ Released PID 100")

/* Before its first sample, or without sampling. 102 is the number of a thread. */
SCRIPT(an_unsampled_process_can_be_released,
       "release 100 = 0; moves 100 = 0; clone 100 102; release 102 = ESRCH")

SCRIPT(a_second_release_succeeds,
       "release 100 = 0; release 100 = 0; pause = 0; release 100 = 0; release 100 = 0; pause = 0",
       "manage 100 = 0; manage 100 = 0; resume = 0")

SCRIPT(a_release_while_paused,
       "pause = 0; release 4711 = ESRCH; release 100 = 0; resume = 0; " DRIFT_AWAY,
       "moves 100 = 0; pause = 0; manage 100 = 0; manage 100 = 0; manage 4711 = ESRCH; restart",
       "moves 100 = 1")

SCRIPT(a_release_outlives_restart_and_pause,
       "tick 2; release 100 = 0; restart; moves 100 = 0; pause = 0; resume = 0; moves 100 = 0")

ACTION(save, nm_runtime_save(&service->runtime, service->pipeline.platform, service->journal))
ACTION(directory, fixture_directory(world->root, step->word[0]))

static unsigned count_logged(const char *words)
{
	unsigned count = 0;
	for (const char *at = world_logged(world); (at = strstr(at, words)); at++)
		count++;
	return count;
}

QUANTITY(unwritten, count_logged("not written"))

SCRIPT(unwritable_marks_are_reported_once,
       "tick 2; directory given-back.new/in-the-way; release 100 = 0",
       "log ~ given-back in the runtime directory not written; save; unwritten = 1")

WORD(restart_with_rubbish)
{
	close_daemon();
	fixture_file(world->root, step->word[0], "rubbish\n");
	open_daemon();
}

SCRIPT(an_unreadable_unresponsive_process_is_logged_once,
       "restart_with_rubbish unanswered; moves 100 = 1",
       "log ~ unanswered in the runtime directory not fully read")

/* ---- the platform ---- */

static unsigned platforms, strange_lists;
static bool starts_workers;

static int note_platform(void *context, const struct nm_platform_options *options,
			 struct nm_platform **ret)
{
	platforms++;
	strange_lists += options->unresponsive != service->runtime.unresponsive;
	starts_workers = options->start_workers;
	return world->options.open_platform(context, options, ret);
}

WORD(note_platforms)
{
	platforms = strange_lists = 0;
	service->options.open_platform = note_platform;
}

QUANTITY(platforms, platforms)
QUANTITY(strange_lists, strange_lists)
QUANTITY(starts_workers, starts_workers)

/* Clients are created and freed with the platform. */
SCRIPT(a_pause_keeps_the_clients_state,
       "note_platforms; pause = 0; resume = 0; pause = 0; resume = 0; platforms = 2",
       "strange_lists = 0")

ACTION(machine, world_write_xml(world->xml, step_rest(step)))

#define APPLIED "; reload = 0; resume = 0; starts_workers = "
#define AUTO "threads: { policy = \"auto\"| }|"

SCRIPT(workers_start_with_a_service_that_moves_memory,
       "note_platforms; pause = 0; write " AUTO APPLIED "1; pause = 0",
       "write threads: { policy = \"lbma\"| }|" APPLIED "0; pause = 0",
       "write " AUTO " general: { dry_run = true| }|" APPLIED "0; pause = 0",
       "write threads: { policy = \"lbma\"| }| pages: { policy = \"exclusivity\"| }|" APPLIED "1",
       "machine numa:1 core:4 pu:1; pause = 0; write " AUTO APPLIED "0")

/* ---- sampling sources ---- */

/* fail_events all, faults, or none: from now on these cannot be opened. */
WORD(fail_events)
{
	memset(world->perf.open_error, 0, sizeof(world->perf.open_error));
	for (unsigned kind = 0; kind < NM_EVENT_KIND_MAX; kind++)
		if (step_has(step, "all") ||
		    (step_has(step, "faults") &&
		     (kind == NM_EVENT_FAULT_MIN || kind == NM_EVENT_FAULT_MAJ)))
			world->perf.open_error[kind] = -EACCES;
	nm_pipeline_open_source(service);
}

/* In the end page faults recur. */
SCRIPT(a_tick_without_a_source_makes_no_decision,
       "moves 100 = 1; tick 15; fail_events all; status blind = true; tick 40; narrow = 0",
       "log ~ Nothing moved: ; fail_events none; set balancing = 1; status blind = false",
       DRIFT_AWAY "moves 100 = 1")

static void assert_line(const struct step *step, bool no_source)
{
	const char *words = step_rest(step);
	nm_report_status(service);
	if (strcmp(status("blind"), no_source ? "true" : "false") != 0 ||
	    (strstr(service->reported.status, "sampl") != NULL) != no_source ||
	    !strstr(service->reported.status, words))
		script_fail(step, "found %s", service->reported.status);
}

/* The line of the status, without a sampling source or with one. */
ACTION(blind_line, assert_line(step, true))
ACTION(line, assert_line(step, false))
KNOB(status_ns, service->reported.status_ns)
ACTION(report, nm_report_status(service))

WORD(last_line)
{
	(void)snprintf(service->reported.status, sizeof(service->reported.status), "%s",
		       step_rest(step));
}

/* A change of a number within a line of text does not cause a signal. */
SCRIPT(numbers_of_the_status_are_sent_after_a_while,
       "set inject = none; set policy = auto; blind_line 0 assigned; keep sent = status_ns",
       "last_line Only first touches sampled: 7 threads managed, 7 assigned; report",
       "status_ns = sent; set status_ns = sent-11e9; blind_line 0 assigned; set balancing = 1",
       "line threads managed")

/* Only page faults are sampled, and pages do not fault again. The flag and the line have the same
 * meaning with any policy. */
SCRIPT(first_touch_faults_are_no_sampling_source,
       "set inject = none; set balancing = 1; line threads managed; set balancing = 0",
       "blind_line Only first touches sampled: ; set policy = auto",
       "blind_line Only first touches sampled: ; blind_line threads managed; set balancing = 1",
       "line threads managed")

/* The clock samples threads that run, but not accesses. */
SCRIPT(a_clock_alone_is_no_sampling_source,
       "set balancing = 1; fail_events faults; status source = runs-only",
       "blind_line No memory sampling: ; set policy = auto; blind_line threads managed",
       "fail_events none; line threads managed")

/* kernel.numa_balancing is read only if pages can be moved. */
ACTION(sysctl, world->balancing = U(0) ? "1\n" : "0\n")

SCRIPT(a_switch_of_the_sysctl_is_seen, "sysctl 1; tick 15; line threads managed; sysctl 0; tick 15",
       "blind_line Only first touches sampled: ",
       "log ~ sampled: kernel.numa_balancing is 0; log ~ set parameters.sampling.inject",
       "sysctl 1; tick 15; line threads managed; log ~ Repeated accesses are sampled again")

KNOB(nr_nodes, service->pipeline.topology->nr_nodes)
ACTION(open_source, nm_pipeline_open_source(service))

SCRIPT(a_single_node_is_not_a_missing_source,
       "set nr_nodes = 1; open_source; has_source = 0; status blind = false; set nr_nodes = 2",
       "open_source")

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

/* isolate nothing, 2, unlisted, isolated, or root: the list of the kernel, or without it the kind
 * of a partition of CPU 3 */
WORD(isolate)
{
	struct nm_platform_ops ops = *world->platform.ops;
	ops.read_file = read_isolation;
	ops.list_directory = list_isolation;
	if (!kept_ops)
		change_ops(ops);
	isolated_list = step_has(step, "nothing") ? "\n" : step_has(step, "2") ? "2\n" : NULL;
	partition_kind = step_has(step, "isolated") ? "isolated\n"
			 : step_has(step, "root")   ? "root\n"
						    : NULL;
}

static bool is_isolated(unsigned cpu)
{
	return service->pipeline.topology->cpus[cpu].isolated &&
	       !hwloc_bitmap_isset(service->pipeline.topology->usable, cpu);
}

QUANTITY(isolated, is_isolated(U(0)))

SCRIPT(isolation_is_followed,
       "isolate nothing; tick 1; isolated 2 = 0; isolate 2; tick 1; isolated 2 = 1; isolated 3 = 0",
       "log ~ Isolated CPUs or partitions changed; log ~ isolated: 2; isolate unlisted; tick 1",
       "isolated 2 = 0; isolate isolated; tick 1; isolated 3 = 1; isolate root; tick 10",
       "isolated 3 = 0; isolate unlisted; tick 1; restore_calls")

/* ---- nodes with CPUs ---- */

/* As if another list of CPUs had been online. */
ACTION(online_changes, service->machine.online.cpus[0] = 'x')
QUANTITY(is_single, nm_topology_is_single(service->pipeline.topology))

/* One node has CPUs, the other one memory only: nothing is sampled, until CPUs appear there. */
SCRIPT(one_node_with_cpus_is_idle,
       "tick 1; has_source = 1; status idle = false; machine numa:1 core:2 pu:1; online_changes",
       "tick 1; is_single = 1; has_source = 0; wakeup_s >= 60; status idle = true",
       "status blind = false; line nothing to move; log ~ one node has CPUs: nothing to move",
       "machine numa:2 core:2 pu:1; online_changes; tick 1; has_source = 1; wakeup_s < 1",
       "status idle = false")

/* Also if CPUs of the others go offline meanwhile. */
SCRIPT(a_trial_needs_two_nodes,
       "tick 1; raise_control 60 50 = 0; machine numa:1 core:2 pu:1; online_changes; tick 2",
       "log ~ Trial ended early (one node has CPUs): ; raise_control 60 50 = ENODEV")

/* cpus_of_node_1 0: other nodes have memory only */
WORD(cpus_of_node_1)
{
	hwloc_bitmap_t cpus = service->pipeline.topology->nodes[1].cpus;
	hwloc_bitmap_zero(cpus);
	if (U(0))
		hwloc_bitmap_set_range(cpus, 2, 3);
	nm_pipeline_open_source(service);
}

QUANTITY(cpu_nodes, nm_topology_cpu_nodes(service->pipeline.topology))

SCRIPT(nodes_with_cpus_are_counted,
       "cpu_nodes = 2; cpus_of_node_1 0; is_single = 1; has_source = 0; wakeup_s >= 60; tick 2",
       "has_source = 0; cpus_of_node_1 1; has_source = 1")

/* ---- pages ---- */

#define PAGES(settings) "write pages: { " settings " }|; reload = 0; "
#define AUTO_PAGES(settings) "write " AUTO " pages: { " settings " }|; reload = 0; "
#define EXCLUSIVITY "policy = \"exclusivity\"|"

SCRIPT(pages_move_while_they_are_to,
       "tick 1; status pages_moved = none; " PAGES(EXCLUSIVITY) "movers = 1; tick 3",
       "number pages_moved = 0; status pages_standing = moves; number page_backoffs = 3",
       PAGES(EXCLUSIVITY " max_mb_per_s = 1|") "movers = 1; movers_configured = 1",
       PAGES("policy = \"watch\"|") "movers = 0; status pages_tracked != none",
       "status pages_moved = none; tick 2")

/* Policy "auto" uses the mover for memory that follows a home. */
SCRIPT(a_reload_applies_to_homes,
       "tick 1; " AUTO_PAGES("") "tick 1; movers = 1; movers_configured = 0",
       AUTO_PAGES("max_mb_per_s = 1|") "movers = 1; movers_configured = 1; " PAGES(""),
       "movers = 0")

SCRIPT(policies_share_the_mover,
       "tick 1; " AUTO_PAGES(EXCLUSIVITY) "tick 1; movers = 1; " AUTO_PAGES(""),
       "tick 1; movers = 1; " AUTO_PAGES(EXCLUSIVITY) PAGES(EXCLUSIVITY),
       "tick 1; movers = 1; " PAGES("") "movers = 0")

SCRIPT(a_pause_stops_page_moves,
       PAGES(EXCLUSIVITY) "tick 2; pause = 0; movers = 0; tick 2; resume = 0; movers = 1; tick 2",
       "number pages_tracked > 0")

int main(void)
{
	umask(022);
	return RUN_REGISTERED(NULL, NULL);
}

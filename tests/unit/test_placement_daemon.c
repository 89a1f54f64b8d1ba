/* SPDX-License-Identifier: MIT */
/* Policy "auto" through every stage of the daemon in simulated time: processes get homes, their
 * memory follows, and homes that slow them are reported. */
#define SET_UP open_placement
#define TEAR_DOWN world_close

#include "../support/test.h"

#include "daemon_words.h"

/* The space of the model is that of process 1000. */
static void move_of_1000(struct nm_page_batch *batch)
{
	assert_true(batch->bulk);
	if (batch->pid != 1000)
		return;
	batch->moved = world.space.count - pages_on((unsigned)batch->to);
	batch->bytes = batch->moved * 4096;
	memset(world.space.home, batch->to, world.space.count);
	if (speed_after_move > 0)
		world.workers[0].speed = speed_after_move;
}

static void slow_move_of_1000(struct nm_page_batch *batch)
{
	move_of_1000(batch);
	batch->calls = 1;
	batch->call_ns = batch->moved * 1000000;
}

static void half_of_1000_is_the_limit(struct nm_page_batch *batch)
{
	if (batch->pid != 1000)
		return;
	world.swapped_out++;
	batch->error = -ENOSPC;
	batch->moved = 512;
	batch->bytes = 512 * 4096;
	memset(world.space.home, batch->to, 512);
}

static int batch_error;

static void end_with_error(struct nm_page_batch *batch)
{
	batch->error = batch_error;
}

static void move_nothing(struct nm_page_batch *batch)
{
	(void)batch;
}

/* mover whole, slow, half, steps, idle, or an error */
WORD(mover)
{
	fake_mover.perform = step_has(step, "whole")	? move_of_1000
			     : step_has(step, "slow")	? slow_move_of_1000
			     : step_has(step, "half")	? half_of_1000_is_the_limit
			     : step_has(step, "idle")	? move_nothing
			     : step_has(step, "steps") ? NULL
							: end_with_error;
	batch_error = step_has(step, "ENOSPC") ? -ENOSPC : -ECONNRESET;
}

static int open_placement(void **state)
{
	int r = open_words(state);
	fake_mover.perform = move_of_1000;
	return r;
}

SCRIPT(each_process_gets_a_node,
       "four_mixed_up; begin auto; run 6s; homes = 15; strays = 0; assignments = 8",
       "journal decision KIND=home POLICY=auto THREADS=2 AGE_S=*; text 2 threads, ")

SCRIPT(everything_is_restored_at_the_end,
       "four_mixed_up; begin auto; run 6s; assignments > 0; unreturned = 0; narrow = 0",
       "affinity 1000 = 255; affinity 1002 = 255; affinity 1100 = 255; affinity 1104 = 255",
       "affinity 1200 = 255; affinity 1206 = 255; affinity 1300 = 255; affinity 1308 = 255")

/* Few samples suffice to see where threads run, and first touches show nothing; other sources are
 * used fully, also if the kernel makes pages fault again. */
SCRIPT(sampling_needs_are_low, "set samples_from = faults; begin auto; run 1s; thinned = 1",
       "set numa_balancing = 1; set seen_balancing = 1; run 1s; thinned = 1",
       "set page_policy = exclusivity; run 1s; thinned = 0",
       "set page_policy = none; set policy = lbma; run 1; thinned = 0")

/* The reported interval is that between decisions while no process waits. */
SCRIPT(the_configured_interval_is_reported,
       "begin auto; run 2s; interval_s = 1; wakeup_s < 0.5; continues = 1")

WORD(busy_everywhere)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		add_worker(2000 + 100U * (uint32_t)cpu, cpu, 0);
}

WORD(young)
{
	struct worker *worker = add_worker(U(0), (int)N(1), U(2));
	fake_get(world.fake, worker->tid)->start_ticks = world.fake->now_ns / 10000000 + 5;
}

/* In its first interval it has only run for a part, which is not low demand. */
SCRIPT(demand_of_a_new_process_is_since_its_start,
       "busy_everywhere; begin auto; run 1s; young 1000 cpu0 node0; young 1000 cpu0 node0; run 1",
       "demand 1000 > 1.5")

/* Samples are about 10 ms apart, and an interval may be 100 ms long: the count of the kernel is
 * exact. */
SCRIPT(run_time_is_read_from_the_kernel,
       "thread 1000 cpu0 node0; begin auto; run 1s; lose_run 40; run 1",
       "ran_on 1000 node0 in 0.59..0.61")

/* Time of worker 0 that the kernel does not count, in thousandths of an interval. */
WORD(lose_run)
{
	world.workers[0].run_ns -= (uint64_t)(1e7 * N(0) * nm_loop_wakeup_s(&world.daemon));
}

/* Other load on the CPUs of node 1. */
WORD(run_beside)
{
	for (double until = N(0); until > 0; until -= nm_loop_wakeup_s(&world.daemon)) {
		for (int cpu = 2; cpu < 4; cpu++)
			world.busy_ticks[cpu] += (uint64_t)(1000 * nm_loop_wakeup_s(&world.daemon));
		live_one();
	}
}

/* Momentary load of a node beside the processes uses no capacity of it; continued load does. */
SCRIPT(momentary_load_reserves_no_capacity,
       "thread 1000 cpu0 node0; begin auto; run 1s; other_cpus node1 < 0.1",
       "run_beside 0.15; other_cpus node1 in 0.1..1.2; run_beside 8; other_cpus node1 > 1.8")

/* A forbidden operation is not retried in each interval. */
SCRIPT(refused_moves_are_not_repeated,
       "thread 1000 cpu0 node2; begin auto; refuse_affinities; keep before = sets; run 20s",
       "home 1000 = 2; sets in before+1..before+3; accept")

/* Lets the loop end the intervals, while all CPUs are busy. */
WORD(loop)
{
	struct nm_source_status *status = &world.daemon.pipeline.source->status;
	const uint64_t end_ns = world.fake->now_ns + (uint64_t)(N(0) * 1e9);
	while (world.fake->now_ns < end_ns) {
		double beat_s = nm_loop_wakeup_s(&world.daemon);
		spread_out();
		pass(beat_s);
		status->counts.samples += (uint64_t)(beat_s * CPUS * 1e9 / status->run_sample_ns);
		nm_drain(&world.daemon);
		nm_loop_examine(&world.daemon);
		if (!nm_loop_interval_continues(&world.daemon))
			assert_int_equal(nm_tick(&world.daemon), 0);
	}
}

WORD(one_at_home_on_each_cpu)
{
	for (unsigned i = 0; i < CPUS; i++)
		add_worker(1000 + 100 * i, (int)i, node_of_cpu((int)i));
}

SCRIPT(nothing_is_spent_where_nothing_can_be_gained,
       "one_at_home_on_each_cpu; set lazy = 1; begin auto; count_calls; loop 60",
       "keep first = new_calls; loop 10; rests = 1; keep before = intervals; count_calls; loop 60",
       "new_calls in 1..first*0.75; intervals in before+1..before+15; applied = 0; decisions = 0")

/* One of them uses memory elsewhere from now on. */
SCRIPT(something_to_gain_ends_the_rest,
       "thread 1000 cpu0 node0; thread 1100 cpu2 node1; thread 1200 cpu4 node2",
       "thread 1300 cpu6 node3; set lazy = 1; begin auto; run 70s; rests = 1",
       "set memory 0 = 2; run 20s; rests = 0")

SCRIPT(an_idle_machine_is_left_alone,
       "thread 1000 cpu0 node0; thread 1000 cpu4 node2; begin auto; run 6s",
       "home 1000 = none; reason 1000 = no-gain; applied = 0")

/* It loads its data with one thread, gets a home for that, and then computes on the whole
 * machine. */
SCRIPT(a_serial_start_does_not_bind_later_threads,
       "thread 1000 cpu0 node1; begin auto; run 8s; home 1000 = 1; thread 1000 cpu1 node0",
       "thread 1000 cpu2 node0; thread 1000 cpu3 node0; thread 1000 cpu4 node0",
       "thread 1000 cpu5 node0; thread 1000 cpu6 node0; thread 1000 cpu7 node0; run 2s",
       "home 1000 = none; affinity 1002 = 255; affinity 1003 = 255; affinity 1004 = 255",
       "affinity 1005 = 255; affinity 1006 = 255; affinity 1007 = 255; affinity 1008 = 255")

WORD(threads_on_each_cpu)
{
	for (int i = 0; i < (int)N(1); i++)
		add_worker(U(0), i % CPUS, 0);
}

/* Two threads share each CPU and are below min_run: together they use the whole machine. */
SCRIPT(light_threads_count, "threads_on_each_cpu 1000 16; begin auto; set min_run = 0.6; run 3s",
       "demand 1000 >= 7.2; running 1000 >= 8; run_s 1000 > 0")

QUANTITY(running, state_of(step)->input.running)
QUANTITY(run_s, state_of(step)->run_s)

/* Two of its CPUs per 100 ms, and process 1000 is in a group below it. */
WORD(limit_cgroup)
{
	struct fake_thread *thread = fake_get(world.fake, 1000);
	snprintf(thread->cgroup, sizeof(thread->cgroup), "/limited/one");
	world.fake->limits[world.fake->nr_limits++] =
		(struct fake_limit){.path = "/limited", .text = "200000 100000"};
}

/* Eight threads share the time of two CPUs, the limit of their cgroup. */
SCRIPT(demand_is_capped_by_the_cgroup,
       "threads_on_each_cpu 1000 8; limit_cgroup; begin auto; run 3s; run_s 1000 > 0",
       "demand 1000 = 2")

/* It reports homes, but neither refusals nor verdicts on moves that were not made. */
SCRIPT(a_dry_run_only_reports_homes,
       "four_mixed_up; set started_dry = 1; begin auto; run 12s; home 1000 in 0..3",
       "journal decision KIND=home RESULT=dry-run; none verdict PID=1000; applied = 0; failed = 0",
       "submitted = 0")

WORD(pair_cores)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		world.daemon.pipeline.topology->cpus[cpu].core = (int)cpu / 2;
}

/* Two hardware threads of one core do not count as two CPUs while there are idle cores. */
SCRIPT(siblings_do_not_count_as_cores,
       "pair_cores; thread 1000 cpu0 node2; thread 1000 cpu1 node2; begin auto; run 6s",
       "home 1000 = none; reason 1000 = larger")

/* ---- memory follows ---- */

/* One thread whose memory is on node 3; all CPUs except the second one of its node are in use, so
 * that there is no idle CPU on the node of its memory. */
WORD(away_from_full_node)
{
	make_space(1024, 3);
	struct worker *user = add_user(1000, 0, 0, 1024);
	fake_get(world.fake, user->tid)->rss_kb = 4096;
	for (int cpu = 2; cpu < CPUS; cpu++)
		add_worker(1000 + 100U * (uint32_t)cpu, cpu, node_of_cpu(cpu));
	begin_auto();
}

SCRIPT(memory_follows_the_home,
       "away_from_full_node; run 5s; home 1000 = 0; pages node0 = 1024; migration 1000 = done",
       "status pages_moved_home = 1024; status bytes_moved_home = 4M; status processes_placed >= 1",
       "keep placed = processes_placed; status homes_granted >= placed; run 6s",
       "journal verdict PID=1000 VERDICT=improved")

QUANTITY(processes_placed, status_number("processes_placed"))

WORD(slow_down_all)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		world.workers[i].speed *= N(0);
}

/* A neighbour that slows all processes does not end a home. */
SCRIPT(a_general_slowdown_is_no_verdict,
       "away_from_full_node; run 2; until home 1000 >= 0 within 58; home 1000 = 0",
       "slow_down_all 0.4; run 8s; judged 1000 = 1; home 1000 = 0")

/* On a server that has been up for days almost all unused memory is clean page cache. */
SCRIPT(page_cache_is_available, "away_from_full_node; set free_kb = 1024; run 5s; home 1000 = none",
       "reason 1000 = no-room; set cached_kb = 4M; run 5s; home 1000 = 0; pages node0 = 1024")

WORD(run_swapping)
{
	for (double until = N(0); until > 0; until -= nm_loop_wakeup_s(&world.daemon)) {
		world.swapped_out++;
		live_one();
	}
}

/* Page cache is not available while programs are swapped out for it. */
SCRIPT(memory_is_not_migrated_to_a_swapping_node,
       "away_from_full_node; set free_kb = 1024; set cached_kb = 4M; run_swapping 5",
       "home 1000 = none; reason 1000 = no-room; submitted = 0",
       "run 5s; home 1000 = 0; pages node0 = 1024")

/* Interrupted migration resumes when swapping ends, and not before. */
SCRIPT(interrupted_migration_resumes_later,
       "away_from_full_node; set free_kb = 1024; set cached_kb = 4M; mover half",
       "until pages node0 > 0 within 60; pages node0 = 512; mover whole; run_swapping 3",
       "pages node0 = 512; migration 1000 = deferred",
       "run 3s; pages node0 = 1024; migration 1000 = done; migrated 1000 = 1024")

/* Shared memory does not follow a process, so no free memory is needed for it, but its location
 * counts. */
SCRIPT(only_anonymous_memory_needs_room,
       "away_from_full_node; set rss_kb 1000 = 8M; set free_kb = 1M; run 5s; reason 1000 = larger",
       "set shared_kb 1000 = 8384512; run 15s; reason 1000 = no-gain",
       "set rss_kb 1000 = 8192; set shared_kb 1000 = 2048; run 15s; home 1000 = 0")

/* ---- memory is located ---- */

#define LIBC                                                                                       \
	"map 7f8000000000 default file=/usr/lib/libc.so mapped=4096 N0=4096 kernelpagesize_kB=4"

/* A process whose first thread touched all memory before the others ran has no memory where these
 * run. The machine is in demand, and nodes 0 and 1 have room. */
SCRIPT(memory_is_sampled_before_a_home_is_chosen, "space 1024 node1; map node1 1024; " LIBC,
       "set samples_from = faults; thread 1000 cpu0 node1; thread 1000 cpu2 node1",
       "set rss_kb 1000 = 4096; set rss_kb 1002 = 4096; thread 2000 cpu4 node2",
       "thread 2100 cpu5 node2; thread 2200 cpu6 node3; thread 2300 cpu7 node3; begin auto; run 6s",
       "home 1000 = 1")

/* A large process whose two threads run on nodes 0 and 1 of an idle machine. */
#define LARGE                                                                                      \
	"set samples_from = faults; space 1024 node3; touch 1000 0-1023 from cpu0; "               \
	"touch 1000 0-1023 from cpu2; set rss_kb 1000 = 200K; begin auto; run 1s; "

/* Until its pages have been queried. */
#define SAMPLED "asked 100 node0 412 node3; " LARGE

/* Its pages are queried once to locate its memory, and once more after the migration to its
 * home. */
SCRIPT(pages_of_a_large_process_are_asked_for,
       SAMPLED "located 1000 = 1; share 1000 node3 = 0.8046875; asked 512 node3; run 20s",
       "pages_asked = 2; home 1000 = 3; reason 1000 = remote; migration 1000 = done",
       "share 1000 node3 = 1")

/* Memory allocated since, while a thread ran elsewhere, is migrated too. */
SCRIPT(memory_allocated_elsewhere_is_migrated,
       SAMPLED "asked 512 node3; run 20s; home 1000 = 3; migration 1000 = done",
       "away_bytes 1000 < 50M; asked 300 node0 212 node3; keep before = decision 1000",
       "set rss_kb 1000 = 400K; until pages_asked >= 3 within 20s; run 1s; asked 512 node3",
       "run 10s; pages_asked = 4; away_bytes 1000 > 200M; migration 1000 = done",
       "decision 1000 = before")

/* For example buffers shared with others. The process moves to them instead. */
SCRIPT(memory_that_cannot_be_moved_ends_a_home,
       SAMPLED "asked 512 node1; until home 1000 = 3 within 20s; away_bytes 1000 > 0; run 20s",
       "memory_stays 1000 = 1; home 1000 = 1; migration 1000 = none; homes_expired = 1")

/* Pages that were not tried may still be moved, which is attempted occasionally. */
#define FAILING(error) SAMPLED "asked 512 node1; mover " error "; until home 1000 = 3 within 20s; "
#define NOT_ENDED                                                                                  \
	"away_bytes 1000 > 0; memory_stays 1000 = 0; home 1000 = 3; homes_expired = 0; "           \
	"submitted in 1..3; "

SCRIPT(a_killed_worker_does_not_end_homes,
       FAILING("ECONNRESET") "run 8s; " NOT_ENDED "mover steps; asked 512 node3; run 20s",
       "migration 1000 = done; keep anon = anon_bytes 1000; ended_bytes 1000 = anon")

QUANTITY(anon_bytes, state_of(step)->anon_bytes)
QUANTITY(ended_bytes, state_of(step)->migration.ended_bytes)

/* Other processes have used up the memory of its home. */
SCRIPT(a_full_node_does_not_end_a_home,
       FAILING("ENOSPC") "run 20s; " NOT_ENDED "mover steps; asked 512 node3; run 20s",
       "migration 1000 = done")

WORD(run_minutes)
{
	for (unsigned s = 0; s < 60 * U(0); s++)
		live_interval(1);
}

/* The pause doubles with each try that moves little, up to ten minutes. */
SCRIPT(a_full_node_is_tried_less_and_less,
       FAILING("ENOSPC") "run 1s; " NOT_ENDED "run_minutes 20; submitted in 6..8",
       "keep before = submitted; run_minutes 60; submitted in before+5..before+6; home 1000 = 3")

WORD(clear_unused_cell)
{
	const struct nm_column *column = &nm_placement_of(&world.daemon.pipeline)->processes;
	struct nm_home_state cell = {0};
	column->clear(column->context, &cell);
}

/* The cell of a process that remains is moved, and leaves zeros: 0 would be the number of all
 * processes. */
SCRIPT(an_unused_cell_drops_no_process,
       SAMPLED "keep before = drops; clear_unused_cell; drops = before")

/* A few resident pages of a large address space give no estimate. */
SCRIPT(few_resident_pages_are_no_estimate, "asked 63 node0; " LARGE "located 1000 = 0")

/* Four processes whose threads are mixed up get a node each; that of the first is not known to have
 * its memory elsewhere. */
#define UNANSWERED                                                                                 \
	"four_mixed_up; set samples_from = faults; set_all_rss 4096; set asked_hangs = 1; "

WORD(set_all_rss)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		fake_get(world.fake, world.workers[i].tid)->rss_kb = (uint64_t)N(0);
}

SCRIPT(assumed_locations_of_small_processes_are_moved,
       UNANSWERED "set rss_kb 1000 = 40K; begin auto; run 14s; home 1000 in 0..3",
       "migration 1000 = done")

SCRIPT(assumed_locations_move_few_pages,
       UNANSWERED "set rss_kb 1000 = 80K; begin auto; run 14s; home 1000 in 0..3",
       "migration 1000 = deferred; migrated 1000 = 0")

/* An unresponsive process is placed by where it runs. */
SCRIPT(an_unresponsive_process_is_placed,
       "four_mixed_up; set_all_rss 4096; set asked_hangs = 1; begin auto; run 14s",
       "home 1000 in 0..3; home 1100 in 0..3; home 1200 in 0..3; home 1300 in 0..3")

/* RssAnon does not include them, and no other node has enough free memory. */
SCRIPT(huge_pages_of_the_pool_keep_a_process,
       "map node0 1024; map 7f4000000000 default file=/anon_hugepage\\040(deleted) huge anon=512 "
       "dirty=512 N1=512 kernelpagesize_kB=2048",
       "set samples_from = faults; thread 1000 cpu0 node1; set rss_kb 1000 = 4096; begin auto",
       "run 1s; share 1000 node1 > 0.99; home_bytes 1000 = 1028M; run 6s; home 1000 = 1")

/* A process stays where it runs, because its memory is not known. That memory is bound, and found
 * elsewhere later: the process goes there. */
SCRIPT(bound_memory_that_is_found_late_is_followed,
       "set samples_from = faults; thread 1000 cpu0 node1; set rss_kb 1000 = 4096; begin auto",
       "mover idle; run 10s; home 1000 = none",
       "map 7f0000000000 bind:1 anon=1024 dirty=1024 N1=1024 kernelpagesize_kB=4",
       "until home 1000 = 1 within 60s")

/* ---- the cost of moves ---- */

/* Of all 1,024 pages; a thread at distance 21 loses 13 s per minute. */
ACTION(moves_cost_s, nm_placement_of(&world.daemon.pipeline)->page_cost.page_ns = N(0) / 2 / 1024 * 1e9)

#define FINALLY_MIGRATED "run 30s; home 1000 = 0; migration 1000 = done; pages node0 = 1024"

/* As long as pages take longer to move than a home could save, none is assigned. */
SCRIPT(expensive_memory_delays_a_home,
       "away_from_full_node; run 1; moves_cost_s 20; run 30s; home 1000 = none",
       "reason 1000 = too-costly; moves_cost_s 0.1; " FINALLY_MIGRATED)

/* Earlier moves have taken longer than estimated. */
SCRIPT(memory_found_expensive_is_migrated_later,
       "away_from_full_node; set mover_full = 1; run 2; until home 1000 >= 0 within 18",
       "migration 1000 = ready; set mover_full = 0; moves_cost_s 48; run 1",
       "migration 1000 = deferred; pages node0 = 0; " FINALLY_MIGRATED)

static double cost_ratio(void)
{
	double cost_ns = nm_placement_of(&world.daemon.pipeline)->page_cost.page_ns;
	return nm_place_migration_cost_s(cost_ns, 4096) / nm_place_migration_cost_s(0, 4096);
}

/* Of the cost of a page to the initial estimate. */
QUANTITY(cost_ratio, cost_ratio())

/* The cost of moves is learned from those that were made: 1 ms a page, of which four times the
 * initial estimate is believed. */
SCRIPT(the_cost_of_moves_is_learned,
       "away_from_full_node; mover slow; run 5s; pages node0 = 1024; cost_ratio > 3.9")

/* hand_over 8M: four processes wait for the migration of this much memory each. */
WORD(hand_over)
{
	struct nm_placement *placement = nm_placement_of(&world.daemon.pipeline);
	assert_int_equal(placement->processes.count, 4);
	for (size_t i = 0; i < placement->processes.count; i++) {
		nm_home_state_at(placement, i)->lost_s = 1e6;
		nm_home_state_at(placement, i)->migration = (struct nm_memory_migration){0};
		nm_home_state_at(placement, i)->migration =
			(struct nm_memory_migration){.state = NM_MIGRATION_READY,
						     .away_bytes = (uint64_t)N(0),
						     .away_distance = 20};
	}
	nm_home_migrate(&(struct nm_home_memory){.platform = &world.fake->platform,
						 .topology = world.daemon.pipeline.topology,
						 .placement = placement,
						 .mover = world.daemon.pipeline.mover},
			0);
}

/* The mover always has work; more batches wait here, as they may still turn out to be too
 * expensive. First the cost of a page is unknown, then it is 5 us. */
SCRIPT(the_mover_queue_is_kept_short,
       "four_mixed_up; begin auto; run 6s; set mover_asleep = 1; keep n = submitted",
       "set page_ns = 0; hand_over 100M; submitted = n+1; hand_over 8M; submitted = n+3",
       "set page_ns = 0; hand_over 1M; submitted = n+7",
       "set page_ns = 5000; hand_over 1G; submitted = n+9; set page_ns = 5000; hand_over 40M",
       "submitted = n+11; set page_ns = 5000; hand_over 20M; submitted = n+15")

/* ---- the kernel, and verdicts ---- */

/* Memory is migrated once; pages that move later are left to the kernel, whose balancing is enabled
 * after the start. */
SCRIPT(memory_moves_once_beside_numa_balancing,
       "away_from_full_node; set numa_balancing = 1; run 6s; home 1000 = 0; pages node0 = 1024",
       "keep before = submitted; put 0-511 node2; run 10s; submitted = before; pages node2 = 512")

/* It promotes hot pages and demotes cold ones, but does not move pages between ordinary nodes. */
SCRIPT(balancing_of_tiers_brings_no_memory,
       "away_from_full_node; set numa_balancing = 2; set seen_balancing = 2; run 5s",
       "home 1000 = 0; pages node0 = 1024")

/* A verdict on a home reports, and the home stays. */
SCRIPT(a_harmful_home_is_reported, "away_from_full_node; set speed_after_move = 0.2",
       "until journaled verdict PID=1000 = 1 within 60; journal verdict PID=1000 VERDICT=worse",
       "home 1000 = 0; pages node0 = 1024; status verdicts_worse = 1")

WORD(start_program)
{
	const struct nm_task_event exec = {.kind = NM_TASK_EXEC, .pid = U(0), .tid = U(0)};
	nm_tasks_task_event(world.daemon.pipeline.tasks, &exec, world.fake->now_ns);
}

/* The start of a program is no baseline for its home. */
SCRIPT(the_start_of_a_program_is_not_a_baseline,
       "away_from_full_node; set speed_after_move = 0.2; run 1s; start_program 1000; run 12s",
       "journal verdict PID=1000 VERDICT=unverified")

RUN_TESTS()

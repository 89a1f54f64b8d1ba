/* SPDX-License-Identifier: MIT */
/* Threads, CPUs and processes of a snapshot. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"
#include "../support/script.h"

static struct machine *machine; /* four nodes of two CPUs */
static struct nm_snapshot *snapshot;
static struct skipped {
	size_t sampled, managed; /* the first of each are not passed on */
	bool load;
} skipped;

static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	snapshot = NULL;
	skipped = (struct skipped){0};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_snapshot_free(snapshot);
	machine_free(machine);
	return 0;
}

static int build(void)
{
	struct nm_snapshot_input input = machine_input(machine);
	input.sampled += skipped.sampled;
	input.nr_sampled -= skipped.sampled;
	input.managed += skipped.managed;
	input.nr_managed -= skipped.managed;
	input.busy_share = skipped.load ? NULL : input.busy_share;
	nm_snapshot_free(NM_TAKE(snapshot));
	int r = nm_snapshot_build(&input, &snapshot);
	assert_true((snapshot != NULL) == (r == 0));
	return r;
}

static const struct nm_snapshot *take(void)
{
	assert_int_equal(build(), 0);
	return snapshot;
}

/* ---- words: the first number is a thread, by its index, or a CPU ---- */

#define THREAD (&take()->threads[U(0)])
#define CPU (&take()->cpus[U(0)])
#define STATS machine->sampled[U(0)].stats
#define MANAGED machine->managed[U(0)]
#define CPU_OF machine->topology->cpus[U(0)]

/* thread 10 cpu2 node3: of this process, with its memory on the node */
ACTION(thread, (void)machine_thread(machine, U(0), (int)N(1), (int)N(2)))
ACTION(run_on, machine_run_on(machine, U(0), (int)N(1)))
ACTION(touch, machine_touch(machine, U(0), U(1), N(2)))
ACTION(paper, machine_paper(&machine->config))
ACTION(memory_only, machine_take_cpus(machine, U(0), U(1)))
ACTION(not_usable, hwloc_bitmap_clr(machine->topology->usable, U(0)))

WORD(unknown_accesses)
{
	for (unsigned k = 0; k < 4; k++)
		machine->accesses[k] = NAN;
	STATS.access_total = NAN;
}

KNOB(skipped_samples, skipped.sampled)
KNOB(skipped_threads, skipped.managed)
KNOB(no_load, skipped.load)
KNOB(warmup_s, machine->config.rules.warmup_s)
KNOB(sampled_pid, machine->sampled[U(0)].pid)
KNOB(sampled_cpu, STATS.main_cpu)
KNOB(run_share, STATS.run_share)
KNOB(home_share, STATS.main_node_share)
KNOB(latency, STATS.latency)
KNOB(latency_samples, STATS.latency_samples)
KNOB(adopted_ns, MANAGED.adopted_ns)
KNOB(backoff_until, MANAGED.backoff_until)
KNOB(delayed_until, MANAGED.delayed_until)
KNOB(distance, machine->topology->distance[U(0) * 4 + U(1)])
KNOB(core, CPU_OF.core)
KNOB(cpu_node, CPU_OF.node)
KNOB(online, CPU_OF.online)
KNOB(busy, machine->busy[U(0)])

QUANTITY(build, build())
QUANTITY(threads, take()->nr_threads)
QUANTITY(main_cpu, THREAD->stats.main_cpu)
QUANTITY(main_node, THREAD->stats.main_node)
QUANTITY(preferred, THREAD->preferred)
QUANTITY(local_share, THREAD->local_share)
QUANTITY(accesses, THREAD->stats.accesses[U(1)])
QUANTITY(fresh, THREAD->stats.fresh[U(1)])
QUANTITY(total, THREAD->stats.access_total)
QUANTITY(valid, THREAD->valid)
QUANTITY(movable, THREAD->movable)
QUANTITY(share_of_all, nm_snapshot_local_share(take()))
QUANTITY(latency_of_all, nm_snapshot_latency(take()))
QUANTITY(free, CPU->free)
QUANTITY(usable, CPU->usable)
QUANTITY(node, CPU->node)
QUANTITY(sibling_busy, CPU->sibling_busy)
QUANTITY(main_threads, CPU->nr_main_threads)
QUANTITY(first_main, CPU->first_main_thread)

/* ---- threads ---- */

TEST(metrics_are_copied)
{
	machine_thread(machine, 10, 2, 3);
	machine_touch(machine, 0, 1, 300);
	const struct nm_snap_thread *thread = &take()->threads[0];
	machine->accesses[3] = 7;
	assert_true(thread->stats.accesses[3] == 100);
}

SCRIPT(a_thread_has_its_metrics,
       "thread 10 cpu2 node3; touch 0 node1 300; main_cpu 0 = 2; main_node 0 = 1",
       "accesses 0 node3 = 100; accesses 0 node1 = 300; fresh 0 node3 = 100; total 0 = 400",
       "local_share 0 = 0.75; valid 0 = 1; movable 0 = 1")

SCRIPT(a_member_without_metrics_has_no_home,
       "thread 10 cpu2 node3; thread 10 cpu3 node3; set skipped_samples = 1; main_cpu 0 = -1",
       "main_node 0 = -1; preferred 0 = -1; local_share 0 = nan; accesses 0 node3 = 0",
       "valid 0 = 0; valid 1 = 1; set skipped_samples = 2; main_cpu 1 = -1")

SCRIPT(metrics_of_another_process_do_not_match,
       "thread 10 cpu2 node3; set sampled_pid 0 = 11; main_cpu 0 = -1")

SCRIPT(metrics_of_unmanaged_threads_are_skipped,
       "thread 10 cpu2 node3; thread 10 cpu3 node2; set skipped_threads = 1; threads = 1",
       "main_cpu 0 = 3; main_threads cpu2 = 0")

SCRIPT(validity_needs_run_time_samples_and_a_home,
       "thread 10 cpu2 node3; set run_share 0 = 0.1; touch 0 node3 10; valid 0 = 1",
       "touch 0 node3 9.9; valid 0 = 0; touch 0 node3 10; set run_share 0 = 0.099; valid 0 = 0",
       "set run_share 0 = nan; valid 0 = 0; set run_share 0 = 0.5; set home_share 0 = 0.79",
       "valid 0 = 0; main_node 0 = -1; main_cpu 0 = 2; set home_share 0 = 0.8; valid 0 = 1")

SCRIPT(the_paper_wants_one_sample_and_any_home,
       "paper; thread 10 cpu2 node3; touch 0 node3 1; set run_share 0 = 0.001",
       "set home_share 0 = 0.3; valid 0 = 1; touch 0 node3 0; valid 0 = 0")

SCRIPT(unavailable_accesses_give_no_preference,
       "thread 10 cpu2 node3; unknown_accesses 0; preferred 0 = -1; local_share 0 = nan",
       "total 0 = nan; accesses 0 node3 = 0; valid 0 = 0")

SCRIPT(an_absent_cpu_is_not_a_home, "thread 10 cpu2 node3; set sampled_cpu 0 = 8; main_cpu 0 = -1",
       "set sampled_cpu 0 = 2; set cpu_node cpu2 = -1; main_cpu 0 = -1")

/* At 1000 s, in interval 100. */
SCRIPT(warm_up_and_bars_keep_a_thread_still,
       "thread 10 cpu2 node3; set warmup_s = 5; set adopted_ns 0 = 995000000000; movable 0 = 1",
       "set adopted_ns 0 = 995000000001; movable 0 = 0",
       "set adopted_ns 0 = 1000000000001; movable 0 = 0; set adopted_ns 0 = 0",
       "set backoff_until 0 = 100; movable 0 = 1; set backoff_until 0 = 101; movable 0 = 0",
       "set backoff_until 0 = 0; set delayed_until 0 = 100; movable 0 = 1",
       "set delayed_until 0 = 101; movable 0 = 0")

SCRIPT(ties_go_to_the_nearest_then_lowest_node,
       "thread 10 cpu4 node0; touch 0 node1 100; touch 0 node3 100; preferred 0 = node0",
       "set distance node2 node3 = 15; preferred 0 = node3",
       "set distance node2 node1 = 15; preferred 0 = node1; run_on 0 -1; preferred 0 = node0",
       "touch 0 node3 101; preferred 0 = node3")

SCRIPT(a_memory_only_node_counts_as_its_nearest_node,
       "memory_only node3 node1; thread 10 cpu0 node3; touch 0 node0 50; preferred 0 = node1",
       "accesses 0 node1 = 100; accesses 0 node3 = 0; fresh 0 node1 = 100",
       "run_on 0 cpu2; local_share 0 in 0.6666..0.6667")

/* A thread without a home has no local accesses. */
SCRIPT(a_display_shows_the_mean_of_all_threads,
       "share_of_all = nan; latency_of_all = nan; thread 10 cpu2 node3; touch 0 node1 300",
       "thread 10 cpu6 node3; thread 10 -1 node0; thread 10 cpu0 -1; share_of_all = 0.8",
       "set latency 0 = 300; set latency_samples 0 = 10; set latency 1 = 600",
       "set latency_samples 1 = 20; latency_of_all = 500")

/* ---- CPUs ---- */

SCRIPT(an_idle_cpu_without_main_threads_is_free,
       "thread 10 cpu2 node3; set busy cpu2 = 0; set busy cpu3 = 0.049; set busy cpu4 = 0.05",
       "set busy cpu5 = nan; set online cpu6 = 0; not_usable cpu6; not_usable cpu7",
       "free cpu2 = 0; main_threads cpu2 = 1; free cpu3 = 1; free cpu4 = 0; free cpu5 = 0",
       "node cpu6 = -1; usable cpu6 = 0; node cpu7 = 3; usable cpu7 = 0; free cpu7 = 0")

SCRIPT(without_load_no_cpu_is_free,
       "free cpu0 = 1; free cpu7 = 1; set no_load = 1; free cpu0 = 0; free cpu1 = 0; free cpu2 = 0",
       "free cpu3 = 0; free cpu4 = 0; free cpu5 = 0; free cpu6 = 0; free cpu7 = 0")

SCRIPT(siblings_see_each_other_not_themselves,
       "set core cpu1 = 0; set core cpu3 = 2; set core cpu5 = -1; set busy cpu0 = 0.5",
       "set busy cpu5 = 0.5; sibling_busy cpu0 = 0; sibling_busy cpu1 = 1; free cpu1 = 1",
       "sibling_busy cpu2 = 0; sibling_busy cpu3 = 0; sibling_busy cpu5 = 0",
       "set busy cpu1 = 0.5; sibling_busy cpu0 = 1")

TEST(main_threads_are_grouped_in_order)
{
	static const int cpus[] = {5, 1, -1, 5, 1, 0};
	static const uint32_t expected[] = {5, 1, 4, 0, 3};
	static const char *const lines[] = {
		"main_threads cpu0 = 1; first_main cpu1 = 1; first_main cpu5 = 3",
		"main_threads cpu5 = 2; main_threads cpu7 = 0", NULL};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cpus); i++)
		machine_thread(machine, 10, cpus[i], 0);
	assert_memory_equal(take()->main_threads, expected, sizeof(expected));
	run_script(lines);
}

/* ---- processes ---- */

TEST(processes_gather_their_threads)
{
	machine_thread(machine, 20, 0, 0);
	machine_thread(machine, 10, 1, 0);
	machine_thread(machine, 20, 2, 0);
	take();
	assert_int_equal(snapshot->nr_processes, 2);
	assert_int_equal(snapshot->threads[0].process, snapshot->threads[2].process);
	const struct nm_snap_process *process = &snapshot->processes[snapshot->threads[2].process];
	assert_int_equal(process->pid, 20);
	assert_int_equal(process->uid, 1000);
	assert_int_equal(process->threads, 2);
	machine_process(machine, 20)->comm[0] = '!';
	assert_string_equal(process->comm, "prog20");
}

SCRIPT(an_impossible_pid_is_refused, "thread 4194304 cpu0 node0; build = ERANGE")

RUN_TESTS()

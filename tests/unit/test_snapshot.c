/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"

static struct machine *machine;
static struct nm_snapshot *snapshot;

static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	snapshot = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_snapshot_free(snapshot);
	machine_free(machine);
	return 0;
}

static const struct nm_snap_thread *take(size_t index)
{
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	return &snapshot->threads[index];
}

TEST(metrics_are_copied)
{
	machine_thread(machine, 10, 2, 3);
	machine_touch(machine, 0, 1, 300);
	const struct nm_snap_thread *thread = take(0);
	machine->accesses[3] = 7;
	assert_int_equal(thread->stats.main_cpu, 2);
	assert_int_equal(thread->stats.main_node, 1);
	assert_true(thread->stats.accesses[3] == 100 && thread->stats.accesses[1] == 300);
	assert_int_equal(thread->stats.fresh[3], 100);
	assert_true(thread->stats.access_total == 400);
	assert_true(thread->local_share == 0.75);
	assert_true(thread->valid);
	assert_true(thread->movable);
}

TEST(a_member_without_metrics_has_no_home)
{
	machine_thread(machine, 10, 2, 3);
	machine_thread(machine, 10, 3, 3);
	struct nm_snapshot_input input = machine_input(machine);
	input.sampled++;
	input.nr_sampled--;
	assert_int_equal(nm_snapshot_build(&input, &snapshot), 0);
	const struct nm_snap_thread *thread = &snapshot->threads[0];
	assert_int_equal(thread->stats.main_cpu, -1);
	assert_int_equal(thread->stats.main_node, -1);
	assert_int_equal(thread->preferred, -1);
	assert_true(isnan(thread->local_share));
	assert_true(thread->stats.accesses[3] == 0);
	assert_false(thread->valid);
	assert_true(snapshot->threads[1].valid);
	nm_snapshot_free(snapshot);
	input.nr_sampled = 0;
	assert_int_equal(nm_snapshot_build(&input, &snapshot), 0);
	assert_int_equal(snapshot->threads[1].stats.main_cpu, -1);
}

TEST(metrics_of_another_process_do_not_match)
{
	machine_thread(machine, 10, 2, 3);
	machine->sampled[0].pid = 11;
	assert_int_equal(take(0)->stats.main_cpu, -1);
}

TEST(metrics_of_unmanaged_threads_are_skipped)
{
	machine_thread(machine, 10, 2, 3);
	machine_thread(machine, 10, 3, 2);
	struct nm_snapshot_input input = machine_input(machine);
	input.managed++;
	input.nr_managed--;
	assert_int_equal(nm_snapshot_build(&input, &snapshot), 0);
	assert_int_equal(snapshot->nr_threads, 1);
	assert_int_equal(snapshot->threads[0].stats.main_cpu, 3);
	assert_int_equal(snapshot->cpus[2].nr_main_threads, 0);
}

TEST(validity_needs_run_time_samples_and_a_home)
{
	machine_thread(machine, 10, 2, 3);
	machine->sampled[0].stats.run_share = 0.1;
	machine_touch(machine, 0, 3, 10);
	assert_true(take(0)->valid);
	machine_touch(machine, 0, 3, 9.9);
	assert_false(take(0)->valid);
	machine_touch(machine, 0, 3, 10);
	machine->sampled[0].stats.run_share = 0.099;
	assert_false(take(0)->valid);
	machine->sampled[0].stats.run_share = NAN;
	assert_false(take(0)->valid);
	machine->sampled[0].stats.run_share = 0.5;
	machine->sampled[0].stats.main_node_share = 0.79;
	assert_false(take(0)->valid);
	assert_int_equal(snapshot->threads[0].stats.main_node, -1);
	assert_int_equal(snapshot->threads[0].stats.main_cpu, 2);
	machine->sampled[0].stats.main_node_share = 0.8;
	assert_true(take(0)->valid);
}

TEST(the_paper_wants_one_sample_and_any_home)
{
	machine_paper(&machine->config);
	machine_thread(machine, 10, 2, 3);
	machine_touch(machine, 0, 3, 1);
	machine->sampled[0].stats.run_share = 0.001;
	machine->sampled[0].stats.main_node_share = 0.3;
	assert_true(take(0)->valid);
	machine_touch(machine, 0, 3, 0);
	assert_false(take(0)->valid);
}

TEST(unavailable_accesses_give_no_preference)
{
	machine_thread(machine, 10, 2, 3);
	for (unsigned k = 0; k < 4; k++)
		machine->accesses[k] = NAN;
	machine->sampled[0].stats.access_total = NAN;
	const struct nm_snap_thread *thread = take(0);
	assert_int_equal(thread->preferred, -1);
	assert_true(isnan(thread->local_share));
	assert_true(isnan(thread->stats.access_total));
	assert_true(thread->stats.accesses[3] == 0);
	assert_false(thread->valid);
}

TEST(an_absent_cpu_is_not_a_home)
{
	machine_thread(machine, 10, 2, 3);
	machine->sampled[0].stats.main_cpu = 8;
	assert_int_equal(take(0)->stats.main_cpu, -1);
	machine->sampled[0].stats.main_cpu = 2;
	machine->topology->cpus[2].node = -1;
	assert_int_equal(take(0)->stats.main_cpu, -1);
}

TEST(warm_up_and_bars_keep_a_thread_still)
{
	machine->config.rules.warmup_s = 5;
	machine_thread(machine, 10, 2, 3);
	machine->managed[0].adopted_ns = machine->now_ns - 5 * MACHINE_SECOND;
	assert_true(take(0)->movable);
	machine->managed[0].adopted_ns++;
	assert_false(take(0)->movable);
	machine->managed[0].adopted_ns = machine->now_ns + 1;
	assert_false(take(0)->movable);
	machine->managed[0].adopted_ns = 0;
	machine->managed[0].backoff_until = machine->interval;
	assert_true(take(0)->movable);
	machine->managed[0].backoff_until = machine->interval + 1;
	assert_false(take(0)->movable);
	machine->managed[0].backoff_until = 0;
	machine->managed[0].delayed_until = machine->interval;
	assert_true(take(0)->movable);
	machine->managed[0].delayed_until = machine->interval + 1;
	assert_false(take(0)->movable);
}

TEST(ties_go_to_the_nearest_then_lowest_node)
{
	machine_thread(machine, 10, 4, 0);
	machine_touch(machine, 0, 1, 100);
	machine_touch(machine, 0, 3, 100);
	assert_int_equal(take(0)->preferred, 0);
	machine->topology->distance[2 * 4 + 3] = 15;
	assert_int_equal(take(0)->preferred, 3);
	machine->topology->distance[2 * 4 + 1] = 15;
	assert_int_equal(take(0)->preferred, 1);
	machine_run_on(machine, 0, -1);
	assert_int_equal(take(0)->preferred, 0);
	machine_touch(machine, 0, 3, 101);
	assert_int_equal(take(0)->preferred, 3);
}

TEST(a_memory_only_node_counts_as_its_nearest_node)
{
	machine_take_cpus(machine, 3, 1);
	machine_thread(machine, 10, 0, 3);
	machine_touch(machine, 0, 0, 50);
	const struct nm_snap_thread *thread = take(0);
	assert_int_equal(thread->preferred, 1);
	assert_true(thread->stats.accesses[1] == 100);
	assert_true(thread->stats.accesses[3] == 0);
	assert_int_equal(thread->stats.fresh[1], 100);
	machine_run_on(machine, 0, 2);
	assert_true(take(0)->local_share == 100.0 / 150);
}

TEST(an_idle_cpu_without_main_threads_is_free)
{
	machine_thread(machine, 10, 2, 3);
	machine->busy[2] = 0;
	machine->busy[3] = 0.049;
	machine->busy[4] = 0.05;
	machine->busy[5] = NAN;
	machine->topology->cpus[6].online = false;
	hwloc_bitmap_clr(machine->topology->usable, 6);
	hwloc_bitmap_clr(machine->topology->usable, 7);
	take(0);
	assert_false(snapshot->cpus[2].free);
	assert_int_equal(snapshot->cpus[2].nr_main_threads, 1);
	assert_true(snapshot->cpus[3].free);
	assert_false(snapshot->cpus[4].free);
	assert_false(snapshot->cpus[5].free);
	assert_int_equal(snapshot->cpus[6].node, -1);
	assert_false(snapshot->cpus[6].usable);
	assert_int_equal(snapshot->cpus[7].node, 3);
	assert_false(snapshot->cpus[7].usable);
	assert_false(snapshot->cpus[7].free);
}

TEST(without_load_no_cpu_is_free)
{
	struct nm_snapshot_input input = machine_input(machine);
	input.busy_share = NULL;
	assert_int_equal(nm_snapshot_build(&input, &snapshot), 0);
	for (unsigned cpu = 0; cpu < 8; cpu++)
		assert_false(snapshot->cpus[cpu].free);
}

TEST(siblings_see_each_other_not_themselves)
{
	machine->topology->cpus[1].core = 0;
	machine->topology->cpus[3].core = machine->topology->cpus[2].core;
	machine->topology->cpus[5].core = -1;
	machine->busy[0] = 0.5;
	machine->busy[5] = 0.5;
	take(0);
	assert_false(snapshot->cpus[0].sibling_busy);
	assert_true(snapshot->cpus[1].sibling_busy);
	assert_true(snapshot->cpus[1].free);
	assert_false(snapshot->cpus[2].sibling_busy);
	assert_false(snapshot->cpus[3].sibling_busy);
	assert_false(snapshot->cpus[5].sibling_busy);
	machine->busy[1] = 0.5;
	take(0);
	assert_true(snapshot->cpus[0].sibling_busy);
}

TEST(main_threads_are_grouped_in_order)
{
	const int cpus[] = {5, 1, -1, 5, 1, 0};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cpus); i++)
		machine_thread(machine, 10, cpus[i], 0);
	take(0);
	const uint32_t expected[] = {5, 1, 4, 0, 3};
	assert_memory_equal(snapshot->main_threads, expected, sizeof(expected));
	assert_int_equal(snapshot->cpus[0].nr_main_threads, 1);
	assert_int_equal(snapshot->cpus[1].first_main_thread, 1);
	assert_int_equal(snapshot->cpus[5].first_main_thread, 3);
	assert_int_equal(snapshot->cpus[5].nr_main_threads, 2);
	assert_int_equal(snapshot->cpus[7].nr_main_threads, 0);
}

TEST(processes_gather_their_threads)
{
	machine_thread(machine, 20, 0, 0);
	machine_thread(machine, 10, 1, 0);
	machine_thread(machine, 20, 2, 0);
	take(0);
	assert_int_equal(snapshot->nr_processes, 2);
	assert_int_equal(snapshot->threads[0].process, snapshot->threads[2].process);
	const struct nm_snap_process *process = &snapshot->processes[snapshot->threads[2].process];
	assert_int_equal(process->pid, 20);
	assert_int_equal(process->uid, 1000);
	assert_int_equal(process->threads, 2);
	assert_string_equal(process->comm, "prog20");
	machine_process(machine, 20)->comm[0] = '!';
	assert_string_equal(process->comm, "prog20");
}

TEST(an_impossible_pid_is_refused)
{
	machine_thread(machine, 1U << 22, 0, 0);
	struct nm_snapshot_input input = machine_input(machine);
	assert_int_equal(nm_snapshot_build(&input, &snapshot), -ERANGE);
	assert_null(snapshot);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* From samples of managed processes to pages, sharing, and pages to move. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "../support/machine.h"
#include "../support/sharing.h"
#include "observe/memory.h"

#define ADDRESS 0x7f0000000000ULL

static const uint64_t key[4] = {3, 1, 4, 1};
static struct nm_config *config;
static struct nm_topology *topology;
static struct nm_memory *memory;
static uint32_t now_s;

/* Two nodes of two CPUs; the paper's rule. */
static int set_up(void **state)
{
	(void)state;
	topology = machine_topology(2, 4);
	if (!topology || nm_config_default(&config) < 0)
		return -1;
	config->rules.paper = true;
	config->threads.policy = NM_POLICY_KMAF;
	config->rules.page_min_accesses = 0;
	config->rules.page_cooldown_s = 0;
	now_s = 100;
	nm_memory_new(topology, config, key, &memory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_memory_free(memory);
	nm_config_free(config);
	nm_topology_free(topology);
	return 0;
}

struct thread {
	uint32_t tid, pid;
};

/* Their start times are their numbers. */
static void follow(const struct thread *threads, size_t count)
{
	struct nm_snap_thread snap_threads[4] = {0};
	struct nm_snap_process processes[4] = {0};
	struct nm_snapshot snapshot = {.threads = snap_threads, .processes = processes};

	for (size_t i = 0; i < count; i++) {
		size_t k = 0;
		while (k < snapshot.nr_processes && processes[k].pid != threads[i].pid)
			k++;
		if (k == snapshot.nr_processes)
			processes[snapshot.nr_processes++].pid = threads[i].pid;
		processes[k].threads++;
		snap_threads[snapshot.nr_threads++] =
			(struct nm_snap_thread){.tid = threads[i].tid,
						.pid = threads[i].pid,
						.start_ticks = threads[i].pid};
	}
	nm_memory_follow(memory, &snapshot);
}

/* Two processes: 10 with threads 10 and 12, and 11. */
static void follow_two(void)
{
	const struct thread threads[] = {{10, 10}, {11, 11}, {12, 10}};

	follow(threads, 3);
}

static struct nm_sample sample_of(uint32_t pid, uint32_t tid, uint32_t cpu, uint64_t address)
{
	return (struct nm_sample){.kind = NM_EVENT_MEMORY,
				  .pid = pid,
				  .tid = tid,
				  .cpu = cpu,
				  .time_ns = now_s * NM_NSEC_PER_SEC,
				  .address = address,
				  .page_node = 1};
}

static void access_memory(uint32_t pid, uint32_t tid, uint32_t cpu, uint64_t address)
{
	struct nm_sample sample = sample_of(pid, tid, cpu, address);

	nm_memory_add(memory, &sample);
}

static uint64_t count_pages(void)
{
	nm_memory_flush(memory);
	return nm_pages_counts(nm_memory_pages(memory)).tracked;
}

static const struct nm_memory_process *process_of(uint32_t pid)
{
	return nm_memory_process(memory, pid);
}

static size_t count_wanted(const struct nm_memory_wanted **ret)
{
	nm_memory_flush(memory);
	return nm_memory_wanted(memory, ret);
}

/* ---- followed processes ---- */

TEST(test_processes)
{
	const struct nm_memory_process *processes;

	follow_two();
	assert_int_equal(nm_memory_processes(memory, &processes), 2);
	assert_int_equal(processes[0].pid, 10);
	assert_int_equal(processes[0].threads, 2);
	assert_true(processes[1].pid == 11 && processes[1].threads == 1);
	assert_true(processes[0].owner && processes[0].owner != processes[1].owner);
}

TEST(test_only_the_managed_are_counted)
{
	follow_two();
	access_memory(10, 10, 0, ADDRESS);
	access_memory(99, 99, 0, ADDRESS);
	assert_int_equal(count_pages(), 1);
}

TEST(test_only_accesses_are_counted)
{
	struct nm_sample sample;

	follow_two();
	sample = sample_of(10, 10, 0, ADDRESS);
	sample.kind = NM_EVENT_CYCLES;
	nm_memory_add(memory, &sample);
	sample = sample_of(10, 10, 0, 0);
	nm_memory_add(memory, &sample);
	sample = sample_of(10, 10, 4, ADDRESS);
	nm_memory_add(memory, &sample);
	assert_int_equal(count_pages(), 0);
	sample = sample_of(10, 10, 0, ADDRESS);
	sample.kind = NM_EVENT_STORE;
	nm_memory_add(memory, &sample);
	sample = sample_of(10, 10, 0, ADDRESS + 4096);
	sample.kind = NM_EVENT_FAULT_MIN;
	nm_memory_add(memory, &sample);
	assert_int_equal(count_pages(), 2);
}

TEST(test_following_again_keeps_pages)
{
	follow_two();
	uint16_t owner = process_of(10)->owner;
	access_memory(10, 10, 0, ADDRESS);
	follow_two();
	assert_int_equal(process_of(10)->owner, owner);
	assert_int_equal(count_pages(), 1);
}

TEST(test_exited_processes_have_no_pages)
{
	const struct thread rest[] = {{11, 11}};

	follow_two();
	access_memory(10, 10, 0, ADDRESS);
	access_memory(11, 11, 0, ADDRESS);
	follow(rest, 1);
	assert_int_equal(count_pages(), 1);
	assert_null(process_of(10));
	access_memory(10, 10, 0, ADDRESS);
	assert_int_equal(count_pages(), 1);
	assert_int_equal(nm_affinity_id(nm_memory_affinity(memory), 12), 0);
	follow(NULL, 0);
	assert_int_equal(count_pages(), 0);
}

static void task(enum nm_task_event_kind kind, uint32_t pid, uint32_t tid)
{
	struct nm_task_event event = {.kind = kind, .pid = pid, .tid = tid};

	nm_memory_task_event(memory, &event);
}

TEST(test_the_last_exit_drops_pages)
{
	follow_two();
	access_memory(10, 10, 0, ADDRESS);
	task(NM_TASK_EXIT, 10, 10);
	task(NM_TASK_EXIT, 10, 10); /* a second exit changes nothing */
	assert_int_equal(count_pages(), 1);
	task(NM_TASK_EXIT, 10, 12);
	assert_int_equal(count_pages(), 0);
	access_memory(10, 10, 0, ADDRESS);
	assert_int_equal(count_pages(), 0);
	task(NM_TASK_EXIT, 77, 77);
}

TEST(test_exec_drops_pages)
{
	follow_two();
	nm_memory_mapping_over(memory, 11, true);
	assert_false(process_of(11)->held);
	access_memory(11, 11, 0, ADDRESS);
	task(NM_TASK_COMM, 11, 11);
	assert_int_equal(count_pages(), 1);
	task(NM_TASK_EXEC, 11, 11);
	assert_int_equal(count_pages(), 0);
	assert_null(process_of(11));
	follow_two();
	assert_true(process_of(11)->held);
	access_memory(11, 11, 0, ADDRESS);
	assert_int_equal(count_pages(), 1);
}

TEST(test_reused_process_number)
{
	const struct thread before[] = {{10, 10}, {12, 10}, {13, 10}};
	const struct thread after[] = {{10, 10}, {12, 12}, {13, 10}};
	struct nm_affinity *affinity = nm_memory_affinity(memory);

	follow(before, 3);
	access_memory(10, 10, 0, ADDRESS);
	access_memory(10, 12, 0, ADDRESS);
	nm_memory_flush(memory);
	assert_int_equal(sharing_between(affinity, 10, 12), NM_SHARING_STEP);
	follow(after, 3);
	assert_int_equal(sharing_between(affinity, 10, 12), 0);
	assert_int_equal(process_of(10)->threads, 2);
}

/* ---- sharing and moving ---- */

/* A sample of another ring may be older than the last one: time does not go back. */
TEST(test_time)
{
	follow_two();
	access_memory(10, 10, 0, ADDRESS);
	now_s -= 5;
	access_memory(10, 12, 0, ADDRESS);
	nm_memory_flush(memory);
	assert_int_equal(sharing_between(nm_memory_affinity(memory), 10, 12), NM_SHARING_STEP);
	now_s += 5 + 11;
	access_memory(10, 10, 0, ADDRESS);
	nm_memory_flush(memory);
	assert_int_equal(sharing_between(nm_memory_affinity(memory), 10, 12), NM_SHARING_STEP);
}

TEST(test_sharing)
{
	follow_two();
	access_memory(10, 10, 0, ADDRESS);
	access_memory(10, 12, 0, ADDRESS + 8);
	access_memory(11, 11, 0, ADDRESS + 16); /* another address space */
	nm_memory_flush(memory);
	assert_int_equal(sharing_between(nm_memory_affinity(memory), 10, 12), NM_SHARING_STEP);
	assert_int_equal(nm_affinity_counts(nm_memory_affinity(memory)).pairs, 1);
}

/* Nothing else reads the matrix; exits are still followed. */
TEST(only_kmaf_counts_sharing)
{
	follow_two();
	config->threads.policy = NM_POLICY_LBMA;
	nm_memory_configure(memory, config);
	follow_two();
	access_memory(10, 10, 0, ADDRESS);
	access_memory(10, 12, 0, ADDRESS + 8);
	nm_memory_flush(memory);
	assert_int_equal(nm_affinity_counts(nm_memory_affinity(memory)).threads, 0);
	assert_int_equal(nm_affinity_counts(nm_memory_affinity(memory)).pairs, 0);
	assert_non_null(process_of(10));
	task(NM_TASK_EXIT, 10, 12);
	task(NM_TASK_EXIT, 10, 12); /* a second exit changes nothing */
	assert_non_null(process_of(10));
	task(NM_TASK_EXIT, 10, 10);
	assert_null(process_of(10));
}

static void access_from_node_1(uint64_t address, unsigned times)
{
	while (times--)
		access_memory(11, 11, 3, address);
}

TEST(test_wanted)
{
	const struct nm_memory_wanted *wanted;

	follow_two();
	access_from_node_1(ADDRESS, 10);
	assert_int_equal(count_wanted(&wanted), 0); /* held */
	nm_memory_mapping_over(memory, 11, false);  /* a single thread needs no mapping */
	access_from_node_1(ADDRESS, 10);
	assert_int_equal(count_wanted(&wanted), 1);
	assert_int_equal(wanted[0].pid, 11);
	assert_true(wanted[0].from == 0 && wanted[0].to == 1);
	assert_true(wanted[0].page.address == ADDRESS);
}

TEST(test_untried_ranges_are_requested_again)
{
	const struct nm_memory_wanted *wanted;

	follow_two();
	nm_memory_mapping_over(memory, 11, true);
	access_from_node_1(ADDRESS, 4);
	assert_int_equal(count_wanted(&wanted), 1);
	nm_memory_update(memory);
	assert_int_equal(nm_memory_wanted(memory, &wanted), 0);
	access_from_node_1(ADDRESS, 1);
	assert_int_equal(count_wanted(&wanted), 1);
	nm_memory_take(memory, 0);
	nm_memory_end_check(memory, &wanted[0].page, NM_PAGE_MOVED, 1);
	nm_memory_update(memory);
	struct nm_page_view view;
	assert_int_equal(nm_pages_look(nm_memory_pages(memory), now_s,
				       &(struct nm_page_id){ADDRESS, process_of(11)->owner, 0},
				       &view),
			 0);
	assert_true(view.page_node == 1 && view.accesses[1] == 2 && !view.pending);
}

TEST(test_wanted_is_bounded)
{
	const struct nm_memory_wanted *wanted;

	follow_two();
	nm_memory_mapping_over(memory, 11, true);
	for (uint64_t page = 0; page < NM_MEMORY_WANTED_MOST + 500; page++)
		access_from_node_1(ADDRESS + page * 4096, 2);
	assert_int_equal(count_wanted(&wanted), NM_MEMORY_WANTED_MOST);
}

/* Section 3.3: several threads wait for a mapping, or for five ineligible ones. */
TEST(test_pages_wait_for_the_first_mapping)
{
	follow_two();
	for (unsigned period = 0; period < 4; period++)
		nm_memory_mapping_over(memory, 10, false);
	assert_true(process_of(10)->held);
	nm_memory_mapping_over(memory, 10, false);
	assert_false(process_of(10)->held);
	nm_memory_mapping_over(memory, 77, true);
}

TEST(test_pages_wait_only_for_kmaf)
{
	follow_two();
	assert_true(process_of(10)->held && process_of(11)->held);
	config->threads.policy = NM_POLICY_LBMA;
	nm_memory_configure(memory, config);
	follow_two();
	assert_false(process_of(10)->held || process_of(11)->held);
	task(NM_TASK_EXEC, 11, 11);
	follow_two();
	assert_false(process_of(11)->held);
}

TEST(test_home_as_the_kernel_answered)
{
	const struct nm_memory_wanted *wanted;
	struct nm_sample sample;

	follow_two();
	nm_memory_mapping_over(memory, 11, true);
	sample = sample_of(11, 11, 0, ADDRESS);
	sample.page_node = 2;
	nm_memory_add(memory, &sample);
	nm_memory_add(memory, &sample);
	assert_int_equal(count_wanted(&wanted), 1);
	assert_true(wanted[0].from == 1 && wanted[0].to == 0);
}

TEST(test_huge_pages)
{
	struct nm_sample sample;

	follow_two();
	for (unsigned i = 0; i < 4; i++) {
		sample = sample_of(11, 11, 0, ADDRESS + i * 16384);
		sample.page_bytes = 2ULL << 20;
		nm_memory_add(memory, &sample);
	}
	assert_int_equal(count_pages(),
			 5); /* and there are four destinations for sharing threads */
}

TEST(test_exclusivity)
{
	follow_two();
	access_from_node_1(ADDRESS, 6);
	access_memory(10, 10, 0, ADDRESS);
	access_memory(10, 12, 2, ADDRESS);
	for (unsigned i = 0; i < 10; i++)
		nm_memory_update(memory);
	struct nm_exclusivity sums = nm_memory_exclusivity(memory);
	assert_int_equal(sums.pages, 2);
	assert_int_equal(sums.histogram[10], 1);
	assert_int_equal(sums.histogram[5], 1);
	assert_true(sums.accesses > 0 && sums.most < sums.accesses);
}

/* ---- threads that stay (profile "shipped") ---- */

static hwloc_bitmap_t everywhere;

/* Thread 11, which ran on this node (-1: on several), with this affinity. */
static void follow_one(int node, bool assigned, hwloc_const_bitmap_t allowed)
{
	struct nm_snap_thread thread = {.tid = 11,
					.pid = 11,
					.start_ticks = 11,
					.stats.main_cpu = node < 0 ? 0 : 2 * node,
					.stats.main_node = node,
					.assigned = assigned ? node : -1,
					.allowed = allowed};
	struct nm_snap_process process = {.pid = 11, .threads = 1};
	struct nm_snapshot snapshot = {
		.threads = &thread, .nr_threads = 1, .processes = &process, .nr_processes = 1};

	nm_memory_follow(memory, &snapshot);
}

static void be_shipped(void)
{
	config->rules.paper = false;
	nm_memory_configure(memory, config);
	everywhere = hwloc_bitmap_alloc();
	hwloc_bitmap_set_range(everywhere, 0, 3);
}

TEST(test_a_thread_settles_after_three_intervals)
{
	const struct nm_memory_wanted *wanted;

	be_shipped();
	follow_one(1, false, everywhere);
	nm_memory_mapping_over(memory, 11, true);
	for (unsigned interval = 1; interval < 3; interval++) {
		access_from_node_1(ADDRESS, 10);
		assert_int_equal(count_wanted(&wanted), 0);
		follow_one(1, false, everywhere);
	}
	follow_one(-1, false, everywhere); /* it was away, and begins anew */
	follow_one(1, false, everywhere);
	follow_one(1, false, everywhere);
	access_from_node_1(ADDRESS, 10);
	assert_int_equal(count_wanted(&wanted), 0);
	follow_one(1, false, everywhere);
	access_from_node_1(ADDRESS, 10);
	assert_int_equal(count_wanted(&wanted), 1);
	hwloc_bitmap_free(everywhere);
}

/* Returns whether pages may follow the thread to this node. */
static bool settles(uint32_t tid, unsigned node)
{
	struct nm_sample sample = sample_of(11, tid, 2 * node, ADDRESS);
	const struct nm_page_touch *touch = nm_memory_add(memory, &sample);
	assert_non_null(touch);
	return touch && !touch->passing;
}

TEST(test_a_held_thread_has_settled)
{
	be_shipped();
	follow_one(1, true, everywhere);
	assert_true(settles(11, 1));
	assert_false(settles(11, 0));
	assert_false(settles(12, 1));
	follow_one(0, false, everywhere);
	assert_false(settles(11, 0));
	follow_one(0, false, topology->nodes[0].cpus); /* bound by its owner */
	assert_true(settles(11, 0));
	hwloc_bitmap_free(everywhere);
}

RUN_TESTS()

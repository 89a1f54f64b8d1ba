/* SPDX-License-Identifier: MIT */
/* From samples of managed processes to pages, sharing, and pages to move. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "../support/machine.h"
#include "../support/script.h"
#include "../support/sharing.h"
#include "observe/memory.h"

#define ADDRESS 0x7f0000000000ULL

static const uint64_t key[4] = {3, 1, 4, 1};
static struct nm_config *config;
static struct nm_topology *topology;
static struct nm_memory *memory;
static uint32_t now_s;
static struct nm_sample sample; /* what samples have in common */

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
	sample = (struct nm_sample){.kind = NM_EVENT_MEMORY, .page_node = 1};
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

/* ---- words ---- */

/* follow 11 11 12 10: threads, each with its process */
WORD(follow)
{
	struct thread threads[4];
	for (unsigned i = 0; i < step->nr_numbers / 2; i++)
		threads[i] = (struct thread){U(2 * i), U(2 * i + 1)};
	follow(threads, step->nr_numbers / 2);
}

/* Two processes: 10 with threads 10 and 12, and 11. */
ACTION(two, follow((const struct thread[]){{10, 10}, {11, 11}, {12, 10}}, 3))

static const struct nm_page_touch *add(uint32_t pid, uint32_t tid, uint32_t cpu, uint64_t address)
{
	struct nm_sample one = sample;
	one.pid = pid;
	one.tid = tid;
	one.cpu = cpu;
	one.time_ns = now_s * NM_NSEC_PER_SEC;
	one.address = address;
	return nm_memory_add(memory, &one);
}

/* access 11 11 cpu3 4K 10: of a process, by a thread, at an offset, ten times */
WORD(access)
{
	for (unsigned i = 0; i < (step->nr_numbers > 4 ? U(4) : 1); i++)
		(void)add(U(0), U(1), U(2), ADDRESS + (uint64_t)N(3));
}

ACTION(access_nothing, add(10, 10, 0, 0))
KNOB(kind, sample.kind)
NAMES(kind, {"memory", NM_EVENT_MEMORY}, {"cycles", NM_EVENT_CYCLES}, {"store", NM_EVENT_STORE},
      {"fault", NM_EVENT_FAULT_MIN})
KNOB(page_node, sample.page_node)
KNOB(page_bytes, sample.page_bytes)
KNOB(now, now_s)
KNOB(policy, config->threads.policy)
NAMES(policy, {"lbma", NM_POLICY_LBMA})
ACTION(configure, nm_memory_configure(memory, config))
ACTION(update, nm_memory_update(memory))
ACTION(mapped, nm_memory_mapping_over(memory, U(0), U(1)))

static void task(enum nm_task_event_kind kind, uint32_t pid, uint32_t tid)
{
	struct nm_task_event event = {.kind = kind, .pid = pid, .tid = tid};

	nm_memory_task_event(memory, &event);
}

ACTION(exit, task(NM_TASK_EXIT, U(0), U(1)))
ACTION(exec, task(NM_TASK_EXEC, U(0), U(0)))
ACTION(comm, task(NM_TASK_COMM, U(0), U(0)))

static uint64_t count_pages(void)
{
	nm_memory_flush(memory);
	return nm_pages_counts(nm_memory_pages(memory)).tracked;
}

static const struct nm_memory_process *process_of(const struct step *step)
{
	const struct nm_memory_process *process = nm_memory_process(memory, U(0));
	if (!process)
		script_fail(step, "process %u is not known", U(0));
	return process;
}

static const struct nm_memory_process *processes;
static const struct nm_memory_wanted *wanted;

static size_t count_wanted(void)
{
	nm_memory_flush(memory);
	return nm_memory_wanted(memory, &wanted);
}

static double sharing(uint32_t a, uint32_t b)
{
	nm_memory_flush(memory);
	return sharing_between(nm_memory_affinity(memory), a, b) / (double)NM_SHARING_STEP;
}

static struct nm_affinity_counts affinity_counts(void)
{
	nm_memory_flush(memory);
	return nm_affinity_counts(nm_memory_affinity(memory));
}

QUANTITY(tracked, count_pages())
QUANTITY(processes, nm_memory_processes(memory, &processes))
QUANTITY(first_process, processes[0].pid)
QUANTITY(known, nm_memory_process(memory, U(0)) != NULL)
QUANTITY(threads, process_of(step)->threads)
QUANTITY(owner, process_of(step)->owner)
QUANTITY(held, process_of(step)->held)
QUANTITY(sharing, sharing(U(0), U(1)))
QUANTITY(pairs, affinity_counts().pairs)
QUANTITY(sharers, affinity_counts().threads)
QUANTITY(identified, nm_affinity_id(nm_memory_affinity(memory), U(0)) != 0)
QUANTITY(wanted, count_wanted())
QUANTITY(wanted_pid, wanted[0].pid)
QUANTITY(wanted_from, wanted[0].from)
QUANTITY(wanted_to, wanted[0].to)
QUANTITY(wanted_at, wanted[0].page.address - ADDRESS)

/* ---- followed processes ---- */

SCRIPT(test_processes, "two; processes = 2; first_process = 10; threads 10 = 2; threads 11 = 1",
       "owner 10 != 0; keep other = owner 10; owner 11 != 0; owner 11 != other")

SCRIPT(test_only_the_managed_are_counted,
       "two; access 10 10 cpu0 0; access 99 99 cpu0 0; tracked = 1")

/* Neither other events, nor those without an address, or of an unknown CPU. */
SCRIPT(test_only_accesses_are_counted,
       "two; set kind = cycles; access 10 10 cpu0 0; set kind = memory; access_nothing",
       "access 10 10 cpu4 0; tracked = 0; set kind = store; access 10 10 cpu0 0",
       "set kind = fault; access 10 10 cpu0 4K; tracked = 2")

SCRIPT(test_following_again_keeps_pages,
       "two; keep n = owner 10; access 10 10 cpu0 0; two; owner 10 = n; tracked = 1")

SCRIPT(test_exited_processes_have_no_pages,
       "two; access 10 10 cpu0 0; access 11 11 cpu0 0; follow 11 11; tracked = 1; known 10 = 0",
       "access 10 10 cpu0 0; tracked = 1; identified 12 = 0; follow; tracked = 0")

/* A second exit changes nothing. */
SCRIPT(test_the_last_exit_drops_pages,
       "two; access 10 10 cpu0 0; exit 10 10; exit 10 10; tracked = 1; exit 10 12; tracked = 0",
       "access 10 10 cpu0 0; tracked = 0; exit 77 77")

SCRIPT(test_exec_drops_pages,
       "two; mapped 11 1; held 11 = 0; access 11 11 cpu0 0; comm 11; tracked = 1; exec 11",
       "tracked = 0; known 11 = 0; two; held 11 = 1; access 11 11 cpu0 0; tracked = 1")

SCRIPT(test_reused_process_number,
       "follow 10 10 12 10 13 10; access 10 10 cpu0 0; access 10 12 cpu0 0; sharing 10 12 = 1",
       "follow 10 10 12 12 13 10; sharing 10 12 = 0; threads 10 = 2")

/* ---- sharing and moving ---- */

/* A sample of another ring may be older than the last one: time does not go back. */
SCRIPT(test_time, "two; access 10 10 cpu0 0; set now = 95; access 10 12 cpu0 0; sharing 10 12 = 1",
       "set now = 111; access 10 10 cpu0 0; sharing 10 12 = 1")

/* Process 11 has another address space. */
SCRIPT(test_sharing,
       "two; access 10 10 cpu0 0; access 10 12 cpu0 8; access 11 11 cpu0 16; sharing 10 12 = 1",
       "pairs = 1")

/* Nothing else reads the matrix; exits are still followed, and a second one changes nothing. */
SCRIPT(only_kmaf_counts_sharing,
       "two; set policy = lbma; configure; two; access 10 10 cpu0 0; access 10 12 cpu0 8",
       "sharers = 0; pairs = 0; known 10 = 1; exit 10 12; exit 10 12; known 10 = 1; exit 10 10",
       "known 10 = 0")

/* It is held at first; a single thread needs no mapping. */
SCRIPT(test_wanted,
       "two; access 11 11 cpu3 0 10; wanted = 0; mapped 11 0; access 11 11 cpu3 0 10; wanted = 1",
       "wanted_pid = 11; wanted_from = 0; wanted_to = 1; wanted_at = 0")

WORD(move_wanted)
{
	nm_memory_take(memory, 0);
	nm_memory_end_check(memory, &wanted[0].page, NM_PAGE_MOVED, 1);
}

static struct nm_page_view view_of(const struct step *step)
{
	struct nm_page_view view;
	const struct nm_page_id page = {ADDRESS, process_of(step)->owner, 0};
	assert_int_equal(nm_pages_look(nm_memory_pages(memory), now_s, &page, &view), 0);
	return view;
}

QUANTITY(home, view_of(step).page_node)
QUANTITY(accesses, view_of(step).accesses[U(1)])
QUANTITY(pending, view_of(step).pending)

SCRIPT(test_untried_ranges_are_requested_again,
       "two; mapped 11 1; access 11 11 cpu3 0 4; wanted = 1; update; wanted = 0",
       "access 11 11 cpu3 0; wanted = 1; move_wanted; update; home 11 = 1; accesses 11 node1 = 2",
       "pending 11 = 0")

WORD(access_many)
{
	for (uint64_t page = 0; page < NM_MEMORY_WANTED_MOST + 500; page++)
		for (unsigned i = 0; i < 2; i++)
			(void)add(11, 11, 3, ADDRESS + page * 4096);
}

NAMES(wanted, {"most", NM_MEMORY_WANTED_MOST})

SCRIPT(test_wanted_is_bounded, "two; mapped 11 1; access_many; wanted = most")

KNOB(page_min_accesses, config->rules.page_min_accesses)

SCRIPT(test_rules_of_pages_are_reloaded,
       "two; mapped 11 1; set page_min_accesses = 100; configure; access 11 11 cpu3 0 10",
       "wanted = 0; set page_min_accesses = 0; configure; access 11 11 cpu3 0 10; wanted = 1")

WORD(more_cpus)
{
	struct nm_topology *larger = machine_topology(2, 8);
	nm_memory_retarget(memory, larger);
	nm_topology_free(topology);
	topology = larger;
}

SCRIPT(test_new_cpus_are_followed,
       "two; access 10 10 cpu6 0; tracked = 0; more_cpus; access 10 10 cpu6 0; tracked = 1")

WORD(memory_only)
{
	topology->nodes[U(0)].nearest_with_cpus = (int)U(1);
	nm_memory_free(memory);
	nm_memory_new(topology, config, key, &memory);
}

/* Its memory is that of the node beside it. */
SCRIPT(test_pages_on_a_node_without_cpus_stay,
       "memory_only node1 node0; two; mapped 11 1; set page_node = 2; access 11 11 cpu0 0 10",
       "tracked = 1; wanted = 0")

/* Section 3.3: several threads wait for a mapping, or for five ineligible ones. */
SCRIPT(test_pages_wait_for_the_first_mapping, "two", "each 4: mapped 10 0",
       "held 10 = 1; mapped 10 0; held 10 = 0; mapped 77 1")

SCRIPT(test_pages_wait_only_for_kmaf,
       "two; held 10 = 1; held 11 = 1; set policy = lbma; configure; two; held 10 = 0",
       "held 11 = 0; exec 11; two; held 11 = 0")

SCRIPT(test_home_as_the_kernel_answered,
       "two; mapped 11 1; set page_node = 2; access 11 11 cpu0 0 2; wanted = 1; wanted_from = 1",
       "wanted_to = 0")

/* There are four destinations for sharing threads, too. */
SCRIPT(test_huge_pages, "two; set page_bytes = 2M; access 11 11 cpu0 0; access 11 11 cpu0 16K",
       "access 11 11 cpu0 32K; access 11 11 cpu0 48K; tracked = 5")

QUANTITY(exclusive, nm_memory_exclusivity(memory).histogram[U(0)])
QUANTITY(pages, nm_memory_exclusivity(memory).pages)
QUANTITY(sum, nm_memory_exclusivity(memory).accesses)
QUANTITY(most, nm_memory_exclusivity(memory).most)

SCRIPT(test_exclusivity, "two; access 11 11 cpu3 0 6; access 10 10 cpu0 0; access 10 12 cpu2 0",
       "each 10: update",
       "pages = 2; exclusive 10 = 1; exclusive 5 = 1; keep all = sum; most > 0; most < all")

/* ---- threads that stay (profile "shipped") ---- */

/* one node1 assigned, or one -1: thread 11, which ran on this node, or on several; it may run on
 * all CPUs, or is bound by its owner */
WORD(one)
{
	const int node = (int)N(0);
	struct nm_snap_thread thread = {
		.tid = 11,
		.pid = 11,
		.start_ticks = 11,
		.stats.main_cpu = node < 0 ? 0 : 2 * node,
		.stats.main_node = node,
		.assigned = step_has(step, "assigned") ? node : -1,
		.allowed = step_has(step, "bound") ? topology->nodes[node].cpus : topology->online};
	struct nm_snap_process process = {.pid = 11, .threads = 1};
	nm_memory_follow(memory, &(struct nm_snapshot){.threads = &thread,
						       .nr_threads = 1,
						       .processes = &process,
						       .nr_processes = 1});
}

WORD(shipped)
{
	config->rules.paper = false;
	nm_memory_configure(memory, config);
}

SCRIPT(test_a_thread_settles_after_three_intervals, "shipped; one node1; mapped 11 1",
       "each 2: access 11 11 cpu3 0 10; wanted = 0; one node1",
       "one -1; one node1; one node1; access 11 11 cpu3 0 10; wanted = 0; one node1",
       "access 11 11 cpu3 0 10; wanted = 1")

/* Returns whether pages may follow the thread to this node. */
static bool settles(uint32_t tid, unsigned node)
{
	const struct nm_page_touch *touch = add(11, tid, 2 * node, ADDRESS);
	assert_non_null(touch);
	return touch && !touch->passing;
}

QUANTITY(settles, settles(U(0), U(1)))

SCRIPT(test_a_held_thread_has_settled,
       "shipped; one node1 assigned; settles 11 node1 = 1; settles 11 node0 = 0",
       "settles 12 node1 = 0; one node0; settles 11 node0 = 0; one node0 bound",
       "settles 11 node0 = 1")

RUN_TESTS()

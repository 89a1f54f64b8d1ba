/* SPDX-License-Identifier: MIT */
/* The physics of the model: invariants of any placement. */
#define SET_UP open_model
#define TEAR_DOWN close_model
#include "../support/test.h"

#include <stdint.h>

#include <inttypes.h>
#include <stdio.h>

#include "../support/live_calls.h"
#include "platform/page_jobs.h"
#include "sim_words.h"

WORD(exchange_cpus)
{
	const int cpu = sim->live[0]->cpu;
	sim->live[0]->cpu = sim->live[1]->cpu;
	sim->live[1]->cpu = cpu;
}

/* Node 0 is one core of two CPUs. */
WORD(one_core)
{
	hwloc_bitmap_only(machine->topology->nodes[0].cpus, 0);
	hwloc_bitmap_set(machine->topology->nodes[0].cpus, 32);
}

static double rate_of(struct nm_sim_thread_view view)
{
	return view.bytes_per_ns;
}

/* The shares of a thread's accesses, by node, are 1 in sum. */
static double unserved_of(struct nm_sim_thread_view view)
{
	double sum = 0;
	for (unsigned k = 0; k < machine->topology->nr_nodes; k++)
		sum += view.mix[k];
	return fabs(1 - sum);
}

/* Returns the time of a single thread on `node` with its memory on node `memory`. */
static double time_of(const char *name, unsigned node, unsigned memory)
{
	nm_sim_free(NM_TAKE(sim));
	nm_sim_workload_clear(&workload);
	run_line("program %s 1; set giga = 30; set placement = direct; set memory = %u", name,
		 memory);
	run_line("begin 1; steps 1; bind 0-0 %u; finish", node);
	return nm_sim_figures(sim).time_s;
}

KNOB(node_bytes, machine->topology->nodes[U(0)].memory_bytes)
KNOB(wander_per_s, options.wander_per_s)
KNOB(unobserved, options.unobserved)
QUANTITY(start, start_model(step))
QUANTITY(time, time_of(step->word[0], U(step->nr_numbers - 2), U(step->nr_numbers - 1)))
QUANTITY(most_node_use, nm_sim_figures(sim).most_node_use)
QUANTITY(most_link_use, nm_sim_figures(sim).most_link_use)
QUANTITY(bytes_per_ns, sum_threads(rate_of))
QUANTITY(unserved, sum_threads(unserved_of))
QUANTITY(bandwidth, machine->node_bytes_per_ns[U(0)])
QUANTITY(at_memory, nm_sim_thread(sim, U(0)).mix[nm_sim_thread(sim, U(0)).node])
QUANTITY(rate, nm_sim_thread(sim, U(0)).bytes_per_ns)
QUANTITY(passes, sim->processes[0]->passes)
QUANTITY(pass_s, sim->processes[0]->pass_s)

/* ---- machines ---- */

TEST(test_machines_are_whole)
{
	for (size_t i = 0; nm_sim_model(i); i++) {
		run_line("machine %s", nm_sim_model(i)->name);
		const unsigned nodes = machine->topology->nr_nodes;
		for (unsigned a = 0; a < nodes; a++)
			for (unsigned b = 0; b < nodes; b++) {
				double there = machine->latency_ns[a * nodes + b];
				alike(there, machine->latency_ns[b * nodes + a]);
				assert_true(a == b || there > machine->latency_ns[a * nodes + a]);
			}
	}
	struct nm_sim_machine *none = NULL;
	assert_int_equal(nm_sim_machine_by_name("abacus", &none), -ENOENT);
	assert_int_equal(nm_sim_machine_regular(3, 64, &none), -EINVAL);
}

/* Traffic between two nodes uses each link of its route once, as many as there are hops. */
TEST(test_routes_carry_everything)
{
	for (unsigned from = 0; from < 4; from++)
		for (unsigned to = 0; to < 4; to++) {
			unsigned apart = (from + 4 - to) % 4, hops = apart == 3 ? 1 : apart;
			double sum = 0;
			for (unsigned l = 0; l < machine->nr_links; l++)
				sum += machine->route[(from * 4 + to) * machine->nr_links + l];
			alike(sum, hops);
		}
}

/* ---- bandwidth and accesses ---- */

TEST(test_bandwidth_is_never_exceeded)
{
	static const char *const programs[] = {"stream", "table", "sp", "cg", "stencil"};
	for (size_t i = 0; nm_sim_model(i); i++)
		for (size_t p = 0; p < NM_ARRAY_SIZE(programs); p++) {
			run_line("machine %s", nm_sim_model(i)->name);
			run_line("program %s %u; program stream 7; begin 3; steps 100; accesses > "
				 "0; most_node_use <= 1; most_link_use <= 1",
				 programs[p], machine->topology->nr_cpus);
		}
}

/* A stream on one node gets the full bandwidth of the node. */
SCRIPT(test_bandwidth_is_used,
       "program stream 10; set misses = 100; set placement = direct; set memory = node1; begin 1",
       "steps 50; keep full = bandwidth node1; bytes_per_ns > full*0.9")

/* Below the limit, too, a controller in use lets a thread wait. */
SCRIPT(test_a_busy_controller_is_waited_for,
       "program table 1; set giga = 1e5; set placement = direct; set memory = node1; begin 1",
       "steps 50; keep alone = rate 0; program stream 3; set giga = 1e5; set placement = direct",
       "set memory = node1; begin 1; steps 50; most_node_use < 0.9; rate 0 < alone*0.95")

#define SERVED(by)                                                                                 \
	"machine ring-4x10; program stencil 13; keep own = private_part; set shared_part = 0.3; "  \
	"set private_part = own-0.3; set placement = " by "; begin 5; steps 20; unserved <= 1e-8"

SCRIPT(test_every_access_is_served_once, SERVED("system"), SERVED("interleave"), SERVED("oracle"))

/* Exactly the given work is done: all instructions, 20 × 20e9, and their accesses. */
SCRIPT(test_work_is_done_once,
       "machine mesh-4x20; program lu 20; set giga = 20; begin 1; finish; programs_ended = 1",
       "keep n = misses; accesses in n*399999600..n*400000400")

/* ---- places ---- */

TEST(test_local_is_never_slower)
{
	static const char *const programs[] = {"stream", "bt", "compute", "table"};
	for (size_t i = 0; nm_sim_model(i); i++)
		for (size_t p = 0; p < NM_ARRAY_SIZE(programs); p++) {
			run_line("machine %s", nm_sim_model(i)->name);
			const double local = time_of(programs[p], 0, 0);
			for (unsigned k = 1; k < machine->topology->nr_nodes; k++)
				assert_true(local <= time_of(programs[p], 0, k));
		}
}

SCRIPT(test_farther_is_slower, "keep near = time table node0 node0; time table node0 node1 > near",
       "keep next = time table node0 node1; time table node0 node2 > next")

/* A rotation by one node changes nothing. */
TEST(test_symmetric_machines_are_symmetric)
{
	static const char *const machines[] = {"ring-4x10", "mesh-4x20", "x7550-4x8"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(machines); i++) {
		run_line("machine %s", machines[i]);
		for (unsigned memory = 0; memory < 4; memory++) {
			const double first = time_of("stream", 0, memory);
			for (unsigned turn = 1; turn < 4; turn++)
				alike(first, time_of("stream", turn, (memory + turn) % 4));
		}
	}
}

/* ---- the system ---- */

SCRIPT(test_affinities_are_respected,
       "program stream 60; set giga = 1e5; begin 9; steps 5; bind 0-7 node2",
       "each 200: steps 1; on_node 0-7 node2")

/* Running there, first touch, following pages and binding: everything has a node. */
#define ODD(by)                                                                                    \
	"odd; program stream 8; set giga = 20; set placement = " by "; begin 4 balancing; "        \
	"finish; programs_ended = 1; nodes_seen = 5; ran_without = "

SCRIPT(test_cpus_without_a_node, ODD("system") "1", ODD("interleave") "1", ODD("oracle") "0")

SCRIPT(test_no_cpu_is_online, "odd; offline; start 0 = ENODEV")

/* Except threads that were moved in this step. */
SCRIPT(test_first_touch_is_local,
       "program stream 12; set private_part = 1; begin 1; steps 1; local_share >= 0.8")

/* Pages of moved threads follow them within the rate of the kernel. */
SCRIPT(test_numa_balancing_brings_pages,
       "machine mesh-4x20; program stream 8; set touch = master; set giga = 1e5",
       "begin 4 balancing; steps 10; keep first = local_share; steps 300; mark; steps 100",
       "local_share > first")

/* ---- kernel.numa_balancing ---- */

/* 4,096 pages of 2 MiB, whose thread runs elsewhere. */
#define AWAY(balancing)                                                                            \
	"machine mesh-4x20; program compute 1; set footprint_mb = 8192; set giga = 60; "           \
	"set misses = 0; begin 4 " balancing "; steps 1; bind_away; steps 9; pages_balanced = 0; " \
	"steps 5; pages_balanced < 4096; finish; "

ACTION(bind_away, bind(sim, machine, nm_sim_thread(sim, 0).tid,
		       (unsigned)(nm_sim_thread(sim, 0).node + 1) % 4))

/* A page that the kernel moves costs as much as one that we move, 8.59 s for all, and no move is
 * free. */
SCRIPT(test_the_kernel_pays_for_pages, AWAY("") "pages_balanced = 0; keep without = time_s",
       AWAY("balancing") "pages_balanced = 4096; time_s in without+8.09..without+9.09")

/* If no page is misplaced, scans become less frequent, with at most one minute between them. */
SCRIPT(test_scans_back_off,
       "machine mesh-4x20; program stream 1; set giga = 1e5; begin 4 balancing; steps 30",
       "passes >= 1; keep first = pass_s; steps 3000; pass_s > first*10; pass_s <= 60; passes < 60")

/* Two full nodes with a thread each whose memory is on the other: they are swapped. */
#define ONE "program stream 1; set footprint_mb = 1024; set giga = 1e5; "
#define CROSSED "regular 2 2; set node_bytes 0 = 1G; set node_bytes 1 = 1G; " ONE ONE "begin 4 "
#define LATER "; steps 1; exchange_cpus; steps 100; pages_balanced = 0; "

SCRIPT(test_tasks_move_to_their_memory, CROSSED LATER "at_memory 0 = 0; at_memory 1 = 0",
       CROSSED "balancing" LATER "at_memory 0 = 1; at_memory 1 = 1")

/* ---- parameters and switches ---- */

SCRIPT(test_threads_wander_as_reported,
       "program bt 40; set giga = 1e5; begin 2; steps 600; moves = 0; set wander_per_s = 0.02",
       "begin 2; steps 600; moves > 0; keep n = moves; set wander_per_s = 0.1; begin 2; steps 600",
       "moves > n*3")

#define ON_ONE_CORE                                                                                \
	"; set giga = 1e5; set placement = direct; set memory = node0; begin 1; steps 50; "
#define ONE_THREAD "machine x7550-4x8; one_core; program table 1"
#define TWO_THREADS "machine x7550-4x8; one_core; program table 2"

/* Two threads of a core share its execution, but not waiting for memory. */
SCRIPT(test_siblings_share_what_they_execute,
       ONE_THREAD "; set misses = 0" ON_ONE_CORE "keep one = done_giga",
       TWO_THREADS "; set misses = 0" ON_ONE_CORE "done_giga = one*1.25",
       ONE_THREAD "; set misses = 60" ON_ONE_CORE "keep one = done_giga",
       TWO_THREADS "; set misses = 60" ON_ONE_CORE "done_giga in one*1.8..one*2")

/* ---- the ops ---- */

static struct nm_units_order *order_to(int node, const uint64_t *addresses, unsigned count)
{
	struct nm_units_order *order = calloc(1, sizeof(*order));
	assert_non_null(order);
	order->count = count;
	order->pages_most = NM_UNITS_MOST;
	order->nr_rooms = 1;
	order->slow_ns = UINT64_MAX;
	order->rooms[0] = (struct nm_page_room){.node = node, .memory = UINT64_MAX};
	for (unsigned i = 0; i < count; i++)
		order->units[i] = (struct nm_page_unit){addresses[i], 1, NM_UNIT_BASE, -1, node};
	return order;
}

TEST(test_pages_move_where_they_are_sent)
{
	run_line("program stream 2; begin 1; steps 1");
	struct nm_platform *platform = nm_sim_platform(sim);
	pid_t pid = (pid_t)nm_sim_thread(sim, 0).pid;
	uint64_t addresses[] = {0x7f0000000000, 0x7f0000200000, 0x1000};
	nm_autofree struct nm_units_order *order = order_to(3, addresses, 3);
	nm_autofree struct nm_units_moved *moved = calloc(1, sizeof(*moved));
	int found[3];
	const uint64_t ticks = start_of(platform, pid);
	assert_int_equal(platform->ops->units_move(platform, pid, ticks, order, moved), 0);
	assert_int_equal(live_where(platform, pid, ticks, 3, addresses, found), 0);
	assert_int_equal(found[0], 3);
	assert_int_equal(found[1], 3);
	assert_int_equal(found[2], -EFAULT);
	assert_true(moved->outcomes[0].done);
	assert_int_equal(moved->outcomes[2].error, -EFAULT);
	assert_int_equal(platform->ops->units_move(platform, 77, ticks, order, moved), -ESRCH);
	assert_int_equal(platform->ops->units_move(platform, pid, ticks + 1, order, moved), -ESRCH);
}

static uint64_t meminfo_kib(struct nm_platform *platform, unsigned node, const char *field)
{
	char path[64], text[4096];
	uint64_t kib = 0;
	snprintf(path, sizeof(path), "sys/devices/system/node/node%u/meminfo", node);
	assert_true(platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) > 0);
	const char *at = strstr(text, field);
	assert_non_null(at);
	assert_int_equal(sscanf(at + strlen(field), ": %" SCNu64, &kib), 1);
	return kib;
}

/* First touches go to nodes with free memory; migrated pages displace page cache. */
TEST(test_page_cache_spreads_first_touches_and_makes_way)
{
	enum { PAGES = 64 }; /* of 2 MiB: twice the free memory of a full node */
	workload.full_page_cache = true;
	run_line("program stream 2; begin 1");
	struct nm_platform *platform = nm_sim_platform(sim);
	assert_in_range(meminfo_kib(platform, 3, "MemFree"), 1, 65536);
	steps(sim, 1);
	pid_t pid = (pid_t)nm_sim_thread(sim, 0).pid;
	uint64_t addresses[PAGES], ticks = start_of(platform, pid);
	int found[PAGES];
	for (unsigned i = 0; i < PAGES; i++)
		addresses[i] = 0x7f0000000000 + i * 0x200000ULL;
	nm_autofree struct nm_units_order *order = order_to(3, addresses, PAGES);
	nm_autofree struct nm_units_moved *moved = calloc(1, sizeof(*moved));
	assert_int_equal(live_where(platform, pid, ticks, PAGES, addresses, found), 0);
	assert_int_not_equal(found[0], found[PAGES - 1]);
	uint64_t cached = meminfo_kib(platform, 3, "Inactive(file)");
	assert_int_equal(platform->ops->units_move(platform, pid, ticks, order, moved), 0);
	assert_true(meminfo_kib(platform, 3, "Inactive(file)") < cached);
}

/* Observation does not affect the result, and the same seed gives the same result. */
SCRIPT(test_observing_changes_nothing,
       "program ua 30; begin 6; steps 300; keep seen = accesses; keep n = moves",
       "set unobserved = 1; begin 6; steps 300; accesses = seen; moves = n")

RUN_TESTS()

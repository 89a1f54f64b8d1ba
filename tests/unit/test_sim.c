/* SPDX-License-Identifier: MIT */
/* The physics of the model: invariants of any placement. */
#include "../support/test.h"

#include <stdint.h>

#include <inttypes.h>
#include <stdio.h>

#include "../support/live_calls.h"
#include "platform/page_jobs.h"
#include "sim_fixture.h"

#include "../model/model.h"

/* ---- machines ---- */

TEST(test_machines_are_whole)
{
	for (size_t i = 0; nm_sim_model(i); i++) {
		struct nm_sim_machine *machine = machine_named(nm_sim_model(i)->name);
		unsigned nodes = machine->topology->nr_nodes;
		for (unsigned a = 0; a < nodes; a++)
			for (unsigned b = 0; b < nodes; b++) {
				double there = machine->latency_ns[a * nodes + b];
				alike(there, machine->latency_ns[b * nodes + a]);
				assert_true(a == b || there > machine->latency_ns[a * nodes + a]);
			}
		nm_sim_machine_free(machine);
	}
	struct nm_sim_machine *none = NULL;
	assert_int_equal(nm_sim_machine_by_name("abacus", &none), -ENOENT);
	assert_int_equal(nm_sim_machine_regular(3, 64, &none), -EINVAL);
}

/* Traffic between two nodes uses each link of its route once, as many as there are hops. */
TEST(test_routes_carry_everything)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	for (unsigned from = 0; from < 4; from++)
		for (unsigned to = 0; to < 4; to++) {
			unsigned apart = (from + 4 - to) % 4, hops = apart == 3 ? 1 : apart;
			double sum = 0;
			for (unsigned l = 0; l < machine->nr_links; l++)
				sum += machine->route[(from * 4 + to) * machine->nr_links + l];
			alike(sum, hops);
		}
	nm_sim_machine_free(machine);
}

/* ---- bandwidth and accesses ---- */

TEST(test_bandwidth_is_never_exceeded)
{
	static const char *const programs[] = {"stream", "table", "sp", "cg", "stencil"};
	for (size_t i = 0; nm_sim_model(i); i++)
		for (size_t p = 0; p < NM_ARRAY_SIZE(programs); p++) {
			struct nm_sim_machine *machine = machine_named(nm_sim_model(i)->name);
			struct nm_sim_workload workload = {0};
			(void)add_program(&workload, programs[p], machine->topology->nr_cpus);
			(void)add_program(&workload, "stream", 7);
			struct nm_sim *sim = begin(machine, &workload, 3);
			steps(sim, 100);
			struct nm_sim_figures figures = nm_sim_figures(sim);
			assert_true(figures.accesses > 0);
			assert_true(figures.most_node_use <= 1 + SIM_TOLERANCE);
			assert_true(figures.most_link_use <= 1 + SIM_TOLERANCE);
			nm_sim_free(sim);
			nm_sim_workload_clear(&workload);
			nm_sim_machine_free(machine);
		}
}

/* A stream on one node gets the full bandwidth of the node. */
TEST(test_bandwidth_is_used)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	struct nm_sim_program *program = add_program(&workload, "stream", 10);
	program->phases[0].misses_per_kilo = 100;
	workload.users[0].placement = NM_SIM_PLACE_DIRECT;
	workload.users[0].node = 1;
	struct nm_sim *sim = begin(machine, &workload, 1);
	steps(sim, 50);
	double bytes_per_ns = 0;
	for (size_t i = 0; i < nm_sim_nr_threads(sim); i++)
		bytes_per_ns += nm_sim_thread(sim, i).bytes_per_ns;
	assert_true(bytes_per_ns > 0.9 * machine->node_bytes_per_ns[1]);
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

TEST(test_every_access_is_served_once)
{
	static const enum nm_sim_placement placements[] = {
		NM_SIM_PLACE_SYSTEM, NM_SIM_PLACE_INTERLEAVE, NM_SIM_PLACE_ORACLE};
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	for (size_t p = 0; p < NM_ARRAY_SIZE(placements); p++) {
		struct nm_sim_workload workload = {0};
		struct nm_sim_program *program = add_program(&workload, "stencil", 13);
		program->phases[0].shared_part = 0.3;
		program->phases[0].private_part -= 0.3;
		workload.users[0].placement = placements[p];
		struct nm_sim *sim = begin(machine, &workload, 5);
		steps(sim, 20);
		for (size_t i = 0; i < nm_sim_nr_threads(sim); i++) {
			double sum = 0;
			for (unsigned k = 0; k < 4; k++)
				sum += nm_sim_thread(sim, i).mix[k];
			alike(sum, 1);
		}
		nm_sim_free(sim);
		nm_sim_workload_clear(&workload);
	}
	nm_sim_machine_free(machine);
}

/* Exactly the given work is done: all instructions and their accesses. */
TEST(test_work_is_done_once)
{
	struct nm_sim_machine *machine = machine_named("mesh-4x20");
	struct nm_sim_workload workload = {0};
	struct nm_sim_program *program = add_program(&workload, "lu", 20);
	program->phases[0].giga = 20;
	struct nm_sim *sim = begin(machine, &workload, 1);
	to_the_end(sim);
	struct nm_sim_figures figures = nm_sim_figures(sim);
	assert_int_equal(figures.programs_ended, 1);
	double expected = 20 * 20e9 * program->phases[0].misses_per_kilo / 1000;
	assert_true(fabs(figures.accesses - expected) < 1e-6 * expected);
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* ---- places ---- */

/* Returns the time of a single thread on `node` with its memory on node `memory`. */
static double time_of(const struct nm_sim_machine *machine, const char *name, unsigned node,
		      unsigned memory)
{
	struct nm_sim_workload workload = {0};
	struct nm_sim_program *program = add_program(&workload, name, 1);
	program->phases[0].giga = 30;
	workload.users[0].placement = NM_SIM_PLACE_DIRECT;
	workload.users[0].node = (int)memory;
	struct nm_sim *sim = begin(machine, &workload, 1);
	steps(sim, 1);
	bind(sim, machine, nm_sim_thread(sim, 0).tid, node);
	to_the_end(sim);
	double time_s = nm_sim_figures(sim).time_s;
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	return time_s;
}

TEST(test_local_is_never_slower)
{
	static const char *const programs[] = {"stream", "bt", "compute", "table"};
	for (size_t i = 0; nm_sim_model(i); i++)
		for (size_t p = 0; p < NM_ARRAY_SIZE(programs); p++) {
			struct nm_sim_machine *machine = machine_named(nm_sim_model(i)->name);
			double local = time_of(machine, programs[p], 0, 0);
			for (unsigned k = 1; k < machine->topology->nr_nodes; k++)
				assert_true(local <= time_of(machine, programs[p], 0, k));
			nm_sim_machine_free(machine);
		}
}

TEST(test_farther_is_slower)
{
	struct nm_sim_machine *ring = machine_named("ring-4x10");
	double near = time_of(ring, "table", 0, 0), next = time_of(ring, "table", 0, 1);
	double far = time_of(ring, "table", 0, 2);
	assert_true(near < next && next < far);
	nm_sim_machine_free(ring);
}

/* A rotation by one node changes nothing. */
TEST(test_symmetric_machines_are_symmetric)
{
	static const char *const machines[] = {"ring-4x10", "mesh-4x20", "x7550-4x8"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(machines); i++) {
		struct nm_sim_machine *machine = machine_named(machines[i]);
		for (unsigned memory = 0; memory < 4; memory++) {
			double first = time_of(machine, "stream", 0, memory);
			for (unsigned turn = 1; turn < 4; turn++)
				alike(first, time_of(machine, "stream", turn, (memory + turn) % 4));
		}
		nm_sim_machine_free(machine);
	}
}

/* ---- the system ---- */

TEST(test_affinities_are_respected)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	add_program(&workload, "stream", 60)->phases[0].giga = 1e5;
	struct nm_sim *sim = begin(machine, &workload, 9);
	steps(sim, 5);
	for (unsigned i = 0; i < 8; i++)
		bind(sim, machine, nm_sim_thread(sim, i).tid, 2);
	for (unsigned step = 0; step < 200; step++) {
		steps(sim, 1);
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(nm_sim_thread(sim, i).node, 2);
	}
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* Four nodes of two CPUs, the last two CPUs without a node; nodes 1 and 3 are memory-only. */
static struct nm_sim_machine *odd_machine(void)
{
	struct nm_sim_machine *machine = NULL;
	assert_int_equal(nm_sim_machine_regular(4, 8, &machine), 0);
	struct nm_topology *topology = machine->topology;
	for (unsigned node = 1; node < 4; node += 2) {
		hwloc_bitmap_zero(topology->nodes[node].cpus);
		topology->nodes[node].nearest_with_cpus = (int)node - 1;
	}
	topology->cpus[2].node = topology->cpus[3].node = 0;
	hwloc_bitmap_set_range(topology->nodes[0].cpus, 2, 3);
	topology->cpus[6].node = topology->cpus[7].node = -1;
	topology->cpus[6].cache = topology->cpus[7].cache = topology->cpus[5].cache;
	return machine;
}

/* Running there, first touch, following pages and binding: everything has a node. */
TEST(test_cpus_without_a_node)
{
	static const enum nm_sim_placement placements[] = {
		NM_SIM_PLACE_SYSTEM, NM_SIM_PLACE_INTERLEAVE, NM_SIM_PLACE_ORACLE};
	struct nm_sim_machine *machine = odd_machine();

	for (size_t p = 0; p < NM_ARRAY_SIZE(placements); p++) {
		struct nm_sim_workload workload = {0};
		add_program(&workload, "stream", 8)->phases[0].giga = 20;
		workload.users[0].placement = placements[p];
		const struct nm_sim_options options = {.seed = 4, .numa_balancing = true};
		struct nm_sim *sim = NULL;
		bool ran_without = false;
		assert_int_equal(nm_sim_new(machine, &workload, &options, &sim), 0);
		for (steps(sim, 1); !nm_sim_is_finished(sim); steps(sim, 1))
			for (size_t i = 0; i < nm_sim_nr_threads(sim); i++) {
				struct nm_sim_thread_view view = nm_sim_thread(sim, i);
				assert_true(view.node == 0 || view.node == 2);
				ran_without |= view.cpu >= 6;
			}
		assert_int_equal(nm_sim_figures(sim).programs_ended, 1);
		assert_int_equal(ran_without, placements[p] != NM_SIM_PLACE_ORACLE);
		nm_sim_free(sim);
		nm_sim_workload_clear(&workload);
	}
	nm_sim_machine_free(machine);
}

TEST(test_no_cpu_is_online)
{
	struct nm_sim_machine *machine = odd_machine();
	struct nm_sim_workload workload = {0};
	const struct nm_sim_options options = {0};
	struct nm_sim *sim = NULL;

	hwloc_bitmap_zero(machine->topology->online);
	assert_int_equal(nm_sim_new(machine, &workload, &options, &sim), -ENODEV);
	nm_sim_machine_free(machine);
}

TEST(test_first_touch_is_local)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	struct nm_sim_program *program = add_program(&workload, "stream", 12);
	program->phases[0].private_part = 1;
	struct nm_sim *sim = begin(machine, &workload, 1);
	steps(sim, 1);
	struct nm_sim_figures figures = nm_sim_figures(sim);
	/* Except threads that were moved in this step. */
	assert_true(figures.local_accesses >= 0.8 * figures.accesses);
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* Pages of moved threads follow them within the rate of the kernel. */
TEST(test_numa_balancing_brings_pages)
{
	struct nm_sim_machine *machine = machine_named("mesh-4x20");
	struct nm_sim_workload workload = {0};
	struct nm_sim_program *program = add_program(&workload, "stream", 8);
	program->touch = NM_SIM_TOUCH_MASTER;
	program->phases[0].giga = 1e5;
	const struct nm_sim_options options = {.seed = 4, .numa_balancing = true};
	struct nm_sim *sim = NULL;
	assert_int_equal(nm_sim_new(machine, &workload, &options, &sim), 0);
	steps(sim, 10);
	struct nm_sim_figures before = nm_sim_figures(sim);
	steps(sim, 300);
	struct nm_sim_figures middle = nm_sim_figures(sim);
	steps(sim, 100);
	struct nm_sim_figures after = nm_sim_figures(sim);
	double first = before.local_accesses / before.accesses;
	double last =
		(after.local_accesses - middle.local_accesses) / (after.accesses - middle.accesses);
	assert_true(last > first);
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* ---- kernel.numa_balancing ---- */

static struct nm_sim *begin_balanced(const struct nm_sim_machine *machine,
				     const struct nm_sim_workload *workload, bool balancing)
{
	const struct nm_sim_options options = {.seed = 4, .numa_balancing = balancing};
	struct nm_sim *sim = NULL;
	assert_int_equal(nm_sim_new(machine, workload, &options, &sim), 0);
	return sim;
}

/* A page that the kernel moves costs as much as one that we move, and no move is free. */
TEST(test_the_kernel_pays_for_pages)
{
	struct nm_sim_machine *machine = machine_named("mesh-4x20");
	double time_s[2];
	for (unsigned i = 0; i < 2; i++) {
		struct nm_sim_workload workload = {0};
		struct nm_sim_program *program = add_program(&workload, "compute", 1);
		program->footprint_mb = 8192;
		program->phases[0].giga = 60;
		program->phases[0].misses_per_kilo = 0;
		struct nm_sim *sim = begin_balanced(machine, &workload, i == 1);
		steps(sim, 1);
		unsigned away = (unsigned)(nm_sim_thread(sim, 0).node + 1) % 4;
		bind(sim, machine, nm_sim_thread(sim, 0).tid, away);
		steps(sim, 9);
		assert_int_equal(nm_sim_figures(sim).pages_balanced, 0);
		steps(sim, 5);
		assert_true(nm_sim_figures(sim).pages_balanced < 4096);
		to_the_end(sim);
		assert_int_equal(nm_sim_figures(sim).pages_balanced, i == 1 ? 4096 : 0);
		time_s[i] = nm_sim_figures(sim).time_s;
		nm_sim_free(sim);
		nm_sim_workload_clear(&workload);
	}
	assert_true(fabs(time_s[1] - time_s[0] - 8192 * 1048576.0 / 1e9) < 0.5);
	nm_sim_machine_free(machine);
}

/* If no page is misplaced, scans become less frequent, with at most one minute between them. */
TEST(test_scans_back_off)
{
	struct nm_sim_machine *machine = machine_named("mesh-4x20");
	struct nm_sim_workload workload = {0};
	add_program(&workload, "stream", 1)->phases[0].giga = 1e5;
	struct nm_sim *sim = begin_balanced(machine, &workload, true);
	steps(sim, 30);
	unsigned early = sim->processes[0]->passes;
	double first_s = sim->processes[0]->pass_s;
	steps(sim, 3000);
	assert_true(early >= 1);
	assert_true(sim->processes[0]->pass_s > 10 * first_s);
	assert_true(sim->processes[0]->pass_s <= 60);
	assert_true(sim->processes[0]->passes < 60);
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* Two full nodes with a thread each whose memory is on the other: they are swapped. */
TEST(test_tasks_move_to_their_memory)
{
	for (unsigned balancing = 0; balancing < 2; balancing++) {
		struct nm_sim_machine *machine = NULL;
		struct nm_sim_workload workload = {0};
		assert_int_equal(nm_sim_machine_regular(2, 2, &machine), 0);
		for (unsigned node = 0; node < 2; node++)
			machine->topology->nodes[node].memory_bytes = 1024 * 1048576ULL;
		for (unsigned i = 0; i < 2; i++) {
			struct nm_sim_program *program = add_program(&workload, "stream", 1);
			program->footprint_mb = 1024;
			program->phases[0].giga = 1e5;
		}
		struct nm_sim *sim = begin_balanced(machine, &workload, balancing);
		steps(sim, 1);
		int cpu = sim->live[0]->cpu;
		sim->live[0]->cpu = sim->live[1]->cpu;
		sim->live[1]->cpu = cpu;
		steps(sim, 100);
		for (size_t i = 0; i < 2; i++) {
			struct nm_sim_thread_view view = nm_sim_thread(sim, i);
			assert_true(view.mix[view.node] == balancing);
		}
		assert_int_equal(nm_sim_figures(sim).pages_balanced, 0);
		nm_sim_free(sim);
		nm_sim_workload_clear(&workload);
		nm_sim_machine_free(machine);
	}
}

/* ---- parameters and switches ---- */

static struct nm_sim_figures figures_of(const struct nm_sim_options *options, const char *name,
					unsigned threads)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	struct nm_sim *sim = NULL;
	add_program(&workload, name, threads)->phases[0].giga = 1e5;
	assert_int_equal(nm_sim_new(machine, &workload, options, &sim), 0);
	steps(sim, 600);
	struct nm_sim_figures figures = nm_sim_figures(sim);
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
	return figures;
}

TEST(test_threads_wander_as_reported)
{
	static const double rates[] = {0, 0.02, 0.1};
	uint64_t moves[NM_ARRAY_SIZE(rates)];
	for (size_t i = 0; i < NM_ARRAY_SIZE(rates); i++)
		moves[i] = figures_of(&(struct nm_sim_options){.seed = 2, .wander_per_s = rates[i]},
				      "bt", 40)
				   .moves;
	assert_int_equal(moves[0], 0);
	assert_true(moves[1] > 0);
	assert_true(moves[2] > 3 * moves[1]);
}

/* Two threads of a core share its execution, but not waiting for memory. */
TEST(test_siblings_share_what_they_execute)
{
	static const double misses[] = {0, 60};
	double gain[2];
	for (size_t m = 0; m < NM_ARRAY_SIZE(misses); m++) {
		double done[2];
		for (unsigned i = 0; i < 2; i++) {
			struct nm_sim_machine *machine = machine_named("x7550-4x8");
			struct nm_sim_workload workload = {0};
			struct nm_sim_program *program = add_program(&workload, "table", i + 1);
			program->phases[0].giga = 1e5;
			program->phases[0].misses_per_kilo = misses[m];
			workload.users[0].placement = NM_SIM_PLACE_DIRECT;
			workload.users[0].node = 0;
			hwloc_bitmap_only(machine->topology->nodes[0].cpus, 0);
			hwloc_bitmap_set(machine->topology->nodes[0].cpus, 32);
			struct nm_sim *sim = begin(machine, &workload, 1);
			steps(sim, 50);
			done[i] = 0;
			for (size_t k = 0; k < nm_sim_nr_threads(sim); k++)
				done[i] += nm_sim_thread(sim, k).done_giga;
			nm_sim_free(sim);
			nm_sim_workload_clear(&workload);
			nm_sim_machine_free(machine);
		}
		gain[m] = done[1] / done[0];
	}
	alike(gain[0], 1.25);
	assert_true(gain[1] > 1.8 && gain[1] < 2);
}

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
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	(void)add_program(&workload, "stream", 2);
	struct nm_sim *sim = begin(machine, &workload, 1);
	steps(sim, 1);
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
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* Observation does not affect the result, and the same seed gives the same result. */
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
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {.full_page_cache = true};
	(void)add_program(&workload, "stream", 2);
	struct nm_sim *sim = begin(machine, &workload, 1);
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
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

TEST(test_observing_changes_nothing)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	(void)add_program(&workload, "ua", 30);
	struct nm_sim_options options = {.seed = 6};
	struct nm_sim_figures figures[2];
	for (unsigned i = 0; i < 2; i++) {
		struct nm_sim *sim = NULL;
		options.unobserved = i == 1;
		assert_int_equal(nm_sim_new(machine, &workload, &options, &sim), 0);
		steps(sim, 300);
		figures[i] = nm_sim_figures(sim);
		nm_sim_free(sim);
	}
	assert_true(figures[0].accesses == figures[1].accesses);
	assert_int_equal(figures[0].moves, figures[1].moves);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Policy "auto": homes assigned to groups, and verdicts on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "numa-migrd/placement.h"

#define NODES 4U

/* Four nodes in a ring: 10, 21, 31, 21. */
static unsigned distances[NODES * NODES];
static struct nm_topology topology = {.nr_nodes = NODES, .distance = distances};
static struct nm_place_node nodes[NODES];
static const bool anywhere[NODES] = {true, true, true, true};

static int set_up(void **state)
{
	(void)state;
	static const unsigned hops[NODES] = {10, 21, 31, 21};
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < NODES; k++)
			distances[i * NODES + k] = hops[(k + NODES - i) % NODES];
	for (unsigned k = 0; k < NODES; k++)
		nodes[k] = (struct nm_place_node){.cores = 2, .free_bytes = 1ULL << 30};
	return 0;
}

/* A group of N threads that each use a CPU, distributed as in `ran`, with traffic that any memory
 * controller serves. */
static struct nm_place_group group_of(unsigned threads, const double *ran)
{
	return (struct nm_place_group){
		.pid = 100,
		.demand_cpus = threads,
		.wanted_cpus = threads,
		.running = threads,
		.max_running = threads,
		.age_s = 1,
		.steady_s = 1,
		.lost_s = 0.35,
		.cpu_traffic = 1e9,
		.anon_bytes = 64ULL << 20,
		.ran_on = ran,
		.allowed = anywhere,
		.home = -1,
	};
}

/* nodes[].busy_cpus is the load of the groups plus `others` on each, for some seconds; max_traffic:
 * the highest seen at a node. */
static void propose_with_traffic(const struct nm_place_group *groups, size_t count, double others,
				 double max_traffic, struct nm_place_proposal *ret)
{
	double demand = 0;
	for (unsigned k = 0; k < NODES; k++) {
		nodes[k].busy_cpus = others;
		for (size_t i = 0; i < count; i++)
			nodes[k].busy_cpus += groups[i].ran_on[k];
		demand += nodes[k].busy_cpus;
	}
	const struct nm_place_view view = {.topology = &topology,
					   .nodes = nodes,
					   .groups = groups,
					   .nr_groups = count,
					   .recent_demand = demand,
					   .max_traffic = max_traffic};
	nm_place_propose(&view, ret);
}

static void propose(const struct nm_place_group *groups, size_t count, double others,
		    struct nm_place_proposal *ret)
{
	propose_with_traffic(groups, count, others, 0, ret);
}

/* Returns the node assigned to a group of two threads on a busy machine, with half of its memory on
 * each of two nodes. */
static int node_of_streaming(double traffic, double others_traffic, double max_traffic)
{
	static const double ran[NODES] = {1, 1, 0, 0}, memory[NODES] = {0.5, 0.5, 0, 0};
	struct nm_place_group group = group_of(2, ran);
	struct nm_place_proposal found;
	group.memory_on = memory;
	group.traffic = traffic;
	group.cpu_traffic = traffic / 2;
	for (unsigned k = 0; k < NODES; k++)
		nodes[k].traffic = others_traffic + memory[k] * traffic;
	propose_with_traffic(&group, 1, 1, max_traffic, &found);
	assert_int_equal(found.reason, found.node < 0 ? NM_PLACE_BANDWIDTH : NM_PLACE_SEPARATE);
	return found.node;
}

static void test_no_controller_is_filled(void **state)
{
	(void)state;
	assert_int_equal(node_of_streaming(20e9, 0, 10e9), -1);
	assert_int_equal(node_of_streaming(10e9, 3e9, 11e9), -1);
	/* This rate was served before. */
	assert_true(node_of_streaming(10e9, 3e9, 17e9) >= 0);
	/* Other programs fill the other controllers. */
	assert_true(node_of_streaming(10e9, 6e9, 11e9) >= 0);
	/* This rate is below the limit of any controller. */
	assert_true(node_of_streaming(4e9, 1e9, 3e9) >= 0);
	/* Without counters of traffic. */
	assert_true(node_of_streaming(0, 0, 0) >= 0);
}

/* Returns the reason for, or against, a home of a group of two threads on a node of two CPUs, whose
 * memory is on that node; it began 0.3 s ago. */
static enum nm_place_reason reason_beside_memory(double cpu_traffic, double max_traffic)
{
	static const double ran[NODES] = {1, 1, 0, 0}, memory[NODES] = {1, 0, 0, 0};
	struct nm_place_group group = group_of(2, ran);
	struct nm_place_proposal found;
	group.age_s = 0.3;
	group.memory_on = memory;
	group.cpu_traffic = cpu_traffic;
	propose_with_traffic(&group, 1, 0, max_traffic, &found);
	assert_int_equal(found.node >= 0, found.reason == NM_PLACE_MEMORY);
	return found.reason;
}

static void test_memory_of_one_thread_gathers_only_what_its_controller_serves(void **state)
{
	(void)state;
	assert_int_equal(reason_beside_memory(1e9, 0), NM_PLACE_MEMORY);
	assert_int_equal(reason_beside_memory(5e9, 0), NM_PLACE_BANDWIDTH);
	assert_int_equal(reason_beside_memory(5e9, 20e9), NM_PLACE_MEMORY);
	/* Its data is in caches. */
	assert_int_equal(reason_beside_memory(1e6, 0), NM_PLACE_CACHED);
	/* Nothing counts its traffic, and it would use all of the node's CPUs. */
	assert_int_equal(reason_beside_memory(0, 0), NM_PLACE_UNPROVEN);
	for (unsigned k = 0; k < NODES; k++)
		nodes[k].cores = 4;
	assert_int_equal(reason_beside_memory(0, 0), NM_PLACE_MEMORY);
}

/* One of its threads runs, as in a serial phase. */
static void test_a_thread_of_many_does_not_show_where_they_run(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 0, 0, 0};
	struct nm_place_group group = group_of(2, ran);
	struct nm_place_proposal found;
	for (unsigned k = 0; k < NODES; k++)
		nodes[k].cores = 8;
	group.age_s = group.observed_s = 5;
	group.max_running = 6;
	group.running = 3;
	propose(&group, 1, 0, &found);
	assert_int_equal(found.reason, NM_PLACE_RUNS_THERE);
	group.running = 2;
	propose(&group, 1, 0, &found);
	assert_int_equal(found.reason, NM_PLACE_SPREAD);
}

/* A burst that has just begun may end as soon. */
static void test_a_burst_gathers_nothing_without_counters(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 1, 0, 0};
	struct nm_place_group group = group_of(2, ran);
	struct nm_place_proposal found;
	group.cpu_traffic = 0;
	for (unsigned k = 0; k < NODES; k++)
		nodes[k].busy_cpus = 1 + ran[k];
	struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = &group, .nr_groups = 1};
	nm_place_propose(&view, &found);
	assert_int_equal(found.reason, NM_PLACE_SPREAD);
	group.cpu_traffic = 1e9;
	nm_place_propose(&view, &found);
	assert_int_equal(found.reason, NM_PLACE_SEPARATE);
	group.cpu_traffic = 0;
	view.recent_demand = 6;
	nm_place_propose(&view, &found);
	assert_int_equal(found.reason, NM_PLACE_SEPARATE);
}

/* Returns the reason for, or against, a home of two threads on two nodes; local_share: of their
 * accesses; others: CPUs that other programs use on each node. */
static enum nm_place_reason reason_of_spread(double local_share, double age_s, double others,
					     bool threads_follow)
{
	static const double ran[NODES] = {1, 1, 0, 0}, memory[NODES] = {0.5, 0.5, 0, 0};
	struct nm_place_group group = group_of(2, ran);
	struct nm_place_proposal found;
	group.memory_on = memory;
	group.local_share = local_share;
	group.age_s = age_s;
	group.observed_s = age_s;
	for (unsigned k = 0; k < NODES; k++)
		nodes[k].busy_cpus = others + ran[k];
	const struct nm_place_view view = {.topology = &topology,
					   .nodes = nodes,
					   .groups = &group,
					   .nr_groups = 1,
					   .recent_demand = 2 + NODES * others,
					   .threads_follow = threads_follow};
	nm_place_propose(&view, &found);
	assert_true((found.node >= 0) == (found.reason == NM_PLACE_SEPARATE));
	return found.reason;
}

/* LBMA, section 4.2: the threads prefer different nodes, and a home would bring them to one. */
static void test_threads_near_their_memory_are_not_packed(void **state)
{
	(void)state;
	assert_int_equal(reason_of_spread(0.6, 60, 1, true), NM_PLACE_APART);
	assert_true(nm_place_is_spread(NM_PLACE_APART));
	assert_int_equal(reason_of_spread(0.5, 60, 1, true), NM_PLACE_SEPARATE);
	assert_int_equal(reason_of_spread(NAN, 60, 1, true), NM_PLACE_SEPARATE);
	assert_int_equal(reason_of_spread(0.9, 3, 1, true), NM_PLACE_SEPARATE);
	/* Beside automatic NUMA balancing no lottery would keep them there. */
	assert_int_equal(reason_of_spread(0.9, 60, 1, false), NM_PLACE_SEPARATE);
	/* Nine threads wait for eight CPUs. */
	assert_int_equal(reason_of_spread(0.9, 60, 1.75, true), NM_PLACE_NO_ROOM);
	/* Memory is short on a node that it uses. */
	nodes[1].free_bytes = 0;
	assert_int_equal(reason_of_spread(0.9, 60, 1, true), NM_PLACE_SEPARATE);
}

/* Four users, each as large as a node, on mixed nodes: each gets a separate node. */
static void test_full_machine_is_separated(void **state)
{
	(void)state;
	static const double ran[4][NODES] = {
		{1, 1, 0, 0}, {1, 1, 0, 0}, {0, 0, 1, 1}, {0, 0, 1, 1}};
	struct nm_place_group groups[4];
	struct nm_place_proposal found[4];
	unsigned taken = 0;
	for (unsigned i = 0; i < 4; i++)
		groups[i] = group_of(2, ran[i]);
	propose(groups, 4, 0, found);
	for (unsigned i = 0; i < 4; i++) {
		assert_in_range(found[i].node, 0, NODES - 1);
		assert_int_equal(found[i].reason, NM_PLACE_SEPARATE);
		assert_true(ran[i][found[i].node] > 0);
		taken |= 1U << found[i].node;
	}
	assert_int_equal(taken, 0xf);
}

/* A single program of several threads on an idle machine stays spread, as it then uses more
 * controllers. */
static void test_idle_machine_stays_spread(void **state)
{
	(void)state;
	static const double apart[NODES] = {1, 0, 1, 0}, everywhere[NODES] = {2, 2, 2, 2};
	struct nm_place_group two = group_of(2, apart), eight = group_of(8, everywhere);
	struct nm_place_proposal found;
	propose(&two, 1, 0, &found);
	assert_int_equal(found.node, -1);
	assert_int_equal(found.reason, NM_PLACE_SPREAD);
	propose(&eight, 1, 0, &found);
	assert_int_equal(found.node, -1);
	assert_int_equal(found.reason, NM_PLACE_LARGER);
}

/* It is gathered at its memory if that is on one node, as the same controller serves it from
 * there. */
static void test_threads_are_gathered_at_their_memory(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 0, 1, 0}, memory[NODES] = {0.05, 0.05, 0.05, 0.85};
	struct nm_place_group group = group_of(2, ran);
	struct nm_place_proposal found;
	group.memory_on = memory;
	propose(&group, 1, 0, &found);
	assert_int_equal(found.node, 3);
	assert_int_equal(found.reason, NM_PLACE_MEMORY);
	assert_true(found.distance_now > 20 && found.distance_home == 10);
}

/* Without samples: memory is assumed on the node where a process runs now and has run for long. */
static void test_memory_is_assumed_where_threads_ran(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 0, 0, 0}, has_run[NODES] = {0.1, 0, 10, 0};
	struct nm_place_group group = group_of(1, ran);
	struct nm_place_proposal found;
	group.has_run_on = has_run;
	group.age_s = group.observed_s = 10;
	propose(&group, 1, 0, &found);
	assert_int_equal(found.node, 2);
	assert_true(found.distance_now > 30);
}

/* The same for processes whose single thread runs all the time, as it may prepare data for later
 * threads. */
static void test_a_single_thread_may_create_others(void **state)
{
	(void)state;
	static const double ran[NODES] = {0, 0, 0, 1};
	struct nm_place_group groups[2] = {group_of(1, ran), group_of(1, ran)};
	struct nm_place_proposal found[2];
	propose(groups, 2, 0, found);
	assert_int_equal(found[0].node, -1);
	assert_int_equal(found[0].reason, NM_PLACE_NEAR);
	assert_in_range(found[1].node, 0, 2);
	groups[0].age_s = groups[1].age_s = 60;
	groups[0].observed_s = groups[1].observed_s = 60;
	propose(groups, 2, 0, found);
	assert_int_equal(found[1].node, 3);
}

/* A young process may soon need more CPUs, and its small memory follows it. One that has run for
 * long stays. */
static void test_young_groups_are_kept_apart(void **state)
{
	(void)state;
	static const double ran[NODES] = {0, 0.2, 0, 0};
	struct nm_place_group groups[3];
	struct nm_place_proposal found[3];
	unsigned taken = 0;
	for (unsigned i = 0; i < 3; i++) {
		groups[i] = group_of(1, ran);
		groups[i].demand_cpus = 0.3;
		groups[i].anon_bytes = 4 << 20;
	}
	propose(groups, 3, 0, found);
	for (unsigned i = 0; i < 3; i++)
		taken |= 1U << (found[i].node < 0 ? 1 : found[i].node);
	assert_int_equal(__builtin_popcount(taken), 3);
	for (unsigned i = 0; i < 3; i++) {
		groups[i].age_s = groups[i].observed_s = 60;
		groups[i].anon_bytes = 100ULL << 30;
		nodes[i].free_bytes = nodes[3].free_bytes = 1ULL << 40;
	}
	propose(groups, 3, 0, found);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(found[i].node, 1);
}

/* A young group is assumed to use a CPU for each of its threads, up to the limit of its cgroup. */
static void test_young_groups_are_expected_within_their_limit(void **state)
{
	(void)state;
	static const double ran[NODES] = {0, 0.5, 0, 0}, memory[NODES] = {1, 0, 0, 0};
	struct nm_place_group group = group_of(2, ran);
	struct nm_place_proposal free_found, limited_found;
	group.memory_on = memory;
	group.demand_cpus = 0.5;
	group.cpu_limit = 1;
	propose(&group, 1, 0, &limited_found);
	group.cpu_limit = 0;
	propose(&group, 1, 0, &free_found);
	assert_true(limited_found.load == free_found.load / 2);
}

/* Parents that ran recently and now wait for their children add no capacity for another thread. */
static void test_a_lull_adds_no_capacity(void **state)
{
	(void)state;
	static const double ran[2][NODES] = {{0, 0, 0, 1}, {0, 0, 0, 0}};
	static const double memory[NODES] = {1, 0, 0, 0};
	struct nm_place_group groups[7];
	struct nm_place_proposal found[7];
	for (unsigned i = 0; i < 7; i++)
		groups[i] = group_of(1, ran[i < 3 ? 0 : 1]);
	groups[0].home = groups[1].home = 0;
	groups[2].memory_on = memory;
	groups[2].memory_stays = true;
	for (unsigned i = 3; i < 7; i++) {
		groups[i].demand_cpus = 2;
		groups[i].wanted_cpus = groups[i].running = 0;
	}
	propose(groups, 7, 0, found);
	assert_int_not_equal(found[2].node, 0);
	for (unsigned i = 3; i < 7; i++)
		groups[i].wanted_cpus = 2; /* all nodes have the same load */
	propose(groups, 7, 0, found);
	assert_int_equal(found[2].node, 0);
}

/* A group that is not eligible yet keeps running where it is, and counts there. */
static void test_young_groups_count_where_they_run(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 1, 0, 0}, there[NODES] = {2, 0, 0, 0};
	struct nm_place_group groups[2] = {group_of(2, ran), group_of(2, there)};
	struct nm_place_proposal found[2];
	propose(groups, 1, 0, found);
	assert_int_equal(found[0].node, -1); /* the machine is idle */
	groups[1].age_s = 0.05;
	nodes[2].cores = nodes[3].cores = 0;
	propose(groups, 2, 0, found);
	assert_int_equal(found[1].reason, NM_PLACE_YOUNG);
	assert_int_equal(found[0].node, 1);
}

static void test_ineligible_groups(void **state)
{
	(void)state;
	static const double ran[NODES] = {2, 0, 0, 0};
	static const bool nowhere[NODES] = {false, false, false, false};
	static const double apart[NODES] = {1, 1, 0, 0};
	const struct nm_place_group group = group_of(2, ran);
	struct nm_place_proposal found;
	struct {
		enum nm_place_reason reason;
		struct nm_place_group group;
	} cases[] = {
		{NM_PLACE_YOUNG, group},   {NM_PLACE_YOUNG, group},   {NM_PLACE_OBSERVED, group},
		{NM_PLACE_IDLE, group},	   {NM_PLACE_BARRED, group},  {NM_PLACE_HAS_HOME, group},
		{NM_PLACE_NO_ROOM, group}, {NM_PLACE_NO_ROOM, group},
	};
	cases[0].group.age_s = 0.05;
	cases[1].group.awaits_query = true;
	cases[1].group.age_s = 60;
	cases[2].group.age_s = 60;
	cases[3].group.demand_cpus = 0.05;
	cases[4].group.barred = true;
	cases[5].group.home = 1;
	cases[6].group.allowed = nowhere;
	cases[7].group.ran_on = apart;
	cases[7].group.anon_bytes = 8ULL << 30;
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		propose(&cases[i].group, 1, 0, &found);
		assert_int_equal(found.node, -1);
		assert_int_equal(found.reason, cases[i].reason);
		assert_true(nm_place_reason_text(found.reason)[0] != '\0');
	}
	struct nm_place_group old = group;
	old.age_s = old.observed_s = 60;
	propose(&old, 1, 0, &found);
	assert_int_equal(found.node, 0);
}

/* If pages take long to move, a young process is gathered beside its memory or stays with it; a
 * long-running one eventually gets a home. */
static void test_memory_too_expensive_to_move(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 1, 0, 0};
	struct nm_place_group groups[4] = {group_of(2, ran), group_of(2, ran), group_of(2, ran),
					   group_of(2, ran)};
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = groups, .nr_groups = 4,
		.page_ns = 1e5}; /* 3.3 s for 64 MiB */
	struct nm_place_proposal found[4];
	for (unsigned k = 0; k < NODES; k++)
		nodes[k].busy_cpus = k < 2 ? 4 : 0;
	nm_place_propose(&view, found);
	unsigned taken = 0;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(found[i].node >= 0, i < 2);
		assert_true(i < 2 || found[i].reason == NM_PLACE_TOO_COSTLY);
		taken |= i < 2 ? 1U << found[i].node : 0;
		groups[i].age_s = groups[i].observed_s = groups[i].lost_s = 20;
	}
	assert_int_equal(taken, 0x3);
	nm_place_propose(&view, found);
	taken = 0;
	for (unsigned i = 0; i < 4; i++) {
		assert_in_range(found[i].node, 0, NODES - 1);
		taken |= 1U << found[i].node;
	}
	assert_int_equal(taken, 0xf);
}

/* If memory is not moved, a home is assigned only if it is nearer to the memory. */
static void test_memory_that_stays(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 0, 0, 1}, memory[NODES] = {0, 0.25, 0.5, 0.25},
			    apart[NODES] = {0.5, 0, 0, 0.5};
	struct nm_place_group group = group_of(2, ran);
	const struct nm_place_view view = {.topology = &topology, .nodes = nodes, .groups = &group,
					   .nr_groups = 1, .memory_stays = true};
	struct nm_place_proposal found;
	for (unsigned k = 0; k < NODES; k++)
		nodes[k].busy_cpus = 2;
	nodes[0].busy_cpus = nodes[3].busy_cpus = 3;
	nodes[1].busy_cpus = nodes[2].busy_cpus = 0;
	group.memory_on = memory;
	nm_place_propose(&view, &found);
	assert_int_equal(found.node, 2);
	nodes[0].busy_cpus = nodes[3].busy_cpus = 1;
	nodes[1].busy_cpus = nodes[2].busy_cpus = 2;
	group.memory_on = apart;
	nm_place_propose(&view, &found);
	assert_int_equal(found.node, -1);
	assert_int_equal(found.reason, NM_PLACE_TOO_COSTLY);
}

/* A group that stays spread keeps running where it is and leaves no capacity for another. */
static void test_unplaced_groups_use_capacity(void **state)
{
	(void)state;
	static const double apart[NODES] = {1, 0, 1, 0}, other[NODES] = {0, 1, 0, 1};
	static const double memory[NODES] = {0.9, 0.1, 0, 0};
	struct nm_place_group groups[2] = {group_of(2, apart), group_of(2, other)};
	struct nm_place_proposal found[2];
	groups[1].memory_on = memory;
	propose(groups, 2, 0, found);
	assert_int_equal(found[0].reason, NM_PLACE_SPREAD);
	assert_int_equal(found[1].node, 1); /* with its memory, which is on node 0 */
}

/* Successive programs leave CPUs idle for moments: the machine is in demand nevertheless. */
static void test_recent_demand_counts(void **state)
{
	(void)state;
	static const double apart[NODES] = {1, 0, 1, 0};
	struct nm_place_group group = group_of(2, apart);
	struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = &group, .nr_groups = 1};
	struct nm_place_proposal found;
	nodes[0].busy_cpus = nodes[2].busy_cpus = 1;
	nm_place_propose(&view, &found);
	assert_int_equal(found.reason, NM_PLACE_SPREAD);
	view.recent_demand = 7;
	nm_place_propose(&view, &found);
	assert_int_equal(found.reason, NM_PLACE_SEPARATE);
}

/* A program has loaded its data with one thread and continues with two: these have touched nothing
 * yet, so neither the location of its memory nor their first node is a reason to gather them on an
 * idle machine. */
static void test_new_threads_are_left_spread(void **state)
{
	(void)state;
	static const double there[NODES] = {1.9, 0.1, 0, 0}, memory[NODES] = {0.9, 0.1, 0, 0};
	struct nm_place_group group = group_of(2, there);
	struct nm_place_proposal found;
	group.memory_on = memory;
	group.age_s = group.observed_s = 60;
	group.steady_s = 0.2;
	propose(&group, 1, 0, &found);
	assert_int_equal(found.reason, NM_PLACE_SPREAD);
	group.steady_s = 2;
	propose(&group, 1, 0, &found);
	assert_int_equal(found.node, 0);
	group.age_s = 1; /* a young process cannot wait */
	group.steady_s = 0.2;
	propose(&group, 1, 0, &found);
	assert_int_not_equal(found.reason, NM_PLACE_SPREAD);
}

/* A large process is placed once the location of its memory is known, a small one at once. */
static void test_large_processes_wait_for_their_memory(void **state)
{
	(void)state;
	static const double apart[NODES] = {1, 0, 1, 0}, memory[NODES] = {1, 0, 0, 0};
	struct nm_place_group group = group_of(2, apart);
	struct nm_place_proposal found;
	group.age_s = 0.15;
	group.anon_bytes = 8 << 20;
	propose(&group, 1, 1, &found);
	assert_int_not_equal(found.reason, NM_PLACE_YOUNG);
	group.anon_bytes = 1 << 30;
	propose(&group, 1, 1, &found);
	assert_int_equal(found.reason, NM_PLACE_YOUNG);
	group.memory_on = memory;
	propose(&group, 1, 1, &found);
	assert_int_not_equal(found.reason, NM_PLACE_YOUNG);
}

/* Other load of up to 0.5 CPUs on a node can use another CPU. */
static void test_light_load_of_others_uses_no_capacity(void **state)
{
	(void)state;
	static const double apart[NODES] = {0, 1, 0, 1};
	struct nm_place_group group = group_of(2, apart);
	struct nm_place_proposal found;
	for (unsigned k = 0; k < NODES; k++)
		nodes[k].free_bytes = 1ULL << 30;
	propose(&group, 1, 1, &found);
	assert_true(found.node >= 0);
	propose(&group, 1, 1.5, &found);
	assert_int_equal(found.reason, NM_PLACE_NO_ROOM);
}

/* On a fully used machine, a process that is too expensive to move does not block a home: it will
 * run elsewhere. */
static void test_large_processes_do_not_block_homes(void **state)
{
	(void)state;
	static const double ran[4][NODES] = {
		{1, 1, 0, 0}, {1, 1, 0, 0}, {0, 0, 1, 1}, {0, 0, 1, 1}};
	struct nm_place_group groups[4];
	struct nm_place_proposal found[4];
	unsigned placed = 0;
	for (unsigned i = 0; i < 4; i++)
		groups[i] = group_of(2, ran[i]);
	groups[0].anon_bytes = 8ULL << 30;
	propose(groups, 4, 0, found);
	for (unsigned i = 1; i < 4; i++)
		placed += found[i].node >= 0;
	assert_int_equal(placed, 3);
}

/* ---- end of homes ---- */

/* For example a server: its single thread answers others, so it runs where these wake it. */
static void test_woken_threads_stay_with_their_wakers(void **state)
{
	static const double ran[NODES] = {0, 1, 0, 0}, memory[NODES] = {1, 0, 0, 0};
	struct nm_place_group group = group_of(1, ran);
	struct nm_place_proposal found;
	(void)state;
	group.memory_on = memory;
	group.burst_s = 0.0015;
	/* It does not sleep, but is preempted by threads of others. */
	propose(&group, 1, 1, &found);
	assert_true(found.node >= 0);
	group.demand_cpus = 0.6;
	propose(&group, 1, 1, &found);
	assert_int_equal(found.node, -1);
	assert_int_equal(found.reason, NM_PLACE_OFTEN_WOKEN);
	/* It computes. */
	group.burst_s = 0.004;
	propose(&group, 1, 1, &found);
	assert_true(found.node >= 0);
	/* Unknown. */
	group.burst_s = 0;
	propose(&group, 1, 1, &found);
	assert_true(found.node >= 0);
	/* Threads that wake each other are packed on a busy machine. */
	static const double apart[NODES] = {1, 1, 0, 0};
	group = group_of(2, apart);
	group.burst_s = 0.0015;
	propose(&group, 1, 1, &found);
	assert_true(found.node >= 0);
}

/* A home assigned while a program loaded its data ends when the program serves others. */
static void test_a_home_ends_if_its_thread_is_woken_by_others(void **state)
{
	static const double ran[NODES] = {0, 1, 0, 0};
	struct nm_place_group group = group_of(1, ran);
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = &group, .nr_groups = 1};
	enum nm_place_reason reason;
	(void)state;
	group.home = 1;
	group.home_reason = NM_PLACE_SINGLE;
	group.home_max_running = 1;
	group.burst_s = 0.0005; /* preempted by other threads all the time */
	nm_place_find_expired(&view, &reason);
	assert_int_equal(reason, NM_PLACE_SINGLE);
	group.demand_cpus = 0.6;
	nm_place_find_expired(&view, &reason);
	assert_int_equal(reason, NM_PLACE_OFTEN_WOKEN);
	group.burst_s = 0.0015; /* so close to the threshold that it would alternate */
	nm_place_find_expired(&view, &reason);
	assert_int_equal(reason, NM_PLACE_SINGLE);
}

/* The program started with two threads, alone or beside others, and its node is too small for
 * more. */
static void test_a_home_for_two_threads_does_not_hold_eight(void **state)
{
	static const double ran[NODES] = {1, 0, 0, 0};
	static const enum nm_place_reason given[] = {NM_PLACE_MEMORY, NM_PLACE_SEPARATE};
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct nm_place_group group = group_of(1, ran);
		const struct nm_place_view view = {
			.topology = &topology, .nodes = nodes, .groups = &group, .nr_groups = 1};
		enum nm_place_reason reason;
		group.home = 0;
		group.home_reason = given[i];
		group.home_max_running = 2;
		group.running = group.max_running = 2 * (unsigned)nodes[0].cores;
		group.demand_cpus = group.wanted_cpus = 2 * nodes[0].cores;
		nm_place_find_expired(&view, &reason);
		assert_int_equal(reason, NM_PLACE_SPREAD);
		group.home_max_running = group.running; /* it knew all of them */
		nm_place_find_expired(&view, &reason);
		assert_int_equal(reason, given[i]);
	}
}

/* It does not get a home because of the work of its threads so far either. */
static void test_threads_that_have_just_started_count_first(void **state)
{
	static const double ran[NODES] = {1.2, 0, 0, 0};
	struct nm_place_group group = group_of(1, ran);
	struct nm_place_proposal found;
	(void)state;
	group.age_s = 1.5;
	propose(&group, 1, 0, &found);
	assert_int_not_equal(found.reason, NM_PLACE_YOUNG);
	group.creating = true;
	propose(&group, 1, 0, &found);
	assert_int_equal(found.reason, NM_PLACE_YOUNG);
}

/* Its memory stays on node 0, which was unknown when node 2 was assigned. */
static void test_a_home_ends_if_memory_stays(void **state)
{
	static const double ran[NODES] = {0, 0, 1, 0}, memory[NODES] = {1, 0, 0, 0};
	struct nm_place_group group = group_of(1, ran);
	struct nm_place_proposal found;
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = &group, .nr_groups = 1};
	enum nm_place_reason reason;
	(void)state;
	group.memory_on = memory;
	group.home = 2;
	group.home_reason = NM_PLACE_MEMORY;
	nm_place_find_expired(&view, &reason);
	assert_int_equal(reason, NM_PLACE_MEMORY);
	group.memory_stays = true;
	nm_place_find_expired(&view, &reason);
	assert_int_equal(reason, NM_PLACE_FIXED);
	group.home = -1;
	propose(&group, 1, 0, &found);
	assert_int_equal(found.node, 0);
	/* It must not leave the best node that has capacity repeatedly. */
	group.home = 2;
	group.home_despite_memory = true;
	nm_place_find_expired(&view, &reason);
	assert_int_equal(reason, NM_PLACE_MEMORY);
}

/* A home for one thread is not kept for eight on an idle machine; one that is still large enough is
 * kept. */
static void test_a_home_ends_with_its_reason(void **state)
{
	(void)state;
	static const double ran[NODES] = {2, 0, 0, 0};
	static const enum nm_place_reason given[] = {NM_PLACE_SINGLE, NM_PLACE_RUNS_THERE,
						     NM_PLACE_SMALL, NM_PLACE_MEMORY,
						     NM_PLACE_SEPARATE};
	struct nm_place_group groups[5];
	enum nm_place_reason reasons[5];
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = groups, .nr_groups = 5};
	for (unsigned i = 0; i < 5; i++) {
		groups[i] = group_of(1, ran);
		groups[i].home = 0;
		groups[i].home_reason = given[i];
		groups[i].home_max_running = 1;
		groups[i].age_s = 60;
		groups[i].demand_cpus = 0.5;
	}
	nm_place_find_expired(&view, reasons);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(reasons[i], given[i]);
	for (unsigned i = 0; i < 5; i++)
		groups[i].running = groups[i].max_running = 8;
	nm_place_find_expired(&view, reasons);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(reasons[i], i < 3 ? NM_PLACE_SPREAD : given[i]);
	/* On a busy machine it is kept apart from others instead. */
	for (unsigned i = 0; i < 5; i++)
		groups[i].demand_cpus = 1.5;
	nm_place_find_expired(&view, reasons);
	assert_int_equal(reasons[0], NM_PLACE_SEPARATE);
}

/* A program that once ran eight threads and now runs one is not a single-threaded program. */
static void test_a_serial_phase_is_not_a_single_thread(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 0, 0, 0};
	struct nm_place_group group = group_of(1, ran);
	struct nm_place_proposal found;
	group.age_s = group.observed_s = 60;
	group.max_running = 8;
	propose(&group, 1, 0, &found);
	assert_int_equal(found.node, -1);
	assert_int_equal(found.reason, NM_PLACE_SPREAD);
}

static void test_yields_only_beside_idle_nodes(void **state)
{
	(void)state;
	static const double ran[NODES] = {2, 0, 0, 0};
	struct nm_place_group groups[2] = {group_of(2, ran), group_of(1, ran)};
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = groups, .nr_groups = 2};
	bool given_up[2];
	groups[0].home = groups[1].home = 0;
	nm_place_yield(&view, given_up);
	assert_false(given_up[0]);
	assert_true(given_up[1]);
	for (unsigned k = 1; k < NODES; k++)
		nodes[k].busy_cpus = 2;
	nm_place_yield(&view, given_up);
	assert_false(given_up[0] || given_up[1]);
}

/* Eight threads that their owner has pinned to the node of a home of two: no demand of the home,
 * but a full node. */
static void test_homes_yield_to_load_of_others(void **state)
{
	(void)state;
	static const double ran[NODES] = {0.4, 0, 0, 0};
	struct nm_place_group group = group_of(2, ran);
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = &group, .nr_groups = 1};
	bool given_up;
	group.home = 0;
	nodes[0].busy_cpus = 2;
	nm_place_yield(&view, &given_up);
	assert_true(given_up);
	/* They are threads of the process itself. */
	static const double own[NODES] = {2, 0, 0, 0};
	group.ran_on = own;
	nm_place_yield(&view, &given_up);
	assert_false(given_up);
}

/* Load that was accepted when the home was assigned does not end it, on small nodes either. */
static void test_homes_yield_to_more_than_accepted_load(void **state)
{
	(void)state;
	static const double ran[NODES] = {2, 0, 0, 0};
	struct nm_place_group group = group_of(2, ran);
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = &group, .nr_groups = 1};
	bool given_up;
	group.demand_cpus = 2.1;
	propose(&group, 1, 0.3, &(struct nm_place_proposal){0});
	group.home = 0;
	nm_place_yield(&view, &given_up);
	assert_false(given_up);
	nodes[0].busy_cpus += 1;
	nm_place_yield(&view, &given_up);
	assert_true(given_up);
}

/* A process without a home can run elsewhere, so the home on its node stays. A bound one cannot. */
static void test_homes_do_not_yield_to_movable_processes(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 0, 0, 0}, two[NODES] = {2, 0, 0, 0};
	static const bool here_alone[NODES] = {true, false, false, false};
	struct nm_place_group groups[2] = {group_of(2, ran), group_of(2, two)};
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = groups, .nr_groups = 2};
	bool given_up[2];
	groups[0].home = 0;
	nodes[0].busy_cpus = 3;
	nm_place_yield(&view, given_up);
	assert_false(given_up[0]);
	groups[1].allowed = here_alone;
	nm_place_yield(&view, given_up);
	assert_true(given_up[0]);
}

/* The process that grew yields, not its neighbour that fits. */
static void test_oversized_groups_yield_first(void **state)
{
	(void)state;
	static const double ran[NODES] = {1, 0, 0, 0};
	struct nm_place_group groups[2] = {group_of(1, ran), group_of(6, ran)};
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = groups, .nr_groups = 2};
	bool given_up[2];
	groups[0].home = groups[1].home = 0;
	nm_place_yield(&view, given_up);
	assert_false(given_up[0]);
	assert_true(given_up[1]);
}

/* ---- verdicts ---- */

/* Local memory costs nothing; the cost of a move is estimated first, and then measured. */
static void test_cost_of_remote_memory(void **state)
{
	(void)state;
	assert_true(nm_place_lost_cpus(2, 10) == 0);
	assert_true(nm_place_lost_cpus(2, NAN) == 0);
	assert_true(nm_place_lost_cpus(0, 31) == 0);
	assert_true(nm_place_lost_cpus(2, 31) > nm_place_lost_cpus(2, 21));
	assert_true(nm_place_lost_cpus(2, 21) > nm_place_lost_cpus(1, 21));
	assert_true(nm_place_lost_cpus(1, 255) < 1);
}

static void add_costs(struct nm_place_cost *cost, uint64_t domain, uint64_t page_ns)
{
	for (unsigned i = 0; i < 20; i++)
		nm_place_add_cost(cost, domain, 65536, 65536 * page_ns);
}

/* The cost of a move is estimated first, and then measured. */
static void test_cost_of_moves(void **state)
{
	(void)state;
	struct nm_place_cost cost = {0};
	double guess = nm_place_migration_cost_s(cost.page_ns, 1 << 20);
	assert_true(guess > 0 && guess < 0.1);
	nm_place_add_cost(&cost, 1, 4096, 4096 * 15000ULL);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) > 2.5 * guess);
	/* Old measurements expire. */
	add_costs(&cost, 1, 5000);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) < 1.1 * guess);
	/* Calls that move nothing cost time too. */
	double before = cost.page_ns;
	nm_place_add_cost(&cost, 1, 0, 1000000000);
	assert_true(cost.page_ns > before);
}

/* One domain, whose moves take as long as it likes, neither stops the moves of others nor makes them
 * appear free of charge; alone it is believed within a factor of four. */
/* SECURITY: page-cost */
static void test_one_domain_teaches_no_cost(void **state)
{
	(void)state;
	struct nm_place_cost cost = {0};
	double guess = nm_place_migration_cost_s(0, 1 << 20);
	for (unsigned i = 0; i < 10; i++)
		nm_place_add_cost(&cost, 1, 256, 4900000000ULL);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) < 4.01 * guess);
	add_costs(&cost, 2, 2000);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) < guess);
	add_costs(&cost, 1, 1);
	add_costs(&cost, 3, 5000);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) > 0.35 * guess);
	/* More domains than are remembered. */
	for (uint64_t domain = 10; domain < 60; domain++)
		add_costs(&cost, domain, 5000);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) > 0.9 * guess);
}

static void test_verdicts_can_fail(void **state)
{
	(void)state;
	const struct nm_place_measure far = {
		.run_s = 4, .distance = 25, .accesses = 500, .performance = NAN};
	struct nm_place_measure near = far, waits = far, fast = far, slow = far, unsampled = far;
	near.distance = 11;
	waits.delay_s = 2;
	const struct nm_place_context calm = {.cpus_idle = true, .tolerance = 0.05},
				      faster = {.performance_drift = 1. / 3, .tolerance = 0.05};
	fast.performance = 2e9;
	slow.performance = 1.5e9;
	unsampled.accesses = 0;
	assert_int_equal(nm_place_judge(&far, &near, &calm).kind, NM_VERDICT_IMPROVED);
	assert_int_equal(nm_place_judge(&near, &far, &calm).kind, NM_VERDICT_ROLLED_BACK);
	assert_int_equal(nm_place_judge(&far, &far, &calm).kind, NM_VERDICT_NEUTRAL);
	assert_int_equal(nm_place_judge(&far, &unsampled, &calm).kind, NM_VERDICT_INCONCLUSIVE);
	assert_int_equal(nm_place_judge(&fast, &slow, &calm).kind, NM_VERDICT_ROLLED_BACK);
	assert_int_equal(nm_place_judge(&slow, &fast, &calm).kind, NM_VERDICT_IMPROVED);
	/* Nearer, but not faster: all other processes became as much faster meanwhile. */
	assert_int_equal(nm_place_judge(&slow, &fast, &faster).kind, NM_VERDICT_NEUTRAL);
	/* Gathered: local, but queueing. */
	near.delay_s = 2;
	assert_int_equal(nm_place_judge(&far, &near, &calm).kind, NM_VERDICT_ROLLED_BACK);
	assert_int_equal(nm_place_judge(&far, &waits, &calm).kind, NM_VERDICT_ROLLED_BACK);
}

/* All of its memory is local, and all of its threads wait for one controller. */
static void test_near_is_no_improvement_behind_a_full_controller(void **state)
{
	(void)state;
	const struct nm_place_measure far = {
		.run_s = 4, .distance = 25, .accesses = 500, .performance = NAN};
	struct nm_place_measure near = far, slow = far, fast = far;
	const struct nm_place_context full = {.controller_full = true, .tolerance = 0.05};
	near.distance = 10;
	slow.performance = 1e9;
	fast.performance = 2e9;
	assert_int_equal(nm_place_judge(&far, &near, &full).kind, NM_VERDICT_NEUTRAL);
	/* Measured performance counts, and so does memory that is farther. */
	assert_int_equal(nm_place_judge(&near, &far, &full).kind, NM_VERDICT_ROLLED_BACK);
	assert_int_equal(nm_place_judge(&slow, &fast, &full).kind, NM_VERDICT_IMPROVED);
}

/* Nearer, but as fast as before, or slower. */
static void test_performance_overrides_the_distance(void **state)
{
	(void)state;
	const struct nm_place_context calm = {.cpus_idle = true, .tolerance = 0.05};
	const struct nm_place_measure before = {
		.run_s = 4, .distance = 25, .accesses = 500, .performance = 1e9};
	struct nm_place_measure after = before;
	after.distance = 10;
	assert_int_equal(nm_place_judge(&before, &after, &calm).kind, NM_VERDICT_NEUTRAL);
	after.performance = 0.45e9;
	assert_int_equal(nm_place_judge(&before, &after, &calm).kind, NM_VERDICT_ROLLED_BACK);
}

/* A controller is full at the highest traffic that was observed, if that is much at all. */
static void test_a_controller_is_full_at_the_highest_traffic(void **state)
{
	(void)state;
	const struct nm_place_node busy[] = {
		{.traffic = 20e9}, {.traffic = 12e9}, {.traffic = 1e9}};
	struct nm_place_view view = {.nodes = busy, .max_traffic = 21e9};
	assert_true(nm_place_is_controller_full(&view, 0));
	assert_false(nm_place_is_controller_full(&view, 1));
	view.max_traffic = 1e9;
	assert_false(nm_place_is_controller_full(&view, 2));
	view.max_traffic = 0; /* not known */
	assert_false(nm_place_is_controller_full(&view, 2));
}

/* On a busier machine all processes wait longer, which does not end a home. */
static void test_waiting_is_relative(void **state)
{
	(void)state;
	struct nm_place_context context = {.cpus_idle = true, .tolerance = 0.05};
	struct nm_place_measure before = {
		.run_s = 4, .delay_s = 40, .distance = NAN, .performance = NAN};
	struct nm_place_measure after = before;
	after.delay_s = 46; /* 1.5 s more for each second, at fourteen threads a CPU */
	assert_int_equal(nm_place_judge(&before, &after, &context).kind, NM_VERDICT_INCONCLUSIVE);
	before.delay_s = 4;
	after.delay_s = 8;
	assert_int_equal(nm_place_judge(&before, &after, &context).kind, NM_VERDICT_ROLLED_BACK);
	context.waiting_drift = 1; /* others do too */
	assert_int_equal(nm_place_judge(&before, &after, &context).kind, NM_VERDICT_INCONCLUSIVE);
	context = (struct nm_place_context){.cpus_idle = false, .tolerance = 0.05};
	assert_int_equal(nm_place_judge(&before, &after, &context).kind, NM_VERDICT_INCONCLUSIVE);
}

/* A hundred processes of one domain that slow down together, as those of one user or one container
 * can, have one of three votes. */
/* SECURITY: drift */
static void test_domains_have_equal_weight(void **state)
{
	(void)state;
	struct nm_place_change changes[103];
	for (unsigned i = 0; i < 100; i++)
		changes[i] = (struct nm_place_change){1, 0.5};
	changes[100] = (struct nm_place_change){2, 1.01};
	changes[101] = (struct nm_place_change){3, 0.99};
	changes[102] = (struct nm_place_change){2, 1.01};
	assert_true(nm_place_domain_median(changes, 103, 1) == 0.99);
	assert_true(nm_place_domain_median(changes, 0, 7) == 7);
}

/* A metric that varies by 10 % from one interval to the next has not become worse by 10 %. */
static void test_noise_is_no_change(void **state)
{
	(void)state;
	const struct nm_place_context calm = {.cpus_idle = true, .tolerance = 0.05};
	struct nm_place_measure before = {.run_s = 4, .distance = NAN, .performance = 1e9};
	struct nm_place_measure after = before;
	after.performance = 0.9e9;
	assert_int_equal(nm_place_judge(&before, &after, &calm).kind, NM_VERDICT_ROLLED_BACK);
	before.performance_variance = 1e16;
	assert_int_equal(nm_place_judge(&before, &after, &calm).kind, NM_VERDICT_NEUTRAL);
	after.performance = 0.7e9;
	assert_int_equal(nm_place_judge(&before, &after, &calm).kind, NM_VERDICT_ROLLED_BACK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_full_machine_is_separated, set_up),
		cmocka_unit_test_setup(test_no_controller_is_filled, set_up),
		cmocka_unit_test_setup(
			test_memory_of_one_thread_gathers_only_what_its_controller_serves, set_up),
		cmocka_unit_test_setup(test_a_thread_of_many_does_not_show_where_they_run, set_up),
		cmocka_unit_test_setup(test_a_burst_gathers_nothing_without_counters, set_up),
		cmocka_unit_test_setup(test_threads_near_their_memory_are_not_packed, set_up),
		cmocka_unit_test_setup(test_a_home_ends_if_memory_stays, set_up),
		cmocka_unit_test_setup(test_a_home_for_two_threads_does_not_hold_eight, set_up),
		cmocka_unit_test_setup(test_threads_that_have_just_started_count_first, set_up),
		cmocka_unit_test_setup(test_woken_threads_stay_with_their_wakers, set_up),
		cmocka_unit_test_setup(test_a_home_ends_if_its_thread_is_woken_by_others, set_up),
		cmocka_unit_test_setup(test_unplaced_groups_use_capacity, set_up),
		cmocka_unit_test_setup(test_recent_demand_counts, set_up),
		cmocka_unit_test_setup(test_new_threads_are_left_spread, set_up),
		cmocka_unit_test_setup(test_large_processes_wait_for_their_memory, set_up),
		cmocka_unit_test_setup(test_light_load_of_others_uses_no_capacity, set_up),
		cmocka_unit_test_setup(test_large_processes_do_not_block_homes, set_up),
		cmocka_unit_test_setup(test_homes_yield_to_load_of_others, set_up),
		cmocka_unit_test_setup(test_homes_yield_to_more_than_accepted_load, set_up),
		cmocka_unit_test_setup(test_homes_do_not_yield_to_movable_processes, set_up),
		cmocka_unit_test_setup(test_oversized_groups_yield_first, set_up),
		cmocka_unit_test_setup(test_a_home_ends_with_its_reason, set_up),
		cmocka_unit_test_setup(test_a_serial_phase_is_not_a_single_thread, set_up),
		cmocka_unit_test_setup(test_idle_machine_stays_spread, set_up),
		cmocka_unit_test_setup(test_threads_are_gathered_at_their_memory, set_up),
		cmocka_unit_test_setup(test_young_groups_are_kept_apart, set_up),
		cmocka_unit_test_setup(test_a_lull_adds_no_capacity, set_up),
		cmocka_unit_test_setup(test_young_groups_are_expected_within_their_limit, set_up),
		cmocka_unit_test_setup(test_memory_is_assumed_where_threads_ran, set_up),
		cmocka_unit_test_setup(test_a_single_thread_may_create_others, set_up),
		cmocka_unit_test_setup(test_young_groups_count_where_they_run, set_up),
		cmocka_unit_test_setup(test_ineligible_groups, set_up),
		cmocka_unit_test_setup(test_yields_only_beside_idle_nodes, set_up),
		cmocka_unit_test_setup(test_memory_too_expensive_to_move, set_up),
		cmocka_unit_test_setup(test_memory_that_stays, set_up),
		cmocka_unit_test_setup(test_cost_of_remote_memory, set_up),
		cmocka_unit_test_setup(test_cost_of_moves, set_up),
		cmocka_unit_test_setup(test_one_domain_teaches_no_cost, set_up),
		cmocka_unit_test_setup(test_verdicts_can_fail, set_up),
		cmocka_unit_test_setup(test_near_is_no_improvement_behind_a_full_controller, set_up),
		cmocka_unit_test_setup(test_performance_overrides_the_distance, set_up),
		cmocka_unit_test_setup(test_a_controller_is_full_at_the_highest_traffic, set_up),
		cmocka_unit_test_setup(test_waiting_is_relative, set_up),
		cmocka_unit_test_setup(test_domains_have_equal_weight, set_up),
		cmocka_unit_test_setup(test_noise_is_no_change, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

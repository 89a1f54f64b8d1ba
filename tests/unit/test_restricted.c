/* SPDX-License-Identifier: MIT */
/* Policy "auto": homes of groups whose threads, CPUs or memory are restricted. */
#define SET_UP set_up
#include "../support/test.h"

#include <math.h>

#include "policy/placement.h"

#define NODES 4U

/* Four nodes of four CPUs in a ring: 10, 21, 31, 21. */
static unsigned distances[NODES * NODES];
static struct nm_topology topology = {.nr_nodes = NODES, .distance = distances};
static struct nm_place_node nodes[NODES];
static bool anywhere[NODES] = {true, true, true, true};

static int set_up(void **state)
{
	(void)state;
	static const unsigned hops[NODES] = {10, 21, 31, 21};
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < NODES; k++)
			distances[i * NODES + k] = hops[(k + NODES - i) % NODES];
	for (unsigned k = 0; k < NODES; k++)
		nodes[k] = (struct nm_place_node){.cores = 4, .free_bytes = 1ULL << 30};
	return 0;
}

/* A group of threads that each use a CPU, distributed as in `ran`, with its memory as in `memory`;
 * it has run for a minute. */
static struct nm_place_group group_of(unsigned threads, double *ran, const double *memory)
{
	return (struct nm_place_group){
		.pid = 100,
		.demand_cpus = threads,
		.wanted_cpus = threads,
		.running = threads,
		.max_running = threads,
		.age_s = 60,
		.observed_s = 60,
		.cpu_traffic = 1e9,
		.anon_bytes = 64ULL << 20,
		.ran_on = ran,
		.memory_on = memory,
		.allowed = anywhere,
		.home = -1,
	};
}

static struct nm_place_view view_of(const struct nm_place_group *groups, size_t count)
{
	double demand = 0;
	for (unsigned k = 0; k < NODES; k++) {
		for (size_t i = 0; i < count; i++)
			nodes[k].busy_cpus += groups[i].ran_on[k];
		demand += nodes[k].busy_cpus;
	}
	return (struct nm_place_view){.topology = &topology,
				      .nodes = nodes,
				      .groups = groups,
				      .nr_groups = count,
				      .recent_demand = demand};
}

static struct nm_place_proposal propose(const struct nm_place_group *group)
{
	struct nm_place_proposal found;
	const struct nm_place_view view = view_of(group, 1);
	nm_place_propose(&view, &found);
	return found;
}

static enum nm_place_reason reason_at(const struct nm_place_group *group)
{
	enum nm_place_reason reason;
	const struct nm_place_view view = view_of(group, 1);
	nm_place_find_expired(&view, &reason);
	return reason;
}

/* ---- threads that are not moved ---- */

/* Two threads are pinned to node 1, and their memory is there; another one runs on node 3. */
static double beside_pinned[NODES] = {0, 2, 0, 1}, pinned[NODES] = {0, 2, 0, 0};
static double on_1[NODES] = {0, 1, 0, 0}, on_3[NODES] = {0, 0, 0, 1};

static struct nm_place_group partly_pinned(void)
{
	struct nm_place_group group = group_of(3, beside_pinned, on_1);
	group.fixed_cpus = 2;
	group.fixed_on = group.fixed_has_run_on = pinned;
	return group;
}

TEST(the_free_thread_joins_pinned_ones)
{
	struct nm_place_group group = partly_pinned();
	group.cpu_traffic = 0; /* not known: the pinned threads are there already */
	assert_int_equal(propose(&group).node, 1);
	assert_true(propose(&group).bytes_away == 0);
}

/* Node 1 is full, so the memory stays, although others could take it. */
TEST(memory_is_not_taken_from_pinned_threads)
{
	static double full[NODES] = {0, 4, 0, 1}, pinned_there[NODES] = {0, 4, 0, 0};
	struct nm_place_group group = partly_pinned();
	group.demand_cpus = group.wanted_cpus = group.running = group.max_running = 5;
	group.fixed_cpus = 4;
	group.ran_on = full;
	group.fixed_on = group.fixed_has_run_on = pinned_there;
	struct nm_place_proposal found = propose(&group);
	assert_int_equal(found.node, -1);
	assert_int_equal(found.reason, NM_PLACE_NO_ROOM); /* on node 1, the only one in question */
}

/* Each uses memory of its own; where it is on average does not matter. */
TEST(threads_pinned_to_each_node_keep_their_memory)
{
	static double each[NODES] = {1, 1, 1, 2}, fixed[NODES] = {1, 1, 1, 1};
	static double even[NODES] = {0.25, 0.25, 0.25, 0.25};
	struct nm_place_group group = group_of(5, each, even);
	group.fixed_cpus = 4;
	group.fixed_on = group.fixed_has_run_on = fixed;
	assert_int_equal(propose(&group).node, -1);
}

/* It sleeps in this interval, but has used its memory before. */
TEST(pinned_threads_may_sleep)
{
	static double now[NODES] = {0, 0, 0, 1}, none[NODES] = {0};
	struct nm_place_group group = group_of(1, now, on_1);
	group.max_running = 3;
	group.fixed_on = none;
	group.fixed_has_run_on = pinned;
	nodes[1].busy_cpus = 8; /* others */
	assert_int_equal(propose(&group).node, -1);
	nodes[3].busy_cpus = 0;
	group.fixed_has_run_on = none;
	assert_true(propose(&group).node >= 0);
}

/* Memory that is elsewhere may come nearer to pinned threads, but not go farther away. */
TEST(memory_may_come_to_pinned_threads)
{
	static double on_2[NODES] = {0, 0, 1, 0};
	struct nm_place_group group = partly_pinned();
	group.memory_on = on_3;
	struct nm_place_proposal found = propose(&group);
	assert_int_not_equal(found.node, -1);
	assert_true(nm_topology_distance(&topology, 1, found.node) <=
		    nm_topology_distance(&topology, 1, 3));
	group.memory_on = on_2;
	nodes[1].busy_cpus = nodes[0].busy_cpus = nodes[2].busy_cpus = 10;
	assert_int_equal(propose(&group).node, -1); /* node 3 is farther from node 1 */
}

/* Its pinned threads need no room at home, and fill their own node. */
TEST(pinned_threads_demand_cpus_of_their_node)
{
	static double ran[NODES] = {0, 4, 0, 1}, fixed[NODES] = {0, 4, 0, 0};
	static double other_ran[NODES] = {0, 0, 1, 0};
	struct nm_place_group groups[2] = {group_of(5, ran, on_3), group_of(1, other_ran, on_1)};
	struct nm_place_proposal found[2];
	groups[0].fixed_cpus = 4;
	groups[0].fixed_on = fixed;
	groups[0].memory_stays = true;
	const struct nm_place_view view = view_of(groups, 2);
	nm_place_propose(&view, found);
	assert_int_equal(found[0].node, 3);
	assert_true(found[0].load == 0.25);
	assert_int_not_equal(found[1].node, 1);
}

/* A home ends if threads are pinned elsewhere later, and use its memory there. */
TEST(threads_pinned_later_end_a_home)
{
	static double parts[NODES] = {0, 0.3, 0, 0.7};
	struct nm_place_group group = partly_pinned();
	group.home = 3;
	group.home_reason = NM_PLACE_REMOTE;
	group.memory_on = on_3;
	assert_int_equal(reason_at(&group), NM_PLACE_REMOTE);
	group.memory_on = parts;
	assert_int_equal(reason_at(&group), NM_PLACE_PINNED);
}

/* Its free threads are not queued because of its pinned ones on other nodes. */
TEST(homes_do_not_yield_to_threads_pinned_elsewhere)
{
	static double ran[NODES] = {0, 4, 0, 1}, fixed[NODES] = {0, 4, 0, 0};
	bool given_up;
	struct nm_place_group group = group_of(5, ran, on_3);
	group.fixed_cpus = 4;
	group.fixed_on = fixed;
	group.home = 3;
	const struct nm_place_view view = view_of(&group, 1);
	nm_place_yield(&view, &given_up);
	assert_false(given_up);
}

/* ---- CPUs that a group may use ---- */

/* Two threads may use one CPU of node 0 and two of node 2, and run and have their memory on node 0.
 */
static double on_0[NODES] = {1, 0, 0, 0}, two_on_0[NODES] = {2, 0, 0, 0};
static double uneven[NODES] = {1, 0, 2, 0}, none_beyond[NODES] = {0};
static bool nodes_0_and_2[NODES] = {true, false, true, false};

static struct nm_place_group confined(void)
{
	struct nm_place_group group = group_of(2, two_on_0, on_0);
	for (unsigned k = 0; k < NODES; k++)
		nodes[k].cores = 2;
	group.room = uneven;
	group.beyond = none_beyond;
	group.allowed = nodes_0_and_2;
	return group;
}

TEST(a_node_counts_with_the_cpus_that_may_be_used)
{
	struct nm_place_group group = confined();
	assert_int_equal(propose(&group).node, 2);
	assert_true(fabs(propose(&group).load - 1) < 1e-9);
}

/* Other nodes are overloaded: this does not let two threads share a CPU. */
TEST(demand_elsewhere_fills_no_room)
{
	struct nm_place_group group = confined();
	nodes[1].busy_cpus = nodes[3].busy_cpus = 40;
	assert_int_not_equal(propose(&group).node, 0);
}

/* The load of others on CPUs that the group cannot use takes no room from it. */
TEST(load_on_other_cpus_does_not_count)
{
	static double beyond[NODES] = {0, 0, 6, 0}, all[NODES] = {1, 0, 2, 0};
	struct nm_place_group group = confined();
	nodes[2].cores = 8;
	nodes[2].busy_cpus = 6;
	group.room = all;
	group.beyond = beyond;
	assert_int_equal(propose(&group).node, 2);
	group.beyond = none_beyond;
	nodes[2].busy_cpus = 6;
	assert_int_equal(propose(&group).node, -1);
}

/* Two processes with one CPU between them on node 0. */
TEST(groups_do_not_share_the_room)
{
	static double one_on_0[NODES] = {1, 0, 0, 0};
	struct nm_place_proposal found[2];
	struct nm_place_group groups[2] = {confined(), confined()};
	for (unsigned i = 0; i < 2; i++) {
		groups[i].ran_on = one_on_0;
		groups[i].demand_cpus = groups[i].wanted_cpus = 1;
		groups[i].running = groups[i].max_running = 1;
	}
	const struct nm_place_view view = view_of(groups, 2);
	nm_place_propose(&view, found);
	assert_true(found[0].node != 0 || found[1].node != 0);
}

TEST(homes_yield_to_idle_cpus_that_may_be_used)
{
	bool given_up;
	struct nm_place_group group = confined();
	group.home = 0;
	const struct nm_place_view view = view_of(&group, 1);
	nm_place_yield(&view, &given_up);
	assert_true(given_up);
	assert_true(nm_place_could_run_elsewhere(&view, &group));
	nodes[2].busy_cpus = 2; /* its CPUs there are busy */
	nm_place_yield(&view, &given_up);
	assert_false(given_up);
	assert_false(nm_place_could_run_elsewhere(&view, &group));
}

/* Programs wait for the CPUs that they may use: idle CPUs elsewhere do not count. */
TEST(threads_leave_a_full_node_of_their_cpuset)
{
	static double ran[NODES] = {1, 1, 0, 0}, parts[NODES] = {0.5, 0.5, 0, 0};
	static double room[NODES] = {2, 2, 0, 0}, beyond[NODES] = {0};
	static bool allowed[NODES] = {true, true, false, false};
	struct nm_place_group group = group_of(2, ran, parts);
	struct nm_place_proposal found;
	group.allowed = allowed;
	group.room = room;
	group.beyond = beyond;
	nodes[0].busy_cpus = 3.5; /* of others, on the same CPUs */
	const struct nm_place_view view = view_of(&group, 1);
	nm_place_propose(&view, &found);
	assert_int_equal(found.reason, NM_PLACE_WAITING);
	assert_int_equal(found.node, 1);
	nodes[0].busy_cpus = 2.5;
	nm_place_propose(&view, &found);
	assert_int_equal(found.reason, NM_PLACE_REMOTE);
}

/* ---- memory that cannot follow ---- */

/* One thread runs on node 2, far from its memory on node 0. */
static double run_2[NODES] = {0, 0, 1, 0}, mem_0[NODES] = {1, 0, 0, 0};

TEST(confined_memory_is_joined_or_left)
{
	static bool only_0[NODES] = {true, false, false, false};
	struct nm_place_group group = group_of(1, run_2, mem_0);
	group.may_hold = only_0;
	assert_int_equal(propose(&group).node, 0);
	/* If it has no room there, a neighbour of node 0 is nearer than node 2. */
	set_up(state);
	nodes[0].busy_cpus = 8;
	assert_int_equal(propose(&group).node, 1);
	assert_true(propose(&group).distance_home == 21);
	/* Without the restriction its memory follows. */
	group.may_hold = NULL;
	set_up(state);
	nodes[0].busy_cpus = 8;
	assert_int_not_equal(propose(&group).node, -1);
}

TEST(memory_comes_to_where_it_may_be)
{
	static bool only_2[NODES] = {false, false, true, false};
	struct nm_place_group group = group_of(1, run_2, mem_0);
	group.may_hold = only_2;
	nodes[0].busy_cpus = 8;
	struct nm_place_proposal found = propose(&group);
	assert_int_equal(found.node, 2);
	assert_true(found.bytes_away == group.anon_bytes);
}

/* For example of a virtual machine with a device (VFIO). */
TEST(pinned_memory_is_where_it_is)
{
	struct nm_place_group group = group_of(1, run_2, mem_0);
	group.pinned_share = 0.9;
	struct nm_place_proposal found = propose(&group);
	assert_int_equal(found.node, 0);
	set_up(state);
	nodes[0].busy_cpus = 8;
	found = propose(&group);
	assert_int_equal(found.node, 1);
	assert_true(fabs(found.distance_home - (0.9 * 21 + 0.1 * 10)) < 1e-9);
	/* A small part does not decide, but is not expected to follow. */
	group.pinned_share = 0.1;
	set_up(state);
	nodes[0].busy_cpus = 8;
	found = propose(&group);
	assert_true(found.node > 0);
	assert_true(found.distance_home > NM_DISTANCE_LOCAL);
	assert_true(fabs((double)found.bytes_away - 0.9 * (double)group.anon_bytes) < 2);
}

/* No memory is moved to a node that has none, so that it needs no room there. */
TEST(a_node_without_memory_may_be_a_home)
{
	static double run_3[NODES] = {0, 0, 0, 1}, on_2[NODES] = {0, 0, 1, 0};
	static bool not_1[NODES] = {true, false, true, true};
	static bool cpus_1_and_3[NODES] = {false, true, false, true};
	struct nm_place_group group = group_of(1, run_3, mem_0);
	group.may_hold = not_1;
	group.allowed = cpus_1_and_3;
	group.pinned_share = 1;
	nodes[1].free_bytes = 0;
	struct nm_place_proposal found = propose(&group);
	assert_int_equal(found.node, -1); /* as near as where it runs */
	group.memory_on = on_2;
	group.ran_on = mem_0;
	group.allowed = anywhere;
	nodes[2].busy_cpus = 8;
	assert_int_not_equal(propose(&group).node, 0);
}

/* Three quarters are memory of a device (node 1): they count where they are. */
TEST(memory_of_a_device_stays)
{
	static double parts[NODES] = {0.25, 0.75, 0, 0}, run_3[NODES] = {0, 0, 0, 1};
	struct nm_place_group group = group_of(1, run_3, parts);
	nodes[1] = (struct nm_place_node){.is_device = true};
	struct nm_place_proposal found = propose(&group);
	assert_int_not_equal(found.node, 3);
	assert_int_not_equal(found.node, 1);
	if (found.node >= 0)
		assert_true(found.bytes_away <= group.anon_bytes / 4 + 1);
	nodes[0].busy_cpus = nodes[2].busy_cpus = 8;
	found = propose(&group); /* the quarter comes to it */
	assert_int_equal(found.node, 3);
	assert_true(fabs(found.distance_home - (0.25 * 10 + 0.75 * 31)) < 1e-9);
	assert_true(found.bytes_away == group.anon_bytes / 4);
}

/* Memory has been pinned since, or the cpuset was changed. */
TEST(a_home_ends_when_its_memory_cannot_follow)
{
	static bool only_0[NODES] = {true, false, false, false};
	struct nm_place_group group = group_of(1, run_2, mem_0);
	group.home = 2;
	group.home_reason = NM_PLACE_REMOTE;
	assert_int_equal(reason_at(&group), NM_PLACE_REMOTE);
	group.may_hold = only_0;
	assert_int_equal(reason_at(&group), NM_PLACE_FIXED);
	group.may_hold = NULL;
	group.pinned_share = 0.9;
	assert_int_equal(reason_at(&group), NM_PLACE_FIXED);
	group.home_despite_memory = true;
	assert_int_equal(reason_at(&group), NM_PLACE_REMOTE);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Policy "auto": homes of groups whose threads, CPUs or memory are restricted. */
#define SET_UP set_up
#include "../support/test.h"

#include <math.h>

#include "../support/script.h"
#include "policy/placement.h"

#define NODES 4U

/* Four nodes of four CPUs in a ring: 10, 21, 31, 21. */
static unsigned distances[NODES * NODES];
static struct nm_topology topology = {.nr_nodes = NODES, .distance = distances};
static struct nm_place_node nodes[NODES]; /* with the load of others */

static struct members {
	double ran[NODES], memory[NODES], fixed[NODES], fixed_before[NODES];
	double room[NODES], beyond[NODES];
	bool allowed[NODES], may_hold[NODES];
} members[2];
static struct nm_place_group groups[2], *group;
static size_t nr_groups;

static int set_up(void **state)
{
	(void)state;
	static const unsigned hops[NODES] = {10, 21, 31, 21};
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < NODES; k++)
			distances[i * NODES + k] = hops[(k + NODES - i) % NODES];
	for (unsigned k = 0; k < NODES; k++)
		nodes[k] = (struct nm_place_node){.cores = 4, .free_bytes = 1ULL << 30};
	memset(groups, 0x55, sizeof(groups)); /* one beyond nr_groups is no group */
	nr_groups = 0;
	return 0;
}

static struct nm_place_view view(void)
{
	static struct nm_place_node loaded[NODES];
	double demand = 0;
	for (unsigned k = 0; k < NODES; k++) {
		loaded[k] = nodes[k];
		for (size_t i = 0; i < nr_groups; i++)
			loaded[k].busy_cpus += groups[i].ran_on[k];
		demand += loaded[k].busy_cpus;
	}
	return (struct nm_place_view){.topology = &topology,
				      .nodes = loaded,
				      .groups = groups,
				      .nr_groups = nr_groups,
				      .recent_demand = demand};
}

/* ---- words ---- */

static struct members *own(void)
{
	return &members[nr_groups - 1];
}

static void take_numbers(const struct step *step, unsigned from, double out[NODES])
{
	for (unsigned k = 0; k < NODES; k++)
		out[k] = N(from + k);
}

static bool *take_nodes(const struct step *step, bool out[NODES])
{
	memset(out, 0, NODES * sizeof(*out));
	for (unsigned i = 0; i < step->nr_numbers; i++)
		out[U(i)] = true;
	return out;
}

/* group 3 ran 0 2 0 1 memory 0 1 0 0: of threads that each use a CPU, for a minute */
WORD(group)
{
	struct members *new = &members[nr_groups];
	group = &groups[nr_groups++];
	*group = (struct nm_place_group){
		.pid = 100,
		.age_s = 60,
		.observed_s = 60,
		.cpu_traffic = 1e9,
		.anon_bytes = 64ULL << 20,
		.ran_on = new->ran,
		.memory_on = new->memory,
		.allowed = new->allowed,
		.home = -1,
	};
	group->demand_cpus = group->wanted_cpus = N(0);
	group->running = group->max_running = U(0);
	take_numbers(step, 1, new->ran);
	take_numbers(step, 5, new->memory);
	memset(new->allowed, true, sizeof(new->allowed));
}

ACTION(ran, take_numbers(step, 0, own()->ran))
ACTION(memory, take_numbers(step, 0, own()->memory))
ACTION(may_run_on, group->allowed = take_nodes(step, own()->allowed))
ACTION(may_hold, group->may_hold = step->nr_numbers ? take_nodes(step, own()->may_hold) : NULL)

/* pinned 0 2 0 0: threads on each node; four more numbers: where they run when they do not sleep */
WORD(pinned)
{
	take_numbers(step, 0, own()->fixed);
	take_numbers(step, step->nr_numbers > NODES ? NODES : 0, own()->fixed_before);
	group->fixed_on = own()->fixed;
	group->fixed_has_run_on = own()->fixed_before;
	group->fixed_cpus = 0;
	for (unsigned k = 0; k < NODES; k++)
		group->fixed_cpus += own()->fixed[k];
}

/* room 1 0 2 0 beyond 0 0 6 0: CPUs that it may use, and the load of others beyond them */
WORD(room)
{
	take_numbers(step, 0, own()->room);
	take_numbers(step, NODES, own()->beyond);
	group->room = own()->room;
	group->beyond = own()->beyond;
}

ACTION(device, nodes[U(0)] = (struct nm_place_node){.is_device = true})
KNOB(busy, nodes[U(0)].busy_cpus)
KNOB(cores, nodes[U(0)].cores)
KNOB(free_bytes, nodes[U(0)].free_bytes)
KNOB(traffic, group->cpu_traffic)
KNOB(most_running, group->max_running)
KNOB(memory_stays, group->memory_stays)
KNOB(pinned_share, group->pinned_share)
KNOB(home, group->home)
KNOB(despite_memory, group->home_despite_memory)

static struct nm_place_proposal proposal(size_t index)
{
	struct nm_place_proposal found[2];
	const struct nm_place_view now = view();
	nm_place_propose(&now, found);
	return found[index];
}

static enum nm_place_reason expired(void)
{
	enum nm_place_reason reason[2];
	const struct nm_place_view now = view();
	group->home_reason = NM_PLACE_REMOTE;
	nm_place_find_expired(&now, reason);
	return reason[0];
}

static bool yields(void)
{
	nm_autofree bool *given_up = nm_must(calloc(nr_groups, sizeof(*given_up)));
	const struct nm_place_view now = view();
	nm_place_yield(&now, given_up);
	return given_up[0];
}

static bool could_leave(void)
{
	const struct nm_place_view now = view();
	return nm_place_could_run_elsewhere(&now, group);
}

/* Of the first group: its new home, … */
QUANTITY(goes_to, proposal(0).node)
NAMES(goes_to, {"none", -1})
QUANTITY(other_goes_to, proposal(1).node)
QUANTITY(by, proposal(0).reason)
NAMES(by, {"no_room", NM_PLACE_NO_ROOM}, {"waiting", NM_PLACE_WAITING}, {"remote", NM_PLACE_REMOTE})
QUANTITY(load, proposal(0).load)
QUANTITY(bytes_away, proposal(0).bytes_away)
QUANTITY(distance, proposal(0).distance_home)
/* … why it has the home or loses it, and whether the home ends for idle CPUs elsewhere. */
QUANTITY(remains, expired())
NAMES(remains, {"remote", NM_PLACE_REMOTE}, {"pinned", NM_PLACE_PINNED}, {"fixed", NM_PLACE_FIXED})
QUANTITY(yields, yields())
QUANTITY(could_leave, could_leave())

/* ---- threads that are not moved ---- */

/* Two threads are pinned to node 1, and their memory is there; another one runs on node 3. */
#define PARTLY_PINNED "group 3 ran 0 2 0 1 memory 0 1 0 0; pinned 0 2 0 0"

/* Its traffic is not known: the pinned threads are there already. */
SCRIPT(the_free_thread_joins_pinned_ones, PARTLY_PINNED,
       "set traffic = 0; goes_to = node1; bytes_away = 0")

/* Node 1, the only one in question, is full, so the memory stays, although others could take it. */
SCRIPT(memory_is_not_taken_from_pinned_threads,
       "group 5 ran 0 4 0 1 memory 0 1 0 0; pinned 0 4 0 0; goes_to = none; by = no_room")

/* Each uses memory of its own; where it is on average does not matter. */
SCRIPT(threads_pinned_to_each_node_keep_their_memory,
       "group 5 ran 1 1 1 2 memory 0.25 0.25 0.25 0.25; pinned 1 1 1 1; goes_to = none")

/* It sleeps in this interval, but has used its memory before. */
SCRIPT(pinned_threads_may_sleep,
       "group 1 ran 0 0 0 1 memory 0 1 0 0; set most_running = 3; set busy node1 = 8",
       "pinned 0 0 0 0 awake 0 2 0 0; goes_to = none; pinned 0 0 0 0; goes_to >= 0")

/* Memory that is elsewhere may come nearer to pinned threads, but not go farther away: node 3 is
 * farther from node 1 than node 2. */
SCRIPT(memory_may_come_to_pinned_threads, PARTLY_PINNED,
       "memory 0 0 0 1; goes_to = node3; memory 0 0 1 0",
       "set busy node0 = 10; set busy node1 = 10; set busy node2 = 10; goes_to = none")

/* Its pinned threads need no room at home, and fill their own node. */
SCRIPT(pinned_threads_demand_cpus_of_their_node,
       "group 5 ran 0 4 0 1 memory 0 0 0 1; pinned 0 4 0 0; set memory_stays = 1",
       "group 1 ran 0 0 1 0 memory 0 1 0 0; goes_to = node3; load = 0.25; other_goes_to != node1")

/* A home ends if threads are pinned elsewhere later, and use its memory there. */
SCRIPT(threads_pinned_later_end_a_home, PARTLY_PINNED,
       "set home = node3; memory 0 0 0 1; remains = remote; memory 0 0.3 0 0.7; remains = pinned")

/* Its free threads are not queued because of its pinned ones on other nodes. */
SCRIPT(homes_do_not_yield_to_threads_pinned_elsewhere,
       "group 5 ran 0 4 0 1 memory 0 0 0 1; pinned 0 4 0 0; set home = node3; yields = 0")

/* ---- CPUs that a group may use ---- */

/* Threads may use one CPU of node 0 and two of node 2, and run and have their memory on node 0. */
#define CONFINED(threads)                                                                          \
	"group " #threads " ran " #threads " 0 0 0 memory 1 0 0 0; room 1 0 2 0 beyond 0 0 0 0; "  \
	"may_run_on 0 2"
#define TWO_CPUS                                                                                   \
	"set cores node0 = 2; set cores node1 = 2; set cores node2 = 2; set cores node3 = 2"

SCRIPT(a_node_counts_with_the_cpus_that_may_be_used, TWO_CPUS, CONFINED(2),
       "goes_to = node2; load = 1")

/* Other nodes are overloaded: this does not let two threads share a CPU. */
SCRIPT(demand_elsewhere_fills_no_room, TWO_CPUS, CONFINED(2),
       "set busy node1 = 40; set busy node3 = 40; goes_to != node0")

/* The load of others on CPUs that the group cannot use takes no room from it. */
SCRIPT(load_on_other_cpus_does_not_count, TWO_CPUS, CONFINED(2),
       "set cores node2 = 8; set busy node2 = 6; set busy node0 = 2; room 1 0 2 0 beyond 0 0 6 0; "
       "goes_to = node2",
       "room 1 0 2 0 beyond 0 0 0 0; goes_to = none")

/* Two processes have one CPU between them on node 0, where their memory is. */
SCRIPT(groups_do_not_share_the_room, TWO_CPUS, CONFINED(1), "ran 0 0 1 0", CONFINED(1),
       "ran 0 0 1 0; goes_to = node2; other_goes_to = node0")

/* Its CPUs there are busy afterwards. */
SCRIPT(homes_yield_to_idle_cpus_that_may_be_used, TWO_CPUS, CONFINED(2),
       "set home = node0; yields = 1; could_leave = 1",
       "set busy node2 = 2; yields = 0; could_leave = 0")

/* Programs wait for the CPUs that they may use: idle CPUs elsewhere do not count. */
SCRIPT(threads_leave_a_full_node_of_their_cpuset,
       "group 2 ran 1 1 0 0 memory 0.5 0.5 0 0; may_run_on 0 1; room 2 2 0 0 beyond 0 0 0 0",
       "set busy node0 = 3.5; by = waiting; goes_to = node1; set busy node0 = 1.5; by = remote")

/* ---- memory that cannot follow ---- */

/* One thread runs on node 2, far from its memory on node 0. */
#define FAR "group 1 ran 0 0 1 0 memory 1 0 0 0"

/* If it has no room there, a neighbour of node 0 is nearer than node 2. */
SCRIPT(confined_memory_is_joined_or_left, FAR, "may_hold 0; goes_to = node0",
       "set busy node0 = 8; goes_to = node1; distance = 21; may_hold all; goes_to >= 0")

SCRIPT(memory_comes_to_where_it_may_be, FAR,
       "may_hold 2; set busy node0 = 8; goes_to = node2; bytes_away = 64M")

/* For example of a virtual machine with a device (VFIO). A small part does not decide, but is not
 * expected to follow. */
SCRIPT(pinned_memory_is_where_it_is, FAR, "set pinned_share = 0.9; goes_to = node0",
       "set busy node0 = 8; goes_to = node1; distance = 19.9",
       "set pinned_share = 0.1; goes_to = node1; distance = 11.1; bytes_away = 60397977")

/* No memory is moved to a node that has none, so that it needs no room there. It is as near as
 * where the group runs. */
SCRIPT(a_node_without_memory_may_be_a_home,
       "group 1 ran 0 0 0 1 memory 1 0 0 0; may_hold 0 2 3; may_run_on 1 3; set pinned_share = 1",
       "set free_bytes node1 = 0; goes_to = none", "memory 0 0 1 0")

/* Three quarters are memory of a device (node 1): they count where they are. */
SCRIPT(memory_of_a_device_stays, "group 1 ran 0 0 0 1 memory 0.25 0.75 0 0; device node1",
       "goes_to = node0; bytes_away = 0", "set busy node0 = 8; set busy node2 = 8",
       "goes_to = node3; distance = 25.75; bytes_away = 16M") /* the quarter comes to it */

/* Memory has been pinned since, or the cpuset was changed. */
SCRIPT(a_home_ends_when_its_memory_cannot_follow, FAR,
       "set home = node2; remains = remote; may_hold 0; remains = fixed; may_hold all",
       "set pinned_share = 0.9; remains = fixed; set despite_memory = 1; remains = remote")

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for snapshots of the machine of interval.h. Threads are numbered in the
 * order in which they were added:
 *
 *	machine 4 2; machine 2 2 2	nodes, CPUs of each, siblings of a core
 *	thread 10 cpu0 node2		of a process, with its memory on a node; node-: no accesses
 *	touch 0 node1 150; allow 0 0-3	its accesses; its affinity
 *	metrics 0 100 300 50 20		O_R, O_F and bytes per second, L
 *	unusable 3; distance 0 2 30
 */
#ifndef NM_TEST_SNAPSHOT_WORDS_H
#define NM_TEST_SNAPSHOT_WORDS_H

#include "../support/interval.h"

#include "../support/script.h"

static struct machine *machine;
static struct nm_snapshot *taken;

/* Nodes and CPUs of each. */
#ifndef SNAPSHOT_MACHINE
#define SNAPSHOT_MACHINE 4, 2
#endif

static inline int open_snapshot(void **state)
{
	(void)state;
	machine = machine_new(SNAPSHOT_MACHINE);
	return 0;
}

static inline int close_snapshot(void **state)
{
	(void)state;
	nm_snapshot_free(taken);
	taken = NULL;
	machine_free(machine);
	return 0;
}

/* The machine as it is now; valid until the next call. */
static inline const struct nm_snapshot *take(void)
{
	nm_snapshot_free(taken);
	taken = machine_snapshot(machine);
	assert_non_null(taken);
	return taken;
}

WORD(machine)
{
	machine_free(machine);
	machine = machine_of_size(U(0), U(1), step->nr_numbers > 2 ? U(2) : 1, 100);
}

WORD(distance)
{
	const unsigned nodes = machine->topology->nr_nodes;
	machine->topology->distance[U(0) * nodes + U(1)] = U(2);
	machine->topology->distance[U(1) * nodes + U(0)] = U(2);
}

ACTION(thread, machine_thread(machine, U(0), (int)N(1), step->nr_numbers > 2 ? (int)N(2) : -1))
ACTION(touch, machine_touch(machine, U(0), U(1), N(2)))
ACTION(allow, machine_allow(machine, U(0), step->word[1]))
ACTION(metrics, machine_perform(machine, U(0), N(1), N(2), N(3), N(4)))
ACTION(run_on, machine_run_on(machine, U(0), (int)N(1)))
ACTION(paper, machine_paper(&machine->config))
ACTION(unusable, hwloc_bitmap_clr(machine->topology->usable, U(0)))
KNOB(busy, machine->busy[U(0)])
KNOB(run_share, machine->sampled[U(0)].stats.run_share)
KNOB(access_total, machine->sampled[U(0)].stats.access_total)
KNOB(main_node_share, machine->sampled[U(0)].stats.main_node_share)

#endif

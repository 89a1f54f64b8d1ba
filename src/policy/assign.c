/* SPDX-License-Identifier: MIT */
#include "numa-migrd/assign.h"

#include <math.h>
#include <string.h>

#define ELSEWHERE_SHARE 0.8
#define ELSEWHERE_SAMPLES 10
#define TAKEN_MOST 3
#define STAYED_NS (3 * NM_NSEC_PER_SEC) /* after which earlier moves no longer count */
#define REST_NS (60 * NM_NSEC_PER_SEC)	 /* doubled by each rest */
#define REST_MOST_NS (1800 * NM_NSEC_PER_SEC)
#define WANTS_CPU 0.25 /* share of a CPU from which a thread counts as wanting one: of four that
			* share a CPU, each gets this */

/* ---- the table ---- */

struct nm_assignments *nm_assignments_new(void)
{
	struct nm_assignments *assignments = nm_must(calloc(1, sizeof(*assignments)));
	assignments->of_tid = nm_tidmap_new();
	return assignments;
}

void nm_assignments_free(struct nm_assignments *assignments)
{
	if (!assignments)
		return;
	nm_tidmap_free(assignments->of_tid);
	free(assignments->items);
	free(assignments->on);
	free(assignments);
}

static struct nm_assignment *find(const struct nm_assignments *assignments, uint32_t tid)
{
	uint32_t index = nm_tidmap_get(assignments->of_tid, tid);
	return index == NM_TIDMAP_NONE ? NULL : &assignments->items[index];
}

static void set_node(struct nm_assignments *assignments, struct nm_assignment *one, int node)
{
	if (one->node >= 0 && one->node < (int)assignments->nr_nodes)
		assignments->on[one->node]--;
	one->node = node;
	if (node >= 0 && node < (int)assignments->nr_nodes)
		assignments->on[node]++;
}

static void drop(struct nm_assignments *assignments, size_t index)
{
	struct nm_assignment *one = &assignments->items[index];
	set_node(assignments, one, -1);
	nm_tidmap_remove(assignments->of_tid, one->tid);
	struct nm_assignment *last = &assignments->items[--assignments->count];
	if (one == last)
		return;
	*one = *last;
	(void)nm_tidmap_set(assignments->of_tid, one->tid, (uint32_t)index);
}

/* Node indices change with the topology. */
static void use_nodes(struct nm_assignments *assignments, const struct nm_topology *topology)
{
	if (assignments->nr_nodes == topology->nr_nodes && assignments->on)
		return;
	while (assignments->count > 0)
		drop(assignments, assignments->count - 1);
	free(assignments->on);
	assignments->on = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*assignments->on)));
	assignments->nr_nodes = topology->nr_nodes;
}

static bool is_same(const struct nm_assignment *one, const struct nm_snap_thread *thread)
{
	return one->start_ticks == thread->start_ticks && one->adopted_ns == thread->adopted_ns;
}

/* Returns NULL if the number is out of range. */
static struct nm_assignment *find_or_add(struct nm_assignments *assignments,
					 const struct nm_snap_thread *thread)
{
	struct nm_assignment *one = find(assignments, thread->tid);
	if (one && is_same(one, thread))
		return one;
	if (one)
		drop(assignments, (size_t)(one - assignments->items));
	NM_RESERVE(assignments->items, assignments->capacity, assignments->count);
	if (nm_tidmap_set(assignments->of_tid, thread->tid, (uint32_t)assignments->count) < 0)
		return NULL;
	one = &assignments->items[assignments->count++];
	*one = (struct nm_assignment){.tid = thread->tid,
				      .pid = thread->pid,
				      .start_ticks = thread->start_ticks,
				      .adopted_ns = thread->adopted_ns,
				      .node = -1};
	return one;
}

const struct nm_assignment *nm_assignments_of(const struct nm_assignments *assignments,
					      uint32_t tid, uint64_t start_ticks)
{
	const struct nm_assignment *one = find(assignments, tid);
	return one && one->start_ticks == start_ticks ? one : NULL;
}

bool nm_assignments_has(const struct nm_assignments *assignments, uint32_t tid,
			uint64_t start_ticks)
{
	const struct nm_assignment *one = nm_assignments_of(assignments, tid, start_ticks);
	return one && one->node >= 0;
}

/* ---- one interval ---- */

static void follow_one(struct nm_assignment *one, const struct nm_snap_thread *thread,
		       const struct nm_snapshot *snapshot, const struct nm_config *config)
{
	double moved_s = (double)(snapshot->time_ns - one->returned_ns) / (double)NM_NSEC_PER_SEC;
	one->elsewhere = false;
	/* It was not there for most of the interval in which it was moved. */
	if (one->node < 0 || thread->main_node < 0 ||
	    moved_s < ELSEWHERE_SHARE * config->general.interval_s)
		return;
	one->elsewhere = thread->main_node != one->node &&
			 thread->main_node_share >= ELSEWHERE_SHARE &&
			 thread->run_samples >= ELSEWHERE_SAMPLES;
	if (config->rules.paper)
		return;
	if (!one->elsewhere) {
		if (snapshot->time_ns - one->returned_ns >= STAYED_NS)
			one->taken = 0;
		return;
	}
	if (snapshot->time_ns < one->rest_until_ns || ++one->taken < TAKEN_MOST)
		return;
	uint64_t rest_ns = one->rests < 5 ? REST_NS << one->rests : REST_MOST_NS;
	one->rest_until_ns = snapshot->time_ns + rest_ns;
	one->rests++;
	one->taken = 0;
}

static unsigned usable_cpus(const struct nm_topology *topology, unsigned node)
{
	int count = hwloc_bitmap_weight(topology->nodes[node].cpus);
	return count > 0 ? (unsigned)count : 0;
}

static void count_wanting(const struct nm_snapshot *snapshot, uint32_t *wanting)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->main_node >= 0 && thread->run_share >= WANTS_CPU)
			wanting[thread->main_node]++;
	}
}

/* A thread that waits while CPUs elsewhere are idle must be free to leave. */
static void end_surplus(struct nm_assignments *assignments, const struct nm_snapshot *snapshot)
{
	nm_autofree uint32_t *wanting =
		nm_must(calloc(assignments->nr_nodes + 1U, sizeof(*wanting)));
	count_wanting(snapshot, wanting);
	for (size_t i = assignments->count; i-- > 0;) {
		struct nm_assignment *one = &assignments->items[i];
		const struct nm_snap_thread *thread = nm_snapshot_thread(snapshot, one->tid);
		if (one->node < 0 || !thread || thread->main_node != one->node ||
		    wanting[one->node] <= usable_cpus(snapshot->topology, (unsigned)one->node))
			continue;
		wanting[one->node]--;
		set_node(assignments, one, -1);
	}
}

void nm_assignments_follow(struct nm_assignments *assignments, const struct nm_snapshot *snapshot,
			   const struct nm_config *config)
{
	use_nodes(assignments, snapshot->topology);
	for (size_t i = assignments->count; i-- > 0;) {
		struct nm_assignment *one = &assignments->items[i];
		const struct nm_snap_thread *thread = nm_snapshot_thread(snapshot, one->tid);
		if (!thread || !is_same(one, thread) || thread->only_watched)
			drop(assignments, i);
		else
			follow_one(one, thread, snapshot, config);
	}
	if (!config->rules.paper)
		end_surplus(assignments, snapshot);
}

/* ---- assigning ---- */

static bool is_used_there(const struct nm_snap_thread *thread, int node)
{
	return thread->access_total > 0 && 2 * thread->accesses[node] > thread->access_total;
}

static bool may_assign(const struct nm_assignments *assignments,
		       const struct nm_snapshot *snapshot, const struct nm_snap_thread *thread,
		       const struct nm_assignment *one, const struct nm_assigning *assigning)
{
	unsigned room = usable_cpus(snapshot->topology, (unsigned)assigning->node);
	if (one->node == assigning->node)
		return true;
	if (!assigning->computes || !(thread->run_share >= NM_ASSIGN_COMPUTES) ||
	    assignments->on[assigning->node] >= room)
		return false;
	return !snapshot->kernel_balances || assigning->memory_there ||
	       is_used_there(thread, assigning->node);
}

void nm_assignments_note(struct nm_assignments *assignments, const struct nm_snapshot *snapshot,
			 const struct nm_config *config, const struct nm_snap_thread *thread,
			 const struct nm_assigning *assigning)
{
	use_nodes(assignments, snapshot->topology);
	struct nm_assignment *one = find_or_add(assignments, thread);
	if (!one)
		return;
	bool paper = config->rules.paper;
	bool assigned = paper || may_assign(assignments, snapshot, thread, one, assigning);
	if (!assigned || one->node != assigning->node) {
		one->since_ns = one->returned_ns = snapshot->time_ns;
		one->elsewhere = false;
	}
	if (assigning->decision)
		one->decision = assigning->decision;
	one->by_home = assigning->by_home;
	set_node(assignments, one, assigned ? assigning->node : -1);
}

void nm_assignments_missed(struct nm_assignments *assignments, uint32_t tid, uint64_t start_ticks)
{
	struct nm_assignment *one = find(assignments, tid);
	if (one && one->start_ticks == start_ticks)
		one->decision = 0;
}

bool nm_assignment_is_due(const struct nm_assignment *assignment, uint64_t now_ns)
{
	return assignment->node >= 0 && assignment->elsewhere &&
	       now_ns >= assignment->rest_until_ns;
}

void nm_assignments_return(struct nm_assignments *assignments, uint32_t tid, uint64_t now_ns)
{
	struct nm_assignment *one = find(assignments, tid);
	if (!one)
		return;
	one->returned_ns = now_ns;
	one->elsewhere = false;
}

void nm_assignments_end_thread(struct nm_assignments *assignments, uint32_t tid,
			       uint64_t start_ticks)
{
	struct nm_assignment *one = find(assignments, tid);
	if (one && one->start_ticks == start_ticks)
		set_node(assignments, one, -1);
}

void nm_assignments_end_process(struct nm_assignments *assignments, uint32_t pid)
{
	for (size_t i = 0; i < assignments->count; i++)
		if (assignments->items[i].pid == pid)
			set_node(assignments, &assignments->items[i], -1);
}

/* ---- moving again ---- */

void nm_assignments_plan(struct nm_assignments *assignments, const struct nm_snapshot *snapshot,
			 const struct nm_config *config, size_t most, struct nm_plan *plan)
{
	for (size_t i = 0; i < snapshot->nr_threads && plan->count < most; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		const struct nm_assignment *one =
			nm_assignments_of(assignments, thread->tid, thread->start_ticks);
		if (!one || one->by_home || !nm_assignment_is_due(one, snapshot->time_ns))
			continue;
		if (nm_plan_add_home(snapshot, config, (uint32_t)i, one->node, NM_STEP_MOVE,
				     one->decision, plan) == 0)
			nm_assignments_return(assignments, thread->tid, snapshot->time_ns);
	}
}

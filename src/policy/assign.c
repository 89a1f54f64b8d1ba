/* SPDX-License-Identifier: MIT */
#include "policy/assign.h"

#include <math.h>
#include <string.h>

#define MOVED_SHARE 0.5 /* of an interval, after which a move counts in it */
#define ELSEWHERE_SAMPLES 2
#define COMPUTES 0.75			/* share of the CPU time that each thread can have */
#define STAYED_NS (3 * NM_NSEC_PER_SEC) /* after which it counts as not taken away before */
#define TAKEN_MOST 60
#define REST_NS (60 * NM_NSEC_PER_SEC) /* doubled by each of the first rests */
#define RESTS_MOST 5
#define REST_MOST_NS (1800 * NM_NSEC_PER_SEC)
#define WANTS_CPU 0.05 /* share of a CPU from which a thread wants one */

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
	free(assignments->wanting);
	free(assignments->sharing);
	free(assignments);
}

size_t nm_assignments_count(const struct nm_assignments *assignments)
{
	size_t count = 0;
	for (unsigned node = 0; node < assignments->nr_nodes; node++)
		count += assignments->on[node];
	return count;
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

void nm_assignments_clear(struct nm_assignments *assignments)
{
	while (assignments->count > 0)
		drop(assignments, assignments->count - 1);
}

static void use_cpus(struct nm_assignments *assignments, const struct nm_topology *topology)
{
	if (assignments->nr_cpus == topology->nr_cpus && assignments->sharing)
		return;
	free(assignments->sharing);
	assignments->sharing =
		nm_must(calloc(topology->nr_cpus + 1U, sizeof(*assignments->sharing)));
	assignments->nr_cpus = topology->nr_cpus;
}

/* Node indices change with the topology. */
static void use_nodes(struct nm_assignments *assignments, const struct nm_topology *topology)
{
	if (assignments->nr_nodes == topology->nr_nodes && assignments->on)
		return;
	nm_assignments_clear(assignments);
	free(assignments->on);
	free(assignments->wanting);
	assignments->on = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*assignments->on)));
	assignments->wanting =
		nm_must(calloc(topology->nr_nodes + 1U, sizeof(*assignments->wanting)));
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
	if (one->node < 0 || moved_s < MOVED_SHARE * config->general.interval_s)
		return;
	/* On a full machine a thread may run on several nodes within an interval. */
	one->elsewhere = thread->stats.main_node != one->node &&
			 thread->stats.run_samples >= ELSEWHERE_SAMPLES;
	if (config->rules.paper)
		return;
	if (!one->elsewhere) {
		if (snapshot->time_ns - one->returned_ns >= STAYED_NS)
			one->taken = 0;
		return;
	}
	if (snapshot->time_ns < one->rest_until_ns || ++one->taken < TAKEN_MOST)
		return;
	uint64_t rest_ns = one->rests < RESTS_MOST ? REST_NS << one->rests : REST_MOST_NS;
	one->rest_until_ns = snapshot->time_ns + rest_ns;
	one->rests++;
	one->taken = 0;
}

/* Counts the threads that want a CPU, of each node and CPU, and for each CPU of the machine. */
static void count_wanting(struct nm_assignments *assignments, const struct nm_snapshot *snapshot)
{
	int cpus = hwloc_bitmap_weight(snapshot->topology->online);
	unsigned all = 0;
	memset(assignments->sharing, 0, assignments->nr_cpus * sizeof(*assignments->sharing));
	memset(assignments->wanting, 0, assignments->nr_nodes * sizeof(*assignments->wanting));
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->stats.main_node < 0 || !(thread->stats.run_share >= WANTS_CPU))
			continue;
		assignments->wanting[thread->stats.main_node]++;
		assignments->sharing[thread->stats.main_cpu]++;
		all++;
	}
	assignments->crowding = cpus > 0 ? fmax(1, (double)all / cpus) : 1;
}

/* Returns how many threads may be assigned to the node: one for each CPU or, if more threads want
 * one than the machine has, its share of them. */
static unsigned room_on(const struct nm_assignments *assignments,
			const struct nm_topology *topology, int node)
{
	int cpus = hwloc_bitmap_weight(topology->nodes[node].cpus);
	return cpus > 0 ? (unsigned)ceil(assignments->crowding * cpus) : 0;
}

/* Returns the assignment of a thread that wants a CPU of its node, or NULL. */
static struct nm_assignment *find_wanted(const struct nm_assignments *assignments,
					 const struct nm_snap_thread *thread)
{
	struct nm_assignment *one = find(assignments, thread->tid);
	return one && one->node >= 0 && thread->stats.run_share >= WANTS_CPU ? one : NULL;
}

/* A thread that was taken away from a node with as many others as it has room for stays away. */
static void end_away(struct nm_assignments *assignments, const struct nm_snapshot *snapshot)
{
	nm_autofree uint32_t *all = nm_must(calloc(assignments->nr_nodes + 1U, sizeof(*all)));
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_assignment *one = find_wanted(assignments, &snapshot->threads[i]);
		if (one)
			all[one->node]++;
	}
	for (size_t i = snapshot->nr_threads; i-- > 0;) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		struct nm_assignment *one = find_wanted(assignments, thread);
		if (!one || thread->stats.main_node == one->node ||
		    all[one->node] <= room_on(assignments, snapshot->topology, one->node))
			continue;
		all[one->node]--;
		set_node(assignments, one, -1);
	}
}

/* A thread that waits while CPUs elsewhere are idle must be free to leave. */
static void end_surplus(struct nm_assignments *assignments, struct nm_snapshot *snapshot)
{
	for (size_t i = snapshot->nr_threads; i-- > 0;) {
		struct nm_snap_thread *thread = &snapshot->threads[i];
		struct nm_assignment *one = find(assignments, thread->tid);
		if (!one || one->node < 0 || thread->stats.main_node != one->node ||
		    assignments->wanting[one->node] <=
			    room_on(assignments, snapshot->topology, one->node))
			continue;
		assignments->wanting[one->node]--;
		set_node(assignments, one, -1);
		thread->movable = false; /* in this interval */
	}
}

/* A thread that must share its CPU computes with half of it, or with what a crowded machine leaves.
 */
static bool computes(const struct nm_assignments *assignments, const struct nm_snap_thread *thread)
{
	bool known = thread->stats.main_cpu >= 0 &&
		     (unsigned)thread->stats.main_cpu < assignments->nr_cpus;
	bool shares = known && assignments->sharing[thread->stats.main_cpu] > 1;
	return thread->stats.run_share * fmax(shares ? 2 : 1, assignments->crowding) >= COMPUTES;
}

void nm_assignments_follow(struct nm_assignments *assignments, struct nm_snapshot *snapshot,
			   const struct nm_config *config)
{
	use_nodes(assignments, snapshot->topology);
	use_cpus(assignments, snapshot->topology);
	count_wanting(assignments, snapshot);
	for (size_t i = assignments->count; i-- > 0;) {
		struct nm_assignment *one = &assignments->items[i];
		const struct nm_snap_thread *thread = nm_snapshot_thread(snapshot, one->tid);
		if (!thread || !is_same(one, thread) || thread->only_watched)
			drop(assignments, i);
		else
			follow_one(one, thread, snapshot, config);
	}
	if (!config->rules.paper) {
		end_surplus(assignments, snapshot);
		end_away(assignments, snapshot);
	}
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct nm_snap_thread *thread = &snapshot->threads[i];
		const struct nm_assignment *one = find(assignments, thread->tid);
		thread->assigned = one ? one->node : -1;
		thread->rests = thread->stats.run_share >= 0 && !computes(assignments, thread);
	}
}

/* ---- assigning ---- */

static bool is_used_there(const struct nm_snap_thread *thread, int node)
{
	return thread->stats.access_total > 0 &&
	       2 * thread->stats.accesses[node] > thread->stats.access_total;
}

static bool may_assign(const struct nm_assignments *assignments, const struct nm_snapshot *snapshot,
		       const struct nm_snap_thread *thread, const struct nm_assignment *one,
		       const struct nm_assigning *assigning)
{
	if (one->node == assigning->node)
		return true;
	if (!assigning->computes || !computes(assignments, thread) ||
	    assignments->on[assigning->node] >=
		    room_on(assignments, snapshot->topology, assigning->node))
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
	one->returned_ns = snapshot->time_ns;
	one->elsewhere = false;
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
		if (nm_plan_add_home(snapshot, config, (uint32_t)i, one->node, one->decision,
				     plan) == 0)
			nm_assignments_return(assignments, thread->tid, snapshot->time_ns);
	}
}

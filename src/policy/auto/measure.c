/* SPDX-License-Identifier: MIT */
/* Policy "auto": where processes ran, where their memory is, and what they are judged by. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/homes.h"
#include "reach.h"

/* ---- where they ran, and the location of their memory ---- */

/* Discards the values of the last interval. */
static void clear_interval(struct nm_home_state *state, unsigned nr_nodes)
{
	memset(state->input.ran_on, 0, nr_nodes * sizeof(*state->input.ran_on));
	memset(state->memory_on, 0, nr_nodes * sizeof(*state->memory_on));
	memset(state->input.fixed_on, 0, nr_nodes * sizeof(*state->input.fixed_on));
	for (unsigned k = 0; k < nr_nodes; k++) {
		state->input.allowed[k] = true;
		state->has_fixed[k] = false;
	}
	state->has_movable = state->is_restricted = state->has_everywhere = false;
	state->nr_affinities = 0;
	state->run_s = state->delay_s = state->input.wanted_cpus = state->accesses = 0;
	state->movable_wanted_cpus = state->local = 0;
	state->runs = 0;
	state->input.traffic = NAN;
	state->input.running = 0;
	state->input.creating = state->input.yields = false;
}

/* Returns whether it will not move. A thread that is left alone runs where the scheduler puts it.
 */
static bool is_fixed(const struct nm_snap_thread *thread)
{
	return thread->only_watched && !thread->left_alone;
}

static void add_demand(struct nm_home_state *state, const struct nm_snap_thread *thread,
		       double wanted_cpus)
{
	if (thread->yields)
		return;
	state->input.wanted_cpus += wanted_cpus;
	if (!is_fixed(thread))
		state->movable_wanted_cpus += wanted_cpus;
}

/* Returns the node of a thread that is not moved; -1: it may run on several and did not run. */
static int fixed_node_of(const struct nm_topology *topology, const struct nm_snap_thread *thread)
{
	int here = nm_topology_node_of_cpu(topology, thread->stats.main_cpu), only = -1;
	for (unsigned k = 0; here < 0 && k < topology->nr_nodes; k++) {
		if (!hwloc_bitmap_intersects(topology->nodes[k].cpus, thread->allowed))
			continue;
		if (only >= 0)
			return -1;
		only = (int)k;
	}
	return here >= 0 ? here : only;
}

/* A thread that is not moved does not restrict the nodes of the others. */
static void add_fixed(const struct nm_topology *topology, const struct nm_snap_thread *thread,
		      double ran, struct nm_home_state *state)
{
	int node = fixed_node_of(topology, thread);
	if (node < 0)
		return;
	state->has_fixed[node] = true;
	if (ran > 0)
		state->input.fixed_on[node] += ran;
}

static void add_affinity(const struct nm_snap_thread *thread, double ran,
			 struct nm_home_state *state)
{
	unsigned i = 0;
	state->has_movable = true;
	if (thread->everywhere) {
		state->has_everywhere = true;
		return;
	}
	state->is_restricted = true;
	while (i < state->nr_affinities &&
	       !hwloc_bitmap_isequal(state->affinities[i].cpus, thread->allowed))
		i++;
	if (i == state->nr_affinities && i < NM_AFFINITIES_MOST)
		state->affinities[state->nr_affinities++] =
			(struct nm_affinity_use){.cpus = thread->allowed};
	state->affinities[i < NM_AFFINITIES_MOST ? i : NM_AFFINITIES_MOST - 1].used += fmax(ran, 0);
}

/* Sums over the node's CPUs that are in the set or not. */
static double busy_cpus(const struct nm_snapshot *snapshot, unsigned node,
			hwloc_const_bitmap_t cpus, bool in)
{
	double busy = 0;
	for (unsigned cpu = 0; cpu < snapshot->topology->nr_cpus; cpu++) {
		const struct nm_snap_cpu *one = &snapshot->cpus[cpu];
		if (one->usable && one->node == (int)node && one->busy_share > 0 &&
		    (hwloc_bitmap_isset(cpus, cpu) != 0) == in)
			busy += one->busy_share;
	}
	return busy;
}

/*
 * Computes the cores of the node that its threads may use. Threads with the same affinity share its
 * CPUs, and others add what they use: the demand of all fits if that of each set of threads fits on
 * the CPUs that it may use.
 */
static double room_on(const struct nm_snapshot *snapshot, const struct nm_home_state *state,
		      unsigned node, hwloc_const_bitmap_t all, hwloc_bitmap_t scratch)
{
	hwloc_const_bitmap_t cpus = snapshot->topology->nodes[node].cpus;
	hwloc_bitmap_and(scratch, cpus, all);
	double room = nm_core_capacity(snapshot, scratch);
	for (unsigned i = 0; i < state->nr_affinities; i++) {
		double others = state->movable_wanted_cpus;
		if (!(state->affinities[i].used > 0))
			continue;
		hwloc_bitmap_and(scratch, cpus, state->affinities[i].cpus);
		double own = nm_core_capacity(snapshot, scratch);
		for (unsigned k = 0; k < state->nr_affinities; k++) {
			hwloc_bitmap_and(scratch, cpus, state->affinities[k].cpus);
			if (hwloc_bitmap_isincluded(scratch, state->affinities[i].cpus))
				others -= state->affinities[k].used;
		}
		room = fmin(room, own + fmax(others, 0));
	}
	return room;
}

static void update_room(const struct nm_snapshot *snapshot, struct nm_home_state *state)
{
	nm_autobitmap all = nm_must(hwloc_bitmap_alloc()), scratch = nm_must(hwloc_bitmap_alloc());
	if (!state->is_restricted)
		return;
	for (unsigned i = 0; i < state->nr_affinities; i++)
		hwloc_bitmap_or(all, all, state->affinities[i].cpus);
	if (state->has_everywhere)
		hwloc_bitmap_copy(all, snapshot->topology->usable);
	for (unsigned k = 0; k < snapshot->topology->nr_nodes; k++) {
		state->room[k] = room_on(snapshot, state, k, all, scratch);
		state->beyond[k] = busy_cpus(snapshot, k, all, false);
	}
}

static void add_thread(const struct nm_snapshot *snapshot, const struct nm_snap_thread *thread,
		       double ran, struct nm_home_state *state)
{
	const struct nm_topology *topology = snapshot->topology;
	int here = nm_topology_node_of_cpu(topology, thread->stats.main_cpu);
	if (thread->yields) { /* no load for others, as in the snapshot's load of CPUs */
		state->input.yields |= thread->active;
		ran = 0;
	}
	for (unsigned k = 0; k < topology->nr_nodes; k++) {
		state->memory_on[k] += thread->stats.accesses[k];
		state->accesses += thread->stats.accesses[k];
		state->input.allowed[k] =
			state->input.allowed[k] &&
			(thread->everywhere || is_fixed(thread) ||
			 hwloc_bitmap_intersects(topology->nodes[k].cpus, thread->allowed));
	}
	if (is_fixed(thread))
		add_fixed(topology, thread, ran, state);
	else
		add_affinity(thread, ran, state);
	state->local += here >= 0 ? thread->stats.accesses[here] : 0;
	state->input.running += thread->active && !thread->yields;
	if (thread->stats.traffic >= 0)
		state->input.traffic =
			fmax(state->input.traffic, 0) + thread->stats.traffic; /* NaN: none yet */
	if (here >= 0 && ran > 0)
		state->input.ran_on[here] += ran;
}

/* Returns the node on which memory is allocated for threads on this one: the nearest that may hold
 * it. */
static unsigned touched_from(const struct nm_topology *topology, const struct nm_home_state *state,
			     unsigned node)
{
	unsigned best = node;
	for (unsigned k = 0; !state->input.may_hold[node] && k < topology->nr_nodes; k++)
		if (state->input.may_hold[k] &&
		    (best == node || nm_topology_distance(topology, (int)node, (int)k) <
					     nm_topology_distance(topology, (int)node, (int)best)))
			best = k;
	return best;
}

/* since_s is the time for which it has had its current activity. A lull does not end the demand:
 * earlier demand decays slowly. Threads that wait because their cgroups have used up their CPU time
 * demand no CPU. */
static void update_demand(struct nm_home_state *state, const struct nm_snapshot *snapshot,
			  double since_s)
{
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	double keep = exp(-since_s / NM_PLACE_YOUNG_S);
	state->input.wanted_cpus =
		nm_place_allowed_cpus(state->input.wanted_cpus, state->input.cpu_limit);
	state->movable_wanted_cpus = fmin(state->movable_wanted_cpus, state->input.wanted_cpus);
	update_room(snapshot, state);
	state->input.demand_cpus = fmax(state->input.wanted_cpus, keep * state->input.demand_cpus);
	state->movable_cpus = fmax(state->movable_wanted_cpus, keep * state->movable_cpus);
	double ran = nm_place_sum(state->input.ran_on, nr_nodes);
	if (state->input.traffic >= 0) {
		state->traffic_bytes = state->traffic_bytes * keep + state->input.traffic * since_s;
		state->traffic_run_s = state->traffic_run_s * keep + ran * since_s;
	}
	for (unsigned k = 0; k < nr_nodes; k++) {
		state->input.has_run_on[touched_from(snapshot->topology, state, k)] +=
			state->input.ran_on[k] * since_s;
		state->input.fixed_has_run_on[k] =
			state->has_fixed[k] ? state->input.fixed_has_run_on[k] +
						      state->input.fixed_on[k] * since_s
					    : 0;
		state->input.allowed[k] = state->input.allowed[k] && state->has_movable;
	}
	/* Many light threads count as the number of CPUs that they demand. */
	if (state->input.running < round(state->input.wanted_cpus))
		state->input.running = (unsigned)round(state->input.wanted_cpus);
	if (state->input.max_running < state->input.running) {
		state->input.max_running = state->input.running;
		state->grown_ns = snapshot->time_ns;
	}
	for (unsigned k = 0; state->accesses > 0 && k < nr_nodes; k++)
		state->memory_on[k] /= state->accesses;
	if (state->home < 0 && state->input.running > 0)
		state->observed_s += since_s;
	state->measured_ns = snapshot->time_ns;
	nm_placement_add_loss(snapshot->topology, state, snapshot->time_ns, since_s);
}

/* ---- values for the verdict ---- */

/* Sums over the threads of one process in this interval. */
struct sums {
	double distance, accesses, instructions, run_share;
};

static void add_to_sums(const struct nm_snapshot *snapshot, const struct nm_snap_thread *thread,
			struct sums *sums)
{
	int here = nm_topology_node_of_cpu(snapshot->topology, thread->stats.main_cpu);
	for (unsigned k = 0; here >= 0 && k < snapshot->topology->nr_nodes; k++) {
		sums->distance += thread->stats.fresh[k] *
				  nm_topology_distance(snapshot->topology, here, (int)k);
		sums->accesses += thread->stats.fresh[k];
	}
	if (thread->stats.instructions > 0 && thread->stats.run_share > 0) {
		sums->instructions += thread->stats.instructions;
		sums->run_share += thread->stats.run_share;
	}
}

static void blend(double *mean, double *variance, double old_weight, double value, double weight)
{
	if (!(weight > 0))
		return;
	if (isnan(*mean) || !(old_weight > 0)) {
		*mean = value;
		*variance = 0;
		return;
	}
	double part = weight / (old_weight + weight), difference = value - *mean;
	*mean += part * difference;
	*variance = (1 - part) * (*variance + part * difference * difference);
}

static void add_measure(struct nm_place_measure *measure, const struct nm_home_state *state,
			const struct sums *sums, double keep)
{
	double run_s = measure->run_s * keep, accesses = measure->accesses * keep;
	double ran = run_s + state->run_s;
	blend(&measure->distance, &measure->distance_variance, accesses,
	      sums->distance / sums->accesses, sums->accesses);
	blend(&measure->performance, &measure->performance_variance, run_s,
	      sums->instructions / sums->run_share, sums->run_share > 0 ? state->run_s : 0);
	if (ran > 0)
		measure->threads += state->run_s / ran * (state->input.running - measure->threads);
	measure->intervals = measure->intervals * keep + (state->run_s > 0);
	measure->run_s = ran;
	measure->delay_s = measure->delay_s * keep + state->delay_s;
	measure->accesses = accesses + sums->accesses;
}

/* ---- changes of other processes ---- */

struct changes {
	struct nm_place_change *performance, *distance, *waiting; /* in one allocation */
	size_t nr_performance, nr_distance, nr_waiting;
};

static void changes_clear(struct changes *changes)
{
	free(changes->performance);
}

/* Allocates room for one change of each kind per process. */
static void changes_init(struct changes *changes, size_t count)
{
	changes->performance = nm_must(calloc(3 * count + 1, sizeof(*changes->performance)));
	changes->distance = changes->performance + count;
	changes->waiting = changes->distance + count;
}

static void add_change(struct nm_place_change *changes, size_t *count, uint64_t domain,
		       double value)
{
	if (isfinite(value))
		changes[(*count)++] = (struct nm_place_change){domain, value};
}

static bool is_untouched(const struct nm_home_state *state)
{
	return state->home < 0 || state->judged;
}

static void add_changes(struct changes *changes, uint64_t domain,
			const struct nm_place_measure *before, const struct nm_place_measure *now)
{
	if (before->performance > 0)
		add_change(changes->performance, &changes->nr_performance, domain,
			   now->performance / before->performance);
	if (before->distance > 0)
		add_change(changes->distance, &changes->nr_distance, domain,
			   now->distance / before->distance);
	if (before->run_s > 0 && now->run_s > 0)
		add_change(changes->waiting, &changes->nr_waiting, domain,
			   now->delay_s / now->run_s - before->delay_s / before->run_s);
}

static void update_trend(struct changes *changes, struct nm_place_trend *trend)
{
	trend->performance *=
		nm_place_domain_median(changes->performance, changes->nr_performance, 1);
	trend->distance *= nm_place_domain_median(changes->distance, changes->nr_distance, 1);
	trend->waiting += nm_place_domain_median(changes->waiting, changes->nr_waiting, 0);
}

/* It may have been examined during the interval. */
static double since_measured_s(const struct nm_home_state *state, uint64_t now_ns,
			       double interval_s)
{
	double since_s = (double)(now_ns - state->measured_ns) / (double)NM_NSEC_PER_SEC;
	return state->measured_ns ? fmin(since_s, interval_s) : interval_s;
}

/* ---- run time and waiting time of threads ---- */

size_t nm_placement_choose_readings(struct nm_placement *placement,
				    const struct nm_snapshot *snapshot,
				    struct nm_times_reading ret[static NM_PLACE_READINGS_MOST])
{
	size_t count = snapshot->nr_threads, first = 0, chosen = 0;
	while (first < count && snapshot->threads[first].tid < placement->next_read_tid)
		first++;
	for (size_t k = 0; k < count && chosen < NM_PLACE_READINGS_MOST; k++) {
		uint32_t i = (uint32_t)((first + k) % count);
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (!(thread->stats.run_share > 0) || thread->yields)
			continue;
		ret[chosen++] = nm_snap_reading(snapshot, i);
		placement->next_read_tid = thread->tid + 1;
	}
	_Static_assert(offsetof(struct nm_times_reading, thread) == 0, "by thread");
	qsort(ret, chosen, sizeof(*ret), nm_compare_u32);
	return chosen;
}

/* Adds what a thread did in the interval to its process, and returns the CPUs that it used. If its
 * times were not read (NULL), samples show that, which are few; they are compared with the last
 * reading when its turn comes. */
static double follow_thread(struct nm_home_state *state, const struct nm_snap_thread *thread,
			    const struct nm_times_reading *reading, double interval_s,
			    struct nm_proc_schedstat *last)
{
	const double second = (double)NM_NSEC_PER_SEC;
	struct nm_thread_times times = {0};
	if (!(thread->stats.run_share > 0) || thread->yields) {
		*last = (struct nm_proc_schedstat){0};
		return thread->stats.run_share;
	}
	if (reading && reading->error == 0) {
		/* A first reading is of this interval only if the thread began in it. */
		bool began = (double)reading->age_ns / second <= interval_s;
		times = nm_times_since(last, &reading->now, began ? reading->age_ns : 0);
		*last = reading->now;
	}
	if (times.length_ns == 0) {
		add_demand(state, thread, thread->stats.run_share);
		return thread->stats.run_share;
	}
	double run_s = (double)times.run_ns / second, delay_s = (double)times.delay_ns / second;
	double length_s = (double)times.length_ns / second;
	state->run_s += run_s;
	state->delay_s += delay_s;
	state->runs += (double)times.runs;
	add_demand(state, thread, fmin((run_s + delay_s) / length_s, 1));
	return fmin(run_s / fmax(length_s, interval_s), 1);
}

void nm_placement_follow(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			 double interval_s, const struct nm_times_reading *readings,
			 size_t nr_readings, bool sees_accesses)
{
	nm_autofree struct sums *sums = nm_must(calloc(snapshot->nr_processes + 1, sizeof(*sums)));
	nm_auto(changes_clear) struct changes changes = {0};
	size_t next = 0;
	/* Earlier measurements decay over the time for which a process is observed before its
	 * placement. */
	double keep = exp(-interval_s / NM_PLACE_OBSERVED_S);
	changes_init(&changes, snapshot->nr_processes);
	nm_column_follow_processes(&placement->processes, snapshot);
	nm_column_follow_threads(&placement->times, snapshot);
	for (size_t i = 0; i < placement->processes.count; i++) {
		nm_home_state_update(snapshot, i, nm_home_state_at(placement, i));
		clear_interval(nm_home_state_at(placement, i), snapshot->topology->nr_nodes);
	}
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		struct nm_home_state *state = nm_home_state_at(placement, thread->process);
		bool is_read = next < nr_readings && readings[next].thread == i;
		double ran =
			follow_thread(state, thread, is_read ? &readings[next++] : NULL, interval_s,
				      (struct nm_proc_schedstat *)placement->times.cells + i);
		add_thread(snapshot, thread, ran, state);
		add_to_sums(snapshot, thread, &sums[thread->process]);
	}
	for (size_t i = 0; i < placement->processes.count; i++) {
		struct nm_home_state *state = nm_home_state_at(placement, i);
		if (!sees_accesses)
			sums[i].accesses = state->accesses = 0;
		if (state->run_s > 0) /* one that was not off the CPU ran all the time */
			state->input.burst_s = state->run_s / fmax(state->runs, 1);
		update_demand(state, snapshot,
			      since_measured_s(state, snapshot->time_ns, interval_s));
		struct nm_place_measure earlier = state->recent;
		add_measure(&state->recent, state, &sums[i], keep);
		if (is_untouched(state))
			add_changes(&changes, snapshot->processes[state->process].domain, &earlier,
				    &state->recent);
		if (state->home < 0)
			add_measure(&state->before, state, &sums[i], keep);
		if (state->home >= 0 && !state->judged)
			add_measure(&state->after, state, &sums[i], keep);
	}
	update_trend(&changes, &placement->trend);
}

/* ---- one process between intervals ---- */

/* Returns the share of a CPU that a thread has demanded since its start. */
static double wanted_cpus_of(const struct nm_thread_times *times)
{
	return fmin((double)(times->run_ns + times->delay_ns) / (double)times->length_ns, 1);
}

bool nm_placement_ignores(const struct nm_placement *placement,
			  const struct nm_process_times *process)
{
	double wanted_cpus = 0;
	for (size_t i = 0; i < process->count; i++)
		wanted_cpus += wanted_cpus_of(&process->times[i]);
	return wanted_cpus < NM_PLACE_MIN_DEMAND && !nm_home_state_find(placement, process->pid);
}

/* Sets what only examinations know: how long its threads run at a time, and whether one of them is
 * too young for its demand to be known. */
static void add_process_times(const struct nm_process_times *process, struct nm_home_state *state)
{
	const double second = (double)NM_NSEC_PER_SEC;
	double run_s = 0, runs = 0;
	for (size_t i = 0; i < process->count; i++) {
		const struct nm_thread_times *times = &process->times[i];
		run_s += (double)times->run_ns / second;
		runs += (double)times->runs;
		state->input.creating |= process->sampled[i].tid != process->pid &&
					 (double)times->length_ns < NM_PLACE_MIN_AGE_S * second;
	}
	state->input.burst_s = run_s / fmax(runs, 1);
}

void nm_placement_measure_one(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			      const struct nm_process_times *process)
{
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	double age_s = snapshot->processes[0].age_s;
	nm_column_add_process(&placement->processes, snapshot, 0);
	struct nm_home_state *state = nm_home_state_find(placement, process->pid);
	nm_home_state_update(snapshot, 0, state);
	for (unsigned k = 0; k < nr_nodes; k++)
		placement->nodes[k].busy_cpus -= state->input.ran_on[k];
	double traffic = state->input.traffic;
	clear_interval(state, nr_nodes);
	for (size_t i = 0, k = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		while (process->sampled[k].tid != thread->tid)
			k++; /* not a managed thread */
		add_thread(snapshot, thread, thread->stats.run_share, state);
		add_demand(state, thread, wanted_cpus_of(&process->times[k]));
	}
	for (unsigned k = 0; k < nr_nodes; k++)
		placement->nodes[k].busy_cpus += state->input.ran_on[k];
	add_process_times(process, state);
	update_demand(state, snapshot, since_measured_s(state, snapshot->time_ns, age_s));
	if (isnan(state->input.traffic)) /* the interval has just begun */
		state->input.traffic = traffic;
}

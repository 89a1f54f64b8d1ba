/* SPDX-License-Identifier: MIT */
/* Policy "auto": the set of processes, the nodes on which they ran, and the time that they waited
 * for CPUs. */
#include <math.h>
#include <string.h>

#include "daemon.h"
#include "placement_stage.h"

/* Maximum number of files read per interval. Further threads are read in the next intervals. */
#define READS_MOST 256U
#define AT_HOME 0.9 /* minimum share of its running */

static int by_pid(const void *one, const void *other)
{
	const struct nm_placed *a = one, *b = other;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

struct nm_placed *nm_placed_find(const struct nm_placement *placement, uint32_t pid)
{
	const struct nm_placed key = {.pid = pid};
	if (placement->count == 0)
		return NULL;
	return bsearch(&key, placement->items, placement->count, sizeof(key), by_pid);
}

bool nm_placement_has_home(const struct nm_daemon *daemon, uint32_t pid)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	const struct nm_placed *placed = placement ? nm_placed_find(placement, pid) : NULL;
	return placed && placed->home >= 0;
}

size_t nm_placement_homes(const struct nm_daemon *daemon)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	size_t count = 0;
	for (size_t i = 0; placement && i < placement->count; i++)
		count += placement->items[i].home >= 0;
	return count;
}

/* ---- the set of processes ---- */

/* Returns the entry of the same process with the same program in the previous interval, or NULL. */
static struct nm_placed *find_before(const struct nm_placement *placement,
				     const struct nm_snap_process *process)
{
	struct nm_placed *before = nm_placed_find(placement, process->pid);
	bool same = before && before->start_ticks == process->start_ticks &&
		    before->program_ns == process->program_ns;
	return same ? before : NULL;
}

/* Returns 0 or -ENOMEM. */
static int begin_item(const struct nm_snap_process *process, unsigned nr_nodes,
		      struct nm_placed *ret)
{
	double *arrays = calloc(1, nr_nodes * (4 * sizeof(double) + sizeof(bool)));
	if (!arrays)
		return -ENOMEM;
	*ret = (struct nm_placed){
		.pid = process->pid,
		.start_ticks = process->start_ticks,
		.program_ns = process->program_ns,
		.home = -1,
		.reason = NM_PLACE_YOUNG,
		.before = {.distance = NAN, .performance = NAN},
		.recent = {.distance = NAN, .performance = NAN},
		.ran_on = arrays,
		.memory_on = arrays + nr_nodes,
		.has_run_on = arrays + 2 * (size_t)nr_nodes,
		.located_on = arrays + 3 * (size_t)nr_nodes,
		.allowed = (bool *)(arrays + 4 * (size_t)nr_nodes),
	};
	return 0;
}

static void placed_clear(struct nm_placed *placed)
{
	nm_placement_forget_memory(placed);
	free(placed->ran_on);
	placed->ran_on = NULL;
}

/* Two lists have an entry with the same arrays: this one gives up ownership. */
static void disown(struct nm_placed *placed)
{
	placed->ran_on = NULL;
	placed->memory = (struct nm_bring_memory){0};
	placed->count = (struct nm_place_count){0};
}

/* A process without managed threads has exited or is no longer managed. Its leases end by the usual
 * rules. */
static void replace_items(struct nm_daemon *daemon, struct nm_placed *items, size_t count)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (size_t i = 0; i < placement->count; i++) {
		if (placement->items[i].ran_on)
			nm_mover_drop(placement->mover, placement->items[i].pid);
		nm_placement_forget_count(daemon, &placement->items[i]);
		placed_clear(&placement->items[i]);
	}
	free(placement->items);
	placement->items = items;
	placement->count = count;
}

static void take_process(const struct nm_snapshot *snapshot, size_t process,
			 struct nm_placed *placed)
{
	const struct nm_snap_process *one = &snapshot->processes[process];
	placed->process = process;
	placed->anon_bytes = one->anon_bytes;
}

/* The entries of the previous interval are not modified: the new ones share their arrays. Returns 0
 * or -ENOMEM. */
static int build_items(const struct nm_placement *placement, const struct nm_snapshot *snapshot,
		       struct nm_placed *items, size_t *ret_count)
{
	size_t count = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < snapshot->nr_processes; i++) {
		const struct nm_snap_process *process = &snapshot->processes[i];
		const struct nm_placed *before = find_before(placement, process);
		if (before)
			items[count] = *before;
		else
			r = begin_item(process, snapshot->topology->nr_nodes, &items[count]);
		take_process(snapshot, i, &items[count]);
		count += r == 0;
	}
	*ret_count = count;
	return r;
}

static int list_processes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_placed *items = calloc(snapshot->nr_processes + 1, sizeof(*items));
	size_t count = 0;
	int r = items ? build_items(placement, snapshot, items, &count) : -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct nm_placed *before =
			find_before(placement, &snapshot->processes[items[i].process]);
		if (before)
			disown(r < 0 ? &items[i] : before);
	}
	if (r < 0) {
		for (size_t i = 0; i < count; i++)
			placed_clear(&items[i]);
		free(items);
		return r;
	}
	if (count > 0)
		qsort(items, count, sizeof(*items), by_pid);
	replace_items(daemon, items, count);
	return 0;
}

/* ---- run time and waiting time of threads ---- */

int nm_placement_read_times(struct nm_platform *platform, uint32_t pid, uint32_t tid,
			    struct nm_thread_times *ret)
{
	struct nm_proc_schedstat times;
	int r = nm_proc_read_schedstat(platform, pid, tid, &times);
	if (r < 0)
		return r;
	ret->tid = tid;
	ret->run_ns = times.run_ns;
	ret->delay_ns = times.delay_ns;
	ret->runs = times.runs;
	ret->read_ns = times.read_ns;
	return 0;
}

static const struct nm_thread_times *times_of(const struct nm_placement *placement,
					      const struct nm_snap_thread *thread, size_t *at)
{
	while (*at < placement->nr_times && placement->times[*at].tid < thread->tid)
		(*at)++;
	if (*at == placement->nr_times || placement->times[*at].tid != thread->tid ||
	    placement->times[*at].start_ticks != thread->start_ticks)
		return NULL;
	return &placement->times[*at];
}

/*
 * The activity of a thread since the last reading, or since its start if that was in this interval.
 */
struct use {
	double run_s, delay_s, length_s, runs;
};

static bool find_use(const struct nm_thread_times *before, const struct nm_thread_times *now,
		     double age_s, double interval_s, struct use *ret)
{
	const struct nm_thread_times none = {0};
	double length_s = before ? (double)(now->read_ns - before->read_ns) / (double)NM_NSEC_PER_SEC
				 : age_s;
	if (!before && age_s > interval_s)
		return false;
	if (!before)
		before = &none;
	if (now->run_ns < before->run_ns || now->delay_ns < before->delay_ns ||
	    now->runs < before->runs || !(length_s > 0))
		return false;
	ret->run_s = (double)(now->run_ns - before->run_ns) / (double)NM_NSEC_PER_SEC;
	ret->delay_s = (double)(now->delay_ns - before->delay_ns) / (double)NM_NSEC_PER_SEC;
	ret->runs = (double)(now->runs - before->runs);
	ret->length_s = length_s;
	return true;
}

/* Selects the sampled threads whose times are read now, in turns, beginning where the last interval
 * stopped. */
static void choose_reads(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			 bool *reads)
{
	size_t count = snapshot->nr_threads, first = 0, chosen = 0;
	while (first < count && snapshot->threads[first].tid < placement->next_read_tid)
		first++;
	for (size_t k = 0; k < count && chosen < READS_MOST; k++) {
		size_t i = (first + k) % count;
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (!(thread->run_share > 0) || !nm_placed_find(placement, thread->pid))
			continue;
		reads[i] = true;
		placement->next_read_tid = thread->tid + 1;
		chosen++;
	}
}

/* Computes the CPUs used by each thread: ret_ran. Threads whose times were not read use samples,
 * which are few; their times are compared with the last reading when their turn comes. */
static int follow_times(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			double interval_s, double *ret_ran)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	nm_autofree bool *reads = calloc(snapshot->nr_threads + 1, sizeof(*reads));
	struct nm_thread_times *times = calloc(snapshot->nr_threads + 1, sizeof(*times));
	size_t count = 0, at = 0;
	if (!times || !reads) {
		free(times);
		return -ENOMEM;
	}
	choose_reads(placement, snapshot, reads);
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		struct nm_placed *placed = nm_placed_find(placement, thread->pid);
		const struct nm_thread_times *before = times_of(placement, thread, &at);
		struct use use;
		ret_ran[i] = thread->run_share;
		if (!placed || !(thread->run_share > 0))
			continue;
		bool read = reads[i] && nm_placement_read_times(daemon->pipeline.platform,
								thread->pid, thread->tid,
								&times[count]) == 0;
		times[count].start_ticks = thread->start_ticks;
		if (!read || !find_use(before, &times[count],
				       snapshot->processes[thread->process].age_s, interval_s,
				       &use)) {
			placed->wanted_cpus += thread->run_share;
		} else {
			placed->run_s += use.run_s;
			placed->delay_s += use.delay_s;
			placed->runs += use.runs;
			placed->wanted_cpus += fmin((use.run_s + use.delay_s) / use.length_s, 1);
			ret_ran[i] = fmin(use.run_s / fmax(use.length_s, interval_s), 1);
		}
		if (!read && before)
			times[count] = *before;
		count += read || before;
	}
	free(placement->times);
	placement->times = times;
	placement->nr_times = count;
	return 0;
}

/* ---- where they ran, and the location of their memory ---- */

static void clear_interval(struct nm_placed *placed, unsigned nr_nodes)
{
	memset(placed->ran_on, 0, nr_nodes * sizeof(*placed->ran_on));
	memset(placed->memory_on, 0, nr_nodes * sizeof(*placed->memory_on));
	for (unsigned k = 0; k < nr_nodes; k++)
		placed->allowed[k] = true;
	placed->run_s = placed->delay_s = placed->wanted_cpus = placed->accesses = 0;
	placed->runs = 0;
	placed->traffic = 0;
	placed->running = 0;
}

static void add_thread(const struct nm_snapshot *snapshot, const struct nm_snap_thread *thread,
		       double ran, struct nm_placed *placed)
{
	const struct nm_topology *topology = snapshot->topology;
	int here = nm_topology_node_of_cpu(topology, thread->main_cpu);
	for (unsigned k = 0; k < topology->nr_nodes; k++) {
		placed->memory_on[k] += thread->accesses[k];
		placed->accesses += thread->accesses[k];
		placed->allowed[k] =
			placed->allowed[k] && !thread->only_watched &&
			(thread->everywhere ||
			 hwloc_bitmap_intersects(topology->nodes[k].cpus, thread->allowed));
	}
	placed->running += thread->active;
	placed->traffic += fmax(thread->traffic, 0); /* NaN counts as 0 */
	if (here >= 0 && ran > 0)
		placed->ran_on[here] += ran;
}

/* Ignores the part that a thread ran elsewhere while it was moved. */
static bool ran_at_home(const struct nm_placed *placed, unsigned nr_nodes)
{
	double ran = 0;
	for (unsigned k = 0; k < nr_nodes; k++)
		ran += placed->ran_on[k];
	return placed->home >= 0 && placed->ran_on[placed->home] >= AT_HOME * ran;
}

/* since_s is the time for which it has had its current activity. A lull does not end the demand:
 * earlier demand decays slowly. */
static void settle(struct nm_placed *placed, const struct nm_snapshot *snapshot, double since_s)
{
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	double keep = exp(-since_s / NM_PLACE_YOUNG_S);
	placed->demand_cpus = fmax(placed->wanted_cpus, keep * placed->demand_cpus);
	for (unsigned k = 0; k < nr_nodes; k++)
		placed->has_run_on[k] += placed->ran_on[k] * since_s;
	placed->is_home = ran_at_home(placed, nr_nodes);
	/* Many light threads count as the number of CPUs that they demand. */
	if (placed->running < round(placed->wanted_cpus))
		placed->running = (unsigned)round(placed->wanted_cpus);
	if (placed->ran_most < placed->running) {
		placed->ran_most = placed->running;
		placed->grown_ns = snapshot->time_ns;
	}
	for (unsigned k = 0; placed->accesses > 0 && k < nr_nodes; k++)
		placed->memory_on[k] /= placed->accesses;
	if (placed->home < 0 && placed->running > 0)
		placed->watched_s += since_s;
	placed->measured_ns = snapshot->time_ns;
	nm_placement_add_loss(snapshot->topology, placed, snapshot->time_ns, since_s);
}

/* ---- values for the verdict ---- */

/* Sums over the threads of one process in this interval. */
struct sums {
	double distance, accesses, instructions, run_share;
};

static void add_to_sums(const struct nm_snapshot *snapshot, const struct nm_snap_thread *thread,
			struct sums *sums)
{
	int here = nm_topology_node_of_cpu(snapshot->topology, thread->main_cpu);
	for (unsigned k = 0; here >= 0 && k < snapshot->topology->nr_nodes; k++) {
		sums->distance += thread->fresh[k] *
				  nm_topology_distance(snapshot->topology, here, (int)k);
		sums->accesses += thread->fresh[k];
	}
	if (thread->instructions > 0 && thread->run_share > 0) {
		sums->instructions += thread->instructions;
		sums->run_share += thread->run_share;
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

static void add_measure(struct nm_place_measure *measure, const struct nm_placed *placed,
			const struct sums *sums, double keep)
{
	double run_s = measure->run_s * keep, accesses = measure->accesses * keep;
	blend(&measure->distance, &measure->distance_variance, accesses,
	      sums->distance / sums->accesses, sums->accesses);
	blend(&measure->performance, &measure->performance_variance, run_s,
	      sums->instructions / sums->run_share, sums->run_share > 0 ? placed->run_s : 0);
	measure->run_s = run_s + placed->run_s;
	measure->delay_s = measure->delay_s * keep + placed->delay_s;
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

/* Allocates room for one change of each kind per process. Returns 0 or -ENOMEM. */
static int changes_init(struct changes *changes, size_t count)
{
	changes->performance = calloc(3 * count + 1, sizeof(*changes->performance));
	if (!changes->performance)
		return -ENOMEM;
	changes->distance = changes->performance + count;
	changes->waiting = changes->distance + count;
	return 0;
}

static void note(struct nm_place_change *changes, size_t *count, uint32_t uid, double value)
{
	if (isfinite(value))
		changes[(*count)++] = (struct nm_place_change){uid, value};
}

/* A home on the node where a process already ran does not affect it. */
static bool is_untouched(const struct nm_placed *placed)
{
	return placed->home < 0 || placed->judged || placed->reason == NM_PLACE_THERE;
}

static void note_change(struct changes *changes, uint32_t uid,
			const struct nm_place_measure *before, const struct nm_place_measure *now)
{
	if (before->performance > 0)
		note(changes->performance, &changes->nr_performance, uid,
		     now->performance / before->performance);
	if (before->distance > 0)
		note(changes->distance, &changes->nr_distance, uid,
		     now->distance / before->distance);
	if (before->run_s > 0 && now->run_s > 0)
		note(changes->waiting, &changes->nr_waiting, uid,
		     now->delay_s / now->run_s - before->delay_s / before->run_s);
}

static void follow_trend(struct changes *changes, struct nm_place_trend *trend)
{
	trend->performance *=
		nm_place_user_median(changes->performance, changes->nr_performance, 1);
	trend->distance *= nm_place_user_median(changes->distance, changes->nr_distance, 1);
	trend->waiting += nm_place_user_median(changes->waiting, changes->nr_waiting, 0);
}

/* It may have been examined during the interval. */
static double since_measured_s(const struct nm_placed *placed, uint64_t now_ns, double interval_s)
{
	double since_s = (double)(now_ns - placed->measured_ns) / (double)NM_NSEC_PER_SEC;
	return placed->measured_ns ? fmin(since_s, interval_s) : interval_s;
}

static int measure_all(const struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       double interval_s, const double *ran)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	/* If only first touches are sampled, all accesses appear local. */
	bool sees = daemon->pipeline.source && !nm_pipeline_sees_first_touches_only(daemon);
	nm_autofree struct sums *sums = calloc(placement->count + 1, sizeof(*sums));
	nm_auto(changes_clear) struct changes changes = {0};
	/* Earlier measurements decay over the time for which a process is observed before its
	 * placement. */
	double keep = exp(-interval_s / NM_PLACE_WATCHED_S);
	if (!sums || changes_init(&changes, placement->count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct nm_placed *placed =
			nm_placed_find(placement, snapshot->threads[i].pid);
		if (!placed)
			continue;
		add_thread(snapshot, &snapshot->threads[i], ran[i], placed);
		add_to_sums(snapshot, &snapshot->threads[i], &sums[placed - placement->items]);
	}
	for (size_t i = 0; i < placement->count; i++) {
		struct nm_placed *placed = &placement->items[i];
		if (!sees)
			sums[i].accesses = placed->accesses = 0;
		if (placed->run_s > 0) /* one that was not off the CPU ran all the time */
			placed->burst_s = placed->run_s / fmax(placed->runs, 1);
		settle(placed, snapshot, since_measured_s(placed, snapshot->time_ns, interval_s));
		struct nm_place_measure earlier = placed->recent;
		add_measure(&placed->recent, placed, &sums[i], keep);
		if (is_untouched(placed))
			note_change(&changes, snapshot->processes[placed->process].uid, &earlier,
				    &placed->recent);
		if (placed->home < 0)
			add_measure(&placed->before, placed, &sums[i], keep);
		if (placed->home >= 0 && !placed->judged)
			add_measure(&placed->after, placed, &sums[i], keep);
	}
	follow_trend(&changes, &placement->trend);
	return 0;
}

int nm_placement_follow(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			uint64_t interval_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	int r = list_processes(daemon, snapshot);
	if (r < 0)
		return r;
	for (size_t i = 0; i < placement->count; i++)
		clear_interval(&placement->items[i], snapshot->topology->nr_nodes);
	double interval_s = (double)interval_ns / (double)NM_NSEC_PER_SEC;
	nm_autofree double *ran = calloc(snapshot->nr_threads + 1, sizeof(*ran));
	r = ran ? follow_times(daemon, snapshot, interval_s, ran) : -ENOMEM;
	return r < 0 ? r : measure_all(daemon, snapshot, interval_s, ran);
}

/* ---- one process between intervals ---- */

/* Replaces the entry of a process that runs another program. Returns 0 or -ENOMEM. */
static int replace_item(struct nm_daemon *daemon, const struct nm_snap_process *process,
			struct nm_placed *placed)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_placed item;
	int r = begin_item(process, placement->nr_nodes, &item);
	if (r < 0)
		return r;
	for (unsigned k = 0; k < placement->nr_nodes; k++)
		placement->nodes[k].busy_cpus -= placed->ran_on[k];
	nm_mover_drop(placement->mover, placed->pid);
	nm_placement_forget_count(daemon, placed);
	placed_clear(placed);
	*placed = item;
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int meet(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		struct nm_placed **ret)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	const struct nm_snap_process *process = &snapshot->processes[0];
	struct nm_placed item, *known = find_before(placement, process);
	if (known) {
		*ret = known;
		return 0;
	}
	struct nm_placed *former = nm_placed_find(placement, process->pid);
	if (former)
		return replace_item(daemon, process, *ret = former);
	struct nm_placed *items =
		reallocarray(placement->items, placement->count + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	placement->items = items;
	int r = begin_item(process, snapshot->topology->nr_nodes, &item);
	if (r < 0)
		return r;
	size_t at = 0;
	while (at < placement->count && items[at].pid < item.pid)
		at++;
	memmove(&items[at + 1], &items[at], (placement->count++ - at) * sizeof(*items));
	items[at] = item;
	*ret = &items[at];
	return 0;
}

int nm_placement_follow_one(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			    const double *wanted_cpus, double burst_s)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	double age_s = snapshot->processes[0].age_s;
	struct nm_placed *placed;
	int r = meet(daemon, snapshot, &placed);
	if (r < 0)
		return r;
	take_process(snapshot, 0, placed);
	for (unsigned k = 0; k < nr_nodes; k++)
		placement->nodes[k].busy_cpus -= placed->ran_on[k];
	clear_interval(placed, nr_nodes);
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		add_thread(snapshot, thread, thread->run_share, placed);
		placed->wanted_cpus += wanted_cpus[i];
	}
	for (unsigned k = 0; k < nr_nodes; k++)
		placement->nodes[k].busy_cpus += placed->ran_on[k];
	placed->burst_s = burst_s;
	settle(placed, snapshot, since_measured_s(placed, snapshot->time_ns, age_s));
	return 0;
}

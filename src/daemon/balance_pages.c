/* SPDX-License-Identifier: MIT */
/* Determines the number of pages of a process on each node: from its accesses and, from time to
 * time, by counting or by a query for a sample. */
#include <string.h>

#include "balance.h"

/* Share of the resident memory that is assumed to move per second. */
#define DRIFT 0.01
#define ANSWER_INTERVALS 10U /* time limit of an answer */

static int by_pid(const void *left, const void *right)
{
	const struct nm_residence *a = left, *b = right;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

struct nm_residence *nm_balance_residence(const struct nm_balancer *balancer, uint32_t pid)
{
	const struct nm_residence key = {.pid = pid};
	if (balancer->nr_residences == 0)
		return NULL;
	return bsearch(&key, balancer->residences, balancer->nr_residences, sizeof(key), by_pid);
}

const struct nm_residency *nm_balance_residency(const struct nm_balancer *balancer, uint32_t pid,
						uint64_t now_ns)
{
	const struct nm_residence *residence = nm_balance_residence(balancer, pid);
	if (!residence)
		return NULL;
	const struct nm_residency *best =
		nm_residency_better(&residence->counted, &residence->sampled, now_ns, DRIFT)
			? &residence->counted
			: &residence->sampled;
	return best->source == NM_RESIDENCY_NONE ? NULL : best;
}

/* ---- the set of processes ---- */

static void free_residences(struct nm_residence *residences, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(residences[i].pages);
		free(residences[i].addresses);
	}
	free(residences);
}

/* Moves the state of a process to the new list. */
static int take_over(struct nm_balancer *balancer, const struct nm_process *process,
		     struct nm_residence *ret)
{
	struct nm_residence *known = nm_balance_residence(balancer, process->pid);
	*ret = (struct nm_residence){.pid = process->pid, .start_ticks = process->start_ticks};
	if (known && known->pages && known->start_ticks == process->start_ticks) {
		*ret = *known;
		known->pages = NULL;
		known->addresses = NULL;
	} else {
		ret->pages = calloc(3 * (size_t)balancer->topology->nr_nodes, sizeof(double));
	}
	ret->process = process;
	return ret->pages ? 0 : -ENOMEM;
}

/* Both arrays are in ascending tid order. A thread that the task table has released meanwhile has
 * no entry in `members`. */
static void find_processes(const struct nm_snapshot *snapshot, const struct nm_member *members,
			   size_t nr_members, const struct nm_process **processes)
{
	size_t at = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		while (at < nr_members && members[at].tid < thread->tid)
			at++;
		if (at < nr_members && members[at].tid == thread->tid)
			processes[thread->process] = members[at].process;
	}
}

static int list_residences(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			   const struct nm_member *members, size_t nr_members)
{
	struct nm_residence *next = calloc(snapshot->nr_processes + 1, sizeof(*next));
	nm_autofree const struct nm_process **processes =
		calloc(snapshot->nr_processes + 1, sizeof(*processes));
	size_t count = 0;
	int r = next && processes ? 0 : -ENOMEM;
	if (r < 0) {
		free(next);
		return r;
	}
	find_processes(snapshot, members, nr_members, processes);
	for (size_t i = 0; r == 0 && i < snapshot->nr_processes; i++)
		if (processes[i])
			r = take_over(balancer, processes[i], &next[count++]);
	if (count > 0)
		qsort(next, count, sizeof(*next), by_pid);
	free_residences(balancer->residences, balancer->nr_residences);
	balancer->residences = next;
	balancer->nr_residences = count;
	return r;
}

/* ---- estimates from accesses ---- */

static void add_accesses(struct nm_balancer *balancer, const struct nm_snap_thread *thread)
{
	struct nm_residence *residence = nm_balance_residence(balancer, thread->pid);
	if (!residence || !(thread->access_total > 0))
		return;
	for (unsigned k = 0; k < balancer->topology->nr_nodes; k++)
		residence->seen[k] += thread->accesses[k];
	residence->samples += thread->access_samples;
}

static double resident_pages(const struct nm_balancer *balancer,
			     const struct nm_residence *residence)
{
	return (double)residence->process->rss_bytes / balancer->page_bytes;
}

static void estimate(struct nm_balancer *balancer, struct nm_residence *residence, uint64_t now_ns)
{
	unsigned nr_nodes = balancer->topology->nr_nodes;
	const struct nm_residency_reading reading = {
		.source = NM_RESIDENCY_ACCESSES,
		.time_ns = now_ns,
		.seen = residence->seen,
		.samples = residence->samples,
		.resident = resident_pages(balancer, residence),
	};
	residence->sampled = (struct nm_residency){0};
	(void)nm_residency_estimate(&reading, nr_nodes, residence->pages + nr_nodes,
				    &residence->sampled);
}

static void estimate_all(struct nm_balancer *balancer, const struct nm_snapshot *snapshot)
{
	unsigned nr_nodes = balancer->topology->nr_nodes;
	for (size_t i = 0; i < balancer->nr_residences; i++) {
		struct nm_residence *residence = &balancer->residences[i];
		residence->seen = residence->pages + 2 * (size_t)nr_nodes;
		residence->samples = 0;
		memset(residence->seen, 0, nr_nodes * sizeof(*residence->seen));
	}
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		add_accesses(balancer, &snapshot->threads[i]);
	for (size_t i = 0; i < balancer->nr_residences; i++)
		estimate(balancer, &balancer->residences[i], snapshot->time_ns);
}

/* ---- counts ---- */

void nm_balance_take_count(struct nm_balancer *balancer, struct nm_residence *residence,
			   const struct nm_residency_reading *reading)
{
	struct nm_residency_reading whole = *reading;
	whole.resident = resident_pages(balancer, residence);
	if (nm_residency_estimate(&whole, balancer->topology->nr_nodes, residence->pages,
				  &residence->counted) == 0)
		balancer->tally.pages_counted++;
}

static void end_counting(struct nm_daemon *daemon)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_counting *counting = &daemon->pipeline.balancer->counting;
	if (counting->ticket)
		platform->ops->memory_cancel(platform, counting->ticket);
	counting->ticket = 0;
}

int nm_balance_ask(struct nm_daemon *daemon, const struct nm_memory_query *question)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_counting *counting = &daemon->pipeline.balancer->counting;
	counting->kind = question->kind;
	counting->pid = question->pid;
	counting->start_ticks = question->start_ticks;
	counting->asked = daemon->tally.intervals;
	return platform->ops->memory_query(platform, question, &counting->ticket);
}

static int ask_numa_maps(struct nm_daemon *daemon, const struct nm_residence *residence)
{
	const struct nm_memory_query question = {
		.kind = NM_MEMORY_QUERY_NUMA_MAPS,
		.pid = residence->pid,
		.start_ticks = residence->start_ticks,
	};
	return nm_balance_ask(daemon, &question);
}

static void take_numa_maps(struct nm_balancer *balancer, struct nm_residence *residence, char *text,
			   uint64_t now_ns)
{
	nm_autofree double *pages = calloc(balancer->topology->nr_nodes, sizeof(*pages));
	if (!pages)
		return;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		(void)nm_residency_read_numa_maps_line(line, balancer->topology,
						       balancer->page_bytes, pages);
	const struct nm_residency_reading reading = {
		.source = NM_RESIDENCY_MAPS, .time_ns = now_ns, .seen = pages};
	nm_balance_take_count(balancer, residence, &reading);
}

/* Returns true if no query is pending any more. A query without an answer for a long time is
 * cancelled. */
static bool take_answer(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	struct nm_counting *counting = &balancer->counting;
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	if (!counting->ticket)
		return true;
	int r = platform->ops->memory_poll(platform, counting->ticket, &answer);
	if (r == -EAGAIN && daemon->tally.intervals - counting->asked < ANSWER_INTERVALS)
		return false;
	if (r != -EAGAIN)
		counting->ticket = 0;
	end_counting(daemon);
	struct nm_residence *residence = nm_balance_residence(balancer, counting->pid);
	if (r < 0 || answer.result < 0 || !residence ||
	    residence->start_ticks != counting->start_ticks)
		return true;
	if (counting->kind == NM_MEMORY_QUERY_NUMA_MAPS && answer.text)
		take_numa_maps(balancer, residence, answer.text, now_ns);
	else if (counting->kind == NM_MEMORY_QUERY_WHERE && answer.count == counting->count)
		nm_balance_take_homes(balancer, residence, answer.nodes, now_ns);
	return true;
}

/* Returns the process with the longest time since the last attempt, or without one. */
static struct nm_residence *next_due(const struct nm_daemon *daemon, uint64_t now_ns)
{
	const struct nm_balancer *balancer = daemon->pipeline.balancer;
	double period_ns = daemon->config->threads.residency_s * (double)NM_NSEC_PER_SEC;
	struct nm_residence *next = NULL;
	for (size_t i = 0; period_ns > 0 && i < balancer->nr_residences; i++) {
		struct nm_residence *residence = &balancer->residences[i];
		bool due = residence->tried_ns == 0 ||
			   (double)(now_ns - residence->tried_ns) >= period_ns;
		if (due && (!next || residence->tried_ns < next->tried_ns))
			next = residence;
	}
	return next;
}

static bool may_read_maps(const struct nm_config *config, const struct nm_residence *residence)
{
	uint64_t limit_mb = config->threads.residency_maps_mb;
	return limit_mb > 0 && residence->process->rss_bytes <= limit_mb << 20;
}

/* Returns a time of the last attempt that makes the process due in one second. */
static uint64_t try_again_ns(const struct nm_daemon *daemon, uint64_t now_ns)
{
	double period_s = daemon->config->threads.residency_s;
	uint64_t rest_ns = period_s > 1 ? (uint64_t)((period_s - 1) * (double)NM_NSEC_PER_SEC) : 0;
	return now_ns > rest_ns ? now_ns - rest_ns : 1;
}

static void count_next(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_residence *next = next_due(daemon, now_ns);
	if (!next)
		return;
	next->tried_ns = now_ns;
	int r = may_read_maps(daemon->config, next) ? ask_numa_maps(daemon, next)
						    : nm_balance_query(daemon, next);
	if (r == -EAGAIN)
		next->tried_ns = try_again_ns(daemon, now_ns);
}

int nm_balance_follow_pages(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, bool due)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	const struct nm_member *members;
	if (!due && !balancer->counting.ticket)
		return 0;
	size_t nr_members = nm_roster_members(daemon->pipeline.roster, &members);
	int r = list_residences(balancer, snapshot, members, nr_members);
	if (r < 0)
		return r;
	estimate_all(balancer, snapshot);
	if (take_answer(daemon, snapshot->time_ns) && due)
		count_next(daemon, snapshot->time_ns);
	return 0;
}

void nm_balance_pages_clear(struct nm_daemon *daemon)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	end_counting(daemon);
	free_residences(balancer->residences, balancer->nr_residences);
}

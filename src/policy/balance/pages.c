/* SPDX-License-Identifier: MIT */
/* R_p(i), the number of pages of a process on each node (kMLB, section 3.2.2): its resident pages
 * in proportion to its sampled accesses or, if these are few, to the pages that a query found. */
#include <stdlib.h>
#include <string.h>

#include "numa-migrd/balance.h"

#define SAMPLES_MIN 64			  /* accesses that show where pages are */
#define PERIOD_NS (30 * NM_NSEC_PER_SEC)  /* between two counts of the pages of a process */
#define RETRY_NS NM_NSEC_PER_SEC	  /* after a query that could not be sent */

static void init_residence(const struct nm_snapshot *snapshot, void *cell)
{
	struct nm_residence *residence = cell;
	size_t nr_nodes = snapshot->topology->nr_nodes;
	residence->pages = nm_must(calloc(3 * nr_nodes, sizeof(double)));
	residence->seen = residence->pages + nr_nodes;
	residence->counted = residence->seen + nr_nodes;
}

static void clear_residence(void *context, void *cell)
{
	struct nm_residence *residence = cell;
	(void)context;
	free(residence->pages);
}

struct nm_column nm_residence_column(void)
{
	return (struct nm_column){.cell_bytes = sizeof(struct nm_residence),
				  .init = init_residence,
				  .clear = clear_residence};
}

static struct nm_residence *residence_at(const struct nm_balancer *balancer, size_t index)
{
	return (struct nm_residence *)balancer->residences.cells + index;
}

const struct nm_residence *nm_balancer_residence(const struct nm_balancer *balancer, uint32_t pid)
{
	const struct nm_residence *residence = nm_column_find(&balancer->residences, pid);
	return residence && residence->known ? residence : NULL;
}

static bool has_enough_samples(const struct nm_residence *residence)
{
	return residence->samples >= SAMPLES_MIN;
}

static void estimate(const struct nm_balancer *balancer, struct nm_residence *residence,
		     uint64_t now_ns)
{
	bool counted = residence->counted_ns && !has_enough_samples(residence);
	const double *found = counted ? residence->counted : residence->seen;
	double resident = (double)residence->rss_bytes / balancer->page_bytes, sum = 0;
	for (unsigned k = 0; k < balancer->topology->nr_nodes; k++)
		sum += found[k];
	memset(residence->pages, 0, balancer->topology->nr_nodes * sizeof(*residence->pages));
	for (unsigned k = 0; sum > 0 && k < balancer->topology->nr_nodes; k++)
		residence->pages[balancer->topology->nodes[k].nearest_with_cpus] +=
			resident * (found[k] / sum);
	residence->resident = resident;
	residence->age_ns = counted ? now_ns - residence->counted_ns : 0;
	residence->known = sum > 0;
}

void nm_balancer_follow_pages(struct nm_balancer *balancer, const struct nm_snapshot *snapshot)
{
	nm_column_follow_processes(&balancer->residences, snapshot);
	for (size_t i = 0; i < snapshot->nr_processes; i++) {
		struct nm_residence *residence = residence_at(balancer, i);
		residence->pid = snapshot->processes[i].pid;
		residence->start_ticks = snapshot->processes[i].start_ticks;
		residence->rss_bytes = snapshot->processes[i].rss_bytes;
		residence->samples = 0;
		memset(residence->seen, 0, balancer->topology->nr_nodes * sizeof(*residence->seen));
	}
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		struct nm_residence *residence = residence_at(balancer, thread->process);
		if (!(thread->access_total > 0))
			continue;
		for (unsigned k = 0; k < balancer->topology->nr_nodes; k++)
			residence->seen[k] += thread->accesses[k];
		residence->samples += thread->access_samples;
	}
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		estimate(balancer, residence_at(balancer, i), snapshot->time_ns);
}

struct nm_residence *nm_balancer_next_query(const struct nm_balancer *balancer, uint64_t now_ns)
{
	struct nm_residence *next = NULL;
	for (size_t i = 0; i < balancer->residences.count; i++) {
		struct nm_residence *residence = residence_at(balancer, i);
		if (!has_enough_samples(residence) && residence->due_ns <= now_ns &&
		    (!next || residence->due_ns < next->due_ns))
			next = residence;
	}
	return next;
}

void nm_balancer_note_query(struct nm_balancer *balancer, struct nm_residence *residence,
			    uint64_t ticket, int error, const struct nm_snapshot *snapshot)
{
	residence->due_ns = snapshot->time_ns + (error == -EAGAIN ? RETRY_NS : PERIOD_NS);
	balancer->query = (struct nm_balancer_query){.ticket = ticket,
						     .pid = residence->pid,
						     .start_ticks = residence->start_ticks,
						     .interval = snapshot->interval};
}

void nm_balancer_set_pages(struct nm_balancer *balancer, uint32_t pid, uint64_t start_ticks,
			   const double *pages, uint64_t now_ns)
{
	struct nm_residence *residence = nm_column_find(&balancer->residences, pid);
	double sum = 0;
	for (unsigned k = 0; k < balancer->topology->nr_nodes; k++)
		sum += pages[k];
	if (!residence || residence->start_ticks != start_ticks || !(sum > 0))
		return;
	memcpy(residence->counted, pages, balancer->topology->nr_nodes * sizeof(*pages));
	residence->counted_ns = now_ns;
	balancer->tally.pages_counted++;
	estimate(balancer, residence, now_ns);
}

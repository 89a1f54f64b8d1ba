/* SPDX-License-Identifier: MIT */
/*
 * Policy "auto": where the memory of a process without a home is, as the kernel counts it. A program's
 * first thread may have touched all of it before the others ran, so that where they run tells nothing of it.
 */
#include <string.h>

#include "daemon.h"
#include "numa-migrd/residency.h"
#include "placement_stage.h"

#define PAGE_BYTES 4096.0
#define GREW_BY 1.5 /* what has become so much larger is asked about again */
#define AWAITED_NS (NM_NSEC_PER_SEC / 2) /* then a home goes by where it ran, whoever does not answer */

static bool may_be_asked(const struct nm_daemon *daemon, const struct nm_placed *placed,
			 uint64_t anon_bytes)
{
	uint64_t most_bytes = daemon->config->threads.residency_maps_mb << 20;
	return placed->home < 0 && placed->running > 0 && !placed->count.ticket &&
	       !(placed->accesses > 0) && /* these tell */
	       anon_bytes <= most_bytes &&
	       (double)anon_bytes > GREW_BY * (double)placed->count.anon_bytes;
}

static void ask(struct nm_daemon *daemon, struct nm_placed *placed, uint64_t anon_bytes,
		uint64_t now_ns)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	const struct nm_question question = {
		.kind = NM_QUESTION_NUMA_MAPS,
		.pid = placed->pid,
		.start_ticks = placed->start_ticks,
	};
	placed->count.anon_bytes = anon_bytes; /* also of who cannot be asked */
	placed->count.asked_ns = now_ns;
	if (platform->ops->ask(platform, &question, &placed->count.ticket) < 0)
		placed->count.ticket = 0;
}

void nm_placement_forget_count(struct nm_daemon *daemon, struct nm_placed *placed)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	if (placed->count.ticket)
		platform->ops->forget(platform, placed->count.ticket);
	placed->count.ticket = 0;
}

/* It is as if each node's part of its running had been what it has of the memory. */
static void believe(struct nm_placed *placed, const double *pages, unsigned nr_nodes)
{
	double ran = 0, all = 0;
	for (unsigned k = 0; k < nr_nodes; k++) {
		ran += placed->has_run_on[k];
		all += pages[k];
	}
	for (unsigned k = 0; k < nr_nodes && all > 0; k++)
		placed->has_run_on[k] = ran * pages[k] / all;
}

static void read_count(const struct nm_topology *topology, char *text, struct nm_placed *placed)
{
	nm_autofree double *pages = calloc(topology->nr_nodes, sizeof(*pages));
	for (char *rest = text, *line; pages && (line = strsep(&rest, "\n"));)
		if (strstr(line, " anon=")) /* what others map, too, was there before, and stays */
			(void)nm_residency_read_numa_maps_line(line, topology, PAGE_BYTES, pages);
	if (pages)
		believe(placed, pages, topology->nr_nodes);
}

static void take(struct nm_daemon *daemon, struct nm_placed *placed)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	int r = platform->ops->take(platform, placed->count.ticket, &answer);
	if (r == -EAGAIN)
		return;
	placed->count.ticket = 0;
	if (r == 0 && answer.result >= 0 && answer.text && placed->home < 0)
		read_count(daemon->pipeline.topology, answer.text, placed);
}

bool nm_placement_awaits_count(const struct nm_placed *placed, uint64_t now_ns)
{
	return placed->count.ticket && now_ns - placed->count.asked_ns < AWAITED_NS;
}

void nm_placement_count(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (size_t i = 0; i < placement->count; i++) {
		struct nm_placed *placed = &placement->items[i];
		uint64_t anon_bytes = snapshot->processes[placed->process].anon_bytes;
		if (placed->count.ticket)
			take(daemon, placed);
		if (may_be_asked(daemon, placed, anon_bytes))
			ask(daemon, placed, anon_bytes, snapshot->time_ns);
	}
}

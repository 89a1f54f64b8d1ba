/* SPDX-License-Identifier: MIT */
/*
 * Events that share a counter have it for part of the time, so that one sample represents more
 * (perf_event_open(2), PERF_FORMAT_TOTAL_TIME_RUNNING). An event that never has it provides
 * nothing.
 */
#include "source.h"

/* Reading takes a system call per event, so that large machines are checked in turns. */
#define RINGS_AT_A_TIME 32U

bool nm_event_shares(enum nm_event_kind kind)
{
	return kind == NM_EVENT_CYCLES || kind >= NM_EVENT_MEMORY;
}

static void check_event(struct nm_source *source, struct nm_ring_event *event)
{
	struct nm_event_count count;

	if (source->platform->ops->event_read(source->platform, event->fds.event, &count,
					      sizeof(count)) != (int)sizeof(count))
		return;
	uint64_t enabled = count.enabled_ns - event->enabled_ns;
	uint64_t running = count.running_ns - event->running_ns;
	event->enabled_ns = count.enabled_ns;
	event->running_ns = count.running_ns;
	if (enabled == 0)
		return; /* an offline CPU's */
	event->idle_checks = running == 0 ? event->idle_checks + 1 : 0;
	event->starved = event->idle_checks >= NM_STARVED_CHECKS;
	if (running > 0)
		event->share = running < enabled ? (double)running / (double)enabled : 1.0;
}

static bool is_starved(const struct nm_ring *ring, enum nm_event_kind kind)
{
	for (unsigned i = 0; i < ring->layout.count; i++)
		if (ring->layout.events[i].kind == kind && ring->events[i].starved)
			return true;
	return false;
}

/*
 * The replacements are those for a missing counter: the clock for cycles, page faults for accesses.
 */
void nm_ring_update_substitutes(struct nm_source *source, struct nm_ring *ring)
{
	bool accesses = is_starved(ring, NM_EVENT_MEMORY);

	nm_ring_substitute(source, ring, NM_EVENT_CLOCK, is_starved(ring, NM_EVENT_CYCLES));
	nm_ring_substitute(source, ring, NM_EVENT_FAULT_MIN, accesses);
	nm_ring_substitute(source, ring, NM_EVENT_FAULT_MAJ, accesses);
}

static void report_starved(struct nm_source *source, enum nm_event_kind kind)
{
	unsigned count = 0;
	int first = -1;

	for (unsigned cpu = source->nr_rings; cpu-- > 0;)
		if (is_starved(&source->rings[cpu], kind)) {
			first = (int)cpu;
			count++;
		}
	nm_problems_set(&source->problems, NM_STEP_STARVED, kind, -EBUSY, first, count);
}

void nm_source_check_counters(struct nm_source *source)
{
	unsigned turns = source->nr_rings < RINGS_AT_A_TIME ? source->nr_rings : RINGS_AT_A_TIME;

	if (source->hardware.count == 0 && source->run_kind != NM_EVENT_CYCLES)
		return;
	for (unsigned turn = 0; turn < turns; turn++) {
		source->next_check = (source->next_check + 1) % source->nr_rings;
		struct nm_ring *ring = &source->rings[source->next_check];
		if (!ring->map)
			continue;
		for (unsigned i = 0; i < ring->layout.count; i++) {
			if (!nm_event_shares(ring->layout.events[i].kind))
				continue;
			check_event(source, &ring->events[i]);
			nm_ring_amount(source, ring, i);
		}
		nm_ring_update_substitutes(source, ring);
	}
	for (unsigned kind = 0; kind < NM_EVENT_KIND_MAX; kind++)
		if (nm_event_shares(kind))
			report_starved(source, kind);
}

/* SPDX-License-Identifier: MIT */
/*
 * What was not seen: events that share a counter have it for a part of the time, and full rings
 * lose records. One sample then stands for more (perf_event_open(2),
 * PERF_FORMAT_TOTAL_TIME_RUNNING).
 */
#include "source.h"

/* Reading costs a system call for each event, so that large machines are gone over in turns. */
#define RINGS_AT_A_TIME 32U

static void weigh_event(struct nm_source *source, struct nm_ring *ring, unsigned i)
{
	struct nm_ring_event *event = &ring->events[i];
	enum nm_event_kind kind = ring->layout.events[i].kind;
	struct {
		uint64_t value, enabled_ns, running_ns;
	} count;

	if (source->platform->ops->event_read(source->platform, event->fds.event, &count,
					      sizeof(count)) < 0)
		return;
	uint64_t enabled = count.enabled_ns - event->enabled_ns;
	uint64_t running = count.running_ns - event->running_ns;
	event->enabled_ns = count.enabled_ns;
	event->running_ns = count.running_ns;
	if (enabled == 0)
		return;
	if (running == 0 && !event->starved)
		nm_problems_add(&source->problems, NM_STEP_COUNTER, kind, (int)ring->layout.cpu,
				-EBUSY);
	event->starved = running == 0;
	if (running > 0 && running <= enabled)
		event->share = (double)running / (double)enabled;
}

static void weigh_ring(struct nm_source *source, struct nm_ring *ring)
{
	if (ring->received > 0)
		ring->lost_per_sample = (double)ring->lost / (double)ring->received;
	ring->received = ring->lost = 0;
	for (unsigned i = 0; i < ring->layout.count; i++) {
		if (ring->layout.events[i].kind < NM_EVENT_MEMORY)
			continue;
		weigh_event(source, ring, i);
		nm_ring_amount(source, ring, i);
	}
}

void nm_source_weigh(struct nm_source *source)
{
	unsigned turns = source->nr_rings < RINGS_AT_A_TIME ? source->nr_rings : RINGS_AT_A_TIME;

	if (source->hardware.count == 0)
		return;
	for (unsigned turn = 0; turn < turns; turn++) {
		source->weigh_next = (source->weigh_next + 1) % source->nr_rings;
		if (source->rings[source->weigh_next].map)
			weigh_ring(source, &source->rings[source->weigh_next]);
	}
}

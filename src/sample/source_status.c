/* SPDX-License-Identifier: MIT */
/* Summarizes what is sampled and what is not. */
#include <stdio.h>

#include "source.h"

/* Returns whether an event of the hardware list is sometimes on that CPU's counter. */
static bool counts_on(const struct nm_source *source, const struct nm_ring *ring, unsigned word)
{
	if (source->hardware.words[word].aux)
		return ring->spe != NULL;
	for (unsigned i = 0; i < ring->layout.count; i++)
		if (ring->layout.events[i].kind >= NM_EVENT_MEMORY &&
		    ring->events[i].word == word && !ring->events[i].starved)
			return true;
	return false;
}

/* Accesses from only some CPUs are useful. Amounts are not, because threads on other CPUs would
 * have 0. */
static bool word_counts(const struct nm_source *source, unsigned word)
{
	bool everywhere = source->hardware.words[word].unit > 0, any = false;

	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++) {
		const struct nm_ring *ring = &source->rings[cpu];
		if (!ring->map)
			continue;
		bool counts = counts_on(source, ring, word);
		if (everywhere && !counts)
			return false;
		any |= counts;
	}
	return any;
}

/* A sum is known only if all of its parts are: without some widths, the number of operations would
 * be too low. */
static bool kind_counts(const struct nm_source *source, enum nm_event_kind kind)
{
	bool any = false;

	for (unsigned w = 0; w < source->hardware.count; w++) {
		if (source->hardware.words[w].kind != kind)
			continue;
		if (!word_counts(source, w))
			return false;
		any = true;
	}
	return any;
}

/* Computed only on changes, because primes take long to find. */
static void find_periods(struct nm_source *source)
{
	struct nm_source_reported *reported = &source->reported;

	if (reported->run_kind == source->run_kind && reported->run_ns == source->run_ns &&
	    reported->faults == source->faults && reported->cycles_per_ns == source->cycles_per_ns)
		return;
	*reported = (struct nm_source_reported){
		.run_kind = source->run_kind,
		.run_ns = source->run_ns,
		.faults = source->faults,
		.cycles_per_ns = source->cycles_per_ns,
		.clock_period = nm_source_period(source, source->run_kind),
		.fault_period = nm_source_period(source, NM_EVENT_FAULT_MIN),
	};
}

const struct nm_source_status *nm_source_status(struct nm_source *source)
{
	struct nm_source_status *status = &source->status;

	if (source->feed.drain)
		return source->feed.status;
	find_periods(source);
	*status = (struct nm_source_status){
		.has_cycles = source->run_kind == NM_EVENT_CYCLES,
		.clock_period = source->reported.clock_period,
		.fault_period = source->reported.fault_period,
		.counts = source->counts,
		.problems = source->problems.items,
		.problem_count = source->problems.count,
		.has_instructions = kind_counts(source, NM_EVENT_INSTRUCTIONS),
		.has_flops = kind_counts(source, NM_EVENT_FLOPS),
		.has_dram = kind_counts(source, NM_EVENT_DRAM),
	};
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++) {
		const struct nm_ring *ring = &source->rings[cpu];
		status->cpus_open += ring->map != NULL;
		status->runs |= nm_ring_find(ring, NM_EVENT_CLOCK) >= 0 ||
				nm_ring_find(ring, NM_EVENT_CYCLES) >= 0;
		status->accesses |= nm_ring_find(ring, NM_EVENT_FAULT_MIN) >= 0;
	}
	if (kind_counts(source, NM_EVENT_MEMORY)) {
		status->memory = source->selection.source;
		status->memory_period = nm_source_word_period(source, &source->hardware.words[0]);
		status->accesses = true;
	}
	if (!status->accesses)
		snprintf(status->name, sizeof(status->name), "%s",
			 status->runs ? "runs-only" : "none");
	else
		snprintf(status->name, sizeof(status->name), "%s%s%s%s%s",
			 status->has_cycles ? "cycles+" : "clock+",
			 status->memory ? nm_memory_source_name(status->memory) : "faults",
			 status->has_instructions ? "+instructions" : "",
			 status->has_flops ? "+flops" : "", status->has_dram ? "+dram" : "");
	if (status->runs)
		status->run_sample_ns = (double)status->clock_period /
					(status->has_cycles ? source->cycles_per_ns : 1.0);
	return status;
}

const struct nm_source_problem *nm_source_news(struct nm_source *source, size_t *ret_count)
{
	return nm_problems_news(&source->problems, ret_count);
}

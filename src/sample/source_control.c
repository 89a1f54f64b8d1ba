/* SPDX-License-Identifier: MIT */
/* Changes while the source runs: the CPUs with an enabled clock, and all sampling rates. */
#include <math.h>

#include "source.h"

/* The clock of a CPU is enabled at once and disabled only after calm intervals, so that bursts are
 * not missed. */
#define BUSY_FROM_SHARE 0.05
#define IDLE_BELOW_SHARE 0.02
#define IDLE_INTERVALS 3U
#define WHOLE_SHARE 0.99
#define THIN_FAULTS                                                                                \
	251U /* factor for first touches that are not needed: enough to show that they             \
	      * occur */
#define RESTING_SCALE                                                                              \
	8U /* factor on the periods of hardware events while nothing can be gained                 \
	    */
#define THIN_RUN_NS                                                                                \
	(40 * NM_NSEC_PER_MSEC) /* few samples suffice to determine the node of each               \
				 * thread */

/* Multiplexed events make the kernel wake the CPU every few milliseconds. A starved one stays
 * enabled, to detect when it counts again. */
static bool are_multiplexed(const struct nm_ring *ring)
{
	bool turns = false;

	for (unsigned i = 0; i < ring->layout.count; i++) {
		if (ring->events[i].starved)
			return false;
		turns |= ring->events[i].share < WHOLE_SHARE;
	}
	return turns;
}

static int switch_event(struct nm_platform *platform, const struct nm_ring_event *event, bool stop)
{
	return platform->ops->event_ioctl(platform, event->fds.event,
					  stop ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE,
					  NULL);
}

static void follow_cpu(struct nm_source *source, struct nm_ring *ring, double busy)
{
	int clock = nm_ring_find(ring, NM_EVENT_CLOCK);
	bool stop = !ring->clock_stopped;

	if (busy < IDLE_BELOW_SHARE)
		ring->idle_intervals++;
	else
		ring->idle_intervals = 0;
	bool idle = ring->idle_intervals >= IDLE_INTERVALS;
	bool woken = !(busy < BUSY_FROM_SHARE);
	if (clock >= 0 && (stop ? idle : woken) &&
	    switch_event(source->platform, &ring->events[clock], stop) == 0)
		ring->clock_stopped = stop;
	stop = !ring->counters_stopped;
	if (!(stop ? idle && are_multiplexed(ring) : woken))
		return;
	for (unsigned i = 0; i < ring->layout.count; i++)
		if (nm_event_shares(ring->layout.events[i].kind))
			(void)switch_event(source->platform, &ring->events[i], stop);
	ring->counters_stopped = stop;
}

void nm_source_follow_load(struct nm_source *source, const double *busy_share, unsigned nr_cpus)
{
	for (unsigned cpu = 0; cpu < source->nr_rings && cpu < nr_cpus; cpu++)
		if (source->rings[cpu].map)
			follow_cpu(source, &source->rings[cpu], busy_share[cpu]);
}

static void apply_period(struct nm_source *source, enum nm_event_kind kind)
{
	struct nm_platform *platform = source->platform;
	uint64_t period = nm_source_period(source, kind);

	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++) {
		const struct nm_ring *ring = &source->rings[cpu];
		int place = nm_ring_find(ring, kind);
		if (place >= 0)
			(void)platform->ops->event_ioctl(platform, ring->events[place].fds.event,
							 PERF_EVENT_IOC_PERIOD, &period);
	}
}

static void apply_ring_scale(struct nm_source *source, struct nm_ring *ring)
{
	struct nm_platform *platform = source->platform;

	for (unsigned i = 0; i < ring->layout.count; i++) {
		if (ring->layout.events[i].kind < NM_EVENT_MEMORY)
			continue;
		uint64_t period = nm_source_word_period(
			source, &source->hardware.words[ring->events[i].word]);
		(void)platform->ops->event_ioctl(platform, ring->events[i].fds.event,
						 PERF_EVENT_IOC_PERIOD, &period);
		nm_ring_amount(source, ring, i);
	}
	if (!ring->spe)
		return;
	uint64_t period = nm_source_word_period(source, &source->hardware.words[ring->spe->word]);
	(void)platform->ops->event_ioctl(platform, ring->spe->fds.event, PERF_EVENT_IOC_PERIOD,
					 &period);
}

static bool change_scale(struct nm_source *source, double cost_share)
{
	uint64_t before = source->hardware_scale;

	source->hardware_scale =
		nm_period_next(before, source->hardware_least, NM_HARDWARE_SCALE_MAX, cost_share,
			       source->cap_share);
	if (source->hardware.count == 0 || source->hardware_scale == before)
		return false;
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
		apply_ring_scale(source, &source->rings[cpu]);
	return true;
}

/* Load comes in bursts: periods are lowered only after several calm intervals, to avoid
 * oscillation. */
#define CALM_INTERVALS 3U

static double damp_decrease(struct nm_source *source, double cost_share)
{
	if (cost_share >= source->cap_share / 3.0) {
		source->calm = 0;
		return cost_share;
	}
	if (++source->calm < CALM_INTERVALS)
		return source->cap_share;
	source->calm = 0;
	return cost_share;
}

static void apply_run(struct nm_source *source)
{
	apply_period(source, NM_EVENT_CLOCK);
	if (source->run_kind == NM_EVENT_CYCLES)
		apply_period(source, NM_EVENT_CYCLES);
}

static void apply_faults(struct nm_source *source)
{
	apply_period(source, NM_EVENT_FAULT_MIN);
	apply_period(source, NM_EVENT_FAULT_MAJ);
}

void nm_source_thin(struct nm_source *source, bool thin)
{
	uint64_t run_ns = thin ? THIN_RUN_NS : NM_RUN_NS;

	if (source->feed.drain || run_ns == source->run_ns_configured)
		return;
	source->run_ns = source->run_ns_configured = run_ns;
	source->faults = source->faults_configured = thin ? THIN_FAULTS : 1;
	apply_run(source);
	apply_faults(source);
}

void nm_source_rest(struct nm_source *source, bool rests)
{
	uint64_t least = rests ? RESTING_SCALE : 1, scale = source->hardware_scale;

	if (source->feed.drain || least == source->hardware_least)
		return;
	source->hardware_least = least;
	source->hardware_scale = rests ? (scale > least ? scale : least) : 1;
	for (unsigned cpu = 0; source->hardware.count > 0 && cpu < source->nr_rings; cpu++)
		apply_ring_scale(source, &source->rings[cpu]);
}

bool nm_source_is_held_back(const struct nm_source *source)
{
	return source->faults > source->faults_configured;
}

/* Returns whether the kernel throttled samples, or records were lost while samples were the
 * majority: a longer period then reduces the losses. */
static bool loses_by_samples(struct nm_source *source)
{
	const struct nm_ring_counts *now = &source->counts, *before = &source->before;
	uint64_t samples = now->samples - before->samples;
	bool lost = now->lost != before->lost && samples >= now->task_events - before->task_events;
	bool throttled = now->throttled != before->throttled;

	source->before = *now;
	return lost || throttled;
}

bool nm_source_control_cost(struct nm_source *source, double cost_share)
{
	uint64_t run_before = source->run_ns;
	uint64_t faults_before = source->faults;

	if (source->feed.drain)
		return false;
	nm_source_check_counters(source);
	nm_page_nodes_age(source->page_nodes);
	if (loses_by_samples(source))
		cost_share = fmax(cost_share, nextafter(source->cap_share, INFINITY));
	cost_share = damp_decrease(source, cost_share);
	source->run_ns = nm_period_next(run_before, source->run_ns_configured, NM_CLOCK_PERIOD_MAX,
					cost_share, source->cap_share);
	source->faults = nm_period_next(faults_before, source->faults_configured,
					NM_FAULT_PERIOD_MAX, cost_share, source->cap_share);
	if (source->run_ns != run_before)
		apply_run(source);
	if (source->faults != faults_before)
		apply_faults(source);
	bool scaled = change_scale(source, cost_share);
	return scaled || source->run_ns != run_before || source->faults != faults_before;
}

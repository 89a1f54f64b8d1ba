/* SPDX-License-Identifier: MIT */
/* The descriptors and timers of the loop: the wakeup, rings, queries, moves of threads and the
 * mover. */
#include <math.h>

#include "daemon.h"
#include "loop.h"
#include "stages.h"

#define USEC_PER_SEC 1000000.0
#define IDLE_WAKEUP_S 60.0
#define MOVE_POLL_USEC 20000

bool nm_loop_is_idle(const struct nm_daemon *daemon)
{
	return daemon->pipeline.topology && nm_topology_is_single(daemon->pipeline.topology) &&
	       nm_moves_open(daemon->pipeline.moves) == 0;
}

double nm_loop_wakeup_s(const struct nm_daemon *daemon)
{
	if (nm_loop_is_idle(daemon))
		return IDLE_WAKEUP_S;
	return daemon->config->threads.policy == NM_POLICY_AUTO
		       ? fmin(daemon->config->general.interval_s, NM_PLACE_MIN_AGE_S)
		       : nm_interval_s(daemon);
}

uint64_t nm_loop_wakeup_usec(const struct nm_daemon *daemon)
{
	return (uint64_t)(nm_loop_wakeup_s(daemon) * USEC_PER_SEC);
}

/* Timers are one-shot; their handlers arm them again. */
static void arm(sd_event_source *timer, uint64_t usec)
{
	(void)sd_event_source_set_time_relative(timer, usec);
	(void)sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static void arm_others(struct nm_daemon *daemon)
{
	if (daemon->pipeline.moves && nm_moves_open(daemon->pipeline.moves) > 0)
		arm(daemon->loop.move_timer, MOVE_POLL_USEC);
	if (daemon->pipeline.mover)
		arm(daemon->loop.mover_timer, 0);
}

/* The time of the next tick does not change while it is in the future: only the tick sets it. */
static void arm_interval(struct nm_daemon *daemon)
{
	int enabled = SD_EVENT_OFF;
	(void)sd_event_source_get_enabled(daemon->loop.timer, &enabled);
	uint64_t now_usec;
	uint64_t next_usec;
	uint64_t period_usec = nm_loop_wakeup_usec(daemon);
	if (sd_event_now(daemon->loop.event, CLOCK_MONOTONIC, &now_usec) < 0 ||
	    sd_event_source_get_time(daemon->loop.timer, &next_usec) < 0)
		return;
	if (enabled != SD_EVENT_OFF && next_usec > now_usec && next_usec - now_usec <= period_usec)
		return;
	/* At a steady rate, unless a tick took longer than an interval. */
	next_usec += period_usec;
	if (next_usec <= now_usec || next_usec > now_usec + period_usec)
		next_usec = now_usec + period_usec;
	(void)sd_event_source_set_time(daemon->loop.timer, next_usec);
	(void)sd_event_source_set_enabled(daemon->loop.timer, SD_EVENT_ONESHOT);
}

void nm_loop_arm(struct nm_daemon *daemon)
{
	if (!daemon->loop.timer)
		return;
	arm_interval(daemon);
	arm_others(daemon);
}

static int on_moves(sd_event_source *source, uint64_t usec, void *context)
{
	struct nm_daemon *daemon = context;
	(void)source;
	(void)usec;
	if (daemon->paused)
		return 0;
	struct nm_platform *platform = daemon->pipeline.platform;
	nm_cost_begin_handler(&daemon->costs);
	nm_moves_poll(daemon->pipeline.moves, platform->ops->now_ns(platform));
	arm_others(daemon);
	nm_cost_end_handler(&daemon->costs);
	return 0;
}

static int on_ring(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct nm_daemon *daemon = context;
	(void)source;
	(void)fd;
	(void)events;
	nm_cost_begin_handler(&daemon->costs);
	nm_drain(daemon);
	nm_cost_end_handler(&daemon->costs);
	return 0;
}

/* The mover and the queries run without enter(): no policy is charged for their CPU time. */
static int on_mover(sd_event_source *source, uint64_t usec, void *context)
{
	struct nm_daemon *daemon = context;
	(void)source;
	(void)usec;
	if (daemon->pipeline.mover)
		arm(daemon->loop.mover_timer, nm_mover_work(daemon->pipeline.mover) / 1000 + 1);
	return 0;
}

static int on_query(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct nm_daemon *daemon = context;
	struct nm_platform *machine = daemon->pipeline.platform;
	(void)fd;
	(void)events;
	machine->ops->query_progress(machine);
	return on_mover(source, 0, context);
}

void nm_watch_source(struct nm_daemon *daemon)
{
	daemon->loop.ring_source = sd_event_source_disable_unref(daemon->loop.ring_source);
	if (!daemon->loop.event || !daemon->pipeline.source)
		return;
	/* If this fails, the rings are still drained by every tick. */
	(void)sd_event_add_io(daemon->loop.event, &daemon->loop.ring_source,
			      nm_source_fd(daemon->pipeline.source), EPOLLIN, on_ring, daemon);
}

void nm_watch_queries(struct nm_daemon *daemon)
{
	struct nm_platform *machine = daemon->pipeline.platform;
	daemon->loop.query_source = sd_event_source_disable_unref(daemon->loop.query_source);
	if (!daemon->loop.event || !machine || !machine->ops->query_fd)
		return;
	/* Without it, queries still advance in every tick. */
	(void)sd_event_add_io(daemon->loop.event, &daemon->loop.query_source,
			      machine->ops->query_fd(machine), EPOLLIN, on_query, daemon);
}

int nm_watch_open(struct nm_daemon *daemon)
{
	struct nm_loop_state *loop = &daemon->loop;
	int r = sd_event_add_time_relative(loop->event, &loop->move_timer, CLOCK_MONOTONIC,
					   MOVE_POLL_USEC, 1000, on_moves, daemon);
	if (r >= 0)
		r = sd_event_source_set_enabled(loop->move_timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(loop->event, &loop->mover_timer, CLOCK_MONOTONIC, 0,
					       1000, on_mover, daemon);
	return r < 0 ? r : 0;
}

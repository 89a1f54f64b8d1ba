/* SPDX-License-Identifier: MIT */
/* The descriptors and timers between two ends of intervals: rings, queries, transient affinities
 * and the mover. */
#include "daemon.h"

#define NUDGE_POLL_USEC 20000

/* Timers are one-shot; their handlers arm them again. */
static void arm(sd_event_source *timer, uint64_t usec)
{
	(void)sd_event_source_set_time_relative(timer, usec);
	(void)sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

void nm_watch_arm(struct nm_daemon *daemon)
{
	if (daemon->pipeline.actuator && nm_actuator_nudges(daemon->pipeline.actuator) > 0)
		arm(daemon->loop.nudge_timer, NUDGE_POLL_USEC);
	if (daemon->pipeline.mover)
		arm(daemon->loop.mover_timer, 0);
}

static int on_transient_affinity(sd_event_source *source, uint64_t usec, void *context)
{
	struct nm_daemon *daemon = context;
	(void)source;
	(void)usec;
	if (daemon->paused)
		return 0;
	struct nm_platform *platform = daemon->pipeline.platform;
	nm_cost_begin_handler(daemon);
	nm_actuator_poll_nudges(daemon->pipeline.actuator, platform->ops->now_ns(platform));
	nm_watch_arm(daemon);
	nm_cost_end_handler(daemon);
	return 0;
}

static int on_ring(sd_event_source *source, int fd, uint32_t events, void *context)
{
	(void)source;
	(void)fd;
	(void)events;
	nm_cost_begin_handler(context);
	nm_drain(context);
	nm_cost_end_handler(context);
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
	int r = sd_event_add_time_relative(loop->event, &loop->nudge_timer, CLOCK_MONOTONIC,
					   NUDGE_POLL_USEC, 1000, on_transient_affinity, daemon);
	if (r >= 0)
		r = sd_event_source_set_enabled(loop->nudge_timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(loop->event, &loop->mover_timer, CLOCK_MONOTONIC, 0,
					       1000, on_mover, daemon);
	return r < 0 ? r : 0;
}

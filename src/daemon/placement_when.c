/* SPDX-License-Identifier: MIT */
/* Policy "auto": when processes are examined, and what that may cost. */
#include <math.h>

#include "daemon.h"
#include "placement_stage.h"

/* Examinations cost sampling.overhead_percent at most in the long run: above that, none
 * are made between intervals, and intervals become longer, up to this factor. */
#define STRETCH_MOST 16
#define STRETCH_IDLE 4 /* times longer where nothing runs */
#define IDLE_CPUS 0.2  /* what runs there at most */

#define MIN_AGE_NS ((uint64_t)(NM_PLACE_MIN_AGE_S * (double)NM_NSEC_PER_SEC))

/* ---- processes ---- */

static struct nm_examination *find_due(struct nm_placement *placement, uint32_t pid)
{
	for (unsigned i = 0; i < placement->nr_due; i++)
		if (placement->due[i].pid == pid)
			return &placement->due[i];
	return NULL;
}

static void drop_due(struct nm_placement *placement, struct nm_examination *one)
{
	if (one)
		*one = placement->due[--placement->nr_due];
}

void nm_placement_examine_at(struct nm_placement *placement, uint32_t pid, uint64_t since_ns,
			     uint64_t due_ns)
{
	struct nm_examination *known = find_due(placement, pid);
	if (known)
		known->due_ns = due_ns < known->due_ns ? due_ns : known->due_ns;
	else if (placement->nr_due < NM_EXAMINATIONS_MOST)
		placement->due[placement->nr_due++] =
			(struct nm_examination){pid, since_ns, due_ns};
}

bool nm_placement_next_due(struct nm_placement *placement, uint64_t now_ns,
			   struct nm_examination *ret)
{
	for (unsigned i = 0; i < placement->nr_due; i++) {
		if (placement->due[i].due_ns > now_ns)
			continue;
		*ret = placement->due[i];
		drop_due(placement, &placement->due[i]);
		return true;
	}
	return false;
}

void nm_placement_task_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			     uint64_t now_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	if (!placement)
		return;
	bool thread = event->kind == NM_TASK_FORK && event->pid == event->parent_pid;
	bool begins = event->kind == NM_TASK_EXEC || (event->kind == NM_TASK_FORK && !thread);
	bool ends = event->kind == NM_TASK_EXIT && event->tid == event->pid;
	if (begins || ends) /* the number may have been another's */
		drop_due(placement, find_due(placement, event->pid));
	/* A new thread starts wherever a CPU is idle, also where its process has a home. */
	if (begins || (thread && nm_placed_find(placement, event->pid)))
		nm_placement_examine_at(placement, event->pid, now_ns, now_ns + MIN_AGE_NS);
}

/* ---- what it may cost ---- */

/* What may be spent by then; what the model costs us has nothing to do with what it shows. */
static double budget_s(const struct nm_daemon *daemon, double since_s)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	double share = daemon->config->sampling.overhead_percent / 100;
	if (daemon->options.feed)
		return NM_SAVED_MOST_S;
	double spent_s =
		(double)(nm_loop_cpu_ns() - placement->spent_ns) / (double)NM_NSEC_PER_SEC;
	return fmin(placement->saved_s + share * since_s, NM_SAVED_MOST_S) - spent_s;
}

/* The loop's own time: what the mover takes brings memory home, and is limited elsewhere. No more is
 * owed than is earned until the next interval has to come. */
void nm_placement_pay(struct nm_daemon *daemon, uint64_t interval_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	double share = daemon->config->sampling.overhead_percent / 100;
	double most_s = share * STRETCH_MOST * daemon->config->general.interval_s;
	double left_s = budget_s(daemon, (double)interval_ns / (double)NM_NSEC_PER_SEC);
	placement->saved_s = fmax(left_s, -most_s);
	placement->spent_ns = nm_loop_cpu_ns();
}

static double since_s(const struct nm_daemon *daemon, uint64_t now_ns)
{
	return (double)(now_ns - daemon->last_tick_ns) / (double)NM_NSEC_PER_SEC;
}

double nm_placement_beat_s(const struct nm_daemon *daemon)
{
	return fmin(daemon->config->general.interval_s, NM_PLACE_MIN_AGE_S);
}

/* No process that could be given a home has run since the last interval; faults count as running.
 */
static bool is_machine_idle(const struct nm_daemon *daemon, double seconds)
{
	const struct nm_source_status *status =
		daemon->pipeline.source ? nm_source_status(daemon->pipeline.source) : NULL;
	if (!status || !status->runs)
		return false;
	double ran_s = (double)(status->counts.samples - daemon->counts.samples) *
		       status->run_sample_ns / (double)NM_NSEC_PER_SEC;
	return ran_s < IDLE_CPUS * seconds;
}

bool nm_placement_is_awaited(const struct nm_daemon *daemon, uint64_t now_ns)
{
	double seconds = since_s(daemon, now_ns);
	double intervals =
		(seconds + NM_PLACE_MIN_AGE_S / 2) / daemon->config->general.interval_s;
	if (intervals < 1 && daemon->pipeline.placement)
		return false;
	if (!daemon->pipeline.placement || intervals >= STRETCH_MOST)
		return true;
	return budget_s(daemon, seconds) > 0 &&
	       (intervals >= STRETCH_IDLE || !is_machine_idle(daemon, seconds));
}

/* The mover waits for memory to move, or has moved what it was given. */
static bool is_mover_idle(const struct nm_placement *placement)
{
	bool wanted = false;
	if (nm_mover_counts(placement->mover).waiting > 0)
		return false;
	for (size_t i = 0; !wanted && i < placement->count; i++)
		wanted = placement->items[i].memory.state == NM_BRING_WANTED;
	return wanted;
}

int nm_placement_room_to_examine(const struct nm_daemon *daemon, uint64_t now_ns)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	bool due = false;
	for (unsigned i = 0; placement && !due && i < placement->nr_due; i++)
		due = placement->due[i].due_ns <= now_ns;
	if (!placement || (!due && !is_mover_idle(placement)))
		return -1;
	return budget_s(daemon, since_s(daemon, now_ns)) > 0 ? NM_EXAMINED_AT_ONCE : 0;
}

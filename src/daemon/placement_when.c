/* SPDX-License-Identifier: MIT */
/* Policy "auto": when processes are looked at, and what that may cost. */
#include <math.h>
#include <string.h>

#include "daemon.h"
#include "placement_stage.h"

#define BEAT_S 0.25	  /* from one look at whether somebody waits for a home to the next */
#define FIRST_BEAT_S 0.1 /* likewise while somebody begins */
/* Looks cost sampling.overhead_percent at most in the long run: so much of a CPU may be saved up for
 * when programs begin, and on a slow, large or idle machine intervals become up to so many times longer. */
#define STRETCH_MOST 4
/* Who begins is looked at all the same, until so much has been borrowed; and where all have their homes, looks then come
 * more seldom still. */
#define BORROWED_MOST_S 3.0
#define STRETCH_SETTLED 16
#define IDLE_CPUS 0.2 /* where less runs, nobody wants a home, and looks come as seldom */
#define BORN_NS (NM_NSEC_PER_SEC / 10) /* what lives as long is looked at; most that begins does not */
#define AGAIN_NS (NM_NSEC_PER_SEC / 4) /* later again, once, if it has not been seen to run */
#define STRAYS_NS (2 * NM_NSEC_PER_SEC) /* so long after it got its home it is looked after, until it is there */
#define GREW_NS (NM_NSEC_PER_SEC / 20) /* so long after it has got a thread: others follow */

static void forget_birth(struct nm_placement *placement, uint32_t pid)
{
	for (unsigned i = 0; i < placement->nr_births; i++)
		if (placement->births[i].pid == pid) {
			memmove(&placement->births[i], &placement->births[i + 1],
				(--placement->nr_births - i) * sizeof(*placement->births));
			return;
		}
}

static void note_birth(struct nm_placement *placement, struct nm_birth birth)
{
	if (placement->nr_births == NM_BIRTHS_MOST)
		forget_birth(placement, placement->births[0].pid);
	placement->births[placement->nr_births++] = birth;
}

/* True: one is to be looked at now. It is again if it was not met the first time: few samples were taken by then. */
static bool take_due_births(struct nm_placement *placement, uint64_t now_ns)
{
	bool any = false;
	for (unsigned i = placement->nr_births; i-- > 0;) {
		struct nm_birth birth = placement->births[i];
		if (now_ns < birth.due_ns)
			continue;
		bool met = nm_placed_find(placement, birth.pid);
		any |= !birth.again || !met;
		forget_birth(placement, birth.pid);
		if (!birth.again && !met)
			note_birth(placement, (struct nm_birth){.pid = birth.pid,
								.due_ns = now_ns + AGAIN_NS,
								.again = true});
	}
	return any;
}

/* A new thread starts wherever a CPU is idle, also where its process has a home. */
static void note_growth(struct nm_placement *placement, uint32_t pid, uint64_t now_ns)
{
	struct nm_placed *placed = nm_placed_find(placement, pid);
	if (placed && placed->home >= 0 && placed->grew_ns == 0)
		placed->grew_ns = now_ns;
}

void nm_placement_task_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			     uint64_t now_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	bool begins = event->kind == NM_TASK_EXEC ||
		      (event->kind == NM_TASK_FORK && event->pid != event->parent_pid);
	bool ends = event->kind == NM_TASK_EXIT && event->tid == event->pid;
	if (placement && event->kind == NM_TASK_FORK && event->pid == event->parent_pid)
		note_growth(placement, event->pid, now_ns);
	if (!placement || (!begins && !ends))
		return;
	forget_birth(placement, event->pid);
	if (begins)
		note_birth(placement, (struct nm_birth){.pid = event->pid, .due_ns = now_ns + BORN_NS});
}

/* What may be spent by then; what the model costs us has nothing to do with what it shows. */
static double budget_s(const struct nm_daemon *daemon, double since_s)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	double share = daemon->config->sampling.overhead_percent / 100;
	if (!placement || daemon->options.feed)
		return NM_SAVED_MOST_S;
	return fmin(placement->saved_s + share * since_s, NM_SAVED_MOST_S);
}

/* The loop's own time: what the mover takes brings memory home, and is limited elsewhere. */
void nm_placement_pay(struct nm_daemon *daemon, uint64_t interval_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	uint64_t spent_ns = nm_loop_cpu_ns();
	double cost_s = (double)(spent_ns - placement->spent_ns) / (double)NM_NSEC_PER_SEC;
	double left_s = budget_s(daemon, (double)interval_ns / (double)NM_NSEC_PER_SEC) - cost_s;
	placement->saved_s = fmax(left_s, -2 * BORROWED_MOST_S);
	placement->spent_ns = spent_ns;
}

static bool is_somebody_born(const struct nm_placement *placement)
{
	bool born = false;
	for (unsigned i = 0; !born && i < placement->nr_births; i++)
		born = !placement->births[i].again;
	return born;
}

static bool somebody_begins(const struct nm_placement *placement)
{
	bool begins = is_somebody_born(placement);
	for (size_t i = 0; !begins && i < placement->count; i++) {
		const struct nm_placed *placed = &placement->items[i];
		begins = placed->grew_ns > 0 ||
			 (placed->home < 0 && placed->reason == NM_PLACE_YOUNG);
	}
	return begins;
}

double nm_placement_beat_s(const struct nm_daemon *daemon)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	double interval_s = daemon->config->general.interval_s;
	bool begins = placement && somebody_begins(placement);
	double budget = budget_s(daemon, 0);
	if (budget <= 0)
		return fmin(interval_s, begins && budget > -BORROWED_MOST_S ? BEAT_S : interval_s);
	return fmin(interval_s, begins ? FIRST_BEAT_S : BEAT_S);
}

/* Who was sent home has been taken away again: it is sent home again, and held there once it has sized itself. */
static bool has_strayed(const struct nm_placed *placed, uint64_t now_ns)
{
	return now_ns - placed->placed_ns < STRAYS_NS && placed->running > 0 && !placed->is_home;
}

static bool is_unsettled(const struct nm_placed *placed, bool mover_idle, uint64_t now_ns)
{
	if (placed->home >= 0)
		return (mover_idle && placed->memory.state == NM_BRING_WANTED) ||
		       (placed->grew_ns > 0 && now_ns - placed->grew_ns >= GREW_NS) ||
		       has_strayed(placed, now_ns);
	bool may_change = placed->reason == NM_PLACE_TOO_DEAR || placed->reason == NM_PLACE_NO_ROOM ||
			  placed->reason == NM_PLACE_NEAR || placed->reason == NM_PLACE_IDLE;
	return placed->reason == NM_PLACE_YOUNG ||
	       (may_change && placed->running > 0 && placed->watched_s < NM_HURRY_S);
}

/* Nobody has begun or run since the last look who would be given a home; faults count as if they had run. */
static bool is_machine_idle(const struct nm_daemon *daemon, double since_s)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	const struct nm_source_status *status =
		daemon->pipeline.source ? nm_source_status(daemon->pipeline.source) : NULL;
	if (!status || !status->runs || !placement || is_somebody_born(placement))
		return false;
	double ran_s = (double)(status->counts.samples - daemon->counts.samples) *
		       status->run_sample_ns / (double)NM_NSEC_PER_SEC;
	return ran_s < IDLE_CPUS * since_s;
}

static bool is_anybody_unsettled(const struct nm_placement *placement, uint64_t now_ns)
{
	bool idle = nm_mover_counts(placement->mover).waiting == 0, any = false;
	for (size_t i = 0; !any && i < placement->count; i++)
		any = is_unsettled(&placement->items[i], idle, now_ns);
	return any;
}

/* While nothing may be spent: for who begins, or after a multiple of the interval. */
static bool is_awaited_in_debt(const struct nm_daemon *daemon, double since_s, uint64_t now_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	double intervals = (since_s + BEAT_S / 2) / daemon->config->general.interval_s;
	bool lent = budget_s(daemon, since_s) > -BORROWED_MOST_S;
	if (!placement || intervals >= STRETCH_SETTLED)
		return true;
	if (lent && take_due_births(placement, now_ns))
		return true;
	for (size_t i = 0; lent && i < placement->count; i++)
		if (placement->items[i].home < 0 && placement->items[i].reason == NM_PLACE_YOUNG)
			return true;
	return intervals >= STRETCH_MOST && is_anybody_unsettled(placement, now_ns);
}

bool nm_placement_is_awaited(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	double since_s = (double)(now_ns - daemon->last_tick_ns) / (double)NM_NSEC_PER_SEC;
	double interval_s = daemon->config->general.interval_s;
	if (budget_s(daemon, since_s) <= 0)
		return is_awaited_in_debt(daemon, since_s, now_ns);
	if (since_s + BEAT_S / 2 < STRETCH_MOST * interval_s && is_machine_idle(daemon, since_s))
		return false;
	bool awaited = !placement || since_s + BEAT_S / 2 >= interval_s ||
		       is_anybody_unsettled(placement, now_ns);
	if (placement && take_due_births(placement, now_ns))
		awaited = true;
	return awaited;
}

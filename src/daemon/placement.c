/* SPDX-License-Identifier: MIT */
/* Policy "auto": a home node for each process; one interval's work. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon.h"
#include "numa-migrd/node_memory.h"
#include "numa-migrd/numa_balancing.h"
#include "placement_stage.h"

#define BEAT_S 0.25	  /* from one look at whether somebody waits for a home to the next */
#define FIRST_BEAT_S 0.1 /* likewise while somebody begins */
/* Looks cost sampling.overhead_percent at most in the long run: so much of a CPU may be saved up for
 * when programs begin, and on a slow, large or idle machine intervals become up to so many times longer. */
#define SAVED_MOST_S 1.0
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
#define LEASED_AFTER_S 0.5 /* without a new thread: it has sized itself */
#define JUDGED_AFTER_S 2.0 /* of memory at home and threads running there */
#define COMPARED_NS (4 * NM_NSEC_PER_SEC) /* of age at least: how a program begins says little of how it goes on */
#define FOLLOWS_S 8.0 /* of memory elsewhere: the kernel brings it as it scans, or it waits */
#define BARRED_NS (4 * NM_NSEC_PER_SEC) /* doubled by each setback */
#define SETBACKS_MOST 3U
/* After so many setbacks one after another a process is only watched. */
#define WATCHED_NS (600 * NM_NSEC_PER_SEC)
#define PAST_S 60.0 /* who is met has run so far as it does, and this is what of that counts */
#define BESIDE_S 0.25 /* of what runs beside the processes: where a thread was is known to some ten milliseconds only */
#define HURRY_S                                                                                    \
	4.0 /* so long it is looked at between intervals, too, for whether a home pays by now */
#define KNOWN_S 2.0 /* after which an older one has shown where its memory is */

/* ---- life ---- */

void nm_placement_end(struct nm_daemon *daemon)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	if (!placement)
		return;
	nm_mover_free(placement->mover);
	for (size_t i = 0; i < placement->count; i++) {
		nm_placement_forget_count(daemon, &placement->items[i]);
		nm_placement_forget_memory(&placement->items[i]);
		free(placement->items[i].ran_on);
	}
	free(placement->items);
	free(placement->times);
	free(placement->beside_cpus);
	free(placement);
	daemon->pipeline.placement = NULL;
}

static int begin(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	if (pipeline->placement)
		return 0;
	pipeline->placement = calloc(1, sizeof(*pipeline->placement));
	if (!pipeline->placement)
		return -ENOMEM;
	pipeline->placement->saved_s = SAVED_MOST_S;
	pipeline->placement->trend = (struct nm_place_trend){.performance = 1, .distance = 1};
	pipeline->placement->spent_ns = nm_loop_cpu_ns();
	int r = (daemon->options.feed ? nm_mover_new_threadless : nm_mover_new)(
		pipeline->machine, pipeline->topology, daemon->config, &pipeline->placement->mover);
	if (r < 0)
		nm_placement_end(daemon);
	return r;
}

void nm_placement_configure(struct nm_daemon *daemon)
{
	if (daemon->pipeline.placement)
		nm_mover_configure(daemon->pipeline.placement->mover, daemon->pipeline.topology,
				   daemon->config);
}

/* ---- when ---- */

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
		return SAVED_MOST_S;
	return fmin(placement->saved_s + share * since_s, SAVED_MOST_S);
}

/* The loop's own time: what the mover takes brings memory home, and is limited elsewhere. */
static void pay(struct nm_daemon *daemon, uint64_t interval_ns)
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
	       (may_change && placed->running > 0 && placed->watched_s < HURRY_S);
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

/* ---- the machine ---- */

static int fill_nodes(const struct nm_snapshot *snapshot, struct nm_place_node *nodes)
{
	const struct nm_topology *topology = snapshot->topology;
	double sibling_worth;
	int r = nm_sibling_worth(snapshot, &sibling_worth);
	for (unsigned k = 0; r == 0 && k < topology->nr_nodes; k++)
		r = nm_core_capacity(snapshot, topology->nodes[k].cpus, sibling_worth,
				     &nodes[k].cores);
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		const struct nm_snap_cpu *one = &snapshot->cpus[cpu];
		if (one->usable && one->busy_share > 0)
			nodes[one->node].busy_cpus += one->busy_share;
	}
	return r;
}

/* A moment of theirs that was taken for somebody else's is no reason to keep anybody away. */
static int smooth_nodes(struct nm_placement *placement, double interval_s, struct nm_place_node *nodes,
			unsigned nr_nodes)
{
	if (placement->nr_nodes != nr_nodes) {
		double *fresh = calloc(nr_nodes, sizeof(*fresh));
		if (!fresh)
			return -ENOMEM;
		free(placement->beside_cpus);
		placement->beside_cpus = fresh;
		placement->nr_nodes = nr_nodes;
	}
	for (unsigned k = 0; k < nr_nodes; k++) {
		double *beside = &placement->beside_cpus[k], ran = 0;
		for (size_t i = 0; i < placement->count; i++)
			ran += placement->items[i].ran_on[k];
		*beside += (fmax(nodes[k].busy_cpus - ran, 0) - *beside) * interval_s /
			   (interval_s + BESIDE_S);
		nodes[k].busy_cpus = ran + *beside;
	}
	return 0;
}

struct view {
	struct nm_place_view place;
	struct nm_place_node *nodes;
	struct nm_place_group *groups;
};

static void view_clear(struct view *view)
{
	free(view->nodes);
	free(view->groups);
}

static void fill_group(const struct nm_snapshot *snapshot, const struct nm_placed *placed,
		       struct nm_place_group *ret)
{
	const struct nm_snap_process *process = &snapshot->processes[placed->process];
	*ret = (struct nm_place_group){
		.pid = placed->pid,
		.demand_cpus = placed->demand_cpus,
		.running = placed->running,
		.ran_most = placed->ran_most,
		.age_s = process->age_s,
		.quiet_s = process->quiet_s,
		.watched_s = placed->setbacks > 0 ? INFINITY : placed->watched_s,
		.anon_bytes = process->anon_bytes,
		.ran_on = placed->ran_on,
		.memory_on = placed->accesses > 0 ? placed->memory_on : NULL,
		.has_run_on = placed->has_run_on,
		.allowed = placed->allowed,
		.home = placed->home,
		.home_reason = placed->reason,
		.home_ran_most = placed->home_ran_most,
		.barred = snapshot->time_ns < placed->barred_until_ns,
		.awaits_count = nm_placement_awaits_count(placed, snapshot->time_ns),
	};
}

/* What it has lost while it had no home, also before it was met: who has lived for long goes on for long. */
static void add_loss(const struct nm_place_group *group, struct nm_placed *placed, double distance,
		     double interval_s)
{
	double before_s = placed->watched_s - interval_s;
	bool met = group->age_s < HURRY_S ? before_s <= 0
					  : before_s < KNOWN_S && placed->watched_s >= KNOWN_S;
	if (met)
		interval_s = fmax(fmin(group->age_s, PAST_S), interval_s);
	placed->lost_s += interval_s * nm_place_lost_cpus(group->demand_cpus, distance);
}

static int view_build(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		      double interval_s, struct view *view)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	view->nodes = calloc(nr_nodes, sizeof(*view->nodes));
	view->groups = calloc(placement->count + 1, sizeof(*view->groups));
	if (!view->nodes || !view->groups)
		return -ENOMEM;
	int r = fill_nodes(snapshot, view->nodes);
	if (r == 0)
		r = smooth_nodes(daemon->pipeline.placement, interval_s, view->nodes, nr_nodes);
	if (r < 0)
		return r;
	for (size_t i = 0; i < placement->count; i++) {
		struct nm_placed *placed = &placement->items[i];
		for (unsigned k = 0; placed->accesses > 0 && k < nr_nodes; k++)
			placed->memory_on[k] /= placed->accesses;
		fill_group(snapshot, placed, &view->groups[i]);
	}
	view->place = (struct nm_place_view){
		.topology = snapshot->topology,
		.nodes = view->nodes,
		.groups = view->groups,
		.nr_groups = placement->count,
		.cost = placement->page_cost,
	};
	for (size_t i = 0; i < placement->count; i++) {
		if (placement->items[i].home >= 0)
			continue;
		add_loss(&view->groups[i], &placement->items[i],
			 nm_place_distance(&view->place, &view->groups[i]), interval_s);
		view->groups[i].lost_s = placement->items[i].lost_s;
	}
	return 0;
}

/* ---- verdicts ---- */

static void give_up(struct nm_daemon *daemon, struct nm_placed *placed, bool memory_goes_back)
{
	(void)nm_actuator_return_process(daemon->pipeline.actuator, placed->pid);
	nm_mover_drop(daemon->pipeline.placement->mover, placed->pid);
	if (memory_goes_back)
		nm_placement_send_back(daemon, placed);
	nm_placement_forget_memory(placed);
	placed->home = -1;
	placed->lost_s = 0;
	placed->before = (struct nm_place_measure){.distance = NAN, .performance = NAN};
}

/* For first_ns, doubled by each setback, as long as these are few. */
static void bar(struct nm_placed *placed, uint64_t first_ns, uint64_t now_ns)
{
	placed->setbacks++;
	placed->barred_until_ns =
		now_ns + (placed->setbacks < SETBACKS_MOST ? first_ns << placed->setbacks
							   : WATCHED_NS);
}

static double since_decision_s(const struct nm_snapshot *snapshot, const struct nm_placed *placed)
{
	return (double)(snapshot->time_ns - placed->decided_ns) / (double)NM_NSEC_PER_SEC;
}

/* Its memory has yet to follow: only of its waiting for CPUs can be told. */
static bool is_early(const struct nm_snapshot *snapshot, const struct nm_placed *placed)
{
	return placed->memory.state != NM_BRING_DONE && placed->memory.away_bytes > 0 &&
	       since_decision_s(snapshot, placed) < FOLLOWS_S;
}

static struct nm_place_context context_of(const struct nm_daemon *daemon,
					  const struct nm_placed *placed,
					  const struct nm_place_view *view,
					  const struct nm_place_group *group)
{
	const struct nm_place_trend *now = &daemon->pipeline.placement->trend;
	return (struct nm_place_context){
		.performance_drift = now->performance / placed->trend.performance - 1,
		.distance_drift = placed->trend.distance / now->distance - 1,
		.waiting_drift = now->waiting - placed->trend.waiting,
		.cpus_idle = nm_place_could_run_elsewhere(view, group),
	};
}

static void judge(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		  const struct nm_place_view *view, const struct nm_place_group *group,
		  struct nm_placed *placed)
{
	struct nm_place_measure before = placed->before, after = placed->after;
	bool early = is_early(snapshot, placed);
	if (placed->placed_ns - placed->program_ns < COMPARED_NS)
		before.distance = before.performance = before.run_s = NAN;
	if (early)
		after.distance = after.performance = NAN;
	struct nm_place_context context = context_of(daemon, placed, view, group);
	struct nm_place_verdict verdict = nm_place_judge(&before, &after, &context);
	if (early && verdict.outcome != NM_PLACE_WORSE)
		return;
	placed->judged = true;
	nm_report_placement_verdict(daemon, snapshot, placed, &verdict);
	switch (verdict.outcome) {
	case NM_PLACE_IMPROVED:
		daemon->tally.improved++;
		placed->setbacks = 0;
		break;
	case NM_PLACE_NEUTRAL:
		daemon->tally.neutral++;
		break;
	case NM_PLACE_WORSE:
		daemon->tally.rolled_back++;
		give_up(daemon, placed, true);
		bar(placed, BARRED_NS, snapshot->time_ns);
		break;
	case NM_PLACE_INCONCLUSIVE:
		daemon->tally.inconclusive++;
		break;
	}
}

/* It has settled: its memory came, and what is measured is of afterwards. */
static bool is_due(const struct nm_snapshot *snapshot, struct nm_placed *placed)
{
	if (placed->home < 0 || placed->judged)
		return false;
	if (placed->memory.state == NM_BRING_WANTED || placed->memory.state == NM_BRING_UNDER_WAY) {
		placed->after = (struct nm_place_measure){.distance = NAN, .performance = NAN};
		placed->decided_ns = snapshot->time_ns;
		return false;
	}
	return since_decision_s(snapshot, placed) >= JUDGED_AFTER_S;
}

static void judge_due(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		      const struct view *view)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (size_t i = 0; i < placement->count; i++) {
		struct nm_placed *placed = &placement->items[i];
		if (nm_daemon_is_dry_run(daemon) || !is_due(snapshot, placed))
			continue;
		judge(daemon, snapshot, &view->place, &view->groups[i], placed);
		fill_group(snapshot, placed, &view->groups[i]);
	}
}

/* ---- acting ---- */

/*
 * What has only ever run one thread may yet ask how many CPUs there are, and so may what still creates
 * threads, and what has, or may have, a runtime that asks again and again (unless threads.pin says
 * otherwise); what a thread starts that starts processes would inherit its lease.
 */
static enum nm_step_pin pin_of(const struct nm_config *config, const struct nm_snapshot *snapshot,
			       const struct nm_placed *placed, const struct nm_snap_thread *thread)
{
	const struct nm_snap_process *process = &snapshot->processes[thread->process];
	bool sized = placed->ran_most > 1 && process->age_s >= LEASED_AFTER_S &&
		     process->quiet_s >= LEASED_AFTER_S;
	bool would_see = config->threads.pin == NM_PIN_AUTO &&
			 nm_runtime_may_count_again(process->runtime);
	bool nudged = config->threads.pin == NM_PIN_NUDGE || would_see || thread->forked;
	return sized && !nudged ? NM_STEP_LEASE : NM_STEP_NUDGE;
}

/* One that is only sent home on its way, and is there, needs nothing. */
static bool needs_step(const struct nm_snapshot *snapshot, const struct nm_snap_thread *thread,
		       int home, enum nm_step_pin pin)
{
	if (!(thread->run_share > 0) || thread->leased || thread->only_watched)
		return false;
	return pin == NM_STEP_LEASE ||
	       nm_topology_node_of_cpu(snapshot->topology, thread->home_cpu) != home;
}

static int plan_threads(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			struct nm_plan *plan)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	int r = 0;
	for (uint32_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		const struct nm_placed *placed = nm_placed_find(placement, thread->pid);
		if (!placed || placed->home < 0 ||
		    plan->count >= daemon->config->threads.moves_per_interval)
			continue;
		enum nm_step_pin pin = pin_of(daemon->config, snapshot, placed, thread);
		if (!needs_step(snapshot, thread, placed->home, pin))
			continue;
		r = nm_plan_add_home(snapshot, daemon->config, i, placed->home, pin,
				     placed->decision, plan);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

static int act(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, uint64_t now_ns)
{
	nm_auto(nm_plan_clear) struct nm_plan plan = {0};
	/* A dry run reports homes; that no thread goes there is neither tried nor judged. */
	if (nm_daemon_is_dry_run(daemon))
		return 0;
	int r = plan_threads(daemon, snapshot, &plan);
	if (r < 0 || plan.count == 0)
		return r;
	nm_autofree struct nm_receipt *receipts = calloc(plan.count, sizeof(*receipts));
	if (!receipts)
		return -ENOMEM;
	nm_actuator_run(daemon->pipeline.actuator, &plan, now_ns, receipts);
	/* Who runs is there when the call returns, and is widened before he can ask. */
	nm_actuator_poll_nudges(daemon->pipeline.actuator, now_ns);
	for (size_t i = 0; i < plan.count; i++) {
		nm_recorder_decision(daemon, &plan.decisions[i], &receipts[i]);
		daemon->tally.applied += receipts[i].applied;
		daemon->tally.failed += !receipts[i].applied;
		if (!receipts[i].applied && receipts[i].steps[0].error == -ESTALE)
			nm_roster_recheck(daemon->pipeline.roster, plan.decisions[i].steps[0].tid,
					  plan.decisions[i].steps[0].start_ticks);
	}
	return 0;
}

/* ---- homes ---- */

static bool is_barred(struct nm_daemon *daemon)
{
	bool barred = nm_mover_is_barred(daemon->pipeline.placement->mover);
	nm_recorder_mover(daemon, "mover_is_barred", barred);
	return barred;
}

/* Read anew: it may have been switched since the start, also by us (sampling.inject). */
static bool kernel_brings_memory(struct nm_daemon *daemon)
{
	daemon->balancing = nm_machine_read_balancing(daemon);
	return nm_balances_nodes(daemon->balancing) &&
	       daemon->config->pages.numa_balancing != NM_BALANCING_WARN;
}

static void place(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		  struct nm_placed *placed, const struct nm_place_proposal *proposal)
{
	placed->home = proposal->node;
	placed->home_ran_most = placed->ran_most;
	placed->decision = daemon->next_decision++;
	placed->decided_ns = placed->placed_ns = snapshot->time_ns;
	placed->is_home = false;
	placed->judged = false;
	placed->trend = daemon->pipeline.placement->trend;
	placed->after = (struct nm_place_measure){.distance = NAN, .performance = NAN};
	nm_placement_forget_memory(placed);
	placed->memory = (struct nm_bring_memory){
		.away_bytes = proposal->bytes_away,
		.away_distance = proposal->distance_away,
	};
	/* Once, also beside automatic NUMA balancing: its scans take seconds, and reclaim no page
	 * cache. */
	if (!nm_daemon_is_dry_run(daemon) && !is_barred(daemon))
		placed->memory.state = NM_BRING_WANTED;
	daemon->tally.decisions++;
	nm_report_placement(daemon, snapshot, placed, proposal);
}

/* A home that was given for few threads is none for many. It is no setback, and bars nothing. */
static int expire_homes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			const struct view *view)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	nm_autofree enum nm_place_reason *reasons = calloc(placement->count + 1, sizeof(*reasons));
	int r = reasons ? nm_place_outgrown(&view->place, reasons) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < placement->count; i++) {
		struct nm_placed *placed = &placement->items[i];
		if (placed->home < 0)
			continue;
		placed->reason = reasons[i];
		if (reasons[i] != NM_PLACE_SPREAD)
			continue;
		nm_report_placement_end(daemon, &snapshot->processes[placed->process], placed,
					"it runs more threads than when it was placed");
		give_up(daemon, placed, false);
		view->groups[i].home = -1;
	}
	return r;
}

static int yield_homes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       const struct view *view)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	nm_autofree bool *given_up = calloc(placement->count + 1, sizeof(*given_up));
	int r = given_up ? nm_place_yield(&view->place, given_up) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < placement->count; i++) {
		if (!given_up[i])
			continue;
		nm_report_placement_end(daemon, &snapshot->processes[placement->items[i].process],
					&placement->items[i], "run queue full, other nodes idle");
		give_up(daemon, &placement->items[i], false);
		/* No setback: its node filled up, for which it is not to blame. */
		placement->items[i].barred_until_ns = snapshot->time_ns + BARRED_NS;
		view->groups[i].home = -1;
		view->groups[i].barred = true;
	}
	return r;
}

/* No bound if the kernel does not report it. */
static uint64_t available_on(struct nm_daemon *daemon, const struct nm_node *node,
			     const struct nm_watermarks *watermarks)
{
	uint64_t bytes;
	int r = nm_node_available_read(daemon->pipeline.platform, node->os_id, watermarks,
				       daemon->config->pages.keep_free, &bytes);
	return r < 0 ? UINT64_MAX : bytes;
}

/* Each file takes a while: it is read only where somebody may be given a home. */
static void fill_memory(struct nm_daemon *daemon, struct view *view)
{
	const struct nm_topology *topology = view->place.topology;
	bool anybody = false;
	for (size_t i = 0; i < view->place.nr_groups; i++)
		anybody |= view->groups[i].home < 0 && view->groups[i].running > 0;
	view->place.memory_stays = anybody && is_barred(daemon) && !kernel_brings_memory(daemon);
	if (!anybody)
		return;
	struct nm_watermarks watermarks = nm_watermarks_read(daemon->pipeline.platform);
	for (unsigned k = 0; k < topology->nr_nodes; k++)
		view->nodes[k].free_bytes = available_on(daemon, &topology->nodes[k], &watermarks);
}

static int choose_homes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			struct view *view)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	nm_autofree struct nm_place_proposal *proposals =
		calloc(placement->count + 1, sizeof(*proposals));
	fill_memory(daemon, view);
	int r = proposals ? nm_place_propose(&view->place, proposals) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < placement->count; i++) {
		struct nm_placed *placed = &placement->items[i];
		if (placed->home < 0 || proposals[i].reason != NM_PLACE_HELD)
			placed->reason = proposals[i].reason;
		if (placed->home < 0 && proposals[i].node >= 0)
			place(daemon, snapshot, placed, &proposals[i]);
	}
	return r;
}

int nm_placement_tick(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		      uint64_t now_ns, uint64_t interval_ns)
{
	nm_auto(view_clear) struct view view = {0};
	if (daemon->config->threads.policy != NM_POLICY_AUTO) {
		nm_placement_end(daemon);
		return 0;
	}
	int r = begin(daemon);
	if (r < 0)
		return r;
	pay(daemon, interval_ns);
	nm_placement_collect(daemon);
	r = nm_placement_follow(daemon, snapshot, interval_ns);
	if (r == 0)
		nm_placement_count(daemon, snapshot);
	if (r == 0)
		r = view_build(daemon, snapshot, (double)interval_ns / (double)NM_NSEC_PER_SEC,
			       &view);
	if (r == 0)
		judge_due(daemon, snapshot, &view);
	if (r == 0)
		r = expire_homes(daemon, snapshot, &view);
	if (r == 0)
		r = yield_homes(daemon, snapshot, &view);
	if (r == 0)
		r = choose_homes(daemon, snapshot, &view);
	if (r == 0)
		r = act(daemon, snapshot, now_ns);
	if (r == 0)
		nm_placement_bring(daemon, interval_ns);
	return r;
}

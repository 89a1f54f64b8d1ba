/* SPDX-License-Identifier: MIT */
/* Policy "auto" in the daemon: gathers its input, and carries its decisions out. */
#include "home_stage.h"

#include <math.h>

#include "numa-migrd/proc.h"

/* Available memory is read again after this time. */
#define AVAILABLE_AGE_NS (500 * NM_NSEC_PER_MSEC)
#define IDLE_CPUS 0.2 /* maximum load of an idle machine */

/* ---- creation and destruction ---- */

void nm_home_stage_end(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	if (!nm_placement_of(daemon))
		return;
	nm_policy_close(&pipeline->policies, NM_POLICY_AUTO);
	nm_migrations_drop(&pipeline->migrations, NM_DECISION_HOME, false);
	nm_release_mover(daemon, true);
}

/* A process without managed threads has exited, is no longer managed, or runs another program. Its
 * leases end by the usual rules. */
static void drop_process(void *context, void *state)
{
	struct nm_daemon *daemon = context;
	struct nm_placement *placement = nm_placement_of(daemon);
	struct nm_home_state *one = state;
	if (one->pid && daemon->pipeline.mover)
		nm_mover_drop(daemon->pipeline.mover, one->pid, true);
	for (unsigned k = 0; one->ran_on && k < placement->nr_nodes; k++)
		placement->nodes[k].busy_cpus -= one->ran_on[k];
	nm_location_cancel(daemon->pipeline.platform, &one->location.ticket);
	nm_home_stage_end_migration(daemon, one, false);
	nm_home_state_clear(one);
}

static void open_placement(struct nm_daemon *daemon)
{
	if (nm_placement_of(daemon))
		return;
	nm_open_policy(daemon, NM_POLICY_AUTO);
	struct nm_placement *placement = nm_placement_of(daemon);
	placement->processes.clear = drop_process;
	placement->processes.context = daemon;
	placement->spent_ns = nm_own_loop_ns(daemon);
	nm_open_mover(daemon);
}

void nm_home_stage_configure(struct nm_daemon *daemon)
{
	if (nm_placement_of(daemon))
		nm_mover_configure(daemon->pipeline.mover, daemon->pipeline.topology,
				   daemon->config);
}

/* ---- the schedule ---- */

static struct nm_examination_budget budget_of(const struct nm_daemon *daemon, uint64_t now_ns)
{
	double since_s = (double)(now_ns - daemon->last_tick_ns) / (double)NM_NSEC_PER_SEC;
	return (struct nm_examination_budget){
		.share = daemon->config->sampling.overhead_percent / 100,
		.interval_s = daemon->config->general.interval_s,
		.since_s = since_s,
		.own_ns = nm_own_loop_ns(daemon),
		.sampling_exceeds = nm_cost_must_reduce_sampling(daemon, since_s),
		.unlimited = daemon->options.feed != NULL,
	};
}

double nm_home_stage_wakeup_s(const struct nm_daemon *daemon)
{
	return fmin(daemon->config->general.interval_s, NM_PLACE_MIN_AGE_S);
}

/* Returns whether no process that could be assigned a home has run since the last interval. Page
 * faults count as running. */
static bool is_machine_idle(const struct nm_daemon *daemon, double seconds)
{
	const struct nm_source_status *status =
		daemon->pipeline.source ? nm_source_status(daemon->pipeline.source) : NULL;
	if (!status || !status->runs)
		return false;
	double ran_s = (double)(status->counts.samples - daemon->costs.counts.samples) *
		       status->run_sample_ns / (double)NM_NSEC_PER_SEC;
	return ran_s < IDLE_CPUS * seconds;
}

bool nm_home_stage_must_end_interval(const struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_examination_budget budget = budget_of(daemon, now_ns);
	return nm_placement_must_end_interval(nm_placement_of(daemon), &budget,
					      is_machine_idle(daemon, budget.since_s));
}

int nm_home_stage_examinations_allowed(const struct nm_daemon *daemon, uint64_t now_ns)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	if (!nm_placement_of(daemon))
		return -1;
	struct nm_examination_budget budget = budget_of(daemon, now_ns);
	bool mover_idle = nm_mover_counts(pipeline->mover).waiting == 0;
	return nm_placement_examinations_allowed(nm_placement_of(daemon), &budget, mover_idle, now_ns);
}

void nm_home_stage_task_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			      uint64_t now_ns)
{
	const struct nm_roster *roster = daemon->pipeline.roster;
	if (!nm_placement_of(daemon))
		return;
	/* The parent's domain stands for a process that is not in the table yet. */
	uint64_t domain = nm_roster_domain(roster, event->pid);
	if (nm_placement_is_unknown(domain) && event->kind == NM_TASK_FORK)
		domain = nm_roster_domain(roster, event->parent_pid);
	/* The next threads would inherit the lease. Restoring their affinities is too late for
	 * those that touch memory at once. */
	if (nm_placement_task_event(nm_placement_of(daemon), event, domain, now_ns))
		(void)nm_actuator_return_process(daemon->pipeline.actuator, event->pid);
}

/* ---- memory ---- */

/* Reads the setting again: it may have changed since the start, also by the daemon itself
 * (sampling.inject). */
static bool kernel_moves_memory(struct nm_daemon *daemon)
{
	daemon->machine.balancing = nm_machine_read_balancing(daemon);
	return nm_balances_nodes(daemon->machine.balancing) &&
	       daemon->config->pages.numa_balancing != NM_BALANCING_WARN;
}

/* No limit if the kernel does not report it. */
static uint64_t available_on(struct nm_daemon *daemon, unsigned node,
			     const struct nm_watermarks *watermarks)
{
	uint64_t bytes;
	if (nm_home_stage_is_reclaimed(daemon, node))
		return 0;
	int r = nm_node_available_read(daemon->pipeline.platform,
				       daemon->pipeline.topology->nodes[node].os_id, watermarks,
				       daemon->config->pages.keep_free_percent / 100, &bytes);
	return r < 0 ? UINT64_MAX : bytes;
}

/* Reading these files costs more than examining a process, so they are read once for all processes
 * that are examined together. */
static void read_available(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_placement *placement = nm_placement_of(daemon);
	uint64_t *read_ns = &placement->available_ns;
	if (*read_ns && now_ns - *read_ns < AVAILABLE_AGE_NS)
		return;
	struct nm_watermarks watermarks = nm_watermarks_read(daemon->pipeline.platform);
	for (unsigned k = 0; k < placement->nr_nodes; k++)
		placement->available_bytes[k] = available_on(daemon, k, &watermarks);
	*read_ns = now_ns;
}

/* ---- decisions ---- */

static void on_assigned(void *context, const struct nm_decision *decision)
{
	struct nm_daemon *daemon = context;
	daemon->tally.decisions++;
	daemon->tally.homes.granted++;
	nm_report_decision(daemon, decision, NULL);
}

static void on_judged(void *context, const struct nm_verdict *verdict)
{
	struct nm_daemon *daemon = context;
	daemon->tally.verdicts[verdict->kind]++;
	nm_report_verdict(daemon, verdict);
}

static bool on_allows(void *context, uint32_t pid)
{
	return nm_trial_stage_allows(context, pid);
}

/* Leases and verdicts of the lotteries end before a process is assigned a home. Its moved pages get
 * no verdict any more, so that they need not return. */
static void on_withdrawn(void *context, const struct nm_home_state *state)
{
	struct nm_daemon *daemon = context;
	(void)nm_actuator_return_process(daemon->pipeline.actuator, state->pid);
	nm_verifier_drop_process(daemon->pipeline.verifier, state->pid);
	nm_migrations_abandon(&daemon->pipeline.migrations, state->pid);
}

static const char *end_text(const struct nm_home_state *state, enum nm_home_end end)
{
	if (end == NM_HOME_YIELDED)
		return "run queue full, other nodes idle";
	return state->reason == NM_PLACE_SPREAD ? "more threads than when placed"
						: nm_place_reason_text(state->reason);
}

static void on_ended(void *context, const struct nm_snap_process *process,
		     struct nm_home_state *state, enum nm_home_end end)
{
	struct nm_daemon *daemon = context;
	daemon->tally.homes.expired += end == NM_HOME_EXPIRED;
	daemon->tally.homes.yielded += end == NM_HOME_YIELDED;
	daemon->tally.homes.rolled_back += end == NM_HOME_ROLLED_BACK;
	/* A verdict reports a rollback. */
	if (end != NM_HOME_ROLLED_BACK)
		nm_report_home_end(daemon, process, state, end_text(state, end));
	(void)nm_actuator_return_process(daemon->pipeline.actuator, state->pid);
	nm_mover_drop(daemon->pipeline.mover, state->pid, true);
	nm_home_stage_end_migration(daemon, state, end == NM_HOME_ROLLED_BACK);
}

static void assign(struct nm_daemon *daemon, const struct nm_home_round *round,
		   struct nm_placement_view *view)
{
	bool barred = false;
	view->place.threads_follow = nm_may_draw_threads(daemon);
	if (nm_placement_wants_homes(round, view)) {
		barred = nm_mover_is_barred(daemon->pipeline.mover);
		view->place.memory_stays = barred && !kernel_moves_memory(daemon);
		read_available(daemon, round->snapshot->time_ns);
	}
	bool may_move = !barred && !nm_daemon_is_dry_run(daemon);
	nm_placement_assign(nm_placement_of(daemon), round, may_move, view);
}

/* Held threads must not queue, and a process that no longer exceeds every node is not held. */
static void release_held(struct nm_daemon *daemon)
{
	struct nm_placement *placement = nm_placement_of(daemon);
	for (size_t i = 0; i < placement->processes.count; i++) {
		struct nm_home_state *state = nm_home_state_at(placement, i);
		if (!state->held || nm_placement_may_hold(placement, state))
			continue;
		state->held = false;
		(void)nm_actuator_return_process(daemon->pipeline.actuator, state->pid);
	}
}

static void apply_homes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	nm_auto(nm_plan_clear) struct nm_plan plan = {0};
	struct nm_placement *placement = nm_placement_of(daemon);
	/* A dry run reports homes; moves of threads are neither attempted nor judged. */
	if (nm_daemon_is_dry_run(daemon))
		return;
	release_held(daemon);
	nm_placement_plan(placement, snapshot, daemon->config, &plan);
	if (plan.count == 0)
		return;
	nm_act(daemon, snapshot, &plan);
	/* A running thread has moved when the call returns, and its affinity is restored before the
	 * thread can read it. */
	nm_actuator_poll_nudges(daemon->pipeline.actuator, snapshot->time_ns);
}

/* whole: of the machine, in an interval; otherwise the snapshot is of one process. */
static void decide_homes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, bool whole,
			 size_t first, size_t end)
{
	nm_auto(nm_placement_view_clear) struct nm_placement_view view = {0};
	struct nm_placement *placement = nm_placement_of(daemon);
	const struct nm_home_handler handler = {daemon,	on_assigned,  on_judged,
						on_allows, on_withdrawn, on_ended};
	const struct nm_home_round round = {.snapshot = snapshot,
					    .config = daemon->config,
					    .first = first,
					    .end = end,
					    .next_id = &daemon->next_decision,
					    .handler = &handler};
	nm_placement_view_build(placement, daemon->pipeline.topology, snapshot->time_ns, &view);
	if (whole && !nm_daemon_is_dry_run(daemon))
		nm_placement_judge(placement, &round, &view);
	nm_placement_expire(placement, &round, &view);
	if (whole)
		nm_placement_yield(placement, &round, &view);
	assign(daemon, &round, &view);
	apply_homes(daemon, snapshot);
}

void nm_home_stage_decide(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	const struct nm_placement *placement = nm_placement_of(daemon);
	struct nm_home_state *state = nm_home_state_find(placement, snapshot->processes[0].pid);
	size_t first = (size_t)(state - nm_home_state_at(placement, 0));
	nm_home_stage_locate(daemon, state, snapshot->time_ns);
	decide_homes(daemon, snapshot, false, first, first + 1);
}

/* ---- one interval ---- */

/* Updates the set of processes and their measurements for this interval. */
static void follow(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, double interval_s)
{
	struct nm_placement *placement = nm_placement_of(daemon);
	struct nm_times_reading readings[NM_PLACE_READINGS_MOST];
	size_t count = nm_placement_choose_readings(placement, snapshot, readings);
	/* First touches alone would show that all accesses are local. */
	bool sees = daemon->pipeline.source && !nm_samples_first_touches_only(daemon);
	nm_times_read(daemon->pipeline.platform, readings, count);
	nm_placement_follow(placement, snapshot, interval_s, readings, count, sees);
}

void nm_home_stage_tick(struct nm_daemon *daemon, struct nm_snapshot *snapshot,
			uint64_t interval_ns)
{
	double interval_s = (double)interval_ns / (double)NM_NSEC_PER_SEC;
	if (daemon->config->threads.policy != NM_POLICY_AUTO) {
		nm_home_stage_end(daemon);
		return;
	}
	open_placement(daemon);
	struct nm_placement *placement = nm_placement_of(daemon);
	struct nm_examination_budget budget = budget_of(daemon, snapshot->time_ns);
	unsigned nr_nodes = placement->nr_nodes;
	nm_placement_charge_interval(placement, &budget, interval_ns);
	nm_home_stage_collect(daemon);
	follow(daemon, snapshot, interval_s);
	nm_placement_follow_nodes(placement, snapshot, interval_s);
	if (placement->nr_nodes != nr_nodes)
		placement->available_ns = 0;
	for (size_t i = 0; i < placement->processes.count; i++)
		nm_home_stage_locate(daemon, nm_home_state_at(placement, i), snapshot->time_ns);
	decide_homes(daemon, snapshot, true, 0, placement->processes.count);
	nm_home_stage_migrate(daemon, interval_s);
	nm_placement_leave_to_lottery(placement, snapshot);
}

/* SPDX-License-Identifier: MIT */
/* Policy "auto" in the daemon: measures for it, and carries its decisions out. */
#include <math.h>

#include "daemon.h"
#include "numa-migrd/proc.h"
#include "pipeline.h"
#include "report.h"
#include "stages.h"

/* ---- creation and destruction ---- */

static struct nm_home_memory memory_of(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	return (struct nm_home_memory){.platform = pipeline->platform,
				       .topology = pipeline->topology,
				       .config = daemon->config,
				       .placement = nm_placement_of(&daemon->pipeline),
				       .mover = pipeline->mover,
				       .feedback = pipeline->feedback,
				       .ticked_ns = daemon->last_tick_ns};
}

void nm_home_stage_end(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	if (!nm_placement_of(&daemon->pipeline))
		return;
	nm_policy_close(&pipeline->policies, NM_POLICY_AUTO);
	nm_release_mover(&daemon->pipeline, true);
}

/* A process without managed threads has exited, is no longer managed, or runs another program. */
static void drop_process(void *context, void *state)
{
	const struct nm_home_memory memory = memory_of(context);
	struct nm_home_state *one = state;
	nm_location_cancel(memory.platform, &one->location.query_id);
	if (one->pid) /* 0: the cell of a process that was moved */
		nm_mover_drop(memory.mover, one->pid, true);
	nm_placement_forget(memory.placement, one);
}

/* ---- the schedule ---- */

static struct nm_examination_budget budget_of(const struct nm_daemon *daemon, uint64_t now_ns)
{
	const double second = (double)NM_NSEC_PER_SEC;
	struct nm_source *source = daemon->pipeline.source;
	const struct nm_source_status *status = source ? nm_source_status(source) : NULL;
	double since_s = (double)(now_ns - daemon->last_tick_ns) / second, ran_s = NAN;
	if (status && status->runs)
		ran_s = (double)(status->counts.samples - daemon->costs.counts.samples) *
			status->run_sample_ns / second;
	return (struct nm_examination_budget){
		.share = daemon->config->sampling.overhead_percent / 100,
		.interval_s = daemon->config->general.interval_s,
		.since_s = since_s,
		.ran_s = ran_s,
		.own_ns = nm_own_loop_ns(daemon),
		.sampling_exceeds = nm_cost_must_reduce_sampling(daemon, since_s),
		.unlimited = daemon->options.feed != NULL,
	};
}

bool nm_home_stage_has_budget(const struct nm_daemon *daemon, uint64_t now_ns, uint64_t begun_ns)
{
	struct nm_examination_budget budget = budget_of(daemon, now_ns);
	if (nm_placement_of(&daemon->pipeline))
		return nm_placement_has_budget(nm_placement_of(&daemon->pipeline), &budget);
	return budget.unlimited || (double)(budget.own_ns - begun_ns) / (double)NM_NSEC_PER_SEC <
					   budget.share * budget.interval_s;
}

bool nm_home_stage_must_end_interval(const struct nm_daemon *daemon)
{
	struct nm_examination_budget budget = budget_of(daemon, nm_daemon_now_ns(daemon));
	return nm_placement_must_end_interval(nm_placement_of(&daemon->pipeline), &budget);
}

int nm_home_stage_examinations_allowed(const struct nm_daemon *daemon, uint64_t now_ns)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	if (!nm_placement_of(&daemon->pipeline))
		return -1;
	struct nm_examination_budget budget = budget_of(daemon, now_ns);
	bool mover_idle = nm_mover_counts(pipeline->mover).waiting == 0;
	return nm_placement_examinations_allowed(nm_placement_of(&daemon->pipeline), &budget,
						 mover_idle, now_ns);
}

void nm_home_stage_task_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			      uint64_t now_ns)
{
	const struct nm_task_table *tasks = daemon->pipeline.tasks;
	if (!nm_placement_of(&daemon->pipeline))
		return;
	/* The parent's domain stands for a process that is not in the table yet. */
	uint64_t domain = nm_tasks_domain(tasks, event->pid);
	if (nm_placement_is_unknown(domain) && event->kind == NM_TASK_FORK)
		domain = nm_tasks_domain(tasks, event->parent_pid);
	/* The next threads touch their memory where they run. */
	if (nm_placement_task_event(nm_placement_of(&daemon->pipeline), event, domain, now_ns))
		nm_assignments_end_process(daemon->pipeline.assignments, event->pid);
}

/* ---- decisions ---- */

static const char *end_text(const struct nm_home_action *action)
{
	if (action->end == NM_HOME_YIELDED)
		return "run queue full, other nodes idle";
	return action->reason == NM_PLACE_SPREAD ? "more threads than when placed"
						 : nm_place_reason_text(action->reason);
}

static void judged(struct nm_daemon *daemon, const struct nm_home_action *action)
{
	daemon->tally.verdicts[action->verdict.kind]++;
	nm_report_verdict(daemon, &action->verdict);
}

static void ends(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		 const struct nm_home_action *action)
{
	daemon->tally.homes.expired += action->end == NM_HOME_EXPIRED;
	daemon->tally.homes.yielded += action->end == NM_HOME_YIELDED;
	nm_report_home_end(daemon, &snapshot->processes[action->process], action, end_text(action));
	nm_assignments_end_process(daemon->pipeline.assignments, action->pid);
	nm_mover_drop(daemon->pipeline.mover, action->pid, true);
}

/* Assignments and verdicts of the lotteries end before a process is assigned a home. Its moved
 * pages get no verdict any more, so that they need not return. */
static void begins(struct nm_daemon *daemon, const struct nm_home_action *action)
{
	if (action->after_draw) {
		nm_assignments_end_process(daemon->pipeline.assignments, action->pid);
		nm_verifier_drop_process(daemon->pipeline.verifier, action->pid);
		nm_migrations_abandon(&daemon->pipeline.migrations, action->pid);
	}
	daemon->tally.decisions++;
	daemon->tally.homes.granted++;
	nm_report_decision(daemon, &action->decision, NULL);
}

static void apply(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		  struct nm_home_actions *actions)
{
	for (size_t i = 0; i < actions->count; i++) {
		const struct nm_home_action *action = &actions->items[i];
		switch (action->kind) {
		case NM_HOME_JUDGED:
			judged(daemon, action);
			break;
		case NM_HOME_ENDS:
			ends(daemon, snapshot, action);
			break;
		case NM_HOME_BEGINS:
			begins(daemon, action);
			break;
		}
	}
	actions->count = 0;
}

/* Excludes processes that would be assigned a home, and are of the control group. Returns whether
 * there are any. */
static bool leave_alone(struct nm_daemon *daemon, const struct nm_home_round *round,
			struct nm_placement_view *view, const struct nm_place_proposal *proposals)
{
	bool any = false;
	for (size_t i = round->first; i < round->end; i++) {
		const struct nm_place_group *group = &view->groups[i];
		if (group->home >= 0 || proposals[i].node < 0 ||
		    nm_trial_stage_allows(daemon, group->pid))
			continue;
		nm_placement_leave_alone(nm_placement_of(&daemon->pipeline), view, i);
		any = true;
	}
	return any;
}

/* Reviews the homes, and proposes others. */
static void decide(struct nm_daemon *daemon, const struct nm_home_round *round)
{
	nm_auto(nm_placement_view_clear) struct nm_placement_view view = {0};
	nm_auto(nm_home_actions_clear) struct nm_home_actions actions = {0};
	const struct nm_home_memory memory = memory_of(daemon);
	struct nm_placement *placement = memory.placement;
	const struct nm_snapshot *snapshot = round->snapshot;
	nm_autofree struct nm_place_proposal *proposals =
		nm_must(calloc(placement->processes.count + 1, sizeof(*proposals)));
	nm_placement_view_build(placement, snapshot->topology, snapshot->time_ns, &view);
	nm_placement_review(placement, round, &view, &actions);
	apply(daemon, snapshot, &actions);
	if (nm_placement_wants_homes(round, &view))
		nm_home_read_available(&memory, snapshot->time_ns);
	do
		nm_placement_propose(placement, round, &view, proposals);
	while (leave_alone(daemon, round, &view, proposals));
	nm_placement_assign(placement, round, &view, proposals, &actions);
	apply(daemon, snapshot, &actions);
}

/* whole: of the machine, in an interval; otherwise the snapshot is of one process. */
static void decide_homes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, bool whole,
			 size_t first, size_t end)
{
	nm_auto(nm_plan_clear) struct nm_plan plan = {0};
	struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_placement *placement = nm_placement_of(&daemon->pipeline);
	bool kernel_moves = nm_balances_nodes(daemon->machine.balancing) &&
			    daemon->config->pages.numa_balancing != NM_BALANCING_WARN;
	bool barred = nm_mover_is_barred(pipeline->mover), dry_run = nm_daemon_is_dry_run(daemon);
	const struct nm_home_round round = {.snapshot = snapshot,
					    .config = daemon->config,
					    .whole = whole,
					    .dry_run = dry_run,
					    .kernel_moves = kernel_moves,
					    .memory_stays = barred && !kernel_moves,
					    .may_move = !barred && !dry_run,
					    .first = first,
					    .end = end,
					    .next_id = &daemon->next_decision,
					    .assignments = pipeline->assignments};
	decide(daemon, &round);
	if (dry_run)
		return;
	nm_placement_plan(placement, &round, &plan);
	size_t next = 0;
	for (const struct nm_home_state *state;
	     (state = nm_placement_end_assignments(placement, &next));)
		nm_assignments_end_process(daemon->pipeline.assignments, state->pid);
	nm_autofree struct nm_receipt *receipts = nm_act(daemon, snapshot, &plan);
	nm_report_plan(daemon, &plan, receipts);
}

/* ---- an examination between intervals ---- */

/* Sets the DRAM traffic of threads in this interval, if it is counted, and if the interval is long
 * enough for that. */
static void add_traffic(const struct nm_daemon *daemon, uint64_t now_ns,
			struct nm_process_times *process)
{
	struct nm_source *source = daemon->pipeline.source;
	const uint64_t since_ns = now_ns - daemon->last_tick_ns;
	if (!source || !nm_source_status(source)->has_dram)
		return;
	for (size_t i = 0; i < process->count; i++) {
		struct nm_sampled_thread *sampled = &process->sampled[i];
		uint64_t length_ns = process->times[i].length_ns;
		length_ns = length_ns < since_ns ? length_ns : since_ns;
		if ((double)length_ns >= NM_PLACE_MIN_AGE_S / 2 * (double)NM_NSEC_PER_SEC)
			sampled->stats.traffic = (double)nm_metrics_dram_bytes(
							 daemon->pipeline.metrics, sampled->tid) *
						 (double)NM_NSEC_PER_SEC / (double)length_ns;
	}
}

/*
 * Measures the current activity of a process: the times of its threads from /proc replace samples,
 * and a snapshot of this process replaces that of the machine. Returns 0 or a negative errno;
 * -ESRCH: it has exited. *ret is unchanged if the process is not to be placed.
 */
static int measure(struct nm_daemon *daemon, const struct nm_examination *due, uint64_t now_ns,
		   struct nm_snapshot **ret)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = NULL;
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_placement *placement = nm_placement_of(&daemon->pipeline);
	struct nm_process_times process;
	struct nm_proc_stat leader;
	int r = nm_proc_stat_of(pipeline->platform, due->pid, due->pid, &leader);
	if (r < 0 || nm_examination_is_early(due, leader.nr_threads, now_ns))
		return r;
	r = nm_process_times_read(pipeline->platform, pipeline->topology, due->pid, &leader,
				  &process);
	/* Building its snapshot costs more than reading the times of its threads. */
	if (r < 0 || nm_placement_ignores(placement, &process))
		return r;
	add_traffic(daemon, now_ns, &process);
	struct nm_managed_thread managed[NM_PROCESS_TIMES_MOST];
	struct nm_snapshot_input input = {
		.interval = daemon->tally.intervals,
		.time_ns = now_ns,
		.topology = pipeline->topology,
		.config = daemon->config,
		.sampled = process.sampled,
		.nr_sampled = process.count,
		.managed = managed,
		.busy_share = daemon->machine.load.busy_share,
	};
	r = nm_tasks_update_process(pipeline->tasks, process.sampled, process.count, now_ns,
				    managed, &input.nr_managed);
	if (r == 0)
		r = nm_snapshot_build(&input, &snapshot);
	if (r < 0 || snapshot->nr_processes == 0)
		return r;
	nm_placement_measure_one(placement, snapshot, &process);
	*ret = NM_TAKE(snapshot);
	return 0;
}

/* The same, charged to its domain, which may be known only afterwards. Errors are those of
 * measure(). */
static int measure_charged(struct nm_daemon *daemon, struct nm_examination *one, uint64_t now_ns,
			   struct nm_snapshot **ret)
{
	uint64_t before_ns = nm_own_cpu_ns();
	int r = measure(daemon, one, now_ns, ret);
	uint64_t domain = nm_tasks_domain(daemon->pipeline.tasks, one->pid);
	if (!nm_placement_is_unknown(domain))
		one->domain = domain;
	/* In a simulation the cost of the model must not affect decisions. */
	if (!daemon->options.feed)
		nm_quota_add(&nm_placement_of(&daemon->pipeline)->quota, one->domain,
			     (double)(nm_own_cpu_ns() - before_ns) / (double)NM_NSEC_PER_SEC);
	return r;
}

/* Decides whether the only process of a snapshot keeps its home or is assigned one. */
static void decide_home(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	const struct nm_home_memory memory = memory_of(daemon);
	struct nm_home_state *state =
		nm_home_state_find(memory.placement, snapshot->processes[0].pid);
	size_t first = (size_t)(state - nm_home_state_at(memory.placement, 0));
	nm_home_locate(&memory, state, nm_balances_nodes(daemon->machine.balancing),
		       snapshot->time_ns);
	decide_homes(daemon, snapshot, false, first, first + 1);
}

void nm_home_stage_examine(struct nm_daemon *daemon)
{
	const struct nm_home_memory memory = memory_of(daemon);
	struct nm_snapshot *snapshots[NM_EXAMINED_AT_ONCE] = {NULL};
	struct nm_examination one;
	size_t count = 0;
	uint64_t now_ns = nm_daemon_now_ns(daemon);
	int most = nm_home_stage_examinations_allowed(daemon, now_ns);
	if (most < 0)
		return;
	nm_home_collect(&memory, &daemon->tally.homes.pages, &daemon->tally.homes.bytes);
	nm_tasks_ask_programs(daemon->pipeline.tasks, now_ns);
	/* All are measured before any is decided about, because programs often start together.
	 * Processes beyond `most`, and failures, are left to the next interval. */
	for (int done = 0; nm_placement_next_due(memory.placement, now_ns, &one); done++) {
		if (done >= most)
			continue;
		if (measure_charged(daemon, &one, now_ns, &snapshots[count]) != -ESRCH)
			nm_placement_reschedule(memory.placement, &one, now_ns);
		count += snapshots[count] != NULL;
	}
	for (size_t i = 0; i < count; i++) {
		decide_home(daemon, snapshots[i]);
		nm_snapshot_free(snapshots[i]);
	}
	nm_home_migrate(&memory, 0);
}

/* ---- one interval ---- */

/* Opens the state of the policy, and returns what its memory needs. */
static struct nm_home_memory open_placement(struct nm_daemon *daemon)
{
	if (!nm_placement_of(&daemon->pipeline)) {
		nm_open_policy(&daemon->pipeline, NM_POLICY_AUTO);
		nm_open_mover(&daemon->pipeline, daemon->config);
		nm_placement_of(&daemon->pipeline)->processes.clear = drop_process;
		nm_placement_of(&daemon->pipeline)->processes.context = daemon;
		nm_placement_of(&daemon->pipeline)->spent_ns = nm_own_loop_ns(daemon);
	}
	return memory_of(daemon);
}

void nm_home_stage_tick(struct nm_daemon *daemon, struct nm_snapshot *snapshot,
			uint64_t interval_ns)
{
	double interval_s = (double)interval_ns / (double)NM_NSEC_PER_SEC;
	if (daemon->config->threads.policy != NM_POLICY_AUTO) {
		nm_home_stage_end(daemon);
		return;
	}
	const struct nm_home_memory memory = open_placement(daemon);
	struct nm_placement *placement = memory.placement;
	struct nm_times_reading readings[NM_PLACE_READINGS_MOST];
	/* First touches alone would show that all accesses are local. */
	bool sees = daemon->pipeline.source && !nm_samples_first_touches_only(daemon);
	struct nm_examination_budget budget = budget_of(daemon, snapshot->time_ns);
	bool kernel_moves = nm_balances_nodes(daemon->machine.balancing);
	nm_placement_charge_interval(placement, &budget, interval_ns);
	nm_home_collect(&memory, &daemon->tally.homes.pages, &daemon->tally.homes.bytes);
	size_t count = nm_placement_choose_readings(placement, snapshot, readings);
	nm_times_read(memory.platform, readings, count);
	nm_placement_follow(placement, snapshot, interval_s, readings, count, sees);
	nm_placement_follow_nodes(placement, snapshot, interval_s);
	for (size_t i = 0; i < placement->processes.count; i++)
		nm_home_locate(&memory, nm_home_state_at(placement, i), kernel_moves,
			       snapshot->time_ns);
	decide_homes(daemon, snapshot, true, 0, placement->processes.count);
	nm_home_migrate(&memory, interval_s);
	nm_placement_leave_to_lottery(placement, snapshot);
}

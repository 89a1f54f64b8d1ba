/* SPDX-License-Identifier: MIT */
/* Runs the configured policy, and carries out plans: moves threads, notes what was moved, and
 * handles refusals. */
#include "daemon.h"
#include "pipeline.h"
#include "policy/policy.h"
#include "report.h"
#include "stages.h"

int nm_propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, struct nm_plan *plan)
{
	nm_auto(nm_proposals_clear) struct nm_proposals proposals = {0};
	const struct nm_config *config = daemon->config;
	enum nm_thread_policy policy = nm_drawing_policy(config, snapshot);
	const struct nm_policy_ops *ops = nm_policy_ops(policy);
	const struct nm_policy_input input = {
		.snapshot = snapshot,
		.config = config,
		.interval_s = nm_interval_s(daemon),
		.rng = &daemon->rng,
		.seed = daemon->seed,
		.memory = daemon->pipeline.memory,
	};
	if (!ops->propose || !nm_may_draw_threads(daemon))
		return 0;
	int r = ops->propose(daemon->pipeline.policies.states[policy], &input, &proposals);
	if (r == 0)
		daemon->tally.stuck = proposals.stuck;
	proposals.policy = policy;
	nm_plan_clear(plan);
	if (r < 0)
		return r;
	nm_plan_build(snapshot, config, &proposals, &daemon->next_decision, plan);
	return 0;
}

/* A refused operation is not repeated at once. If the affinity was not the expected one, it is read
 * again. */
static void handle_refusal(struct nm_daemon *daemon, const struct nm_decision *decision,
			   const struct nm_receipt *receipt, bool to_home, uint64_t now_ns)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	uint64_t until = daemon->tally.intervals + daemon->config->rules.cooldown;
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		int error = receipt->steps[i].error;
		nm_assignments_missed(pipeline->assignments, step->tid, step->start_ticks);
		if (error == -EAGAIN)
			continue;
		if (error == -ESTALE)
			nm_tasks_recheck(pipeline->tasks, step->tid, step->start_ticks);
		if (to_home)
			nm_placement_refused(nm_placement_of(&daemon->pipeline), step->pid, error,
					     now_ns);
		else
			nm_tasks_back_off(pipeline->tasks, step->tid, step->start_ticks, until);
	}
}

/* Notes an applied decision for verifier and feedback. Its threads stay until the verdict, except
 * with the rules of a paper: another move would prevent the verdict. */
static void remember_move(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  const struct nm_decision *decision)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	bool rollback = decision->kind == NM_DECISION_ROLLBACK;
	bool stay = !daemon->config->rules.paper;
	uint64_t until = daemon->tally.intervals + NM_VERDICT_INTERVALS + 1;
	for (unsigned i = 0; stay && i < decision->nr_steps; i++)
		nm_tasks_delay(pipeline->tasks, decision->steps[i].tid,
			       decision->steps[i].start_ticks, until);
	if (nm_policy_ops(decision->policy)->applied)
		nm_policy_ops(decision->policy)
			->applied(pipeline->policies.states[decision->policy], decision);
	if (pipeline->pages) {
		const struct nm_page_stage_input page_input = nm_page_input(daemon, snapshot);
		nm_page_stage_threads_moved(pipeline->pages, &page_input, decision);
	}
	for (unsigned i = 0; nm_placement_of(&daemon->pipeline) && i < decision->nr_steps; i++)
		nm_placement_drawn(nm_placement_of(&daemon->pipeline), decision->steps[i].pid,
				   daemon->tally.intervals);
	const struct nm_verifier_input input = {snapshot, pipeline->feedback, daemon->config, NULL};
	nm_verifier_add(pipeline->verifier, &input, decision);
	for (unsigned i = 0; decision->by_performance && i < decision->nr_steps; i++)
		nm_feedback_moved(pipeline->feedback, snapshot, decision->id,
				  decision->steps[i].pid, rollback);
}

static void assign(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		   const struct nm_decision *decision)
{
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		const struct nm_snap_thread *thread = nm_snapshot_thread(snapshot, step->tid);
		const struct nm_assigning assigning = {
			.node = step->node_to, .decision = decision->id, .computes = true};
		if (thread)
			nm_assignments_note(daemon->pipeline.assignments, snapshot, daemon->config,
					    thread, &assigning);
	}
}

static void note_moved_whole(struct nm_daemon *daemon, const struct nm_step *step)
{
	nm_feedback_disturb(daemon->pipeline.feedback, step->pid);
	if (nm_placement_assigned(nm_placement_of(&daemon->pipeline), step->pid))
		nm_report(daemon->journal, NM_MESSAGE_AFFINITY, LOG_INFO,
			  "Threads of PID %" PRIu32 " (%s) assigned to their nodes: %s", step->pid,
			  step->comm, nm_place_reason_text(NM_PLACE_LARGER));
}

/* Returns a receipt for each decision. */
static struct nm_receipt *move_threads(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
				       const struct nm_plan *plan)
{
	struct nm_receipt *receipts = nm_must(calloc(plan->count + 1, sizeof(*receipts)));
	if (plan->count > 0)
		nm_moves_run(daemon->pipeline.moves, plan, daemon->machine.load.busy_share,
			     snapshot->time_ns, receipts);
	return receipts;
}

struct nm_receipt *nm_act(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  const struct nm_plan *plan)
{
	struct nm_receipt *receipts = move_threads(daemon, snapshot, plan);
	for (size_t i = 0; i < plan->count; i++) {
		const struct nm_decision *decision = &plan->decisions[i];
		const struct nm_receipt *receipt = &receipts[i];
		bool to_home = nm_decision_is_to_home(decision);
		if (!nm_receipt_is_postponed(receipt)) {
			daemon->tally.decisions += !to_home;
			daemon->tally.applied += receipt->applied;
			daemon->tally.failed += !receipt->applied;
		}
		if (!receipt->applied) {
			handle_refusal(daemon, decision, receipt, to_home, snapshot->time_ns);
		} else if (to_home) {
			note_moved_whole(daemon, &decision->steps[0]);
		} else {
			remember_move(daemon, snapshot, decision);
			assign(daemon, snapshot, decision);
		}
	}
	return receipts;
}

/* Assigned threads of the lotteries that are elsewhere; those at home are in the plan of homes. */
void nm_act_again(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, size_t done)
{
	nm_auto(nm_plan_clear) struct nm_plan plan = {0};
	const size_t most = daemon->config->rules.moves_per_interval;
	if (done >= most)
		return;
	nm_assignments_plan(daemon->pipeline.assignments, snapshot, daemon->config, most - done,
			    &plan);
	nm_plan_filter(&plan, nm_trial_stage_allows, daemon);
	free(move_threads(daemon, snapshot, &plan));
}

/* ---- moving pages ---- */

static void on_pages_decided(void *context, const struct nm_decision *decision)
{
	const struct nm_receipt receipt = {.decision = decision->id, .applied = true};
	nm_report_decision(context, decision, &receipt);
}

static void on_pages_unreadable(void *context, const struct nm_page_process *process, int error)
{
	struct nm_daemon *daemon = context;
	nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING, "Pages of %s[%u] stay: %s",
		  process->comm, process->pid,
		  error == -EDQUOT  ? "more memory than pages.max_gb_of_process"
		  : error == -EFBIG ? "too many mappings, or more than 256 GiB of memory"
				    : "mappings not readable (CAP_SYS_PTRACE of the worker)");
}

struct nm_page_stage_input nm_page_input(struct nm_daemon *daemon,
					 const struct nm_snapshot *snapshot)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	return (struct nm_page_stage_input){
		.config = daemon->config,
		.snapshot = snapshot,
		.placement = nm_placement_of(&daemon->pipeline),
		.tasks = pipeline->tasks,
		.migrations = &pipeline->migrations,
		.verifier = pipeline->verifier,
		.feedback = pipeline->feedback,
		.interval = daemon->tally.intervals,
		.next_decision = &daemon->next_decision,
		.handler = {daemon, nm_trial_stage_allows, on_pages_decided, on_pages_unreadable}};
}

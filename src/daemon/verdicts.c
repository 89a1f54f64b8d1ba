/* SPDX-License-Identifier: MIT */
/* Handles the verdicts on earlier moves. */
#include "daemon.h"
#include "pipeline.h"
#include "report.h"
#include "stages.h"

/* Leaves a thread alone for some time. */
static void bar(struct nm_daemon *daemon, uint32_t tid, uint64_t start_ticks, unsigned times)
{
	nm_tasks_back_off(daemon->pipeline.tasks, tid, start_ticks,
			  daemon->tally.intervals + daemon->config->rules.cooldown * times);
}

/* The next placement would move other threads to those that were rolled back, or these back again.
 * Because the process was slower until the verdict, it is left alone for several times as long. */
static void bar_processes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  const struct nm_verdict *verdict)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		for (unsigned k = 0; k < verdict->nr_threads; k++)
			if (snapshot->threads[i].pid == verdict->threads[k].pid)
				bar(daemon, snapshot->threads[i].tid,
				    snapshot->threads[i].start_ticks, NM_VERDICT_INTERVALS);
}

static void apply_verdict(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  const struct nm_verdict *verdict, struct nm_plan *plan)
{
	const enum nm_verdict_kind kind = verdict->kind;
	bool back = kind == NM_VERDICT_ROLLED_BACK;
	bool restored = nm_verdict_restores(verdict);
	if (verdict->of == NM_DECISION_PAGES) {
		const struct nm_page_stage_input input = nm_page_input(daemon, snapshot);
		nm_page_stage_apply_verdict(daemon->pipeline.pages, &input, verdict);
		return;
	}
	daemon->tally.verdicts[kind]++;
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		const struct nm_verdict_thread *thread = &verdict->threads[i];
		nm_tasks_delay(daemon->pipeline.tasks, thread->tid, thread->start_ticks,
			       daemon->tally.intervals);
		if (nm_verdict_bars(verdict, thread,
				    nm_assignments_has(daemon->pipeline.assignments, thread->tid,
						       thread->start_ticks)))
			bar(daemon, thread->tid, thread->start_ticks, 1);
		if (restored || back)
			nm_assignments_end_thread(daemon->pipeline.assignments, thread->tid,
						  thread->start_ticks);
	}
	if (back && nm_policy_is_by_sharing(verdict->policy))
		bar_processes(daemon, snapshot, verdict);
	if (back && !restored)
		nm_plan_add_rollback(snapshot, daemon->config, verdict, &daemon->next_decision,
				     plan);
}

bool nm_apply_feedback(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_feedback_result result;
	enum nm_thread_policy policy = nm_drawing_policy(daemon->config, snapshot);
	const struct nm_policy_ops *ops = nm_policy_ops(policy);
	nm_open_policy(&daemon->pipeline, policy);
	if (nm_policy_is_by(policy, NM_BY_PERFORMANCE))
		nm_report_locality(daemon, snapshot);
	if (ops->follow)
		ops->follow(pipeline->policies.states[policy], snapshot, daemon->config);
	nm_imar2_feedback(pipeline->feedback, snapshot, daemon->config, &result);
	result.interval_s = nm_interval_s(daemon);
	nm_verifier_apply(pipeline->verifier, &result);
	return result.may_propose || !nm_policy_is_by(policy, NM_BY_PERFORMANCE);
}

void nm_judge(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, struct nm_plan *plan)
{
	nm_auto(nm_verdicts_clear) struct nm_verdicts verdicts = {0};
	struct nm_memory *memory = daemon->pipeline.memory;
	const struct nm_verifier_input input = {snapshot, daemon->pipeline.feedback, daemon->config,
						memory ? nm_memory_affinity(memory) : NULL};
	nm_verifier_judge(daemon->pipeline.verifier, &input, &verdicts);
	for (size_t i = 0; i < verdicts.count; i++) {
		/* A dry run has no results. */
		if (verdicts.items[i].results.error == -EROFS)
			continue;
		nm_report_verdict(daemon, &verdicts.items[i]);
		apply_verdict(daemon, snapshot, &verdicts.items[i], plan);
	}
}

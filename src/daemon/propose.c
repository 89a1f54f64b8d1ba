/* SPDX-License-Identifier: MIT */
/*
 * Who decides about whom: the configured policy, and beside it the ones that can be had for some
 * processes (nm_steer_is_free()), which is LBMA.
 */
#include <string.h>

#include "daemon.h"

static bool is_everyones(const struct nm_snapshot *snapshot, enum nm_thread_policy policy)
{
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		if (snapshot->processes[i].policy != policy)
			return false;
	return true;
}

int nm_view(const struct nm_snapshot *snapshot, enum nm_thread_policy policy, struct nm_view *ret)
{
	size_t count = snapshot->nr_threads;
	struct nm_snap_thread *threads = NULL;

	if (!is_everyones(snapshot, policy)) {
		threads = calloc(count + 1, sizeof(*threads));
		if (!threads)
			return -ENOMEM;
		memcpy(threads, snapshot->threads, count * sizeof(*threads));
	}
	for (size_t i = 0; threads && i < count; i++)
		if (snapshot->processes[threads[i].process].policy != policy)
			threads[i].movable = false;
	ret->snapshot = *snapshot;
	ret->threads = threads;
	if (threads)
		ret->snapshot.threads = threads;
	return 0;
}

void nm_view_clear(struct nm_view *view)
{
	free(view->threads);
	*view = (struct nm_view){0};
}

static int plan_out(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		    const struct nm_config *config, const struct nm_proposals *proposals,
		    struct nm_plan *plan)
{
	int r = nm_plan_build(snapshot, config, proposals, &daemon->next_decision, plan);
	if (r == 0)
		nm_recorder_proposals(daemon, proposals, plan);
	return r;
}

static int propose_configured(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			      struct nm_plan *plan)
{
	nm_auto(nm_proposals_clear) struct nm_proposals proposals = {0};
	int r = 0;

	switch (daemon->config->threads.policy) {
	case NM_POLICY_NONE:
	case NM_POLICY_AUTO: /* decides about groups: placement.c */
		return 0;
	case NM_POLICY_LBMA:
		r = nm_lbma_propose(snapshot, daemon->config, &daemon->rng, &proposals);
		break;
	case NM_POLICY_IMAR2:
		r = nm_imar2_propose(snapshot, daemon->config, daemon->pipeline.record,
				     &daemon->rng, &proposals);
		break;
	case NM_POLICY_KMAF:
		r = nm_sharing_propose(daemon, snapshot, &proposals);
		break;
	case NM_POLICY_BALANCE:
		r = nm_balance_propose(daemon, snapshot, &proposals);
		break;
	}
	if (r < 0)
		return r;
	return plan_out(daemon, snapshot, daemon->config, &proposals, plan);
}

static bool has_lbma(const struct nm_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		if (snapshot->processes[i].policy == NM_POLICY_LBMA)
			return true;
	return false;
}

static int propose_steered(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			   struct nm_plan *plan)
{
	nm_auto(nm_proposals_clear) struct nm_proposals proposals = {0};
	nm_auto(nm_view_clear) struct nm_view view = {0};
	struct nm_config config = nm_config_by(daemon->config, NM_POLICY_LBMA);

	if (daemon->config->threads.policy == NM_POLICY_LBMA || !has_lbma(snapshot))
		return 0;
	int r = nm_view(snapshot, NM_POLICY_LBMA, &view);
	if (r == 0)
		r = nm_lbma_propose(&view.snapshot, &config, &daemon->rng, &proposals);
	if (r < 0)
		return r;
	return plan_out(daemon, &view.snapshot, &config, &proposals, plan);
}

int nm_propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
	       const struct nm_snapshot *configured, bool may_propose, struct nm_plan *plan)
{
	bool steered_first = snapshot->interval % 2;
	int r = 0;

	for (unsigned turn = 0; r == 0 && turn < 2 && plan->count == 0; turn++) {
		nm_plan_clear(plan);
		if (steered_first == (turn == 0))
			r = propose_steered(daemon, snapshot, plan);
		else if (may_propose)
			r = propose_configured(daemon, configured, plan);
	}
	return r;
}

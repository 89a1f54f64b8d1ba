/* SPDX-License-Identifier: MIT */
/* Performs a plan: each step is checked, written to the ledger, performed and verified. */
#include <sched.h>
#include <string.h>

#include "actuator.h"

/* A step in progress, with the data needed to roll it back. */
struct attempt {
	const struct nm_step *step;
	struct nm_receipt_step *receipt;
	struct nm_ledger_entry terms; /* of the new lease */
	hwloc_bitmap_t before;	      /* the affinity before the step */
	uint64_t cpuset_id;
	int directory;
	bool has_share; /* counts against the share of its user and domain */
	bool written;	/* to the ledger; from now on the affinity may be set */
};

static int refuse(struct attempt *attempt, int error, const char *what)
{
	attempt->receipt->error = error;
	attempt->receipt->what = what;
	return error;
}

static bool is_ordinary(const struct nm_proc_stat *stat)
{
	return !(stat->flags & (NM_PROC_KTHREAD | NM_PROC_NO_AFFINITY)) &&
	       stat->policy != SCHED_FIFO && stat->policy != SCHED_RR &&
	       stat->policy != SCHED_DEADLINE;
}

/* Returns whether the affinity is the known one: the target of the active lease, or the original
 * affinity. */
static bool mask_as_known(struct nm_actuator *actuator, const struct attempt *attempt)
{
	const struct nm_step *step = attempt->step;
	const struct nm_lease *lease = nm_lease_active_of(actuator, step->tid, step->start_ticks);
	if (lease)
		return nm_mask_judge(&actuator->masks, attempt->directory, &lease->terms,
				     attempt->before) == NM_MASK_OURS;
	/* The original affinity may contain offline CPUs, which sched_getaffinity(2) does not
	 * return. */
	return hwloc_bitmap_isequal(attempt->before, step->original) ||
	       nm_is_part(attempt->before, step->original, actuator->masks.topology->online);
}

/* Descent is proved by the owner's data, and by the time, which distinguishes tasks that inherit
 * the affinity from older threads; without them, nothing is narrowed. */
static int fill_terms(struct nm_actuator *actuator, struct attempt *attempt, uint64_t decision,
		      const struct nm_proc_stat *stat)
{
	const struct nm_step *step = attempt->step;
	nm_autofree char *cgroup = NULL;
	uint64_t now_ticks = nm_proc_ticks_now(actuator->platform);
	uint32_t uid = 0;
	int r = nm_proc_read_cgroup(actuator->platform, attempt->directory, &cgroup);
	if (r == 0 || r == -ENODATA)
		r = nm_proc_read_owner(actuator->platform, attempt->directory, &uid);
	if (r == 0 && !now_ticks)
		r = -ENODATA;
	if (r < 0)
		return r;
	attempt->terms = (struct nm_ledger_entry){
		.tid = step->tid,
		.pid = step->pid,
		.start_ticks = step->start_ticks,
		.given_ticks = now_ticks,
		.decision = decision,
		.session = stat->session,
		.uid = uid,
		.ran_ticks = stat->ran_ticks,
		.cgroup = nm_ledger_cgroup(cgroup),
		.domain = nm_proc_domain(actuator->platform, uid, cgroup),
		.unrestricted = step->unrestricted,
		.original = nm_must(hwloc_bitmap_dup(step->original)),
		.target = nm_must(hwloc_bitmap_dup(step->target)),
	};
	return 0;
}

/* Does everything that can be checked and allocated before the affinity is set. */
static int prepare_attempt(struct nm_actuator *actuator, struct attempt *attempt, uint64_t decision)
{
	const struct nm_step *step = attempt->step;
	struct nm_proc_stat stat;

	if (!actuator->ledger)
		return refuse(attempt, -EROFS, "ledger");
	attempt->directory = nm_proc_open_same(actuator->platform, step->pid, step->tid,
					       step->start_ticks, &stat);
	if (attempt->directory < 0)
		return refuse(attempt, attempt->directory, "identity");
	if (!is_ordinary(&stat))
		return refuse(attempt, -EPERM, "scheduling policy");

	attempt->before = nm_must(hwloc_bitmap_alloc());
	int r = nm_lease_reserve_place(actuator, step->pid, step->tid);
	if (r < 0)
		return refuse(attempt, r, "memory");
	r = actuator->platform->ops->affinity_get(actuator->platform, (pid_t)step->tid,
						  attempt->before);
	if (r < 0)
		return refuse(attempt, r, "sched_getaffinity");
	if (!mask_as_known(actuator, attempt))
		return refuse(attempt, -ESTALE, "mask");
	r = fill_terms(actuator, attempt, decision, &stat);
	if (r < 0)
		return refuse(attempt, r, "identity");
	attempt->cpuset_id = nm_mask_cpuset_id(&actuator->masks, attempt->directory);
	attempt->has_share = actuator->count - actuator->inherited < actuator->most_leases &&
			     nm_shares_take(&actuator->lease_shares, attempt->terms.domain,
					    actuator->most_leases) == 0;
	return attempt->has_share ? 0 : refuse(attempt, -ENOSPC, "ledger");
}

/* Records the new lease. */
static struct nm_lease *take_lease(struct nm_actuator *actuator, struct attempt *attempt,
				   uint64_t now_ns)
{
	const struct nm_step *step = attempt->step;
	struct nm_lease *lease = nm_lease_put(actuator, &attempt->terms);
	attempt->has_share = false; /* it belongs to the lease now */
	lease->pin = step->pin;
	lease->cpuset_id = attempt->cpuset_id;
	lease->renewed_ns = now_ns;
	lease->nudge_end_ns = now_ns + NM_NUDGE_NS;
	return lease;
}

/* Writing the ledger takes time. If the owner has changed the affinity meanwhile, that affinity
 * stays. */
static int look_again(struct nm_actuator *actuator, struct attempt *attempt)
{
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	int r = actuator->platform->ops->affinity_get(actuator->platform, (pid_t)attempt->step->tid,
						      current);
	if (r < 0)
		return refuse(attempt, r, "sched_getaffinity");
	return hwloc_bitmap_isequal(current, attempt->before) ? 0
							      : refuse(attempt, -ESTALE, "mask");
}

static int perform(struct nm_actuator *actuator, struct attempt *attempt)
{
	const struct nm_step *step = attempt->step;
	int r = nm_ledger_give(actuator->ledger, &attempt->terms);
	if (r < 0)
		return refuse(attempt, r, "ledger");

	attempt->written = true;
	r = look_again(actuator, attempt);
	if (r < 0)
		return r;
	attempt->receipt->tried = true;
	r = nm_mask_set(&actuator->masks, attempt->directory, step->tid, step->start_ticks,
			step->target);
	if (r < 0)
		return refuse(attempt, r, "sched_setaffinity");
	attempt->receipt->applied = true;
	return 0;
}

/* ---- rolling back ---- */

/* Sets the target of the earlier lease, which continues, unless the present affinity is not the one
 * that we set: another program has changed it, or it was never set. */
static int step_back(struct nm_actuator *actuator, struct attempt *attempt,
		     const struct nm_ledger_entry *earlier)
{
	const struct nm_step *step = attempt->step;
	struct nm_platform *platform = actuator->platform;
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	int r = platform->ops->affinity_get(platform, (pid_t)step->tid, current);
	if (r == 0)
		r = nm_mask_judge(&actuator->masks, attempt->directory, &attempt->terms, current);
	if (r == NM_MASK_OURS || r == NM_MASK_RESET)
		r = nm_mask_set(&actuator->masks, attempt->directory, step->tid, step->start_ticks,
				earlier->target);
	return r;
}

static void undo(struct nm_actuator *actuator, struct attempt *attempt, uint64_t now_ns)
{
	const struct nm_step *step = attempt->step;
	struct nm_receipt_step *receipt = attempt->receipt;
	if (!attempt->written)
		return;
	struct nm_lease *lease = nm_lease_active_of(actuator, step->tid, step->start_ticks);
	int r = lease ? step_back(actuator, attempt, &lease->terms)
		      : nm_mask_restore(&actuator->masks, &attempt->terms, step->pid, step->tid,
					step->start_ticks);
	bool restored = r >= 0 || r == -ESRCH || r == -ESTALE;
	receipt->undone = receipt->applied && restored;
	receipt->applied = false;
	if (restored) {
		/* The end of an earlier lease that continues ends both lines. */
		if (!lease)
			(void)nm_ledger_return(actuator->ledger, step->tid, step->start_ticks,
					       nm_proc_ticks_now(actuator->platform));
		return;
	}
	/* A step that could not be rolled back becomes a lease that is restored later, like a
	 * transient affinity whose time is over. */
	lease = take_lease(actuator, attempt, now_ns);
	lease->pin = NM_STEP_NUDGE;
	lease->nudge_end_ns = now_ns;
}

/* ---- decisions ---- */

static void run_decision(struct nm_actuator *actuator, const struct nm_decision *decision,
			 uint64_t now_ns, struct nm_receipt *receipt)
{
	struct attempt attempts[2] = {0};
	int r = 0;

	for (unsigned i = 0; i < decision->nr_steps; i++)
		attempts[i] = (struct attempt){.step = &decision->steps[i],
					       .receipt = &receipt->steps[i],
					       .directory = -1};
	for (unsigned i = 0; r == 0 && i < decision->nr_steps; i++)
		r = prepare_attempt(actuator, &attempts[i], decision->id);
	for (unsigned i = 0; r == 0 && i < decision->nr_steps; i++)
		r = perform(actuator, &attempts[i]);

	receipt->applied = r == 0;
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		if (r == 0)
			(void)take_lease(actuator, &attempts[i], now_ns);
		else
			undo(actuator, &attempts[i], now_ns);
	}
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		nm_lease_release_place(actuator, decision->steps[i].pid, decision->steps[i].tid);
		if (attempts[i].has_share)
			nm_shares_release(&actuator->lease_shares, attempts[i].terms.domain);
		nm_ledger_entry_clear(&attempts[i].terms);
		hwloc_bitmap_free(attempts[i].before);
		if (attempts[i].directory >= 0)
			actuator->platform->ops->close(actuator->platform, attempts[i].directory);
	}
}

void nm_actuator_run(struct nm_actuator *actuator, const struct nm_plan *plan, uint64_t now_ns,
		     struct nm_receipt *receipts)
{
	nm_lease_reserve(actuator, plan->count * 2);
	nm_cgroups_begin(actuator->masks.cgroups, now_ns);
	nm_lease_compact_ledger(actuator);

	for (size_t i = 0; i < plan->count; i++) {
		const struct nm_decision *decision = &plan->decisions[i];
		receipts[i] = (struct nm_receipt){.decision = decision->id,
						  .nr_steps = decision->nr_steps};
		run_decision(actuator, decision, now_ns, &receipts[i]);
	}
}

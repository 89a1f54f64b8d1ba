/* SPDX-License-Identifier: MIT */
/* Policy "auto": the schedule of examinations, and the limit of their cost. */
#include <math.h>

#include "policy/homes.h"

/* In the long run, examinations cost at most sampling.overhead_percent. Above that, no process is
 * examined between intervals, and intervals become longer, by at most this factor. */
#define STRETCH_MAX 16
/* Factor by which the interval is longer on an idle machine, or while nothing can be gained. */
#define STRETCH_IDLE 4
#define SETTLED_S 60.0 /* time without anything to gain */
#define IDLE_CPUS 0.2  /* maximum load of an idle machine; page faults count as running */

/* Age from which a process with one thread is examined: most of them, such as compilers, exit
 * earlier. */
#define ALONE_NS (500 * NM_NSEC_PER_MSEC)
#define SPREADS_NS NM_NSEC_PER_SEC
#define RETRY_NS (200 * NM_NSEC_PER_MSEC)

#define MIN_AGE_NS ((uint64_t)(NM_PLACE_MIN_AGE_S * (double)NM_NSEC_PER_SEC))

/* ---- processes ---- */

static struct nm_examination *find_due(struct nm_placement *placement, uint32_t pid)
{
	for (unsigned i = 0; i < placement->nr_due; i++)
		if (placement->due[i].pid == pid)
			return &placement->due[i];
	return NULL;
}

static void remove_due(struct nm_placement *placement, struct nm_examination *one)
{
	if (one)
		*one = placement->due[--placement->nr_due];
}

static bool has_examination_room(const struct nm_placement *placement, uint64_t domain)
{
	struct nm_quota quota = {.limit = NM_EXAMINATIONS_MOST};
	for (unsigned i = 0; i < placement->nr_due; i++)
		nm_quota_count(&quota, domain, placement->due[i].domain, 1);
	return nm_quota_permits(&quota, domain);
}

/* Schedules an examination of a process, unless an earlier one is already scheduled. Beyond its
 * domain's quota it is not scheduled, and the next interval handles the process. */
static void schedule(struct nm_placement *placement, const struct nm_examination *one)
{
	struct nm_examination *known = find_due(placement, one->pid);
	if (known)
		known->due_ns = one->due_ns < known->due_ns ? one->due_ns : known->due_ns;
	else if (has_examination_room(placement, one->domain))
		placement->due[placement->nr_due++] = *one;
}

/* The behaviour of a young process becomes visible over time: it is examined again at twice its
 * age, and at first more often, because the scheduler spreads threads that are not assigned yet. */
void nm_placement_reschedule(struct nm_placement *placement, const struct nm_examination *one,
			     uint64_t now_ns)
{
	uint64_t age_ns = now_ns - one->since_ns;
	struct nm_examination next = *one;
	next.due_ns = now_ns + (age_ns < SPREADS_NS ? RETRY_NS : age_ns);
	if ((double)age_ns < NM_PLACE_YOUNG_S * (double)NM_NSEC_PER_SEC)
		schedule(placement, &next);
}

bool nm_examination_is_early(const struct nm_examination *one, uint64_t nr_threads, uint64_t now_ns)
{
	return nr_threads == 1 && now_ns - one->since_ns < ALONE_NS;
}

/* Selects, among the examinations that are due, one whose domain owes least. */
bool nm_placement_next_due(struct nm_placement *placement, uint64_t now_ns,
			   struct nm_examination *ret)
{
	struct nm_examination *next = NULL;
	double least_s = INFINITY;
	for (unsigned i = 0; i < placement->nr_due; i++) {
		double owed_s = nm_quota_of(&placement->quota, placement->due[i].domain);
		if (placement->due[i].due_ns > now_ns || owed_s >= least_s)
			continue;
		next = &placement->due[i];
		least_s = owed_s;
	}
	if (!next)
		return false;
	*ret = *next;
	remove_due(placement, next);
	return true;
}

bool nm_placement_is_unknown(uint64_t domain)
{
	const uint64_t unknown = nm_domain_of(0, NULL);
	return domain == unknown;
}

/* The process needs no CPUs any more: other processes may be assigned its node before the interval
 * ends. */
static void release_demand(struct nm_placement *placement, struct nm_home_state *state)
{
	if (!state)
		return;
	for (unsigned k = 0; k < placement->nr_nodes; k++) {
		placement->nodes[k].busy_cpus -= state->input.ran_on[k];
		state->input.ran_on[k] = state->input.fixed_on[k] = 0;
	}
	state->input.demand_cpus = state->input.wanted_cpus = 0;
	state->movable_cpus = state->movable_wanted_cpus = 0;
	state->input.running = 0;
}

bool nm_placement_task_event(struct nm_placement *placement, const struct nm_task_event *event,
			     uint64_t domain, uint64_t now_ns)
{
	bool thread = event->kind == NM_TASK_FORK && event->pid == event->parent_pid;
	bool begins = event->kind == NM_TASK_EXEC || (event->kind == NM_TASK_FORK && !thread);
	bool ends = event->kind == NM_TASK_EXIT && event->tid == event->pid;
	struct nm_examination *scheduled = find_due(placement, event->pid);
	struct nm_examination one = {event->pid, now_ns, now_ns + MIN_AGE_NS, domain};
	if (nm_placement_is_unknown(domain) && scheduled)
		one.domain = scheduled->domain; /* its parent's, when it was forked */
	if (begins || ends) {			/* the number may have been reused */
		remove_due(placement, scheduled);
		release_demand(placement, nm_home_state_find(placement, event->pid));
	}
	struct nm_home_state *state = thread ? nm_home_state_find(placement, event->pid) : NULL;
	/* A new thread starts on any idle CPU, even if its process has a home, and a process is
	 * examined late as long as it has one thread. */
	if (begins || (thread && (scheduled || state)))
		schedule(placement, &one);
	if (!state)
		return false;
	bool suspended = nm_home_state_is_suspended(state);
	state->forked_ns = now_ns;
	return !suspended && nm_home_state_is_suspended(state);
}

/* ---- limits of the cost ---- */

/* Returns the rest of the budget at this time. */
static double left_s(const struct nm_placement *placement,
		     const struct nm_examination_budget *budget, double since_s)
{
	if (budget->unlimited)
		return NM_BUDGET_MAX_S;
	uint64_t spent_ns =
		budget->own_ns > placement->spent_ns ? budget->own_ns - placement->spent_ns : 0;
	return fmin(placement->budget_s + budget->share * since_s, NM_BUDGET_MAX_S) -
	       (double)spent_ns / (double)NM_NSEC_PER_SEC;
}

/* Only the main loop's own time counts: the time of the mover is limited elsewhere. The time owed
 * is limited to the amount earned until the next interval must start. */
void nm_placement_charge_interval(struct nm_placement *placement,
				  const struct nm_examination_budget *budget, uint64_t interval_ns)
{
	double since_s = (double)interval_ns / (double)NM_NSEC_PER_SEC;
	double most_s = budget->share * STRETCH_MAX * budget->interval_s;
	placement->budget_s = fmax(left_s(placement, budget, since_s), -most_s);
	/* Each domain earns half of the total. */
	nm_quota_repay(&placement->quota, budget->share * since_s / 2);
	placement->spent_ns = budget->own_ns;
}

bool nm_placement_has_budget(const struct nm_placement *placement,
			     const struct nm_examination_budget *budget)
{
	return left_s(placement, budget, budget->since_s) > 0;
}

bool nm_placement_is_stable(const struct nm_placement *placement)
{
	return placement && placement->settled_s >= SETTLED_S;
}

bool nm_placement_must_end_interval(const struct nm_placement *placement,
				    const struct nm_examination_budget *budget)
{
	bool rests =
		budget->ran_s < IDLE_CPUS * budget->since_s || nm_placement_is_stable(placement);
	double intervals = (budget->since_s + NM_PLACE_MIN_AGE_S / 2) / budget->interval_s;
	if (intervals < 1 && placement)
		return false;
	if (!placement || intervals >= STRETCH_MAX || budget->sampling_exceeds)
		return true;
	return left_s(placement, budget, budget->since_s) > 0 &&
	       (intervals >= STRETCH_IDLE || !rests);
}

/* Returns whether memory is waiting to be moved. */
static bool has_ready_migration(const struct nm_placement *placement)
{
	for (size_t i = 0; i < placement->processes.count; i++)
		if (nm_home_state_at(placement, i)->migration.state == NM_MIGRATION_READY)
			return true;
	return false;
}

/*
 * Other domains have used the budget, and a process is due whose domain has used none of its quota.
 */
static bool has_unserved_domain(const struct nm_placement *placement, uint64_t now_ns)
{
	bool others = placement->quota.used > 0;
	for (unsigned i = 0; others && i < placement->nr_due; i++)
		if (placement->due[i].due_ns <= now_ns &&
		    nm_quota_of(&placement->quota, placement->due[i].domain) <= 0)
			return true;
	return false;
}

int nm_placement_examinations_allowed(const struct nm_placement *placement,
				      const struct nm_examination_budget *budget, bool mover_idle,
				      uint64_t now_ns)
{
	bool due = false;
	for (unsigned i = 0; !due && i < placement->nr_due; i++)
		due = placement->due[i].due_ns <= now_ns;
	if (!due && !(mover_idle && has_ready_migration(placement)))
		return -1;
	if (left_s(placement, budget, budget->since_s) > 0)
		return NM_EXAMINED_AT_ONCE;
	return due && has_unserved_domain(placement, now_ns) ? 1 : 0;
}

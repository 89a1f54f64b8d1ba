/* SPDX-License-Identifier: MIT */
/* The rules of descent: what proves that a thread's affinity is an inherited one. What a process's
 * ancestors and company say is put together once, for all of its threads. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "descent_internal.h"
#include "mask.h"

#define MOST_ANCESTORS 64

/* ---- processes ---- */

/* The root group holds unrelated processes: it says nothing about descent. */
static bool is_telling(const char *cgroup)
{
	return cgroup && cgroup[0] && strcmp(cgroup, "/") != 0;
}

static void find_lines(struct nm_descent *descent, struct nm_descent_process *process, char *cgroup)
{
	struct nm_ledger_entry key = {
		.pid = process->pid, .session = process->session, .cgroup = cgroup};
	const uint32_t uids[] = {process->uid, NM_LEDGER_NO_UID};
	process->own = nm_descent_group(descent, NM_BY_PID, &key);
	for (int any = 0; any < 2; any++) {
		key.uid = uids[any];
		if (process->session)
			process->company[NM_SESSION + any] =
				nm_descent_group(descent, NM_BY_SESSION, &key);
		if (is_telling(cgroup))
			process->company[NM_CGROUP + any] =
				nm_descent_group(descent, NM_BY_CGROUP, &key);
	}
}

static int fill_process(struct nm_descent *descent, struct nm_descent_process *process)
{
	struct nm_platform *platform = descent->platform;
	nm_autofree char *cgroup = NULL;
	struct nm_proc_stat stat;
	struct nm_proc_status status;
	descent->steps += 8 * NM_STEPS_CALL;
	int directory = nm_proc_open_thread(platform, process->pid, process->pid);
	if (directory < 0)
		return directory;
	int r = nm_proc_read_stat(platform, directory, &stat);
	if (r == 0)
		r = nm_proc_read_status(platform, directory, &status);
	if (r == 0)
		(void)nm_proc_read_cgroup(platform, directory, &cgroup);
	platform->ops->close(platform, directory);
	if (r < 0)
		return r;
	process->ppid = stat.ppid;
	process->session = stat.session;
	process->start_ticks = stat.start_ticks;
	process->uid = status.uid;
	process->adopts = status.ns_pid == 1 || strcmp(stat.comm, "systemd") == 0;
	find_lines(descent, process, cgroup);
	return 0;
}

/* The index of what is known of it; -ENOMEM. */
static int find_process(struct nm_descent *descent, uint32_t pid)
{
	uint32_t index = nm_tidmap_get(descent->process_of, pid);
	descent->steps++;
	if (index != NM_TIDMAP_NONE)
		return (int)index;
	int r = nm_reserve((void **)&descent->processes, &descent->processes_capacity,
			   descent->nr_processes, sizeof(*descent->processes));
	if (r == 0)
		r = nm_tidmap_set(descent->process_of, pid, (uint32_t)descent->nr_processes);
	if (r < 0)
		return r;
	struct nm_descent_process *process = &descent->processes[descent->nr_processes];
	*process = (struct nm_descent_process){.pid = pid};
	process->gone = fill_process(descent, process) < 0;
	return (int)descent->nr_processes++;
}

/* A process, its parent, and so on, for as far as they live. */
struct chain {
	uint32_t processes[MOST_ANCESTORS]; /* by index */
	size_t length;
	/* Where somebody has adopted the process before; the length: nobody is known above it. */
	size_t adoptions[MOST_ANCESTORS + 1];
	size_t nr_adoptions;
};

static const struct nm_descent_process *link_of(const struct nm_descent *descent,
						const struct chain *chain, size_t i)
{
	return &descent->processes[chain->processes[i]];
}

/*
 * Did the older process `parent` adopt this child, rather than bear it? Inits adopt; so does
 * whoever is not of the child's session, unless the child has left for one of its own.
 */
static bool adopted_by(const struct nm_descent_process *parent,
		       const struct nm_descent_process *child)
{
	return parent->adopts ||
	       (child->session != child->pid && child->session != parent->session);
}

static void list_adoptions(const struct nm_descent *descent, struct chain *chain, bool cut)
{
	for (size_t i = 1; i < chain->length; i++)
		if (adopted_by(link_of(descent, chain, i), link_of(descent, chain, i - 1)))
			chain->adoptions[chain->nr_adoptions++] = i;
	if (!cut)
		chain->adoptions[chain->nr_adoptions++] = chain->length;
}

static int climb(struct nm_descent *descent, uint32_t pid, struct chain *ret)
{
	uint64_t child_start_ticks = UINT64_MAX;
	*ret = (struct chain){0};
	while (pid > 0 && ret->length < MOST_ANCESTORS) {
		int index = find_process(descent, pid);
		if (index < 0)
			return index;
		const struct nm_descent_process *process = &descent->processes[index];
		/* An ancestor that ended while we climb leaves an orphan, and its number may go on.
		 */
		if (process->gone || process->start_ticks > child_start_ticks)
			break;
		ret->processes[ret->length++] = (uint32_t)index;
		child_start_ticks = process->start_ticks;
		pid = process->ppid > 1 ? process->ppid : 0;
	}
	list_adoptions(descent, ret, pid > 0 && ret->length == MOST_ANCESTORS);
	return 0;
}

/* ---- what a process's descent offers ---- */

/* The leased process itself, not a later one under its number: it is older than its threads. */
static bool is_leased_process(const struct nm_ledger_entry *terms,
			      const struct nm_descent_process *process)
{
	return process->pid == terms->pid && process->start_ticks <= terms->start_ticks;
}

/* Earlier offers come before later ones of the same target, as far as they go. */
static int offer(struct nm_descent *descent, uint32_t target, const struct nm_ledger_entry *terms)
{
	struct nm_lineage *lineage = &descent->lineage;
	struct nm_best_offer *best = &descent->best[target];
	uint64_t until_ticks = nm_descent_last_birth(terms);
	if (best->visit == descent->visits && best->until_ticks >= until_ticks)
		return 0;
	int r = nm_reserve((void **)&lineage->offers, &lineage->capacity, lineage->count,
			   sizeof(*lineage->offers));
	if (r < 0)
		return r;
	lineage->offers[lineage->count++] = (struct nm_offer){
		.target = target, .until_ticks = until_ticks, .terms = terms};
	*best = (struct nm_best_offer){.visit = descent->visits, .until_ticks = until_ticks};
	return 0;
}

/* By the process at this place of the chain, under whose leases those below it were born. */
static int offer_of_ancestor(struct nm_descent *descent, const struct chain *chain, size_t place)
{
	const struct nm_descent_process *process = link_of(descent, chain, place);
	uint64_t first_ticks = link_of(descent, chain, place - 1)->start_ticks;
	int r = 0;
	for (size_t i = 0; process->own && r == 0 && i < process->own->count; i++) {
		const struct nm_family *family = &process->own->families[i];
		const struct nm_ledger_entry *terms =
			nm_descent_latest(descent, family, first_ticks);
		if (terms && is_leased_process(terms, process))
			r = offer(descent, family->target, terms);
	}
	return r;
}

/*
 * By a family that is of the chain's company from this place on: an orphan is of it, was born
 * under the lease, and so were its ancestors up to one that was adopted by somebody older.
 */
static int offer_of_family(struct nm_descent *descent, const struct chain *chain, size_t place,
			   const struct nm_family *family)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < chain->nr_adoptions; i++) {
		size_t adopter = chain->adoptions[i];
		descent->steps++;
		if (adopter <= place)
			continue;
		const struct nm_ledger_entry *terms = nm_descent_latest(
			descent, family, link_of(descent, chain, adopter - 1)->start_ticks);
		if (terms && (adopter == chain->length ||
			      terms->given_ticks > link_of(descent, chain, adopter)->start_ticks))
			r = offer(descent, family->target, terms);
	}
	return r;
}

static int offer_of_company(struct nm_descent *descent, const struct chain *chain, size_t place,
			    struct nm_group *group)
{
	int r = 0;
	descent->steps++;
	if (!group || group->visit == descent->visits)
		return 0;
	group->visit = descent->visits;
	for (size_t i = 0; r == 0 && i < group->count; i++)
		r = offer_of_family(descent, chain, place, &group->families[i]);
	return r;
}

/* Another user's process proves nothing by its company. */
static int offer_of_companies(struct nm_descent *descent, const struct chain *chain, size_t place)
{
	const struct nm_descent_process *process = link_of(descent, chain, place);
	bool same_user = process->uid == link_of(descent, chain, 0)->uid;
	int r = 0;
	for (int i = 0; r == 0 && i < NM_COMPANIES; i++)
		if (same_user || i == NM_SESSION_OF_ANY || i == NM_CGROUP_OF_ANY)
			r = offer_of_company(descent, chain, place, process->company[i]);
	return r;
}

static int compare_offers(const void *a, const void *b)
{
	const struct nm_offer *left = a;
	const struct nm_offer *right = b;
	if (left->target != right->target)
		return left->target < right->target ? -1 : 1;
	return (left->until_ticks > right->until_ticks) - (left->until_ticks < right->until_ticks);
}

/* Once for all threads of a process; the nearest ancestor first, and orphans' kin last. */
static int make_lineage(struct nm_descent *descent, uint32_t pid)
{
	struct nm_lineage *lineage = &descent->lineage;
	struct chain chain;
	if (lineage->pid == pid)
		return 0;
	lineage->pid = 0;
	lineage->count = 0;
	descent->visits++;
	int r = climb(descent, pid, &chain);
	for (size_t place = 1; r == 0 && place < chain.length; place++)
		r = offer_of_ancestor(descent, &chain, place);
	for (size_t place = 0; r == 0 && place < chain.length; place++)
		r = offer_of_companies(descent, &chain, place);
	if (r < 0)
		return r;
	if (lineage->count > 0)
		qsort(lineage->offers, lineage->count, sizeof(*lineage->offers), compare_offers);
	lineage->pid = pid;
	lineage->lives = chain.length > 0;
	if (lineage->lives)
		lineage->process = *link_of(descent, &chain, 0);
	return 0;
}

/* ---- birth ---- */

/* The first offer, in their order, that is of this target and goes until then, or of a later one.
 */
static size_t find_offer(struct nm_descent *descent, uint32_t target, uint64_t ticks)
{
	const struct nm_lineage *lineage = &descent->lineage;
	const struct nm_offer key = {.target = target, .until_ticks = ticks};
	size_t low = 0;
	size_t high = lineage->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		descent->steps++;
		if (compare_offers(&lineage->offers[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct nm_ledger_entry *offered(struct nm_descent *descent,
					     const struct nm_candidate *candidate, uint32_t target)
{
	const struct nm_lineage *lineage = &descent->lineage;
	size_t i = find_offer(descent, target, candidate->stat.start_ticks);
	return i < lineage->count && lineage->offers[i].target == target ? lineage->offers[i].terms
									 : NULL;
}

/* Another thread of the leased process. */
static const struct nm_ledger_entry *born_beside(struct nm_descent *descent,
						 const struct nm_candidate *candidate,
						 const struct nm_family *family)
{
	uint64_t start_ticks = candidate->stat.start_ticks;
	const struct nm_ledger_entry *terms = nm_descent_latest(descent, family, start_ticks);
	return terms && is_leased_process(terms, &descent->lineage.process) &&
			       nm_descent_last_birth(terms) >= start_ticks
		       ? terms
		       : NULL;
}

static const struct nm_group *group_beside(const struct nm_descent *descent,
					   const struct nm_candidate *candidate)
{
	const struct nm_lineage *lineage = &descent->lineage;
	return lineage->lives && candidate->tid != candidate->pid ? lineage->process.own : NULL;
}

static const struct nm_ledger_entry *born_with_target(struct nm_descent *descent,
						      const struct nm_candidate *candidate)
{
	const struct nm_group *group = group_beside(descent, candidate);
	const struct nm_family *family =
		group ? nm_descent_family(descent, group, candidate->target) : NULL;
	const struct nm_ledger_entry *terms =
		family ? born_beside(descent, candidate, family) : NULL;
	return terms ? terms : offered(descent, candidate, candidate->target);
}

/* Its cpuset may have left it a part of a target. */
static const struct nm_ledger_entry *born_with_part(struct nm_descent *descent,
						    struct nm_candidate *candidate)
{
	const struct nm_lineage *lineage = &descent->lineage;
	const struct nm_group *group = group_beside(descent, candidate);
	for (size_t i = 0; group && i < group->count; i++) {
		const struct nm_ledger_entry *terms =
			born_beside(descent, candidate, &group->families[i]);
		if (terms && nm_descent_carries(descent, candidate, group->families[i].target))
			return terms;
	}
	for (size_t i = 0; i < lineage->count;) {
		uint32_t target = lineage->offers[i].target;
		const struct nm_ledger_entry *terms = offered(descent, candidate, target);
		if (terms && nm_descent_carries(descent, candidate, target))
			return terms;
		i = find_offer(descent, target + 1, 0);
	}
	return NULL;
}

int nm_descent_by_birth(struct nm_descent *descent, struct nm_candidate *candidate,
			const struct nm_ledger_entry **ret)
{
	const struct nm_ledger_entry *terms = NULL;
	int r = make_lineage(descent, candidate->pid);
	if (r < 0)
		return r;
	if (candidate->target != NM_NO_TARGET)
		terms = born_with_target(descent, candidate);
	*ret = terms ? terms : born_with_part(descent, candidate);
	return 0;
}

/* ---- exec ---- */

static bool thread_lives(struct nm_platform *platform, const struct nm_ledger_entry *terms)
{
	int directory = nm_mask_open(platform, terms->pid, terms->tid, terms->start_ticks, NULL);
	if (directory < 0)
		return false;
	platform->ops->close(platform, directory);
	return true;
}

struct sibling_search {
	struct nm_descent *descent;
	uint32_t pid;
	uint64_t oldest_ticks;
};

static int look_at_sibling(void *context, const char *name)
{
	struct sibling_search *search = context;
	struct nm_platform *platform = search->descent->platform;
	struct nm_proc_stat stat;
	uint32_t tid;
	if (sscanf(name, "%" SCNu32, &tid) != 1 || tid == search->pid)
		return 0;
	search->descent->steps += 4 * NM_STEPS_CALL;
	int directory = nm_proc_open_thread(platform, search->pid, tid);
	if (directory < 0)
		return 0;
	int r = nm_proc_read_stat(platform, directory, &stat);
	platform->ops->close(platform, directory);
	if (r == 0 && stat.start_ticks < search->oldest_ticks)
		search->oldest_ticks = stat.start_ticks;
	return 0;
}

/* The start of the oldest thread beside the leader; UINT64_MAX: there is none. */
static uint64_t oldest_sibling(struct nm_descent *descent, uint32_t pid)
{
	struct sibling_search search = {
		.descent = descent, .pid = pid, .oldest_ticks = UINT64_MAX};
	char path[64];
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", pid);
	(void)descent->platform->ops->list_directory(descent->platform, NM_ROOT, path,
						     look_at_sibling, &search);
	return search.oldest_ticks;
}

/*
 * The leader has the same start after an exec by another thread, but is that thread: it has run for
 * at least as long.
 */
static bool may_have_taken_over(const struct nm_ledger_entry *terms,
				const struct nm_candidate *leader)
{
	return terms->tid != terms->pid && !terms->ended_ticks &&
	       leader->stat.start_ticks <= terms->start_ticks &&
	       leader->stat.ran_ticks >= terms->ran_ticks;
}

/*
 * Where the stack's place is not shown (ptrace(2)), the leased thread must be gone and no thread
 * left that is older than the lease, as an exec ends all others; whoever cannot be told from a
 * leader that was pinned keeps his choice. *oldest_ticks: of its siblings, 0 until it is asked for.
 */
static bool took_over(struct nm_descent *descent, const struct nm_ledger_entry *terms,
		      const struct nm_candidate *leader, uint64_t *oldest_ticks)
{
	if (!may_have_taken_over(terms, leader))
		return false;
	if (terms->start_stack && leader->stat.start_stack)
		return terms->start_stack != leader->stat.start_stack;
	descent->steps += 4 * NM_STEPS_CALL;
	if (thread_lives(descent->platform, terms))
		return false;
	if (!*oldest_ticks)
		*oldest_ticks = oldest_sibling(descent, terms->pid);
	return *oldest_ticks > terms->given_ticks;
}

const struct nm_ledger_entry *nm_descent_by_exec(struct nm_descent *descent,
						 struct nm_candidate *candidate)
{
	const struct nm_ledger_entry key = {.pid = candidate->pid};
	uint64_t oldest_ticks = 0;
	if (candidate->tid != candidate->pid)
		return NULL;
	const struct nm_group *group = nm_descent_group(descent, NM_BY_PID, &key);
	for (size_t i = 0; group && i < group->count; i++) {
		const struct nm_family *family = &group->families[i];
		if (!nm_descent_carries(descent, candidate, family->target))
			continue;
		for (size_t line = family->count; line-- > 0; descent->steps++)
			if (took_over(descent, family->lines[line], candidate, &oldest_ticks))
				return family->lines[line];
	}
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/* The rules of descent: what proves that a thread's affinity is an inherited one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "descent_internal.h"
#include "mask.h"

#define MOST_ANCESTORS 64

/* ---- processes ---- */

static int fill_process(struct nm_platform *platform, struct nm_descent_process *process)
{
	struct nm_proc_stat stat;
	struct nm_proc_status status;
	int directory = nm_proc_open_thread(platform, process->pid, process->pid);
	if (directory < 0)
		return directory;
	int r = nm_proc_read_stat(platform, directory, &stat);
	if (r == 0)
		r = nm_proc_read_status(platform, directory, &status);
	if (r == 0)
		(void)nm_proc_read_cgroup(platform, directory, &process->cgroup);
	platform->ops->close(platform, directory);
	if (r < 0)
		return r;
	process->ppid = stat.ppid;
	process->session = stat.session;
	process->start_ticks = stat.start_ticks;
	process->uid = status.uid;
	process->adopts = status.ns_pid == 1 || strcmp(stat.comm, "systemd") == 0;
	return 0;
}

/* The index of what is known of it; -ENOMEM. */
static int find_process(struct nm_descent *descent, uint32_t pid)
{
	uint32_t index = nm_tidmap_get(descent->process_of, pid);
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
	process->gone = fill_process(descent->platform, process) < 0;
	return (int)descent->nr_processes++;
}

/* The candidate's process, its parent, and so on, for as far as they live. */
struct chain {
	uint32_t processes[MOST_ANCESTORS]; /* by index */
	size_t length;
	bool cut; /* there are more */
};

static const struct nm_descent_process *link_of(const struct nm_descent *descent,
						const struct chain *chain, size_t i)
{
	return &descent->processes[chain->processes[i]];
}

static void climb(struct nm_descent *descent, uint32_t pid, struct chain *ret)
{
	uint64_t child_start_ticks = UINT64_MAX;
	ret->length = 0;
	ret->cut = true;
	while (ret->length < MOST_ANCESTORS) {
		int index = find_process(descent, pid);
		const struct nm_descent_process *process =
			index < 0 ? NULL : &descent->processes[index];
		/* An ancestor that ended while we climb leaves an orphan, and its number may go on.
		 */
		if (!process || process->gone || process->start_ticks > child_start_ticks)
			break;
		ret->processes[ret->length++] = (uint32_t)index;
		child_start_ticks = process->start_ticks;
		pid = process->ppid;
		if (pid <= 1)
			break;
		ret->cut = ret->length == MOST_ANCESTORS;
	}
	ret->cut = ret->length == MOST_ANCESTORS && pid > 1;
}

/* ---- birth ---- */

/* The leased process itself, not a later one under its number: it is older than its threads. */
static bool is_leased_process(const struct nm_ledger_entry *terms,
			      const struct nm_descent_process *process)
{
	return process->pid == terms->pid && process->start_ticks <= terms->start_ticks;
}

/* Of the process at this place in the chain, under whose lease all below it were born. */
static const struct nm_ledger_entry *born_of(struct nm_descent *descent,
					     struct nm_candidate *candidate,
					     const struct chain *chain, size_t place)
{
	const struct nm_descent_process *process = link_of(descent, chain, place);
	uint64_t first_ticks = place ? link_of(descent, chain, place - 1)->start_ticks
				     : candidate->stat.start_ticks;
	const struct nm_ledger_entry *best = NULL;
	for (uint32_t i = nm_tidmap_get(descent->family_of, process->pid); i != NM_TIDMAP_NONE;
	     i = descent->families[i].next_of_pid) {
		const struct nm_ledger_entry *terms = nm_descent_pick(
			descent, &descent->families[i], first_ticks, candidate->stat.start_ticks);
		if (!terms || !is_leased_process(terms, process) ||
		    !nm_descent_carries(candidate, terms))
			continue;
		/* One that stands is likelier, and then the newest. */
		bool stands = !terms->ended_ticks;
		if (!best || (stands && best->ended_ticks) ||
		    (stands == !best->ended_ticks && terms->given_ticks > best->given_ticks))
			best = terms;
	}
	return best;
}

/* ---- orphans ---- */

/* The root group holds unrelated processes: it says nothing about descent. */
static bool is_kin(const struct nm_ledger_entry *terms, const struct nm_descent_process *process)
{
	if (terms->uid != NM_LEDGER_NO_UID && process->uid != terms->uid)
		return false;
	if (process->session && process->session == terms->session)
		return true;
	const char *cgroup = process->cgroup;
	return cgroup && cgroup[0] && strcmp(cgroup, "/") != 0 &&
	       strcmp(cgroup, terms->cgroup) == 0;
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

static bool is_orphan_under(const struct nm_descent *descent, const struct chain *chain,
			    const struct nm_ledger_entry *terms)
{
	bool kin = false;
	for (size_t i = 0; i < chain->length; i++) {
		const struct nm_descent_process *process = link_of(descent, chain, i);
		if (!nm_descent_born_under(terms, process->start_ticks))
			return kin && adopted_by(process, link_of(descent, chain, i - 1));
		kin = kin || is_kin(terms, process);
	}
	return kin && !chain->cut;
}

/* Another user's process proves nothing by its company. */
static bool may_be_kin(const struct nm_descent *descent, const struct chain *chain,
		       const struct nm_ledger_entry *terms)
{
	uint32_t uid = link_of(descent, chain, 0)->uid;
	if (terms->uid != NM_LEDGER_NO_UID && terms->uid != uid)
		return false;
	for (size_t i = 0; i < chain->length; i++)
		if (is_kin(terms, link_of(descent, chain, i)))
			return true;
	return false;
}

static const struct nm_ledger_entry *orphan_of(struct nm_descent *descent,
					       struct nm_candidate *candidate,
					       const struct chain *chain,
					       const struct nm_family *family)
{
	uint64_t last_ticks = candidate->stat.start_ticks;
	if (!may_be_kin(descent, chain, &descent->lines[family->first]))
		return NULL;
	for (size_t i = chain->length; i-- > 0;) {
		const struct nm_ledger_entry *terms = nm_descent_pick(
			descent, family, link_of(descent, chain, i)->start_ticks, last_ticks);
		if (terms && is_orphan_under(descent, chain, terms) &&
		    nm_descent_carries(candidate, terms))
			return terms;
	}
	return NULL;
}

const struct nm_ledger_entry *nm_descent_by_birth(struct nm_descent *descent,
						  struct nm_candidate *candidate)
{
	struct chain chain;
	climb(descent, candidate->pid, &chain);
	for (size_t place = candidate->tid == candidate->pid; place < chain.length; place++) {
		const struct nm_ledger_entry *terms = born_of(descent, candidate, &chain, place);
		if (terms)
			return terms;
	}
	for (size_t i = descent->nr_families; chain.length > 0 && i-- > 0;) {
		const struct nm_ledger_entry *terms =
			orphan_of(descent, candidate, &chain, &descent->families[i]);
		if (terms)
			return terms;
	}
	return NULL;
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
	struct nm_platform *platform;
	uint32_t pid;
	uint64_t before_ticks;
};

/* -EEXIST ends the search. */
static int is_older_sibling(void *context, const char *name)
{
	const struct sibling_search *search = context;
	struct nm_proc_stat stat;
	uint32_t tid;
	if (sscanf(name, "%" SCNu32, &tid) != 1 || tid == search->pid)
		return 0;
	int directory = nm_proc_open_thread(search->platform, search->pid, tid);
	if (directory < 0)
		return 0;
	int r = nm_proc_read_stat(search->platform, directory, &stat);
	search->platform->ops->close(search->platform, directory);
	return r == 0 && stat.start_ticks <= search->before_ticks ? -EEXIST : 0;
}

/* An exec ends all other threads: one that is older than the lease proves that there was none. */
static bool has_older_sibling(struct nm_platform *platform, const struct nm_ledger_entry *terms)
{
	struct sibling_search search = {
		.platform = platform, .pid = terms->pid, .before_ticks = terms->given_ticks};
	char path[64];
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", terms->pid);
	return platform->ops->list_directory(platform, NM_ROOT, path, is_older_sibling, &search) ==
	       -EEXIST;
}

/*
 * The leader has the same start after an exec by another thread, but is that thread: it has run for
 * at least as long. Where the stack's place is not shown (ptrace(2)), the leased thread must be
 * gone and no older one left; whoever cannot be told from a leader that was pinned keeps his
 * choice.
 */
static bool took_over(struct nm_platform *platform, const struct nm_ledger_entry *terms,
		      const struct nm_candidate *leader)
{
	if (terms->tid == terms->pid || terms->ended_ticks ||
	    leader->stat.start_ticks > terms->start_ticks ||
	    leader->stat.ran_ticks < terms->ran_ticks)
		return false;
	if (terms->start_stack && leader->stat.start_stack)
		return terms->start_stack != leader->stat.start_stack;
	return !thread_lives(platform, terms) && !has_older_sibling(platform, terms);
}

const struct nm_ledger_entry *nm_descent_by_exec(struct nm_descent *descent,
						 struct nm_candidate *candidate)
{
	if (candidate->tid != candidate->pid)
		return NULL;
	for (uint32_t i = nm_tidmap_get(descent->family_of, candidate->pid); i != NM_TIDMAP_NONE;
	     i = descent->families[i].next_of_pid) {
		const struct nm_family *family = &descent->families[i];
		if (!nm_descent_carries(candidate, &descent->lines[family->first]))
			continue;
		for (size_t line = (size_t)family->first + family->count; line-- > family->first;)
			if (took_over(descent->platform, &descent->lines[line], candidate))
				return &descent->lines[line];
	}
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * The rules of descent: what proves that a thread's affinity is an inherited one. Lines are found by
 * process, session or cgroup, and within these by target and time, so that what a thread is held against
 * does not grow with what others lease; each process is read once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "descent_internal.h"

#define MOST_ANCESTORS 64
#define GRACE_S 2

static uint64_t grace_ticks(void)
{
	return GRACE_S * (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t nm_descent_last_birth(const struct nm_ledger_entry *terms)
{
	if (!terms->ended_ticks || terms->ended_ticks > UINT64_MAX - grace_ticks())
		return UINT64_MAX;
	return terms->ended_ticks + grace_ticks();
}

bool nm_descent_born_under(const struct nm_ledger_entry *terms, uint64_t start_ticks)
{
	return start_ticks >= terms->given_ticks && start_ticks <= nm_descent_last_birth(terms);
}

/* ---- lines ---- */

static int compare_numbers(uint64_t left, uint64_t right)
{
	return (left > right) - (left < right);
}

static int compare_threads(const void *a, const void *b)
{
	const struct nm_ledger_entry *left = a;
	const struct nm_ledger_entry *right = b;
	int order = compare_numbers(left->tid, right->tid);
	return order ? order : compare_numbers(left->start_ticks, right->start_ticks);
}

static int compare_keys(const struct nm_candidate_class_key *left,
			const struct nm_candidate_class_key *right)
{
	int order = compare_numbers(left->by, right->by);
	if (order == 0)
		order = compare_numbers(left->id, right->id);
	if (order == 0)
		order = compare_numbers(left->uid, right->uid);
	return order ? order : compare_numbers(left->target, right->target);
}

static int compare_candidate_classes(const void *a, const void *b)
{
	const struct nm_candidate_class *left = a;
	const struct nm_candidate_class *right = b;
	int order = compare_keys(&left->key, &right->key);
	return order ? order : compare_numbers(left->terms->given_ticks, right->terms->given_ticks);
}

static int compare_targets(const void *a, const void *b)
{
	return hwloc_bitmap_compare(*(hwloc_const_bitmap_t const *)a,
				    *(hwloc_const_bitmap_t const *)b);
}

static void list_targets(struct nm_descent *descent)
{
	hwloc_const_bitmap_t *targets = descent->targets;
	size_t count = 0;
	for (size_t i = 0; i < descent->nr_lines; i++)
		targets[i] = descent->lines[i].target;
	qsort(targets, descent->nr_lines, sizeof(*targets), compare_targets);
	for (size_t i = 0; i < descent->nr_lines; i++)
		if (count == 0 || !hwloc_bitmap_isequal(targets[i], targets[count - 1]))
			targets[count++] = targets[i];
	descent->nr_targets = count;
}

static uint32_t index_of_target(const struct nm_descent *descent, hwloc_const_bitmap_t target)
{
	const hwloc_const_bitmap_t *found = bsearch(&target, descent->targets, descent->nr_targets,
						    sizeof(*descent->targets), compare_targets);
	return (uint32_t)(found - descent->targets);
}

static void add_candidate_class(struct nm_descent *descent, const struct nm_ledger_entry *terms,
				enum nm_candidate_class_by by, uint64_t id, uint32_t target)
{
	if (id)
		descent->kin[descent->nr_candidate_classes++] = (struct nm_candidate_class){
			.key = {.by = by,
				.uid = by == NM_KIN_PROCESS ? 0 : terms->uid,
				.id = id,
				.target = target},
			.terms = terms,
		};
}

void nm_kinship_index(struct nm_descent *descent)
{
	qsort(descent->lines, descent->nr_lines, sizeof(*descent->lines), compare_threads);
	list_targets(descent);
	descent->nr_candidate_classes = 0;
	for (size_t i = 0; i < descent->nr_lines; i++) {
		const struct nm_ledger_entry *terms = &descent->lines[i];
		uint32_t target = index_of_target(descent, terms->target);
		add_candidate_class(descent, terms, NM_KIN_PROCESS, terms->pid, target);
		add_candidate_class(descent, terms, NM_KIN_SESSION, terms->session, target);
		add_candidate_class(descent, terms, NM_KIN_CGROUP, terms->cgroup, target);
	}
	qsort(descent->kin, descent->nr_candidate_classes, sizeof(*descent->kin),
	      compare_candidate_classes);
	for (size_t i = 0; i < descent->nr_candidate_classes; i++) {
		struct nm_candidate_class *kin = &descent->kin[i];
		const struct nm_candidate_class *before = i ? kin - 1 : NULL;
		bool same = before && compare_keys(&before->key, &kin->key) == 0;
		kin->furthest = same && nm_descent_last_birth(before->furthest) >
						nm_descent_last_birth(kin->terms)
					? before->furthest
					: kin->terms;
	}
}

bool nm_kinship_has_line(const struct nm_descent *descent, uint32_t tid, uint64_t start_ticks)
{
	const struct nm_ledger_entry key = {.tid = tid, .start_ticks = start_ticks};
	return bsearch(&key, descent->lines, descent->nr_lines, sizeof(*descent->lines),
		       compare_threads) != NULL;
}

/* How many lines come before the first one of this key that was given later. */
static size_t count_until(struct nm_descent *descent, const struct nm_candidate_class_key *key,
			  uint64_t until_ticks)
{
	size_t low = 0;
	size_t high = descent->nr_candidate_classes;
	descent->steps += NM_STEPS_LOOKUP;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct nm_candidate_class *kin = &descent->kin[middle];
		int order = compare_keys(&kin->key, key);
		if (order < 0 || (order == 0 && kin->terms->given_ticks <= until_ticks))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of the lines of this key that were given by then, the one that goes furthest; or NULL. */
static const struct nm_ledger_entry *find_terms(struct nm_descent *descent,
						const struct nm_candidate_class_key *key,
						uint64_t until_ticks)
{
	size_t count = count_until(descent, key, until_ticks);
	const struct nm_candidate_class *kin = count ? &descent->kin[count - 1] : NULL;
	return kin && compare_keys(&kin->key, key) == 0 ? kin->furthest : NULL;
}

/* ---- processes ---- */

static int fill_process(struct nm_descent *descent, struct nm_descent_process *process)
{
	struct nm_platform *platform = descent->platform;
	nm_autofree char *cgroup = NULL;
	struct nm_proc_stat stat;
	struct nm_proc_status status;
	descent->steps += 5 * NM_STEPS_CALL;
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
	process->cgroup = nm_ledger_cgroup(cgroup);
	process->adopts = status.ns_pid == 1 || strcmp(stat.comm, "systemd") == 0;
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
 * a parent that is not of the child's session, unless the child has left for one of its own.
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

/* ---- birth ---- */

/* The leased process itself, not a later one under its number: it is older than its threads. */
static bool is_leased_process(const struct nm_ledger_entry *terms,
			      const struct nm_descent_process *process)
{
	return process->pid == terms->pid && process->start_ticks <= terms->start_ticks;
}

/* Earlier offers come before later ones, as far as they go. */
static int offer(struct nm_descent *descent, const struct nm_ledger_entry *terms)
{
	struct nm_offers *offers = &descent->offers;
	if (offers->count > 0 && nm_descent_last_birth(offers->terms[offers->count - 1]) >=
					 nm_descent_last_birth(terms))
		return 0;
	int r = nm_reserve((void **)&offers->terms, &offers->capacity, offers->count,
			   sizeof(*offers->terms));
	if (r == 0)
		offers->terms[offers->count++] = terms;
	return r;
}

/* By the process at this place of the chain, under whose leases those below it were created. */
static int offer_of_ancestor(struct nm_descent *descent, const struct chain *chain, size_t place)
{
	const struct nm_descent_process *process = link_of(descent, chain, place);
	const struct nm_candidate_class_key key = {
		.by = NM_KIN_PROCESS, .id = process->pid, .target = descent->offers.target};
	const struct nm_ledger_entry *terms =
		find_terms(descent, &key, link_of(descent, chain, place - 1)->start_ticks);
	return terms && is_leased_process(terms, process) ? offer(descent, terms) : 0;
}

/*
 * By lines of the same session or cgroup as the chain from this place on: an orphan belongs to it,
 * was created under the lease, and so were its ancestors up to one that an older process adopted.
 */
static int offer_of_company(struct nm_descent *descent, const struct chain *chain, size_t place,
			    const struct nm_candidate_class_key *key)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < chain->nr_adoptions; i++) {
		size_t adopter = chain->adoptions[i];
		if (adopter <= place)
			continue;
		const struct nm_ledger_entry *terms =
			find_terms(descent, key, link_of(descent, chain, adopter - 1)->start_ticks);
		if (terms && (adopter == chain->length ||
			      terms->given_ticks > link_of(descent, chain, adopter)->start_ticks))
			r = offer(descent, terms);
	}
	return r;
}

/* Another user's process proves nothing by its company; nor is the same one asked for again. */
static int offer_of_companies(struct nm_descent *descent, const struct chain *chain, size_t place)
{
	const struct nm_descent_process *process = link_of(descent, chain, place);
	const struct nm_descent_process *below =
		place ? link_of(descent, chain, place - 1) : &(struct nm_descent_process){0};
	struct nm_candidate_class_key key = {.uid = process->uid, .target = descent->offers.target};
	int r = 0;
	if (process->uid != link_of(descent, chain, 0)->uid)
		return 0;
	key.by = NM_KIN_SESSION;
	key.id = process->session;
	if (key.id && (key.id != below->session || key.uid != below->uid))
		r = offer_of_company(descent, chain, place, &key);
	key.by = NM_KIN_CGROUP;
	key.id = process->cgroup;
	if (r == 0 && key.id && (key.id != below->cgroup || key.uid != below->uid))
		r = offer_of_company(descent, chain, place, &key);
	return r;
}

/* The nearest ancestor first, and orphans' kin last. */
static int make_offers(struct nm_descent *descent, uint32_t pid, uint32_t target)
{
	struct nm_offers *offers = &descent->offers;
	struct chain chain;
	if (offers->pid == pid && offers->target == target)
		return 0;
	offers->pid = 0;
	offers->target = target;
	offers->count = 0;
	int r = climb(descent, pid, &chain);
	for (size_t place = 1; r == 0 && place < chain.length; place++)
		r = offer_of_ancestor(descent, &chain, place);
	for (size_t place = 0; r == 0 && place < chain.length; place++)
		r = offer_of_companies(descent, &chain, place);
	if (r == 0)
		offers->pid = pid;
	return r;
}

/* Another thread of the leased process; -ENOMEM. */
static int find_beside(struct nm_descent *descent, const struct nm_candidate *candidate,
		       uint32_t target, const struct nm_ledger_entry **ret)
{
	const struct nm_candidate_class_key key = {
		.by = NM_KIN_PROCESS, .id = candidate->pid, .target = target};
	uint64_t start_ticks = candidate->stat.start_ticks;
	if (candidate->tid == candidate->pid)
		return 0;
	const struct nm_ledger_entry *terms = find_terms(descent, &key, start_ticks);
	if (!terms || nm_descent_last_birth(terms) < start_ticks)
		return 0;
	int index = find_process(descent, candidate->pid);
	if (index < 0)
		return index;
	const struct nm_descent_process *process = &descent->processes[index];
	if (!process->gone && is_leased_process(terms, process))
		*ret = terms;
	return 0;
}

int nm_kinship_by_birth(struct nm_descent *descent, const struct nm_candidate *candidate,
			uint32_t target, const struct nm_ledger_entry **ret)
{
	const struct nm_offers *offers = &descent->offers;
	*ret = NULL;
	int r = find_beside(descent, candidate, target, ret);
	if (r < 0 || *ret)
		return r;
	r = make_offers(descent, candidate->pid, target);
	for (size_t i = 0; r == 0 && !*ret && i < offers->count; i++)
		if (nm_descent_last_birth(offers->terms[i]) >= candidate->stat.start_ticks)
			*ret = offers->terms[i];
	return r;
}

/* ---- exec ---- */

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
	search->descent->steps += 3 * NM_STEPS_CALL;
	int directory = nm_proc_open_thread(platform, search->pid, tid);
	if (directory < 0)
		return 0;
	int r = nm_proc_read_stat(platform, directory, &stat);
	platform->ops->close(platform, directory);
	if (r == 0 && stat.start_ticks < search->oldest_ticks)
		search->oldest_ticks = stat.start_ticks;
	return 0;
}

/* The start of the oldest thread beside the leader, looked for once; UINT64_MAX: there is none. */
static uint64_t oldest_sibling(struct nm_descent *descent, uint32_t pid)
{
	struct sibling_search search = {
		.descent = descent, .pid = pid, .oldest_ticks = UINT64_MAX};
	int index = find_process(descent, pid);
	char path[64];
	if (index < 0) /* then nothing is proved */
		return 0;
	struct nm_descent_process *process = &descent->processes[index];
	if (!process->oldest_sibling_ticks) {
		snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", pid);
		(void)descent->platform->ops->list_directory(descent->platform, NM_ROOT, path,
							     look_at_sibling, &search);
		process->oldest_sibling_ticks = search.oldest_ticks;
	}
	return process->oldest_sibling_ticks;
}

/*
 * The leader has the same start after an exec by another thread, but is that thread: it has run for
 * at least as long. It may be older than the lease.
 */
static bool may_have_taken_over(const struct nm_ledger_entry *terms,
				const struct nm_candidate *leader)
{
	return terms->tid != terms->pid && !terms->ended_ticks &&
	       leader->stat.start_ticks <= terms->start_ticks &&
	       leader->stat.ran_ticks >= terms->ran_ticks;
}

/*
 * If the address of the stack is hidden (ptrace(2)), no thread may be left that is older than the
 * lease, as an exec ends all others; a leader that may have been pinned by its owner stays as it
 * is.
 */
bool nm_kinship_took_over(struct nm_descent *descent, const struct nm_ledger_entry *terms,
			  const struct nm_candidate *leader)
{
	if (!may_have_taken_over(terms, leader))
		return false;
	if (terms->start_stack && leader->stat.start_stack)
		return terms->start_stack != leader->stat.start_stack;
	return oldest_sibling(descent, terms->pid) > terms->given_ticks;
}

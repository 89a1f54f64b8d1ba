/* SPDX-License-Identifier: MIT */
#include "heirs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mask.h"

#define MOST_ANCESTORS 64
#define GRACE_S 2

/* A thread that may be an heir. */
struct candidate {
	uint32_t pid, tid;
	int directory;
	struct nm_proc_stat stat;
};

static bool thread_lives(struct nm_platform *platform, const struct nm_ledger_entry *terms)
{
	int directory = nm_mask_open(platform, terms->pid, terms->tid, terms->start_ticks, NULL);
	if (directory < 0)
		return false;
	platform->ops->close(platform, directory);
	return true;
}

bool nm_heirs_born_under(const struct nm_ledger_entry *terms, uint64_t start_ticks)
{
	uint64_t grace_ticks = GRACE_S * (uint64_t)sysconf(_SC_CLK_TCK);
	if (start_ticks < terms->given_ticks)
		return false;
	return !terms->ended_ticks || terms->ended_ticks > UINT64_MAX - grace_ticks ||
	       start_ticks <= terms->ended_ticks + grace_ticks;
}

/* The leader has the same start after an exec by another thread, but a new program. */
static bool took_over(struct nm_platform *platform, const struct nm_ledger_entry *terms,
		      const struct candidate *candidate)
{
	if (candidate->tid != candidate->pid || terms->tid == terms->pid || terms->ended_ticks)
		return false;
	if (terms->start_stack && candidate->stat.start_stack)
		return terms->start_stack != candidate->stat.start_stack;
	return !thread_lives(platform, terms);
}

/* ---- descent ---- */

/* The leased process itself, not a later one under its number: it is older than its threads. */
static bool is_leased_process(const struct nm_ledger_entry *terms, uint32_t pid,
			      const struct nm_proc_stat *stat)
{
	return pid == terms->pid && stat->start_ticks <= terms->start_ticks;
}

/* ret_cgroup: NULL where it is not told. */
static int read_process(struct nm_platform *platform, uint32_t pid, struct nm_proc_stat *ret,
			struct nm_proc_status *ret_status, char **ret_cgroup)
{
	int directory = nm_proc_open_thread(platform, pid, pid);
	if (directory < 0)
		return directory;
	int r = nm_proc_read_stat(platform, directory, ret);
	if (r == 0)
		r = nm_proc_read_status(platform, directory, ret_status);
	if (r == 0)
		(void)nm_proc_read_cgroup(platform, directory, ret_cgroup);
	platform->ops->close(platform, directory);
	return r;
}

/* The root group holds unrelated processes: it says nothing about descent. */
static bool is_kin(const struct nm_ledger_entry *terms, const struct nm_proc_stat *stat,
		   const char *cgroup)
{
	if (stat->session && stat->session == terms->session)
		return true;
	return cgroup && cgroup[0] && strcmp(cgroup, "/") != 0 &&
	       strcmp(cgroup, terms->cgroup) == 0;
}

/*
 * Did the older process `parent` adopt this child, rather than bear it? Inits adopt; so does
 * whoever is not of the child's session, unless the child has left for one of its own.
 */
static bool adopted_by(const struct nm_proc_stat *parent, const struct nm_proc_status *status,
		       uint32_t child_pid, const struct nm_proc_stat *child)
{
	if (status->ns_pid == 1 || strcmp(parent->comm, "systemd") == 0)
		return true;
	return child->session != child_pid && child->session != parent->session;
}

static bool descends(struct nm_platform *platform, const struct nm_ledger_entry *terms,
		     uint32_t pid)
{
	struct nm_proc_stat child = {0};
	uint32_t child_pid = 0;
	bool kin = false;

	for (int step = 0; step < MOST_ANCESTORS; step++) {
		nm_autofree char *cgroup = NULL;
		struct nm_proc_stat stat;
		struct nm_proc_status status;
		/* An ancestor that ends while we climb leaves an orphan. */
		if (read_process(platform, pid, &stat, &status, &cgroup) != 0)
			return kin;
		if (is_leased_process(terms, pid, &stat))
			return true;
		if (!nm_heirs_born_under(terms, stat.start_ticks))
			return kin && adopted_by(&stat, &status, child_pid, &child);
		kin = kin || is_kin(terms, &stat, cgroup);
		child = stat;
		child_pid = pid;
		pid = stat.ppid;
		if (pid <= 1)
			return kin;
	}
	return false;
}

static bool of_leased_process(struct nm_platform *platform, const struct nm_ledger_entry *terms,
			      const struct candidate *candidate)
{
	struct nm_proc_stat leader;
	if (candidate->pid != terms->pid)
		return false;
	if (candidate->tid == candidate->pid)
		return is_leased_process(terms, candidate->pid, &candidate->stat);
	return nm_proc_stat_of(platform, candidate->pid, &leader) == 0 &&
	       is_leased_process(terms, candidate->pid, &leader);
}

static bool inherited(const struct nm_heirs_search *search, const struct nm_ledger_entry *terms,
		      const struct candidate *candidate, hwloc_const_bitmap_t current)
{
	struct nm_platform *platform = search->platform;
	const struct nm_proc_stat *stat = &candidate->stat;
	if (candidate->tid == terms->tid && stat->start_ticks == terms->start_ticks)
		return false;
	if (nm_mask_judge(platform, candidate->directory, terms, current) != NM_MASK_OURS)
		return false;
	bool born = stat->start_ticks >= search->born_since &&
		    nm_heirs_born_under(terms, stat->start_ticks);
	if (of_leased_process(platform, terms, candidate))
		return born || took_over(platform, terms, candidate);
	return born && descends(platform, terms, candidate->pid);
}

/* ---- the search ---- */

/* Is the mask one of those we gave? Asked before anything else of a thread is read. */
static bool carries_target(const struct nm_heirs_search *search, hwloc_const_bitmap_t current)
{
	for (size_t i = 0; i < search->count; i++)
		if (hwloc_bitmap_isincluded(current, search->entries[i]->target))
			return true;
	return false;
}

static const struct nm_ledger_entry *newest_ancestor(const struct nm_heirs_search *search,
						     const struct candidate *candidate,
						     hwloc_const_bitmap_t current, bool ended)
{
	for (size_t i = search->count; i-- > 0;)
		if ((search->entries[i]->ended_ticks != 0) == ended &&
		    inherited(search, search->entries[i], candidate, current))
			return search->entries[i];
	return NULL;
}

/* Where several had the same target, one that stands is likelier, and then the newest. */
static const struct nm_ledger_entry *ancestor_of(const struct nm_heirs_search *search,
						 const struct candidate *candidate,
						 hwloc_const_bitmap_t current)
{
	const struct nm_ledger_entry *standing = newest_ancestor(search, candidate, current, false);
	return standing ? standing : newest_ancestor(search, candidate, current, true);
}

/* For want of something that may be had again; what is forbidden stays so, and would be asked for
 * ever. */
static int if_passing(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO ? error
											 : 0;
}

int nm_heirs_look_at(const struct nm_heirs_search *search, uint32_t pid, uint32_t tid)
{
	struct nm_platform *platform = search->platform;
	nm_autobitmap current = hwloc_bitmap_alloc();
	int r = current ? platform->ops->affinity_get(platform, (pid_t)tid, current) : -ENOMEM;
	if (r < 0 || !carries_target(search, current))
		return if_passing(r);

	struct candidate candidate = {
		.pid = pid, .tid = tid, .directory = nm_proc_open_thread(platform, pid, tid)};
	if (candidate.directory < 0)
		return if_passing(candidate.directory);
	const struct nm_ledger_entry *terms = NULL;
	r = nm_proc_read_stat(platform, candidate.directory, &candidate.stat);
	if (r == 0 && !(candidate.stat.flags & NM_PROC_KTHREAD))
		terms = ancestor_of(search, &candidate, current);
	platform->ops->close(platform, candidate.directory);
	if (!terms)
		return if_passing(r);
	search->each(search->context, terms, pid, tid, candidate.stat.start_ticks);
	return 1;
}

struct walk {
	const struct nm_heirs_search *search;
	uint32_t pid;
	int found;
	int error; /* of the last one that could not be looked at; 0: none */
};

static bool parse_id(const char *name, uint32_t *ret)
{
	char end;
	return sscanf(name, "%" SCNu32 "%c", ret, &end) == 1;
}

static int visit_thread(void *context, const char *name)
{
	struct walk *walk = context;
	uint32_t tid;
	int r = parse_id(name, &tid) ? nm_heirs_look_at(walk->search, walk->pid, tid) : 0;
	if (r < 0)
		walk->error = r;
	else
		walk->found += r;
	return 0;
}

static int visit_process(void *context, const char *name)
{
	struct walk *walk = context;
	struct nm_platform *platform = walk->search->platform;
	char path[64];
	if (!parse_id(name, &walk->pid))
		return 0;
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", walk->pid);
	/* A process that ended while we walk is no error. */
	int r = if_passing(
		platform->ops->list_directory(platform, NM_ROOT, path, visit_thread, walk));
	if (r < 0)
		walk->error = r;
	return 0;
}

int nm_heirs_scan(const struct nm_heirs_search *search)
{
	if (search->count == 0)
		return 0;
	struct walk walk = {.search = search};
	struct nm_platform *platform = search->platform;
	int r = platform->ops->list_directory(platform, NM_ROOT, "proc", visit_process, &walk);
	if (r == 0)
		r = walk.error;
	return r < 0 ? r : walk.found;
}

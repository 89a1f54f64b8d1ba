/* SPDX-License-Identifier: MIT */
/* Restores affinities after a crash, from the ledger alone. */
#include "actuator.h"

struct restore {
	struct nm_masks masks;
	const struct nm_ledger_contents *contents;
	struct nm_ledger *ledger; /* NULL: it cannot be written */
	struct nm_descent *descent;
	struct nm_progress progress;
	int returned;
	unsigned failed;
};

static void count_result(struct restore *restore, const struct nm_ledger_entry *terms, uint32_t pid,
			 uint32_t tid, enum nm_lease_event_kind kind, int r)
{
	const struct nm_descendant thread = {.pid = pid, .tid = tid};
	if (r == -ESRCH)
		return;
	restore->returned += r == 1;
	restore->failed += r < 0;
	if (r == 0)
		kind = NM_LEASE_FOREIGN;
	if (r == NM_MASK_UNCHANGED)
		kind = NM_LEASE_RESET;
	nm_progress_report(&restore->progress, terms, &thread, r < 0 ? NM_LEASE_FAILED : kind,
			   r < 0 ? r : 0);
}

/* Returns the index of the newest line with this start time, among line `i` and the older ones with
 * its thread number; NM_TIDMAP_NONE: there is none. */
static uint32_t find_line(const struct restore *restore, uint32_t i, uint64_t start_ticks)
{
	while (i != NM_TIDMAP_NONE && restore->contents->entries[i].start_ticks != start_ticks)
		i = restore->contents->earlier[i];
	return i;
}

static uint32_t find_newest(const struct restore *restore, uint32_t tid, uint64_t start_ticks)
{
	return find_line(restore, nm_tidmap_get(restore->contents->newest, tid), start_ticks);
}

/* Records the return, so that a restoration that is killed does not start from the beginning. */
static void note_return(const struct restore *restore, const struct nm_ledger_entry *terms)
{
	if (restore->ledger)
		(void)nm_ledger_return(restore->ledger, terms->tid, terms->start_ticks,
				       nm_proc_ticks_now(restore->masks.platform));
}

/* Returns whether the leader of the thread has a line of its own with the same target. */
static bool is_leader_leased(const struct restore *restore, const struct nm_ledger_entry *terms)
{
	const struct nm_ledger_contents *contents = restore->contents;
	for (uint32_t i = nm_tidmap_get(contents->newest, terms->pid); i != NM_TIDMAP_NONE;
	     i = contents->earlier[i])
		if (!contents->entries[i].ended_ticks &&
		    hwloc_bitmap_isequal(contents->entries[i].target, terms->target))
			return true;
	return false;
}

/* The thread of this line and of older ones is gone. It may continue under its leader's number,
 * with the target of one of them. */
static void follow_exec(struct restore *restore, uint32_t line)
{
	const uint64_t thread_ticks = restore->contents->entries[line].start_ticks;
	uint64_t start_ticks;
	int r = 0;
	for (uint32_t i = line; r == 0 && i != NM_TIDMAP_NONE;
	     i = find_line(restore, restore->contents->earlier[i], thread_ticks)) {
		const struct nm_ledger_entry *terms = &restore->contents->entries[i];
		r = nm_descent_follow_exec(restore->descent, terms,
					   is_leader_leased(restore, terms), &start_ticks);
		if (r > 0)
			r = nm_mask_restore(&restore->masks, terms, terms->pid, terms->pid,
					    start_ticks);
		if (r != 0 && r != NM_MASK_UNCHANGED)
			count_result(restore, terms, terms->pid, terms->pid, NM_LEASE_INHERITED, r);
	}
}

/*
 * Restores the affinity of the thread of this line, its newest. It carries the target of this line,
 * or of an older one if the daemon died after writing the line and before setting the affinity.
 */
static void restore_thread(struct restore *restore, uint32_t line)
{
	const struct nm_ledger_entry *terms = &restore->contents->entries[line];
	int r = 0;
	for (uint32_t i = line; r == 0 && i != NM_TIDMAP_NONE;
	     i = find_line(restore, restore->contents->earlier[i], terms->start_ticks))
		r = nm_mask_restore(&restore->masks, &restore->contents->entries[i], terms->pid,
				    terms->tid, terms->start_ticks);
	count_result(restore, terms, terms->pid, terms->tid, NM_LEASE_RETURNED, r);
	if (r > 0)
		note_return(restore, terms);
	if (r == -ESRCH)
		follow_exec(restore, line);
	nm_progress_note(&restore->progress);
}

static void restore_threads(struct restore *restore)
{
	for (uint32_t i = 0; i < restore->contents->count; i++) {
		const struct nm_ledger_entry *terms = &restore->contents->entries[i];
		if (!terms->ended_ticks &&
		    find_newest(restore, terms->tid, terms->start_ticks) == i)
			restore_thread(restore, i);
	}
}

/* A thread with a line of its own did not inherit its affinity. */
static int restore_found(void *context, const struct nm_descendant *found)
{
	struct restore *restore = context;
	if (find_newest(restore, found->tid, found->start_ticks) != NM_TIDMAP_NONE)
		return 0;
	int r = nm_mask_restore(&restore->masks, found->terms, found->pid, found->tid,
				found->start_ticks);
	if (r == NM_MASK_UNCHANGED) /* it has not inherited the target */
		r = 0;
	if (r != 0)
		count_result(restore, found->terms, found->pid, found->tid, NM_LEASE_INHERITED, r);
	return r < 0 && r != -ESRCH ? r : 1;
}

static int restore_inherited(struct restore *restore, const struct nm_ledger_entry *const *entries)
{
	struct nm_descent_walk walk = {.entries = entries,
				       .nr_entries = restore->contents->count,
				       .each = restore_found,
				       .context = restore,
				       .progress = &restore->progress};
	return nm_descent_search(restore->descent, &walk);
}

static int rewrite(int runtime_directory, const char *boot_id,
		   const struct nm_ledger_entry *const *kept, size_t count)
{
	if (count == 0)
		return nm_ledger_remove(runtime_directory);
	nm_auto(nm_ledger_freep) struct nm_ledger *ledger = NULL;
	int r = nm_ledger_open(runtime_directory, boot_id, &ledger);
	return r < 0 ? r : nm_ledger_compact(ledger, kept, count);
}

/* If an affinity could not be restored, all lines are kept, because processing a line again does no
 * harm. */
static int restore_contents(struct restore *restore, const struct nm_ledger_contents *contents,
			    int runtime_directory, const char *boot_id)
{
	nm_autofree const struct nm_ledger_entry **entries =
		nm_must(calloc(contents->count + 1, sizeof(*entries)));
	for (size_t i = 0; i < contents->count; i++)
		entries[i] = &contents->entries[i];
	restore->contents = contents;
	restore_threads(restore);
	int r = restore_inherited(restore, entries);
	if (r < 0)
		return r;
	return rewrite(runtime_directory, boot_id, entries, restore->failed ? contents->count : 0);
}

int nm_restore(struct nm_platform *platform, const struct nm_topology *topology,
	       int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
	       void *context, struct nm_restoration *ret)
{
	struct nm_ledger_contents contents;
	int r = nm_ledger_read(runtime_directory, boot_id, &contents);
	if (r < 0)
		return r;

	nm_auto(nm_cgroups_freep) struct nm_cgroups *cgroups = nm_cgroups_new(platform);
	struct restore restore = {
		.masks = {.platform = platform, .topology = topology, .cgroups = cgroups},
		.progress = {.platform = platform, .on_event = on_event, .context = context},
	};
	struct nm_restoration found = {
		.bad_lines = contents.bad_lines,
		.first_bad_line = contents.first_bad_line,
	};
	restore.descent = nm_descent_new(&restore.masks);
	/*
	 * The restoration continues even if the damaged file cannot be kept for the administrator.
	 */
	if (found.bad_lines > 0)
		found.kept = nm_ledger_keep_damaged(runtime_directory);
	if (contents.count > 0)
		(void)nm_ledger_open(runtime_directory, boot_id, &restore.ledger);
	r = restore_contents(&restore, &contents, runtime_directory, boot_id);
	nm_descent_free(restore.descent);
	nm_ledger_free(restore.ledger);
	nm_ledger_contents_clear(&contents);
	found.failed = restore.failed;
	*ret = found;
	return r < 0 ? r : restore.returned;
}

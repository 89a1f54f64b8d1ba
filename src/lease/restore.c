/* SPDX-License-Identifier: MIT */
/* Restores affinities after a crash, from the ledger alone. */
#include "actuator.h"

struct restore {
	struct nm_masks masks;
	const struct nm_ledger_entry *
		*lines; /* in the ledger; restore_threads() sorts them by thread */
	size_t nr_lines;
	struct nm_ledger *ledger; /* NULL: it cannot be written */
	struct nm_descent *descent;
	struct nm_progress progress;
	int returned;
	unsigned failed;
};

static bool same_thread(const struct nm_ledger_entry *a, const struct nm_ledger_entry *b)
{
	return a->tid == b->tid && a->start_ticks == b->start_ticks;
}

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

static int compare_threads(const void *a, const void *b)
{
	const struct nm_ledger_entry *left = *(const struct nm_ledger_entry *const *)a;
	const struct nm_ledger_entry *right = *(const struct nm_ledger_entry *const *)b;
	return NM_COMPARE(left->tid, right->tid)
		       ?: NM_COMPARE(left->start_ticks, right->start_ticks);
}

/* Sorts the lines by thread, and those of one thread from the newest to the oldest. */
static int compare_lines(const void *a, const void *b)
{
	const struct nm_ledger_entry *left = *(const struct nm_ledger_entry *const *)a;
	const struct nm_ledger_entry *right = *(const struct nm_ledger_entry *const *)b;
	/* the pointers refer to the contents, which are in the order of the file */
	return compare_threads(a, b) ?: NM_COMPARE(right, left);
}

/* Records the return, so that a restoration that is killed does not start from the beginning. */
static void note_return(const struct restore *restore, const struct nm_ledger_entry *terms)
{
	if (restore->ledger)
		(void)nm_ledger_return(restore->ledger, terms->tid, terms->start_ticks,
				       nm_proc_ticks_now(restore->masks.platform));
}

/* Returns the index of the first line of a thread with this number, or of the next one. */
static size_t find_lines_of(const struct restore *restore, uint32_t tid)
{
	size_t low = 0, high = restore->nr_lines;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (restore->lines[middle]->tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns whether the leader of the thread has a line of its own with the same target. */
static bool is_leader_leased(const struct restore *restore, const struct nm_ledger_entry *terms)
{
	for (size_t i = find_lines_of(restore, terms->pid);
	     i < restore->nr_lines && restore->lines[i]->tid == terms->pid; i++)
		if (!restore->lines[i]->ended_ticks &&
		    hwloc_bitmap_isequal(restore->lines[i]->target, terms->target))
			return true;
	return false;
}

/* The thread is gone. It may continue under its leader's number, with the target of one of its
 * lines. */
static void follow_exec(struct restore *restore, const struct nm_ledger_entry *const *lines,
			size_t count)
{
	uint64_t start_ticks;
	int r = 0;
	for (size_t i = 0; r == 0 && i < count && same_thread(lines[0], lines[i]); i++) {
		const struct nm_ledger_entry *terms = lines[i];
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
 * Restores the affinity of the thread of these lines. It carries the newest target, or an earlier
 * one if the daemon died after writing the line and before setting the affinity.
 */
static void restore_thread(struct restore *restore, const struct nm_ledger_entry *const *lines,
			   size_t count)
{
	const struct nm_ledger_entry *terms = lines[0];
	int r = 0;
	for (size_t i = 0; r == 0 && i < count && same_thread(lines[0], lines[i]); i++)
		r = nm_mask_restore(&restore->masks, lines[i], terms->pid, terms->tid,
				    terms->start_ticks);
	count_result(restore, terms, terms->pid, terms->tid, NM_LEASE_RETURNED, r);
	if (r > 0)
		note_return(restore, terms);
	if (r == -ESRCH)
		follow_exec(restore, lines, count);
	nm_progress_note(&restore->progress);
}

static void restore_threads(struct restore *restore)
{
	const struct nm_ledger_entry **lines = restore->lines;
	const size_t count = restore->nr_lines;
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < count; i++)
		if (!lines[i]->ended_ticks && (i == 0 || !same_thread(lines[i - 1], lines[i])))
			restore_thread(restore, &lines[i], count - i);
}

/* A thread with a line of its own did not inherit its affinity. */
static int restore_found(void *context, const struct nm_descendant *found)
{
	struct restore *restore = context;
	const struct nm_ledger_entry thread = {.tid = found->tid,
					       .start_ticks = found->start_ticks};
	const struct nm_ledger_entry *key = &thread;
	if (bsearch(&key, restore->lines, restore->nr_lines, sizeof(*restore->lines),
		    compare_threads))
		return 0;
	int r = nm_mask_restore(&restore->masks, found->terms, found->pid, found->tid,
				found->start_ticks);
	if (r == NM_MASK_UNCHANGED) /* it has not inherited the target */
		r = 0;
	if (r != 0)
		count_result(restore, found->terms, found->pid, found->tid, NM_LEASE_INHERITED, r);
	return r < 0 && r != -ESRCH ? r : 1;
}

static int restore_inherited(struct restore *restore)
{
	struct nm_descent_walk walk = {.entries = restore->lines,
				       .nr_entries = restore->nr_lines,
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
	restore->lines = entries;
	restore->nr_lines = contents->count;
	restore_threads(restore);
	int r = restore_inherited(restore);
	if (r < 0)
		return r;
	for (size_t i = 0; i < contents->count; i++)
		entries[i] = &contents->entries[i];
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

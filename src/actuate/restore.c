/* SPDX-License-Identifier: MIT */
/* Undoing after a crash, from the ledger alone. */
#include "actuator.h"
#include "heirs.h"
#include "mask.h"

struct restore {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	nm_lease_event_fn on_event;
	void *context;
	int returned;
	unsigned failed;
};

static void tell(const struct restore *restore, const struct nm_ledger_entry *terms, uint32_t pid,
		 uint32_t tid, enum nm_lease_event_kind kind, int error)
{
	struct nm_lease_event event = {
		.kind = kind,
		.tid = tid,
		.pid = pid,
		.decision = terms->decision,
		.error = error,
	};
	if (restore->on_event)
		restore->on_event(restore->context, &event);
}

static bool same_thread(const struct nm_ledger_entry *a, const struct nm_ledger_entry *b)
{
	return a->tid == b->tid && a->start_ticks == b->start_ticks;
}

static bool is_newest(const struct nm_ledger_contents *contents, size_t index)
{
	for (size_t i = index + 1; i < contents->count; i++)
		if (same_thread(&contents->entries[i], &contents->entries[index]))
			return false;
	return true;
}

static void count_result(struct restore *restore, const struct nm_ledger_entry *terms, uint32_t pid,
			 uint32_t tid, enum nm_lease_event_kind kind, int r)
{
	if (r == -ESRCH)
		return;
	restore->returned += r == 1;
	restore->failed += r < 0;
	if (r == 0)
		kind = NM_LEASE_FOREIGN;
	tell(restore, terms, pid, tid, r < 0 ? NM_LEASE_FAILED : kind, r < 0 ? r : 0);
}

/*
 * Returns the mask of the thread whose newest line this is. It carries the newest target, or after
 * a death between that line and the act an earlier one.
 */
static void restore_thread(struct restore *restore, const struct nm_ledger_contents *contents,
			   size_t newest)
{
	const struct nm_ledger_entry *terms = &contents->entries[newest];
	int r = 0;
	for (size_t i = newest + 1; r == 0 && i-- > 0;)
		if (same_thread(&contents->entries[i], terms))
			r = nm_mask_return(restore->platform, restore->topology,
					   &contents->entries[i], terms->pid, terms->tid,
					   terms->start_ticks);
	count_result(restore, terms, terms->pid, terms->tid, NM_LEASE_RETURNED, r);
}

static void restore_heir(void *context, const struct nm_ledger_entry *terms, uint32_t pid,
			 uint32_t tid, uint64_t start_ticks)
{
	struct restore *restore = context;
	int r = nm_mask_return(restore->platform, restore->topology, terms, pid, tid, start_ticks);
	if (r != 0)
		count_result(restore, terms, pid, tid, NM_LEASE_HEIR, r);
}

static int restore_heirs(struct restore *restore, const struct nm_ledger_entry *const *entries,
			 size_t count)
{
	struct nm_heirs_search search = {
		.platform = restore->platform,
		.entries = entries,
		.count = count,
		.each = restore_heir,
		.context = restore,
	};
	int found = 1;
	/* Threads born of heirs while we walk are met by the next round. */
	for (int round = 0; found > 0 && restore->failed == 0 && round < 4; round++)
		found = nm_heirs_scan(&search);
	return found < 0 ? found : 0;
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

/* All lines stay where anything was refused: replaying them again does no harm. */
static int restore_contents(struct restore *restore, const struct nm_ledger_contents *contents,
			    int runtime_directory, const char *boot_id)
{
	nm_autofree const struct nm_ledger_entry **entries =
		calloc(contents->count + 1, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < contents->count; i++) {
		entries[i] = &contents->entries[i];
		if (!entries[i]->ended_ticks && is_newest(contents, i))
			restore_thread(restore, contents, i);
	}
	int r = restore_heirs(restore, entries, contents->count);
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

	struct restore restore = {
		.platform = platform,
		.topology = topology,
		.on_event = on_event,
		.context = context,
	};
	struct nm_restoration found = {
		.bad_lines = contents.bad_lines,
		.first_bad_line = contents.first_bad_line,
	};
	/* What cannot be kept for the administrator must not stop what can be returned. */
	if (found.bad_lines > 0)
		found.kept = nm_ledger_keep_damaged(runtime_directory);
	r = restore_contents(&restore, &contents, runtime_directory, boot_id);
	nm_ledger_contents_clear(&contents);
	found.failed = restore.failed;
	*ret = found;
	return r < 0 ? r : restore.returned;
}

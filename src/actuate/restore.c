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

/* Returns one mask and counts; false when it was refused and must stay in the ledger. */
static bool restore_thread(struct restore *restore, const struct nm_ledger_entry *terms,
			   uint32_t pid, uint32_t tid, uint64_t start_ticks,
			   enum nm_lease_event_kind kind)
{
	int r = nm_mask_return(restore->platform, restore->topology, terms, pid, tid, start_ticks);
	if (r == 1) {
		restore->returned++;
		tell(restore, terms, pid, tid, kind, 0);
		return true;
	}
	if (r == 0)
		tell(restore, terms, pid, tid, NM_LEASE_FOREIGN, 0);
	if (r == 0 || r == -ESRCH)
		return true;
	restore->failed++;
	tell(restore, terms, pid, tid, NM_LEASE_FAILED, r);
	return false;
}

static void restore_heir(void *context, const struct nm_ledger_entry *terms, uint32_t pid,
			 uint32_t tid, uint64_t start_ticks)
{
	(void)restore_thread(context, terms, pid, tid, start_ticks, NM_LEASE_HEIR);
}

/* Returns what can be returned; the refused entries' pointers go to `kept`. */
static size_t restore_entries(struct restore *restore, const struct nm_ledger_contents *contents,
			      const struct nm_ledger_entry **all,
			      const struct nm_ledger_entry **kept)
{
	size_t refused = 0;
	for (size_t i = 0; i < contents->count; i++) {
		const struct nm_ledger_entry *terms = &contents->entries[i];
		all[i] = terms;
		if (!restore_thread(restore, terms, terms->pid, terms->tid, terms->start_ticks,
				    NM_LEASE_RETURNED))
			kept[refused++] = terms;
	}
	/* Threads born of heirs while we walk are met by the next round. */
	for (int round = 0; round < 4; round++)
		if (nm_heirs_scan(restore->platform, all, contents->count, restore_heir, restore) <=
		    0)
			break;
	return refused;
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

int nm_restore(struct nm_platform *platform, const struct nm_topology *topology,
	       int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
	       void *context, unsigned *failed)
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
	const struct nm_ledger_entry **all = calloc(contents.count + 1, sizeof(*all));
	const struct nm_ledger_entry **kept = calloc(contents.count + 1, sizeof(*kept));
	r = -ENOMEM;
	if (all && kept) {
		size_t refused = restore_entries(&restore, &contents, all, kept);
		r = rewrite(runtime_directory, boot_id, kept, refused);
	}
	free(all);
	free(kept);
	nm_ledger_contents_clear(&contents);
	*failed = restore.failed;
	return r < 0 ? r : restore.returned;
}

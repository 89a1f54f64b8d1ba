/* SPDX-License-Identifier: MIT */
/* Restores affinities after a crash, from the slots, and once from the ledger of earlier versions.
 */
#include <stdio.h>
#include <unistd.h>

#include "descent.h"
#include "ledger.h"
#include "slots.h"

struct restore {
	struct nm_masks masks;
	struct nm_descent *descent;
	struct nm_progress progress;
	int returned;
	unsigned failed;
};

/* Counts and reports a result of nm_mask_restore(). */
static void note_result(struct restore *restore, const struct nm_narrowing *terms,
			const struct nm_descendant *thread, enum nm_move_event_kind kind, int r)
{
	if (r == -ESRCH || r == NM_MASK_UNCHANGED)
		return;
	restore->returned += r == 1;
	restore->failed += r < 0;
	if (r <= 0)
		kind = r < 0 ? NM_MOVE_FAILED : NM_MOVE_FOREIGN;
	nm_progress_report(&restore->progress, terms, thread, kind, r < 0 ? r : 0);
}

static void restore_thread(struct restore *restore, const struct nm_narrowing *terms)
{
	const struct nm_descendant thread = {.pid = terms->pid, .tid = terms->tid};
	const struct nm_descendant leader = {.pid = terms->pid, .tid = terms->pid};
	uint64_t start_ticks;
	int r = nm_mask_restore(&restore->masks, terms, terms->pid, terms->tid, terms->start_ticks);
	note_result(restore, terms, &thread, NM_MOVE_RETURNED, r);
	nm_progress_note(&restore->progress);
	if (r != -ESRCH)
		return;
	r = nm_descent_follow_exec(restore->descent, terms, &start_ticks);
	if (r > 0)
		r = nm_mask_restore(&restore->masks, terms, terms->pid, terms->pid, start_ticks);
	if (r != 0)
		note_result(restore, terms, &leader, NM_MOVE_INHERITED, r);
}

static int restore_found(void *context, const struct nm_descendant *found)
{
	struct restore *restore = context;
	int r = nm_mask_restore(&restore->masks, found->terms, found->pid, found->tid,
				found->start_ticks);
	if (r == 0 || r == NM_MASK_UNCHANGED) /* it has not inherited the affinity */
		return 0;
	note_result(restore, found->terms, found, NM_MOVE_INHERITED, r);
	return r < 0 && r != -ESRCH ? r : 1;
}

/* Restores the threads, and those that inherited their affinities. */
static int restore_all(struct restore *restore, const struct nm_narrowing *items, size_t count)
{
	nm_autofree const struct nm_narrowing **entries =
		nm_must(calloc(count + 1, sizeof(*entries)));
	struct nm_descent_walk walk = {.entries = entries,
				       .each = restore_found,
				       .context = restore,
				       .progress = &restore->progress};
	for (size_t i = 0; i < count; i++) {
		if (!items[i].tid)
			continue;
		restore_thread(restore, &items[i]);
		entries[walk.nr_entries++] = &items[i];
	}
	return walk.nr_entries > 0 ? nm_descent_search(restore->descent, &walk) : 0;
}

/* ---- the files ---- */

static int restore_slots(struct restore *restore, int directory, const char *boot_id,
			 struct nm_restoration *ret)
{
	nm_auto(nm_slots_contents_clear) struct nm_slots_contents contents = {0};
	int r = nm_slots_read(directory, boot_id, &contents);
	if (r < 0)
		return r;
	ret->bad_lines = contents.damaged;
	ret->first_bad_line = contents.first_damaged;
	r = restore_all(restore, contents.terms, NM_MOVE_SLOTS);
	return r == 0 && restore->failed == 0 ? nm_slots_remove(directory) : r;
}

/* A thread that carries an older target of its own is restored by the older line. */
static int restore_ledger(struct restore *restore, int directory, const char *boot_id,
			  struct nm_restoration *ret)
{
	nm_auto(nm_ledger_clear) struct nm_ledger ledger = {0};
	int r = nm_ledger_read(directory, boot_id, &ledger);
	if (r < 0)
		return r;
	ret->bad_lines = ledger.bad_lines;
	ret->first_bad_line = ledger.first_bad_line;
	r = restore_all(restore, ledger.items, ledger.count);
	if (r < 0 || restore->failed > 0)
		return r;
	if (ledger.bad_lines > 0)
		return renameat(directory, NM_LEDGER_NAME, directory, NM_LEDGER_DAMAGED) < 0
			       ? -errno
			       : 0;
	return unlinkat(directory, NM_LEDGER_NAME, 0) < 0 && errno != ENOENT ? -errno : 0;
}

typedef int (*restore_fn)(struct restore *restore, int directory, const char *boot_id,
			  struct nm_restoration *ret);

static int restore_file(restore_fn restore_contents, const struct nm_restore_input *input,
			struct nm_restoration *ret)
{
	nm_auto(nm_cgroups_freep) struct nm_cgroups *cgroups = nm_cgroups_new(input->platform);
	struct restore restore = {
		.masks = {.platform = input->platform,
			  .topology = input->topology,
			  .cgroups = cgroups},
		.progress = {.platform = input->platform,
			     .on_event = input->on_event,
			     .context = input->context},
	};
	struct nm_restoration found = {0};
	nm_auto(nm_descent_freep) struct nm_descent *descent = nm_descent_new(&restore.masks);
	restore.descent = descent;
	int r = restore_contents(&restore, input->directory, input->boot_id, &found);
	found.failed = restore.failed;
	*ret = found;
	return r < 0 ? r : restore.returned;
}

int nm_moves_restore(const struct nm_restore_input *input, struct nm_restoration *ret)
{
	return restore_file(restore_slots, input, ret);
}

int nm_ledger_restore(const struct nm_restore_input *input, struct nm_restoration *ret)
{
	return restore_file(restore_ledger, input, ret);
}

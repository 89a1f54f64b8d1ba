/* SPDX-License-Identifier: MIT */
#include "heirs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mask.h"

static bool thread_lives(struct nm_platform *platform, const struct nm_ledger_entry *terms)
{
	int directory = nm_mask_open(platform, terms->pid, terms->tid, terms->start_ticks, NULL);
	if (directory < 0)
		return false;
	platform->ops->close(platform, directory);
	return true;
}

static bool same_cgroup(struct nm_platform *platform, uint32_t pid, const char *cgroup)
{
	nm_autofree char *own = NULL;
	int directory = nm_proc_open_thread(platform, 0, pid);
	if (directory < 0)
		return false;
	int r = nm_proc_read_cgroup(platform, directory, &own);
	platform->ops->close(platform, directory);
	/* The root group holds unrelated processes: it says nothing about descent. */
	return r == 0 && cgroup[0] && strcmp(cgroup, "/") != 0 && strcmp(own, cgroup) == 0;
}

bool nm_heirs_inherited(struct nm_platform *platform, const struct nm_ledger_entry *terms,
			uint32_t pid, uint32_t tid, const struct nm_proc_stat *stat,
			hwloc_const_bitmap_t current)
{
	bool born_after = stat->start_ticks >= terms->given_ticks;

	if (tid == terms->tid && stat->start_ticks == terms->start_ticks)
		return false;
	if (!nm_mask_is_ours(platform, current, terms->target, terms->cgroup))
		return false;
	if (pid == terms->pid)
		return born_after || (tid == pid && !thread_lives(platform, terms));
	if (!born_after)
		return false;
	if (nm_proc_descends(platform, pid, terms->pid))
		return true;
	/*
	 * Session and cgroup speak only for orphans: beside a living parent they would also name a
	 * neighbour that its owner pinned to the same CPUs.
	 */
	if (stat->ppid > 1 && thread_lives(platform, terms))
		return false;
	return stat->session == terms->session || same_cgroup(platform, pid, terms->cgroup);
}

struct scan {
	struct nm_platform *platform;
	const struct nm_ledger_entry *const *entries;
	size_t count;
	nm_heir_fn each;
	void *context;
	hwloc_bitmap_t current;
	uint32_t pid;
	int found;
};

static bool parse_id(const char *name, uint32_t *ret)
{
	char end;
	return sscanf(name, "%" SCNu32 "%c", ret, &end) == 1;
}

/* Is the mask one of those we gave? Asked before anything else of a thread is read. */
static bool carries_target(const struct scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		if (hwloc_bitmap_isincluded(scan->current, scan->entries[i]->target))
			return true;
	return false;
}

static int scan_thread(void *context, const char *name)
{
	struct scan *scan = context;
	struct nm_platform *platform = scan->platform;
	uint32_t tid;
	if (!parse_id(name, &tid) ||
	    platform->ops->affinity_get(platform, (pid_t)tid, scan->current) < 0 ||
	    !carries_target(scan))
		return 0;

	struct nm_proc_stat stat;
	int directory = nm_proc_open_thread(platform, scan->pid, tid);
	if (directory < 0)
		return 0;
	int r = nm_proc_read_stat(platform, directory, &stat);
	platform->ops->close(platform, directory);
	if (r < 0 || (stat.flags & NM_PROC_KTHREAD))
		return 0;

	for (size_t i = 0; i < scan->count; i++) {
		if (!nm_heirs_inherited(platform, scan->entries[i], scan->pid, tid, &stat,
					scan->current))
			continue;
		scan->found++;
		scan->each(scan->context, scan->entries[i], scan->pid, tid, stat.start_ticks);
		break;
	}
	return 0;
}

static int scan_process(void *context, const char *name)
{
	struct scan *scan = context;
	char path[64];
	if (!parse_id(name, &scan->pid))
		return 0;
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", scan->pid);
	/* A process that ended while we walk is no error. */
	(void)scan->platform->ops->list_directory(scan->platform, NM_ROOT, path, scan_thread, scan);
	return 0;
}

int nm_heirs_scan(struct nm_platform *platform, const struct nm_ledger_entry *const *entries,
		  size_t count, nm_heir_fn each, void *context)
{
	if (count == 0)
		return 0;
	nm_autobitmap current = hwloc_bitmap_alloc();
	if (!current)
		return -ENOMEM;
	struct scan scan = {
		.platform = platform,
		.entries = entries,
		.count = count,
		.each = each,
		.context = context,
		.current = current,
	};
	int r = platform->ops->list_directory(platform, NM_ROOT, "proc", scan_process, &scan);
	return r < 0 ? r : scan.found;
}

/* SPDX-License-Identifier: MIT */
#include "mask.h"

int nm_mask_open(struct nm_platform *platform, uint32_t pid, uint32_t tid, uint64_t start_ticks,
		 struct nm_proc_stat *stat)
{
	struct nm_proc_stat found;
	int directory = nm_proc_open_thread(platform, pid, tid);
	if (directory < 0)
		return directory;
	int r = nm_proc_read_stat(platform, directory, &found);
	if (r == 0 && found.start_ticks != start_ticks)
		r = -ESRCH;
	if (r < 0) {
		platform->ops->close(platform, directory);
		return r;
	}
	if (stat)
		*stat = found;
	return directory;
}

bool nm_mask_is_ours(struct nm_platform *platform, hwloc_const_bitmap_t current,
		     hwloc_const_bitmap_t target, const char *cgroup)
{
	if (hwloc_bitmap_isequal(current, target))
		return true;
	if (!hwloc_bitmap_isincluded(current, target))
		return false;
	nm_autobitmap allowed = hwloc_bitmap_alloc();
	if (!allowed || nm_proc_cpuset_effective(platform, cgroup, allowed) < 0)
		return false;
	hwloc_bitmap_and(allowed, allowed, target);
	return hwloc_bitmap_isequal(current, allowed);
}

/*
 * The thread died between our check and our call, and its number may have been given to a new one:
 * that one was born with the mask of its leader or parent, which it gets back.
 */
static void undo_misfire(struct nm_platform *platform, uint32_t tid, hwloc_const_bitmap_t mask)
{
	nm_autobitmap current = hwloc_bitmap_alloc();
	nm_autobitmap inherited = hwloc_bitmap_alloc();
	struct nm_proc_stat stat;
	struct nm_proc_status status;
	int directory = nm_proc_open_thread(platform, 0, tid);
	if (directory < 0)
		return;
	int r = nm_proc_read_stat(platform, directory, &stat);
	if (r == 0)
		r = nm_proc_read_status(platform, directory, &status);
	platform->ops->close(platform, directory);
	if (r != 0 || !current || !inherited)
		return;

	uint32_t origin = status.tgid == tid ? stat.ppid : status.tgid;
	if (platform->ops->affinity_get(platform, (pid_t)tid, current) < 0 ||
	    !hwloc_bitmap_isequal(current, mask) ||
	    platform->ops->affinity_get(platform, (pid_t)origin, inherited) < 0)
		return;
	(void)platform->ops->affinity_set(platform, (pid_t)tid, inherited);
}

int nm_mask_set(struct nm_platform *platform, int directory, uint32_t tid, uint64_t start_ticks,
		hwloc_const_bitmap_t mask)
{
	nm_autobitmap seen = hwloc_bitmap_alloc();
	if (!seen)
		return -ENOMEM;
	int r = platform->ops->affinity_set(platform, (pid_t)tid, mask);
	if (r < 0)
		return r;

	struct nm_proc_stat stat;
	r = nm_proc_read_stat(platform, directory, &stat);
	if (r == 0 && stat.start_ticks != start_ticks)
		r = -ESRCH;
	if (r == -ESRCH)
		undo_misfire(platform, tid, mask);
	if (r < 0)
		return r;
	r = platform->ops->affinity_get(platform, (pid_t)tid, seen);
	if (r < 0)
		return r;
	return hwloc_bitmap_isincluded(seen, mask) ? 0 : -ESTALE;
}

int nm_mask_return(struct nm_platform *platform, const struct nm_topology *topology,
		   const struct nm_ledger_entry *terms, uint32_t pid, uint32_t tid,
		   uint64_t start_ticks)
{
	nm_autobitmap current = hwloc_bitmap_alloc();
	if (!current)
		return -ENOMEM;
	int directory = nm_mask_open(platform, pid, tid, start_ticks, NULL);
	if (directory < 0)
		return directory;

	int r = platform->ops->affinity_get(platform, (pid_t)tid, current);
	if (r == 0 && nm_mask_is_ours(platform, current, terms->target, terms->cgroup)) {
		hwloc_const_bitmap_t mask =
			terms->unrestricted ? topology->possible : terms->original;
		r = nm_mask_set(platform, directory, tid, start_ticks, mask);
		/* The cpuset has left the original entirely: anything in it is what the owner gets.
		 */
		if (r == -EINVAL)
			r = nm_mask_set(platform, directory, tid, start_ticks, topology->possible);
		if (r == 0)
			r = 1;
	}
	platform->ops->close(platform, directory);
	return r;
}

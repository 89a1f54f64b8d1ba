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

/* What the cpuset of the thread behind `directory` allows now. */
static int read_allowed(struct nm_platform *platform, int directory, hwloc_bitmap_t ret)
{
	nm_autofree char *cgroup = NULL;
	int r = nm_proc_read_cgroup(platform, directory, &cgroup);
	return r < 0 ? r : nm_proc_cpuset_effective(platform, cgroup, ret);
}

enum nm_mask_state nm_mask_judge(struct nm_platform *platform, int directory,
				 const struct nm_ledger_entry *terms, hwloc_const_bitmap_t current)
{
	if (hwloc_bitmap_isequal(current, terms->target))
		return NM_MASK_OURS;
	nm_autobitmap allowed = hwloc_bitmap_alloc();
	nm_autobitmap left = hwloc_bitmap_alloc();
	if (!allowed || !left || read_allowed(platform, directory, allowed) < 0 ||
	    hwloc_bitmap_and(left, allowed, terms->target) < 0)
		return NM_MASK_FOREIGN;

	bool emptied = hwloc_bitmap_iszero(left);
	if (!emptied && hwloc_bitmap_isequal(current, left))
		return NM_MASK_OURS;
	bool changed = terms->unrestricted && !hwloc_bitmap_isequal(allowed, terms->original);
	if ((emptied || changed) && hwloc_bitmap_isequal(current, allowed))
		return NM_MASK_RESET;
	return NM_MASK_FOREIGN;
}

/* Is `current` what setting `mask` gives the thread behind `directory`? */
static bool is_effect_of(struct nm_platform *platform, int directory, hwloc_const_bitmap_t mask,
			 hwloc_const_bitmap_t current)
{
	if (hwloc_bitmap_isequal(current, mask))
		return true;
	nm_autobitmap allowed = hwloc_bitmap_alloc();
	return allowed && read_allowed(platform, directory, allowed) == 0 &&
	       hwloc_bitmap_and(allowed, allowed, mask) == 0 &&
	       hwloc_bitmap_isequal(current, allowed);
}

/* Whose mask a thread was born with, as far as /proc tells: its leader's, or its parent's. */
static int read_origin(struct nm_platform *platform, int directory, uint32_t tid, uint32_t *ret)
{
	struct nm_proc_stat stat;
	struct nm_proc_status status;
	int r = nm_proc_read_stat(platform, directory, &stat);
	if (r == 0)
		r = nm_proc_read_status(platform, directory, &status);
	if (r != 0)
		return r;
	*ret = status.tgid == tid ? stat.ppid : status.tgid;
	return *ret ? 0 : -ESRCH; /* number 0 would be ourselves */
}

/*
 * The thread died between our check and our call, and its number may have been given to a new one:
 * that one was born with the mask of its leader or parent, which it gets back.
 */
static void undo_misfire(struct nm_platform *platform, uint32_t tid, hwloc_const_bitmap_t mask)
{
	nm_autobitmap current = hwloc_bitmap_alloc();
	nm_autobitmap inherited = hwloc_bitmap_alloc();
	uint32_t origin;
	int directory = nm_proc_open_thread(platform, 0, tid);
	if (directory < 0)
		return;
	if (current && inherited && read_origin(platform, directory, tid, &origin) == 0 &&
	    platform->ops->affinity_get(platform, (pid_t)tid, current) == 0 &&
	    is_effect_of(platform, directory, mask, current) &&
	    platform->ops->affinity_get(platform, (pid_t)origin, inherited) == 0)
		(void)platform->ops->affinity_set(platform, (pid_t)tid, inherited);
	platform->ops->close(platform, directory);
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

/* 1: set; 0: somebody set another one behind ours, and that is theirs. */
static int set_original(struct nm_platform *platform, const struct nm_topology *topology,
			const struct nm_ledger_entry *terms, int directory, uint32_t tid,
			uint64_t start_ticks)
{
	hwloc_const_bitmap_t mask = terms->unrestricted ? topology->possible : terms->original;
	int r = nm_mask_set(platform, directory, tid, start_ticks, mask);
	/* The cpuset has left the original entirely: anything in it is what the owner gets. */
	if (r == -EINVAL)
		r = nm_mask_set(platform, directory, tid, start_ticks, topology->possible);
	if (r == -ESTALE)
		return 0;
	return r < 0 ? r : 1;
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
	if (r == 0 && nm_mask_judge(platform, directory, terms, current) != NM_MASK_FOREIGN)
		r = set_original(platform, topology, terms, directory, tid, start_ticks);
	platform->ops->close(platform, directory);
	return r;
}

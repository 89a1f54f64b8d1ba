/* SPDX-License-Identifier: MIT */
#include "mask.h"

#include <string.h>

int nm_mask_read_allowed(const struct nm_masks *masks, int directory, hwloc_bitmap_t ret)
{
	int r = nm_cgroups_cpuset_of(masks->cgroups, directory, ret, NULL, NULL);

	return r == -ENODATA ? nm_proc_read_online(masks->platform, ret) : r;
}

/* Returns whether the kernel gave the thread other CPUs because the CPUs of the target or of the
 * cpuset changed. */
static bool was_reset(const struct nm_narrowing *terms, hwloc_const_bitmap_t allowed,
		      hwloc_const_bitmap_t current)
{
	bool shrunk = !hwloc_bitmap_isincluded(terms->target, allowed);
	bool changed = terms->unrestricted && !hwloc_bitmap_isequal(allowed, terms->original);
	if (!shrunk && !changed)
		return false;
	/* With cgroup v1, whose cpusets are not read, fewer CPUs may be allowed than are online. */
	return hwloc_bitmap_isequal(current, allowed) ||
	       (shrunk && nm_is_part(current, terms->original, allowed));
}

static bool is_original(const struct nm_masks *masks, const struct nm_narrowing *terms,
			hwloc_const_bitmap_t allowed, hwloc_const_bitmap_t current)
{
	return hwloc_bitmap_isequal(current, terms->original) ||
	       nm_is_part(current, terms->original, masks->topology->online) ||
	       nm_is_part(current, terms->original, allowed) ||
	       hwloc_bitmap_isequal(current, allowed);
}

/* Compares with the CPUs that the cpuset allows. Returns a state or a negative errno. */
static int judge_cut(const struct nm_masks *masks, int directory, const struct nm_narrowing *terms,
		     hwloc_const_bitmap_t current)
{
	nm_autobitmap allowed = nm_must(hwloc_bitmap_alloc());
	nm_autobitmap left = nm_must(hwloc_bitmap_alloc());
	int r = nm_mask_read_allowed(masks, directory, allowed);
	if (r < 0)
		return r;
	nm_must_do(hwloc_bitmap_and(left, allowed, terms->target));
	if (!hwloc_bitmap_iszero(left) && hwloc_bitmap_isequal(current, left))
		return NM_MASK_OURS;
	if (was_reset(terms, allowed, current))
		return NM_MASK_RESET;
	return is_original(masks, terms, allowed, current) ? NM_MASK_ORIGINAL : NM_MASK_FOREIGN;
}

/* The cpuset may have changed since it was read in this tick, so it is read again before FOREIGN is
 * returned. */
int nm_mask_judge(const struct nm_masks *masks, int directory, const struct nm_narrowing *terms,
		  hwloc_const_bitmap_t current)
{
	if (hwloc_bitmap_isequal(current, terms->target))
		return NM_MASK_OURS;
	int state = judge_cut(masks, directory, terms, current);
	if (state != NM_MASK_FOREIGN)
		return state;
	nm_cgroups_forget(masks->cgroups);
	return judge_cut(masks, directory, terms, current);
}

/* Returns whether `current` is the result of setting `mask` for the thread behind `directory`. */
static bool is_effect_of(const struct nm_masks *masks, int directory, hwloc_const_bitmap_t mask,
			 hwloc_const_bitmap_t current)
{
	if (hwloc_bitmap_isequal(current, mask))
		return true;
	nm_autobitmap allowed = nm_must(hwloc_bitmap_alloc());
	return nm_mask_read_allowed(masks, directory, allowed) == 0 &&
	       nm_is_part(current, mask, allowed);
}

/* Finds the task whose affinity a thread was created with, as far as /proc shows it: the leader of
 * the thread, or the parent of a leader. */
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
	return *ret ? 0 : -ESRCH; /* number 0 means the calling thread */
}

/* Returns the affinity to set. If it is unrestricted, no program has chosen it, and all possible
 * CPUs are set instead. */
static hwloc_const_bitmap_t settable(const struct nm_masks *masks, hwloc_const_bitmap_t mask,
				     bool unrestricted)
{
	return unrestricted ? masks->topology->possible : mask;
}

/* Reads the affinity with which a child of this task is created. */
static int read_inheritable(const struct nm_masks *masks, uint32_t origin, hwloc_bitmap_t ret,
			    bool *ret_unrestricted)
{
	struct nm_platform *platform = masks->platform;
	nm_autobitmap allowed = nm_must(hwloc_bitmap_alloc());
	int directory = nm_proc_open_thread(platform, 0, origin);
	if (directory < 0)
		return directory;
	int r = nm_proc_read_affinity(platform, directory, ret);
	if (r == 0)
		*ret_unrestricted = nm_mask_read_allowed(masks, directory, allowed) == 0 &&
				    hwloc_bitmap_isincluded(allowed, ret);
	platform->ops->close(platform, directory);
	return r;
}

/*
 * The thread exited between our check and our call, and its number may have been reused. The new
 * thread was created with the affinity of its leader or parent, which is restored.
 */
static void undo_misfire(const struct nm_masks *masks, uint32_t tid, hwloc_const_bitmap_t mask)
{
	struct nm_platform *platform = masks->platform;
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	nm_autobitmap inherited = nm_must(hwloc_bitmap_alloc());
	bool unrestricted;
	uint32_t origin;
	int directory = nm_proc_open_thread(platform, 0, tid);
	if (directory < 0)
		return;
	if (read_origin(platform, directory, tid, &origin) == 0 &&
	    platform->ops->affinity_get(platform, (pid_t)tid, current) == 0 &&
	    is_effect_of(masks, directory, mask, current) &&
	    read_inheritable(masks, origin, inherited, &unrestricted) == 0)
		(void)platform->ops->affinity_set(platform, (pid_t)tid,
						  settable(masks, inherited, unrestricted));
	platform->ops->close(platform, directory);
}

int nm_mask_set(const struct nm_masks *masks, int directory, uint32_t tid, uint64_t start_ticks,
		hwloc_const_bitmap_t mask)
{
	struct nm_platform *platform = masks->platform;
	nm_autobitmap seen = nm_must(hwloc_bitmap_alloc());
	int r = platform->ops->affinity_set(platform, (pid_t)tid, mask);
	if (r < 0)
		return r;

	struct nm_proc_stat stat;
	r = nm_proc_read_stat(platform, directory, &stat);
	if (r == 0 && stat.start_ticks != start_ticks)
		r = -ESRCH;
	if (r == -ESRCH)
		undo_misfire(masks, tid, mask);
	if (r < 0)
		return r;
	r = platform->ops->affinity_get(platform, (pid_t)tid, seen);
	if (r < 0)
		return r;
	return hwloc_bitmap_isincluded(seen, mask) ? 0 : -ESTALE;
}

/* Returns 1 if the affinity was set, 0 if another program has set another one since, which stays,
 * or a negative errno. */
static int set_original(const struct nm_masks *masks, const struct nm_narrowing *terms,
			int directory, uint32_t tid, uint64_t start_ticks)
{
	hwloc_const_bitmap_t mask = settable(masks, terms->original, terms->unrestricted);
	int r = nm_mask_set(masks, directory, tid, start_ticks, mask);
	/* If the second attempt fails as well, the cpuset contains no CPU of the original affinity
	 * any more, and the thread gets all CPUs of the cpuset. */
	if (r == -EINVAL)
		r = nm_mask_set(masks, directory, tid, start_ticks, mask);
	if (r == -EINVAL)
		r = nm_mask_set(masks, directory, tid, start_ticks, masks->topology->possible);
	if (r == -ESTALE)
		return 0;
	return r < 0 ? r : 1;
}

static int restore_if(const struct nm_masks *masks, const struct nm_narrowing *terms, uint32_t pid,
		      uint32_t tid, uint64_t start_ticks, bool inherited)
{
	struct nm_platform *platform = masks->platform;
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	int directory = nm_proc_open_same(platform, pid, tid, start_ticks, NULL);
	if (directory < 0)
		return directory;

	int r = platform->ops->affinity_get(platform, (pid_t)tid, current);
	int state = r == 0 ? nm_mask_judge(masks, directory, terms, current) : r;
	if (state == NM_MASK_OURS || (state == NM_MASK_RESET && !inherited))
		r = set_original(masks, terms, directory, tid, start_ticks);
	else
		r = state < 0				      ? state
		    : state == NM_MASK_ORIGINAL && !inherited ? NM_MASK_UNCHANGED
							      : 0;
	platform->ops->close(platform, directory);
	return r;
}

int nm_mask_restore(const struct nm_masks *masks, const struct nm_narrowing *terms, uint32_t pid,
		    uint32_t tid, uint64_t start_ticks)
{
	return restore_if(masks, terms, pid, tid, start_ticks, false);
}

int nm_mask_restore_inherited(const struct nm_masks *masks, const struct nm_narrowing *terms,
			      uint32_t pid, uint32_t tid, uint64_t start_ticks)
{
	return restore_if(masks, terms, pid, tid, start_ticks, true);
}

// SPDX-License-Identifier: MIT
/* Calls sched_getaffinity(2) and sched_setaffinity(2) directly, because glibc's CPU sets end at
 * 1024 CPUs. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "linux.h"

#define LONG_BITS (sizeof(unsigned long) * 8)
#define MASK_LONGS_FIRST (1024U / LONG_BITS)
#define MASK_LONGS_MAX (1U << 16)

/* The kernel refuses buffers smaller than its CPU bitmaps, and does not report their width
 * otherwise. */
int nm_linux_mask_init(struct nm_linux *self)
{
	for (unsigned longs = MASK_LONGS_FIRST; longs <= MASK_LONGS_MAX; longs *= 2) {
		unsigned long *mask = reallocarray(self->mask, longs, sizeof(*mask));
		if (!mask)
			return -ENOMEM;
		self->mask = mask;
		self->mask_longs = longs;
		if (syscall(SYS_sched_getaffinity, 0, longs * sizeof(*mask), mask) >= 0)
			return 0;
		if (errno != EINVAL)
			return -errno;
	}
	return -EINVAL;
}

int nm_linux_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	struct nm_linux *self = nm_linux(platform);
	size_t size = self->mask_longs * sizeof(*self->mask);

	memset(self->mask, 0, size);
	if (syscall(SYS_sched_getaffinity, tid, size, self->mask) < 0)
		return -errno;
	return hwloc_bitmap_from_ulongs(ret, self->mask_longs, self->mask) < 0 ? -ENOMEM : 0;
}

int nm_linux_affinity_set(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus)
{
	struct nm_linux *self = nm_linux(platform);
	size_t size = self->mask_longs * sizeof(*self->mask);

	if (!nm_generation_stands(self->generation))
		return -ECANCELED;
	if (hwloc_bitmap_to_ulongs(cpus, self->mask_longs, self->mask) < 0)
		return -EINVAL;
	return syscall(SYS_sched_setaffinity, tid, size, self->mask) < 0 ? -errno : 0;
}

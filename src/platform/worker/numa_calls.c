// SPDX-License-Identifier: MIT
/*
 * Only those functions of libnuma are used that do not depend on the results of its constructor:
 * the worker's sandbox hides /proc/self/status and refuses get_mempolicy(2), so the library assumes
 * that the kernel's node bitmaps are shorter than they are.
 *
 * numa_available() is not called: a kernel without NUMA answers each call with ENOSYS.
 */
#include <errno.h>
#include <numa.h>
#include <numaif.h>

#include "numa_calls.h"

_Static_assert(sizeof(uint64_t) == sizeof(void *), "addresses are passed on as they are");

/*
 * libnuma calls these two on errors. Its own versions print to standard error, which is the
 * journal, and end the program if numa_exit_on_error or numa_exit_on_warn is set. The calls below
 * return their errors, and what the constructor could not read is not needed.
 */
void numa_error(char *where)
{
	(void)where;
}

void numa_warn(int number, char *format, ...)
{
	(void)number, (void)format;
}

static void **pages(const uint64_t *addresses)
{
	return (void **)(uintptr_t)addresses;
}

int nm_numa_where(pid_t pid, uint32_t count, const uint64_t *addresses, int *ret_statuses)
{
	int r = numa_move_pages(pid, count, pages(addresses), NULL, ret_statuses, 0);

	return r < 0 ? -errno : 0;
}

int nm_numa_move(pid_t pid, uint32_t count, const uint64_t *addresses, const int *nodes,
		 int *ret_statuses)
{
	int r = numa_move_pages(pid, count, pages(addresses), nodes, ret_statuses, MPOL_MF_MOVE);

	return r < 0 ? -errno : r;
}

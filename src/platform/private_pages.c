// SPDX-License-Identifier: MIT
#include "private_pages.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa-migrd/base.h"

#define PAGE_BYTES 4096U
#define STEP UINT64_C(0x9e3779b97f4a7c15) /* no program has this stride */

/* Parses a line of /proc/PID/maps (proc(5)). MAP_ANONYMOUS memory of huge pages appears as the file
 * /anon_hugepage. */
static bool parse(const char *line, struct nm_private_extent *ret)
{
	char permissions[5];
	uint64_t start, end, inode;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64 " %n", &start, &end,
		   permissions, &inode, &path) != 4 ||
	    strncmp(permissions, "rw", 2) != 0 || permissions[3] != 'p' || start % PAGE_BYTES ||
	    end <= start)
		return false;
	if (inode != 0 && strncmp(line + path, "/anon_hugepage", strlen("/anon_hugepage")) != 0)
		return false;
	*ret = (struct nm_private_extent){start, (end - start) / PAGE_BYTES};
	return true;
}

ssize_t nm_private_pages_add(struct nm_private_pages *pages, char *text, size_t length)
{
	struct nm_private_extent extent;
	char *line = text;

	for (char *end; (end = memchr(line, '\n', (size_t)(text + length - line))); line = end + 1) {
		*end = '\0';
		if (!parse(line, &extent))
			continue;
		NM_RESERVE(pages->extents, pages->capacity, pages->count);
		pages->extents[pages->count++] = extent;
		pages->all += extent.pages;
	}
	return line - text;
}

void nm_private_pages_clear(struct nm_private_pages *pages)
{
	free(pages->extents);
	*pages = (struct nm_private_pages){0};
}

/* Returns a pseudo-random page of [k * all / count, (k + 1) * all / count). */
static uint64_t page_of_part(uint64_t k, uint64_t all, uint64_t count)
{
	uint64_t whole = all / count, rest = all % count;
	uint64_t first = k * whole + k * rest / count;
	uint64_t next = (k + 1) * whole + (k + 1) * rest / count;

	return first + ((k + 1) * STEP >> 32) % (next - first);
}

unsigned nm_private_pages_choose(const struct nm_private_pages *pages, unsigned count,
				 uint64_t *ret)
{
	uint64_t before = 0;
	unsigned chosen = 0;

	if (count > pages->all)
		count = (unsigned)pages->all;
	for (size_t i = 0; chosen < count && i < pages->count; before += pages->extents[i++].pages)
		for (; chosen < count; chosen++) {
			uint64_t page = page_of_part(chosen, pages->all, count);
			if (page >= before + pages->extents[i].pages)
				break;
			ret[chosen] = pages->extents[i].start + (page - before) * PAGE_BYTES;
		}
	return chosen;
}

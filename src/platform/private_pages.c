// SPDX-License-Identifier: MIT
#include "private_pages.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"

#define PAGE_BYTES 4096U
#define STEP UINT64_C(0x9e3779b97f4a7c15) /* no program has this stride */

struct mapping {
	char permissions[5];
	uint64_t inode;
	const char *path;
	struct nm_extent extent;
};

/* Parses a line of /proc/PID/maps (proc(5)). */
static bool parse(const char *line, struct mapping *ret)
{
	uint64_t start, end;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64 " %n", &start, &end,
		   ret->permissions, &ret->inode, &path) != 4 ||
	    start % PAGE_BYTES || end <= start || strlen(ret->permissions) != 4)
		return false;
	ret->path = line + path;
	ret->extent = (struct nm_extent){start, (end - start) / PAGE_BYTES};
	return true;
}

/* MAP_ANONYMOUS memory of huge pages appears as the file /anon_hugepage. */
static bool is_anonymous_huge(const struct mapping *mapping)
{
	return strncmp(mapping->path, "/anon_hugepage", strlen("/anon_hugepage")) == 0;
}

/* Returns whether it is data that stays where it is. Files of programs and libraries are smaller.
 */
static bool stays(const struct mapping *mapping)
{
	uint64_t bytes = mapping->extent.pages * PAGE_BYTES;

	if (mapping->permissions[0] != 'r' || mapping->permissions[2] == 'x')
		return false;
	return mapping->permissions[3] == 's' ||
	       (mapping->inode != 0 && bytes > NM_PROC_PROGRAM_BYTES);
}

static void add(struct nm_extents *extents, const struct nm_extent *extent)
{
	NM_RESERVE(extents->items, extents->capacity, extents->count);
	extents->items[extents->count++] = *extent;
	extents->all += extent->pages;
}

static void add_mapping(struct nm_private_pages *pages, const struct mapping *mapping)
{
	bool huge = is_anonymous_huge(mapping), private = mapping->permissions[3] == 'p';

	if (private && strncmp(mapping->permissions, "rw", 2) == 0 &&
	    (mapping->inode == 0 || huge)) {
		add(&pages->own, &mapping->extent);
		pages->own_huge_bytes += huge ? mapping->extent.pages * PAGE_BYTES : 0;
	} else if (stays(mapping)) {
		add(&pages->staying, &mapping->extent);
	}
}

ssize_t nm_private_pages_add(struct nm_private_pages *pages, char *text, size_t length)
{
	struct mapping mapping;
	char *line = text;

	for (char *end; (end = memchr(line, '\n', (size_t)(text + length - line)));
	     line = end + 1) {
		*end = '\0';
		if (parse(line, &mapping))
			add_mapping(pages, &mapping);
	}
	return line - text;
}

void nm_private_pages_clear(struct nm_private_pages *pages)
{
	free(pages->own.items);
	free(pages->staying.items);
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

unsigned nm_extents_choose(const struct nm_extents *extents, unsigned count, uint64_t *ret)
{
	uint64_t before = 0;
	unsigned chosen = 0;

	if (count > extents->all)
		count = (unsigned)extents->all;
	for (size_t i = 0; chosen < count && i < extents->count;
	     before += extents->items[i++].pages)
		for (; chosen < count; chosen++) {
			uint64_t page = page_of_part(chosen, extents->all, count);
			if (page >= before + extents->items[i].pages)
				break;
			ret[chosen] = extents->items[i].start + (page - before) * PAGE_BYTES;
		}
	return chosen;
}

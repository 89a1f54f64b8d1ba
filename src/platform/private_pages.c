// SPDX-License-Identifier: MIT
#include "private_pages.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PAGE_BYTES 4096U
#define STEP UINT64_C(0x9e3779b97f4a7c15) /* so that no program's stride is ours */

struct extent {
	uint64_t start, pages;
};

/* proc(5), /proc/PID/maps. MAP_ANONYMOUS of huge pages shows as the file /anon_hugepage. */
static bool parse(const char *line, struct extent *ret)
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
	*ret = (struct extent){start, (end - start) / PAGE_BYTES};
	return true;
}

/* The next line behind *at that is such a mapping. */
static bool next_extent(const char *text, size_t length, size_t *at, struct extent *ret)
{
	while (*at < length) {
		const char *line = text + *at;
		*at += strlen(line) + 1;
		if (parse(line, ret))
			return true;
	}
	return false;
}

/* Of the pages [k * all / count, (k + 1) * all / count) one, by chance. */
static uint64_t page_of_part(uint64_t k, uint64_t all, uint64_t count)
{
	uint64_t whole = all / count, rest = all % count;
	uint64_t first = k * whole + k * rest / count;
	uint64_t next = (k + 1) * whole + (k + 1) * rest / count;

	return first + ((k + 1) * STEP >> 32) % (next - first);
}

unsigned nm_private_pages_choose(char *text, size_t length, unsigned count, uint64_t *ret)
{
	struct extent extent;
	uint64_t all = 0, before = 0;
	unsigned chosen = 0;

	for (char *end = text; (end = memchr(end, '\n', (size_t)(text + length - end)));)
		*end = '\0';
	for (size_t at = 0; next_extent(text, length, &at, &extent);)
		all += extent.pages;
	if (count > all)
		count = (unsigned)all;
	for (size_t at = 0; chosen < count && next_extent(text, length, &at, &extent);
	     before += extent.pages)
		for (; chosen < count; chosen++) {
			uint64_t page = page_of_part(chosen, all, count);
			if (page >= before + extent.pages)
				break;
			ret[chosen] = extent.start + (page - before) * PAGE_BYTES;
		}
	return chosen;
}

// SPDX-License-Identifier: MIT
/* Detects language runtimes by the mappings of a process. Pure. */
#include "numa-migrd/proc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/exclusions.h"

#define GO_HEAP_AMD64 UINT64_C(0xc000000000)
#define GO_HEAP_ARM64 UINT64_C(0x4000000000)
#define GO_TABLE_BYTES UINT64_C(0x20000000) /* 2^48 / 4 MiB entries of 8 bytes */

struct mapping {
	uint64_t begin, end, inode;
	char permissions[5];
	const char *path; /* "": none */
};

static bool is_jvm(const struct mapping *mapping)
{
	const char *name = strrchr(mapping->path, '/');
	return mapping->inode != 0 && name &&
	       (strcmp(name, "/libjvm.so") == 0 || strcmp(name, "/libjvm.so (deleted)") == 0);
}

/*
 * Of a table that Go reserves, one page or a few are used; in the next table, pages at the same
 * place, exactly one table's length further.
 */
static bool ends_table(struct nm_runtime_search *search, const struct mapping *mapping)
{
	bool used = strcmp(mapping->permissions, "rw-p") == 0;
	bool unused = strcmp(mapping->permissions, "---p") == 0;
	if (unused && mapping->begin == search->mark_end) {
		search->unused_end = mapping->end;
		return false;
	}
	if (used && search->unused_end && mapping->begin == search->unused_end &&
	    mapping->begin - search->mark == GO_TABLE_BYTES)
		return true;
	search->mark = used ? mapping->begin : 0;
	search->mark_end = used ? mapping->end : 0;
	search->unused_end = 0;
	return false;
}

static bool is_go(struct nm_runtime_search *search, const struct mapping *mapping)
{
	static const char named[] = "[anon: Go:";
	if (strncmp(mapping->path, named, strlen(named)) == 0)
		return true;
	if (mapping->inode != 0 || mapping->path[0] != '\0')
		return false;
	return mapping->begin == GO_HEAP_AMD64 || mapping->begin == GO_HEAP_ARM64 ||
	       ends_table(search, mapping);
}

static void note_program(struct nm_runtime_search *search, const struct mapping *mapping)
{
	if (search->program_known || mapping->inode == 0 || mapping->path[0] == '\0')
		return;
	search->program_known = true;
	search->program = nm_excluded_program_in(mapping->path);
}

/* Takes a line of /proc/PID/maps (proc(5)). */
static void take_line(struct nm_runtime_search *search)
{
	struct mapping mapping;
	int path = 0;
	search->line[search->used] = '\0';
	if (!search->too_long &&
	    sscanf(search->line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64 " %n",
		   &mapping.begin, &mapping.end, mapping.permissions, &mapping.inode, &path) == 4 &&
	    path > 0) {
		mapping.path = search->line + path;
		note_program(search, &mapping);
		if (is_jvm(&mapping))
			search->found = NM_RUNTIME_JVM;
		else if (is_go(search, &mapping))
			search->found = NM_RUNTIME_GO;
	}
	search->used = 0;
	search->too_long = false;
}

void nm_runtime_search(struct nm_runtime_search *search, const char *text, size_t length)
{
	for (size_t i = 0; i < length && search->found == NM_RUNTIME_NONE; i++) {
		if (text[i] == '\n')
			take_line(search);
		else if (search->used + 1 < sizeof(search->line))
			search->line[search->used++] = text[i];
		else
			search->too_long = true;
	}
}

// SPDX-License-Identifier: MIT
/* Determines the program of a process by its mappings. Pure. */
#include "numa-migrd/proc.h"

#include <inttypes.h>
#include <stdio.h>

#include "config/exclusions.h"

/* Takes a line of /proc/PID/maps (proc(5)). */
static void take_line(struct nm_program_search *search)
{
	uint64_t inode;
	int path = 0;
	search->line[search->used] = '\0';
	if (!search->too_long &&
	    sscanf(search->line, "%*x-%*x %*s %*x %*s %" SCNu64 " %n", &inode, &path) == 1 &&
	    path > 0 && inode != 0 && search->line[path] != '\0') {
		search->known = true;
		search->program = nm_excluded_program_in(search->line + path);
	}
	search->used = 0;
	search->too_long = false;
}

void nm_program_search(struct nm_program_search *search, const char *text, size_t length)
{
	for (size_t i = 0; i < length && !search->known; i++) {
		if (text[i] == '\n')
			take_line(search);
		else if (search->used + 1 < sizeof(search->line))
			search->line[search->used++] = text[i];
		else
			search->too_long = true;
	}
}

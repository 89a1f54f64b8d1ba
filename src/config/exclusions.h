/* SPDX-License-Identifier: MIT */
/*
 * The processes that are not managed unless the configuration names them: the one list of default
 * exclusions, which numa-migrd.conf(5) shows and `numa-migrctl explain process` cites. Pure.
 */
#ifndef NUMA_MIGRD_EXCLUSIONS_H
#define NUMA_MIGRD_EXCLUSIONS_H

#include <stdbool.h>
#include <stddef.h>

enum nm_exclusion {
	NM_EXCLUSION_NONE,
	NM_EXCLUSION_HOST_INIT,
	NM_EXCLUSION_OWN,
	NM_EXCLUSION_USER_MANAGER,
	NM_EXCLUSION_CONTAINER_INIT,
	NM_EXCLUSION_BEFORE_EXEC,
	NM_EXCLUSIONS
};

struct nm_exclusion_row {
	const char *text;     /* completes "excluded by default: …" */
	bool may_be_included; /* by a pattern of targets.include with its command */
};
const struct nm_exclusion_row *nm_exclusion_row(enum nm_exclusion exclusion);

/* A program that is excluded in some places: by an exclusion whose bit is set in `exclusions`. */
struct nm_excluded_program {
	const char *file;    /* name of its file, without folders */
	const char *command; /* of the process, if the file is several programs; otherwise NULL */
	unsigned exclusions; /* bits 1 << enum nm_exclusion */
};
extern const struct nm_excluded_program nm_excluded_programs[];
extern const size_t nm_excluded_program_count;

/* Numbers of programs begin with 1; 0: any other program. Fewer than 256. */

/* Returns the number of the program in this file: a path, as in /proc/PID/maps. */
unsigned nm_excluded_program_in(const char *path);
/* Returns the number of the program whose processes have this command by default, of which the
 * kernel keeps 15 bytes. Every user can set it: used only where the program cannot be read. */
unsigned nm_excluded_program_called(const char *command);
/* Returns whether a process with this command, which runs the program with this number, is excluded
 * in the place that the exclusion means. */
bool nm_excludes_program(enum nm_exclusion exclusion, unsigned number, const char *command);

#endif

/* SPDX-License-Identifier: MIT */
/* Collects facts through the platform's operations; a failure to read is also a fact. */
#ifndef NUMA_MIGRD_DOCTOR_GATHER_H
#define NUMA_MIGRD_DOCTOR_GATHER_H

#include "doctor.h"
#include "facts.h"
#include "numa-migrd/platform.h"

/* Collects all facts. Returns 0, or the negative errno of opening the root. The caller must
 * clear the facts in any case. */
int nm_facts_gather(const struct nm_doctor_options *options, struct nm_facts *facts);

/* The parts that follow the machine, in this order: later ones use the results of earlier ones. */
int nm_gather_processes(struct nm_platform *platform, struct nm_facts *facts);
/* Counts a process if it is one for which little can be done. */
void nm_gather_program(struct nm_platform *platform, unsigned long pid, const char *comm,
		       struct nm_facts *facts);
void nm_gather_cgroups(struct nm_platform *platform, struct nm_facts *facts);
void nm_gather_unit(const struct nm_doctor_options *options, struct nm_facts *facts);
void nm_gather_service(struct nm_platform *platform, const struct nm_doctor_options *options,
		       struct nm_facts *facts);
void nm_gather_sampling(struct nm_platform *platform, const struct nm_doctor_options *options,
			struct nm_facts *facts);

/* Reads the first line of the file without its newline, escaped; "" if it cannot be read. */
void nm_gather_line(struct nm_platform *platform, const char *path, char *ret, size_t size);

/*
 * For "always [madvise] never" returns the word in brackets; a line without brackets is unchanged.
 */
void nm_gather_choice(struct nm_platform *platform, const char *path, char *ret, size_t size);

struct nm_reading nm_gather_number(struct nm_platform *platform, const char *path);

/* Returns whether the directory contains this name; `value` is 1 or 0. */
struct nm_reading nm_gather_name(struct nm_platform *platform, const char *directory,
				 const char *name);

#endif

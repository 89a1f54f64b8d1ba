/* SPDX-License-Identifier: MIT */
/* Facts are read through the platform's ops; what cannot be read is a fact as well. */
#ifndef NUMA_MIGRD_DOCTOR_GATHER_H
#define NUMA_MIGRD_DOCTOR_GATHER_H

#include "facts.h"
#include "numa-migrd/doctor.h"
#include "numa-migrd/platform.h"

/* All of it. Returns 0, -ENOMEM, or -errno of opening the root. The facts are to be cleared in any
 * case. */
int nm_facts_gather(const struct nm_doctor_options *options, struct nm_facts *facts);

/* Its parts, in this order: later ones look at what earlier ones found. */
int nm_gather_machine(struct nm_platform *platform, const char *root_path, struct nm_facts *facts);
int nm_gather_processes(struct nm_platform *platform, struct nm_facts *facts);
void nm_gather_cgroups(struct nm_platform *platform, struct nm_facts *facts);
void nm_gather_unit(const struct nm_doctor_options *options, struct nm_facts *facts);
int nm_gather_service(struct nm_platform *platform, const struct nm_doctor_options *options,
		      struct nm_facts *facts);
void nm_gather_sampling(struct nm_platform *platform, const struct nm_doctor_options *options,
			struct nm_facts *facts);

/* The file's first line without what ends it, escaped; "" where it cannot be read. */
void nm_gather_line(struct nm_platform *platform, const char *path, char *ret, size_t size);

/* Of "always [madvise] never" the word in brackets; a line without any as it is. */
void nm_gather_choice(struct nm_platform *platform, const char *path, char *ret, size_t size);

struct nm_reading nm_gather_number(struct nm_platform *platform, const char *path);

/* Is there a file or directory of that name in the directory? `value` is 1 or 0. */
struct nm_reading nm_gather_name(struct nm_platform *platform, const char *directory,
				 const char *name);

#endif

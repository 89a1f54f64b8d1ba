/* SPDX-License-Identifier: MIT */
/*
 * The node of an access whose sample has no physical address: Intel's comes from a look-up that
 * fails for pages not mapped at that moment. Unresolved samples wait for one batched question per
 * process, and then for its answer: until a later drain, or without it for two intervals at most.
 */
#ifndef NUMA_MIGRD_SAMPLE_HOME_H
#define NUMA_MIGRD_SAMPLE_HOME_H

#include "numa-migrd/sample.h"

struct nm_homes;

/* The caller frees. The platform must outlive it. Returns NULL without memory. */
struct nm_homes *nm_homes_new(struct nm_platform *platform);
void nm_homes_free(struct nm_homes *homes);

/* A sink that passes everything on to `inner`, accesses with their home where it takes asking. */
struct nm_sample_sink nm_homes_sink(struct nm_homes *homes, const struct nm_topology *topology,
				    const struct nm_sample_sink *inner);

/* Passes on what has been answered, and asks for the homes of what waits; never waits itself. At the
 * end of each drain. */
void nm_homes_flush(struct nm_homes *homes);

/* Nodes have other numbers from now on: what was answered is asked again. */
void nm_homes_renumber(struct nm_homes *homes);

/* Answers are forgotten after some of these, since pages move. Once per interval. */
void nm_homes_age(struct nm_homes *homes);

#endif

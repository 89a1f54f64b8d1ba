/* SPDX-License-Identifier: MIT */
/*
 * Determines the node of accesses whose samples have no physical address: Intel's results from a
 * lookup that fails for pages not mapped at that moment. Such samples are collected for one batched
 * query per process, and then wait for its answer: until a later drain, or for at most two
 * intervals without one.
 */
#ifndef NUMA_MIGRD_SAMPLE_HOME_H
#define NUMA_MIGRD_SAMPLE_HOME_H

#include "numa-migrd/sample.h"

struct nm_homes;

/* Creates the object, which the caller frees. The platform must outlive it. Returns NULL if memory
 * is short. */
struct nm_homes *nm_homes_new(struct nm_platform *platform);
void nm_homes_free(struct nm_homes *homes);

/* Returns a sink that passes all records on to `inner`, and accesses with their node if a query is
 * needed for it. */
struct nm_sample_sink nm_homes_sink(struct nm_homes *homes, const struct nm_topology *topology,
				    const struct nm_sample_sink *inner);

/* Passes on samples with answers, and submits queries for the others; never waits. Called at the
 * end of each drain. */
void nm_homes_flush(struct nm_homes *homes);

/* Discards answers because node indices have changed; the queries are repeated. */
void nm_homes_renumber(struct nm_homes *homes);

/* Expires old answers, because pages move. Called once per interval. */
void nm_homes_age(struct nm_homes *homes);

#endif

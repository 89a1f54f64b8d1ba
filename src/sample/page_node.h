/* SPDX-License-Identifier: MIT */
/*
 * Determines the node of accesses whose samples have no physical address: Intel's results from a
 * lookup that fails for pages not mapped at that moment. Such samples are collected for one batched
 * query per process, and then wait for its answer: until a later drain, or for at most two
 * intervals without one.
 */
#ifndef NUMA_MIGRD_SAMPLE_PAGE_NODE_H
#define NUMA_MIGRD_SAMPLE_PAGE_NODE_H

#include "sample/sample.h"

struct nm_page_nodes;

/* Creates the object, which the caller frees. The platform must outlive it. Returns NULL if memory
 * is short. */
struct nm_page_nodes *nm_page_nodes_new(struct nm_platform *platform);
void nm_page_nodes_free(struct nm_page_nodes *page_nodes);

/* Returns a sink that passes all records on to `inner`, and accesses with their node if a query is
 * needed for it. */
struct nm_sample_sink nm_page_nodes_sink(struct nm_page_nodes *page_nodes,
					 const struct nm_topology *topology,
					 const struct nm_sample_sink *inner);

/* Passes on samples with answers, and submits queries for the others; never waits. */
void nm_page_nodes_flush(struct nm_page_nodes *page_nodes);

/* Discards answers because node indices have changed; the queries are repeated. */
void nm_page_nodes_clear(struct nm_page_nodes *page_nodes);

/* Expires old answers, because pages move. */
void nm_page_nodes_age(struct nm_page_nodes *page_nodes);

#endif

/* SPDX-License-Identifier: MIT */
/* The state of the stages. */
#ifndef NM_DAEMON_PIPELINE_H
#define NM_DAEMON_PIPELINE_H

#include "mover/mover.h"
#include "policy/policy.h"

struct nm_balancer;
struct nm_placement;

/* The state of the stages: built at start and resume, destroyed at pause and stop. */
struct nm_pipeline {
	struct nm_platform *platform;
	struct nm_topology *topology;
	struct nm_physmap *physmap;
	struct nm_source *source;    /* NULL: no sampling source, see no_source_until_ns */
	uint64_t no_source_until_ns; /* time of the next attempt to open it */
	uint64_t latency_seen;	     /* interval of its last latency; 0: none */
	struct nm_metrics *metrics;
	struct nm_task_table *tasks;
	struct nm_moves *moves;
	struct nm_assignments *assignments;
	struct nm_verifier *verifier;
	struct nm_policies policies;
	struct nm_feedback *feedback;	 /* IMAR² only */
	struct nm_memory *memory;	 /* NULL: not needed, see nm_pipeline_configure_pages() */
	struct nm_page_stage *pages;	 /* NULL: pages are not moved */
	struct nm_migrations migrations; /* of homes and of pages */
	struct nm_mover *mover;		 /* NULL unless `pages` or the state of "auto" exists */
};

/* Return the state of policy "auto" or "balance"; NULL: another policy, or not yet. */
static inline struct nm_placement *nm_placement_of(const struct nm_pipeline *pipeline)
{
	return pipeline->policies.states[NM_POLICY_AUTO];
}
static inline struct nm_balancer *nm_balancer_of(const struct nm_pipeline *pipeline)
{
	return pipeline->policies.states[NM_POLICY_BALANCE];
}

/* Opens the state of a policy. */
void nm_open_policy(struct nm_pipeline *pipeline, enum nm_thread_policy policy);
/* Creates the mover if there is none. */
void nm_open_mover(struct nm_pipeline *pipeline, const struct nm_config *config);
void nm_release_mover(struct nm_pipeline *pipeline, bool bulk);

#endif

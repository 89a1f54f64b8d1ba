/* SPDX-License-Identifier: MIT */
/* Parts of the pipeline that open when a policy needs them. */
#include <unistd.h>

#include "pipeline.h"

void nm_open_mover(struct nm_pipeline *pipeline, const struct nm_config *config)
{
	if (!pipeline->mover)
		nm_mover_new(pipeline->platform, pipeline->topology, config, &pipeline->mover);
}

void nm_release_mover(struct nm_pipeline *pipeline, bool bulk)
{
	if (pipeline->mover && (pipeline->pages || nm_placement_of(pipeline)))
		nm_mover_discard(pipeline->mover, bulk);
	else
		nm_mover_free(NM_TAKE(pipeline->mover));
}

void nm_open_policy(struct nm_pipeline *pipeline, enum nm_thread_policy policy)
{
	nm_policies_open(&pipeline->policies, policy, pipeline->topology,
			 (double)sysconf(_SC_PAGESIZE));
}

/* SPDX-License-Identifier: MIT */
/* Builds and destroys the pipeline, and adapts it to the configuration and the machine. */
#ifndef NM_DAEMON_PIPELINE_BUILD_H
#define NM_DAEMON_PIPELINE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

struct nm_daemon;

int nm_pipeline_open(struct nm_daemon *daemon);
/* Opens only the platform, to examine a process while the daemon is paused; nm_pipeline_close()
 * closes it. */
int nm_pipeline_open_platform(struct nm_daemon *daemon);
void nm_pipeline_close(struct nm_daemon *daemon);
/* Frees what the stages keep while the pipeline is closed. */
void nm_pipeline_clear(struct nm_daemon *daemon);
/* Resets the states of the policies, and the feedback. */
void nm_pipeline_reset_performance(struct nm_daemon *daemon);
/* Starts, reconfigures or stops the tracking of pages, and their moves, according to the
 * configuration. restart: node indices have changed. */
void nm_pipeline_configure_pages(struct nm_daemon *daemon, bool restart);
/* Loads the topology again for all stages if CPUs, nodes, memory blocks or isolation have changed.
 */
void nm_pipeline_follow_machine(struct nm_daemon *daemon, uint64_t now_ns);
/* Opens or reopens the source of the current configuration, and logs what is unavailable. */
void nm_pipeline_open_source(struct nm_daemon *daemon);

#endif

/* SPDX-License-Identifier: MIT */
/* The daemon as a function: what main() and the benches call. */
#ifndef NUMA_MIGRD_DAEMON_H
#define NUMA_MIGRD_DAEMON_H

#include <stdbool.h>

#include "numa-migrd/platform.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/topology.h"

struct nm_decision_lines;

struct nm_options {
	const char *config_path;
	struct nm_topology_source
		topology; /* zeros: this machine; otherwise a made-up one, in benches */
	bool check_config, dry_run, restore, version, help, list_events;
	const char *pmu; /* entry of the event table to list; NULL: this machine */
	/* Opens a made-up machine in place of this one, in tests; NULL: nm_platform_linux_new(). */
	int (*open_platform)(void *context, const struct nm_platform_options *options,
			     struct nm_platform **ret);
	void *platform_context;
	uint32_t own_pid; /* of the daemon that is replayed; 0: this process */
	/* Samples in place of what is sampled, and pages are moved without a thread; NULL: neither.
	 */
	const struct nm_feed *feed;
	struct nm_decision_lines *lines; /* of a simulation; NULL: none are wanted */
};

/*
 * Runs as the options say until SIGTERM or SIGINT. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE, or EX_CONFIG (sysexits.h). With `restore` it only returns what a crashed run left.
 */
int nm_daemon_run(const struct nm_options *options);

#endif

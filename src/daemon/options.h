/* SPDX-License-Identifier: MIT */
/* The daemon as a function, which main() and the benchmarks call. */
#ifndef NM_DAEMON_OPTIONS_H
#define NM_DAEMON_OPTIONS_H

#include <stdbool.h>

#include "numa-migrd/platform.h"
#include "numa-migrd/topology.h"
#include "sample/sample.h"

struct nm_decision_lines;

struct nm_options {
	struct nm_config_files config;
	uint64_t seed; /* 0: from the kernel */
	struct nm_topology_source
		/* All zero: this machine. Benchmarks pass a synthetic topology. */
		topology;
	bool check_config, dry_run, restore, version, help, list_events;
	bool json, no_trial; /* with list_events */
	const char *pmu;     /* entry of the event table to list; NULL: that of this machine */
	/*
	 * Opens a synthetic machine instead of this one, in tests; NULL: nm_platform_linux_new().
	 */
	int (*open_platform)(void *context, const struct nm_platform_options *options,
			     struct nm_platform **ret);
	void *platform_context;
	/* Synthetic samples. If set, the sampling source is not opened. NULL: none. */
	const struct nm_feed *feed;
	struct nm_decision_lines *lines; /* output of a simulation; NULL: none */
};

/* Opens this machine, or the synthetic one of a test. */
int nm_machine_open_platform(const struct nm_options *asked,
			     const struct nm_platform_options *options, struct nm_platform **ret);

/*
 * Runs with these options until SIGTERM or SIGINT. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE, or EX_CONFIG (sysexits.h). With `restore` it only restores the changes that a
 * crashed run left.
 */
int nm_daemon_run(const struct nm_options *options);

#endif

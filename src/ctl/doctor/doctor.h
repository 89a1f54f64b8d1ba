/* SPDX-License-Identifier: MIT */
/*
 * numa-migrctl doctor: examines the machine, its settings and the service of numa-migrd, and
 * reports what numa-migrd would do here, what it cannot do, and how to change that. It needs no
 * daemon and works for any user; it reports what the user may not see. Facts are first collected
 * and then judged; the judging is pure.
 */
#ifndef NM_CTL_DOCTOR_DOCTOR_H
#define NM_CTL_DOCTOR_DOCTOR_H

#include "../findings.h"

#define NM_DAEMON_PROGRAM "/usr/sbin/numa-migrd"

struct sd_bus;
struct json_t;

struct nm_doctor_options {
	const char *root_path;	 /* "/" except in tests */
	const char *config_path; /* NULL: /etc/numa-migrd.conf; both below the root */
	/*
	 * The program that lists what can be sampled on this machine, regardless of the root. It
	 * opens events for 0.1 s to test whether they work, but not while the daemon runs, which
	 * may need the same counters. NULL: nothing is listed.
	 */
	const char *program;
	const char *running_source; /* sampling source reported by the running daemon; NULL: not
				     * known */
	/* From its last interval: threads with a measured performance, and threads with too few
	 * samples. */
	uint64_t threads_measured, threads_undersampled;
	/* The trial of the running daemon, which may be over, and its result; NULL: none. */
	const char *trial_state, *trial_result;
	/* The system bus, for queries about the unit to systemd; NULL: no connection. bus_error is
	 * the reason (negative errno; 0: not tried). */
	struct sd_bus *bus;
	int bus_error;
};

/* Adds the findings to *ret, and unless NULL sets *ret_facts, which the caller releases, to facts
 * that contain no name. Returns 0 regardless of the findings, or a negative errno if /proc cannot
 * be read. */
int nm_doctor_run(const struct nm_doctor_options *options, struct nm_findings *ret,
		  struct json_t **ret_facts);

#endif

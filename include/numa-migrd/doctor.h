/* SPDX-License-Identifier: MIT */
/*
 * Looks at the machine, its settings and numa-migrd's own service, and tells what numa-migrd would
 * do here, what it cannot, and what would change that (numa-migrctl doctor). Needs no daemon, works
 * for any user, and says what that user cannot see. First facts are gathered, then judged; the
 * judging is pure.
 */
#ifndef NUMA_MIGRD_DOCTOR_H
#define NUMA_MIGRD_DOCTOR_H

#include "numa-migrd/findings.h"

struct sd_bus;

/* One thing that is looked at; each gives one finding, in the order of the table. */
struct nm_doctor_check {
	const char *name;  /* the findings' `check` */
	const char *about; /* what it looks at, as half a sentence */
};

/* All of them. docs/troubleshooting.md has a row for each, which a test holds it to. */
const struct nm_doctor_check *nm_doctor_checks(size_t *ret_count);

struct nm_doctor_options {
	const char *root_path;	 /* "/" but in tests */
	const char *config_path; /* NULL: /etc/numa-migrd.conf; both below the root */
	/*
	 * Open events for a tenth of a second and write-protect a page of our own, to see whether
	 * they work: of this machine only, whatever the root. Events are not opened while the
	 * daemon runs, which may want the same counters.
	 */
	bool try_out;
	const char *running_source; /* what the running daemon reports to sample; NULL: not known */
	/* Of its last interval: threads whose performance was measured, and with too few samples.
	 */
	uint64_t threads_measured, threads_undersampled;
	uint64_t workers_stuck, workers_given_up; /* likewise: now, and since its start */
	/* The system bus, by which systemd is asked about the unit; NULL: it was not reached, and
	 * bus_error says why (-errno; 0: it was not tried). */
	struct sd_bus *bus;
	int bus_error;
};

/*
 * Adds the findings to *ret. Returns 0, whatever was found; -ENOMEM; -errno where not even /proc
 * can be read. numa-migrctl.
 */
int nm_doctor_run(const struct nm_doctor_options *options, struct nm_findings *ret);

#endif

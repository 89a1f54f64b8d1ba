/* SPDX-License-Identifier: MIT */
/*
 * First pass over a recording: determines its length, and the most important threads and processes.
 */
#ifndef NM_REPORT_CENSUS_H
#define NM_REPORT_CENSUS_H

#include "numa-migrd/base.h"
#include "numa-migrd/recording.h"

/* A thread or a process. */
struct nm_seen {
	uint32_t id, pid; /* tid or pid; process */
	double busy_s;	  /* CPU time, plus a small value for its presence, so that the order is
			   * defined */
	char comm[NM_COMM_BYTES];
};

struct nm_seen_table {
	struct nm_seen *items;
	size_t count, room;
	struct nm_tidmap *by_id;
};

struct nm_census {
	struct nm_seen_table threads, processes;
	uint64_t intervals, decisions;
	uint64_t first_ns, last_ns; /* beginning of the first interval, and end of the last */
	double interval_s;	    /* of the current interval */
};

/* Reads the whole recording. Returns 0, -ENOMEM, or the error of nm_recording_next(). The caller
 * clears it. */
int nm_census_take(struct nm_recording *recording, struct nm_census *ret);
void nm_census_clear(struct nm_census *census);

/* Returns the last entry with that id; NULL: none. */
const struct nm_seen *nm_seen_find(const struct nm_seen_table *table, uint32_t id);

/* Returns 0 for NaN, and for values that no thread can have. */
double nm_census_sane(double value);
/* Returns the recorded length of an interval, limited to plausible values. */
double nm_census_seconds(const struct nm_recorded_interval *about);

#endif

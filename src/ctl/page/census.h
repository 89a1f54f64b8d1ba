/* SPDX-License-Identifier: MIT */
/* First reading of a recording: how long it is, and which threads and processes matter most. */
#ifndef NM_REPORT_CENSUS_H
#define NM_REPORT_CENSUS_H

#include "numa-migrd/recording.h"
#include "numa-migrd/tidmap.h"

/* More than these are not kept: the less busy half goes, and is counted. */
#define NM_CENSUS_MOST 131072U

/* A thread or a process. */
struct nm_seen {
	uint32_t id, pid; /* tid or pid; whose it is */
	double busy_s;	  /* CPU time; a little for being there, so that there is an order at all */
	double shared;	  /* sharings with others, over all intervals; threads */
	bool has_roof;	  /* operations and intensity are known in some interval; threads */
	uint64_t most_pages; /* sampled ones, when they were most; processes */
	char comm[NM_COMM_BYTES];
};

struct nm_seen_table {
	struct nm_seen *items;
	size_t count, room;
	struct nm_tidmap *by_id;
	uint64_t dropped;
};

struct nm_census {
	struct nm_seen_table threads, processes;
	uint64_t intervals, decisions;
	uint64_t first_ns, last_ns; /* from the beginning of the first interval to the last's end */
	double interval_s;	    /* of the one that is being read */
};

/* Reads all of it. What nm_recording_next() returns on failure, -ENOMEM; the caller clears. */
int nm_census_take(struct nm_recording *recording, struct nm_census *ret);
void nm_census_clear(struct nm_census *census);

/* The last one with that id; NULL: not met, or dropped. */
const struct nm_seen *nm_seen_find(const struct nm_seen_table *table, uint32_t id);

/* 0 for what is no number, or nothing that a thread can do or have. */
double nm_census_sane(double value);
/* How long an interval was said to be, within reason. */
double nm_census_seconds(const struct nm_recorded_interval *about);

#endif

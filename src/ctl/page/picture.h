/* SPDX-License-Identifier: MIT */
/* The contents of a page as values: the busiest threads and processes, and time in bins. Its size
 * does not depend on that of the recording. */
#ifndef NM_REPORT_PICTURE_H
#define NM_REPORT_PICTURE_H

#include "numa-migrd/base.h"
#include "numa-migrd/recording.h"

/* ---- census: the first pass, for the length and the most important threads ---- */

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

/* ---- picture ---- */

#define NM_PICTURE_BINS 240U	    /* number of time bins */
#define NM_PICTURE_DECISIONS 20000U /* number of last decisions that are marked */
#define NM_PICTURE_TOLD 100U	    /* number of these that are described as text */

enum nm_picked {
	NM_PICKED_TRACKS, /* threads on the timeline */
	NM_PICKED_LINES,  /* processes with a separate line of the local access ratio */
	NM_PICKED_KINDS
};

struct nm_pick {
	struct nm_seen *items; /* the busiest first */
	size_t count;
	uint64_t more; /* number of others that were not selected */
};

struct nm_mean {
	double sum, weight;
};

/* Verdicts as in enum nm_verdict_kind, and states without one. */
enum { NM_SHOWN_OPEN = NM_VERDICT_INCONCLUSIVE + 1, NM_SHOWN_NOT_DONE, NM_SHOWN_STATES };

/* A decision. */
struct nm_shown_decision {
	uint64_t id;
	double at_s;
	enum nm_decision_kind kind;
	uint8_t state;
	uint8_t nr_threads;	   /* 0 for homes and pages */
	uint32_t tids[2], pids[2]; /* pids[0] also for homes and pages */
	int from[2], to[2];	   /* nodes; -1: none or several */
	char *said, *judged;	   /* texts of the journal; NULL: none, or not kept */
};

struct nm_picture {
	const struct nm_census *census;
	const char *name;
	double span_s;

	bool has_start;
	struct nm_recorded_start start; /* with copied texts; NULL if too large */
	char *config_name, *config;
	char *end;    /* NULL: the recording has no end */
	char *source; /* name of the sampling source; NULL: none was open */
	uint64_t torn;
	unsigned nr_nodes, nr_cpus;
	uint64_t memory_bytes;

	struct nm_pick picked[NM_PICKED_KINDS];
	uint16_t *tracks; /* NM_PICTURE_BINS each: node + 1; 0: not seen */
	struct nm_mean overall[NM_PICTURE_BINS];
	struct nm_mean *lines; /* NM_PICTURE_BINS each */

	struct nm_shown_decision *decisions; /* the last ones, in the order of their ids */
	size_t nr_decisions, room_decisions;
	uint64_t skipped_decisions;	  /* number of earlier ones */
	uint64_t states[NM_SHOWN_STATES]; /* of those in the list */
	uint64_t pages_moved;
	/* Values of the current interval. */
	double now_s, length_s;
	unsigned first_bin, last_bin;
};

/* Selects, and allocates room for the data. The census must outlive it. Returns 0 or -ENOMEM. The
 * caller frees it. */
int nm_picture_new(const struct nm_census *census, const char *name, struct nm_picture **ret);
void nm_picture_free(struct nm_picture *picture);
NM_DEFINE_CLEANUP(struct nm_picture, nm_picture_free);

/* Second pass. Returns 0, -ENOMEM, or the error of nm_recording_next(). */
int nm_picture_gather(struct nm_picture *picture, struct nm_recording *recording);

/* Returns the index among the selected, or -1. */
int nm_picked_index(const struct nm_pick *pick, uint32_t id, uint32_t pid);

/* Returns NULL if the decision was not kept. */
struct nm_shown_decision *nm_picture_decision(const struct nm_picture *picture, uint64_t id);

/* Returns the name of the process's program; "?" if not known. */
const char *nm_picture_comm(const struct nm_picture *picture, uint32_t pid);
/* Writes the name as an element, which isolates its reading direction. */
void nm_picture_put_comm(const struct nm_picture *picture, uint32_t pid, FILE *out);

/* ---- the sections of the page: each is a plot, or the reason for its absence ---- */

void nm_show_facts(const struct nm_picture *picture, FILE *out);
void nm_show_timeline(const struct nm_picture *picture, FILE *out);
void nm_show_locality(const struct nm_picture *picture, FILE *out);
void nm_show_decisions(const struct nm_picture *picture, FILE *out);
void nm_show_config(const struct nm_picture *picture, FILE *out);

/* Marks for the states of decisions: their shapes, written once per page; an item of the legend; a
 * name. */
void nm_show_marks(FILE *out);
void nm_show_mark_key(unsigned state, FILE *out);
const char *nm_state_name(unsigned state);

#endif

/* SPDX-License-Identifier: MIT */
/* The contents of a page as values: the busiest threads and processes, and time in bins. Its size
 * does not depend on that of the recording. */
#ifndef NM_REPORT_PICTURE_H
#define NM_REPORT_PICTURE_H

#include "census.h"

#define NM_PICTURE_BINS 240U	/* number of time bins */
#define NM_PICTURE_NODES 64U	/* pages by node are not shown for machines with more nodes */
#define NM_PICTURE_DECISIONS 20000U /* number of last decisions that are marked */
#define NM_PICTURE_TOLD 100U	/* number of these that are described as text */
#define NM_PICTURE_STEPS 12U	/* per trail */
#define NM_PICTURE_TRAILS 6U	/* number of busiest points with a trail */

enum nm_picked {
	NM_PICKED_POINTS, /* threads on the roofline, the busiest first, as in all lists */
	NM_PICKED_TRACKS, /* threads on the timeline */
	NM_PICKED_MATRIX, /* threads with the most communication */
	NM_PICKED_LINES,  /* processes with a separate line of the local access ratio */
	NM_PICKED_SPACES, /* processes with the most tracked pages */
	NM_PICKED_KINDS
};

struct nm_pick {
	struct nm_seen *items;
	size_t count;
	uint64_t more;	 /* number of others that have data, but were not selected */
	uint32_t *by_id; /* indices of items in ascending order of id and pid */
};

/* Sums for one thread, from which its place on the roofline follows. */
struct nm_roof {
	double seconds, operations, bytes;
	double cycles, accesses; /* cycles is latency × accesses */
	double run_s, there_s;	 /* CPU time run_s within there_s seconds */
};

struct nm_mean {
	double sum, weight;
};

struct nm_space {
	bool seen;
	struct nm_exclusivity first, last;
	uint64_t first_pages[NM_PICTURE_NODES], last_pages[NM_PICTURE_NODES];
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
	bool by_locality;		      /* P was derived from locality in some interval */
	struct nm_recorded_proposals stopped; /* summed up */

	struct nm_pick picked[NM_PICKED_KINDS];
	struct nm_roof *roofs;	/* per point */
	struct nm_roof *trails; /* NM_PICTURE_STEPS for each of the first points */
	uint16_t *tracks;	/* NM_PICTURE_BINS each: node + 1; 0: not seen */
	double *matrix;		/* selected × selected: sum of communication */
	uint64_t shared_intervals;
	struct nm_mean overall[NM_PICTURE_BINS];
	struct nm_mean *lines; /* NM_PICTURE_BINS each */
	struct nm_space *spaces;
	uint64_t pages[NM_PICTURE_BINS][NM_PICTURE_NODES]; /* of all tracked processes */
	bool pages_seen[NM_PICTURE_BINS];
	bool any_tracked;

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

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a page shows of a recording, as values: the busiest threads and processes, time in bins. Its
 * size does not follow the recording's.
 */
#ifndef NM_REPORT_PICTURE_H
#define NM_REPORT_PICTURE_H

#include "census.h"

#define NM_PICTURE_BINS 240U	/* of time */
#define NM_PICTURE_NODES 64U	/* pages by node are not shown of machines with more */
#define NM_PICTURE_DEEDS 20000U /* the last decisions: each has a mark */
#define NM_PICTURE_TOLD 100U	/* the last of these: each is told in words */
#define NM_PICTURE_STEPS 12U	/* of a trail */
#define NM_PICTURE_TRAILS 6U	/* the busiest points leave one */

enum nm_picked {
	NM_PICKED_POINTS, /* threads on the roofline, the busiest first, as all here */
	NM_PICKED_TRACKS, /* threads on the timeline */
	NM_PICKED_MATRIX, /* threads that share most */
	NM_PICKED_LINES,  /* processes with a local share of their own */
	NM_PICKED_SPACES, /* processes with the most pages looked at */
	NM_PICKED_KINDS
};

struct nm_pick {
	struct nm_seen *items;
	size_t count;
	uint64_t more;	 /* that were not picked, and would have something to show */
	uint32_t *by_id; /* indices of items in ascending order of id and pid */
};

/* What a thread did: sums, from which the roofline's axes follow. */
struct nm_roof {
	double seconds, operations, bytes;
	double cycles, accesses; /* latency × accesses, accesses */
	double run_s, there_s;	 /* CPU time of so many seconds */
};

struct nm_mean {
	double sum, weight;
};

struct nm_space {
	bool seen;
	struct nm_exclusivity first, last;
	uint64_t first_pages[NM_PICTURE_NODES], last_pages[NM_PICTURE_NODES];
};

enum nm_shown_decision_kind { NM_DEED_MIGRATE, NM_DEED_SWAP, NM_DEED_ROLLBACK, NM_DEED_PAGES };

/* Verdicts as enum nm_verdict_kind has them, and what has none. */
enum { NM_DEED_OPEN = NM_VERDICT_INCONCLUSIVE + 1, NM_DEED_NOT_DONE, NM_DEED_STATES };

/* A decision. */
struct nm_shown_decision {
	uint64_t id;
	double at_s;
	enum nm_shown_decision_kind kind;
	enum nm_thread_policy policy; /* of threads */
	uint8_t state;
	uint8_t nr_threads;	   /* of pages: 0 */
	uint32_t tids[2], pids[2]; /* pids[0] also of pages */
	int from[2], to[2];	   /* nodes, -1: none or several */
	char *said, *judged;	   /* what the journal was told; NULL: nothing, or not kept */
};

struct nm_picture {
	const struct nm_census *census;
	const char *name;
	double span_s;

	bool has_start;
	struct nm_recorded_start start; /* with texts of our own, NULL where too large */
	char *config_name, *config;
	char *end;    /* NULL: it has none */
	char *source; /* name of what is sampled, once it was open; NULL: never */
	uint64_t torn;
	unsigned nr_nodes, nr_cpus;
	uint64_t memory_bytes;
	bool by_locality;		      /* P was locality in an interval */
	struct nm_recorded_proposals stopped; /* summed up */

	struct nm_pick picked[NM_PICKED_KINDS];
	struct nm_roof *roofs;	/* points */
	struct nm_roof *trails; /* NM_PICTURE_STEPS each of the first points */
	uint16_t *tracks;	/* NM_PICTURE_BINS each: node + 1 where it ran, 0: not seen there */
	double *matrix;		/* picked × picked: sharings, summed up */
	uint64_t shared_intervals;
	struct nm_mean overall[NM_PICTURE_BINS];
	struct nm_mean *lines; /* NM_PICTURE_BINS each */
	struct nm_space *spaces;
	uint64_t pages[NM_PICTURE_BINS][NM_PICTURE_NODES]; /* of all processes looked at */
	bool pages_seen[NM_PICTURE_BINS];
	bool any_tracked;

	struct nm_shown_decision *deeds; /* the last ones, in the order of their ids */
	size_t nr_deeds, room_deeds;
	uint64_t skipped_deeds;		 /* before them */
	uint64_t states[NM_DEED_STATES]; /* of those in `deeds` */
	uint64_t pages_moved;
	/* Of the interval that is being read. */
	double now_s, length_s;
	unsigned first_bin, last_bin;
};

/* Picks, and makes room for it. The census must outlive it. -ENOMEM; the caller frees. */
int nm_picture_new(const struct nm_census *census, const char *name, struct nm_picture **ret);
void nm_picture_free(struct nm_picture *picture);
NM_DEFINE_CLEANUP(struct nm_picture, nm_picture_free);

/* Second reading. What nm_recording_next() returns on failure, -ENOMEM. */
int nm_picture_gather(struct nm_picture *picture, struct nm_recording *recording);

/* Index among the picked, or -1. */
int nm_picked_index(const struct nm_pick *pick, uint32_t id, uint32_t pid);

/* NULL: not among those kept. */
struct nm_shown_decision *nm_picture_decision(const struct nm_picture *picture, uint64_t id);

/* Its program's name, "?" where that is not known. */
const char *nm_picture_comm(const struct nm_picture *picture, uint32_t pid);
/* The same as an element, in which it keeps its direction of reading. */
void nm_picture_put_comm(const struct nm_picture *picture, uint32_t pid, FILE *out);

#endif

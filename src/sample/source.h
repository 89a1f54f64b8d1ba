/* SPDX-License-Identifier: MIT */
/* What the files of the source share: one ring per CPU and what is open on it. */
#ifndef NUMA_MIGRD_SAMPLE_SOURCE_H
#define NUMA_MIGRD_SAMPLE_SOURCE_H

#include "home.h"
#include "numa-migrd/sample.h"
#include "problem.h"
#include "spe_ring.h"

#define NM_TRIAL_NS (100 * (long)NM_NSEC_PER_MSEC)
#define NM_HARDWARE_SCALE_MAX 1024U
/* Looks at a counter at which an event had not been on it: one that waits for its turn is not
 * starved. */
#define NM_STARVED_LOOKS 3U

/* One open event; its kind and id are in the ring's layout at the same place. */
struct nm_ring_event {
	struct nm_event_fds fds;
	unsigned word;			 /* of the source's hardware list, for MEMORY and later */
	uint64_t enabled_ns, running_ns; /* when last looked at */
	double share;			 /* of the time it was on the counter, 1 at first */
	unsigned idle_looks;		 /* in a row at which it had not been there at all */
	bool starved;			 /* so for too long */
	bool stand_in;			 /* for one that is starved */
};

struct nm_ring {
	void *map; /* NULL: this CPU is not sampled; the first event leads and owns the mapping */
	size_t data_bytes;
	bool complete;	       /* everything wanted is there; else retargeting tries again */
	bool clock_stopped;    /* by nm_source_follow_load() */
	bool counters_stopped; /* likewise */
	unsigned idle_intervals;
	unsigned complained; /* kinds, as bits, whose refusal has been told */
	unsigned refused;    /* kinds, as bits, that cannot stand in here */
	uint64_t seen, lost; /* records in this interval */
	struct nm_ring_layout layout;
	struct nm_ring_event events[NM_RING_EVENTS_MAX];
	struct nm_spe_ring *spe; /* beside all that, where accesses come from SPE */
};

/* The periods that the status tells, and what they were made from. */
struct nm_source_reported {
	enum nm_event_kind run_kind;
	uint64_t run_ns, faults;
	double cycles_per_ns;
	uint64_t clock_period, fault_period;
};

struct nm_source {
	struct nm_feed feed; /* drain: in place of all that follows */
	struct nm_platform *platform;
	enum nm_source_choice choice;
	double cap_share; /* of one CPU, what sampling may cost */
	int epoll;
	struct nm_ring *rings;	/* by CPU number */
	double *taken_per_seen; /* likewise */
	unsigned nr_rings;
	size_t ring_bytes;
	enum nm_event_kind run_kind; /* CYCLES or CLOCK */
	double cycles_per_ns;	     /* at the CPU's highest frequency; 0 with CLOCK */
	/* Before rounding to a prime and conversion to cycles; asked: before they were thinned. */
	uint64_t run_ns, run_ns_configured, run_ns_asked;
	uint64_t faults, faults_configured, faults_asked;
	struct nm_event_wishes wishes;
	char pmu[NM_PMU_TEXT], event[NM_CONFIG_EVENT_BYTES];
	uint64_t memory_period;	       /* configured; 0: what suits */
	uint64_t hardware_scale;       /* by which all periods of hardware events are raised */
	struct nm_event_list hardware; /* what is opened on each CPU: it counted in the trial, */
	unsigned busy_words;	       /* or, as bits, another program held the counter */
	unsigned weigh_next;	       /* CPU whose amounts are weighed next */
	uint8_t *aux_scratch; /* of 2 × ring_bytes, as an AUX area has two pages at least */
	struct nm_homes *homes;
	const struct nm_topology *topology;
	struct nm_ring_counts before; /* of the last control of the cost */
	unsigned calm; /* intervals in a row that cost little */
	struct nm_ring_counts counts;
	struct nm_problems problems;
	struct nm_source_status status;
	struct nm_source_reported told;
};

/* The period to give an event of that kind now. Not for SIDEBAND and hardware events. */
uint64_t nm_source_period(const struct nm_source *source, enum nm_event_kind kind);

/* The same for an event of the hardware list. */
uint64_t nm_source_word_period(const struct nm_source *source, const struct nm_event_word *word);

/* Place of the first event of a kind on a ring, -1 where there is none. */
int nm_ring_find(const struct nm_ring *ring, enum nm_event_kind kind);

/* What one sample of an event stands for now: its period, its unit, and its share of the counter.
 */
void nm_ring_amount(const struct nm_source *source, struct nm_ring *ring, unsigned i);

/* Opens and enables a software event beside the others where one of those is starved; and ends
 * that. */
void nm_ring_stand_in(struct nm_source *source, struct nm_ring *ring, enum nm_event_kind kind,
		      bool wanted);

/* Opens the SPE event of a CPU, still disabled: the first of the list that is for that CPU. */
int nm_source_open_spe(struct nm_source *source, const struct nm_event_list *list, int cpu,
		       enum nm_problem_step *ret_step, struct nm_spe_ring **ret);

/* Is the event one of those that have to share the CPU's counters? */
bool nm_event_shares(enum nm_event_kind kind);

/* Has software stand in for a ring's starved events, and ends that where they count again. */
void nm_ring_let_stand_in(struct nm_source *source, struct nm_ring *ring);

/* Chooses between cycles and clock, and the hardware events, by trial on one CPU (source_choose.c).
 */
void nm_source_choose(struct nm_source *source, const struct nm_topology *topology);

/* Looks at the counters of some CPUs: their time on the PMU since the last time. */
void nm_source_weigh(struct nm_source *source);

#endif

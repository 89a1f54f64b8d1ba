/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files of the source: one ring per CPU with its events. */
#ifndef NUMA_MIGRD_SAMPLE_SOURCE_H
#define NUMA_MIGRD_SAMPLE_SOURCE_H

#include "sample/sample.h"
#include "page_node.h"
#include "problem.h"
#include "spe_ring.h"

#define NM_RUN_NS (10 * NM_NSEC_PER_MSEC) /* time between run samples on a CPU */
#define NM_TRIAL_NS (100 * (long)NM_NSEC_PER_MSEC)
#define NM_HARDWARE_SCALE_MAX 1024U
/* Number of consecutive checks without time on the counter after which an event counts as starved;
 * fewer may be due to waiting for its turn. */
#define NM_STARVED_CHECKS 3U

/* The largest periods: at least 20 samples per second of the clock, because the node of each thread
 * must be known even during storms of page faults; otherwise what nm_event_attr() and
 * nm_event_word_attr() accept. */
#define NM_CLOCK_PERIOD_MAX (50 * NM_NSEC_PER_MSEC)
#define NM_CYCLES_PERIOD_MAX 100000000000ULL
#define NM_FAULT_PERIOD_MAX 1000000ULL
#define NM_HARDWARE_PERIOD_MAX 1000000000000ULL

/* As the kernel fills it on reading an event (PERF_FORMAT_TOTAL_TIME_*). */
struct nm_event_count {
	uint64_t value, enabled_ns, running_ns;
};

/* One open event; its kind and id are in the ring's layout at the same index. */
struct nm_ring_event {
	struct nm_event_fds fds;
	unsigned word; /* in the source's hardware list, for MEMORY and later kinds */
	uint64_t enabled_ns, running_ns; /* at the last check */
	double share;			 /* share of the time on the counter, initially 1 */
	unsigned idle_checks;		 /* consecutive checks without any time on the counter */
	bool starved;			 /* it was without time on the counter for too long */
	bool is_substitute;		 /* replaces one that is starved */
};

struct nm_ring {
	void *map; /* NULL: this CPU is not sampled; the first event leads and owns the mapping */
	size_t data_bytes;
	bool complete;	       /* all required events are open; otherwise retargeting tries again */
	bool clock_stopped;    /* by nm_source_follow_load() */
	bool counters_stopped; /* by nm_source_follow_load() */
	unsigned idle_intervals;
	unsigned reported_kinds; /* kinds, as bits, whose refusal was reported */
	unsigned refused;    /* kinds, as bits, that cannot be used as a replacement here */
	uint64_t seen, lost; /* records in this interval */
	struct nm_ring_layout layout;
	struct nm_ring_event events[NM_RING_EVENTS_MAX];
	struct nm_spe_ring *spe; /* additional ring, if accesses come from SPE */
};

/* The periods in the status, and the values from which they were computed. */
struct nm_source_reported {
	enum nm_event_kind run_kind;
	uint64_t run_ns, faults;
	double cycles_per_ns;
	uint64_t clock_period, fault_period;
};

struct nm_source {
	struct nm_feed feed; /* drain: used instead of all following fields */
	struct nm_platform *platform;
	enum nm_source_choice choice;
	double cap_share; /* limit of the cost of sampling, as a share of one CPU */
	int epoll;
	struct nm_ring *rings;	/* by CPU number */
	double *taken_per_seen; /* by CPU number */
	unsigned nr_rings;
	size_t ring_bytes;
	enum nm_event_kind run_kind; /* CYCLES or CLOCK */
	double cycles_per_ns;	     /* at the CPU's maximum frequency; 0 with CLOCK */
	/* Before rounding to a prime and conversion to cycles. */
	uint64_t run_ns, run_ns_configured;
	uint64_t faults, faults_configured;
	struct nm_event_selection selection;
	char pmu[NM_PMU_TEXT], event[NM_CONFIG_EVENT_BYTES];
	uint64_t hardware_scale; /* factor by which all periods of hardware events are raised */
	uint64_t hardware_least; /* its lower limit */
	struct nm_event_list hardware; /* the events opened on each CPU, which counted in the
					* trial */
	unsigned busy_words; /* events, as bits, whose counter another program held in the trial */
	unsigned next_check; /* next CPU whose counters are checked */
	uint8_t *aux_scratch; /* 2 × ring_bytes, because an AUX area has at least two pages */
	struct nm_page_nodes *page_nodes;
	const struct nm_topology *topology;
	struct nm_ring_counts before; /* at the last control of the cost */
	unsigned calm; /* consecutive intervals with a low cost */
	struct nm_ring_counts counts;
	struct nm_problems problems;
	struct nm_source_status status;
	struct nm_source_reported reported;
};

/* Returns the current period for an event of that kind. Not for SIDEBAND and hardware events. */
uint64_t nm_source_period(const struct nm_source *source, enum nm_event_kind kind);

/* The same for an event of the hardware list. */
uint64_t nm_source_word_period(const struct nm_source *source, const struct nm_event_word *word);

/* Returns the first prime from `period` up, or the last one below `maximum`; 1 stays 1. A round
 * period would be in step with the loops of programs, and always sample the same part of them. */
uint64_t nm_period_prime(uint64_t period, uint64_t maximum);

/* Opens an event of a hardware list on a CPU, disabled; an SPE event by nm_source_open_spe(). */
int nm_source_open_word(struct nm_source *source, const struct nm_event_word *word, int cpu,
			struct nm_event_fds *ret);

/* Opens the ring of a CPU with all its events, as far as that is possible; problems are noted. */
void nm_ring_open(struct nm_source *source, unsigned cpu);
void nm_ring_close(struct nm_source *source, struct nm_ring *ring);

/* Closes both descriptors of an event; those that are negative are not open. */
void nm_event_close(struct nm_platform *platform, struct nm_event_fds fds);

/* Returns the index of the first event of a kind on a ring, or -1. */
int nm_ring_find(const struct nm_ring *ring, enum nm_event_kind kind);

/* Sets the amount that one sample of an event represents: its period, its unit, and its share of
 * the counter. */
void nm_ring_amount(const struct nm_source *source, struct nm_ring *ring, unsigned i);

/* Opens and enables, or closes, a software event that replaces a starved event. */
void nm_ring_substitute(struct nm_source *source, struct nm_ring *ring, enum nm_event_kind kind,
			bool wanted);

/* Opens the SPE event of a CPU, disabled: the first of the list that is for that CPU. */
int nm_source_open_spe(struct nm_source *source, const struct nm_event_list *list, int cpu,
		       enum nm_problem_step *ret_step, struct nm_spe_ring **ret);

/* Returns whether the event must share the counters of the CPU. */
bool nm_event_shares(enum nm_event_kind kind);

/* Replaces starved events of a ring by software events, and ends that when they count again. */
void nm_ring_update_substitutes(struct nm_source *source, struct nm_ring *ring);

/* Selects cycles or clock, and the hardware events, by a trial on one CPU (source_choose.c). */
void nm_source_choose(struct nm_source *source, const struct nm_topology *topology);

/* Checks the counters of some CPUs: their time on the PMU since the last check. */
void nm_source_check_counters(struct nm_source *source);

#endif

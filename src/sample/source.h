/* SPDX-License-Identifier: MIT */
/* What the files of the source share: one ring per CPU and what is open on it. */
#ifndef NUMA_MIGRD_SAMPLE_SOURCE_H
#define NUMA_MIGRD_SAMPLE_SOURCE_H

#include "numa-migrd/sample.h"
#include "problem.h"

struct nm_ring {
	int fds[NM_EVENT_KIND_MAX]; /* -1: not open; the side-band event leads and owns the mapping
				     */
	void *map;		    /* NULL: this CPU is not sampled */
	size_t data_bytes;
	bool complete;	    /* everything wanted is there; else retargeting tries again */
	bool clock_stopped; /* by nm_source_follow_load() */
	unsigned idle_intervals;
	struct nm_ring_layout layout;
};

struct nm_source {
	struct nm_platform *platform;
	enum nm_source_choice choice;
	double cap_share; /* of one CPU, what sampling may cost */
	int epoll;
	struct nm_ring *rings; /* by CPU number */
	unsigned nr_rings;
	size_t ring_bytes;
	enum nm_event_kind run_kind; /* CYCLES or CLOCK */
	double cycles_per_ns;	     /* at the CPU's highest frequency; 0 with CLOCK */
	uint64_t run_ns,
		run_ns_configured; /* before rounding to a prime and conversion to cycles */
	uint64_t faults, faults_configured;
	uint64_t lost_before;
	unsigned calm; /* intervals in a row that cost little */
	struct nm_ring_counts counts;
	struct nm_problems problems;
	struct nm_source_status status;
};

/* The period to give an event of that kind now. Not for SIDEBAND. */
uint64_t nm_source_period(const struct nm_source *source, enum nm_event_kind kind);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The fixed list of perf events that numa-migrd may open, shared by the sampler and the root helper
 * (which builds the attribute itself from a kind and a period: no attribute crosses the socket).
 */
#ifndef NUMA_MIGRD_EVENT_H
#define NUMA_MIGRD_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

enum nm_event_kind {
	NM_EVENT_SIDEBAND,  /* dummy: FORK, EXIT, COMM records; leads the ring of its CPU */
	NM_EVENT_CLOCK,	    /* cpu-clock, exclude_idle, period in ns: who ran where */
	NM_EVENT_CYCLES,    /* the same from the PMU, period in cycles, where there is one */
	NM_EVENT_FAULT_MIN, /* minor page faults with address and physical address, emitted after
			       the fault */
	NM_EVENT_FAULT_MAJ,
	NM_EVENT_MEMORY, /* memory accesses with latency and data source: PEBS, IBS, or a named PMU
			  */
	NM_EVENT_STORE,	 /* stores, where they need an event of their own */
	NM_EVENT_INSTRUCTIONS, /* retired, by sampling with a fixed period */
	NM_EVENT_FLOPS,	       /* floating-point operations; several events of different widths */
	NM_EVENT_DRAM,	       /* DRAM reads or LLC misses, a line of 64 bytes each */
	NM_EVENT_KIND_MAX,
};

const char *nm_event_name(enum nm_event_kind kind);

/*
 * Fills *ret for an event of the list. Returns 0; -EINVAL for an unknown kind or a period outside
 * the kind's range (clock: 1 ms–1 s; cycles: 100,000–10^11; faults: 1–10^6). The side-band event
 * counts nothing, so its "period" is the mark of the ring it leads: the number of unread bytes at
 * which the reader is woken (wakeup_watermark; 1–2^30). Every event carries
 * PERF_SAMPLE_IDENTIFIER|TID|TIME and sample_id_all; faults add ADDR|PHYS_ADDR|DATA_PAGE_SIZE,
 * never PERIOD, with which software events ignore sample_period (sampling.md, trap 1). The read
 * format of all is TOTAL_TIME_ENABLED|TOTAL_TIME_RUNNING, which tells whether a counter really
 * counts. perf_event_open(2).
 */
int nm_event_attr(enum nm_event_kind kind, uint64_t period, struct perf_event_attr *ret);

/* ---- hardware events: MEMORY to DRAM, which differ from machine to machine ---- */

enum nm_memory_source {
	NM_MEMORY_NONE,	 /* page faults stand in */
	NM_MEMORY_PEBS,	 /* precise events of the core's own PMU */
	NM_MEMORY_IBS,	 /* AMD's instruction-based sampling */
	NM_MEMORY_PMU,	 /* the one that sampling.pmu names */
	NM_MEMORY_SPE,	 /* Arm's statistical profiling: records in an AUX area of its own */
	NM_MEMORY_EVENT, /* the event of the core's own PMU that sampling.event names */
	NM_MEMORY_SOURCE_MAX,
};

const char *nm_memory_source_name(enum nm_memory_source source);

#define NM_LOAD_LATENCY_MAX 0xffffU
#define NM_EVENT_LIST_MAX 16U
#define NM_PMU_TEXT 128

/* What is wanted of a machine. */
struct nm_event_wishes {
	enum nm_memory_source source; /* of MEMORY and STORE */
	unsigned load_latency; /* cycles; quicker loads are not sampled, where that can be had */
	const char *pmu;       /* for NM_MEMORY_PMU: "name/term=value,…/" */
	const char *event;     /* for NM_MEMORY_EVENT: as libpfm4 spells it */
};

/* One hardware event of this machine, ready to be opened. */
struct nm_event_word {
	enum nm_event_kind kind;
	unsigned index; /* among those of its kind */
	char name[64];	/* for people */
	const char *remark; /* static text: why libpfm4 has not encoded it; NULL: nothing to say */
	bool unencoded;	    /* so it cannot be opened: the next two lines mean nothing */
	uint32_t type;
	uint64_t config, config1, config2;
	uint64_t period;	  /* said by sampling.pmu, 0: not said */
	uint32_t period_multiple; /* 1, or 16 for IBS */
	uint16_t unit;		  /* what one count stands for; 0 for MEMORY and STORE */
	bool precise;		  /* precise_ip, as high as the CPU takes it */
	bool aux_leader;	  /* must follow event 0x8203 in its group (Sapphire Rapids) */
	bool user_only;		  /* the PMU can leave the kernel out */
	bool remote;
	bool own_period; /* the PMU has a period of its own: each of its records is wanted */
	bool aux;	 /* its records go to an AUX area; of several such PMUs each has its CPUs */
};

struct nm_event_list {
	const char *table; /* name of the table's entry */
	unsigned count;
	struct nm_event_word words[NM_EVENT_LIST_MAX];
};

/*
 * The same for a hardware event. -EINVAL for a period out of range: amounts 1,000–10^12, accesses
 * 16–10^12 (from 1 where the PMU has a period of its own). Accesses add
 * ADDR|WEIGHT|DATA_SRC|PHYS_ADDR; WEIGHT's lower half is the latency on every kernel and CPU, which
 * is all that WEIGHT_STRUCT would give us. precise_ip is the highest; the opener lowers it. An
 * event with an AUX area tells of switches in its ring instead.
 */
int nm_event_word_attr(const struct nm_event_word *word, uint64_t period,
		       struct perf_event_attr *ret);

/* One event on one CPU. */
struct nm_event_request {
	enum nm_event_kind kind;
	unsigned index; /* of nm_event_word; 0 for software events and cycles */
	int cpu;
	uint64_t period;
	struct nm_event_wishes
		wishes; /* of hardware events; the same for all that one source opens */
};

/* leader: -1, or a second descriptor that must stay open as long as the event does. */
struct nm_event_fds {
	int event, leader;
};

#endif

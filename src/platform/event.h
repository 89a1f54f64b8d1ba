/* SPDX-License-Identifier: MIT */
/*
 * The fixed list of perf events that numa-migrd may open, shared by the sampler and the root
 * helper. The helper builds the attribute from a kind and a period; no attribute crosses the
 * socket.
 */
#ifndef NUMA_MIGRD_EVENT_H
#define NUMA_MIGRD_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nm_event_kind {
	NM_EVENT_SIDEBAND,  /* dummy: FORK, EXIT, COMM records; leads the ring of its CPU */
	NM_EVENT_CLOCK,	    /* cpu-clock, exclude_idle, period in ns: which thread ran where */
	NM_EVENT_CYCLES,    /* the same from the PMU, if there is one; period in cycles */
	NM_EVENT_FAULT_MIN, /* minor page faults with address and physical address, emitted after
			       the fault */
	NM_EVENT_FAULT_MAJ,
	NM_EVENT_MEMORY, /* memory accesses with latency and data source: PEBS, IBS, or a named PMU
			  */
	NM_EVENT_STORE,	 /* stores, if they need a separate event */
	NM_EVENT_INSTRUCTIONS, /* retired, by sampling with a fixed period */
	NM_EVENT_FLOPS, /* floating-point operations, from several events of different widths */
	NM_EVENT_DRAM,	/* DRAM reads or LLC misses, 64 bytes each */
	NM_EVENT_KIND_MAX,
};

const char *nm_event_name(enum nm_event_kind kind);

/*
 * Fills *ret for an event of the list. Returns 0; -EINVAL for an unknown kind or a period outside
 * the kind's range (clock: 1 ms–1 s; cycles: 100,000–10^11; faults: 1–10^6). The side-band event
 * counts nothing, so its "period" is the wakeup watermark of its ring: the number of unread bytes
 * at which the reader is woken (wakeup_watermark; 1–2^30). Every event carries
 * PERF_SAMPLE_IDENTIFIER|TID|TIME and sample_id_all; faults add ADDR|PHYS_ADDR|DATA_PAGE_SIZE, but
 * never PERIOD, with which software events ignore sample_period. The read format of all is
 * TOTAL_TIME_ENABLED|TOTAL_TIME_RUNNING, which shows whether a counter really counts.
 * perf_event_open(2).
 */
int nm_event_attr(enum nm_event_kind kind, uint64_t period, struct perf_event_attr *ret);

/* ---- hardware events: MEMORY to DRAM, which depend on the machine ---- */

enum nm_memory_source {
	NM_MEMORY_NONE,	 /* page faults are used instead */
	NM_MEMORY_PEBS,	 /* precise events of the core's own PMU */
	NM_MEMORY_IBS,	 /* AMD's instruction-based sampling */
	NM_MEMORY_PMU,	 /* the PMU named by sampling.event */
	NM_MEMORY_SPE,	 /* Arm's statistical profiling: records in a separate AUX area */
	NM_MEMORY_EVENT, /* the event of the core's own PMU named by sampling.event */
	NM_MEMORY_SOURCE_MAX,
};

const char *nm_memory_source_name(enum nm_memory_source source);

#define NM_LOAD_LATENCY 30U /* minimum latency of sampled loads, in CPU cycles */
#define NM_LOAD_LATENCY_MAX 0xffffU
#define NM_EVENT_LIST_MAX 16U
#define NM_PMU_TEXT 128

/* The requirements for hardware events. */
struct nm_event_selection {
	enum nm_memory_source source; /* for MEMORY and STORE */
	unsigned load_latency; /* cycles; faster loads are not sampled, if the hardware supports
				* that */
	const char *pmu;       /* NM_MEMORY_PMU: "name/term=value,…/" */
	const char *event;     /* NM_MEMORY_EVENT: in libpfm4 spelling */
};

/* One hardware event of this machine, ready to be opened. */
struct nm_event_word {
	enum nm_event_kind kind;
	unsigned index;	    /* among the events of its kind */
	char name[64];	    /* for display */
	const char *remark; /* static text: why libpfm4 did not encode it; NULL: no remark */
	bool unencoded;	    /* it cannot be opened; type and config are not valid */
	uint32_t type;
	uint64_t config, config1, config2;
	uint64_t period;	  /* set by the terms of sampling.event; 0: not set */
	uint32_t period_multiple; /* 1, or 16 for IBS */
	uint16_t unit;		  /* amount that one count represents; 0 for MEMORY and STORE */
	bool precise;		  /* precise_ip, as high as the CPU supports */
	bool aux_leader;	  /* must follow event 0x8203 in its group (Sapphire Rapids) */
	bool user_only;		  /* the PMU can exclude the kernel */
	bool remote;
	bool aux; /* its records go to an AUX area; if there are several such PMUs, each
		   * serves different CPUs */
};

struct nm_event_list {
	const char *table; /* name of the entry of the event table */
	unsigned count;
	struct nm_event_word words[NM_EVENT_LIST_MAX];
};

/*
 * Fills *ret for a hardware event, as nm_event_attr() does. -EINVAL for a period out of range:
 * amounts 1,000–10^12, accesses 16–10^12. Accesses add ADDR|WEIGHT|DATA_SRC|PHYS_ADDR. The lower
 * half of WEIGHT is the latency on every kernel and CPU; WEIGHT_STRUCT would provide no other value
 * that is used. precise_ip is the highest; the function that opens the event lowers it. An event
 * with an AUX area reports context switches in its ring instead.
 */
int nm_event_word_attr(const struct nm_event_word *word, uint64_t period,
		       struct perf_event_attr *ret);

/* One event on one CPU. */
struct nm_event_request {
	enum nm_event_kind kind;
	unsigned index; /* as in nm_event_word; 0 for software events and cycles */
	int cpu;
	uint64_t period;
	struct nm_event_selection
		/* For hardware events; the same for all events of one source. */
		selection;
};

/* leader is -1, or a second descriptor that must stay open as long as the event. */
struct nm_event_fds {
	int event, leader;
};

/* ---- table of hardware events ---- */

/* The hardware events of each microarchitecture by their libpfm4 names, and their encoding. Part of
 * platform/, because the root helper encodes events itself. */

struct nm_event_row {
	enum nm_event_kind kind;
	const char *name;   /* in libpfm4 spelling, without the PMU and ldlat */
	uint16_t unit;	    /* operations, bytes or instructions per count; 0: no amount */
	bool has_threshold; /* samples loads above a latency threshold, in cycles */
	bool precise;	    /* PEBS: requires precise_ip */
	bool remote;	    /* counts lines served by the memory of other nodes */
	const char *raw;    /* reason for a fixed encoding in the next two fields; NULL: libpfm4
			     * encodes the row */
	uint32_t type;	    /* perf_event_attr.type and config */
	uint64_t config;
};

struct nm_event_table {
	const char *name;     /* for --pmu */
	const char *machines; /* description */
	const char *pfm[2];   /* libpfm4's names of the PMU; the first one encodes the rows */
	const struct nm_event_row *rows;
	size_t count;
};

/* Identity of the CPU: family and model as in /proc/cpuinfo. */
struct nm_cpu_identity {
	char vendor[16];
	unsigned family, model;
};

extern const struct nm_event_table nm_event_tables[];
extern const size_t nm_event_table_count;

/*
 * Encodes a row as an event of its table, with libpfm4 or with the row's fixed value. A row with a
 * threshold samples loads of at least load_latency cycles. Fills name, type, config, config1 and
 * possibly remark of *ret, and the row's properties. Returns 0, or -ENOPKG if libpfm4 does not
 * encode it, in which case `unencoded` is set. The first call initialises libpfm4, which takes one
 * to two milliseconds, reads /sys and /proc, and gets a clean environment. Thread-safe.
 */
int nm_event_row_encode(const struct nm_event_table *table, const struct nm_event_row *row,
			unsigned load_latency, struct nm_event_word *ret);

/*
 * Encodes the event of sampling.event, which samples memory accesses in user mode with one of the
 * table's PMUs: NAME:UMASK:…, or PMU::NAME:UMASK:…. Returns 0, or -ENOPKG with *ret as above.
 */
int nm_event_named_encode(const struct nm_event_table *table, const char *name,
			  struct nm_event_word *ret);

/* Returns the reason why the CPU of the machine below an open root directory has no such event, or
 * NULL if it has. Static text. Called for --check-config. */
const char *nm_event_named_check(int root, const char *name);

/* Returns 0 if that machine has the PMU and the terms of "name/term=value,…/", otherwise -ENOENT
 * (no such PMU), -EINVAL or another negative errno. Called for --check-config. */
int nm_event_pmu_check(int root, const char *pmu);

/* Finds the identity of the first CPU in the text of /proc/cpuinfo. Returns 0, or -ENODATA if a
 * line is missing (architectures other than x86 use other names). Pure. */
int nm_cpu_identity_parse(const char *cpuinfo, struct nm_cpu_identity *ret);

/* Returns the entry for a CPU; the generic one for an unknown CPU. Never NULL. Pure. */
const struct nm_event_table *nm_event_table_for(const struct nm_cpu_identity *identity);

/* Returns the entry with this name, or NULL. Pure. */
const struct nm_event_table *nm_event_table_find(const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The fixed list of perf events that numa-migrd may open, shared by the sampler and the root helper
 * (which builds the attribute itself from a kind and a period: no attribute crosses the socket).
 */
#ifndef NUMA_MIGRD_EVENT_H
#define NUMA_MIGRD_EVENT_H

#include <linux/perf_event.h>
#include <stdint.h>

enum nm_event_kind {
	NM_EVENT_SIDEBAND,  /* dummy: FORK, EXIT, COMM records; leads the ring of its CPU */
	NM_EVENT_CLOCK,	    /* cpu-clock, exclude_idle, period in ns: who ran where */
	NM_EVENT_CYCLES,    /* the same from the PMU, period in cycles, where there is one */
	NM_EVENT_FAULT_MIN, /* minor page faults with address and physical address, emitted after
			       the fault */
	NM_EVENT_FAULT_MAJ,
	NM_EVENT_MEMORY,       /* memory accesses with latency and data source: PEBS, IBS, or a named PMU */
	NM_EVENT_STORE,        /* stores, where they need an event of their own */
	NM_EVENT_INSTRUCTIONS, /* retired, by sampling with a fixed period */
	NM_EVENT_FLOPS,        /* floating-point operations; several events of different widths */
	NM_EVENT_DRAM,         /* DRAM reads or LLC misses, a line of 64 bytes each */
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

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Which hardware events each microarchitecture has for what numa-migrd wants to know: plain data,
 * part of platform/, because the root helper builds event attributes itself. The words are the
 * truth; the names are libpfm4's, and a test holds one to the other (sampling.md, section 1).
 */
#ifndef NUMA_MIGRD_EVENT_TABLE_H
#define NUMA_MIGRD_EVENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numa-migrd/event.h"

struct nm_event_row {
	enum nm_event_kind kind;
	uint32_t type;	  /* perf_event_attr.type */
	const char *name; /* as libpfm4 spells it, without PMU, ldlat and precise */
	uint64_t config, config1;
	uint16_t unit;	    /* operations, bytes or instructions of one count; 0: no amount */
	bool raw;	    /* libpfm4 4.13 does not know it, or encodes it wrongly */
	bool has_threshold; /* config1 is the lowest latency that is sampled, in cycles */
	bool precise;	    /* PEBS: wants precise_ip */
	bool remote;	    /* counts what other nodes' memory served */
};

struct nm_event_table {
	const char *name;     /* for --pmu */
	const char *machines; /* in words */
	const char *pfm[2];   /* libpfm4's names of the PMU; NULL: none */
	const struct nm_event_row *rows;
	size_t count;
};

/* Who the CPU says it is: family and model as /proc/cpuinfo has them. */
struct nm_cpu_identity {
	char vendor[16];
	unsigned family, model;
};

extern const struct nm_event_table nm_event_tables[];
extern const size_t nm_event_table_count;

/*
 * Finds the first CPU's identity in the text of /proc/cpuinfo. Returns 0, or -ENODATA where a line
 * is missing (other architectures than x86 spell theirs differently). Pure.
 */
int nm_cpu_identity_parse(const char *cpuinfo, struct nm_cpu_identity *ret);

/* The entry for a CPU; the generic one for any that is not known. Never NULL. Pure. */
const struct nm_event_table *nm_event_table_for(const struct nm_cpu_identity *identity);

/* The entry of that name, or NULL. Pure. */
const struct nm_event_table *nm_event_table_find(const char *name);

#endif

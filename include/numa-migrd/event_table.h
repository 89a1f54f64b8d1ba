/* SPDX-License-Identifier: MIT */
/*
 * The hardware events of each microarchitecture by libpfm4's names, and their encoding; part of
 * platform/, because the root helper encodes events itself.
 */
#ifndef NUMA_MIGRD_EVENT_TABLE_H
#define NUMA_MIGRD_EVENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numa-migrd/event.h"

struct nm_event_row {
	enum nm_event_kind kind;
	const char *name;   /* as libpfm4 spells it, without the PMU and ldlat */
	uint16_t unit;	    /* operations, bytes or instructions per count; 0: no amount */
	bool has_threshold; /* samples loads from a latency on, in cycles */
	bool precise;	    /* PEBS: wants precise_ip */
	bool remote;	    /* counts lines served by other nodes' memory */
	const char *raw;    /* why the next two hold the encoding; NULL: libpfm4 encodes the row */
	uint32_t type;	    /* perf_event_attr.type and config */
	uint64_t config;
};

struct nm_event_table {
	const char *name;     /* for --pmu */
	const char *machines; /* in words */
	const char *pfm[2];   /* libpfm4's names of the PMU; the first encodes the rows */
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
 * Encodes a row as an event of its table: by libpfm4, or by the row's own value; a row with a
 * threshold samples loads of at least load_latency cycles. Fills name, type, config and config1 of
 * *ret, remark if there is one, and the row's properties. Returns 0, or -ENOPKG if libpfm4 does not
 * encode it: the word then says so (unencoded). The first call initialises libpfm4, which takes one
 * to two milliseconds, reads /sys and /proc, and sees an environment of our own. Thread-safe.
 * Called by nm_event_list_read() and for --list-events.
 */
int nm_event_row_encode(const struct nm_event_table *table, const struct nm_event_row *row,
			unsigned load_latency, struct nm_event_word *ret);

/*
 * Encodes the event of sampling.event, which samples memory accesses in user mode by one of the
 * table's PMUs: NAME:UMASK:…, or PMU::NAME:UMASK:…. Returns 0, or -ENOPKG with *ret as above.
 * Called by nm_event_list_read().
 */
int nm_event_named_encode(const struct nm_event_table *table, const char *name,
			  struct nm_event_word *ret);

/* Why this machine's CPU, below an open root directory, has no such event; NULL: it has. For
 * --check-config. Static text. */
const char *nm_event_named_check(int root, const char *name);

/*
 * Finds the first CPU's identity in the text of /proc/cpuinfo. Returns 0, or -ENODATA where a line
 * is missing (other architectures than x86 spell the names differently). Pure.
 */
int nm_cpu_identity_parse(const char *cpuinfo, struct nm_cpu_identity *ret);

/* The entry for a CPU; the generic one for any that is not known. Never NULL. Pure. */
const struct nm_event_table *nm_event_table_for(const struct nm_cpu_identity *identity);

/* The entry of that name, or NULL. Pure. */
const struct nm_event_table *nm_event_table_find(const char *name);

#endif

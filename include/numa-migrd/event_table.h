/* SPDX-License-Identifier: MIT */
/* The hardware events of each microarchitecture by their libpfm4 names, and their encoding. Part of
 * platform/, because the root helper encodes events itself. */
#ifndef NUMA_MIGRD_EVENT_TABLE_H
#define NUMA_MIGRD_EVENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numa-migrd/event.h"

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
 * to two milliseconds, reads /sys and /proc, and gets a clean environment. Thread-safe. Called by
 * nm_event_list_read() and for --list-events.
 */
int nm_event_row_encode(const struct nm_event_table *table, const struct nm_event_row *row,
			unsigned load_latency, struct nm_event_word *ret);

/*
 * Encodes the event of sampling.event, which samples memory accesses in user mode with one of the
 * table's PMUs: NAME:UMASK:…, or PMU::NAME:UMASK:…. Returns 0, or -ENOPKG with *ret as above.
 * Called by nm_event_list_read().
 */
int nm_event_named_encode(const struct nm_event_table *table, const char *name,
			  struct nm_event_word *ret);

/* Returns the reason why the CPU of the machine below an open root directory has no such event, or
 * NULL if it has. Static text. Called for --check-config. */
const char *nm_event_named_check(int root, const char *name);

/* Finds the identity of the first CPU in the text of /proc/cpuinfo. Returns 0, or -ENODATA if a
 * line is missing (architectures other than x86 use other names). Pure. */
int nm_cpu_identity_parse(const char *cpuinfo, struct nm_cpu_identity *ret);

/* Returns the entry for a CPU; the generic one for an unknown CPU. Never NULL. Pure. */
const struct nm_event_table *nm_event_table_for(const struct nm_cpu_identity *identity);

/* Returns the entry with this name, or NULL. Pure. */
const struct nm_event_table *nm_event_table_find(const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The rows that the daemon shows (Dump of org.numamigrd1(5)) and numa-migrctl prints. Each value is
 * described once, in the tables of fields.c: its name, where a row holds it, its column, and its
 * meaning. The daemon fills rows, dump.c writes them by the tables, numa-migrctl takes its columns
 * from them, and a test compares them with the manual page. Pure.
 */
#ifndef NUMA_MIGRD_FIELDS_H
#define NUMA_MIGRD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The type of a value in a row, and how it is unavailable. */
enum nm_field_type {
	NM_FIELD_TEXT,	 /* const char *; NULL */
	NM_FIELD_FLAG,	 /* bool */
	NM_FIELD_NUMBER, /* int64_t; negative */
	NM_FIELD_REAL,	 /* double; not finite */
	NM_FIELD_SHARES, /* struct nm_shares; without items */
};

struct nm_shares {
	const double *items;
	size_t count;
};

/* How numa-migrctl prints a value. */
enum nm_cell_kind {
	NM_CELL_ANY,	 /* by the type of the value, without scaling */
	NM_CELL_SHARE,	 /* 0 to 1, as a percentage */
	NM_CELL_BYTES,	 /* with powers of 1024 */
	NM_CELL_FIGURE,	 /* three digits, with k, M, G, T */
	NM_CELL_AGE,	 /* seconds, as seconds, minutes, hours or days */
	NM_CELL_TIME,	 /* microseconds since 1970, as local time */
	NM_CELL_ARROW,	 /* from `name` to `second`; missing ones are omitted */
	NM_CELL_MEASURE, /* a share if the row's "figure" requires it, otherwise as
			  * NM_CELL_FIGURE */
	NM_CELL_VERDICT, /* text in a color for its meaning */
};

struct nm_field {
	const char *name; /* lower_case_with_unit */
	enum nm_field_type type;
	size_t offset;
	const char *help; /* as in org.numamigrd1(5) */
	/* Its column: */
	const char *head;	/* NULL: none */
	const char *plain_head; /* used without UTF-8, if `head` has non-ASCII characters */
	const char *second;
	enum nm_cell_kind kind;
	bool left; /* left-aligned */
};

struct nm_table {
	const char *name; /* of the array of rows; NULL: rows within others */
	const struct nm_field *fields;
	size_t count;
};

extern const struct nm_table nm_node_table, nm_process_table, nm_thread_table, nm_decision_table,
	nm_candidate_table, nm_trial_table, nm_program_table;

/* Returns the number of fields with a column, which are the first ones. */
static inline size_t nm_table_columns(const struct nm_table *table)
{
	size_t columns = 0;
	while (columns < table->count && table->fields[columns].head)
		columns++;
	return columns;
}

/* ---- rows ---- */

struct nm_node_row {
	int64_t node, threads, memory_bytes, memory_free_bytes;
	const char *cpus;
	double load, access_share;
};

struct nm_process_row {
	int64_t pid, uid, node, threads, rss_bytes, last_decision, assigned, home, memory_age_s;
	const char *comm, *state, *steer, *reason, *explanation, *unit, *runtime;
	double run_share, local_share, latency_cycles, intensity, performance, exclusivity,
		shared_page_share;
	struct nm_shares memory_shares;
};

struct nm_thread_row {
	int64_t tid, pid, cpu, node, preferred_node, last_decision, assigned_node;
	const char *comm;
	double local_share, accesses, latency_cycles, intensity, operations_per_s,
		instructions_per_s, performance, relative_performance, run_share;
};

struct nm_decision_row {
	int64_t decision, time_usec, pid, tid, from_cpu, to_cpu, from_node, to_node, partner_pid,
		partner_tid, pages, bytes, candidates_count;
	const char *kind, *policy, *comm, *partner_comm, *result, *verdict, *message, *figure,
		*fields, *verdict_message;
	double before, after;
};

struct nm_candidate_row {
	int64_t to_node, to_cpu, partner_tid;
	double tickets;
	bool won;
};

/* Of the whole trial, or of one command in it. */
struct nm_comparison_row {
	int64_t remaining_s, managed_units, control_units;
	bool drawing;
	const char *comm, *state, *result, *forecast, *ended_early;
	double control_percent, cpu_change, cpu_low, cpu_high, elapsed_change, elapsed_low,
		elapsed_high, managed_local, control_local, managed_distance, control_distance,
		managed_waiting, control_waiting;
};

/* Makes every value of a row of this table unavailable, and every flag false. */
void nm_row_init(const struct nm_table *table, void *row);

#endif

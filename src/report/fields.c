/* SPDX-License-Identifier: MIT */
#include "report/fields.h"

#include <math.h>

#include "numa-migrd/base.h"

/* Each table begins with the fields that have a column, in the order of the columns. */

#define FIELD(t, n, h)                                                                             \
	.name = #n, .type = NM_FIELD_##t, .offset = offsetof(struct ROW, n), .help = (h)
#define COLUMN(h, k) .head = (h), .kind = NM_CELL_##k
#define WORDS(h) .head = (h), .left = true

/* clang-format off */
#define ROW nm_node_row
static const struct nm_field node_fields[] = {
	{FIELD(NUMBER, node, "its number"), COLUMN("NODE", ANY)},
	{FIELD(REAL, load, "busy share of its CPUs, also with processes that are not managed"),
		COLUMN("LOAD", SHARE)},
	{FIELD(NUMBER, threads, "managed threads that last ran on it"), COLUMN("THREADS", ANY)},
	{FIELD(REAL, access_share, "share of all sampled accesses that its memory served"),
		COLUMN("ACCESSES", SHARE)},
	{FIELD(NUMBER, memory_free_bytes, "its free memory"), COLUMN("FREE", BYTES)},
	{FIELD(NUMBER, memory_bytes, "its memory"), COLUMN("MEMORY", BYTES)},
	{FIELD(TEXT, cpus, "list of its CPUs that may be used; empty if it has only memory"),
		WORDS("CPUS")},
};
#undef ROW

#define ROW nm_process_row
static const struct nm_field process_fields[] = {
	{FIELD(NUMBER, pid, "its number"), COLUMN("PID", ANY)},
	{FIELD(TEXT, comm, "its name"), WORDS("COMMAND")},
	{FIELD(TEXT, state, "whether it is managed"), WORDS("STATE")},
	{FIELD(NUMBER, home, "with policy auto: its home node"), COLUMN("HOME", ANY)},
	{FIELD(NUMBER, threads, "managed threads"), COLUMN("THR", ANY)},
	{FIELD(REAL, run_share, "CPUs used by its threads"), COLUMN("RUN", SHARE)},
	{FIELD(REAL, local_share, "local access ratio of its sampled accesses"),
		COLUMN("LOCAL", SHARE)},
	{FIELD(NUMBER, rss_bytes, "resident memory"), COLUMN("RSS", BYTES)},
	{FIELD(NUMBER, memory_age_s, "time since its memory was counted, or moved home"),
		COLUMN("AGE", AGE)},
	{FIELD(SHARES, memory_shares, "share of its memory on each node, in ascending order"),
		COLUMN("MEMORY", SHARE), .left = true},
	{FIELD(TEXT, reason, "why it is not managed, or has no home"), WORDS("REASON")},
	{FIELD(NUMBER, node, "node on which most of its threads run"), COLUMN("NODE", ANY)},
	{FIELD(NUMBER, last_decision, "newest stored decision about its threads or pages"),
		COLUMN("DEC", ANY)},
	{FIELD(NUMBER, assigned, "threads that are assigned to a node"), COLUMN("ASSIGN", ANY)},
	{FIELD(REAL, latency_cycles, "mean latency of its accesses"), COLUMN("LAT", FIGURE)},
	{FIELD(REAL, intensity, "operations per byte from memory"), COLUMN("INT", FIGURE)},
	{FIELD(REAL, performance, "mean performance of its threads"), COLUMN("PERF", FIGURE)},
	{FIELD(REAL, exclusivity, "mean exclusivity of its sampled pages"), COLUMN("EXCL", SHARE)},
	{FIELD(REAL, shared_page_share, "share of its sampled pages that several nodes access"),
		COLUMN("SHARED", SHARE)},
	{FIELD(TEXT, steer, "value of the attribute of its cgroups"), WORDS("STEER")},
	{FIELD(TEXT, unit, "innermost service or scope of systemd"), WORDS("UNIT")},
	{FIELD(NUMBER, uid, "its user")},
	{FIELD(TEXT, explanation, "a sentence about its state, with the values that matter")},
};
#undef ROW

#define ROW nm_thread_row
static const struct nm_field thread_fields[] = {
	{FIELD(NUMBER, tid, "its number"), COLUMN("TID", ANY)},
	{FIELD(NUMBER, pid, "its process"), COLUMN("PID", ANY)},
	{FIELD(TEXT, comm, "name of its process"), WORDS("COMMAND")},
	{FIELD(NUMBER, cpu, "CPU on which it ran most"), COLUMN("CPU", ANY)},
	{FIELD(NUMBER, node, "node on which it ran most"), COLUMN("NODE", ANY)},
	{FIELD(NUMBER, preferred_node, "node whose memory it accesses most"), COLUMN("PREF", ANY)},
	{FIELD(REAL, local_share, "local access ratio"), COLUMN("LOCAL", SHARE)},
	{FIELD(REAL, latency_cycles, "mean latency"), COLUMN("LAT", FIGURE)},
	{FIELD(REAL, intensity, "operations per byte from memory"), COLUMN("INT", FIGURE)},
	{FIELD(REAL, relative_performance, "performance relative to the mean of its process"),
		COLUMN("P\xcc\x82", FIGURE), .plain_head = "P^"}, /* with a circumflex */
	{FIELD(REAL, run_share, "share of one CPU"), COLUMN("RUN", SHARE)},
	{FIELD(NUMBER, last_decision, "newest stored decision about it"), COLUMN("DEC", ANY)},
	{FIELD(NUMBER, assigned_node, "node to which it is assigned"), COLUMN("ASSIGN", ANY)},
	{FIELD(REAL, accesses, "sampled accesses, with decay"), COLUMN("ACC", FIGURE)},
	{FIELD(REAL, operations_per_s, "operations per second"), COLUMN("OPS/S", FIGURE)},
	{FIELD(REAL, instructions_per_s, "instructions per second"), COLUMN("INS/S", FIGURE)},
	{FIELD(REAL, performance, "performance"), COLUMN("PERF", FIGURE)},
};
#undef ROW

#define ROW nm_decision_row
static const struct nm_field decision_fields[] = {
	{FIELD(NUMBER, decision, "number, as in the journal"), COLUMN("ID", ANY)},
	{FIELD(NUMBER, time_usec, "realtime, in microseconds since 1970"), COLUMN("TIME", TIME),
		.left = true},
	{FIELD(TEXT, kind, "home, migrate, swap, rollback or pages"), WORDS("KIND")},
	{FIELD(NUMBER, pid, "its process"), COLUMN("PID", ANY)},
	{FIELD(TEXT, comm, "name of its process"), WORDS("COMMAND")},
	{FIELD(NUMBER, from_node, "the node before"), COLUMN("NODES", ARROW), .second = "to_node"},
	{FIELD(NUMBER, pages, "number of pages"), COLUMN("PAGES", ANY)},
	{FIELD(REAL, before, "measured value before"), COLUMN("BEFORE", MEASURE)},
	{FIELD(REAL, after, "measured value after"), COLUMN("AFTER", MEASURE)},
	{FIELD(TEXT, result, "applied, refused or dry-run; of homes and pages asked or dry-run"),
		WORDS("RESULT")},
	{FIELD(TEXT, verdict, "improved, neutral, rolled-back, worse, cancelled, inconclusive or "
		"unverified; empty until the verdict"), COLUMN("VERDICT", VERDICT), .left = true},
	{FIELD(NUMBER, to_node, "the node after")},
	{FIELD(NUMBER, from_cpu, "the CPU before")},
	{FIELD(NUMBER, to_cpu, "the CPU after")},
	{FIELD(TEXT, policy, "the policy that decided")},
	{FIELD(NUMBER, tid, "its thread; 0: a home, or pages")},
	{FIELD(NUMBER, partner_pid, "process of the other thread of a swap")},
	{FIELD(NUMBER, partner_tid, "the other thread of a swap")},
	{FIELD(TEXT, partner_comm, "name of its process")},
	{FIELD(NUMBER, bytes, "size of the pages")},
	{FIELD(TEXT, message, "text of the decision, as in the journal")},
	{FIELD(TEXT, figure, "what was measured: local_share or performance")},
	{FIELD(NUMBER, candidates_count, "candidates of its thread, if a lottery decided")},
	{FIELD(TEXT, fields, "fields of the journal entry, one NAME=value per line")},
	{FIELD(TEXT, verdict_message, "text of the verdict")},
};
#undef ROW

#define ROW nm_candidate_row
static const struct nm_field candidate_fields[] = {
	{FIELD(REAL, tickets, "its tickets"), COLUMN("TICKETS", ANY)},
	{FIELD(NUMBER, to_node, "node of the candidate"), COLUMN("NODE", ANY)},
	{FIELD(NUMBER, to_cpu, "its CPU, unless it is any idle CPU of that node"),
		COLUMN("CPU", ANY)},
	{FIELD(NUMBER, partner_tid, "the other thread of a swap"), COLUMN("PARTNER", ANY)},
	{FIELD(FLAG, won, "whether it was drawn"), COLUMN("WON", ANY)},
};
#undef ROW

#define ROW nm_comparison_row
static const struct nm_field trial_fields[] = {
	{FIELD(NUMBER, remaining_s, "time to its end")},
	{FIELD(FLAG, drawing, "whether processes are still drawn")},
	{FIELD(REAL, control_percent, "share of the processes that are left alone")},
	{FIELD(TEXT, result, "a sentence")},
	{FIELD(TEXT, forecast, "how long it takes to find a difference of 5 %")},
	{FIELD(TEXT, ended_early, "why it did not last until its end")},
	{FIELD(NUMBER, managed_units, "finished processes, or groups of related ones, managed")},
	{FIELD(NUMBER, control_units, "the same, left alone")},
	{FIELD(REAL, cpu_change, "relative change of the CPU time of managed ones, if there are enough "
		"units for an interval")},
	{FIELD(REAL, cpu_low, "lower end of its interval")},
	{FIELD(REAL, cpu_high, "upper end of its interval")},
	{FIELD(REAL, elapsed_change, "relative change of the elapsed time")},
	{FIELD(REAL, elapsed_low, "lower end of its interval")},
	{FIELD(REAL, elapsed_high, "upper end of its interval")},
	{FIELD(REAL, managed_local, "local access ratio of managed ones")},
	{FIELD(REAL, control_local, "the same of those left alone")},
	{FIELD(REAL, managed_distance, "mean distance of the accesses of managed ones; 1: local")},
	{FIELD(REAL, control_distance, "the same of those left alone")},
	{FIELD(REAL, managed_waiting, "time waiting for a CPU, as a share of the CPU time")},
	{FIELD(REAL, control_waiting, "the same of those left alone")},
};

static const struct nm_field program_fields[] = {
	{FIELD(TEXT, comm, "the command"), WORDS("COMMAND")},
	{FIELD(NUMBER, managed_units, "as above"), COLUMN("MANAGED", ANY)},
	{FIELD(NUMBER, control_units, "as above"), COLUMN("ALONE", ANY)},
	{FIELD(REAL, cpu_change, "as above"), COLUMN("CPU", SHARE)},
	{FIELD(REAL, cpu_low, "as above"), COLUMN("FROM", SHARE)},
	{FIELD(REAL, cpu_high, "as above"), COLUMN("TO", SHARE)},
	{FIELD(REAL, elapsed_change, "as above"), COLUMN("ELAPSED", SHARE)},
	{FIELD(REAL, elapsed_low, "as above"), COLUMN("FROM", SHARE)},
	{FIELD(REAL, elapsed_high, "as above"), COLUMN("TO", SHARE)},
	{FIELD(TEXT, state, "compared, too few units, or slower and left alone"), WORDS("STATE")},
};
#undef ROW

#define TABLE(n, f) {.name = (n), .fields = (f), .count = NM_ARRAY_SIZE(f)}

const struct nm_table nm_node_table = TABLE("nodes", node_fields);
const struct nm_table nm_process_table = TABLE("processes", process_fields);
const struct nm_table nm_thread_table = TABLE("threads", thread_fields);
const struct nm_table nm_decision_table = TABLE("decisions", decision_fields);
const struct nm_table nm_candidate_table = TABLE("candidates", candidate_fields);
const struct nm_table nm_trial_table = TABLE(NULL, trial_fields);
const struct nm_table nm_program_table = TABLE("programs", program_fields);
/* clang-format on */

void nm_row_init(const struct nm_table *table, void *row)
{
	for (size_t i = 0; i < table->count; i++) {
		void *value = (char *)row + table->fields[i].offset;
		switch (table->fields[i].type) {
		case NM_FIELD_TEXT:
			*(const char **)value = NULL;
			break;
		case NM_FIELD_FLAG:
			*(bool *)value = false;
			break;
		case NM_FIELD_NUMBER:
			*(int64_t *)value = -1;
			break;
		case NM_FIELD_REAL:
			*(double *)value = (double)NAN;
			break;
		case NM_FIELD_SHARES:
			*(struct nm_shares *)value = (struct nm_shares){0};
			break;
		}
	}
}

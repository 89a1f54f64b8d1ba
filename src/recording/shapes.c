/* SPDX-License-Identifier: MIT */
/* The fields of each kind of record, as numa-migrctl dump shows them. */
#include "fields.h"

#define SIZE(type, member) sizeof(((type *)0)->member)
#define AT(type, member) .name = #member, .offset = offsetof(type, member)
#define SIZED(type, member) AT(type, member), .size = SIZE(type, member)
#define COUNTED(type, number) .count = offsetof(type, number) + 1, .count_size = SIZE(type, number)
#define FIELD(type, member, how)                                                                   \
	{                                                                                          \
		SIZED(type, member), .kind = NM_FIELD_##how                                        \
	}
#define UINT(type, member) FIELD(type, member, UINT)
#define INT(type, member) FIELD(type, member, INT)
#define REAL(type, member) FIELD(type, member, REAL)
#define BOOL(type, member) FIELD(type, member, BOOL)
#define CHARS(type, member) FIELD(type, member, CHARS)
#define TEXT(type, member) FIELD(type, member, TEXT)
#define MASK(type, member) FIELD(type, member, MASK)
/* A choice with as many values as words. */
#define ENUM(type, member, known)                                                                  \
	{                                                                                          \
		SIZED(type, member), .words = (known), .most = NM_ARRAY_SIZE(known),               \
				     .kind = NM_FIELD_UINT                                         \
	}
/* A number below `limit`. */
#define UINT_BELOW(type, member, limit)                                                            \
	{                                                                                          \
		SIZED(type, member), .most = (limit), .kind = NM_FIELD_UINT                        \
	}
#define PLACED(type, member, of, number, room)                                                     \
	{                                                                                          \
		AT(type, member), COUNTED(type, number), .shape = &(of), .most = (room),           \
							 .kind = NM_FIELD_SHAPE                    \
	}
/* A pointer to as many values as `number`. */
#define ITEMS(type, member, number, of)                                                            \
	{                                                                                          \
		AT(type, member), COUNTED(type, number), .shape = &(of), .kind = NM_FIELD_ITEMS    \
	}
#define ONE(type, member, of)                                                                      \
	{                                                                                          \
		AT(type, member), .shape = &(of), .most = 1, .kind = NM_FIELD_SHAPE                \
	}
#define SHAPE(what, type, list)                                                                    \
	static const struct nm_shape what = {                                                      \
		.size = sizeof(type), .fields = list, .count = NM_ARRAY_SIZE(list)}

/* In the order of the enumerations, and complete: see WORDS_OF. */
static const char *const selection_words[] = {
	"first_fit",	  "total_min",	      "remote_min",  "local_max",	 "most_benefit",
	"cost_effective", "exclusivity_base", "exclusivity", "most_benefit_plus"};
static const char *const selected_by_words[] = {"none", "rule", "leader"};
static const char *const pin_words[] = {"lease", "nudge"};
static const char *const runtime_words[] = {"none", "go", "java", "unknown", "awaited"};
static const char *const decision_words[] = {"migrate", "swap", "rollback", "home", "pages"};
static const char *const place_words[] = {
	"there",   "single", "small",	"memory", "separate", "held",	"barred", "young",
	"watched", "idle",   "no-room", "near",	  "too-dear", "spread", "fixed",  "wakes"};
static const char *const judged_by_words[] = {"none", "performance", "distance", "run-queue-delay"};
static const char *const policy_words[] = {"none", "lbma", "imar2", "kmaf", "balance", "auto"};
static const char *const verdict_words[] = {"improved", "neutral", "rolled-back", "cancelled",
					    "inconclusive"};
static const char *const reason_words[] = {"pages", "region", "contention", "rollback"};
static const char *const call_words[] = {"tick",	"drain",   "nudges", "examine",
					 "open-source", "release", "reload"};
static const char *const sample_words[] = {
	"side-band", "cpu-clock", "cycles",	  "page-faults-min", "page-faults-maj",
	"memory",    "stores",	  "instructions", "flops",	     "dram"};
static const char *const task_words[] = {"fork", "exit", "comm", "exec"};
static const char *const memory_words[] = {"none", "pebs", "ibs", "pmu", "spe", "event"};
#define WORDS_OF(words, last)                                                                      \
	_Static_assert(NM_ARRAY_SIZE(words) == (last) + 1, "a word for each value")
WORDS_OF(selection_words, NM_SELECTION_MOST_BENEFIT_PLUS);
WORDS_OF(selected_by_words, NM_SELECTED_BY_LEADER);
WORDS_OF(pin_words, NM_STEP_NUDGE);
WORDS_OF(runtime_words, NM_RUNTIME_AWAITED);
WORDS_OF(decision_words, NM_DECISION_PAGES);
WORDS_OF(place_words, NM_PLACE_REASON_MAX - 1);
WORDS_OF(judged_by_words, NM_PLACE_BY_DELAY);
WORDS_OF(policy_words, NM_POLICY_MAX - 1);
WORDS_OF(verdict_words, NM_VERDICT_INCONCLUSIVE);
WORDS_OF(reason_words, NM_PAGE_REASON_ROLLBACK);
WORDS_OF(call_words, NM_CALLS - 1);
WORDS_OF(sample_words, NM_EVENT_KIND_MAX - 1);
WORDS_OF(task_words, NM_TASK_EXEC);
WORDS_OF(memory_words, NM_MEMORY_SOURCE_MAX - 1);

typedef struct nm_recorded_start start_t;
static const struct nm_field start_fields[] = {
	CHARS(start_t, version),    UINT(start_t, time_s),	  UINT(start_t, monotonic_ns),
	UINT(start_t, seed),	    UINT(start_t, next_decision), UINT(start_t, intervals),
	UINT(start_t, pid),	    BOOL(start_t, dry_run),	  CHARS(start_t, source),
	TEXT(start_t, config_name), TEXT(start_t, config),	  UINT(start_t, config_length),
};
SHAPE(start_shape, start_t, start_fields);

typedef struct nm_recorded_interval interval_t;
static const struct nm_field interval_fields[] = {
	UINT(interval_t, number),      UINT(interval_t, time_ns),     UINT(interval_t, length_ns),
	REAL(interval_t, local_share), REAL(interval_t, performance), UINT(interval_t, nr_threads),
};
SHAPE(interval_shape, interval_t, interval_fields);

typedef struct nm_recorded_thread thread_t;
static const struct nm_field thread_fields[] = {
	UINT(thread_t, tid),	      UINT(thread_t, pid),	    INT(thread_t, main_cpu),
	INT(thread_t, main_node),     INT(thread_t, preferred),	    REAL(thread_t, run_share),
	REAL(thread_t, local_share),  REAL(thread_t, access_total), REAL(thread_t, latency),
	REAL(thread_t, instructions), REAL(thread_t, operations),   REAL(thread_t, intensity),
	REAL(thread_t, performance),  REAL(thread_t, relative),	    BOOL(thread_t, leased),
	BOOL(thread_t, measured),     BOOL(thread_t, movable),
};
SHAPE(thread_shape, thread_t, thread_fields);

typedef struct nm_recorded_process process_t;
static const struct nm_field process_fields[] = {
	UINT(process_t, pid),	  UINT(process_t, uid),		CHARS(process_t, comm),
	UINT(process_t, threads), REAL(process_t, performance),
};
SHAPE(process_shape, process_t, process_fields);

/* ---- decisions ---- */

typedef struct nm_balance_reason balance_t;
static const struct nm_field balance_fields[] = {
	BOOL(balance_t, given),
	ENUM(balance_t, selection, selection_words),
	ENUM(balance_t, by, selected_by_words),
	REAL(balance_t, metric),
	REAL(balance_t, cost_change),
	REAL(balance_t, load),
	REAL(balance_t, load_from),
	REAL(balance_t, load_to),
	REAL(balance_t, gap),
	REAL(balance_t, gain),
	REAL(balance_t, resident),
	REAL(balance_t, age_s),
};
SHAPE(balance_shape, balance_t, balance_fields);

typedef struct nm_tickets tickets_t;
static const struct nm_field tickets_fields[] = {
	REAL(tickets_t, total),	       REAL(tickets_t, free_cpu), REAL(tickets_t, preferred),
	REAL(tickets_t, partner),      REAL(tickets_t, record),	  REAL(tickets_t, partner_record),
	REAL(tickets_t, partner_slow),
};
SHAPE(tickets_shape, tickets_t, tickets_fields);

typedef struct nm_alternative rival_t;
static const struct nm_field rival_fields[] = {
	INT(rival_t, node_to),
	INT(rival_t, cpu_to),
	UINT(rival_t, partner),
	REAL(rival_t, tickets),
};
SHAPE(rival_shape, rival_t, rival_fields);

typedef struct nm_step step_t;
static const struct nm_field step_fields[] = {
	UINT(step_t, tid),
	UINT(step_t, pid),
	UINT(step_t, start_ticks),
	UINT(step_t, adopted_ns),
	ENUM(step_t, pin, pin_words),
	ENUM(step_t, runtime, runtime_words),
	INT(step_t, cpu_from),
	INT(step_t, cpu_to),
	INT(step_t, node_from),
	INT(step_t, node_to),
	MASK(step_t, target),
	BOOL(step_t, unrestricted),
	REAL(step_t, local_before),
	REAL(step_t, samples_before),
	REAL(step_t, latency_before),
	REAL(step_t, performance_before),
	REAL(step_t, relative_before),
	REAL(step_t, record),
	REAL(step_t, latency_samples_before),
	REAL(step_t, shared),
	REAL(step_t, access_cost_before),
	CHARS(step_t, comm),
};
SHAPE(step_shape, step_t, step_fields);

typedef struct nm_home_reason home_t;
static const struct nm_field home_fields[] = {
	ENUM(home_t, reason, place_words),
	UINT(home_t, threads),
	REAL(home_t, demand_cpus),
	REAL(home_t, age_s),
	REAL(home_t, distance_now),
	REAL(home_t, distance_home),
	REAL(home_t, load),
	UINT(home_t, bytes_away),
	REAL(home_t, move_s),
};
SHAPE(home_shape, home_t, home_fields);

typedef struct nm_pages_reason pages_t;
static const struct nm_field pages_fields[] = {
	ENUM(pages_t, reason, reason_words),
	UINT(pages_t, pages),
	UINT(pages_t, bytes),
	REAL(pages_t, exclusivity),
};
SHAPE(pages_shape, pages_t, pages_fields);

typedef struct nm_decision decision_t;
static const struct nm_field decision_fields[] = {
	UINT(decision_t, id),
	ENUM(decision_t, kind, decision_words),
	ENUM(decision_t, policy, policy_words),
	UINT(decision_t, interval),
	UINT(decision_t, undoes),
	BOOL(decision_t, by_performance),
	BOOL(decision_t, by_locality),
	REAL(decision_t, cost_before),
	REAL(decision_t, cost_after),
	ONE(decision_t, balance, balance_shape),
	ONE(decision_t, home, home_shape),
	ONE(decision_t, pages, pages_shape),
	ONE(decision_t, tickets, tickets_shape),
	REAL(decision_t, draw),
	REAL(decision_t, gain),
	PLACED(decision_t, alternatives, rival_shape, nr_alternatives, NM_ALTERNATIVES_MAX),
	UINT(decision_t, nr_candidates),
	PLACED(decision_t, steps, step_shape, nr_steps, 2),
};
SHAPE(decision_shape, decision_t, decision_fields);

typedef struct nm_receipt_step receipt_step_t;
static const struct nm_field receipt_step_fields[] = {
	BOOL(receipt_step_t, tried), BOOL(receipt_step_t, applied), BOOL(receipt_step_t, undone),
	INT(receipt_step_t, error),  TEXT(receipt_step_t, what),
};
SHAPE(receipt_step_shape, receipt_step_t, receipt_step_fields);

typedef struct nm_receipt receipt_t;
static const struct nm_field receipt_fields[] = {
	UINT(receipt_t, decision),
	BOOL(receipt_t, applied),
	PLACED(receipt_t, steps, receipt_step_shape, nr_steps, 2),
};
SHAPE(receipt_shape, receipt_t, receipt_fields);

/* ---- verdicts ---- */

typedef struct nm_verdict_thread verdict_thread_t;
static const struct nm_field verdict_thread_fields[] = {
	UINT(verdict_thread_t, tid),
	UINT(verdict_thread_t, pid),
	UINT(verdict_thread_t, start_ticks),
	UINT(verdict_thread_t, adopted_ns),
	BOOL(verdict_thread_t, alive),
	BOOL(verdict_thread_t, ran_on_node),
	INT(verdict_thread_t, cpu_from),
	INT(verdict_thread_t, node_from),
	INT(verdict_thread_t, node_to),
	REAL(verdict_thread_t, local_before),
	REAL(verdict_thread_t, local_after),
	REAL(verdict_thread_t, samples_before),
	UINT(verdict_thread_t, accesses_after),
	UINT(verdict_thread_t, samples_after),
	REAL(verdict_thread_t, latency_before),
	REAL(verdict_thread_t, latency_after),
	REAL(verdict_thread_t, performance_before),
	REAL(verdict_thread_t, performance_after),
	REAL(verdict_thread_t, latency_samples_before),
	REAL(verdict_thread_t, latency_samples_after),
	REAL(verdict_thread_t, access_cost_before),
	REAL(verdict_thread_t, access_cost_after),
};
SHAPE(verdict_thread_shape, verdict_thread_t, verdict_thread_fields);

typedef struct nm_page_results page_results_t;
static const struct nm_field page_results_fields[] = {
	UINT(page_results_t, moved),	 UINT(page_results_t, elsewhere),
	UINT(page_results_t, refused),	 UINT(page_results_t, failed),
	UINT(page_results_t, untried),	 UINT(page_results_t, busy),
	UINT(page_results_t, gone),	 UINT(page_results_t, denied),
	UINT(page_results_t, no_memory), UINT(page_results_t, fault),
	UINT(page_results_t, forgotten), UINT(page_results_t, remembered),
	INT(page_results_t, error),
};
SHAPE(page_results_shape, page_results_t, page_results_fields);

typedef struct nm_verdict verdict_t;
static const struct nm_field verdict_fields[] = {
	UINT(verdict_t, decision),
	ENUM(verdict_t, of, decision_words),
	ENUM(verdict_t, kind, verdict_words),
	UINT(verdict_t, intervals),
	ENUM(verdict_t, policy, policy_words),
	BOOL(verdict_t, by_performance),
	REAL(verdict_t, figure),
	REAL(verdict_t, noise),
	REAL(verdict_t, losses),
	REAL(verdict_t, global_before),
	REAL(verdict_t, global_after),
	REAL(verdict_t, interval_s),
	REAL(verdict_t, locality_before),
	REAL(verdict_t, locality_after),
	REAL(verdict_t, locality_noise),
	REAL(verdict_t, cost_before),
	REAL(verdict_t, cost_after),
	REAL(verdict_t, cost_noise),
	REAL(verdict_t, slowdown),
	REAL(verdict_t, slowdown_noise),
	ONE(verdict_t, balance, balance_shape),
	REAL(verdict_t, measured_benefit),
	ENUM(verdict_t, judged_by, judged_by_words),
	REAL(verdict_t, change),
	ONE(verdict_t, pages, pages_shape),
	UINT(verdict_t, together),
	ONE(verdict_t, results, page_results_shape),
	PLACED(verdict_t, threads, verdict_thread_shape, nr_threads, 2),
};
SHAPE(verdict_shape, verdict_t, verdict_fields);

typedef struct nm_recorded_entry entry_t;
static const struct nm_field entry_fields[] = {
	UINT(entry_t, decision), UINT(entry_t, time_usec), INT(entry_t, priority),
	TEXT(entry_t, text),	 TEXT(entry_t, fields),
};
SHAPE(entry_shape, entry_t, entry_fields);

/* ---- inputs ---- */

typedef struct nm_recorded_step call_t;
static const struct nm_field call_fields[] = {
	ENUM(call_t, call, call_words),
	UINT(call_t, number),
	TEXT(call_t, text),
	UINT(call_t, length),
};
SHAPE(call_shape, call_t, call_fields);

typedef struct nm_recorded_answer answer_t;
static const struct nm_field answer_fields[] = {
	TEXT(answer_t, operation),
	INT(answer_t, handle),
	TEXT(answer_t, path),
	INT(answer_t, result),
	{AT(answer_t, bytes), COUNTED(answer_t, length), .kind = NM_FIELD_BLOB},
};
SHAPE(answer_shape, answer_t, answer_fields);

typedef struct nm_ring_counts counts_t;
static const struct nm_field counts_fields[] = {
	UINT(counts_t, samples),   UINT(counts_t, task_events), UINT(counts_t, lost),
	UINT(counts_t, throttled), UINT(counts_t, corrupt),	UINT(counts_t, unknown),
	UINT(counts_t, no_access), UINT(counts_t, kernel),
};
SHAPE(counts_shape, counts_t, counts_fields);

typedef struct nm_source_status status_t;
static const struct nm_field status_fields[] = {
	BOOL(status_t, runs),
	BOOL(status_t, accesses),
	ENUM(status_t, memory, memory_words),
	BOOL(status_t, has_instructions),
	BOOL(status_t, has_flops),
	BOOL(status_t, has_dram),
	UINT(status_t, memory_period),
	CHARS(status_t, name),
	BOOL(status_t, has_cycles),
	UINT(status_t, cpus_open),
	UINT(status_t, clock_period),
	UINT(status_t, fault_period),
	REAL(status_t, run_sample_ns),
	ONE(status_t, counts, counts_shape),
};
SHAPE(status_shape, status_t, status_fields);

static const struct nm_field real_fields[] = {{.kind = NM_FIELD_REAL}};
SHAPE(real_shape, double, real_fields);

typedef struct nm_recorded_source source_t;
static const struct nm_field source_fields[] = {
	BOOL(source_t, open),
	ONE(source_t, status, status_shape),
	ITEMS(source_t, taken_per_seen, nr_cpus, real_shape),
};
SHAPE(source_shape, source_t, source_fields);

typedef struct nm_sample sample_t;
static const struct nm_field sample_fields[] = {
	ENUM(sample_t, kind, sample_words),
	UINT(sample_t, pid),
	UINT(sample_t, tid),
	UINT(sample_t, cpu),
	UINT(sample_t, time_ns),
	UINT(sample_t, address),
	UINT_BELOW(sample_t, page_node, NM_RECORDING_NODES_MOST + 1),
	UINT(sample_t, page_bytes),
	UINT(sample_t, latency_cycles),
	UINT_BELOW(sample_t, level, NM_LEVEL_DRAM + 1),
	BOOL(sample_t, remote),
	UINT(sample_t, weight),
	UINT(sample_t, amount),
};
SHAPE(sample_shape, sample_t, sample_fields);

typedef struct nm_task_event event_t;
static const struct nm_field event_fields[] = {
	ENUM(event_t, kind, task_words), UINT(event_t, pid),	    UINT(event_t, tid),
	UINT(event_t, parent_pid),	 UINT(event_t, parent_tid), UINT(event_t, time_ns),
};
SHAPE(event_shape, event_t, event_fields);

typedef struct nm_recorded_samples samples_t;
static const struct nm_field samples_fields[] = {
	ITEMS(samples_t, samples, nr_samples, sample_shape),
	ITEMS(samples_t, events, nr_events, event_shape),
};
SHAPE(samples_shape, samples_t, samples_fields);

/* ---- machine ---- */

static const struct nm_field cpu_fields[] = {
	BOOL(struct nm_cpu, present),	BOOL(struct nm_cpu, online), BOOL(struct nm_cpu, isolated),
	BOOL(struct nm_cpu, nohz_full), INT(struct nm_cpu, node),    INT(struct nm_cpu, core),
	INT(struct nm_cpu, cache),
};
SHAPE(cpu_shape, struct nm_cpu, cpu_fields);

static const struct nm_field node_fields[] = {
	UINT(struct nm_node, os_id),
	MASK(struct nm_node, cpus),
	UINT(struct nm_node, memory_bytes),
	INT(struct nm_node, nearest_with_cpus),
};
SHAPE(node_shape, struct nm_node, node_fields);

static const struct nm_field distance_fields[] = {
	{.size = sizeof(unsigned), .kind = NM_FIELD_UINT}};
SHAPE(distance_shape, unsigned, distance_fields);

typedef struct nm_topology topology_t;
typedef struct nm_topology_parts parts_t;
static const struct nm_field parts_fields[] = {
	ITEMS(topology_t, nodes, nr_nodes, node_shape),
	ITEMS(topology_t, cpus, nr_cpus, cpu_shape),
	{AT(topology_t, distance), COUNTED(parts_t, nr_cells), .shape = &distance_shape,
	 .kind = NM_FIELD_ITEMS},
	MASK(topology_t, usable),
	MASK(topology_t, online),
	MASK(topology_t, possible),
	UINT(topology_t, llc_bytes),
};
_Static_assert(offsetof(parts_t, topology) == 0, "the offsets above");
SHAPE(parts_shape, parts_t, parts_fields);

const struct nm_shape *nm_shape_of_topology(void)
{
	return &parts_shape;
}

/* ---- kinds ---- */

typedef struct nm_recorded recorded_t;
/* Lists begin with their pointer: see struct nm_recorded. */
#define LIST(list, of)                                                                             \
	static const struct nm_field list##_list[] = {                                             \
		{.name = #list,                                                                    \
		 .shape = &(of),                                                                   \
		 .offset = offsetof(recorded_t, list.items) - offsetof(recorded_t, list),          \
		 .count = offsetof(recorded_t, list.count) - offsetof(recorded_t, list) + 1,       \
		 .count_size = sizeof(size_t),                                                     \
		 .kind = NM_FIELD_ITEMS}};                                                         \
	static const struct nm_shape list##_items = {                                              \
		.size = SIZE(recorded_t, list), .fields = list##_list, .count = 1}

LIST(threads, thread_shape);
LIST(processes, process_shape);

static const struct nm_field end_fields[] = {
	{.name = "reason", .size = sizeof(const char *), .kind = NM_FIELD_TEXT}};
SHAPE(end_shape, const char *, end_fields);

#define OF(number, member, of)                                                                     \
	[number] = {                                                                               \
		.shape = &(of),                                                                    \
		.place = offsetof(recorded_t, member),                                             \
	}
static const struct {
	const struct nm_shape *shape;
	size_t place;
} shapes[NM_RECORDED_KINDS] = {
	OF(NM_RECORDED_START, start, start_shape),
	OF(NM_RECORDED_INTERVAL, about, interval_shape),
	OF(NM_RECORDED_THREADS, threads, threads_items),
	OF(NM_RECORDED_PROCESSES, processes, processes_items),
	OF(NM_RECORDED_VERDICT, verdict, verdict_shape),
	OF(NM_RECORDED_DECISION, decision, decision_shape),
	OF(NM_RECORDED_RECEIPT, receipt, receipt_shape),
	OF(NM_RECORDED_ENTRY, entry, entry_shape),
	OF(NM_RECORDED_END, end, end_shape),
	OF(NM_RECORDED_CALL, step, call_shape),
	OF(NM_RECORDED_ANSWER, answer, answer_shape),
	OF(NM_RECORDED_SOURCE, source, source_shape),
	OF(NM_RECORDED_SAMPLES, samples, samples_shape),
};

const struct nm_shape *nm_shape_of(enum nm_recorded_kind kind)
{
	return kind < NM_RECORDED_KINDS ? shapes[kind].shape : NULL;
}

size_t nm_shape_place(enum nm_recorded_kind kind)
{
	return shapes[kind].place;
}

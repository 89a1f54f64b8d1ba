/* SPDX-License-Identifier: MIT */
#include "report/history.h"

#include <string.h>

/* ---- storage ---- */

static void item_clear(struct nm_history_item *item)
{
	free(item->message);
	free(item->fields);
	free(item->verdict_message);
	*item = (struct nm_history_item){0};
}

void nm_history_clear(struct nm_history *history)
{
	for (size_t i = 0; history->items && i < NM_HISTORY_MAX; i++)
		item_clear(&history->items[i]);
	free(history->items);
	*history = (struct nm_history){0};
}

struct nm_history_item *nm_history_find(const struct nm_history *history, uint64_t id)
{
	if (!history->items || id < history->first || id >= history->next)
		return NULL;
	struct nm_history_item *item = &history->items[id % NM_HISTORY_MAX];
	return item->decision.id == id ? item : NULL;
}

/* Ids are ascending, but some are never logged. */
static struct nm_history_item *slot_of_decision(struct nm_history *history, uint64_t id)
{
	if (!history->items) {
		history->items = nm_must(calloc(NM_HISTORY_MAX, sizeof(*history->items)));
		history->first = id;
	}
	struct nm_history_item *item = &history->items[id % NM_HISTORY_MAX];
	item_clear(item);
	if (history->next <= id)
		history->next = id + 1;
	if (history->next - history->first > NM_HISTORY_MAX)
		history->first = history->next - NM_HISTORY_MAX;
	return item;
}

/* The topology may change, and affinities belong to the plan. */
static void remove_references(struct nm_decision *decision, const struct nm_topology *topology)
{
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		struct nm_step *step = &decision->steps[i];
		step->node_from = nm_topology_os_id(topology, step->node_from);
		step->node_to = nm_topology_os_id(topology, step->node_to);
		step->target = NULL;
		step->original = NULL;
	}
	for (size_t i = 0; i < decision->nr_alternatives; i++)
		decision->alternatives[i].node_to =
			nm_topology_os_id(topology, decision->alternatives[i].node_to);
}

void nm_history_add(struct nm_history *history, const struct nm_topology *topology,
		    const struct nm_history_item *added, const struct nm_entry *entry)
{
	double before = added->decision.steps[0].local_before;
	struct nm_history_item *item = slot_of_decision(history, added->decision.id);
	*item = (struct nm_history_item){.time_usec = added->time_usec,
					 .result = added->result,
					 .decision = added->decision,
					 .figure = isfinite(before) ? "local_share" : NULL,
					 .before = before,
					 .after = NAN,
					 .message = nm_must(strdup(entry->text)),
					 .fields = nm_entry_fields(entry)};
	remove_references(&item->decision, topology);
}

/* As precise as the journal is. */
static double rounded_share(double share)
{
	return rint(share * 1000) / 1000;
}

/* The metric of the verdict: the performance if it is known before and after, otherwise the local
 * access ratio. */
static void set_metric(struct nm_history_item *item, const struct nm_verdict *verdict)
{
	const struct nm_verdict_thread *thread = &verdict->threads[0];
	bool performed = verdict->by_performance && isfinite(thread->performance_before) &&
			 isfinite(thread->performance_after);
	item->figure = performed ? "performance" : "local_share";
	item->before = performed ? thread->performance_before : rounded_share(thread->local_before);
	item->after = performed ? thread->performance_after : rounded_share(thread->local_after);
}

void nm_history_judge(struct nm_history *history, const struct nm_verdict *verdict,
		      const struct nm_entry *entry)
{
	struct nm_history_item *item = nm_history_find(history, verdict->decision);
	if (!item)
		return;
	item->judged = true;
	item->verdict = verdict->kind;
	free(item->verdict_message);
	item->verdict_message = nm_must(strdup(entry->text));
	set_metric(item, verdict);
}

/* ---- output ---- */

static void fill_steps(const struct nm_decision *decision, struct nm_decision_row *row)
{
	const struct nm_step *step = &decision->steps[0], *partner = &decision->steps[1];
	if (decision->nr_steps > 0) {
		row->pid = step->pid;
		row->tid = step->tid;
		row->comm = step->comm;
		row->from_cpu = step->cpu_from;
		row->to_cpu = step->cpu_to;
		row->from_node = step->node_from;
		row->to_node = step->node_to;
	}
	if (decision->nr_steps > 1) { /* moves in the opposite direction */
		row->partner_pid = partner->pid;
		row->partner_tid = partner->tid;
		row->partner_comm = partner->comm;
	}
	if (decision->kind == NM_DECISION_PAGES) {
		row->pages = (int64_t)decision->pages.pages;
		row->bytes = (int64_t)decision->pages.bytes;
	}
}

/* The first candidate is the one that was chosen. */
static json_t *list_candidates(const struct nm_decision *decision)
{
	json_t *list = nm_must(json_array());
	for (size_t i = 0; i < decision->nr_alternatives; i++) {
		const struct nm_alternative *alternative = &decision->alternatives[i];
		const struct nm_candidate_row row = {
			.to_node = alternative->node_to,
			.to_cpu = alternative->cpu_to,
			.partner_tid = alternative->partner ? (int64_t)alternative->partner : -1,
			.tickets = alternative->tickets,
			.won = i == 0,
		};
		nm_must_do(json_array_append_new(list, nm_row_json(&nm_candidate_table, &row)));
	}
	return list;
}

static json_t *item_json(const struct nm_history_item *item)
{
	const struct nm_decision *decision = &item->decision;
	struct nm_decision_row row;
	nm_row_init(&nm_decision_table, &row);
	row.decision = (int64_t)decision->id;
	row.time_usec = (int64_t)item->time_usec;
	row.kind = nm_decision_kind_name(decision->kind);
	row.policy = nm_decision_policy_name(decision->kind, decision->policy);
	fill_steps(decision, &row);
	row.result = item->result;
	row.verdict = item->judged ? nm_verdict_kind_name(item->verdict) : "";
	row.message = item->message;
	row.figure = item->figure;
	row.before = item->before;
	row.after = item->after;
	row.fields = item->fields;
	row.verdict_message = item->verdict_message ? item->verdict_message : "";
	if (decision->nr_alternatives > 0)
		row.candidates_count = (int64_t)decision->nr_candidates;
	json_t *object = nm_row_json(&nm_decision_table, &row);
	if (decision->nr_alternatives > 0)
		nm_must_do(json_object_set_new(object, nm_candidate_table.name,
					       list_candidates(decision)));
	return object;
}

void nm_history_show(const struct nm_history *history, struct nm_dump *dump)
{
	nm_dump_begin(dump, nm_decision_table.name);
	for (uint64_t id = history->first; id < history->next; id++) {
		const struct nm_history_item *item = nm_history_find(history, id);
		if (item && nm_dump_admit(dump))
			nm_dump_row(dump, item_json(item));
	}
	nm_dump_end(dump);
}

/* SPDX-License-Identifier: MIT */
#include "history.h"

#include <string.h>

/* ---- storage ---- */

static void item_clear(struct nm_history_item *item)
{
	free(item->text.message);
	free(item->text.fields);
	free(item->text.verdict);
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
		history->items = calloc(NM_HISTORY_MAX, sizeof(*history->items));
		history->first = id;
	}
	if (!history->items)
		return NULL;
	struct nm_history_item *item = &history->items[id % NM_HISTORY_MAX];
	item_clear(item);
	if (history->next <= id)
		history->next = id + 1;
	if (history->next - history->first > NM_HISTORY_MAX)
		history->first = history->next - NM_HISTORY_MAX;
	return item;
}

static int os_node(const struct nm_topology *topology, int node)
{
	return node < 0 || (unsigned)node >= topology->nr_nodes ? -1
								: (int)topology->nodes[node].os_id;
}

/* The topology may change, and affinities belong to the plan. */
static void remove_references(struct nm_decision *decision, const struct nm_topology *topology)
{
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		struct nm_step *step = &decision->steps[i];
		step->node_from = os_node(topology, step->node_from);
		step->node_to = os_node(topology, step->node_to);
		step->target = NULL;
		step->original = NULL;
	}
	for (size_t i = 0; i < decision->nr_alternatives; i++)
		decision->alternatives[i].node_to =
			os_node(topology, decision->alternatives[i].node_to);
}

void nm_history_add(struct nm_history *history, const struct nm_topology *topology,
		    const struct nm_history_item *added, const struct nm_entry *entry)
{
	double before = added->decision.steps[0].local_before;
	struct nm_history_item *item = slot_of_decision(history, added->decision.id);
	if (!item)
		return;
	*item = (struct nm_history_item){.time_usec = added->time_usec,
					 .result = added->result,
					 .decision = added->decision,
					 .figure = isfinite(before) ? "local_share" : NULL,
					 .before = before,
					 .after = NAN,
					 .text = {.message = strdup(entry->text),
						  .fields = nm_entry_fields(entry),
						  .reason = entry->reason,
						  .reason_end = entry->reason_end}};
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
	free(item->text.verdict);
	item->text.verdict = strdup(entry->text);
	set_metric(item, verdict);
}

/* ---- output ---- */

static void write_text(const struct nm_show *show, const char *name, const char *text)
{
	nm_show_text(show, name, text ? text : "");
}

static void write_number(const struct nm_show *show, const char *name, int number)
{
	if (number >= 0)
		nm_show_i32(show, name, number);
}

static void write_thread(const struct nm_step *thread, const struct nm_show *show)
{
	nm_show_u32(show, "pid", thread->pid);
	nm_show_u32(show, "tid", thread->tid);
	nm_show_text(show, "comm", thread->comm);
	write_number(show, "from_cpu", thread->cpu_from);
	write_number(show, "to_cpu", thread->cpu_to);
	write_number(show, "from_node", thread->node_from);
	write_number(show, "to_node", thread->node_to);
}

/* Writes the other thread of a swap, which moves in the opposite direction. */
static void write_partner(const struct nm_step *thread, const struct nm_show *show)
{
	nm_show_u32(show, "partner_pid", thread->pid);
	nm_show_u32(show, "partner_tid", thread->tid);
	nm_show_text(show, "partner_comm", thread->comm);
}

static void write_item(const struct nm_history_item *item, const struct nm_show *show)
{
	const struct nm_decision *decision = &item->decision;
	nm_show_u64(show, "decision", decision->id);
	nm_show_u64(show, "time_usec", item->time_usec);
	nm_show_text(show, "kind", nm_decision_kind_name(decision->kind));
	nm_show_text(show, "policy", nm_decision_policy_name(decision->kind, decision->policy));
	if (decision->nr_steps > 0)
		write_thread(&decision->steps[0], show);
	if (decision->nr_steps > 1)
		write_partner(&decision->steps[1], show);
	if (decision->kind == NM_DECISION_PAGES) {
		nm_show_u64(show, "pages", decision->pages.pages);
		nm_show_u64(show, "bytes", decision->pages.bytes);
	}
	write_text(show, "result", item->result);
	write_text(show, "verdict", item->judged ? nm_verdict_kind_name(item->verdict) : NULL);
	write_text(show, "message", item->text.message);
	if (item->figure)
		nm_show_text(show, "figure", item->figure);
	nm_show_real(show, "before", item->before);
	nm_show_real(show, "after", item->after);
}

static void write_reasons(const struct nm_history_text *text, const struct nm_show *show)
{
	nm_autofree char *reasons = NULL;
	if (text->message && text->reason < text->reason_end)
		reasons = strndup(text->message + text->reason, text->reason_end - text->reason);
	write_text(show, "reasons", reasons ? reasons + strspn(reasons, ": ") : NULL);
}

/* The first candidate is the one that was chosen. */
static void write_candidates(const struct nm_decision *decision, const struct nm_show *show)
{
	nm_show_u64(show, "candidates_count", decision->nr_candidates);
	show->begin(show->context, "candidates");
	for (size_t i = 0; i < decision->nr_alternatives; i++) {
		const struct nm_alternative *alternative = &decision->alternatives[i];
		show->open(show->context);
		write_number(show, "to_node", alternative->node_to);
		write_number(show, "to_cpu", alternative->cpu_to);
		if (alternative->partner)
			nm_show_u32(show, "partner_tid", alternative->partner);
		nm_show_real(show, "tickets", alternative->tickets);
		nm_show_flag(show, "won", i == 0);
		show->close(show->context);
	}
	show->end(show->context);
}

void nm_history_explain(const struct nm_history_item *item, const struct nm_show *show)
{
	const struct nm_decision *decision = &item->decision;
	char parts[NM_TICKETS_BYTES];
	write_item(item, show);
	if (nm_decision_has_tickets(decision)) {
		nm_show_real(show, "tickets", decision->tickets.total);
		nm_show_text(show, "tickets_parts",
			     nm_tickets_text(&decision->tickets, decision->policy, parts));
		nm_show_real(show, "draw", decision->draw);
	}
	if (decision->nr_alternatives > 0)
		write_candidates(decision, show);
	write_reasons(&item->text, show);
	write_text(show, "fields", item->text.fields);
	write_text(show, "verdict_message", item->text.verdict);
}

static uint64_t first_to_list(const struct nm_history *history, uint64_t after, uint32_t most)
{
	uint64_t from = history->next;
	uint32_t count = 0;
	while (from > history->first && from - 1 > after && (most == 0 || count < most))
		count += nm_history_find(history, --from) != NULL;
	return from;
}

void nm_history_list(const struct nm_history *history, uint64_t after, uint32_t most,
		     const struct nm_show *show)
{
	for (uint64_t id = first_to_list(history, after, most); id < history->next; id++) {
		struct nm_history_item *item = nm_history_find(history, id);
		if (!item)
			continue;
		show->open(show->context);
		write_item(item, show);
		show->close(show->context);
	}
}

/* ---- by thread ---- */

static int compare_last(const void *a, const void *b)
{
	const struct nm_last_decision *left = a, *right = b;
	return NM_COMPARE(left->tid, right->tid) ?: NM_COMPARE(left->id, right->id);
}

int nm_history_last(const struct nm_history *history, struct nm_last_decision **ret,
		    size_t *ret_count)
{
	size_t count = 0;
	struct nm_last_decision *last =
		calloc(2 * (history->next - history->first) + 1, sizeof(*last));
	if (!last)
		return -ENOMEM;
	for (uint64_t id = history->first; id < history->next; id++) {
		const struct nm_history_item *item = nm_history_find(history, id);
		for (unsigned i = 0; item && i < item->decision.nr_steps; i++) {
			const struct nm_step *step = &item->decision.steps[i];
			if (step->tid)
				last[count++] =
					(struct nm_last_decision){step->tid, step->start_ticks, id};
		}
	}
	qsort(last, count, sizeof(*last), compare_last);
	*ret = last;
	*ret_count = count;
	return 0;
}

uint64_t nm_last_decision_of(const struct nm_last_decision *last, size_t count, uint32_t tid,
			     uint64_t start_ticks)
{
	size_t low = 0, high = count;
	while (low < high) { /* the first entry with a higher number */
		size_t middle = low + (high - low) / 2;
		if (last[middle].tid <= tid)
			low = middle + 1;
		else
			high = middle;
	}
	bool found =
		low > 0 && last[low - 1].tid == tid && last[low - 1].start_ticks == start_ticks;
	return found ? last[low - 1].id : 0;
}

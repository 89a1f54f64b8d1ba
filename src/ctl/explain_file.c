/* SPDX-License-Identifier: MIT */
/* Converts a decision of a recording to the form of the daemon's. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ctl.h"
#include "numa-migrd/config.h"
#include "numa-migrd/journal.h"
#include "numa-migrd/recording.h"

/* The data collected while reading the file. */
struct search {
	uint64_t id;
	json_t *decision;      /* NULL: not found yet */
	json_t *stopped;       /* counts of rejected proposals of its interval */
	uint64_t met, entries; /* interval; number of its entries, of which the first describes
				* it */
	bool judged;	       /* its verdict was the last record about it */
};

static void set_real(json_t *object, const char *name, double value)
{
	if (!isnan(value))
		(void)json_object_set_new(object, name, json_real(value));
}

static void set_text(json_t *object, const char *name, const char *text)
{
	json_t *value = json_string(text);
	(void)json_object_set_new(object, name, value ? value : json_string(""));
}

static void set_count(json_t *object, const char *name, uint64_t value)
{
	(void)json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *candidate_of(const struct nm_alternative *alternative, bool won)
{
	json_t *candidate = json_object();
	(void)json_object_set_new(candidate, "to_node", json_integer(alternative->node_to));
	if (alternative->cpu_to >= 0)
		(void)json_object_set_new(candidate, "to_cpu", json_integer(alternative->cpu_to));
	if (alternative->partner)
		set_count(candidate, "partner_tid", alternative->partner);
	set_real(candidate, "tickets", alternative->tickets);
	(void)json_object_set_new(candidate, "won", json_boolean(won));
	return candidate;
}

/* The values behind the tickets, per thread. */
static json_t *threads_of(const struct nm_decision *decision)
{
	json_t *threads = json_array();
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		json_t *thread = json_object();
		set_count(thread, "tid", step->tid);
		set_count(thread, "pid", step->pid);
		set_text(thread, "comm", step->comm);
		(void)json_object_set_new(thread, "from_node", json_integer(step->node_from));
		(void)json_object_set_new(thread, "to_node", json_integer(step->node_to));
		set_real(thread, "local_share", step->local_before);
		set_real(thread, "samples", step->samples_before);
		set_real(thread, "latency", step->latency_before);
		set_real(thread, "performance", step->performance_before);
		set_real(thread, "relative", step->relative_before);
		set_real(thread, "record", step->record);
		(void)json_array_append_new(threads, thread);
	}
	return threads;
}

static void set_process(json_t *object, const struct nm_step *step)
{
	set_count(object, "pid", step->pid);
	set_text(object, "comm", step->comm);
	if (step->node_to >= 0)
		(void)json_object_set_new(object, "to_node", json_integer(step->node_to));
}

static void set_pages(json_t *object, const struct nm_pages_reason *pages)
{
	set_count(object, "pages", pages->pages);
	set_count(object, "bytes", pages->bytes);
	set_real(object, "exclusivity", pages->exclusivity);
}

static json_t *decision_of(const struct nm_decision *decision)
{
	json_t *object = json_object(), *candidates = json_array();
	char parts[NM_TICKETS_BYTES];
	set_count(object, "decision", decision->id);
	set_text(object, "kind", nm_decision_kind_name(decision->kind));
	set_text(object, "policy", nm_decision_policy_name(decision->kind, decision->policy));
	set_count(object, "interval", decision->interval);
	if (decision->undoes)
		set_count(object, "undoes", decision->undoes);
	if (decision->policy == NM_POLICY_LBMA || decision->policy == NM_POLICY_IMAR2) {
		set_real(object, "tickets", decision->tickets.total);
		set_text(object, "tickets_parts",
			 nm_tickets_text(&decision->tickets, decision->policy, parts));
		set_real(object, "draw", decision->draw);
	}
	set_real(object, "gain", decision->gain);
	for (size_t i = 0; i < decision->nr_alternatives; i++)
		(void)json_array_append_new(candidates,
					    candidate_of(&decision->alternatives[i], i == 0));
	(void)json_object_set_new(object, "candidates", candidates);
	set_count(object, "candidates_count", decision->nr_candidates);
	if (decision->kind == NM_DECISION_PAGES)
		set_pages(object, &decision->pages);
	if (decision->nr_steps > 0 && decision->steps[0].tid == 0)
		set_process(object, &decision->steps[0]);
	else
		(void)json_object_set_new(object, "threads", threads_of(decision));
	return object;
}

static json_t *stopped_of(const struct nm_recorded_proposals *proposals)
{
	json_t *object = json_object();
	set_count(object, "considered", proposals->considered);
	set_count(object, "candidates", proposals->candidates);
	set_count(object, "gate", proposals->stopped_by_gate);
	set_count(object, "owner", proposals->stopped_by_owner);
	set_count(object, "budget", proposals->stopped_by_budget);
	set_count(object, "mask", proposals->stopped_by_mask);
	return object;
}

static void set_verdict(struct search *search, const struct nm_verdict *verdict)
{
	json_t *decision = search->decision;
	search->judged = decision && verdict->decision == search->id;
	if (!search->judged)
		return;
	set_text(decision, "verdict", nm_verdict_kind_name(verdict->kind));
	if (verdict->nr_threads == 0 || verdict->of == NM_DECISION_HOME)
		return;
	const struct nm_verdict_thread *thread = &verdict->threads[0];
	set_real(decision, "before",
		 verdict->by_performance ? thread->performance_before : thread->local_before);
	set_real(decision, "after",
		 verdict->by_performance ? thread->performance_after : thread->local_after);
	set_text(decision, "figure", verdict->by_performance ? "performance" : "local_share");
}

/* The first entry describes the decision, and the one that follows its verdict describes that;
 * others are events of leases. */
static void set_entry(struct search *search, const struct nm_recorded_entry *entry)
{
	if (search->entries++ == 0) {
		set_text(search->decision, "message", entry->text);
		set_text(search->decision, "fields", entry->fields);
		set_count(search->decision, "time_usec", entry->time_usec);
	} else if (search->judged) {
		set_text(search->decision, "verdict_message", entry->text);
	}
	search->judged = false;
}

static void heed(struct search *search, const struct nm_recorded *record)
{
	json_t **decision = &search->decision;
	switch (record->kind) {
	case NM_RECORDED_PROPOSALS:
		if (*decision)
			break;
		json_decref(search->stopped);
		search->stopped = stopped_of(&record->proposals);
		search->met = record->interval;
		break;
	case NM_RECORDED_DECISION:
		if (record->decision.id == search->id && !*decision)
			*decision = decision_of(&record->decision);
		break;
	case NM_RECORDED_VERDICT:
		set_verdict(search, &record->verdict);
		break;
	case NM_RECORDED_ENTRY:
		if (*decision && record->entry.decision == search->id)
			set_entry(search, &record->entry);
		break;
	default:
		break;
	}
}

static void finish(struct search *search)
{
	json_t *interval = json_object_get(search->decision, "interval");
	if (search->stopped && (uint64_t)json_integer_value(interval) == search->met)
		(void)json_object_set_new(search->decision, "stopped", NM_TAKE(search->stopped));
	json_decref(search->stopped);
}

int nm_ctl_find_decision(const char *file, uint64_t id, json_t **ret)
{
	nm_auto(nm_recording_freep) struct nm_recording *recording = NULL;
	struct search search = {.id = id};
	struct nm_recorded record;
	int r = nm_ctl_open_recording(file, &recording);
	if (r != EXIT_SUCCESS)
		return r;
	nm_recording_only(recording, 1U << NM_RECORDED_INTERVAL | 1U << NM_RECORDED_PROPOSALS |
					     1U << NM_RECORDED_DECISION |
					     1U << NM_RECORDED_VERDICT | 1U << NM_RECORDED_ENTRY);
	while ((r = nm_recording_next(recording, &record)) > 0)
		heed(&search, &record);
	finish(&search);
	r = nm_ctl_recording_read(file, recording, r);
	if (r == EXIT_SUCCESS && !search.decision) {
		(void)fprintf(stderr,
			      "numa-migrctl: decision %" PRIu64 " is not in %s; numa-migrctl dump "
			      "lists its decisions\n",
			      id, file);
		r = EXIT_FAILURE;
	}
	if (r != EXIT_SUCCESS) {
		json_decref(search.decision);
		return r;
	}
	*ret = search.decision;
	return EXIT_SUCCESS;
}

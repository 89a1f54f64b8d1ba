/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "entry.h"

/* Returns the thread that exited or was never seen on its new node, so that nothing can be
 * compared; or NULL. */
static const struct nm_verdict_thread *absent_thread(const struct nm_verdict *verdict)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++)
		if (!verdict->threads[i].alive || !verdict->threads[i].ran_on_node)
			return &verdict->threads[i];
	return NULL;
}

static void append_absence(struct nm_entry *entry, const struct nm_entry_context *context,
			   const struct nm_verdict_thread *thread)
{
	char node[NM_WORD_BYTES];
	nm_append_subject(entry, thread->comm, thread->pid, thread->tid);
	if (!thread->alive)
		nm_entry_append(entry, " ended");
	else
		nm_entry_append(entry, " not seen on %s",
				nm_node_text(context, thread->node_to, node));
}

static void append_threads(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		const struct nm_verdict_thread *thread = &verdict->threads[i];
		nm_entry_append(entry, "%s", i > 0 ? " and " : "");
		nm_append_subject(entry, thread->comm, thread->pid, thread->tid);
	}
}

static void append_shares(struct nm_entry *entry, const char *of, double before, double after)
{
	char from[NM_WORD_BYTES], to[NM_WORD_BYTES];
	nm_entry_append(entry, " %s %s " NM_ARROW " %s", of, nm_percent_text(before, from),
			nm_percent_text(after, to));
}

static void append_sharing(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	char change[NM_WORD_BYTES], before[NM_WORD_BYTES], after[NM_WORD_BYTES];
	if (isfinite(verdict->slowdown))
		nm_entry_append(entry, " memory latency %s",
				nm_change_text(verdict->slowdown - 1, change));
	else
		nm_entry_append(entry, " sharing cost %s " NM_ARROW " %s",
				nm_number_text(verdict->cost_before, before),
				nm_number_text(verdict->cost_after, after));
}

static void append_balance_verdict(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	char measured[NM_WORD_BYTES], predicted[NM_WORD_BYTES];
	nm_entry_append(entry, ", benefit %s (predicted %s)",
			nm_number_text(verdict->measured_benefit, measured),
			nm_number_text(nm_balance_benefit(&verdict->balance), predicted));
}

static void balance_verdict_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	nm_field_real(entry, "ACCESS_COST_BEFORE", verdict->threads[0].access_cost_before);
	nm_field_real(entry, "ACCESS_COST_AFTER", verdict->threads[0].access_cost_after);
	nm_field_real(entry, "MEASURED_BENEFIT", verdict->measured_benefit);
	nm_prediction_fields(entry, &verdict->balance);
}

/* The change in the verdict is positive if it is an improvement; the text has the change of the
 * measure itself. */
static void append_home_measure(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	char change[NM_WORD_BYTES];
	switch (verdict->judged_by) {
	case NM_BY_PERFORMANCE:
		nm_entry_append(entry, " performance %s", nm_change_text(verdict->change, change));
		return;
	case NM_BY_DISTANCE:
		nm_entry_append(entry, " memory distance %s",
				nm_change_text(1 / (1 + verdict->change) - 1, change));
		return;
	case NM_BY_DELAY:
		nm_entry_append(entry, " run queue delay %s of its CPU time",
				nm_change_text(-verdict->change, change));
		return;
	default:
		if (verdict->needed > 0)
			nm_entry_append(entry, ", its noise hides a change: %.0f intervals needed",
					verdict->needed);
		else
			nm_entry_append(entry, ", no comparable samples");
	}
}

static void append_home_verdict(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	uint64_t pages = verdict->results.moved;
	if (verdict->kind == NM_VERDICT_UNVERIFIED)
		nm_entry_append(entry, ", placed too young to be measured before");
	else
		append_home_measure(entry, verdict);
	if (isfinite(verdict->measured_gain) && isfinite(verdict->expected_gain))
		nm_entry_append(entry, ", %.0f %% saved, %.0f %% expected",
				100 * verdict->measured_gain, 100 * verdict->expected_gain);
	if (pages > 0)
		nm_entry_append(entry, ", %lu page%s migrated", (unsigned long)pages,
				nm_plural(pages, "", "s"));
}

static void home_verdict_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	static const char *const measures[] = {
		[NM_BY_NOTHING] = "none",
		[NM_BY_PERFORMANCE] = "performance",
		[NM_BY_DISTANCE] = "distance",
		[NM_BY_DELAY] = "run-queue-delay",
	};
	nm_entry_field(entry, "JUDGED_BY", "%s", measures[verdict->judged_by]);
	nm_field_permille(entry, "CHANGE_PERMILLE", verdict->change);
	nm_field_real(entry, "EXPECTED_PERCENT", 100 * verdict->expected_gain);
	nm_field_real(entry, "MEASURED_PERCENT", 100 * verdict->measured_gain);
	if (verdict->needed > 0)
		nm_field_real(entry, "NEEDED_INTERVALS", verdict->needed);
	nm_entry_field(entry, "PAGES_MOVED", "%lu", (unsigned long)verdict->results.moved);
}

struct outcome {
	const char *field;
	uint64_t pages;
	const char *name;
};

/* Adds the page counts as fields and, if no page was migrated, the most frequent reason as text. */
static void append_failures(struct nm_entry *entry, const struct nm_page_results *results)
{
	uint64_t reported = results->busy + results->gone + results->denied + results->no_memory +
			    results->fault;
	const struct outcome outcomes[] = {
		{"PAGES_ELSEWHERE", results->elsewhere, "already there or moved"},
		{"PAGES_REFUSED", results->refused, "excluded"},
		{"PAGES_UNTRIED", results->untried, "not tried"},
		{"PAGES_EBUSY", results->busy, "busy"},
		{"PAGES_ENOENT", results->gone, "not present"},
		{"PAGES_EACCES", results->denied, "shared with other processes"},
		{"PAGES_ENOMEM", results->no_memory, "without free memory on the node"},
		{"PAGES_EFAULT", results->fault, "not mapped"},
		{"PAGES_FAILED", results->failed > reported ? results->failed - reported : 0,
		 "failed"},
	};
	const struct outcome *most = &outcomes[0];
	for (size_t i = 0; i < NM_ARRAY_SIZE(outcomes); i++) {
		if (outcomes[i].pages > 0)
			nm_entry_field(entry, outcomes[i].field, "%lu",
				       (unsigned long)outcomes[i].pages);
		if (outcomes[i].pages > most->pages)
			most = &outcomes[i];
	}
	if (results->moved == 0 && most->pages > 0)
		nm_entry_append(entry, " (%lu %s)", (unsigned long)most->pages, most->name);
}

static void append_pages_verdict(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	const struct nm_page_results *results = &verdict->results;
	uint64_t pages = verdict->pages.pages;
	nm_pages_fields(entry, &verdict->pages);
	nm_entry_field(entry, "TOGETHER", "%u", verdict->together);
	nm_entry_field(entry, "PAGES_MOVED", "%lu", (unsigned long)results->moved);
	nm_entry_append(entry, ", %lu of %lu page%s migrated", (unsigned long)results->moved,
			(unsigned long)pages, nm_plural(pages, "", "s"));
	append_failures(entry, results);
	if (results->forgotten > 0)
		nm_entry_field(entry, "PAGES_FORGOTTEN", "%lu", (unsigned long)results->forgotten);
	nm_field_errno(entry, results->error);
	if (results->error < 0)
		nm_entry_append(entry, ": %s", nm_error_text(results->error));
}

/* Adds the measure by which it was judged; others are in the fields. */
static void append_measure(struct nm_entry *entry, const struct nm_entry_context *context,
			   const struct nm_verdict *verdict)
{
	const struct nm_verdict_thread *thread = &verdict->threads[0];
	bool performed = verdict->by_performance && isfinite(verdict->figure);
	char word[NM_WORD_BYTES];
	if (verdict->superseded)
		nm_entry_append(entry, " moved again");
	else if (verdict->of == NM_DECISION_ROLLBACK)
		nm_entry_append(entry, " is back on %s",
				nm_node_text(context, thread->node_to, word));
	else if (verdict->of == NM_DECISION_HOME)
		append_home_verdict(entry, verdict);
	else if (nm_policy_is_by_sharing(verdict->policy))
		append_sharing(entry, verdict);
	else if (performed && !nm_policy_is_by(verdict->policy, NM_BY_LOCALITY))
		nm_entry_append(entry, " performance %s",
				nm_change_text(verdict->figure - 1, word));
	else if (verdict->locality_before > 0)
		append_shares(entry, "locality", verdict->locality_before, verdict->locality_after);
	else
		append_shares(entry, "local accesses", thread->local_before, thread->local_after);
	if (verdict->balance.given)
		append_balance_verdict(entry, verdict);
}

static void append_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
			   const struct nm_verdict *verdict)
{
	const struct nm_verdict_thread *absent = absent_thread(verdict);
	if (absent) {
		append_absence(entry, context, absent);
	} else {
		append_threads(entry, verdict);
		append_measure(entry, context, verdict);
	}
	if (verdict->of == NM_DECISION_PAGES)
		append_pages_verdict(entry, verdict);
}

static void latency_fields(struct nm_entry *entry, const struct nm_verdict_thread *thread)
{
	nm_field_real(entry, "LATENCY_BEFORE_CYCLES", thread->latency_before);
	nm_field_real(entry, "LATENCY_AFTER_CYCLES", thread->latency_after);
}

static void sharing_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	nm_field_permille(entry, "SLOWDOWN_PERMILLE", verdict->slowdown);
	nm_field_permille(entry, "NOISE_PERMILLE", verdict->slowdown_noise);
	nm_field_real(entry, "SHARING_COST_BEFORE", verdict->cost_before);
	nm_field_real(entry, "SHARING_COST_AFTER", verdict->cost_after);
}

static void locality_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	if (!(verdict->locality_before > 0))
		return;
	nm_field_permille(entry, "LOCALITY_BEFORE_PERMILLE", verdict->locality_before);
	nm_field_permille(entry, "LOCALITY_AFTER_PERMILLE", verdict->locality_after);
	nm_field_permille(entry, "LOCALITY_NOISE_PERMILLE", verdict->locality_noise);
}

static void performance_fields(struct nm_entry *entry, const struct nm_verdict_thread *thread)
{
	nm_field_real(entry, "PERFORMANCE_BEFORE", thread->performance_before);
	nm_field_real(entry, "PERFORMANCE_AFTER", thread->performance_after);
	latency_fields(entry, thread);
}

static void feedback_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	nm_field_real(entry, "PERFORMANCE_LEFT", verdict->figure);
	nm_field_real(entry, "PERFORMANCE_LEFT_IN_ALL", verdict->losses);
	/* The fall that counts as noise: the feedback compares logarithms. */
	nm_field_permille(entry, "NOISE_PERMILLE", 1 - exp(-verdict->noise));
	nm_field_real(entry, "GLOBAL_BEFORE", verdict->global_before);
	nm_field_real(entry, "GLOBAL_AFTER", verdict->global_after);
	nm_field_real(entry, "INTERVAL_S", verdict->interval_s);
}

static void thread_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			  const struct nm_verdict_thread *thread)
{
	nm_field_subject(entry, thread->comm, thread->pid, thread->tid);
	nm_field_cpu(entry, "CPU_FROM", thread->cpu_from);
	nm_field_node(entry, context, "NODE_FROM", thread->node_from);
	nm_field_node(entry, context, "NODE_TO", thread->node_to);
	if (thread->tid > 0)
		nm_entry_field(entry, "RAN_ON_NODE", "%d", thread->ran_on_node ? 1 : 0);
	if (thread->tid > 0 || thread->samples_after > 0)
		nm_entry_field(entry, "ACCESSES", "%lu", (unsigned long)thread->samples_after);
	nm_field_permille(entry, "LOCAL_SHARE_BEFORE_PERMILLE", thread->local_before);
	nm_field_permille(entry, "LOCAL_SHARE_AFTER_PERMILLE", thread->local_after);
}

static void begin(struct nm_entry *entry, uint64_t decision, enum nm_verdict_kind kind)
{
	const char *name = nm_verdict_kind_name(kind);
	nm_entry_begin(entry, NM_MESSAGE_VERDICT, LOG_INFO);
	nm_entry_set_decision(entry, decision);
	nm_entry_field(entry, "VERDICT", "%s", name);
	nm_entry_append(entry, "#%lu %s: ", (unsigned long)decision,
			kind == NM_VERDICT_ROLLED_BACK ? "rolled back" : name);
}

void nm_entry_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
		      const struct nm_verdict *verdict)
{
	begin(entry, verdict->decision, verdict->kind);
	if (verdict->kind == NM_VERDICT_CANCELLED)
		nm_entry_field(entry, "KIND", "cancel");
	nm_entry_field(entry, "DECISION_KIND", "%s", nm_decision_kind_name(verdict->of));
	nm_entry_field(entry, "POLICY", "%s", context->policy);
	if (verdict->intervals > 0)
		nm_entry_field(entry, "INTERVALS", "%u", verdict->intervals);
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		entry->thread = i;
		thread_fields(entry, context, &verdict->threads[i]);
		if (nm_policy_is_by_sharing(verdict->policy))
			latency_fields(entry, &verdict->threads[i]);
		if (verdict->by_performance)
			performance_fields(entry, &verdict->threads[i]);
	}
	entry->thread = 0;
	if (verdict->of == NM_DECISION_HOME)
		home_verdict_fields(entry, verdict);
	locality_fields(entry, verdict);
	if (nm_policy_is_by_sharing(verdict->policy))
		sharing_fields(entry, verdict);
	if (verdict->balance.given)
		balance_verdict_fields(entry, verdict);
	if (verdict->by_performance)
		feedback_fields(entry, verdict);
	append_verdict(entry, context, verdict);
}

struct move_words {
	const char *name, *text;
	int priority;
};

static const struct move_words move_words[] = {
	[NM_MOVE_FOREIGN] = {"external", "changed externally; no longer managed", LOG_NOTICE},
	[NM_MOVE_INHERITED] = {"inherited", "restored: inherited from a moved thread", LOG_INFO},
	[NM_MOVE_FAILED] = {"failed", "not restored, will be tried again", LOG_WARNING},
	[NM_MOVE_RETURNED] = {"restored", "restored", LOG_INFO},
};

void nm_entry_move(struct nm_entry *entry, const struct nm_move_event *event)
{
	const struct move_words *words = &move_words[event->kind];
	nm_entry_begin(entry, NM_MESSAGE_AFFINITY, words->priority);
	nm_entry_field(entry, "AFFINITY", "%s", words->name);
	nm_entry_set_decision(entry, event->decision);
	nm_entry_field(entry, "PID", "%u", event->pid);
	nm_entry_field(entry, "TID", "%u", event->tid);
	nm_field_errno(entry, event->error);
	nm_entry_append(entry, "Affinity of %u/%u %s", event->pid, event->tid, words->text);
	if (event->error < 0)
		nm_entry_append(entry, ": %s", nm_error_text(event->error));
}

/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

#include "balance.h"
#include "say.h"

static const char *const verdict_names[] = {
	[NM_VERDICT_IMPROVED] = "improved",	    [NM_VERDICT_NEUTRAL] = "neutral",
	[NM_VERDICT_ROLLED_BACK] = "rolled-back",   [NM_VERDICT_CANCELLED] = "cancelled",
	[NM_VERDICT_INCONCLUSIVE] = "inconclusive",
};

const char *nm_verdict_kind_name(enum nm_verdict_kind kind)
{
	return verdict_names[kind];
}

static const char *const verdict_heads[] = {
	[NM_VERDICT_IMPROVED] = "improved",
	[NM_VERDICT_NEUTRAL] = "neutral",
	[NM_VERDICT_ROLLED_BACK] = "rolled back",
	[NM_VERDICT_CANCELLED] = "cancelled, the CPU affinity is restored",
	[NM_VERDICT_INCONCLUSIVE] = "inconclusive",
};

static void say_thread(struct nm_entry *entry, const struct nm_entry_context *context,
		       const struct nm_verdict_thread *thread)
{
	char node[NM_WORD_BYTES], before[NM_WORD_BYTES], after[NM_WORD_BYTES];
	nm_say_node(context, thread->node_to, node);
	nm_entry_say(entry, "thread %u of process %u ", thread->tid, thread->pid);
	if (!thread->alive) {
		nm_entry_say(entry, "has ended");
		return;
	}
	if (!thread->ran_on_node) {
		nm_entry_say(entry, "was not seen on %s", node);
		return;
	}
	nm_entry_say(entry, "ran on %s, local share %s before, %s of %lu accesses now", node,
		     nm_say_percent(thread->local_before, before),
		     nm_say_percent(thread->local_after, after),
		     (unsigned long)thread->samples_after);
}

static void say_performance(struct nm_entry *entry, const struct nm_verdict_thread *thread)
{
	char before[NM_WORD_BYTES], after[NM_WORD_BYTES];
	nm_entry_say(entry, ", performance %s before, %s now",
		     nm_say_figure(thread->performance_before, before),
		     nm_say_figure(thread->performance_after, after));
	if (isnan(thread->latency_before) && isnan(thread->latency_after))
		return;
	nm_entry_say(entry, ", latency %s cycles before, %s now",
		     nm_say_figure(thread->latency_before, before),
		     nm_say_figure(thread->latency_after, after));
}

static void latency_fields(struct nm_entry *entry, const struct nm_verdict_thread *thread,
			   unsigned index)
{
	char name[NM_NAME_BYTES];
	nm_field_figure(entry, nm_numbered("LATENCY_BEFORE_CYCLES", index, name),
			thread->latency_before);
	nm_field_figure(entry, nm_numbered("LATENCY_AFTER_CYCLES", index, name),
			thread->latency_after);
}

/* By which of the two it was judged is said first. */
static void say_sharing(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	char left[NM_WORD_BYTES], chance[NM_WORD_BYTES];
	if (!isnan(verdict->slowdown))
		nm_entry_say(entry,
			     "; accesses of what was moved with it take %s of the time before (%s "
			     "may be chance)",
			     nm_say_percent(verdict->slowdown, left),
			     nm_say_percent(verdict->slowdown_noise, chance));
	nm_entry_say(entry, "; what they share now costs %.4g here", verdict->cost_after);
	if (!isnan(verdict->cost_before))
		nm_entry_say(entry, ", %.4g where they were", verdict->cost_before);
}

static void sharing_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	nm_field_permille(entry, "SLOWDOWN_PERMILLE", verdict->slowdown);
	nm_field_permille(entry, "NOISE_PERMILLE", verdict->slowdown_noise);
	nm_field_figure(entry, "SHARING_COST_BEFORE", verdict->cost_before);
	nm_field_figure(entry, "SHARING_COST_AFTER", verdict->cost_after);
}

/* Distance-weighted, and how much of the difference may be chance; shown where it is judged by. */
static void say_locality(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	char before[NM_WORD_BYTES], after[NM_WORD_BYTES], noise[NM_WORD_BYTES];
	if (!(verdict->locality_before > 0))
		return;
	if (!verdict->by_performance || isnan(verdict->figure) || verdict->policy == NM_POLICY_LBMA)
		nm_entry_say(entry, "; locality %s before, %s now (%s may be chance)",
			     nm_say_percent(verdict->locality_before, before),
			     nm_say_percent(verdict->locality_after, after),
			     nm_say_percent(verdict->locality_noise, noise));
	nm_field_permille(entry, "LOCALITY_BEFORE_PERMILLE", verdict->locality_before);
	nm_field_permille(entry, "LOCALITY_AFTER_PERMILLE", verdict->locality_after);
	nm_field_permille(entry, "LOCALITY_NOISE_PERMILLE", verdict->locality_noise);
}

/* The fall that is still noise: the feedback compares logarithms. */
static double noise_share(const struct nm_verdict *verdict)
{
	return 1 - exp(-verdict->noise);
}

/* What the feedback compared, and what the interval is now. */
static void say_feedback(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	char left[NM_WORD_BYTES], before[NM_WORD_BYTES], after[NM_WORD_BYTES];
	if (isnan(verdict->interval_s))
		return;
	nm_entry_say(entry, "; %s of the performance left", nm_say_percent(verdict->figure, left));
	if (verdict->losses < verdict->figure)
		nm_entry_say(entry, ", %s with the losses kept before",
			     nm_say_percent(verdict->losses, left));
	if (verdict->noise > 0)
		nm_entry_say(entry, ", %s is noise", nm_say_percent(noise_share(verdict), left));
	nm_entry_say(entry, " (all: %s before, %s now), T is %.3g s",
		     nm_say_figure(verdict->global_before, before),
		     nm_say_figure(verdict->global_after, after), verdict->interval_s);
}

static void performance_fields(struct nm_entry *entry, const struct nm_verdict_thread *thread,
			       unsigned index)
{
	char name[NM_NAME_BYTES];
	nm_field_figure(entry, nm_numbered("PERFORMANCE_BEFORE", index, name),
			thread->performance_before);
	nm_field_figure(entry, nm_numbered("PERFORMANCE_AFTER", index, name),
			thread->performance_after);
	latency_fields(entry, thread, index);
}

static void feedback_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	nm_field_figure(entry, "PERFORMANCE_LEFT", verdict->figure);
	nm_field_figure(entry, "PERFORMANCE_LEFT_IN_ALL", verdict->losses);
	nm_field_permille(entry, "NOISE_PERMILLE", noise_share(verdict));
	nm_field_figure(entry, "GLOBAL_BEFORE", verdict->global_before);
	nm_field_figure(entry, "GLOBAL_AFTER", verdict->global_after);
	nm_field_figure(entry, "INTERVAL_S", verdict->interval_s);
}

static void thread_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			  const struct nm_verdict_thread *thread, unsigned index)
{
	char name[NM_NAME_BYTES];
	nm_entry_field(entry, nm_numbered("PID", index, name), "%u", thread->pid);
	nm_entry_field(entry, nm_numbered("TID", index, name), "%u", thread->tid);
	nm_field_cpu(entry, nm_numbered("CPU_FROM", index, name), thread->cpu_from);
	nm_field_node(entry, context, nm_numbered("NODE_FROM", index, name), thread->node_from);
	nm_field_node(entry, context, nm_numbered("NODE_TO", index, name), thread->node_to);
	nm_entry_field(entry, nm_numbered("RAN_ON_NODE", index, name), "%d",
		       thread->ran_on_node ? 1 : 0);
	nm_entry_field(entry, nm_numbered("ACCESSES", index, name), "%lu",
		       (unsigned long)thread->samples_after);
	nm_field_permille(entry, nm_numbered("LOCAL_SHARE_BEFORE_PERMILLE", index, name),
			  thread->local_before);
	nm_field_permille(entry, nm_numbered("LOCAL_SHARE_AFTER_PERMILLE", index, name),
			  thread->local_after);
}

void nm_entry_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
		      const struct nm_verdict *verdict)
{
	nm_entry_begin(entry, NM_MESSAGE_VERDICT, LOG_INFO);
	if (verdict->kind == NM_VERDICT_CANCELLED)
		nm_entry_field(entry, "KIND", "cancel");
	nm_entry_field(entry, "DECISION", "%lu", (unsigned long)verdict->decision);
	nm_entry_field(entry, "DECISION_KIND", "%s", nm_decision_kind_name(verdict->of));
	nm_entry_field(entry, "POLICY", "%s", context->policy);
	nm_entry_field(entry, "VERDICT", "%s", verdict_names[verdict->kind]);
	nm_entry_field(entry, "INTERVALS", "%u", verdict->intervals);
	nm_entry_say(entry,
		     "decision %lu %s after %u interval%s: ", (unsigned long)verdict->decision,
		     verdict_heads[verdict->kind], verdict->intervals,
		     verdict->intervals == 1 ? "" : "s");
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		if (i > 0)
			nm_entry_say(entry, "; ");
		say_thread(entry, context, &verdict->threads[i]);
		thread_fields(entry, context, &verdict->threads[i], i);
		if (verdict->by_sharing)
			latency_fields(entry, &verdict->threads[i], i);
		if (!verdict->by_performance)
			continue;
		if (verdict->threads[i].alive)
			say_performance(entry, &verdict->threads[i]);
		performance_fields(entry, &verdict->threads[i], i);
	}
	say_locality(entry, verdict);
	if (verdict->by_sharing) {
		say_sharing(entry, verdict);
		sharing_fields(entry, verdict);
	}
	if (verdict->balance.given) {
		nm_say_balance_verdict(entry, verdict);
		nm_balance_verdict_fields(entry, verdict);
	}
	if (verdict->by_performance) {
		say_feedback(entry, verdict);
		feedback_fields(entry, verdict);
	}
}

struct lease_words {
	const char *name, *text;
	int priority;
};

static const struct lease_words lease_words[] = {
	[NM_LEASE_EXPIRED] = {"expired", "went quiet: its own mask is back", LOG_INFO},
	[NM_LEASE_FOREIGN] = {"foreign",
			      "got another mask from somebody else: it is theirs again and will "
			      "not be moved",
			      LOG_NOTICE},
	[NM_LEASE_WIDENED] = {"widened", "arrived on its node: its own mask is back", LOG_INFO},
	[NM_LEASE_UNSEEN] = {"unseen", "was not seen on its node in time: its own mask is back",
			     LOG_INFO},
	[NM_LEASE_HEIR] = {"heir", "was born with a mask of ours: it got its ancestor's own mask",
			   LOG_INFO},
	[NM_LEASE_GONE] = {"gone", "ended: its lease ends with it", LOG_DEBUG},
	[NM_LEASE_FAILED] = {"failed",
			     "could not get its own mask back: it stays in the ledger and is "
			     "tried again",
			     LOG_WARNING},
	[NM_LEASE_RETURNED] = {"returned", "got its own mask back", LOG_INFO},
};

void nm_entry_lease(struct nm_entry *entry, const struct nm_lease_event *event)
{
	const struct lease_words *words = &lease_words[event->kind];
	nm_entry_begin(entry, NM_MESSAGE_LEASE, words->priority);
	nm_entry_field(entry, "LEASE", "%s", words->name);
	nm_entry_field(entry, "DECISION", "%lu", (unsigned long)event->decision);
	nm_entry_field(entry, "PID", "%u", event->pid);
	nm_entry_field(entry, "TID", "%u", event->tid);
	nm_field_errno(entry, event->error);
	nm_entry_say(entry, "thread %u of process %u %s", event->tid, event->pid, words->text);
	if (event->error < 0)
		nm_entry_say(entry, ": %s", nm_say_error(event->error));
	nm_entry_say(entry, " (decision %lu)", (unsigned long)event->decision);
}

// SPDX-License-Identifier: MIT
/* Determines the runtime of managed programs: queried once, for a few programs at a time, with
 * asynchronous answers. */
#include "roster_internal.h"

#define SETTLED_NS                                                                                 \
	(NM_NSEC_PER_SEC /                                                                         \
	 2) /* by then, or once it has created a thread, a program has mapped its runtime */
#define ANSWER_NS (5 * NM_NSEC_PER_SEC)
#define AGAIN_NS (60 * NM_NSEC_PER_SEC) /* after an answer without a result */
#define SOON_NS NM_NSEC_PER_SEC /* after the first query without an answer; doubled after each
				 * further one */

void nm_roster_forget_runtime(const struct nm_roster *roster, struct nm_process *process)
{
	if (process->runtime_ticket)
		roster->platform->ops->memory_cancel(roster->platform, process->runtime_ticket);
	process->runtime_ticket = 0;
	process->runtime_unanswered = 0;
	process->runtime = NM_RUNTIME_AWAITED;
}

void nm_roster_doubt_runtime(const struct nm_roster *roster, struct nm_process *process)
{
	enum nm_runtime known = process->runtime;

	nm_roster_forget_runtime(roster, process);
	process->runtime_doubted = true;
	if (nm_runtime_counts_again(known))
		process->runtime = known;
}

/*
 * Returns whether the query was not processed: it is repeated soon. Other errors would occur again.
 */
static bool is_unanswered(int result)
{
	return result == -EAGAIN || result == -ETIMEDOUT || result == -EALREADY ||
	       result == -EINPROGRESS || result == -ECANCELED;
}

/* Without an answer the runtime stays AWAITED. */
static void set_runtime(struct nm_process *process, int result)
{
	if (is_unanswered(result)) {
		process->runtime_unanswered++;
		return;
	}
	process->runtime_unanswered = 0;
	process->runtime_doubted = false;
	if (result >= 0 && nm_runtime_in(result) < NM_RUNTIME_UNKNOWN) {
		process->runtime = nm_runtime_in(result);
		process->program = nm_runtime_program_in(result);
		process->program_state = NM_PROGRAM_READ;
	} else if (process->runtime == NM_RUNTIME_AWAITED) {
		process->runtime = NM_RUNTIME_UNKNOWN;
	}
}

/* An answer, or its absence, may decide whether the process is managed: it is due to be checked. */
static void answered(struct nm_process *process, int result)
{
	if (process->program_state == NM_PROGRAM_AWAITED)
		process->program_state = NM_PROGRAM_UNREADABLE;
	set_runtime(process, result);
	if (process->program_awaited && process->checked_ns)
		process->checked_ns = 1;
}

/* Returns true if its query is still pending. */
static bool poll_runtime(const struct nm_roster *roster, struct nm_process *process,
			 uint64_t now_ns)
{
	struct nm_platform *platform = roster->platform;
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};

	if (!process->runtime_ticket)
		return false;
	int r = platform->ops->memory_poll(platform, process->runtime_ticket, &answer);
	if (r == -EAGAIN && nm_roster_age(now_ns, process->runtime_asked_ns) < ANSWER_NS)
		return true;
	if (r == -EAGAIN)
		platform->ops->memory_cancel(platform, process->runtime_ticket);
	process->runtime_ticket = 0;
	answered(process, r == 0 ? answer.result : r);
	return false;
}

static bool is_to_be_asked(const struct nm_process *process, uint64_t now_ns)
{
	bool known = process->runtime < NM_RUNTIME_UNKNOWN && !process->runtime_doubted;
	unsigned unanswered = process->runtime_unanswered;
	uint64_t again_ns =
		unanswered > 0 && unanswered <= 6 ? SOON_NS << (unanswered - 1) : AGAIN_NS;

	return !known && !process->runtime_ticket &&
	       (process->eligibility == NM_ELIGIBILITY_MANAGED || process->program_awaited) &&
	       (process->nr_threads > 1 ||
		nm_roster_age(now_ns, process->started_ns) >= SETTLED_NS) &&
	       (!process->runtime_asked_ns ||
		nm_roster_age(now_ns, process->runtime_asked_ns) >= again_ns);
}

/* Returns -EAGAIN if the limit of queries is reached; the next interval tries again. */
static int query_runtime(const struct nm_roster *roster, struct nm_process *process,
			 uint64_t now_ns)
{
	const struct nm_memory_query question = {.kind = NM_MEMORY_QUERY_RUNTIME,
						 .pid = process->pid,
						 .start_ticks = process->start_ticks};
	uint64_t ticket = 0;
	int r = roster->platform->ops->memory_query(roster->platform, &question, &ticket);

	if (r == -EAGAIN)
		return r;
	process->runtime_asked_ns = now_ns;
	process->runtime_ticket = ticket;
	if (r < 0)
		answered(process, r);
	else
		(void)poll_runtime(roster, process, now_ns);
	return 0;
}

static bool has_query_room(const uint64_t *asked, unsigned count, uint64_t domain)
{
	struct nm_quota quota = {.limit = NM_RUNTIME_QUERIES_MOST};

	for (unsigned i = 0; i < count; i++)
		nm_quota_count(&quota, domain, asked[i], 1);
	return nm_quota_permits(&quota, domain);
}

void nm_roster_ask_runtimes(struct nm_roster *roster, uint64_t now_ns)
{
	uint64_t asked[NM_RUNTIME_QUERIES_MOST]; /* at a time, and per interval */
	unsigned count = 0;

	for (size_t i = 0; i < roster->nr_processes; i++)
		if (poll_runtime(roster, roster->processes[i], now_ns) &&
		    count < NM_RUNTIME_QUERIES_MOST)
			asked[count++] = roster->processes[i]->domain;
	for (size_t i = 0; i < roster->nr_processes && count < NM_RUNTIME_QUERIES_MOST; i++) {
		struct nm_process *process = roster->processes[i];
		if (is_to_be_asked(process, now_ns) &&
		    has_query_room(asked, count, process->domain) &&
		    query_runtime(roster, process, now_ns) != -EAGAIN)
			asked[count++] = process->domain;
	}
}

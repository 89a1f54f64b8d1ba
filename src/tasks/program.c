// SPDX-License-Identifier: MIT
/* Determines the programs of processes whose exclusion depends on them: queried once, for a few
 * processes at a time, with asynchronous answers. */
#include "task_table.h"

#define ANSWER_NS (5 * NM_NSEC_PER_SEC)
#define AGAIN_NS (60 * NM_NSEC_PER_SEC) /* after an answer without a result */
#define SOON_NS                                                                                    \
	NM_NSEC_PER_SEC /* after the first query without an answer; doubled after each             \
			 * further one */

void nm_tasks_forget_program(const struct nm_task_table *tasks, struct nm_process *process)
{
	if (process->program_query)
		tasks->platform->ops->memory_cancel(tasks->platform, process->program_query);
	process->program_query = 0;
	process->program_unanswered = 0;
	process->program_doubted = false;
}

void nm_tasks_doubt_program(const struct nm_task_table *tasks, struct nm_process *process)
{
	nm_tasks_forget_program(tasks, process);
	process->program_doubted = true;
}

/*
 * Returns whether the query was not processed: it is repeated soon. Other errors would occur again.
 */
static bool is_unanswered(int result)
{
	return result == -EAGAIN || result == -ETIMEDOUT || result == -EALREADY ||
	       result == -EINPROGRESS || result == -ECANCELED;
}

/* An answer, or its absence, may decide whether the process is managed: it is due to be checked. */
static void answered(struct nm_process *process, int result)
{
	if (process->program_state == NM_PROGRAM_AWAITED)
		process->program_state = NM_PROGRAM_UNREADABLE;
	if (is_unanswered(result)) {
		process->program_unanswered++;
	} else {
		process->program_unanswered = 0;
		process->program_doubted = false;
	}
	if (result >= 0) {
		process->program = (unsigned)result;
		process->program_state = NM_PROGRAM_READ;
	}
	if (process->program_awaited && process->checked_ns)
		process->checked_ns = 1;
}

/* Returns true if its query is still pending. */
static bool poll_program(const struct nm_task_table *tasks, struct nm_process *process,
			 uint64_t now_ns)
{
	struct nm_platform *platform = tasks->platform;
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};

	if (!process->program_query)
		return false;
	int r = platform->ops->memory_poll(platform, process->program_query, &answer);
	if (r == -EAGAIN && nm_tasks_age(now_ns, process->program_asked_ns) < ANSWER_NS)
		return true;
	if (r == -EAGAIN)
		platform->ops->memory_cancel(platform, process->program_query);
	process->program_query = 0;
	answered(process, r == 0 ? answer.result : r);
	return false;
}

static bool is_to_be_asked(const struct nm_process *process, uint64_t now_ns)
{
	bool known = process->program_state == NM_PROGRAM_READ && !process->program_doubted;
	unsigned unanswered = process->program_unanswered;
	uint64_t again_ns =
		unanswered > 0 && unanswered <= 6 ? SOON_NS << (unanswered - 1) : AGAIN_NS;

	return process->program_wanted && !known && !process->program_query &&
	       (process->eligibility == NM_ELIGIBILITY_MANAGED || process->program_awaited) &&
	       (!process->program_asked_ns ||
		nm_tasks_age(now_ns, process->program_asked_ns) >= again_ns);
}

/* Returns -EAGAIN if the limit of queries is reached; the next interval tries again. */
static int query_program(const struct nm_task_table *tasks, struct nm_process *process,
			 uint64_t now_ns)
{
	const struct nm_memory_query question = {.kind = NM_MEMORY_QUERY_PROGRAM,
						 .pid = process->pid,
						 .start_ticks = process->start_ticks};
	uint64_t query_id = 0;
	int r = tasks->platform->ops->memory_query(tasks->platform, &question, &query_id);

	if (r == -EAGAIN)
		return r;
	process->program_asked_ns = now_ns;
	process->program_query = query_id;
	if (r < 0)
		answered(process, r);
	else
		(void)poll_program(tasks, process, now_ns);
	return 0;
}

static bool has_query_room(const uint64_t *asked, unsigned count, uint64_t domain)
{
	struct nm_quota quota = {.limit = NM_PROGRAM_QUERIES_MOST};

	for (unsigned i = 0; i < count; i++)
		nm_quota_count(&quota, domain, asked[i], 1);
	return nm_quota_permits(&quota, domain);
}

void nm_tasks_ask_programs(struct nm_task_table *tasks, uint64_t now_ns)
{
	uint64_t asked[NM_PROGRAM_QUERIES_MOST]; /* at a time, and per interval */
	unsigned count = 0;

	for (size_t i = 0; i < tasks->nr_processes; i++)
		if (poll_program(tasks, tasks->processes[i], now_ns) &&
		    count < NM_PROGRAM_QUERIES_MOST)
			asked[count++] = tasks->processes[i]->domain;
	for (size_t i = 0; i < tasks->nr_processes && count < NM_PROGRAM_QUERIES_MOST; i++) {
		struct nm_process *process = tasks->processes[i];
		if (is_to_be_asked(process, now_ns) &&
		    has_query_room(asked, count, process->domain) &&
		    query_program(tasks, process, now_ns) != -EAGAIN)
			asked[count++] = process->domain;
	}
}

/* SPDX-License-Identifier: MIT */
/* Policy "balance" in the daemon: reads how long threads ran and waited, sends queries about the
 * location of pages, and ends leases. */
#include "daemon.h"

#define READS_MAX 512U	     /* of schedstat, per interval */
#define ANSWER_INTERVALS 10U /* time limit of an answer */

void nm_balance_stage_end(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	if (!nm_balancer_of(daemon))
		return;
	nm_location_cancel(pipeline->platform, &pipeline->balance.ticket);
	pipeline->balance = (struct nm_balance_stage){0};
}

/* ---- times of threads ---- */

/* Every thread that was read has run: if none has values, the kernel provides none. */
static void report_missing_times(struct nm_daemon *daemon)
{
	struct nm_balance_stage *stage = &daemon->pipeline.balance;
	if (stage->missing_times_reported)
		return;
	stage->missing_times_reported = true;
	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
		  "No run queue delay in /proc/PID/task/TID/schedstat: policy \"balance\" moves "
		  "nothing");
}

static void read_thread(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, uint32_t i)
{
	const struct nm_snap_thread *thread = &snapshot->threads[i];
	struct nm_proc_schedstat reading;
	int r = nm_proc_read_schedstat(daemon->pipeline.platform, thread->pid, thread->tid,
				       &reading);
	bool has_no_times = r == -ENODATA || (r == 0 && reading.run_ns == 0);
	daemon->pipeline.balance.reads++;
	if (has_no_times)
		report_missing_times(daemon);
	if (r == 0 && !has_no_times)
		nm_balancer_add_reading(nm_balancer_of(daemon), i, snapshot->interval, &reading);
}

/* Reads schedstat of the threads that may wait. Returns their number. */
static size_t read_times(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	size_t most = READS_MAX, count;
	if (most > snapshot->nr_threads)
		most = snapshot->nr_threads;
	nm_autofree uint32_t *candidates = nm_must(calloc(most + 1, sizeof(*candidates)));
	nm_balancer_select_threads(snapshot, daemon->config, most, candidates, &count);
	for (size_t i = 0; i < count; i++)
		read_thread(daemon, snapshot, candidates[i]);
	return count;
}

/* ---- types of threads ---- */

static bool has_dtas_events(const struct nm_daemon *daemon)
{
	if (!daemon->pipeline.source)
		return false;
	const struct nm_source_status *status = nm_source_status(daemon->pipeline.source);
	return status->has_dram && status->has_instructions;
}

static void report_dtas_availability(struct nm_daemon *daemon, bool available)
{
	struct nm_balance_stage *stage = &daemon->pipeline.balance;
	if (available != stage->dtas_reported)
		return;
	stage->dtas_reported = !available;
	if (available)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "All events that threads.selection = \"dtas\" needs are sampled");
	else
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "DTAS is off: it needs hardware samples of instructions and of "
			  "memory traffic");
}

/* Updates the types of threads, and ends leases that no longer fit them. */
static void follow_types(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			 const struct nm_figures *figures, size_t nr_figures)
{
	struct nm_balancer *balancer = nm_balancer_of(daemon);
	bool available = daemon->config->threads.dtas && has_dtas_events(daemon);
	size_t count;
	if (daemon->config->threads.dtas)
		report_dtas_availability(daemon, available);
	if (!available) {
		nm_balancer_clear_types(balancer);
		return;
	}
	nm_autofree uint32_t *ended = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*ended)));
	nm_balancer_follow_types(balancer, snapshot, figures, nr_figures, ended, &count);
	for (size_t i = 0; i < count; i++)
		(void)nm_actuator_return_thread(daemon->pipeline.actuator,
						snapshot->threads[ended[i]].tid,
						snapshot->threads[ended[i]].start_ticks);
}

/* ---- location of pages ---- */

static void query_next(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_balancer *balancer = nm_balancer_of(daemon);
	struct nm_balance_stage *stage = &daemon->pipeline.balance;
	const struct nm_residence *next = nm_balancer_next_query(balancer, now_ns);
	if (!next)
		return;
	stage->pid = next->pid;
	stage->start_ticks = next->start_ticks;
	stage->asked = daemon->tally.intervals;
	int r = nm_location_query(daemon->pipeline.platform, next->pid, next->start_ticks,
				  next->rss_bytes, &stage->ticket);
	nm_balancer_note_query(balancer, stage->pid, stage->start_ticks, r != -EAGAIN, now_ns);
}

/* Returns true if no query is pending any more. A query without an answer for a long time is
 * cancelled. */
static bool handle_answer(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_balance_stage *stage = &daemon->pipeline.balance;
	struct nm_balancer *balancer = nm_balancer_of(daemon);
	uint64_t huge_bytes = 0;
	if (!stage->ticket)
		return true;
	nm_autofree double *pages = nm_must(calloc(balancer->topology->nr_nodes, sizeof(*pages)));
	int r = nm_location_poll(daemon->pipeline.platform, balancer->topology, &stage->ticket,
				 pages, &huge_bytes);
	if (r == -EAGAIN && daemon->tally.intervals - stage->asked < ANSWER_INTERVALS)
		return false;
	if (r == 0)
		nm_balancer_set_pages(balancer, stage->pid, stage->start_ticks, pages, now_ns);
	nm_location_cancel(daemon->pipeline.platform, &stage->ticket);
	return true;
}

/* While `due`, estimates the location of pages from accesses, and counts the pages of one process
 * per tick. */
static void follow_pages(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, bool due)
{
	if (!due && !daemon->pipeline.balance.ticket)
		return;
	nm_balancer_follow_pages(nm_balancer_of(daemon), snapshot);
	if (handle_answer(daemon, snapshot->time_ns) && due)
		query_next(daemon, snapshot->time_ns);
}

/* ---- one interval ---- */

static void report_activity(struct nm_daemon *daemon, bool was_active)
{
	const struct nm_balance_state *state = &nm_balancer_of(daemon)->state;
	if (state->active == was_active)
		return;
	if (state->active)
		nm_report(daemon, NM_MESSAGE_SUMMARY, LOG_INFO,
			  "Balancing nodes: loads differ by %.2f per CPU", state->gap);
	else
		nm_report(daemon, NM_MESSAGE_SUMMARY, LOG_INFO,
			  "Balancing ended: loads differ by %.2f per CPU", state->gap);
}

void nm_balance_stage_tick(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			   const struct nm_figures *figures, size_t nr_figures)
{
	if (daemon->config->threads.policy != NM_POLICY_BALANCE)
		return;
	nm_open_policy(daemon, NM_POLICY_BALANCE);
	struct nm_balancer *balancer = nm_balancer_of(daemon);
	bool was_active = balancer->state.active;
	nm_column_follow_threads(&balancer->threads, snapshot);
	size_t candidates = read_times(daemon, snapshot);
	follow_types(daemon, snapshot, figures, nr_figures);
	follow_pages(daemon, snapshot, candidates > 0);
	nm_balancer_round(balancer, snapshot, daemon->config);
	report_activity(daemon, was_active);
}

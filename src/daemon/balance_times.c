/* SPDX-License-Identifier: MIT */
/* Reads how long threads ran and waited from /proc/PID/task/TID/schedstat. */
#include "balance.h"

#define READS_MOST 512U /* per interval */

int nm_balance_follow_threads(struct nm_balancer *balancer, const struct nm_snapshot *snapshot)
{
	struct nm_known_thread *known = calloc(snapshot->nr_threads + 1, sizeof(*known));
	size_t at = 0;
	if (!known)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		known[i].tid = thread->tid;
		known[i].start_ticks = thread->start_ticks;
		while (at < balancer->nr_known && balancer->known[at].tid < thread->tid)
			at++;
		if (at < balancer->nr_known && balancer->known[at].tid == thread->tid &&
		    balancer->known[at].start_ticks == thread->start_ticks)
			known[i] = balancer->known[at];
	}
	free(balancer->known);
	balancer->known = known;
	balancer->nr_known = snapshot->nr_threads;
	return 0;
}

/* Returns -ENODATA if the kernel does not provide these values. */
static int read_schedstat(struct nm_platform *platform, const struct nm_snap_thread *thread,
			  struct nm_known_thread *ret)
{
	struct nm_proc_schedstat times;
	int r = nm_proc_read_schedstat(platform, thread->pid, thread->tid, &times);
	if (r < 0)
		return r;
	if (times.run_ns == 0)
		return -ENODATA;
	ret->run_ns = times.run_ns;
	ret->delay_ns = times.delay_ns;
	ret->read_ns = times.read_ns;
	return 0;
}

/* Returns the difference of two readings; unknown if the earlier one is older than the last
 * interval. */
static struct nm_balance_times rise(const struct nm_known_thread *before,
				    const struct nm_known_thread *now)
{
	if (before->read_interval == 0 || before->read_interval + 1 != now->read_interval ||
	    now->run_ns < before->run_ns || now->delay_ns < before->delay_ns)
		return (struct nm_balance_times){0};
	return (struct nm_balance_times){.run_ns = now->run_ns - before->run_ns,
					 .delay_ns = now->delay_ns - before->delay_ns,
					 .length_ns = now->read_ns - before->read_ns};
}

/* Every thread that was read has run: if none has values, the kernel provides none. */
static void report_silence(struct nm_daemon *daemon)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	if (balancer->silence_reported)
		return;
	balancer->silence_reported = true;
	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
		  "No run queue delay in /proc/PID/task/TID/schedstat: policy \"balance\" moves "
		  "nothing");
}

static void read_thread(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, uint32_t i,
			struct nm_balance_times *ret)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	struct nm_known_thread *known = &balancer->known[i], now = *known;
	int r = read_schedstat(daemon->pipeline.platform, &snapshot->threads[i], &now);
	balancer->tally.reads++;
	if (r == -ENODATA)
		report_silence(daemon);
	if (r < 0)
		return;
	now.read_interval = snapshot->interval;
	*ret = rise(known, &now);
	*known = now;
}

int nm_balance_read_times(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  const struct nm_balance_rules *rules, struct nm_balance_times *ret_times,
			  size_t *ret_suspects)
{
	size_t most = READS_MOST, count;
	if (most > snapshot->nr_threads)
		most = snapshot->nr_threads;
	nm_autofree uint32_t *suspects = calloc(most + 1, sizeof(*suspects));
	if (!suspects)
		return -ENOMEM;
	int r = nm_balance_suspects(snapshot, rules, most, suspects, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		read_thread(daemon, snapshot, suspects[i], &ret_times[suspects[i]]);
	*ret_suspects = count;
	return 0;
}

// SPDX-License-Identifier: MIT
/* Processes one batch, step by step: reads what it needs to know of the process, and moves some of
 * the pages. */
#include "mover_internal.h"

#define CHECK_NS NM_NSEC_PER_SEC /* how often the thread named by jobs is checked */

/* ---- the process ---- */

/* Each call verifies that the number still belongs to the process. The kernel refuses nodes that
 * its cpuset excludes. */
static int check_process(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;
	uint64_t now = mover->platform->ops->now_ns(mover->platform);

	if (work->checked_ns && now - work->checked_ns < CHECK_NS)
		return 0;
	int directory = nm_cache_open(mover->platform, work->batch->pid, work->batch->start_ticks,
				      &work->tid, &work->tid_ticks);
	if (directory < 0)
		return directory;
	mover->platform->ops->close(mover->platform, directory);
	work->checked_ns = now;
	return 0;
}

/* Returns 0 if the mappings are known, -EAGAIN if they may be read now, or the negative errno that
 * ends the batch. */
static int look_up(struct nm_mover *mover, uint64_t now)
{
	const struct nm_page_batch *batch = mover->work.batch;
	struct nm_cached_mappings *entry = nm_cache_ask(
		&mover->cache, batch->pid, batch->start_ticks, batch->domain, now, NULL);

	mover->work.cache = entry;
	if (!entry)
		return -ESTALE;
	if (nm_cache_holds(entry, now))
		return 0;
	if (nm_cache_rests(entry, now))
		return entry->error ? entry->error : -ESTALE;
	if (!nm_cache_may_begin(&mover->cache, entry))
		return -ESTALE;
	return entry->reading || nm_cache_has_room(&mover->cache, now, entry) ? -EAGAIN : -ESTALE;
}

/* ---- jobs ---- */

int nm_mover_read(struct nm_mover *mover)
{
	mover->job.kind = NM_JOB_READS;
	return nm_cache_begin(&mover->cache, mover->work.cache, mover->platform,
			      &mover->rules.maps);
}

/* ---- a step ---- */

/* Adds what the step has done to the results of the batch. */
static void add_results(struct nm_mover *mover)
{
	const struct nm_mover_counts *counts = &mover->counts, *before = &mover->work.before;
	struct nm_page_batch *batch = mover->work.batch;

	batch->moved += counts->moved - before->moved;
	batch->bytes += counts->bytes - before->bytes;
	batch->calls += counts->calls - before->calls;
	batch->call_ns += counts->call_ns - before->call_ns;
	if (mover->work.lacks)
		nm_cache_lacks(mover->work.cache);
}

static bool is_done(struct nm_page_batch *batch)
{
	if (!nm_batch_has_steps(batch))
		return batch->next == NM_BULK_END;
	while (batch->next < batch->count && batch->steps[batch->next].done)
		batch->next++;
	return batch->next == batch->count;
}

static int begin_move(struct nm_mover *mover)
{
	return mover->work.batch->bulk ? nm_bulk_begin(mover) : nm_units_begin(mover);
}

int nm_batch_step(struct nm_mover *mover)
{
	struct nm_work *work = &mover->work;

	work->held_ns = 0;
	work->lacks = false;
	work->before = mover->counts;
	if (is_done(work->batch))
		return 0;
	int r = check_process(mover);
	if (r < 0)
		return r;
	work->now_ns = mover->platform->ops->now_ns(mover->platform);
	r = look_up(mover, work->now_ns);
	if (r == -EAGAIN)
		return nm_mover_read(mover);
	return r < 0 ? r : begin_move(mover);
}

/* The first turn of reading may be sufficient; otherwise later turns continue it. */
int nm_batch_read(struct nm_mover *mover, int r)
{
	struct nm_cached_mappings *cache = mover->work.cache;

	mover->work.held_ns = cache->held_ns;
	cache->had = r != -EAGAIN;
	if (r < 0)
		return r == -EAGAIN ? -ESTALE : r;
	return begin_move(mover);
}

/* Counts the calls, learns their cost, and charges what they tried to move. */
void nm_batch_learn(struct nm_mover *mover, const struct nm_page_try *tries, unsigned count,
		    uint64_t tried_bytes)
{
	const struct nm_page_batch *batch = mover->work.batch;
	struct nm_mover_counts *counts = &mover->counts;
	uint64_t now = mover->platform->ops->now_ns(mover->platform);

	nm_pace_spend(&mover->pace, batch->domain, tried_bytes);
	for (unsigned i = 0; i < count; i++) {
		const struct nm_page_try *try = &tries[i];
		enum nm_pace_class class = try->blocks ? NM_PACE_HUGE : NM_PACE_SMALL;
		counts->calls++;
		counts->call_ns += try->held_ns;
		if (try->held_ns > counts->call_longest_ns)
			counts->call_longest_ns = try->held_ns;
		counts->backoffs += nm_pace_learn(&mover->pace, class, batch->bulk, batch->domain,
						  try->pages, try->held_ns, now);
	}
}

int16_t nm_node_index(const struct nm_mover_rules *rules, int node)
{
	for (unsigned i = 0; i < rules->nr_nodes; i++)
		if (node >= 0 && rules->node_ids[i] == (unsigned)node)
			return (int16_t)i;
	return -1;
}

int nm_batch_step_end(struct nm_mover *mover, int r)
{
	struct nm_page_batch *batch = mover->work.batch;

	add_results(mover);
	if (r == -EINVAL) /* the process is exiting, and has no memory any more */
		return -ESRCH;
	if (r < 0)
		return r == -EACCES ? -EPERM : r == -EAGAIN || r == -EINPROGRESS ? -ESTALE : r;
	if (!is_done(batch))
		return -EAGAIN;
	return batch->bulk && batch->full ? -ENOSPC : 0;
}

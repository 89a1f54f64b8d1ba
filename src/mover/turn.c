// SPDX-License-Identifier: MIT
/* Determines what to do next: a step of a batch, or a turn of reading mappings. */
#include <math.h>
#include <string.h>

#include "mover_internal.h"

#define LONGEST_WAIT_NS (10 * NM_NSEC_PER_SEC)

static uint64_t now_ns(const struct nm_mover *mover)
{
	return mover->platform->ops->now_ns(mover->platform);
}

/* ---- batches ---- */

/* Returns the time at which a batch may continue: not while its domain rests after slow calls. */
static uint64_t due(const struct nm_mover *mover, const struct nm_page_batch *batch)
{
	uint64_t resume_ns = nm_pace_resume_ns(&mover->pace, batch->domain);

	return batch->again_ns > resume_ns ? batch->again_ns : resume_ns;
}

/* Takes, among the batches that are due, the first one of the domain that has used least. If there
 * is none, reduces *wait_ns to the time until one is due. */
static void take_batch(struct nm_mover *mover, uint64_t now, uint64_t *wait_ns)
{
	struct nm_work *work = &mover->work;
	size_t next = mover->queue_count;
	double least_ns = INFINITY;

	for (size_t i = 0; !work->batch && i < mover->queue_count; i++) {
		uint64_t due_ns = due(mover, mover->queue[i]);
		double used_ns = nm_pace_used_ns(&mover->pace, mover->queue[i]->domain);
		if (due_ns > now) {
			*wait_ns = due_ns - now < *wait_ns ? due_ns - now : *wait_ns;
		} else if (used_ns < least_ns) {
			next = i;
			least_ns = used_ns;
		}
	}
	if (next == mover->queue_count)
		return;
	work->batch = mover->queue[next];
	memmove(mover->queue + next, mover->queue + next + 1,
		(--mover->queue_count - next) * sizeof(*mover->queue));
	work->cache = NULL;
	work->dropped = work->discarded = false;
	work->checked_ns = 0;
}

/* Puts the batch at the end of the queue; it continues at again_ns or later. */
static void put_back(struct nm_mover *mover, uint64_t again_ns)
{
	struct nm_work *work = &mover->work;

	work->batch->again_ns = again_ns;
	mover->queue[mover->queue_count++] = NM_TAKE(work->batch);
}

static void finish_batch(struct nm_mover *mover, int error)
{
	struct nm_work *work = &mover->work;
	struct nm_page_batch *batch = work->batch;

	batch->error = error;
	work->batch = NULL;
	if (work->discarded)
		nm_page_batch_free(batch);
	else
		mover->done[mover->done_count++] = batch;
}

/* ---- the end of a step ---- */

/* Returns the time until the mappings may be known: the time spent reading them in this step, or,
 * if they could not be read, a time that doubles with each such attempt. */
static uint64_t rest_ns(struct nm_mover *mover)
{
	unsigned refused = mover->work.batch->refused;
	uint64_t ns = NM_CACHE_REFUSED_NS << (refused < 8 ? refused : 8);

	if (mover->work.held_ns > 0)
		return mover->work.held_ns;
	mover->work.batch->refused++;
	return ns < LONGEST_WAIT_NS ? ns : LONGEST_WAIT_NS;
}

static void end_batch_step(struct nm_mover *mover, int r)
{
	struct nm_page_batch *batch = mover->work.batch;

	nm_pace_charge(&mover->pace, batch->domain, (double)(now_ns(mover) - mover->step_began_ns));
	r = nm_batch_step_end(mover, r);
	bool pauses = due(mover, batch) > now_ns(mover);
	if (!nm_batch_has_steps(batch) && r == -ESTALE && !mover->work.dropped)
		put_back(mover, now_ns(mover) + rest_ns(mover));
	else if (r != -EAGAIN)
		finish_batch(mover, r);
	else if ((pauses || (batch->bulk && mover->queue_count > 0)) && !mover->work.dropped)
		put_back(mover, 0);
	nm_mover_count_splits(mover);
}

/* Goes on with the result of a job, or of a step that began none. Returns false if a job is in
 * progress. */
static bool go_on(struct nm_mover *mover, int r)
{
	while (r != NM_CALL_BEGUN && mover->job.kind != NM_JOB_NONE) {
		bool reads = mover->job.kind == NM_JOB_READS;
		mover->job.kind = NM_JOB_NONE;
		if (!reads) {
			r = mover->work.batch->bulk ? nm_bulk_end(mover, r)
						    : nm_units_end(mover, r);
			continue;
		}
		r = nm_cache_end(&mover->cache, mover->work.cache, r);
		nm_cache_publish(&mover->cache, mover->work.cache, r, now_ns(mover));
		if (mover->in_step)
			r = nm_batch_read(mover, r);
	}
	if (r == NM_CALL_BEGUN)
		return false;
	if (mover->in_step)
		end_batch_step(mover, r);
	mover->in_step = false;
	mover->work.cache = NULL;
	nm_mover_adopt(mover);
	return true;
}

/* Returns true if a turn of reading was completed. If an entry waits for its turn, reduces *wait_ns
 * to the time until then. */
static bool read_a_turn(struct nm_mover *mover, uint64_t now, uint64_t *wait_ns)
{
	struct nm_cached_mappings *entry = nm_cache_unread(&mover->cache, now);

	if (!entry)
		return false;
	if (now >= mover->cache.turn_ns) {
		mover->work.cache = entry;
		return go_on(mover, nm_mover_read(mover));
	}
	if (mover->cache.turn_ns - now < *wait_ns)
		*wait_ns = mover->cache.turn_ns - now;
	return false;
}

/* ---- a turn ---- */

/* Returns true if there may be more to do at once. Otherwise a call is in progress, or *wait_ns is
 * reduced to the time until there is more to do. */
static bool take_turn(struct nm_mover *mover, uint64_t *wait_ns)
{
	uint64_t now = now_ns(mover);
	int r;

	if (mover->job.kind != NM_JOB_NONE)
		return mover->platform->ops->pages_poll(mover->platform, &r) && go_on(mover, r);
	take_batch(mover, now, wait_ns);
	if (mover->work.batch && mover->work.dropped) {
		finish_batch(mover, -ECANCELED);
		return true;
	}
	if (mover->work.batch) {
		uint64_t pace_ns = nm_pace_wait_ns(&mover->pace, now);
		if (pace_ns == 0) {
			mover->in_step = true;
			mover->step_began_ns = now;
			return go_on(mover, nm_batch_step(mover));
		}
		*wait_ns = pace_ns < *wait_ns ? pace_ns : *wait_ns;
	}
	return read_a_turn(mover, now, wait_ns);
}

uint64_t nm_mover_work(struct nm_mover *mover)
{
	uint64_t wait_ns = LONGEST_WAIT_NS;

	while (take_turn(mover, &wait_ns))
		wait_ns = LONGEST_WAIT_NS;
	return wait_ns;
}

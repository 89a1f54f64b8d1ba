// SPDX-License-Identifier: MIT
/* The thread: determines what to do next, and how long to sleep until then. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "call.h"
#include "loose.h"
#include "mover_internal.h"
#include "split.h"

#define LONGEST_SLEEP_NS (10 * NM_NSEC_PER_SEC)

static uint64_t now_ns(const struct nm_mover *mover)
{
	return mover->platform->ops->now_ns(mover->platform);
}

static void sleep_for(struct nm_mover *mover, uint64_t ns)
{
	struct timespec until;

	if (ns > LONGEST_SLEEP_NS)
		ns = LONGEST_SLEEP_NS;
	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / NM_NSEC_PER_SEC);
	until.tv_nsec = (long)(ns % NM_NSEC_PER_SEC);
	pthread_cond_timedwait(&mover->wake, &mover->lock, &until);
}

/* ---- batches (under the lock) ---- */

/* Takes the first batch that is due. If there is none, reduces *wait_ns to the time until one is
 * due. */
static void take_batch(struct nm_mover *mover, uint64_t now, uint64_t *wait_ns)
{
	struct nm_work *work = &mover->work;
	size_t i = 0;

	for (; !work->batch && i < mover->queue_count && mover->queue[i]->again_ns > now; i++)
		if (mover->queue[i]->again_ns - now < *wait_ns)
			*wait_ns = mover->queue[i]->again_ns - now;
	if (work->batch || i == mover->queue_count)
		return;
	work->batch = mover->queue[i];
	memmove(mover->queue + i, mover->queue + i + 1,
		(--mover->queue_count - i) * sizeof(*mover->queue));
	work->known = NULL;
	work->dropped = work->has_mems = false;
	work->next = work->loose_count = 0;
	work->found.count = work->found_next = 0;
}

/* Puts the batch at the end of the queue; it continues at again_ns or later. */
static void put_back(struct nm_mover *mover, uint64_t again_ns)
{
	mover->work.batch->again_ns = again_ns;
	mover->queue[mover->queue_count++] = mover->work.batch;
	mover->work.batch = NULL;
}

static void finish_batch(struct nm_mover *mover, int error)
{
	struct nm_work *work = &mover->work;
	struct nm_page_batch *batch = work->batch;

	nm_base_pages_end(work);
	for (size_t i = work->next; i < batch->count; i++) {
		mover->queued_pages--;
		mover->queued_bytes -= batch->steps[i].bytes;
	}
	batch->error = error;
	mover->done[mover->done_count++] = batch;
	work->batch = NULL;
}

/* Releases the lock. Until calm_down() the rules and the work belong to the worker alone. */
static void get_busy(struct nm_mover *mover, struct nm_known_entry *entry)
{
	mover->busy = true;
	mover->work.known = entry;
	pthread_mutex_unlock(&mover->lock);
}

static void calm_down(struct nm_mover *mover)
{
	mover->busy = false;
	mover->work.known = NULL;
	nm_mover_adopt(mover);
}

/* Returns the time until the mappings may be known: the time spent reading them in this step, or,
 * if they could not be read, a time that doubles with each such attempt. */
static uint64_t rest_ns(struct nm_mover *mover)
{
	unsigned refused = mover->work.batch->refused;
	uint64_t ns = NM_KNOWN_REFUSED_NS << (refused < 8 ? refused : 8);

	if (mover->work.held_ns > 0)
		return mover->work.held_ns;
	mover->work.batch->refused++;
	return ns < LONGEST_SLEEP_NS ? ns : LONGEST_SLEEP_NS;
}

static void continue_batch(struct nm_mover *mover)
{
	get_busy(mover, NULL);
	nm_call_prepare(mover);
	int r = nm_batch_step(mover);
	pthread_mutex_lock(&mover->lock);
	calm_down(mover);
	struct nm_page_batch *batch = mover->work.batch;
	if (batch->bulk && r == -ESTALE && !mover->work.dropped)
		put_back(mover, now_ns(mover) + rest_ns(mover));
	else if (r != -EAGAIN)
		finish_batch(mover, r);
	else if (batch->bulk && mover->queue_count > 0 && !mover->work.dropped)
		put_back(mover, 0);
}

static void look_at_splits(struct nm_mover *mover)
{
	if (mover->stopping)
		return;
	get_busy(mover, NULL);
	nm_splits_look(mover);
	pthread_mutex_lock(&mover->lock);
	calm_down(mover);
}

/* ---- mappings ---- */

static void read_next_mappings(struct nm_mover *mover, struct nm_known_entry *entry)
{
	get_busy(mover, entry);
	nm_call_prepare(mover);
	int r = nm_known_read(entry, mover->platform, &mover->rules.maps);
	uint64_t now = now_ns(mover);
	pthread_mutex_lock(&mover->lock);
	nm_known_publish(&mover->known, entry, r, now);
	calm_down(mover);
}

/* Returns true if something was read. Otherwise, if an entry waits for its turn, reduces *wait_ns
 * to the time until then. */
static bool read_a_turn(struct nm_mover *mover, uint64_t now, uint64_t *wait_ns)
{
	struct nm_known_entry *entry = nm_known_unread(&mover->known, now);

	if (!entry)
		return false;
	if (now >= mover->known.turn_ns) {
		read_next_mappings(mover, entry);
		return true;
	}
	if (mover->known.turn_ns - now < *wait_ns)
		*wait_ns = mover->known.turn_ns - now;
	return false;
}

/* ---- the loop ---- */

bool nm_mover_turn(struct nm_mover *mover, uint64_t *ret_wait_ns)
{
	uint64_t now = now_ns(mover), wait_ns = LONGEST_SLEEP_NS;

	take_batch(mover, now, &wait_ns);
	if (mover->work.batch && mover->work.dropped) {
		finish_batch(mover, -ECANCELED);
		return true;
	}
	if (mover->work.batch) {
		uint64_t pace_ns = nm_pace_wait_ns(&mover->pace, now);
		if (pace_ns == 0) {
			continue_batch(mover);
			look_at_splits(mover);
			return true;
		}
		wait_ns = pace_ns < wait_ns ? pace_ns : wait_ns;
	}
	if (read_a_turn(mover, now, &wait_ns))
		return true;
	*ret_wait_ns = wait_ns;
	return false;
}

void *nm_mover_run(void *argument)
{
	struct nm_mover *mover = argument;
	uint64_t wait_ns;

	nm_call_prepare(mover);
	pthread_mutex_lock(&mover->lock);
	while (!mover->stopping)
		if (!nm_mover_turn(mover, &wait_ns))
			sleep_for(mover, wait_ns);
	mover->ended = true;
	bool abandoned = mover->abandoned;
	pthread_cond_signal(&mover->turned);
	pthread_mutex_unlock(&mover->lock);
	if (abandoned)
		nm_mover_destroy(mover);
	return NULL;
}

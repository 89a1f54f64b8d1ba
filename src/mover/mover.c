// SPDX-License-Identifier: MIT
/* The functions that the main loop calls. */
#include "mover/mover.h"

#include <string.h>

#include "mover_internal.h"
#include "numa-migrd/proc.h"

/* ---- huge pages that were split ---- */

static uint64_t read_splits(struct nm_mover *mover)
{
	char text[NM_VMSTAT_BYTES];
	uint64_t splits = 0;

	nm_vmstat_read(mover->platform, text);
	(void)nm_vmstat_value(text, "thp_migration_split", &splits);
	return splits;
}

void nm_mover_count_splits(struct nm_mover *mover)
{
	uint64_t now = mover->platform->ops->now_ns(mover->platform);

	if (now - mover->splits_ns < NM_NSEC_PER_SEC)
		return;
	mover->splits_ns = now;
	uint64_t splits = read_splits(mover);
	if (splits > mover->splits_before)
		mover->counts.splits = splits - mover->splits_before;
}

/* ---- construction ---- */

void nm_mover_free(struct nm_mover *mover)
{
	if (!mover)
		return;
	if (mover->job.kind != NM_JOB_NONE)
		mover->platform->ops->pages_cancel(mover->platform);
	for (size_t i = 0; i < mover->queue_count; i++)
		nm_page_batch_free(mover->queue[i]);
	for (size_t i = 0; i < mover->done_count; i++)
		nm_page_batch_free(mover->done[i]);
	nm_page_batch_free(mover->work.batch);
	nm_cache_clear(&mover->cache);
	nm_rules_clear(&mover->rules);
	nm_rules_clear(&mover->next);
	free(mover);
}

void nm_mover_new(struct nm_platform *platform, const struct nm_topology *topology,
		  const struct nm_config *config, struct nm_mover **ret)
{
	nm_auto(nm_mover_freep) struct nm_mover *mover = nm_must(calloc(1, sizeof(*mover)));

	mover->platform = platform;
	nm_cache_init(&mover->cache);
	nm_pace_init(&mover->pace, platform->ops->now_ns(platform));
	nm_pace_configure(&mover->pace, config);
	mover->splits_before = read_splits(mover);
	nm_rules_init(&mover->rules, topology, config);
	*ret = NM_TAKE(mover);
}

/* ---- the queue ---- */

static void cancel_queued(struct nm_mover *mover, size_t index)
{
	struct nm_page_batch *batch = mover->queue[index];

	batch->error = -ECANCELED;
	mover->done[mover->done_count++] = batch;
	memmove(mover->queue + index, mover->queue + index + 1,
		(--mover->queue_count - index) * sizeof(*mover->queue));
}

static void drop_all(struct nm_mover *mover)
{
	while (mover->queue_count > 0)
		cancel_queued(mover, 0);
	mover->work.dropped = true;
}

static void count_batches(struct nm_page_batch *const *batches, size_t count, uint64_t domain,
			  struct nm_quota *quota)
{
	for (size_t i = 0; i < count; i++)
		nm_quota_count(quota, domain, batches[i]->domain, 1);
}

/* Counts the batches that are queued, in progress, or not collected. */
static bool has_batch_room(const struct nm_mover *mover, const struct nm_page_batch *batch)
{
	struct nm_quota quota = {.limit = NM_BATCHES_MOST};

	count_batches(mover->queue, mover->queue_count, batch->domain, &quota);
	count_batches(mover->done, mover->done_count, batch->domain, &quota);
	count_batches(&mover->work.batch, mover->work.batch != NULL, batch->domain, &quota);
	return nm_quota_permits(&quota, batch->domain);
}

static void reset_batch(struct nm_page_batch *batch)
{
	batch->error = 0;
	batch->moved = batch->bytes = batch->calls = batch->call_ns = batch->base_pages_lost = 0;
	free(NM_TAKE(batch->base_pages));
	batch->nr_base_pages = batch->base_pages_capacity = 0;
	batch->next = batch->again_ns = batch->refused = 0;
	batch->full = false;
	for (size_t i = 0; i < batch->count; i++) {
		batch->steps[i].fate = NM_PAGE_FATE_UNTRIED;
		batch->steps[i].found_on = -1;
		batch->steps[i].base_pages = batch->steps[i].done = false;
		batch->steps[i].next = 0;
		batch->steps[i].error = 0;
	}
}

void nm_mover_adopt(struct nm_mover *mover)
{
	const struct nm_cache_limits *now = &mover->rules.maps, *next = &mover->next.maps;

	if (!mover->has_next)
		return;
	/* The mappings were judged by the old rules. */
	if (now->move_bound != next->move_bound || now->move_shared != next->move_shared)
		nm_cache_clear(&mover->cache);
	nm_rules_clear(&mover->rules);
	mover->rules = mover->next;
	mover->next = (struct nm_mover_rules){0};
	mover->has_next = false;
}

/* ---- called by the main loop ---- */

static const struct nm_mover_rules *latest(const struct nm_mover *mover)
{
	return mover->has_next ? &mover->next : &mover->rules;
}

void nm_mover_configure(struct nm_mover *mover, const struct nm_topology *topology,
			const struct nm_config *config)
{
	struct nm_mover_rules rules;

	nm_rules_init(&rules, topology, config);
	nm_pace_configure(&mover->pace, config);
	if (rules.barred || !nm_rules_same_nodes(latest(mover), &rules))
		drop_all(mover);
	nm_rules_clear(&mover->next);
	mover->next = rules;
	mover->has_next = true;
	if (mover->job.kind == NM_JOB_NONE)
		nm_mover_adopt(mover);
}

bool nm_mover_is_barred(struct nm_mover *mover)
{
	return latest(mover)->barred;
}

int nm_mover_submit(struct nm_mover *mover, struct nm_page_batch *batch)
{
	if (latest(mover)->barred)
		return -EPERM;
	if (!has_batch_room(mover, batch))
		return -EAGAIN;
	reset_batch(batch);
	mover->queue[mover->queue_count++] = batch;
	return 0;
}

struct nm_page_batch *nm_mover_collect(struct nm_mover *mover, bool bulk)
{
	size_t i = 0;

	while (i < mover->done_count && mover->done[i]->bulk != bulk)
		i++;
	if (i == mover->done_count)
		return NULL;
	struct nm_page_batch *batch = mover->done[i];
	memmove(mover->done + i, mover->done + i + 1,
		(--mover->done_count - i) * sizeof(*mover->done));
	return batch;
}

/* pid 0: of all processes. */
static void drop_batches(struct nm_mover *mover, uint32_t pid, bool bulk)
{
	struct nm_work *work = &mover->work;

	for (size_t i = mover->queue_count; i > 0; i--) {
		const struct nm_page_batch *batch = mover->queue[i - 1];
		if (batch->bulk == bulk && (pid == 0 || batch->pid == pid))
			cancel_queued(mover, i - 1);
	}
	if (work->batch && work->batch->bulk == bulk && (pid == 0 || work->batch->pid == pid))
		work->dropped = true;
}

void nm_mover_drop(struct nm_mover *mover, uint32_t pid, bool bulk)
{
	drop_batches(mover, pid, bulk);
	nm_cache_drop(&mover->cache, pid);
}

void nm_mover_discard(struct nm_mover *mover, bool bulk)
{
	struct nm_page_batch *batch;

	drop_batches(mover, 0, bulk);
	if (mover->work.batch && mover->work.batch->bulk == bulk)
		mover->work.discarded = true;
	while ((batch = nm_mover_collect(mover, bulk)))
		nm_page_batch_free(batch);
}

/* Returns the bytes of a batch that are not tried yet; 0 for homes. */
static uint64_t bytes_left(const struct nm_page_batch *batch)
{
	uint64_t bytes = 0, pages = 0;

	if (batch->bulk)
		return 0;
	for (size_t i = batch->next; i < batch->count; i++)
		bytes += batch->steps[i].done ? 0 : batch->steps[i].bytes;
	for (size_t i = 0; i < batch->nr_back; i++)
		pages += batch->back[i].pages;
	return pages > batch->next ? (pages - batch->next) * NM_BASE_BYTES : bytes;
}

uint64_t nm_mover_room_bytes(struct nm_mover *mover, uint64_t now_ns)
{
	const struct nm_work *work = &mover->work;
	uint64_t room = nm_pace_room_bytes(&mover->pace, now_ns), queued = 0;

	if (work->batch)
		queued = bytes_left(work->batch);
	for (size_t i = 0; i < mover->queue_count; i++)
		queued += bytes_left(mover->queue[i]);
	return latest(mover)->barred || queued > room ? 0 : room - queued;
}

int nm_mover_ranges(struct nm_mover *mover, uint32_t pid, uint64_t start_ticks, uint64_t domain,
		    struct nm_range **ret, size_t *ret_count)
{
	uint64_t now = mover->platform->ops->now_ns(mover->platform);
	struct nm_cached_mappings *entry =
		nm_cache_ask(&mover->cache, pid, start_ticks, domain, now, mover->work.cache);

	if (entry && nm_cache_holds(entry, now)) {
		nm_cache_ranges(entry, ret, ret_count);
		return 0;
	}
	if (entry && entry->error && now < entry->again_ns)
		return entry->error == -EACCES ? -EPERM : entry->error;
	return -EAGAIN;
}

struct nm_mover_counts nm_mover_counts(struct nm_mover *mover)
{
	struct nm_mover_counts counts = mover->counts;
	counts.map_reads = mover->cache.reads;
	counts.waiting = mover->queue_count + (mover->work.batch != NULL);
	return counts;
}

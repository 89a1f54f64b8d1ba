/* SPDX-License-Identifier: MIT */
#include "settled.h"

#include "numa-migrd/topology.h"

/* ---- shares ---- */

struct nm_share {
	uint64_t key;
	uint32_t count;
};

/* The number of domains is small: at most one for each leased process. */
static struct nm_share *find_share(const struct nm_shares *shares, uint64_t key)
{
	for (size_t i = 0; i < shares->count; i++)
		if (shares->shares[i].key == key)
			return &shares->shares[i];
	return NULL;
}

int nm_shares_take(struct nm_shares *shares, uint64_t domain, uint32_t most)
{
	struct nm_share *share = find_share(shares, domain);
	const struct nm_usage usage = {.all = shares->all, .own = share ? share->count : 0};
	if (!nm_usage_has_room(&usage, most))
		return -ENOSPC;
	if (!share) {
		NM_RESERVE(shares->shares, shares->capacity, shares->count);
		share = &shares->shares[shares->count++];
		*share = (struct nm_share){.key = domain};
	}
	share->count++;
	shares->all++;
	return 0;
}

void nm_shares_release(struct nm_shares *shares, uint64_t domain)
{
	struct nm_share *share = find_share(shares, domain);
	if (!share)
		return;
	shares->all--;
	if (--share->count == 0)
		*share = shares->shares[--shares->count];
}

void nm_shares_clear(struct nm_shares *shares)
{
	free(shares->shares);
	*shares = (struct nm_shares){0};
}

/* ---- threads ---- */

struct nm_settled *nm_settled_new(void)
{
	struct nm_settled *settled = nm_must(calloc(1, sizeof(*settled)));
	settled->by_tid = nm_tidmap_new();
	return settled;
}

void nm_settled_free(struct nm_settled *settled)
{
	if (!settled)
		return;
	free(settled->threads);
	nm_shares_clear(&settled->shares);
	nm_tidmap_free(settled->by_tid);
	free(settled);
}

static void remove_at(struct nm_settled *settled, uint32_t index)
{
	struct nm_settled_thread *thread = &settled->threads[index];
	nm_shares_release(&settled->shares, thread->owner);
	nm_tidmap_remove(settled->by_tid, thread->tid);
	*thread = settled->threads[--settled->count];
	if (index < settled->count) /* the map contains its number, so this cannot fail */
		(void)nm_tidmap_set(settled->by_tid, thread->tid, index);
}

static int append_thread(struct nm_settled *settled, const struct nm_settled_thread *thread)
{
	NM_RESERVE(settled->threads, settled->capacity, settled->count);
	int r = nm_tidmap_set(settled->by_tid, thread->tid, (uint32_t)settled->count);
	if (r == 0) /* there is room. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
		settled->threads[settled->count++] = *thread;
	return r;
}

int nm_settled_add(struct nm_settled *settled, uint64_t domain, uint32_t tid, uint64_t start_ticks,
		   uint64_t round)
{
	const struct nm_settled_thread thread = {
		.tid = tid,
		.owner = (uint32_t)domain,
		.start_ticks = start_ticks & ((UINT64_C(1) << 48) - 1),
		.round = round & UINT16_MAX,
	};
	uint32_t index = nm_tidmap_get(settled->by_tid, tid);
	struct nm_settled_thread *earlier =
		index == NM_TIDMAP_NONE ? NULL : &settled->threads[index];
	if (earlier && earlier->owner == thread.owner) {
		*earlier = thread;
		return 0;
	}
	int r = earlier || settled->count < NM_SETTLED_MOST
			? nm_shares_take(&settled->shares, thread.owner, NM_SETTLED_MOST)
			: -ENOSPC;
	settled->crowded = settled->crowded || r < 0;
	if (r < 0)
		return r;
	if (earlier) {
		nm_shares_release(&settled->shares, earlier->owner);
		*earlier = thread;
		return 0;
	}
	r = append_thread(settled, &thread);
	if (r < 0)
		nm_shares_release(&settled->shares, thread.owner);
	return r;
}

bool nm_settled_has(const struct nm_settled *settled, uint32_t tid, uint64_t start_ticks)
{
	uint32_t index = nm_tidmap_get(settled->by_tid, tid);
	return index != NM_TIDMAP_NONE && settled->threads[index].start_ticks == start_ticks;
}

void nm_settled_remove(struct nm_settled *settled, uint32_t tid, uint64_t start_ticks)
{
	if (nm_settled_has(settled, tid, start_ticks))
		remove_at(settled, nm_tidmap_get(settled->by_tid, tid));
}

void nm_settled_forget(struct nm_settled *settled, struct nm_platform *platform, uint64_t round,
		       uint64_t since_ticks)
{
	nm_autobitmap unused = settled->crowded ? nm_must(hwloc_bitmap_alloc()) : NULL;
	for (uint32_t i = (uint32_t)settled->count; i-- > 0;) {
		const struct nm_settled_thread *thread = &settled->threads[i];
		bool old = (int16_t)(uint16_t)(round - thread->round) > 0;
		bool forgotten = old && thread->start_ticks < since_ticks;
		bool ended =
			!forgotten && unused &&
			platform->ops->affinity_get(platform, (pid_t)thread->tid, unused) == -ESRCH;
		if (forgotten || ended)
			remove_at(settled, i);
	}
	settled->crowded = false;
}

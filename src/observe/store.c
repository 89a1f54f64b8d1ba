/* SPDX-License-Identifier: MIT */
/* Finds, adds and evicts pages in buckets. */
#include <string.h>

#include "bucket.h"

#define LINE_PAIR 128U
#define HUGE_BYTES ((size_t)2 << 20)
/* Owners whose numbers of pages differ by at most this fraction count as equal. */
#define PEERS_DIVISOR 8U
/* 8 s (1 << 3) without an access halve the weight of a page's accesses. */
#define COLD_SHIFT 3U

_Static_assert(offsetof(struct nm_bucket, vector) + (size_t)13 * NM_WAYS <=
		       (size_t)2 * NM_CACHE_LINE,
	       "a bucket of 13 nodes is two cache lines");

void nm_store_new(struct nm_pages *pages, uint64_t limit)
{
	size_t one = offsetof(struct nm_bucket, vector) + NM_WAYS * (size_t)pages->nr_nodes;
	size_t stride = (one + NM_CACHE_LINE - 1) / NM_CACHE_LINE * NM_CACHE_LINE;
	/*
	 * 0.69 pages per entry: few overflow, and a page costs less than 64 bytes with four nodes.
	 */
	uint64_t homes = limit / 2 - limit / 64;
	size_t bytes = (size_t)(homes + NM_CHAIN - 1) * stride;
	size_t unit = bytes >= 2 * HUGE_BYTES ? HUGE_BYTES : LINE_PAIR;
	uint8_t *buckets = nm_must(aligned_alloc(unit, (bytes + unit - 1) / unit * unit));

	memset(buckets, 0, bytes);
	pages->buckets = buckets;
	pages->stride = stride;
	pages->nr_homes = homes;
	pages->limit = limit;
	pages->used = pages->dead = 0;
	pages->cursor = 0;
	pages->counts.bytes = bytes;
}

static struct nm_page_owner *owner_of(const struct nm_pages *pages, struct nm_slot slot)
{
	return &pages->owners[nm_key_owner(slot.bucket->key[slot.way])];
}

/* Adjusts the counters of the buckets from the page's own to the one that holds it. */
static void count_passed(struct nm_pages *pages, uint64_t home, const struct nm_bucket *kept,
			 int by)
{
	struct nm_bucket *bucket = nm_bucket_at(pages, home);

	while (bucket < kept) {
		if (bucket->passed != NM_PASSED_MANY)
			bucket->passed = (uint8_t)(bucket->passed + by);
		bucket = (struct nm_bucket *)(void *)((uint8_t *)bucket + pages->stride);
	}
}

void nm_store_remove(struct nm_pages *pages, struct nm_slot slot)
{
	struct nm_page_owner *owner = owner_of(pages, slot);

	count_passed(pages, nm_bucket_of(pages, slot.bucket->key[slot.way]), slot.bucket, -1);
	slot.bucket->key[slot.way] = 0;
	pages->used--;
	owner->pages--;
	if (owner->state != NM_OWNER_DEAD)
		return;
	pages->dead--;
	if (owner->pages == 0) {
		owner->state = NM_OWNER_FREE;
		owner->next_free = pages->free_owner;
		pages->free_owner = (uint16_t)(owner - pages->owners);
	}
}

static struct nm_slot first_free(const struct nm_pages *pages, uint64_t home)
{
	for (unsigned i = 0; i < NM_CHAIN; i++) {
		struct nm_bucket *bucket = nm_bucket_at(pages, home + i);
		unsigned match = nm_bucket_match(bucket, 0);
		if (match)
			return (struct nm_slot){bucket, (unsigned)__builtin_ctz(match)};
	}
	return (struct nm_slot){NULL, 0};
}

static struct nm_slot place(struct nm_pages *pages, uint64_t key, uint64_t home)
{
	struct nm_slot slot = first_free(pages, home);

	if (!slot.bucket)
		return slot;
	count_passed(pages, home, slot.bucket, 1);
	struct nm_bucket *bucket = slot.bucket;
	unsigned way = slot.way;
	memset(bucket->thread[way], 0, sizeof(bucket->thread[way]));
	memset(nm_slot_vector(pages, slot), 0, pages->nr_nodes);
	bucket->home[way] = bucket->previous[way] = 0;
	bucket->state[way] = 0;
	bucket->key[way] = key;
	pages->used++;
	pages->owners[nm_key_owner(key)].pages++;
	return slot;
}

/* A lower value is colder: the number of accesses, halved for each period of age; then the age. */
static uint32_t warmth(const struct nm_pages *pages, struct nm_slot slot, uint32_t now_s)
{
	uint32_t age = nm_age(now_s, slot.bucket->seen[slot.way]);
	uint32_t halvings = age >> COLD_SHIFT;
	const uint8_t *vector = nm_slot_vector(pages, slot);
	uint32_t accesses = nm_key_size(slot.bucket->key[slot.way]) == NM_PAGE_PART;

	for (unsigned k = 0; k < pages->nr_nodes; k++)
		accesses += vector[k];
	accesses = accesses < UINT16_MAX ? accesses : UINT16_MAX;
	accesses >>= halvings < 16 ? halvings : 16;
	return accesses << 16 | (UINT16_MAX - age);
}

enum { GOES_FIRST, GOES_SECOND, GOES_THIRD, STAYS };

/*
 * Returns the order in which this page may be evicted for one of an owner with `own_pages` pages:
 * first pages of closed owners; then those of owners with more pages; then the owner's own and
 * those of owners with about as many. Therefore the many pages of one process cannot displace the
 * few of another.
 */
static uint64_t turn_of(const struct nm_pages *pages, uint64_t key, unsigned owner,
			uint32_t own_pages)
{
	const struct nm_page_owner *other = &pages->owners[nm_key_owner(key)];
	uint32_t band = own_pages / PEERS_DIVISOR;
	bool peer = (nm_key_owner(key) == owner) | (other->pages + band >= own_pages);
	uint64_t turn = peer ? GOES_THIRD : STAYS;

	turn = other->pages > own_pages + band ? GOES_SECOND : turn;
	turn = other->state == NM_OWNER_DEAD ? GOES_FIRST : turn;
	return key ? turn : STAYS;
}

/*
 * Returns the page to evict from the first two buckets, or from the first one after them that has
 * any: by its order, then the coldest. It uses few branches, because they would be unpredictable.
 */
static struct nm_slot first_to_go(const struct nm_pages *pages, unsigned owner, uint64_t home,
				  uint32_t now_s)
{
	struct nm_slot found = {NULL, 0};
	uint64_t least = (uint64_t)STAYS << 32;
	uint32_t own_pages = pages->owners[owner].pages;

	for (unsigned i = 0; i < NM_CHAIN && (i < 2 || !found.bucket); i++) {
		struct nm_slot slot = {nm_bucket_at(pages, home + i), 0};
		for (; slot.way < NM_WAYS; slot.way++) {
			uint64_t turn =
				turn_of(pages, slot.bucket->key[slot.way], owner, own_pages);
			uint64_t rank = turn << 32 | warmth(pages, slot, now_s);
			found.bucket = rank < least ? slot.bucket : found.bucket;
			found.way = rank < least ? slot.way : found.way;
			least = rank < least ? rank : least;
		}
	}
	return found;
}

static bool evict_page(struct nm_pages *pages, uint64_t key, uint64_t home, uint32_t now_s)
{
	struct nm_slot victim = first_to_go(pages, nm_key_owner(key), home, now_s);

	if (!victim.bucket)
		return false;
	pages->counts.evicted += owner_of(pages, victim)->state != NM_OWNER_DEAD;
	nm_store_remove(pages, victim);
	return true;
}

struct nm_slot nm_store_add(struct nm_pages *pages, uint64_t key, uint64_t home, uint32_t now_s)
{
	struct nm_slot none = {NULL, 0};

	/* Pages of closed owners do not count: there is space beyond the limit until they are
	 * cleared. */
	if (pages->used - pages->dead >= pages->limit && !evict_page(pages, key, home, now_s))
		return none;
	struct nm_slot slot = place(pages, key, home);
	if (slot.bucket || !evict_page(pages, key, home, now_s))
		return slot;
	return place(pages, key, home);
}

static void copy_slot(struct nm_pages *pages, const struct nm_pages *old, struct nm_slot from,
		      uint32_t now_s)
{
	uint64_t key = from.bucket->key[from.way];
	struct nm_slot to = nm_store_add(pages, key, nm_bucket_of(pages, key), now_s);
	unsigned a = to.way, b = from.way;

	if (!to.bucket)
		return;
	memcpy(to.bucket->thread[a], from.bucket->thread[b], sizeof(to.bucket->thread[a]));
	memcpy(to.bucket->stamp[a], from.bucket->stamp[b], sizeof(to.bucket->stamp[a]));
	memcpy(nm_slot_vector(pages, to), nm_slot_vector(old, from), pages->nr_nodes);
	to.bucket->home[a] = from.bucket->home[b];
	to.bucket->previous[a] = from.bucket->previous[b];
	to.bucket->seen[a] = from.bucket->seen[b];
	to.bucket->barred[a] = from.bucket->barred[b];
	to.bucket->state[a] = from.bucket->state[b];
}

void nm_store_resize(struct nm_pages *pages, uint64_t limit, uint32_t now_s)
{
	struct nm_pages old = *pages;

	nm_store_new(pages, limit);
	for (size_t i = 0; i < pages->owner_count; i++)
		pages->owners[i].pages = 0;
	/* Drop dead pages and their owners. */
	for (uint64_t i = 0; i < old.nr_homes + NM_CHAIN - 1; i++) {
		struct nm_slot from = {nm_bucket_at(&old, i), 0};
		for (; from.way < NM_WAYS; from.way++)
			if (from.bucket->key[from.way] &&
			    owner_of(pages, from)->state == NM_OWNER_LIVE)
				copy_slot(pages, &old, from, now_s);
	}
	for (size_t i = 1; i < pages->owner_count; i++) {
		if (pages->owners[i].state != NM_OWNER_DEAD)
			continue;
		pages->owners[i].state = NM_OWNER_FREE;
		pages->owners[i].next_free = pages->free_owner;
		pages->free_owner = (uint16_t)i;
	}
	free(old.buckets);
}

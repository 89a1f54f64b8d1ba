/* SPDX-License-Identifier: MIT */
/*
 * The storage behind the table of pages (memory.h). Buckets of three pages take two cache lines
 * each for up to 13 nodes. The hash of a page selects its bucket, so that a lookup costs one cache
 * miss. If a bucket is full, further pages overflow to the buckets after it, and it counts them, so
 * that a search knows when to stop.
 */
#ifndef NUMA_MIGRD_MEMORY_BUCKET_H
#define NUMA_MIGRD_MEMORY_BUCKET_H

#include "observe/memory.h"

#define NM_WAYS 3U
#define NM_CHAIN 16U	   /* number of buckets in which a page may be */
#define NM_PASSED_MANY 255 /* a count that has overflowed, and no longer changes */
#define NM_CACHE_LINE 64U
/* Pages of 4 KiB within a huge page, or physical ones: used only for communication. */
#define NM_PAGE_PART 3U

enum {
	NM_STATE_PENDING = 1,
	NM_STATE_BARRED = 2,
	NM_STATE_ALONE = 4,
	NM_STATE_REVERSAL = 8, /* the unit of three bits that count reversals */
	NM_STATE_REVERSALS = 0x38
};

struct nm_bucket {
	uint64_t key[NM_WAYS];			     /* 0: free */
	uint16_t thread[NM_WAYS][NM_PAGE_SUBBLOCKS]; /* the latest */
	uint16_t home[NM_WAYS], previous[NM_WAYS];   /* node + 1; 0: not known */
	uint16_t seen[NM_WAYS], barred[NM_WAYS];     /* last access, and end of the bar; seconds */
	uint8_t stamp[NM_WAYS][NM_PAGE_SUBBLOCKS];   /* last access of the sub-block, seconds */
	uint8_t state[NM_WAYS];
	uint8_t passed;	  /* pages of this bucket or earlier ones that are stored after it */
	uint8_t vector[]; /* NM_WAYS × nr_nodes: accesses */
};

struct nm_slot {
	struct nm_bucket *bucket; /* NULL: none */
	unsigned way;
};

enum nm_owner_state { NM_OWNER_FREE, NM_OWNER_LIVE, NM_OWNER_DEAD };

struct nm_page_owner {
	uint32_t pages; /* in the table */
	uint8_t state;
	bool held;
	uint16_t next_free;
	struct nm_exclusivity summing, published;
};

struct nm_page_rules {
	uint64_t max_tracked;
	uint16_t
		/* By the second highest number of accesses: the page moves if the highest one
		 * exceeds this. */
		needed[256];
	uint32_t min_accesses;
	uint16_t cooldown_s, decay_s;
	uint8_t window_s;
	bool decays;
};

struct nm_pages {
	unsigned nr_nodes;
	uint16_t *replacement_node; /* by node: the node with CPUs that represents it */
	size_t stride;
	uint8_t *buckets;
	uint64_t nr_homes;   /* buckets selected by the hash; NM_CHAIN - 1 more follow them */
	uint64_t used, dead; /* numbers of entries; `dead` belong to closed owners */
	uint64_t limit;
	uint64_t key[4];
	struct nm_page_rules rules;
	struct nm_page_owner *owners;
	size_t owner_capacity, owner_count; /* index 0 is not used */
	/* Per owner and node, number of pages there: being summed up, and as published. */
	uint32_t *summing_homes, *homes;
	size_t home_rows;
	uint16_t free_owner;
	uint64_t cursor;	    /* position of nm_pages_update() */
	unsigned period_s, phase_s; /* period of decay, and the part of it that has elapsed */
	struct nm_pages_counts counts;
};

static inline struct nm_bucket *nm_bucket_at(const struct nm_pages *pages, uint64_t index)
{
	return (struct nm_bucket *)(void *)(pages->buckets + index * pages->stride);
}

static inline uint8_t *nm_slot_vector(const struct nm_pages *pages, struct nm_slot slot)
{
	return slot.bucket->vector + (size_t)slot.way * pages->nr_nodes;
}

static inline unsigned nm_key_owner(uint64_t key)
{
	return (unsigned)(key >> 46);
}

static inline unsigned nm_key_size(uint64_t key)
{
	return (unsigned)(key >> 44) & 3;
}

/* 44 bits of page number, two of size, 16 of owner. The bits above an address may be the tag of a
 * pointer. */
static inline uint64_t nm_page_key(const struct nm_page_id *page, unsigned size)
{
	static const uint8_t pages_bits[] = {0, 9, 18, 0};
	uint64_t number = (page->address & ((1ULL << 56) - 1)) >> 12;

	number = number >> pages_bits[size] << pages_bits[size];
	return number | (uint64_t)size << 44 | (uint64_t)page->owner << 46;
}

/* The key of what threads share if the physical address is known: owner 0 stands for all processes.
 */
static inline uint64_t nm_physical_key(uint64_t physical_address)
{
	const struct nm_page_id page = {.address = physical_address};

	return nm_page_key(&page, NM_PAGE_PART);
}

static inline uint64_t nm_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The bucket of a key: two keyed multiplications, scaled to the number of buckets. The constants
 * are arbitrary with many bits set, so that small keys also spread. */
static inline uint64_t nm_bucket_of(const struct nm_pages *pages, uint64_t key)
{
	uint64_t mixed = nm_fold(key ^ pages->key[0], pages->key[1] ^ 0x9e3779b97f4a7c15ULL);

	mixed = nm_fold(mixed ^ pages->key[2], pages->key[3] ^ 0xbf58476d1ce4e5b9ULL);
	return (uint64_t)(((unsigned __int128)mixed * pages->nr_homes) >> 64);
}

static inline uint16_t nm_age(uint32_t now_s, uint16_t then_s)
{
	return (uint16_t)((uint16_t)now_s - then_s);
}

/* Number of halvings due since then: one at each multiple of the period on the clock, the latest
 * one `phase_s` seconds ago. */
static inline unsigned nm_halvings(const struct nm_pages *pages, uint32_t now_s, uint16_t then_s)
{
	uint32_t age = nm_age(now_s, then_s), phase = pages->phase_s;

	return age <= phase ? 0 : (age - phase + pages->period_s - 1) / pages->period_s;
}

/* The ways that hold the key (0: the free ones), as bits, because a branch on them would be
 * unpredictable. */
static inline unsigned nm_bucket_match(const struct nm_bucket *bucket, uint64_t key)
{
	unsigned match = 0;

	for (unsigned way = 0; way < NM_WAYS; way++)
		match |= (unsigned)(bucket->key[way] == key) << way;
	return match;
}

/* Inline because it is on the hot path. */
static inline struct nm_slot nm_store_find(const struct nm_pages *pages, uint64_t key,
					   uint64_t home)
{
	for (unsigned i = 0; i < NM_CHAIN; i++) {
		struct nm_bucket *bucket = nm_bucket_at(pages, home + i);
		unsigned match = nm_bucket_match(bucket, key);
		if (match)
			return (struct nm_slot){bucket, (unsigned)__builtin_ctz(match)};
		if (bucket->passed == 0)
			break;
	}
	return (struct nm_slot){NULL, 0};
}

/* Allocates an empty store for `limit` pages. */
void nm_store_new(struct nm_pages *pages, uint64_t limit);

/* Changes the size to `limit` pages and keeps the pages. If there is not enough room, the coldest
 * are dropped. */
void nm_store_resize(struct nm_pages *pages, uint64_t limit, uint32_t now_s);

/* Adds an empty entry for a key that is not present. Returns no bucket if there is no room for this
 * owner. */
struct nm_slot nm_store_add(struct nm_pages *pages, uint64_t key, uint64_t home, uint32_t now_s);
void nm_store_remove(struct nm_pages *pages, struct nm_slot slot);

/* The rule (page_rule.c): returns the node to which the page should move, or -1. */
int nm_rule_target(const struct nm_pages *pages, struct nm_slot slot, uint32_t now_s);
void nm_rule_set(struct nm_page_rules *rules, const struct nm_config *config);
void nm_rule_moved(struct nm_pages *pages, struct nm_slot slot, unsigned node);

#endif

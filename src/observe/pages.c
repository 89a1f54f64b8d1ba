/* SPDX-License-Identifier: MIT */
/* The table of pages: owners, counting, and housekeeping. */
#include <string.h>

#include "bucket.h"

#define LIMIT_MIN 1024U
#define GROW_DIVISOR 16U /* the first table is for this fraction of max_tracked */
#define GROW_FACTOR 4U	 /* growth factor of the table */
#define BATCH 64U	 /* number of accesses whose buckets are prefetched together */
#define NEAR 8U		 /* accesses ahead of the one being counted */

static uint64_t first_limit(uint64_t most)
{
	uint64_t limit = most / GROW_DIVISOR;

	return limit > LIMIT_MIN ? limit : most < LIMIT_MIN ? most : LIMIT_MIN;
}

static size_t row_bytes(const struct nm_pages *pages)
{
	return pages->nr_nodes * sizeof(uint32_t);
}

static uint32_t *homes_row(const struct nm_pages *pages, uint32_t *homes, size_t owner)
{
	return homes + owner * pages->nr_nodes;
}

/* Allocates a row for each possible owner. */
static void grow_homes(struct nm_pages *pages)
{
	uint32_t **tables[] = {&pages->summing_homes, &pages->homes};
	size_t rows = pages->owner_capacity;

	if (rows <= pages->home_rows)
		return;
	for (size_t i = 0; i < NM_ARRAY_SIZE(tables); i++) {
		*tables[i] = nm_must(reallocarray(*tables[i], rows, row_bytes(pages)));
		memset(homes_row(pages, *tables[i], pages->home_rows), 0,
		       (rows - pages->home_rows) * row_bytes(pages));
	}
	pages->home_rows = rows;
}

void nm_pages_new(const struct nm_config *config, unsigned nr_nodes, const uint64_t key[4],
		  struct nm_pages **ret)
{
	nm_auto(nm_pages_freep) struct nm_pages *pages = nm_must(calloc(1, sizeof(*pages)));

	pages->nr_nodes = nr_nodes;
	pages->replacement_node = nm_must(calloc(nr_nodes, sizeof(*pages->replacement_node)));
	for (unsigned k = 0; k < nr_nodes; k++)
		pages->replacement_node[k] = (uint16_t)k;
	memcpy(pages->key, key, sizeof(pages->key));
	nm_pages_configure(pages, config);
	NM_RESERVE(pages->owners, pages->owner_capacity, 0);
	grow_homes(pages);
	pages->owners[0] = (struct nm_page_owner){.held = true};
	pages->owner_count = 1;
	nm_store_new(pages, first_limit(pages->rules.max_tracked));
	*ret = NM_TAKE(pages);
}

void nm_pages_free(struct nm_pages *pages)
{
	if (!pages)
		return;
	free(pages->replacement_node);
	free(pages->buckets);
	free(pages->owners);
	free(pages->summing_homes);
	free(pages->homes);
	free(pages);
}

void nm_pages_stand_in(struct nm_pages *pages, unsigned node, unsigned with_cpus)
{
	pages->replacement_node[node] = (uint16_t)with_cpus;
}

void nm_pages_configure(struct nm_pages *pages, const struct nm_config *config)
{
	nm_rule_set(&pages->rules, config);
}

/* ---- owners ---- */

static bool is_live(const struct nm_pages *pages, uint16_t owner)
{
	return owner < pages->owner_count && pages->owners[owner].state == NM_OWNER_LIVE;
}

int nm_pages_open(struct nm_pages *pages, uint16_t *ret)
{
	uint16_t owner = pages->free_owner;

	if (owner) {
		pages->free_owner = pages->owners[owner].next_free;
	} else {
		if (pages->owner_count > UINT16_MAX)
			return -ENOSPC;
		NM_RESERVE(pages->owners, pages->owner_capacity, pages->owner_count);
		grow_homes(pages);
		owner = (uint16_t)pages->owner_count++;
	}
	pages->owners[owner] = (struct nm_page_owner){.state = NM_OWNER_LIVE, .held = true};
	memset(homes_row(pages, pages->summing_homes, owner), 0, row_bytes(pages));
	memset(homes_row(pages, pages->homes, owner), 0, row_bytes(pages));
	*ret = owner;
	return 0;
}

void nm_pages_close(struct nm_pages *pages, uint16_t id)
{
	if (!is_live(pages, id))
		return;
	struct nm_page_owner *owner = &pages->owners[id];
	/* The number is reused when the last of the pages has been dropped. */
	owner->state = owner->pages ? NM_OWNER_DEAD : NM_OWNER_FREE;
	pages->dead += owner->pages;
	if (owner->pages == 0) {
		owner->next_free = pages->free_owner;
		pages->free_owner = id;
	}
}

void nm_pages_hold(struct nm_pages *pages, uint16_t owner, bool held)
{
	if (is_live(pages, owner))
		pages->owners[owner].held = held;
}

/* ---- counting ---- */

static void halve(uint8_t *vector, unsigned nr_nodes, unsigned times)
{
	for (unsigned k = 0; k < nr_nodes; k++)
		vector[k] = (uint8_t)(times < 8 ? vector[k] >> times : 0);
}

static void count_access(const struct nm_pages *pages, struct nm_slot slot, uint32_t now_s,
			 const struct nm_page_touch *touch)
{
	uint8_t *vector = nm_slot_vector(pages, slot);
	unsigned halvings = nm_halvings(pages, now_s, slot.bucket->seen[slot.way]);

	if (halvings && pages->rules.decays)
		halve(vector, pages->nr_nodes, halvings);
	/* A counter stuck at its maximum could never be exceeded. */
	if (vector[touch->node] == UINT8_MAX)
		halve(vector, pages->nr_nodes, 1);
	vector[touch->node]++;
	if (touch->page_node >= 0)
		slot.bucket->home[slot.way] = (uint16_t)(touch->page_node + 1);
}

/* Must be called before the entry is marked as seen now, because the stamps of eight bits wrap
 * around. */
static void forget_old_threads(const struct nm_pages *pages, struct nm_slot slot, uint32_t now_s)
{
	struct nm_bucket *bucket = slot.bucket;
	int window_s = pages->rules.window_s;

	if (nm_age(now_s, bucket->seen[slot.way]) > window_s)
		window_s = -1;
	/* No branches, because whether a sub-block was touched recently is unpredictable. */
	for (unsigned i = 0; i < NM_PAGE_SUBBLOCKS; i++) {
		uint8_t idle = (uint8_t)((uint8_t)now_s - bucket->stamp[slot.way][i]);
		uint16_t keep = (uint16_t) - (idle <= window_s);
		bucket->thread[slot.way][i] &= keep;
	}
}

/* Section 3.2: records the thread as the sub-block's latest, and returns the thread with which it
 * shares. Of two positions, as in the paper, the pair in the vector is then this thread and the one
 * before, so that the second position need not be kept. */
static uint16_t note_thread(struct nm_slot slot, uint32_t now_s, const struct nm_page_touch *touch)
{
	unsigned block =
		(unsigned)(touch->page.address / NM_PAGE_SUBBLOCK_BYTES) % NM_PAGE_SUBBLOCKS;
	uint16_t *thread = &slot.bucket->thread[slot.way][block];
	uint16_t latest = *thread;

	slot.bucket->stamp[slot.way][block] = (uint8_t)now_s;
	if (latest == touch->thread)
		return 0;
	*thread = touch->thread;
	return latest;
}

/* Returns the entry of the page, prepared for an access now; creates it if necessary. */
static struct nm_slot entry_for(struct nm_pages *pages, uint64_t key, uint64_t home, uint32_t now_s)
{
	struct nm_slot slot = nm_store_find(pages, key, home);

	if (slot.bucket) {
		forget_old_threads(pages, slot, now_s);
		return slot;
	}
	slot = nm_store_add(pages, key, home, now_s);
	if (slot.bucket)
		slot.bucket->seen[slot.way] = (uint16_t)now_s;
	return slot;
}

/* The entries that count an access: its page and, if that is huge or the physical page is known,
 * one for what threads share. */
struct visit {
	uint64_t page_key, page_home, part_key, part_home;
};

static void set_time(struct nm_pages *pages, uint32_t now_s)
{
	pages->period_s = pages->rules.decay_s;
	pages->phase_s = now_s % pages->period_s;
}

/* The compiler considers a function that only prefetches to have no effect, and drops it unless it
 * is inlined. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Prefetches the lines of a bucket for up to 13 nodes; the hardware fetches further lines. */
static ALWAYS_INLINE void fetch(const struct nm_pages *pages, uint64_t index)
{
	const uint8_t *bucket = pages->buckets + index * pages->stride;

	__builtin_prefetch(bucket);
	__builtin_prefetch(bucket + NM_CACHE_LINE);
}

/* One page in seven is in the bucket after its own: waiting for it would cost more than always
 * fetching it. */
static ALWAYS_INLINE void fetch_both(const struct nm_pages *pages, uint64_t home)
{
	fetch(pages, home);
	fetch(pages, home + 1);
}

static struct visit prepare_visit(const struct nm_pages *pages, const struct nm_page_touch *touch)
{
	struct visit visit = {.page_key = nm_page_key(&touch->page, touch->page.size)};

	visit.page_home = nm_bucket_of(pages, visit.page_key);
	fetch_both(pages, visit.page_home);
	if (touch->thread == 0 || (touch->page.size == NM_PAGE_4K && !touch->physical_address))
		return visit;
	visit.part_key = touch->physical_address ? nm_physical_key(touch->physical_address)
						 : nm_page_key(&touch->page, NM_PAGE_PART);
	visit.part_home = nm_bucket_of(pages, visit.part_key);
	fetch_both(pages, visit.part_home);
	return visit;
}

static ALWAYS_INLINE void approach_key(const struct nm_pages *pages, uint64_t key, uint64_t home)
{
	const struct nm_bucket *bucket = nm_bucket_at(pages, home);

	if (nm_bucket_match(bucket, key))
		return;
	if (bucket->passed || pages->used - pages->dead >= pages->limit)
		fetch(pages, home + 2);
}

/* The second prefetch: the bucket has arrived, and the next one is fetched if the page is not in
 * it. */
static ALWAYS_INLINE void approach(const struct nm_pages *pages, const struct visit *visit)
{
	approach_key(pages, visit->page_key, visit->page_home);
	if (visit->part_key)
		approach_key(pages, visit->part_key, visit->part_home);
}

static uint16_t visit_part(struct nm_pages *pages, uint32_t now_s,
			   const struct nm_page_touch *touch, const struct visit *visit)
{
	struct nm_slot slot = entry_for(pages, visit->part_key, visit->part_home, now_s);

	if (!slot.bucket)
		return 0;
	slot.bucket->seen[slot.way] = (uint16_t)now_s;
	return note_thread(slot, now_s, touch);
}

static struct nm_page_finding visit_page(struct nm_pages *pages, uint32_t now_s,
					 const struct nm_page_touch *touch,
					 const struct visit *visit)
{
	struct nm_page_finding finding = {.partner = 0, .target = -1};

	if (!is_live(pages, touch->page.owner) || touch->node >= pages->nr_nodes)
		return finding;
	if (visit->part_key)
		finding.partner = visit_part(pages, now_s, touch, visit);
	struct nm_slot slot = entry_for(pages, visit->page_key, visit->page_home, now_s);
	if (!slot.bucket)
		return finding;
	count_access(pages, slot, now_s, touch);
	slot.bucket->seen[slot.way] = (uint16_t)now_s;
	if (!visit->part_key && touch->thread)
		finding.partner = note_thread(slot, now_s, touch);
	/* Threads before pages: see struct nm_page_touch. */
	if (touch->passing)
		return finding;
	finding.target = (int16_t)nm_rule_target(pages, slot, now_s);
	if (finding.target >= 0)
		slot.bucket->state[slot.way] |= NM_STATE_PENDING;
	return finding;
}

void nm_pages_touch(struct nm_pages *pages, uint32_t now_s, const struct nm_page_touch *touches,
		    size_t count, struct nm_page_finding *ret_findings)
{
	set_time(pages, now_s);
	for (size_t done = 0; done < count; done += BATCH) {
		size_t part = count - done < BATCH ? count - done : BATCH;
		struct visit visits[BATCH];

		for (size_t i = 0; i < part; i++)
			visits[i] = prepare_visit(pages, &touches[done + i]);
		for (size_t i = 0; i < part && i < NEAR; i++)
			approach(pages, &visits[i]);
		for (size_t i = 0; i < part; i++) {
			if (i + NEAR < part)
				approach(pages, &visits[i + NEAR]);
			ret_findings[done + i] =
				visit_page(pages, now_s, &touches[done + i], &visits[i]);
		}
	}
}

/* ---- one page ---- */

static struct nm_slot find_slot(const struct nm_pages *pages, const struct nm_page_id *page)
{
	uint64_t key = nm_page_key(page, page->size);

	if (!is_live(pages, page->owner))
		return (struct nm_slot){NULL, 0};
	return nm_store_find(pages, key, nm_bucket_of(pages, key));
}

int nm_pages_end_check(struct nm_pages *pages, uint32_t now_s, const struct nm_page_id *page,
		       enum nm_page_outcome outcome, unsigned node)
{
	struct nm_slot slot = find_slot(pages, page);

	if (!slot.bucket)
		return -ENOENT;
	uint8_t *state = &slot.bucket->state[slot.way];
	*state &= (uint8_t)~NM_STATE_PENDING;
	if (outcome == NM_PAGE_DROPPED)
		return 0;
	if (outcome == NM_PAGE_MOVED)
		nm_rule_moved(pages, slot, node);
	if (pages->rules.cooldown_s) {
		*state |= NM_STATE_BARRED;
		slot.bucket->barred[slot.way] = (uint16_t)(now_s + pages->rules.cooldown_s);
	}
	return 0;
}

int nm_pages_look(const struct nm_pages *pages, uint32_t now_s, const struct nm_page_id *page,
		  struct nm_page_view *ret)
{
	struct nm_slot slot = find_slot(pages, page);

	if (!slot.bucket)
		return -ENOENT;
	uint8_t state = slot.bucket->state[slot.way];
	*ret = (struct nm_page_view){
		.accesses = nm_slot_vector(pages, slot),
		.page_node = slot.bucket->home[slot.way] - 1,
		.pending = state & NM_STATE_PENDING,
		.barred = state & NM_STATE_BARRED &&
			  (int16_t)(slot.bucket->barred[slot.way] - (uint16_t)now_s) > 0,
		.left_alone = state & NM_STATE_ALONE,
	};
	return 0;
}

/* ---- housekeeping ---- */

static void sum_up_slot(const struct nm_pages *pages, struct nm_slot slot, uint32_t now_s)
{
	uint64_t key = slot.bucket->key[slot.way];
	const uint8_t *vector = nm_slot_vector(pages, slot);
	unsigned halvings =
		pages->rules.decays ? nm_halvings(pages, now_s, slot.bucket->seen[slot.way]) : 0;
	uint32_t most = 0, total = 0;

	if (nm_key_size(key) == NM_PAGE_PART || halvings >= 8)
		return;
	for (unsigned k = 0; k < pages->nr_nodes; k++) {
		uint32_t count = (uint32_t)vector[k] >> halvings;
		total += count;
		if (count > most)
			most = count;
	}
	nm_exclusivity_add(&pages->owners[nm_key_owner(key)].summing, most, total);
	unsigned home = slot.bucket->home[slot.way];
	if (total > 0 && home > 0 && home <= pages->nr_nodes)
		homes_row(pages, pages->summing_homes, nm_key_owner(key))[home - 1]++;
}

/* Returns the current target size of the table. */
static uint64_t wanted_limit(const struct nm_pages *pages)
{
	uint64_t most = pages->rules.max_tracked;
	uint64_t live = pages->used - pages->dead;

	if (pages->limit >= most)
		return most;
	if (live < pages->limit / 4 * 3)
		return pages->limit;
	return pages->limit * GROW_FACTOR < most ? pages->limit * GROW_FACTOR : most;
}

void nm_pages_update(struct nm_pages *pages, uint32_t now_s, double share)
{
	set_time(pages, now_s);
	uint64_t limit = wanted_limit(pages);
	if (limit != pages->limit) {
		nm_store_resize(pages, limit, now_s);
		for (size_t i = 1; i < pages->owner_count; i++)
			pages->owners[i].summing = (struct nm_exclusivity){0};
		memset(pages->summing_homes, 0, pages->owner_count * row_bytes(pages));
	}
	uint64_t buckets = pages->nr_homes + NM_CHAIN - 1;
	double part = share * (double)buckets;
	uint64_t left = share >= 1 ? buckets : (uint64_t)part + 1;

	for (; left > 0 && pages->cursor < buckets; left--) {
		struct nm_slot slot = {nm_bucket_at(pages, pages->cursor++), 0};
		for (; slot.way < NM_WAYS; slot.way++) {
			uint64_t key = slot.bucket->key[slot.way];
			if (key == 0)
				continue;
			bool dead = pages->owners[nm_key_owner(key)].state == NM_OWNER_DEAD;
			bool forgotten = !dead && nm_age(now_s, slot.bucket->seen[slot.way]) >
							  NM_PAGE_FORGET_S;
			if (dead || forgotten)
				nm_store_remove(pages, slot);
			else
				sum_up_slot(pages, slot, now_s);
		}
	}
	if (pages->cursor >= buckets) {
		pages->cursor = 0;
		for (size_t i = 1; i < pages->owner_count; i++) {
			pages->owners[i].published = pages->owners[i].summing;
			pages->owners[i].summing = (struct nm_exclusivity){0};
		}
		memcpy(pages->homes, pages->summing_homes, pages->owner_count * row_bytes(pages));
		memset(pages->summing_homes, 0, pages->owner_count * row_bytes(pages));
	}
}

struct nm_exclusivity nm_pages_exclusivity(const struct nm_pages *pages, uint16_t owner)
{
	return is_live(pages, owner) ? pages->owners[owner].published : (struct nm_exclusivity){0};
}

void nm_pages_homes(const struct nm_pages *pages, uint16_t owner, uint64_t *ret)
{
	for (unsigned node = 0; node < pages->nr_nodes; node++)
		ret[node] = is_live(pages, owner) ? homes_row(pages, pages->homes, owner)[node] : 0;
}

struct nm_pages_counts nm_pages_counts(const struct nm_pages *pages)
{
	struct nm_pages_counts counts = pages->counts;

	counts.tracked = pages->used - pages->dead;
	counts.limit = pages->limit;
	return counts;
}

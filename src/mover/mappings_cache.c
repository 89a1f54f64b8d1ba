// SPDX-License-Identifier: MIT
#include "mappings_cache.h"

#include <inttypes.h>
#include <stdio.h>

#include "numa-migrd/proc.h"

static void free_mappings(struct nm_mappings *mappings)
{
	if (mappings)
		free(mappings->items);
	free(mappings);
}

static void empty_entry(struct nm_cached_mappings *entry)
{
	free_mappings(entry->ready);
	free_mappings(entry->reading);
	*entry = (struct nm_cached_mappings){0};
}

void nm_cache_init(struct nm_mappings_cache *cache)
{
	cache->bytes_most = NM_CACHE_BYTES_MOST;
}

void nm_cache_clear(struct nm_mappings_cache *cache)
{
	for (size_t i = 0; i < cache->used; i++)
		empty_entry(&cache->entries[i]);
	cache->used = 0;
}

/* ---- replacing entries ---- */

/* Returns whether the entry took long to read, and is not due yet. Another domain does not replace
 * it, so that it is not read again early. */
static bool is_expensive(const struct nm_cached_mappings *entry, uint64_t now_ns)
{
	return now_ns < entry->again_ns && entry->again_ns - entry->ready_ns > NM_CACHE_AGE_NS;
}

/* Returns whether the entry was dropped, or has expired without another request. */
static bool is_forgotten(const struct nm_cached_mappings *entry, uint64_t now_ns)
{
	return entry->dropped || (entry->again_ns != 0 && !entry->reading && !entry->asked &&
				  now_ns >= entry->again_ns && !nm_cache_holds(entry, now_ns));
}

/* Returns whether the mappings have been delivered or are no longer needed. */
static bool may_go(const struct nm_cached_mappings *entry, uint64_t domain, uint64_t now_ns)
{
	if (is_forgotten(entry, now_ns))
		return true;
	return entry->had && !entry->reading &&
	       (entry->domain == domain || !is_expensive(entry, now_ns));
}

static struct nm_cached_mappings *choose_victim(struct nm_mappings_cache *cache, uint64_t domain,
						uint64_t now_ns,
						const struct nm_cached_mappings *keep)
{
	struct nm_cached_mappings *oldest = NULL;

	for (size_t i = 0; i < cache->used; i++) {
		struct nm_cached_mappings *entry = &cache->entries[i];
		if (entry == keep || entry->pid == 0 || !may_go(entry, domain, now_ns))
			continue;
		bool own = entry->domain == domain, other = oldest && oldest->domain != domain;
		if (!oldest || (own && other) ||
		    (own == !other && entry->asked_ns < oldest->asked_ns))
			oldest = entry;
	}
	return oldest;
}

static size_t bytes_of_one(const struct nm_mappings *mappings)
{
	return mappings ? sizeof(*mappings) + mappings->capacity * sizeof(*mappings->items) : 0;
}

static size_t bytes_of(const struct nm_cached_mappings *entry)
{
	return bytes_of_one(entry->ready) + bytes_of_one(entry->reading);
}

size_t nm_cache_bytes(const struct nm_mappings_cache *cache)
{
	size_t bytes = 0;

	for (size_t i = 0; i < cache->used; i++)
		bytes += bytes_of(&cache->entries[i]);
	return bytes;
}

static bool has_memory(const struct nm_mappings_cache *cache, uint64_t domain)
{
	struct nm_quota quota = {.limit = (double)cache->bytes_most};

	for (size_t i = 0; i < cache->used; i++)
		nm_quota_count(&quota, domain, cache->entries[i].domain,
			       bytes_of(&cache->entries[i]));
	return nm_quota_permits(&quota, domain);
}

bool nm_cache_has_room(struct nm_mappings_cache *cache, uint64_t now_ns,
		       const struct nm_cached_mappings *entry)
{
	while (!has_memory(cache, entry->domain)) {
		struct nm_cached_mappings *victim =
			choose_victim(cache, entry->domain, now_ns, entry);
		if (!victim)
			return false;
		empty_entry(victim);
	}
	return true;
}

/* ---- requests ---- */

static struct nm_cached_mappings *find_entry(struct nm_mappings_cache *cache, uint32_t pid)
{
	for (size_t i = 0; i < cache->used; i++)
		if (cache->entries[i].pid == pid)
			return &cache->entries[i];
	return NULL;
}

static bool has_place(const struct nm_mappings_cache *cache, uint64_t domain)
{
	struct nm_quota quota = {.limit = NM_CACHE_MOST};

	for (size_t i = 0; i < cache->used; i++)
		if (cache->entries[i].pid != 0)
			nm_quota_count(&quota, domain, cache->entries[i].domain, 1);
	return nm_quota_permits(&quota, domain);
}

/* Returns an unused entry, or one whose contents were discarded. */
static struct nm_cached_mappings *make_place(struct nm_mappings_cache *cache, uint64_t domain,
					     uint64_t now_ns, const struct nm_cached_mappings *keep)
{
	struct nm_cached_mappings *entry;

	if (!has_place(cache, domain)) {
		entry = choose_victim(cache, domain, now_ns, keep);
		if (entry)
			empty_entry(entry);
		return entry;
	}
	entry = find_entry(cache, 0);
	return entry ? entry : &cache->entries[cache->used++];
}

struct nm_cached_mappings *nm_cache_ask(struct nm_mappings_cache *cache, uint32_t pid,
					uint64_t start_ticks, uint64_t domain, uint64_t now_ns,
					const struct nm_cached_mappings *keep)
{
	struct nm_cached_mappings *entry = find_entry(cache, pid);

	if (entry && (entry->start_ticks != start_ticks || entry->dropped)) {
		if (entry == keep)
			return NULL; /* the worker is about to discard it */
		empty_entry(entry);
	} else if (!entry) {
		entry = make_place(cache, domain, now_ns, keep);
	}
	if (!entry)
		return NULL;
	if (entry->pid == 0)
		*entry = (struct nm_cached_mappings){.pid = pid,
						     .start_ticks = start_ticks,
						     .domain = domain,
						     .wanted_ns = now_ns};
	entry->asked_ns = now_ns;
	entry->asked = true;
	entry->had =
		nm_cache_holds(entry, now_ns) || (entry->error && nm_cache_rests(entry, now_ns));
	return entry;
}

void nm_cache_drop(struct nm_mappings_cache *cache, uint32_t pid)
{
	struct nm_cached_mappings *entry = find_entry(cache, pid);

	if (entry)
		entry->dropped = true;
}

bool nm_cache_holds(const struct nm_cached_mappings *entry, uint64_t now_ns)
{
	uint64_t holds_ns = 2 * (entry->again_ns - entry->ready_ns);

	if (holds_ns > NM_CACHE_HOLDS_NS)
		holds_ns = NM_CACHE_HOLDS_NS;
	return entry->ready && !entry->dropped && now_ns < entry->ready_ns + holds_ns;
}

bool nm_cache_rests(const struct nm_cached_mappings *entry, uint64_t now_ns)
{
	return !entry->reading && now_ns < entry->again_ns;
}

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void nm_cache_lacks(struct nm_cached_mappings *entry)
{
	uint64_t soon = longer(NM_CACHE_SOON_NS, entry->ready ? 100 * entry->ready->cost_ns : 0);

	if (entry->ready_ns + soon < entry->again_ns)
		entry->again_ns = entry->ready_ns + soon;
}

/* ---- reading ---- */

static bool is_due(const struct nm_cached_mappings *entry, uint64_t now_ns)
{
	return entry->pid != 0 && (entry->reading || entry->again_ns == 0 ||
				   (entry->asked && now_ns >= entry->again_ns));
}

static uint64_t waits_since(const struct nm_cached_mappings *entry)
{
	return entry->again_ns ? entry->again_ns : entry->wanted_ns;
}

/* Returns when a process of this domain was last read; 0: never. */
static uint64_t domain_read_ns(const struct nm_mappings_cache *cache, uint64_t domain)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < cache->used; i++)
		if (cache->entries[i].pid != 0 && cache->entries[i].domain == domain)
			last_ns = longer(last_ns, cache->entries[i].ready_ns);
	return last_ns;
}

static bool is_before(const struct nm_mappings_cache *cache, const struct nm_cached_mappings *a,
		      const struct nm_cached_mappings *b)
{
	uint64_t a_ns = domain_read_ns(cache, a->domain), b_ns = domain_read_ns(cache, b->domain);

	return a_ns != b_ns ? a_ns < b_ns : waits_since(a) < waits_since(b);
}

bool nm_cache_may_begin(const struct nm_mappings_cache *cache,
			const struct nm_cached_mappings *entry)
{
	for (size_t i = 0; i < cache->used; i++)
		if (cache->entries[i].reading)
			return &cache->entries[i] == entry;
	return true;
}

struct nm_cached_mappings *nm_cache_unread(struct nm_mappings_cache *cache, uint64_t now_ns)
{
	struct nm_cached_mappings *first = NULL;

	for (size_t i = 0; i < cache->used; i++) {
		struct nm_cached_mappings *entry = &cache->entries[i];
		if (entry->pid != 0 && is_forgotten(entry, now_ns))
			empty_entry(entry);
		if (!is_due(entry, now_ns) || (first && first->reading))
			continue;
		if (!first || entry->reading || is_before(cache, entry, first))
			first = entry;
	}
	while (cache->used > 0 && cache->entries[cache->used - 1].pid == 0)
		cache->used--;
	if (first && !first->reading && !nm_cache_has_room(cache, now_ns, first))
		return NULL;
	return first;
}

int nm_cache_open(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
		  uint32_t *ret_tid, uint64_t *ret_ticks)
{
	struct nm_proc_stat stat;
	int directory = nm_proc_open_same(platform, 0, pid, start_ticks, &stat);

	if (directory < 0)
		return directory;
	if (nm_proc_has_exited(&stat)) {
		int thread = nm_proc_open_survivor(platform, directory, "task", &stat);
		platform->ops->close(platform, directory);
		directory = thread;
	}
	if (directory < 0)
		return directory;
	*ret_tid = stat.tid;
	*ret_ticks = stat.start_ticks;
	return directory;
}

/* The time to read mappings grows with the pages, of which hugetlb memory has few. */
static int check_size(struct nm_platform *platform, int directory,
		      const struct nm_cache_limits *limits)
{
	struct nm_proc_memory memory;

	if (limits->rss_bytes == 0)
		return 0;
	int r = nm_proc_read_memory(platform, directory, &memory);
	return r == 0 && memory.rss_bytes > limits->rss_bytes ? -EFBIG : r;
}

/* The size is checked in each turn, because the process may grow. */
int nm_cache_begin(struct nm_mappings_cache *cache, struct nm_cached_mappings *entry,
		   struct nm_platform *platform, const struct nm_cache_limits *limits)
{
	uint32_t tid;
	uint64_t tid_ticks;

	entry->held_ns = 0;
	int directory = nm_cache_open(platform, entry->pid, entry->start_ticks, &tid, &tid_ticks);
	if (directory < 0)
		return directory;
	int r = check_size(platform, directory, limits);
	platform->ops->close(platform, directory);
	if (r < 0)
		return r;
	cache->order = (struct nm_mappings_order){
		.budget_ns = limits->budget_ns,
		.begin = !entry->reading,
		.move_bound = limits->move_bound,
		.move_shared = limits->move_shared,
	};
	if (!entry->reading)
		entry->reading = nm_must(calloc(1, sizeof(*entry->reading)));
	return platform->ops->mappings_read(platform, (pid_t)tid, tid_ticks, &cache->order,
					    &cache->piece, &entry->held_ns);
}

/* Releases unused memory, because the mappings are kept for a while. */
static void shrink(struct nm_mappings *mappings)
{
	if (mappings->count == 0)
		return;
	mappings->items =
		nm_must(reallocarray(mappings->items, mappings->count, sizeof(*mappings->items)));
	mappings->capacity = mappings->count;
}

/* A worker that has begun to read may have been replaced: it is read from the start. */
int nm_cache_end(struct nm_mappings_cache *cache, struct nm_cached_mappings *entry, int r)
{
	const struct nm_mappings_piece *piece = &cache->piece;
	struct nm_mappings *reading = entry->reading;

	if (r == -ESTALE && cache->order.begin)
		return -EPROTO;
	if (r == -ESTALE) {
		free_mappings(NM_TAKE(entry->reading));
		return -EAGAIN;
	}
	if (r < 0)
		return r;
	reading->cost_ns += entry->held_ns;
	uint64_t after = reading->count ? reading->items[reading->count - 1].end : 0;
	if (!nm_mappings_piece_is_valid(piece, after))
		return -EPROTO;
	if (reading->count + piece->count > NM_MAPPINGS_MOST)
		return -EFBIG;
	for (unsigned i = 0; i < piece->count; i++) {
		NM_RESERVE(reading->items, reading->capacity, reading->count);
		reading->items[reading->count++] = piece->items[i];
	}
	if (!piece->complete)
		return -EAGAIN;
	shrink(reading);
	return 0;
}

void nm_cache_publish(struct nm_mappings_cache *cache, struct nm_cached_mappings *entry, int result,
		      uint64_t now_ns)
{
	bool refused = result == -EAGAIN && entry->held_ns == 0;
	cache->turn_ns =
		now_ns + (refused ? NM_CACHE_REFUSED_NS : NM_CACHE_TURN_SHARE * entry->held_ns);
	if (result == -EAGAIN)
		return;
	uint64_t cost = entry->reading ? entry->reading->cost_ns : 0;
	entry->asked = entry->had = false;
	entry->error = result;
	entry->ready_ns = now_ns;
	entry->again_ns = now_ns + longer(NM_CACHE_AGE_NS, 100 * cost);
	free_mappings(entry->ready);
	entry->ready = result == 0 ? NM_TAKE(entry->reading) : NULL;
	free_mappings(NM_TAKE(entry->reading));
	cache->reads++;
}

/* ---- lookup ---- */

const struct nm_mapping *nm_cache_find(const struct nm_cached_mappings *entry, uint64_t address,
				       uint64_t bytes)
{
	const struct nm_mappings *all = entry->ready;
	size_t low = NM_FIRST_ABOVE(all->items, all->count, end, address);

	if (low == all->count)
		return NULL;
	const struct nm_mapping *mapping = &all->items[low];
	return mapping->start <= address && bytes <= mapping->end - address ? mapping : NULL;
}

void nm_cache_ranges(const struct nm_cached_mappings *entry, struct nm_range **ret,
		     size_t *ret_count)
{
	const struct nm_mappings *all = entry->ready;
	struct nm_range *ranges = nm_must(calloc(all->count + 1, sizeof(*ranges)));
	size_t count = 0;

	for (size_t i = 0; i < all->count; i++) {
		const struct nm_mapping *mapping = &all->items[i];
		struct nm_range *last = count ? &ranges[count - 1] : NULL;
		if (mapping->rule != NM_MAPS_MOVES)
			continue;
		if (last && last->end == mapping->start && last->page_bytes == mapping->page_bytes)
			last->end = mapping->end;
		else
			ranges[count++] = (struct nm_range){mapping->start, mapping->end,
							    mapping->page_bytes};
	}
	*ret = ranges;
	*ret_count = count;
}

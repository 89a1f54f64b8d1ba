/* SPDX-License-Identifier: MIT */
/* The cache of mappings: eviction, order of reads, and lifetime. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/mover/mappings_cache.h"
#include "mover_fixture.h"

#define SEC NM_NSEC_PER_SEC
#define FIRST_PID 1000U
#define TICKS 5U

static struct nm_mappings_cache *known_new(void)
{
	struct nm_mappings_cache *cache = calloc(1, sizeof(*cache));

	assert_non_null(cache);
	nm_cache_init(cache);
	return cache;
}

static void known_free(struct nm_mappings_cache *cache)
{
	nm_cache_clear(cache);
	free(cache);
}

/* Reads the next process as the worker does, and returns its pid, or 0. */
static uint32_t read_next(struct test *test, struct nm_mappings_cache *cache, uint64_t now)
{
	struct nm_cached_mappings *entry = nm_cache_unread(cache, now);

	if (!entry)
		return 0;
	uint32_t pid = entry->pid;
	renumber(test, pid, TICKS);
	int r = nm_cache_begin(cache, entry, &test->fake->platform,
			       &(struct nm_cache_limits){.budget_ns = SEC});
	nm_cache_publish(cache, entry, nm_cache_end(cache, entry, r), now);
	return pid;
}

/* Reads for one budget. */
static int read_once(struct test *test, struct nm_mappings_cache *cache,
		     struct nm_cached_mappings *entry, const struct nm_cache_limits *limits)
{
	return nm_cache_end(cache, entry,
			    nm_cache_begin(cache, entry, &test->fake->platform, limits));
}

/* Each process has a domain of its own. */
static struct nm_cached_mappings *ask(struct nm_mappings_cache *cache, uint32_t pid, uint64_t now)
{
	return nm_cache_ask(cache, pid, TICKS, pid, now, NULL);
}

/* If N processes ask in each interval, each eventually finds its mappings cached. */
static void expect_all_served(struct test *test, struct nm_mappings_cache *cache,
			      unsigned processes)
{
	bool *had = calloc(processes, sizeof(*had));
	unsigned count = 0;

	assert_non_null(had);
	for (uint64_t tick = 1; tick <= 200 && count < processes; tick++) {
		for (uint32_t i = 0; i < processes; i++) {
			struct nm_cached_mappings *entry = ask(cache, FIRST_PID + i, tick * SEC);
			bool now = entry && nm_cache_holds(entry, tick * SEC) && !had[i];
			had[i] |= now;
			count += now;
		}
		for (unsigned i = 0; i < 20; i++)
			(void)read_next(test, cache, tick * SEC);
		assert_true(nm_cache_bytes(cache) <= cache->bytes_most + 4096);
	}
	free(had);
	assert_int_equal(count, processes);
}

TEST(test_more_processes_than_places)
{
	struct nm_mappings_cache *cache = known_new();

	expect_all_served(*state, cache, NM_CACHE_MOST + 100);
	known_free(cache);
}

TEST(test_more_than_memory)
{
	struct nm_mappings_cache *cache = known_new();

	cache->bytes_most = 16384;
	expect_all_served(*state, cache, 60);
	known_free(cache);
}

/* Neither queued processes nor unclaimed results are evicted. */
TEST(test_eviction_order)
{
	struct test *test = *state;
	struct nm_mappings_cache *cache = known_new();
	const uint32_t last = FIRST_PID + NM_CACHE_MOST - 1, extra = last + 1;

	for (uint32_t pid = FIRST_PID; pid <= last; pid++)
		assert_non_null(ask(cache, pid, SEC));
	assert_null(ask(cache, extra, SEC));
	while (read_next(test, cache, 2 * SEC))
		;
	assert_null(ask(cache, extra, 2 * SEC));
	struct nm_cached_mappings *entry = ask(cache, FIRST_PID + 7, 2 * SEC);
	assert_true(nm_cache_holds(entry, 2 * SEC));
	assert_null(
		nm_cache_ask(cache, extra, TICKS, extra, 2 * SEC, entry)); /* it is being read */
	assert_ptr_equal(ask(cache, extra, 2 * SEC), entry);
	assert_false(nm_cache_holds(entry, 2 * SEC));
	assert_non_null(ask(cache, FIRST_PID + 8, 3 * SEC));
	assert_non_null(ask(cache, FIRST_PID + 7, 4 * SEC)); /* there it is read again */
	assert_null(ask(cache, FIRST_PID + 8, 4 * SEC));
	known_free(cache);
}

/* An unclaimed result expires. */
TEST(test_unclaimed_mappings_expire)
{
	struct test *test = *state;
	struct nm_mappings_cache *cache = known_new();

	for (uint32_t i = 0; i < NM_CACHE_MOST; i++)
		assert_non_null(ask(cache, FIRST_PID + i, SEC));
	while (read_next(test, cache, SEC))
		;
	assert_null(ask(cache, 2, 10 * SEC));
	assert_non_null(ask(cache, 2, 11 * SEC));
	assert_int_equal(read_next(test, cache, 12 * SEC), 2);
	assert_int_equal(read_next(test, cache, 12 * SEC), 0);
	for (uint32_t i = 0; i < NM_CACHE_MOST; i++)
		assert_int_equal(cache->entries[i].pid != 0, cache->entries[i].pid == 2);
	known_free(cache);
}

/* A process whose result expired is queried again: it is not skipped for others. */
TEST(test_wanted_again)
{
	struct test *test = *state;
	struct nm_mappings_cache *cache = known_new();
	uint32_t pid = FIRST_PID;

	for (uint32_t i = 0; i < NM_CACHE_MOST; i++)
		assert_non_null(ask(cache, pid + i, SEC));
	while (read_next(test, cache, SEC))
		;
	for (uint32_t i = 0; i < NM_CACHE_MOST; i++)
		assert_true(nm_cache_holds(ask(cache, pid + i, 2 * SEC), 2 * SEC));
	struct nm_cached_mappings *entry = ask(cache, pid, 20 * SEC);
	assert_false(nm_cache_holds(entry, 20 * SEC));
	pid += NM_CACHE_MOST;
	for (uint32_t i = 1; i < NM_CACHE_MOST; i++)
		assert_non_null(ask(cache, pid + i, 21 * SEC));
	assert_null(ask(cache, pid, 21 * SEC));
	assert_int_equal(entry->pid, FIRST_PID);
	nm_cache_drop(cache, FIRST_PID); /* but it may be dropped */
	assert_ptr_equal(ask(cache, pid, 21 * SEC), entry);
	known_free(cache);
}

/* The process that waits longest is read first, except for one that is half read. */
TEST(test_order)
{
	struct test *test = *state;
	struct nm_mappings_cache *cache = known_new();

	for (uint32_t i = 0; i < 4; i++)
		assert_non_null(ask(cache, FIRST_PID + i, (1 + i) * SEC));
	renumber(test, FIRST_PID + 2, TICKS);
	test->memory->read_ns = 1;
	assert_int_equal(read_once(test, cache, ask(cache, FIRST_PID + 2, 5 * SEC),
				   &(struct nm_cache_limits){.budget_ns = 1}),
			 -EAGAIN);
	assert_int_equal(read_next(test, cache, 6 * SEC), FIRST_PID + 2);
	assert_non_null(ask(cache, FIRST_PID, 7 * SEC));
	assert_int_equal(read_next(test, cache, 7 * SEC), FIRST_PID);
	assert_int_equal(read_next(test, cache, 7 * SEC), FIRST_PID + 1);
	assert_int_equal(read_next(test, cache, 7 * SEC), FIRST_PID + 3);
	assert_int_equal(read_next(test, cache, 7 * SEC), 0);
	known_free(cache);
}

/* A worker reads one process at a time: the one that it has begun goes first. */
TEST(test_one_reading_at_a_time)
{
	const struct nm_cache_limits limits = {.budget_ns = 1};
	struct test *test = *state;
	struct nm_mappings_cache *cache = known_new();
	struct nm_cached_mappings *first = nm_cache_ask(cache, FAKE_PID, FAKE_TICKS, 1, SEC, NULL);
	struct nm_cached_mappings *second = ask(cache, FIRST_PID, SEC);

	test->memory->read_ns = 1;
	assert_true(nm_cache_may_begin(cache, first) && nm_cache_may_begin(cache, second));
	assert_int_equal(read_once(test, cache, first, &limits), -EAGAIN);
	assert_true(nm_cache_may_begin(cache, first));
	assert_false(nm_cache_may_begin(cache, second));
	assert_ptr_equal(nm_cache_unread(cache, 2 * SEC), first);
	/* The worker that had begun is gone: from the start, and then another process may be read.
	 */
	test->memory->maps_error = -ESTALE;
	assert_int_equal(read_once(test, cache, first, &limits), -EAGAIN);
	assert_true(nm_cache_may_begin(cache, second));
	assert_int_equal(read_once(test, cache, first, &limits), -EPROTO);
	known_free(cache);
}

/* A result that took long to read is valid longer, and not read again at once. */
TEST(test_long_reading)
{
	struct test *test = *state;
	struct nm_mappings_cache *cache = known_new();
	struct nm_cached_mappings *entry = ask(cache, FIRST_PID, 100 * SEC);

	test->memory->read_ns = SEC / 4; /* four reads: 100 s must pass */
	assert_int_equal(read_next(test, cache, 100 * SEC), FIRST_PID);
	assert_true(nm_cache_holds(entry, 129 * SEC));
	assert_false(nm_cache_holds(entry, 130 * SEC));
	assert_ptr_equal(ask(cache, FIRST_PID, 150 * SEC), entry);
	assert_int_equal(read_next(test, cache, 199 * SEC), 0);
	assert_true(nm_cache_rests(entry, 199 * SEC));
	assert_ptr_equal(ask(cache, FIRST_PID, 199 * SEC), entry);
	assert_int_equal(read_next(test, cache, 200 * SEC), FIRST_PID);
	assert_true(nm_cache_holds(entry, 200 * SEC));
	known_free(cache);
}

/* All of its threads have exited, although its number exists. */
TEST(test_all_threads_gone)
{
	struct test *test = *state;
	uint32_t tid = 7;
	uint64_t ticks = 8;

	test->process->state = 'Z';
	assert_int_equal(nm_cache_open(&test->fake->platform, FAKE_PID, FAKE_TICKS, &tid, &ticks),
			 -ESRCH);
	assert_int_equal(tid, 7);
	assert_int_equal(ticks, 8);
	assert_int_equal(fake_open_fds(test->fake), 0);
}

static void add_exited(struct test *test, uint32_t from, uint32_t to)
{
	for (uint32_t tid = from; tid <= to; tid++)
		fake_clone(test->fake, FAKE_PID, tid)->state = 'Z';
}

/* A tracer keeps exited threads in /proc as long as it likes. */
/* SECURITY: many-threads */
TEST(test_many_exited_threads)
{
	struct test *test = *state;
	struct nm_platform *platform = &test->fake->platform;
	uint32_t tid;
	uint64_t ticks;

	(void)fake_clone(test->fake, FAKE_PID, 900);
	test->process->state = 'Z';
	add_exited(test, 100, 119);
	int directory = nm_cache_open(platform, FAKE_PID, FAKE_TICKS, &tid, &ticks);
	assert_int_equal(tid, 900);
	assert_int_equal(ticks, fake_get(test->fake, 900)->start_ticks);
	platform->ops->close(platform, directory);
	add_exited(test, 120, 220);
	unsigned before = test->fake->calls[FAKE_OPEN];
	assert_int_equal(nm_cache_open(platform, FAKE_PID, FAKE_TICKS, &tid, &ticks), -ESRCH);
	assert_in_range(test->fake->calls[FAKE_OPEN] - before, 2, 65);
}

/* The caller determines which processes are too large, and may change this meanwhile. */
TEST(test_too_large)
{
	struct test *test = *state;
	struct nm_mappings_cache *cache = known_new();
	struct nm_cached_mappings *entry = nm_cache_ask(cache, FAKE_PID, FAKE_TICKS, 1, SEC, NULL);
	struct nm_cache_limits limits = {.budget_ns = 1, .rss_bytes = 4096 << 10};

	test->process->rss_kb = 4096;
	test->memory->read_ns = 1;
	assert_int_equal(read_once(test, cache, entry, &limits), -EAGAIN);
	test->process->rss_kb = 4100;
	unsigned reads = test->memory->reads;
	assert_int_equal(read_once(test, cache, entry, &limits), -EFBIG);
	assert_int_equal(test->memory->reads, reads);
	limits.rss_bytes = 0;
	assert_int_equal(read_once(test, cache, entry, &limits), -EAGAIN);
	known_free(cache);
}

/* A worker that starts slowly or waits for a CPU holds no lock meanwhile. */
TEST(test_transport_time_is_not_charged)
{
	struct test *test = *state;
	struct nm_mappings_cache *cache = known_new();

	(void)ask(cache, FIRST_PID, SEC);
	test->memory->read_ns = 1000;
	test->memory->way_ns = 5 * SEC;
	assert_int_equal(read_next(test, cache, 6 * SEC), FIRST_PID);
	assert_true(cache->turn_ns < 7 * SEC);
	struct nm_cached_mappings *entry = ask(cache, FIRST_PID, 12 * SEC);
	assert_true(nm_cache_holds(entry, 12 * SEC));
	assert_false(nm_cache_rests(entry, 12 * SEC));
	assert_true(entry->ready->cost_ns < SEC);
	known_free(cache);
}

/* ---- domains ---- */

#define GREEDY_PROCESSES 24U
#define GREEDY_DOMAIN 1U
#define OTHER_PID 2U

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Reads until the next second begins. Processes of the greedy domain take 0.4 s of the lock of
 * their memory each, in four calls. */
static void read_for_a_second(struct test *test, struct nm_mappings_cache *cache, uint64_t now)
{
	for (uint64_t at = now; at < now + SEC; at = later(at + SEC / 100, cache->turn_ns)) {
		const struct nm_cached_mappings *entry = nm_cache_unread(cache, at);
		if (!entry || at < cache->turn_ns)
			continue;
		test->memory->read_ns = entry->pid == OTHER_PID ? 1000 : SEC / 10;
		(void)read_next(test, cache, at);
	}
}

/* Returns in how many of 120 seconds the mappings of another process were known. */
static unsigned count_hits(struct test *test, uint64_t domain)
{
	struct nm_mappings_cache *cache = known_new();
	unsigned hits = 0;

	(void)ask(cache, OTHER_PID, SEC);
	(void)read_next(test, cache, SEC);
	cache->bytes_most = GREEDY_PROCESSES * nm_cache_bytes(cache);
	nm_cache_clear(cache);
	for (uint64_t now = SEC; now <= 120 * SEC; now += SEC) {
		for (uint32_t i = 0; i < GREEDY_PROCESSES; i++)
			(void)nm_cache_ask(cache, FIRST_PID + i, TICKS, GREEDY_DOMAIN, now, NULL);
		struct nm_cached_mappings *entry =
			nm_cache_ask(cache, OTHER_PID, TICKS, domain, now, NULL);
		hits += entry && nm_cache_holds(entry, now);
		read_for_a_second(test, cache, now);
	}
	known_free(cache);
	return hits;
}

/* SECURITY: quota */
TEST(one_domain_keeps_no_other_out)
{
	assert_in_range(count_hits(*state, GREEDY_DOMAIN + 1), 110, 120);
}

/* Beyond its quota a domain replaces its own entries, also those that took long to read. */
TEST(a_domain_replaces_its_own)
{
	struct test *test = *state;
	struct nm_mappings_cache *cache = known_new();
	unsigned served = 0;

	test->memory->read_ns = SEC / 4;
	for (uint32_t i = 0; i < NM_CACHE_MOST; i++) {
		struct nm_cached_mappings *entry =
			nm_cache_ask(cache, FIRST_PID + i, TICKS, GREEDY_DOMAIN, SEC, NULL);
		served += entry != NULL;
		if (entry && read_next(test, cache, SEC) == FIRST_PID + i)
			(void)nm_cache_ask(cache, FIRST_PID + i, TICKS, GREEDY_DOMAIN, SEC, NULL);
	}
	assert_int_equal(served, NM_CACHE_MOST);
	assert_int_equal(cache->used, NM_CACHE_MOST / 2);
	assert_non_null(ask(cache, OTHER_PID, SEC));
	known_free(cache);
}

RUN_TESTS()

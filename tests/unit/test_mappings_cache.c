/* SPDX-License-Identifier: MIT */
/* The cache of mappings: eviction, order of reads, and lifetime. */
#define SET_UP open_known
#define TEAR_DOWN close_known
#include "../support/test.h"

#include "../../src/mover/mappings_cache.h"
#include "../support/script.h"
#include "mover_fixture.h"

#define SEC NM_NSEC_PER_SEC
#define FIRST_PID 1000U
#define TICKS 5U

static struct test *test;
static struct nm_mappings_cache *cache;
static uint64_t now; /* s */

static int open_known(void **state)
{
	int r = set_up(state);
	test = *state;
	cache = calloc(1, sizeof(*cache));
	assert_non_null(cache);
	nm_cache_init(cache);
	now = 1;
	return r;
}

static int close_known(void **state)
{
	nm_cache_clear(cache);
	free(cache);
	return tear_down(state);
}

/* Reads the next process as the worker does, and returns its pid, or 0. */
static uint32_t read_next(uint64_t now_ns)
{
	struct nm_cached_mappings *entry = nm_cache_unread(cache, now_ns);

	if (!entry)
		return 0;
	uint32_t pid = entry->pid;
	renumber(test, pid, TICKS);
	int r = nm_cache_begin(cache, entry, &test->fake->platform,
			       &(struct nm_cache_limits){.budget_ns = SEC});
	nm_cache_publish(cache, entry, nm_cache_end(cache, entry, r), now_ns);
	return pid;
}

/* Each process has a domain of its own. */
static struct nm_cached_mappings *ask(uint32_t pid)
{
	return nm_cache_ask(cache, pid, TICKS, pid, now * SEC, NULL);
}

/* ---- words ---- */

static struct nm_cached_mappings *entry_of(const struct step *step)
{
	for (size_t i = 0; i < NM_CACHE_MOST; i++)
		if (cache->entries[i].pid == U(0))
			return &cache->entries[i];
	script_fail(step, "it has no entry");
	return NULL;
}

/* ask 1000 1003: processes that get an entry; deny 1004: one that gets none */
WORD(ask)
{
	for (uint32_t pid = U(0); pid <= (step->nr_numbers > 1 ? U(1) : U(0)); pid++)
		if (!ask(pid))
			script_fail(step, "process %u got no entry", pid);
}

WORD(deny)
{
	if (ask(U(0)))
		script_fail(step, "it got an entry");
}

/* As one that is being read now. */
WORD(deny_beside)
{
	if (nm_cache_ask(cache, U(0), TICKS, U(0), now * SEC,
			 entry_of(&(struct step){.number = {U(1)}, .nr_numbers = 1})))
		script_fail(step, "it got an entry");
}

QUANTITY(first, FIRST_PID)
QUANTITY(last, FIRST_PID + NM_CACHE_MOST - 1)
ACTION(at, now = (uint64_t)N(0))
QUANTITY(next, read_next(now *SEC))
ACTION(read_all, while (read_next(now * SEC)) continue)
QUANTITY(place, entry_of(step) - cache->entries)
QUANTITY(holds, nm_cache_holds(entry_of(step), now *SEC))
QUANTITY(rests, nm_cache_rests(entry_of(step), now *SEC))
QUANTITY(may_begin, nm_cache_may_begin(cache, entry_of(step)))
QUANTITY(cost_ns, entry_of(step)->ready->cost_ns)
QUANTITY(turn_ns, cache->turn_ns)
QUANTITY(used, cache->used)
ACTION(drop, nm_cache_drop(cache, U(0)))
KNOB(read_ns, test->memory->read_ns)
KNOB(way_ns, test->memory->way_ns)
KNOB(maps_error, test->memory->maps_error)
KNOB(rss_kb, test->process->rss_kb)
KNOB(reads, test->memory->reads)

static struct nm_cache_limits limits;

static int read_once(const struct step *step)
{
	struct nm_cached_mappings *entry = entry_of(step);
	renumber(test, U(0), TICKS);
	limits.budget_ns = 1;
	return nm_cache_end(cache, entry,
			    nm_cache_begin(cache, entry, &test->fake->platform, &limits));
}

/* Reads for the shortest budget. */
QUANTITY(read_once, read_once(step))
KNOB(rss_limit, limits.rss_bytes)

static unsigned count_entries(void)
{
	unsigned count = 0;
	for (size_t i = 0; i < NM_CACHE_MOST; i++)
		count += cache->entries[i].pid != 0;
	return count;
}

QUANTITY(entries, count_entries())

/* ---- entries ---- */

/* If N processes ask in each interval, each eventually finds its mappings cached. */
static void expect_all_served(unsigned processes)
{
	bool *had = calloc(processes, sizeof(*had));
	unsigned count = 0;

	assert_non_null(had);
	for (now = 1; now <= 200 && count < processes; now++) {
		for (uint32_t i = 0; i < processes; i++) {
			struct nm_cached_mappings *entry = ask(FIRST_PID + i);
			bool holds = entry && nm_cache_holds(entry, now * SEC) && !had[i];
			had[i] |= holds;
			count += holds;
		}
		for (unsigned i = 0; i < 20; i++)
			(void)read_next(now * SEC);
		assert_true(nm_cache_bytes(cache) <= cache->bytes_most + 4096);
	}
	free(had);
	assert_int_equal(count, processes);
}

TEST(test_more_processes_than_places)
{
	expect_all_served(NM_CACHE_MOST + 100);
}

TEST(test_more_than_memory)
{
	cache->bytes_most = 16384;
	expect_all_served(60);
}

/* Neither queued processes nor unclaimed results are evicted; what is evicted is read again. */
SCRIPT(test_eviction_order,
       "keep last = last; keep extra = last+1; ask 1000 last; deny extra; at 2; read_all",
       "deny extra; ask 1007; holds 1007 = 1; deny_beside extra 1007; keep place = place 1007",
       "ask extra; place extra = place; holds extra = 0; at 3; ask 1008; at 4; ask 1007",
       "deny 1008")

SCRIPT(test_the_result_asked_for_longest_ago_is_evicted,
       "keep last = last; keep extra = last+1; ask 1000 last; read_all; at 2; ask 1005; at 3",
       "ask 1003; keep place = place 1005; ask extra; place extra = place")

/* An unclaimed result expires. */
SCRIPT(test_unclaimed_mappings_expire,
       "keep last = last; ask 1000 last; read_all; at 10; deny 2; at 11; ask 2; at 12; next = 2",
       "next = 0; entries = 1; place 2 >= 0")

/* A process whose result expired is queried again: it is not skipped for others, but it may be
 * dropped. */
SCRIPT(test_wanted_again,
       "keep last = last; keep extra = last+1; ask 1000 last; read_all; at 2; ask 1000 last",
       "holds 1000 = 1; holds last = 1; at 20; ask 1000; holds 1000 = 0; at 21; ask 1001 last",
       "deny extra; keep place = place 1000; drop 1000; ask extra; place extra = place")

/* The process that waits longest is read first, except for one that is half read. */
SCRIPT(test_order,
       "ask 1000; at 2; ask 1001; at 3; ask 1002; at 4; ask 1003; at 5; ask 1002; set read_ns = 1",
       "read_once 1002 = EAGAIN; at 6; next = 1002; at 7; ask 1000; next = 1000; next = 1001",
       "next = 1003; next = 0")

/* A worker reads one process at a time: the one that it has begun goes first. If that worker is
 * gone, it reads from the start, and then another process may be read. */
SCRIPT(test_one_reading_at_a_time,
       "ask 42; ask 1000; set read_ns = 1; may_begin 42 = 1; may_begin 1000 = 1",
       "read_once 42 = EAGAIN; may_begin 42 = 1; may_begin 1000 = 0; at 2; read_once 42 = EAGAIN",
       "set maps_error = ESTALE; read_once 42 = EAGAIN; may_begin 1000 = 1; read_once 42 = EPROTO")

/* A result that took long to read is valid longer, and not read again at once: after four reads of
 * 0.25 s, 100 s must pass. */
SCRIPT(test_long_reading,
       "at 100; ask 1000; set read_ns = 250e6; next = 1000; at 129; holds 1000 = 1; at 130",
       "holds 1000 = 0; at 150; ask 1000; at 199; next = 0; rests 1000 = 1; ask 1000; at 200",
       "next = 1000; holds 1000 = 1")

/* ---- threads ---- */

/* All of its threads have exited, although its number exists. */
TEST(test_all_threads_gone)
{
	uint32_t tid = 7;
	uint64_t ticks = 8;

	test->process->state = 'Z';
	assert_int_equal(nm_cache_open(&test->fake->platform, FAKE_PID, FAKE_TICKS, &tid, &ticks),
			 -ESRCH);
	assert_int_equal(tid, 7);
	assert_int_equal(ticks, 8);
	assert_int_equal(fake_open_fds(test->fake), 0);
}

static void add_exited(uint32_t from, uint32_t to)
{
	for (uint32_t tid = from; tid <= to; tid++)
		fake_clone(test->fake, FAKE_PID, tid)->state = 'Z';
}

/* A tracer keeps exited threads in /proc as long as it likes. */
/* SECURITY: many-threads */
TEST(test_many_exited_threads)
{
	struct nm_platform *platform = &test->fake->platform;
	uint32_t tid;
	uint64_t ticks;

	(void)fake_clone(test->fake, FAKE_PID, 900);
	test->process->state = 'Z';
	add_exited(100, 119);
	int directory = nm_cache_open(platform, FAKE_PID, FAKE_TICKS, &tid, &ticks);
	assert_int_equal(tid, 900);
	assert_int_equal(ticks, fake_get(test->fake, 900)->start_ticks);
	platform->ops->close(platform, directory);
	add_exited(120, 220);
	unsigned before = test->fake->calls[FAKE_OPEN];
	assert_int_equal(nm_cache_open(platform, FAKE_PID, FAKE_TICKS, &tid, &ticks), -ESRCH);
	assert_in_range(test->fake->calls[FAKE_OPEN] - before, 2, 65);
}

/* ---- limits ---- */

/* The caller determines which processes are too large, and may change this meanwhile. */
SCRIPT(test_too_large,
       "ask 42; set rss_limit = 4M; set rss_kb = 4096; set read_ns = 1; read_once 42 = EAGAIN",
       "set rss_kb = 4100; keep n = reads; read_once 42 = EFBIG; reads = n; set rss_limit = 0",
       "read_once 42 = EAGAIN")

/* A worker that starts slowly or waits for a CPU holds no lock meanwhile. */
SCRIPT(test_transport_time_is_not_charged,
       "ask 1000; set read_ns = 1000; set way_ns = 5e9; at 6; next = 1000; turn_ns < 7e9; at 12",
       "ask 1000; holds 1000 = 1; rests 1000 = 0; cost_ns 1000 < 1e9")

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
static void read_for_a_second(uint64_t at_ns)
{
	for (uint64_t at = at_ns; at < at_ns + SEC; at = later(at + SEC / 100, cache->turn_ns)) {
		const struct nm_cached_mappings *entry = nm_cache_unread(cache, at);
		if (!entry || at < cache->turn_ns)
			continue;
		test->memory->read_ns = entry->pid == OTHER_PID ? 1000 : SEC / 10;
		(void)read_next(at);
	}
}

/* Returns in how many of 120 seconds the mappings of another process were known. */
static unsigned count_hits(uint64_t domain)
{
	unsigned hits = 0;

	(void)ask(OTHER_PID);
	(void)read_next(SEC);
	cache->bytes_most = GREEDY_PROCESSES * nm_cache_bytes(cache);
	nm_cache_clear(cache);
	for (uint64_t at = SEC; at <= 120 * SEC; at += SEC) {
		for (uint32_t i = 0; i < GREEDY_PROCESSES; i++)
			(void)nm_cache_ask(cache, FIRST_PID + i, TICKS, GREEDY_DOMAIN, at, NULL);
		struct nm_cached_mappings *entry =
			nm_cache_ask(cache, OTHER_PID, TICKS, domain, at, NULL);
		hits += entry && nm_cache_holds(entry, at);
		read_for_a_second(at);
	}
	return hits;
}

/* SECURITY: quota */
TEST(one_domain_keeps_no_other_out)
{
	assert_in_range(count_hits(GREEDY_DOMAIN + 1), 110, 120);
}

/* Beyond its quota a domain replaces its own entries, also those that took long to read. */
TEST(a_domain_replaces_its_own)
{
	unsigned served = 0;

	test->memory->read_ns = SEC / 4;
	for (uint32_t i = 0; i < NM_CACHE_MOST; i++) {
		struct nm_cached_mappings *entry =
			nm_cache_ask(cache, FIRST_PID + i, TICKS, GREEDY_DOMAIN, SEC, NULL);
		served += entry != NULL;
		if (entry && read_next(SEC) == FIRST_PID + i)
			(void)nm_cache_ask(cache, FIRST_PID + i, TICKS, GREEDY_DOMAIN, SEC, NULL);
	}
	assert_int_equal(served, NM_CACHE_MOST);
	assert_int_equal(cache->used, NM_CACHE_MOST / 2);
	assert_non_null(ask(OTHER_PID));
}

RUN_TESTS()

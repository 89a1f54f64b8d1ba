/* SPDX-License-Identifier: MIT */
/* The mover between calls: queue, drops, reloads, limits, pauses, reading of mappings. */
#define SET_UP open_mover
#define TEAR_DOWN close_mover
#include "../support/test.h"

#include "mover_words.h"

/* ---- the queue ---- */

static unsigned taken;

/* fill 2 domain 1 most 9 rollback: submits batches of two steps until one is refused, or nine */
WORD(fill)
{
	start(mover_test);
	for (unsigned i = 0; i < (step->nr_numbers > 2 ? U(2) : 1000U); i++) {
		nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = fake_batch(U(0));
		batch->domain = step->nr_numbers > 1 ? U(1) : 0;
		batch->rollback = step_has(step, "rollback");
		int r = nm_mover_submit(mover_test->mover, batch);
		if (r == 0) {
			(void)NM_TAKE(batch);
			taken++;
			continue;
		}
		assert_int_equal(r, -EAGAIN);
		return;
	}
}

ACTION(count_taken, taken = 0)

static unsigned collected;

WORD(collect_all)
{
	struct nm_page_batch *batch;
	for (collected = 0; (batch = fake_collect(mover_test->memory, mover_test->mover));
	     collected++)
		if (named[0] == batch)
			in_mover[0] = false;
		else
			nm_page_batch_free(batch);
}

QUANTITY(collected, collected)
QUANTITY(taken, taken)

SCRIPT(test_full_queue_rejects,
       "count_taken; fill 2; taken in 2..999; keep n = taken; hold; waiting = n; release",
       "collect_all; collected = n; waiting = 0; batch A 2; run A")

/* One user has many processes: batches of another are accepted at once. Batches that return pages
 * count like others. */
/* SECURITY: quota */
SCRIPT(test_the_queue_is_shared_among_users,
       "count_taken; fill 2; taken in 2..128; batch A 2; set rollback A = 1; refuse A EAGAIN",
       "set rollback A = 0; set domain A = 99; submit A; keep n = taken; collect_all; collected = "
       "n+1")

/* A domain returns as many batches as the queue has places: those of others are accepted. */
/* SECURITY: quota */
SCRIPT(test_returns_of_one_domain_leave_the_queue_to_others,
       "keep places = batches_most; count_taken; fill 2 domain 1 rollback; hold",
       "taken = places*0.5; fill 2 domain 2 rollback; taken = places*0.75",
       "fill 2 domain 3 most 1 rollback; keep n = places*0.75; taken = n+1; release; collect_all",
       "collected = n+1")

QUANTITY(batches_most, NM_BATCHES_MOST)

/* Finished batches that are not collected count too, so that memory is bounded. */
SCRIPT(test_uncollected_are_bounded,
       "count_taken; fill 0; taken < 1000; work; waiting = 0; batch A 0; refuse A EAGAIN",
       "collect_one; submit A; keep n = taken; collect_all; collected = n+1")

WORD(collect_one)
{
	nm_page_batch_free(fake_done(mover_test->mover));
	taken--;
}

/* While the call of the first one is in progress. */
SCRIPT(test_drop_what_waits,
       "batch A 3; batch B 3; batch C 3; set pid C = 43; submit A; hold; submit C; submit B; drop",
       "done B; error B = ECANCELED; fates B untried 3; done nothing; release; collect A",
       "collect C; error C = ESRCH")

/* Pages moved by the call in progress are reported as moved; the rest stays, and no longer counts
 * as waiting. */
SCRIPT(test_drop_during_a_call,
       "batch A 4000; submit A; hold; drop; release; collect A; error A = ECANCELED; calls = 1",
       "moved A in 1..3999; cut A; pass_ms 60000; keep rate = max_mb_per_s",
       "room_bytes = rate*1048576")

/* The steps that were moved come first, and the others were not tried. */
WORD(cut)
{
	const struct nm_page_batch *batch = batch_of(step);
	for (size_t i = 0; i < batch->count; i++)
		if (batch->steps[i].fate !=
		    (i < batch->moved ? NM_PAGE_FATE_MOVED : NM_PAGE_FATE_UNTRIED))
			script_fail(step, "step %zu is %s", i, fate_names[batch->steps[i].fate]);
}

/* done_of A bulk: of the batches of one policy */
WORD(done_of)
{
	struct nm_page_batch *batch = nm_mover_collect(mover_test->mover, step_has(step, "bulk"));
	if (batch != (step_has(step, "nothing") ? NULL : batch_of(step)))
		script_fail(step, "found %s", batch ? "another one" : "none");
	if (batch)
		in_mover[letter_of(step)] = false;
}

/* Two policies use the mover: each has its own batches, which may end while those of the other
 * continue. */
SCRIPT(test_batches_of_two_policies,
       "batch A 3; batch B 3; batch C 0; batch D 0; set bulk C = 1; set bulk D = 1; submit C",
       "submit A; work; done_of A; done_of nothing; submit B; submit D; drop bulk; done_of C bulk",
       "done_of D bulk; error D = ECANCELED; work; done_of B; error B = 0")

WORD(discard)
{
	bool freed[NM_ARRAY_SIZE(named)];
	for (size_t i = 0; i < NM_ARRAY_SIZE(named); i++)
		freed[i] = in_mover[i] && !named[i]->bulk;
	nm_mover_discard(mover_test->mover, false);
	for (size_t i = 0; i < NM_ARRAY_SIZE(named); i++)
		if (freed[i])
			named[i] = NULL;
}

/* One is finished, one is in a call, and one waits: none is returned. */
SCRIPT(test_batches_are_discarded,
       "batch A 3; batch B 4000; batch C 3; batch D 0; set bulk D = 1; submit A; work; submit B",
       "submit C; submit D; hold; discard; release; collect D; done_of nothing",
       "waiting = 0; error D = 0")

/* The mover ends during a call: the call is cancelled, and tear_down() checks that all files are
 * closed. */
WORD(end)
{
	assert_true(mover_test->memory->begun);
	nm_mover_free(NM_TAKE(mover_test->mover));
}

/* Its worker is not awaited. */
SCRIPT(test_stop_with_work_left,
       "batch A 4000; batch B 4000; batch C 4000; submit A; submit B; submit C; hold; end",
       "cancelled = 1; calls = 0")

SCRIPT(test_stop_during_a_read, "set hold_reads = 1; batch A 1; submit A; work; end; cancelled = 1")

static int ask_ranges(uint32_t pid, uint64_t ticks)
{
	struct nm_range *ranges = NULL;
	size_t count;
	int r = nm_mover_ranges(mover_test->mover, pid, ticks, 0, &ranges, &count);
	if (r < 0)
		return r;
	assert_int_equal(count, 1);
	assert_int_equal(ranges[0].start, FAKE_BASE);
	assert_int_equal(ranges[0].end, FAKE_BASE + FAKE_PAGES * FAKE_SMALL);
	assert_int_equal(ranges[0].page_bytes, FAKE_SMALL);
	free(ranges);
	return 0;
}

static int await_ranges(uint32_t pid, uint64_t ticks)
{
	int r = -EAGAIN;
	start(mover_test);
	for (unsigned i = 0; i < 10 && r == -EAGAIN; i++) {
		r = ask_ranges(pid, ticks);
		fake_work(mover_test->memory, mover_test->mover);
	}
	return r;
}

/* The result: 0 if it is the only mapping of the process. */
QUANTITY(ranges, ask_ranges(FAKE_PID, FAKE_TICKS))
QUANTITY(awaited_ranges, await_ranges(FAKE_PID, FAKE_TICKS))
QUANTITY(ranges_of_nobody, await_ranges(7, 1))

/* The process is released and adopted again while its mappings are being read. */
SCRIPT(test_drop_during_a_read,
       "set hold_reads = 1; batch A 4000; submit A; work; begun = 1; drop; ranges = EAGAIN",
       "release; collect A; error A = ECANCELED; calls = 1")

/* The process exits while its batch waits, and its number is reused. */
SCRIPT(test_number_given_away,
       "batch A 200; set max_mb_per_s = 1; submit A; work; set process_ticks = 778; pass_ms 1000",
       "collect A; error A = ESRCH; moved A in 1..199; cut A")

/* ---- reload ---- */

/* From then on no page may move; the call in progress ends. */
SCRIPT(test_reload_during_a_call,
       "batch A 400; submit A; hold; set nohz_full 2 = 1; configure; barred = 1; done nothing",
       "keep n = calls; release; collect A; error A = ECANCELED; moved A > 0; calls = n+1")

SCRIPT(test_reload_of_nodes,
       "batch A 4000; batch B 4; batch C 1; submit A; submit B; hold; set os_id 1 = 2",
       "set os_id 2 = 1; configure; skip C 5000; submit C; release; collect B; collect A; collect "
       "C",
       "error A = ECANCELED; error B = ECANCELED; fates C moved 1; pages node2 5000-5000 = 1")

SCRIPT(test_barred,
       "batch A 4; set isolated 1 = 1; start; barred = 1; refuse A EPERM; room_bytes = 0",
       "set also = isolated; configure; barred = 0; run A; fates A moved 4")

/* ---- limits ---- */

/* A huge page takes two seconds, of which the first is free. */
SCRIPT(test_bytes_per_second,
       "batch A 4; huge A 0-3; set whole 0 = 1; set whole 1 = 1; set whole 2 = 1; set whole 3 = 1",
       "set max_mb_per_s = 1; start; room_bytes = 1M; submit A; room_bytes = 0; work",
       "pages node1 = 512; calls = 1; pass_ms 1800; pages node1 = 512; pass_ms 200",
       "pages node1 = 1024; pass_ms 1800; pages node1 = 1024; pass_ms 200; pages node1 = 1536",
       "pass_ms 1800; pages node1 = 1536; pass_ms 200; pages node1 = 2048; collect A",
       "fates A moved 4")

/* After a call that took too long the next one starts when the pause is over. */
SCRIPT(test_pause_after_a_slow_call,
       "batch A 40; set call_ns = 11e6; set max_mb_per_s = 100000; submit A; work; calls = 1",
       "backoffs = 1; pass_ms 109; work; calls = 1; pass_ms 1; work; calls = 2; pass_ms 109; work",
       "calls = 2; set call_ns = 0; pass_ms 1; collect A; fates A moved 40; backoffs = 2",
       "longest_ns >= 11e6")

/* Calls of 4,000 pages at 5 µs each would take 20 ms; the limit is 10. */
SCRIPT(test_calls_stay_short,
       "batch A 8000; set page_ns = 5000; set max_mb_per_s = 100000; run A; fates A moved 8000",
       "largest in 100..1000")

/* Twenty-four processes of one user hold the lock of their memory: that of another user waits for
 * one deadline, whenever it comes. */
/* SECURITY: held-lock */
TEST(test_held_locks_delay_others_by_one_deadline)
{
	struct test *test = *state;
	const unsigned hostile = 24;

	test->memory->held_from = 100;
	test->memory->held_to = 100 + hostile;
	for (uint32_t pid = 100; pid < 100 + hostile; pid++)
		fake_process(test->fake, pid, 1)->start_ticks = FAKE_TICKS;
	for (unsigned before = 0; before <= hostile; before += hostile / 2) {
		struct nm_page_batch *honest = fake_batch(8), *done = NULL;
		uint64_t begun_ns = test->fake->now_ns;
		test->memory->held_jobs = 0;
		memset(test->memory->node, 0, sizeof(test->memory->node));
		nm_mover_free(NM_TAKE(test->mover));
		start(test);
		for (unsigned i = 0; i <= hostile; i++) {
			struct nm_page_batch *batch = i == before ? honest : fake_batch(8);
			batch->domain = i == before ? 2 : 1;
			batch->bulk = i != before && i % 2;
			batch->pid = i == before ? FAKE_PID : 100 + i - (i > before);
			assert_int_equal(nm_mover_submit(test->mover, batch), 0);
		}
		while (done != honest) {
			nm_page_batch_free(done);
			nm_mover_work(test->mover);
			done = fake_done(test->mover);
		}
		assert_int_equal(honest->error, 0);
		assert_all(honest, NM_PAGE_FATE_MOVED);
		assert_true(test->fake->now_ns - begun_ns <= NM_WORKER_DEADLINE_NS);
		assert_true(test->memory->held_jobs <= 1);
		nm_page_batch_free(honest);
	}
}

/* ---- mappings ---- */

/* Many mappings of one page each; the last contains the pages. */
WORD(map_many)
{
	struct memory *memory = mover_test->memory;
	size_t maps = 0, numa_maps = 0;
	for (uint64_t i = 0; i < 400; i++) {
		uint64_t begin = i == 399 ? FAKE_BASE : 0x10000 + i * 0x10000;
		uint64_t end = i == 399 ? FAKE_BASE + FAKE_PAGES * FAKE_SMALL : begin + 0x1000;
		maps += (size_t)snprintf(memory->maps + maps, FAKE_TEXT - maps,
					 "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n", begin,
					 end);
		numa_maps +=
			(size_t)snprintf(memory->numa_maps + numa_maps, FAKE_TEXT - numa_maps,
					 "%" PRIx64 " default anon=1 kernelpagesize_kB=4\n", begin);
	}
}

/* bind_all, or hide_all: as the owner binds its memory, and as it is not mapped yet */
WORD(bind_all)
{
	snprintf(mover_test->memory->numa_maps, FAKE_TEXT, "%" PRIx64 " bind:0 anon=9 N0=9\n",
		 FAKE_BASE);
}

ACTION(hide_all, mover_test->memory->numa_maps[0] = '\0')

WORD(run_until_moved)
{
	for (unsigned tries = 0; tries < 10000; tries++) {
		fake_pass_ms(mover_test->memory, mover_test->mover, 50);
		named[0] = (nm_page_batch_free(named[0]), fake_batch(3));
		word_run(step);
		if (named[0]->error != -ESTALE)
			return;
	}
}

/* They take several budgets of five reads: the batch is returned at once, and a later one finds
 * them cached. */
SCRIPT(test_mappings_take_several_budgets,
       "map_many; set read_ns = 1e6; batch A 3; run A; error A = ESTALE; fates A untried 3",
       "reads in 3..6; run_until_moved A; error A = 0; fates A moved 3; map_reads = 1")

SCRIPT(test_ranges, "awaited_ranges = 0")
SCRIPT(test_ranges_without_owner, "ranges_of_nobody = ESRCH")

/* If a process has more memory than the limit, no pages move, and the reason is reported. */
SCRIPT(test_too_large,
       "set rss_kib = 268435460; batch A 1; run A; error A = EFBIG; fates A untried 1",
       "ranges = EFBIG; reads = 0; set rss_kib = 256M; configure; pass_ms 6000; batch A 1; run A",
       "fates A moved 1")

/* Mappings are dropped with the release of the process, and read again after a while. */
SCRIPT(test_mappings_are_read_again,
       "awaited_ranges = 0; map_reads = 1; awaited_ranges = 0; map_reads = 1; drop",
       "awaited_ranges = 0; map_reads = 2; pass_ms 3600000; awaited_ranges = 0; map_reads = 3")

/* The owner binds the memory after the first read: after the next read it stays. */
SCRIPT(test_policy_set_later,
       "batch A 1; run A; fates A moved 1; bind_all; pass_ms 20000; batch A 2; run A",
       "fates A refused 2")

/* Memory mapped after the read: a page of it was requested, so the next read is soon. */
SCRIPT(test_memory_mapped_later,
       "map_many; hide_all; batch A 1; run A; fates A refused 1; map_many; pass_ms 2000; batch A 1",
       "run A; fates A moved 1")

/* The same with more processes than are cached. */
TEST(test_more_processes_than_remembered)
{
	struct test *test = *state;

	start(test);
	for (uint32_t pid = 100; pid < 800; pid++) {
		struct nm_page_batch *batch = fake_batch(1);
		renumber(test, pid, FAKE_TICKS);
		test->memory->node[0] = 0;
		batch->pid = pid;
		batch = run(test, batch);
		assert_int_equal(batch->error, 0);
		assert_all(batch, NM_PAGE_FATE_MOVED);
		nm_page_batch_free(batch);
	}
}

RUN_TESTS()

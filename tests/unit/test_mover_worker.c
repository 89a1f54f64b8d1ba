/* SPDX-License-Identifier: MIT */
/* The mover between calls: queue, drops, reloads, limits, pauses, reading of mappings. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "mover_fixture.h"

/* ---- the queue ---- */

TEST(test_full_queue_rejects)
{
	struct test *test = *state;
	struct nm_page_batch *extra = fake_batch(2);
	size_t taken = 0;

	start(test);
	for (;; taken++) {
		struct nm_page_batch *batch = fake_batch(2);
		int r = nm_mover_submit(test->mover, batch);
		if (r < 0) {
			assert_int_equal(r, -EAGAIN);
			nm_page_batch_free(batch);
			break;
		}
		assert_true(taken < 1000);
	}
	assert_true(taken >= 2);
	fake_hold(test->fake, test->mover);
	assert_int_equal(nm_mover_counts(test->mover).waiting, taken);
	fake_release(test->fake);
	for (size_t i = 0; i < taken; i++)
		nm_page_batch_free(fake_collect(test->fake, test->mover));
	assert_int_equal(nm_mover_counts(test->mover).waiting, 0);
	nm_page_batch_free(run(test, extra));
}

/* One user has many processes: batches of another are accepted at once. Batches that return pages
 * count like others. */
/* SECURITY: quota */
TEST(test_the_queue_is_shared_among_users)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(2);
	size_t taken = 0;

	start(test);
	while (nm_mover_submit(test->mover, batch) == 0) {
		taken++;
		batch = fake_batch(2);
	}
	assert_in_range(taken, 2, NM_BATCHES_MOST / 2);
	batch->rollback = true;
	assert_int_equal(nm_mover_submit(test->mover, batch), -EAGAIN);
	batch->rollback = false;
	batch->domain = nm_domain_of(1, "/docker/1f");
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	for (size_t i = 0; i < taken + 1; i++)
		nm_page_batch_free(fake_collect(test->fake, test->mover));
}

static size_t submit_returns(struct test *test, uint64_t domain, size_t count)
{
	size_t taken = 0;

	for (size_t i = 0; i < count; i++) {
		nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = fake_batch(2);
		batch->rollback = true;
		batch->domain = domain;
		if (nm_mover_submit(test->mover, batch) < 0)
			continue;
		(void)NM_TAKE(batch);
		taken++;
	}
	return taken;
}

/* A domain returns as many batches as the queue has places: those of others are accepted. */
/* SECURITY: quota */
TEST(test_returns_of_one_domain_leave_the_queue_to_others)
{
	struct test *test = *state;
	size_t taken = 0;

	start(test);
	taken += submit_returns(test, 1, NM_BATCHES_MOST);
	fake_hold(test->fake, test->mover);
	assert_int_equal(taken, NM_BATCHES_MOST / 2);
	taken += submit_returns(test, 2, NM_BATCHES_MOST);
	assert_int_equal(taken, NM_BATCHES_MOST / 2 + NM_BATCHES_MOST / 4);
	taken += submit_returns(test, 3, 1);
	assert_int_equal(taken, NM_BATCHES_MOST / 2 + NM_BATCHES_MOST / 4 + 1);
	fake_release(test->fake);
	for (size_t i = 0; i < taken; i++)
		nm_page_batch_free(fake_collect(test->fake, test->mover));
}

/* Finished batches that are not collected count too, so that memory is bounded. */
TEST(test_uncollected_are_bounded)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(0);

	start(test);
	for (unsigned taken = 0; nm_mover_submit(test->mover, batch) == 0; taken++) {
		assert_true(taken < 1000);
		batch = fake_batch(0);
	}
	fake_work(test->fake, test->mover);
	assert_int_equal(nm_mover_counts(test->mover).waiting, 0);
	assert_int_equal(nm_mover_submit(test->mover, batch), -EAGAIN);
	nm_page_batch_free(fake_done(test->mover));
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
}

TEST(test_drop_what_waits)
{
	struct test *test = *state;
	struct nm_page_batch *first = fake_batch(3), *second = fake_batch(3),
			     *other = fake_batch(3);

	other->pid = FAKE_PID + 1;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, first), 0);
	fake_hold(test->fake, test->mover);
	assert_int_equal(nm_mover_submit(test->mover, other), 0);
	assert_int_equal(nm_mover_submit(test->mover, second), 0);
	nm_mover_drop(test->mover, FAKE_PID, false);
	struct nm_page_batch *done = fake_done(test->mover); /* while the call is in progress */
	assert_ptr_equal(done, second);
	assert_int_equal(second->error, -ECANCELED);
	assert_all(second, NM_PAGE_FATE_UNTRIED);
	assert_null(fake_done(test->mover));
	fake_release(test->fake);
	assert_ptr_equal(fake_collect(test->fake, test->mover), first);
	assert_ptr_equal(fake_collect(test->fake, test->mover), other);
	assert_int_equal(other->error, -ESRCH);
	nm_page_batch_free(first);
	nm_page_batch_free(second);
	nm_page_batch_free(other);
}

/* Pages moved by the call in progress are reported as moved; the rest stays. */
TEST(test_drop_during_a_call)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(4000);
	size_t i = 0;

	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	fake_hold(test->fake, test->mover);
	nm_mover_drop(test->mover, FAKE_PID, false);
	fake_release(test->fake);
	assert_ptr_equal(fake_collect(test->fake, test->mover), batch);
	assert_int_equal(batch->error, -ECANCELED);
	assert_int_equal(test->fake->calls, 1);
	for (; i < batch->moved; i++)
		assert_int_equal(batch->steps[i].fate, NM_PAGE_FATE_MOVED);
	assert_true(i > 0 && i < 4000);
	for (; i < 4000; i++)
		assert_int_equal(batch->steps[i].fate, NM_PAGE_FATE_UNTRIED);
	nm_page_batch_free(batch);
	/* Its pages no longer count as waiting. */
	fake_pass_ms(test->fake, test->mover, 60000);
	assert_int_equal(nm_mover_room_bytes(test->mover, fake_now_ns(&test->fake->platform)),
			 test->config->pages.max_mb_per_s << 20);
}

/* Two policies use the mover: each has its own batches, which may end while those of the other
 * continue. */
TEST(test_batches_of_two_policies)
{
	struct test *test = *state;
	struct nm_page_batch *first = fake_batch(3), *second = fake_batch(3);
	struct nm_page_batch *bulk = fake_batch(0), *later = fake_batch(0);

	bulk->bulk = later->bulk = true;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, bulk), 0);
	assert_int_equal(nm_mover_submit(test->mover, first), 0);
	fake_work(test->fake, test->mover);
	assert_ptr_equal(nm_mover_collect(test->mover, false), first);
	assert_null(nm_mover_collect(test->mover, false));
	assert_int_equal(nm_mover_submit(test->mover, second), 0);
	assert_int_equal(nm_mover_submit(test->mover, later), 0);
	nm_mover_drop(test->mover, FAKE_PID, true);
	assert_ptr_equal(nm_mover_collect(test->mover, true), bulk);
	assert_ptr_equal(nm_mover_collect(test->mover, true), later);
	assert_int_equal(later->error, -ECANCELED);
	fake_work(test->fake, test->mover);
	assert_ptr_equal(nm_mover_collect(test->mover, false), second);
	assert_int_equal(second->error, 0);
	nm_page_batch_free(first);
	nm_page_batch_free(second);
	nm_page_batch_free(bulk);
	nm_page_batch_free(later);
}

/* One is finished, one is in a call, and one waits: none is returned. */
TEST(test_batches_are_discarded)
{
	struct test *test = *state;
	struct nm_page_batch *bulk = fake_batch(0);

	bulk->bulk = true;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, fake_batch(3)), 0);
	fake_work(test->fake, test->mover);
	assert_int_equal(nm_mover_submit(test->mover, fake_batch(4000)), 0);
	assert_int_equal(nm_mover_submit(test->mover, fake_batch(3)), 0);
	assert_int_equal(nm_mover_submit(test->mover, bulk), 0);
	fake_hold(test->fake, test->mover);
	nm_mover_discard(test->mover, false);
	fake_release(test->fake);
	assert_ptr_equal(fake_collect(test->fake, test->mover), bulk);
	assert_null(nm_mover_collect(test->mover, false));
	assert_int_equal(nm_mover_counts(test->mover).waiting, 0);
	assert_int_equal(bulk->error, 0);
	nm_page_batch_free(bulk);
}

/* The mover ends during a call: the call is cancelled, and tear_down() checks that all files are
 * closed. */
static void end_in_a_call(struct test *test)
{
	fake_work(test->fake, test->mover);
	assert_true(test->fake->begun);
	nm_mover_free(NM_TAKE(test->mover));
	assert_int_equal(test->fake->cancelled, 1);
}

TEST(test_stop_with_work_left)
{
	struct test *test = *state;

	start(test);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(nm_mover_submit(test->mover, fake_batch(4000)), 0);
	fake_hold(test->fake, test->mover);
	end_in_a_call(test);
	assert_int_equal(test->fake->calls, 0); /* its worker was not awaited */
}

TEST(test_stop_during_a_read)
{
	struct test *test = *state;

	test->fake->hold_reads = true;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, fake_batch(1)), 0);
	end_in_a_call(test);
}

/* The process is released and adopted again while its mappings are being read. */
TEST(test_drop_during_a_read)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(4000);
	struct nm_range *ranges;
	size_t count;

	test->fake->hold_reads = true;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	fake_work(test->fake, test->mover);
	assert_true(test->fake->begun);
	nm_mover_drop(test->mover, FAKE_PID, false);
	assert_int_equal(nm_mover_ranges(test->mover, FAKE_PID, FAKE_TICKS, 0, &ranges, &count),
			 -EAGAIN);
	fake_release(test->fake);
	assert_ptr_equal(fake_collect(test->fake, test->mover), batch);
	assert_int_equal(batch->error, -ECANCELED);
	assert_int_equal(test->fake->calls, 1);
	nm_page_batch_free(batch);
}

/* The process exits while its batch waits, and its number is reused. */
TEST(test_number_given_away)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(200);

	test->config->pages.max_mb_per_s = 1;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	fake_work(test->fake, test->mover);
	test->fake->start_ticks = FAKE_TICKS + 1;
	fake_pass_ms(test->fake, test->mover, 1000);
	assert_ptr_equal(fake_collect(test->fake, test->mover), batch);
	assert_int_equal(batch->error, -ESRCH);
	assert_in_range(batch->moved, 1, 199);
	assert_int_equal(batch->steps[batch->moved].fate, NM_PAGE_FATE_UNTRIED);
	nm_page_batch_free(batch);
}

/* ---- reload ---- */

TEST(test_reload_during_a_call)
{
	struct test *test = *state;
	struct nm_page_batch *batch = begin_held(test);

	test->topology->cpus[2].nohz_full = true; /* from now on no page may move */
	nm_mover_configure(test->mover, test->topology, test->config);
	assert_true(nm_mover_is_barred(test->mover));
	assert_null(fake_done(test->mover));
	unsigned calls = test->fake->calls;
	fake_release(test->fake);
	assert_ptr_equal(fake_collect(test->fake, test->mover), batch);
	assert_int_equal(batch->error, -ECANCELED);
	assert_true(batch->moved > 0);
	assert_int_equal(test->fake->calls, calls + 1); /* the call in progress */
	nm_page_batch_free(batch);
}

TEST(test_reload_of_nodes)
{
	struct test *test = *state;
	struct nm_page_batch *first = fake_batch(4000), *second = fake_batch(4);
	struct nm_page_batch *third = fake_batch(1);

	start(test);
	assert_int_equal(nm_mover_submit(test->mover, first), 0);
	assert_int_equal(nm_mover_submit(test->mover, second), 0);
	fake_hold(test->fake, test->mover);
	test->topology->nodes[1].os_id = 2;
	test->topology->nodes[2].os_id = 1;
	nm_mover_configure(test->mover, test->topology, test->config);
	third->steps[0].address += 5000 * (uint64_t)FAKE_SMALL;
	assert_int_equal(nm_mover_submit(test->mover, third), 0);
	fake_release(test->fake);
	for (unsigned i = 0; i < 2; i++) {
		struct nm_page_batch *done = fake_collect(test->fake, test->mover);
		assert_true(done == first || done == second);
		assert_int_equal(done->error, -ECANCELED);
		nm_page_batch_free(done);
	}
	assert_ptr_equal(fake_collect(test->fake, test->mover), third);
	assert_int_equal(third->steps[0].fate, NM_PAGE_FATE_MOVED);
	assert_int_equal(test->fake->node[5000], 2);
	nm_page_batch_free(third);
}

TEST(test_barred)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(4);

	test->topology->cpus[1].isolated = true;
	start(test);
	assert_true(nm_mover_is_barred(test->mover));
	assert_int_equal(nm_mover_submit(test->mover, batch), -EPERM);
	assert_int_equal(nm_mover_room_bytes(test->mover, fake_now_ns(&test->fake->platform)), 0);
	test->config->pages.also = NM_ALSO_ISOLATED;
	nm_mover_configure(test->mover, test->topology, test->config);
	assert_false(nm_mover_is_barred(test->mover));
	batch = run(test, batch);
	assert_all(batch, NM_PAGE_FATE_MOVED);
	nm_page_batch_free(batch);
}

/* ---- limits ---- */

static uint64_t now_of(struct test *test)
{
	return fake_now_ns(&test->fake->platform);
}

TEST(test_bytes_per_second)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(4);

	for (size_t i = 0; i < 4; i++) {
		batch->steps[i].address = FAKE_BASE + i * FAKE_HUGE;
		batch->steps[i].bytes = FAKE_HUGE;
		test->fake->whole[i] = true;
	}
	test->config->pages.max_mb_per_s = 1;
	start(test);
	assert_int_equal(nm_mover_room_bytes(test->mover, now_of(test)), 1 << 20);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	assert_int_equal(nm_mover_room_bytes(test->mover, now_of(test)), 0);
	assert_moved(test, FAKE_PER_HUGE); /* one second, then two */
	assert_int_equal(test->fake->calls, 1);
	for (unsigned i = 2; i <= 4; i++) {
		fake_pass_ms(test->fake, test->mover, 1800);
		assert_moved(test, (i - 1) * FAKE_PER_HUGE);
		fake_pass_ms(test->fake, test->mover, 200);
		assert_moved(test, i * FAKE_PER_HUGE);
	}
	assert_ptr_equal(fake_collect(test->fake, test->mover), batch);
	assert_all(batch, NM_PAGE_FATE_MOVED);
	nm_page_batch_free(batch);
}

/* After a call that took too long the next one starts when the pause is over. */
TEST(test_pause_after_a_slow_call)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(40);

	test->fake->call_ns = 11 * NM_NSEC_PER_MSEC;
	test->config->pages.max_mb_per_s = 100000;
	start(test);
	assert_int_equal(nm_mover_submit(test->mover, batch), 0);
	fake_work(test->fake, test->mover);
	assert_int_equal(test->fake->calls, 1);
	assert_int_equal(nm_mover_counts(test->mover).backoffs, 1);
	fake_pass_ms(test->fake, test->mover, 109);
	fake_work(test->fake, test->mover);
	assert_int_equal(test->fake->calls, 1);
	fake_pass_ms(test->fake, test->mover, 1);
	fake_work(test->fake, test->mover);
	assert_int_equal(test->fake->calls, 2);
	fake_pass_ms(test->fake, test->mover, 109);
	fake_work(test->fake, test->mover);
	assert_int_equal(test->fake->calls, 2);
	test->fake->call_ns = 0;
	fake_pass_ms(test->fake, test->mover, 1);
	assert_ptr_equal(fake_collect(test->fake, test->mover), batch);
	assert_all(batch, NM_PAGE_FATE_MOVED);
	assert_int_equal(nm_mover_counts(test->mover).backoffs, 2);
	assert_true(nm_mover_counts(test->mover).call_longest_ns >= 11 * NM_NSEC_PER_MSEC);
	nm_page_batch_free(batch);
}

/* Calls of 4,000 pages at 5 µs each would take 20 ms; the limit is 10. */
TEST(test_calls_stay_short)
{
	struct test *test = *state;
	struct nm_page_batch *batch = fake_batch(8000);

	test->fake->page_ns = 5000;
	test->config->pages.max_mb_per_s = 100000;
	batch = run(test, batch);
	assert_all(batch, NM_PAGE_FATE_MOVED);
	assert_in_range(test->fake->largest, 100, 1000);
	nm_page_batch_free(batch);
}

/* Twenty-four processes of one user hold the lock of their memory: that of another user waits for
 * one deadline, whenever it comes. */
/* SECURITY: held-lock */
TEST(test_held_locks_delay_others_by_one_deadline)
{
	struct test *test = *state;
	const unsigned hostile = 24;

	for (unsigned before = 0; before <= hostile; before += hostile / 2) {
		struct nm_page_batch *honest = fake_batch(8);
		uint64_t begun_ns = now_of(test);
		test->fake->held_from = 100;
		test->fake->held_to = 100 + hostile;
		test->fake->held_jobs = 0;
		memset(test->fake->node, 0, sizeof(test->fake->node));
		nm_mover_free(NM_TAKE(test->mover));
		start(test);
		for (unsigned i = 0; i <= hostile; i++) {
			struct nm_page_batch *batch = i == before ? honest : fake_batch(8);
			batch->domain = i == before ? 2 : 1;
			batch->bulk = i != before && i % 2;
			batch->pid = i == before ? FAKE_PID : 100 + i - (i > before);
			assert_int_equal(nm_mover_submit(test->mover, batch), 0);
		}
		struct nm_page_batch *done = NULL;
		while (done != honest) {
			nm_page_batch_free(done);
			nm_mover_work(test->mover);
			done = fake_done(test->mover);
		}
		assert_int_equal(honest->error, 0);
		assert_all(honest, NM_PAGE_FATE_MOVED);
		assert_true(now_of(test) - begun_ns <= NM_WORKER_DEADLINE_NS);
		assert_true(test->fake->held_jobs <= 1);
		nm_page_batch_free(honest);
	}
}

/* ---- mappings ---- */

/* Many mappings of one page each; the last contains the pages. */
static void map_many(struct fake *fake)
{
	size_t maps = 0, numa_maps = 0;

	for (uint64_t i = 0; i < 400; i++) {
		bool last = i == 399;
		uint64_t begin = last ? FAKE_BASE : 0x10000 + i * 0x10000;
		uint64_t end = last ? FAKE_BASE + FAKE_PAGES * FAKE_SMALL : begin + 0x1000;
		maps += (size_t)snprintf(fake->maps + maps, FAKE_TEXT - maps,
					 "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n", begin,
					 end);
		numa_maps +=
			(size_t)snprintf(fake->numa_maps + numa_maps, FAKE_TEXT - numa_maps,
					 "%" PRIx64 " default anon=1 kernelpagesize_kB=4\n", begin);
	}
}

/* They take several budgets: the batch is returned at once, and a later one finds them cached. */
TEST(test_mappings_take_several_budgets)
{
	struct test *test = *state;
	struct nm_page_batch *batch = NULL;
	unsigned tries = 0;

	map_many(test->fake);
	test->fake->read_ns = 1 * NM_NSEC_PER_MSEC; /* five reads a budget */
	do {
		nm_page_batch_free(batch);
		batch = run(test, fake_batch(3));
		if (tries++ == 0) {
			assert_int_equal(batch->error, -ESTALE);
			assert_all(batch, NM_PAGE_FATE_UNTRIED);
			assert_in_range(test->fake->reads, 3, 6);
		}
		fake_pass_ms(test->fake, test->mover, 50);
	} while (batch->error == -ESTALE && tries < 10000);
	assert_int_equal(batch->error, 0);
	assert_all(batch, NM_PAGE_FATE_MOVED);
	assert_int_equal(nm_mover_counts(test->mover).map_reads, 1);
	nm_page_batch_free(batch);
}

static struct nm_range *await_ranges(struct test *test, size_t *ret_count)
{
	struct nm_range *ranges = NULL;
	int r = -EAGAIN;

	for (unsigned i = 0; i < 10 && r == -EAGAIN; i++) {
		fake_work(test->fake, test->mover);
		r = nm_mover_ranges(test->mover, FAKE_PID, FAKE_TICKS, 0, &ranges, ret_count);
	}
	assert_int_equal(r, 0);
	return ranges;
}

TEST(test_ranges)
{
	struct test *test = *state;
	size_t count;

	start(test);
	nm_autofree struct nm_range *ranges = await_ranges(test, &count);
	assert_int_equal(count, 1);
	assert_int_equal(ranges[0].start, FAKE_BASE);
	assert_int_equal(ranges[0].end, FAKE_BASE + FAKE_PAGES * FAKE_SMALL);
	assert_int_equal(ranges[0].page_bytes, FAKE_SMALL);
}

TEST(test_ranges_without_owner)
{
	struct test *test = *state;
	struct nm_range *ranges;
	size_t count;
	int r = -EAGAIN;

	start(test);
	for (unsigned i = 0; i < 10 && r == -EAGAIN; i++) {
		r = nm_mover_ranges(test->mover, 7, 1, 0, &ranges, &count);
		fake_work(test->fake, test->mover);
	}
	assert_int_equal(r, -ESRCH);
}

/* If a process has more memory than the limit, no pages move, and the reason is reported. */
TEST(test_too_large)
{
	struct test *test = *state;
	struct nm_range *ranges;
	size_t count;

	test->fake->rss_kib = (256 << 20) + 4;
	struct nm_page_batch *batch = run(test, fake_batch(1));
	assert_int_equal(batch->error, -EFBIG);
	assert_all(batch, NM_PAGE_FATE_UNTRIED);
	nm_page_batch_free(batch);
	assert_int_equal(nm_mover_ranges(test->mover, FAKE_PID, FAKE_TICKS, 0, &ranges, &count),
			 -EFBIG);
	assert_int_equal(test->fake->reads, 0);
	test->fake->rss_kib = 256 << 20;
	nm_mover_configure(test->mover, test->topology, test->config);
	fake_pass_ms(test->fake, test->mover, 6000);
	batch = run(test, fake_batch(1));
	assert_all(batch, NM_PAGE_FATE_MOVED);
	nm_page_batch_free(batch);
}

/* Mappings are dropped with the release of the process, and read again after a while. */
TEST(test_mappings_are_read_again)
{
	struct test *test = *state;
	size_t count;

	start(test);
	free(await_ranges(test, &count));
	assert_int_equal(nm_mover_counts(test->mover).map_reads, 1);
	free(await_ranges(test, &count));
	assert_int_equal(nm_mover_counts(test->mover).map_reads, 1);
	nm_mover_drop(test->mover, FAKE_PID, false);
	free(await_ranges(test, &count));
	assert_int_equal(nm_mover_counts(test->mover).map_reads, 2);
	fake_pass_ms(test->fake, test->mover, 3600000);
	free(await_ranges(test, &count));
	assert_int_equal(nm_mover_counts(test->mover).map_reads, 3);
}

/* The owner binds the memory after the first read: after the next read it stays. */
TEST(test_policy_set_later)
{
	struct test *test = *state;
	struct nm_page_batch *batch = run(test, fake_batch(1));

	assert_all(batch, NM_PAGE_FATE_MOVED);
	nm_page_batch_free(batch);
	snprintf(test->fake->numa_maps, FAKE_TEXT, "%" PRIx64 " bind:0 anon=9 N0=9\n", FAKE_BASE);
	fake_pass_ms(test->fake, test->mover, 20000);
	batch = fake_batch(2);
	batch = run(test, batch);
	assert_all(batch, NM_PAGE_FATE_REFUSED);
	nm_page_batch_free(batch);
}

/* Memory mapped after the read: a page of it was requested, so the next read is soon. */
TEST(test_memory_mapped_later)
{
	struct test *test = *state;
	struct nm_page_batch *batch;

	map_many(test->fake);
	test->fake->numa_maps[0] = '\0';
	batch = run(test, fake_batch(1));
	assert_all(batch, NM_PAGE_FATE_REFUSED);
	nm_page_batch_free(batch);
	map_many(test->fake);
	fake_pass_ms(test->fake, test->mover, 2000);
	batch = run(test, fake_batch(1));
	assert_all(batch, NM_PAGE_FATE_MOVED);
	nm_page_batch_free(batch);
}

/* The same with more processes than are cached. */
TEST(test_more_processes_than_remembered)
{
	struct test *test = *state;

	start(test);
	for (uint32_t pid = 100; pid < 800; pid++) {
		struct nm_page_batch *batch = fake_batch(1);
		test->fake->pid = pid;
		test->fake->node[0] = 0;
		batch->pid = pid;
		batch = run(test, batch);
		assert_int_equal(batch->error, 0);
		assert_all(batch, NM_PAGE_FATE_MOVED);
		nm_page_batch_free(batch);
	}
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* The inputs that policy "balance" collects in ticks of the daemon: locations of pages, and threads
 * that wait for memory. */
#define SET_UP world_open
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "balance_daemon_fixture.h"

/* ---- pages ---- */

static const char numa_maps[] = "7f0000000000 default anon=4000 dirty=4000 N1=1000 N3=3000 "
				"kernelpagesize_kB=4\n";

TEST(pages_are_counted_by_numa_maps)
{
	fake_asked.numa_maps = numa_maps;
	overload(6, 0);
	for (size_t i = 0; i < world.nr_workers; i++)
		fake_get(world.fake, world.workers[i].tid)->rss_kb = 64 << 10;
	begin(NM_SELECTION_MOST_BENEFIT);
	config()->rules.balance_persist = 12;
	world.cached = true;
	live(14);
	const struct nm_entry *move = first_move();
	assert_true(number_of(move, "RESIDENCY_AGE_S") > 0);
	double all = number_of(move, "RESIDENT_PAGES");
	double there = has_field(move, "NODE_TO", "3")	 ? 0.75
		       : has_field(move, "NODE_TO", "1") ? 0.25
							 : 0;
	assert_true(fabs(number_of(move, "GAIN_PAGES") - there * all) < 1e-3 * all);
	assert_int_equal(nm_balancer_of(&world.daemon)->tally.pages_counted, 6);
	assert_int_equal(fake_open_fds(world.fake), 0);
	fake_asked.numa_maps = NULL;
}

static const struct nm_residence *residence_of(uint32_t pid)
{
	const struct nm_residence *residence =
		nm_balancer_residence(nm_balancer_of(&world.daemon), pid);
	assert_non_null(residence);
	return residence;
}

/* Three quarters of the pages are on node 3, the others on node 1, and no accesses are sampled. */
static void overload_large(void)
{
	static int nodes[512];
	for (size_t i = 0; i < NM_ARRAY_SIZE(nodes); i++)
		nodes[i] = i % 4 == 0 ? 1 : 3;
	fake_asked.pages = nodes;
	fake_asked.nr_pages = NM_ARRAY_SIZE(nodes);
	fake_asked.pages_asked = 0;
	overload(6, 0);
	for (size_t i = 0; i < world.nr_workers; i++)
		fake_get(world.fake, world.workers[i].tid)->rss_kb = 65 << 10;
	begin(NM_SELECTION_MOST_BENEFIT);
	config()->rules.balance_persist = 1000;
}

TEST(a_sample_of_a_large_process_is_queried)
{
	overload_large();
	world.cached = true;
	live(25);
	const struct nm_residence *residence = residence_of(1000);
	assert_int_equal(fake_asked.pages_asked, 6); /* one each in 30 s */
	assert_true(residence->age_ns > 0);
	assert_true(fabs(residence->pages[3] - 0.75 * residence->resident) < 1e-6);
	assert_true(fabs(residence->pages[1] - 0.25 * residence->resident) < 1e-6);
	assert_true(residence->pages[0] == 0 && residence->pages[2] == 0);
	live(25);
	assert_in_range(fake_asked.pages_asked, 7, 12);
}

/* Sampled accesses are more current than a count, and need no query. */
TEST(sampled_accesses_replace_the_count)
{
	overload_large();
	live(10); /* until there are enough */
	assert_true(residence_of(1000)->samples >= 64);
	fake_asked.pages_asked = 0;
	live(60);
	assert_int_equal(fake_asked.pages_asked, 0);
	assert_true(residence_of(1000)->age_ns == 0);
	assert_true(residence_of(1000)->pages[0] == residence_of(1000)->resident);
}

/* A sample that is too small, and no answer, leave the location unknown. */
TEST(nothing_is_known_without_an_answer)
{
	overload_large();
	world.cached = true;
	fake_asked.nr_pages = 63;
	live(10);
	assert_null(nm_balancer_residence(nm_balancer_of(&world.daemon), 1000));
	fake_asked.pages = NULL;
	live(10);
	assert_null(nm_balancer_residence(nm_balancer_of(&world.daemon), 1000));
	assert_true(fake_asked.pages_asked > 0);
}

/* ---- DTAS ---- */

TEST(missing_counters_disable_dtas_and_are_logged_once)
{
	overload(6, 3);
	begin(NM_SELECTION_FIRST_FIT);
	config()->threads.dtas = true;
	world.daemon.pipeline.source->status.has_dram = false;
	live(20);
	assert_int_equal(count_logged("DTAS is off"), 1);
	assert_false(nm_balancer_of(&world.daemon)->split);
	assert_int_equal(longest_queue(), 1);
}

/* Memory-bound threads are moved to CPUs of this type only. */
TEST(types_keep_to_their_cpus)
{
	overload(8, 0);
	for (size_t i = 0; i < world.nr_workers; i += 2)
		world.workers[i].misses = 0.00001;
	for (size_t i = 1; i < world.nr_workers; i += 2)
		world.workers[i].misses = 1;
	begin(NM_SELECTION_FIRST_FIT);
	config()->threads.dtas = true;
	config()->rules.balance_idle_max = 0;
	config()->rules.balance_persist = 5;
	live(20);
	const struct nm_balancer *balancer = nm_balancer_of(&world.daemon);
	assert_true(balancer->split);
	unsigned moved = 0;
	for (size_t i = 0; i < world.nr_workers; i++) {
		const struct fake_thread *thread = fake_get(world.fake, world.workers[i].tid);
		const struct nm_balancer_thread_state *known = nm_balancer_thread(balancer, i);
		enum nm_dtas_type type = i % 2 ? NM_DTAS_MEMORY : NM_DTAS_COMPUTE;
		assert_ptr_equal(nm_column_find(&balancer->threads, thread->tid), known);
		assert_int_equal(known->behaviour.type, type);
		moved += thread->processor >= 2;
		assert_int_equal(balancer->cpu_types[thread->processor], type);
	}
	assert_true(moved >= 4);
	assert_true(balancer->tally.typed > 0);
	assert_true(balancer->tally.elsewhere < balancer->tally.typed);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/policy/lottery.h"
#include "../support/interval.h"

#define DRAWS 100000

static struct machine *machine;
static struct nm_snapshot *snapshot;
static struct nm_rng rng;
static struct nm_ticket_pool *pool;

/* Two nodes of 40 CPUs, two per core; four threads on node 0, whose other CPUs are busy. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_of_size(2, 40, 2, 8);
	for (int cpu = 0; cpu < 4; cpu++)
		machine_thread(machine, 10, cpu, 1);
	snapshot = machine_snapshot(machine);
	nm_rng_seed(&rng, 42);
	pool = NULL;
	return snapshot ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	nm_ticket_pool_free(pool);
	nm_snapshot_free(snapshot);
	machine_free(machine);
	return 0;
}

static void begin(enum nm_lottery rule)
{
	nm_ticket_pool_free(pool);
	pool = NULL;
	nm_ticket_pool_new(snapshot, rule, &rng, &pool);
}

static void single(uint32_t thread, int32_t destination, double tickets)
{
	nm_ticket_pool_add(pool, thread, destination, NM_NO_PARTNER, tickets);
}

static void swap(uint32_t thread, uint32_t partner, double tickets)
{
	int cpu = snapshot->threads[partner].stats.main_cpu;
	nm_ticket_pool_add(pool, thread, cpu, partner, tickets);
}

static struct nm_win win(void)
{
	struct nm_win won = {0};
	assert_true(nm_ticket_pool_draw(pool, &won));
	return won;
}

static void only_candidates_win(void)
{
	struct nm_win won;
	assert_false(nm_ticket_pool_draw(pool, &won));
}

/* Five standard deviations of the binomial distribution: one correct run in two million fails. */
static void assert_chance(unsigned hits, double chance)
{
	double deviation = sqrt(chance * (1 - chance) / DRAWS);
	assert_true(fabs((double)hits / DRAWS - chance) < 5 * deviation);
}

/* Counts how often the first candidate, thread 0 to CPUs 40 and up, wins. */
static unsigned count_first_wins(enum nm_lottery rule, const double *tickets, int count, int good)
{
	unsigned hits = 0;
	for (unsigned i = 0; i < DRAWS; i++) {
		begin(rule);
		for (int j = 0; j < count; j++)
			single(0, 40 + j, tickets[j]);
		hits += win().cpu_to < 40 + good;
	}
	return hits;
}

TEST(six_against_two)
{
	const double tickets[] = {6, 2};
	assert_chance(count_first_wins(NM_LOTTERY_PAPER, tickets, 2, 1), 5.0 / 6);
	assert_chance(count_first_wins(NM_LOTTERY_PROPORTIONAL, tickets, 2, 1), 3.0 / 4);
}

TEST(the_order_of_candidates_does_not_matter)
{
	const double tickets[] = {2, 6};
	assert_chance(count_first_wins(NM_LOTTERY_PAPER, tickets, 2, 1), 1.0 / 6);
	assert_chance(count_first_wins(NM_LOTTERY_PROPORTIONAL, tickets, 2, 1), 1.0 / 4);
}

/* With the rules of the paper the ten lose only if all draw below 2, (1/3)^10, and then in two of
 * three cases. */
TEST(ten_at_six_against_twenty_at_two)
{
	double tickets[30];
	for (int i = 0; i < 30; i++)
		tickets[i] = i < 10 ? 6 : 2;
	unsigned paper = count_first_wins(NM_LOTTERY_PAPER, tickets, 30, 10);
	assert_true(paper >= DRAWS - 10);
	assert_chance(count_first_wins(NM_LOTTERY_PROPORTIONAL, tickets, 30, 10), 0.60);
}

TEST(shares_hold_across_threads_and_without_replacement)
{
	unsigned first = 0, second = 0, last = 0;
	for (unsigned i = 0; i < DRAWS; i++) {
		begin(NM_LOTTERY_PROPORTIONAL);
		single(0, 40, 6);
		single(1, 42, 2);
		single(2, 44, 2);
		first += win().thread == 0;
		second += win().thread == 1;
		last += win().thread == 2;
		only_candidates_win();
	}
	assert_chance(first, 0.6);
	assert_chance(second, 0.6 * 0.5 + 0.2 * 0.25);
	assert_chance(last, 0.6 * 0.5 + 0.2 * 0.75);
}

TEST(a_skipped_winner_does_not_bias_the_draw)
{
	unsigned hits = 0;
	for (unsigned i = 0; i < DRAWS; i++) {
		begin(NM_LOTTERY_PROPORTIONAL);
		single(0, 40, 1000000);
		single(1, 40, 50);
		single(1, 42, 6);
		single(1, 44, 2);
		if (win().thread != 0)
			continue;
		hits += win().cpu_to == 42;
	}
	assert_chance(hits, 0.75);
}

TEST(a_thread_wins_once)
{
	begin(NM_LOTTERY_PAPER);
	for (int cpu = 40; cpu < 50; cpu++)
		single(0, cpu, 4);
	struct nm_win won = win();
	assert_int_equal(won.thread, 0);
	assert_true(won.draw >= 0 && won.draw < 4);
	assert_true(won.tickets == 4);
	only_candidates_win();
}

TEST(an_idle_cpu_is_assigned_once)
{
	const enum nm_lottery rules[] = {NM_LOTTERY_PAPER, NM_LOTTERY_PROPORTIONAL};
	for (size_t i = 0; i < NM_ARRAY_SIZE(rules); i++) {
		begin(rules[i]);
		for (uint32_t thread = 0; thread < 2; thread++) {
			single(thread, 40, 4);
			single(thread, 41, 0.001);
		}
		struct nm_win a = win(), b = win();
		assert_int_not_equal(a.thread, b.thread);
		assert_int_not_equal(a.cpu_to, b.cpu_to);
		only_candidates_win();
		begin(rules[i]);
		single(0, 40, 4);
		single(1, 40, 4);
		win();
		only_candidates_win();
	}
}

TEST(a_partner_is_assigned_once)
{
	begin(NM_LOTTERY_PAPER);
	swap(0, 3, 4);
	swap(1, 3, 4);
	struct nm_win won = win();
	assert_int_equal(won.partner, 3);
	assert_int_equal(won.cpu_to, 3);
	only_candidates_win();
}

TEST(a_partner_moves_only_in_its_swap)
{
	begin(NM_LOTTERY_PROPORTIONAL);
	swap(0, 1, 4);
	single(1, 40, 0);
	assert_int_equal(win().partner, 1);
	only_candidates_win();
	begin(NM_LOTTERY_PAPER);
	swap(0, 1, 1000);
	single(1, 40, 0);
	assert_int_equal(win().partner, 1);
	only_candidates_win();
}

TEST(zero_tickets_win_last_in_the_paper_profile_only)
{
	begin(NM_LOTTERY_PAPER);
	single(0, 40, 0);
	single(1, 42, 0.001);
	assert_int_equal(win().thread, 1);
	struct nm_win won = win();
	assert_int_equal(won.thread, 0);
	assert_true(won.draw == 0);
	begin(NM_LOTTERY_PROPORTIONAL);
	single(0, 40, 0);
	single(1, 42, 0.001);
	single(2, 40, 0);
	single(2, 44, 0.001);
	assert_int_not_equal(win().thread, 0);
	won = win();
	assert_int_not_equal(won.thread, 0);
	assert_int_not_equal(won.cpu_to, 40);
	only_candidates_win();
}

TEST(candidates_without_tickets_are_drawn_at_random)
{
	const double none[] = {0, 0, 0, 0};
	assert_chance(count_first_wins(NM_LOTTERY_PAPER, none, 4, 1), 0.25);
}

TEST(an_empty_ticket_pool_has_no_winner)
{
	begin(NM_LOTTERY_PAPER);
	only_candidates_win();
	begin(NM_LOTTERY_PROPORTIONAL);
	assert_int_equal(nm_ticket_pool_count(pool), 0);
	only_candidates_win();
	nm_ticket_pool_free(NULL);
}

TEST(merged_winners_spread_over_cores_first)
{
	for (size_t i = 0; i < 4; i++)
		machine_allow(machine, i, "0-3,40-42");
	begin(NM_LOTTERY_PROPORTIONAL);
	for (uint32_t i = 0; i < 4; i++)
		single(i, nm_any_cpu_of(1), 2);
	assert_int_equal(win().cpu_to, 40);
	assert_int_equal(win().cpu_to, 42);
	assert_int_equal(win().cpu_to, 41);
	only_candidates_win();
}

TEST(the_best_free_cpu_has_idle_siblings)
{
	hwloc_const_bitmap_t all = machine->topology->usable, nothing;
	machine->busy[41] = 0.5;
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	assert_int_equal(nm_pick_free_cpu(snapshot, 1, all, NULL, NULL), 42);
	machine_allow(machine, 0, "40-41");
	assert_int_equal(nm_pick_free_cpu(snapshot, 1, machine->managed[0].original, NULL, NULL),
			 40);
	machine_allow(machine, 0, "41");
	nothing = machine->managed[0].original;
	assert_int_equal(nm_pick_free_cpu(snapshot, 1, nothing, NULL, NULL), -1);
}

static uint64_t fingerprint(enum nm_lottery rule, uint64_t seed)
{
	uint64_t print = 0;
	nm_rng_seed(&rng, seed);
	begin(rule);
	for (uint32_t i = 0; i < 4; i++)
		for (int cpu = 40; cpu < 80; cpu++)
			single(i, cpu, 1 + cpu % 3);
	for (struct nm_win won; nm_ticket_pool_draw(pool, &won);) {
		uint64_t bits;
		memcpy(&bits, &won.draw, sizeof(bits));
		print = print * 31 + bits + (uint64_t)won.cpu_to + won.thread;
	}
	return print;
}

TEST(the_seed_decides_everything)
{
	const enum nm_lottery rules[] = {NM_LOTTERY_PAPER, NM_LOTTERY_PROPORTIONAL};
	for (size_t i = 0; i < NM_ARRAY_SIZE(rules); i++) {
		assert_true(fingerprint(rules[i], 5) == fingerprint(rules[i], 5));
		assert_true(fingerprint(rules[i], 5) != fingerprint(rules[i], 6));
	}
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Chances of candidates, and the rule that winners share no thread and no CPU. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/policy/lottery.h"
#include "../support/interval.h"

#define DRAWS 100000

static struct machine *machine;
static struct nm_snapshot *snapshot;
static struct nm_rng rng;

/* Two nodes of 40 CPUs, two per core; four threads on node 0, whose other CPUs are busy. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_of_size(2, 40, 2, 8);
	for (int cpu = 0; cpu < 4; cpu++)
		machine_thread(machine, 10, cpu, 1);
	snapshot = machine_snapshot(machine);
	nm_rng_seed(&rng, 42);
	return snapshot ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	nm_snapshot_free(snapshot);
	machine_free(machine);
	return 0;
}

struct candidate {
	char letter;
	uint32_t thread;
	int cpu;
	double tickets;
	int more;	    /* as many like it, to the CPUs after it */
	uint32_t swap_with; /* a thread; 0: none */
};

/* An outcome are the letters of all winners, in their order. No other outcome is possible. */
struct lottery {
	const char *name;
	struct candidate candidates[4];
	struct {
		const char *winners;
		double chances[2]; /* by the rule of the paper, and in proportion */
	} outcomes[6];
};

static const enum nm_lottery rules[] = {NM_LOTTERY_PAPER, NM_LOTTERY_PROPORTIONAL};

static const struct lottery lotteries[] = {
	{"six against two",
	 {{'a', 0, 40, 6}, {'b', 0, 41, 2}},
	 {{"a", {5 / 6., 0.75}}, {"b", {1 / 6., 0.25}}}},
	{"two against six",
	 {{'a', 0, 40, 2}, {'b', 0, 41, 6}},
	 {{"a", {1 / 6., 0.25}}, {"b", {5 / 6., 0.75}}}},
	/* In the paper the ten lose only if all draw below 2, and then in two of three cases. */
	{"ten at six against twenty at two",
	 {{'a', 0, 40, 6, 9}, {'b', 0, 50, 2, 19}},
	 {{"a", {1 - 2 / 177147., 0.6}}, {"b", {2 / 177147., 0.4}}}},
	{"three threads",
	 {{'a', 0, 40, 6}, {'b', 1, 42, 2}, {'c', 2, 44, 2}},
	 {{"abc", {7 / 18., 0.3}},
	  {"acb", {7 / 18., 0.3}},
	  {"bac", {1 / 18., 0.15}},
	  {"cab", {1 / 18., 0.15}},
	  {"bca", {1 / 18., 0.05}},
	  {"cba", {1 / 18., 0.05}}}},
	{"a skipped winner does not bias the draw",
	 {{'a', 0, 40, 1e12}, {'-', 1, 40, 50}, {'b', 1, 42, 6}, {'c', 1, 44, 2}},
	 {{"ab", {5 / 6., 0.75}}, {"ac", {1 / 6., 0.25}}}},
	{"a thread wins once", {{'a', 0, 40, 4, 9}}, {{"a", {1, 1}}}},
	{"a CPU is assigned once",
	 {{'a', 0, 40, 4}, {'b', 1, 40, 4}},
	 {{"a", {0.5, 0.5}}, {"b", {0.5, 0.5}}}},
	{"the loser gets another CPU",
	 {{'a', 0, 40, 4}, {'b', 0, 41, 1e-9}, {'c', 1, 40, 4}, {'d', 1, 41, 1e-9}},
	 {{"ad", {0.5, 0.5}}, {"cb", {0.5, 0.5}}}},
	{"a partner is assigned once",
	 {{'a', 0, 3, 4, .swap_with = 3}, {'b', 1, 3, 4, .swap_with = 3}},
	 {{"a", {0.5, 0.5}}, {"b", {0.5, 0.5}}}},
	{"a partner moves only in its swap",
	 {{'a', 0, 1, 1000, .swap_with = 1}, {'b', 1, 40, 0}},
	 {{"a", {1, 1}}}},
	{"without tickets",
	 {{'a', 0, 40, 0}, {'b', 1, 42, 0.001}, {'-', 2, 40, 0}, {'c', 2, 44, 0.001}},
	 {{"bca", {0.5, 0}}, {"cba", {0.5, 0}}, {"bc", {0, 0.5}}, {"cb", {0, 0.5}}}},
	{"nobody has tickets",
	 {{'a', 0, 40, 0}, {'b', 0, 41, 0, 2}},
	 {{"a", {0.25, 0}}, {"b", {0.75, 0}}, {"", {0, 1}}}},
	{"nobody", .outcomes = {{"", {1, 1}}}},
};

static uint32_t partner_of(const struct candidate *one)
{
	return one->swap_with ? one->swap_with : NM_NO_PARTNER;
}

static struct nm_ticket_pool *fill_pool(const struct lottery *row, enum nm_lottery rule)
{
	struct nm_ticket_pool *pool;
	size_t count = 0;
	nm_ticket_pool_new(snapshot, rule, &rng, &pool);
	for (unsigned k = 0; k < 4 && row->candidates[k].letter; k++) {
		const struct candidate *one = &row->candidates[k];
		for (int i = 0; i <= one->more; i++, count++)
			nm_ticket_pool_add(pool, one->thread, one->cpu + i, partner_of(one),
					   one->tickets);
	}
	CHECK(row, nm_ticket_pool_count(pool) == count);
	return pool;
}

static char letter_of(const struct lottery *row, enum nm_lottery rule, const struct nm_win *won)
{
	const struct candidate *one = row->candidates;
	while (one < row->candidates + 3 && (one->thread != won->thread || won->cpu_to < one->cpu ||
					     won->cpu_to > one->cpu + one->more))
		one++;
	CHECK(row, won->thread == one->thread && won->partner == partner_of(one));
	CHECK(row, won->cpu_to >= one->cpu && won->cpu_to <= one->cpu + one->more);
	CHECK(row, won->tickets == one->tickets);
	CHECK(row, won->draw >= 0 && (rule != NM_LOTTERY_PAPER || won->draw <= won->tickets));
	CHECK(row, won->winner < won->nr_candidates);
	CHECK(row, won->candidates[won->winner].destination == won->cpu_to);
	return one->letter;
}

static unsigned draw(const struct lottery *row, enum nm_lottery rule)
{
	nm_auto(nm_ticket_pool_freep) struct nm_ticket_pool *pool = fill_pool(row, rule);
	char winners[8] = "";
	struct nm_win won;
	for (size_t i = 0; nm_ticket_pool_draw(pool, &won); i++) {
		CHECK(row, i < sizeof(winners) - 1);
		winners[i] = letter_of(row, rule, &won);
	}
	for (unsigned i = 0; i < 6 && row->outcomes[i].winners; i++)
		if (strcmp(row->outcomes[i].winners, winners) == 0)
			return i;
	fail_msg("%s: won by \"%s\"", row->name, winners);
	return 0;
}

/* Five standard deviations of the binomial distribution: one correct run in two million fails. */
static void check_chances(const struct lottery *row, unsigned rule)
{
	double hits[6] = {0};
	for (unsigned i = 0; i < DRAWS; i++)
		hits[draw(row, rules[rule])]++;
	for (unsigned i = 0; i < 6; i++) {
		const double chance = row->outcomes[i].chances[rule];
		if (fabs(hits[i] / DRAWS - chance) > 5 * sqrt(chance * (1 - chance) / DRAWS))
			fail_msg("%s, rule %u: \"%s\" %g of %d times, expected %g of 1", row->name,
				 rule, row->outcomes[i].winners, hits[i], DRAWS, chance);
	}
}

TEST(each_outcome_has_its_chance)
{
	EACH_ROW(row, lotteries)
	{
		check_chances(row, 0);
		check_chances(row, 1);
	}
}

TEST(merged_winners_spread_over_cores_first)
{
	static const struct lottery row = {
		"four to any CPU",
		{{'a', 0, -2, 2}, {'b', 1, -2, 2}, {'c', 2, -2, 2}, {'d', 3, -2, 2}}};
	static const int expected[] = {40, 42, 41};
	struct nm_win won;
	for (size_t i = 0; i < 4; i++)
		machine_allow(machine, i, "0-3,40-42");
	nm_auto(nm_ticket_pool_freep) struct nm_ticket_pool *pool =
		fill_pool(&row, NM_LOTTERY_PROPORTIONAL);
	assert_int_equal(nm_any_cpu_of(1), -2);
	for (size_t i = 0; i < 3; i++) {
		assert_true(nm_ticket_pool_draw(pool, &won));
		assert_int_equal(won.cpu_to, expected[i]);
	}
	assert_false(nm_ticket_pool_draw(pool, &won));
}

/* Of CPUs 40 to 43, which are two cores. */
static const struct {
	const char *name, *allowed;
	double busy[4];
	bool crowded[4];
	int cpu;
} picks[] = {
	{"of an idle core", "40-79", {0, 0.5}, .cpu = 42},
	{"beside a busy one", "40-41", {0, 0.5}, .cpu = 40},
	{"no time of a whole CPU", "41", {0, 0.5}, .cpu = -1},
	{"an idle one, rather than two partly idle ones", "40-43", {0.3, 0, 0.1, 0.1}, .cpu = 41},
	{"a partly idle one, beside an idle one", "40,42", {0.1, 0.1, 0.3, 0}, .cpu = 42},
	{"the least busy one", "40-43", {0.3, 0.2, 0.1, 0.25}, .cpu = 42},
	{"not of a core that has won", "40-43", {0}, {true, true}, .cpu = 42},
	{"of a core that has won", "40-43", {0}, {true, true, true, true}, .cpu = 40},
};

TEST(the_best_free_cpu_has_idle_siblings)
{
	EACH_ROW(row, picks)
	{
		bool crowded[80] = {0};
		memcpy(machine->busy + 40, row->busy, sizeof(row->busy));
		memcpy(crowded + 40, row->crowded, sizeof(row->crowded));
		machine_allow(machine, 0, row->allowed);
		nm_snapshot_free(snapshot);
		snapshot = machine_snapshot(machine);
		const int cpu =
			nm_pick_free_cpu(snapshot, 1, machine->managed[0].original, NULL, crowded);
		if (cpu != row->cpu)
			fail_msg("%s: CPU %d, expected %d", row->name, cpu, row->cpu);
	}
}

static uint64_t fingerprint(enum nm_lottery rule, uint64_t seed)
{
	static const struct lottery row = {"four to 40 CPUs",
					   {{'a', 0, 40, 1, 39},
					    {'b', 1, 40, 2, 39},
					    {'c', 2, 40, 3, 39},
					    {'d', 3, 40, 1, 39}}};
	uint64_t print = 0, bits;
	nm_rng_seed(&rng, seed);
	nm_auto(nm_ticket_pool_freep) struct nm_ticket_pool *pool = fill_pool(&row, rule);
	for (struct nm_win won; nm_ticket_pool_draw(pool, &won);) {
		memcpy(&bits, &won.draw, sizeof(bits));
		print = print * 31 + bits + (uint64_t)won.cpu_to + won.thread;
	}
	return print;
}

TEST(the_seed_decides_everything)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(rules); i++) {
		assert_true(fingerprint(rules[i], 5) == fingerprint(rules[i], 5));
		assert_true(fingerprint(rules[i], 5) != fingerprint(rules[i], 6));
	}
}

RUN_TESTS()

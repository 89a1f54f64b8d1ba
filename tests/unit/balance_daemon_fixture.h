/* SPDX-License-Identifier: MIT */
/* Policy "balance" on the machine of daemon_fixture.h, with a node on which threads queue. Include
 * cmocka.h first. */
#ifndef NM_TEST_BALANCE_DAEMON_FIXTURE_H
#define NM_TEST_BALANCE_DAEMON_FIXTURE_H

#include "daemon_fixture.h"
#include "policy/balance.h"

static inline struct nm_config *config(void)
{
	return world.daemon.config;
}

/* Any waiting thread may move, wherever its memory is. */
static inline void begin(enum nm_selection selection)
{
	config()->threads.policy = NM_POLICY_BALANCE;
	config()->threads.selection = selection;
	config()->rules.balance_min_gain = NM_CONFIG_ANY_GAIN;
	world.lazy = true;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

/* Processes of one thread each, in turn on the CPUs of node 0. (Memory on node 3 is as far from
 * node 2 as from node 0, and not much farther from node 1.) */
static inline void overload(unsigned threads, unsigned memory)
{
	for (unsigned i = 0; i < threads; i++)
		add_worker(1000 + 100 * i, (int)(i % 2), memory);
}

static inline unsigned longest_queue(void)
{
	unsigned longest = 0;
	for (int cpu = 0; cpu < CPUS; cpu++)
		if (workers_on(cpu) > longest)
			longest = workers_on(cpu);
	return longest;
}

static inline unsigned settle(unsigned most)
{
	unsigned intervals = 0;
	for (; intervals < most && longest_queue() > 1; intervals++)
		live_one();
	assert_int_equal(longest_queue(), 1);
	return intervals;
}

static inline const struct nm_entry *first_move(void)
{
	const struct nm_entry *move = find_entry(0, NM_MESSAGE_DECISION, "KIND", "migrate");
	assert_non_null(move);
	return move;
}

static inline const struct nm_entry *verdict_of(const struct nm_entry *move)
{
	const struct nm_entry *verdict =
		find_entry(0, NM_MESSAGE_VERDICT, "DECISION", field_of(move, "DECISION"));
	assert_non_null(verdict);
	return verdict;
}

static inline unsigned count_logged(const char *words)
{
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		count += strstr(world.entries[i].text, words) != NULL;
	return count;
}

#endif

/* SPDX-License-Identifier: MIT */
/* The words of daemon_words.h for policy "balance": threads queue on the CPUs of node 0. */
#ifndef NM_TEST_BALANCE_WORDS_H
#define NM_TEST_BALANCE_WORDS_H

#include "daemon_words.h"
#include "policy/balance.h"

/* overload 6 memory node3: processes of one thread each, in turn on the CPUs of node 0. (Memory on
 * node 3 is as far from node 2 as from node 0, and not much farther from node 1.) */
WORD(overload)
{
	for (unsigned i = 0; i < U(0); i++)
		add_worker(1000 + 100 * i, (int)(i % 2), U(1));
}

/* balance first_fit: any waiting thread may move, wherever its memory is */
WORD(balance)
{
	struct nm_config *config = world.daemon.config;
	config->threads.policy = NM_POLICY_BALANCE;
	config->threads.selection = step_has(step, "most_benefit")  ? NM_SELECTION_MOST_BENEFIT
				    : step_has(step, "exclusivity") ? NM_SELECTION_EXCLUSIVITY
								    : NM_SELECTION_FIRST_FIT;
	config->rules.balance_min_gain = NM_CONFIG_ANY_GAIN;
	world.lazy = true;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static inline unsigned longest_queue(void)
{
	unsigned longest = 0;
	for (int cpu = 0; cpu < CPUS; cpu++)
		longest = workers_on(cpu) > longest ? workers_on(cpu) : longest;
	return longest;
}

/* logged 1 WORDS: the number of entries that contain them */
WORD(logged)
{
	const char *words = strchr(step_rest(step), ' ') + 1;
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		count += strstr(world.entries[i].text, words) != NULL;
	if (count != U(0))
		script_fail(step, "found %u", count);
}

#define SETTLE "until queue = 1 within 30; "

QUANTITY(queue, longest_queue())
QUANTITY(on_cpu, workers_on((int)N(0)))
QUANTITY(balancer, nm_balancer_of(&world.daemon.pipeline) != NULL)
QUANTITY(waiting, nm_balancer_of(&world.daemon.pipeline)->state.waiting)
QUANTITY(split, nm_balancer_of(&world.daemon.pipeline)->split)
QUANTITY(load_reads, nm_balancer_of(&world.daemon.pipeline)->tally.reads)
QUANTITY(pages_counted, nm_balancer_of(&world.daemon.pipeline)->tally.pages_counted)
KNOB(has_flops, world.daemon.pipeline.source->status.has_flops)
KNOB(has_dram, world.daemon.pipeline.source->status.has_dram)
KNOB(dtas, world.daemon.config->threads.dtas)
KNOB(rollback, world.daemon.config->rules.rollback)
KNOB(moves_per_interval, world.daemon.config->rules.moves_per_interval)
KNOB(balance_min_gain, world.daemon.config->rules.balance_min_gain)
KNOB(balance_begin, world.daemon.config->rules.balance_begin)
KNOB(balance_end, world.daemon.config->rules.balance_end)
KNOB(balance_persist, world.daemon.config->rules.balance_persist)
KNOB(balance_idle_max, world.daemon.config->rules.balance_idle_max)

#endif

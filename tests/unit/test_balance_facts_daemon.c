/* SPDX-License-Identifier: MIT */
/* The inputs that policy "balance" collects in ticks of the daemon: locations of pages, and threads
 * that wait for memory. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "balance_words.h"

/* ---- pages ---- */

WORD(all_have_kb)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		fake_get(world.fake, world.workers[i].tid)->rss_kb = (uint64_t)N(0);
}

/* The share of the pages that the move found last gains. */
static double gained(void)
{
	return number_of(script_world.entry, "GAIN_PAGES") /
	       number_of(script_world.entry, "RESIDENT_PAGES");
}

static double share_of_target(void)
{
	return has_field(script_world.entry, "NODE_TO", "3")   ? 0.75
	       : has_field(script_world.entry, "NODE_TO", "1") ? 0.25
							       : 0;
}

QUANTITY(gain_error, fabs(gained() - share_of_target()))
QUANTITY(open_files, fake_open_fds(world.fake))

SCRIPT(pages_are_counted_by_numa_maps,
       "map 7f0000000000 default anon=4000 dirty=4000 N1=1000 N3=3000 kernelpagesize_kB=4",
       "overload 6 memory node0; all_have_kb 65536; balance most_benefit",
       "set balance_persist = 12; set cached = 1; run 14",
       "journal decision KIND=migrate RESIDENCY_AGE_S>0; gain_error < 1e-3; pages_counted = 6",
       "open_files = 0")

static const struct nm_residence *residence_of(const struct step *step)
{
	return nm_balancer_residence(nm_balancer_of(&world.daemon.pipeline), U(0));
}

QUANTITY(has_residence, residence_of(step) != NULL)
QUANTITY(residence_age_ns, residence_of(step)->age_ns)
QUANTITY(residence_samples, residence_of(step)->samples)
QUANTITY(resides, residence_of(step)->pages[U(1)] / residence_of(step)->resident)

/* Three quarters of the pages are on node 3, the others on node 1. */
#define LARGE                                                                                      \
	"asked 128 node1 384 node3; overload 6 memory node0; all_have_kb 66560; "                  \
	"balance most_benefit; set balance_persist = 1000; "

/* Without sampled accesses; one query each in 30 s. */
SCRIPT(a_sample_of_a_large_process_is_queried,
       LARGE "set cached = 1; run 25; pages_asked = 6; residence_age_ns 1000 > 0",
       "resides 1000 node3 = 0.75; resides 1000 node1 = 0.25; resides 1000 node0 = 0",
       "resides 1000 node2 = 0; run 25; pages_asked in 7..12")

/* Sampled accesses are more current than a count, and need no query, once there are enough. */
SCRIPT(sampled_accesses_replace_the_count,
       LARGE "run 10; residence_samples 1000 >= 64; set pages_asked = 0; run 60; pages_asked = 0",
       "residence_age_ns 1000 = 0; resides 1000 node0 = 1")

ACTION(answer_nothing, fake_asked.pages = NULL)

/* A sample that is too small, and no answer, leave the location unknown. */
SCRIPT(nothing_is_known_without_an_answer,
       LARGE "asked 63 node3; set cached = 1; run 10; has_residence 1000 = 0; answer_nothing",
       "run 10; has_residence 1000 = 0; pages_asked > 0")

/* ---- DTAS ---- */

SCRIPT(missing_counters_disable_dtas_and_are_logged_once,
       "overload 6 memory node3; balance first_fit; set dtas = 1; set has_dram = 0; run 20",
       "logged 1 DTAS is off; split = 0; queue = 1")

/* Every other thread waits for memory. */
WORD(bound_by_turns)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		world.workers[i].misses = i % 2 ? 1 : 0.00001;
}

/* Threads whose type, or that of their CPU, is wrong. */
static unsigned count_mistyped(void)
{
	const struct nm_balancer *balancer = nm_balancer_of(&world.daemon.pipeline);
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_workers; i++) {
		const struct fake_thread *thread = fake_get(world.fake, world.workers[i].tid);
		const struct nm_balancer_thread_state *known = nm_balancer_thread(balancer, i);
		enum nm_dtas_type type = i % 2 ? NM_DTAS_MEMORY : NM_DTAS_COMPUTE;
		assert_ptr_equal(nm_column_find(&balancer->threads, thread->tid), known);
		count += known->behaviour.type != type ||
			 balancer->cpu_types[thread->processor] != type;
	}
	return count;
}

QUANTITY(mistyped, count_mistyped())
QUANTITY(on_node_0, workers_on(0) + workers_on(1))
QUANTITY(typed, nm_balancer_of(&world.daemon.pipeline)->tally.typed)
QUANTITY(typed_elsewhere, nm_balancer_of(&world.daemon.pipeline)->tally.elsewhere)

/* Memory-bound threads are moved to CPUs of this type only. */
SCRIPT(types_keep_to_their_cpus,
       "overload 8 memory node0; bound_by_turns; balance first_fit; set dtas = 1",
       "set balance_idle_max = 0; set balance_persist = 5; run 20; split = 1; mistyped = 0",
       "on_node_0 <= 4; typed > 0; keep n = typed; typed_elsewhere < n")

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* The programs and the kernel of the model: phases, arrivals, page cache, gathering, and
 * sampling. */
#define SET_UP open_model
#define TEAR_DOWN close_model
#include "../support/test.h"

#include <stdint.h>

#include <inttypes.h>
#include <stdio.h>

#include "numa-migrd/proc.h"
#include "platform/page_jobs.h"
#include "sim_words.h"

/* phases 3: as many, like the first one */
WORD(phases)
{
	struct nm_sim_phase *phases = calloc(U(0), sizeof(*phases));
	assert_non_null(phases);
	for (unsigned i = 0; i < U(0); i++)
		phases[i] = program()->phases[0];
	free(program()->phases);
	program()->phases = phases;
	program()->nr_phases = U(0);
}

static double resident_mb(void)
{
	struct nm_platform *platform = nm_sim_platform(sim);
	struct nm_proc_memory memory = {0};
	char path[64];
	(void)snprintf(path, sizeof(path), "proc/%d", (int)nm_sim_thread(sim, 0).pid);
	int directory = platform->ops->open_directory(platform, NM_ROOT, path);
	assert_true(directory >= 0);
	assert_int_equal(nm_proc_read_memory(platform, directory, &memory), 0);
	platform->ops->close(platform, directory);
	return (double)memory.anon_bytes / 1048576;
}

QUANTITY(resident_mb, resident_mb())
QUANTITY(users_ended, nm_sim_figures(sim).users_ended)

/* One thread loads 25 % of the data; the others start after it and write the rest. */
SCRIPT(test_phases_begin_together,
       "program stream 8; set giga = 2; phases 3; set footprint_mb = 640; set team 0 = 1",
       "set touched 0 = 0.25; set team 2 = 2; begin 1; steps 1; threads = 1; resident_mb = 160",
       "until threads > 1 within 10000; keep begun = done 0; done 1 = begun; threads = 8",
       "resident_mb = 640; until done 0 >= 4.1 within 10000; keep done = done 7; steps 2",
       "done 7 = done; finish; programs_ended = 1; users_ended = 1")

KNOB(idle_s, phase(step)->idle_s)
QUANTITY(thread_s, nm_sim_figures(sim).thread_s)

SCRIPT(test_sleepers_use_little_time,
       "program stream 30; set giga = 0.05; set idle_s = 1; phases 20; begin 1; finish",
       "time_s in 15..40; keep all = time_s; thread_s < all*3")

QUANTITY(computing_s, nm_sim_figures(sim).computing_s)

#define ARRIVAL "until threads > 0 within 1000; time_s in 2..22.2; "

/* Arrival times depend only on the seed, not on placement. */
SCRIPT(test_users_arrive_at_random,
       "program ep 1; set start_s = 2; set spread_s = 20; begin 1; " ARRIVAL "keep first = time_s",
       "begin 1; " ARRIVAL "time_s = first; begin 2; " ARRIVAL "time_s != first",
       "finish; keep end = time_s; computing_s > 0; computing_s <= end-2")

static unsigned count_strays(void)
{
	unsigned count = 0;
	for (size_t i = 1; i < nm_sim_nr_threads(sim); i++)
		count += nm_sim_thread(sim, i).node != nm_sim_thread(sim, 0).node;
	return count;
}

/* Threads that are not on the node of the first one. */
QUANTITY(strays, count_strays())

/* Under one cache, if it has a core for each thread. */
SCRIPT(test_cache_aware_kernels_gather,
       "set cache_aware = 1; program stream 4; begin 3; steps 20; strays = 0; machine ring-4x10",
       "set cache_aware = 1; program stream 12; begin 3; steps 20; strays > 0")

/* No page migrates to a node filled with page cache, as automatic NUMA balancing reclaims none. */
SCRIPT(test_a_full_cache_stops_numa_balancing,
       "program stream 4; set touch = master; begin 1 balancing; steps 100; pages_balanced > 100",
       "set full_page_cache = 1; begin 1 balancing; steps 100; pages_balanced = 0")

/* Bound memory displaces page cache; memory that fits on no node falls back. */
SCRIPT(test_bound_memory_displaces_page_cache,
       "set full_page_cache = 1; program stream 2; set placement = direct; set memory = node2",
       "begin 1; steps 1; mix 0 node2 = 1; mix 1 node2 = 1")

static void ignore_sample(void *context, struct nm_sample *sample)
{
	(void)context, (void)sample;
}

static void ignore_task(void *context, const struct nm_task_event *event)
{
	(void)context, (void)event;
}

WORD(drain)
{
	struct nm_sample_sink sink = {.on_sample = ignore_sample, .on_task = ignore_task};
	(void)nm_sim_feed(sim).drain(nm_sim_feed(sim).context, &sink);
}

QUANTITY(samples, nm_sim_figures(sim).samples)

/* Without a PMU, samples are those of the clock and the hinting faults of automatic NUMA
 * balancing. */
SCRIPT(test_without_a_pmu_faults_are_sampled,
       "set no_pmu = 1; program stream 1; begin 1; steps 50; drain; samples in 498..501",
       "keep few = samples; begin 1 balancing; steps 50; drain; samples > few+100")

TEST(test_unmovable_processes_refuse)
{
	options.unmovable_pid = 3000000;
	run_line("program stream 1; begin 1; steps 1");
	struct nm_platform *platform = nm_sim_platform(sim);
	const uint64_t address = 0x7f0000000000, ticks = start_of(platform, 3000000);
	nm_autofree struct nm_units_order *order = calloc(1, sizeof(*order));
	nm_autofree struct nm_units_moved *moved = calloc(1, sizeof(*moved));
	assert_int_equal(
		platform->ops->affinity_set(platform, 3000000, machine->topology->nodes[1].cpus),
		-EPERM);
	for (int node = 0; node < 2; node++) {
		*order = (struct nm_units_order){.count = 1,
						 .pages_most = 1,
						 .nr_rooms = 1,
						 .rooms = {{.node = node, .memory = UINT64_MAX}},
						 .units = {{address, 1, NM_UNIT_BASE, -1, node}}};
		assert_int_equal(platform->ops->units_move(platform, 3000000, ticks, order, moved),
				 0);
		assert_false(moved->outcomes[0].moved);
	}
	assert_int_equal(nm_sim_figures(sim).pages_moved, 0);
}

RUN_TESTS()

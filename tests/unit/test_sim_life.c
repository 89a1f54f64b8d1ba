/* SPDX-License-Identifier: MIT */
/* The programs and the kernel of the model: phases, arrivals, page cache, gathering, and
 * sampling. */
#include "../support/test.h"

#include <stdint.h>

#include <inttypes.h>
#include <stdio.h>

#include "platform/page_jobs.h"
#include "numa-migrd/proc.h"
#include "sim_fixture.h"

static void ignore_sample(void *context, struct nm_sample *sample)
{
	(void)context, (void)sample;
}

static void ignore_task(void *context, const struct nm_task_event *event)
{
	(void)context, (void)event;
}

static struct nm_sim_program *add_phases(struct nm_sim_workload *workload, unsigned threads,
					 size_t count)
{
	struct nm_sim_program *program = add_program(workload, "stream", threads);
	struct nm_sim_phase *phases = calloc(count, sizeof(*phases));
	assert_non_null(phases);
	for (size_t i = 0; i < count; i++)
		phases[i] = program->phases[0];
	free(program->phases);
	program->phases = phases;
	program->nr_phases = count;
	return program;
}

static uint64_t resident_kib(struct nm_platform *platform, pid_t pid)
{
	struct nm_proc_memory memory = {0};
	char path[64];
	(void)snprintf(path, sizeof(path), "proc/%d", pid);
	int directory = platform->ops->open_directory(platform, NM_ROOT, path);
	assert_true(directory >= 0);
	assert_int_equal(nm_proc_read_memory(platform, directory, &memory), 0);
	platform->ops->close(platform, directory);
	return memory.anon_bytes / 1024;
}

/* One thread loads 25 % of the data; the others start after it and write the rest. */
TEST(test_phases_begin_together)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	struct nm_sim_program *program = add_phases(&workload, 8, 3);
	program->footprint_mb = 640;
	program->phases[0].threads = 1;
	program->phases[0].touched = 0.25;
	program->phases[0].giga = program->phases[1].giga = program->phases[2].giga = 2;
	program->phases[2].threads = 2;
	struct nm_sim *sim = begin(machine, &workload, 1);
	struct nm_platform *platform = nm_sim_platform(sim);
	steps(sim, 1);
	pid_t pid = (pid_t)nm_sim_thread(sim, 0).pid;
	assert_int_equal(nm_sim_nr_threads(sim), 1);
	assert_int_equal(resident_kib(platform, pid), 160 * 1024);
	while (nm_sim_nr_threads(sim) == 1)
		steps(sim, 1);
	alike(nm_sim_thread(sim, 1).done_giga - nm_sim_thread(sim, 0).done_giga, 0);
	assert_int_equal(nm_sim_nr_threads(sim), 8);
	assert_int_equal(resident_kib(platform, pid), 640 * 1024);
	while (nm_sim_thread(sim, 0).done_giga < 4.1)
		steps(sim, 1);
	double done = nm_sim_thread(sim, 7).done_giga;
	steps(sim, 2);
	alike(nm_sim_thread(sim, 7).done_giga, done);
	to_the_end(sim);
	assert_int_equal(nm_sim_figures(sim).programs_ended, 1);
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

TEST(test_sleepers_use_little_time)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	struct nm_sim_program *program = add_phases(&workload, 30, 20);
	for (size_t i = 0; i < program->nr_phases; i++) {
		program->phases[i].giga = 0.05;
		program->phases[i].idle_s = 1;
	}
	struct nm_sim *sim = begin(machine, &workload, 1);
	to_the_end(sim);
	struct nm_sim_figures figures = nm_sim_figures(sim);
	assert_true(figures.time_s > 15 && figures.time_s < 40);
	assert_true(figures.thread_s < 0.1 * 30 * figures.time_s);
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* Arrival times depend only on the seed, not on placement. */
TEST(test_users_arrive_at_random)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	double first_s[3];
	(void)add_program(&workload, "ep", 1);
	workload.users[0].start_s = 2;
	workload.users[0].spread_s = 20;
	for (unsigned i = 0; i < 3; i++) {
		struct nm_sim *sim = begin(machine, &workload, 1 + i / 2);
		while (nm_sim_nr_threads(sim) == 0)
			steps(sim, 1);
		first_s[i] = nm_sim_figures(sim).time_s;
		assert_true(first_s[i] >= 2 && first_s[i] <= 22.2);
		nm_sim_free(sim);
	}
	alike(first_s[0], first_s[1]);
	assert_true(fabs(first_s[0] - first_s[2]) > 0.05);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* Under one cache, if it has a core for each thread. */
TEST(test_cache_aware_kernels_gather)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	for (unsigned threads = 4; threads <= 12; threads += 8) {
		struct nm_sim_workload workload = {0};
		(void)add_program(&workload, "stream", threads);
		const struct nm_sim_options options = {.seed = 3, .cache_aware = true};
		struct nm_sim *sim = NULL;
		unsigned elsewhere = 0;
		assert_int_equal(nm_sim_new(machine, &workload, &options, &sim), 0);
		steps(sim, 20);
		for (size_t i = 1; i < nm_sim_nr_threads(sim); i++)
			elsewhere += nm_sim_thread(sim, i).node != nm_sim_thread(sim, 0).node;
		assert_true((elsewhere == 0) == (threads == 4));
		nm_sim_free(sim);
		nm_sim_workload_clear(&workload);
	}
	nm_sim_machine_free(machine);
}

/* No page migrates to a node filled with page cache, as automatic NUMA balancing reclaims none. */
TEST(test_a_full_cache_stops_numa_balancing)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	uint64_t balanced[2];
	for (unsigned full = 0; full < 2; full++) {
		struct nm_sim_workload workload = {.full_page_cache = full == 1};
		struct nm_sim_program *program = add_program(&workload, "stream", 4);
		program->touch = NM_SIM_TOUCH_MASTER;
		const struct nm_sim_options options = {.seed = 1, .numa_balancing = true};
		struct nm_sim *sim = NULL;
		assert_int_equal(nm_sim_new(machine, &workload, &options, &sim), 0);
		steps(sim, 100);
		balanced[full] = nm_sim_figures(sim).pages_balanced;
		nm_sim_free(sim);
		nm_sim_workload_clear(&workload);
	}
	assert_true(balanced[0] > 100);
	assert_int_equal(balanced[1], 0);
	nm_sim_machine_free(machine);
}

/* Bound memory displaces page cache; memory that fits on no node falls back. */
TEST(test_bound_memory_displaces_page_cache)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {.full_page_cache = true};
	(void)add_program(&workload, "stream", 2);
	workload.users[0].placement = NM_SIM_PLACE_DIRECT;
	workload.users[0].node = 2;
	struct nm_sim *sim = begin(machine, &workload, 1);
	steps(sim, 1);
	alike(nm_sim_thread(sim, 0).mix[2], 1);
	alike(nm_sim_thread(sim, 1).mix[2], 1);
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* Without a PMU, samples are those of the clock and the hinting faults of automatic NUMA
 * balancing. */
TEST(test_without_a_pmu_faults_are_sampled)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	uint64_t samples[2];
	for (unsigned balancing = 0; balancing < 2; balancing++) {
		struct nm_sim_workload workload = {0};
		(void)add_program(&workload, "stream", 1);
		const struct nm_sim_options options = {
			.seed = 1, .numa_balancing = balancing == 1, .no_pmu = true};
		struct nm_sim *sim = NULL;
		struct nm_sample_sink sink = {.on_sample = ignore_sample, .on_task = ignore_task};
		assert_int_equal(nm_sim_new(machine, &workload, &options, &sim), 0);
		steps(sim, 50);
		(void)nm_sim_feed(sim).drain(nm_sim_feed(sim).context, &sink);
		samples[balancing] = nm_sim_figures(sim).samples;
		nm_sim_free(sim);
		nm_sim_workload_clear(&workload);
	}
	assert_in_range(samples[0], 498, 501);
	assert_true(samples[1] > samples[0] + 100);
	nm_sim_machine_free(machine);
}

TEST(test_unmovable_processes_refuse)
{
	struct nm_sim_machine *machine = machine_named("ring-4x10");
	struct nm_sim_workload workload = {0};
	(void)add_program(&workload, "stream", 1);
	const struct nm_sim_options options = {.seed = 1, .unmovable_pid = 3000000};
	struct nm_sim *sim = NULL;
	assert_int_equal(nm_sim_new(machine, &workload, &options, &sim), 0);
	steps(sim, 1);
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
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

RUN_TESTS()

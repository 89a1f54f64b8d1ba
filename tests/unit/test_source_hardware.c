/* SPDX-License-Identifier: MIT */
/* Hardware sources on a fake machine: selection, the meaning of samples, and reports. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "../support/source_fixture.h"

#define INSTRUCTIONS_PERIOD 20000003U /* the first primes from the suitable periods up */
#define DRAM_PERIOD 500009U
#define LOAD_L1 0x229080142U

static void add(struct fixture *f, enum nm_memory_source source, enum nm_event_kind kind,
		unsigned index, uint16_t unit)
{
	struct nm_event_list *list = &f->fake->hardware[source];

	list->words[list->count++] = (struct nm_event_word){
		.kind = kind, .index = index, .unit = unit, .period_multiple = 1};
}

static void add_amounts(struct fixture *f, enum nm_memory_source source)
{
	add(f, source, NM_EVENT_INSTRUCTIONS, 0, 1);
	add(f, source, NM_EVENT_FLOPS, 0, 1);
	add(f, source, NM_EVENT_FLOPS, 1, 8);
	add(f, source, NM_EVENT_DRAM, 0, 64);
	add(f, source, NM_EVENT_DRAM, 1, 64);
	struct nm_event_list *list = &f->fake->hardware[source];
	list->words[list->count - 1].remote = true;
}

/* A machine with PEBS, and one with IBS. */
static void intel(struct fixture *f)
{
	add(f, NM_MEMORY_PEBS, NM_EVENT_MEMORY, 0, 0);
	add(f, NM_MEMORY_PEBS, NM_EVENT_STORE, 0, 0);
	add_amounts(f, NM_MEMORY_PEBS);
	add_amounts(f, NM_MEMORY_IBS);
	add_amounts(f, NM_MEMORY_NONE);
}

static void amd(struct fixture *f)
{
	add_amounts(f, NM_MEMORY_PEBS);
	add(f, NM_MEMORY_IBS, NM_EVENT_MEMORY, 0, 0);
	f->fake->hardware[NM_MEMORY_IBS].words[0].period_multiple = 16;
	add_amounts(f, NM_MEMORY_IBS);
	add_amounts(f, NM_MEMORY_NONE);
}

static void name_pmu(struct fixture *f)
{
	strcpy(f->config.sampling.pmu, "numalab/period=97/");
	add(f, NM_MEMORY_PMU, NM_EVENT_MEMORY, 0, 0);
	f->fake->hardware[NM_MEMORY_PMU].words[0].period = 97;
}

static const struct nm_source_status *status_of(struct fixture *f)
{
	return nm_source_status(f->source);
}

static struct fake_event *hardware(struct fixture *f, enum nm_event_kind kind, unsigned index,
				   int cpu)
{
	for (int fd = 0; fd < FAKE_FDS; fd++) {
		struct fake_event *event = &f->fake->events[fd];
		if (event->open && event->kind == kind && event->index == index &&
		    event->cpu == cpu)
			return event;
	}
	return NULL;
}

/* ---- selection ---- */

TEST(pebs_with_all_amounts)
{
	struct fixture *f = *state;

	intel(f);
	f->fake->with_leader = true;
	open_source(f);
	const struct nm_source_status *status = status_of(f);
	assert_int_equal(status->memory, NM_MEMORY_PEBS);
	assert_true(status->accesses && status->runs);
	assert_true(status->has_instructions && status->has_flops && status->has_dram);
	assert_string_equal(status->name, "clock+pebs+instructions+flops+dram");
	assert_int_equal(status->problem_count, 0);
	assert_int_equal(status->memory_period, 1009);
	/* side-band, clock, loads with leader, stores, five amounts; page faults would not add
	 * up */
	assert_int_equal(f->fake->open_count, CPUS * 10);
	assert_null(fake_find(f->fake, NM_EVENT_FAULT_MIN, 0));
	for (int cpu = 0; cpu < CPUS; cpu++) {
		assert_true(hardware(f, NM_EVENT_MEMORY, 0, cpu)->enabled);
		assert_int_equal(hardware(f, NM_EVENT_MEMORY, 0, cpu)->period, 1009);
		assert_int_equal(hardware(f, NM_EVENT_STORE, 0, cpu)->period, 100003);
		assert_int_equal(hardware(f, NM_EVENT_INSTRUCTIONS, 0, cpu)->period,
				 INSTRUCTIONS_PERIOD);
	}
}

TEST(ibs_is_used_without_pebs)
{
	struct fixture *f = *state;

	amd(f);
	open_source(f);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_IBS);
	assert_int_equal(status_of(f)->problem_count, 0);
	assert_int_equal(hardware(f, NM_EVENT_MEMORY, 0, 2)->period, 0x40000);
	assert_true(nm_source_control_cost(f->source, 0.015));
	assert_int_equal(hardware(f, NM_EVENT_MEMORY, 0, 2)->period, 0x80000); /* of 16 each */
}

TEST(a_named_event_has_priority)
{
	struct fixture *f = *state;

	intel(f);
	name_pmu(f);
	open_source(f);
	assert_string_equal(status_of(f)->name, "clock+pmu");
	assert_int_equal(hardware(f, NM_EVENT_MEMORY, 0, 0)->period, 97);
	assert_false(status_of(f)->has_instructions || status_of(f)->has_dram);
}

TEST(page_faults_are_the_last_fallback)
{
	struct fixture *f = *state;

	open_source(f);
	assert_string_equal(status_of(f)->name, "clock+faults");
	assert_int_equal(status_of(f)->memory_period, 0);
	assert_int_equal(status_of(f)->problem_count, 0);
}

TEST(amounts_beside_page_faults)
{
	struct fixture *f = *state;

	add_amounts(f, NM_MEMORY_NONE);
	open_source(f);
	assert_string_equal(status_of(f)->name, "clock+faults+instructions+flops+dram");
}

TEST(software_only_if_asked)
{
	struct fixture *f = *state;

	intel(f);
	f->config.sampling.source = NM_SOURCE_FAULTS;
	open_source(f);
	assert_string_equal(status_of(f)->name, "clock+faults");
	assert_int_equal(f->fake->open_count, CPUS * EVENTS_PER_CPU);
}

TEST(a_requested_answer_is_missed)
{
	struct fixture *f = *state;

	intel(f);
	f->config.sampling.source = NM_SOURCE_IBS;
	open_source(f);
	assert_true(has_report(f, -ENOENT, NM_EVENT_MEMORY, 1, "page faults are used"));
	assert_string_equal(status_of(f)->name, "clock+faults+instructions+flops+dram");
}

TEST(a_misspelt_pmu_is_reported)
{
	struct fixture *f = *state;

	amd(f);
	name_pmu(f);
	f->fake->list_error[NM_MEMORY_PMU] = -EINVAL;
	open_source(f);
	assert_true(has_report(f, -EINVAL, NM_EVENT_MEMORY, 1, "sampling.event"));
	assert_int_equal(status_of(f)->memory, NM_MEMORY_IBS);
}

TEST(an_older_libpfm4_is_reported)
{
	struct fixture *f = *state;

	intel(f);
	f->fake->open_error[NM_EVENT_MEMORY] = -ENOPKG;
	open_source(f);
	assert_true(has_report(f, -ENOPKG, NM_EVENT_MEMORY, 1, "libpfm4"));
	assert_int_equal(status_of(f)->memory, NM_MEMORY_NONE);
}

static void name_event(struct fixture *f)
{
	strcpy(f->config.sampling.event, "MEM_LOAD_RETIRED:L3_MISS");
	add(f, NM_MEMORY_EVENT, NM_EVENT_MEMORY, 0, 0);
}

TEST(a_named_event_before_the_tables)
{
	struct fixture *f = *state;

	intel(f);
	add(f, NM_MEMORY_EVENT, NM_EVENT_MEMORY, 0, 0);
	open_source(f);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_PEBS); /* it is not configured */
	nm_source_free(NM_TAKE(f->source));
	name_event(f);
	open_source(f);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_EVENT);
	assert_int_equal(status_of(f)->problem_count, 0);
	nm_source_free(NM_TAKE(f->source));
	f->config.sampling.source = NM_SOURCE_PEBS;
	open_source(f);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_PEBS);
}

TEST(a_misspelt_event_is_reported)
{
	struct fixture *f = *state;

	intel(f);
	name_event(f);
	f->fake->list_error[NM_MEMORY_EVENT] = -ENOPKG;
	open_source(f);
	assert_true(has_report(f, -ENOPKG, NM_EVENT_MEMORY, 1, "sampling.event unknown"));
	assert_int_equal(status_of(f)->memory, NM_MEMORY_PEBS);
}

/* Another program holds the counters: page faults are used until it releases them. */
TEST(a_counter_held_by_another_program_is_awaited)
{
	struct fixture *f = *state;

	intel(f);
	f->fake->never_runs[NM_EVENT_MEMORY] = true;
	open_source(f);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_NONE);
	assert_string_equal(status_of(f)->name, "clock+faults+instructions+flops+dram");
	assert_true(has_report(f, -EBUSY, NM_EVENT_MEMORY, 1, "held by another"));
	assert_int_equal(status_of(f)->problem_count, 1);
	assert_true(fake_get(f->fake, NM_EVENT_FAULT_MIN, 0)->enabled);
	assert_true(status_of(f)->has_instructions);
	f->fake->never_runs[NM_EVENT_MEMORY] = false;
	(void)nm_source_control_cost(f->source, 0.005);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_PEBS);
	assert_int_equal(status_of(f)->problem_count, 0);
	assert_null(fake_find(f->fake, NM_EVENT_FAULT_MIN, 0));
}

TEST(running_counters_precede_held_ones)
{
	struct fixture *f = *state;

	intel(f);
	name_pmu(f);
	add(f, NM_MEMORY_IBS, NM_EVENT_MEMORY, 0, 0);
	f->fake->hardware[NM_MEMORY_PMU].words[0].index = 7;
	f->fake->busy_index = 7;
	open_source(f);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_PEBS);
	assert_null(fake_find(f->fake, NM_EVENT_FAULT_MIN, 0));
}

/* A refused source is not requested again in each interval. */
TEST(a_fallback_source_may_be_refused)
{
	struct fixture *f = *state;

	intel(f);
	f->fake->never_runs[NM_EVENT_MEMORY] = true;
	f->fake->open_error[NM_EVENT_FAULT_MIN] = -EMFILE;
	open_source(f);
	assert_true(has_report(f, -EMFILE, NM_EVENT_FAULT_MIN, CPUS, "LimitNOFILE="));
	for (unsigned i = 0; i < 5; i++)
		(void)nm_source_control_cost(f->source, 0.005);
	assert_true(has_report(f, -EMFILE, NM_EVENT_FAULT_MIN, CPUS, "LimitNOFILE="));
	assert_non_null(fake_find(f->fake, NM_EVENT_FAULT_MAJ, 0));
}

TEST(privileges_are_reported)
{
	struct fixture *f = *state;

	intel(f);
	f->fake->open_error[NM_EVENT_MEMORY] = -EACCES;
	f->fake->open_error[NM_EVENT_STORE] = -EACCES;
	open_source(f);
	assert_true(has_report(f, -EACCES, NM_EVENT_MEMORY, 1, "numa-migrd-helper.socket"));
}

/* A source of loads works without its stores. */
TEST(stores_may_be_missing)
{
	struct fixture *f = *state;

	intel(f);
	f->fake->open_error[NM_EVENT_STORE] = -EINVAL;
	open_source(f);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_PEBS);
	assert_true(has_report(f, -EINVAL, NM_EVENT_STORE, 1, "unavailable"));
	assert_null(hardware(f, NM_EVENT_STORE, 0, 0));
}

TEST(unavailable_metrics)
{
	struct fixture *f = *state;

	intel(f);
	f->fake->never_runs[NM_EVENT_FLOPS] = true;
	f->fake->open_error[NM_EVENT_DRAM] = -ENOENT;
	open_source(f);
	assert_true(status_of(f)->has_instructions);
	assert_false(status_of(f)->has_flops || status_of(f)->has_dram);
	assert_true(has_report(f, -EBUSY, NM_EVENT_FLOPS, 1, "held by another"));
	assert_int_equal(status_of(f)->problem_count, 1); /* a missing event is not a problem */
}

TEST(a_cpu_that_differs)
{
	struct fixture *f = *state;

	intel(f);
	open_source(f);
	f->source = (nm_source_free(f->source), NULL);
	f->fake->cpu_error[3] = -ENODEV;
	open_source(f);
	assert_int_equal(status_of(f)->cpus_open, CPUS - 1);
	f->fake->cpu_error[3] = 0;
	nm_source_retarget(f->source, f->topology);
	assert_non_null(hardware(f, NM_EVENT_DRAM, 1, 3));
	assert_int_equal(status_of(f)->problem_count, 0);
}

/* ---- the meaning of a sample ---- */

static uint64_t id_of(struct fixture *f, enum nm_event_kind kind, unsigned index, int cpu)
{
	return 1000 + (uint64_t)(hardware(f, kind, index, cpu) - f->fake->events);
}

/* Drains one sample of an amount and returns it. */
static struct nm_sample sample_of(struct fixture *f, enum nm_event_kind kind, unsigned index)
{
	struct record_ring ring = fake_ring(f->fake, 1);
	struct seen seen = {0};

	record_run(&ring, id_of(f, kind, index, 1), 10, 11, 1);
	fake_publish(f->fake, 1, &ring);
	assert_int_equal(drain(f, &seen), 1);
	return seen.last;
}

TEST(samples_carry_their_amounts)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	intel(f);
	open_source(f);
	assert_int_equal(sample_of(f, NM_EVENT_INSTRUCTIONS, 0).amount, INSTRUCTIONS_PERIOD);
	assert_int_equal(sample_of(f, NM_EVENT_FLOPS, 1).amount,
			 8 * sample_of(f, NM_EVENT_FLOPS, 0).amount);
	assert_int_equal(sample_of(f, NM_EVENT_DRAM, 0).amount, 64 * DRAM_PERIOD);
	assert_false(sample_of(f, NM_EVENT_DRAM, 0).remote);
	assert_true(sample_of(f, NM_EVENT_DRAM, 1).remote);

	struct record_ring ring = fake_ring(f->fake, 1);
	record_memory(&ring, &(struct record_access){.id = id_of(f, NM_EVENT_MEMORY, 0, 1),
						     .tid = 5,
						     .address = 0x1000,
						     .weight = 33,
						     .data_src = LOAD_L1});
	fake_publish(f->fake, 1, &ring);
	assert_int_equal(drain(f, &seen), 1);
	assert_int_equal(seen.last.latency_cycles, 33);
	assert_int_equal(seen.last.level, NM_LEVEL_L1);
}

/* Cost at which the periods do not change. */
#define INDIFFERENT 0.005

TEST(shared_counters_count_for_more)
{
	struct fixture *f = *state;

	intel(f);
	open_source(f);
	assert_false(nm_source_control_cost(f->source, INDIFFERENT));
	assert_int_equal(sample_of(f, NM_EVENT_INSTRUCTIONS, 0).amount, INSTRUCTIONS_PERIOD);
	struct fake_event *event = hardware(f, NM_EVENT_INSTRUCTIONS, 0, 1);
	event->enabled_ns += 1000000;
	event->running_ns += 250000;
	assert_false(nm_source_control_cost(f->source, INDIFFERENT));
	assert_int_equal(sample_of(f, NM_EVENT_INSTRUCTIONS, 0).amount, 4 * INSTRUCTIONS_PERIOD);
	event->enabled_ns += 1000000;
	event->running_ns += 1000000;
	assert_false(nm_source_control_cost(f->source, INDIFFERENT));
	assert_int_equal(sample_of(f, NM_EVENT_INSTRUCTIONS, 0).amount, INSTRUCTIONS_PERIOD);
}

/* Periods are primes: the first ones from the eightfold of the suitable ones up. */
TEST(events_are_sampled_less_while_the_source_rests)
{
	struct fixture *f = *state;
	const uint64_t eightfold = 8 * (uint64_t)(INSTRUCTIONS_PERIOD - 3);

	intel(f);
	open_source(f);
	nm_source_rest(f->source, true);
	assert_in_range(sample_of(f, NM_EVENT_INSTRUCTIONS, 0).amount, eightfold, eightfold + 100);
	for (unsigned i = 0; i < 8; i++)
		nm_source_control_cost(f->source, 0);
	assert_in_range(sample_of(f, NM_EVENT_INSTRUCTIONS, 0).amount, eightfold, eightfold + 100);
	nm_source_rest(f->source, false);
	assert_int_equal(sample_of(f, NM_EVENT_INSTRUCTIONS, 0).amount, INSTRUCTIONS_PERIOD);
}

/* Lost records count for the interval in which they were lost, on that CPU only. */
TEST(lost_records_are_reported_per_cpu)
{
	struct fixture *f = *state;
	struct seen seen = {0};
	unsigned nr_cpus = 0;

	intel(f);
	open_source(f);
	struct record_ring ring = fake_ring(f->fake, 1);
	record_run(&ring, id_of(f, NM_EVENT_INSTRUCTIONS, 0, 1), 10, 11, 1);
	record_run(&ring, id_of(f, NM_EVENT_INSTRUCTIONS, 0, 1), 10, 11, 1);
	record_lost(&ring, id_of(f, NM_EVENT_INSTRUCTIONS, 0, 1), 4);
	record_lost_samples(&ring, id_of(f, NM_EVENT_INSTRUCTIONS, 0, 1), 2);
	fake_publish(f->fake, 1, &ring);
	drain(f, &seen);
	assert_int_equal(seen.last.amount, INSTRUCTIONS_PERIOD);
	const double *taken = nm_source_taken_per_seen(f->source, &nr_cpus);
	assert_int_equal(nr_cpus, CPUS);
	assert_true(taken[1] == 4.0);
	assert_true(taken[0] == 1.0 && taken[3] == 1.0);
	assert_true(nm_source_taken_per_seen(f->source, &nr_cpus)[1] == 1.0);
	assert_true(nm_source_control_cost(f->source, INDIFFERENT)); /* losses double the periods */
	assert_int_equal(sample_of(f, NM_EVENT_INSTRUCTIONS, 0).amount,
			 hardware(f, NM_EVENT_INSTRUCTIONS, 0, 0)->period);
}

TEST(cost_raises_all_periods)
{
	struct fixture *f = *state;

	intel(f);
	open_source(f);
	uint64_t before = hardware(f, NM_EVENT_MEMORY, 0, 3)->period;
	assert_true(nm_source_control_cost(f->source, 0.5));
	assert_true(hardware(f, NM_EVENT_MEMORY, 0, 3)->period >= 2 * before - 20);
	assert_int_equal(sample_of(f, NM_EVENT_DRAM, 0).amount,
			 64 * hardware(f, NM_EVENT_DRAM, 0, 1)->period);
	for (unsigned i = 0; i < 40; i++)
		(void)nm_source_control_cost(f->source, 0.0);
	assert_int_equal(hardware(f, NM_EVENT_MEMORY, 0, 3)->period, before);
	assert_int_equal(status_of(f)->memory_period, before);
}

/* Time advances: the events of a kind had a counter for part of it. */
static void pass(struct fixture *f, enum nm_event_kind kind, unsigned index, double share)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct fake_event *event = hardware(f, kind, index, cpu);
		event->enabled_ns += 1000000;
		event->running_ns += (uint64_t)(share * 1000000);
	}
	(void)nm_source_control_cost(f->source, INDIFFERENT);
}

#define STARVED_LOOKS 3

static void starve(struct fixture *f, enum nm_event_kind kind, unsigned index)
{
	for (unsigned look = 0; look < STARVED_LOOKS; look++)
		pass(f, kind, index, 0.0);
}

/* Returns the number of reports; the first one in `first`. */
static size_t news(struct fixture *f, struct nm_source_problem *first)
{
	size_t count;
	const struct nm_source_problem *all = nm_source_news(f->source, &count);

	if (count > 0)
		*first = all[0];
	return count;
}

TEST(a_stopped_counter_is_reported_once)
{
	struct fixture *f = *state;
	struct nm_source_problem reported_first;

	intel(f);
	open_source(f);
	assert_int_equal(news(f, &reported_first), 0);
	pass(f, NM_EVENT_FLOPS, 1, 1.0);
	pass(f, NM_EVENT_FLOPS, 1, 0.0);
	pass(f, NM_EVENT_FLOPS, 1, 0.0);
	assert_true(status_of(f)->has_flops); /* it may be waiting for its turn */
	assert_int_equal(news(f, &reported_first), 0);
	pass(f, NM_EVENT_FLOPS, 1, 0.0);
	assert_false(status_of(f)->has_flops);
	assert_true(status_of(f)->has_instructions);
	assert_true(has_report(f, -EBUSY, NM_EVENT_FLOPS, CPUS, "nmi_watchdog"));
	assert_int_equal(news(f, &reported_first), 1);
	assert_false(reported_first.over);
	assert_int_equal(reported_first.kind, NM_EVENT_FLOPS);
	assert_non_null(strstr(reported_first.text, "on CPU 0 and 3 more"));
	starve(f, NM_EVENT_FLOPS, 1);
	assert_int_equal(news(f, &reported_first), 0);

	pass(f, NM_EVENT_FLOPS, 1, 0.5);
	assert_true(status_of(f)->has_flops);
	assert_int_equal(status_of(f)->problem_count, 0);
	assert_int_equal(news(f, &reported_first), 1);
	assert_true(reported_first.over);
	assert_non_null(strstr(reported_first.text, "counting again"));
	assert_int_equal(news(f, &reported_first), 0);
	starve(f, NM_EVENT_FLOPS, 1);
	assert_int_equal(news(f, &reported_first), 1); /* a recurrence is reported */
}

/* A thread on this CPU would seem to do nothing. */
TEST(one_starved_cpu_is_enough)
{
	struct fixture *f = *state;

	intel(f);
	open_source(f);
	for (unsigned look = 0; look < STARVED_LOOKS + 1; look++) {
		hardware(f, NM_EVENT_DRAM, 1, 2)->enabled_ns += 1000000;
		hardware(f, NM_EVENT_MEMORY, 0, 2)->enabled_ns += 1000000;
		(void)nm_source_control_cost(f->source, INDIFFERENT);
	}
	assert_false(status_of(f)->has_dram);
	assert_true(has_report(f, -EBUSY, NM_EVENT_DRAM, 1, "on CPU 2:"));
	assert_int_equal(status_of(f)->memory,
			 NM_MEMORY_PEBS); /* the other CPUs are still useful */
	assert_non_null(fake_find(f->fake, NM_EVENT_FAULT_MIN, 2));
	assert_null(fake_find(f->fake, NM_EVENT_FAULT_MIN, 1));
}

/* A counter that waits while its CPU is offline is not starved. */
TEST(a_counter_of_an_offline_cpu_is_not_starved)
{
	struct fixture *f = *state;

	intel(f);
	open_source(f);
	for (unsigned look = 0; look < 3 * STARVED_LOOKS; look++)
		(void)nm_source_control_cost(f->source, INDIFFERENT);
	assert_true(status_of(f)->has_flops && status_of(f)->has_instructions);
	assert_int_equal(status_of(f)->problem_count, 0);
}

TEST(page_faults_replace_starved_accesses)
{
	struct fixture *f = *state;
	struct nm_source_problem reported_first;

	intel(f);
	open_source(f);
	unsigned open = f->fake->open_count;
	pass(f, NM_EVENT_MEMORY, 0, 1.0);
	starve(f, NM_EVENT_MEMORY, 0);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_NONE);
	assert_true(status_of(f)->accesses);
	assert_true(fake_get(f->fake, NM_EVENT_FAULT_MIN, 3)->enabled);
	assert_true(fake_get(f->fake, NM_EVENT_FAULT_MAJ, 3)->enabled);
	assert_int_equal(news(f, &reported_first), 1);
	pass(f, NM_EVENT_MEMORY, 0, 0.01);
	assert_int_equal(status_of(f)->memory, NM_MEMORY_PEBS);
	assert_null(fake_find(f->fake, NM_EVENT_FAULT_MIN, 3));
	assert_int_equal(f->fake->open_count, open);
	assert_true(sample_of(f, NM_EVENT_DRAM, 1).remote); /* the others are unchanged */
}

TEST(the_clock_replaces_starved_cycles)
{
	struct fixture *f = *state;
	double busy[CPUS] = {0};

	f->fake->max_khz = "2000000";
	f->fake->cycles_running_ns = 99 * NM_NSEC_PER_MSEC;
	open_source(f);
	for (unsigned look = 0; look < STARVED_LOOKS + 1; look++)
		pass(f, NM_EVENT_CYCLES, 0, 0.0);
	assert_true(fake_get(f->fake, NM_EVENT_CLOCK, 1)->enabled);
	assert_true(has_report(f, -EBUSY, NM_EVENT_CYCLES, CPUS, "counter held by"));
	for (unsigned i = 0; i < 10; i++)
		nm_source_follow_load(f->source, busy, CPUS);
	assert_false(fake_get(f->fake, NM_EVENT_CLOCK, 1)->enabled);
	f->fake->cycles_running_ns += 1000;
	pass(f, NM_EVENT_CYCLES, 0, 0.0);
	assert_null(fake_find(f->fake, NM_EVENT_CLOCK, 1));
	assert_true(status_of(f)->runs);
}

/* Multiplexing would wake an idle CPU repeatedly. */
TEST(multiplexed_counters_stop_on_idle_cpus)
{
	struct fixture *f = *state;
	double busy[CPUS] = {0.0, 1.0, 0.0, 0.0};

	intel(f);
	open_source(f);
	pass(f, NM_EVENT_FLOPS, 0, 1.0);
	for (unsigned i = 0; i < 5; i++)
		nm_source_follow_load(f->source, busy, CPUS);
	assert_true(hardware(f, NM_EVENT_FLOPS, 0, 0)->enabled); /* each has a counter */
	pass(f, NM_EVENT_FLOPS, 0, 0.5);
	nm_source_follow_load(f->source, busy, CPUS);
	assert_false(hardware(f, NM_EVENT_FLOPS, 0, 0)->enabled);
	assert_false(hardware(f, NM_EVENT_MEMORY, 0, 2)->enabled);
	assert_true(hardware(f, NM_EVENT_FLOPS, 0, 1)->enabled);
	for (unsigned i = 0; i < 5; i++)
		(void)nm_source_control_cost(f->source, INDIFFERENT); /* time does not advance */
	assert_true(status_of(f)->has_flops);
	busy[0] = 0.2;
	nm_source_follow_load(f->source, busy, CPUS);
	assert_true(hardware(f, NM_EVENT_FLOPS, 0, 0)->enabled);
	assert_false(hardware(f, NM_EVENT_FLOPS, 0, 3)->enabled);

	starve(f, NM_EVENT_DRAM, 0);
	busy[0] = 0.0;
	for (unsigned i = 0; i < 5; i++)
		nm_source_follow_load(f->source, busy, CPUS);
	assert_true(hardware(f, NM_EVENT_DRAM, 0, 0)->enabled); /* to detect when it counts again */
}

TEST(shared_accesses_and_runs_weigh_more)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	intel(f);
	f->fake->max_khz = "2000000";
	f->fake->cycles_running_ns = 100 * NM_NSEC_PER_MSEC;
	open_source(f);
	(void)nm_source_control_cost(f->source, INDIFFERENT);
	hardware(f, NM_EVENT_CYCLES, 0, 1)->enabled_ns = 400;
	f->fake->cycles_running_ns += 100;
	pass(f, NM_EVENT_MEMORY, 0, 0.001);
	assert_int_equal(sample_of(f, NM_EVENT_CYCLES, 0).weight, 4 * 256);
	struct record_ring ring = fake_ring(f->fake, 1);
	record_memory(&ring, &(struct record_access){.id = id_of(f, NM_EVENT_MEMORY, 0, 1),
						     .tid = 5,
						     .address = 0x1000,
						     .data_src = LOAD_L1});
	fake_publish(f->fake, 1, &ring);
	assert_int_equal(drain(f, &seen), 1);
	assert_int_equal(seen.last.weight, UINT16_MAX); /* saturated */
}

/* Refused rings are reported once, for any number of hotplug events. */
TEST(permanent_refusals_are_reported_once)
{
	struct fixture *f = *state;
	struct nm_source_problem reported_first;

	intel(f);
	f->fake->open_error[NM_EVENT_STORE] = -EINVAL;
	open_source(f);
	f->fake->cpu_error[3] = -EIO;
	f->source = (nm_source_free(f->source), NULL);
	open_source(f);
	assert_int_equal(news(f, &reported_first), 2); /* those of the trial and of CPU 3 */
	nm_source_retarget(f->source, f->topology);
	assert_int_equal(news(f, &reported_first), 0);
	f->fake->cpu_error[3] = 0;
	nm_source_retarget(f->source, f->topology);
	assert_int_equal(news(f, &reported_first), 0);
	assert_true(has_report(f, -EINVAL, NM_EVENT_STORE, 1,
			       "unavailable")); /* not the error of a ring */
	assert_int_equal(status_of(f)->problem_count, 1);
}

/* If any single call fails, there is still a source and nothing leaks. */
TEST(any_single_failure)
{
	struct fixture *f = *state;

	intel(f);
	f->fake->with_leader = true;
	open_source(f);
	unsigned calls = f->fake->calls;
	for (unsigned n = 1; n <= calls;
	     n += 3) { /* each opening has one or two trials of 100 ms */
		f->source = (nm_source_free(f->source), NULL);
		assert_int_equal(f->fake->open_count, 0);
		f->fake->calls = 0;
		f->fake->fail_call = n;
		f->fake->fail_call_error = -EIO;
		open_source(f);
		assert_true(status_of(f)->cpus_open >= CPUS - 1);
		assert_true(status_of(f)->accesses);
		assert_true(status_of(f)->problem_count > 0);
	}
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* A source on a machine with SPE: opening, draining, control and closing. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "../support/source_fixture.h"
#include "../support/spe_records.h"

#define PERIOD 0x40000

#define MIDR_NEOVERSE_N1 0x413fd0c1
#define MIDR_HIP12 0x480fd061

static void add_spe(struct fixture *f)
{
	struct nm_event_list *list = &f->fake->hardware[NM_MEMORY_SPE];

	f->fake->midr = MIDR_NEOVERSE_N1;
	list->words[list->count] = (struct nm_event_word){
		.kind = NM_EVENT_MEMORY, .index = list->count, .period_multiple = 1, .aux = true};
	list->count++;
}

static struct fake_event *spe(struct fixture *f, int cpu)
{
	return fake_get(f->fake, NM_EVENT_MEMORY, cpu);
}

static struct perf_event_mmap_page *page_of(const struct fake_event *event)
{
	return (void *)event->map;
}

/* The ring of the event, to write to; publish() shows it. */
static struct record_ring ring_of(const struct fake_event *event)
{
	return (struct record_ring){.bytes = event->map + FAKE_PAGE,
				    .size = event->map_bytes - FAKE_PAGE,
				    .head = page_of(event)->data_head};
}

static void publish(const struct fake_event *event, const struct record_ring *ring,
		    uint64_t aux_head)
{
	page_of(event)->data_head = ring->head;
	page_of(event)->aux_head = aux_head;
}

/* Hands over one load of a thread. */
static void load_by(struct fixture *f, int cpu, uint32_t pid, uint32_t tid, uint64_t flags)
{
	const struct spe_load load = {.address = 0x7000, .ticks = 100};
	struct fake_event *event = spe(f, cpu);
	struct record_ring ring = ring_of(event);
	uint64_t from = page_of(event)->aux_head;

	page_of(event)->cap_user_time_zero = 1;
	page_of(event)->time_mult = 1;
	record_switch(&ring, false, pid, tid, 50);
	spe_load_put(event->aux, event->aux_bytes, from, &load);
	record_aux(&ring, from, SPE_LOAD_BYTES, flags, 200);
	publish(event, &ring, from + SPE_LOAD_BYTES);
}

TEST(auto_uses_spe_if_there_is_no_other_source)
{
	struct fixture *f = *state;

	add_spe(f);
	open_source(f);
	const struct nm_source_status *status = nm_source_status(f->source);
	assert_int_equal(status->memory, NM_MEMORY_SPE);
	assert_string_equal(status->name, "clock+spe");
	assert_int_equal(status->memory_period, PERIOD);
	assert_int_equal(status->problem_count, 0);
	assert_null(fake_find(f->fake, NM_EVENT_FAULT_MIN, 0));
	for (int cpu = 0; cpu < CPUS; cpu++) {
		assert_true(spe(f, cpu)->enabled);
		assert_int_equal(spe(f, cpu)->period, PERIOD);
		assert_int_equal(spe(f, cpu)->aux_bytes, 16 * f->page);
		assert_int_equal(spe(f, cpu)->output, spe(f, cpu) - f->fake->events);
	}
}

TEST(samples_come_through)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	add_spe(f);
	open_source(f);
	load_by(f, 2, 40, 41, 0);
	load_by(f, 3, 50, 51, 0);
	assert_int_equal(drain(f, &seen), 2);
	assert_int_equal(seen.last.tid, 51);
	assert_int_equal(seen.last.pid, 50);
	assert_int_equal(seen.last.cpu, 3);
	assert_int_equal(seen.last.time_ns, 100);
	assert_int_equal(seen.last.level, NM_LEVEL_DRAM);
	assert_int_equal(page_of(spe(f, 3))->data_tail, page_of(spe(f, 3))->data_head);
	assert_int_equal(page_of(spe(f, 3))->aux_tail, SPE_LOAD_BYTES);
	assert_int_equal(drain(f, &seen), 0);
}

/* The same number means a cache on this machine. */
TEST(each_cpu_numbers_its_sources)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	add_spe(f);
	f->fake->midr = MIDR_HIP12;
	open_source(f);
	load_by(f, 2, 40, 41, 0);
	assert_int_equal(drain(f, &seen), 1);
	assert_int_not_equal(seen.last.level, NM_LEVEL_DRAM);
}

/* Space that the driver skipped, or whose records the ring lost, is released as well. */
TEST(the_area_is_released)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	add_spe(f);
	open_source(f);
	struct record_ring ring = ring_of(spe(f, 0));
	record_lost(&ring, 7, 3);
	publish(spe(f, 0), &ring, 4096);
	assert_int_equal(drain(f, &seen), 0);
	assert_int_equal(page_of(spe(f, 0))->aux_tail, 4096);
	assert_int_equal(nm_source_status(f->source)->counts.lost, 3);
}

TEST(the_time_being_written_is_not_read)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	add_spe(f);
	open_source(f);
	page_of(spe(f, 1))->lock = 1;
	load_by(f, 1, 40, 41, 0);
	load_by(f, 1, 40, 41, 0);
	assert_int_equal(drain(f, &seen), 0); /* the thread was not running all the time */
	page_of(spe(f, 1))->lock = 2;
	load_by(f, 1, 40, 41, 0);
	assert_int_equal(drain(f, &seen), 1);
}

TEST(held_samples_are_queried)
{
	struct fixture *f = *state;

	add_spe(f);
	open_source(f);
	nm_source_flush(f->source);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		assert_int_equal(spe(f, cpu)->flushes, 1);
		assert_true(spe(f, cpu)->enabled);
	}
}

TEST(a_full_area_starts_anew)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	add_spe(f);
	open_source(f);
	spe(f, 1)->enabled = false; /* as the kernel does */
	load_by(f, 1, 40, 41, PERF_AUX_FLAG_TRUNCATED);
	assert_int_equal(drain(f, &seen), 1);
	assert_true(spe(f, 1)->enabled);
	assert_int_equal(nm_source_status(f->source)->counts.lost, 1);
	assert_true(nm_source_control_cost(f->source, 0.0)); /* losses double the periods */
	assert_int_equal(spe(f, 1)->period, 2 * PERIOD);
}

/* Two kinds of cores: each has its own PMU. */
TEST(each_cpu_has_the_pmu_that_takes_it)
{
	struct fixture *f = *state;

	add_spe(f);
	add_spe(f);
	f->fake->index_cpus[0] = 0x3;
	f->fake->index_cpus[1] = 0xc;
	open_source(f);
	assert_int_equal(nm_source_status(f->source)->memory, NM_MEMORY_SPE);
	assert_int_equal(nm_source_status(f->source)->problem_count, 0);
	assert_int_equal(spe(f, 1)->index, 0);
	assert_int_equal(spe(f, 2)->index, 1);
}

TEST(smaller_areas_if_less_memory_may_be_locked)
{
	struct fixture *f = *state;

	add_spe(f);
	f->fake->map_error = -EPERM;
	f->fake->map_most = SIZE_MAX;
	f->fake->aux_most = 4 * f->page;
	open_source(f);
	assert_int_equal(spe(f, 0)->aux_bytes, 4 * f->page);
	f->source = (nm_source_free(f->source), NULL);
	f->fake->aux_most = f->page; /* the driver requires two */
	open_source(f);
	assert_int_equal(nm_source_status(f->source)->memory, NM_MEMORY_NONE);
	assert_true(has_report(f, -EPERM, NM_EVENT_MEMORY, 1, "LimitMEMLOCK="));
	assert_true(has_report(f, -ENOSPC, NM_EVENT_MEMORY, 1, "page faults are used"));
	assert_non_null(fake_find(f->fake, NM_EVENT_FAULT_MIN, 0));
}

TEST(another_program_holds_the_counter)
{
	struct fixture *f = *state;

	add_spe(f);
	f->fake->open_error[NM_EVENT_MEMORY] = -EBUSY;
	open_source(f);
	assert_int_equal(nm_source_status(f->source)->memory, NM_MEMORY_NONE);
	assert_true(has_report(f, -EBUSY, NM_EVENT_MEMORY, 1, "page faults are used"));
}

TEST(asked_for_by_name)
{
	struct fixture *f = *state;

	f->config.sampling.source = NM_SOURCE_SPE;
	open_source(f);
	assert_true(has_report(f, -ENOENT, NM_EVENT_MEMORY, 1, "page faults are used"));
	f->source = (nm_source_free(f->source), NULL);
	add_spe(f);
	open_source(f);
	assert_int_equal(nm_source_status(f->source)->memory, NM_MEMORY_SPE);
	assert_int_equal(spe(f, 0)->period, PERIOD);
}

/* If any single call fails, there is still a source and nothing leaks. */
TEST(any_single_failure)
{
	struct fixture *f = *state;

	add_spe(f);
	open_source(f);
	unsigned calls = f->fake->calls;
	for (unsigned n = 1; n <= calls; n++) {
		f->source = (nm_source_free(f->source), NULL);
		assert_int_equal(f->fake->open_count, 0);
		assert_int_equal(f->fake->map_count, 0);
		f->fake->calls = 0;
		f->fake->fail_call = n;
		f->fake->fail_call_error = -EIO;
		open_source(f);
		assert_true(nm_source_status(f->source)->cpus_open >= CPUS - 1);
		assert_true(nm_source_status(f->source)->accesses);
		assert_true(nm_source_status(f->source)->problem_count > 0);
	}
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* A source over a fake machine of four CPUs. Include after cmocka.h. */
#ifndef NUMA_MIGRD_TESTS_SOURCE_FIXTURE_H
#define NUMA_MIGRD_TESTS_SOURCE_FIXTURE_H

#include "fake_perf.h"
#include "machine.h"
#include "sample/sample.h"

#define CPUS 4
#define EVENTS_PER_CPU 4
#define CLOCK_PERIOD 10000019U /* the first prime above 10 ms */

struct fixture {
	struct fake_perf *fake;
	struct nm_topology *topology;
	struct nm_config config;
	struct nm_source *source;
	char error[256];
	size_t page;
};

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->fake = calloc(1, sizeof(*f->fake));
	f->topology = machine_topology(2, CPUS);
	assert_non_null(f->fake);
	assert_non_null(f->topology);
	f->fake->platform.ops = &fake_perf_ops;
	f->config.sampling.source = NM_SOURCE_AUTO;
	f->config.sampling.overhead_percent = 1.0;
	f->page = (size_t)sysconf(_SC_PAGESIZE);
	f->config.rules.ring_kb = 16 * f->page / 1024;
	*state = f;
	return 0;
}

/* Checks that nothing stays open. */
static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	nm_source_free(f->source);
	assert_int_equal(f->fake->open_count, 0);
	assert_int_equal(f->fake->map_count, 0);
	nm_topology_free(f->topology);
	free(f->fake);
	free(f);
	return 0;
}

static inline int try_open(struct fixture *f)
{
	return nm_source_open(&f->fake->platform, f->topology, &f->config, f->error,
			      sizeof(f->error), &f->source);
}

static inline void open_source(struct fixture *f)
{
	assert_int_equal(try_open(f), 0);
	assert_non_null(f->source);
}

static inline bool has_report(struct fixture *f, int error, enum nm_event_kind kind, unsigned count,
			      const char *words)
{
	const struct nm_source_status *status = nm_source_status(f->source);

	for (size_t i = 0; i < status->problem_count; i++) {
		const struct nm_source_problem *problem = &status->problems[i];
		if (problem->error == error && problem->kind == kind && problem->count == count &&
		    strstr(problem->text, words))
			return true;
	}
	return false;
}

struct seen {
	struct nm_sample last;
	unsigned samples, tasks;
};

static inline void see_sample(void *context, struct nm_sample *sample)
{
	struct seen *seen = context;

	seen->last = *sample;
	seen->samples++;
}

static inline void see_task(void *context, const struct nm_task_event *event)
{
	(void)event;
	((struct seen *)context)->tasks++;
}

static inline size_t drain(struct fixture *f, struct seen *seen)
{
	const struct nm_sample_sink sink = {
		.context = seen, .on_sample = see_sample, .on_task = see_task};

	return nm_source_drain(f->source, &sink);
}

#endif

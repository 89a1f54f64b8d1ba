/* SPDX-License-Identifier: MIT */
/* Opening, draining and closing: if a part is refused, the others continue. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include <poll.h>
#include <sys/resource.h>

#include "../support/source_fixture.h"

/* ---- opening ---- */

TEST(opens_all_on_every_cpu)
{
	struct fixture *f = *state;

	open_source(f);
	assert_int_equal(f->fake->open_count, CPUS * EVENTS_PER_CPU);
	assert_int_equal(f->fake->map_count, CPUS);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct fake_event *leader = fake_get(f->fake, NM_EVENT_SIDEBAND, cpu);
		struct fake_event *clock = fake_get(f->fake, NM_EVENT_CLOCK, cpu);
		struct fake_event *minor = fake_get(f->fake, NM_EVENT_FAULT_MIN, cpu);
		struct fake_event *major = fake_get(f->fake, NM_EVENT_FAULT_MAJ, cpu);
		assert_true(leader->enabled && clock->enabled && minor->enabled && major->enabled);
		assert_int_equal(leader->period, 4 * f->page); /* wakes at 25 % */
		assert_int_equal(clock->period, CLOCK_PERIOD);
		assert_int_equal(minor->period, 1);
		assert_ptr_equal(&f->fake->events[clock->output], leader);
		assert_ptr_equal(&f->fake->events[minor->output], leader);
		assert_ptr_equal(&f->fake->events[major->output], leader);
	}
	const struct nm_source_status *status = nm_source_status(f->source);
	assert_true(status->runs && status->accesses && !status->has_cycles);
	assert_int_equal(status->cpus_open, CPUS);
	assert_int_equal(status->clock_period, CLOCK_PERIOD);
	assert_true(status->run_sample_ns == CLOCK_PERIOD);
	assert_int_equal(status->fault_period, 1);
	assert_int_equal(status->problem_count, 0);
}

TEST(raises_the_limit_of_open_files)
{
	struct fixture *f = *state;
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 512 ? limit.rlim_max : 512;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	open_source(f);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(limit.rlim_cur == limit.rlim_max);
}

TEST(leaves_isolated_cpus_alone)
{
	struct fixture *f = *state;

	hwloc_bitmap_clr(f->topology->usable, 2);
	open_source(f);
	assert_int_equal(nm_source_status(f->source)->cpus_open, CPUS - 1);
	for (int kind = 0; kind < NM_EVENT_KIND_MAX; kind++)
		assert_null(fake_find(f->fake, (enum nm_event_kind)kind, 2));
}

TEST(no_usable_cpu_at_all)
{
	struct fixture *f = *state;

	hwloc_bitmap_zero(f->topology->usable);
	assert_int_equal(try_open(f), -ENODEV);
	assert_null(f->source);
	assert_non_null(strstr(f->error, "isolated or offline"));
}

TEST(source_none_opens_nothing)
{
	struct fixture *f = *state;

	f->config.sampling.source = NM_SOURCE_NONE;
	open_source(f);
	assert_int_equal(f->fake->open_count, 0);
	nm_source_retarget(f->source, f->topology);
	assert_int_equal(f->fake->open_count, 0);
	assert_false(nm_source_status(f->source)->runs);
	assert_false(nm_source_status(f->source)->accesses);
	assert_true(nm_source_status(f->source)->run_sample_ns == 0.0);
}

/* ---- refusals ---- */

TEST(refused_everywhere)
{
	struct fixture *f = *state;

	for (int kind = 0; kind < NM_EVENT_KIND_MAX; kind++)
		f->fake->open_error[kind] = -EACCES;
	assert_int_equal(try_open(f), -EACCES);
	assert_null(f->source);
	assert_non_null(strstr(f->error, "CAP_PERFMON"));
	assert_non_null(strstr(f->error, "numa-migrd-helper.socket"));
	assert_non_null(strstr(f->error, "CPU 0 and 3 more"));
}

TEST(refusal_for_faults)
{
	struct fixture *f = *state;

	f->fake->open_error[NM_EVENT_FAULT_MIN] = -EACCES;
	f->fake->open_error[NM_EVENT_FAULT_MAJ] = -EACCES;
	open_source(f);
	const struct nm_source_status *status = nm_source_status(f->source);
	assert_true(status->runs);
	assert_false(status->accesses);
	assert_int_equal(status->problem_count, 2);
	assert_true(has_report(f, -EACCES, NM_EVENT_FAULT_MIN, CPUS,
			       "minor page faults on CPU 0 and 3"));
}

TEST(refusal_for_the_clock)
{
	struct fixture *f = *state;
	const double busy[CPUS] = {0};

	f->fake->open_error[NM_EVENT_CLOCK] = -EIO;
	open_source(f);
	assert_false(nm_source_status(f->source)->runs);
	assert_true(nm_source_status(f->source)->accesses);
	assert_true(has_report(f, -EIO, NM_EVENT_CLOCK, CPUS, "Input/output error"));
	for (unsigned i = 0; i < 5; i++)
		nm_source_follow_load(f->source, busy, CPUS);
}

TEST(out_of_files)
{
	struct fixture *f = *state;

	f->fake->opens_allowed = 6;
	open_source(f);
	const struct nm_source_status *status = nm_source_status(f->source);
	assert_int_equal(status->cpus_open, 2);
	assert_true(status->runs && status->accesses);
	assert_true(has_report(f, -EMFILE, NM_EVENT_SIDEBAND, 2, "LimitNOFILE="));
	assert_true(has_report(f, -EMFILE, NM_EVENT_FAULT_MIN, 1, "LimitNOFILE="));
}

TEST(an_offline_cpu_returns)
{
	struct fixture *f = *state;

	f->fake->cpu_error[2] = -ENODEV;
	open_source(f);
	assert_int_equal(nm_source_status(f->source)->cpus_open, CPUS - 1);
	assert_true(has_report(f, -ENODEV, NM_EVENT_SIDEBAND, 1, "CPU 2: CPU offline"));

	f->fake->cpu_error[2] = 0;
	nm_source_retarget(f->source, f->topology);
	assert_int_equal(nm_source_status(f->source)->cpus_open, CPUS);
	assert_int_equal(nm_source_status(f->source)->problem_count, 0);
}

TEST(a_smaller_ring_if_less_memory_may_be_locked)
{
	struct fixture *f = *state;

	f->fake->map_most = 4 * f->page;
	f->fake->map_error = -EPERM;
	open_source(f);
	assert_int_equal(nm_source_status(f->source)->cpus_open, CPUS);
	assert_true(has_report(f, -EPERM, NM_EVENT_SIDEBAND, CPUS, "LimitMEMLOCK="));
	assert_int_equal(fake_ring(f->fake, 1).size, 4 * f->page);
	assert_int_equal(fake_get(f->fake, NM_EVENT_SIDEBAND, 1)->period, f->page);
}

TEST(no_ring_at_all)
{
	struct fixture *f = *state;

	f->fake->map_error = -ENOMEM;
	assert_int_equal(try_open(f), -ENOMEM);
	assert_non_null(strstr(f->error, "no memory for the buffer"));
	f->fake->map_error = -EIO;
	assert_int_equal(try_open(f), -EIO);
}

/* If any single call fails, the others continue and nothing leaks. */
TEST(any_single_failure)
{
	struct fixture *f = *state;

	open_source(f);
	unsigned calls = f->fake->calls;
	assert_true(calls > 50);
	for (unsigned n = 1; n <= calls; n++) {
		f->source = (nm_source_free(f->source), NULL);
		f->fake->calls = 0;
		f->fake->fail_call = n;
		f->fake->fail_call_error = -EIO;
		open_source(f);
		const struct nm_source_status *status = nm_source_status(f->source);
		assert_true(status->cpus_open >= CPUS - 1);
		assert_int_equal(status->problem_count, 1);
		assert_int_equal(status->problems[0].error, -EIO);
		assert_int_equal(status->problems[0].first_cpu, (n - 1) / (calls / CPUS));
	}
}

TEST(texts_have_a_cause_and_no_stop)
{
	static const int errors[] = {-EACCES, -EPERM,	     -ENODEV,	 -EMFILE, -ENFILE,
				     -ENOENT, -EOPNOTSUPP,   -ENOSYS,	 -EBUSY,  -EINVAL,
				     -ENOMEM, -ECONNREFUSED, -ETIMEDOUT, -EIO,	  -ENOSPC};
	struct fixture *f = *state;

	for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
		f->fake->open_error[NM_EVENT_CLOCK] = errors[i];
		f->source = (nm_source_free(f->source), NULL);
		open_source(f);
		const struct nm_source_status *status = nm_source_status(f->source);
		assert_int_equal(status->problem_count, 1);
		const char *text = status->problems[0].text;
		assert_in_range(strlen(text), 40, sizeof(status->problems[0].text) - 2);
		assert_int_not_equal(text[strlen(text) - 1], '.');
	}
}

/* ---- draining ---- */

TEST(drains_every_ring)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	open_source(f);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct record_ring ring = fake_ring(f->fake, cpu);
		record_run(&ring, fake_id(f->fake, NM_EVENT_CLOCK, cpu), 10, 11, 1);
		record_fault(&ring, fake_id(f->fake, NM_EVENT_FAULT_MIN, cpu), 10, 11, 2, 0x1000,
			     0x2000);
		record_fork_exit(&ring, true, (const uint32_t[]){10, 10, 12, 11}, 3);
		fake_publish(f->fake, cpu, &ring);
	}
	assert_int_equal(drain(f, &seen), 3 * CPUS);
	assert_int_equal(seen.samples, 2 * CPUS);
	assert_int_equal(seen.tasks, CPUS);
	assert_int_equal(seen.last.cpu, CPUS - 1);
	assert_int_equal(seen.last.kind, NM_EVENT_FAULT_MIN);
	for (int cpu = 0; cpu < CPUS; cpu++)
		assert_true(fake_page(f->fake, cpu)->data_tail ==
			    fake_page(f->fake, cpu)->data_head);
	assert_int_equal(drain(f, &seen), 0);
	assert_int_equal(nm_source_status(f->source)->counts.samples, 2 * CPUS);
}

/* More than the size of a ring in many passes: positions keep increasing and records wrap. */
TEST(rings_wrap)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	open_source(f);
	uint64_t id = fake_id(f->fake, NM_EVENT_FAULT_MAJ, 1);
	for (unsigned pass = 0; pass < 100; pass++) {
		struct record_ring ring = fake_ring(f->fake, 1);
		for (unsigned i = 0; i < 37; i++)
			record_fault(&ring, id, 10, 11, pass, 0x1000, 0x2000);
		fake_publish(f->fake, 1, &ring);
		assert_int_equal(drain(f, &seen), 37);
		assert_int_equal(seen.last.time_ns, pass);
	}
	assert_int_equal(nm_source_status(f->source)->counts.corrupt, 0);
}

TEST(wakes_through_its_fd)
{
	struct fixture *f = *state;

	open_source(f);
	struct pollfd waiting = {.fd = nm_source_fd(f->source), .events = POLLIN};
	assert_int_equal(poll(&waiting, 1, 0), 0);
	struct fake_event *leader = fake_get(f->fake, NM_EVENT_SIDEBAND, 3);
	assert_int_equal(eventfd_write((int)(leader - f->fake->events), 1), 0);
	assert_int_equal(poll(&waiting, 1, 1000), 1);
}

/* ---- hotplug ---- */

TEST(follows_hotplug)
{
	struct fixture *f = *state;

	open_source(f);
	struct fake_event *kept = fake_get(f->fake, NM_EVENT_CLOCK, 0);
	hwloc_bitmap_clr(f->topology->usable, 1);
	nm_source_retarget(f->source, f->topology);
	assert_int_equal(f->fake->open_count, (CPUS - 1) * EVENTS_PER_CPU);
	assert_null(fake_find(f->fake, NM_EVENT_CLOCK, 1));
	assert_ptr_equal(fake_get(f->fake, NM_EVENT_CLOCK, 0), kept);

	nm_auto(nm_topology_freep) struct nm_topology *larger = machine_topology(2, 16);
	assert_non_null(larger);
	nm_source_retarget(f->source, larger);
	assert_int_equal(nm_source_status(f->source)->cpus_open, 16);
	assert_true(fake_get(f->fake, NM_EVENT_CLOCK, 15)->enabled);
	nm_source_retarget(f->source, f->topology);
	assert_int_equal(nm_source_status(f->source)->cpus_open, CPUS - 1);
}

TEST(tries_the_incomplete_again)
{
	struct fixture *f = *state;

	f->fake->open_error[NM_EVENT_FAULT_MIN] = -EACCES;
	open_source(f);
	nm_source_retarget(f->source, f->topology);
	assert_true(has_report(f, -EACCES, NM_EVENT_FAULT_MIN, CPUS, "minor page faults"));
	f->fake->open_error[NM_EVENT_FAULT_MIN] = 0;
	nm_source_retarget(f->source, f->topology);
	assert_true(nm_source_status(f->source)->accesses);
	assert_int_equal(nm_source_status(f->source)->problem_count, 0);
}

RUN_TESTS()

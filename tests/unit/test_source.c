/* SPDX-License-Identifier: MIT */
/* Opening, draining and closing: if a part is refused, the others continue. */
#define SET_UP open_words
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <poll.h>
#include <sys/resource.h>

#include "source_words.h"

/* ---- opening ---- */

static bool goes_to_leader(const struct step *step)
{
	const struct fake_event *event = event_of(step);
	return event->output >= 0 &&
	       &f->fake->events[event->output] == fake_get(f->fake, NM_EVENT_SIDEBAND, event->cpu);
}

QUANTITY(to_leader, goes_to_leader(step))

#define ALL_OF(cpu)                                                                                \
	"enabled sideband " cpu " = 1; enabled clock " cpu " = 1; enabled minor " cpu              \
	" = 1; enabled major " cpu " = 1; to_leader clock " cpu " = 1; to_leader minor " cpu       \
	" = 1; to_leader major " cpu " = 1; period sideband " cpu " = page*4; period clock " cpu   \
	" = 10000019; period minor " cpu " = 1"

/* A ring wakes the daemon when it is 25 % full. */
SCRIPT(opens_all_on_every_cpu, "open; open_count = 16; rings = 4; keep page = page_size",
       ALL_OF("cpu0"), ALL_OF("cpu1"), ALL_OF("cpu2"), ALL_OF("cpu3"),
       "runs = 1; accesses = 1; has_cycles = 0; cpus_open = 4",
       "clock_period = 10000019; run_sample_ns = 10000019; fault_period = 1; problems = 0")

TEST(raises_the_limit_of_open_files)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 512 ? limit.rlim_max : 512;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	open_source(f);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(limit.rlim_cur == limit.rlim_max);
}

SCRIPT(leaves_isolated_cpus_alone,
       "isolate cpu2; open; cpus_open = 3; is_open sideband cpu2 = 0; is_open clock cpu2 = 0",
       "is_open minor cpu2 = 0; is_open major cpu2 = 0; open_count = 12")

SCRIPT(no_usable_cpu_at_all, "isolate_all; refused ENODEV; why ~ isolated or offline")

SCRIPT(source_none_opens_nothing,
       "set source = none; open; open_count = 0; retarget; open_count = 0; runs = 0; accesses = 0",
       "run_sample_ns = 0")

/* ---- refusals ---- */

WORD(refuse_all)
{
	for (int kind = 0; kind < NM_EVENT_KIND_MAX; kind++)
		f->fake->open_error[kind] = -EACCES;
}

SCRIPT(refused_everywhere,
       "refuse_all; refused EACCES; why ~ CAP_PERFMON; why ~ numa-migrd-helper.socket",
       "why ~ CPU 0 and 3 more")

SCRIPT(refusal_for_faults,
       "set open_error minor = EACCES; set open_error major = EACCES; open; runs = 1",
       "accesses = 0; problems = 2; report minor EACCES 4 minor page faults on CPU 0 and 3")

SCRIPT(refusal_for_the_clock, "set open_error clock = EIO; open; runs = 0; accesses = 1",
       "report clock EIO 4 Input/output error", "each 5: load 0")

SCRIPT(out_of_files, "set opens_allowed = 6; open; cpus_open = 2; runs = 1; accesses = 1",
       "report sideband EMFILE 2 LimitNOFILE=; report minor EMFILE 1 LimitNOFILE=")

SCRIPT(an_offline_cpu_returns,
       "set cpu_error 2 = ENODEV; open; cpus_open = 3; report sideband ENODEV 1 CPU 2: CPU offline",
       "set cpu_error 2 = 0; retarget; cpus_open = 4; problems = 0")

SCRIPT(a_smaller_ring_if_less_memory_may_be_locked,
       "keep page = page_size; set map_most = page*4; set map_error = EPERM; open; cpus_open = 4",
       "report sideband EPERM 4 LimitMEMLOCK=; ring_bytes cpu1 = page*4",
       "period sideband cpu1 = page")

SCRIPT(no_ring_at_all, "set map_error = ENOMEM; refused ENOMEM; why ~ no memory for the buffer",
       "set map_error = EIO; refused EIO")

/* If any single call fails, the others continue and nothing leaks. */
TEST(any_single_failure)
{
	open_source(f);
	unsigned calls = f->fake->calls;
	assert_true(calls > 50);
	for (unsigned n = 1; n <= calls; n++) {
		f->source = (nm_source_free(f->source), NULL);
		f->fake->calls = 0;
		f->fake->fail_call = n;
		f->fake->fail_call_error = -EIO;
		open_source(f);
		assert_true(status()->cpus_open >= CPUS - 1);
		assert_int_equal(status()->problem_count, 1);
		assert_int_equal(status()->problems[0].error, -EIO);
		assert_int_equal(status()->problems[0].first_cpu, (n - 1) / (calls / CPUS));
	}
}

TEST(texts_have_a_cause_and_no_stop)
{
	static const int errors[] = {-EACCES, -EPERM,	     -ENODEV,	 -EMFILE, -ENFILE,
				     -ENOENT, -EOPNOTSUPP,   -ENOSYS,	 -EBUSY,  -EINVAL,
				     -ENOMEM, -ECONNREFUSED, -ETIMEDOUT, -EIO,	  -ENOSPC};
	for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
		f->fake->open_error[NM_EVENT_CLOCK] = errors[i];
		f->source = (nm_source_free(f->source), NULL);
		open_source(f);
		assert_int_equal(status()->problem_count, 1);
		const char *text = status()->problems[0].text;
		assert_in_range(strlen(text), 40, sizeof(status()->problems[0].text) - 2);
		assert_int_not_equal(text[strlen(text) - 1], '.');
	}
}

/* ---- draining ---- */

TEST(drains_every_ring)
{
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
	assert_int_equal(status()->counts.samples, 2 * CPUS);
}

/* More than the size of a ring in many passes: positions keep increasing and records wrap. */
TEST(rings_wrap)
{
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
	assert_int_equal(status()->counts.corrupt, 0);
}

TEST(wakes_through_its_fd)
{
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
	assert_int_equal(status()->cpus_open, 16);
	assert_true(fake_get(f->fake, NM_EVENT_CLOCK, 15)->enabled);
	nm_source_retarget(f->source, f->topology);
	assert_int_equal(status()->cpus_open, CPUS - 1);
}

SCRIPT(tries_the_incomplete_again,
       "set open_error minor = EACCES; open; retarget; report minor EACCES 4 minor page faults",
       "set open_error minor = 0; retarget; accesses = 1; problems = 0")

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/fake_ask.h"
#include "numa-migrd/sample.h"

#define MB 1000000ULL
#define RATE 100.0 /* MB/s */

struct fake {
	struct nm_platform platform;
	uint32_t order[64]; /* requested pids */
	size_t calls;
	uint32_t failing_pid;
	int failure;
	uint64_t now_ns, ns_per_megabyte; /* duration of a protection */
};

static int fake_clear_refs(struct nm_platform *platform, pid_t pid, uint64_t start_ticks)
{
	struct fake *fake = NM_CONTAINER_OF(platform, struct fake, platform);

	assert_int_equal(start_ticks, 1000 + pid);
	assert_true(fake->calls < NM_ARRAY_SIZE(fake->order));
	fake->now_ns += fake->ns_per_megabyte * 10; /* every target in the tests has 10 MB */
	fake->order[fake->calls++] = (uint32_t)pid;
	return (uint32_t)pid == fake->failing_pid ? fake->failure : 0;
}

static uint64_t fake_now(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct fake, platform)->now_ns;
}

static const struct nm_platform_ops ops = {FAKE_ASK, .clear_refs = fake_clear_refs,
					   .now_ns = fake_now};

static struct nm_inject_target target(uint32_t pid, uint64_t megabytes)
{
	return (struct nm_inject_target){
		.pid = pid, .start_ticks = 1000 + pid, .resident_bytes = megabytes * MB};
}

/* Runs until N seconds after the start. */
static int inject(struct nm_injector *injector, struct fake *fake,
		  const struct nm_inject_target *targets, size_t count, double seconds)
{
	uint64_t now = NM_NSEC_PER_SEC + (uint64_t)(seconds * 1e9);

	return nm_inject_soft_dirty(injector, &fake->platform, targets, count, RATE, now);
}

static void nothing_to_protect(void **state)
{
	struct fake fake = {.platform.ops = &ops};
	struct nm_injector injector = {0};

	(void)state;
	assert_int_equal(inject(&injector, &fake, NULL, 0, 0), 0);
	assert_int_equal(fake.calls, 0);
}

static void round_robin_over_targets(void **state)
{
	const struct nm_inject_target targets[] = {target(10, 60), target(20, 40), target(30, 50)};
	struct fake fake = {.platform.ops = &ops};
	struct nm_injector injector = {0};

	(void)state;
	assert_int_equal(inject(&injector, &fake, targets, 3, 0), 2);
	assert_int_equal(inject(&injector, &fake, targets, 3, 0.5), 1);
	assert_int_equal(inject(&injector, &fake, targets, 3, 1.1), 1);
	const uint32_t expected[] = {10, 20, 30, 10};
	assert_int_equal(fake.calls, 4);
	assert_memory_equal(fake.order, expected, sizeof(expected));
	assert_int_equal(injector.last_pid, 10);
}

static void each_descriptor_is_returned_once_per_call(void **state)
{
	const struct nm_inject_target targets[] = {target(10, 1), target(20, 1)};
	struct fake fake = {.platform.ops = &ops};
	struct nm_injector injector = {0};

	(void)state;
	assert_int_equal(inject(&injector, &fake, targets, 2, 0), 2);
	assert_int_equal(fake.calls, 2);
}

/* Over many calls the rate is kept for any sizes. */
static void keeps_the_rate(void **state)
{
	const struct nm_inject_target targets[] = {target(10, 7), target(20, 30), target(30, 90)};
	const unsigned seconds = 30;
	struct fake fake = {.platform.ops = &ops};
	struct nm_injector injector = {0};
	uint64_t megabytes = 0;

	(void)state;
	for (unsigned i = 0; i <= seconds * 4; i++) {
		fake.calls = 0;
		(void)inject(&injector, &fake, targets, 3, i / 4.0);
		for (size_t k = 0; k < fake.calls; k++)
			megabytes += targets[fake.order[k] / 10 - 1].resident_bytes / MB;
	}
	assert_in_range(megabytes, 100 * seconds - 100, 100 * (seconds + 1));
}

static void a_large_target_waits_and_then_has_its_turn(void **state)
{
	const struct nm_inject_target targets[] = {target(10, 350), target(20, 10)};
	struct fake fake = {.platform.ops = &ops};
	struct nm_injector injector = {0};

	(void)state;
	assert_int_equal(inject(&injector, &fake, targets, 2, 0), 0);
	assert_int_equal(inject(&injector, &fake, targets, 2, 1), 0);
	assert_int_equal(inject(&injector, &fake, targets, 2, 2), 0);
	assert_int_equal(inject(&injector, &fake, targets, 2, 3), 1);
	assert_int_equal(inject(&injector, &fake, targets, 2, 3.5), 1);
	assert_int_equal(fake.order[0], 10);
	assert_int_equal(fake.order[1], 20);
}

/* Credit is limited to one second, so that no burst follows a pause. */
static void no_storm_after_a_pause(void **state)
{
	const struct nm_inject_target targets[] = {target(10, 60), target(20, 60), target(30, 60)};
	struct fake fake = {.platform.ops = &ops};
	struct nm_injector injector = {0};

	(void)state;
	assert_int_equal(inject(&injector, &fake, targets, 3, 0), 1);
	assert_int_equal(inject(&injector, &fake, targets, 3, 1000), 1);
}

static void exited_and_refused_processes_are_skipped(void **state)
{
	const struct nm_inject_target targets[] = {target(10, 10), target(20, 10), target(30, 10)};
	struct fake fake = {.platform.ops = &ops, .failing_pid = 20, .failure = -ESRCH};
	struct nm_injector injector = {0};

	(void)state;
	assert_int_equal(inject(&injector, &fake, targets, 3, 0), 2);
	assert_int_equal(injector.last_error, 0);
	fake.failure = -EBUSY;
	assert_int_equal(inject(&injector, &fake, targets, 3, 1), 2);
	assert_int_equal(injector.last_error, -EBUSY);
	assert_int_equal(fake.calls, 6);
}

static void injection_resumes_after_targets_change(void **state)
{
	const struct nm_inject_target before[] = {target(10, 60), target(20, 60)};
	const struct nm_inject_target after[] = {target(5, 60), target(15, 60)};
	struct fake fake = {.platform.ops = &ops};
	struct nm_injector injector = {0};

	(void)state;
	assert_int_equal(inject(&injector, &fake, before, 2, 0), 1);
	assert_int_equal(inject(&injector, &fake, after, 2, 1), 1);
	assert_int_equal(inject(&injector, &fake, after, 2, 2), 1);
	const uint32_t expected[] = {10, 15, 5};
	assert_memory_equal(fake.order, expected, sizeof(expected));
}

/* A write cannot be interrupted, so one that would take too long is not begun. */
static void oversized_processes_are_skipped(void **state)
{
	const struct nm_inject_target ten = target(10, 10);
	const struct nm_inject_target both[] = {target(10, 10), target(20, 3000)};
	struct fake fake = {.platform.ops = &ops, .ns_per_megabyte = 40000};
	struct nm_injector injector = {0};

	(void)state;
	assert_int_equal(nm_inject_soft_dirty(&injector, &fake.platform, &both[1], 1, 1e6, 1), 0);
	assert_int_equal(injector.too_large, 1);
	assert_int_equal(fake.calls, 0);
	/* A measurement shows that it is faster: 30 µs/MB × 3,000 MB = 90 ms. */
	fake.ns_per_megabyte = 30000;
	assert_int_equal(nm_inject_soft_dirty(&injector, &fake.platform, &ten, 1, 1e6, 2), 1);
	assert_int_equal(nm_inject_soft_dirty(&injector, &fake.platform, &both[1], 1, 1e6, 3), 1);
	/* Load of other programs neither delays small processes nor is charged to the large one. */
	fake.ns_per_megabyte = 30000000;
	assert_int_equal(nm_inject_soft_dirty(&injector, &fake.platform, both, 2, 1e6, 4), 2);
	assert_int_equal(injector.too_large, 1);
}

/* ---- the probe, on this process ---- */

static ssize_t read_own_stat(struct nm_platform *platform, int directory, const char *path,
			     char *buffer, size_t size)
{
	(void)platform, (void)directory, (void)path;
	int length = snprintf(
		buffer, size,
		"1 (self) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0 0 0 0 0 0 0 0 0 0 "
		"0 0 0 0 17 0 0 0 0 0\n");
	return length;
}

static int open_nothing(struct nm_platform *platform, int directory, const char *path)
{
	(void)platform, (void)directory, (void)path;
	return 3;
}

static void close_nothing(struct nm_platform *platform, int fd)
{
	(void)platform, (void)fd;
}

/* After a fork every page is copied on write: the next write faults, as after a real protection. */
static int protect_by_fork(struct nm_platform *platform, pid_t pid, uint64_t start_ticks)
{
	(void)platform;
	assert_int_equal(pid, getpid());
	assert_int_equal(start_ticks, 77);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return 0;
}

static int protect_nothing(struct nm_platform *platform, pid_t pid, uint64_t start_ticks)
{
	(void)platform, (void)pid, (void)start_ticks;
	return 0;
}

static int protect_refused(struct nm_platform *platform, pid_t pid, uint64_t start_ticks)
{
	(void)platform, (void)pid, (void)start_ticks;
	return -EPERM;
}

static int run_probe_with(int (*clear_refs)(struct nm_platform *, pid_t, uint64_t))
{
	const struct nm_platform_ops probe_ops = {.open_directory = open_nothing,
						  .read_file = read_own_stat,
						  .close = close_nothing,
						  .clear_refs = clear_refs};
	struct nm_platform platform = {.ops = &probe_ops};
	return nm_inject_probe(&platform);
}

static void the_probe_checks_the_effect(void **state)
{
	(void)state;
	assert_int_equal(run_probe_with(protect_by_fork), 0);
	assert_int_equal(run_probe_with(protect_nothing), -EOPNOTSUPP);
	assert_int_equal(run_probe_with(protect_refused), -EPERM);
}

/* A page fault costs 2.3 µs for each 4 KiB. */
static void page_faults_stay_below_the_overhead_limit(void **state)
{
	(void)state;
	struct nm_config config = {.sampling.overhead_percent = 1};
	double faults_per_s = nm_inject_rate(&config) * 1e6 / 4096;
	assert_true(faults_per_s * 2300 > 0.00999e9 && faults_per_s * 2300 < 0.01001e9);
	config.sampling.overhead_percent = 100;
	assert_true(nm_inject_rate(&config) == 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_faults_stay_below_the_overhead_limit),
		cmocka_unit_test(nothing_to_protect),
		cmocka_unit_test(round_robin_over_targets),
		cmocka_unit_test(each_descriptor_is_returned_once_per_call),
		cmocka_unit_test(keeps_the_rate),
		cmocka_unit_test(a_large_target_waits_and_then_has_its_turn),
		cmocka_unit_test(no_storm_after_a_pause),
		cmocka_unit_test(exited_and_refused_processes_are_skipped),
		cmocka_unit_test(injection_resumes_after_targets_change),
		cmocka_unit_test(oversized_processes_are_skipped),
		cmocka_unit_test(the_probe_checks_the_effect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

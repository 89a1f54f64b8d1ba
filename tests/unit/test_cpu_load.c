/* SPDX-License-Identifier: MIT */
/* The load of CPUs, from a long /proc/stat. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "platform/hardware.h"

#define CPUS 64

static struct nm_platform platform;
static struct nm_cpu_load load;
static char *stat_text;

static ssize_t give_stat(struct nm_platform *ignored, int directory, const char *path, char *buffer,
			 size_t size)
{
	(void)ignored;
	assert_int_equal(directory, NM_ROOT);
	assert_string_equal(path, "proc/stat");
	size_t length = strlen(stat_text);
	if (length >= size)
		return -EFBIG;
	memcpy(buffer, stat_text, length + 1);
	return (ssize_t)length;
}

static const struct nm_platform_ops ops = {.read_file = give_stat};

static int set_up(void **state)
{
	(void)state;
	platform.ops = &ops;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_cpu_load_clear(&load);
	free(stat_text);
	stat_text = NULL;
	return 0;
}

/* Each CPU was busy for `busy` ticks and idle for as many; `more` zeros follow. */
static void write_stat(unsigned busy, size_t more)
{
	free(stat_text);
	size_t used = 0, size = CPUS * 64 + 2 * more + 16;
	stat_text = calloc(1, size);
	assert_non_null(stat_text);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		used += (size_t)snprintf(stat_text + used, size - used, "cpu%u %u 0 0 %u 0 0 0 0\n",
					 cpu, busy, busy);
	used += (size_t)snprintf(stat_text + used, size - used, "intr 0");
	for (size_t i = 0; i < more; i++, used += 2)
		memcpy(stat_text + used, " 0", 3);
}

static void assert_half_busy(void)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		assert_true(load.busy_share[cpu] == 0.5);
}

/* On a machine with many interrupts their counts follow those of the CPUs on one line. */
TEST(a_long_file_is_read_whole)
{
	for (unsigned more = 1; more <= 4U << 20; more *= 4) {
		write_stat(1000, more);
		nm_cpu_load_read(&load, &platform, CPUS);
		write_stat(2000, more);
		nm_cpu_load_read(&load, &platform, CPUS);
		assert_half_busy();
	}
}

/* The length is limited: then the load is unknown, and no CPU counts as idle. */
TEST(an_endless_file_is_rejected)
{
	write_stat(1000, 16U << 20);
	for (unsigned i = 0; i < 2; i++)
		nm_cpu_load_read(&load, &platform, CPUS);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		assert_true(isnan(load.busy_share[cpu]));
}

/* Times of CPU 0: user, idle, and of waiting for input and output. */
static double share_after(unsigned user, unsigned idle, unsigned iowait)
{
	free(stat_text);
	assert_true(asprintf(&stat_text, "cpu0 %u 0 0 %u %u 0 0 0\nintr 0\n", user, idle, iowait) >
		    0);
	nm_cpu_load_read(&load, &platform, 1);
	return load.busy_share[0];
}

/* That of iowait may, by the documentation of the kernel, and those of a new CPU begin at 0. */
TEST(counters_that_go_back_show_nothing)
{
	assert_true(isnan(share_after(1000, 1000, 100)));
	assert_true(share_after(1010, 1010, 100) == 0.5);
	assert_true(isnan(share_after(1010, 1010, 90))); /* iowait */
	assert_true(isnan(share_after(1020, 1015, 80))); /* by more than it was idle */
	assert_true(share_after(1030, 1030, 75) == 0.5); /* by less */
	assert_true(isnan(share_after(1020, 1050, 75))); /* user time */
	assert_true(isnan(share_after(5, 5, 0)));	 /* all */
	assert_true(share_after(10, 5, 0) == 1);
	assert_true(isnan(share_after(10, 5, 0))); /* none passed */
}

RUN_TESTS()

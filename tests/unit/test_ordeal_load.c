/* SPDX-License-Identifier: MIT */
/* The load of CPUs, from a long /proc/stat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "../support/machine.h"
#include "ordeal_fixture.h"

#define FEW 2
#define MANY 64

static struct nm_platform platform;
static struct nm_daemon load_daemon;
static struct nm_topology *few, *many;
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
	memset(&load_daemon, 0, sizeof(load_daemon));
	memset(&gate, 0, sizeof(gate));
	platform.ops = &ops;
	few = machine_topology(1, FEW);
	many = machine_topology(1, MANY);
	load_daemon.pipeline.platform = &platform;
	load_daemon.pipeline.topology = few;
	return few && many ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	gate.on = false;
	nm_topology_free(few);
	nm_topology_free(many);
	free(load_daemon.machine.cpu_times);
	free(load_daemon.machine.busy_share);
	free(stat_text);
	stat_text = NULL;
	return 0;
}

/* Each CPU was busy for `busy` ticks and idle for as many; `more` zeros follow. */
static void write_stat(unsigned busy, size_t more)
{
	free(stat_text);
	size_t used = 0, size = MANY * 64 + 2 * more + 16;
	stat_text = calloc(1, size);
	assert_non_null(stat_text);
	for (unsigned cpu = 0; cpu < MANY; cpu++)
		used += (size_t)snprintf(stat_text + used, size - used, "cpu%u %u 0 0 %u 0 0 0 0\n",
					 cpu, busy, busy);
	used += (size_t)snprintf(stat_text + used, size - used, "intr 0");
	for (size_t i = 0; i < more; i++, used += 2)
		memcpy(stat_text + used, " 0", 3);
}

static void assert_half_busy(void)
{
	for (unsigned cpu = 0; cpu < MANY; cpu++)
		assert_true(load_daemon.machine.busy_share[cpu] == 0.5);
}

/* On a machine with many interrupts their counts follow those of the CPUs on one line. */
static void a_long_file_is_read_whole(void **state)
{
	(void)state;
	load_daemon.pipeline.topology = many;
	for (unsigned more = 1; more <= 4U << 20; more *= 4) {
		write_stat(1000, more);
		nm_machine_read_load(&load_daemon);
		write_stat(2000, more);
		nm_machine_read_load(&load_daemon);
		assert_half_busy();
	}
}

/* The length is limited: then the load is unknown, and no CPU counts as idle. */
static void an_endless_file_is_rejected(void **state)
{
	(void)state;
	load_daemon.pipeline.topology = many;
	write_stat(1000, 16U << 20);
	for (unsigned i = 0; i < 2; i++)
		nm_machine_read_load(&load_daemon);
	for (unsigned cpu = 0; cpu < MANY; cpu++)
		assert_true(isnan(load_daemon.machine.busy_share[cpu]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(a_long_file_is_read_whole),
		TEST(an_endless_file_is_rejected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

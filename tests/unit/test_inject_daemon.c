/* SPDX-License-Identifier: MIT */
/* Log messages if memory accesses cannot be made visible. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "fake_mover.h"
#include "ticks_fixture.h"

#define BALANCING                                                                                  \
	"targets: { min_cpu_percent = 0; min_rss_mb = 1; };\n"                                     \
	"parameters: { general: { interval_s = 0.1; }; "                                           \
	"sampling: { inject = \"numa_balancing\"; }; };\n"

static struct world *world;
static struct nm_daemon *service;
static struct nm_platform_ops ops;
static int balancing_error, balancing, kept_stderr;

static int set_balancing(struct nm_platform *platform, int value)
{
	(void)platform;
	if (balancing_error)
		return balancing_error;
	balancing = value;
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	world = world_new();
	fake_mover = (struct fake_mover){0};
	world_worker(world, 100, 1);
	fake_sleep(world->fake, 60000);
	ops = *world->platform.ops;
	ops.numa_balancing_set = set_balancing;
	world->platform.ops = &ops;
	balancing_error = 0;
	balancing = -1;
	kept_stderr = world_mute(world);
	service = service_open(world);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	service_close(service);
	world_unmute(kept_stderr);
	world_free(world);
	return 0;
}

static void reload(const char *settings)
{
	world_configure(world, settings);
	assert_int_equal(nm_command_reload(service, NULL, 0), 0);
}

TEST(each_refusal_has_its_remedy)
{
	static const struct {
		int error;
		const char *remedy;
	} refusals[] = {
		{-EPERM, "Operation not permitted; allow it in /etc/numa-migrd.conf"},
		{-EACCES, "denied; check numa-migrd-helper.socket"},
		{-ECONNREFUSED, "refused; check numa-migrd-helper.socket"},
		{-EIO, "error; see systemctl status numa-migrd-helper"},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(refusals); i++) {
		balancing_error = refusals[i].error;
		reload(BALANCING);
		assert_true(service->machine.balancing_unusable);
		world_assert_logged(world, refusals[i].remedy);
	}
}

/* The helper is started for the request, and may be delayed on a busy machine. */
TEST(a_slow_helper_is_retried)
{
	balancing_error = -ETIMEDOUT;
	reload("parameters: { sampling: { inject = \"numa_balancing\"; }; };");
	assert_false(service->machine.balancing_unusable);
	world_assert_logged(world, "helper too slow, retrying in a minute");
	assert_int_equal(nm_tick(service), 0);
	assert_int_equal(balancing, -1);
	balancing_error = 0;
	assert_int_equal(nm_tick(service), 0);
	assert_int_equal(balancing, 1);
}

/* A configured but refused injection shows no accesses. */
TEST(a_refused_injection_means_no_sampling_source)
{
	balancing_error = -EPERM;
	reload(BALANCING);
	assert_true(nm_lacks_accesses(service));
	assert_non_null(strstr(service->reported.status, "Only first touches sampled: "));
	world_assert_logged(world, "; only first touches sampled");
	balancing_error = 0;
	reload(BALANCING);
	assert_false(nm_lacks_accesses(service));
}

/* The configuration of the helper may change, and it may exit, at any time. */
TEST(an_injection_that_ends_is_reported)
{
	reload(BALANCING);
	assert_int_equal(nm_tick(service), 0);
	assert_false(nm_lacks_accesses(service));
	balancing_error = -EPERM;
	assert_int_equal(nm_tick(service), 0);
	assert_true(nm_lacks_accesses(service));
	world_assert_logged(world, "; only first touches sampled");
	nm_pipeline_open_source(service);
	assert_int_equal(nm_tick(service), 0);
	world_assert_logged(world, "; fix parameters.sampling.inject, or set it to ");
}

TEST(balancing_that_cannot_be_switched_is_reported)
{
	balancing_error = -EPERM;
	reload(BALANCING);
	assert_true(service->machine.balancing_unusable);
	world_assert_logged(world, "kernel.numa_balancing = 1 refused: ");
	balancing_error = 0;
	reload(BALANCING);
	assert_false(service->machine.balancing_unusable);
	assert_int_equal(balancing, 1);
	reload(WORLD_SETTINGS);
	assert_int_equal(balancing, -1);
}

RUN_TESTS()

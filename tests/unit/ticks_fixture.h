/* SPDX-License-Identifier: MIT */
/* A daemon on the machine of whole_daemon_fixture.h that makes a tick when the test requests it.
 * Include after cmocka.h. */
#ifndef NM_TEST_TICKS_FIXTURE_H
#define NM_TEST_TICKS_FIXTURE_H

#include "whole_daemon_fixture.h"

static inline struct nm_daemon *service_open(struct world *world)
{
	struct nm_config_errors errors = {0};
	struct nm_daemon *service = calloc(1, sizeof(*service));
	assert_non_null(service);
	service->options = world->options;
	service->next_decision = 1;
	service->runtime.directory = -1;
	nm_journal_new(&service->journal);
	nm_released_list_new(&service->runtime.released);
	nm_unresponsive_list_new(&service->runtime.unresponsive);
	assert_int_equal(
		nm_config_load(&world->options.config, geteuid(), &errors, &service->config), 0);
	nm_rng_seed(&service->rng, 1);
	assert_int_equal(nm_runtime_open(&service->runtime), 0);
	assert_true(nm_runtime_restore(&service->runtime, &service->options, service->journal, nm_report_move, service) >= 0);
	nm_runtime_load_unresponsive(&service->runtime, service->journal);
	assert_int_equal(nm_pipeline_open(service), 0);
	nm_runtime_load_released(&service->runtime, service->pipeline.platform, service->journal);
	return service;
}

static inline void service_close(struct nm_daemon *service)
{
	if (!service->paused)
		nm_pipeline_close(service);
	nm_runtime_close(&service->runtime, true);
	nm_pipeline_clear(service);
	nm_unresponsive_list_free(service->runtime.unresponsive);
	nm_config_free(service->config);
	free(service);
}

#endif

// SPDX-License-Identifier: MIT
/* Serves one request: validates it, checks it against root's configuration, and performs it. */
#include "privileged.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "numa-migrd/config.h"
#include "numa-migrd/platform.h"

#define CPU_MAX (1 << 16)

/* Reads root's configuration. Returns 0, or -EPERM if there is none or it is not valid. */
static int read_root_config(const struct nm_helper_context *context, struct nm_config **ret)
{
	struct nm_config_errors errors = {0};
	int r = context->config.path ? nm_config_load(&context->config, 0, &errors, ret) : -EPERM;
	nm_config_errors_clear(&errors);
	return r < 0 ? -EPERM : r;
}

/* Only root's configuration determines the value of sampling.event, for any
 * client. */
static int read_named(const struct nm_helper_context *context, struct nm_event_selection *selection,
		      struct nm_config **ret)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;

	if (selection->source != NM_MEMORY_PMU && selection->source != NM_MEMORY_EVENT)
		return 0;
	int r = read_root_config(context, &config);
	if (r < 0)
		return r;
	selection->pmu = config->sampling.pmu;
	selection->event = config->sampling.event;
	if (!(selection->source == NM_MEMORY_PMU ? selection->pmu : selection->event)[0])
		return -EPERM;
	*ret = NM_TAKE(config);
	return 0;
}

static int serve_open_event(const struct nm_helper_context *context,
			    const struct nm_helper_request *request, struct nm_event_fds *ret)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;

	if (request->kind >= NM_EVENT_KIND_MAX || request->cpu < 0 || request->cpu >= CPU_MAX ||
	    request->index >= NM_EVENT_LIST_MAX || request->source >= NM_MEMORY_SOURCE_MAX ||
	    request->load_latency > NM_LOAD_LATENCY_MAX)
		return -EINVAL;
	struct nm_event_request event = {
		.kind = (enum nm_event_kind)request->kind,
		.index = request->index,
		.cpu = request->cpu,
		.period = request->period,
		.selection = {.source = (enum nm_memory_source)request->source,
			      .load_latency = request->load_latency},
	};
	int r = read_named(context, &event.selection, &config);
	return r < 0 ? r : nm_event_open(context->root_fd, &event, ret);
}

/* Balancing may be enabled, so that its faults show accesses, or disabled, so that it does not move
 * the pages that we move. */
static bool may_set_balancing(const struct nm_config *config, int value)
{
	if (config->sampling.inject == NM_INJECT_NUMA_BALANCING)
		return true;
	return value == 0 && config->pages.policy == NM_PAGES_EXCLUSIVITY &&
	       config->pages.numa_balancing == NM_BALANCING_MANAGE;
}

static int serve_numa_balancing(const struct nm_helper_context *context,
				const struct nm_helper_request *request)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;

	if (request->value < -1 || request->value > 1)
		return -EINVAL;
	if (request->value == -1)
		return nm_helper_restore(context);
	int r = read_root_config(context, &config);
	if (r < 0)
		return r;
	if (!may_set_balancing(config, request->value))
		return -EPERM;
	return nm_numa_balancing_set(context, request->value == 1);
}

int nm_helper_serve(const struct nm_helper_context *context,
		    const struct nm_helper_request *request, struct nm_event_fds *ret_fds)
{
	*ret_fds = (struct nm_event_fds){-1, -1};
	if (request->version != NM_HELPER_VERSION)
		return -EPROTO;
	switch (request->act) {
	case NM_HELPER_OPEN_EVENT:
		return serve_open_event(context, request, ret_fds);
	case NM_HELPER_NUMA_BALANCING:
		return serve_numa_balancing(context, request);
	default:
		return -EINVAL;
	}
}

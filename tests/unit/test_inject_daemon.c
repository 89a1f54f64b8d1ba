/* SPDX-License-Identifier: MIT */
/* Log messages if memory accesses cannot be made visible. */
#define SET_UP set_up
#define TEAR_DOWN close_ticks
#include "../support/test.h"

#include "ticks_words.h"

static int refusal, switched;
static unsigned requests;

static int set_balancing(struct nm_platform *platform, int value)
{
	(void)platform;
	requests++;
	if (refusal)
		return refusal;
	switched = value;
	return 0;
}

static int set_up(void **state)
{
	int r = open_ticks(state);
	struct nm_platform_ops ops = *world->platform.ops;
	ops.numa_balancing_set = set_balancing;
	change_ops(ops);
	refusal = 0;
	switched = -1;
	return r;
}

/* The log, with "," instead of ";", which would end a step. */
static const char *log_with_commas(void)
{
	static char text[65536];
	snprintf(text, sizeof(text), "%s", world_logged(world));
	for (char *at = text; (at = strchr(at, ';')); at++)
		*at = ',';
	return text;
}

TEXT(logged, log_with_commas())
KNOB(refusal, refusal)
QUANTITY(switched, switched)
QUANTITY(requests, requests)
QUANTITY(unusable, service->machine.balancing_unusable)
QUANTITY(lacks_accesses, nm_lacks_accesses(service))
TEXT(line, service->reported.status)
ACTION(open_source, nm_pipeline_open_source(service))

/* Settings that inject. */
ACTION(inject, world_configure(world, "targets: { min_cpu_percent = 0; min_rss_mb = 1; };\n"
				      "parameters: { general: { interval_s = 0.1; }; "
				      "sampling: { inject = \"numa_balancing\"; }; };\n"))

#define INJECT "inject; reload = 0; "
#define REFUSED(error, remedy) "set refusal = " error "; " INJECT "unusable = 1; logged ~ " remedy

SCRIPT(each_refusal_has_its_remedy,
       REFUSED("EPERM", "Operation not permitted, allow it in /etc/numa-migrd.conf"),
       REFUSED("EACCES", "denied, check numa-migrd-helper.socket"),
       REFUSED("ECONNREFUSED", "refused, check numa-migrd-helper.socket"),
       REFUSED("EIO", "error, see systemctl status numa-migrd-helper"))

/* The helper is started for the request, and may be delayed on a busy machine. */
SCRIPT(a_slow_helper_is_retried,
       "set refusal = ETIMEDOUT; " INJECT "unusable = 0; tick 1; switched = -1; set refusal = 0",
       "log ~ helper too slow, retrying in a minute; tick 1; switched = 1")

/* A configured but refused injection shows no accesses, and is not requested again. */
SCRIPT(a_refused_injection_means_no_sampling_source,
       "set refusal = EPERM; " INJECT "lacks_accesses = 1; line ~ Only first touches sampled: ",
       "logged ~ , only first touches sampled; keep n = requests; tick 3; requests = n",
       "set refusal = 0; " INJECT "lacks_accesses = 0; tick 3; requests = n+4")

/* The configuration of the helper may change, and it may exit, at any time. */
SCRIPT(an_injection_that_ends_is_reported,
       INJECT "tick 1; lacks_accesses = 0; set refusal = EPERM; tick 1; lacks_accesses = 1",
       "logged ~ , only first touches sampled; open_source; tick 1",
       "logged ~ , fix parameters.sampling.inject, or set it to ")

SCRIPT(balancing_that_cannot_be_switched_is_reported,
       "set refusal = EPERM; " INJECT "unusable = 1; log ~ kernel.numa_balancing = 1 refused: ",
       "set refusal = 0; " INJECT "unusable = 0; switched = 1; write ; reload = 0; switched = -1")

RUN_TESTS()

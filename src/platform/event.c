// SPDX-License-Identifier: MIT
#include "platform/event.h"

#include <errno.h>

#include "numa-migrd/base.h"

struct event_type {
	const char *name;
	uint32_t type;
	uint64_t config;
	uint64_t period_min, period_max;
	uint64_t sample_type; /* in addition to ALL_SAMPLE */
};

#define FAULT_SAMPLE (PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE)

static const struct event_type event_types[NM_EVENT_KIND_MAX] = {
	[NM_EVENT_SIDEBAND] = {"side-band", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 1, 1ULL << 30,
			       0},
	[NM_EVENT_CLOCK] = {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK,
			    NM_NSEC_PER_MSEC, NM_NSEC_PER_SEC, 0},
	[NM_EVENT_CYCLES] = {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 100000ULL,
			     100000000000ULL, 0},
	[NM_EVENT_FAULT_MIN] = {"page-faults-min", PERF_TYPE_SOFTWARE,
				PERF_COUNT_SW_PAGE_FAULTS_MIN, 1, 1000000ULL, FAULT_SAMPLE},
	[NM_EVENT_FAULT_MAJ] = {"page-faults-maj", PERF_TYPE_SOFTWARE,
				PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1, 1000000ULL, FAULT_SAMPLE},
	/* These have no range of periods, because only nm_event_word_attr() opens them. */
	[NM_EVENT_MEMORY] = {.name = "memory", .period_min = UINT64_MAX},
	[NM_EVENT_STORE] = {.name = "stores", .period_min = UINT64_MAX},
	[NM_EVENT_INSTRUCTIONS] = {.name = "instructions", .period_min = UINT64_MAX},
	[NM_EVENT_FLOPS] = {.name = "flops", .period_min = UINT64_MAX},
	[NM_EVENT_DRAM] = {.name = "dram", .period_min = UINT64_MAX},
};

#define ALL_SAMPLE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define ACCESS_SAMPLE                                                                              \
	(PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR)
#define READ_FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)
/* Space for 256 context switches. */
#define SWITCH_WAKEUP_BYTES 16384
#define AMOUNT_PERIOD_MIN 1000ULL
#define ACCESS_PERIOD_MIN 16ULL
#define WORD_PERIOD_MAX 1000000000000ULL

static const struct event_type *event_type(enum nm_event_kind kind)
{
	return (unsigned)kind < NM_EVENT_KIND_MAX ? &event_types[kind] : NULL;
}

const char *nm_event_name(enum nm_event_kind kind)
{
	const struct event_type *type = event_type(kind);

	return type ? type->name : "unknown";
}

int nm_event_attr(enum nm_event_kind kind, uint64_t period, struct perf_event_attr *ret)
{
	const struct event_type *type = event_type(kind);

	if (!type || period < type->period_min || period > type->period_max)
		return -EINVAL;
	struct perf_event_attr attr = {
		.type = type->type,
		.size = sizeof(attr),
		.config = type->config,
		.sample_type = ALL_SAMPLE | type->sample_type,
		.read_format = READ_FORMAT,
		.disabled = 1,
		.sample_id_all = 1,
	};
	if (kind == NM_EVENT_SIDEBAND) {
		attr.task = attr.comm = attr.comm_exec = 1;
		attr.watermark = 1;
		attr.wakeup_watermark = (uint32_t)period;
	} else {
		attr.sample_period = period;
	}
	/* Only the clock can exclude idle: arm64's PMU refuses the flag, and idle CPUs have no
	 * cycles. */
	attr.exclude_idle = kind == NM_EVENT_CLOCK;
	*ret = attr;
	return 0;
}

const char *nm_memory_source_name(enum nm_memory_source source)
{
	static const char *const names[NM_MEMORY_SOURCE_MAX] = {"none", "pebs", "ibs",
								"pmu",	"spe",	"event"};

	return (unsigned)source < NM_MEMORY_SOURCE_MAX ? names[source] : "unknown";
}

int nm_event_word_attr(const struct nm_event_word *word, uint64_t period,
		       struct perf_event_attr *ret)
{
	if (period < (word->unit ? AMOUNT_PERIOD_MIN : ACCESS_PERIOD_MIN) ||
	    period > WORD_PERIOD_MAX)
		return -EINVAL;
	struct perf_event_attr attr = {
		.type = word->type,
		.size = sizeof(*ret),
		.config = word->config,
		.config1 = word->config1,
		.config2 = word->config2,
		.sample_type = ALL_SAMPLE | (word->unit || word->aux ? 0 : ACCESS_SAMPLE),
		.sample_period = period - period % word->period_multiple,
		.read_format = READ_FORMAT,
		.disabled = 1,
		.sample_id_all = 1,
		.precise_ip = word->precise ? 3 : 0,
		.exclude_kernel = word->user_only,
		/* Addresses inside a guest mean nothing here, and PEBS cannot sample there. */
		.exclude_guest = word->precise,
		.context_switch = word->aux,
		.watermark = word->aux,
	};
	if (word->aux)
		attr.wakeup_watermark = SWITCH_WAKEUP_BYTES;
	*ret = attr;
	return 0;
}

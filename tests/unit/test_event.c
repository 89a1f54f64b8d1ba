/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <stdint.h>

#include <string.h>

#include "numa-migrd/base.h"
#include "platform/event.h"

#define ALL_SAMPLES (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

static struct perf_event_attr attr_of(enum nm_event_kind kind, uint64_t period)
{
	struct perf_event_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	assert_int_equal(nm_event_attr(kind, period, &attr), 0);
	assert_int_equal(attr.size, sizeof(attr));
	assert_true(attr.disabled);
	assert_true(attr.sample_id_all);
	assert_false(attr.inherit);
	assert_false(attr.freq);
	assert_false(attr.exclude_kernel);
	assert_int_equal(attr.sample_type & ALL_SAMPLES, ALL_SAMPLES);
	assert_int_equal(attr.sample_type & PERF_SAMPLE_PERIOD, 0);
	assert_int_equal(attr.read_format,
			 PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	return attr;
}

TEST(sideband_leads_the_ring)
{
	struct perf_event_attr attr = attr_of(NM_EVENT_SIDEBAND, 131072);

	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_DUMMY);
	assert_true(attr.task && attr.comm && attr.comm_exec && attr.watermark);
	assert_int_equal(attr.wakeup_watermark, 131072);
	assert_int_equal(attr.sample_period, 0);
}

TEST(clock_leaves_idle_out)
{
	struct perf_event_attr attr = attr_of(NM_EVENT_CLOCK, 10007000);

	assert_int_equal(attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(attr.sample_period, 10007000);
	assert_true(attr.exclude_idle);
	assert_false(attr.task || attr.comm);
	assert_int_equal(attr.sample_type, ALL_SAMPLES);
}

TEST(cycles_come_from_the_pmu)
{
	struct perf_event_attr attr = attr_of(NM_EVENT_CYCLES, 20000003);

	assert_int_equal(attr.type, PERF_TYPE_HARDWARE);
	assert_int_equal(attr.config, PERF_COUNT_HW_CPU_CYCLES);
	assert_false(attr.exclude_idle);
}

TEST(faults_carry_both_addresses)
{
	const uint64_t addresses =
		PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
	struct perf_event_attr minor = attr_of(NM_EVENT_FAULT_MIN, 1);
	struct perf_event_attr major = attr_of(NM_EVENT_FAULT_MAJ, 7);

	assert_int_equal(minor.config, PERF_COUNT_SW_PAGE_FAULTS_MIN);
	assert_int_equal(major.config, PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	assert_int_equal(minor.sample_type, ALL_SAMPLES | addresses);
	assert_int_equal(major.sample_type, ALL_SAMPLES | addresses);
	assert_int_equal(major.sample_period, 7);
}

TEST(periods_have_bounds)
{
	static const struct {
		enum nm_event_kind kind;
		uint64_t low, high;
	} bounds[] = {
		{NM_EVENT_SIDEBAND, 1, 1ULL << 30},	 {NM_EVENT_CLOCK, 1000000, 1000000000},
		{NM_EVENT_CYCLES, 100000, 100000000000}, {NM_EVENT_FAULT_MIN, 1, 1000000},
		{NM_EVENT_FAULT_MAJ, 1, 1000000},
	};
	struct perf_event_attr attr = {.config = 77};

	for (size_t i = 0; i < NM_ARRAY_SIZE(bounds); i++) {
		assert_int_equal(nm_event_attr(bounds[i].kind, bounds[i].low - 1, &attr), -EINVAL);
		assert_int_equal(nm_event_attr(bounds[i].kind, bounds[i].high + 1, &attr), -EINVAL);
		assert_int_equal(nm_event_attr(bounds[i].kind, UINT64_MAX, &attr), -EINVAL);
	}
	assert_int_equal(attr.config, 77);
	for (size_t i = 0; i < NM_ARRAY_SIZE(bounds); i++) {
		assert_int_equal(nm_event_attr(bounds[i].kind, bounds[i].low, &attr), 0);
		assert_int_equal(nm_event_attr(bounds[i].kind, bounds[i].high, &attr), 0);
	}
}

TEST(unknown_kinds_are_refused)
{
	struct perf_event_attr attr;

	assert_int_equal(nm_event_attr(NM_EVENT_KIND_MAX, 1000000, &attr), -EINVAL);
	assert_int_equal(nm_event_attr((enum nm_event_kind) - 1, 1000000, &attr), -EINVAL);
	assert_string_equal(nm_event_name(NM_EVENT_KIND_MAX), "unknown");
}

TEST(names_differ)
{
	for (int a = 0; a < NM_EVENT_KIND_MAX; a++)
		for (int b = 0; b < a; b++)
			assert_string_not_equal(nm_event_name((enum nm_event_kind)a),
						nm_event_name((enum nm_event_kind)b));
}

RUN_TESTS()

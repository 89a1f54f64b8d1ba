/* SPDX-License-Identifier: MIT */
/* The encodings by libpfm4 of every row of every event table, in any environment. */
#include "../support/test.h"

#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numa-migrd/base.h"
#include "platform/event.h"

#define LATENCY 30U

/* The same as in the tables of Linux and Intel; config1 is that of the DRAM events. */
/* clang-format off */
static const struct expected {
	const char *table;
	uint64_t config[NM_EVENT_LIST_MAX], config1[2];
} all_expected[] = {
	{"generic", {0x1, 0x3}, {0}},
	{"snb", {0x1cd, 0x2cd, 0xc0, 0x8010, 0x2010, 0x1010, 0x4010, 0x211, 0x111, 0x412e}, {0}},
	{"snb_ep", {0x1cd, 0x2cd, 0xc0, 0x8010, 0x2010, 0x1010, 0x4010, 0x211, 0x111, 0x1b7, 0x1b7},
	 {0x3f80400091, 0x3fff800091}},
	{"ivb", {0x1cd, 0x2cd, 0xc0, 0x8010, 0x2010, 0x1010, 0x4010, 0x211, 0x111, 0x412e}, {0}},
	{"ivb_ep", {0x1cd, 0x2cd, 0xc0, 0x8010, 0x2010, 0x1010, 0x4010, 0x211, 0x111, 0x1b7, 0x1b7},
	 {0x3f80400091, 0x3fff800091}},
	{"hsw", {0x1cd, 0x82d0, 0xc0, 0x412e}, {0}},
	{"hsw_ep", {0x1cd, 0x82d0, 0xc0, 0x1b7, 0x1b7}, {0x3f80400091, 0x3fb8000091}},
	{"bdw", {0x1cd, 0x82d0, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x20c7, 0x412e}, {0}},
	{"bdw_ep", {0x1cd, 0x82d0, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x20c7, 0x1b7, 0x1b7},
	 {0x3f84000091, 0x3fb8000091}},
	{"skl", {0x1cd, 0x82d0, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x20c7, 0x412e}, {0}},
	{"skx", {0x1cd, 0x82d0, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x60c7, 0x80c7, 0x1b7, 0x1b7},
	 {0x3f84000491, 0x3f90000491}},
	{"icl", {0x1cd, 0x82d0, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x60c7, 0x80c7, 0x412e}, {0}},
	{"icx", {0x1cd, 0x82d0, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x60c7, 0x80c7, 0x1b7, 0x1b7},
	 {0x104000477, 0x730000477}},
	{"adl", {0x1cd, 0x2cd, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x20c7, 0x412e}, {0}},
	{"spr", {0x1cd, 0x2cd, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x60c7, 0x80c7, 0x12a, 0x12a},
	 {0x104004477, 0x730004477}},
	{"emr", {0x1cd, 0x2cd, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x60c7, 0x80c7, 0x12a, 0x12a},
	 {0x104004477, 0x730004477}},
	{"gnr", {0x1cd, 0x2cd, 0xc0, 0x3c7, 0x4c7, 0x18c7, 0x60c7, 0x80c7, 0x12a, 0x12a},
	 {0x104004477, 0x730004477}},
	{"zen1", {0xc0, 0xff03, 0x843, 0x4043}, {0}},
	{"zen2", {0xc0, 0xf03, 0x843, 0x85a, 0x4043, 0x405a}, {0}},
	{"zen3", {0xc0, 0xf03, 0x844, 0x4044}, {0}},
	{"zen4", {0xc0, 0x1f03, 0x844, 0x4044}, {0}},
	{"zen5", {0xc0, 0xf03, 0x844, 0x4044}, {0}},
};
/* clang-format on */

/* Variables of libpfm4 that would disable encoding or enable debug output. */
static const char *const hostile[][2] = {
	{"LIBPFM_FORCE_PMU", "z80"},  {"LIBPFM_DISABLED_PMUS", "s,h,b,i,a"},
	{"LIBPFM_VERBOSE", "1"},      {"LIBPFM_DEBUG", "9"},
	{"LIBPFM_DEBUG_STDOUT", "1"}, {"LIBPFM_PROC_CPUINFO", "/"},
};

static int begin(void **state)
{
	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(hostile); i++)
		if (setenv(hostile[i][0], hostile[i][1], 1) < 0)
			return -1;
	return 0;
}

static const struct expected *expected_of(const struct nm_event_table *table)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(all_expected); i++)
		if (strcmp(all_expected[i].table, table->name) == 0)
			return &all_expected[i];
	fail_msg("%s: its encodings are missing in all_expected", table->name);
	return NULL;
}

static bool is_expected(const struct nm_event_table *table, size_t row,
			const struct nm_event_word *word)
{
	const struct expected *expected = expected_of(table);
	size_t dram = 0;

	for (size_t i = 0; i < row; i++)
		dram += table->rows[i].kind == NM_EVENT_DRAM;
	uint64_t config1 = word->kind == NM_EVENT_MEMORY ? LATENCY
			   : word->kind == NM_EVENT_DRAM ? expected->config1[dram % 2]
							 : 0;
	uint32_t type = strcmp(table->name, "generic") == 0 ? PERF_TYPE_HARDWARE : PERF_TYPE_RAW;
	return !word->unencoded && word->type == type && word->config == expected->config[row] &&
	       word->config1 == config1;
}

static void require_expected(const struct nm_event_table *table, size_t row,
			     const struct nm_event_word *word)
{
	if (!is_expected(table, row, word))
		fail_msg("%s: %s: %s, type %u config %#llx config1 %#llx", table->name,
			 table->rows[row].name, word->remark ? word->remark : "encoded", word->type,
			 (unsigned long long)word->config, (unsigned long long)word->config1);
}

/* As the daemon and the helper do. */
/* SECURITY: open-event */
TEST(every_row_has_its_encoding)
{
	size_t encoded = 0, raw = 0;
	struct nm_event_word word;

	for (size_t i = 0; i < nm_event_table_count; i++) {
		const struct nm_event_table *table = &nm_event_tables[i];
		for (size_t k = 0; k < table->count; k++) {
			(void)nm_event_row_encode(table, &table->rows[k], LATENCY, &word);
			require_expected(table, k, &word);
			assert_true(!word.remark == !table->rows[k].raw);
			raw += table->rows[k].raw != NULL;
			encoded += table->rows[k].raw == NULL;
		}
	}
	assert_int_equal(NM_ARRAY_SIZE(all_expected), nm_event_table_count);
	print_message("%zu rows in %zu tables: libpfm4 encodes %zu, %zu have a raw value\n",
		      encoded + raw, nm_event_table_count, encoded, raw);
}

static struct nm_event_table with_pmu(const struct nm_event_table *table, const char *pmu)
{
	struct nm_event_table other = *table;

	other.pfm[0] = pmu;
	return other;
}

/* libpfm4 of Debian 13 has separate PMUs for some CPUs, that of Debian 12 does not. */
static bool knows(const struct nm_event_table *table, const char *pmu)
{
	const struct nm_event_table other = with_pmu(table, pmu);
	struct nm_event_word word;

	for (size_t k = 0; k < table->count; k++) {
		struct nm_event_row row = table->rows[k];
		row.raw = NULL;
		if (nm_event_row_encode(&other, &row, LATENCY, &word) == 0)
			return true;
	}
	return false;
}

TEST(a_second_pmu_has_the_same_encodings)
{
	size_t known = 0;
	struct nm_event_word word;

	for (size_t i = 0; i < nm_event_table_count; i++) {
		const struct nm_event_table *table = &nm_event_tables[i];
		if (!table->pfm[1] || !knows(table, table->pfm[1]))
			continue;
		const struct nm_event_table other = with_pmu(table, table->pfm[1]);
		for (size_t k = 0; k < table->count; k++) {
			(void)nm_event_row_encode(&other, &table->rows[k], LATENCY, &word);
			require_expected(table, k, &word);
		}
		known++;
	}
	assert_true(known >= 1); /* clx */
}

/*
 * A row keeps its raw value only if it is needed. If the oldest libpfm4 lacks its PMU, a newer one
 * verifies it; otherwise libpfm4 must still lack the event or encode it wrongly.
 */
TEST(raw_values_are_needed)
{
	for (size_t i = 1; i < nm_event_table_count; i++) { /* except the constants of the kernel */
		const struct nm_event_table *table = &nm_event_tables[i];
		bool known = knows(table, table->pfm[0]);
		for (size_t k = 0; k < table->count; k++) {
			struct nm_event_row row = table->rows[k];
			struct nm_event_word word;
			if (!row.raw)
				continue;
			bool lacks_pmu = strstr(row.raw, "has no PMU"),
			     wrong = strstr(row.name, "STORE_SAMPLE");
			row.raw = NULL;
			(void)nm_event_row_encode(table, &row, LATENCY, &word);
			if (is_expected(table, k, &word) != (lacks_pmu && known && !wrong))
				fail_msg("%s: %s: the raw value is not needed, or has another "
					 "reason",
					 table->name, row.name);
		}
	}
}

/* As with an older libpfm4. */
TEST(an_unknown_event_is_reported)
{
	const struct nm_event_table *skx = nm_event_table_find("skx");
	const struct nm_event_table later = with_pmu(skx, "skx2");
	struct nm_event_row row = skx->rows[0];
	struct nm_event_word word;

	assert_int_equal(nm_event_row_encode(&later, &row, LATENCY, &word), -ENOPKG);
	assert_true(word.unencoded);
	assert_string_equal(word.remark, "event not found");
	assert_string_equal(word.name, row.name);
	row.name = "MEM_TRANS_RETIRED:STORED_LATENCY";
	assert_int_equal(nm_event_row_encode(skx, &row, LATENCY, &word), -ENOPKG);
	assert_string_equal(word.remark, "invalid event attribute");
}

/* SECURITY: open-event */
TEST(an_event_of_the_configuration)
{
	static const struct {
		const char *table, *name, *why; /* NULL: it must be encoded */
		uint64_t config, config1;
	} cases[] = {
		{"skx", "MEM_LOAD_RETIRED:L3_MISS", NULL, 0x20d1, 0},
		{"skx", "mem_load_retired.l3_miss", NULL, 0x20d1, 0},
		{"skx", "SKX::MEM_LOAD_RETIRED:L3_MISS", NULL, 0x20d1, 0},
		{"skx", "clx::MEM_LOAD_RETIRED:L3_MISS", NULL, 0x20d1, 0},
		{"skx", "MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=99", NULL, 0x1cd, 99},
		{"skx", "MEM_INST_RETIRED:0x81", NULL, 0x81d0, 0},
		{"skx", "spr::MEM_LOAD_RETIRED:L3_MISS", "an event of another PMU", 0, 0},
		{"skx", "sk::MEM_LOAD_RETIRED:L3_MISS", "an event of another PMU", 0, 0},
		{"skx", "perf::PERF_COUNT_SW_DUMMY", "an event of another PMU", 0, 0},
		{"skx", "skx_unc_imc0::UNC_M_CLOCKTICKS", "an event of another PMU", 0, 0},
		{"skx", "::MEM_LOAD_RETIRED:L3_MISS", "an event of another PMU", 0, 0},
		{"skx", "PERF_COUNT_SW_DUMMY", "event not found", 0, 0},
		{"skx", "skx::skx::MEM_LOAD_RETIRED:L3_MISS", "event not found", 0, 0},
		{"skx", "MEM_LOAD_RETIRED:L9_MISS", "invalid event attribute", 0, 0},
		{"skx", "MEM_LOAD_RETIRED:L3_MISS:period=1", "invalid event attribute", 0, 0},
		{"skx", "MEM_LOAD_RETIRED:L3_MISS:pinned", "invalid event attribute", 0, 0},
		{"skx", "MEM_LOAD_RETIRED:L3_MISS:k", "samples are of user mode", 0, 0},
		{"skx", "MEM_LOAD_RETIRED:L3_MISS:mg", "samples are of user mode", 0, 0},
		{"skx", "MEM_LOAD_RETIRED,L3_MISS", "not spelled like", 0, 0},
		{"skx", "A:u:u:u:u:u:u:u:u:u:u:u:u:u:u:u:u:u", "not spelled like", 0, 0},
		{"skx", "", "not spelled like", 0, 0},
		{"generic", "PERF_COUNT_HW_CPU_CYCLES", "is not known", 0, 0},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		struct nm_event_word word;
		int r = nm_event_named_encode(nm_event_table_find(cases[i].table), cases[i].name,
					      &word);
		if (r != (cases[i].why ? -ENOPKG : 0) || word.unencoded != (r < 0))
			fail_msg("%s: %s", cases[i].name, word.remark ? word.remark : "encoded");
		if (r < 0) {
			if (!strstr(word.remark, cases[i].why))
				fail_msg("%s: %s", cases[i].name, word.remark);
			continue;
		}
		assert_int_equal(word.type, PERF_TYPE_RAW);
		assert_int_equal(word.config, cases[i].config);
		assert_int_equal(word.config1, cases[i].config1);
		assert_true(word.precise && word.user_only && word.unit == 0);
	}
}

TEST(the_environment_stays)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(hostile); i++)
		assert_string_equal(getenv(hostile[i][0]), hostile[i][1]);
}

int main(void)
{
	if (access("/proc/sys/kernel/perf_event_paranoid", F_OK) < 0) {
		puts("the kernel has no performance events, and libpfm4 then encodes none");
		return 77;
	}
	return RUN_REGISTERED(begin, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Every name in the event tables, encoded by libpfm4, gives the words of its row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* libpfm4 brings a copy of the kernel's header under another guard: one of the two is enough. */
#define __PERFMON_PERF_EVENT_H__
#include <linux/perf_event.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "numa-migrd/event_table.h"

#define NAME_BYTES 320

/* ENCODE_INACTIVE: the machine that builds is not the machine that samples. */
static int begin(void **state)
{
	(void)state;
	return setenv("LIBPFM_ENCODE_INACTIVE", "1", 1) < 0 || pfm_initialize() != PFM_SUCCESS;
}

static int encode(const char *name, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	pfm_perf_encode_arg_t argument = {.attr = attr, .size = sizeof(argument)};

	return pfm_get_os_event_encoding(name, PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &argument);
}

static void full_name(const struct nm_event_row *row, const char *pmu, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%s::%s%s%s", pmu, row->name,
		 row->has_threshold ? ":ldlat=30" : "", row->precise ? ":precise=2" : "");
}

static void check(const struct nm_event_row *row, const char *pmu)
{
	struct perf_event_attr attr;
	char name[NAME_BYTES];

	full_name(row, pmu, name);
	int r = encode(name, &attr);
	if (r != PFM_SUCCESS)
		fail_msg("%s: %s", name, pfm_strerror(r));
	if (attr.type != row->type || attr.config != row->config || attr.config1 != row->config1)
		fail_msg("%s: type %u config %#llx config1 %#llx, not %u %#llx %#llx", name,
			 attr.type, (unsigned long long)attr.config,
			 (unsigned long long)attr.config1, row->type,
			 (unsigned long long)row->config, (unsigned long long)row->config1);
	assert_int_equal(attr.precise_ip, row->precise ? 2 : 0);
}

static void every_name_gives_its_words(void **state)
{
	size_t checked = 0;

	(void)state;
	for (size_t i = 0; i < nm_event_table_count; i++) {
		const struct nm_event_table *table = &nm_event_tables[i];
		for (size_t k = 0; k < table->count * NM_ARRAY_SIZE(table->pfm); k++) {
			const char *pmu = table->pfm[k / table->count];
			const struct nm_event_row *row = &table->rows[k % table->count];
			if (!pmu || row->raw)
				continue;
			check(row, pmu);
			checked++;
		}
	}
	assert_true(checked > 120);
}

/* A row is marked raw only while there is a reason; where libpfm4 knows the PMU, it must err. */
static void raw_words_are_needed(void **state)
{
	struct perf_event_attr attr;
	char name[NAME_BYTES];

	(void)state;
	for (size_t i = 0; i < nm_event_table_count; i++) {
		const struct nm_event_table *table = &nm_event_tables[i];
		for (size_t k = 0; k < table->count; k++) {
			const struct nm_event_row *row = &table->rows[k];
			if (!row->raw || !table->pfm[0])
				continue;
			full_name(row, table->pfm[0], name);
			if (encode(name, &attr) == PFM_SUCCESS && attr.config == row->config)
				fail_msg("%s: libpfm4 has it right now", name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_gives_its_words),
		cmocka_unit_test(raw_words_are_needed),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}

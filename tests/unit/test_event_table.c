/* SPDX-License-Identifier: MIT */
/* The entry selected for a CPU, and invariants of every entry. */
#include "../support/test.h"

#include <stdint.h>

#include <string.h>

#include "numa-migrd/base.h"
#include "platform/event.h"

static const char *table_of(const char *vendor, unsigned family, unsigned model)
{
	struct nm_cpu_identity identity = {.family = family, .model = model};

	strncpy(identity.vendor, vendor, sizeof(identity.vendor) - 1);
	return nm_event_table_for(&identity)->name;
}

TEST(cpus_have_their_entries)
{
	static const struct {
		const char *vendor;
		unsigned family, model;
		const char *table;
	} cases[] = {
		{"GenuineIntel", 6, 45, "snb_ep"},    {"GenuineIntel", 6, 62, "ivb_ep"},
		{"GenuineIntel", 6, 63, "hsw_ep"},    {"GenuineIntel", 6, 79, "bdw_ep"},
		{"GenuineIntel", 6, 85, "skx"},	      {"GenuineIntel", 6, 94, "skl"},
		{"GenuineIntel", 6, 106, "icx"},      {"GenuineIntel", 6, 143, "spr"},
		{"GenuineIntel", 6, 207, "emr"},      {"GenuineIntel", 6, 173, "gnr"},
		{"GenuineIntel", 6, 174, "gnr"},      {"GenuineIntel", 6, 151, "adl"},
		{"GenuineIntel", 6, 28, "generic"},   {"GenuineIntel", 15, 45, "generic"},
		{"AuthenticAMD", 0x17, 1, "zen1"},    {"AuthenticAMD", 0x17, 47, "zen1"},
		{"AuthenticAMD", 0x17, 48, "zen2"},   {"AuthenticAMD", 0x17, 0x71, "zen2"},
		{"AuthenticAMD", 0x19, 1, "zen3"},    {"AuthenticAMD", 0x19, 0x21, "zen3"},
		{"AuthenticAMD", 0x19, 0x11, "zen4"}, {"AuthenticAMD", 0x19, 0xa0, "zen4"},
		{"AuthenticAMD", 0x1a, 2, "zen5"},    {"AuthenticAMD", 0x15, 2, "generic"},
		{"HygonGenuine", 0x18, 0, "zen1"},    {"", 0, 0, "generic"},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++)
		assert_string_equal(table_of(cases[i].vendor, cases[i].family, cases[i].model),
				    cases[i].table);
}

TEST(every_table_can_be_reached)
{
	for (size_t i = 0; i < nm_event_table_count; i++) {
		const struct nm_event_table *table = &nm_event_tables[i];
		bool reached = false;
		assert_ptr_equal(nm_event_table_find(table->name), table);
		for (unsigned family = 0; family < 0x20 && !reached; family++)
			for (unsigned model = 0; model < 0x100 && !reached; model++)
				reached = strcmp(table_of("GenuineIntel", family, model),
						 table->name) == 0 ||
					  strcmp(table_of("AuthenticAMD", family, model),
						 table->name) == 0;
		assert_true(reached);
	}
	assert_null(nm_event_table_find("z80"));
}

TEST(rows_make_sense)
{
	for (size_t i = 0; i < nm_event_table_count; i++) {
		const struct nm_event_table *table = &nm_event_tables[i];
		unsigned of_kind[NM_EVENT_KIND_MAX] = {0};
		for (size_t k = 0; k < table->count; k++) {
			const struct nm_event_row *row = &table->rows[k];
			bool memory = row->kind == NM_EVENT_MEMORY || row->kind == NM_EVENT_STORE;
			assert_in_range(row->kind, NM_EVENT_MEMORY, NM_EVENT_DRAM);
			of_kind[row->kind]++;
			assert_int_equal(row->precise, memory);
			assert_int_equal(row->unit == 0, memory);
			assert_int_equal(row->has_threshold, row->kind == NM_EVENT_MEMORY);
			if (row->kind == NM_EVENT_DRAM)
				assert_int_equal(row->unit, 64);
			assert_true(!row->remote || row->kind == NM_EVENT_DRAM);
			assert_true(row->raw || table->pfm[0]);
			/* grouped by kind, in the order of the kinds, so that an index within one
			 * is well-defined */
			assert_true(k == 0 || table->rows[k - 1].kind <= row->kind);
		}
		assert_int_equal(of_kind[NM_EVENT_INSTRUCTIONS], 1);
		assert_true(of_kind[NM_EVENT_DRAM] >= 1);
		assert_true(of_kind[NM_EVENT_MEMORY] <= 1);
	}
}

TEST(identities_are_read)
{
	struct nm_cpu_identity identity;

	assert_int_equal(nm_cpu_identity_parse("processor\t: 0\nvendor_id\t: GenuineIntel\n"
					       "cpu family\t: 6\nmodel\t\t: 143\n"
					       "model name\t: Intel(R) Xeon(R)\nstepping\t: 8\n"
					       "processor\t: 1\nmodel\t\t: 7\n",
					       &identity),
			 0);
	assert_string_equal(identity.vendor, "GenuineIntel");
	assert_int_equal(identity.family, 6);
	assert_int_equal(identity.model, 143);
}

TEST(strange_identities_are_refused)
{
	static const char *const texts[] = {
		"",
		"\n",
		"vendor_id",
		"processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n",
		"vendor_id : A\ncpu family : x\nmodel : 1\n",
		"vendor_id : A\ncpu family : 6\nmodel : 99999999\n",
		"vendor_id : ABCDEFGHIJKLMNOPQ\ncpu family : 6\nmodel : 1\n",
		"vendor_id : A\ncpu family : 6\nmodel name : 1\n",
	};
	struct nm_cpu_identity identity = {.family = 77};

	for (size_t i = 0; i < NM_ARRAY_SIZE(texts); i++)
		assert_int_equal(nm_cpu_identity_parse(texts[i], &identity), -ENODATA);
	assert_int_equal(identity.family, 77);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Arm SPE packets: bytes of a real machine, every kind by hand, and random ones. */
#include "../support/test.h"

#include <stdint.h>

#include <string.h>

#include "../../src/sample/spe.h"
#include "../support/spe_golden.h"
#include "numa-migrd/base.h"

struct seen {
	struct nm_spe_record records[16];
	size_t count;
	struct nm_spe_counts counts;
};

static void see(void *context, const struct nm_spe_record *record)
{
	struct seen *seen = context;

	if (seen->count < NM_ARRAY_SIZE(seen->records))
		seen->records[seen->count] = *record;
	seen->count++;
}

/* From a heap block of exactly that size, so that AddressSanitizer detects access beyond it. */
static size_t decode(const uint8_t *bytes, size_t size, uint64_t offset, struct seen *seen)
{
	uint8_t *exact = malloc(size ? size : 1);

	assert_non_null(exact);
	memcpy(exact, bytes, size);
	size_t used = nm_spe_decode(exact, size, offset, see, seen, &seen->counts);
	free(exact);
	return used;
}

/* A load in the kernel and another operation, as printed by perf. */
static const uint8_t real[] = {0xb0, 0xf4, 0xd3, 0x29, 0x10, 0x00, 0x80, 0xff, 0xa0, 0x99, 0x0b,
			       0x00, 0x98, 0x0d, 0x00, 0x52, 0x16, 0x00, 0x49, 0x00, 0xb2, 0xd0,
			       0x40, 0xd8, 0x70, 0x00, 0x00, 0xff, 0x00, 0x9a, 0x01, 0x00, 0x00,
			       0x00, 0x00, 0x71, 0xa5, 0x1f, 0xb3, 0x20, 0x14, 0x00, 0x00, 0x00,
			       0xb0, 0x7c, 0xf9, 0x29, 0x10, 0x00, 0x80, 0xff, 0xa0, 0x99, 0x02,
			       0x00, 0x98, 0x03, 0x00, 0x52, 0x02, 0x00, 0x48, 0x00, 0x00, 0x00,
			       0x00, 0x71, 0xef, 0x1f, 0xb3, 0x20, 0x14, 0x00, 0x00, 0x00};

static void check_real(const struct seen *seen)
{
	const struct nm_spe_record *load = &seen->records[0], *other = &seen->records[1];
	struct nm_sample sample = {0};

	assert_int_equal(load->operation, NM_SPE_LOAD);
	assert_int_equal(load->address, 0xff000070d840d0);
	assert_int_equal(load->latency_cycles, 13);
	assert_int_equal(load->events, 0x16);
	assert_int_equal(load->ticks, 86447955877);
	assert_false(load->has_source || load->has_context);
	assert_false(nm_spe_sample(load, NM_SPE_SOURCES_ARM, &sample)); /* that of the kernel */
	assert_int_equal(other->operation, NM_SPE_OTHER);
	assert_int_equal(other->latency_cycles, 3);
	assert_int_equal(other->ticks, 86447955951);
	assert_false(nm_spe_sample(other, NM_SPE_SOURCES_ARM, &sample));
}

TEST(records_of_a_real_machine)
{
	struct seen seen = {0};

	assert_int_equal(decode(real, sizeof(real), 0, &seen), sizeof(real));
	assert_int_equal(seen.counts.records, 2);
	assert_int_equal(seen.counts.corrupt, 0);
	check_real(&seen);
}

/* Truncated anywhere, the rest is decoded with the next piece. */
TEST(pieces)
{
	for (size_t cut = 0; cut <= sizeof(real); cut++) {
		struct seen seen = {0};
		size_t used = decode(real, cut, 0, &seen);
		assert_true(used <= cut);
		used += decode(real + used, sizeof(real) - used, used, &seen);
		assert_int_equal(used, sizeof(real));
		assert_int_equal(seen.counts.records, 2);
		check_real(&seen);
	}
}

TEST(all_fields_of_a_load_are_decoded)
{
	static const uint8_t bytes[] = {
		0x49, 0x00,					      /* load */
		0xb2, 0x78, 0x56, 0x34, 0x12, 0xaa, 0xff, 0x00, 0x5a, /* tagged address */
		0xb3, 0x78, 0x06, 0x00, 0x10, 0x02, 0x00, 0x00, 0x80, /* physical, not secure */
		0x64, 0x39, 0x30, 0x00, 0x00,			      /* context */
		0x62, 0x0e, 0x00, 0x00, 0x00,			      /* events, four bytes */
		0x43, 0x0d,					      /* source */
		0x98, 0x77, 0x01,				      /* total latency */
		0x20, 0x98, 0x01, 0x00,				      /* extended: counter 0 */
		0x21, 0x98, 0x07, 0x00,				      /* counter 8 */
		0x01,						      /* end */
	};
	struct seen seen = {0};
	struct nm_sample sample = {.tid = 7};

	assert_int_equal(decode(bytes, sizeof(bytes), 0, &seen), sizeof(bytes));
	assert_int_equal(seen.counts.records, 1);
	assert_int_equal(seen.records[0].context, 12345);
	assert_int_equal(seen.records[0].latency_cycles, 1);
	assert_true(nm_spe_sample(&seen.records[0], NM_SPE_SOURCES_ARM, &sample));
	assert_int_equal(sample.kind, NM_EVENT_MEMORY);
	assert_int_equal(sample.tid, 7);
	assert_int_equal(sample.address, 0x00ffaa12345678);
	assert_int_equal(sample.physical_address, 0x210000678);
	assert_true(sample.remote);
}

TEST(levels)
{
	static const struct {
		bool has_source;
		uint16_t source;
		uint64_t events;
		enum nm_level level;
		bool remote;
	} cases[] = {
		{true, 0x0, 0, NM_LEVEL_L1, false},
		{true, 0x8, 0, NM_LEVEL_L2, false},
		{true, 0x9, 0, NM_LEVEL_CACHE, false},
		{true, 0xb, 0, NM_LEVEL_L3, false},
		{true, 0xd, 0, NM_LEVEL_UNKNOWN, true},
		{true, 0xe, 0, NM_LEVEL_DRAM, false},
		{true, 0x4000, 0, NM_LEVEL_UNKNOWN, false},
		{false, 0, 0x16, NM_LEVEL_L1, false},
		{false, 0, 0x10e, NM_LEVEL_L3, false},
		{false, 0, 0x30e, NM_LEVEL_DRAM, false},
		{false, 0, 0x70e, NM_LEVEL_DRAM, true},
		{false, 0, 0xe, NM_LEVEL_UNKNOWN, false},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		const struct nm_spe_record record = {.operation = NM_SPE_STORE,
						     .address = 0x1000,
						     .has_source = cases[i].has_source,
						     .source = cases[i].source,
						     .events = cases[i].events};
		struct nm_sample sample = {0};
		assert_true(nm_spe_sample(&record, NM_SPE_SOURCES_ARM, &sample));
		assert_int_equal(sample.kind, NM_EVENT_STORE);
		assert_int_equal(sample.level, cases[i].level);
		assert_int_equal(sample.remote, cases[i].remote);
	}
}

#define MIDR_NEOVERSE_N1 0x00000000413fd0c1
#define MIDR_AMPERE1A 0x00000000c00fac40
#define MIDR_HIP12 0x00000000480fd061
#define MIDR_FUJITSU 0x00000000461f0010

/* Each maker has numbers of its own; those of others are not known, and the events decide. */
TEST(each_maker_numbers_its_sources)
{
	static const struct {
		uint64_t midr;
		uint16_t source;
		uint64_t events;
		enum nm_level level;
		bool remote;
	} cases[] = {
		{MIDR_NEOVERSE_N1, 0x8, 0, NM_LEVEL_L2, false},
		{MIDR_NEOVERSE_N1, 0xe, 0, NM_LEVEL_DRAM, false},
		{MIDR_HIP12, 8, 0, NM_LEVEL_DRAM, false},
		{MIDR_HIP12, 9, 0, NM_LEVEL_DRAM, true},
		{MIDR_HIP12, 18, 0, NM_LEVEL_L1, false},
		{MIDR_HIP12, 16, 0, NM_LEVEL_L2, false},
		{MIDR_HIP12, 6, 0, NM_LEVEL_CACHE, true},
		{MIDR_HIP12, 0, 0, NM_LEVEL_CACHE, false},
		{MIDR_HIP12, 13, 0, NM_LEVEL_UNKNOWN, false}, /* a device */
		{MIDR_AMPERE1A, 7, 0, NM_LEVEL_DRAM, false},
		{MIDR_AMPERE1A, 8, 0, NM_LEVEL_L1, false},
		{MIDR_AMPERE1A, 9, 0, NM_LEVEL_L2, false},
		{MIDR_AMPERE1A, 3, 0, NM_LEVEL_L3, false},
		{MIDR_AMPERE1A, 5, 0, NM_LEVEL_CACHE, true},
		{MIDR_AMPERE1A, 0, 0, NM_LEVEL_CACHE, false},
		{MIDR_AMPERE1A, 0xffff, 0x70e, NM_LEVEL_UNKNOWN, false},
		{MIDR_FUJITSU, 8, 0x70e, NM_LEVEL_DRAM, true},
		{MIDR_FUJITSU, 0, 0x16, NM_LEVEL_L1, false},
		{0, 9, 0x30e, NM_LEVEL_DRAM, false},
		{0, 0xe, 0, NM_LEVEL_UNKNOWN, false},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		const struct nm_spe_record record = {.operation = NM_SPE_LOAD,
						     .address = 0x1000,
						     .has_source = true,
						     .source = cases[i].source,
						     .events = cases[i].events};
		struct nm_sample sample = {0};
		assert_true(nm_spe_sample(&record, nm_spe_sources_of(cases[i].midr), &sample));
		assert_int_equal(sample.level, cases[i].level);
		assert_int_equal(sample.remote, cases[i].remote);
	}
}

TEST(alignment_refers_to_the_buffer)
{
	static const uint8_t bytes[16] = {0x24, 0x00, [6] = 0x4a, 0x01, 0x01};
	struct seen seen = {0};

	/* to a multiple of 32: from 26 on that is six bytes */
	assert_int_equal(decode(bytes, 9, 26, &seen), 9);
	assert_int_equal(seen.counts.records, 1);
	assert_int_equal(seen.records[0].operation, NM_SPE_BRANCH);
}

TEST(invalid_packets_end_the_piece)
{
	static const uint8_t bytes[] = {0x49, 0x01, 0xff, 0x01};
	struct seen seen = {0};

	assert_int_equal(decode(bytes, sizeof(bytes), 0, &seen), sizeof(bytes));
	assert_int_equal(seen.counts.corrupt, 1);
	assert_int_equal(seen.counts.records, 0);
}

TEST(any_bytes)
{
	struct nm_rng rng;
	uint8_t bytes[200];

	nm_rng_seed(&rng, 4711);
	for (unsigned round = 0; round < 20000; round++) {
		struct seen seen = {0};
		size_t size = nm_rng_below(&rng, sizeof(bytes));
		for (size_t i = 0; i < size; i++)
			bytes[i] = (uint8_t)nm_rng_below(&rng, 256);
		assert_true(decode(bytes, size, nm_rng_below(&rng, 4096), &seen) <= size);
		assert_int_equal(seen.count, seen.counts.records);
	}
}

/* ---- the recorded packets beside the output of perf ---- */

TEST(golden_packets)
{
	struct seen seen = {0};
	uint8_t bytes[1024];
	size_t size = spe_golden(bytes, sizeof(bytes));

	if (size == 0)
		skip();
	size_t used = decode(bytes, size, 0, &seen);
	assert_int_equal(seen.counts.records, 2);
	assert_int_equal(seen.counts.corrupt, 0);
	assert_int_equal(used, sizeof(real));
	assert_true(size > used); /* the third is incomplete */
	check_real(&seen);
}

RUN_TESTS()

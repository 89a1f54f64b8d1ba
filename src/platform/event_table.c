/* SPDX-License-Identifier: MIT */
/*
 * The words, row by row. Where libpfm4 4.13 lacks a PMU (EMR, GNR, Zen 5, hybrid clients) or gets a
 * word wrong (PEBS stores of SPR), the row says raw and the word is the one of the kernel's own
 * tables.
 */
#include "numa-migrd/event_table.h"

#include "numa-migrd/base.h"

#define LINE_BYTES 64

#define ROW(k, n, c) .kind = (k), .type = PERF_TYPE_RAW, .name = (n), .config = (c)
#define INSTRUCTIONS(n)                                                                            \
	{                                                                                          \
		ROW(NM_EVENT_INSTRUCTIONS, n, 0xc0), .unit = 1                                     \
	}
#define LOADS(n)                                                                                   \
	{                                                                                          \
		ROW(NM_EVENT_MEMORY, n, 0x1cd), .config1 = 30, .has_threshold = true,              \
						.precise = true                                    \
	}
#define STORES(n, c)                                                                               \
	{                                                                                          \
		ROW(NM_EVENT_STORE, n, c), .precise = true                                         \
	}
#define FLOPS(n, c, width)                                                                         \
	{                                                                                          \
		ROW(NM_EVENT_FLOPS, n, c), .unit = (width)                                         \
	}
#define DRAM(n, c, c1, far)                                                                        \
	{                                                                                          \
		ROW(NM_EVENT_DRAM, n, c), .config1 = (c1), .unit = LINE_BYTES, .remote = (far)     \
	}

#define LOADS_ABOVE LOADS("MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD")
#define LOADS_LATENCY LOADS("MEM_TRANS_RETIRED:LOAD_LATENCY")
#define STORES_PRECISE STORES("MEM_TRANS_RETIRED:PRECISE_STORE", 0x2cd)
#define STORES_UOPS STORES("MEM_UOPS_RETIRED:ALL_STORES", 0x82d0)
#define STORES_ALL STORES("MEM_INST_RETIRED:ALL_STORES", 0x82d0)
/* libpfm4 says 0x3cd. */
#define STORES_SAMPLE                                                                              \
	{                                                                                          \
		ROW(NM_EVENT_STORE, "MEM_TRANS_RETIRED:STORE_SAMPLE", 0x2cd), .raw = true,         \
									      .precise = true      \
	}
#define INTEL_INSTRUCTIONS INSTRUCTIONS("INST_RETIRED:ANY_P")
#define LLC_MISS DRAM("LONGEST_LAT_CACHE:MISS", 0x412e, 0, false)

#define OFFCORE(umasks, c1, far) DRAM("OFFCORE_RESPONSE_0:" umasks, 0x1b7, c1, far)

/* Executed operations: what is repeated after a cache miss counts twice. */
#define FLOPS_EXECUTED                                                                             \
	FLOPS("FP_COMP_OPS_EXE:SSE_SCALAR_DOUBLE", 0x8010, 1),                                     \
		FLOPS("FP_COMP_OPS_EXE:SSE_FP_SCALAR_SINGLE", 0x2010, 1),                          \
		FLOPS("FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE", 0x1010, 2),                          \
		FLOPS("FP_COMP_OPS_EXE:SSE_PACKED_SINGLE", 0x4010, 4),                             \
		FLOPS("SIMD_FP_256:PACKED_DOUBLE", 0x211, 4),                                      \
		FLOPS("SIMD_FP_256:PACKED_SINGLE", 0x111, 8)

/* A fused multiply-add counts twice by itself. */
#define FP(umasks, c, width) FLOPS("FP_ARITH_INST_RETIRED:" umasks, c, width)
#define FLOPS_256                                                                                  \
	FP("SCALAR_SINGLE:SCALAR_DOUBLE", 0x3c7, 1), FP("128B_PACKED_DOUBLE", 0x4c7, 2),           \
		FP("128B_PACKED_SINGLE:256B_PACKED_DOUBLE", 0x18c7, 4),                            \
		FP("256B_PACKED_SINGLE", 0x20c7, 8)
#define FLOPS_512                                                                                  \
	FP("SCALAR_SINGLE:SCALAR_DOUBLE", 0x3c7, 1), FP("128B_PACKED_DOUBLE", 0x4c7, 2),           \
		FP("128B_PACKED_SINGLE:256B_PACKED_DOUBLE", 0x18c7, 4),                            \
		FP("256B_PACKED_SINGLE:512B_PACKED_DOUBLE", 0x60c7, 8),                            \
		FP("512B_PACKED_SINGLE", 0x80c7, 16)
#define FLOPS_NAMED                                                                                \
	FP("SCALAR", 0x3c7, 1), FP("128B_PACKED_DOUBLE", 0x4c7, 2), FP("4_FLOPS", 0x18c7, 4),      \
		FP("8_FLOPS", 0x60c7, 8), FP("512B_PACKED_SINGLE", 0x80c7, 16)

/* clang-format off */
static const struct nm_event_row snb[] = {
	LOADS_ABOVE, STORES_PRECISE, INTEL_INSTRUCTIONS, FLOPS_EXECUTED,
	DRAM("LLC_MISSES", 0x412e, 0, false)};
static const struct nm_event_row ivb[] = {
	LOADS_ABOVE, STORES_PRECISE, INTEL_INSTRUCTIONS, FLOPS_EXECUTED, LLC_MISS};
static const struct nm_event_row snb_ep[] = {
	LOADS_ABOVE, STORES_PRECISE, INTEL_INSTRUCTIONS, FLOPS_EXECUTED,
	OFFCORE("ANY_DATA:LLC_MISS_LOCAL:SNP_ANY", 0x3f80400091, false),
	OFFCORE("ANY_DATA:LLC_MISS_REMOTE:SNP_ANY", 0x3fff800091, true)};
/* Haswell has no event that counts floating-point operations alone. */
static const struct nm_event_row hsw[] = {LOADS_ABOVE, STORES_UOPS, INTEL_INSTRUCTIONS, LLC_MISS};
static const struct nm_event_row hsw_ep[] = {
	LOADS_ABOVE, STORES_UOPS, INTEL_INSTRUCTIONS,
	OFFCORE("ANY_DATA:L3_MISS_LOCAL:SNP_ANY", 0x3f80400091, false),
	OFFCORE("ANY_DATA:L3_MISS_REMOTE:SNP_ANY", 0x3fb8000091, true)};
static const struct nm_event_row bdw[] = {
	LOADS_ABOVE, STORES_UOPS, INTEL_INSTRUCTIONS, FLOPS_256, LLC_MISS};
static const struct nm_event_row bdw_ep[] = {
	LOADS_ABOVE, STORES_UOPS, INTEL_INSTRUCTIONS, FLOPS_256,
	OFFCORE("ANY_DATA:L3_MISS_LOCAL:SNP_ANY", 0x3f84000091, false),
	OFFCORE("ANY_DATA:L3_MISS_REMOTE:SNP_ANY", 0x3fb8000091, true)};
static const struct nm_event_row skl[] = {
	LOADS_ABOVE, STORES_ALL, INTEL_INSTRUCTIONS, FLOPS_256, LLC_MISS};
static const struct nm_event_row skx[] = {
	LOADS_ABOVE, STORES_ALL, INTEL_INSTRUCTIONS, FLOPS_512,
	OFFCORE("ANY_DATA_RD:L3_MISS_LOCAL:SNP_ANY", 0x3f84000491, false),
	OFFCORE("ANY_DATA_RD:L3_MISS_REMOTE_HOP1_DRAM:SNP_ANY", 0x3f90000491, true)};
static const struct nm_event_row icl[] = {
	LOADS_LATENCY, STORES_ALL, INTEL_INSTRUCTIONS, FLOPS_NAMED, LLC_MISS};
static const struct nm_event_row icx[] = {
	LOADS_LATENCY, STORES_ALL, INTEL_INSTRUCTIONS, FLOPS_NAMED,
	DRAM("OCR:READS_TO_CORE_LOCAL_DRAM", 0x1b7, 0x104000477, false),
	DRAM("OCR:READS_TO_CORE_REMOTE_DRAM", 0x1b7, 0x730000477, true)};
/* The performance cores of hybrid clients; libpfm4 4.13 has no such PMU. */
static const struct nm_event_row adl[] = {
	{ROW(NM_EVENT_MEMORY, "MEM_TRANS_RETIRED:LOAD_LATENCY", 0x1cd), .config1 = 30, .raw = true,
	 .has_threshold = true, .precise = true},
	STORES_SAMPLE,
	{ROW(NM_EVENT_INSTRUCTIONS, "INST_RETIRED:ANY_P", 0xc0), .unit = 1, .raw = true},
	{ROW(NM_EVENT_FLOPS, "FP_ARITH_INST_RETIRED:SCALAR", 0x3c7), .unit = 1, .raw = true},
	{ROW(NM_EVENT_FLOPS, "FP_ARITH_INST_RETIRED:128B_PACKED_DOUBLE", 0x4c7), .unit = 2, .raw = true},
	{ROW(NM_EVENT_FLOPS, "FP_ARITH_INST_RETIRED:4_FLOPS", 0x18c7), .unit = 4, .raw = true},
	{ROW(NM_EVENT_FLOPS, "FP_ARITH_INST_RETIRED:256B_PACKED_SINGLE", 0x20c7), .unit = 8, .raw = true},
	{ROW(NM_EVENT_DRAM, "LONGEST_LAT_CACHE:MISS", 0x412e), .unit = LINE_BYTES, .raw = true}};
static const struct nm_event_row spr[] = {
	LOADS_LATENCY, STORES_SAMPLE, INTEL_INSTRUCTIONS, FLOPS_NAMED,
	DRAM("OCR:READS_TO_CORE_LOCAL_DRAM", 0x12a, 0x104004477, false),
	DRAM("OCR:READS_TO_CORE_REMOTE_DRAM", 0x12a, 0x730004477, true)};

/* AMD samples memory accesses by IBS, which is a PMU of its own. Its events count operations, fused
 * multiply-adds twice. */
#define AMD_INSTRUCTIONS INSTRUCTIONS("RETIRED_INSTRUCTIONS")
#define ZEN2_FILLS(m, b, far) DRAM("DATA_CACHE_REFILLS_FROM_SYSTEM:LS_MABRESP_" m, (b) | 0x43, 0, far), \
	DRAM("HARDWARE_PREFETCH_DATA_CACHE_FILLS:LS_MABRESP_" m, (b) | 0x5a, 0, far)

static const struct nm_event_row zen1[] = {
	AMD_INSTRUCTIONS,
	FLOPS("RETIRED_SSE_AVX_OPERATIONS:DP_MULT_ADD_FLOPS:DP_DIV_FLOPS:DP_MULT_FLOPS:DP_ADD_SUB_FLOPS"
	      ":SP_MULT_ADD_FLOPS:SP_DIV_FLOPS:SP_MULT_FLOPS:SP_ADD_SUB_FLOPS", 0xff03, 1),
	{ROW(NM_EVENT_DRAM, "data cache fills from local DRAM", 0x843), .unit = LINE_BYTES, .raw = true},
	{ROW(NM_EVENT_DRAM, "data cache fills from remote DRAM", 0x4043), .unit = LINE_BYTES, .raw = true,
	 .remote = true}};
static const struct nm_event_row zen2[] = {
	AMD_INSTRUCTIONS, FLOPS("RETIRED_SSE_AVX_FLOPS:ANY", 0xf03, 1),
	ZEN2_FILLS("LCL_DRAM", 0x800, false), ZEN2_FILLS("RMT_DRAM", 0x4000, true)};
static const struct nm_event_row zen3[] = {
	AMD_INSTRUCTIONS, FLOPS("RETIRED_SSE_AVX_FLOPS:ANY", 0xf03, 1),
	DRAM("ANY_DATA_CACHE_FILLS_FROM_SYSTEM:MEM_IO_LCL", 0x844, 0, false),
	DRAM("ANY_DATA_CACHE_FILLS_FROM_SYSTEM:MEM_IO_RMT", 0x4044, 0, true)};
static const struct nm_event_row zen4[] = {
	AMD_INSTRUCTIONS, FLOPS("RETIRED_SSE_AVX_FLOPS:ANY", 0x1f03, 1),
	DRAM("ANY_DATA_CACHE_FILLS_FROM_SYSTEM:DRAM_IO_NEAR", 0x844, 0, false),
	DRAM("ANY_DATA_CACHE_FILLS_FROM_SYSTEM:DRAM_IO_FAR", 0x4044, 0, true)};
/* libpfm4 4.13 ends at Zen 4. */
static const struct nm_event_row zen5[] = {
	{ROW(NM_EVENT_INSTRUCTIONS, "RETIRED_INSTRUCTIONS", 0xc0), .unit = 1, .raw = true},
	{ROW(NM_EVENT_FLOPS, "RETIRED_SSE_AVX_FLOPS:ANY", 0xf03), .unit = 1, .raw = true},
	{ROW(NM_EVENT_DRAM, "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:DRAM_IO_NEAR", 0x844), .unit = LINE_BYTES,
	 .raw = true},
	{ROW(NM_EVENT_DRAM, "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:DRAM_IO_FAR", 0x4044), .unit = LINE_BYTES,
	 .raw = true, .remote = true}};

/* What the kernel offers under names of its own on any CPU; memory samples then come from sysfs. */
static const struct nm_event_row generic[] = {
	{.kind = NM_EVENT_INSTRUCTIONS, .type = PERF_TYPE_HARDWARE, .name = "PERF_COUNT_HW_INSTRUCTIONS",
	 .config = PERF_COUNT_HW_INSTRUCTIONS, .unit = 1},
	{.kind = NM_EVENT_DRAM, .type = PERF_TYPE_HARDWARE, .name = "PERF_COUNT_HW_CACHE_MISSES",
	 .config = PERF_COUNT_HW_CACHE_MISSES, .unit = LINE_BYTES}};

#define TABLE(r, words, ...) {#r, words, {__VA_ARGS__}, r, NM_ARRAY_SIZE(r)}
#define TABLE_AS(n, r, words, ...) {n, words, {__VA_ARGS__}, r, NM_ARRAY_SIZE(r)}
const struct nm_event_table nm_event_tables[] = {
	TABLE(generic, "any other CPU", "perf"),
	TABLE(snb, "Intel Sandy Bridge", "snb"),
	TABLE(snb_ep, "Intel Sandy Bridge-EP", "snb_ep"),
	TABLE(ivb, "Intel Ivy Bridge", "ivb"),
	TABLE_AS("ivb_ep", snb_ep, "Intel Ivy Bridge-EP", "ivb_ep"),
	TABLE(hsw, "Intel Haswell", "hsw"),
	TABLE(hsw_ep, "Intel Haswell-EP", "hsw_ep"),
	TABLE(bdw, "Intel Broadwell", "bdw"),
	TABLE(bdw_ep, "Intel Broadwell-EP", "bdw_ep"),
	TABLE(skl, "Intel Skylake to Comet Lake", "skl"),
	TABLE(skx, "Intel Skylake-SP, Cascade Lake, Cooper Lake", "skx", "clx"),
	TABLE(icl, "Intel Ice Lake to Rocket Lake", "icl"),
	TABLE(icx, "Intel Ice Lake-SP", "icx"),
	TABLE(adl, "Intel Alder Lake to Meteor Lake, performance cores"),
	TABLE(spr, "Intel Sapphire Rapids", "spr"),
	TABLE_AS("emr", spr, "Intel Emerald Rapids", "spr"),
	TABLE_AS("gnr", spr, "Intel Granite Rapids", "spr"),
	TABLE(zen1, "AMD Zen, Zen+, Hygon", "amd64_fam17h_zen1"),
	TABLE(zen2, "AMD Zen 2", "amd64_fam17h_zen2"),
	TABLE(zen3, "AMD Zen 3", "amd64_fam19h_zen3"),
	TABLE(zen4, "AMD Zen 4", "amd64_fam19h_zen4"),
	TABLE(zen5, "AMD Zen 5"),
};
/* clang-format on */

const size_t nm_event_table_count = NM_ARRAY_SIZE(nm_event_tables);

/* SPDX-License-Identifier: MIT */
/* The rows of the tables. A row with a value of its own has it from the kernel's tables, and gives
 * the reason. */
#include "platform/event.h"

#include "numa-migrd/base.h"

#define LINE_BYTES 64

/* 4.13.0, in Debian 12, is the oldest version of libpfm4 that is supported. */
#define NO_PMU "libpfm4 4.13.0 has no PMU of this CPU"
#define NO_EVENT "libpfm4 has no such event of this CPU"
#define WRONG "libpfm4 encodes 0x3cd, which is not this event"
#define KERNELS "the kernel's own constant: libpfm4 would first read the id of every tracepoint"

#define RAW(why, c) .raw = (why), .type = PERF_TYPE_RAW, .config = (c)
#define INSTRUCTIONS(n, ...)                                                                       \
	{                                                                                          \
		.kind = NM_EVENT_INSTRUCTIONS, .name = (n), .unit = 1, __VA_ARGS__                 \
	}
#define LOADS(n, ...)                                                                              \
	{                                                                                          \
		.kind = NM_EVENT_MEMORY, .name = (n), .has_threshold = true, .precise = true,      \
		__VA_ARGS__                                                                        \
	}
#define STORES(n, ...)                                                                             \
	{                                                                                          \
		.kind = NM_EVENT_STORE, .name = (n), .precise = true, __VA_ARGS__                  \
	}
#define FLOPS(n, width, ...)                                                                       \
	{                                                                                          \
		.kind = NM_EVENT_FLOPS, .name = (n), .unit = (width), __VA_ARGS__                  \
	}
#define DRAM(n, ...)                                                                               \
	{                                                                                          \
		.kind = NM_EVENT_DRAM, .name = (n), .unit = LINE_BYTES, __VA_ARGS__                \
	}
#define REMOTE .remote = true

#define LOADS_ABOVE LOADS("MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD")
#define LOADS_LATENCY LOADS("MEM_TRANS_RETIRED:LOAD_LATENCY")
#define STORES_PRECISE STORES("MEM_TRANS_RETIRED:PRECISE_STORE")
#define STORES_UOPS STORES("MEM_UOPS_RETIRED:ALL_STORES")
#define STORES_ALL STORES("MEM_INST_RETIRED:ALL_STORES")
#define STORES_SAMPLE STORES("MEM_TRANS_RETIRED:STORE_SAMPLE", RAW(WRONG, 0x2cd))
#define INTEL_INSTRUCTIONS INSTRUCTIONS("INST_RETIRED:ANY_P")
#define LLC_MISS DRAM("LONGEST_LAT_CACHE:MISS")
#define OFFCORE(local, far)                                                                        \
	DRAM("OFFCORE_RESPONSE_0:" local ":SNP_ANY"),                                              \
		DRAM("OFFCORE_RESPONSE_0:" far ":SNP_ANY", REMOTE)
#define OCR DRAM("OCR:READS_TO_CORE_LOCAL_DRAM"), DRAM("OCR:READS_TO_CORE_REMOTE_DRAM", REMOTE)

/* Executed operations: one that is repeated after a cache miss counts twice. */
#define FLOPS_EXECUTED                                                                             \
	FLOPS("FP_COMP_OPS_EXE:SSE_SCALAR_DOUBLE", 1),                                             \
		FLOPS("FP_COMP_OPS_EXE:SSE_FP_SCALAR_SINGLE", 1),                                  \
		FLOPS("FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE", 2),                                  \
		FLOPS("FP_COMP_OPS_EXE:SSE_PACKED_SINGLE", 4),                                     \
		FLOPS("SIMD_FP_256:PACKED_DOUBLE", 4), FLOPS("SIMD_FP_256:PACKED_SINGLE", 8)

/* The hardware counts a fused multiply-add twice. */
#define FP(umasks, ...) FLOPS("FP_ARITH_INST_RETIRED:" umasks, __VA_ARGS__)
#define FLOPS_256                                                                                  \
	FP("SCALAR_SINGLE:SCALAR_DOUBLE", 1), FP("128B_PACKED_DOUBLE", 2),                         \
		FP("128B_PACKED_SINGLE:256B_PACKED_DOUBLE", 4), FP("256B_PACKED_SINGLE", 8)
#define FLOPS_512                                                                                  \
	FP("SCALAR_SINGLE:SCALAR_DOUBLE", 1), FP("128B_PACKED_DOUBLE", 2),                         \
		FP("128B_PACKED_SINGLE:256B_PACKED_DOUBLE", 4),                                    \
		FP("256B_PACKED_SINGLE:512B_PACKED_DOUBLE", 8), FP("512B_PACKED_SINGLE", 16)
#define FLOPS_NAMED                                                                                \
	FP("SCALAR", 1), FP("128B_PACKED_DOUBLE", 2), FP("4_FLOPS", 4), FP("8_FLOPS", 8),          \
		FP("512B_PACKED_SINGLE", 16)

/* clang-format off */
static const struct nm_event_row snb[] = {
	LOADS_ABOVE, STORES_PRECISE, INTEL_INSTRUCTIONS, FLOPS_EXECUTED, DRAM("LLC_MISSES")};
static const struct nm_event_row ivb[] = {
	LOADS_ABOVE, STORES_PRECISE, INTEL_INSTRUCTIONS, FLOPS_EXECUTED, LLC_MISS};
static const struct nm_event_row snb_ep[] = {
	LOADS_ABOVE, STORES_PRECISE, INTEL_INSTRUCTIONS, FLOPS_EXECUTED,
	OFFCORE("ANY_DATA:LLC_MISS_LOCAL", "ANY_DATA:LLC_MISS_REMOTE")};
/* Haswell has no event that counts only floating-point operations. */
static const struct nm_event_row hsw[] = {LOADS_ABOVE, STORES_UOPS, INTEL_INSTRUCTIONS, LLC_MISS};
static const struct nm_event_row hsw_ep[] = {
	LOADS_ABOVE, STORES_UOPS, INTEL_INSTRUCTIONS,
	OFFCORE("ANY_DATA:L3_MISS_LOCAL", "ANY_DATA:L3_MISS_REMOTE")};
static const struct nm_event_row bdw[] = {
	LOADS_ABOVE, STORES_UOPS, INTEL_INSTRUCTIONS, FLOPS_256, LLC_MISS};
static const struct nm_event_row bdw_ep[] = {
	LOADS_ABOVE, STORES_UOPS, INTEL_INSTRUCTIONS, FLOPS_256,
	OFFCORE("ANY_DATA:L3_MISS_LOCAL", "ANY_DATA:L3_MISS_REMOTE")};
static const struct nm_event_row skl[] = {
	LOADS_ABOVE, STORES_ALL, INTEL_INSTRUCTIONS, FLOPS_256, LLC_MISS};
static const struct nm_event_row skx[] = {
	LOADS_ABOVE, STORES_ALL, INTEL_INSTRUCTIONS, FLOPS_512,
	OFFCORE("ANY_DATA_RD:L3_MISS_LOCAL", "ANY_DATA_RD:L3_MISS_REMOTE_HOP1_DRAM")};
static const struct nm_event_row icl[] = {
	LOADS_LATENCY, STORES_ALL, INTEL_INSTRUCTIONS, FLOPS_NAMED, LLC_MISS};
static const struct nm_event_row icx[] = {
	LOADS_LATENCY, STORES_ALL, INTEL_INSTRUCTIONS, FLOPS_NAMED, OCR};
static const struct nm_event_row spr[] = {
	LOADS_LATENCY, STORES_SAMPLE, INTEL_INSTRUCTIONS, FLOPS_NAMED, OCR};
/* The performance cores of hybrid clients. */
static const struct nm_event_row adl[] = {
	LOADS("MEM_TRANS_RETIRED:LOAD_LATENCY", RAW(NO_PMU, 0x1cd)),
	STORES("MEM_TRANS_RETIRED:STORE_SAMPLE", RAW(NO_PMU, 0x2cd)),
	INSTRUCTIONS("INST_RETIRED:ANY_P", RAW(NO_PMU, 0xc0)),
	FP("SCALAR", 1, RAW(NO_PMU, 0x3c7)), FP("128B_PACKED_DOUBLE", 2, RAW(NO_PMU, 0x4c7)),
	FP("4_FLOPS", 4, RAW(NO_PMU, 0x18c7)), FP("256B_PACKED_SINGLE", 8, RAW(NO_PMU, 0x20c7)),
	DRAM("LONGEST_LAT_CACHE:MISS", RAW(NO_PMU, 0x412e))};

/* AMD CPUs sample memory accesses by IBS, which is a PMU of its own. Their floating-point events
 * count operations, and count a fused multiply-add twice. */
#define AMD_INSTRUCTIONS INSTRUCTIONS("RETIRED_INSTRUCTIONS")
#define ZEN2_FILLS(from, ...) \
	DRAM("DATA_CACHE_REFILLS_FROM_SYSTEM:LS_MABRESP_" from, __VA_ARGS__), \
	DRAM("HARDWARE_PREFETCH_DATA_CACHE_FILLS:LS_MABRESP_" from, __VA_ARGS__)
#define FILLS "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:"

static const struct nm_event_row zen1[] = {
	AMD_INSTRUCTIONS,
	FLOPS("RETIRED_SSE_AVX_OPERATIONS:DP_MULT_ADD_FLOPS:DP_DIV_FLOPS:DP_MULT_FLOPS:DP_ADD_SUB_FLOPS"
	      ":SP_MULT_ADD_FLOPS:SP_DIV_FLOPS:SP_MULT_FLOPS:SP_ADD_SUB_FLOPS", 1),
	DRAM("data cache fills from local DRAM", RAW(NO_EVENT, 0x843)),
	DRAM("data cache fills from remote DRAM", RAW(NO_EVENT, 0x4043), REMOTE)};
static const struct nm_event_row zen2[] = {
	AMD_INSTRUCTIONS, FLOPS("RETIRED_SSE_AVX_FLOPS:ANY", 1),
	ZEN2_FILLS("LCL_DRAM"), ZEN2_FILLS("RMT_DRAM", REMOTE)};
static const struct nm_event_row zen3[] = {
	AMD_INSTRUCTIONS, FLOPS("RETIRED_SSE_AVX_FLOPS:ANY", 1),
	DRAM(FILLS "MEM_IO_LCL"), DRAM(FILLS "MEM_IO_RMT", REMOTE)};
static const struct nm_event_row zen4[] = {
	AMD_INSTRUCTIONS, FLOPS("RETIRED_SSE_AVX_FLOPS:ANY", 1),
	DRAM(FILLS "DRAM_IO_NEAR"), DRAM(FILLS "DRAM_IO_FAR", REMOTE)};
static const struct nm_event_row zen5[] = {
	INSTRUCTIONS("RETIRED_INSTRUCTIONS", RAW(NO_PMU, 0xc0)),
	FLOPS("RETIRED_SSE_AVX_FLOPS:ANY", 1, RAW(NO_PMU, 0xf03)),
	DRAM(FILLS "DRAM_IO_NEAR", RAW(NO_PMU, 0x844)),
	DRAM(FILLS "DRAM_IO_FAR", RAW(NO_PMU, 0x4044), REMOTE)};

/* The kernel's generic events, on any CPU; memory samples then come from sysfs. */
static const struct nm_event_row generic[] = {
	INSTRUCTIONS("PERF_COUNT_HW_INSTRUCTIONS", .raw = KERNELS, .type = PERF_TYPE_HARDWARE,
		     .config = PERF_COUNT_HW_INSTRUCTIONS),
	DRAM("PERF_COUNT_HW_CACHE_MISSES", .raw = KERNELS, .type = PERF_TYPE_HARDWARE,
	     .config = PERF_COUNT_HW_CACHE_MISSES)};

#define TABLE(r, words, ...) {#r, words, {__VA_ARGS__}, r, NM_ARRAY_SIZE(r)}
#define TABLE_AS(n, r, words, ...) {n, words, {__VA_ARGS__}, r, NM_ARRAY_SIZE(r)}
const struct nm_event_table nm_event_tables[] = {
	TABLE(generic, "any other CPU", NULL),
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
	TABLE(adl, "Intel Alder Lake to Meteor Lake, performance cores", "adl_glc"),
	TABLE(spr, "Intel Sapphire Rapids", "spr"),
	TABLE_AS("emr", spr, "Intel Emerald Rapids", "spr", "emr"),
	TABLE_AS("gnr", spr, "Intel Granite Rapids", "spr", "gnr"),
	TABLE(zen1, "AMD Zen, Zen+, Hygon", "amd64_fam17h_zen1"),
	TABLE(zen2, "AMD Zen 2", "amd64_fam17h_zen2"),
	TABLE(zen3, "AMD Zen 3", "amd64_fam19h_zen3"),
	TABLE(zen4, "AMD Zen 4", "amd64_fam19h_zen4"),
	TABLE(zen5, "AMD Zen 5", "amd64_fam1ah_zen5"),
};
/* clang-format on */

const size_t nm_event_table_count = NM_ARRAY_SIZE(nm_event_tables);

/* SPDX-License-Identifier: MIT */
/* Decodes data_src: where an access was served. Inline, because it is on the hot path.
 * perf_event_open(2), PERF_SAMPLE_DATA_SRC. */
#ifndef NUMA_MIGRD_SAMPLE_DATA_SRC_H
#define NUMA_MIGRD_SAMPLE_DATA_SRC_H

#include <linux/perf_event.h>

#include "sample/sample.h"

#define NM_SRC_OP(word) ((word)&0x1f)
#define NM_SRC_LVL(word) ((word) >> PERF_MEM_LVL_SHIFT & 0x3fff)
#define NM_SRC_NUM(word) ((word) >> PERF_MEM_LVLNUM_SHIFT & 0xf)
#define NM_SRC_REMOTE(word) ((word) >> PERF_MEM_REMOTE_SHIFT & 1)
#define NM_SRC_HOPS(word) ((word) >> PERF_MEM_HOPS_SHIFT & 7)

#define NM_SRC_REM_RAM (PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2)
#define NM_SRC_REM_CACHE (PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2)

/*
 * A sample without a memory operation (most of IBS, and any event without PEBS) has neither flag.
 */
static inline bool nm_data_src_is_memory(uint64_t word)
{
	return NM_SRC_OP(word) & (PERF_MEM_OP_LOAD | PERF_MEM_OP_STORE);
}

static inline bool nm_data_src_is_store(uint64_t word)
{
	return NM_SRC_OP(word) & PERF_MEM_OP_STORE;
}

/* Kernels before 5.x and some sources report the level only in these bits, or only by number. */
static inline enum nm_level nm_data_src_level_by_bits(uint64_t lvl)
{
	if (lvl & PERF_MEM_LVL_L1)
		return NM_LEVEL_L1;
	if (lvl & PERF_MEM_LVL_LFB)
		return NM_LEVEL_LFB;
	if (lvl & PERF_MEM_LVL_L2)
		return NM_LEVEL_L2;
	if (lvl & PERF_MEM_LVL_L3)
		return NM_LEVEL_L3;
	return lvl & NM_SRC_REM_CACHE ? NM_LEVEL_CACHE : NM_LEVEL_UNKNOWN;
}

static inline enum nm_level nm_data_src_level_by_number(uint64_t word)
{
	static const uint8_t levels[16] = {
		[0x1] = NM_LEVEL_L1,	[0x2] = NM_LEVEL_L2,   [0x3] = NM_LEVEL_L3,
		[0x4] = NM_LEVEL_CACHE, [0x5] = NM_LEVEL_LFB,  [0x6] = NM_LEVEL_CACHE,
		[0x7] = NM_LEVEL_L1,	[0x9] = NM_LEVEL_DRAM, [0xb] = NM_LEVEL_CACHE,
		[0xc] = NM_LEVEL_LFB,	[0xd] = NM_LEVEL_DRAM, [0xe] = NM_LEVEL_DRAM,
	};

	return (enum nm_level)levels[NM_SRC_NUM(word)];
}

/* Memory is checked first: Intel's source 0x0b is remote memory with level number 3. A level that
 * was missed does not show what served the access. */
static inline enum nm_level nm_data_src_level(uint64_t word)
{
	uint64_t lvl = NM_SRC_LVL(word);

	if (lvl & (PERF_MEM_LVL_LOC_RAM | NM_SRC_REM_RAM))
		return NM_LEVEL_DRAM;
	enum nm_level by_number = nm_data_src_level_by_number(word);
	if (by_number == NM_LEVEL_DRAM)
		return NM_LEVEL_DRAM;
	if (lvl & PERF_MEM_LVL_MISS)
		return NM_LEVEL_UNKNOWN;
	enum nm_level by_bits = nm_data_src_level_by_bits(lvl);
	return by_bits != NM_LEVEL_UNKNOWN ? by_bits : by_number;
}

/*
 * Returns whether another node served the access. A neighbouring core complex of the same node is
 * reported as "remote" with hops 0 (Zen 4), or as the third level and a remote cache at once (older
 * IBS): neither is another NUMA node.
 */
static inline bool nm_data_src_remote(uint64_t word)
{
	uint64_t lvl = NM_SRC_LVL(word);

	if (NM_SRC_REMOTE(word))
		return NM_SRC_HOPS(word) != PERF_MEM_HOPS_0;
	if (lvl & NM_SRC_REM_RAM)
		return true;
	return (lvl & NM_SRC_REM_CACHE) && !(lvl & PERF_MEM_LVL_L3);
}

#endif

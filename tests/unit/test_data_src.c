/* SPDX-License-Identifier: MIT */
/* data_src words of real machines → level and node, as perf(1) decodes them. */
#include "../support/test.h"

#include <stdint.h>

#include <string.h>

#include "../../src/sample/data_src.h"
#include "../support/data.h"

#define P(field, value) ((uint64_t)PERF_MEM_##field##_##value << PERF_MEM_##field##_SHIFT)
#define LOAD P(OP, LOAD)
#define REMOTE (1ULL << PERF_MEM_REMOTE_SHIFT)
#define NUM(n) ((uint64_t)(n) << PERF_MEM_LVLNUM_SHIFT)

struct expected {
	uint64_t word;
	bool memory, store;
	enum nm_level level;
	bool remote;
};

static void check(const struct expected *expected)
{
	uint64_t word = expected->word;

	if (nm_data_src_is_memory(word) != expected->memory ||
	    nm_data_src_is_store(word) != expected->store ||
	    nm_data_src_level(word) != expected->level ||
	    nm_data_src_remote(word) != expected->remote)
		fail_msg("%#llx: memory %d store %d level %d remote %d", (unsigned long long)word,
			 nm_data_src_is_memory(word), nm_data_src_is_store(word),
			 nm_data_src_level(word), nm_data_src_remote(word));
}

/* Alder Lake, IBS before and after Linux 6.1, Arm SPE; and events without memory information. */
TEST(words_of_real_machines)
{
	static const struct expected words[] = {
		{0x40268100142, true, false, NM_LEVEL_L1, false},
		{0x10668100842, true, false, NM_LEVEL_L3, false},
		{0x11868100242, true, false, NM_LEVEL_LFB, false},
		{0x51080242, true, false, NM_LEVEL_LFB, false},
		{0x51088842, true, false, NM_LEVEL_L3, false},
		{0x49080442, true, false, NM_LEVEL_L2, false},
		{0x229080144, true, true, NM_LEVEL_L1, false},
		{0x629800842, true, false, NM_LEVEL_L3, false},
		{0x1a49081042, true, false, NM_LEVEL_DRAM, false},
		{0x1e29080024, true, true, NM_LEVEL_UNKNOWN, false},
		{0x1e05080021, false, false, NM_LEVEL_UNKNOWN, false},
		{0x5080021, false, false, NM_LEVEL_UNKNOWN, false},
		{0, false, false, NM_LEVEL_UNKNOWN, false},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(words); i++)
		check(&words[i]);
}

TEST(traps)
{
	const struct expected words[] = {
		/* Intel 0x0b: remote memory, although its level is number 3 */
		{LOAD | P(LVL, HIT) | P(LVL, REM_RAM1) | REMOTE | NUM(3), true, false,
		 NM_LEVEL_DRAM, true},
		{LOAD | P(LVL, HIT) | P(LVL, REM_RAM2), true, false, NM_LEVEL_DRAM, true},
		/* Zen 4: another core complex of the same node */
		{LOAD | P(LVL, HIT) | P(LVL, REM_CCE1) | REMOTE | NUM(0xb) | P(HOPS, 0), true,
		 false, NM_LEVEL_CACHE, false},
		{LOAD | P(LVL, HIT) | P(LVL, REM_CCE1) | REMOTE | NUM(0xb) | P(HOPS, 1), true,
		 false, NM_LEVEL_CACHE, true},
		{LOAD | P(LVL, HIT) | P(LVL, REM_CCE2), true, false, NM_LEVEL_CACHE, true},
		/* by number only: persistent memory, CXL, RAM of another node */
		{LOAD | NUM(0xe), true, false, NM_LEVEL_DRAM, false},
		{LOAD | NUM(9) | REMOTE, true, false, NM_LEVEL_DRAM, true},
		{LOAD | NUM(0xd) | REMOTE | P(HOPS, 3), true, false, NM_LEVEL_DRAM, true},
		{LOAD | P(LVL, NA) | NUM(0xc), true, false, NM_LEVEL_LFB, false},
		{LOAD | P(LVL, NA) | NUM(0xf), true, false, NM_LEVEL_UNKNOWN, false},
		/* a miss does not name the level that served */
		{LOAD | P(LVL, MISS) | P(LVL, L3), true, false, NM_LEVEL_UNKNOWN, false},
		{P(OP, STORE) | P(LVL, MISS) | P(LVL, L1), true, true, NM_LEVEL_UNKNOWN, false},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(words); i++)
		check(&words[i]);
}

/* ---- the recorded words beside the output of perf ---- */

static enum nm_level level_in_words(const char *text)
{
	static const struct {
		const char *word;
		enum nm_level level;
	} words[] = {{"LVL L1 hit", NM_LEVEL_L1},  {"LVL LFB/MAB hit", NM_LEVEL_LFB},
		     {"LVL L2 hit", NM_LEVEL_L2},  {"LVL L3 hit", NM_LEVEL_L3},
		     {"LVL L3 or ", NM_LEVEL_L3},  {"LVL RAM hit", NM_LEVEL_DRAM},
		     {"LVL N/A", NM_LEVEL_UNKNOWN}};

	for (size_t i = 0; i < NM_ARRAY_SIZE(words); i++)
		if (strstr(text, words[i].word))
			return words[i].level;
	fail_msg("unknown level: %s", text);
	return NM_LEVEL_UNKNOWN;
}

/* The word is the last one before the output of perf. */
static uint64_t last_word(const char *line, const char *reading)
{
	const char *start = reading - 1;

	while (start > line && start[-1] != ' ')
		start--;
	return strtoull(start, NULL, 16);
}

TEST(golden_words)
{
	FILE *file = data_open("text/data_src-golden.txt");
	char line[512];
	unsigned checked = 0;

	if (!file)
		skip();
	while (fgets(line, sizeof(line), file)) {
		const char *reading = strstr(line, "|OP ");
		if (line[0] == '#' || !reading)
			continue;
		bool store = strstr(reading, "OP STORE") != NULL;
		check(&(struct expected){.word = last_word(line, reading),
					 .memory = store || strstr(reading, "OP LOAD"),
					 .store = store,
					 .level = level_in_words(reading)});
		checked++;
	}
	fclose(file);
	assert_in_range(checked, 20, 100);
}

RUN_TESTS()

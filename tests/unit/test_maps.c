/* SPDX-License-Identifier: MIT */
/* Which memory of a process may move, by the text of status, maps and numa_maps. */
#include "../support/test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/maps.h"

#define RUNS "Name:\tx\nState:\tS (sleeping)\nVmRSS:\t    4096 kB\n"
#define FOUR "anon=1 N0=1 kernelpagesize_kB=4"

struct verdict {
	int error;
	enum nm_maps_rule rule;
	struct nm_range *ranges;
	size_t count;
};

static void free_verdict(struct verdict *verdict)
{
	free(verdict->ranges);
}
#define VERDICT __attribute__((cleanup(free_verdict))) struct verdict

static struct verdict judge_by(const struct nm_maps_rules *rules, const char *status,
			       const char *maps, const char *numa_maps)
{
	const struct nm_maps_text text = {status, maps, numa_maps};
	struct verdict verdict = {0};

	verdict.error = nm_maps_judge(&text, rules, &verdict.ranges, &verdict.count, &verdict.rule);
	return verdict;
}

static struct verdict judge(const char *maps, const char *numa_maps)
{
	const struct nm_maps_rules rules = {.rss_bytes = UINT64_C(1) << 30};

	return judge_by(&rules, RUNS, maps, numa_maps);
}

static void assert_range(const struct verdict *verdict, size_t i, uint64_t start, uint64_t end)
{
	assert_true(i < verdict->count);
	assert_int_equal(verdict->ranges[i].start, start);
	assert_int_equal(verdict->ranges[i].end, end);
}

/* ---- one mapping ---- */

TEST(each_rule_refuses_its_memory)
{
	static const struct {
		const char *mode, *words;
		enum nm_maps_rule rule;
	} cases[] = {
		{"rw-p 0 00:00 0", "default " FOUR, NM_MAPS_MOVES},
		{"rw-p 0 00:00 0", "local " FOUR, NM_MAPS_MOVES},
		{"rw-p 0 00:00 0", "default heap " FOUR, NM_MAPS_MOVES},
		{"rw-p 0 00:00 0", "bind:0 " FOUR, NM_MAPS_BOUND},
		{"rw-p 0 00:00 0", "prefer:1 " FOUR, NM_MAPS_BOUND},
		{"rw-p 0 00:00 0", "weighted interleave:0-1 " FOUR, NM_MAPS_BOUND},
		{"rw-p 0 00:00 0", "a policy of tomorrow " FOUR, NM_MAPS_BOUND},
		{"rw-s 0 00:01 9 /memfd:ram (deleted)", "default file=/memfd:ram " FOUR,
		 NM_MAPS_SHARED},
		{"rw-s 0 00:01 9 /dev/zero (deleted)", "default " FOUR, NM_MAPS_SHARED},
		{"rw-p 0 fd:01 9 /lib/x", "default file=/lib/x " FOUR, NM_MAPS_FILE},
		{"rw-p 0 00:0f 9 /dev/hugepages/x", "default file=/dev/hugepages/x huge " FOUR,
		 NM_MAPS_FILE},
		{"rw-p 0 00:0f 9 /anon_hugepage (deleted)",
		 "default file=/anon_hugepage\\040(deleted) huge " FOUR, NM_MAPS_MOVES},
		{"rw-p 0 00:00 0", "default", NM_MAPS_EMPTY},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		char maps[128], numa_maps[128];
		snprintf(maps, sizeof(maps), "1000-2000 %s\n", cases[i].mode);
		snprintf(numa_maps, sizeof(numa_maps), "1000 %s\n", cases[i].words);
		VERDICT verdict = judge(maps, numa_maps);
		assert_int_equal(verdict.error, 0);
		assert_int_equal(verdict.rule, cases[i].rule);
		assert_int_equal(verdict.count, cases[i].rule == NM_MAPS_MOVES);
		assert_int_equal(verdict.ranges != NULL, cases[i].rule == NM_MAPS_MOVES);
	}
}

/* Any number of processes may map one of its pages. */
TEST(private_memory_is_private)
{
	static const char *const words[] = {
		"default anon=9 mapmax=2 N0=9 kernelpagesize_kB=4",
		"default anon=9 mapmax=18446744073709551615 N0=9 kernelpagesize_kB=4",
		"default stack anon=9 dirty=9 mapmax=77 N0=9 kernelpagesize_kB=4"};

	for (size_t i = 0; i < NM_ARRAY_SIZE(words); i++) {
		char numa_maps[128];
		snprintf(numa_maps, sizeof(numa_maps), "1000 %s\n", words[i]);
		VERDICT verdict = judge("1000-a000 rw-p 0 00:00 0\n", numa_maps);
		assert_int_equal(verdict.rule, NM_MAPS_MOVES);
		assert_range(&verdict, 0, 0x1000, 0xa000);
	}
}

TEST(the_administrator_may_allow_it)
{
	const struct nm_maps_rules bound = {.move_bound = true}, shared = {.move_shared = true};
	static const char maps[] = "1000-2000 rw-p 0 00:00 0\n3000-4000 rw-s 0 00:01 9 /x\n";
	static const char numa_maps[] = "1000 bind:0 " FOUR "\n3000 default file=/x " FOUR "\n";

	VERDICT by_bound = judge_by(&bound, RUNS, maps, numa_maps);
	assert_int_equal(by_bound.count, 1);
	assert_range(&by_bound, 0, 0x1000, 0x2000);
	VERDICT by_shared = judge_by(&shared, RUNS, maps, numa_maps);
	assert_int_equal(by_shared.count, 1);
	assert_range(&by_shared, 0, 0x3000, 0x4000);
}

/* ---- several ---- */

TEST(the_rule_that_refuses_most_is_named)
{
	static const char maps[] = "1000-2000 rw-p 0 00:00 0\n3000-6000 rw-s 0 00:01 9 /x\n"
				   "8000-9000 r--p 0 fd:01 9 /lib/x\n";
	static const char numa_maps[] = "1000 bind:0 anon=1 N0=1 kernelpagesize_kB=4\n"
					"3000 default file=/x dirty=3 N0=3 kernelpagesize_kB=4\n"
					"8000 default file=/lib/x mapped=1 N0=1 "
					"kernelpagesize_kB=4\n";
	VERDICT verdict = judge(maps, numa_maps);
	assert_int_equal(verdict.rule, NM_MAPS_SHARED);
	assert_null(verdict.ranges);
	VERDICT nothing = judge("", "");
	assert_int_equal(nothing.rule, NM_MAPS_EMPTY);
}

/* A mapping that is not described, was merged or split meanwhile, or whose line was cut short. */
TEST(what_is_not_described_stays)
{
	static const char maps[] = "1000-2000 rw-p 0 00:00 0\n3000-6000 rw-p 0 00:00 0\n";

	VERDICT split = judge(maps, "3000 default " FOUR "\n4000 bind:0 " FOUR "\n");
	assert_int_equal(split.count, 1);
	assert_range(&split, 0, 0x3000, 0x4000);
	VERDICT cut_short = judge(maps, "3000 default " FOUR);
	assert_int_equal(cut_short.count, 0);
	assert_int_equal(cut_short.rule, NM_MAPS_EMPTY);
	VERDICT elsewhere = judge(maps, "2000 default " FOUR "\n");
	assert_int_equal(elsewhere.count, 0);
}

/* ---- the process ---- */

TEST(a_process_without_memory_has_exited)
{
	const struct nm_maps_rules rules = {0};

	VERDICT exited = judge_by(&rules, "Name:\tx\nState:\tZ (zombie)\n", "", "");
	assert_int_equal(exited.rule, NM_MAPS_EXITED);
	VERDICT named = judge_by(&rules, "Name:\tVmRSS: 9 kB\nState:\tZ (zombie)\n", "", "");
	assert_int_equal(named.rule, NM_MAPS_EXITED);
	VERDICT damaged = judge_by(&rules, "Name:\tx\nState:\tS\nVmRSS:\tmany kB\n", "", "");
	assert_int_equal(damaged.error, -EINVAL);
	VERDICT empty = judge_by(&rules, "", "", "");
	assert_int_equal(empty.error, -EINVAL);
}

TEST(a_large_process_is_refused)
{
	const struct nm_maps_rules fits = {.rss_bytes = 4096 * 1024},
				   less = {.rss_bytes = 4095 * 1024};
	static const char maps[] = "1000-2000 rw-p 0 00:00 0\n",
			  numa_maps[] = "1000 default " FOUR "\n";

	VERDICT allowed = judge_by(&fits, RUNS, maps, numa_maps);
	assert_int_equal(allowed.rule, NM_MAPS_MOVES);
	VERDICT refused = judge_by(&less, RUNS, maps, numa_maps);
	assert_int_equal(refused.rule, NM_MAPS_TOO_LARGE);
	assert_null(refused.ranges);
}

/* SECURITY: many-mappings */
TEST(many_mappings_are_refused)
{
	enum { LINE = 64 };
	char *maps = malloc((NM_MAPPINGS_MOST + 1) * (size_t)LINE);
	size_t used = 0;

	assert_non_null(maps);
	for (uint64_t i = 1; i <= NM_MAPPINGS_MOST + 1; i++)
		used += (size_t)snprintf(maps + used, LINE, "%llx-%llx rw-p 0 00:00 0\n",
					 (unsigned long long)i << 13,
					 ((unsigned long long)i << 13) + 4096);
	VERDICT verdict = judge(maps, "2000 default " FOUR "\n");
	assert_int_equal(verdict.rule, NM_MAPS_TOO_MANY);
	assert_null(verdict.ranges);
	free(maps);
}

/* Pieces of any size give the same ranges as the whole text. */
TEST(pieces_give_the_same_result)
{
	static const char maps[] = "1000-2000 rw-p 0 00:00 0\n2000-3000 rw-p 0 00:00 0 [heap]\n"
				   "8000-9000 rw-s 0 00:01 9 /x\n";
	static const char numa_maps[] = "1000 default " FOUR "\n2000 default heap mapmax=3 " FOUR
					"\n8000 default file=/x " FOUR "\n";
	const struct nm_maps_rules rules = {0};

	VERDICT whole = judge(maps, numa_maps);
	assert_int_equal(whole.count, 1);
	assert_range(&whole, 0, 0x1000, 0x3000);
	for (size_t size = 1; size < sizeof(maps); size++) {
		struct nm_maps pieces = {0};
		struct nm_range *ranges;
		size_t count;
		for (size_t file = 0; file < 2; file++) {
			const char *text = file ? numa_maps : maps;
			for (size_t at = 0; at < strlen(text); at += size)
				assert_int_equal(
					nm_maps_add(&pieces, text + at, strnlen(text + at, size)),
					0);
			nm_maps_end_file(&pieces);
		}
		nm_maps_ranges(&pieces, &rules, &ranges, &count);
		assert_int_equal(count, whole.count);
		assert_memory_equal(ranges, whole.ranges, count * sizeof(*ranges));
		free(ranges);
		nm_maps_clear(&pieces);
	}
}

RUN_TESTS()

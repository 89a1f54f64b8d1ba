/* SPDX-License-Identifier: MIT */
/* Which memory of a process may move, by the text of maps and numa_maps: as the worker reads it,
 * and as the mover gets it. */
#include "../support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../support/live_calls.h"
#include "platform/page_jobs.h"

#define FOUR "anon=1 N0=1 kernelpagesize_kB=4"

static const char *const rules[] = {"moves", "unknown", "empty", "bound", "shared", "file"};

/* Appends the mappings of a piece, as "1000-2000 moves; 3000-5000 bound, pool; …" */
static void print(const struct nm_mappings_piece *piece, char *text, size_t size)
{
	for (unsigned i = 0; i < piece->count; i++) {
		const struct nm_mapping *mapping = &piece->items[i];
		size_t used = strlen(text);
		snprintf(text + used, size - used, "%s%" PRIx64 "-%" PRIx64 " %s%s",
			 used ? "; " : "", mapping->start, mapping->end, rules[mapping->rule],
			 mapping->pool ? ", pool" : "");
	}
}

/* Reads both files in pieces of this size, and prints what the worker would send. */
static int judge_pieces(const char *maps, const char *numa_maps, const struct nm_maps_rules *by,
			size_t size, char *ret, size_t ret_size)
{
	static struct nm_mappings_piece piece;
	const char *const files[] = {maps, numa_maps};
	struct nm_maps read = {0};
	size_t next = 0;
	int r = 0;

	*ret = '\0';
	for (size_t file = 0; file < 2; file++) {
		for (size_t at = 0, end = strlen(files[file]); at < end && r == 0; at += size) {
			r = nm_maps_add(&read, files[file] + at, strnlen(files[file] + at, size));
			assert_true(nm_mappings_take(&read, by, &next, &piece));
			print(&piece, ret, ret_size);
		}
		nm_maps_end_file(&read);
	}
	assert_false(nm_mappings_take(&read, by, &next, &piece));
	assert_true(nm_mappings_piece_is_valid(&piece, 0));
	print(&piece, ret, ret_size);
	nm_maps_clear(&read);
	return r;
}

static void check_pieces(const char *name, const char *maps, const char *numa_maps,
			 const struct nm_maps_rules *by, size_t size, const char *expected)
{
	char found[512];
	int r = judge_pieces(maps, numa_maps, by, size, found, sizeof(found));
	if (r < 0 || strcmp(found, expected) != 0)
		fail_msg("%s, in pieces of %zu: %d, \"%s\" instead of \"%s\"", name, size, r, found,
			 expected);
}

/* ---- one mapping ---- */

TEST(each_rule_refuses_its_memory)
{
	static const struct {
		const char *mode, *words, *expected;
	} rows[] = {
		{"rw-p 0 00:00 0", "default " FOUR, "moves"},
		{"rw-p 0 00:00 0", "local " FOUR, "moves"},
		{"rw-p 0 00:00 0", "default heap " FOUR, "moves"},
		{"rw-p 0 00:00 0", "bind:0 " FOUR, "bound"},
		{"rw-p 0 00:00 0", "prefer:1 " FOUR, "bound"},
		{"rw-p 0 00:00 0", "weighted interleave:0-1 " FOUR, "bound"},
		{"rw-p 0 00:00 0", "a policy of tomorrow " FOUR, "bound"},
		{"rw-s 0 00:01 9 /memfd:ram (deleted)", "default file=/memfd:ram " FOUR, "shared"},
		{"rw-s 0 00:01 9 /dev/zero (deleted)", "default " FOUR, "shared"},
		{"rw-p 0 fd:01 9 /lib/x", "default file=/lib/x " FOUR, "file"},
		{"rw-p 0 00:0f 9 /dev/hugepages/x", "default file=/dev/hugepages/x huge " FOUR,
		 "file, pool"},
		{"rw-p 0 00:0f 9 /anon_hugepage (deleted)",
		 "default file=/anon_hugepage\\040(deleted) huge " FOUR, "moves, pool"},
		{"rw-p 0 00:00 0", "default", "empty"},
		/* Any number of processes may map one of its pages. */
		{"rw-p 0 00:00 0", "default anon=9 mapmax=2 N0=9 kernelpagesize_kB=4", "moves"},
		{"rw-p 0 00:00 0",
		 "default anon=9 mapmax=18446744073709551615 N0=9 kernelpagesize_kB=4", "moves"},
		{"rw-p 0 00:00 0", "default stack anon=9 mapmax=77 N0=9 kernelpagesize_kB=4",
		 "moves"},
	};

	EACH_ROW(row, rows)
	{
		char maps[128], numa_maps[128], expected[64];
		snprintf(maps, sizeof(maps), "1000-2000 %s\n", row->mode);
		snprintf(numa_maps, sizeof(numa_maps), "1000 %s\n", row->words);
		snprintf(expected, sizeof(expected), "1000-2000 %s", row->expected);
		check_pieces(row->words, maps, numa_maps, &(struct nm_maps_rules){0}, 4096,
			     expected);
	}
}

/* ---- several ---- */

/* A name of this length must not be read as other fields. */
#define NAME_64 "0123456789012345678901234567890123456789012345678901234567890123"
#define NAME_1024                                                                                  \
	NAME_64 NAME_64 NAME_64 NAME_64 NAME_64 NAME_64 NAME_64 NAME_64 NAME_64 NAME_64 NAME_64    \
		NAME_64 NAME_64 NAME_64 NAME_64 NAME_64

#define TWO_SORTS                                                                                  \
	"1000-2000 rw-p 0 00:00 0\n3000-4000 rw-s 0 00:01 9 /x\n",                                 \
		"1000 bind:0 " FOUR "\n3000 default file=/x " FOUR "\n"

/* SECURITY: many-mappings */
TEST(mappings_beside_each_other)
{
	static const struct {
		const char *name, *maps, *numa_maps;
		struct nm_maps_rules by;
		const char *expected;
	} rows[] = {
		{"none", "", "", {0}, ""},
		{"the rules", TWO_SORTS, {0}, "1000-2000 bound; 3000-4000 shared"},
		{"bound memory is allowed",
		 TWO_SORTS,
		 {.move_bound = true},
		 "1000-2000 moves; 3000-4000 shared"},
		{"shared memory is allowed",
		 TWO_SORTS,
		 {.move_shared = true},
		 "1000-2000 bound; 3000-4000 moves"},
		{"adjacent ones",
		 "1000-2000 rw-p 0 00:00 0\n2000-3000 rw-p 0 00:00 0\n"
		 "3000-4000 r--p 0 fd:01 9 /x\n4000-5000 r--p 0 fd:01 9 /x\n"
		 "5000-6000 rw-s 0 00:01 9 /y\n",
		 "1000 default " FOUR "\n2000 default heap " FOUR "\n3000 default file=/x " FOUR
		 "\n4000 default file=/x " FOUR "\n5000 default file=/y " FOUR "\n",
		 {0},
		 "1000-2000 moves; 2000-3000 moves; 3000-4000 file; 4000-5000 file; 5000-6000 "
		 "shared"},
		{"one was split meanwhile: its beginning alone is as described",
		 "1000-2000 rw-p 0 00:00 0\n3000-6000 rw-p 0 00:00 0\n",
		 "3000 default " FOUR "\n4000 bind:0 " FOUR "\n",
		 {0},
		 "1000-2000 unknown; 3000-4000 moves"},
		{"its owner binds parts of it meanwhile",
		 "1000-6000 rw-p 0 00:00 0\n8000-a000 rw-p 0 00:00 0\n",
		 "1000 default " FOUR "\n3000 bind:0 " FOUR "\n5000 default " FOUR
		 "\n8000 default " FOUR "\n9000 bind:1 " FOUR "\n",
		 {0},
		 "1000-3000 moves; 8000-9000 moves"},
		{"the last line is cut short",
		 "1000-2000 rw-p 0 00:00 0\n3000-6000 rw-p 0 00:00 0\n",
		 "3000 default " FOUR,
		 {0},
		 "1000-2000 unknown; 3000-6000 unknown"},
		{"a description begins elsewhere",
		 "1000-3000 rw-p 0 00:00 0\n",
		 "2000 default " FOUR "\n",
		 {0},
		 "1000-2000 unknown"},
		{"lines that are none, overlap, or are out of order",
		 "1000-3000 rw-p 0 00:00 0\n8000-9000 rw-s 0 00:01 5 /x\nnonsense\n"
		 "a000-b000 rw-p 0 00:00 0\n9000-c000 rw-p 0 00:00 0\nd000-e000 rw-p 0 00:00 0",
		 "1000 default " FOUR "\n7000 bind:0 " FOUR "\nnonsense\n8000 default file=/x\n"
		 "a000 prefer:1 " FOUR "\n1000 bind:0\nf000 bind:0\n",
		 {0},
		 "1000-3000 moves; 8000-9000 shared; a000-b000 bound"},
		{"a description longer than a line",
		 "1000-2000 rw-p 0 fd:01 5 /" NAME_1024 "\n3000-4000 rw-p 0 00:00 0\n",
		 "1000 default file=/" NAME_1024 " huge kernelpagesize_kB=4\n3000 default " FOUR
		 "\n",
		 {0},
		 "1000-2000 bound; 3000-4000 moves"},
	};

	EACH_ROW(row, rows)
	for (size_t size = 1; size < 4096; size = size < 100 ? size + 1 : size * 2)
		check_pieces(row->name, row->maps, row->numa_maps, &row->by, size, row->expected);
}

static int add_line(struct nm_maps *maps, unsigned file, uint64_t number)
{
	char line[64];
	int length = snprintf(line, sizeof(line),
			      file ? "%" PRIx64 " default " FOUR "\n"
				   : "%" PRIx64 "-%" PRIx64 " rw-p 0 00:00 0\n",
			      number << 13, (number << 13) + 4096);
	return nm_maps_add(maps, line, (size_t)length);
}

/* SECURITY: many-mappings */
TEST(many_mappings_are_refused)
{
	struct nm_maps maps = {0};
	int r = 0;

	for (uint64_t i = 1; i <= NM_MAPPINGS_MOST + 1; i++) {
		assert_int_equal(r, 0);
		r = add_line(&maps, 0, i);
	}
	assert_int_equal(r, -EFBIG);
	nm_maps_clear(&maps);
}

/* The next piece contains those that do not fit. */
TEST(mappings_come_in_pieces)
{
	static struct nm_mappings_piece piece;
	const struct nm_maps_rules by = {0};
	enum { MAPPINGS = 2 * NM_MAPPINGS_PIECE + 5 };
	struct nm_maps maps = {0};
	unsigned pieces = 0, count = 0;
	size_t next = 0;
	uint64_t after = 0;
	bool more = true;

	for (unsigned file = 0; file < 2; file++) {
		for (uint64_t i = 1; i <= MAPPINGS; i++)
			assert_int_equal(add_line(&maps, file, i), 0);
		nm_maps_end_file(&maps);
	}
	for (; more; pieces++) {
		more = nm_mappings_take(&maps, &by, &next, &piece);
		assert_true(nm_mappings_piece_is_valid(&piece, after));
		assert_int_equal(piece.complete, !more);
		after = piece.items[piece.count - 1].end;
		count += piece.count;
	}
	assert_int_equal(pieces, 3);
	assert_int_equal(count, MAPPINGS);
	nm_maps_clear(&maps);
}

/* Random bytes may be refused, and accepted mappings ascend. */
TEST(noise_gives_ascending_mappings)
{
	static const char alphabet[] =
		"0123456789abcdef-- \n\n:rwps=bind default file=/huge mapmax";
	static char found[1 << 20];
	char maps[3001] = "", numa_maps[3001] = "";
	struct nm_rng rng;

	nm_rng_seed(&rng, 20241122);
	for (unsigned round = 0; round < 300; round++) {
		for (size_t i = 0; i < 3000; i++) {
			maps[i] = alphabet[nm_rng_below(&rng, sizeof(alphabet) - 1)];
			numa_maps[i] = alphabet[nm_rng_below(&rng, sizeof(alphabet) - 1)];
		}
		assert_int_equal(judge_pieces(maps, numa_maps, &(struct nm_maps_rules){0}, 256,
					      found, sizeof(found)),
				 0);
	}
}

/* ---- a real process ---- */

static struct nm_platform *open_platform(void)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	struct nm_platform *platform;
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	return platform;
}

/* The maps of this process match the assumed format of the kernel. */
TEST(own_mappings_are_read)
{
	nm_auto(nm_platform_freep) struct nm_platform *platform = open_platform();
	nm_autofree struct nm_mappings_piece *piece = calloc(1, sizeof(*piece));
	nm_autofree char *heap = malloc(100000);
	struct nm_mappings_order order = {.budget_ns = NM_NSEC_PER_MSEC, .begin = 1};
	uint64_t held_ns = 0, after = 0;
	bool has_heap = false, has_program = false;

	memset(heap, 1, 100000);
	if (access("/proc/self/numa_maps", R_OK) < 0) {
		print_message("this kernel has no numa_maps: skipped\n");
		skip();
	}
	for (; !piece->complete; order.begin = 0) {
		int r = platform->ops->mappings_read(platform, getpid(), 0, &order, piece,
						     &held_ns);
		assert_int_equal(live_result(platform, r), 0);
		assert_true(nm_mappings_piece_is_valid(piece, after));
		for (unsigned i = 0; i < piece->count; i++) {
			const struct nm_mapping *one = &piece->items[i];
			uintptr_t code = (uintptr_t)own_mappings_are_read;
			after = one->end;
			has_heap |= one->start <= (uintptr_t)heap && one->rule == NM_MAPS_MOVES &&
				    (uintptr_t)heap + 100000 <= one->end;
			has_program |=
				one->start <= code && code < one->end && one->rule == NM_MAPS_FILE;
		}
	}
	assert_true(held_ns > 0);
	assert_true(has_heap);
	assert_true(has_program);
}

/* The lines of the kernel match the count of pages; a single node has more pages than those touched
 * here. */
TEST(own_pages_are_counted)
{
	nm_auto(nm_platform_freep) struct nm_platform *platform = open_platform();
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {.result = -EAGAIN};
	const struct nm_memory_query question = {
		.kind = NM_MEMORY_QUERY_NUMA_MAPS, .pid = (uint32_t)getpid(), .start_ticks = 0};
	uint64_t query_id = 0;
	nm_autofree char *heap = malloc(4 << 20);

	memset(heap, 1, 4 << 20);
	if (access("/proc/self/numa_maps", R_OK) < 0 ||
	    access("/sys/devices/system/node/node1", F_OK) == 0) {
		print_message("no numa_maps, or more nodes than one: skipped\n");
		skip();
	}
	assert_int_equal(platform->ops->memory_query(platform, &question, &query_id), 0);
	while (platform->ops->memory_poll(platform, query_id, &answer) == -EAGAIN)
		live_wait(platform);
	assert_int_equal(answer.result, 0);
	assert_true(answer.pages->whole && answer.pages->own[0] >= 1024);
	assert_true(answer.pages->own_bytes >= 4 << 20);
}

RUN_TESTS()

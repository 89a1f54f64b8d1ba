// SPDX-License-Identifier: MIT
// SECURITY: many-mappings, proc-sys
/* Parses /proc/PID/maps and numa_maps in lines and in pieces. */
#include "../../src/mover/mappings.h"
#include "fuzz.h"
#include "numa-migrd/maps.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/regions.h"

#define BUDGET_NS 1000U

static void parse_lines(const char *text)
{
	struct nm_node_pages pages = {0};
	struct nm_mapped mapped;

	if (nm_mapped_parse_extent(text, &mapped) == 0)
		FUZZ_REQUIRE(mapped.start < mapped.end);
	if (nm_mapped_parse_policy(text, &mapped) == 0)
		FUZZ_REQUIRE(mapped.policy <= NM_MEMORY_OTHER);
	nm_node_pages_add(&pages, text, 4096);
}

static void look(const struct nm_mappings *mappings)
{
	const struct nm_mapped *all;
	struct nm_range *ranges = NULL;
	size_t count = nm_mappings_all(mappings, &all), nr_ranges = 0;

	for (size_t i = 0; i < count; i++) {
		FUZZ_REQUIRE(all[i].start < all[i].end);
		FUZZ_REQUIRE(i == 0 || all[i - 1].end <= all[i].start);
		FUZZ_REQUIRE(nm_mappings_find(mappings, all[i].start, 1) == &all[i]);
		FUZZ_REQUIRE(!nm_mappings_find(mappings, all[i].end - 1, 2));
	}
	nm_maps_ranges(&mappings->maps,
		       &(struct nm_maps_rules){.move_bound = true, .move_shared = true}, &ranges,
		       &nr_ranges);
	FUZZ_REQUIRE(nr_ranges <= count);
	free(ranges);
}

static void read_all(const char *text, size_t size, size_t piece)
{
	struct fuzz_platform fuzz = fuzz_platform_returning(text, size);
	nm_auto(nm_mappings_freep) struct nm_mappings *mappings = NULL;
	int r = -EAGAIN;

	fuzz.piece = piece;
	nm_mappings_new(&fuzz.platform, &mappings);
	while (r == -EAGAIN)
		r = nm_mappings_read(mappings, fuzz_open_directory(&fuzz.platform, NM_ROOT, ""),
				     BUDGET_NS);
	FUZZ_REQUIRE(r == 0 || r == -EFBIG);
	if (r == 0)
		look(mappings);
}

/* One text in place of each file. */
static void judge(const char *text)
{
	const struct nm_maps_text all = {text, text, text};
	const struct nm_maps_rules rules = {.rss_bytes = 1U << 30};
	struct nm_range *ranges = NULL;
	enum nm_maps_rule rule;
	size_t count;

	if (nm_maps_judge(&all, &rules, &ranges, &count, &rule) < 0)
		return;
	FUZZ_REQUIRE((rule == NM_MAPS_MOVES) == (count > 0));
	for (size_t i = 0; i < count; i++)
		FUZZ_REQUIRE(ranges[i].start < ranges[i].end);
	free(ranges);
}

/* The result of the whole text equals that of its pieces. */
static void search_program(const char *text, size_t size, size_t piece)
{
	struct nm_program_search whole = {0}, pieces = {0};

	nm_program_search(&whole, text, size);
	for (size_t at = 0; at < size; at += piece + 1)
		nm_program_search(&pieces, text + at, size - at <= piece ? size - at : piece + 1);
	FUZZ_REQUIRE(whole.known == pieces.known);
	FUZZ_REQUIRE(whole.program == pieces.program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	size_t piece = fuzz_byte(&input);
	char *text = fuzz_text(&input);

	parse_lines(text);
	judge(text);
	read_all(text, input.size, piece);
	search_program(text, strlen(text), piece);
	free(text);
	return 0;
}

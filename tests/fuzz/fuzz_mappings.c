// SPDX-License-Identifier: MIT
// SECURITY: many-mappings, proc-sys
/* Parses /proc/PID/maps and numa_maps in lines and in pieces, as a worker does. */
#include "fuzz.h"
#include "platform/maps.h"
#include "platform/page_jobs.h"
#include "numa-migrd/proc.h"

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

/* Takes what is complete, and checks it as the daemon does. */
static void take(const struct nm_maps *maps, size_t *next, uint64_t *after)
{
	static struct nm_mappings_piece piece;
	const struct nm_maps_rules rules = {0};
	bool more = true;

	do {
		size_t before = *next;
		more = nm_mappings_take(maps, &rules, next, &piece);
		FUZZ_REQUIRE(nm_mappings_piece_is_valid(&piece, *after));
		if (piece.count > 0)
			*after = piece.items[piece.count - 1].end;
		if (*next == before)
			break;
	} while (more);
	FUZZ_REQUIRE(*next <= maps->count);
	FUZZ_REQUIRE(maps->complete == !more);
}

/* One text in place of both files. */
static void read_all(const char *text, size_t size, size_t piece)
{
	struct nm_maps maps = {0};
	size_t next = 0;
	uint64_t after = 0;
	int r = 0;

	for (unsigned file = 0; file < 2 && r == 0; file++) {
		for (size_t at = 0; at < size && r == 0; at += piece + 1) {
			r = nm_maps_add(&maps, text + at,
					size - at <= piece ? size - at : piece + 1);
			if (r == 0)
				take(&maps, &next, &after);
		}
		nm_maps_end_file(&maps);
	}
	FUZZ_REQUIRE(r == 0 || r == -EFBIG);
	if (r == 0)
		take(&maps, &next, &after);
	nm_maps_clear(&maps);
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
	read_all(text, input.size, piece);
	search_program(text, strlen(text), piece);
	free(text);
	return 0;
}

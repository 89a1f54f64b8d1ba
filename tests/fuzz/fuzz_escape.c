// SPDX-License-Identifier: MIT
// SECURITY: names, terminals
/* Untrusted text on its way to the journal, the bus, a terminal and Prometheus. */
#include "../../src/ctl/text.h"
#include "fuzz.h"
#include "numa-migrd/base.h"

#define ROOM_MOST 300U

/* The output is printable UTF-8 on one line for any input. */
static void require_clean(const char *text, size_t length)
{
	uint32_t code;

	FUZZ_REQUIRE(strlen(text) == length);
	for (size_t at = 0, size; at < length; at += size) {
		size = nm_utf8_decode(text + at, length - at, &code);
		FUZZ_REQUIRE(size > 0);
		FUZZ_REQUIRE(code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0));
		FUZZ_REQUIRE(!(code >= 0x202a && code <= 0x202e) && code != 0x2028);
	}
}

/* Truncated text stays clean if it is truncated again for a narrow column. */
static void fit(const char *text, size_t width)
{
	const struct nm_style style = {.utf8 = width & 1};
	char out[ROOM_MOST + 4];

	FUZZ_REQUIRE(nm_text_fit(out, sizeof(out), text, width, &style) <= width);
	require_clean(out, strlen(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	size_t width = fuzz_byte(&input);
	size_t room = 4 + fuzz_u64(&input) % (ROOM_MOST - 4);
	char *out = malloc(room), *exact = fuzz_text(&input);

	FUZZ_REQUIRE(out);
	size_t length = nm_escape(out, room, exact, input.size);
	FUZZ_REQUIRE(length < room);
	require_clean(out, length);
	fit(out, width);
	free(out), free(exact);
	return 0;
}

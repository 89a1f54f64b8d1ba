/* SPDX-License-Identifier: MIT */
/* The program of a process by its mappings: maps in pieces, and this test through the worker. */
#include "../support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/exclusions.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"

static unsigned program_in(const char *text, size_t piece)
{
	struct nm_program_search *search = calloc(1, sizeof(*search));
	size_t length = strlen(text);
	assert_non_null(search);
	for (size_t at = 0; at < length; at += piece)
		nm_program_search(search, text + at, length - at < piece ? length - at : piece);
	unsigned program = search->program;
	free(search);
	return program;
}

/* The first file is that of the program; its libraries are above it. */
TEST(a_program_is_its_first_file)
{
	static const char tini[] =
		"00400000-00405000 r-xp 00000000 fe:00 17  /usr/bin/tini (deleted)\n"
		"7f0000000000-7f0000001000 r--p 00000000 fe:00 18  /lib/pause\n";
	static const char other[] = "00300000-00301000 rw-p 00000000 00:00 0 \n"
				    "00400000-00405000 r-xp 00000000 fe:00 17  /usr/bin/postgres\n"
				    "7f0000000000-7f0000001000 r--p 00000000 fe:00 18  /bin/tini\n";
	for (size_t piece = 1; piece < sizeof(tini); piece++) {
		assert_int_equal(program_in(tini, piece), nm_excluded_program_in("/x/tini"));
		assert_int_equal(program_in(other, piece), 0);
	}
	assert_int_not_equal(nm_excluded_program_in("/x/tini"), 0);
	assert_int_equal(nm_excluded_program_in("/tini/x"), 0);
	assert_int_equal(nm_excluded_program_in("/x/tini2"), 0);
}

/* A line longer than any path, invalid lines, and truncated text. */
TEST(odd_lines_are_passed_over)
{
	static const char tini[] = "7f0000000000-7f0000001000 r--p 00000000 fe:00 18  /bin/tini\n";
	nm_autofree char *text = calloc(1, 3 * NM_PROGRAM_LINE_BYTES + sizeof(tini));
	assert_non_null(text);
	memset(text, 'x', 3 * NM_PROGRAM_LINE_BYTES);
	memcpy(text, "7f1b41000000-7f1b41274000 r--p 00000000 fe:00 315183 /", 54);
	(void)snprintf(text + 3 * NM_PROGRAM_LINE_BYTES - 1, sizeof(tini) + 1, "\n%s", tini);
	assert_int_equal(program_in(text, 4096), nm_excluded_program_in("/bin/tini"));
	assert_int_equal(program_in("\n\n-\n7f1b41000000-\nzz-zz rw-p\n/bin/tini\n", 3), 0);
	for (size_t length = 0; length + 1 < sizeof(tini); length++) {
		nm_autofree char *cut = strndup(tini, length);
		assert_int_equal(program_in(cut, 16), 0);
	}
}

/* As the kernel writes it. */
TEST(the_worker_reads_the_own_program)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	struct nm_memory_answer answer = {.result = -EAGAIN};
	const struct nm_memory_query question = {.kind = NM_MEMORY_QUERY_PROGRAM,
						 .pid = (uint32_t)getpid()};
	uint64_t query_id = 0;
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	assert_int_equal(platform->ops->memory_query(platform, &question, &query_id), 0);
	while (platform->ops->memory_poll(platform, query_id, &answer) == -EAGAIN)
		(void)usleep(1000);
	assert_int_equal(answer.result, 0);
}

RUN_TESTS()

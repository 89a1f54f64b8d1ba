/* SPDX-License-Identifier: MIT */
/* The runtime of a process by its mappings: maps of real programs in pieces, and this test through
 * the worker. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "numa-migrd/exclusions.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"

#define TABLE (512UL << 20)
#define PAGE 4096UL

/* Go 1.26.8 on Linux 6.18, amd64, with a kernel that does not name anonymous memory. */
static const char go[] =
	"00400000-00485000 r-xp 00000000 fe:00 10103230                           /tmp/program\n"
	"00547000-0057d000 rw-p 00000000 00:00 0 \n"
	"41054000000-41054400000 ---p 00000000 00:00 0 \n"
	"41054400000-41054800000 rw-p 00000000 00:00 0 \n"
	"41054800000-41058000000 ---p 00000000 00:00 0 \n"
	"7f9730000000-7f9732000000 rw-p 00000000 00:00 0 \n"
	"7f9732000000-7f9742820000 ---p 00000000 00:00 0 \n"
	"7f9742820000-7f9742821000 rw-p 00000000 00:00 0 \n"
	"7f9742821000-7f9762820000 ---p 00000000 00:00 0 \n"
	"7f9762820000-7f9762821000 rw-p 00000000 00:00 0 \n"
	"7f9762821000-7f9774104000 ---p 00000000 00:00 0 \n"
	"7ffdeefa2000-7ffdeefc3000 rw-p 00000000 00:00 0                          [stack]\n";

/* Arenas of malloc(3), each of 64 MiB, and thread stacks behind their guards. */
static const char plain[] =
	"559794582000-559794583000 r--p 00000000 fe:00 314792                     /usr/bin/program\n"
	"7f0010000000-7f0010021000 rw-p 00000000 00:00 0 \n"
	"7f0010021000-7f0014000000 ---p 00000000 00:00 0 \n"
	"7f0014000000-7f0014021000 rw-p 00000000 00:00 0 \n"
	"7f0014021000-7f0030000000 ---p 00000000 00:00 0 \n"
	"7f0030000000-7f0030021000 rw-p 00000000 00:00 0 \n"
	"7f0038000000-7f0038001000 ---p 00000000 00:00 0 \n"
	"7f0038001000-7f0038801000 rw-p 00000000 00:00 0 \n"
	"7f00f0000000-7f00f0002000 r-xp 00000000 fe:00 314793                     /lib/notlibjvm.so\n"
	"7f00f1000000-7f00f1002000 r-xp 00000000 fe:00 314794                     /libjvm.so/other\n";

static enum nm_runtime found_in(const char *text, size_t piece)
{
	struct nm_runtime_search *search = calloc(1, sizeof(*search));
	size_t length = strlen(text);
	assert_non_null(search);
	for (size_t at = 0; at < length; at += piece)
		nm_runtime_search(search, text + at, length - at < piece ? length - at : piece);
	enum nm_runtime found = search->found;
	free(search);
	return found;
}

static enum nm_runtime found_with(const char *line)
{
	nm_autofree char *text = NULL;
	assert_true(asprintf(&text, "%s%s\n", plain, line) > 0);
	return found_in(text, strlen(text));
}

static void go_has_two_similar_tables(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < sizeof(go); piece++)
		assert_int_equal(found_in(go, piece), NM_RUNTIME_GO);
}

static void other_programs_have_no_runtime(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < sizeof(plain); piece += 7)
		assert_int_equal(found_in(plain, piece), NM_RUNTIME_NONE);
	/* A single table, or two that are used at different offsets. */
	assert_int_equal(found_with("7f9742820000-7f9742821000 rw-p 00000000 00:00 0 \n"
				    "7f9742821000-7f9762820000 ---p 00000000 00:00 0 \n"
				    "7f9762820000-7f9762821000 r--p 00000000 00:00 0 "),
			 NM_RUNTIME_NONE);
	assert_int_equal(found_with("7f9742820000-7f9742821000 rw-p 00000000 00:00 0 \n"
				    "7f9742821000-7f9762830000 ---p 00000000 00:00 0 \n"
				    "7f9762830000-7f9762831000 rw-p 00000000 00:00 0 "),
			 NM_RUNTIME_NONE);
}

static void go_names_its_memory(void **state)
{
	(void)state;
	assert_int_equal(found_with("7f9742820000-7f9742821000 rw-p 00000000 00:00 0        "
				    "[anon: Go: heap]"),
			 NM_RUNTIME_GO);
	assert_int_equal(found_with("7f9742820000-7f9742821000 rw-p 00000000 00:00 0        "
				    "[anon: Gopher]"),
			 NM_RUNTIME_NONE);
}

static void the_go_heap_has_a_fixed_address(void **state)
{
	(void)state;
	assert_int_equal(found_with("c000000000-c000400000 rw-p 00000000 00:00 0 "), NM_RUNTIME_GO);
	assert_int_equal(found_with("4000000000-4000400000 rw-p 00000000 00:00 0 "), NM_RUNTIME_GO);
	assert_int_equal(found_with("c000000000-c000400000 rw-p 00000000 fe:00 7 /file"),
			 NM_RUNTIME_NONE);
}

static void java_is_its_library(void **state)
{
	(void)state;
	assert_int_equal(found_with("7f1b41000000-7f1b41274000 r--p 00000000 fe:00 315183           "
				    "/usr/lib/jvm/lib/server/libjvm.so"),
			 NM_RUNTIME_JVM);
	assert_int_equal(found_with("7f1b41000000-7f1b41274000 r--p 00000000 fe:00 315183           "
				    "/a b/libjvm.so (deleted)"),
			 NM_RUNTIME_JVM);
}

static unsigned program_in(const char *text, size_t piece)
{
	struct nm_runtime_search *search = calloc(1, sizeof(*search));
	size_t length = strlen(text);
	assert_non_null(search);
	for (size_t at = 0; at < length; at += piece)
		nm_runtime_search(search, text + at, length - at < piece ? length - at : piece);
	unsigned program = search->program;
	free(search);
	return program;
}

/* The first file is that of the program; its libraries are above it. */
static void a_program_is_its_first_file(void **state)
{
	static const char tini[] = "00400000-00405000 r-xp 00000000 fe:00 17  /usr/bin/tini (deleted)\n"
				   "7f0000000000-7f0000001000 r--p 00000000 fe:00 18  /lib/pause\n";
	static const char other[] = "00300000-00301000 rw-p 00000000 00:00 0 \n"
				    "00400000-00405000 r-xp 00000000 fe:00 17  /usr/bin/postgres\n"
				    "7f0000000000-7f0000001000 r--p 00000000 fe:00 18  /bin/tini\n";
	(void)state;
	for (size_t piece = 1; piece < sizeof(tini); piece++) {
		assert_int_equal(program_in(tini, piece), nm_excluded_program_in("/x/tini"));
		assert_int_equal(program_in(other, piece), 0);
	}
	assert_int_not_equal(nm_excluded_program_in("/x/tini"), 0);
	assert_int_equal(nm_excluded_program_in("/tini/x"), 0);
	assert_int_equal(nm_excluded_program_in("/x/tini2"), 0);
}

/* A line longer than any path, invalid lines, and truncated text. */
static void odd_lines_are_passed_over(void **state)
{
	(void)state;
	nm_autofree char *line = malloc(3 * NM_RUNTIME_LINE_BYTES);
	assert_non_null(line);
	memset(line, 'x', 3 * NM_RUNTIME_LINE_BYTES);
	line[3 * NM_RUNTIME_LINE_BYTES - 1] = '\0';
	memcpy(line, "7f1b41000000-7f1b41274000 r--p 00000000 fe:00 315183 /", 54);
	memcpy(line + 2 * NM_RUNTIME_LINE_BYTES, "/libjvm.so", sizeof("/libjvm.so"));
	assert_int_equal(found_with(line), NM_RUNTIME_NONE);
	assert_int_equal(found_with("\n\n-\n7f1b41000000-\nzz-zz rw-p\n/libjvm.so"), NM_RUNTIME_NONE);
	for (size_t length = 0; length < sizeof(go); length++) {
		nm_autofree char *cut = strndup(go, length);
		assert_true(found_in(cut, 16) <= NM_RUNTIME_GO);
	}
}

/* ---- as the kernel writes it ---- */

static int own_runtime(void)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	struct nm_memory_answer answer = {.result = -EAGAIN};
	const struct nm_memory_query question = {.kind = NM_MEMORY_QUERY_RUNTIME,
						 .pid = (uint32_t)getpid()};
	uint64_t ticket = 0;
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	assert_int_equal(platform->ops->memory_query(platform, &question, &ticket), 0);
	while (platform->ops->memory_poll(platform, ticket, &answer) == -EAGAIN)
		(void)usleep(1000);
	return answer.result;
}

static void a_file_of_that_name_is_seen(void **state)
{
	(void)state;
	char folder[] = "/tmp/runtime.XXXXXX", path[64];
	assert_int_equal(own_runtime(), NM_RUNTIME_NONE);
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/libjvm.so", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && ftruncate(fd, PAGE) == 0);
	void *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(own_runtime(), NM_RUNTIME_JVM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(own_runtime(), NM_RUNTIME_JVM);
	assert_int_equal(munmap(at, PAGE), 0);
	close(fd);
	(void)rmdir(folder);
	assert_int_equal(own_runtime(), NM_RUNTIME_NONE);
}

/* A program with two similar tables is taken for Go; a sanitizer leaves no address space for
 * them. */
static void tables_alike_are_seen(void **state)
{
	(void)state;
	char *at = mmap(NULL, 2 * TABLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED) {
		print_message("no room for two tables: skipped\n");
		skip();
	}
	assert_int_equal(mprotect(at + 5 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mprotect(at + TABLE + 6 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(own_runtime(), NM_RUNTIME_NONE);
	assert_int_equal(mprotect(at + 6 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mprotect(at + 5 * PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(own_runtime(), NM_RUNTIME_GO);
	assert_int_equal(munmap(at, 2 * TABLE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(go_has_two_similar_tables),
		cmocka_unit_test(other_programs_have_no_runtime),
		cmocka_unit_test(go_names_its_memory),
		cmocka_unit_test(the_go_heap_has_a_fixed_address),
		cmocka_unit_test(java_is_its_library),
		cmocka_unit_test(a_program_is_its_first_file),
		cmocka_unit_test(odd_lines_are_passed_over),
		cmocka_unit_test(a_file_of_that_name_is_seen),
		cmocka_unit_test(tables_alike_are_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

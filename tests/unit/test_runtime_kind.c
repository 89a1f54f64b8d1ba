/* SPDX-License-Identifier: MIT */
/* Go and Java programs are recognized in synthetic files, this test itself, and damaged files. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/ctl/doctor/runtime.h"

#define PROGRAM_BYTES 512
#define NOTE_AT 256

static _Alignas(8) char program[PROGRAM_BYTES];

/* A header, one program header, and a note of this name and type. */
static void make(const char *name, uint32_t name_bytes, uint32_t type)
{
	Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
			     .e_phoff = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 1};
	Elf64_Phdr segment = {.p_type = PT_NOTE, .p_offset = NOTE_AT, .p_filesz = 40};
	Elf64_Nhdr note = {.n_namesz = name_bytes, .n_descsz = 20, .n_type = type};
	memset(program, 0, sizeof(program));
	memcpy(program, &header, sizeof(header));
	memcpy(program + sizeof(header), &segment, sizeof(segment));
	memcpy(program + NOTE_AT, &note, sizeof(note));
	memcpy(program + NOTE_AT + sizeof(note), name, name_bytes);
}

static enum nm_runtime kind(void)
{
	return nm_runtime_of_program(program, sizeof(program));
}

static void a_go_program_is_recognized_by_its_note(void **state)
{
	(void)state;
	make("Go\0", 4, 4);
	assert_int_equal(kind(), NM_RUNTIME_GO);
	make("Go\0", 4, 3);
	assert_int_equal(kind(), NM_RUNTIME_NONE);
	make("GNU", 4, 4);
	assert_int_equal(kind(), NM_RUNTIME_NONE);
	assert_string_equal(nm_runtime_name(NM_RUNTIME_GO), "Go");
}

/* The dynamic section of a program that needs one library; all segments are loaded at 0x1000. */
static void make_dynamic(const char *library)
{
	const Elf64_Phdr segments[] = {
		{.p_type = PT_LOAD, .p_offset = 0, .p_vaddr = 0x1000, .p_filesz = PROGRAM_BYTES},
		{.p_type = PT_DYNAMIC, .p_offset = NOTE_AT, .p_filesz = 3 * sizeof(Elf64_Dyn)}};
	const Elf64_Dyn dynamic[] = {{.d_tag = DT_NEEDED, .d_un.d_val = 1},
				     {.d_tag = DT_STRTAB, .d_un.d_ptr = 0x1000 + 400},
				     {.d_tag = DT_NULL}};
	make("", 0, 0);
	((Elf64_Ehdr *)(void *)program)->e_phnum = 2;
	memcpy(program + sizeof(Elf64_Ehdr), segments, sizeof(segments));
	memcpy(program + NOTE_AT, dynamic, sizeof(dynamic));
	(void)snprintf(program + 401, 64, "%s", library);
}

static void a_launcher_of_java_needs_its_library(void **state)
{
	(void)state;
	make_dynamic("libjli.so");
	assert_int_equal(kind(), NM_RUNTIME_JVM);
	for (size_t length = 0; length < sizeof(program); length++) {
		char *copy = malloc(length + 1);
		assert_non_null(copy);
		memcpy(copy, program, length);
		assert_true(nm_runtime_of_program(copy, length) == NM_RUNTIME_NONE || length > 400);
		free(copy);
	}
	make_dynamic("libc.so.6");
	memcpy(program + 450, "libjli.so", sizeof("libjli.so")); /* only its text */
	assert_int_equal(kind(), NM_RUNTIME_NONE);
	make_dynamic("libjli.so");
	program[0] = 'x';
	assert_int_equal(kind(), NM_RUNTIME_NONE);
}

static void this_program_has_no_runtime(void **state)
{
	static char bytes[NM_RUNTIME_BYTES];
	FILE *file = fopen("/proc/self/exe", "r");
	(void)state;
	assert_non_null(file);
	size_t length = fread(bytes, 1, sizeof(bytes), file);
	(void)fclose(file);
	assert_true(length > sizeof(Elf64_Ehdr));
	assert_int_equal(nm_runtime_of_program(bytes, length), NM_RUNTIME_NONE);
}

/* Any length, any byte of the headers and the note: no read beyond the file (sanitizers). */
static void damaged_files_are_read_within_bounds(void **state)
{
	(void)state;
	for (size_t length = 0; length <= sizeof(program); length++) {
		make("Go\0", 4, 4);
		char *copy = malloc(length + 1);
		assert_non_null(copy);
		memcpy(copy, program, length);
		enum nm_runtime found = nm_runtime_of_program(copy, length);
		assert_int_equal(found, length >= NOTE_AT + 40 ? NM_RUNTIME_GO : NM_RUNTIME_NONE);
		free(copy);
	}
	for (size_t at = 0; at < NOTE_AT + 40; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			make("Go\0", 4, 4);
			program[at] = (char)(program[at] ^ (1 << bit));
			assert_true(kind() < NM_RUNTIME_MAX);
			make("Go\0", 4, 4);
			program[at] = (char)0xff;
			assert_true(kind() < NM_RUNTIME_MAX);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_go_program_is_recognized_by_its_note),
		cmocka_unit_test(a_launcher_of_java_needs_its_library),
		cmocka_unit_test(this_program_has_no_runtime),
		cmocka_unit_test(damaged_files_are_read_within_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

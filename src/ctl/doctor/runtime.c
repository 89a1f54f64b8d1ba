/* SPDX-License-Identifier: MIT */
#include "runtime.h"

#include <elf.h>
#include <string.h>

#define GO_BUILD_ID_NOTE 4

static bool is_within(size_t at, size_t size, size_t length)
{
	return at <= length && size <= length - at;
}

static size_t padded(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

/* elf(5), "Notes": a header, a name and a description, each padded to four bytes. */
static bool has_go_note(const char *notes, size_t length)
{
	size_t at = 0;
	Elf64_Nhdr note;
	while (is_within(at, sizeof(note), length)) {
		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		if (!is_within(at, padded(note.n_namesz), length))
			return false;
		if (note.n_type == GO_BUILD_ID_NOTE && note.n_namesz == sizeof("Go\0") &&
		    memcmp(notes + at, "Go\0", sizeof("Go\0")) == 0)
			return true;
		at += padded(note.n_namesz);
		if (!is_within(at, padded(note.n_descsz), length))
			return false;
		at += padded(note.n_descsz);
	}
	return false;
}

struct file {
	const char *bytes;
	size_t length;
	Elf64_Ehdr header;
};

static bool program_header(const struct file *file, size_t i, Elf64_Phdr *ret)
{
	size_t at = file->header.e_phoff + i * sizeof(*ret);
	if (i >= file->header.e_phnum || !is_within(at, sizeof(*ret), file->length))
		return false;
	memcpy(ret, file->bytes + at, sizeof(*ret));
	return true;
}

static bool is_go(const struct file *file)
{
	Elf64_Phdr program;
	for (size_t i = 0; program_header(file, i, &program); i++)
		if (program.p_type == PT_NOTE &&
		    is_within(program.p_offset, program.p_filesz, file->length) &&
		    has_go_note(file->bytes + program.p_offset, program.p_filesz))
			return true;
	return false;
}

/* Returns the file offset of an address of the program, or the length of the file if it is not in
 * it. */
static size_t place_of(const struct file *file, uint64_t address)
{
	Elf64_Phdr program;
	for (size_t i = 0; program_header(file, i, &program); i++)
		if (program.p_type == PT_LOAD && address >= program.p_vaddr &&
		    address - program.p_vaddr < program.p_filesz &&
		    is_within(program.p_offset, address - program.p_vaddr, file->length))
			return program.p_offset + (address - program.p_vaddr);
	return file->length;
}

static bool is_named(const struct file *file, uint64_t strings, uint64_t offset, const char *name)
{
	size_t at = place_of(file, strings + offset);
	return is_within(at, strlen(name) + 1, file->length) &&
	       memcmp(file->bytes + at, name, strlen(name) + 1) == 0;
}

/* Returns whether the library is in the dynamic section (elf(5), "Dynamic tags"). */
static bool needs(const struct file *file, const Elf64_Phdr *dynamic, const char *library)
{
	Elf64_Dyn entry;
	uint64_t strings = 0;
	bool found = false;
	for (int pass = 0; pass < 2; pass++)
		for (size_t at = 0; is_within(at, sizeof(entry), dynamic->p_filesz);
		     at += sizeof(entry)) {
			memcpy(&entry, file->bytes + dynamic->p_offset + at, sizeof(entry));
			if (entry.d_tag == DT_STRTAB)
				strings = entry.d_un.d_ptr;
			if (pass == 1 && entry.d_tag == DT_NEEDED)
				found = found || is_named(file, strings, entry.d_un.d_val, library);
		}
	return found;
}

static bool is_java(const struct file *file)
{
	Elf64_Phdr program;
	for (size_t i = 0; program_header(file, i, &program); i++)
		if (program.p_type == PT_DYNAMIC &&
		    is_within(program.p_offset, program.p_filesz, file->length))
			return needs(file, &program, "libjli.so");
	return false;
}

enum nm_runtime nm_runtime_of_program(const void *bytes, size_t length)
{
	struct file file = {.bytes = bytes, .length = length};
	const Elf64_Ehdr *header = &file.header;
	if (length < sizeof(file.header))
		return NM_RUNTIME_NONE;
	memcpy(&file.header, bytes, sizeof(file.header));
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr) ||
	    header->e_phoff > length)
		return NM_RUNTIME_NONE;
	if (is_go(&file))
		return NM_RUNTIME_GO;
	return is_java(&file) ? NM_RUNTIME_JVM : NM_RUNTIME_NONE;
}

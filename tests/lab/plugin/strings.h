/* SPDX-License-Identifier: MIT */
/*
 * Repeated string instructions (rep stos, rep movs), by which kernels and libraries fill and copy.
 * A processor with fast strings works on whole pieces of lines at a time, however many bytes the
 * instruction names; QEMU takes a step for each. Counted as an instruction a step, a page that the
 * kernel clears would take 4096 cycles beside its memory, where processors take some hundred.
 * Sixteen bytes a cycle is half of what a core stores at most.
 */
#ifndef NUMA_MIGRD_LAB_STRINGS_H
#define NUMA_MIGRD_LAB_STRINGS_H

#include <stddef.h>

enum { LAB_STRING_BYTES = 16 }; /* a cycle */

/* Returns the bytes of a step of a repeated stos or movs, by its encoding; 0 if it is none. */
unsigned int lab_string_bytes(const unsigned char *code, size_t size);

/* Returns the cycles of a step of `bytes`; the remainder is kept for the next. */
unsigned int lab_string_cycles(unsigned int *left, unsigned int bytes);

#endif

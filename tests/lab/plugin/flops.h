/* SPDX-License-Identifier: MIT */
/*
 * Floating-point operations by the encoding of an instruction: addition, subtraction,
 * multiplication, division and square root of SSE and AVX count one for each element, a fused
 * multiply-add two. The x87's do not count, as with AMD's "retired SSE and AVX FLOPs".
 */
#ifndef NUMA_MIGRD_LAB_FLOPS_H
#define NUMA_MIGRD_LAB_FLOPS_H

#include <stddef.h>

/* Returns the operations of one instruction; 0 for any other. */
unsigned int lab_flops(const unsigned char *code, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"

#define FNV_PRIME UINT64_C(0x100000001b3)

uint64_t nm_hash_add(uint64_t hash, const void *bytes, size_t length)
{
	const unsigned char *byte = bytes;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ byte[i]) * FNV_PRIME;
	return hash;
}

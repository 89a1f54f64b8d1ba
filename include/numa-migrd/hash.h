/* SPDX-License-Identifier: MIT */
/* FNV-1a, 64 bits (draft-eastlake-fnv), for tables and digests. Not resistant to an adversary. */
#ifndef NUMA_MIGRD_HASH_H
#define NUMA_MIGRD_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The hash of zero bytes; every computation begins with it. */
#define NM_HASH_START UINT64_C(0xcbf29ce484222325)

/* Returns the hash extended by these bytes. May be called from any stage. */
uint64_t nm_hash_add(uint64_t hash, const void *bytes, size_t length);

#endif

/* SPDX-License-Identifier: MIT */
/* Encodes and decodes results of the mover as answers in a recording. Pure. */
#ifndef NUMA_MIGRD_BATCH_H
#define NUMA_MIGRD_BATCH_H

#include "numa-migrd/mover.h"

/* Encodes the result of a batch, which the caller frees. Returns 0 or -ENOMEM. */
int nm_batch_put(const struct nm_page_batch *batch, uint8_t **ret, size_t *ret_size);
/* Returns the decision to which the batch belongs. Returns 0 or -EBADMSG. */
int nm_batch_decision(const uint8_t *bytes, size_t size, uint64_t *ret);
/* Sets the recorded results in a batch, which must be the same as the one submitted. Returns 0,
 * -EBADMSG if it differs, or -ENOMEM. */
int nm_batch_get(const uint8_t *bytes, size_t size, struct nm_page_batch *batch);

/* Encode and decode mappings, which the caller frees. Return 0, -ENOMEM or -EBADMSG. */
int nm_ranges_put(const struct nm_range *ranges, size_t count, uint8_t **ret, size_t *ret_size);
int nm_ranges_get(const uint8_t *bytes, size_t size, struct nm_range **ret, size_t *ret_count);

#endif

/* SPDX-License-Identifier: MIT */
/* What the mover gives back, as bytes of a recording's answer. Pure. */
#ifndef NUMA_MIGRD_BATCH_H
#define NUMA_MIGRD_BATCH_H

#include "numa-migrd/mover.h"

/* What became of a batch; the caller frees. -ENOMEM. */
int nm_batch_put(const struct nm_page_batch *batch, uint8_t **ret, size_t *ret_size);
/* Which decision's it was; -EBADMSG. */
int nm_batch_decision(const uint8_t *bytes, size_t size, uint64_t *ret);
/* The same fates for the same batch, as it was submitted. -EBADMSG: it is another; -ENOMEM. */
int nm_batch_get(const uint8_t *bytes, size_t size, struct nm_page_batch *batch);

/* Mappings; the caller frees. -ENOMEM, -EBADMSG. */
int nm_ranges_put(const struct nm_range *ranges, size_t count, uint8_t **ret, size_t *ret_size);
int nm_ranges_get(const uint8_t *bytes, size_t size, struct nm_range **ret, size_t *ret_count);

#endif

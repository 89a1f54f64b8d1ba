/* SPDX-License-Identifier: MIT */
/* Blocks, of which a file consists after its header: a head of 24 bytes (magic, packing, size
 * before and after packing, crc32 of the contents, crc32 of the head), then the contents. */
#ifndef NM_RECORDING_BLOCK_H
#define NM_RECORDING_BLOCK_H

#include "bytes.h"

#define NM_BLOCK_HEAD 24U
#define NM_BLOCK_MAGIC 0x314b424eU /* "NBK1" */
#define NM_BLOCK_BYTES_MOST (64U << 20)
#define NM_FILE_HEAD 24U
#define NM_FILE_MAGIC "numamigr"

enum nm_block_packing { NM_BLOCK_PLAIN, NM_BLOCK_DEFLATED, NM_BLOCK_PACKINGS };

struct nm_block_head {
	enum nm_block_packing packing;
	uint32_t size, stored; /* bytes: of the contents, and as stored in the file */
	uint32_t checksum;
};

/* Writes the header of a file by a program of that version. */
void nm_file_head_write(uint32_t version, uint8_t ret[NM_FILE_HEAD]);
/* Returns 0; -EPROTO: not a recording; -EPROTONOSUPPORT: another version. */
int nm_file_head_read(const uint8_t head[NM_FILE_HEAD], uint32_t *ret_version);

/* Returns 0, or -EBADMSG if it is no block. */
int nm_block_head_read(const uint8_t head[NM_BLOCK_HEAD], struct nm_block_head *ret);
/* Appends head and contents, deflated if that makes them smaller. Returns 0 or -ENOMEM. */
int nm_block_write(const uint8_t *contents, size_t size, struct nm_bytes *ret);
/*
 * Checks and unpacks a block into `ret`, which is emptied before. Returns 0, -EBADMSG or -ENOMEM.
 */
int nm_block_unpack(const struct nm_block_head *head, const uint8_t *stored, struct nm_bytes *ret);

#endif

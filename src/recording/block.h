/* SPDX-License-Identifier: MIT */
/*
 * Blocks: what a file consists of behind its header. 24 bytes of head (magic, how it is packed, its
 * size before and after, the contents' crc32, the head's crc32), then the contents.
 */
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
	uint32_t size, stored; /* bytes: of the contents, and of what is in the file */
	uint32_t checksum;
};

/* A header of the file, by a program of that version. */
void nm_file_head_write(uint32_t version, uint8_t ret[NM_FILE_HEAD]);
/* 0; -EPROTO: no recording; -EPROTONOSUPPORT: a newer one. */
int nm_file_head_read(const uint8_t head[NM_FILE_HEAD], uint32_t *ret_version);

/* 0; -EBADMSG: none. */
int nm_block_head_read(const uint8_t head[NM_BLOCK_HEAD], struct nm_block_head *ret);
/* Appends head and contents; `pack`: deflated where that saves something. */
int nm_block_write(const uint8_t *contents, size_t size, bool pack, struct nm_bytes *ret);
/* Checks and unpacks into `ret`, which is emptied before. -EBADMSG, -ENOMEM. */
int nm_block_unpack(const struct nm_block_head *head, const uint8_t *stored, struct nm_bytes *ret);

#endif

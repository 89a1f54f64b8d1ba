/* SPDX-License-Identifier: MIT */
#include "block.h"

#include <zlib.h>

#include "numa-migrd/recording.h"

static uint32_t checksum(const uint8_t *data, size_t size)
{
	return (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, size);
}

void nm_file_head_write(uint32_t version, uint8_t ret[NM_FILE_HEAD])
{
	static const char magic[8] = NM_FILE_MAGIC; /* not a string */
	memset(ret, 0, NM_FILE_HEAD);
	memcpy(ret, magic, sizeof(magic));
	nm_store_u32(ret + 8, version);
	nm_store_u32(ret + 20, checksum(ret, 20));
}

/* Another version defines the bytes after its number. */
int nm_file_head_read(const uint8_t head[NM_FILE_HEAD], uint32_t *ret_version)
{
	uint32_t version = nm_load_u32(head + 8);
	if (memcmp(head, NM_FILE_MAGIC, 8) != 0 || version == 0)
		return -EPROTO;
	*ret_version = version;
	if (version != NM_RECORDING_VERSION)
		return -EPROTONOSUPPORT;
	return nm_load_u32(head + 20) == checksum(head, 20) ? 0 : -EPROTO;
}

int nm_block_head_read(const uint8_t head[NM_BLOCK_HEAD], struct nm_block_head *ret)
{
	uint32_t packing = nm_load_u32(head + 4);
	*ret = (struct nm_block_head){
		.packing = packing,
		.size = nm_load_u32(head + 8),
		.stored = nm_load_u32(head + 12),
		.checksum = nm_load_u32(head + 16),
	};
	if (nm_load_u32(head) != NM_BLOCK_MAGIC ||
	    nm_load_u32(head + 20) != checksum(head, NM_BLOCK_HEAD - 4) ||
	    packing >= NM_BLOCK_PACKINGS || ret->size > NM_BLOCK_BYTES_MOST ||
	    ret->stored > NM_BLOCK_BYTES_MOST ||
	    (packing == NM_BLOCK_PLAIN && ret->size != ret->stored))
		return -EBADMSG;
	return 0;
}

/* Returns the number of bytes used; 0: packing does not make it smaller. */
static size_t deflate_into(const uint8_t *contents, size_t size, uint8_t *ret, size_t room)
{
	uLongf stored = room;
	if (compress2(ret, &stored, contents, size, Z_BEST_SPEED) != Z_OK || stored >= size)
		return 0;
	return stored;
}

int nm_block_write(const uint8_t *contents, size_t size, struct nm_bytes *ret)
{
	size_t room = compressBound(size);
	uint8_t *head = nm_bytes_room(ret, NM_BLOCK_HEAD + room);
	if (!head)
		return -ENOMEM;
	uint8_t *stored = head + NM_BLOCK_HEAD;
	size_t length = deflate_into(contents, size, stored, room);
	nm_store_u32(head, NM_BLOCK_MAGIC);
	nm_store_u32(head + 4, length ? NM_BLOCK_DEFLATED : NM_BLOCK_PLAIN);
	if (length == 0) {
		memcpy(stored, contents, size);
		length = size;
	}
	nm_store_u32(head + 8, (uint32_t)size);
	nm_store_u32(head + 12, (uint32_t)length);
	nm_store_u32(head + 16, checksum(stored, length));
	nm_store_u32(head + 20, checksum(head, NM_BLOCK_HEAD - 4));
	ret->used += NM_BLOCK_HEAD + length;
	return 0;
}

int nm_block_unpack(const struct nm_block_head *head, const uint8_t *stored, struct nm_bytes *ret)
{
	ret->used = 0;
	if (checksum(stored, head->stored) != head->checksum)
		return -EBADMSG;
	uint8_t *room = nm_bytes_room(ret, (size_t)head->size + 1);
	if (!room)
		return -ENOMEM;
	uLongf size = head->size;
	if (head->packing == NM_BLOCK_PLAIN)
		memcpy(room, stored, head->stored);
	else if (uncompress(room, &size, stored, head->stored) != Z_OK || size != head->size)
		return -EBADMSG;
	ret->used = head->size;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "block.h"
#include "fields.h"

struct nm_recording {
	int fd;
	uint64_t size;	 /* of the file, when it was opened */
	uint64_t offset; /* of the next block */
	uint64_t block_offset, torn;
	struct nm_bytes stored, block;
	struct nm_cursor cursor; /* in the block */
	struct nm_arena arena;
	uint64_t interval;
	uint32_t kinds;
	char error[256];
};

static int fail(struct nm_recording *recording, int r, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct nm_recording *recording, int r, const char *format, ...)
{
	char what[160];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	(void)snprintf(recording->error, sizeof(recording->error), "block at byte %" PRIu64 ": %s",
		       recording->block_offset, what);
	return r;
}

/* Reads up to `size` bytes. Returns the number of bytes, or a negative errno. */
static ssize_t read_at(int fd, uint64_t offset, uint8_t *ret, size_t size)
{
	size_t used = 0;
	while (used < size) {
		ssize_t count = pread(fd, ret + used, size - used, (off_t)(offset + used));
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			break;
		used += (size_t)count;
	}
	return (ssize_t)used;
}

static int read_file_head(int fd, char *error, size_t error_size)
{
	uint8_t head[NM_FILE_HEAD];
	uint32_t version = 0;
	ssize_t count = read_at(fd, 0, head, sizeof(head));
	if (count < 0) {
		(void)snprintf(error, error_size, "cannot be read: %s",
			       count == -ESPIPE ? "a file is needed, not a pipe"
						: strerrordesc_np((int)-count));
		return (int)count;
	}
	int r = count < (ssize_t)sizeof(head) ? -EPROTO : nm_file_head_read(head, &version);
	if (r == -EPROTONOSUPPORT)
		(void)snprintf(error, error_size,
			       "a recording of version %" PRIu32
			       ", by %s numa-migrd; this one reads "
			       "version %u",
			       version, version > NM_RECORDING_VERSION ? "a newer" : "an older",
			       NM_RECORDING_VERSION);
	else if (r < 0)
		(void)snprintf(error, error_size, "not a recording of numa-migrd");
	return r;
}

int nm_recording_open(int fd, char *error, size_t error_size, struct nm_recording **ret)
{
	struct nm_recording *recording = calloc(1, sizeof(*recording));
	int r = recording ? read_file_head(fd, error, error_size) : -ENOMEM;
	off_t size = r == 0 ? lseek(fd, 0, SEEK_END) : 0;
	if (size < 0) {
		r = -errno;
		(void)snprintf(error, error_size, "cannot be read: %s", strerrordesc_np(errno));
	}
	if (r < 0) {
		if (!recording)
			(void)snprintf(error, error_size, "out of memory");
		free(recording);
		(void)close(fd);
		return r;
	}
	recording->fd = fd;
	recording->size = (uint64_t)size;
	recording->kinds = UINT32_MAX;
	nm_recording_rewind(recording);
	*ret = recording;
	return 0;
}

void nm_recording_free(struct nm_recording *recording)
{
	if (!recording)
		return;
	nm_arena_clear(&recording->arena);
	free(recording->arena.items);
	free(recording->arena.masks);
	nm_bytes_clear(&recording->stored);
	nm_bytes_clear(&recording->block);
	(void)close(recording->fd);
	free(recording);
}

void nm_recording_rewind(struct nm_recording *recording)
{
	recording->offset = NM_FILE_HEAD;
	recording->interval = 0;
	recording->cursor = (struct nm_cursor){0};
}

void nm_recording_only(struct nm_recording *recording, uint32_t kinds)
{
	recording->kinds = kinds;
}

uint64_t nm_recording_torn(const struct nm_recording *recording)
{
	return recording->torn;
}

const char *nm_recording_error(const struct nm_recording *recording)
{
	return recording->error;
}

/* ---- blocks ---- */

static int note_torn_end(struct nm_recording *recording)
{
	recording->torn = recording->size - recording->offset;
	return 0;
}

/* Detects a file that was extended before the data was written. */
static bool is_blank(const struct nm_recording *recording, const uint8_t *head)
{
	static const uint8_t blank[4096];
	uint8_t piece[sizeof(blank)];
	if (memcmp(head, blank, NM_BLOCK_HEAD) != 0)
		return false;
	for (uint64_t at = recording->offset; at < recording->size; at += sizeof(piece)) {
		ssize_t count = read_at(recording->fd, at, piece, sizeof(piece));
		if (count <= 0 || memcmp(piece, blank, (size_t)count) != 0)
			return false;
	}
	return true;
}

static int unpack(struct nm_recording *recording, const struct nm_block_head *head)
{
	recording->stored.used = 0;
	uint8_t *stored = nm_bytes_room(&recording->stored, (size_t)head->stored + 1);
	if (!stored)
		return fail(recording, -ENOMEM, "out of memory");
	ssize_t count =
		read_at(recording->fd, recording->offset + NM_BLOCK_HEAD, stored, head->stored);
	if (count < 0)
		return fail(recording, (int)count, "cannot be read: %s",
			    strerrordesc_np((int)-count));
	if (count < (ssize_t)head->stored)
		return note_torn_end(recording);
	int r = nm_block_unpack(head, stored, &recording->block);
	uint64_t behind = recording->offset + NM_BLOCK_HEAD + head->stored;
	/* The last block may be incomplete. */
	if (r == -EBADMSG && behind >= recording->size)
		return note_torn_end(recording);
	if (r < 0)
		return fail(recording, r,
			    r == -ENOMEM ? "out of memory"
					 : "damaged: its checksum is not its contents'");
	recording->offset = behind;
	recording->cursor = (struct nm_cursor){
		.at = recording->block.data,
		.end = recording->block.data + recording->block.used,
	};
	return 1;
}

/* Returns 1 for a block, 0 at the end. */
static int next_block(struct nm_recording *recording)
{
	uint8_t raw[NM_BLOCK_HEAD];
	struct nm_block_head head;
	recording->block_offset = recording->offset;
	if (recording->offset >= recording->size)
		return 0;
	ssize_t count = read_at(recording->fd, recording->offset, raw, sizeof(raw));
	if (count < 0)
		return fail(recording, (int)count, "cannot be read: %s",
			    strerrordesc_np((int)-count));
	if (count < (ssize_t)sizeof(raw))
		return note_torn_end(recording);
	int r = nm_block_head_read(raw, &head);
	if (r < 0 && is_blank(recording, raw))
		return note_torn_end(recording);
	if (r < 0)
		return fail(recording, r, "damaged: it does not begin as a block does");
	if (head.stored > recording->size - recording->offset - NM_BLOCK_HEAD)
		return note_torn_end(recording);
	return unpack(recording, &head);
}

/* ---- records ---- */

static int decode(struct nm_recording *recording, struct nm_cursor *payload,
		  struct nm_recorded *ret)
{
	const struct nm_shape *shape = nm_shape_of(ret->kind);
	if (ret->kind == NM_RECORDED_TOPOLOGY)
		return nm_topology_get(payload, &recording->arena, &ret->topology);
	if (!shape)
		return 0;
	return nm_shape_get(shape, payload, &recording->arena,
			    (char *)ret + nm_shape_place(ret->kind));
}

/* Returns 1 if it is in *ret, 0 if it is not wanted. */
static int next_record(struct nm_recording *recording, struct nm_recorded *ret)
{
	struct nm_cursor *cursor = &recording->cursor;
	uint64_t kind = nm_get_uint(cursor);
	uint64_t length = nm_get_uint(cursor);
	const uint8_t *start = nm_get_bytes(cursor, length);
	if (!start || cursor->bad || kind >= NM_RECORDED_KINDS)
		return fail(recording, -EBADMSG, "damaged: it does not consist of records");
	struct nm_cursor payload = {.at = start, .end = start + length};
	if (kind == NM_RECORDED_INTERVAL) {
		struct nm_cursor number = payload;
		recording->interval = nm_get_uint(&number);
	}
	if (!(recording->kinds >> kind & 1))
		return 0;
	memset(ret, 0, sizeof(*ret));
	ret->kind = (enum nm_recorded_kind)kind;
	ret->interval = recording->interval;
	nm_arena_clear(&recording->arena);
	int r = decode(recording, &payload, ret);
	if (r == 0 && payload.at != payload.end)
		r = -EBADMSG;
	if (r < 0)
		return fail(recording, r,
			    r == -ENOMEM ? "out of memory" : "a record \"%s\" is damaged",
			    nm_recorded_kind_name(ret->kind));
	return 1;
}

int nm_recording_next(struct nm_recording *recording, struct nm_recorded *ret)
{
	int r = 0;
	while (r == 0) {
		bool in_block = recording->cursor.at != recording->cursor.end;
		if (!in_block && (r = next_block(recording)) <= 0)
			return r;
		r = in_block ? next_record(recording, ret) : 0;
	}
	return r;
}

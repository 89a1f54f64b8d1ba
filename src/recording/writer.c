/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block.h"
#include "fields.h"
#include "numa-migrd/file.h"

#define BLOCK_BYTES (256U << 10) /* a block is written when it has this size */
/* Part of the limit that is reserved for the message that it was reached. */
#define END_BYTES 1024U

struct nm_recorder_writer {
	int fd;
	uint64_t limit_bytes; /* 0: no limit */
	struct nm_bytes payload, block, out;
	uint64_t written;
	int error;
};

/*
 * The descriptor comes from a caller: one that could block, or a file with contents, is rejected.
 */
static int check_file(int fd)
{
	struct stat about;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &about) < 0)
		return -errno;
	if (!S_ISREG(about.st_mode) || (flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	return about.st_size == 0 ? 0 : -EEXIST;
}

int nm_recording_create(int fd, uint64_t limit_bytes, struct nm_recorder_writer **ret)
{
	uint8_t head[NM_FILE_HEAD];
	struct nm_recorder_writer *writer = calloc(1, sizeof(*writer));
	int r = writer ? check_file(fd) : -ENOMEM;
	nm_file_head_write(NM_RECORDING_VERSION, head);
	if (r == 0)
		r = nm_write_all(fd, (const char *)head, sizeof(head));
	if (r < 0) {
		free(writer);
		(void)close(fd);
		return r;
	}
	writer->fd = fd;
	writer->limit_bytes = limit_bytes;
	writer->written = sizeof(head);
	*ret = writer;
	return 0;
}

static int put_block(struct nm_recorder_writer *writer)
{
	struct nm_bytes *block = &writer->block;
	writer->out.used = 0;
	int r = nm_block_write(block->data, block->used, &writer->out);
	block->used = 0;
	if (r < 0)
		return r;
	writer->written += writer->out.used;
	return nm_write_all(writer->fd, (const char *)writer->out.data, writer->out.used);
}

static bool is_full(const struct nm_recorder_writer *writer, size_t more)
{
	return writer->limit_bytes &&
	       writer->written + more + NM_BLOCK_HEAD + END_BYTES > writer->limit_bytes;
}

static void append_record(struct nm_bytes *block, enum nm_recorded_kind kind,
			  const struct nm_bytes *payload)
{
	nm_put_uint(block, kind);
	nm_put_uint(block, payload->used);
	nm_put_bytes(block, payload->data, payload->used);
}

static void put_payload(const struct nm_recorded *record, struct nm_bytes *ret)
{
	const struct nm_shape *shape = nm_shape_of(record->kind);
	if (record->kind == NM_RECORDED_TOPOLOGY)
		nm_topology_put(record->topology, ret);
	else if (shape)
		nm_shape_put(shape, (const char *)record + nm_shape_place(record->kind), ret);
}

/* Beyond the limit only this record is written. */
static int end_full(struct nm_recorder_writer *writer)
{
	struct nm_recorded end = {.kind = NM_RECORDED_END, .end = "its size limit was reached"};
	writer->payload.used = writer->block.used = 0;
	put_payload(&end, &writer->payload);
	append_record(&writer->block, end.kind, &writer->payload);
	int r = put_block(writer);
	return r < 0 ? r : -EFBIG;
}

static int flush(struct nm_recorder_writer *writer)
{
	if (writer->block.used == 0)
		return 0;
	/* Packing does not make it larger than this. */
	if (is_full(writer, writer->block.used))
		return end_full(writer);
	return put_block(writer);
}

int nm_recording_add(struct nm_recorder_writer *writer, const struct nm_recorded *record)
{
	if (writer->error < 0)
		return writer->error;
	writer->payload.used = 0;
	put_payload(record, &writer->payload);
	append_record(&writer->block, record->kind, &writer->payload);
	if (writer->payload.failed || writer->block.failed)
		writer->error = -ENOMEM;
	else if (writer->block.used >= BLOCK_BYTES)
		writer->error = flush(writer);
	return writer->error;
}

int nm_recording_flush(struct nm_recorder_writer *writer)
{
	if (writer->error == 0)
		writer->error = flush(writer);
	return writer->error;
}

void nm_recording_close(struct nm_recorder_writer *writer)
{
	if (!writer)
		return;
	(void)nm_recording_flush(writer);
	(void)close(writer->fd);
	nm_bytes_clear(&writer->payload);
	nm_bytes_clear(&writer->block);
	nm_bytes_clear(&writer->out);
	free(writer);
}

int nm_recorded_equal(const struct nm_recorded *a, const struct nm_recorded *b, bool *ret)
{
	struct nm_bytes one = {0}, other = {0};
	put_payload(a, &one);
	put_payload(b, &other);
	int r = one.failed || other.failed ? -ENOMEM : 0;
	if (r == 0)
		*ret = a->kind == b->kind && one.used == other.used &&
		       (one.used == 0 || memcmp(one.data, other.data, one.used) == 0);
	nm_bytes_clear(&one);
	nm_bytes_clear(&other);
	return r;
}

/* SPDX-License-Identifier: MIT */
#include "numa-migrd/recording.h"

#include "bytes.h"

static void put_step(struct nm_bytes *bytes, const struct nm_page_step *step)
{
	nm_put_uint(bytes, step->fate);
	nm_put_uint(bytes, step->base_pages);
	nm_put_int(bytes, step->found_on);
	nm_put_int(bytes, step->error);
}

static void put_base_pages(struct nm_bytes *bytes, const struct nm_base_pages *base_pages)
{
	nm_put_uint(bytes, base_pages->address);
	nm_put_uint(bytes, base_pages->pages);
	nm_put_int(bytes, base_pages->was_on);
	nm_put_int(bytes, base_pages->now_on);
}

static int hand_over(struct nm_bytes *bytes, uint8_t **ret, size_t *ret_size)
{
	if (bytes->failed) {
		nm_bytes_clear(bytes);
		return -ENOMEM;
	}
	*ret = bytes->data;
	*ret_size = bytes->used;
	return 0;
}

int nm_batch_put(const struct nm_page_batch *batch, uint8_t **ret, size_t *ret_size)
{
	struct nm_bytes bytes = {0};
	nm_put_uint(&bytes, batch->decision);
	nm_put_int(&bytes, batch->error);
	nm_put_uint(&bytes, batch->moved);
	nm_put_uint(&bytes, batch->bytes);
	nm_put_uint(&bytes, batch->call_ns);
	nm_put_uint(&bytes, batch->calls);
	nm_put_uint(&bytes, batch->base_pages_lost);
	nm_put_uint(&bytes, batch->count);
	for (size_t i = 0; i < batch->count; i++)
		put_step(&bytes, &batch->steps[i]);
	nm_put_uint(&bytes, batch->nr_base_pages);
	for (size_t i = 0; i < batch->nr_base_pages; i++)
		put_base_pages(&bytes, &batch->base_pages[i]);
	return hand_over(&bytes, ret, ret_size);
}

int nm_batch_decision(const uint8_t *bytes, size_t size, uint64_t *ret)
{
	struct nm_cursor cursor = {.at = bytes, .end = bytes + size};
	uint64_t decision = nm_get_uint(&cursor);
	if (cursor.bad)
		return -EBADMSG;
	*ret = decision;
	return 0;
}

static void get_step(struct nm_cursor *cursor, struct nm_page_step *step)
{
	uint64_t fate = nm_get_uint(cursor);
	cursor->bad |= fate > NM_PAGE_FATE_FAILED;
	step->fate = (uint8_t)fate;
	step->base_pages = nm_get_uint(cursor) != 0;
	step->found_on = (int16_t)nm_get_int(cursor);
	step->error = (int)nm_get_int(cursor);
}

static int get_base_pages(struct nm_cursor *cursor, struct nm_page_batch *batch)
{
	uint64_t count = nm_get_uint(cursor);
	if (cursor->bad || count > nm_cursor_left(cursor) / 4)
		return -EBADMSG;
	if (count == 0)
		return 0;
	batch->base_pages = calloc((size_t)count, sizeof(*batch->base_pages));
	if (!batch->base_pages)
		return -ENOMEM;
	batch->nr_base_pages = (size_t)count;
	for (size_t i = 0; i < batch->nr_base_pages; i++) {
		struct nm_base_pages *base_pages = &batch->base_pages[i];
		base_pages->address = nm_get_uint(cursor);
		base_pages->pages = (uint32_t)nm_get_uint(cursor);
		base_pages->was_on = (int16_t)nm_get_int(cursor);
		base_pages->now_on = (int16_t)nm_get_int(cursor);
		cursor->bad |= base_pages->pages == 0 || base_pages->pages > 512;
	}
	return 0;
}

int nm_batch_get(const uint8_t *bytes, size_t size, struct nm_page_batch *batch)
{
	struct nm_cursor cursor = {.at = bytes, .end = bytes + size};
	uint64_t decision = nm_get_uint(&cursor);
	batch->error = (int)nm_get_int(&cursor);
	batch->moved = nm_get_uint(&cursor);
	batch->bytes = nm_get_uint(&cursor);
	batch->call_ns = nm_get_uint(&cursor);
	batch->calls = nm_get_uint(&cursor);
	batch->base_pages_lost = nm_get_uint(&cursor);
	if (decision != batch->decision || nm_get_uint(&cursor) != batch->count)
		return -EBADMSG;
	for (size_t i = 0; i < batch->count && !cursor.bad; i++)
		get_step(&cursor, &batch->steps[i]);
	int r = get_base_pages(&cursor, batch);
	return r == 0 && cursor.bad ? -EBADMSG : r;
}

int nm_ranges_put(const struct nm_range *ranges, size_t count, uint8_t **ret, size_t *ret_size)
{
	struct nm_bytes bytes = {0};
	nm_put_uint(&bytes, count);
	for (size_t i = 0; i < count; i++) {
		nm_put_uint(&bytes, ranges[i].start);
		nm_put_uint(&bytes, ranges[i].end);
		nm_put_uint(&bytes, ranges[i].page_bytes);
	}
	return hand_over(&bytes, ret, ret_size);
}

int nm_ranges_get(const uint8_t *bytes, size_t size, struct nm_range **ret, size_t *ret_count)
{
	struct nm_cursor cursor = {.at = bytes, .end = bytes + size};
	uint64_t count = nm_get_uint(&cursor);
	if (cursor.bad || count > nm_cursor_left(&cursor) / 3)
		return -EBADMSG;
	nm_autofree struct nm_range *ranges = calloc((size_t)count + 1, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		ranges[i].start = nm_get_uint(&cursor);
		ranges[i].end = nm_get_uint(&cursor);
		ranges[i].page_bytes = nm_get_uint(&cursor);
		/* Ascending, as listed by the kernel. */
		cursor.bad |= ranges[i].end <= ranges[i].start ||
			      (i > 0 && ranges[i].start < ranges[i - 1].end);
	}
	if (cursor.bad)
		return -EBADMSG;
	*ret = NM_TAKE(ranges);
	*ret_count = (size_t)count;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Helpers for fuzz targets. Each fuzz_*.c defines LLVMFuzzerTestOneInput(), which libFuzzer calls
 * with its own inputs, and replay.c with those of seeds.c. Properties of any input are required
 * explicitly; sanitizers find the rest.
 */
#ifndef NM_FUZZ_H
#define NM_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "numa-migrd/platform.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_REQUIRE(condition)                                                                    \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

/* The rest of an input. */
struct fuzz_input {
	const uint8_t *data;
	size_t size;
};

static inline uint8_t fuzz_byte(struct fuzz_input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

/* Missing bytes are 0. */
static inline uint64_t fuzz_u64(struct fuzz_input *input)
{
	uint64_t value = 0;
	size_t size = input->size < sizeof(value) ? input->size : sizeof(value);

	memcpy(&value, input->data, size);
	input->data += size;
	input->size -= size;
	return value;
}

/* Returns the rest as text; no byte behind its NUL may be read. The caller frees it. */
static inline char *fuzz_text(const struct fuzz_input *input)
{
	char *text = malloc(input->size + 1);

	FUZZ_REQUIRE(text);
	memcpy(text, input->data, input->size);
	text[input->size] = '\0';
	return text;
}

/* Returns the text up to a byte of 0xff or the end, and skips that byte. The caller frees it. */
static inline char *fuzz_piece(struct fuzz_input *input)
{
	const uint8_t *end = input->size ? memchr(input->data, 0xff, input->size) : NULL;
	struct fuzz_input piece = {input->data, end ? (size_t)(end - input->data) : input->size};

	input->data += piece.size + (end ? 1 : 0);
	input->size -= piece.size + (end ? 1 : 0);
	return fuzz_text(&piece);
}

/* ---- a machine on which every file has the same content ---- */

#define FUZZ_DIRECTORY 1000

struct fuzz_platform {
	struct nm_platform platform;
	const char *text;
	size_t length;
	unsigned open;
	uint64_t now_ns;
};

static inline struct fuzz_platform *fuzz_of(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct fuzz_platform, platform);
}

static inline uint64_t fuzz_now_ns(struct nm_platform *platform)
{
	return ++fuzz_of(platform)->now_ns;
}

static inline int fuzz_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	(void)directory, (void)path;
	fuzz_of(platform)->open++;
	return FUZZ_DIRECTORY;
}

static inline ssize_t fuzz_read_file(struct nm_platform *platform, int directory, const char *path,
				     char *buffer, size_t size)
{
	struct fuzz_platform *fuzz = fuzz_of(platform);

	(void)directory, (void)path;
	if (fuzz->length >= size)
		return -EFBIG;
	memcpy(buffer, fuzz->text, fuzz->length);
	buffer[fuzz->length] = '\0';
	return (ssize_t)fuzz->length;
}

static inline void fuzz_close(struct nm_platform *platform, int fd)
{
	FUZZ_REQUIRE(fd == FUZZ_DIRECTORY);
	FUZZ_REQUIRE(fuzz_of(platform)->open-- > 0);
}

static const struct nm_platform_ops fuzz_ops = {
	.now_ns = fuzz_now_ns,
	.open_directory = fuzz_open_directory,
	.read_file = fuzz_read_file,
	.close = fuzz_close,
};

static inline struct fuzz_platform fuzz_platform_returning(const char *text, size_t length)
{
	return (struct fuzz_platform){
		.platform = {.ops = &fuzz_ops}, .text = text, .length = length};
}

#endif

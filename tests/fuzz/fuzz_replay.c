// SPDX-License-Identifier: MIT
// SECURITY: recordings
/*
 * Replays recordings. The stages of the daemon must accept any content, and the output must be safe
 * for a terminal.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/recording/block.h"
#include "../../src/lab/replay/replay.h"
#include "fuzz.h"

#define PATH_BYTES 32

static int file_of(const void *bytes, size_t size, char ret_path[PATH_BYTES])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	FUZZ_REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	snprintf(ret_path, PATH_BYTES, "/proc/self/fd/%d", fd);
	return fd;
}

/* Builds one block, as the writer would. */
static int recording_of(const struct fuzz_input *input, char ret_path[PATH_BYTES])
{
	struct nm_bytes file = {0};
	uint8_t *head = nm_bytes_room(&file, NM_FILE_HEAD);

	FUZZ_REQUIRE(head);
	nm_file_head_write(NM_RECORDING_VERSION, head);
	file.used += NM_FILE_HEAD;
	FUZZ_REQUIRE(nm_block_write(input->data, input->size, &file) == 0);
	int fd = file_of(file.data, file.used, ret_path);
	nm_bytes_clear(&file);
	return fd;
}

static void require_clean(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		FUZZ_REQUIRE((unsigned char)text[i] >= ' ' || text[i] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	char file[PATH_BYTES], *output = NULL;
	size_t length = 0;

	int fd = recording_of(&input, file);
	FILE *out = open_memstream(&output, &length);
	FUZZ_REQUIRE(out);
	const struct nm_replay_request request = {.file = file, .out = out, .err = out};
	(void)nm_replay_run(&request);
	FUZZ_REQUIRE(fclose(out) == 0 && length > 0);
	require_clean(output, length);
	free(output);
	close(fd);
	return 0;
}

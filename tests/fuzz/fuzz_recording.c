// SPDX-License-Identifier: MIT
// SECURITY: recordings
/* Recordings: whole files, and contents behind valid checksums. */
#include <sys/mman.h>

#include "../../src/recording/block.h"
#include "fuzz.h"
#include "numa-migrd/recording.h"

static void look(const struct nm_recorded *record)
{
	static FILE *nowhere;
	struct nm_topology *copy = NULL;
	bool equal = false;

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	FUZZ_REQUIRE(nowhere && record->kind < NM_RECORDED_KINDS);
	nm_recorded_print(record, nowhere);
	FUZZ_REQUIRE(nm_recorded_equal(record, record, &equal) == 0 && equal);
	if (record->kind != NM_RECORDED_TOPOLOGY)
		return;
	FUZZ_REQUIRE(nm_topology_copy(record->topology, &copy) == 0);
	nm_topology_free(copy);
}

static void read_all(struct nm_recording *recording)
{
	struct nm_recorded record;
	int r = 0;

	for (int pass = 0; pass < 2; pass++) {
		while ((r = nm_recording_next(recording, &record)) > 0)
			look(&record);
		FUZZ_REQUIRE(r == 0 || r == -EBADMSG);
		FUZZ_REQUIRE(r == 0 || nm_recording_error(recording)[0]);
		nm_recording_rewind(recording);
	}
}

static void read_file(const uint8_t *bytes, size_t size)
{
	nm_auto(nm_recording_freep) struct nm_recording *recording = NULL;
	char error[256] = "";
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	FUZZ_REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	FUZZ_REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
	int r = nm_recording_open(fd, error, sizeof(error), &recording);
	FUZZ_REQUIRE(r == 0 || r == -EPROTO || r == -EPROTONOSUPPORT || r == -EBADMSG);
	FUZZ_REQUIRE((r == 0) == (recording != NULL) && (r == 0 || error[0]));
	if (recording)
		read_all(recording);
}

/* Builds one block, as the writer would. */
static void read_packed(const struct fuzz_input *input)
{
	struct nm_bytes file = {0};
	uint8_t *head = nm_bytes_room(&file, NM_FILE_HEAD);

	FUZZ_REQUIRE(head);
	nm_file_head_write(NM_RECORDING_VERSION, head);
	file.used += NM_FILE_HEAD;
	FUZZ_REQUIRE(nm_block_write(input->data, input->size, &file) == 0);
	read_file(file.data, file.used);
	nm_bytes_clear(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};

	switch (fuzz_byte(&input) % 3) {
	case 0:
		read_file(input.data, input.size);
		break;
	default:
		read_packed(&input);
		break;
	}
	return 0;
}

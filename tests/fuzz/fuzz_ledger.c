// SPDX-License-Identifier: MIT
// SECURITY: ledger
/* Files in the runtime directory after an unclean exit: moves, the ledger of an earlier version,
 * released threads and unresponsive processes. */
#include "../support/machine.h"
#include "folder.h"
#include "affinity/move.h"
#include "tasks/tasks.h"
#include "platform/worker.h"

#define BOOT "0b5d2a86-8bd1-4a7e-9d6c-5a4e8f6d3c11"

static int get_nothing(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	(void)platform, (void)tid, (void)ret;
	return -ESRCH;
}

static int set_nothing(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus)
{
	(void)platform, (void)tid, (void)cpus;
	return -EPERM;
}

static int list_nothing(struct nm_platform *platform, int directory, const char *path,
			int (*each)(void *context, const char *name), void *context)
{
	(void)platform, (void)directory, (void)path, (void)each, (void)context;
	return 0;
}

/* Restores from it on a machine where the stat of every thread is empty. */
static void restore(const struct fuzz_input *input, const char *name)
{
	struct fuzz_platform fuzz = fuzz_platform_returning("", 0);
	struct nm_platform_ops ops = *fuzz.platform.ops;
	nm_auto(nm_topology_freep) struct nm_topology *topology = machine_topology(4, 8);
	const struct nm_restore_input files = {.platform = &fuzz.platform,
					       .topology = topology,
					       .directory = folder(),
					       .boot_id = BOOT};
	struct nm_restoration found = {0};

	ops.affinity_get = get_nothing;
	ops.affinity_set = set_nothing;
	ops.list_directory = list_nothing;
	fuzz.platform.ops = &ops;
	folder_write(name, input->data, input->size);
	int r = strcmp(name, NM_MOVES_NAME) == 0 ? nm_moves_restore(&files, &found)
						 : nm_ledger_restore(&files, &found);
	FUZZ_REQUIRE(r == 0 || r == -EBADMSG);
	FUZZ_REQUIRE(r < 0 || (found.bad_lines > 0) == (found.first_bad_line > 0));
	FUZZ_REQUIRE(fuzz.open == 0);
}

/* Reads it on a machine where the stat of every thread contains the rest of the input. */
static void read_released(struct fuzz_input *input)
{
	nm_auto(nm_released_list_freep) struct nm_released_list *memory = NULL;
	char *stat = fuzz_piece(input);
	struct fuzz_platform fuzz = fuzz_platform_returning(stat, strlen(stat));

	folder_write(NM_RELEASED_NAME, input->data, input->size);
	nm_released_list_new(&memory);
	int r = nm_released_list_load(memory, &fuzz.platform, folder(), BOOT);
	FUZZ_REQUIRE(r == 0 || r == -EBADMSG || r == -EFBIG);
	(void)nm_released_list_save(memory, &fuzz.platform, folder(), BOOT);
	FUZZ_REQUIRE(fuzz.open == 0);
	free(stat);
}

static void read_unanswered(const struct fuzz_input *input)
{
	nm_auto(nm_unresponsive_list_freep) struct nm_unresponsive_list *memory = NULL;

	folder_write(NM_WORKER_MEMORY_NAME, input->data, input->size);
	nm_unresponsive_list_new(&memory);
	int r = nm_unresponsive_list_load(memory, folder(), BOOT);
	FUZZ_REQUIRE(r == 0 || r == -EBADMSG || r == -EFBIG);
	(void)nm_unresponsive_list_save(memory, folder(), BOOT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};

	uint8_t file = fuzz_byte(&input) & 3;
	if (file == 1)
		read_released(&input);
	else if (file == 2)
		read_unanswered(&input);
	else
		restore(&input, file ? NM_MOVES_NAME : NM_LEDGER_NAME);
	return 0;
}

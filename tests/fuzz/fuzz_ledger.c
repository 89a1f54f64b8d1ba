// SPDX-License-Identifier: MIT
// SECURITY: ledger
/* Files in the runtime directory after an unclean exit: the ledger, released threads and
 * unresponsive processes. */
#include "folder.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/tasks.h"
#include "numa-migrd/worker.h"

#define BOOT "0b5d2a86-8bd1-4a7e-9d6c-5a4e8f6d3c11"

static void look(const struct nm_ledger_contents *contents)
{
	for (size_t i = 0; i < contents->count; i++) {
		const struct nm_ledger_entry *entry = &contents->entries[i];
		FUZZ_REQUIRE(entry->tid && entry->pid);
		FUZZ_REQUIRE(hwloc_bitmap_weight(entry->original) > 0);
		FUZZ_REQUIRE(hwloc_bitmap_weight(entry->target) > 0);
	}
	FUZZ_REQUIRE((contents->bad_lines > 0) == (contents->first_bad_line > 0));
}

static void read_ledger(const struct fuzz_input *input)
{
	nm_auto(nm_ledger_freep) struct nm_ledger *ledger = NULL;
	struct nm_ledger_contents contents = {0};

	folder_write(NM_LEDGER_NAME, input->data, input->size);
	int r = nm_ledger_read(folder(), BOOT, &contents);
	FUZZ_REQUIRE(r == 0 || r == -EBADMSG);
	if (r == 0)
		look(&contents);
	nm_ledger_contents_clear(&contents);
	r = nm_ledger_open(folder(), BOOT, &ledger);
	FUZZ_REQUIRE(r == 0 || r == -EBADMSG);
}

/* Reads it on a machine where the stat of every thread contains the rest of the input. */
static void read_released(struct fuzz_input *input)
{
	nm_auto(nm_released_list_freep) struct nm_released_list *memory = NULL;
	char *stat = fuzz_piece(input);
	struct fuzz_platform fuzz = fuzz_platform_returning(stat, strlen(stat));

	folder_write(NM_ROSTER_MEMORY_NAME, input->data, input->size);
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
	if (file & 1)
		read_released(&input);
	else if (file)
		read_unanswered(&input);
	else
		read_ledger(&input);
	return 0;
}

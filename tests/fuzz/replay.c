// SPDX-License-Identifier: MIT
/*
 * replay FOLDER: runs a fuzz target without libFuzzer. Each file of the folder is an input,
 * unchanged and with some bytes changed, the same ones each time.
 */
#include <dirent.h>
#include <stdio.h>

#include "fuzz.h"
#include "numa-migrd/base.h"
#include "numa-migrd/file.h"

#define INPUT_BYTES (256 << 10)
#define CHANGED_INPUTS 200

static void change(struct nm_rng *rng, uint8_t *bytes, size_t size)
{
	for (uint64_t i = 1 + nm_rng_below(rng, 4); i > 0; i--)
		bytes[nm_rng_below(rng, size)] = (uint8_t)nm_rng_next(rng);
}

static void run(const char *bytes, size_t size)
{
	const struct fuzz_input input = {(const uint8_t *)bytes, size};
	struct nm_rng rng;

	nm_rng_seed(&rng, size);
	for (unsigned i = 0; i <= CHANGED_INPUTS; i++) {
		char *copy = fuzz_text(&input);
		if (i > 0 && size > 0)
			change(&rng, (uint8_t *)copy, size);
		(void)LLVMFuzzerTestOneInput((const uint8_t *)copy, size);
		free(copy);
	}
}

int main(int argc, char **argv)
{
	DIR *inputs = argc == 2 ? opendir(argv[1]) : NULL;
	const struct dirent *entry;
	unsigned count = 0;

	while (inputs && (entry = readdir(inputs))) {
		static char bytes[INPUT_BYTES];
		if (entry->d_name[0] == '.')
			continue;
		int size = nm_read_text(dirfd(inputs), entry->d_name, bytes, sizeof(bytes));
		if (size < 0) {
			fprintf(stderr, "%s: %s\n", entry->d_name, strerror(-size));
			return 1;
		}
		run(bytes, (size_t)size);
		count++;
	}
	if (inputs)
		closedir(inputs);
	printf("%u inputs, each with %d changes\n", count, CHANGED_INPUTS);
	return count ? 0 : 1;
}

// SPDX-License-Identifier: MIT
/*
 * replay [--fails] FOLDER: runs a fuzz target without libFuzzer. Each file of the folder is an
 * input, unchanged and with some bytes changed, the same ones each time. With --fails, one of them
 * must end it.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"
#include "numa-migrd/base.h"
#include "numa-migrd/file.h"

#define INPUT_BYTES (256 << 10)
#define CHANGED_INPUTS 200
#define NO_INPUTS 77

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

static int run_folder(const char *path)
{
	DIR *inputs = opendir(path);
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

/* A sanitizer ends a process by its exit status. */
static int expect_failure(const char *path)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(run_folder(path) == 0 ? 0 : NO_INPUTS);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == NO_INPUTS)) {
		fprintf(stderr, "no input has found the fault\n");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--fails") == 0)
		return expect_failure(argv[2]);
	return argc == 2 ? run_folder(argv[1]) : 1;
}

/* SPDX-License-Identifier: MIT */
/* Recorded data that is not part of the project: stored beside the checkout, or absent. */
#ifndef NUMA_MIGRD_TESTS_DATA_H
#define NUMA_MIGRD_TESTS_DATA_H

#include <stdio.h>
#include <stdlib.h>

/* Opens a file below $NUMA_MIGRD_DATA or ../shared/data; prints a message and returns NULL if it
 * does not exist. */
static inline FILE *data_open(const char *name)
{
	const char *folder = getenv("NUMA_MIGRD_DATA");
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder ? folder : NM_SOURCE_DIR "/../shared/data",
		 name);
	FILE *file = fopen(path, "re");
	if (!file)
		printf("%s is absent: skipped\n", path);
	return file;
}

/* Returns the whole file in memory (the caller frees), or NULL. */
static inline unsigned char *data_read(const char *name, size_t *ret_size)
{
	FILE *file = data_open(name);
	unsigned char *bytes = NULL;
	size_t size = 0, capacity = 0, got = 1;

	while (file && got > 0) {
		capacity = capacity ? 2 * capacity : 1U << 16;
		bytes = realloc(bytes, capacity);
		if (!bytes)
			abort();
		got = fread(bytes + size, 1, capacity - size, file);
		size += got;
	}
	if (file)
		fclose(file);
	*ret_size = size;
	return bytes;
}

#endif

/* SPDX-License-Identifier: MIT */
/* A folder for targets whose parsers open files. It is removed at exit. */
#ifndef NM_FUZZ_FOLDER_H
#define NM_FUZZ_FOLDER_H

#include "../unit/fixture.h"
#include "fuzz.h"

static char folder_path[FIXTURE_PATH / 4];

static inline void folder_end(void)
{
	fixture_remove(folder_path);
}

/* Created by the first call. */
static inline int folder(void)
{
	static int fd = -1;

	if (fd >= 0)
		return fd;
	fixture_make(folder_path, sizeof(folder_path));
	FUZZ_REQUIRE(atexit(folder_end) == 0);
	fd = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_REQUIRE(fd >= 0);
	return fd;
}

/* Writes the bytes to folder/name, whose directory exists. */
static inline void folder_write(const char *name, const void *bytes, size_t size)
{
	int fd = openat(folder(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

#endif

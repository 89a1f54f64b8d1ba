/* SPDX-License-Identifier: MIT */
/* Small trees of files for tests that read /sys and /proc below a separate root. */
#ifndef NUMA_MIGRD_TEST_FIXTURE_H
#define NUMA_MIGRD_TEST_FIXTURE_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIXTURE_PATH 512

static inline void fixture_make(char *root, size_t size)
{
	const char *base = getenv("TMPDIR");

	snprintf(root, size, "%s/numa-migrd-test-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(root))
		abort();
}

static inline int fixture_unlink(const char *path, const struct stat *status, int type,
				 struct FTW *at)
{
	(void)status, (void)type, (void)at;
	return remove(path);
}

static inline void fixture_remove(const char *root)
{
	(void)nftw(root, fixture_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void fixture_directory(const char *root, const char *path)
{
	char whole[FIXTURE_PATH];

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(whole, 0755);
		*slash = '/';
	}
	(void)mkdir(whole, 0755);
}

/* Writes root/path and creates its directories. */
static inline void fixture_file(const char *root, const char *path, const char *text)
{
	char whole[FIXTURE_PATH];
	char parent[FIXTURE_PATH];

	snprintf(parent, sizeof(parent), "%s", path);
	char *slash = strrchr(parent, '/');
	if (slash) {
		*slash = '\0';
		fixture_directory(root, parent);
	}
	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	FILE *file = fopen(whole, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

/* Reads root/path; "" if it does not exist. */
static inline const char *fixture_read(const char *root, const char *path)
{
	static char text[4096];
	char whole[FIXTURE_PATH];

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	FILE *file = fopen(whole, "r");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[length] = '\0';
	if (file)
		fclose(file);
	return text;
}

/* Returns the folder of recorded machines, or NULL if this checkout has none. */
static inline const char *recorded_machines_directory(void)
{
	static char path[PATH_MAX];
	const char *given = getenv("NUMA_MIGRD_DATA");

	snprintf(path, sizeof(path), "%s", given ? given : NM_SOURCE_DIR "/../shared/data");
	return access(path, R_OK) == 0 ? path : NULL;
}

#endif

/* SPDX-License-Identifier: MIT */
#include "complaints.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "numa-migrd/base.h"

#define KEPT_BYTES 4096

/* Returns the part of a line about the file that follows its name; NULL: it is about something
 * else. */
static const char *about(const char *line, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *names[] = {path, name};
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++) {
		size_t length = strlen(names[i]);
		if (strncmp(line, names[i], length) == 0 && line[length] == ':')
			return line + length + 1 + strspn(line + length + 1, " ");
	}
	return NULL;
}

static void find_last(char *text, const char *path, char ret[NM_COMPLAINT_BYTES])
{
	char *rest = text;
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		const char *words = about(line, path);
		/* That is known already. */
		if (words && !strstr(words, "discovery failed"))
			(void)nm_escape(ret, NM_COMPLAINT_BYTES, words, strlen(words));
	}
}

void nm_complaints_begin(struct nm_complaints *ret)
{
	*ret = (struct nm_complaints){.stderr_kept = -1, .file = -1};
	(void)fflush(stderr);
	int file = memfd_create("complaints", MFD_CLOEXEC);
	if (file < 0)
		return;
	ret->stderr_kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (ret->stderr_kept < 0 || dup2(file, STDERR_FILENO) < 0) {
		if (ret->stderr_kept >= 0)
			(void)close(ret->stderr_kept);
		(void)close(file);
		return;
	}
	ret->file = file;
}

void nm_complaints_end(struct nm_complaints *complaints, const char *path,
		       char ret[NM_COMPLAINT_BYTES])
{
	char text[KEPT_BYTES];
	ret[0] = '\0';
	if (complaints->file < 0)
		return;
	(void)fflush(stderr);
	(void)dup2(complaints->stderr_kept, STDERR_FILENO);
	(void)close(complaints->stderr_kept);
	ssize_t length = pread(complaints->file, text, sizeof(text) - 1, 0);
	(void)close(complaints->file);
	if (length <= 0)
		return;
	text[length] = '\0';
	find_last(text, path, ret);
}

/* SPDX-License-Identifier: MIT */
#include "stderr_capture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "numa-migrd/base.h"

#define KEPT_BYTES 4096

/* Returns the part of a line about the file that follows its name; NULL: it is about something
 * else. */
static const char *message_about(const char *line, const char *path)
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

void nm_stderr_capture_begin(struct nm_stderr_capture *ret)
{
	*ret = (struct nm_stderr_capture){.saved_stderr = -1, .file = -1};
	(void)fflush(stderr);
	int file = memfd_create("complaints", MFD_CLOEXEC);
	if (file < 0)
		return;
	ret->saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (ret->saved_stderr < 0 || dup2(file, STDERR_FILENO) < 0) {
		if (ret->saved_stderr >= 0)
			(void)close(ret->saved_stderr);
		(void)close(file);
		return;
	}
	ret->file = file;
}

void nm_stderr_capture_end(struct nm_stderr_capture *capture, const char *path,
			   char ret[NM_STDERR_MESSAGE_BYTES])
{
	char text[KEPT_BYTES], *rest = text;
	ret[0] = '\0';
	if (capture->file < 0)
		return;
	(void)fflush(stderr);
	(void)dup2(capture->saved_stderr, STDERR_FILENO);
	(void)close(capture->saved_stderr);
	ssize_t length = pread(capture->file, text, sizeof(text) - 1, 0);
	(void)close(capture->file);
	if (length <= 0)
		return;
	text[length] = '\0';
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		const char *words = message_about(line, path);
		/* That is known already. */
		if (words && !strstr(words, "discovery failed"))
			(void)nm_escape(ret, NM_STDERR_MESSAGE_BYTES, words, strlen(words));
	}
}

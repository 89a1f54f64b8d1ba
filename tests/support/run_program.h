/* SPDX-License-Identifier: MIT */
/* Runs programs built beside the test. Include after cmocka.h. */
#ifndef NM_TEST_RUN_PROGRAM_H
#define NM_TEST_RUN_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the path of a program, given by its path in the build folder. */
static inline void program_path(const char *program, char *path, size_t size)
{
	char self[512];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(length > 0);
	self[length] = '\0';
	*strrchr(self, '/') = '\0';
	(void)snprintf(path, size, "%s/../../%s", self, program);
}

/* Runs it in a shell; returns its exit status, and both output streams in `text`. */
static inline int run_program(const char *program, const char *arguments, char *text, size_t size)
{
	char path[1024], command[2048], rest[4096];
	program_path(program, path, sizeof(path));
	(void)snprintf(command, sizeof(command), "%s %s 2>&1", path, arguments);
	FILE *pipe = popen(command, "re"); /* NOLINT(cert-env33-c): our own program, fixed words */
	assert_non_null(pipe);
	size_t used = fread(text, 1, size - 1, pipe);
	text[used] = '\0';
	while (fread(rest, 1, sizeof(rest), pipe) > 0)
		; /* or it ends by SIGPIPE */
	return WEXITSTATUS(pclose(pipe));
}

static inline void assert_program(const char *program, const char *arguments, int status,
				  const char *says)
{
	char text[16384];
	int found = run_program(program, arguments, text, sizeof(text));
	if (found != status || !strstr(text, says))
		fail_msg("%s %s: exit %d, \"%s\"", program, arguments, found, text);
}

#endif

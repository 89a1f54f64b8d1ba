/* SPDX-License-Identifier: MIT */
/* Runs the numa-migrctl built beside the test. Include after cmocka.h and bus_fixture.h. */
#ifndef NM_TEST_RUN_CTL_H
#define NM_TEST_RUN_CTL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns its path; skips the test if it was not built. */
static inline void ctl_path(char *path, size_t size)
{
	char self[512];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(length > 0);
	self[length] = '\0';
	*strrchr(self, '/') = '\0';
	(void)snprintf(path, size, "%s/../../src/ctl/numa-migrctl", self);
	need(access(path, X_OK) == 0, "numa-migrctl is not built");
}

/* Runs it in a shell; returns its exit status, and both output streams in `text`. */
static inline int ctl(const char *arguments, char *text, size_t size)
{
	char path[1024], command[2048], rest[4096];
	ctl_path(path, sizeof(path));
	(void)snprintf(command, sizeof(command), "%s %s 2>&1", path, arguments);
	FILE *pipe = popen(command, "re"); /* NOLINT(cert-env33-c): our own program, fixed words */
	assert_non_null(pipe);
	size_t used = fread(text, 1, size - 1, pipe);
	text[used] = '\0';
	while (fread(rest, 1, sizeof(rest), pipe) > 0)
		; /* or it ends by SIGPIPE */
	return WEXITSTATUS(pclose(pipe));
}

static inline void assert_ctl(const char *arguments, int status, const char *says)
{
	char text[16384];
	int found = ctl(arguments, text, sizeof(text));
	if (found != status || !strstr(text, says))
		fail_msg("numa-migrctl %s: exit %d, \"%s\"", arguments, found, text);
}

#endif

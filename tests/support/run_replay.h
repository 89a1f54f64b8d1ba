/* SPDX-License-Identifier: MIT */
/* Runs the numa-migrd-replay built beside the test. Needs NM_BINARY_DIR. Include after cmocka.h. */
#ifndef NM_TEST_RUN_REPLAY_H
#define NM_TEST_RUN_REPLAY_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Stores both output streams in *ret; returns the exit status. */
static inline int run_replay(const char *file, char *ret, size_t size)
{
	char command[1024];
	(void)snprintf(command, sizeof(command),
		       NM_BINARY_DIR "/src/lab/numa-migrd-replay %s 2>&1", file);
	FILE *pipe = popen(command, "re"); /* NOLINT(cert-env33-c): our own program */
	assert_non_null(pipe);
	size_t length = fread(ret, 1, size - 1, pipe);
	ret[length] = '\0';
	int status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static inline void assert_replays(const char *file)
{
	char output[8192];
	int status = run_replay(file, output, sizeof(output));
	if (status != 0 || !strstr(output, "the same decisions, bit for bit"))
		fail_msg("%d: %s", status, output);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Runs the numa-migrctl built beside the test. Include after cmocka.h and bus_fixture.h. */
#ifndef NM_TEST_RUN_CTL_H
#define NM_TEST_RUN_CTL_H

#include "run_program.h"

#define CTL "src/ctl/numa-migrctl"

/* Returns its path; skips the test if it was not built. */
static inline void ctl_path(char *path, size_t size)
{
	program_path(CTL, path, size);
	need(access(path, X_OK) == 0, "numa-migrctl is not built");
}

static inline int ctl(const char *arguments, char *text, size_t size)
{
	return run_program(CTL, arguments, text, size);
}

static inline void assert_ctl(const char *arguments, int status, const char *says)
{
	assert_program(CTL, arguments, status, says);
}

#endif

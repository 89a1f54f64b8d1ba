/* SPDX-License-Identifier: MIT */
/* numa-migrd-replay, the program behind numa-migrctl replay. */
#include <sysexits.h>

#include "replay.h"

static int close_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("numa-migrctl: standard output");
	return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

int main(int argc, char **argv)
{
	struct nm_replay_request request = {.out = stdout, .err = stderr};
	if (getopt(argc, argv, "") != -1 || optind + 1 != argc) {
		(void)fputs("Run by numa-migrctl(1): replay\n", stderr);
		return EX_USAGE;
	}
	request.file = argv[optind];
	return close_output(nm_replay_run(&request));
}

/* SPDX-License-Identifier: MIT */
/* numa-migrd-replay, the program behind numa-migrctl replay. */
#include <sysexits.h>
#include <unistd.h>

#include "replay.h"

static int close_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("numa-migrctl: standard output");
	return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

static int parse_arguments(int argc, char **argv, struct nm_replay_request *ret)
{
	if (getopt(argc, argv, "") != -1 || optind + 1 != argc)
		return EX_USAGE;
	ret->file = argv[optind];
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct nm_replay_request request = {.out = stdout, .err = stderr};
	int status = parse_arguments(argc, argv, &request);
	if (status != EXIT_SUCCESS) {
		(void)fputs("Run by numa-migrctl(1): replay\n", stderr);
		return status;
	}
	return close_output(nm_replay_run(&request));
}

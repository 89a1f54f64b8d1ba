/* SPDX-License-Identifier: MIT */
/* numa-migrd-replay: what numa-migrctl replay runs. */
#include <getopt.h>
#include <sysexits.h>

#include "replay.h"

static int close_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("numa-migrctl: standard output");
	return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

static int parse(int argc, char **argv, struct nm_replay_request *ret)
{
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"all", no_argument, NULL, 'a'},
		{0},
	};
	for (int c; (c = getopt_long(argc, argv, "c:", longs, NULL)) != -1;) {
		if (c == 'c')
			ret->config = optarg;
		else if (c == 'a')
			ret->all = true;
		else
			return EX_USAGE;
	}
	if (optind + 1 != argc)
		return EX_USAGE;
	ret->file = argv[optind];
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct nm_replay_request request = {.out = stdout, .err = stderr};
	int status = parse(argc, argv, &request);
	if (status != EXIT_SUCCESS) {
		(void)fputs("Run by numa-migrctl(1): replay\n", stderr);
		return status;
	}
	return close_output(nm_replay_run(&request));
}

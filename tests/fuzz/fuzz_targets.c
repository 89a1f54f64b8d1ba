// SPDX-License-Identifier: MIT
/* Names and cgroups of processes against the patterns of targets. */
#include <fnmatch.h>

#include "fuzz.h"
#include "numa-migrd/config.h"

static const char targets[] =
	"targets = { include = ( { command = \"a*b?[c-e]*\"; }, { unit = \"*.service\"; },\n"
	"  { slice = \"user-*.slice\"; }, { cgroup = \"/a/*/b\"; } ); };\n";

static void match(struct fuzz_input *input)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	struct nm_config_errors errors = {0};
	char *command = fuzz_piece(input), *cgroup = fuzz_piece(input);
	const struct nm_target_subject subject = {.command = command, .cgroup = cgroup};

	FUZZ_REQUIRE(nm_config_parse("targets", targets, strlen(targets), &errors, &config) == 0);
	(void)nm_config_find(&config->targets.include, &subject);
	/* Without a cgroup only the first pattern counts. */
	const struct nm_target_subject bare = {.command = command};
	FUZZ_REQUIRE((nm_config_find(&config->targets.include, &bare) != NULL) ==
		     (fnmatch("a*b?[c-e]*", command, 0) == 0));
	free(command), free(cgroup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};

	match(&input);
	return 0;
}

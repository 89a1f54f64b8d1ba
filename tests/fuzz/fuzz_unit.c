// SPDX-License-Identifier: MIT
// SECURITY: units
/* The text of systemd units, as `doctor` reads it, and processes' names against targets. */
#include "../../src/doctor/unit.h"
#include "fuzz.h"
#include "numa-migrd/config.h"

static const char targets[] =
	"targets = { include = ( { command = \"a*b?[c-e]*\"; }, { unit = \"*.service\"; },\n"
	"  { slice = \"user-*.slice\"; }, { cgroup = \"/a/*/b\"; } ); };\n";

static void read_unit(const char *text)
{
	struct nm_unit unit = {0};

	FUZZ_REQUIRE(nm_unit_read(&unit, text) == 0);
	for (size_t i = 0; i < unit.count; i++) {
		const char *key = unit.settings[i].key;
		const char *value = nm_unit_value(&unit, key);
		FUZZ_REQUIRE(value && !strchr(value, '\n'));
		(void)nm_unit_boolean(value);
	}
	(void)nm_unit_has_word(&unit, "CapabilityBoundingSet", "CAP_PERFMON");
	nm_unit_clear(&unit);
}

static void match(struct fuzz_input *input)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	struct nm_config_errors errors = {0};
	char *command = fuzz_piece(input), *cgroup = fuzz_piece(input);
	const struct nm_target_subject subject = {.command = command, .cgroup = cgroup};

	FUZZ_REQUIRE(nm_config_parse("targets", targets, strlen(targets), &errors, &config) == 0);
	(void)nm_config_matches(&config->targets.include, &subject, false);
	(void)nm_config_matches(&config->targets.include, &subject, true);
	free(command), free(cgroup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	char *text = fuzz_text(&input);

	read_unit(text);
	match(&input);
	free(text);
	return 0;
}

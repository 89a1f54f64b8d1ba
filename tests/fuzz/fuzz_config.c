// SPDX-License-Identifier: MIT
// SECURITY: configuration
/* The text of the configuration yields a complete configuration, or an error for each fault. */
#include "fuzz.h"
#include "numa-migrd/config.h"

/* libconfig 1.5 does not free the string at which a syntax error is found. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:strbuf_append\nleak:libconfig_yylex\n";
}

static void look(const struct nm_config *config)
{
	const struct nm_target_subject subject = {
		.command = "a", .cgroup = "/system.slice/a.service", .uid = 1000};

	FUZZ_REQUIRE(config->general.interval_s >= 0.1 && config->general.interval_s <= 60);
	FUZZ_REQUIRE(config->rules.max_tracked >= 1000);
	FUZZ_REQUIRE(nm_policy_name(config->threads.policy));
	(void)nm_config_find(&config->targets.include, &subject);
	(void)nm_config_find(&config->targets.exclude, &subject);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	struct nm_config_errors errors = {0};

	int r = nm_config_parse("fuzz", (const char *)data, size, &errors, &config);
	FUZZ_REQUIRE((r == 0) == (config != NULL));
	FUZZ_REQUIRE((r == -EINVAL) == (errors.count > 0));
	if (config)
		look(config);
	nm_config_errors_clear(&errors);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The effective values, and where they come from. */
#include "../support/test.h"

#include <string.h>

#include "numa-migrd/config.h"

static bool find_value(const struct nm_config *config, const char *group, const char *name,
		       struct nm_config_value *ret)
{
	for (size_t i = 0; nm_config_show(config, i, ret); i++)
		if (strcmp(ret->group, group) == 0 && strcmp(ret->name, name) == 0)
			return true;
	return false;
}

static void assert_value(const struct nm_config *config, const char *group, const char *name,
			 const char *text, const char *place)
{
	struct nm_config_value value;
	if (!find_value(config, group, name, &value))
		fail_msg("%s.%s is not shown", group, name);
	assert_string_equal(value.text, text);
	assert_string_equal(value.place ? value.place : "default", place);
}

TEST(each_value_is_shown_with_the_last_file_that_sets_it)
{
	static const char one[] = "threads: { policy = \"imar2-paper\"; };\n"
				  "pages: { max_mb_per_s = 10; };\n"
				  "targets: { exclude = ( { command = \"a*\"; user = \"0\"; }, { "
				  "unit = \"b.service\"; } ); };\n"
				  "metrics: { file = \"/run/a.prom\"; };\n"
				  "parameters: { pages: { also = (\"bound\", \"shared\"); };\n"
				  "sampling: { event = \"A:B\"; }; };\n";
	static const char two[] =
		"\npages: { max_mb_per_s = 20; };\ngeneral: { dry_run = true; };\n";
	static const char three[] = "min_run = 0.5;\n";
	const struct nm_config_text texts[] = {
		{.name = "one", .text = one, .length = strlen(one)},
		{.name = "two", .text = two, .length = strlen(two)},
	};
	const struct nm_config_text parameters = {
		.name = "three", .text = three, .length = strlen(three)};
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	int r = nm_config_parse_all(texts, 2, &parameters, &errors, &config);
	assert_string_equal(errors.count > 0 ? errors.text[0] : "", "");
	assert_int_equal(r, 0);
	assert_value(config, "threads", "policy", "\"imar2-paper\"", "one:1");
	assert_value(config, "pages", "max_mb_per_s", "20", "two:2");
	assert_value(config, "general", "dry_run", "true", "two:3");
	assert_value(config, "targets", "exclude",
		     "({ command = \"a*\"; user = \"0\"; }, { unit = \"b.service\"; })", "one:3");
	assert_value(config, "targets", "include", "()", "default");
	assert_value(config, "metrics", "file", "\"/run/a.prom\"", "one:4");
	assert_value(config, "pages", "also", "(\"bound\", \"shared\")", "one:5");
	assert_value(config, "sampling", "event", "\"A:B\"", "one:6");
	assert_value(config, "", "min_run", "0.5", "three:1");
	assert_value(config, "verify", "control_percent", "0", "default");
	assert_value(config, "journal", "level", "\"decisions\"", "default");
}

TEST(a_name_that_stands_for_two_values_is_shown_as_written)
{
	static const char text[] = "threads: { policy = \"balance\"; };\n"
				   "parameters: { threads: { selection = \"dtas\"; }; };\n";
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	assert_int_equal(nm_config_parse("conf", text, strlen(text), &errors, &config), 0);
	assert_value(config, "threads", "selection", "\"dtas\"", "conf:2");
}

TEST(long_lists_are_cut)
{
	char text[8192] = "targets: { exclude = (";
	struct nm_config_value value;
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	for (unsigned i = 0; i < 100; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       "%s{ command = \"program%u\"; }", i > 0 ? ", " : "", i);
	(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "); };");
	assert_int_equal(nm_config_parse("conf", text, strlen(text), &errors, &config), 0);
	assert_true(find_value(config, "targets", "exclude", &value));
	assert_true(strlen(value.text) < sizeof(value.text));
}

TEST(defaults_have_no_place)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	assert_int_equal(nm_config_default(&config), 0);
	assert_value(config, "threads", "policy", "\"auto\"", "default");
}

RUN_TESTS()

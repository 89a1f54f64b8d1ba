/* SPDX-License-Identifier: MIT */
/* Warnings for a configuration: each row contains the text of a file, and the whole message; a row
 * without one is accepted silently. */
#include "../support/test.h"

#include "config_cases.h"

struct scene {
	const char *text, *message;
};

#define INCLUDE(pattern) "targets: {\n include = ( { " pattern " } ); };"
#define EXCLUDE(pattern) "targets: {\n exclude = ( { " pattern " } ); };"

/* Valid, and without effect. */
static const struct scene warnings[] = {
	{INCLUDE("command = \"post[gres\";"),
	 "conf:2: warning: targets.include.command: this pattern matches only names that contain "
	 "[, because its [ is never closed"},
	{EXCLUDE("unit = \"a[]*\";"),
	 "conf:2: warning: targets.exclude.unit: this pattern matches only names that contain [, "
	 "because its [ is never closed"},
	{INCLUDE("command = \"db\\\\\";"),
	 "conf:2: warning: targets.include.command: this pattern matches nothing, because it ends "
	 "in a backslash"},
	{INCLUDE("command = \"*0123456789[a-z]12345\";"),
	 "conf:2: warning: targets.include.command: this pattern matches nothing, because the "
	 "kernel truncates names of commands to 15 bytes"},
	{INCLUDE("command = \"post[gr]es\"; slice = \"[!]]*\";"), NULL},
	{INCLUDE("command = \"\\\\[*\\\\*[[:alpha:]]1234567890*12\";"), NULL},
	{INCLUDE("unit = \"*0123456789012345*\";"), NULL},
	{"targets: { include = ( { command = \"a\"; },\n{ command = \"b\"; } );\n"
	 "exclude = ( { command = \"b\"; } ); };",
	 "conf:2: warning: targets.include: { command = \"b\"; } has no effect: targets.exclude "
	 "contains it, too, and takes precedence"},
	{"targets: { include = ( { command = \"a\"; } );\n"
	 "exclude = ( { command = \"a\"; user = \"0\"; } ); };",
	 NULL},
	{"parameters: { threads: {\nselection = \"dtas\"; }; };",
	 "conf:2: warning: threads.selection: \"dtas\" has no effect with threads.policy = "
	 "\"auto\", only with \"balance\""},
	{"threads: { policy = \"balance-paper\"; };\n"
	 "parameters: { threads: { selection = \"dtas\"; }; };",
	 NULL},
	{"pages: {\nnuma_balancing = \"manage\"; };",
	 "conf:2: warning: pages.numa_balancing: \"manage\" has no effect with pages.policy = "
	 "\"auto\", only with \"exclusivity\""},
	{"pages: { policy = \"exclusivity\"; numa_balancing = \"manage\"; };", NULL},
};

TEST(test_what_has_no_effect_is_a_warning)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(warnings); i++) {
		const struct scene *scene = &warnings[i];
		nm_auto(nm_config_freep) struct nm_config *config = accept(scene->text);
		const char *found =
			config->warnings.count == 1 ? config->warnings.text[0] : "not one warning";
		if (!scene->message && config->warnings.count > 0)
			fail_msg("%s\nis not expected for: %s", found, scene->text);
		if (scene->message && strcmp(found, scene->message) != 0)
			fail_msg("%s\nis answered with: %s", scene->text, found);
	}
}

/* A setting that is a parameter and has a group, and a parameter in a group without parameters. */
READINGS(test_what_is_wrong_is_answered_with_what_to_write,
	 {"threads: {\nselection = 'dtas'; };",
	  "conf:2: threads.selection: is a parameter: write parameters: { threads: { "
	  "selection = …; }; };"},
	 {"parameters: { pages: { keep_free_percent = 3; }; };",
	  "conf:1: pages.keep_free_percent: is a setting: write it outside of the parameters"})

/* The nearest name of a parameter, and a group that there is not. */
READINGS(test_the_file_of_parameters,
	 {"", "parameters:1: thraeds: unknown parameter; the nearest known one is threads",
	  .parameters = "thraeds: { selection = 'dtas'; };"})

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* The valid values of each setting, and the messages for others. */
#include "../support/test.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../src/config/settings.h"
#include "config_cases.h"
#include "numa-migrd/config.h"

/* ---- defaults and policies ---- */

/* test_manpage shows their values. */
TEST(test_defaults)
{
	nm_auto(nm_config_freep) struct nm_config *plain = NULL;
	nm_auto(nm_config_freep) struct nm_config *empty = accept("");

	assert_int_equal(nm_config_default(&plain), 0);
	assert_memory_equal(&plain->rules, &nm_rules_own, sizeof(plain->rules));
	same_settings(plain, empty);
}

/* A policy with "-paper" selects the published rules, wherever it stands; explicit settings
 * override its defaults. */
TEST(test_policies_of_the_papers)
{
	static const struct {
		const char *text;
		enum nm_thread_policy policy;
	} papers[] = {{"lbma-paper", NM_POLICY_LBMA},
		      {"imar2-paper", NM_POLICY_IMAR2},
		      {"kmaf-paper", NM_POLICY_KMAF},
		      {"balance-paper", NM_POLICY_BALANCE}};

	for (size_t i = 0; i < NM_ARRAY_SIZE(papers); i++) {
		char text[128];
		(void)snprintf(text, sizeof(text), "threads: { policy = \"%s\"; };",
			       papers[i].text);
		nm_auto(nm_config_freep) struct nm_config *config = accept(text);
		assert_int_equal(config->threads.policy, papers[i].policy);
		assert_string_equal(nm_config_policy_name(config), papers[i].text);
		assert_memory_equal(&config->rules, &nm_rules_paper, sizeof(config->rules));
		assert_true(config->targets.min_cpu_percent == 0);
		assert_int_equal(config->targets.min_rss_mb, 1);
	}
	nm_auto(nm_config_freep) struct nm_config *mixed =
		accept("targets: { min_cpu_percent = 3; };\n"
		       "threads: { policy = \"imar2-paper\"; };");
	assert_true(mixed->targets.min_cpu_percent == 3);
	nm_auto(nm_config_freep) struct nm_config *own =
		accept("threads: { policy = \"imar2\"; };");
	assert_memory_equal(&own->rules, &nm_rules_own, sizeof(own->rules));
	assert_string_equal(nm_config_policy_name(own), "imar2");
}

/* The rules that no parameter sets. */
TEST(test_rules_of_the_papers)
{
	const struct nm_policy_rules *paper = &nm_rules_paper;

	assert_int_equal(paper->gate, NM_GATE_PAPER);
	assert_int_equal(paper->lottery, NM_LOTTERY_PAPER);
	assert_int_equal(paper->feedback, NM_FEEDBACK_GLOBAL);
	assert_true(paper->cross_owner_swap && !paper->rollback);
}

TEST(test_dtas)
{
	nm_auto(nm_config_freep) struct nm_config *dtas =
		accept("parameters: { threads: { selection = \"dtas\"; }; };");
	nm_auto(nm_config_freep) struct nm_config *other =
		accept("parameters: { threads: { selection = \"total_min\"; }; };");

	assert_true(dtas->threads.dtas);
	assert_int_equal(dtas->threads.selection, NM_SELECTION_TOTAL_MIN);
	assert_false(other->threads.dtas);
	assert_int_equal(other->threads.selection, NM_SELECTION_TOTAL_MIN);
}

TEST(test_names)
{
	assert_string_equal(nm_policy_name(NM_POLICY_NONE), "none");
	assert_string_equal(nm_policy_name(NM_POLICY_AUTO), "auto");
	assert_string_equal(nm_selection_name(NM_SELECTION_FIRST_FIT), "first_fit");
	assert_string_equal(nm_selection_name(NM_SELECTION_MOST_BENEFIT_PLUS), "most_benefit_plus");
	assert_string_equal(nm_performance_name(NM_PERFORMANCE_LATENCY), "latency");
}

/* ---- every row of the table ---- */

/* Other parameters that it requires at the ends of its range. */
static const char *company_of(const struct nm_setting *setting)
{
	static const char *const companies[][2] = {
		{"t_min_s", " t_max_s = 60;"},
		{"t_max_s", " t_min_s = 0.1;"},
		{"q3_better", " q3_equal = 0; q3_worse = 0;"},
		{"q3_equal", " q3_better = 1000; q3_worse = 0;"},
		{"q3_worse", " q3_better = 1000; q3_equal = 1000;"},
		{"balance_begin", " balance_end = -1000;"},
		{"balance_end", " balance_begin = 1000;"},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(companies); i++)
		if (strcmp(setting->name, companies[i][0]) == 0)
			return companies[i][1];
	return "";
}

static int parse_value(const struct nm_setting *setting, const char *value,
		       struct nm_config_errors *errors)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	nm_autofree char *text = NULL;
	if (setting->group[0]) {
		assert_true(asprintf(&text,
				     setting->parameter ? "parameters: { %s: { %s = %s; }; };"
							: "%s: { %s = %s; };",
				     setting->group, setting->name, value) > 0);
		return nm_config_parse("conf", text, strlen(text), errors, &config);
	}
	assert_true(asprintf(&text, "%s = %s;%s", setting->name, value, company_of(setting)) > 0);
	return parse_parameters("", text, errors, &config);
}

static void accept_value(const struct nm_setting *setting, const char *value)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	if (parse_value(setting, value, &errors) < 0)
		fail_msg("%s = %s is refused: %s", setting->name, value, errors.text[0]);
}

static void refuse_value(const struct nm_setting *setting, const char *value)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	char prefix[128];
	(void)snprintf(prefix, sizeof(prefix), "%s:1: %s%s%s: found ",
		       setting->group[0] ? "conf" : "parameters", setting->group,
		       setting->group[0] ? "." : "", setting->name);
	assert_int_equal(parse_value(setting, value, &errors), -EINVAL);
	if (strncmp(errors.text[0], prefix, strlen(prefix)) != 0)
		fail_msg("\"%s\" does not begin with \"%s\"", errors.text[0], prefix);
	assert_int_equal(errors.count, 1);
}

static void check_edges(const struct nm_setting *setting)
{
	bool count = setting->type == NM_SETTING_COUNT;
	char text[64];
	assert_true(setting->low < setting->high);
	(void)snprintf(text, sizeof(text), count ? "%.0f" : "%.17f", setting->low);
	accept_value(setting, text);
	(void)snprintf(text, sizeof(text), count ? "%.0f" : "%.17f", setting->high);
	accept_value(setting, text);
	(void)snprintf(text, sizeof(text), count ? "%.0f" : "%.17f",
		       count ? setting->low - 1 : nextafter(setting->low, -INFINITY) - 1e-9);
	refuse_value(setting, text);
	(void)snprintf(text, sizeof(text), count ? "%.0f" : "%.17f",
		       count ? setting->high + 1 : nextafter(setting->high, INFINITY));
	refuse_value(setting, text);
	refuse_value(setting, "true");
	refuse_value(setting, "\"1\"");
	if (count)
		refuse_value(setting, "1.0");
}

/* Some values require other settings, see test_config_combinations. */
static void check_choices(const struct nm_setting *setting)
{
	char text[64];
	for (unsigned i = 0; setting->choices[i]; i++) {
		nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
		(void)snprintf(text, sizeof(text), "\"%s\"", setting->choices[i]);
		int r = parse_value(setting, text, &errors);
		assert_true(r == 0 || strstr(errors.text[0], "allowed: only "));
	}
	refuse_value(setting, "\"\"");
	refuse_value(setting, "\"AUTO\"");
	refuse_value(setting, "1");
}

static void check_texts(const struct nm_setting *setting, const char *const *good,
			const char *const *bad)
{
	char text[64];
	for (; *good; good++) {
		(void)snprintf(text, sizeof(text), "\"%s\"", *good);
		accept_value(setting, text);
	}
	for (; *bad; bad++) {
		(void)snprintf(text, sizeof(text), "\"%s\"", *bad);
		refuse_value(setting, text);
	}
	refuse_value(setting, "1");
}

static void check_event(const struct nm_setting *setting)
{
	static const char *const good[] = {"",
					   "A",
					   "MEM_LOAD_RETIRED:L3_MISS",
					   "skx::A.B:u=1:0x81",
					   "numalab/period=97/",
					   "ibs_op/cnt_ctl,l3missonly=1/",
					   "cpu/mem-loads,ldlat=0x1e/",
					   "x//",
					   NULL};
	static const char *const bad[] = {
		" ",	     "A B",   "A,B",	  "A\\n",	 "A/B",
		"A\xc3\xa4", "A-B",   "$(A)",	  "A%s",	 "A:::::::::::::::::",
		"/",	     "//",    "numalab/", "/period=97/", "A.=.=.=.=.=.=.=.=.",
		"a/b/c/",    "a/b/c", "../x=1/",  "a b/x=1/",	 NULL};
	char text[NM_CONFIG_EVENT_BYTES + 3] = "\"";

	check_texts(setting, good, bad);
	memset(text + 1, 'A', NM_CONFIG_EVENT_BYTES);
	text[NM_CONFIG_EVENT_BYTES + 1] = '"';
	refuse_value(setting, text);
	text[NM_CONFIG_EVENT_BYTES] = '"';
	text[NM_CONFIG_EVENT_BYTES + 1] = '\0';
	accept_value(setting, text);
}

static void check_path(const struct nm_setting *setting)
{
	static const char *const good[] = {"", "/a.prom", "/a b/c.prom", NULL};
	static const char *const bad[] = {"a.prom", "/a",	  "/a/", "/a.prom/",
					  "/.prom", "/a\\n.prom", NULL};
	check_texts(setting, good, bad);
}

static void check_flags(const struct nm_setting *setting)
{
	accept_value(setting, "( )");
	accept_value(setting, "[ \"bound\" ]");
	refuse_value(setting, "\"bound\"");
	refuse_value(setting, "( \"nonesuch\" )");
	refuse_value(setting, "( \"bound\", 1 )");
}

static void check_setting(const struct nm_setting *setting)
{
	switch (setting->type) {
	case NM_SETTING_BOOL:
		accept_value(setting, "true");
		refuse_value(setting, "1");
		break;
	case NM_SETTING_COUNT:
	case NM_SETTING_REAL:
		check_edges(setting);
		break;
	case NM_SETTING_CHOICE:
		check_choices(setting);
		break;
	case NM_SETTING_FLAGS:
		check_flags(setting);
		break;
	case NM_SETTING_EVENT:
		check_event(setting);
		break;
	case NM_SETTING_PATH:
		check_path(setting);
		break;
	case NM_SETTING_TARGETS:
		accept_value(setting, "( )");
		refuse_value(setting, "\"x\"");
	}
}

TEST(test_every_setting)
{
	for (size_t i = 0; i < nm_setting_count; i++)
		check_setting(&nm_settings[i]);
	for (size_t i = 0; i < nm_parameter_count; i++)
		check_setting(&nm_parameters[i]);
}

/* A setting must change its own field only: the offsets in the table are right. */
TEST(test_every_setting_lands_in_its_field)
{
	nm_auto(nm_config_freep) struct nm_config *config = accept_parameters(
		"general: { dry_run = true; };\n"
		"targets: { cgroup_attribute = \"only\"; min_rss_mb = 7; };\n"
		"sampling: { source = \"event\"; overhead_percent = 99.5; };\n"
		"threads: { policy = \"none\"; };\n"
		"parameters: { general: { interval_s = 2; }; sampling: { event = \"A:B\"; };\n"
		"threads: { performance = \"latency\"; }; verify: { tolerance_percent = 4; };\n"
		"pages: { also = ( \"bound\", \"isolated\" ); }; };\n"
		"pages: { policy = \"exclusivity\"; numa_balancing = \"manage\";\n"
		"  keep_free_percent = 10; };\n"
		"journal: { level = \"error\"; }; metrics: { file = \"/x.prom\"; };\n",
		"n = 17; q1 = 1.5; q2 = 3; cooldown = 9; moves_per_interval = 5; page_decay_s = "
		"4;");

	assert_true(config->general.interval_s == 2);
	assert_true(config->general.dry_run);
	assert_int_equal(config->targets.cgroup_attribute, NM_ATTRIBUTE_ONLY);
	assert_int_equal(config->targets.min_rss_mb, 7);
	assert_int_equal(config->sampling.source, NM_SOURCE_EVENT);
	assert_true(config->sampling.overhead_percent == 99.5);
	assert_string_equal(config->sampling.event, "A:B");
	assert_string_equal(config->sampling.event_place, "conf:5");
	assert_string_equal(config->sampling.pmu, "");
	assert_int_equal(config->threads.policy, NM_POLICY_NONE);
	assert_int_equal(config->threads.performance, NM_PERFORMANCE_LATENCY);
	assert_true(config->verify.tolerance_percent == 4);
	assert_int_equal(config->pages.policy, NM_PAGES_EXCLUSIVITY);
	assert_int_equal(config->pages.numa_balancing, NM_BALANCING_MANAGE);
	assert_int_equal(config->pages.also, NM_ALSO_BOUND | NM_ALSO_ISOLATED);
	assert_true(config->pages.keep_free_percent == 10);
	assert_int_equal(config->journal.level, NM_JOURNAL_ERROR);
	assert_string_equal(config->metrics.file, "/x.prom");
	assert_int_equal(config->rules.n, 17);
	assert_true(config->rules.q1 == 1.5 && config->rules.q2 == 3);
	assert_int_equal(config->rules.cooldown, 9);
	assert_int_equal(config->rules.moves_per_interval, 5);
	assert_true(config->rules.page_decay_s == 4);
	assert_int_equal(config->rules.min_samples, 10);
}

/* ---- several files ---- */

static struct nm_config *accept_files(const char *first, const char *second,
				      struct nm_config_errors *errors)
{
	const struct nm_config_text texts[] = {{"one", first, strlen(first)},
					       {"two", second, strlen(second)}};
	struct nm_config *config = NULL;
	int r = nm_config_parse_all(texts, 2, NULL, errors, &config);
	assert_int_equal(r, errors->count ? -EINVAL : 0);
	return config;
}

/* A value in a later file wins, a list replaces the earlier one, and the others stay. */
TEST(test_a_later_file_wins)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = accept_files(
		"targets: { include = ( { command = \"a\"; }, { command = \"b\"; } );\n"
		"  exclude = ( { command = \"x\"; } ); };\n"
		"threads: { policy = \"kmaf\"; };\n"
		"parameters: { threads: { selection = \"first_fit\"; }; pages: { also = ( "
		"\"bound\" ); }; };",
		"targets: { include = ( { command = \"c\"; } ); };\n"
		"threads: { policy = \"imar2-paper\"; }; parameters: { pages: { also = ( "
		"\"shared\" ); }; };",
		&errors);

	assert_int_equal(errors.count, 0);
	assert_int_equal(config->targets.include.count, 1);
	assert_string_equal(config->targets.include.items[0].command, "c");
	assert_int_equal(config->targets.exclude.count, 1);
	assert_string_equal(nm_config_policy_name(config), "imar2-paper");
	assert_int_equal(config->threads.selection, NM_SELECTION_FIRST_FIT);
	assert_int_equal(config->pages.also, NM_ALSO_SHARED);
}

TEST(test_errors_name_their_file)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};

	assert_null(accept_files("parameters: { general: { interval_s = 0; }; };",
				 "\nsampling: { source = \"event\"; };", &errors));
	assert_int_equal(errors.count, 2);
	assert_string_equal(errors.text[0],
			    "one:1: general.interval_s: found 0, allowed: a number from 0.1 to 60");
	assert_string_equal(errors.text[1],
			    "two:2: sampling.source: found \"event\", allowed: only "
			    "if sampling.event is set");
}

/* ---- wrong types, unknown names, several at once ---- */

TEST(test_wrong_types)
{
	refuse("pages: { max_mb_per_s = \"8\"; };", "conf:1: pages.max_mb_per_s: found \"8\", "
						    "allowed: a whole number from 1 to 1000000");
	refuse("pages: { max_mb_per_s = ( 1, 2 ); };", "conf:1: pages.max_mb_per_s: found a list, "
						       "allowed: a whole number from 1 to 1000000");
	refuse("parameters: { general: { interval_s = { }; }; };",
	       "conf:1: general.interval_s: found an empty group, allowed: a number from 0.1 to "
	       "60");
	refuse("general: { dry_run = 1; };",
	       "conf:1: general.dry_run: found 1, allowed: true or false");
	refuse("parameters: { sampling: { inject = 5; }; };",
	       "conf:1: sampling.inject: found 5, allowed: \"none\" or \"numa_balancing\"");
	/* Of earlier versions. */
	refuse("parameters: { sampling: {\n inject = \"soft_dirty_unsafe\"; }; };",
	       "conf:2: sampling.inject: found \"soft_dirty_unsafe\", allowed: "
	       "\"none\" or \"numa_balancing\"");
	refuse("threads = 5;", "conf:1: threads: found 5, allowed: a group of settings in { }");
	refuse("parameters: { pages: { also = true; }; };",
	       "conf:1: pages.also: found true, allowed: a list ( ) of "
	       "\"bound\", \"shared\" or \"isolated\"");
	refuse_parameters("", "n = \"8\";",
			  "parameters:1: n: found \"8\", allowed: a whole number from 1 to 1024");
}

TEST(test_unknown_names)
{
	refuse("threads: { polcy = \"auto\"; };",
	       "conf:1: threads.polcy: unknown setting; the nearest known one is threads.policy");
	refuse("thread: { };", "conf:1: thread: unknown setting; the nearest known one is threads");
	refuse("dry_run = true;",
	       "conf:1: dry_run: unknown setting; the nearest known one is general.dry_run");
	refuse("parameters: { general: { selection = \"dtas\"; }; };",
	       "conf:1: general.selection: unknown parameter; the nearest known one is "
	       "threads.selection");
	refuse_parameters(
		"", "delta = 1;",
		"parameters:1: delta: unknown parameter; the nearest known one is delta_r");
	refuse_parameters("", "x: { };",
			  "parameters:1: x: unknown parameter; the nearest known one is n");
}

TEST(test_a_parameter_is_no_setting)
{
	refuse("threads: { n = 3; };", "conf:1: n: is a parameter: write parameters: { n = …; };");
	refuse("interval_s = 2;", "conf:1: general.interval_s: is a parameter: write parameters: { "
				  "general: { interval_s = …; }; };");
	refuse_parameters("", "dry_run = true;",
			  "parameters:1: general.dry_run: is a setting: write it outside of the "
			  "parameters");
	refuse_parameters("", "parameters: { n = 3; };",
			  "parameters:1: parameters: write the contents of this group without it");
	refuse("\npage_decay_s = 3;",
	       "conf:2: page_decay_s: is a parameter: write parameters: { page_decay_s = …; };");
	refuse("sampling: {\ninject = \"none\"; };",
	       "conf:2: sampling.inject: is a parameter: write parameters: { sampling: { inject = "
	       "…; }; };");
	refuse("parameters: { threads: { n = 3; }; };",
	       "conf:1: n: is a parameter: write parameters: { n = …; };");
	refuse("parameters: { threads: { policy = \"auto\"; }; };",
	       "conf:1: threads.policy: is a setting: write it outside of the parameters");
	refuse_parameters("", "\nthreads: { policy = \"auto\"; };",
			  "parameters:2: threads.policy: is a setting: write it outside of the "
			  "parameters");
	refuse("parameters = 5;",
	       "conf:1: parameters: found 5, allowed: a group of parameters in { }");
}

/* The configuration, a drop-in and --parameters, of which the last one wins. */
TEST(test_parameters_stand_in_three_places)
{
	nm_auto(nm_config_freep) struct nm_config *config = accept_parameters(
		"parameters: { n = 5; q1 = 3; threads: { selection = \"total_min\"; }; };",
		"n = 6; threads: { performance = \"latency\"; };");

	assert_int_equal(config->rules.n, 6);
	assert_true(config->rules.q1 == 3);
	assert_int_equal(config->threads.selection, NM_SELECTION_TOTAL_MIN);
	assert_int_equal(config->threads.performance, NM_PERFORMANCE_LATENCY);
}

TEST(test_several_at_once)
{
	static const char text[] = "general:\n"
				   "{\n"
				   "	dry_run = 1;\n"
				   "	dryrun = true;\n"
				   "};\n"
				   "\n"
				   "pages = { max_mb_per_s = 5000000; policy = \"best\";\n"
				   "	numa_balancing = \"no\"; };\n";
	static const char *const prefixes[] = {
		"conf:3: general.dry_run: found 1, allowed: true or false",
		"conf:4: general.dryrun: unknown setting; the nearest known one is general.dry_run",
		("conf:7: pages.max_mb_per_s: found 5000000, allowed: a whole number from 1 to "
		 "1000000"),
		"conf:7: pages.policy: found \"best\", allowed: ",
		"conf:8: pages.numa_balancing: found \"no\", allowed: ",
	};
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};

	refuse_bytes(TEXT(text), &errors);
	assert_int_equal(errors.count, NM_ARRAY_SIZE(prefixes));
	for (size_t i = 0; i < errors.count; i++)
		assert_memory_equal(errors.text[i], prefixes[i], strlen(prefixes[i]));
}

TEST(test_too_many_errors)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_autofree char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	for (int i = 0; i < 1000; i++)
		(void)fprintf(out, "x%d = 1;\n", i);
	assert_int_equal(fclose(out), 0);
	refuse_bytes(text, size, &errors);
	assert_int_equal(errors.count, 101);
	assert_string_equal(errors.text[100], "conf: and 900 more errors");
}

/* SECURITY: configuration */
TEST(test_hostile_text_is_escaped)
{
	refuse_prefix(TEXT("threads: { policy = \"a\\x1b\\x9b\"; };"),
		      "conf:1: threads.policy: found \"a\\x1b\\x9b\", allowed: ");
}

/* ---- targets ---- */

TEST(test_targets)
{
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("targets: {\n"
		       "  include = ( { command = \"postgres\"; user = \"root\"; },\n"
		       "              { unit = \"db-*.service\"; }, { user = \"4294967294\"; } );\n"
		       "  exclude = [ ];\n"
		       "};");
	const struct nm_target *items = config->targets.include.items;

	assert_int_equal(config->targets.include.count, 3);
	assert_string_equal(items[0].command, "postgres");
	assert_null(items[0].unit);
	assert_string_equal(items[0].user, "root");
	assert_true(items[0].has_uid);
	assert_int_equal(items[0].uid, 0);
	assert_string_equal(items[1].unit, "db-*.service");
	assert_false(items[1].has_uid);
	assert_null(items[1].command);
	assert_true(items[2].has_uid);
	assert_true(items[2].uid == 4294967294);
	assert_int_equal(config->targets.exclude.count, 0);
}

TEST(test_target_users)
{
	static const char allowed[] = "allowed: name or number of an existing user";
	static const char *const users[] = {"no-such-user-here", "4294967295", "99999999999", "-1"};

	for (size_t i = 0; i < NM_ARRAY_SIZE(users); i++) {
		char text[128], message[256];
		(void)snprintf(text, sizeof(text),
			       "targets: { include = ( { user = \"%s\"; } ); };", users[i]);
		(void)snprintf(message, sizeof(message),
			       "conf:1: targets.include.user: found \"%s\", %s", users[i], allowed);
		refuse(text, message);
	}
	refuse("targets: { include = ( { user = 0; } ); };",
	       "conf:1: targets.include.user: found 0, allowed: the same number in quotes");
}

TEST(test_target_mistakes)
{
	static const char group[] = "allowed: a group such as { command = \"x*\"; } "
				    "with one or more of command, unit, slice, cgroup, user";
	char message[256];

	(void)snprintf(message, sizeof(message), "conf:1: targets.include: found \"postgres\", %s",
		       group);
	refuse("targets: { include = ( \"postgres\" ); };", message);
	(void)snprintf(message, sizeof(message),
		       "conf:1: targets.exclude: found an empty group, %s", group);
	refuse("targets: { exclude = ( { } ); };", message);
	refuse("targets: { exclude = ( { comand = \"x\"; } ); };",
	       "conf:1: targets.exclude.comand: unknown setting; known are command, unit, slice, "
	       "cgroup, "
	       "user");
	refuse("targets: { exclude = ( { command = \"\"; } ); };",
	       "conf:1: targets.exclude.command: found \"\", allowed: a string that is not empty");
	refuse("targets: { exclude = (\n{ command = 5; } ); };",
	       "conf:2: targets.exclude.command: found 5, allowed: the same number in quotes");
}

TEST(test_target_command_length)
{
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("targets: { include = ( { command = \"123456789012345\"; },\n"
		       "                       { command = \"a-long-pattern-for-it*\"; } ); };");

	assert_int_equal(config->targets.include.count, 2);
	refuse("targets: { include = ( { command = \"1234567890123456\"; } ); };",
	       "conf:1: targets.include.command: found \"1234567890123456\", allowed: at most 15 "
	       "bytes, "
	       "to which the kernel truncates names of commands, or a pattern with *");
}

RUN_TESTS()

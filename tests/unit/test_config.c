/* SPDX-License-Identifier: MIT */
/* The valid values of each setting, and the messages for others. */
#include "../support/test.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>

#include "../../src/config/settings.h"
#include "config_cases.h"

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
		const char *name;
		enum nm_thread_policy policy;
		const struct nm_policy_rules *rules;
	} rows[] = {
		{"lbma-paper", NM_POLICY_LBMA, &nm_rules_paper},
		{"imar2-paper", NM_POLICY_IMAR2, &nm_rules_paper},
		{"kmaf-paper", NM_POLICY_KMAF, &nm_rules_paper},
		{"balance-paper", NM_POLICY_BALANCE, &nm_rules_paper},
		{"imar2", NM_POLICY_IMAR2, &nm_rules_own},
	};

	EACH_ROW(row, rows)
	{
		const bool paper = row->rules == &nm_rules_paper;
		nm_autofree char *text = NULL;
		nm_must_do(asprintf(&text, "threads: { policy = \"%s\"; };", row->name));
		nm_auto(nm_config_freep) struct nm_config *config = accept(text);
		CHECK(row, config->threads.policy == row->policy);
		CHECK(row, strcmp(nm_config_policy_name(config), row->name) == 0);
		CHECK(row, memcmp(&config->rules, row->rules, sizeof(config->rules)) == 0);
		CHECK(row, config->targets.min_cpu_percent == (paper ? 0 : 10));
		CHECK(row, config->targets.min_rss_mb == (paper ? 1 : 0));
	}
}

READINGS(test_a_setting_overrides_a_paper,
	 {"targets: { min_cpu_percent = 3; }; threads: { policy = 'imar2-paper'; };",
	  "targets.min_cpu_percent = 3; threads.policy = 'imar2-paper'"})

/* The rules that no parameter sets. */
TEST(test_rules_of_the_papers)
{
	const struct nm_policy_rules *paper = &nm_rules_paper;

	assert_int_equal(paper->gate, NM_GATE_PAPER);
	assert_int_equal(paper->lottery, NM_LOTTERY_PAPER);
	assert_int_equal(paper->feedback, NM_FEEDBACK_GLOBAL);
	assert_true(paper->cross_owner_swap && !paper->rollback);
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

/* Some choices require other settings, see test_config_combinations. */
static void check_value(const struct nm_setting *setting, const char *value, bool valid)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	char text[512], refused[128];
	int r;
	if (setting->group[0]) {
		(void)snprintf(text, sizeof(text), "%s%s: { %s = %s; };%s",
			       setting->parameter ? "parameters: { " : "", setting->group,
			       setting->name, value, setting->parameter ? " };" : "");
		(void)snprintf(refused, sizeof(refused), "conf:1: %s.%s: found ", setting->group,
			       setting->name);
		r = nm_config_parse("conf", text, strlen(text), &errors, &config);
	} else {
		(void)snprintf(text, sizeof(text), "%s = %s;%s", setting->name, value,
			       company_of(setting));
		(void)snprintf(refused, sizeof(refused), "parameters:1: %s: found ", setting->name);
		r = parse_parameters("", text, &errors, &config);
	}
	const char *error = errors.count > 0 ? errors.text[0] : "";
	if (valid ? r != 0 && !strstr(error, "allowed: only ")
		  : r != -EINVAL || errors.count != 1 ||
			    strncmp(error, refused, strlen(refused)) != 0)
		fail_msg("%s is to be %s: %d: %s", text, valid ? "valid" : "refused", r, error);
}

static void check_edges(const struct nm_setting *setting)
{
	const bool count = setting->type == NM_SETTING_COUNT;
	const double low = setting->low, high = setting->high;
	const double edges[] = {low, high, count ? low - 1 : nextafter(low, -INFINITY) - 1e-9,
				count ? high + 1 : nextafter(high, INFINITY)};
	char text[64];
	assert_true(low < high);
	for (size_t i = 0; i < NM_ARRAY_SIZE(edges); i++) {
		(void)snprintf(text, sizeof(text), count ? "%.0f" : "%.17f", edges[i]);
		check_value(setting, text, i < 2);
	}
}

#define A16 "AAAAAAAAAAAAAAAA"
#define A127 A16 A16 A16 A16 A16 A16 A16 "AAAAAAAAAAAAAAA"

/* By type, with | between them. A ' stands for ". */
static const struct {
	const char *valid, *refused;
} values[] = {
	[NM_SETTING_BOOL] = {"true", "1"},
	[NM_SETTING_COUNT] = {NULL, "true|'1'|1.0"},
	[NM_SETTING_REAL] = {NULL, "true|'1'"},
	[NM_SETTING_CHOICE] = {NULL, "''|'AUTO'|1"},
	[NM_SETTING_FLAGS] = {"( )|[ 'bound' ]", "'bound'|( 'nonesuch' )|( 'bound', 1 )"},
	[NM_SETTING_EVENT] =
		{"''|'A'|'MEM_LOAD_RETIRED:L3_MISS'|'skx::A.B:u=1:0x81'|'numalab/period=97/'|"
		 "'ibs_op/cnt_ctl,l3missonly=1/'|'cpu/mem-loads,ldlat=0x1e/'|'x//'|'" A127 "'",
		 "1|' '|'A "
		 "B'|'A,B'|'A\\n'|'A/B'|'A\xc3\xa4'|'A-B'|'$(A)'|'A%s'|'/'|'//'|'numalab/'|"
		 "'A:::::::::::::::::'|'/period=97/'|'A.=.=.=.=.=.=.=.=.'|'a/b/c/'|'a/b/c'|"
		 "'../x=1/'|'a b/x=1/'|'" A127 "A'"},
	[NM_SETTING_PATH] = {"''|'/a.prom'|'/a b/c.prom'",
			     "1|'a.prom'|'/a'|'/a/'|'/a.prom/'|'/.prom'|'/a\\n.prom'"},
	[NM_SETTING_TARGETS] = {"( )", "'x'"},
};

static void check_values(const struct nm_setting *setting, const char *list, bool valid)
{
	nm_autofree char *copy = list ? nm_must(strdup(with_quotes(list, strlen(list)))) : NULL;
	for (char *rest = copy; rest;)
		check_value(setting, strsep(&rest, "|"), valid);
}

static void check_setting(const struct nm_setting *setting)
{
	check_values(setting, values[setting->type].valid, true);
	check_values(setting, values[setting->type].refused, false);
	if (setting->type == NM_SETTING_COUNT || setting->type == NM_SETTING_REAL)
		check_edges(setting);
	for (unsigned i = 0; setting->type == NM_SETTING_CHOICE && setting->choices[i]; i++) {
		char text[64];
		(void)snprintf(text, sizeof(text), "\"%s\"", setting->choices[i]);
		check_value(setting, text, true);
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
	nm_auto(nm_config_freep) struct nm_config *found = accept_parameters(
		"general: { dry_run = true; };\n"
		"targets: { cgroup_attribute = \"only\"; min_rss_mb = 7; };\n"
		"sampling: { source = \"event\"; overhead_percent = 99.5; };\n"
		"threads: { policy = \"none\"; };\n"
		"parameters: { general: { interval_s = 2; }; sampling: { event = \"A:B\"; };\n"
		"  threads: { performance = \"latency\"; selection = \"dtas\"; };\n"
		"  verify: { tolerance_percent = 4; };\n"
		"  pages: { also = ( \"bound\", \"isolated\" ); }; };\n"
		"pages: { policy = \"exclusivity\"; numa_balancing = \"manage\";\n"
		"  keep_free_percent = 10; };\n"
		"journal: { level = \"error\"; }; metrics: { file = \"/x.prom\"; };\n",
		"n = 17; q1 = 1.5; q2 = 3; cooldown = 9; moves_per_interval = 5; page_decay_s = "
		"4;");
	static struct nm_config expected = {
		.general = {.interval_s = 2, .dry_run = true},
		.targets = {.cgroup_attribute = NM_ATTRIBUTE_ONLY,
			    .min_cpu_percent = 10,
			    .min_rss_mb = 7},
		.sampling = {NM_SOURCE_EVENT, NM_INJECT_NONE, 99.5, "", "A:B", "conf:5"},
		.threads = {NM_POLICY_NONE, NM_PERFORMANCE_LATENCY, NM_SELECTION_TOTAL_MIN, true},
		.verify = {.control_percent = 5, .tolerance_percent = 4},
		.pages = {NM_PAGES_EXCLUSIVITY, NM_BALANCING_MANAGE, .max_mb_per_s = 1024,
			  .keep_free_percent = 10, .also = NM_ALSO_BOUND | NM_ALSO_ISOLATED},
		.journal = {NM_JOURNAL_ERROR},
		.metrics = {"/x.prom"},
	};

	expected.rules = nm_rules_own;
	expected.rules.n = 17;
	expected.rules.q1 = 1.5;
	expected.rules.q2 = 3;
	expected.rules.cooldown = 9;
	expected.rules.moves_per_interval = 5;
	expected.rules.page_decay_s = 4;
	same_settings(found, &expected);
}

/* ---- several files ---- */

/* A value in a later file wins, a list replaces the earlier one, and the others stay. */
READINGS(
	test_a_later_file_wins,
	{"targets: { include = ( { command = 'a'; }, { command = 'b'; } );\n"
	 "  exclude = ( { command = 'x'; } ); };\n"
	 "threads: { policy = 'kmaf'; };\n"
	 "parameters: { threads: { selection = 'first_fit'; }; pages: { also = ( 'bound' ); }; };",
	 "targets.include = ({ command = 'c'; }); targets.exclude = ({ command = 'x'; }); "
	 "threads.policy = 'imar2-paper'; threads.selection = 'first_fit'; pages.also = ('shared')",
	 .next = "targets: { include = ( { command = 'c'; } ); };\n"
		 "threads: { policy = 'imar2-paper'; };\n"
		 "parameters: { pages: { also = ( 'shared' ); }; };"})

READINGS(test_errors_name_their_file,
	 {"parameters: { general: { interval_s = 0; }; };",
	  "conf:1: general.interval_s: found 0, allowed: a number from 0.1 to 60\n"
	  "next:2: sampling.source: found 'event', allowed: only if sampling.event is set",
	  .next = "\nsampling: { source = 'event'; };"})

/* ---- wrong types, unknown names, several at once ---- */

READINGS(
	test_wrong_types,
	{"pages: { max_mb_per_s = '8'; };",
	 "conf:1: pages.max_mb_per_s: found '8', allowed: a whole number from 1 to 1000000"},
	{"pages: { max_mb_per_s = ( 1, 2 ); };",
	 "conf:1: pages.max_mb_per_s: found a list, allowed: a whole number from 1 to 1000000"},
	{"parameters: { general: { interval_s = { }; }; };",
	 "conf:1: general.interval_s: found an empty group, allowed: a number from 0.1 to 60"},
	{"parameters: { general: { interval_s = 0.05; }; };",
	 "conf:1: general.interval_s: found 0.05, allowed: a number from 0.1 to 60"},
	{"general: { dry_run = 1; };", "conf:1: general.dry_run: found 1, allowed: true or false"},
	{"parameters: { sampling: { inject = 5; }; };",
	 "conf:1: sampling.inject: found 5, allowed: 'none' or 'numa_balancing'"},
	/* Of earlier versions. */
	{"parameters: { sampling: {\n inject = 'soft_dirty_unsafe'; }; };",
	 "conf:2: sampling.inject: found 'soft_dirty_unsafe', allowed: 'none' or 'numa_balancing'"},
	{"threads = 5;", "conf:1: threads: found 5, allowed: a group of settings in { }"},
	{"parameters: { pages: { also = true; }; };",
	 "conf:1: pages.also: found true, allowed: a list ( ) of 'bound', 'shared' or 'isolated'"},
	{"", "parameters:1: n: found '8', allowed: a whole number from 1 to 1024",
	 .parameters = "n = '8';"})

READINGS(test_unknown_names,
	 {"threads: { polcy = 'auto'; };",
	  "conf:1: threads.polcy: unknown setting; the nearest known one is threads.policy"},
	 {"thread: { };", "conf:1: thread: unknown setting; the nearest known one is threads"},
	 {"dry_run = true;",
	  "conf:1: dry_run: unknown setting; the nearest known one is general.dry_run"},
	 {"parameters: { general: { selection = 'dtas'; }; };",
	  "conf:1: general.selection: unknown parameter; the nearest known one is "
	  "threads.selection"},
	 {"", "parameters:1: delta: unknown parameter; the nearest known one is delta_r",
	  .parameters = "delta = 1;"},
	 {"", "parameters:1: x: unknown parameter; the nearest known one is n",
	  .parameters = "x: { };"})

READINGS(test_a_parameter_is_no_setting,
	 {"threads: { n = 3; };", "conf:1: n: is a parameter: write parameters: { n = …; };"},
	 {"interval_s = 2;", "conf:1: general.interval_s: is a parameter: write parameters: { "
			     "general: { interval_s = …; }; };"},
	 {"\npage_decay_s = 3;",
	  "conf:2: page_decay_s: is a parameter: write parameters: { page_decay_s = …; };"},
	 {"sampling: {\ninject = 'none'; };", "conf:2: sampling.inject: is a parameter: write "
					      "parameters: { sampling: { inject = …; }; };"},
	 {"parameters: { threads: { n = 3; }; };",
	  "conf:1: n: is a parameter: write parameters: { n = …; };"},
	 {"parameters: { threads: { policy = 'auto'; }; };",
	  "conf:1: threads.policy: is a setting: write it outside of the parameters"},
	 {"parameters = 5;", "conf:1: parameters: found 5, allowed: a group of parameters in { }"},
	 {"", "parameters:1: general.dry_run: is a setting: write it outside of the parameters",
	  .parameters = "dry_run = true;"},
	 {"", "parameters:1: parameters: write the contents of this group without it",
	  .parameters = "parameters: { n = 3; };"},
	 {"", "parameters:2: threads.policy: is a setting: write it outside of the parameters",
	  .parameters = "\nthreads: { policy = 'auto'; };"})

/* The configuration, a drop-in and --parameters, of which the last one wins. */
READINGS(test_parameters_stand_in_three_places,
	 {"parameters: { n = 5; q1 = 3; threads: { selection = 'total_min'; }; };",
	  "threads.performance = 'latency'; threads.selection = 'total_min'; n = 6; q1 = 3",
	  .parameters = "n = 6; threads: { performance = 'latency'; };"})

READINGS(test_several_at_once,
	 {"general:\n{\n"
	  "	dry_run = 1;\n"
	  "	dryrun = true;\n"
	  "};\n\n"
	  "pages = { max_mb_per_s = 5000000; policy = 'best';\n"
	  "	numa_balancing = 'no'; };\n",
	  "conf:3: general.dry_run: found 1, allowed: true or false\n"
	  "conf:4: general.dryrun: unknown setting; the nearest known one is general.dry_run\n"
	  "conf:7: pages.max_mb_per_s: found 5000000, allowed: a whole number from 1 to 1000000\n"
	  "conf:7: pages.policy: found 'best', allowed: 'none', 'watch', 'exclusivity' or 'auto'\n"
	  "conf:8: pages.numa_balancing: found 'no', allowed: 'yield', 'warn' or 'manage'"})

TEST(test_too_many_errors)
{
	static const unsigned counts[] = {100, 101, 1000};
	for (unsigned i = 0; i < NM_ARRAY_SIZE(counts); i++) {
		nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
		char text[16000] = "", more[64];
		for (unsigned k = 0, at = 0; k < counts[i]; k++)
			at += (unsigned)snprintf(text + at, sizeof(text) - at, "x%u = 1;\n", k);
		refuse_bytes(text, strlen(text), &errors);
		(void)snprintf(more, sizeof(more), "conf: and %u more errors", counts[i] - 100);
		assert_int_equal(errors.count, counts[i] > 100 ? 101 : 100);
		if (counts[i] > 100)
			assert_string_equal(errors.text[100], more);
	}
}

/* SECURITY: configuration */
READINGS(test_hostile_text_is_escaped,
	 {"journal: { level = 'a\\x1b\\x9b'; };",
	  "conf:1: journal.level: found 'a\\x1b\\x9b', allowed: 'error', 'notice', 'decisions' or "
	  "'debug'"})

/* ---- targets ---- */

READINGS(
	test_targets,
	{"targets: { exclude = [ ];\n  include = ( { command = 'postgres'; user = 'root'; },\n"
	 "    { unit = 'db-*.service'; }, { user = '4294967294'; } ); };",
	 "targets.include = ({ command = 'postgres'; user = 'root'; }, { unit = 'db-*.service'; }, "
	 "{ user = '4294967294'; }); targets.exclude = ()"})

TEST(test_users_are_resolved)
{
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("targets: { include = ( { user = \"root\"; }, { unit = \"u.service\"; },\n"
		       "  { user = \"4294967294\"; } ); };");
	const struct nm_target *items = config->targets.include.items;

	assert_true(items[0].has_uid && items[0].uid == 0);
	assert_false(items[1].has_uid);
	assert_true(items[2].has_uid && items[2].uid == 4294967294);
}

#define NO_USER(text)                                                                              \
	{                                                                                          \
		"targets: { include = ( { user = '" text "'; } ); };",                             \
			"conf:1: targets.include.user: found '" text                               \
			"', allowed: name or number of an existing user"                           \
	}

READINGS(test_target_users, NO_USER("no-such-user-here"), NO_USER("1a2"), NO_USER("4294967295"),
	 NO_USER("99999999999"), NO_USER("-1"),
	 {"targets: { include = ( { user = 0; } ); };",
	  "conf:1: targets.include.user: found 0, allowed: the same number in quotes"})

#define A_PATTERN                                                                                  \
	"allowed: a group such as { command = 'x*'; } with one or more of command, unit, slice, "  \
	"cgroup, user"

READINGS(
	test_target_mistakes,
	{"targets: { include = ( 'postgres' ); };",
	 "conf:1: targets.include: found 'postgres', " A_PATTERN},
	{"targets: { exclude = ( { } ); };",
	 "conf:1: targets.exclude: found an empty group, " A_PATTERN},
	{"targets: { exclude = ( { comand = 'x'; } ); };",
	 "conf:1: targets.exclude.comand: unknown setting; known are command, unit, slice, cgroup, "
	 "user"},
	{"targets: { exclude = ( { command = ''; } ); };",
	 "conf:1: targets.exclude.command: found '', allowed: a string that is not empty"},
	{"targets: { exclude = (\n{ command = 5; } ); };",
	 "conf:2: targets.exclude.command: found 5, allowed: the same number in quotes"})

READINGS(test_target_command_length,
	 {"targets: { include = ( { command = '123456789012345'; } ); };",
	  "targets.include = ({ command = '123456789012345'; })"},
	 {"targets: { include = ( { command = 'a-long-pattern-for-it*'; } ); };",
	  "targets.include = ({ command = 'a-long-pattern-for-it*'; })"},
	 {"targets: { include = ( { command = '1234567890123456'; } ); };",
	  "conf:1: targets.include.command: found '1234567890123456', allowed: at most 15 bytes, "
	  "to which the kernel truncates names of commands, or a pattern with *"})

RUN_TESTS()

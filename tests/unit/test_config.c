/* SPDX-License-Identifier: MIT */
/* The valid values of each setting, and the messages for others. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/config/table.h"
#include "config_cases.h"
#include "numa-migrd/config.h"

/* ---- defaults and profiles ---- */

static void check_defaults(const struct nm_config *config)
{
	assert_int_equal(config->profile, NM_PROFILE_SHIPPED);
	assert_true(config->general.interval_s == 1.0);
	assert_int_equal(config->general.seed, 0);
	assert_false(config->general.dry_run);
	assert_int_equal(config->targets.include.count, 0);
	assert_int_equal(config->targets.exclude.count, 0);
	assert_true(config->targets.min_cpu_percent == 10);
	assert_int_equal(config->targets.min_rss_mb, 0);
	assert_int_equal(config->sampling.source, NM_SOURCE_AUTO);
	assert_int_equal(config->sampling.inject, NM_INJECT_NONE);
	assert_false(config->sampling.accept_soft_dirty_risk);
	assert_true(config->sampling.history_s == 10);
	assert_true(config->sampling.soft_dirty_mb_s == 256);
	assert_true(config->sampling.overhead_percent == 1.0);
	assert_int_equal(config->sampling.ring_kb, 512);
	assert_int_equal(config->journal.level, NM_JOURNAL_DECISIONS);
	assert_int_equal(config->journal.rate_per_s, 20);
}

static void check_thread_defaults(const struct nm_config *config)
{
	assert_int_equal(config->threads.policy, NM_POLICY_AUTO);
	assert_int_equal(config->threads.gate, NM_GATE_BENEFIT);
	assert_true(config->threads.gate_margin == 0.05);
	assert_int_equal(config->threads.pin, NM_PIN_AUTO);
	assert_int_equal(config->threads.lottery, NM_LOTTERY_PROPORTIONAL);
	assert_int_equal(config->threads.n, 8);
	assert_true(config->threads.q1 == 2 && config->threads.q2 == 4);
	assert_true(config->threads.free_max == 0.05);
	assert_true(config->threads.min_run == 0.1);
	assert_int_equal(config->threads.min_samples, 10);
	assert_true(config->threads.home_share == 0.8);
	assert_true(config->threads.warmup_s == 3);
	assert_int_equal(config->threads.cooldown, 8);
	assert_int_equal(config->threads.moves_per_interval, 64);
	assert_true(config->threads.lease_expiry_s == 30);
	assert_true(config->threads.q1_sibling == 1);
	assert_true(config->threads.young_s == 3);
	assert_true(config->threads.quiet_s == 3);
	assert_false(config->threads.cross_owner_swap);
	assert_true(config->threads.rollback);
	assert_int_equal(config->threads.performance, NM_PERFORMANCE_PRODUCT);
	assert_true(config->threads.delta_r == 0.8 && config->threads.delta_g == 0.9);
	assert_true(config->threads.remote_below == 0.5);
	assert_true(config->threads.q3_better == 4 && config->threads.q3_equal == 2);
	assert_true(config->threads.q3_worse == 1 && config->threads.q4 == 3);
	assert_true(config->threads.record_band == 0.05);
	assert_int_equal(config->threads.record_age, 60);
	assert_int_equal(config->threads.feedback, NM_FEEDBACK_MOVED);
	assert_true(config->threads.noise_gate == 3);
	assert_true(config->threads.t_min_s == 1 && config->threads.t_max_s == 4);
}

static void check_page_defaults(const struct nm_config *config)
{
	assert_int_equal(config->pages.policy, NM_PAGES_AUTO);
	assert_int_equal(config->pages.max_tracked, 1000000);
	assert_true(config->pages.factor == 2);
	assert_int_equal(config->pages.min_accesses, 4);
	assert_true(config->pages.cooldown_s == 10 && config->pages.decay_s == 10);
	assert_int_equal(config->pages.sharing_window_s, 10);
	assert_true(config->pages.region_exclusivity == 0.8);
	assert_true(config->pages.imbalance == 0.35);
	assert_int_equal(config->pages.numa_balancing, NM_BALANCING_YIELD);
	assert_int_equal(config->pages.rollback_pages, 262144);
	assert_int_equal(config->pages.max_mb_per_s, 1024);
	assert_int_equal(config->pages.max_pages_per_interval, 65536);
	assert_true(config->pages.keep_free == 0.05 && config->pages.maps_budget_ms == 100);
	assert_int_equal(config->pages.maps_max_rss_gb, 256);
	assert_true(config->pages.call_limit_ms == 10);
	assert_false(config->pages.move_bound || config->pages.move_shared);
	assert_false(config->pages.isolated_cpus);
	assert_true(config->threads.mapping_s == 1);
	assert_true(config->threads.mapping_gain == 0.1);
}

static void check_balance_defaults(const struct nm_config *config)
{
	assert_int_equal(config->threads.selection, NM_SELECTION_EXCLUSIVITY);
	assert_true(config->threads.balance_begin == 0.5 && config->threads.balance_end == 0.25);
	assert_int_equal(config->threads.balance_persist, 2);
	assert_true(config->threads.balance_overload == 1);
	assert_true(config->threads.balance_min_gain == 0);
	assert_true(config->threads.balance_idle_max == 0.05);
	assert_false(config->threads.dtas);
}

static void test_defaults(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *plain = NULL;
	nm_auto(nm_config_freep) struct nm_config *empty = accept("");

	(void)state;
	assert_int_equal(nm_config_default(&plain), 0);
	check_defaults(plain);
	check_thread_defaults(plain);
	check_page_defaults(plain);
	check_balance_defaults(plain);
	same_settings(plain, empty);
}

static void test_paper_profile(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *paper = accept("profile = \"paper\";");

	(void)state;
	assert_int_equal(paper->profile, NM_PROFILE_PAPER);
	assert_true(paper->targets.min_cpu_percent == 0);
	assert_true(paper->threads.lease_expiry_s == 0);
	assert_true(paper->threads.q1_sibling == paper->threads.q1);
	assert_int_equal(paper->targets.min_rss_mb, 1);
	assert_true(paper->sampling.history_s == 0);
	assert_int_equal(paper->threads.policy, NM_POLICY_LBMA); /* no paper has policy auto */
	assert_int_equal(paper->threads.gate, NM_GATE_PAPER);
	assert_int_equal(paper->threads.pin, NM_PIN_CORE);
	assert_int_equal(paper->threads.lottery, NM_LOTTERY_PAPER);
	assert_int_equal(paper->threads.n, 1);
	assert_true(paper->threads.free_max == 0);
	assert_true(paper->threads.min_run == 0);
	assert_int_equal(paper->threads.min_samples, 1);
	assert_true(paper->threads.home_share == 0);
	assert_true(paper->threads.warmup_s == 0);
	assert_int_equal(paper->threads.cooldown, 0);
	assert_false(paper->threads.rollback);
	assert_true(paper->threads.remote_below == 0 && paper->threads.record_band == 0);
	assert_int_equal(paper->threads.record_age, 0);
	assert_int_equal(paper->threads.feedback, NM_FEEDBACK_GLOBAL);
	assert_true(paper->threads.noise_gate == 0);
	assert_true(paper->threads.delta_r == 0.8 && paper->threads.delta_g == 0.9);
	assert_true(paper->threads.q3_better == 4 && paper->threads.q3_equal == 2 &&
		    paper->threads.q3_worse == 1 && paper->threads.q4 == 3);
	assert_true(paper->threads.t_min_s == 1 && paper->threads.t_max_s == 4);
	assert_true(paper->threads.q1 == 2 && paper->threads.q2 == 4);
	assert_true(paper->general.interval_s == 1);
	assert_true(paper->pages.factor == 2 && paper->pages.min_accesses == 0);
	assert_true(paper->pages.cooldown_s == 0 && paper->pages.decay_s == 0);
	assert_int_equal(paper->pages.rollback_pages, 0);
	assert_int_equal(paper->pages.sharing_window_s, 120);
	assert_true(paper->threads.mapping_s == 0.1);
	assert_true(paper->threads.mapping_gain == 0);
	assert_true(paper->threads.balance_begin == -1000 && paper->threads.balance_end == -1000);
	assert_int_equal(paper->threads.balance_persist, 1);
	assert_true(paper->threads.balance_overload == 0 && paper->threads.balance_idle_max == 0);
	assert_true(paper->threads.balance_min_gain == NM_CONFIG_ANY_GAIN);
}

static void test_settings_win_over_profile(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *before =
		accept("threads: { n = 3; rollback = true; }; profile = \"paper\";");
	nm_auto(nm_config_freep) struct nm_config *after =
		accept("profile = \"paper\"; threads: { n = 3; rollback = true; };");

	(void)state;
	assert_int_equal(before->threads.n, 3);
	assert_true(before->threads.rollback);
	assert_int_equal(before->threads.cooldown, 0);
	same_settings(before, after);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(nm_pin_name(NM_PIN_AUTO), "auto");
	assert_string_equal(nm_pin_name(NM_PIN_NODE), "node");
	assert_string_equal(nm_pin_name(NM_PIN_CORE), "core");
	assert_string_equal(nm_pin_name(NM_PIN_NUDGE), "nudge");
	assert_string_equal(nm_policy_name(NM_POLICY_NONE), "none");
	assert_string_equal(nm_policy_name(NM_POLICY_LBMA), "lbma");
	assert_string_equal(nm_policy_name(NM_POLICY_IMAR2), "imar2");
	assert_string_equal(nm_policy_name(NM_POLICY_KMAF), "kmaf");
	assert_string_equal(nm_policy_name(NM_POLICY_BALANCE), "balance");
	assert_string_equal(nm_selection_name(NM_SELECTION_FIRST_FIT), "first_fit");
	assert_string_equal(nm_selection_name(NM_SELECTION_COST_EFFECTIVE), "cost_effective");
	assert_string_equal(nm_selection_name(NM_SELECTION_MOST_BENEFIT_PLUS), "most_benefit_plus");
	assert_string_equal(nm_performance_name(NM_PERFORMANCE_PRODUCT), "product");
	assert_string_equal(nm_performance_name(NM_PERFORMANCE_LATENCY), "latency");
	assert_string_equal(nm_feedback_name(NM_FEEDBACK_GLOBAL), "global");
	assert_string_equal(nm_gate_name(NM_GATE_BENEFIT), "benefit");
	assert_string_equal(nm_gate_name(NM_GATE_PAPER), "paper");
	assert_string_equal(nm_lottery_name(NM_LOTTERY_PROPORTIONAL), "proportional");
	assert_string_equal(nm_lottery_name(NM_LOTTERY_PAPER), "paper");
	assert_string_equal(nm_inject_name(NM_INJECT_NONE), "none");
	assert_string_equal(nm_inject_name(NM_INJECT_NUMA_BALANCING), "numa_balancing");
	assert_string_equal(nm_inject_name(NM_INJECT_SOFT_DIRTY), "soft_dirty");
}

/* ---- every row of the table ---- */

/* Other settings that it requires at the ends of its range. */
static const char *company_of(const struct nm_setting *setting)
{
	static const char *const companies[][2] = {
		{"t_min_s", " t_max_s = 60;"},
		{"t_max_s", " t_min_s = 0.1;"},
		{"q3_better", " q3_equal = 0; q3_worse = 0;"},
		{"q3_equal", " q3_better = 1000; q3_worse = 0;"},
		{"q3_worse", " q3_better = 1000; q3_equal = 1000;"},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(companies); i++)
		if (strcmp(setting->name, companies[i][0]) == 0)
			return companies[i][1];
	return "";
}

/* `group: { name = value; }`, with quotes where the setting is a choice. */
static char *assignment(const struct nm_setting *setting, const char *value)
{
	const char *quote = nm_setting_is_text(setting) ? "\"" : "";
	bool grouped = setting->group[0] != '\0';
	char *text = NULL;
	int length = asprintf(&text, "%s%s%s = %s%s%s;%s%s\n", setting->group,
			      grouped ? ": { " : "", setting->name, quote, value, quote,
			      company_of(setting), grouped ? " };" : "");
	assert_true(length > 0);
	return text;
}

static void accept_value(const struct nm_setting *setting, const char *value)
{
	nm_autofree char *text = assignment(setting, value);
	nm_config_free(accept(text));
}

static void refuse_value(const struct nm_setting *setting, const char *value)
{
	nm_autofree char *text = assignment(setting, value);
	char prefix[128];
	(void)snprintf(prefix, sizeof(prefix), "conf:1: %s%s%s: found ", setting->group,
		       setting->group[0] ? "." : "", setting->name);
	refuse_prefix(text, strlen(text), prefix);
}

static void check_count_edges(const struct nm_setting *setting)
{
	uint64_t low = 0, high = 0;
	char text[32];
	assert_int_equal(nm_number_parse_count(setting->low, &low), 0);
	assert_int_equal(nm_number_parse_count(setting->high, &high), 0);
	assert_true(low < high);
	accept_value(setting, setting->low);
	accept_value(setting, setting->high);
	(void)snprintf(text, sizeof(text), "%lld", (long long)low - 1);
	refuse_value(setting, text);
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)high + 1);
	refuse_value(setting, text);
	refuse_value(setting, "1.0");
	refuse_value(setting, "true");
}

static void check_real_edges(const struct nm_setting *setting)
{
	double low = 0, high = 0;
	char text[64];
	assert_int_equal(nm_number_parse_real(setting->low, &low), 0);
	assert_int_equal(nm_number_parse_real(setting->high, &high), 0);
	assert_true(low < high);
	accept_value(setting, setting->low);
	accept_value(setting, setting->high);
	(void)snprintf(text, sizeof(text), "%.17g", nextafter(low, -INFINITY) - 1e-9);
	refuse_value(setting, text);
	(void)snprintf(text, sizeof(text), "%.17g", nextafter(high, INFINITY));
	refuse_value(setting, text);
	refuse_value(setting, "\"1\"");
}

/* Not with accept_value(): "soft_dirty" requires other settings, see below. */
static void check_choices(const struct nm_setting *setting)
{
	nm_auto(nm_config_freep) struct nm_config *config = accept("");
	for (unsigned i = 0; setting->choices[i]; i++) {
		unsigned stored = UINT_MAX;
		assert_int_equal(nm_setting_assign(setting, setting->choices[i], config), 0);
		memcpy(&stored, (const char *)config + setting->offset, sizeof(stored));
		assert_int_equal(stored, i);
	}
	refuse_value(setting, "");
	refuse_value(setting, "AUTO");
	refuse_value(setting, "nonesuch");
}

static void check_pmu(const struct nm_setting *setting)
{
	static const char *const good[] = {"numalab/period=97/", "ibs_op/cnt_ctl,l3missonly=1/",
					   "cpu/mem-loads,ldlat=0x1e/", "x//"};
	static const char *const bad[] = {"/",	    "//",    "numalab", "numalab/", "/period=97/",
					  "a/b/c/", "a/b/c", "../x=1/", "a b/x=1/", "a/x=\\x01/"};

	for (size_t i = 0; i < NM_ARRAY_SIZE(good); i++)
		accept_value(setting, good[i]);
	for (size_t i = 0; i < NM_ARRAY_SIZE(bad); i++)
		refuse_value(setting, bad[i]);
}

static void check_event(const struct nm_setting *setting)
{
	static const char *const good[] = {"A", "MEM_LOAD_RETIRED:L3_MISS", "skx::A.B:u=1:0x81"};
	static const char *const bad[] = {
		" ",
		"A B",
		"A,B",
		"A\\n",
		"A/B",
		"A\xc3\xa4",
		"A-B",
		"$(A)",
		"A%s",
		"A:::::::::::::::::",
		"A.=.=.=.=.=.=.=.=.",
	};
	char text[NM_CONFIG_EVENT_BYTES + 1] = {0};

	for (size_t i = 0; i < NM_ARRAY_SIZE(good); i++)
		accept_value(setting, good[i]);
	for (size_t i = 0; i < NM_ARRAY_SIZE(bad); i++)
		refuse_value(setting, bad[i]);
	memset(text, 'A', NM_CONFIG_EVENT_BYTES - 1);
	accept_value(setting, text);
	text[NM_CONFIG_EVENT_BYTES - 1] = 'A';
	refuse_value(setting, text);
}

static void test_every_setting(void **state)
{
	(void)state;
	for (size_t i = 0; i < nm_setting_count; i++) {
		const struct nm_setting *setting = &nm_settings[i];
		accept_value(setting, setting->shipped);
		if (setting->paper)
			accept_value(setting, setting->paper);
		if (setting->type == NM_SETTING_COUNT)
			check_count_edges(setting);
		if (setting->type == NM_SETTING_REAL)
			check_real_edges(setting);
		if (setting->type == NM_SETTING_CHOICE)
			check_choices(setting);
		if (setting->type == NM_SETTING_BOOL)
			refuse_value(setting, "1");
		if (setting->type == NM_SETTING_PMU)
			check_pmu(setting);
		if (setting->type == NM_SETTING_EVENT)
			check_event(setting);
	}
}

/* A setting must change its own field only: the offsets in the table are right. */
static void test_every_setting_lands_in_its_field(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *config = accept(
		"general: { interval_s = 2; seed = 42; dry_run = true; };\n"
		"sampling: { source = \"none\"; overhead_percent = 99.5; ring_kb = 1024; };\n"
		"threads: { policy = \"none\"; n = 17; q1 = 1.5; q2 = 3; cooldown = 9;\n"
		"           moves_per_interval = 5; cross_owner_swap = true; };\n"
		"journal: { level = \"error\"; rate_per_s = 7; };\n");

	(void)state;
	assert_true(config->general.interval_s == 2);
	assert_int_equal(config->general.seed, 42);
	assert_true(config->general.dry_run);
	assert_int_equal(config->sampling.source, NM_SOURCE_NONE);
	assert_true(config->sampling.overhead_percent == 99.5);
	assert_int_equal(config->sampling.ring_kb, 1024);
	assert_int_equal(config->threads.policy, NM_POLICY_NONE);
	assert_int_equal(config->threads.n, 17);
	assert_true(config->threads.q1 == 1.5 && config->threads.q2 == 3);
	assert_int_equal(config->threads.cooldown, 9);
	assert_int_equal(config->threads.moves_per_interval, 5);
	assert_true(config->threads.cross_owner_swap);
	assert_int_equal(config->journal.level, NM_JOURNAL_ERROR);
	assert_int_equal(config->journal.rate_per_s, 7);
	assert_int_equal(config->threads.min_samples, 10);
}

static void test_power_of_two(void **state)
{
	(void)state;
	refuse("sampling: { ring_kb = 513; };",
	       "conf:1: sampling.ring_kb: found 513, allowed: a power of two from 16 to 65536");
}

/* ---- wrong types, unknown names, several at once ---- */

static void test_wrong_types(void **state)
{
	(void)state;
	refuse("threads: { n = \"8\"; };",
	       "conf:1: threads.n: found \"8\", allowed: a whole number from 1 to 1024");
	refuse("threads: { n = ( 1, 2 ); };",
	       "conf:1: threads.n: found a list, allowed: a whole number from 1 to 1024");
	refuse("threads: { q1 = { }; };",
	       "conf:1: threads.q1: found a group, allowed: a number from 0 to 1000");
	refuse("threads: { rollback = 1; };",
	       "conf:1: threads.rollback: found 1, allowed: true or false");
	refuse("threads: { gate = true; };",
	       "conf:1: threads.gate: found true, allowed: \"benefit\" or \"paper\"");
	refuse("threads: { pin = 5; };",
	       "conf:1: threads.pin: found 5, allowed: \"auto\", \"node\", \"core\" or \"nudge\"");
	refuse("threads = 5;", "conf:1: threads: found 5, allowed: a group of settings in { }");
	refuse("targets: { include = \"x\"; };",
	       "conf:1: targets.include: found \"x\", "
	       "allowed: a list of groups such as ( { command = \"x*\"; } )");
	refuse("profile = { };",
	       "conf:1: profile: found a group, allowed: \"shipped\" or \"paper\"");
}

static void test_unknown_names(void **state)
{
	(void)state;
	refuse("threads: { gat = \"paper\"; };",
	       "conf:1: threads.gat: unknown setting; the nearest known one is threads.gate");
	refuse("thread: { };", "conf:1: thread: unknown setting; the nearest known one is threads");
	refuse("interval_s = 1;",
	       "conf:1: interval_s: unknown setting; the nearest known one is general.interval_s");
	refuse("threads: { Pin = \"auto\"; };",
	       "conf:1: threads.Pin: unknown setting; the nearest known one is threads.pin");
	refuse("general: { rollback = true; };", "conf:1: general.rollback: unknown setting; the "
						 "nearest known one is threads.rollback");
	refuse("prof1le = \"paper\";",
	       "conf:1: prof1le: unknown setting; the nearest known one is profile");
}

static void test_several_at_once(void **state)
{
	static const char text[] = "profile = \"papers\";\n"
				   "general:\n"
				   "{\n"
				   "	interval_s = 0.01;\n"
				   "	sead = 1;\n"
				   "};\n"
				   "\n"
				   "threads = { n = 5000000000; gate_margin = 2;\n"
				   "	rollback = \"no\"; };\n";
	static const char *const expected[] = {
		"conf:1: profile: found \"papers\", allowed: \"shipped\" or \"paper\"",
		"conf:4: general.interval_s: found 0.01, allowed: a number from 0.1 to 60",
		"conf:5: general.sead: unknown setting; the nearest known one is general.seed",
		"conf:8: threads.n: found 5000000000, allowed: a whole number from 1 to 1024",
		"conf:8: threads.gate_margin: found 2, allowed: a number from 0 to 1",
		"conf:9: threads.rollback: found \"no\", allowed: true or false",
	};
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};

	(void)state;
	refuse_bytes(TEXT(text), &errors);
	assert_int_equal(errors.count, NM_ARRAY_SIZE(expected));
	for (size_t i = 0; i < errors.count; i++)
		assert_string_equal(errors.text[i], expected[i]);
}

static void test_too_many_errors(void **state)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_autofree char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	for (int i = 0; i < 1000; i++)
		(void)fprintf(out, "x%d = 1;\n", i);
	assert_int_equal(fclose(out), 0);
	refuse_bytes(text, size, &errors);
	assert_int_equal(errors.count, 101);
	assert_string_equal(errors.text[100], "conf: and 900 more errors");
}

/* SECURITY: configuration */
static void test_hostile_text_is_escaped(void **state)
{
	(void)state;
	refuse("threads: { gate = \"a\\x1b\\x9b\"; };",
	       "conf:1: threads.gate: found \"a\\x1b\\x9b\", allowed: \"benefit\" or \"paper\"");
}

/* ---- targets ---- */

static void test_targets(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("targets: {\n"
		       "  include = ( { command = \"postgres\"; user = \"root\"; },\n"
		       "              { unit = \"db-*.service\"; }, { user = \"4294967294\"; } );\n"
		       "  exclude = [ ];\n"
		       "};");
	const struct nm_target *items = config->targets.include.items;

	(void)state;
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

static void test_target_users(void **state)
{
	static const char allowed[] =
		"allowed: name or number of an existing user";
	static const char *const users[] = {"no-such-user-here", "4294967295", "99999999999", "-1"};

	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(users); i++) {
		char text[128], message[256];
		(void)snprintf(text, sizeof(text),
			       "targets: { include = ( { user = \"%s\"; } ); };", users[i]);
		(void)snprintf(message, sizeof(message),
			       "conf:1: targets.include.user: found \"%s\", %s", users[i], allowed);
		refuse(text, message);
	}
	refuse("targets: { include = ( { user = 0; } ); };",
	       "conf:1: targets.include.user: found 0, allowed: a string that is not empty");
}

static void test_target_mistakes(void **state)
{
	static const char group[] = "allowed: a group such as { command = \"x*\"; } "
				    "with one or more of command, unit, slice, cgroup, user";
	char message[256];

	(void)state;
	(void)snprintf(message, sizeof(message), "conf:1: targets.include: found \"postgres\", %s",
		       group);
	refuse("targets: { include = ( \"postgres\" ); };", message);
	(void)snprintf(message, sizeof(message), "conf:1: targets.exclude: found a group, %s",
		       group);
	refuse("targets: { exclude = ( { } ); };", message);
	refuse("targets: { exclude = ( { comand = \"x\"; } ); };",
	       "conf:1: targets.exclude.comand: unknown setting; known are command, unit, slice, cgroup, "
	       "user");
	refuse("targets: { exclude = ( { command = \"\"; } ); };",
	       "conf:1: targets.exclude.command: found \"\", allowed: a string that is not empty");
	refuse("targets: { exclude = (\n{ command = 5; } ); };",
	       "conf:2: targets.exclude.command: found 5, allowed: a string that is not empty");
}

static void test_target_command_length(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *config =
		accept("targets: { include = ( { command = \"123456789012345\"; },\n"
		       "                       { command = \"a-long-pattern-for-it*\"; } ); };");

	(void)state;
	assert_int_equal(config->targets.include.count, 2);
	refuse("targets: { include = ( { command = \"1234567890123456\"; } ); };",
	       "conf:1: targets.include.command: found \"1234567890123456\", allowed: at most 15 "
	       "bytes, "
	       "to which the kernel truncates names of commands, or a pattern with *");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_paper_profile),
		cmocka_unit_test(test_settings_win_over_profile),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_every_setting),
		cmocka_unit_test(test_every_setting_lands_in_its_field),
		cmocka_unit_test(test_power_of_two),
		cmocka_unit_test(test_wrong_types),
		cmocka_unit_test(test_unknown_names),
		cmocka_unit_test(test_several_at_once),
		cmocka_unit_test(test_too_many_errors),
		cmocka_unit_test(test_hostile_text_is_escaped),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_target_users),
		cmocka_unit_test(test_target_mistakes),
		cmocka_unit_test(test_target_command_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Settings that are valid alone and invalid together: each rule on both sides, with line and
 * remedy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config_cases.h"

#define SOFT_DIRTY(rest) "sampling: {\n inject = \"soft_dirty\"; " rest " };\n"
#define ACCEPTED "accept_soft_dirty_risk = true;"
#define NEEDS_CONSENT                                                                              \
	"conf:2: sampling.inject: found \"soft_dirty\", allowed: only with "                       \
	"sampling.accept_soft_dirty_risk = true"
#define NEEDS_NAME                                                                                 \
	"conf:2: sampling.inject: found \"soft_dirty\", allowed: only with a pattern in "          \
	"targets.include that names a command, unit, slice or cgroup other than \"*\""

static void test_soft_dirty_needs_consent(void **state)
{
	(void)state;
	refuse(SOFT_DIRTY("") "targets: { include = ( { command = \"db\"; } ); };", NEEDS_CONSENT);
}

static void test_soft_dirty_needs_a_name(void **state)
{
	(void)state;
	refuse(SOFT_DIRTY(ACCEPTED), NEEDS_NAME);
	refuse(SOFT_DIRTY(ACCEPTED) "targets: { include = ( { command = \"*\"; } ); };",
	       NEEDS_NAME);
	refuse(SOFT_DIRTY(ACCEPTED) "targets: { include = ( { unit = \"**\"; } ); };", NEEDS_NAME);
	refuse(SOFT_DIRTY(ACCEPTED) "targets: { include = ( { user = \"root\"; } ); };",
	       NEEDS_NAME);
	refuse(SOFT_DIRTY(ACCEPTED) "targets: { exclude = ( { command = \"db\"; } ); };",
	       NEEDS_NAME);
}

static void test_soft_dirty_needs_both(void **state)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};

	(void)state;
	refuse_bytes(TEXT(SOFT_DIRTY("")), &errors);
	assert_int_equal(errors.count, 2);
	assert_string_equal(errors.text[0], NEEDS_CONSENT);
	assert_string_equal(errors.text[1], NEEDS_NAME);
}

static void test_soft_dirty_granted(void **state)
{
	nm_auto(nm_config_freep) struct nm_config *command =
		accept(SOFT_DIRTY(ACCEPTED) "targets: { include = ( { command = \"*\"; },\n"
					    "{ command = \"db*\"; } ); };");
	nm_auto(nm_config_freep) struct nm_config *unit = accept(
		"targets: { include = ( { unit = \"db.service\"; } ); };\n" SOFT_DIRTY(ACCEPTED));

	(void)state;
	assert_int_equal(command->sampling.inject, NM_INJECT_SOFT_DIRTY);
	assert_int_equal(unit->sampling.inject, NM_INJECT_SOFT_DIRTY);
}

static void allow(const char *text)
{
	nm_config_free(accept(text));
}

static void test_pmu_must_be_named(void **state)
{
	(void)state;
	refuse("sampling:\n{ source = \"pmu\"; };",
	       "conf:2: sampling.source: found \"pmu\", allowed: only if sampling.pmu is set");
	allow("sampling: { source = \"pmu\"; pmu = \"x/period=9/\"; };");
	refuse("sampling:\n{ source = \"event\"; pmu = \"x/period=9/\"; };",
	       "conf:2: sampling.source: found \"event\", allowed: only if sampling.event is set");
	allow("sampling: { source = \"event\"; event = \"A:B\"; };");
}

static void test_interval_bounds(void **state)
{
	(void)state;
	refuse("threads: { t_max_s = 2;\n t_min_s = 3; };",
	       "conf:2: threads.t_min_s: found 3, allowed: at most threads.t_max_s, which is 2");
	refuse("threads:\n{\n t_max_s = 0.5; };",
	       "conf:3: threads.t_min_s: found 1, allowed: at most threads.t_max_s, which is 0.5");
	allow("threads: { t_min_s = 4; };");
}

static void test_interval_within_bounds(void **state)
{
	(void)state;
	refuse("threads: { policy = \"imar2\"; };\ngeneral: { interval_s = 5; };",
	       "conf:2: general.interval_s: found 5, allowed with threads.policy = \"imar2\": from "
	       "threads.t_min_s to threads.t_max_s, which are 1 and 4");
	allow("threads: { policy = \"imar2\"; t_min_s = 2; };");
	allow("threads: { policy = \"imar2\"; t_min_s = 0.5; };\n"
	      "general: { interval_s = 0.5; };");
	allow("general: { interval_s = 60; };");
}

static void test_at_least_one_thread_is_considered(void **state)
{
	(void)state;
	refuse("profile = \"paper\"; threads: { policy = \"imar2\"; delta_r = 0; };",
	       "conf:1: threads.delta_r: found 0, allowed: above 0, unless threads.remote_below "
	       "is: "
	       "otherwise no thread is considered");
	allow("threads: { policy = \"imar2\"; delta_r = 0; };");
	allow("profile = \"paper\"; threads: { delta_r = 0; };");
}

static void test_records_in_order(void **state)
{
	(void)state;
	refuse("threads: { q3_worse = 3; };",
	       "conf:1: threads.q3_better, q3_equal, q3_worse: found 4, 2 and 3, allowed: in "
	       "descending order, otherwise threads move to nodes where they were slower");
	refuse_prefix(TEXT("threads: { q3_better = 1; };"), "conf:1: threads.q3_better, ");
	allow("threads: { q3_better = 2; q3_worse = 2; };");
}

static void test_balancing_has_bounds_in_order(void **state)
{
	(void)state;
	refuse("threads: { policy = \"balance\"; balance_end = 0.75; };",
	       "conf:1: threads.balance_end: found 0.75, allowed: at most threads.balance_begin, "
	       "which is 0.5");
	refuse_prefix(TEXT("threads: { policy = \"balance\"; balance_begin = 0.2; };"),
		      "conf:1: threads.balance_end: ");
	allow("threads: { policy = \"balance\"; balance_end = 0.5; };");
	allow("threads: { balance_end = 0.75; };");
}

static void test_at_least_one_policy_is_needed(void **state)
{
	(void)state;
	const char *message = "conf:1: threads.q1: found 0, allowed: above 0, unless other tickets "
			      "are: otherwise no candidate has tickets";
	refuse("threads: { q1 = 0; q1_sibling = 0; q2 = 0; policy = \"lbma\"; };", message);
	refuse("threads: { q1 = 0; q1_sibling = 0; q2 = 0; policy = \"lbma\"; "
	       "lottery = \"paper\"; };",
	       message);
	refuse("threads: { q1 = 0; q1_sibling = 0; q2 = 0; policy = \"imar2\"; q3_better = 0; "
	       "q3_equal = 0; q3_worse = 0; q4 = 0; };",
	       message);
	allow("threads: { q1 = 0; q1_sibling = 0; q2 = 0; policy = \"imar2\"; };");
	allow("threads: { q1 = 0; q1_sibling = 0; q2 = 0; policy = \"none\"; };");
	allow("threads: { q1 = 0; q1_sibling = 0; q2 = 0; policy = \"kmaf\"; };");
	allow("threads: { q1 = 0; q1_sibling = 0; q2 = 0; policy = \"auto\"; };");
	allow("threads: { q1 = 0; q1_sibling = 0; q2 = 0; policy = \"lbma\"; lottery = \"paper\"; "
	      "gate = \"paper\"; };");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_soft_dirty_needs_consent),
		cmocka_unit_test(test_soft_dirty_needs_a_name),
		cmocka_unit_test(test_soft_dirty_needs_both),
		cmocka_unit_test(test_soft_dirty_granted),
		cmocka_unit_test(test_pmu_must_be_named),
		cmocka_unit_test(test_interval_bounds),
		cmocka_unit_test(test_interval_within_bounds),
		cmocka_unit_test(test_at_least_one_thread_is_considered),
		cmocka_unit_test(test_records_in_order),
		cmocka_unit_test(test_at_least_one_policy_is_needed),
		cmocka_unit_test(test_balancing_has_bounds_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

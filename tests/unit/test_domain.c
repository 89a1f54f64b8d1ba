// SPDX-License-Identifier: MIT
/* Domains, and their shares of what is limited. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "numa-migrd/base.h"

static bool same_domain(const char *one, const char *other)
{
	return nm_domain_of(0, one) == nm_domain_of(0, other);
}

/* SECURITY: shares */
static void nested_cgroups_of_a_unit_share_its_domain(void **state)
{
	static const char *const same[][2] = {
		{"/system.slice/a.service", "/system.slice/a.service/x/y"},
		{"/system.slice/a.service", "/system.slice/a.service/b.slice/c.service"},
		{"/user.slice/user-7.slice/session-1.scope", "/user.slice/user-7.slice/session-2.scope"},
		{"/user.slice/user-7.slice/session-1.scope",
		 "/user.slice/user-7.slice/user@7.service/app.slice/b.service"},
		{"/docker/1f/a", "/docker/1f/b"},
		{"/lxc.payload.one/system.slice/a.service", "/lxc.payload.one/system.slice/b.service"},
		{"/kubepods/burstable/podA/1f", "/kubepods/burstable/podA/2f"},
	};

	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(same); i++)
		assert_true(same_domain(same[i][0], same[i][1]));
}

/* SECURITY: shares */
static void containers_services_and_users_are_domains(void **state)
{
	static const char *const others[] = {
		"/system.slice/a.service",
		"/system.slice/b.service",
		"/system.slice/docker-1f.scope",
		"/system.slice/docker-2f.scope",
		"/system.slice/a/a.service", /* no slice: a separate domain */
		"/user.slice/user-7.slice/session-1.scope",
		"/user.slice/user-8.slice/session-1.scope",
		"/docker/1f",
		"/docker/2f",
		"/kubepods/burstable/podA/1f",
		"/kubepods/burstable/podB/1f",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podA.slice/"
		"cri-1.scope",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podB.slice/"
		"cri-2.scope",
		"/lxc.payload.one/init.scope",
		"/lxc.payload.two/init.scope",
		"/system.slice/slurmstepd.scope/job_1/step_0",
		"/system.slice/slurmstepd.scope/job_2/step_0",
	};

	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(others); i++)
		for (size_t k = 0; k < NM_ARRAY_SIZE(others); k++)
			assert_int_equal(same_domain(others[i], others[k]), i == k);
}

static void users_without_a_cgroup_are_domains(void **state)
{
	static const char *const unknown[] = {NULL, "", "/", "//", "x"};

	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(unknown); i++) {
		assert_true(nm_domain_of(1, unknown[i]) == nm_domain_of(1, NULL));
		assert_true(nm_domain_of(1, unknown[i]) != nm_domain_of(2, NULL));
	}
}

/* ---- shares ---- */

#define MOST 64U

struct holders {
	uint64_t items[MOST];
	unsigned count;
};

static bool take(struct holders *holders, uint64_t domain)
{
	struct nm_usage usage = {0};

	for (unsigned i = 0; i < holders->count; i++)
		nm_usage_add(&usage, domain, holders->items[i], 1);
	if (!nm_usage_has_room(&usage, MOST))
		return false;
	holders->items[holders->count++] = domain;
	return true;
}

static unsigned take_all(struct holders *holders, uint64_t domain)
{
	unsigned taken = 0;

	while (take(holders, domain))
		taken++;
	return taken;
}

/* SECURITY: shares */
static void one_domain_leaves_half(void **state)
{
	struct holders holders = {0};

	(void)state;
	assert_int_equal(take_all(&holders, 1), MOST / 2);
	assert_int_equal(take_all(&holders, 2), MOST / 4);
}

/* SECURITY: shares */
static void greedy_domains_leave_room(void **state)
{
	struct holders holders = {0};

	(void)state;
	for (uint64_t domain = 1; domain <= 6; domain++)
		assert_true(take_all(&holders, domain) > 0);
	assert_true(take(&holders, 99));
	for (uint64_t domain = 100; domain < 1000; domain++)
		(void)take_all(&holders, domain);
	assert_int_equal(holders.count, MOST);
}

static void the_last_unit_may_be_taken(void **state)
{
	const struct nm_usage last = {.all = 7}, none = {.all = 8}, mine = {.all = 7, .own = 1};

	(void)state;
	assert_true(nm_usage_has_room(&last, 8));
	assert_false(nm_usage_has_room(&none, 8));
	assert_false(nm_usage_has_room(&mine, 8));
}

static void the_smallest_debt_makes_way(void **state)
{
	struct nm_debts debts = {0};

	(void)state;
	for (uint64_t domain = 1; domain <= NM_DEBTS; domain++)
		nm_debts_add(&debts, domain, (double)domain, INFINITY);
	nm_debts_add(&debts, 1, 2, INFINITY);
	nm_debts_add(&debts, 1000, 5, INFINITY);
	assert_true(nm_debts_of(&debts, 1) == 3);
	assert_true(nm_debts_of(&debts, 2) == 0);
	nm_debts_add(&debts, 1000, 1, 3); /* what is owed beyond the limit stays */
	assert_true(nm_debts_of(&debts, 1000) == 5);
	nm_debts_repay(&debts, 4);
	assert_true(nm_debts_of(&debts, 1) == 0);
	assert_true(nm_debts_of(&debts, 1000) == 1);
	assert_true(nm_debts_of(&debts, NM_DEBTS) == NM_DEBTS - 4.0);
	nm_debts_add(&debts, 1000, 9, 6);
	assert_true(nm_debts_of(&debts, 1000) == 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_cgroups_of_a_unit_share_its_domain),
		cmocka_unit_test(containers_services_and_users_are_domains),
		cmocka_unit_test(users_without_a_cgroup_are_domains),
		cmocka_unit_test(one_domain_leaves_half),
		cmocka_unit_test(greedy_domains_leave_room),
		cmocka_unit_test(the_last_unit_may_be_taken),
		cmocka_unit_test(the_smallest_debt_makes_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

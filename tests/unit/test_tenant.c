// SPDX-License-Identifier: MIT
/* Shares of tenants: domains and their limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "numa-migrd/base.h"

static bool same_domain(const char *one, const char *other)
{
	return nm_tenant_of(0, one).domain == nm_tenant_of(0, other).domain;
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
		struct nm_tenant one = nm_tenant_of(1, unknown[i]);
		struct nm_tenant again = nm_tenant_of(1, NULL), other = nm_tenant_of(2, NULL);
		assert_true(nm_tenant_same(&one, &again));
		assert_true(one.domain != other.domain);
	}
}

/* ---- shares ---- */

struct holders {
	struct nm_tenant items[NM_RELEASED_MOST];
	unsigned count;
};

static bool take(struct holders *holders, enum nm_shared share, uint64_t domain, uint32_t uid)
{
	const struct nm_tenant tenant = {.domain = domain, .uid = uid};
	struct nm_usage usage = {0};

	for (unsigned i = 0; i < holders->count; i++)
		nm_usage_add(&usage, &tenant, &holders->items[i], 1);
	if (!nm_share_has_room(share, &usage))
		return false;
	holders->items[holders->count++] = tenant;
	return true;
}

static unsigned take_all(struct holders *holders, enum nm_shared share, uint64_t domain, uint32_t uid)
{
	unsigned taken = 0;

	while (take(holders, share, domain, uid))
		taken++;
	return taken;
}

/* SECURITY: shares */
static void one_user_leaves_two_thirds(void **state)
{
	nm_autofree struct holders *holders = calloc(1, sizeof(*holders));

	(void)state;
	assert_int_equal(take_all(holders, NM_SHARE_QUERIES, 1, 1), 86);
	holders->count = 0;
	assert_int_equal(take_all(holders, NM_SHARE_BATCHES, 1, 1), 22);
	assert_true(take(holders, NM_SHARE_BATCHES, 2, 1));
}

/* For any number of its users, as those of a user namespace are free. */
/* SECURITY: shares */
static void one_domain_leaves_half(void **state)
{
	nm_autofree struct holders *holders = calloc(1, sizeof(*holders));

	(void)state;
	for (uint32_t uid = 0; uid < 1000; uid++)
		(void)take_all(holders, NM_SHARE_QUERIES, 1, uid);
	assert_int_equal(holders->count, NM_QUERIES_MOST / 2);
	assert_true(take(holders, NM_SHARE_QUERIES, 2, 0));
}

/* SECURITY: shares */
static void eight_greedy_domains_leave_room(void **state)
{
	nm_autofree struct holders *holders = calloc(1, sizeof(*holders));

	(void)state;
	for (uint64_t domain = 1; domain <= 8; domain++)
		assert_true(take_all(holders, NM_SHARE_BATCHES, domain, 1) > 0);
	assert_true(take(holders, NM_SHARE_BATCHES, 99, 1));
}

/* A sender on the bus is a tenant, and a user may have 256 connections. */
/* SECURITY: shares */
static void connections_of_a_user_are_limited(void **state)
{
	nm_autofree struct holders *holders = calloc(1, sizeof(*holders));

	(void)state;
	for (uint64_t sender = 1; sender <= 256; sender++)
		assert_int_equal(take_all(holders, NM_SHARE_REQUESTS, sender, 0), 8);
	assert_true(take(holders, NM_SHARE_REQUESTS, 999, 0));
}

static void shares_never_exceed_the_total(void **state)
{
	nm_autofree struct holders *holders = calloc(1, sizeof(*holders));

	(void)state;
	for (uint64_t domain = 1; domain < 1000; domain++)
		(void)take_all(holders, NM_SHARE_BATCHES, domain, 1);
	assert_true(holders->count <= NM_BATCHES_MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_cgroups_of_a_unit_share_its_domain),
		cmocka_unit_test(containers_services_and_users_are_domains),
		cmocka_unit_test(users_without_a_cgroup_are_domains),
		cmocka_unit_test(one_user_leaves_two_thirds),
		cmocka_unit_test(one_domain_leaves_half),
		cmocka_unit_test(eight_greedy_domains_leave_room),
		cmocka_unit_test(connections_of_a_user_are_limited),
		cmocka_unit_test(shares_never_exceed_the_total),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

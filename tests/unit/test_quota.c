/* SPDX-License-Identifier: MIT */
/* Quotas of domains: what is held, what is owed, and the rule for both. */
#include "../support/test.h"

#include <math.h>
#include <stdint.h>

#include "numa-migrd/base.h"

#define MOST 64U

/* ---- what is held ---- */

struct holders {
	uint64_t items[MOST];
	unsigned count;
};

static bool take(struct holders *holders, uint64_t domain)
{
	struct nm_quota quota = {.limit = MOST};

	for (unsigned i = 0; i < holders->count; i++)
		nm_quota_count(&quota, domain, holders->items[i], 1);
	if (!nm_quota_permits(&quota, domain))
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

/* SECURITY: quota */
TEST(one_domain_leaves_half)
{
	struct holders holders = {0};

	assert_int_equal(take_all(&holders, 1), MOST / 2);
	assert_int_equal(take_all(&holders, 2), MOST / 4);
}

/* SECURITY: quota */
TEST(greedy_domains_leave_room)
{
	struct holders holders = {0};

	for (uint64_t domain = 1; domain <= 6; domain++)
		assert_true(take_all(&holders, domain) > 0);
	assert_true(take(&holders, 99));
	for (uint64_t domain = 100; domain < 1000; domain++)
		(void)take_all(&holders, domain);
	assert_int_equal(holders.count, MOST);
}

TEST(the_last_unit_may_be_taken)
{
	struct nm_quota quota = {.limit = 8};

	nm_quota_count(&quota, 1, 2, 7);
	assert_true(nm_quota_permits(&quota, 1));
	nm_quota_count(&quota, 1, 1, 1);
	assert_false(nm_quota_permits(&quota, 1));
	assert_false(nm_quota_permits(&quota, 3));
}

/* However many domains hold something, a domain's own part is known. */
TEST(any_number_of_domains_may_hold)
{
	struct nm_quota quota = {.limit = 4096};

	for (unsigned round = 0; round < 3; round++)
		for (uint64_t holder = 1; holder <= 10 * NM_QUOTA_DOMAINS; holder++)
			nm_quota_count(&quota, 7, holder, 1);
	assert_true(nm_quota_of(&quota, 7) == 3);
	assert_true(quota.used == 3.0 * 10 * NM_QUOTA_DOMAINS);
}

/* ---- what is owed ---- */

TEST(the_smallest_makes_way)
{
	struct nm_quota quota = {.limit = INFINITY};

	for (uint64_t domain = 1; domain <= NM_QUOTA_DOMAINS; domain++)
		nm_quota_add(&quota, domain, (double)domain);
	nm_quota_add(&quota, 1, 2);
	nm_quota_add(&quota, 1000, 5);
	assert_true(nm_quota_of(&quota, 1) == 3);
	assert_true(nm_quota_of(&quota, 2) == 0);
	nm_quota_add(&quota, 2000, 0); /* nothing, so nobody makes way */
	assert_true(nm_quota_of(&quota, 1) == 3);
	nm_quota_repay(&quota, 4);
	assert_true(nm_quota_of(&quota, 1) == 0);
	assert_true(nm_quota_of(&quota, 1000) == 1);
	assert_true(nm_quota_of(&quota, NM_QUOTA_DOMAINS) == NM_QUOTA_DOMAINS - 4.0);
}

/* Two thousand domains together take no more than the limit: a replaced one is still counted. */
/* SECURITY: quota */
TEST(many_domains_do_not_exceed_the_limit)
{
	struct nm_quota quota = {.limit = 10.0 * NM_QUOTA_DOMAINS};
	unsigned taken = 0;

	for (uint64_t domain = 1; domain <= 2000; domain++) {
		if (!nm_quota_permits(&quota, domain))
			continue;
		nm_quota_add(&quota, domain, 1);
		taken++;
	}
	assert_int_equal(taken, 10 * NM_QUOTA_DOMAINS);
}

TEST(none_owes_more_than_the_limit)
{
	struct nm_quota quota = {.limit = 6};

	nm_quota_add(&quota, 1, 5);
	nm_quota_add(&quota, 1, 9);
	assert_true(nm_quota_of(&quota, 1) == 6);
	assert_true(quota.used == 6);
	quota.limit = 3; /* what is owed beyond the limit stays */
	nm_quota_add(&quota, 1, 1);
	assert_true(nm_quota_of(&quota, 1) == 6);
}

TEST(repaid_debts_leave_nothing)
{
	struct nm_quota quota = {.limit = INFINITY};

	nm_quota_add(&quota, 1, 0.1);
	nm_quota_add(&quota, 2, 0.2);
	nm_quota_add(&quota, 3, 0.7);
	for (unsigned i = 0; i < 3; i++)
		nm_quota_repay(&quota, 0.3);
	assert_true(quota.used == 0);
}

TEST(all_repay_in_proportion)
{
	struct nm_quota quota = {.limit = 20};

	nm_quota_add(&quota, 1, 4);
	nm_quota_add(&quota, 2, 12);
	nm_quota_repay_together(&quota, 8);
	assert_true(nm_quota_of(&quota, 1) == 2);
	assert_true(nm_quota_of(&quota, 2) == 6);
	assert_true(quota.used == 8);
	nm_quota_repay_together(&quota, 9);
	assert_true(nm_quota_of(&quota, 2) == 0);
	assert_true(quota.used == 0);
}

/* Counts what a quiet domain gets beside busy ones, which ask before it all the time. */
static unsigned quiet_gets(uint64_t busy, unsigned asks)
{
	struct nm_quota quota = {.limit = 20};
	unsigned taken = 0;

	for (unsigned turn = 0; turn < asks * 100; turn++) {
		nm_quota_repay_together(&quota, 0.2);
		for (uint64_t domain = 1; domain <= busy; domain++)
			if (nm_quota_permits(&quota, domain))
				nm_quota_add(&quota, domain, 1);
		if (turn % 100 == 99 && nm_quota_permits(&quota, busy + 1)) {
			nm_quota_add(&quota, busy + 1, 1);
			taken++;
		}
	}
	return taken;
}

/* SECURITY: quota */
TEST(a_quiet_domain_gets_what_it_asks_for)
{
	for (uint64_t busy = 0; busy <= 8; busy++)
		assert_int_equal(quiet_gets(busy, 60), 60);
}

RUN_TESTS()

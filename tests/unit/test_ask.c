// SPDX-License-Identifier: MIT
/* The order and duration of answers to queries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "numa-migrd/platform.h"

#define SLOW_NS (NM_ANSWER_USUAL_NS + NM_ANSWER_USUAL_NS / 2)
#define QUICK_NS (NM_ANSWER_USUAL_NS / 5)
#define USERS 100U /* the pid of a query encodes its user and its number */

static struct {
	struct nm_asker *asker;
	bool held;		 /* answers wait until their first call ends */
	bool endless;		 /* a new answer consists of calls without end */
	bool under_way, repeats; /* an answer is in progress; it is an endless one */
	uint64_t takes_ns;	 /* duration of an answer of user 1 */
	uint32_t answered[32]; /* in this order */
	unsigned count;
	int ended; /* result of the last endless answer */
} f;

static void sleep_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / NM_NSEC_PER_SEC),
				     .tv_nsec = (long)(ns % NM_NSEC_PER_SEC)},
		  NULL);
}

/* The next call takes 1 ms. */
static bool calls_again(struct nm_memory_answer *ret)
{
	f.ended = ret->result = nm_asker_goes_on(f.asker);
	nm_asker_charge(f.asker, NM_NSEC_PER_MSEC);
	return ret->result == 0;
}

static bool answer(void *context, const struct nm_memory_query *query,
		   struct nm_memory_answer *ret)
{
	(void)context;
	if (!f.under_way)
		f.repeats = f.endless;
	f.under_way = true;
	if (f.held || (f.repeats && calls_again(ret)))
		return false;
	f.answered[f.count++ % NM_ARRAY_SIZE(f.answered)] = query->pid;
	nm_asker_charge(f.asker, query->pid / USERS == 1 ? f.takes_ns : 0);
	f.under_way = false;
	return true;
}

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	nm_asker_new(answer, NULL, &f.asker);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_asker_free(f.asker);
	return 0;
}

static int try_to_ask(uint32_t uid, const char *cgroup, uint32_t number, uint64_t *ret_ticket)
{
	const struct nm_memory_query question = {.kind = NM_MEMORY_QUERY_PROGRAM,
						 .pid = uid * USERS + number,
						 .domain = nm_domain_of(uid, cgroup)};

	return nm_asker_ask(f.asker, &question, ret_ticket);
}

static uint64_t ask_of(uint32_t uid, const char *cgroup, uint32_t number)
{
	uint64_t ticket = 0;

	assert_int_equal(try_to_ask(uid, cgroup, number, &ticket), 0);
	return ticket;
}

static uint64_t ask(uint32_t uid, uint32_t number)
{
	return ask_of(uid, NULL, number);
}

static int await(uint64_t ticket)
{
	struct nm_memory_answer got = {0};
	int r = -EAGAIN;

	for (unsigned i = 0; i < 10000 && r == -EAGAIN; i++) {
		nm_asker_progress(f.asker);
		r = nm_asker_take(f.asker, ticket, &got);
	}
	assert_int_equal(r, 0);
	return got.result;
}

/* Queries are submitted while the first is held, so that their order is deterministic. */
static void ask_behind(uint32_t first, const uint32_t *uids, uint64_t *tickets, unsigned count)
{
	f.held = true;
	uint64_t ticket = ask(first, 0);
	assert_true(f.under_way);
	for (unsigned i = 0; i < count; i++)
		tickets[i] = ask(uids[i], i + 1);
	f.held = false;
	assert_int_equal(await(ticket), 0);
}

static void the_longest_waiting_process_is_first(void **state)
{
	uint64_t tickets[3];

	(void)state;
	ask_behind(9, (const uint32_t[]){3, 1, 2}, tickets, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(await(tickets[i]), 0);
	assert_int_equal(f.answered[1], 301);
	assert_int_equal(f.answered[2], 102);
	assert_int_equal(f.answered[3], 203);
}

/* SECURITY: held-lock */
static void slow_users_are_queried_last(void **state)
{
	uint64_t tickets[4];

	(void)state;
	f.takes_ns = QUICK_NS;
	ask_behind(1, (const uint32_t[]){1, 1, 2, 3}, tickets, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(await(tickets[i]), 0);
	assert_int_equal(f.answered[0], 100);
	assert_int_equal(f.answered[1], 203);
	assert_int_equal(f.answered[2], 304);
}

/* No other user waits yet, but one may arrive. */
/* SECURITY: held-lock */
static void slow_users_are_not_queried_for_a_while(void **state)
{
	uint64_t tickets[2];

	(void)state;
	f.takes_ns = SLOW_NS;
	ask_behind(1, (const uint32_t[]){1, 2}, tickets, 2);
	assert_int_equal(await(tickets[0]), -EALREADY);
	assert_int_equal(await(tickets[1]), 0);
	assert_int_equal(f.answered[1], 202);
	assert_int_equal(await(ask(1, 7)), -EALREADY);
	int r = -EALREADY;
	for (unsigned i = 0; i < 2000 && r == -EALREADY; i++) {
		sleep_ns(10 * NM_NSEC_PER_MSEC);
		r = await(ask(1, 8));
	}
	assert_int_equal(r, 0);
}

/* User 1 of a container is slow, and its other users wait behind those of other domains. */
/* SECURITY: quota */
static void slow_domains_are_queried_last(void **state)
{
	uint64_t tickets[3];

	(void)state;
	f.takes_ns = QUICK_NS;
	f.held = true;
	tickets[0] = ask_of(1, "/docker/1f", 0);
	assert_true(f.under_way);
	tickets[1] = ask_of(2, "/docker/1f", 1);
	tickets[2] = ask_of(2, "/docker/2f", 2);
	f.held = false;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(await(tickets[i]), 0);
	assert_int_equal(f.answered[1], 202);
	assert_int_equal(f.answered[2], 201);
}

/* SECURITY: quota */
static void queued_queries_are_shared_among_users(void **state)
{
	uint64_t ticket = 0;
	unsigned count = 0;

	(void)state;
	f.held = true;
	while (count <= NM_QUERIES_MOST && try_to_ask(1, NULL, count, &ticket) == 0)
		count++;
	assert_in_range(count, 1, NM_QUERIES_MOST / 2);
	(void)ask(2, 0);
}

/* Starting a worker delays all users and is charged to none. */
static void the_start_of_a_worker_is_charged_to_no_user(void **state)
{
	(void)state;
	f.held = true;
	uint64_t ticket = ask(1, 0);
	assert_true(f.under_way);
	sleep_ns(SLOW_NS);
	f.held = false;
	assert_int_equal(await(ticket), 0);
	assert_int_equal(await(ask(1, 1)), 0);
}

/* SECURITY: held-lock */
static void an_answer_of_many_calls_is_bounded(void **state)
{
	(void)state;
	f.endless = true;
	assert_int_equal(await(ask(2, 0)), -ETIMEDOUT);
}

static void an_unwanted_answer_ends_at_its_next_call(void **state)
{
	(void)state;
	f.endless = true;
	uint64_t ticket = ask(2, 0);
	assert_true(f.under_way);
	f.endless = false;
	nm_asker_forget(f.asker, ticket);
	assert_int_equal(await(ask(3, 0)), 0);
	assert_int_equal(f.ended, -ECANCELED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_longest_waiting_process_is_first),
		TEST(slow_users_are_queried_last),
		TEST(slow_users_are_not_queried_for_a_while),
		TEST(slow_domains_are_queried_last),
		TEST(queued_queries_are_shared_among_users),
		TEST(the_start_of_a_worker_is_charged_to_no_user),
		TEST(an_answer_of_many_calls_is_bounded),
		TEST(an_unwanted_answer_ends_at_its_next_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The order of queries, and the time that is charged for answers. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>
#include <string.h>

#include "numa-migrd/platform.h"

#define SLOW_NS (NM_ANSWER_USUAL_NS + NM_ANSWER_USUAL_NS / 2)
#define QUICK_NS (NM_ANSWER_USUAL_NS / 5)
#define USERS 100U /* the pid of a query encodes its user and its number */

static struct {
	struct nm_query_queue *queue;
	uint64_t now_ns;
} f;

static int set_up(void **state)
{
	(void)state;
	f.now_ns = NM_NSEC_PER_SEC;
	nm_queue_new(&f.queue);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_queue_free(f.queue);
	return 0;
}

static int try_to_ask(uint32_t uid, const char *cgroup, uint32_t number, uint64_t *ret_query_id)
{
	const struct nm_memory_query question = {.kind = NM_MEMORY_QUERY_PROGRAM,
						 .pid = uid * USERS + number,
						 .domain = nm_domain_of(uid, cgroup)};

	return nm_queue_ask(f.queue, &question, ret_query_id);
}

static uint64_t ask_of(uint32_t uid, const char *cgroup, uint32_t number)
{
	uint64_t query_id = 0;

	assert_int_equal(try_to_ask(uid, cgroup, number, &query_id), 0);
	return query_id;
}

static uint64_t ask(uint32_t uid, uint32_t number)
{
	return ask_of(uid, NULL, number);
}

/* Returns the pid of the next query; 0: none. */
static uint32_t begin_next(void)
{
	const struct nm_memory_query *query = nm_queue_next(f.queue, f.now_ns);

	return query ? query->pid : 0;
}

static void answer_after(uint64_t ns)
{
	struct nm_memory_answer answer = {.result = 5, .took_ns = ns};

	f.now_ns += ns;
	nm_queue_answer(f.queue, &answer, f.now_ns);
}

static int result_of(uint64_t query_id)
{
	struct nm_memory_answer got = {0};
	int r = nm_queue_take(f.queue, query_id, &got);

	return r < 0 ? r : got.result;
}

/* Answers one query of user 1, which took that long. */
static void spend(uint64_t ns)
{
	uint64_t query_id = ask(1, 0);

	assert_int_equal(begin_next(), 1 * USERS);
	answer_after(ns);
	assert_int_equal(result_of(query_id), 5);
}

TEST(the_longest_waiting_query_is_first)
{
	uint64_t tickets[3];

	for (unsigned i = 0; i < 3; i++)
		tickets[i] = ask(3 - i, i);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(result_of(tickets[i]), -EAGAIN);
		assert_int_equal(begin_next(), (3 - i) * USERS + i);
		assert_int_equal(begin_next(), 0); /* one at a time */
		answer_after(QUICK_NS);
		assert_int_equal(result_of(tickets[i]), 5);
		assert_int_equal(result_of(tickets[i]), -ENOENT);
	}
	assert_int_equal(begin_next(), 0);
}

/* SECURITY: held-lock */
TEST(slow_users_are_queried_last)
{
	spend(QUICK_NS);
	(void)ask(1, 1);
	(void)ask(1, 2);
	(void)ask(2, 3);
	(void)ask(3, 4);
	static const uint32_t order[] = {203, 304, 101, 102};
	for (unsigned i = 0; i < NM_ARRAY_SIZE(order); i++) {
		assert_int_equal(begin_next(), order[i]);
		answer_after(0);
	}
}

/* No other user waits yet, but one may arrive. */
/* SECURITY: held-lock */
TEST(slow_users_are_not_queried_for_a_while)
{
	spend(SLOW_NS);
	uint64_t refused = ask(1, 1), other = ask(2, 2);
	assert_int_equal(begin_next(), 202);
	answer_after(0);
	assert_int_equal(begin_next(), 0);
	assert_int_equal(result_of(refused), -EALREADY);
	assert_int_equal(result_of(other), 5);
	f.now_ns += NM_ANSWER_REST_SHARE * (SLOW_NS - NM_ANSWER_USUAL_NS) - 1;
	refused = ask(1, 3);
	assert_int_equal(begin_next(), 0);
	assert_int_equal(result_of(refused), -EALREADY);
	f.now_ns++;
	(void)ask(1, 4);
	assert_int_equal(begin_next(), 104);
}

/* User 1 of a container is slow, and its other users wait behind those of other domains. */
/* SECURITY: quota */
TEST(slow_domains_are_queried_last)
{
	(void)ask_of(1, "/docker/1f", 0);
	assert_int_equal(begin_next(), 100);
	(void)ask_of(2, "/docker/1f", 1);
	(void)ask_of(2, "/docker/2f", 2);
	answer_after(QUICK_NS);
	assert_int_equal(begin_next(), 202);
	answer_after(0);
	assert_int_equal(begin_next(), 201);
}

/* SECURITY: quota */
TEST(queued_queries_are_shared_among_users)
{
	uint64_t query_id = 0;
	unsigned count = 0;

	while (count <= NM_QUERIES_MOST && try_to_ask(1, NULL, count, &query_id) == 0)
		count++;
	assert_in_range(count, 1, NM_QUERIES_MOST / 2);
	(void)ask(2, 0);
}

/* The answer to a cancelled query is dropped when it arrives, and its time is charged. */
TEST(an_unwanted_answer_is_dropped)
{
	uint64_t waiting = ask(1, 1), query_id = ask(1, 0);
	nm_queue_forget(f.queue, waiting);
	assert_int_equal(result_of(waiting), -ENOENT);
	assert_int_equal(begin_next(), 100);
	nm_queue_forget(f.queue, query_id);
	assert_int_equal(result_of(query_id), -ENOENT);
	(void)ask(2, 0);
	assert_int_equal(begin_next(), 0);
	answer_after(SLOW_NS);
	assert_int_equal(result_of(query_id), -ENOENT);
	assert_int_equal(begin_next(), 200);
	answer_after(0);
	uint64_t refused = ask(1, 2);
	assert_int_equal(begin_next(), 0);
	assert_int_equal(result_of(refused), -EALREADY);
}

RUN_TESTS()

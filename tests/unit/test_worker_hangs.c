/* SPDX-License-Identifier: MIT */
/* Each call of a worker hangs, or its worker exits during it, for calls of the loop and of the
 * mover. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>
#include <sys/stat.h>

#include "worker_fixture.h"

/* All except the greeting, which concerns no process. */
static const enum nm_worker_act calls[] = {
	NM_WORKER_WHERE, NM_WORKER_MAPPINGS, NM_WORKER_UNITS,	 NM_WORKER_RANGES,
	NM_WORKER_COUNT, NM_WORKER_SAMPLE,   NM_WORKER_IDENTIFY,
};
_Static_assert(NM_ARRAY_SIZE(calls) == NM_WORKER_IDENTIFY - NM_WORKER_HELLO, "each act is here");

/* A call about the other process. `ended`: a worker that is killed during the call; 0: none. */
static int do_call(struct fixture *f, enum nm_worker_caller caller, size_t which, pid_t ended)
{
	static char body[NM_WORKER_BODY_MOST];
	static struct arguments arguments;
	struct nm_worker_call call =
		make_call(calls[which], f->other, (uintptr_t)f->page, &arguments, body);
	int r = nm_worker_client_send(f->client, caller, &call);

	if (ended > 0)
		assert_int_equal(kill(ended, SIGKILL), 0);
	return await_result(f->client, caller, r);
}

/* Opens a client whose worker has answered once, and does not reach the next call. */
static pid_t begin_anew(struct fixture *f, enum nm_worker_caller caller, uint64_t deadline_ns)
{
	int r;

	do { /* again if the machine is busy */
		nm_worker_client_free(NM_TAKE(f->client));
		await_no_worker();
		open_client(f, deadline_ns);
		r = where(f, caller, getpid(), NULL);
	} while (r == -ETIMEDOUT || r == -EINPROGRESS);
	return stop_worker();
}

static void hang(struct fixture *f, enum nm_worker_caller caller, size_t which)
{
	enum nm_worker_caller other = caller == NM_WORKER_LOOP ? NM_WORKER_MOVER : NM_WORKER_LOOP;
	struct nm_worker_news news = {0};
	pid_t stopped = begin_anew(f, caller, SHORT_NS);

	assert_int_equal(do_call(f, caller, which, 0), -ETIMEDOUT);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 1);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 1);
	assert_true(nm_worker_client_news(f->client, &news));
	assert_int_equal(news.act, calls[which]);
	assert_int_equal(news.pid, f->other);
	assert_false(nm_worker_client_news(f->client, &news));
	/* Later queries about this process by any caller return at once. */
	for (size_t next = 0; next < NM_ARRAY_SIZE(calls); next++) {
		assert_int_equal(do_call(f, caller, next, 0), -EALREADY);
		assert_int_equal(do_call(f, other, next, 0), -EALREADY);
	}
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 1);
	assert_int_equal(kill(stopped, SIGKILL), 0);
	await_stuck(f, 0);
}

/* SECURITY: held-lock */
TEST(a_hanging_call_does_not_block_its_caller)
{
	struct fixture *f = *state;

	for (size_t which = 0; which < NM_ARRAY_SIZE(calls); which++) {
		hang(f, NM_WORKER_LOOP, which);
		hang(f, NM_WORKER_MOVER, which);
	}
}

/* ---- killed workers ---- */

/* It cannot be distinguished from a worker that was killed: no suspension, and the next call gets a
 * new worker. */
TEST(a_worker_exit_fails_only_the_current_call)
{
	struct fixture *f = *state;

	for (size_t which = 0; which < NM_ARRAY_SIZE(calls); which++) {
		pid_t stopped = begin_anew(f, NM_WORKER_MOVER, LONG_NS);
		assert_int_equal(do_call(f, NM_WORKER_MOVER, which, stopped), -ECONNRESET);
		assert_int_equal(nm_worker_client_counts(f->client).given_up, 0);
		assert_int_not_equal(do_call(f, NM_WORKER_MOVER, which, 0), -EALREADY);
		nm_worker_client_free(f->client);
		f->client = NULL;
		await_no_worker();
	}
}

/* ---- the greeting ---- */

/* A program that never sends its greeting has no deadline, and ends with the daemon. */
TEST(a_cancel_ends_a_greeting_under_way)
{
	struct fixture *f = *state;
	char program[] = "/tmp/nm-test-XXXXXX";
	static const char mute[] = "#!/bin/sh\nexec sleep 30 >/dev/null 2>&1\n";
	const struct nm_worker_options options = {.program = program, .proc_fd = f->proc_fd};
	struct nm_worker_call call = {.request = {.act = NM_WORKER_IDENTIFY},
				      .pid = (uint32_t)f->other};
	uint64_t until_ns;
	int fd;

	int file = mkostemp(program, O_CLOEXEC);
	assert_true(file >= 0);
	assert_int_equal(write(file, mute, sizeof(mute) - 1), sizeof(mute) - 1);
	assert_int_equal(fchmod(file, 0700), 0);
	close(file);
	nm_worker_client_new(&options, &f->client);
	assert_int_equal(nm_worker_client_send(f->client, NM_WORKER_MOVER, &call), 1);
	pause_ms(50);
	nm_worker_client_cancel(f->client, NM_WORKER_MOVER);
	assert_false(nm_worker_client_awaits(f->client, NM_WORKER_MOVER, &fd, &until_ns));
	unlink(program);
}

RUN_TESTS()

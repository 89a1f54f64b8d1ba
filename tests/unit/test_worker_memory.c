/* SPDX-License-Identifier: MIT */
/* Unresponsive processes are known to the next client and after a restart. */
#define SET_UP set_up_memory
#define TEAR_DOWN tear_down_memory
#include "../support/test.h"

#include <poll.h>
#include <stdint.h>

#include <sys/stat.h>

#include "fixture.h"
#include "platform/maps.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"
#include "worker_fixture.h"

#define BOOT "5f6e1a52-0000-4000-8000-2b1f5f0c9e11"

static char root[FIXTURE_PATH];
static int directory;

static int set_up_memory(void **state)
{
	int r = set_up(state);

	fixture_make(root, sizeof(root));
	directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fixture *f = *state;
	nm_unresponsive_list_new(&f->memory);
	return r < 0 || directory < 0 ? -1 : 0;
}

static int tear_down_memory(void **state)
{
	close(directory);
	fixture_remove(root);
	return tear_down(state);
}

/* This process has not answered a worker, which is stuck now. */
static pid_t miss(struct fixture *f)
{
	open_client(f, SHORT_NS);
	require_answers(f);
	pid_t stopped = stop_worker();
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -ETIMEDOUT);
	return stopped;
}

static uint64_t start_of(pid_t pid)
{
	struct nm_proc_stat stat;
	char path[32], text[2048];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	assert_true(nm_read_text(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_int_equal(nm_proc_parse_stat(text, &stat), 0);
	return stat.start_ticks;
}

static int load(struct fixture *f, const char *boot_id)
{
	nm_worker_client_free(f->client);
	f->client = NULL;
	nm_unresponsive_list_free(f->memory);
	nm_unresponsive_list_new(&f->memory);
	int r = nm_unresponsive_list_load(f->memory, directory, boot_id);
	open_client(f, LONG_NS);
	return r;
}

static int restart(struct fixture *f)
{
	assert_int_equal(nm_unresponsive_list_save(f->memory, directory, BOOT), 0);
	return load(f, BOOT);
}

/* SECURITY: held-lock */
TEST(a_new_client_knows_unresponsive_processes)
{
	struct fixture *f = *state;
	pid_t stopped = miss(f);

	open_client(f, LONG_NS);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 1);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 1);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), -EALREADY);
	assert_int_equal(kill(stopped, SIGCONT), 0);
	await_stuck(f, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), 0);
	assert_int_equal(where(f, NM_WORKER_MOVER, getpid(), NULL), -EALREADY);
}

/* SECURITY: held-lock */
TEST(a_restart_keeps_unresponsive_processes)
{
	struct fixture *f = *state;
	pid_t stopped = miss(f);

	assert_int_equal(restart(f), 0);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 1);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), -EALREADY);
	assert_int_equal(restart(f), 0);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 1);
	assert_int_equal(kill(stopped, SIGKILL), 0);
	await_stuck(f, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -EALREADY);
	assert_int_equal(restart(f), 0);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -EALREADY);
}

TEST(records_of_another_boot_are_dropped)
{
	struct fixture *f = *state;
	pid_t stopped = miss(f);

	assert_int_equal(nm_unresponsive_list_save(f->memory, directory, BOOT), 0);
	assert_int_equal(load(f, "another"), 0);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), 0);
	assert_int_equal(kill(stopped, SIGKILL), 0);
}

TEST(no_file_is_kept_if_all_processes_answer)
{
	struct fixture *f = *state;

	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(restart(f), 0);
	assert_int_equal(faccessat(directory, NM_WORKER_MEMORY_NAME, F_OK, 0), -1);
}

TEST(failed_writes_are_retried)
{
	static const char *const blocked[] = {NM_WORKER_MEMORY_NAME ".new/in-the-way",
					      NM_WORKER_MEMORY_NAME ".new"};
	struct fixture *f = *state;
	pid_t stopped = miss(f);

	fixture_directory(root, blocked[0]);
	assert_true(nm_unresponsive_list_save(f->memory, directory, BOOT) < 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(blocked); i++)
		assert_int_equal(unlinkat(directory, blocked[i], AT_REMOVEDIR), 0);
	assert_int_equal(nm_unresponsive_list_save(f->memory, directory, BOOT), 0);
	assert_non_null(strstr(fixture_read(root, NM_WORKER_MEMORY_NAME), "\nprocess "));
	assert_int_equal(kill(stopped, SIGKILL), 0);
}

/* A suspension that is longer than possible is ignored. */
TEST(damaged_lines_are_skipped)
{
	struct fixture *f = *state;
	const uint64_t until_ns = nm_clock_ns() + NM_WORKER_REST_NS / 2;
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "numa-migrd-unanswered 3 " BOOT "\nprocess\nworker 4294967295 1 1\n"
		       "process %d 1 18446744073709551615\nthread 1 1\nworker %d 1 0\n"
		       "process %d %llu %llu\n",
		       f->other, getpid(), getpid(), (unsigned long long)start_of(getpid()),
		       (unsigned long long)until_ns);
	fixture_file(root, NM_WORKER_MEMORY_NAME, text);
	assert_int_equal(load(f, BOOT), -EBADMSG);
	require_answers_of(f, f->other);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -EALREADY);
	fixture_file(root, NM_WORKER_MEMORY_NAME, "rubbish");
	assert_int_equal(load(f, BOOT), -EBADMSG);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), 0);
}

/* ---- identity of a number ---- */

static void write_process(pid_t pid, uint64_t start_ticks)
{
	char path[64], text[512];

	(void)snprintf(path, sizeof(path), "proc/%d/stat", pid);
	(void)snprintf(text, sizeof(text),
		       "%d (x) S 1 1 1 0 -1 0 11 0 12 0 13 14 0 0 20 0 1 0 %llu 4096 25 "
		       "18446744073709551615 1 1 7 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
		       pid, (unsigned long long)start_ticks);
	fixture_file(root, path, text);
}

/* Sends its greeting once the file "go" exists. */
static void write_slow_worker(char *path, size_t size)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "#!/bin/sh\nuntil [ -e %s/go ]; do sleep 0.01; done\nexec %s\n", root,
		       NM_WORKER_BUILT);
	fixture_file(root, "worker", text);
	(void)snprintf(path, size, "%s/worker", root);
	assert_int_equal(chmod(path, 0700), 0);
}

static int await_answer(struct nm_platform *platform, uint64_t query_id)
{
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	int r;

	while ((r = platform->ops->memory_poll(platform, query_id, &answer)) == -EAGAIN)
		pause_ms(1);
	return r < 0 ? r : answer.result;
}

/* If the caller did not know its start time: the process is the one at the time of the query. */
TEST(a_start_time_after_the_query_is_a_different_process)
{
	struct fixture *f = *state;
	char program[FIXTURE_PATH + 16];
	const uint64_t address = (uintptr_t)f->page;
	const struct nm_memory_query question = {.kind = NM_MEMORY_QUERY_WHERE,
						 .pid = (uint32_t)f->other,
						 .count = 1,
						 .addresses = &address};
	const struct nm_platform_options options = {.root_path = root, .worker_program = program};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	uint64_t query_id = 0, ticks = start_of(f->other);

	write_slow_worker(program, sizeof(program));
	write_process(f->other, ticks - 1);
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	assert_int_equal(platform->ops->memory_query(platform, &question, &query_id), 0);
	write_process(f->other, ticks);
	fixture_file(root, "go", "");
	assert_int_equal(await_answer(platform, query_id), -ESRCH);
	assert_int_equal(platform->ops->memory_query(platform, &question, &query_id), 0);
	assert_int_not_equal(await_answer(platform, query_id), -ESRCH);
}

/* Within the deadline of a call, or longer on a busy machine. */
#define READABLE_MS 20000

/* Polls only as a loop would. */
static void advance_when_readable(struct nm_platform *platform)
{
	struct pollfd ready = {.fd = platform->ops->query_fd(platform), .events = POLLIN};

	assert_int_equal(poll(&ready, 1, READABLE_MS), 1);
	platform->ops->query_progress(platform);
}

static uint64_t ask_where(struct fixture *f, struct nm_platform *platform, pid_t pid)
{
	const uint64_t address = (uintptr_t)f->page;
	const struct nm_memory_query query = {.kind = NM_MEMORY_QUERY_WHERE,
					      .pid = (uint32_t)pid,
					      .count = 1,
					      .addresses = &address};
	uint64_t query_id = 0;

	assert_int_equal(platform->ops->memory_query(platform, &query, &query_id), 0);
	return query_id;
}

/* A greeting and a call for the first query, a call for the next, and then nothing is pending. */
TEST(queries_advance_when_their_descriptor_is_readable)
{
	struct fixture *f = *state;
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	uint64_t tickets[2];

	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	tickets[0] = ask_where(f, platform, f->other);
	tickets[1] = ask_where(f, platform, getpid());
	for (unsigned i = 0; i < 3; i++)
		advance_when_readable(platform);
	struct pollfd idle = {.fd = platform->ops->query_fd(platform), .events = POLLIN};
	assert_int_equal(poll(&idle, 1, 0), 0);
	assert_int_not_equal(await_answer(platform, tickets[0]), -EALREADY);
	assert_int_not_equal(await_answer(platform, tickets[1]), -EALREADY);
}

/* SECURITY: held-lock */
TEST(a_missed_deadline_makes_it_readable_too)
{
	struct fixture *f = *state;
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;

	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	(void)await_answer(platform, ask_where(f, platform, getpid()));
	pid_t stopped = stop_worker();
	uint64_t query_id = ask_where(f, platform, f->other);
	advance_when_readable(platform);
	assert_int_equal(await_answer(platform, query_id), -ETIMEDOUT);
	/* A late answer of the worker belongs to no query, and does not keep the loop busy. */
	assert_int_equal(kill(stopped, SIGCONT), 0);
	pause_ms(100);
	platform->ops->query_progress(platform);
	struct pollfd idle = {.fd = platform->ops->query_fd(platform), .events = POLLIN};
	assert_int_equal(poll(&idle, 1, 0), 0);
}

/* In a sanitized build the other process also has the shadow of the sanitizer, terabytes in which
 * no page is found within the deadline. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SHADOW true
#endif
#endif
#ifndef HAS_SHADOW
#define HAS_SHADOW false
#endif

/* The touched pages of its own memory. */
TEST(pages_of_a_process_are_found)
{
	struct fixture *f = *state;
	const struct nm_memory_query question = {.kind = NM_MEMORY_QUERY_PAGES,
						 .pid = (uint32_t)f->other};
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	uint64_t query_id = 0;

	if (HAS_SHADOW)
		skip();
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	assert_int_equal(platform->ops->memory_query(platform, &question, &query_id), 0);
	while (platform->ops->memory_poll(platform, query_id, &answer) == -EAGAIN)
		pause_ms(1);
	assert_int_equal(answer.result, 0);
	uint64_t found = 0;
	for (unsigned i = 0; i < NM_NODE_NUMBERS; i++)
		found += answer.pages->own[i];
	assert_in_range(found, 1, 512);
	assert_false(answer.pages->whole);
}

RUN_TESTS()

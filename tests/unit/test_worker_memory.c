/* SPDX-License-Identifier: MIT */
/*
 * Unresponsive processes are known to the next client and after a restart.
 *
 *	save = 0; load = 0; restart	the list of unresponsive processes; both, and a new client
 *	platform; ask other; advance	a platform; a query; the loop, when its descriptor is
 *readable
 */
#define SET_UP set_up_memory
#define TEAR_DOWN tear_down_memory
#include "../support/test.h"

#include <poll.h>
#include <stdint.h>

#include <sys/stat.h>

#include "fixture.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"
#include "platform/maps.h"
#include "worker_words.h"

#define BOOT "5f6e1a52-0000-4000-8000-2b1f5f0c9e11"
#define READABLE_MS 20000 /* within the deadline of a call, or longer on a busy machine */

static char root[FIXTURE_PATH];
static int directory;
static struct nm_platform *platform;
static uint64_t queries[2]; /* the other process, this one */

static int set_up_memory(void **state)
{
	int r = open_fixture(state);
	fixture_make(root, sizeof(root));
	directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	nm_unresponsive_list_new(&f->memory);
	return r < 0 || directory < 0 ? -1 : 0;
}

static int tear_down_memory(void **state)
{
	nm_platform_free(NM_TAKE(platform));
	close(directory);
	fixture_remove(root);
	return tear_down(state);
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

/* ---- words ---- */

static int load(const char *boot_id)
{
	nm_worker_client_free(NM_TAKE(f->client));
	nm_unresponsive_list_free(f->memory);
	nm_unresponsive_list_new(&f->memory);
	int r = nm_unresponsive_list_load(f->memory, directory, boot_id);
	open_client(f, LONG_NS);
	return r;
}

static int save(void)
{
	return nm_unresponsive_list_save(f->memory, directory, BOOT);
}

WORD(restart)
{
	assert_int_equal(save(), 0);
	assert_int_equal(load(BOOT), 0);
}

QUANTITY(save, save())
QUANTITY(load, load(step_has(step, "another-boot") ? "another" : BOOT))
QUANTITY(has_file, faccessat(directory, NM_WORKER_MEMORY_NAME, F_OK, 0) == 0)
TEXT(file, fixture_read(root, NM_WORKER_MEMORY_NAME))

/* ---- what is remembered ---- */

/* This process has not answered a worker, which is stuck now. */
#define MISS "client short; answers; stop; where loop self = ETIMEDOUT; "

/* SECURITY: held-lock */
SCRIPT(a_new_client_knows_unresponsive_processes,
       MISS "client; stuck = 1; given_up = 1; where loop other = EALREADY; continue_it",
       "await_stuck 0; where loop other = 0; where mover self = EALREADY")

/* SECURITY: held-lock */
SCRIPT(a_restart_keeps_unresponsive_processes,
       MISS "restart; stuck = 1; where loop other = EALREADY; restart; stuck = 1; kill_it",
       "await_stuck 0; where loop other = 0; where loop self = EALREADY; restart; stuck = 0",
       "where loop self = EALREADY")

SCRIPT(records_of_another_boot_are_dropped,
       MISS "save = 0; load another-boot = 0; stuck = 0; where loop self = 0; kill_it")

SCRIPT(no_file_is_kept_if_all_processes_answer, "client; answers; restart; has_file = 0")

ACTION(block, fixture_directory(root, NM_WORKER_MEMORY_NAME ".new/in-the-way"))
ACTION(unblock,
       assert_int_equal(unlinkat(directory, NM_WORKER_MEMORY_NAME ".new/in-the-way", AT_REMOVEDIR) |
				unlinkat(directory, NM_WORKER_MEMORY_NAME ".new", AT_REMOVEDIR),
			0))

SCRIPT(failed_writes_are_retried,
       MISS "block; save < 0; unblock; save = 0; file ~ \nprocess ; kill_it")

/* A suspension that is longer than possible is ignored. */
WORD(damage)
{
	const uint64_t until_ns = nm_clock_ns() + NM_WORKER_REST_NS / 2;
	char text[512];
	(void)snprintf(text, sizeof(text),
		       "numa-migrd-unanswered 3 " BOOT "\nprocess\nworker 4294967295 1 1\n"
		       "process %d 1 18446744073709551615\nthread 1 1\nworker %d 1 0\n"
		       "process %d %llu %llu\n",
		       f->other, getpid(), getpid(), (unsigned long long)start_of(getpid()),
		       (unsigned long long)until_ns);
	fixture_file(root, NM_WORKER_MEMORY_NAME, text);
}

ACTION(write_rubbish, fixture_file(root, NM_WORKER_MEMORY_NAME, "rubbish"))

SCRIPT(damaged_lines_are_skipped,
       "damage; load = EBADMSG; answers other; stuck = 0; where loop other = 0",
       "where loop self = EALREADY; write_rubbish; load = EBADMSG; where loop self = 0")

/* ---- queries of a platform ---- */

static void open_platform(const char *proc, const char *program)
{
	const struct nm_platform_options options = {.root_path = proc, .worker_program = program};
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
}

static void query(const struct step *step, enum nm_memory_query_kind kind)
{
	const uint64_t address = (uintptr_t)f->page;
	const struct nm_memory_query question = {.kind = kind,
						 .pid = (uint32_t)pid_of(step),
						 .count = kind == NM_MEMORY_QUERY_WHERE,
						 .addresses = &address};
	assert_int_equal(
		platform->ops->memory_query(platform, &question, &queries[step_has(step, "self")]),
		0);
}

static struct nm_memory_answer await_answer(const struct step *step)
{
	struct nm_memory_answer answer = {0};
	int r;
	while ((r = platform->ops->memory_poll(platform, queries[step_has(step, "self")],
					       &answer)) == -EAGAIN)
		pause_ms(1);
	if (r < 0)
		answer.result = r;
	return answer;
}

static int await_result_of(const struct step *step)
{
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = await_answer(step);
	return answer.result;
}

static int poll_platform(int ms)
{
	struct pollfd ready = {.fd = platform->ops->query_fd(platform), .events = POLLIN};
	return poll(&ready, 1, ms);
}

/* Polls only as a loop would. */
WORD(advance)
{
	assert_int_equal(poll_platform(READABLE_MS), 1);
	platform->ops->query_progress(platform);
}

/* The other process, as /proc shows it with the given start time, in ticks before the real one. */
WORD(start_earlier)
{
	char path[64], text[512];
	(void)snprintf(path, sizeof(path), "proc/%d/stat", f->other);
	(void)snprintf(text, sizeof(text),
		       "%d (x) S 1 1 1 0 -1 0 11 0 12 0 13 14 0 0 20 0 1 0 %llu 4096 25 "
		       "18446744073709551615 1 1 7 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
		       f->other, (unsigned long long)start_of(f->other) - U(0));
	fixture_file(root, path, text);
}

/* Its worker sends its greeting once the file "go" exists. */
WORD(slow_platform)
{
	char text[1024], path[FIXTURE_PATH + 16];
	(void)snprintf(text, sizeof(text),
		       "#!/bin/sh\nuntil [ -e %s/go ]; do sleep 0.01; done\nexec %s\n", root,
		       NM_WORKER_BUILT);
	fixture_file(root, "worker", text);
	(void)snprintf(path, sizeof(path), "%s/worker", root);
	assert_int_equal(chmod(path, 0700), 0);
	open_platform(root, path);
}

ACTION(platform, open_platform("/", NM_WORKER_BUILT))
ACTION(ask, query(step, NM_MEMORY_QUERY_WHERE))
ACTION(go, fixture_file(root, "go", ""))
ACTION(late_answer, pause_ms(100); platform->ops->query_progress(platform))
QUANTITY(answer, await_result_of(step))
QUANTITY(readable, poll_platform(0))

/* If the caller did not know its start time: the process is the one at the time of the query. */
SCRIPT(a_start_time_after_the_query_is_a_different_process,
       "start_earlier 1; slow_platform; ask other; start_earlier 0; go; answer other = ESRCH",
       "ask other; answer other != ESRCH")

/* A greeting and a call for the first query, a call for the next, and then nothing is pending. */
SCRIPT(queries_advance_when_their_descriptor_is_readable, "platform; ask other; ask self",
       "each 3: advance", "readable = 0; answer other != EALREADY; answer self != EALREADY")

/* A late answer of the worker belongs to no query, and does not keep the loop busy. */
/* SECURITY: held-lock */
SCRIPT(a_missed_deadline_makes_it_readable_too,
       "platform; ask self; answer self != EALREADY; stop; ask other; advance",
       "answer other = ETIMEDOUT; continue_it; late_answer; readable = 0")

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
	const struct step other = {.word = {"other"}, .count = 1};
	uint64_t found = 0;
	if (HAS_SHADOW)
		skip();
	open_platform("/", NM_WORKER_BUILT);
	query(&other, NM_MEMORY_QUERY_PAGES);
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = await_answer(&other);
	assert_int_equal(answer.result, 0);
	for (unsigned i = 0; i < NM_NODE_NUMBERS; i++)
		found += answer.pages->own[i];
	assert_in_range(found, 1, 512);
	assert_false(answer.pages->whole);
}

RUN_TESTS()

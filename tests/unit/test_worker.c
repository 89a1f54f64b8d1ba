// SPDX-License-Identifier: MIT
/*
 * numa-migrd-worker as it was built beside the test, and the daemon's end of it. A worker whose
 * answer never comes is one that was stopped (SIGSTOP): to hold the lock of a memory map takes a
 * file system of one's own (tests/lab).
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../src/platform/worker_bars.h"
#include "fixture.h"
#include "numa-migrd/file.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/worker_serve.h"

#define SHORT_NS (200 * NM_NSEC_PER_MSEC)
#define LONG_NS (20 * NM_NSEC_PER_SEC)

struct fixture {
	struct nm_worker_client *client;
	struct nm_worker_memory *memory; /* NULL: each client has one of its own */
	int proc_fd;
	pid_t other; /* a process of our own user, which sleeps */
	char *page;  /* of ours, and of its */
};

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
}

static void open_client(struct fixture *f, uint64_t deadline_ns)
{
	const uint64_t deadlines[] = {deadline_ns, deadline_ns};
	const struct nm_worker_options options = {
		.program = NM_WORKER_BUILT,
		.deadline_ns = deadlines,
		.proc_fd = f->proc_fd,
		.memory = f->memory,
	};

	nm_worker_client_free(f->client);
	assert_int_equal(nm_worker_client_new(&options, &f->client), 0);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	f->page[0] = 1;
	f->other = fork();
	if (f->other == 0)
		for (;;)
			pause();
	*state = f;
	return f->proc_fd >= 0 && f->other > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	nm_worker_client_free(f->client);
	nm_worker_memory_free(f->memory);
	kill(f->other, SIGKILL);
	waitpid(f->other, NULL, 0);
	munmap(f->page, 4096);
	close(f->proc_fd);
	free(f);
	return 0;
}

static int where(struct fixture *f, enum nm_worker_caller caller, pid_t pid, int *ret_node)
{
	const uint64_t address = (uintptr_t)f->page;
	int node = -1;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_WHERE, .count = 1},
				      .pid = (uint32_t)pid,
				      .addresses = &address,
				      .fd = -1,
				      .body = &node,
				      .body_size = sizeof(node)};
	int r = nm_worker_client_call(f->client, caller, &call);

	if (ret_node)
		*ret_node = node;
	return r;
}

/* Our children of that name; the last of them that is in none of these states. */
static pid_t find_worker(const char *not_in, unsigned *ret_count)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	pid_t found = 0;
	unsigned count = 0;

	assert_non_null(proc);
	while ((entry = readdir(proc))) {
		char path[300], text[512], state = 0;
		int parent = 0;
		(void)snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		if (nm_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
		    !strstr(text, "(numa-migrd-work)") ||
		    sscanf(strrchr(text, ')') + 1, " %c %d", &state, &parent) != 2 ||
		    parent != getpid() || state == 'Z')
			continue;
		count++;
		if (!strchr(not_in, state))
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	closedir(proc);
	if (ret_count)
		*ret_count = count;
	return found;
}

static unsigned workers(void)
{
	unsigned count;

	(void)find_worker("", &count);
	return count;
}

/* Its next answer never comes. */
static pid_t stop_worker(void)
{
	pid_t worker = find_worker("T", NULL);

	assert_true(worker > 0);
	assert_int_equal(kill(worker, SIGSTOP), 0);
	while (find_worker("T", NULL) == worker)
		pause_ms(1);
	return worker;
}

static void await_stuck(struct fixture *f, unsigned wanted)
{
	for (unsigned i = 0; i < 20000 && nm_worker_client_counts(f->client).stuck != wanted; i++)
		pause_ms(1);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, wanted);
}

static void require_answers_of(struct fixture *f, pid_t pid)
{
	int r = where(f, NM_WORKER_LOOP, pid, NULL);

	if (r != -ENOSYS && r != -EPERM)
		return;
	print_message("this kernel answers no move_pages: skipped\n");
	skip();
}

static void require_answers(struct fixture *f)
{
	require_answers_of(f, getpid());
}

/* ---- answers ---- */

static void the_kernels_answer_comes_through(void **state)
{
	struct fixture *f = *state;
	int ours = -1, theirs = -1;

	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), &ours), 0);
	assert_true(ours >= 0);
	assert_int_equal(where(f, NM_WORKER_MOVER, f->other, &theirs), 0);
	assert_true(theirs >= 0);
	assert_int_equal(workers(), 2);
	assert_int_equal(where(f, NM_WORKER_LOOP, INT32_MAX, NULL), -ESRCH);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 0);
}

static void another_start_is_another_process(void **state)
{
	struct fixture *f = *state;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_OPEN_MAPS},
				      .pid = (uint32_t)f->other,
				      .start_ticks = 1,
				      .fd = -1};

	open_client(f, LONG_NS);
	assert_int_equal(nm_worker_client_call(f->client, NM_WORKER_LOOP, &call), -ESRCH);
	assert_int_equal(call.ret_fd, -1);
}

/* In pieces of whole lines or not, until the end. */
static void maps_are_read_to_their_end(void **state)
{
	struct fixture *f = *state;
	const size_t size = (size_t)4 << 20; /* under a sanitizer a process has thousands */
	nm_autofree char *text = calloc(1, size);
	char place[32];
	size_t used = 0;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_OPEN_MAPS, .file = NM_MAPS},
				      .pid = (uint32_t)f->other,
				      .fd = -1};

	assert_non_null(text);
	open_client(f, LONG_NS);
	assert_int_equal(nm_worker_client_call(f->client, NM_WORKER_MOVER, &call), 0);
	assert_true(call.ret_fd >= 0);
	int fd = call.fd = call.ret_fd;
	do {
		call.request = (struct nm_worker_request){.act = NM_WORKER_READ_MAPS,
							  .count = NM_WORKER_TEXT_MOST};
		call.body = text + used;
		call.body_size = NM_WORKER_TEXT_MOST;
		assert_true(used + call.body_size < size);
		assert_true(nm_worker_client_call(f->client, NM_WORKER_MOVER, &call) >= 0);
		used += call.body_size;
	} while (call.body_size > 0);
	close(fd);
	(void)snprintf(place, sizeof(place), "%lx-", (unsigned long)(uintptr_t)f->page);
	assert_non_null(strstr(text, place));
	assert_int_equal(text[used - 1], '\n');
}

static void *let_go_on(void *worker)
{
	pause_ms(300);
	assert_int_equal(kill(*(pid_t *)worker, SIGCONT), 0);
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NM_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Else a worker that is late would be taken for a process with much to read. */
static void what_the_kernel_took_is_told_without_the_way(void **state)
{
	struct fixture *f = *state;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_OPEN_MAPS},
				      .pid = (uint32_t)f->other,
				      .fd = -1};
	pthread_t thread;

	open_client(f, LONG_NS);
	assert_int_equal(nm_worker_client_call(f->client, NM_WORKER_LOOP, &call), 0);
	close(call.ret_fd);
	pid_t stopped = stop_worker();
	assert_int_equal(pthread_create(&thread, NULL, let_go_on, &stopped), 0);
	uint64_t before_ns = now_ns();
	assert_int_equal(nm_worker_client_call(f->client, NM_WORKER_LOOP, &call), 0);
	uint64_t taken_ns = now_ns() - before_ns;
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(call.ret_fd);
	assert_true(taken_ns >= 290 * NM_NSEC_PER_MSEC);
	assert_true(call.held_ns > 0);
	assert_true(call.held_ns < taken_ns - 250 * NM_NSEC_PER_MSEC);
}

/* ---- no answer ---- */

/* SECURITY: held-lock */
static void a_missed_deadline_gives_the_worker_up(void **state)
{
	struct fixture *f = *state;
	struct nm_worker_news news = {0};

	open_client(f, SHORT_NS);
	require_answers(f);
	pid_t stopped = stop_worker();
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -ETIMEDOUT);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 1);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 1);
	assert_true(nm_worker_client_news(f->client, &news));
	assert_int_equal(news.pid, getpid());
	assert_int_equal(news.uid, getuid());
	assert_int_equal(news.act, NM_WORKER_WHERE);
	assert_false(nm_worker_client_news(f->client, &news));
	/* Of this user nobody is asked meanwhile, by whichever caller. */
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), -EALREADY);
	assert_int_equal(where(f, NM_WORKER_MOVER, f->other, NULL), -EALREADY);
	/* It answers at last: others are asked again, by a new worker, and this one is not. */
	assert_int_equal(kill(stopped, SIGCONT), 0);
	await_stuck(f, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -EALREADY);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 1);
}

static void its_end_lets_others_be_asked(void **state)
{
	struct fixture *f = *state;

	open_client(f, SHORT_NS);
	require_answers(f);
	pid_t stopped = stop_worker();
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -ETIMEDOUT);
	assert_int_equal(kill(stopped, SIGKILL), 0);
	await_stuck(f, 0);
	for (unsigned i = 0; i < 20000 && find_worker("T", NULL); i++)
		pause_ms(1);
	open_client(f, LONG_NS);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), 0);
}

static void *call_mover(void *argument)
{
	struct fixture *f = argument;
	return (void *)(intptr_t)where(f, NM_WORKER_MOVER, getpid(), NULL);
}

/* A call under way, and any after it. */
static void a_stop_ends_a_call_under_way(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	void *result = NULL;

	open_client(f, LONG_NS);
	assert_true(where(f, NM_WORKER_MOVER, f->other, NULL) <= 0);
	pid_t stopped = stop_worker();
	assert_int_equal(pthread_create(&thread, NULL, call_mover, f), 0);
	pause_ms(50);
	nm_worker_client_stop(f->client, NM_WORKER_MOVER, true);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, -ECANCELED);
	assert_int_equal(where(f, NM_WORKER_MOVER, f->other, NULL), -ECANCELED);
	nm_worker_client_stop(f->client, NM_WORKER_MOVER, false);
	assert_int_not_equal(where(f, NM_WORKER_MOVER, f->other, NULL), -ECANCELED);
	assert_int_equal(kill(stopped, SIGCONT), 0);
}

/* Whether it is stuck is not known: it is no other's turn before it has answered, and nobody rests. */
/* SECURITY: held-lock */
static void a_cancelled_call_counts_until_it_is_answered(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;

	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(where(f, NM_WORKER_MOVER, f->other, NULL), 0);
	pid_t stopped = stop_worker();
	assert_int_equal(pthread_create(&thread, NULL, call_mover, f), 0);
	pause_ms(50);
	nm_worker_client_stop(f->client, NM_WORKER_MOVER, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 1);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), -EALREADY);
	assert_int_equal(kill(stopped, SIGCONT), 0);
	await_stuck(f, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), 0);
}

/* ---- what outlives a client ---- */

#define BOOT "5f6e1a52-0000-4000-8000-2b1f5f0c9e11"

static char root[FIXTURE_PATH];
static int directory;

static int set_up_memory(void **state)
{
	int r = set_up(state);

	fixture_make(root, sizeof(root));
	directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fixture *f = *state;
	return r < 0 || directory < 0 ? -1 : nm_worker_memory_new(&f->memory);
}

static int tear_down_memory(void **state)
{
	close(directory);
	fixture_remove(root);
	return tear_down(state);
}

/* We have not answered a worker, which is stuck now. */
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
	nm_worker_memory_free(f->memory);
	assert_int_equal(nm_worker_memory_new(&f->memory), 0);
	int r = nm_worker_memory_load(f->memory, directory, boot_id);
	open_client(f, LONG_NS);
	return r;
}

static int restart(struct fixture *f)
{
	assert_int_equal(nm_worker_memory_save(f->memory, directory, BOOT), 0);
	return load(f, BOOT);
}

/* SECURITY: held-lock */
static void a_new_client_forgets_nobody(void **state)
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
static void a_restart_forgets_nobody(void **state)
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

static void another_boot_has_other_processes(void **state)
{
	struct fixture *f = *state;
	pid_t stopped = miss(f);

	assert_int_equal(nm_worker_memory_save(f->memory, directory, BOOT), 0);
	assert_int_equal(load(f, "another"), 0);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), 0);
	assert_int_equal(kill(stopped, SIGKILL), 0);
}

static void where_all_answer_there_is_no_file(void **state)
{
	struct fixture *f = *state;

	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(restart(f), 0);
	assert_int_equal(faccessat(directory, NM_WORKER_MEMORY_NAME, F_OK, 0), -1);
}

static void what_cannot_be_written_is_tried_again(void **state)
{
	static const char *const in_the_way[] = {NM_WORKER_MEMORY_NAME ".new/in-the-way",
						 NM_WORKER_MEMORY_NAME ".new"};
	struct fixture *f = *state;
	pid_t stopped = miss(f);

	fixture_directory(root, in_the_way[0]);
	assert_true(nm_worker_memory_save(f->memory, directory, BOOT) < 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(in_the_way); i++)
		assert_int_equal(unlinkat(directory, in_the_way[i], AT_REMOVEDIR), 0);
	assert_int_equal(nm_worker_memory_save(f->memory, directory, BOOT), 0);
	assert_non_null(strstr(fixture_read(root, NM_WORKER_MEMORY_NAME), "\nprocess "));
	assert_int_equal(kill(stopped, SIGKILL), 0);
}

/* A rest that is longer than any is none of ours. */
static void damaged_lines_are_skipped(void **state)
{
	struct fixture *f = *state;
	const uint64_t until_ns = now_ns() + NM_WORKER_REST_NS / 2;
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "numa-migrd-unanswered 1 " BOOT "\nprocess\nworker %d 1 4294967296\n"
		       "process %d 1 18446744073709551615\nthread 1 1 1\nworker %d 1 0\n"
		       "process %d %llu %llu\n",
		       getpid(), f->other, getpid(), getpid(),
		       (unsigned long long)start_of(getpid()),
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

static void workers_end_with_their_client(void **state)
{
	struct fixture *f = *state;

	open_client(f, LONG_NS);
	(void)where(f, NM_WORKER_LOOP, f->other, NULL);
	(void)where(f, NM_WORKER_MOVER, f->other, NULL);
	assert_int_equal(workers(), 2);
	nm_worker_client_free(f->client);
	f->client = NULL;
	for (unsigned i = 0; i < 20000 && workers() > 0; i++)
		pause_ms(1);
	assert_int_equal(workers(), 0);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void without_a_worker_nothing_is_asked(void **state)
{
	struct fixture *f = *state;
	const struct nm_worker_options options = {.program = "/nonexistent/worker",
						  .proc_fd = f->proc_fd};
	struct nm_worker_news news = {0};

	assert_int_equal(nm_worker_client_new(&options, &f->client), 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -ENOENT);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -ENOENT);
	assert_true(nm_worker_client_news(f->client, &news));
	assert_int_equal(news.pid, 0);
	assert_int_equal(news.error, -ENOENT);
	assert_false(nm_worker_client_news(f->client, &news));
}

/* ---- whose number it is ---- */

static void write_process(pid_t pid, uint64_t start_ticks)
{
	char path[64], text[512];

	(void)snprintf(path, sizeof(path), "proc/%d/stat", pid);
	(void)snprintf(text, sizeof(text),
		       "%d (x) S 1 1 1 0 -1 0 11 0 12 0 13 14 0 0 20 0 1 0 %llu 4096 25 "
		       "18446744073709551615 1 1 7 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
		       pid, (unsigned long long)start_ticks);
	fixture_file(root, path, text);
	(void)snprintf(path, sizeof(path), "proc/%d/status", pid);
	(void)snprintf(text, sizeof(text), "Name:\tx\nTgid:\t%d\nUid:\t7\t7\t7\t7\n", pid);
	fixture_file(root, path, text);
}

/* Says its first word once there is a file "go". */
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

static int await_answer(struct nm_platform *platform, uint64_t ticket)
{
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	int r;

	while ((r = platform->ops->take(platform, ticket, &answer)) == -EAGAIN)
		pause_ms(1);
	return r < 0 ? r : answer.result;
}

/* Also where the asker did not know its start: it is whose it was when it was asked for. */
static void another_start_since_the_question_is_another_process(void **state)
{
	struct fixture *f = *state;
	char program[FIXTURE_PATH + 16];
	const uint64_t address = (uintptr_t)f->page;
	const struct nm_question question = {.kind = NM_QUESTION_WHERE,
					     .pid = (uint32_t)f->other,
					     .count = 1,
					     .addresses = &address};
	const struct nm_platform_options options = {.root_path = root, .worker_program = program};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	uint64_t ticket = 0, ticks = start_of(f->other);

	write_slow_worker(program, sizeof(program));
	write_process(f->other, ticks - 1);
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	assert_int_equal(platform->ops->ask(platform, &question, &ticket), 0);
	write_process(f->other, ticks);
	fixture_file(root, "go", "");
	assert_int_equal(await_answer(platform, ticket), -ESRCH);
	assert_int_equal(platform->ops->ask(platform, &question, &ticket), 0);
	assert_int_not_equal(await_answer(platform, ticket), -ESRCH);
}

/* ---- who may be asked ---- */

static struct nm_worker_subject subject(uint32_t pid, uint32_t uid)
{
	return (struct nm_worker_subject){
		.tid = pid, .pid = pid, .uid = uid, .start_ticks = 7, .tid_ticks = 7};
}

static bool may_ask(const struct nm_worker_bars *bars, uint32_t pid, uint32_t uid, uint64_t now_ns)
{
	const struct nm_worker_subject who = subject(pid, uid);
	return nm_worker_may_ask(bars, &who, 0, now_ns);
}

/* SECURITY: held-lock */
static void at_most_one_is_stuck_for_each_user_and_eight_in_all(void **state)
{
	nm_autofree struct nm_worker_bars *bars = calloc(1, sizeof(*bars));
	const uint64_t late = 2 * NM_WORKER_REST_NS;

	(void)state;
	for (uint32_t uid = 1; uid <= NM_WORKER_STUCK_MOST; uid++) {
		assert_true(may_ask(bars, 200 + uid, uid, late));
		nm_worker_stuck(bars, uid);
		assert_false(may_ask(bars, 200 + uid, uid, late));
		assert_int_equal(may_ask(bars, 300, 99, late), uid < NM_WORKER_STUCK_MOST);
	}
	nm_worker_released(bars, 3);
	assert_true(may_ask(bars, 203, 3, late) && may_ask(bars, 300, 99, late));
	assert_false(may_ask(bars, 204, 4, late));
	const struct nm_worker_subject who = subject(300, 99);
	assert_false(nm_worker_may_ask(bars, &who, 1, late)); /* the other caller's may get stuck */
}

static void who_missed_a_deadline_rests_for_ten_minutes(void **state)
{
	nm_autofree struct nm_worker_bars *bars = calloc(1, sizeof(*bars));
	struct nm_worker_subject who = subject(100, 1);

	(void)state;
	nm_worker_missed(bars, 100, 7, NM_WORKER_REST_NS + 5);
	assert_true(may_ask(bars, 101, 1, 6));
	assert_false(may_ask(bars, 100, 1, 6));
	assert_false(may_ask(bars, 100, 1, NM_WORKER_REST_NS + 4));
	assert_true(may_ask(bars, 100, 1, NM_WORKER_REST_NS + 5));
	who.start_ticks++; /* another process by now */
	assert_true(nm_worker_may_ask(bars, &who, 0, 6));
}

/* ---- the program ---- */

static int run(const char *option)
{
	char command[512];
	(void)snprintf(command, sizeof(command), NM_WORKER_BUILT " %s >/dev/null 2>&1 </dev/null",
		       option);
	int status = system(command); /* NOLINT(cert-env33-c): our own program, fixed words */
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void the_program_is_for_its_socket_alone(void **state)
{
	(void)state;
	assert_int_equal(run("--help"), EXIT_SUCCESS);
	assert_int_equal(run("--version"), EXIT_SUCCESS);
	assert_int_equal(run("--nonsense"), EX_USAGE);
	assert_int_equal(run("now"), EX_USAGE);
	assert_int_equal(run(""), EX_USAGE);
}

static pid_t start_worker(int *ret_socket)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid_t child = fork();
	if (child == 0) {
		if (dup2(ends[1], STDIN_FILENO) < 0)
			_exit(99);
		alarm(60);
		execl(NM_WORKER_BUILT, NM_WORKER_BUILT, NULL);
		_exit(98);
	}
	close(ends[1]);
	*ret_socket = ends[0];
	return child;
}

/* What is no request ends the connection, and the worker with it. */
/* SECURITY: worker-socket */
static void a_malformed_request_ends_it(void **state)
{
	int socket, status;
	char rest;

	(void)state;
	pid_t child = start_worker(&socket);
	assert_int_equal(send(socket, "nonsense", 8, MSG_NOSIGNAL), 8);
	assert_true(recv(socket, &rest, 1, 0) <= 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
	close(socket);
}

static const char *proc_text(pid_t pid, const char *name)
{
	static char text[32768];
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	assert_true(nm_read_text(AT_FDCWD, path, text, sizeof(text)) > 0);
	return text;
}

static bool own_namespace(pid_t pid)
{
	char path[64], theirs[64] = "", ours[64] = "";
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return readlink(path, theirs, sizeof(theirs) - 1) > 0 &&
	       readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) > 0 &&
	       strcmp(ours, theirs) != 0;
}

/* Before it reads its first request: of what root has, CAP_SYS_PTRACE stays; in its own /proc no
 * link leads anywhere, and in ours they do. */
/* SECURITY: cap-ptrace */
static void it_gives_up_all_but_ptrace(void **state)
{
	const struct nm_worker_request hello = {.version = NM_WORKER_VERSION,
						.act = NM_WORKER_HELLO};
	struct nm_worker_reply reply;
	int socket;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root, to have something to give up: skipped\n");
		skip();
	}
	pid_t child = start_worker(&socket);
	assert_int_equal(send(socket, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(recv(socket, &reply, sizeof(reply), 0), sizeof(reply));
	assert_int_equal(reply.result, child);
	assert_non_null(strstr(proc_text(child, "status"), "CapPrm:\t0000000000080000"));
	assert_non_null(strstr(proc_text(child, "status"), "CapEff:\t0000000000080000"));
	assert_non_null(strstr(proc_text(child, "status"), "NoNewPrivs:\t1"));
	if (own_namespace(child))
		assert_non_null(strstr(proc_text(child, "mountinfo"), "nosymfollow"));
	else
		print_message("a namespace cannot be had here: links were not looked at\n");
	assert_null(strstr(proc_text(getpid(), "mountinfo"), "nosymfollow"));
	close(socket);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A descriptor of anything else is neither read nor written. */
/* SECURITY: worker-socket, cap-ptrace */
static void only_its_own_files_are_used(void **state)
{
	static const uint32_t acts[] = {NM_WORKER_READ_MAPS, NM_WORKER_CLEAR_REFS};
	struct fixture *f = *state;
	char path[] = "/tmp/nm-clear_refs-XXXXXX", text[64];
	int file = mkstemp(path), memory = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	assert_true(file >= 0 && memory >= 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(acts); i++) {
		struct nm_worker_order order = {
			.request = {.version = NM_WORKER_VERSION, .act = acts[i], .count = 16}};
		struct nm_worker_outcome outcome;
		nm_worker_perform(f->proc_fd, &order, file, text, &outcome);
		assert_int_equal(outcome.result, -EPERM);
		nm_worker_perform(f->proc_fd, &order, memory, text, &outcome);
		assert_int_equal(outcome.result, -EPERM);
		assert_int_equal(outcome.bytes, 0);
	}
	assert_int_equal(lseek(file, 0, SEEK_END), 0);
	close(file);
	close(memory);
	unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define WITH_MEMORY(name)                                                                          \
	cmocka_unit_test_setup_teardown(name, set_up_memory, tear_down_memory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_kernels_answer_comes_through),
		TEST(another_start_is_another_process),
		TEST(maps_are_read_to_their_end),
		TEST(what_the_kernel_took_is_told_without_the_way),
		TEST(a_missed_deadline_gives_the_worker_up),
		TEST(its_end_lets_others_be_asked),
		TEST(a_stop_ends_a_call_under_way),
		TEST(a_cancelled_call_counts_until_it_is_answered),
		WITH_MEMORY(a_new_client_forgets_nobody),
		WITH_MEMORY(a_restart_forgets_nobody),
		WITH_MEMORY(another_boot_has_other_processes),
		WITH_MEMORY(where_all_answer_there_is_no_file),
		WITH_MEMORY(what_cannot_be_written_is_tried_again),
		WITH_MEMORY(damaged_lines_are_skipped),
		WITH_MEMORY(another_start_since_the_question_is_another_process),
		TEST(workers_end_with_their_client),
		TEST(without_a_worker_nothing_is_asked),
		cmocka_unit_test(at_most_one_is_stuck_for_each_user_and_eight_in_all),
		cmocka_unit_test(who_missed_a_deadline_rests_for_ten_minutes),
		cmocka_unit_test(the_program_is_for_its_socket_alone),
		cmocka_unit_test(a_malformed_request_ends_it),
		cmocka_unit_test(it_gives_up_all_but_ptrace),
		TEST(only_its_own_files_are_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

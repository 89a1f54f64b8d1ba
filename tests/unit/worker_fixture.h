/* SPDX-License-Identifier: MIT */
/*
 * The numa-migrd-worker built beside the test, and the client of the daemon. A worker that never
 * answers is simulated by stopping it (SIGSTOP): holding the lock of a memory map would require a
 * special file system (tests/lab). Include after cmocka.h.
 */
#ifndef NM_TEST_WORKER_FIXTURE_H
#define NM_TEST_WORKER_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "platform/worker.h"

#define SHORT_NS                                                                                   \
	(500 * NM_NSEC_PER_MSEC) /* a busy machine delays the test itself by up to 0.2 s           \
				  */
#define LONG_NS (20 * NM_NSEC_PER_SEC)

struct fixture {
	struct nm_worker_client *client;
	struct nm_unresponsive_list *memory; /* NULL: each client has a separate one */
	int proc_fd;
	pid_t other; /* a sleeping process of the same user */
	char *page;  /* of this process, and of the other */
};

static inline void pause_ms(unsigned ms)
{
	const struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	(void)nanosleep(&span, NULL);
}

static inline void open_client(struct fixture *f, uint64_t deadline_ns)
{
	const struct nm_worker_options options = {
		.program = NM_WORKER_BUILT,
		.deadline_ns = deadline_ns,
		.proc_fd = f->proc_fd,
		.memory = f->memory,
	};

	nm_worker_client_free(f->client);
	nm_worker_client_new(&options, &f->client);
}

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	f->page[0] = 1;
	f->other = fork();
	if (f->other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if a test fails */
		for (;;)
			pause();
	}
	*state = f;
	return f->proc_fd >= 0 && f->other > 0 ? 0 : -1;
}

/* Waits for the result of an operation that returned `r`. */
static inline int await_result(struct nm_worker_client *client, enum nm_worker_caller caller, int r)
{
	struct pollfd end = {.events = POLLIN};
	uint64_t until_ns;

	if (r <= 0)
		return r;
	do {
		assert_true(nm_worker_client_awaits(client, caller, &end.fd, &until_ns));
		uint64_t now_ns = nm_clock_ns();
		uint64_t left_ns = now_ns < until_ns ? until_ns - now_ns : 0;
		(void)poll(&end, 1, (int)(left_ns / NM_NSEC_PER_MSEC) + 1);
	} while (!nm_worker_client_receive(client, caller, &r));
	return r;
}

static inline int call_worker(struct nm_worker_client *client, enum nm_worker_caller caller,
			      struct nm_worker_call *call)
{
	return await_result(client, caller, nm_worker_client_send(client, caller, call));
}

/* The arguments of each job, about one page. */
struct arguments {
	struct nm_mappings_order mappings;
	struct nm_units_order units;
	struct nm_ranges_order ranges;
	uint64_t address;
};

/* Makes a call of this kind about the page at `address`; `ret` has its arguments. */
static inline struct nm_worker_call make_call(enum nm_worker_act act, pid_t pid, uint64_t address,
					      struct arguments *ret, void *body)
{
	struct nm_worker_call call = {.request = {.act = act, .count = act == NM_WORKER_WHERE},
				      .pid = (uint32_t)pid,
				      .body = body,
				      .body_size = NM_WORKER_BODY_MOST};

	ret->address = address;
	ret->mappings = (struct nm_mappings_order){.budget_ns = NM_NSEC_PER_SEC, .begin = 1};
	ret->units = (struct nm_units_order){
		.count = 1,
		.pages_most = 1,
		.nr_rooms = 1,
		.slow_ns = LONG_NS,
		.rooms = {{.node = 0, .memory = 1 << 20}},
		.units = {{address, 1, NM_UNIT_BASE, -1, 0}},
	};
	ret->ranges = (struct nm_ranges_order){
		.count = 1,
		.page_bytes = 4096,
		.pages_most = 1024,
		.bytes_most = UINT64_MAX,
		.slow_ns = LONG_NS,
		.search_ns = LONG_NS,
		.room = {.node = 0, .memory = UINT64_MAX},
		.ranges = {{address, address + 4096, 0}},
	};
	const struct {
		const void *start;
		size_t size;
	} arguments[NM_WORKER_IDENTIFY + 1] = {
		[NM_WORKER_WHERE] = {&ret->address, sizeof(ret->address)},
		[NM_WORKER_MAPPINGS] = {&ret->mappings, sizeof(ret->mappings)},
		[NM_WORKER_UNITS] = {&ret->units, NM_UNITS_ORDER_BYTES(1)},
		[NM_WORKER_RANGES] = {&ret->ranges, NM_RANGES_ORDER_BYTES(1)},
	};
	call.arguments = arguments[act].start;
	call.arguments_size = arguments[act].size;
	return call;
}

static inline int where(struct fixture *f, enum nm_worker_caller caller, pid_t pid, int *ret_node)
{
	const uint64_t address = (uintptr_t)f->page;
	int node = -1;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_WHERE, .count = 1},
				      .pid = (uint32_t)pid,
				      .arguments = &address,
				      .arguments_size = sizeof(address),
				      .body = &node,
				      .body_size = sizeof(node)};
	int r = call_worker(f->client, caller, &call);

	if (ret_node)
		*ret_node = node;
	return r;
}

/* Our children of that name; returns the last one that is in none of these states. */
static inline pid_t find_worker(const char *not_in, unsigned *ret_count)
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

static inline unsigned workers(void)
{
	unsigned count;

	(void)find_worker("", &count);
	return count;
}

/* They exit without a signal, which may take a while on a busy machine. */
static inline void await_no_worker(void)
{
	const uint64_t end_ns = nm_clock_ns() + LONG_NS;

	while (workers() > 0 && nm_clock_ns() < end_ns)
		pause_ms(1);
	assert_int_equal(workers(), 0);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	nm_worker_client_free(f->client);
	nm_unresponsive_list_free(f->memory);
	await_no_worker();
	kill(f->other, SIGKILL);
	waitpid(f->other, NULL, 0);
	munmap(f->page, 4096);
	close(f->proc_fd);
	free(f);
	return 0;
}

/* Its next answer never arrives. */
static inline pid_t stop_worker(void)
{
	pid_t worker = find_worker("T", NULL);

	assert_true(worker > 0);
	assert_int_equal(kill(worker, SIGSTOP), 0);
	while (find_worker("T", NULL) == worker)
		pause_ms(1);
	return worker;
}

static inline void await_stuck(struct fixture *f, unsigned wanted)
{
	for (unsigned i = 0; i < 20000 && nm_worker_client_counts(f->client).stuck != wanted; i++)
		pause_ms(1);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, wanted);
}

static inline void require_answers_of(struct fixture *f, pid_t pid)
{
	int r = where(f, NM_WORKER_LOOP, pid, NULL);

	if (r != -ENOSYS && r != -EPERM)
		return;
	print_message("this kernel answers no move_pages: skipped\n");
	skip();
}

static inline void require_answers(struct fixture *f)
{
	require_answers_of(f, getpid());
}

#endif

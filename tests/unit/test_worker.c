/* SPDX-License-Identifier: MIT */
/* Answers of a worker, errors without one, limits of queries, and the program itself. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "../../src/platform/fds.h"
#include "../../src/platform/worker/query.h"
#include "../../src/platform/worker/serve.h"
#include "../../src/platform/worker_memory.h"
#include "fixture.h"
#include "numa-migrd/proc.h"
#include "worker_fixture.h"

/* ---- answers ---- */

TEST(the_answer_of_the_kernel_is_returned)
{
	struct fixture *f = *state;
	int ours = -1, other_client = -1;

	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), &ours), 0);
	assert_true(ours >= 0);
	assert_int_equal(where(f, NM_WORKER_MOVER, f->other, &other_client), 0);
	assert_true(other_client >= 0);
	assert_int_equal(workers(), 2);
	assert_int_equal(where(f, NM_WORKER_LOOP, INT32_MAX, NULL), -ESRCH);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 0);
}

static int find(struct fixture *f, const struct nm_worker_range *ranges, uint32_t count,
		struct nm_worker_found *ret)
{
	struct nm_worker_call call = {
		.request = {.act = NM_WORKER_FIND, .count = count, .budget_ns = LONG_NS},
		.pid = (uint32_t)getpid(),
		.ranges = ranges,
		.fd = -1,
		.body = ret,
		.body_size = sizeof(*ret)};

	return call_worker(f->client, NM_WORKER_MOVER, &call);
}

/* The few touched pages of a large mapping, and the node of each. */
TEST(pages_in_memory_are_found)
{
	struct fixture *f = *state;
	const size_t size = (size_t)64 << 20, touched[] = {0, 4096, 17 << 20, size - 4096};
	nm_autofree struct nm_worker_found *found = calloc(1, sizeof(*found));
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(madvise(memory, size, MADV_NOHUGEPAGE), 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(touched); i++)
		memory[touched[i]] = 1;
	const uint64_t start = (uintptr_t)memory;
	const struct nm_worker_range ranges[] = {{start, start + 8192, 4096, 0},
						 {start + 8192, start + size, 4096, 0}};
	open_client(f, LONG_NS);
	assert_int_equal(find(f, ranges, 2, found), 0);
	assert_int_equal(found->count, NM_ARRAY_SIZE(touched));
	assert_int_equal(found->next, start + size);
	for (size_t i = 0; i < NM_ARRAY_SIZE(touched); i++) {
		assert_int_equal(found->addresses[i], start + touched[i]);
		assert_true(found->nodes[i] >= 0);
	}
	munmap(memory, size);
}

/* The rest of the mapping is not searched: pages there are newer. */
/* SECURITY: sparse */
TEST(a_search_ends_with_the_last_page)
{
	struct fixture *f = *state;
	const size_t size = (size_t)64 << 20;
	nm_autofree struct nm_worker_found *found = calloc(1, sizeof(*found));
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(madvise(memory, size, MADV_NOHUGEPAGE), 0);
	memory[4096] = memory[size - 4096] = 1;
	const uint64_t start = (uintptr_t)memory;
	const struct nm_worker_range range = {start, start + size, 4096, 1};
	open_client(f, LONG_NS);
	assert_int_equal(find(f, &range, 1, found), 0);
	assert_int_equal(found->count, 1);
	assert_int_equal(found->addresses[0], start + 4096);
	assert_int_equal(found->next, start + size);
	munmap(memory, size);
}

/* It searches absent pages for longer than its deadline. */
/* SECURITY: held-lock */
TEST(a_busy_worker_is_not_awaited)
{
	struct fixture *f = *state;
	const size_t size = (size_t)1 << 38;
	nm_autofree struct nm_worker_found *found = calloc(1, sizeof(*found));
	char *memory =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	const struct nm_worker_range range = {(uintptr_t)memory, (uintptr_t)memory + size, 4096, 0};
	struct nm_worker_call call = {
		.request = {.act = NM_WORKER_FIND, .count = 1, .budget_ns = 3 * NM_NSEC_PER_SEC},
		.pid = (uint32_t)getpid(),
		.ranges = &range,
		.fd = -1,
		.body = found,
		.body_size = sizeof(*found)};
	open_client(f, 400 * NM_NSEC_PER_MSEC);
	assert_int_equal(call_worker(f->client, NM_WORKER_MOVER, &call), -EINPROGRESS);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 0);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 1);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), -EINPROGRESS);
	await_stuck(f, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), 0);
	munmap(memory, size);
}

/* Pages beyond the size of the answer are found by the next search, which starts where this one
 * ended. */
TEST(a_search_resumes)
{
	struct fixture *f = *state;
	const size_t pages = NM_WORKER_PAGES_MOST + 10;
	nm_autofree struct nm_worker_found *found = calloc(1, sizeof(*found));
	char *memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	memset(memory, 1, pages * 4096);
	struct nm_worker_range range = {(uintptr_t)memory, (uintptr_t)memory + pages * 4096, 4096,
					0};
	open_client(f, LONG_NS);
	assert_int_equal(find(f, &range, 1, found), 0);
	assert_int_equal(found->count, NM_WORKER_PAGES_MOST);
	assert_int_equal(found->next, range.start + (uint64_t)NM_WORKER_PAGES_MOST * 4096);
	range.start = found->next;
	assert_int_equal(find(f, &range, 1, found), 0);
	assert_int_equal(found->count, 10);
	assert_int_equal(found->next, range.end);
	munmap(memory, pages * 4096);
}

/* The worker rejects the request and closes the connection. */
TEST(only_ranges_of_whole_pages_are_searched)
{
	struct fixture *f = *state;
	nm_autofree struct nm_worker_found *found = calloc(1, sizeof(*found));
	static const struct nm_worker_range bad[][2] = {
		{{0, 0, 4096, 0}, {4096, 8192, 4096, 0}},		    /* empty */
		{{4096, 8192, 4096, 0}, {4096, 12288, 4096, 0}},	    /* not ascending */
		{{0, 4096, 4095, 0}, {4096, 8192, 4096, 0}},		    /* no page size */
		{{0, 4096, 0, 0}, {4096, 8192, 4096, 0}},		    /* none */
		{{4096, 2 << 20, 2 << 20, 0}, {2 << 20, 4 << 20, 4096, 0}}, /* not at a boundary */
		{{0, 4097, 4096, 0}, {8192, 12288, 4096, 0}},		    /* part of a page */
		{{0, 4096, 4096, 0}, {4096, UINT64_MAX - 4095, 4096, 0}},   /* in kernel space */
	};

	open_client(f, LONG_NS);
	for (size_t i = 0; i < NM_ARRAY_SIZE(bad); i++)
		assert_true(find(f, bad[i], 2, found) < 0);
	const struct nm_worker_range good = {4096, 8192, 4096, 0};
	assert_int_equal(find(f, &good, 1, found), 0);
	assert_int_equal(found->count, 0);
}

/* A query about this process. */
static struct nm_job own_job(struct fixture *f, struct nm_worker_request *request, int socket,
			     uint64_t for_ns)
{
	struct nm_proc_stat stat;

	assert_int_equal(nm_proc_stat_at(f->proc_fd, "self/stat", &stat), 0);
	*request = (struct nm_worker_request){.pid = getpid(), .start_ticks = stat.start_ticks};
	return (struct nm_job){f->proc_fd, socket, request, nm_clock_ns() + for_ns};
}

/* SECURITY: held-lock */
TEST(a_query_makes_no_call_after_its_time)
{
	struct fixture *f = *state;
	struct nm_worker_request request;
	struct nm_node_pages pages;
	const struct nm_job job = own_job(f, &request, -1, 0);

	assert_int_equal(nm_query_count(&job, &pages), -ETIMEDOUT);
	assert_int_equal(nm_query_sample(&job, &pages), -ETIMEDOUT);
	assert_int_equal(nm_query_program(&job), -ETIMEDOUT);
}

TEST(a_query_ends_with_its_client)
{
	struct fixture *f = *state;
	struct nm_worker_request request;
	struct nm_node_pages pages;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	const struct nm_job job = own_job(f, &request, ends[1], LONG_NS);
	assert_int_equal(nm_query_program(&job), 0);
	close(ends[0]);
	assert_int_equal(nm_query_count(&job, &pages), -ECANCELED);
	assert_int_equal(nm_query_sample(&job, &pages), -ECANCELED);
	assert_int_equal(nm_query_program(&job), -ECANCELED);
	close(ends[1]);
}

/* SECURITY: reuse */
TEST(a_query_names_no_other_process)
{
	struct fixture *f = *state;
	struct nm_worker_request request;
	struct nm_node_pages pages;
	const struct nm_job job = own_job(f, &request, -1, LONG_NS);

	request.start_ticks++;
	assert_int_equal(nm_query_count(&job, &pages), -ESRCH);
	assert_int_equal(nm_query_sample(&job, &pages), -ESRCH);
	assert_int_equal(nm_query_program(&job), -ESRCH);
}

TEST(a_different_start_time_is_a_different_process)
{
	struct fixture *f = *state;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_OPEN_MAPS},
				      .pid = (uint32_t)f->other,
				      .start_ticks = 1,
				      .fd = -1};

	open_client(f, LONG_NS);
	assert_int_equal(call_worker(f->client, NM_WORKER_LOOP, &call), -ESRCH);
	assert_int_equal(call.ret_fd, -1);
}

/* It may be merged with an adjacent mapping. */
static bool is_mapped(const char *maps, uintptr_t address)
{
	uintptr_t start;
	uintptr_t end;

	for (const char *line = maps;
	     line && sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2;) {
		if (start <= address && address < end)
			return true;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

/* In pieces of whole lines or not, until the end. */
TEST(maps_are_read_to_their_end)
{
	struct fixture *f = *state;
	const size_t size = (size_t)4 << 20; /* with a sanitizer a process has thousands */
	nm_autofree char *text = calloc(1, size);
	size_t used = 0;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_OPEN_MAPS, .file = NM_MAPS},
				      .pid = (uint32_t)f->other,
				      .fd = -1};

	assert_non_null(text);
	open_client(f, LONG_NS);
	assert_int_equal(call_worker(f->client, NM_WORKER_MOVER, &call), 0);
	assert_true(call.ret_fd >= 0);
	int fd = call.fd = call.ret_fd;
	do {
		call.request = (struct nm_worker_request){.act = NM_WORKER_READ_MAPS,
							  .count = NM_WORKER_TEXT_MOST};
		call.body = text + used;
		call.body_size = NM_WORKER_TEXT_MOST;
		assert_true(used + call.body_size < size);
		assert_true(call_worker(f->client, NM_WORKER_MOVER, &call) >= 0);
		used += call.body_size;
	} while (call.body_size > 0);
	close(fd);
	assert_true(is_mapped(text, (uintptr_t)f->page));
	assert_int_equal(text[used - 1], '\n');
}

/* Otherwise a late worker would look like a process with large mappings. */
TEST(kernel_time_excludes_the_transport)
{
	struct fixture *f = *state;
	struct nm_worker_call call = {
		.request = {.act = NM_WORKER_OPEN_MAPS}, .pid = (uint32_t)f->other, .fd = -1};

	open_client(f, LONG_NS);
	assert_int_equal(call_worker(f->client, NM_WORKER_LOOP, &call), 0);
	close(call.ret_fd);
	pid_t stopped = stop_worker();
	uint64_t before_ns = nm_clock_ns();
	assert_int_equal(nm_worker_client_send(f->client, NM_WORKER_LOOP, &call), 1);
	pause_ms(300);
	assert_int_equal(kill(stopped, SIGCONT), 0);
	assert_int_equal(await_result(f->client, NM_WORKER_LOOP, 1), 0);
	uint64_t taken_ns = nm_clock_ns() - before_ns;
	close(call.ret_fd);
	assert_true(taken_ns >= 290 * NM_NSEC_PER_MSEC);
	assert_true(call.held_ns > 0);
	assert_true(call.held_ns < taken_ns - 250 * NM_NSEC_PER_MSEC);
}

/* ---- no answer ---- */

/* SECURITY: held-lock */
TEST(a_missed_deadline_abandons_the_worker)
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
	/* No process of this user is queried meanwhile by any caller. */
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), -EALREADY);
	assert_int_equal(where(f, NM_WORKER_MOVER, f->other, NULL), -EALREADY);
	/* It finally answers: queries of the user continue with a new worker instead of this
	 * one. */
	assert_int_equal(kill(stopped, SIGCONT), 0);
	await_stuck(f, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -EALREADY);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 1);
}

TEST(the_exit_of_a_stuck_worker_frees_its_place)
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

/* A call of the mover in progress. */
struct pending {
	uint64_t address;
	int node;
	struct nm_worker_call call;
};

static void begin_call(struct fixture *f, struct pending *ret)
{
	ret->address = (uintptr_t)f->page;
	ret->call = (struct nm_worker_call){.request = {.act = NM_WORKER_WHERE, .count = 1},
					    .pid = (uint32_t)getpid(),
					    .addresses = &ret->address,
					    .fd = -1,
					    .body = &ret->node,
					    .body_size = sizeof(ret->node)};
	assert_int_equal(nm_worker_client_send(f->client, NM_WORKER_MOVER, &ret->call), 1);
}

/* It is unknown whether the worker is stuck: it is not used for others before it has answered, and
 * its user is not suspended. */
/* SECURITY: held-lock */
TEST(a_cancelled_call_counts_until_it_is_answered)
{
	struct fixture *f = *state;
	struct pending pending;
	uint64_t until_ns;
	int fd;

	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(where(f, NM_WORKER_MOVER, f->other, NULL), 0);
	pid_t stopped = stop_worker();
	begin_call(f, &pending);
	nm_worker_client_cancel(f->client, NM_WORKER_MOVER);
	assert_false(nm_worker_client_awaits(f->client, NM_WORKER_MOVER, &fd, &until_ns));
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 1);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), -EALREADY);
	assert_int_equal(kill(stopped, SIGCONT), 0);
	await_stuck(f, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), 0);
}

TEST(a_second_call_of_a_caller_is_refused)
{
	struct fixture *f = *state;
	struct pending pending;

	open_client(f, LONG_NS);
	require_answers(f);
	begin_call(f, &pending);
	assert_int_equal(where(f, NM_WORKER_MOVER, f->other, NULL), -EALREADY);
	assert_int_equal(await_result(f->client, NM_WORKER_MOVER, 1), 0);
	assert_int_equal(where(f, NM_WORKER_MOVER, f->other, NULL), 0);
}

/* The same for processes of one user: a query does not wait for the deadline of the call of the
 * mover. */
/* SECURITY: held-lock */
TEST(callers_do_not_wait_for_each_other)
{
	struct fixture *f = *state;
	struct pending pending;

	open_client(f, LONG_NS);
	require_answers(f);
	nm_worker_client_free(NM_TAKE(f->client));
	await_no_worker();
	open_client(f, LONG_NS);
	assert_int_equal(where(f, NM_WORKER_MOVER, getpid(), NULL), 0);
	pid_t stopped = stop_worker();
	begin_call(f, &pending);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), 0);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 0);
	assert_int_equal(kill(stopped, SIGCONT), 0);
	assert_int_equal(await_result(f->client, NM_WORKER_MOVER, 1), 0);
}

static int where_since(struct fixture *f, pid_t pid, uint64_t start_ticks)
{
	const uint64_t address = (uintptr_t)f->page;
	int node;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_WHERE, .count = 1},
				      .pid = (uint32_t)pid,
				      .start_ticks = start_ticks,
				      .addresses = &address,
				      .fd = -1,
				      .body = &node,
				      .body_size = sizeof(node)};

	return call_worker(f->client, NM_WORKER_MOVER, &call);
}

/* The client identifies a process below this folder; the worker has a /proc of its own. */
struct identities {
	char folder[32], link[64], target[32];
	int all;
	uint64_t start_ticks;
};

static void begin_identities(struct fixture *f, pid_t pid, struct identities *ret)
{
	struct nm_proc_stat stat;
	char path[32];

	*ret = (struct identities){.folder = "/tmp/nm-test-XXXXXX", .all = f->proc_fd};
	(void)snprintf(path, sizeof(path), "%d/stat", pid);
	assert_int_equal(nm_proc_stat_at(f->proc_fd, path, &stat), 0);
	ret->start_ticks = stat.start_ticks;
	assert_non_null(mkdtemp(ret->folder));
	(void)snprintf(ret->link, sizeof(ret->link), "%s/%d", ret->folder, pid);
	(void)snprintf(ret->target, sizeof(ret->target), "/proc/%d", pid);
	f->proc_fd = open(ret->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	open_client(f, LONG_NS);
}

static void end_identities(struct fixture *f, const struct identities *identities)
{
	(void)unlink(identities->link);
	assert_int_equal(rmdir(identities->folder), 0);
	close(f->proc_fd);
	f->proc_fd = identities->all;
}

/* Makes one call while the process can be identified, and one while it cannot. Returns true if both
 * were made within a second; *ret is the result of the second call. */
static bool call_twice(struct fixture *f, pid_t pid, const struct identities *identities, int *ret)
{
	uint64_t before_ns = nm_clock_ns();

	assert_int_equal(symlink(identities->target, identities->link), 0);
	assert_int_equal(where_since(f, pid, identities->start_ticks), 0);
	assert_int_equal(unlink(identities->link), 0);
	*ret = where_since(f, pid, identities->start_ticks);
	return nm_clock_ns() - before_ns < NM_NSEC_PER_SEC;
}

/* User and cgroup are cached for a second, and only for the same thread. */
TEST(a_thread_is_identified_once_a_second)
{
	struct fixture *f = *state;
	struct identities identities;
	int r;

	open_client(f, LONG_NS);
	require_answers(f);
	begin_identities(f, f->other, &identities);
	while (!call_twice(f, f->other, &identities, &r))
		pause_ms(1001);
	assert_int_equal(r, 0);
	assert_int_equal(where_since(f, f->other, identities.start_ticks + 1), -ESRCH);
	assert_int_equal(where_since(f, f->other, identities.start_ticks), -ESRCH);
	(void)call_twice(f, f->other, &identities, &r);
	pause_ms(1001);
	assert_int_equal(where_since(f, f->other, identities.start_ticks), -ESRCH);
	end_identities(f, &identities);
}

TEST(workers_start_before_their_first_call)
{
	struct fixture *f = *state;

	open_client(f, LONG_NS);
	nm_worker_client_start(f->client);
	for (unsigned i = 0; i < 20000 && workers() < 2; i++)
		pause_ms(1);
	assert_int_equal(workers(), 2);
	pid_t started = find_worker("", NULL);
	require_answers(f);
	assert_int_equal(where(f, NM_WORKER_MOVER, getpid(), NULL), 0);
	assert_int_equal(workers(), 2);

	assert_int_equal(kill(started, SIGKILL), 0);
	while (find_worker("", NULL) == started)
		pause_ms(1);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), 0);
	assert_int_equal(where(f, NM_WORKER_MOVER, getpid(), NULL), 0);
}

TEST(workers_end_with_their_client)
{
	struct fixture *f = *state;

	open_client(f, LONG_NS);
	(void)where(f, NM_WORKER_LOOP, f->other, NULL);
	(void)where(f, NM_WORKER_MOVER, f->other, NULL);
	assert_int_equal(workers(), 2);
	nm_worker_client_free(f->client);
	f->client = NULL;
	await_no_worker();
}

TEST(without_a_worker_there_are_no_queries)
{
	struct fixture *f = *state;
	const struct nm_worker_options options = {.program = "/nonexistent/worker",
						  .proc_fd = f->proc_fd};
	struct nm_worker_news news = {0};

	nm_worker_client_new(&options, &f->client);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -ENOENT);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), -ENOENT);
	assert_true(nm_worker_client_news(f->client, &news));
	assert_int_equal(news.pid, 0);
	assert_int_equal(news.error, -ENOENT);
	assert_false(nm_worker_client_news(f->client, &news));
}

/* ---- limits of queries ---- */

static struct nm_worker_subject subject(uint32_t pid, uint32_t uid)
{
	return (struct nm_worker_subject){
		.pid = pid, .domain = nm_domain_of(uid, NULL), .start_ticks = 7};
}

static bool may_ask(const struct nm_worker_bars *bars, uint32_t pid, uint32_t uid, uint64_t now_ns)
{
	const struct nm_worker_subject identity = subject(pid, uid);
	return nm_worker_may_ask(bars, &identity, 0, now_ns) == 0;
}

static void get_stuck(struct nm_worker_bars *bars, uint32_t uid, const char *cgroup)
{
	nm_worker_stuck(bars, nm_domain_of(uid, cgroup), false, &(struct nm_worker_link){.fd = -1});
}

/* SECURITY: held-lock */
TEST_BETWEEN(NULL, NULL, stuck_workers_are_limited)
{
	nm_autofree struct nm_worker_bars *bars = calloc(1, sizeof(*bars));
	const uint64_t late = 2 * NM_WORKER_REST_NS;

	for (uint32_t uid = 1; uid <= NM_STUCK_WORKERS_MOST; uid++) {
		assert_true(may_ask(bars, 200 + uid, uid, late));
		get_stuck(bars, uid, NULL);
		assert_false(may_ask(bars, 200 + uid, uid, late));
		assert_int_equal(may_ask(bars, 300, 99, late), uid < NM_STUCK_WORKERS_MOST);
	}
	nm_worker_released(bars, 2);
	assert_true(may_ask(bars, 203, 3, late) && may_ask(bars, 300, 99, late));
	assert_false(may_ask(bars, 204, 4, late));
	const struct nm_worker_subject identity = subject(300, 99);
	/* workers of the other caller may get stuck */
	assert_int_equal(nm_worker_may_ask(bars, &identity, 1, late), -EALREADY);
}

/* Root in one container differs from root in another, and a container has any number of users. */
/* SECURITY: quota, held-lock */
TEST_BETWEEN(NULL, NULL, a_container_holds_one_worker_at_most)
{
	nm_autofree struct nm_worker_bars *bars = calloc(1, sizeof(*bars));
	struct nm_worker_subject identity = subject(100, 0);

	identity.domain = nm_domain_of(0, "/docker/1f");
	get_stuck(bars, 0, "/docker/1f");
	assert_int_equal(nm_worker_may_ask(bars, &identity, 0, 0), -EALREADY);
	identity.uid = 1;
	assert_int_equal(nm_worker_may_ask(bars, &identity, 0, 0), -EALREADY);
	identity.domain = nm_domain_of(0, "/docker/2f");
	assert_int_equal(nm_worker_may_ask(bars, &identity, 0, 0), 0);
}

TEST_BETWEEN(NULL, NULL, a_missed_deadline_suspends_queries_for_ten_minutes)
{
	nm_autofree struct nm_worker_bars *bars = calloc(1, sizeof(*bars));
	struct nm_worker_subject identity = subject(100, 1);

	nm_worker_missed(bars, 100, 7, NM_WORKER_REST_NS + 5);
	assert_true(may_ask(bars, 101, 1, 6));
	assert_false(may_ask(bars, 100, 1, 6));
	assert_false(may_ask(bars, 100, 1, NM_WORKER_REST_NS + 4));
	assert_true(may_ask(bars, 100, 1, NM_WORKER_REST_NS + 5));
	identity.start_ticks++; /* now another process */
	assert_int_equal(nm_worker_may_ask(bars, &identity, 0, 6), 0);
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

TEST_BETWEEN(NULL, NULL, the_program_is_for_its_socket_alone)
{
	assert_int_equal(run("--help"), EXIT_SUCCESS);
	assert_int_equal(run("--version"), EXIT_SUCCESS);
	assert_int_equal(run("--nonsense"), EX_USAGE);
	assert_int_equal(run("now"), EX_USAGE);
	assert_int_equal(run(""), EX_USAGE);
}

/* -1: with all capabilities. */
static pid_t start_worker_without(int capability, int *ret_socket)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid_t child = fork();
	if (child == 0) {
		if (dup2(ends[1], STDIN_FILENO) < 0)
			_exit(99);
		alarm(60);
		if (capability >= 0)
			(void)prctl(PR_CAPBSET_DROP, capability);
		execl(NM_WORKER_BUILT, NM_WORKER_BUILT, NULL);
		_exit(98);
	}
	close(ends[1]);
	*ret_socket = ends[0];
	return child;
}

static pid_t start_worker(int *ret_socket)
{
	return start_worker_without(-1, ret_socket);
}

/* An invalid request ends the connection and the worker. */
static void send_what_ends_it(const void *message, size_t size, struct nm_fds fds)
{
	const struct iovec part = {(void *)message, size};
	int socket, status;
	char rest;

	pid_t child = start_worker(&socket);
	assert_int_equal(nm_fds_send(socket, &part, 1, fds, 0), 0);
	assert_true(recv(socket, &rest, 1, 0) <= 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
	close(socket);
}

/* SECURITY: worker-socket */
TEST_BETWEEN(NULL, NULL, a_malformed_request_ends_it)
{
	send_what_ends_it("nonsense", 8, (struct nm_fds){-1, -1});
}

/* SECURITY: worker-socket */
TEST_BETWEEN(NULL, NULL, descriptors_without_a_use_end_it)
{
	const struct nm_worker_request hello = {.version = NM_WORKER_VERSION,
						.act = NM_WORKER_HELLO};
	const struct nm_worker_request read_maps = {
		.version = NM_WORKER_VERSION, .act = NM_WORKER_READ_MAPS, .count = 16};
	const struct nm_fds two = {STDIN_FILENO, STDIN_FILENO};

	send_what_ends_it(&hello, sizeof(hello), (struct nm_fds){STDIN_FILENO, -1});
	send_what_ends_it(&hello, sizeof(hello), two);
	send_what_ends_it(&read_maps, sizeof(read_maps), two);
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
	char path[64], other_client[64] = "", ours[64] = "";
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return readlink(path, other_client, sizeof(other_client) - 1) > 0 &&
	       readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) > 0 &&
	       strcmp(ours, other_client) != 0;
}

/* Before it reads its first request it drops all capabilities except CAP_SYS_PTRACE; in its own
 * /proc no link can be followed, and in ours they can. */
/* SECURITY: cap-ptrace */
TEST_BETWEEN(NULL, NULL, the_worker_keeps_only_ptrace)
{
	const struct nm_worker_request hello = {.version = NM_WORKER_VERSION,
						.act = NM_WORKER_HELLO};
	struct nm_worker_reply reply;
	int socket;

	if (geteuid() != 0) {
		print_message("needs root to drop privileges: skipped\n");
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

/* Without CAP_SYS_ADMIN, as on kernels before 5.14: it works and reports that its links stay
 * open. */
/* SECURITY: cap-ptrace */
TEST_BETWEEN(NULL, NULL, links_that_stay_open_are_reported)
{
	char output[512] = "";
	int ends[2], socket;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	assert_true(kept >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
	pid_t child = start_worker_without(CAP_SYS_ADMIN, &socket);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	close(kept);
	close(ends[1]);
	close(socket);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(read(ends[0], output, sizeof(output) - 1) > 0);
	assert_non_null(strstr(output, "can be followed"));
	close(ends[0]);
}

/* A descriptor of another file is neither read nor written. */
/* SECURITY: worker-socket, cap-ptrace */
TEST(only_its_own_files_are_used)
{
	static const char *const names[] = {"maps", "numa_maps"};
	struct fixture *f = *state;
	char folder[] = "/tmp/nm-test-XXXXXX", path[64], text[64];

	assert_non_null(mkdtemp(folder));
	int memory = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	assert_true(memory >= 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++) {
		struct nm_worker_order order = {.request = {.version = NM_WORKER_VERSION,
							    .act = NM_WORKER_READ_MAPS,
							    .count = 16}};
		struct nm_worker_outcome outcome;
		/* The right name, but not a file of the kernel. */
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		assert_true(file >= 0);
		nm_worker_perform(f->proc_fd, -1, &order, file, text, &outcome);
		assert_int_equal(outcome.result, -EPERM);
		assert_int_equal(lseek(file, 0, SEEK_END), 0);
		close(file);
		unlink(path);
		nm_worker_perform(f->proc_fd, -1, &order, memory, text, &outcome);
		assert_int_equal(outcome.result, -EPERM);
		assert_int_equal(outcome.bytes, 0);
	}
	close(memory);
	rmdir(folder);
}

static void write_stat(int fifo, uint64_t start_ticks)
{
	char text[256];
	int length = snprintf(text, sizeof(text),
			      "%d (x) S 1 1 1 0 -1 0 11 0 12 0 13 14 0 0 20 0 1 0 %llu 4096 25 "
			      "18446744073709551615 1 1 7 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
			      getpid(), (unsigned long long)start_ticks);

	assert_int_equal(write(fifo, text, (size_t)length), length);
	close(fifo);
}

struct change {
	const char *path;
	atomic_bool ended;
};

/* The number belongs to one process before the call and to another after it; further reads show
 * both, and the first one counts. */
static void *change_hands(void *context)
{
	struct change *change = context;

	for (uint64_t start_ticks = 1; !change->ended; start_ticks = 2) {
		write_stat(open(change->path, O_WRONLY | O_CLOEXEC), start_ticks);
		pause_ms(5);
	}
	return NULL;
}

#define FOUR_PIECES (UINT64_C(8192) * 4096) /* one page of it is in memory */

/* A job of this kind about a page of a process; a search is longer. */
static void perform(struct fixture *f, enum nm_worker_act act, pid_t pid, uint64_t start_ticks,
		    int proc_fd, int socket, void *body, struct nm_worker_outcome *ret)
{
	const uint64_t address = (uintptr_t)f->page;
	const struct nm_worker_range range = {address, address + FOUR_PIECES, 4096, 0};
	const struct nm_worker_order order = {.request = {.version = NM_WORKER_VERSION,
							  .act = act,
							  .pid = pid,
							  .count = 1,
							  .start_ticks = start_ticks,
							  .budget_ns = LONG_NS},
					      .addresses = &address,
					      .ranges = &range,
					      .nodes = &(int32_t){0}};

	nm_worker_perform(proc_fd, socket, &order, -1, body, ret);
}

/* A query about a page of that number while it changes its process. */
static void perform_meanwhile(struct fixture *f, enum nm_worker_act act, void *body)
{
	char folder[] = "/tmp/nm-test-XXXXXX", path[64], directory[64];
	struct nm_worker_outcome outcome;
	struct change change = {.path = path};
	pthread_t thread;

	assert_non_null(mkdtemp(folder));
	(void)snprintf(directory, sizeof(directory), "%s/%d", folder, getpid());
	(void)snprintf(path, sizeof(path), "%s/stat", directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	int proc_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(pthread_create(&thread, NULL, change_hands, &change), 0);
	perform(f, act, getpid(), 1, proc_fd, -1, body, &outcome);
	change.ended = true;
	int rest = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* no other reader */
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(rest);
	close(proc_fd);
	unlink(path);
	rmdir(directory);
	rmdir(folder);
	assert_int_equal(outcome.result, -ESRCH);
	assert_int_equal(outcome.bytes, 0);
}

/* SECURITY: reuse */
TEST(a_reused_number_gives_no_answer)
{
	struct fixture *f = *state;
	int node;

	open_client(f, LONG_NS);
	require_answers(f);
	perform_meanwhile(f, NM_WORKER_WHERE, &node);
}

/* SECURITY: reuse */
TEST(pages_of_a_number_that_changed_hands_stay)
{
	struct fixture *f = *state;
	struct nm_worker_moved moved;
	struct nm_worker_outcome outcome;

	open_client(f, LONG_NS);
	require_answers(f);
	perform(f, NM_WORKER_ROUND, getpid(), 1, f->proc_fd, -1, &moved, &outcome);
	assert_int_equal(outcome.result, -ESRCH);
	assert_int_equal(moved.tries[0].pages, 1);
	assert_int_equal(moved.pages[0].node, INT32_MIN); /* not tried */
}

/* SECURITY: reuse */
TEST(a_search_names_no_other_process)
{
	struct fixture *f = *state;
	struct nm_worker_found found;

	open_client(f, LONG_NS);
	require_answers(f);
	perform_meanwhile(f, NM_WORKER_FIND, &found);
	assert_int_equal(found.next, (uintptr_t)f->page + FOUR_PIECES / 4); /* its first piece */
}

/* SECURITY: held-lock */
TEST(a_job_makes_no_call_after_its_client_has_left)
{
	static const enum nm_worker_act acts[] = {NM_WORKER_WHERE, NM_WORKER_ROUND, NM_WORKER_FIND};
	struct fixture *f = *state;
	nm_autofree struct nm_worker_found *body = calloc(1, NM_WORKER_BODY_MOST);
	struct nm_worker_outcome outcome;
	struct nm_proc_stat stat;
	int ends[2];

	assert_non_null(body);
	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(nm_proc_stat_at(f->proc_fd, "self/stat", &stat), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(acts); i++) {
		perform(f, acts[i], getpid(), stat.start_ticks, f->proc_fd, ends[1], body,
			&outcome);
		assert_int_equal(outcome.result, 0);
	}
	close(ends[0]);
	for (size_t i = 0; i < NM_ARRAY_SIZE(acts); i++) {
		perform(f, acts[i], getpid(), stat.start_ticks, f->proc_fd, ends[1], body,
			&outcome);
		assert_int_equal(outcome.result, -ECANCELED);
		assert_int_equal(outcome.bytes,
				 acts[i] == NM_WORKER_ROUND ? NM_WORKER_MOVED_BYTES(0) : 0);
	}
	close(ends[1]);
}

RUN_TESTS()

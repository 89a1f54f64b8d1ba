/* SPDX-License-Identifier: MIT */
/* Answers of a worker, errors without one, limits of queries, and the program itself. */
#define SET_UP open_fixture
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
#include "worker_words.h"

/* ---- words ---- */

WORD(await_kill)
{
	for (unsigned i = 0; i < 20000 && find_worker("T", NULL); i++)
		pause_ms(1);
}

static struct nm_worker_news news;

QUANTITY(news, nm_worker_client_news(f->client, &news))
QUANTITY(news_error, news.error)
QUANTITY(news_of_self,
	 news.pid == (uint32_t)getpid() && news.uid == getuid() && news.act == NM_WORKER_WHERE)
QUANTITY(news_pid, news.pid)

/* A call of the mover in progress. */
static struct pending {
	uint64_t address;
	int node;
	struct nm_worker_call call;
} pending;

WORD(begin)
{
	pending.address = (uintptr_t)f->page;
	pending.call = (struct nm_worker_call){.request = {.act = NM_WORKER_WHERE, .count = 1},
					       .pid = (uint32_t)getpid(),
					       .arguments = &pending.address,
					       .arguments_size = sizeof(pending.address),
					       .body = &pending.node,
					       .body_size = sizeof(pending.node)};
	assert_int_equal(nm_worker_client_send(f->client, NM_WORKER_MOVER, &pending.call), 1);
}

ACTION(cancel, nm_worker_client_cancel(f->client, NM_WORKER_MOVER))
QUANTITY(result, await_result(f->client, NM_WORKER_MOVER, 1))

static bool mover_awaits(void)
{
	uint64_t until_ns;
	int fd;
	return nm_worker_client_awaits(f->client, NM_WORKER_MOVER, &fd, &until_ns);
}

QUANTITY(awaits, mover_awaits())

WORD(end_client)
{
	nm_worker_client_free(NM_TAKE(f->client));
	await_no_worker();
}

/* ---- answers ---- */

SCRIPT(the_answer_of_the_kernel_is_returned,
       "client long; answers; where loop self = 0; node >= 0; where mover other = 0; node >= 0",
       "workers = 2; where loop nobody = ESRCH; given_up = 0")

/* Moves what is in a range of this process to node 0, or searches only, if all is there. */
static int move_range(uint64_t start, uint64_t end, uint64_t resident, struct nm_ranges_moved *ret)
{
	static struct arguments arguments;
	struct nm_worker_call call = make_call(NM_WORKER_RANGES, getpid(), start, &arguments, ret);

	call.body_size = sizeof(*ret);
	arguments.ranges.ranges[0].end = end;
	arguments.ranges.ranges[0].resident = resident;
	return call_worker(f->client, NM_WORKER_MOVER, &call);
}

static char *map_pages(size_t size, const size_t *touched, size_t count)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(madvise(memory, size, MADV_NOHUGEPAGE), 0);
	for (size_t i = 0; i < count; i++)
		memory[touched[i]] = 1;
	return memory;
}

/* All pages of a machine with one node are where they are to be: they are tried, and stay. */
TEST(pages_in_memory_are_found_and_moved)
{
	const size_t size = (size_t)64 << 20, touched[] = {0, 4096, 17 << 20, size - 4096};
	char *memory = map_pages(size, touched, NM_ARRAY_SIZE(touched));
	const uint64_t start = (uintptr_t)memory;
	struct nm_ranges_moved moved;

	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(move_range(start, start + size, 0, &moved), 0);
	assert_int_equal(moved.next, start + size);
	assert_int_equal(moved.pages + moved.stayed, NM_ARRAY_SIZE(touched));
	assert_int_equal(moved.tried_bytes, NM_ARRAY_SIZE(touched) * 4096);
	assert_false(moved.full);
	munmap(memory, size);
}

/* The rest of the mapping is not searched: pages there are newer. */
/* SECURITY: sparse */
TEST(a_search_ends_with_the_last_page)
{
	const size_t size = (size_t)64 << 20, touched[] = {4096, size - 4096};
	char *memory = map_pages(size, touched, NM_ARRAY_SIZE(touched));
	const uint64_t start = (uintptr_t)memory;
	struct nm_ranges_moved moved;

	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(move_range(start, start + size, 1, &moved), 0);
	assert_int_equal(moved.pages + moved.stayed, 1);
	assert_int_equal(moved.next, start + size);
	munmap(memory, size);
}

/* It searches absent pages for longer than its deadline, which is shorter than a job here. */
/* SECURITY: held-lock */
TEST(a_busy_worker_is_not_awaited)
{
	const size_t size = (size_t)1 << 38;
	struct nm_ranges_moved moved;
	char *memory =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	open_client(f, 400 * NM_NSEC_PER_MSEC);
	require_answers(f);
	assert_int_equal(move_range((uintptr_t)memory, (uintptr_t)memory + size, 0, &moved),
			 -EINPROGRESS);
	assert_int_equal(nm_worker_client_counts(f->client).given_up, 0);
	assert_int_equal(nm_worker_client_counts(f->client).stuck, 1);
	assert_int_equal(where(f, NM_WORKER_LOOP, f->other, NULL), -EINPROGRESS);
	await_stuck(f, 0);
	assert_int_equal(where(f, NM_WORKER_LOOP, getpid(), NULL), 0);
	munmap(memory, size);
}

/* Such a search ends with its job, and reports its progress. */
/* SECURITY: sparse, held-lock */
TEST(a_job_ends_after_a_second)
{
	const size_t size = (size_t)1 << 40;
	struct nm_ranges_moved moved;
	char *memory =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(move_range((uintptr_t)memory, (uintptr_t)memory + size, 0, &moved), 0);
	assert_true(moved.next > (uintptr_t)memory && moved.next < (uintptr_t)memory + size);
	munmap(memory, size);
}

/* A query about this process. */
static struct nm_job own_job(struct nm_worker_request *request, int socket, uint64_t for_ns)
{
	struct nm_proc_stat stat;

	assert_int_equal(nm_proc_stat_at(f->proc_fd, "self/stat", &stat), 0);
	*request = (struct nm_worker_request){.pid = getpid(), .start_ticks = stat.start_ticks};
	return (struct nm_job){f->proc_fd, socket, request, nm_clock_ns() + for_ns};
}

/* SECURITY: held-lock */
TEST(a_query_makes_no_call_after_its_time)
{
	struct nm_worker_request request;
	struct nm_node_pages pages;
	const struct nm_job job = own_job(&request, -1, 0);

	assert_int_equal(nm_query_count(&job, &pages), -ETIMEDOUT);
	assert_int_equal(nm_query_sample(&job, &pages), -ETIMEDOUT);
	assert_int_equal(nm_query_program(&job), -ETIMEDOUT);
}

TEST(a_query_ends_with_its_client)
{
	struct nm_worker_request request;
	struct nm_node_pages pages;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	const struct nm_job job = own_job(&request, ends[1], LONG_NS);
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
	struct nm_worker_request request;
	struct nm_node_pages pages;
	const struct nm_job job = own_job(&request, -1, LONG_NS);

	request.start_ticks++;
	assert_int_equal(nm_query_count(&job, &pages), -ESRCH);
	assert_int_equal(nm_query_sample(&job, &pages), -ESRCH);
	assert_int_equal(nm_query_program(&job), -ESRCH);
}

TEST(a_different_start_time_is_a_different_process)
{
	struct nm_worker_call call = {.request = {.act = NM_WORKER_IDENTIFY},
				      .pid = (uint32_t)f->other,
				      .start_ticks = 1};

	open_client(f, LONG_NS);
	assert_int_equal(call_worker(f->client, NM_WORKER_LOOP, &call), -ESRCH);
}

/* ---- reading mappings ---- */

static int read_mappings(pid_t pid, bool begin, uint64_t budget_ns, struct nm_mappings_piece *ret)
{
	static struct arguments arguments;
	struct nm_worker_call call = make_call(NM_WORKER_MAPPINGS, pid, 0, &arguments, ret);

	call.body_size = sizeof(*ret);
	arguments.mappings.begin = begin;
	arguments.mappings.budget_ns = budget_ns;
	return call_worker(f->client, NM_WORKER_MOVER, &call);
}

/* In jobs of one read each, until the end. */
TEST(mappings_are_read_to_their_end)
{
	nm_autofree struct nm_mappings_piece *piece = calloc(1, sizeof(*piece));
	uint64_t address = (uintptr_t)f->page, after = 0;
	unsigned jobs = 0, found = 0;

	open_client(f, LONG_NS);
	for (; !piece->complete; jobs++) {
		int r = read_mappings(f->other, jobs == 0, 1, piece);
		if (jobs == 0 && r == -ESRCH) {
			print_message("this kernel has no numa_maps: skipped\n");
			skip();
		}
		assert_int_equal(r, 0);
		assert_true(nm_mappings_piece_is_valid(piece, after));
		for (unsigned i = 0; i < piece->count; i++) {
			after = piece->items[i].end;
			found += piece->items[i].start <= address && address < after;
		}
	}
	assert_true(jobs > 2);
	assert_int_equal(found, 1);
	assert_int_equal(read_mappings(f->other, false, 1, piece), -ESTALE);
}

/* Neither another process nor another worker can continue it. */
TEST(a_reading_goes_on_only_where_it_began)
{
	nm_autofree struct nm_mappings_piece *piece = calloc(1, sizeof(*piece));

	open_client(f, LONG_NS);
	assert_int_equal(read_mappings(f->other, true, 1, piece), 0);
	assert_false(piece->complete);
	assert_int_equal(read_mappings(getpid(), false, 1, piece), -ESTALE);
	assert_int_equal(read_mappings(f->other, false, 1, piece), 0);
	open_client(f, LONG_NS);
	assert_int_equal(read_mappings(f->other, false, 1, piece), -ESTALE);
}

/* Otherwise a late worker would look like a process with large mappings. */
TEST(kernel_time_excludes_the_transport)
{
	struct nm_worker_call call = {.request = {.act = NM_WORKER_IDENTIFY},
				      .pid = (uint32_t)f->other};

	open_client(f, LONG_NS);
	assert_int_equal(call_worker(f->client, NM_WORKER_LOOP, &call), 0);
	stopped = stop_worker();
	uint64_t before_ns = nm_clock_ns();
	assert_int_equal(nm_worker_client_send(f->client, NM_WORKER_LOOP, &call), 1);
	pause_ms(300);
	assert_int_equal(kill(stopped, SIGCONT), 0);
	assert_int_equal(await_result(f->client, NM_WORKER_LOOP, 1), 0);
	uint64_t taken_ns = nm_clock_ns() - before_ns;
	assert_true(taken_ns >= 290 * NM_NSEC_PER_MSEC);
	assert_true(call.held_ns > 0);
	assert_true(call.held_ns < taken_ns - 250 * NM_NSEC_PER_MSEC);
}

/* ---- no answer ---- */

/* No process of this user is queried meanwhile by any caller. When it finally answers, queries of
 * the user continue with a new worker instead of this one. */
/* SECURITY: held-lock */
SCRIPT(a_missed_deadline_abandons_the_worker,
       "client short; answers; stop; where loop self = ETIMEDOUT; given_up = 1; stuck = 1; news = "
       "1",
       "news_of_self = 1; news = 0; where loop other = EALREADY; where mover other = EALREADY",
       "continue_it; await_stuck 0; where loop self = EALREADY; given_up = 1")

SCRIPT(the_exit_of_a_stuck_worker_frees_its_place,
       "client short; answers; stop; where loop self = ETIMEDOUT; kill_it; await_stuck 0",
       "await_kill; client long; where loop other = 0; where loop self = 0")

/* It is unknown whether the worker is stuck: it is not used for others before it has answered, and
 * its user is not suspended. */
/* SECURITY: held-lock */
SCRIPT(a_cancelled_call_counts_until_it_is_answered,
       "client long; answers; where mover other = 0; stop; begin; cancel; awaits = 0; stuck = 1",
       "given_up = 0; where loop other = EALREADY; continue_it; await_stuck 0; where loop self = 0")

SCRIPT(a_second_call_of_a_caller_is_refused,
       "client long; answers; begin; where mover other = EALREADY; result = 0",
       "where mover other = 0")

/* The same for processes of one user: a query does not wait for the deadline of the call of the
 * mover. */
/* SECURITY: held-lock */
SCRIPT(callers_do_not_wait_for_each_other,
       "client long; answers; end_client; client long; where mover self = 0; stop; begin",
       "where loop other = 0; given_up = 0; continue_it; result = 0")

static int where_since(pid_t pid, uint64_t start_ticks)
{
	const uint64_t address = (uintptr_t)f->page;
	int node;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_WHERE, .count = 1},
				      .pid = (uint32_t)pid,
				      .start_ticks = start_ticks,
				      .arguments = &address,
				      .arguments_size = sizeof(address),
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

static void begin_identities(pid_t pid, struct identities *ret)
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

static void end_identities(const struct identities *identities)
{
	(void)unlink(identities->link);
	assert_int_equal(rmdir(identities->folder), 0);
	close(f->proc_fd);
	f->proc_fd = identities->all;
}

/* Makes one call while the process can be identified, and one while it cannot. Returns true if both
 * were made within a second; *ret is the result of the second call. */
static bool call_twice(pid_t pid, const struct identities *identities, int *ret)
{
	uint64_t before_ns = nm_clock_ns();

	assert_int_equal(symlink(identities->target, identities->link), 0);
	assert_int_equal(where_since(pid, identities->start_ticks), 0);
	assert_int_equal(unlink(identities->link), 0);
	*ret = where_since(pid, identities->start_ticks);
	return nm_clock_ns() - before_ns < NM_NSEC_PER_SEC;
}

/* User and cgroup are cached for a second, and only for the same thread. */
TEST(a_thread_is_identified_once_a_second)
{
	struct identities identities;
	int r;

	open_client(f, LONG_NS);
	require_answers(f);
	begin_identities(f->other, &identities);
	while (!call_twice(f->other, &identities, &r))
		pause_ms(1001);
	assert_int_equal(r, 0);
	assert_int_equal(where_since(f->other, identities.start_ticks + 1), -ESRCH);
	assert_int_equal(where_since(f->other, identities.start_ticks), -ESRCH);
	(void)call_twice(f->other, &identities, &r);
	pause_ms(1001);
	assert_int_equal(where_since(f->other, identities.start_ticks), -ESRCH);
	end_identities(&identities);
}

TEST(workers_start_before_their_first_call)
{
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

SCRIPT(workers_end_with_their_client,
       "client long; where loop other <= 0; where mover other <= 0; workers = 2; end_client")

WORD(client_without_worker)
{
	const struct nm_worker_options options = {.program = "/nonexistent/worker",
						  .proc_fd = f->proc_fd};
	nm_worker_client_new(&options, &f->client);
}

SCRIPT(without_a_worker_there_are_no_queries,
       "client_without_worker; where loop self = ENOENT; where loop self = ENOENT; news = 1",
       "news_pid = 0; news_error = ENOENT; news = 0")

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
TEST_BETWEEN(NULL, NULL, descriptors_end_it)
{
	const struct nm_worker_request hello = {.version = NM_WORKER_VERSION,
						.act = NM_WORKER_HELLO};
	const struct nm_fds two = {STDIN_FILENO, STDIN_FILENO};

	send_what_ends_it(&hello, sizeof(hello), (struct nm_fds){STDIN_FILENO, -1});
	send_what_ends_it(&hello, sizeof(hello), two);
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

#define FOUR_PIECES (UINT64_C(4096) * 4096) /* one page of it is in memory */

/* A job of this kind about a page of a process; a search is longer. */
static void perform(enum nm_worker_act act, pid_t pid, uint64_t start_ticks, int proc_fd,
		    int socket, void *body, struct nm_worker_outcome *ret)
{
	static struct arguments arguments;
	uint64_t address = (uintptr_t)f->page;
	struct nm_worker worker = {proc_fd, socket, {.fd = -1}};
	struct nm_worker_order order = {.request = {.version = NM_WORKER_VERSION,
						    .act = act,
						    .pid = pid,
						    .count = 1,
						    .start_ticks = start_ticks},
					.addresses = &arguments.address,
					.mappings = &arguments.mappings,
					.units = &arguments.units,
					.ranges = &arguments.ranges};

	(void)make_call(act, pid, address, &arguments, body);
	arguments.ranges.ranges[0].end = address + FOUR_PIECES;
	nm_worker_perform(&worker, &order, body, ret);
	nm_reading_end(&worker.reading);
}

/* A query about a page of that number while it changes its process. */
static void perform_meanwhile(enum nm_worker_act act, void *body)
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
	perform(act, getpid(), 1, proc_fd, -1, body, &outcome);
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
	int node;

	open_client(f, LONG_NS);
	require_answers(f);
	perform_meanwhile(NM_WORKER_WHERE, &node);
}

/* SECURITY: reuse */
TEST(a_job_names_no_other_process)
{
	static const enum nm_worker_act acts[] = {NM_WORKER_MAPPINGS, NM_WORKER_UNITS,
						  NM_WORKER_RANGES};
	nm_autofree void *body = calloc(1, NM_WORKER_BODY_MOST);

	assert_non_null(body);
	open_client(f, LONG_NS);
	require_answers(f);
	for (size_t i = 0; i < NM_ARRAY_SIZE(acts); i++)
		perform_meanwhile(acts[i], body);
}

/* SECURITY: reuse */
TEST(pages_of_a_number_that_changed_hands_stay)
{
	nm_autofree struct nm_units_moved *moved = calloc(1, sizeof(*moved));
	struct nm_worker_outcome outcome;

	open_client(f, LONG_NS);
	require_answers(f);
	perform(NM_WORKER_UNITS, getpid(), 1, f->proc_fd, -1, moved, &outcome);
	assert_int_equal(outcome.result, -ESRCH);
	assert_int_equal(moved->nr_tries, 0);
	assert_false(moved->outcomes[0].done);
}

/* SECURITY: held-lock */
TEST(a_job_makes_no_call_after_its_client_has_left)
{
	static const enum nm_worker_act acts[] = {NM_WORKER_WHERE, NM_WORKER_UNITS,
						  NM_WORKER_RANGES, NM_WORKER_MAPPINGS};
	nm_autofree void *body = calloc(1, NM_WORKER_BODY_MOST);
	struct nm_worker_outcome outcome;
	struct nm_proc_stat stat;
	int ends[2];

	assert_non_null(body);
	open_client(f, LONG_NS);
	require_answers(f);
	assert_int_equal(nm_proc_stat_at(f->proc_fd, "self/stat", &stat), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(acts); i++) {
		perform(acts[i], getpid(), stat.start_ticks, f->proc_fd, ends[1], body, &outcome);
		assert_int_equal(outcome.result, 0);
	}
	close(ends[0]);
	for (size_t i = 0; i < NM_ARRAY_SIZE(acts); i++) {
		perform(acts[i], getpid(), stat.start_ticks, f->proc_fd, ends[1], body, &outcome);
		assert_int_equal(outcome.result, -ECANCELED);
	}
	close(ends[1]);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* The memory calls of libnuma: results and errors are those of the kernel, and the library neither
 * prints nor exits. */
#include "../support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <numa.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/platform/worker/numa_calls.h"
#include "numa-migrd/base.h"
#include "platform/worker.h"

#define PAGE 4096U
#define PAGES 3U /* the last is not touched */
#define NODE_MISSING 63U

static uint64_t addresses[PAGES];

static int map_pages(void **state)
{
	char *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE) < 0)
		return -1;
	for (unsigned i = 0; i < PAGES; i++)
		addresses[i] = (uintptr_t)memory + i * PAGE;
	memory[0] = memory[PAGE] = 1;
	*state = memory;
	return 0;
}

static int unmap_pages(void **state)
{
	return munmap(*state, (size_t)PAGES * PAGE);
}

static void require_calls(void)
{
	int statuses[PAGES];
	int r = nm_numa_where(getpid(), PAGES, addresses, statuses);

	if (r != -ENOSYS && r != -EPERM)
		return;
	print_message("move_pages(2) is not available here: skipped\n");
	skip();
}

/* ---- results ---- */

TEST(each_page_has_a_node_or_an_error)
{
	int statuses[PAGES] = {-1, -1, -1};

	require_calls();
	assert_int_equal(nm_numa_where(getpid(), PAGES, addresses, statuses), 0);
	assert_true(statuses[0] >= 0 && statuses[1] >= 0);
	assert_true(statuses[2] == -ENOENT || statuses[2] == -EFAULT);
	assert_int_equal(nm_numa_where(INT32_MAX, PAGES, addresses, statuses), -ESRCH);
}

TEST(a_move_reports_pages_and_errors)
{
	int nodes[PAGES], statuses[PAGES];

	require_calls();
	assert_int_equal(nm_numa_where(getpid(), PAGES, addresses, nodes), 0);
	nodes[2] = nodes[0];
	memset(statuses, 0x55, sizeof(statuses));
	assert_int_equal(nm_numa_move(getpid(), PAGES, addresses, nodes, statuses), 0);
	assert_int_equal(statuses[0], nodes[0]);
	assert_int_equal(statuses[1], nodes[1]);
	assert_true(statuses[2] == -ENOENT || statuses[2] == -EFAULT);
	/* The kernel stops at the second page and leaves later statuses unset. */
	statuses[1] = 99;
	nodes[1] = (int)NODE_MISSING;
	assert_int_equal(nm_numa_move(getpid(), PAGES, addresses, nodes, statuses), -ENODEV);
	assert_int_equal(statuses[1], 99);
	assert_int_equal(nm_numa_move(INT32_MAX, PAGES, addresses, nodes, statuses), -ESRCH);
}

/* ---- messages of libnuma ---- */

/* Each of these makes libnuma report a message to its program. */
static void provoke(void)
{
	unsigned long none = 0;
	struct bitmask empty = {.size = 64, .maskp = &none};

	numa_set_membind(&empty);	       /* numa_error(): set_mempolicy(2) refuses it */
	(void)numa_parse_nodestring("nodes!"); /* numa_warn() */
	numa_error("numa_error");
	numa_warn(0, "numa_warn %d", 1);
}

TEST(libnuma_does_not_print_or_exit)
{
	int ends[2], status;
	char printed[256];

	assert_int_equal(numa_exit_on_error, 0);
	assert_int_equal(numa_exit_on_warn, 0);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		numa_exit_on_error = numa_exit_on_warn = 1;
		if (dup2(ends[1], STDERR_FILENO) < 0 || dup2(ends[1], STDOUT_FILENO) < 0)
			_exit(99);
		provoke();
		_exit(42);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], printed, sizeof(printed)), 0);
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
}

/* ---- its constructor ---- */

/* Refuses the calls of the constructor of libnuma, as the filter of the unit of the worker does. */
static int refuse_constructor(void)
{
#define REFUSED(call, left) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), (left), 0)
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSED(SYS_get_mempolicy, 4),
		REFUSED(SYS_set_mempolicy, 3),
		REFUSED(SYS_sched_getaffinity, 2),
		REFUSED(SYS_getdents64, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	const struct sock_fprog filter = {.len = NM_ARRAY_SIZE(program), .filter = program};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0 ? -errno : 0;
}

static pid_t start_refused_worker(int *ret_socket, int *ret_errors)
{
	int ends[2], errors[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* LeakSanitizer needs the refused calls. */
		(void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
		alarm(60);
		if (dup2(ends[1], STDIN_FILENO) < 0 || dup2(errors[1], STDERR_FILENO) < 0)
			_exit(99);
		if (refuse_constructor() < 0)
			_exit(77);
		execl(NM_WORKER_BUILT, NM_WORKER_BUILT, NULL);
		_exit(98);
	}
	close(ends[1]);
	close(errors[1]);
	*ret_socket = ends[0];
	*ret_errors = errors[0];
	return child;
}

TEST(a_worker_does_not_need_the_constructor)
{
	const struct nm_worker_request hello = {.version = NM_WORKER_VERSION,
						.act = NM_WORKER_HELLO};
	struct nm_worker_reply reply = {0};
	int socket, errors, status;
	char printed[512] = "";

	pid_t child = start_refused_worker(&socket, &errors);
	ssize_t got = send(socket, &hello, sizeof(hello), MSG_NOSIGNAL) < 0
			      ? -1
			      : recv(socket, &reply, sizeof(reply), 0);
	close(socket);
	assert_true(read(errors, printed, sizeof(printed) - 1) >= 0);
	close(errors);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("seccomp(2) is not available here: skipped\n");
		skip();
	}
	assert_int_equal(got, sizeof(reply));
	assert_int_equal(reply.result, child);
	assert_null(strstr(printed, "libnuma"));
	assert_int_equal(status, 0);
}

int main(void)
{
	return RUN_REGISTERED(map_pages, unmap_pages);
}

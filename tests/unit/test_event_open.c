/* SPDX-License-Identifier: MIT */
/*
 * Arguments of perf_event_open(2), intercepted at syscall(2), and the two descriptors of load
 * events of Sapphire Rapids passed by the helper.
 */
#define SET_UP set_up
#define TEAR_DOWN helper_fixture_teardown
#include "../support/test.h"

#include <stdint.h>

#include <dirent.h>
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../../src/platform/helper/server.h"
#include "../../src/platform/privileged.h"
#include "helper_fixture.h"

#define LOADS 0x1cd
#define LEADER 0x8203
#define OPENS_MAX 8

/* ---- the fake kernel ---- */

static struct {
	int precise_max; /* higher values fail with -EOPNOTSUPP */
	int leader_error, loads_error;
	unsigned count;
	struct {
		struct perf_event_attr attr;
		pid_t pid;
		int cpu, group;
		unsigned long flags;
	} opens[OPENS_MAX];
} kernel;

/* An event is an eventfd that holds its configuration. */
static int kernel_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		       unsigned long flags)
{
	if (kernel.count == OPENS_MAX)
		abort();
	kernel.opens[kernel.count].attr = *attr;
	kernel.opens[kernel.count].pid = pid;
	kernel.opens[kernel.count].cpu = cpu;
	kernel.opens[kernel.count].group = group;
	kernel.opens[kernel.count++].flags = flags;
	if (attr->config == LEADER && kernel.leader_error)
		return -kernel.leader_error;
	if (attr->config == LOADS && kernel.loads_error)
		return -kernel.loads_error;
	if (attr->precise_ip > kernel.precise_max)
		return -EOPNOTSUPP;
	return eventfd((unsigned)attr->config, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* Replaces the function of libc, but forwards all other system calls. It passes the maximum number
 * of arguments; unused ones have undefined values. */
__attribute__((no_sanitize_address)) long syscall(long number, ...)
{
	long a[6];
	va_list list;

	va_start(list, number);
	for (size_t i = 0; i < NM_ARRAY_SIZE(a); i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number != SYS_perf_event_open) {
		long (*real)(long, ...);
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
		return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	int r = kernel_open((const struct perf_event_attr *)a[0], (pid_t)a[1], (int)a[2], (int)a[3],
			    (unsigned long)a[4]);
	if (r >= 0)
		return r;
	errno = -r;
	return -1;
}

/* ---- the machine ---- */

static int set_up(void **state)
{
	int r = helper_fixture_setup(state);
	struct helper_fixture *f = *state;

	fixture_file(f->root, "proc/cpuinfo",
		     "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n");
	fixture_file(f->root, "sys/bus/event_source/devices/cpu/type", "4\n");
	fixture_file(f->root, "sys/bus/event_source/devices/cpu/events/mem-loads-aux",
		     "event=0x03,umask=0x82\n");
	memset(&kernel, 0, sizeof(kernel));
	kernel.precise_max = 3;
	return r;
}

static struct nm_helper_request loads_request(void)
{
	struct nm_helper_request request = helper_fixture_event(NM_EVENT_MEMORY, 1009);

	request.source = NM_MEMORY_PEBS;
	request.load_latency = 30;
	request.cpu = 5;
	return request;
}

static int open_loads(struct helper_fixture *f, struct nm_event_fds *ret)
{
	const struct nm_event_request request = {
		.kind = NM_EVENT_MEMORY,
		.cpu = 5,
		.period = 1009,
		.selection = {.source = NM_MEMORY_PEBS, .load_latency = 30}};

	return nm_event_open(f->context.root_fd, &request, ret);
}

static unsigned open_files(pid_t pid)
{
	char path[64];
	unsigned count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *directory = opendir(path);
	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static uint64_t config_of(int fd)
{
	uint64_t config = 0;

	assert_int_equal(read(fd, &config, sizeof(config)), sizeof(config));
	return config;
}

static void close_both(const struct nm_event_fds *fds)
{
	assert_true(fds->event >= 0 && fds->leader >= 0);
	close(fds->event);
	close(fds->leader);
}

/* ---- opening ---- */

TEST(loads_follow_their_leader)
{
	struct nm_event_fds fds = {-1, -1};
	unsigned before = open_files(getpid());

	assert_int_equal(open_loads(*state, &fds), 0);
	assert_int_equal(kernel.count, 2);
	assert_int_equal(kernel.opens[0].attr.config, LEADER);
	assert_int_equal(kernel.opens[0].attr.sample_period, 0);
	assert_int_equal(kernel.opens[0].attr.precise_ip, 0);
	assert_int_equal(kernel.opens[0].group, -1);
	assert_int_equal(kernel.opens[1].attr.config, LOADS);
	assert_int_equal(kernel.opens[1].attr.config1, 30);
	assert_int_equal(kernel.opens[1].attr.precise_ip, 3);
	assert_int_equal(kernel.opens[1].group, fds.leader);
	for (unsigned i = 0; i < kernel.count; i++) {
		assert_int_equal(kernel.opens[i].cpu, 5);
		assert_int_equal(kernel.opens[i].pid, -1);
		assert_int_equal(kernel.opens[i].flags, PERF_FLAG_FD_CLOEXEC);
		assert_true(kernel.opens[i].attr.exclude_kernel);
	}
	assert_int_equal(config_of(fds.event), LOADS);
	assert_int_equal(config_of(fds.leader), LEADER);
	close_both(&fds);
	assert_int_equal(open_files(getpid()), before);
}

/* libpfm4 takes thresholds of 16 bits. */
TEST(events_not_encoded_by_libpfm4_are_not_opened)
{
	const struct nm_event_request request = {
		.kind = NM_EVENT_MEMORY,
		.period = 1009,
		.selection = {.source = NM_MEMORY_PEBS, .load_latency = 0x10000}};
	struct helper_fixture *f = *state;
	struct nm_event_fds fds = {-1, -1};

	assert_int_equal(nm_event_open(f->context.root_fd, &request, &fds), -ENOPKG);
	assert_int_equal(kernel.count, 0);
}

TEST(precision_falls_to_the_available_level)
{
	for (int most = 3; most >= 1; most--) {
		struct nm_event_fds fds = {-1, -1};
		kernel.count = 0;
		kernel.precise_max = most;
		assert_int_equal(open_loads(*state, &fds), 0);
		assert_int_equal(kernel.count, 1 + 4 - most);
		assert_int_equal(kernel.opens[kernel.count - 1].attr.precise_ip, most);
		assert_int_equal(kernel.opens[kernel.count - 1].group, fds.leader);
		close_both(&fds);
	}
}

/*
 * A compromised daemon requests any kind, index, threshold and source: an event opens only as
 * spelled in the configuration at that time.
 */
/* SECURITY: open-event */
TEST(a_named_event_is_roots_choice)
{
	struct helper_fixture *f = *state;
	struct nm_helper_request request = loads_request();
	struct nm_event_fds fds;

	request.source = NM_MEMORY_EVENT;
	assert_int_equal(nm_helper_serve(&f->context, &request, &fds), -EPERM);
	SKIP_UNLESS_ROOT();
	fixture_file(f->root, "numa-migrd.conf",
		     "parameters: { sampling: { event = \"cpu/config=0x1c2/\"; }; };\n");
	assert_int_equal(nm_helper_serve(&f->context, &request, &fds), -EPERM);
	fixture_file(f->root, "numa-migrd.conf",
		     "parameters: { sampling: { event = \"perf::A\"; }; };\n");
	assert_int_equal(nm_helper_serve(&f->context, &request, &fds), -ENOPKG);
	fixture_file(f->root, "numa-migrd.conf",
		     "parameters: { sampling: { event = \"A B\"; }; };\n");
	assert_int_equal(nm_helper_serve(&f->context, &request, &fds), -EPERM);
	fixture_file(f->root, "numa-migrd.conf",
		     "parameters: { sampling: { event = \"MEM_LOAD_RETIRED:L3_MISS\"; }; };\n");
	assert_int_equal(chmod(f->config, 0666), 0);
	assert_int_equal(nm_helper_serve(&f->context, &request, &fds), -EPERM);
	assert_int_equal(chmod(f->config, 0644), 0);
	assert_int_equal(chown(f->config, 65534, 0), 0);
	assert_int_equal(nm_helper_serve(&f->context, &request, &fds), -EPERM);
	assert_int_equal(chown(f->config, 0, 0), 0);
	assert_int_equal(truncate(f->config, 2 << 20), 0);
	assert_int_equal(nm_helper_serve(&f->context, &request, &fds), -EPERM);
	assert_int_equal(kernel.count, 0);
	fixture_file(f->root, "numa-migrd.conf",
		     "parameters: { sampling: { event = \"MEM_LOAD_RETIRED:L3_MISS\"; }; };\n");
	request.load_latency = 0x4321;
	assert_int_equal(nm_helper_serve(&f->context, &request, &fds), 0);
	close(fds.event);
	assert_int_equal(kernel.count, 1);
	assert_int_equal(kernel.opens[0].attr.type, PERF_TYPE_RAW);
	assert_int_equal(kernel.opens[0].attr.config, 0x20d1);
	assert_int_equal(kernel.opens[0].attr.config1 | kernel.opens[0].attr.config2, 0);
	assert_true(kernel.opens[0].attr.exclude_kernel);
	for (request.index = 1; request.index < NM_EVENT_LIST_MAX; request.index++)
		assert_int_equal(nm_helper_serve(&f->context, &request, &fds), -ENOENT);
	request.index = 0;
	request.kind = NM_EVENT_STORE;
	assert_int_equal(nm_helper_serve(&f->context, &request, &fds), -ENOENT);
	assert_int_equal(kernel.count, 1);
}

/* Without precision a sample has no address. */
TEST(no_precision_is_no_event)
{
	struct nm_event_fds fds = {-1, -1};
	unsigned before = open_files(getpid());

	kernel.precise_max = 0;
	assert_int_equal(open_loads(*state, &fds), -EOPNOTSUPP);
	assert_int_equal(kernel.opens[kernel.count - 1].attr.precise_ip, 1);
	assert_int_equal(fds.event, -1);
	assert_int_equal(fds.leader, -1);
	assert_int_equal(open_files(getpid()), before);
}

TEST(a_refused_leader_ends_it)
{
	struct nm_event_fds fds = {-1, -1};
	unsigned before = open_files(getpid());

	kernel.leader_error = ENODEV;
	assert_int_equal(open_loads(*state, &fds), -ENODEV);
	assert_int_equal(kernel.count, 1);
	assert_int_equal(open_files(getpid()), before);
}

TEST(a_refused_event_takes_its_leader_along)
{
	static const int errors[] = {EACCES, EMFILE, ENODATA, EINVAL, EBUSY};
	struct nm_event_fds fds = {-1, -1};
	unsigned before = open_files(getpid());

	for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
		kernel.count = 0;
		kernel.loads_error = errors[i];
		assert_int_equal(open_loads(*state, &fds), -errors[i]);
		assert_int_equal(fds.event, -1);
		assert_int_equal(open_files(getpid()), before);
	}
}

/* ---- through the helper ---- */

struct served {
	int client;
	pid_t server;
	unsigned server_files;
};

static int serve(const struct helper_fixture *f, int listener)
{
	const struct nm_helper_server_options options = {.acts = &f->context,
							 .listen_fd = listener,
							 .permitted = geteuid(),
							 .idle_us = 3600000000ULL};
	struct nm_helper_server *server = NULL;
	sd_event *event = NULL;

	if (sd_event_new(&event) < 0 || nm_helper_server_new(event, &options, &server) < 0)
		return 1;
	return sd_event_loop(event);
}

/* When the next answer arrives, all descriptors of the former are closed. */
static unsigned server_files(const struct served *served)
{
	const struct nm_helper_request nothing = helper_fixture_balancing(7);
	struct nm_event_fds none = {-1, -1};

	assert_int_equal(nm_helper_call(served->client, &nothing, &none), -EINVAL);
	return open_files(served->server);
}

/* A helper in a separate process. */
static struct served served_start(struct helper_fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->socket);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(serve(f, listener) != 0);
	}
	close(listener);
	struct served served = {.client = nm_helper_connect(f->socket), .server = child};
	assert_true(child > 0 && served.client >= 0);
	served.server_files = server_files(&served);
	return served;
}

static void served_stop(const struct served *served)
{
	int status;

	close(served->client);
	assert_int_equal(kill(served->server, SIGKILL), 0);
	assert_int_equal(waitpid(served->server, &status, 0), served->server);
}

TEST(both_descriptors_are_passed)
{
	const struct nm_helper_request request = loads_request();
	struct served served = served_start(*state);
	unsigned before = open_files(getpid());

	for (unsigned round = 0; round < 3; round++) {
		struct nm_event_fds fds = {-1, -1};
		assert_int_equal(nm_helper_call(served.client, &request, &fds), 0);
		assert_int_equal(open_files(getpid()), before + 2);
		assert_true(fcntl(fds.event, F_GETFD) & FD_CLOEXEC);
		assert_true(fcntl(fds.leader, F_GETFD) & FD_CLOEXEC);
		assert_int_equal(config_of(fds.event), LOADS);
		assert_int_equal(config_of(fds.leader), LEADER);
		close_both(&fds);
	}
	assert_int_equal(server_files(&served), served.server_files);
	served_stop(&served);
}

TEST(a_partial_open_does_not_leak)
{
	const struct nm_helper_request request = loads_request();
	struct nm_event_fds fds = {-2, -2};

	kernel.loads_error = ENODATA;
	struct served served = served_start(*state);
	unsigned before = open_files(getpid());
	assert_int_equal(nm_helper_call(served.client, &request, &fds), -ENODATA);
	assert_int_equal(fds.event, -1);
	assert_int_equal(fds.leader, -1);
	assert_int_equal(open_files(getpid()), before);
	assert_int_equal(server_files(&served), served.server_files);
	served_stop(&served);
}

/* Space for one of the two descriptors: neither is kept, the error is reported, and the connection
 * continues. */
TEST(no_room_for_both)
{
	const struct nm_helper_request request = loads_request();
	struct nm_event_fds fds = {-2, -2};
	struct rlimit limit, tight;
	struct served served = served_start(*state);
	unsigned before = open_files(getpid());

	int next = dup(served.client); /* the lowest free number */
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	tight = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	int r = nm_helper_call(served.client, &request, &fds);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(r, -EMFILE);
	assert_int_equal(fds.event, -2);
	assert_int_equal(open_files(getpid()), before);
	assert_int_equal(nm_helper_call(served.client, &request, &fds), 0);
	close_both(&fds);
	served_stop(&served);
}

/* ---- invalid replies ---- */

static void send_with(int socket, const struct nm_helper_reply *reply, unsigned nr_fds)
{
	int fds[3] = {STDERR_FILENO, STDERR_FILENO, STDERR_FILENO};
	union {
		char space[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {.iov_base = (void *)reply, .iov_len = sizeof(*reply)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = CMSG_SPACE(nr_fds * sizeof(int))};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
	memcpy(CMSG_DATA(header), fds, nr_fds * sizeof(int));
	assert_int_equal(sendmsg(socket, &message, 0), sizeof(*reply));
}

TEST(unexpected_descriptors_are_closed)
{
	static const struct {
		struct nm_helper_request request;
		struct nm_helper_reply reply;
		unsigned nr_fds;
		int result;
	} cases[] = {
		{{.act = NM_HELPER_OPEN_EVENT}, {.version = NM_HELPER_VERSION + 1}, 2, -EPROTO},
		{{.act = NM_HELPER_OPEN_EVENT}, {NM_HELPER_VERSION, -EINVAL}, 2, -EPROTO},
		{{.act = NM_HELPER_OPEN_EVENT}, {NM_HELPER_VERSION, 1}, 1, -EPROTO},
		{{.act = NM_HELPER_NUMA_BALANCING}, {NM_HELPER_VERSION, 0}, 2, -EPROTO},
		{{.act = NM_HELPER_OPEN_EVENT}, {NM_HELPER_VERSION, 0}, 3, -EMFILE},
	};
	unsigned before = open_files(getpid());

	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		struct nm_event_fds fds = {-2, -2};
		int pair[2];
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		send_with(pair[1], &cases[i].reply, cases[i].nr_fds);
		assert_int_equal(nm_helper_call(pair[0], &cases[i].request, &fds), cases[i].result);
		assert_int_equal(fds.event, -2);
		assert_int_equal(fds.leader, -2);
		close(pair[0]);
		close(pair[1]);
		assert_int_equal(open_files(getpid()), before);
	}
}

RUN_TESTS()

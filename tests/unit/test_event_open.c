/* SPDX-License-Identifier: MIT */
/*
 * Arguments of perf_event_open(2), intercepted at syscall(2), and the two descriptors of load
 * events of Sapphire Rapids passed by the helper.
 */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

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
#include "../support/script.h"
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

static struct helper_fixture *f;
static struct nm_event_fds fds;
static struct nm_helper_request request; /* of the helper */
static int client = -1;
static pid_t server;

static int set_up(void **state)
{
	int r = helper_fixture_setup(state);
	f = *state;
	fixture_file(f->root, "proc/cpuinfo",
		     "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n");
	fixture_file(f->root, "sys/bus/event_source/devices/cpu/type", "4\n");
	fixture_file(f->root, "sys/bus/event_source/devices/cpu/events/mem-loads-aux",
		     "event=0x03,umask=0x82\n");
	memset(&kernel, 0, sizeof(kernel));
	kernel.precise_max = 3;
	fds = (struct nm_event_fds){-2, -2};
	request = helper_fixture_event(NM_EVENT_MEMORY, 1009);
	request.source = NM_MEMORY_PEBS;
	request.load_latency = 30;
	request.cpu = 5;
	return r;
}

static int tear_down(void **state)
{
	if (client >= 0) {
		close(client);
		assert_int_equal(kill(server, SIGKILL), 0);
		assert_int_equal(waitpid(server, NULL, 0), server);
		client = -1;
	}
	return helper_fixture_teardown(state);
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

/* ---- words ---- */

static int open_loads(uint16_t threshold)
{
	const struct nm_event_request loads = {
		.kind = NM_EVENT_MEMORY,
		.cpu = 5,
		.period = 1009,
		.selection = {.source = NM_MEMORY_PEBS, .load_latency = threshold}};
	kernel.count = 0;
	return nm_event_open(f->context.root_fd, &loads, &fds);
}

static int open_clock(unsigned index)
{
	const struct nm_event_request clock = {
		.kind = NM_EVENT_CLOCK, .cpu = 5, .period = 10000000, .index = index};
	kernel.count = 0;
	return nm_event_open(f->context.root_fd, &clock, &fds);
}

/* The events of the calls: type, configuration and extensions in hexadecimal, precision, period,
 * CPU, PID; "led" by the leader in `fds`, and without the kernel "user". */
static const char *show_opens(void)
{
	static char text[1024];
	size_t used = 0;
	for (unsigned i = 0; i < kernel.count; i++) {
		const struct perf_event_attr *attr = &kernel.opens[i].attr;
		const int group = kernel.opens[i].group;
		used += (size_t)snprintf(
			text + used, sizeof(text) - used,
			"%s%u:%llx/%llx,%llx p%u every %llu cpu %d pid %d%s%s%s", used ? ", " : "",
			attr->type, (unsigned long long)attr->config,
			(unsigned long long)attr->config1, (unsigned long long)attr->config2,
			(unsigned)attr->precise_ip, (unsigned long long)attr->sample_period,
			kernel.opens[i].cpu, kernel.opens[i].pid,
			group == -1	      ? ""
			: group == fds.leader ? " led"
					      : " led by another",
			attr->exclude_kernel ? " user" : "",
			kernel.opens[i].flags == PERF_FLAG_FD_CLOEXEC ? "" : " flags");
	}
	return used ? text : NULL;
}

/* The precision of each attempt to open the loads. */
static const char *show_precisions(void)
{
	static char text[OPENS_MAX + 1];
	unsigned count = 0;
	for (unsigned i = 0; i < kernel.count; i++)
		if (kernel.opens[i].attr.config == LOADS)
			text[count++] = (char)('0' + kernel.opens[i].attr.precise_ip);
	text[count] = '\0';
	return text;
}

/* The contents of both descriptors, which are closed. */
static const char *take_both(void)
{
	static char text[64];
	uint64_t configs[2] = {0};
	const int both[] = {fds.event, fds.leader};
	for (unsigned i = 0; i < 2; i++) {
		assert_true(fcntl(both[i], F_GETFD) & FD_CLOEXEC);
		assert_int_equal(read(both[i], &configs[i], sizeof(configs[i])),
				 sizeof(configs[i]));
		close(both[i]);
	}
	snprintf(text, sizeof(text), "%llx led by %llx", (unsigned long long)configs[0],
		 (unsigned long long)configs[1]);
	fds = (struct nm_event_fds){-2, -2};
	return text;
}

WORD(as_root)
{
	SKIP_UNLESS_ROOT();
}

/* event A: the configuration has this one */
WORD(event)
{
	char text[256];
	snprintf(text, sizeof(text), "parameters: { sampling: { event = \"%s\"; }; };\n",
		 step_rest(step));
	fixture_file(f->root, "numa-migrd.conf", text);
}

ACTION(mode, assert_int_equal(chmod(f->config, (mode_t)strtoul(step->word[0], NULL, 8)), 0))
ACTION(owned_by, assert_int_equal(chown(f->config, U(0), 0), 0))
ACTION(config_bytes, assert_int_equal(truncate(f->config, U(0)), 0))
KNOB(precise_max, kernel.precise_max)
KNOB(leader_error, kernel.leader_error)
KNOB(loads_error, kernel.loads_error)
KNOB(source, request.source)
NAMES(source, {"event", NM_MEMORY_EVENT})
KNOB(load_latency, request.load_latency)
KNOB(index, request.index)
KNOB(kind, request.kind)
NAMES(kind, {"store", NM_EVENT_STORE})
QUANTITY(opened, open_loads((uint16_t)U(0)))
QUANTITY(opened_clock, open_clock(U(0)))
QUANTITY(served, nm_helper_serve(&f->context, &request, &fds))
QUANTITY(called, nm_helper_call(client, &request, &fds))
QUANTITY(event_fd, fds.event)
QUANTITY(leader_fd, fds.leader)
QUANTITY(opens, kernel.count)
ACTION(close_event, close(fds.event))
TEXT(both, take_both())
TEXT(asked, show_opens())
TEXT(precisions, show_precisions())
QUANTITY(files, open_files(getpid()))

/* ---- opening ---- */

SCRIPT(loads_follow_their_leader, "keep n = files; opened 30 = 0",
       "asked = 4:8203/0,0 p0 every 0 cpu 5 pid -1 user, 4:1cd/1e,0 p3 every 1009 cpu 5 pid -1 led "
       "user",
       "both = 1cd led by 8203; files = n")

/* There is one of each kind. */
SCRIPT(events_of_the_kernel_have_no_leader,
       "opened_clock 1 = EINVAL; opens = 0; opened_clock 0 = 0; leader_fd = -1; close_event",
       "asked = 1:0/0,0 p0 every 10000000 cpu 5 pid -1")

/* libpfm4 takes thresholds of 16 bits. */
SCRIPT(events_not_encoded_by_libpfm4_are_not_opened, "opened 65536 = ENOPKG; opens = 0")

SCRIPT(precision_falls_to_the_available_level,
       "opened 30 = 0; precisions = 3; both = 1cd led by 8203; set precise_max = 2; opened 30 = 0",
       "precisions = 32; both = 1cd led by 8203; set precise_max = 1; opened 30 = 0",
       "precisions = 321; both = 1cd led by 8203",
       /* Without precision a sample has no address. */
       "set precise_max = 0; keep n = files; opened 30 = EOPNOTSUPP; precisions = 321",
       "event_fd = -2; leader_fd = -2; files = n")

SCRIPT(a_refused_leader_ends_it,
       "keep n = files; set leader_error = 19; opened 30 = ENODEV; opens = 1; files = n")

#define REFUSED(number, name)                                                                      \
	"set loads_error = " number "; opened 30 = " name "; event_fd = -2; files = n"

SCRIPT(a_refused_event_takes_its_leader_along, "keep n = files", REFUSED("13", "EACCES"),
       REFUSED("24", "EMFILE"), REFUSED("61", "ENODATA"), REFUSED("22", "EINVAL"),
       REFUSED("16", "EBUSY"))

/*
 * A compromised daemon requests any kind, index, threshold and source: an event opens only as
 * spelled in the configuration at that time.
 */
/* SECURITY: open-event */
SCRIPT(a_named_event_is_roots_choice,
       "set source = event; served = EPERM; as_root; event cpu/config=0x1c2/; served = EPERM",
       "event perf::A; served = ENOPKG; event A B; served = EPERM",
       "event MEM_LOAD_RETIRED:L3_MISS; mode 0666; served = EPERM; mode 0644; owned_by 65534",
       "served = EPERM; owned_by 0; config_bytes 2M; served = EPERM; opens = 0",
       "event MEM_LOAD_RETIRED:L3_MISS; set load_latency = 17185; served = 0; close_event",
       "asked = 4:20d1/0,0 p3 every 1009 cpu 5 pid -1 user; keep i = opens",
       "each 15: set index = i; served = ENOENT; keep i = i+1",
       "set index = 0; set kind = store; served = ENOENT; opens = 1")

/* ---- through the helper ---- */

static int serve(int listener)
{
	const struct nm_helper_server_options options = {.acts = &f->context,
							 .listen_fd = listener,
							 .permitted = geteuid(),
							 .idle_us = 3600000000ULL};
	struct nm_helper_server *helper = NULL;
	sd_event *event = NULL;

	if (sd_event_new(&event) < 0 || nm_helper_server_new(event, &options, &helper) < 0)
		return 1;
	return sd_event_loop(event);
}

/* A helper in a separate process. */
WORD(helper)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->socket);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(serve(listener) != 0);
	}
	close(listener);
	client = nm_helper_connect(f->socket);
	assert_true(server > 0 && client >= 0);
}

/* When the next answer arrives, all descriptors of the former are closed. */
static unsigned count_server_files(void)
{
	const struct nm_helper_request nothing = helper_fixture_balancing(7);
	struct nm_event_fds none = {-1, -1};

	assert_int_equal(nm_helper_call(client, &nothing, &none), -EINVAL);
	return open_files(server);
}

QUANTITY(server_files, count_server_files())

SCRIPT(both_descriptors_are_passed, "helper; keep s = server_files; keep n = files",
       "each 3: called = 0; files = n+2; both = 1cd led by 8203", "files = n; server_files = s")

SCRIPT(a_partial_open_does_not_leak,
       "set loads_error = 61; helper; keep s = server_files; keep n = files; called = ENODATA",
       "event_fd = -1; leader_fd = -1; files = n; server_files = s")

/* room 1: one descriptor can be opened; room 0: as many as usual */
WORD(room)
{
	static struct rlimit usual;
	struct rlimit limit;
	int next = dup(client); /* the lowest free number */
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (U(0) > 0)
		usual = limit;
	limit.rlim_cur = (rlim_t)next + U(0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, U(0) > 0 ? &limit : &usual), 0);
}

/* Space for one of the two descriptors: neither is kept, the error is reported, and the connection
 * continues. */
SCRIPT(no_room_for_both,
       "helper; keep n = files; room 1; called = EMFILE; event_fd = -2; leader_fd = -2; room 0; "
       "files = n",
       "called = 0; both = 1cd led by 8203")

/* ---- invalid replies ---- */

static void send_with(int socket, const struct nm_helper_reply *reply, unsigned nr_fds)
{
	int passed[3] = {STDERR_FILENO, STDERR_FILENO, STDERR_FILENO};
	union {
		char space[CMSG_SPACE(sizeof(passed))];
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
	memcpy(CMSG_DATA(header), passed, nr_fds * sizeof(int));
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
		int pair[2];
		fds = (struct nm_event_fds){-2, -2};
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

/* SPDX-License-Identifier: MIT */
/*
 * The cost of inherited affinities on real threads of this machine: `--restore` of a ledger of
 * 4,096 lines beside as many threads as are available, at most 50,000, with 256 more lines of as
 * many processes and, further down, 4,000 threads that their owner has pinned to a target; and the
 * handling of 2,000 forks a second beside 256 leases. Each CPU represents a node. Needs root for
 * sched_setaffinity(2) of other users. Also `--restore` of 1,000 threads 1,900 levels deep in
 * cgroups, on a synthetic machine.
 */
#include <dirent.h>
#include <hwloc.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEEP_THREADS 1000
#define DEEP_LEVELS 1900
#define FAKE_THREADS (DEEP_THREADS + 10)
#define FAKE_CGROUP_BYTES 4096

#include "../../src/lease/descent.h"
#include "../support/machine.h"
#include "../unit/fake_platform.h"
#include "../unit/fixture.h"
#include "bench.h"
#include "numa-migrd/lease.h"
#include "numa-migrd/ledger.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/sample.h"

#define BOOT "bench"
#define LINES 4096
#define MOST_THREADS 50000
#define THREADS_PER_PROCESS 1000
#define MOST_PROCESSES (MOST_THREADS / THREADS_PER_PROCESS)
#define FAMILIES 256 /* leased processes of one thread */
#define CHAIN 64
#define PINNED_THREADS 4000
#define SPARE_THREADS 6000 /* reserved for these and for the rest of the machine */
#define LEASES 256
#define FORKS_PER_S 2000
#define FORK_SECONDS 10
#define BATCH_MS 100

static struct nm_platform *platform;
static struct nm_topology *topology;

static double wall_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- threads ---- */

static void *sleep_on(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* Creates threads and exits with the parent. */
static void be_process(unsigned nr_threads, int ready)
{
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	for (unsigned i = 1; i < nr_threads; i++) {
		pthread_t thread;
		if (pthread_create(&thread, &attributes, sleep_on, NULL) != 0)
			_exit(1);
	}
	if (write(ready, "", 1) != 1)
		_exit(1);
	sleep_on(NULL);
}

/* Pins itself this many generations down. */
static void be_chain(unsigned depth, int ready)
{
	for (unsigned i = 1; i < depth; i++) {
		pid_t pid = fork();
		if (pid != 0)
			sleep_on(NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	cpu_set_t node;
	CPU_ZERO(&node);
	for (int cpu = hwloc_bitmap_first(topology->nodes[1].cpus); cpu >= 0;
	     cpu = hwloc_bitmap_next(topology->nodes[1].cpus, cpu))
		CPU_SET((unsigned)cpu, &node);
	if (sched_setaffinity(0, sizeof(node), &node) < 0)
		_exit(1);
	be_process(PINNED_THREADS, ready);
}

/* A process of this many threads, or a chain of processes (0). Returns -1 if no more are
 * available. */
static pid_t start_process(unsigned nr_threads)
{
	int ready[2];
	char byte = 0;
	if (pipe(ready) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (nr_threads == 0)
			be_chain(CHAIN, ready[1]);
		be_process(nr_threads, ready[1]);
	}
	close(ready[1]);
	bool started = pid > 0 && read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	if (started)
		return pid;
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return -1;
}

static void end_processes(const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		kill(pids[i], SIGKILL);
	for (size_t i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
}

static unsigned read_limit(const char *path)
{
	unsigned limit = 0;
	FILE *file = fopen(path, "r");
	if (file && fscanf(file, "%u", &limit) != 1)
		limit = 0;
	if (file)
		fclose(file);
	return limit;
}

/* Reserves some numbers for the rest of the machine. */
static unsigned available_threads(void)
{
	unsigned numbers = read_limit("/proc/sys/kernel/pid_max");
	unsigned threads = read_limit("/proc/sys/kernel/threads-max");
	unsigned least = numbers < threads ? numbers : threads;
	unsigned most = least > SPARE_THREADS ? least - SPARE_THREADS : 0;
	return most < MOST_THREADS ? most : MOST_THREADS;
}

/* ---- the ledger ---- */

struct lines {
	struct nm_ledger *ledger;
	uint32_t pid;
	size_t count, most;
};

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static void give_line(struct lines *lines, uint32_t tid)
{
	struct nm_proc_stat stat;
	int directory = nm_proc_open_thread(platform, lines->pid, tid);
	must(directory, "open");
	must(nm_proc_read_stat(platform, directory, &stat), "stat");
	platform->ops->close(platform, directory);
	const struct nm_ledger_entry entry = {
		.tid = tid,
		.pid = lines->pid,
		.start_ticks = stat.start_ticks,
		.given_ticks = nm_proc_ticks_now(platform),
		.decision = lines->count,
		.session = stat.session,
		.uid = getuid(),
		.unrestricted = true,
		.original = topology->possible,
		.target = topology->nodes[lines->count % topology->nr_nodes].cpus,
	};
	must(nm_ledger_give(lines->ledger, &entry), "ledger");
	must(platform->ops->affinity_set(platform, (pid_t)tid, entry.target), "affinity");
	lines->count++;
}

static int give_thread(void *context, const char *name)
{
	struct lines *lines = context;
	unsigned tid;
	if (lines->count < lines->most && sscanf(name, "%u", &tid) == 1)
		give_line(lines, tid);
	return 0;
}

static void give_process(struct lines *lines, pid_t pid, size_t most)
{
	char path[64];
	lines->pid = (uint32_t)pid;
	lines->most = lines->count + most;
	snprintf(path, sizeof(path), "proc/%d/task", pid);
	must(platform->ops->list_directory(platform, NM_ROOT, path, give_thread, lines), "list");
}

/* Starts fewer if no more are available. */
static size_t start_processes(size_t count, unsigned nr_threads, pid_t *ret)
{
	size_t started = 0;
	while (started < count) {
		ret[started] = start_process(nr_threads);
		if (ret[started] < 0)
			break;
		started++;
	}
	return started;
}

static double bytes_of_ledger(int directory)
{
	struct stat status;
	must(fstatat(directory, NM_LEDGER_NAME, &status, 0) < 0 ? -errno : 0, "stat");
	return (double)status.st_size;
}

static void bench_restore(int directory)
{
	pid_t pids[MOST_PROCESSES], families[FAMILIES];
	struct nm_restoration found;
	struct lines lines = {0};
	size_t count = start_processes(available_threads() / THREADS_PER_PROCESS,
				       THREADS_PER_PROCESS, pids);
	size_t nr_families = start_processes(FAMILIES, 1, families);
	must(nm_ledger_open(directory, BOOT, &lines.ledger), "ledger");
	for (size_t i = 0; i < count; i++)
		give_process(&lines, pids[i], (LINES - lines.count) / (count - i));
	for (size_t i = 0; i < nr_families; i++)
		give_process(&lines, families[i], 1);
	nm_ledger_free(lines.ledger);
	double line_bytes = bytes_of_ledger(directory) / (double)lines.count;
	usleep(100000); /* later children inherit leased affinities */
	pid_t chain = start_process(0);
	must(chain < 0 ? -EAGAIN : 0, "chain");

	double before_s = wall_s();
	int restored = nm_restore(platform, topology, directory, BOOT, NULL, NULL, &found);
	double took_s = wall_s() - before_s;
	must(restored, "restore");
	fprintf(stderr, "# %d of %zu affinities restored beside %zu threads\n", restored,
		lines.count, count * THREADS_PER_PROCESS);
	bench_print("ledger_bytes_per_lease", line_bytes, "bytes");
	bench_print("restore_threads", (double)(count * THREADS_PER_PROCESS), "threads");
	bench_print("restore_s", took_s, "s");
	end_processes(&chain, 1);
	end_processes(families, nr_families);
	end_processes(pids, count);
}

/* ---- deep cgroups on a synthetic machine ---- */

/* Leases a process each. The owner has since changed the affinity of every other one. */
static void lease_deep(struct fake *fake, struct nm_ledger *ledger)
{
	char path[FAKE_CGROUP_BYTES] = "";
	for (unsigned level = 0; level < DEEP_LEVELS; level++)
		strcat(path, "/x");
	for (uint32_t i = 0; i < DEEP_THREADS; i++) {
		const struct fake_thread *thread = fake_process(fake, 100 + i, 1);
		fake_move(fake, thread->tid, path);
		const struct nm_ledger_entry entry = {
			.tid = thread->tid,
			.pid = thread->pid,
			.start_ticks = thread->start_ticks,
			.given_ticks = thread->start_ticks,
			.uid = thread->uid,
			.unrestricted = true,
			.cgroup = nm_ledger_cgroup(path),
			.original = topology->possible,
			.target = topology->nodes[1].cpus,
		};
		must(nm_ledger_give(ledger, &entry), "ledger");
		must(fake_set_mask(fake, thread->tid,
				   i % 2 ? 1 : fake_from_bitmap(entry.target)),
		     "affinity");
	}
}

/* Calls of one walk per thread if all threads carry a part of a target. */
static double walk_calls_per_thread(struct fake *fake)
{
	const struct nm_ledger_entry line = {.tid = 50,
					     .pid = 50,
					     .uid = 1,
					     .given_ticks = 1,
					     .original = topology->possible,
					     .target = topology->nodes[1].cpus};
	const struct nm_ledger_entry *lines[] = {&line};
	struct nm_masks masks = {.platform = &fake->platform, .topology = topology};
	struct nm_descent *descent;
	masks.cgroups = nm_cgroups_new(&fake->platform);
	descent = nm_descent_new(&masks);
	for (uint32_t i = 0; i < DEEP_THREADS; i++)
		must(fake_set_mask(fake, 100 + i, fake_from_bitmap(line.target)), "affinity");
	fake->names_cpusets = true;
	struct nm_descent_walk walk = {.entries = lines, .nr_entries = 1};
	unsigned calls = fake->calls[FAKE_OPS];
	must(nm_descent_walk(descent, &walk), "walk");
	must(walk.found ? -EEXIST : 0, "found");
	nm_descent_free(descent);
	nm_cgroups_free(masks.cgroups);
	return (double)(fake->calls[FAKE_OPS] - calls) / DEEP_THREADS;
}

static void bench_deep(int directory)
{
	struct fake *fake = fake_new(topology->nr_cpus);
	struct nm_restoration found;
	struct nm_ledger *ledger;
	must(nm_ledger_open(directory, BOOT, &ledger), "ledger");
	lease_deep(fake, ledger);
	nm_ledger_free(ledger);
	unsigned calls = fake->calls[FAKE_OPS];
	double before_s = wall_s();
	int restored =
		nm_restore(&fake->platform, topology, directory, BOOT, NULL, NULL, &found);
	double took_s = wall_s() - before_s;
	must(restored, "restore");
	fprintf(stderr, "# %d of %d affinities restored, %d levels deep\n", restored, DEEP_THREADS,
		DEEP_LEVELS);
	bench_print("restore_deep_s", took_s, "s");
	bench_print("restore_deep_calls_per_thread",
		    (double)(fake->calls[FAKE_OPS] - calls) / DEEP_THREADS, "calls");
	bench_print("walk_calls_per_thread", walk_calls_per_thread(fake), "calls");
	nm_platform_free(&fake->platform);
}

/* ---- forks ---- */

/* Forks children that exit at once, at the given rate, and writes their numbers. */
static pid_t start_forker(int out)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	double begin_s = wall_s();
	for (uint64_t done = 0;; done++) {
		while ((double)done > (wall_s() - begin_s) * FORKS_PER_S)
			usleep(2000);
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		if (child > 0 && write(out, &child, sizeof(child)) != sizeof(child))
			_exit(1);
	}
}

static struct nm_task_event event_of(enum nm_task_event_kind kind, pid_t child, pid_t parent)
{
	return (struct nm_task_event){
		.kind = kind,
		.pid = (uint32_t)child,
		.tid = (uint32_t)child,
		.parent_pid = (uint32_t)parent,
		.parent_tid = (uint32_t)parent,
		.time_ns = platform->ops->now_ns(platform),
	};
}

/* As the daemon handles the records of one drain. */
static void hand_over(struct nm_actuator *actuator, struct nm_task_event *events, size_t count)
{
	struct nm_task_event **order = calloc(count + 1, sizeof(*order));
	must(order ? 0 : -ENOMEM, "order");
	nm_task_events_order(events, count, order);
	for (size_t i = 0; i < count; i++)
		nm_actuator_task_event(actuator, order[i]);
	free(order);
}

static size_t read_forks(int in, pid_t parent, struct nm_task_event *events)
{
	static pid_t children[FORKS_PER_S];
	ssize_t got = read(in, children, sizeof(children));
	size_t forks = got > 0 ? (size_t)got / sizeof(children[0]) : 0;
	for (size_t i = 0; i < forks; i++) {
		events[2 * i] = event_of(NM_TASK_FORK, children[i], parent);
		events[2 * i + 1] = event_of(NM_TASK_EXIT, children[i], parent);
	}
	return 2 * forks;
}

/* All threads are members and keep running. */
static void tend(struct nm_actuator *actuator, const struct nm_member *members, size_t count)
{
	const struct nm_actuator_input input = {
		.members = members, .nr_members = count, .now_ns = platform->ops->now_ns(platform)};
	nm_actuator_update(actuator, &input);
}

static double follow_forks(struct nm_actuator *actuator, pid_t parent, int in,
			   const struct nm_member *members, size_t count)
{
	static struct nm_task_event events[2 * FORKS_PER_S];
	double spent_ns = 0;
	uint64_t forks = 0;
	double begin_s = wall_s();
	for (unsigned turn = 0; turn < FORK_SECONDS * 1000 / BATCH_MS; turn++) {
		usleep(BATCH_MS * 1000);
		size_t nr_events = read_forks(in, parent, events);
		double before_ns = bench_cpu_ns();
		hand_over(actuator, events, nr_events);
		if (turn % (1000 / BATCH_MS) == 0)
			tend(actuator, members, count);
		spent_ns += bench_cpu_ns() - before_ns;
		forks += nr_events / 2;
	}
	double took_s = wall_s() - begin_s;
	fprintf(stderr, "# %.0f forks/s\n", (double)forks / took_s);
	return spent_ns / took_s / 1e9 * 100;
}

/* A daemon adopts the leases of the ledger. */
static void bench_forks(int directory, bool leased)
{
	struct nm_actuator *actuator;
	struct lines lines = {0};
	int forks[2];
	pid_t sleepers = start_process(LEASES);
	if (sleepers < 0 || pipe(forks) < 0)
		must(-EAGAIN, "process");
	pid_t forker = start_forker(forks[1]);
	must(nm_ledger_open(directory, BOOT, &lines.ledger), "ledger");
	give_process(&lines, sleepers, leased ? LEASES - 1 : LEASES);
	if (leased)
		give_process(&lines, forker, 1);
	nm_ledger_free(lines.ledger);
	must(nm_actuator_new(platform, topology, directory, BOOT, NULL, NULL, &actuator), "new");

	struct nm_ledger_contents contents;
	must(nm_ledger_read(directory, BOOT, &contents), "ledger");
	struct nm_member *members = calloc(contents.count + 1, sizeof(*members));
	for (size_t i = 0; members && i < contents.count; i++)
		members[i] = (struct nm_member){.tid = contents.entries[i].tid,
						.pid = contents.entries[i].pid,
						.start_ticks = contents.entries[i].start_ticks};
	double percent = follow_forks(actuator, forker, forks[0], members, contents.count);
	bench_print(leased ? "forks_2000_by_leased_cpu_percent" : "forks_2000_cpu_percent", percent,
		    "%");
	must(-(int)nm_actuator_return_all(actuator), "return");
	nm_actuator_free(actuator);
	nm_ledger_contents_clear(&contents);
	free(members);
	const pid_t pids[] = {sleepers, forker};
	end_processes(pids, 2);
	close(forks[0]);
	close(forks[1]);
}

int main(void)
{
	const struct nm_platform_options options = {.root_path = "/"};
	char root[FIXTURE_PATH];
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	if (geteuid() != 0 || cpus < 2) {
		fprintf(stderr, "# needs root and two CPUs: skipped\n");
		return 0;
	}
	topology = machine_topology(2, cpus - cpus % 2);
	must(topology ? nm_platform_linux_new(&options, &platform) : -ENOMEM, "platform");
	fixture_make(root, sizeof(root));
	int directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bench_deep(directory);
	bench_restore(directory);
	bench_forks(directory, false);
	bench_forks(directory, true);
	close(directory);
	fixture_remove(root);
	nm_topology_free(topology);
	nm_platform_free(platform);
	return 0;
}

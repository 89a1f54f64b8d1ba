/* SPDX-License-Identifier: MIT */
/*
 * The cost of the whole daemon on this machine with default settings, beside a thousand
 * short-running threads on its CPUs. On a machine with one node the daemon would have nothing to
 * do, so the topology is synthetic: CPUs and memory blocks are divided between two nodes. Kernel,
 * samples, /proc and affinities are real.
 */
#include <dirent.h>
#include <hwloc.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/daemon/options.h"
#include "../unit/fixture.h"
#include "bench.h"
#include "numa-migrd/base.h"

#define THREADS 1000
#define THREAD_BYTES (64 * 1024)
#define SETTLE_S 8
#define MEASURE_S 20
#define IDLE_S 10
#define RESTING_PER_S 250.0
#define SPAWNS_PER_S 2000

/* ---- the load ---- */

/* Computes for about 0.5 ms on its own memory, two or three times a second. */
static void *come_and_go(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;
	volatile char *memory = calloc(1, THREAD_BYTES);
	if (!memory)
		return NULL;
	for (;;) {
		for (int round = 0; round < 200; round++)
			for (size_t i = 0; i < THREAD_BYTES; i += 64)
				memory[i]++;
		usleep(200000 + (useconds_t)(rand_r(&seed) % 400000));
	}
}

static pid_t start_threads(void)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "crowd");
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	for (uintptr_t i = 0; i < THREADS; i++) {
		pthread_t thread;
		if (pthread_create(&thread, &attributes, come_and_go, (void *)(i + 1)) != 0)
			_exit(1);
	}
	for (;;)
		pause();
}

/* Forks, executes a program and exits at the given rate, as a build does, or as fast as the machine
 * allows. */
static pid_t start_spawner(volatile uint64_t *done)
{
	char *const arguments[] = {"true", NULL};
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGCHLD, SIG_IGN);
	struct timespec next;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;; ++*done) {
		pid_t child;
		next.tv_nsec += 1000000000L / SPAWNS_PER_S;
		next.tv_sec += next.tv_nsec / 1000000000L;
		next.tv_nsec %= 1000000000L;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		(void)posix_spawn(&child, "/bin/true", NULL, NULL, arguments, NULL);
	}
}

/* ---- two synthetic nodes ---- */

static int write_xml(const char *path, long nr_cpus)
{
	char description[64];
	hwloc_topology_t topology;
	snprintf(description, sizeof(description), "numa:2 core:%ld pu:1", nr_cpus / 2);
	int r = hwloc_topology_init(&topology);
	if (r == 0)
		r = hwloc_topology_set_synthetic(topology, description);
	if (r == 0)
		r = hwloc_topology_load(topology);
	if (r == 0)
		r = hwloc_topology_export_xml(topology, path, 0);
	hwloc_topology_destroy(topology);
	return r;
}

/* Even memory blocks of the machine are on node 0, odd ones on node 1. */
static int deal_out_memory(const char *root)
{
	char size[64] = "";
	FILE *file = fopen("/sys/devices/system/memory/block_size_bytes", "r");
	if (!file)
		return -1;
	char *got = fgets(size, sizeof(size), file);
	fclose(file);
	DIR *blocks = opendir("/sys/devices/system/memory");
	if (!got || !blocks)
		return -1;

	fixture_file(root, "sys/devices/system/memory/block_size_bytes", size);
	for (struct dirent *entry; (entry = readdir(blocks)) != NULL;) {
		unsigned block;
		char path[FIXTURE_PATH];
		if (sscanf(entry->d_name, "memory%u", &block) != 1)
			continue;
		snprintf(path, sizeof(path), "sys/devices/system/node/node%u/memory%u", block % 2,
			 block);
		fixture_directory(root, path);
	}
	closedir(blocks);
	return 0;
}


struct made_up {
	char root[FIXTURE_PATH];
	char xml[FIXTURE_PATH + 16];
	char config[FIXTURE_PATH + 16];
};

static pid_t start_daemon(void *argument)
{
	const struct made_up *machine = argument;
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct nm_options options = {
		.config = {.path = machine->config},
		.topology = {.xml_path = machine->xml, .root_path = machine->root}};
	setenv("RUNTIME_DIRECTORY", machine->root, 1);
	if (!getenv("BENCH_VERBOSE") && !freopen("/dev/null", "w", stderr))
		_exit(1);
	_exit(nm_daemon_run(&options));
}

/* Returns the number after `name` in /proc/PID/FILE, or -1. */
static double status_number(pid_t pid, const char *name)
{
	char path[64];
	char line[256];
	double value = -1;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtod(line + strlen(name) + 1, NULL);
	if (file)
		fclose(file);
	return value;
}

/* Returns the CPU time of all its threads. */
static double cpu_seconds(pid_t pid)
{
	clockid_t clock;
	struct timespec spent;
	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &spent) < 0)
		return -1;
	return (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}

/* Returns the number of local timer interrupts of all CPUs so far (/proc/interrupts, line LOC, x86
 * only), or -1. */
static double timer_interrupts(void)
{
	char line[65536];
	double sum = -1;
	FILE *file = fopen("/proc/interrupts", "r");
	while (file && fgets(line, sizeof(line), file)) {
		char *counts = strstr(line, "LOC:");
		if (!counts)
			continue;
		sum = 0;
		counts += strlen("LOC:");
		for (char *end; *counts; counts = end) {
			double count = strtod(counts, &end);
			if (end == counts)
				break;
			sum += count;
		}
	}
	if (file)
		fclose(file);
	return sum;
}

static double interrupts_per_cpu_s(long nr_cpus)
{
	double before = timer_interrupts();
	sleep(IDLE_S);
	return (timer_interrupts() - before) / IDLE_S / (double)nr_cpus;
}

/* Measures the load that the daemon adds to an idle machine. The result is meaningful only if
 * nothing else runs here. */
static int measure_idle(pid_t (*start)(void *), void *argument, long nr_cpus)
{
	if (timer_interrupts() < 0) {
		fprintf(stderr, "bench_daemon: idle_wakeups_per_cpu_s left out: no LOC in "
				"/proc/interrupts\n");
		return 0;
	}
	double without = interrupts_per_cpu_s(nr_cpus);
	if (without > RESTING_PER_S) {
		fprintf(stderr,
			"bench_daemon: idle_wakeups_per_cpu_s left out: this machine does not rest "
			"(%.0f timer "
			"interrupts per CPU and second without the daemon)\n",
			without);
		return 0;
	}
	pid_t daemon = start(argument);
	sleep(SETTLE_S);
	double with = interrupts_per_cpu_s(nr_cpus);
	kill(daemon, SIGTERM);
	waitpid(daemon, NULL, 0);
	fprintf(stderr,
		"bench_daemon: timer interrupts per CPU and second: %.1f without, %.1f with\n",
		without, with);
	bench_print("idle_wakeups_per_cpu_s", with - without, "1/s");
	return 0;
}

static int measure(pid_t daemon)
{
	sleep(SETTLE_S);
	double cpu_before = cpu_seconds(daemon);
	double wakeups_before = status_number(daemon, "voluntary_ctxt_switches");
	sleep(MEASURE_S);
	if (waitpid(daemon, NULL, WNOHANG) != 0 || cpu_before < 0) {
		fprintf(stderr,
			"bench_daemon: the daemon did not stay up; BENCH_VERBOSE=1 shows why\n");
		return 1;
	}
	bench_print("daemon_cpu_percent", (cpu_seconds(daemon) - cpu_before) / MEASURE_S * 100,
		    "%");
	bench_print("daemon_rss_mb", status_number(daemon, "VmRSS") / 1024, "MiB");
	bench_print("daemon_wakeups_s",
		    (status_number(daemon, "voluntary_ctxt_switches") - wakeups_before) / MEASURE_S,
		    "1/s");
	return 0;
}

/* Neither a helper nor a worker runs here, so short-lived processes are not queried. */
static int measure_forks(pid_t daemon)
{
	volatile uint64_t *done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (done == MAP_FAILED)
		return 1;
	pid_t spawner = start_spawner(done);
	sleep(SETTLE_S);
	double cpu_before = cpu_seconds(daemon), rss_before = status_number(daemon, "VmRSS");
	uint64_t done_before = *done;
	sleep(MEASURE_S);
	double spent_s = cpu_seconds(daemon) - cpu_before;
	double per_s = (double)(*done - done_before) / MEASURE_S;
	kill(spawner, SIGKILL);
	waitpid(spawner, NULL, 0);
	fprintf(stderr, "bench_daemon: %.0f forks and execs a second\n", per_s);
	bench_print("forks_2000_daemon_cpu_percent", spent_s / MEASURE_S * 100 * SPAWNS_PER_S / per_s,
		    "%");
	bench_print("forks_2000_daemon_growth_kb", status_number(daemon, "VmRSS") - rss_before,
		    "KiB");
	munmap((void *)(uintptr_t)done, sizeof(*done));
	return 0;
}

static int measure_all(struct made_up *machine, long nr_cpus)
{
	int status = measure_idle(start_daemon, machine, nr_cpus);
	pid_t threads = start_threads();
	pid_t daemon = start_daemon(machine);
	if (status == 0)
		status = measure(daemon);
	if (status == 0)
		status = measure_forks(daemon);
	kill(daemon, SIGTERM);
	waitpid(daemon, NULL, 0);
	kill(threads, SIGKILL);
	waitpid(threads, NULL, 0);
	return status;
}

int main(void)
{
	struct made_up machine;
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (geteuid() != 0 || nr_cpus < 2) {
		fprintf(stderr, "bench_daemon: left out: it needs root and two CPUs\n");
		return 0;
	}

	fixture_make(machine.root, sizeof(machine.root));
	snprintf(machine.xml, sizeof(machine.xml), "%s/machine.xml", machine.root);
	snprintf(machine.config, sizeof(machine.config), "%s/numa-migrd.conf", machine.root);
	/* Default settings, but other programs of this machine must not be moved. */
	fixture_file(machine.root, "numa-migrd.conf",
		     "targets: { include = ( { command = \"crowd\"; } ); };\n");
	if (write_xml(machine.xml, nr_cpus) < 0 || deal_out_memory(machine.root) < 0) {
		fprintf(stderr,
			"bench_daemon: left out: this kernel does not show its memory blocks\n");
		fixture_remove(machine.root);
		return 0;
	}
	int status = measure_all(&machine, nr_cpus);
	fixture_remove(machine.root);
	return status;
}

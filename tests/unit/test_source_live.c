/* SPDX-License-Identifier: MIT */
/*
 * The source on the running kernel, if permitted; otherwise skipped, with the reason.
 *
 *	needs accesses; needs runs; needs all	skipped unless these are sampled, or no record was
 *lost touch; spin; rename			of a new thread, whose records are counted execute
 *of a new process
 */
#define SET_UP with_shipped_settings
#define TEAR_DOWN close_source
#include "../support/test.h"

#include <stdint.h>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../support/script.h"
#include "sample/sample.h"

#define PAGES 512U
#define SKIPPED 77

static struct {
	struct nm_platform *platform;
	struct nm_topology *topology;
	struct nm_config *config;
	struct nm_source *source;
	int cpu; /* sampled; the threads of the tests stay on it */
} live;

/* The acts of a thread or process on the sampled CPU, and their traces. */
static struct {
	uint32_t pid, tid;
	void (*act)(void);
	volatile uint8_t *memory;
	size_t page;
	unsigned runs, runs_elsewhere;
	unsigned faults, faults_elsewhere, with_physical;
	uint8_t touched[PAGES];
	unsigned threads_created, processes_created, ended, named, executed;
} seen;

static int open_source(void)
{
	char error[512];
	int r = nm_source_open(live.platform, live.topology, live.config, error, sizeof(error),
			       &live.source);

	if (r < 0)
		fprintf(stderr, "%s\n", error);
	return r;
}

static int close_source(void **state)
{
	(void)state;
	nm_source_free(live.source);
	live.source = NULL;
	return 0;
}

static int with_shipped_settings(void **state)
{
	(void)state;
	live.config->rules.ring_kb = 512;
	return open_source();
}

static int with_tiny_rings(void **state)
{
	(void)state;
	live.config->rules.ring_kb = 16;
	return open_source();
}

/* ---- events of one thread or process ---- */

static void see_fault(const struct nm_sample *sample)
{
	const uint64_t offset = sample->address - (uint64_t)(uintptr_t)seen.memory;
	if (!seen.memory || offset >= PAGES * seen.page)
		return;
	seen.faults++;
	seen.touched[offset / seen.page] = 1;
	seen.with_physical += sample->physical_address != 0;
	seen.faults_elsewhere += sample->cpu != (uint32_t)live.cpu || sample->pid != seen.pid;
}

static void see_sample(void *context, struct nm_sample *sample)
{
	(void)context;
	if (sample->tid != seen.tid)
		return;
	if (sample->kind == NM_EVENT_FAULT_MIN || sample->kind == NM_EVENT_FAULT_MAJ) {
		see_fault(sample);
		return;
	}
	seen.runs++;
	seen.runs_elsewhere += sample->cpu != (uint32_t)live.cpu;
}

static void see_task(void *context, const struct nm_task_event *event)
{
	(void)context;
	if (event->kind == NM_TASK_FORK && event->parent_pid == seen.pid) {
		seen.threads_created += event->pid == seen.pid;
		seen.processes_created += event->pid != seen.pid;
	}
	if (event->tid != seen.tid)
		return;
	seen.ended += event->kind == NM_TASK_EXIT;
	seen.named += event->kind == NM_TASK_COMM;
	seen.executed += event->kind == NM_TASK_EXEC;
}

static void drain(void)
{
	const struct nm_sample_sink sink = {.on_sample = see_sample, .on_task = see_task};
	(void)nm_source_drain(live.source, &sink);
}

/* Neither pthread_join() nor waitpid() waits for the EXIT record. */
static void drain_until_it_ended(void)
{
	drain();
	for (unsigned i = 0; i < 100 && !seen.ended; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		drain();
	}
}

/* ---- what it does ---- */

static void *work_thread(void *context)
{
	seen.tid = (uint32_t)gettid();
	seen.act();
	return context;
}

static void do_in_thread(void (*act)(void))
{
	pthread_t thread;
	memset(&seen, 0, sizeof(seen));
	seen.pid = (uint32_t)getpid();
	seen.act = act;
	assert_int_equal(pthread_create(&thread, NULL, work_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void touch_pages(void)
{
	seen.page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, PAGES * seen.page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return;
	(void)madvise(memory, PAGES * seen.page, MADV_NOHUGEPAGE);
	seen.memory = memory;
	for (size_t i = 0; i < PAGES; i++)
		seen.memory[i * seen.page] = 1;
	munmap(memory, PAGES * seen.page);
}

static void spin(void)
{
	struct timespec now, start;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 300);
}

static void rename_itself(void)
{
	(void)prctl(PR_SET_NAME, "renamed");
}

WORD(execute)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 127) {
		print_message("there is no /bin/true here\n");
		skip();
	}
	memset(&seen, 0, sizeof(seen));
	seen.pid = (uint32_t)getpid();
	seen.tid = (uint32_t)child;
	drain_until_it_ended();
}

/* The rings cover the whole machine: if other programs fill them, the expected records may be
 * lost. */
WORD(needs)
{
	const struct nm_source_status *status = nm_source_status(live.source);
	if (step_has(step, "accesses") ? status->accesses
	    : step_has(step, "runs")   ? status->runs
				       : status->counts.lost == 0)
		return;
	print_message("%s: not sampled here, or others filled the rings\n", step->text);
	skip();
}

static unsigned touched_pages(void)
{
	unsigned pages = 0;
	for (size_t i = 0; i < PAGES; i++)
		pages += seen.touched[i];
	return pages;
}

static int await_wake(void)
{
	struct pollfd waiting = {.fd = nm_source_fd(live.source), .events = POLLIN};
	return poll(&waiting, 1, 10000);
}

ACTION(touch, do_in_thread(touch_pages))
ACTION(spin, do_in_thread(spin))
ACTION(rename, do_in_thread(rename_itself))
ACTION(drain, drain())
ACTION(drain_to_the_end, drain_until_it_ended())
QUANTITY(cost_changes, nm_source_control_cost(live.source, N(0)))
QUANTITY(wakes, await_wake())
QUANTITY(pages, touched_pages())
QUANTITY(faults, seen.faults)
QUANTITY(faults_elsewhere, seen.faults_elsewhere)
QUANTITY(with_physical, seen.with_physical)
QUANTITY(runs, seen.runs)
QUANTITY(runs_elsewhere, seen.runs_elsewhere)
QUANTITY(threads, seen.threads_created)
QUANTITY(processes, seen.processes_created)
QUANTITY(named, seen.named)
QUANTITY(executed, seen.executed)
QUANTITY(ended, seen.ended)
QUANTITY(lost, nm_source_status(live.source)->counts.lost)
QUANTITY(corrupt, nm_source_status(live.source)->counts.corrupt)

/* ---- tests ---- */

SCRIPT(every_touched_page_is_seen,
       "needs accesses; touch; drain; faults_elsewhere = 0; pages > 0; keep n = faults",
       "with_physical > n*0.5; needs all; pages = 512")

SCRIPT(a_raised_period_is_obeyed, "needs accesses", "each 4: cost_changes 1e9 = 1",
       "touch; drain; faults < 256")

SCRIPT(a_running_thread_is_seen_where_it_runs,
       "needs runs; spin; drain; needs all; runs > 0; runs_elsewhere = 0")

SCRIPT(thread_creation_name_and_exit_are_recorded,
       "rename; drain_to_the_end; needs all; threads > 0; processes = 0; named = 1; executed = 0",
       "ended = 1")

SCRIPT(process_fork_exec_and_exit_are_recorded,
       "execute; needs all; processes = 1; executed = 1; ended = 1")

TEST_BETWEEN(with_tiny_rings, close_source, a_quarter_full_ring_wakes)
{
	run_script((const char *const[]){"needs accesses; touch; wakes = 1", NULL});
}

/* 512 faults of 48 bytes do not fit in 16 KiB; the kernel reports this with the next record that
 * fits. */
TEST_BETWEEN(with_tiny_rings, close_source, an_overfull_ring_reports_its_losses)
{
	if (sysconf(_SC_PAGESIZE) > 16384)
		skip();
	run_script((const char *const[]){
		"needs accesses; touch; drain; faults < 512; touch; drain; lost > 0; corrupt = 0",
		NULL});
}

/* Returns the first usable CPU that this process may run on, or -1. */
static int a_usable_cpu(const struct nm_topology *topology)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -1;
	for (unsigned cpu = 0; cpu < topology->nr_cpus && cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && hwloc_bitmap_isset(topology->usable, cpu))
			return (int)cpu;
	return -1;
}

/* A thread that pins itself may have been sampled elsewhere before; one that inherits the CPU
 * cannot. */
static int pin_to(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)cpu, &cpus);
	return sched_setaffinity(0, sizeof(cpus), &cpus);
}

static bool can_sample_here(void)
{
	const struct nm_platform_options options = {.root_path = "/"};
	const struct nm_topology_source this_machine = {0};
	char error[256];

	if (nm_config_default(&live.config) < 0 ||
	    nm_topology_load(&this_machine, error, sizeof(error), &live.topology) < 0 ||
	    nm_platform_linux_new(&options, &live.platform) < 0) {
		fprintf(stderr, "skipped: topology or platform of this machine cannot be read\n");
		return false;
	}
	live.cpu = a_usable_cpu(live.topology);
	if (live.cpu < 0 || pin_to(live.cpu) < 0 || open_source() < 0) {
		fprintf(stderr, "skipped: sampling is not permitted on this machine\n");
		return false;
	}
	close_source(NULL);
	return true;
}

int main(void)
{
	int failed = SKIPPED;

	if (can_sample_here())
		failed = RUN_REGISTERED(NULL, NULL);
	nm_platform_free(live.platform);
	nm_topology_free(live.topology);
	nm_config_free(live.config);
	return failed;
}

/* SPDX-License-Identifier: MIT */
/* The source on the running kernel, if permitted; otherwise skipped, with the reason. */
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

#include "sample/sample.h"

#define PAGES 512U
#define SKIPPED 77

struct live {
	struct nm_platform *platform;
	struct nm_topology *topology;
	struct nm_config *config;
	struct nm_source *source;
	int cpu; /* sampled; the threads of the tests stay on it */
};

static struct live live;

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

struct seen {
	uint32_t pid, tid;
	const uint8_t *memory;
	size_t page;
	unsigned runs, runs_elsewhere;
	unsigned faults, faults_elsewhere, with_physical;
	uint8_t touched[PAGES];
	unsigned threads_created, processes_created, ended, named, executed;
};

static void see_fault(struct seen *seen, const struct nm_sample *sample)
{
	uint64_t offset = sample->address - (uint64_t)(uintptr_t)seen->memory;

	if (!seen->memory || offset >= PAGES * seen->page)
		return;
	seen->faults++;
	seen->touched[offset / seen->page] = 1;
	seen->with_physical += sample->physical_address != 0;
	seen->faults_elsewhere += sample->cpu != (uint32_t)live.cpu || sample->pid != seen->pid;
}

static void see_sample(void *context, struct nm_sample *sample)
{
	struct seen *seen = context;

	if (sample->tid != seen->tid)
		return;
	if (sample->kind == NM_EVENT_FAULT_MIN || sample->kind == NM_EVENT_FAULT_MAJ) {
		see_fault(seen, sample);
		return;
	}
	seen->runs++;
	seen->runs_elsewhere += sample->cpu != (uint32_t)live.cpu;
}

static void see_task(void *context, const struct nm_task_event *event)
{
	struct seen *seen = context;

	if (event->kind == NM_TASK_FORK && event->parent_pid == seen->pid) {
		seen->threads_created += event->pid == seen->pid;
		seen->processes_created += event->pid != seen->pid;
	}
	if (event->tid != seen->tid)
		return;
	seen->ended += event->kind == NM_TASK_EXIT;
	seen->named += event->kind == NM_TASK_COMM;
	seen->executed += event->kind == NM_TASK_EXEC;
}

static void drain(struct seen *seen)
{
	const struct nm_sample_sink sink = {
		.context = seen, .on_sample = see_sample, .on_task = see_task};

	(void)nm_source_drain(live.source, &sink);
}

/* Neither pthread_join() nor waitpid() waits for the EXIT record. */
static void drain_until_it_ended(struct seen *seen)
{
	drain(seen);
	for (unsigned i = 0; i < 100 && !seen->ended; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		drain(seen);
	}
}

/* ---- a thread that does work on the sampled CPU ---- */

struct work {
	void (*act)(struct work *work);
	uint8_t *memory;
	size_t page;
	uint32_t tid;
};

static void *work_thread(void *context)
{
	struct work *work = context;

	work->tid = (uint32_t)gettid();
	work->act(work);
	return NULL;
}

static void do_in_thread(struct work *work)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, work_thread, work), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void touch_pages(struct work *work)
{
	for (size_t i = 0; i < PAGES; i++)
		((volatile uint8_t *)work->memory)[i * work->page] = 1;
}

static void spin(struct work *work)
{
	struct timespec now, start;

	(void)work;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 300);
}

static void rename_itself(struct work *work)
{
	(void)work;
	(void)prctl(PR_SET_NAME, "renamed");
}

static struct work fresh_memory(void)
{
	struct work work = {.act = touch_pages, .page = (size_t)sysconf(_SC_PAGESIZE)};

	work.memory = mmap(NULL, PAGES * work.page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(work.memory != MAP_FAILED);
	(void)madvise(work.memory, PAGES * work.page, MADV_NOHUGEPAGE);
	return work;
}

/* Touches every page of new memory in a new thread, and returns its samples. */
static struct seen touch_fresh_memory(void)
{
	struct work work = fresh_memory();

	do_in_thread(&work);
	struct seen seen = {.pid = (uint32_t)getpid(),
			    .tid = work.tid,
			    .memory = work.memory,
			    .page = work.page};
	drain(&seen);
	munmap(work.memory, PAGES * work.page);
	return seen;
}

/* ---- tests ---- */

TEST(every_touched_page_is_seen)
{
	unsigned pages = 0;

	if (!nm_source_status(live.source)->accesses) {
		print_message("page faults may not be sampled here\n");
		skip();
	}
	struct seen seen = touch_fresh_memory();
	for (size_t i = 0; i < PAGES; i++)
		pages += seen.touched[i];
	assert_int_equal(seen.faults_elsewhere, 0);
	assert_true(pages > 0);
	if (nm_source_status(live.source)->counts.lost == 0)
		assert_int_equal(pages, PAGES);
	assert_true(seen.with_physical > seen.faults / 2);
}

TEST(a_raised_period_is_obeyed)
{
	if (!nm_source_status(live.source)->accesses) {
		print_message("page faults may not be sampled here\n");
		skip();
	}
	for (unsigned i = 0; i < 4; i++)
		assert_true(nm_source_control_cost(live.source, 1e9));
	struct seen seen = touch_fresh_memory();
	assert_true(seen.faults < PAGES / 2);
}

/* The rings cover the whole machine: if other programs fill them, the expected records may be
 * lost. */
static void skip_if_records_were_lost(void)
{
	if (nm_source_status(live.source)->counts.lost > 0) {
		print_message("others filled the rings before they were drained\n");
		skip();
	}
}

TEST(a_running_thread_is_seen_where_it_runs)
{
	struct work work = {.act = spin};

	if (!nm_source_status(live.source)->runs) {
		print_message("running threads may not be sampled here\n");
		skip();
	}
	do_in_thread(&work);
	struct seen seen = {.pid = (uint32_t)getpid(), .tid = work.tid};
	drain(&seen);
	skip_if_records_were_lost();
	assert_true(seen.runs > 0);
	assert_int_equal(seen.runs_elsewhere, 0);
}

TEST(thread_creation_name_and_exit_are_recorded)
{
	struct work work = {.act = rename_itself};

	do_in_thread(&work);
	struct seen seen = {.pid = (uint32_t)getpid(), .tid = work.tid};
	drain_until_it_ended(&seen);
	skip_if_records_were_lost();
	assert_true(seen.threads_created > 0);
	assert_int_equal(seen.processes_created, 0);
	assert_int_equal(seen.named, 1);
	assert_int_equal(seen.executed, 0);
	assert_int_equal(seen.ended, 1);
}

TEST(process_fork_exec_and_exit_are_recorded)
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
	struct seen seen = {.pid = (uint32_t)getpid(), .tid = (uint32_t)child};
	drain_until_it_ended(&seen);
	skip_if_records_were_lost();
	assert_int_equal(seen.processes_created, 1);
	assert_int_equal(seen.executed, 1);
	assert_int_equal(seen.ended, 1);
}

TEST_BETWEEN(with_tiny_rings, close_source, a_quarter_full_ring_wakes)
{
	struct work work = fresh_memory();
	struct pollfd waiting = {.fd = nm_source_fd(live.source), .events = POLLIN};

	if (!nm_source_status(live.source)->accesses) {
		print_message("page faults may not be sampled here\n");
		skip();
	}
	do_in_thread(&work);
	assert_int_equal(poll(&waiting, 1, 10000), 1);
	munmap(work.memory, PAGES * work.page);
}

/* 512 faults of 48 bytes do not fit in 16 KiB; the kernel reports this with the next record that
 * fits. */
TEST_BETWEEN(with_tiny_rings, close_source, an_overfull_ring_reports_its_losses)
{
	if (!nm_source_status(live.source)->accesses || sysconf(_SC_PAGESIZE) > 16384) {
		print_message("page faults may not be sampled here, or pages exceed 16 KiB\n");
		skip();
	}
	struct seen before = touch_fresh_memory();
	(void)touch_fresh_memory();
	assert_true(before.faults < PAGES);
	assert_true(nm_source_status(live.source)->counts.lost > 0);
	assert_int_equal(nm_source_status(live.source)->counts.corrupt, 0);
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

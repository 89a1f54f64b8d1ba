/* SPDX-License-Identifier: MIT */
/*
 * lockstep [-n NAME] MB START:MEMORY[:NEXT]…: a parallel program, with a thread for each argument,
 * until killed. Each reads MB of memory of its own in random order, which is bound to node MEMORY,
 * with two floating-point operations for each line, and none gets further ahead of the slowest
 * than some batches, which keeps the instructions of the waiting few. The number of lines is kept
 * in /dev/shm/grind.PID.
 *
 * A thread is bound to the CPUs of node START until SIGUSR1. After that it goes back there when the
 * kernel has moved it, so that it stays until its affinity is narrowed. A thread with NEXT then
 * continues with other memory, on node NEXT, and twice the lines, for as long as it is away from
 * START.
 */
#include "lab.h"

#include <pthread.h>
#include <sys/prctl.h>

enum { LINE = 64, BATCH = 1024, AHEAD = 16, THREADS_MAX = 64, WAIT_US = 5000 };

struct worker {
	unsigned char *memory, *next; /* next: NULL, or for when it has been moved */
	unsigned long start;
	_Atomic(uint64_t) batches;
};

static struct worker workers[THREADS_MAX];
static unsigned int nr_workers;
static size_t lines;
static long nr_cpus;
static _Atomic(uint64_t) *done;
static volatile sig_atomic_t released;

static void release(int signal_number)
{
	(void)signal_number;
	released = 1;
}

static size_t go_through(unsigned char *memory, size_t line, unsigned int count)
{
	double sum = 0;

	for (unsigned int i = 0; i < count; i++) {
		volatile double *at = (volatile double *)(memory + line * LINE);

		sum = sum * 0.5 + *at;
		if (i % 8 == 0)
			*at = sum;
		line = (line * 1664525 + 1013904223) % lines;
	}
	atomic_fetch_add_explicit(done, count, memory_order_relaxed);
	return line;
}

static uint64_t slowest(void)
{
	uint64_t least = workers[0].batches;

	for (unsigned int i = 1; i < nr_workers; i++)
		if (workers[i].batches < least)
			least = workers[i].batches;
	return least;
}

static bool is_away(const struct worker *worker)
{
	unsigned int node;
	cpu_set_t allowed;

	if (getcpu(NULL, &node) < 0 || node == worker->start)
		return false;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) < nr_cpus)
		return true;
	lab_start_on_node(worker->start);
	return false;
}

static void *run(void *argument)
{
	struct worker *worker = argument;
	bool bound = true;
	size_t line = 0;

	lab_run_on_node(worker->start);
	for (;;) {
		bool away = !bound && is_away(worker);

		if (bound && released) {
			lab_run_anywhere();
			bound = false;
		}
		if (worker->next && away)
			line = go_through(worker->next, line, BATCH);
		else
			line = go_through(worker->memory, line, worker->next ? BATCH / 2 : BATCH);
		worker->batches++;
		while (worker->batches > slowest() + AHEAD)
			usleep(WAIT_US);
	}
	return NULL;
}

/* With content, so that its pages are not the kernel's page of zeros. */
static unsigned char *memory_on(unsigned long node, size_t length)
{
	unsigned char *memory = lab_map_on_node(length, node, false);

	lab_touch(memory, length);
	return memory;
}

static void add_worker(char *text, size_t length)
{
	struct worker *worker = &workers[nr_workers];
	char *memory = strchr(text, ':'), *next = memory ? strchr(memory + 1, ':') : NULL;

	if (!memory || nr_workers == THREADS_MAX)
		errx(64, "not START:MEMORY[:NEXT], or too many: %s", text);
	*memory++ = '\0';
	if (next)
		*next++ = '\0';
	worker->start = lab_number(text);
	worker->memory = memory_on(lab_number(memory), length);
	worker->next = next ? memory_on(lab_number(next), length) : NULL;
	nr_workers++;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	size_t length;
	int option;

	while ((option = getopt(argc, argv, "n:")) == 'n')
		prctl(PR_SET_NAME, optarg);
	if (option != -1 || argc < optind + 2)
		errx(64, "usage: lockstep [-n NAME] MB START:MEMORY[:NEXT]…");
	length = lab_number(argv[optind]) << 20;
	lines = length / LINE;
	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	for (int i = optind + 1; i < argc; i++)
		add_worker(argv[i], length);
	lab_be_ordinary();
	signal(SIGUSR1, release);
	done = lab_publish();
	for (unsigned int i = 0; i < nr_workers; i++)
		if (pthread_create(&thread, NULL, run, &workers[i]) != 0)
			errx(1, "a thread could not be made");
	for (;;)
		pause();
}

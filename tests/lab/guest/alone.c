/* SPDX-License-Identifier: MIT */
/*
 * alone MB ALONE TOGETHER: a parallel program with a serial start, which ends. Its first thread
 * writes and reads 8 × MB of memory in random order, ALONE times all lines of it. Then it creates
 * seven others. Each of the eight reads its own part TOGETHER times, and all wait for the slowest
 * after every BATCH lines, asleep. Prints the milliseconds of both parts, and how long the eight
 * waited for CPUs in the second one, in all.
 */
#include "lab.h"

#include <pthread.h>

enum { LINE = 64, BATCH = 16384, THREADS = 8 };

static unsigned char *memory;
static size_t lines; /* of each thread; a power of two */
static size_t batches;
static pthread_barrier_t barrier;
static _Atomic(uint64_t) waited_ns;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Every line once in as many steps as there are. */
static size_t go_through(unsigned char *part, size_t nr_lines, size_t line, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		volatile double *at = (volatile double *)(part + line * LINE);

		sum = sum * 0.5 + *at;
		if (i % 8 == 0)
			*at = sum;
		line = (line * 1664525 + 1013904223) & (nr_lines - 1);
	}
	return line;
}

/* Of the thread, since it began. */
static uint64_t read_waited_ns(void)
{
	unsigned long ran, waited = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "re");

	if (!file || fscanf(file, "%lu %lu", &ran, &waited) != 2)
		err(1, "schedstat");
	fclose(file);
	return waited;
}

static void *work_together(void *part)
{
	uint64_t before_ns = read_waited_ns();
	size_t line = 0;

	for (size_t i = 0; i < batches; i++) {
		line = go_through(part, lines, line, BATCH);
		pthread_barrier_wait(&barrier);
	}
	waited_ns += read_waited_ns() - before_ns;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc != 4)
		errx(64, "usage: alone MB ALONE TOGETHER");
	lines = (lab_number(argv[1]) << 20) / LINE;
	if (lines < BATCH || (lines & (lines - 1)) != 0)
		errx(64, "MB is a power of two");
	batches = lab_number(argv[3]) * lines / BATCH;
	memory = mmap(NULL, THREADS * lines * LINE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	pthread_barrier_init(&barrier, NULL, THREADS);

	uint64_t began_ms = now_ms();
	lab_touch(memory, THREADS * lines * LINE);
	(void)go_through(memory, THREADS * lines, 0, lab_number(argv[2]) * THREADS * lines);
	uint64_t parted_ms = now_ms();

	for (int i = 1; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work_together,
				   memory + (size_t)i * lines * LINE) != 0)
			errx(1, "a thread could not be made");
	(void)work_together(memory);
	for (int i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("alone_ms %lu\ntogether_ms %lu\nwaited_ms %lu\n",
	       (unsigned long)(parted_ms - began_ms), (unsigned long)(now_ms() - parted_ms),
	       (unsigned long)(waited_ns / 1000000));
}

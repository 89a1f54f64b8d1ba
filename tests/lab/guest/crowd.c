/* SPDX-License-Identifier: MIT */
/*
 * crowd THREADS WORK_US PERIOD_MS: threads that each work about WORK_US of CPU time, writing to
 * memory of their own, in every PERIOD_MS. Runs until killed.
 */
#include "lab.h"

#include <pthread.h>
#include <time.h>

enum { LENGTH = 256 << 10, STACK = 64 << 10 };

static unsigned long work_us, period_ms;

static long cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void *run(void *memory)
{
	for (;;) {
		long end = cpu_us() + (long)work_us;

		do
			lab_touch(memory, LENGTH);
		while (cpu_us() < end);
		usleep((useconds_t)(period_ms * 1000));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;

	if (argc != 4)
		errx(64, "usage: crowd THREADS WORK_US PERIOD_MS");
	work_us = lab_number(argv[2]);
	period_ms = lab_number(argv[3]);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (unsigned long i = lab_number(argv[1]); i > 0; i--) {
		pthread_t thread;
		void *memory = malloc(LENGTH);

		if (!memory || pthread_create(&thread, &attributes, run, memory) != 0)
			errx(1, "a thread could not be made");
	}
	for (;;)
		pause();
}

/* SPDX-License-Identifier: MIT */
/*
 * Writes are with page faults (lab_fault).
 * hostile threads N: N threads, each of which runs briefly about every ten seconds.
 * hostile mappings N: memory in N mappings, which is written to without end.
 * hostile `masks` N: N threads that write to memory of node 2 and set their affinities alternately
 * to the CPUs of node 0 and to all CPUs, a thousand times a second. hostile asleep N: a thread that
 * starts on node 0, writes to N MB of node 2, and sleeps uninterruptibly after SIGUSR1. Each prints
 * a line when it is ready.
 */
#include "lab.h"

#include <pthread.h>
#include <signal.h>

enum { STACK = 64 << 10, MASKS_MEMORY = 16 << 20, PIECE = 64 << 10, FAR_NODE = 2 };

static void start(void *(*run)(void *), void *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	if (pthread_create(&thread, &attributes, run, argument) != 0)
		errx(1, "a thread could not be made");
	pthread_attr_destroy(&attributes);
}

static void say(unsigned long count, const char *what)
{
	printf("%lu %s\n", count, what);
	fflush(stdout);
}

static void *doze(void *number)
{
	unsigned char page[LAB_PAGE];

	for (;;) {
		lab_touch(page, sizeof(page));
		usleep((useconds_t)(8000000 + (uintptr_t)number * 997 % 4000000));
	}
	return NULL;
}

static void threads(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		start(doze, (void *)(uintptr_t)i);
	say(count, "threads");
	for (;;)
		pause();
}

/* Neighbours that differ in what is allowed are mappings of their own. */
static void mappings(unsigned long count)
{
	unsigned char *memory = lab_map(count * LAB_PAGE, false);

	for (unsigned long i = 0; i < count; i += 2)
		if (mprotect(memory + i * LAB_PAGE, LAB_PAGE, PROT_READ) < 0)
			err(1, "mapping %lu", i);
	say(count, "mappings");
	for (;;) {
		uint64_t began_ms = lab_now_ms();

		for (unsigned long i = 1; i < count; i += 2)
			lab_fault(memory + i * LAB_PAGE, LAB_PAGE);
		lab_rest(began_ms);
	}
}

static void *change_mask(void *unused)
{
	unsigned char *memory = lab_map_on_node(MASKS_MEMORY, FAR_NODE, false);

	for (size_t at = 0;; at = (at + PIECE) % MASKS_MEMORY) {
		lab_run_on_node(0);
		lab_fault(memory + at, PIECE);
		lab_run_anywhere();
		usleep(1000);
	}
	return unused;
}

static void masks(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		start(change_mask, NULL);
	say(count, "masks");
	for (;;)
		pause();
}

static volatile sig_atomic_t told;

static void tell(int signal)
{
	(void)signal;
	told = 1;
}

/* The parent in vfork(2) sleeps until its child has released the memory. */
static void *work_until_told(void *megabytes)
{
	size_t length = (size_t)(uintptr_t)megabytes << 20;
	unsigned char *memory = lab_map_on_node(length, FAR_NODE, false);

	lab_start_on_node(0);
	for (size_t at = 0; !told; at = (at + LAB_PART) % length)
		lab_fault_and_rest(memory + at);
	if (vfork() == 0)
		for (;;)
			pause();
	return NULL;
}

static void asleep(unsigned long megabytes)
{
	signal(SIGUSR1, tell);
	start(work_until_told, (void *)(uintptr_t)megabytes);
	say(megabytes, "MB");
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(unsigned long count);
	} ways[] = {
		{"threads", threads}, {"mappings", mappings}, {"masks", masks}, {"asleep", asleep}};

	for (size_t i = 0; argc == 3 && i < sizeof(ways) / sizeof(*ways); i++)
		if (strcmp(argv[1], ways[i].name) == 0)
			ways[i].run(lab_number(argv[2]));
	errx(64, "usage: hostile threads|mappings|masks|asleep N");
}

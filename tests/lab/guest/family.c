/* SPDX-License-Identifier: MIT */
/*
 * family NODE MB START: one thread that is not the leader writes to memory bound to NODE, with page
 * faults (lab_fault), beginning on node START. SIGUSR1: that thread creates a thread and a child
 * process, which both live on. SIGUSR2: it executes this program anew, as a program that only
 * sleeps.
 */
#include "lab.h"

#include <pthread.h>
#include <signal.h>

static _Atomic(int) request;

static void take_request(int signal_number)
{
	atomic_store(&request, signal_number);
}

static void *sleeper(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void bear(void)
{
	pthread_t thread;
	pid_t child;

	if (pthread_create(&thread, NULL, sleeper, NULL) != 0)
		errx(1, "pthread_create");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (child == 0)
		sleeper(NULL);
}

static void serve(int signal_number)
{
	if (signal_number == SIGUSR1)
		bear();
	if (signal_number == SIGUSR2)
		execl("/proc/self/exe", "family", "after-exec", NULL);
}

static void *run(void *arguments)
{
	char **argv = arguments;
	size_t length = lab_number(argv[2]) << 20;
	unsigned char *memory = lab_map_on_node(length, lab_number(argv[1]), false);

	lab_touch(memory, length);
	lab_start_on_node(lab_number(argv[3]));
	puts("ready");
	fflush(stdout);
	for (size_t at = 0;; at = (at + LAB_PART) % length) {
		lab_fault_and_rest(memory + at);
		serve(atomic_exchange(&request, 0));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc == 2)
		sleeper(NULL);
	if (argc != 4)
		errx(64, "usage: family NODE MB START");
	signal(SIGUSR1, take_request);
	signal(SIGUSR2, take_request);
	if (pthread_create(&thread, NULL, run, argv) != 0)
		errx(1, "pthread_create");
	sleeper(NULL);
	return 0;
}

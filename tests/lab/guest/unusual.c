/* SPDX-License-Identifier: MIT */
/*
 * unusual NAME plain|huge|leader|pinned MB: a process with this command name whose threads use MB of
 * memory without a break. plain: two threads, memory first touched where the first one runs. huge:
 * the same on huge pages of the pool. leader: the same after the first thread has exited. pinned:
 * two threads pinned to the CPUs of node 1, where the memory is, and one that may run anywhere. Prints the ids of the threads.
 */
#include "lab.h"

#include <pthread.h>
#include <sys/prctl.h>

static unsigned char *memory;
static size_t length;

static void *use_memory(void *argument)
{
	(void)argument;
	printf("%d\n", gettid());
	fflush(stdout);
	for (;;)
		lab_touch(memory, length);
	return NULL;
}

static void *use_memory_on_node_1(void *argument)
{
	lab_run_on_node(1);
	return use_memory(argument);
}

static void start(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL) != 0)
		errx(1, "a thread could not be made");
}

static void map_memory(const char *kind)
{
	if (strcmp(kind, "huge") != 0) {
		memory = lab_map(length, false);
		return;
	}
	memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap of huge pages");
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(64, "usage: unusual NAME plain|huge|leader|pinned MB");
	bool pinned = strcmp(argv[2], "pinned") == 0;
	length = lab_number(argv[3]) << 20;
	prctl(PR_SET_NAME, argv[1]);
	map_memory(argv[2]);
	if (pinned)
		lab_touch_first(memory, length, 1);
	else
		memset(memory, 1, length);
	for (int i = 0; i < 2; i++)
		start(pinned ? use_memory_on_node_1 : use_memory);
	if (pinned)
		start(use_memory);
	if (strcmp(argv[2], "leader") == 0)
		pthread_exit(NULL);
	for (;;)
		pause();
}

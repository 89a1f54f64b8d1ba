/* SPDX-License-Identifier: MIT */
/*
 * membound NODE THREADS MB [START [NAME]]: THREADS threads write for ever to memory bound to NODE, MB
 * each. They begin on the CPUs of node START, if given, and may run anywhere. NAME is their command name.
 * Prints the ids of the threads once they write.
 */
#include "lab.h"

#include <pthread.h>
#include <sys/prctl.h>

static struct {
	unsigned long node;
	unsigned long threads;
	size_t length;
	const char *start;
} options;
static pthread_barrier_t ready;

static void *run(void *unused)
{
	unsigned char *memory = lab_map_on_node(options.length, options.node);

	lab_touch(memory, options.length);
	if (options.start)
		lab_start_on_node(lab_number(options.start));
	printf("%d\n", gettid());
	fflush(stdout);
	pthread_barrier_wait(&ready);
	for (;;)
		lab_touch(memory, options.length);
	return unused;
}

int main(int argc, char **argv)
{
	if (argc < 4 || argc > 6)
		errx(64, "usage: membound NODE THREADS MB [START [NAME]]");
	options.node = lab_number(argv[1]);
	options.threads = lab_number(argv[2]);
	options.length = lab_number(argv[3]) << 20;
	options.start = argc > 4 && *argv[4] ? argv[4] : NULL;
	if (argc > 5)
		prctl(PR_SET_NAME, argv[5]);
	pthread_barrier_init(&ready, NULL, (unsigned int)options.threads);
	for (unsigned long i = 0; i < options.threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, NULL) != 0)
			errx(1, "pthread_create");
		pthread_detach(thread);
	}
	for (;;)
		pause();
}

/* SPDX-License-Identifier: MIT */
/*
 * membound [-FHf] [-n NAME] [-p PAUSE_MS] [-s START] NODE THREADS MB: THREADS threads write without
 * end to memory bound to NODE, MB each, 20 % of the time, or with pauses of PAUSE_MS. -f: each time
 * with page faults, which are sampled without hardware (lab_fault); -F: in folios as large as the
 * kernel has them; -H: memory on which automatic NUMA balancing causes hinting faults; -n: the
 * command name; -s: start on the CPUs of node START. Prints the ids of the threads before they
 * write.
 */
#include "lab.h"

#include <pthread.h>
#include <sys/prctl.h>

struct options {
	bool folios, hinted, faults;
	const char *start;
	unsigned long pause_ms;
	unsigned long node;
	unsigned long threads;
	size_t length;
};

static void *run(void *argument)
{
	const struct options *options = argument;
	unsigned char *memory = lab_map_on_node(options->length, options->node, options->hinted);

	if (options->folios)
		madvise(memory, options->length, MADV_HUGEPAGE);
	lab_touch(memory, options->length);
	if (options->start)
		lab_start_on_node(lab_number(options->start));
	printf("%d\n", gettid());
	fflush(stdout);
	for (;;) {
		uint64_t began_ms = lab_now_ms();

		if (options->faults)
			lab_fault(memory, options->length);
		else
			lab_touch(memory, options->length);
		if (options->pause_ms)
			usleep((useconds_t)(options->pause_ms * 1000));
		else
			lab_rest(began_ms);
	}
	return NULL;
}

static struct options parse(int argc, char **argv)
{
	struct options options = {0};
	int option;

	while ((option = getopt(argc, argv, "FHfn:p:s:")) != -1)
		switch (option) {
		case 'F':
			options.folios = true;
			break;
		case 'H':
			options.hinted = true;
			break;
		case 'f':
			options.faults = true;
			break;
		case 'n':
			prctl(PR_SET_NAME, optarg);
			break;
		case 'p':
			options.pause_ms = lab_number(optarg);
			break;
		case 's':
			options.start = optarg;
			break;
		default:
			exit(64);
		}
	if (argc - optind != 3)
		errx(64,
		     "usage: membound [-FHf] [-n NAME] [-p PAUSE_MS] [-s START] NODE THREADS MB");
	options.node = lab_number(argv[optind]);
	options.threads = lab_number(argv[optind + 1]);
	options.length = lab_number(argv[optind + 2]) << 20;
	return options;
}

int main(int argc, char **argv)
{
	struct options options = parse(argc, argv);

	for (unsigned long i = 0; i < options.threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, &options) != 0)
			errx(1, "a thread could not be made");
	}
	for (;;)
		pause();
}

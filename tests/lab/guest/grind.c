/* SPDX-License-Identifier: MIT */
/*
 * grind [-n NAME] [-s START] [-e NODES] [-r] [-u] [-g WORK_MS:IDLE_MS] HOME THREADS MB:
 * THREADS threads that read, and now and then write, memory of their own that was first touched on
 * node HOME, MB each, until killed. The number of cache lines they have been through is kept in
 * /dev/shm/grind.PID.
 *
 * -n: the command name; -s: bound to the CPUs of node START until SIGUSR1; -e: each thread's memory
 * is where that thread would have touched it, the n-th one's on the n-th of NODES nodes from HOME
 * on; -r: in random order; -u: uneven, the n-th thread rests n milliseconds after every
 * millisecond; -g: all rest IDLE_MS after WORK_MS.
 */
#include "lab.h"

#include <pthread.h>
#include <sys/prctl.h>

enum { LINE = 64, BATCH = 1024, SPARE_KB = 64 };

static struct {
	const char *start;
	bool random, uneven;
	unsigned long work_ms, idle_ms;
	unsigned long home, threads, nodes;
	size_t length;
} options;

struct worker {
	unsigned char *memory;
	unsigned long work_ms, idle_ms;
};

static _Atomic(uint64_t) *done;
static volatile sig_atomic_t released;

static void release(int signal_number)
{
	(void)signal_number;
	released = 1;
}

static size_t next_line(size_t line, size_t count)
{
	if (options.random)
		return (line * 1664525 + 1013904223) % count;
	return (line + 1) % count;
}

static size_t go_through_batch(unsigned char *memory, size_t line)
{
	size_t count = options.length / LINE;
	unsigned char sum = 0;

	for (int i = 0; i < BATCH; i++) {
		volatile unsigned char *at = memory + line * LINE;

		sum += *at;
		if (i % 8 == 0)
			*at = sum;
		line = next_line(line, count);
	}
	atomic_fetch_add_explicit(done, BATCH, memory_order_relaxed);
	return line;
}

static void *run(void *argument)
{
	struct worker *worker = argument;
	bool bound = options.start;
	uint64_t rest = 0;
	size_t line = 0;

	if (options.start)
		lab_run_on_node(lab_number(options.start));
	for (;;) {
		if (released && bound) {
			lab_run_anywhere();
			bound = false;
		}
		if (worker->idle_ms && lab_now_ms() >= rest) {
			if (rest)
				usleep((useconds_t)(worker->idle_ms * 1000));
			rest = lab_now_ms() + worker->work_ms;
		}
		line = go_through_batch(worker->memory, line);
	}
	return NULL;
}

static unsigned char *memory_on(unsigned long node)
{
	unsigned char *memory = lab_map(options.length, false);

	lab_touch_first(memory, options.length, node);
	return memory;
}

static void start_worker(unsigned long index)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	pthread_t thread;

	if (!worker)
		errx(1, "out of memory");
	worker->memory =
		memory_on(options.nodes ? (options.home + index) % options.nodes : options.home);
	worker->work_ms = options.uneven ? 1 : options.work_ms;
	worker->idle_ms = options.uneven ? index : options.idle_ms;
	if (pthread_create(&thread, NULL, run, worker) != 0)
		errx(1, "a thread could not be made");
}

static void parse_gap(char *text)
{
	char *colon = strchr(text, ':');

	if (!colon)
		errx(64, "not WORK_MS:IDLE_MS: %s", text);
	*colon = '\0';
	options.work_ms = lab_number(text);
	options.idle_ms = lab_number(colon + 1);
}

static void parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "n:s:e:rug:")) != -1)
		switch (option) {
		case 'n':
			prctl(PR_SET_NAME, optarg);
			break;
		case 's':
			options.start = optarg;
			break;
		case 'e':
			options.nodes = lab_number(optarg);
			break;
		case 'r':
			options.random = true;
			break;
		case 'u':
			options.uneven = true;
			break;
		case 'g':
			parse_gap(optarg);
			break;
		default:
			exit(64);
		}
	if (argc - optind != 3)
		errx(64, "usage: grind [OPTION…] HOME THREADS MB");
	options.home = lab_number(argv[optind]);
	options.threads = lab_number(argv[optind + 1]);
	options.length = lab_number(argv[optind + 2]) << 20;
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	lab_be_ordinary();
	signal(SIGUSR1, release);
	done = lab_publish();
	for (unsigned long i = 0; i < options.threads; i++)
		start_worker(i);
	for (;;)
		pause();
}

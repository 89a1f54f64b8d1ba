/* SPDX-License-Identifier: MIT */
/*
 * sharers [-n NAME] [-s] [-o] [-H] [-p SECONDS] [-w MS] [-r MS] PATTERN THREADS MB: THREADS threads
 * that go through memory by a pattern until killed. The number of cache lines they have been
 * through is kept in /dev/shm/grind.PID. A block is MB large, of small pages:
 *
 * private: each thread has a block; all were first touched on node 0, as by a program whose main
 * thread prepares everything. rotate: the same, but every SECONDS (-p, 20) each thread proceeds to
 * the next one's block. pairs: threads i and i + 1 share one. neighbours: each thread shares one
 * with the thread before it and one with the thread after it. pipeline: each reads one and writes
 * the next one, which the next thread reads. all: one block for all. readonly: the same, but no
 * thread writes.
 *
 * -n: the command name; -s: thread i begins bound to node i modulo their number until SIGUSR1, so
 * that those that share are apart, and pairs, neighbours and pipeline have their blocks first
 * touched by those; -o: the oracle: those that share are bound to one node, where their blocks are
 * too, and a block for all is spread; -H: huge pages; -r: a thread rests that long after -w (1)
 * milliseconds of work, so that an emulated machine has CPUs to spare for what moves pages: each of
 * them interrupts all CPUs that run the program.
 */
#include "lab.h"

#include <pthread.h>
#include <sys/prctl.h>

enum { LINE = 64, BATCH = 1024, WRITE_EVERY = 8, SLICES = 16 };

enum pattern { PRIVATE, ROTATE, PAIRS, NEIGHBOURS, PIPELINE, ALL, READONLY, PATTERNS };

static const char *const names[PATTERNS] = {"private",	"rotate", "pairs",   "neighbours",
					    "pipeline", "all",	  "readonly"};

static struct {
	enum pattern pattern;
	bool apart, oracle, huge;
	unsigned long period_s, work_ms, rest_ms, threads, nodes;
	size_t length;
} options = {.period_s = 20, .work_ms = 1};

struct worker {
	unsigned long index;
	size_t line;
};

static unsigned char *blocks;
static _Atomic(uint64_t) *done;
static uint64_t started_ms;
static volatile sig_atomic_t released;

static void release(int signal_number)
{
	(void)signal_number;
	released = 1;
}

/* ---- what a thread works on ---- */

static bool has_one_block(void)
{
	return options.pattern == ALL || options.pattern == READONLY;
}

static unsigned long nr_blocks(void)
{
	switch (options.pattern) {
	case PAIRS:
		return (options.threads + 1) / 2;
	case NEIGHBOURS:
	case PIPELINE:
		return options.threads + 1;
	case ALL:
	case READONLY:
		return 1;
	default:
		return options.threads;
	}
}

static unsigned long block_read(const struct worker *worker, uint64_t batch)
{
	switch (options.pattern) {
	case ROTATE:
		return (worker->index + (lab_now_ms() - started_ms) / 1000 / options.period_s) %
		       options.threads;
	case PAIRS:
		return worker->index / 2;
	case NEIGHBOURS:
		return worker->index + batch % 2;
	case ALL:
	case READONLY:
		return 0;
	default:
		return worker->index;
	}
}

static unsigned char *block(unsigned long index)
{
	return blocks + index * options.length;
}

/* Reads a batch of lines, and writes every eighth; in a pipeline all of them, to the next block. */
static void go_through_batch(struct worker *worker, uint64_t batch)
{
	size_t count = options.length / LINE;
	unsigned long from = block_read(worker, batch);
	unsigned char *in = block(from);
	bool passes_on = options.pattern == PIPELINE;
	unsigned char *out = passes_on ? block(from + 1) : in;
	unsigned char sum = 0;

	for (int i = 0; i < BATCH; i++) {
		size_t at = worker->line * LINE;

		sum += ((volatile unsigned char *)in)[at];
		if (passes_on || (i % WRITE_EVERY == 0 && options.pattern != READONLY))
			((volatile unsigned char *)out)[at] = sum;
		worker->line = (worker->line + 1) % count;
	}
	atomic_fetch_add_explicit(done, BATCH, memory_order_relaxed);
}

static void rest(uint64_t *worked_until_ms)
{
	if (!options.rest_ms || lab_now_ms() < *worked_until_ms)
		return;
	usleep((useconds_t)(options.rest_ms * 1000));
	*worked_until_ms = lab_now_ms() + options.work_ms;
}

/* ---- where things are ---- */

static unsigned long start_of(unsigned long thread)
{
	return thread % options.nodes;
}

/* Those beside each other on one node, as many on each. */
static unsigned long place_of(unsigned long thread)
{
	return thread * options.nodes / options.threads;
}

/* The thread that a block belongs to, as far as it does. */
static unsigned long owner_of(unsigned long index)
{
	unsigned long thread = options.pattern == PAIRS ? 2 * index : index;

	return thread < options.threads ? thread : options.threads - 1;
}

static unsigned long home_of(unsigned long index)
{
	if (options.oracle)
		return place_of(owner_of(index));
	if (options.apart && options.pattern != PRIVATE && options.pattern != ROTATE)
		return start_of(owner_of(index));
	return 0;
}

static void touch_spread(void)
{
	size_t page = options.huge ? LAB_HUGE_PAGE : LAB_PAGE;
	size_t slice = (options.length / SLICES + page - 1) / page * page;
	unsigned long node = 0;

	for (size_t at = 0; at < options.length; at += slice, node++) {
		size_t left = options.length - at;
		lab_touch_first(blocks + at, left < slice ? left : slice, node % options.nodes);
	}
}

static void make_blocks(void)
{
	blocks = lab_map(nr_blocks() * options.length, options.huge);
	if (has_one_block() && options.oracle) {
		touch_spread();
		return;
	}
	for (unsigned long i = 0; i < nr_blocks(); i++)
		lab_touch_first(block(i), options.length, has_one_block() ? 0 : home_of(i));
}

/* ---- the whole ---- */

static void *run(void *argument)
{
	struct worker *worker = argument;
	bool bound = options.apart && !options.oracle;
	uint64_t worked_until_ms = 0;

	if (options.oracle)
		lab_run_on_node(place_of(worker->index));
	else if (bound)
		lab_run_on_node(start_of(worker->index));
	for (uint64_t batch = 0;; batch++) {
		if (released && bound) {
			lab_run_anywhere();
			bound = false;
		}
		go_through_batch(worker, batch);
		rest(&worked_until_ms);
	}
	return NULL;
}

/* They begin at different lines, so that those of one block are not in step. */
static void start_worker(unsigned long index)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	pthread_t thread;

	if (!worker)
		errx(1, "out of memory");
	worker->index = index;
	worker->line = index * (options.length / LINE) / options.threads;
	if (pthread_create(&thread, NULL, run, worker) != 0)
		errx(1, "a thread could not be made");
}

static unsigned long count_nodes(void)
{
	unsigned long last = 0;
	FILE *file = fopen("/sys/devices/system/node/online", "re");

	if (!file || fscanf(file, "0-%lu", &last) < 0)
		errx(1, "the nodes cannot be counted");
	fclose(file);
	return last + 1;
}

static enum pattern pattern_named(const char *name)
{
	for (unsigned int i = 0; i < PATTERNS; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	errx(64, "no such pattern: %s", name);
}

static void parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "n:soHp:w:r:")) != -1)
		switch (option) {
		case 'n':
			prctl(PR_SET_NAME, optarg);
			break;
		case 's':
			options.apart = true;
			break;
		case 'o':
			options.oracle = true;
			break;
		case 'H':
			options.huge = true;
			break;
		case 'p':
			options.period_s = lab_number(optarg);
			break;
		case 'w':
			options.work_ms = lab_number(optarg);
			break;
		case 'r':
			options.rest_ms = lab_number(optarg);
			break;
		default:
			exit(64);
		}
	if (argc - optind != 3)
		errx(64, "usage: sharers [OPTION…] PATTERN THREADS MB");
	options.pattern = pattern_named(argv[optind]);
	options.threads = lab_number(argv[optind + 1]);
	options.length = lab_number(argv[optind + 2]) << 20;
	if (!options.threads || !options.length || !options.period_s)
		errx(64, "threads, MB and seconds are more than 0");
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	lab_be_ordinary();
	signal(SIGUSR1, release);
	done = lab_publish();
	options.nodes = count_nodes();
	make_blocks();
	started_ms = lab_now_ms();
	for (unsigned long i = 0; i < options.threads; i++)
		start_worker(i);
	for (;;)
		pause();
}

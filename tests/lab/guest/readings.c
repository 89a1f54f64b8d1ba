/* SPDX-License-Identifier: MIT */
/*
 * readings [-t COUNT] [STEP]: prints the counters of the modelled PMU and of the programs that
 * count their work, since boot: "accesses local remote stall_cycles lines" over the CPUs whose
 * number is a multiple of STEP (1). -t: COUNT readings, one per second, each with the time since
 * boot as a sixth value. It is a single program, because a busy emulated machine takes seconds to
 * start four.
 */
#include "lab.h"

#include <glob.h>

#define COUNTERS "/sys/bus/event_source/devices/numalab/counters"

struct sums {
	uint64_t accesses, local, remote, stall_cycles, lines;
};

static void add_counters(struct sums *sums, unsigned long step)
{
	unsigned int cpu, node;
	uint64_t accesses, misses, local, remote, stall_cycles, dropped;
	FILE *file = fopen(COUNTERS, "re");

	if (!file)
		err(1, COUNTERS);
	while (fscanf(file, "%u %u %lu %lu %lu %lu %lu %lu", &cpu, &node, &accesses, &misses,
		      &local, &remote, &stall_cycles, &dropped) == 8) {
		if (cpu % step != 0)
			continue;
		sums->accesses += accesses;
		sums->local += local;
		sums->remote += remote;
		sums->stall_cycles += stall_cycles;
	}
	fclose(file);
}

static uint64_t lines_of(const char *path)
{
	uint64_t lines = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, &lines, sizeof(lines)) != (ssize_t)sizeof(lines))
		lines = 0;
	close(fd);
	return lines;
}

static void add_work(struct sums *sums)
{
	glob_t found;

	if (glob("/dev/shm/grind.*", 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		sums->lines += lines_of(found.gl_pathv[i]);
	globfree(&found);
}

static void print_reading(unsigned long step, bool timed)
{
	struct sums sums = {0};
	struct timespec now;

	add_counters(&sums, step);
	add_work(&sums);
	clock_gettime(CLOCK_BOOTTIME, &now);
	printf("%lu %lu %lu %lu %lu", sums.accesses, sums.local, sums.remote, sums.stall_cycles,
	       sums.lines);
	if (timed)
		printf(" %.2f", (double)now.tv_sec + (double)now.tv_nsec / 1e9);
	putchar('\n');
}

int main(int argc, char **argv)
{
	unsigned long count = 1, step;
	bool timed = false;
	int option;

	while ((option = getopt(argc, argv, "t:")) == 't') {
		count = lab_number(optarg);
		timed = true;
	}
	if (option != -1 || argc > optind + 1)
		errx(64, "usage: readings [-t COUNT] [STEP]");
	step = argc > optind ? lab_number(argv[optind]) : 1;
	if (step == 0)
		errx(64, "no step: 0");
	for (unsigned long i = 0; i < count; i++) {
		if (i > 0)
			sleep(1);
		print_reading(step, timed);
	}
	return 0;
}

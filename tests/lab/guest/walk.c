/* SPDX-License-Identifier: MIT */
/*
 * walk CPU NODE MB PASSES: reads memory of NODE line by line from that CPU, so many times. Prints
 * how many lines it read, how many nanoseconds of the guest's clock that took, and how many cycles
 * the CPU waited in queues meanwhile. Each line is five instructions and one access to memory.
 */
#include "lab.h"

enum { LINE = 64 };

static void bind_to(unsigned long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		err(1, "CPU %lu", cpu);
}

static void walk(const unsigned char *memory, size_t length)
{
	const unsigned char *end = memory + length;
	unsigned long sum = 0, byte;

	__asm__ volatile("1: movzbl (%[at]), %k[byte]\n\t"
			 "lea (%[sum], %[byte]), %[sum]\n\t"
			 "add %[line], %[at]\n\t"
			 "cmp %[end], %[at]\n\t"
			 "jne 1b"
			 : [at] "+r"(memory), [sum] "+r"(sum), [byte] "=&r"(byte)
			 : [end] "r"(end), [line] "i"(LINE)
			 : "cc", "memory");
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t queued_cycles(unsigned long cpu)
{
	uint64_t number, cycles, late, queued;
	FILE *file = fopen("/sys/bus/event_source/devices/numalab/times", "re");

	if (!file)
		err(1, "no modelled PMU");
	while (fscanf(file, "%lu %lu %lu %lu", &number, &cycles, &late, &queued) == 4)
		if (number == cpu) {
			fclose(file);
			return queued;
		}
	errx(1, "CPU %lu is not modelled", cpu);
}

int main(int argc, char **argv)
{
	unsigned long cpu, node, passes;
	unsigned char *memory;
	uint64_t start, queued;
	size_t length;

	if (argc != 5)
		errx(64, "usage: walk CPU NODE MB PASSES");
	cpu = lab_number(argv[1]);
	node = lab_number(argv[2]);
	length = lab_number(argv[3]) << 20;
	passes = lab_number(argv[4]);
	memory = lab_map_on_node(length, node, false);
	lab_touch(memory, length);
	bind_to(cpu);
	queued = queued_cycles(cpu);
	start = now_ns();
	for (unsigned long i = 0; i < passes; i++)
		walk(memory, length);
	start = now_ns() - start;
	printf("%lu %lu %lu\n", length / LINE * passes, start, queued_cycles(cpu) - queued);
}

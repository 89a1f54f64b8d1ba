/* SPDX-License-Identifier: MIT */
/*
 * walk CPU NODE MB PASSES STEP: reads memory of NODE from that CPU, PASSES times, each line once,
 * in steps of STEP lines, an odd number: 1 is sequential. MB is a power of two. Prints the number
 * of lines, the nanoseconds of the guest's clock that it took, and the cycles for which the CPU
 * waited in queues meanwhile. Each line is six instructions and one access to memory.
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

static void walk(const unsigned char *memory, size_t length, size_t step)
{
	unsigned long sum = 0, byte, at = 0, left = length / LINE;

	__asm__ volatile("1: movzbl (%[memory], %[at]), %k[byte]\n\t"
			 "lea (%[sum], %[byte]), %[sum]\n\t"
			 "add %[step], %[at]\n\t"
			 "and %[mask], %[at]\n\t"
			 "dec %[left]\n\t"
			 "jnz 1b"
			 : [at] "+r"(at), [sum] "+r"(sum), [byte] "=&r"(byte), [left] "+r"(left)
			 : [memory] "r"(memory), [step] "r"(step * LINE), [mask] "r"(length - 1)
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
	size_t length, step;

	if (argc != 6)
		errx(64, "usage: walk CPU NODE MB PASSES STEP");
	cpu = lab_number(argv[1]);
	node = lab_number(argv[2]);
	length = lab_number(argv[3]) << 20;
	passes = lab_number(argv[4]);
	step = lab_number(argv[5]);
	memory = lab_map_on_node(length, node, false);
	lab_touch(memory, length);
	bind_to(cpu);
	queued = queued_cycles(cpu);
	start = now_ns();
	for (unsigned long i = 0; i < passes; i++)
		walk(memory, length, step);
	start = now_ns() - start;
	printf("%lu %lu %lu\n", length / LINE * passes, start, queued_cycles(cpu) - queued);
}

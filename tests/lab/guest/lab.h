/* SPDX-License-Identifier: MIT */
/* Shared by the guest programs: memory on a node, a thread on a node, and accesses to pages. */
#ifndef NUMA_MIGRD_LAB_H
#define NUMA_MIGRD_LAB_H

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LAB_PAGE = 4096, LAB_HUGE_PAGE = 2 << 20, LAB_PART = 1 << 20 };

static inline unsigned long lab_number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0')
		errx(64, "not a number: %s", text);
	return value;
}

/*
 * Small pages, so that each page a thread touches can be seen, all on one node. Hinted: the
 * kernel's balancing takes its hinting faults on them as well, which it does not on memory bound by
 * mbind(2) alone; it cannot move them.
 */
static inline unsigned char *lab_map_on_node(size_t length, unsigned long node, bool hinted)
{
	unsigned long mask = 1UL << node;
	unsigned char *memory =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		err(1, "mmap");
	madvise(memory, length, MADV_NOHUGEPAGE);
	if (syscall(SYS_mbind, memory, length, MPOL_BIND | (hinted ? MPOL_F_NUMA_BALANCING : 0),
		    &mask, sizeof(mask) * 8, 0UL) < 0)
		err(1, "mbind to node %lu", node);
	return memory;
}

static inline void lab_touch(unsigned char *memory, size_t length)
{
	for (size_t i = 0; i < length; i += 256)
		((volatile unsigned char *)memory)[i]++;
}

/* As lab_touch(), on memory that it returns to the kernel first, a part at a time: each page
 * faults, as often as it is called, and comes from the node to which its mapping is bound. */
static inline void lab_fault(unsigned char *memory, size_t length)
{
	for (size_t at = 0; at < length; at += LAB_PART) {
		size_t part = length - at < LAB_PART ? length - at : LAB_PART;

		if (madvise(memory + at, part, MADV_DONTNEED) < 0)
			err(1, "madvise");
		lab_touch(memory + at, part);
	}
}

/* Binds the calling thread to the CPUs of the node. */
static inline void lab_run_on_node(unsigned long node)
{
	cpu_set_t there;
	unsigned int first, last;
	char path[80];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%lu/cpulist", node);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%u-%u", &first, &last) != 2)
		errx(1, "no range of CPUs in %s", path);
	fclose(file);
	CPU_ZERO(&there);
	for (unsigned int cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, &there);
	if (sched_setaffinity(0, sizeof(there), &there) < 0)
		err(1, "going to node %lu", node);
}

/* Lets the calling thread run wherever its cpuset lets it. */
static inline void lab_run_anywhere(void)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	if (sched_setaffinity(0, sizeof(all), &all) < 0)
		err(1, "a mask of all CPUs");
}

/* Lets the calling thread begin on the node and then run wherever its cpuset lets it. */
static inline void lab_start_on_node(unsigned long node)
{
	lab_run_on_node(node);
	lab_run_anywhere();
}

/* Memory of its own pages, small or huge ones, that have not been touched. It begins where a huge page
 * may. */
static inline unsigned char *lab_map(size_t length, bool huge)
{
	unsigned char *memory = mmap(NULL, length + LAB_HUGE_PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		err(1, "mmap");
	memory += (LAB_HUGE_PAGE - (uintptr_t)memory % LAB_HUGE_PAGE) % LAB_HUGE_PAGE;
	madvise(memory, length, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return memory;
}

/* The calling thread touches it from a CPU of that node, and is then where it was. */
static inline void lab_touch_first(unsigned char *memory, size_t length, unsigned long node)
{
	cpu_set_t before;

	if (sched_getaffinity(0, sizeof(before), &before) < 0)
		err(1, "sched_getaffinity");
	lab_run_on_node(node);
	memset(memory, 1, length);
	sched_setaffinity(0, sizeof(before), &before);
}

/* The scenario may look at it from a priority of its own. */
static inline void lab_be_ordinary(void)
{
	if (setpriority(PRIO_PROCESS, 0, 0) < 0)
		err(1, "setpriority");
}

/* The count of cache lines that the program has been through, in /dev/shm/grind.PID. */
static inline _Atomic(uint64_t) *lab_publish(void)
{
	_Atomic(uint64_t) *done;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/grind.%d", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(*done)) < 0)
		err(1, "%s", path);
	done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (done == MAP_FAILED)
		err(1, "mmap of %s", path);
	close(fd);
	return done;
}

static inline uint64_t lab_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * Rests for four times as long as it has worked: busy enough to be placed, and the host, which has
 * few CPUs for the eight of the guest, is not kept busy by what only waits to be moved.
 */
static inline void lab_rest(uint64_t began_ms)
{
	usleep((useconds_t)(4000 * (lab_now_ms() - began_ms + 1)));
}

/* A part of the memory, so that the caller can look at its signals often. */
static inline void lab_fault_and_rest(unsigned char *memory)
{
	uint64_t began_ms = lab_now_ms();

	lab_fault(memory, LAB_PART);
	lab_rest(began_ms);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Timing for benches: CPU time of this process, and the median of repetitions. */
#ifndef NUMA_MIGRD_BENCH_H
#define NUMA_MIGRD_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* CPU time excludes the load of other programs, unlike wall-clock time. */
static inline double bench_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int bench_compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Sorts the values. */
static inline double bench_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), bench_compare);
	return values[count / 2];
}

static inline void bench_print(const char *name, double value, const char *unit)
{
	printf("%s %.3f %s\n", name, value, unit);
}

#endif

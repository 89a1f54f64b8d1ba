/* SPDX-License-Identifier: MIT */
/* The bytes of recorded SPE packets, from the output of perf. */
#ifndef NUMA_MIGRD_TESTS_SPE_GOLDEN_H
#define NUMA_MIGRD_TESTS_SPE_GOLDEN_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "data.h"

/* Reads the hexadecimal bytes of a line; returns their number. */
static inline size_t spe_bytes_of(const char *line, uint8_t *bytes, size_t most)
{
	const char *at = strchr(line, ':');
	size_t count = 0;
	unsigned byte;

	for (at = at ? at + 1 : line; count < most && sscanf(at, " %2x", &byte) == 1; count++) {
		at += strspn(at, " ");
		if (strspn(at, "0123456789abcdef") != 2)
			break;
		bytes[count] = (uint8_t)byte;
		at += 2;
	}
	return count;
}

/* Two complete records and the beginning of another; returns the number of bytes, 0 without
 * data. */
static inline size_t spe_golden(uint8_t *bytes, size_t most)
{
	FILE *file = data_open("text/arm-spe-raw-packets.txt");
	size_t size = 0;
	char line[256];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file) && !strstr(line, "LKML"))
		if (strncmp(line, ".  ", 3) == 0)
			size += spe_bytes_of(line, bytes + size, most - size);
	fclose(file);
	return size;
}

#endif

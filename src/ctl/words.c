/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sysexits.h>

#include "ctl.h"

int nm_ctl_wrong_usage(const char *what, const char *which)
{
	(void)fprintf(stderr, "numa-migrctl: %s%s%s\nTry: numa-migrctl --help\n", what,
		      which ? ": " : "", which ? which : "");
	return EX_USAGE;
}

int nm_ctl_fail(const char *file, const char *why)
{
	(void)fprintf(stderr, "numa-migrctl: %s: %s\n", file, why);
	return EXIT_FAILURE;
}

bool nm_ctl_number(const char *word, uint64_t least, uint64_t most, uint64_t *ret)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(word, &end, 10);
	if (errno != 0 || *end != '\0' || word[0] < '0' || word[0] > '9')
		return false;
	if (value < least || value > most)
		return false;
	*ret = value;
	return true;
}

int nm_ctl_pid(const char *word, uint32_t *ret)
{
	uint64_t value;
	if (!nm_ctl_number(word, 1, INT32_MAX, &value))
		return nm_ctl_wrong_usage("not a process id", word);
	*ret = (uint32_t)value;
	return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"

#include <unistd.h>

void *nm_must(void *pointer)
{
	static const char message[] = "out of memory\n";

	if (pointer)
		return pointer;
	(void)!write(STDERR_FILENO, message, sizeof(message) - 1);
	abort();
}

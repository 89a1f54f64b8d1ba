/* SPDX-License-Identifier: MIT */
/* beginon CPU COMMAND…: runs the command, which begins on that CPU and may then go wherever this may.
 */
#include "lab.h"

int main(int argc, char **argv)
{
	cpu_set_t before, there;

	if (argc < 3)
		errx(64, "usage: beginon CPU COMMAND…");
	CPU_ZERO(&there);
	CPU_SET(lab_number(argv[1]), &there);
	if (sched_getaffinity(0, sizeof(before), &before) < 0 ||
	    sched_setaffinity(0, sizeof(there), &there) < 0 ||
	    sched_setaffinity(0, sizeof(before), &before) < 0)
		err(1, "CPU %s", argv[1]);
	execvp(argv[2], argv + 2);
	err(1, "%s", argv[2]);
}

/* SPDX-License-Identifier: MIT */
/*
 * readahead FILE FIRST_MIB MIB: lets the kernel read that part of the file into the page cache (readahead(2)).
 * Nothing is copied to the program, so that pages are inactive; returns when the last one has been read.
 */
#include "lab.h"

enum { CHUNK = 128 << 10 }; /* the kernel reads as much at least, regardless of the device's limit */

int main(int argc, char **argv)
{
	off_t at, end;
	char last;
	int fd;

	if (argc != 4)
		errx(64, "usage: readahead FILE FIRST_MIB MIB");
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "%s", argv[1]);
	at = (off_t)lab_number(argv[2]) << 20;
	end = at + ((off_t)lab_number(argv[3]) << 20);
	for (; at < end; at += CHUNK)
		if (readahead(fd, at, CHUNK) < 0)
			err(1, "%s: readahead", argv[1]);
	if (pread(fd, &last, 1, end - 1) != 1)
		err(1, "%s: MiB %ld", argv[1], (long)(end >> 20));
}

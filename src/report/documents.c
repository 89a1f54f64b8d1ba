/* SPDX-License-Identifier: MIT */
/* Documents that were handed out: their memory is the daemon's as long as anyone keeps them open.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "report/dump.h"

/* Returns a descriptor of the file with its own offset, through which nothing can be changed. */
static int open_for_reading(int fd)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int reader = open(path, O_RDONLY | O_CLOEXEC);
	return reader < 0 ? -errno : reader;
}

/* The file is the daemon's own, and not sealed against this. */
static void discard(int fd)
{
	int r = ftruncate(fd, 0);
	(void)r;
	close(fd);
}

int nm_documents_get(struct nm_documents *documents, uint64_t now_ns, int (*compose)(void *),
		     void *context)
{
	unsigned newest = (documents->handed_out + NM_DOCUMENTS_MOST - 1) % NM_DOCUMENTS_MOST;
	if (documents->is_current && now_ns - documents->composed_ns < NM_DOCUMENT_NS)
		return open_for_reading(documents->fds[newest]);
	int fd = compose(context);
	if (fd < 0)
		return fd;
	unsigned oldest = documents->handed_out % NM_DOCUMENTS_MOST;
	if (documents->handed_out >= NM_DOCUMENTS_MOST)
		discard(documents->fds[oldest]);
	documents->fds[oldest] = fd;
	documents->handed_out++;
	documents->composed_ns = now_ns;
	documents->is_current = true;
	return open_for_reading(fd);
}

void nm_documents_expire(struct nm_documents *documents)
{
	documents->is_current = false;
}

void nm_documents_clear(struct nm_documents *documents)
{
	for (unsigned i = 0; i < documents->handed_out && i < NM_DOCUMENTS_MOST; i++)
		close(documents->fds[i]);
	*documents = (struct nm_documents){0};
}

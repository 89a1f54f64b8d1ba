/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

#define MAX_BYTES ((size_t)1 << 20)

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

/* Reads up to size bytes, over as many reads as it takes. */
static ssize_t read_all(int fd, char *buffer, size_t size)
{
	size_t used = 0;
	while (used < size) {
		ssize_t got = read(fd, buffer + used, size - used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		used += (size_t)got;
	}
	return (ssize_t)used;
}

static ssize_t read_file(const char *path, char *buffer, size_t size)
{
	nm_auto(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : read_all(fd, buffer, size);
}

int nm_config_load(const char *path, struct nm_config_errors *errors, struct nm_config **ret)
{
	struct nm_report report = {.file = path, .errors = errors};
	nm_autofree char *text = malloc(MAX_BYTES + 1);
	if (!text)
		return -ENOMEM;
	ssize_t length = read_file(path, text, MAX_BYTES + 1);
	if (length > (ssize_t)MAX_BYTES)
		length = -EFBIG;
	if (length >= 0)
		return nm_config_parse(path, text, (size_t)length, errors, ret);
	nm_report_error(&report, 0, "cannot be read: %s%s", strerrordesc_np((int)-length),
			length == -EFBIG ? " (at most 1 MiB)" : "");
	return report.out_of_memory ? -ENOMEM : (int)length;
}

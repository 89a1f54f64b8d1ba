/* SPDX-License-Identifier: MIT */
/* Reads a file or a folder as one fact. */
#include <string.h>

#include "gather.h"
#include "numa-migrd/base.h"

void nm_gather_line(struct nm_platform *platform, const char *path, char *ret, size_t size)
{
	char text[512];

	ret[0] = '\0';
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) <= 0)
		return;
	(void)nm_escape(ret, size, text, strcspn(text, "\n"));
}

void nm_gather_choice(struct nm_platform *platform, const char *path, char *ret, size_t size)
{
	char line[NM_WORD_SIZE * 2];

	nm_gather_line(platform, path, line, sizeof(line));
	char *open = strchr(line, '[');
	char *end = open ? strchr(open, ']') : NULL;
	if (end)
		*end = '\0';
	(void)snprintf(ret, size, "%s", end ? open + 1 : line);
}

struct nm_reading nm_gather_number(struct nm_platform *platform, const char *path)
{
	char text[64], *end;
	ssize_t length = platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text));

	if (length < 0)
		return (struct nm_reading){.error = (int)length};
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (end == text || errno)
		return (struct nm_reading){.error = -ENODATA};
	return (struct nm_reading){.value = value};
}

static int is_wanted_entry(void *context, const char *name)
{
	return strcmp(context, name) == 0 ? -EEXIST : 0;
}

struct nm_reading nm_gather_name(struct nm_platform *platform, const char *directory,
				 const char *name)
{
	nm_autofree char *wanted = nm_must(strdup(name));
	int r = platform->ops->list_directory(platform, NM_ROOT, directory, is_wanted_entry,
					      wanted);
	if (r == -EEXIST)
		return (struct nm_reading){.value = 1};
	return (struct nm_reading){.error = r};
}

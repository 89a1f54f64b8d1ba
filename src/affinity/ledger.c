/* SPDX-License-Identifier: MIT */
#include "ledger.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/file.h"
#include "affinity/move.h"

#define HEADER "numa-migrd-ledger 1 " /* followed by the boot ID */

void nm_ledger_clear(struct nm_ledger *ledger)
{
	for (size_t i = 0; i < ledger->count; i++)
		nm_narrowing_clear(&ledger->items[i]);
	free(ledger->items);
	*ledger = (struct nm_ledger){0};
}

/* Returns 1 and a complete line without its newline, 0 if there are no more, or a negative errno.
 */
static int next_line(FILE *file, char **line, size_t *capacity)
{
	errno = 0;
	ssize_t length = getline(line, capacity, file);
	if (length < 0)
		return ferror(file) ? -errno : 0;
	if ((*line)[length - 1] != '\n')
		return 0;
	(*line)[length - 1] = '\0';
	return 1;
}

/* The lines of the file, oldest first. */
struct lines {
	struct nm_narrowing *items; /* tid 0: it was restored */
	uint32_t *earlier; /* of each: the index of the one before with its thread number */
	size_t count, capacity, earlier_capacity;
	struct nm_tidmap *newest; /* by thread number: its newest index */
};

static void lines_clear(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		nm_narrowing_clear(&lines->items[i]);
	free(lines->items);
	free(lines->earlier);
	nm_tidmap_free(lines->newest);
}

/* A thread was restored: all that was written about it until then is void. */
static void take_return(struct lines *lines, uint32_t tid, uint64_t start_ticks)
{
	for (uint32_t i = nm_tidmap_get(lines->newest, tid); i != NM_TIDMAP_NONE;
	     i = lines->earlier[i])
		if (lines->items[i].start_ticks == start_ticks)
			nm_narrowing_clear(&lines->items[i]);
}

/* Returns 0 or -EINVAL. */
static int take_line(struct lines *lines, const char *line)
{
	uint32_t tid;
	uint64_t start_ticks, ended_ticks;
	char end;
	if (sscanf(line, "return %" SCNu32 " %" SCNu64 " %" SCNu64 " %c", &tid, &start_ticks,
		   &ended_ticks, &end) == 4 &&
	    end == '.') {
		take_return(lines, tid, start_ticks);
		return 0;
	}
	NM_RESERVE(lines->items, lines->capacity, lines->count);
	NM_RESERVE(lines->earlier, lines->earlier_capacity, lines->count);
	struct nm_narrowing *narrowing = &lines->items[lines->count];
	int r = nm_narrowing_parse(line, narrowing);
	if (r < 0)
		return r;
	lines->earlier[lines->count] = nm_tidmap_get(lines->newest, narrowing->tid);
	r = nm_tidmap_set(lines->newest, narrowing->tid, (uint32_t)lines->count);
	if (r < 0)
		nm_narrowing_clear(narrowing);
	else
		lines->count++;
	return r;
}

/* Moves the narrowings that were not restored to *ret, newest first. */
static void take_rest(struct lines *lines, struct nm_ledger *ret)
{
	ret->items = nm_must(calloc(lines->count + 1, sizeof(*ret->items)));
	for (size_t i = lines->count; i-- > 0;) {
		if (!lines->items[i].tid)
			continue;
		ret->items[ret->count++] = lines->items[i];
		lines->items[i] = (struct nm_narrowing){0};
	}
}

/* Returns 1 if the first line is that of a ledger of this boot, 0 if of another boot, or -EBADMSG.
 */
static int take_header(const char *line, const char *boot_id)
{
	if (strncmp(line, HEADER, strlen(HEADER)) != 0)
		return -EBADMSG;
	return strcmp(line + strlen(HEADER), boot_id) == 0;
}

static int read_lines(FILE *file, const char *boot_id, struct nm_ledger *ret)
{
	nm_auto(lines_clear) struct lines lines = {.newest = nm_tidmap_new()};
	nm_autofree char *line = NULL;
	size_t capacity = 0;
	int r = next_line(file, &line, &capacity);
	if (r > 0)
		r = take_header(line, boot_id);
	for (size_t number = 2; r > 0; number++) {
		r = next_line(file, &line, &capacity);
		if (r > 0 && take_line(&lines, line) < 0 && ret->bad_lines++ == 0)
			ret->first_bad_line = number;
	}
	if (r == 0)
		take_rest(&lines, ret);
	return r;
}

int nm_ledger_read(int directory, const char *boot_id, struct nm_ledger *ret)
{
	struct nm_ledger ledger = {0};
	int fd = nm_open_own(directory, NM_LEDGER_NAME, O_RDONLY);
	if (fd < 0 && fd != -ENOENT)
		return fd;
	FILE *file = fd < 0 ? NULL : nm_must(fdopen(fd, "r"));
	int r = file ? read_lines(file, boot_id, &ledger) : 0;
	if (file)
		(void)fclose(file);
	if (r == 0)
		*ret = ledger;
	return r;
}

/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ledger_file.h"
#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "numa-migrd/topology.h"

#define NEW_DAMAGED NM_LEDGER_DAMAGED ".new"

void nm_ledger_contents_clear(struct nm_ledger_contents *contents)
{
	for (size_t i = 0; i < contents->count; i++)
		nm_ledger_entry_clear(&contents->entries[i]);
	free(contents->entries);
	*contents = (struct nm_ledger_contents){0};
}

static hwloc_bitmap_t parse_mask(const char *text)
{
	hwloc_bitmap_t mask = hwloc_bitmap_alloc();
	int r = -ENOMEM;
	if (mask && strncmp(text, "0x", 2) == 0)
		r = hwloc_bitmap_taskset_sscanf(mask, text);
	else if (mask)
		r = nm_list_parse(text, mask);
	if (r == 0 && hwloc_bitmap_weight(mask) > 0)
		return mask;
	hwloc_bitmap_free(mask);
	return NULL;
}

static int parse_give(const char *line, struct nm_ledger_entry *ret)
{
	struct nm_ledger_entry entry = {0};
	int unrestricted = 0;
	char original[NM_LEDGER_MASK_BYTES + 1];
	char target[NM_LEDGER_MASK_BYTES + 1];
	char end;

	_Static_assert(NM_LEDGER_MASK_BYTES == 160, "the widths below");
	int parsed = sscanf(
		line,
		"give %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		" %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNx64 " %" SCNx64 " %d %160s %160s %c",
		&entry.tid, &entry.pid, &entry.start_ticks, &entry.given_ticks, &entry.start_stack,
		&entry.decision, &entry.session, &entry.uid, &entry.ran_ticks, &entry.cgroup,
		&entry.domain, &unrestricted, original, target, &end);
	if (parsed != 15 || end != '.' || !entry.tid || !entry.pid)
		return -EINVAL;
	entry.unrestricted = unrestricted;
	entry.original = parse_mask(original);
	entry.target = parse_mask(target);
	if (!entry.original || !entry.target) {
		nm_ledger_entry_clear(&entry);
		return -EINVAL;
	}
	*ret = entry;
	return 0;
}

/* The contents read so far; `newest` and `earlier` link the lines of each thread number, from the
 * newest to the oldest. */
struct reading {
	struct nm_ledger_contents *contents;
	size_t capacity;
	struct nm_tidmap *newest;
	uint32_t *earlier;
	size_t earlier_capacity;
};

static void end_entries(struct reading *reading, uint32_t tid, uint64_t start_ticks,
			uint64_t ended_ticks)
{
	for (uint32_t i = nm_tidmap_get(reading->newest, tid); i != NM_TIDMAP_NONE;
	     i = reading->earlier[i]) {
		struct nm_ledger_entry *entry = &reading->contents->entries[i];
		if (entry->start_ticks != start_ticks)
			continue;
		if (entry->ended_ticks)
			break; /* the earlier ones have ended, too */
		entry->ended_ticks = ended_ticks ? ended_ticks : UINT64_MAX;
	}
}

static int add_entry(struct reading *reading, const struct nm_ledger_entry *entry)
{
	struct nm_ledger_contents *contents = reading->contents;
	int r = NM_RESERVE(contents->entries, reading->capacity, contents->count);
	if (r == 0)
		r = NM_RESERVE(reading->earlier, reading->earlier_capacity, contents->count);
	if (r < 0)
		return r;
	reading->earlier[contents->count] = nm_tidmap_get(reading->newest, entry->tid);
	r = nm_tidmap_set(reading->newest, entry->tid, (uint32_t)contents->count);
	if (r < 0)
		return r;
	contents->entries[contents->count++] = *entry;
	return 0;
}

static int parse_line(const char *line, struct reading *reading)
{
	uint32_t tid;
	uint64_t start_ticks;
	uint64_t ended_ticks;
	char end;
	if (sscanf(line, "return %" SCNu32 " %" SCNu64 " %" SCNu64 " %c", &tid, &start_ticks,
		   &ended_ticks, &end) == 4 &&
	    end == '.') {
		end_entries(reading, tid, start_ticks, ended_ticks);
		return 0;
	}

	struct nm_ledger_entry entry;
	int r = parse_give(line, &entry);
	if (r < 0)
		return r;
	r = add_entry(reading, &entry);
	if (r < 0)
		nm_ledger_entry_clear(&entry);
	return r;
}

int nm_ledger_parse_header(const char *line, const char *boot_id)
{
	if (strncmp(line, NM_LEDGER_HEADER, strlen(NM_LEDGER_HEADER)) != 0)
		return -EBADMSG;
	return strcmp(line + strlen(NM_LEDGER_HEADER), boot_id) == 0;
}

struct line {
	char *text;
	size_t capacity;
};

/* Returns 1 and a complete line without its newline, 0 if there are no more lines (an incomplete
 * last line does not count), or a negative errno. */
static int next_line(FILE *file, struct line *line)
{
	errno = 0;
	ssize_t length = getline(&line->text, &line->capacity, file);
	if (length < 0)
		return ferror(file) || errno == ENOMEM ? -errno : 0;
	if (line->text[length - 1] != '\n')
		return 0;
	line->text[length - 1] = '\0';
	return 1;
}

static int parse_lines(FILE *file, const char *boot_id, struct line *line, struct reading *reading)
{
	struct nm_ledger_contents *ret = reading->contents;
	int r = next_line(file, line);
	if (r > 0)
		r = nm_ledger_parse_header(line->text, boot_id);
	for (size_t number = 2; r > 0; number++) {
		r = next_line(file, line);
		int parsed = r > 0 ? parse_line(line->text, reading) : 0;
		if (parsed == -ENOMEM)
			r = parsed;
		if (parsed < 0 && ret->bad_lines++ == 0)
			ret->first_bad_line = number;
	}
	return r;
}

static int parse_ledger(FILE *file, const char *boot_id, struct nm_ledger_contents *ret)
{
	struct reading reading = {.contents = ret};
	struct line line = {0};
	int r = nm_tidmap_new(&reading.newest);
	if (r == 0)
		r = parse_lines(file, boot_id, &line, &reading);
	nm_tidmap_free(reading.newest);
	free(reading.earlier);
	free(line.text);
	return r;
}

static int copy_text(int from, int to)
{
	char text[16384];
	ssize_t length;
	while ((length = read(from, text, sizeof(text))) > 0) {
		int r = nm_write_all(to, text, (size_t)length);
		if (r < 0)
			return r;
	}
	return length < 0 ? -errno : 0;
}

int nm_ledger_keep_damaged(int directory)
{
	nm_auto(nm_closep) int from = nm_open_own(directory, NM_LEDGER_NAME, O_RDONLY);
	if (from < 0)
		return from;
	if (unlinkat(directory, NEW_DAMAGED, 0) < 0 && errno != ENOENT)
		return -errno;
	nm_auto(nm_closep) int to =
		nm_open_own(directory, NEW_DAMAGED, O_WRONLY | O_CREAT | O_EXCL);
	int r = to < 0 ? to : copy_text(from, to);
	if (r == 0 && renameat(directory, NEW_DAMAGED, directory, NM_LEDGER_DAMAGED) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(directory, NEW_DAMAGED, 0);
	return r;
}

int nm_ledger_read(int directory, const char *boot_id, struct nm_ledger_contents *ret)
{
	struct nm_ledger_contents contents = {0};
	int fd = nm_open_own(directory, NM_LEDGER_NAME, O_RDONLY);
	if (fd == -ENOENT) {
		*ret = contents;
		return 0;
	}
	if (fd < 0)
		return fd;
	FILE *file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	int r = parse_ledger(file, boot_id, &contents);
	fclose(file);
	if (r < 0)
		nm_ledger_contents_clear(&contents);
	else
		*ret = contents;
	return r;
}

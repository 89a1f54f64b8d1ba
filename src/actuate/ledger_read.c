/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ledger_file.h"
#include "numa-migrd/file.h"
#include "numa-migrd/tidmap.h"
#include "numa-migrd/topology.h"

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
	if (mask && nm_list_parse(text, mask) < 0) {
		hwloc_bitmap_free(mask);
		return NULL;
	}
	return mask;
}

static char *decode(const char *text)
{
	if (*text++ != '=')
		return NULL;
	char *out = malloc(strlen(text) + 1);
	if (!out)
		return NULL;
	char *to = out;
	while (*text) {
		unsigned byte;
		if (*text != '%') {
			*to++ = *text++;
			continue;
		}
		if (strlen(text) < 3 || sscanf(text + 1, "%2x", &byte) != 1 || !byte) {
			free(out);
			return NULL;
		}
		*to++ = (char)byte;
		text += 3;
	}
	*to = '\0';
	return out;
}

static int parse_give(const char *line, struct nm_ledger_entry *ret)
{
	struct nm_ledger_entry entry = {0};
	uint32_t uid;
	uint64_t ran_ticks;
	int unrestricted = 0;
	nm_autofree char *original = NULL;
	nm_autofree char *target = NULL;
	nm_autofree char *cgroup = NULL;
	char end, last;

	int parsed = sscanf(line,
			    "give %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64
			    " %" SCNu64 " %" SCNu32 " %d %ms %ms %ms %c %" SCNu32 " %" SCNu64 " %c",
			    &entry.tid, &entry.pid, &entry.start_ticks, &entry.given_ticks,
			    &entry.start_stack, &entry.decision, &entry.session, &unrestricted,
			    &original, &target, &cgroup, &end, &uid, &ran_ticks, &last);
	if (parsed < 12 || end != '.' || !entry.tid || !entry.pid)
		return -EINVAL;
	/* What was cut short may be part of a number. */
	bool whole = parsed == 15 && last == '.';
	entry.uid = whole ? uid : NM_LEDGER_NO_UID;
	entry.ran_ticks = whole ? ran_ticks : 0;
	entry.unrestricted = unrestricted;
	entry.original = parse_mask(original);
	entry.target = parse_mask(target);
	entry.cgroup = decode(cgroup);
	if (!entry.original || !entry.target || !entry.cgroup) {
		nm_ledger_entry_clear(&entry);
		return -EINVAL;
	}
	*ret = entry;
	return 0;
}

/* The contents under way, with each number's lines from the newest to the oldest. */
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
			break; /* and so have those before it */
		entry->ended_ticks = ended_ticks ? ended_ticks : UINT64_MAX;
	}
}

static int add_entry(struct reading *reading, const struct nm_ledger_entry *entry)
{
	struct nm_ledger_contents *contents = reading->contents;
	int r = nm_reserve((void **)&contents->entries, &reading->capacity, contents->count,
			   sizeof(*contents->entries));
	if (r == 0)
		r = nm_reserve((void **)&reading->earlier, &reading->earlier_capacity,
			       contents->count, sizeof(*reading->earlier));
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

/* 1: a ledger of this boot; 0: of another; -EBADMSG. */
static int parse_header(const char *line, const char *boot_id)
{
	if (strncmp(line, NM_LEDGER_HEADER, strlen(NM_LEDGER_HEADER)) != 0)
		return -EBADMSG;
	return strcmp(line + strlen(NM_LEDGER_HEADER), boot_id) == 0;
}

static int parse_lines(char *text, size_t length, const char *boot_id, struct reading *reading)
{
	struct nm_ledger_contents *ret = reading->contents;
	char *limit = text + length;
	char *end = memchr(text, '\n', length);
	if (!end)
		return 0;
	*end = '\0';
	int r = parse_header(text, boot_id);

	size_t number = 1;
	for (char *line = end + 1; r > 0; line = end + 1) {
		end = memchr(line, '\n', (size_t)(limit - line));
		if (!end)
			break;
		*end = '\0';
		number++;
		int parsed = parse_line(line, reading);
		if (parsed == -ENOMEM)
			r = parsed;
		if (parsed < 0 && ret->bad_lines++ == 0)
			ret->first_bad_line = number;
	}
	return r < 0 ? r : 0;
}

static int parse_ledger(char *text, size_t length, const char *boot_id,
			struct nm_ledger_contents *ret)
{
	struct reading reading = {.contents = ret};
	int r = nm_tidmap_new(&reading.newest);
	if (r == 0)
		r = parse_lines(text, length, boot_id, &reading);
	nm_tidmap_free(reading.newest);
	free(reading.earlier);
	return r;
}

static int read_text(int directory, char **ret)
{
	nm_auto(nm_closep) int fd = nm_open_own(directory, NM_LEDGER_NAME, O_RDONLY);
	struct stat status;
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	/* One byte more than there should be: a file that grows meanwhile is refused. */
	size_t size = (size_t)status.st_size + 2;
	nm_autofree char *text = malloc(size);
	if (!text)
		return -ENOMEM;
	int length = nm_read_all(fd, text, size);
	if (length >= 0)
		*ret = NM_TAKE(text);
	return length;
}

int nm_ledger_keep_damaged(int directory)
{
	nm_autofree char *text = NULL;
	int length = read_text(directory, &text);
	if (length < 0)
		return length;
	return nm_replace_own(directory, NM_LEDGER_DAMAGED, text, (size_t)length);
}

int nm_ledger_read(int directory, const char *boot_id, struct nm_ledger_contents *ret)
{
	struct nm_ledger_contents contents = {0};
	nm_autofree char *text = NULL;
	int length = read_text(directory, &text);
	if (length == -ENOENT) {
		*ret = contents;
		return 0;
	}
	if (!text)
		return length;

	int r = parse_ledger(text, (size_t)length, boot_id, &contents);
	if (r < 0) {
		nm_ledger_contents_clear(&contents);
		return r;
	}
	*ret = contents;
	return 0;
}

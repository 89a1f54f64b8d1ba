/* SPDX-License-Identifier: MIT */
#include "numa-migrd/ledger.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/topology.h"

#define NEW_NAME NM_LEDGER_NAME ".new"
#define NEW_DAMAGED NM_LEDGER_DAMAGED ".new"
#define HEADER "numa-migrd-ledger 1 " /* followed by the boot ID */

struct nm_ledger {
	int directory;
	int fd;
	char *boot_id;
	size_t lines;
};

void nm_ledger_entry_clear(struct nm_ledger_entry *entry)
{
	hwloc_bitmap_free(entry->original);
	hwloc_bitmap_free(entry->target);
	*entry = (struct nm_ledger_entry){0};
}

void nm_ledger_entry_copy(const struct nm_ledger_entry *entry, struct nm_ledger_entry *ret)
{
	struct nm_ledger_entry copy = *entry;
	copy.original = nm_must(hwloc_bitmap_dup(entry->original));
	copy.target = nm_must(hwloc_bitmap_dup(entry->target));
	*ret = copy;
}

/*
 * Appends one line. A line that was written only in part is removed again, so that the next one is
 * not joined to it.
 */
static int append_line(int fd, const char *line, size_t length)
{
	off_t before = lseek(fd, 0, SEEK_END);
	if (before < 0)
		return -errno;
	int r = nm_write_all(fd, line, length);
	if (r < 0 && ftruncate(fd, before) < 0)
		return -errno;
	return r;
}

static int write_header(int fd, const char *boot_id)
{
	char line[sizeof(HEADER) + 64];
	int length = snprintf(line, sizeof(line), HEADER "%.60s\n", boot_id);
	return append_line(fd, line, (size_t)length);
}

/* Returns 1 if the first line is that of a ledger of this boot, 0 if of another boot, or
 * -EBADMSG. */
static int parse_header(const char *line, const char *boot_id)
{
	if (strncmp(line, HEADER, strlen(HEADER)) != 0)
		return -EBADMSG;
	return strcmp(line + strlen(HEADER), boot_id) == 0;
}

/* Returns 1 if the first line is complete and names this boot, 0 if not, -EBADMSG if the file is
 * not a ledger, or another negative errno. */
static int is_current(int fd, const char *boot_id)
{
	char line[256];
	ssize_t length = pread(fd, line, sizeof(line) - 1, 0);
	if (length < 0)
		return -errno;
	line[length] = '\0';
	char *end = strchr(line, '\n');
	if (!end) /* incomplete: no lease was ever written after it */
		return (size_t)length < sizeof(line) - 1 ? 0 : -EBADMSG;
	*end = '\0';
	return parse_header(line, boot_id);
}

/* Removes an incomplete last line, which a crash can leave: it must neither be joined to the next
 * line nor count as a damaged one. */
static int cut_torn_line(int fd)
{
	char text[NM_LEDGER_LINE_BYTES + 1];
	off_t size = lseek(fd, 0, SEEK_END);
	off_t start = size > (off_t)sizeof(text) ? size - (off_t)sizeof(text) : 0;
	if (size < 0)
		return -errno;
	ssize_t length = pread(fd, text, (size_t)(size - start), start);
	if (length != size - start)
		return length < 0 ? -errno : -EIO;
	const char *end = memrchr(text, '\n', (size_t)length);
	if (!end) /* no line of a ledger has this length */
		return append_line(fd, "\n", 1);
	off_t whole = start + (end - text) + 1;
	return whole == size || ftruncate(fd, whole) == 0 ? 0 : -errno;
}

int nm_ledger_open(int directory, const char *boot_id, struct nm_ledger **ret)
{
	nm_auto(nm_ledger_freep) struct nm_ledger *ledger = nm_must(calloc(1, sizeof(*ledger)));
	ledger->directory = directory;
	ledger->fd = -1;
	ledger->boot_id = nm_must(strdup(boot_id));
	ledger->fd = nm_open_own(directory, NM_LEDGER_NAME, O_RDWR | O_CREAT | O_APPEND);
	if (ledger->fd < 0)
		return ledger->fd;
	int r = is_current(ledger->fd, boot_id);
	if (r > 0)
		r = cut_torn_line(ledger->fd);
	else if (r == 0)
		r = ftruncate(ledger->fd, 0) < 0 ? -errno : write_header(ledger->fd, boot_id);
	if (r < 0)
		return r;
	*ret = NM_TAKE(ledger);
	return 0;
}

void nm_ledger_free(struct nm_ledger *ledger)
{
	if (!ledger)
		return;
	if (ledger->fd >= 0)
		close(ledger->fd);
	free(ledger->boot_id);
	free(ledger);
}

size_t nm_ledger_lines(const struct nm_ledger *ledger)
{
	return ledger->lines;
}

/* A hash collision between cgroups of one user is no weaker proof than a common session. */
uint64_t nm_ledger_cgroup(const char *path)
{
	if (!path || !path[0] || strcmp(path, "/") == 0)
		return 0;
	uint64_t hash = nm_hash_add(NM_HASH_START, path, strlen(path));
	return hash ? hash : 1;
}

static int format_mask(hwloc_const_bitmap_t mask, char *text)
{
	if (hwloc_bitmap_weight(mask) <= 0)
		return -EINVAL;
	if (hwloc_bitmap_list_snprintf(text, NM_LEDGER_MASK_BYTES + 1, mask) <=
	    NM_LEDGER_MASK_BYTES)
		return 0;
	return hwloc_bitmap_taskset_snprintf(text, NM_LEDGER_MASK_BYTES + 1, mask) <=
			       NM_LEDGER_MASK_BYTES
		       ? 0
		       : -E2BIG;
}

int nm_ledger_format(const struct nm_ledger_entry *entry, char line[NM_LEDGER_LINE_BYTES + 1])
{
	char original[NM_LEDGER_MASK_BYTES + 1];
	char target[NM_LEDGER_MASK_BYTES + 1];
	int r = format_mask(entry->original, original);
	if (r == 0)
		r = format_mask(entry->target, target);
	if (r < 0)
		return r;
	int length =
		snprintf(line, NM_LEDGER_LINE_BYTES + 1,
			 "give %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32
			 " %" PRIu32 " %" PRIu64 " %" PRIx64 " %" PRIx64 " %d %s %s .",
			 entry->tid, entry->pid, entry->start_ticks, entry->given_ticks,
			 entry->decision, entry->session, entry->uid, entry->ran_ticks,
			 entry->cgroup, entry->domain, entry->unrestricted, original, target);
	return length < NM_LEDGER_LINE_BYTES ? 0 : -E2BIG;
}

static int write_give(int fd, const struct nm_ledger_entry *entry)
{
	char line[NM_LEDGER_LINE_BYTES + 2];
	int r = nm_ledger_format(entry, line);
	if (r < 0)
		return r;
	size_t length = strlen(line);
	line[length++] = '\n';
	return append_line(fd, line, length);
}

static int write_return(int fd, uint32_t tid, uint64_t start_ticks, uint64_t ended_ticks)
{
	char line[80];
	int length = snprintf(line, sizeof(line), "return %" PRIu32 " %" PRIu64 " %" PRIu64 " .\n",
			      tid, start_ticks, ended_ticks);
	return append_line(fd, line, (size_t)length);
}

int nm_ledger_give(struct nm_ledger *ledger, const struct nm_ledger_entry *entry)
{
	int r = write_give(ledger->fd, entry);
	ledger->lines += r == 0;
	return r;
}

int nm_ledger_return(struct nm_ledger *ledger, uint32_t tid, uint64_t start_ticks,
		     uint64_t ended_ticks)
{
	int r = write_return(ledger->fd, tid, start_ticks, ended_ticks);
	ledger->lines += r == 0;
	return r;
}

/* A return line ends all earlier lines of its thread, so the ended entries are written first. */
static int write_entries(int fd, const char *boot_id, const struct nm_ledger_entry *const *entries,
			 size_t count)
{
	int r = write_header(fd, boot_id);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct nm_ledger_entry *entry = entries[i];
		if (!entry->ended_ticks)
			continue;
		r = write_give(fd, entry);
		if (r == 0)
			r = write_return(fd, entry->tid, entry->start_ticks, entry->ended_ticks);
	}
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!entries[i]->ended_ticks)
			r = write_give(fd, entries[i]);
	return r;
}

static int remove_from(int directory, const char *name)
{
	if (directory == NM_NOWHERE || unlinkat(directory, name, 0) == 0 || errno == ENOENT)
		return 0;
	return -errno;
}

int nm_ledger_compact(struct nm_ledger *ledger, const struct nm_ledger_entry *const *entries,
		      size_t count)
{
	int removed = remove_from(ledger->directory, NEW_NAME);
	if (removed < 0)
		return removed;
	int fd = nm_open_own(ledger->directory, NEW_NAME, O_RDWR | O_CREAT | O_EXCL | O_APPEND);
	if (fd < 0)
		return fd;
	int r = write_entries(fd, ledger->boot_id, entries, count);
	if (r == 0 && ledger->directory != NM_NOWHERE &&
	    renameat(ledger->directory, NEW_NAME, ledger->directory, NM_LEDGER_NAME) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		(void)remove_from(ledger->directory, NEW_NAME);
		return r;
	}
	close(ledger->fd);
	ledger->fd = fd;
	ledger->lines = count;
	return 0;
}

int nm_ledger_remove(int directory)
{
	return remove_from(directory, NM_LEDGER_NAME);
}

/* ---- reading ---- */

void nm_ledger_contents_clear(struct nm_ledger_contents *contents)
{
	for (size_t i = 0; i < contents->count; i++)
		nm_ledger_entry_clear(&contents->entries[i]);
	free(contents->entries);
	free(contents->earlier);
	nm_tidmap_free(contents->newest);
	*contents = (struct nm_ledger_contents){0};
}

static hwloc_bitmap_t parse_mask(const char *text)
{
	hwloc_bitmap_t mask = nm_must(hwloc_bitmap_alloc());
	int r = strncmp(text, "0x", 2) == 0 ? hwloc_bitmap_taskset_sscanf(mask, text)
					    : nm_list_parse(text, mask);
	if (r == 0 && hwloc_bitmap_weight(mask) > 0)
		return mask;
	hwloc_bitmap_free(mask);
	return NULL;
}

int nm_ledger_parse(const char *line, struct nm_ledger_entry *ret)
{
	struct nm_ledger_entry entry = {0};
	int unrestricted = 0;
	char original[NM_LEDGER_MASK_BYTES + 1];
	char target[NM_LEDGER_MASK_BYTES + 1];
	char end;

	_Static_assert(NM_LEDGER_MASK_BYTES == 160, "the widths below");
	int parsed =
		sscanf(line,
		       "give %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32
		       " %" SCNu32 " %" SCNu64 " %" SCNx64 " %" SCNx64 " %d %160s %160s %c",
		       &entry.tid, &entry.pid, &entry.start_ticks, &entry.given_ticks,
		       &entry.decision, &entry.session, &entry.uid, &entry.ran_ticks, &entry.cgroup,
		       &entry.domain, &unrestricted, original, target, &end);
	if (parsed != 14 || end != '.' || !entry.tid || !entry.pid)
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

/* The contents read so far. */
struct reading {
	struct nm_ledger_contents *contents;
	size_t capacity, earlier_capacity;
};

static void end_entries(struct nm_ledger_contents *contents, uint32_t tid, uint64_t start_ticks,
			uint64_t ended_ticks)
{
	for (uint32_t i = nm_tidmap_get(contents->newest, tid); i != NM_TIDMAP_NONE;
	     i = contents->earlier[i]) {
		struct nm_ledger_entry *entry = &contents->entries[i];
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
	NM_RESERVE(contents->entries, reading->capacity, contents->count);
	NM_RESERVE(contents->earlier, reading->earlier_capacity, contents->count);
	contents->earlier[contents->count] = nm_tidmap_get(contents->newest, entry->tid);
	int r = nm_tidmap_set(contents->newest, entry->tid, (uint32_t)contents->count);
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
		end_entries(reading->contents, tid, start_ticks, ended_ticks);
		return 0;
	}

	struct nm_ledger_entry entry;
	int r = nm_ledger_parse(line, &entry);
	if (r < 0)
		return r;
	r = add_entry(reading, &entry);
	if (r < 0)
		nm_ledger_entry_clear(&entry);
	return r;
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
		return ferror(file) ? -errno : 0;
	if (line->text[length - 1] != '\n')
		return 0;
	line->text[length - 1] = '\0';
	return 1;
}

static int parse_ledger(FILE *file, const char *boot_id, struct nm_ledger_contents *ret)
{
	struct reading reading = {.contents = ret};
	struct line line = {0};
	ret->newest = nm_tidmap_new();
	int r = next_line(file, &line);
	if (r > 0)
		r = parse_header(line.text, boot_id);
	for (size_t number = 2; r > 0; number++) {
		r = next_line(file, &line);
		int parsed = r > 0 ? parse_line(line.text, &reading) : 0;
		if (parsed < 0 && ret->bad_lines++ == 0)
			ret->first_bad_line = number;
	}
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
	FILE *file = nm_must(fdopen(fd, "r"));
	int r = parse_ledger(file, boot_id, &contents);
	fclose(file);
	if (r < 0)
		nm_ledger_contents_clear(&contents);
	else
		*ret = contents;
	return r;
}

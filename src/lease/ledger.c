/* SPDX-License-Identifier: MIT */
#include "numa-migrd/ledger.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ledger_file.h"
#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "numa-migrd/platform.h"

#define NEW_NAME NM_LEDGER_NAME ".new"

struct nm_ledger {
	int directory;
	int fd;
	struct nm_generation *generation; /* the generation in which the ledger was opened */
	char *boot_id;
	size_t lines;
};

void nm_ledger_entry_clear(struct nm_ledger_entry *entry)
{
	hwloc_bitmap_free(entry->original);
	hwloc_bitmap_free(entry->target);
	*entry = (struct nm_ledger_entry){0};
}

int nm_ledger_entry_copy(const struct nm_ledger_entry *entry, struct nm_ledger_entry *ret)
{
	struct nm_ledger_entry copy = *entry;
	copy.original = hwloc_bitmap_dup(entry->original);
	copy.target = hwloc_bitmap_dup(entry->target);
	if (!copy.original || !copy.target) {
		nm_ledger_entry_clear(&copy);
		return -ENOMEM;
	}
	*ret = copy;
	return 0;
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
	nm_autofree char *line = NULL;
	int length = asprintf(&line, NM_LEDGER_HEADER "%s\n", boot_id);
	if (length < 0) {
		line = NULL;
		return -ENOMEM;
	}
	return append_line(fd, line, (size_t)length);
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
	return nm_ledger_parse_header(line, boot_id);
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

static int begin_ledger(int fd, const char *boot_id)
{
	int r = is_current(fd, boot_id);
	if (r > 0)
		return cut_torn_line(fd);
	if (r == 0 && ftruncate(fd, 0) < 0)
		r = -errno;
	return r < 0 ? r : write_header(fd, boot_id);
}

int nm_ledger_open(int directory, const char *boot_id, struct nm_ledger **ret)
{
	nm_auto(nm_ledger_freep) struct nm_ledger *ledger = calloc(1, sizeof(*ledger));
	if (!ledger)
		return -ENOMEM;
	ledger->directory = directory;
	ledger->fd = -1;
	ledger->boot_id = strdup(boot_id);
	if (!ledger->boot_id)
		return -ENOMEM;
	int r = nm_generation_look(directory, &ledger->generation);
	if (r < 0)
		return r;
	ledger->fd = nm_open_own(directory, NM_LEDGER_NAME, O_RDWR | O_CREAT | O_APPEND);
	if (ledger->fd < 0)
		return ledger->fd;
	r = begin_ledger(ledger->fd, boot_id);
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
	nm_generation_free(ledger->generation);
	free(ledger->boot_id);
	free(ledger);
}

bool nm_ledger_is_ours(const struct nm_ledger *ledger)
{
	return nm_generation_stands(ledger->generation);
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

/* "give TID PID START GIVEN STACK DECISION SESSION UID RAN CGROUP DOMAIN UNRESTRICTED ORIGINAL
 * TARGET ." */
static int write_give(int fd, const struct nm_ledger_entry *entry)
{
	char original[NM_LEDGER_MASK_BYTES + 1];
	char target[NM_LEDGER_MASK_BYTES + 1];
	char line[NM_LEDGER_LINE_BYTES + 1];
	int r = format_mask(entry->original, original);
	if (r == 0)
		r = format_mask(entry->target, target);
	if (r < 0)
		return r;
	int length = snprintf(
		line, sizeof(line),
		"give %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIx64 " %" PRIx64 " %d %s %s .\n",
		entry->tid, entry->pid, entry->start_ticks, entry->given_ticks, entry->start_stack,
		entry->decision, entry->session, entry->uid, entry->ran_ticks, entry->cgroup,
		entry->domain, entry->unrestricted, original, target);
	return length < (int)sizeof(line) ? append_line(fd, line, (size_t)length) : -E2BIG;
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
	int r = nm_ledger_is_ours(ledger) ? write_give(ledger->fd, entry) : -ECANCELED;
	ledger->lines += r == 0;
	return r;
}

int nm_ledger_return(struct nm_ledger *ledger, uint32_t tid, uint64_t start_ticks,
		     uint64_t ended_ticks)
{
	int r = nm_ledger_is_ours(ledger) ? write_return(ledger->fd, tid, start_ticks, ended_ticks)
					  : -ECANCELED;
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

static int take_place(int directory)
{
	if (directory == NM_NOWHERE ||
	    renameat(directory, NEW_NAME, directory, NM_LEDGER_NAME) == 0)
		return 0;
	return -errno;
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
	if (!nm_ledger_is_ours(ledger))
		return -ECANCELED;
	int removed = remove_from(ledger->directory, NEW_NAME);
	if (removed < 0)
		return removed;
	int fd = nm_open_own(ledger->directory, NEW_NAME, O_RDWR | O_CREAT | O_EXCL | O_APPEND);
	if (fd < 0)
		return fd;
	int r = write_entries(fd, ledger->boot_id, entries, count);
	if (r == 0)
		r = take_place(ledger->directory);
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

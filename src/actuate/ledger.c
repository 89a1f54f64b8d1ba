/* SPDX-License-Identifier: MIT */
#include "numa-migrd/ledger.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER "numa-migrd-ledger 1 "
#define NEW_NAME NM_LEDGER_NAME ".new"
#define LIMIT_BYTES (64U << 20) /* a ledger is kilobytes; a larger file is not one of ours */

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
	free(entry->cgroup);
	*entry = (struct nm_ledger_entry){0};
}

int nm_ledger_entry_copy(const struct nm_ledger_entry *entry, struct nm_ledger_entry *ret)
{
	struct nm_ledger_entry copy = *entry;
	copy.original = hwloc_bitmap_dup(entry->original);
	copy.target = hwloc_bitmap_dup(entry->target);
	copy.cgroup = strdup(entry->cgroup);
	if (!copy.original || !copy.target || !copy.cgroup) {
		nm_ledger_entry_clear(&copy);
		return -ENOMEM;
	}
	*ret = copy;
	return 0;
}

static int write_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, text, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		text += written;
		length -= (size_t)written;
	}
	return 0;
}

/*
 * Appends one line. A line that did not fit whole is cut off again: whatever follows must not be
 * glued to a torn one.
 */
static int append(int fd, const char *line, size_t length)
{
	off_t before = lseek(fd, 0, SEEK_END);
	if (before < 0)
		return -errno;
	int r = write_all(fd, line, length);
	if (r < 0 && ftruncate(fd, before) < 0)
		return -errno;
	return r;
}

/* Only a regular file of our own may be the ledger: no link, nobody else's, not written by others.
 */
static int check_file(int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_mode & 022))
		return -EPERM;
	if (st.st_uid != geteuid() && geteuid() != 0)
		return -EPERM;
	if (st.st_size > (off_t)LIMIT_BYTES)
		return -EFBIG;
	return 0;
}

static int open_file(int directory, const char *name, int flags)
{
	int fd = openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	int r = check_file(fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

static int write_header(int fd, const char *boot_id)
{
	nm_autofree char *line = NULL;
	int length = asprintf(&line, HEADER "%s\n", boot_id);
	if (length < 0) {
		line = NULL;
		return -ENOMEM;
	}
	return append(fd, line, (size_t)length);
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
	ledger->fd = open_file(directory, NM_LEDGER_NAME, O_RDWR | O_CREAT | O_APPEND);
	if (ledger->fd < 0)
		return ledger->fd;
	if (lseek(ledger->fd, 0, SEEK_END) == 0) {
		int r = write_header(ledger->fd, boot_id);
		if (r < 0)
			return r;
	}
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

/* A cgroup path may hold blanks and newlines: every byte that is not plain is written as %XX. */
static char *encode(const char *text)
{
	static const char hex[] = "0123456789abcdef";
	char *out = malloc(strlen(text) * 3 + 2);
	if (!out)
		return NULL;
	char *to = out;
	*to++ = '='; /* so that an empty path is a word too */
	for (const unsigned char *from = (const unsigned char *)text; *from; from++) {
		if (*from > ' ' && *from < 0x7f && *from != '%') {
			*to++ = (char)*from;
			continue;
		}
		*to++ = '%';
		*to++ = hex[*from >> 4];
		*to++ = hex[*from & 15];
	}
	*to = '\0';
	return out;
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

/* "give TID PID START GIVEN DECISION SESSION UNRESTRICTED ORIGINAL TARGET =CGROUP ." */
static int format_entry(const struct nm_ledger_entry *entry, char **ret)
{
	nm_autofree char *original = NULL;
	nm_autofree char *target = NULL;
	nm_autofree char *cgroup = encode(entry->cgroup);
	if (!cgroup || hwloc_bitmap_list_asprintf(&original, entry->original) < 0 ||
	    hwloc_bitmap_list_asprintf(&target, entry->target) < 0)
		return -ENOMEM;
	int length = asprintf(ret,
			      "give %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64
			      " %" PRIu32 " %d %s %s %s .\n",
			      entry->tid, entry->pid, entry->start_ticks, entry->given_ticks,
			      entry->decision, entry->session, entry->unrestricted, original,
			      target, cgroup);
	return length < 0 ? -ENOMEM : length;
}

int nm_ledger_give(struct nm_ledger *ledger, const struct nm_ledger_entry *entry)
{
	char *line;
	int length = format_entry(entry, &line);
	if (length < 0)
		return length;
	int r = append(ledger->fd, line, (size_t)length);
	free(line);
	if (r == 0)
		ledger->lines++;
	return r;
}

int nm_ledger_return(struct nm_ledger *ledger, uint32_t tid, uint64_t start_ticks)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "return %" PRIu32 " %" PRIu64 " .\n", tid,
			      start_ticks);
	int r = append(ledger->fd, line, (size_t)length);
	if (r == 0)
		ledger->lines++;
	return r;
}

static int write_entries(int fd, const char *boot_id, const struct nm_ledger_entry *const *entries,
			 size_t count)
{
	int r = write_header(fd, boot_id);
	for (size_t i = 0; r >= 0 && i < count; i++) {
		char *line;
		r = format_entry(entries[i], &line);
		if (r < 0)
			break;
		r = append(fd, line, (size_t)r);
		free(line);
	}
	return r;
}

int nm_ledger_compact(struct nm_ledger *ledger, const struct nm_ledger_entry *const *entries,
		      size_t count)
{
	if (unlinkat(ledger->directory, NEW_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	int fd = open_file(ledger->directory, NEW_NAME, O_RDWR | O_CREAT | O_EXCL | O_APPEND);
	if (fd < 0)
		return fd;
	int r = write_entries(fd, ledger->boot_id, entries, count);
	if (r >= 0 && renameat(ledger->directory, NEW_NAME, ledger->directory, NM_LEDGER_NAME) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		(void)unlinkat(ledger->directory, NEW_NAME, 0);
		return r;
	}
	close(ledger->fd);
	ledger->fd = fd;
	ledger->lines = count;
	return 0;
}

/* ---- reading ---- */

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
	if (mask && (hwloc_bitmap_list_sscanf(mask, text) < 0 || hwloc_bitmap_iszero(mask))) {
		hwloc_bitmap_free(mask);
		return NULL;
	}
	return mask;
}

static int parse_give(const char *line, struct nm_ledger_entry *ret)
{
	struct nm_ledger_entry entry = {0};
	int unrestricted = 0;
	nm_autofree char *original = NULL;
	nm_autofree char *target = NULL;
	nm_autofree char *cgroup = NULL;
	char end;

	int parsed = sscanf(line,
			    "give %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64
			    " %" SCNu32 " %d %ms %ms %ms %c",
			    &entry.tid, &entry.pid, &entry.start_ticks, &entry.given_ticks,
			    &entry.decision, &entry.session, &unrestricted, &original, &target,
			    &cgroup, &end);
	if (parsed != 11 || end != '.' || !entry.tid || !entry.pid)
		return -EINVAL;
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

static void drop_entry(struct nm_ledger_contents *contents, uint32_t tid, uint64_t start_ticks)
{
	for (size_t i = 0; i < contents->count; i++) {
		struct nm_ledger_entry *entry = &contents->entries[i];
		if (entry->tid != tid || entry->start_ticks != start_ticks)
			continue;
		nm_ledger_entry_clear(entry);
		contents->count--;
		memmove(entry, entry + 1, (contents->count - i) * sizeof(*entry));
		return;
	}
}

static int parse_line(const char *line, struct nm_ledger_contents *contents, size_t *capacity)
{
	uint32_t tid;
	uint64_t start_ticks;
	char end;
	if (sscanf(line, "return %" SCNu32 " %" SCNu64 " %c", &tid, &start_ticks, &end) == 3 &&
	    end == '.') {
		drop_entry(contents, tid, start_ticks);
		return 0;
	}

	struct nm_ledger_entry entry;
	int r = parse_give(line, &entry);
	if (r < 0)
		return r;
	drop_entry(contents, entry.tid, entry.start_ticks);
	r = nm_reserve((void **)&contents->entries, capacity, contents->count,
		       sizeof(*contents->entries));
	if (r < 0) {
		nm_ledger_entry_clear(&entry);
		return r;
	}
	contents->entries[contents->count++] = entry;
	return 0;
}

static int parse_ledger(char *text, const char *boot_id, struct nm_ledger_contents *ret)
{
	struct nm_ledger_contents contents = {0};
	size_t capacity = 0;
	bool header = true;

	for (char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
		*end = '\0';
		if (header) {
			header = false;
			if (strncmp(text, HEADER, strlen(HEADER)) != 0)
				return -EBADMSG;
			if (strcmp(text + strlen(HEADER), boot_id) != 0)
				return 0;
			continue;
		}
		int r = parse_line(text, &contents, &capacity);
		if (r == -ENOMEM) {
			nm_ledger_contents_clear(&contents);
			return r;
		}
		contents.bad_lines += r < 0;
	}
	*ret = contents;
	return 0;
}

static int read_file(int fd, char **ret)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	size_t size = (size_t)st.st_size;
	nm_autofree char *text = malloc(size + 1);
	if (!text)
		return -ENOMEM;

	size_t length = 0;
	while (length < size) {
		ssize_t got = pread(fd, text + length, size - length, (off_t)length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	text[length] = '\0';
	*ret = NM_TAKE(text);
	return 0;
}

int nm_ledger_read(int directory, const char *boot_id, struct nm_ledger_contents *ret)
{
	int fd = open_file(directory, NM_LEDGER_NAME, O_RDONLY);
	if (fd == -ENOENT) {
		*ret = (struct nm_ledger_contents){0};
		return 0;
	}
	if (fd < 0)
		return fd;
	nm_autofree char *text = NULL;
	int r = read_file(fd, &text);
	close(fd);
	if (r < 0 || !text)
		return r;

	struct nm_ledger_contents contents = {0};
	r = parse_ledger(text, boot_id, &contents);
	if (r == 0)
		*ret = contents;
	return r;
}

int nm_ledger_remove(int directory)
{
	if (unlinkat(directory, NM_LEDGER_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "slots.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "numa-migrd/file.h"

#define HEADER "numa-migrd-moves 1 " /* followed by the boot ID */

/* A slot does not cross the boundary of a page, within which a killed process completes a write. */
#define SLOT_BYTES NM_NARROWING_BYTES
_Static_assert(4096 % SLOT_BYTES == 0, "slots must not cross a page");

struct nm_slots {
	int fd;
};

static off_t place_of(size_t slot)
{
	return (off_t)((slot + 1) * SLOT_BYTES); /* the header is before the first one */
}

/* Writes the text, followed by blanks. */
static int write_at(int fd, off_t place, const char *text)
{
	char bytes[SLOT_BYTES];
	size_t length = strlen(text);
	memset(bytes, ' ', sizeof(bytes));
	memcpy(bytes, text, length);
	bytes[sizeof(bytes) - 1] = '\n';
	ssize_t written = pwrite(fd, bytes, sizeof(bytes), place);
	if (written < 0)
		return -errno;
	return written == (ssize_t)sizeof(bytes) ? 0 : -EIO;
}

/* Reads a slot or the header without the blanks. Returns 1, 0 at the end of the file, or a negative
 * errno. */
static int read_at(int fd, off_t place, char text[SLOT_BYTES + 1])
{
	ssize_t length = pread(fd, text, SLOT_BYTES, place);
	if (length < 0)
		return -errno;
	if (length == 0)
		return 0;
	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\n'))
		length--;
	text[length] = '\0';
	return 1;
}

/* Returns 1 if the file is of this boot, 0 if it is empty or of another one, -EBADMSG if it is not
 * a file of slots, or another negative errno. */
static int is_current(int fd, const char *boot_id)
{
	char text[SLOT_BYTES + 1];
	int r = read_at(fd, 0, text);
	if (r <= 0 || !text[0])
		return r < 0 ? r : 0;
	if (strncmp(text, HEADER, strlen(HEADER)) != 0)
		return -EBADMSG;
	return strcmp(text + strlen(HEADER), boot_id) == 0;
}

int nm_slots_open(int directory, const char *boot_id, struct nm_slots **ret)
{
	nm_auto(nm_slots_freep) struct nm_slots *slots = nm_must(calloc(1, sizeof(*slots)));
	char header[sizeof(HEADER) + 64];
	slots->fd = nm_open_own(directory, NM_MOVES_NAME, O_RDWR | O_CREAT);
	if (slots->fd < 0)
		return slots->fd;
	int r = is_current(slots->fd, boot_id);
	if (r < 0)
		return r;
	(void)snprintf(header, sizeof(header), HEADER "%.60s", boot_id);
	if (r == 0)
		r = ftruncate(slots->fd, 0) < 0 ? -errno : write_at(slots->fd, 0, header);
	if (r < 0)
		return r;
	*ret = NM_TAKE(slots);
	return 0;
}

void nm_slots_free(struct nm_slots *slots)
{
	if (!slots)
		return;
	if (slots->fd >= 0)
		close(slots->fd);
	free(slots);
}

int nm_slots_take(struct nm_slots *slots, size_t slot, const struct nm_narrowing *terms)
{
	char line[NM_NARROWING_BYTES + 1];
	int r = nm_narrowing_format(terms, line);
	return r < 0 ? r : write_at(slots->fd, place_of(slot), line);
}

int nm_slots_clear(struct nm_slots *slots, size_t slot)
{
	return write_at(slots->fd, place_of(slot), "");
}

void nm_slots_contents_clear(struct nm_slots_contents *contents)
{
	for (size_t i = 0; contents->terms && i < NM_MOVE_SLOTS; i++)
		nm_narrowing_clear(&contents->terms[i]);
	free(contents->terms);
	*contents = (struct nm_slots_contents){0};
}

/* A write that was cut short is a change that did not happen: the text lacks its end, or, of a slot
 * that was being cleared, its beginning. */
static bool is_in_use(const char *text)
{
	size_t length = strlen(text);
	return length > 0 && text[0] != ' ' && text[length - 1] == '.';
}

static int read_slots(int fd, struct nm_slots_contents *contents)
{
	char text[SLOT_BYTES + 1];
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++) {
		int r = read_at(fd, place_of(i), text);
		if (r <= 0)
			return r;
		if (!is_in_use(text))
			continue;
		if (nm_narrowing_parse(text, &contents->terms[i]) == 0)
			contents->used++;
		else if (contents->damaged++ == 0)
			contents->first_damaged = i + 1;
	}
	return 0;
}

int nm_slots_read(int directory, const char *boot_id, struct nm_slots_contents *ret)
{
	nm_auto(nm_slots_contents_clear) struct nm_slots_contents contents = {
		.terms = nm_must(calloc(NM_MOVE_SLOTS, sizeof(*contents.terms)))};
	nm_auto(nm_closep) int fd = nm_open_own(directory, NM_MOVES_NAME, O_RDONLY);
	int r = fd == -ENOENT ? 0 : fd < 0 ? fd : is_current(fd, boot_id);
	if (r > 0)
		r = read_slots(fd, &contents);
	if (r < 0)
		return r;
	*ret = contents;
	contents = (struct nm_slots_contents){0};
	return 0;
}

int nm_slots_remove(int directory)
{
	if (directory == NM_NOWHERE || unlinkat(directory, NM_MOVES_NAME, 0) == 0 ||
	    errno == ENOENT)
		return 0;
	return -errno;
}

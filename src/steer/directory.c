/* SPDX-License-Identifier: MIT */
/* One directory: what it says, what of that counts, and what is told of it. */
#include <stdio.h>
#include <string.h>

#include "numa-migrd/escape.h"
#include "tree.h"

#define TEXT_BYTES 256
#define OTHERS_TOLD_MOST 16U /* in a minute */

/* ---- telling ---- */

static void tell(struct nm_steer *steer, const struct nm_steer_news *news)
{
	char path[TEXT_BYTES];
	struct nm_steer_news escaped = *news;

	(void)nm_escape(path, sizeof(path), news->directory, strlen(news->directory));
	escaped.directory = path;
	steer->ops.tell(steer->ops.context, &escaped);
}

/* Is it new among those told, and now one of them? */
static bool take_note(struct nm_steer *steer, uint32_t *told, enum nm_steer_trouble trouble)
{
	uint32_t bit = 1U << trouble;

	if (*told & bit)
		return false;
	*told |= bit;
	steer->counts.troubles++;
	return true;
}

void nm_steer_tell(struct nm_steer *steer, const struct nm_steer_news *news)
{
	if (take_note(steer, &steer->told, news->trouble))
		tell(steer, news);
}

/* Who makes one directory after another could fill the journal with them: the rest is counted. */
static bool may_tell(struct nm_steer *steer, const struct nm_steer_directory *directory)
{
	return directory->roots || steer->others_told++ < OTHERS_TOLD_MOST;
}

void nm_steer_tell_of(struct nm_steer *steer, struct nm_steer_directory *directory,
		      enum nm_steer_trouble trouble)
{
	const struct nm_steer_news news = {
		.trouble = trouble, .directory = directory->path, .said = directory->text};

	if (take_note(steer, &directory->told, trouble) && may_tell(steer, directory))
		tell(steer, &news);
}

void nm_steer_tell_unwatched(struct nm_steer *steer, const char *path, int error)
{
	const struct nm_steer_news news = {
		.trouble = NM_STEER_UNWATCHED, .directory = path, .said = "", .error = error};
	nm_steer_tell(steer, &news);
}

/* ---- reading ---- */

static bool is_roots(const struct nm_steer *steer, int fd)
{
	struct nm_owner owner;

	return steer->platform->ops->owner(steer->platform, fd, &owner) == 0 && owner.uid == 0 &&
	       !owner.others_write;
}

/* What of its word counts. Others than root may keep a process out of something, and not bring it
 * in. */
static struct nm_steering judge(struct nm_steer *steer, struct nm_steer_directory *directory,
				const char *bytes, size_t length)
{
	const struct nm_steering observe = {.word = NM_STEER_OBSERVE, .asked = directory->roots};
	struct nm_steering said;

	if (nm_steer_parse(bytes, length, &said) < 0) {
		nm_steer_tell_of(steer, directory, NM_STEER_UNKNOWN);
		return observe;
	}
	if (said.word == NM_STEER_OFF)
		return said;
	if (said.word == NM_STEER_OBSERVE)
		return observe;
	if (!directory->roots) {
		nm_steer_tell_of(steer, directory, NM_STEER_NOT_ROOTS);
		return (struct nm_steering){0};
	}
	if (said.word == NM_STEER_POLICY && !nm_steer_is_free(said.policy, steer->policy)) {
		nm_steer_tell_of(steer, directory, NM_STEER_NOT_FREE);
		return observe;
	}
	said.asked = true;
	return said;
}

/* Of a group that is gone, closed to us, or without an attribute; else it cannot be told now. */
static bool says_nothing(ssize_t error)
{
	return error == -ENOENT || error == -EACCES || error == -EPERM || error == -ENODATA ||
	       error == -EOPNOTSUPP;
}

static int read_attribute(struct nm_steer *steer, struct nm_steer_directory *directory, int fd)
{
	struct nm_platform *platform = steer->platform;
	char bytes[NM_STEER_ATTRIBUTE_BYTES], text[sizeof(directory->text)];
	ssize_t length = platform->ops->read_attribute(platform, fd, NM_STEER_ATTRIBUTE, bytes,
						       sizeof(bytes));

	/* Longer than any word: one that is not known. */
	if (length == -ERANGE)
		length = snprintf(bytes, sizeof(bytes), "(too long)");
	if (length < 0 && !says_nothing(length))
		return (int)length;
	(void)nm_escape(text, sizeof(text), bytes, length > 0 ? (size_t)length : 0);
	directory->roots = is_roots(steer, fd);
	/* Others could fill the journal with one wrong word after another. */
	if (directory->roots && strcmp(text, directory->text) != 0)
		directory->told = 0;
	memcpy(directory->text, text, sizeof(text));
	directory->said = length < 0 ? (struct nm_steering){0}
				     : judge(steer, directory, bytes, (size_t)length);
	return 0;
}

static void put_under_watch(struct nm_steer *steer, struct nm_steer_directory *directory, int fd)
{
	struct nm_platform *platform = steer->platform;

	if (directory->descriptor >= 0 || steer->watch < 0)
		return;
	int descriptor = platform->ops->watch_add(platform, steer->watch, fd);
	int r = nm_steer_watched(steer, directory, descriptor);
	if (r < 0 && descriptor >= 0)
		platform->ops->watch_remove(platform, steer->watch, descriptor);
	if (r < 0)
		nm_steer_tell_unwatched(steer, directory->path, r);
}

int nm_steer_read(struct nm_steer *steer, struct nm_steer_directory *directory, bool watched)
{
	struct nm_platform *platform = steer->platform;
	nm_autofree char *path = NULL;

	if (asprintf(&path, "%s%s", steer->base, directory->path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	int fd = platform->ops->open_directory(platform, NM_ROOT, path);
	if (fd < 0 && !says_nothing(fd))
		return fd;
	if (fd < 0) {
		directory->said = (struct nm_steering){0};
		directory->text[0] = '\0';
		directory->known = true;
		return 0;
	}
	if (watched)
		put_under_watch(steer, directory, fd);
	int r = read_attribute(steer, directory, fd);
	directory->known = r == 0;
	platform->ops->close(platform, fd);
	return r;
}

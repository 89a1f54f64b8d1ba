/* SPDX-License-Identifier: MIT */
/* The directories above known processes: each read once, and under watch from just before. */
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "numa-migrd/escape.h"
#include "numa-migrd/steer.h"

#define UNIFIED "sys/fs/cgroup"
#define HYBRID "sys/fs/cgroup/unified" /* beside version 1, systemd's "hybrid" layout */
#define ATTRIBUTE_BYTES 64
#define TEXT_BYTES 256
/* Whoever may make groups could make any number of them: further ones are read each time. */
#define MOST_DIRECTORIES 4096U
#define FORGET_NS (120 * NM_NSEC_PER_SEC)
#define EVENT_BYTES 16384
#define READS_AT_ONCE 64

struct directory {
	char *path;			/* raw, as in /proc/PID/cgroup */
	int descriptor;			/* of its watch; negative: none */
	bool known;			/* what it says is */
	struct nm_steering said;	/* of which only what counts */
	char text[ATTRIBUTE_BYTES * 4]; /* its attribute, escaped */
	uint32_t told;			/* bits 1 << trouble */
	uint64_t asked_ns;
};

struct nm_steer {
	struct nm_platform *platform;
	struct nm_steer_ops ops;
	const char *base;
	enum nm_attribute attribute;
	enum nm_thread_policy policy;
	int watch;			/* negative errno: none */
	struct directory **directories; /* in order of their paths */
	size_t count, capacity;
	uint32_t told; /* what is told once at all */
	struct nm_steer_counts counts;
};

/* ---- telling ---- */

static void tell(struct nm_steer *steer, uint32_t *told, const struct nm_steer_news *news)
{
	char path[TEXT_BYTES];
	struct nm_steer_news escaped = *news;
	uint32_t bit = 1U << news->trouble;

	if (*told & bit)
		return;
	*told |= bit;
	steer->counts.troubles++;
	(void)nm_escape(path, sizeof(path), news->directory, strlen(news->directory));
	escaped.directory = path;
	steer->ops.tell(steer->ops.context, &escaped);
}

static void tell_of(struct nm_steer *steer, struct directory *directory,
		    enum nm_steer_trouble trouble)
{
	const struct nm_steer_news news = {
		.trouble = trouble, .directory = directory->path, .said = directory->text};
	tell(steer, &directory->told, &news);
}

static void tell_unwatched(struct nm_steer *steer, const char *path, int error)
{
	const struct nm_steer_news news = {
		.trouble = NM_STEER_UNWATCHED, .directory = path, .said = "", .error = error};
	tell(steer, &steer->told, &news);
}

/* ---- reading ---- */

static bool is_roots(const struct nm_steer *steer, int fd)
{
	struct nm_owner owner;

	return steer->platform->ops->owner(steer->platform, fd, &owner) == 0 && owner.uid == 0 &&
	       !owner.others_write;
}

/* What of its word counts. */
static struct nm_steering judge(struct nm_steer *steer, struct directory *directory, int fd,
				const char *bytes, size_t length)
{
	static const struct nm_steering observe = {.word = NM_STEER_OBSERVE};
	struct nm_steering said;

	if (nm_steer_parse(bytes, length, &said) < 0) {
		tell_of(steer, directory, NM_STEER_UNKNOWN);
		return observe;
	}
	if (said.word == NM_STEER_OFF || said.word == NM_STEER_OBSERVE)
		return said;
	if (!is_roots(steer, fd)) {
		tell_of(steer, directory, NM_STEER_NOT_ROOTS);
		return (struct nm_steering){0};
	}
	if (said.word == NM_STEER_POLICY && !nm_steer_is_free(said.policy, steer->policy)) {
		tell_of(steer, directory, NM_STEER_NOT_FREE);
		return observe;
	}
	return said;
}

static void read_attribute(struct nm_steer *steer, struct directory *directory, int fd)
{
	struct nm_platform *platform = steer->platform;
	char bytes[ATTRIBUTE_BYTES], text[sizeof(directory->text)];
	ssize_t length = platform->ops->read_attribute(platform, fd, NM_STEER_ATTRIBUTE, bytes,
						       sizeof(bytes));

	/* Longer than any word: one that is not known. */
	if (length == -ERANGE)
		length = snprintf(bytes, sizeof(bytes), "(too long)");
	(void)nm_escape(text, sizeof(text), bytes, length > 0 ? (size_t)length : 0);
	if (strcmp(text, directory->text) != 0)
		directory->told = 0;
	memcpy(directory->text, text, sizeof(text));
	directory->said = length < 0 ? (struct nm_steering){0}
				     : judge(steer, directory, fd, bytes, (size_t)length);
}

static void put_under_watch(struct nm_steer *steer, struct directory *directory, int fd)
{
	struct nm_platform *platform = steer->platform;

	if (directory->descriptor >= 0 || steer->watch < 0)
		return;
	directory->descriptor = platform->ops->watch_add(platform, steer->watch, fd);
	if (directory->descriptor < 0)
		tell_unwatched(steer, directory->path, directory->descriptor);
}

/* A group that is gone, or closed to us, says nothing. */
static int read_directory(struct nm_steer *steer, struct directory *directory, bool watched)
{
	struct nm_platform *platform = steer->platform;
	nm_autofree char *path = NULL;

	if (asprintf(&path, "%s%s", steer->base, directory->path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	directory->known = true;
	int fd = platform->ops->open_directory(platform, NM_ROOT, path);
	if (fd < 0) {
		directory->said = (struct nm_steering){0};
		directory->text[0] = '\0';
		return 0;
	}
	if (watched)
		put_under_watch(steer, directory, fd);
	read_attribute(steer, directory, fd);
	platform->ops->close(platform, fd);
	return 0;
}

/* ---- the list ---- */

static void free_directory(struct nm_steer *steer, struct directory *directory)
{
	struct nm_platform *platform = steer->platform;

	if (directory->descriptor >= 0)
		platform->ops->watch_remove(platform, steer->watch, directory->descriptor);
	free(directory->path);
	free(directory);
}

/* Where it is, or belongs. */
static size_t place_of(const struct nm_steer *steer, const char *path)
{
	size_t low = 0, high = steer->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(steer->directories[middle]->path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct directory *find(const struct nm_steer *steer, const char *path)
{
	size_t place = place_of(steer, path);
	bool found = place < steer->count && strcmp(steer->directories[place]->path, path) == 0;

	return found ? steer->directories[place] : NULL;
}

static int add(struct nm_steer *steer, const char *path, struct directory **ret)
{
	int r = nm_reserve((void **)&steer->directories, &steer->capacity, steer->count,
			   sizeof(struct directory *));
	if (r < 0)
		return r;
	struct directory *directory = calloc(1, sizeof(*directory));
	if (directory)
		directory->path = strdup(path);
	if (!directory || !directory->path) {
		free(directory);
		return -ENOMEM;
	}
	directory->descriptor = -1;
	size_t place = place_of(steer, path);
	memmove(steer->directories + place + 1, steer->directories + place,
		(steer->count - place) * sizeof(struct directory *));
	steer->directories[place] = directory;
	steer->count++;
	*ret = directory;
	return 0;
}

static void drop(struct nm_steer *steer, struct directory *directory)
{
	size_t place = place_of(steer, directory->path);

	steer->count--;
	memmove(steer->directories + place, steer->directories + place + 1,
		(steer->count - place) * sizeof(struct directory *));
	free_directory(steer, directory);
}

static void drop_all(struct nm_steer *steer)
{
	for (size_t i = 0; i < steer->count; i++)
		free_directory(steer, steer->directories[i]);
	steer->count = 0;
}

/* ---- asking ---- */

static void add_word(struct nm_steer *steer, struct directory *directory,
		     struct nm_steering *result)
{
	enum nm_steer_word said = directory->said.word;

	if (result->word == NM_STEER_OFF && said != NM_STEER_NONE && said != NM_STEER_OFF)
		tell_of(steer, directory, NM_STEER_UNDER_OFF);
	*result = nm_steer_under(*result, directory->said);
}

/* One that there is no room to remember: nothing is told of it either. */
static int ask_in_passing(struct nm_steer *steer, char *path, struct nm_steering *result)
{
	struct directory directory = {.path = path, .descriptor = -1, .told = UINT32_MAX};
	int r = read_directory(steer, &directory, false);

	*result = nm_steer_under(*result, directory.said);
	return r;
}

static int ask(struct nm_steer *steer, char *path, uint64_t now_ns, struct nm_steering *result)
{
	struct directory *directory = find(steer, path);

	if (!directory && steer->count >= MOST_DIRECTORIES) {
		tell_unwatched(steer, path, -ENOSPC);
		return ask_in_passing(steer, path, result);
	}
	int r = directory ? 0 : add(steer, path, &directory);
	if (r == 0 && (!directory->known || directory->descriptor < 0))
		r = read_directory(steer, directory, true);
	if (r < 0)
		return r;
	directory->asked_ns = now_ns;
	add_word(steer, directory, result);
	return 0;
}

/* A process outside of our own cgroup namespace has a path that leads out of it. */
static bool is_visible(struct nm_steer *steer, const char *cgroup)
{
	if (!cgroup || cgroup[0] != '/')
		return false;
	if (!nm_steer_is_below(cgroup, "/.."))
		return true;
	const struct nm_steer_news news = {
		.trouble = NM_STEER_OUTSIDE, .directory = cgroup, .said = ""};
	tell(steer, &steer->told, &news);
	return false;
}

/* From "/" down, one name longer each time. */
static int ask_downwards(struct nm_steer *steer, char *path, uint64_t now_ns,
			 struct nm_steering *result)
{
	char root[] = "/";
	int r = ask(steer, root, now_ns, result);
	if (strcmp(path, root) == 0)
		return r;
	for (size_t end = 1; r == 0; end++) {
		char next = path[end];
		if (next != '/' && next != '\0')
			continue;
		path[end] = '\0';
		r = ask(steer, path, now_ns, result);
		path[end] = next;
		if (next == '\0')
			break;
	}
	return r;
}

int nm_steer_look(struct nm_steer *steer, const char *cgroup, uint64_t now_ns,
		  struct nm_steering *ret)
{
	struct nm_steering result = {0};
	nm_autofree char *path = NULL;
	int r = 0;

	if (steer->attribute != NM_ATTRIBUTE_IGNORE && is_visible(steer, cgroup)) {
		path = strdup(cgroup);
		r = path ? ask_downwards(steer, path, now_ns, &result) : -ENOMEM;
	}
	if (r == 0)
		*ret = result;
	return r;
}

static bool said_to_manage(const struct nm_steering *said)
{
	return said->word == NM_STEER_ON || said->word == NM_STEER_POLICY;
}

void nm_steer_note_excluded(struct nm_steer *steer, const char *cgroup)
{
	struct directory *nearest = NULL;

	/* Those above come before those below. */
	for (size_t i = 0; cgroup && i < steer->count; i++) {
		struct directory *directory = steer->directories[i];
		if (said_to_manage(&directory->said) && nm_steer_is_below(cgroup, directory->path))
			nearest = directory;
	}
	if (nearest)
		tell_of(steer, nearest, NM_STEER_EXCLUDED);
}

/* ---- changes ---- */

static struct directory *find_by_descriptor(const struct nm_steer *steer, int descriptor)
{
	for (size_t i = 0; i < steer->count; i++)
		if (steer->directories[i]->descriptor == descriptor)
			return steer->directories[i];
	return NULL;
}

/* One that was made anew under the name would be another. */
static void take_gone(struct nm_steer *steer, struct directory *directory)
{
	steer->counts.changes++;
	steer->ops.changed(steer->ops.context, directory->path, NULL);
	drop(steer, directory);
}

static void take_gone_child(struct nm_steer *steer, const struct directory *parent,
			    const char *name)
{
	nm_autofree char *path = NULL;

	if (asprintf(&path, "%s/%s", strcmp(parent->path, "/") == 0 ? "" : parent->path, name) <
	    0) {
		path = NULL;
		return;
	}
	struct directory *child = find(steer, path);
	if (child)
		take_gone(steer, child);
}

static void forget_all_said(struct nm_steer *steer)
{
	for (size_t i = 0; i < steer->count; i++)
		steer->directories[i]->known = false;
}

/* A child's attributes are told to its parent's watch too, by name; its own tells of them. */
static void take_event(struct nm_steer *steer, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW) {
		forget_all_said(steer);
		return;
	}
	struct directory *directory = find_by_descriptor(steer, event->wd);
	if (!directory)
		return;
	if (event->mask & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT)) {
		if (event->mask & IN_IGNORED)
			directory->descriptor = -1;
		take_gone(steer, directory);
	} else if (event->mask & IN_DELETE && event->mask & IN_ISDIR && event->len > 0) {
		take_gone_child(steer, directory, event->name);
	} else if (event->mask & IN_ATTRIB && event->len == 0) {
		directory->known = false;
	}
}

static void take_events(struct nm_steer *steer, const char *bytes, size_t length)
{
	struct inotify_event event;

	for (size_t at = 0; length - at >= sizeof(event); at += sizeof(event) + event.len) {
		memcpy(&event, bytes + at, sizeof(event));
		if (length - at - sizeof(event) < event.len)
			return;
		take_event(steer, (const struct inotify_event *)(const void *)(bytes + at));
	}
}

/* However often it changed: what it says now counts. */
static void read_changed(struct nm_steer *steer)
{
	for (size_t i = 0; i < steer->count; i++) {
		struct directory *directory = steer->directories[i];
		struct nm_steering before = directory->said;
		if (directory->known || read_directory(steer, directory, true) < 0)
			continue;
		if (before.word == directory->said.word && before.policy == directory->said.policy)
			continue;
		steer->counts.changes++;
		steer->ops.changed(steer->ops.context, directory->path, &directory->said);
	}
}

void nm_steer_drain(struct nm_steer *steer)
{
	struct nm_platform *platform = steer->platform;
	alignas(struct inotify_event) char bytes[EVENT_BYTES];

	for (unsigned i = 0; steer->watch >= 0 && i < READS_AT_ONCE; i++) {
		ssize_t length =
			platform->ops->read_some(platform, steer->watch, bytes, sizeof(bytes));
		if (length <= 0)
			break;
		take_events(steer, bytes, (size_t)length);
	}
	read_changed(steer);
}

/* ---- life ---- */

static const char *find_base(struct nm_platform *platform)
{
	int fd = platform->ops->open_directory(platform, NM_ROOT, HYBRID);
	char text[2];

	if (fd < 0)
		return UNIFIED;
	/* A group of that name in the unified layout is no layout. */
	ssize_t length = platform->ops->read_file(platform, NM_ROOT, UNIFIED "/cgroup.controllers",
						  text, sizeof(text));
	platform->ops->close(platform, fd);
	return length == -ENOENT ? HYBRID : UNIFIED;
}

int nm_steer_new(struct nm_platform *platform, const struct nm_config *config,
		 const struct nm_steer_ops *ops, struct nm_steer **ret)
{
	struct nm_steer *steer = calloc(1, sizeof(*steer));

	if (!steer)
		return -ENOMEM;
	steer->platform = platform;
	steer->ops = *ops;
	steer->base = find_base(platform);
	steer->watch = platform->ops->watch_open(platform);
	nm_steer_configure(steer, config);
	if (steer->watch < 0 && steer->attribute != NM_ATTRIBUTE_IGNORE)
		tell_unwatched(steer, "/", steer->watch);
	*ret = steer;
	return 0;
}

void nm_steer_free(struct nm_steer *steer)
{
	if (!steer)
		return;
	drop_all(steer);
	if (steer->watch >= 0)
		steer->platform->ops->close(steer->platform, steer->watch);
	free(steer->directories);
	free(steer);
}

void nm_steer_configure(struct nm_steer *steer, const struct nm_config *config)
{
	steer->attribute = config->targets.attribute;
	steer->policy = config->threads.policy;
	drop_all(steer);
}

void nm_steer_tend(struct nm_steer *steer, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < steer->count; i++) {
		struct directory *directory = steer->directories[i];
		if (now_ns > directory->asked_ns && now_ns - directory->asked_ns > FORGET_NS)
			free_directory(steer, directory);
		else
			steer->directories[kept++] = directory;
	}
	steer->count = kept;
}

struct nm_steer_counts nm_steer_counts(const struct nm_steer *steer)
{
	struct nm_steer_counts counts = steer->counts;

	counts.directories = (unsigned)steer->count;
	for (size_t i = 0; i < steer->count; i++)
		counts.watched += steer->directories[i]->descriptor >= 0;
	return counts;
}

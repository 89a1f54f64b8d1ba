/* SPDX-License-Identifier: MIT */
/* The directories above known processes, in order of their paths, and what they say together. */
#include <search.h>
#include <string.h>

#include "tree.h"

#define UNIFIED "sys/fs/cgroup"
#define HYBRID "sys/fs/cgroup/unified" /* beside version 1, systemd's "hybrid" layout */
/* Whoever may make groups could make any number of them: further ones are read each time. */
#define MOST_DIRECTORIES 4096U
/* Deeper than what slices, pods and their like make: who nests further could have us read for long.
 */
#define MOST_LEVELS 32U
#define FORGET_NS (120 * NM_NSEC_PER_SEC)
#define OTHERS_TOLD_NS (60 * NM_NSEC_PER_SEC)

/* ---- by the descriptor of the watch ---- */

static int compare_descriptors(const void *a, const void *b)
{
	const struct nm_steer_directory *left = a, *right = b;

	return (left->descriptor > right->descriptor) - (left->descriptor < right->descriptor);
}

struct nm_steer_directory *nm_steer_find_watched(const struct nm_steer *steer, int descriptor)
{
	const struct nm_steer_directory wanted = {.descriptor = descriptor};
	void *const *found = tfind(&wanted, &steer->by_descriptor, compare_descriptors);

	return found ? *found : NULL;
}

int nm_steer_watched(struct nm_steer *steer, struct nm_steer_directory *directory, int descriptor)
{
	if (directory->descriptor >= 0)
		(void)tdelete(directory, &steer->by_descriptor, compare_descriptors);
	directory->descriptor = descriptor;
	if (descriptor >= 0 && !tsearch(directory, &steer->by_descriptor, compare_descriptors))
		directory->descriptor = -ENOMEM;
	return directory->descriptor < 0 ? directory->descriptor : 0;
}

/* ---- the list ---- */

static void free_directory(struct nm_steer *steer, struct nm_steer_directory *directory)
{
	struct nm_platform *platform = steer->platform;
	int descriptor = directory->descriptor;

	(void)nm_steer_watched(steer, directory, -1);
	if (descriptor >= 0)
		platform->ops->watch_remove(platform, steer->watch, descriptor);
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

struct nm_steer_directory *nm_steer_find(const struct nm_steer *steer, const char *path)
{
	size_t place = place_of(steer, path);
	bool found = place < steer->count && strcmp(steer->directories[place]->path, path) == 0;

	return found ? steer->directories[place] : NULL;
}

static int add(struct nm_steer *steer, const char *path, struct nm_steer_directory **ret)
{
	int r = nm_reserve((void **)&steer->directories, &steer->capacity, steer->count,
			   sizeof(struct nm_steer_directory *));
	if (r < 0)
		return r;
	struct nm_steer_directory *directory = calloc(1, sizeof(*directory));
	if (directory)
		directory->path = strdup(path);
	if (!directory || !directory->path) {
		free(directory);
		return -ENOMEM;
	}
	directory->descriptor = -1;
	size_t place = place_of(steer, path);
	memmove(steer->directories + place + 1, steer->directories + place,
		(steer->count - place) * sizeof(struct nm_steer_directory *));
	steer->directories[place] = directory;
	steer->count++;
	*ret = directory;
	return 0;
}

void nm_steer_drop(struct nm_steer *steer, struct nm_steer_directory *directory)
{
	size_t place = place_of(steer, directory->path);

	steer->count--;
	memmove(steer->directories + place, steer->directories + place + 1,
		(steer->count - place) * sizeof(struct nm_steer_directory *));
	free_directory(steer, directory);
}

static void drop_all(struct nm_steer *steer)
{
	for (size_t i = 0; i < steer->count; i++)
		free_directory(steer, steer->directories[i]);
	steer->count = 0;
}

/* ---- asking ---- */

static void add_word(struct nm_steer *steer, struct nm_steer_directory *directory,
		     struct nm_steering *result)
{
	enum nm_steer_word said = directory->said.word;

	if (result->word == NM_STEER_OFF && said != NM_STEER_NONE && said != NM_STEER_OFF)
		nm_steer_tell_of(steer, directory, NM_STEER_UNDER_OFF);
	*result = nm_steer_under(*result, directory->said);
}

/* One that there is no room to remember: nothing is told of it either. */
static int ask_in_passing(struct nm_steer *steer, char *path, struct nm_steering *result)
{
	struct nm_steer_directory directory = {.path = path, .descriptor = -1, .told = UINT32_MAX};
	int r = nm_steer_read(steer, &directory, false);

	*result = nm_steer_under(*result, directory.said);
	return r;
}

static int ask(struct nm_steer *steer, char *path, uint64_t now_ns, struct nm_steering *result)
{
	struct nm_steer_directory *directory = nm_steer_find(steer, path);

	if (!directory && steer->count >= MOST_DIRECTORIES) {
		nm_steer_tell_unwatched(steer, path, -ENOSPC);
		return ask_in_passing(steer, path, result);
	}
	int r = directory ? 0 : add(steer, path, &directory);
	if (r == 0 && (!directory->known || directory->descriptor < 0))
		r = nm_steer_read(steer, directory, true);
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
	nm_steer_tell(steer, &news);
	return false;
}

/* What is down there is not read: it had better not be moved. */
static void stop_asking(struct nm_steer *steer, const char *path, struct nm_steering *result)
{
	static const struct nm_steering observe = {.word = NM_STEER_OBSERVE};
	const struct nm_steer_news news = {
		.trouble = NM_STEER_TOO_DEEP, .directory = path, .said = ""};

	nm_steer_tell(steer, &news);
	*result = nm_steer_under(*result, observe);
}

/* From "/" down, one name longer each time. */
static int ask_downwards(struct nm_steer *steer, char *path, uint64_t now_ns,
			 struct nm_steering *result)
{
	char root[] = "/";
	unsigned levels = 0;
	int r = ask(steer, root, now_ns, result);
	if (strcmp(path, root) == 0)
		return r;
	for (size_t end = 1; r == 0; end++) {
		char next = path[end];
		if (next != '/' && next != '\0')
			continue;
		path[end] = '\0';
		if (++levels > MOST_LEVELS) {
			stop_asking(steer, path, result);
			break;
		}
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
	struct nm_steer_directory *nearest = NULL;

	/* Those above come before those below. */
	for (size_t i = 0; cgroup && i < steer->count; i++) {
		struct nm_steer_directory *directory = steer->directories[i];
		if (said_to_manage(&directory->said) && nm_steer_is_below(cgroup, directory->path))
			nearest = directory;
	}
	if (nearest)
		nm_steer_tell_of(steer, nearest, NM_STEER_EXCLUDED);
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
		nm_steer_tell_unwatched(steer, "/", steer->watch);
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
		struct nm_steer_directory *directory = steer->directories[i];
		if (now_ns > directory->asked_ns && now_ns - directory->asked_ns > FORGET_NS)
			free_directory(steer, directory);
		else
			steer->directories[kept++] = directory;
	}
	steer->count = kept;
	if (now_ns - steer->others_since_ns > OTHERS_TOLD_NS) {
		steer->others_since_ns = now_ns;
		steer->others_told = 0;
	}
}

struct nm_steer_counts nm_steer_counts(const struct nm_steer *steer)
{
	struct nm_steer_counts counts = steer->counts;

	counts.directories = (unsigned)steer->count;
	for (size_t i = 0; i < steer->count; i++)
		counts.watched += steer->directories[i]->descriptor >= 0;
	return counts;
}

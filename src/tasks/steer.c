/* SPDX-License-Identifier: MIT */
/* Reads the attributes of a cgroup and its ancestors, and reports values that cannot be applied. */
#include "numa-migrd/tasks.h"

#include <search.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"

#define UNIFIED "sys/fs/cgroup"
#define HYBRID "sys/fs/cgroup/unified" /* systemd's "hybrid" layout with version 1 */
#define VALUE_BYTES 64
#define TEXT_BYTES 256
#define MAX_LEVELS 32U
#define MAX_OF_OTHERS 64U /* directories read per tick below the topmost one that other users can
			   * write to */
#define REPORTED 256U	  /* number of reports remembered */
#define OTHERS_REPORTED 16U
#define OTHERS_REPORTED_NS (60 * NM_NSEC_PER_SEC)

/* A directory that was read in this tick. */
struct directory {
	char *path; /* as in /proc/PID/cgroup */
	bool exists, roots;
	struct nm_steering said;
	char value[VALUE_BYTES];
	unsigned nr_below; /* directories read below it in this tick, if it is the topmost one that
			    * other users can write to */
};

struct nm_steer {
	struct nm_platform *platform;
	const char *base;
	enum nm_attribute attribute;
	uint64_t tick_ns;
	void *directories; /* tsearch(3), by path */
	nm_steer_report_fn report;
	void *context;
	uint64_t conflicts;
	uint64_t reported[REPORTED]; /* hashes; the oldest is replaced */
	uint64_t others_since_ns;
	unsigned others_reported; /* since then */
};

/* ---- reports ---- */

/* A collision suppresses a report. */
static uint64_t add_hash(uint64_t hash, const char *text)
{
	return nm_hash_add(hash, text, strlen(text));
}

static bool has_reported(const struct nm_steer *steer, uint64_t hash)
{
	for (unsigned i = 0; i < REPORTED; i++)
		if (steer->reported[i] == hash)
			return true;
	return false;
}

static bool may_report_others(struct nm_steer *steer)
{
	if (steer->tick_ns - steer->others_since_ns > OTHERS_REPORTED_NS) {
		steer->others_since_ns = steer->tick_ns;
		steer->others_reported = 0;
	}
	return steer->others_reported++ < OTHERS_REPORTED;
}

static void send_report(struct nm_steer *steer, enum nm_steer_conflict conflict, const char *path,
			const char *value, uint64_t hash)
{
	char cgroup[TEXT_BYTES], text[TEXT_BYTES];
	const struct nm_steer_report report = {
		.conflict = conflict, .cgroup = cgroup, .value = text};

	steer->reported[steer->conflicts++ % REPORTED] = hash;
	(void)nm_escape(cgroup, sizeof(cgroup), path, strlen(path));
	(void)nm_escape(text, sizeof(text), value, strlen(value));
	steer->report(steer->context, &report);
}

/* Other users could change the value all the time, so their values are not part of the hash. */
static void report_directory(struct nm_steer *steer, enum nm_steer_conflict conflict,
			     const struct directory *directory)
{
	uint64_t hash = add_hash((uint64_t)conflict + 1, directory->path);

	if (directory->roots)
		hash = add_hash(hash * 2, directory->value);
	if (!has_reported(steer, hash) && (directory->roots || may_report_others(steer)))
		send_report(steer, conflict, directory->path, directory->value, hash);
}

static void report_once(struct nm_steer *steer, enum nm_steer_conflict conflict, const char *path)
{
	uint64_t hash = (uint64_t)conflict + 1;

	if (!has_reported(steer, hash))
		send_report(steer, conflict, path, "", hash);
}

/* ---- one directory ---- */

static int compare_directories(const void *a, const void *b)
{
	return strcmp(((const struct directory *)a)->path, ((const struct directory *)b)->path);
}

static void free_directory(void *item)
{
	struct directory *directory = item;

	free(directory->path);
	free(directory);
}

static struct directory *find_directory(const struct nm_steer *steer, char *path)
{
	const struct directory wanted = {.path = path};
	void *const *found = tfind(&wanted, &steer->directories, compare_directories);

	return found ? *found : NULL;
}

static struct directory *add_directory(struct nm_steer *steer, const struct directory *known)
{
	struct directory *directory = malloc(sizeof(*directory));

	if (!directory)
		return NULL;
	*directory = *known;
	directory->path = strdup(known->path);
	if (!directory->path || !tsearch(directory, &steer->directories, compare_directories)) {
		free_directory(directory);
		return NULL;
	}
	return directory;
}

static bool is_roots(const struct nm_steer *steer, int fd)
{
	struct nm_owner owner;

	return steer->platform->ops->owner(steer->platform, fd, &owner) == 0 && owner.uid == 0 &&
	       !owner.others_write;
}

/* Evaluates an attribute. */
static struct nm_steering evaluate_attribute(struct nm_steer *steer,
					     const struct directory *directory, size_t length)
{
	struct nm_steering said = {.asked = directory->roots};

	if (nm_steer_parse(directory->value, length, &said.value) < 0) {
		report_directory(steer, NM_STEER_UNKNOWN, directory);
		said.value = NM_STEER_OBSERVE;
	}
	if (said.value == NM_STEER_ON && !directory->roots) {
		report_directory(steer, NM_STEER_NOT_ROOTS, directory);
		said.value = NM_STEER_NONE;
	}
	if (said.value == NM_STEER_OFF)
		said.asked = false;
	return said;
}

/* The attribute does not exist or cannot exist there; other errors may pass. */
static bool is_absent(ssize_t error)
{
	return error == -ENODATA || error == -EOPNOTSUPP || error == -ENOENT || error == -EACCES ||
	       error == -EPERM;
}

static int read_value(struct nm_steer *steer, int fd, struct directory *directory)
{
	struct nm_platform *platform = steer->platform;
	ssize_t length = platform->ops->read_attribute(
		platform, fd, NM_STEER_ATTRIBUTE, directory->value, sizeof(directory->value) - 1);

	/* Longer than any known value. */
	if (length == -ERANGE)
		length = snprintf(directory->value, sizeof(directory->value), "(too long)");
	if (length < 0)
		return is_absent(length) ? 0 : (int)length;
	directory->value[length] = '\0';
	directory->said = evaluate_attribute(steer, directory, (size_t)length);
	return 0;
}

static int open_directory(const struct nm_steer *steer, const char *cgroup)
{
	nm_autofree char *path = NULL;

	if (asprintf(&path, "%s%s", steer->base, cgroup) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return steer->platform->ops->open_directory(steer->platform, NM_ROOT, path);
}

static int read_directory(struct nm_steer *steer, char *path, struct directory **ret)
{
	struct directory directory = {.path = path};
	int fd = open_directory(steer, path);
	int r = 0;

	if (fd < 0 && !is_absent(fd))
		return fd;
	directory.exists = fd != -ENOENT;
	if (fd >= 0) {
		directory.roots = is_roots(steer, fd);
		r = read_value(steer, fd, &directory);
		steer->platform->ops->close(steer->platform, fd);
	}
	if (r < 0)
		return r;
	*ret = add_directory(steer, &directory);
	return *ret ? 0 : -ENOMEM;
}

/* ---- from the root down ---- */

struct walk {
	struct nm_steer *steer;
	struct directory *others; /* the topmost directory that other users can write to */
	struct nm_steering result;
};

static void add_value(struct walk *walk, const struct directory *directory)
{
	enum nm_steer_value value = directory->said.value;

	if (walk->result.value == NM_STEER_OFF && value != NM_STEER_NONE && value != NM_STEER_OFF)
		report_directory(walk->steer, NM_STEER_UNDER_OFF, directory);
	walk->result = nm_steer_under(walk->result, directory->said);
}

/* Returns 1 to continue below; 0 if nothing below can have an effect; or a negative errno. */
static int visit(struct walk *walk, char *path)
{
	struct directory *directory = find_directory(walk->steer, path);
	bool is_new = !directory;
	int r;

	if (is_new && walk->others && walk->others->nr_below >= MAX_OF_OTHERS)
		return nm_steer_holds(&walk->result) ? 0 : -EAGAIN;
	r = is_new ? read_directory(walk->steer, path, &directory) : 0;
	if (r < 0)
		return walk->result.value == NM_STEER_OFF ? 0 : r;
	if (!directory->roots && !walk->others)
		walk->others = directory;
	if (is_new && walk->others)
		walk->others->nr_below++;
	add_value(walk, directory);
	return directory->exists;
}

static int stop_at_depth(struct walk *walk, const char *path)
{
	static const struct nm_steering observe = {.value = NM_STEER_OBSERVE};

	report_once(walk->steer, NM_STEER_TOO_DEEP, path);
	walk->result = nm_steer_under(walk->result, observe);
	return 0;
}

static int walk_down(struct walk *walk, char *path)
{
	char root[] = "/";
	int r = visit(walk, root);
	unsigned levels = 0;

	for (char *end = path; r > 0 && end[0] && end[1];) {
		end += strcspn(end + 1, "/") + 1;
		char next = *end;
		*end = '\0';
		r = ++levels > MAX_LEVELS ? stop_at_depth(walk, path) : visit(walk, path);
		*end = next;
	}
	return r < 0 ? r : 0;
}

/* The path of a process outside the daemon's cgroup namespace leads out of it. */
static bool is_visible(struct nm_steer *steer, const char *cgroup)
{
	if (!cgroup || cgroup[0] != '/')
		return false;
	if (strncmp(cgroup, "/..", 3) != 0 || (cgroup[3] != '/' && cgroup[3] != '\0'))
		return true;
	report_once(steer, NM_STEER_OUTSIDE, cgroup);
	return false;
}

static void begin_tick(struct nm_steer *steer, uint64_t now_ns)
{
	if (steer->tick_ns == now_ns)
		return;
	tdestroy(steer->directories, free_directory);
	steer->directories = NULL;
	steer->tick_ns = now_ns;
}

int nm_steer_look(struct nm_steer *steer, const char *cgroup, uint64_t now_ns,
		  struct nm_steering *ret)
{
	struct walk walk = {.steer = steer};
	nm_autofree char *path = NULL;
	int r = 0;

	begin_tick(steer, now_ns);
	if (steer->attribute != NM_ATTRIBUTE_IGNORE && is_visible(steer, cgroup)) {
		path = strdup(cgroup);
		r = path ? walk_down(&walk, path) : -ENOMEM;
	}
	if (r == 0)
		*ret = walk.result;
	return r;
}

void nm_steer_note_excluded(struct nm_steer *steer, const char *cgroup)
{
	nm_autofree char *path = cgroup ? strdup(cgroup) : NULL;

	while (path && path[0]) {
		const struct directory *directory = find_directory(steer, path);
		char *slash = strrchr(path, '/');
		if (directory && directory->said.value == NM_STEER_ON) {
			report_directory(steer, NM_STEER_EXCLUDED, directory);
			return;
		}
		if (!slash || path[1] == '\0')
			return;
		slash[slash == path] = '\0';
	}
}

uint64_t nm_steer_conflicts(const struct nm_steer *steer)
{
	return steer->conflicts;
}

/* ---- creation and destruction ---- */

static const char *find_base(struct nm_platform *platform)
{
	int fd = platform->ops->open_directory(platform, NM_ROOT, HYBRID);
	char text[2];

	if (fd < 0)
		return UNIFIED;
	/* A cgroup of that name in the unified layout is no layout. */
	ssize_t length = platform->ops->read_file(platform, NM_ROOT, UNIFIED "/cgroup.controllers",
						  text, sizeof(text));
	platform->ops->close(platform, fd);
	return length == -ENOENT ? HYBRID : UNIFIED;
}

int nm_steer_new(struct nm_platform *platform, const struct nm_config *config,
		 nm_steer_report_fn report, void *context, struct nm_steer **ret)
{
	struct nm_steer *steer = calloc(1, sizeof(*steer));

	if (!steer)
		return -ENOMEM;
	steer->platform = platform;
	steer->report = report;
	steer->context = context;
	steer->base = find_base(platform);
	nm_steer_configure(steer, config);
	*ret = steer;
	return 0;
}

void nm_steer_free(struct nm_steer *steer)
{
	if (!steer)
		return;
	tdestroy(steer->directories, free_directory);
	free(steer);
}

void nm_steer_configure(struct nm_steer *steer, const struct nm_config *config)
{
	steer->attribute = config->targets.attribute;
}

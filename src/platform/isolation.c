/* SPDX-License-Identifier: MIT */
/* CPUs that are isolated from scheduling: by the kernel's lists, or by partitions of cgroups. */
#include "platform/isolation.h"

#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/topology.h"

#define CGROUPS "sys/fs/cgroup"
#define LIST_BYTES 16384 /* a list of every other one of 4,096 CPUs takes 10 KiB */
#define PATH_BYTES 1024
#define FILE_BYTES 32 /* of a name in such a directory */
#define WALK_NS (5 * NM_NSEC_PER_SEC)
#define NAMES_MOST 512U /* shared: turns; per call: files of cgroups, and their children */
#define LEVELS_MOST 8U

/* ---- reading ---- */

/* Adds the CPUs of a list. Returns whether the file exists. */
static bool add_list(struct nm_platform *platform, const char *path, hwloc_bitmap_t cpus)
{
	nm_autobitmap list = nm_must(hwloc_bitmap_alloc());
	char text[LIST_BYTES];
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) < 0)
		return false;
	if (nm_list_parse(text, list) == 0)
		(void)hwloc_bitmap_or(cpus, cpus, list);
	return true;
}

/* ---- partitions ---- */

struct walk {
	struct nm_platform *platform;
	hwloc_bitmap_t isolated;
	const char *path; /* of the directory that is listed */
	unsigned names, levels;
	unsigned skip, children; /* of the root cgroup: searched before, and listed now */
};

static int visit(void *context, const char *name);

/* A valid partition has a partition above it, up to the root, so nothing is searched elsewhere.
 * Linux 6.7 and later have others, too, and a list. */
static void walk_below(struct walk *walk, const char *path)
{
	const char *above = walk->path;
	if (walk->levels == LEVELS_MOST)
		return;
	walk->levels++;
	walk->path = path;
	(void)walk->platform->ops->list_directory(walk->platform, NM_ROOT, path, visit, walk);
	walk->path = above;
	walk->levels--;
}

static int visit(void *context, const char *name)
{
	struct walk *walk = context;
	struct nm_platform *platform = walk->platform;
	char path[PATH_BYTES], file[PATH_BYTES + FILE_BYTES], text[64];
	if (walk->levels == 1 && walk->children++ < walk->skip)
		return 0;
	if (walk->names == NAMES_MOST)
		return -ECANCELED;
	walk->names++;
	int length = snprintf(path, sizeof(path), "%s/%s", walk->path, name);
	if (length < 0 || (size_t)length >= sizeof(path))
		return 0;
	(void)snprintf(file, sizeof(file), "%s/cpuset.cpus.partition", path);
	if (platform->ops->read_file(platform, NM_ROOT, file, text, sizeof(text)) <= 0)
		return 0;
	text[strcspn(text, "\n")] = '\0'; /* "root invalid (reason)" is none */
	bool isolated = strcmp(text, "isolated") == 0;
	if (!isolated && strcmp(text, "root") != 0)
		return 0;
	(void)snprintf(file, sizeof(file), "%s/cpuset.cpus.effective", path);
	if (isolated)
		(void)add_list(platform, file, walk->isolated);
	walk_below(walk, path);
	return 0;
}

/* ---- changes ---- */

/* Returns whether the set differs from the one with this hash, which is replaced. */
static bool take(uint64_t *known, hwloc_const_bitmap_t cpus)
{
	uint64_t hash = NM_HASH_START;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
		hash = nm_hash_add(hash, &cpu, sizeof(cpu));
	bool changed = *known != hash;
	*known = hash;
	return changed;
}

/* Searches the cgroups, from the child of the root cgroup where the last call stopped. A child with
 * too many names of its own is searched in part. Returns whether the search is complete; `cpus` are
 * then those found. */
static bool search_partitions(struct nm_isolation *isolation, struct nm_platform *platform,
			      hwloc_bitmap_t cpus)
{
	unsigned skip = isolation->searched;
	struct walk walk = {.platform = platform, .isolated = cpus, .skip = skip};
	if (skip > 0)
		(void)nm_list_parse(isolation->partial, cpus);
	walk_below(&walk, CGROUPS);
	bool complete = walk.names < NAMES_MOST;
	if (!complete)
		(void)hwloc_bitmap_list_snprintf(isolation->partial, sizeof(isolation->partial),
						 cpus);
	unsigned stopped_at = walk.children - 1;
	isolation->searched = complete ? 0 : stopped_at > skip ? stopped_at : walk.children;
	return complete;
}

/* Searches the cgroups if that is due. Returns whether other CPUs were found than before. */
static bool follow_partitions(struct nm_isolation *isolation, struct nm_platform *platform,
			      bool search, hwloc_bitmap_t cpus, uint64_t now_ns)
{
	char found[sizeof(isolation->found)];
	hwloc_bitmap_zero(cpus);
	if (isolation->searched == 0)
		isolation->walked_ns = now_ns;
	if (search && !search_partitions(isolation, platform, cpus))
		return false;
	(void)hwloc_bitmap_list_snprintf(found, sizeof(found), cpus);
	bool changed = strcmp(found, isolation->found) != 0;
	memcpy(isolation->found, found, sizeof(found));
	return changed;
}

int nm_isolation_follow(struct nm_isolation *isolation, struct nm_platform *platform,
			uint64_t now_ns)
{
	nm_autobitmap listed = nm_must(hwloc_bitmap_alloc()), cpus = nm_must(hwloc_bitmap_alloc()),
		      left = nm_must(hwloc_bitmap_alloc());
	(void)add_list(platform, "sys/devices/system/cpu/isolated", listed);
	bool has_list = add_list(platform, CGROUPS "/cpuset.cpus.isolated", listed);
	bool changed = take(&isolation->listed, listed);
	/* The online CPUs that are in partitions are those which the root cgroup has given away. */
	if (add_list(platform, CGROUPS "/cpuset.cpus.effective", left) &&
	    !hwloc_bitmap_iszero(left) && add_list(platform, "sys/devices/system/cpu/online", cpus))
		(void)hwloc_bitmap_andnot(cpus, cpus, left);
	bool moved = take(&isolation->taken, cpus);
	bool search = !hwloc_bitmap_iszero(cpus) && !has_list;
	if (!search || moved) /* from the beginning */
		isolation->searched = 0;
	if (!search || moved || isolation->searched > 0 ||
	    now_ns - isolation->walked_ns >= WALK_NS)
		changed |= follow_partitions(isolation, platform, search, cpus, now_ns);
	if (!changed && !moved)
		return 0;
	if (nm_list_parse(isolation->found, cpus) == 0)
		(void)hwloc_bitmap_or(listed, listed, cpus);
	(void)hwloc_bitmap_list_snprintf(isolation->isolated, sizeof(isolation->isolated), listed);
	return 1;
}

/* SPDX-License-Identifier: MIT */
#include "numa-migrd/proc.h"

#include <inttypes.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/topology.h"

#define BASE "sys/fs/cgroup"
#define MOST_VALUES 1024U /* shared: newest; limit on the values kept at once */
#define LIST_BYTES 16384  /* a list of every other one of 4,096 CPUs takes 10 KiB */

enum file { CPUS, CPU_LIMIT, CPU_WEIGHT };

static const char *const names[] = {
	[CPUS] = "cpuset.cpus.effective",
	[CPU_LIMIT] = "cpu.max",
	[CPU_WEIGHT] = "cpu.weight",
};

/* The limit in one file, combined with those of the cgroups above. */
struct value {
	char *path; /* of the cgroup; "": the root */
	enum file file;
	bool exists;	     /* if not, no file of this name exists below it */
	bool is_root;	     /* `cpus` are those of the root */
	hwloc_bitmap_t cpus; /* NULL: unknown */
	double limit;
	bool yields;
};

struct nm_cgroups {
	struct nm_platform *platform;
	uint64_t tick_ns;
	uint64_t calls;
	void *values; /* a tree of tsearch(3) */
	size_t nr_values;
};

/* ---- values ---- */

static int compare_values(const void *a, const void *b)
{
	const struct value *left = a, *right = b;
	return NM_COMPARE(left->file, right->file) ?: strcmp(left->path, right->path);
}

static void free_value(void *item)
{
	struct value *value = item;

	hwloc_bitmap_free(value->cpus);
	free(value->path);
	free(value);
}

static void take_cpus(struct value *value, const char *text)
{
	nm_autobitmap cpus = nm_must(hwloc_bitmap_alloc());

	if (nm_list_parse(text, cpus) < 0)
		return;
	hwloc_bitmap_free(value->cpus);
	value->cpus = NM_TAKE(cpus);
	value->is_root = !value->path[0];
}

/* "max 100000" or "150000 100000", in microseconds. */
static void take_limit(struct value *value, const char *text)
{
	uint64_t quota, period;

	if (sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 && period > 0)
		value->limit = fmin(value->limit, (double)quota / (double)period);
}

/* From 1 to 10000; 0 with cpu.idle. */
static void take_weight(struct value *value, const char *text)
{
	uint64_t weight;

	if (sscanf(text, "%" SCNu64, &weight) == 1 && weight <= 1)
		value->yields = true;
}

/* ---- reading ---- */

static bool is_passing(ssize_t error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO;
}

static int read_value(struct nm_cgroups *cgroups, struct value *value)
{
	nm_autofree char *path = NULL;
	char text[LIST_BYTES];

	nm_must_do(asprintf(&path, BASE "%s/%s", value->path, names[value->file]));
	cgroups->calls++;
	ssize_t length = cgroups->platform->ops->read_file(cgroups->platform, NM_ROOT, path, text,
							   sizeof(text));
	if (is_passing(length))
		return (int)length;
	value->exists = length >= 0;
	if (value->exists && value->file == CPUS)
		take_cpus(value, text);
	else if (value->exists && value->file == CPU_LIMIT)
		take_limit(value, text);
	else if (value->exists)
		take_weight(value, text);
	return 0;
}

static int find_or_read(struct nm_cgroups *cgroups, enum file file, char *path,
			const struct value *above, const struct value **ret)
{
	const struct value wanted = {.path = path, .file = file};
	void *const *found = tfind(&wanted, &cgroups->values, compare_values);

	if (found) {
		*ret = *found;
		return 0;
	}
	struct value *value = nm_must(calloc(1, sizeof(*value)));
	/* what applies if the file does not exist: */
	*value = (struct value){
		.path = nm_must(strdup(path)),
		.file = file,
		.is_root = above && above->is_root,
		.cpus = above && above->cpus ? nm_must(hwloc_bitmap_dup(above->cpus)) : NULL,
		.limit = above ? above->limit : (double)INFINITY,
		.yields = above && above->yields,
	};
	int r = read_value(cgroups, value);
	if (r < 0) {
		free_value(value);
		return r;
	}
	(void)nm_must(tsearch(value, &cgroups->values, compare_values));
	cgroups->nr_values++;
	*ret = value;
	return 0;
}

/* Returns whether this is a path like "/a/b", within our namespace and not too deep. */
static bool is_readable(const char *cgroup)
{
	unsigned levels = 0;

	if (cgroup[0] && (cgroup[0] != '/' || strncmp(cgroup, "/..", 3) == 0))
		return false;
	for (const char *at = cgroup; *at; at++)
		levels += at[0] == '/' && at[1] != '\0';
	return levels <= NM_CGROUPS_LEVELS;
}

/* A controller that a cgroup lacks is not available below it. The exceptions are files that the
 * root never has. */
static bool may_go_on_below(const struct value *value)
{
	return value->exists || (value->file != CPUS && !value->path[0]);
}

static int look_up(struct nm_cgroups *cgroups, enum file file, const char *cgroup,
		   const struct value **ret)
{
	char root[] = "";
	const struct value *value = NULL;

	if (!is_readable(cgroup))
		return -ENODATA;
	nm_autofree char *path = nm_must(strdup(cgroup));
	if (cgroups->nr_values > MOST_VALUES)
		nm_cgroups_forget(cgroups);
	int r = find_or_read(cgroups, file, root, NULL, &value);
	for (char *end = path; r >= 0 && may_go_on_below(value) && end[0] && end[1];) {
		end += strcspn(end + 1, "/") + 1;
		char next = *end;
		*end = '\0';
		r = find_or_read(cgroups, file, path, value, &value);
		*end = next;
	}
	if (r >= 0)
		*ret = value;
	return r;
}

static int give_cpus(const struct value *value, hwloc_bitmap_t ret, bool *ret_root)
{
	if (!value->cpus)
		return -ENODATA;
	nm_must_do(hwloc_bitmap_copy(ret, value->cpus));
	if (ret_root)
		*ret_root = value->is_root;
	return 0;
}

int nm_cgroups_cpus(struct nm_cgroups *cgroups, const char *cgroup, hwloc_bitmap_t ret,
		    bool *ret_root)
{
	const struct value *value;
	int r = look_up(cgroups, CPUS, cgroup, &value);

	return r < 0 ? r : give_cpus(value, ret, ret_root);
}

int nm_cgroups_cpu_limit(struct nm_cgroups *cgroups, const char *cgroup, double *ret_cpus)
{
	const struct value *value;
	int r = look_up(cgroups, CPU_LIMIT, cgroup, &value);

	if (r == 0)
		*ret_cpus = value->limit;
	return r;
}

int nm_cgroups_yields(struct nm_cgroups *cgroups, const char *cgroup, bool *ret)
{
	const struct value *value;
	int r = look_up(cgroups, CPU_WEIGHT, cgroup, &value);

	if (r == 0)
		*ret = value->yields;
	return r;
}

/* ---- of a thread ---- */

/* Returns 1 if the kernel names the cgroup whose cpuset applies, and it can be read; 0 if not;
 * -ENODATA if it is too deep; or another negative errno. */
static int read_named(struct nm_cgroups *cgroups, int directory, const struct value **ret)
{
	const struct value *above;
	char root[] = "";
	char text[8192];
	char *path = text;

	cgroups->calls++;
	ssize_t length = cgroups->platform->ops->read_file(cgroups->platform, directory, "cpuset",
							   text, sizeof(text));
	if (length < 0)
		return length == -ESRCH || is_passing(length) ? (int)length : 0;
	text[strcspn(text, "\n")] = '\0';
	if (strcmp(text, "/") == 0)
		path++;
	else if (!is_readable(text))
		return -ENODATA;
	int r = find_or_read(cgroups, CPUS, root, NULL, &above);
	if (r >= 0)
		r = find_or_read(cgroups, CPUS, path, above, ret);
	return r < 0 ? r : (*ret)->exists && (*ret)->cpus;
}

int nm_cgroups_cpuset_of(struct nm_cgroups *cgroups, int directory, hwloc_bitmap_t ret,
			 bool *ret_root, uint64_t *ret_id)
{
	nm_autofree char *cgroup = NULL;
	const struct value *value;

	if (cgroups->nr_values > MOST_VALUES)
		nm_cgroups_forget(cgroups);
	int r = read_named(cgroups, directory, &value);
	if (r < 0)
		return r;
	if (r == 0) {
		cgroups->calls++;
		r = nm_proc_read_cgroup(cgroups->platform, directory, &cgroup);
		if (r < 0) /* a path that is too long counts as unknown */
			return r == -ESRCH || is_passing(r) ? r : -ENODATA;
		r = look_up(cgroups, CPUS, cgroup, &value);
		if (r < 0)
			return r;
	}
	r = give_cpus(value, ret, ret_root);
	if (r < 0 || !ret_id)
		return r;
	uint64_t hash =
		nm_hash_add(NM_HASH_START, value->path, strlen(value->path) + value->exists);
	for (int cpu = hwloc_bitmap_first(value->cpus); cpu >= 0;
	     cpu = hwloc_bitmap_next(value->cpus, cpu))
		hash = nm_hash_add(hash, &cpu, sizeof(cpu));
	*ret_id = hash;
	return 0;
}

/* ---- construction ---- */

struct nm_cgroups *nm_cgroups_new(struct nm_platform *platform)
{
	struct nm_cgroups *cgroups = nm_must(calloc(1, sizeof(*cgroups)));

	cgroups->platform = platform;
	return cgroups;
}

void nm_cgroups_free(struct nm_cgroups *cgroups)
{
	if (cgroups)
		nm_cgroups_forget(cgroups);
	free(cgroups);
}

void nm_cgroups_forget(struct nm_cgroups *cgroups)
{
	tdestroy(cgroups->values, free_value);
	cgroups->values = NULL;
	cgroups->nr_values = 0;
}

void nm_cgroups_begin(struct nm_cgroups *cgroups, uint64_t now_ns)
{
	if (cgroups->tick_ns != now_ns)
		nm_cgroups_forget(cgroups);
	cgroups->tick_ns = now_ns;
}

uint64_t nm_cgroups_calls(const struct nm_cgroups *cgroups)
{
	return cgroups->calls;
}

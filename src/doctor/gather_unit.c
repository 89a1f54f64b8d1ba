/* SPDX-License-Identifier: MIT */
/* The unit and its drop-ins, in systemd's order (systemd.unit(5), "Unit File Load Path"). */
#include <stdio.h>
#include <string.h>

#include "gather.h"

#define UNIT_BYTES 65536
#define DROP_INS_MOST 32U

/* The first that has something wins. */
static const char *const directories[] = {
	"etc/systemd/system",	  "run/systemd/system", "usr/local/lib/systemd/system",
	"usr/lib/systemd/system", "lib/systemd/system",
};

struct drop_in {
	char name[128];
	const char *directory;
};

struct drop_ins {
	struct drop_in items[DROP_INS_MOST];
	size_t count;
	const char *directory; /* that is listed now */
};

/* Where there are more drop-ins than fit, the rest is not looked at. */
static int note_drop_in(void *context, const char *name)
{
	struct drop_ins *all = context;
	const char *ending = strrchr(name, '.');

	if (!ending || strcmp(ending, ".conf") != 0 || strlen(name) >= sizeof(all->items[0].name) ||
	    all->count == DROP_INS_MOST)
		return 0;
	for (size_t i = 0; i < all->count; i++)
		if (strcmp(all->items[i].name, name) == 0)
			return 0;
	struct drop_in *item = &all->items[all->count++];
	(void)snprintf(item->name, sizeof(item->name), "%s", name);
	item->directory = all->directory;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct drop_in *)a)->name, ((const struct drop_in *)b)->name);
}

static void find_drop_ins(struct nm_platform *platform, struct drop_ins *ret)
{
	char path[128];

	for (size_t i = 0; i < NM_ARRAY_SIZE(directories); i++) {
		ret->directory = directories[i];
		(void)snprintf(path, sizeof(path), "%s/" NM_FACTS_UNIT ".d", directories[i]);
		(void)platform->ops->list_directory(platform, NM_ROOT, path, note_drop_in, ret);
	}
	qsort(ret->items, ret->count, sizeof(ret->items[0]), by_name);
}

/* Returns 0 where it was read, -ENOENT where not, -ENOMEM. */
static int read_one(struct nm_platform *platform, const char *path, struct nm_facts *facts)
{
	nm_autofree char *text = malloc(UNIT_BYTES);

	if (!text)
		return -ENOMEM;
	if (platform->ops->read_file(platform, NM_ROOT, path, text, UNIT_BYTES) < 0)
		return -ENOENT;
	return nm_unit_read(&facts->unit, text);
}

static int read_fragment(struct nm_platform *platform, struct nm_facts *facts)
{
	char path[128];
	int r = -ENOENT;

	for (size_t i = 0; i < NM_ARRAY_SIZE(directories) && r == -ENOENT; i++) {
		(void)snprintf(path, sizeof(path), "%s/" NM_FACTS_UNIT, directories[i]);
		r = read_one(platform, path, facts);
	}
	return r;
}

static int read_drop_in(struct nm_platform *platform, const struct drop_in *drop_in,
			struct nm_facts *facts)
{
	char path[320];
	size_t used = strlen(facts->drop_ins);

	(void)snprintf(facts->drop_ins + used, sizeof(facts->drop_ins) - used, "%s%s",
		       used ? ", " : "", drop_in->name);
	(void)snprintf(path, sizeof(path), "%s/" NM_FACTS_UNIT ".d/%s", drop_in->directory,
		       drop_in->name);
	int r = read_one(platform, path, facts);
	return r == -ENOMEM ? r : 0;
}

int nm_gather_unit(struct nm_platform *platform, struct nm_facts *facts)
{
	struct drop_ins all = {0};
	int r = read_fragment(platform, facts);

	facts->has_unit = r == 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	find_drop_ins(platform, &all);
	for (size_t i = 0; i < all.count && r == 0; i++)
		r = read_drop_in(platform, &all.items[i], facts);
	return r;
}

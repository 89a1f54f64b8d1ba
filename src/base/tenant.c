/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"

#include <string.h>


/* ---- domains ---- */

static bool ends_with(const char *name, size_t length, const char *end)
{
	size_t size = strlen(end);

	return length > size && memcmp(name + length - size, end, size) == 0;
}

static bool is(const char *name, size_t length, const char *wanted)
{
	return length == strlen(wanted) && memcmp(name, wanted, length) == 0;
}

/* A directory of root with one cgroup per container, which belongs to no unit of systemd. */
static bool is_parent_of_containers(const char *name, size_t length)
{
	static const char *const names[] = {"docker", "lxc",	    "kubepods",
					    "burstable", "besteffort"};

	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++)
		if (is(name, length, names[i]))
			return true;
	return false;
}

static bool is_slice_of_one_user(const char *name, size_t length)
{
	return length > strlen("user-") && memcmp(name, "user-", strlen("user-")) == 0 &&
	       ends_with(name, length, ".slice");
}

static bool ends_domain(const char *name, size_t length)
{
	if (is_slice_of_one_user(name, length))
		return true;
	return !ends_with(name, length, ".slice") && !is_parent_of_containers(name, length);
}

/* Returns the length of the path of the top-level cgroup; 0: none. */
static size_t domain_length(const char *cgroup)
{
	const char *place = cgroup;

	while (*place == '/') {
		const char *name = place + 1;
		size_t length = strcspn(name, "/");
		if (length == 0)
			break;
		place = name + length;
		if (ends_domain(name, length))
			break;
	}
	return (size_t)(place - cgroup);
}

struct nm_tenant nm_tenant_of(uint32_t uid, const char *cgroup)
{
	size_t length = cgroup ? domain_length(cgroup) : 0;

	return (struct nm_tenant){.domain = length ? nm_hash_add(NM_HASH_START, cgroup, length)
						   : nm_hash_add(NM_HASH_START, &uid, sizeof(uid)),
				  .uid = uid};
}

bool nm_tenant_same(const struct nm_tenant *a, const struct nm_tenant *b)
{
	return a->domain == b->domain && a->uid == b->uid;
}

/* ---- shares ---- */

struct row {
	uint64_t most;
	uint64_t of_user; /* 0: by the general rule */
};

static const struct row rows[NM_SHARES] = {
	[NM_SHARE_STUCK_WORKERS] = {NM_STUCK_WORKERS_MOST, 1},
	[NM_SHARE_QUERIES] = {NM_QUERIES_MOST, 0},
	[NM_SHARE_RUNTIME_QUERIES] = {NM_RUNTIME_QUERIES_MOST, 0},
	[NM_SHARE_BATCHES] = {NM_BATCHES_MOST, 0},
	[NM_SHARE_RELEASED] = {NM_RELEASED_MOST, 0},
	[NM_SHARE_ORIGINS] = {NM_ORIGINS_MOST, 0},
	[NM_SHARE_EXAMINATIONS] = {NM_EXAMINATIONS_MOST, 0},
	[NM_SHARE_REQUESTS] = {NM_REQUESTS_MOST, 8},
};

void nm_usage_add(struct nm_usage *usage, const struct nm_tenant *tenant,
		  const struct nm_tenant *holder, uint64_t amount)
{
	usage->all += amount;
	if (holder->domain != tenant->domain)
		return;
	usage->domain += amount;
	if (holder->uid == tenant->uid)
		usage->user += amount;
}

bool nm_share_has_room(enum nm_shared share, const struct nm_usage *usage)
{
	const struct row *row = &rows[share];
	uint64_t free = row->most > usage->all ? row->most - usage->all : 0;

	if (usage->domain >= free)
		return false;
	return row->of_user ? usage->user < row->of_user : 2 * usage->user < free;
}

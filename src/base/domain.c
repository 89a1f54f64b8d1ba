/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"

#include <string.h>

static bool ends_with(const char *name, size_t length, const char *end)
{
	size_t size = strlen(end);

	return length > size && memcmp(name + length - size, end, size) == 0;
}

static bool begins_with(const char *name, size_t length, const char *start)
{
	size_t size = strlen(start);

	return length > size && memcmp(name, start, size) == 0;
}

/* A directory of root with one cgroup per container, which belongs to no unit of systemd, or the
 * unit of Slurm, with one per job: those of common programs, where the machine does not show what
 * it is. */
static bool is_named_parent(const char *name, size_t length)
{
	static const char *const names[] = {
		"docker",     "lxc",	 "kubepods", "burstable", "besteffort",
		"kubelet",    "k8s.io",	 "moby",     "default",	  "libpod_parent",
		"podruntime", "machine", "ecs",	     "garden",	  "slurmstepd.scope",
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++)
		if (length == strlen(names[i]) && memcmp(name, names[i], length) == 0)
			return true;
	return false;
}

/* A container that runs an init of its own also has no processes but those of its children. */
static bool is_container(const char *name, size_t length)
{
	return ends_with(name, length, ".scope") || begins_with(name, length, "lxc.payload");
}

/* Returns whether the unit of a container runtime has this child, a container. */
static bool is_container_of_unit(const char *child)
{
	return strncmp(child, "/kubepods", strlen("/kubepods")) == 0;
}

/* Returns whether the cgroup that ends at `end` is the common parent of the cgroups of tenants. */
static bool is_parent(const char *cgroup, const char *end, nm_domain_fn contains_only,
		      void *context)
{
	nm_autofree char *path = nm_must(strndup(cgroup, (size_t)(end - cgroup)));

	return is_container_of_unit(end) || (contains_only && contains_only(context, path));
}

/* Returns the length of the path of the top-level cgroup; 0: none. The parent that the machine
 * shows is the only one: below it, and below one that is known by its name, each cgroup is a
 * tenant, who may have any cgroups within. */
static size_t domain_length(const char *cgroup, nm_domain_fn contains_only, void *context)
{
	const char *place = cgroup;
	bool found = false;

	while (*place == '/') {
		const char *name = place + 1;
		size_t length = strcspn(name, "/");
		if (length == 0)
			break;
		place = name + length;
		if (ends_with(name, length, ".slice")) {
			if (begins_with(name, length, "user-"))
				break;
			continue;
		}
		if (is_named_parent(name, length)) {
			found = true;
			continue;
		}
		bool has_child = place[0] == '/' && place[1] && place[1] != '/';
		if (found || !has_child || is_container(name, length) ||
		    !is_parent(cgroup, place, contains_only, context))
			break;
		found = true;
	}
	return (size_t)(place - cgroup);
}

uint64_t nm_domain_in(uint32_t uid, const char *cgroup, nm_domain_fn contains_only, void *context)
{
	size_t length = cgroup ? domain_length(cgroup, contains_only, context) : 0;

	return length ? nm_hash_add(NM_HASH_START, cgroup, length)
		      : nm_hash_add(NM_HASH_START, &uid, sizeof(uid));
}

uint64_t nm_domain_of(uint32_t uid, const char *cgroup)
{
	return nm_domain_in(uid, cgroup, NULL, NULL);
}

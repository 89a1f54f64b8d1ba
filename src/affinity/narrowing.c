/* SPDX-License-Identifier: MIT */
#include "narrowing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/topology.h"

#define MASK_BYTES 160 /* of each affinity: a list, or hex if that is too long */

void nm_narrowing_clear(struct nm_narrowing *narrowing)
{
	hwloc_bitmap_free(narrowing->original);
	hwloc_bitmap_free(narrowing->target);
	*narrowing = (struct nm_narrowing){0};
}

/* A hash collision between cgroups of one user is no weaker proof than a common session. */
uint64_t nm_narrowing_cgroup(const char *path)
{
	if (!path || !path[0] || strcmp(path, "/") == 0)
		return 0;
	uint64_t hash = nm_hash_add(NM_HASH_START, path, strlen(path));
	return hash ? hash : 1;
}

static int format_mask(hwloc_const_bitmap_t mask, char *text)
{
	if (hwloc_bitmap_weight(mask) <= 0)
		return -EINVAL;
	if (hwloc_bitmap_list_snprintf(text, MASK_BYTES + 1, mask) <= MASK_BYTES)
		return 0;
	return hwloc_bitmap_taskset_snprintf(text, MASK_BYTES + 1, mask) <= MASK_BYTES ? 0 : -E2BIG;
}

int nm_narrowing_format(const struct nm_narrowing *narrowing, char line[NM_NARROWING_BYTES + 1])
{
	char original[MASK_BYTES + 1];
	char target[MASK_BYTES + 1];
	int r = format_mask(narrowing->original, original);
	if (r == 0)
		r = format_mask(narrowing->target, target);
	if (r < 0)
		return r;
	int length = snprintf(
		line, NM_NARROWING_BYTES + 1,
		"give %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32
		" %" PRIu32 " %" PRIu64 " %" PRIx64 " %" PRIx64 " %d %s %s .",
		narrowing->tid, narrowing->pid, narrowing->start_ticks, narrowing->given_ticks,
		narrowing->decision, narrowing->session, narrowing->uid, narrowing->ran_ticks,
		narrowing->cgroup, narrowing->domain, narrowing->unrestricted, original, target);
	return length < NM_NARROWING_BYTES ? 0 : -E2BIG;
}

static hwloc_bitmap_t parse_mask(const char *text)
{
	hwloc_bitmap_t mask = nm_must(hwloc_bitmap_alloc());
	int r = strncmp(text, "0x", 2) == 0 ? hwloc_bitmap_taskset_sscanf(mask, text)
					    : nm_list_parse(text, mask);
	if (r == 0 && hwloc_bitmap_weight(mask) > 0)
		return mask;
	hwloc_bitmap_free(mask);
	return NULL;
}

int nm_narrowing_parse(const char *line, struct nm_narrowing *ret)
{
	struct nm_narrowing found = {0};
	int unrestricted = 0;
	char original[MASK_BYTES + 1];
	char target[MASK_BYTES + 1];
	char end;

	_Static_assert(MASK_BYTES == 160, "the widths below");
	int parsed =
		sscanf(line,
		       "give %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32
		       " %" SCNu32 " %" SCNu64 " %" SCNx64 " %" SCNx64 " %d %160s %160s %c",
		       &found.tid, &found.pid, &found.start_ticks, &found.given_ticks,
		       &found.decision, &found.session, &found.uid, &found.ran_ticks, &found.cgroup,
		       &found.domain, &unrestricted, original, target, &end);
	if (parsed != 14 || end != '.' || !found.tid || !found.pid)
		return -EINVAL;
	found.unrestricted = unrestricted;
	found.original = parse_mask(original);
	found.target = parse_mask(target);
	if (!found.original || !found.target) {
		nm_narrowing_clear(&found);
		return -EINVAL;
	}
	*ret = found;
	return 0;
}

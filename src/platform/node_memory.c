/* SPDX-License-Identifier: MIT */
#include "numa-migrd/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024U
#define MEMINFO_BYTES 4096U
#define LEAST_RECLAIMED 0.4 /* of the pages that direct reclaim scans */
#define SCALE_UNIT 10000.0  /* unit of watermark_scale_factor */

/* "Node 3 MemFree:   123 kB" in the file of a node, "MemFree:   123 kB" in that of the machine */
static bool meminfo_value(const char *text, bool of_node, const char *name, uint64_t *ret)
{
	for (const char *line = text; line && *line;) {
		char field[64];
		uint64_t kib;
		int at = 0;
		if (of_node)
			(void)sscanf(line, "Node %*u %n", &at);
		if ((at > 0) == of_node &&
		    sscanf(line + at, "%63[^:\n]: %" SCNu64, field, &kib) == 2 &&
		    strcmp(field, name) == 0) {
			*ret = kib * KIB;
			return true;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

int nm_node_memory_parse(const char *text, struct nm_node_memory *ret)
{
	struct nm_node_memory memory = {0};
	uint64_t inactive = 0, dirty = 0, writeback = 0;

	if (!meminfo_value(text, true, "MemTotal", &memory.total_bytes) ||
	    !meminfo_value(text, true, "MemFree", &memory.free_bytes))
		return -EINVAL;
	(void)meminfo_value(text, true, "Inactive(file)", &inactive);
	(void)meminfo_value(text, true, "Dirty", &dirty);
	(void)meminfo_value(text, true, "Writeback", &writeback);
	if (inactive > dirty + writeback)
		memory.clean_bytes = inactive - dirty - writeback;
	*ret = memory;
	return 0;
}

int nm_node_memory_read(struct nm_platform *platform, unsigned os_id, struct nm_node_memory *ret)
{
	char path[64], text[MEMINFO_BYTES];

	snprintf(path, sizeof(path), "sys/devices/system/node/node%u/meminfo", os_id);
	int r = (int)platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text));
	return r <= 0 ? (r < 0 ? r : -EINVAL) : nm_node_memory_parse(text, ret);
}

uint64_t nm_hugetlb_read(struct nm_platform *platform)
{
	char text[MEMINFO_BYTES];
	uint64_t bytes = 0;

	if (platform->ops->read_file(platform, NM_ROOT, "proc/meminfo", text, sizeof(text)) > 0)
		(void)meminfo_value(text, false, "Hugetlb", &bytes);
	return bytes;
}

static uint64_t read_number(struct nm_platform *platform, const char *path)
{
	char text[32];

	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) <= 0)
		return 0;
	return strtoull(text, NULL, 10);
}

struct nm_watermarks nm_watermarks_read(struct nm_platform *platform)
{
	return (struct nm_watermarks){
		.min_free_bytes = read_number(platform, "proc/sys/vm/min_free_kbytes") * KIB,
		.scale = (double)read_number(platform, "proc/sys/vm/watermark_scale_factor") /
			 SCALE_UNIT,
	};
}

/* The high watermark is two such steps above the lowest one. */
static double high_watermark(const struct nm_node_memory *memory,
			     const struct nm_watermarks *watermarks)
{
	return (double)watermarks->min_free_bytes +
	       2 * watermarks->scale * (double)memory->total_bytes;
}

uint64_t nm_node_memory_available(const struct nm_node_memory *memory,
				  const struct nm_watermarks *watermarks, double keep_free)
{
	double kept = high_watermark(memory, watermarks) + keep_free * (double)memory->total_bytes;
	double there = (double)memory->free_bytes + (double)memory->clean_bytes;

	return there > kept ? (uint64_t)(there - kept) : 0;
}

int nm_node_available_read(struct nm_platform *platform, unsigned os_id,
			   const struct nm_watermarks *watermarks, double keep_free,
			   uint64_t *ret_bytes)
{
	struct nm_node_memory memory;
	int r = nm_node_memory_read(platform, os_id, &memory);

	if (r < 0)
		return r;
	*ret_bytes = nm_node_memory_available(&memory, watermarks, keep_free);
	return 0;
}

/* ---- reclaim ---- */

bool nm_vmstat_value(const char *text, const char *name, uint64_t *ret)
{
	size_t length = strlen(name);

	for (const char *at = text; (at = strstr(at, name)); at += length)
		if (at > text && at[-1] == '\n' && at[length] == ' ')
			return sscanf(at + length, "%" SCNu64, ret) == 1;
	return false;
}

void nm_vmstat_read(struct nm_platform *platform, char text[NM_VMSTAT_BYTES])
{
	if (platform->ops->read_file(platform, NM_ROOT, "proc/vmstat", text, NM_VMSTAT_BYTES) < 0)
		text[0] = '\0';
}

struct nm_reclaim nm_reclaim_parse(const char *vmstat)
{
	struct nm_reclaim reclaim = {0};

	(void)nm_vmstat_value(vmstat, "pgscan_direct", &reclaim.direct_scanned);
	(void)nm_vmstat_value(vmstat, "pgsteal_direct", &reclaim.direct_reclaimed);
	(void)nm_vmstat_value(vmstat, "pgscan_kswapd", &reclaim.background_scanned);
	(void)nm_vmstat_value(vmstat, "pswpout", &reclaim.swapped_out);
	return reclaim;
}

bool nm_reclaim_hurts(const struct nm_reclaim *before, const struct nm_reclaim *now)
{
	uint64_t scanned = now->direct_scanned - before->direct_scanned;
	uint64_t reclaimed = now->direct_reclaimed - before->direct_reclaimed;
	/* Counters that have gone back show nothing. */
	if (now->direct_scanned < before->direct_scanned ||
	    now->direct_reclaimed < before->direct_reclaimed ||
	    now->background_scanned < before->background_scanned ||
	    now->swapped_out < before->swapped_out)
		return false;
	bool is_short = scanned > 0 || now->background_scanned != before->background_scanned;

	return (is_short && now->swapped_out != before->swapped_out) ||
	       (double)reclaimed < LEAST_RECLAIMED * (double)scanned;
}

static void watch_reclaim(struct nm_platform *platform, struct nm_reclaim_watch *watch,
			  uint64_t now_ns)
{
	char text[NM_VMSTAT_BYTES];

	if (watch->read_ns && now_ns - watch->read_ns < NM_RECLAIM_AGE_NS)
		return;
	nm_vmstat_read(platform, text);
	watch->read_ns = now_ns;
	if (!*text)
		return; /* counters of 0 would look like reclaim */
	struct nm_reclaim now = nm_reclaim_parse(text);
	if (watch->known && nm_reclaim_hurts(&watch->last, &now))
		watch->hurt_ns = now_ns;
	watch->known = true;
	watch->last = now;
}

bool nm_node_is_reclaimed(struct nm_platform *platform, struct nm_reclaim_watch *watch,
			  unsigned os_id, uint64_t now_ns)
{
	struct nm_node_memory memory;

	watch_reclaim(platform, watch, now_ns);
	if (!watch->hurt_ns || now_ns - watch->hurt_ns >= NM_RECLAIM_QUIET_NS ||
	    nm_node_memory_read(platform, os_id, &memory) < 0)
		return false;
	struct nm_watermarks watermarks = nm_watermarks_read(platform);
	return (double)memory.free_bytes < high_watermark(&memory, &watermarks);
}

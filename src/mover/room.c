// SPDX-License-Identifier: MIT
#include "mover_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024U
#define HUGE_ORDER 9U
#define ORDERS_MOST 32U
#define BUDDYINFO_BYTES 16384U
#define AGE_NS (100 * NM_NSEC_PER_MSEC) /* validity of the values read */

/* Parses the counts of free blocks by order: "Node 0, zone Normal 12 3 …" */
static uint64_t huge_free_of_zone(const char *counts)
{
	uint64_t bytes = 0;

	for (unsigned order = 0; order < ORDERS_MOST; order++) {
		uint64_t blocks;
		int length;
		if (sscanf(counts, "%*[ ]%" SCNu64 "%n", &blocks, &length) != 1)
			break;
		counts += length;
		if (order >= HUGE_ORDER)
			bytes += blocks * (NM_BASE_BYTES << order);
	}
	return bytes;
}

uint64_t nm_huge_free_parse(const char *text, unsigned node)
{
	uint64_t bytes = 0;

	for (const char *line = text; line && *line;) {
		unsigned found;
		int length = 0;
		if (sscanf(line, "Node %u, zone %*s%n", &found, &length) == 1 && length > 0 &&
		    found == node)
			bytes += huge_free_of_zone(line + length);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return bytes;
}

/* ---- current values ---- */

static bool is_reading_due(uint64_t now_ns, uint64_t *read_ns)
{
	if (*read_ns && now_ns - *read_ns < AGE_NS)
		return false;
	*read_ns = now_ns ? now_ns : 1;
	return true;
}

static void read_huge(struct nm_platform *platform, struct nm_node_free *room, unsigned node)
{
	char text[BUDDYINFO_BYTES];

	room->huge = 0;
	if (platform->ops->read_file(platform, NM_ROOT, "proc/buddyinfo", text, sizeof(text)) > 0)
		room->huge = nm_huge_free_parse(text, node);
}

static void read_pool(struct nm_platform *platform, struct nm_node_free *room, unsigned node,
		      uint64_t page_bytes)
{
	char path[128], text[32];

	room->pool = 0;
	room->pool_page_bytes = page_bytes;
	snprintf(path, sizeof(path),
		 "sys/devices/system/node/node%u/hugepages/hugepages-%" PRIu64 "kB/free_hugepages",
		 node, page_bytes / KIB);
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) > 0)
		room->pool = strtoull(text, NULL, 10) * page_bytes;
}

/* The pages of the pool are deducted from the node's memory already, whether they are in use or
 * not. */
struct nm_page_room nm_mover_room(struct nm_mover *mover, int16_t node, enum nm_unit_kind kind,
				  uint64_t page_bytes)
{
	struct nm_platform *platform = mover->platform;
	struct nm_node_free *room = &mover->rules.rooms[node];
	unsigned id = mover->rules.node_ids[node];
	uint64_t now_ns = mover->work.now_ns; /* read once for many pages */

	if (kind == NM_UNIT_POOL) {
		if (room->pool_page_bytes != page_bytes)
			room->pool_ns = 0;
		if (is_reading_due(now_ns, &room->pool_ns))
			read_pool(platform, room, id, page_bytes);
	} else if (is_reading_due(now_ns, &room->memory_ns)) {
		struct nm_watermarks watermarks = nm_watermarks_read(platform);
		if (nm_node_is_reclaimed(platform, &mover->reclaim, id, now_ns) ||
		    nm_node_available_read(platform, id, &watermarks, mover->rules.keep_free,
					   &room->memory) < 0)
			room->memory = 0;
	}
	if (kind == NM_UNIT_BLOCK && is_reading_due(now_ns, &room->huge_ns))
		read_huge(platform, room, id);
	return (struct nm_page_room){.node = (int32_t)id,
				     .memory = room->memory,
				     .huge = room->huge,
				     .pool = room->pool};
}

void nm_mover_use_room(struct nm_mover *mover, int16_t node, enum nm_unit_kind kind, uint64_t bytes)
{
	if (node < 0)
		return;
	struct nm_node_free *room = &mover->rules.rooms[node];
	uint64_t *of_kind[] = {[NM_UNIT_BASE] = &room->memory,
			       [NM_UNIT_BLOCK] = &room->huge,
			       [NM_UNIT_POOL] = &room->pool};

	*of_kind[kind] -= bytes < *of_kind[kind] ? bytes : *of_kind[kind];
}

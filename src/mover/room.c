// SPDX-License-Identifier: MIT
#include "room.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024U
#define BASE_PAGE 4096U
#define HUGE_ORDER 9U
#define ORDERS_MOST 32U
#define BUDDYINFO_BYTES 16384U

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
			bytes += blocks * (BASE_PAGE << order);
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
	if (*read_ns && now_ns - *read_ns < NM_ROOM_AGE_NS)
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

static bool take_bytes(uint64_t *room, uint64_t bytes)
{
	if (*room < bytes)
		return false;
	*room -= bytes;
	return true;
}

/* The pages of the pool are deducted from the node's memory already, whether they are in use or
 * not. */
bool nm_node_free_take(struct nm_platform *platform, struct nm_reclaim_watch *watch,
		       struct nm_node_free *room, unsigned node, double keep_free,
		       struct nm_node_free_page page)
{
	if (page.pool) {
		if (room->pool_page_bytes != page.bytes)
			room->pool_ns = 0;
		if (is_reading_due(page.now_ns, &room->pool_ns))
			read_pool(platform, room, node, page.bytes);
		return take_bytes(&room->pool, page.bytes);
	}
	if (is_reading_due(page.now_ns, &room->memory_ns)) {
		struct nm_watermarks watermarks = nm_watermarks_read(platform);
		if (nm_node_is_reclaimed(platform, watch, node, page.now_ns) ||
		    nm_node_available_read(platform, node, &watermarks, keep_free, &room->memory) <
			    0)
			room->memory = 0;
	}
	if (page.bytes <= BASE_PAGE)
		return take_bytes(&room->memory, page.bytes);
	if (is_reading_due(page.now_ns, &room->huge_ns))
		read_huge(platform, room, node);
	return room->memory >= page.bytes && take_bytes(&room->huge, page.bytes) &&
	       take_bytes(&room->memory, page.bytes);
}

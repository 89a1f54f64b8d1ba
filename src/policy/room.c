/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "room.h"

/* Takes over the set if it returns 0. */
static int put(struct nm_rooms *rooms, hwloc_bitmap_t cpus)
{
	struct nm_node_free *room = &rooms->items[rooms->count];
	*room = (struct nm_node_free){.cpus = cpus};
	int r = nm_core_capacity(rooms->snapshot, cpus, rooms->sibling_worth, &room->capacity);
	if (r == 0)
		rooms->count++;
	return r;
}

int nm_rooms_init(struct nm_rooms *rooms, const struct nm_snapshot *snapshot, int node)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	if (!cpus)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < snapshot->topology->nr_cpus; cpu++) {
		if (!snapshot->cpus[cpu].usable || snapshot->cpus[cpu].node != node)
			continue;
		if (hwloc_bitmap_set(cpus, cpu) < 0) {
			hwloc_bitmap_free(cpus);
			return -ENOMEM;
		}
	}
	*rooms = (struct nm_rooms){.snapshot = snapshot};
	int r = nm_sibling_worth(snapshot, &rooms->sibling_worth);
	if (r == 0)
		r = put(rooms, cpus);
	if (r < 0)
		hwloc_bitmap_free(cpus);
	return r;
}

void nm_rooms_clear(struct nm_rooms *rooms)
{
	for (size_t i = 0; i < rooms->count; i++)
		hwloc_bitmap_free(rooms->items[i].cpus);
	rooms->count = 0;
}

static size_t find(const struct nm_rooms *rooms, hwloc_const_bitmap_t cpus)
{
	size_t i = 0;
	while (i < rooms->count && !hwloc_bitmap_isequal(rooms->items[i].cpus, cpus))
		i++;
	return i;
}

int nm_rooms_add(struct nm_rooms *rooms, hwloc_const_bitmap_t allowed, size_t *ret)
{
	*ret = 0;
	if (hwloc_bitmap_isincluded(rooms->items[0].cpus, allowed)) /* the case of most threads */
		return 0;
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	if (!cpus || hwloc_bitmap_and(cpus, rooms->items[0].cpus, allowed) < 0) {
		hwloc_bitmap_free(cpus);
		return -ENOMEM;
	}
	size_t room = find(rooms, cpus);
	bool fresh = room == rooms->count && room < NM_ROOMS_MAX;
	int r = fresh ? put(rooms, cpus) : 0;
	if (!fresh || r < 0)
		hwloc_bitmap_free(cpus);
	if (r == 0 && room < NM_ROOMS_MAX)
		*ret = room;
	return r;
}

bool nm_rooms_take(struct nm_rooms *rooms, size_t room, double demand)
{
	hwloc_const_bitmap_t cpus = rooms->items[room].cpus;
	bool counts[NM_ROOMS_MAX];
	for (size_t i = 0; i < rooms->count; i++) {
		const struct nm_node_free *one = &rooms->items[i];
		counts[i] = hwloc_bitmap_isincluded(cpus, one->cpus);
		if (counts[i] && one->used + demand > one->capacity)
			return false;
	}
	for (size_t i = 0; i < rooms->count; i++)
		if (counts[i])
			rooms->items[i].used += demand;
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"

#include <string.h>

#define LEAF_SIZE (1U << NM_TIDMAP_LEAF_BITS)
#define USED LEAF_SIZE /* follows the ids: number of ids that are set */

struct nm_tidmap *nm_tidmap_new(void)
{
	return nm_must(calloc(1, sizeof(struct nm_tidmap)));
}

void nm_tidmap_free(struct nm_tidmap *map)
{
	if (!map)
		return;
	for (size_t i = 0; i < map->nr_leaves; i++)
		free(map->leaves[i]);
	free(map->leaves);
	free(map);
}

/* Grows to a power of two of leaves, at least 32. */
static void grow(struct nm_tidmap *map, uint32_t leaf)
{
	uint32_t wanted = map->nr_leaves ? map->nr_leaves : 32;

	while (wanted <= leaf)
		wanted *= 2;
	map->leaves = nm_must(reallocarray(map->leaves, wanted, sizeof(*map->leaves)));
	memset(map->leaves + map->nr_leaves, 0, (wanted - map->nr_leaves) * sizeof(*map->leaves));
	map->nr_leaves = wanted;
}

uint32_t nm_tidmap_next(const struct nm_tidmap *map, uint32_t from)
{
	uint32_t i = from & (LEAF_SIZE - 1);
	for (uint32_t leaf = from >> NM_TIDMAP_LEAF_BITS; leaf < map->nr_leaves; leaf++, i = 0)
		for (; map->leaves[leaf] && i < LEAF_SIZE; i++)
			if (map->leaves[leaf][i])
				return leaf << NM_TIDMAP_LEAF_BITS | i;
	return NM_TIDMAP_NONE;
}

int nm_tidmap_set(struct nm_tidmap *map, uint32_t tid, uint32_t value)
{
	uint32_t leaf = tid >> NM_TIDMAP_LEAF_BITS;

	if (leaf >= NM_TIDMAP_LEAVES)
		return -ERANGE;
	if (leaf >= map->nr_leaves)
		grow(map, leaf);
	if (!map->leaves[leaf])
		map->leaves[leaf] = nm_must(calloc(LEAF_SIZE + 1, sizeof(*map->leaves[leaf])));
	uint32_t *slot = &map->leaves[leaf][tid & (LEAF_SIZE - 1)];
	map->leaves[leaf][USED] += *slot == 0;
	*slot = value + 1;
	return 0;
}

void nm_tidmap_remove(struct nm_tidmap *map, uint32_t tid)
{
	uint32_t leaf = tid >> NM_TIDMAP_LEAF_BITS;

	if (leaf >= map->nr_leaves || !map->leaves[leaf])
		return;
	uint32_t *slot = &map->leaves[leaf][tid & (LEAF_SIZE - 1)];
	map->leaves[leaf][USED] -= *slot != 0;
	*slot = 0;
	/* Numbers wrap around: without this, a long-lived map would keep a leaf for every 1024 ids
	 * ever used. */
	if (map->leaves[leaf][USED] == 0) {
		free(map->leaves[leaf]);
		map->leaves[leaf] = NULL;
	}
}

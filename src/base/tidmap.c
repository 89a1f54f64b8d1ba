/* SPDX-License-Identifier: MIT */
#include "numa-migrd/tidmap.h"

#define LEAF_SIZE (1U << NM_TIDMAP_LEAF_BITS)
#define USED LEAF_SIZE /* behind the ids: how many of them are set */

int nm_tidmap_new(struct nm_tidmap **ret)
{
	struct nm_tidmap *map = calloc(1, sizeof(*map));

	if (!map)
		return -ENOMEM;
	*ret = map;
	return 0;
}

void nm_tidmap_free(struct nm_tidmap *map)
{
	if (!map)
		return;
	for (size_t i = 0; i < NM_TIDMAP_LEAVES; i++)
		free(map->leaves[i]);
	free(map);
}

int nm_tidmap_set(struct nm_tidmap *map, uint32_t tid, uint32_t value)
{
	uint32_t leaf = tid >> NM_TIDMAP_LEAF_BITS;

	if (leaf >= NM_TIDMAP_LEAVES)
		return -ERANGE;
	if (!map->leaves[leaf])
		map->leaves[leaf] = calloc(LEAF_SIZE + 1, sizeof(*map->leaves[leaf]));
	if (!map->leaves[leaf])
		return -ENOMEM;
	uint32_t *slot = &map->leaves[leaf][tid & (LEAF_SIZE - 1)];
	map->leaves[leaf][USED] += *slot == 0;
	*slot = value + 1;
	return 0;
}

void nm_tidmap_remove(struct nm_tidmap *map, uint32_t tid)
{
	uint32_t leaf = tid >> NM_TIDMAP_LEAF_BITS;

	if (leaf >= NM_TIDMAP_LEAVES || !map->leaves[leaf])
		return;
	uint32_t *slot = &map->leaves[leaf][tid & (LEAF_SIZE - 1)];
	map->leaves[leaf][USED] -= *slot != 0;
	*slot = 0;
	/* Numbers go round: without this, a long-lived map would hold a leaf for each thousand
	 * there ever were. */
	if (map->leaves[leaf][USED] == 0) {
		free(map->leaves[leaf]);
		map->leaves[leaf] = NULL;
	}
}

/* SPDX-License-Identifier: MIT */
#include "numa-migrd/tidmap.h"

#define LEAF_SIZE (1U << NM_TIDMAP_LEAF_BITS)

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
		map->leaves[leaf] = calloc(LEAF_SIZE, sizeof(*map->leaves[leaf]));
	if (!map->leaves[leaf])
		return -ENOMEM;
	map->leaves[leaf][tid & (LEAF_SIZE - 1)] = value + 1;
	return 0;
}

void nm_tidmap_remove(struct nm_tidmap *map, uint32_t tid)
{
	uint32_t leaf = tid >> NM_TIDMAP_LEAF_BITS;

	if (leaf < NM_TIDMAP_LEAVES && map->leaves[leaf])
		map->leaves[leaf][tid & (LEAF_SIZE - 1)] = 0;
}

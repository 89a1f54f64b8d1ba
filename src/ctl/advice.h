/* SPDX-License-Identifier: MIT */
/* What advise (advise.h) is to judge, from the bus's lists and /proc. */
#ifndef NM_CTL_ADVICE_H
#define NM_CTL_ADVICE_H

#include <jansson.h>

#include "numa-migrd/advise.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/topology.h"

/* Begins as {0}. */
struct nm_advice {
	struct nm_advise_input input; /* points to what follows */
	struct nm_advise_thread *threads;
	struct nm_advise_region *regions;
	struct nm_advise_node *nodes;
};

/* Counters of /proc/vmstat, at one time. */
struct nm_hinting {
	uint64_t faults, local, migrated;
	bool known;
};

/*
 * What ListThreads, and Pages (NULL: it was not answered), have returned of a process; absent
 * values stay unavailable. The topology must outlive the advice. -ENOMEM.
 */
int nm_advice_take(struct nm_advice *advice, uint32_t pid, const struct nm_topology *topology,
		   const json_t *threads, const json_t *pages);

/* What /proc says of the process, as far as we may see it, and of the settings. */
void nm_advice_look(struct nm_advice *advice, struct nm_platform *platform,
		    const struct nm_topology *topology);

struct nm_hinting nm_hinting_read(struct nm_platform *platform);
/* The rates between two readings. */
void nm_advice_set_hinting(struct nm_advice *advice, const struct nm_hinting *before,
			   const struct nm_hinting *after, double seconds);

void nm_advice_clear(struct nm_advice *advice);

#endif

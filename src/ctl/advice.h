/* SPDX-License-Identifier: MIT */
/* Collects the input of advise (advise.h) from the lists of the bus and from /proc. */
#ifndef NM_CTL_ADVICE_H
#define NM_CTL_ADVICE_H

#include <jansson.h>

#include "advise/advise.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/topology.h"

/* Counters of /proc/vmstat at one time. */
struct nm_hinting {
	uint64_t faults, local, migrated;
	bool known;
};

/* Adds the results of ListThreads and Pages (NULL: no answer) for a process; missing values stay
 * unavailable. `advice` is initially {0}, and the caller clears it. Returns 0 or -ENOMEM. */
int nm_advice_take(struct nm_advise_input *advice, uint32_t pid, const struct nm_topology *topology,
		   const json_t *threads, const json_t *pages);

/* Adds the data of the process in /proc, as far as it is readable, and the settings. */
void nm_advice_look(struct nm_advise_input *advice, struct nm_platform *platform,
		    const struct nm_topology *topology);

struct nm_hinting nm_hinting_read(struct nm_platform *platform);
/* Adds the rates between two readings. */
void nm_advice_set_hinting(struct nm_advise_input *advice, const struct nm_hinting *before,
			   const struct nm_hinting *after, double seconds);

void nm_advice_clear(struct nm_advise_input *advice);

#endif

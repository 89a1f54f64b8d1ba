/* SPDX-License-Identifier: MIT */
/* What /sys/bus/event_source/devices says of PMUs, below an open root directory. */
#ifndef NUMA_MIGRD_PLATFORM_PMU_H
#define NUMA_MIGRD_PLATFORM_PMU_H

#include "numa-migrd/event.h"

/* Is devices/PMU/FILE there? Either part may not hold a slash but FILE's one. */
bool nm_pmu_has(int root, const char *pmu, const char *file);

/*
 * Fills type, config words, period, own_period and name from "pmu/term=value,term,…/": each term is
 * a format of that PMU in sysfs, one of its named events, or config, config1, config2 or period;
 * one without a value means 1. Returns 0, -ENOENT (no such PMU), -EINVAL (the text, a term or a
 * value that does not fit), or -errno. Called by nm_event_list_read().
 */
int nm_pmu_parse(int root, const char *text, struct nm_event_word *word);

/*
 * The hardware events of this machine for what is wanted: from the table by the CPU's identity, and
 * from sysfs. A source that the machine does not have gives no MEMORY event. The table's rows of
 * other kinds than `kind` stay unencoded, which saves time for a single opening;
 * NM_EVENT_KIND_MAX: all are encoded. Returns 0, or for NM_MEMORY_PMU what nm_pmu_parse() said, or
 * for NM_MEMORY_EVENT -ENOENT (the cores have no PMU) or -ENOPKG (nm_event_named_encode()).
 * Called for each opening, by the daemon's platform and by the helper alike, so both mean the same
 * by an index.
 */
int nm_event_list_read(int root, const struct nm_event_wishes *wishes, enum nm_event_kind kind,
		       struct nm_event_list *ret);

#endif

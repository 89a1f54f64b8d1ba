/* SPDX-License-Identifier: MIT */
/* Reads the descriptions of PMUs in /sys/bus/event_source/devices, below an open root directory. */
#ifndef NUMA_MIGRD_PLATFORM_PMU_H
#define NUMA_MIGRD_PLATFORM_PMU_H

#include "platform/event.h"

/* Returns whether devices/PMU/FILE exists. `pmu` contains no slash, and `file` at most one. */
bool nm_pmu_has(int root, const char *pmu, const char *file);

/*
 * Fills type, config words, period and name from "pmu/term=value,term,…/". Each term is a format of
 * that PMU in sysfs, one of its named events, or config, config1, config2 or period; a term without
 * a value means 1. Returns 0, -ENOENT if there is no such PMU, -EINVAL if the text, a term or a
 * value is not valid, or another negative errno.
 */
int nm_pmu_parse(int root, const char *text, struct nm_event_word *word);

/*
 * Lists the hardware events of this machine that match `selection`: from the table, by the CPU's
 * identity, and from sysfs. Amounts that the PMU of NM_MEMORY_PMU counts replace the table's. A
 * source that the machine does not have results in no MEMORY event. The table's rows of other kinds
 * than `kind` stay unencoded, which saves time if a single event is opened; NM_EVENT_KIND_MAX: all
 * are encoded. Returns 0; for NM_MEMORY_PMU, the error of nm_pmu_parse(); for NM_MEMORY_EVENT,
 * -ENOENT (the cores have no PMU) or -ENOPKG (nm_event_named_encode()). Called for each opening,
 * both by the daemon's platform and by the helper, so that an index has the same meaning in both.
 */
int nm_event_list_read(int root, const struct nm_event_selection *selection,
		       enum nm_event_kind kind, struct nm_event_list *ret);

#endif

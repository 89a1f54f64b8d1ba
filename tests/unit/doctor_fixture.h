/* SPDX-License-Identifier: MIT */
/* A machine on which nothing is wrong, for tests to spoil. Include cmocka.h first. */
#ifndef NM_TEST_DOCTOR_FIXTURE_H
#define NM_TEST_DOCTOR_FIXTURE_H

#include <string.h>

#include "../../src/doctor/checks.h"
#include "../support/machine.h"
#include "numa-migrd/doctor.h"

#define GOOD_UNIT NM_SOURCE_DIR "/systemd/numa-migrd.service"

static inline void read_unit_file(struct nm_unit *unit, const char *path)
{
	char text[16384];
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	assert_int_equal(nm_unit_read(unit, text), 0);
}

static inline void set_word(char *place, const char *word)
{
	(void)snprintf(place, NM_WORD_SIZE, "%s", word);
}

static inline struct nm_facts *good_facts(void)
{
	struct nm_facts *facts = calloc(1, sizeof(*facts));

	assert_non_null(facts);
	facts->root = true;
	facts->topology = machine_topology(4, 8);
	facts->free_bytes = calloc(4, sizeof(*facts->free_bytes));
	assert_non_null(facts->topology);
	assert_non_null(facts->free_bytes);
	for (unsigned i = 0; i < 4; i++)
		facts->free_bytes[i].value = (int64_t)(MACHINE_NODE_BYTES / 2);
	facts->knows_homes = facts->unified = true;
	facts->has_schedstat = facts->has_numa_maps = facts->has_unit = true;
	set_word(facts->kernel, "6.1.0-28-amd64");
	set_word(facts->thp, "madvise");
	set_word(facts->clocksource, "tsc");
	facts->paranoid.value = 2;
	facts->sample_rate.value = 100000;
	facts->cpu_time_percent.value = 25;
	facts->mlock_kb.value = 516;
	facts->balancing.value = 1;
	facts->soft_dirty.value = 1;
	facts->offered[NM_MEMORY_PEBS] = true;
	facts->has_counters = true;
	facts->trial = NM_TRIAL_DONE;
	facts->tried.memory = NM_MEMORY_PEBS;
	facts->tried.accesses = facts->tried.has_cycles = true;
	(void)snprintf(facts->tried.name, sizeof(facts->tried.name), "cycles+pebs");
	facts->helper_socket.value = 1;
	facts->ledger.error = facts->damaged.error = 0;
	facts->nr_open.value = 1048576;
	assert_int_equal(nm_config_default(&facts->config), 0);
	read_unit_file(&facts->unit, GOOD_UNIT);
	return facts;
}

static inline void free_facts(struct nm_facts *facts)
{
	nm_facts_clear(facts);
	free(facts);
}

static inline const struct nm_finding *find(const struct nm_findings *findings, const char *check)
{
	for (size_t i = 0; i < findings->count; i++)
		if (strcmp(findings->items[i].check, check) == 0)
			return &findings->items[i];
	return NULL;
}

/* Of the finding, all its words in one. */
static inline bool says(const struct nm_finding *finding, const char *words)
{
	return strstr(finding->what, words) ||
	       (finding->evidence && strstr(finding->evidence, words)) ||
	       (finding->remedy && strstr(finding->remedy, words));
}

#endif

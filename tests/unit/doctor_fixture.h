/* SPDX-License-Identifier: MIT */
/* A machine without faults, for tests to modify. Include cmocka.h first. */
#ifndef NM_TEST_DOCTOR_FIXTURE_H
#define NM_TEST_DOCTOR_FIXTURE_H

#include <string.h>

#include "../../src/ctl/doctor/checks.h"
#include "../../src/ctl/doctor/doctor.h"
#include "../support/machine.h"

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
	assert_non_null(facts->topology);
	facts->knows_homes = facts->unified = true;
	facts->paranoid.value = 2;
	facts->balancing.value = 1;
	set_word(facts->sources, "pebs");
	facts->has_counters = true;
	facts->trial = NM_TRIAL_DONE;
	set_word(facts->tried.memory, "pebs");
	facts->tried.accesses = facts->tried.cycles = true;
	set_word(facts->tried.name, "cycles+pebs");
	facts->helper_socket.value = 1;
	assert_int_equal(nm_config_default(&facts->config), 0);
	facts->unit.exists = true;
	set_word(facts->unit.load, "loaded");
	set_word(facts->unit.active, "inactive");
	set_word(facts->trial_state, "over");
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

/* Concatenates all texts of the finding. */
static inline bool finding_contains(const struct nm_finding *finding, const char *words)
{
	return strstr(finding->what, words) ||
	       (finding->evidence && strstr(finding->evidence, words)) ||
	       (finding->remedy && strstr(finding->remedy, words));
}

#endif

/* SPDX-License-Identifier: MIT */
/* The words of script.h for the facts of doctor: numbers and texts by their names. */
#ifndef NM_TEST_DOCTOR_WORDS_H
#define NM_TEST_DOCTOR_WORDS_H

#include "../../src/ctl/doctor/checks.h"
#include "../../src/ctl/doctor/doctor.h"
#include "../support/machine.h"
#include "../support/script.h"

static struct nm_facts facts;

KNOB(root, facts.root)
KNOB(hidden, facts.hidden)
KNOB(knows_homes, facts.knows_homes)
KNOB(virtual_machine, facts.virtual_machine)
KNOB(bpf_scheduler, facts.bpf_scheduler)
KNOB(paranoid, facts.paranoid.value)
KNOB(paranoid_error, facts.paranoid.error)
KNOB(kernel_balancing, facts.balancing.value)
KNOB(kernel_balancing_error, facts.balancing.error)
KNOB(events_error, facts.events_error)
KNOB(has_counters, facts.has_counters)
KNOB(spe_device, facts.spe_device)
KNOB(spe_driver, facts.spe_driver)
KNOB(tried, facts.trial)
NAMES(tried, {"unknown", NM_TRIAL_UNKNOWN}, {"daemon-runs", NM_TRIAL_DAEMON_RUNS},
      {"refused", NM_TRIAL_REFUSED}, {"done", NM_TRIAL_DONE})
KNOB(tried_error, facts.trial_error)
KNOB(tried_cycles, facts.tried.cycles)
KNOB(tried_accesses, facts.tried.accesses)
KNOB(tried_flops, facts.tried.flops)
KNOB(problems, facts.nr_problems)
KNOB(unified, facts.unified)
KNOB(cgroups, facts.nr_cgroups)
KNOB(cpusets_set, facts.nr_cpusets)
KNOB(cgroups_cut, facts.cgroups_cut)
KNOB(daemon_pid, facts.daemon_pid)
KNOB(helper_pid, facts.helper_pid)
KNOB(unit_exists, facts.unit.exists)
KNOB(unit_error, facts.unit.error)
KNOB(helper_socket, facts.helper_socket.value)
KNOB(left_record, facts.left_record.value)
KNOB(left_record_error, facts.left_record.error)
KNOB(config_error, facts.config_error)
KNOB(config_missing, facts.config_missing)
KNOB(metrics_error, facts.metrics_error)
KNOB(threads_measured, facts.threads_measured)
KNOB(threads_undersampled, facts.threads_undersampled)
KNOB(virtual_machines, facts.shared_machines.count)
KNOB(virtual_machine_pid, facts.shared_machines.pid)
KNOB(databases, facts.databases.count)
KNOB(database_pid, facts.databases.pid)
KNOB(pinned, facts.pinned.count)
KNOB(pinned_pid, facts.pinned.pid)
QUANTITY(configured, facts.config != NULL)
QUANTITY(config_errors, facts.config_errors.count)
KNOB(policy, facts.config->threads.policy)
NAMES(policy, {"none", NM_POLICY_NONE}, {"lbma", NM_POLICY_LBMA}, {"imar2", NM_POLICY_IMAR2},
      {"auto", NM_POLICY_AUTO})

/* Texts of facts, and the nth problem. */
static inline char *fact_text(const struct step *step, size_t *ret_size)
{
#define FACT(member)                                                                               \
	{                                                                                          \
#member, facts.member, sizeof(facts.member)                                        \
	}
	const struct {
		const char *name;
		char *text;
		size_t size;
	} texts[] = {
		FACT(topology_error), FACT(lockdown),	    FACT(scheduler),   FACT(sources),
		FACT(table),	      FACT(trial_text),	    FACT(tried.name),  FACT(tried.memory),
		FACT(cpuset_path),    FACT(unit.load),	    FACT(unit.active), FACT(problems[0]),
		FACT(problems[1]),    FACT(running_source), FACT(trial_state), FACT(trial_result),
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(texts); i++)
		if (strcmp(texts[i].name, step->word[0]) == 0) {
			*ret_size = texts[i].size;
			return texts[i].text;
		}
	script_fail(step, "no such text");
	return NULL;
}

static inline const char *show_fact(const struct step *step)
{
	size_t size;
	const char *text = fact_text(step, &size);
	return *text ? text : NULL;
}

/* text lockdown = none */
TEXT(text, show_fact(step))

/* write lockdown integrity; without a text it is "" */
WORD(write)
{
	size_t size;
	char *text = fact_text(step, &size);
	snprintf(text, size, "%s", step->count > 1 ? strchr(step_rest(step), ' ') + 1 : "");
}

#endif

/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "doctor.h"

#define PARANOID_MOST 2 /* from 3 on, Debian's kernels reject CAP_PERFMON */

static const char *has(bool is)
{
	return is ? "yes" : "no";
}

/* Adds the result of a trial on one CPU. */
static void say_tried(const struct nm_facts *facts, struct nm_findings *findings)
{
	const struct nm_facts_tried *tried = &facts->tried;

	nm_findings_evidence(findings,
			     "a trial on one CPU counts %s: running threads by %s; memory accesses "
			     "by %s; latency: %s, instructions: %s, floating-point operations: %s, "
			     "memory traffic: %s",
			     tried->name, tried->cycles ? "cycles" : "the kernel's clock",
			     !tried->accesses	? "nothing"
			     : tried->memory[0] ? tried->memory
						: "page faults",
			     has(tried->memory[0]), has(tried->instructions), has(tried->flops),
			     has(tried->dram));
	for (size_t i = 0; i < facts->nr_problems; i++)
		nm_findings_remedy(findings, "%s", facts->problems[i]);
}

static void say_refused(const char *name, const struct nm_facts *facts,
			struct nm_findings *findings)
{
	bool ours = !facts->root && (facts->trial_error == -EACCES || facts->trial_error == -EPERM);

	if (ours) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"This user may not sample: the counters were not tried.");
		nm_findings_evidence(findings, "perf_event_open: %s",
				     strerrordesc_np(-facts->trial_error));
		nm_findings_remedy(findings, "run numa-migrctl doctor as root");
		return;
	}
	nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
			"Nothing can be sampled here: nothing is moved.");
	nm_findings_evidence(findings, "perf_event_open: %s", strerrordesc_np(-facts->trial_error));
	if (facts->trial_text[0])
		nm_findings_remedy(findings, "%s", facts->trial_text);
}

/* Policies that use performance move only threads that are measured. */
static bool too_few_samples(const struct nm_facts *facts)
{
	bool by_performance = facts->config && (facts->config->threads.policy == NM_POLICY_IMAR2 ||
						facts->config->threads.policy == NM_POLICY_BALANCE);

	return by_performance && facts->threads_undersampled > facts->threads_measured;
}

static void say_daemon_runs(const char *name, const struct nm_facts *facts,
			    struct nm_findings *findings)
{
	if (facts->running_source[0] && too_few_samples(facts)) {
		nm_findings_add(findings, name, NM_SEVERITY_WARNING,
				"numa-migrd samples %s, but too little to measure most threads.",
				facts->running_source);
		nm_findings_evidence(findings,
				     "active threads in the last interval: %" PRIu64
				     " measured, %" PRIu64 " with fewer samples than min_samples",
				     facts->threads_measured, facts->threads_undersampled);
		nm_findings_remedy(findings, "raise sampling.overhead_percent");
		return;
	}
	if (facts->running_source[0]) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"numa-migrd runs and samples: %s.", facts->running_source);
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
			"numa-migrd runs, so nothing was tried here, and its sampling source is "
			"unknown.");
	nm_findings_remedy(findings, "numa-migrctl status shows it, and the journal: "
				     "journalctl -u numa-migrd KIND=start");
}

/* While the kernel's page tables are unmapped in user mode, the driver refuses its device, because
 * the hardware could not write its buffer. */
static void say_hidden_spe(const struct nm_facts *facts, struct nm_findings *findings)
{
	if (!facts->spe_driver) {
		nm_findings_evidence(findings, "the CPUs have Arm's SPE, but its driver is not "
					       "loaded");
		nm_findings_remedy(findings, "modprobe arm_spe_pmu, or a kernel with "
					     "CONFIG_ARM_SPE_PMU");
		return;
	}
	nm_findings_evidence(findings,
			     "the CPUs have Arm's SPE and its driver is loaded, but page-table "
			     "isolation (KPTI) hides it");
	nm_findings_remedy(findings,
			   "booting with kpti=off shows it, but switches off the protection "
			   "against Meltdown: only on machines that run no untrusted code");
}

void nm_check_hardware(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (facts->trial == NM_TRIAL_REFUSED) {
		say_refused(name, facts, findings);
	} else if (facts->trial == NM_TRIAL_DAEMON_RUNS) {
		say_daemon_runs(name, facts, findings);
	} else if (facts->events_error) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"What the hardware can sample is unknown.");
		nm_findings_evidence(findings, "%s --list-events --json: %s", NM_DAEMON_PROGRAM,
				     strerrordesc_np(-facts->events_error));
		nm_findings_remedy(findings, "install the package");
	} else if (!facts->sources[0]) {
		nm_findings_add(
			findings, name, nm_facts_weigh(facts, NM_SEVERITY_WARNING),
			"No hardware samples memory accesses: page faults are used; unavailable: "
			"%s.",
			facts->has_counters ? "latencies" : "latencies, instructions, traffic");
		nm_findings_evidence(findings,
				     "/sys/bus/event_source/devices has no PMU of the cores with "
				     "precise loads, no ibs_op and no arm_spe_0");
		if (facts->spe_device)
			say_hidden_spe(facts, findings);
		else if (facts->virtual_machine)
			nm_findings_remedy(findings,
					   "none in most virtual machines; some hosts can expose "
					   "their PMU to a guest");
		else
			nm_findings_remedy(findings,
					   "a newer kernel, if the CPU is newer than this one; "
					   "until then only the number of accesses is used");
	} else {
		nm_findings_add(findings, name,
				facts->nr_problems ? nm_facts_weigh(facts, NM_SEVERITY_WARNING)
						   : NM_SEVERITY_FINE,
				"The hardware can sample memory accesses, with their latency and "
				"where they were served: %s.",
				facts->sources);
		nm_findings_evidence(findings, "events of entry \"%s\" (numa-migrd --list-events)",
				     facts->table);
	}
	if (facts->trial == NM_TRIAL_DONE)
		say_tried(facts, findings);
}

/* ---- privileges ---- */

static void say_helper(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	const char *remedy = "systemctl enable --now numa-migrd-helper.socket; or sysctl "
			     "kernel.perf_event_paranoid=2, kept in /etc/sysctl.d/";

	if (facts->helper_socket.value == 1) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"kernel.perf_event_paranoid is %" PRId64
				": the helper opens the events, and its socket exists.",
				facts->paranoid.value);
		return;
	}
	if (nm_facts_is_stopped(facts)) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"kernel.perf_event_paranoid is %" PRId64
				": the helper opens the events, and starts with the service.",
				facts->paranoid.value);
		return;
	}
	nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
			"kernel.perf_event_paranoid is %" PRId64
			": the service can sample only through the helper, whose socket does not "
			"exist.",
			facts->paranoid.value);
	nm_findings_evidence(findings, "no /run/numa-migrd-helper.sock");
	nm_findings_remedy(findings, "%s", remedy);
}

void nm_check_privilege(const char *name, const struct nm_facts *facts,
			struct nm_findings *findings)
{
	const struct nm_reading *paranoid = &facts->paranoid;

	if (strcmp(facts->lockdown, "confidentiality") == 0) {
		nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
				"The kernel is locked down for confidentiality and permits no "
				"sampling.");
		nm_findings_evidence(findings, "/sys/kernel/security/lockdown");
		nm_findings_remedy(findings, "boot with lockdown=integrity, or without");
	} else if (paranoid->error == -ENOENT) {
		nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
				"This kernel has no perf events, so nothing can be sampled.");
		nm_findings_evidence(findings, "no /proc/sys/kernel/perf_event_paranoid");
		nm_findings_remedy(findings, "boot a kernel with CONFIG_PERF_EVENTS");
	} else if (paranoid->error) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"The permission to sample is unknown.");
		nm_facts_say_unseen(facts, findings, "/proc/sys/kernel/perf_event_paranoid",
				    paranoid->error);
	} else if (paranoid->value > PARANOID_MOST) {
		say_helper(name, facts, findings);
	} else {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"kernel.perf_event_paranoid is %" PRId64
				": the service may sample with CAP_PERFMON.",
				paranoid->value);
	}
}

/* ---- visibility of accesses ---- */

static void say_balancing_off(const char *name, const struct nm_facts *facts,
			      struct nm_findings *findings)
{
	const char *is =
		nm_balancing_off_text(facts->balancing.error ? -1 : facts->balancing.value);

	if (nm_facts_injects(facts)) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"kernel.numa_balancing is %s; sampling.inject = \"%s\" makes "
				"accesses visible.",
				is, nm_inject_name(facts->config->sampling.inject));
		return;
	}
	if (nm_facts_sees_accesses(facts)) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"kernel.numa_balancing is %s, and is not needed: the hardware "
				"shows accesses.",
				is);
		return;
	}
	bool homes = facts->config && facts->config->threads.policy == NM_POLICY_AUTO;
	nm_findings_add(findings, name,
			nm_facts_weigh(facts, homes ? NM_SEVERITY_WARNING : NM_SEVERITY_PROBLEM),
			"kernel.numa_balancing is %s; only first touches sampled: %s.", is,
			homes ? "processes are placed by where their threads run"
			      : "almost nothing is moved");
	if (facts->balancing.error == 0)
		nm_findings_remedy(
			findings,
			"parameters: { sampling: { inject = \"numa_balancing\"; }; }; in the "
			"configuration (on while numa-migrd runs), or sysctl "
			"kernel.numa_balancing=%d",
			nm_balancing_with(facts->balancing.value, true));
	else
		nm_findings_remedy(findings, "boot a kernel with CONFIG_NUMA_BALANCING");
}

/* It is on: its hinting faults are sampled, and it also moves pages and threads. */
static void say_balancing_on(const char *name, const struct nm_facts *facts,
			     struct nm_findings *findings)
{
	bool yields = nm_facts_moves_pages(facts) &&
		      facts->config->pages.numa_balancing == NM_BALANCING_YIELD;

	nm_findings_add(findings, name, yields ? NM_SEVERITY_NOTE : NM_SEVERITY_FINE,
			"kernel.numa_balancing is %" PRId64 ": %s.", facts->balancing.value,
			yields ? "the kernel moves pages, and numa-migrd moves threads only"
			       : "its page faults are sampled, and the kernel moves pages and "
				 "threads, too");
	if (yields)
		nm_findings_remedy(findings,
				   "pages.numa_balancing = \"manage\" turns it off while pages are "
				   "moved here; then sampling needs hardware or sampling.inject");
}

void nm_check_balancing(const char *name, const struct nm_facts *facts,
			struct nm_findings *findings)
{
	if (facts->balancing.error && facts->balancing.error != -ENOENT) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"The state of automatic NUMA balancing cannot be read.");
		nm_facts_say_unseen(facts, findings, "/proc/sys/kernel/numa_balancing",
				    facts->balancing.error);
	} else if (!nm_facts_balances(facts)) {
		say_balancing_off(name, facts, findings);
	} else {
		say_balancing_on(name, facts, findings);
	}
}

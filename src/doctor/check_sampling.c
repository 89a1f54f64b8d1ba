/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"

#define PARANOID_MOST 2 /* from 3 on, Debian's kernels refuse CAP_PERFMON */
#define RATE_SHIPPED 100000
#define RATE_LEAST 10000

/* "pebs, ibs" */
static void list_sources(const struct nm_facts *facts, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int source = NM_MEMORY_NONE + 1; source < NM_MEMORY_SOURCE_MAX && used < size;
	     source++)
		if (facts->offered[source])
			used += (size_t)snprintf(
				text + used, size - used, "%s%s", used ? ", " : "",
				nm_memory_source_name((enum nm_memory_source)source));
}

static bool offers_any(const struct nm_facts *facts)
{
	for (int source = NM_MEMORY_NONE + 1; source < NM_MEMORY_SOURCE_MAX; source++)
		if (facts->offered[source])
			return true;
	return false;
}

void nm_check_hardware(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	char sources[64];

	list_sources(facts, sources, sizeof(sources));
	if (offers_any(facts)) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"The hardware can sample memory accesses, with their latency and "
				"where they were served: %s.",
				sources);
		nm_findings_evidence(findings, "events of entry \"%s\" (numa-migrd --list-events)",
				     facts->table);
		return;
	}
	nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_WARNING),
			"No hardware here samples memory accesses: page faults stand in, and the "
			"latency of accesses%s unavailable.",
			facts->has_counters ? " is" : ", instructions and memory traffic are");
	nm_findings_evidence(findings, "/sys/bus/event_source/devices has no PMU of the cores with "
				       "precise loads, no ibs_op and no arm_spe_0");
	if (facts->virtual_machine)
		nm_findings_remedy(findings, "none in most virtual machines; some hosts can hand "
					     "their PMU to a guest");
	else
		nm_findings_remedy(findings, "none but a newer kernel, where the CPU is newer than "
					     "it; decisions rest on the number of accesses alone");
}

/* ---- the trial ---- */

static const char *has(bool is)
{
	return is ? "yes" : "no";
}

static void say_done(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	const struct nm_source_status *tried = &facts->tried;

	nm_findings_add(findings, name,
			facts->nr_problems ? nm_facts_weigh(facts, NM_SEVERITY_WARNING)
					   : NM_SEVERITY_FINE,
			"On one CPU this was tried and counts: %s.", tried->name);
	nm_findings_evidence(findings,
			     "running threads by %s; memory accesses by %s; latency: %s, "
			     "instructions: %s, floating-point operations: %s, memory traffic: %s",
			     tried->has_cycles ? "cycles" : "the kernel's clock",
			     !tried->accesses ? "nothing"
			     : tried->memory == NM_MEMORY_NONE
				     ? "page faults"
				     : nm_memory_source_name(tried->memory),
			     has(tried->memory != NM_MEMORY_NONE), has(tried->has_instructions),
			     has(tried->has_flops), has(tried->has_dram));
	for (size_t i = 0; i < facts->nr_problems; i++)
		nm_findings_remedy(findings, "%s", facts->problems[i]);
}

static void say_refused(const char *name, const struct nm_facts *facts,
			struct nm_findings *findings)
{
	bool ours = !facts->root && (facts->trial_error == -EACCES || facts->trial_error == -EPERM);

	if (ours) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"As this user nothing may be sampled, so it was not seen what "
				"counts.");
		nm_findings_evidence(findings, "perf_event_open: %s",
				     strerrordesc_np(-facts->trial_error));
		nm_findings_remedy(findings, "ask again as root: sudo numa-migrctl doctor");
		return;
	}
	nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
			"Nothing can be sampled here, so nothing would be moved.");
	nm_findings_evidence(findings, "perf_event_open: %s", strerrordesc_np(-facts->trial_error));
	if (facts->trial_text[0])
		nm_findings_remedy(findings, "%s", facts->trial_text);
}

/* Policies that go by performance move only threads that are measured. */
static bool too_few_samples(const struct nm_facts *facts)
{
	bool by_performance = facts->config && (facts->config->threads.policy == NM_POLICY_IMAR2 ||
						facts->config->threads.policy == NM_POLICY_BALANCE);

	return by_performance && facts->threads_undersampled > facts->threads_measured;
}

static void report_too_few_samples(const char *name, const struct nm_facts *facts,
				   struct nm_findings *findings)
{
	nm_findings_add(findings, name, NM_SEVERITY_WARNING,
			"numa-migrd samples %s, but too little to measure most threads.",
			facts->running_source);
	nm_findings_evidence(findings,
			     "active threads in the last interval: %" PRIu64 " measured, %" PRIu64
			     " with fewer samples than threads.min_samples",
			     facts->threads_measured, facts->threads_undersampled);
	nm_findings_remedy(findings, "lower sampling.memory_period, or raise "
				     "sampling.overhead_percent");
}

static void say_daemon_runs(const char *name, const struct nm_facts *facts,
			    struct nm_findings *findings)
{
	if (facts->running_source[0] && too_few_samples(facts)) {
		report_too_few_samples(name, facts, findings);
		return;
	}
	if (facts->running_source[0]) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"numa-migrd runs and samples: %s.", facts->running_source);
		return;
	}
	nm_findings_add(
		findings, name, NM_SEVERITY_UNSEEN,
		"numa-migrd runs, so nothing was tried beside it, and it does not tell what "
		"it samples.");
	nm_findings_remedy(findings, "numa-migrctl status, or the journal's entry of the start: "
				     "journalctl -u numa-migrd KIND=start");
}

void nm_check_trial(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	switch (facts->trial) {
	case NM_TRIAL_DONE:
		say_done(name, facts, findings);
		return;
	case NM_TRIAL_REFUSED:
		say_refused(name, facts, findings);
		return;
	case NM_TRIAL_DAEMON_RUNS:
		say_daemon_runs(name, facts, findings);
		return;
	default:
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN, "Nothing was tried.");
	}
}

/* ---- may it be sampled ---- */

static void say_helper(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	const char *remedy = "systemctl enable --now numa-migrd-helper.socket; or sysctl "
			     "kernel.perf_event_paranoid=2, kept in /etc/sysctl.d/";

	if (facts->helper_socket.value == 1) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"kernel.perf_event_paranoid is %" PRId64
				": the helper opens the events, and its socket is there.",
				facts->paranoid.value);
		return;
	}
	nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
			"kernel.perf_event_paranoid is %" PRId64
			", so that the service may sample by the helper only, whose socket is not "
			"there.",
			facts->paranoid.value);
	nm_findings_evidence(findings, "no /run/numa-migrd-helper.sock");
	nm_findings_remedy(findings, "%s", remedy);
}

void nm_check_privilege(const char *name, const struct nm_facts *facts,
			struct nm_findings *findings)
{
	const struct nm_reading *paranoid = &facts->paranoid;

	if (paranoid->error == -ENOENT) {
		nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
				"This kernel has no perf events, so nothing can be sampled.");
		nm_findings_evidence(findings, "no /proc/sys/kernel/perf_event_paranoid");
		nm_findings_remedy(findings, "boot a kernel with CONFIG_PERF_EVENTS");
	} else if (paranoid->error) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"It is not known who may sample here.");
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

void nm_check_lockdown(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (strcmp(facts->lockdown, "confidentiality") == 0) {
		nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
				"The kernel is locked down for confidentiality: it lets nobody "
				"sample.");
		nm_findings_evidence(findings, "/sys/kernel/security/lockdown");
		nm_findings_remedy(findings, "boot with lockdown=integrity, or without");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_FINE,
			"The kernel is not locked down so far that it would forbid sampling.");
	if (facts->lockdown[0])
		nm_findings_evidence(findings, "/sys/kernel/security/lockdown: %s",
				     facts->lockdown);
}

/* ---- how accesses are seen ---- */

static bool injects(const struct nm_facts *facts)
{
	return facts->config && facts->config->sampling.inject != NM_INJECT_NONE;
}

static void say_how_to_see(const struct nm_facts *facts, struct nm_findings *findings)
{
	bool offered = facts->balancing.error == 0;
	bool soft_dirty = facts->soft_dirty.error == 0 && facts->soft_dirty.value;

	if (offered)
		nm_findings_remedy(findings,
				   "sampling.inject = \"numa_balancing\" in the configuration (on "
				   "while numa-migrd runs), or sysctl kernel.numa_balancing=%d",
				   nm_balancing_with(facts->balancing.value, true));
	else
		nm_findings_remedy(findings, "boot a kernel with CONFIG_NUMA_BALANCING");
	if (!offered && soft_dirty)
		nm_findings_remedy(findings, "or sampling.inject = \"soft_dirty\" for targets that "
					     "are named");
}

static void say_balancing_off(const char *name, const struct nm_facts *facts,
			      struct nm_findings *findings)
{
	const char *is =
		nm_balancing_off_text(facts->balancing.error ? -1 : facts->balancing.value);

	if (injects(facts)) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"kernel.numa_balancing is %s; numa-migrd makes accesses visible "
				"itself (sampling.inject = \"%s\").",
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
	nm_findings_add(
		findings, name,
		nm_facts_weigh(facts, homes ? NM_SEVERITY_WARNING : NM_SEVERITY_PROBLEM),
		"kernel.numa_balancing is %s, sampling.inject \"none\", and no hardware shows "
		"accesses: only the first touch of each page is seen, so %s.",
		is,
		homes ? "homes are given by where threads run, whatever node their memory is on"
		      : "hardly anything would be moved");
	say_how_to_see(facts, findings);
}

/* On: its hinting faults are what is seen, and it moves pages and threads as well. */
static void say_balancing_on(const char *name, const struct nm_facts *facts,
			     struct nm_findings *findings)
{
	bool yields = nm_facts_moves_pages(facts) &&
		      facts->config->pages.numa_balancing == NM_BALANCING_YIELD;

	nm_findings_add(
		findings, name, yields ? NM_SEVERITY_NOTE : NM_SEVERITY_FINE,
		"kernel.numa_balancing is %" PRId64 ": %s.", facts->balancing.value,
		yields ? "the kernel moves pages, so that numa-migrd leaves pages to it and "
			 "moves threads only"
		       : "its page faults show who accesses what, and the kernel moves pages "
			 "and threads as well, within the masks set here");
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
				"Whether the kernel balances by itself is not seen.");
		nm_facts_say_unseen(facts, findings, "/proc/sys/kernel/numa_balancing",
				    facts->balancing.error);
	} else if (!nm_facts_balances(facts)) {
		say_balancing_off(name, facts, findings);
	} else {
		say_balancing_on(name, facts, findings);
	}
}

void nm_check_soft_dirty(const char *name, const struct nm_facts *facts,
			 struct nm_findings *findings)
{
	bool wanted = facts->config && facts->config->sampling.inject == NM_INJECT_SOFT_DIRTY;

	if (facts->soft_dirty.error) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"Whether soft-dirty tracking works was not seen.");
		nm_findings_evidence(findings, "/proc/self/clear_refs: %s",
				     facts->soft_dirty.error == -ENODATA
					     ? "not tried"
					     : strerrordesc_np(-facts->soft_dirty.error));
		return;
	}
	if (facts->soft_dirty.value) {
		nm_findings_add(
			findings, name, NM_SEVERITY_FINE,
			"Soft-dirty tracking works: sampling.inject = \"soft_dirty\" would.");
		nm_findings_evidence(findings,
				     "a page of our own was write-protected, and faulted");
		return;
	}
	nm_findings_add(
		findings, name, wanted ? NM_SEVERITY_PROBLEM : NM_SEVERITY_NOTE,
		"Soft-dirty tracking has no effect here, so sampling.inject = \"soft_dirty\" "
		"%s.",
		wanted ? "does nothing" : "would do nothing");
	nm_findings_evidence(findings, "a page of our own was write-protected, and did not fault");
	nm_findings_remedy(findings, "boot a kernel with CONFIG_MEM_SOFT_DIRTY, or use "
				     "sampling.inject = \"numa_balancing\"");
}

/* ---- at what cost ---- */

void nm_check_clock(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies"};
	const char *clock = facts->clocksource[0] ? facts->clocksource : "unknown";
	bool cycles = facts->trial == NM_TRIAL_DONE
			      ? facts->tried.has_cycles
			      : facts->has_counters && !facts->top_frequency_khz.error;
	bool is_slow = false;

	for (size_t i = 0; i < NM_ARRAY_SIZE(slow); i++)
		is_slow |= strcmp(clock, slow[i]) == 0;
	nm_findings_add(findings, name,
			is_slow ? nm_facts_weigh(facts, NM_SEVERITY_WARNING) : NM_SEVERITY_FINE,
			"Samples are taken by %s and carry times of clock source %s%s.",
			cycles ? "the CPU's cycles" : "the kernel's clock", clock,
			is_slow ? ", which is slow to read: each sample costs more" : "");
	nm_findings_evidence(findings, "current_clocksource of /sys/devices/system/clocksource");
	if (is_slow)
		nm_findings_remedy(
			findings, "see in the kernel's log why it left the TSC (\"clocksource:\"); "
				  "often a firmware fault");
}

void nm_check_rate(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	const struct nm_reading *rate = &facts->sample_rate;

	if (rate->error) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"How many samples the kernel allows is not seen.");
		nm_facts_say_unseen(facts, findings, "/proc/sys/kernel/perf_event_max_sample_rate",
				    rate->error);
		return;
	}
	enum nm_severity severity = rate->value < RATE_LEAST	 ? NM_SEVERITY_WARNING
				    : rate->value < RATE_SHIPPED ? NM_SEVERITY_NOTE
								 : NM_SEVERITY_FINE;
	nm_findings_add(findings, name, nm_facts_weigh(facts, severity),
			"The kernel allows %" PRId64 " samples per second and CPU%s.", rate->value,
			severity == NM_SEVERITY_FINE
				? ""
				: ": it has lowered that, as taking samples took long");
	nm_findings_evidence(findings, "kernel.perf_event_max_sample_rate");
	if (!facts->cpu_time_percent.error)
		nm_findings_evidence(findings, "kernel.perf_cpu_time_max_percent is %" PRId64,
				     facts->cpu_time_percent.value);
	if (severity == NM_SEVERITY_WARNING)
		nm_findings_remedy(findings, "find out what made it slow (often a virtual machine "
					     "that was stopped), then sysctl "
					     "kernel.perf_event_max_sample_rate=100000");
}

void nm_check_watchdog(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	bool takes = facts->nmi_watchdog.error == 0 && facts->nmi_watchdog.value > 0;

	if (!takes || !facts->has_counters) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"The NMI watchdog takes no counter from numa-migrd.");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"The NMI watchdog holds one counter of each CPU.");
	nm_findings_evidence(findings, "kernel.nmi_watchdog is %" PRId64,
			     facts->nmi_watchdog.value);
	nm_findings_remedy(findings, "only where counters do not suffice (see \"trial\"): sysctl "
				     "kernel.nmi_watchdog=0");
}

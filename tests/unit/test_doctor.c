/* SPDX-License-Identifier: MIT */
/* Findings derived from facts: each fault gives exactly its finding. */
#include "../support/test.h"

#include <stdint.h>
#include <string.h>

#include "doctor_fixture.h"

/* One fault added to the healthy machine. */
struct spoiled {
	const char *check;
	enum nm_severity severity;
	const char *words; /* contained in the finding */
	void (*spoil)(struct nm_facts *facts);
	bool outlook_too; /* it changes the decisions of numa-migrd */
};

static void without_topology(struct nm_facts *facts)
{
	nm_topology_free(facts->topology);
	facts->topology = NULL;
	(void)snprintf(facts->topology_error, sizeof(facts->topology_error), "no /sys\n\x1b[31m");
}

static void without_page_nodes(struct nm_facts *facts)
{
	facts->knows_homes = false;
}

static void put_into_container(struct nm_facts *facts)
{
	facts->container = "/.dockerenv";
}

static void virtualise(struct nm_facts *facts)
{
	facts->virtual_machine = true;
}

static void old_cgroups(struct nm_facts *facts)
{
	facts->unified = false;
}

static void give_cpusets(struct nm_facts *facts)
{
	facts->nr_cgroups = 9;
	facts->nr_cpusets = 2;
	(void)snprintf(facts->cpuset_path, sizeof(facts->cpuset_path), "/a\nb");
}

/* Automatic NUMA balancing still shows accesses. */
static void without_hardware(struct nm_facts *facts)
{
	facts->sources[0] = '\0';
	facts->has_counters = false;
	facts->tried.memory[0] = '\0';
}

static void a_counter_is_busy(struct nm_facts *facts)
{
	(void)snprintf(facts->problems[facts->nr_problems++], sizeof(facts->problems[0]),
		       "Sampling of stores: stop the other profiler.");
}

static void nothing_opens(struct nm_facts *facts)
{
	facts->trial = NM_TRIAL_REFUSED;
	facts->trial_error = -EACCES;
	(void)snprintf(facts->trial_text, sizeof(facts->trial_text), "Do this.");
}

static void events_are_not_listed(struct nm_facts *facts)
{
	facts->events_error = -ENOENT;
	facts->trial = NM_TRIAL_UNKNOWN;
	facts->sources[0] = '\0';
}

static void an_ordinary_user_asks(struct nm_facts *facts)
{
	nothing_opens(facts);
	facts->root = false;
}

static void daemon_runs(struct nm_facts *facts)
{
	facts->trial = NM_TRIAL_DAEMON_RUNS;
}

static void daemon_has_few_samples(struct nm_facts *facts)
{
	daemon_runs(facts);
	set_word(facts->running_source, "clock+ibs");
	facts->config->threads.policy = NM_POLICY_IMAR2;
	facts->threads_measured = 3;
	facts->threads_undersampled = 4;
}

static void strict_without_helper(struct nm_facts *facts)
{
	facts->paranoid.value = 3;
	facts->helper_socket.value = 0;
	set_word(facts->unit.active, "active");
}

static void without_perf(struct nm_facts *facts)
{
	facts->paranoid.error = -ENOENT;
}

static void paranoid_unseen(struct nm_facts *facts)
{
	facts->paranoid.error = -EACCES;
	facts->root = false;
}

static void lock_down(struct nm_facts *facts)
{
	set_word(facts->lockdown, "confidentiality");
}

static void without_sampling_source(struct nm_facts *facts)
{
	without_hardware(facts);
	facts->balancing.value = 0;
	facts->config->threads.policy = NM_POLICY_LBMA;
}

static void batch_pages_yield_to_processes(struct nm_facts *facts)
{
	facts->config->threads.policy = NM_POLICY_LBMA;
	facts->config->pages.policy = NM_PAGES_EXCLUSIVITY;
}

static void bad_config(struct nm_facts *facts)
{
	nm_config_free(facts->config);
	facts->config = NULL;
	facts->config_error = -EINVAL;
	assert_int_equal(nm_config_parse("a.conf", "pages = 7000", 12, &facts->config_errors,
					 &facts->config),
			 -EINVAL);
}

static void unreadable_config(struct nm_facts *facts)
{
	facts->config_error = -EACCES;
}

static void dry(struct nm_facts *facts)
{
	facts->config->general.dry_run = true;
}

static void idle_config(struct nm_facts *facts)
{
	facts->config->threads.policy = NM_POLICY_NONE;
}

static void record_is_left(struct nm_facts *facts)
{
	facts->left_record.value = 1;
}

static void service_failed(struct nm_facts *facts)
{
	set_word(facts->unit.active, "failed");
}

static void unit_is_broken(struct nm_facts *facts)
{
	set_word(facts->unit.load, "bad-setting");
}

static void without_unit(struct nm_facts *facts)
{
	facts->unit = (struct nm_facts_unit){0};
}

static void sample_nothing(struct nm_facts *facts)
{
	facts->config->sampling.source = NM_SOURCE_NONE;
}

static void without_file(struct nm_facts *facts)
{
	facts->config_missing = true;
}

static void metrics_are_refused(struct nm_facts *facts)
{
	set_word(facts->config->metrics.file, "/srv/metrics.prom");
	facts->metrics_error = -EROFS;
}

static void bpf_schedules(struct nm_facts *facts)
{
	facts->bpf_scheduler = true;
	set_word(facts->scheduler, "rusty_1.0");
}

static void isolate_page_tables(struct nm_facts *facts)
{
	without_hardware(facts);
	facts->spe_device = facts->spe_driver = true;
}

static void without_spe_driver(struct nm_facts *facts)
{
	without_hardware(facts);
	facts->spe_device = true;
}

static const struct spoiled spoiled[] = {
	{"outlook", NM_SEVERITY_PROBLEM, "zoneinfo", without_page_nodes, false},
	{"outlook", NM_SEVERITY_PROBLEM, "no /sys\\x0a\\x1b[31m", without_topology, false},
	{"virtual", NM_SEVERITY_WARNING, "PID namespace", put_into_container, false},
	{"virtual", NM_SEVERITY_NOTE, "hypervisor", virtualise, false},
	{"cpusets", NM_SEVERITY_WARNING, "unified_cgroup_hierarchy", old_cgroups, false},
	{"cpusets", NM_SEVERITY_NOTE, "/a\\x0ab", give_cpusets, false},
	{"scheduler", NM_SEVERITY_WARNING, "rusty_1.0", bpf_schedules, false},
	{"hardware", NM_SEVERITY_WARNING, "page faults are used", without_hardware, false},
	{"hardware", NM_SEVERITY_WARNING, "page-table isolation (KPTI) hides it",
	 isolate_page_tables, false},
	{"hardware", NM_SEVERITY_WARNING, "switches off the protection", isolate_page_tables,
	 false},
	{"hardware", NM_SEVERITY_WARNING, "modprobe arm_spe_pmu", without_spe_driver, false},
	{"hardware", NM_SEVERITY_WARNING, "stop the other profiler", a_counter_is_busy, false},
	{"hardware", NM_SEVERITY_PROBLEM, "Do this.", nothing_opens, true},
	{"hardware", NM_SEVERITY_UNSEEN, "install the package", events_are_not_listed, false},
	{"hardware", NM_SEVERITY_UNSEEN, "as root", an_ordinary_user_asks, false},
	{"hardware", NM_SEVERITY_UNSEEN, "numa-migrctl status", daemon_runs, false},
	{"hardware", NM_SEVERITY_WARNING, "overhead_percent", daemon_has_few_samples, false},
	{"privilege", NM_SEVERITY_PROBLEM, "numa-migrd-helper.socket", strict_without_helper, true},
	{"privilege", NM_SEVERITY_PROBLEM, "CONFIG_PERF_EVENTS", without_perf, true},
	{"privilege", NM_SEVERITY_UNSEEN, "as root", paranoid_unseen, false},
	{"privilege", NM_SEVERITY_PROBLEM, "lockdown=integrity", lock_down, true},
	{"balancing", NM_SEVERITY_NOTE, "manage", batch_pages_yield_to_processes, false},
	{"service", NM_SEVERITY_PROBLEM, "numa-migrd --restore", record_is_left, false},
	{"service", NM_SEVERITY_PROBLEM, "journalctl -u numa-migrd", service_failed, false},
	{"service", NM_SEVERITY_PROBLEM, "not loaded the unit of numa-migrd: bad-setting",
	 unit_is_broken, false},
	{"service", NM_SEVERITY_NOTE, "install the package", without_unit, false},
	{"configuration", NM_SEVERITY_PROBLEM, "a.conf:1: pages", bad_config, true},
	{"configuration", NM_SEVERITY_UNSEEN, "as root", unreadable_config, false},
	{"configuration", NM_SEVERITY_WARNING, "sampling.source", sample_nothing, false},
	{"configuration", NM_SEVERITY_WARNING, "the helper permits nothing", without_file, false},
	{"configuration", NM_SEVERITY_WARNING, "/srv/metrics.prom", metrics_are_refused, false},
	{"configuration", NM_SEVERITY_NOTE, "dry_run", dry, false},
	{"configuration", NM_SEVERITY_NOTE, "threads.policy", idle_config, false},
};

/* Also reported on the healthy machine. */
static bool is_expected(const char *check, const struct spoiled *one)
{
	if (strcmp(check, "service") == 0)
		return true;
	return one && (strcmp(check, one->check) == 0 ||
		       (one->outlook_too && strcmp(check, "outlook") == 0));
}

static void check_others(const struct nm_findings *findings, const struct spoiled *one)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct nm_finding *finding = &findings->items[i];
		bool fine = finding->severity == NM_SEVERITY_FINE;
		if (!fine && !is_expected(finding->check, one))
			fail_msg("%s spoiled, and %s is %s: %s", one ? one->check : "nothing",
				 finding->check, nm_severity_name(finding->severity),
				 finding->what);
	}
}

/* Facts used by several checks. */
static bool is_wide(const struct spoiled *one)
{
	return one->spoil == without_topology || one->spoil == without_unit;
}

TEST(a_healthy_machine_has_no_findings)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();
	size_t count;

	const struct nm_doctor_check *checks = nm_doctor_checks(&count);
	nm_doctor_examine(facts, &findings);
	assert_int_equal(findings.count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(findings.items[i].check, checks[i].name);
	check_others(&findings, NULL);
	assert_true(finding_contains(
		find(&findings, "outlook"),
		"would give each process a home node and move its memory there once."));
	free_facts(facts);
}

static void assert_short(const struct nm_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		if (strlen(findings->items[i].what) > 120)
			fail_msg("longer than 120 characters: %s", findings->items[i].what);
}

TEST(the_outlook_is_short_with_every_policy)
{
	static void (*const spoils[])(struct nm_facts *) = {virtualise, without_sampling_source,
							    dry};
	for (unsigned i = 0; i < 1U << NM_ARRAY_SIZE(spoils); i++)
		for (unsigned policy = NM_POLICY_NONE; policy <= NM_POLICY_AUTO; policy++)
			for (unsigned pages = 0; pages <= NM_PAGES_EXCLUSIVITY; pages++) {
				nm_auto(nm_findings_clear) struct nm_findings findings = {0};
				if (policy == NM_POLICY_AUTO && pages == NM_PAGES_EXCLUSIVITY)
					continue; /* refused */
				struct nm_facts *facts = good_facts();
				for (unsigned k = 0; k < NM_ARRAY_SIZE(spoils); k++)
					if (i >> k & 1)
						spoils[k](facts);
				facts->config->threads.policy = (enum nm_thread_policy)policy;
				facts->config->pages.policy = (enum nm_page_policy)pages;
				nm_doctor_examine(facts, &findings);
				assert_short(&findings);
				free_facts(facts);
			}
}

TEST(each_fault_is_found)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(spoiled); i++) {
		nm_auto(nm_findings_clear) struct nm_findings findings = {0};
		struct nm_facts *facts = good_facts();
		spoiled[i].spoil(facts);
		nm_doctor_examine(facts, &findings);
		const struct nm_finding *finding = find(&findings, spoiled[i].check);
		if (finding->severity != spoiled[i].severity ||
		    !finding_contains(finding, spoiled[i].words))
			fail_msg("fault %zu: %s is %s: %s / %s / %s", i, spoiled[i].check,
				 nm_severity_name(finding->severity), finding->what,
				 finding->evidence, finding->remedy);
		assert_short(&findings);
		if (!is_wide(&spoiled[i]))
			check_others(&findings, &spoiled[i]);
		free_facts(facts);
	}
}

/* A finding above a note names a remedy, and an unknown fact names the means to make it
 * readable. */
TEST(every_fault_has_a_remedy)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(spoiled); i++) {
		nm_auto(nm_findings_clear) struct nm_findings findings = {0};
		struct nm_facts *facts = good_facts();
		spoiled[i].spoil(facts);
		nm_doctor_examine(facts, &findings);
		for (size_t k = 1; k < findings.count; k++)
			if (findings.items[k].severity > NM_SEVERITY_UNSEEN &&
			    !findings.items[k].remedy)
				fail_msg("no remedy: %s", findings.items[k].what);
		free_facts(facts);
	}
}

TEST(missing_accesses_limit_the_outlook)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();

	without_sampling_source(facts);
	nm_doctor_examine(facts, &findings);
	assert_int_equal(find(&findings, "balancing")->severity, NM_SEVERITY_PROBLEM);
	assert_int_equal(find(&findings, "outlook")->severity, NM_SEVERITY_PROBLEM);
	assert_true(finding_contains(find(&findings, "outlook"), "; few samples."));
	free_facts(facts);
}

/* A home is assigned by where threads run, and memory is migrated there. */
TEST(homes_are_assigned_without_accesses)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();

	without_sampling_source(facts);
	facts->config->threads.policy = NM_POLICY_AUTO;
	nm_doctor_examine(facts, &findings);
	assert_int_equal(find(&findings, "balancing")->severity, NM_SEVERITY_WARNING);
	assert_true(finding_contains(find(&findings, "balancing"), "by where their threads run"));
	assert_int_equal(find(&findings, "outlook")->severity, NM_SEVERITY_NOTE);
	assert_true(finding_contains(find(&findings, "outlook"),
				     "move its memory there; few samples."));
	free_facts(facts);
}

/* The advice does not enable balancing on a kernel without it. */
TEST(without_balancing_another_way_is_named)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();

	without_sampling_source(facts);
	facts->balancing.error = -ENOENT;
	nm_doctor_examine(facts, &findings);
	assert_int_equal(find(&findings, "balancing")->severity, NM_SEVERITY_PROBLEM);
	assert_true(finding_contains(find(&findings, "balancing"), "CONFIG_NUMA_BALANCING"));
	assert_false(finding_contains(find(&findings, "balancing"), "sysctl"));
	free_facts(facts);
}

/* Balancing of tiers causes no faults on ordinary memory. */
TEST(tiering_shows_no_accesses)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();

	without_sampling_source(facts);
	facts->balancing.value = 2;
	nm_doctor_examine(facts, &findings);
	assert_int_equal(find(&findings, "balancing")->severity, NM_SEVERITY_PROBLEM);
	assert_true(finding_contains(find(&findings, "balancing"), "is 2 (tiers"));
	assert_true(
		finding_contains(find(&findings, "balancing"), "sysctl kernel.numa_balancing=3"));
	assert_int_equal(find(&findings, "outlook")->severity, NM_SEVERITY_PROBLEM);
	free_facts(facts);
}

TEST(injection_provides_a_sampling_source)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();

	without_sampling_source(facts);
	facts->config->sampling.inject = NM_INJECT_NUMA_BALANCING;
	nm_doctor_examine(facts, &findings);
	assert_int_equal(find(&findings, "balancing")->severity, NM_SEVERITY_FINE);
	assert_int_equal(find(&findings, "outlook")->severity, NM_SEVERITY_FINE);
	free_facts(facts);
}

/* On a single node there are no findings about moves. */
TEST(one_node_needs_nothing)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();

	nm_topology_free(facts->topology);
	facts->topology = machine_topology(1, 4);
	facts->knows_homes = false;
	without_sampling_source(facts);
	strict_without_helper(facts);
	nm_doctor_examine(facts, &findings);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_PROBLEM), 0);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_WARNING), 0);
	assert_true(finding_contains(find(&findings, "outlook"), "one NUMA node"));
	free_facts(facts);
}

/* Nodes of CXL memory, HBM or GPUs have no CPUs. */
TEST(one_node_with_cpus_needs_nothing)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();

	nm_topology_free(facts->topology);
	facts->topology = machine_topology(3, 6);
	hwloc_bitmap_zero(facts->topology->nodes[1].cpus);
	hwloc_bitmap_zero(facts->topology->nodes[2].cpus);
	without_sampling_source(facts);
	nm_doctor_examine(facts, &findings);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_PROBLEM), 0);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_WARNING), 0);
	assert_true(finding_contains(find(&findings, "outlook"), "one NUMA node has CPUs"));
	free_facts(facts);
}

TEST(programs_that_gain_nothing_are_named)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();
	nm_check_workload("none", facts, &findings);
	facts->shared_machines = (struct nm_facts_program){2, 77};
	facts->databases = (struct nm_facts_program){1, 78};
	facts->pinned = (struct nm_facts_program){3, 79};
	nm_check_workload("some", facts, &findings);
	facts->config->pages.also = NM_ALSO_SHARED;
	nm_check_workload("shared", facts, &findings);
	assert_int_equal(find(&findings, "none")->severity, NM_SEVERITY_FINE);
	const struct nm_finding *some = find(&findings, "some");
	assert_int_equal(some->severity, NM_SEVERITY_NOTE);
	assert_true(finding_contains(some, "Nothing to gain here for 6 large programs."));
	assert_true(finding_contains(some, "2 virtual machines with shared memory"));
	assert_true(finding_contains(some, "such as PID 77"));
	assert_true(finding_contains(some, "1 processes of PostgreSQL"));
	assert_true(finding_contains(some, "3 programs that are bound"));
	assert_true(finding_contains(find(&findings, "shared"), "for 3 large programs."));
	free_facts(facts);
}

TEST(one_node_has_nothing_to_gain)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();
	nm_topology_free(facts->topology);
	facts->topology = machine_topology(1, 8);
	nm_check_workload("one", facts, &findings);
	assert_true(finding_contains(find(&findings, "one"), "Nothing to gain here: one node"));
	free_facts(facts);
}

TEST(a_trial_and_its_result_are_reported)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();
	facts->trial_state[0] = '\0';
	nm_check_trial("unknown", facts, &findings);
	set_word(facts->running_source, "clock+ibs");
	nm_check_trial("none", facts, &findings);
	set_word(facts->trial_state, "over");
	set_word(facts->trial_result, "no difference found");
	nm_check_trial("over", facts, &findings);
	assert_int_equal(find(&findings, "unknown")->severity, NM_SEVERITY_UNSEEN);
	assert_int_equal(find(&findings, "none")->severity, NM_SEVERITY_NOTE);
	assert_true(finding_contains(find(&findings, "none"), "numa-migrctl trial start"));
	assert_int_equal(find(&findings, "over")->severity, NM_SEVERITY_FINE);
	assert_true(finding_contains(find(&findings, "over"), "The trial: over."));
	assert_true(finding_contains(find(&findings, "over"), "no difference found"));
	free_facts(facts);
}

/* One finding reports that systemd is unreachable, and the other checks work without it. */
TEST(other_checks_work_without_systemd)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();
	unsigned count = 0;

	facts->unit = (struct nm_facts_unit){.error = -ENOENT};
	nm_doctor_examine(facts, &findings);
	for (size_t i = 0; i < findings.count; i++)
		count += finding_contains(&findings.items[i], "systemd did not answer");
	assert_int_equal(count, 1);
	assert_int_equal(find(&findings, "service")->severity, NM_SEVERITY_UNSEEN);
	assert_int_equal(nm_findings_count(&findings, NM_SEVERITY_PROBLEM), 0);
	free_facts(facts);
}

/* /proc may hide processes of other users; hidden ones are not reported as absent. */
/* As Debian's kernel is, and as the package leaves the machine. */
TEST(the_helper_starts_with_the_service)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();

	strict_without_helper(facts);
	set_word(facts->unit.active, "inactive");
	nm_doctor_examine(facts, &findings);
	assert_int_equal(find(&findings, "privilege")->severity, NM_SEVERITY_FINE);
	assert_true(finding_contains(find(&findings, "privilege"), "starts with the service"));
	assert_int_equal(find(&findings, "outlook")->severity, NM_SEVERITY_FINE);
	free_facts(facts);
}

TEST(a_user_with_hidden_processes)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct nm_facts *facts = good_facts();

	facts->hidden = true;
	facts->unit = (struct nm_facts_unit){.error = -ENOENT};
	nm_doctor_examine(facts, &findings);
	assert_int_equal(find(&findings, "service")->severity, NM_SEVERITY_UNSEEN);
	assert_true(finding_contains(find(&findings, "service"), "cannot see whether"));
	nm_findings_clear(&findings);
	set_word(facts->unit.active, "active");
	nm_doctor_examine(facts, &findings);
	assert_int_equal(find(&findings, "service")->severity, NM_SEVERITY_FINE);
	free_facts(facts);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Findings derived from facts. Each line of a script spoils a healthy machine, and compares all
 * findings that are not fine, and texts of some. */
#define TEAR_DOWN clear
#include "../support/test.h"

#include "doctor_words.h"

static struct nm_findings findings;

static int clear(void **state)
{
	(void)state;
	nm_facts_clear(&facts);
	nm_findings_clear(&findings);
	return 0;
}

static void set_machine(unsigned nodes, unsigned cpus)
{
	nm_topology_free(facts.topology);
	facts.topology = nodes ? machine_topology(nodes, cpus) : NULL;
}

WORD(healthy)
{
	clear(NULL);
	set_machine(4, 8);
	facts = (struct nm_facts){.root = true,
				  .topology = facts.topology,
				  .knows_homes = true,
				  .unified = true,
				  .paranoid.value = 2,
				  .balancing.value = 1,
				  .sources = "pebs",
				  .has_counters = true,
				  .trial = NM_TRIAL_DONE,
				  .tried = {"cycles+pebs", "pebs", .cycles = 1, .accesses = 1},
				  .helper_socket.value = 1,
				  .unit = {0, true, "loaded", "active"},
				  .trial_state = "over"};
	assert_int_equal(nm_config_default(&facts.config), 0);
}

ACTION(machine, set_machine(U(0), U(1)))
ACTION(cpuless, hwloc_bitmap_zero(facts.topology->nodes[U(0)].cpus))
ACTION(isolate, hwloc_bitmap_clr(facts.topology->usable, U(0)))
ACTION(container, facts.container = "/.dockerenv")
ACTION(problem, strcpy(facts.problems[facts.nr_problems++], step_rest(step)))
ACTION(metrics_file, strcpy(facts.config->metrics.file, step->word[0]))
ACTION(no_unit, facts.unit = (struct nm_facts_unit){.error = step->count ? -ENOENT : 0})
KNOB(page_policy, facts.config->pages.policy)
NAMES(page_policy, {"exclusivity", NM_PAGES_EXCLUSIVITY})
KNOB(also, facts.config->pages.also)
NAMES(also, {"shared", NM_ALSO_SHARED})
KNOB(source, facts.config->sampling.source)
NAMES(source, {"none", NM_SOURCE_NONE})
KNOB(inject, facts.config->sampling.inject)
NAMES(inject, {"numa-balancing", NM_INJECT_NUMA_BALANCING})
KNOB(dry_run, facts.config->general.dry_run)

/* Automatic NUMA balancing still shows accesses. */
#define NO_HARDWARE "healthy; write sources; write tried.memory; set has_counters = 0; "
#define NO_SOURCE NO_HARDWARE "set kernel_balancing = 0; set policy = lbma; "
#define REFUSED                                                                                    \
	"healthy; set tried = refused; set tried_error = EACCES; write trial_text Do this.; "

WORD(bad_config)
{
	nm_config_free(facts.config);
	facts.config = NULL;
	facts.config_error =
		nm_config_parse("a.conf", "pages = 7000", 12, &facts.config_errors, &facts.config);
}

/* A finding is short. One above a note names a remedy, and an unknown fact the means to make it
 * readable; the outlook sums the others up. */
static void examine(void)
{
	nm_findings_clear(&findings);
	nm_doctor_examine(&facts, &findings);
	for (size_t i = 0; i < findings.count; i++) {
		const struct nm_finding *finding = &findings.items[i];
		if (strlen(finding->what) > 120)
			fail_msg("longer than 120 characters: %s", finding->what);
		if (i > 0 && finding->severity > NM_SEVERITY_UNSEEN && !finding->remedy)
			fail_msg("no remedy: %s", finding->what);
	}
}

/* The checks, or those that are not fine with their severities. */
static const char *show(bool all)
{
	static char line[400];
	size_t used = 0;
	examine();
	for (size_t i = 0; i < findings.count; i++) {
		const struct nm_finding *finding = &findings.items[i];
		if (!all && finding->severity == NM_SEVERITY_FINE)
			continue;
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s%s%s",
					 used ? ", " : "", finding->check, all ? "" : " ",
					 all ? "" : nm_severity_name(finding->severity));
	}
	return used ? line : NULL;
}

/* All texts of a finding. */
static const char *text_of(const struct step *step)
{
	static char text[2000];
	examine();
	for (size_t i = 0; i < findings.count; i++) {
		const struct nm_finding *finding = &findings.items[i];
		if (strcmp(finding->check, step->name) == 0)
			snprintf(text, sizeof(text), "%s / %s / %s", finding->what,
				 finding->evidence ? finding->evidence : "",
				 finding->remedy ? finding->remedy : "");
	}
	return text;
}

TEXT(checks, show(true))
TEXT(found, show(false))
TEXT(outlook, text_of(step))
TEXT(workload, text_of(step))
TEXT(cpusets, text_of(step))
TEXT(virtual, text_of(step))
TEXT(scheduler, text_of(step))
TEXT(hardware, text_of(step))
TEXT(privilege, text_of(step))
TEXT(balancing, text_of(step))
TEXT(service, text_of(step))
TEXT(configuration, text_of(step))
TEXT(trial, text_of(step))

SCRIPT(a_healthy_machine_has_no_findings,
       "healthy; found = none; outlook ~ would give each process a home node and move its memory "
       "there once.",
       "checks = outlook, workload, cpusets, virtual, scheduler, hardware, privilege, balancing, "
       "service, configuration, trial; outlook ~ 4 nodes, the farthest at distance 20",
       "cpusets !~ isolated")

SCRIPT(the_machine_is_examined,
       "healthy; set knows_homes = 0; found = outlook problem; outlook ~ zoneinfo",
       "healthy; machine 0 0; write topology_error no /sys\n\x1b[31m; found = outlook problem",
       "outlook ~ no /sys\\x0a\\x1b[31m",
       "healthy; container; found = virtual warning; virtual ~ PID namespace; virtual ~ "
       "/.dockerenv exists",
       "healthy; set virtual_machine = 1; found = virtual note; virtual ~ hypervisor",
       "healthy; set unified = 0; found = cpusets warning; cpusets ~ unified_cgroup_hierarchy",
       "healthy; set cgroups = 9; set cpusets_set = 2; write cpuset_path /a\nb",
       "found = cpusets note; cpusets ~ restrict 2 of 9; cpusets ~ /a\\x0ab; isolate 3; isolate 5",
       "cpusets ~ never used: 2; set cpusets_set = 0; found = none; cpusets ~ never used: 2",
       "healthy; set bpf_scheduler = 1; write scheduler rusty_1.0; found = scheduler warning",
       "scheduler ~ rusty_1.0; scheduler ~ sched_ext/state")

SCRIPT(sampling_is_examined, NO_HARDWARE "found = hardware warning",
       "hardware ~ page faults are used",
       NO_HARDWARE "set spe_device = 1; set spe_driver = 1; found = hardware warning",
       "hardware ~ page-table isolation (KPTI) hides it; hardware ~ switches off the protection",
       NO_HARDWARE "set spe_device = 1; found = hardware warning; hardware ~ modprobe arm_spe_pmu",
       "healthy; problem Sampling of stores: stop the other profiler.; found = hardware warning",
       "hardware ~ stop the other profiler",
       REFUSED "found = outlook problem, hardware problem; hardware ~ Do this.",
       REFUSED "set root = 0; found = hardware unseen; hardware ~ as root",
       "healthy; set events_error = ENOENT; set tried = unknown; write sources",
       "found = hardware unseen; hardware ~ install the package",
       "healthy; set tried = daemon-runs; found = hardware unseen",
       "hardware ~ numa-migrctl status",
       "write running_source clock+ibs; found = none; set policy = imar2",
       "set threads_measured = 3; set threads_undersampled = 3; found = none",
       "set threads_undersampled = 4; found = hardware warning; hardware ~ overhead_percent")

SCRIPT(privileges_are_examined,
       "healthy; set paranoid = 3; found = none; privilege ~ its socket exists",
       "set helper_socket = 0; found = outlook problem, privilege problem",
       "privilege ~ numa-migrd-helper.socket", "healthy; set helper_socket = 0; found = none",
       "healthy; set paranoid_error = ENOENT; found = outlook problem, privilege problem",
       "privilege ~ CONFIG_PERF_EVENTS",
       "healthy; set paranoid_error = EACCES; set root = 0; found = privilege unseen",
       "privilege ~ as root",
       "healthy; write lockdown confidentiality; found = outlook problem, privilege problem",
       "privilege ~ lockdown=integrity")

/* As Debian's kernel is, and as the package leaves the machine. */
SCRIPT(the_helper_starts_with_the_service,
       "healthy; set paranoid = 3; set helper_socket = 0; write unit.active inactive",
       "found = service note; privilege ~ starts with the service")

SCRIPT(the_service_is_examined,
       "healthy; write unit.active inactive; found = service note; service ~ does not run; service "
       "~ start numa-migrd",
       "set left_record = 1; found = service problem; service ~ numa-migrd --restore",
       "healthy; write unit.active failed; found = service problem",
       "service ~ journalctl -u numa-migrd",
       "healthy; write unit.load bad-setting; write unit.active inactive; found = service problem",
       "service ~ not loaded the unit of numa-migrd: bad-setting",
       "healthy; no_unit; found = service note; service ~ install the package")

/* One finding reports that systemd is unreachable, and the other checks work without it. */
SCRIPT(other_checks_work_without_systemd,
       "healthy; no_unit unknown; found = service unseen; service ~ systemd did not answer",
       "service ~ systemctl status numa-migrd")

/* /proc may hide processes of other users; hidden ones are not reported as absent. */
SCRIPT(a_user_with_hidden_processes,
       "healthy; set hidden = 1; no_unit unknown; found = workload unseen, service unseen",
       "service ~ cannot see whether; workload ~ as root; write unit.active active; found = "
       "workload unseen")

SCRIPT(the_configuration_is_examined,
       "healthy; bad_config; found = outlook problem, configuration problem",
       "configuration ~ a.conf:1: pages",
       "healthy; set config_error = EACCES; found = configuration unseen",
       "configuration ~ as root", "healthy; set source = none; found = configuration warning",
       "configuration ~ sampling.source",
       "healthy; set config_missing = 1; found = configuration warning",
       "configuration ~ the helper permits nothing",
       "healthy; metrics_file /srv/metrics.prom; set metrics_error = EROFS",
       "found = configuration warning; configuration ~ /srv/metrics.prom",
       "healthy; set dry_run = 1; found = configuration note; configuration ~ dry_run",
       "healthy; set policy = none; found = configuration note; configuration ~ threads.policy")

SCRIPT(missing_accesses_limit_the_outlook,
       NO_SOURCE "found = outlook problem, hardware warning, balancing problem",
       "outlook ~ few samples.")

/* A home is assigned by where threads run, and memory is migrated there. */
SCRIPT(homes_are_assigned_without_accesses,
       NO_SOURCE "set policy = auto; found = outlook note, hardware warning, balancing warning",
       "balancing ~ by where their threads run; outlook ~ move its memory there",
       "outlook ~ few samples.")

SCRIPT(balancing_is_examined, "healthy; set policy = lbma; set page_policy = exclusivity",
       "found = balancing note; balancing ~ manage",
       /* The advice does not enable balancing on a kernel without it. */
       NO_SOURCE "set kernel_balancing_error = ENOENT",
       "found = outlook problem, hardware warning, balancing problem",
       "balancing ~ CONFIG_NUMA_BALANCING; balancing !~ sysctl",
       /* Balancing of tiers causes no faults on ordinary memory. */
       NO_SOURCE "set kernel_balancing = 2",
       "found = outlook problem, hardware warning, balancing problem",
       "balancing ~ is 2 (tiers; balancing ~ sysctl kernel.numa_balancing=3",
       NO_SOURCE "set inject = numa-balancing; found = hardware warning")

/* On a single node there are no findings about moves. */
SCRIPT(one_node_needs_nothing,
       NO_SOURCE "machine 1 4; set knows_homes = 0; set paranoid = 3; set helper_socket = 0",
       "found = outlook note, workload note, hardware note, privilege note, balancing note",
       "outlook ~ one NUMA node; outlook ~ node interleaving",
       "workload ~ Nothing to gain here: one node")

/* Nodes of CXL memory, HBM or GPUs have no CPUs. */
SCRIPT(one_node_with_cpus_needs_nothing, NO_SOURCE "machine 2 6; cpuless 1",
       "found = outlook note, workload note, hardware note, balancing note",
       "outlook ~ one NUMA node has CPUs; outlook !~ interleaving")

SCRIPT(programs_that_gain_nothing_are_named,
       "healthy; set virtual_machines = 2; set virtual_machine_pid = 77; set databases = 1",
       "set database_pid = 78; set pinned = 3; set pinned_pid = 79; found = workload note",
       "workload ~ Nothing to gain here for 6 large programs.; workload ~ such as PID 77; workload "
       "~ numatune",
       "workload ~ 2 virtual machines with shared memory; workload ~ 1 processes of PostgreSQL",
       "workload ~ 3 programs that are bound; set also = shared",
       "workload ~ for 3 large programs.; workload !~ PostgreSQL")

SCRIPT(a_trial_and_its_result_are_reported, "healthy; write trial_state; found = trial unseen",
       "write running_source clock+ibs; found = trial note; trial ~ numa-migrctl trial start",
       "write trial_state over; write trial_result no difference found; found = none",
       "trial ~ The trial: over.; trial ~ no difference found")

/* With any faults and every policy; homes and "exclusivity" together are refused. */
TEST(the_outlook_is_short)
{
	static const char *const faults[] = {"set virtual_machine = 1", "set kernel_balancing = 0",
					     "set dry_run = 1",
					     "write sources; write tried.memory"};
	for (unsigned i = 0; i < 1U << NM_ARRAY_SIZE(faults); i++)
		for (unsigned policy = NM_POLICY_NONE; policy <= NM_POLICY_AUTO; policy++)
			for (unsigned pages = 0; pages <= NM_PAGES_EXCLUSIVITY; pages++) {
				if (policy == NM_POLICY_AUTO && pages == NM_PAGES_EXCLUSIVITY)
					continue;
				script_run_line(0, "healthy");
				for (unsigned k = 0; k < NM_ARRAY_SIZE(faults); k++)
					if (i >> k & 1)
						script_run_line(i, faults[k]);
				facts.config->threads.policy = (enum nm_thread_policy)policy;
				facts.config->pages.policy = (enum nm_page_policy)pages;
				examine();
			}
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Facts gathered from a synthetic machine, and from this one. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>
#include <unistd.h>

#include "../../src/ctl/doctor/gather.h"
#include "doctor_fixture.h"

struct tree {
	char root[64];
	struct nm_facts facts;
};

static void put(const struct tree *tree, const char *path, const char *text)
{
	char whole[512];

	assert_int_equal(machine_make_directory(tree->root, path), 0);
	(void)snprintf(whole, sizeof(whole), "%s/%s", tree->root, path);
	FILE *file = fopen(whole, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	assert_non_null(tree);
	(void)snprintf(tree->root, sizeof(tree->root), "/tmp/numa-migrd-doctor-XXXXXX");
	assert_non_null(mkdtemp(tree->root));
	put(tree, "proc/uptime", "1.0 1.0\n");
	*state = tree;
	return 0;
}

static int tear_down(void **state)
{
	struct tree *tree = *state;

	nm_facts_clear(&tree->facts);
	(void)nftw(tree->root, machine_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	free(tree);
	return 0;
}

static void gather_with(struct tree *tree, const char *program)
{
	const struct nm_doctor_options options = {.root_path = tree->root, .program = program};

	assert_int_equal(nm_facts_gather(&options, &tree->facts), 0);
}

static void gather(struct tree *tree)
{
	gather_with(tree, NULL);
}

/* A program that prints `json` if it is called for a list, and its exit status. */
static void gather_list(struct tree *tree, const char *json, int status)
{
	char path[128], text[1024];

	(void)snprintf(text, sizeof(text),
		       "#!/bin/sh\n[ \"$1 $2\" = \"--list-events --json\" ] || exit 1\n"
		       "echo '%s'\nexit %d\n",
		       json, status);
	put(tree, "list", text);
	(void)snprintf(path, sizeof(path), "%s/list", tree->root);
	assert_int_equal(chmod(path, 0755), 0);
	gather_with(tree, path);
}

TEST(an_empty_machine_is_valid)
{
	struct tree *tree = *state;
	struct nm_facts *facts = &tree->facts;

	gather(tree);
	assert_int_equal(facts->paranoid.error, -ENOENT);
	assert_int_equal(facts->balancing.error, -ENOENT);
	assert_int_equal(facts->daemon_pid, 0);
	assert_int_equal(facts->unit.error, -ENOTCONN);
	assert_non_null(facts->config); /* a missing file means the defaults */
	assert_int_equal(facts->config_error, 0);
	assert_false(facts->unified);
	assert_int_equal(facts->left_record.error, -ENOENT);
	assert_int_equal(facts->trial, NM_TRIAL_UNKNOWN);
	assert_string_equal(facts->sources, "");
}

static int metrics_error_of(struct tree *tree, const char *file)
{
	char text[256];

	nm_facts_clear(&tree->facts);
	(void)snprintf(text, sizeof(text), "metrics = { file = \"%s\"; };\n", file);
	put(tree, "etc/numa-migrd.conf", text);
	gather(tree);
	assert_int_equal(tree->facts.config_error, 0);
	return tree->facts.metrics_error;
}

/* The unit makes all folders read-only except its own, which exist once it has run. */
TEST(the_folder_of_metrics_is_checked)
{
	struct tree *tree = *state;

	put(tree, "srv/other", "");
	assert_int_equal(metrics_error_of(tree, "/var/cache/numa-migrd/a.prom"), 0);
	assert_int_equal(metrics_error_of(tree, "/var/lib/none/a.prom"), -ENOENT);
	assert_int_equal(metrics_error_of(tree, "/srv/a.prom"), -EROFS);
	assert_int_equal(metrics_error_of(tree, "/srv/other/a.prom"), -ENOTDIR);
	assert_int_equal(metrics_error_of(tree, "/var/cache/numa-migrd-of-another/a.prom"),
			 -ENOENT);
}

/* The defaults apply to the service, but the helper requires the file of root. */
TEST(a_missing_file_is_noticed)
{
	struct tree *tree = *state;

	gather(tree);
	assert_true(tree->facts.config_missing);
	nm_facts_clear(&tree->facts);
	put(tree, "etc/numa-migrd.conf", "");
	gather(tree);
	assert_false(tree->facts.config_missing);
}

TEST(the_scheduler_is_read)
{
	struct tree *tree = *state;

	put(tree, "sys/kernel/sched_ext/state", "disabled\n");
	gather(tree);
	assert_false(tree->facts.bpf_scheduler);
	nm_facts_clear(&tree->facts);
	put(tree, "sys/kernel/sched_ext/state", "enabled\n");
	put(tree, "sys/kernel/sched_ext/root/ops", "lavd\x1b[31m\n");
	gather(tree);
	assert_true(tree->facts.bpf_scheduler);
	assert_string_equal(tree->facts.scheduler, "lavd\\x1b[31m");
}

TEST(hidden_spe_is_found)
{
	struct tree *tree = *state;

	put(tree, "sys/bus/platform/devices/serial8250", "");
	gather(tree);
	assert_false(tree->facts.spe_device || tree->facts.spe_driver);
	nm_facts_clear(&tree->facts);
	put(tree, "sys/bus/platform/devices/arm,spe-v1", "");
	put(tree, "sys/bus/platform/drivers/arm_spe", "");
	gather(tree);
	assert_true(tree->facts.spe_device && tree->facts.spe_driver);
}

TEST(settings_are_read)
{
	struct tree *tree = *state;
	struct nm_facts *facts = &tree->facts;

	put(tree, "proc/sys/kernel/perf_event_paranoid", "-1\n");
	put(tree, "proc/sys/kernel/numa_balancing", "1\n");
	put(tree, "proc/cpuinfo", "flags\t: fpu hypervisor lahf\n");
	put(tree, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	gather(tree);
	assert_int_equal(facts->paranoid.error, 0);
	assert_int_equal(facts->paranoid.value, -1);
	assert_int_equal(facts->balancing.value, 1);
	assert_true(facts->virtual_machine);
	assert_string_equal(facts->lockdown, "integrity");
}

/* Any process can choose this name. */
/* SECURITY: impostor */
TEST(a_process_of_that_name_is_not_the_service)
{
	struct tree *tree = *state;
	char path[PATH_MAX];

	if (geteuid() != 0) {
		print_message("needs root to own files of another user: skipped\n");
		skip();
	}
	put(tree, "proc/12/comm", "numa-migrd\n");
	put(tree, "proc/13/comm", "numa-migrd-help\n");
	for (unsigned pid = 12; pid <= 13; pid++) {
		(void)snprintf(path, sizeof(path), "%s/proc/%u", tree->root, pid);
		assert_int_equal(chown(path, 4242, 4242), 0);
	}
	gather(tree);
	assert_int_equal(tree->facts.daemon_pid, 0);
	assert_int_equal(tree->facts.helper_pid, 0);
}

#define STATUS(rss, shared, cpus)                                                                  \
	"Name:\tx\nVmRSS:\t " rss " kB\nRssAnon:\t 1 kB\nRssShmem:\t " shared                      \
	" kB\nCpus_allowed_list:\t" cpus "\n"
#define ALL "0-31"

/* With four nodes of eight CPUs. */
TEST(programs_that_gain_nothing_are_found)
{
	static const struct {
		const char *comm, *status;
	} programs[] = {
		{"qemu-system-x86", STATUS("4000000", "3900000", ALL)},
		{"qemu-system-x86", STATUS("4000000", "100", ALL)}, /* private memory */
		{"postgres", STATUS("4000000", "3900000", ALL)},
		{"postgres", STATUS("40000", "39000", ALL)}, /* small */
		{"other", STATUS("4000000", "3900000", ALL)},
		{"other", STATUS("4000000", "0", "8-11")},
		{"other", STATUS("4000000", "0", "7-8")},
		{"other", "no status"},
	};
	struct tree *tree = *state;
	struct nm_facts *facts = &tree->facts;
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	char path[64];
	assert_int_equal(nm_platform_files_new(tree->root, &platform), 0);
	facts->topology = machine_topology(4, 32);
	for (unsigned i = 0; i < NM_ARRAY_SIZE(programs); i++) {
		(void)snprintf(path, sizeof(path), "proc/%u/status", 100 + i);
		put(tree, path, programs[i].status);
		nm_gather_program(platform, 100 + i, programs[i].comm, facts);
	}
	assert_int_equal(facts->shared_machines.count, 1);
	assert_int_equal(facts->shared_machines.pid, 100);
	assert_int_equal(facts->databases.count, 1);
	assert_int_equal(facts->databases.pid, 102);
	assert_int_equal(facts->pinned.count, 1);
	assert_int_equal(facts->pinned.pid, 105);
}

TEST(the_service_is_found)
{
	struct tree *tree = *state;
	struct nm_facts *facts = &tree->facts;

	put(tree, "proc/12/comm", "numa-migrd\n");
	put(tree, "proc/13/comm", "numa-migrd-help\n");
	gather(tree);
	assert_int_equal(facts->daemon_pid, 12);
	assert_int_equal(facts->helper_pid, 13);
}

TEST(file_contents_are_escaped)
{
	struct tree *tree = *state;

	put(tree, "sys/kernel/security/lockdown", "none [\x1b[31m\xff]\n");
	gather(tree);
	assert_string_equal(tree->facts.lockdown, "\\x1b[31m\\xff");
}

TEST(cpusets_are_found_at_any_depth)
{
	struct tree *tree = *state;

	put(tree, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
	put(tree, "sys/fs/cgroup/a.slice/cpuset.cpus", "\n");
	put(tree, "sys/fs/cgroup/a.slice/b.service/cpuset.cpus", "0-3\n");
	put(tree, "sys/fs/cgroup/c.slice/cpuset.cpus", "\n");
	put(tree, "sys/fs/cgroup/a.slice/b.service/memory.stat", "\n");
	gather(tree);
	assert_true(tree->facts.unified);
	assert_int_equal(tree->facts.nr_cgroups, 3);
	assert_int_equal(tree->facts.nr_cpusets, 1);
	assert_string_equal(tree->facts.cpuset_path, "/a.slice/b.service");
	assert_false(tree->facts.cgroups_cut);
}

TEST(remaining_mappings_are_found)
{
	struct tree *tree = *state;

	put(tree, "run/numa-migrd/ledger", "x\n");
	put(tree, "run/numa-migrd-helper.sock", "");
	put(tree, "etc/numa-migrd.conf", "threads: { policy = \"imar2\"; };\n");
	gather(tree);
	assert_int_equal(tree->facts.left_record.value, 1);
	assert_int_equal(tree->facts.helper_socket.value, 1);
	assert_int_equal(tree->facts.config_error, 0);
	assert_int_equal(tree->facts.config->threads.policy, NM_POLICY_IMAR2);
}

TEST(all_configuration_errors_are_reported)
{
	struct tree *tree = *state;

	put(tree, "etc/numa-migrd.conf",
	    "threads: { policy = 7; }; verify: { control_percent = -1; };\n");
	gather(tree);
	assert_null(tree->facts.config);
	assert_int_equal(tree->facts.config_errors.count, 2);
}

TEST(events_are_listed)
{
	struct tree *tree = *state;
	struct nm_facts *facts = &tree->facts;

	gather_list(
		tree,
		"{\"table\": \"skx\", \"sources\": [\"pebs\", \"pmu\"], \"counters\": true, "
		"\"trial\": {\"name\": \"cycles+pebs\", \"memory\": "
		"\"pebs\", \"cycles\": true, \"accesses\": true, \"problems\": [\"A.\", \"B.\"]}}",
		0);
	assert_int_equal(facts->events_error, 0);
	assert_string_equal(facts->table, "skx");
	assert_string_equal(facts->sources, "pebs, pmu");
	assert_true(facts->has_counters);
	assert_int_equal(facts->trial, NM_TRIAL_DONE);
	assert_string_equal(facts->tried.name, "cycles+pebs");
	assert_string_equal(facts->tried.memory, "pebs");
	assert_true(facts->tried.cycles && facts->tried.accesses && !facts->tried.flops);
	assert_int_equal(facts->nr_problems, 2);
	assert_string_equal(facts->problems[1], "B.");
}

TEST(a_refused_trial_is_reported)
{
	struct tree *tree = *state;

	gather_list(tree, "{\"trial\": {\"errno\": 13, \"text\": \"No.\"}}", 0);
	assert_int_equal(tree->facts.trial, NM_TRIAL_REFUSED);
	assert_int_equal(tree->facts.trial_error, -EACCES);
	assert_string_equal(tree->facts.trial_text, "No.");
}

/* The daemon may need the counters that a trial would open. */
TEST(nothing_is_tried_beside_the_daemon)
{
	struct tree *tree = *state;
	char path[128];

	put(tree, "proc/12/comm", "numa-migrd\n");
	put(tree, "list", "#!/bin/sh\ncase \"$*\" in *--no-trial*) echo {};; esac\n");
	(void)snprintf(path, sizeof(path), "%s/list", tree->root);
	assert_int_equal(chmod(path, 0755), 0);
	gather_with(tree, path);
	assert_int_equal(tree->facts.events_error, 0);
	assert_int_equal(tree->facts.trial, NM_TRIAL_DAEMON_RUNS);
}

TEST(a_program_that_fails_lists_nothing)
{
	struct tree *tree = *state;

	gather_list(tree, "{\"sources\": [\"pebs\"]}", 1);
	assert_int_equal(tree->facts.events_error, -EPROTO);
	nm_facts_clear(&tree->facts);
	gather_list(tree, "{\"sources\": [", 0);
	assert_int_equal(tree->facts.events_error, -EPROTO);
	nm_facts_clear(&tree->facts);
	gather_with(tree, "/nonexistent");
	assert_int_equal(tree->facts.events_error, -ENOENT);
	assert_string_equal(tree->facts.sources, "");
}

TEST_BETWEEN(NULL, NULL, an_unreadable_proc_is_reported)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	const struct nm_doctor_options options = {.root_path = "/nonexistent"};

	assert_int_equal(nm_doctor_run(&options, &findings, NULL), -ENOENT);
	assert_int_equal(findings.count, 0);
}

/* On any machine and for any user, each check reports one finding in printable text. */
TEST_BETWEEN(NULL, NULL, this_machine)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	const struct nm_doctor_options options = {
		.root_path = "/", .program = NM_DAEMON_BUILT, .running_source = "a\nb"};
	size_t count;

	(void)nm_doctor_checks(&count);
	assert_int_equal(nm_doctor_run(&options, &findings, NULL), 0);
	assert_int_equal(findings.count, count);
	for (size_t i = 0; i < count; i++) {
		const char *what = findings.items[i].what;
		assert_int_equal(what[strlen(what) - 1], '.');
		for (const char *at = what; *at; at++)
			assert_true((unsigned char)*at >= ' ');
	}
}

RUN_TESTS()

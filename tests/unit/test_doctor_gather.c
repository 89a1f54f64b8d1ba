/* SPDX-License-Identifier: MIT */
/* Facts gathered from a synthetic machine, and from this one. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/ctl/doctor/gather.h"
#include "doctor_words.h"
#include "fixture.h"

static char root[FIXTURE_PATH];

static int set_up(void **state)
{
	(void)state;
	fixture_make(root, sizeof(root));
	fixture_file(root, "proc/uptime", "1.0 1.0\n");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_facts_clear(&facts);
	fixture_remove(root);
	return 0;
}

/* ---- words ---- */

/* file proc/12/comm numa-migrd: one line, in which "|" stands for ";" */
WORD(file)
{
	char text[512];
	snprintf(text, sizeof(text), "%s\n",
		 step->count > 1 ? strchr(step_rest(step), ' ') + 1 : "");
	for (char *at = text; (at = strchr(at, '|')); at++)
		*at = ';';
	fixture_file(root, step->word[0], text);
}

/* By another user. */
WORD(foreign)
{
	char path[FIXTURE_PATH + 64];
	if (geteuid() != 0) {
		print_message("needs root to own files of another user: skipped\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/%s", root, step->word[0]);
	assert_int_equal(chown(path, 4242, 4242), 0);
}

static void gather(const char *program)
{
	const struct nm_doctor_options options = {.root_path = root,
						  .program = program,
						  .threads_measured = 3,
						  .threads_undersampled = 4,
						  .trial_state = "a\nb"};
	nm_facts_clear(&facts);
	assert_int_equal(nm_facts_gather(&options, &facts), 0);
}

WORD(mode)
{
	char path[FIXTURE_PATH + 64];
	snprintf(path, sizeof(path), "%s/%s", root, step->word[0]);
	assert_int_equal(chmod(path, (mode_t)strtoul(step->word[1], NULL, 8)), 0);
}

ACTION(gather, gather(step->count ? step->word[0] : NULL))

/* list *--json* 0 {}: with a program that, called with such options, prints this and exits so */
WORD(list)
{
	char path[FIXTURE_PATH + 8], text[1024];
	const char *json = strchr(strchr(step_rest(step), ' ') + 1, ' ') + 1;
	snprintf(text, sizeof(text),
		 "#!/bin/sh\ncase \"$*\" in %s) echo '%s'; exit %s;; esac\nexit 1\n", step->word[0],
		 json, step->word[1]);
	fixture_file(root, "list", text);
	snprintf(path, sizeof(path), "%s/list", root);
	assert_int_equal(chmod(path, 0755), 0);
	gather(path);
}

/* program 100 qemu-system-x86 rss 4000000 shared 100 cpus 0-31, of four nodes of eight CPUs */
WORD(program)
{
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	char path[64], text[256] = "no status";
	if (!facts.topology)
		facts.topology = machine_topology(4, 32);
	snprintf(path, sizeof(path), "proc/%s/status", step->word[0]);
	if (step->count > 2)
		snprintf(text, sizeof(text),
			 "Name:\tx\nVmRSS:\t %s kB\nRssAnon:\t 1 kB\nRssShmem:\t %s kB\n"
			 "Cpus_allowed_list:\t%s\n",
			 step->word[3], step->word[5], step->word[7]);
	fixture_file(root, path, text);
	snprintf(path, sizeof(path), "proc/%s/comm", step->word[0]);
	fixture_file(root, path, step->word[1]);
	assert_int_equal(nm_platform_files_new(root, &platform), 0);
	nm_gather_program(platform, U(0), step->word[1], &facts);
}

/* ---- the machine ---- */

/* A missing file of the configuration means the defaults. */
SCRIPT(an_empty_machine_is_valid,
       "gather; paranoid_error = ENOENT; kernel_balancing_error = ENOENT; daemon_pid = 0",
       "unit_error = ENOTCONN; configured = 1; config_error = 0; unified = 0",
       "left_record_error = ENOENT; tried = unknown; text sources = none; text lockdown = none",
       "virtual_machine = 0; bpf_scheduler = 0; spe_device = 0; spe_driver = 0; helper_pid = 0",
       "threads_measured = 3; threads_undersampled = 4; text trial_state = a\\x0ab")

#define METRICS(file) "file etc/numa-migrd.conf metrics = { file = \"" file "\"| }|; gather; "

/* The unit makes all folders read-only except its own, which exist once it has run. */
SCRIPT(the_folder_of_metrics_is_checked,
       "file srv/other; " METRICS("/var/cache/numa-migrd/a.prom") "metrics_error = 0",
       METRICS("/var/lib/none/a.prom") "metrics_error = ENOENT; config_error = 0",
       METRICS("/srv/a.prom") "metrics_error = EROFS",
       METRICS("/srv/other/a.prom") "metrics_error = ENOTDIR",
       METRICS("/var/cache/numa-migrd-of-another/a.prom") "metrics_error = ENOENT",
       "file var/cache/numa-migrd/x; " METRICS(
	       "/var/cache/numa-migrd/a.prom") "metrics_error = EACCES",
       "mode var/cache/numa-migrd 0772; gather; metrics_error = EACCES",
       "mode var/cache/numa-migrd 0777; gather; metrics_error = 0")

/* The defaults apply to the service, but the helper requires the file of root. */
SCRIPT(a_missing_file_is_noticed,
       "gather; config_missing = 1; file etc/numa-migrd.conf; gather; config_missing = 0")

SCRIPT(the_scheduler_is_read, "file sys/kernel/sched_ext/state disabled; gather; bpf_scheduler = 0",
       "file sys/kernel/sched_ext/state enabled; file sys/kernel/sched_ext/root/ops lavd\x1b[31m",
       "gather; bpf_scheduler = 1; text scheduler = lavd\\x1b[31m")

SCRIPT(hidden_spe_is_found,
       "file sys/bus/platform/devices/serial8250; gather; spe_device = 0; spe_driver = 0",
       "file sys/bus/platform/devices/arm,spe-v1; gather; spe_device = 1; spe_driver = 0",
       "file sys/bus/platform/drivers/arm_spe; gather; spe_device = 1; spe_driver = 1")

SCRIPT(settings_are_read,
       "file proc/sys/kernel/perf_event_paranoid -1; file proc/sys/kernel/numa_balancing 1",
       "file proc/cpuinfo flags\t: fpu hypervisor lahf",
       "file sys/kernel/security/lockdown none [integrity] confidentiality; gather",
       "paranoid_error = 0; paranoid = -1; kernel_balancing = 1; virtual_machine = 1",
       "text lockdown = integrity; file proc/sys/kernel/numa_balancing x",
       "file sys/kernel/security/lockdown none [\x1b[31m\xff]; gather",
       "text lockdown = \\x1b[31m\\xff; kernel_balancing_error = ENODATA")

SCRIPT(cpusets_are_found_at_any_depth,
       "file sys/fs/cgroup/cgroup.controllers cpuset cpu; file sys/fs/cgroup/a.slice/cpuset.cpus",
       "file sys/fs/cgroup/a.slice/b.service/cpuset.cpus 0-3",
       "file sys/fs/cgroup/c.slice/cpuset.cpus",
       "file sys/fs/cgroup/a.slice/b.service/memory.stat; gather; unified = 1; cgroups = 3",
       "cpusets_set = 1; text cpuset_path = /a.slice/b.service; cgroups_cut = 0")

/* ---- programs ---- */

SCRIPT(the_service_is_found,
       "file proc/12/comm numa-migrd; file proc/13/comm numa-migrd-help; gather",
       "daemon_pid = 12; helper_pid = 13")

/* Any process can choose this name. */
/* SECURITY: impostor */
SCRIPT(a_process_of_that_name_is_not_the_service,
       "file proc/12/comm numa-migrd; file proc/13/comm numa-migrd-help; foreign proc/12",
       "foreign proc/13; gather; daemon_pid = 0; helper_pid = 0")

/* 101 has private memory, and 103 is small. */
SCRIPT(programs_that_gain_nothing_are_found,
       "program 100 qemu-system-x86 rss 4000000 shared 3900000 cpus 0-31",
       "program 101 qemu-system-x86 rss 4000000 shared 100 cpus 0-31",
       "program 102 postgres rss 4000000 shared 3900000 cpus 0-31",
       "program 103 postgres rss 40000 shared 39000 cpus 0-31",
       "program 104 other rss 4000000 shared 3900000 cpus 0-31",
       "program 105 other rss 4000000 shared 0 cpus 8-11",
       "program 106 other rss 4000000 shared 0 cpus 7-8; program 107 other",
       "program 108 other rss 4000000 shared 0 cpus x",
       "virtual_machines = 1; virtual_machine_pid = 100; databases = 1; database_pid = 102",
       "pinned = 1; pinned_pid = 105; gather; virtual_machines = 1; databases = 1")

/* ---- the service ---- */

SCRIPT(remaining_mappings_are_found,
       "file run/numa-migrd/ledger x; file run/numa-migrd-helper.sock; gather",
       "left_record = 1; helper_socket = 1")

SCRIPT(the_configuration_is_read,
       "file etc/numa-migrd.conf threads: { policy = \"imar2\"| }|; gather; config_error = 0",
       "policy = imar2",
       "file etc/numa-migrd.conf threads: { policy = 7| }| verify: { control_percent = -1| }|",
       "gather; configured = 0; config_errors = 2")

/* ---- events ---- */

#define LIST "list --list-events?--json* 0 "

SCRIPT(events_are_listed,
       LIST "{\"table\": \"skx\", \"sources\": [\"pebs\", \"pmu\"], \"counters\": true, \"trial\": "
	    "{\"name\": \"cycles+pebs\", \"memory\": \"pebs\", \"cycles\": true, \"accesses\": "
	    "true, \"problems\": [\"A.\", \"B.\"]}}",
       "events_error = 0; text table = skx; text sources = pebs, pmu; has_counters = 1",
       "tried = done; text tried.name = cycles+pebs; text tried.memory = pebs; tried_cycles = 1",
       "tried_accesses = 1; tried_flops = 0; problems = 2; text problems[1] = B.",
       LIST "{\"trial\": {\"problems\": [\"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", "
	    "\"9\"]}}",
       "problems = 8")

SCRIPT(a_refused_trial_is_reported, LIST "{\"trial\": {\"errno\": 13, \"text\": \"No.\"}}",
       "tried = refused; tried_error = EACCES; text trial_text = No.")

/* The daemon may need the counters that a trial would open. */
SCRIPT(nothing_is_tried_beside_the_daemon,
       "file proc/12/comm numa-migrd; list *--no-trial* 0 {}; events_error = 0",
       "tried = daemon-runs")

SCRIPT(a_program_that_fails_lists_nothing,
       "list *--json* 1 {\"sources\": [\"pebs\"]}; events_error = EPROTO",
       LIST "{\"sources\": [; events_error = EPROTO", "gather /nonexistent",
       "events_error = ENOENT; text sources = none")

/* ---- both parts ---- */

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

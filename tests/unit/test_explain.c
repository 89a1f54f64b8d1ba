/* SPDX-License-Identifier: MIT */
/* The reason why a process is not managed, and that org.numamigrd1(5) lists all of them. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sched.h>

#include "task_table_fixture.h"

static char explanation[NM_EXPLANATION_BYTES];

static void assert_explained(uint32_t pid, enum nm_eligibility eligibility, const char *text)
{
	const struct nm_process *process = nm_tasks_process(tasks, pid);
	assert_non_null(process);
	enum nm_eligibility found = nm_tasks_refusal(tasks, process);
	if (found != eligibility)
		fail_msg("process %u: %s, not %s", pid, nm_eligibility_reason(found)->name,
			 nm_eligibility_reason(eligibility)->name);
	nm_tasks_explain(tasks, process, found, explanation);
	if (!strstr(explanation, text))
		fail_msg("\"%s\" does not contain \"%s\"", explanation, text);
}

static void configure(const char *text)
{
	struct nm_config_errors errors = {0};
	struct nm_config *changed = NULL;
	assert_int_equal(nm_config_parse("test", text, strlen(text), &errors, &changed), 0);
	nm_tasks_configure(tasks, topology, changed);
	nm_config_free(config);
	config = changed;
}

TEST(a_managed_process_is_managed)
{
	run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_MANAGED, "it is managed");
}

TEST(the_pattern_that_excludes_it_is_named)
{
	configure("targets: { exclude = ( { command = \"other\"; }, { command = \"prog1*\"; user = "
		  "\"1000\"; } ); };");
	run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_EXCLUDED,
			 "targets.exclude matches it: { command = \"prog1*\"; user = \"1000\"; }");
	assert_explained(200, NM_ELIGIBILITY_MANAGED, "");
}

/* Patterns are foreign text for the terminal of the reader. */
TEST(a_pattern_is_escaped)
{
	configure("targets: { exclude = ( { command = \"prog\x1b*\"; }, { command = \"*0\"; unit = "
		  "\"*\"; }, { cgroup = \"/\"; } ); };");
	run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_EXCLUDED, "{ cgroup = \"/\"; }");
	configure("targets: { exclude = ( { command = \"[p\x1b]rog*\"; } ); };");
	run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_EXCLUDED, "[p\\x1b]rog*");
}

TEST(what_is_not_included_is_no_target)
{
	configure("targets: { include = ( { command = \"prog2*\"; } ); };");
	run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_NOT_TARGET, "no pattern of targets.include");
	configure("targets: { cgroup_attribute = \"only\"; };");
	run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_NOT_TARGET, "targets.cgroup_attribute is \"only\"");
}

/* The CPU is blamed only if it is the CPU. */
TEST(memory_and_cpu_are_told_apart)
{
	fake_get(fake, 200)->rss_kb = 2048;
	run_all(0.9);
	assert_explained(200, NM_ELIGIBILITY_SMALL, "2.0 MiB is less than targets.min_rss_mb");
	assert_explained(200, NM_ELIGIBILITY_SMALL, "4.0 MiB)");
	assert_null(strstr(explanation, "CPU"));
	fake_get(fake, 200)->rss_kb = 1U << 20;
	configure("targets: { min_cpu_percent = 95.0; min_rss_mb = 3; };");
	fake_sleep(fake, 11000); /* it is due to be read */
	run_all(0.9);
	assert_explained(200, NM_ELIGIBILITY_IDLE, "less than targets.min_cpu_percent (95)");
	fake_get(fake, 200)->rss_kb = 1024;
	fake_sleep(fake, 11000);
	run_all(0.9);
	assert_explained(200, NM_ELIGIBILITY_SMALL, "targets.min_rss_mb (3.0 MiB)");
}

/* It is managed from that age on, and not only when it is read again for another reason. */
TEST(a_young_program_waits_for_its_age)
{
	run_all(0.5);
	const uint64_t began_ns = nm_tasks_process(tasks, 100)->started_ns;
	double age_s = (double)(fake->now_ns - began_ns) / (double)NM_NSEC_PER_SEC;
	char text[64];
	(void)snprintf(text, sizeof(text), "targets: { min_age_s = %.3f; };", age_s + 5);
	configure(text);
	run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_YOUNG, "s ago, less than targets.min_age_s (");
	for (unsigned i = 0; i < 3; i++)
		run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_YOUNG, "");
	for (unsigned i = 0; i < 4; i++)
		run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_MANAGED, "");
}

/* The reason does not contradict the CPU use that it shows. */
TEST(a_process_that_becomes_busy_is_checked_again)
{
	for (unsigned i = 0; i < 12; i++)
		run_all(0.02);
	assert_explained(100, NM_ELIGIBILITY_IDLE, "it used 6.0 % of a CPU, less than");
	run_all(0.9);
	const struct nm_process *process = nm_tasks_process(tasks, 100);
	if (process->eligibility == NM_ELIGIBILITY_IDLE)
		assert_explained(100, NM_ELIGIBILITY_IDLE, "it is about to be checked");
	for (unsigned i = 0; i < 10; i++)
		run_all(0.9);
	assert_explained(100, NM_ELIGIBILITY_MANAGED, "");
}

TEST(reasons_of_threads_are_found_without_the_first)
{
	for (uint32_t tid = 101; tid <= 102; tid++)
		fake_get(fake, tid)->policy = SCHED_FIFO;
	fake_exit(fake, 100);
	run_all(0.5);
	assert_explained(100, NM_ELIGIBILITY_REALTIME, "real-time");
	fake_pin(fake, 200, fake_cpus(0, 1));
	fake_sleep(fake, 11000);
	run_all(0.5);
	assert_explained(200, NM_ELIGIBILITY_PINNED, "allows only one node");
	assert_int_equal(nm_tasks_refusal(tasks, nm_tasks_process(tasks, 200)),
			 NM_ELIGIBILITY_PINNED);
}

TEST(a_release_is_the_reason)
{
	run_all(0.5);
	assert_int_equal(nm_tasks_release(tasks, 100), 0);
	assert_explained(100, NM_ELIGIBILITY_RELEASED, "released");
}

/* ---- the manual page ---- */

TEST_BETWEEN(NULL, NULL, every_reason_is_documented)
{
	FILE *file = fopen(NM_SOURCE_DIR "/man/org.numamigrd1.5", "re");
	nm_autofree char *page = calloc(1, 1 << 16);
	assert_true(file && page && fread(page, 1, (1 << 16) - 1, file) > 0);
	(void)fclose(file);
	for (unsigned i = NM_ELIGIBILITY_MANAGED + 1; i < NM_ELIGIBILITY_MAX; i++) {
		const struct nm_eligibility_reason *reason =
			nm_eligibility_reason((enum nm_eligibility)i);
		char line[256];
		(void)snprintf(line, sizeof(line), "\n.It Li %s\n%s\n", reason->name, reason->text);
		if (!strstr(page, line))
			fail_msg("org.numamigrd1(5) lacks:%s", line);
	}
}

RUN_TESTS()

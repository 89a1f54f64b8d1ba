/* SPDX-License-Identifier: MIT */
/* The reason why a process is not managed, and that org.numamigrd1(5) lists all of them. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sched.h>

#include "task_table_words.h"

/* "small: its resident memory…": with commas for semicolons, which end a step. */
static const char *explain(uint32_t pid)
{
	static char text[NM_EXPLANATION_BYTES + 40];
	char sentence[NM_EXPLANATION_BYTES];
	const struct nm_process *process = nm_tasks_process(tasks, pid);
	assert_non_null(process);
	const enum nm_eligibility found = nm_tasks_refusal(tasks, process);
	nm_tasks_explain(tasks, process, found, sentence);
	snprintf(text, sizeof(text), "%s: %s", nm_eligibility_reason(found)->name, sentence);
	for (char *at = text; (at = strchr(at, ';'));)
		*at = ',';
	return text;
}

TEXT(explained, explain(U(0)))

/* min_age 5: programs are managed 5 s after the age that process 100 has now */
WORD(min_age)
{
	const uint64_t age_ns = fake->now_ns - nm_tasks_process(tasks, 100)->started_ns;
	config->targets.min_age_s = (double)age_ns / (double)NM_NSEC_PER_SEC + N(0);
	nm_tasks_configure(tasks, topology, config);
}

SCRIPT(a_managed_process_is_managed, "run 0.5; explained 100 = managed: it is managed")

SCRIPT(the_pattern_that_excludes_it_is_named,
       "targets exclude = ( { command = \"other\" }, { command = \"prog1*\" user = \"1000\" } )",
       "run 0.5; explained 100 ~ excluded: targets.exclude matches it: { command = \"prog1*\", "
       "user = \"1000\", }",
       "explained 200 ~ managed")

/* Patterns are foreign text for the terminal of the reader. */
SCRIPT(a_pattern_is_escaped,
       "targets exclude = ( { command = \"prog\x1b*\" }, { command = \"*0\", unit = \"*\" }, "
       "{ cgroup = \"/\" } )",
       "run 0.5; explained 100 ~ { cgroup = \"/\", }",
       "targets exclude = ( { command = \"[p\x1b]rog*\" } ); run 0.5",
       "explained 100 ~ [p\\x1b]rog*")

SCRIPT(what_is_not_included_is_no_target, "targets include = ( { command = \"prog2*\" } ); run 0.5",
       "explained 100 ~ not-target: no pattern of targets.include",
       "targets cgroup_attribute = \"only\"; run 0.5",
       "explained 100 ~ not-target: targets.cgroup_attribute is \"only\"")

/* The CPU is blamed only if it is the CPU. A process is due to be read after eleven seconds. */
SCRIPT(memory_and_cpu_are_told_apart,
       "set rss_kb 200 = 2048; run 0.9; explained 200 ~ 2.0 MiB is less than targets.min_rss_mb",
       "explained 200 ~ 4.0 MiB); explained 200 !~ CPU; set rss_kb 200 = 1M",
       "targets min_cpu_percent = 95.0 min_rss_mb = 3; sleep_ms 11000; run 0.9",
       "explained 200 ~ less than targets.min_cpu_percent (95)",
       "explained 200 ~ little-cpu; set rss_kb 200 = 1024; sleep_ms 11000; run 0.9",
       "explained 200 ~ small; explained 200 ~ targets.min_rss_mb (3.0 MiB)")

/* It is managed from that age on, and not only when it is read again for another reason. */
SCRIPT(a_young_program_waits_for_its_age,
       "run 0.5; min_age 5; run 0.5; explained 100 ~ s ago, less than targets.min_age_s (",
       "run 0.5 3; explained 100 ~ young; run 0.5 4; explained 100 ~ managed")

/* The reason does not contradict the CPU use that it shows. */
SCRIPT(a_process_that_becomes_busy_is_checked_again,
       "run 0.02 12; explained 100 ~ little-cpu: it used 6.0 % of a CPU, less than; run 0.9",
       "explained 100 ~ it is about to be checked; run 0.9 10; explained 100 ~ managed")

SCRIPT(reasons_of_threads_are_found_without_the_first,
       "set scheduler 101 = fifo; set scheduler 102 = fifo; exit 100; run 0.5",
       "explained 100 ~ real-time: its threads are real-time; pin 200 0-1; sleep_ms 11000; run 0.5",
       "explained 200 ~ pinned: the CPU affinity of its threads allows only one node")

SCRIPT(a_release_is_the_reason,
       "run 0.5; release 100 = 0; explained 100 ~ released: it was released")

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

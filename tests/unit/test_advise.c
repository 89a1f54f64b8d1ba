/* SPDX-License-Identifier: MIT */
/* Advice to the owner of a program, derived from its metrics. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/ctl/advise/rules.h"

#define NODES 2U
#define THREADS 8U
#define REGIONS 4U
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* Eight threads, four on each of two nodes, with local memory. */
struct program {
	struct nm_advise_input input;
	struct nm_advise_thread threads[THREADS];
	struct nm_advise_region regions[REGIONS];
	struct nm_advise_node nodes[NODES];
};

static void make_threads(struct program *program)
{
	for (unsigned i = 0; i < THREADS; i++)
		program->threads[i] =
			(struct nm_advise_thread){.tid = 100 + i,
						  .node = i < THREADS / 2 ? 0 : 1,
						  .preferred = i < THREADS / 2 ? 0 : 1,
						  .bound = -1,
						  .run_share = 1,
						  .local_share = 0.98,
						  .accesses = 500};
}

static void make_regions(struct program *program)
{
	for (unsigned i = 0; i < REGIONS; i++)
		program->regions[i] = (struct nm_advise_region){.start = i * GIB,
								.end = i * GIB + 256 * MIB,
								.bytes = 256 * MIB,
								.samples = 1000,
								.exclusivity = 0.97,
								.kind = NM_ADVISE_EXCLUSIVE};
}

/* Its memory exceeds a node, so that a single node is no alternative. */
static struct program good_program(void)
{
	struct program program = {
		.nodes = {{.os_id = 0, .cpus = 4, .memory_bytes = 4 * GIB, .pages = 5000},
			  {.os_id = 3, .cpus = 4, .memory_bytes = 4 * GIB, .pages = 5000}},
	};
	make_threads(&program);
	make_regions(&program);
	program.input = (struct nm_advise_input){.pid = 99,
						 .local_share = 0.98,
						 .exclusivity = 0.97,
						 .shared_page_share = 0.03,
						 .rss_bytes = 5 * GIB,
						 .balancing = 1,
						 .hint_faults_per_s = 100,
						 .hint_local_share = 0.9,
						 .migrated_per_s = 0};
	return program;
}

static void ask(struct program *program, struct nm_findings *findings)
{
	program->input.threads = program->threads;
	program->input.nr_threads = THREADS;
	program->input.regions = program->regions;
	program->input.nr_regions = REGIONS;
	program->input.nodes = program->nodes;
	program->input.nr_nodes = NODES;
	assert_int_equal(nm_advise(&program->input, findings), 0);
}

static const struct nm_finding *find(const struct nm_findings *findings, const char *check)
{
	for (size_t i = 0; i < findings->count; i++)
		if (strcmp(findings->items[i].check, check) == 0)
			return &findings->items[i];
	return NULL;
}

/* Checks that there is exactly one finding, with this text. */
static void assert_only(const struct nm_findings *findings, const char *check, const char *words)
{
	if (findings->count != 1 || strcmp(findings->items[0].check, check) != 0)
		fail_msg("%zu findings, the first of %s: %s", findings->count,
			 findings->items[0].check, findings->items[0].what);
	const struct nm_finding *finding = &findings->items[0];
	if (!strstr(finding->what, words) &&
	    !(finding->evidence && strstr(finding->evidence, words)) &&
	    !(finding->remedy && strstr(finding->remedy, words)))
		fail_msg("%s lacks \"%s\": %s / %s / %s", check, words, finding->what,
			 finding->evidence, finding->remedy);
}

static void nothing_to_change(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	ask(&program, &findings);
	assert_only(&findings, "as-it-is", "98 %");
	assert_int_equal(findings.items[0].severity, NM_SEVERITY_FINE);
}

static void too_little_was_seen(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		program.threads[i].accesses = i ? 3 : NAN;
	ask(&program, &findings);
	assert_only(&findings, "enough-seen", "8 threads, 21 accesses");
	assert_int_equal(findings.items[0].severity, NM_SEVERITY_UNSEEN);
}

static void one_node_has_no_distance(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	program.input.nr_nodes = 1;
	program.input.threads = program.threads;
	program.input.nodes = program.nodes;
	assert_int_equal(nm_advise(&program.input, &findings), 0);
	assert_only(&findings, "enough-seen", "one NUMA node");
}

/* ---- placement ---- */

static void all_on_one_node(struct program *program)
{
	program->nodes[0].pages = 9500;
	program->nodes[1].pages = 500;
	program->input.local_share = 0.5;
	for (unsigned i = THREADS / 2; i < THREADS; i++) {
		program->threads[i].preferred = 0;
		program->threads[i].local_share = 0.05;
	}
}

static void one_thread_filled_all(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	all_on_one_node(&program);
	ask(&program, &findings);
	const struct nm_finding *finding = find(&findings, "first-touch");
	assert_non_null(finding);
	assert_non_null(strstr(finding->evidence, "95 % of the sampled pages are there; threads run elsewhere for 50 %"));
	assert_non_null(strstr(finding->remedy, "schedule(static)"));
	assert_null(strstr(finding->remedy, "--interleave"));
}

static void memory_used_by_all_is_interleaved(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	all_on_one_node(&program);
	for (unsigned i = 0; i < REGIONS; i++)
		program.regions[i].kind = NM_ADVISE_SHARED;
	ask(&program, &findings);
	const struct nm_finding *finding = find(&findings, "first-touch");
	assert_non_null(finding);
	assert_non_null(strstr(finding->remedy, "--interleave=all"));
	assert_null(strstr(finding->remedy, "schedule(static)"));
}

static void memory_beside_its_threads_is_local(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	all_on_one_node(&program);
	make_threads(&program);
	for (unsigned i = 0; i < THREADS; i++)
		program.threads[i].node = program.threads[i].preferred = 0;
	ask(&program, &findings);
	assert_null(find(&findings, "first-touch"));
}

static void a_small_program_fits_on_a_node(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	all_on_one_node(&program);
	program.input.rss_bytes = GIB;
	program.nodes[0].cpus = THREADS;
	ask(&program, &findings);
	const struct nm_finding *finding = find(&findings, "fits-a-node");
	assert_non_null(finding);
	assert_non_null(strstr(finding->remedy, "--cpunodebind=0 --membind=0"));
	program.nodes[0].cpus = THREADS - 1;
	nm_findings_clear(&findings);
	ask(&program, &findings);
	assert_null(find(&findings, "fits-a-node"));
}

static void threads_bound_away_from_their_memory(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	program.threads[6].bound = 1;
	program.threads[6].preferred = 0;
	program.threads[6].local_share = 0.1;
	program.threads[7].bound = 1; /* as recommended */
	ask(&program, &findings);
	const struct nm_finding *finding = find(&findings, "bound-away");
	assert_non_null(finding);
	assert_non_null(strstr(finding->what, "1 thread is"));
	assert_non_null(strstr(finding->evidence, "thread 106 on node 3, memory on node 0"));
}

/* ---- ranges ---- */

static void a_range_of_several_nodes(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	program.input.balancing = 0;
	program.regions[2].kind = NM_ADVISE_SHARED;
	program.regions[2].exclusivity = 0.5;
	ask(&program, &findings);
	assert_only(&findings, "shared-ranges", "256.0 MiB at 80000000-90000000: 25 %");
}

/* Without permission to see addresses, only sizes are shown. */
static void without_addresses(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	program.input.balancing = 0;
	program.regions[2].kind = NM_ADVISE_MIXED;
	program.regions[2].start = program.regions[2].end = 0;
	ask(&program, &findings);
	assert_only(&findings, "shared-ranges", "256.0 MiB: 25 %");
}

static void small_intensively_used_memory(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	program.input.balancing = 0;
	program.regions[1] = (struct nm_advise_region){
		.bytes = 2 * MIB, .samples = 2000, .exclusivity = 0.6, .kind = NM_ADVISE_MIXED};
	ask(&program, &findings);
	assert_only(&findings, "false-sharing", "perf c2c record -p 99");
}

static void hardly_used_ranges_are_not_reported(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	program.regions[2].kind = NM_ADVISE_SHARED;
	program.regions[2].samples = 100;
	ask(&program, &findings);
	assert_only(&findings, "as-it-is", "");
}

/* ---- the kernel ---- */

static void balancing_interferes(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	program.regions[0].kind = program.regions[1].kind = NM_ADVISE_SHARED;
	program.input.migrated_per_s = 400;
	ask(&program, &findings);
	assert_non_null(find(&findings, "kernel-balancing"));
	assert_non_null(strstr(find(&findings, "kernel-balancing")->evidence, "400 migrated pages"));
	program.input.migrated_per_s = 0;
	nm_findings_clear(&findings);
	ask(&program, &findings);
	assert_null(find(&findings, "kernel-balancing"));
}

static void balancing_is_missing(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	program.input.balancing = 0;
	program.input.local_share = 0.3;
	ask(&program, &findings);
	assert_only(&findings, "kernel-balancing", "30 % of the accesses are local");
	nm_findings_clear(&findings);
	program.input.balancing = 2; /* tiers only, which must stay enabled */
	ask(&program, &findings);
	assert_only(&findings, "kernel-balancing", "30 % of the accesses are local");
	assert_non_null(strstr(findings.items[0].remedy, "kernel.numa_balancing=3"));
	program.input.balancing = -1;
	nm_findings_clear(&findings);
	ask(&program, &findings);
	assert_only(&findings, "as-it-is", "");
}

/* Findings about threads mention that there are no ranges. */
static void missing_ranges_are_reported(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	program.input.threads = program.threads;
	program.input.nr_threads = THREADS;
	program.input.nodes = program.nodes;
	program.input.nr_nodes = NODES;
	program.input.exclusivity = program.input.shared_page_share = NAN;
	assert_int_equal(nm_advise(&program.input, &findings), 0);
	assert_int_equal(findings.count, 2);
	assert_int_equal(find(&findings, "memory-unseen")->severity, NM_SEVERITY_UNSEEN);
	assert_non_null(find(&findings, "as-it-is"));
}

/* Any metric may be missing: the output never contains "nan". */
static void missing_metrics_are_handled(void **state)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	struct program program = good_program();

	(void)state;
	all_on_one_node(&program);
	program.input.local_share = program.input.exclusivity = NAN;
	program.input.hint_faults_per_s = program.input.hint_local_share = NAN;
	program.input.migrated_per_s = program.input.shared_page_share = NAN;
	for (unsigned i = 0; i < THREADS; i++) {
		program.threads[i].run_share = NAN;
		program.threads[i].preferred = i % 2 ? -1 : 0;
		program.regions[i % REGIONS].samples = 0;
	}
	ask(&program, &findings);
	assert_true(findings.count > 0);
	for (size_t i = 0; i < findings.count; i++) {
		assert_null(strstr(findings.items[i].what, "nan"));
		if (findings.items[i].evidence)
			assert_null(strstr(findings.items[i].evidence, "nan"));
		if (findings.items[i].remedy)
			assert_null(strstr(findings.items[i].remedy, "nan"));
	}
}

/* Every finding belongs to a listed rule. */
static void rules_are_listed_once(void **state)
{
	size_t count;
	const struct nm_advise_rule *rules = nm_advise_rules(&count);

	(void)state;
	assert_true(count >= 9);
	for (size_t a = 0; a < count; a++)
		for (size_t b = 0; b < a; b++)
			assert_string_not_equal(rules[a].name, rules[b].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_change),
		cmocka_unit_test(too_little_was_seen),
		cmocka_unit_test(one_node_has_no_distance),
		cmocka_unit_test(one_thread_filled_all),
		cmocka_unit_test(memory_used_by_all_is_interleaved),
		cmocka_unit_test(memory_beside_its_threads_is_local),
		cmocka_unit_test(a_small_program_fits_on_a_node),
		cmocka_unit_test(threads_bound_away_from_their_memory),
		cmocka_unit_test(a_range_of_several_nodes),
		cmocka_unit_test(without_addresses),
		cmocka_unit_test(small_intensively_used_memory),
		cmocka_unit_test(hardly_used_ranges_are_not_reported),
		cmocka_unit_test(balancing_interferes),
		cmocka_unit_test(balancing_is_missing),
		cmocka_unit_test(missing_ranges_are_reported),
		cmocka_unit_test(missing_metrics_are_handled),
		cmocka_unit_test(rules_are_listed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* numa-migrd-journal(7) explains every field that an entry can have. */
#include "../support/test.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "report/views.h"

#define PAGE NM_SOURCE_DIR "/man/numa-migrd-journal.7"

static struct nm_node nodes[] = {{.os_id = 2}, {.os_id = 7}};
static const struct nm_topology topology = {.nr_nodes = 2, .nodes = nodes};
static const struct nm_entry_context context = {
	.seed = 99, .policy = "imar2", .performance = "product", .topology = &topology};

static struct nm_entry entry;
static char page[1 << 16];

static int read_page(void **state)
{
	FILE *file = fopen(PAGE, "r");
	(void)state;
	return !file || fread(page, 1, sizeof(page) - 1, file) == 0 || fclose(file) != 0 ? -1 : 0;
}

/* Its name must occur as a word in the heading of an item. */
static bool is_explained(const char *name)
{
	size_t length = strlen(name);
	for (const char *line = page; (line = strstr(line, "\n.It Ev ")) != NULL; line++) {
		const char *end = strchr(line + 1, '\n');
		for (const char *at = line; (at = strstr(at, name)) != NULL && at < end; at++)
			if (at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n'))
				return true;
	}
	return false;
}

/* Fields of the second thread are documented with those of the first. */
static unsigned check_fields(void)
{
	assert_true(entry.count < NM_ENTRY_FIELDS);
	for (unsigned i = 0; i < entry.count; i++) {
		char name[192];
		size_t length = strcspn(entry.fields[i], "=");
		memcpy(name, entry.fields[i], length);
		name[length] = '\0';
		char *second = strstr(name, "_2");
		if (second && second[2] == '\0')
			*second = '\0';
		if (!is_explained(name))
			fail_msg("%s does not explain %s", PAGE, name);
	}
	return entry.count;
}

static struct nm_step step(uint32_t tid)
{
	return (struct nm_step){.tid = tid,
				.pid = 1234,
				.cpu_to = 1,
				.node_to = 1,
				.local_before = 0.02,
				.samples_before = 412,
				.performance_before = 100,
				.relative_before = 0.5,
				.record = 120,
				.latency_before = 300,
				.comm = "perf"};
}

static void check_decision(enum nm_decision_kind kind, bool by_performance, int error)
{
	struct nm_decision decision = {.id = 17,
				       .kind = kind,
				       .interval = 5,
				       .undoes = 3,
				       .by_performance = by_performance,
				       .policy = by_performance ? NM_POLICY_IMAR2 : NM_POLICY_LBMA,
				       .draw = 0.31,
				       .gain = 0.96,
				       .nr_steps = 2,
				       .steps = {step(5), step(6)}};
	struct nm_receipt receipt = {.decision = 17, .applied = !error, .nr_steps = 2};
	receipt.steps[0] = (struct nm_receipt_step){.error = error, .what = "identity"};
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_true(check_fields() > 20);
}

TEST(test_decisions)
{
	for (int i = 0; i < 4; i++) {
		check_decision(NM_DECISION_SWAP, i & 1, i & 2 ? -EPERM : 0);
		check_decision(NM_DECISION_ROLLBACK, i & 1, i & 2 ? -EPERM : 0);
	}
}

/* A move by sharing, its verdict, and messages about processes. */
TEST(test_sharing)
{
	struct nm_decision decision = {.id = 17,
				       .kind = NM_DECISION_SWAP,
				       .policy = NM_POLICY_KMAF,
				       .cost_before = 400,
				       .cost_after = 200,
				       .gain = 0.1,
				       .nr_steps = 2,
				       .steps = {step(5), step(6)}};
	struct nm_receipt receipt = {.decision = 17, .applied = true, .nr_steps = 2};
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_true(check_fields() > 20);
	struct nm_verdict verdict = {.decision = 17, .policy = NM_POLICY_KMAF, .nr_threads = 2};
	nm_entry_verdict(&entry, &context, &verdict);
	assert_true(check_fields() > 20);
}

/* A move of policy "balance" by a rule and to the leader, and its verdict. */
TEST(test_balance)
{
	struct nm_balance_reason reason = {.given = true,
					   .selection = NM_SELECTION_EXCLUSIVITY,
					   .by = NM_SELECTED_BY_RULE,
					   .metric = 0.5,
					   .gain = 12,
					   .cost_change = -9.5};
	struct nm_decision decision = {.id = 17,
				       .kind = NM_DECISION_MIGRATE,
				       .by_performance = true,
				       .balance = reason,
				       .nr_steps = 1,
				       .steps = {step(5)}};
	struct nm_receipt receipt = {.decision = 17, .applied = true, .nr_steps = 1};
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_true(check_fields() > 30);
	assert_non_null(strstr(entry.text, "; by exclusivity [#17]"));
	decision.balance.by = NM_SELECTED_BY_LEADER;
	decision.balance.gain = NAN;
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_non_null(strstr(entry.text, "; by exclusivity (leader) [#17]"));
	decision.balance.by = NM_SELECTED_BY_TYPE;
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_non_null(strstr(entry.text, "; to CPUs of its type [#17]"));
	struct nm_verdict verdict = {.decision = 17,
				     .by_performance = true,
				     .balance = reason,
				     .measured_benefit = 8,
				     .nr_threads = 1,
				     .threads = {{.alive = true, .ran_on_node = true}}};
	nm_entry_verdict(&entry, &context, &verdict);
	assert_true(check_fields() > 20);
	assert_non_null(strstr(entry.text, ", benefit 8 (predicted 9.5)"));
}

TEST(test_verdicts)
{
	struct nm_verdict verdict = {
		.decision = 17, .by_performance = true, .locality_before = 0.5, .nr_threads = 2};
	for (unsigned i = 0; i < 2; i++)
		verdict.threads[i] = (struct nm_verdict_thread){
			.tid = 5 + i, .pid = 4, .alive = true, .ran_on_node = true};
	nm_entry_verdict(&entry, &context, &verdict);
	assert_true(check_fields() > 30);
}

TEST(test_pages)
{
	struct nm_decision decision = {.id = 17,
				       .kind = NM_DECISION_PAGES,
				       .undoes = 16,
				       .pages = {.reason = NM_PAGE_REASON_ROLLBACK},
				       .nr_steps = 1,
				       .steps = {{.pid = 5, .comm = "lu", .node_to = 1}}};
	struct nm_verdict verdict = nm_verdict_of(&decision);
	verdict.results = (struct nm_page_results){1, 1, 1, 20, 1, 1, 1, 1, 1, 1, 1, 1, -EPERM};
	verdict.kind = NM_VERDICT_NEUTRAL;
	verdict.by_performance = true;
	verdict.figure = verdict.noise = 1;
	nm_entry_decision(&entry, &context, &decision, NULL);
	assert_true(check_fields() > 10);
	nm_entry_verdict(&entry, &context, &verdict);
	assert_true(check_fields() > 25);
}

TEST(test_homes)
{
	const struct nm_decision decision = {
		.kind = NM_DECISION_HOME,
		.home = {.age_s = 1, .distance_now = 20, .distance_home = 10, .move_s = 1},
		.nr_steps = 1,
		.steps = {{.comm = "lu", .node_to = 1}}};
	const struct nm_verdict verdict = {
		.of = NM_DECISION_HOME,
		.judged_by = NM_BY_PERFORMANCE,
		.change = 0.31,
		.nr_threads = 1,
		.threads = {{.comm = "lu", .node_to = 1, .alive = true}}};
	nm_entry_decision(&entry, &context, &decision, NULL);
	assert_true(check_fields() > 15);
	nm_entry_verdict(&entry, &context, &verdict);
	assert_true(check_fields() > 8);
}

TEST(test_summaries)
{
	for (size_t i = 0; i < nm_statistic_count; i++) {
		const char *name = nm_statistic_rows[i].field;
		if (name && !is_explained(name))
			fail_msg("%s does not explain %s", PAGE, name);
	}
}

TEST(test_others)
{
	const struct nm_move_event event = {.kind = NM_MOVE_FAILED, .error = -EPERM};
	nm_entry_move(&entry, &event);
	assert_true(check_fields() > 5);
	assert_false(is_explained("NODE"));
	assert_false(is_explained("NONESUCH"));
}

TEST(test_service)
{
	hwloc_bitmap_t usable = hwloc_bitmap_alloc();
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	assert_int_equal(nm_config_default(&config), 0);
	const struct nm_topology machine = {.nr_nodes = 1, .nodes = nodes, .usable = usable};
	const struct nm_view view = {.config = config, .topology = &machine, .version = "1"};
	nm_entry_start(&entry, &view, 7);
	assert_true(check_fields() > 10);
	hwloc_bitmap_free(usable);
	const struct nm_worker_news news = {.pid = 5, .uid = 1000, .act = NM_WORKER_UNITS};
	nm_entry_worker(&entry, &news);
	assert_true(check_fields() == 4);
	assert_string_equal(entry.fields[3], "OPERATION=migrate-pages");
	nm_entry_worker(&entry, &(struct nm_worker_news){.error = -ENOENT});
	assert_non_null(strstr(entry.text, "No worker: No such file"));
}

TEST(test_missing_events)
{
	struct nm_snapshot snapshot = {.by_locality = true,
				       .missing = 1U << NM_EVENT_FLOPS | 1U << NM_EVENT_DRAM |
						  1U << NM_EVENT_MEMORY};
	nm_entry_performance(&entry, NM_PERFORMANCE_PRODUCT, &snapshot);
	assert_non_null(strstr(entry.text, "(not sampled: floating-point operations, memory "
					   "traffic and latencies)"));
	snapshot.missing = 1U << NM_EVENT_MEMORY;
	nm_entry_performance(&entry, NM_PERFORMANCE_PRODUCT, &snapshot);
	assert_non_null(strstr(entry.text, "\"product\" replaced by locality (not sampled: "
					   "latencies)"));
}

int main(void)
{
	return RUN_REGISTERED(read_page, NULL);
}

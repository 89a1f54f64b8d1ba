/* SPDX-License-Identifier: MIT */
/* The last decisions: which are stored, which are shown, and their verdicts. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include <math.h>

#include "../support/machine.h"
#include "dump_fixture.h"
#include "report/history.h"

static struct nm_history history;
static struct nm_topology *topology;

static int begin(void **state)
{
	(void)state;
	history = (struct nm_history){0};
	topology = machine_topology(4, 1);
	return topology ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	shown_clear();
	nm_history_clear(&history);
	nm_topology_free(topology);
	return 0;
}

static struct nm_history_item decision_of(uint64_t id, uint32_t tid)
{
	return (struct nm_history_item){
		.time_usec = 1000 + id,
		.result = "applied",
		.decision = {.id = id,
			     .policy = NM_POLICY_LBMA,
			     .nr_steps = 1,
			     .steps = {{.pid = 7,
					.tid = tid,
					.start_ticks = 99,
					.comm = "work",
					.cpu_from = 1,
					.cpu_to = -1,
					.node_from = 0,
					.node_to = 3,
					.local_before = NAN}},
			     .tickets = {.total = 6, .free_cpu = 2, .preferred = 4},
			     .draw = 2.5},
	};
}

static void add(const struct nm_history_item *decision)
{
	struct nm_entry entry;
	nm_entry_begin(&entry, NM_MESSAGE_DECISION, LOG_INFO);
	nm_entry_text(&entry, "moved thread %u: it is nearer; lease [#1]",
		      decision->decision.steps[0].tid);
	nm_entry_field(&entry, "POLICY", "lbma");
	nm_entry_field(&entry, "DRAW", "%.17g", 2.5);
	nm_entry_field(&entry, "GAIN_PERMILLE", "12");
	nm_history_add(&history, topology, decision, &entry);
}

static void decide(uint64_t id, uint32_t tid)
{
	const struct nm_history_item decision = decision_of(id, tid);
	add(&decision);
	assert_non_null(nm_history_find(&history, id));
}

static void judge(uint64_t id, enum nm_verdict_kind kind, bool by_performance)
{
	struct nm_entry entry;
	const struct nm_verdict verdict = {
		.decision = id,
		.kind = kind,
		.by_performance = by_performance,
		.nr_threads = 1,
		.threads = {{.performance_before = 2,
			     .performance_after = 3,
			     .local_before = 0.24951,
			     .local_after = 0.9}},
	};
	nm_entry_begin(&entry, NM_MESSAGE_VERDICT, LOG_INFO);
	nm_entry_text(&entry, "decision %u judged", (unsigned)id);
	nm_history_judge(&history, &verdict, &entry);
}

static void list(void)
{
	nm_auto(nm_dump_clear) struct nm_dump dump = {0};
	assert_int_equal(nm_dump_open(&dump), 0);
	nm_history_show(&history, &dump);
	show_document(nm_dump_finish(&dump), "decisions");
}

TEST(an_empty_history_shows_nothing)
{
	list();
	assert_int_equal(shown.rows, 0);
	assert_null(nm_history_find(&history, 0));
	assert_null(nm_history_find(&history, 1));
	judge(1, NM_VERDICT_IMPROVED, false);
	assert_null(nm_history_find(&history, 1));
}

TEST(a_decision_is_shown_and_then_its_verdict)
{
	decide(1, 8);
	list();
	assert_int_equal(shown.rows, 1);
	assert_shown(1, "decision", "1");
	assert_shown(1, "time_usec", "1001");
	assert_shown(1, "kind", "migrate");
	assert_shown(1, "policy", "lbma");
	assert_shown(1, "result", "applied");
	assert_shown(1, "verdict", "");
	assert_shown(1, "message", "moved thread 8: it is nearer; lease [#1]");
	assert_shown(1, "pid", "7");
	assert_shown(1, "tid", "8");
	assert_shown(1, "comm", "work");
	assert_shown(1, "from_cpu", "1");
	assert_shown(1, "to_node", "3");
	assert_null(shown_text(1, "to_cpu")); /* unknown */
	assert_null(shown_text(1, "before"));
	assert_null(shown_text(1, "candidates_count"));
	judge(1, NM_VERDICT_IMPROVED, false);
	list();
	assert_shown(1, "verdict", "improved");
	assert_shown(1, "figure", "local_share");
	assert_true(shown_number(1, "before") == 0.25 && shown_number(1, "after") == 0.9);
	judge(1, NM_VERDICT_ROLLED_BACK, true); /* the last verdict counts */
	list();
	assert_shown(1, "verdict", "rolled-back");
	assert_shown(1, "figure", "performance");
	assert_true(shown_number(1, "before") == 2 && shown_number(1, "after") == 3);
}

TEST(an_explanation_has_the_journals_fields)
{
	struct nm_history_item item = decision_of(1, 8);
	item.decision.nr_candidates = 30;
	item.decision.nr_alternatives = 2;
	item.decision.alternatives[0] =
		(struct nm_alternative){.node_to = 3, .cpu_to = -1, .tickets = 6};
	item.decision.alternatives[1] =
		(struct nm_alternative){.node_to = 2, .cpu_to = 9, .partner = 77, .tickets = 4};
	add(&item);
	list();
	assert_shown(1, "candidates_count", "30");
	shown.section = json_object_get(json_array_get(shown.section, 0), "candidates");
	assert_int_equal(json_array_size(shown.section), 2);
	assert_shown(1, "to_node", "3");
	assert_null(shown_text(1, "to_cpu"));
	assert_null(shown_text(1, "partner_tid"));
	assert_shown(1, "won", "true");
	assert_shown(2, "to_cpu", "9");
	assert_shown(2, "partner_tid", "77");
	assert_shown(2, "tickets", "4");
	assert_shown(2, "won", "false");
	list();
	assert_shown(1, "verdict_message", "");
	assert_non_null(strstr(shown_text(1, "fields"), "\nDRAW=2.5"));
	assert_non_null(strstr(shown_text(1, "fields"), "POLICY=lbma\n"));
}

/* Oldest first; unused ids leave no gap. */
TEST(decisions_are_in_their_order)
{
	for (uint64_t id = 1; id <= 9; id++)
		if (id != 5)
			decide(id, (uint32_t)id);
	list();
	assert_int_equal(shown.rows, 8);
	assert_shown(1, "decision", "1");
	assert_shown(5, "decision", "6");
	assert_shown(8, "decision", "9");
}

TEST(the_oldest_entries_expire)
{
	const uint64_t first = 3, all = NM_HISTORY_MAX + 100;
	for (uint64_t id = first; id < first + all; id++)
		decide(id, 8);
	assert_int_equal(history.next - history.first, NM_HISTORY_MAX);
	assert_null(nm_history_find(&history, first));
	assert_null(nm_history_find(&history, first + 99));
	assert_non_null(nm_history_find(&history, first + 100));
	assert_non_null(nm_history_find(&history, first + all - 1));
	assert_null(nm_history_find(&history, first + all));
	judge(first, NM_VERDICT_IMPROVED, false);
	assert_false(nm_history_find(&history, first + NM_HISTORY_MAX)->judged);
}

TEST(a_swap_names_both_threads)
{
	struct nm_history_item swap = decision_of(1, 50);
	swap.decision.nr_steps = 2;
	swap.decision.steps[1] = (struct nm_step){.pid = 7, .tid = 30, .start_ticks = 99};
	add(&swap);
	list();
	assert_shown(1, "tid", "50");
	assert_shown(1, "partner_tid", "30");
	assert_shown(1, "partner_comm", "");
}

RUN_TESTS()

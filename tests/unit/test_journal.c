/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "report/journal.h"

/* Two nodes whose numbers in the kernel are 2 and 7, so that an index shown as a number is
 * detected. */
static struct nm_node nodes[] = {{.os_id = 2}, {.os_id = 7}};
static const struct nm_topology topology = {.nr_nodes = 2, .nodes = nodes};
static const struct nm_entry_context context = {
	.seed = 99, .policy = "lbma", .topology = &topology};
static const struct nm_entry_context dry_context = {
	.seed = 99, .policy = "lbma", .topology = &topology, .dry_run = true};

static struct nm_entry entry;

static const char *field(const char *name)
{
	size_t length = strlen(name);
	for (unsigned i = 0; i < entry.count; i++)
		if (strncmp(entry.fields[i], name, length) == 0 && entry.fields[i][length] == '=')
			return entry.fields[i] + length + 1;
	return NULL;
}

static void assert_field(const char *name, const char *value)
{
	const char *found = field(name);
	if (!found)
		fail_msg("no field %s", name);
	assert_string_equal(found, value);
}

static void assert_message_contains(const char *words)
{
	if (!strstr(entry.text, words))
		fail_msg("\"%s\" does not contain \"%s\"", entry.text, words);
}

/* Counts characters: continuation bytes of UTF-8 are not counted. */
static void assert_one_line(void)
{
	size_t length = 0;
	for (const char *at = entry.text; *at; at++)
		length += ((unsigned char)*at & 0xc0) != 0x80;
	if (length > 120 || strchr(entry.text, '\n'))
		fail_msg("\"%s\" is longer than 120 characters", entry.text);
}

static struct nm_step step(uint32_t tid, int cpu, int from, int to)
{
	struct nm_step made = {.tid = tid,
			       .pid = 1234,
			       .cpu_from = cpu,
			       .cpu_to = 1,
			       .node_from = from,
			       .node_to = to,
			       .local_before = 0.02,
			       .samples_before = 412,
			       .comm = "perf"};
	return made;
}

static struct nm_decision migrate(void)
{
	return (struct nm_decision){.id = 17,
				    .kind = NM_DECISION_MIGRATE,
				    .interval = 5,
				    .tickets = {.total = 4, .preferred = 4},
				    .draw = 0.31,
				    .gain = 0.96,
				    .nr_steps = 1,
				    .steps = {step(1240, 5, 1, 0)}};
}

static struct nm_decision swap(void)
{
	struct nm_decision decision = migrate();
	decision.kind = NM_DECISION_SWAP;
	decision.tickets = (struct nm_tickets){.total = 8, .preferred = 4, .partner = 4};
	decision.nr_steps = 2;
	decision.steps[1] = step(1250, 0, 0, 1);
	return decision;
}

static struct nm_receipt applied(unsigned steps)
{
	struct nm_receipt receipt = {.decision = 17, .applied = true, .nr_steps = steps};
	for (unsigned i = 0; i < steps; i++)
		receipt.steps[i] = (struct nm_receipt_step){.tried = true, .applied = true};
	return receipt;
}

static struct nm_receipt refused(int error, const char *what)
{
	return (struct nm_receipt){.decision = 17,
				   .nr_steps = 1,
				   .steps = {{.tried = true, .error = error, .what = what}}};
}

TEST(test_migrate_reads_as_a_sentence)
{
	struct nm_decision decision = migrate();
	struct nm_receipt receipt = applied(1);
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_string_equal(entry.text,
			    "Moved perf[1234/1240] from CPU 5 (node 7) to node 2: 98 % of 412 "
			    "accesses on node 2 [#17]");
	assert_one_line();
	assert_int_equal(entry.priority, LOG_INFO);
	assert_field("KIND", "migrate");
	assert_field("DECISION", "17");
	assert_field("POLICY", "lbma");
	assert_field("SEED", "99");
	assert_field("RESULT", "applied");
	assert_field("PID", "1234");
	assert_field("TID", "1240");
	assert_field("COMM", "perf");
	assert_field("CPU_FROM", "5");
	assert_field("NODE_FROM", "7");
	assert_field("NODE_TO", "2");
	assert_field("TICKETS", "4");
	assert_field("TICKETS_PARTS", "free_cpu=0 preferred=4 partner=0");
	assert_field("LOCAL_SHARE_PERMILLE", "20");
	assert_field("ACCESSES", "412");
	assert_true(strtod(field("DRAW"), NULL) == decision.draw);
	assert_null(field("ERRNO"));
}

TEST(test_pinned_to_one_cpu)
{
	struct nm_decision decision = migrate();
	struct nm_receipt receipt = applied(1);
	decision.steps[0].target = hwloc_bitmap_alloc();
	hwloc_bitmap_set(decision.steps[0].target, 1);
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_message_contains("to CPU 1 (node 2)");
	hwloc_bitmap_set(decision.steps[0].target, 2);
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_message_contains("to node 2:");
	hwloc_bitmap_free(decision.steps[0].target);
}

TEST(test_unavailable_metrics)
{
	struct nm_decision decision = migrate();
	struct nm_receipt receipt = applied(1);
	decision.steps[0].local_before = NAN;
	decision.steps[0].cpu_from = -1;
	decision.steps[0].node_to = -1;
	decision.gain = NAN;
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_message_contains("from node 7 to an unknown node [#17]");
	assert_null(strstr(entry.text, "nan"));
	assert_null(field("LOCAL_SHARE_PERMILLE"));
	assert_null(field("GAIN_PERMILLE"));
	assert_null(field("CPU_FROM"));
	assert_null(field("NODE_TO"));
}

TEST(test_swap_names_both)
{
	struct nm_decision decision = swap();
	struct nm_receipt receipt = applied(2);
	decision.gain = 0.5;
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_string_equal(entry.text,
			    "Swapped perf[1234/1240] (node 7) and perf[1234/1250] (node 2): +50 "
			    "points of local accesses [#17]");
	assert_one_line();
	assert_field("TICKETS_PARTS", "free_cpu=0 preferred=4 partner=4");
	assert_field("KIND", "swap");
	assert_field("TID", "1240");
	assert_field("TID_2", "1250");
	assert_field("NODE_TO_2", "7");
	assert_true(entry.count <= NM_ENTRY_FIELDS);
}

TEST(test_rollback_names_the_decision_it_undoes)
{
	struct nm_decision decision = migrate();
	struct nm_receipt receipt = applied(1);
	decision.kind = NM_DECISION_ROLLBACK;
	decision.undoes = 12;
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_string_equal(entry.text, "Moved back perf[1234/1240] from CPU 5 (node 7) to node 2: "
					"rollback of #12 [#17]");
	assert_field("KIND", "rollback");
	assert_field("UNDOES", "12");
	assert_null(field("DRAW"));
}

TEST(test_dry_run_would_move)
{
	struct nm_decision decision = migrate();
	struct nm_receipt receipt = refused(-EROFS, "sched_setaffinity");
	nm_entry_decision(&entry, &dry_context, &decision, &receipt);
	assert_message_contains("Would move perf[1234/1240]");
	assert_message_contains("98 % of 412");
	assert_field("RESULT", "dry-run");
	receipt = refused(-ESRCH, "identity");
	nm_entry_decision(&entry, &dry_context, &decision, &receipt);
	assert_message_contains("Could not move");
	assert_field("RESULT", "refused");
}

TEST(test_refusals_name_the_thread_and_the_cause)
{
	static const struct {
		int error;
		const char *follows;
		int priority;
	} cases[] = {
		{-ESRCH, ": thread ended [#17]", LOG_INFO},
		{-ESTALE, ": affinity changed meanwhile [#17]", LOG_INFO},
		{-EROFS, ": moves cannot be recorded [#17]", LOG_WARNING},
		{-EPERM, ": CAP_SYS_NICE is missing [#17]", LOG_WARNING},
		{-EINVAL, ": cpuset allows none of its CPUs [#17]", LOG_WARNING},
		{-ENOMEM, ": identity: Cannot allocate memory [#17]", LOG_WARNING},
	};
	struct nm_decision decision = migrate();
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		struct nm_receipt receipt = refused(cases[i].error, "identity");
		char number[16];
		(void)snprintf(number, sizeof(number), "%d", -cases[i].error);
		nm_entry_decision(&entry, &context, &decision, &receipt);
		assert_message_contains("Could not move perf[1234/1240]");
		assert_message_contains(cases[i].follows);
		assert_one_line();
		assert_field("RESULT", "refused");
		assert_field("CHECK", "identity");
		assert_field("ERRNO", number);
		assert_int_equal(entry.priority, cases[i].priority);
	}
}

TEST(test_half_a_swap)
{
	struct nm_decision decision = swap();
	struct nm_receipt receipt = {
		.nr_steps = 2,
		.steps = {{.tried = true, .applied = true},
			  {.tried = true, .error = -ESRCH, .what = "identity"}}};
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_string_equal(entry.text,
			    "Could not swap perf[1234/1240] (node 7) and perf[1234/1250] (node 2): "
			    "thread ended; TID 1240 moved [#17]");
	assert_one_line();
}

static struct nm_verdict verdict(enum nm_verdict_kind kind)
{
	return (struct nm_verdict){.decision = 17,
				   .of = NM_DECISION_MIGRATE,
				   .kind = kind,
				   .intervals = 1,
				   .nr_threads = 1,
				   .threads = {{.tid = 1240,
						.pid = 1234,
						.comm = "perf",
						.alive = true,
						.ran_on_node = true,
						.cpu_from = 5,
						.node_from = 1,
						.node_to = 0,
						.local_before = 0.02,
						.local_after = 0.97,
						.accesses_after = 300,
						.samples_after = 300}}};
}

TEST(test_verdicts)
{
	struct nm_verdict better = verdict(NM_VERDICT_IMPROVED);
	better.locality_before = 0.5;
	better.locality_after = 0.97;
	better.locality_noise = 0.03;
	nm_entry_verdict(&entry, &context, &better);
	assert_string_equal(entry.text,
			    "#17 improved: perf[1234/1240] locality 50 % \xe2\x86\x92 97 %");
	assert_one_line();
	assert_field("COMM", "perf");
	assert_field("INTERVALS", "1");
	assert_field("VERDICT", "improved");
	assert_field("LOCALITY_BEFORE_PERMILLE", "500");
	assert_field("LOCALITY_AFTER_PERMILLE", "970");
	assert_field("LOCALITY_NOISE_PERMILLE", "30");
	assert_field("KIND", "verdict");
	assert_field("DECISION_KIND", "migrate");
	assert_field("RAN_ON_NODE", "1");
	assert_field("LOCAL_SHARE_BEFORE_PERMILLE", "20");
	assert_field("LOCAL_SHARE_AFTER_PERMILLE", "970");

	struct nm_verdict back = verdict(NM_VERDICT_ROLLED_BACK);
	back.threads[0].local_before = NAN;
	nm_entry_verdict(&entry, &context, &back);
	assert_string_equal(entry.text, "#17 rolled back: perf[1234/1240] local accesses "
					"\xe2\x80\x93 \xe2\x86\x92 97 %");
	assert_field("VERDICT", "rolled-back");
	assert_null(field("LOCAL_SHARE_BEFORE_PERMILLE"));

	struct nm_verdict gone = verdict(NM_VERDICT_CANCELLED);
	gone.threads[0].ran_on_node = false;
	gone.intervals = 3;
	nm_entry_verdict(&entry, &context, &gone);
	assert_string_equal(entry.text, "#17 cancelled: perf[1234/1240] not seen on node 2");
	assert_field("INTERVALS", "3");
	assert_field("KIND", "cancel");
	assert_field("RAN_ON_NODE", "0");

	struct nm_verdict dead = verdict(NM_VERDICT_INCONCLUSIVE);
	dead.threads[1] = dead.threads[0];
	dead.threads[1].tid = 1250;
	dead.threads[1].alive = false;
	dead.nr_threads = 2;
	nm_entry_verdict(&entry, &context, &dead);
	assert_string_equal(entry.text, "#17 inconclusive: perf[1234/1250] ended");
	assert_field("VERDICT", "inconclusive");
	assert_field("TID_2", "1250");
	dead.threads[1].alive = true;
	dead.superseded = true;
	nm_entry_verdict(&entry, &context, &dead);
	assert_string_equal(entry.text,
			    "#17 inconclusive: perf[1234/1240] and perf[1234/1250] moved again");

	struct nm_verdict arrived = verdict(NM_VERDICT_NEUTRAL);
	arrived.of = NM_DECISION_ROLLBACK;
	nm_entry_verdict(&entry, &context, &arrived);
	assert_string_equal(entry.text, "#17 neutral: perf[1234/1240] is back on node 2");
}

TEST(test_events_of_moves)
{
	static const char *const names[][2] = {
		[NM_MOVE_FOREIGN] = {"external", "changed externally; no longer managed"},
		[NM_MOVE_INHERITED] = {"inherited", "restored: inherited from a moved thread"},
		[NM_MOVE_FAILED] = {"failed", "not restored, will be tried again: Operation not "
					      "permitted"},
		[NM_MOVE_RETURNED] = {"restored", "restored"},
	};
	for (unsigned i = 0; i < NM_ARRAY_SIZE(names); i++) {
		if (i == NM_MOVE_MISSED) /* only counted */
			continue;
		struct nm_move_event event = {.kind = (enum nm_move_event_kind)i,
					      .tid = 1240,
					      .pid = 1234,
					      .decision = 17,
					      .error = i == NM_MOVE_FAILED ? -EPERM : 0};
		char text[128];
		(void)snprintf(text, sizeof(text), "Affinity of 1234/1240 %s", names[i][1]);
		nm_entry_move(&entry, &event);
		assert_string_equal(entry.text, text);
		assert_field("KIND", "affinity");
		assert_field("AFFINITY", names[i][0]);
		assert_field("TID", "1240");
		assert_field("DECISION", "17");
		assert_true((field("ERRNO") != NULL) == (i == NM_MOVE_FAILED));
	}
}

static struct nm_decision home_of_lu(void)
{
	return (struct nm_decision){.id = 2,
				    .kind = NM_DECISION_HOME,
				    .policy = NM_POLICY_AUTO,
				    .home = {.reason = NM_PLACE_REMOTE,
					     .gain = 0.198,
					     .threads = 10,
					     .demand_cpus = 10,
					     .age_s = 2.3,
					     .distance_now = 19.9,
					     .distance_home = 10,
					     .bytes_away = 3 << 20,
					     .move_s = 0.01},
				    .nr_steps = 1,
				    .steps = {{.pid = 4711, .comm = "lu", .node_to = 1}}};
}

TEST(test_a_home_names_the_process)
{
	struct nm_decision decision = home_of_lu();
	nm_entry_decision(&entry, &context, &decision, NULL);
	assert_string_equal(entry.text,
			    "Placed lu[4711] on node 7: remote memory, 20 % expected; 10 threads, "
			    "10.0 CPUs, distance 19.9 \xe2\x86\x92 10.0 [#2]");
	assert_one_line();
	assert_field("KIND", "home");
	assert_field("BYTES_AWAY", "3145728"); /* no room for it in the line */
	assert_field("EXPECTED_PERCENT", "19.8");
	assert_field("DEMAND_CPUS", "10");
	assert_field("AGE_S", "2.3");
	nm_entry_decision(&entry, &dry_context, &decision, NULL);
	assert_message_contains("Would place lu[4711] on node 7");
	decision.home.threads = 1;
	decision.home.distance_now = NAN;
	decision.home.move_s = NAN;
	nm_entry_decision(&entry, &context, &decision, NULL);
	assert_message_contains("remote memory, 20 % expected; 1 thread, 10.0 CPUs [#2]");
	decision.home.keeps_memory = true;
	nm_entry_decision(&entry, &context, &decision, NULL);
	assert_message_contains("10.0 CPUs, memory stays (max_gb_of_process) [#2]");
}

TEST(test_the_verdict_on_a_home_names_the_process)
{
	struct nm_verdict verdict = {.decision = 2,
				     .of = NM_DECISION_HOME,
				     .kind = NM_VERDICT_IMPROVED,
				     .judged_by = NM_BY_PERFORMANCE,
				     .change = 0.31,
				     .expected_gain = 0.198,
				     .measured_gain = 0.24,
				     .results = {.moved = 195},
				     .nr_threads = 1,
				     .threads = {{.pid = 4711,
						  .comm = "lu",
						  .alive = true,
						  .ran_on_node = true,
						  .node_to = 1}}};
	nm_entry_verdict(&entry, &context, &verdict);
	assert_string_equal(entry.text,
			    "#2 improved: lu[4711] performance +31 %, 24 % saved, 20 % expected, "
			    "195 pages migrated");
	assert_field("JUDGED_BY", "performance");
	assert_field("CHANGE_PERMILLE", "310");
	assert_field("EXPECTED_PERCENT", "19.8");
	assert_field("MEASURED_PERCENT", "24");
	verdict.measured_gain = NAN;
	verdict.results.moved = 1;
	verdict.kind = NM_VERDICT_ROLLED_BACK;
	verdict.change = -0.08;
	nm_entry_verdict(&entry, &context, &verdict);
	assert_string_equal(entry.text,
			    "#2 rolled back: lu[4711] performance -8 %, 1 page migrated");
	assert_field("VERDICT", "rolled-back");
	verdict.judged_by = NM_BY_DISTANCE;
	verdict.change = 0.25;
	nm_entry_verdict(&entry, &context, &verdict);
	assert_message_contains("lu[4711] memory distance -20 %, 1 page migrated");
	assert_field("JUDGED_BY", "distance");
	verdict.judged_by = NM_BY_DELAY;
	verdict.change = -0.3;
	nm_entry_verdict(&entry, &context, &verdict);
	assert_message_contains("lu[4711] run queue delay +30 % of its CPU time");
	verdict.judged_by = NM_BY_NOTHING;
	verdict.results.moved = 0;
	verdict.kind = NM_VERDICT_INCONCLUSIVE;
	verdict.change = NAN;
	nm_entry_verdict(&entry, &context, &verdict);
	assert_string_equal(entry.text, "#2 inconclusive: lu[4711], no comparable samples");
	assert_true(field("MEASURED_PERCENT") == NULL);
	assert_true(field("NEEDED_INTERVALS") == NULL);
	verdict.needed = 32;
	nm_entry_verdict(&entry, &context, &verdict);
	assert_message_contains("lu[4711], its noise hides a change: 32 intervals needed");
	assert_field("NEEDED_INTERVALS", "32");
	verdict.kind = NM_VERDICT_UNVERIFIED;
	nm_entry_verdict(&entry, &context, &verdict);
	assert_message_contains("lu[4711], placed too young to be measured before");
}

TEST(test_pages_and_their_verdict)
{
	const struct nm_decision decision = {
		.id = 5,
		.kind = NM_DECISION_PAGES,
		.pages = {.reason = NM_PAGE_REASON_PAGES,
			  .pages = 24,
			  .bytes = 24 * 4096,
			  .exclusivity = 0.98},
		.nr_steps = 1,
		.steps = {{.pid = 812, .comm = "pinned", .node_from = 0, .node_to = 1}}};
	struct nm_verdict judged = nm_verdict_of(&decision);
	nm_entry_decision(&entry, &context, &decision, NULL);
	assert_string_equal(entry.text, "Migrated 24 pages (96 KiB) of pinned[812] from node 2 to "
					"node 7: 98 % of accesses from node 7 [#5]");
	assert_one_line();
	assert_field("RESULT", "asked");
	judged.kind = NM_VERDICT_IMPROVED;
	judged.results = (struct nm_page_results){.moved = 20, .failed = 4, .busy = 4};
	judged.threads[0].alive = judged.threads[0].ran_on_node = true;
	judged.threads[0].local_before = 0.12;
	judged.threads[0].local_after = 0.98;
	nm_entry_verdict(&entry, &context, &judged);
	assert_string_equal(entry.text, "#5 improved: pinned[812] local accesses 12 % "
					"\xe2\x86\x92 98 %, 20 of 24 pages migrated");
	assert_field("PAGES_EBUSY", "4");
	assert_field("DECISION_KIND", "pages");
	judged.by_performance = true;
	judged.figure = 1.31;
	nm_entry_verdict(&entry, &context, &judged);
	assert_message_contains("pinned[812] performance +31 %, 20 of 24");
	judged.results = (struct nm_page_results){.failed = 24, .busy = 4, .gone = 20};
	judged.pages.pages = 1;
	nm_entry_verdict(&entry, &context, &judged);
	assert_message_contains(", 0 of 1 page migrated (20 not present)");
	judged.threads[0].alive = false;
	nm_entry_verdict(&entry, &context, &judged);
	assert_message_contains("pinned[812] ended, 0 of 1 page migrated");
}

/* ---- length ---- */

/* Of a name of 15 characters, PIDs of seven digits, CPUs of two and decisions of four. */
#define LONG_NAME "postgres-worker"
#define LONG_PID 4194303U

static struct nm_step long_step(uint32_t tid)
{
	struct nm_step made = step(tid, 95, 1, 0);
	made.pid = LONG_PID;
	made.samples_before = 1641;
	(void)snprintf(made.comm, sizeof(made.comm), LONG_NAME);
	return made;
}

static struct nm_decision long_decision(enum nm_decision_kind kind)
{
	struct nm_decision decision = kind == NM_DECISION_SWAP ? swap() : migrate();
	decision.id = 1234;
	decision.undoes = 1230;
	decision.kind = kind;
	decision.cost_before = 12345;
	decision.cost_after = 1234;
	for (unsigned i = 0; i < decision.nr_steps; i++)
		decision.steps[i] = long_step(LONG_PID - 1 - i);
	return decision;
}

static void assert_decision_fits(const struct nm_decision *decision)
{
	struct nm_receipt receipt = applied(decision->nr_steps);
	nm_entry_decision(&entry, &context, decision, &receipt);
	assert_one_line();
	receipt = refused(-EROFS, "sched_setaffinity");
	receipt.nr_steps = decision->nr_steps;
	nm_entry_decision(&entry, &dry_context, decision, &receipt);
	assert_one_line();
}

TEST(test_decisions_about_threads_are_short)
{
	static const int errors[] = {-ESRCH, -ESTALE, -EROFS, -EPERM, -EINVAL, -ENOMEM};
	for (int kind = NM_DECISION_MIGRATE; kind <= NM_DECISION_ROLLBACK; kind++) {
		struct nm_decision decision = long_decision((enum nm_decision_kind)kind);
		assert_decision_fits(&decision);
		for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
			struct nm_receipt receipt = refused(errors[i], "identity");
			if (kind == NM_DECISION_SWAP) {
				receipt.nr_steps = 2;
				receipt.steps[1] = (struct nm_receipt_step){.applied = true};
			}
			nm_entry_decision(&entry, &context, &decision, &receipt);
			assert_one_line();
			assert_field("CHECK", "identity");
		}
		decision.policy = kind == NM_DECISION_MIGRATE ? NM_POLICY_KMAF : NM_POLICY_IMAR2;
		assert_decision_fits(&decision);
		decision.policy = NM_POLICY_IMAR2;
		decision.by_performance = true;
		for (unsigned i = 0; i < decision.nr_steps; i++)
			decision.steps[i].relative_before = 0.42;
		struct nm_receipt receipt = applied(decision.nr_steps);
		nm_entry_decision(&entry, &context, &decision, &receipt);
		assert_one_line();
	}
}

TEST(test_decisions_to_balance_are_short)
{
	struct nm_decision decision = long_decision(NM_DECISION_MIGRATE);
	decision.balance = (struct nm_balance_reason){
		.given = true, .load_from = 2.34, .load_to = 0.12, .by = NM_SELECTED_BY_LEADER};
	for (int i = NM_SELECTION_FIRST_FIT; i <= NM_SELECTION_MOST_BENEFIT_PLUS; i++) {
		decision.balance.selection = (enum nm_selection)i;
		assert_decision_fits(&decision);
	}
}

TEST(test_homes_and_pages_are_short)
{
	struct nm_decision busy = home_of_lu();
	struct nm_decision pages = {
		.id = 1234,
		.kind = NM_DECISION_PAGES,
		.undoes = 1230,
		.pages = {.pages = 12345, .bytes = 12345 << 12, .exclusivity = 0.98},
		.nr_steps = 1,
		.steps = {{.pid = LONG_PID, .comm = LONG_NAME, .node_to = 1}}};
	busy.id = 1234;
	busy.steps[0].pid = LONG_PID;
	memcpy(busy.steps[0].comm, LONG_NAME, sizeof(LONG_NAME));
	busy.home.threads = 64;
	busy.home.demand_cpus = 63.9;
	busy.home.bytes_away = UINT64_C(4321) << 20;
	/* Reasons against a home are not logged. */
	for (int i = 0; i < NM_PLACE_HAS_HOME; i++) {
		busy.home.reason = (enum nm_place_reason)i;
		nm_entry_decision(&entry, &context, &busy, NULL);
		assert_one_line();
		nm_entry_decision(&entry, &dry_context, &busy, NULL);
		assert_one_line();
		assert_message_contains(nm_place_reason_text(busy.home.reason));
	}
	for (int i = NM_PAGE_REASON_PAGES; i <= NM_PAGE_REASON_ROLLBACK; i++) {
		pages.pages.reason = (enum nm_page_reason)i;
		nm_entry_decision(&entry, &context, &pages, NULL);
		assert_one_line();
		nm_entry_decision(&entry, &dry_context, &pages, NULL);
		assert_one_line();
	}
}

TEST(test_verdicts_are_short)
{
	for (int kind = NM_VERDICT_IMPROVED; kind <= NM_VERDICT_INCONCLUSIVE; kind++)
		for (unsigned measure = 0; measure < 4; measure++) {
			struct nm_verdict long_verdict = verdict((enum nm_verdict_kind)kind);
			long_verdict.decision = 1234;
			memcpy(long_verdict.threads[0].comm, "postgres", sizeof("postgres"));
			long_verdict.threads[0].tid = long_verdict.threads[0].pid = 54321;
			long_verdict.threads[1] = long_verdict.threads[0];
			long_verdict.nr_threads =
				measure == 3 ? 1 : 2; /* policy "balance" makes no swaps */
			long_verdict.by_performance = measure == 1;
			if (measure == 2)
				long_verdict.policy = NM_POLICY_KMAF;
			long_verdict.balance.given = measure == 3;
			long_verdict.figure = 0.88;
			long_verdict.slowdown = NAN;
			long_verdict.cost_before = long_verdict.measured_benefit = 1.23e9;
			nm_entry_verdict(&entry, &context, &long_verdict);
			assert_one_line();
		}
}

/* SECURITY: names */
TEST(test_hostile_command_name)
{
	static const char raw[] = "a\n\x1b[31m\xff) R 1\\";
	struct nm_decision decision = migrate();
	struct nm_receipt receipt = applied(1);
	nm_escape(decision.steps[0].comm, sizeof(decision.steps[0].comm), raw, sizeof(raw) - 1);
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_message_contains("a\\x0a\\x1b[31m\\xff) R 1\\x5c[1234/1240]");
	/* Even if a caller forgets the escaping, an entry is one line. */
	nm_entry_text(&entry, "%s", raw);
	assert_null(strpbrk(entry.text, "\n\x1b"));
	nm_entry_field(&entry, "COMM", "%s", raw);
	assert_null(strpbrk(field("COMM"), "\n\x1b"));
}

TEST(test_overlong_is_cut_and_marked)
{
	char longer[2048];
	for (size_t i = 0; i + 2 < sizeof(longer); i += 2)
		memcpy(longer + i, "\xc3\xa4", 3);
	for (size_t shift = 0; shift < 2;
	     shift++) { /* in one of them a character crosses the limit */
		nm_entry_begin(&entry, NM_MESSAGE_PROBLEM, LOG_WARNING);
		nm_entry_text(&entry, "%s%s", shift ? "x" : "", longer);
		nm_entry_field(&entry, "A", "%s%s", shift ? "x" : "", longer);
		const char *const texts[] = {entry.text, field("A")};
		for (size_t i = 0; i < NM_ARRAY_SIZE(texts); i++) {
			size_t length = strlen(texts[i]);
			assert_string_equal(texts[i] + length - 3, "\xe2\x80\xa6");
			assert_memory_equal(texts[i] + length - 5, "\xc3\xa4", 2);
		}
		assert_true(strlen(entry.text) < sizeof(entry.text));
	}
}

TEST(test_fields_replace_and_end)
{
	nm_entry_begin(&entry, NM_MESSAGE_START, LOG_NOTICE);
	assert_field("KIND", "start");
	nm_entry_field(&entry, "KIND", "%s", "other");
	nm_entry_field(&entry, "KIN", "%s", "not the same name");
	assert_field("KIND", "other");
	assert_int_equal(entry.count, 2);
	for (unsigned i = 0; i < 2 * NM_ENTRY_FIELDS; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "F%u", i);
		nm_entry_field(&entry, name, "%u", i);
	}
	assert_int_equal(entry.count, NM_ENTRY_FIELDS);
}

TEST(test_catalog_explains_every_message)
{
	char line[512];
	unsigned texts = 0, seen[NM_MESSAGE_MAX] = {0};
	FILE *catalog = fopen(NM_SOURCE_DIR "/systemd/numa-migrd.catalog", "re");
	assert_non_null(catalog);
	while (fgets(line, sizeof(line), catalog)) {
		if (strncmp(line, "-- ", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		texts++;
		for (int i = 0; i < NM_MESSAGE_MAX; i++)
			if (strcmp(line + 3, nm_message_id((enum nm_message)i)) == 0)
				seen[i]++;
	}
	(void)fclose(catalog);
	assert_int_equal(texts, NM_MESSAGE_MAX);
	for (int i = 0; i < NM_MESSAGE_MAX; i++) {
		assert_int_equal(seen[i], 1);
		assert_int_equal(strspn(nm_message_id((enum nm_message)i), "0123456789abcdef"), 32);
	}
}

/* ---- IMAR² ---- */

static struct nm_decision by_performance(void)
{
	struct nm_decision decision = migrate();
	decision.by_performance = true;
	decision.policy = NM_POLICY_IMAR2;
	decision.tickets =
		(struct nm_tickets){.total = 10, .free_cpu = 2, .preferred = 4, .record = 4};
	decision.steps[0].performance_before = 1.5e9;
	decision.steps[0].relative_before = 0.42;
	decision.steps[0].record = 2.5e9;
	decision.steps[0].latency_before = 417;
	return decision;
}

TEST(test_performance_of_a_decision)
{
	struct nm_decision decision = by_performance();
	struct nm_receipt receipt = applied(1);
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_message_contains(": 58 % below mean; 98 % of 412 accesses on node 2 [#17]");
	assert_one_line();
	assert_field("TICKETS_PARTS", "free_cpu=2 preferred=4 record=4 partner=0 "
				      "partner_record=0 partner_slow=0");
	assert_field("PERFORMANCE", "1.5e+09");
	assert_field("RELATIVE_PERMILLE", "420");
	assert_field("RECORD", "2.5e+09");
	assert_field("LATENCY_CYCLES", "417");
}

TEST(test_unknown_performance_is_left_out)
{
	struct nm_decision decision = by_performance();
	struct nm_receipt receipt = applied(1);
	decision.steps[0].record = decision.steps[0].latency_before = NAN;
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_null(strstr(entry.text, "nan"));
	assert_null(field("RECORD"));
	assert_null(field("LATENCY_CYCLES"));
}

TEST(test_a_swap_by_performance_fits)
{
	struct nm_decision decision = by_performance();
	struct nm_receipt receipt = applied(2);
	decision.kind = NM_DECISION_SWAP;
	decision.nr_steps = 2;
	decision.steps[1] = decision.steps[0];
	decision.tickets = (struct nm_tickets){.total = 19,
					       .preferred = 4,
					       .record = 4,
					       .partner = 4,
					       .partner_record = 4,
					       .partner_slow = 3};
	nm_entry_decision(&entry, &context, &decision, &receipt);
	assert_one_line();
	assert_field("TICKETS_PARTS", "free_cpu=0 preferred=4 record=4 partner=4 "
				      "partner_record=4 partner_slow=3");
	assert_field("LATENCY_CYCLES_2", "417");
	assert_true(entry.count < NM_ENTRY_FIELDS);
}

TEST(test_performance_of_a_verdict)
{
	struct nm_verdict verdict = {.decision = 17,
				     .of = NM_DECISION_MIGRATE,
				     .kind = NM_VERDICT_ROLLED_BACK,
				     .intervals = 1,
				     .by_performance = true,
				     .figure = 0.7,
				     .losses = 0.7,
				     .global_before = 1000,
				     .global_after = 850,
				     .interval_s = 2,
				     .nr_threads = 1};
	verdict.threads[0] = (struct nm_verdict_thread){.comm = "simple",
							.tid = 5,
							.pid = 4,
							.alive = true,
							.ran_on_node = true,
							.local_before = 0.5,
							.local_after = 1,
							.latency_before = 300,
							.latency_after = 400,
							.performance_before = 100,
							.performance_after = 70};
	nm_entry_verdict(&entry, &context, &verdict);
	assert_string_equal(entry.text, "#17 rolled back: simple[4/5] performance -30 %");
	assert_field("VERDICT", "rolled-back");
	assert_field("PERFORMANCE_BEFORE", "100");
	assert_field("PERFORMANCE_AFTER", "70");
	assert_field("LATENCY_BEFORE_CYCLES", "300");
	assert_field("LATENCY_AFTER_CYCLES", "400");
	assert_field("PERFORMANCE_LEFT", "0.7");
	assert_field("PERFORMANCE_LEFT_IN_ALL", "0.7");
	assert_field("NOISE_PERMILLE", "0");
	verdict.figure = 0.95;
	verdict.losses = 0.88;
	verdict.noise = 0.03;
	nm_entry_verdict(&entry, &context, &verdict);
	assert_message_contains("performance -5 %");
	assert_field("NOISE_PERMILLE", "30");
	assert_field("PERFORMANCE_LEFT_IN_ALL", "0.88");
	assert_field("GLOBAL_BEFORE", "1000");
	assert_field("GLOBAL_AFTER", "850");
	assert_field("INTERVAL_S", "2");
	verdict.by_performance = false;
	nm_entry_verdict(&entry, &context, &verdict);
	assert_null(field("PERFORMANCE_BEFORE"));
	assert_null(strstr(entry.text, "performance"));
}

RUN_TESTS()

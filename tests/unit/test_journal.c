/* SPDX-License-Identifier: MIT */
/* Entries of the journal: each is compared as a line, with its fields. */
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

/* A value with changes, which are assignments to `it`. */
#define WITH(value, ...)                                                                           \
	({                                                                                         \
		__typeof__(value) it = value;                                                      \
		__VA_ARGS__;                                                                       \
		it;                                                                                \
	})

static const char *field(const char *name)
{
	size_t length = strcspn(name, "=");
	for (unsigned i = 0; i < entry.count; i++)
		if (strncmp(entry.fields[i], name, length) == 0 && entry.fields[i][length] == '=')
			return entry.fields[i] + length + 1;
	return NULL;
}

/* One line of at most 120 characters without a number that is none. (Continuation bytes of UTF-8
 * are not counted.) */
static void is_short(void)
{
	size_t length = 0;
	for (const char *at = entry.text; *at; at++)
		length += ((unsigned char)*at & 0xc0) != 0x80;
	if (length > 120 || strchr(entry.text, '\n') || strstr(entry.text, "nan"))
		fail_msg("not a short line: %s", entry.text);
}

/* The text, or a part of it after "~"; and fields, separated by "; ", of which "NAME=-" is none. */
static void is(const char *text, const char *fields)
{
	char copy[1000], *rest = copy, *wanted;
	is_short();
	if (text[0] == '~' ? !strstr(entry.text, text + 1) : strcmp(entry.text, text) != 0)
		fail_msg("expected \"%s\"\nfound    \"%s\"", text, entry.text);
	(void)snprintf(copy, sizeof(copy), "%s", fields);
	while ((wanted = strsep(&rest, ";"))) {
		wanted += strspn(wanted, " ");
		const char *found = field(wanted), *expected = wanted + strcspn(wanted, "=") + 1;
		if (*wanted && strcmp(found ? found : "-", expected) != 0)
			fail_msg("%s: expected %s, found %s", entry.text, wanted,
				 found ? found : "no such field");
	}
}

static struct nm_step step(uint32_t tid, int cpu, int from, int to)
{
	return WITH((struct nm_step){.comm = "perf"}, it.tid = tid, it.pid = 1234,
		    it.cpu_from = cpu, it.cpu_to = 1, it.node_from = from, it.node_to = to,
		    it.local_before = 0.02, it.samples_before = 412);
}

static struct nm_decision migrate(void)
{
	return WITH((struct nm_decision){.id = 17}, it.policy = NM_POLICY_LBMA,
		    it.kind = NM_DECISION_MIGRATE, it.interval = 5,
		    it.tickets = (struct nm_tickets){.total = 4, .preferred = 4}, it.draw = 0.31,
		    it.gain = 0.96, it.nr_steps = 1, it.steps[0] = step(1240, 5, 1, 0));
}

static struct nm_decision swap(void)
{
	return WITH(migrate(), it.kind = NM_DECISION_SWAP, it.nr_steps = 2,
		    it.steps[1] = step(1250, 0, 0, 1),
		    it.tickets = (struct nm_tickets){.total = 8, .preferred = 4, .partner = 4});
}

static struct nm_receipt applied(unsigned steps)
{
	struct nm_receipt receipt = {.decision = 17, .applied = true, .nr_steps = steps};
	for (unsigned i = 0; i < steps; i++)
		receipt.steps[i] = (struct nm_receipt_step){.tried = true, .applied = true};
	return receipt;
}

static struct nm_receipt refused(int error)
{
	return (struct nm_receipt){.decision = 17,
				   .nr_steps = 1,
				   .steps = {{.tried = true, .error = error, .what = "identity"}}};
}

static struct nm_receipt half(int error)
{
	return WITH(refused(error), it.nr_steps = 2, it.steps[1] = it.steps[0],
		    it.steps[0] = (struct nm_receipt_step){.tried = true, .applied = true});
}

static void print(const struct nm_entry_context *of, struct nm_decision decision,
		  struct nm_receipt receipt)
{
	nm_entry_decision(&entry, of, &decision, receipt.nr_steps ? &receipt : NULL);
}

static void decide(struct nm_decision decision)
{
	print(&context, decision, applied(decision.nr_steps));
}

/* Without a receipt: of processes. */
static void place(struct nm_decision decision)
{
	print(&context, decision, (struct nm_receipt){0});
}

static void judge(struct nm_verdict verdict)
{
	nm_entry_verdict(&entry, &context, &verdict);
}

/* ---- decisions about threads ---- */

TEST(test_decisions_about_threads)
{
	hwloc_bitmap_t target = hwloc_bitmap_alloc();
	decide(migrate());
	is("Moved perf[1234/1240] from CPU 5 (node 7) to node 2: 98 % of 412 accesses on node 2 "
	   "[#17]",
	   "KIND=migrate; DECISION=17; POLICY=lbma; SEED=99; RESULT=applied; PID=1234; TID=1240; "
	   "COMM=perf; CPU_FROM=5; NODE_FROM=7; NODE_TO=2; TICKETS=4; "
	   "TICKETS_PARTS=free_cpu=0 preferred=4 partner=0; LOCAL_SHARE_PERMILLE=20; "
	   "ACCESSES=412; DRAW=0.31; ERRNO=-");
	assert_int_equal(entry.priority, LOG_INFO);
	hwloc_bitmap_set(target, 1);
	decide(WITH(migrate(), it.steps[0].target = target));
	is("~to CPU 1 (node 2)", "");
	hwloc_bitmap_set(target, 2);
	decide(WITH(migrate(), it.steps[0].target = target));
	is("~to node 2:", "");
	hwloc_bitmap_free(target);
	decide(WITH(migrate(), it.steps[0].local_before = NAN, it.steps[0].cpu_from = -1,
		    it.steps[0].node_to = -1, it.gain = NAN));
	is("~from node 7 to an unknown node [#17]",
	   "LOCAL_SHARE_PERMILLE=-; GAIN_PERMILLE=-; CPU_FROM=-; NODE_TO=-");
	decide(WITH(swap(), it.gain = 0.5));
	is("Swapped perf[1234/1240] (node 7) and perf[1234/1250] (node 2): +50 points of local "
	   "accesses [#17]",
	   "TICKETS_PARTS=free_cpu=0 preferred=4 partner=4; KIND=swap; TID=1240; TID_2=1250; "
	   "NODE_TO_2=7");
	decide(WITH(migrate(), it.kind = NM_DECISION_ROLLBACK, it.undoes = 12));
	is("Moved back perf[1234/1240] from CPU 5 (node 7) to node 2: rollback of #12 [#17]",
	   "KIND=rollback; UNDOES=12; DRAW=-");
	print(&dry_context, migrate(), refused(-EROFS));
	is("~Would move perf[1234/1240] from CPU 5 (node 7) to node 2: 98 % of 412",
	   "RESULT=dry-run");
	print(&dry_context, migrate(), refused(-ESRCH));
	is("~Could not move", "RESULT=refused");
	print(&context, swap(), half(-ESRCH));
	is("Could not swap perf[1234/1240] (node 7) and perf[1234/1250] (node 2): thread ended; "
	   "TID 1240 moved [#17]",
	   "");
}

TEST(test_moves_within_a_node_name_their_places)
{
	decide(WITH(migrate(), it.policy = NM_POLICY_KMAF, it.steps[0].node_to = 1));
	is("~Moved perf[1234/1240] from CPU 5 (node 7) to the cache of CPU 1 (node 7)", "");
	decide(WITH(swap(), it.policy = NM_POLICY_KMAF, it.steps[0].node_to = 1,
		    it.steps[1].node_to = 0));
	is("~Swapped perf[1234/1240] (CPU 5) and perf[1234/1250] (CPU 0)", "");
}

TEST(test_refusals_name_the_thread_and_the_cause)
{
	static const struct {
		int error;
		const char *text, *fields;
		int priority;
	} rows[] = {
		{-ESRCH, "~: thread ended [#17]", "ERRNO=3", LOG_INFO},
		{-ESTALE, "~: affinity changed meanwhile [#17]", "ERRNO=116", LOG_INFO},
		{-EROFS, "~: moves cannot be recorded [#17]", "ERRNO=30", LOG_WARNING},
		{-EPERM, "~: CAP_SYS_NICE is missing [#17]", "ERRNO=1", LOG_WARNING},
		{-EINVAL, "~: cpuset allows none of its CPUs [#17]", "ERRNO=22", LOG_WARNING},
		{-ENOMEM, "~: identity: Cannot allocate memory [#17]", "ERRNO=12", LOG_WARNING},
	};
	EACH_ROW(row, rows)
	{
		print(&context, migrate(), refused(row->error));
		is("~Could not move perf[1234/1240]", "RESULT=refused; CHECK=identity");
		is(row->text, row->fields);
		assert_int_equal(entry.priority, row->priority);
	}
}

/* ---- verdicts ---- */

static struct nm_verdict verdict(enum nm_verdict_kind kind)
{
	const struct nm_verdict_thread thread =
		WITH((struct nm_verdict_thread){.comm = "perf"}, it.tid = 1240, it.pid = 1234,
		     it.alive = it.ran_on_node = true, it.cpu_from = 5, it.node_from = 1,
		     it.local_before = 0.02, it.local_after = 0.97,
		     it.accesses_after = it.samples_after = 300);
	return WITH((struct nm_verdict){.decision = 17}, it.of = NM_DECISION_MIGRATE,
		    it.kind = kind, it.intervals = 1, it.nr_threads = 1, it.threads[0] = thread);
}

static struct nm_verdict of_two(void)
{
	return WITH(verdict(NM_VERDICT_INCONCLUSIVE), it.nr_threads = 2,
		    it.threads[1] = it.threads[0], it.threads[1].tid = 1250);
}

TEST(test_verdicts)
{
	judge(WITH(verdict(NM_VERDICT_IMPROVED), it.locality_before = 0.5, it.locality_after = 0.97,
		   it.locality_noise = 0.03));
	is("#17 improved: perf[1234/1240] locality 50 % \xe2\x86\x92 97 %",
	   "COMM=perf; INTERVALS=1; VERDICT=improved; LOCALITY_BEFORE_PERMILLE=500; "
	   "LOCALITY_AFTER_PERMILLE=970; LOCALITY_NOISE_PERMILLE=30; KIND=verdict; "
	   "DECISION_KIND=migrate; RAN_ON_NODE=1; LOCAL_SHARE_BEFORE_PERMILLE=20; "
	   "LOCAL_SHARE_AFTER_PERMILLE=970");
	judge(WITH(verdict(NM_VERDICT_ROLLED_BACK), it.threads[0].local_before = NAN));
	is("#17 rolled back: perf[1234/1240] local accesses \xe2\x80\x93 \xe2\x86\x92 97 %",
	   "VERDICT=rolled-back; LOCAL_SHARE_BEFORE_PERMILLE=-");
	judge(WITH(verdict(NM_VERDICT_CANCELLED), it.threads[0].ran_on_node = false,
		   it.intervals = 3));
	is("#17 cancelled: perf[1234/1240] not seen on node 2",
	   "INTERVALS=3; KIND=cancel; RAN_ON_NODE=0");
	judge(WITH(of_two(), it.threads[1].alive = false));
	is("#17 inconclusive: perf[1234/1250] ended", "VERDICT=inconclusive; TID_2=1250");
	judge(WITH(of_two(), it.superseded = true));
	is("#17 inconclusive: perf[1234/1240] and perf[1234/1250] moved again", "");
	judge(WITH(verdict(NM_VERDICT_NEUTRAL), it.of = NM_DECISION_ROLLBACK));
	is("#17 neutral: perf[1234/1240] is back on node 2", "");
}

/* NM_MOVE_MISSED is only counted. */
TEST(test_events_of_moves)
{
	static const struct {
		enum nm_move_event_kind kind;
		int error;
		const char *text, *fields;
	} rows[] = {
		{NM_MOVE_FOREIGN, 0, "Affinity of 1234/1240 changed externally; no longer managed",
		 "AFFINITY=external; ERRNO=-"},
		{NM_MOVE_INHERITED, 0,
		 "Affinity of 1234/1240 restored: inherited from a moved thread",
		 "AFFINITY=inherited; ERRNO=-"},
		{NM_MOVE_FAILED, -EPERM,
		 "Affinity of 1234/1240 not restored, will be tried again: Operation not permitted",
		 "AFFINITY=failed; ERRNO=1"},
		{NM_MOVE_RETURNED, 0, "Affinity of 1234/1240 restored",
		 "AFFINITY=restored; ERRNO=-"},
	};
	EACH_ROW(row, rows)
	{
		nm_entry_move(&entry, &(struct nm_move_event){.kind = row->kind,
							      .tid = 1240,
							      .pid = 1234,
							      .decision = 17,
							      .error = row->error});
		is(row->text, row->fields);
		is(row->text, "KIND=affinity; TID=1240; DECISION=17");
	}
}

/* ---- homes and pages ---- */

static struct nm_decision home_of_lu(void)
{
	return WITH((struct nm_decision){.steps = {{.comm = "lu"}}}, it.id = 2,
		    it.kind = NM_DECISION_HOME, it.policy = NM_POLICY_AUTO,
		    it.home.reason = NM_PLACE_REMOTE, it.home.gain = 0.198, it.home.threads = 10,
		    it.home.demand_cpus = 10, it.home.age_s = 2.3, it.home.distance_now = 19.9,
		    it.home.distance_home = 10, it.home.bytes_away = 3 << 20, it.home.move_s = 0.01,
		    it.nr_steps = 1, it.steps[0].pid = 4711, it.steps[0].node_to = 1);
}

TEST(test_a_home_names_the_process)
{
	place(home_of_lu());
	is("Placed lu[4711] on node 7: remote memory, 20 % expected; 10 threads, 10.0 CPUs, "
	   "distance 19.9 \xe2\x86\x92 10.0 [#2]",
	   "KIND=home; BYTES_AWAY=3145728; EXPECTED_PERCENT=19.8; DEMAND_CPUS=10; AGE_S=2.3");
	print(&dry_context, home_of_lu(), (struct nm_receipt){0});
	is("~Would place lu[4711] on node 7", "");
	struct nm_decision decision = WITH(home_of_lu(), it.home.threads = 1,
					   it.home.distance_now = NAN, it.home.move_s = NAN);
	place(decision);
	is("~remote memory, 20 % expected; 1 thread, 10.0 CPUs [#2]", "");
	place(WITH(decision, it.home.keeps_memory = true));
	is("~10.0 CPUs, memory stays (max_gb_of_process) [#2]", "");
}

static struct nm_verdict on_lu(enum nm_verdict_kind kind, enum nm_measure by, double change)
{
	return WITH((struct nm_verdict){.threads = {{.comm = "lu"}}}, it.decision = 2,
		    it.of = NM_DECISION_HOME, it.kind = kind, it.judged_by = by, it.change = change,
		    it.expected_gain = 0.198, it.measured_gain = NAN, it.results.moved = 1,
		    it.nr_threads = 1, it.threads[0].pid = 4711,
		    it.threads[0].alive = it.threads[0].ran_on_node = true,
		    it.threads[0].node_to = 1);
}

TEST(test_the_verdict_on_a_home_names_the_process)
{
	judge(WITH(on_lu(NM_VERDICT_IMPROVED, NM_BY_PERFORMANCE, 0.31), it.measured_gain = 0.24,
		   it.results.moved = 195));
	is("#2 improved: lu[4711] performance +31 %, 24 % saved, 20 % expected, 195 pages "
	   "migrated",
	   "JUDGED_BY=performance; CHANGE_PERMILLE=310; EXPECTED_PERCENT=19.8; "
	   "MEASURED_PERCENT=24");
	judge(on_lu(NM_VERDICT_ROLLED_BACK, NM_BY_PERFORMANCE, -0.08));
	is("#2 rolled back: lu[4711] performance -8 %, 1 page migrated", "VERDICT=rolled-back");
	judge(on_lu(NM_VERDICT_ROLLED_BACK, NM_BY_DISTANCE, 0.25));
	is("~lu[4711] memory distance -20 %, 1 page migrated", "JUDGED_BY=distance");
	judge(on_lu(NM_VERDICT_ROLLED_BACK, NM_BY_DELAY, -0.3));
	is("~lu[4711] run queue delay +30 % of its CPU time", "");
	struct nm_verdict none =
		WITH(on_lu(NM_VERDICT_INCONCLUSIVE, NM_BY_NOTHING, NAN), it.results.moved = 0);
	judge(none);
	is("#2 inconclusive: lu[4711], no comparable samples",
	   "MEASURED_PERCENT=-; NEEDED_INTERVALS=-");
	judge(WITH(none, it.needed = 32));
	is("~lu[4711], its noise hides a change: 32 intervals needed", "NEEDED_INTERVALS=32");
	judge(WITH(none, it.needed = 32, it.kind = NM_VERDICT_UNVERIFIED));
	is("~lu[4711], placed too young to be measured before", "");
}

static struct nm_decision pages_of(const char *comm, uint32_t pid)
{
	struct nm_decision decision =
		WITH((struct nm_decision){.id = 5}, it.kind = NM_DECISION_PAGES,
		     it.pages.reason = NM_PAGE_REASON_PAGES, it.pages.pages = 24,
		     it.pages.bytes = 24 * 4096, it.pages.exclusivity = 0.98, it.nr_steps = 1,
		     it.steps[0].pid = pid, it.steps[0].node_to = 1);
	(void)snprintf(decision.steps[0].comm, sizeof(decision.steps[0].comm), "%s", comm);
	return decision;
}

TEST(test_pages_and_their_verdict)
{
	const struct nm_decision decision = pages_of("pinned", 812);
	place(decision);
	is("Migrated 24 pages (96 KiB) of pinned[812] from node 2 to node 7: 98 % of accesses from "
	   "node 7 [#5]",
	   "RESULT=asked");
	struct nm_verdict judged =
		WITH(nm_verdict_of(&decision), it.kind = NM_VERDICT_IMPROVED,
		     it.results = (struct nm_page_results){.moved = 20, .failed = 4, .busy = 4},
		     it.threads[0].alive = it.threads[0].ran_on_node = true,
		     it.threads[0].local_before = 0.12, it.threads[0].local_after = 0.98);
	judge(judged);
	is("#5 improved: pinned[812] local accesses 12 % \xe2\x86\x92 98 %, 20 of 24 pages "
	   "migrated",
	   "PAGES_EBUSY=4; DECISION_KIND=pages");
	judged = WITH(judged, it.by_performance = true, it.figure = 1.31);
	judge(judged);
	is("~pinned[812] performance +31 %, 20 of 24", "");
	judged = WITH(judged, it.pages.pages = 1,
		      it.results = (struct nm_page_results){.failed = 24, .busy = 4, .gone = 20});
	judge(judged);
	is("~, 0 of 1 page migrated (20 not present)", "");
	judge(WITH(judged, it.threads[0].alive = false));
	is("~pinned[812] ended, 0 of 1 page migrated", "");
}

/* ---- length ---- */

/* Of a name of 15 characters, PIDs of seven digits, CPUs of two and decisions of four. */
#define LONG_NAME "postgres-worker"
#define LONG_PID 4194303U

static struct nm_decision long_decision(enum nm_decision_kind kind)
{
	struct nm_decision decision =
		WITH(kind == NM_DECISION_SWAP ? swap() : migrate(), it.id = 1234, it.undoes = 1230,
		     it.kind = kind, it.cost_before = 12345, it.cost_after = 1234);
	for (unsigned i = 0; i < decision.nr_steps; i++) {
		decision.steps[i] = WITH(step(LONG_PID - 1 - i, 95, 1, 0), it.pid = LONG_PID,
					 it.samples_before = 1641, it.relative_before = 0.42);
		memcpy(decision.steps[i].comm, LONG_NAME, sizeof(LONG_NAME));
	}
	return decision;
}

static void fits(struct nm_decision decision)
{
	decide(decision);
	is_short();
	print(&dry_context, decision, refused(-EROFS));
	is_short();
}

TEST(test_decisions_about_threads_are_short)
{
	static const int errors[] = {-ESRCH, -ESTALE, -EROFS, -EPERM, -EINVAL, -ENOMEM};
	for (int kind = NM_DECISION_MIGRATE; kind <= NM_DECISION_ROLLBACK; kind++) {
		struct nm_decision decision = long_decision((enum nm_decision_kind)kind);
		fits(decision);
		for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
			print(&context, decision,
			      kind == NM_DECISION_SWAP ? half(errors[i]) : refused(errors[i]));
			is("~", "CHECK=identity");
		}
		fits(WITH(decision, it.policy = kind == NM_DECISION_MIGRATE ? NM_POLICY_KMAF
									    : NM_POLICY_IMAR2));
		decide(WITH(decision, it.policy = NM_POLICY_IMAR2, it.by_performance = true));
		is_short();
	}
}

TEST(test_decisions_to_balance_are_short)
{
	struct nm_decision decision = long_decision(NM_DECISION_MIGRATE);
	decision.balance = (struct nm_balance_reason){
		.given = true, .load_from = 2.34, .load_to = 0.12, .by = NM_SELECTED_BY_LEADER};
	for (int i = NM_SELECTION_FIRST_FIT; i <= NM_SELECTION_MOST_BENEFIT_PLUS; i++)
		fits(WITH(decision, it.balance.selection = (enum nm_selection)i));
}

/* Reasons against a home are not logged. */
TEST(test_homes_and_pages_are_short)
{
	struct nm_decision busy =
		WITH(home_of_lu(), it.id = 1234, it.steps[0].pid = LONG_PID, it.home.threads = 64,
		     it.home.demand_cpus = 63.9, it.home.bytes_away = UINT64_C(4321) << 20);
	struct nm_decision pages =
		WITH(pages_of(LONG_NAME, LONG_PID), it.id = 1234, it.undoes = 1230,
		     it.pages.pages = 12345, it.pages.bytes = 12345 << 12);
	memcpy(busy.steps[0].comm, LONG_NAME, sizeof(LONG_NAME));
	for (int i = 0; i < NM_PLACE_HAS_HOME; i++) {
		busy.home.reason = (enum nm_place_reason)i;
		place(busy);
		is_short();
		print(&dry_context, busy, (struct nm_receipt){0});
		is_short();
		assert_non_null(strstr(entry.text, nm_place_reason_text(busy.home.reason)));
	}
	for (int i = NM_PAGE_REASON_PAGES; i <= NM_PAGE_REASON_ROLLBACK; i++) {
		pages.pages.reason = (enum nm_page_reason)i;
		place(pages);
		is_short();
		print(&dry_context, pages, (struct nm_receipt){0});
		is_short();
	}
}

/* By locality, performance, sharing, and of "balance", which makes no swaps. */
TEST(test_verdicts_are_short)
{
	for (int kind = NM_VERDICT_IMPROVED; kind <= NM_VERDICT_INCONCLUSIVE; kind++)
		for (unsigned measure = 0; measure < 4; measure++) {
			struct nm_verdict longest = WITH(
				verdict((enum nm_verdict_kind)kind), it.decision = 1234,
				it.nr_threads = measure == 3 ? 1 : 2,
				it.by_performance = measure == 1, it.balance.given = measure == 3,
				it.figure = 0.88, it.slowdown = NAN, it.cost_before = 1.23e9,
				it.measured_benefit = 1.23e9,
				it.threads[0].tid = it.threads[0].pid = 54321);
			if (measure == 2)
				longest.policy = NM_POLICY_KMAF;
			memcpy(longest.threads[0].comm, "postgres", sizeof("postgres"));
			longest.threads[1] = longest.threads[0];
			judge(longest);
			is_short();
		}
}

/* ---- the form of an entry ---- */

/* Even if a caller forgets the escaping, an entry is one line. */
/* SECURITY: names */
TEST(test_hostile_command_name)
{
	static const char raw[] = "a\n\x1b[31m\xff) R 1\\";
	struct nm_decision decision = migrate();
	nm_escape(decision.steps[0].comm, sizeof(decision.steps[0].comm), raw, sizeof(raw) - 1);
	decide(decision);
	is("~a\\x0a\\x1b[31m\\xff) R 1\\x5c[1234/1240]", "");
	nm_entry_text(&entry, "%s", raw);
	nm_entry_field(&entry, "COMM", "%s", raw);
	assert_null(strpbrk(entry.text, "\n\x1b"));
	assert_null(strpbrk(field("COMM"), "\n\x1b"));
}

/* In one of two cases a character crosses the limit. */
TEST(test_overlong_is_cut_and_marked)
{
	char longer[2048];
	for (size_t i = 0; i + 2 < sizeof(longer); i += 2)
		memcpy(longer + i, "\xc3\xa4", 3);
	for (size_t shift = 0; shift < 2; shift++) {
		nm_entry_begin(&entry, NM_MESSAGE_PROBLEM, LOG_WARNING);
		nm_entry_text(&entry, "%s%s", shift ? "x" : "", longer);
		nm_entry_field(&entry, "A", "%s%s", shift ? "x" : "", longer);
		const char *const texts[] = {entry.text, field("A")};
		for (size_t i = 0; i < NM_ARRAY_SIZE(texts); i++)
			assert_string_equal(texts[i] + strlen(texts[i]) - 5,
					    "\xc3\xa4\xe2\x80\xa6");
		assert_true(strlen(entry.text) < sizeof(entry.text));
	}
}

TEST(test_fields_replace_and_end)
{
	nm_entry_begin(&entry, NM_MESSAGE_START, LOG_NOTICE);
	assert_string_equal(field("KIND"), "start");
	nm_entry_field(&entry, "KIND", "%s", "other");
	nm_entry_field(&entry, "KIN", "%s", "not the same name");
	assert_string_equal(field("KIND"), "other");
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
			seen[i] += strcmp(line + 3, nm_message_id((enum nm_message)i)) == 0;
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
	return WITH(migrate(), it.by_performance = true, it.policy = NM_POLICY_IMAR2,
		    it.tickets =
			    (struct nm_tickets){
				    .total = 10, .free_cpu = 2, .preferred = 4, .record = 4},
		    it.steps[0].performance_before = 1.5e9, it.steps[0].relative_before = 0.42,
		    it.steps[0].record = 2.5e9, it.steps[0].latency_before = 417);
}

TEST(test_performance_of_a_decision)
{
	decide(by_performance());
	is("~: 58 % below mean; 98 % of 412 accesses on node 2 [#17]",
	   "TICKETS_PARTS=free_cpu=2 preferred=4 record=4 partner=0 partner_record=0 "
	   "partner_slow=0; PERFORMANCE=1.5e+09; RELATIVE_PERMILLE=420; RECORD=2.5e+09; "
	   "LATENCY_CYCLES=417");
	decide(WITH(by_performance(), it.steps[0].record = it.steps[0].latency_before = NAN));
	is("~58 % below mean", "RECORD=-; LATENCY_CYCLES=-");
}

TEST(test_a_swap_by_performance_fits)
{
	const struct nm_tickets tickets = {.total = 19,
					   .preferred = 4,
					   .record = 4,
					   .partner = 4,
					   .partner_record = 4,
					   .partner_slow = 3};
	decide(WITH(by_performance(), it.kind = NM_DECISION_SWAP, it.nr_steps = 2,
		    it.steps[1] = it.steps[0], it.tickets = tickets));
	is("~", "TICKETS_PARTS=free_cpu=0 preferred=4 record=4 partner=4 partner_record=4 "
		"partner_slow=3; LATENCY_CYCLES_2=417");
	assert_true(entry.count < NM_ENTRY_FIELDS);
}

TEST(test_performance_of_a_verdict)
{
	struct nm_verdict_thread *thread;
	struct nm_verdict judged =
		WITH(verdict(NM_VERDICT_ROLLED_BACK), it.by_performance = true,
		     it.figure = it.losses = 0.7, it.global_before = 1000, it.global_after = 850,
		     it.interval_s = 2, thread = it.threads, thread->latency_before = 300,
		     thread->latency_after = 400, thread->performance_before = 100,
		     thread->performance_after = 70);
	judge(judged);
	is("#17 rolled back: perf[1234/1240] performance -30 %",
	   "VERDICT=rolled-back; PERFORMANCE_BEFORE=100; PERFORMANCE_AFTER=70; "
	   "LATENCY_BEFORE_CYCLES=300; LATENCY_AFTER_CYCLES=400; PERFORMANCE_LEFT=0.7; "
	   "PERFORMANCE_LEFT_IN_ALL=0.7; NOISE_PERMILLE=0");
	judge(WITH(judged, it.figure = 0.95, it.losses = 0.88, it.noise = 0.03));
	is("~performance -5 %", "NOISE_PERMILLE=30; PERFORMANCE_LEFT_IN_ALL=0.88; "
				"GLOBAL_BEFORE=1000; GLOBAL_AFTER=850; INTERVAL_S=2");
	judge(WITH(judged, it.by_performance = false));
	is("~perf[1234/1240]", "PERFORMANCE_BEFORE=-");
	assert_null(strstr(entry.text, "performance"));
}

RUN_TESTS()

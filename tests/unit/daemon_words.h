/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for the daemon in simulated time (page_daemon_fixture.h). Processes, nodes,
 * CPUs and pages are numbers; workers are numbered in the order in which they were added.
 *
 *	space 16 node2			the pages of a process, on a node
 *	touch 1000 0-11 from cpu0	a thread of process 1000 that accesses some of them
 *	thread 1000 cpu0 memory node2	a thread with its memory on a node
 *	begin pages; begin auto		what the daemon decides about
 *	run 6; run 5s			intervals, or about as many as 5 s contain
 *	mark; quiet			earlier entries do not count; no entry since
 *	journal verdict PID=1000 PAGES<=16
 *		an entry of the first field, whose other fields are so: =* any value, =- no such
 *		field, ~text contains it, =$NAME a field of the entry found before, <$NAME another
 *		field of the same entry
 *	last coexist			the last entry of a kind
 *	text 2 threads			the text of the entry found last contains this
 *	none verdict PID=1000 VERDICT=worse	no entry of all these fields
 */
#ifndef NM_TEST_DAEMON_WORDS_H
#define NM_TEST_DAEMON_WORDS_H

#include "page_daemon_fixture.h"

/* Each beat ends an interval. */
static inline void live_s(double seconds)
{
	live((unsigned)(seconds / nm_loop_wakeup_s(&world.daemon)));
}

#define SCRIPT_STEP() live_one()
#ifndef SCRIPT_SECOND
#define SCRIPT_SECOND() live_s(1)
#endif

#include "../support/script.h"
#include "dump_fixture.h"

static struct script_world {
	size_t from;		      /* entries before it are not looked at */
	const struct nm_entry *entry; /* found last */
	char maps[2000];	      /* numa_maps of every process */
	int nodes[512];		      /* of the pages of every process */
} script_world;

static inline int open_words(void **state)
{
	script_world = (struct script_world){0};
	memset(&fake_asked, 0, sizeof(fake_asked));
	return open_pages(state);
}

/* ---- processes ---- */

ACTION(space, make_space(U(0), U(1)))
ACTION(touch, add_user(U(0), (int)N(3), U(1), U(2) + 1))
ACTION(thread, add_worker(U(0), (int)N(1), U(2)))

/* put 0-7 node3: these pages are there now. */
ACTION(put, memset(world.space.home + U(0), (int)N(2), U(1) - U(0) + 1))

/* Four processes of two threads, each over two nodes with its memory on one. */
WORD(four_mixed_up)
{
	for (unsigned i = 0; i < 4; i++) {
		add_worker(1000 + 100 * i, (int)(2 * i), i);
		add_worker(1000 + 100 * i, (int)((2 * i + 3) % CPUS), i);
	}
}

ACTION(exec, fake_exec(world.fake, U(0)))
ACTION(group, fake_group(world.fake, step->word[0]))

/* attribute /a.slice off: without a value it is removed */
WORD(attribute)
{
	fake_set_attribute(world.fake, step->word[0], step->count > 1 ? step->word[1] : NULL);
}

ACTION(move_group, fake_move(world.fake, U(0), step->word[1]))
ACTION(idle_thread, fake_clone(world.fake, U(0), U(1)))

static inline struct worker *worker_at(const struct step *step, unsigned place)
{
	if (place >= world.nr_workers)
		script_fail(step, "no worker %u", place);
	return &world.workers[place];
}

static inline unsigned count_shared_cpus(void)
{
	unsigned count = 0;
	for (int cpu = 0; cpu < CPUS; cpu++)
		count += workers_on(cpu) > 1;
	return count;
}

QUANTITY(shared_cpus, count_shared_cpus())
KNOB(speed, worker_at(step, U(0))->speed)
KNOB(memory, worker_at(step, U(0))->memory)
KNOB(from, worker_at(step, U(0))->from)
KNOB(to, worker_at(step, U(0))->to)
KNOB(resting, worker_at(step, U(0))->rests)
KNOB(cpu, fake_get(world.fake, worker_at(step, U(0))->tid)->processor)
KNOB(affinity, fake_get(world.fake, U(0))->mask)
KNOB(rss_kb, fake_get(world.fake, U(0))->rss_kb)
KNOB(shared_kb, fake_get(world.fake, U(0))->shared_kb)
KNOB(hugetlb_kb, fake_get(world.fake, U(0))->hugetlb_kb)
KNOB(nice, fake_get(world.fake, U(0))->nice)
KNOB(huge, world.space.huge)
KNOB(speed_after_move, speed_after_move)
QUANTITY(node, node_of(worker_at(step, U(0))))
QUANTITY(narrow, fake_trace(world.fake) != NULL)

static inline unsigned count_pages(const struct step *step)
{
	unsigned count = 0;
	if (step->nr_numbers == 1)
		return pages_on(U(0));
	for (unsigned page = U(1); page <= U(2); page++)
		count += world.space.home[page] == U(0);
	return count;
}

/* pages node0, or pages node0 0-7 */
QUANTITY(pages, count_pages(step))

/* ---- the machine ---- */

KNOB(free_kb, world.fake->free_kb)
KNOB(cached_kb, world.fake->cached_kb)
KNOB(numa_balancing, world.balancing)
KNOB(seen_balancing, world.daemon.machine.balancing)
KNOB(lazy, world.lazy)
KNOB(cached, world.cached)
KNOB(now_ns, world.fake->now_ns)
KNOB(samples_from, world.daemon.pipeline.source->status.memory)
NAMES(samples_from, {"faults", NM_MEMORY_NONE}, {"pebs", NM_MEMORY_PEBS}, {"ibs", NM_MEMORY_IBS})
QUANTITY(thinned, world.daemon.pipeline.source->thinned)
QUANTITY(rests, world.daemon.pipeline.source->rests)

static unsigned calls_before; /* "new_calls" are those since */

ACTION(count_calls, calls_before = world.fake->calls[FAKE_OPS])
QUANTITY(new_calls, world.fake->calls[FAKE_OPS] - calls_before)
QUANTITY(sets, world.fake->calls[FAKE_SET])
QUANTITY(lists, world.fake->calls[FAKE_LIST])

/* Makes changes of affinities fail from now on. */
ACTION(refuse_affinities, fake_fail(world.fake, FAKE_SET, 1, 1000, EPERM))
ACTION(accept, fake_calm(world.fake))

/* numa_maps of every process, line by line: map node2 1024 is anonymous memory, others as given. */
WORD(map)
{
	const size_t length = strlen(script_world.maps);
	char *end = script_world.maps + length;
	const size_t rest = sizeof(script_world.maps) - length;
	if (strncmp(step->word[0], "node", 4) == 0)
		snprintf(end, rest,
			 "7f0000000000 default anon=%u dirty=%u N%u=%u kernelpagesize_kB=4\n", U(1),
			 U(1), U(0), U(1));
	else
		snprintf(end, rest, "%s\n", strstr(step->text, step->word[0]));
	fake_asked.numa_maps = script_world.maps;
}

/* asked 100 node0 412 node3: the nodes of the pages that are asked for, of every process. */
WORD(asked)
{
	fake_asked.nr_pages = 0;
	for (unsigned i = 0; i + 1 < step->nr_numbers; i += 2)
		for (unsigned k = 0; k < U(i); k++)
			script_world.nodes[fake_asked.nr_pages++] = (int)N(i + 1);
	fake_asked.pages = script_world.nodes;
}

KNOB(pages_asked, fake_asked.pages_asked)
KNOB(asked_hangs, fake_asked.hangs)

/* ---- the configuration ---- */

KNOB(policy, world.daemon.config->threads.policy)
NAMES(policy, {"none", NM_POLICY_NONE}, {"auto", NM_POLICY_AUTO}, {"kmaf", NM_POLICY_KMAF},
      {"lbma", NM_POLICY_LBMA}, {"imar2", NM_POLICY_IMAR2})
KNOB(page_policy, world.daemon.config->pages.policy)
NAMES(page_policy, {"none", NM_PAGES_NONE}, {"watch", NM_PAGES_WATCH},
      {"exclusivity", NM_PAGES_EXCLUSIVITY})
KNOB(page_min_accesses, world.daemon.config->rules.page_min_accesses)
KNOB(page_cooldown_s, world.daemon.config->rules.page_cooldown_s)
KNOB(rollback_pages, world.daemon.config->rules.rollback_pages)
KNOB(min_run, world.daemon.config->rules.min_run)
KNOB(paper, world.daemon.config->rules.paper)
KNOB(cooldown, world.daemon.config->rules.cooldown)
KNOB(dry_run, world.daemon.config->general.dry_run)
KNOB(started_dry, world.daemon.options.dry_run)
KNOB(max_gb_of_process, world.daemon.config->pages.max_gb_of_process)

/* ---- the daemon ---- */

static inline void begin_auto(void)
{
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	world.balancing = -1;
	world.daemon.machine.balancing = -1;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

WORD(begin)
{
	if (step_has(step, "pages"))
		begin();
	else
		begin_auto();
}

WORD(run)
{
	if (step->word[0][strlen(step->word[0]) - 1] == 's')
		live_s(N(0));
	else
		live(U(0));
}

/* Advances as the loop does, without ending an interval. */
WORD(beat)
{
	for (unsigned i = 0; i < (step->count ? U(0) : 1); i++) {
		spread_out();
		pass(nm_loop_wakeup_s(&world.daemon));
		nm_drain(&world.daemon);
		nm_loop_examine(&world.daemon);
	}
}

/* Time in which nothing runs. */
ACTION(sleep_ms, fake_sleep(world.fake, U(0)))
ACTION(drain, nm_drain(&world.daemon))
ACTION(examine, nm_loop_examine(&world.daemon))
ACTION(release, assert_int_equal(nm_command_release(&world.daemon, U(0)), 0))
ACTION(configure, nm_pipeline_configure_pages(&world.daemon, false))

static inline double status_number(const char *name)
{
	show_document(nm_command_dump(&world.daemon), "status");
	double number = shown_number(0, name);
	shown_clear();
	return number;
}

QUANTITY(interval_s, nm_interval_s(&world.daemon))
QUANTITY(wakeup_s, nm_loop_wakeup_s(&world.daemon))
QUANTITY(continues, nm_loop_interval_continues(&world.daemon))
QUANTITY(status, status_number(step->word[0]))
QUANTITY(all_at_home, all_at_home())

/* Returns the number of threads that may be drawn, or are not for this reason; -1: none is drawn.
 */
static inline int candidates(enum nm_candidacy kind)
{
	struct nm_statistics statistics;
	const struct nm_view view = nm_views_of(&world.daemon);
	nm_view_statistics(&view, &statistics);
	return statistics.parts & 1U << NM_PART_LOTTERY ? (int)statistics.candidates[kind] : -1;
}

QUANTITY(candidates, candidates(NM_CANDIDACY_YES))
QUANTITY(settled, candidates(NM_CANDIDACY_SETTLED))
QUANTITY(held, candidates(NM_CANDIDACY_HELD))
QUANTITY(candidates_with_home, candidates(NM_CANDIDACY_WHOLE))
QUANTITY(intervals, world.daemon.tally.intervals)
QUANTITY(decisions, world.daemon.tally.decisions)
QUANTITY(applied, world.daemon.tally.applied)
QUANTITY(failed, world.daemon.tally.failed)
QUANTITY(verdicts_improved, world.daemon.tally.verdicts[NM_VERDICT_IMPROVED])
QUANTITY(verdicts_rolled_back, world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK])
QUANTITY(homes_expired, world.daemon.tally.homes.expired)
QUANTITY(assignments, nm_assignments_count(world.daemon.pipeline.assignments))
QUANTITY(migrations, world.daemon.pipeline.migrations.count)
QUANTITY(remembered, nm_migrations_remembered(&world.daemon.pipeline.migrations))
QUANTITY(unreturned, nm_moves_end(world.daemon.pipeline.moves))

/* ---- homes ---- */

static inline bool is_known(uint32_t pid)
{
	return nm_home_state_find(nm_placement_of(&world.daemon.pipeline), pid) != NULL;
}

static inline struct nm_home_state *state_of(const struct step *step)
{
	struct nm_home_state *state = nm_home_state_find(nm_placement_of(&world.daemon.pipeline), U(0));
	if (!state)
		script_fail(step, "process %u is not known", U(0));
	return state;
}

QUANTITY(known, is_known(U(0)))
KNOB(home, state_of(step)->home)
NAMES(home, {"none", -1})
/* 1 if a process has no home, or this one. */
QUANTITY(stays, state_of(step)->home < 0 || state_of(step)->home == (int)N(1))
QUANTITY(reason, state_of(step)->reason)
NAMES(reason, {"remote", NM_PLACE_REMOTE}, {"waiting", NM_PLACE_WAITING},
      {"has-home", NM_PLACE_HAS_HOME}, {"barred", NM_PLACE_BARRED}, {"young", NM_PLACE_YOUNG},
      {"observed", NM_PLACE_OBSERVED}, {"idle", NM_PLACE_IDLE}, {"yields", NM_PLACE_YIELDS},
      {"no-room", NM_PLACE_NO_ROOM}, {"no-gain", NM_PLACE_NO_GAIN},
      {"too-costly", NM_PLACE_TOO_COSTLY}, {"spread", NM_PLACE_SPREAD}, {"fixed", NM_PLACE_FIXED},
      {"often-woken", NM_PLACE_OFTEN_WOKEN}, {"larger", NM_PLACE_LARGER},
      {"bandwidth", NM_PLACE_BANDWIDTH}, {"pinned", NM_PLACE_PINNED},
      {"left-alone", NM_PLACE_LEFT_ALONE})
QUANTITY(migration, state_of(step)->migration.state)
NAMES(migration, {"none", NM_MIGRATION_NONE}, {"ready", NM_MIGRATION_READY},
      {"deferred", NM_MIGRATION_DEFERRED}, {"running", NM_MIGRATION_RUNNING},
      {"done", NM_MIGRATION_DONE})
QUANTITY(migrated, state_of(step)->migration.moved)
QUANTITY(away_bytes, state_of(step)->migration.away_bytes)
QUANTITY(decision, state_of(step)->decision)
QUANTITY(judged, state_of(step)->judged)
QUANTITY(demand, state_of(step)->input.demand_cpus)
QUANTITY(ran_on, state_of(step)->input.ran_on[U(1)])
QUANTITY(memory_stays, state_of(step)->input.memory_stays)
QUANTITY(room, state_of(step)->room[U(1)])
QUANTITY(home_bytes, nm_home_state_bytes(state_of(step)))
QUANTITY(located, nm_home_state_shares(state_of(step)) != NULL)

static inline double share_on(const struct step *step)
{
	const double *shares = nm_home_state_shares(state_of(step));
	return shares ? shares[U(1)] : -1;
}

QUANTITY(share, share_on(step))

/* The set of homes, as bits. */
static inline unsigned all_homes(void)
{
	struct nm_placement *placement = nm_placement_of(&world.daemon.pipeline);
	unsigned homes = 0;
	for (size_t i = 0; i < placement->processes.count; i++)
		if (nm_home_state_at(placement, i)->home >= 0)
			homes |= 1U << nm_home_state_at(placement, i)->home;
	return homes;
}

/* Returns the number of threads that do not run on the home of their process. */
static inline unsigned count_strays(void)
{
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_workers; i++) {
		const struct nm_home_state *state =
			nm_home_state_find(nm_placement_of(&world.daemon.pipeline),
					   fake_get(world.fake, world.workers[i].tid)->pid);
		count += !state || state->home != (int)node_of(&world.workers[i]);
	}
	return count;
}

QUANTITY(homes, all_homes())
QUANTITY(strays, count_strays())
KNOB(page_ns, nm_placement_of(&world.daemon.pipeline)->page_cost.page_ns)
KNOB(budget_s, nm_placement_of(&world.daemon.pipeline)->budget_s)
QUANTITY(other_cpus, nm_placement_of(&world.daemon.pipeline)->other_cpus[U(0)])
QUANTITY(due, nm_placement_of(&world.daemon.pipeline)->nr_due)

/* ---- the mover ---- */

static inline unsigned waiting_steps(void)
{
	size_t count = 0;
	for (size_t i = 0; i < fake_mover.nr_waiting; i++)
		count += fake_mover.waiting[i]->count;
	return (unsigned)count;
}

KNOB(mover_full, fake_mover.full)
KNOB(mover_asleep, fake_mover.asleep)
KNOB(mover_barred, fake_mover.barred)
KNOB(room_bytes, fake_mover.room_bytes)
KNOB(maps_error, fake_mover.maps_error)
KNOB(ranges_asked, fake_mover.ranges_asked)
KNOB(nr_ranges, fake_mover.nr_ranges)
KNOB(range_end, fake_mover.ranges[0].end)
QUANTITY(submitted, fake_mover.submitted)
QUANTITY(drops, fake_mover.drops)
QUANTITY(batches, fake_mover.nr_waiting)
QUANTITY(waiting_steps, waiting_steps())
QUANTITY(page_decisions, tally()->decisions)
QUANTITY(moved, tally()->moved)
QUANTITY(moved_bytes, tally()->bytes)
QUANTITY(page_failures, tally()->failed)
QUANTITY(untried, tally()->untried)
QUANTITY(forgotten, tally()->forgotten)
QUANTITY(rolled_back, tally()->verdicts[NM_VERDICT_ROLLED_BACK])
QUANTITY(improved, tally()->verdicts[NM_VERDICT_IMPROVED])

/* ---- the journal ---- */

static const struct {
	const char *name;
	enum nm_message message;
} script_messages[] = {
	{"problem", NM_MESSAGE_PROBLEM}, {"decision", NM_MESSAGE_DECISION},
	{"verdict", NM_MESSAGE_VERDICT}, {"affinity", NM_MESSAGE_AFFINITY},
	{"coexist", NM_MESSAGE_COEXIST}, {"trial", NM_MESSAGE_TRIAL},
	{"summary", NM_MESSAGE_SUMMARY},
};

static inline enum nm_message script_message(const struct step *step)
{
	for (size_t i = 0; step->count > 0 && i < NM_ARRAY_SIZE(script_messages); i++)
		if (strcmp(script_messages[i].name, step->word[0]) == 0)
			return script_messages[i].message;
	script_fail(step, "no kind of entry");
	return NM_MESSAGE_MAX;
}

QUANTITY(entries, count_entries(script_world.from, script_message(step)))

/* A condition such as "NAME=value". */
struct condition {
	char name[64], relation[3];
	const char *expected;
};

static inline struct condition condition_of(const char *text)
{
	struct condition ret = {.relation = ""};
	const size_t length = strcspn(text, "=<>!~");
	ret.expected = text + length;
	for (size_t i = 0; i < 2 && *ret.expected && strchr("=<>!~", *ret.expected); i++)
		ret.relation[i] = *ret.expected++;
	snprintf(ret.name, sizeof(ret.name), "%.*s", (int)length, text);
	return ret;
}

/* NULL: there is no such value. */
static inline bool condition_holds(const struct condition *condition, const char *text)
{
	const char *expected = condition->expected;
	if (!text)
		return strcmp(expected, "-") == 0;
	if (strcmp(expected, "*") == 0)
		return true;
	if (condition->relation[0] == '~')
		return strstr(text, expected) != NULL;
	char *found_end, *expected_end;
	const double found = strtod(text, &found_end), number = strtod(expected, &expected_end);
	if (*found_end || *expected_end)
		return (strcmp(text, expected) == 0) == (condition->relation[0] == '=');
	return script_compare(found, condition->relation, number);
}

/* Returns whether the condition holds, and the value of the field. */
static inline bool field_is(const struct nm_entry *entry, const char *wanted,
			    const char **ret_found)
{
	struct condition condition = condition_of(wanted);
	*ret_found = field_of(entry, condition.name);
	if (*condition.expected == '$') {
		const struct nm_entry *of = *condition.relation == '=' ? script_world.entry : entry;
		condition.expected = of ? field_of(of, condition.expected + 1) : NULL;
	}
	return condition.expected && condition_holds(&condition, *ret_found);
}

static inline const struct nm_entry *find_first(const struct step *step)
{
	const enum nm_message message = script_message(step);
	const char *found;
	for (size_t i = script_world.from; i < world.nr_entries; i++)
		if (world.entries[i].message == message &&
		    (step->count < 2 || field_is(&world.entries[i], step->word[1], &found)))
			return &world.entries[i];
	return NULL;
}

WORD(journal)
{
	const struct nm_entry *entry = find_first(step);
	const char *found;
	if (!entry)
		script_fail(step, "no such entry among %zu", world.nr_entries);
	for (unsigned i = 2; i < step->count; i++)
		if (!field_is(entry, step->word[i], &found))
			script_fail(step, "expected %s, found %s in: %s", step->word[i],
				    found ? found : "no such field", entry->text);
	script_world.entry = entry;
}

/* The last entry of a kind. */
WORD(last)
{
	script_world.entry = NULL;
	for (size_t i = script_world.from; i < world.nr_entries; i++)
		if (world.entries[i].message == script_message(step))
			script_world.entry = &world.entries[i];
	if (!script_world.entry)
		script_fail(step, "no such entry among %zu", world.nr_entries);
}

QUANTITY(priority, script_world.entry ? script_world.entry->priority : -1)
NAMES(priority, {"warning", LOG_WARNING}, {"notice", LOG_NOTICE}, {"info", LOG_INFO})

WORD(text)
{
	const char *words = step_rest(step);
	if (!script_world.entry || !strstr(script_world.entry->text, words))
		script_fail(step, "found %s",
			    script_world.entry ? script_world.entry->text : "no entry");
}

WORD(none)
{
	const enum nm_message message = script_message(step);
	const char *found;
	for (size_t i = script_world.from; i < world.nr_entries; i++) {
		bool same = world.entries[i].message == message;
		for (unsigned k = 1; same && k < step->count; k++)
			same = field_is(&world.entries[i], step->word[k], &found);
		if (same)
			script_fail(step, "found %s", world.entries[i].text);
	}
}

QUANTITY(journaled, find_first(step) != NULL)
ACTION(mark, script_world.from = world.nr_entries)

WORD(quiet)
{
	if (world.nr_entries > script_world.from)
		script_fail(step, "found %s", world.entries[script_world.from].text);
}

#endif

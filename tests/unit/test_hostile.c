/* SPDX-License-Identifier: MIT */
/*
 * Processes that would harm the daemon, its journal or others: the whole daemon on the fakes, with
 * an action on the thread that it is about to move just before each of its calls. Afterwards every
 * running thread has the affinity that it would have without the daemon.
 *
 *	disturb anywhere kill, process	these words before each call of the tick that moves the
 *					victim, one run per call; the daemon continues
 *	disturb elsewhere pin 0-0	but not right before the affinity is set: that is
 *					undetectable, since the last check was one call ago
 *	every_second pin_next		these words in each second
 */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include "dump_fixture.h"
#include "ticks_fixture.h"

#include "../support/script.h"
#include "numa-migrd/base.h"

#define VICTIM 100U
#define PATIENCE 30 /* ticks within which the victim is moved if it is not disturbed */

static struct world *world;
static struct nm_daemon *service;
static int kept_stderr;
static unsigned nth;	  /* the call that is disturbed */
static char actions[400]; /* steps of a script */

/* Records of forks and exits in a ring, as the kernel would write them. */
static void report_events(struct world *w)
{
	struct record_ring ring = fake_ring(&w->perf, 0);
	for (size_t i = 0; i < w->fake->nr_events; i++) {
		const struct nm_task_event *event = &w->fake->events[i];
		const uint32_t ids[4] = {event->pid, event->parent_pid, event->tid,
					 event->parent_tid};
		if (event->kind == NM_TASK_COMM || event->kind == NM_TASK_EXEC)
			record_comm(&ring, event->kind == NM_TASK_EXEC, event->pid, event->tid, "x",
				    event->time_ns);
		else
			record_fork_exit(&ring, event->kind == NM_TASK_FORK, ids, event->time_ns);
	}
	w->fake->nr_events = 0;
	fake_publish(&w->perf, 0, &ring);
}

static void act(struct fake *fake)
{
	(void)fake;
	script_run_line(nth, actions);
}

static void act_each_second(struct world *w)
{
	act(w->fake);
	report_events(w);
}

/* The memory of the victim is on node 1, and it runs on node 0. */
static int begin(void **state)
{
	(void)state;
	world = world_new();
	world_worker(world, VICTIM, 1);
	world_worker(world, 101, 0);
	fake_sleep(world->fake, 60000);
	world->each_second = report_events;
	kept_stderr = world_mute(world);
	service = service_open(world);
	return 0;
}

/* Warnings are checked from now on. */
static void unmute(void)
{
	if (kept_stderr >= 0)
		world_unmute(kept_stderr);
	kept_stderr = -1;
}

static int end(void **state)
{
	(void)state;
	service_close(service);
	unmute();
	const struct fake_thread *trace = fake_trace(world->fake);
	const uint32_t tid = trace ? trace->tid : 0;
	unsigned open_fds = fake_open_fds(world->fake), open_events = world->perf.open_count;
	world_free(world);
	if (tid || open_fds || open_events)
		fail_msg("call %u: thread %u is narrow, %u descriptors and %u events are open", nth,
			 tid, open_fds, open_events);
	return 0;
}

static void restart(void)
{
	(void)end(NULL);
	(void)begin(NULL);
}

static void ticks(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(nm_tick(service), 0);
}

static bool is_moved(void)
{
	const struct fake_thread *victim = fake_find(world->fake, VICTIM);
	return victim && victim->processor >= NODE_CPUS;
}

static unsigned ticks_until_moved(void)
{
	unsigned count = 0;
	for (; !is_moved(); count++) {
		assert_true(count < PATIENCE);
		ticks(1);
	}
	return count;
}

/* ---- between any two calls ---- */

static void set_actions(const char *text)
{
	nth = 0;
	snprintf(actions, sizeof(actions), "%s", text);
	for (char *comma = actions; (comma = strchr(comma, ',')); comma++)
		*comma = ';';
}

static unsigned set_at[2], nr_set;

static void note_set(struct fake *fake)
{
	set_at[nr_set++ % 2] = fake->calls[FAKE_OPS];
}

/* With the same seed and samples, the result is always the same: first undisturbed. */
WORD(disturb)
{
	const unsigned tick = ticks_until_moved();
	set_actions(strstr(step->text, step->word[1]));
	restart();
	ticks(tick - 1);
	const unsigned before = world->fake->calls[FAKE_OPS];
	fake_at(world->fake, FAKE_SET, 1, note_set);
	fake_at(world->fake, FAKE_SET, 2, note_set);
	ticks(1);
	const unsigned calls = world->fake->calls[FAKE_OPS] - before;
	const unsigned set = set_at[0] - before, reset = set_at[1] - before;
	assert_true(is_moved() && set > 5 && set < reset && reset <= calls);
	for (unsigned call = 1; call <= calls; call++) {
		if (step_has(step, "elsewhere") && (call == set || call == reset))
			continue;
		restart();
		nth = call;
		ticks(tick - 1);
		assert_false(is_moved());
		fake_at(world->fake, FAKE_OPS, call, act);
		ticks(5);
	}
}

WORD(every_second)
{
	set_actions(step_rest(step));
	world->each_second = act_each_second;
}

WORD(fork_and_kill)
{
	const uint32_t base = 1000 + world->seconds * 10;
	for (uint32_t i = 0; i < 5; i++)
		fake_fork(world->fake, VICTIM, base + i);
	for (uint32_t i = 0; i < 5 && fake_find(world->fake, base - 20 + i); i++)
		fake_kill(world->fake, base - 20 + i);
}

static struct fake_thread nobody;

static struct fake_thread *victim(void)
{
	struct fake_thread *thread = fake_find(world->fake, VICTIM);
	return thread ? thread : &nobody;
}

ACTION(kill, fake_kill(world->fake, VICTIM))
ACTION(sleep_ms, fake_sleep(world->fake, U(0)))
ACTION(process, fake_process(world->fake, VICTIM, 1))
ACTION(pin, fake_pin(world->fake, VICTIM, fake_cpus(U(0), U(1))))
ACTION(pin_next, fake_pin(world->fake, VICTIM, UINT64_C(1) << (world->seconds % CPUS)))
ACTION(fork, fake_fork(world->fake, VICTIM, U(0)))
ACTION(clone, fake_clone(world->fake, VICTIM, U(0)))
ACTION(exec, fake_exec(world->fake, VICTIM))
ACTION(group, fake_move(world->fake, VICTIM, step_rest(step)))
ACTION(cpuset, fake_cpuset(world->fake, step->word[0], fake_cpus(U(0), U(1))))
ACTION(ticks, ticks(U(0)))
KNOB(stuck, victim()->stuck)
KNOB(state, victim()->state)
KNOB(scheduler, victim()->policy)
KNOB(cpu, victim()->processor)
QUANTITY(affinity, victim()->mask)
QUANTITY(last_pin, UINT64_C(1) << (world->seconds % CPUS))
QUANTITY(next_decision, service->next_decision)
NAMES(state, {"D", 'D'})
NAMES(scheduler, {"fifo", 1})

#define REUSE "kill, sleep_ms 10, process"

/* A process of another user gets its number, and runs where its owner wants. */
/* SECURITY: reuse */
SCRIPT(a_reused_number_is_another_thread, "disturb elsewhere " REUSE ", pin 1-2")

/* SECURITY: reuse */
SCRIPT(an_ordinary_successor_keeps_its_affinity, "disturb anywhere " REUSE)

/* SECURITY: end-anytime */
SCRIPT(a_thread_may_end_at_any_time, "disturb anywhere kill")

/* SECURITY: end-anytime */
SCRIPT(a_process_may_exec_at_any_time, "disturb anywhere exec")

/* Children forked at the worst moment inherit narrowed affinities, which are restored. */
/* SECURITY: forks */
SCRIPT(a_process_may_fork_at_any_time, "disturb anywhere fork 300, clone 400, fork 301, clone 401")

/* SECURITY: pin-meanwhile */
SCRIPT(an_affinity_set_by_the_thread_stays, "disturb elsewhere pin 0-0")

/* The cgroup is removed before its cpuset is read. */
/* SECURITY: groups-vanish */
SCRIPT(a_cgroup_may_vanish_at_any_time, "disturb anywhere group /user.slice/x (deleted)")

/* SECURITY: groups-vanish */
SCRIPT(a_cpuset_may_shrink_at_any_time, "disturb anywhere cpuset /small 0-1, group /small")

/* It never arrives. */
/* SECURITY: stuck */
SCRIPT(the_affinity_of_a_stuck_thread_is_restored, "disturb anywhere set state = D, set stuck = 1")

/* SECURITY: end-anytime */
SCRIPT(a_thread_may_become_realtime_at_any_time, "disturb anywhere set scheduler = fifo")

/* ---- repeatedly ---- */

/* The daemon does not compete for an affinity. */
/* SECURITY: managed */
SCRIPT(a_constantly_changing_affinity_is_left_alone,
       "every_second pin_next; ticks 60; next_decision <= 2; keep last = last_pin; affinity = last")

/* SECURITY: reuse */
SCRIPT(a_constantly_reused_number_is_not_managed, "every_second " REUSE ", set cpu = 0; ticks 60")

/* SECURITY: forks */
SCRIPT(affinities_are_restored_after_a_fork_storm, "every_second fork_and_kill; ticks 40")

/* ---- names ---- */

static void assert_clean(const char *text, size_t length)
{
	uint32_t code;
	for (size_t at = 0, size; at < length; at += size) {
		size = nm_utf8_decode(text + at, length - at, &code);
		if (size == 0 || (code < 0x20 && code != '\n') || (code >= 0x7f && code < 0xa0) ||
		    (code >= 0x202a && code <= 0x202e))
			fail_msg("at %zu: \"%.80s\"", at, text + at);
	}
}

/* No part of a name begins a line or reaches a terminal unescaped. */
static void assert_clean_log(void)
{
	const char *text = world_logged(world);
	assert_clean(text, strlen(text));
	assert_null(strstr(text, "\nPID=7"));
	assert_non_null(strstr(text, "\\x0aPID=7"));
}

/* Only the copy of a journal entry has several lines. */
static unsigned assert_clean_values(const json_t *value, const char *name)
{
	unsigned texts = 0;
	size_t index;
	json_t *member;
	const char *key, *text = json_string_value(value);
	json_array_foreach(value, index, member) texts += assert_clean_values(member, name);
	json_object_foreach((json_t *)value, key, member) texts += assert_clean_values(member, key);
	if (!text)
		return texts;
	assert_clean(text, strlen(text));
	if (strcmp(name, "fields") != 0)
		assert_null(strchr(text, '\n'));
	return 1;
}

static void assert_clean_views(void)
{
	show_document(nm_command_dump(service), "processes");
	assert_true(shown.rows > 0);
	assert_true(assert_clean_values(shown.document, "") > 10);
	shown_clear();
}

/* Gives the victim a name, until after the verdict about its move. */
static void live_as(const char *name)
{
	snprintf(victim()->comm, sizeof(victim()->comm), "%s", name);
	(void)ticks_until_moved();
	ticks(15);
	unmute();
}

/* SECURITY: managed, names */
TEST(a_hostile_name_has_no_effect)
{
	static const char *const names[] = {"x\nMESSAGE=forged", ") R 1 MESSAGE=forged",
					    "\033[2JMESSAGE=forged", "\xff\xfeMESSAGE=forged",
					    "\xe2\x80\xaeM=x\xe2\x80\xac"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++) {
		restart();
		fake_move(world->fake, VICTIM, "/a\033[31m\xff.slice");
		live_as(names[i]);
		assert_clean_views();
	}
}

/* SECURITY: names */
TEST(the_journal_stays_clean)
{
	live_as("a\nPID=7\033[31m\xff");
	assert_clean_log();
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/*
 * Processes that would harm the daemon, its journal or others: the whole daemon on the fakes, with
 * an action on the thread that it is about to move just before each of its calls. The memory of 100
 * is on node 1, and it runs on node 0. In the end every running thread has the affinity that it
 * would have without the daemon.
 */
#define SET_UP set_up
#define TEAR_DOWN close_ticks
#include "../support/test.h"

#include "ticks_words.h"

#include "numa-migrd/base.h"

#define VICTIM 100U

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

static int set_up(void **state)
{
	int r = open_ticks(state);
	world->each_second = report_events;
	return r;
}

/* ---- what processes do ---- */

ACTION(kill, fake_kill(world->fake, U(0)))
ACTION(process, fake_process(world->fake, U(0), U(1)))
ACTION(sleep_ms, fake_sleep(world->fake, U(0)))
ACTION(exec, fake_exec(world->fake, U(0)))
ACTION(fork, fake_fork(world->fake, U(0), U(1)))
ACTION(group, fake_move(world->fake, U(0), strchr(step_rest(step), ' ') + 1))
ACTION(cpuset, fake_cpuset(world->fake, step->word[0], fake_cpus(U(0), U(1))))

/* change 100 stuck, or realtime, if it still exists */
WORD(change)
{
	struct fake_thread *thread = fake_find(world->fake, U(0));
	if (thread && step_has(step, "realtime"))
		thread->policy = 1; /* SCHED_FIFO */
	if (thread && step_has(step, "stuck")) {
		thread->state = 'D';
		thread->stuck = true;
	}
}

/* ---- between any two calls ---- */

static struct {
	unsigned tick, calls; /* the tick that moves the victim, and its number of calls */
	unsigned set, reset;  /* the calls that set the affinity and, of a move, restore it */
} act;
static char disturbance[256]; /* steps */

static void restart(void)
{
	assert_int_equal(close_ticks(NULL), 0);
	assert_int_equal(set_up(NULL), 0);
}

static void ticks(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(nm_tick(service), 0);
}

static void note_set(struct fake *fake)
{
	act.set = fake->calls[FAKE_OPS];
}

static void note_reset(struct fake *fake)
{
	act.reset = fake->calls[FAKE_OPS];
}

/* With the same seed and samples, the result is always the same. */
static void act_undisturbed(void)
{
	for (act.tick = 0; !world_moved(world, VICTIM); act.tick++) {
		assert_true(act.tick < 30);
		ticks(1);
	}
	restart();
	ticks(act.tick - 1);
	const unsigned before = world->fake->calls[FAKE_OPS];
	act.reset = before;
	fake_at(world->fake, FAKE_SET, 1, note_set);
	fake_at(world->fake, FAKE_SET, 2, note_reset);
	ticks(1);
	assert_true(world_moved(world, VICTIM));
	act.calls = world->fake->calls[FAKE_OPS] - before;
	act.set -= before;
	act.reset -= before;
	assert_true(act.set > 5 && act.set < act.calls);
}

static void disturb(struct fake *fake)
{
	(void)fake;
	script_run_line(0, disturbance);
}

/* Performs the steps before each call of the tick that moves the victim, one run per call, and
 * continues. */
static void disturb_each_call(const struct step *step, bool but_at_sets)
{
	snprintf(disturbance, sizeof(disturbance), "%s", step_rest(step));
	for (char *at = disturbance; (at = strchr(at, ',')); at++)
		*at = ';';
	act_undisturbed();
	for (unsigned nth = 1; nth <= act.calls; nth++) {
		if (but_at_sets && (nth == act.set || nth == act.reset))
			continue;
		restart();
		ticks(act.tick - 1);
		assert_false(world_moved(world, VICTIM));
		fake_at(world->fake, FAKE_OPS, nth, disturb);
		ticks(5);
	}
}

ACTION(any_time, disturb_each_call(step, false))

/* A change right before the affinity is set is undetectable: the last check was one call ago. */
ACTION(between_sets, disturb_each_call(step, true))

/* A process of another user gets its number, and runs where its owner wants. */
/* SECURITY: reuse */
SCRIPT(a_reused_number_is_another_thread,
       "between_sets kill 100, sleep_ms 10, process 100 1, pin 100 1-2")

/* SECURITY: reuse */
SCRIPT(an_ordinary_successor_keeps_its_affinity, "any_time kill 100, sleep_ms 10, process 100 1")

/* SECURITY: end-anytime */
SCRIPT(a_thread_may_end_at_any_time, "any_time kill 100")

/* SECURITY: end-anytime */
SCRIPT(a_process_may_exec_at_any_time, "any_time exec 100")

/* Children forked at the worst moment inherit narrowed affinities, which are restored. */
/* SECURITY: forks */
SCRIPT(a_process_may_fork_at_any_time,
       "any_time fork 100 300, clone 100 400, fork 100 301, clone 100 401, fork 100 302, "
       "clone 100 402, fork 100 303, clone 100 403")

/* SECURITY: pin-meanwhile */
SCRIPT(an_affinity_set_by_the_thread_stays, "between_sets pin 100 0-0")

/* The cgroup is removed before its cpuset is read. */
/* SECURITY: groups-vanish */
SCRIPT(a_cgroup_may_vanish_at_any_time, "any_time group 100 /user.slice/x (deleted)")

/* SECURITY: groups-vanish */
SCRIPT(a_cpuset_may_shrink_at_any_time, "any_time cpuset /small 0-1, group 100 /small")

/* It never arrives. */
/* SECURITY: stuck */
SCRIPT(the_affinity_of_a_stuck_thread_is_restored, "any_time change 100 stuck")

/* SECURITY: end-anytime */
SCRIPT(a_thread_may_become_realtime_at_any_time, "any_time change 100 realtime")

/* ---- repeatedly ---- */

static void pin_each_second(struct world *w)
{
	fake_pin(w->fake, VICTIM, UINT64_C(1) << (w->seconds % CPUS));
	report_events(w);
}

/* The daemon does not compete for an affinity. */
/* SECURITY: managed */
TEST(a_constantly_changing_affinity_is_left_alone)
{
	world->each_second = pin_each_second;
	ticks(60);
	assert_true(service->next_decision <= 2);
	assert_int_equal(fake_get(world->fake, VICTIM)->mask, UINT64_C(1)
								      << (world->seconds % CPUS));
}

static void be_replaced_each_second(struct world *w)
{
	script_run_line(0, "kill 100; sleep_ms 10; process 100 1; set processor 100 = 0");
	report_events(w);
}

/* SECURITY: reuse */
TEST(a_constantly_reused_number_is_not_managed)
{
	world->each_second = be_replaced_each_second;
	ticks(60);
}

static void fork_children(struct world *w)
{
	uint32_t base = 1000 + w->seconds * 10;
	for (uint32_t i = 0; i < 5; i++)
		fake_fork(w->fake, VICTIM, base + i);
	for (uint32_t i = 0; i < 5 && w->seconds > 3; i++)
		fake_kill(w->fake, base - 20 + i);
	report_events(w);
}

/* SECURITY: forks */
TEST(affinities_are_restored_after_a_fork_storm)
{
	world->each_second = fork_children;
	ticks(40);
}

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

/* Until after the verdict, with this name and a cgroup that is as hostile. */
static void run_as(const char *name)
{
	struct fake_thread *victim = fake_get(world->fake, VICTIM);
	snprintf(victim->comm, sizeof(victim->comm), "%s", name);
	fake_move(world->fake, VICTIM, "/a\033[31m\xff.slice");
	script_run_line(0, "moves 100 = 1; tick 15");
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
		run_as(names[i]);
		show_document(nm_command_dump(service), "processes");
		assert_true(shown.rows > 0);
		assert_true(assert_clean_values(shown.document, "") > 10);
		shown_clear();
	}
}

/* No part of a name begins a line or reaches a terminal unescaped. */
/* SECURITY: names */
TEST(the_journal_stays_clean)
{
	run_as("a\nPID=7\033[31m\xff");
	const char *log = world_logged(world);
	assert_true(*log);
	assert_clean(log, strlen(log));
	assert_null(strstr(log, "\nPID=7"));
	assert_non_null(strstr(log, "\\x0aPID=7"));
}

RUN_TESTS()

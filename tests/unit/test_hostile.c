/* SPDX-License-Identifier: MIT */
/*
 * Processes that would harm the daemon, its journal or others: the whole daemon on the fakes, with
 * an action on the thread that it is about to move just before each of its calls.
 */
#include "../support/test.h"

#include "dump_fixture.h"
#include "ticks_fixture.h"

#include "numa-migrd/base.h"

#define VICTIM 100U
#define PATIENCE 30 /* ticks within which the victim is moved if it is not disturbed */

static struct world *world;
static struct nm_daemon *service;
static int kept_stderr;

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

/* The memory of the victim is on node 1, and it runs on node 0. */
static void begin(void)
{
	world = world_new();
	world_worker(world, VICTIM, 1);
	world_worker(world, 101, 0);
	fake_sleep(world->fake, 60000);
	world->each_second = report_events;
	kept_stderr = world_mute(world);
}

/* Warnings are checked from now on. */
static void unmute(void)
{
	if (kept_stderr >= 0)
		world_unmute(kept_stderr);
	kept_stderr = -1;
}

/* Checks that every running thread has the affinity that it would have without the daemon. */
static void end(void)
{
	service_close(service);
	unmute();
	const struct fake_thread *trace = fake_trace(world->fake);
	uint32_t tid = trace ? trace->tid : 0;
	unsigned open_fds = fake_open_fds(world->fake), open_events = world->perf.open_count;
	world_free(world);
	assert_int_equal(tid, 0);
	assert_int_equal(open_fds, 0);
	assert_int_equal(open_events, 0);
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
	while (!is_moved() && count < PATIENCE) {
		ticks(1);
		count++;
	}
	return count;
}

/* ---- between any two calls ---- */

struct act {
	unsigned tick, calls; /* the tick that moves the victim, and its number of calls */
	unsigned set, reset;  /* the calls that set the affinity and, of a move, restore it */
};

static unsigned calls_at_set, calls_at_reset;

static void note_set(struct fake *fake)
{
	calls_at_set = fake->calls[FAKE_OPS];
}

static void note_reset(struct fake *fake)
{
	calls_at_reset = fake->calls[FAKE_OPS];
}

/* With the same seed and samples, the result is always the same. */
static struct act undisturbed(void)
{
	struct act act;
	begin();
	service = service_open(world);
	act.tick = ticks_until_moved();
	assert_true(act.tick < PATIENCE);
	end();
	begin();
	service = service_open(world);
	ticks(act.tick - 1);
	unsigned before = world->fake->calls[FAKE_OPS];
	calls_at_reset = 0;
	fake_at(world->fake, FAKE_SET, 1, note_set);
	fake_at(world->fake, FAKE_SET, 2, note_reset);
	ticks(1);
	act.calls = world->fake->calls[FAKE_OPS] - before;
	act.set = calls_at_set - before;
	act.reset = calls_at_reset - before;
	assert_true(is_moved());
	end();
	return act;
}

static void disturb_at(const struct act *act, unsigned nth, fake_fn what)
{
	begin();
	service = service_open(world);
	ticks(act->tick - 1);
	assert_false(is_moved());
	fake_at(world->fake, FAKE_OPS, nth, what);
	ticks(5);
	end();
}

/* Performs the action before each call of the tick that moves the victim, one run per call, and
 * continues. */
static void disturb(fake_fn what)
{
	const struct act act = undisturbed();
	assert_true(act.calls > 5);
	for (unsigned nth = 1; nth <= act.calls; nth++)
		disturb_at(&act, nth, what);
}

/* A change right before the affinity is set is undetectable: the last check was one call ago. */
static void disturb_but_at_the_set(fake_fn what)
{
	const struct act act = undisturbed();
	assert_true(act.set > 5 && act.set < act.calls);
	for (unsigned nth = 1; nth <= act.calls; nth++)
		if (nth != act.set && nth != act.reset)
			disturb_at(&act, nth, what);
}

/* A process of another user gets its number, and runs where its owner wants. */
static void replace(struct fake *fake)
{
	fake_kill(fake, VICTIM);
	fake_sleep(fake, 10);
	fake_process(fake, VICTIM, 1);
	fake_pin(fake, VICTIM, fake_cpus(1, 2));
}

/* SECURITY: reuse */
TEST(a_reused_number_is_another_thread)
{
	disturb_but_at_the_set(replace);
}

static void replace_unpinned(struct fake *fake)
{
	fake_kill(fake, VICTIM);
	fake_sleep(fake, 10);
	fake_process(fake, VICTIM, 1);
}

/* SECURITY: reuse */
TEST(an_ordinary_successor_keeps_its_affinity)
{
	disturb(replace_unpinned);
}

static void vanish(struct fake *fake)
{
	fake_kill(fake, VICTIM);
}

/* SECURITY: end-anytime */
TEST(a_thread_may_end_at_any_time)
{
	disturb(vanish);
}

static void become_other_user(struct fake *fake)
{
	fake_exec(fake, VICTIM);
}

/* SECURITY: end-anytime */
TEST(a_process_may_exec_at_any_time)
{
	disturb(become_other_user);
}

static void multiply(struct fake *fake)
{
	for (uint32_t i = 0; i < 4; i++) {
		fake_fork(fake, VICTIM, 300 + i);
		fake_clone(fake, VICTIM, 400 + i);
	}
}

/* Children forked at the worst moment inherit narrowed affinities, which are restored. */
/* SECURITY: forks */
TEST(a_process_may_fork_at_any_time)
{
	disturb(multiply);
}

static void pin_itself(struct fake *fake)
{
	fake_pin(fake, VICTIM, fake_cpus(0, 0));
}

/* SECURITY: pin-meanwhile */
TEST(an_affinity_set_by_the_thread_stays)
{
	disturb_but_at_the_set(pin_itself);
}

/* The cgroup is removed before its cpuset is read. */
static void lose_its_group(struct fake *fake)
{
	fake_move(fake, VICTIM, "/user.slice/x (deleted)");
}

/* SECURITY: groups-vanish */
TEST(a_cgroup_may_vanish_at_any_time)
{
	disturb(lose_its_group);
}

static void shrink_its_cpuset(struct fake *fake)
{
	fake_cpuset(fake, "/small", fake_cpus(0, 1));
	fake_move(fake, VICTIM, "/small");
}

/* SECURITY: groups-vanish */
TEST(a_cpuset_may_shrink_at_any_time)
{
	disturb(shrink_its_cpuset);
}

static void stop(struct fake *fake)
{
	struct fake_thread *victim = fake_find(fake, VICTIM);
	if (victim) {
		victim->state = 'D';
		victim->stuck = true;
	}
}

/* It never arrives. */
/* SECURITY: stuck */
TEST(the_affinity_of_a_stuck_thread_is_restored)
{
	disturb(stop);
}

static void turn_realtime(struct fake *fake)
{
	struct fake_thread *victim = fake_find(fake, VICTIM);
	if (victim)
		victim->policy = 1; /* SCHED_FIFO */
}

/* SECURITY: end-anytime */
TEST(a_thread_may_become_realtime_at_any_time)
{
	disturb(turn_realtime);
}

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
	begin();
	world->each_second = pin_each_second;
	service = service_open(world);
	ticks(60);
	assert_true(service->next_decision <= 2);
	assert_int_equal(fake_get(world->fake, VICTIM)->mask, UINT64_C(1)
								      << (world->seconds % CPUS));
	end();
}

static void be_replaced_each_second(struct world *w)
{
	replace_unpinned(w->fake);
	fake_get(w->fake, VICTIM)->processor = 0;
	report_events(w);
}

/* SECURITY: reuse */
TEST(a_constantly_reused_number_is_not_managed)
{
	begin();
	world->each_second = be_replaced_each_second;
	service = service_open(world);
	ticks(60);
	end();
}

static void fork_child(struct world *w)
{
	uint32_t base = 1000 + w->seconds * 10;
	for (uint32_t i = 0; i < 5; i++)
		fake_fork(w->fake, VICTIM, base + i);
	for (uint32_t i = 0; i < 5 && w->seconds > 2; i++)
		fake_kill(w->fake, base - 20 + i);
	report_events(w);
}

/* SECURITY: forks */
TEST(affinities_are_restored_after_a_fork_storm)
{
	begin();
	world->each_second = fork_child;
	service = service_open(world);
	ticks(40);
	end();
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

/* No part of a name begins a line or reaches a terminal unescaped. */
static void assert_clean_log(void)
{
	static char text[1 << 16];
	FILE *file = fopen(world->log, "r");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	assert_true(length > 0);
	fclose(file);
	text[length] = '\0';
	assert_clean(text, length);
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

/* SECURITY: managed, names */
TEST(a_hostile_name_has_no_effect)
{
	static const char *const names[] = {"x\nMESSAGE=forged", ") R 1 MESSAGE=forged",
					    "\033[2JMESSAGE=forged", "\xff\xfeMESSAGE=forged",
					    "\xe2\x80\xaeM=x\xe2\x80\xac"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++) {
		begin();
		struct fake_thread *victim = fake_get(world->fake, VICTIM);
		snprintf(victim->comm, sizeof(victim->comm), "%s", names[i]);
		fake_move(world->fake, VICTIM, "/a\033[31m\xff.slice");
		service = service_open(world);
		assert_true(ticks_until_moved() < PATIENCE);
		ticks(15); /* after the verdict */
		unmute();
		assert_clean_views();
		end();
	}
}

/* end() removes the log, so it is checked in a separate run. */
/* SECURITY: names */
TEST(the_journal_stays_clean)
{
	begin();
	snprintf(fake_get(world->fake, VICTIM)->comm, 64, "a\nPID=7\033[31m\xff");
	service = service_open(world);
	assert_true(ticks_until_moved() < PATIENCE);
	ticks(15);
	unmute();
	assert_clean_log();
	end();
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* The cost of finding inheritors is proportional to their number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../src/lease/actuator.h"
#include "actuate_fixture.h"

#define ALL UINT64_C(0xff)

static struct nm_masks masks;

/* A shell, 50, and its job, process 100 with the threads 100 to 102. */
static int set_up(void **state)
{
	(void)state;
	world = world_new();
	fake = world->fake;
	masks = world->actuator->masks;
	fake_process(fake, 50, 1);
	fake_fork(fake, 50, 100);
	fake_clone(fake, 100, 101);
	fake_clone(fake, 100, 102);
	fake_sleep(fake, 5000);
	fake->nr_events = 0;
	return 0;
}

static void lease(uint32_t tid, unsigned node)
{
	assert_true(world_lease(world, tid, node).applied);
	fake_sleep(fake, 100);
}

/* One turn of a walk for inheritors of these leases. Returns 1 if it is not finished. */
static int walk_on(const struct nm_ledger_entry *lines, size_t count, struct nm_descent_walk *walk)
{
	nm_auto(nm_descent_freep) struct nm_descent *descent = NULL;
	nm_autofree const struct nm_ledger_entry **entries = calloc(count + 1, sizeof(*entries));
	assert_non_null(entries);
	for (size_t i = 0; i < count; i++)
		entries[i] = &lines[i];
	walk->entries = entries;
	walk->nr_entries = count;
	descent = nm_descent_new(&masks);
	int r = nm_descent_walk(descent, walk);
	assert_in_range(r, 0, 1);
	assert_int_equal(walk->error, 0);
	return r;
}

static void report_fork(uint32_t parent, uint32_t child)
{
	const struct nm_task_event event = {.kind = NM_TASK_FORK,
					    .pid = child,
					    .tid = child,
					    .parent_pid = parent,
					    .parent_tid = parent,
					    .time_ns = fake->now_ns};
	nm_actuator_task_event(world->actuator, &event);
}

/* Grandchildren, all exited when the records are read, and their numbers reused. */
/* SECURITY: forks */
static void the_cost_of_forks_is_proportional(void **state)
{
	(void)state;
	lease(101, 1);
	unsigned before = fake->calls[FAKE_OPS];
	for (uint32_t i = 0; i < 2000; i++)
		report_fork(i ? 1000 + (i - 1) % 1000 : 101, 1000 + i % 1000);
	assert_true(fake->calls[FAKE_OPS] - before < 10 * 2000);
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
}

/* Forks and execs of unrelated processes cause no reads. */
static void unrelated_processes_cost_nothing(void **state)
{
	(void)state;
	lease(101, 1);
	unsigned before = fake->calls[FAKE_OPS];
	for (uint32_t i = 0; i < 2000; i++) {
		const struct nm_task_event exec = {
			.kind = NM_TASK_EXEC, .pid = 2000 + i, .tid = 2000 + i};
		report_fork(50, 2000 + i);
		nm_actuator_task_event(world->actuator, &exec);
	}
	assert_int_equal(fake->calls[FAKE_OPS], before);
}

/* A chain of processes, and threads with the affinity of the target that did not inherit it. */
/* SECURITY: forks */
static void the_search_is_independent_of_ledger_lines(void **state)
{
	unsigned calls[2];
	struct nm_ledger_entry *lines = calloc(256, sizeof(*lines));
	(void)state;
	for (uint32_t pid = 300; pid < 320; pid++)
		fake_fork(fake, pid == 300 ? 50 : pid - 1, pid);
	for (uint32_t tid = 400; tid < 440; tid++) {
		fake_clone(fake, 319, tid);
		fake_pin(fake, tid, world_node(1));
	}
	for (uint32_t i = 0; i < 256; i++) {
		lines[i] = (struct nm_ledger_entry){
			.tid = 5000 + i,
			.pid = 5000 + i,
			.start_ticks = 100,
			.given_ticks = 101,
			.session = 4000 + i,
			.uid = 1000,
			.original = world->topology->possible,
			.target = world->topology->nodes[1].cpus,
			.cgroup = nm_ledger_cgroup("/elsewhere"),
		};
	}
	for (int many = 0; many < 2; many++) {
		struct nm_descent_walk walk = {0};
		unsigned before = fake->calls[FAKE_OPS];
		assert_int_equal(walk_on(lines, many ? 256 : 1, &walk), 0);
		assert_int_equal(walk.found, 0);
		calls[many] = fake->calls[FAKE_OPS] - before;
	}
	assert_int_equal(calls[0], calls[1]);
	free(lines);
}

static unsigned walked; /* found by the walks below */

static int count_found(void *context, const struct nm_descendant *found)
{
	(void)context, (void)found;
	walked++;
	return 1;
}

/* With a budget it takes several turns and finds all. */
static void a_walk_resumes_where_it_stopped(void **state)
{
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 30; i++)
		fake_fork(fake, 101, 300 + i);
	struct nm_ledger_contents contents;
	assert_int_equal(nm_ledger_read(world->directory, WORLD_BOOT, &contents), 0);
	assert_int_equal(contents.count, 1);
	struct nm_descent_walk walk = {.budget = 3000, .each = count_found};
	unsigned turns = 0;
	walked = 0;
	for (int r = 1; r > 0; turns++) {
		unsigned before = walked;
		r = walk_on(contents.entries, 1, &walk);
		assert_true(walked - before <= 5);
	}
	assert_int_equal(walked, 30);
	assert_true(turns >= 30 / 5);
	nm_ledger_contents_clear(&contents);
}

/* ---- threads that are not inheritors ---- */

#define MOST_FAMILIES 256

/* Leases of as many processes of the same user and session, all of which have exited. */
static void lease_to_others(struct nm_ledger_entry *lines, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		lines[i] = (struct nm_ledger_entry){
			.tid = 5000 + i,
			.pid = 5000 + i,
			.start_ticks = 100,
			.given_ticks = fake_ticks(fake) - 100,
			.session = 50,
			.uid = 1000,
			.original = world->topology->possible,
			.target = world->topology->nodes[1].cpus,
			.cgroup = nm_ledger_cgroup("/elsewhere"),
		};
}

/* Process 364 in generation 66 below the first, with this many threads, all pinned. */
static void pin_below(uint32_t nr_threads)
{
	for (uint32_t pid = 300; pid < 365; pid++)
		fake_fork(fake, pid == 300 ? 50 : pid - 1, pid);
	fake_pin(fake, 364, world_node(1));
	for (uint32_t i = 1; i < nr_threads; i++)
		fake_clone(fake, 364, 400 + i);
}

/* Steps of a walk to all threads. */
static uint64_t steps_beside(uint32_t families, uint32_t threads)
{
	struct nm_ledger_entry lines[MOST_FAMILIES];
	struct nm_descent_walk walk = {0};
	(void)tear_down(NULL);
	(void)set_up(NULL);
	pin_below(threads);
	lease_to_others(lines, families);
	assert_int_equal(walk_on(lines, families, &walk), 0);
	assert_int_equal(walk.found, 0);
	return walk.steps;
}

/* The cost of one more thread depends neither on the number of leases nor on its depth. */
/* SECURITY: forks */
static void the_cost_of_a_thread_is_independent_of_leases(void **state)
{
	(void)state;
	uint64_t beside_few = steps_beside(128, 40) - steps_beside(128, 20);
	uint64_t beside_many = steps_beside(256, 40) - steps_beside(256, 20);
	assert_int_equal(beside_few, beside_many);
	assert_true(beside_few < 20 * 64 * 10);
	/* Cost per process: all links, and one family of the session. */
	assert_true(steps_beside(256, 1) < 2 * 66 * 10 * 64);
	assert_true(steps_beside(256, 1) - steps_beside(128, 1) < 66 * 10);
}

/* The walk stops inside a process of many threads, and examines no thread twice. */
static void a_walk_stops_inside_a_process(void **state)
{
	struct nm_ledger_entry lines[MOST_FAMILIES];
	(void)state;
	for (uint32_t i = 0; i < 60; i++)
		fake_clone(fake, 100, 400 + i);
	lease_to_others(lines, 1);
	struct nm_descent_walk walk = {.budget = 640, .each = count_found};
	unsigned before = fake->calls[FAKE_GET];
	unsigned turns = 0;
	for (int r = 1; r > 0; turns++) {
		unsigned got = fake->calls[FAKE_GET];
		r = walk_on(lines, 1, &walk);
		assert_true(fake->calls[FAKE_GET] - got <= 10);
	}
	assert_true(turns >= 6);
	assert_int_equal(fake->calls[FAKE_GET] - before, 2 + 3 + 60);
}

/* ---- calls against siblings, depth and groups ---- */

/* Leased threads that exited without a record, beside a leader with the affinity of their
 * target. */
static unsigned calls_of_vanished(uint32_t vanished, uint32_t siblings)
{
	(void)tear_down(NULL);
	(void)set_up(NULL);
	for (uint32_t i = 0; i < vanished; i++) {
		fake_clone(fake, 100, 300 + i);
		lease(300 + i, 1);
	}
	for (uint32_t i = 0; i < siblings; i++)
		fake_clone(fake, 100, 400 + i);
	fake_pin(fake, 100, world_node(1));
	fake_sleep(fake, 5000);
	for (uint32_t i = 0; i < vanished; i++)
		fake_exit(fake, 300 + i);
	fake->nr_events = 0;
	unsigned before = fake->calls[FAKE_OPS];
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_int_equal(world_mask(world, 100), world_node(1));
	return fake->calls[FAKE_OPS] - before;
}

/* SECURITY: forks */
static void siblings_are_listed_once(void **state)
{
	(void)state;
	unsigned few = calls_of_vanished(10, 20);
	unsigned more_siblings = calls_of_vanished(10, 60) - few;
	unsigned more_vanished = calls_of_vanished(50, 20) - few;
	assert_true(more_siblings <= 40 * 12);
	assert_true(more_vanished <= 40 * 20);
	assert_true(calls_of_vanished(50, 60) <= few + more_siblings + more_vanished + 20);
}

/* Whether a thread that is gone has called exec: the threads of one process may be many. */
/* SECURITY: forks */
static void some_siblings_are_enough(void **state)
{
	nm_auto(nm_descent_freep) struct nm_descent *descent = NULL;
	uint64_t start_ticks;
	(void)state;
	fake_clone(fake, 100, 110);
	lease(110, 1);
	const struct nm_ledger_entry *terms =
		&world->actuator->leases[nm_lease_first_of_tid(world->actuator, 110)].terms;
	for (uint32_t i = 0; i < 140; i++)
		fake_clone(fake, 100, 300 + i);
	fake_pin(fake, 100, world_node(1));
	fake_exit(fake, 110);
	descent = nm_descent_new(&masks);
	unsigned before = fake->calls[FAKE_OPS];
	assert_int_equal(nm_descent_follow_exec(descent, terms, false, &start_ticks), 0);
	assert_true(fake->calls[FAKE_OPS] - before <= 64 * 3 + 12);
}

static void set_up_groups(void)
{
	for (uint32_t i = 0; i < 50; i++) {
		fake_fork(fake, 50, 300 + i)->many_groups = true;
		fake_move(fake, 300 + i, i % 2 ? "/machine/one" : "/machine/two");
		fake_fork(fake, 300 + i, 400 + i);
		fake_pin(fake, 400 + i, world_node(1));
	}
}

/* A process in 65536 groups takes a thousand times as long to read. */
/* SECURITY: many-groups-of-a-process */
static void long_statuses_of_a_domain_are_read_once(void **state)
{
	struct nm_ledger_entry lines[1];
	struct nm_descent_walk walk = {0};
	(void)state;
	lease_to_others(lines, 1);
	set_up_groups();
	assert_int_equal(walk_on(lines, 1, &walk), 0);
	assert_in_range(fake->long_statuses, 1, 2);
}

/* Without cgroups that distinguish the users. */
/* SECURITY: many-groups-of-a-process */
static void long_statuses_hide_no_child_of_another_user(void **state)
{
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 50; i++) {
		struct fake_thread *thread = fake_fork(fake, 50, 300 + i);
		thread->many_groups = true;
		thread->uid = 1001;
		fake_fork(fake, 300 + i, 400 + i);
		fake_pin(fake, 400 + i, world_node(1));
	}
	fake_fork(fake, 101, 500);
	world_lose_records(world);
	world_tick(world);
	assert_int_equal(fake->long_statuses, 1);
	assert_int_equal(world_mask(world, 500), ALL);
}

/* Homes that end in one interval share one walk. */
/* SECURITY: forks */
static void released_processes_share_a_walk(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		fake_fork(fake, 50, 300 + i);
		world_adopt_thread(world, 300 + i);
		assert_true(world_lease(world, 300 + i, 1).applied);
	}
	fake_sleep(fake, 100);
	fake_fork(fake, 319, 400);
	fake->nr_events = 0;
	unsigned before = fake->calls[FAKE_LIST];
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(nm_actuator_return_process(world->actuator, 300 + i), 0);
	assert_int_equal(fake->calls[FAKE_LIST], before);
	world_tick(world);
	assert_int_equal(world_mask(world, 400), ALL);
	assert_true(fake->calls[FAKE_LIST] - before <= 1 + 3 + 21);
}

/* Processes of one thread with a part of a target, each in a cgroup of this depth. */
static double calls_per_thread(unsigned levels)
{
	struct nm_ledger_entry lines[1];
	char path[96];
	(void)tear_down(NULL);
	(void)set_up(NULL);
	lease_to_others(lines, 1);
	for (uint32_t i = 0; i < 100; i++) {
		int length = snprintf(path, sizeof(path), "/%u", i);
		for (unsigned level = 1; level < levels; level++)
			length += snprintf(path + length, sizeof(path) - (size_t)length, "/x");
		fake_fork(fake, 50, 300 + i);
		fake_pin(fake, 300 + i, 4);
		fake_move(fake, 300 + i, path);
	}
	fake->names_cpusets = true;
	struct nm_descent_walk walk = {.each = count_found};
	unsigned before = fake->calls[FAKE_OPS];
	assert_int_equal(walk_on(lines, 1, &walk), 0);
	return (fake->calls[FAKE_OPS] - before) / 105.0;
}

/* SECURITY: forks, many-groups */
static void a_walk_takes_twelve_calls_a_thread_at_any_depth(void **state)
{
	(void)state;
	for (unsigned levels = 1; levels <= 40; levels += 13)
		assert_true(calls_per_thread(levels) <= 12);
}

/* If a CPU has no ring, every process is examined once per interval, regardless of the result. */
static void proc_is_walked_once_an_interval(void **state)
{
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 10; i++) {
		fake_fork(fake, 101, 300 + i);
		fake_clone(fake, 300 + i, 400 + i);
		world_lose_records(world);
		unsigned before = fake->calls[FAKE_LIST];
		world_tick(world);
		assert_int_equal(world_mask(world, 300 + i), ALL);
		assert_int_equal(world_mask(world, 400 + i), ALL);
		assert_true(fake->calls[FAKE_LIST] - before <= 1 + 3 + 1 + i);
	}
}

/* Hundreds of records with the same time keep their order, and a later fork of a reused number is
 * recognized. */
static void records_of_one_moment_keep_their_order(void **state)
{
	struct nm_task_event events[300], *order[300];
	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		events[i] = (struct nm_task_event){
			.kind = NM_TASK_FORK, .tid = 1000 + i % 200, .time_ns = i < 250 ? 7 : 5};
	nm_task_events_order(events, 300, order);
	for (uint32_t i = 0; i < 300; i++) {
		assert_ptr_equal(order[i], &events[i < 50 ? 250 + i : i - 50]);
		assert_int_equal(order[i]->reused, i < 50 || (i >= 50 && i < 100));
	}
}

/* Children beyond the limit are restored nevertheless. */
static void children_beyond_the_limit_are_restored(void **state)
{
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 10000; i++)
		report_fork(101, 10000 + i);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	world_tick(world);
	assert_int_equal(world_mask(world, 300), ALL);
	assert_int_equal(world_mask(world, 301), ALL);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
}

/* SECURITY: forks */
static void remembered_threads_are_bounded(void **state)
{
	const struct nm_actuator *actuator = world->actuator;
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 100000; i++)
		report_fork(101, 10000 + i);
	assert_int_equal(actuator->inherited, NM_LEASE_SHARE_INHERITED);
	assert_true(actuator->capacity <= 2 * NM_LEASE_SHARE_INHERITED);
	for (int i = 0; i < 4; i++)
		world_tick(world);
	assert_int_equal(actuator->inherited, 0);
	assert_int_equal(actuator->inherited_shares.count, 0);
	report_fork(101, 10000);
	assert_int_equal(actuator->inherited, 1);
}

/* No more threads of the user are remembered in any list. */
static void fill_lists(void)
{
	struct nm_actuator *actuator = world->actuator;
	lease(101, 1);
	uint64_t domain = actuator->leases[0].terms.domain;
	for (uint32_t i = 0; i < 10000; i++)
		report_fork(101, 10000 + i);
	while (nm_settled_add(actuator->settled, domain,
			      100000 + (uint32_t)actuator->settled->count, UINT32_MAX,
			      actuator->round) == 0)
		;
	fake_fork(fake, 101, 300);
	world_drain(world);
}

/* A child beyond the limit is not restored until there is space; an affinity that its owner sets
 * later stays. */
static void unremembered_children_are_restored_later(void **state)
{
	(void)state;
	fill_lists();
	assert_int_equal(world_mask(world, 300), world_node(1));
	assert_int_equal(world_reported(world, NM_LEASE_FAILED, 300), 0);
	for (int i = 0; i < 3; i++)
		world_tick(world);
	assert_int_equal(world_mask(world, 300), ALL);
	fake_pin(fake, 300, world_node(1));
	for (int i = 0; i < 5; i++)
		world_tick(world);
	assert_int_equal(world_mask(world, 300), world_node(1));
}

static void a_stop_needs_no_room(void **state)
{
	(void)state;
	fill_lists();
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(world_mask(world, 300), ALL);
}

/* An ended lease is remembered until a walk has found the inheritors created under it. */
static void a_long_walk_finds_all_inheritors(void **state)
{
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 60; i++)
		fake_fork(fake, 101, 300 + i);
	assert_int_equal(world_return(world, 101), 0);
	world_lose_records(world);
	world->actuator->turn_steps = 5000;
	for (int i = 0; i < 20; i++)
		world_tick(world);
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(world_mask(world, 300 + i), ALL);
	assert_false(nm_lease_may_be_missed(world->actuator));
	for (int i = 0; i < 3; i++)
		world_tick(world);
	assert_int_equal(world->actuator->count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_cost_of_forks_is_proportional),
		TEST(unrelated_processes_cost_nothing),
		TEST(the_search_is_independent_of_ledger_lines),
		TEST(a_walk_resumes_where_it_stopped),
		TEST(the_cost_of_a_thread_is_independent_of_leases),
		TEST(a_walk_stops_inside_a_process),
		TEST(siblings_are_listed_once),
		TEST(some_siblings_are_enough),
		TEST(long_statuses_of_a_domain_are_read_once),
		TEST(long_statuses_hide_no_child_of_another_user),
		TEST(released_processes_share_a_walk),
		TEST(a_walk_takes_twelve_calls_a_thread_at_any_depth),
		TEST(proc_is_walked_once_an_interval),
		TEST(records_of_one_moment_keep_their_order),
		TEST(children_beyond_the_limit_are_restored),
		TEST(remembered_threads_are_bounded),
		TEST(unremembered_children_are_restored_later),
		TEST(a_stop_needs_no_room),
		TEST(a_long_walk_finds_all_inheritors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Attributes of cgroups through every stage of the daemon, in simulated time. */
#define SET_UP world_open
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_fixture.h"

/* A process of two threads in /a.slice and one of one thread elsewhere, far from their memory. */
static void misplace(enum nm_thread_policy policy)
{
	world.daemon.config->threads.policy = policy;
	add_worker(1000, 0, 2);
	add_worker(1000, 1, 2);
	add_worker(1100, 2, 3);
	fake_group(world.fake, "/");
	fake_group(world.fake, "/a.slice");
	fake_move(world.fake, 1000, "/a.slice/x.service");
	fake_move(world.fake, 1100, "/b.slice/y.service");
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static const struct nm_entry *move_of(const char *tid)
{
	return find_entry(0, NM_MESSAGE_DECISION, "TID", tid);
}

static bool has_own_mask(uint32_t tid)
{
	const struct fake_thread *thread = fake_get(world.fake, tid);
	return thread->mask == thread->own;
}

static bool is_assigned(uint32_t tid)
{
	return nm_assignments_has(world.daemon.pipeline.assignments, tid,
				  fake_get(world.fake, tid)->start_ticks);
}

/* A process that changes its name is checked. */
static void check_at_next_tick(uint32_t pid)
{
	const struct nm_task_event event = {.kind = NM_TASK_COMM, .pid = pid, .tid = pid};
	nm_roster_task_event(world.daemon.pipeline.roster, &event, world.fake->now_ns);
}

/* No thread of it is moved, but its metrics are shown; others are not affected. */
TEST(observed_processes_are_never_moved)
{
	misplace(NM_POLICY_LBMA);
	fake_set_attribute(world.fake, "/a.slice", "observe");
	live(40);
	assert_null(move_of("1000"));
	assert_null(move_of("1002"));
	assert_non_null(move_of("1100"));
	assert_int_equal(nm_roster_counts(world.daemon.pipeline.roster).threads_managed, 3);
	assert_int_equal(nm_roster_counts(world.daemon.pipeline.roster).processes_observed, 1);
}

/* Its threads were moved: they are left alone within ten seconds. */
TEST(off_applies_within_ten_seconds)
{
	misplace(NM_POLICY_LBMA);
	live(40);
	assert_true(all_at_home());
	assert_true(is_assigned(1000) && is_assigned(1100));
	fake_set_attribute(world.fake, "/a.slice", "off");
	live(10);
	assert_true(has_own_mask(1000) && has_own_mask(1002));
	assert_false(is_assigned(1000));
	assert_true(is_assigned(1100));
	assert_int_equal(nm_roster_counts(world.daemon.pipeline.roster).processes_off, 1);
	size_t from = world.nr_entries;
	world.workers[0].memory = 1;
	live(40);
	assert_null(find_entry(from, NM_MESSAGE_DECISION, "PID", "1000"));
	fake_set_attribute(world.fake, "/a.slice", NULL);
	live(40);
	assert_true(all_at_home());
}

/* The same for a sleeping process with an attribute of its own service. */
TEST(observe_ends_assignments_of_sleepers)
{
	misplace(NM_POLICY_LBMA);
	fake_group(world.fake, "/a.slice/x.service")->uid = 1000;
	live(40);
	assert_true(is_assigned(1000));
	size_t workers = world.nr_workers;
	world.workers[0] = world.workers[2];
	world.nr_workers = 1;
	fake_set_attribute(world.fake, "/a.slice/x.service", "observe");
	live(10);
	assert_true(has_own_mask(1000) && has_own_mask(1002));
	world.nr_workers = workers - 2;
}

/* A move under evaluation is not rolled back either. */
TEST(observed_processes_are_not_moved_back)
{
	misplace(NM_POLICY_LBMA);
	while (!move_of("1000") && world.nr_entries < 500)
		live_one();
	assert_non_null(move_of("1000"));
	size_t from = world.nr_entries;
	world.workers[0].memory = world.workers[1].memory = 0;
	fake_set_attribute(world.fake, "/a.slice", "observe");
	check_at_next_tick(1000);
	live(20);
	assert_null(find_entry(from, NM_MESSAGE_DECISION, "PID", "1000"));
}

/* Also after a reload, and for a sleeping process. */
TEST(a_reload_keeps_attribute_values)
{
	char path[sizeof(world.root) + 16], error[256];
	misplace(NM_POLICY_LBMA);
	live(40);
	assert_true(is_assigned(1000));
	fixture_file(world.root, "numa-migrd.conf",
		     "targets: { min_cpu_percent = 0; };\n"
		     "threads: { policy = \"lbma\"; };");
	(void)snprintf(path, sizeof(path), "%s/numa-migrd.conf", world.root);
	world.daemon.options.config.path = path;
	assert_int_equal(nm_command_reload(&world.daemon, error, sizeof(error)), 0);
	world.workers[0] = world.workers[2];
	world.nr_workers = 1;
	live_one();
	assert_true(is_assigned(1000));
	fake_set_attribute(world.fake, "/a.slice", "off");
	for (uint64_t end_ns = world.fake->now_ns + 10 * NM_NSEC_PER_SEC;
	     world.fake->now_ns < end_ns;)
		live_one();
	assert_true(has_own_mask(1000) && has_own_mask(1002));
}

RUN_TESTS()

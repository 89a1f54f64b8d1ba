/* SPDX-License-Identifier: MIT */
/* Attributes of cgroups through every stage of the daemon, in simulated time. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_words.h"

/* A process of two threads in /a.slice and one of one thread elsewhere, far from their memory. */
#define MISPLACED                                                                                  \
	"thread 1000 cpu0 node2; thread 1000 cpu1 node2; thread 1100 cpu2 node3; group /; "        \
	"group /a.slice; move_group 1000 /a.slice/x.service; move_group 1100 /b.slice/y.service; " \
	"begin auto; set policy = lbma; "

QUANTITY(threads_managed, nm_tasks_counts(world.daemon.pipeline.tasks).threads_managed)
QUANTITY(processes_observed, nm_tasks_counts(world.daemon.pipeline.tasks).processes_observed)
QUANTITY(processes_off, nm_tasks_counts(world.daemon.pipeline.tasks).processes_off)
QUANTITY(own_affinity, fake_get(world.fake, U(0))->mask == fake_get(world.fake, U(0))->own)
QUANTITY(assigned, nm_assignments_has(world.daemon.pipeline.assignments, U(0),
				      fake_get(world.fake, U(0))->start_ticks))

/* No thread of it is moved, but its metrics are shown; others are not affected. */
SCRIPT(observed_processes_are_never_moved,
       MISPLACED "attribute /a.slice observe; run 40; none decision TID=1000",
       "none decision TID=1002; journal decision TID=1100; threads_managed = 3",
       "processes_observed = 1")

/* Its threads were moved: they are left alone within ten seconds. */
SCRIPT(off_applies_within_ten_seconds,
       MISPLACED "run 40; all_at_home = 1; assigned 1000 = 1; assigned 1100 = 1",
       "attribute /a.slice off; run 10; own_affinity 1000 = 1; own_affinity 1002 = 1",
       "assigned 1000 = 0; assigned 1100 = 1; processes_off = 1; mark; set memory 0 = 1; run 40",
       "none decision PID=1000; attribute /a.slice; run 40; all_at_home = 1")

/* Only process 1100 runs from now on. */
WORD(process_1000_sleeps)
{
	world.workers[0] = world.workers[2];
	world.nr_workers = 1;
}

ACTION(own_group, fake_group(world.fake, step->word[0])->uid = 1000)

/* The same for a sleeping process with an attribute of its own service. */
SCRIPT(observe_ends_assignments_of_sleepers,
       MISPLACED "own_group /a.slice/x.service; run 40; assigned 1000 = 1; process_1000_sleeps",
       "attribute /a.slice/x.service observe; run 10; own_affinity 1000 = 1; own_affinity 1002 = 1")

/* A process that changes its name is checked. */
WORD(rename)
{
	const struct nm_task_event event = {.kind = NM_TASK_COMM, .pid = U(0), .tid = U(0)};
	nm_tasks_task_event(world.daemon.pipeline.tasks, &event, world.fake->now_ns);
}

/* A move under evaluation is not rolled back either. */
SCRIPT(observed_processes_are_not_moved_back,
       MISPLACED "until journaled decision TID=1000 = 1 within 60; mark; set memory 0 = 0",
       "set memory 1 = 0; attribute /a.slice observe; rename 1000; run 20; none decision PID=1000")

WORD(reload)
{
	char path[sizeof(world.root) + 16], error[256];
	fixture_file(world.root, "numa-migrd.conf",
		     "targets: { min_cpu_percent = 0; };\nthreads: { policy = \"lbma\"; };");
	(void)snprintf(path, sizeof(path), "%s/numa-migrd.conf", world.root);
	world.daemon.options.config.path = path;
	assert_int_equal(nm_command_reload(&world.daemon, error, sizeof(error)), 0);
}

/* Also after a reload, and for a sleeping process. */
SCRIPT(a_reload_keeps_attribute_values,
       MISPLACED "run 40; assigned 1000 = 1; reload; process_1000_sleeps; run 1; assigned 1000 = 1",
       "attribute /a.slice off; run 10; own_affinity 1000 = 1; own_affinity 1002 = 1")

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Policy "auto" through every stage of the daemon: processes whose threads, CPUs or memory are
 * restricted. */
#define SET_UP open_pages
#define TEAR_DOWN world_close
#include "../support/test.h"

#include <math.h>

#include "page_daemon_fixture.h"

/* Threads show where they run, but no accesses. */
static void begin_auto(void)
{
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	world.cached = true;
	world.balancing = -1;
	world.daemon.machine.balancing = -1;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static void live_s(double seconds)
{
	live((unsigned)(seconds / nm_loop_wakeup_s(&world.daemon)));
}

static const struct nm_home_state *state_of(uint32_t pid)
{
	const struct nm_home_state *home_state =
		nm_home_state_find(nm_placement_of(&world.daemon), pid);
	assert_non_null(home_state);
	return home_state;
}

/* A thread of a process of 24 MiB on node 3. */
static void add_sized(void)
{
	fake_get(world.fake, add_worker(1000, 6, 1)->tid)->rss_kb = UINT64_C(24) << 10;
}

static const char all_on_1[] =
	"7f0000000000 default anon=6144 dirty=6144 N1=6144 kernelpagesize_kB=4\n";

/* A process with two threads that its owner has bound to CPUs 2 and 3, as those of a virtual
 * machine, and a free one on node 3. */
static void begin_partly_pinned(void)
{
	add_sized();
	for (int cpu = 2; cpu < 4; cpu++)
		fake_pin(world.fake, add_worker(1000, cpu, 1)->tid, 1U << cpu);
	begin_auto();
}

static void no_memory_leaves_the_node_of_pinned_threads(const char *numa_maps)
{
	fake_asked.numa_maps = numa_maps;
	begin_partly_pinned();
	live_s(30);
	const struct nm_home_state *home_state = state_of(1000);
	assert_true(home_state->home == 1 || home_state->home == -1);
	assert_true(home_state->migration.state != NM_MIGRATION_DONE || home_state->home == 1);
	assert_int_equal(fake_mover.submitted, 0);
	assert_true(home_state->input.demand_cpus > 2.5);
	assert_true(home_state->input.ran_on[1] > 1.5);
	for (uint32_t tid = 1002; tid <= 1003; tid++) /* as their owner has set them */
		assert_int_equal(fake_get(world.fake, tid)->mask, 1U << tid % 1000);
	fake_asked.numa_maps = NULL;
}

TEST(pinned_threads_keep_their_memory)
{
	no_memory_leaves_the_node_of_pinned_threads(all_on_1);
}

TEST(pinned_threads_keep_unlocated_memory)
{
	no_memory_leaves_the_node_of_pinned_threads(NULL);
}

/* Real-time threads are excluded by a rule, and are not moved. */
TEST(excluded_threads_keep_their_memory)
{
	add_sized();
	for (int cpu = 2; cpu < 4; cpu++)
		fake_get(world.fake, add_worker(1000, cpu, 1)->tid)->policy = SCHED_FIFO;
	begin_auto();
	fake_asked.numa_maps = all_on_1;
	live_s(30);
	assert_true(state_of(1000)->home == 1 || state_of(1000)->home == -1);
	assert_int_equal(fake_mover.submitted, 0);
	assert_true(state_of(1000)->input.demand_cpus > 2.5);
	fake_asked.numa_maps = NULL;
}

/* A process all of whose threads are pinned is not managed. */
TEST(a_pinned_process_is_left_alone)
{
	for (int cpu = 2; cpu < 4; cpu++)
		fake_pin(world.fake, add_worker(1000, cpu, 1)->tid, 1U << cpu);
	begin_auto();
	live_s(10);
	assert_null(nm_home_state_find(nm_placement_of(&world.daemon), 1000));
}

/* Two threads on nodes 1 and 3, with their memory on node 1. */
static void begin_at_home(void)
{
	for (int cpu = 3; cpu <= 6; cpu += 3)
		fake_get(world.fake, add_worker(1000, cpu, 1)->tid)->rss_kb = UINT64_C(24) << 10;
	fake_asked.numa_maps = all_on_1;
	begin_auto();
	live_s(20);
	assert_int_equal(fake_get(world.fake, 1002)->processor / 2, 1);
}

/* ---- a process without its first thread ---- */

TEST(a_home_outlives_the_first_thread)
{
	begin_at_home();
	assert_int_equal(state_of(1000)->home, 1);
	uint64_t decision = state_of(1000)->decision;
	fake_exit(world.fake, 1000);
	fake_get(world.fake, 1000)->rss_kb = 0;
	live_s(40);
	assert_int_equal(state_of(1000)->home, 1);
	assert_int_equal(state_of(1000)->decision, decision);
	assert_int_equal(fake_get(world.fake, 1002)->processor / 2, 1);
	fake_asked.numa_maps = NULL;
}

/* ---- CPUs that a process may use ---- */

static void assert_no_cpu_is_shared(void)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		assert_int_equal(workers_on(fake_get(world.fake, world.workers[i].tid)->processor),
				 1);
}

/* As beside the exclusive CPUs of other containers: one CPU of node 0 and both of node 2. */
TEST(two_threads_do_not_share_a_cpu)
{
	static const char on_0[] =
		"7f0000000000 default anon=16384 dirty=16384 N0=16384 kernelpagesize_kB=4\n";
	for (int i = 0; i < 2; i++)
		fake_pin(world.fake, add_worker(1000, i ? 4 : 0, 0)->tid,
			 fake_cpus(0, 0) | fake_cpus(4, 5));
	fake_asked.numa_maps = on_0;
	begin_auto();
	for (unsigned s = 0; s < 40; s++) {
		live_s(1);
		assert_no_cpu_is_shared();
	}
	assert_true(state_of(1000)->home == 2 || state_of(1000)->home == -1);
	assert_true(state_of(1000)->room[0] == 1);
	assert_true(state_of(1000)->room[2] == 2);
	fake_asked.numa_maps = NULL;
}

/* Each thread may use two CPUs of a node of two, but both the same one of node 0. */
TEST(different_affinities_share_cpus)
{
	fake_pin(world.fake, add_worker(1000, 0, 0)->tid, fake_cpus(0, 0) | fake_cpus(4, 5));
	fake_pin(world.fake, add_worker(1000, 4, 0)->tid, fake_cpus(0, 0) | fake_cpus(4, 5));
	fake_pin(world.fake, add_worker(1000, 1, 0)->tid, fake_cpus(1, 1) | fake_cpus(4, 7));
	begin_auto();
	for (unsigned s = 0; s < 20; s++) {
		live_s(1);
		assert_no_cpu_is_shared();
	}
	assert_true(state_of(1000)->room[0] < 2.1);
}

/* Two threads with their memory on node 2, one CPU of which is isolated. */
TEST(an_isolated_cpu_is_no_room)
{
	static const char on_2[] =
		"7f0000000000 default anon=16384 dirty=16384 N2=16384 kernelpagesize_kB=4\n";
	hwloc_bitmap_clr(world.daemon.pipeline.topology->usable, 5);
	world.daemon.pipeline.topology->cpus[5].isolated = true;
	for (int cpu = 0; cpu <= 4; cpu += 4)
		fake_pin(world.fake, add_worker(1000, cpu, 2)->tid, 0xff & ~(1U << 5));
	fake_asked.numa_maps = on_2;
	begin_auto();
	for (unsigned s = 0; s < 40; s++) {
		live_s(1);
		assert_no_cpu_is_shared();
	}
	assert_int_not_equal(state_of(1000)->home, 2);
	fake_asked.numa_maps = NULL;
}

/* Threads are held on their nodes while CPUs are idle. These have more threads than CPUs that they
 * may use, on a machine with idle ones. */
TEST(a_full_cpuset_holds_no_threads)
{
	static const int cpus[] = {0, 1, 4, 5, 5};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cpus); i++)
		fake_pin(world.fake, add_worker(1000, cpus[i], 0)->tid,
			 fake_cpus(0, 1) | fake_cpus(4, 5));
	begin_auto();
	for (unsigned s = 0; s < 20; s++) {
		live_s(1);
		assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 0);
	}
	assert_int_equal(state_of(1000)->reason, NM_PLACE_LARGER);
}

/* ---- memory that cannot follow ---- */

static const char elsewhere[] =
	"7f0000000000 default anon=6144 dirty=6144 N1=6144 kernelpagesize_kB=4\n";
static int batch_error;
static char status_lines[128];

static unsigned moves_away;
static bool each_page_stays; /* instead of an error of the whole batch */

static void end_with_error(struct nm_page_batch *batch)
{
	if (batch->to == 1)
		return;
	moves_away++;
	batch->error = batch_error;
	batch->stayed_bytes = each_page_stays ? UINT64_C(24) << 20 : 0;
	fake_asked.hangs = each_page_stays; /* so that no later query shows it */
}

/* One busy thread on node 3, with its memory on node 1, whose CPUs are busy. */
static void begin_away(void)
{
	add_sized();
	for (int cpu = 2; cpu < 4; cpu++)
		fake_pin(world.fake, add_worker(2000 + 100 * (uint32_t)cpu, cpu, 1)->tid,
			 1U << cpu);
	fake_asked.numa_maps = elsewhere;
	fake_mover.perform = end_with_error;
	moves_away = 0;
	begin_auto();
}

static void assert_refusal_is_learnt(int error, unsigned tries)
{
	batch_error = error;
	begin_away();
	live_s(50);
	assert_int_equal(moves_away, tries);
	assert_true(state_of(1000)->input.memory_stays);
	assert_true(state_of(1000)->home == 1 || state_of(1000)->home == -1);
	fake_asked.numa_maps = NULL;
}

TEST(a_refusal_by_the_cpuset_is_learnt)
{
	assert_refusal_is_learnt(-EPERM, 1);
}

TEST(other_refusals_are_learnt)
{
	assert_refusal_is_learnt(-EFBIG, 1);
}

TEST(unexpected_refusals_are_learnt)
{
	assert_refusal_is_learnt(-EINVAL, 1);
}

/* By the limit of its cgroup, for example. */
TEST(a_lack_of_memory_in_the_kernel_is_learnt)
{
	assert_refusal_is_learnt(-ENOMEM, 1);
}

/* The process is too large, which is known before anything is tried. */
TEST(memory_beyond_the_limit_is_not_tried)
{
	batch_error = -EPERM;
	begin_away();
	world.daemon.config->pages.max_gb_of_process = 1;
	fake_get(world.fake, 1000)->rss_kb = 2U << 20;
	live_s(50);
	assert_int_equal(moves_away, 0);
	assert_true(state_of(1000)->input.held_share == 1);
	fake_asked.numa_maps = NULL;
}

/* A worker that is killed, or does not answer, is no refusal, unless it happens again. */
TEST(repeated_failures_are_learnt)
{
	assert_refusal_is_learnt(-ETIMEDOUT, 2);
}

/* Its domain has stuck workers: nothing was tried. */
TEST(waiting_for_a_worker_is_no_refusal)
{
	batch_error = -EALREADY;
	begin_away();
	live_s(50);
	assert_true(moves_away > 2);
	assert_false(state_of(1000)->input.memory_stays);
	fake_asked.numa_maps = NULL;
}

/* As that of a thread that is exiting, of a process that continues. */
TEST(repeated_failures_of_a_thread_are_learnt)
{
	assert_refusal_is_learnt(-ESRCH, 2);
}

/* The kernel gave a reason for each page: busy, pinned, or an error of the device. */
TEST(refusals_of_all_pages_are_learnt)
{
	each_page_stays = true;
	assert_refusal_is_learnt(0, 1);
	each_page_stays = fake_asked.hangs = false;
}

/* Returns the status of process 1000 with further lines. */
static ssize_t read_restricted_status(struct nm_platform *platform, int directory, const char *path,
				      char *buffer, size_t size)
{
	ssize_t length = read_with_load(platform, directory, path, buffer, size);
	if (length > 0 && strcmp(path, "status") == 0 && strstr(buffer, "Tgid:\t1000\n"))
		length += snprintf(buffer + length, size - (size_t)length, "%s", status_lines);
	return length;
}

static void assert_nothing_is_tried(const char *lines)
{
	snprintf(status_lines, sizeof(status_lines), "%s", lines);
	world.ops.read_file = read_restricted_status;
	batch_error = -EPERM;
	begin_away();
	live_s(40);
	assert_int_equal(moves_away, 0);
	assert_true(state_of(1000)->home == 1 || state_of(1000)->home == -1);
	assert_true(!find_entry(0, NM_MESSAGE_DECISION, "NODE_TO", "3"));
	fake_asked.numa_maps = NULL;
}

TEST(confined_memory_is_known_before_the_choice)
{
	assert_nothing_is_tried("Mems_allowed:\t2\nMems_allowed_list:\t1\n");
}

/* Its location is not known, but it cannot be where the threads run. */
TEST(confined_memory_is_where_it_may_be)
{
	fake_asked.hangs = true;
	assert_nothing_is_tried("Mems_allowed:\t2\nMems_allowed_list:\t1\n");
	fake_asked.hangs = false;
}

TEST(pinned_memory_is_known_before_the_choice)
{
	assert_nothing_is_tried("VmPin:\t 4194304 kB\n");
}

TEST(locked_memory_is_known_before_the_choice)
{
	assert_nothing_is_tried("VmLck:\t 4194304 kB\n");
}

RUN_TESTS()

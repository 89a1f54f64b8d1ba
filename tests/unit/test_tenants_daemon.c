/* SPDX-License-Identifier: MIT */
/*
 * Two tenants of one machine under policy "auto": A has 200 threads, forks repeatedly while records
 * are lost, changes affinities and attributes of cgroups, and is in deep cgroups. The program of B
 * gets its home, and its affinities are finally restored.
 */
#define SET_UP open_pages
#define TEAR_DOWN world_close
#include "../support/test.h"

#define FAKE_THREADS 400
#define FAKE_CGROUP_BYTES 96
#include "page_daemon_fixture.h"

enum { A = 2000, B = 1000, A_THREADS = 200, FORKS = 100, SECONDS = 8 };

static char deep[FAKE_CGROUP_BYTES];

static void add_a(void)
{
	int length = snprintf(deep, sizeof(deep), "/a.slice");
	for (unsigned level = 1; level < 40; level++)
		length += snprintf(deep + length, sizeof(deep) - (size_t)length, "/x");
	/* A may use the CPUs of two nodes; the others are available. */
	for (unsigned i = 2; i < 4; i++)
		add_worker(A, (int)(2 * i), i);
	for (uint32_t i = 0; i < A_THREADS; i++)
		(void)fake_clone(world.fake, A, A + 100 + i);
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (world.fake->threads[i].alive && world.fake->threads[i].pid == A)
			world.fake->threads[i].uid = 1001;
	(void)fake_group(world.fake, "/");
	fake_group(world.fake, "/a.slice")->uid = 1001;
	fake_move(world.fake, A, deep);
}

/* Two threads on two nodes, with their memory on one of them. */
static void add_b(void)
{
	add_worker(B, 1, 0);
	add_worker(B, 3, 0);
	for (unsigned i = 0; i < 2; i++)
		fake_get(world.fake, world.workers[world.nr_workers - 1 - i].tid)->uid = 1002;
	fake_move(world.fake, B, "/b.slice/b.service");
}

static void attack(unsigned turn)
{
	static const char *const words[] = {"observe", "off", "on", "nonsense"};
	struct fake *fake = world.fake;
	fake_set_attribute(fake, "/a.slice", words[turn % 4]);
	fake_move(fake, A, turn % 2 ? "/a.slice/y" : deep);
	for (uint32_t i = 0; i < A_THREADS; i++)
		fake_pin(fake, A + 100 + i, turn % 2 ? fake_cpus(0, 1) : fake->all);
	fake->nr_events = 0;
	for (uint32_t i = 0; i < FORKS; i++) {
		uint32_t pid = 10000 + turn * FORKS + i;
		fake_notify(fake, NM_TASK_FORK, pid, pid, A, A);
		fake_notify(fake, NM_TASK_EXIT, pid, pid, A, A);
	}
	if (turn % 2) /* nothing is moved in such an interval */
		nm_moves_records_lost(world.daemon.pipeline.moves);
}

static unsigned assigned_of_b(void)
{
	unsigned count = 0;
	for (size_t i = world.nr_workers - 2; i < world.nr_workers; i++) {
		const struct fake_thread *thread = fake_get(world.fake, world.workers[i].tid);
		count += nm_assignments_has(world.daemon.pipeline.assignments, thread->tid,
					    thread->start_ticks);
	}
	return count;
}

/* SECURITY: quota, many-groups, forks */
TEST(tenant_b_is_placed_and_restored)
{
	add_a();
	add_b();
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	world.balancing = world.daemon.machine.balancing = -1;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
	for (unsigned turn = 0; turn < SECONDS / nm_loop_wakeup_s(&world.daemon); turn++) {
		attack(turn);
		live_one();
	}
	const struct nm_home_state *home_state =
		nm_home_state_find(nm_placement_of(&world.daemon.pipeline), B);
	assert_non_null(home_state);
	assert_in_range(home_state->home, 0, NODES - 1);
	for (size_t i = world.nr_workers - 2; i < world.nr_workers; i++)
		assert_int_equal(node_of(&world.workers[i]), home_state->home);
	assert_int_equal(assigned_of_b(), 2);
	assert_int_equal(nm_moves_end(world.daemon.pipeline.moves), 0);
	assert_null(fake_trace(world.fake));
}

/* While records are lost, a thread is found with an inherited affinity. */
TEST(a_restored_inheritor_is_managed_at_once)
{
	enum nm_eligibility eligibility;
	uint32_t tid = add_worker(B, 1, 0)->tid;
	const struct nm_move_event event = {.kind = NM_MOVE_INHERITED,
					    .tid = tid,
					    .pid = B,
					    .start_ticks = fake_get(world.fake, tid)->start_ticks};
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
	fake_pin(world.fake, tid, fake_cpus(0, 1));
	live(2);
	assert_int_equal(
		nm_tasks_thread_eligibility(world.daemon.pipeline.tasks, tid, &eligibility), 0);
	assert_int_equal(eligibility, NM_ELIGIBILITY_PINNED);
	fake_pin(world.fake, tid, world.fake->all);
	nm_report_move(&world.daemon, &event);
	live_one();
	assert_int_equal(
		nm_tasks_thread_eligibility(world.daemon.pipeline.tasks, tid, &eligibility), 0);
	assert_int_equal(eligibility, NM_ELIGIBILITY_MANAGED);
}

/* Returns how many pages of B have stored origins while A has this number of runs. */
static uint64_t remembered_beside(size_t of_a)
{
	enum { DOMAIN_A = 1, DOMAIN_B };
	struct nm_base_pages pages = {START, 512, 2, 0};
	const struct nm_page_batch batch = {.base_pages = &pages, .nr_base_pages = 1};
	struct nm_migration items[] = {{.domain = DOMAIN_A, .nr_origins = of_a},
				       {.domain = DOMAIN_B}};
	const struct nm_migrations migrations = {.items = items, .count = NM_ARRAY_SIZE(items)};
	uint64_t ret = nm_migration_remember(&migrations, &items[1], &batch, world.daemon.config);
	free(items[1].origins);
	return ret;
}

/* SECURITY: quota */
TEST(tenant_a_leaves_rollback_storage_to_b)
{
	assert_int_equal(remembered_beside(world.daemon.config->rules.rollback_pages / 2), 512);
}

TEST(rollback_storage_is_limited)
{
	assert_int_equal(remembered_beside(world.daemon.config->rules.rollback_pages), 0);
}

RUN_TESTS()

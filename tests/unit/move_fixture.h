/* SPDX-License-Identifier: MIT */
/* Moves on a synthetic machine of four nodes with two CPUs each: a shell (50), its job (process 100
 * with the threads 100 to 102) and a neighbour (200), all on the CPUs of node 0. Include after
 * cmocka.h. */
#ifndef NM_TEST_MOVE_FIXTURE_H
#define NM_TEST_MOVE_FIXTURE_H

#include "../support/machine.h"
#include "fake_platform.h"
#include "fixture.h"
#include "affinity/move.h"

#define WORLD_BOOT "5f6e1a52-0000-4000-8000-2b1f5f0c9e11"
#define WORLD_EVENTS 256
#define ALL UINT64_C(0xff)

struct world {
	struct fake *fake;
	struct nm_topology *topology;
	char root[128];
	int directory;
	struct nm_moves *moves;
	struct nm_move_event events[WORLD_EVENTS];
	unsigned nr_events;
	uint64_t next_id;
	double busy_share[8];
};

static struct world *world;
static struct fake *fake;

static inline void world_on_event(void *context, const struct nm_move_event *event)
{
	struct world *one = context;
	if (one->nr_events < WORLD_EVENTS)
		one->events[one->nr_events++] = *event;
}

static inline void world_start(void)
{
	int r = nm_moves_new(&fake->platform, world->topology, world->directory, WORLD_BOOT,
			     world_on_event, world, &world->moves);
	assert_int_equal(r, 0);
}

static inline int set_up(void **state)
{
	(void)state;
	world = calloc(1, sizeof(*world));
	world->fake = fake = fake_new(8);
	world->topology = machine_topology(4, 8);
	fixture_make(world->root, sizeof(world->root));
	world->directory = open(world->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	world->next_id = 1;
	world_start();
	fake_process(fake, 50, 1);
	fake_fork(fake, 50, 100);
	fake_clone(fake, 100, 101);
	fake_clone(fake, 100, 102);
	fake_fork(fake, 50, 200);
	fake_sleep(fake, 10000);
	fake->nr_events = 0;
	return 0;
}

static inline int tear_down(void **state)
{
	unsigned open_fds = fake_open_fds(fake);
	(void)state;
	nm_moves_free(world->moves);
	close(world->directory);
	fixture_remove(world->root);
	nm_topology_free(world->topology);
	nm_platform_free(&fake->platform);
	free(world);
	assert_int_equal(open_fds, 0);
	return 0;
}

static inline uint64_t world_node(unsigned node)
{
	return fake_cpus(2 * node, 2 * node + 1);
}

static inline uint64_t world_mask(uint32_t tid)
{
	return fake_get(fake, tid)->mask;
}

static inline unsigned world_node_of(uint32_t tid)
{
	return (unsigned)fake_get(fake, tid)->processor / 2;
}

static inline unsigned world_reported(enum nm_move_event_kind kind, uint32_t tid)
{
	unsigned count = 0;
	for (unsigned i = 0; i < world->nr_events; i++)
		count += world->events[i].kind == kind && world->events[i].tid == tid;
	return count;
}

/* A step for a thread with its present affinity, as the task table knows it. */
static inline struct nm_step world_step(uint32_t tid, unsigned node)
{
	const struct fake_thread *thread = fake_get(fake, tid);
	hwloc_bitmap_t original = hwloc_bitmap_alloc(), target = hwloc_bitmap_alloc();
	fake_to_bitmap(thread->mask, original); /* including offline CPUs */
	hwloc_bitmap_and(target, original, world->topology->nodes[node].cpus);
	return (struct nm_step){
		.tid = tid,
		.pid = thread->pid,
		.start_ticks = thread->start_ticks,
		.node_to = (int)node,
		.target = target,
		.original = original,
		.unrestricted = thread->mask == fake_allowed(fake, thread->cgroup),
	};
}

static inline struct nm_receipt world_run(struct nm_decision *decision)
{
	struct nm_plan plan = {.decisions = decision, .count = 1};
	struct nm_receipt receipt;
	decision->id = world->next_id++;
	nm_moves_run(world->moves, &plan, world->busy_share, fake->now_ns, &receipt);
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		hwloc_bitmap_free(decision->steps[i].target);
		hwloc_bitmap_free((hwloc_bitmap_t)(uintptr_t)decision->steps[i].original);
	}
	return receipt;
}

static inline struct nm_receipt world_move(uint32_t tid, unsigned node)
{
	struct nm_decision decision = {
		.kind = NM_DECISION_MIGRATE, .nr_steps = 1, .steps = {world_step(tid, node)}};
	return world_run(&decision);
}

/* Moves a thread that does not run, so that its affinity stays narrow until the window ends. */
static inline void world_narrow(uint32_t tid, unsigned node)
{
	fake_get(fake, tid)->stuck = true;
	assert_true(world_move(tid, node).applied);
	assert_int_not_equal(world_mask(tid), fake_get(fake, tid)->own);
}

static inline void world_poll(unsigned ms)
{
	fake_sleep(fake, ms);
	nm_moves_poll(world->moves, fake->now_ns);
}

/* Drains the rings. */
static inline void world_drain(void)
{
	struct nm_task_event *order[FAKE_EVENTS];
	unsigned count = fake->nr_events;
	fake->nr_events = 0;
	nm_task_events_order(fake->events, count, order);
	for (unsigned i = 0; i < count; i++)
		nm_moves_task_event(world->moves, order[i]);
}

static inline void world_lose_records(void)
{
	fake->nr_events = 0;
	nm_moves_records_lost(world->moves);
}

/* Advances by an interval of one second. */
static inline void world_tick(void)
{
	fake_sleep(fake, 1000);
	world_drain();
	nm_moves_poll(world->moves, fake->now_ns);
	nm_moves_update(world->moves, fake->now_ns);
}

/* Restores as `--restore` does. Returns the number restored, or a negative errno. */
static inline int world_restore(struct nm_restoration *found)
{
	const struct nm_restore_input input = {.platform = &fake->platform,
					       .topology = world->topology,
					       .directory = world->directory,
					       .boot_id = WORLD_BOOT,
					       .on_event = world_on_event,
					       .context = world};
	return nm_moves_restore(&input, found);
}

static inline void assert_no_trace(void)
{
	const struct fake_thread *thread = fake_trace(fake);
	if (thread)
		fail_msg("thread %u has %#" PRIx64 ", not %#" PRIx64, thread->tid, thread->mask,
			 thread->own);
}

#endif

/* SPDX-License-Identifier: MIT */
/* An actuator on a synthetic machine of four nodes with two CPUs each, and a runtime directory. */
#ifndef NM_TEST_ACTUATE_FIXTURE_H
#define NM_TEST_ACTUATE_FIXTURE_H

#include "../support/machine.h"
#include "fake_platform.h"
#include "fixture.h"
#include "numa-migrd/lease.h"
#include "numa-migrd/ledger.h"

#define WORLD_BOOT "5f6e1a52-0000-4000-8000-2b1f5f0c9e11"
#define WORLD_EXPIRY_NS (30 * NM_NSEC_PER_SEC)
#define WORLD_EVENTS 256

struct world {
	struct fake *fake;
	struct nm_topology *topology;
	char root[128];
	int directory;
	struct nm_actuator *actuator;
	struct nm_lease_event events[WORLD_EVENTS];
	unsigned nr_events;
	uint64_t next_id;
	/* Members with their affinity at adoption; all run unless `idle` is set. */
	struct nm_member members[64];
	size_t nr_members;
	bool idle;
};

static inline void world_on_event(void *context, const struct nm_lease_event *event)
{
	struct world *world = context;
	if (world->nr_events < WORLD_EVENTS)
		world->events[world->nr_events++] = *event;
}

static inline void world_start(struct world *world)
{
	int r = nm_actuator_new(&world->fake->platform, world->topology, world->directory,
				WORLD_BOOT, world_on_event, world, &world->actuator);
	if (r < 0)
		abort();
}

static inline struct world *world_new(void)
{
	struct world *world = calloc(1, sizeof(*world));
	world->fake = fake_new(8);
	world->topology = machine_topology(4, 8);
	fixture_make(world->root, sizeof(world->root));
	world->directory = open(world->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	world->next_id = 1;
	world_start(world);
	return world;
}

static inline void world_forget_members(struct world *world)
{
	for (size_t i = 0; i < world->nr_members; i++)
		hwloc_bitmap_free((hwloc_bitmap_t)(uintptr_t)world->members[i].original);
	world->nr_members = 0;
}

static inline void world_free(struct world *world)
{
	nm_actuator_free(world->actuator);
	world_forget_members(world);
	close(world->directory);
	fixture_remove(world->root);
	nm_topology_free(world->topology);
	nm_platform_free(&world->fake->platform);
	free(world);
}

static inline uint64_t world_node(unsigned node)
{
	return fake_cpus(2 * node, 2 * node + 1);
}

static inline uint64_t world_mask(const struct world *world, uint32_t tid)
{
	return fake_get(world->fake, tid)->mask;
}

static inline unsigned world_reported(const struct world *world, enum nm_lease_event_kind kind,
				      uint32_t tid)
{
	unsigned count = 0;
	for (unsigned i = 0; i < world->nr_events; i++)
		count += world->events[i].kind == kind && world->events[i].tid == tid;
	return count;
}

static inline int world_compare(const void *a, const void *b)
{
	uint32_t left = ((const struct nm_member *)a)->tid;
	uint32_t right = ((const struct nm_member *)b)->tid;
	return (left > right) - (left < right);
}

/* Adopts a thread with its current affinity, as the roster would. */
static inline void world_adopt_thread(struct world *world, uint32_t tid)
{
	const struct fake_thread *thread = fake_get(world->fake, tid);
	hwloc_bitmap_t original = hwloc_bitmap_alloc();
	fake_to_bitmap(thread->mask, original); /* including offline CPUs */
	world->members[world->nr_members++] = (struct nm_member){
		.tid = tid,
		.pid = thread->pid,
		.start_ticks = thread->start_ticks,
		.original = original,
		.unrestricted = thread->mask == fake_allowed(world->fake, thread->cgroup),
	};
	qsort(world->members, world->nr_members, sizeof(world->members[0]), world_compare);
}

static inline const struct nm_member *world_member(const struct world *world, uint32_t tid)
{
	for (size_t i = 0; i < world->nr_members; i++)
		if (world->members[i].tid == tid)
			return &world->members[i];
	abort();
}

/* The roster drops the thread. */
static inline void world_drop(struct world *world, uint32_t tid)
{
	struct nm_member *member = (struct nm_member *)(uintptr_t)world_member(world, tid);
	hwloc_bitmap_free((hwloc_bitmap_t)(uintptr_t)member->original);
	size_t index = (size_t)(member - world->members);
	world->nr_members--;
	memmove(member, member + 1, (world->nr_members - index) * sizeof(*member));
}

static inline struct nm_step world_step(const struct world *world, uint32_t tid, unsigned node,
					enum nm_step_pin pin)
{
	const struct nm_member *member = world_member(world, tid);
	hwloc_bitmap_t target = hwloc_bitmap_dup(member->original);
	hwloc_bitmap_and(target, target, world->topology->nodes[node].cpus);
	return (struct nm_step){
		.tid = tid,
		.pid = member->pid,
		.start_ticks = member->start_ticks,
		.pin = pin,
		.node_to = (int)node,
		.target = target,
		.original = member->original,
		.unrestricted = member->unrestricted,
	};
}

static inline struct nm_receipt world_run(struct world *world, struct nm_decision *decision)
{
	struct nm_plan plan = {.decisions = decision, .count = 1};
	struct nm_receipt receipt;
	decision->id = world->next_id++;
	nm_actuator_run(world->actuator, &plan, world->fake->now_ns, &receipt);
	for (unsigned i = 0; i < decision->nr_steps; i++)
		hwloc_bitmap_free(decision->steps[i].target);
	return receipt;
}

static inline struct nm_receipt world_move(struct world *world, uint32_t tid, unsigned node,
					   enum nm_step_pin pin)
{
	struct nm_decision decision = {.kind = NM_DECISION_MIGRATE,
				       .nr_steps = 1,
				       .steps = {world_step(world, tid, node, pin)}};
	return world_run(world, &decision);
}

/* Adopts the thread if necessary, and leases a node to it. */
static inline struct nm_receipt world_lease(struct world *world, uint32_t tid, unsigned node)
{
	bool known = false;
	for (size_t i = 0; i < world->nr_members; i++)
		known = known || world->members[i].tid == tid;
	if (!known)
		world_adopt_thread(world, tid);
	return world_move(world, tid, node, NM_STEP_LEASE);
}

static inline struct nm_receipt world_swap(struct world *world, uint32_t a, unsigned node_a,
					   uint32_t b, unsigned node_b)
{
	struct nm_decision decision = {.kind = NM_DECISION_SWAP,
				       .nr_steps = 2,
				       .steps = {world_step(world, a, node_a, NM_STEP_LEASE),
						 world_step(world, b, node_b, NM_STEP_LEASE)}};
	return world_run(world, &decision);
}

/* The start time of the thread that has or had the number. */
static inline uint64_t world_start_of(const struct world *world, uint32_t tid)
{
	const struct fake_thread *thread = fake_find(world->fake, tid);
	return thread ? thread->start_ticks : 0;
}

static inline bool world_holds(const struct world *world, uint32_t tid)
{
	return nm_actuator_holds(world->actuator, tid, world_start_of(world, tid));
}

static inline unsigned world_return(const struct world *world, uint32_t tid)
{
	return nm_actuator_return_thread(world->actuator, tid, world_start_of(world, tid));
}

/* Drains the rings. */
static inline void world_drain(struct world *world)
{
	struct nm_task_event *order[FAKE_EVENTS];
	unsigned count = world->fake->nr_events;
	world->fake->nr_events = 0;
	nm_task_events_order(world->fake->events, count, order);
	for (unsigned i = 0; i < count; i++)
		nm_actuator_task_event(world->actuator, order[i]);
}

static inline void world_lose_records(struct world *world)
{
	world->fake->nr_events = 0;
	nm_actuator_records_lost(world->actuator);
}

/* Advances by an interval of one second in which all members ran unless `idle` is set. */
static inline void world_tick(struct world *world)
{
	struct nm_figures figures[64];
	for (size_t i = 0; i < world->nr_members; i++)
		figures[i] = (struct nm_figures){
			.pid = world->members[i].pid,
			.tid = world->members[i].tid,
			.run_samples = world->idle ? 0 : 100,
		};
	fake_sleep(world->fake, 1000);
	world_drain(world);
	struct nm_actuator_input input = {
		.figures = figures,
		.nr_figures = world->nr_members,
		.members = world->members,
		.nr_members = world->nr_members,
		.expiry_ns = WORLD_EXPIRY_NS,
		.now_ns = world->fake->now_ns,
	};
	nm_actuator_update(world->actuator, &input);
}

/* The query of the roster about a new thread: is its affinity leased or inherited? */
static inline bool world_asked_of(struct world *world, uint32_t tid)
{
	const struct fake_thread *thread = fake_get(world->fake, tid);
	hwloc_bitmap_t current = hwloc_bitmap_alloc();
	hwloc_const_bitmap_t original;
	bool unrestricted;
	fake_to_bitmap(thread->mask, current);
	bool leased = nm_actuator_original(world->actuator, tid, thread->start_ticks, current,
					   &original, &unrestricted);
	hwloc_bitmap_free(current);
	return leased;
}

/* ---- a test ---- */

static struct world *world;
static struct fake *fake;

/* Processes 100, with threads 101 to 103, and 200. */
static inline int set_up_two_processes(void **state)
{
	(void)state;
	world = world_new();
	fake = world->fake;
	fake_process(fake, 100, 1);
	for (uint32_t tid = 101; tid < 104; tid++)
		fake_clone(fake, 100, tid);
	fake_process(fake, 200, 1);
	fake_sleep(fake, 5000);
	fake->nr_events = 0;
	return 0;
}

static inline int tear_down(void **state)
{
	unsigned open_fds = fake_open_fds(fake);
	(void)state;
	world_free(world);
	assert_int_equal(open_fds, 0);
	return 0;
}

/* Returns the number of entries in the ledger; standing: of those that have not ended. */
static inline size_t ledger_entries(bool standing)
{
	struct nm_ledger_contents contents;
	size_t count = 0;
	assert_int_equal(nm_ledger_read(world->directory, WORLD_BOOT, &contents), 0);
	assert_int_equal(contents.bad_lines, 0);
	for (size_t i = 0; i < contents.count; i++)
		count += !standing || contents.entries[i].ended_ticks == 0;
	nm_ledger_contents_clear(&contents);
	return count;
}

#endif

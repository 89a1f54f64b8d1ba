/* SPDX-License-Identifier: MIT */
/* The daemon with pages that a model moves, and helpers for its actions. */
#ifndef NM_TEST_PAGE_DAEMON_FIXTURE_H
#define NM_TEST_PAGE_DAEMON_FIXTURE_H

#include "daemon_fixture.h"

#define START 0x7f0000000000ULL

/* ---- moves of memory in the model ---- */

static double speed_after_move; /* of all workers; 0: unchanged */

static void move_page(struct nm_page_step *step)
{
	uint64_t first = (step->address - world.space.start) / 4096;
	assert_true(step->address >= world.space.start);
	assert_true(first + step->bytes / 4096 <= world.space.count);
	step->found_on = world.space.home[first];
	if (step->from >= 0 && step->found_on != step->from) {
		step->fate = NM_PAGE_FATE_ELSEWHERE;
		return;
	}
	for (uint64_t page = first; page < first + step->bytes / 4096; page++)
		world.space.home[page] = (uint8_t)step->to;
	step->fate = NM_PAGE_FATE_MOVED;
}

static inline void set_speeds(double speed)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		world.workers[i].speed = speed;
}

static inline void move_back(struct nm_page_batch *batch, const struct nm_base_pages *run)
{
	for (uint32_t i = 0; i < run->pages; i++) {
		uint64_t page = (run->address - world.space.start) / 4096 + i;
		if (world.space.home[page] != run->now_on)
			continue;
		world.space.home[page] = (uint8_t)run->was_on;
		batch->moved++;
		batch->bytes += 4096;
		batch->base_pages = reallocarray(batch->base_pages, batch->nr_base_pages + 1,
						 sizeof(*batch->base_pages));
		assert_non_null(batch->base_pages);
		batch->base_pages[batch->nr_base_pages++] = (struct nm_base_pages){
			run->address + i * 4096ULL, 1, run->now_on, run->was_on};
	}
}

static inline void move_in_model(struct nm_page_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		move_page(&batch->steps[i]);
	for (size_t i = 0; i < batch->nr_back; i++)
		move_back(batch, &batch->back[i]);
	if (speed_after_move > 0)
		set_speeds(batch->rollback ? 1 : speed_after_move);
}

/* A process with pages on `node`, some of which each thread accesses. */
static inline void make_space(unsigned pages, unsigned node)
{
	world.space = (struct space){.start = START, .count = pages};
	memset(world.space.home, (int)node, pages);
	fake_mover.ranges[0] =
		(struct nm_range){START, START + pages * 4096ULL, .page_bytes = 4096};
	fake_mover.nr_ranges = 1;
}

static inline struct worker *add_user(uint32_t pid, int cpu, unsigned from, unsigned to)
{
	struct worker *worker = add_worker(pid, cpu, 0);
	worker->space = &world.space;
	worker->from = from;
	worker->to = to;
	return worker;
}

/* Threads stay where they are; pages are sampled from now on. */
static inline void begin(void)
{
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	world.daemon.config->pages.policy = NM_PAGES_EXCLUSIVITY;
	world.daemon.machine.balancing = world.balancing;
	fake_mover.perform = move_in_model;
	nm_pipeline_configure_pages(&world.daemon, true);
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static inline unsigned pages_on(unsigned node)
{
	unsigned count = 0;
	for (unsigned page = 0; page < world.space.count; page++)
		count += world.space.home[page] == node;
	return count;
}

static inline unsigned live_until_on(unsigned node, unsigned pages, unsigned most)
{
	unsigned intervals = 0;
	for (; intervals < most && pages_on(node) < pages; intervals++)
		live_one();
	assert_int_equal(pages_on(node), pages);
	return intervals;
}

static inline const struct nm_page_tally *tally(void)
{
	return &world.daemon.pipeline.pages->tally;
}

static inline const struct nm_entry *verdict_on(const struct nm_entry *decision)
{
	return find_entry(0, NM_MESSAGE_VERDICT, "DECISION", field_of(decision, "DECISION"));
}

static inline int open_pages(void **state)
{
	speed_after_move = 0;
	return world_open(state);
}

#endif

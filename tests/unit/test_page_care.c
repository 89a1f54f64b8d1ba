/* SPDX-License-Identifier: MIT */
/* How pages are moved: retries, waiting times, sharing of the queue, and exact rollback. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_words.h"

/* ---- parts of huge pages ---- */

/* Of each 2 MiB only the pages on node 2 move; the others were on the target already. */
static void move_base_pages(struct nm_page_batch *batch)
{
	if (batch->rollback) {
		move_in_model(batch);
		return;
	}
	batch->base_pages = calloc(batch->count, sizeof(*batch->base_pages));
	for (size_t i = 0; i < batch->count; i++) {
		struct nm_page_step *step = &batch->steps[i];
		uint64_t first = (step->address - START) / 4096, count = 0;
		while (count < step->bytes / 4096 && world.space.home[first + count] == 2)
			world.space.home[first + count++] = (uint8_t)step->to;
		step->fate = NM_PAGE_FATE_MOVED;
		step->base_pages = true;
		step->found_on = 2;
		batch->bytes += count * 4096;
		batch->base_pages[batch->nr_base_pages++] = (struct nm_base_pages){
			.address = step->address,
			.pages = (uint32_t)count,
			.was_on = 2,
			.now_on = step->to,
		};
	}
	set_speeds(speed_after_move > 0 ? speed_after_move : 1);
}

static void be_stale(struct nm_page_batch *batch)
{
	batch->error = -ESTALE;
}

WORD(mover)
{
	fake_mover.perform = step_has(step, "base-pages") ? move_base_pages
			     : step_has(step, "stale")	   ? be_stale
							   : move_in_model;
}

#define RANGE "space 1024 node3; touch 1000 0-1023 from cpu0; set page_min_accesses = 255; "

SCRIPT(small_pages_are_rolled_back_individually,
       "space 512 node0; put 0-99 node2; set huge = 1; touch 1000 0-99 from cpu0",
       "set page_min_accesses = 255; begin pages; mover base-pages; set speed_after_move = 0.05",
       "until pages node0 = 512 within 20; moved_bytes = 400K; until pages node2 > 0 within 12",
       "pages node2 0-99 = 100; pages node0 100-511 = 412; rolled_back = 1")

/* ---- cooldowns ---- */

SCRIPT(an_untried_range_is_requested_again,
       RANGE "begin pages; mover stale; until untried > 0 within 20",
       "mover model; until pages node0 = 1024 within 20")

/* It was freed and touched again on another node, except a few pages that are assumed to be there
 * because they were not accessed again. */
SCRIPT(a_range_that_drifted_is_moved_again,
       RANGE "set page_cooldown_s = 1; begin pages; until pages node0 = 1024 within 20; run 10",
       "put 0-1023 node2; until pages node0 >= 900 within 40")

#define UNTIL_ROLLED_BACK                                                                          \
	"keep n = rolled_back; until rolled_back > n within 40; keep undone = intervals; run 2; "
#define UNTIL_SUBMITTED "keep n = submitted; until submitted > n within 200; "

/* Pages moved without gain stay for ten cooldowns, and for twice as long after each rollback. */
SCRIPT(cooldowns_double_after_rollbacks,
       "space 48 node2; touch 1000 0-15 from cpu0; set page_cooldown_s = 2; begin pages",
       "set speed_after_move = 0.05; " UNTIL_SUBMITTED UNTIL_ROLLED_BACK,
       "set from 0 = 16; set to 0 = 32; " UNTIL_SUBMITTED "intervals >= undone+20",
       UNTIL_ROLLED_BACK "set from 0 = 32; set to 0 = 48; " UNTIL_SUBMITTED,
       "intervals >= undone+40; " UNTIL_ROLLED_BACK)

/* judge no-gain 3: the pages of process 1000, as three decisions of one evaluation */
WORD(judge)
{
	const struct nm_page_stage_input input = nm_page_input(&world.daemon, NULL);
	const struct nm_verdict verdict = {.kind = step_has(step, "improved") ? NM_VERDICT_IMPROVED
						   : step_has(step, "rolled-back")
							   ? NM_VERDICT_ROLLED_BACK
							   : NM_VERDICT_NEUTRAL,
					   .no_gain = step_has(step, "no-gain"),
					   .threads = {{.pid = 1000}}};
	for (unsigned i = 0; i < U(0); i++)
		nm_page_stage_apply_verdict(world.daemon.pipeline.pages, &input, &verdict);
}

/* threads_move node1 node0: process 1000 */
WORD(threads_move)
{
	const struct nm_page_stage_input input = nm_page_input(&world.daemon, NULL);
	const struct nm_decision decision = {
		.nr_steps = 1,
		.steps = {
			{.tid = 1000, .pid = 1000, .node_from = (int)N(0), .node_to = (int)N(1)}}};
	nm_page_stage_threads_moved(world.daemon.pipeline.pages, &input, &decision);
}

/* Until other pages are moved, and their verdict. */
WORD(use_next_pages)
{
	world.workers[0].from += 16;
	world.workers[0].to += 16;
}

#define NEXT "use_next_pages; " UNTIL_SUBMITTED "run 10; waited "

/* Not if its threads have moved since. */
SCRIPT(pages_moved_without_gain_stay,
       "space 96 node2; touch 1000 0-15 from cpu0; set page_cooldown_s = 2; begin pages",
       "until pages node0 = 16 within 20; run 10; judge neutral 1; " NEXT "< 20",
       "judge no-gain 1; " NEXT "in 20..39", "judge no-gain 1; " NEXT "in 20..39",
       "judge no-gain 1; threads_move node1 node0; judge improved 1; " NEXT "< 20",
       "judge rolled-back 3; " NEXT "in 20..39")

/* ---- threads and other users ---- */

/* The second move only binds a thread to its node. */
SCRIPT(pages_wait_while_threads_settle, "space 16 node2; touch 1000 0-15 from cpu0; begin pages",
       "each 15: run 1; threads_move node1 node0", "submitted = 0",
       "each 15: run 1; threads_move node0 node0", "pages node0 = 16")

/* By the rules of the papers threads move in most intervals, and pages follow nevertheless. */
SCRIPT(pages_do_not_wait_by_the_rules_of_a_paper,
       "space 16 node2; touch 1000 0-15 from cpu0; set paper = 1; begin pages",
       "each 15: run 1; threads_move node1 node0", "pages node0 = 16")

ACTION(slow_on_other_nodes, world.workers[1].speed = node_of(&world.workers[1]) == 0 ? 1 : 0.02)

/* A thread is moved to its memory, is slower there, and is moved back, repeatedly. */
SCRIPT(moves_of_threads_are_no_noise,
       "space 12 node1; touch 1000 0-11 from cpu2; set speed 0 = 0.02; thread 1000 cpu0 node2",
       "begin pages; set policy = lbma; set cooldown = 0", "each 80: run 1; slow_on_other_nodes",
       "verdicts_rolled_back > 10; set policy = none; put 0-11 node3",
       "until journaled verdict DECISION_KIND=pages = 1 within 40",
       "journal verdict DECISION_KIND=pages NOISE_PERMILLE<100")

/* The samples collected before are not affected. */
SCRIPT(a_move_in_the_interval_of_the_verdict_does_not_spoil_it,
       "space 12 node3; touch 1000 0-11 from cpu2; thread 1000 cpu0 node2; begin pages",
       "until pages node1 = 12 within 20; run 1; none verdict DECISION_KIND=pages",
       "set policy = lbma; run 1; journal decision KIND=migrate",
       "journal verdict DECISION_KIND=pages VERDICT=improved")

/* It is away from its memory for two intervals at a time. */
SCRIPT(a_passing_thread_takes_no_pages_along,
       "space 12 node0; touch 1000 0-11 from cpu2; begin pages",
       "each 10: set cpu 0 = 2; run 2; set cpu 0 = 0; run 4", "submitted = 0; set cpu 0 = 2",
       "until pages node1 = 12 within 60")

/* Steps that wait of a process. */
static size_t steps_of(uint32_t pid)
{
	size_t count = 0;
	for (size_t i = 0; i < fake_mover.nr_waiting; i++)
		count += fake_mover.waiting[i]->pid == pid ? fake_mover.waiting[i]->count : 0;
	return count;
}

QUANTITY(steps_of, steps_of(U(0)))

SCRIPT(queued_pages_are_shared_among_users,
       "space 64 node2; touch 1000 0-31 from cpu0; touch 2000 32-63 from cpu2",
       "set page_min_accesses = 4; begin pages; set room_bytes = 16K; set mover_asleep = 1",
       "until batches >= 2 within 20; steps_of 1000 in 1..3; steps_of 2000 in 1..3")

RUN_TESTS()

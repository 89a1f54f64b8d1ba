/* SPDX-License-Identifier: MIT */
/* How pages are moved: retries, waiting times, sharing of the queue, and exact rollback. */
#define SET_UP open_pages
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "page_daemon_fixture.h"

#define PAGES_OF_HUGE 512U

static void apply_verdict(const struct nm_verdict *verdict)
{
	const struct nm_page_stage_input input = nm_page_input(&world.daemon, NULL);
	nm_page_stage_apply_verdict(world.daemon.pipeline.pages, &input, verdict);
}

static void threads_moved(const struct nm_decision *decision)
{
	const struct nm_page_stage_input input = nm_page_input(&world.daemon, NULL);
	nm_page_stage_threads_moved(world.daemon.pipeline.pages, &input, decision);
}

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
	for (size_t i = 0; i < world.nr_workers && speed_after_move > 0; i++)
		world.workers[i].speed = speed_after_move;
}

TEST(small_pages_are_rolled_back_individually)
{
	make_space(PAGES_OF_HUGE, 0);
	memset(world.space.home, 2, 100);
	world.space.huge = true;
	add_user(1000, 0, 0, 100);
	world.daemon.config->rules.page_min_accesses = 255;
	begin();
	fake_mover.perform = move_base_pages;
	speed_after_move = 0.05;
	live_until_on(0, PAGES_OF_HUGE, 20);
	assert_int_equal(tally()->bytes, 100 * 4096);
	for (int i = 0; i < 12 && pages_on(2) == 0; i++)
		live_one();
	for (unsigned page = 0; page < PAGES_OF_HUGE; page++)
		assert_int_equal(world.space.home[page], page < 100 ? 2 : 0);
	assert_int_equal(tally()->verdicts[NM_VERDICT_ROLLED_BACK], 1);
}

/* ---- cooldowns ---- */

static bool stale;

static void move_unless_stale(struct nm_page_batch *batch)
{
	if (!stale) {
		move_in_model(batch);
		return;
	}
	batch->error = -ESTALE;
}

TEST(an_untried_range_is_requested_again)
{
	make_space(1024, 3);
	add_user(1000, 0, 0, 1024);
	world.daemon.config->rules.page_min_accesses = 255;
	begin();
	fake_mover.perform = move_unless_stale;
	stale = true;
	for (int i = 0; i < 20 && tally()->untried == 0; i++)
		live_one();
	assert_true(tally()->untried > 0);
	stale = false;
	live_until_on(0, 1024, 20);
}

/* It was freed and touched again on another node. */
TEST(a_range_that_drifted_is_moved_again)
{
	make_space(1024, 3);
	add_user(1000, 0, 0, 1024);
	world.daemon.config->rules.page_min_accesses = 255;
	world.daemon.config->rules.page_cooldown_s = 1;
	begin();
	live_until_on(0, 1024, 20);
	live(10);
	memset(world.space.home, 2, 1024);
	/* Except a few that are assumed to be there because they were not accessed again. */
	for (int i = 0; i < 40 && pages_on(0) < 900; i++)
		live_one();
	assert_true(pages_on(0) >= 900);
}

/* Pages moved without gain stay for ten cooldowns, and for twice as long after each rollback. */
TEST(cooldowns_double_after_rollbacks)
{
	uint64_t undone_at[3] = {0}, asked_at[3] = {0};
	make_space(48, 2);
	add_user(1000, 0, 0, 16);
	world.daemon.config->rules.page_cooldown_s = 2;
	begin();
	speed_after_move = 0.05;
	for (unsigned round = 0; round < 3; round++) {
		world.workers[0].from = 16 * round;
		world.workers[0].to = 16 * round + 16;
		unsigned submitted = fake_mover.submitted;
		for (int i = 0; i < 200 && fake_mover.submitted == submitted; i++)
			live_one();
		asked_at[round] = world.daemon.tally.intervals;
		uint64_t before = tally()->verdicts[NM_VERDICT_ROLLED_BACK];
		for (int i = 0; i < 40 && tally()->verdicts[NM_VERDICT_ROLLED_BACK] == before; i++)
			live_one();
		assert_true(tally()->verdicts[NM_VERDICT_ROLLED_BACK] > before);
		undone_at[round] = world.daemon.tally.intervals;
		live(2);
	}
	assert_true(asked_at[1] - undone_at[0] >= 20);
	assert_true(asked_at[2] - undone_at[1] >= 40);
}

/* Judges the pages of the process as the decisions of one evaluation are, and returns the number of
 * intervals until other pages of it are moved. */
static unsigned intervals_after(struct nm_verdict verdict, unsigned decisions)
{
	unsigned waited = 0;
	verdict.threads[0].pid = 1000;
	while (decisions-- > 0)
		apply_verdict(&verdict);
	world.workers[0].from += 16;
	world.workers[0].to += 16;
	for (unsigned before = fake_mover.submitted; fake_mover.submitted == before; waited++) {
		assert_true(waited < 200);
		live_one();
	}
	live(10); /* until the verdict */
	return waited;
}

TEST(pages_moved_without_gain_stay)
{
	const struct nm_verdict no_gain = {
		.kind = NM_VERDICT_NEUTRAL, .no_gain = true, .threads = {{.pid = 1000}}};
	make_space(96, 2);
	add_user(1000, 0, 0, 16);
	world.daemon.config->rules.page_cooldown_s = 2;
	begin();
	live_until_on(0, 16, 20);
	live(10);
	assert_true(intervals_after((struct nm_verdict){.kind = NM_VERDICT_NEUTRAL}, 1) < 20);
	for (unsigned i = 0; i < 2; i++)
		assert_in_range(intervals_after(no_gain, 1), 20, 39);
	/* Not if its threads have moved since. */
	struct nm_decision decision = {.nr_steps = 1,
				       .steps = {{.pid = 1000, .node_from = 1, .node_to = 0}}};
	apply_verdict(&no_gain);
	threads_moved(&decision);
	assert_true(intervals_after((struct nm_verdict){.kind = NM_VERDICT_IMPROVED}, 1) < 20);
	assert_in_range(intervals_after((struct nm_verdict){.kind = NM_VERDICT_ROLLED_BACK}, 3), 20,
			39);
}

/* ---- threads and other users ---- */

TEST(pages_wait_while_threads_settle)
{
	make_space(16, 2);
	struct worker *worker = add_user(1000, 0, 0, 16);
	begin();
	struct nm_decision decision = {
		.nr_steps = 1,
		.steps = {{.tid = worker->tid, .pid = 1000, .node_from = 1, .node_to = 0}}};
	for (int i = 0; i < 15; i++) {
		live_one();
		threads_moved(&decision);
	}
	assert_int_equal(fake_mover.submitted, 0);
	decision.steps[0].node_from = 0; /* it is only bound to its node */
	for (int i = 0; i < 15; i++) {
		live_one();
		threads_moved(&decision);
	}
	assert_int_equal(pages_on(0), 16);
}

/* By the rules of the papers threads move in most intervals, and pages follow nevertheless. */
TEST(pages_do_not_wait_by_the_rules_of_a_paper)
{
	make_space(16, 2);
	struct worker *worker = add_user(1000, 0, 0, 16);
	world.daemon.config->rules.paper = true;
	begin();
	const struct nm_decision decision = {
		.nr_steps = 1,
		.steps = {{.tid = worker->tid, .pid = 1000, .node_from = 1, .node_to = 0}}};
	for (int i = 0; i < 15; i++) {
		live_one();
		threads_moved(&decision);
	}
	assert_int_equal(pages_on(0), 16);
}

/* A thread is moved to its memory, is slower there, and is moved back, repeatedly. */
TEST(moves_of_threads_are_no_noise)
{
	make_space(12, 1);
	add_user(1000, 2, 0, 12)->speed = 0.02;
	struct worker *moved = add_worker(1000, 0, 2);
	begin();
	world.daemon.config->threads.policy = NM_POLICY_LBMA;
	world.daemon.config->rules.cooldown = 0;
	for (int i = 0; i < 80; i++) {
		live_one();
		moved->speed = node_of(moved) == 0 ? 1 : 0.02;
	}
	assert_true(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK] > 10);
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	memset(world.space.home, 3, 12);
	for (int i = 0; i < 40 && !find_entry(0, NM_MESSAGE_VERDICT, "DECISION_KIND", "pages"); i++)
		live_one();
	const struct nm_entry *verdict =
		find_entry(0, NM_MESSAGE_VERDICT, "DECISION_KIND", "pages");
	assert_non_null(verdict);
	assert_true(number_of(verdict, "NOISE_PERMILLE") < 100);
}

/* The samples collected before are not affected. */
TEST(a_move_in_the_interval_of_the_verdict_does_not_spoil_it)
{
	make_space(12, 3);
	add_user(1000, 2, 0, 12);
	add_worker(1000, 0, 2);
	begin();
	live_until_on(1, 12, 20);
	live_one();
	assert_null(find_entry(0, NM_MESSAGE_VERDICT, "DECISION_KIND", "pages"));
	world.daemon.config->threads.policy = NM_POLICY_LBMA;
	live_one();
	const struct nm_entry *move = find_entry(0, NM_MESSAGE_DECISION, "KIND", "migrate");
	const struct nm_entry *verdict =
		find_entry(0, NM_MESSAGE_VERDICT, "DECISION_KIND", "pages");
	assert_non_null(move);
	assert_non_null(verdict);
	assert_true(has_field(verdict, "VERDICT", "improved"));
}

/* It is away from its memory for two intervals at a time. */
TEST(a_passing_thread_takes_no_pages_along)
{
	make_space(12, 0);
	struct worker *worker = add_user(1000, 2, 0, 12);
	begin();
	for (int i = 0; i < 60; i++) {
		fake_get(world.fake, worker->tid)->processor = i % 6 < 2 ? 2 : 0;
		live_one();
	}
	assert_int_equal(fake_mover.submitted, 0);
	fake_get(world.fake, worker->tid)->processor = 2;
	live_until_on(1, 12, 60);
}

TEST(queued_pages_are_shared_among_users)
{
	unsigned of[2] = {0};
	make_space(64, 2);
	add_user(1000, 0, 0, 32);
	add_user(2000, 2, 32, 64);
	world.daemon.config->rules.page_min_accesses = 4;
	begin();
	fake_mover.room_bytes = 4 * 4096;
	fake_mover.asleep = true;
	for (int i = 0; i < 20 && fake_mover.nr_waiting < 2; i++)
		live_one();
	for (size_t i = 0; i < fake_mover.nr_waiting; i++)
		of[fake_mover.waiting[i]->pid == 2000] += (unsigned)fake_mover.waiting[i]->count;
	assert_in_range(of[0], 1, 3);
	assert_in_range(of[1], 1, 3);
}

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Pages through every stage of the daemon in simulated time: moves of pages and ranges, rollback,
 * and the journal. */
#define SET_UP open_pages
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "page_daemon_fixture.h"

/* ---- pages ---- */

TEST(pages_move_to_their_threads)
{
	make_space(24, 2);
	add_user(1000, 0, 0, 12);
	add_user(1000, 2, 12, 24);
	begin();
	for (int i = 0; i < 20 && pages_on(2) > 0; i++)
		live_one();
	assert_int_equal(pages_on(0), 12);
	assert_int_equal(pages_on(1), 12);
	live(6);
	const struct nm_entry *move = find_entry(0, NM_MESSAGE_DECISION, "REASON", "pages");
	assert_non_null(move);
	assert_true(has_field(move, "KIND", "pages") && has_field(move, "NODE_FROM", "2"));
	assert_true(has_field(move, "RESULT", "applied") && has_field(move, "PID", "1000"));
	assert_true(number_of(move, "BYTES") == 4096 * number_of(move, "PAGES"));
	assert_true(number_of(move, "EXCLUSIVITY_PERMILLE") == 1000);
	const struct nm_entry *verdict = verdict_on(move);
	assert_non_null(verdict);
	assert_true(has_field(verdict, "VERDICT", "improved"));
	assert_true(number_of(verdict, "PAGES_MOVED") == number_of(move, "PAGES"));
	assert_true(number_of(verdict, "LOCAL_SHARE_BEFORE_PERMILLE") == 0);
	assert_true(number_of(verdict, "LOCAL_SHARE_AFTER_PERMILLE") == 1000);
	assert_true(number_of(verdict, "PERFORMANCE_LEFT") > 1.2);
	assert_int_equal(tally()->moved, 24);
	assert_int_equal(tally()->bytes, 24 * 4096);
	assert_int_equal(tally()->verdicts[NM_VERDICT_ROLLED_BACK], 0);
	assert_int_equal(tally()->verdicts[NM_VERDICT_IMPROVED], tally()->decisions);
	assert_int_equal(nm_migrations_remembered(&world.daemon.pipeline.migrations), 0);
	size_t quiet = world.nr_entries;
	live(60);
	assert_int_equal(world.nr_entries, quiet);
	assert_int_equal(world.daemon.pipeline.migrations.count, 0);
}

/* At most as many as fit, in the order of addresses. */
TEST(free_memory_limits_moves)
{
	make_space(16, 2);
	add_user(1000, 0, 0, 16);
	begin();
	fake_mover.room_bytes = 3 * 4096;
	fake_mover.asleep = true;
	for (unsigned tries = 0; fake_mover.nr_waiting == 0; tries++) {
		assert_true(tries < 20);
		live_one();
	}
	const struct nm_page_batch *batch = fake_mover.waiting[0];
	assert_in_range(batch->count, 1, 3);
	for (size_t i = 1; i < batch->count; i++)
		assert_true(batch->steps[i].address > batch->steps[i - 1].address);
	fake_mover.asleep = false;
	live_until_on(0, 16, 40);
	live(8); /* the last verdicts */
	fake_mover.room_bytes = 4095;
	memset(world.space.home, 1, 16);
	unsigned submitted = fake_mover.submitted;
	live(30);
	assert_int_equal(fake_mover.submitted, submitted);
}

/* Pages and ranges on a memory-only node beside the thread that uses them do not move. */
TEST(memory_on_the_node_of_its_thread_stays)
{
	struct nm_topology *topology = world.daemon.pipeline.topology;
	make_space(1024, 3);
	add_user(1000, 0, 0, 1024);
	hwloc_bitmap_zero(topology->nodes[3].cpus);
	topology->nodes[3].nearest_with_cpus = 0;
	begin();
	live(30);
	assert_int_equal(fake_mover.submitted, 0);
	assert_int_equal(pages_on(3), 1024);
}

/* Accepted pages are not requested again; rejected ones are. */
TEST(a_page_is_requested_once)
{
	make_space(4, 2);
	add_user(1000, 0, 0, 4);
	begin();
	fake_mover.full = true;
	live(6);
	assert_null(find_entry(0, NM_MESSAGE_DECISION, "KIND", "pages"));
	fake_mover.full = false;
	fake_mover.asleep = true;
	live(20);
	size_t asked = 0;
	for (size_t i = 0; i < fake_mover.nr_waiting; i++)
		asked += fake_mover.waiting[i]->count;
	assert_int_equal(asked, 4);
	fake_mover.asleep = false;
	live_until_on(0, 4, 2);
}

/* Pages of a process stay until its mappings are known. */
TEST(unknown_mappings_wait)
{
	make_space(8, 2);
	add_user(1000, 0, 0, 8);
	fake_mover.maps_error = -EAGAIN;
	begin();
	live(12);
	assert_int_equal(fake_mover.submitted, 0);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 0);
	fake_mover.maps_error = -EPERM;
	live(3);
	assert_int_equal(fake_mover.submitted, 0);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 1);
	fake_mover.maps_error = 0;
	live_until_on(0, 8, 20);
}

/* With "kmaf" pages wait for the threads, which here share too little for a mapping. */
TEST(pages_wait_for_the_mapping)
{
	make_space(1024, 2);
	add_user(1000, 0, 0, 4);
	add_user(1000, 1, 4, 1024);
	begin();
	world.daemon.config->threads.policy = NM_POLICY_KMAF;
	nm_pipeline_configure_pages(&world.daemon, false);
	live(NM_MEMORY_QUIET_PERIODS - 1);
	assert_int_equal(fake_mover.submitted, 0);
	live_until_on(0, 1024, 30);
}

/* Of two pages one is busy. */
static void be_busy(struct nm_page_batch *batch)
{
	move_in_model(batch);
	for (size_t i = 0; i < batch->count; i++) {
		struct nm_page_step *step = &batch->steps[i];
		if ((step->address - START) / 4096 % 2 == 0)
			continue;
		world.space.home[(step->address - START) / 4096] = (uint8_t)step->from;
		step->fate = NM_PAGE_FATE_FAILED;
		step->error = -EBUSY;
	}
}

TEST(failures_are_reported)
{
	make_space(12, 2);
	add_user(1000, 0, 0, 12);
	begin();
	fake_mover.perform = be_busy;
	for (int i = 0; i < 60 && !find_entry(0, NM_MESSAGE_VERDICT, "DECISION_KIND", "pages"); i++)
		live_one();
	const struct nm_entry *verdict =
		find_entry(0, NM_MESSAGE_VERDICT, "DECISION_KIND", "pages");
	assert_non_null(verdict);
	assert_true(number_of(verdict, "PAGES_MOVED") + number_of(verdict, "PAGES_EBUSY") ==
		    number_of(verdict, "PAGES"));
	assert_true(tally()->failed > 0);
	/* A busy page is requested once more, after pages.cooldown_s, and then stays. */
	live(60);
	assert_int_equal(pages_on(2), 6);
	assert_int_equal(tally()->failed, 6 * NM_PAGE_REFUSED_TIMES);
	size_t quiet = world.nr_entries;
	live(60);
	assert_int_equal(world.nr_entries, quiet);
	assert_int_equal(tally()->failed, 6 * NM_PAGE_REFUSED_TIMES);
}

/* ---- pages that may not move ---- */

static unsigned requested;

static void refuse(struct nm_page_batch *batch)
{
	requested += (unsigned)batch->count;
	for (size_t i = 0; i < batch->count; i++)
		batch->steps[i].fate = NM_PAGE_FATE_REFUSED;
}

/* Its mapping is not among those that may move. */
TEST(bound_memory_causes_no_decision)
{
	make_space(1024, 2);
	fake_mover.nr_ranges = 0;
	add_user(1000, 0, 0, 16);
	begin();
	fake_mover.perform = refuse;
	fake_mover.ranges_asked = 0;
	live(60);
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
	assert_int_equal(count_entries(0, NM_MESSAGE_VERDICT), 0);
	assert_int_equal(fake_mover.submitted, 0);
	assert_int_equal(tally()->decisions, 0);
	assert_in_range(fake_mover.ranges_asked, 1, 7);
}

/* It became shared after its mapping was read. */
TEST(refused_pages_stay_until_their_mapping_changes)
{
	make_space(16, 2);
	add_user(1000, 0, 0, 16);
	begin();
	fake_mover.perform = refuse;
	requested = 0;
	live(60);
	assert_int_equal(requested, 16);
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
	assert_int_equal(count_entries(0, NM_MESSAGE_VERDICT), 0);
	live(60);
	assert_int_equal(requested, 16);
	fake_mover.perform = move_in_model;
	live(60);
	assert_int_equal(pages_on(2), 16);
	fake_mover.ranges[0].end += 4096;
	live_until_on(0, 16, 40);
}

/* ---- ranges ---- */

/* 1,024 pages, 60 accesses in an interval: never enough for one page, but for all. */
TEST(a_range_includes_unsampled_pages)
{
	make_space(1024, 3);
	add_user(1000, 0, 0, 1024);
	begin();
	fake_mover.room_bytes = 300 * 4096;
	unsigned intervals = live_until_on(0, 1024, 30);
	assert_in_range(intervals, 5, 12);
	const struct nm_entry *piece = find_entry(0, NM_MESSAGE_DECISION, "REASON", "region");
	assert_non_null(piece);
	assert_true(number_of(piece, "PAGES") <= 300);
	assert_true(has_field(piece, "NODE_TO", "0"));
	assert_true(number_of(piece, "EXCLUSIVITY_PERMILLE") == 1000);
	live(10);
	assert_int_equal(tally()->moved, 1024);
	assert_int_equal(tally()->verdicts[NM_VERDICT_ROLLED_BACK], 0);
	size_t quiet = world.nr_entries;
	live(40);
	assert_null(find_entry(quiet, NM_MESSAGE_DECISION, "KIND", "pages"));
}

/* Its pieces are moved one after another, and judged together. */
TEST(pieces_share_a_verdict)
{
	make_space(1024, 3);
	add_user(1000, 0, 0, 1024);
	begin();
	fake_mover.room_bytes = 400 * 4096;
	live_until_on(0, 1024, 30);
	live(10);
	assert_non_null(find_entry(0, NM_MESSAGE_VERDICT, "TOGETHER", "3"));
}

/* In pieces of one interval each; after four of them it waits for their verdict. */
TEST(large_ranges_move_in_stages)
{
	make_space(2048, 3);
	add_user(1000, 0, 0, 2048);
	world.daemon.config->rules.page_min_accesses = 255;
	begin();
	fake_mover.room_bytes = 100 * 4096;
	speed_after_move = 0.05;
	unsigned most = 0;
	for (int i = 0; i < 40; i++) {
		live_one();
		most = pages_on(0) > most ? pages_on(0) : most;
	}
	assert_int_equal(most, 400);
	assert_int_equal(pages_on(3), 2048);
	assert_int_equal(tally()->verdicts[NM_VERDICT_ROLLED_BACK], 4);
}

/* Rejected pieces are requested again. */
TEST(every_piece_is_moved)
{
	make_space(1024, 3);
	add_user(1000, 0, 0, 1024);
	world.daemon.config->rules.page_min_accesses = 255;
	begin();
	fake_mover.room_bytes = 100 * 4096;
	for (int i = 0; i < 60; i++) {
		fake_mover.full = i % 2;
		live_one();
	}
	assert_int_equal(pages_on(0), 1024);
}

/* The owners rotate, and earlier accesses decay quickly. */
TEST(a_range_follows_its_thread)
{
	make_space(1024, 3);
	struct worker *worker = add_user(1000, 0, 0, 1024);
	world.daemon.config->rules.page_min_accesses = 255;
	begin();
	live(60);
	assert_int_equal(pages_on(0), 1024);
	fake_get(world.fake, worker->tid)->processor = 2;
	/* Half-lives of ten seconds: less than 10 % is left after 33 s. Pages that were accessed
	 * often by chance before count as exceptions. */
	live(9);
	assert_int_equal(pages_on(1), 0);
	live(36);
	assert_true(pages_on(1) >= 1000);
}

TEST(local_ranges_stay)
{
	make_space(1024, 1);
	add_user(1000, 2, 0, 1024);
	begin();
	live(30);
	assert_int_equal(fake_mover.submitted, 0);
}

/* Halves used by threads of two nodes are split, and each moves to its node. */
TEST(halves_move_to_different_nodes)
{
	make_space(2048, 3);
	add_user(1000, 0, 0, 1024);
	add_user(1000, 2, 1024, 2048);
	begin();
	for (int i = 0; i < 40 && pages_on(3) > 0; i++)
		live_one();
	for (unsigned page = 0; page < 2048; page++)
		assert_int_equal(world.space.home[page], page < 1024 ? 0 : 1);
}

TEST(a_range_used_by_all_nodes_is_interleaved)
{
	make_space(1024, 0);
	for (int node = 0; node < NODES; node++)
		add_user(1000, 2 * node, 0, 1024);
	begin();
	speed_after_move = 1.5; /* as a controller does when part of its load is gone */
	for (int i = 0; i < 30 && pages_on(0) > 256; i++)
		live_one();
	for (unsigned node = 0; node < NODES; node++)
		assert_int_equal(pages_on(node), 256);
	const struct nm_entry *move = find_entry(0, NM_MESSAGE_DECISION, "REASON", "contention");
	assert_non_null(move);
	assert_null(field_of(move, "NODE_TO"));
	assert_null(field_of(move, "EXCLUSIVITY_PERMILLE"));
	live(10);
	assert_int_equal(tally()->verdicts[NM_VERDICT_ROLLED_BACK], 0);
	size_t quiet = world.nr_entries;
	live(30);
	assert_null(find_entry(quiet, NM_MESSAGE_DECISION, "KIND", "pages"));
}

/* A main thread initialized everything on node 0 for threads that use blocks in turn. */
TEST(blocks_move_to_their_threads)
{
	make_space(2048, 0);
	for (unsigned block = 0; block < 4; block++)
		add_user(1000, 2 * (int)block, block * 512, block * 512 + 512);
	begin();
	speed_after_move = 1.5;
	for (int i = 0; i < 30 && pages_on(0) > 512; i++)
		live_one();
	for (unsigned node = 0; node < NODES; node++)
		assert_int_equal(pages_on(node), 512);
	/* At once, and nothing was interleaved before. */
	const struct nm_entry *move = find_entry(0, NM_MESSAGE_DECISION, "REASON", "region");
	assert_non_null(move);
	assert_null(find_entry(0, NM_MESSAGE_DECISION, "REASON", "contention"));
	live(30);
	assert_int_equal(tally()->verdicts[NM_VERDICT_ROLLED_BACK], 0);
}

static bool seen_small; /* a step that is no huge page */

static void move_huge(struct nm_page_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		seen_small = seen_small || batch->steps[i].bytes != 2 << 20;
	move_in_model(batch);
}

/* Parts of huge pages never move, with pages or ranges. */
TEST(huge_pages_move_as_wholes)
{
	for (uint64_t min_accesses = 4; min_accesses <= 255; min_accesses += 251) {
		make_space(2048, 3);
		world.space.huge = true;
		if (world.nr_workers == 0)
			add_user(1000, 0, 0, 2048);
		world.daemon.config->rules.page_min_accesses = min_accesses;
		begin();
		fake_mover.perform = move_huge;
		fake_mover.room_bytes = 4ULL << 20;
		seen_small = false;
		live_until_on(0, 2048, 30);
		assert_false(seen_small);
	}
}

/* The ends of a heap are not aligned to huge pages. */
TEST(the_ends_of_a_range_are_small_pages)
{
	make_space(1024 + 600, 3);
	world.space.start = START + 4096 * 100;
	world.space.huge = true;
	fake_mover.ranges[0].start = world.space.start;
	fake_mover.ranges[0].end = world.space.start + world.space.count * 4096UL;
	add_user(1000, 0, 0, world.space.count);
	world.daemon.config->rules.page_min_accesses = 255;
	begin();
	live_until_on(0, world.space.count, 30);
	assert_int_equal(tally()->moved, 412 + 2 + 188);
}

/* ---- rollback ---- */

TEST(unhelpful_page_moves_are_rolled_back)
{
	make_space(16, 2);
	for (unsigned page = 8; page < 16; page++)
		world.space.home[page] = 3;
	add_user(1000, 0, 0, 16);
	begin();
	live(3);
	speed_after_move = 0.05;
	live_until_on(0, 16, 20);
	for (int i = 0; i < 12 && pages_on(0) > 0; i++)
		live_one();
	const struct nm_page_process *process =
		nm_page_process_of(&world.daemon.pipeline.pages->processes, 1000);
	assert_non_null(process);
	for (unsigned page = 0; page < 16; page++) {
		struct nm_page_view view;
		const struct nm_page_id id = {.address = START + page * 4096ULL,
					      .owner = process->owner,
					      .size = NM_PAGE_4K};
		assert_int_equal(world.space.home[page], page < 8 ? 2 : 3);
		assert_int_equal(nm_memory_look(world.daemon.pipeline.memory, &id, &view), 0);
		assert_int_equal(view.page_node, page < 8 ? 2 : 3);
	}
	const struct nm_entry *undone = find_entry(0, NM_MESSAGE_VERDICT, "VERDICT", "rolled-back");
	assert_non_null(undone);
	assert_true(number_of(undone, "PERFORMANCE_LEFT") < 0.9);
	const struct nm_entry *rollback =
		find_entry(0, NM_MESSAGE_DECISION, "UNDOES", field_of(undone, "DECISION"));
	assert_non_null(rollback);
	assert_true(has_field(rollback, "REASON", "rollback") &&
		    has_field(rollback, "NODE_FROM", "0"));
	live(5);
	const struct nm_entry *verdict = verdict_on(rollback);
	assert_non_null(verdict);
	assert_true(has_field(verdict, "REASON", "rollback"));
	assert_true(has_field(verdict, "VERDICT", "neutral"));
	assert_int_equal(world.daemon.pipeline.migrations.count, 0);
	assert_int_equal(nm_migrations_remembered(&world.daemon.pipeline.migrations), 0);
}

TEST(a_rolled_back_range_stays)
{
	make_space(1024, 2);
	add_user(1000, 0, 0, 1024);
	world.daemon.config->rules.page_min_accesses = 255; /* no single page */
	begin();
	speed_after_move = 0.05;
	live_until_on(0, 1024, 20);
	for (int i = 0; i < 12 && pages_on(0) > 0; i++)
		live_one();
	assert_int_equal(pages_on(2), 1024);
	live(40);
	assert_int_equal(pages_on(2), 1024);
	assert_int_equal(tally()->verdicts[NM_VERDICT_ROLLED_BACK], 1);
}

/* Beyond rollback_pages, of which a domain gets a share, the origins are not stored. */
TEST(rollback_storage_is_bounded)
{
	make_space(1024, 2);
	add_user(1000, 0, 0, 1024);
	world.daemon.config->rules.rollback_pages = 100;
	begin();
	speed_after_move = 0.05;
	live_until_on(0, 1024, 20);
	assert_int_equal(nm_migrations_remembered(&world.daemon.pipeline.migrations), 50);
	live(8);
	assert_int_equal(pages_on(2), 50);
	assert_int_equal(tally()->forgotten, 974);
	assert_non_null(find_entry(0, NM_MESSAGE_VERDICT, "PAGES_FORGOTTEN", "974"));
	assert_int_equal(nm_migrations_remembered(&world.daemon.pipeline.migrations), 0);
}

TEST(a_full_mover_is_asked_again_to_undo)
{
	make_space(8, 2);
	add_user(1000, 0, 0, 8);
	begin();
	speed_after_move = 0.05;
	live_until_on(0, 8, 20);
	fake_mover.full = true;
	live(8);
	assert_int_equal(pages_on(0), 8);
	assert_true(tally()->verdicts[NM_VERDICT_ROLLED_BACK] > 0);
	fake_mover.full = false;
	live(2);
	assert_int_equal(pages_on(2), 8);
}

/* ---- excluded processes ---- */

TEST(a_released_process_is_left_alone)
{
	make_space(8, 2);
	add_user(1000, 0, 0, 8);
	begin();
	fake_mover.asleep = true;
	live(6);
	assert_true(fake_mover.nr_waiting > 0);
	assert_int_equal(nm_command_release(&world.daemon, 1000), 0);
	assert_int_equal(fake_mover.drops, 1);
	fake_mover.asleep = false;
	live(12);
	assert_int_equal(pages_on(2), 8);
	assert_null(find_entry(0, NM_MESSAGE_DECISION, "KIND", "pages"));
	assert_null(find_entry(0, NM_MESSAGE_VERDICT, "DECISION_KIND", "pages"));
	assert_int_equal(world.daemon.pipeline.migrations.count, 0);
	assert_int_equal(world.daemon.pipeline.pages->processes.count, 0);
}

TEST(a_new_program_has_other_pages)
{
	make_space(8, 2);
	add_user(1000, 0, 0, 8);
	begin();
	live(2);
	struct nm_page_process *process =
		nm_page_process_of(&world.daemon.pipeline.pages->processes, 1000);
	assert_non_null(process);
	assert_true(process->nr_seen > 0);
	fake_exec(world.fake, 1000);
	live(2);
	assert_true(fake_mover.drops > 0);
	process = nm_page_process_of(&world.daemon.pipeline.pages->processes, 1000);
	assert_true(!process || process->nr_seen < 100);
}

static void a_dry_run(struct nm_page_batch *batch)
{
	batch->error = -EROFS;
}

TEST(a_dry_run_logs_intended_moves)
{
	make_space(4, 2);
	add_user(1000, 0, 0, 4);
	begin();
	world.daemon.config->general.dry_run = true;
	fake_mover.perform = a_dry_run;
	live(9);
	const struct nm_entry *entry = find_entry(0, NM_MESSAGE_DECISION, "KIND", "pages");
	assert_non_null(entry);
	assert_true(has_field(entry, "RESULT", "dry-run"));
	assert_non_null(strstr(entry->text, "Would migrate "));
	assert_int_equal(count_entries(0, NM_MESSAGE_VERDICT), 0);
	double total = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		if (has_field(&world.entries[i], "KIND", "pages"))
			total += number_of(&world.entries[i], "PAGES");
	assert_true(total == 4);
	assert_int_equal(pages_on(2), 4);
}

TEST(no_pages_move_while_moves_are_barred)
{
	make_space(8, 2);
	add_user(1000, 0, 0, 8);
	fake_mover.barred = true;
	begin();
	live(12);
	assert_int_equal(fake_mover.submitted, 0);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 1);
}

RUN_TESTS()

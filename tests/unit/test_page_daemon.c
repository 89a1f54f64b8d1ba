/* SPDX-License-Identifier: MIT */
/* Pages through every stage of the daemon in simulated time: moves of pages and ranges, rollback,
 * and the journal. */
#define SET_UP open_words
#define TEAR_DOWN world_close

#include "../support/test.h"

#include "daemon_words.h"

/* ---- pages ---- */

SCRIPT(pages_move_to_their_threads,
       "space 24 node2; touch 1000 0-11 from cpu0; touch 1000 12-23 from cpu2; begin pages",
       "until pages node2 = 0 within 20; pages node0 = 12; pages node1 = 12; run 6",
       "journal decision REASON=pages KIND=pages NODE_FROM=2 RESULT=applied PID=1000 PAGES=24 "
       "BYTES=98304 EXCLUSIVITY_PERMILLE=1000",
       "journal verdict DECISION=$DECISION VERDICT=improved PAGES_MOVED=24 "
       "LOCAL_SHARE_BEFORE_PERMILLE=0 LOCAL_SHARE_AFTER_PERMILLE=1000 PERFORMANCE_LEFT>1.2",
       "moved = 24; moved_bytes = 96K; rolled_back = 0; keep all = page_decisions; improved = all",
       "remembered = 0; mark; run 60; quiet; migrations = 0")

static void assert_ascending(const struct step *step, const struct nm_page_batch *batch)
{
	for (size_t i = 1; i < batch->count; i++)
		if (batch->steps[i].address <= batch->steps[i - 1].address)
			script_fail(step, "step %zu is not", i);
}

ACTION(ascending, assert_ascending(step, fake_mover.waiting[0]))

/* At most as many as fit, in the order of addresses. */
SCRIPT(free_memory_limits_moves,
       "space 16 node2; touch 1000 0-15 from cpu0; begin pages; set room_bytes = 12K",
       "set mover_asleep = 1; until batches > 0 within 20; batch_steps in 1..3; ascending",
       "set mover_asleep = 0; until pages node0 = 16 within 40; run 8", /* the last verdicts */
       "set room_bytes = 4095; put 0-15 node1; keep before = submitted; run 30; submitted = before")

WORD(no_cpus)
{
	hwloc_bitmap_zero(world.daemon.pipeline.topology->nodes[U(0)].cpus);
	world.daemon.pipeline.topology->nodes[U(0)].nearest_with_cpus = 0;
}

/* Pages and ranges on a memory-only node beside the thread that uses them do not move. */
SCRIPT(memory_on_the_node_of_its_thread_stays,
       "space 1024 node3; touch 1000 0-1023 from cpu0; no_cpus node3; begin pages; run 30",
       "submitted = 0; pages node3 = 1024")

/* Accepted pages are not requested again; rejected ones are. */
SCRIPT(a_page_is_requested_once, "space 4 node2; touch 1000 0-3 from cpu0; begin pages",
       "set mover_full = 1; run 6; none decision KIND=pages",
       "set mover_full = 0; set mover_asleep = 1; run 20; waiting_steps = 4",
       "set mover_asleep = 0; until pages node0 = 4 within 2")

/* Pages of a process stay until its mappings are known. */
SCRIPT(unknown_mappings_wait,
       "space 8 node2; touch 1000 0-7 from cpu0; set maps_error = EAGAIN; begin pages",
       "run 12; submitted = 0; entries problem = 0",
       "set maps_error = EPERM; run 3; submitted = 0; entries problem = 1",
       "set maps_error = 0; until pages node0 = 8 within 20")

/* With "kmaf" pages wait for the threads, which here share too little for a mapping. */
SCRIPT(pages_wait_for_the_mapping,
       "space 1024 node2; touch 1000 0-3 from cpu0; touch 1000 4-1023 from cpu1; begin pages",
       "set policy = kmaf; configure; keep periods = quiet_periods; run periods-1",
       "submitted = 0; until pages node0 = 1024 within 30")

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

ACTION(busy, fake_mover.perform = be_busy)

/* A busy page is requested once more, after pages.cooldown_s, and then stays. */
SCRIPT(failures_are_reported, "space 12 node2; touch 1000 0-11 from cpu0; begin pages; busy",
       "until journaled verdict DECISION_KIND=pages = 1 within 60",
       "journal verdict DECISION_KIND=pages PAGES=12 PAGES_MOVED=6 PAGES_EBUSY=6",
       "page_failures > 0; run 60; pages node2 = 6; page_failures = 12",
       "mark; run 60; quiet; page_failures = 12")

/* ---- pages that may not move ---- */

static unsigned requested;

static void refuse_all(struct nm_page_batch *batch)
{
	requested += (unsigned)batch->count;
	for (size_t i = 0; i < batch->count; i++)
		batch->steps[i].fate = NM_PAGE_FATE_REFUSED;
}

WORD(refuse)
{
	requested = 0;
	fake_mover.perform = refuse_all;
}

QUANTITY(requested, requested)
ACTION(obey, fake_mover.perform = move_in_model)

/* Its mapping is not among those that may move. */
SCRIPT(bound_memory_causes_no_decision,
       "space 1024 node2; set nr_ranges = 0; touch 1000 0-15 from cpu0; begin pages; refuse",
       "set ranges_asked = 0; run 60; entries decision = 0; entries verdict = 0; submitted = 0",
       "page_decisions = 0; ranges_asked in 1..7")

/* It became shared after its mapping was read. */
SCRIPT(refused_pages_stay_until_their_mapping_changes,
       "space 16 node2; touch 1000 0-15 from cpu0; begin pages; refuse; run 60; requested = 16",
       "entries decision = 0; entries verdict = 0; run 60; requested = 16",
       "obey; run 60; pages node2 = 16; keep end = range_end; set range_end = end+4096",
       "until pages node0 = 16 within 40")

/* ---- ranges ---- */

/* 1,024 pages, 60 accesses in an interval: never enough for one page, but for all. */
SCRIPT(a_range_includes_unsampled_pages,
       "space 1024 node3; touch 1000 0-1023 from cpu0; begin pages; set room_bytes = 1200K",
       "until pages node0 = 1024 within 12; waited >= 5",
       "journal decision REASON=region PAGES<=300 NODE_TO=0 EXCLUSIVITY_PERMILLE=1000",
       "run 10; moved = 1024; rolled_back = 0; mark; run 40; none decision KIND=pages")

/* Its pieces are moved one after another, and judged together. */
SCRIPT(pieces_share_a_verdict,
       "space 1024 node3; touch 1000 0-1023 from cpu0; begin pages; set room_bytes = 1600K",
       "until pages node0 = 1024 within 30; run 10; journal verdict TOGETHER=3")

/* In pieces of one interval each; after four of them it waits for their verdict. */
SCRIPT(large_ranges_move_in_stages,
       "space 2048 node3; touch 1000 0-2047 from cpu0; set page_min_accesses = 255; begin pages",
       "set room_bytes = 400K; set speed_after_move = 0.05; until pages node0 = 400 within 40",
       "until pages node0 < 400 within 40; until pages node3 = 2048 within 40; rolled_back = 4")

/* Rejected pieces are requested again. */
SCRIPT(every_piece_is_moved,
       "space 1024 node3; touch 1000 0-1023 from cpu0; set page_min_accesses = 255; begin pages",
       "set room_bytes = 400K", "each 30: set mover_full = 0; run 1; set mover_full = 1; run 1",
       "pages node0 = 1024")

/* The owners rotate, and earlier accesses decay quickly: half-lives of ten seconds, less than 10 %
 * is left after 33 s. Pages that were accessed often by chance before count as exceptions. */
SCRIPT(a_range_follows_its_thread,
       "space 1024 node3; touch 1000 0-1023 from cpu0; set page_min_accesses = 255; begin pages",
       "run 60; pages node0 = 1024; set cpu 0 = 2; run 9; pages node1 = 0",
       "run 36; pages node1 >= 1000")

SCRIPT(local_ranges_stay,
       "space 1024 node1; touch 1000 0-1023 from cpu2; begin pages; run 30; submitted = 0")

/* Halves used by threads of two nodes are split, and each moves to its node. */
SCRIPT(halves_move_to_different_nodes,
       "space 2048 node3; touch 1000 0-1023 from cpu0; touch 1000 1024-2047 from cpu2",
       "begin pages; until pages node3 = 0 within 40",
       "pages node0 0-1023 = 1024; pages node1 1024-2047 = 1024")

/* As a controller does when part of its load is gone. */
SCRIPT(a_range_used_by_all_nodes_is_interleaved,
       "space 1024 node0; touch 1000 0-1023 from cpu0; touch 1000 0-1023 from cpu2",
       "touch 1000 0-1023 from cpu4; touch 1000 0-1023 from cpu6; begin pages",
       "set speed_after_move = 1.5; until pages node0 <= 256 within 30",
       "pages node0 = 256; pages node1 = 256; pages node2 = 256; pages node3 = 256",
       "journal decision REASON=contention NODE_TO=- EXCLUSIVITY_PERMILLE=-",
       "run 10; rolled_back = 0; mark; run 30; none decision KIND=pages")

/* A main thread initialized everything on node 0 for threads that use blocks in turn: they move at
 * once, and nothing is interleaved before. */
SCRIPT(blocks_move_to_their_threads,
       "space 2048 node0; touch 1000 0-511 from cpu0; touch 1000 512-1023 from cpu2",
       "touch 1000 1024-1535 from cpu4; touch 1000 1536-2047 from cpu6; begin pages",
       "set speed_after_move = 1.5; until pages node0 <= 512 within 30",
       "pages node0 = 512; pages node1 = 512; pages node2 = 512; pages node3 = 512",
       "journal decision REASON=region; none decision REASON=contention; run 30; rolled_back = 0")

static unsigned small_steps; /* that are no huge page */

static void move_huge(struct nm_page_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		small_steps += batch->steps[i].bytes != 2 << 20;
	move_in_model(batch);
}

WORD(count_small_steps)
{
	small_steps = 0;
	fake_mover.perform = move_huge;
}

QUANTITY(small_steps, small_steps)

/* Parts of huge pages never move, with pages or ranges. */
SCRIPT(huge_pages_move_as_wholes,
       "space 2048 node3; set huge = 1; touch 1000 0-2047 from cpu0; set page_min_accesses = 4",
       "begin pages; count_small_steps; set room_bytes = 4M; until pages node0 = 2048 within 30",
       "small_steps = 0; space 2048 node3; set huge = 1; set page_min_accesses = 255; begin pages",
       "count_small_steps; until pages node0 = 2048 within 30; small_steps = 0")

WORD(shift_by_pages)
{
	world.space.start += 4096 * U(0);
	fake_mover.ranges[0].start += 4096 * U(0);
	fake_mover.ranges[0].end += 4096 * U(0);
}

/* The ends of a heap are not aligned to huge pages. */
SCRIPT(the_ends_of_a_range_are_small_pages,
       "space 1624 node3; shift_by_pages 100; set huge = 1; touch 1000 0-1623 from cpu0",
       "set page_min_accesses = 255; begin pages; until pages node0 = 1624 within 30",
       "moved = 602") /* 412, 2 huge ones, 188 */

/* ---- rollback ---- */

/* How many pages of a range the daemon assumes to be on a node. */
static unsigned assumed_on(const struct step *step)
{
	const struct nm_page_process *process =
		nm_page_process_of(&world.daemon.pipeline.pages->processes, 1000);
	unsigned count = 0;
	assert_non_null(process);
	for (unsigned page = U(1); page <= U(2); page++) {
		struct nm_page_view view;
		const struct nm_page_id id = {.address = START + page * 4096ULL,
					      .owner = process->owner,
					      .size = NM_PAGE_4K};
		count += nm_memory_look(world.daemon.pipeline.memory, &id, &view) == 0 &&
			 view.page_node == (int)N(0);
	}
	return count;
}

QUANTITY(assumed, assumed_on(step))

SCRIPT(unhelpful_page_moves_are_rolled_back,
       "space 16 node2; put 8-15 node3; touch 1000 0-15 from cpu0; begin pages; run 3",
       "set speed_after_move = 0.05; until pages node0 = 16 within 20",
       "until pages node0 = 0 within 12; pages node2 0-7 = 8; pages node3 8-15 = 8",
       "assumed node2 0-7 = 8; assumed node3 8-15 = 8",
       "journal verdict VERDICT=rolled-back PERFORMANCE_LEFT<0.9",
       "journal decision UNDOES=$DECISION REASON=rollback NODE_FROM=0; run 5",
       "journal verdict DECISION=$DECISION REASON=rollback VERDICT=neutral",
       "migrations = 0; remembered = 0")

SCRIPT(a_rolled_back_range_stays,
       "space 1024 node2; touch 1000 0-1023 from cpu0; set page_min_accesses = 255; begin pages",
       "set speed_after_move = 0.05; until pages node0 = 1024 within 20",
       "until pages node2 = 1024 within 12; run 40; pages node2 = 1024; rolled_back = 1")

/* Beyond rollback_pages, of which a domain gets a share, the origins are not stored. */
SCRIPT(rollback_storage_is_bounded,
       "space 1024 node2; touch 1000 0-1023 from cpu0; set rollback_pages = 100; begin pages",
       "set speed_after_move = 0.05; until pages node0 = 1024 within 20; remembered = 50",
       "run 8; pages node2 = 50; forgotten = 974; journal verdict PAGES_FORGOTTEN=974",
       "remembered = 0")

SCRIPT(a_full_mover_is_asked_again_to_undo,
       "space 8 node2; touch 1000 0-7 from cpu0; begin pages; set speed_after_move = 0.05",
       "until pages node0 = 8 within 20; set mover_full = 1; run 8; pages node0 = 8",
       "rolled_back > 0; set mover_full = 0; run 2; pages node2 = 8")

/* ---- excluded processes ---- */

SCRIPT(a_released_process_is_left_alone,
       "space 8 node2; touch 1000 0-7 from cpu0; begin pages; set mover_asleep = 1; run 6",
       "batches > 0; release 1000; drops = 1; set mover_asleep = 0; run 12; pages node2 = 8",
       "none decision KIND=pages; none verdict DECISION_KIND=pages; migrations = 0",
       "page_processes = 0")

static uint64_t pages_seen(const struct step *step)
{
	const struct nm_page_process *process =
		nm_page_process_of(&world.daemon.pipeline.pages->processes, U(0));
	return process ? process->nr_seen : 0;
}

QUANTITY(pages_seen, pages_seen(step))
QUANTITY(page_processes, world.daemon.pipeline.pages->processes.count)
QUANTITY(batch_steps, fake_mover.waiting[0]->count)
QUANTITY(quiet_periods, NM_MEMORY_QUIET_PERIODS)

SCRIPT(a_new_program_has_other_pages,
       "space 8 node2; touch 1000 0-7 from cpu0; begin pages; run 2; pages_seen 1000 > 0",
       "exec 1000; run 2; drops > 0; pages_seen 1000 < 100")

static void a_dry_run(struct nm_page_batch *batch)
{
	batch->error = -EROFS;
}

ACTION(move_dry, fake_mover.perform = a_dry_run)

static double sum_of_pages(void)
{
	double total = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		if (has_field(&world.entries[i], "KIND", "pages"))
			total += number_of(&world.entries[i], "PAGES");
	return total;
}

QUANTITY(pages_decided, sum_of_pages())

SCRIPT(a_dry_run_logs_intended_moves,
       "space 4 node2; touch 1000 0-3 from cpu0; begin pages; set dry_run = 1; move_dry; run 9",
       "journal decision KIND=pages RESULT=dry-run; text Would migrate ",
       "entries verdict = 0; pages_decided = 4; pages node2 = 4")

SCRIPT(no_pages_move_while_moves_are_barred,
       "space 8 node2; touch 1000 0-7 from cpu0; set mover_barred = 1; begin pages; run 12",
       "submitted = 0; entries problem = 1")

RUN_TESTS()

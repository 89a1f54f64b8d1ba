/* SPDX-License-Identifier: MIT */
/* Memory of a process that is migrated as a whole. */
#define SET_UP open_large
#define TEAR_DOWN close_mover
#include "../support/test.h"

#include "mover_words.h"

/* Sets the line of numa_maps of the only mapping. */
static void set_numa_maps(const char *words)
{
	snprintf(mover_test->memory->numa_maps, FAKE_TEXT, "%" PRIx64 " %s kernelpagesize_kB=4\n",
		 FAKE_BASE, words);
}

/* As open_mover(), without a limit on bytes; the process is too large to be moved at once. */
static int open_large(void **state)
{
	int r = open_mover(state);

	mover_test->config->pages.max_mb_per_s = 1U << 20;
	set_numa_maps("default anon=9000 N0=9000");
	return r;
}

/* ---- words ---- */

/* bulk A: of the whole process, to node 1 */
WORD(bulk)
{
	struct nm_page_batch *batch = fake_batch(0);
	batch->bulk = true;
	batch->to = 1;
	named[letter_of(step)] = batch;
}

static struct nm_page_batch *batch_back(size_t nr_runs)
{
	struct nm_page_batch *batch = fake_batch(0);

	batch->rollback = true;
	batch->nr_back = nr_runs;
	batch->back = calloc(nr_runs + 1, sizeof(*batch->back));
	assert_non_null(batch->back);
	return batch;
}

/* back A page0 6 node2 node0: adds six pages that return to node 2, and are on node 0 now */
WORD(back)
{
	const unsigned letter = letter_of(step);
	if (!named[letter])
		named[letter] = batch_back(8);
	struct nm_page_batch *batch = named[letter];
	if (batch->nr_back == 8 && batch->back[0].pages == 0)
		batch->nr_back = 0;
	batch->back[batch->nr_back++] = (struct nm_base_pages){
		FAKE_BASE + (uint64_t)N(0) * FAKE_SMALL, U(1), (int16_t)N(2), (int16_t)N(3)};
}

KNOB(target, batch_of(step)->to)
QUANTITY(stayed, batch_of(step)->stayed_bytes / FAKE_SMALL)
QUANTITY(lost, batch_of(step)->base_pages_lost)
QUANTITY(finds, mover_test->memory->finds)
KNOB(found_most, mover_test->memory->found_most)
KNOB(maps_error, mover_test->memory->maps_error)
KNOB(min_free_kib, mover_test->memory->min_free_kib)
KNOB(swaps_from, mover_test->memory->swaps_from)

/* every 32 of 0 node2, or every 2 of 1 absent: pages whose number is 0 modulo 32 */
WORD(every)
{
	for (unsigned page = U(1); page < FAKE_PAGES; page += U(0))
		mover_test->memory->node[page] = step_has(step, "absent") ? -ENOENT : (int)N(2);
}

/* keep_out 0-511 EIO: the kernel does not move these pages; keep_out_every 5 of 0 EIO: as above */
WORD(keep_out)
{
	for (unsigned page = U(0); page <= U(1); page++)
		mover_test->memory->add_error[page] =
			(int)script_value(step, "error", step->word[1]);
}

WORD(keep_out_every)
{
	for (unsigned page = U(1); page < FAKE_PAGES; page += U(0))
		mover_test->memory->add_error[page] =
			(int)script_value(step, "error", step->word[3]);
}

WORD(all_busy)
{
	for (unsigned page = 0; page < FAKE_PAGES; page++)
		mover_test->memory->busy[page] = UINT32_MAX;
}

ACTION(all_huge, memset(mover_test->memory->whole, true, sizeof(mover_test->memory->whole)))
ACTION(numa_maps, set_numa_maps(step_rest(step)))

/* The migration of the process to node 1:
 *
 *	migrate moved 512 there 9 stayed 1 error ENOSPC of 512 calls 3 finds 1
 *
 * Values without a name are 0, except calls and searches, of which these are at most allowed, and
 * "of", the number of base pages of a page of a pool: 1. */
static int64_t named_number(const struct step *step, const char *word, int64_t otherwise)
{
	for (unsigned i = 0; i + 1 < step->count; i++)
		if (strcmp(step->word[i], word) == 0)
			return (int64_t)script_value(step, "number", step->word[i + 1]);
	return otherwise;
}

WORD(migrate)
{
	const struct memory *memory = mover_test->memory;
	const int64_t moved = named_number(step, "moved", 0), of = named_number(step, "of", 1);
	const unsigned calls = memory->calls, finds = memory->finds;
	unsigned there = 0;

	nm_mover_free(NM_TAKE(mover_test->mover));
	struct nm_page_batch *batch = fake_batch(0);
	batch->bulk = true;
	batch->to = 1;
	batch = run(mover_test, batch);
	const struct nm_mover_counts counts = nm_mover_counts(mover_test->mover);
	for (unsigned page = 0; page < FAKE_PAGES; page++)
		there += memory->node[page] == 1;
	const struct {
		const char *name;
		double found, expected;
	} values[] = {
		{"error", batch->error, (double)named_number(step, "error", 0)},
		{"pages there", there, (double)(moved + named_number(step, "there", 0))},
		{"moved", (double)batch->moved, (double)(moved / of)},
		{"bytes", (double)batch->bytes, (double)moved * FAKE_SMALL},
		{"stayed bytes", (double)batch->stayed_bytes,
		 (double)named_number(step, "stayed", 0) * FAKE_SMALL},
		{"counted", (double)counts.moved, (double)batch->moved},
		{"counted bytes", (double)counts.bytes, (double)batch->bytes},
		{"waiting", (double)counts.waiting, 0},
	};
	nm_page_batch_free(batch);
	for (size_t i = 0; i < NM_ARRAY_SIZE(values); i++)
		if (values[i].found != values[i].expected)
			script_fail(step, "%s: %.0f, not %.0f", values[i].name, values[i].found,
				    values[i].expected);
	if (memory->calls - calls > named_number(step, "calls", UINT32_MAX) ||
	    memory->finds - finds > named_number(step, "finds", UINT32_MAX))
		script_fail(step, "%u calls, %u searches", memory->calls - calls,
			    memory->finds - finds);
}

/* until_done A 500: in steps of 500 ms */
WORD(until_done)
{
	struct nm_page_batch *done = NULL;
	for (unsigned i = 0; i < 10000 && !done; i++) {
		fake_pass_ms(mover_test->memory, mover_test->mover, (uint64_t)N(0));
		done = fake_done(mover_test->mover);
	}
	if (done != batch_of(step))
		script_fail(step, "it is not done");
	in_mover[letter_of(step)] = false;
}

/* ---- what moves ---- */

/* One search, and one call, however scattered its pages are. */
SCRIPT(few_pages_need_few_calls,
       "put 0-8191 absent; every 32 of 0 node2; migrate moved 256 calls 1 finds 1")

SCRIPT(all_of_a_large_process_moves, "migrate moved 8192; calls > 1; largest >= 256")

SCRIPT(huge_pages_move_whole, "set whole 0 = 1; set whole 3 = 1; migrate moved 8192")

/* Some are there already, some were never touched, and other processes map some, too. */
SCRIPT(each_page_is_counted, "put 0-511 node1; put 512-1023 absent; keep_out 1536-2047 EACCES",
       "migrate moved 6656 there 512 stayed 512")

ACTION(beside, mover_test->topology->nodes[U(0)].nearest_with_cpus = (int)U(1))

/* A memory-only node beside the target is equally near. */
SCRIPT(memory_beside_the_target_stays,
       "beside node3 node1; put 0-8191 node2; every 2 of 1 node3; migrate moved 4096",
       "pages node3 = 4096")

/* Each page once, even if a search finds fewer pages than a call takes. */
SCRIPT(every_found_page_is_moved, "set found_most = 1000; migrate moved 8192 finds 9; finds >= 4")

/* ---- pages that return ---- */

/* Each page returns to its former node, in any order. */
TEST(pages_are_rolled_back_to_their_nodes)
{
	struct test *test = mover_test;
	struct nm_page_batch *batch_new = fake_batch(FAKE_PAGES), *returned_new = batch_back(0);
	unsigned pages = 0;

	for (size_t page = 0; page < FAKE_PAGES; page++) {
		test->memory->node[page] = page % 700 < 100 ? 2 : page % 700 == 100 ? 1 : 0;
		batch_new->steps[page].from = -1;
	}
	RUN(test, batch);
	for (size_t i = 0; i < batch->nr_base_pages; i++)
		pages += batch->base_pages[i].pages;
	assert_int_equal(pages, batch->moved);
	assert_int_equal(batch->base_pages_lost, 0);
	free(returned_new->back);
	returned_new->nr_back = batch->nr_base_pages;
	returned_new->back = NM_TAKE(batch->base_pages);
	RUN(test, returned);
	assert_int_equal(returned->error, 0);
	assert_int_equal(returned->moved, pages);
	for (size_t page = 0; page < FAKE_PAGES; page++)
		assert_int_equal(test->memory->node[page], page % 700 < 100    ? 2
							   : page % 700 == 100 ? 1
									       : 0);
}

/* The kernel or another decision moved it again. */
SCRIPT(a_page_that_moved_since_stays,
       "back A page0 6 node2 node0; put 4 node1; run A; error A = 0; moved A = 5",
       "pages node2 0-3 = 4; pages node1 4-4 = 1; pages node2 5-5 = 1")

/* A node that was removed from its cpuset gets no pages. */
SCRIPT(rollback_respects_the_cpuset,
       "back A page0 3 node7 node0; back A page3 2 node2 node0; run A; error A = 0; moved A = 2",
       "pages node2 = 2")

/* Eight pages, of which four are bound, and a mapping of two huge pages of a pool. */
WORD(map_pool)
{
	struct memory *memory = mover_test->memory;
	const uint64_t bound = FAKE_BASE + 4 * (uint64_t)FAKE_SMALL;
	const uint64_t pool = FAKE_BASE + FAKE_HUGE;

	snprintf(memory->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " rw-p 0 00:00 0\n%" PRIx64 "-%" PRIx64
		 " rw-p 0 00:00 0\n%" PRIx64 "-%" PRIx64 " rw-p 0 00:00 0\n",
		 FAKE_BASE, bound, bound, bound + 4 * FAKE_SMALL, pool, pool + 2 * FAKE_HUGE);
	snprintf(memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=4 N0=4 kernelpagesize_kB=4\n%" PRIx64
		 " bind:0 anon=4 N0=4 kernelpagesize_kB=4\n%" PRIx64
		 " default huge anon=2 N0=2 kernelpagesize_kB=2048\n",
		 FAKE_BASE, bound, pool);
}

/* Pages that are bound by now, or unmapped, stay; those of the pool return as wholes, and base
 * pages do not where the process has mapped huge pages since. */
SCRIPT(rollback_respects_the_mappings,
       "map_pool; set whole 1 = 1; set whole 2 = 1; set pool_pages 2 = 9",
       "back A page0 8 node2 node0; back A page100 3 node2 node0; back A page512 1024 node2 node0",
       "back A page513 3 node2 node0; back A page512 3 node2 node0; run A; error A = 0",
       "moved A = 6; pages node2 = 1028")

/* ---- pages that stay ---- */

/* Pages that are in use cost two calls per 1,024 pages at most, and end the batch: also on a
 * machine whose calls are slow. */
SCRIPT(busy_pages_are_tried_twice,
       "all_busy; migrate stayed 8192 calls 16; set page_ns = 200000; all_busy",
       "migrate stayed 8192 calls 16")

/* The kernel reports a reason for each page: these pages are tried once. */
SCRIPT(refused_pages_are_tried_once,
       "keep_out 0-8191 EIO; keep_out_every 5 of 1 EBUSY; keep_out_every 5 of 2 ENOMEM",
       "keep_out_every 5 of 3 EPERM; keep_out_every 5 of 4 EACCES; migrate stayed 8192 calls 16")

/* The process has unmapped them meanwhile. */
SCRIPT(vanished_pages_are_no_refusal,
       "keep_out 0-8191 EFAULT; keep_out_every 2 of 1 ENOENT; migrate stayed 0")

/* Pages that are local, or placed by their owner, are not even searched. */
SCRIPT(pages_that_may_not_move_are_not_searched,
       "numa_maps default anon=8192 N1=8192; migrate finds 0",
       "numa_maps bind:0 anon=8192 N0=8192; migrate finds 0")

/* A mapping of 4 GiB. */
WORD(map_sparse)
{
	snprintf(mover_test->memory->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0\n", FAKE_BASE,
		 FAKE_BASE + ((uint64_t)4 << 30));
}

/* SECURITY: sparse */
SCRIPT(a_sparse_mapping_is_not_searched, "map_sparse; migrate finds 0")

SCRIPT(a_migration_ends_with_its_process, "set where_error = ESRCH; migrate error ESRCH")

SCRIPT(there_is_no_such_node, "bulk A; set target A = 99; run A; error A = EPERM; finds = 0")

SCRIPT(a_target_is_a_node_from_the_first_on,
       "put 0-8191 node2; numa_maps default anon=9000 N2=9000; bulk A; set target A = -1; run A",
       "error A = EPERM; bulk B; set target B = 0; run B; error B = 0; pages node0 = 8192")

SCRIPT(the_node_is_outside_the_cpuset, "set barred_nodes = 2; migrate stayed 8192")

/* ---- room ---- */

#define SWAPS                                                                                      \
	"set min_free_kib = 4096; set swaps_from = 3; keep age = reclaim_age; set call_ns = age"
QUANTITY(reclaim_age, NM_RECLAIM_AGE_NS)

/* Programs are swapped out for node 1, which has page cache: migration stops between two calls. */
SCRIPT(nothing_moves_to_a_swapping_node, SWAPS,
       "set free_kib 1 = 2048; set idle_kib 1 = 1M; migrate error ENOSPC moved 3072 calls 3")

/* The node has free memory, so any swapping is elsewhere. */
SCRIPT(swapping_elsewhere_does_not_matter, SWAPS, "migrate moved 8192")

/* A pool that is used up is not expected to be refilled. */
SCRIPT(a_used_up_pool_is_a_refusal,
       "huge_maps; all_huge; set pool_pages 1 = 1; migrate moved 512 of 512 stayed 7680")

WORD(huge_maps)
{
	snprintf(mover_test->memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default huge anon=16 N0=16 kernelpagesize_kB=2048\n", FAKE_BASE);
}

/* Pages of which a block of 2 MiB has few are moved while there is room for them: whole blocks of 8
 * pages. */
SCRIPT(a_node_nearly_full_takes_what_fits,
       "put 0-8191 absent; every 64 of 0 node0; set keep_free_percent = 0; set free_kib 1 = 400",
       "migrate error ENOSPC moved 96")

/* The kernel moves a huge page with the first of its base pages, and the mappings show none. */
SCRIPT(huge_pages_need_room,
       "set keep_free_percent = 0; all_huge; set free_kib 1 = 4; migrate error ENOSPC",
       "set free_kib 1 = 400; migrate error ENOSPC; set free_kib 1 = 2044; migrate error ENOSPC",
       "set free_kib 1 = 2048; migrate error ENOSPC moved 512; put 0-8191 node0",
       "set free_kib 1 = 2400; migrate error ENOSPC moved 512; put 0-8191 node0",
       "set free_kib 1 = 4096; migrate error ENOSPC moved 1024")

/* ---- pages that other processes map, too ---- */

/* One page of the large mapping is mapped by another process, after fork(2) or by KSM. `words`
 * describe the large mapping, whose last 1 MiB is a mapping of its own. */
static void share_a_page(const char *mode, const char *words)
{
	struct memory *memory = mover_test->memory;
	const uint64_t split = FAKE_BASE + (FAKE_PAGES - 256) * (uint64_t)FAKE_SMALL;

	snprintf(memory->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " %s \n%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n",
		 FAKE_BASE, split, mode, split, FAKE_BASE + FAKE_PAGES * (uint64_t)FAKE_SMALL);
	snprintf(memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " %s\n%" PRIx64
		 " default anon=256 dirty=256 N0=256 kernelpagesize_kB=4\n",
		 FAKE_BASE, words, split);
	memory->add_error[17] = -EACCES;
}

#define SHARED_PAGE "default anon=7936 dirty=7936 mapmax=2 N0=7936 kernelpagesize_kB=4"
#define PRIVATE "rw-p 00000000 00:00 0"

ACTION(share_a_page, share_a_page(PRIVATE, SHARED_PAGE))
ACTION(share_a_file,
       share_a_page("r--p 00000000 fd:01 7 /model",
		    "default file=/model mapped=7936 mapmax=2 N0=7936 kernelpagesize_kB=4"))

/* All pages except the one that the kernel leaves out move, and are counted. */
SCRIPT(one_shared_page_stays_alone,
       "share_a_page; migrate moved 8191 stayed 1; pages node0 17-17 = 1")

/* 4 MiB are free on the node: the rest of a large file stays with its page that is shared. */
#define LITTLE_ROOM "set keep_free_percent = 0; set free_kib 1 = 4096"

SCRIPT(room_is_kept_beside_a_shared_page, LITTLE_ROOM,
       "share_a_page; migrate error ENOSPC moved 1023 stayed 1")

SCRIPT(room_is_kept_beside_a_shared_file, LITTLE_ROOM, "share_a_file; migrate moved 256")

/* The process has used more memory since its mappings were read, or they show a wrong amount. */
SCRIPT(room_is_kept_whatever_the_mappings_say, LITTLE_ROOM,
       "numa_maps default anon=1 N0=1; migrate moved 1024; put 0-8191 node0",
       "numa_maps default anon=1 N77=1; migrate moved 1024; put 0-8191 node0",
       "numa_maps default anon=1 mapmax=9 N0=1; migrate moved 1024; put 0-8191 node0",
       "numa_maps default anon=18446744073709551615 N0=1; migrate moved 1024")

/* pass_most A 100 820: 820 pages move at most in each 100 ms until it is done */
WORD(pass_most)
{
	struct nm_page_batch *done = NULL;
	while (!done) {
		const struct step node1 = {.number = {1}, .nr_numbers = 1};
		const unsigned before = count_pages(&node1);
		fake_pass_ms(mover_test->memory, mover_test->mover, (uint64_t)N(0));
		if (count_pages(&node1) - before > U(1))
			script_fail(step, "%u pages", count_pages(&node1) - before);
		done = fake_done(mover_test->mover);
	}
	in_mover[letter_of(step)] = false;
}

/* The rate allows the bytes of 0.1 s in one call: 410 pages are 1.6 MiB, and twice as many are
 * those of 0.2 s. */
SCRIPT(no_call_exceeds_the_rate,
       "set max_mb_per_s = 16; share_a_page; bulk A; submit A; pass_most A 100 820",
       "largest <= 410; moved A = 8191")

/* ---- memory beside it ---- */

/* stay rw-s default file=/x: so are 20 pages behind the first 100; without words they are not
 * described */
WORD(stay)
{
	struct memory *memory = mover_test->memory;
	const uint64_t middle = FAKE_BASE + 100 * FAKE_SMALL;
	const bool described = step->count > 1;
	memset(memory->node, 0, sizeof(memory->node));
	snprintf(memory->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n%" PRIx64 "-%" PRIx64
		 " %s 00000000 00:00 0 \n"
		 "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0\n",
		 FAKE_BASE, middle, middle, FAKE_BASE + 120 * FAKE_SMALL, step->word[0]);
	snprintf(memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=100 N0=100 kernelpagesize_kB=4\n%" PRIx64
		 " %s kernelpagesize_kB=4\n",
		 FAKE_BASE, described ? middle : middle + FAKE_SMALL,
		 described ? strstr(step->text, step->word[1]) : "default");
}

/* Merged or split meanwhile, bound, shared, and from an empty pool: these were to move. */
SCRIPT(memory_that_stays_does_not_hold_the_rest, "stay rw-p; migrate moved 100",
       "stay rw-p bind:0 anon=20 N0=20; migrate moved 100",
       "stay rw-s default file=/x dirty=20 N0=20; migrate moved 100",
       "stay rw-p default huge anon=20 N0=20; migrate moved 100 stayed 20")

WORD(bind_more)
{
	char *numa_maps = mover_test->memory->numa_maps;
	snprintf(numa_maps + strlen(numa_maps), FAKE_TEXT / 2,
		 "%" PRIx64 " bind:0 anon=9 N0=9 kernelpagesize_kB=4\n",
		 FAKE_BASE + 2 * FAKE_PAGES * FAKE_SMALL);
}

SCRIPT(a_mapping_that_was_bound_meanwhile_is_left_out, "bind_more; migrate moved 8192")

/* ---- turns ---- */

/* Other processes do not wait until a large one is done. */
SCRIPT(processes_take_turns,
       "set max_mb_per_s = 16; bulk A; submit A; hold; batch B 1; submit B; release; collect B",
       "pages node1 < 8192; until_done A 500; pages node1 = 8192")

/* It waits in the mover for its mappings, which take several turns. */
SCRIPT(a_batch_waits_for_its_mappings, "set maps_error = EAGAIN; bulk A; submit A",
       "each 20: pass_ms 100; done nothing",
       "set maps_error = 0; until_done A 500; error A = 0; moved A = 8192")

/* No page of a rollback is left out when its worker is still busy after a round. */
SCRIPT(a_rollback_waits_for_its_worker,
       "back A page0 6 node2 node0; set where_error = EINPROGRESS; submit A",
       "each 20: pass_ms 100",
       "set where_error = 0; until_done A 500; error A = 0; moved A = 6; pages node2 = 6")

/* Its worker is still busy after a round: other batches continue, and this one does when the worker
 * is done. Process 43 does not exist. */
/* SECURITY: held-lock */
SCRIPT(others_go_on_while_a_worker_is_at_work, "set where_error = EINPROGRESS; bulk A; submit A",
       "each 20: pass_ms 100; done nothing",
       "bulk B; set pid B = 43; submit B; collect B; error B = ESRCH; set where_error = 0",
       "until_done A 500; error A = 0")

QUANTITY(now_ns, mover_test->fake->now_ns)

/* A turn of reading, which is longer than pages.maps_budget_ms, is followed by a pause of the same
 * length, for any number of turns. */
SCRIPT(long_mappings_take_twice_their_time,
       "set read_ns = 20e6; keep begun = now_ns; bulk A; submit A; until_done A 1; moved A = 8192",
       "reads >= 4; keep n = reads; keep most = n*45e6; now_ns <= begun+most")

SCRIPT(a_waiting_batch_is_dropped,
       "set maps_error = EAGAIN; bulk A; submit A; drop bulk; collect A; error A = ECANCELED")

RUN_TESTS()

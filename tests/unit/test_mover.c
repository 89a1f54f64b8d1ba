/* SPDX-License-Identifier: MIT */
/* The fates of pages: moved, left, refused, failed; and huge pages. */
#define SET_UP open_mover
#define TEAR_DOWN close_mover
#include "../support/test.h"

#include "mover_words.h"

/* ---- moved or left ---- */

SCRIPT(test_moves, "batch A 1000; run A; error A = 0; fates A moved 1000; pages node1 = 1000",
       "pages node1 0-999 = 1000; moved A = 1000; found_on A 999 = 0; all_moved = 1000",
       "bytes = 4096000; keep n = calls; all_calls = n; batch_calls A = n; map_reads = 1",
       "waiting = 0; done nothing")

/* Node numbers of the kernel have gaps, indices have none. */
SCRIPT(test_sparse_nodes,
       "batch A 4; set os_id 1 = 3; set os_id 3 = 1; put 3 node1; from A 3 node3; run A",
       "fates A moved 4; pages node3 0-3 = 4; found_on A 3 = 3")

/* 0 was sampled on another node, 1 is there already, as is 2, and 3 moves from any node. */
SCRIPT(test_pages_found_elsewhere,
       "batch A 5; put 0 node2; put 1-2 node1; put 3 node2; from A 2-3 -1; run A",
       "fates A elsewhere 3 moved 2; found_on A 0 = 2; found_on A 2 = 1; found_on A 3 = 2",
       "pages node2 0-0 = 1")

/* ---- the process ---- */

SCRIPT(test_other_process,
       "batch A 3; set ticks A = 778; run A; error A = ESRCH; fates A untried 3; calls = 0")

SCRIPT(test_process_gone, "batch A 3; kill; run A; error A = ESRCH; fates A untried 3")

/* No page of the waiting call or of later ones is moved. */
#define NONE_MOVES "release; collect A; error A = ESRCH; fates A untried 400"

SCRIPT(test_process_ends_midway, "batch A 400; submit A; hold; kill; " NONE_MOVES)

/* At the same time, so that no check is due: the call itself detects it. */
SCRIPT(test_number_is_anothers_midway,
       "batch A 400; submit A; hold; set process_ticks = 778; " NONE_MOVES)

/* Its first thread has exited before the others: its number has no memory any more. */
SCRIPT(test_first_thread_gone, "batch A 3; leave_thread 43; run A; error A = 0; fates A moved 3")

/* EINVAL: the process is exiting, and has no memory any more. */
SCRIPT(test_call_refused,
       "batch A 2; set call_error = EPERM; run A; error A = EPERM; fates A untried 2",
       "batch A 2; set call_error = EROFS; run A; error A = EROFS; fates A untried 2",
       "batch A 2; set call_error = ENOSYS; run A; error A = ENOSYS; fates A untried 2",
       "batch A 2; set call_error = EINVAL; run A; error A = ESRCH; fates A untried 2",
       "batch A 2; set where_error = EACCES; run A; error A = EPERM")

/* ---- errors of the kernel ---- */

SCRIPT(test_errors_of_pages, "batch A 100; set page_error 3 = EBUSY; set page_error 10 = ENOENT",
       "set page_error 11 = EACCES; set page_error 40 = ENOMEM; set page_error 41 = EFAULT; run A",
       "fates A moved 3 failed 1 moved 6 failed 2 moved 28 failed 2 moved 58; error A = 0",
       "step_error A 3 = EBUSY; step_error A 10 = ENOENT; step_error A 11 = EACCES",
       "step_error A 40 = ENOMEM; step_error A 41 = EFAULT; step_error A 42 = 0")

SCRIPT(test_absent_pages_are_not_asked_for,
       "batch A 20; put 0-19 absent; run A; fates A failed 20; calls = 0")

/* The kernel does not report the status of pages in the group of a stuck page, which the error of
 * another page ends, and does not try later ones. */
SCRIPT(test_stuck_page_is_retried,
       "batch A 16; set busy 5 = 1000; set page_error 9 = EACCES; run A",
       "fates A moved 5 failed 1 moved 3 failed 1 moved 6; step_error A 5 = EBUSY",
       "step_error A 9 = EACCES; calls = 2")

/* After a slow call there is a pause instead of a second attempt. */
SCRIPT(test_stuck_page_and_slow_call,
       "batch A 8; set busy 5 = 1; set call_ns = 11e6; run A; fates A moved 5 failed 1 moved 2",
       "calls = 1")

/* Until the first call has been made. */
ACTION(work_until_called, while (mover_test->memory->calls == 0) nm_mover_work(mover_test->mover))

/* Calls for the first batch are slow, for example because its process holds the lock of its memory:
 * the batch of another domain does not wait for it, and the first one is continued later. */
/* SECURITY: slow-calls */
SCRIPT(test_a_slow_domain_does_not_delay_others,
       "batch A 400; submit A; hold; batch B 8; skip B 400; set domain A = 1; set domain B = 2",
       "submit B; set call_ns = 11e6; release; work_until_called; set call_ns = 0; collect B",
       "fates B moved 8; done nothing; pass_ms 10000; done A; fates A moved 400; moved A = 400")

/* SECURITY: quota */
SCRIPT(test_a_domain_with_many_batches_does_not_delay_others,
       "batch A 8; batch B 8; batch C 8; batch D 8; batch E 8; batch F 8; skip B 8; skip C 16",
       "skip D 24; skip E 32; skip F 40; set domain A = 1; set domain B = 1; set domain C = 1",
       "set domain D = 1; set domain E = 1; set domain F = 2",
       "submit A; submit B; submit C; submit D; submit E; submit F",
       "collect A; fates A moved 8; collect F; fates F moved 8; collect B; fates B moved 8",
       "collect C; fates C moved 8; collect D; fates D moved 8; collect E; fates E moved 8")

SCRIPT(test_node_refuses,
       "batch A 8; set call_error = ENOMEM; run A; error A = 0; fates A failed 8; calls = 1")

/* ---- pages that must not move ---- */

/* One mapping of 16 pages each, contiguous; a batch of the first page of each, and of one in no
 * mapping. */
WORD(kinds)
{
#define ANONYMOUS "rw-p 00000000 00:00 0 "
	static const char *const rows[][2] = {
		{ANONYMOUS, "default anon=3 N0=3 kernelpagesize_kB=4"},
		{ANONYMOUS, "local anon=3 N0=3 kernelpagesize_kB=4"},
		{ANONYMOUS, "bind:0 anon=3 N0=3 kernelpagesize_kB=4"},
		{ANONYMOUS, "prefer (many):0-1 anon=3 N0=3 kernelpagesize_kB=4"},
		{ANONYMOUS, "prefer=static:1 anon=3 N0=3 kernelpagesize_kB=4"},
		{ANONYMOUS, "weighted interleave:0-3 anon=3 N0=3 kernelpagesize_kB=4"},
		{ANONYMOUS, "strange:0-3 anon=3 N0=3 kernelpagesize_kB=4"},
		{ANONYMOUS, "default anon=3 mapmax=2 N0=3 kernelpagesize_kB=4"},
		{"rw-s 00000000 00:01 77 /dev/zero (deleted)",
		 "default file=/dev/zero\\040(deleted) dirty=3 N0=3 kernelpagesize_kB=4"},
		{"r--p 00000000 fd:01 78 /usr/lib/x.so",
		 "default file=/usr/lib/x.so mapped=3 N0=3 kernelpagesize_kB=4"},
		{ANONYMOUS, NULL}};
	struct memory *memory = mover_test->memory;
	size_t maps = 0, numa_maps = 0;
	word_batch(step);
	for (size_t i = 0; i < batch_of(step)->count; i++)
		batch_of(step)->steps[i].address = FAKE_BASE + i * 16 * FAKE_SMALL;
	for (size_t i = 0; i < NM_ARRAY_SIZE(rows); i++) {
		uint64_t begin = FAKE_BASE + i * 16 * FAKE_SMALL;
		maps += (size_t)snprintf(memory->maps + maps, FAKE_TEXT - maps,
					 "%" PRIx64 "-%" PRIx64 " %s\n", begin,
					 begin + 16 * FAKE_SMALL, rows[i][0]);
		if (rows[i][1])
			numa_maps += (size_t)snprintf(memory->numa_maps + numa_maps,
						      FAKE_TEXT - numa_maps, "%" PRIx64 " %s\n",
						      begin, rows[i][1]);
	}
}

#define BY_DEFAULT "moved 2 refused 5 moved 1 refused 4"

SCRIPT(test_owners_policy, "kinds A 12; run A; fates A " BY_DEFAULT)

SCRIPT(test_owners_policy_set_aside,
       "kinds A 12; set also = bound; run A; fates A moved 8 refused 4")

SCRIPT(test_shared_allowed,
       "kinds A 12; set also = shared; run A; fates A moved 2 refused 5 moved 3 refused 2")

/* A reload changes the rules for later batches. Pages that the first one moved return. */
SCRIPT(test_reload_rules,
       "kinds A 12; run A; fates A " BY_DEFAULT "; set also = bound; configure; kinds B 12",
       "from B 0-1 node1; to B 0-1 node0; from B 7 node1; to B 7 node0; run B",
       "fates B moved 8 refused 4")

SCRIPT(test_cpuset, "batch A 4; set barred_nodes = 2; to A 1 node2; to A 2 9; to A 3 -1; run A",
       "fates A failed 1 moved 1 refused 2; step_error A 0 = EACCES")

/* ---- free memory ---- */

/* Ten pages in all above 25 %. */
SCRIPT(test_node_nearly_full,
       "batch A 20; set keep_free_percent = 25; set free_kib 1 = 262164; set idle_kib 1 = 20",
       "run A; fates A moved 10 refused 10")

SCRIPT(test_no_free_huge_page,
       "batch A 3; huge A 0-2; set whole 0 = 1; set whole 1 = 1; set whole 2 = 1",
       "set huge_blocks 1 = 2; run A; fates A moved 2 refused 1; pages node1 0-1023 = 1024",
       "pages node0 1024-1535 = 512")

WORD(map_pool)
{
	struct memory *memory = mover_test->memory;
	snprintf(memory->maps, FAKE_TEXT,
		 "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:0f 99 /anon_hugepage (deleted)\n",
		 FAKE_BASE, FAKE_BASE + 8 * (uint64_t)FAKE_HUGE);
	snprintf(memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default file=/anon_hugepage\\040(deleted) huge anon=8 dirty=8 N0=8 "
		 "kernelpagesize_kB=2048\n",
		 FAKE_BASE);
}

/* The last step is a part of one. None is on the source node of the pages of the pool. */
SCRIPT(test_pool_of_huge_pages,
       "map_pool; batch A 4; huge A 0-3; set step_bytes A 3 = 4096; set whole 0 = 1",
       "set whole 1 = 1; set whole 2 = 1; set pool_pages 1 = 2; set huge_blocks 1 = 0; run A",
       "fates A moved 2 refused 2; bytes = 4M")

/* ---- huge pages ---- */

SCRIPT(test_wrong_shapes,
       "batch A 4; keep a = address A 0; set address A 0 = a+8; set step_bytes A 1 = 65536",
       "set step_bytes A 2 = 0; huge A 3-3; keep a = address A 3; set address A 3 = a+4096; run A",
       "fates A refused 4")

SCRIPT(test_splits, "batch A 2; set splits = 100; start; set splits = 107; run A; error A = 0",
       "splits_seen = 7")

RUN_TESTS()

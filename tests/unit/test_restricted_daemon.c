/* SPDX-License-Identifier: MIT */
/* Policy "auto" through every stage of the daemon: processes whose threads, CPUs or memory are
 * restricted. */
#define SET_UP open_restricted
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_words.h"

static struct {
	int error;	      /* of each batch to a node other than 1 */
	bool each_page_stays; /* instead of an error of the whole batch */
	unsigned moves_away;
	const char *status; /* further lines of that of process 1000 */
} restricted;

/* Threads show where they run, but no accesses. */
static int open_restricted(void **state)
{
	int r = open_words(state);
	memset(&restricted, 0, sizeof(restricted));
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	world.cached = true;
	return r;
}

/* pinned 1000 cpu2 node1 to 0-1 4-5: a thread that may use these CPUs */
WORD(pinned)
{
	uint64_t cpus = 0;
	for (unsigned i = 3; i + 1 < step->nr_numbers; i += 2)
		cpus |= fake_cpus(U(i), U(i + 1));
	fake_pin(world.fake, add_worker(U(0), (int)N(1), U(2))->tid, cpus);
}

/* ---- threads that stay ---- */

/* A thread of a process of 24 MiB on node 3. */
#define SIZED "thread 1000 cpu6 node1; set rss_kb 1000 = 24K; "

/* Two of its threads are bound by their owner to CPUs 2 and 3, as those of a virtual machine, and a
 * free one is on node 3. */
#define PARTLY_PINNED                                                                              \
	SIZED "pinned 1000 cpu2 node1 to 2-2; pinned 1000 cpu3 node1 to 3-3; begin auto; run 30s"
#define NO_MEMORY_LEAVES                                                                           \
	"stays 1000 node1 = 1; submitted = 0; migration 1000 != done; demand 1000 > 2.5; "         \
	"ran_on 1000 node1 > 1.5; affinity 1002 = 4; affinity 1003 = 8"

SCRIPT(pinned_threads_keep_their_memory, "map node1 6144; " PARTLY_PINNED, NO_MEMORY_LEAVES)
SCRIPT(pinned_threads_keep_unlocated_memory, PARTLY_PINNED, NO_MEMORY_LEAVES)

ACTION(real_time, fake_get(world.fake, U(0))->policy = SCHED_FIFO)

/* Real-time threads are excluded by a rule, and are not moved. */
SCRIPT(excluded_threads_keep_their_memory,
       SIZED "thread 1000 cpu2 node1; thread 1000 cpu3 node1; real_time 1002; real_time 1003",
       "begin auto; map node1 6144; run 30s; stays 1000 node1 = 1; submitted = 0",
       "demand 1000 > 2.5")

/* A process all of whose threads are pinned is not managed. */
SCRIPT(a_pinned_process_is_left_alone,
       "pinned 1000 cpu2 node1 to 2-2; pinned 1000 cpu3 node1 to 3-3; begin auto; run 10s",
       "known 1000 = 0")

ACTION(exit, fake_exit(world.fake, U(0)))

/* Two threads on nodes 1 and 3, with their memory on node 1: a process without its first one. */
SCRIPT(a_home_outlives_the_first_thread,
       "thread 1000 cpu3 node1; thread 1000 cpu6 node1; set rss_kb 1000 = 24K",
       "set rss_kb 1002 = 24K; map node1 6144; begin auto; run 20s; node 1 = 1; home 1000 = 1",
       "keep before = decision 1000; exit 1000; set rss_kb 1000 = 0; run 40s; home 1000 = 1",
       "decision 1000 = before; node 1 = 1")

/* ---- CPUs that a process may use ---- */

/* As beside the exclusive CPUs of other containers: one CPU of node 0 and both of node 2. */
SCRIPT(two_threads_do_not_share_a_cpu,
       "pinned 1000 cpu0 node0 to 0-0 4-5; pinned 1000 cpu4 node0 to 0-0 4-5; map node0 16384",
       "begin auto", "each 40: run 1s; shared_cpus = 0",
       "stays 1000 node2 = 1; room 1000 node0 = 1; room 1000 node2 = 2")

/* Each thread may use two CPUs of a node of two, but both the same one of node 0. */
SCRIPT(different_affinities_share_cpus,
       "pinned 1000 cpu0 node0 to 0-0 4-5; pinned 1000 cpu4 node0 to 0-0 4-5",
       "pinned 1000 cpu1 node0 to 1-1 4-7; begin auto", "each 20: run 1s; shared_cpus = 0",
       "room 1000 node0 < 2.1")

WORD(isolate)
{
	hwloc_bitmap_clr(world.daemon.pipeline.topology->usable, U(0));
	world.daemon.pipeline.topology->cpus[U(0)].isolated = true;
}

/* Two threads with their memory on node 2, one CPU of which is isolated. */
SCRIPT(an_isolated_cpu_is_no_room,
       "isolate cpu5; pinned 1000 cpu0 node2 to 0-4 6-7; pinned 1000 cpu4 node2 to 0-4 6-7",
       "map node2 16384; begin auto", "each 40: run 1s; shared_cpus = 0", "home 1000 != 2")

/* Threads are held on their nodes while CPUs are idle. These have more threads than CPUs that they
 * may use, on a machine with idle ones. */
SCRIPT(a_full_cpuset_holds_no_threads,
       "pinned 1000 cpu0 node0 to 0-1 4-5; pinned 1000 cpu1 node0 to 0-1 4-5",
       "pinned 1000 cpu4 node0 to 0-1 4-5; pinned 1000 cpu5 node0 to 0-1 4-5",
       "pinned 1000 cpu5 node0 to 0-1 4-5; begin auto", "each 20: run 1s; assignments = 0",
       "reason 1000 = larger")

/* ---- memory that cannot follow ---- */

static void end_with_error(struct nm_page_batch *batch)
{
	if (batch->to == 1)
		return;
	restricted.moves_away++;
	batch->error = restricted.error;
	batch->stayed_bytes = restricted.each_page_stays ? UINT64_C(24) << 20 : 0;
	/* so that no later query shows it */
	fake_asked.hangs = fake_asked.hangs || restricted.each_page_stays;
}

ACTION(refuse_moves, fake_mover.perform = end_with_error)
KNOB(move_error, restricted.error)
KNOB(each_page_stays, restricted.each_page_stays)
QUANTITY(moves_away, restricted.moves_away)
QUANTITY(pinned_share, state_of(step)->input.pinned_share)

/* One busy thread on node 3, with its memory on node 1, whose CPUs are busy. */
#define AWAY                                                                                       \
	SIZED "pinned 2200 cpu2 node1 to 2-2; pinned 2300 cpu3 node1 to 3-3; map node1 6144; "     \
	      "refuse_moves; begin auto; "
#define LEARNT_AFTER(tries)                                                                        \
	"run 50s; moves_away = " tries "; memory_stays 1000 = 1; stays 1000 node1 = 1"

SCRIPT(a_refusal_by_the_cpuset_is_learnt, "set move_error = EPERM; " AWAY LEARNT_AFTER("1"))
SCRIPT(other_refusals_are_learnt, "set move_error = EFBIG; " AWAY LEARNT_AFTER("1"))
SCRIPT(unexpected_refusals_are_learnt, "set move_error = EINVAL; " AWAY LEARNT_AFTER("1"))
/* By the limit of its cgroup, for example. */
SCRIPT(a_lack_of_memory_in_the_kernel_is_learnt, "set move_error = ENOMEM; " AWAY LEARNT_AFTER("1"))
/* A worker that is killed, or does not answer, is no refusal, unless it happens again. */
SCRIPT(repeated_failures_are_learnt, "set move_error = ETIMEDOUT; " AWAY LEARNT_AFTER("2"))
/* As that of a thread that is exiting, of a process that continues. */
SCRIPT(repeated_failures_of_a_thread_are_learnt, "set move_error = ESRCH; " AWAY LEARNT_AFTER("2"))
/* The kernel gave a reason for each page: busy, pinned, or an error of the device. */
SCRIPT(refusals_of_all_pages_are_learnt, "set each_page_stays = 1; " AWAY LEARNT_AFTER("1"))

/* The process is too large, which is known before anything is tried. */
SCRIPT(memory_beyond_the_limit_is_not_tried,
       "set move_error = EPERM; " AWAY "set max_gb_of_process = 1; set rss_kb 1000 = 2M; run 50s",
       "moves_away = 0; held_share 1000 = 1")

/* Its domain has stuck workers: nothing was tried. */
SCRIPT(waiting_for_a_worker_is_no_refusal,
       "set move_error = EALREADY; " AWAY "run 50s; moves_away > 2; memory_stays 1000 = 0")

static ssize_t read_restricted_status(struct nm_platform *platform, int directory, const char *path,
				      char *buffer, size_t size)
{
	ssize_t length = read_with_load(platform, directory, path, buffer, size);
	if (length > 0 && strcmp(path, "status") == 0 && strstr(buffer, "Tgid:\t1000\n"))
		length += snprintf(buffer + length, size - (size_t)length, "%s", restricted.status);
	return length;
}

WORD(status_of_1000)
{
	restricted.status = step_has(step, "confined")
				    ? "Mems_allowed:\t2\nMems_allowed_list:\t1\n"
			    : step_has(step, "pinned") ? "VmPin:\t 4194304 kB\n"
							: "VmLck:\t 4194304 kB\n";
	world.ops.read_file = read_restricted_status;
}

/* It is known before a home is chosen. */
#define NOTHING_IS_TRIED                                                                           \
	"set move_error = EPERM; " AWAY "run 40s; moves_away = 0; stays 1000 node1 = 1; "          \
	"none decision NODE_TO=3"

SCRIPT(confined_memory_is_known_before_the_choice, "status_of_1000 confined; " NOTHING_IS_TRIED)
/* Its location is not known, but it cannot be where the threads run. */
SCRIPT(confined_memory_is_where_it_may_be,
       "set asked_hangs = 1; status_of_1000 confined; " NOTHING_IS_TRIED)
SCRIPT(pinned_memory_is_known_before_the_choice, "status_of_1000 pinned; " NOTHING_IS_TRIED)
SCRIPT(locked_memory_is_known_before_the_choice, "status_of_1000 locked; " NOTHING_IS_TRIED)

RUN_TESTS()

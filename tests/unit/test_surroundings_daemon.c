/* SPDX-License-Identifier: MIT */
/* Policy "auto" through every stage of the daemon, beside what it cannot change: memory that stays
 * where it is, programs of idle priority, CPUs that come and go. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_words.h"

/* ---- memory that stays ---- */

ACTION(pinned_thread, fake_pin(world.fake, add_worker(U(0), (int)N(1), 1)->tid, fake_cpus(2, 3)))

/* A process of two threads on nodes 0 and 2 with 4 GiB that stay on node 1 and 4 MiB of its own
 * there, while other programs fill node 1. */
#define BESIDE_STAYING                                                                             \
	"asked 512 node1; space 1024 node1; touch 1000 0-1023 from cpu0; "                         \
	"touch 1000 0-1023 from cpu4; set rss_kb 1000 = 4198400; set shared_kb 1000 = 4M; "        \
	"pinned_thread 2200 cpu2; pinned_thread 2300 cpu3; begin auto; "
/* The kernel does not count these pages as resident. */
#define BESIDE_HUGE                                                                                \
	BESIDE_STAYING                                                                             \
	"set rss_kb 1000 = 4096; set shared_kb 1000 = 0; set hugetlb_kb 1000 = 4M; "
#define PRIVATE "map 7fff00000000 default anon=1024 dirty=1024 N1=1024 kernelpagesize_kB=4; "
#define MEMFD                                                                                      \
	"map 7f0000000000 default file=/memfd:pc.ram\\040(deleted) dirty=1048576 mapmax=2 "        \
	"N1=1048576 kernelpagesize_kB=4; " PRIVATE

static bool is_taken_away(void)
{
	const struct nm_entry *placed = find_entry(0, NM_MESSAGE_DECISION, "PID", "1000");
	return placed && strcmp(field_of(placed, "NODE_TO"), "1") != 0;
}

/* 1 if the first home of process 1000 was not node 1. */
QUANTITY(taken_away, is_taken_away())

#define NOT_TAKEN_AWAY "run 60s; stays 1000 node1 = 1; taken_away = 0"

SCRIPT(a_virtual_machine_stays_near_its_memfd, MEMFD BESIDE_STAYING NOT_TAKEN_AWAY)

/* Accesses are not sampled, so that only the kernel shows where its memory is. */
SCRIPT(without_samples_it_stays_near_its_memfd,
       "set samples_from = faults; set cached = 1; " MEMFD BESIDE_STAYING NOT_TAKEN_AWAY)

/* Its own memory is small; no other program maps the file, which it only reads. */
SCRIPT(a_program_stays_near_its_large_file,
       "map 7f0000000000 default file=/model.gguf mapped=1048576 N1=1048576 kernelpagesize_kB=4",
       PRIVATE BESIDE_STAYING NOT_TAKEN_AWAY)

SCRIPT(a_virtual_machine_stays_near_its_huge_pages,
       "map 7f0000000000 default file=/dev/hugepages/qemu huge dirty=2048 N1=2048 "
       "kernelpagesize_kB=2048; " PRIVATE BESIDE_HUGE NOT_TAKEN_AWAY)

SCRIPT(a_virtual_machine_stays_near_its_huge_memfd,
       "map 7f0000000000 default file=/memfd:pc.ram\\040(deleted) huge dirty=4 N1=4 "
       "kernelpagesize_kB=1048576; " PRIVATE BESIDE_HUGE NOT_TAKEN_AWAY)

/* Its own memory is too large for the kernel to count it. */
SCRIPT(a_database_stays_near_its_buffers,
       BESIDE_STAYING "set rss_kb 1000 = 4456448; " NOT_TAKEN_AWAY)

ACTION(allow_shared, world.daemon.config->pages.also = NM_ALSO_SHARED)
QUANTITY(has_staying, state_of(step)->has_staying)
QUANTITY(located_on, state_of(step)->located_on[U(1)])
QUANTITY(is_located, state_of(step)->located)

/* With pages.also, it follows like all other memory. */
SCRIPT(shared_memory_that_may_move_does_not_stay,
       "allow_shared; " MEMFD BESIDE_STAYING "run 10s; has_staying 1000 = 0")

#define TWO_ON_0_AND_2 "space 1024 node2; touch 1000 0-1023 from cpu0; touch 1000 0-1023 from cpu5"

/* Programs and libraries are not data: their pages do not hold a program near them. */
SCRIPT(libraries_hold_no_program, TWO_ON_0_AND_2 "; set rss_kb 1000 = 53248",
       "set shared_kb 1000 = 0; map 400000 default file=/usr/lib/libLLVM.so mapped=8192 mapmax=40 "
       "N0=8192 kernelpagesize_kB=4; map node2 1024; begin auto; run 20s; home 1000 = 2",
       "located_on 1000 node0 = 0")

/* ---- counts with an error ---- */

/* Per-CPU counters that the kernel has not added up. */
SCRIPT(a_size_of_0_is_not_small,
       TWO_ON_0_AND_2 "; set rss_kb 1000 = 0; begin auto; run 10s; known 1000 = 1")

/* The error is 8 times 32 pages, and the least size 4 MiB. */
SCRIPT(a_size_within_the_error_is_not_small,
       TWO_ON_0_AND_2 "; set rss_kb 1000 = 3076; begin auto; run 10s; known 1000 = 1")

SCRIPT(a_smaller_size_is_small,
       TWO_ON_0_AND_2 "; set rss_kb 1000 = 3068; begin auto; run 10s; known 1000 = 0")

/* The difference of the two counters of statm is 0. The kernel counts the pages itself. */
SCRIPT(anonymous_memory_of_0_is_located, TWO_ON_0_AND_2,
       "set rss_kb 1000 = 8192; set shared_kb 1000 = 8192; map node2 1024",
       "set samples_from = faults; set cached = 1; begin auto; run 10s; is_located 1000 = 1",
       "located_on 1000 node2 = 1; home_bytes 1000 = 4M")

/* ---- programs that leave the CPUs to others ---- */

/* A program on each CPU, each of which is made so. */
WORD(others)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct fake_thread *thread = fake_get(
			world.fake,
			add_worker(2000 + 100 * (uint32_t)cpu, cpu, (unsigned)cpu / 2)->tid);
		if (step_has(step, "idle"))
			thread->policy = SCHED_IDLE;
		else if (step_has(step, "grouped"))
			snprintf(thread->cgroup, sizeof(thread->cgroup), "/batch/job");
		else
			thread->nice = (int)N(0);
	}
}

WORD(weight)
{
	struct fake_limit *limit = &world.fake->limits[world.fake->nr_limits++];
	*limit = (struct fake_limit){.path = "/batch"};
	snprintf(limit->weight, sizeof(limit->weight), "%u", U(0));
}

#define ROOM_BESIDE                                                                                \
	"begin auto; run 30s; home 1000 = 2; home 2000 = none; reason 2000 = yields; "             \
	"home 2100 = none; reason 2100 = yields; home 2200 = none; reason 2200 = yields; "         \
	"home 2300 = none; reason 2300 = yields; home 2400 = none; reason 2400 = yields; "         \
	"home 2500 = none; reason 2500 = yields; home 2600 = none; reason 2600 = yields; "         \
	"home 2700 = none; reason 2700 = yields"

SCRIPT(idle_programs_take_no_room, TWO_ON_0_AND_2 "; others idle; " ROOM_BESIDE)
SCRIPT(the_nicest_programs_take_no_room, TWO_ON_0_AND_2 "; others nice 19; " ROOM_BESIDE)
SCRIPT(idle_cgroups_take_no_room, TWO_ON_0_AND_2 "; weight 0; others grouped; " ROOM_BESIDE)
SCRIPT(cgroups_of_least_weight_take_no_room,
       TWO_ON_0_AND_2 "; weight 1; others grouped; " ROOM_BESIDE)

/* Those of normal priority need their CPUs. */
SCRIPT(other_programs_take_room,
       TWO_ON_0_AND_2 "; others nice 10; begin auto; run 30s; home 1000 != 2")

/* ---- CPUs that come and go ---- */

/* As the machine is now. */
static int load_online(void *context, struct nm_topology **ret)
{
	(void)context;
	struct nm_topology *topology = machine_topology(NODES, CPUS);
	assert_non_null(topology);
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		if (world.fake->online >> cpu & 1)
			continue;
		topology->cpus[cpu].online = false;
		hwloc_bitmap_clr(topology->nodes[topology->cpus[cpu].node].cpus, cpu);
		hwloc_bitmap_clr(topology->usable, cpu);
		hwloc_bitmap_clr(topology->online, cpu);
	}
	*ret = topology;
	return 0;
}

ACTION(changing_cpus, world.daemon.options.topology.load = load_online)

WORD(online)
{
	world.fake->online |= UINT64_C(1) << U(0);
	fake_cpuset(world.fake, "/", world.fake->all);
}

ACTION(offline, world.fake->online &= ~(UINT64_C(1) << U(0)))

/* As if other memory blocks had been online before. */
ACTION(memory_changes, world.daemon.machine.online.cpus[0] = '-')

/* A program with its memory on node 2. */
#define CHANGING "changing_cpus; " TWO_ON_0_AND_2 "; begin auto"
/* The CPU is one of another node than the home. */
#define PLACED_ONCE                                                                                \
	"home 1000 = 2; journal decision PID=1000; journal verdict DECISION=$DECISION; "           \
	"decisions_on 1000 = 1"

static unsigned count_decisions(const char *pid)
{
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		count += world.entries[i].message == NM_MESSAGE_DECISION &&
			 has_field(&world.entries[i], "PID", pid);
	return count;
}

QUANTITY(decisions_on, count_decisions(step->word[0]))

SCRIPT(a_cpu_that_toggles_each_second_delays_nothing, CHANGING,
       "each 30: run 1s; offline cpu7; run 1s; online cpu7", PLACED_ONCE)

SCRIPT(a_cpu_that_toggles_every_5_s_ends_no_home, CHANGING,
       "each 6: run 5s; offline cpu7; run 5s; online cpu7", PLACED_ONCE)

/* Programs on the node itself are placed anew on what is left of it. */
SCRIPT(a_home_on_the_changed_node_is_examined_anew, CHANGING,
       "run 10s; home 1000 = 2; keep before = decision 1000; offline cpu4; run 3s",
       "decision 1000 != before; online cpu4; run 1s")

/* Memory blocks were added: the nodes and their CPUs are the same. */
SCRIPT(new_memory_ends_no_home, CHANGING, "run 10s; home 1000 = 2; keep before = decision 1000",
       "each 3: memory_changes; run 1s", "decision 1000 = before; home 1000 = 2")

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/* Policy "auto" through every stage of the daemon, beside what it cannot change: memory that stays
 * where it is, programs of idle priority, CPUs that come and go. */
#define SET_UP open_pages
#define TEAR_DOWN world_close
#include "../support/test.h"

#include <math.h>

#include "page_daemon_fixture.h"

static void begin_auto(void)
{
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	world.balancing = -1;
	world.daemon.machine.balancing = -1;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static void live_s(double seconds)
{
	live((unsigned)(seconds / nm_loop_wakeup_s(&world.daemon)));
}

static const struct nm_home_state *state_of(uint32_t pid)
{
	const struct nm_home_state *home_state =
		nm_home_state_find(nm_placement_of(&world.daemon), pid);
	assert_non_null(home_state);
	return home_state;
}

static int home_of(uint32_t pid)
{
	return state_of(pid)->home;
}

/* ---- memory that stays ---- */

static const int all_on_1[512] = {[0 ... 511] = 1};

#define PRIVATE_ON_1 "7fff00000000 default anon=1024 dirty=1024 N1=1024 kernelpagesize_kB=4\n"

/*
 * A process of two threads on nodes 0 and 2 with 4 GiB that stay on node 1 and 4 MiB of its own
 * there, while other programs fill node 1.
 */
static struct fake_thread *begin_beside_staying(const char *numa_maps)
{
	make_space(1024, 1);
	fake_asked.numa_maps = numa_maps;
	fake_asked.pages = all_on_1;
	fake_asked.nr_pages = NM_ARRAY_SIZE(all_on_1);
	struct fake_thread *vm = fake_get(world.fake, add_user(1000, 0, 0, 1024)->tid);
	vm->rss_kb = (4 << 20) + 4096;
	vm->shared_kb = 4 << 20;
	add_user(1000, 4, 0, 1024);
	for (int cpu = 2; cpu < 4; cpu++)
		fake_pin(world.fake, add_worker(2000 + 100 * (uint32_t)cpu, cpu, 1)->tid,
			 UINT64_C(0xc));
	begin_auto();
	return vm;
}

static void assert_not_taken_away(void)
{
	live_s(60);
	assert_true(home_of(1000) == 1 || home_of(1000) == -1);
	const struct nm_entry *placed = find_entry(0, NM_MESSAGE_DECISION, "PID", "1000");
	if (placed)
		assert_string_equal(field_of(placed, "NODE_TO"), "1");
	fake_asked.numa_maps = NULL;
	fake_asked.pages = NULL;
}

TEST(a_virtual_machine_stays_near_its_memfd)
{
	(void)begin_beside_staying(
		"7f0000000000 default file=/memfd:pc.ram\\040(deleted) dirty=1048576 mapmax=2 "
		"N1=1048576 kernelpagesize_kB=4\n" PRIVATE_ON_1);
	assert_not_taken_away();
}

/* Accesses are not sampled, so that only the kernel shows where its memory is. */
TEST(without_samples_it_stays_near_its_memfd)
{
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	world.cached = true;
	(void)begin_beside_staying(
		"7f0000000000 default file=/memfd:pc.ram\\040(deleted) dirty=1048576 mapmax=2 "
		"N1=1048576 kernelpagesize_kB=4\n" PRIVATE_ON_1);
	assert_not_taken_away();
}

/* Its own memory is small; no other program maps the file, which it only reads. */
TEST(a_program_stays_near_its_large_file)
{
	(void)begin_beside_staying("7f0000000000 default file=/model.gguf mapped=1048576 "
				   "N1=1048576 kernelpagesize_kB=4\n" PRIVATE_ON_1);
	assert_not_taken_away();
}

/* The kernel does not count these pages as resident. */
static void assert_stays_near_huge_pages(const char *numa_maps)
{
	struct fake_thread *vm = begin_beside_staying(numa_maps);
	vm->rss_kb = 4096;
	vm->shared_kb = 0;
	vm->hugetlb_kb = 4 << 20;
	assert_not_taken_away();
}

TEST(a_virtual_machine_stays_near_its_huge_pages)
{
	assert_stays_near_huge_pages(
		"7f0000000000 default file=/dev/hugepages/qemu huge dirty=2048 N1=2048 "
		"kernelpagesize_kB=2048\n" PRIVATE_ON_1);
}

TEST(a_virtual_machine_stays_near_its_huge_memfd)
{
	assert_stays_near_huge_pages(
		"7f0000000000 default file=/memfd:pc.ram\\040(deleted) huge dirty=4 N1=4 "
		"kernelpagesize_kB=1048576\n" PRIVATE_ON_1);
}

/* Its own memory is too large for the kernel to count it. */
TEST(a_database_stays_near_its_buffers)
{
	struct fake_thread *database = begin_beside_staying(NULL);
	database->rss_kb = (4 << 20) + (256 << 10);
	assert_not_taken_away();
}

/* With pages.also, it follows like all other memory. */
TEST(shared_memory_that_may_move_does_not_stay)
{
	world.daemon.config->pages.also = NM_ALSO_SHARED;
	(void)begin_beside_staying(
		"7f0000000000 default file=/memfd:pc.ram\\040(deleted) dirty=1048576 mapmax=2 "
		"N1=1048576 kernelpagesize_kB=4\n" PRIVATE_ON_1);
	live_s(10);
	assert_false(state_of(1000)->has_staying);
	fake_asked.numa_maps = NULL;
	fake_asked.pages = NULL;
}

/* Programs and libraries are not data: their pages do not hold a program near them. */
TEST(libraries_hold_no_program)
{
	make_space(1024, 2);
	struct fake_thread *first = fake_get(world.fake, add_user(1000, 0, 0, 1024)->tid);
	first->rss_kb = 4096 + (48 << 10);
	first->shared_kb = 0;
	add_user(1000, 5, 0, 1024);
	fake_asked.numa_maps =
		"400000 default file=/usr/lib/libLLVM.so mapped=8192 mapmax=40 N0=8192 "
		"kernelpagesize_kB=4\n7f0000000000 default anon=1024 dirty=1024 N2=1024 "
		"kernelpagesize_kB=4\n";
	begin_auto();
	live_s(20);
	assert_int_equal(home_of(1000), 2);
	assert_true(state_of(1000)->located_on[0] == 0);
	fake_asked.numa_maps = NULL;
}

/* ---- counts with an error ---- */

static bool is_managed_with(uint64_t rss_kb)
{
	make_space(1024, 2);
	add_user(1000, 0, 0, 1024);
	add_user(1000, 5, 0, 1024);
	fake_get(world.fake, 1000)->rss_kb = rss_kb;
	begin_auto();
	live_s(10);
	return nm_home_state_find(nm_placement_of(&world.daemon), 1000) != NULL;
}

/* Per-CPU counters that the kernel has not added up. */
TEST(a_size_of_0_is_not_small)
{
	assert_true(is_managed_with(0));
}

/* The error is 8 times 32 pages, and the least size 4 MiB. */
TEST(a_size_within_the_error_is_not_small)
{
	assert_true(is_managed_with(3 * 1024 + 4));
}

TEST(a_smaller_size_is_small)
{
	assert_false(is_managed_with(3 * 1024 - 4));
}

/* The difference of the two counters of statm is 0. The kernel counts the pages itself. */
TEST(anonymous_memory_of_0_is_located)
{
	make_space(1024, 2);
	struct fake_thread *first = fake_get(world.fake, add_user(1000, 0, 0, 1024)->tid);
	first->rss_kb = first->shared_kb = 8192;
	add_user(1000, 5, 0, 1024);
	fake_asked.numa_maps =
		"7f0000000000 default anon=1024 dirty=1024 N2=1024 kernelpagesize_kB=4\n";
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	world.cached = true;
	begin_auto();
	live_s(10);
	assert_true(state_of(1000)->located);
	assert_true(state_of(1000)->located_on[2] == 1);
	assert_int_equal(nm_home_state_bytes(state_of(1000)), 1024 * 4096);
	fake_asked.numa_maps = NULL;
}

/* ---- programs that leave the CPUs to others ---- */

/* A program on each CPU, of which `make` makes each one idle, and one of two threads with its
 * memory on node 2. */
static void assert_room_beside(void (*make)(struct fake_thread *thread))
{
	make_space(1024, 2);
	add_user(1000, 0, 0, 1024);
	add_user(1000, 5, 0, 1024);
	for (int cpu = 0; cpu < CPUS; cpu++)
		make(fake_get(world.fake,
			      add_worker(2000 + 100 * (uint32_t)cpu, cpu, (unsigned)cpu / 2)->tid));
	begin_auto();
	live_s(30);
	assert_int_equal(home_of(1000), 2);
	for (uint32_t pid = 2000; pid < 2000 + 100 * CPUS; pid += 100) {
		assert_int_equal(home_of(pid), -1);
		assert_int_equal(state_of(pid)->reason, NM_PLACE_YIELDS);
	}
}

static void make_idle(struct fake_thread *thread)
{
	thread->policy = SCHED_IDLE;
}

static void make_nice(struct fake_thread *thread)
{
	thread->nice = 19;
}

static void put_into_group(struct fake_thread *thread)
{
	snprintf(thread->cgroup, sizeof(thread->cgroup), "/batch/job");
}

TEST(idle_programs_take_no_room)
{
	assert_room_beside(make_idle);
}

TEST(the_nicest_programs_take_no_room)
{
	assert_room_beside(make_nice);
}

TEST(idle_cgroups_take_no_room)
{
	world.fake->limits[world.fake->nr_limits++] =
		(struct fake_limit){.path = "/batch", .weight = "0"};
	assert_room_beside(put_into_group);
}

TEST(cgroups_of_least_weight_take_no_room)
{
	world.fake->limits[world.fake->nr_limits++] =
		(struct fake_limit){.path = "/batch", .weight = "1"};
	assert_room_beside(put_into_group);
}

/* Those of normal priority need their CPUs. */
static void make_usual(struct fake_thread *thread)
{
	thread->nice = 10;
}

TEST(other_programs_take_room)
{
	make_space(1024, 2);
	add_user(1000, 0, 0, 1024);
	add_user(1000, 5, 0, 1024);
	for (int cpu = 0; cpu < CPUS; cpu++)
		make_usual(fake_get(
			world.fake,
			add_worker(2000 + 100 * (uint32_t)cpu, cpu, (unsigned)cpu / 2)->tid));
	begin_auto();
	live_s(30);
	assert_int_not_equal(home_of(1000), 2);
}

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

/* A program with its memory on node 2. */
static void begin_with_changing_cpus(void)
{
	world.daemon.options.topology.load = load_online;
	make_space(1024, 2);
	add_user(1000, 0, 0, 1024);
	add_user(1000, 5, 0, 1024);
	begin_auto();
}

/* A CPU is off, and on again, every `every_s` seconds. */
static void toggle_for_s(double seconds, double every_s, int cpu)
{
	uint64_t all = world.fake->all;
	for (unsigned i = 0; i < (unsigned)(seconds / every_s); i++) {
		live_s(every_s);
		world.fake->online = i % 2 ? all : all & ~(UINT64_C(1) << cpu);
	}
	world.fake->online = all;
	fake_cpuset(world.fake, "/", all);
}

static unsigned count_decisions(const char *pid)
{
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		count += world.entries[i].message == NM_MESSAGE_DECISION &&
			 has_field(&world.entries[i], "PID", pid);
	return count;
}

/* The CPU is one of another node than the home. */
static void assert_placed_once(double every_s)
{
	begin_with_changing_cpus();
	toggle_for_s(60, every_s, 7);
	assert_int_equal(home_of(1000), 2);
	assert_int_equal(count_decisions("1000"), 1);
	assert_non_null(verdict_on(find_entry(0, NM_MESSAGE_DECISION, "PID", "1000")));
}

TEST(a_cpu_that_toggles_each_second_delays_nothing)
{
	assert_placed_once(1);
}

TEST(a_cpu_that_toggles_every_5_s_ends_no_home)
{
	assert_placed_once(5);
}

/* Programs on the node itself are placed anew on what is left of it. */
TEST(a_home_on_the_changed_node_is_examined_anew)
{
	begin_with_changing_cpus();
	live_s(10);
	assert_int_equal(home_of(1000), 2);
	uint64_t decision = state_of(1000)->decision;
	world.fake->online = world.fake->all & ~UINT64_C(0x10);
	live_s(3);
	assert_true(state_of(1000)->home < 0 || state_of(1000)->decision != decision);
	world.fake->online = world.fake->all;
	live_s(1);
}

/* Memory blocks were added: the nodes and their CPUs are the same. */
TEST(new_memory_ends_no_home)
{
	begin_with_changing_cpus();
	live_s(10);
	assert_int_equal(home_of(1000), 2);
	uint64_t decision = state_of(1000)->decision;
	for (unsigned i = 0; i < 3; i++) {
		world.daemon.machine.online.cpus[0] = '-'; /* other than what will be read */
		live_s(1);
	}
	assert_int_equal(state_of(1000)->decision, decision);
	assert_int_equal(home_of(1000), 2);
}

#undef TEST

RUN_TESTS()

/* SPDX-License-Identifier: MIT */
/*
 * The machine changes under the running daemon: CPUs and memory blocks go offline and online, a
 * cpuset shrinks, no event can be opened for a while, the wall clock is set, and the disk of the
 * disk is full. The daemon continues each time, moves threads again once it can, and restores
 * everything.
 */
#include "../support/test.h"

#include "ordeal_fixture.h"

#define LAST 150
#define TWO_HOURS (INT64_C(7200) * 1000000000)

static bool more_memory, another_block;
static uint64_t moved_before; /* the last check */

/* ---- current contents of /sys and /proc/meminfo ---- */

static ssize_t (*read_other)(struct nm_platform *platform, int directory, const char *path,
			     char *buffer, size_t size);

static ssize_t read_machine(struct nm_platform *platform, int directory, const char *path,
			    char *buffer, size_t size)
{
	char text[64];
	if (strcmp(path, "sys/devices/system/node/online") == 0)
		return world_give(buffer, size, "0-1\n");
	if (strcmp(path, "sys/devices/system/cpu/online") == 0) {
		fake_write_list(ordeal.world->fake->online, text, sizeof(text));
		return world_give(buffer, size, text);
	}
	if (strcmp(path, "proc/meminfo") != 0)
		return read_other(platform, directory, path, buffer, size);
	snprintf(text, sizeof(text), "MemTotal:  %u kB\n", (more_memory ? 9U : 8U) << 20);
	return world_give(buffer, size, text);
}

static int (*list_other)(struct nm_platform *platform, int directory, const char *path,
			 nm_name_fn each, void *context);

static int list_machine(struct nm_platform *platform, int directory, const char *path,
			nm_name_fn each, void *context)
{
	if (strcmp(path, "sys/devices/system/memory") != 0)
		return list_other(platform, directory, path, each, context);
	(void)each(context, "block_size_bytes");
	(void)each(context, "memory0");
	return another_block ? each(context, "memory64") : 0;
}

#define NODE_FILE "sys/devices/system/node/node%u/"
#define CPU_FILE "sys/devices/system/cpu/"

static void put(const char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *text, const char *format, ...)
{
	char path[128];
	va_list list;
	va_start(list, format);
	vsnprintf(path, sizeof(path), format, list);
	va_end(list);
	fixture_file(ordeal.world->root, path, text);
}

/* The topology of hwloc: a core for each CPU, and the online CPUs of each node. */
static void write_topology(uint64_t online)
{
	char text[64];
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		snprintf(text, sizeof(text), "%x\n", 1U << cpu);
		put(online >> cpu & 1 ? "1\n" : "0\n", CPU_FILE "cpu%u/online", cpu);
		put(text, CPU_FILE "cpu%u/topology/thread_siblings", cpu);
		put(text, CPU_FILE "cpu%u/topology/core_cpus", cpu);
		snprintf(text, sizeof(text), "%u\n", cpu);
		put(text, CPU_FILE "cpu%u/topology/core_id", cpu);
	}
	for (unsigned node = 0; node < NODES; node++) {
		uint64_t all = fake_cpus(node * NODE_CPUS, (node + 1) * NODE_CPUS - 1);
		snprintf(text, sizeof(text), "%" PRIx64 "\n", all & online);
		put(text, NODE_FILE "cpumap", node);
		put(node ? "20 10\n" : "10 20\n", NODE_FILE "distance", node);
		snprintf(text, sizeof(text), "Node %u MemTotal:       4194304 kB\n", node);
		put(text, NODE_FILE "meminfo", node);
	}
	fake_write_list(online, text, sizeof(text));
	put(text, CPU_FILE "online");
}

/* Replaces that of the fixture, which has no offline CPUs. */
static void write_machine(void)
{
	put("0-3\n", CPU_FILE "present");
	put("0-3\n", CPU_FILE "possible");
	put("0-1\n", "sys/devices/system/node/online");
	put("0-1\n", "sys/devices/system/node/possible");
	put("processor : 0\n", "proc/cpuinfo");
	write_topology(fake_cpus(0, CPUS - 1));
	ordeal.world->options.topology.xml_path = NULL;
}

static void set_online(uint64_t online)
{
	struct fake *fake = ordeal.world->fake;
	fake->online = online;
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		ordeal.world->perf.cpu_error[cpu] = online >> cpu & 1 ? 0 : -ENODEV;
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive)
			fake_apply_cpuset(fake, &fake->threads[i]);
	gate.on = false;
	write_topology(online);
	gate.on = true;
}

/* ---- changes ---- */

/* Threads of all decisions, and assigned ones that were moved again. */
static uint64_t moved(void)
{
	return nm_moves_counts(ordeal.daemon->pipeline.moves).asked;
}

static void look(void)
{
	moved_before = moved();
}

static void has_moved(void)
{
	if (moved() == moved_before)
		fail_msg("interval %u: no thread was moved again", ordeal.interval);
	look();
}

static void has_not_moved(void)
{
	assert_int_equal(moved(), moved_before);
}

static void cpus_go_offline(void)
{
	look();
	set_online(fake_cpus(0, NODE_CPUS - 1));
}

/* Newer kernels would set our affinities again when the CPUs return, if they had not been
 * restored. */
static void cpus_come_online(void)
{
	set_online(fake_cpus(0, CPUS - 1));
	assert_null(fake_trace(ordeal.world->fake));
}

static void a_memory_block_is_added(void)
{
	more_memory = another_block = true;
}

/* A balloon takes all memory and later returns it; no pages end up elsewhere. */
static void memory_is_ballooned(void)
{
	assert_true(reported_has(&ordeal.messages, "memory changed; online: nodes N-N with N MiB"));
	ordeal.messages.count = 0;
	more_memory = false;
}

static void a_cpuset_shrinks(void)
{
	assert_false(
		reported_has(&ordeal.messages, "memory changed; online: nodes N-N with N MiB"));
	fake_cpuset(ordeal.world->fake, "/a.slice", fake_cpus(0, 0));
}

static void a_cpuset_widens(void)
{
	fake_cpuset(ordeal.world->fake, "/a.slice", fake_cpus(0, CPUS - 1));
}

static void fail_from_now_on(enum gate_op op, int error)
{
	gate.fail_op = op;
	gate.fail_at = gate.calls[op] + 1;
	gate.error = error;
	gate.lasting = true;
}

static void events_are_refused(void)
{
	fail_from_now_on(GATE_EVENT_OPEN, EACCES);
}

static void nothing_fails(void)
{
	gate.fail_at = 0;
}

static void the_clock_jumps(void)
{
	gate.wall_step_ns = TWO_HOURS;
}

static void the_clock_is_right(void)
{
	gate.wall_step_ns = -TWO_HOURS;
}

static void the_disk_is_full(void)
{
	fail_from_now_on(GATE_WRITE, ENOSPC);
	look();
}

static const struct {
	unsigned interval;
	void (*happens)(void);
} changes[] = {
	{10, has_moved},
	{11, cpus_go_offline},
	{16, cpus_come_online},
	{30, has_moved},
	{31, a_memory_block_is_added},
	{45, memory_is_ballooned},
	{58, a_cpuset_shrinks},
	{62, a_cpuset_widens},
	{63, events_are_refused},
	{64, cpus_go_offline},
	{67, cpus_come_online},
	{69, nothing_fails},
	{70, cpus_go_offline},
	{73, cpus_come_online},
	{90, has_moved},
	{91, the_clock_jumps},
	{92, cpus_go_offline},
	{94, cpus_come_online},
	{109, has_moved},
	{110, the_clock_is_right},
	{111, the_disk_is_full},
	{112, cpus_go_offline},
	{115, cpus_come_online},
	{130, has_not_moved},
	{131, nothing_fails},
	{149, has_moved},
};

static void change(void)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		if (changes[i].interval == ordeal.interval)
			changes[i].happens();
}

TEST(relief_continues_across_intervals)
{
	ordeal.short_life = LAST;
	ordeal.in_each = change;
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	assert_int_equal(ordeal.interval, LAST);
	assert_true(ordeal.stopped);
	assert_null(fake_trace(ordeal.world->fake));
	assert_false(ordeal_there_is("moves"));
	assert_int_equal(ordeal.world->perf.open_count, 0);
	assert_int_equal(gate.nr_live, 0);
}

int main(void)
{
	umask(022);
	ordeal_set_out();
	read_other = ordeal.ops.read_file;
	ordeal.ops.read_file = read_machine;
	list_other = ordeal.ops.list_directory;
	ordeal.ops.list_directory = list_machine;
	write_machine();
	ordeal_anew();
	int failed = RUN_REGISTERED(NULL, NULL);
	ordeal_end();
	return failed;
}

/* SPDX-License-Identifier: MIT */
/*
 * The whole daemon on a synthetic machine: two nodes of two CPUs, threads that run and access
 * memory, and a clock that advances by a second whenever the daemon reads the load, which happens
 * once per tick. Include after cmocka.h.
 */
#ifndef NM_TEST_WHOLE_DAEMON_FIXTURE_H
#define NM_TEST_WHOLE_DAEMON_FIXTURE_H

#include <hwloc.h>
#include <signal.h>
#include <sys/wait.h>

#include "../../src/daemon/daemon.h"
#include "../../src/daemon/loop.h"
#include "../../src/daemon/pipeline_build.h"
#include "../../src/daemon/report.h"
#include "../../src/daemon/stages.h"
#include "../support/machine.h"
#include "fake_platform.h"
#include "fixture.h"

/* Both fakes use the same names. */
#undef FAKE_FDS
#define fake_find perf_find
#define fake_get perf_get
#define fake_close perf_close
#define fake_read_file perf_read_file
#include "../support/fake_perf.h"
#undef fake_find
#undef fake_get
#undef fake_close
#undef fake_read_file

#define BOOT "5f6e1a52-0000-4000-8000-2b1f5f0c9e11"
#define NODES 2
#define NODE_CPUS 2
#define CPUS (NODES * NODE_CPUS)
#define WORKERS 8
/* Of each worker per second, as with the default clock. */
#define SAMPLES_S 80U

struct world;
typedef void (*world_fn)(struct world *world);

struct world {
	struct nm_platform platform;
	struct fake *fake;
	struct fake_perf perf;
	char root[FIXTURE_PATH];
	char xml[FIXTURE_PATH + 16], config[FIXTURE_PATH + 16], log[FIXTURE_PATH + 16],
		parameters[FIXTURE_PATH + 16];
	struct nm_options options;
	struct {
		uint32_t tid; /* 0: none */
		unsigned memory_node;
	} workers[WORKERS];
	uint64_t busy[CPUS], idle[CPUS]; /* ticks of 10 ms */
	unsigned seconds;
	const char *balancing; /* kernel.numa_balancing; NULL: absent */
	const char *release; /* of the kernel; NULL: unknown */
	bool dry_run;
	world_fn each_second; /* hook of the test after the second has passed */
	bool seen_moved, seen_returned;
};

static inline struct world *world_of(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct world, platform);
}

/* ---- events of a second ---- */

static inline void world_work(struct world *world, uint32_t tid, unsigned node)
{
	const struct fake_thread *thread = fake_find(world->fake, tid);
	if (!thread)
		return;
	int cpu = thread->processor;
	world->busy[cpu] += 80;
	world->idle[cpu] -= 80;
	if (!perf_find(&world->perf, NM_EVENT_CLOCK, cpu))
		return;
	struct record_ring ring = fake_ring(&world->perf, cpu);
	for (unsigned i = 0; i < SAMPLES_S; i++) {
		uint64_t time = world->fake->now_ns;
		record_run(&ring, fake_id(&world->perf, NM_EVENT_CLOCK, cpu), thread->pid, tid,
			   time);
		record_fault(&ring, fake_id(&world->perf, NM_EVENT_FAULT_MIN, cpu), thread->pid,
			     tid, time, 0x7f0000000000 + i * 4096UL,
			     machine_address(node, (world->seconds * SAMPLES_S + i) * 4096UL));
	}
	fake_publish(&world->perf, cpu, &ring);
}

static inline void world_second(struct world *world)
{
	fake_sleep(world->fake, 1000);
	world->seconds++;
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		world->idle[cpu] += 100;
	for (unsigned i = 0; i < WORKERS; i++)
		if (world->workers[i].tid)
			world_work(world, world->workers[i].tid, world->workers[i].memory_node);
	if (world->each_second)
		world->each_second(world);
}

/* ---- the ops ---- */

static inline uint64_t world_now_ns(struct nm_platform *platform)
{
	return world_of(platform)->fake->now_ns;
}

static inline int world_open_directory(struct nm_platform *platform, int directory,
				       const char *path)
{
	return fake_open_directory(&world_of(platform)->fake->platform, directory, path);
}

static inline ssize_t world_give(char *buffer, size_t size, const char *text)
{
	if (strlen(text) >= size)
		return -EFBIG;
	memcpy(buffer, text, strlen(text) + 1);
	return (ssize_t)strlen(text);
}

static inline ssize_t world_read_load(struct world *world, char *buffer, size_t size)
{
	char text[512] = "cpu  1 1 1 1 0 0 0 0\n";
	world_second(world);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "cpu%u %" PRIu64 " 0 0 %" PRIu64 " 0 0 0 0\n", cpu, world->busy[cpu],
			 world->idle[cpu]);
	return world_give(buffer, size, text);
}

static inline ssize_t world_read_file(struct nm_platform *platform, int directory, const char *path,
				      char *buffer, size_t size)
{
	struct world *world = world_of(platform);
	if (strcmp(path, "proc/stat") == 0)
		return world_read_load(world, buffer, size);
	if (strcmp(path, "proc/sys/kernel/random/boot_id") == 0)
		return world_give(buffer, size, BOOT "\n");
	if (world->balancing && strcmp(path, "proc/sys/kernel/numa_balancing") == 0)
		return world_give(buffer, size, world->balancing);
	if (world->release && strcmp(path, NM_KERNEL_RELEASE_PATH) == 0)
		return world_give(buffer, size, world->release);
	return fake_read_file(&world->fake->platform, directory, path, buffer, size);
}

static inline int world_list_directory(struct nm_platform *platform, int directory,
				       const char *path, nm_name_fn each, void *context)
{
	return fake_list_directory(&world_of(platform)->fake->platform, directory, path, each,
				   context);
}

static inline void world_close(struct nm_platform *platform, int fd)
{
	struct world *world = world_of(platform);
	if (fd >= FAKE_FD_BASE)
		fake_close(&world->fake->platform, fd);
	else
		perf_close(&world->perf.platform, fd);
}

static inline ssize_t world_read_attribute(struct nm_platform *platform, int directory,
					   const char *name, void *buffer, size_t size)
{
	return fake_read_attribute(&world_of(platform)->fake->platform, directory, name, buffer,
				   size);
}

static inline int world_owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	return fake_owner(&world_of(platform)->fake->platform, directory, ret);
}

static inline int world_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	return fake_affinity_get(&world_of(platform)->fake->platform, tid, ret);
}

static inline int world_affinity_set(struct nm_platform *platform, pid_t tid,
				     hwloc_const_bitmap_t cpus)
{
	struct world *world = world_of(platform);
	if (world->dry_run)
		return -EROFS;
	return fake_affinity_set(&world->fake->platform, tid, cpus);
}

static inline int world_event_open(struct nm_platform *platform, enum nm_event_kind kind, int cpu,
				   uint64_t period)
{
	return fake_open(&world_of(platform)->perf.platform, kind, cpu, period);
}

static inline int world_hardware_list(struct nm_platform *platform,
				      const struct nm_event_selection *selection,
				      struct nm_event_list *ret)
{
	(void)platform, (void)selection;
	*ret = (struct nm_event_list){0};
	return 0;
}

static inline int world_event_map(struct nm_platform *platform, int fd, size_t bytes, void **ret)
{
	return fake_map(&world_of(platform)->perf.platform, fd, bytes, ret);
}

static inline void world_event_unmap(struct nm_platform *platform, void *ring, size_t bytes)
{
	fake_unmap(&world_of(platform)->perf.platform, ring, bytes);
}

static inline int world_event_ioctl(struct nm_platform *platform, int fd, unsigned long request,
				    void *argument)
{
	return fake_ioctl(&world_of(platform)->perf.platform, fd, request, argument);
}

static inline int world_event_read(struct nm_platform *platform, int fd, void *buffer, size_t size)
{
	return fake_read(&world_of(platform)->perf.platform, fd, buffer, size);
}

static inline void world_keep(struct nm_platform *platform)
{
	(void)platform; /* the machine outlives the daemon */
}

static inline int world_open_platform(void *context, const struct nm_platform_options *options,
				      struct nm_platform **ret)
{
	struct world *world = context;
	world->dry_run = options->dry_run;
	*ret = &world->platform;
	return 0;
}

/* ---- life ---- */

static inline void world_write_xml(const char *path, const char *machine)
{
	hwloc_topology_t topology;
	if (hwloc_topology_init(&topology) < 0 ||
	    hwloc_topology_set_synthetic(topology, machine) < 0 ||
	    hwloc_topology_load(topology) < 0 || hwloc_topology_export_xml(topology, path, 0) < 0)
		abort();
	hwloc_topology_destroy(topology);
}

/* Few entries, since the lines of the journal are checked; no delays. */
#define WORLD_SETTINGS                                                                             \
	"parameters: { general: { interval_s = 0.1; }; };\n"                                       \
	"targets: { min_cpu_percent = 0; min_rss_mb = 1; };\n"

/* Most tests check moves of the lottery, so its policy is the default here. */
#define WORLD_POLICY "\nthreads: { policy = \"lbma\"; };\n"

static inline void world_configure(struct world *world, const char *text)
{
	char whole[2048];
	assert_in_range(snprintf(whole, sizeof(whole), "%s%s", text,
				 strstr(text, "threads:") ? "" : WORLD_POLICY),
			0, sizeof(whole) - 1);
	fixture_file(world->root, "numa-migrd.conf", whole);
}

static inline struct world *world_new(void)
{
	static const struct nm_platform_ops ops = {
		.now_ns = world_now_ns,
		.open_directory = world_open_directory,
		.read_file = world_read_file,
		.list_directory = world_list_directory,
		.close = world_close,
		.read_attribute = world_read_attribute,
		.owner = world_owner,
		.affinity_get = world_affinity_get,
		.affinity_set = world_affinity_set,
		.event_open = world_event_open,
		.hardware_list = world_hardware_list,
		.event_map = world_event_map,
		.event_unmap = world_event_unmap,
		.event_ioctl = world_event_ioctl,
		.event_read = world_event_read,
		FAKE_ASK,
	};
	struct world *world = calloc(1, sizeof(*world));
	world->platform = (struct nm_platform){.ops = &ops, .free = world_keep};
	world->fake = fake_new(CPUS);
	world->perf.platform.ops = &fake_perf_ops;
	fixture_make(world->root, sizeof(world->root));
	snprintf(world->xml, sizeof(world->xml), "%s/machine.xml", world->root);
	snprintf(world->config, sizeof(world->config), "%s/numa-migrd.conf", world->root);
	snprintf(world->log, sizeof(world->log), "%s/log", world->root);
	world_write_xml(world->xml, "numa:2 core:2 pu:1");
	if (machine_write_tree(world->root, NODES) < 0)
		abort();
	snprintf(world->parameters, sizeof(world->parameters), "%s/parameters", world->root);
	fixture_file(world->root, "parameters", "");
	world_configure(world, WORLD_SETTINGS);
	setenv("RUNTIME_DIRECTORY", world->root, 1);
	setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("JOURNAL_STREAM");
	world->options = (struct nm_options){
		.config = {.path = world->config, .parameters = world->parameters},
		.seed = 1,
		.topology = {.xml_path = world->xml, .root_path = world->root},
		.open_platform = world_open_platform,
		.platform_context = world,
	};
	return world;
}

static inline void world_free(struct world *world)
{
	nm_platform_free(&world->fake->platform);
	fixture_remove(world->root);
	free(world);
}

/* A process of one thread that runs on a CPU of node 0 with all its memory on one node. */
static inline void world_worker(struct world *world, uint32_t pid, unsigned memory_node)
{
	struct fake_thread *thread = fake_process(world->fake, pid, 1);
	thread->processor = (int)(pid % NODE_CPUS);
	unsigned i = 0;
	while (world->workers[i].tid)
		i++;
	world->workers[i].tid = pid;
	world->workers[i].memory_node = memory_node;
}

/* Returns whether it is on the node of its memory. */
static inline bool world_moved(const struct world *world, uint32_t tid)
{
	return fake_get(world->fake, tid)->processor >= (int)NODE_CPUS;
}

/* ---- the log ---- */

/* Redirects standard error to the log; returns the argument of world_unmute(). */
static inline int world_mute(struct world *world)
{
	int kept = dup(STDERR_FILENO);
	int log = open(world->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (kept < 0 || log < 0 || dup2(log, STDERR_FILENO) < 0)
		abort();
	close(log);
	return kept;
}

static inline void world_unmute(int kept)
{
	if (dup2(kept, STDERR_FILENO) < 0)
		abort();
	close(kept);
}

static inline const char *world_logged(struct world *world)
{
	static char text[1 << 16];
	FILE *file = fopen(world->log, "r");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[length] = '\0';
	if (file)
		fclose(file);
	return text;
}

static inline void world_assert_logged(struct world *world, const char *words)
{
	const char *text = world_logged(world);
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in:\n%s", words, text);
}

static inline void world_assert_not_logged(struct world *world, const char *words)
{
	const char *text = world_logged(world);
	if (strstr(text, words))
		fail_msg("\"%s\" is in:\n%s", words, text);
}

/* The daemon from start to end, as main() would. */
static inline int world_run(struct world *world)
{
	int kept = world_mute(world);
	int r = nm_daemon_run(&world->options);
	world_unmute(kept);
	return r;
}

#endif

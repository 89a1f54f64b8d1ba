/* SPDX-License-Identifier: MIT */
/*
 * The ticks of the daemon on a synthetic machine in simulated time: four nodes of two CPUs in a
 * ring, where latency depends on the distance to memory, and progress on latency. This file defines
 * the source and the sink of the journal instead of the libraries: samples come from the model, and
 * entries are stored. Include cmocka.h first.
 */
#ifndef NM_TEST_DAEMON_FIXTURE_H
#define NM_TEST_DAEMON_FIXTURE_H

#include <math.h>

#include "../../src/daemon/daemon.h"
#include "../../src/daemon/loop.h"
#include "../../src/daemon/pipeline_build.h"
#include "../../src/daemon/report.h"
#include "../../src/daemon/stages.h"
#include "../support/fake_ask.h"
#include "../support/machine.h"
#include "fake_mover.h"
#include "fake_platform.h"
#include "fixture.h"

enum { NODES = 4, CPUS = 8, WORKERS_MAX = 16, ENTRIES_MAX = 2000, SPACE_PAGES = 2048 };

/* Memory of a process: the node of each page. */
struct space {
	uint64_t start;
	unsigned count;
	bool huge; /* pages of 2 MiB, whose parts are counted */
	uint8_t home[SPACE_PAGES];
};

/* A thread that never sleeps: its memory and its inherent speed. */
struct worker {
	uint32_t tid;
	unsigned memory;
	double speed;
	/* The range of pages [from, to) of a space that it accesses; NULL: pages without address on
	 * `memory`. */
	struct space *space;
	unsigned from, to;
	uint64_t address; /* of 32 KiB that it uses, possibly with others; 0: not sampled */
	double misses;	  /* per instruction */
	double rests;	  /* share of the time that it sleeps */
	uint64_t run_ns, delay_ns;
};

static struct world {
	struct fake *fake;
	struct nm_platform_ops ops;
	struct nm_daemon daemon;
	struct nm_rng rng;
	struct worker workers[WORKERS_MAX];
	size_t nr_workers;
	struct space space;
	int balancing; /* kernel.numa_balancing; -1: none */
	double noise;  /* of counters, uniform to both sides */
	bool cached;   /* no cache misses, so no latency is sampled */
	bool lazy;     /* the scheduler keeps threads on their node */
	bool silent;   /* no schedstat */
	bool homes; /* samples contain the node of their memory instead of the physical address */
	uint64_t busy_ticks[CPUS], all_ticks;
	uint64_t swapped_out; /* pages so far; 0: neither these counters nor watermarks exist */
	char root[128];
	struct nm_entry entries[ENTRIES_MAX];
	size_t nr_entries;
} world;

/* ---- the sink of the journal ---- */

struct nm_journal {
	int unused;
};

static struct nm_journal journal;

void nm_journal_new(struct nm_journal **ret)
{
	*ret = &journal;
}

void nm_journal_free(struct nm_journal *ignored)
{
	(void)ignored;
}

void nm_journal_configure(struct nm_journal *ignored, enum nm_journal_level level)
{
	(void)ignored, (void)level;
}

void nm_journal_emit(struct nm_journal *ignored, const struct nm_entry *entry, uint64_t now_ns)
{
	(void)ignored, (void)now_ns;
	assert_true(world.nr_entries < ENTRIES_MAX);
	world.entries[world.nr_entries++] = *entry;
}

uint64_t nm_journal_suppressed(struct nm_journal *ignored)
{
	(void)ignored;
	return 0;
}

/* Returns the value of the field, or NULL. */
static inline const char *field_of(const struct nm_entry *entry, const char *name)
{
	size_t length = strlen(name);
	for (unsigned i = 0; i < entry->count; i++)
		if (strncmp(entry->fields[i], name, length) == 0 && entry->fields[i][length] == '=')
			return entry->fields[i] + length + 1;
	return NULL;
}

static inline bool has_field(const struct nm_entry *entry, const char *name, const char *value)
{
	const char *found = field_of(entry, name);
	return found && strcmp(found, value) == 0;
}

static inline double number_of(const struct nm_entry *entry, const char *name)
{
	const char *found = field_of(entry, name);
	if (!found)
		fail_msg("\"%s\" has no %s", entry->text, name);
	return found ? strtod(found, NULL) : (double)NAN;
}

/* Returns the first entry of that kind from index `from` whose field has the value, or NULL. */
static inline const struct nm_entry *find_entry(size_t from, enum nm_message message,
						const char *name, const char *value)
{
	for (size_t i = from; i < world.nr_entries; i++)
		if (world.entries[i].message == message &&
		    has_field(&world.entries[i], name, value))
			return &world.entries[i];
	return NULL;
}

static inline unsigned count_entries(size_t from, enum nm_message message)
{
	unsigned count = 0;
	for (size_t i = from; i < world.nr_entries; i++)
		count += world.entries[i].message == message;
	return count;
}

/* ---- the source ---- */

struct nm_source {
	struct nm_source_status status;
	struct nm_sample *samples;
	size_t count, capacity;
	bool thinned, rests;
};

int nm_source_open(struct nm_platform *platform, const struct nm_topology *topology,
		   const struct nm_config *config, char *error, size_t error_size,
		   struct nm_source **ret)
{
	(void)platform, (void)topology, (void)config, (void)error, (void)error_size;
	struct nm_source *source = calloc(1, sizeof(*source));
	if (!source)
		return -ENOMEM;
	source->status = (struct nm_source_status){.runs = true,
						   .accesses = true,
						   .memory = NM_MEMORY_PEBS,
						   .has_instructions = true,
						   .has_flops = true,
						   .has_dram = true,
						   .name = "model",
						   .cpus_open = CPUS,
						   .run_sample_ns = 1e7};
	*ret = source;
	return 0;
}

void nm_source_open_feed(const struct nm_feed *feed, struct nm_source **ret)
{
	(void)feed;
	*ret = NULL;
}

void nm_source_free(struct nm_source *source)
{
	if (!source)
		return;
	free(source->samples);
	free(source);
}

int nm_source_fd(const struct nm_source *source)
{
	(void)source;
	return -1;
}

void nm_source_flush(struct nm_source *source)
{
	(void)source;
}

const struct nm_source_problem *nm_source_news(struct nm_source *source, size_t *ret_count)
{
	(void)source;
	*ret_count = 0;
	return NULL;
}

const double *nm_source_taken_per_seen(struct nm_source *source, unsigned *ret_nr_cpus)
{
	(void)source;
	*ret_nr_cpus = 0;
	return NULL;
}

size_t nm_source_drain(struct nm_source *source, const struct nm_sample_sink *sink)
{
	size_t count = source->count;
	for (size_t i = 0; i < count; i++)
		sink->on_sample(sink->context, &source->samples[i]);
	for (unsigned i = 0; i < world.fake->nr_events; i++)
		sink->on_task(sink->context, &world.fake->events[i]);
	world.fake->nr_events = 0;
	source->count = 0;
	return count;
}

void nm_source_retarget(struct nm_source *source, const struct nm_topology *topology)
{
	(void)source, (void)topology;
}

void nm_source_follow_load(struct nm_source *source, const double *busy_share, unsigned nr_cpus)
{
	(void)source, (void)busy_share, (void)nr_cpus;
}

bool nm_source_control_cost(struct nm_source *source, double cost_share)
{
	(void)source, (void)cost_share;
	return false;
}

void nm_source_thin(struct nm_source *source, bool thin)
{
	source->thinned = thin;
}

void nm_source_rest(struct nm_source *source, bool rests)
{
	source->rests = rests;
}

bool nm_source_is_held_back(const struct nm_source *source)
{
	(void)source;
	return false;
}

const struct nm_source_status *nm_source_status(struct nm_source *source)
{
	return &source->status;
}

static inline void add_sample(const struct nm_sample *sample)
{
	struct nm_source *source = world.daemon.pipeline.source;
	NM_RESERVE(source->samples, source->capacity, source->count);
	struct nm_sample *added = &source->samples[source->count++];
	*added = *sample;
	if (world.homes && added->physical_address) {
		added->page_node = (uint32_t)(added->physical_address / MACHINE_NODE_BYTES) + 1;
		added->physical_address = 0;
	}
}

/* ---- the model ---- */

static inline unsigned node_of_cpu(int cpu)
{
	return (unsigned)cpu / (CPUS / NODES);
}

/* 100 cycles at home, 180 next door, 260 across the ring. */
static inline double latency_at(unsigned node, unsigned memory)
{
	unsigned apart = (node + NODES - memory) % NODES;
	return 100 + 80.0 * (apart < NODES - apart ? apart : NODES - apart);
}

static inline double noisy(double value)
{
	return value * (1 + world.noise * (2 * nm_rng_unit(&world.rng) - 1));
}

static inline unsigned workers_on(int cpu)
{
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_workers; i++)
		count += fake_get(world.fake, world.workers[i].tid)->processor == cpu;
	return count;
}

/* Like a scheduler: a thread that shares a CPU moves to an idle CPU of its affinity. */
static inline void spread_out(void)
{
	for (size_t i = 0; i < world.nr_workers; i++) {
		struct fake_thread *thread = fake_get(world.fake, world.workers[i].tid);
		for (int cpu = 0; cpu < CPUS && workers_on(thread->processor) > 1; cpu++)
			if ((thread->mask >> cpu & 1) && workers_on(cpu) == 0 &&
			    (!world.lazy || node_of_cpu(cpu) == node_of_cpu(thread->processor)))
				thread->processor = cpu;
	}
}

/* One sample for each million. */
static inline void add_amount(const struct nm_sample *of, enum nm_event_kind kind, double amount)
{
	struct nm_sample sample = *of;
	sample.kind = kind;
	sample.amount = 1000000;
	for (; amount >= 1000000; amount -= 1000000)
		add_sample(&sample);
}

static inline double mean_latency(const struct worker *worker, unsigned node)
{
	double sum = 0;
	if (!worker->space)
		return latency_at(node, worker->memory);
	for (unsigned page = worker->from; page < worker->to; page++)
		sum += latency_at(node, worker->space->home[page]);
	return sum / (worker->to - worker->from);
}

/* Accesses a random page of its range. */
static inline void access_space(const struct worker *worker, unsigned node,
				struct nm_sample *sample)
{
	unsigned page =
		worker->from + (unsigned)(nm_rng_unit(&world.rng) * (worker->to - worker->from));
	unsigned home = worker->space->home[page];
	sample->address = worker->space->start + page * 4096UL;
	sample->physical_address = machine_address(home, (page + 1) * 4096UL);
	sample->page_bytes = worker->space->huge ? 2 << 20 : 4096;
	sample->time_ns = world.fake->now_ns;
	sample->latency_cycles = (uint32_t)noisy(latency_at(node, home));
}

static inline void work(struct worker *worker, double seconds)
{
	const struct fake_thread *thread = fake_get(world.fake, worker->tid);
	double could_s = seconds / workers_on(thread->processor);
	double cpu_s = could_s * (1 - worker->rests);
	double latency = mean_latency(worker, node_of_cpu(thread->processor));
	worker->run_ns += (uint64_t)(cpu_s * 1e9);
	worker->delay_ns += (uint64_t)((seconds - could_s) * 1e9);
	double instructions = noisy(1e9 * worker->speed * cpu_s * 100 / latency);
	struct nm_sample sample = {
		.kind = NM_EVENT_CLOCK,
		.pid = thread->pid,
		.tid = worker->tid,
		.cpu = (uint32_t)thread->processor,
		.level = NM_LEVEL_DRAM,
		.physical_address = machine_address(worker->memory, worker->tid * 4096),
	};
	for (int i = 0; i < (int)(100 * cpu_s); i++)
		add_sample(&sample);
	add_amount(&sample, NM_EVENT_INSTRUCTIONS, instructions);
	add_amount(&sample, NM_EVENT_FLOPS, instructions / 2);
	add_amount(&sample, NM_EVENT_DRAM, noisy(instructions * worker->misses));
	sample.kind = NM_EVENT_MEMORY;
	for (int i = 0; i < (int)(60 * cpu_s) && !world.cached; i++) {
		if (worker->space)
			access_space(worker, node_of_cpu(thread->processor), &sample);
		else
			sample.latency_cycles = (uint32_t)noisy(latency);
		if (worker->address) {
			sample.address = worker->address + 1024 * nm_rng_below(&world.rng, 32);
			sample.physical_address = machine_address(
				worker->memory, sample.address % MACHINE_NODE_BYTES);
		}
		add_sample(&sample);
	}
}

/* Returns -ENOENT if the path is not a schedstat. */
static inline ssize_t read_schedstat(const char *path, char *buffer, size_t size)
{
	uint32_t tid;
	int end = 0;
	if (sscanf(path, "proc/%*u/task/%" SCNu32 "/schedstat%n", &tid, &end) != 1 || !end)
		return -ENOENT;
	for (size_t i = 0; i < world.nr_workers; i++)
		if (world.workers[i].tid == tid)
			return snprintf(buffer, size, "%" PRIu64 " %" PRIu64 " 7\n",
					world.silent ? 0 : world.workers[i].run_ns,
					world.silent ? 0 : world.workers[i].delay_ns);
	return -ESRCH;
}

static inline ssize_t read_with_load(struct nm_platform *platform, int directory, const char *path,
				     char *buffer, size_t size)
{
	size_t used = 0;
	if (world.balancing >= 0 && strcmp(path, "proc/sys/kernel/numa_balancing") == 0)
		return snprintf(buffer, size, "%d\n", world.balancing);
	if (strcmp(path, "proc/vmstat") == 0)
		return snprintf(buffer, size, "nr_free 1\npgscan_kswapd %" PRIu64 "\npswpout %" PRIu64 "\n",
				world.swapped_out, world.swapped_out);
	if (world.swapped_out && strcmp(path, "proc/sys/vm/min_free_kbytes") == 0)
		return snprintf(buffer, size, "2048\n");
	if (directory == NM_ROOT && strstr(path, "/schedstat"))
		return read_schedstat(path, buffer, size);
	if (directory != NM_ROOT || strcmp(path, "proc/stat") != 0)
		return fake_read_file(platform, directory, path, buffer, size);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		used += (size_t)snprintf(
			buffer + used, size - used, "cpu%u %" PRIu64 " 0 0 %" PRIu64 " 0 0 0 0\n",
			cpu, world.busy_ticks[cpu], world.all_ticks - world.busy_ticks[cpu]);
	return (ssize_t)used;
}

/* Simulates an interval of T, and the tick at its end. */
/* All work for this time where they are. */
static inline void pass(double seconds)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		work(&world.workers[i], seconds);
	fake_sleep(world.fake, (unsigned)(seconds * 1000));
}

static inline void live_interval(double seconds)
{
	uint64_t ticks = (uint64_t)(seconds * 1000);
	spread_out();
	world.all_ticks += ticks;
	for (int cpu = 0; cpu < CPUS; cpu++)
		world.busy_ticks[cpu] += workers_on(cpu) ? ticks : 0;
	pass(seconds);
	assert_int_equal(nm_tick(&world.daemon), 0);
}

static inline void live_one(void)
{
	live_interval(nm_loop_wakeup_s(&world.daemon));
}

static inline void live(unsigned intervals)
{
	while (intervals-- > 0)
		live_one();
}

/* Adds a thread of the process on this CPU; the first one is the leader. */
static inline struct worker *add_worker(uint32_t pid, int cpu, unsigned memory)
{
	struct worker *worker = &world.workers[world.nr_workers++];
	bool known = fake_find(world.fake, pid);
	uint32_t tid = known ? pid + (uint32_t)world.nr_workers : pid;
	struct fake_thread *thread =
		known ? fake_clone(world.fake, pid, tid) : fake_process(world.fake, pid, 1);
	thread->processor = cpu;
	*worker = (struct worker){.tid = tid, .memory = memory, .speed = 1, .misses = 0.1};
	return worker;
}

static inline unsigned node_of(const struct worker *worker)
{
	return node_of_cpu(fake_get(world.fake, worker->tid)->processor);
}

static inline bool all_at_home(void)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		if (node_of(&world.workers[i]) != world.workers[i].memory)
			return false;
	return true;
}

/* ---- the daemon ---- */

static inline void open_stages(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_move_lookup moves = {.original = nm_moves_original,
				       .is_moving = nm_moves_is_moving};
	assert_int_equal(machine_physmap(pipeline->topology, &pipeline->physmap), 0);
	nm_metrics_new(pipeline->topology, true, &pipeline->metrics);
	assert_int_equal(nm_moves_new(pipeline->platform, pipeline->topology,
				      daemon->runtime.directory, "boot", nm_report_move, daemon,
				      &pipeline->moves),
			 0);
	pipeline->assignments = nm_assignments_new();
	moves.context = pipeline->moves;
	nm_task_table_new(pipeline->platform, pipeline->topology, daemon->config, &moves,
			  daemon->runtime.released, &pipeline->tasks);
	nm_trial_stage_open(daemon);
	pipeline->verifier = nm_verifier_new();
	nm_pipeline_reset_performance(daemon);
	nm_pipeline_open_source(daemon);
}

/* The configuration may be changed until the first interval. */
static inline void open_daemon(void)
{
	struct nm_daemon *daemon = &world.daemon;
	*daemon = (struct nm_daemon){.next_decision = 1, .machine.balancing = 1};
	nm_journal_new(&daemon->journal);
	assert_int_equal(nm_config_default(&daemon->config), 0);
	daemon->config->threads.policy = NM_POLICY_IMAR2;
	daemon->config->verify.control_percent = 0;
	nm_released_list_new(&daemon->runtime.released);
	daemon->runtime.directory = open(world.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	daemon->seed = 42;
	nm_rng_seed(&daemon->rng, daemon->seed);
	daemon->pipeline.platform = &world.fake->platform;
	daemon->pipeline.topology = machine_topology(NODES, CPUS);
	open_stages(daemon);
	daemon->last_tick_ns = world.fake->now_ns;
	nm_cpu_load_read(&daemon->machine.load, daemon->pipeline.platform,
			 daemon->pipeline.topology->nr_cpus);
}

static inline int world_open(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.fake = fake_new(CPUS);
	world.ops = *world.fake->platform.ops;
	world.ops.read_file = read_with_load;
	world.ops.memory_query = fake_ask;
	world.ops.memory_poll = fake_take;
	world.ops.memory_cancel = fake_forget;
	world.fake->platform.ops = &world.ops;
	world.noise = 0.01;
	world.balancing = -1;
	fake_mover = (struct fake_mover){0};
	world.all_ticks = 1;
	nm_rng_seed(&world.rng, 7);
	fixture_make(world.root, sizeof(world.root));
	open_daemon();
	return 0;
}

/* Checks that every affinity is restored. */
static inline int world_close(void **state)
{
	struct nm_daemon *daemon = &world.daemon;
	(void)state;
	(void)nm_moves_end(daemon->pipeline.moves);
	const struct fake_thread *trace = fake_trace(world.fake);
	nm_pipeline_close(daemon);
	nm_pipeline_clear(daemon);
	nm_config_free(daemon->config);
	close(daemon->runtime.directory);
	fixture_remove(world.root);
	assert_null(trace);
	return 0;
}

#endif

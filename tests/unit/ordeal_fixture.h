/* SPDX-License-Identifier: MIT */
/*
 * The whole daemon through a life of 46 intervals, as fast as possible: start, moves, a fork in
 * a move, a pause, reloads to other policies, an affinity set by its owner, a release, the end. In
 * a second life policy "auto" runs from start to end. The machine is that of whole_daemon_fixture.h
 * behind the gate of ordeal_gate.h; the event loop, the sink of the journal and the mover are
 * replaced. The calls and their order are the same in each life. Include cmocka.h first.
 */
#ifndef NM_TEST_ORDEAL_FIXTURE_H
#define NM_TEST_ORDEAL_FIXTURE_H

#include <sysexits.h>

#include "ordeal_gate.h"
/* The thread of the mover would make lives differ. */
#include "fake_mover.h"
#include "whole_daemon_fixture.h"

#define LIFE 46		  /* intervals */
#define ORDEAL_SAMPLES 40 /* of each worker per interval */
#define MESSAGES_MAX 128
#define MESSAGES_BYTES 160
#define MESSAGE_BYTES 110 /* bytes kept of each message */

struct messages {
	unsigned count;
	char text[MESSAGES_MAX][MESSAGES_BYTES];
};

static struct ordeal {
	struct world *world;
	struct fake *pristine; /* the machine before the first life */
	struct nm_platform_ops below, ops;
	struct messages messages; /* warnings and problems, each once, without variable parts */
	bool started, stopped, exits;
	bool refused; /* resume failed, and the caller got the error */
	unsigned moved, homes, interval;
	int balancing; /* kernel.numa_balancing */
	struct nm_daemon *daemon;
	sd_event_time_handler_t on_interval, on_nudge, on_mover;
	sd_event_signal_handler_t on_reload;
	unsigned short_life;   /* intervals, instead of LIFE */
	void (*in_each)(void); /* further actions in each interval */
	const char *only;      /* the policy of the whole life; NULL: several policies in turn */
} ordeal;

/* ---- the sink of the journal ---- */

struct nm_journal {
	int unused;
};

void nm_journal_new(struct nm_journal **ret)
{
	static struct nm_journal journal;
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

uint64_t nm_journal_suppressed(struct nm_journal *ignored)
{
	(void)ignored;
	return 0;
}

/* Copies a text without parts that differ between machines and runs: numbers, paths, reasons. */
static inline void reported_plain(const char *text, char ret[MESSAGES_BYTES])
{
	size_t used = 0;
	while (*text && used < MESSAGE_BYTES) {
		size_t root = strlen(ordeal.world->root);
		const char *why = gate.error ? strerror(gate.error) : "\n";
		if (strncmp(text, ordeal.world->root, root) == 0) {
			text += root;
			used += (size_t)snprintf(ret + used, 8, "…");
		} else if (strncmp(text, why, strlen(why)) == 0) {
			text += strlen(why);
			used += (size_t)snprintf(ret + used, 8, "E");
		} else if (*text >= '0' && *text <= '9') {
			ret[used++] = 'N';
			text += strspn(text, "0123456789.");
		} else {
			ret[used++] = *text++;
		}
	}
	ret[used] = '\0';
	char *end = strpbrk(ret, ";(");
	if (end && end > ret + 20)
		*end = '\0';
	for (used = strlen(ret); used > 0 && ret[used - 1] == ' '; used--)
		ret[used - 1] = '\0';
}

static inline bool reported_has(const struct messages *messages, const char *text)
{
	for (unsigned i = 0; i < messages->count; i++)
		if (strcmp(messages->text[i], text) == 0)
			return true;
	return false;
}

static inline void reported_add(struct messages *messages, const char *text)
{
	if (reported_has(messages, text))
		return;
	assert_true(messages->count < MESSAGES_MAX);
	snprintf(messages->text[messages->count++], MESSAGES_BYTES, "%s", text);
}

void nm_journal_emit(struct nm_journal *ignored, const struct nm_entry *entry, uint64_t now_ns)
{
	char plain[MESSAGES_BYTES];
	(void)ignored, (void)now_ns;
	ordeal.started = ordeal.started || entry->message == NM_MESSAGE_START;
	ordeal.stopped = ordeal.stopped || entry->message == NM_MESSAGE_STOP;
	ordeal.moved += entry->message == NM_MESSAGE_DECISION && entry->priority > LOG_WARNING;
	ordeal.homes += strncmp(entry->text, "Placed ", strlen("Placed ")) == 0;
	if (entry->priority > LOG_WARNING && entry->message != NM_MESSAGE_PROBLEM)
		return;
	reported_plain(entry->text, plain);
	reported_add(&ordeal.messages, plain);
}

/* ---- the ops, each through the gate ---- */

#define GATED(type, name, op, parameters, ...)                                                     \
	static inline type gated_##name parameters                                                 \
	{                                                                                          \
		int r = gate_check(op);                                                            \
		return r < 0 ? r : ordeal.below.name(__VA_ARGS__);                                 \
	}

GATED(int, list_directory, GATE_LIST_DIRECTORY,
      (struct nm_platform * p, int fd, const char *path, nm_name_fn each, void *context), p, fd,
      path, each, context)
GATED(ssize_t, read_attribute, GATE_READ_ATTRIBUTE,
      (struct nm_platform * p, int fd, const char *name, void *buffer, size_t size), p, fd, name,
      buffer, size)
GATED(int, owner, GATE_OWNER, (struct nm_platform * p, int fd, struct nm_owner *ret), p, fd, ret)
GATED(int, event_open, GATE_EVENT_OPEN,
      (struct nm_platform * p, enum nm_event_kind kind, int cpu, uint64_t period), p, kind, cpu,
      period)
GATED(int, event_map, GATE_EVENT_MAP, (struct nm_platform * p, int fd, size_t bytes, void **ret), p,
      fd, bytes, ret)
GATED(int, event_ioctl, GATE_EVENT_IOCTL,
      (struct nm_platform * p, int fd, unsigned long request, void *argument), p, fd, request,
      argument)
GATED(int, event_read, GATE_EVENT_READ, (struct nm_platform * p, int fd, void *buffer, size_t size),
      p, fd, buffer, size)

/* A thread reported as exited exits. */
static inline int gated_thread(enum gate_op op, const struct fake_thread *thread)
{
	int r = gate_check(op);
	if (!thread || !thread->alive || thread->state == 'Z' || (r != -ENOENT && r != -ESRCH))
		return r;
	if (thread->tid == thread->pid)
		fake_kill(ordeal.world->fake, thread->pid);
	else
		fake_exit(ordeal.world->fake, thread->tid);
	return r;
}

static inline int gated_open_directory(struct nm_platform *platform, int directory,
				       const char *path)
{
	int r = gated_thread(GATE_OPEN_DIRECTORY, fake_of_path(ordeal.world->fake, path));
	return r < 0 ? r : ordeal.below.open_directory(platform, directory, path);
}

static inline int gated_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	int r = gated_thread(GATE_AFFINITY_GET, fake_find(ordeal.world->fake, (uint32_t)tid));
	return r < 0 ? r : ordeal.below.affinity_get(platform, tid, ret);
}

static inline int gated_affinity_set(struct nm_platform *platform, pid_t tid,
				     hwloc_const_bitmap_t cpus)
{
	int r = gated_thread(GATE_AFFINITY_SET, fake_find(ordeal.world->fake, (uint32_t)tid));
	return r < 0 ? r : ordeal.below.affinity_set(platform, tid, cpus);
}

static inline const struct fake_thread *gated_thread_of_fd(const struct fake *fake, int fd)
{
	for (size_t i = 0; i < FAKE_THREADS && fd >= FAKE_FD_BASE; i++)
		if (fake->threads[i].alive &&
		    fake->threads[i].identity == fake->open[fd - FAKE_FD_BASE])
			return &fake->threads[i];
	return NULL;
}

static inline int gated_hardware_list(struct nm_platform *platform,
				      const struct nm_event_selection *selection,
				      struct nm_event_list *ret)
{
	int r = gate_check(GATE_HARDWARE_LIST);
	return r < 0 ? r : fake_hardware_list(&world_of(platform)->perf.platform, selection, ret);
}

static inline int gated_hardware_open(struct nm_platform *platform,
				      const struct nm_event_request *request,
				      struct nm_event_fds *ret)
{
	int r = gate_check(GATE_HARDWARE_OPEN);
	return r < 0 ? r : fake_hardware_open(&world_of(platform)->perf.platform, request, ret);
}

static inline uint64_t gated_now_ns(struct nm_platform *platform)
{
	(void)platform;
	return gate.now_ns;
}

static inline ssize_t gated_read_load(const struct world *world, char *buffer, size_t size)
{
	char text[512] = "";
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "cpu%u %" PRIu64 " 0 0 %" PRIu64 " 0 0 0 0\n", cpu, world->busy[cpu],
			 world->idle[cpu]);
	return world_give(buffer, size, text);
}

static inline ssize_t gated_read_file(struct nm_platform *platform, int directory, const char *path,
				      char *buffer, size_t size)
{
	int r = gated_thread(GATE_READ_FILE, gated_thread_of_fd(ordeal.world->fake, directory));
	if (r < 0)
		return r;
	if (strcmp(path, "proc/stat") == 0)
		return gated_read_load(world_of(platform), buffer, size);
	if (strcmp(path, "proc/sys/kernel/numa_balancing") == 0)
		return world_give(buffer, size, ordeal.balancing ? "1\n" : "0\n");
	if (strstr(path, "/schedstat")) { /* each thread runs 33 % of the time */
		char text[64];
		snprintf(text, sizeof(text), "%" PRIu64 " 2000000 7\n", gate.now_ns / 3);
		return world_give(buffer, size, text);
	}
	gate.on = false; /* the machine has its own memory */
	ssize_t length = ordeal.below.read_file(platform, directory, path, buffer, size);
	gate.on = true;
	return length;
}

/*
 * Queries are answered by this machine although page locations otherwise come from samples. With an
 * error the query is refused, or hangs for GATE_HANGS.
 */
static inline int gated_ask(struct nm_platform *platform, const struct nm_memory_query *question,
			    uint64_t *ret_query_id)
{
	int r = gate_check(GATE_ASK);
	if (r < 0 && r != -GATE_HANGS)
		return r;
	fake_asked.hangs = r == -GATE_HANGS;
	return ordeal.below.memory_query(platform, question, ret_query_id);
}

static inline int gated_numa_balancing_set(struct nm_platform *platform, int value)
{
	int r = gate_check(GATE_NUMA_BALANCING_SET);
	(void)platform;
	if (r == 0)
		ordeal.balancing = value > 0;
	return r;
}

/* ---- sd-event's loop ---- */

int __wrap_sd_event_add_time_relative(sd_event *event, sd_event_source **ret, clockid_t clock,
				      uint64_t usec, uint64_t accuracy,
				      sd_event_time_handler_t handler, void *context);
int __wrap_sd_event_add_signal(sd_event *event, sd_event_source **ret, int number,
			       sd_event_signal_handler_t handler, void *context);
int __wrap_sd_event_exit(sd_event *event, int code);
int __wrap_sd_event_loop(sd_event *event);
int __real_sd_event_add_time_relative(sd_event *event, sd_event_source **ret, clockid_t clock,
				      uint64_t usec, uint64_t accuracy,
				      sd_event_time_handler_t handler, void *context);

/* The timers of the daemon are, in this order, those of the interval, the nudges and the mover. The
 * retry timer of the bus is not replaced. */
int __wrap_sd_event_add_time_relative(sd_event *event, sd_event_source **ret, clockid_t clock,
				      uint64_t usec, uint64_t accuracy,
				      sd_event_time_handler_t handler, void *context)
{
	if (!ordeal.on_interval)
		ordeal.on_interval = handler;
	else if (!ordeal.on_nudge)
		ordeal.on_nudge = handler;
	else if (!ordeal.on_mover)
		ordeal.on_mover = handler;
	return __real_sd_event_add_time_relative(event, ret, clock, usec, accuracy, handler,
						 context);
}

int __wrap_sd_event_add_signal(sd_event *event, sd_event_source **ret, int number,
			       sd_event_signal_handler_t handler, void *context)
{
	(void)event, (void)ret;
	if (number == SIGHUP) {
		ordeal.on_reload = handler;
		ordeal.daemon = context;
	}
	return 0;
}

int __wrap_sd_event_exit(sd_event *event, int code)
{
	(void)event;
	ordeal.exits = true;
	ordeal.interval = (unsigned)-code; /* the return value of the loop */
	return 0;
}

/* ---- a life ---- */

static inline bool ordeal_can_record(int cpu)
{
	const struct fake_event *leader = perf_find(&ordeal.world->perf, NM_EVENT_SIDEBAND, cpu);
	return leader && leader->map;
}

static inline void ordeal_work(struct world *world, uint32_t tid, unsigned node)
{
	const struct fake_thread *thread = fake_find(world->fake, tid);
	if (!thread)
		return;
	int cpu = thread->processor;
	world->busy[cpu] += 20;
	world->idle[cpu] -= 20;
	struct fake_perf *perf = &world->perf;
	if (!ordeal_can_record(cpu))
		return;
	bool clock = perf_find(perf, NM_EVENT_CLOCK, cpu);
	bool fault = perf_find(perf, NM_EVENT_FAULT_MIN, cpu);
	uint64_t clock_id = clock ? fake_id(perf, NM_EVENT_CLOCK, cpu) : 0;
	uint64_t fault_id = fault ? fake_id(perf, NM_EVENT_FAULT_MIN, cpu) : 0;
	struct record_ring ring = fake_ring(perf, cpu);
	/* The first page must be queried. */
	for (unsigned i = 0; i < ORDEAL_SAMPLES; i++) {
		uint64_t page = (tid % 8) * 4096 + i;
		if (clock)
			record_run(&ring, clock_id, thread->pid, tid, gate.now_ns);
		if (fault)
			record_fault(&ring, fault_id, thread->pid, tid, gate.now_ns,
				     0x7f0000000000 + page * 4096,
				     i > 0 ? machine_address(node, page * 4096) : 0);
	}
	fake_publish(perf, cpu, &ring);
}

/* Records of the actions of the threads, as the kernel would write them. */
static inline void ordeal_record_tasks(struct fake *fake)
{
	for (unsigned i = 0; i < fake->nr_events && ordeal_can_record(0); i++) {
		const struct nm_task_event *event = &fake->events[i];
		uint32_t ids[4] = {event->pid, event->parent_pid, event->tid, event->parent_tid};
		struct record_ring ring = fake_ring(&ordeal.world->perf, 0);
		if (event->kind == NM_TASK_FORK || event->kind == NM_TASK_EXIT)
			record_fork_exit(&ring, event->kind == NM_TASK_FORK, ids, gate.now_ns);
		else
			record_comm(&ring, true, event->pid, event->tid, "other", gate.now_ns);
		fake_publish(&ordeal.world->perf, 0, &ring);
	}
	fake->nr_events = 0;
}

static inline void ordeal_second(void)
{
	struct world *world = ordeal.world;
	fake_sleep(world->fake, 1000);
	gate.now_ns = world->fake->now_ns;
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		world->idle[cpu] += 100;
	ordeal_record_tasks(world->fake);
	for (unsigned i = 0; i < WORKERS; i++)
		if (world->workers[i].tid)
			ordeal_work(world, world->workers[i].tid, world->workers[i].memory_node);
}

#define ORDEAL_GENERAL "targets: { min_cpu_percent = 0; min_rss_mb = 1; };\n"

static inline void ordeal_configure(const char *policy, const char *inject)
{
	/* Policy "auto" migrates memory itself. */
	bool homes = strcmp(policy, "auto") == 0;
	/* The memory of all is where most of them do not run, until another policy begins: a slot
	 * of a last move would outlive the daemon, for `--restore`. */
	static const int on_node_1[512] = {[0 ... 511] = 1};
	fake_asked.pages = homes && !ordeal.only ? on_node_1 : NULL;
	fake_asked.nr_pages = fake_asked.pages ? 512 : 0;
	const char *pages = homes ? "watch" : "exclusivity";
	char text[1024];
	snprintf(text, sizeof(text),
		 ORDEAL_GENERAL "parameters: { sampling: { inject = \"%s\"; }; };\n"
				"threads: { policy = \"%s\"; };\n"
				"pages: { policy = \"%s\"; numa_balancing = \"warn\"; };\n"
				"metrics: { file = \"%s/figures.prom\"; };\n",
		 inject, policy, pages, ordeal.world->root);
	world_configure(ordeal.world, text);
	fixture_file(ordeal.world->root, "parameters",
		     "page_cooldown_s = 0; max_tracked = 2000;\n");
}

static inline void ordeal_reload(const char *policy)
{
	ordeal_configure(ordeal.only ? ordeal.only : policy, "none");
	(void)ordeal.on_reload(NULL, NULL, ordeal.daemon);
}

/* The process forked by 104 runs from now on. */
static inline void ordeal_child_works(void)
{
	ordeal.world->workers[0].tid = 1004;
}

static inline void ordeal_worker_is_now_at(unsigned i, unsigned node)
{
	ordeal.world->workers[i].memory_node = node;
}

static inline bool ordeal_lives(uint32_t tid)
{
	const struct fake_thread *thread = fake_find(ordeal.world->fake, tid);
	return thread && thread->state != 'Z';
}

static inline void ordeal_happens(unsigned interval)
{
	struct fake *fake = ordeal.world->fake;
	switch (interval) {
	case 6:
		fake_set_attribute(fake, "/a.slice", "observe");
		break;
	case 9:
		if (ordeal_lives(100))
			(void)fake_clone(fake, 100, 1001);
		if (ordeal_lives(104))
			(void)fake_fork(fake, 104, 1004);
		break;
	case 12:
		ordeal_worker_is_now_at(1, 1);
		if (ordeal_lives(103))
			fake_pin(fake, 103, fake_cpus(0, 2));
		break;
	case 15:
		if (ordeal_lives(102))
			fake_exec(fake, 102);
		fake_set_attribute(fake, "/a.slice", "nonsense");
		break;
	case 17:
		(void)nm_command_pause(ordeal.daemon);
		break;
	case 19:
		ordeal.refused = nm_command_resume(ordeal.daemon) < 0;
		break;
	case 23:
		(void)nm_command_release(ordeal.daemon, 101);
		break;
	case 24:
		ordeal_reload("lbma");
		break;
	case 29:
		ordeal_reload("imar2");
		ordeal_worker_is_now_at(0, 0);
		break;
	case 32:
		ordeal_reload("balance");
		break;
	case 34:
		if (ordeal_lives(100))
			fake_kill(fake, 100);
		break;
	case 35:
		ordeal_reload("kmaf");
		break;
	case 36:
		ordeal_child_works();
		break;
	case 38:
		ordeal_reload("auto");
		break;
	case 44:
		ordeal_reload("none");
		break;
	default:
		break;
	}
}

/* Policy "auto" must keep the arrays of each of its processes, even after an interrupted
 * interval. */
static inline void ordeal_require_arrays(void)
{
	const struct nm_placement *placement = nm_placement_of(&ordeal.daemon->pipeline);
	for (size_t i = 0; placement && i < placement->processes.count; i++)
		if (!nm_home_state_at(placement, i)->input.ran_on) {
			fprintf(stderr, "interval %u: process %u has no arrays\n", ordeal.interval,
				nm_home_state_at(placement, i)->pid);
			abort();
		}
}

int __wrap_sd_event_loop(sd_event *event)
{
	unsigned life = ordeal.short_life ? ordeal.short_life : LIFE;
	(void)event;
	for (unsigned i = 1; i <= life && !ordeal.exits; i++) {
		ordeal.interval = i;
		ordeal_second();
		if (ordeal.in_each)
			ordeal.in_each();
		else
			ordeal_happens(i);
		if (ordeal.exits)
			break;
		(void)ordeal.on_interval(NULL, 0, ordeal.daemon);
		ordeal_require_arrays();
		for (unsigned nudge = 0; nudge < 3 && !ordeal.exits; nudge++) {
			gate.now_ns += 20 * NM_NSEC_PER_MSEC;
			(void)ordeal.on_nudge(NULL, 0, ordeal.daemon);
		}
	}
	return ordeal.exits ? -(int)ordeal.interval : 0;
}

/* ---- set-up and checks ---- */

static inline unsigned ordeal_fds(void)
{
	unsigned count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Adds core counters beside the faults, so that events are probed too. None counts traffic:
 * programs without any would gain nothing by near memory. */
static inline void ordeal_add_counters(struct fake_perf *perf)
{
	static const enum nm_event_kind kinds[] = {NM_EVENT_INSTRUCTIONS, NM_EVENT_FLOPS};
	struct nm_event_list *list = &perf->hardware[NM_MEMORY_NONE];
	for (unsigned i = 0; i < 2; i++)
		list->words[list->count++] =
			(struct nm_event_word){.kind = kinds[i], .unit = 1, .period_multiple = 1};
}

static inline void ordeal_set_out(void)
{
	struct world *world = ordeal.world = world_new();
	ordeal.below = *world->platform.ops;
	ordeal.ops = ordeal.below;
	ordeal.ops.now_ns = gated_now_ns;
	ordeal.ops.open_directory = gated_open_directory;
	ordeal.ops.read_file = gated_read_file;
	ordeal.ops.list_directory = gated_list_directory;
	ordeal.ops.memory_query = gated_ask;
	fake_asked.hides_nodes = true;
	ordeal.ops.read_attribute = gated_read_attribute;
	ordeal.ops.owner = gated_owner;
	ordeal.ops.affinity_get = gated_affinity_get;
	ordeal.ops.affinity_set = gated_affinity_set;
	ordeal.ops.event_open = gated_event_open;
	ordeal.ops.hardware_list = gated_hardware_list;
	ordeal.ops.hardware_open = gated_hardware_open;
	ordeal.ops.event_map = gated_event_map;
	ordeal.ops.event_ioctl = gated_event_ioctl;
	ordeal.ops.event_read = gated_event_read;
	ordeal.ops.numa_balancing_set = gated_numa_balancing_set;
	world->platform.ops = &ordeal.ops;
	for (uint32_t pid = 100; pid < 100 + WORKERS; pid++)
		world_worker(world, pid, pid % 2 == 0 ? 1 : 0);
	ordeal_add_counters(&world->perf);
	(void)fake_group(world->fake, "/");
	(void)fake_group(world->fake, "/a.slice");
	fake_move(world->fake, 102, "/a.slice/x.service");
	fake_sleep(world->fake, 60000);
	ordeal.pristine = malloc(sizeof(*ordeal.pristine));
	memcpy(ordeal.pristine, world->fake, sizeof(*ordeal.pristine));
}

/* The initial machine, without files of an earlier run or failing calls. */
static inline void ordeal_anew(void)
{
	static const char *const files[] = {"ledger",	   "ledger.new",   "ledger.damaged",
					    NM_MOVES_NAME, "figures.prom", NM_RELEASED_NAME};
	struct world *world = ordeal.world;
	char path[FIXTURE_PATH + 64];
	memcpy(world->fake, ordeal.pristine, sizeof(*world->fake));
	memset(world->busy, 0, sizeof(world->busy));
	memset(world->idle, 0, sizeof(world->idle));
	for (unsigned i = 0; i < WORKERS; i++) {
		world->workers[i].tid = 100 + i;
		ordeal_worker_is_now_at(i, i % 2 == 0 ? 1 : 0);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s", world->root, files[i]);
		(void)unlink(path);
	}
	fake_mover = (struct fake_mover){0};
	ordeal.balancing = 0;
	memset(&gate, 0, offsetof(struct gate, live));
	gate.now_ns = world->fake->now_ns;
	ordeal_configure(ordeal.only ? ordeal.only : "lbma", "numa_balancing");
}

/* Runs the daemon from start to end, or with options.restore; returns its exit status. */
static inline int ordeal_live(void)
{
	ordeal.messages.count = 0;
	ordeal.started = ordeal.stopped = ordeal.exits = ordeal.refused = false;
	ordeal.on_interval = ordeal.on_nudge = NULL;
	ordeal.moved = ordeal.homes = 0;
	sigset_t signals;
	(void)sigprocmask(SIG_SETMASK, NULL, &signals);
	gate.on = true;
	int status = nm_daemon_run(&ordeal.world->options);
	gate.on = false;
	(void)sigprocmask(SIG_SETMASK, &signals,
			  NULL); /* so that the test itself can be interrupted */
	return status;
}

/* Runs `numa-migrd --restore` without failures; returns its exit status. */
static inline int ordeal_restore(void)
{
	ordeal.world->options.restore = true;
	gate.fail_at = gate.die_at = 0;
	gate.full = false;
	int status = ordeal_live();
	ordeal.world->options.restore = false;
	return status;
}

static inline bool ordeal_there_is(const char *name)
{
	char path[FIXTURE_PATH + 64];
	snprintf(path, sizeof(path), "%s/%s", ordeal.world->root, name);
	return access(path, F_OK) == 0;
}

static inline void ordeal_end(void)
{
	free(ordeal.pristine);
	world_free(ordeal.world);
}

#endif

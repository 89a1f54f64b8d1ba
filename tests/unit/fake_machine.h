/* SPDX-License-Identifier: MIT */
/*
 * A machine in memory behind the ops table: threads, processes, cgroups with cpusets, and their
 * files in /proc. A test acts as the owner of the machine (fake_fork, fake_exec, fake_pin, …)
 * before, between or during calls: fake_at() runs a function just before the n-th call of a kind,
 * and fake_fail() makes calls fail. All state is plain data in shared memory, so that a test may
 * fork, let the child die at any call, and examine the result.
 */
#ifndef NM_TEST_FAKE_MACHINE_H
#define NM_TEST_FAKE_MACHINE_H

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/platform.h"
#include "sample/sample.h"

#ifndef FAKE_THREADS /* a benchmark has more threads and deeper cgroups */
#define FAKE_THREADS 160
#define FAKE_CGROUP_BYTES 96
#endif
#define FAKE_CGROUPS 48
#define FAKE_GROUPS 320
#define FAKE_FDS 64
#define FAKE_HOOKS 16
#define FAKE_EVENTS 512
#define FAKE_FD_BASE 1000
#define FAKE_DIED 99 /* exit status of a child that died at a call */
#define FAKE_TICK_NS (10 * NM_NSEC_PER_MSEC)
#define FAKE_KTHREAD 0x00200000U
#define FAKE_NO_SETAFFINITY 0x04000000U

/* The jobs of the mover are those of mover_fixture.h. */
enum fake_op {
	FAKE_OPEN,
	FAKE_READ,
	FAKE_LIST,
	FAKE_CLOSE,
	FAKE_GET,
	FAKE_SET,
	FAKE_MAPPINGS,
	FAKE_UNITS,
	FAKE_RANGES,
	FAKE_OPS
};

struct fake_thread {
	bool alive;
	char state;
	uint32_t pid, tid, ppid, session, uid, flags, ns_pid;
	uint64_t start_ticks, ran_ticks, rss_kb;
	uint64_t shared_kb;  /* part of rss_kb that is not anonymous */
	uint64_t hugetlb_kb; /* in addition to rss_kb */
	unsigned policy;
	int nice, processor;
	bool stuck;		/* stays on its CPU despite its affinity */
	bool subreaper;		/* adopts orphans among its descendants */
	bool many_groups;	/* more than fit into its status, which takes long to write */
	uint64_t mask;		/* effective for the scheduler */
	uint64_t user;		/* kept by newer kernels from the last sched_setaffinity; 0: none */
	uint64_t own, own_user; /* their values without the daemon */
	unsigned identity;	/* the thread of an open directory */
	char cgroup[FAKE_CGROUP_BYTES], comm[64];
};

/* The directory of a cgroup (fake_cgroups.h). */
struct fake_group {
	char path[96], attribute[96];
	bool has_attribute, others_write, gone;
	uint32_t uid;
};

struct fake;
typedef void (*fake_fn)(struct fake *fake);

struct fake_hook {
	enum fake_op op; /* FAKE_OPS: any */
	unsigned at;	 /* the count at which it acts; 0: done */
	unsigned times;	 /* number of calls that fail from then on */
	int error;
	fake_fn run;
};

struct fake {
	struct nm_platform platform;
	void *memory; /* of mover_fixture.h */
	uint64_t now_ns;
	uint64_t all, online;	     /* CPUs */
	uint64_t pool_kb;	     /* huge pages of the machine */
	uint64_t free_kb, cached_kb; /* of each node; free_kb 0: not reported */
	bool remembers;		     /* the kernel keeps the affinity set by the user (since 6.2) */
	bool no_uptime;
	bool sched_ext;	 /* a scheduler of sched_ext is active */
	bool no_cpusets; /* as with cgroup v1: unreadable, all online CPUs allowed */
	struct fake_thread threads[FAKE_THREADS];
	unsigned identities;
	struct {
		char path[96];
		uint64_t cpus;
	} cgroups[FAKE_CGROUPS];
	unsigned nr_cgroups;
	bool names_cpusets; /* /proc/TID/cpuset exists (CONFIG_PROC_PID_CPUSET) */
	struct fake_limit {
		char path[96];
		char text[32], weight[32]; /* cpu.max, cpu.weight; "": no such file */
	} limits[FAKE_CGROUPS];
	unsigned nr_limits;
	struct fake_group groups[FAKE_GROUPS];
	unsigned nr_groups;
	unsigned attribute_reads;
	unsigned statuses, long_statuses; /* how many were written */
	unsigned open[FAKE_FDS];	  /* identities; 0: free */
	unsigned calls[FAKE_OPS + 1];
	struct fake_hook hooks[FAKE_HOOKS];
	unsigned die_at; /* the call of any kind at which the process exits */
	struct nm_task_event events[FAKE_EVENTS];
	unsigned nr_events;
};

static inline struct fake *fake_of(struct nm_platform *platform)
{
	return (struct fake *)(void *)platform;
}

/* Returns the thread of an open directory, or NULL if it has exited. */
static inline struct fake_thread *fake_opened(struct fake *fake, int fd)
{
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive &&
		    fake->threads[i].identity == fake->open[fd - FAKE_FD_BASE])
			return &fake->threads[i];
	return NULL;
}

/* ---- affinities ---- */

static inline uint64_t fake_from_bitmap(hwloc_const_bitmap_t bitmap)
{
	uint64_t mask = 0;
	for (unsigned cpu = 0; cpu < 64; cpu++)
		if (hwloc_bitmap_isset(bitmap, cpu))
			mask |= UINT64_C(1) << cpu;
	return mask;
}

static inline void fake_to_bitmap(uint64_t mask, hwloc_bitmap_t ret)
{
	hwloc_bitmap_zero(ret);
	for (unsigned cpu = 0; cpu < 64; cpu++)
		if (mask >> cpu & 1)
			hwloc_bitmap_set(ret, cpu);
}

static inline uint64_t fake_cpus(unsigned first, unsigned last)
{
	return (UINT64_MAX >> (63 - last)) & ~((UINT64_C(1) << first) - 1);
}

/* ---- threads ---- */

static inline struct fake_thread *fake_find(struct fake *fake, uint32_t tid)
{
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive && fake->threads[i].tid == tid)
			return &fake->threads[i];
	return NULL;
}

static inline struct fake_thread *fake_get(struct fake *fake, uint32_t tid)
{
	struct fake_thread *thread = fake_find(fake, tid);
	assert(thread && "no such thread");
	return thread;
}

static inline uint64_t fake_ticks(const struct fake *fake)
{
	return fake->now_ns / FAKE_TICK_NS;
}

static inline void fake_sleep(struct fake *fake, unsigned ms)
{
	fake->now_ns += ms * NM_NSEC_PER_MSEC;
}

static inline uint64_t fake_allowed(const struct fake *fake, const char *cgroup)
{
	uint64_t cpus = fake->online;
	size_t best = 0;
	for (unsigned i = 0; i < fake->nr_cgroups; i++) {
		const char *path = fake->cgroups[i].path;
		size_t length = strlen(path);
		if (strncmp(cgroup, path, length) == 0 &&
		    (cgroup[length] == '/' || cgroup[length] == '\0') && length > best) {
			best = length;
			cpus = fake->cgroups[i].cpus & fake->online;
		}
	}
	return cpus;
}

static inline struct fake_thread *fake_place(struct fake *fake, const struct fake_thread *like)
{
	for (size_t i = 0; i < FAKE_THREADS; i++) {
		struct fake_thread *thread = &fake->threads[i];
		if (thread->alive)
			continue;
		*thread = *like;
		thread->alive = true;
		thread->identity = ++fake->identities;
		thread->start_ticks = fake_ticks(fake);
		return thread;
	}
	assert(0 && "too many threads");
	return NULL;
}

static inline void fake_notify(struct fake *fake, enum nm_task_event_kind kind, uint32_t pid,
			       uint32_t tid, uint32_t parent_pid, uint32_t parent_tid)
{
	assert(fake->nr_events < FAKE_EVENTS);
	fake->events[fake->nr_events++] = (struct nm_task_event){
		.kind = kind,
		.pid = pid,
		.tid = tid,
		.parent_pid = parent_pid,
		.parent_tid = parent_tid,
		.time_ns = fake->now_ns,
	};
}

/* A process that existed before the test, on all CPUs. */
static inline struct fake_thread *fake_process(struct fake *fake, uint32_t pid, uint32_t ppid)
{
	struct fake_thread like = {
		.state = 'R',
		.pid = pid,
		.tid = pid,
		.ppid = ppid,
		.session = pid,
		.uid = 1000,
		.ns_pid = pid,
		.rss_kb = 1024 * 1024,
		.cgroup = "/",
		.mask = fake->all,
		.own = fake->all,
	};
	snprintf(like.comm, sizeof(like.comm), "prog%u", pid);
	return fake_place(fake, &like);
}

static inline struct fake_thread *fake_clone(struct fake *fake, uint32_t creator, uint32_t tid)
{
	struct fake_thread like = *fake_get(fake, creator);
	like.tid = tid;
	like.ns_pid = tid;
	fake_notify(fake, NM_TASK_FORK, like.pid, tid, like.pid, creator);
	return fake_place(fake, &like);
}

static inline struct fake_thread *fake_fork(struct fake *fake, uint32_t creator, uint32_t pid)
{
	struct fake_thread like = *fake_get(fake, creator);
	fake_notify(fake, NM_TASK_FORK, pid, pid, like.pid, creator);
	like.ppid = like.pid;
	like.pid = like.tid = like.ns_pid = pid;
	like.subreaper = false;
	return fake_place(fake, &like);
}

static inline uint32_t fake_reaper(struct fake *fake, uint32_t pid)
{
	while (pid > 1) {
		struct fake_thread *ancestor = fake_find(fake, pid);
		if (!ancestor)
			return 1;
		if (ancestor->subreaper)
			return pid;
		pid = ancestor->ppid;
	}
	return 1;
}

static inline unsigned fake_count(const struct fake *fake, uint32_t pid)
{
	unsigned count = 0;
	for (size_t i = 0; i < FAKE_THREADS; i++)
		count += fake->threads[i].alive && fake->threads[i].pid == pid;
	return count;
}

static inline void fake_bury(struct fake *fake, uint32_t pid, uint32_t ppid)
{
	for (size_t i = 0; i < FAKE_THREADS; i++) {
		struct fake_thread *thread = &fake->threads[i];
		if (thread->alive && thread->pid == pid)
			thread->alive = false;
		if (thread->alive && thread->ppid == pid)
			thread->ppid = fake_reaper(fake, ppid);
	}
}

/* Ends one thread; a leader stays as a zombie until it is the last one. */
static inline void fake_exit(struct fake *fake, uint32_t tid)
{
	struct fake_thread *thread = fake_get(fake, tid);
	uint32_t pid = thread->pid;
	fake_notify(fake, NM_TASK_EXIT, pid, tid, thread->ppid, thread->ppid);
	if (tid != pid)
		thread->alive = false;
	else
		thread->state = 'Z';
	struct fake_thread *leader = fake_find(fake, pid);
	if (leader && leader->state == 'Z' && fake_count(fake, pid) == 1)
		fake_bury(fake, pid, leader->ppid);
}

static inline void fake_kill(struct fake *fake, uint32_t pid)
{
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive && fake->threads[i].pid == pid &&
		    fake->threads[i].tid != pid)
			fake_exit(fake, fake->threads[i].tid);
	fake_exit(fake, pid);
}

/* Executes a new program: all other threads end, and the caller gets the number of the leader. */
static inline void fake_exec(struct fake *fake, uint32_t tid)
{
	struct fake_thread *caller = fake_get(fake, tid);
	uint32_t pid = caller->pid;
	struct fake_thread *leader = fake_get(fake, pid);
	for (size_t i = 0; i < FAKE_THREADS; i++) {
		struct fake_thread *thread = &fake->threads[i];
		if (!thread->alive || thread->pid != pid || thread == caller)
			continue;
		fake_notify(fake, NM_TASK_EXIT, pid, thread->tid, thread->ppid, thread->ppid);
		thread->alive = false;
	}
	caller->identity = leader->identity;
	caller->start_ticks = leader->start_ticks;
	caller->tid = pid;
	fake_notify(fake, NM_TASK_EXEC, pid, pid, 0, 0);
}

static inline void fake_settle(struct fake_thread *thread)
{
	if (!thread->stuck && !(thread->mask >> thread->processor & 1))
		thread->processor = __builtin_ctzll(thread->mask);
}

/* sched_setaffinity by any caller. */
static inline int fake_set_mask(struct fake *fake, uint32_t tid, uint64_t mask)
{
	struct fake_thread *thread = fake_find(fake, tid);
	if (!thread)
		return -ESRCH;
	if (thread->flags & FAKE_NO_SETAFFINITY)
		return -EINVAL;
	uint64_t effect = mask & fake_allowed(fake, thread->cgroup);
	if (!effect)
		return -EINVAL;
	thread->mask = effect;
	thread->user = fake->remembers ? mask : 0;
	fake_settle(thread);
	return 0;
}

/* By the owner of the thread. */
static inline void fake_pin(struct fake *fake, uint32_t tid, uint64_t mask)
{
	int r = fake_set_mask(fake, tid, mask);
	assert(r == 0);
	(void)r;
	struct fake_thread *thread = fake_get(fake, tid);
	thread->own = thread->mask;
	thread->own_user = thread->user;
}

/* Returns the first thread whose affinity differs from its value without the daemon, or NULL. */
static inline const struct fake_thread *fake_trace(const struct fake *fake)
{
	for (size_t i = 0; i < FAKE_THREADS; i++)
		if (fake->threads[i].alive && fake->threads[i].mask != fake->threads[i].own)
			return &fake->threads[i];
	return NULL;
}

/* Applies a changed cpuset to a thread, as the kernel does. */
static inline void fake_apply_cpuset(struct fake *fake, struct fake_thread *thread)
{
	uint64_t allowed = fake_allowed(fake, thread->cgroup);
	thread->mask = thread->user & allowed ? thread->user & allowed : allowed;
	thread->own = thread->own_user & allowed ? thread->own_user & allowed : allowed;
	fake_settle(thread);
}

static inline void fake_cpuset(struct fake *fake, const char *path, uint64_t cpus)
{
	unsigned i = 0;
	while (i < fake->nr_cgroups && strcmp(fake->cgroups[i].path, path) != 0)
		i++;
	assert(i < FAKE_CGROUPS);
	if (i == fake->nr_cgroups)
		snprintf(fake->cgroups[fake->nr_cgroups++].path, sizeof(fake->cgroups[i].path),
			 "%s", path);
	fake->cgroups[i].cpus = cpus;
	for (size_t t = 0; t < FAKE_THREADS; t++) {
		struct fake_thread *thread = &fake->threads[t];
		if (thread->alive && strncmp(thread->cgroup, path, strlen(path)) == 0)
			fake_apply_cpuset(fake, thread);
	}
}

static inline void fake_move(struct fake *fake, uint32_t pid, const char *cgroup)
{
	for (size_t i = 0; i < FAKE_THREADS; i++) {
		struct fake_thread *thread = &fake->threads[i];
		if (!thread->alive || thread->pid != pid)
			continue;
		snprintf(thread->cgroup, sizeof(thread->cgroup), "%s", cgroup);
		fake_apply_cpuset(fake, thread);
	}
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The machine of fake_machine.h behind the ops table. Actions of its owner may happen between or
 * during calls: fake_at() runs a function just before the n-th call of a kind, and fake_fail()
 * makes calls fail. It is in shared memory, so that a test may fork, let the child die at any call,
 * and examine the result.
 */
#ifndef NM_TEST_FAKE_PLATFORM_H
#define NM_TEST_FAKE_PLATFORM_H

#include <sys/mman.h>
#include <unistd.h>

#include "../support/fake_ask.h"
#include "fake_cgroups.h"
#include "fake_machine.h"

/* ---- hooks of calls ---- */

static inline struct fake_hook *fake_hook(struct fake *fake, enum fake_op op, unsigned nth)
{
	for (size_t i = 0; i < FAKE_HOOKS; i++) {
		struct fake_hook *hook = &fake->hooks[i];
		if (hook->at)
			continue;
		*hook = (struct fake_hook){.op = op, .at = fake->calls[op] + nth, .times = 1};
		return hook;
	}
	assert(0 && "too many hooks");
	return NULL;
}

/* Calls `run` just before the n-th call of this kind from now on (FAKE_OPS: of any kind). */
static inline void fake_at(struct fake *fake, enum fake_op op, unsigned nth, fake_fn run)
{
	fake_hook(fake, op, nth)->run = run;
}

/* Makes `times` calls of this kind fail, starting with the n-th from now on. */
static inline void fake_fail(struct fake *fake, enum fake_op op, unsigned nth, unsigned times,
			     int error)
{
	struct fake_hook *hook = fake_hook(fake, op, nth);
	hook->times = times;
	hook->error = error;
}

static inline void fake_calm(struct fake *fake)
{
	memset(fake->hooks, 0, sizeof(fake->hooks));
}

static inline int fake_check_gate(struct fake *fake, enum fake_op kind, enum fake_op op)
{
	int error = 0;
	for (size_t i = 0; i < FAKE_HOOKS; i++) {
		struct fake_hook *hook = &fake->hooks[i];
		if (hook->op != kind || !hook->at || fake->calls[kind] < hook->at)
			continue;
		fake_fn run = hook->run;
		if (hook->error && op != FAKE_CLOSE)
			error = -hook->error;
		if (--hook->times == 0)
			hook->at = 0;
		if (run)
			run(fake);
	}
	return error;
}

static inline int fake_enter(struct fake *fake, enum fake_op op)
{
	fake->calls[op]++;
	fake->calls[FAKE_OPS]++;
	if (fake->die_at && fake->calls[FAKE_OPS] >= fake->die_at)
		_exit(FAKE_DIED);
	int any = fake_check_gate(fake, FAKE_OPS, op);
	int error = fake_check_gate(fake, op, op);
	return error ? error : any;
}

/* ---- the ops ---- */

static inline uint64_t fake_now_ns(struct nm_platform *platform)
{
	return fake_of(platform)->now_ns;
}

/* As in /proc, the number of a thread opens its process too, but is not listed there. */
static inline struct fake_thread *fake_of_path(struct fake *fake, const char *path)
{
	uint32_t pid;
	uint32_t tid;
	char rest;
	if (sscanf(path, "proc/%" SCNu32 "/task/%" SCNu32 "%c", &pid, &tid, &rest) == 2) {
		struct fake_thread *thread = fake_find(fake, tid), *other = fake_find(fake, pid);
		bool same = thread && (thread->pid == pid || (other && thread->pid == other->pid));
		return same ? thread : NULL;
	}
	return sscanf(path, "proc/%" SCNu32 "%c", &pid, &rest) == 1 ? fake_find(fake, pid) : NULL;
}

/* Returns the path below the root of one below the directory of a process. */
static inline const char *fake_below(struct fake *fake, int directory, const char *path,
				     char buffer[static 64])
{
	if (directory == NM_ROOT)
		return path;
	const struct fake_thread *process = fake_opened(fake, directory);
	snprintf(buffer, 64, "proc/%u/%s", process ? process->pid : 0, path);
	return buffer;
}

static inline int fake_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	struct fake *fake = fake_of(platform);
	char full[64];
	int r = fake_enter(fake, FAKE_OPEN);
	if (r < 0)
		return r;
	path = fake_below(fake, directory, path, full);
	const struct fake_thread *thread = fake_of_path(fake, path);
	int group = fake_group_of_path(fake, path);
	if (!thread && group < 0)
		return -ENOENT;
	for (int i = 0; i < FAKE_FDS; i++) {
		if (fake->open[i])
			continue;
		fake->open[i] = thread ? thread->identity : FAKE_GROUP_IDENTITY + (unsigned)group;
		return FAKE_FD_BASE + i;
	}
	assert(0 && "too many open directories");
	return -EMFILE;
}

static inline void fake_close(struct nm_platform *platform, int fd)
{
	struct fake *fake = fake_of(platform);
	(void)fake_enter(fake, FAKE_CLOSE);
	assert(fd >= FAKE_FD_BASE && fd < FAKE_FD_BASE + FAKE_FDS && fake->open[fd - FAKE_FD_BASE]);
	fake->open[fd - FAKE_FD_BASE] = 0;
}

static inline unsigned fake_open_fds(const struct fake *fake)
{
	unsigned count = 0;
	for (int i = 0; i < FAKE_FDS; i++)
		count += fake->open[i] != 0;
	return count;
}

static inline unsigned fake_threads_of(const struct fake *fake, uint32_t pid)
{
	unsigned count = 0;
	for (size_t i = 0; i < FAKE_THREADS; i++)
		count += fake->threads[i].alive && fake->threads[i].pid == pid;
	return count;
}

static inline void fake_write_stat(const struct fake *fake, const struct fake_thread *t, char *text,
				   size_t size)
{
	snprintf(text, size,
		 "%u (%s) %c %u %u %u 0 -1 %u 11 0 12 0 %" PRIu64 " 14 0 0 20 %d %u 0 %" PRIu64
		 " 4096 %" PRIu64 " 18446744073709551615 1 1 0"
		 " 0 0 0 0 0 0 0 0 0 %d %d 0 %u 0 0 0 0 0 0 0 0 0 0 0\n",
		 t->tid, t->comm, t->state, t->ppid, t->pid, t->session, t->flags, t->ran_ticks,
		 t->nice, fake_threads_of(fake, t->pid), t->start_ticks, t->rss_kb / 4,
		 t->tid == t->pid ? 17 : -1, t->processor, t->policy);
}

static inline void fake_write_list(uint64_t cpus, char *text, size_t size)
{
	hwloc_bitmap_t bitmap = hwloc_bitmap_alloc();
	fake_to_bitmap(cpus, bitmap);
	hwloc_bitmap_list_snprintf(text, size - 1, bitmap);
	strcat(text, "\n");
	hwloc_bitmap_free(bitmap);
}

static inline void fake_write_status(const struct fake_thread *t, char *text, size_t size)
{
	int length = snprintf(text, size,
			      "Name:\tx\nUmask:\t0022\nState:\t%c (x)\nTgid:\t%u\nNgid:\t0\n"
			      "Pid:\t%u\nPPid:\t%u\nNSpid:\t%u",
			      t->state, t->pid, t->tid, t->ppid, t->tid);
	if (t->ns_pid != t->tid)
		length += snprintf(text + length, size - (size_t)length, "\t%u", t->ns_pid);
	length += snprintf(text + length, size - (size_t)length,
			   "\nRssShmem:\t%" PRIu64 " kB\nHugetlbPages:\t%" PRIu64
			   " kB\nThreads:\t1\nCpus_allowed_list:\t",
			   t->shared_kb, t->hugetlb_kb);
	fake_write_list(t->mask, text + length, size - (size_t)length);
}

/* "proc/PID/comm" */
static inline int fake_write_comm(struct fake *fake, const char *path, char *text, size_t size)
{
	uint32_t pid;
	int end = 0;
	if (sscanf(path, "proc/%" SCNu32 "/comm%n", &pid, &end) != 1 || !end || path[end])
		return -ENOENT;
	const struct fake_thread *thread = fake_find(fake, pid);
	if (!thread)
		return -ENOENT;
	snprintf(text, size, "%s\n", thread->comm);
	return 0;
}

/* "/a/b/cpu.max" or "/a/b/cpu.weight" */
static inline int fake_write_limit(struct fake *fake, char *path, char *text, size_t size)
{
	char *file = strrchr(path, '/');
	*file++ = '\0';
	for (unsigned i = 0; i < fake->nr_limits; i++) {
		const struct fake_limit *limit = &fake->limits[i];
		const char *value = strcmp(file, "cpu.max") == 0 ? limit->text : limit->weight;
		if (strcmp(limit->path, path) != 0 || !value[0])
			continue;
		snprintf(text, size, "%s\n", value);
		return 0;
	}
	return -ENOENT;
}

/* "proc/PID/task/TID/stat" */
static inline int fake_write_stat_of(struct fake *fake, const char *path, char *text, size_t size)
{
	char directory[64];
	const char *end = strrchr(path, '/');
	snprintf(directory, sizeof(directory), "%.*s", (int)(end - path), path);
	const struct fake_thread *thread = fake_of_path(fake, directory);
	if (!thread || strcmp(end, "/stat") != 0)
		return -ENOENT;
	fake_write_stat(fake, thread, text, size);
	return 0;
}

/* Writes the cgroup whose cpuset applies to the thread. */
static inline void fake_write_cpuset(const struct fake *fake, const struct fake_thread *thread,
				     char *text, size_t size)
{
	size_t longest = 0;
	for (unsigned i = 0; i < fake->nr_cgroups; i++) {
		size_t length = strlen(fake->cgroups[i].path);
		if (length > longest &&
		    strncmp(thread->cgroup, fake->cgroups[i].path, length) == 0 &&
		    strchr("/", thread->cgroup[length]))
			longest = length;
	}
	snprintf(text, size, "%.*s\n", longest ? (int)longest : 1, longest ? thread->cgroup : "/");
}

static inline int fake_write_root(struct fake *fake, const char *path, char *text, size_t size)
{
	static const char prefix[] = "sys/fs/cgroup";
	static const char suffix[] = "/cpuset.cpus.effective";
	char cgroup[256];
	if (strcmp(path, "proc/uptime") == 0 && !fake->no_uptime) {
		uint64_t hundredths = fake->now_ns / FAKE_TICK_NS;
		snprintf(text, size, "%" PRIu64 ".%02" PRIu64 " 1.00\n", hundredths / 100,
			 hundredths % 100);
		return 0;
	}
	if (strcmp(path, "sys/kernel/sched_ext/state") == 0) {
		snprintf(text, size, "%s\n", fake->sched_ext ? "enabled" : "disabled");
		return 0;
	}
	if (strcmp(path, "sys/devices/system/cpu/online") == 0) {
		fake_write_list(fake->online, text, size);
		return 0;
	}
	if (fake->pool_kb && strcmp(path, "proc/meminfo") == 0) {
		snprintf(text, size, "MemTotal: 8388608 kB\nHugetlb: %" PRIu64 " kB\n",
			 fake->pool_kb);
		return 0;
	}
	if (fake->free_kb && strstr(path, "/meminfo")) {
		snprintf(text, size,
			 "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: %" PRIu64
			 " kB\nNode 0 Inactive(file): %" PRIu64 " kB\n",
			 fake->free_kb, fake->cached_kb);
		return 0;
	}
	if (strstr(path, "/task/"))
		return fake_write_stat_of(fake, path, text, size);
	if (strncmp(path, prefix, strlen(prefix)) != 0)
		return fake_write_comm(fake, path, text, size);
	snprintf(cgroup, sizeof(cgroup), "%s", path + strlen(prefix));
	if (strstr(cgroup, "/cpu.max") || strstr(cgroup, "/cpu.weight"))
		return fake_write_limit(fake, cgroup, text, size);
	char *end = strstr(cgroup, suffix);
	if (!end || fake->no_cpusets)
		return -ENOENT;
	*end = '\0';
	for (unsigned i = 0; i < fake->nr_cgroups; i++) {
		if (strcmp(fake->cgroups[i].path, cgroup) != 0)
			continue;
		fake_write_list(fake->cgroups[i].cpus & fake->online, text, size);
		return 0;
	}
	if (cgroup[0])
		return -ENOENT;
	fake_write_list(fake->online, text, size);
	return 0;
}

static inline int fake_write_thread(struct fake *fake, int fd, const char *path, char *text,
				    size_t size)
{
	const struct fake_thread *thread = fake_opened(fake, fd);
	if (!thread)
		return -ESRCH;
	if (strcmp(path, "stat") == 0)
		fake_write_stat(fake, thread, text, size);
	else if (strcmp(path, "status") == 0 && thread->many_groups)
		return fake->statuses++, fake->long_statuses++, -EFBIG;
	else if (strcmp(path, "status") == 0)
		fake->statuses++, fake_write_status(thread, text, size);
	else if (strcmp(path, "statm") == 0)
		snprintf(text, size, "99999 %" PRIu64 " %" PRIu64 " 1 0 9 0\n", thread->rss_kb / 4,
			 thread->shared_kb / 4);
	else if (strcmp(path, "cgroup") == 0)
		snprintf(text, size, "1:name=other:/x\n0::%s\n", thread->cgroup);
	else if (strcmp(path, "cpuset") == 0 && fake->names_cpusets)
		fake_write_cpuset(fake, thread, text, size);
	else
		return -ENOENT;
	return 0;
}

static inline ssize_t fake_read_file(struct nm_platform *platform, int directory, const char *path,
				     char *buffer, size_t size)
{
	struct fake *fake = fake_of(platform);
	char text[FAKE_CGROUP_BYTES + 2048];
	int r = fake_enter(fake, FAKE_READ);
	if (r == 0)
		r = directory == NM_ROOT
			    ? fake_write_root(fake, path, text, sizeof(text))
			    : fake_write_thread(fake, directory, path, text, sizeof(text));
	if (r < 0)
		return r;
	size_t length = strlen(text);
	if (length >= size)
		return -EFBIG;
	memcpy(buffer, text, length + 1);
	return (ssize_t)length;
}

static inline int fake_compare_numbers(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;
	return (*left > *right) - (*left < *right);
}

/* Lists the numbers in order at the time of the call; later changes are not included. */
static inline int fake_list_directory(struct nm_platform *platform, int directory, const char *path,
				      nm_name_fn each, void *context)
{
	struct fake *fake = fake_of(platform);
	uint32_t numbers[FAKE_THREADS];
	size_t count = 0;
	uint32_t pid = 0;
	char name[16], full[64];
	int r = fake_enter(fake, FAKE_LIST);
	if (r < 0)
		return r;
	path = fake_below(fake, directory, path, full);
	bool tasks = sscanf(path, "proc/%" SCNu32 "/task", &pid) == 1;
	for (size_t i = 0; i < FAKE_THREADS; i++) {
		const struct fake_thread *thread = &fake->threads[i];
		if (thread->alive && (tasks ? thread->pid == pid : thread->pid == thread->tid))
			numbers[count++] = thread->tid;
	}
	if (tasks && count == 0)
		return -ENOENT;
	qsort(numbers, count, sizeof(*numbers), fake_compare_numbers);
	r = tasks ? 0 : each(context, "self");
	if (!tasks && r >= 0)
		r = each(context, "1x");
	for (size_t i = 0; r >= 0 && i < count; i++) {
		snprintf(name, sizeof(name), "%" PRIu32, numbers[i]);
		r = each(context, name);
	}
	return r < 0 ? r : 0;
}

static inline int fake_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	struct fake *fake = fake_of(platform);
	int r = fake_enter(fake, FAKE_GET);
	if (r < 0)
		return r;
	assert(tid > 0 && "0 is the caller itself");
	const struct fake_thread *thread = fake_find(fake, (uint32_t)tid);
	if (!thread)
		return -ESRCH;
	fake_to_bitmap(thread->mask & fake->online, ret);
	return 0;
}

static inline int fake_affinity_set(struct nm_platform *platform, pid_t tid,
				    hwloc_const_bitmap_t cpus)
{
	struct fake *fake = fake_of(platform);
	int r = fake_enter(fake, FAKE_SET);
	if (r < 0)
		return r;
	assert(tid > 0 && "0 is the caller itself");
	return fake_set_mask(fake, (uint32_t)tid, fake_from_bitmap(cpus));
}

static inline void fake_free(struct nm_platform *platform)
{
	munmap(platform, sizeof(struct fake));
}

/* Creates a machine with an init that has been up for 1,000 s. */
static inline struct fake *fake_new(unsigned nr_cpus)
{
	static const struct nm_platform_ops ops = {
		.now_ns = fake_now_ns,
		.open_directory = fake_open_directory,
		.read_file = fake_read_file,
		.list_directory = fake_list_directory,
		.close = fake_close,
		.read_attribute = fake_read_attribute,
		.owner = fake_owner,
		.affinity_get = fake_affinity_get,
		.affinity_set = fake_affinity_set,
		FAKE_ASK,
	};
	struct fake *fake = mmap(NULL, sizeof(*fake), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(fake != MAP_FAILED);
	fake->platform = (struct nm_platform){.ops = &ops, .free = fake_free};
	fake->all = fake->online = fake_cpus(0, nr_cpus - 1);
	fake->remembers = true;
	fake->now_ns = 10 * NM_NSEC_PER_SEC;
	snprintf(fake_process(fake, 1, 0)->comm, sizeof(fake->threads[0].comm), "systemd");
	fake->now_ns = 1000 * NM_NSEC_PER_SEC;
	return fake;
}

#endif

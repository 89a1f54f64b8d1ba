/* SPDX-License-Identifier: MIT */
#include "numa-migrd/proc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "numa-migrd/topology.h"

bool nm_kernel_is_too_old(const char *release)
{
	unsigned major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		return false;
	return major < NM_KERNEL_MAJOR || (major == NM_KERNEL_MAJOR && minor < NM_KERNEL_MINOR);
}

int nm_proc_parse_stat(const char *text, struct nm_proc_stat *ret)
{
	const char *open = strchr(text, '(');
	const char *close = strrchr(text, ')');
	if (!open || !close || close < open)
		return -EINVAL;

	struct nm_proc_stat stat = {0};
	size_t length = (size_t)(close - open - 1);
	if (length >= sizeof(stat.comm))
		length = sizeof(stat.comm) - 1;
	memcpy(stat.comm, open + 1, length);
	stat.tid = (uint32_t)strtoul(text, NULL, 10);

	/* proc(5): 3 state, 4 ppid, 6 session, 9 flags, 22 starttime, 24 rss, 38 exit_signal
	 * (-1 for all threads but the first), 39 processor, 41 policy; 14 utime, 15 stime, 20
	 * num_threads. */
	int exit_signal;
	uint64_t user_ticks;
	uint64_t system_ticks;
	int64_t rss_pages;
	int parsed = sscanf(close + 1,
			    " %c %" SCNu32 " %*d %" SCNu32 " %*d %*d %" SCNu32
			    " %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %*d %*d %*d %d %" SCNu32
			    " %*d %" SCNu64 " %*u %" SCNd64 " %*u %*u %*u %*u"
			    " %*u %*u %*u %*u %*u %*u %*u %*u %*u %d %d %*u %u",
			    &stat.state, &stat.ppid, &stat.session, &stat.flags, &user_ticks,
			    &system_ticks, &stat.nice, &stat.nr_threads, &stat.start_ticks,
			    &rss_pages, &exit_signal, &stat.processor, &stat.policy);
	if (parsed != 13)
		return -EINVAL;
	stat.is_leader = exit_signal >= 0;
	stat.ran_ticks = user_ticks + system_ticks;
	stat.rss_pages = rss_pages > 0 ? (uint64_t)rss_pages : 0;
	*ret = stat;
	return 0;
}

/* Returns the text after "Name:" at the beginning of a line, or NULL if there is no such line. */
static const char *status_value(const char *text, const char *name)
{
	size_t length = strlen(name);
	for (const char *line = text; line && *line;) {
		if (strncmp(line, name, length) == 0 && line[length] == ':')
			return line + length + 1;
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return NULL;
}

static uint64_t status_bytes(const char *text, const char *name)
{
	const char *value = status_value(text, name);
	uint64_t kib;

	return value && sscanf(value, "%" SCNu64, &kib) == 1 ? kib * 1024 : 0;
}

/* A list such as "0-2,5". Kernels without cpusets have no such line, and all nodes are allowed. */
static uint64_t excluded_mems(const char *text)
{
	const char *list = status_value(text, "Mems_allowed_list");
	uint64_t allowed = 0;
	unsigned first, last;
	int length;
	while (list && sscanf(list, "%u%n", &first, &length) == 1) {
		list += length;
		last = first;
		if (*list == '-' && sscanf(list, "-%u%n", &last, &length) == 1)
			list += length;
		for (unsigned node = first; node <= last && node < 64; node++)
			allowed |= UINT64_C(1) << node;
		list = *list == ',' ? list + 1 : NULL;
	}
	return allowed ? ~allowed : 0;
}

int nm_proc_parse_status(const char *text, struct nm_proc_status *ret)
{
	struct nm_proc_status status = {0};
	const char *tgid = status_value(text, "Tgid");
	/* lists the number in each namespace, the innermost last */
	const char *numbers = status_value(text, "NSpid");
	int length;

	if (!tgid || sscanf(tgid, "%" SCNu32, &status.tgid) != 1)
		return -EINVAL;
	status.hugetlb_bytes = status_bytes(text, "HugetlbPages");
	status.pinned_bytes = status_bytes(text, "VmPin") + status_bytes(text, "VmLck");
	status.excluded_mems = excluded_mems(text);
	status.shared_bytes = status_value(text, "RssShmem")
				      ? status_bytes(text, "RssShmem") +
						nm_proc_data_bytes(status_bytes(text, "RssFile"))
				      : UINT64_MAX;
	while (numbers && sscanf(numbers, "%*[ \t]%" SCNu32 "%n", &status.ns_pid, &length) == 1)
		numbers += length;
	*ret = status;
	return 0;
}

int nm_proc_parse_cgroup(const char *text, const char **ret_path, size_t *ret_length)
{
	for (const char *line = text; line && *line;) {
		const char *end = strchrnul(line, '\n');
		if (strncmp(line, "0::", 3) == 0) {
			*ret_path = line + 3;
			*ret_length = (size_t)(end - line - 3);
			return 0;
		}
		line = *end ? end + 1 : NULL;
	}
	return -ENODATA;
}

/*
 * A thread that has exited results in ENOENT on open and in ESRCH on read; both mean the same here.
 */
static int gone(int error)
{
	return error == -ENOENT ? -ESRCH : error;
}

int nm_proc_open_thread(struct nm_platform *platform, uint32_t pid, uint32_t tid)
{
	char path[64];
	if (pid)
		snprintf(path, sizeof(path), "proc/%" PRIu32 "/task/%" PRIu32, pid, tid);
	else
		snprintf(path, sizeof(path), "proc/%" PRIu32, tid);
	return gone(platform->ops->open_directory(platform, NM_ROOT, path));
}

static int read_stat(struct nm_platform *platform, int directory, const char *path,
		     struct nm_proc_stat *ret)
{
	char text[1024];
	ssize_t length = platform->ops->read_file(platform, directory, path, text, sizeof(text));
	if (length < 0)
		return gone((int)length);
	return length ? nm_proc_parse_stat(text, ret) : -ESRCH;
}

int nm_proc_read_stat(struct nm_platform *platform, int directory, struct nm_proc_stat *ret)
{
	return read_stat(platform, directory, "stat", ret);
}

int nm_proc_read_status(struct nm_platform *platform, int directory, struct nm_proc_status *ret)
{
	char text[NM_PROC_STATUS_BYTES];
	ssize_t length =
		platform->ops->read_file(platform, directory, "status", text, sizeof(text));
	if (length < 0)
		return gone((int)length);
	return length ? nm_proc_parse_status(text, ret) : -ESRCH;
}

int nm_proc_read_owner(struct nm_platform *platform, int directory, uint32_t *ret_uid)
{
	struct nm_owner owner;
	int r = platform->ops->owner(platform, directory, &owner);
	if (r == 0)
		*ret_uid = owner.uid;
	return r;
}

int nm_proc_read_memory(struct nm_platform *platform, int directory, struct nm_proc_memory *ret)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t resident, shared;
	char text[256];
	ssize_t length = platform->ops->read_file(platform, directory, "statm", text, sizeof(text));
	if (length <= 0)
		return length ? gone((int)length) : -ESRCH;
	if (sscanf(text, "%*u %" SCNu64 " %" SCNu64, &resident, &shared) != 2)
		return -EINVAL;
	/* The counts are not read at the same time. */
	uint64_t anon = resident > shared ? resident - shared : 0;
	*ret = (struct nm_proc_memory){.rss_bytes = resident * page_bytes,
				       .anon_bytes = anon * page_bytes};
	return 0;
}

int nm_proc_open_stat(struct nm_platform *platform, uint32_t pid, uint32_t tid,
		      struct nm_proc_stat *stat)
{
	int directory = nm_proc_open_thread(platform, pid, tid);
	if (directory < 0)
		return directory;
	int r = nm_proc_read_stat(platform, directory, stat);
	if (r < 0)
		platform->ops->close(platform, directory);
	return r < 0 ? r : directory;
}

int nm_proc_open_same(struct nm_platform *platform, uint32_t pid, uint32_t tid,
		      uint64_t start_ticks, struct nm_proc_stat *stat)
{
	struct nm_proc_stat found;
	int directory = nm_proc_open_stat(platform, pid, tid, &found);
	if (directory >= 0 && found.start_ticks != start_ticks) {
		platform->ops->close(platform, directory);
		return -ESRCH;
	}
	if (directory >= 0 && stat)
		*stat = found;
	return directory;
}

/* ---- threads that live longer than the first one ---- */

#define SURVIVORS_TRIED 64U

struct search {
	struct nm_platform *platform;
	const char *tasks;
	unsigned tried;
	int process, thread; /* descriptors of directories */
	struct nm_proc_stat stat;
};

/* Ends the search if the thread has not exited, or if many have: exited threads that a tracer keeps
 * must not make it long. */
static int try_thread(void *context, const char *name)
{
	struct search *search = context;
	struct nm_platform *platform = search->platform;
	char path[64];

	if (search->tried++ == SURVIVORS_TRIED)
		return -ECANCELED;
	(void)snprintf(path, sizeof(path), "%s/%.10s", search->tasks, name);
	int directory = platform->ops->open_directory(platform, search->process, path);
	if (directory < 0)
		return 0;
	if (nm_proc_read_stat(platform, directory, &search->stat) < 0 ||
	    nm_proc_has_exited(&search->stat)) {
		platform->ops->close(platform, directory);
		return 0;
	}
	search->stat.tid = (uint32_t)strtoul(name, NULL, 10);
	search->thread = directory;
	return -ECANCELED;
}

int nm_proc_open_survivor(struct nm_platform *platform, int directory, const char *tasks,
			  struct nm_proc_stat *ret)
{
	struct search search = {
		.platform = platform, .tasks = tasks, .process = directory, .thread = -ESRCH};

	(void)platform->ops->list_directory(platform, directory, tasks, try_thread, &search);
	if (search.thread >= 0)
		*ret = search.stat;
	return search.thread;
}

/* ---- status ---- */

static bool costly_has(const struct nm_costly *costly, uint64_t domain)
{
	for (size_t i = 0; i < costly->count; i++)
		if (costly->domains[i] == domain)
			return true;
	return false;
}

static void costly_add(struct nm_costly *costly, uint64_t domain)
{
	if (costly->count < NM_COSTLY_MOST)
		costly->domains[costly->count++] = domain;
}

int nm_proc_read_status_in(struct nm_platform *platform, int directory, uint64_t domain,
			   struct nm_costly *costly, struct nm_proc_status *ret)
{
	if (costly_has(costly, domain))
		return -EAGAIN;
	int r = nm_proc_read_status(platform, directory, ret);
	if (r == -EFBIG)
		costly_add(costly, domain);
	return r;
}

/* A file that is empty belongs to a thread that has exited. */
static int read_at(int directory, const char *path, char *text, size_t size)
{
	int length = nm_read_text(directory, path, text, size);
	if (length < 0)
		return gone(length);
	return length ? 0 : -ESRCH;
}

int nm_proc_stat_at(int directory, const char *path, struct nm_proc_stat *ret)
{
	char text[2048];
	int r = read_at(directory, path, text, sizeof(text));
	return r < 0 ? r : nm_proc_parse_stat(text, ret);
}

/* Copies the path in the unified hierarchy. Returns 0 or -ENODATA. */
static int copy_cgroup(const char *text, char **ret)
{
	const char *path;
	size_t length;
	int r = nm_proc_parse_cgroup(text, &path, &length);
	if (r < 0)
		return r;
	*ret = nm_must(strndup(path, length));
	return 0;
}

int nm_proc_cgroup_at(int directory, const char *path, char **ret)
{
	char text[8192];
	int r = read_at(directory, path, text, sizeof(text));
	return r < 0 ? r : copy_cgroup(text, ret);
}

/* Does not read proc/PID/stat, for which the kernel adds up the times of all threads. */
int nm_proc_stat_of(struct nm_platform *platform, uint32_t pid, uint32_t tid,
		    struct nm_proc_stat *ret)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "proc/%" PRIu32 "/task/%" PRIu32 "/stat", pid, tid);
	return read_stat(platform, NM_ROOT, path, ret);
}

int nm_proc_owner_of(struct nm_platform *platform, uint32_t pid, uint32_t *ret_uid)
{
	int directory = nm_proc_open_thread(platform, 0, pid);
	if (directory < 0)
		return directory;
	int r = nm_proc_read_owner(platform, directory, ret_uid);
	platform->ops->close(platform, directory);
	return r;
}

int nm_proc_read_schedstat(struct nm_platform *platform, uint32_t pid, uint32_t tid,
			   struct nm_proc_schedstat *ret)
{
	struct nm_proc_schedstat times;
	char path[64], text[128];
	(void)snprintf(path, sizeof(path), "proc/%" PRIu32 "/task/%" PRIu32 "/schedstat", pid, tid);
	ssize_t length = platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text));
	if (length < 0)
		return (int)length;
	if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &times.run_ns, &times.delay_ns,
		   &times.runs) != 3)
		return -ENODATA;
	times.read_ns = platform->ops->now_ns(platform);
	*ret = times;
	return 0;
}

int nm_proc_read_cgroup(struct nm_platform *platform, int directory, char **ret)
{
	char text[8192];
	ssize_t length =
		platform->ops->read_file(platform, directory, "cgroup", text, sizeof(text));
	return length < 0 ? gone((int)length) : copy_cgroup(text, ret);
}

int nm_proc_read_online(struct nm_platform *platform, hwloc_bitmap_t ret)
{
	char text[4096];
	ssize_t length = platform->ops->read_file(
		platform, NM_ROOT, "sys/devices/system/cpu/online", text, sizeof(text));
	if (length < 0)
		return (int)length;
	int r = nm_list_parse(text, ret);
	return r == -EINVAL ? -ENODATA : r;
}

int nm_proc_read_affinity(struct nm_platform *platform, int directory, hwloc_bitmap_t ret)
{
	char text[NM_PROC_STATUS_BYTES];
	ssize_t length =
		platform->ops->read_file(platform, directory, "status", text, sizeof(text));
	if (length < 0)
		return gone((int)length);
	const char *value = status_value(text, "Cpus_allowed_list");
	if (!value)
		return length ? -ENODATA : -ESRCH;
	value += strspn(value, " \t");
	nm_autofree char *list = nm_must(strndup(value, strcspn(value, "\n")));
	int r = nm_list_parse(list, ret);
	return r == -EINVAL ? -ENODATA : r;
}

int nm_proc_read_affinity_in(struct nm_platform *platform, int directory, uint64_t domain,
			     struct nm_costly *costly, hwloc_bitmap_t ret)
{
	if (costly_has(costly, domain))
		return -EAGAIN;
	int r = nm_proc_read_affinity(platform, directory, ret);
	if (r == -EFBIG)
		costly_add(costly, domain);
	return r;
}

uint64_t nm_proc_ticks_now(struct nm_platform *platform)
{
	char text[128];
	uint64_t seconds;
	uint64_t hundredths;
	uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);
	if (platform->ops->boot_ns)
		return platform->ops->boot_ns(platform) / (NM_NSEC_PER_SEC / per_second);
	/* Uses integers, because rounding must not put the clock before a start time that has
	 * passed. */
	if (platform->ops->read_file(platform, NM_ROOT, "proc/uptime", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%" SCNu64 ".%2" SCNu64, &seconds, &hundredths) != 2)
		return 0;
	return seconds * per_second + hundredths * per_second / 100;
}

int nm_proc_read_boot_id(struct nm_platform *platform, char *ret, size_t size)
{
	ssize_t length = platform->ops->read_file(platform, NM_ROOT,
						  "proc/sys/kernel/random/boot_id", ret, size);
	if (length < 0)
		return (int)length;
	ret[strcspn(ret, "\n")] = '\0';
	return ret[0] ? 0 : -ENODATA;
}

int nm_proc_parse_cpu_times(const char *text, struct nm_cpu_times *times, unsigned nr_cpus)
{
	bool found = false;
	for (const char *line = text; line && *line;) {
		unsigned cpu;
		uint64_t v[8] = {0};
		int parsed = sscanf(line,
				    "cpu%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
				    " %" SCNu64 " %" SCNu64 " %" SCNu64,
				    &cpu, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
		bool numbered = strncmp(line, "cpu ", 4) != 0; /* not the sum of all CPUs */
		if (numbered && parsed >= 5 && cpu < nr_cpus) {
			found = true;
			uint64_t total = 0;
			for (size_t i = 0; i < NM_ARRAY_SIZE(v); i++)
				total += v[i];
			times[cpu] =
				(struct nm_cpu_times){.busy = total - v[3] - v[4], .total = total};
		}
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return found ? 0 : -EINVAL;
}

/* SPDX-License-Identifier: MIT */
/*
 * Information about threads, processes and CPUs from /proc and the cgroup file system (proc(5),
 * cgroups(7)). Files are read through the operations table; parsing is pure. Numbers may be reused
 * between two reads: keep the directory of a thread open, and compare its start time.
 */
#ifndef NUMA_MIGRD_PROC_H
#define NUMA_MIGRD_PROC_H

#include "numa-migrd/platform.h"

#define NM_PROC_KTHREAD 0x00200000U /* PF_KTHREAD in field 9 of stat */

struct nm_proc_stat {
	char comm[64]; /* raw bytes, NUL-terminated; names of kernel threads may be longer than 15
			* bytes */
	uint32_t tid;
	char state;
	uint32_t ppid, session;
	uint32_t flags;	      /* PF_* */
	uint64_t start_ticks; /* since boot, in clock ticks (USER_HZ) */
	uint64_t start_stack; /* differs after each exec; 0 if access is denied (ptrace(2)) */
	uint64_t ran_ticks;   /* CPU time of the thread, user and system, in clock ticks */
	int processor;	      /* CPU on which it last ran */
	unsigned policy;      /* SCHED_* */
};

/* Parses /proc/…/stat. The name may contain any bytes, so the last ')' ends it. Returns 0 or
 * -EINVAL. Pure. */
int nm_proc_parse_stat(const char *text, struct nm_proc_stat *ret);

struct nm_proc_status {
	uint32_t tgid, uid; /* real uid */
	uint32_t ns_pid;    /* its number in its own PID namespace; 1: init of that namespace */
	uint64_t rss_bytes; /* VmRSS; 0 for kernel threads */
	uint64_t anon_bytes; /* RssAnon: the part that is neither file nor shared memory */
};

/* Parses /proc/PID/status. Returns 0 or -EINVAL. Pure. */
int nm_proc_parse_status(const char *text, struct nm_proc_status *ret);

/* Finds the path in the unified hierarchy ("0::/…") in /proc/PID/cgroup. Returns a pointer into
 * `text` and the length, or -ENODATA. Pure. */
int nm_proc_parse_cgroup(const char *text, const char **ret_path, size_t *ret_length);

/* Opens /proc/PID/task/TID (pid 0: /proc/TID) as a directory, which the caller closes. Returns
 * -ESRCH if the thread does not exist. */
int nm_proc_open_thread(struct nm_platform *platform, uint32_t pid, uint32_t tid);

/* Reads and parses a file of `directory`. Returns -ESRCH if the thread has exited. */
int nm_proc_read_stat(struct nm_platform *platform, int directory, struct nm_proc_stat *ret);
int nm_proc_read_status(struct nm_platform *platform, int directory, struct nm_proc_status *ret);

/*
 * The same for programs without the operations table, such as the worker and the helper: `path` is
 * relative to `directory`, a descriptor. Returns 0, -ESRCH if the thread has exited, -EINVAL, or
 * another negative errno. Called by everything that verifies whose descriptor or number it has.
 */
int nm_proc_stat_at(int directory, const char *path, struct nm_proc_stat *ret);
int nm_proc_status_at(int directory, const char *path, struct nm_proc_status *ret);
/* The path in the unified hierarchy, allocated. Returns 0, -ESRCH, -ENODATA (no such hierarchy) or
 * -ENOMEM. */
int nm_proc_cgroup_at(int directory, const char *path, char **ret);

/* Reads and parses the file of one thread. For a process these are the values of its leader: times
 * are not summed over its threads. Returns 0, -ESRCH or another negative errno. */
int nm_proc_stat_of(struct nm_platform *platform, uint32_t pid, struct nm_proc_stat *ret);
int nm_proc_status_of(struct nm_platform *platform, uint32_t pid, struct nm_proc_status *ret);

/* Total time that a thread has run, and that it was runnable but waited for a CPU. */
struct nm_proc_schedstat {
	uint64_t run_ns, delay_ns;
	uint64_t runs; /* how often it was put on a CPU */
	uint64_t read_ns; /* CLOCK_MONOTONIC time of this reading */
};

/* Reads /proc/PID/task/TID/schedstat. Returns 0, -ENODATA if the kernel does not provide it, or
 * another negative errno. Called by the tick. */
int nm_proc_read_schedstat(struct nm_platform *platform, uint32_t pid, uint32_t tid,
			   struct nm_proc_schedstat *ret);

/* Returns the path of the process in the unified hierarchy, allocated. Errors: -ENODATA (no such
 * hierarchy), -ENOMEM, -ESRCH. */
int nm_proc_read_cgroup(struct nm_platform *platform, int directory, char **ret);

/* Returns the CPU affinity of the thread, including offline CPUs, which sched_getaffinity(2) omits
 * (Cpus_allowed_list of proc_pid_status(5)). Errors: -ESRCH, -ENODATA, -ENOMEM. */
int nm_proc_read_affinity(struct nm_platform *platform, int directory, hwloc_bitmap_t ret);

/* Returns the online CPUs. Errors: -ENODATA or another negative errno. */
int nm_proc_read_online(struct nm_platform *platform, hwloc_bitmap_t ret);

/* Returns the clock ticks since boot, as start_ticks, at the current CLOCK_BOOTTIME; never later
 * than the start of a thread created after the call. Returns 0 if /proc/uptime cannot be read. */
uint64_t nm_proc_ticks_now(struct nm_platform *platform);

struct nm_cpu_times {
	uint64_t busy, total; /* clock ticks since boot; busy excludes idle and iowait */
};

/* Parses the cpuN lines of /proc/stat into times[N] for N < nr_cpus, and leaves other entries
 * unchanged. Pure. */
int nm_proc_parse_cpu_times(const char *text, struct nm_cpu_times *times, unsigned nr_cpus);

#endif

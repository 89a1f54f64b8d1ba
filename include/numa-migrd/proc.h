/* SPDX-License-Identifier: MIT */
/*
 * What /proc and the cgroup file system say of threads, processes and CPUs (proc(5), cgroups(7)).
 * Reading goes through the ops table; parsing is pure. Numbers may be reused between two reads:
 * hold the directory of a thread open, and compare its start time.
 */
#ifndef NUMA_MIGRD_PROC_H
#define NUMA_MIGRD_PROC_H

#include "numa-migrd/platform.h"

#define NM_PROC_KTHREAD 0x00200000U /* PF_KTHREAD in field 9 of stat */

struct nm_proc_stat {
	char comm[64]; /* raw bytes, NUL-terminated (kernel threads' names may be longer than 15) */
	char state;
	uint32_t ppid, session;
	uint32_t flags;	      /* PF_* */
	uint64_t start_ticks; /* since boot, in clock ticks (USER_HZ) */
	uint64_t start_stack; /* another one after each exec; 0 where we may not see it (ptrace(2))
			       */
	uint64_t ran_ticks;   /* CPU time of the thread, user and system, in clock ticks */
	int processor;	      /* where it last ran */
	unsigned policy;      /* SCHED_* */
};

/* Parses /proc/…/stat; the name may hold anything, so the last ')' ends it. -EINVAL. Pure. */
int nm_proc_parse_stat(const char *text, struct nm_proc_stat *ret);

struct nm_proc_status {
	uint32_t tgid, uid; /* real uid: whose process it is */
	uint32_t ns_pid;    /* its number in its own pid namespace; 1: that one's init */
	uint64_t rss_bytes; /* VmRSS; 0 for kernel threads */
	uint64_t anon_bytes; /* RssAnon: of it, what is neither file nor shared memory */
};

/* Parses /proc/PID/status. -EINVAL. Pure. */
int nm_proc_parse_status(const char *text, struct nm_proc_status *ret);

/* Finds the unified hierarchy's path ("0::/…") in /proc/PID/cgroup; a pointer into text with its
 * length. -ENODATA. Pure. */
int nm_proc_parse_cgroup(const char *text, const char **ret_path, size_t *ret_length);

/* Opens /proc/PID/task/TID (pid 0: /proc/TID) as a directory; the caller closes. -ESRCH. */
int nm_proc_open_thread(struct nm_platform *platform, uint32_t pid, uint32_t tid);

/* Reads and parses `directory`/stat. -ESRCH when the thread ended. */
int nm_proc_read_stat(struct nm_platform *platform, int directory, struct nm_proc_stat *ret);
int nm_proc_read_status(struct nm_platform *platform, int directory, struct nm_proc_status *ret);

/* The same for one look at a thread, which for a process is its leader's own entry: times are not
 * summed over its threads. -ESRCH; -errno. */
int nm_proc_stat_of(struct nm_platform *platform, uint32_t pid, struct nm_proc_stat *ret);
int nm_proc_status_of(struct nm_platform *platform, uint32_t pid, struct nm_proc_status *ret);

/* How long a thread has run, and waited for a CPU while runnable, since it began. */
struct nm_proc_schedstat {
	uint64_t run_ns, delay_ns;
	uint64_t read_ns; /* CLOCK_MONOTONIC of this reading */
};

/* Reads /proc/PID/task/TID/schedstat. -ENODATA: the kernel does not keep it; -errno. Tick. */
int nm_proc_read_schedstat(struct nm_platform *platform, uint32_t pid, uint32_t tid,
			   struct nm_proc_schedstat *ret);

/* The process's path in the unified hierarchy, allocated. -ENODATA (no such hierarchy), -ENOMEM,
 * -ESRCH. */
int nm_proc_read_cgroup(struct nm_platform *platform, int directory, char **ret);

/* What the thread's affinity holds, also CPUs that are offline, which sched_getaffinity(2) leaves
 * out (Cpus_allowed_list of proc_pid_status(5)). -ESRCH, -ENODATA, -ENOMEM. */
int nm_proc_read_affinity(struct nm_platform *platform, int directory, hwloc_bitmap_t ret);

/* The CPUs that are online. -ENODATA, -errno. */
int nm_proc_read_online(struct nm_platform *platform, hwloc_bitmap_t ret);

/* Clock ticks since boot, on the scale of start_ticks, for a CLOCK_BOOTTIME of now; never later
 * than the start of a thread created after the call. 0: /proc/uptime does not tell. */
uint64_t nm_proc_ticks_now(struct nm_platform *platform);

struct nm_cpu_times {
	uint64_t busy, total; /* clock ticks since boot; busy: all but idle and iowait */
};

/* Parses the cpuN lines of /proc/stat into times[N], N < nr_cpus; others stay as they are. Pure. */
int nm_proc_parse_cpu_times(const char *text, struct nm_cpu_times *times, unsigned nr_cpus);

#endif

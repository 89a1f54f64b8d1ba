/* SPDX-License-Identifier: MIT */
/*
 * Information about threads, processes and CPUs from /proc and the cgroup file system (proc(5),
 * cgroups(7)). Files are read through the operations table; parsing is pure. Numbers may be reused
 * between two reads: keep the directory of a thread open, and compare its start time.
 */
#ifndef NUMA_MIGRD_PROC_H
#define NUMA_MIGRD_PROC_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "numa-migrd/base.h"
#include "numa-migrd/platform.h"

/* The oldest kernel on which numa-migrd is tested. */
#define NM_KERNEL_MAJOR 6
#define NM_KERNEL_MINOR 1
#define NM_KERNEL_RELEASE_PATH "proc/sys/kernel/osrelease"

/* Returns whether a release, as in uname(2), is older; false for one that is not understood. Pure. */
bool nm_kernel_is_too_old(const char *release);

#define NM_PROC_NICE_LOWEST 19
#define NM_PROC_KTHREAD 0x00200000U	/* PF_KTHREAD in field 9 of stat */
#define NM_PROC_BEFORE_EXEC 0x00000040U /* PF_FORKNOEXEC: it was forked, and has executed nothing  \
					 */
/* PF_NO_SETAFFINITY: a thread of the kernel within a program (io_uring, vhost), or one that the
 * kernel has bound; sched_setaffinity(2) refuses it. */
#define NM_PROC_NO_AFFINITY 0x04000000U

struct nm_proc_stat {
	char comm[64]; /* raw bytes, NUL-terminated; names of kernel threads may be longer than 15
			* bytes */
	uint32_t tid;
	char state;
	uint32_t ppid, session;
	uint32_t flags;	      /* PF_* */
	uint32_t nr_threads;  /* of its process */
	uint64_t start_ticks; /* since boot, in clock ticks (USER_HZ) */
	uint64_t ran_ticks;   /* CPU time of the thread, user and system, in clock ticks */
	uint64_t rss_pages;   /* resident memory of its process */
	bool is_leader;	      /* whether it is the first thread, whose number the process has */
	int processor;	      /* CPU on which it last ran */
	int nice;
	unsigned policy; /* SCHED_* */
};

static inline bool nm_proc_has_exited(const struct nm_proc_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X';
}

/* Returns whether the thread leaves its CPU to any other one that wants it: the kernel then gives
 * it less than 2 % of the time. */
static inline bool nm_proc_yields(const struct nm_proc_stat *stat)
{
	return stat->policy == SCHED_IDLE || stat->nice == NM_PROC_NICE_LOWEST;
}

/* Parses /proc/…/stat. The name may contain any bytes, so the last ')' ends it. Returns 0 or
 * -EINVAL. Pure. */
int nm_proc_parse_stat(const char *text, struct nm_proc_stat *ret);

/*
 * Data that only this file contains. A process in 65,536 groups makes the kernel take 30 ms to
 * write it, and the reader may have to take down the memory of a process that ends meanwhile.
 * Therefore nm_proc_read_owner() and nm_proc_read_memory() are used wherever they suffice.
 */
struct nm_proc_status {
	uint32_t tgid;
	uint32_t ns_pid;	/* its number in its own PID namespace; 1: init of that namespace */
	uint64_t hugetlb_bytes; /* HugetlbPages, which no other file of the process counts */
	uint64_t pinned_bytes;	/* VmPin and VmLck: memory pinned for devices, or locked */
	uint64_t shared_bytes;	/* RssShmem, and RssFile beyond NM_PROC_PROGRAM_BYTES; UINT64_MAX:
				 * not  known */
	uint64_t excluded_mems; /* nodes below 64, by the kernel's numbers, that Mems_allowed_list
				 * excludes, as bits */
};

/* The part of the files of a process that may be its program and libraries, which processors keep
 * in their caches; more is data. */
#define NM_PROC_PROGRAM_BYTES (UINT64_C(64) << 20)
static inline uint64_t nm_proc_data_bytes(uint64_t file_bytes)
{
	return file_bytes > NM_PROC_PROGRAM_BYTES ? file_bytes - NM_PROC_PROGRAM_BYTES : 0;
}

/* Parses /proc/PID/status. Returns 0 or -EINVAL. Pure. */
int nm_proc_parse_status(const char *text, struct nm_proc_status *ret);

/* Finds the path in the unified hierarchy ("0::/…") in /proc/PID/cgroup. Returns a pointer into
 * `text` and the length, or -ENODATA. Pure. */
int nm_proc_parse_cgroup(const char *text, const char **ret_path, size_t *ret_length);

/* Opens /proc/PID/task/TID (pid 0: /proc/TID) as a directory, which the caller closes. Returns
 * -ESRCH if the thread does not exist. */
int nm_proc_open_thread(struct nm_platform *platform, uint32_t pid, uint32_t tid);

/*
 * Opens the directory of a thread that has not exited, in place of the first thread of a process,
 * which has: /proc then shows no memory for that one. `tasks` is the directory of its threads,
 * relative to `directory`: "task", or "proc/PID/task" with NM_ROOT. At most 64 threads are tried.
 * Returns the descriptor, which the caller closes, and its stat; -ESRCH if there is none; or
 * another negative errno.
 */
int nm_proc_open_survivor(struct nm_platform *platform, int directory, const char *tasks,
			  struct nm_proc_stat *ret);

/* The same, and reads the thread's stat. nm_proc_open_same() also requires this start time; -ESRCH
 * if the number was reused. `stat` may be NULL there. */
int nm_proc_open_stat(struct nm_platform *platform, uint32_t pid, uint32_t tid,
		      struct nm_proc_stat *stat);
int nm_proc_open_same(struct nm_platform *platform, uint32_t pid, uint32_t tid,
		      uint64_t start_ticks, struct nm_proc_stat *stat);

/* Reads and parses a file of `directory`. Returns -ESRCH if the thread has exited. */
int nm_proc_read_stat(struct nm_platform *platform, int directory, struct nm_proc_stat *ret);
int nm_proc_read_status(struct nm_platform *platform, int directory, struct nm_proc_status *ret);

/* Returns the effective user of the thread or process, which owns its directory (proc(5)). Returns
 * 0 or a negative errno. */
int nm_proc_read_owner(struct nm_platform *platform, int directory, uint32_t *ret_uid);

struct nm_proc_memory {
	uint64_t rss_bytes;  /* resident memory without hugetlb pages; 0 for kernel threads and for
			      * threads that have exited */
	uint64_t anon_bytes; /* the part that is neither file nor shared memory */
};

/*
 * The kernel counts resident pages per CPU, and may leave out what each CPU has not added yet
 * (percpu_counter_batch in lib/percpu_counter.c): a count below this is not known, nor is a
 * difference of two of them.
 */
static inline uint64_t nm_proc_rss_error_bytes(unsigned nr_cpus, uint64_t page_bytes)
{
	uint64_t batch = nr_cpus < 16 ? 32 : 2 * (uint64_t)nr_cpus;

	return nr_cpus * batch * page_bytes;
}

/* Reads statm. Returns 0, -ESRCH if the process has exited, -EINVAL or another negative errno. */
int nm_proc_read_memory(struct nm_platform *platform, int directory, struct nm_proc_memory *ret);

#define NM_PROC_STATUS_BYTES 32768 /* sufficient for 2,900 supplementary groups */

/*
 * Domains (nm_domain_of()) in which the status of some process was too long. A user may create a
 * process in 65536 groups, for which the kernel needs 30 ms each time, so that only the first such
 * process of a domain is read until the caller clears the table.
 */
#define NM_COSTLY_MOST 16U /* shared: first */
struct nm_costly {
	uint64_t domains[NM_COSTLY_MOST];
	size_t count;
};

/* As nm_proc_read_status(), for a process of this domain. Returns -EFBIG if its status is too long,
 * or -EAGAIN if it is not read because that of another process in its domain was too long. */
int nm_proc_read_status_in(struct nm_platform *platform, int directory, uint64_t domain,
			   struct nm_costly *costly, struct nm_proc_status *ret);

/*
 * The same for programs without the operations table, such as the worker and the helper: `path` is
 * relative to `directory`, a descriptor. Returns 0, -ESRCH if the thread has exited, -EINVAL, or
 * another negative errno.
 */
int nm_proc_stat_at(int directory, const char *path, struct nm_proc_stat *ret);
/* The path in the unified hierarchy, allocated. Returns 0, -ESRCH or -ENODATA (no such
 * hierarchy). */
int nm_proc_cgroup_at(int directory, const char *path, char **ret);

/* Reads and parses /proc/PID/task/TID/stat. Times are those of the thread. Returns 0, -ESRCH or
 * another negative errno. */
int nm_proc_stat_of(struct nm_platform *platform, uint32_t pid, uint32_t tid,
		    struct nm_proc_stat *ret);
/* Returns the effective user of the process. Returns 0, -ESRCH or another negative errno. */
int nm_proc_owner_of(struct nm_platform *platform, uint32_t pid, uint32_t *ret_uid);

/* Total time that a thread has run, and that it was runnable but waited for a CPU. */
struct nm_proc_schedstat {
	uint64_t run_ns, delay_ns;
	uint64_t runs;	  /* how often it was put on a CPU */
	uint64_t read_ns; /* CLOCK_MONOTONIC time of this reading */
};

/* Reads /proc/PID/task/TID/schedstat. Returns 0, -ENODATA if the kernel does not provide it, or
 * another negative errno. */
int nm_proc_read_schedstat(struct nm_platform *platform, uint32_t pid, uint32_t tid,
			   struct nm_proc_schedstat *ret);

/* Returns the path of the process in the unified hierarchy, allocated. Errors: -ENODATA (no such
 * hierarchy), -ESRCH. */
int nm_proc_read_cgroup(struct nm_platform *platform, int directory, char **ret);

/* Returns the CPU affinity of the thread, including offline CPUs, which sched_getaffinity(2) omits
 * (Cpus_allowed_list of proc_pid_status(5)). Errors: -ESRCH, -ENODATA. */
int nm_proc_read_affinity(struct nm_platform *platform, int directory, hwloc_bitmap_t ret);

/* The same for a thread in this domain, because each thread has its own groups. Returns -EFBIG or
 * -EAGAIN as nm_proc_read_status_in(). */
int nm_proc_read_affinity_in(struct nm_platform *platform, int directory, uint64_t domain,
			     struct nm_costly *costly, hwloc_bitmap_t ret);

/* Returns the online CPUs. Errors: -ENODATA or another negative errno. */
int nm_proc_read_online(struct nm_platform *platform, hwloc_bitmap_t ret);

/* Returns the clock ticks since boot, as start_ticks, at the current CLOCK_BOOTTIME; never later
 * than the start of a thread created after the call. Returns 0 if /proc/uptime cannot be read. */
uint64_t nm_proc_ticks_now(struct nm_platform *platform);

/* Reads the identification of this boot. Returns 0, -ENODATA or another negative errno. */
int nm_proc_read_boot_id(struct nm_platform *platform, char *ret, size_t size);

struct nm_cpu_times {
	uint64_t busy, total; /* clock ticks since boot; busy excludes idle and iowait */
};

/* Parses the cpuN lines of /proc/stat into times[N] for N < nr_cpus, and leaves other entries
 * unchanged. Pure. */
int nm_proc_parse_cpu_times(const char *text, struct nm_cpu_times *times, unsigned nr_cpus);

/* ---- domains ---- */

/* Return the domain of a process (nm_domain_in()) with this path in the unified hierarchy, or NULL:
 * by the operations table, or by this program itself. */
uint64_t nm_proc_domain(struct nm_platform *platform, uint32_t uid, const char *cgroup);
uint64_t nm_proc_domain_here(uint32_t uid, const char *cgroup);

/* ---- cgroups ---- */

/*
 * The limits of cgroups (cgroups(7), unified hierarchy): CPUs (cpuset.cpus.effective), CPU time
 * (cpu.max) and its weight. Users can create cgroups thousands of levels deep, so paths beyond 32
 * levels are not opened, and each file is read once per tick.
 */

#define NM_CGROUPS_LEVELS 32U

struct nm_cgroups;

/* Creates a reader. The platform must outlive it. */
struct nm_cgroups *nm_cgroups_new(struct nm_platform *platform);
void nm_cgroups_free(struct nm_cgroups *cgroups);
NM_DEFINE_CLEANUP(struct nm_cgroups, nm_cgroups_free);

/* Begins the tick with this time. If the time differs from that of the last call, all files are
 * read again. */
void nm_cgroups_begin(struct nm_cgroups *cgroups, uint64_t now_ns);

/* Discards all values read. */
void nm_cgroups_forget(struct nm_cgroups *cgroups);

/*
 * Returns the CPUs that the cgroup (a path as in /proc/PID/cgroup), or its nearest ancestor with a
 * cpuset, may use. *ret_root, if not NULL, is set to whether that is the root. Returns 0; -ENODATA
 * if it is not known (too deep, outside the cgroup namespace, no such controller); or another
 * negative errno if it cannot be read now.
 */
int nm_cgroups_cpus(struct nm_cgroups *cgroups, const char *cgroup, hwloc_bitmap_t ret,
		    bool *ret_root);

/* The same for the thread or process of a directory in /proc, whose file "cpuset" names that
 * ancestor with one read. *ret_root, if not NULL, is set as above; *ret_id, if not NULL, is set to
 * a hash of the path and the CPUs of that ancestor, which differs after the cpuset has changed, or
 * after another one applies. Also returns -ESRCH if it has exited. */
int nm_cgroups_cpuset_of(struct nm_cgroups *cgroups, int directory, hwloc_bitmap_t ret,
			 bool *ret_root, uint64_t *ret_id);

/* Returns the CPU time, in CPUs, that the limits of the cgroup and its ancestors allow; infinity
 * without a limit. Errors are those of nm_cgroups_cpus(). */
int nm_cgroups_cpu_limit(struct nm_cgroups *cgroups, const char *cgroup, double *ret_cpus);

/* Returns whether the cgroup or an ancestor leaves the CPUs to others: cpu.idle is set, or
 * cpu.weight is the lowest. Errors are those of nm_cgroups_cpus(). */
int nm_cgroups_yields(struct nm_cgroups *cgroups, const char *cgroup, bool *ret);

/* Returns the number of calls to the platform since the start, for budgets. */
uint64_t nm_cgroups_calls(const struct nm_cgroups *cgroups);

/* ---- memory of a node ---- */

/*
 * The amount of memory on a node that the kernel would make available for migrated pages. A
 * migration to one node reclaims clean page cache before it fails, so such cache counts as
 * available.
 */

struct nm_node_memory {
	uint64_t total_bytes, free_bytes;
	uint64_t clean_bytes; /* inactive file pages that need no writeback */
};

/* Parses /sys/devices/system/node/nodeN/meminfo. Returns 0 or -EINVAL. Pure. */
int nm_node_memory_parse(const char *text, struct nm_node_memory *ret);

/* Reads that file for the node with the kernel's number os_id. Returns 0, -EINVAL or another
 * negative errno. */
int nm_node_memory_read(struct nm_platform *platform, unsigned os_id, struct nm_node_memory *ret);
/* Returns the size of the machine's pools of huge pages in bytes; 0 also if it is not known. */
uint64_t nm_hugetlb_read(struct nm_platform *platform);

/* Memory that the kernel itself keeps free: vm.min_free_kbytes and vm.watermark_scale_factor
 * (sysctl/vm.rst). */
struct nm_watermarks {
	uint64_t min_free_bytes;
	double scale; /* distance between two watermarks, as a share of the node's memory */
};

/* Reads the two settings. A file that cannot be read counts as 0. */
struct nm_watermarks nm_watermarks_read(struct nm_platform *platform);

/*
 * Returns free memory plus clean inactive file pages, minus the high watermark and the share
 * keep_free (0–1) of the node's memory. Subtracts min_free_kbytes completely, although the node's
 * part of it is smaller. Pure.
 */
uint64_t nm_node_memory_available(const struct nm_node_memory *memory,
				  const struct nm_watermarks *watermarks, double keep_free);

/* The same for the node with the kernel's number os_id, read now. Returns 0, -EINVAL or another
 * negative errno. */
int nm_node_available_read(struct nm_platform *platform, unsigned os_id,
			   const struct nm_watermarks *watermarks, double keep_free,
			   uint64_t *ret_bytes);

/* ---- reclaim ---- */

/* Finds a counter in the text of /proc/vmstat, which must not be the first line. Returns false if
 * there is none with this name. Pure. */
bool nm_vmstat_value(const char *text, const char *name, uint64_t *ret);
/* Reads the current text of /proc/vmstat, or "" if it cannot be read. */
#define NM_VMSTAT_BYTES 16384U
void nm_vmstat_read(struct nm_platform *platform, char text[NM_VMSTAT_BYTES]);

/* Counters of the machine since boot; 0 for a counter that does not exist. */
struct nm_reclaim {
	uint64_t direct_scanned, direct_reclaimed; /* pages, by allocations that waited for
						    * memory */
	uint64_t background_scanned;		   /* pages, by kswapd */
	uint64_t swapped_out;
};
struct nm_reclaim nm_reclaim_parse(const char *vmstat);

/*
 * Returns whether programs lost memory that they use, between two readings: pages were swapped out
 * while the machine was short of memory (a cgroup at its own limit swaps, too), or direct reclaim
 * scanned pages and reclaimed less than 40 % of them, which vmpressure calls medium
 * (mm/vmpressure.c). Direct reclaim of clean page cache, which migration itself causes, reclaims
 * nearly all. Pure.
 */
bool nm_reclaim_hurts(const struct nm_reclaim *before, const struct nm_reclaim *now);

/* The state of one observer of reclaim; initially {0}. */
struct nm_reclaim_watch {
	struct nm_reclaim last;
	bool known;		   /* `last` is valid */
	uint64_t read_ns, hurt_ns; /* times of the last reading and the last sign of harm; 0:
				    * never */
};
#define NM_RECLAIM_AGE_NS (100 * NM_NSEC_PER_MSEC) /* after which the counters are read again */
#define NM_RECLAIM_QUIET_NS NM_NSEC_PER_SEC /* time without another sign after which it is over */

/*
 * Returns true if reclaim has harmed programs within the last second, and the node with the
 * kernel's number os_id has less free memory than its high watermark, below which it is reclaimed.
 * Nothing should then be moved to it. The kernel counts reclaim per machine (per node only since
 * Linux 7.0).
 */
bool nm_node_is_reclaimed(struct nm_platform *platform, struct nm_reclaim_watch *watch,
			  unsigned os_id, uint64_t now_ns);

/* ---- automatic NUMA balancing ---- */

/*
 * The meaning of a value of kernel.numa_balancing (Documentation/admin-guide/sysctl/kernel.rst of
 * Linux). It is a set of bits: 1 balances between nodes, 2 promotes hot pages from slow to fast
 * memory. Without bit 1, there are no hinting faults in ordinary memory, and neither its pages nor
 * threads are moved. Pure.
 */

#define NM_NUMA_BALANCING_NODES 1

/* Returns whether the kernel balances between nodes. A negative value means that it has no such
 * setting. */
static inline bool nm_balances_nodes(int64_t value)
{
	return value >= 0 && value & NM_NUMA_BALANCING_NODES;
}

/*
 * Returns the value with balancing between nodes switched on or off and the other bits unchanged.
 */
static inline int nm_balancing_with(int64_t value, bool nodes)
{
	int others = value < 0 ? 0 : (int)value & ~NM_NUMA_BALANCING_NODES;

	return nodes ? others | NM_NUMA_BALANCING_NODES : others;
}

/* Completes "kernel.numa_balancing is …" for a value that does not balance between nodes. */
static inline const char *nm_balancing_off_text(int64_t value)
{
	if (value < 0)
		return "not offered by this kernel";
	return value == 0 ? "0" : "2 (tiers of memory only)";
}

/* ---- programs ---- */

/* Longer than any line except one of a path with hundreds of newlines, which is skipped. */
#define NM_PROGRAM_LINE_BYTES 4608U

/* Position of the search in the text of /proc/PID/maps; initially zero. */
struct nm_program_search {
	bool known;
	unsigned program; /* number in nm_excluded_programs (exclusions.h); 0: another one */
	char line[NM_PROGRAM_LINE_BYTES];
	size_t used;   /* length of the line read so far */
	bool too_long; /* the line exceeds the buffer; the rest of it is skipped */
};

/*
 * Searches the next piece of the text, which may begin and end within a line, for the program,
 * which the kernel maps below its libraries: the first mapping of a file. Unlike the link
 * /proc/PID/exe, this file does not need a path to be followed. Pure.
 */
void nm_program_search(struct nm_program_search *search, const char *text, size_t length);

/* ---- other daemons ---- */

/* Other programs that move some of the same threads or memory, by their command names. */

struct nm_foreign_process {
	const char *comm; /* at most 15 bytes, as stored by the kernel */
	bool anyone;	  /* any user may run it */
	const char *does, *remedy;
};

typedef void nm_foreign_found(void *context, const struct nm_foreign_process *other, uint32_t pid);
/* Reports each of these programs that runs, by one of its processes, because any user may start
 * many. */
void nm_foreign_find(struct nm_platform *platform, nm_foreign_found *report, void *context);

#endif

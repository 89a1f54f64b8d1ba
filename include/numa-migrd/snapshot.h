/* SPDX-License-Identifier: MIT */
/* One interval as an immutable value: the managed threads with their metrics, processes and CPUs.
 * It contains everything that a policy may use. Pure. */
#ifndef NUMA_MIGRD_SNAPSHOT_H
#define NUMA_MIGRD_SNAPSHOT_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "tasks/metrics.h"
#include "tasks/tasks.h"
#include "numa-migrd/topology.h"

struct nm_snap_thread {
	uint32_t tid, pid;
	uint64_t start_ticks;
	uint64_t adopted_ns; /* a different value means that another program runs in the thread */
	unsigned process;    /* index into processes */
	/*
	 * As decisions use them: main_node is also -1 if the thread ran on too many nodes, and
	 * accesses to a memory-only node are counted at the CPU node that represents it, so that
	 * tickets, gate and verdict use the same definition of local. The snapshot owns `accesses`
	 * and `fresh`, which are never NULL.
	 */
	struct nm_thread_stats stats;
	double local_share; /* share of accesses on the node of main_cpu; NaN without accesses */
	int preferred;		      /* node index by the one-tie rule; -1: none */
	hwloc_const_bitmap_t allowed; /* upper limit for destinations */
	bool everywhere; /* `allowed` includes every usable CPU, so it need not be tested */
	bool unrestricted;
	int assigned; /* node to which it is assigned (numa-migrd/assign.h); -1: none */
	bool rests;   /* it does not compute, so that a wake-up may bring it anywhere at any time */
	bool yields;  /* it leaves its CPU to any other thread, so that it is no load for them */
	bool only_watched; /* measured but never moved or moved back */
	bool left_alone;   /* for this reason only: see struct nm_managed_thread */
	double intensity;  /* 3DyRM: operations per byte of traffic; NaN: not known */
	double performance;			       /* P; NaN unless measured */
	double relative;   /* P̂: P divided by the mean of its process; NaN if that is 0 or not
			    * known */
	bool active;	   /* ran for at least min_run of the interval */
	bool measured;	   /* active, with enough samples and a known P: included in means, records
			    * and P_g */
	bool undersampled; /* active, with fewer samples than P requires (min_samples) */
	bool valid;   /* active, with enough accesses and a main node: may take part in the lottery
		       * and in means */
	bool movable; /* past its warm-up, not barred, and no verdict pending */
};

struct nm_snap_process {
	uint32_t pid, uid;
	uint64_t domain;
	uint64_t start_ticks;
	uint64_t program_ns; /* start time of its program; a different value means another
			      * program */
	double age_s;	     /* since the start of its program */
	uint64_t anon_bytes; /* anonymous memory, which could be migrated to another node */
	uint64_t rss_bytes;  /* all of its memory */
	/* As in struct nm_proc_status (proc.h); shared_bytes and hugetlb_bytes are 0 if shared
	 * memory may move (pages.also). */
	uint64_t pinned_bytes, shared_bytes, hugetlb_bytes, excluded_mems;
	double cpu_limit; /* CPUs that its cgroups allow it; 0: no limit */
	const char *comm; /* escaped; owned by the snapshot */
	unsigned threads; /* number of managed threads */
	unsigned measured;
	double performance; /* mean P of its measured threads; NaN without any */
	bool left_alone;    /* as in struct nm_process */
	bool keeps_memory;  /* nm_config_keeps_memory() */
	bool at_home;	    /* policy "auto" has given it a home, which moves all of its threads */
};

struct nm_snap_cpu {
	int node; /* -1: absent or offline */
	bool usable;
	bool idle; /* busy share below free_max, and main CPU of no managed thread */
	/* Idle, or one of the CPUs that the node's idle time covers. */
	bool free;
	bool sibling_busy; /* an SMT sibling's busy share is at least free_max */
	unsigned sibling;  /* next CPU of the same core, in a ring; a single CPU: itself */
	double busy_share; /* CPU time of all tasks, from /proc/stat */
	unsigned first_main_thread,
		nr_main_threads; /* the managed threads whose main CPU this is:
				  * snapshot->main_threads[first_main_thread …] */
};

struct nm_snapshot {
	uint64_t interval; /* number of this interval since the start */
	uint64_t time_ns;
	const struct nm_topology *topology;
	struct nm_snap_thread *threads; /* ascending tid */
	size_t nr_threads;
	size_t active, measured; /* numbers of threads */
	size_t undersampled;	 /* number of active threads with fewer samples than P requires */
	double performance;	 /* P_g: sum of P over the measured threads */
	/*
	 * The metrics that threads.performance requires are not sampled. P is then the distance of
	 * local memory divided by the mean distance of the accesses; with policy "balance", times
	 * the thread's share of a CPU.
	 */
	bool by_locality;
	/*
	 * The metrics required for P that are not sampled, as bits 1 << kind; latencies are MEMORY.
	 */
	uint32_t missing;
	bool kernel_balances; /* automatic NUMA balancing moves threads and pages, too */
	/* Per node: bytes per second that its memory serves to managed threads, by their accesses;
	 * without accesses a thread's traffic counts where it runs. 0: not known. */
	double *traffic;
	/* The node whose memory serves most of the traffic of all threads, if that may be all that
	 * it can serve; -1: none, or the traffic is not known. */
	int contended;
	bool has_latencies; /* a managed thread has a latency in this interval */
	struct nm_snap_process *processes;
	size_t nr_processes;
	struct nm_snap_cpu *cpus; /* topology->nr_cpus entries */
	double idle_cpu;	  /* a CPU is idle above this idle share: 1 - free_max */
	/*
	 * The capacity, in cores, that each further SMT sibling adds to a core. While cores
	 * elsewhere are idle it is 0.25, as measured for most programs (Intel Technology Journal
	 * 6(1), 2002, section "Hyper-Threading performance"). It rises to 1 as the demand on the
	 * machine exceeds its cores, because siblings must then be used wherever a thread runs.
	 */
	double sibling_worth;
	uint32_t *main_threads; /* thread indices grouped by main CPU, in ascending tid order within
				 * a group */
};

struct nm_snapshot_input {
	uint64_t interval, time_ns;
	const struct nm_topology *topology;
	const struct nm_config *config;
	const struct nm_sampled_thread *sampled; /* ascending tid */
	size_t nr_sampled;
	const struct nm_managed_thread *managed; /* managed threads only, ascending tid */
	size_t nr_managed;
	const double *busy_share; /* per CPU id; NULL or NaN: not known, and such a CPU does not
				   * count as free */
	uint32_t kinds;		  /* metrics that are sampled, as in struct nm_metrics_interval */
	/* The source has delivered a latency recently, so an interval without one does not mean
	 * that it cannot. */
	bool had_latencies;
	bool kernel_balances;
};

/*
 * Builds a snapshot from copies of the input, except for the topology and the CPU sets, which must
 * outlive it. A member without metrics is included without a main node. Returns 0, or -ERANGE for a
 * pid above PID_MAX_LIMIT.
 */
int nm_snapshot_build(const struct nm_snapshot_input *input, struct nm_snapshot **ret);
void nm_snapshot_free(struct nm_snapshot *snapshot);
NM_DEFINE_CLEANUP(struct nm_snapshot, nm_snapshot_free);

/* Bytes per second, which one channel of DDR3-1066 sustains; lower traffic does not show a limit.
 */
#define NM_CONTROLLER_MIN 8e9

/* Returns the thread with this tid, or NULL. */
const struct nm_snap_thread *nm_snapshot_thread(const struct nm_snapshot *snapshot, uint32_t tid);
/* Return the share of accesses to memory on the node of their thread, and the mean latency in
 * cycles, over all threads of the snapshot; NaN: not known. For display. */
double nm_snapshot_local_share(const struct nm_snapshot *snapshot);
double nm_snapshot_latency(const struct nm_snapshot *snapshot);

/*
 * Returns whether a thread with this affinity may use the CPU as a free one. If the CPU is free
 * only by the idle time of its node, the CPUs in `allowed` must have one CPU's worth of idle time.
 * (numa-migrd.conf(5), free_max)
 */
bool nm_snapshot_is_free_for(const struct nm_snapshot *snapshot, int cpu,
			     hwloc_const_bitmap_t allowed);

/* Returns the busy share of a CPU; an unknown one counts as fully busy. Pure. */
static inline double nm_busy_share(const struct nm_snap_cpu *cpu)
{
	return cpu->busy_share < 1 ? cpu->busy_share : 1;
}

/* Returns the request to read the times of a thread, for nm_times_read(). */
static inline struct nm_times_reading nm_snap_reading(const struct nm_snapshot *snapshot,
						      uint32_t i)
{
	const struct nm_snap_thread *thread = &snapshot->threads[i];
	return (struct nm_times_reading){.thread = i,
					 .pid = thread->pid,
					 .tid = thread->tid,
					 .start_ticks = thread->start_ticks};
}

/* Returns the capacity, in cores, of the usable CPUs in the set. Pure. */
double nm_core_capacity(const struct nm_snapshot *snapshot, hwloc_const_bitmap_t cpus);

/* ---- state by task ---- */

/*
 * A stage's state of each thread or process: an array by index of the snapshot, which follows the
 * tasks from one snapshot to the next. A task is the same as long as its number, its start time and
 * its program are. Pure.
 */

/* The identity of a task, and the index of its cell. */
struct nm_column_key {
	uint32_t id, row;
	uint64_t start_ticks;
	uint64_t program_ns; /* start of its program; of a thread: when it was adopted */
};

/* Initially zero, except for the functions and the size. */
struct nm_column {
	size_t cell_bytes;
	/* Initializes the cell of a task in the snapshot. NULL: it stays zero. */
	void (*init)(const struct nm_snapshot *snapshot, void *cell);
	/* Frees what a cell owns, which may be zero. NULL: it owns nothing. */
	void (*clear)(void *context, void *cell);
	void *context;
	void *cells;
	struct nm_column_key *keys; /* ascending id */
	size_t count;
};

/* Moves each cell to the index of its thread or process in the snapshot. Cells of tasks that are
 * not in it are cleared, those of new tasks initialized. */
void nm_column_follow_threads(struct nm_column *column, const struct nm_snapshot *snapshot);
void nm_column_follow_processes(struct nm_column *column, const struct nm_snapshot *snapshot);

/* Adds a process between two snapshots, unless the column has it; a former process with its PID is
 * cleared. The cells are in ascending PID then. */
void nm_column_add_process(struct nm_column *column, const struct nm_snapshot *snapshot,
			   uint32_t process);

/* Returns the cell of the task with this TID or PID, or NULL. It moves when the column follows. */
void *nm_column_find(const struct nm_column *column, uint32_t id);

/* Makes the column clear the cell of this task, and begin it anew, when it follows again. */
void nm_column_renew(struct nm_column *column, uint32_t id);

/* Clears all cells, and frees the arrays. */
void nm_column_clear(struct nm_column *column);

#endif

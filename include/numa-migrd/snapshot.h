/* SPDX-License-Identifier: MIT */
/*
 * One interval as an immutable value: managed threads with their figures, processes, CPUs.
 * Everything that a policy may look at is here, and nothing else. Pure.
 */
#ifndef NUMA_MIGRD_SNAPSHOT_H
#define NUMA_MIGRD_SNAPSHOT_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "numa-migrd/metrics.h"
#include "numa-migrd/roster.h"
#include "numa-migrd/topology.h"

struct nm_snap_thread {
	uint32_t tid, pid;
	uint64_t start_ticks;
	uint64_t adopted_ns;	/* another one: another program, though all else is the same */
	unsigned process;	/* index into processes */
	int main_cpu;		/* -1: did not run */
	int main_node;		/* -1: no home (did not run, or too spread over nodes) */
	double run_share;	/* NaN where unknown */
	double access_total;	/* NaN where unknown */
	double access_samples;	/* behind them, in the window */
	uint32_t fresh_samples; /* in this interval */
	double local_share;	/* on the node of main_cpu; NaN without accesses */
	/*
	 * nr_nodes values each, of the window and of this interval; owned by the snapshot, never
	 * NULL. A memory-only node's accesses are counted at the node that stands for it, so that
	 * tickets, gate and verdict agree on what is local.
	 */
	const double *accesses;
	const uint32_t *fresh;
	int preferred;		      /* node index, one-tie rule; -1: none */
	hwloc_const_bitmap_t allowed; /* outer bound for destinations */
	bool everywhere;	      /* `allowed` holds every usable CPU; false: ask it */
	bool unrestricted;
	bool leased; /* holds a mask of ours */
	bool forked; /* it has started a process */
	bool only_watched; /* is never moved, nor moved back */
	/* 3DyRM, of this interval (metrics.h); NaN where unknown. I is the O of P by the traffic.
	 */
	double latency, instructions, operations, intensity;
	double traffic; /* bytes per second from and to DRAM, likewise */
	uint32_t latency_samples;
	double recent_latency_samples, recent_latency; /* of the window (metrics.h) */
	double performance; /* P; NaN unless measured */
	double relative; /* P̂: P by the mean over its process; NaN where that is 0 or unknown */
	bool active;	 /* ran at least threads.min_run of the interval */
	bool measured;	 /* active, enough samples, P known: counts in means, records and P_g */
	bool undersampled; /* active, with fewer samples than P needs (threads.min_samples) */
	bool valid; /* active, enough accesses, has a home: may stand in the lottery and in means */
	bool movable; /* past warm-up, neither barred nor held */
};

struct nm_snap_process {
	uint32_t pid, uid;
	uint64_t start_ticks;
	uint64_t program_ns; /* when its program began; another one: another program */
	double age_s;	     /* since then */
	double quiet_s; /* since it created a thread or child; its age where it never did */
	uint64_t anon_bytes; /* its size: what could follow it to another node */
	const char *comm; /* escaped; owned by the snapshot */
	unsigned threads; /* managed ones */
	unsigned measured;
	double performance; /* mean P over its measured threads; NaN without */
	bool young;	    /* younger than threads.young_s: a lease would be seen by its sizing */
	bool spawning;	    /* created a thread or child within threads.quiet_s */
	enum nm_runtime runtime; /* one that may count its CPUs again would see a lease */
};

struct nm_snap_cpu {
	int node; /* -1: absent or offline */
	bool usable;
	bool idle;	   /* busy share below free_max and home of no managed thread */
	bool free;	   /* idle, or one of as many as the node has CPUs' worth of idle time */
	bool sibling_busy; /* an SMT sibling is at or above free_max */
	double busy_share; /* everything that ran, from /proc/stat */
	unsigned first_home,
		homes; /* its managed home threads: snapshot->home_threads[first_home …] */
};

struct nm_snapshot {
	uint64_t interval; /* number of this interval since the start */
	uint64_t time_ns;
	const struct nm_topology *topology;
	struct nm_snap_thread *threads; /* ascending tid */
	size_t nr_threads;
	size_t active, measured; /* of the threads */
	size_t undersampled;	 /* active ones with fewer samples than P needs */
	double performance;	 /* P_g: the sum of P over measured threads */
	/* What threads.performance needs is not sampled: P is the distance of local memory by the
	 * mean distance of the accesses; with policy "balance", times the thread's share of a CPU. */
	bool by_locality;
	/* Bits 1 << kind: of what it needs, what is not sampled; latencies are MEMORY. */
	uint32_t missing;
	bool has_latencies; /* of a managed thread, in this interval */
	struct nm_snap_process *processes;
	size_t nr_processes;
	struct nm_snap_cpu *cpus; /* topology->nr_cpus */
	double idle_cpu; /* idle share above which a CPU is one: 1 - free_max */
	uint32_t
		*home_threads; /* thread indices grouped by home CPU, ascending tid in each group */
};

struct nm_snapshot_input {
	uint64_t interval, time_ns;
	const struct nm_topology *topology;
	const struct nm_config *config;
	const struct nm_figures *figures; /* ascending tid */
	size_t nr_figures;
	const struct nm_member *members; /* ascending tid; managed threads only */
	size_t nr_members;
	const double *busy_share; /* per CPU id; NULL or NaN: unknown, and then not free */
	uint32_t kinds;		  /* what is sampled, as in struct nm_metrics_interval */
	/* The source has given a latency of late: an interval without any is no news. */
	bool had_latencies;
};

/*
 * Builds the value; copies what it keeps (but topology and masks, which must outlive it). Members
 * without figures are there without a home. Returns 0, -ENOMEM, or -ERANGE for a pid above
 * PID_MAX_LIMIT. Tick.
 */
int nm_snapshot_build(const struct nm_snapshot_input *input, struct nm_snapshot **ret);
void nm_snapshot_free(struct nm_snapshot *snapshot);
NM_DEFINE_CLEANUP(struct nm_snapshot, nm_snapshot_free);

/* The thread with this id, or NULL. */
const struct nm_snap_thread *nm_snapshot_thread(const struct nm_snapshot *snapshot, uint32_t tid);

/*
 * May a thread with this mask take the CPU as a free one? One that is free by its node's idle time
 * needs a CPU's worth of it among the CPUs that the mask allows. (numa-migrd.conf(5), free_max)
 */
bool nm_snapshot_is_free_for(const struct nm_snapshot *snapshot, int cpu,
			     hwloc_const_bitmap_t allowed);

/*
 * What each further SMT sibling of a core adds to it, in cores: a quarter, as measured for most
 * programs (Intel Technology Journal 6(1), 2002, section "Hyper-Threading performance"), while
 * cores elsewhere are idle; as the machine's demand exceeds its cores, up to 1, since siblings have
 * to be used then, wherever a thread runs. 0 or -ENOMEM. Tick.
 */
int nm_sibling_worth(const struct nm_snapshot *snapshot, double *ret);

/* The cores' worth of the CPUs in the set that are usable, with that worth of siblings. 0 or
 * -ENOMEM. Tick. */
int nm_core_capacity(const struct nm_snapshot *snapshot, hwloc_const_bitmap_t cpus,
		     double sibling_worth, double *ret);

#endif

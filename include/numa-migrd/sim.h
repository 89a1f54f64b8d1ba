/* SPDX-License-Identifier: MIT */
/*
 * A model of a NUMA machine, its operating system and the programs on it, behind the ops table and
 * with samples as a processor's counters would give. Pure: time passes when nm_sim_advance() says
 * so, and chance is the seed's. It knows no policy: a program that moves threads and pages is a
 * caller of the ops.
 */
#ifndef NUMA_MIGRD_SIM_H
#define NUMA_MIGRD_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numa-migrd/base.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/topology.h"

/* ---- machines ---- */

#define NM_SIM_NODES_MOST 128U

/* What connects nodes, one way. */
struct nm_sim_link {
	double bytes_per_ns;
};

struct nm_sim_machine {
	struct nm_topology *topology;
	double ghz;
	double smt_gain; /* throughput of a core whose two threads are busy, in that of one thread
			  */
	double *latency_ns; /* nr_nodes × nr_nodes: idle, of a thread there to memory here */
	double *node_bytes_per_ns; /* what each memory controller sustains */
	struct nm_sim_link *links;
	unsigned nr_links;
	/* nr_nodes × nr_nodes × nr_links: the share of that pair's traffic that a link carries. */
	double *route;
};

/* One row of the table of built-in machines; each figure's source is in machine.c. */
struct nm_sim_model {
	const char *name, *words;
};

/* The built-in machines one after another; NULL: no more. */
const struct nm_sim_model *nm_sim_model(size_t index);
/* A built-in machine; the caller frees. -ENOENT, -ENOMEM. */
int nm_sim_machine_by_name(const char *name, struct nm_sim_machine **ret);
/*
 * A machine of this topology, which it takes over: latencies by the distances, a link in and one
 * out for each node; see machine.c for what is assumed. -ENOMEM: the topology is the caller's
 * still.
 */
int nm_sim_machine_of(struct nm_topology *topology, struct nm_sim_machine **ret);
/* Nodes in a row, all at one distance: for tables of scale. -EINVAL, -ENOMEM. */
int nm_sim_machine_regular(unsigned nodes, unsigned cpus, struct nm_sim_machine **ret);
void nm_sim_machine_free(struct nm_sim_machine *machine);
NM_DEFINE_CLEANUP(struct nm_sim_machine, nm_sim_machine_free);

/* ---- workloads ---- */

#define NM_SIM_NAME_BYTES 32

enum nm_sim_touch {
	NM_SIM_TOUCH_OWN,    /* each thread writes its block first */
	NM_SIM_TOUCH_MASTER, /* the first thread writes all of it */
};
enum nm_sim_placement {
	NM_SIM_PLACE_SYSTEM, /* first touch; threads wherever the scheduler puts them */
	NM_SIM_PLACE_DIRECT, /* numactl --cpunodebind --membind: one node for threads and memory
			      */
	NM_SIM_PLACE_INTERLEAVE, /* numactl --interleave=all */
	NM_SIM_PLACE_ORACLE, /* each thread bound to a node, blocks in a row on nodes in a row */
};

/* What threads of a program do for a while. */
struct nm_sim_phase {
	double giga;   /* 10^9 instructions that each thread executes */
	double cpi;    /* cycles per instruction while no memory is waited for */
	double flops;  /* floating-point operations per instruction, before the vector width */
	double vector; /* operations of one such instruction */
	double misses_per_kilo; /* instructions: accesses served by memory */
	double overlap;		/* of them under way at once */
	double private_part, neighbour_part,
		shared_part; /* of accesses: own block, two next ones, any */
	double idle_s;	     /* mean sleep of each thread afterwards; at most twice that */
	double period_giga;  /* between two barriers; 0: none */
	/* The first threads of the program execute it, others wait or do not exist yet. 0: all */
	unsigned threads;
	double touched; /* share of the memory that is written when it begins; 0: all. Never less
			 * than before. Threads wait for one another before a phase in which this or
			 * `threads` differs. */
};

struct nm_sim_program {
	char name[NM_SIM_NAME_BYTES];
	unsigned threads;
	double footprint_mb;
	unsigned page_kb; /* 4, or 2048 */
	enum nm_sim_touch touch;
	struct nm_sim_phase *phases; /* owned */
	size_t nr_phases;
};

/* Runs programs one after another. */
struct nm_sim_user {
	char name[NM_SIM_NAME_BYTES];
	double start_s, idle_s; /* idle: between two programs */
	double spread_s;	/* random delay of the start, at most this: users with one start_s
				 * and spread_s arrive as in a Poisson process */
	enum nm_sim_placement placement;
	int node;	/* DIRECT: node index; ORACLE: the first of its nodes; else -1 */
	unsigned width; /* ORACLE: over so many nodes with CPUs; 0: over all */
	bool for_ever;			 /* begins anew after the last */
	struct nm_sim_program *programs; /* owned */
	size_t nr_programs;
};

struct nm_sim_workload {
	double limit_s;		   /* ends then whatever still runs */
	/* Clean page cache fills each node when it begins, and what programs leave free later. */
	bool full_page_cache;
	struct nm_sim_user *users; /* owned */
	size_t nr_users;
};

/*
 * Parses a declarative workload (libconfig text; numa-migrctl(1), "SIMULATION"). -EINVAL with place
 * and reason in `error`; -ENOMEM. The caller clears.
 */
int nm_sim_workload_parse(const char *name, const char *text, size_t length, char *error,
			  size_t error_size, struct nm_sim_workload *ret);
void nm_sim_workload_clear(struct nm_sim_workload *workload);
/* Appends a user without programs to it; it is valid until the next. NULL: no memory. */
struct nm_sim_user *nm_sim_workload_add(struct nm_sim_workload *workload, const char *name);
/* Appends a program of the built-in table ("bt", …, see programs.c) to a user's; NULL, as above. */
struct nm_sim_program *nm_sim_user_add(struct nm_sim_user *user, const char *program,
				       unsigned threads);
/* Names of the built-in programs, ended by NULL. */
const char *const *nm_sim_programs(void);

/* ---- the model in motion ---- */

struct nm_sim_options {
	uint64_t seed;
	double step_s;	       /* rates are constant for so long; 0: 0.1 */
	bool numa_balancing;   /* the kernel moves pages to who touches them, and tasks to pages */
	bool cache_aware;      /* the kernel gathers threads under a last-level cache (gather.c) */
	/*
	 * How often a thread is put on another CPU though its own is free: a parameter, as no
	 * figure for real machines is known. 0: never.
	 */
	double wander_per_s;
	double memory_period;  /* accesses per sample; 0: 500000 */
	double most_samples_s; /* of accesses, per thread; 0: 200, as the overhead control would
				  have it */
	bool unobserved;       /* nobody looks: no samples are made */
	bool no_pmu;	       /* samples show only which thread runs where */
	double run_sample_s;   /* CPU time for each of those; 0: 0.01 */
	uint32_t unmovable_pid; /* its affinities and pages cannot be changed; 0: none */
	/* Work of this process from then on is summed up; 0: none. */
	uint32_t watched_pid;
	double watched_from_s;
};

/* Of the rates that tables are made for, 0, 0.02 and 0.1, the middle one. */
#define NM_SIM_WANDER_USUAL 0.02

/* Sums since the start. */
struct nm_sim_figures {
	double time_s;
	double thread_s;       /* CPU time of all threads */
	/* Summed over programs that ended, from begin to end; users with `repeat` do not count. */
	double computing_s;
	double slowest_user_s; /* that sum, of the user of whom it is largest; not of those who
				  repeat */
	double accesses, local_accesses, bytes;
	uint64_t programs_ended, samples;
	uint64_t users_ended; /* with the last of their programs; who repeats does not */
	uint64_t moves;	      /* of threads to another node, by any cause */
	uint64_t pages_moved; /* by calls of pages_move */
	uint64_t pages_balanced; /* by kernel.numa_balancing */
	uint64_t masks_set;
	double watched_giga; /* 10^9 instructions of the process that is watched */
	bool watched_ended;
	double most_node_use, most_link_use; /* of what it sustains, in any step */
};

struct nm_sim;

/* The machine and the workload must outlive it. -ENOMEM; -E2BIG: more than 128 nodes; -ENODEV: no CPU is
 * online. */
int nm_sim_new(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload,
	       const struct nm_sim_options *options, struct nm_sim **ret);
void nm_sim_free(struct nm_sim *sim);
NM_DEFINE_CLEANUP(struct nm_sim, nm_sim_free);

/* One step; -ENOMEM; -EAGAIN: a million threads were begun, there are no numbers left. */
int nm_sim_step(struct nm_sim *sim);
/* Everything has ended, or the time is up. */
bool nm_sim_over(const struct nm_sim *sim);
struct nm_sim_figures nm_sim_figures(const struct nm_sim *sim);

/* A sum over every mask and page that was set, in order (FNV-1a). */
uint64_t nm_sim_digest(const struct nm_sim *sim);

/* The ops on the model. Owned by it; freeing the platform does nothing. */
struct nm_platform *nm_sim_platform(struct nm_sim *sim);
/* Where samples come from (sample.h): valid as long as the model is. */
struct nm_feed nm_sim_feed(struct nm_sim *sim);
/* nm_topology_source.load: a copy of the machine's. */
int nm_sim_load_topology(void *context, struct nm_topology **ret);

/* ---- looking into it: tests and reports ---- */

struct nm_sim_thread_view {
	uint32_t pid, tid;
	int cpu, node;
	double done_giga;
	double latency_ns;   /* mean, of its accesses in the last step */
	double bytes_per_ns; /* likewise */
	const double *mix;   /* share of its accesses to each node */
};
size_t nm_sim_nr_threads(const struct nm_sim *sim);
struct nm_sim_thread_view nm_sim_thread(const struct nm_sim *sim, size_t index);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A model of a NUMA machine, its operating system and its programs, behind the operations table and
 * with samples like those of a processor's counters. Pure: time passes only in nm_sim_step(), and
 * random numbers derive from the seed. The model contains no policy: a program that moves threads
 * and pages calls the operations.
 */
#ifndef NUMA_MIGRD_SIM_H
#define NUMA_MIGRD_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "policy/placement.h"
#include "numa-migrd/platform.h"
#include "sample/sample.h"
#include "numa-migrd/topology.h"
#include "policy/trial.h"

/* ---- machines ---- */

#define NM_SIM_NODES_MAX 128U

/* A one-way connection between nodes. */
struct nm_sim_link {
	double bytes_per_ns;
};

struct nm_sim_machine {
	struct nm_topology *topology;
	double ghz;
	double smt_gain; /* throughput of a core with two busy threads, relative to one thread */
	double *latency_ns; /* nr_nodes × nr_nodes, without load: from a thread on one node to
			     * memory on another */
	unsigned nr_caches; /* last-level caches whose effects are modelled; 0: misses are constant */
	double *node_bytes_per_ns; /* bandwidth that each memory controller sustains */
	struct nm_sim_link *links;
	unsigned nr_links;
	/* nr_nodes × nr_nodes × nr_links: the share of a pair's traffic that each link carries. */
	double *route;
};

/* One row of the table of built-in machines; machine.c cites the source of each value. */
struct nm_sim_model {
	const char *name, *words;
};

/* Returns the built-in machine with this index, or NULL after the last. */
const struct nm_sim_model *nm_sim_model(size_t index);
/* Creates a built-in machine, which the caller frees. Returns 0, -ENOENT or -ENOMEM. */
int nm_sim_machine_by_name(const char *name, struct nm_sim_machine **ret);
/*
 * Creates a machine from a topology, which it takes over: latencies follow the distances, and each
 * node has one link in and one out; see machine.c for the assumptions. Returns 0, or -ENOMEM, in
 * which case the caller still owns the topology.
 */
int nm_sim_machine_of(struct nm_topology *topology, struct nm_sim_machine **ret);
/* Creates a machine of equidistant nodes, for scalability tables. Returns 0, -EINVAL or -ENOMEM. */
int nm_sim_machine_regular(unsigned nodes, unsigned cpus, struct nm_sim_machine **ret);
void nm_sim_machine_free(struct nm_sim_machine *machine);
NM_DEFINE_CLEANUP(struct nm_sim_machine, nm_sim_machine_free);

/* ---- workloads ---- */

#define NM_SIM_NAME_BYTES 32

enum nm_sim_touch {
	NM_SIM_TOUCH_OWN,    /* each thread first writes its own block */
	NM_SIM_TOUCH_MASTER, /* the first thread writes all of it */
};
enum nm_sim_placement {
	NM_SIM_PLACE_SYSTEM, /* first touch; the scheduler places threads */
	NM_SIM_PLACE_DIRECT, /* numactl --cpunodebind --membind: one node for threads and memory
			      */
	NM_SIM_PLACE_INTERLEAVE, /* numactl --interleave=all */
	NM_SIM_PLACE_ORACLE, /* each thread is bound to a node, and consecutive blocks are on
			      * consecutive nodes */
};

/* A phase of the work of a program's threads. */
struct nm_sim_phase {
	double giga;   /* 10^9 instructions that each thread executes */
	double cpi;    /* cycles per instruction without waiting for memory */
	double flops;  /* floating-point instructions per instruction, before the vector width */
	double vector; /* operations per such instruction */
	double misses_per_kilo; /* accesses served by memory per 1000 instructions */
	double overlap;		/* number of outstanding accesses */
	double private_part, neighbour_part,
		shared_part; /* shares of accesses to: its own block, the two neighbouring blocks,
			      * any block */
	double idle_s;	     /* mean sleep of each thread after the phase; at most twice that */
	double period_giga;  /* 10^9 instructions between two barriers; 0: none */
	/* Number of threads of the program that execute it; the others wait or do not exist yet. 0:
	 * all */
	unsigned threads;
	/*
	 * Share of the memory that is written when the phase begins; 0: all. It never falls.
	 * Threads wait for each other before a phase with a different value of this or of
	 * `threads`.
	 */
	double touched;
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

/* A sequence of programs. */
struct nm_sim_user {
	char name[NM_SIM_NAME_BYTES];
	double start_s, idle_s; /* idle_s: time between two programs */
	/* Maximum random delay of the start: users with equal start_s and spread_s arrive as in a
	 * Poisson process. */
	double spread_s;
	enum nm_sim_placement placement;
	int node;	/* DIRECT: node index; ORACLE: its first node; otherwise -1 */
	unsigned width; /* ORACLE: number of nodes with CPUs to use; 0: all */
	bool for_ever;			 /* starts again after the last program */
	struct nm_sim_program *programs; /* owned */
	size_t nr_programs;
};

struct nm_sim_workload {
	double limit_s;		   /* end of the simulation, even if programs still run */
	/* Clean page cache fills each node at the start, and memory that programs free later. */
	bool full_page_cache;
	struct nm_sim_user *users; /* owned */
	size_t nr_users;
};

/* Parses a declarative workload (libconfig syntax; numa-migrctl(1), "SIMULATION"). Returns 0;
 * -EINVAL with place and reason in `error`; or -ENOMEM. The caller clears it. */
int nm_sim_workload_parse(const char *name, const char *text, size_t length, char *error,
			  size_t error_size, struct nm_sim_workload *ret);
void nm_sim_workload_clear(struct nm_sim_workload *workload);
/* Appends a user without programs and returns it; the pointer is valid until the next call. NULL:
 * out of memory. */
struct nm_sim_user *nm_sim_workload_add(struct nm_sim_workload *workload, const char *name);
/* Appends a program of the built-in table ("bt", …, see programs.c) to a user. Returns as
 * nm_sim_workload_add() does. */
struct nm_sim_program *nm_sim_user_add(struct nm_sim_user *user, const char *program,
				       unsigned threads);
/* Returns the names of the built-in programs, ended by NULL. */
const char *const *nm_sim_programs(void);

/* ---- running the model ---- */

/* How the scheduler chooses among waiting threads before one moves to another node (choice.c). */
enum nm_sim_choice {
	NM_SIM_CHOOSE_NONE,
	NM_SIM_CHOOSE_TOTAL_MIN,
	NM_SIM_CHOOSE_REMOTE_MIN,
	NM_SIM_CHOOSE_LOCAL_MAX,
	NM_SIM_CHOOSE_EXCLUSIVITY
};

struct nm_sim_options {
	uint64_t seed;
	double step_s;	       /* time for which rates are constant; 0: 0.1 */
	bool numa_balancing;   /* the kernel moves pages to the node that accesses them, and tasks
				* to their pages */
	bool cache_aware;      /* the kernel gathers threads on the CPUs of one last-level cache
				* (gather.c) */
	enum nm_sim_choice choice;
	double dense; /* samples of accesses per usual sample; 0: 1 */
	/* Rate at which a thread is moved to another CPU although its own is free; a parameter,
	 * because no value for real machines is known. 0: never. */
	double wander_per_s;
	bool unobserved;       /* no samples are generated */
	bool no_pmu;	       /* samples contain only the CPU of each thread */
	double run_sample_s;   /* CPU time per run sample; 0: 0.01 */
	uint32_t unmovable_pid; /* changes of its affinities and pages fail; 0: none */
	/* The work of this process from this time on is summed up; 0: none. */
	uint32_t watched_pid;
	double watched_from_s;
	/* Draws, and keeps the results of all runs; the program that judges runs owns it. NULL: every
	 * process is decided about. */
	struct nm_trial *group;
	double control_share;
};

/* The middle one of the rates used for tables: 0, 0.02 and 0.1. */
#define NM_SIM_WANDER_USUAL 0.02

/* Threads that were on their new node one and ten seconds after a move. */
#define NM_SIM_STAYS 2
struct nm_sim_stays {
	uint64_t of, all;
};

/* Totals since the start. */
struct nm_sim_figures {
	double time_s;
	double thread_s;       /* CPU time of all threads */
	/* Summed over programs that have ended, from start to end; users with `repeat` do not
	 * count. */
	double computing_s;
	double slowest_user_s; /* largest such sum of one user without `repeat` */
	double accesses, local_accesses;
	uint64_t programs_ended, samples;
	uint64_t users_ended; /* users without `repeat` whose last program has ended */
	uint64_t moves;	      /* of threads to another node, for any reason */
	/* Moves for which the scheduler had a choice, and those of another thread than without. */
	uint64_t choices, chosen;
	uint64_t pages_moved; /* by pages_move */
	uint64_t pages_balanced; /* by kernel.numa_balancing */
	uint64_t pages_returned; /* of both, to the node from which they came within a minute */
	uint64_t masks_set;
	struct nm_sim_stays stays[NM_SIM_STAYS];
	double watched_giga; /* 10^9 instructions of the watched process */
	bool watched_ended;
	double most_node_use, most_link_use; /* largest utilization in any step */
};

struct nm_sim;

/* Creates a simulation. The machine and the workload must outlive it. Returns 0; -ENOMEM; -E2BIG:
 * more than 128 nodes; -ENODEV: no CPU is online. */
int nm_sim_new(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload,
	       const struct nm_sim_options *options, struct nm_sim **ret);
void nm_sim_free(struct nm_sim *sim);
NM_DEFINE_CLEANUP(struct nm_sim, nm_sim_free);

/* Simulates one step. Returns 0; -ENOMEM; -EAGAIN: a million threads were created, and no numbers
 * are left. */
int nm_sim_step(struct nm_sim *sim);
/* Returns whether all programs have ended or the time limit is reached. */
bool nm_sim_is_finished(const struct nm_sim *sim);
struct nm_sim_figures nm_sim_figures(const struct nm_sim *sim);

/* Returns a hash of all affinities and pages that were set, in order (FNV-1a). */
uint64_t nm_sim_digest(const struct nm_sim *sim);

/* Returns the operations of the model, which owns them; freeing the platform has no effect. */
struct nm_platform *nm_sim_platform(struct nm_sim *sim);
/* Returns the source of samples (sample.h), which is valid as long as the model. */
struct nm_feed nm_sim_feed(struct nm_sim *sim);
/* nm_topology_source.load: returns a copy of the machine's topology. */
int nm_sim_load_topology(void *context, struct nm_topology **ret);

/* ---- inspection, for tests and reports ---- */

struct nm_sim_thread_view {
	uint32_t pid, tid;
	int cpu, node;
	double done_giga;
	double bytes_per_ns; /* in the last step */
	const double *mix;   /* share of its accesses to each node */
};
size_t nm_sim_nr_threads(const struct nm_sim *sim);
struct nm_sim_thread_view nm_sim_thread(const struct nm_sim *sim, size_t index);

/* ---- simulated daemon ---- */

/* Runs the ticks of the daemon on a model of a machine, in simulated time. */

/* The last verdict of policy "auto" on a home. */
struct nm_simulated_verdict {
	uint64_t decision;
	uint32_t pid;
	double time_s; /* simulated time */
	enum nm_verdict_kind kind;
};
#define NM_SIMULATED_VERDICTS_MAX 64U

/* The operations of the daemon. */
struct nm_simulated {
	struct nm_sim_figures figures;
	uint64_t intervals, decisions, improved, neutral, rolled_back;
	uint64_t asked, arrived; /* of struct nm_move_counts */
	/* In the order of their decisions; verdicts beyond the limit are omitted. */
	struct nm_simulated_verdict verdicts[NM_SIMULATED_VERDICTS_MAX];
	size_t nr_verdicts;
	uint64_t digest; /* of all affinities and pages set, in order; equal for equal operations */
	uint64_t decisions_digest; /* of the lines for decisions, homes and verdicts; see nm_hash_add() */
};

/*
 * Runs the workload on the machine from start to end. `config` is the configuration of the daemon,
 * which is not modified; NULL: no daemon. Random choices use the seed of
 * the model). `decisions` gets a line for each decision, home and verdict (tests/check-decisions);
 * NULL: none. The simulation leaves no files, even if it is killed. Returns 0, -ENOMEM, or the
 * negative errno of a tick. Called by the simulation command, tests and benchmarks.
 */
int nm_simulate(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload,
		const struct nm_sim_options *options, const struct nm_config *config,
		FILE *decisions, struct nm_simulated *ret);

#endif

/* SPDX-License-Identifier: MIT */
/* Policy "auto" in the daemon: its state of each process between intervals. */
#ifndef NM_DAEMON_PLACEMENT_STAGE_H
#define NM_DAEMON_PLACEMENT_STAGE_H

#include "numa-migrd/mover.h"
#include "numa-migrd/node_memory.h"
#include "numa-migrd/placement.h"
#include "numa-migrd/snapshot.h"

enum nm_bring {
	NM_BRING_NOTHING, /* its memory stays where it is */
	NM_BRING_WANTED,  /* to be handed to the mover */
	NM_BRING_LATER,	  /* to be handed to the mover once its remote accesses are expected to cost
			   * as much as its migration */
	NM_BRING_UNDER_WAY, /* handed to the mover */
	NM_BRING_DONE,
};

/* The migration of a process's memory to its home, which happens once. */
struct nm_bring_memory {
	enum nm_bring state;
	uint64_t moved; /* number of pages */
	uint64_t away_bytes;  /* when the home was chosen */
	double away_distance; /* when the home was chosen: from home to its memory */
	struct nm_base_pages *was; /* original locations of the moved pages, for rollback; owned */
	size_t nr_was;
	bool waits; /* in this interval, because of other processes of its domain */
};

/* The query about the location of its memory. */
struct nm_place_count {
	uint64_t ticket; /* 0: no query is pending */
	uint64_t asked_ns;
	uint64_t anon_bytes; /* at the last query; 0: none yet */
	uint64_t huge_bytes; /* additional memory from the pool of huge pages */
	bool pages;	     /* a sample of pages was queried instead of numa_maps */
};

/* Changes since the start of processes that were not moved: products of the median changes between
 * intervals, and for waiting their sum. */
struct nm_place_trend {
	double performance, distance, waiting;
};

/* A process managed by policy "auto". */
struct nm_placed {
	uint32_t pid;
	uint64_t start_ticks, program_ns;
	int home; /* node index; -1: none */
	enum nm_place_reason reason; /* reason for the home, or for having none */
	uint64_t decision;	     /* 0: none yet */
	uint64_t undone;	     /* the last one that was rolled back; 0: none */
	uint64_t decided_ns;	     /* or when its memory was last being moved */
	uint64_t barred_until_ns;
	uint64_t refused_until_ns;   /* its threads cannot be moved home until then */
	unsigned setbacks;	     /* consecutive homes that were rolled back */
	bool judged;
	uint64_t placed_ns; /* when it was assigned its home */
	bool is_home;	    /* its threads ran only there in the last interval */
	double watched_s; /* time for which it ran without a home */
	double lost_s;	  /* CPU time lost by waiting for memory on other nodes, until that was
			   * migrated */
	struct nm_place_measure before, after;
	struct nm_place_measure recent; /* with or without a home */
	struct nm_place_trend trend;	/* when it was assigned its home */
	struct nm_bring_memory memory;
	struct nm_place_count count;
	uint64_t anon_bytes;
	uint64_t measured_ns; /* time of the last interval or examination that measured it; 0: none
			       * yet */
	/* Values of this interval: */
	size_t process; /* index in the snapshot */
	/*
	 * Per node, in one allocation. has_run_on is counted since the process was first seen;
	 * located_on is the share of its memory as counted by the kernel, or after its migration.
	 */
	double *ran_on, *memory_on, *has_run_on, *located_on;
	bool *allowed; /* in the same allocation */
	bool located;  /* located_on is known */
	double run_s, delay_s, wanted_cpus, accesses;
	double runs; /* how often its threads were put on a CPU while they ran for run_s */
	double traffic; /* bytes per second; 0: not known */
	unsigned running;
	unsigned ran_most;  /* maximum of `running` */
	uint64_t grown_ns;  /* time when ran_most last changed */
	unsigned home_ran_most; /* ran_most when it was assigned its home */
	double demand_cpus; /* recent demand */
	double burst_s;	    /* mean time that a thread runs at a time; 0: not known */
};

/* The last reading of the times of one thread. */
struct nm_thread_times {
	uint32_t tid;
	uint64_t start_ticks, run_ns, delay_ns, runs, read_ns;
};

/* A process that is examined between intervals, because it has just started or has grown since. */
struct nm_examination {
	uint32_t pid;
	uint64_t since_ns, due_ns; /* when it started or grew; time of the next examination */
	struct nm_tenant tenant;   /* its own tenant, or its parent's */
};
#define NM_EXAMINED_AT_ONCE 64U

/* CPU time that examinations for one domain have used beyond its share. */
struct nm_payer {
	uint64_t domain;
	double owed_s;
	uint64_t charged_ns; /* 0: never */
};
#define NM_PAYERS 16U

struct nm_placement {
	struct nm_examination due[NM_EXAMINATIONS_MOST]; /* in no particular order */
	unsigned nr_due;
	struct nm_payer payers[NM_PAYERS]; /* the one that owes least is replaced */
	struct nm_placed *items; /* ascending pid */
	size_t count;
	struct nm_thread_times *times; /* ascending tid */
	size_t nr_times;
	uint32_t next_read_tid; /* where reading continues in the next interval */
	struct nm_mover *mover;
	struct nm_place_cost page_cost;
	struct nm_reclaim_watch reclaim;
	struct nm_place_trend trend;
	struct nm_place_node *nodes; /* as of the last interval */
	double *beside_cpus; /* per node: recent load of other processes */
	uint64_t *available_bytes; /* per node, minus the memory of homes assigned since */
	uint64_t available_ns;	   /* time of the reading; 0: none yet */
	unsigned nr_nodes;	   /* of all three arrays */
	double most_traffic;	   /* bytes per second, the highest traffic of any node so far; 0:
				    * not known */
	double demand_of_late;	   /* CPUs in demand on the machine, smoothed */
	double saved_s;	   /* CPU time that examinations may use; negative: overdrawn */
	uint64_t spent_ns; /* CPU time of the main loop as of the last interval */
};

struct nm_daemon;

/* Returns the number of processes with a home. */
size_t nm_placement_homes(const struct nm_daemon *daemon);
/* Returns NULL if the process is not managed by policy "auto". */
struct nm_placed *nm_placed_find(const struct nm_placement *placement, uint32_t pid);

#define NM_SAVED_MOST_S 1.0

/* ---- placement_when.c ---- */

/* Schedules an examination of a process, unless an earlier one is already scheduled. Beyond its
 * tenant's share it is not scheduled, and the next interval handles the process. */
void nm_placement_examine_at(struct nm_placement *placement, const struct nm_examination *one);
/* Returns true if the task table does not contain the process. */
bool nm_placement_is_unknown(const struct nm_tenant *tenant);
/* Records the cost of an examination for this domain. */
void nm_placement_charge(struct nm_placement *placement, uint64_t domain, double cost_s,
			 uint64_t now_ns);
/* Returns the next examination that is due at this time, and removes it. Returns false if there is
 * none. */
bool nm_placement_next_due(struct nm_placement *placement, uint64_t now_ns,
			   struct nm_examination *ret);
/* Subtracts the cost of an interval from the budget of examinations. */
void nm_placement_pay(struct nm_daemon *daemon, uint64_t interval_ns);

/* ---- placement_view.c ---- */

/* The input of decisions; it owns its arrays. */
struct nm_placement_view {
	struct nm_place_view place;
	struct nm_place_node *nodes;
	struct nm_place_group *groups;
};
/* Updates the loads of the nodes in this interval. Returns 0 or -ENOMEM. */
int nm_placement_follow_nodes(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			      double interval_s);
/* Builds the view of all processes from their last measurements. Returns 0 or -ENOMEM; the caller
 * clears it in both cases. */
int nm_placement_view_build(const struct nm_daemon *daemon, uint64_t now_ns,
			    struct nm_placement_view *view);
void nm_placement_view_clear(struct nm_placement_view *view);
void nm_placement_fill_group(const struct nm_placed *placed, uint64_t now_ns,
			     struct nm_place_group *ret);
/* Adds the cost of this time without a home. */
void nm_placement_add_loss(const struct nm_topology *topology, struct nm_placed *placed,
			   uint64_t now_ns, double since_s);

/* ---- placement_verdicts.c ---- */

/* Handles verdicts that are due, and reports them. */
void nm_placement_judge(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			const struct nm_placement_view *view);
/* Removes the home of a process. */
void nm_placement_give_up(struct nm_daemon *daemon, struct nm_placed *placed,
			  bool memory_goes_back);

/* ---- placement_act.c ---- */

/* Moves the snapshot's threads to their homes. Returns 0 or -ENOMEM. */
int nm_placement_act(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);

/* ---- placement.c ---- */

/* Decides whether the only process of a separate snapshot keeps its home or is assigned one, and
 * moves its threads there. Returns 0 or -ENOMEM. */
int nm_placement_decide(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);

/* ---- placement_measure.c ---- */

/* Updates the set of processes and their measurements for this interval. Returns 0 or -ENOMEM. */
int nm_placement_follow(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			uint64_t interval_ns);
/* The same for the only process of a separate snapshot, whose threads demand these shares of a CPU,
 * and have run for burst_s at a time since they started. Returns 0 or -ENOMEM. */
int nm_placement_follow_one(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			    const double *wanted_cpus, double burst_s);
/* Returns 0 or a negative errno. */
int nm_placement_read_times(struct nm_platform *platform, uint32_t pid, uint32_t tid,
			    struct nm_thread_times *ret);

/* ---- placement_pages.c ---- */

/* Collects an answer about the location of its memory, and sends a query if it has no home. */
void nm_placement_count(struct nm_daemon *daemon, struct nm_placed *placed, uint64_t now_ns);
/* Returns whether its home must wait for the answer, which takes moments. */
bool nm_placement_awaits_count(const struct nm_placed *placed, uint64_t now_ns);
/* Sets the location of its memory, from pages on each node; all zero: not known. */
void nm_placement_locate(struct nm_placed *placed, const double *pages, unsigned nr_nodes);
/* Return the amount of its memory, and the share of it on each node; NULL: not known. */
uint64_t nm_placement_bytes(const struct nm_placed *placed);
const double *nm_placement_shares(const struct nm_placed *placed);
/* Cancels the query. */
void nm_placement_forget_count(struct nm_daemon *daemon, struct nm_placed *placed);

/* ---- placement_memory.c ---- */

/* Collects the results of the mover. */
void nm_placement_collect(struct nm_daemon *daemon);
/* Moves the memory of a process that was slower with its home back to its original location, as far
 * as that is known, including memory that the mover is still moving. */
void nm_placement_send_back(struct nm_daemon *daemon, struct nm_placed *placed);
/* Discards the state; a migration in progress is completed. */
void nm_placement_forget_memory(struct nm_placed *placed);
/* Returns whether the node reclaims memory, which delays its users, so that nothing must be moved
 * there now. */
bool nm_placement_is_reclaimed(struct nm_daemon *daemon, unsigned node);
/* Hands memory to the mover if its migration is worth the cost, in descending order of lost time
 * per byte. */
void nm_placement_bring(struct nm_daemon *daemon, uint64_t interval_ns);

#endif

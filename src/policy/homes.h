/* SPDX-License-Identifier: MIT */
/*
 * threads.policy = "auto": its state of each process, and the decisions of an interval or of an
 * examination between intervals. The daemon provides the measurements and carries the decisions
 * out. Pure.
 */
#ifndef NUMA_MIGRD_HOMES_H
#define NUMA_MIGRD_HOMES_H

#include "policy/assign.h"
#include "numa-migrd/base.h"
#include "policy/judge.h"
#include "policy/placement.h"
#include "policy/plan.h"
#include "numa-migrd/proc.h"
#include "sample/sample.h"
#include "numa-migrd/snapshot.h"

enum nm_migration_state {
	NM_MIGRATION_NONE,     /* its memory stays where it is */
	NM_MIGRATION_READY,    /* to be handed to the mover */
	NM_MIGRATION_DEFERRED, /* to be handed to the mover once its remote accesses are expected to
				* cost as much as its migration */
	NM_MIGRATION_RUNNING,  /* handed to the mover */
	NM_MIGRATION_DONE,
};

/* The migration of a process's memory to its home, which happens once. */
struct nm_memory_migration {
	enum nm_migration_state state;
	uint64_t moved;	      /* number of pages */
	uint64_t away_bytes;  /* when the home was chosen */
	double away_distance; /* when the home was chosen: from home to its memory */
	bool waits;	      /* in this interval, because of other processes of its domain */
	bool checked;	      /* its location need not be queried again after the migration */
	bool failed;	      /* once, because of the worker, or of a thread that was exiting */
	uint64_t ended_bytes; /* its memory at the end of the migration, and the time of that */
	uint64_t ended_ns;
	uint64_t retry_ns; /* most of it did not move: not tried before */
	uint64_t pause_ns; /* before that; 0: the last try has moved most of it */
};

/* The location of the memory of a process, as the kernel found it. */
struct nm_location {
	/* Per node, in any unit: pages that can follow the process, and pages that cannot, because
	 * they are shared or of files; NULL: not known. */
	double *pages, *staying;
	bool whole; /* all pages were counted, in one unit; otherwise a sample of each kind */
	uint64_t huge_bytes; /* of the first kind from the pool of huge pages, which RssAnon does
			      * not include */
	uint64_t own_bytes;  /* the rest of it, if all pages were counted */
};

/* The location of a process's memory, as counted by the kernel. */
struct nm_location_query {
	uint64_t query_id; /* 0: no query is pending */
	uint64_t asked_ns;
	uint64_t anon_bytes; /* at the last query; 0: none yet */
	uint64_t huge_bytes; /* additional memory from the pool of huge pages */
	uint64_t own_bytes;  /* its memory without these, if the kernel counted all of it */
};

/* Changes since the start of processes that were not moved: products of the median changes between
 * intervals, and for waiting their sum. */
struct nm_place_trend {
	double performance, distance, waiting;
};

#define NM_AFFINITIES_MOST 8U /* further ones count as the last one */

/* The distances between predicted and measured gains of the last verdicts. */
#define NM_PREDICTION_ERRORS 64U
struct nm_prediction_errors {
	double values[NM_PREDICTION_ERRORS];
	unsigned count, next;
};

/* A process managed by policy "auto". */
struct nm_home_state {
	/* The input of decisions about it, as measured. nm_placement_fill_group() adds what is
	 * derived from the rest. */
	struct nm_place_group input;
	uint32_t pid;
	uint64_t start_ticks, program_ns, domain;
	int home;		     /* node index; -1: none */
	enum nm_place_reason reason; /* reason for the home, or for having none */
	uint64_t decision;	     /* 0: none yet */
	uint64_t decided_ns;	     /* or when its memory was last being moved */
	uint64_t refused_until_ns;   /* its threads cannot be moved home until then */
	bool left_alone;	     /* as in struct nm_process: it gets no home */
	bool assigned;		     /* threads are assigned to the nodes on which they ran */
	bool drawn; /* a lottery has moved its threads, which have assignments and pending verdicts
		     */
	uint64_t stays_until; /* first interval in which it may change to a home, or back */
	bool judged;
	uint64_t placed_ns; /* when it was assigned its home */
	double observed_s;  /* time for which it ran without a home */
	double lost_s;	    /* CPU time lost by waiting for memory on other nodes, until that was
			     * migrated */
	struct nm_place_measure before, after;
	struct nm_place_measure recent; /* with or without a home */
	struct nm_place_trend trend;	/* when it was assigned its home */
	double expected_gain, stalled;	/* predicted then */
	struct nm_memory_migration migration;
	struct nm_location_query location;
	uint64_t anon_bytes, anon_error_bytes, shared_bytes, hugetlb_bytes, excluded_mems;
	uint64_t measured_ns; /* time of the last interval or examination that measured it; 0: none
			       * yet */
	/* Values of this interval: */
	size_t process; /* index in the snapshot */
	/* Per node, in one allocation with the arrays of `input`. located_on is the share of its
	 * memory as counted by the kernel, or after its migration. */
	double *memory_on, *located_on;
	/* The part (0-1) of its memory there that stays, because it is shared or of files. */
	double *stays_on;
	bool has_staying;      /* there is such memory */
	double *room, *beyond; /* as in struct nm_place_group; valid if is_restricted */
	bool *has_fixed;       /* in the same allocation: a thread that must not be moved */
	bool has_movable;      /* some of its threads may be moved */
	bool is_restricted, has_everywhere; /* some of these may, or may not, use every CPU */
	/* Their different affinities, and the CPUs that the threads with each of them used; the
	 * affinities belong to the snapshot. */
	struct nm_affinity_use {
		hwloc_const_bitmap_t cpus;
		double used;
	} affinities[NM_AFFINITIES_MOST];
	unsigned nr_affinities;
	bool located; /* located_on is known */
	double run_s, delay_s, accesses;
	double local; /* part of `accesses` to the nodes on which its threads ran */
	double runs;  /* number of times that its threads were put on a CPU while they ran for
		       * run_s */
	/* DRAM traffic in bytes, and the CPU time for it, of the last seconds. */
	double traffic_bytes, traffic_run_s;
	uint64_t grown_ns;  /* time when max_running last changed */
	uint64_t forked_ns; /* when it last created a thread, since it was first seen; 0: never */
	double movable_wanted_cpus, movable_cpus; /* part of wanted_cpus and of demand_cpus of the
						   * threads that may be moved */
};

/* A process that is examined between intervals, because it has just started or has grown since. */
struct nm_examination {
	uint32_t pid;
	uint64_t since_ns, due_ns; /* when it started or grew; time of the next examination */
	uint64_t domain;	   /* its own, or its parent's */
};
#define NM_EXAMINED_AT_ONCE 64U /* shared: least */

#define NM_BUDGET_MAX_S 1.0 /* of CPU time that the budget of examinations holds */

struct nm_placement {
	struct nm_examination due[NM_EXAMINATIONS_MOST]; /* in no particular order */
	unsigned nr_due;
	struct nm_quota quota; /* CPU time of examinations beyond the domain's quota, in seconds */
	struct nm_column processes; /* of struct nm_home_state */
	struct nm_column times;	    /* the last reading of each thread: struct nm_proc_schedstat */
	uint32_t next_read_tid;	    /* where reading continues in the next interval */
	struct nm_place_cost page_cost;
	struct nm_place_trend trend;
	struct nm_prediction_errors errors;
	struct nm_place_node *nodes; /* as of the last interval */
	double *other_cpus;	     /* per node: recent load of other processes */
	uint64_t *available_bytes;   /* per node, minus the memory of homes assigned since */
	uint64_t available_ns;	     /* when these were read; 0: not yet */
	struct nm_reclaim_watch reclaim;
	unsigned nr_nodes;     /* of the three arrays */
	double max_traffic;    /* bytes per second, the highest traffic of any node so far; 0:
				* not known */
	double recent_demand;  /* CPUs in demand on the machine, smoothed */
	uint64_t unstable_ns;  /* when a process could last gain from a decision; 0: not yet */
	double settled_s;      /* time since then, as of the last interval */
	double budget_s;       /* CPU time that examinations may use; negative: overdrawn */
	uint64_t spent_ns;     /* CPU time of the main loop as of the last interval */
};

/* ---- homes.c: processes ---- */

static inline struct nm_home_state *nm_home_state_at(const struct nm_placement *placement,
						     size_t index)
{
	return (struct nm_home_state *)placement->processes.cells + index;
}
/* Returns NULL if the process is not managed by policy "auto". */
static inline struct nm_home_state *nm_home_state_find(const struct nm_placement *placement,
						       uint32_t pid)
{
	return nm_column_find(&placement->processes, pid);
}
/* Return the number of processes with a home, and whether a process has one; placement may be NULL.
 */
size_t nm_placement_homes(const struct nm_placement *placement);
bool nm_placement_has_home(const struct nm_placement *placement, uint32_t pid);
/* Returns the median distance between the predicted and the measured gains of the last homes with a
 * measurement, as a part of the time; NaN: none yet. placement may be NULL. */
double nm_placement_prediction_error(const struct nm_placement *placement);
/* Marks the processes that have a home. Called before the snapshot is used. */
void nm_placement_mark_homes(const struct nm_placement *placement, struct nm_snapshot *snapshot);
/* Subtracts the load of a process that is no longer managed from the nodes, and frees its state. */
void nm_placement_forget(struct nm_placement *placement, struct nm_home_state *state);
/* CPUs have changed, but not the nodes: processes with a home on a node with other CPUs begin anew,
 * and the others continue. */
void nm_placement_retarget(struct nm_placement *placement, const struct nm_topology *before,
			   const struct nm_topology *now);
/* Takes the values of this interval's snapshot that need no measurement. */
void nm_home_state_update(const struct nm_snapshot *snapshot, size_t process,
			  struct nm_home_state *state);

/*
 * Returns whether its home is suspended: it was assigned because few threads ran, and has not been
 * measured since threads were created. Until then nothing is assigned or moved to it: new
 * threads touch their memory where they run.
 */
bool nm_home_state_is_suspended(const struct nm_home_state *state);

/* Sets the location of its memory; no pages: not known. */
void nm_home_state_locate(struct nm_home_state *state, const struct nm_location *location,
			  unsigned nr_nodes);
/* Return the amount of its memory that can follow it, and of that which stays; and the share of all
 * of it on each node; NULL: not known. */
uint64_t nm_home_state_bytes(const struct nm_home_state *state);
uint64_t nm_home_state_staying_bytes(const struct nm_home_state *state);
const double *nm_home_state_shares(const struct nm_home_state *state);
/* Returns whether its home must wait for the answer to a query, which takes moments. */
bool nm_home_state_awaits_query(const struct nm_home_state *state, uint64_t now_ns);
/* Returns whether the location of its memory must be queried now, and notes that. kernel_moves:
 * automatic NUMA balancing moves memory that is allocated elsewhere. */
bool nm_home_state_must_query(struct nm_home_state *state, bool kernel_moves, uint64_t now_ns);
/* Takes the answer as nm_home_state_locate(). Schedules another migration if much memory that can
 * follow is not at home. */
void nm_home_state_answer(struct nm_home_state *state, const struct nm_topology *topology,
			  const struct nm_location *location);

/* ---- examine.c: when processes are examined, and the limits of its cost ---- */

/* The budget of examinations. */
struct nm_examination_budget {
	double share;	   /* of one CPU */
	double interval_s; /* configured length of an interval */
	double since_s;	   /* since the last interval */
	double ran_s; /* CPU time of processes that could be assigned a home, since then; NaN: not
		       * known */
	uint64_t own_ns;       /* CPU time of the main loop so far */
	bool sampling_exceeds; /* its limit: only the end of an interval reduces it */
	bool unlimited;	       /* in a simulation the cost of the model must not affect decisions */
};

/* Schedules the next examination of a process that was examined. */
void nm_placement_reschedule(struct nm_placement *placement, const struct nm_examination *one,
			     uint64_t now_ns);
/* Returns whether a process with this number of threads is too young to be examined. */
bool nm_examination_is_early(const struct nm_examination *one, uint64_t nr_threads,
			     uint64_t now_ns);
/* Returns true if the task table does not contain the process. */
bool nm_placement_is_unknown(uint64_t domain);
/* Returns the next examination that is due at this time, and removes it. Returns false if there is
 * none. */
bool nm_placement_next_due(struct nm_placement *placement, uint64_t now_ns,
			   struct nm_examination *ret);
/* Follows the start and the end of processes; domain: the process's own or its parent's. Returns
 * whether this suspends the home of the process, whose assignments then end. Called for each record
 * of the drain. */
bool nm_placement_task_event(struct nm_placement *placement, const struct nm_task_event *event,
			     uint64_t domain, uint64_t now_ns);
/* Subtracts the cost of an interval from the budget of examinations. */
void nm_placement_charge_interval(struct nm_placement *placement,
				  const struct nm_examination_budget *budget, uint64_t interval_ns);
/* Returns whether nothing could be gained for a minute: intervals become longer, and samples fewer.
 * placement may be NULL. */
bool nm_placement_is_stable(const struct nm_placement *placement);
/* Returns whether the interval must end now. placement may be NULL. */
bool nm_placement_must_end_interval(const struct nm_placement *placement,
				    const struct nm_examination_budget *budget);
/* Returns how many processes may be examined now; -1: none is due. mover_idle: the mover waits for
 * work. */
/* Returns whether any of the budget is left. */
bool nm_placement_has_budget(const struct nm_placement *placement,
			     const struct nm_examination_budget *budget);
int nm_placement_examinations_allowed(const struct nm_placement *placement,
				      const struct nm_examination_budget *budget, bool mover_idle,
				      uint64_t now_ns);

/* ---- measure.c: what processes did in an interval ---- */

#define NM_PLACE_READINGS_MOST 256U /* shared: turns; files read per interval */

/* Selects the threads whose times are to be read now, in turns, beginning where the last interval
 * stopped. Returns their number; they are in the order of the snapshot. */
size_t nm_placement_choose_readings(struct nm_placement *placement,
				    const struct nm_snapshot *snapshot,
				    struct nm_times_reading ret[static NM_PLACE_READINGS_MOST]);
/* Updates the set of processes and their measurements for this interval; readings: what
 * nm_placement_choose_readings() selected; sees_accesses: sampled accesses show where memory is
 * used. */
void nm_placement_follow(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			 double interval_s, const struct nm_times_reading *readings,
			 size_t nr_readings, bool sees_accesses);
/* Returns whether a process is not known yet, and demands too little CPU time for a home. */
bool nm_placement_ignores(const struct nm_placement *placement,
			  const struct nm_process_times *process);
/* Measures the only process of a separate snapshot. */
void nm_placement_measure_one(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			      const struct nm_process_times *process);

/* ---- view.c: the input of decisions ---- */

/* The input of decisions; it owns its arrays. */
struct nm_placement_view {
	struct nm_place_view place;
	struct nm_place_node *nodes;
	struct nm_place_group *groups;
};
/* Updates the loads of the nodes in this interval. */
void nm_placement_follow_nodes(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			       double interval_s);
/* Builds the view of all processes from their last measurements. The caller clears it in both
 * cases. */
void nm_placement_view_build(const struct nm_placement *placement,
			     const struct nm_topology *topology, uint64_t now_ns,
			     struct nm_placement_view *view);
void nm_placement_view_clear(struct nm_placement_view *view);
void nm_placement_fill_group(const struct nm_home_state *state, uint64_t now_ns,
			     struct nm_place_group *ret);
/* Adds the cost of this time without a home. */
void nm_placement_add_loss(const struct nm_topology *topology, struct nm_home_state *state,
			   uint64_t now_ns, double since_s);

/* ---- decide.c: homes ---- */

enum nm_home_end {
	NM_HOME_EXPIRED, /* its reason has gone: nm_home_state.reason */
	NM_HOME_YIELDED, /* the run queue of the node was full */
};

enum nm_home_action_kind {
	NM_HOME_JUDGED, /* a verdict was given on a home */
	NM_HOME_ENDS,
	NM_HOME_BEGINS,
};

/* A decision about one process, for the daemon to carry out and to report. */
struct nm_home_action {
	enum nm_home_action_kind kind;
	enum nm_home_end end;	     /* ENDS */
	enum nm_place_reason reason; /* ENDS, if it has expired */
	size_t process;		     /* index in the snapshot */
	uint32_t pid;
	int home;
	uint64_t id;		     /* number of the home's decision */
	bool after_draw;	     /* BEGINS: a lottery has moved its threads, which ends first */
	struct nm_decision decision; /* BEGINS */
	struct nm_verdict verdict;   /* JUDGED */
};

/* In the order in which they are carried out. */
struct nm_home_actions {
	struct nm_home_action *items;
	size_t count, capacity;
};
void nm_home_actions_clear(struct nm_home_actions *actions);

/* The processes that are decided about: those with the indices from first to end. */
struct nm_home_round {
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	bool whole; /* the snapshot is that of an interval, not of one process */
	bool dry_run;
	bool kernel_moves, memory_stays; /* as in struct nm_place_view */
	bool may_move;			 /* the daemon moves memory */
	size_t first, end;
	uint64_t *next_id; /* number of the next decision */
	struct nm_assignments *assignments;
};

/* Judges homes, and ends those that did not help, have lost their reason, or make threads queue.
 * Adds to `actions`. */
void nm_placement_review(struct nm_placement *placement, const struct nm_home_round *round,
			 struct nm_placement_view *view, struct nm_home_actions *actions);
/* Returns whether a process could be assigned a home, which needs available_bytes of the placement.
 */
bool nm_placement_wants_homes(const struct nm_home_round *round,
			      const struct nm_placement_view *view);
/* Proposes homes; `ret` has room for all processes. */
void nm_placement_propose(const struct nm_placement *placement, const struct nm_home_round *round,
			  struct nm_placement_view *view, struct nm_place_proposal *ret);
/* Excludes a process from all homes: a home for it would keep others away. */
void nm_placement_leave_alone(struct nm_placement *placement, struct nm_placement_view *view,
			      size_t process);
/* Assigns the proposed homes, in the order of the processes. Adds to `actions`. */
void nm_placement_assign(struct nm_placement *placement, const struct nm_home_round *round,
			 const struct nm_placement_view *view,
			 const struct nm_place_proposal *proposals,
			 struct nm_home_actions *actions);

/* ---- migrate.c: whose memory is migrated next ---- */

/* Returns whether any migration waits to be handed to the mover. */
bool nm_placement_has_migrations(const struct nm_placement *placement);
/* Updates which migrations are worth their cost now; reclaimed: per node, whether it reclaims
 * memory. */
void nm_placement_update_migrations(struct nm_placement *placement, double interval_s,
				    uint64_t now_ns, const bool *reclaimed);
/* Returns the process whose memory is to be handed to the mover now; NULL: none. Then
 * nm_placement_submitted() takes the result: 0; -EAGAIN: not in this interval; or an error. */
struct nm_home_state *nm_placement_next_migration(struct nm_placement *placement);
void nm_placement_submitted(struct nm_placement *placement, struct nm_home_state *state, int error);

/* The result of a batch, as in struct nm_page_batch. */
struct nm_home_result {
	int error;
	uint64_t moved, bytes, stayed_bytes;
};
/* Ends a batch of the migration: the memory is at home now; or, after some errors, the rest is
 * tried later; or it stays where it is, which ends a home that rested on it. */
void nm_home_state_end_batch(struct nm_home_state *state, const struct nm_home_result *result,
			     unsigned nr_nodes, uint64_t now_ns);

/* ---- lottery_processes.c: processes without a home ---- */

/*
 * Leaves only those threads movable whose process has no home because it runs best on several
 * nodes: these take part in the lotteries of LBMA and IMAR². A process whose threads were drawn
 * gets no home, and one that got a home after that is not drawn, for NM_PLACE_STAYS_INTERVALS.
 */
void nm_placement_leave_to_lottery(const struct nm_placement *placement,
				   struct nm_snapshot *snapshot);
/* Returns whether its threads and pages are placed one by one; placement may be NULL. Called for
 * page decisions. */
bool nm_placement_is_spread(const struct nm_placement *placement, uint32_t pid, uint64_t interval);
/* A lottery has moved a thread of the process. Called for each applied decision. */
void nm_placement_drawn(struct nm_placement *placement, uint32_t pid, uint64_t interval);
/* Returns whether computing threads of the process may be assigned to where they run: it exceeds
 * every node, and no more CPUs are in demand than there are, or than it may use. */
bool nm_placement_may_assign(const struct nm_placement *placement,
			     const struct nm_home_state *state);
/* Returns a process whose threads were assigned and must not be any more, and notes that; NULL:
 * none. The search begins with the process *next, initially 0, and continues there. Called before
 * the next plan. */
const struct nm_home_state *nm_placement_end_assignments(struct nm_placement *placement,
							 size_t *next);
/* A thread was moved to its home, or to the node of its process without a home that it is assigned
 * to. Returns whether it is the first one that is assigned so. */
bool nm_placement_assigned(struct nm_placement *placement, uint32_t pid);

/* ---- home_threads.c ---- */

/* Plans the moves of the snapshot's threads to their homes, and assigns threads that stay
 * (numa-migrd-policies(7)). */
void nm_placement_plan(struct nm_placement *placement, const struct nm_home_round *round,
		       struct nm_plan *plan);
/* A move was refused, which is likely to repeat: seccomp, a cpuset, an affinity that the owner has
 * set meanwhile. */
void nm_placement_refused(struct nm_placement *placement, uint32_t pid, int error, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * threads.policy = "auto": assigns a home node to each group of threads that belong together, and
 * moves their memory there. A group is a process. Proposals and verdicts are functions of the
 * values below; the daemon collects the values and performs the moves. Pure.
 */
#ifndef NUMA_MIGRD_PLACEMENT_H
#define NUMA_MIGRD_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/judge.h"
#include "policy/policy.h"
#include "numa-migrd/topology.h"

#define NM_PLACE_MIN_AGE_S 0.1 /* younger processes are not examined */
#define NM_PLACE_YOUNG_S 4.0   /* behavior up to this age does not predict the rest */
#define NM_PLACE_OBSERVED_S                                                                        \
	(NM_PLACE_YOUNG_S / 2) /* minimum time of observation, as a baseline for                   \
				* the verdict */

#define NM_PLACE_MIN_DEMAND 0.25 /* CPUs; a process with less demand gains little from a home */
#define NM_PLACE_MIN_ACCESSES 30 /* minimum number of accesses to locate memory by them */

/* Number of intervals after which a process may change from the lotteries to a home, or back. */
#define NM_PLACE_STAYS_INTERVALS 10U

/*
 * The current state of one process. Arrays have topology->nr_nodes values and belong to the caller.
 */
struct nm_place_group {
	uint32_t pid;
	double demand_cpus; /* CPUs that its threads use or wait for, now or a short time ago */
	double wanted_cpus; /* the same now */
	double fixed_cpus;  /* part of demand_cpus of threads that must not be moved */
	unsigned running;   /* number of threads that ran for a significant part of the interval */
	unsigned max_running; /* largest value of `running` in any interval */
	double burst_s;	      /* mean time that a thread runs before it sleeps or is preempted; 0:
			       * not known */
	double age_s;	      /* time since its program started */
	double observed_s;    /* time for which it has been observed running */
	double cpu_limit;     /* CPUs that its cgroups allow it; 0: no limit */
	uint64_t anon_bytes;
	double distance;    /* mean of its sampled accesses over some seconds; NaN: not known */
	double traffic;	    /* DRAM reads and writes in bytes per second, now; NaN: not known */
	double cpu_traffic; /* bytes per second of CPU time, in the last seconds; 0: not known */
	double *ran_on;	    /* per node: CPUs' worth of time that its threads ran there */
	const double *memory_on; /* per node: share of its memory or accesses; NULL: not known */
	/* Per node: CPU time, since it was first seen, of threads for which the kernel allocates
	 * memory there; NULL: use ran_on. */
	double *has_run_on;
	/* Per node: the parts of ran_on and has_run_on of threads that must not be moved, because
	 * their owner has pinned them or a rule excludes them; NULL: there are none. */
	double *fixed_on, *fixed_has_run_on;
	bool *allowed; /* per node: whether all threads that may be moved may run there */
	/* Per node: the cores that these threads may use there, and the CPUs' worth of time that
	 * any process runs on the other CPUs; NULL: they may use all CPUs. */
	const double *room, *beyond;
	int home;			  /* node index; -1: none */
	enum nm_place_reason home_reason; /* reason for which it was assigned that home */
	unsigned home_max_running;	  /* max_running at the time of that assignment */
	bool barred;			  /* must not be placed now */
	bool yields;   /* threads run that leave the CPUs to others, and do not count as demand */
	bool creating; /* has threads younger than NM_PLACE_MIN_AGE_S; known if examined */
	bool memory_stays; /* its memory could not be moved */
	/* Per node: whether its memory may be moved there; NULL: to every node. And the share of
	 * its memory, wherever that is, that cannot be moved to any node. */
	bool *may_hold;
	double pinned_share;
	/* Per node: the part (0-1) of its memory there that cannot be moved, because it is shared
	 * or of files; NULL: none. */
	const double *stays_on;
	bool home_despite_memory; /* this was known when it was assigned its home */
	bool awaits_query;	  /* the location of its memory will be known shortly */
};

struct nm_place_node {
	double cores;	/* usable cores; SMT siblings count as one */
	bool is_device; /* memory without CPUs, such as that of a GPU: it is not moved from there */
	double busy_cpus;      /* CPUs' worth of time that all processes ran there */
	uint64_t free_bytes;   /* free memory that may be used */
	uint64_t memory_bytes; /* all of its memory; 0: not known */
	double traffic; /* bytes per second that its memory controller can serve; 0: not known */
};

#define NM_PLACE_COST_DOMAINS 16U /* shared: newest */

/* Measured cost of moving 4 KiB pages on this machine; {0} if none has been moved yet. A process
 * that holds the lock of its own memory makes its moves appear slow, so each domain has one vote.
 */
struct nm_place_cost {
	double page_ns; /* the median of the domains, near the initial estimate; 0: not known */
	struct {
		uint64_t domain;
		double pages, ns;
	} domains[NM_PLACE_COST_DOMAINS];
	unsigned nr_domains, next; /* `next` is replaced next if all are used */
};

struct nm_place_view {
	const struct nm_topology *topology;
	const struct nm_place_node *nodes; /* topology->nr_nodes entries */
	const struct nm_place_group *groups;
	size_t nr_groups;
	double page_ns;	      /* of struct nm_place_cost */
	double max_traffic;   /* highest traffic of any node since the start; 0: not known */
	double recent_demand; /* CPUs in demand, smoothed over several seconds */
	bool kernel_moves;    /* automatic NUMA balancing moves memory */
	bool memory_stays;    /* neither the daemon nor the kernel moves memory */
};

struct nm_place_proposal {
	size_t group;
	int node; /* -1: no home */
	enum nm_place_reason reason;
	/* Mean SLIT distance (10 is local) from its threads to its memory: now, and at home after
	 * its memory has been moved there. */
	double distance_now, distance_home;
	double load;  /* load per core of the node, including the group */
	double gain;  /* predicted part of the time that the node saves, or else the best one */
	bool stable;  /* neither a home nor nearer memory could save it much */
	/* Staying where it is, then the best nodes; none if it is not eligible. */
	struct nm_home_candidate candidates[NM_HOME_CANDIDATES_MAX];
	unsigned nr_candidates;
	/*
	 * Bytes of its memory that are on other nodes than `node`, and the mean distance from
	 * `node` to all of its memory at its current location. 0 and NaN without a node or if the
	 * location is not known.
	 */
	uint64_t bytes_away;
	double distance_away;
};

/* Returns the part of a demand in CPUs that a limit allows; all of it if the limit is 0. */
static inline double nm_place_allowed_cpus(double demand_cpus, double cpu_limit)
{
	return cpu_limit > 0 && cpu_limit < demand_cpus ? cpu_limit : demand_cpus;
}

/* Returns the mean SLIT distance (10 is local) from the CPUs of a group to its memory; NaN if it
 * did not run. */
double nm_place_distance(const struct nm_place_view *view, const struct nm_place_group *group);

/*
 * Computes one proposal for each group, in the order of view->groups; `ret` has room for nr_groups.
 * Groups with a larger demand choose first. A group is assigned the node that is predicted to save
 * most of its time, if that pays for moving its memory.
 */
void nm_place_propose(const struct nm_place_view *view, struct nm_place_proposal *ret);

/*
 * Determines which homes have lost the reason for which they were assigned: more threads run, and
 * would be faster spread over the machine; or its memory has not followed. ret[i] is the reason of
 * the home, or NM_PLACE_SPREAD, NM_PLACE_OFTEN_WOKEN, NM_PLACE_FIXED or NM_PLACE_PINNED if it has
 * none.
 */
void nm_place_find_expired(const struct nm_place_view *view, enum nm_place_reason *ret);

/*
 * Selects the homes to give up, on nodes where the demand of the groups and of other threads that
 * must run there exceeds the cores while another node has an idle core. Groups that exceed the node
 * on their own come first, then those with the least demand, until the rest fits. ret[i] is set for
 * each group.
 */
void nm_place_yield(const struct nm_place_view *view, bool *ret);

/* Returns whether the node serves nearly the highest traffic of any node so far, above that
 * minimum. */
bool nm_place_is_controller_full(const struct nm_place_view *view, unsigned node);

/* Returns the cores of a node that the threads of a group may use, or the load on these of all the
 * load of the node. */
double nm_place_room(const struct nm_place_view *view, const struct nm_place_group *group,
		     unsigned node);
double nm_place_load_within(const struct nm_place_group *group, unsigned node, double load);
/* Returns the share of the memory of a group that would not follow it to this node, if it is
 * distributed like the rest. */
double nm_place_staying_share(const struct nm_place_view *view, const struct nm_place_group *group,
			      unsigned node);
/* Returns true if they may use some CPUs of the machine only. */
bool nm_place_is_restricted(const struct nm_place_view *view, const struct nm_place_group *group);

/* Returns true if the group may use every node, so that the scheduler can move it to any idle CPU. */
bool nm_place_is_unrestricted(const struct nm_place_view *view, const struct nm_place_group *group);

/* Returns true if a node other than its home, which the group may use, has an idle core. */
bool nm_place_could_run_elsewhere(const struct nm_place_view *view,
				  const struct nm_place_group *group);

/* Returns the expected remaining amount, given the amount so far, of the lifetime of a process or
 * of the CPU time that it loses. */
double nm_place_expected_rest(double so_far);

/* Returns the additional time, in CPUs' worth, that a group with this demand waits for memory at
 * this mean SLIT distance (10 is local), compared with local memory. */
double nm_place_lost_cpus(double demand_cpus, double distance);

/* Returns the CPU time in seconds that moving this amount of memory is expected to cost the mover
 * and the group together, from the cost of a page (struct nm_place_cost). */
double nm_place_migration_cost_s(double page_ns, double bytes);
/* Records that `pages` pages of a process of this domain were moved in `ns` nanoseconds. `pages`
 * may be 0: a call that moved no pages has a cost, too. */
void nm_place_add_cost(struct nm_place_cost *cost, uint64_t domain, uint64_t pages, uint64_t ns);

/* Measurements of a group over a period, for its verdict. */
struct nm_place_measure {
	double run_s, delay_s; /* CPU time, and time that it was runnable but waited for a CPU */
	double distance;       /* mean SLIT distance of its accesses; NaN: no accesses sampled */
	double accesses;       /* number of accesses in `distance` */
	double performance;    /* instructions per second of CPU time; NaN: not counted */
	double distance_variance, performance_variance; /* between intervals */
	double intervals; /* number of intervals, of which older ones count less */
	double threads;	  /* mean number that ran */
};

/* Changes on the machine that a verdict must allow for. */
struct nm_place_context {
	/* Relative changes of processes that were not moved, over the same time; 0: not known. */
	double performance_drift, distance_drift;
	double waiting_drift; /* the same for seconds of waiting for a CPU per second of CPU time */
	bool cpus_idle;	      /* CPUs were idle on other nodes that it may use, so waiting was
			       * avoidable */
	bool controller_full; /* nm_place_is_controller_full() of its home: near is not fast */
	double tolerance;     /* relative change that does not count (verify.tolerance_percent) */
};

/* The change of one process of a user from one interval to the next. */
struct nm_place_change {
	uint64_t domain;
	double value;
};

/*
 * Returns the median over domains of the medians of their processes, so that no domain outweighs
 * others by their number; `otherwise` if the array is empty. Sorts and overwrites the array.
 */
double nm_place_domain_median(struct nm_place_change *changes, size_t count, double otherwise);

/*
 * Compares the performance if both measures have it, otherwise the distance of the accesses if both
 * have enough accesses, unless the number of threads has changed: that is another program. Nearer
 * memory behind a full controller is no improvement. A change counts, and none is found, only if
 * twice its standard error is below the tolerance; otherwise the judgement is inconclusive. In any
 * case it is worse if the group waits 20 % longer for a CPU than before, and than other processes
 * do, while CPUs on other nodes are idle.
 */
struct nm_judgement nm_place_judge(const struct nm_place_measure *before,
				   const struct nm_place_measure *after,
				   const struct nm_place_context *context);

#endif

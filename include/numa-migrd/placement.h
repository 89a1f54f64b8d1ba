/* SPDX-License-Identifier: MIT */
/*
 * threads.policy = "auto": a home node for each group of threads that belong together, and their memory
 * with them. A group is a process. What is proposed and how it is judged are functions of the values
 * below; the daemon gathers them and acts. Pure.
 */
#ifndef NUMA_MIGRD_PLACEMENT_H
#define NUMA_MIGRD_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numa-migrd/topology.h"

#define NM_PLACE_MIN_AGE_S 0.1 /* what ends sooner is not worth a look */
#define NM_PLACE_YOUNG_S 4.0	/* the behaviour until this age does not predict the rest */
#define NM_PLACE_WATCHED_S (NM_PLACE_YOUNG_S / 2) /* what a process is compared with or known by */

#define NM_PLACE_LEAST_DEMAND                                                                      \
	0.25 /* CPUs; a process that wants less has little to gain from a home */
#define NM_PLACE_LEAST_ACCESSES 30 /* needed to locate memory by accesses */

/* Why a group was given its home; or why it has none, for who asks. */
enum nm_place_reason {
	NM_PLACE_THERE,	   /* it runs there already and is only held */
	NM_PLACE_SINGLE,   /* one running thread: bringing it to its memory packs nothing */
	NM_PLACE_SMALL,	   /* so few threads that the kernel would not spread them either */
	NM_PLACE_MEMORY,   /* its memory is there */
	NM_PLACE_SEPARATE, /* the machine is in demand: groups are kept apart */
	NM_PLACE_HELD,	   /* has a home */
	NM_PLACE_BARRED,   /* it was undone, or a verdict is awaited */
	NM_PLACE_YOUNG,	   /* it may still be sizing itself */
	NM_PLACE_WATCHED,  /* what it is like without a home is not known yet */
	NM_PLACE_IDLE,	   /* it runs too little */
	NM_PLACE_NO_ROOM,  /* no node that it may use has the CPUs or the memory for it */
	NM_PLACE_NEAR,	   /* it is beside its memory, and so young that it need not be held yet */
	NM_PLACE_TOO_DEAR, /* moving its memory costs more than its being away is expected to */
	NM_PLACE_SPREAD,   /* it is better left spread over an idle machine */
	NM_PLACE_REASON_MAX,
};

/* One process as it is now. Arrays have topology->nr_nodes values and belong to the caller. */
struct nm_place_group {
	uint32_t pid;
	double demand_cpus; /* CPUs that its threads use or wait for */
	unsigned running;   /* threads that ran for a noticeable part of the interval */
	unsigned ran_most;  /* the largest number of them that ever ran in one interval */
	double steady_s;    /* for which it has run no more of them than before */
	double age_s;	    /* since its program began */
	double watched_s;   /* for which it has been seen running */
	double lost_s;	    /* CPU time that it has waited, so far, for memory being on other nodes */
	uint64_t anon_bytes;
	double traffic;		 /* bytes per second from and to DRAM; 0: not known */
	const double *ran_on;	 /* per node: CPUs' worth of time that its threads ran there */
	const double *memory_on; /* per node: share of its memory or accesses; NULL: not known */
	const double *has_run_on; /* likewise CPU time since it was first seen; NULL: what it ran now */
	const bool *allowed;	 /* per node: may each of its threads run there? */
	int home;		 /* node index; -1: none */
	enum nm_place_reason home_reason; /* why it was given that home */
	unsigned home_ran_most;		  /* ran_most when it was */
	bool barred;		 /* not to be placed now */
	bool awaits_count;	 /* where its memory is will be known in a moment */
};

struct nm_place_node {
	double cores;	    /* that may be used; SMT siblings count as one */
	double busy_cpus;   /* CPUs' worth of time that anything ran there */
	uint64_t free_bytes; /* that may be filled */
	double traffic;	     /* bytes per second that its memory controller serves; 0: not known */
};

/* What moves of pages of 4 KiB have taken on this machine; {0}: none were made yet. */
struct nm_place_cost {
	double pages, ns;
};

struct nm_place_view {
	const struct nm_topology *topology;
	const struct nm_place_node *nodes; /* topology->nr_nodes */
	const struct nm_place_group *groups;
	size_t nr_groups;
	struct nm_place_cost cost;
	double demand_of_late; /* CPUs in demand, smoothed over some seconds; programs follow each
				  other */
	double most_traffic;   /* of a node, the highest seen since the start; 0: not known */
	bool memory_stays; /* nothing moves it, neither we nor the kernel */
};

/* A few words for people, "its memory is there"; static. */
const char *nm_place_reason_text(enum nm_place_reason reason);

struct nm_place_proposal {
	size_t group;
	int node; /* -1: it stays without a home */
	enum nm_place_reason reason;
	/* Mean distance (SLIT, 10 is local) from its threads to its memory: now, and at home with its
	 * memory brought along. */
	double distance_now, distance_home;
	double load; /* of the node with it, per core */
	/* What of its memory is on other nodes than that, and the mean distance from there to all of it as it
	 * lies now; 0, NaN: without a node, or nothing is known. */
	uint64_t bytes_away;
	double distance_away;
};

/* Mean distance (SLIT, 10 is local) from where a group's threads run to its memory; NaN: it did not run. Tick. */
double nm_place_distance(const struct nm_place_view *view, const struct nm_place_group *group);

/*
 * One answer for each group, in the order of view->groups; `ret` has room for nr_groups. Who is beside its memory
 * stays there, then larger demands choose first. A home is given where the node's load per core stays at or below 1, or below what all
 * nodes would have if the demand were spread evenly. Returns 0 or -ENOMEM. Tick.
 */
int nm_place_propose(const struct nm_place_view *view, struct nm_place_proposal *ret);

/*
 * Which homes have lost the reason for which they were given: that few threads ran, or that they ran
 * there. ret[i] is the reason for which a home stands from now on, or NM_PLACE_SPREAD if none is left.
 * Returns 0 or -ENOMEM. Tick, before nm_place_yield().
 */
int nm_place_outgrown(const struct nm_place_view *view, enum nm_place_reason *ret);

/*
 * Which homes are to be given up: of the nodes whose demand, and what else has to run there, exceed their
 * cores while another node has a core idle: first groups that do not fit on their own, then those with
 * the least demand, until the rest fits. ret[i] is set for each group. Returns 0
 * or -ENOMEM. Tick, before nm_place_propose().
 */
int nm_place_yield(const struct nm_place_view *view, bool *ret);

/* May it use every node? The scheduler then moves it to CPUs that others leave idle. Tick. */
bool nm_place_may_go_anywhere(const struct nm_place_view *view, const struct nm_place_group *group);

/* Does a node other than its home, that the group may use, have an idle core? Tick. */
bool nm_place_could_run_elsewhere(const struct nm_place_view *view,
				  const struct nm_place_group *group);

/*
 * A group goes home, and its memory with it, once its being away is expected to cost as much from then on as moving
 * it does. It has cost something so far, and most that has gone on for a while goes on for longer.
 */

/* What is still to come, at the mean, of what has been so much so far: a process's life, or what it loses in it. Tick. */
double nm_place_to_come(double so_far);

/* CPUs' worth of time that a group of that demand waits longer for memory at that mean distance (SLIT, 10 is
 * local) than it would if all were local. Tick. */
double nm_place_lost_cpus(double demand_cpus, double distance);

/* Seconds of CPU time that moving so much costs, by what is known so far: of who moves it, and of its group. Tick. */
double nm_place_move_s(const struct nm_place_cost *cost, double bytes);
/* So many pages have moved in so long; none of them: a call that was for nothing has its cost, too. Tick. */
void nm_place_learn_cost(struct nm_place_cost *cost, uint64_t pages, uint64_t ns);

/* What a group did in a span of time, for its verdict. */
struct nm_place_measure {
	double run_s, delay_s; /* CPU time, and time that it waited for a CPU while runnable */
	double distance;       /* mean SLIT distance of its accesses; NaN: none were seen */
	double accesses;       /* behind it */
	double performance;    /* instructions per second of CPU time; NaN: not counted */
	double distance_variance, performance_variance; /* between intervals */
};

/* What a verdict has to allow for. */
struct nm_place_context {
	/* Relative changes that processes saw meanwhile which were not touched; 0: none is known.
	 */
	double performance_drift, distance_drift;
	double waiting_drift; /* likewise, of seconds of waiting for a CPU per second of CPU time */
	bool cpus_idle;	      /* on other nodes that it may use: it need not have waited */
};

/* How a process of a user has changed from one interval to the next. */
struct nm_place_change {
	uint32_t uid;
	double value;
};

/* The median over users of the medians of their processes, so that no user's processes outvote those of
 * others; `otherwise` without any. Orders and overwrites the array. Tick. */
double nm_place_user_median(struct nm_place_change *changes, size_t count, double otherwise);

enum nm_place_outcome {
	NM_PLACE_IMPROVED,
	NM_PLACE_NEUTRAL,
	NM_PLACE_WORSE,
	NM_PLACE_INCONCLUSIVE,
};

enum nm_place_judged_by {
	NM_PLACE_BY_NOTHING,
	NM_PLACE_BY_PERFORMANCE,
	NM_PLACE_BY_DISTANCE,
	NM_PLACE_BY_DELAY, /* `change` is in seconds of waiting per second of CPU time */
};

struct nm_place_verdict {
	enum nm_place_outcome outcome;
	double change; /* relative, of what it was judged by: above 0 is better; NaN */
	enum nm_place_judged_by judged_by;
};

/*
 * Compares by performance if both have it, else by the distance of the accesses if both have enough
 * of them. A change counts if it exceeds 5 % and twice the standard deviation between intervals
 * before. Whatever these say, it is worse if the group waits a fifth longer for a CPU than before,
 * and than others do, while CPUs elsewhere are idle. Tick.
 */
struct nm_place_verdict nm_place_judge(const struct nm_place_measure *before,
				       const struct nm_place_measure *after,
				       const struct nm_place_context *context);

#endif

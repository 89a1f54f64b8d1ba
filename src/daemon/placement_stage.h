/* SPDX-License-Identifier: MIT */
/* Policy "auto" in the daemon: what it keeps of each process from one interval to the next. */
#ifndef NM_DAEMON_PLACEMENT_STAGE_H
#define NM_DAEMON_PLACEMENT_STAGE_H

#include "numa-migrd/mover.h"
#include "numa-migrd/node_memory.h"
#include "numa-migrd/placement.h"
#include "numa-migrd/snapshot.h"

enum nm_bring {
	NM_BRING_NOTHING, /* its memory stays where it is */
	NM_BRING_WANTED,  /* to be handed to the mover */
	NM_BRING_LATER,	  /* likewise, once its being away is to cost as much as moving it */
	NM_BRING_UNDER_WAY, /* the mover has it */
	NM_BRING_DONE,
};

/* A process's memory on its way to its home, once. */
struct nm_bring_memory {
	enum nm_bring state;
	uint64_t moved; /* pages */
	uint64_t away_bytes;  /* as the home was chosen */
	double away_distance; /* likewise: from home to its memory */
	struct nm_base_pages *was; /* where what moved was before, to go back there; owned */
	size_t nr_was;
	bool waits; /* in this interval: for others of its domain */
};

/* What is asked of where its memory is. */
struct nm_place_count {
	uint64_t ticket; /* 0: nothing is under way */
	uint64_t asked_ns;
	uint64_t anon_bytes; /* when it was asked last; 0: never */
	uint64_t huge_bytes; /* that it has besides of the pool of huge pages */
	bool pages;	     /* some pages were asked for, not all of numa_maps */
};

/*
 * How processes that were not touched have fared since the start: products of the median changes
 * from one interval to the next, and for waiting their sum.
 */
struct nm_place_trend {
	double performance, distance, waiting;
};

/* A process that policy "auto" looks after. */
struct nm_placed {
	uint32_t pid;
	uint64_t start_ticks, program_ns;
	int home; /* node index; -1: none */
	enum nm_place_reason reason; /* why so, or why not */
	uint64_t decision;	     /* 0: none yet */
	uint64_t undone;	     /* the last one that was rolled back; 0: none */
	uint64_t decided_ns;	     /* or when its memory was last on its way */
	uint64_t barred_until_ns;
	uint64_t refused_until_ns;   /* its threads cannot be sent home until then */
	unsigned setbacks;	     /* placements undone one after another */
	bool judged;
	uint64_t placed_ns; /* when it got its home */
	bool is_home;	    /* its threads ran there and nowhere else in the last interval */
	double watched_s; /* while it ran, without a home */
	double lost_s;	  /* CPU time, of waiting for memory on other nodes, until that has come home */
	struct nm_place_measure before, after;
	struct nm_place_measure recent; /* with or without a home */
	struct nm_place_trend trend;	/* when it got its home */
	struct nm_bring_memory memory;
	struct nm_place_count count;
	uint64_t anon_bytes;
	uint64_t measured_ns; /* in an interval, or examined; 0: not yet */
	/* Of this interval: */
	size_t process; /* index into the snapshot's */
	/* Per node, of one allocation; has_run_on since it was first seen, located_on: shares of
	 * its memory as counted by the kernel, or as it was moved. */
	double *ran_on, *memory_on, *has_run_on, *located_on;
	bool *allowed; /* of the same */
	bool located;  /* located_on is known */
	double run_s, delay_s, wanted_cpus, accesses;
	double traffic; /* bytes per second; 0: not known */
	unsigned running;
	unsigned ran_most;  /* of its threads at a time, ever */
	uint64_t grown_ns;  /* when ran_most became what it is */
	unsigned home_ran_most; /* ran_most when it got its home */
	double demand_cpus; /* what it wanted of late */
};

/* The times of one thread, as last read. */
struct nm_thread_times {
	uint32_t tid;
	uint64_t start_ticks, run_ns, delay_ns, read_ns;
};

/* A process that is examined between intervals: it began a moment ago, or has grown since. */
struct nm_examination {
	uint32_t pid;
	uint64_t since_ns, due_ns; /* when it began or grew; when it is examined next */
	struct nm_tenant tenant;   /* its own, or its parent's */
};
#define NM_EXAMINED_AT_ONCE 64U

/* CPU time that examinations of one domain have cost beyond its share. */
struct nm_payer {
	uint64_t domain;
	double owed_s;
	uint64_t charged_ns; /* 0: never */
};
#define NM_PAYERS 16U

struct nm_placement {
	struct nm_examination due[NM_EXAMINATIONS_MOST]; /* in no order */
	unsigned nr_due;
	struct nm_payer payers[NM_PAYERS]; /* the one that owes least is replaced */
	struct nm_placed *items; /* ascending pid */
	size_t count;
	struct nm_thread_times *times; /* ascending tid */
	size_t nr_times;
	uint32_t next_read_tid; /* where reading goes on in the next interval */
	struct nm_mover *mover;
	struct nm_place_cost page_cost;
	struct nm_reclaim_watch reclaim;
	struct nm_place_trend trend;
	struct nm_place_node *nodes; /* as of the last interval */
	double *beside_cpus; /* per node: what runs there besides the processes, of late */
	uint64_t *available_bytes; /* per node, less what homes given since then bring along */
	uint64_t available_ns;	   /* when these were read; 0: not yet */
	unsigned nr_nodes;	   /* of all three */
	double most_traffic;	   /* bytes per second of a node, the highest seen; 0: not known */
	double demand_of_late;	   /* CPUs in demand on the machine, smoothed */
	double saved_s;	   /* CPU time that examinations may still cost; below 0: owed */
	uint64_t spent_ns; /* CPU time of the loop as of the last interval */
};

struct nm_daemon;

/* Processes that have a home now. */
size_t nm_placement_homes(const struct nm_daemon *daemon);
/* NULL: it is not looked after. */
struct nm_placed *nm_placed_find(const struct nm_placement *placement, uint32_t pid);

#define NM_SAVED_MOST_S 1.0

/* ---- placement_when.c ---- */

/* Has a process examined when it is due, unless it is to be sooner. Beyond its tenant's share it is
 * not noted: the next interval has it. */
void nm_placement_examine_at(struct nm_placement *placement, const struct nm_examination *one);
/* True: the roster does not know the process. */
bool nm_placement_is_unknown(const struct nm_tenant *tenant);
/* What an examination of one of this domain cost. */
void nm_placement_charge(struct nm_placement *placement, uint64_t domain, double cost_s,
			 uint64_t now_ns);
/* The next one that is due by then, which is no longer noted. False: there is none. */
bool nm_placement_next_due(struct nm_placement *placement, uint64_t now_ns,
			   struct nm_examination *ret);
/* What an interval cost comes off what is saved up. */
void nm_placement_pay(struct nm_daemon *daemon, uint64_t interval_ns);

/* ---- placement_view.c ---- */

/* What decisions see; its arrays are its own. */
struct nm_placement_view {
	struct nm_place_view place;
	struct nm_place_node *nodes;
	struct nm_place_group *groups;
};
/* The nodes' loads in this interval. -ENOMEM. */
int nm_placement_follow_nodes(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			      double interval_s);
/* Of all processes, as last measured. -ENOMEM; the caller clears it also then. */
int nm_placement_view_build(const struct nm_daemon *daemon, uint64_t now_ns,
			    struct nm_placement_view *view);
void nm_placement_view_clear(struct nm_placement_view *view);
void nm_placement_fill_group(const struct nm_placed *placed, uint64_t now_ns,
			     struct nm_place_group *ret);
/* Adds this time without a home. */
void nm_placement_add_loss(const struct nm_topology *topology, struct nm_placed *placed,
			   uint64_t now_ns, double since_s);

/* ---- placement_verdicts.c ---- */

/* Verdicts that are due: reported, and followed. */
void nm_placement_judge(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			const struct nm_placement_view *view);
/* It has no home any more. */
void nm_placement_give_up(struct nm_daemon *daemon, struct nm_placed *placed,
			  bool memory_goes_back);

/* ---- placement_act.c ---- */

/* Sends the snapshot's threads home. -ENOMEM. */
int nm_placement_act(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);

/* ---- placement.c ---- */

/* Whether the one process of a snapshot of its own keeps its home or is given one, and its threads'
 * way there. -ENOMEM. */
int nm_placement_decide(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);

/* ---- placement_measure.c ---- */

/* Who is there, and what each did in this interval. -ENOMEM. */
int nm_placement_follow(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			uint64_t interval_ns);
/* The same for the one process of a snapshot of its own, whose threads demand these shares
 * of a CPU. -ENOMEM. */
int nm_placement_follow_one(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			    const double *wanted_cpus);
/* -errno. */
int nm_placement_read_times(struct nm_platform *platform, uint32_t pid, uint32_t tid,
			    struct nm_thread_times *ret);

/* ---- placement_pages.c ---- */

/* Takes an answer on the location of its memory, and asks if it has no home. */
void nm_placement_count(struct nm_daemon *daemon, struct nm_placed *placed, uint64_t now_ns);
/* Its home waits for the answer, which is a matter of moments. */
bool nm_placement_awaits_count(const struct nm_placed *placed, uint64_t now_ns);
/* Sets the location of its memory, by pages on each node; no pages: unknown. */
void nm_placement_locate(struct nm_placed *placed, const double *pages, unsigned nr_nodes);
/* How much memory it has, and on which node each share of it is; NULL: not known. */
uint64_t nm_placement_bytes(const struct nm_placed *placed);
const double *nm_placement_shares(const struct nm_placed *placed);
/* Nobody will take the answer. */
void nm_placement_forget_count(struct nm_daemon *daemon, struct nm_placed *placed);

/* ---- placement_memory.c ---- */

/* What the mover has done since. */
void nm_placement_collect(struct nm_daemon *daemon);
/* It was worse with its home: its memory goes back to where it was, as far as that is known, and likewise
 * what the mover has still to tell of. */
void nm_placement_send_back(struct nm_daemon *daemon, struct nm_placed *placed);
/* What is under way of it, stays so. */
void nm_placement_forget_memory(struct nm_placed *placed);
/* The node reclaims memory, which delays its users: nothing is to be moved there now. */
bool nm_placement_is_reclaimed(struct nm_daemon *daemon, unsigned node);
/* Hands the mover the memory that is worth being brought home, what has cost most for each byte first. */
void nm_placement_bring(struct nm_daemon *daemon, uint64_t interval_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The control group: a random part of the processes is left alone for their first ten minutes, and
 * compared with the others. Random draws are of units (a process, with children and siblings that
 * are decided about soon after it), and so is the comparison. A process can see its arm, and act on
 * it: programs of different users are kept apart, and the effect of each on the total is bounded.
 * Time and readings are arguments; the generator is seeded. Pure.
 */
#ifndef NUMA_MIGRD_TRIAL_H
#define NUMA_MIGRD_TRIAL_H

#include "numa-migrd/base.h"
#include "tasks/metrics.h"

#define NM_TRIAL_WINDOW_MINUTES 10U
#define NM_TRIAL_WINDOW_NS (NM_TRIAL_WINDOW_MINUTES * 60 * NM_NSEC_PER_SEC)
#define NM_TRIAL_UNITS_LEAST 20U      /* in each arm, for an interval */
#define NM_TRIAL_PROGRAMS_MOST 4096U  /* shared: quota */
#define NM_TRIAL_PROCESSES_MOST 8192U /* shared: quota; at a time */
#define NM_TRIAL_PARTS_MOST 64U	      /* programs of a unit; processes of others take no part */
#define NM_TRIAL_COMM_BYTES 72U
/* ± ln 2: a program counts as at most twice as fast or as slow. */
#define NM_TRIAL_DIFFERENCE_MOST 0.69314718055994531

enum nm_trial_arm { NM_TRIAL_CONTROL, NM_TRIAL_TREATED, NM_TRIAL_ARMS };

/* The logarithms of these are compared; less is better in each. */
enum nm_trial_measure {
	NM_TRIAL_ELAPSED, /* seconds from the draw to exit */
	NM_TRIAL_CPU,	  /* CPU seconds from the draw to exit */
	NM_TRIAL_MEASURES
};

/* ---- compare.c: statistics ---- */

/* The values of finished units. */
struct nm_trial_sum {
	double n, sum, squares;
};
void nm_trial_sum_add(struct nm_trial_sum *sum, double value);

/* A difference of logarithms, treated minus control. */
struct nm_trial_difference {
	double mean;
	double half;	  /* the interval is mean ± half; NaN: too few units for an interval */
	double variance;  /* of the mean */
	double deviation; /* standard deviation of a unit within its arm */
	double units[NM_TRIAL_ARMS];
};

/*
 * Compares both arms of one program. The interval covers the true difference at every look with a
 * probability of 95 % in total: normal mixture with a pooled variance (Robbins 1970; Johari et al.
 * 2022). Returns false, with *ret unchanged, below two units in either arm.
 */
bool nm_trial_compare(const struct nm_trial_sum sums[NM_TRIAL_ARMS],
		      struct nm_trial_difference *ret);

/* The comparison of one program, for the total. */
struct nm_trial_row {
	uint64_t domain;
	double weight; /* set by nm_trial_total() */
	struct nm_trial_difference difference;
};
/* Combines programs by the amount of data about each. No difference counts for more than
 * NM_TRIAL_DIFFERENCE_MOST, and no domain for more than 1/3, if there are three. Reorders the rows.
 * Returns false if there are none. */
bool nm_trial_total(struct nm_trial_row *rows, size_t count, struct nm_trial_difference *ret);

/* Returns the difference within ± NM_TRIAL_DIFFERENCE_MOST. */
double nm_trial_clip(double difference);

/* Returns how many units are needed to find a difference of 5 % with a power of 80 %. */
double nm_trial_units_needed(double deviation, double control_share);

#define NM_TRIAL_TEXT_BYTES 192
/* Writes a sentence about a difference in CPU seconds. */
void nm_trial_describe(const struct nm_trial_difference *difference, char *out, size_t size);

/* ---- programs.c: results ---- */

/* Which units a sum is about. */
enum nm_trial_span {
	NM_TRIAL_TODAY,	   /* since midnight */
	NM_TRIAL_EVIDENCE, /* since the start, or since the program was last left alone */
	NM_TRIAL_RAISED,   /* of the last period with a raised share (nm_trial_raise()); the others
			    * exclude these, because another share may have another effect */
	NM_TRIAL_ALWAYS,   /* since the start */
	NM_TRIAL_SPANS
};

/* Sums over the processes of an arm, which are shown without an interval. */
struct nm_trial_conditions {
	double accesses, near;	/* sampled ones, and those to memory on the node of the thread */
	double distance;	/* sum over the accesses; 1: local */
	double ran_s, waited_s; /* CPU time, and time spent waiting for a CPU */
};

/* Results of a command of a user within a domain (nm_domain_of()). */
struct nm_trial_program {
	uint64_t domain;
	uint32_t uid;
	char comm[NM_TRIAL_COMM_BYTES]; /* escaped */
	struct nm_trial_sum sums[NM_TRIAL_SPANS][NM_TRIAL_MEASURES][NM_TRIAL_ARMS];
	/* Number of control units, and of those of which a process outlived the window. */
	uint32_t controls[NM_TRIAL_SPANS], outlived[NM_TRIAL_SPANS];
	unsigned nr_losses;	  /* how often it was found to be slower in succession */
	uint64_t barred_until_ns; /* left alone until then */
	double loss;		  /* the difference that was found */
	enum nm_trial_measure lost_in;
	bool announced;	   /* the caller knows of the last loss */
	bool bar_applies;  /* the caller does not know that the last bar has ended */
	uint64_t drawn_ns; /* the last draw of one of its processes */
	unsigned parts;	   /* number of units that are not finished */
};

struct nm_trial;

/* The share of control is 0 until nm_trial_configure(). */
void nm_trial_new(uint64_t seed, struct nm_trial **ret);
void nm_trial_free(struct nm_trial *trial);
NM_DEFINE_CLEANUP(struct nm_trial, nm_trial_free);

/* Sets the share of control, and the slowdown from which on a program is left alone (both 0 to 1). */
void nm_trial_configure(struct nm_trial *trial, double control_share, double tolerance);

/* Raises the share for this time. Units are drawn until ten minutes before its end, so that each of
 * them is complete then. Discards the results of the last such period. */
void nm_trial_raise(struct nm_trial *trial, double control_share, uint64_t now_ns,
		    uint64_t duration_ns);
/* Lets the current period last until then, if it would end earlier; its results stay. Returns 0, or
 * -EBUSY for another share, whose results are not comparable. */
int nm_trial_extend(struct nm_trial *trial, double control_share, uint64_t until_ns);
bool nm_trial_is_raised(const struct nm_trial *trial, uint64_t now_ns);
/* Ends it now; units that are not complete do not count. */
void nm_trial_lower(struct nm_trial *trial, uint64_t now_ns);
struct nm_trial_period {
	double control_share;
	uint64_t since_ns, until_ns; /* 0: never */
};
struct nm_trial_period nm_trial_period(const struct nm_trial *trial);
/* Returns whether any process may be drawn now. */
bool nm_trial_is_on(const struct nm_trial *trial, uint64_t now_ns);

/* Compares the arms over all programs. Returns false if no program has two units in each: *ret has
 * the number of units then. */
bool nm_trial_result(const struct nm_trial *trial, enum nm_trial_span span,
		     enum nm_trial_measure measure, struct nm_trial_difference *ret);
/* The same for one program; false also if too many of its control units outlive the window. */
bool nm_trial_program_result(const struct nm_trial_program *program, enum nm_trial_span span,
			     enum nm_trial_measure measure, struct nm_trial_difference *ret);
/* Begins a new day if this is another day of the year than at the last call: clears NM_TRIAL_TODAY.
 */
void nm_trial_follow_day(struct nm_trial *trial, int day);
/* Returns sums over all programs with two units in each arm, since the start, also of raised
 * periods. Values are relative to the mean of the program's control units, and those of a treated
 * arm are shifted as far as its difference is clipped, or not trusted. */
struct nm_trial_sum nm_trial_sums(const struct nm_trial *trial, enum nm_trial_measure measure,
				  enum nm_trial_arm arm);

/* The sums of an arm over NM_TRIAL_TODAY or NM_TRIAL_RAISED. */
const struct nm_trial_conditions *
nm_trial_conditions(const struct nm_trial *trial, enum nm_trial_span span, enum nm_trial_arm arm);

/* Returns NULL if nothing is known of the program. */
const struct nm_trial_program *nm_trial_program(const struct nm_trial *trial, uint64_t domain,
						uint32_t uid, const char *comm);
size_t nm_trial_programs(const struct nm_trial *trial, struct nm_trial_program *const **ret);
/* Returns a program that was found to be slower since the last call, or NULL. */
const struct nm_trial_program *nm_trial_next_loss(struct nm_trial *trial);
/* Returns a program that is tried again since the last call, or NULL. */
const struct nm_trial_program *nm_trial_next_retry(struct nm_trial *trial, uint64_t now_ns);

/* ---- units.c: processes ---- */

enum nm_trial_answer {
	NM_TRIAL_UNKNOWN, /* not drawn yet */
	NM_TRIAL_DECIDE,  /* treated, takes no part, or its window is over */
	NM_TRIAL_LEAVE,	  /* control */
	NM_TRIAL_BARRED,  /* its program was slower when decided about */
};

/* A process at its first decision. */
struct nm_trial_candidate {
	uint32_t pid, parent, uid;
	uint64_t start_ticks, domain;
	const char *comm; /* escaped */
	uint64_t cpu_ns;  /* that it has used so far */
	bool takes_part;  /* if it is drawn, no virtual machine, and no program of this service */
};

/* Draws a process. If its domain has no room in the tables, it takes no part: a domain gets one
 * more process if it has fewer than are left free. */
enum nm_trial_answer nm_trial_draw(struct nm_trial *trial, const struct nm_trial_candidate *one,
				   uint64_t now_ns);
/* Returns the result of an earlier draw. */
enum nm_trial_answer nm_trial_answer(const struct nm_trial *trial, uint32_t pid,
				     uint64_t start_ticks, uint64_t now_ns);

bool nm_trial_has(const struct nm_trial *trial, uint32_t pid);
/* Records the total CPU time of a process, from /proc. */
void nm_trial_read(struct nm_trial *trial, uint32_t pid, uint64_t cpu_ns);
/* Counts the accesses of the threads of processes in an interval. */
void nm_trial_observe_threads(struct nm_trial *trial, const struct nm_sampled_thread *threads,
			      size_t count, const struct nm_topology *topology);
/* Adds to the conditions of a process's arm, if it is within its window. */
void nm_trial_observe(struct nm_trial *trial, uint32_t pid,
		      const struct nm_trial_conditions *conditions);
/* Records that a thread has exited, which has used this CPU time since nm_trial_read(). */
void nm_trial_thread_ended(struct nm_trial *trial, uint32_t pid, uint64_t cpu_ns, uint64_t now_ns);
/* The process has exited: at the exit of its last thread, or now if that was not seen. */
void nm_trial_process_ended(struct nm_trial *trial, uint32_t pid, uint64_t now_ns);
/* Ends windows that are over. Calls `released` for each process that was left alone until now. */
void nm_trial_end_windows(struct nm_trial *trial, uint64_t now_ns,
			  void (*released)(void *context, uint32_t pid), void *context);
/* Forgets all processes, whose events were missed. Results stay. */
void nm_trial_forget(struct nm_trial *trial);

struct nm_trial_process {
	uint32_t pid, parent;
	uint64_t start_ticks, domain, drawn_ns;
	uint64_t last_exit_ns;			      /* of a thread; 0: none */
	uint64_t cpu_before_ns, cpu_ns, cpu_since_ns; /* until the draw, from there to the last
						       * reading, and since that */
	const struct nm_trial_program *program;	      /* NULL: there was no room for it */
	struct nm_trial_part *part; /* NULL: takes no part, or its window is over */
};
/* Returns the processes in no particular order, valid until the next call. */
size_t nm_trial_processes(const struct nm_trial *trial, const struct nm_trial_process **ret);

#endif

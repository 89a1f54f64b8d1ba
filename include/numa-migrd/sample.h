/* SPDX-License-Identifier: MIT */
/*
 * Ring bytes → samples and side-band events (decoding: pure), and the source that owns one perf
 * ring per CPU (sampling.md section 2).
 */
#ifndef NUMA_MIGRD_SAMPLE_H
#define NUMA_MIGRD_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "numa-migrd/event.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/topology.h"

/* Where a memory access was served (data_src; sampling.md, "data_src bits"). */
enum nm_level {
	NM_LEVEL_UNKNOWN,
	NM_LEVEL_L1,
	NM_LEVEL_LFB,
	NM_LEVEL_L2,
	NM_LEVEL_L3,
	NM_LEVEL_CACHE,
	NM_LEVEL_DRAM
};

struct nm_sample {
	/*
	 * CLOCK/CYCLES: a thread ran here; FAULT_*: it touched an address; MEMORY: it loaded from
	 * one, STORE: it stored to one, whichever event told so; the others count by `amount`.
	 */
	enum nm_event_kind kind;
	uint32_t pid, tid; /* in the daemon's (the host's) pid namespace */
	uint32_t cpu;
	uint64_t time_ns;	   /* perf clock */
	uint64_t address;	   /* FAULT_*, MEMORY and STORE; 0 = not known */
	uint64_t physical_address; /* 0 = not known */
	/* Where physical_address is 0: 1 + index of the node the page is on; 0 = not known either.
	 */
	uint32_t page_node;
	uint64_t page_bytes; /* of the page touched, 0 = not known */
	/* MEMORY and STORE only: */
	uint32_t latency_cycles; /* core cycles; 0 = not measured for this access */
	uint8_t level;		 /* enum nm_level */
	bool remote; /* served by another node, as the hardware says; also of DRAM where it tells */
	/*
	 * CYCLES, MEMORY, STORE: what it stands for in 1/256, more than 256 where its event has its
	 * counter only for a part of the time; 0 means 256.
	 */
	uint16_t weight;
	/* INSTRUCTIONS, FLOPS, DRAM: instructions, operations, bytes that this sample stands for.
	 */
	uint64_t amount;
};

enum nm_task_event_kind { NM_TASK_FORK, NM_TASK_EXIT, NM_TASK_COMM, NM_TASK_EXEC };

struct nm_task_event {
	enum nm_task_event_kind kind;
	uint32_t pid, tid;
	uint32_t parent_pid, parent_tid; /* FORK only; parent_pid == pid: a new thread */
	uint64_t time_ns;
	bool reused; /* FORK: the number was given anew since; by nm_task_events_order() */
};

/*
 * The records of one drain in order of time: pointers into `events`, for which ret has room. Marks
 * forks whose numbers another fork among them gives anew: its present owner is not their child.
 * -ENOMEM: not all may be marked. Drain.
 */
int nm_task_events_order(struct nm_task_event *events, size_t count, struct nm_task_event **ret);

/* Receivers of what a ring held, in ring order. on_sample is the hot path. */
struct nm_sample_sink {
	void *context;
	void (*on_sample)(void *context, const struct nm_sample *sample);
	void (*on_task)(void *context, const struct nm_task_event *event);
};

/* What decoding met besides samples; counters only grow. */
struct nm_ring_counts {
	uint64_t samples;
	uint64_t task_events;
	uint64_t lost;	    /* records the kernel dropped (LOST, LOST_SAMPLES) */
	uint64_t throttled; /* THROTTLE records */
	uint64_t corrupt;   /* a record whose size cannot be: the rest of the ring was skipped */
	uint64_t unknown;   /* records of other types or ids, skipped */
	uint64_t no_access; /* samples of operations that touch no memory (most of IBS), skipped */
	uint64_t kernel;    /* accesses to the kernel's addresses, skipped */
};

#define NM_RING_EVENTS_MAX 24U

/* Which event an IDENTIFIER means; ids of one CPU's ring (few, searched linearly). */
struct nm_ring_layout {
	uint32_t cpu;
	unsigned count;
	struct {
		uint64_t id;
		enum nm_event_kind kind;
		bool remote;	 /* DRAM of other nodes */
		uint64_t amount; /* that one sample stands for */
		uint16_t weight; /* as in nm_sample */
	} events[NM_RING_EVENTS_MAX];
};

/*
 * Decodes the records in [tail, head) of a ring of `size` bytes (power of two; head and tail count
 * up for ever, as in perf_event_mmap_page). Returns the new tail (== head but for a torn last
 * record never: the kernel publishes whole records). Pure. Records may wrap; a size < 8 or beyond
 * head is corruption: counted, and the rest is skipped.
 */
uint64_t nm_ring_decode(const struct nm_ring_layout *layout, const uint8_t *ring, size_t size,
			uint64_t tail, uint64_t head, const struct nm_sample_sink *sink,
			struct nm_ring_counts *counts);

/* ---- the source: one ring per usable CPU ---- */

struct nm_source;

/* Why something is not sampled, as a whole sentence with the remedy; `count` CPUs are affected. */
struct nm_source_problem {
	int error; /* negative errno */
	enum nm_event_kind kind;
	unsigned count;
	int first_cpu;
	bool over; /* news only: it is none any more */
	char text[320];
};

struct nm_source_status {
	bool runs;     /* who ran where is sampled */
	bool accesses; /* memory accesses are sampled, by page faults or by hardware */
	enum nm_memory_source memory; /* by which hardware; NONE: page faults, if anything */
	/*
	 * Amounts that are sampled, whole and on every CPU: where false, the figure is unavailable,
	 * not 0.
	 */
	bool has_instructions, has_flops, has_dram;
	uint64_t memory_period; /* as raised by the overhead control; 0 without hardware */
	char name[64];	 /* in short: "clock+faults", "cycles+pebs+instructions+flops+dram" */
	bool has_cycles; /* by the PMU's cycles rather than cpu-clock */
	unsigned cpus_open;
	uint64_t clock_period; /* ns (cpu-clock) or cycles, as raised by the overhead control */
	uint64_t fault_period;
	double run_sample_ns; /* CPU time one run sample stands for (for cycles: at the CPU's top
				 frequency) */
	struct nm_ring_counts counts;
	const struct nm_source_problem *problems; /* valid until the next call on the source */
	size_t problem_count;
};

/*
 * Opens the best source that really counts on every usable CPU (rings of ring_kb; cycles where a
 * PMU counts, else cpu-clock; memory accesses from the hardware that counts in a trial of 100 ms,
 * with instructions, operations and DRAM traffic; else software page faults). Returns 0 even when
 * some events or CPUs are refused: see nm_source_status(). Raises RLIMIT_NOFILE's soft limit to the
 * hard one. Returns -ENOMEM, or the first error when nothing at all could be opened (*ret
 * untouched; the first problem is then told in `error`). The platform must outlive the source. With
 * source = "none" nothing is opened. Daemon, start and resume.
 */
int nm_source_open(struct nm_platform *platform, const struct nm_topology *topology,
		   const struct nm_config *config, char *error, size_t error_size,
		   struct nm_source **ret);
/*
 * Samples that come from a model or a recording in place of rings. drain hands over what there is,
 * as nm_source_drain(). The status is asked for when it is wanted.
 */
struct nm_feed {
	void *context;
	const struct nm_source_status *status;
	size_t (*drain)(void *context, const struct nm_sample_sink *sink);
};

/* A source fed so; the feed must outlive it. -ENOMEM. Simulator, replay. */
int nm_source_open_feed(const struct nm_feed *feed, struct nm_source **ret);
void nm_source_free(struct nm_source *source);
NM_DEFINE_CLEANUP(struct nm_source, nm_source_free);

/* An epoll fd that becomes readable when a ring is a quarter full. Owned by the source. */
int nm_source_fd(const struct nm_source *source);

/* Has the hardware hand over what it keeps in AUX areas (SPE). Tick, before the rings are emptied.
 */
void nm_source_flush(struct nm_source *source);

/* Empties every ring into the sink. Returns the number of samples and task events. Tick, and on
 * nm_source_fd(). */
size_t nm_source_drain(struct nm_source *source, const struct nm_sample_sink *sink);

/*
 * Opens rings on CPUs that came online and closes those that went (topology: the new one, which
 * replaces the old and must outlive the source). An offline CPU's events stay silent for ever
 * otherwise. Tick, on change.
 */
int nm_source_retarget(struct nm_source *source, const struct nm_topology *topology);

/*
 * Turns the clock of idle CPUs off (below 2 % busy in three calls in a row) and of busy ones on
 * (from 5 %, at once), so that idle CPUs are not woken; counters do not wake and stay on, but
 * where they take turns. busy_share: of the last interval, by CPU id, from /proc/stat; NaN counts
 * as busy. Tick, once per interval.
 */
void nm_source_follow_load(struct nm_source *source, const double *busy_share, unsigned nr_cpus);

/*
 * Overhead control: `cost_share` is what the daemon and its sampling took of one CPU in the last
 * interval. Above the cap periods double, or more where it takes more, below a third of it they
 * halve back to the configured ones. Returns true when a period changed. Records lost in the
 * interval, and samples that the kernel suppressed (THROTTLE), count as over the cap.
 */
bool nm_source_control_cost(struct nm_source *source, double cost_share);

/* Who runs on which node takes few samples to tell: while `thin`, 25 a second of a CPU at most. Tick. */
void nm_source_thin_runs(struct nm_source *source, bool thin);

/* Page faults that tell nobody anything: while `thin`, only every 251st is looked at. Tick. */
void nm_source_thin_faults(struct nm_source *source, bool thin);

/* Whether nm_source_control_cost() has made periods longer than they are to be. Tick. */
bool nm_source_is_held_back(const struct nm_source *source);

const struct nm_source_status *nm_source_status(struct nm_source *source);

/*
 * The problems that have come up since the last call, each once, and those that ended: a counter
 * that another program held and released. Valid until the next call on the source. Tick.
 */
const struct nm_source_problem *nm_source_news(struct nm_source *source, size_t *ret_count);

/*
 * By CPU id, how many records were taken for each that came, since the last call: 1 where none were
 * lost. Valid until the next call on the source. Tick, for nm_metrics_interval.
 */
const double *nm_source_taken_per_seen(struct nm_source *source, unsigned *ret_nr_cpus);

/* The next period for a cost and a cap (pure): the rule behind nm_source_control_cost(). */
uint64_t nm_period_next(uint64_t period, uint64_t configured, uint64_t maximum, double cost_share,
			double cap_share);

/* ---- soft-dirty injection (sampling.md sections 3 and 6) ---- */

/* One process that may be write-protected so that its next writes fault. */
struct nm_inject_target {
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t resident_bytes;
};

#define NM_INJECTIONS_MOST 64U /* under way at a time */

/* Round robin over targets under a rate. State is plain data; copy it freely. */
struct nm_injector {
	struct {
		uint64_t ticket;
		struct nm_inject_target target;
	} asked[NM_INJECTIONS_MOST]; /* of which it is not known yet what came of it */
	unsigned nr_asked;
	double budget_bytes; /* what may still be protected; refilled by rate × time */
	uint64_t last_time_ns;
	uint32_t last_pid;  /* where the round robin stands */
	double ns_per_byte; /* the least that protecting has cost so far; 0 = not measured yet */
	uint64_t writes, refused;
	uint64_t too_large; /* passed over: one write would hold the target's mappings locked too
			       long */
	int last_error;
};

/*
 * Does soft-dirty protection work here? Some kernels accept the write to clear_refs and do nothing
 * (no CONFIG_MEM_SOFT_DIRTY), so it is tried on a page of our own. Returns 0, -EOPNOTSUPP (no
 * effect), or the error of nm_platform_ops.clear_refs. Daemon, when injection is configured.
 */
int nm_inject_probe(struct nm_platform *platform);

/*
 * Write-protects as many targets (ascending pid, from where the last call stopped) as the rate of
 * mb_per_s allows; a target larger than one second's budget waits until the budget has grown to its
 * size. A target whose write is expected to take more than 100 ms by what earlier ones took is
 * passed over: its mappings are locked meanwhile. It is asked for and not waited for: what came of it
 * is heard in a later call. Returns the number that have been protected since the last one; those that
 * died are passed over, refusals are counted. Tick.
 */
int nm_inject_soft_dirty(struct nm_injector *injector, struct nm_platform *platform,
			 const struct nm_inject_target *targets, size_t count, double mb_per_s,
			 uint64_t now_ns);

/* Begins anew; what is under way is not heard of any more. */
void nm_injector_clear(struct nm_injector *injector, struct nm_platform *platform);

#endif

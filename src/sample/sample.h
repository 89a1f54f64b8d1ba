/* SPDX-License-Identifier: MIT */
/* The decoder, which turns the bytes of a ring into samples and side-band events (pure), and the
 * source, which owns one perf ring per CPU. */
#ifndef NUMA_MIGRD_SAMPLE_H
#define NUMA_MIGRD_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "platform/event.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/topology.h"

/*
 * The level of the memory hierarchy that served an access (data_src).
 */
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
	 * CLOCK and CYCLES: a thread ran here. FAULT_*: it touched an address. MEMORY: it loaded
	 * from an address, STORE: it stored to one, regardless of the event that reported it.
	 * Samples of the other kinds count by `amount`.
	 */
	enum nm_event_kind kind;
	uint32_t pid, tid; /* in the daemon's pid namespace, which is the host's */
	uint32_t cpu;
	uint64_t time_ns;	   /* perf clock */
	uint64_t address;	   /* FAULT_*, MEMORY and STORE; 0: not known */
	uint64_t physical_address; /* 0: not known */
	/* 1 + index of the node of the page; 0: not known. The daemon sets it by physical_address
	 * if the kernel has not reported it. */
	uint32_t page_node;
	uint64_t page_bytes; /* size of the page touched; 0: not known */
	/* MEMORY and STORE only: */
	uint32_t latency_cycles; /* core cycles; 0: not measured for this access */
	uint8_t level;		 /* enum nm_level */
	bool remote; /* the hardware reports that another node served it; also set for DRAM if
		      * reported */
	/* CYCLES, MEMORY, STORE: weight of the sample in 1/256. It exceeds 256 if the event has its
	 * counter for only part of the time; 0 means 256. */
	uint16_t weight;
	/* INSTRUCTIONS, FLOPS, DRAM: number of instructions, operations or bytes that the sample
	 * represents. */
	uint64_t amount;
};

/* Returns the index of the node of the page; -1: not known. */
static inline int nm_sample_node(const struct nm_sample *sample, unsigned nr_nodes)
{
	return sample->page_node <= nr_nodes ? (int)sample->page_node - 1 : -1;
}

enum nm_task_event_kind { NM_TASK_FORK, NM_TASK_EXIT, NM_TASK_COMM, NM_TASK_EXEC };

struct nm_task_event {
	enum nm_task_event_kind kind;
	uint32_t pid, tid;
	uint32_t parent_pid, parent_tid; /* FORK only; parent_pid == pid for a new thread */
	uint64_t time_ns;
	bool reused; /* FORK: the number was reused later in the same drain; set by
		      * nm_task_events_order() */
};

/*
 * Sorts the records of one drain by time: *ret gets pointers into `events` and has room for
 * `count`. Marks each fork whose number a later fork among them reuses, because the current owner
 * of the number is another task.
 */
void nm_task_events_order(struct nm_task_event *events, size_t count, struct nm_task_event **ret);

/* Callbacks for the contents of a ring, called in ring order. on_sample is the hot path; it may
 * complete the sample, which is valid until it returns. */
struct nm_sample_sink {
	void *context;
	void (*on_sample)(void *context, struct nm_sample *sample);
	void (*on_task)(void *context, const struct nm_task_event *event);
};

/* Counters of a decoder; they only grow. */
struct nm_ring_counts {
	uint64_t samples;
	uint64_t task_events;
	uint64_t lost;	    /* records that the kernel dropped (LOST, LOST_SAMPLES) */
	uint64_t throttled; /* THROTTLE records */
	uint64_t corrupt;   /* records with an invalid size; the rest of the ring was skipped */
	uint64_t unknown;   /* records of other types or ids, which were skipped */
	uint64_t no_access; /* samples of operations without a memory access (most IBS samples),
			     * which were skipped */
	uint64_t kernel;    /* accesses to kernel addresses, which were skipped */
};

#define NM_RING_EVENTS_MAX 24U

/*
 * Maps the IDENTIFIER values of one CPU's ring to events. There are few, so the search is linear.
 */
struct nm_ring_layout {
	uint32_t cpu;
	unsigned count;
	struct {
		uint64_t id;
		enum nm_event_kind kind;
		bool remote;	 /* DRAM of other nodes */
		uint64_t amount; /* amount that one sample represents */
		uint16_t weight; /* as in nm_sample */
	} events[NM_RING_EVENTS_MAX];
};

/*
 * Decodes the records in [tail, head) of a ring of `size` bytes. `size` is a power of two; head and
 * tail grow without wrapping, as in perf_event_mmap_page. Returns the new tail, which equals head,
 * because the kernel publishes only whole records. Records may wrap around the end of the ring. A
 * record with a size below 8 or beyond head is corrupt: it is counted, and the rest is skipped.
 * Pure.
 */
uint64_t nm_ring_decode(const struct nm_ring_layout *layout, const uint8_t *ring, size_t size,
			uint64_t tail, uint64_t head, const struct nm_sample_sink *sink,
			struct nm_ring_counts *counts);

/* ---- the source: one ring per usable CPU ---- */

struct nm_source;

/* The reason for which something is not sampled, as a whole sentence with the remedy. It affects
 * `count` CPUs. */
struct nm_source_problem {
	int error; /* negative errno */
	enum nm_event_kind kind;
	unsigned count;
	int first_cpu;
	bool over; /* only in nm_source_news(): the problem has ended */
	char text[320];
};

struct nm_source_status {
	bool runs;     /* the source samples which thread runs on which CPU */
	bool accesses; /* memory accesses are sampled, by page faults or by hardware */
	enum nm_memory_source memory; /* hardware that samples them; NONE: page faults, or no
				       * source */
	/* Amounts that are sampled completely and on every CPU. If false, the metric is
	 * unavailable, not 0. */
	bool has_instructions, has_flops, has_dram;
	uint64_t memory_period; /* as raised by the overhead control; 0 without a hardware source */
	char name[64];	 /* short name: "clock+faults", "cycles+pebs+instructions+flops+dram" */
	bool has_cycles; /* by the PMU's cycles instead of cpu-clock */
	unsigned cpus_open;
	uint64_t clock_period; /* ns (cpu-clock) or cycles, as raised by the overhead control */
	uint64_t fault_period;
	double run_sample_ns; /* CPU time that one run sample represents (for cycles: at the CPU's
			       * maximum frequency) */
	struct nm_ring_counts counts;
	const struct nm_source_problem *problems; /* valid until the next call on the source */
	size_t problem_count;
};

/* Returns the events of a source that the configuration selects; its texts belong to the
 * configuration. */
struct nm_event_selection nm_event_selection_of(const struct nm_config *config,
						enum nm_memory_source source);

/*
 * Opens the best source that counts on every usable CPU. The rings have ring_kb each. Run samples
 * come from cycles if a PMU counts them, otherwise from cpu-clock. Memory accesses come from the
 * hardware source that counts in a trial of 100 ms, with instructions, operations and DRAM traffic,
 * otherwise from software page faults. With source = "none" nothing is opened. Raises the soft
 * limit of RLIMIT_NOFILE to the hard limit. The platform must outlive the source.
 *
 * Returns 0 even if some events or CPUs are refused: see nm_source_status(). Returns the first
 * error if nothing could be opened; *ret is then untouched, and `error` describes the first
 * problem.
 */
int nm_source_open(struct nm_platform *platform, const struct nm_topology *topology,
		   const struct nm_config *config, char *error, size_t error_size,
		   struct nm_source **ret);
/* Samples from a model, used instead of rings. drain delivers all available samples,
 * like nm_source_drain(). The status is read whenever it is needed. */
struct nm_feed {
	void *context;
	const struct nm_source_status *status;
	size_t (*drain)(void *context, const struct nm_sample_sink *sink);
};

/* Creates a source that reads from `feed`, which must outlive it. */
void nm_source_open_feed(const struct nm_feed *feed, struct nm_source **ret);
void nm_source_free(struct nm_source *source);
NM_DEFINE_CLEANUP(struct nm_source, nm_source_free);

/* Returns an epoll fd that becomes readable when a ring is 25 % full. The source owns it. */
int nm_source_fd(const struct nm_source *source);

/* Makes the hardware hand over the contents of the AUX areas (SPE). */
void nm_source_flush(struct nm_source *source);

/* Passes the contents of all rings to the sink. Returns the number of samples and task events. */
size_t nm_source_drain(struct nm_source *source, const struct nm_sample_sink *sink);

/*
 * Opens rings on CPUs that came online and closes those of CPUs that went offline; without this,
 * events of a CPU that was offline would never count again. `topology` is the new one; it replaces
 * the old one and must outlive the source.
 */
void nm_source_retarget(struct nm_source *source, const struct nm_topology *topology);

/*
 * Disables the clock event on idle CPUs (below 2 % busy in three consecutive calls), so that they
 * are not woken, and enables it again on busy ones (from 5 %, at once). Counters do not wake a CPU
 * and stay enabled, except where they take turns. busy_share is that of the last interval, by CPU
 * id, from /proc/stat; NaN counts as busy.
 */
void nm_source_follow_load(struct nm_source *source, const double *busy_share, unsigned nr_cpus);

/*
 * Controls the overhead. `cost_share` is the CPU time of the daemon and its sampling in the last
 * interval, as a share of one CPU. Above the cap the periods double, or grow more if the cost is
 * higher; below 1/3 of the cap they halve until they reach the configured periods. Records lost in
 * the interval, and samples that the kernel suppressed (THROTTLE), count as exceeding the cap.
 * Returns true if a period changed.
 */
bool nm_source_control_cost(struct nm_source *source, double cost_share);

/* While `thin` is true, limits run samples to 25 per second and CPU, which suffices to determine
 * the node on which each thread runs, and examines only one page fault of 251. */
void nm_source_thin(struct nm_source *source, bool thin);

/* While `rests` is true, samples hardware events at an eighth of the rate, which suffices to see
 * that memory is no longer near. */
void nm_source_rest(struct nm_source *source, bool rests);

/* Returns whether nm_source_control_cost() has raised periods above the configured ones. */
bool nm_source_is_held_back(const struct nm_source *source);

const struct nm_source_status *nm_source_status(struct nm_source *source);

/*
 * Returns the problems that have occurred since the last call, each once, and those that have
 * ended: a counter that another program held and released. Valid until the next call on the source.
 */
const struct nm_source_problem *nm_source_news(struct nm_source *source, size_t *ret_count);

/*
 * Returns, by CPU id, the ratio of records produced to records received since the last call: 1 if
 * none were lost. Valid until the next call on the source.
 */
const double *nm_source_taken_per_seen(struct nm_source *source, unsigned *ret_nr_cpus);

/* Computes the next period from a cost and a cap: the rule of nm_source_control_cost(). Pure. */
uint64_t nm_period_next(uint64_t period, uint64_t configured, uint64_t maximum, double cost_share,
			double cap_share);

/* The cost of an interval that depends on the periods: CPU time for draining samples, and that
 * samples have taken from the sampled threads. The remaining cost of a tick does not decrease with
 * longer periods. */
struct nm_sampling_cost {
	double drain_ns;
	uint64_t caused_ns;
};
/* `drain_ns` is the CPU time of draining all records between the two counts: forks are recorded
 * with any period. Pure. */
struct nm_sampling_cost nm_sampling_cost(const struct nm_ring_counts *before,
					 const struct nm_ring_counts *now, uint64_t drain_ns);

/* ---- list of events ---- */

/* numa-migrd --list-events [--pmu NAME | --json] (numa-migrd(8)); part of sample/. */

/* Prints an entry of the event table as libpfm4 encodes it. For an unknown name it prints the known
 * names and returns -ENOENT. */
int nm_list_events_table(FILE *out, const char *name);

/*
 * Prints errors in sampling.event that depend on the CPU of the machine below the open directory
 * `root`, and that parsing does not find; a warning if it has no such PMU. Returns 0 or -EINVAL.
 */
int nm_list_events_check(FILE *out, int root, const struct nm_config *config);

/* Prints each sampling source of this machine with its events, and the kernel's response to opening
 * each. */
void nm_list_events_here(FILE *out, struct nm_platform *platform, const struct nm_config *config);

/*
 * Prints the available sources as JSON; with `may_try` also the result of opening the configured
 * source on one CPU for 0.1 s. Returns 0, or -EIO if it cannot be written.
 */
int nm_list_events_json(FILE *out, struct nm_platform *platform, const struct nm_topology *topology,
			const struct nm_config *config, bool may_try);

#endif

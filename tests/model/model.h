/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files of the model. */
#ifndef NM_SIM_MODEL_H
#define NM_SIM_MODEL_H

#include <endian.h>

#include "numa-migrd/base.h"
#include "sim.h"

#define NM_SIM_BOOT_S 1000.0 /* uptime of the machine at the start */
/* Numbers that few machines reach; up to PID_MAX_LIMIT (proc(5)). */
#define NM_SIM_FIRST_PID 3000000U
#define NM_SIM_LAST_PID 4194303U
#define NM_SIM_FIRST_ADDRESS 0x7f0000000000ULL
#define NM_SIM_UNTOUCHED UINT8_MAX
#define NM_SIM_TICKS_PER_S 100.0 /* USER_HZ */
#define NM_SIM_LINE_BYTES 64.0
/* Share of the lines read that are also written back: the 2:1 to 3:1 mixes of MLC. */
#define NM_SIM_WRITE_BACK 0.3
/* Rate of copying pages for any reason; their users wait meanwhile. */
#define NM_SIM_MOVE_BYTES_PER_S 1e9

enum { NM_SIM_DUE_RUN, NM_SIM_DUE_ACCESS, NM_SIM_DUE_KINDS };

struct nm_sim_process;

struct nm_sim_task {
	struct nm_sim_process *process;
	uint32_t tid;
	unsigned block; /* its own block of the process's pages */
	int cpu;
	hwloc_bitmap_t mask; /* NULL: every CPU */
	bool ended;	     /* or not started yet */
	bool waits;	     /* for the other threads of the phase, or takes no part in it */
	size_t phase;
	double done, total; /* 10^9 instructions: in this phase, and all that count for barriers */
	double wake_s, lost_s; /* end of its sleep; time lost by a move, to be made up for */
	double duty;	       /* share of the last step without waiting at a barrier */
	double rate;	       /* in this step, in instructions per ns */
	double did;	       /* 10^9 instructions in this step */
	double cpu_share;      /* share of its CPU in this step */
	double core_share;     /* share of its core's execution rate while it has the CPU */
	double bytes_per_ns;
	double *mix; /* per node: share of the misses */
	/* In this step: accesses served by memory or another cache, and by the own cache because a
	 * neighbour has written the line. */
	double misses_per_kilo, hits_per_kilo;
	/*
	 * For kernel.numa_balancing, per node: hinting faults of earlier passes, and of this one.
	 */
	double *faults, *found;
	int preferred; /* node; -1: none */
	int moved_to; /* 1 + node to which its affinity was last narrowed; 0: never */
	double moved_s;
	unsigned nr_stays; /* of this move, counted */
	double events_due[NM_SIM_DUE_KINDS];
	uint64_t run_ns, delay_ns, seen_ns; /* seen_ns: part of run_ns that was sampled */
};

struct nm_sim_process {
	uint32_t pid;
	const struct nm_sim_program *program;
	const struct nm_sim_user *user;
	size_t user_index;
	double started_s;
	struct nm_sim_task *tasks;
	double *mixes; /* of all tasks, and their faults */
	size_t nr_pages, nr_touched;
	double touched;	    /* share of each block */
	uint8_t *home;	    /* per page: node index, or NM_SIM_UNTOUCHED */
	uint8_t *came_from; /* per page: node before it was last moved, or NM_SIM_UNTOUCHED */
	float *came_s;	    /* per page: when it was last moved */
	uint32_t *block_on; /* number of pages per block and node */
	uint64_t *on;	    /* number of pages per node */
	/* kernel.numa_balancing: position of the scan; block of the last thread to fault, plus 1,
	 * and its node. */
	size_t scanned;
	uint32_t *last_block;
	uint8_t *last_node;
	unsigned passes;
	double scan_due, pass_s, retry_s;
	int cache; /* preferred by cache-aware scheduling; -1: none */
	/* Faults since the last pass: by another thread than before and by the same; remote and
	 * local. */
	double faults[2], places[2];
};

struct nm_sim_user_state {
	size_t next; /* next program */
	double due_s, computing_s;
	struct nm_sim_process *running; /* NULL: idle, or done */
	bool done;
};

struct nm_sim_handle {
	uint32_t pid, tid; /* 0: not used */
};

struct nm_sim {
	struct nm_platform platform;
	struct nm_memory_answer answers[64]; /* to queries, until they are fetched */
	bool answered[64];
	const struct nm_sim_machine *machine;
	const struct nm_sim_workload *workload;
	struct nm_sim_options options;
	unsigned nr_nodes, nr_cpus, nr_cores;
	struct nm_rng rng, sampler; /* separate, so that sampling does not change the simulation */
	double now_s;
	uint32_t next_pid;
	struct nm_sim_user_state *users;
	struct nm_sim_process **processes; /* ascending pid */
	size_t nr_processes, processes_capacity;
	struct nm_sim_task **live; /* all threads that have not ended, ascending tid */
	size_t nr_live, live_capacity;
	bool *open_cpus;	      /* CPUs that threads without an affinity may use */
	int *near_node; /* per CPU: node whose memory is local, or is used if there is none */
	unsigned *run_nodes;	      /* nodes with usable CPUs, ascending */
	unsigned nr_run_nodes;
	unsigned *nr_runnable, *nr_core_runnable; /* number of runnable threads */
	double *busy_s;		      /* per CPU */
	uint64_t *node_pages;	      /* per node: pages of 4 KiB in use by processes */
	uint64_t *cache_bytes;	      /* per node: clean page cache */
	double *cache_load;	      /* per last-level cache: lines loaded, in relation */
	double *queue_ns;	      /* waiting time at each controller, then at each link */
	double *flow, *pair_flow, *path_ns, *excess;
	struct nm_sample *samples;
	size_t nr_samples, samples_capacity;
	struct nm_task_event *events;
	size_t nr_events, events_capacity;
	struct nm_source_status status;
	struct nm_sim_handle *handles;
	size_t nr_handles, handles_capacity;
	size_t first_free_handle; /* all below it are in use */
	struct nm_sim_figures figures;
	uint64_t digest;
};

static inline void nm_sim_digest_add(struct nm_sim *sim, uint64_t value)
{
	uint64_t bytes = htole64(value);
	sim->digest = nm_hash_add(sim->digest, &bytes, sizeof(bytes));
}

static inline int nm_sim_node_of(const struct nm_sim *sim, int cpu)
{
	return sim->near_node[cpu];
}

static inline bool nm_sim_is_awake(const struct nm_sim *sim, const struct nm_sim_task *task)
{
	return !task->ended && !task->waits && task->wake_s <= sim->now_s;
}

static inline const struct nm_sim_phase *nm_sim_phase_of(const struct nm_sim_task *task)
{
	return &task->process->program->phases[task->phase];
}

static inline uint64_t nm_sim_ns(double seconds)
{
	return (uint64_t)(seconds * 1e9 + 0.5);
}

static inline uint64_t nm_sim_now_ns(const struct nm_sim *sim)
{
	return nm_sim_ns(NM_SIM_BOOT_S + sim->now_s);
}

static inline size_t nm_sim_block_begin(const struct nm_sim_process *process, unsigned block)
{
	return process->nr_pages * block / process->program->threads;
}

static inline uint64_t nm_sim_page_bytes(const struct nm_sim_process *process)
{
	return (uint64_t)process->program->page_kb * 1024;
}

/* Returns the number of threads that execute a phase, which are the first ones. */
static inline unsigned nm_sim_team(const struct nm_sim_process *process, size_t phase)
{
	unsigned team = process->program->phases[phase].threads, all = process->program->threads;
	return team > 0 && team < all ? team : all;
}

/* ---- life.c: users, processes and threads ---- */

/* Starts programs that are due. Returns 0 or -ENOMEM. */
int nm_sim_begin_programs(struct nm_sim *sim);
/* Ends programs that are complete. */
void nm_sim_end_programs(struct nm_sim *sim);
void nm_sim_process_free(struct nm_sim_process *process);
struct nm_sim_process *nm_sim_find_process(const struct nm_sim *sim, uint32_t pid);
struct nm_sim_task *nm_sim_find_task(const struct nm_sim *sim, uint32_t tid);

/* ---- schedule.c: the scheduler, which considers CPUs but not memory ---- */

void nm_sim_count_runnable(struct nm_sim *sim);
bool nm_sim_may_run(const struct nm_sim *sim, const struct nm_sim_task *task, int cpu);
void nm_sim_place(struct nm_sim *sim, struct nm_sim_task *task);
void nm_sim_move(struct nm_sim *sim, struct nm_sim_task *task, int cpu);
void nm_sim_schedule(struct nm_sim *sim);
/* Moves a runnable thread to a CPU that it may use. */
void nm_sim_follow_mask(struct nm_sim *sim, struct nm_sim_task *task);
/* Returns an unused CPU of the node that the task may use, if possible of an idle core; or -1. */
int nm_sim_idle_in(const struct nm_sim *sim, const struct nm_sim_task *task, int node);

/* ---- memory.c: location of pages ---- */

/* Threads write the pages up to this share of each block. */
void nm_sim_touch_pages(struct nm_sim *sim, struct nm_sim_process *process, double share);
void nm_sim_release_pages(struct nm_sim *sim, struct nm_sim_process *process);
void nm_sim_set_home(struct nm_sim *sim, struct nm_sim_process *process, size_t page,
		     unsigned node);
/* Counts a page that returns, before it is moved. */
void nm_sim_note_page(struct nm_sim *sim, struct nm_sim_process *process, size_t page,
		      unsigned node);
/* Notes that a running task is about to be moved to the CPUs of its affinity, if that is narrow. */
void nm_sim_note_move(struct nm_sim *sim, struct nm_sim_task *task);
/* Counts the tasks that are still where they were moved. */
void nm_sim_follow_moves(struct nm_sim *sim);
uint64_t nm_sim_free_bytes(const struct nm_sim *sim, unsigned node);
/* Reclaims page cache for a page that is migrated to the node. Returns false if the node is full
 * without any. */
bool nm_sim_make_room(struct nm_sim *sim, unsigned node, uint64_t bytes);
/* Returns whether kernel.numa_balancing may move pages to the node: it keeps the high watermark
 * free, and reclaims nothing. */
bool nm_sim_may_balance_to(const struct nm_sim *sim, unsigned node, uint64_t bytes);
/* Reclaims page cache at once (kswapd) down to the memory that is kept free, or fills free memory
 * beyond that with at most most_bytes of page cache. */
void nm_sim_settle_cache(struct nm_sim *sim, uint64_t most_bytes);
void nm_sim_mix(const struct nm_sim *sim, struct nm_sim_task *task);
/* Returns a random page that the task accesses. */
size_t nm_sim_draw_page(struct nm_rng *rng, const struct nm_sim_task *task);
/* Returns a random thread that accesses the page. */
struct nm_sim_task *nm_sim_draw_accessor(struct nm_sim *sim, struct nm_sim_process *process,
					 size_t page);

/* Returns the last block that begins at or before the page. */
unsigned nm_sim_block_of(const struct nm_sim_process *process, size_t page);
/* Returns whether the page is in a block next to the task's own, which it accesses. */
bool nm_sim_is_near_block(const struct nm_sim_task *task, size_t page);
/* Returns the node from which the task gets a line of the page if it misses. */
unsigned nm_sim_source_of(const struct nm_sim *sim, const struct nm_sim_task *task, size_t page);

/* ---- cache.c: shared last-level caches, of machines that have them in the model ---- */

/* Adds up what the threads under each cache load; before the first of the functions below. */
void nm_sim_find_pressure(struct nm_sim *sim);
/* Returns the factor of the task's misses by its share of the cache; 1 without caches. */
double nm_sim_capacity_misses(const struct nm_sim *sim, const struct nm_sim_task *task);
/* Returns whether accesses to the block get lines from its owner's cache, not from memory. */
bool nm_sim_is_passed(const struct nm_sim *sim, const struct nm_sim_task *task, unsigned block);
/* Returns whether they are passed, and the owner is under the same cache. */
bool nm_sim_is_hit(const struct nm_sim *sim, const struct nm_sim_task *task, unsigned block);
/* Adds this part of the accesses, which are passed from the block's owner. */
void nm_sim_pass_line(const struct nm_sim *sim, struct nm_sim_task *task, unsigned block,
		      double part);
/* Sets the task's misses, and scales its mix to 1. */
void nm_sim_count_misses(const struct nm_sim *sim, struct nm_sim_task *task);
double nm_sim_hit_ns(const struct nm_sim *sim);

/* ---- choice.c: the papers' kernels ---- */

/* Returns the thread that moves to the CPU of another node: the waiting task, or one that the option
 * prefers of those whose CPUs are as crowded. */
struct nm_sim_task *nm_sim_choose(struct nm_sim *sim, struct nm_sim_task *task, int cpu);

/* ---- gather.c: cache-aware scheduling ---- */

void nm_sim_gather(struct nm_sim *sim);
/* Returns whether the task runs under the cache that its process prefers. */
bool nm_sim_is_gathered(const struct nm_sim *sim, const struct nm_sim_task *task);

/* ---- balancing.c: kernel.numa_balancing ---- */

/* Returns 0 or -ENOMEM. */
int nm_sim_balance_memory(struct nm_sim *sim, double step_s);

/* ---- physics.c: speed of threads ---- */

void nm_sim_work(struct nm_sim *sim, double step_s);
/* Moves threads that have completed a phase to the next one, or ends them; called after their work
 * was sampled. */
void nm_sim_continue_phases(struct nm_sim *sim, double step_s);

/* ---- observe.c: samples ---- */

int nm_sim_observe(struct nm_sim *sim);
/* Without a PMU, only faults of kernel.numa_balancing show accesses. Returns 0 or -ENOMEM. */
int nm_sim_sample_fault(struct nm_sim *sim, const struct nm_sim_task *task, size_t page);
int nm_sim_note_event(struct nm_sim *sim, enum nm_task_event_kind kind,
		      const struct nm_sim_task *task);

/* ---- ops.c ---- */

extern const struct nm_platform_ops nm_sim_ops;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Chooses the pages of a process that should be on another node (pages.policy = "exclusivity"):
 * single pages that the table of pages has found, and ranges, for processes with too few samples to
 * decide page by page. Pure.
 */
#ifndef NUMA_MIGRD_PAGE_CHOICE_H
#define NUMA_MIGRD_PAGE_CHOICE_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "policy/judge.h"
#include "observe/memory.h"
#include "observe/regions.h"
#include "numa-migrd/topology.h"

#define NM_PAGE_ACCESSES 1024U /* number of accesses of a process that are kept individually */

/* A recent access: the location of the memory, the size of its page, and whether the thread will
 * stay on its node. */
struct nm_page_access {
	uint64_t address, interval;
	int16_t page_node;
	bool huge, settled;
};

/* The migration of a range, piece by piece. */
struct nm_range_cursor {
	bool active;
	uint64_t start, end, next;
	int target; /* a node, or NM_REGION_EVERYWHERE */
	enum nm_page_reason reason;
	double exclusivity;
	uint64_t page_bytes;
};

/* A page that was refused, or could not be moved. */
struct nm_page_refusal {
	uint64_t address;
	unsigned times; /* consecutive; from NM_PAGE_REFUSED_TIMES on it stays */
};
#define NM_PAGE_REFUSED_TIMES 2U

/* A managed process whose pages may move. */
struct nm_page_process {
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t domain;
	uint16_t owner; /* in the table of pages; 0: its pages may not be moved (any more) */
	bool held;	/* its threads are not placed yet */
	bool waits;	/* for a verdict or a rollback */
	uint64_t until; /* interval before which its pages stay, because its threads moved or pages
			 * were rolled back */
	unsigned nr_rollbacks;		       /* consecutive decisions that were rolled back */
	unsigned nr_threads, nr_moved_threads; /* number of its threads, and of those moved to
						* another node in this interval */
	size_t share; /* number of pages that it may still move by the rule in this interval */
	char comm[NM_COMM_BYTES];
	struct nm_regions *regions; /* NULL: its mappings are not known yet */
	uint64_t mapped;	    /* interval in which they were read */
	struct nm_range *ranges;    /* all mappings that may move, ascending and disjoint */
	size_t nr_ranges;
	struct nm_page_refusal *refusals; /* by ascending address */
	size_t nr_refusals, refusal_capacity;
	bool unreadable; /* reading them failed, and this was logged */
	struct nm_range_cursor cursor;
	struct nm_page_access *seen; /* a ring buffer */
	uint32_t nr_seen;	     /* total since the start */
};

/* Return the process with this index in the column, and that with this PID, or NULL if its pages
 * may not be moved. */
static inline struct nm_page_process *nm_page_process_at(const struct nm_column *processes,
							 size_t index)
{
	return (struct nm_page_process *)processes->cells + index;
}
struct nm_page_process *nm_page_process_of(const struct nm_column *processes, uint32_t pid);

/* The remaining budget of this interval; choosing pages reduces both values. */
struct nm_page_budget {
	size_t pages;
	uint64_t bytes;
	bool whole; /* nothing was used yet: then even a larger page may be moved */
};

/* Takes a page of this size from the budget. Returns false if the budget does not suffice. */
bool nm_page_budget_use(struct nm_page_budget *room, uint64_t bytes);

/* ---- ranges.c: by range ---- */

/* The values on which a choice of ranges depends. */
struct nm_page_input {
	const struct nm_topology *topology;
	const struct nm_config *config;
	const struct nm_memory *memory;
	const struct nm_contention *contention;
	uint64_t interval;
};

/* Pages of one process, chosen for one reason. */
struct nm_page_choices {
	struct nm_page_step *items; /* the caller's, with room for `most` */
	size_t count, most;
	enum nm_page_reason reason;
	double exclusivity;	       /* mean of the exclusivities of their ranges */
	struct nm_range_cursor cursor; /* of the process before the choice */
};

/* Decays the counts of the process's ranges, and splits and merges them. */
void nm_page_ranges_age(struct nm_page_process *process, const struct nm_config *config,
			uint64_t interval_ns);
/* Chooses the next pages of the process's ranges that should be on another node, within the budget:
 * none if it waits. Ranges whose last page was chosen count as placed. The caller sets `items` and
 * `most` of *choices, and its other fields to zero. */
void nm_page_ranges_choose(const struct nm_page_input *input, struct nm_page_process *process,
			   struct nm_page_budget *room, struct nm_page_choices *choices);
/* Restores the state of the process, because the pages chosen could not be submitted. */
void nm_page_ranges_restore(struct nm_page_process *process, const struct nm_page_choices *choices);
/* Notes that the page at this address was not moved: its range is requested again. */
void nm_page_ranges_mark_missed(struct nm_page_process *process, uint64_t address);

/* ---- movable.c: pages that may move, and results ---- */

/* Returns whether the page lies in a mapping that may move, and was not refused. */
bool nm_page_may_move(const struct nm_page_process *process, uint64_t address, uint64_t bytes);
/* Returns whether the page was refused since its mapping last changed. */
bool nm_page_is_refused(const struct nm_page_process *process, uint64_t address);
/* Sets the mappings that may move, and takes the array over. Refusals of pages whose mapping has
 * changed expire. */
void nm_page_set_mappings(struct nm_page_process *process, struct nm_range *ranges, size_t count);
/* Notes the result of a page: a refusal, by the rules or by the kernel; and one that a lack of
 * memory or data has left in a range that is recorded as placed. */
void nm_page_note(struct nm_page_process *process, const struct nm_page_step *step, bool of_range);
/* Counts the result of a page. */
void nm_page_results_add(struct nm_page_results *results, const struct nm_page_step *step);
/* Returns the result for the table of pages; error: that of the batch. */
enum nm_page_outcome nm_page_outcome_of(const struct nm_page_step *step, int error);
/* Returns page_cooldown_s in intervals. */
uint64_t nm_page_cooldown(const struct nm_config *config);
/* A thread of the process was moved to another node: its pages stay until accesses from there are
 * counted. */
void nm_page_threads_moved(struct nm_page_process *process, uint64_t interval);
/* Pages that were moved without gain stay, twice as long after each further rollback. */
void nm_page_judged(struct nm_page_process *process, const struct nm_verdict *verdict,
		    const struct nm_config *config, uint64_t interval);

/* ---- rule.c: page by page ---- */

/* A chosen page of the table of pages. */
struct nm_page_selection {
	uint32_t pid;
	size_t index; /* in nm_memory_wanted() */
	struct nm_page_step page;
};

/* Returns whether the mappings of the process are known, and the page is not in one that may move,
 * or was refused. */
bool nm_page_rule_excludes(const struct nm_column *processes, const struct nm_memory_wanted *one);
/* Chooses pages in the order in which they were found, within the budget, of which each process
 * gets its share. Writes them to ret (room for `count`) in order of process and address. Returns
 * their number. */
size_t nm_page_rule_choose(const struct nm_column *processes, const struct nm_memory_wanted *wanted,
			   size_t count, struct nm_page_budget *room,
			   struct nm_page_selection *ret);
/* Returns the exclusivity of the chosen pages together (kMAF, equation 4); NaN without accesses. */
double nm_page_rule_exclusivity(const struct nm_memory *memory, unsigned nr_nodes,
				const struct nm_memory_wanted *wanted,
				const struct nm_page_selection *found, size_t count);

/* ---- balancing.c: coexistence with automatic NUMA balancing ---- */

enum nm_balancing_mode {
	NM_PAGES_ALONE,	   /* it is off */
	NM_PAGES_YIELDED,  /* it is on, and pages are left to it */
	NM_PAGES_WARNED,   /* it is on, and the daemon moves pages, too */
	NM_PAGES_MANAGED,  /* the daemon turns it off */
	NM_PAGES_REFUSED,  /* the daemon may not turn it off; pages are left to it */
	NM_PAGES_NEEDED,   /* without its faults there would be no samples; pages are left to it */
	NM_PAGES_INJECTED, /* the daemon has turned it on for its faults; pages are left to it */
};

struct nm_balancing_text {
	bool moves_pages;
	const char *name; /* in the status */
	int priority;	  /* of the message, LOG_* */
	const char *message;
};
const struct nm_balancing_text *nm_balancing_text_of(enum nm_balancing_mode mode);

/* Returns the mode, except REFUSED. balancing: kernel.numa_balancing; managing: the daemon has
 * turned it off; samples_otherwise: accesses are sampled without its faults. */
enum nm_balancing_mode nm_balancing_mode_of(const struct nm_config *config, int balancing,
					    bool managing, bool samples_otherwise);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The jobs of a worker for the mover: read the mappings of a process, move given pages of it, and
 * move the pages that are found in ranges of its memory. Each is a slice: after a second it begins
 * no further group of calls, and its answer contains its progress. Nodes are the kernel's numbers.
 * Part of the protocol of worker.h.
 */
#ifndef NUMA_MIGRD_PAGE_JOBS_H
#define NUMA_MIGRD_PAGE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "numa-migrd/base.h"
#include "platform/maps.h"

#define NM_UNITS_MOST 4096U /* also the pages of one call */
#define NM_PAGE_BYTES_MOST ((uint64_t)16 << 30)
#define NM_BASE_BYTES 4096U /* of a base page; units and runs are counted in them */
#define NM_BLOCK_BYTES ((uint64_t)2 << 20) /* of a huge page that is not of the pool */

/* Returns whether the kernel may have pages of this size. Pure. */
static inline bool nm_is_page_size(uint64_t bytes)
{
	return bytes >= NM_BASE_BYTES && bytes <= NM_PAGE_BYTES_MOST && (bytes & (bytes - 1)) == 0;
}

/* ---- mappings ---- */

/* A mapping of the process. */
struct nm_mapping {
	uint64_t start, end;
	uint64_t page_bytes; /* 4 KiB unless `pool` */
	uint64_t resident;   /* pages in memory */
	int32_t only_on;     /* the node that held all of them; -1: none */
	uint8_t rule;	     /* enum nm_maps_rule, by nm_mapped_rule(); MOVES, EMPTY: it may move */
	uint8_t pool;	     /* pages from a pool of huge pages */
	uint16_t zero;
};

#define NM_MAPPINGS_PIECE 2400U
struct nm_mappings_order {
	uint64_t budget_ns; /* no further piece is read after this time */
	uint32_t begin;	    /* from the start; otherwise where the worker has stopped */
	uint8_t move_bound, move_shared; /* the rules */
	uint16_t zero;
};

/* The mappings that follow those of the answers before, ascending and disjoint. */
struct nm_mappings_piece {
	uint32_t count;
	uint32_t complete; /* there are no more */
	struct nm_mapping items[NM_MAPPINGS_PIECE];
};

/* ---- moves ---- */

/* The bytes that may be taken on a node: of all its memory; of that, in blocks of 2 MiB; and from
 * its pool of huge pages of the size that the job moves. */
struct nm_page_room {
	int32_t node;
	uint32_t zero;
	uint64_t memory, huge, pool;
};

#define NM_ROOMS_MOST 16U
#define NM_TRIES_MOST 32U

/* A call of move_pages(2) that moved pages. */
struct nm_page_try {
	uint64_t held_ns;
	uint32_t pages;
	uint32_t blocks; /* they stood for huge pages */
};

enum nm_unit_kind {
	NM_UNIT_BASE,  /* base pages */
	NM_UNIT_BLOCK, /* 2 MiB: a transparent huge page, which moves whole, or base pages */
	NM_UNIT_POOL   /* one page from a pool of huge pages */
};

/* Pages that belong together: those on node `from` (-1: on any) go to `to`. */
struct nm_page_unit {
	uint64_t address;
	uint32_t pages; /* of 4 KiB; a unit of base pages has at most NM_UNIT_PAGES_MOST */
	uint32_t kind;	/* enum nm_unit_kind */
	int32_t from, to;
	/* Of base pages, and of a block that is known to be split: those that are done. */
	uint32_t first;
	uint32_t zero;
};
#define NM_UNIT_PAGES_MOST 512U

struct nm_units_order {
	uint32_t count;
	uint32_t pages_most; /* base pages of one call */
	uint32_t nr_rooms;
	uint32_t zero;
	uint64_t slow_ns;			  /* the job ends with a call that took longer */
	struct nm_page_room rooms[NM_ROOMS_MOST]; /* of each node in the units */
	struct nm_page_unit units[NM_UNITS_MOST];
};
#define NM_UNITS_ORDER_BYTES(count)                                                                \
	(offsetof(struct nm_units_order, units) + (count) * sizeof(struct nm_page_unit))

/* The result of a unit. */
struct nm_unit_outcome {
	int16_t found_on; /* where one of its pages was, or the negative errno for which none is
			     known */
	int16_t error;	  /* for which pages stay that were to move; -ENOSPC: the node is full */
	uint8_t moved;	  /* pages of it have moved */
	uint8_t split;	  /* a block that is not one huge page: its base pages are to move */
	uint8_t done;	  /* otherwise the job ended before the unit did */
	uint8_t alone;	  /* used internally: the first page of a block moved, and has no run yet */
	uint16_t next;	  /* base pages of the unit that are done, if it is not */
};

/* Adjacent base pages that have moved. */
struct nm_moved_run {
	uint64_t address;
	uint32_t pages;
	int16_t was_on, now_on;
};

struct nm_units_moved {
	uint32_t count; /* of outcomes, as in the order */
	uint32_t nr_runs, nr_tries;
	uint32_t zero;
	uint64_t tried_bytes;
	struct nm_page_try tries[NM_TRIES_MOST];
	struct nm_unit_outcome outcomes[NM_UNITS_MOST];
	struct nm_moved_run runs[NM_UNITS_MOST];
};

/* Ranges of whole pages of one size, ascending, with the number of pages in memory (0: unknown). */
#define NM_RANGES_MOST 256U
struct nm_page_range {
	uint64_t start, end, resident;
};

struct nm_ranges_order {
	uint32_t count;
	uint32_t pool; /* pages from a pool of huge pages */
	uint64_t page_bytes;
	uint32_t pages_most; /* of the call */
	uint32_t zero;
	uint64_t bytes_most;	  /* a single page may be larger */
	uint64_t slow_ns;	  /* no second try if the first one took longer */
	uint64_t search_ns;	  /* the worker searches no further piece after this time */
	struct nm_page_room room; /* of the node to which they go */
	uint64_t stays[NM_NODE_NUMBERS / 64]; /* nodes whose pages stay, as bits */
	struct nm_page_range ranges[NM_RANGES_MOST];
};
#define NM_RANGES_ORDER_BYTES(count)                                                               \
	(offsetof(struct nm_ranges_order, ranges) + (count) * sizeof(struct nm_page_range))

struct nm_ranges_moved {
	uint64_t next;	 /* everything below is done */
	uint64_t pages;	 /* moved */
	uint64_t stayed; /* pages that the kernel did not move, or for which the pool is used up */
	uint32_t full;	 /* the node lacked memory for some */
	uint32_t nr_tries;
	uint64_t tried_bytes;
	struct nm_page_try tries[2];
};

/* ---- performed by the worker, and by the machines of tests ---- */

/* move_pages(2) without nodes, and with them, which return what the kernel does, or a negative
 * errno; and whether there is time for another one (NULL: always). */
struct nm_page_calls {
	int (*where)(void *context, unsigned count, const uint64_t *addresses, int *ret_statuses);
	int (*move)(void *context, unsigned count, const uint64_t *addresses, const int *nodes,
		    int *statuses, uint64_t *ret_held_ns);
	bool (*has_time)(void *context);
	void *context;
};

static inline bool nm_page_calls_have_time(const struct nm_page_calls *calls)
{
	return !calls->has_time || calls->has_time(calls->context);
}

/* Takes bytes of a room. Returns false if they are not there. */
static inline bool nm_page_take_room(uint64_t *room, uint64_t bytes)
{
	if (*room < bytes)
		return false;
	*room -= bytes;
	return true;
}

/* Pages to move by one or two calls, each to its node. */
struct nm_page_round {
	unsigned count;
	const uint64_t *addresses;
	const int *nodes;
	uint64_t slow_ns; /* no second try if the first one took longer */
};

/*
 * Moves the pages, queries those for which the kernel reported no status, and tries once more, in
 * the opposite order, those that did not move and still may. ret_statuses[i] is the node of the
 * page, or the negative errno for which it stays; tries with pages 0 were not made. Returns 0, or
 * the negative errno of the first try if it concerns the process, in which case only the tries are
 * valid.
 */
int nm_page_round(const struct nm_page_round *round, const struct nm_page_calls *calls,
		  struct nm_page_try *ret_tries, int *ret_statuses);

/*
 * Moves units, first as wholes; then, in a block that is not one huge page, and in a unit of
 * several base pages, each base page that is on its node. The first unit always advances. Returns
 * 0, or the negative errno for which nothing was moved; the tries are valid in any case.
 */
int nm_units_move(const struct nm_units_order *order, const struct nm_page_calls *calls,
		  struct nm_units_moved *ret);

/*
 * Finds pages in memory on nodes that are not to stay, and moves them by one round. A block of
 * 2 MiB needs room for all of its pages, because it may be one huge page, which moves with the
 * first of them. Returns as nm_units_move().
 */
int nm_ranges_move(const struct nm_ranges_order *order, const struct nm_page_calls *calls,
		   struct nm_ranges_moved *ret);

/* Adds the mappings whose description is complete, from *next on, which it advances, by these
 * rules. Returns whether there may be more. */
bool nm_mappings_take(const struct nm_maps *maps, const struct nm_maps_rules *rules, size_t *next,
		      struct nm_mappings_piece *ret);

/* ---- what the other side has sent ---- */

bool nm_units_order_is_valid(const struct nm_units_order *order);
bool nm_ranges_order_is_valid(const struct nm_ranges_order *order);
/* Returns whether it may be the answer to the order. */
bool nm_ranges_moved_is_valid(const struct nm_ranges_moved *moved,
			      const struct nm_ranges_order *order);
/* `after`: the end of the last mapping of the answers before. */
bool nm_mappings_piece_is_valid(const struct nm_mappings_piece *piece, uint64_t after);

/* Moves the runs behind the outcomes. Returns the size of the message. */
size_t nm_units_moved_pack(struct nm_units_moved *moved);
/* Moves the runs of a message of this size back. Returns 0, or -EPROTO if it is no answer to the
 * order: also if it contains more than that, or pages outside. */
int nm_units_moved_unpack(struct nm_units_moved *moved, size_t size,
			  const struct nm_units_order *order);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The mappings of some processes, read in turns. For each line of numa_maps (proc(5)) the kernel
 * walks the pages of a mapping while it holds the memory map lock of the process; therefore a turn
 * has a budget, and turns have pauses.
 */
#ifndef NM_MOVER_MAPPINGS_CACHE_H
#define NM_MOVER_MAPPINGS_CACHE_H

#include "numa-migrd/platform.h"
#include "observe/regions.h"
#include "platform/page_jobs.h"

/* Limits on the number of processes, and on the memory for their mappings. A domain may have one
 * more process, and read more, while it has less than is left free (nm_quota_permits()). Another
 * one of its processes waits until the mappings read for others have been delivered. */
#define NM_CACHE_MOST 512U		       /* shared: quota */
#define NM_CACHE_BYTES_MOST ((size_t)64 << 20) /* shared: quota */
/* Mappings are read again, on request, after NM_CACHE_AGE_NS, or after 100 times the time that
 * reading took, if that is longer. They are valid for twice that time, but for at most
 * NM_CACHE_HOLDS_NS. After that, nothing is known of the process until it is time to read its
 * mappings again. */
#define NM_CACHE_AGE_NS (5 * NM_NSEC_PER_SEC)
#define NM_CACHE_HOLDS_NS (30 * NM_NSEC_PER_SEC)
/* Used instead of NM_CACHE_AGE_NS if a mapping was requested that was missing. */
#define NM_CACHE_SOON_NS NM_NSEC_PER_SEC
/* Pause between two turns of reading, as a multiple of the time that the first one took. */
#define NM_CACHE_TURN_SHARE 3U
/* The pause if the kernel or a worker was not available for reading. */
#define NM_CACHE_REFUSED_NS (100 * NM_NSEC_PER_MSEC)

struct nm_mappings {
	struct nm_mapping *items; /* owned; ascending and disjoint */
	size_t count, capacity;
	uint64_t cost_ns; /* of reading them */
};

struct nm_cached_mappings {
	uint32_t pid; /* 0: unused */
	uint64_t start_ticks, domain;
	bool dropped;
	bool asked, had; /* since it was read: requested; delivered */
	uint64_t asked_ns;
	uint64_t wanted_ns; /* start of waiting to be read for the first time */
	struct nm_mappings *ready, *reading;
	uint64_t ready_ns; /* when the last reading ended */
	uint64_t again_ns; /* when it is to be read again; 0: never read */
	int error;	   /* of the last reading, which is not repeated before again_ns */
	uint64_t held_ns;  /* time that the kernel took in the last turn */
};

struct nm_mappings_cache {
	struct nm_cached_mappings entries[NM_CACHE_MOST];
	size_t used; /* all entries that are in use are below this index */
	size_t bytes_most;
	uint64_t turn_ns; /* earliest time of the next turn */
	uint64_t reads;
	/* Of the turn in progress: */
	struct nm_mappings_order order;
	struct nm_mappings_piece piece;
};

void nm_cache_init(struct nm_mappings_cache *cache);
void nm_cache_clear(struct nm_mappings_cache *cache);

/*
 * Returns the entry of the process, which is created if necessary. If its domain may have no other
 * entry, the new one replaces one that has been delivered since it was read, or that has expired:
 * of these, the one requested longest ago, one of its own domain if possible, and never `keep` (the
 * one that the step in progress uses; may be NULL). Returns NULL if there is none.
 */
struct nm_cached_mappings *nm_cache_ask(struct nm_mappings_cache *cache, uint32_t pid,
					uint64_t start_ticks, uint64_t domain, uint64_t now_ns,
					const struct nm_cached_mappings *keep);

/* Marks the entry as dropped; the next turn discards its contents. */
void nm_cache_drop(struct nm_mappings_cache *cache, uint32_t pid);

/* Returns whether the mappings are still valid. */
bool nm_cache_holds(const struct nm_cached_mappings *entry, uint64_t now_ns);

/* Returns whether the process was read, and it is too early to read it again. */
bool nm_cache_rests(const struct nm_cached_mappings *entry, uint64_t now_ns);

/* Notes that a requested mapping is missing from the entry. */
void nm_cache_lacks(struct nm_cached_mappings *entry);

/*
 * Returns an entry that is to be read, or NULL: the one whose reading has begun, or else one of the
 * domain that was read longest ago; of these, the one that has waited longest. Clears the entries
 * that have expired without another request.
 */
struct nm_cached_mappings *nm_cache_unread(struct nm_mappings_cache *cache, uint64_t now_ns);

/* Returns whether a turn of reading the entry may begin: a worker reads one process at a time. */
bool nm_cache_may_begin(const struct nm_mappings_cache *cache,
			const struct nm_cached_mappings *entry);

/* Returns the memory in use. */
size_t nm_cache_bytes(const struct nm_mappings_cache *cache);

/* Frees memory for reading `entry`; returns false if this is not possible. */
bool nm_cache_has_room(struct nm_mappings_cache *cache, uint64_t now_ns,
		       const struct nm_cached_mappings *entry);

struct nm_cache_limits {
	uint64_t budget_ns; /* for one turn */
	uint64_t rss_bytes; /* a process with more memory is not read; 0: no limit */
	bool move_bound, move_shared;
};

/*
 * Begins a turn. Returns NM_CALL_BEGUN or the result of the job; -ESRCH if the process has exited
 * or its number was reused, -EFBIG if it has too much memory. Any result is for nm_cache_end().
 */
int nm_cache_begin(struct nm_mappings_cache *cache, struct nm_cached_mappings *entry,
		   struct nm_platform *platform, const struct nm_cache_limits *limits);
/* Takes the answer of the turn, whose result is `r`. Returns 0 if the reading is complete, -EAGAIN
 * if it has to continue later, or a negative errno; to be published. */
int nm_cache_end(struct nm_mappings_cache *cache, struct nm_cached_mappings *entry, int r);

/* Publishes the result of nm_cache_end(). */
void nm_cache_publish(struct nm_mappings_cache *cache, struct nm_cached_mappings *entry, int result,
		      uint64_t now_ns);

/*
 * Opens /proc/PID of the process with this start time. Returns a descriptor, which the caller
 * closes, -ESRCH, or another negative errno. If the first thread has exited before the others, it
 * opens /proc/PID/task/TID of another thread, because the memory of the process is not accessible
 * by the number of an exited thread. Stores the number of the thread, and the thread's own start
 * time.
 */
int nm_cache_open(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
		  uint32_t *ret_tid, uint64_t *ret_ticks);

/* Returns the mapping that contains all of [address, address + bytes), or NULL. The entry holds. */
const struct nm_mapping *nm_cache_find(const struct nm_cached_mappings *entry, uint64_t address,
				       uint64_t bytes);
/* Returns the ranges whose pages may move; adjacent ones with pages of one size are merged. The
 * caller frees the array. */
void nm_cache_ranges(const struct nm_cached_mappings *entry, struct nm_range **ret,
		     size_t *ret_count);

#endif

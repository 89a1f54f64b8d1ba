/* SPDX-License-Identifier: MIT */
/* Basic helpers for all stages: cleanup attributes, ownership transfer, integer functions.
 * Everything here is pure. Errors are negative errno values throughout the project. */
#ifndef NUMA_MIGRD_BASE_H
#define NUMA_MIGRD_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define NM_NSEC_PER_SEC 1000000000ULL
#define NM_NSEC_PER_MSEC 1000000ULL

/* Runs `destructor(&variable)` when the variable leaves its scope. */
#define nm_auto(destructor) __attribute__((cleanup(destructor)))

/* Frees the object to which the variable points when it leaves its scope. NULL is allowed. */
static inline void nm_freep(void *pointer)
{
	free(*(void **)pointer);
}
#define nm_autofree nm_auto(nm_freep)

/* Defines `void name##p(type **)` for use with nm_auto(), from a destructor that takes NULL. */
#define NM_DEFINE_CLEANUP(type, destructor)                                                        \
	static inline void destructor##p(type **object)                                            \
	{                                                                                          \
		destructor(*object);                                                               \
	}                                                                                          \
	struct nm_require_semicolon

/* Transfers ownership: evaluates to the pointer and sets the variable to NULL. */
#define NM_TAKE(pointer)                                                                           \
	({                                                                                         \
		__typeof__(pointer) taken_ = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		taken_;                                                                            \
	})

#define NM_ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define NM_CONTAINER_OF(member_pointer, type, member)                                              \
	((type *)(void *)((char *)(member_pointer)-offsetof(type, member)))

/* Evaluates to -1, 0 or 1: the order of two values, which are evaluated twice. For qsort(); further
 * criteria follow after ?:. */
#define NM_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Orders numbers, or structures that begin with one, such as a PID. For qsort() and bsearch(). */
static inline int nm_compare_u32(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;
	return NM_COMPARE(*a, *b);
}

/* Returns the word or ending for this number of things: nm_plural(n, "y", "ies"). For messages. */
static inline const char *nm_plural(uint64_t count, const char *one, const char *several)
{
	return count == 1 ? one : several;
}

/*
 * Returns the pointer that malloc(3), one of its relatives or hwloc_bitmap_alloc() returned. If it
 * is NULL, ends the program by abort(3), and ExecStopPost= of the unit restores all affinities, as
 * after a kill at any other moment. Not for sizes from outside, which are bounded first. May be
 * called from any stage.
 */
void *nm_must(void *pointer) __attribute__((returns_nonnull));

/* The same for a result of hwloc_bitmap_set() and its relatives, which fail only without memory. */
static inline void nm_must_do(int result)
{
	if (result < 0)
		(void)nm_must(NULL);
}

static inline void nm_reserve(void **array, size_t *capacity, size_t used, size_t element_size)
{
	if (used < *capacity)
		return;
	size_t wanted = *capacity ? *capacity * 2 : 16;
	*array = nm_must(reallocarray(*array, wanted, element_size));
	*capacity = wanted;
}

/* Makes room for one more element in a growing array: doubles the capacity when `used` has reached
 * it. May be called from any stage. */
#define NM_RESERVE(array, capacity, used)                                                          \
	nm_reserve((void **)&(array), &(capacity), used, sizeof(*(array)))

/* ---- clock ---- */

/* The clocks for timeouts and for reports. Decisions get the time as an argument instead. */

/* Returns CLOCK_MONOTONIC (clock_gettime(2)), which cannot fail. May be called from any thread. */
static inline uint64_t nm_clock_ns(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NM_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Returns CLOCK_REALTIME in microseconds. */
static inline uint64_t nm_clock_realtime_usec(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- hash ---- */

/* FNV-1a, 64 bits (draft-eastlake-fnv), for tables and digests. Not resistant to an adversary. */

/* The hash of zero bytes; every computation begins with it. */
#define NM_HASH_START UINT64_C(0xcbf29ce484222325)

/* Returns the hash extended by these bytes. May be called from any stage. */
uint64_t nm_hash_add(uint64_t hash, const void *bytes, size_t length);

/* ---- random numbers ---- */

/*
 * The only source of randomness: a seedable xoshiro256** generator (Blackman and Vigna, "Scrambled
 * linear pseudorandom number generators", 2021). A recorded seed reproduces the same decisions in
 * any build.
 */

struct nm_rng {
	uint64_t state[4];
};

/* Fills the state from one 64-bit seed (with splitmix64, so that 0 is a valid seed). */
void nm_rng_seed(struct nm_rng *rng, uint64_t seed);

/* Returns 64 uniform bits and advances the generator. */
uint64_t nm_rng_next(struct nm_rng *rng);

/* Returns a uniform value in [0, 1) with a resolution of 53 bits. */
double nm_rng_unit(struct nm_rng *rng);

/* Returns a uniform value in [0, bound), without modulo bias; bound must not be 0. */
uint64_t nm_rng_below(struct nm_rng *rng, uint64_t bound);

/* ---- escaping ---- */

/* All text from outside (command names, unit names, cgroup paths) passes through this function
 * before it enters the journal, the bus, a terminal or a file. */

/*
 * Writes `text` (length bytes, which may include NULs and arbitrary bytes) to `out` as printable,
 * valid UTF-8 on one line. Valid printable UTF-8 is copied; all other bytes (control characters,
 * C1, DEL, backslash, bidi controls, line separators, invalid bytes) become \xNN each. Output that
 * does not fit is cut at a whole character and ends in "…". `out` is always NUL-terminated
 * (out_size >= 4). Returns its length.
 */
size_t nm_escape(char *out, size_t out_size, const char *text, size_t length);

/*
 * Decodes the well-formed UTF-8 sequence at the start of text (length bytes; Unicode 15, table
 * 3-7). Returns its size, 1 to 4, and its code point; or 0 with *ret_code unchanged if there is
 * none.
 */
size_t nm_utf8_decode(const char *text, size_t length, uint32_t *ret_code);

/* Returns whether a code point is a visible character: it does not control a terminal, and does not
 * reorder or hide text. */
bool nm_is_printable(uint32_t code);

/* ---- map of thread ids ---- */

/*
 * Maps thread ids to 32-bit values. It is a two-level array instead of a hash table: thread ids are
 * small dense integers (at most 2^22, PID_MAX_LIMIT in proc(5)), so that a lookup takes two loads
 * and no program can choose ids that collide. A leaf of 1024 ids takes 4 KiB and is freed with the
 * last of them.
 */

#define NM_TIDMAP_LEAF_BITS 10
#define NM_TIDMAP_LEAVES (1U << (22 - NM_TIDMAP_LEAF_BITS))
#define NM_TIDMAP_NONE UINT32_MAX

struct nm_tidmap {
	uint32_t **leaves;  /* each entry is value + 1; 0: absent */
	uint32_t nr_leaves; /* enough for the ids seen, which are below 2^15 on most machines */
};

struct nm_tidmap *nm_tidmap_new(void);
void nm_tidmap_free(struct nm_tidmap *map);
NM_DEFINE_CLEANUP(struct nm_tidmap, nm_tidmap_free);

/* Returns the value of tid, or NM_TIDMAP_NONE, also for ids out of range. */
static inline uint32_t nm_tidmap_get(const struct nm_tidmap *map, uint32_t tid)
{
	uint32_t leaf = tid >> NM_TIDMAP_LEAF_BITS;
	if (leaf >= map->nr_leaves || !map->leaves[leaf])
		return NM_TIDMAP_NONE;
	return map->leaves[leaf][tid & ((1U << NM_TIDMAP_LEAF_BITS) - 1)] - 1U;
}

/* Returns the lowest id in the map that is at least `from`, or NM_TIDMAP_NONE. */
uint32_t nm_tidmap_next(const struct nm_tidmap *map, uint32_t from);

/* Sets the value of tid (not NM_TIDMAP_NONE). Returns 0 or -ERANGE (tid too large). */
int nm_tidmap_set(struct nm_tidmap *map, uint32_t tid, uint32_t value);

/* Removes tid, and frees its leaf if no other id uses it. Unknown ids are ignored. */
void nm_tidmap_remove(struct nm_tidmap *map, uint32_t tid);

/* ---- domains ---- */

/*
 * Quotas of limited resources: workers, queries, batches of pages, lists. The key is a domain: a
 * top-level cgroup, which is one service, one container, or all processes of a user's sessions.
 * Users within it are not distinguished, because the IDs of a user namespace are free. Pure.
 */

/*
 * Returns the domain of a process with this path in the unified hierarchy: a hash of the path of
 * its top-level cgroup. That ends at the first component that is neither a slice (systemd.slice(5))
 * nor the common parent of containers or of jobs, or at user-UID.slice: a user can create any
 * number of cgroups below these, but none beside them. A path of NULL or "/" is unknown; each user
 * is then a domain.
 *
 * contains_only returns whether a cgroup belongs to root and has no processes of its own, but
 * children with controllers, so that it is such a parent; nm_domain_of() knows only names, for
 * processes whose machine cannot be read.
 */
typedef bool (*nm_domain_fn)(void *context, const char *cgroup);
uint64_t nm_domain_in(uint32_t uid, const char *cgroup, nm_domain_fn contains_only, void *context);
uint64_t nm_domain_of(uint32_t uid, const char *cgroup);

/*
 * Limits of which several modules know the number. Each names its rule: see tests/check-limits.
 */
#define NM_STUCK_WORKERS_MOST 8U   /* shared: quota; abandoned and not yet exited */
#define NM_QUERIES_MOST 256U	   /* shared: quota; about memory, unanswered or not fetched */
#define NM_PROGRAM_QUERIES_MOST 8U /* shared: quota */
#define NM_BATCHES_MOST 64U	   /* shared: quota; of pages, with the mover */
#define NM_RELEASED_MOST 4096U	   /* shared: quota; threads and processes no longer managed */
#define NM_EXAMINATIONS_MOST 256U  /* shared: quota; pending ones of young processes */

/*
 * The parts of a limited resource that domains hold (places in a list), or owe until they are
 * repaid (time, bytes, entries). One rule: a domain may take one more if it holds less than is left
 * free. Thus a domain gets at most 50 %, even without others, and each further one 50 % of the
 * rest: however many domains work together, something is left for the next one.
 *
 * If a resource must not be left idle (the time of a worker), nothing is refused, but the domain
 * that owes least comes first.
 */
#define NM_QUOTA_DOMAINS 64U /* shared: newest */
struct nm_quota {
	double limit; /* of all domains together, in the unit of the user; none owes more */
	double used;  /* by all of them */
	struct nm_quota_owed {
		uint64_t domain;
		double amount;	  /* 0: none */
	} owed[NM_QUOTA_DOMAINS]; /* beyond these, a new domain replaces the one that owes least */
};

/* Returns what the domain holds or owes. */
double nm_quota_of(const struct nm_quota *quota, uint64_t domain);

/* Returns true if the domain may take one more: the rule. */
bool nm_quota_permits(const struct nm_quota *quota, uint64_t domain);

/* Adds to what the domain owes, up to the limit. */
void nm_quota_add(struct nm_quota *quota, uint64_t domain, double amount);

/* Counts what `holder` holds, before `domain` asks. Others are only part of `used`, so that any
 * number of them can hold something. */
void nm_quota_count(struct nm_quota *quota, uint64_t domain, uint64_t holder, uint64_t amount);

/* Reduces what each domain owes. */
void nm_quota_repay(struct nm_quota *quota, double amount);

/* Reduces what all domains owe together, each in proportion to what it owes. */
void nm_quota_repay_together(struct nm_quota *quota, double amount);

#endif

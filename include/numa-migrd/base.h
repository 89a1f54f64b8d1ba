/* SPDX-License-Identifier: MIT */
/* Basic helpers for all stages: cleanup attributes, ownership transfer, integer functions.
 * Everything here is pure. Errors are negative errno values throughout the project. */
#ifndef NUMA_MIGRD_BASE_H
#define NUMA_MIGRD_BASE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

/* Evaluates to -1, 0 or 1: the order of two values, which are evaluated twice. For qsort(). */
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

/* A counter of references in addition to the first; initially {0}. May be used from any thread. */
struct nm_references {
	atomic_uint more;
};

static inline void nm_references_add(struct nm_references *references)
{
	atomic_fetch_add(&references->more, 1);
}

/*
 * Drops one reference. Returns true if it was the last, in which case the caller frees the object.
 */
static inline bool nm_references_drop(struct nm_references *references)
{
	return atomic_fetch_sub(&references->more, 1) == 0;
}

/* Makes room for one more element in a growing array: doubles *capacity when `used` has reached it.
 * Returns 0, or -ENOMEM with the array unchanged. May be called from any stage. */
static inline int nm_reserve(void **array, size_t *capacity, size_t used, size_t element_size)
{
	if (used < *capacity)
		return 0;
	size_t wanted = *capacity ? *capacity * 2 : 16;
	void *grown = reallocarray(*array, wanted, element_size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*capacity = wanted;
	return 0;
}

#endif

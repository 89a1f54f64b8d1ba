/* SPDX-License-Identifier: MIT */
/*
 * A platform that passes every call of the main loop on to another platform and reports the result,
 * for replay. Sampling is not reported: struct nm_source and the mover use the other platform
 * directly.
 */
#ifndef NUMA_MIGRD_TAP_H
#define NUMA_MIGRD_TAP_H

#include "numa-migrd/platform.h"
#include "numa-migrd/recording.h"

/* `answer` is valid during the call. Its path is relative to the root, regardless of the directory
 * passed. */
typedef void (*nm_answer_fn)(void *context, const struct nm_recorded_answer *answer);

/* Creates the platform. `machine` must outlive it, and its owner keeps it. Returns 0 or -ENOMEM.
 * Called by the daemon while recording. */
int nm_tap_new(struct nm_platform *machine, nm_answer_fn tell, void *context,
	       struct nm_platform **ret);

/* Convert a struct nm_owner to and from the bytes of an answer. */
#define NM_ANSWER_OWNER_BYTES 5U
void nm_answer_put_owner(const struct nm_owner *owner, uint8_t ret[NM_ANSWER_OWNER_BYTES]);
void nm_answer_get_owner(const uint8_t bytes[NM_ANSWER_OWNER_BYTES], struct nm_owner *ret);

struct nm_bytes;

/*
 * Converts the answer to a memory query to bytes. The answer is truncated if an allocation fails.
 */
void nm_memory_answer_put(const struct nm_memory_answer *answer, struct nm_bytes *bytes);
/* Converts bytes to an answer, which the caller clears. Returns 0, -EBADMSG or -ENOMEM. */
int nm_memory_answer_get(const uint8_t *bytes, size_t length, struct nm_memory_answer *ret);

/* Paths of open directories, by descriptor. */
struct nm_paths {
	char **items;
	size_t count;
};
/* Returns `path` below a directory as a path from the root, which the caller frees. NULL: out of
 * memory, or the directory was not opened through this object. */
char *nm_paths_join(const struct nm_paths *paths, int directory, const char *path);
/* Stores a path, which it takes over. Returns 0, or -ENOMEM, in which case the path was freed. */
int nm_paths_set(struct nm_paths *paths, int fd, char *path);
void nm_paths_clear(struct nm_paths *paths);

#endif

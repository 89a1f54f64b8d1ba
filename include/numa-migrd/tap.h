/* SPDX-License-Identifier: MIT */
/*
 * A platform that passes every call of the loop on to another one and tells what came of it: what a
 * replay will answer. What samples is not told: struct nm_source and the mover use the other one.
 */
#ifndef NUMA_MIGRD_TAP_H
#define NUMA_MIGRD_TAP_H

#include "numa-migrd/platform.h"
#include "numa-migrd/recording.h"

/* `answer` is valid during the call; its path is from the root, whatever directory was named. */
typedef void (*nm_answer_fn)(void *context, const struct nm_recorded_answer *answer);

/* The machine must outlive it, and stays its owner's. -ENOMEM. Daemon, while recording. */
int nm_tap_new(struct nm_platform *machine, nm_answer_fn tell, void *context,
	       struct nm_platform **ret);

/* struct nm_owner as an answer's bytes. */
#define NM_ANSWER_OWNER_BYTES 5U
void nm_answer_put_owner(const struct nm_owner *owner, uint8_t ret[NM_ANSWER_OWNER_BYTES]);
void nm_answer_get_owner(const uint8_t bytes[NM_ANSWER_OWNER_BYTES], struct nm_owner *ret);

struct nm_bytes;

/* What was answered to a question, likewise; `bytes` without memory: as much as there was. */
void nm_memory_answer_put(const struct nm_memory_answer *answer, struct nm_bytes *bytes);
/* -EBADMSG, -ENOMEM; the caller clears. */
int nm_memory_answer_get(const uint8_t *bytes, size_t length, struct nm_memory_answer *ret);

/* Paths of open directories, by descriptor. */
struct nm_paths {
	char **items;
	size_t count;
};
/* What `path` below a directory is from the root; the caller frees. NULL: no memory, or a directory
 * that was not opened. */
char *nm_paths_join(const struct nm_paths *paths, int directory, const char *path);
/* Takes the path over; -ENOMEM (freed). */
int nm_paths_set(struct nm_paths *paths, int fd, char *path);
void nm_paths_clear(struct nm_paths *paths);

#endif

/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef NM_STEER_TREE_H
#define NM_STEER_TREE_H

#include "numa-migrd/steer.h"

#define NM_STEER_ATTRIBUTE_BYTES 64

struct nm_steer_directory {
	char *path;				 /* raw, as in /proc/PID/cgroup */
	int descriptor;				 /* of its watch; negative: none */
	bool known;				 /* what it says is */
	bool roots;				 /* root's, and nobody else may write to it */
	struct nm_steering said;		 /* of which only what counts */
	char text[NM_STEER_ATTRIBUTE_BYTES * 4]; /* its attribute, escaped */
	uint32_t told;				 /* bits 1 << trouble */
	uint64_t asked_ns;
};

struct nm_steer {
	struct nm_platform *platform;
	struct nm_steer_ops ops;
	const char *base;
	enum nm_attribute attribute;
	enum nm_thread_policy policy;
	int watch;				 /* negative errno: none */
	struct nm_steer_directory **directories; /* in order of their paths */
	size_t count, capacity;
	void *by_descriptor; /* of those under watch (tsearch(3)) */
	uint32_t told;	     /* what is told once at all */
	unsigned others_told;
	uint64_t others_since_ns; /* when the last count of those began */
	struct nm_steer_counts counts;
};

/* ---- directory.c ---- */

/* What is told once at all. */
void nm_steer_tell(struct nm_steer *steer, const struct nm_steer_news *news);
void nm_steer_tell_of(struct nm_steer *steer, struct nm_steer_directory *directory,
		      enum nm_steer_trouble trouble);
void nm_steer_tell_unwatched(struct nm_steer *steer, const char *path, int error);

/* Reads what it says, from now on under watch if so wanted. A group that is gone, or closed to us,
 * says nothing. 0, or -errno: it cannot be told now, and what was known of it stays. */
int nm_steer_read(struct nm_steer *steer, struct nm_steer_directory *directory, bool watched);

/* ---- tree.c ---- */

/* NULL where it is not known. */
struct nm_steer_directory *nm_steer_find(const struct nm_steer *steer, const char *path);
/* NULL: none has this one. */
struct nm_steer_directory *nm_steer_find_watched(const struct nm_steer *steer, int descriptor);
/* It is under watch by this descriptor from now on; negative: by none, and returned. -ENOMEM. */
int nm_steer_watched(struct nm_steer *steer, struct nm_steer_directory *directory, int descriptor);
/* Ends its watch and frees it. */
void nm_steer_drop(struct nm_steer *steer, struct nm_steer_directory *directory);

#endif

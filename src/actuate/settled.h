/* SPDX-License-Identifier: MIT */
/*
 * Threads whose affinity was restored, by number and start: what they carry from then on is their
 * owner's, whatever it looks like. For those that are not remembered as leases are: 16 bytes each,
 * so many at most, and of these a share for each user.
 */
#ifndef NM_ACTUATE_SETTLED_H
#define NM_ACTUATE_SETTLED_H

#include "numa-migrd/platform.h"
#include "numa-migrd/tidmap.h"

/* How many each user has of something. */
struct nm_shares {
	struct nm_share *shares;
	size_t count, capacity;
};

/* One more for the user. 0, -ENOSPC (he has `most`) or -ENOMEM. */
int nm_shares_take(struct nm_shares *shares, uint32_t uid, uint32_t most);
void nm_shares_release(struct nm_shares *shares, uint32_t uid);
void nm_shares_clear(struct nm_shares *shares);

#define NM_SETTLED_MOST 65536U
#define NM_SETTLED_SHARE (NM_SETTLED_MOST / 4)

struct nm_settled_thread {
	uint32_t tid, uid;
	uint64_t start_ticks : 48;
	uint64_t round : 16; /* of noting it; the rest of it is of no interest */
};

struct nm_settled {
	struct nm_settled_thread *threads;
	size_t count, capacity;
	struct nm_tidmap *by_tid;
	struct nm_shares shares;
	bool crowded; /* somebody could not be noted */
};

int nm_settled_new(struct nm_settled **ret);
void nm_settled_free(struct nm_settled *settled);

/* In place of an earlier thread of the number. 0, -ENOSPC or -ENOMEM. */
int nm_settled_add(struct nm_settled *settled, uint32_t uid, uint32_t tid, uint64_t start_ticks,
		   uint64_t round);
void nm_settled_remove(struct nm_settled *settled, uint32_t tid, uint64_t start_ticks);
bool nm_settled_has(const struct nm_settled *settled, uint32_t tid, uint64_t start_ticks);

/* Forgets those noted before `round` that started before `since_ticks`; where it is crowded, those
 * that have ended, too. */
void nm_settled_forget(struct nm_settled *settled, struct nm_platform *platform, uint64_t round,
		       uint64_t since_ticks);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Threads whose affinity was restored, by number and start: what they carry from then on is their
 * owner's, whatever it looks like. For those that are not remembered as leases are: 16 bytes each,
 * so many at most, and of these a share for each domain.
 */
#ifndef NM_ACTUATE_SETTLED_H
#define NM_ACTUATE_SETTLED_H

#include "numa-migrd/platform.h"
#include "numa-migrd/tenant.h"
#include "numa-migrd/tidmap.h"

/* How many each user, or domain, has of something. */
struct nm_shares {
	struct nm_share *shares;
	size_t count, capacity;
};

/* One more for the user or domain. 0, -ENOSPC (it has `most`) or -ENOMEM. */
int nm_shares_take(struct nm_shares *shares, uint64_t key, uint32_t most);
void nm_shares_release(struct nm_shares *shares, uint64_t key);
/* The same for a user and his domain: of `all`, three quarters are a user's at most, and seven
 * eighths a domain's. */
int nm_shares_take_both(struct nm_shares *shares, const struct nm_tenant *tenant, uint32_t all);
void nm_shares_release_both(struct nm_shares *shares, const struct nm_tenant *tenant);
void nm_shares_clear(struct nm_shares *shares);

#define NM_SETTLED_MOST 65536U
#define NM_SETTLED_SHARE (NM_SETTLED_MOST / 4)

struct nm_settled_thread {
	uint32_t tid, owner; /* of its domain's hash, what there is room for */
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
int nm_settled_add(struct nm_settled *settled, uint64_t domain, uint32_t tid, uint64_t start_ticks,
		   uint64_t round);
void nm_settled_remove(struct nm_settled *settled, uint32_t tid, uint64_t start_ticks);
bool nm_settled_has(const struct nm_settled *settled, uint32_t tid, uint64_t start_ticks);

/* Forgets those noted before `round` that started before `since_ticks`; where it is crowded, those
 * that have ended, too. */
void nm_settled_forget(struct nm_settled *settled, struct nm_platform *platform, uint64_t round,
		       uint64_t since_ticks);

#endif

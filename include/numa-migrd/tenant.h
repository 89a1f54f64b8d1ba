/* SPDX-License-Identifier: MIT */
/*
 * Fair shares of what is bounded: workers, queries, batches of pages, lists. A tenant is a user
 * within a domain; a domain is a top-level cgroup: one service, one container, or everything that
 * one user has started. Pure.
 */
#ifndef NUMA_MIGRD_TENANT_H
#define NUMA_MIGRD_TENANT_H

#include <stdbool.h>
#include <stdint.h>

struct nm_tenant {
	uint64_t domain; /* a hash of the path of its top-level cgroup */
	uint32_t uid;	 /* real */
};

/*
 * The tenant of a process with this path in the unified hierarchy. The top-level cgroup ends at the
 * first component that is neither a slice (systemd.slice(5)) nor the common parent of containers,
 * and at user-UID.slice: a user can create any number of cgroups below these, and none beside them.
 * NULL, "/": unknown; each user is a domain then.
 */
struct nm_tenant nm_tenant_of(uint32_t uid, const char *cgroup);
bool nm_tenant_same(const struct nm_tenant *a, const struct nm_tenant *b);

/* What is shared, and how much there is of it. */
#define NM_STUCK_WORKERS_MOST 8U
#define NM_QUERIES_MOST 256U
#define NM_RUNTIME_QUERIES_MOST 8U
#define NM_BATCHES_MOST 64U
#define NM_RELEASED_MOST 4096U
#define NM_ORIGINS_MOST 1048576U
#define NM_EXAMINATIONS_MOST 256U
#define NM_REQUESTS_MOST 4096U /* the bus lets a user have 256 connections */
enum nm_shared {
	NM_SHARE_STUCK_WORKERS, /* given up, and not ended */
	NM_SHARE_QUERIES,	/* about memory, not answered or not fetched */
	NM_SHARE_RUNTIME_QUERIES,
	NM_SHARE_BATCHES,      /* of pages, with the mover */
	NM_SHARE_RELEASED,     /* threads and processes that are left alone */
	NM_SHARE_ORIGINS,      /* runs of pages of which it is remembered where they were */
	NM_SHARE_EXAMINATIONS, /* of young processes, not due yet */
	NM_SHARE_REQUESTS,     /* on the bus, not answered; a tenant is a sender */
	NM_SHARES,
};

/* How much is in use, as one tenant sees it. */
struct nm_usage {
	uint64_t all, domain, user; /* user: of the same tenant */
};

/* Adds `amount`, used by `holder`. */
void nm_usage_add(struct nm_usage *usage, const struct nm_tenant *tenant,
		  const struct nm_tenant *holder, uint64_t amount);

/*
 * True: the tenant may use one more. A domain may while it uses less than is free, and a user
 * within it while it uses less than half of what is free. So a domain gets at most half of all and
 * a user 33 %, even if there is no other tenant, and each further tenant gets a smaller share.
 * Eight domains that take all they can leave room for a ninth. For stuck workers and requests the
 * table sets the limit of a user.
 */
bool nm_share_has_room(enum nm_shared share, const struct nm_usage *usage);

#endif

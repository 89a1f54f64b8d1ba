/* SPDX-License-Identifier: MIT */
/*
 * Fair shares of limited resources: workers, queries, batches of pages, lists. A tenant is a user
 * within a domain. A domain is a top-level cgroup: one service, one container, or all processes of
 * a user's sessions. Pure.
 */
#ifndef NUMA_MIGRD_TENANT_H
#define NUMA_MIGRD_TENANT_H

#include <stdbool.h>
#include <stdint.h>

struct nm_tenant {
	uint64_t domain; /* hash of the path of its top-level cgroup */
	uint32_t uid;	 /* real uid */
};

/*
 * Returns the tenant of a process with this path in the unified hierarchy. The top-level cgroup
 * ends at the first component that is neither a slice (systemd.slice(5)) nor the common parent of
 * containers, or at user-UID.slice: a user can create any number of cgroups below these, but none
 * beside them. A path of NULL or "/" is unknown; each user is then a domain.
 */
struct nm_tenant nm_tenant_of(uint32_t uid, const char *cgroup);
bool nm_tenant_same(const struct nm_tenant *a, const struct nm_tenant *b);

/* The shared resources and their limits. */
#define NM_STUCK_WORKERS_MOST 8U
#define NM_QUERIES_MOST 256U
#define NM_RUNTIME_QUERIES_MOST 8U
#define NM_BATCHES_MOST 64U
#define NM_RELEASED_MOST 4096U
#define NM_ORIGINS_MOST 1048576U
#define NM_EXAMINATIONS_MOST 256U
#define NM_REQUESTS_MOST 4096U /* the bus allows each user 256 connections */
enum nm_shared {
	NM_SHARE_STUCK_WORKERS, /* abandoned and not yet exited */
	NM_SHARE_QUERIES,	/* about memory, unanswered or not fetched */
	NM_SHARE_RUNTIME_QUERIES,
	NM_SHARE_BATCHES,      /* of pages, with the mover */
	NM_SHARE_RELEASED,     /* entries of threads and processes that are no longer managed */
	NM_SHARE_ORIGINS,      /* runs of pages whose original location is recorded */
	NM_SHARE_EXAMINATIONS, /* pending examinations of young processes */
	NM_SHARE_REQUESTS,     /* unanswered requests on the bus; a tenant is a sender */
	NM_SHARES,
};

/* The use of a resource from the point of view of one tenant. */
struct nm_usage {
	uint64_t all, domain, user; /* all: in total, domain: by the tenant's domain, user: by the
				     * tenant itself */
};

/* Adds `amount` used by `holder` to the usage seen by `tenant`. */
void nm_usage_add(struct nm_usage *usage, const struct nm_tenant *tenant,
		  const struct nm_tenant *holder, uint64_t amount);

/*
 * Returns true if the tenant may use one more unit. A domain may use less than the amount that is
 * free, and a user within it less than half of that. Therefore a domain gets at most half of the
 * total and a user 33 %, even without other tenants, and each further tenant gets a smaller share.
 * Eight domains at their limits leave room for a ninth. For stuck workers and requests the table
 * sets the limit of a user.
 */
bool nm_share_has_room(enum nm_shared share, const struct nm_usage *usage);

#endif

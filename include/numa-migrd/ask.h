/* SPDX-License-Identifier: MIT */
/*
 * The loop's queries that may take their time to be answered: which one is next, and what its
 * tenant is charged. Part of platform/, behind nm_platform_ops.memory_query. Nothing here waits.
 */
#ifndef NUMA_MIGRD_ASK_H
#define NUMA_MIGRD_ASK_H

#include "numa-migrd/platform.h"

/*
 * An answer of several calls begins no further call after this time.
 *
 * One query is under way at a time, for all tenants: after an answer, the tenant's next queries are
 * answered after those of other tenants, for nine times the duration of the answer, so that it has
 * 10 % of the time while others wait; the same holds for domains. If the answer took longer than
 * usual, the tenant's queries are refused during that time (-EALREADY), since others would wait for
 * the next one. Times are those of the calls, as their worker measures them: neither the start of a
 * worker nor a loop that is busy elsewhere is charged to a tenant.
 */
#define NM_ANSWER_NS (2 * NM_NSEC_PER_SEC)
#define NM_ANSWER_REST_SHARE 9U
#define NM_ANSWER_USUAL_NS (100 * NM_NSEC_PER_MSEC)

/*
 * Begins the answer to a query, and goes on with it in later calls with the same query. True: it is
 * complete in *ret, but for took_ns. Never waits.
 */
typedef bool (*nm_memory_answer_fn)(void *context, const struct nm_memory_query *query,
				    struct nm_memory_answer *ret);

struct nm_asker;

/* The caller frees. -ENOMEM. */
int nm_asker_new(nm_memory_answer_fn answer, void *context, struct nm_asker **ret);
/* Also with an answer under way, which is not gone on with. */
void nm_asker_free(struct nm_asker *asker);
NM_DEFINE_CLEANUP(struct nm_asker, nm_asker_free);

/* As nm_platform_ops has them. A query's descriptor is taken over, also on failure. -EAGAIN:
 * NM_SHARE_QUERIES has no room for its tenant. */
int nm_asker_ask(struct nm_asker *asker, const struct nm_memory_query *query, uint64_t *ret_ticket);
int nm_asker_take(struct nm_asker *asker, uint64_t ticket, struct nm_memory_answer *ret);
void nm_asker_forget(struct nm_asker *asker, uint64_t ticket);

/* Goes on with the answer under way, and begins the next ones until one is not complete at once. */
void nm_asker_progress(struct nm_asker *asker);

/* In an answer: a call of it took so long. */
void nm_asker_charge(struct nm_asker *asker, uint64_t ns);
/* Before each call of an answer: 0; -ETIMEDOUT: it has had its time; -ECANCELED: nobody wants it
 * any more. */
int nm_asker_goes_on(const struct nm_asker *asker);

#endif

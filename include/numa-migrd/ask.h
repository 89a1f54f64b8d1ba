/* SPDX-License-Identifier: MIT */
/*
 * The queries of the main loop that may take long: the order in which they are answered, and the
 * time that is charged to their tenants. Part of platform/, behind nm_platform_ops.memory_query. No
 * function here waits.
 */
#ifndef NUMA_MIGRD_ASK_H
#define NUMA_MIGRD_ASK_H

#include "numa-migrd/platform.h"

/*
 * An answer that consists of several calls begins no further call after NM_ANSWER_NS.
 *
 * One query is processed at a time, for all tenants. After an answer, the tenant's next queries are
 * processed after those of other tenants, for NM_ANSWER_REST_SHARE times the duration of the
 * answer, so that the tenant uses 10 % of the time while others wait; the same applies to domains.
 * If the answer took longer than NM_ANSWER_USUAL_NS, the tenant's queries are refused during that
 * time (-EALREADY), because others would have to wait for the next one. The duration is the time of
 * the calls, as their worker measures it: neither the start of a worker nor a busy main loop is
 * charged to a tenant.
 */
#define NM_ANSWER_NS (2 * NM_NSEC_PER_SEC)
#define NM_ANSWER_REST_SHARE 9U
#define NM_ANSWER_USUAL_NS (100 * NM_NSEC_PER_MSEC)

/*
 * Begins the answer to a query, or continues it in later calls with the same query. Returns true
 * when *ret is complete, except for took_ns. Never waits.
 */
typedef bool (*nm_memory_answer_fn)(void *context, const struct nm_memory_query *query,
				    struct nm_memory_answer *ret);

struct nm_asker;

/* The caller frees it. Returns 0 or -ENOMEM. */
int nm_asker_new(nm_memory_answer_fn answer, void *context, struct nm_asker **ret);
/* May be called while an answer is incomplete, which is then discarded. */
void nm_asker_free(struct nm_asker *asker);
NM_DEFINE_CLEANUP(struct nm_asker, nm_asker_free);

/* These functions implement memory_query, memory_poll and memory_cancel of nm_platform_ops.
 * nm_asker_ask() takes over the descriptor in the query, also on failure, and returns -EAGAIN if
 * NM_SHARE_QUERIES has no space for the tenant. */
int nm_asker_ask(struct nm_asker *asker, const struct nm_memory_query *query, uint64_t *ret_ticket);
int nm_asker_take(struct nm_asker *asker, uint64_t ticket, struct nm_memory_answer *ret);
void nm_asker_forget(struct nm_asker *asker, uint64_t ticket);

/*
 * Continues the answer in progress, and begins the next ones until one cannot be completed at once.
 */
void nm_asker_progress(struct nm_asker *asker);

/* Called by an answer after each of its calls, with the duration of the call. */
void nm_asker_charge(struct nm_asker *asker, uint64_t ns);
/* Called by an answer before each of its calls. Returns 0, -ETIMEDOUT if the answer has used its
 * time, or -ECANCELED if the query was cancelled. */
int nm_asker_goes_on(const struct nm_asker *asker);

#endif

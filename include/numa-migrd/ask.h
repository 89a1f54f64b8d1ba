/* SPDX-License-Identifier: MIT */
/*
 * Questions of the loop that may take their time to be answered, by a thread beside it. Part of
 * platform/, behind nm_platform_ops.ask.
 */
#ifndef NUMA_MIGRD_ASK_H
#define NUMA_MIGRD_ASK_H

#include "numa-migrd/platform.h"

/*
 * An answer of several calls begins no further call after this time.
 *
 * All tenants share the thread: after an answer, the tenant's next questions are asked after those
 * of other tenants, for nine times the duration of the answer, so that it has 10 % of the time
 * while others wait; the same holds for domains. If the answer took longer than usual, the tenant's
 * questions are refused during that time (-EALREADY), since others would wait for the next one.
 */
#define NM_ANSWER_NS (2 * NM_NSEC_PER_SEC)
#define NM_ANSWER_REST_SHARE 9U
#define NM_ANSWER_USUAL_NS (100 * NM_NSEC_PER_MSEC)

/* Fills in *ret but for took_ns; may wait, though not for ever. */
typedef void (*nm_memory_answer_fn)(void *context, const struct nm_memory_query *question,
				    struct nm_memory_answer *ret);

struct nm_asker;

/* The thread is started with the first question. -ENOMEM. */
int nm_asker_new(nm_memory_answer_fn answer, void *context, struct nm_asker **ret);
/* Waits for the answer under way: have it end before. */
void nm_asker_free(struct nm_asker *asker);
NM_DEFINE_CLEANUP(struct nm_asker, nm_asker_free);

/* As nm_platform_ops has them. A question's descriptor is taken over, also on failure. -EAGAIN: NM_SHARE_QUERIES
 * has no room for its tenant. */
int nm_asker_ask(struct nm_asker *asker, const struct nm_memory_query *question,
		 uint64_t *ret_ticket);
int nm_asker_take(struct nm_asker *asker, uint64_t ticket, struct nm_memory_answer *ret);
void nm_asker_forget(struct nm_asker *asker, uint64_t ticket);

/* Once in an answer, on the thread: what it took until now, for a worker to start, is at nobody's
 * expense. */
void nm_asker_starts(struct nm_asker *asker);
/* Before each call of an answer, on the thread: 0; -ETIMEDOUT: it has had its time; -ECANCELED:
 * nobody wants it any more. */
int nm_asker_goes_on(struct nm_asker *asker);

#endif

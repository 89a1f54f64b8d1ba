/* SPDX-License-Identifier: MIT */
/*
 * Questions of the loop that may take their time to be answered, by a thread beside it. Part of
 * platform/, behind nm_platform_ops.ask.
 */
#ifndef NUMA_MIGRD_ASK_H
#define NUMA_MIGRD_ASK_H

#include "numa-migrd/platform.h"

#define NM_QUESTIONS_MOST 256U /* waiting, under way, or answered and not taken */

/* Fills in *ret but for took_ns; may wait, though not for ever. */
typedef void (*nm_memory_answer_fn)(void *context, const struct nm_question *question,
			     struct nm_memory_answer *ret);

struct nm_asker;

/* The thread is started with the first question. -ENOMEM. */
int nm_asker_new(nm_memory_answer_fn answer, void *context, struct nm_asker **ret);
/* Waits for the answer under way: have it end before. */
void nm_asker_free(struct nm_asker *asker);
NM_DEFINE_CLEANUP(struct nm_asker, nm_asker_free);

/* As nm_platform_ops has them. A question's descriptor is taken over, also on failure. */
int nm_asker_ask(struct nm_asker *asker, const struct nm_question *question, uint64_t *ret_ticket);
int nm_asker_take(struct nm_asker *asker, uint64_t ticket, struct nm_memory_answer *ret);
void nm_asker_forget(struct nm_asker *asker, uint64_t ticket);

#endif

/* SPDX-License-Identifier: MIT */
/* The verdicts of all policies. */
#ifndef NUMA_MIGRD_JUDGE_H
#define NUMA_MIGRD_JUDGE_H

enum nm_verdict_kind {
	NM_VERDICT_IMPROVED,	 /* the value it is judged by rose by more than the noise */
	NM_VERDICT_NEUTRAL,	 /* no clear change, or a fall while threads.rollback is false; of a
				  * rollback: the thread arrived */
	NM_VERDICT_ROLLED_BACK,	 /* fell by more than the margin: the move is rolled back */
	NM_VERDICT_CANCELLED,	 /* the thread never ran on its new node: its CPU affinity is
				  * restored; only of moves of single threads */
	NM_VERDICT_INCONCLUSIVE, /* too few samples, or the threads exited or were moved again
				  * meanwhile */
};
#define NM_VERDICT_KINDS (NM_VERDICT_INCONCLUSIVE + 1)

#endif

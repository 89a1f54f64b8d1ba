/* SPDX-License-Identifier: MIT */
/* What fuzz_replay begins with: recordings of a few simulated seconds. */
#ifndef NM_FUZZ_REPLAY_SEEDS_H
#define NM_FUZZ_REPLAY_SEEDS_H

/* Below folder/replay, which is made; aborts where it cannot. */
void replay_seeds_write(const char *folder);

#endif

/* SPDX-License-Identifier: MIT */
/* Initial inputs of fuzz_replay: recordings of a few simulated seconds. */
#ifndef NM_FUZZ_REPLAY_SEEDS_H
#define NM_FUZZ_REPLAY_SEEDS_H

/* Creates folder/replay and writes into it; aborts on failure. */
void replay_seeds_write(const char *folder);

#endif

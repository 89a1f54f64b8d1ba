/* SPDX-License-Identifier: MIT */
/*
 * A recording played back to the daemon's own stages. source.c, mover.c and journal.c stand in for
 * the libraries' at link time, so that what runs in between is the production code, unchanged.
 */
#ifndef NM_REPLAY_H
#define NM_REPLAY_H

#include "../../daemon/daemon.h"
#include "numa-migrd/recording.h"
#include "numa-migrd/tap.h"

struct nm_player {
	const struct nm_daemon *daemon; /* that is fed; borrowed */
	struct nm_platform strict,
		quiet; /* what stages of the loop get; the source and the mover */
	struct nm_recording *stream;
	struct nm_recorded next;
	bool has_next;
	bool over; /* the recording has ended, or the replay differs from it */
	struct nm_paths paths;
	struct nm_recording *topologies; /* the same file, for these alone */
	uint64_t interval, intervals, samples, sent, checked;
	char trouble[1024]; /* the first difference, or what is wrong with the file; "": none */
};

/* ---- run.c ---- */

struct nm_replay_request {
	const char *file;
	FILE *out, *err;
};

/* Returns the exit status; whatever the file holds, what is written is fit for a terminal. */
int nm_replay_run(const struct nm_replay_request *request);

/* ---- player.c: the records in their order ---- */

/* The next record that a replay has a use for; NULL at the end. Valid until the next call. */
const struct nm_recorded *nm_player_peek(struct nm_player *player);
/* The same if it is of the kind, and then passed; otherwise the replay is over, and told why. */
const struct nm_recorded *nm_player_take(struct nm_player *player, enum nm_recorded_kind kind,
					 const char *wanted_by);
void nm_player_stop(struct nm_player *player, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The answer to this operation; NULL: there is none. */
const struct nm_recorded_answer *nm_player_answer(struct nm_player *player, const char *operation,
						  int64_t handle, const char *path);
struct nm_record_sink nm_player_sink(struct nm_player *player);
void nm_player_clear(struct nm_player *player);

/* ---- machine.c ---- */

/* Fills in the player's platforms. */
void nm_player_machine(struct nm_player *player);
struct nm_player *nm_player_of(struct nm_platform *platform);

#endif

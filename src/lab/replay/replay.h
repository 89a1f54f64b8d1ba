/* SPDX-License-Identifier: MIT */
/* Plays a recording back to the daemon's own stages. source.c, mover.c and journal.c replace the
 * libraries' files at link time, so that all other code is the unmodified production code. */
#ifndef NM_REPLAY_H
#define NM_REPLAY_H

#include "../../daemon/daemon.h"
#include "numa-migrd/recording.h"

struct nm_player {
	const struct nm_daemon *daemon; /* the daemon that is fed; borrowed */
	struct nm_platform stages,
		/* Platforms for the stages of the main loop, and for the source and the mover. */
		outside;
	struct nm_recording *stream;
	struct nm_recorded next;
	bool has_next;
	bool ended; /* the recording has ended, or the replay differs from it */
	struct nm_paths paths;
	struct nm_recording *topologies; /* the same file, read only for topologies */
	uint64_t interval, intervals, samples, sent, checked;
	char problem[1024]; /* the first difference, or an error in the file; "": none */
};

/* ---- run.c ---- */

struct nm_replay_request {
	const char *file;
	FILE *out, *err;
};

/* Returns the exit status. The output is safe for a terminal with any file. */
int nm_replay_run(const struct nm_replay_request *request);

/* ---- player.c: the records in order ---- */

/* Returns the next record that the replay uses, or NULL at the end. Valid until the next call. */
const struct nm_recorded *nm_player_peek(struct nm_player *player);
/* Returns the next record and advances, if it is of this kind; otherwise the replay is over, with a
 * message. */
const struct nm_recorded *nm_player_take(struct nm_player *player, enum nm_recorded_kind kind,
					 const char *wanted_by);
void nm_player_stop(struct nm_player *player, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Returns the answer to this operation, or NULL if there is none. */
const struct nm_recorded_answer *nm_player_answer(struct nm_player *player, const char *operation,
						  int64_t handle, const char *path);
struct nm_record_sink nm_player_sink(struct nm_player *player);
void nm_player_clear(struct nm_player *player);

/* ---- machine.c ---- */

/* Initializes the platforms of the player. */
void nm_player_machine(struct nm_player *player);
struct nm_player *nm_player_of(struct nm_platform *platform);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A recording played back to the daemon's own stages. source.c, mover.c and journal.c stand in for
 * the libraries' at link time, so that what runs in between is the production code, unchanged.
 */
#ifndef NM_REPLAY_H
#define NM_REPLAY_H

#include "../daemon/daemon.h"
#include "numa-migrd/recording.h"
#include "numa-migrd/tap.h"

/* What is kept of a decision for the comparison. */
struct nm_replay_move {
	uint64_t interval, decision;
	uint32_t tid;
	int node_from, node_to;
	enum nm_decision_kind kind;
	char comm[NM_COMM_BYTES];
};

struct nm_replay_moves {
	struct nm_replay_move *items;
	size_t count, room;
};

/* The state of the world by the recording, for a configuration that asks other things than were
 * asked. */
struct nm_guess;

struct nm_player {
	const struct nm_daemon *daemon; /* that is fed; lent */
	struct nm_platform strict,
		quiet; /* what stages of the loop get; the source and the mover */
	struct nm_recording *stream;
	struct nm_recorded next;
	bool has_next, taken;
	bool bound; /* by the recorded configuration: all must be the same, in the same order */
	bool over;  /* the recording has ended, or the replay is no longer it */
	struct nm_paths paths;
	struct nm_recording *topologies, *figures; /* the same file, for these alone */
	struct nm_guess *guess;			   /* NULL when bound */
	int read_to_end;			   /* file whose end comes next, if guessed */
	uint64_t interval, intervals, samples, checked;
	struct nm_replay_moves recorded, replayed;
	char trouble[1024]; /* the first difference, or what is wrong with the file; "": none */
};

/* ---- run.c ---- */

struct nm_replay_request {
	const char *file,
		*config; /* config: another configuration's file; NULL: the recorded one */
	bool all;	 /* decisions that differ, however many */
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
struct nm_record_sink nm_player_sink(struct nm_player *player, bool samples);
void nm_player_clear(struct nm_player *player);

/* ---- machine.c ---- */

/* Fills in the player's platforms. */
void nm_player_machine(struct nm_player *player);
struct nm_player *nm_player_of(struct nm_platform *platform);

/* ---- guess.c ---- */

int nm_guess_new(int fd, struct nm_guess **ret);
void nm_guess_free(struct nm_guess *guess);
/* Takes up what was answered and decided until the next call. 1: there is one; 0; -errno. */
int nm_guess_advance(struct nm_guess *guess, struct nm_replay_moves *recorded,
		     uint64_t *ret_interval);
const struct nm_recorded_answer *nm_guess_answer(struct nm_guess *guess, const char *operation,
						 int64_t handle, const char *path);
/* A mask that the replay has set, in place of what was recorded. */
void nm_guess_set_mask(struct nm_guess *guess, int64_t tid, hwloc_const_bitmap_t mask);
/* A descriptor for a path that is there; -ENOENT. */
int nm_guess_open(struct nm_guess *guess, const char *operation, const char *path);

/* ---- compare.c ---- */

int nm_replay_note(struct nm_replay_moves *moves, const struct nm_decision *decision,
		   uint64_t interval);
/* What both have decided, interval by interval where they differ, and the sums. True where they
 * agree. */
bool nm_replay_compare(const struct nm_replay_moves *recorded,
		       const struct nm_replay_moves *replayed, uint64_t intervals, bool all,
		       FILE *out);

#endif

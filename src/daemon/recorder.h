/* SPDX-License-Identifier: MIT */
/*
 * The daemon's side of a recording (recording.h): what goes in and what comes out, in its order. A
 * replay has a recorder too, to which it hands what comes out only, and which holds it against the
 * recording.
 */
#ifndef NM_DAEMON_RECORDER_H
#define NM_DAEMON_RECORDER_H

#include "numa-migrd/actuate.h"
#include "numa-migrd/mover.h"
#include "numa-migrd/policy.h"
#include "numa-migrd/recording.h"

struct nm_daemon;
struct nm_entry;

/* Where records go: a file, or the comparison of a replay. add and flush: 0 or -errno. */
struct nm_record_sink {
	void *context;
	int (*add)(void *context, const struct nm_recorded *record, unsigned nr_nodes);
	int (*flush)(void *context); /* NULL: not needed */
	void (*free)(void *context); /* NULL: likewise */
	/* In a replay: the source of answers instead of the machine. NULL otherwise. */
	int (*open_platform)(void *context, struct nm_platform **ret);
	bool inputs; /* what goes in is wanted too */
};

struct nm_recorder;

/*
 * Begins: the pipeline is closed, so that every mask is returned, and opened again, since a replay
 * has to begin as the recording did. The sink is taken over, also on failure; seconds: after so
 * many it ends, 0: as asked. -EBUSY: another recording is under way; -EAGAIN: paused; -errno of
 * opening the pipeline, without which the daemon ends.
 */
int nm_recorder_begin(struct nm_daemon *daemon, const struct nm_record_sink *sink,
		      uint64_t seconds);
/* The file of a recording (fd: taken over) as a sink. */
int nm_recorder_file(int fd, const struct nm_recording_options *options,
		     struct nm_record_sink *ret);
/* For a replay: without opening anything. -ENOMEM. */
int nm_recorder_attach(struct nm_daemon *daemon, const struct nm_record_sink *sink);
/* The same, and the beginning of a recording is written: the pipeline is to be opened after it. */
int nm_recorder_start(struct nm_daemon *daemon, const struct nm_record_sink *sink);
/* -ENOENT: there is none. The pipeline stays as it is. */
int nm_recorder_end(struct nm_daemon *daemon, const char *reason);
/* Ends it when its time is over or the file takes no more; after each tick. */
void nm_recorder_tick(struct nm_daemon *daemon);

/* A record of what came out; -ENOENT: nobody wants it. What went wrong ends the recording. */
int nm_recorder_add(struct nm_daemon *daemon, const struct nm_recorded *record);
void nm_recorder_failed(struct nm_daemon *daemon, int error);

/* ---- what the stages tell; nothing happens where nothing is recorded ---- */

/* The platform that stages of the loop are given: the machine itself, or one that tells its
 * answers. */
int nm_recorder_open_platform(struct nm_daemon *daemon);
void nm_recorder_call(struct nm_daemon *daemon, enum nm_recorded_call call, uint64_t number,
		      const char *text);
void nm_recorder_topology(struct nm_daemon *daemon);
void nm_recorder_sample(struct nm_daemon *daemon, const struct nm_sample *sample); /* hot path */
/* The rings were emptied; task events are in their order. */
void nm_recorder_drained(struct nm_daemon *daemon);
void nm_recorder_source(struct nm_daemon *daemon, const double *taken_per_seen, unsigned nr_cpus);
void nm_recorder_interval(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  uint64_t length_ns);
void nm_recorder_proposals(struct nm_daemon *daemon, const struct nm_proposals *proposals,
			   const struct nm_plan *plan);
void nm_recorder_decision(struct nm_daemon *daemon, const struct nm_decision *decision,
			  const struct nm_receipt *receipt);
void nm_recorder_verdict(struct nm_daemon *daemon, const struct nm_verdict *verdict);
void nm_recorder_page_decision(struct nm_daemon *daemon, const struct nm_page_decision *decision);
void nm_recorder_page_verdict(struct nm_daemon *daemon, const struct nm_page_verdict *verdict);
void nm_recorder_entry(struct nm_daemon *daemon, const struct nm_entry *entry, uint64_t time_usec);
/* The result of the mover, by the name of its function; and the batch that it returned, or NULL. */
void nm_recorder_mover(struct nm_daemon *daemon, const char *function, int64_t result);
void nm_recorder_batch(struct nm_daemon *daemon, const struct nm_page_batch *batch);
void nm_recorder_ranges(struct nm_daemon *daemon, uint32_t pid, int result,
			const struct nm_range *ranges, size_t count);

#endif

/* SPDX-License-Identifier: MIT */
/* The daemon's part of a recording (recording.h): its inputs and outputs, in order. A replay also
 * has a recorder, which gets only outputs and compares them with the recording. */
#ifndef NM_DAEMON_RECORDER_H
#define NM_DAEMON_RECORDER_H

#include "numa-migrd/lease.h"
#include "numa-migrd/mover.h"
#include "numa-migrd/policy.h"
#include "numa-migrd/recording.h"

struct nm_daemon;
struct nm_entry;

/* Destination of records: a file, or the comparison of a replay. add and flush return 0 or a
 * negative errno. */
struct nm_record_sink {
	void *context;
	int (*add)(void *context, const struct nm_recorded *record);
	int (*flush)(void *context); /* NULL: not needed */
	void (*free)(void *context); /* NULL: not needed */
	/* In a replay: opens the source of answers, which replaces the machine. NULL otherwise. */
	int (*open_platform)(void *context, struct nm_platform **ret);
	bool inputs; /* inputs are needed, too */
};

struct nm_recorder;

/*
 * Begins a recording. The pipeline is closed, which restores all affinities, and opened again,
 * because a replay must start in the same state. Takes over the sink, also on failure. The
 * recording ends after `seconds`; 0: no limit. Returns 0; -EBUSY if another recording is in
 * progress; -EAGAIN if paused; or the negative errno of opening the pipeline, without which the
 * daemon exits.
 */
int nm_recorder_begin(struct nm_daemon *daemon, const struct nm_record_sink *sink,
		      uint64_t seconds);
/* Creates a sink that writes a recording of at most limit_bytes (0: no limit) to fd, which it takes
 * over. */
int nm_recorder_file(int fd, uint64_t limit_bytes, struct nm_record_sink *ret);
/* Attaches a sink without reopening the pipeline, for replay. Returns 0 or -ENOMEM. */
int nm_recorder_attach(struct nm_daemon *daemon, const struct nm_record_sink *sink);
/* Attaches a sink and writes the start of a recording; the pipeline must be opened afterwards. */
int nm_recorder_start(struct nm_daemon *daemon, const struct nm_record_sink *sink);
/* Ends the recording. The pipeline stays open. Returns 0, or -ENOENT if there is none. */
int nm_recorder_end(struct nm_daemon *daemon, const char *reason);
/* Ends the recording at its time limit, or if the file accepts no more data. Called after each
 * tick. */
void nm_recorder_tick(struct nm_daemon *daemon);

/*
 * Adds an output record. Returns 0, or -ENOENT if there is no recording. Errors end the recording.
 */
int nm_recorder_add(struct nm_daemon *daemon, const struct nm_recorded *record);
void nm_recorder_failed(struct nm_daemon *daemon, int error);

/* ---- records of the stages; without a recording these functions have no effect ---- */

/* Opens the platform for the stages of the main loop: the machine itself, or one that also records
 * its answers. */
int nm_recorder_open_platform(struct nm_daemon *daemon);
void nm_recorder_call(struct nm_daemon *daemon, enum nm_recorded_call call, uint64_t number,
		      const char *text);
void nm_recorder_topology(struct nm_daemon *daemon);
void nm_recorder_sample(struct nm_daemon *daemon, const struct nm_sample *sample); /* hot path */
/* Records that the rings were drained; task events are in order. */
void nm_recorder_drained(struct nm_daemon *daemon);
void nm_recorder_source(struct nm_daemon *daemon, const double *taken_per_seen, unsigned nr_cpus);
void nm_recorder_interval(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  uint64_t length_ns);
/* Records a decision about threads, or a home; receipt is NULL for a home. */
void nm_recorder_decision(struct nm_daemon *daemon, const struct nm_decision *decision,
			  const struct nm_receipt *receipt);
void nm_recorder_entry(struct nm_daemon *daemon, const struct nm_entry *entry, uint64_t time_usec);
/* Record the result of a function of the mover, and the batch that it returned, or NULL. */
void nm_recorder_mover(struct nm_daemon *daemon, const char *function, int64_t result);
void nm_recorder_batch(struct nm_daemon *daemon, const struct nm_page_batch *batch);
void nm_recorder_ranges(struct nm_daemon *daemon, uint32_t pid, int result,
			const struct nm_range *ranges, size_t count);

#endif

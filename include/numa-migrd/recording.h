/* SPDX-License-Identifier: MIT */
/*
 * Recordings: files with the observations, decisions and operations of the daemon, for replay,
 * explanation and plots. A recording contains no memory contents and no physical addresses.
 * docs/recording.md describes the format; decoding is pure.
 *
 * A file is a header and blocks, each with a checksum; a block holds whole records. An incomplete
 * block at the end (after a crash, or on a full disk) is dropped and reported; any other damage is
 * an error.
 */
#ifndef NUMA_MIGRD_RECORDING_H
#define NUMA_MIGRD_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "numa-migrd/base.h"
#include "numa-migrd/judge.h"
#include "numa-migrd/lease.h"
#include "numa-migrd/memory.h"
#include "numa-migrd/mover.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/topology.h"

/* Raised when a kind or a field of records is added, removed or changed: other versions are not
 * read. */
#define NM_RECORDING_VERSION 2U
#define NM_RECORDING_TEXT 1024U

enum nm_recorded_kind {
	/* For display and plots, in the order within an interval. */
	NM_RECORDED_START,     /* the first record */
	NM_RECORDED_TOPOLOGY,  /* follows START, and each change of the topology */
	NM_RECORDED_INTERVAL,  /* begins an interval; the following records belong to it */
	NM_RECORDED_THREADS,   /* the managed threads as the policy saw them */
	NM_RECORDED_PROCESSES, /* the processes of the threads */
	NM_RECORDED_VERDICT,   /* of an earlier decision */
	NM_RECORDED_DECISION,
	NM_RECORDED_RECEIPT, /* the immediate result of a decision about threads */
	NM_RECORDED_ENTRY,   /* a journal entry of any kind */
	NM_RECORDED_END,     /* the reason for the end; missing after a crash */
	/* Input of a replay. */
	NM_RECORDED_CALL,    /* a call that makes the daemon act: a tick, a full ring, a command */
	NM_RECORDED_ANSWER,  /* the result of one operation of struct nm_platform_ops */
	NM_RECORDED_SOURCE,  /* status of the sampling source */
	NM_RECORDED_SAMPLES, /* the samples and task events of one drain */
	NM_RECORDED_KINDS
};

struct nm_recorded_start {
	char version[32]; /* of the program */
	uint64_t time_s;  /* since 1970 */
	uint64_t monotonic_ns;
	uint64_t seed; /* of the random number generator, as of this moment */
	uint64_t next_decision;
	uint64_t intervals; /* number of intervals before the first one recorded */
	uint32_t pid;	    /* PID of the daemon, which does not manage itself */
	bool dry_run;
	char source[64];		  /* name of the sampling source, or "none" */
	const char *config_name, *config; /* name and text of the configuration file */
	size_t config_length;
};

struct nm_recorded_interval {
	uint64_t number;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t length_ns;
	double local_share;  /* over the managed threads; NaN: not known, also for the following
			      * fields */
	double performance;  /* P_g */
	uint32_t nr_threads; /* number of managed threads */
};

/* As in struct nm_snap_thread. NaN: not known; -1: no CPU or node. */
struct nm_recorded_thread {
	uint32_t tid, pid;
	int main_cpu, main_node, preferred;
	double run_share, local_share, access_total;
	double latency;	     /* core cycles; the color in the 3DyRM roofline */
	double instructions; /* per second */
	double operations;   /* O, per second: the performance axis */
	double intensity;    /* I, operations per byte: the other axis */
	double performance, relative;
	bool leased, measured, movable;
};

struct nm_recorded_process {
	uint32_t pid, uid;
	char comm[NM_COMM_BYTES]; /* escaped once with nm_escape(), as all names in a recording */
	uint32_t threads;
	double performance;
};

struct nm_recorded_entry {
	uint64_t decision; /* 0: none */
	uint64_t time_usec;
	int priority;
	const char *text;   /* the text */
	const char *fields; /* lines of the form "NAME=value" */
};

enum nm_recorded_call {
	NM_CALL_TICK,
	NM_CALL_DRAIN, /* draining of rings between ticks */
	NM_CALL_NUDGES,
	NM_CALL_EXAMINE,     /* number: maximum number of processes */
	NM_CALL_OPEN_SOURCE, /* an attempt to open a source after a minute without one */
	NM_CALL_RELEASE,     /* number: PID */
	NM_CALL_RELOAD,	     /* text: the configuration */
	NM_CALLS
};

struct nm_recorded_step {
	enum nm_recorded_call call;
	uint64_t number;
	const char *text; /* NULL: none */
	size_t length;
};

/* The result of one operation. `handle` is the recording's number for a directory or file. */
struct nm_recorded_answer {
	const char *operation; /* name in struct nm_platform_ops */
	int64_t handle;
	const char *path; /* "": none */
	int64_t result;	  /* return value */
	const uint8_t *bytes;
	size_t length;
};

struct nm_recorded_source {
	bool open;
	struct nm_source_status status;
	const double *taken_per_seen;
	unsigned nr_cpus; /* number of entries in taken_per_seen */
};

/* samples[i].home is set if the node was known; physical_address is 0. */
struct nm_recorded_samples {
	const struct nm_sample *samples;
	size_t nr_samples;
	const struct nm_task_event *events;
	size_t nr_events;
};

struct nm_recorded {
	enum nm_recorded_kind kind;
	uint64_t interval; /* number in the last INTERVAL record; 0 before the first */
	union {
		struct nm_recorded_start start;
		const struct nm_topology *topology;
		struct nm_recorded_interval about;
		struct {
			const struct nm_recorded_thread *items; /* ascending tid */
			size_t count;
		} threads;
		struct {
			const struct nm_recorded_process *items; /* ascending pid */
			size_t count;
		} processes;
		struct nm_verdict verdict;
		struct nm_decision decision; /* `target` of its steps is set, `original` is not */
		struct nm_receipt receipt;
		struct nm_recorded_entry entry;
		const char *end;
		struct nm_recorded_step step;
		struct nm_recorded_answer answer;
		struct nm_recorded_source source;
		struct nm_recorded_samples samples;
	};
};

/* ---- reading ---- */

struct nm_recording;

/*
 * Opens a recording. Takes over fd, also on failure. Returns 0; -EPROTO if it is not a recording;
 * -EPROTONOSUPPORT if another version wrote it; -ENOMEM; or another negative errno. On failure
 * `error` gets a sentence with the reason. Called by commands.
 */
int nm_recording_open(int fd, char *error, size_t error_size, struct nm_recording **ret);
void nm_recording_free(struct nm_recording *recording);
NM_DEFINE_CLEANUP(struct nm_recording, nm_recording_free);

/*
 * Reads the next record, which is valid until the next call. Returns 1 for a record; 0 at the end,
 * also if an incomplete block follows; -EBADMSG if the file is damaged; -ENOMEM; or another
 * negative errno. A file that is still being written is read up to its current end.
 */
int nm_recording_next(struct nm_recording *recording, struct nm_recorded *ret);

/* Restarts at the first record. */
void nm_recording_rewind(struct nm_recording *recording);

/* Returns the size of the incomplete block at the end; 0 if there is none or the end was not
 * reached. */
uint64_t nm_recording_torn(const struct nm_recording *recording);

/* Describes the place and the reason of the last error of nm_recording_next(). */
const char *nm_recording_error(const struct nm_recording *recording);

/* Makes nm_recording_next() return only records of these kinds (bits 1 << kind); others are skipped
 * without decoding. */
void nm_recording_only(struct nm_recording *recording, uint32_t kinds);

const char *nm_recorded_kind_name(enum nm_recorded_kind kind);

/* Prints one record as a line; for samples, one line each. */
void nm_recorded_print(const struct nm_recorded *record, FILE *out);
/* Prints all records and their items, one per line, for users and tests. Returns 0 or the negative
 * errno of reading or writing. */
int nm_recording_dump(struct nm_recording *recording, FILE *out);

/* Compares two records bit by bit. Returns 0 or -ENOMEM. */
int nm_recorded_equal(const struct nm_recorded *a, const struct nm_recorded *b, bool *ret);

/* ---- writing ---- */

struct nm_recorder_writer;

/*
 * Writes the header to an empty regular file. Takes over fd, also on failure. The file must be
 * regular because blocks are written whole. Nothing is written beyond limit_bytes; 0: no limit.
 * Returns 0, -ENOMEM or another negative errno.
 */
int nm_recording_create(int fd, uint64_t limit_bytes, struct nm_recorder_writer **ret);
/* Writes the remaining records and closes the file. NULL is allowed. */
void nm_recording_close(struct nm_recorder_writer *writer);
NM_DEFINE_CLEANUP(struct nm_recorder_writer, nm_recording_close);

/*
 * Adds a copy of a record.
 * Returns 0; -EFBIG if the limit is reached, after which no record is accepted; -ENOMEM; or the
 * negative errno of the file, which all later calls return again.
 */
int nm_recording_add(struct nm_recorder_writer *writer, const struct nm_recorded *record);
/* Writes all records added so far to the file. Called at the end of a tick. */
int nm_recording_flush(struct nm_recorder_writer *writer);

/* ---- results of the mover ---- */

/* Encodes and decodes results of the mover as answers in a recording. Pure. */

/* Encodes the result of a batch, which the caller frees. Returns 0 or -ENOMEM. */
int nm_batch_put(const struct nm_page_batch *batch, uint8_t **ret, size_t *ret_size);
/* Returns the decision to which the batch belongs. Returns 0 or -EBADMSG. */
int nm_batch_decision(const uint8_t *bytes, size_t size, uint64_t *ret);
/* Sets the recorded results in a batch, which must be the same as the one submitted. Returns 0,
 * -EBADMSG if it differs, or -ENOMEM. */
int nm_batch_get(const uint8_t *bytes, size_t size, struct nm_page_batch *batch);

/* Encode and decode mappings, which the caller frees. Return 0, -ENOMEM or -EBADMSG. */
int nm_ranges_put(const struct nm_range *ranges, size_t count, uint8_t **ret, size_t *ret_size);
int nm_ranges_get(const uint8_t *bytes, size_t size, struct nm_range **ret, size_t *ret_count);

/* ---- recording of a platform's answers ---- */

/*
 * A platform that passes every call of the main loop on to another platform and reports the result,
 * for replay. Sampling is not reported: struct nm_source and the mover use the other platform
 * directly.
 */

/* `answer` is valid during the call. Its path is relative to the root, regardless of the directory
 * passed. */
typedef void (*nm_answer_fn)(void *context, const struct nm_recorded_answer *answer);

/* Creates the platform. `machine` must outlive it, and its owner keeps it. Returns 0 or -ENOMEM.
 * Called by the daemon while recording. */
int nm_tap_new(struct nm_platform *machine, nm_answer_fn on_answer, void *context,
	       struct nm_platform **ret);

/* Convert a struct nm_owner to and from the bytes of an answer. */
#define NM_ANSWER_OWNER_BYTES 5U
void nm_answer_put_owner(const struct nm_owner *owner, uint8_t ret[NM_ANSWER_OWNER_BYTES]);
void nm_answer_get_owner(const uint8_t bytes[NM_ANSWER_OWNER_BYTES], struct nm_owner *ret);

struct nm_bytes;

/*
 * Converts the answer to a memory query to bytes. The answer is truncated if an allocation fails.
 */
void nm_memory_answer_put(const struct nm_memory_answer *answer, struct nm_bytes *bytes);
/* Converts bytes to an answer, which the caller clears. Returns 0, -EBADMSG or -ENOMEM. */
int nm_memory_answer_get(const uint8_t *bytes, size_t length, struct nm_memory_answer *ret);

/* Paths of open directories, by descriptor. */
struct nm_paths {
	char **items;
	size_t count;
};
/* Returns `path` below a directory as a path from the root, which the caller frees. NULL: out of
 * memory, or the directory was not opened through this object. */
char *nm_paths_join(const struct nm_paths *paths, int directory, const char *path);
/* Stores a path, which it takes over. Returns 0, or -ENOMEM, in which case the path was freed. */
int nm_paths_set(struct nm_paths *paths, int fd, char *path);
void nm_paths_clear(struct nm_paths *paths);

#endif

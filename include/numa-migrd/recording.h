/* SPDX-License-Identifier: MIT */
/*
 * What the daemon saw, decided and did, as a file: for replaying, explaining and plotting. A
 * recording holds no contents of memory and no physical addresses. The format is in
 * docs/recording.md; decoding is pure.
 *
 * A file is a header and blocks, each with a checksum; a block holds whole records. One that was
 * not written to its end (a crash, a full disk) is cut off and told; any other damage is an error.
 */
#ifndef NUMA_MIGRD_RECORDING_H
#define NUMA_MIGRD_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "numa-migrd/actuate.h"
#include "numa-migrd/base.h"
#include "numa-migrd/exclusivity.h"
#include "numa-migrd/page_verify.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/topology.h"
#include "numa-migrd/verify.h"

#define NM_RECORDING_VERSION 1U
#define NM_RECORDING_TEXT 1024U

enum nm_recorded_kind {
	/* Said for people and plots; in the order of an interval. */
	NM_RECORDED_START,     /* first of all */
	NM_RECORDED_TOPOLOGY,  /* behind it, and where it changed */
	NM_RECORDED_INTERVAL,  /* begins an interval; what follows belongs to it */
	NM_RECORDED_THREADS,   /* those managed, as the policy saw them */
	NM_RECORDED_PROCESSES, /* of threads, with the location of their memory */
	NM_RECORDED_SHARING,   /* threads that share memory */
	NM_RECORDED_VERDICT,   /* of an earlier decision */
	NM_RECORDED_PROPOSALS, /* what stopped others, before the decisions */
	NM_RECORDED_DECISION,
	NM_RECORDED_RECEIPT, /* what became of it at once */
	NM_RECORDED_PAGE_VERDICT,
	NM_RECORDED_PAGE_DECISION,
	NM_RECORDED_ENTRY, /* what the journal was told, of whatever kind */
	NM_RECORDED_END,   /* why it ends; a crash leaves none */
	/* What a replay is fed with. */
	NM_RECORDED_CALL,    /* what has the daemon act: a tick, a full ring, a command */
	NM_RECORDED_ANSWER,  /* of the machine to one operation of struct nm_platform_ops */
	NM_RECORDED_SOURCE,  /* what is sampled */
	NM_RECORDED_SAMPLES, /* of one emptying of the rings, with task events */
	NM_RECORDED_KINDS
};

struct nm_recorded_start {
	char version[32]; /* of the program */
	uint64_t time_s;  /* since 1970 */
	uint64_t monotonic_ns;
	uint64_t seed; /* of the generator, at this moment as at the start */
	uint64_t next_decision;
	uint64_t intervals; /* before the first one here */
	uint32_t pid;	    /* of the daemon, which does not manage itself */
	bool hashed, dry_run;
	char source[64];		  /* name of what is sampled, "none" */
	const char *config_name, *config; /* the file's, and its text */
	size_t config_length;
};

struct nm_recorded_interval {
	uint64_t number;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t length_ns;
	double local_share; /* over managed threads; NaN where unknown, as all that follow */
	double performance; /* P_g */
	uint32_t nr_nodes, nr_threads; /* nr_threads: managed */
	bool by_locality;	       /* P is locality, for want of counters */
};

/* As struct nm_snap_thread has them; NaN where unknown, -1 for no CPU or node. */
struct nm_recorded_thread {
	uint32_t tid, pid;
	int main_cpu, main_node, preferred;
	double run_share, local_share, access_total;
	double latency;	     /* core cycles: colour of the 3DyRM roofline */
	double instructions; /* per second */
	double operations;   /* O: its axis of performance; as instructions */
	double intensity;    /* I: its other axis, operations per byte */
	double performance, relative;
	bool leased, measured, movable;
	const double *accesses; /* nr_nodes values: accesses in the window to each node's memory */
};

struct nm_recorded_process {
	uint32_t pid, uid;
	char comm[NM_COMM_BYTES]; /* escaped once (nm_escape()), as all names here */
	uint32_t threads;
	double performance;
	bool tracked; /* its pages are looked at; else the next two are 0 */
	struct nm_exclusivity exclusivity;
	const uint64_t *pages; /* nr_nodes values: sampled pages known to live on each node */
};

/* Which threads share memory: the strongest pairs of the affinity matrix, each once. */
struct nm_recorded_pair {
	uint32_t a, b; /* tids, a < b */
	uint32_t weight;
};

struct nm_recorded_proposals {
	uint64_t considered, candidates; /* threads; of them all, in the lottery */
	uint64_t stopped_by_gate, stopped_by_owner, stopped_by_budget, stopped_by_mask;
};

struct nm_recorded_entry {
	uint64_t decision; /* 0: of none */
	uint64_t time_usec;
	int priority;
	const char *text;   /* the sentence */
	const char *fields; /* "NAME=value" a line */
};

enum nm_recorded_call {
	NM_CALL_TICK,
	NM_CALL_DRAIN, /* rings between ticks */
	NM_CALL_NUDGES,
	NM_CALL_EXAMINE,     /* number: how many processes at most */
	NM_CALL_OPEN_SOURCE, /* blind for a minute */
	NM_CALL_RELEASE,     /* number: pid */
	NM_CALL_RELOAD,	     /* text: the configuration */
	NM_CALLS
};

struct nm_recorded_step {
	enum nm_recorded_call call;
	uint64_t number;
	const char *text; /* NULL: none */
	size_t length;
};

/* What an operation said. `handle` is a number of the recording for a directory or file. */
struct nm_recorded_answer {
	const char *operation; /* as struct nm_platform_ops names it */
	int64_t handle;
	const char *path; /* "": none */
	int64_t result;	  /* what it returned */
	const uint8_t *bytes;
	size_t length;
};

struct nm_recorded_source {
	bool open;
	struct nm_source_status status;
	const double *taken_per_seen;
	unsigned nr_cpus; /* of them */
};

/* samples[i].home is set where the node was known; physical_address is 0. */
struct nm_recorded_samples {
	const struct nm_sample *samples;
	size_t nr_samples;
	const struct nm_task_event *events;
	size_t nr_events;
};

struct nm_recorded {
	enum nm_recorded_kind kind;
	uint64_t interval; /* the last INTERVAL's number; 0 before the first */
	uint64_t offset;   /* of its block in the file */
	unsigned nr_nodes; /* of the machine, in what was read: of arrays by node */
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
		struct {
			const struct nm_recorded_pair *items;
			size_t count;
		} sharing;
		struct nm_recorded_proposals proposals;
		struct nm_verdict verdict;
		struct nm_decision decision; /* its steps' `target` is set, `original` is not */
		struct nm_receipt receipt;
		struct nm_page_decision page_decision;
		struct nm_page_verdict page_verdict;
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
 * Opens a recording (fd: taken over, also on failure). Returns 0; -EPROTO: not a recording;
 * -EPROTONOSUPPORT: by a newer version; -ENOMEM; -errno. `error` gets a sentence with the reason.
 * Commands.
 */
int nm_recording_open(int fd, char *error, size_t error_size, struct nm_recording **ret);
/* The contents of one block, without file, checksums and packing: for tests and fuzzing. -ENOMEM.
 */
int nm_recording_open_block(const uint8_t *contents, size_t size, struct nm_recording **ret);
void nm_recording_free(struct nm_recording *recording);
NM_DEFINE_CLEANUP(struct nm_recording, nm_recording_free);

/*
 * The next record; what it points to is valid until the next call. 1: there is one; 0: the end,
 * also where a torn tail was cut off; -EBADMSG: damaged; -ENOMEM; -errno. A file that changes
 * meanwhile is read to its present end.
 */
int nm_recording_next(struct nm_recording *recording, struct nm_recorded *ret);

/* From the first record again. */
int nm_recording_rewind(struct nm_recording *recording);

/* Bytes at the end that were not written to their end; 0: none, or not there yet. */
uint64_t nm_recording_torn(const struct nm_recording *recording);

/* What was wrong with the place and the reason, after an error of nm_recording_next(). */
const char *nm_recording_error(const struct nm_recording *recording);

/* Only records of these kinds (bits 1 << kind) come; others are passed over, unread. */
void nm_recording_only(struct nm_recording *recording, uint32_t kinds);

const char *nm_recorded_kind_name(enum nm_recorded_kind kind);

/* One record, as a line (samples: a line each). */
void nm_recorded_print(const struct nm_recorded *record, FILE *out);
/* Everything, a line for each record and those within it; for people and tests. -errno of writing
 * or reading. */
int nm_recording_dump(struct nm_recording *recording, FILE *out);

/* Are they the same to the last bit? -ENOMEM. */
int nm_recorded_equal(const struct nm_recorded *a, const struct nm_recorded *b, unsigned nr_nodes,
		      bool *ret);

/* A topology of one's own, to outlive the record; the caller frees. -ENOMEM. */
int nm_recording_copy_topology(const struct nm_topology *topology, struct nm_topology **ret);

/* ---- writing ---- */

struct nm_recorder_writer;

struct nm_recording_options {
	uint64_t limit_bytes; /* 0: no limit; nothing is written beyond it */
	/*
	 * Names are hashed, and addresses by page; settings, sentences and what the machine said
	 * are left out, so that it cannot be replayed. The key is drawn by the caller, and
	 * forgotten.
	 */
	bool hashed;
	uint64_t key[2];
};

/* Writes the header to an empty file (fd: taken over, also on failure; a regular file, as blocks
 * are whole). -ENOMEM, -errno. */
int nm_recording_create(int fd, const struct nm_recording_options *options,
			struct nm_recorder_writer **ret);
/* Writes what is left. NULL is fine. */
void nm_recording_close(struct nm_recorder_writer *writer);
NM_DEFINE_CLEANUP(struct nm_recorder_writer, nm_recording_close);

/*
 * Adds a record, of which everything is copied. nr_nodes: of the machine, for arrays by node.
 * -EFBIG: the limit is reached: nothing more will be taken; -ENOMEM; -errno of the file, which are
 * the same ever after.
 */
int nm_recording_add(struct nm_recorder_writer *writer, const struct nm_recorded *record,
		     unsigned nr_nodes);
/* What was added is in the file; at the end of a tick. */
int nm_recording_flush(struct nm_recorder_writer *writer);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Operations that take the memory map lock of another process (mmap_lock: move_pages(2), reading
 * /proc/PID/maps and numa_maps) are performed by numa-migrd-worker, a process
 * of its own. A process that holds its own lock forever thus blocks a worker, and not the daemon.
 * This header contains the protocol, and the daemon's side of it.
 *
 * Each request gets one reply, over a SOCK_SEQPACKET socket and in native byte order (both ends
 * belong to one package on one machine). A worker has one client, and exits with it.
 *
 * A request is a job, in which the worker blocks. Between two system calls it looks at its
 * connection, and before each one that names a process by its number, and after the last, at the
 * start time of that process. All jobs have one deadline; the larger ones (page_jobs.h) begin
 * nothing after half of it, and answer with their progress. The daemon ends one by closing the
 * connection, and kills nothing.
 */
#ifndef NUMA_MIGRD_WORKER_H
#define NUMA_MIGRD_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "numa-migrd/base.h"
#include "platform/page_jobs.h"

#define NM_WORKER_VERSION 7U
#define NM_WORKER_SOCKET_PATH "/run/numa-migrd-worker.sock"
#define NM_WORKER_PROGRAM "/usr/libexec/numa-migrd/numa-migrd-worker"
#define NM_WORKER_PAGES_MOST 4096U

enum nm_worker_act {
	NM_WORKER_HELLO = 1, /* result: the worker's PID */
	NM_WORKER_WHERE,     /* addresses → statuses (move_pages(2) without nodes) */
	NM_WORKER_MAPPINGS, /* struct nm_mappings_order → nm_mappings_piece; -ESTALE: from the start
			     */
	NM_WORKER_UNITS,    /* struct nm_units_order → nm_units_moved */
	NM_WORKER_RANGES,   /* struct nm_ranges_order → nm_ranges_moved */
	NM_WORKER_COUNT,    /* → struct nm_node_pages, from numa_maps */
	NM_WORKER_SAMPLE,   /* → struct nm_node_pages, of some pages */
	NM_WORKER_IDENTIFY, /* result: the program, a number in nm_excluded_programs, from maps */
};

/* Followed by the arguments: `count` addresses of 8 bytes, or a struct without the unused end of
 * its array. */
struct nm_worker_request {
	uint32_t version;
	uint32_t act;
	int32_t pid;	      /* a thread that has not exited */
	uint32_t count;	      /* addresses; 0 for other requests */
	uint64_t start_ticks; /* of that thread; -ESRCH if it differs */
};

/* Followed by `bytes` bytes: statuses, or a struct (nm_units_moved as it was packed). */
struct nm_worker_reply {
	uint32_t version;
	int32_t result; /* return value of the call, or a negative errno */
	uint32_t bytes;
	uint32_t zero;
	uint64_t held_ns; /* duration of the job, without the transfer */
};

#define NM_WORKER_REQUEST_MOST (sizeof(struct nm_worker_request) + sizeof(struct nm_units_order))
#define NM_WORKER_BODY_MOST sizeof(struct nm_units_moved)
_Static_assert(sizeof(struct nm_ranges_order) <= sizeof(struct nm_units_order), "ranges fit");
_Static_assert(NM_WORKER_PAGES_MOST *UINT64_C(8) <= sizeof(struct nm_units_order), "pages fit");
_Static_assert(NM_WORKER_PAGES_MOST *UINT64_C(4) <= NM_WORKER_BODY_MOST, "statuses fit");
_Static_assert(sizeof(struct nm_mappings_piece) <= NM_WORKER_BODY_MOST, "mappings fit");
_Static_assert(sizeof(struct nm_node_pages) <= NM_WORKER_BODY_MOST, "counts fit");
_Static_assert(NM_WORKER_BODY_MOST <= 128U << 10, "a message that the socket takes");

/* A parsed request; the arguments are within the message. */
struct nm_worker_order {
	struct nm_worker_request request;
	const uint64_t *addresses;
	const struct nm_mappings_order *mappings;
	const struct nm_units_order *units;
	const struct nm_ranges_order *ranges;
};

/*
 * Parses a message of `length` bytes (aligned to 8). Returns 0, -EPROTO for another version, or
 * -EINVAL for a malformed request. Pure.
 */
int nm_worker_parse(const void *message, size_t length, struct nm_worker_order *ret);

/* ---- the daemon's side ---- */

/* COUNT, SAMPLE and IDENTIFY make no further system call after this time (-ETIMEDOUT), UNITS and
 * RANGES begin no further group of calls, and no job makes one after the client has closed the
 * connection. */
#define NM_WORKER_JOB_NS (1 * NM_NSEC_PER_SEC)
/* A worker that misses this deadline is abandoned. One that is starting may take longer for its
 * first reply. */
#define NM_WORKER_DEADLINE_NS (2 * NM_NSEC_PER_SEC)
#define NM_WORKER_HELLO_NS (60 * NM_NSEC_PER_SEC) /* no process is queried yet */
/* A process that missed a deadline is not queried during this time. */
#define NM_WORKER_REST_NS (600 * NM_NSEC_PER_SEC)

/* The callers; each has a worker of its own. */
enum nm_worker_caller { NM_WORKER_LOOP, NM_WORKER_MOVER, NM_WORKER_CALLERS };

/* An event to be logged once: a process missed its deadline, or no worker is available. */
struct nm_worker_news {
	uint32_t pid, uid; /* pid 0: no worker is available, because of `error` */
	enum nm_worker_act act;
	int error;
};

struct nm_worker_counts {
	uint64_t given_up;
	unsigned stuck; /* at present; includes those whose call was cancelled */
};

/*
 * State that outlives a client: the processes that are not queried for a while, and the workers
 * that were abandoned and have not ended. Owned by the daemon.
 */
#define NM_WORKER_MEMORY_NAME "unanswered" /* its file in the runtime directory */
struct nm_unresponsive_list;
void nm_unresponsive_list_new(struct nm_unresponsive_list **ret);
void nm_unresponsive_list_free(struct nm_unresponsive_list *memory);
NM_DEFINE_CLEANUP(struct nm_unresponsive_list, nm_unresponsive_list_free);
/* Loads the list that an earlier run of this boot has saved. Returns 0, also if there is no file;
 * -EBADMSG if damaged lines were skipped; or another negative errno. */
int nm_unresponsive_list_load(struct nm_unresponsive_list *memory, int directory,
			      const char *boot_id);
/* Saves the list if it has changed since it was last saved; the file is replaced atomically.
 * Returns 0 or a negative errno, in which case the next call tries again. */
int nm_unresponsive_list_save(struct nm_unresponsive_list *memory, int directory,
			      const char *boot_id);

struct nm_worker_client;

struct nm_worker_options {
	const char *socket_path; /* NULL: none, and the program is started */
	const char *program;	 /* started if nothing listens there; NULL: the installed program */
	uint64_t deadline_ns;	 /* 0: NM_WORKER_DEADLINE_NS. For tests */
	int proc_fd;		 /* /proc; must stay open while the client exists */
	struct nm_unresponsive_list
		*memory; /* must exist as long as the client; NULL: a list of its own */
};

/* Copies the options. The caller frees the client when no call is in progress. */
void nm_worker_client_new(const struct nm_worker_options *options, struct nm_worker_client **ret);
void nm_worker_client_free(struct nm_worker_client *client);
NM_DEFINE_CLEANUP(struct nm_worker_client, nm_worker_client_free);

/*
 * Starts the workers of all callers, because a start costs more CPU time than most calls, and a
 * program that is placed should not wait for it. Errors are left to the first call of each caller.
 * Never waits. Called when the platform is opened.
 */
void nm_worker_client_start(struct nm_worker_client *client);

/* A request, and the buffers for its reply. */
struct nm_worker_call {
	struct nm_worker_request request; /* the client sets version, pid and start_ticks */
	uint32_t pid;			  /* a thread of the process */
	uint64_t start_ticks;		  /* required start time; 0: any process with this number */
	const void *arguments;
	size_t arguments_size;
	void *body;
	size_t body_size; /* size of the buffer; then the number of bytes received, 0 without a
			     reply */
	uint64_t held_ns; /* from the reply; 0 without a reply */
};

/*
 * Sends a call to a worker, which is started if necessary. Returns 1, and `call` belongs to the
 * client until nm_worker_client_receive() or nm_worker_client_cancel() ends it; or a negative
 * errno. -EINPROGRESS: a worker is still working for this domain: try again later. -EALREADY: the
 * process missed a deadline recently, its domain has used its quota of stuck workers, or another
 * call of this caller is in progress. -ESRCH: the process has exited. Any other error: no worker
 * could be reached. Never waits.
 */
int nm_worker_client_send(struct nm_worker_client *client, enum nm_worker_caller which,
			  struct nm_worker_call *call);

/*
 * Receives the result of nm_worker_client_send(). Returns true if the operation has ended;
 * *ret_result is the result in the reply, or an error of that function. -ETIMEDOUT: the deadline
 * was missed, and the worker is abandoned. -EINPROGRESS: at the deadline the worker was still
 * running. Never waits.
 */
bool nm_worker_client_receive(struct nm_worker_client *client, enum nm_worker_caller which,
			      int *ret_result);
/* Ends the operation in progress, if there is one; its worker counts as stuck until it answers. */
void nm_worker_client_cancel(struct nm_worker_client *client, enum nm_worker_caller which);
/* Returns whether an operation is in progress. It ends when the socket is readable or at the
 * deadline (CLOCK_MONOTONIC). */
bool nm_worker_client_awaits(const struct nm_worker_client *client, enum nm_worker_caller which,
			     int *ret_fd, uint64_t *ret_deadline_ns);

/* Returns true and the next event in *ret, each event once. */
bool nm_worker_client_news(struct nm_worker_client *client, struct nm_worker_news *ret);
struct nm_worker_counts nm_worker_client_counts(struct nm_worker_client *client);

#endif

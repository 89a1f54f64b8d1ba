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
 * start time of that process. A query is answered by one job. A migration takes several: the daemon
 * reads the mappings, applies the rules, and has pages found and moved. All jobs have one deadline.
 * The daemon ends one by closing the connection, and kills nothing.
 */
#ifndef NUMA_MIGRD_WORKER_H
#define NUMA_MIGRD_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "numa-migrd/base.h"

#define NM_WORKER_VERSION 6U
#define NM_WORKER_SOCKET_PATH "/run/numa-migrd-worker.sock"
#define NM_WORKER_PROGRAM "/usr/libexec/numa-migrd/numa-migrd-worker"
#define NM_WORKER_PAGES_MOST 4096U
#define NM_WORKER_TEXT_MOST 16384U

enum nm_worker_act {
	NM_WORKER_HELLO = 1, /* result: the worker's PID */
	NM_WORKER_WHERE,     /* addresses → statuses (move_pages(2) without nodes) */
	NM_WORKER_ROUND,     /* addresses, nodes → struct nm_worker_moved (move_pages(2)) */
	NM_WORKER_OPEN_MAPS, /* file → its descriptor, by SCM_RIGHTS */
	NM_WORKER_READ_MAPS, /* that descriptor, maximum size, time → text; empty at its end */
	NM_WORKER_FIND,	     /* ranges, time → struct nm_worker_found */
	NM_WORKER_COUNT,     /* → struct nm_node_pages, from numa_maps */
	NM_WORKER_SAMPLE,    /* → struct nm_node_pages, of some pages */
	NM_WORKER_IDENTIFY,  /* result: the program, a number in nm_excluded_programs, from maps */
};

enum nm_maps_file { NM_MAPS, NM_NUMA_MAPS };

/* Followed by `count` addresses of 8 bytes (WHERE, ROUND) and `count` nodes of 4 bytes (ROUND), or
 * by `count` ranges (FIND). */
struct nm_worker_request {
	uint32_t version;
	uint32_t act;
	int32_t pid;	      /* a thread that has not exited */
	uint32_t count;	      /* pages; FIND: ranges; READ_MAPS: maximum number of bytes */
	uint64_t start_ticks; /* of that thread; -ESRCH if it differs */
	/* READ_MAPS, FIND: no further piece is read after this time. ROUND: slow_ns, last_offset */
	uint64_t budget_ns, last_offset;
	uint64_t file; /* OPEN_MAPS: enum nm_maps_file */
};

/* Followed by `bytes` bytes: statuses, text, or a struct. */
struct nm_worker_reply {
	uint32_t version;
	int32_t result; /* return value of the call, or a negative errno */
	uint32_t bytes;
	uint32_t zero;
	uint64_t held_ns; /* duration of the call, without the transfer */
};

/* A range of whole pages of one size to search, with the maximum number of pages that are in memory
 * (0: unknown). Ranges are in ascending order. */
#define NM_WORKER_RANGES_MOST 256U
#define NM_WORKER_PAGE_BYTES_MOST ((uint64_t)16 << 30)
struct nm_worker_range {
	uint64_t start, end, page_bytes, resident;
};

/* The answer to FIND: the pages that are in memory, in ascending order, and the node of each. */
struct nm_worker_found {
	uint64_t next; /* everything below has been searched */
	uint32_t count, zero;
	uint64_t addresses[NM_WORKER_PAGES_MOST];
	int32_t nodes[NM_WORKER_PAGES_MOST];
};

/* The answer to ROUND, of NM_WORKER_MOVED_BYTES(count) bytes. */
struct nm_worker_moved {
	struct nm_worker_try {
		uint64_t held_ns;
		uint32_t pages, zero; /* pages 0: not made */
	} tries[2];
	struct {
		int32_t node; /* where the page is now, or the negative errno for which it stays */
		int32_t last; /* the same at last_offset; without one as `node` */
	} pages[NM_WORKER_PAGES_MOST];
};
#define NM_WORKER_MOVED_BYTES(count)                                                               \
	(offsetof(struct nm_worker_moved, pages) +                                                 \
	 (count) * sizeof(((struct nm_worker_moved *)0)->pages[0]))

#define NM_WORKER_REQUEST_MOST                                                                     \
	(sizeof(struct nm_worker_request) + NM_WORKER_PAGES_MOST * UINT64_C(12))
#define NM_WORKER_BODY_MOST sizeof(struct nm_worker_found)
_Static_assert(NM_WORKER_PAGES_MOST *UINT64_C(4) <= NM_WORKER_BODY_MOST, "statuses fit");
_Static_assert(NM_WORKER_TEXT_MOST <= NM_WORKER_BODY_MOST, "text fits");
_Static_assert(sizeof(struct nm_worker_moved) <= NM_WORKER_BODY_MOST, "moved pages fit");
_Static_assert(NM_WORKER_RANGES_MOST * sizeof(struct nm_worker_range) <=
		       NM_WORKER_PAGES_MOST * UINT64_C(12),
	       "ranges fit");

/* A parsed request; the arrays are within the message. */
struct nm_worker_order {
	struct nm_worker_request request;
	const uint64_t *addresses;
	const int32_t *nodes;
	const struct nm_worker_range *ranges;
};

/*
 * Parses a message of `length` bytes (aligned to 8), received with or without a descriptor. Returns
 * 0, -EPROTO for another version, or -EINVAL for a malformed request. Pure. Called by the worker.
 */
int nm_worker_parse(const void *message, size_t length, bool has_fd, struct nm_worker_order *ret);

/* Pages of a process to move, each to its node, by the kernel's number. */
struct nm_page_round {
	unsigned count;
	const uint64_t *addresses;
	const int *nodes;
	uint64_t last_offset; /* also query the node at each address + last_offset; 0: do not */
	uint64_t slow_ns;     /* no second try if the first one took longer */
};

/* The calls of a round: move_pages(2) without nodes, and with them. They return what the kernel
 * does, or a negative errno. */
struct nm_round_calls {
	int (*where)(void *context, unsigned count, const uint64_t *addresses, int *ret_statuses);
	int (*move)(void *context, unsigned count, const uint64_t *addresses, const int *nodes,
		    int *statuses, uint64_t *ret_held_ns);
	void *context;
};

/*
 * Moves the pages, queries those for which the kernel reported no status, and tries once more, in
 * the opposite order, those that did not move and still may. Returns 0, or the negative errno of
 * the first try if it concerns the process, in which case only `tries` is valid. Called by the
 * worker, by the model of a machine and by tests.
 */
int nm_round_perform(const struct nm_page_round *round, const struct nm_round_calls *calls,
		     struct nm_worker_moved *ret);

/* ---- the daemon's side ---- */

/* COUNT, SAMPLE and IDENTIFY make no further system call after this time (-ETIMEDOUT), FIND
 * answers with what it has found, and no job after the client has closed the connection. */
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
/* Loads the list that an earlier run of this boot has saved. Returns 0, also if there is no
 * file; -EBADMSG if damaged lines were skipped; or another negative errno. Called by the daemon
 * at start. */
int nm_unresponsive_list_load(struct nm_unresponsive_list *memory, int directory,
			      const char *boot_id);
/* Saves the list if it has changed since it was last saved; the file is replaced atomically.
 * Returns 0 or a negative errno, in which case the next call tries again. Called by the daemon
 * after each tick and at its end. */
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
	uint32_t pid;			  /* a thread of the process; 0: see `directory` */
	int directory;			  /* /proc/PID, used if pid is 0 */
	uint64_t start_ticks;		  /* required start time; 0: any process with this number */
	const uint64_t *addresses;
	const int *nodes;
	const struct nm_worker_range *ranges;
	int fd; /* descriptor to send, or -1 */
	void *body;
	size_t body_size; /* size of the buffer; then the number of bytes received */
	uint64_t held_ns; /* from the reply; 0 without a reply */
	int ret_fd;	  /* descriptor received, or -1; the caller closes it */
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

/* SPDX-License-Identifier: MIT */
/*
 * Whatever takes another process's lock on its memory map (mmap_lock: move_pages(2), reading
 * /proc/PID/maps and numa_maps, writing clear_refs) is done by numa-migrd-worker, a process of its
 * own: a process that holds its own lock for ever blocks a worker, and not the daemon. Here: the
 * protocol, and the daemon's end of it.
 *
 * One request, one reply over a SOCK_SEQPACKET socket, native-endian (both ends are one package on
 * one machine). A worker has one client, and ends with it.
 */
#ifndef NUMA_MIGRD_WORKER_H
#define NUMA_MIGRD_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "numa-migrd/base.h"
#include "numa-migrd/tenant.h"

#define NM_WORKER_VERSION 3U
#define NM_WORKER_SOCKET_PATH "/run/numa-migrd-worker.sock"
#define NM_WORKER_PROGRAM "/usr/libexec/numa-migrd/numa-migrd-worker"
#define NM_WORKER_PAGES_MOST 4096U
#define NM_WORKER_TEXT_MOST 16384U
#define NM_WORKER_UNTOLD INT32_MIN /* status of a page of which the kernel told nothing */

enum nm_worker_act {
	NM_WORKER_HELLO = 1,  /* result: its pid */
	NM_WORKER_WHERE,      /* addresses → statuses (move_pages(2) without nodes) */
	NM_WORKER_MOVE,	      /* addresses, nodes → statuses (move_pages(2), MPOL_MF_MOVE) */
	NM_WORKER_OPEN_MAPS,  /* file → its descriptor, by SCM_RIGHTS */
	NM_WORKER_READ_MAPS,  /* that descriptor, most bytes, time → text; empty at its end */
	NM_WORKER_CLEAR_REFS, /* a descriptor of clear_refs, open for writing */
	NM_WORKER_FIND,	      /* ranges, time → struct nm_worker_found */
	NM_WORKER_MIGRATE,    /* nodes, node → how many pages stayed (migrate_pages(2)) */
};

enum nm_maps_file { NM_MAPS, NM_NUMA_MAPS };

/* Behind it `count` addresses of 8 bytes (WHERE, MOVE), and as many nodes of 4 bytes (MOVE); or ranges (FIND). */
struct nm_worker_request {
	uint32_t version;
	uint32_t act;
	int32_t pid;	/* of a thread that has not exited */
	uint32_t count; /* pages; FIND: ranges; READ_MAPS: bytes at most */
	uint64_t start_ticks; /* of that thread: -ESRCH where another has the number */
	uint64_t budget_ns;   /* READ_MAPS, FIND: it reads no further piece after this time */
	uint32_t file;	      /* OPEN_MAPS: enum nm_maps_file */
	/* MIGRATE, in the kernel's numbers: */
	uint32_t to_node;
	uint64_t from_nodes; /* a bit for each */
};
#define NM_WORKER_NODES_MOST 64U

/* Behind it `bytes` of statuses or text. */
struct nm_worker_reply {
	uint32_t version;
	int32_t result; /* what the call returned, or a negative errno */
	uint32_t bytes;
	uint32_t zero;
	uint64_t held_ns; /* how long the call took, without the way here and back */
};

/* A range of whole pages of one size to search, and how many are in memory at most (0: unknown);
 * ranges ascend. */
#define NM_WORKER_RANGES_MOST 256U
#define NM_WORKER_PAGE_BYTES_MOST ((uint64_t)16 << 30)
struct nm_worker_range {
	uint64_t start, end, page_bytes, resident;
};

/* The answer to FIND: pages that are in memory, ascending, and on which node each is or a negative errno. */
struct nm_worker_found {
	uint64_t next; /* all below has been looked at */
	uint32_t count, zero;
	uint64_t addresses[NM_WORKER_PAGES_MOST];
	int32_t nodes[NM_WORKER_PAGES_MOST];
};

#define NM_WORKER_REQUEST_MOST (sizeof(struct nm_worker_request) + NM_WORKER_PAGES_MOST * 12)
#define NM_WORKER_BODY_MOST sizeof(struct nm_worker_found)
_Static_assert(NM_WORKER_PAGES_MOST * 4 <= NM_WORKER_BODY_MOST, "statuses fit");
_Static_assert(NM_WORKER_TEXT_MOST <= NM_WORKER_BODY_MOST, "text fits");
_Static_assert(NM_WORKER_RANGES_MOST * sizeof(struct nm_worker_range) <= NM_WORKER_PAGES_MOST * 12, "ranges fit");

/* A request as it was understood; the arrays are within the message. */
struct nm_worker_order {
	struct nm_worker_request request;
	const uint64_t *addresses;
	const int32_t *nodes;
	const struct nm_worker_range *ranges;
};

/*
 * Understands a message of `length` bytes (at a multiple of 8), with or without a descriptor.
 * -EPROTO: another version; -EINVAL: not a request. Pure. The worker.
 */
int nm_worker_parse(const void *message, size_t length, bool has_fd, struct nm_worker_order *ret);

/* ---- the daemon's end ---- */

/* A call of the loop's worker is answered within this time, one of the mover's within that;
 * else the worker is given up. A worker that is just started may take longer for its first word. */
#define NM_WORKER_QUERY_NS (1 * NM_NSEC_PER_SEC)
#define NM_WORKER_MOVE_NS (5 * NM_NSEC_PER_SEC)
#define NM_WORKER_HELLO_NS (60 * NM_NSEC_PER_SEC) /* it asks of nobody yet, and holds up nobody else */
/* A caller's round of calls, which nm_worker_client_prepare() begins, ends after as many deadlines. */
#define NM_WORKER_ROUND_CALLS 2U
/* Who missed a deadline is not asked for so long. */
#define NM_WORKER_REST_NS (600 * NM_NSEC_PER_SEC)

/* Who calls: each has a worker of its own. */
enum nm_worker_caller { NM_WORKER_LOOP, NM_WORKER_MOVER, NM_WORKER_CALLERS };

/* A process missed its deadline, or there is no worker; to be logged once. */
struct nm_worker_news {
	uint32_t pid, uid; /* pid 0: no worker can be had, `error` says why */
	enum nm_worker_act act;
	int error;
};

struct nm_worker_counts {
	uint64_t given_up;
	unsigned stuck; /* of these: now */
};

/*
 * What outlives a client: processes that rest, and workers that were given up and have not ended.
 * Owned by the daemon; under a lock of its own.
 */
#define NM_WORKER_MEMORY_NAME "unanswered" /* its file in the runtime directory */
struct nm_unresponsive_list;
int nm_unresponsive_list_new(struct nm_unresponsive_list **ret);
/* A further reference. Each is dropped by nm_unresponsive_list_free(). From any thread. */
struct nm_unresponsive_list *nm_unresponsive_list_ref(struct nm_unresponsive_list *memory);
void nm_unresponsive_list_free(struct nm_unresponsive_list *memory);
NM_DEFINE_CLEANUP(struct nm_unresponsive_list, nm_unresponsive_list_free);
/* Takes up what an earlier run of this boot has saved. 0 also without a file; -EBADMSG where lines
 * were damaged and skipped; -errno. Daemon, start. */
int nm_unresponsive_list_load(struct nm_unresponsive_list *memory, int directory,
			      const char *boot_id);
/* Saves what has changed since it was saved last; the file is replaced at once. 0 or -errno, and
 * then the next call tries again. Daemon, after each tick, and at its end. */
int nm_unresponsive_list_save(struct nm_unresponsive_list *memory, int directory,
			      const char *boot_id);

struct nm_worker_client;

struct nm_worker_options {
	const char *socket_path; /* NULL: none, the program is started */
	const char *program;	 /* started where nobody listens there; NULL: as installed */
	const uint64_t *deadline_ns; /* by nm_worker_caller; NULL: as above. Tests */
	int proc_fd;		     /* /proc; must stay open as long as the client */
	struct nm_unresponsive_list
		*memory; /* the client keeps a reference; NULL: one of its own */
};

/* The caller frees, once nobody is in a call. Copies the options. -ENOMEM, -errno. */
int nm_worker_client_new(const struct nm_worker_options *options, struct nm_worker_client **ret);
void nm_worker_client_free(struct nm_worker_client *client);
NM_DEFINE_CLEANUP(struct nm_worker_client, nm_worker_client_free);

/* What is sent and where the answer goes. */
struct nm_worker_call {
	struct nm_worker_request request; /* pid, start_ticks: filled in by the call, from `pid` */
	uint32_t pid;		/* of a thread of the process, or 0 for: see `directory` */
	int directory;		/* /proc/PID, where pid is 0 */
	uint64_t start_ticks;	/* that it must have; 0: any process with the number */
	const uint64_t *addresses;
	const int *nodes;
	const struct nm_worker_range *ranges;
	int fd;			/* that goes along, or -1 */
	void *body;
	size_t body_size;	/* room; then how much came */
	uint64_t held_ns;	/* that came; 0 without a reply */
	int ret_fd;		/* that came along, or -1; the caller closes */
};

/*
 * Begins a round of calls, and has a worker for it, which may take NM_WORKER_HELLO_NS. 0: there is one; 1: it starts,
 * and nm_worker_client_receive() tells how that ended; -errno of reaching one. Without a round each call has its
 * deadline alone. Never waits.
 */
int nm_worker_client_prepare(struct nm_worker_client *client, enum nm_worker_caller caller);

/*
 * Has a worker do it: 1, and `call` is the client's until nm_worker_client_receive() or nm_worker_client_cancel() ends
 * it. -EINPROGRESS: the round has ended, or a worker is still at work for this tenant: try again later; -EALREADY: it
 * is not asked, since its tenant has its share of stuck workers, or since it missed a deadline lately; likewise where
 * a call of this caller is under way; -ECANCELED: nm_worker_client_stop(); -ESRCH: it is gone; -errno of reaching a
 * worker. Never waits.
 */
int nm_worker_client_send(struct nm_worker_client *client, enum nm_worker_caller caller,
			  struct nm_worker_call *call);

/*
 * What nm_worker_client_prepare() or nm_worker_client_send() began: true, and it has ended with *ret_result, the
 * reply's result or an error of those two. -ETIMEDOUT: the deadline was missed, and the worker is given up;
 * -EINPROGRESS: at the deadline it was still at work, or the round had ended. Never waits.
 */
bool nm_worker_client_receive(struct nm_worker_client *client, enum nm_worker_caller caller,
			      int *ret_result);
/* Ends what is under way, if anything is; its worker counts as stuck until it answers. */
void nm_worker_client_cancel(struct nm_worker_client *client, enum nm_worker_caller caller);
/* True: something is under way, and ends when the socket is readable or at the deadline (CLOCK_MONOTONIC). */
bool nm_worker_client_awaits(const struct nm_worker_client *client, enum nm_worker_caller caller,
			     int *ret_fd, uint64_t *ret_deadline_ns);

/* The first two, and waiting for what they began. The mover's thread, tests. */
int nm_worker_client_ready(struct nm_worker_client *client, enum nm_worker_caller caller);
int nm_worker_client_call(struct nm_worker_client *client, enum nm_worker_caller caller,
			  struct nm_worker_call *call);

/* True: calls of this caller, the one that is waited for too, end with -ECANCELED. From any thread. */
void nm_worker_client_stop(struct nm_worker_client *client, enum nm_worker_caller caller, bool stop);

/* Something to be told, each once: true, and it is in *ret. From any thread. */
bool nm_worker_client_news(struct nm_worker_client *client, struct nm_worker_news *ret);
struct nm_worker_counts nm_worker_client_counts(struct nm_worker_client *client);

#endif

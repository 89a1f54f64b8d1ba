/* SPDX-License-Identifier: MIT */
/*
 * The table of operations through which all other modules access the machine. There are three kinds
 * of implementation: Linux (platform/), Linux without writes (dry run, by construction), and the
 * fakes of the tests. Every function returns 0 or a byte count, or a negative errno. No function
 * logs, and none retries except after EINTR.
 *
 * None of them waits for another process: an operation that takes the memory map lock of a process
 * is submitted with memory_query, and its result is fetched with memory_poll; or, for the mover, it
 * returns NM_CALL_BEGUN, and its result is fetched with pages_poll.
 */
#ifndef NUMA_MIGRD_PLATFORM_H
#define NUMA_MIGRD_PLATFORM_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "platform/event.h"

struct nm_platform;

/* The result of a job of the mover that is in progress. Not an errno. */
#define NM_CALL_BEGUN INT_MIN

/* Called for each name in a directory except "." and "..". A negative return value ends the
 * listing. */
typedef int (*nm_name_fn)(void *context, const char *name);

/* The owner of a directory, and whether its group or all users may write to it. */
struct nm_owner {
	uint32_t uid;
	bool others_write;
};

/* A query about the memory of a process. */
enum nm_memory_query_kind {
	NM_MEMORY_QUERY_WHERE,	   /* the node of each of the given pages */
	NM_MEMORY_QUERY_NUMA_MAPS, /* the nodes of all pages, from numa_maps */
	NM_MEMORY_QUERY_PAGES,	   /* the nodes of a sample: up to 512 of its own pages, and 256 of
				    * others, found by searching the mappings */
	NM_MEMORY_QUERY_PROGRAM	   /* the program, from maps: `result` is its number in
				    * nm_excluded_programs; 0: another one */
};

struct nm_memory_query {
	enum nm_memory_query_kind kind;
	uint32_t pid;
	uint64_t start_ticks; /* field 22 of stat; 0 (WHERE only) accepts any process with this
			       * PID */
	unsigned count;	      /* WHERE: number of addresses */
	const uint64_t *addresses;
	uint64_t domain; /* used internally by the platform */
};

/* `result` is -ESRCH if the process has exited, -EFBIG if the text is longer than the limit,
 * -ETIMEDOUT or -EALREADY as in worker.h, or another negative errno. */
struct nm_memory_answer {
	int result;
	int *nodes; /* WHERE: the kernel's node number of each page, or a negative errno for a page
		     * that is not in memory */
	unsigned count;		     /* number of entries in nodes */
	struct nm_node_pages *pages; /* NUMA_MAPS and PAGES; owned */
	uint64_t took_ns;
};
static inline void nm_memory_answer_clear(struct nm_memory_answer *answer)
{
	free(answer->nodes);
	free(answer->pages);
	*answer = (struct nm_memory_answer){0};
}

struct nm_node_pages;
struct nm_worker_news;
struct nm_mappings_order;
struct nm_mappings_piece;
struct nm_units_order;
struct nm_units_moved;
struct nm_ranges_order;
struct nm_ranges_moved;
struct nm_worker_counts;
struct nm_unresponsive_list;

struct nm_platform_ops {
	/* Returns CLOCK_MONOTONIC in ns. The tick calls it at the start of an interval; stages get
	 * the time as an argument. */
	uint64_t (*now_ns)(struct nm_platform *platform);
	/* Returns CLOCK_BOOTTIME in ns. NULL: /proc/uptime is read instead, for which the kernel
	 * visits all CPUs. */
	uint64_t (*boot_ns)(struct nm_platform *platform);

	/*
	 * Functions for files below the root; paths are relative ("proc/stat"). `directory` is an
	 * fd from open_directory or NM_ROOT. read_file reads a whole file of at most size - 1
	 * bytes, NUL-terminates it and returns its length, or -EFBIG if it does not fit; the buffer
	 * then has its first `size` bytes.
	 */
	int (*open_directory)(struct nm_platform *platform, int directory, const char *path);
	ssize_t (*read_file)(struct nm_platform *platform, int directory, const char *path,
			     char *buffer, size_t size);
	int (*list_directory)(struct nm_platform *platform, int directory, const char *path,
			      nm_name_fn each, void *context);
	void (*close)(struct nm_platform *platform, int fd);

	/*
	 * read_attribute reads an extended attribute (xattr(7)) of an open directory, without a
	 * terminating NUL, and returns its length; -ENODATA if there is none, -ERANGE if it is
	 * longer than size, -EOPNOTSUPP if the file system has no attributes. owner reports which
	 * users could have set the attribute.
	 */
	ssize_t (*read_attribute)(struct nm_platform *platform, int directory, const char *name,
				  void *buffer, size_t size);
	int (*owner)(struct nm_platform *platform, int directory, struct nm_owner *ret);

	/* sched_getaffinity(2) and sched_setaffinity(2) on one thread. affinity_set fails with
	 * -EROFS in a dry run. Called only by moves of threads. */
	int (*affinity_get)(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret);
	int (*affinity_set)(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus);

	/*
	 * Opens one event of the fixed list on one CPU, disabled and close-on-exec, either directly
	 * or, if the kernel denies access (perf_event_paranoid 3), through the root helper. Returns
	 * the fd.
	 */
	int (*event_open)(struct nm_platform *platform, enum nm_event_kind kind, int cpu,
			  uint64_t period);
	/*
	 * Lists the hardware events of this machine that match `selection`, best first within a
	 * kind. A listed event may still fail to open or to count. -ENOENT, -EINVAL: selection.pmu
	 * is unknown or malformed.
	 */
	int (*hardware_list)(struct nm_platform *platform,
			     const struct nm_event_selection *selection, struct nm_event_list *ret);
	/* Opens one of the listed events, also directly or through the helper. The helper uses
	 * root's configuration instead of selection.pmu, which is the daemon's. */
	int (*hardware_open)(struct nm_platform *platform, const struct nm_event_request *request,
			     struct nm_event_fds *ret);
	int (*event_map)(struct nm_platform *platform, int fd, size_t data_bytes, void **ret);
	void (*event_unmap)(struct nm_platform *platform, void *ring, size_t data_bytes);
	/* Maps the AUX area of an event whose ring is already mapped. `aux_bytes` is a power of
	 * two; the area follows the ring in the file. The caller must unmap it before the ring. */
	int (*aux_map)(struct nm_platform *platform, int fd, void *ring, size_t data_bytes,
		       size_t aux_bytes, void **ret);
	void (*aux_unmap)(struct nm_platform *platform, void *area, size_t aux_bytes);
	int (*event_ioctl)(struct nm_platform *platform, int fd, unsigned long request,
			   void *argument);
	int (*event_read)(struct nm_platform *platform, int fd, void *buffer, size_t size);

	/*
	 * Submits a query about the memory of another process; the answer may take long or never
	 * arrive. The ticket is never 0. -ESRCH: the process has exited, or its PID was reused;
	 * -EAGAIN: the limit of pending queries is reached; or the negative errno of examining the
	 * process.
	 */
	int (*memory_query)(struct nm_platform *platform, const struct nm_memory_query *question,
			    uint64_t *ret_query_id);
	/* Fetches the answer of a query, once: returns 0, and the caller clears the answer; -EAGAIN
	 * if it has not arrived yet; -ENOENT if the ticket is unknown. */
	int (*memory_poll)(struct nm_platform *platform, uint64_t query_id,
			   struct nm_memory_answer *ret);
	/* Discards a query and its answer. */
	void (*memory_cancel)(struct nm_platform *platform, uint64_t query_id);
	/*
	 * A descriptor that is readable when queries or the call of the mover can advance, and the
	 * function that advances queries: it receives results, and abandons calls that have missed
	 * their deadline. It never waits. memory_poll advances queries too. NULL: everything is
	 * answered at once.
	 */
	int (*query_fd)(struct nm_platform *platform);
	void (*query_progress)(struct nm_platform *platform);

	/*
	 * The jobs of the mover (page_jobs.h), about a process that is identified by the number and
	 * start time of one of its threads that has not exited (0: any thread with this number).
	 * They return 0, or a negative errno: -ESRCH, also if the number was reused by the time of
	 * the call; -EROFS for moves in a dry run; -ETIMEDOUT or -EALREADY as in worker.h. Or they
	 * return NM_CALL_BEGUN: then the arguments and the places for results belong to the
	 * platform until pages_poll returns true or pages_cancel is called, and no further job may
	 * begin. A job ends after at most NM_WORKER_DEADLINE_NS.
	 *
	 * mappings_read reads the mappings in pieces; *ret_held_ns is the time that it took,
	 * without the transfer. units_move and ranges_move move pages; after an error, only the
	 * tries in *ret are valid. Each try drains the per-CPU lists of every CPU and waits for all
	 * of them.
	 */
	int (*mappings_read)(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			     const struct nm_mappings_order *order, struct nm_mappings_piece *ret,
			     uint64_t *ret_held_ns);
	int (*units_move)(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			  const struct nm_units_order *order, struct nm_units_moved *ret);
	int (*ranges_move)(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			   const struct nm_ranges_order *order, struct nm_ranges_moved *ret);
	/*
	 * Returns true, and the result in *ret, if the job in progress has ended. NULL if no job
	 * returns NM_CALL_BEGUN. Called only by the mover.
	 */
	bool (*pages_poll)(struct nm_platform *platform, int *ret);
	/* Abandons the job in progress, if there is one. NULL as for pages_poll. Called only by
	 * the mover, when it ends. */
	void (*pages_cancel)(struct nm_platform *platform);

	/*
	 * worker_news returns true and one process that has missed a deadline since the last call
	 * (worker.h). worker_counts returns how many workers were abandoned. NULL if the platform
	 * has no workers.
	 */
	bool (*worker_news)(struct nm_platform *platform, struct nm_worker_news *ret);
	void (*worker_counts)(struct nm_platform *platform, struct nm_worker_counts *ret);

	/*
	 * Makes kernel.numa_balancing balance nodes (1) or not (0), without changing its other
	 * bits, or restores it now (-1). The setting lasts until nm_platform_free(), or until the
	 * daemon's death: the helper restores the old value when the connection closes. Setting the
	 * current value again costs one exchange, and sets it again after a restart of the helper.
	 * -EPERM: root's configuration does not allow it. -ENOENT: this kernel has no automatic
	 * NUMA balancing, or there is no helper.
	 */
	int (*numa_balancing_set)(struct nm_platform *platform, int value);
};

#define NM_ROOT (-1)

struct nm_platform {
	const struct nm_platform_ops *ops;
	/* Ends what the platform has started, and frees it. */
	void (*free)(struct nm_platform *platform);
};

struct nm_platform_options {
	const char *root_path;	    /* "/" except in tests */
	const char *helper_socket;  /* NULL: no helper; privileged operations are performed in this
				     * process */
	const char *worker_socket;  /* if NULL, or if nothing listens there, workers are started as
				     * programs */
	const char *worker_program; /* NULL: the installed program, or the one in the build tree */
	struct nm_config_files config; /* authorizes privileged operations in this process; path
					* NULL: they are refused */
	const char *state_path; /* state file of these operations; NULL: NM_HELPER_STATE_PATH */
	bool dry_run;		/* reads the real machine, writes nothing */
	bool start_workers;	/* now, and not with the first call */
	struct nm_unresponsive_list *unresponsive; /* see worker.h; must exist as long as the
						    * platform; NULL: a list of its own */
};

/*
 * Creates the Linux implementation and copies the options. The caller frees it with
 * nm_platform_free(). Errors: the negative errno of opening the root or its proc/.
 */
int nm_platform_linux_new(const struct nm_platform_options *options, struct nm_platform **ret);

/* Creates a platform with the operations on files and the clock only; the others are NULL. Errors:
 * the negative errno of opening the root. */
int nm_platform_files_new(const char *root_path, struct nm_platform **ret);
static inline void nm_platform_free(struct nm_platform *platform)
{
	if (platform)
		platform->free(platform);
}
NM_DEFINE_CLEANUP(struct nm_platform, nm_platform_free);

/* ---- memory queries ---- */

/*
 * The queries of the main loop that may take long: the order in which they are answered, and the
 * time that is charged to their domains. Part of platform/, behind nm_platform_ops.memory_query.
 * Pure: times are arguments.
 *
 * One query is processed at a time, for all domains. After an answer, the domain's next queries are
 * processed after those of others, for NM_ANSWER_REST_SHARE times the duration of the answer, so
 * that the domain uses 10 % of the time while others wait.
 * While the rest of that time is longer than after an answer of NM_ANSWER_USUAL_NS, the domain's
 * queries are refused (-EALREADY), because others would have to wait for the next one. The duration
 * is the one that the worker measures: neither the start of a worker nor a busy main loop is
 * charged to a domain.
 */
#define NM_ANSWER_REST_SHARE 9U
#define NM_ANSWER_USUAL_NS (100 * NM_NSEC_PER_MSEC)

struct nm_query_queue;

/* The caller frees it. */
void nm_queue_new(struct nm_query_queue **ret);
void nm_queue_free(struct nm_query_queue *queue);
NM_DEFINE_CLEANUP(struct nm_query_queue, nm_queue_free);

/* These functions implement memory_query, memory_poll and memory_cancel of nm_platform_ops.
 * nm_queue_ask() returns -EAGAIN if the domain has used its quota of NM_QUERIES_MOST. */
int nm_queue_ask(struct nm_query_queue *queue, const struct nm_memory_query *question,
		 uint64_t *ret_query_id);
int nm_queue_take(struct nm_query_queue *queue, uint64_t query_id, struct nm_memory_answer *ret);
void nm_queue_forget(struct nm_query_queue *queue, uint64_t query_id);

/* Returns the next query, which is in progress from now on; NULL: none waits, or another one is in
 * progress. Queries of domains that have used their time are answered here. */
const struct nm_memory_query *nm_queue_next(struct nm_query_queue *queue, uint64_t now_ns);
/* Ends the query in progress, whose answer took answer->took_ns, and takes the answer over. */
void nm_queue_answer(struct nm_query_queue *queue, struct nm_memory_answer *answer,
		     uint64_t now_ns);

/* ---- lock of the runtime directory ---- */

#define NM_LOCK_NAME "lock"

/*
 * Locks the runtime directory (open) by flock(2) on a file of its own, which only its user may
 * open. proc_fd is /proc. The lock lasts until *ret is closed. A holder that can never run again,
 * because it is exiting or SIGKILL is pending, but which sleeps in the kernel where nothing wakes
 * it, gets one second to end; then its file is replaced. A system call that it has begun may still
 * take effect later: sched_setaffinity(2) on the thread in the last line of its ledger.
 *
 * Returns 0; -EBUSY if the holder may still run, or if that cannot be determined because it is in
 * another PID namespace; or another negative errno. Part of platform/.
 */
int nm_lock_take(int directory, int proc_fd, int *ret);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The only door to the machine. Implementations: Linux (platform/), Linux without writes (dry run,
 * by construction), and the tests' fakes. Every function returns 0 or a byte count, or a negative
 * errno; none logs, none retries but for EINTR.
 *
 * The mover's thread calls now_ns, open_directory, list_directory, read_file, close, open_maps,
 * read_maps, pages_where, pages_find, pages_migrate and pages_move beside the loop's: these may
 * share no state that changes, but under a lock that is held for moments. All others are the
 * loop's, and none of these waits for another process: what takes the lock of its memory map is
 * asked for (memory_query, memory_poll).
 */
#ifndef NUMA_MIGRD_PLATFORM_H
#define NUMA_MIGRD_PLATFORM_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "numa-migrd/base.h"
#include "numa-migrd/tenant.h"
#include "numa-migrd/event.h"

struct nm_platform;

/* Called for each name in a directory but "." and ".."; a negative return stops the listing. */
typedef int (*nm_name_fn)(void *context, const char *name);

/* Whose a directory is, and whether its group or everyone may write to it. */
struct nm_owner {
	uint32_t uid;
	bool others_write;
};

/* What the loop wants to know of a process's memory, or done to it. */
enum nm_memory_query_kind {
	NM_MEMORY_QUERY_WHERE,	    /* on which node each of some pages is */
	NM_MEMORY_QUERY_NUMA_MAPS,  /* the whole text of its numa_maps */
	NM_MEMORY_QUERY_CLEAR_REFS, /* that the next write to each of its pages faults (clear_refs
				       4) */
	NM_MEMORY_QUERY_PAGES,	    /* on which node each of 512 pages of its own memory is that are
				       found */
	NM_MEMORY_QUERY_RUNTIME /* which runtime it has, by its maps: `result` is an enum nm_runtime
				 */
};

struct nm_memory_query {
	enum nm_memory_query_kind kind;
	uint32_t pid;
	uint64_t start_ticks; /* field 22 of its stat; 0 (WHERE): any process with the number */
	unsigned count;	      /* WHERE: pages */
	const uint64_t *addresses;
	/* The platform's own use. */
	struct nm_tenant tenant;
	int fd;
};

/* -ESRCH: it is gone; -EFBIG: more text than is read; -ETIMEDOUT, -EALREADY: see worker.h; -errno. */
struct nm_memory_answer {
	int result;
	int *nodes;	/* WHERE: the kernel's numbers, or a negative errno for a page that is nowhere;
			 * PAGES: of those in memory */
	unsigned count; /* of them */
	char *text;	/* NUMA_MAPS */
	uint64_t took_ns;
};
static inline void nm_memory_answer_clear(struct nm_memory_answer *answer)
{
	free(answer->nodes);
	free(answer->text);
	*answer = (struct nm_memory_answer){0};
}

struct nm_worker_news;
struct nm_worker_range;
struct nm_worker_found;
struct nm_worker_counts;
struct nm_unresponsive_list;

struct nm_platform_ops {
	/* CLOCK_MONOTONIC in ns. Tick, at the start of an interval: stages get time as an argument. */
	uint64_t (*now_ns)(struct nm_platform *platform);

	/*
	 * Files below the root (paths relative: "proc/stat"). `directory` is an fd from open_directory or
	 * NM_ROOT. read_file reads a whole file of at most size - 1 bytes, NUL-terminates it and returns its
	 * length; -EFBIG when it does not fit.
	 */
	int (*open_directory)(struct nm_platform *platform, int directory, const char *path);
	ssize_t (*read_file)(struct nm_platform *platform, int directory, const char *path,
			     char *buffer, size_t size);
	int (*list_directory)(struct nm_platform *platform, int directory, const char *path,
			      nm_name_fn each, void *context);
	/*
	 * A file that is long to read, in pieces: read_some is one read(2) of at most `size` bytes,
	 * 0 at the end. Closed by close. Doctor.
	 */
	int (*open_file)(struct nm_platform *platform, int directory, const char *path);
	ssize_t (*read_some)(struct nm_platform *platform, int fd, char *buffer, size_t size);
	void (*close)(struct nm_platform *platform, int fd);

	/*
	 * An extended attribute (xattr(7)) of an open directory, as bytes without a NUL, and who may have
	 * set it. read_attribute returns its length; -ENODATA: there is none; -ERANGE: longer than size;
	 * -EOPNOTSUPP: not on this file system. Steering.
	 */
	ssize_t (*read_attribute)(struct nm_platform *platform, int directory, const char *name,
				  void *buffer, size_t size);
	int (*owner)(struct nm_platform *platform, int directory, struct nm_owner *ret);

	/* sched_getaffinity(2), sched_setaffinity(2) on one thread; -EROFS from a dry run. Actuate only. */
	int (*affinity_get)(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret);
	int (*affinity_set)(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus);

	/*
	 * Opens one event of the fixed list on one CPU, disabled, close-on-exec: directly, or through the
	 * root helper where the kernel refuses us (perf_event_paranoid 3). Returns the fd. Sample stage.
	 */
	int (*event_open)(struct nm_platform *platform, enum nm_event_kind kind, int cpu,
			  uint64_t period);
	/*
	 * The hardware events of this machine for what is wanted, best first within a kind; one that is in
	 * the list may still be refused or not count. -ENOENT, -EINVAL: wishes.pmu. Sample stage.
	 */
	int (*hardware_list)(struct nm_platform *platform, const struct nm_event_wishes *wishes,
			     struct nm_event_list *ret);
	/* Opens one of them likewise; wishes.pmu is ours, the helper goes by root's configuration. */
	int (*hardware_open)(struct nm_platform *platform, const struct nm_event_request *request,
			     struct nm_event_fds *ret);
	int (*event_map)(struct nm_platform *platform, int fd, size_t data_bytes, void **ret);
	void (*event_unmap)(struct nm_platform *platform, void *ring, size_t data_bytes);
	/*
	 * Maps the AUX area of an event whose ring is mapped already, of as many bytes (a power of two): its
	 * place in the file is after the ring. To be unmapped before the ring.
	 */
	int (*aux_map)(struct nm_platform *platform, int fd, void *ring, size_t data_bytes,
		       size_t aux_bytes, void **ret);
	void (*aux_unmap)(struct nm_platform *platform, void *area, size_t aux_bytes);
	int (*event_ioctl)(struct nm_platform *platform, int fd, unsigned long request,
			   void *argument);
	int (*event_read)(struct nm_platform *platform, int fd, void *buffer, size_t size);

	/*
	 * Hands over a question about another process's memory, which may take long or get no answer. The
	 * ticket is never 0. -ESRCH: it is gone, or another has its number; -EAGAIN: as many wait as may;
	 * -ENOMEM; -errno of looking at it. CLEAR_REFS: -EROFS from a dry run; -EBUSY: the process itself
	 * holds a pagemap or clear_refs descriptor, so it uses soft-dirty; -EFBIG: it has too many open
	 * files for that to be known; -EPERM. Sample stage, balance, injection, roster.
	 */
	int (*memory_query)(struct nm_platform *platform, const struct nm_memory_query *question,
			    uint64_t *ret_ticket);
	/* Its answer, once: 0, and the caller clears it; -EAGAIN: not yet; -ENOENT: there is no such
	 * question. */
	int (*memory_poll)(struct nm_platform *platform, uint64_t ticket,
			   struct nm_memory_answer *ret);
	/* Nobody will take it. */
	void (*memory_cancel)(struct nm_platform *platform, uint64_t ticket);

	/*
	 * /proc/PID's maps or numa_maps, below a directory of a process or thread, in pieces: read_maps
	 * gives at most `size` bytes, 0 at the end, and goes on for budget_ns at most; *ret_held_ns: how
	 * long the kernel was at it, without the way there. Closed by close. These and the two below
	 * end at the latest after NM_WORKER_MOVE_NS: -ETIMEDOUT, -EALREADY and -ECANCELED as in
	 * worker.h. Mover only.
	 */
	int (*open_maps)(struct nm_platform *platform, int directory, const char *name);
	ssize_t (*read_maps)(struct nm_platform *platform, int directory, int fd, char *buffer,
			     size_t size, uint64_t budget_ns, uint64_t *ret_held_ns);

	/*
	 * Asks on which node each of `count` pages of a process is (move_pages(2) without nodes):
	 * ret gets the kernel's node number, or a negative errno for a page that is nowhere. The
	 * process is that of a thread that has not exited, by its number and its own start time (0:
	 * any that has the number): -ESRCH where another has it by the time of the call. In
	 * batches: it is looked up and locked for each call. Mover only.
	 */
	int (*pages_where)(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			   unsigned count, const uint64_t *addresses, int *ret);

	/*
	 * Finds pages of such a process that are in memory, and on which node each is, as pages_where does: in
	 * ranges that ascend and are whole pages of `page_bytes`, NM_WORKER_RANGES_MOST at most, one after
	 * the other until NM_WORKER_PAGES_MOST are found or budget_ns are over. 0, or a negative errno. Mover only.
	 */
	int (*pages_find)(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			  unsigned nr_ranges, const struct nm_worker_range *ranges, uint64_t budget_ns,
			  struct nm_worker_found *ret);

	/*
	 * Moves all pages of such a process that no other maps from these nodes (a bit for each of the kernel's
	 * first NM_WORKER_NODES_MOST numbers) to that one, whatever the policy of their mappings
	 * (migrate_pages(2)). Returns how many stayed, or a negative errno; -EROFS from a dry run. The same of
	 * *ret_held_ns as of pages_move. Mover only.
	 */
	int (*pages_migrate)(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			     uint64_t from_nodes, unsigned to_node, uint64_t *ret_held_ns);

	/*
	 * Moves pages of such a process that no other maps (move_pages(2), MPOL_MF_MOVE), each to the node of
	 * the kernel's number given for it. statuses: the node that each is on now, or a negative errno;
	 * what the caller wrote there stays where the kernel does not tell, as it does for pages around one
	 * that it could not move. Returns how many it gave up on, or a negative errno; -EROFS from a dry run.
	 * Each call drains every CPU and waits for all of them; *ret_held_ns as above, also where it fails.
	 * Mover only.
	 */
	int (*pages_move)(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			  unsigned count, const uint64_t *addresses, const int *nodes,
			  int *statuses, uint64_t *ret_held_ns);
	/*
	 * Begins a round of these calls, which has one deadline (nm_worker_client_ready()), and has what
	 * they take started, so that the first of them does not wait for it. Takes up to
	 * NM_WORKER_HELLO_NS; 0, -ECANCELED or another negative errno, and the first call
	 * tries again. NULL: nothing is to be started here. Mover only.
	 */
	int (*pages_prepare)(struct nm_platform *platform);
	/*
	 * True: the mover's calls, one under way too, end with -ECANCELED from now on. NULL: none of them
	 * takes long here. The loop, when it ends the mover, and when it begins one.
	 */
	void (*pages_stop)(struct nm_platform *platform, bool stop);

	/*
	 * Who missed a deadline since the last call (worker.h): true, and one of these is in *ret; and how
	 * many workers were given up. NULL: there are none here. Tick.
	 */
	bool (*worker_news)(struct nm_platform *platform, struct nm_worker_news *ret);
	void (*worker_counts)(struct nm_platform *platform, struct nm_worker_counts *ret);

	/*
	 * Write-protects this very process's pages, as NM_MEMORY_QUERY_CLEAR_REFS does for others:
	 * to see whether that has an effect here. Injection.
	 */
	int (*clear_refs)(struct nm_platform *platform, pid_t pid, uint64_t start_ticks);

	/*
	 * Has kernel.numa_balancing balance nodes (1) or not (0), whose other bits stay, or puts it back now
	 * (-1). It lasts until nm_platform_free() (or our death: the helper restores the old value when the
	 * connection closes). Setting what is already set
	 * costs one exchange, and sets it again after a restart of the helper. -EPERM: root's configuration
	 * does not allow it. -ENOENT: this kernel has no automatic balancing, or there is no helper.
	 */
	int (*numa_balancing_set)(struct nm_platform *platform, int value);
};

#define NM_ROOT (-1)

struct nm_platform {
	const struct nm_platform_ops *ops;
	/* The owner gives it up: ends what the owner began. NULL: there is nothing to end. */
	void (*close)(struct nm_platform *platform);
	/* After that, when nobody refers to it any more. On whichever thread drops the last
	 * reference. */
	void (*free)(struct nm_platform *platform);
	struct nm_references references;
};

struct nm_platform_options {
	const char *root_path;     /* "/" but in tests */
	const char *helper_socket; /* NULL: no helper, privileged acts are done in this process */
	const char *worker_socket; /* NULL, or nobody there: workers are started as programs */
	const char *worker_program; /* NULL: the one that is installed or was built */
	const char *config_path;   /* what acts in this process are held against; NULL: both refused */
	const char *state_path;    /* their NM_HELPER_STATE_PATH; NULL: that one */
	bool dry_run;              /* real reads, no writes */
	/* The generation that each act on the machine belongs to: once a later one has taken over,
	 * -ECANCELED. NULL: none. The platform keeps a reference. */
	struct nm_generation *generation;
	struct nm_unresponsive_list
		*unanswered; /* worker.h; NULL: a new one. The platform keeps a reference. */
};

/*
 * The Linux implementation. The caller frees. Copies the options. For one thread, but for what is said above.
 * Errors: -ENOMEM, -errno of opening the root or its proc/.
 */
int nm_platform_linux_new(const struct nm_platform_options *options, struct nm_platform **ret);
/* A further reference, for a thread that may still be in a call when the owner frees the platform.
 * The mover. */
static inline struct nm_platform *nm_platform_ref(struct nm_platform *platform)
{
	nm_references_add(&platform->references);
	return platform;
}
static inline void nm_platform_unref(struct nm_platform *platform)
{
	if (platform && nm_references_drop(&platform->references))
		platform->free(platform);
}
/* The owner's: closes the platform, and drops its reference. */
static inline void nm_platform_free(struct nm_platform *platform)
{
	if (platform && platform->close)
		platform->close(platform);
	nm_platform_unref(platform);
}
NM_DEFINE_CLEANUP(struct nm_platform, nm_platform_free);

#endif

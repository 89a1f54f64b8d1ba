/* SPDX-License-Identifier: MIT */
/* The state of the Linux platform, and the operations that are in files of their own. */
#ifndef NUMA_MIGRD_PLATFORM_LINUX_H
#define NUMA_MIGRD_PLATFORM_LINUX_H

#include "files.h"
#include "platform/helper.h"
#include "numa-migrd/platform.h"
#include "platform/worker.h"

struct nm_linux {
	struct nm_files files;
	int proc;
	int helper;		 /* connection, or -1 */
	uint64_t helper_rest_ns; /* not called before this time, because it was late */
	int balancing;		 /* value that we set kernel.numa_balancing to, or -1 */
	char *helper_socket;	 /* NULL: privileged operations are performed in this process */
	char *config_path, *config_folder, *state_path;
	unsigned long
		*mask; /* as wide as the kernel's CPU bitmaps, so that no move has to allocate */
	unsigned mask_longs;
	struct nm_worker_client *workers;
	struct nm_linux_queries *queries; /* the queries of the main loop to them */
	struct nm_worker_call pages_call; /* the mover's call in progress */
	uint64_t *ret_held_ns;		  /* of this call; may be NULL */
};

static inline struct nm_linux *nm_linux(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct nm_linux, files.base);
}

/* nm_platform_ops, linux_query.c */
int nm_linux_memory_query(struct nm_platform *platform, const struct nm_memory_query *query,
			  uint64_t *ret_query_id);
int nm_linux_memory_poll(struct nm_platform *platform, uint64_t query_id,
			 struct nm_memory_answer *ret);
void nm_linux_memory_cancel(struct nm_platform *platform, uint64_t query_id);
int nm_linux_query_fd(struct nm_platform *platform);
void nm_linux_query_progress(struct nm_platform *platform);

/* nm_platform_ops, linux_memory.c */
int nm_linux_mappings_read(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			   const struct nm_mappings_order *order, struct nm_mappings_piece *ret,
			   uint64_t *ret_held_ns);
int nm_linux_units_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			const struct nm_units_order *order, struct nm_units_moved *ret);
int nm_linux_ranges_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			 const struct nm_ranges_order *order, struct nm_ranges_moved *ret);
bool nm_linux_pages_poll(struct nm_platform *platform, int *ret);
void nm_linux_pages_cancel(struct nm_platform *platform);
bool nm_linux_worker_news(struct nm_platform *platform, struct nm_worker_news *ret);
void nm_linux_worker_counts(struct nm_platform *platform, struct nm_worker_counts *ret);

/* linux_query.c. The caller frees it, which cancels the query in progress. Returns 0 or another
 * negative errno. */
struct nm_linux_queries;
int nm_linux_queries_new(struct nm_worker_client *workers, struct nm_linux_queries **ret);
void nm_linux_queries_free(struct nm_linux_queries *self);
/* Makes the descriptor of nm_linux_query_fd() readable when an operation of either caller can
 * advance. Called after each operation. */
void nm_linux_watch(struct nm_linux_queries *self);

#endif

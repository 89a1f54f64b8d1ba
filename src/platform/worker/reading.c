// SPDX-License-Identifier: MIT
/* For each line of numa_maps the kernel walks the pages of the mapping while it holds the lock of
 * the process: therefore a few lines are read at a time. */
#include "reading.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "numa-migrd/file.h"

void nm_reading_end(struct nm_reading *reading)
{
	nm_closep(&reading->fd);
	nm_maps_clear(&reading->maps);
	*reading = (struct nm_reading){.fd = -1};
}

static int open_next(struct nm_reading *reading, const struct nm_job *job)
{
	int r = nm_job_may_name(job);

	if (r == 0)
		r = nm_job_open(job, reading->maps.described ? "numa_maps" : "maps");
	if (r < 0)
		return r;
	reading->fd = r;
	return 0;
}

static int read_piece(struct nm_reading *reading, const struct nm_job *job)
{
	char text[NM_MAPS_PIECE];
	size_t piece = reading->maps.described ? NM_NUMA_MAPS_PIECE : NM_MAPS_PIECE;

	int r = reading->fd < 0 ? open_next(reading, job) : nm_job_require_client(job);
	if (r < 0)
		return r;
	ssize_t got = read(reading->fd, text, piece);
	if (got < 0)
		return -errno;
	if (got > 0)
		return nm_maps_add(&reading->maps, text, (size_t)got);
	nm_closep(&reading->fd);
	reading->fd = -1;
	nm_maps_end_file(&reading->maps);
	return 0;
}

static int read_on(struct nm_reading *reading, const struct nm_job *job,
		   const struct nm_mappings_order *order)
{
	uint64_t until_ns = nm_clock_ns() + order->budget_ns;
	int r = 0;

	do
		r = read_piece(reading, job);
	while (r == 0 && !reading->maps.complete && nm_clock_ns() < until_ns &&
	       reading->maps.next - reading->next <= NM_MAPPINGS_PIECE);
	return r;
}

int nm_reading_go_on(struct nm_reading *reading, const struct nm_job *job,
		     const struct nm_mappings_order *order, struct nm_mappings_piece *ret)
{
	const struct nm_maps_rules rules = {.move_bound = order->move_bound,
					    .move_shared = order->move_shared};
	const struct nm_worker_request *request = job->request;
	int r = 0;

	if (order->begin) {
		nm_reading_end(reading);
		reading->pid = request->pid;
		reading->start_ticks = request->start_ticks;
	} else if (reading->pid != request->pid || reading->start_ticks != request->start_ticks) {
		return -ESTALE;
	}
	if (!reading->maps.complete)
		r = read_on(reading, job, order);
	if (r < 0)
		nm_reading_end(reading);
	else if (!nm_mappings_take(&reading->maps, &rules, &reading->next, ret))
		nm_reading_end(reading);
	return r;
}

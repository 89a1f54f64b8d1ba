// SPDX-License-Identifier: MIT
#include "query.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../fds.h"
#include "../private_pages.h"
#include "numa-migrd/proc.h"
#include "numa_calls.h"

#define TEXT_BYTES 65536U	  /* longer than a line */
#define NUMA_MAPS_MOST (1U << 20) /* about 10,000 mappings */
#define MAPS_MOST (4U << 20)	  /* about 40,000 mappings */
#define PAGES_SAMPLED 512U
#define STAYING_SAMPLED 256U

/* ---- a job ---- */

int nm_job_require_process(const struct nm_job *job)
{
	struct nm_proc_stat stat;
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/stat", job->request->pid);
	int r = nm_proc_stat_at(job->proc_fd, path, &stat);
	if (r < 0)
		return r;
	return stat.start_ticks == job->request->start_ticks ? 0 : -ESRCH;
}

int nm_job_require_client(const struct nm_job *job)
{
	char next;
	struct iovec part = {&next, sizeof(next)};
	nm_auto(nm_fds_close) struct nm_fds fds = {-1, -1};

	if (job->socket >= 0 &&
	    nm_fds_receive(job->socket, &part, 1, MSG_PEEK | MSG_DONTWAIT, &fds) != -EAGAIN)
		return -ECANCELED;
	return 0;
}

int nm_job_may_name(const struct nm_job *job)
{
	return nm_job_require_client(job) ?: nm_job_require_process(job);
}

/* ---- the time of a query ---- */

static int has_time(const struct nm_job *job)
{
	return nm_clock_ns() >= job->until_ns ? -ETIMEDOUT : 0;
}

static int goes_on(const struct nm_job *job)
{
	return has_time(job) ?: nm_job_require_client(job);
}

static int may_name(const struct nm_job *job)
{
	return has_time(job) ?: nm_job_may_name(job);
}

int nm_job_open(const struct nm_job *job, const char *name)
{
	char path[48];

	(void)snprintf(path, sizeof(path), "%d/%s", job->request->pid, name);
	int fd = openat(job->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

/* ---- text ---- */

/* The text of a file of the process, read in pieces; the rest of one is before the next. */
struct text {
	const struct nm_job *job;
	int fd;
	size_t piece, most; /* of one read; of all */
	size_t used, total;
	char *bytes;
};

static void close_text(struct text *text)
{
	nm_closep(&text->fd);
	free(text->bytes);
}

static int open_text(const struct nm_job *job, const char *name, size_t piece, size_t most,
		     struct text *ret)
{
	int r = may_name(job);

	if (r == 0)
		r = nm_job_open(job, name);
	if (r < 0)
		return r;
	*ret = (struct text){.job = job,
			     .fd = r,
			     .piece = piece,
			     .most = most,
			     .bytes = nm_must(malloc(TEXT_BYTES))};
	return 0;
}

/* Returns the length of the next piece, 0 at the end, or a negative errno. */
static ssize_t read_piece(struct text *text)
{
	size_t room = TEXT_BYTES - text->used;
	size_t size = room < text->piece ? room : text->piece;
	int r = goes_on(text->job);

	if (r < 0)
		return r;
	if (room == 0 || text->total >= text->most)
		return -EFBIG;
	ssize_t got = read(text->fd, text->bytes + text->used, size);
	if (got < 0)
		return -errno;
	text->used += (size_t)got;
	text->total += (size_t)got;
	return got;
}

static void drop(struct text *text, size_t taken)
{
	text->used -= taken;
	memmove(text->bytes, text->bytes + taken, text->used);
}

/* ---- queries ---- */

int nm_query_count(const struct nm_job *job, struct nm_node_pages *ret)
{
	nm_auto(close_text) struct text text = {.fd = -1};
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	ssize_t got = open_text(job, "numa_maps", NM_NUMA_MAPS_PIECE, NUMA_MAPS_MOST, &text);

	if (got < 0)
		return (int)got;
	memset(ret, 0, sizeof(*ret));
	while ((got = read_piece(&text)) > 0) {
		char *line = text.bytes;
		for (char *end; (end = memchr(line, '\n', (size_t)(text.bytes + text.used - line)));
		     line = end + 1) {
			*end = '\0';
			nm_node_pages_add(ret, line, page_bytes);
		}
		drop(&text, (size_t)(line - text.bytes));
	}
	return (int)got;
}

static int read_extents(const struct nm_job *job, struct nm_private_pages *ret)
{
	nm_auto(close_text) struct text text = {.fd = -1};
	ssize_t got = open_text(job, "maps", NM_MAPS_PIECE, MAPS_MOST, &text);

	if (got < 0)
		return (int)got;
	while ((got = read_piece(&text)) > 0)
		drop(&text, (size_t)nm_private_pages_add(ret, text.bytes, text.used));
	return (int)got;
}

/* Adds up to `most` pages that are in memory. Returns their number. */
static unsigned add_found(const int *nodes, unsigned count, unsigned most, uint64_t *pages)
{
	unsigned found = 0;

	for (unsigned i = 0; i < count && found < most; i++) {
		if (nodes[i] < 0 || (unsigned)nodes[i] >= NM_NODE_NUMBERS)
			continue;
		pages[nodes[i]]++;
		found++;
	}
	return found;
}

/* Queries `most` of its own pages, and some of memory that stays. Returns the number of its own
 * that are in memory, or a negative errno. */
static int sample(const struct nm_job *job, const struct nm_private_pages *pages, unsigned most,
		  struct nm_node_pages *ret)
{
	uint64_t addresses[NM_WORKER_PAGES_MOST];
	int nodes[NM_WORKER_PAGES_MOST];
	unsigned own = nm_extents_choose(&pages->own, most, addresses);
	unsigned all = own + nm_extents_choose(&pages->staying, STAYING_SAMPLED, addresses + own);
	int r = may_name(job);

	if (r == 0 && all > 0)
		r = nm_numa_where(job->request->pid, all, addresses, nodes);
	if (r < 0)
		return r;
	memset(ret, 0, sizeof(*ret));
	ret->huge_bytes = pages->own_huge_bytes;
	(void)add_found(nodes + own, all - own, STAYING_SAMPLED, ret->staying);
	return (int)add_found(nodes, own, PAGES_SAMPLED, ret->own);
}

/* If little of the address space is in memory, more of it is queried. */
int nm_query_sample(const struct nm_job *job, struct nm_node_pages *ret)
{
	nm_auto(nm_private_pages_clear) struct nm_private_pages pages = {0};
	int r = read_extents(job, &pages);

	if (r == 0)
		r = sample(job, &pages, PAGES_SAMPLED, ret);
	if (r >= 0 && r < (int)PAGES_SAMPLED / 4 && pages.own.all > PAGES_SAMPLED)
		r = sample(job, &pages, NM_WORKER_PAGES_MOST - STAYING_SAMPLED, ret);
	return r < 0 ? r : 0;
}

/* A program whose first mappings are longer than what is read here is unknown: -EFBIG. */
int nm_query_program(const struct nm_job *job)
{
	nm_auto(close_text) struct text text = {.fd = -1};
	struct nm_program_search search = {0};
	ssize_t got = open_text(job, "maps", NM_MAPS_PIECE, MAPS_MOST, &text);

	if (got < 0)
		return (int)got;
	while (!search.known && (got = read_piece(&text)) > 0) {
		nm_program_search(&search, text.bytes, text.used);
		text.used = 0;
	}
	return got < 0 ? (int)got : (int)search.program;
}

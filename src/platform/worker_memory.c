// SPDX-License-Identifier: MIT
/*
 * The list outlives clients, which are replaced on each pause or dry run, and, by its file, the
 * daemon. Otherwise a process that holds its lock would block another worker each time.
 */
#include "worker_memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "numa-migrd/base.h"

#define CHILDREN_MOST 64U		  /* shared: first */
#define HEADER "numa-migrd-unanswered 3 " /* followed by the boot ID */
#define HEADER_BYTES 128
#define LINE_BYTES 96 /* a word and three numbers */
#define FILE_BYTES (HEADER_BYTES + (NM_WORKER_MISSED_MOST + NM_STUCK_WORKERS_MOST) * LINE_BYTES)

struct nm_unresponsive_list {
	struct nm_worker_bars bars;
	unsigned calling;	       /* calls in progress */
	pid_t children[CHILDREN_MOST]; /* their connections are closed, but they are not reaped */
	unsigned children_count;
	uint64_t given_up;
	bool changed; /* since the list was saved */
};

/* ---- the process of a memory map ---- */

static int subject_at(int directory, const struct nm_proc_stat *stat,
		      struct nm_worker_subject *ret)
{
	nm_autofree char *cgroup = NULL;
	struct stat owned;

	if (!stat->tid)
		return -ESRCH;
	if (fstat(directory, &owned) < 0)
		return -errno;
	(void)nm_proc_cgroup_at(directory, "cgroup", &cgroup);
	*ret = (struct nm_worker_subject){.pid = stat->tid,
					  .start_ticks = stat->start_ticks,
					  .uid = owned.st_uid,
					  .domain = nm_proc_domain_here(owned.st_uid, cgroup)};
	return 0;
}

int nm_worker_subject_of(int proc_fd, uint32_t tid, uint64_t start_ticks,
			 struct nm_worker_subject *ret)
{
	nm_auto(nm_closep) int directory = -1;
	struct nm_proc_stat stat;
	char name[16];

	(void)snprintf(name, sizeof(name), "%u", tid);
	directory = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	int r = nm_proc_stat_at(directory, "stat", &stat);
	if (r == 0 && start_ticks && start_ticks != stat.start_ticks)
		r = -ESRCH;
	return r < 0 ? r : subject_at(directory, &stat, ret);
}

/* ---- which processes may be queried ---- */

static size_t missed_count(const struct nm_worker_bars *bars)
{
	return bars->missed_count < NM_WORKER_MISSED_MOST ? bars->missed_count
							  : NM_WORKER_MISSED_MOST;
}

int nm_worker_may_ask(const struct nm_worker_bars *bars, const struct nm_worker_subject *subject,
		      unsigned others, uint64_t now_ns)
{
	struct nm_quota quota = {.limit = NM_STUCK_WORKERS_MOST, .used = others};
	size_t known = missed_count(bars);
	bool at_work = false;

	for (size_t i = 0; i < known; i++)
		if (bars->missed[i].pid == subject->pid &&
		    bars->missed[i].start_ticks == subject->start_ticks &&
		    now_ns < bars->missed[i].until_ns)
			return -EALREADY;
	for (unsigned i = 0; i < bars->stuck_count; i++) {
		const struct nm_worker_stuck *stuck = &bars->stuck[i];
		nm_quota_count(&quota, subject->domain, stuck->domain, 1);
		at_work |= stuck->at_work && stuck->domain == subject->domain;
	}
	if (nm_quota_of(&quota, subject->domain) == 0 && nm_quota_permits(&quota, subject->domain))
		return 0;
	return at_work ? -EINPROGRESS : -EALREADY;
}

void nm_worker_missed(struct nm_worker_bars *bars, uint32_t pid, uint64_t start_ticks,
		      uint64_t until_ns)
{
	size_t place = bars->missed_count++ % NM_WORKER_MISSED_MOST;

	bars->missed[place].pid = pid;
	bars->missed[place].start_ticks = start_ticks;
	bars->missed[place].until_ns = until_ns;
}

void nm_worker_stuck(struct nm_worker_bars *bars, uint64_t domain, bool at_work,
		     struct nm_worker_link *link)
{
	bars->stuck[bars->stuck_count++] =
		(struct nm_worker_stuck){.domain = domain, .link = *link, .at_work = at_work};
	*link = NM_WORKER_LINK_NONE;
}

void nm_worker_released(struct nm_worker_bars *bars, unsigned index)
{
	bars->stuck[index] = bars->stuck[--bars->stuck_count];
}

/* ---- the list ---- */

static void reap(struct nm_unresponsive_list *memory)
{
	for (unsigned i = 0; i < memory->children_count;)
		if (waitpid(memory->children[i], NULL, WNOHANG) != 0)
			memory->children[i] = memory->children[--memory->children_count];
		else
			i++;
}

void nm_unresponsive_list_let_go(struct nm_unresponsive_list *memory, struct nm_worker_link *link)
{
	nm_worker_link_close(link);
	if (link->child > 0 && memory->children_count < CHILDREN_MOST)
		memory->children[memory->children_count++] = link->child;
	*link = NM_WORKER_LINK_NONE;
	reap(memory);
}

static void release_stuck(struct nm_unresponsive_list *memory)
{
	for (unsigned i = 0; i < memory->bars.stuck_count;) {
		struct nm_worker_link *link = &memory->bars.stuck[i].link;
		if (!nm_worker_link_stirs(link)) {
			i++;
			continue;
		}
		nm_unresponsive_list_let_go(memory, link);
		nm_worker_released(&memory->bars, i);
		memory->changed = true;
	}
	if (memory->children_count > 0)
		reap(memory);
}

static void keep(struct nm_unresponsive_list *memory, uint64_t domain, bool at_work,
		 struct nm_worker_link *link)
{
	nm_worker_stuck(&memory->bars, domain, at_work, link);
	memory->changed = true;
}

/* ---- called by the client ---- */

int nm_unresponsive_list_begin(struct nm_unresponsive_list *memory,
			       const struct nm_worker_subject *subject)
{
	release_stuck(memory);
	int r = nm_worker_may_ask(&memory->bars, subject, memory->calling, nm_clock_ns());
	memory->calling += r == 0;
	return r;
}

/* A link whose reply was not received cannot be used again: the reply would be taken for that of
 * the next call. */
void nm_unresponsive_list_end(struct nm_unresponsive_list *memory,
			      const struct nm_worker_subject *subject, struct nm_worker_link *link,
			      int result)
{
	memory->calling--;
	if (result == -ETIMEDOUT) {
		nm_worker_missed(&memory->bars, subject->pid, subject->start_ticks,
				 nm_clock_ns() + NM_WORKER_REST_NS);
		memory->given_up++;
		keep(memory, subject->domain, false, link);
	} else if (result == -ECANCELED || result == -EINPROGRESS) {
		keep(memory, subject->domain, result == -EINPROGRESS, link);
	} else if (result < 0) {
		nm_unresponsive_list_let_go(memory, link);
	}
}

struct nm_worker_counts nm_unresponsive_list_counts(struct nm_unresponsive_list *memory)
{
	release_stuck(memory);
	return (struct nm_worker_counts){.given_up = memory->given_up,
					 .stuck = memory->bars.stuck_count};
}

/* ---- writing the file ---- */

/* A worker whose PID is unknown is not saved, because it cannot be found again. */
static size_t write_all(const struct nm_worker_bars *bars, const char *boot_id, char *out)
{
	uint64_t now_ns = nm_clock_ns();
	size_t known = missed_count(bars);
	size_t length = (size_t)snprintf(out, HEADER_BYTES, HEADER "%.64s\n", boot_id);

	for (size_t i = 0; i < known; i++)
		if (now_ns < bars->missed[i].until_ns)
			length += (size_t)snprintf(out + length, LINE_BYTES,
						   "process %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
						   bars->missed[i].pid, bars->missed[i].start_ticks,
						   bars->missed[i].until_ns);
	for (unsigned i = 0; i < bars->stuck_count; i++) {
		const struct nm_worker_stuck *stuck = &bars->stuck[i];
		if (stuck->link.pid > 0)
			length += (size_t)snprintf(out + length, LINE_BYTES,
						   "worker %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
						   stuck->link.pid, stuck->link.start_ticks,
						   stuck->domain);
	}
	return length;
}

int nm_unresponsive_list_save(struct nm_unresponsive_list *memory, int directory,
			      const char *boot_id)
{
	release_stuck(memory);
	if (!memory->changed)
		return 0;
	nm_autofree char *text = nm_must(malloc(FILE_BYTES));
	size_t length = write_all(&memory->bars, boot_id, text);
	int r = nm_replace_own(directory, NM_WORKER_MEMORY_NAME, text, length);
	memory->changed = r < 0;
	return r;
}

/* ---- reading the file ---- */

/* Returns a descriptor that becomes readable when this process ends, -ESRCH if it has ended, or
 * another negative errno. */
static int watch_process(uint32_t pid, uint64_t start_ticks)
{
	nm_auto(nm_closep) int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	struct nm_proc_stat stat;
	char path[32];

	if (fd < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	int r = nm_proc_stat_at(AT_FDCWD, path, &stat);
	if (r == 0 && stat.start_ticks != start_ticks)
		r = -ESRCH;
	return r < 0 ? r : nm_take_fd(&fd);
}

static int take_line(struct nm_unresponsive_list *memory, const char *line)
{
	uint64_t now_ns = nm_clock_ns();
	uint64_t start_ticks, last; /* process: end of its rest; worker: domain */
	uint32_t pid;
	char kind[8], end;

	if (sscanf(line, "%7s %" SCNu32 " %" SCNu64 " %" SCNu64 "%c", kind, &pid, &start_ticks,
		   &last, &end) != 4 ||
	    !pid)
		return -EBADMSG;
	if (strcmp(kind, "process") == 0 && last <= now_ns + NM_WORKER_REST_NS) {
		if (last > now_ns)
			nm_worker_missed(&memory->bars, pid, start_ticks, last);
		return 0;
	}
	if (strcmp(kind, "worker") != 0 || pid > INT32_MAX)
		return -EBADMSG;
	if (memory->bars.stuck_count == NM_STUCK_WORKERS_MOST)
		return 0;
	struct nm_worker_link link = {
		.fd = watch_process(pid, start_ticks), .pid = pid, .start_ticks = start_ticks};
	if (link.fd >= 0)
		keep(memory, last, false, &link);
	return 0;
}

int nm_unresponsive_list_load(struct nm_unresponsive_list *memory, int directory,
			      const char *boot_id)
{
	nm_auto(nm_closep) int fd = nm_open_own(directory, NM_WORKER_MEMORY_NAME, O_RDONLY);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	nm_autofree char *text = nm_must(malloc(FILE_BYTES));
	int r = nm_read_all(fd, text, FILE_BYTES);
	if (r < 0)
		return r;
	char *rest = NULL;
	char *line = strtok_r(text, "\n", &rest);
	if (!line || strncmp(line, HEADER, strlen(HEADER)) != 0)
		return -EBADMSG;
	if (strcmp(line + strlen(HEADER), boot_id) != 0)
		return 0;
	int result = 0; /* -EBADMSG if lines are skipped */
	while ((line = strtok_r(NULL, "\n", &rest)))
		result = take_line(memory, line) ?: result;
	return result;
}

/* ---- construction ---- */

void nm_unresponsive_list_new(struct nm_unresponsive_list **ret)
{
	*ret = nm_must(calloc(1, sizeof(**ret)));
}

/* Workers exit when their sockets are closed, stuck ones as soon as they can. */
void nm_unresponsive_list_free(struct nm_unresponsive_list *memory)
{
	if (!memory)
		return;
	for (unsigned i = 0; i < memory->bars.stuck_count; i++)
		nm_unresponsive_list_let_go(memory, &memory->bars.stuck[i].link);
	free(memory);
}

/* SPDX-License-Identifier: MIT */
/*
 * simple: the minimum with which placement policies are compared. 0.5 s after it first sees a
 * process that has run for 10 % of that time, it binds its threads to the node with the fewest such
 * processes and migrates its memory there, once. It ignores kernel threads and processes that run
 * at its start.
 */
#include "lab.h"

#include <dirent.h>

enum { NODES = 4, PROCESSES = 4096, LOOK_MS = 200, AGE_MS = 500, SHARE = 10, NOWHERE = -1 };

static struct process {
	pid_t pid;
	uint64_t seen_ms, cpu_ms;
	int node;
	bool settled, present;
} processes[PROCESSES];

static size_t count;

/* User and system time, or UINT64_MAX if it is gone or has no memory of its own. */
static uint64_t cpu_ms_of(pid_t pid)
{
	unsigned long user, kernel, size;
	char path[64], text[1024], *end;
	FILE *file;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return UINT64_MAX;
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	end = strrchr(text, ')');
	if (!end ||
	    sscanf(end + 2,
		   "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d "
		   "%*u %lu",
		   &user, &kernel, &size) != 3 ||
	    size == 0)
		return UINT64_MAX;
	return (user + kernel) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

static int emptiest_node(void)
{
	int held[NODES] = {0}, best = 0;

	for (size_t i = 0; i < count; i++)
		if (processes[i].node != NOWHERE)
			held[processes[i].node]++;
	for (int node = 1; node < NODES; node++)
		if (held[node] < held[best])
			best = node;
	return best;
}

static void bind_threads(pid_t pid, const cpu_set_t *cpus)
{
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			sched_setaffinity((pid_t)lab_number(entry->d_name), sizeof(*cpus), cpus);
	if (tasks)
		closedir(tasks);
}

static void move(struct process *process)
{
	unsigned long from = (1UL << NODES) - 1, to;
	cpu_set_t cpus;

	process->node = emptiest_node();
	to = 1UL << process->node;
	CPU_ZERO(&cpus);
	CPU_SET(2 * process->node, &cpus);
	CPU_SET(2 * process->node + 1, &cpus);
	bind_threads(process->pid, &cpus);
	syscall(SYS_migrate_pages, process->pid, NODES + 1UL, &from, &to);
}

/* /proc lists them in ascending order, as they are kept: the next is mostly the one after the last.
 */
static struct process *find(pid_t pid)
{
	static size_t last;

	for (size_t i = 0; i < count; i++) {
		size_t at = (last + 1 + i) % count;

		if (processes[at].pid == pid) {
			last = at;
			return &processes[at];
		}
	}
	return NULL;
}

static struct process *meet(pid_t pid, uint64_t now_ms, bool settled)
{
	uint64_t cpu_ms = cpu_ms_of(pid);

	if (count == PROCESSES)
		return NULL;
	processes[count] = (struct process){.pid = pid,
					    .seen_ms = now_ms,
					    .cpu_ms = cpu_ms,
					    .node = NOWHERE,
					    .settled = settled || cpu_ms == UINT64_MAX};
	return &processes[count++];
}

static void consider(pid_t pid, uint64_t now_ms, bool settled)
{
	struct process *at = find(pid);
	uint64_t cpu_ms;

	if (!at)
		at = meet(pid, now_ms, settled);
	if (!at)
		return;
	at->present = true;
	if (at->settled || now_ms - at->seen_ms < AGE_MS)
		return;
	cpu_ms = cpu_ms_of(pid);
	if (cpu_ms == UINT64_MAX)
		return;
	if ((cpu_ms - at->cpu_ms) * SHARE < now_ms - at->seen_ms) {
		at->seen_ms = now_ms; /* it may begin later */
		at->cpu_ms = cpu_ms;
		return;
	}
	at->settled = true;
	move(at);
}

static void forget_the_gone(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!processes[i].present)
			continue;
		processes[kept] = processes[i];
		processes[kept++].present = false;
	}
	count = kept;
}

static void look(bool first)
{
	uint64_t now_ms = lab_now_ms();
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (!proc)
		err(1, "/proc");
	while ((entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			consider((pid_t)lab_number(entry->d_name), now_ms, first);
	closedir(proc);
	forget_the_gone();
}

int main(void)
{
	look(true);
	for (;;) {
		usleep(LOOK_MS * 1000);
		look(false);
	}
}

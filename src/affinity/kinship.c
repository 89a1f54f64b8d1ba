/* SPDX-License-Identifier: MIT */
/* The rule of descent, which proves that a thread inherited its affinity. Each process is read once
 * in a turn of the walk. */
#include <string.h>

#include "descent.h"

#define MOST_ANCESTORS 64

/* ---- processes ---- */

static int read_process(struct nm_descent *descent, struct nm_descent_process *process)
{
	struct nm_platform *platform = descent->platform;
	nm_autofree char *cgroup = NULL;
	struct nm_proc_stat stat;
	descent->steps += 5 * NM_STEPS_CALL;
	int directory = nm_proc_open_stat(platform, process->pid, process->pid, &stat);
	if (directory < 0)
		return directory;
	(void)nm_proc_read_cgroup(platform, directory, &cgroup);
	int r = nm_proc_read_owner(platform, directory, &process->uid);
	platform->ops->close(platform, directory);
	if (r < 0)
		return r;
	process->ppid = stat.ppid;
	process->session = stat.session;
	process->start_ticks = stat.start_ticks;
	process->cgroup = nm_narrowing_cgroup(cgroup);
	process->domain = nm_proc_domain(platform, process->uid, cgroup);
	process->adopts = strcmp(stat.comm, "systemd") == 0;
	return 0;
}

/* Returns whether orphans become its children: a service manager, or the init process of a PID
 * namespace. Only its status shows the latter. */
static bool adopts(struct nm_descent *descent, struct nm_descent_process *process)
{
	struct nm_proc_status status;
	if (process->adopts || process->is_asked)
		return process->adopts;
	process->is_asked = true;
	descent->steps += 3 * NM_STEPS_CALL;
	int directory = nm_proc_open_same(descent->platform, process->pid, process->pid,
					  process->start_ticks, NULL);
	if (directory < 0)
		return false;
	process->adopts = nm_proc_read_status_in(descent->platform, directory, process->domain,
						 &descent->costly, &status) == 0 &&
			  status.ns_pid == 1;
	descent->platform->ops->close(descent->platform, directory);
	return process->adopts;
}

static int add_process(struct nm_descent *descent, uint32_t pid)
{
	nm_autofree struct nm_descent_process *process = nm_must(calloc(1, sizeof(*process)));
	const size_t index = descent->nr_processes;
	NM_RESERVE(descent->processes, descent->processes_capacity, index);
	process->pid = pid;
	int r = read_process(descent, process);
	process->gone = r < 0;
	r = nm_descent_if_passing(r);
	if (r == 0)
		r = nm_tidmap_set(descent->process_of, pid, (uint32_t)index);
	if (r < 0)
		return r;
	descent->processes[descent->nr_processes++] = NM_TAKE(process);
	return 0;
}

static struct nm_descent_process *find_process(struct nm_descent *descent, uint32_t pid)
{
	descent->steps++;
	if (nm_tidmap_get(descent->process_of, pid) == NM_TIDMAP_NONE) {
		int r = add_process(descent, pid);
		if (r < 0) {
			descent->error = r;
			return NULL;
		}
	}
	struct nm_descent_process *process =
		descent->processes[nm_tidmap_get(descent->process_of, pid)];
	return process->gone ? NULL : process;
}

/* The parent, or NULL if it has exited: the number may belong to another process by now, which is
 * younger than the child. */
static struct nm_descent_process *find_parent(struct nm_descent *descent,
					      const struct nm_descent_process *child)
{
	struct nm_descent_process *parent =
		child->ppid > 1 ? find_process(descent, child->ppid) : NULL;
	return parent && parent->start_ticks <= child->start_ticks ? parent : NULL;
}

/* ---- the rule ---- */

/* Returns whether this is the process of the moved thread, and not a later one with its number: a
 * process is not younger than its threads. */
static bool is_moved_process(const struct nm_narrowing *terms,
			     const struct nm_descent_process *process)
{
	return process && process->pid == terms->pid && process->start_ticks <= terms->start_ticks;
}

/* The session stands for a cgroup that is not known, or that is the root. */
static bool is_of_group(const struct nm_narrowing *terms, const struct nm_descent_process *process)
{
	return process->uid == terms->uid && process->cgroup == terms->cgroup &&
	       (process->cgroup || (terms->session && process->session == terms->session));
}

/*
 * Follows the line of parents. One that reaches the moved process is its descent. One that ends at
 * a parent that has exited, or that adopts orphans, may come from a moved process that has exited,
 * too, if the user and the cgroup are the same. A line that passes any other parent from before the
 * move, such as a shell that ran numactl(8), proves nothing: the affinity is the owner's choice.
 */
static bool is_descendant(struct nm_descent *descent, const struct nm_narrowing *terms,
			  uint32_t pid)
{
	const struct nm_descent_process *process = find_process(descent, pid);
	const struct nm_descent_process *child = process;
	struct nm_descent_process *parent;
	for (unsigned depth = 0; child && depth < MOST_ANCESTORS; depth++, child = parent) {
		if (child->start_ticks < terms->given_ticks)
			return false;
		parent = find_parent(descent, child);
		if (is_moved_process(terms, parent))
			return true;
		if (!parent || adopts(descent, parent))
			return is_of_group(terms, process) &&
			       (!parent || terms->given_ticks > parent->start_ticks);
	}
	return false;
}

bool nm_kinship_is_proved(struct nm_descent *descent, const struct nm_narrowing *terms,
			  uint32_t pid, uint32_t tid, uint64_t start_ticks)
{
	if (start_ticks < terms->given_ticks || start_ticks < terms->known_ticks)
		return false;
	if (tid != pid && pid == terms->pid && is_moved_process(terms, find_process(descent, pid)))
		return true;
	return is_descendant(descent, terms, pid);
}

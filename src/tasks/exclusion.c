/* SPDX-License-Identifier: MIT */
/*
 * The default exclusion of a process, by its place (its PID, cgroup or name) and the program that
 * it runs. A user can choose both, and gains nothing: only processes are left alone that this user
 * may exclude anyway. The program decides because a computing program may have any name, and be
 * PID 1 of its container.
 */
#include <string.h>

#include "task_table.h"

#define NAME_PREFIX "numa-migr"

/* The systemd process that becomes a worker does not have the worker's name yet, and looks busy. */
static bool is_in_own_unit(const struct nm_process *process)
{
	static const char *const units[] = {"/numa-migrd-worker@", "/numa-migrd-helper.service"};
	const char *unit = process->cgroup ? strrchr(process->cgroup, '/') : NULL;
	for (size_t i = 0; unit && i < NM_ARRAY_SIZE(units); i++)
		if (strncmp(unit, units[i], strlen(units[i])) == 0)
			return true;
	return false;
}

/* "…/user@1000.service/init.scope", into which the service manager of a user moves itself. */
static bool is_in_managers_scope(const char *cgroup)
{
	static const char scope[] = ".service/init.scope";
	const char *user = cgroup ? strstr(cgroup, "/user@") : NULL;
	size_t length = user ? strlen(user) : 0, end = strlen(scope);
	return length > end && strcmp(user + length - end, scope) == 0 &&
	       !memchr(user + 1, '/', length - end - 1);
}

/* Returns whether its place is that of such a process, with any program. */
static bool is_in_place(const struct nm_process *process, enum nm_exclusion exclusion)
{
	switch (exclusion) {
	case NM_EXCLUSION_OWN:
		return strncmp(process->raw_comm, NAME_PREFIX, strlen(NAME_PREFIX)) == 0;
	case NM_EXCLUSION_USER_MANAGER:
		return is_in_managers_scope(process->cgroup);
	case NM_EXCLUSION_CONTAINER_INIT:
		return process->ns_pid == 1;
	default:
		return false;
	}
}

/* Without an answer, the name stands in for the program. */
static bool runs_excluded(const struct nm_process *process, enum nm_exclusion exclusion)
{
	unsigned program = process->program_state == NM_PROGRAM_READ
				   ? process->program
				   : nm_excluded_program_called(process->raw_comm);
	return nm_excludes_program(exclusion, program, process->raw_comm);
}

static bool is_included(const struct nm_task_table *tasks, const struct nm_process *process,
			enum nm_exclusion exclusion)
{
	const struct nm_target_subject subject = nm_tasks_subject(process);
	return nm_exclusion_row(exclusion)->may_be_included &&
	       nm_config_names_command(&tasks->config->targets.include, &subject);
}

/* ---- before exec ---- */

static bool is_excluded_parent(const struct nm_task_table *tasks, const struct nm_proc_stat *parent)
{
	const struct nm_process *known = nm_tasks_process(tasks, parent->tid);
	if (parent->tid == 1)
		return true;
	if (known && known->start_ticks == parent->start_ticks && known->checked_ns)
		return known->exclusion != NM_EXCLUSION_NONE && !known->program_awaited;
	/* It is idle, so that its program is not queried. */
	return nm_excludes_program(NM_EXCLUSION_CONTAINER_INIT,
				   nm_excluded_program_called(parent->comm), parent->comm);
}

/*
 * A child has the name of its parent, or one in parentheses that systemd gives it ("(postgres)")
 * until it executes its program. With that name it may execute systemd-executor first. Others of
 * the parent's children have executed their programs, or were adopted by it: a daemon that was
 * forked has its own name.
 */
static bool is_before_exec(const struct nm_task_table *tasks, const struct nm_proc_stat *stat)
{
	size_t length = strlen(stat->comm);
	bool bracketed = length > 2 && stat->comm[0] == '(' && stat->comm[length - 1] == ')';
	struct nm_proc_stat parent;
	if ((!bracketed && !(stat->flags & NM_PROC_BEFORE_EXEC)) || stat->ppid == 0 ||
	    nm_proc_stat_of(tasks->platform, stat->ppid, stat->ppid, &parent) < 0)
		return false;
	return is_excluded_parent(tasks, &parent) &&
	       (bracketed || strcmp(stat->comm, parent.comm) == 0);
}

/* ---- the exclusion ---- */

/* Returns whether the exclusion applies, or may apply once the program is known. */
static bool applies(const struct nm_task_table *tasks, struct nm_process *process,
		    enum nm_exclusion exclusion, bool wanted)
{
	if (!is_in_place(process, exclusion) || is_included(tasks, process, exclusion))
		return false;
	process->program_wanted = wanted;
	process->program_awaited = wanted && process->program_state == NM_PROGRAM_AWAITED;
	return process->program_awaited || runs_excluded(process, exclusion);
}

static enum nm_exclusion find(const struct nm_task_table *tasks, struct nm_process *process,
			      const struct nm_proc_stat *stat, bool wanted)
{
	if (process->pid == 1)
		return NM_EXCLUSION_HOST_INIT;
	if (process->pid == tasks->own_pid || is_in_own_unit(process))
		return NM_EXCLUSION_OWN;
	for (enum nm_exclusion one = NM_EXCLUSION_OWN; one <= NM_EXCLUSION_CONTAINER_INIT; one++)
		if (applies(tasks, process, one, wanted))
			return one;
	return is_before_exec(tasks, stat) ? NM_EXCLUSION_BEFORE_EXEC : NM_EXCLUSION_NONE;
}

void nm_tasks_find_exclusion(const struct nm_task_table *tasks, struct nm_process *process,
			     const struct nm_proc_stat *stat, bool wanted)
{
	process->program_wanted = process->program_awaited = false;
	process->exclusion = find(tasks, process, stat, wanted);
}

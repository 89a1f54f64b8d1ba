/* SPDX-License-Identifier: MIT */
/* The control group: draws, and the values of processes. */
#include <math.h>
#include <string.h>

#include "draws.h"

#define RETRIED_SHARE 0.5  /* of control, for a program that was slower */
#define VALUE_LEAST_S 0.01 /* the resolution of CPU time in /proc */

/* ---- the draw ---- */

static struct nm_trial_process *find(const struct nm_trial *trial, uint32_t pid)
{
	uint32_t index = nm_tidmap_get(trial->process_of, pid);
	return index == NM_TIDMAP_NONE ? NULL : &trial->processes[index];
}

static bool is_recent(const struct nm_trial_process *process, uint64_t now_ns)
{
	return process->part && now_ns - process->drawn_ns < NM_TRIAL_WINDOW_NS;
}

/*
 * Returns the unit of a living parent or sibling. Processes that work together, such as the ranks
 * of a job, must not be in different arms. Siblings join for ten minutes: otherwise a unit of jobs
 * that overlap would never end.
 */
static struct nm_trial_unit *unit_of_relatives(const struct nm_trial *trial,
					       const struct nm_trial_candidate *one,
					       const struct nm_trial_program *program,
					       uint64_t now_ns)
{
	const struct nm_trial_process *parent = find(trial, one->parent);
	if (parent && is_recent(parent, now_ns))
		return parent->part->unit;
	for (size_t i = 0; i < trial->nr_processes; i++) {
		const struct nm_trial_process *other = &trial->processes[i];
		if (other->parent == one->parent && other->part && other->program == program &&
		    now_ns - other->part->unit->drawn_ns < NM_TRIAL_WINDOW_NS)
			return other->part->unit;
	}
	return NULL;
}

/* Returns a new unit, or NULL if nothing is drawn. */
static struct nm_trial_unit *new_unit(struct nm_trial *trial,
				      const struct nm_trial_program *program, uint64_t now_ns)
{
	const struct nm_trial_period *period = &trial->raised;
	bool raised = now_ns + NM_TRIAL_WINDOW_NS < period->until_ns;
	double share = raised ? period->control_share : trial->control_share;
	if (!raised && program->nr_losses > 0 && share > 0)
		share = RETRIED_SHARE;
	if (!(share > 0))
		return NULL;
	struct nm_trial_unit *unit = nm_must(calloc(1, sizeof(*unit)));
	unit->period = raised ? trial->period : 0;
	unit->drawn_ns = now_ns;
	unit->arm = nm_rng_unit(&trial->rng) < share ? NM_TRIAL_CONTROL : NM_TRIAL_TREATED;
	return unit;
}

/* Returns the part of the program in the unit; NULL: it has too many. */
static struct nm_trial_part *part_for(struct nm_trial_unit *unit, struct nm_trial_program *program)
{
	struct nm_trial_part *part = unit->parts;
	while (part && part->program != program)
		part = part->next;
	if (part || unit->nr_parts == NM_TRIAL_PARTS_MOST)
		return part;
	part = nm_must(calloc(1, sizeof(*part)));
	part->unit = unit;
	part->program = program;
	part->next = unit->parts;
	program->parts++;
	unit->nr_parts++;
	return unit->parts = part;
}

/* Threads of virtual machines are CPUs for other programs, whose work varies. This service and
 * those who watch it by numa-migrctl would be compared with themselves. */
static bool is_never_compared(const char *comm)
{
	static const char *const names[] = {"qemu",	   "kvm",    "cloud-hyperviso",
					    "firecracker", "crosvm", "VBoxHeadless",
					    "numa-migr"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++)
		if (strncmp(comm, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Returns the part that the process belongs to; NULL: it takes no part. */
static struct nm_trial_part *draw_part(struct nm_trial *trial, const struct nm_trial_candidate *one,
				       struct nm_trial_program *program, uint64_t now_ns)
{
	const struct nm_trial_process *parent = find(trial, one->parent);
	/* Traces of decisions about the parent, such as an affinity, would distort it. */
	if (!one->takes_part || is_never_compared(one->comm) || !program ||
	    (parent && !is_recent(parent, now_ns)))
		return NULL;
	struct nm_trial_unit *unit = unit_of_relatives(trial, one, program, now_ns);
	if (!unit)
		unit = new_unit(trial, program, now_ns);
	return unit ? part_for(unit, program) : NULL;
}

static enum nm_trial_answer answer_of(const struct nm_trial_process *process, uint64_t now_ns)
{
	if (nm_trial_is_barred(process->program, now_ns))
		return NM_TRIAL_BARRED;
	return process->part && process->part->unit->arm == NM_TRIAL_CONTROL ? NM_TRIAL_LEAVE
									     : NM_TRIAL_DECIDE;
}

static bool has_room(const struct nm_trial *trial, uint64_t domain)
{
	struct nm_quota quota = {.limit = NM_TRIAL_PROCESSES_MOST};
	for (size_t i = 0; i < trial->nr_processes; i++)
		nm_quota_count(&quota, domain, trial->processes[i].domain, 1);
	return nm_quota_permits(&quota, domain);
}

enum nm_trial_answer nm_trial_draw(struct nm_trial *trial, const struct nm_trial_candidate *one,
				   uint64_t now_ns)
{
	struct nm_trial_program *program = nm_trial_program_for(trial, one, now_ns);
	bool barred = nm_trial_is_barred(program, now_ns);
	if (find(trial, one->pid)) /* its number was reused */
		nm_trial_process_ended(trial, one->pid, now_ns);
	if (!has_room(trial, one->domain) ||
	    nm_tidmap_set(trial->process_of, one->pid, (uint32_t)trial->nr_processes) < 0)
		return barred ? NM_TRIAL_BARRED : NM_TRIAL_DECIDE;
	NM_RESERVE(trial->processes, trial->processes_capacity, trial->nr_processes);
	struct nm_trial_process *process = &trial->processes[trial->nr_processes];
	*process = (struct nm_trial_process){
		.pid = one->pid,
		.parent = one->parent,
		.start_ticks = one->start_ticks,
		.domain = one->domain,
		.drawn_ns = now_ns,
		.cpu_before_ns = one->cpu_ns,
		.program = program,
		.part = barred ? NULL : draw_part(trial, one, program, now_ns),
	};
	trial->nr_processes++;
	if (process->part)
		process->part->unit->living++;
	return answer_of(process, now_ns);
}

enum nm_trial_answer nm_trial_answer(const struct nm_trial *trial, uint32_t pid,
				     uint64_t start_ticks, uint64_t now_ns)
{
	const struct nm_trial_process *process = find(trial, pid);
	return process && process->start_ticks == start_ticks ? answer_of(process, now_ns)
							      : NM_TRIAL_UNKNOWN;
}

bool nm_trial_has(const struct nm_trial *trial, uint32_t pid)
{
	return find(trial, pid) != NULL;
}

void nm_trial_read(struct nm_trial *trial, uint32_t pid, uint64_t cpu_ns)
{
	struct nm_trial_process *process = find(trial, pid);
	if (!process)
		return;
	process->cpu_ns = cpu_ns > process->cpu_before_ns ? cpu_ns - process->cpu_before_ns : 0;
	process->cpu_since_ns = 0;
}

static void count_accesses(const struct nm_topology *topology,
			   const struct nm_sampled_thread *thread, struct nm_trial_conditions *ret)
{
	for (int k = 0; thread->stats.main_node >= 0 && k < (int)topology->nr_nodes; k++) {
		double count = thread->stats.fresh[k];
		double local = nm_topology_distance(topology, k, k);
		ret->accesses += count;
		ret->near += k == thread->stats.main_node ? count : 0;
		ret->distance +=
			count * nm_topology_distance(topology, thread->stats.main_node, k) / local;
	}
}

void nm_trial_observe_threads(struct nm_trial *trial, const struct nm_sampled_thread *threads,
			      size_t count, const struct nm_topology *topology)
{
	for (size_t i = 0; i < count; i++) {
		struct nm_trial_conditions conditions = {0};
		const struct nm_trial_process *process = find(trial, threads[i].pid);
		if (!process)
			continue;
		count_accesses(topology, &threads[i], &conditions);
		nm_trial_observe(trial, process->pid, &conditions);
	}
}

void nm_trial_observe(struct nm_trial *trial, uint32_t pid,
		      const struct nm_trial_conditions *conditions)
{
	const struct nm_trial_process *process = find(trial, pid);
	const struct nm_trial_unit *unit = process && process->part ? process->part->unit : NULL;
	if (!unit || (unit->period && unit->period != trial->period))
		return;
	enum nm_trial_span span = unit->period ? NM_TRIAL_RAISED : NM_TRIAL_TODAY;
	struct nm_trial_conditions *sum = &trial->conditions[span][unit->arm];
	sum->accesses += conditions->accesses;
	sum->near += conditions->near;
	sum->distance += conditions->distance;
	sum->ran_s += conditions->ran_s;
	sum->waited_s += conditions->waited_s;
}

void nm_trial_thread_ended(struct nm_trial *trial, uint32_t pid, uint64_t cpu_ns, uint64_t now_ns)
{
	struct nm_trial_process *process = find(trial, pid);
	if (!process)
		return;
	process->cpu_since_ns += cpu_ns;
	process->last_exit_ns = now_ns;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NM_NSEC_PER_SEC;
}

static void add_value(struct nm_trial_part *part, enum nm_trial_measure measure, double value)
{
	part->n[measure]++;
	part->sum[measure] += log(value);
}

/* The process no longer takes part in its unit, which is finished with its last one. */
static void leave_unit(struct nm_trial *trial, struct nm_trial_process *process, uint64_t now_ns)
{
	struct nm_trial_unit *unit = process->part->unit;
	process->part = NULL;
	if (--unit->living == 0)
		nm_trial_keep(trial, unit, now_ns);
}

void nm_trial_process_ended(struct nm_trial *trial, uint32_t pid, uint64_t now_ns)
{
	struct nm_trial_process *process = find(trial, pid);
	if (!process)
		return;
	if (process->part) {
		uint64_t end_ns = process->last_exit_ns ? process->last_exit_ns : now_ns;
		uint64_t elapsed_ns = end_ns > process->drawn_ns ? end_ns - process->drawn_ns : 0;
		uint64_t cpu_ns = process->cpu_ns + process->cpu_since_ns;
		add_value(process->part, NM_TRIAL_ELAPSED,
			  fmax(seconds(elapsed_ns), VALUE_LEAST_S));
		add_value(process->part, NM_TRIAL_CPU, fmax(seconds(cpu_ns), VALUE_LEAST_S));
		leave_unit(trial, process, now_ns);
	}
	nm_tidmap_remove(trial->process_of, process->pid);
	*process = trial->processes[--trial->nr_processes];
	if (process != &trial->processes[trial->nr_processes])
		(void)nm_tidmap_set(trial->process_of, process->pid,
				    (uint32_t)(process - trial->processes));
}

void nm_trial_end_windows(struct nm_trial *trial, uint64_t now_ns,
			  void (*released)(void *context, uint32_t pid), void *context)
{
	for (size_t i = 0; i < trial->nr_processes; i++) {
		struct nm_trial_process *process = &trial->processes[i];
		if (!process->part || is_recent(process, now_ns))
			continue;
		bool control = process->part->unit->arm == NM_TRIAL_CONTROL;
		process->part->outlived = true;
		leave_unit(trial, process, now_ns);
		if (control && released)
			released(context, process->pid);
	}
}

void nm_trial_unit_free(struct nm_trial_unit *unit)
{
	while (unit->parts) {
		struct nm_trial_part *part = unit->parts;
		unit->parts = part->next;
		part->program->parts--;
		free(part);
	}
	free(unit);
}

void nm_trial_forget(struct nm_trial *trial)
{
	for (size_t i = 0; i < trial->nr_processes; i++) {
		struct nm_trial_process *process = &trial->processes[i];
		nm_tidmap_remove(trial->process_of, process->pid);
		if (process->part && --process->part->unit->living == 0)
			nm_trial_unit_free(process->part->unit);
	}
	trial->nr_processes = 0;
}

size_t nm_trial_processes(const struct nm_trial *trial, const struct nm_trial_process **ret)
{
	*ret = trial->processes;
	return trial->nr_processes;
}

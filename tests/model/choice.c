/* SPDX-License-Identifier: MIT */
/*
 * The papers' kernels as options of the scheduler: before its load balancer moves a waiting thread
 * to another node, it chooses among the threads that wait on that node. kMLB, 3.2.3: by the
 * smallest process, the fewest pages here, or the most pages there. Exclusivity, 3.3, equation 7:
 * of the process whose threads are spread most evenly. All know every page.
 */
#include <math.h>

#include "model.h"

static unsigned most_on_a_node(const struct nm_sim *sim, const struct nm_sim_process *process)
{
	unsigned on[NM_SIM_NODES_MAX] = {0}, most = 0;
	for (unsigned i = 0; i < process->program->threads; i++) {
		unsigned *count = &on[nm_sim_node_of(sim, process->tasks[i].cpu)];
		if (!process->tasks[i].ended && ++*count > most)
			most = *count;
	}
	return most;
}

/* Returns the rank of a thread that would move; the lowest is chosen. */
static double rank_of(const struct nm_sim *sim, const struct nm_sim_task *task, int node)
{
	const struct nm_sim_process *process = task->process;
	double page_bytes = (double)nm_sim_page_bytes(process);
	switch (sim->options.choice) {
	case NM_SIM_CHOOSE_TOTAL_MIN:
		return page_bytes * (double)process->nr_touched;
	case NM_SIM_CHOOSE_REMOTE_MIN:
		return page_bytes * (double)process->on[nm_sim_node_of(sim, task->cpu)];
	case NM_SIM_CHOOSE_LOCAL_MAX:
		return -page_bytes * (double)process->on[node];
	case NM_SIM_CHOOSE_EXCLUSIVITY:
		return (double)most_on_a_node(sim, process) / process->program->threads;
	case NM_SIM_CHOOSE_NONE:
		break;
	}
	return 0;
}

struct nm_sim_task *nm_sim_choose(struct nm_sim *sim, struct nm_sim_task *task, int cpu)
{
	struct nm_sim_task *best = task;
	int here = nm_sim_node_of(sim, task->cpu), node = nm_sim_node_of(sim, cpu);
	double least = rank_of(sim, task, node);
	if (sim->options.choice == NM_SIM_CHOOSE_NONE || here == node)
		return task;
	for (size_t i = 0; i < sim->nr_live; i++) {
		struct nm_sim_task *other = sim->live[i];
		if (nm_sim_node_of(sim, other->cpu) != here || !nm_sim_is_awake(sim, other) ||
		    sim->nr_runnable[other->cpu] < sim->nr_runnable[task->cpu] ||
		    !nm_sim_may_run(sim, other, cpu))
			continue;
		double rank = rank_of(sim, other, node);
		if (rank < least) {
			least = rank;
			best = other;
		}
	}
	sim->figures.choices++;
	sim->figures.chosen += best != task;
	return best;
}

/* SPDX-License-Identifier: MIT */
/* Follows moved threads and pages: which ones stay, and which return. */
#include "model.h"

#define RETURNS_WITHIN_S 60

static const double after_s[NM_SIM_STAYS] = {1, 10};

static bool is_there(const struct nm_sim *sim, const struct nm_sim_task *task)
{
	return nm_sim_node_of(sim, task->cpu) == task->moved_to - 1;
}

static void count_stay(struct nm_sim *sim, struct nm_sim_task *task)
{
	sim->figures.stays[task->nr_stays].of += is_there(sim, task);
	sim->figures.stays[task->nr_stays++].all++;
}

void nm_sim_note_move(struct nm_sim *sim, struct nm_sim_task *task)
{
	if (!nm_sim_is_awake(sim, task) ||
	    hwloc_bitmap_isincluded(sim->machine->topology->online, task->mask))
		return;
	/* It was taken away; one that is there and moved elsewhere counts no longer. */
	while (task->moved_to && !is_there(sim, task) && task->nr_stays < NM_SIM_STAYS)
		count_stay(sim, task);
	task->moved_to = nm_sim_node_of(sim, hwloc_bitmap_first(task->mask)) + 1;
	task->moved_s = sim->now_s;
	task->nr_stays = 0;
}

void nm_sim_follow_moves(struct nm_sim *sim)
{
	for (size_t i = 0; i < sim->nr_live; i++) {
		struct nm_sim_task *task = sim->live[i];
		while (task->moved_to && task->nr_stays < NM_SIM_STAYS &&
		       sim->now_s - task->moved_s >= after_s[task->nr_stays])
			count_stay(sim, task);
	}
}

void nm_sim_note_page(struct nm_sim *sim, struct nm_sim_process *process, size_t page,
		      unsigned node)
{
	sim->figures.pages_returned += process->came_from[page] == node &&
				       sim->now_s - process->came_s[page] < RETURNS_WITHIN_S;
	process->came_from[page] = process->home[page];
	process->came_s[page] = (float)sim->now_s;
}

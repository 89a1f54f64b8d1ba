// SPDX-License-Identifier: MIT
/* Determines which steps may be moved, and records their results. */
#include "mover_internal.h"

static bool has_shape(const struct nm_page_step *step, const struct nm_mapped *mapped)
{
	uint64_t page_bytes = mapped->huge ? mapped->page_bytes : NM_SMALL_PAGE;

	if (step->bytes != page_bytes && (mapped->huge || step->bytes != NM_HUGE_PAGE))
		return false;
	return step->address % step->bytes == 0;
}

bool nm_step_may_move(const struct nm_mover_rules *rules, struct nm_work *work,
		      const struct nm_page_step *step, struct nm_unit *ret_unit)
{
	if (step->to < 0 || (unsigned)step->to >= rules->nr_nodes ||
	    step->from >= (int)rules->nr_nodes)
		return false;
	const struct nm_mapped *mapped =
		nm_mappings_find(work->known->ready, step->address, step->bytes);
	if (!mapped || mapped->policy == NM_MEMORY_UNKNOWN || !has_shape(step, mapped)) {
		work->lacks = true;
		return false;
	}
	*ret_unit = (struct nm_unit){.address = step->address,
				     .bytes = step->bytes,
				     .to = (int)rules->node_ids[step->to],
				     .pool = mapped->huge};
	return nm_mapped_may_move(mapped, &rules->may);
}

int16_t nm_node_index(const struct nm_mover_rules *rules, int node)
{
	for (unsigned i = 0; i < rules->nr_nodes; i++)
		if (node >= 0 && rules->node_ids[i] == (unsigned)node)
			return (int16_t)i;
	return -1;
}

bool nm_step_is_where_seen(const struct nm_page_step *step, const struct nm_unit *unit,
			   int16_t found_on)
{
	return (step->from < 0 || step->from == found_on) && unit->was != unit->to;
}

void nm_step_moved(struct nm_page_step *step, struct nm_mover_counts *counts)
{
	if (step->fate == NM_PAGE_FATE_MOVED)
		return;
	step->fate = NM_PAGE_FATE_MOVED;
	counts->moved++;
}

void nm_step_failed(struct nm_page_step *step, int error)
{
	step->fate = NM_PAGE_FATE_FAILED;
	step->error = error;
}

void nm_step_lacks_room(struct nm_page_step *step)
{
	step->fate = NM_PAGE_FATE_REFUSED;
	step->error = -ENOSPC;
}

void nm_step_end(struct nm_page_step *step)
{
	int error = step->error;

	step->error = 0;
	if (step->fate != NM_PAGE_FATE_UNTRIED)
		return;
	if (error == -ENOSPC)
		nm_step_lacks_room(step);
	else if (error || step->found_on < 0)
		nm_step_failed(step, error ? error : -ENOENT);
	else
		step->fate = NM_PAGE_FATE_ELSEWHERE;
}

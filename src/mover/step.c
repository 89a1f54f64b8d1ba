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

uint64_t *nm_mapped_refusal(const struct nm_mover_rules *rules, const struct nm_mapped *mapped,
			    struct nm_mover_counts *counts)
{
	if (mapped->policy == NM_MEMORY_UNKNOWN)
		return &counts->unknown;
	if (nm_mapped_is_bound(mapped) && !rules->move_bound)
		return &counts->bound;
	return (mapped->shared || mapped->file) && !rules->move_shared ? &counts->shared : NULL;
}

uint64_t *nm_step_refusal(const struct nm_mover_rules *rules, const struct nm_work *work,
			  const struct nm_page_step *step, struct nm_mover_counts *counts,
			  struct nm_unit *ret_unit)
{
	if (step->to < 0 || (unsigned)step->to >= rules->nr_nodes ||
	    step->from >= (int)rules->nr_nodes ||
	    !hwloc_bitmap_isset(work->mems, rules->node_ids[step->to]))
		return &counts->outside;
	const struct nm_mapped *mapped =
		nm_mappings_find(work->known->ready, step->address, step->bytes);
	if (!mapped || !has_shape(step, mapped))
		return &counts->unknown;
	uint64_t *why = nm_mapped_refusal(rules, mapped, counts);
	if (why)
		return why;
	*ret_unit = (struct nm_unit){.address = step->address,
				     .bytes = step->bytes,
				     .to = (int)rules->node_ids[step->to],
				     .pool = mapped->huge};
	return NULL;
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

void nm_step_refused(struct nm_page_step *step, struct nm_mover_counts *counts, uint64_t *why)
{
	step->fate = NM_PAGE_FATE_REFUSED;
	counts->refused++;
	++*why;
}

void nm_step_elsewhere(struct nm_page_step *step, struct nm_mover_counts *counts)
{
	step->fate = NM_PAGE_FATE_ELSEWHERE;
	counts->elsewhere++;
}

void nm_step_failed(struct nm_page_step *step, struct nm_mover_counts *counts, int error)
{
	step->fate = NM_PAGE_FATE_FAILED;
	step->error = error;
	nm_count_failure(counts, error);
}

void nm_count_failure(struct nm_mover_counts *counts, int error)
{
	counts->failed++;
	counts->busy += error == -EBUSY;
	counts->gone += error == -ENOENT;
	counts->denied += error == -EACCES;
	counts->no_memory += error == -ENOMEM;
	counts->fault += error == -EFAULT;
}

void nm_step_end(struct nm_page_step *step, struct nm_mover_counts *counts)
{
	int error = step->error;

	step->error = 0;
	if (step->fate != NM_PAGE_FATE_UNTRIED)
		return;
	if (error == -ENOSPC)
		nm_step_refused(step, counts, &counts->full);
	else if (error || step->found_on < 0)
		nm_step_failed(step, counts, error ? error : -ENOENT);
	else
		nm_step_elsewhere(step, counts);
}

/* SPDX-License-Identifier: MIT */
/* Chooses ranges, for processes with too few samples to decide page by page: a range is moved as a
 * whole, piece by piece, including pages without samples. */
#include <math.h>

#include "policy/page_choice.h"

#define HUGE_BYTES NM_REGION_LEAST_BYTES
#define MOVED_OF 4 /* one of this number of threads counts as many */
#define RETRY_COOLDOWNS 6
#define RETRY_SEEN 8 /* accesses since its placement that can show that a range does not exist */
#define IN_PLACE_SHARE                                                                             \
	0.9 /* share of the sampled accesses that must be in the right place for a range           \
	     * to stay */

/* ---- once per interval ---- */

static double decay_of(const struct nm_config *config, uint64_t interval_ns)
{
	if (config->rules.page_decay_s <= 0)
		return 1;
	return exp2(-(double)interval_ns / (config->rules.page_decay_s * (double)NM_NSEC_PER_SEC));
}

void nm_page_ranges_age(struct nm_page_process *process, const struct nm_config *config,
			uint64_t interval_ns)
{
	/* Counts from the time when many of its threads were on another node are not valid for
	 * their current nodes. */
	bool moved = process->nr_moved_threads > 0 &&
		     process->nr_moved_threads * MOVED_OF >= process->nr_threads;

	process->nr_moved_threads = 0;
	if (!process->regions)
		return;
	nm_regions_fade(process->regions, moved ? 0 : decay_of(config, interval_ns));
	nm_regions_adapt(process->regions);
}

/* ---- samples of a range ---- */

struct range_sample {
	unsigned seen, huge, known; /* number of accesses; in huge pages; with a known node */
	unsigned passing;	    /* by threads that may leave their node soon */
	unsigned max_on_node;	    /* of known: on the most frequent node */
	unsigned in_place;	    /* of known: on the requested node, or represented by it */
};

/* The criteria of a search. */
struct criteria {
	uint64_t start, end;
	uint64_t since; /* interval */
	int node;
	bool exact; /* only that node's own memory counts, because it has its own controller */
};

/* Memory without CPUs counts as memory of the node that represents it. */
static bool is_represented_by(const struct nm_topology *topology, int page_node, int node)
{
	return page_node == node ||
	       (node >= 0 && topology->nodes[page_node].nearest_with_cpus == node);
}

static struct range_sample sample_range(const struct nm_page_process *process,
					const struct nm_topology *topology,
					const struct criteria *criteria)
{
	uint32_t count = process->nr_seen < NM_PAGE_ACCESSES ? process->nr_seen : NM_PAGE_ACCESSES;
	unsigned on_node[64] = {0};
	struct range_sample range_sample = {0};

	for (uint32_t i = 0; i < count; i++) {
		const struct nm_page_access *seen = &process->seen[i];
		if (seen->address < criteria->start || seen->address >= criteria->end ||
		    seen->interval < criteria->since)
			continue;
		range_sample.seen++;
		range_sample.huge += seen->huge;
		range_sample.passing += !seen->settled;
		if (seen->page_node < 0 || (unsigned)seen->page_node >= topology->nr_nodes)
			continue;
		range_sample.known++;
		range_sample.in_place +=
			criteria->exact
				? seen->page_node == criteria->node
				: is_represented_by(topology, seen->page_node, criteria->node);
		if ((size_t)seen->page_node < NM_ARRAY_SIZE(on_node) &&
		    ++on_node[seen->page_node] > range_sample.max_on_node)
			range_sample.max_on_node = on_node[seen->page_node];
	}
	return range_sample;
}

static bool is_in_place(const struct nm_page_input *input, const struct range_sample *range_sample,
			int target)
{
	double known = range_sample->known;

	if (range_sample->known == 0)
		return false;
	if (target == NM_REGION_EVERYWHERE)
		return range_sample->max_on_node <=
		       known / input->topology->nr_nodes + known * NM_REGION_EVEN_BAND;
	return range_sample->in_place >= IN_PLACE_SHARE * known;
}

/* ---- choosing a range ---- */

static void start_range(const struct nm_region *region, int target, struct nm_page_process *process)
{
	bool exclusive = target == region->node;

	process->cursor = (struct nm_range_cursor){
		.active = true,
		.start = region->start,
		.end = region->end,
		.next = region->start,
		.target = target,
		.reason = exclusive ? NM_PAGE_REASON_REGION : NM_PAGE_REASON_CONTENTION,
		.exclusivity = exclusive ? region->exclusivity : (double)NAN,
		.page_bytes = region->page_bytes,
	};
}

/* A placed range may not be there: there was not enough memory, or it was freed and allocated
 * again. */
static bool may_be_in_place(const struct nm_page_input *input,
			    const struct nm_page_process *process, const struct nm_region *region)
{
	uint64_t settle = 2 + RETRY_COOLDOWNS * nm_page_cooldown(input->config);
	struct criteria since = {region->start, region->end, region->placed_at + settle,
				 region->placed, false};
	struct range_sample range_sample = sample_range(process, input->topology, &since);

	return range_sample.known < RETRY_SEEN || is_in_place(input, &range_sample, region->placed);
}

/*
 * The overloaded node must be relieved of ranges in its memory, not of ranges that its CPUs access.
 */
static bool is_on_busiest_node(const struct nm_page_input *input,
			       const struct nm_page_process *process,
			       const struct nm_region *region)
{
	struct criteria all = {region->start, region->end, 0, input->contention->busiest, true};
	struct range_sample range_sample = sample_range(process, input->topology, &all);

	return 2 * range_sample.in_place > range_sample.known;
}

/* Pages follow threads that stay (stencil paper, section 5). */
static bool have_threads_settled(const struct nm_page_input *input,
				 const struct nm_page_process *process,
				 const struct nm_region *region)
{
	uint64_t since = input->interval > 0 ? input->interval - 1 : 0;
	struct criteria recent = {region->start, region->end, since, region->node, false};
	struct range_sample range_sample = sample_range(process, input->topology, &recent);

	return range_sample.passing <= (1 - IN_PLACE_SHARE) * range_sample.seen;
}

static int wanted_target(const struct nm_page_input *input, const struct nm_page_process *process,
			 const struct nm_region *region)
{
	int target = nm_contention_target(region, input->topology->nr_nodes, input->contention,
					  input->config);

	if (target == NM_REGION_NOWHERE ||
	    (target == region->placed && may_be_in_place(input, process, region)) ||
	    (target >= 0 && target != region->node &&
	     !is_on_busiest_node(input, process, region)) ||
	    (target == region->node && !have_threads_settled(input, process, region)))
		return NM_REGION_NOWHERE;
	return target;
}

/* Selects the next range that should be on another node; a range that is already there is recorded
 * as placed. */
static void choose_range(const struct nm_page_input *input, struct nm_page_process *process,
			 size_t *index)
{
	for (; *index < nm_regions_count(process->regions); ++*index) {
		struct nm_region region = nm_regions_at(process->regions, *index);
		int target = wanted_target(input, process, &region);
		struct criteria all = {region.start, region.end, 0, target, false};
		if (target == NM_REGION_NOWHERE)
			continue;
		struct range_sample range_sample = sample_range(process, input->topology, &all);
		if (target == region.placed || !is_in_place(input, &range_sample, target)) {
			start_range(&region, target, process);
			return;
		}
		nm_regions_set_placed(process->regions, *index, target, input->interval);
	}
}

/* Its accesses may have changed meanwhile, or it may not exist any more. */
static bool is_still_wanted(const struct nm_page_input *input,
			    const struct nm_page_process *process)
{
	size_t index;

	if (!nm_regions_find(process->regions, process->cursor.next, &index))
		return false;
	struct nm_region region = nm_regions_at(process->regions, index);
	int target = nm_contention_target(&region, input->topology->nr_nodes, input->contention,
					  input->config);
	return target == NM_REGION_NOWHERE || target == process->cursor.target;
}

static void end_range(struct nm_page_process *process, uint64_t interval)
{
	struct nm_range_cursor *cursor = &process->cursor;

	for (size_t i = 0; i < nm_regions_count(process->regions); i++) {
		struct nm_region region = nm_regions_at(process->regions, i);
		if (region.start >= cursor->start && region.end <= cursor->end)
			nm_regions_set_placed(process->regions, i, cursor->target, interval);
	}
	cursor->active = false;
}

void nm_page_ranges_mark_missed(struct nm_page_process *process, uint64_t address)
{
	size_t index;

	if (process->regions && nm_regions_find(process->regions, address, &index))
		nm_regions_set_placed(process->regions, index, NM_REGION_NOWHERE, 0);
}

/* ---- its pages ---- */

/*
 * Returns the page at an address: a huge one if at least 50 % of the sampled accesses to the range
 * were to huge pages, if there were none, or if the table of pages has a huge page there. If it
 * turns out to be small, the mover moves the small pages. The result is never a part of a page.
 */
static struct nm_page_id page_at(const struct nm_page_input *input,
				 const struct nm_page_process *process,
				 const struct range_sample *range_sample, uint64_t address,
				 uint64_t end)
{
	const struct nm_range_cursor *cursor = &process->cursor;
	struct nm_page_id page = {.address = address, .owner = process->owner, .size = NM_PAGE_2M};
	struct nm_page_view view;
	uint64_t bytes = cursor->page_bytes;

	if (bytes > HUGE_BYTES && address % bytes == 0 && bytes <= end - address) {
		page.size = NM_PAGE_1G;
		return page;
	}
	bool fits = address % HUGE_BYTES == 0 && end - address >= HUGE_BYTES;
	bool huge = range_sample->seen == 0 || 2 * range_sample->huge >= range_sample->seen;
	if (!fits || (!huge && nm_memory_look(input->memory, &page, &view) < 0))
		page.size = NM_PAGE_4K;
	return page;
}

/* An interleaved range is spread over the nodes with CPUs; other memory is farther from all of
 * them. */
static bool is_interleaved_over(const struct nm_topology *topology, unsigned node)
{
	return topology->nodes[node].nearest_with_cpus == (int)node;
}

static int node_of(const struct nm_topology *topology, const struct nm_range_cursor *cursor,
		   uint64_t turn)
{
	unsigned count = 0;

	if (cursor->target >= 0)
		return cursor->target;
	for (unsigned k = 0; k < topology->nr_nodes; k++)
		count += is_interleaved_over(topology, k);
	turn = count ? turn % count : 0;
	for (unsigned k = 0; k < topology->nr_nodes; k++)
		if (is_interleaved_over(topology, k) && turn-- == 0)
			return (int)k;
	return 0;
}

/* Returns whether another node uses the page more, by more than chance. */
static bool is_used_elsewhere(const struct nm_page_input *input, const struct nm_page_view *view,
			      int node)
{
	for (unsigned k = 0; k < input->topology->nr_nodes; k++)
		if (view->accesses[k] > nm_evidence_over(view->accesses[node]))
			return true;
	return false;
}

/* A page is not requested if it is known to be on the node, was refused, or is no longer moved, or
 * if it is an exception in a range of that node. */
static bool is_wanted(const struct nm_page_input *input, const struct nm_page_process *process,
		      const struct nm_page_id *page, int node)
{
	struct nm_page_view view;

	if (nm_page_is_refused(process, page->address))
		return false;
	if (nm_memory_look(input->memory, page, &view) < 0)
		return true;
	bool in_place =
		view.page_node >= 0 && is_represented_by(input->topology, view.page_node, node);
	if (input->config->rules.page_min_accesses > 0 &&
	    process->cursor.reason == NM_PAGE_REASON_REGION &&
	    is_used_elsewhere(input, &view, node))
		return false;
	return !in_place && !view.pending && !view.barred && !view.left_alone;
}

/* Continues the current range within the budget. */
static void choose_pages(const struct nm_page_input *input, struct nm_page_process *process,
			 struct nm_page_budget *room, struct nm_page_choices *choices)
{
	struct nm_range_cursor *cursor = &process->cursor;
	struct criteria all = {cursor->start, cursor->end, 0, -1, false};
	struct range_sample range_sample = sample_range(process, input->topology, &all);

	choices->reason = cursor->reason;
	while (cursor->next < cursor->end && choices->count < choices->most) {
		struct nm_page_id page =
			page_at(input, process, &range_sample, cursor->next, cursor->end);
		uint64_t bytes =
			page.size == NM_PAGE_1G ? cursor->page_bytes : nm_page_bytes(page.size);
		int node = node_of(input->topology, cursor, cursor->next / bytes);
		if (is_wanted(input, process, &page, node)) {
			if (!nm_page_budget_use(room, bytes))
				return;
			choices->items[choices->count++] =
				(struct nm_page_step){.address = cursor->next,
						      .bytes = bytes,
						      .from = -1,
						      .to = (int16_t)node};
			choices->exclusivity += cursor->exclusivity;
		}
		cursor->next += bytes;
	}
}

/* Takes as many ranges as the budget allows. */
static void choose_pages_of_ranges(const struct nm_page_input *input,
				   struct nm_page_process *process, struct nm_page_budget *room,
				   struct nm_page_choices *choices)
{
	struct nm_range_cursor *cursor = &process->cursor;
	size_t region = 0;

	while (choices->count < choices->most) {
		if (!cursor->active)
			choose_range(input, process, &region);
		if (!cursor->active || (choices->count > 0 && cursor->reason != choices->reason))
			return;
		choose_pages(input, process, room, choices);
		if (cursor->next < cursor->end)
			return;
		end_range(process, input->interval);
	}
}

void nm_page_ranges_choose(const struct nm_page_input *input, struct nm_page_process *process,
			   struct nm_page_budget *room, struct nm_page_choices *choices)
{
	choices->cursor = process->cursor;
	if (!process->regions || process->held || process->waits)
		return;
	if (process->cursor.active && !is_still_wanted(input, process))
		process->cursor.active = false;
	choices->cursor = process->cursor;
	choose_pages_of_ranges(input, process, room, choices);
	if (choices->count > 0)
		choices->exclusivity /= (double)choices->count;
}

void nm_page_ranges_restore(struct nm_page_process *process, const struct nm_page_choices *choices)
{
	process->cursor = choices->cursor;
	for (size_t i = 0; i < choices->count; i++)
		nm_page_ranges_mark_missed(process, choices->items[i].address);
}

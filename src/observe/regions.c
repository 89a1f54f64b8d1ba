/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "observe/memory.h"
#include "observe/regions.h"

/* Accesses by node of the whole region whose half is not known, and of each half. */
/* minimum number of samples in each half of a range to be split */
#define SPLIT_SAMPLES 8
/* Neighbouring ranges of a node are merged if the difference of their exclusivities is at most
 * this. */
#define MERGE_BAND 0.1

enum { WHOLE, LEFT, RIGHT, PARTS };

struct bounds {
	uint64_t start, end, page_bytes;
	int placed;
	uint64_t placed_at;
};

struct list {
	struct bounds *items;
	double *counts; /* PARTS × nr_nodes values per region */
	size_t count, capacity;
};

struct nm_regions {
	unsigned nr_nodes;
	size_t most;
	struct list list;
};

static void free_list(struct list *list)
{
	free(list->items);
	free(list->counts);
}

void nm_regions_new(unsigned nr_nodes, size_t most, struct nm_regions **ret)
{
	struct nm_regions *regions = nm_must(calloc(1, sizeof(*regions)));

	regions->nr_nodes = nr_nodes;
	regions->most = most;
	*ret = regions;
}

void nm_regions_free(struct nm_regions *regions)
{
	if (!regions)
		return;
	free_list(&regions->list);
	free(regions);
}

/* ---- lists ---- */

static double *counts_of(const struct nm_regions *regions, const struct list *list, size_t index,
			 unsigned part)
{
	return list->counts + (index * PARTS + part) * regions->nr_nodes;
}

/* Appends a region without accesses. */
static void append_bounds(const struct nm_regions *regions, struct list *list, struct bounds bounds)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 8;
		list->counts = nm_must(reallocarray(
			list->counts, capacity * PARTS * regions->nr_nodes, sizeof(*list->counts)));
		list->items = nm_must(reallocarray(list->items, capacity, sizeof(*list->items)));
		list->capacity = capacity;
	}
	list->items[list->count] = bounds;
	memset(counts_of(regions, list, list->count, WHOLE), 0,
	       sizeof(double) * PARTS * regions->nr_nodes);
	list->count++;
}

static void replace(struct nm_regions *regions, struct list *list)
{
	free_list(&regions->list);
	regions->list = *list;
	*list = (struct list){0};
}

static void add_counts(double *to, const double *counts, unsigned nr_nodes)
{
	for (unsigned k = 0; k < nr_nodes; k++)
		to[k] += counts[k];
}

/* Adds a share of the accesses of region `index` in the old list to the last region of `list`. */
static void inherit(const struct nm_regions *regions, struct list *list, size_t index, double share)
{
	double *whole = counts_of(regions, list, list->count - 1, WHOLE);
	const double *parts = counts_of(regions, &regions->list, index, WHOLE);

	for (unsigned k = 0; k < regions->nr_nodes; k++)
		for (unsigned part = 0; part < PARTS; part++)
			whole[k] += share * parts[part * regions->nr_nodes + k];
}

/* Copies a region exactly, including its halves. */
static void append_copy(const struct nm_regions *regions, struct list *list, size_t index)
{
	append_bounds(regions, list, regions->list.items[index]);
	memcpy(counts_of(regions, list, list->count - 1, WHOLE),
	       counts_of(regions, &regions->list, index, WHOLE),
	       sizeof(double) * PARTS * regions->nr_nodes);
}

/* ---- evaluation of accesses ---- */

struct tally {
	double samples, most, next;
	int node, second;
};

static void tally_node(struct tally *tally, int node, double count)
{
	tally->samples += count;
	if (count > tally->most) {
		tally->next = tally->most;
		tally->second = tally->node;
		tally->most = count;
		tally->node = node;
	} else if (count > tally->next) {
		tally->next = count;
		tally->second = node;
	}
}

static struct tally tally_of(const double *counts, unsigned nr_nodes)
{
	struct tally tally = {.node = -1, .second = -1};

	for (unsigned k = 0; k < nr_nodes; k++)
		tally_node(&tally, (int)k, counts[k]);
	return tally;
}

static void tally_halves(const struct nm_regions *regions, size_t index, struct tally *ret_left,
			 struct tally *ret_right)
{
	*ret_left = tally_of(counts_of(regions, &regions->list, index, LEFT), regions->nr_nodes);
	*ret_right = tally_of(counts_of(regions, &regions->list, index, RIGHT), regions->nr_nodes);
}

static struct tally tally_of_region(const struct nm_regions *regions, const struct list *list,
				    size_t index)
{
	struct tally tally = {.node = -1, .second = -1};
	const double *parts[PARTS];

	for (unsigned part = 0; part < PARTS; part++)
		parts[part] = counts_of(regions, list, index, part);
	for (unsigned k = 0; k < regions->nr_nodes; k++)
		tally_node(&tally, (int)k, parts[WHOLE][k] + parts[LEFT][k] + parts[RIGHT][k]);
	return tally;
}

static double exclusivity_of(struct tally tally)
{
	return tally.samples > 0 ? tally.most / tally.samples : (double)NAN;
}

/* Returns the address at which the region would be split: the page boundary at or below its middle;
 * or its start. */
static uint64_t middle_of(const struct bounds *bounds)
{
	uint64_t middle = bounds->start + (bounds->end - bounds->start) / 2;

	middle -= middle % bounds->page_bytes;
	return middle > bounds->start ? middle : bounds->start;
}

/* ---- mappings ---- */

static struct bounds bounds_of(const struct nm_range *range, uint64_t start, uint64_t end)
{
	uint64_t page_bytes = range->page_bytes > NM_REGION_LEAST_BYTES ? range->page_bytes
									: NM_REGION_LEAST_BYTES;

	return (struct bounds){start, end, page_bytes, .placed = NM_REGION_NOWHERE};
}

/* Newly mapped memory becomes a region of its own, or extends the previous one if it is small. */
static void append_new(const struct nm_regions *regions, struct list *list,
		       const struct nm_range *range, uint64_t start, uint64_t end)
{
	struct bounds *last = list->count ? &list->items[list->count - 1] : NULL;

	if (start >= end)
		return;
	if (last && last->end == start && start > range->start &&
	    end - start < NM_REGION_LEAST_BYTES) {
		last->end = end;
		return;
	}
	append_bounds(regions, list, bounds_of(range, start, end));
}

/* Appends the part of an old region that is within the range. */
static void append_rest(const struct nm_regions *regions, struct list *list,
			const struct nm_range *range, size_t index)
{
	const struct bounds *old = &regions->list.items[index];
	struct bounds rest = bounds_of(range, old->start > range->start ? old->start : range->start,
				       old->end < range->end ? old->end : range->end);

	rest.placed = old->placed;
	rest.placed_at = old->placed_at;
	if (rest.start == old->start && rest.end == old->end &&
	    rest.page_bytes == old->page_bytes) {
		append_copy(regions, list, index);
		return;
	}
	append_bounds(regions, list, rest);
	inherit(regions, list, index,
		(double)(rest.end - rest.start) / (double)(old->end - old->start));
}

static void append_range(const struct nm_regions *regions, struct list *list,
			 const struct nm_range *range, size_t *first)
{
	const struct list *old = &regions->list;
	uint64_t done = range->start;

	while (*first < old->count && old->items[*first].end <= range->start)
		++*first;
	for (size_t i = *first; i < old->count && old->items[i].start < range->end; i++) {
		append_new(regions, list, range, done, old->items[i].start);
		append_rest(regions, list, range, i);
		done = list->items[list->count - 1].end;
	}
	append_new(regions, list, range, done, range->end);
}

static uint64_t size_of(const struct nm_range *range)
{
	return range->end - range->start;
}

static int larger_first(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a < b) - (a > b);
}

/* The ranges for which there is room: all larger ones than this size, and a number of equally large
 * ones. */
struct choice {
	uint64_t least;
	size_t as_large;
};

static void choose_ranges(const struct nm_regions *regions, const struct nm_range *ranges,
			  size_t count, struct choice *ret)
{
	nm_autofree uint64_t *sizes = nm_must(calloc(count + 1, sizeof(*sizes)));
	size_t larger = 0;

	for (size_t i = 0; i < count; i++)
		sizes[i] = size_of(&ranges[i]);
	qsort(sizes, count, sizeof(*sizes), larger_first);
	*ret = (struct choice){NM_REGION_LEAST_BYTES, count};
	if (count <= regions->most || sizes[regions->most - 1] < NM_REGION_LEAST_BYTES)
		return;
	ret->least = sizes[regions->most - 1];
	while (sizes[larger] > ret->least)
		larger++;
	ret->as_large = regions->most - larger;
}

static bool is_chosen(struct choice *choice, const struct nm_range *range)
{
	if (size_of(range) == choice->least)
		return choice->as_large > 0 && choice->as_large--;
	return size_of(range) > choice->least;
}

int nm_regions_set_ranges(struct nm_regions *regions, const struct nm_range *ranges, size_t count)
{
	nm_auto(free_list) struct list list = {0};
	struct choice choice = {0}; /* set or unused, which not every compiler can detect */
	size_t first = 0;

	choose_ranges(regions, ranges, count, &choice);
	for (size_t i = 0; i < count && list.count < regions->most; i++)
		if (is_chosen(&choice, &ranges[i]))
			append_range(regions, &list, &ranges[i], &first);
	if (list.count > regions->most)
		list.count = regions->most;
	replace(regions, &list);
	return 0;
}

/* ---- accesses ---- */

static bool find_bounds(const struct list *list, uint64_t address, size_t *ret)
{
	size_t low = NM_FIRST_ABOVE(list->items, list->count, end, address);

	*ret = low;
	return low < list->count && list->items[low].start <= address;
}

void nm_regions_touch(struct nm_regions *regions, uint64_t address, unsigned node)
{
	size_t index;

	if (node >= regions->nr_nodes || !find_bounds(&regions->list, address, &index))
		return;
	unsigned part = address < middle_of(&regions->list.items[index]) ? LEFT : RIGHT;
	counts_of(regions, &regions->list, index, part)[node]++;
}

void nm_regions_fade(struct nm_regions *regions, double keep)
{
	for (size_t i = 0; i < regions->list.count * PARTS * regions->nr_nodes; i++)
		regions->list.counts[i] *= keep;
}

/* ---- splitting and merging ---- */

/* Neither half may be too small for a decision. */
static bool can_split(const struct bounds *bounds)
{
	uint64_t middle = middle_of(bounds);

	return middle - bounds->start >= NM_REGION_LEAST_BYTES &&
	       bounds->end - middle >= NM_REGION_LEAST_BYTES;
}

static bool is_one_nodes(struct tally tally)
{
	return exclusivity_of(tally) >= NM_REGION_EXCLUSIVITY;
}

/* Memory that threads of all nodes use alternately looks the same in both halves. Therefore a
 * region that does not belong to one node is split until parts of single nodes appear. */
static bool should_split(const struct nm_regions *regions, size_t index)
{
	struct tally left, right;

	tally_halves(regions, index, &left, &right);
	return can_split(&regions->list.items[index]) && left.samples >= SPLIT_SAMPLES &&
	       right.samples >= SPLIT_SAMPLES &&
	       (left.node != right.node ||
		!is_one_nodes(tally_of_region(regions, &regions->list, index)));
}

static void append_half(const struct nm_regions *regions, struct list *list, size_t index,
			unsigned part)
{
	struct bounds half = regions->list.items[index];

	if (part == LEFT)
		half.end = middle_of(&regions->list.items[index]);
	else
		half.start = middle_of(&regions->list.items[index]);
	append_bounds(regions, list, half);
	add_counts(counts_of(regions, list, list->count - 1, WHOLE),
		   counts_of(regions, &regions->list, index, part), regions->nr_nodes);
}

/* Returns whether the old region continues the last new one. */
static bool should_merge(const struct nm_regions *regions, const struct list *list, size_t index)
{
	if (list->count == 0)
		return false;
	const struct bounds *last = &list->items[list->count - 1];
	const struct bounds *next = &regions->list.items[index];
	if (last->end != next->start || last->page_bytes != next->page_bytes ||
	    last->placed != next->placed)
		return false;
	struct tally a = tally_of_region(regions, list, list->count - 1);
	struct tally b = tally_of_region(regions, &regions->list, index);
	if (a.samples < 1 && b.samples < 1)
		return true;
	/* Otherwise they would be split again. */
	return a.node == b.node && is_one_nodes(a) && is_one_nodes(b) &&
	       fabs(exclusivity_of(a) - exclusivity_of(b)) <= MERGE_BAND;
}

/* Merges both; their halves are not known yet. */
static void merge(const struct nm_regions *regions, struct list *list, size_t index)
{
	double *whole = counts_of(regions, list, list->count - 1, WHOLE);
	double *left = counts_of(regions, list, list->count - 1, LEFT);

	add_counts(whole, left, regions->nr_nodes);
	add_counts(whole, counts_of(regions, list, list->count - 1, RIGHT), regions->nr_nodes);
	memset(left, 0, sizeof(*left) * 2 * regions->nr_nodes);
	inherit(regions, list, index, 1);
	list->items[list->count - 1].end = regions->list.items[index].end;
	if (list->items[list->count - 1].placed_at < regions->list.items[index].placed_at)
		list->items[list->count - 1].placed_at = regions->list.items[index].placed_at;
}

void nm_regions_adapt(struct nm_regions *regions)
{
	nm_auto(free_list) struct list list = {0};

	for (size_t i = 0; i < regions->list.count; i++) {
		size_t to_come = regions->list.count - i - 1;
		if (list.count + 2 + to_come <= regions->most && should_split(regions, i)) {
			append_half(regions, &list, i, LEFT);
			append_half(regions, &list, i, RIGHT);
		} else if (should_merge(regions, &list, i)) {
			merge(regions, &list, i);
		} else {
			append_copy(regions, &list, i);
		}
	}
	replace(regions, &list);
}

/* ---- queries ---- */

bool nm_regions_find(const struct nm_regions *regions, uint64_t address, size_t *ret_index)
{
	return find_bounds(&regions->list, address, ret_index);
}

size_t nm_regions_count(const struct nm_regions *regions)
{
	return regions->list.count;
}

struct nm_region nm_regions_at(const struct nm_regions *regions, size_t index)
{
	const struct bounds *bounds = &regions->list.items[index];
	struct tally tally = tally_of_region(regions, &regions->list, index), left, right;

	tally_halves(regions, index, &left, &right);
	double of_halves = left.samples + right.samples;
	return (struct nm_region){
		.start = bounds->start,
		.end = bounds->end,
		.page_bytes = bounds->page_bytes,
		.samples = tally.samples,
		.exclusivity = exclusivity_of(tally),
		.node = tally.node,
		.second = tally.second,
		.placed = bounds->placed,
		.placed_at = bounds->placed_at,
		.whole = !can_split(bounds),
		/* Otherwise a part without samples yet may be that of another node. */
		.uniform = left.samples >= SPLIT_SAMPLES && right.samples >= SPLIT_SAMPLES &&
			   left.node == right.node,
		.by_halves = of_halves > 0 ? (left.most + right.most) / of_halves : (double)NAN,
	};
}

/* As for a page: the accesses of the main node outnumber the others by more than chance. In a range
 * that can be split, both halves must show it. */
static bool is_evident(const struct nm_region *region, const struct nm_config *config)
{
	double most = region->exclusivity * region->samples;

	return config->rules.page_min_accesses == 0 ||
	       ((region->whole || region->uniform) &&
		most > nm_evidence_over(region->samples - most));
}

int nm_region_target(const struct nm_region *region, unsigned nr_nodes, double imbalance,
		     const struct nm_config *config)
{
	if (nr_nodes < 2 || region->end - region->start < NM_REGION_LEAST_BYTES ||
	    region->samples < NM_REGION_LEAST_SAMPLES)
		return NM_REGION_NOWHERE;
	if (region->exclusivity >= NM_REGION_EXCLUSIVITY && is_evident(region, config))
		return region->node;
	double even = 1.0 / nr_nodes, band = NM_REGION_EVEN_BAND;
	/* Fewer accesses deviate more from an even distribution by chance. If the imbalance is NaN,
	 * nothing is spread. */
	if (region->whole && region->exclusivity <= even + band &&
	    region->by_halves <= even + 2 * band && imbalance > NM_REGION_IMBALANCE)
		return NM_REGION_EVERYWHERE;
	return NM_REGION_NOWHERE;
}

void nm_regions_set_placed(struct nm_regions *regions, size_t index, int placed, uint64_t interval)
{
	regions->list.items[index].placed = placed;
	regions->list.items[index].placed_at = interval;
}

double nm_imbalance(const double *traffic, unsigned nr_nodes)
{
	double sum = 0, squares = 0;

	for (unsigned k = 0; k < nr_nodes; k++)
		sum += traffic[k];
	double mean = sum / nr_nodes;
	for (unsigned k = 0; k < nr_nodes; k++)
		squares += (traffic[k] - mean) * (traffic[k] - mean);
	return sum > 0 ? sqrt(squares / nr_nodes) / mean : (double)NAN;
}

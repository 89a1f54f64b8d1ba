/* SPDX-License-Identifier: MIT */
/* Which of the waiting threads moves: the pages of each process on each node (kMLB, section 3.2.2),
 * the rules of kMLB (3.2.3) and of the paper on exclusivity (sections 2.3 and 3), and the cost of a
 * move. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/balance.h"

#define SAMPLES_MIN 64			 /* accesses that show where pages are */
#define PERIOD_NS (30 * NM_NSEC_PER_SEC) /* between two counts of the pages of a process */
#define RETRY_NS NM_NSEC_PER_SEC	 /* after a query that could not be sent */

/* ---- resident pages ---- */

/* R_p(i), the number of pages of a process on each node (kMLB, section 3.2.2): its resident pages
 * in proportion to its sampled accesses or, if these are few, to the pages that a query found. */

static void init_residence(const struct nm_snapshot *snapshot, void *cell)
{
	struct nm_residence *residence = cell;
	size_t nr_nodes = snapshot->topology->nr_nodes;
	residence->pages = nm_must(calloc(3 * nr_nodes, sizeof(double)));
	residence->seen = residence->pages + nr_nodes;
	residence->counted = residence->seen + nr_nodes;
}

static void clear_residence(void *context, void *cell)
{
	struct nm_residence *residence = cell;
	(void)context;
	free(residence->pages);
}

struct nm_column nm_residence_column(void)
{
	return (struct nm_column){.cell_bytes = sizeof(struct nm_residence),
				  .init = init_residence,
				  .clear = clear_residence};
}

static struct nm_residence *residence_at(const struct nm_balancer *balancer, size_t index)
{
	return (struct nm_residence *)balancer->residences.cells + index;
}

const struct nm_residence *nm_balancer_residence(const struct nm_balancer *balancer, uint32_t pid)
{
	const struct nm_residence *residence = nm_column_find(&balancer->residences, pid);
	return residence && residence->known ? residence : NULL;
}

/* Sampled accesses show where pages are used; the paper counts where they reside. */
static bool shows_by_samples(const struct nm_balancer *balancer,
			     const struct nm_residence *residence)
{
	return !balancer->paper && residence->samples >= SAMPLES_MIN;
}

static void estimate(const struct nm_balancer *balancer, struct nm_residence *residence,
		     uint64_t now_ns)
{
	bool counted = balancer->paper ||
		       (residence->counted_ns && !shows_by_samples(balancer, residence));
	const double *found = counted ? residence->counted : residence->seen;
	double resident = (double)residence->rss_bytes / balancer->page_bytes, sum = 0;
	for (unsigned k = 0; k < balancer->topology->nr_nodes; k++)
		sum += found[k];
	memset(residence->pages, 0, balancer->topology->nr_nodes * sizeof(*residence->pages));
	for (unsigned k = 0; sum > 0 && k < balancer->topology->nr_nodes; k++)
		residence->pages[balancer->topology->nodes[k].nearest_with_cpus] +=
			resident * (found[k] / sum);
	residence->resident = resident;
	residence->age_ns = counted ? now_ns - residence->counted_ns : 0;
	residence->known = sum > 0;
}

void nm_balancer_follow_pages(struct nm_balancer *balancer, const struct nm_snapshot *snapshot)
{
	nm_column_follow_processes(&balancer->residences, snapshot);
	for (size_t i = 0; i < snapshot->nr_processes; i++) {
		struct nm_residence *residence = residence_at(balancer, i);
		residence->pid = snapshot->processes[i].pid;
		residence->start_ticks = snapshot->processes[i].start_ticks;
		residence->rss_bytes = snapshot->processes[i].rss_bytes;
		residence->samples = 0;
		memset(residence->seen, 0, balancer->topology->nr_nodes * sizeof(*residence->seen));
	}
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		struct nm_residence *residence = residence_at(balancer, thread->process);
		if (!(thread->stats.access_total > 0))
			continue;
		for (unsigned k = 0; k < balancer->topology->nr_nodes; k++)
			residence->seen[k] += thread->stats.accesses[k];
		residence->samples += thread->stats.access_samples;
	}
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		estimate(balancer, residence_at(balancer, i), snapshot->time_ns);
}

struct nm_residence *nm_balancer_next_query(const struct nm_balancer *balancer, uint64_t now_ns)
{
	struct nm_residence *next = NULL;
	for (size_t i = 0; i < balancer->residences.count; i++) {
		struct nm_residence *residence = residence_at(balancer, i);
		if (!shows_by_samples(balancer, residence) && residence->due_ns <= now_ns &&
		    (!next || residence->due_ns < next->due_ns))
			next = residence;
	}
	return next;
}

void nm_balancer_note_query(struct nm_balancer *balancer, struct nm_residence *residence,
			    uint64_t query_id, int error, const struct nm_snapshot *snapshot)
{
	residence->due_ns = snapshot->time_ns + (error == -EAGAIN ? RETRY_NS : PERIOD_NS);
	balancer->query = (struct nm_balancer_query){.query_id = query_id,
						     .pid = residence->pid,
						     .start_ticks = residence->start_ticks,
						     .interval = snapshot->interval};
}

void nm_balancer_set_pages(struct nm_balancer *balancer, uint32_t pid, uint64_t start_ticks,
			   const double *pages, uint64_t now_ns)
{
	struct nm_residence *residence = nm_column_find(&balancer->residences, pid);
	double sum = 0;
	for (unsigned k = 0; k < balancer->topology->nr_nodes; k++)
		sum += pages[k];
	if (!residence || residence->start_ticks != start_ticks || !(sum > 0))
		return;
	memcpy(residence->counted, pages, balancer->topology->nr_nodes * sizeof(*pages));
	residence->counted_ns = now_ns;
	balancer->tally.pages_counted++;
	estimate(balancer, residence, now_ns);
}

/* ---- rules ---- */

/* The input of a metric; pages are NULL only for rules that do not need them. */
struct metric_input {
	const double *resident;
	const uint32_t *members;
	unsigned nr_nodes;
	int from, to;
};

/* The highest is chosen; `second` decides between equal values of `first`. */
struct rank {
	double first, second;
};

static struct rank rank_first_fit(const struct metric_input *metric_input)
{
	(void)metric_input;
	return (struct rank){0};
}

static struct rank rank_total_min(const struct metric_input *metric_input)
{
	double total = 0;
	for (unsigned k = 0; k < metric_input->nr_nodes; k++)
		total += metric_input->resident[k];
	return (struct rank){.first = -total};
}

static struct rank rank_remote_min(const struct metric_input *metric_input)
{
	return (struct rank){.first = -metric_input->resident[metric_input->from]};
}

static struct rank rank_local_max(const struct metric_input *metric_input)
{
	return (struct rank){.first = metric_input->resident[metric_input->to]};
}

static double gain_of(const struct metric_input *metric_input)
{
	return metric_input->resident[metric_input->to] -
	       metric_input->resident[metric_input->from];
}

static struct rank rank_most_benefit(const struct metric_input *metric_input)
{
	return (struct rank){.first = gain_of(metric_input)};
}

/*
 * Without pages on the source node the ratio is infinite, and the pages on the destination count.
 */
static struct rank rank_cost_effective(const struct metric_input *metric_input)
{
	double here = metric_input->resident[metric_input->from],
	       there = metric_input->resident[metric_input->to];
	if (here > 0)
		return (struct rank){.first = gain_of(metric_input) / here};
	if (there > 0)
		return (struct rank){.first = INFINITY, .second = there};
	return (struct rank){0};
}

double nm_selection_exclusivity(const uint32_t *members, unsigned nr_nodes)
{
	uint64_t most = 0, total = 0;
	for (unsigned k = 0; k < nr_nodes; k++) {
		total += members[k];
		if (members[k] > most)
			most = members[k];
	}
	return total ? (double)most / (double)total : (double)NAN;
}

static struct rank rank_exclusivity(const struct metric_input *metric_input)
{
	return (struct rank){
		.first = -nm_selection_exclusivity(metric_input->members, metric_input->nr_nodes)};
}

static const struct rule {
	struct rank (*rank)(const struct metric_input *metric_input);
	double sign; /* factor from the rank to the metric in the papers; 0: none */
	bool needs_pages;
	bool enhanced; /* rules for leaders, and one member per group */
} rules[] = {
	[NM_SELECTION_FIRST_FIT] = {rank_first_fit, 0, false, false},
	[NM_SELECTION_TOTAL_MIN] = {rank_total_min, -1, true, false},
	[NM_SELECTION_REMOTE_MIN] = {rank_remote_min, -1, true, false},
	[NM_SELECTION_LOCAL_MAX] = {rank_local_max, 1, true, false},
	[NM_SELECTION_MOST_BENEFIT] = {rank_most_benefit, 1, true, false},
	[NM_SELECTION_COST_EFFECTIVE] = {rank_cost_effective, 1, true, false},
	[NM_SELECTION_EXCLUSIVITY_BASE] = {rank_exclusivity, -1, false, false},
	[NM_SELECTION_EXCLUSIVITY] = {rank_exclusivity, -1, false, true},
	[NM_SELECTION_MOST_BENEFIT_PLUS] = {rank_most_benefit, 1, true, true},
};

int nm_selection_leader_node(const struct nm_selection_group *group, unsigned nr_nodes)
{
	if (group->leader_node >= 0 || !group->resident)
		return group->leader_node;
	unsigned most = 0;
	for (unsigned k = 1; k < nr_nodes; k++)
		if (group->resident[k] > group->resident[most])
			most = k;
	return group->resident[most] > 0 ? (int)most : -1;
}

/* The state of one selection. */
struct choice {
	const struct nm_selection_input *input;
	const struct rule *rule;
	struct rank best;
	struct nm_selection_result result;
};

static struct metric_input metric_input_of(const struct choice *choice,
					   const struct nm_selection_group *group)
{
	const struct nm_selection_input *input = choice->input;
	return (struct metric_input){.resident = group->resident,
				     .members = group->members,
				     .nr_nodes = input->nr_nodes,
				     .from = input->from,
				     .to = input->to};
}

static bool passes_gain(struct choice *choice, const struct metric_input *metric_input)
{
	double least = choice->input->min_gain;
	if (!metric_input->resident) {
		bool is_unknown = !choice->rule->needs_pages && least == -INFINITY;
		choice->result.unknown += !is_unknown;
		return is_unknown;
	}
	bool gains = gain_of(metric_input) >= least;
	choice->result.stopped_by_gain += !gains;
	return gains;
}

/*
 * The enhanced procedure's three classes (section 3.2.2): stays, may join its leader, is evaluated.
 */
enum candidate_class { CLASS_STAYS, CLASS_JOINS, CLASS_OTHER };

static enum candidate_class candidate_class_of(struct choice *choice,
					       const struct nm_selection_candidate *candidate)
{
	const struct nm_selection_input *input = choice->input;
	if (!choice->rule->enhanced)
		return CLASS_OTHER;
	const struct nm_selection_group *group = &input->groups[candidate->group];
	int leader = input->pages_lead ? nm_selection_leader_node(group, input->nr_nodes)
				       : group->leader_node;
	bool stays = candidate->leader || leader == input->from;
	choice->result.stopped_by_leader += stays;
	if (stays)
		return CLASS_STAYS;
	return leader == input->to ? CLASS_JOINS : CLASS_OTHER;
}

static void choose_candidate(struct choice *choice, size_t index, enum nm_selection_reason reason,
			     struct rank rank)
{
	double sign = choice->rule->sign;
	bool measured = reason == NM_SELECTED_BY_RULE && sign != 0;
	choice->best = rank;
	choice->result.reason = reason;
	choice->result.chosen = index;
	choice->result.metric = measured ? sign * rank.first : (double)NAN;
}

/* After one member of a group was evaluated, the others cannot have a higher rank. */
static bool was_evaluated(const struct choice *choice, uint32_t group)
{
	bool *judged = &choice->input->judged[group];
	bool before = *judged;
	*judged = choice->rule->enhanced;
	return before;
}

/* Returns false if the selection is complete. */
static bool consider(struct choice *choice, size_t index)
{
	const struct nm_selection_candidate *candidate = &choice->input->candidates[index];
	const struct metric_input metric_input =
		metric_input_of(choice, &choice->input->groups[candidate->group]);
	enum candidate_class candidate_class = candidate_class_of(choice, candidate);
	if (candidate_class == CLASS_STAYS || !passes_gain(choice, &metric_input))
		return true;
	if (candidate_class == CLASS_JOINS) {
		choose_candidate(choice, index, NM_SELECTED_BY_LEADER, (struct rank){0});
		return false;
	}
	if (!was_evaluated(choice, candidate->group)) {
		struct rank rank = choice->rule->rank(&metric_input);
		choice->result.evaluated++;
		if (choice->result.reason == NM_SELECTED_NONE ||
		    (rank.first > choice->best.first ||
		     (rank.first == choice->best.first && rank.second > choice->best.second)))
			choose_candidate(choice, index, NM_SELECTED_BY_RULE, rank);
	}
	return choice->rule->rank != rank_first_fit;
}

struct nm_selection_result nm_selection_choose(const struct nm_selection_input *input)
{
	struct choice choice = {.input = input,
				.rule = &rules[input->rule],
				.result = {.metric = NAN, .gain = NAN}};
	for (size_t i = 0; i < input->nr_candidates; i++)
		if (!consider(&choice, i))
			break;
	for (size_t i = 0; i < input->nr_candidates; i++)
		input->judged[input->candidates[i].group] = false;
	if (choice.result.reason == NM_SELECTED_NONE)
		return choice.result;
	uint32_t group = input->candidates[choice.result.chosen].group;
	const struct metric_input metric_input = metric_input_of(&choice, &input->groups[group]);
	if (metric_input.resident)
		choice.result.gain = gain_of(&metric_input);
	return choice.result;
}

void nm_selection_factors(const struct nm_topology *topology, double *ret)
{
	size_t nr_nodes = topology->nr_nodes;
	for (size_t i = 0; i < nr_nodes; i++) {
		double local = nm_topology_distance(topology, (int)i, (int)i);
		for (size_t j = 0; j < nr_nodes; j++)
			ret[i * nr_nodes + j] =
				nm_topology_distance(topology, (int)i, (int)j) / local;
	}
}

double nm_selection_access_cost(const struct nm_topology *topology, const double *accesses,
				int node)
{
	double local = nm_topology_distance(topology, node, node);
	double sum = 0, cost = 0;
	for (unsigned j = 0; j < topology->nr_nodes; j++) {
		sum += accesses[j];
		cost += accesses[j] * nm_topology_distance(topology, node, (int)j) / local;
	}
	return sum > 0 ? cost / sum : (double)NAN;
}

double nm_selection_cost_change(const double *resident, const double *factors, unsigned nr_nodes,
				int from, int to)
{
	const double *before = factors + (size_t)from * nr_nodes;
	const double *after = factors + (size_t)to * nr_nodes;
	double change = 0;
	if (!resident)
		return NAN;
	for (unsigned j = 0; j < nr_nodes; j++)
		change += resident[j] * (after[j] - before[j]);
	return change;
}

/* SPDX-License-Identifier: MIT */
/* Policy "balance": threads that wait leave an overloaded node. Loads of threads; the row. */
#include <math.h>
#include <stdlib.h>

#include "policy/balance.h"

void nm_balancer_new(const struct nm_topology *topology, double page_bytes,
		     struct nm_balancer **ret)
{
	struct nm_balancer *balancer = nm_must(calloc(1, sizeof(*balancer)));
	balancer->topology = topology;
	balancer->page_bytes = page_bytes;
	balancer->threads.cell_bytes = sizeof(struct nm_balancer_thread_state);
	balancer->residences = nm_residence_column();
	*ret = balancer;
}

void nm_balancer_free(struct nm_balancer *balancer)
{
	if (!balancer)
		return;
	nm_column_clear(&balancer->residences);
	nm_balancer_clear_types(balancer);
	nm_proposals_clear(&balancer->proposals);
	nm_column_clear(&balancer->threads);
	free(balancer);
}

/* Returns whether the CPU was so busy in the interval that threads may have waited; false if not
 * known. */
static bool is_saturated(const struct nm_snap_cpu *cpu)
{
	return cpu->usable && cpu->busy_share >= 1 - NM_WAIT_SHARE;
}

/* Returns the maximum demand on the CPU: all its threads may have waited all the time. */
static double max_load(const struct nm_snap_cpu *cpu)
{
	if (!is_saturated(cpu))
		return isnan(cpu->busy_share) ? 0 : cpu->busy_share;
	return cpu->nr_main_threads > 1 ? cpu->nr_main_threads : 1;
}

struct span {
	double most, least; /* sums over a node's usable CPUs */
	unsigned cpus;
};

/* Returns the largest difference between the loads of two nodes that is possible. */
static double widest_gap(const struct nm_snapshot *snapshot)
{
	const struct nm_topology *topology = snapshot->topology;
	nm_autofree struct span *spans = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*spans)));
	for (unsigned i = 0; i < topology->nr_cpus; i++) {
		const struct nm_snap_cpu *cpu = &snapshot->cpus[i];
		if (!cpu->usable || cpu->node < 0)
			continue;
		spans[cpu->node].most += max_load(cpu);
		spans[cpu->node].least += isnan(cpu->busy_share) ? 0 : cpu->busy_share;
		spans[cpu->node].cpus++;
	}
	double most = 0, least = INFINITY;
	for (unsigned k = 0; k < topology->nr_nodes; k++) {
		if (spans[k].cpus == 0)
			continue;
		most = fmax(most, spans[k].most / spans[k].cpus);
		least = fmin(least, spans[k].least / spans[k].cpus);
	}
	return most - least;
}

/* In the paper each task in a run queue waits, however short. */
static bool may_have_waited(const struct nm_config *config, const struct nm_snap_cpu *cpu)
{
	return config->rules.paper ? cpu->usable && cpu->busy_share > 0 : is_saturated(cpu);
}

struct queue {
	uint32_t cpu;
	unsigned nr_main_threads;
};

static int by_thread_count(const void *left, const void *right)
{
	const struct queue *a = left, *b = right;
	return NM_COMPARE(b->nr_main_threads, a->nr_main_threads) ?: NM_COMPARE(a->cpu, b->cpu);
}

void nm_balancer_select_threads(const struct nm_snapshot *snapshot, const struct nm_config *config,
				size_t most, struct nm_times_reading *ret, size_t *ret_count)
{
	unsigned nr_cpus = snapshot->topology->nr_cpus;
	*ret_count = 0;
	if (!(widest_gap(snapshot) > config->rules.balance_end))
		return;
	/* A thread that is alone on its CPU is listed, too: unmanaged tasks may have made it
	 * wait. */
	nm_autofree struct queue *queues = nm_must(calloc(nr_cpus + 1U, sizeof(*queues)));
	size_t nr_queues = 0, count = 0;
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++)
		if (may_have_waited(config, &snapshot->cpus[cpu]))
			queues[nr_queues++] = (struct queue){
				.cpu = cpu, .nr_main_threads = snapshot->cpus[cpu].nr_main_threads};
	qsort(queues, nr_queues, sizeof(*queues), by_thread_count);
	for (size_t i = 0; i < nr_queues; i++) {
		const struct nm_snap_cpu *cpu = &snapshot->cpus[queues[i].cpu];
		for (unsigned k = 0; k < cpu->nr_main_threads && count < most; k++)
			ret[count++] = nm_snap_reading(
				snapshot, snapshot->main_threads[cpu->first_main_thread + k]);
	}
	*ret_count = count;
}

void nm_balancer_add_reading(struct nm_balancer *balancer, uint64_t interval,
			     const struct nm_times_reading *reading)
{
	struct nm_balancer_thread_state *known = nm_balancer_thread(balancer, reading->thread);
	bool missing =
		reading->error == -ENODATA || (reading->error == 0 && reading->now.run_ns == 0);
	balancer->tally.reads++;
	balancer->times_missing |= missing;
	if (reading->error < 0 || missing)
		return;
	if (known->read_interval + 1 != interval)
		known->last = (struct nm_proc_schedstat){0};
	const struct nm_thread_times times = nm_times_since(&known->last, &reading->now, 0);
	double run_ns = (double)times.run_ns, delay_ns = (double)times.delay_ns;
	double length_ns = (double)times.length_ns;
	known->read_interval = interval;
	known->last = reading->now;
	known->load = length_ns > 0 ? fmin(1, (run_ns + delay_ns) / length_ns) : NAN;
	known->waiting = delay_ns > 0 && (balancer->paper || delay_ns >= NM_WAIT_SHARE * length_ns);
}

double nm_balancer_load(const struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			uint32_t thread)
{
	const struct nm_snap_thread *state = &snapshot->threads[thread];
	const struct nm_balancer_thread_state *known = nm_balancer_thread(balancer, thread);
	if (state->stats.main_cpu < 0)
		return 0;
	if (known->read_interval == snapshot->interval && !isnan(known->load))
		return known->load;
	return is_saturated(&snapshot->cpus[state->stats.main_cpu]) ? NAN : state->stats.run_share;
}

static void *open_balancer(const struct nm_topology *topology, double page_bytes)
{
	struct nm_balancer *balancer;
	nm_balancer_new(topology, page_bytes, &balancer);
	return balancer;
}

static void close_balancer(void *state)
{
	nm_balancer_free(state);
}

/* The proposals of the round of this interval. They refer to CPUs of the balancer, which must
 * outlive them. */
static int propose_balance(void *state, const struct nm_policy_input *input,
			   struct nm_proposals *ret)
{
	struct nm_balancer *balancer = state;
	(void)input;
	*ret = balancer->proposals;
	balancer->proposals = (struct nm_proposals){0};
	return 0;
}

const struct nm_policy_ops nm_balance_policy = {
	.open = open_balancer,
	.close = close_balancer,
	.propose = propose_balance,
	/* Not by locality, which it reduces on purpose. */
	.judged_by = {{.by = NM_BY_PERFORMANCE}},
};

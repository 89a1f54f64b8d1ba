/* SPDX-License-Identifier: MIT */
/* The model as a whole, step by step. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

#include "model.h"

#define STEP_S 0.1
#define RUN_SAMPLE_S 0.01
#define CACHE_FILL_BYTES_PER_S 1e8 /* on each node: read rate of a busy server; an estimate */

static void do_nothing(struct nm_platform *platform)
{
	(void)platform; /* the model outlives the users of its operations */
}

static unsigned count_cores(const struct nm_topology *topology)
{
	int most = -1;
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++)
		if (topology->cpus[cpu].core > most)
			most = topology->cpus[cpu].core;
	return (unsigned)(most + 1);
}

static int alloc_parts(struct nm_sim *sim)
{
	size_t nodes = sim->nr_nodes, resources = nodes + sim->machine->nr_links;
	sim->users = calloc(sim->workload->nr_users + 1, sizeof(*sim->users));
	sim->open_cpus = calloc(sim->nr_cpus, sizeof(*sim->open_cpus));
	sim->near_node = calloc(sim->nr_cpus, sizeof(*sim->near_node));
	sim->run_nodes = calloc(nodes, sizeof(*sim->run_nodes));
	sim->nr_runnable = calloc(sim->nr_cpus, sizeof(*sim->nr_runnable));
	sim->nr_core_runnable = calloc(sim->nr_cores + 1, sizeof(*sim->nr_core_runnable));
	sim->busy_s = calloc(sim->nr_cpus, sizeof(*sim->busy_s));
	sim->node_pages = calloc(nodes, sizeof(*sim->node_pages));
	sim->cache_bytes = calloc(nodes, sizeof(*sim->cache_bytes));
	sim->cache_load = calloc(sim->machine->nr_caches + 1, sizeof(*sim->cache_load));
	sim->queue_ns = calloc(resources, sizeof(*sim->queue_ns));
	sim->flow = calloc(resources, sizeof(*sim->flow));
	sim->pair_flow = calloc(nodes * nodes, sizeof(*sim->pair_flow));
	sim->path_ns = calloc(nodes * nodes, sizeof(*sim->path_ns));
	sim->excess = calloc(nodes * nodes, sizeof(*sim->excess));
	if (!sim->users || !sim->open_cpus || !sim->near_node || !sim->run_nodes ||
	    !sim->nr_runnable || !sim->nr_core_runnable || !sim->busy_s || !sim->node_pages ||
	    !sim->queue_ns || !sim->flow || !sim->pair_flow || !sim->path_ns || !sim->excess ||
	    !sim->cache_bytes || !sim->cache_load)
		return -ENOMEM;
	return 0;
}

/* A CPU whose node is offline or has no memory has no node. It uses the memory of its neighbours
 * under the last-level cache or, if these have none either, of the first node. */
static int near_node_of(const struct nm_topology *topology, unsigned cpu)
{
	if (topology->cpus[cpu].node >= 0)
		return topology->cpus[cpu].node;
	for (unsigned k = 0; k < topology->nr_cpus && topology->cpus[cpu].cache >= 0; k++)
		if (topology->cpus[k].cache == topology->cpus[cpu].cache &&
		    topology->cpus[k].node >= 0)
			return topology->cpus[k].node;
	return 0;
}

static void fill_places(struct nm_sim *sim)
{
	const struct nm_topology *topology = sim->machine->topology;
	for (unsigned cpu = 0; cpu < sim->nr_cpus; cpu++) {
		sim->open_cpus[cpu] = hwloc_bitmap_isset(topology->usable, cpu) &&
				      hwloc_bitmap_isset(topology->online, cpu);
		sim->near_node[cpu] = near_node_of(topology, cpu);
	}
	for (unsigned k = 0; k < sim->nr_nodes; k++)
		if (!hwloc_bitmap_iszero(topology->nodes[k].cpus))
			sim->run_nodes[sim->nr_run_nodes++] = k;
}

static void init_sim(struct nm_sim *sim)
{
	nm_rng_seed(&sim->rng, sim->options.seed);
	nm_rng_seed(&sim->sampler, ~sim->options.seed);
	bool pmu = !sim->options.no_pmu;
	fill_places(sim);
	sim->next_pid = NM_SIM_FIRST_PID;
	sim->digest = NM_HASH_START;
	sim->platform = (struct nm_platform){.ops = &nm_sim_ops, .free = do_nothing};
	for (size_t u = 0; u < sim->workload->nr_users; u++) {
		const struct nm_sim_user *user = &sim->workload->users[u];
		double late_s = user->spread_s > 0 ? nm_rng_unit(&sim->rng) * user->spread_s : 0;
		sim->users[u].due_s = user->start_s + late_s;
		sim->users[u].done = sim->workload->users[u].nr_programs == 0;
	}
	nm_sim_settle_cache(sim, UINT64_MAX);
	sim->status = (struct nm_source_status){.runs = true,
						.accesses = true, /* page faults are available */
						.memory = pmu ? NM_MEMORY_PEBS : NM_MEMORY_NONE,
						.has_instructions = pmu,
						.has_flops = pmu,
						.has_dram = pmu,
						.cpus_open = sim->nr_cpus,
						.run_sample_ns = sim->options.run_sample_s * 1e9};
	(void)snprintf(sim->status.name, sizeof(sim->status.name), "model");
}

int nm_sim_new(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload,
	       const struct nm_sim_options *options, struct nm_sim **ret)
{
	nm_auto(nm_sim_freep) struct nm_sim *sim = NULL;
	if (machine->topology->nr_nodes > NM_SIM_NODES_MAX)
		return -E2BIG;
	if (hwloc_bitmap_iszero(machine->topology->online))
		return -ENODEV;
	sim = calloc(1, sizeof(*sim));
	if (!sim)
		return -ENOMEM;
	sim->machine = machine;
	sim->workload = workload;
	sim->options = *options;
	if (!(sim->options.step_s > 0))
		sim->options.step_s = STEP_S;
	if (!(sim->options.run_sample_s > 0))
		sim->options.run_sample_s = RUN_SAMPLE_S;
	sim->nr_nodes = machine->topology->nr_nodes;
	sim->nr_cpus = machine->topology->nr_cpus;
	sim->nr_cores = count_cores(machine->topology);
	if (alloc_parts(sim) < 0)
		return -ENOMEM;
	init_sim(sim);
	*ret = NM_TAKE(sim);
	return 0;
}

void nm_sim_free(struct nm_sim *sim)
{
	if (!sim)
		return;
	for (size_t i = 0; i < sim->nr_processes; i++)
		nm_sim_process_free(sim->processes[i]);
	for (size_t i = 0; i < NM_ARRAY_SIZE(sim->answers); i++)
		nm_memory_answer_clear(&sim->answers[i]);
	free(sim->users);
	free(sim->processes);
	free(sim->live);
	free(sim->open_cpus);
	free(sim->near_node);
	free(sim->run_nodes);
	free(sim->nr_runnable);
	free(sim->nr_core_runnable);
	free(sim->busy_s);
	free(sim->node_pages);
	free(sim->cache_bytes);
	free(sim->cache_load);
	free(sim->queue_ns);
	free(sim->flow);
	free(sim->pair_flow);
	free(sim->path_ns);
	free(sim->excess);
	free(sim->samples);
	free(sim->events);
	free(sim->handles);
	free(sim);
}

int nm_sim_step(struct nm_sim *sim)
{
	double step_s = sim->options.step_s;
	nm_sim_count_runnable(sim);
	int r = nm_sim_begin_programs(sim);
	if (r < 0)
		return r;
	nm_sim_schedule(sim);
	nm_sim_gather(sim);
	nm_sim_work(sim, step_s);
	r = sim->options.unobserved ? 0 : nm_sim_observe(sim);
	nm_sim_continue_phases(sim, step_s);
	if (r == 0 && sim->options.numa_balancing)
		r = nm_sim_balance_memory(sim, step_s);
	sim->now_s += step_s;
	nm_sim_follow_moves(sim);
	nm_sim_end_programs(sim);
	nm_sim_settle_cache(sim, (uint64_t)(CACHE_FILL_BYTES_PER_S * step_s));
	return r;
}

bool nm_sim_is_finished(const struct nm_sim *sim)
{
	if (sim->workload->limit_s > 0 && sim->now_s >= sim->workload->limit_s)
		return true;
	for (size_t u = 0; u < sim->workload->nr_users; u++)
		if (!sim->users[u].done)
			return false;
	return true;
}

struct nm_sim_figures nm_sim_figures(const struct nm_sim *sim)
{
	struct nm_sim_figures figures = sim->figures;
	figures.time_s = sim->now_s;
	return figures;
}

uint64_t nm_sim_digest(const struct nm_sim *sim)
{
	return sim->digest;
}

struct nm_platform *nm_sim_platform(struct nm_sim *sim)
{
	return &sim->platform;
}

static size_t drain(void *context, const struct nm_sample_sink *sink)
{
	struct nm_sim *sim = context;
	size_t count = sim->nr_samples + sim->nr_events;
	for (size_t i = 0; i < sim->nr_samples; i++)
		sink->on_sample(sink->context, &sim->samples[i]);
	for (size_t i = 0; i < sim->nr_events; i++)
		sink->on_task(sink->context, &sim->events[i]);
	sim->figures.samples += sim->nr_samples;
	sim->status.counts.samples += sim->nr_samples;
	sim->status.counts.task_events += sim->nr_events;
	sim->nr_samples = sim->nr_events = 0;
	return count;
}

struct nm_feed nm_sim_feed(struct nm_sim *sim)
{
	return (struct nm_feed){.context = sim, .status = &sim->status, .drain = drain};
}

size_t nm_sim_nr_threads(const struct nm_sim *sim)
{
	return sim->nr_live;
}

struct nm_sim_thread_view nm_sim_thread(const struct nm_sim *sim, size_t index)
{
	const struct nm_sim_task *task = sim->live[index];
	return (struct nm_sim_thread_view){.pid = task->process->pid,
					   .tid = task->tid,
					   .cpu = task->cpu,
					   .node = nm_sim_node_of(sim, task->cpu),
					   .done_giga = task->total,
					   .bytes_per_ns = task->bytes_per_ns,
					   .mix = task->mix};
}

int nm_sim_load_topology(void *context, struct nm_topology **ret)
{
	const struct nm_sim *sim = context;
	nm_topology_copy(sim->machine->topology, ret);
	return 0;
}

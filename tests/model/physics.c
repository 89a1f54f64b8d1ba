/* SPDX-License-Identifier: MIT */
/*
 * Computes the speed of each thread. A thread executes and waits for memory, with several
 * outstanding accesses (overlap). Controllers and links have queues that grow until the traffic
 * equals the sustained bandwidth: a closed loop, because waiting threads make fewer requests.
 */
#include <math.h>
#include <string.h>

#include "model.h"

#define ROUNDS 6  /* iterations per step; changes between steps are small */
#define FULL 0.95 /* share of the sustained bandwidth from which the queue grows without bound */

/*
 * Additional waiting time at a share of the sustained bandwidth, in ns: loaded latency of a Xeon
 * Platinum 8269CY by Intel MLC (79 ns idle, 85 at 18 %, 95 at 45 %, 131 at 87 %); Broadwell's has
 * the same shape.
 */
static const struct {
	double share, wait_ns;
} loaded[] = {{0, 0}, {0.18, 6}, {0.45, 16}, {0.87, 52}, {FULL, 90}};

static double wait_of_share(double share)
{
	size_t i = 1;
	while (i < NM_ARRAY_SIZE(loaded) - 1 && share > loaded[i].share)
		i++;
	double part = (share - loaded[i - 1].share) / (loaded[i].share - loaded[i - 1].share);
	return loaded[i - 1].wait_ns + fmin(part, 1) * (loaded[i].wait_ns - loaded[i - 1].wait_ns);
}

static unsigned nr_resources(const struct nm_sim *sim)
{
	return sim->nr_nodes + sim->machine->nr_links;
}

static double sustained_bandwidth(const struct nm_sim *sim, unsigned resource)
{
	return resource < sim->nr_nodes
		       ? sim->machine->node_bytes_per_ns[resource]
		       : sim->machine->links[resource - sim->nr_nodes].bytes_per_ns;
}

static const double *route(const struct nm_sim *sim, unsigned from, unsigned to)
{
	return &sim->machine->route[((size_t)from * sim->nr_nodes + to) * sim->machine->nr_links];
}

static double line_traffic(void)
{
	return NM_SIM_LINE_BYTES * (1 + NM_SIM_WRITE_BACK);
}

/* ---- latencies ---- */

/* Latency of a thread on one node to memory on another; data flows from there to here. */
static void find_paths(struct nm_sim *sim)
{
	unsigned nodes = sim->nr_nodes;
	for (unsigned here = 0; here < nodes; here++) {
		for (unsigned there = 0; there < nodes; there++) {
			double ns = sim->machine->latency_ns[here * nodes + there] +
				    sim->queue_ns[there];
			const double *parts = route(sim, there, here);
			for (unsigned l = 0; l < sim->machine->nr_links && here != there; l++)
				ns += parts[l] * sim->queue_ns[nodes + l];
			sim->path_ns[here * nodes + there] = ns;
		}
	}
}

static void find_rate(const struct nm_sim *sim, struct nm_sim_task *task)
{
	const struct nm_sim_phase *phase = nm_sim_phase_of(task);
	const double *path = &sim->path_ns[(size_t)nm_sim_node_of(sim, task->cpu) * sim->nr_nodes];
	double latency = 0;
	for (unsigned k = 0; k < sim->nr_nodes; k++)
		latency += task->mix[k] * path[k];
	/* The two threads of a core share its execution rate; a thread that waits for memory uses
	 * none of it. */
	double ns = phase->cpi / sim->machine->ghz / task->core_share +
		    task->misses_per_kilo / 1000 * latency / phase->overlap +
		    task->hits_per_kilo / 1000 * nm_sim_hit_ns(sim) / phase->overlap;
	task->rate = task->cpu_share / ns;
}

/* ---- flows ---- */

static void add_flow(const struct nm_sim *sim, const struct nm_sim_task *task, double lines_per_ns)
{
	double *flow = &sim->pair_flow[(size_t)nm_sim_node_of(sim, task->cpu) * sim->nr_nodes];
	for (unsigned k = 0; k < sim->nr_nodes; k++)
		flow[k] += lines_per_ns * line_traffic() * task->mix[k];
}

/* Converts flows between nodes to flows through controllers and links. */
static void find_flows(struct nm_sim *sim)
{
	unsigned nodes = sim->nr_nodes;
	memset(sim->flow, 0, nr_resources(sim) * sizeof(*sim->flow));
	for (unsigned here = 0; here < nodes; here++)
		for (unsigned there = 0; there < nodes; there++) {
			double flow = sim->pair_flow[here * nodes + there];
			const double *parts = route(sim, there, here);
			sim->flow[there] += flow;
			for (unsigned l = 0; l < sim->machine->nr_links && here != there; l++)
				sim->flow[nodes + l] += flow * parts[l];
		}
}

static void clear_flows(struct nm_sim *sim)
{
	memset(sim->pair_flow, 0, (size_t)sim->nr_nodes * sim->nr_nodes * sizeof(*sim->pair_flow));
}

/*
 * Moves the queue towards the length that it causes. At a full resource, rates respond to its
 * waiting time at most proportionally, so that growth by less than the excess does not overshoot.
 */
static void adapt_queue(double *queue_ns, double share)
{
	double least = wait_of_share(fmin(share, FULL));
	if (share > FULL)
		*queue_ns = fmax(*queue_ns, least) * pow(share / FULL, 0.7);
	else if (*queue_ns > least)
		*queue_ns = fmax(least, *queue_ns * pow(fmax(share, 0.05) / FULL, 0.7));
	else
		*queue_ns += 0.5 * (least - *queue_ns);
}

static void find_equilibrium(struct nm_sim *sim)
{
	find_paths(sim);
	clear_flows(sim);
	for (size_t i = 0; i < sim->nr_live; i++) {
		struct nm_sim_task *task = sim->live[i];
		find_rate(sim, task);
		add_flow(sim, task, task->rate * task->duty * task->misses_per_kilo / 1000);
	}
	find_flows(sim);
	for (unsigned r = 0; r < nr_resources(sim); r++)
		adapt_queue(&sim->queue_ns[r], sim->flow[r] / sustained_bandwidth(sim, r));
}

/* ---- progress ---- */

static void find_share(const struct nm_sim *sim, struct nm_sim_task *task)
{
	unsigned on_cpu = sim->nr_runnable[task->cpu];
	unsigned on_core = sim->nr_core_runnable[sim->machine->topology->cpus[task->cpu].core];
	task->core_share = on_core > on_cpu ? sim->machine->smt_gain / 2 : 1;
	task->cpu_share = nm_sim_is_awake(sim, task) ? 1.0 / on_cpu : 0;
}

/* Returns the progress of the slowest thread; threads that have ended or wait do not count. */
static double slowest_progress(const struct nm_sim_process *process)
{
	double least = INFINITY;
	for (unsigned i = 0; i < process->program->threads; i++)
		if (!process->tasks[i].ended && !process->tasks[i].waits)
			least = fmin(least, process->tasks[i].total);
	return least;
}

static void find_done(struct nm_sim_task *task, double step_s, double barrier)
{
	const struct nm_sim_phase *phase = nm_sim_phase_of(task);
	double lost = fmin(task->lost_s, step_s);
	double could = task->rate * (step_s - lost); /* 10^9 per second is one per nanosecond */
	double most = phase->giga - task->done;
	task->lost_s -= lost;
	if (phase->period_giga > 0)
		most = fmin(most, fmax(barrier + phase->period_giga - task->total, 0));
	task->did = fmin(could, most);
	task->duty = could > 0 ? task->did / could : 1;
}

static double lines_of(const struct nm_sim_task *task, double step_s)
{
	return task->did * task->misses_per_kilo / 1000 / step_s;
}

/* Returns the utilization of the busiest part of the path from one node's memory to another node,
 * at least 1. */
static double excess_of_path(const struct nm_sim *sim, unsigned here, unsigned there)
{
	const double *parts = route(sim, there, here);
	double worst = fmax(1, sim->flow[there] / sustained_bandwidth(sim, there));
	for (unsigned l = 0; l < sim->machine->nr_links && there != here; l++)
		if (parts[l] > 0)
			worst = fmax(worst, sim->flow[sim->nr_nodes + l] /
						    sustained_bandwidth(sim, sim->nr_nodes + l));
	return worst;
}

static void find_excess(struct nm_sim *sim)
{
	unsigned nodes = sim->nr_nodes;
	for (unsigned here = 0; here < nodes; here++)
		for (unsigned there = 0; there < nodes; there++)
			sim->excess[here * nodes + there] = excess_of_path(sim, here, there);
}

/* Work that would exceed the bandwidth of a controller or a link is postponed. */
static void limit_to_bandwidth(struct nm_sim *sim, double step_s)
{
	clear_flows(sim);
	for (size_t i = 0; i < sim->nr_live; i++)
		add_flow(sim, sim->live[i], lines_of(sim->live[i], step_s));
	find_flows(sim);
	find_excess(sim);
	for (size_t i = 0; i < sim->nr_live; i++) {
		struct nm_sim_task *task = sim->live[i];
		unsigned here = (unsigned)nm_sim_node_of(sim, task->cpu);
		const double *excess = &sim->excess[(size_t)here * sim->nr_nodes];
		double worst = 1;
		for (unsigned k = 0; k < sim->nr_nodes; k++)
			if (task->mix[k] > 0)
				worst = fmax(worst, excess[k]);
		task->did /= worst;
	}
}

static void note_use(struct nm_sim *sim, double step_s)
{
	clear_flows(sim);
	for (size_t i = 0; i < sim->nr_live; i++)
		add_flow(sim, sim->live[i], lines_of(sim->live[i], step_s));
	find_flows(sim);
	for (unsigned r = 0; r < nr_resources(sim); r++) {
		double *most = r < sim->nr_nodes ? &sim->figures.most_node_use
						 : &sim->figures.most_link_use;
		*most = fmax(*most, sim->flow[r] / sustained_bandwidth(sim, r));
	}
}

/* ---- effects on threads ---- */

/* Threads wait for each other before a phase that other threads execute, or that writes more
 * memory. */
static bool has_barrier_before(const struct nm_sim_process *process, size_t phase)
{
	const struct nm_sim_phase *phases = process->program->phases;
	return nm_sim_team(process, phase) != nm_sim_team(process, phase - 1) ||
	       (phases[phase].touched > 0 ? phases[phase].touched : 1) > process->touched;
}

static void next_phase(struct nm_sim *sim, struct nm_sim_task *task, double step_s)
{
	const struct nm_sim_phase *phase = nm_sim_phase_of(task);
	if (task->done < phase->giga * (1 - 1e-12))
		return;
	task->done = 0;
	if (phase->idle_s > 0)
		task->wake_s = sim->now_s + step_s + 2 * nm_rng_unit(&sim->rng) * phase->idle_s;
	if (task->phase + 1 == task->process->program->nr_phases)
		task->ended = true;
	else if (has_barrier_before(task->process, task->phase + 1))
		task->waits = true;
	else
		task->phase++;
}

static void account_step(struct nm_sim *sim, struct nm_sim_task *task, double step_s)
{
	double accesses = task->did * 1e9 * task->misses_per_kilo / 1000;
	/* Threads spin at a barrier; threads that have finished sleep. */
	double part = nm_sim_phase_of(task)->period_giga > 0 ? 1 : task->duty;
	double ran_s = part * step_s / sim->nr_runnable[task->cpu];
	task->bytes_per_ns = lines_of(task, step_s) * line_traffic();
	task->done += task->did;
	task->total += task->did;
	task->run_ns += nm_sim_ns(ran_s);
	task->delay_ns += nm_sim_ns(part * step_s - ran_s);
	sim->busy_s[task->cpu] += ran_s;
	sim->figures.thread_s += ran_s;
	if (task->process->pid == sim->options.watched_pid &&
	    sim->now_s >= sim->options.watched_from_s)
		sim->figures.watched_giga += task->did;
	sim->figures.accesses += accesses;
	sim->figures.local_accesses += accesses * task->mix[nm_sim_node_of(sim, task->cpu)];
}

static void find_all_done(struct nm_sim *sim, double step_s)
{
	for (size_t p = 0; p < sim->nr_processes; p++) {
		struct nm_sim_process *process = sim->processes[p];
		double barrier = slowest_progress(process);
		for (unsigned i = 0; i < process->program->threads; i++)
			if (!process->tasks[i].ended && !process->tasks[i].waits)
				find_done(&process->tasks[i], step_s, barrier);
	}
}

void nm_sim_work(struct nm_sim *sim, double step_s)
{
	for (size_t i = 0; i < sim->nr_live; i++)
		find_share(sim, sim->live[i]);
	nm_sim_find_pressure(sim);
	for (size_t i = 0; i < sim->nr_live; i++)
		nm_sim_mix(sim, sim->live[i]);
	for (unsigned round = 0; round < ROUNDS; round++)
		find_equilibrium(sim);
	find_all_done(sim, step_s);
	limit_to_bandwidth(sim, step_s);
	note_use(sim, step_s);
	for (size_t i = 0; i < sim->nr_live; i++)
		if (nm_sim_is_awake(sim, sim->live[i]))
			account_step(sim, sim->live[i], step_s);
}

void nm_sim_continue_phases(struct nm_sim *sim, double step_s)
{
	size_t kept = 0;
	for (size_t i = 0; i < sim->nr_live; i++) {
		if (!sim->live[i]->waits)
			next_phase(sim, sim->live[i], step_s);
		if (!sim->live[i]->ended)
			sim->live[kept++] = sim->live[i];
	}
	sim->nr_live = kept;
}

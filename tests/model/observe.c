/* SPDX-License-Identifier: MIT */
/* The samples of a processor with PEBS: runs, accesses with latency, and amounts. */
#include <math.h>
#include <string.h>

#include "model.h"

#define NOISE 0.2	       /* relative error of a single latency, in both directions */
#define MEMORY_PERIOD 500000.0 /* accesses per sample */
#define MAX_SAMPLES_S 200.0    /* per thread, as with the overhead control */
#define SMALL_PAGE 4096U

static int keep_sample(struct nm_sim *sim, const struct nm_sample *sample)
{
	NM_RESERVE(sim->samples, sim->samples_capacity, sim->nr_samples);
	sim->samples[sim->nr_samples++] = *sample;
	return 0;
}

int nm_sim_note_event(struct nm_sim *sim, enum nm_task_event_kind kind,
		      const struct nm_sim_task *task)
{
	bool first = task->tid == task->process->pid;
	NM_RESERVE(sim->events, sim->events_capacity, sim->nr_events);
	sim->events[sim->nr_events++] =
		(struct nm_task_event){.kind = kind,
				       .pid = task->process->pid,
				       .tid = task->tid,
				       .parent_pid = first ? 1 : task->process->pid,
				       .parent_tid = first ? 1 : task->process->pid,
				       .time_ns = nm_sim_now_ns(sim)};
	return 0;
}

/* Returns how many events with this rate occur in this step. */
static unsigned events_due(struct nm_sim_task *task, int kind, double more)
{
	task->events_due[kind] += more;
	double whole = floor(task->events_due[kind]);
	task->events_due[kind] -= whole;
	return (unsigned)whole;
}

static struct nm_sample sample_of(const struct nm_sim *sim, const struct nm_sim_task *task)
{
	return (struct nm_sample){.pid = task->process->pid,
				  .tid = task->tid,
				  .cpu = (uint32_t)task->cpu,
				  .time_ns = nm_sim_now_ns(sim)};
}

static int sample_run(struct nm_sim *sim, struct nm_sim_task *task)
{
	struct nm_sample sample = sample_of(sim, task);
	double ran_s = (double)(task->run_ns - task->seen_ns) / 1e9;
	task->seen_ns = task->run_ns;
	sample.kind = NM_EVENT_CLOCK;
	int r = 0;
	for (unsigned n = events_due(task, NM_SIM_DUE_RUN, ran_s / sim->options.run_sample_s);
	     n > 0 && r == 0; n--)
		r = keep_sample(sim, &sample);
	return r;
}

/* The part of a page in use changes every second, and is the same for all threads that use it. */
static uint64_t address_of(struct nm_sim *sim, const struct nm_sim_process *process, size_t page)
{
	uint64_t parts = nm_sim_page_bytes(process) / SMALL_PAGE;
	uint64_t part = (uint64_t)sim->now_s % parts;
	return NM_SIM_FIRST_ADDRESS + page * nm_sim_page_bytes(process) + part * SMALL_PAGE +
	       nm_rng_below(&sim->sampler, SMALL_PAGE / 8) * 8;
}

static int sample_access(struct nm_sim *sim, const struct nm_sim_task *task)
{
	const struct nm_sim_process *process = task->process;
	struct nm_sample sample = sample_of(sim, task);
	size_t page = nm_sim_draw_page(&sim->sampler, task);
	unsigned here = (unsigned)nm_sim_node_of(sim, task->cpu);
	unsigned home = process->home[page];
	double noise = 1 + NOISE * (2 * nm_rng_unit(&sim->sampler) - 1);
	unsigned from = nm_sim_source_of(sim, task, page);
	bool hit = nm_sim_is_near_block(task, page) &&
		   nm_sim_is_hit(sim, task, nm_sim_block_of(process, page));
	double ns = noise * (hit ? nm_sim_hit_ns(sim) : sim->path_ns[here * sim->nr_nodes + from]);
	sample.kind = NM_EVENT_MEMORY;
	sample.level = hit ? NM_LEVEL_L3 : NM_LEVEL_DRAM;
	sample.remote = !hit && here != from;
	sample.address = address_of(sim, process, page);
	sample.page_node = home + 1;
	sample.page_bytes = nm_sim_page_bytes(process);
	sample.latency_cycles = (uint32_t)(ns * sim->machine->ghz);
	return keep_sample(sim, &sample);
}

int nm_sim_sample_fault(struct nm_sim *sim, const struct nm_sim_task *task, size_t page)
{
	const struct nm_sim_process *process = task->process;
	struct nm_sample sample = sample_of(sim, task);
	if (sim->options.unobserved || !sim->options.no_pmu)
		return 0;
	sample.kind = NM_EVENT_FAULT_MIN;
	sample.address = address_of(sim, process, page);
	sample.page_node = process->home[page] + 1U;
	sample.page_bytes = nm_sim_page_bytes(process);
	return keep_sample(sim, &sample);
}

static int sample_accesses(struct nm_sim *sim, struct nm_sim_task *task, double step_s)
{
	double accesses = task->did * 1e9 * (task->misses_per_kilo + task->hits_per_kilo) / 1000;
	double dense = sim->options.dense > 0 ? sim->options.dense : 1;
	double more = dense * fmin(accesses / MEMORY_PERIOD, MAX_SAMPLES_S * step_s);
	int r = 0;
	for (unsigned n = events_due(task, NM_SIM_DUE_ACCESS, more); n > 0 && r == 0; n--)
		r = sample_access(sim, task);
	return r;
}

static int sample_amount(struct nm_sim *sim, const struct nm_sim_task *task,
			 enum nm_event_kind kind, double amount)
{
	struct nm_sample sample = sample_of(sim, task);
	sample.kind = kind;
	sample.amount = (uint64_t)amount;
	return sample.amount > 0 ? keep_sample(sim, &sample) : 0;
}

static int sample_amounts(struct nm_sim *sim, const struct nm_sim_task *task)
{
	const struct nm_sim_phase *phase = &task->process->program->phases[task->phase];
	double instructions = task->did * 1e9;
	int r = sample_amount(sim, task, NM_EVENT_INSTRUCTIONS, instructions);
	if (r == 0)
		r = sample_amount(sim, task, NM_EVENT_FLOPS,
				  instructions * phase->flops * phase->vector);
	if (r == 0)
		r = sample_amount(sim, task, NM_EVENT_DRAM,
				  instructions * task->misses_per_kilo / 1000 * NM_SIM_LINE_BYTES);
	return r;
}

int nm_sim_observe(struct nm_sim *sim)
{
	int r = 0;
	for (size_t i = 0; i < sim->nr_live && r == 0; i++) {
		struct nm_sim_task *task = sim->live[i];
		if (!nm_sim_is_awake(sim, task))
			continue;
		r = sample_run(sim, task);
		if (r == 0 && !sim->options.no_pmu)
			r = sample_accesses(sim, task, sim->options.step_s);
		if (r == 0 && !sim->options.no_pmu)
			r = sample_amounts(sim, task);
	}
	return r;
}

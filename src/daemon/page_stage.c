/* SPDX-License-Identifier: MIT */
/*
 * Moves pages to the nodes that use them (pages.policy = "exclusivity"); the work of one interval.
 */
#include <math.h>
#include <string.h>

#include "daemon.h"

/* Factor by which the nodes' traffic decays per interval, so that a single burst does not count as
 * contention. */
#define TRAFFIC_KEEP 0.5
#define MIB 1048576.0
/*
 * After its threads moved: time until accesses from the new node outweigh those from the old one.
 */
#define THREADS_SETTLE_INTERVALS 3
#define SENT_OF 4 /* one of this number of threads counts as many */

/* ---- creation and destruction ---- */

static void process_clear(struct nm_page_process *process)
{
	nm_regions_free(process->regions);
	free(process->seen);
}

static void stage_free(struct nm_page_stage *stage)
{
	if (!stage)
		return;
	nm_mover_free(stage->mover);
	nm_page_verifier_free(stage->verifier);
	nm_feedback_free(stage->feedback);
	nm_tidmap_free(stage->index);
	for (size_t i = 0; i < stage->nr_processes; i++)
		process_clear(&stage->processes[i]);
	for (size_t i = 0; i < stage->nr_pasts; i++)
		nm_page_past_clear(&stage->pasts[i]);
	free(stage->processes);
	free(stage->pasts);
	free(stage->flights);
	free(stage->traffic);
	free(stage);
}
NM_DEFINE_CLEANUP(struct nm_page_stage, stage_free);

static int stage_new(const struct nm_daemon *daemon, struct nm_page_stage **ret)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	nm_auto(stage_freep) struct nm_page_stage *stage = calloc(1, sizeof(*stage));

	if (!stage)
		return -ENOMEM;
	stage->contention = (struct nm_contention){.imbalance = NAN, .busiest = -1};
	stage->traffic = calloc(pipeline->topology->nr_nodes, sizeof(*stage->traffic));
	int r = stage->traffic ? nm_tidmap_new(&stage->index) : -ENOMEM;
	if (r == 0)
		r = nm_page_verifier_new(&stage->verifier);
	if (r == 0)
		r = nm_feedback_new(&stage->feedback);
	if (r == 0)
		r = nm_mover_new(pipeline->machine, pipeline->topology, daemon->config,
				 &stage->mover);
	if (r < 0)
		return r;
	*ret = NM_TAKE(stage);
	return 0;
}

static bool is_barred(struct nm_daemon *daemon)
{
	bool barred = nm_mover_is_barred(daemon->pipeline.pages->mover);
	nm_recorder_mover(daemon, "mover_is_barred", barred);
	return barred;
}

static void report_barred(struct nm_daemon *daemon)
{
	if (is_barred(daemon))
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "No pages migrated: isolated or nohz_full CPUs (allow with "
			  "pages.isolated_cpus = true)");
}

void nm_page_stage_close(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;

	if (pipeline->pages)
		nm_page_balancing_end(daemon);
	stage_free(pipeline->pages);
	pipeline->pages = NULL;
}

int nm_page_stage_restart(struct nm_daemon *daemon)
{
	nm_page_stage_close(daemon);
	if (daemon->config->pages.policy != NM_PAGES_EXCLUSIVITY || !daemon->pipeline.memory)
		return 0;
	int r = stage_new(daemon, &daemon->pipeline.pages);
	if (r == 0)
		report_barred(daemon);
	return r;
}

int nm_page_stage_configure(struct nm_daemon *daemon)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	if (!stage || daemon->config->pages.policy != NM_PAGES_EXCLUSIVITY)
		return nm_page_stage_restart(daemon);
	nm_mover_configure(stage->mover, daemon->pipeline.topology, daemon->config);
	report_barred(daemon);
	return 0;
}

/* ---- processes ---- */

struct nm_page_process *nm_page_process_of(const struct nm_page_stage *stage, uint32_t pid)
{
	uint32_t place = nm_tidmap_get(stage->index, pid);

	return place < stage->nr_processes ? &stage->processes[place] : NULL;
}

static void take_over(struct nm_page_process *process, struct nm_page_process *old,
		      const struct nm_memory_process *seen)
{
	if (!old || old->owner != seen->owner)
		return;
	process->regions = NM_TAKE(old->regions);
	process->seen = NM_TAKE(old->seen);
	process->nr_seen = old->nr_seen;
	process->mapped = old->mapped;
	process->unreadable = old->unreadable;
	process->cursor = old->cursor;
	process->until = old->until;
	process->setbacks = old->setbacks;
	process->nr_sent = old->nr_sent;
	old->owner = 0;
}

static const struct nm_process *roster_process(const struct nm_member *members, size_t count,
					       uint32_t tid)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (members[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && members[low].tid == tid ? members[low].process : NULL;
}

static bool adopt(struct nm_page_process *process, struct nm_page_process *old,
		  const struct nm_memory_process *seen, const struct nm_process *known)
{
	*process = (struct nm_page_process){.pid = seen->pid,
					    .start_ticks = known->start_ticks,
					    .owner = seen->owner,
					    .held = seen->held,
					    .nr_threads = (unsigned)seen->nr_threads};
	memcpy(process->comm, known->comm, sizeof(process->comm));
	take_over(process, old, seen);
	if (!process->seen)
		process->seen = calloc(NM_PAGES_SEEN, sizeof(*process->seen));
	return process->seen;
}

/* Replaces the list, and frees the remaining contents of the old one. */
static int replace_processes(struct nm_page_stage *stage, struct nm_page_process *processes,
			     size_t count)
{
	int r = 0;

	for (size_t i = 0; i < stage->nr_processes; i++) {
		struct nm_page_process *old = &stage->processes[i];
		nm_tidmap_remove(stage->index, old->pid);
		if (old->owner)
			nm_mover_drop(stage->mover, old->pid);
		process_clear(old);
	}
	free(stage->processes);
	stage->processes = processes;
	stage->nr_processes = count;
	for (size_t i = 0; i < count && r == 0; i++)
		r = nm_tidmap_set(stage->index, processes[i].pid, (uint32_t)i);
	return r;
}

static int follow_processes(struct nm_daemon *daemon)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	const struct nm_memory_process *seen;
	const struct nm_member *members;
	size_t nr_members = nm_roster_members(daemon->pipeline.roster, &members);
	size_t count = nm_memory_processes(daemon->pipeline.memory, &seen), used = 0;
	struct nm_page_process *processes = calloc(count + 1, sizeof(*processes));

	if (!processes)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct nm_process *known =
			seen[i].nr_threads ? roster_process(members, nr_members, seen[i].tids[0])
					   : NULL;
		if (known && seen[i].owner && !nm_steer_holds(&known->steering) &&
		    !nm_home_stage_has_home(daemon, seen[i].pid))
			used += adopt(&processes[used], nm_page_process_of(stage, seen[i].pid),
				      &seen[i], known);
	}
	return replace_processes(stage, processes, used);
}

void nm_page_stage_drop(struct nm_daemon *daemon, uint32_t pid)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	struct nm_page_process *process = stage ? nm_page_process_of(stage, pid) : NULL;

	if (!process)
		return;
	nm_mover_drop(stage->mover, pid);
	nm_tidmap_remove(stage->index, pid);
	process->owner = 0;
}

void nm_page_stage_task_event(struct nm_daemon *daemon, const struct nm_task_event *event)
{
	/* Only the exit of the leader counts; the exit of the last thread is detected when the
	 * process is gone. */
	if (event->kind == NM_TASK_EXEC ||
	    (event->kind == NM_TASK_EXIT && event->tid == event->pid))
		nm_page_stage_drop(daemon, event->pid);
}

/* ---- accesses ---- */

void nm_page_stage_add(struct nm_daemon *daemon, const struct nm_sample *sample)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_page_process *process = nm_page_process_of(pipeline->pages, sample->pid);
	int node = nm_topology_node_of_cpu(pipeline->topology, (int)sample->cpu);

	if (!process || node < 0 || !nm_memory_counts(sample))
		return;
	process->seen[process->nr_seen++ % NM_PAGES_SEEN] = (struct nm_page_seen){
		.address = sample->address,
		.interval = daemon->tally.intervals,
		.home = (int16_t)nm_memory_home(pipeline->memory, sample),
		.huge = sample->page_bytes >= NM_REGION_LEAST_BYTES,
	};
	if (process->regions)
		nm_regions_touch(process->regions, sample->address, (unsigned)node);
}

static void follow_traffic(struct nm_daemon *daemon, const struct nm_figures *figures, size_t count)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	unsigned nr_nodes = daemon->pipeline.topology->nr_nodes;

	for (unsigned k = 0; k < nr_nodes; k++)
		stage->traffic[k] *= TRAFFIC_KEEP;
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; figures[i].fresh && k < nr_nodes; k++)
			stage->traffic[k] += figures[i].fresh[k];
	stage->contention = nm_contention_of(stage->traffic, nr_nodes, daemon->config);
}

/* ---- moving ---- */

uint64_t nm_page_cooldown(const struct nm_config *config)
{
	return (uint64_t)ceil(config->pages.cooldown_s / config->general.interval_s);
}

static struct nm_page_batch *batch_of(const struct nm_page_decision *decision,
				      const struct nm_page_step *steps, size_t count)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = calloc(1, sizeof(*batch));

	if (!batch)
		return NULL;
	*batch = (struct nm_page_batch){.decision = decision->id,
					.pid = decision->pid,
					.start_ticks = decision->start_ticks,
					.rollback = decision->reason == NM_PAGE_REASON_ROLLBACK,
					.count = count,
					.steps = calloc(count + 1, sizeof(*batch->steps))};
	if (!batch->steps)
		return NULL;
	memcpy(batch->steps, steps, count * sizeof(*batch->steps));
	return NM_TAKE(batch);
}

/* The common node of all pages before or after the move; -1: several. */
static void sum_up(struct nm_page_decision *decision, const struct nm_page_step *steps,
		   size_t count)
{
	decision->node_from = steps[0].from;
	decision->node_to = steps[0].to;
	decision->pages = count;
	decision->bytes = 0;
	for (size_t i = 0; i < count; i++) {
		decision->bytes += steps[i].bytes;
		if (steps[i].from != decision->node_from)
			decision->node_from = -1;
		if (steps[i].to != decision->node_to)
			decision->node_to = -1;
	}
}

/* The change of P is caused by the daemon, and must not count as noise, for pages or threads. */
static void disturb(struct nm_daemon *daemon, uint32_t pid)
{
	(void)nm_feedback_disturb(daemon->pipeline.pages->feedback, pid);
	if (daemon->pipeline.feedback)
		(void)nm_feedback_disturb(daemon->pipeline.feedback, pid);
}

void nm_page_stage_threads_moved(struct nm_daemon *daemon, const struct nm_decision *decision)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	for (unsigned i = 0; stage && i < decision->nr_steps; i++) {
		struct nm_page_process *process = nm_page_process_of(stage, decision->steps[i].pid);
		if (decision->steps[i].node_from == decision->steps[i].node_to)
			continue;
		(void)nm_feedback_disturb(stage->feedback, decision->steps[i].pid);
		nm_page_verifier_disturb(stage->verifier, decision->steps[i].pid);
		if (process)
			process->nr_sent++;
		if (process && process->until < daemon->tally.intervals + THREADS_SETTLE_INTERVALS)
			process->until = daemon->tally.intervals + THREADS_SETTLE_INTERVALS;
	}
}

int nm_page_stage_submit(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			 const struct nm_page_process *process, struct nm_page_decision *decision,
			 const struct nm_page_step *steps, size_t count)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	decision->id = daemon->next_decision;
	decision->interval = snapshot->interval;
	decision->pid = process->pid;
	decision->start_ticks = process->start_ticks;
	memcpy(decision->comm, process->comm, sizeof(decision->comm));
	sum_up(decision, steps, count);
	int r = nm_reserve((void **)&stage->flights, &stage->flight_capacity, stage->nr_flights,
			   sizeof(*stage->flights));
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		r < 0 ? NULL : batch_of(decision, steps, count);
	if (!batch)
		return -ENOMEM;
	batch->tenant = nm_roster_tenant(daemon->pipeline.roster, batch->pid);
	r = nm_mover_submit(stage->mover, batch);
	nm_recorder_mover(daemon, "mover_submit", r);
	if (r < 0)
		return r;
	(void)NM_TAKE(batch);
	daemon->next_decision++;
	stage->tally.decisions++;
	nm_report_page_decision(daemon, decision);
	disturb(daemon, process->pid);
	/* If memory is short, there is no verdict. */
	r = nm_page_verifier_add(stage->verifier, snapshot, stage->feedback, daemon->config,
				 decision);
	stage->flights[stage->nr_flights++] = (struct nm_page_flight){
		.decision = *decision, .owner = process->owner, .judged = r == 0};
	return 0;
}

static void hold_those_judged(struct nm_daemon *daemon)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	for (size_t i = 0; i < stage->nr_processes; i++)
		stage->processes[i].waits =
			daemon->tally.intervals < stage->processes[i].until ||
			(daemon->config->profile != NM_PROFILE_PAPER &&
			 nm_page_verifier_awaits(stage->verifier, stage->processes[i].pid,
						 stage->processes[i].start_ticks,
						 daemon->tally.intervals));
	for (size_t i = 0; i < stage->nr_pasts; i++) {
		struct nm_page_process *process =
			nm_page_process_of(stage, stage->pasts[i].decision.pid);
		if (process && stage->pasts[i].undo)
			process->waits = true;
	}
}

static int decide(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_mover *mover = daemon->pipeline.pages->mover;
	const struct nm_config *config = daemon->config;
	struct nm_page_room room = {0};

	int r = nm_page_stage_undo(daemon, snapshot);
	if (r < 0 || is_barred(daemon))
		return r;
	hold_those_judged(daemon);
	room.pages = nm_mover_room(mover, snapshot->time_ns);
	nm_recorder_mover(daemon, "mover_room", (int64_t)room.pages);
	room.bytes = nm_mover_room_bytes(mover, snapshot->time_ns);
	nm_recorder_mover(daemon, "mover_room_bytes", (int64_t)room.bytes);
	room.whole = (double)room.bytes + 1 >
		     (double)config->pages.max_mb_per_s * MIB * config->general.interval_s;
	/* Alternates the order, so that each of the two gets its share of the budget. */
	if (snapshot->interval % 2) {
		r = nm_page_stage_by_range(daemon, snapshot, &room);
		return r < 0 ? r : nm_page_stage_by_rule(daemon, snapshot, &room);
	}
	r = nm_page_stage_by_rule(daemon, snapshot, &room);
	return r < 0 ? r : nm_page_stage_by_range(daemon, snapshot, &room);
}

/* Counts from the time when many of its threads were on another node are not valid for their
 * current nodes. */
static void forget_former_nodes(struct nm_page_process *process)
{
	if (process->regions && process->nr_sent * SENT_OF >= process->nr_threads &&
	    process->nr_sent > 0)
		nm_regions_fade(process->regions, 0);
	process->nr_sent = 0;
}

int nm_page_stage_tick(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       const struct nm_figures *figures, size_t nr_figures, uint64_t interval_ns)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	struct nm_feedback_result followed;

	if (!stage)
		return 0;
	int r = follow_processes(daemon);
	if (r == 0)
		r = nm_imar2_feedback(stage->feedback, snapshot, daemon->config, &followed);
	if (r < 0)
		return r;
	follow_traffic(daemon, figures, nr_figures);
	for (size_t i = 0; i < stage->nr_processes; i++) {
		forget_former_nodes(&stage->processes[i]);
		nm_page_ranges_update(daemon, &stage->processes[i], interval_ns);
	}
	nm_page_stage_collect(daemon);
	r = nm_page_stage_judge(daemon, snapshot);
	if (r < 0)
		return r;
	if (!nm_page_balancing(daemon)) {
		nm_page_stage_forget_undo(stage);
		return 0;
	}
	return decide(daemon, snapshot);
}

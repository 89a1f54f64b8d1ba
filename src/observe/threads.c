/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "build.h"
#include "numa-migrd/base.h"

#define YOUNG_WARMUP_S 0.5

static double seconds_since(uint64_t now_ns, uint64_t since_ns)
{
	return now_ns > since_ns ? (double)(now_ns - since_ns) / (double)NM_NSEC_PER_SEC : 0;
}

/* Returns the node whose CPUs are nearest to this node's memory. */
static unsigned replacement_node(const struct nm_topology *topology, unsigned node)
{
	int nearest = topology->nodes[node].nearest_with_cpus;
	return nearest < 0 ? node : (unsigned)nearest;
}

/* Ties: the node of the thread, then the nearest, then the lowest index. */
static int preferred_node(const struct nm_topology *topology, const double *accesses, int here)
{
	int best = -1;
	for (int node = 0; node < (int)topology->nr_nodes; node++) {
		if (!(accesses[node] > 0))
			continue;
		if (best < 0 || accesses[node] > accesses[best]) {
			best = node;
			continue;
		}
		if (accesses[node] < accesses[best] || here < 0)
			continue;
		if (node == here || nm_topology_distance(topology, here, node) <
					    nm_topology_distance(topology, here, best))
			best = node;
	}
	return best;
}

/* Adds up accesses at the nodes that stand for their memory. */
static void fold_accesses(const struct nm_topology *topology, const struct nm_thread_stats *from,
			  double *accesses, uint32_t *fresh)
{
	for (unsigned node = 0; node < topology->nr_nodes; node++) {
		unsigned at = replacement_node(topology, node);
		if (from->accesses && from->accesses[node] > 0)
			accesses[at] += from->accesses[node];
		if (from->fresh)
			fresh[at] += from->fresh[node];
	}
}

static void fill_stats(const struct nm_snapshot_input *input, const struct nm_thread_stats *from,
		       struct nm_snap_thread *thread, double *accesses, uint32_t *fresh)
{
	const struct nm_topology *topology = input->topology;
	struct nm_thread_stats *stats = &thread->stats;
	int here = nm_topology_node_of_cpu(topology, from->main_cpu);
	fold_accesses(topology, from, accesses, fresh);
	*stats = *from;
	stats->accesses = accesses;
	stats->fresh = fresh;
	stats->main_cpu = here >= 0 ? from->main_cpu : -1;
	stats->main_node = from->main_node_share >= input->config->rules.home_share ? here : -1;
	thread->active = stats->run_share >= input->config->rules.min_run;
	thread->intensity = nm_snapshot_intensity(input->config, stats);
	if (!(stats->access_total > 0))
		return;
	thread->preferred = preferred_node(topology, accesses, here);
	if (here >= 0)
		thread->local_share = accesses[here] / stats->access_total;
	thread->valid = stats->main_node >= 0 && thread->active &&
			stats->access_samples >= (double)input->config->rules.min_samples;
}

/* A program that was young when its thread was first seen may end soon, so that lotteries do not
 * wait long. */
static double warmup_s(const struct nm_config *config, const struct nm_managed_thread *managed)
{
	double usual_s = config->rules.warmup_s;
	bool young = seconds_since(managed->adopted_ns, managed->process->started_ns) < usual_s;
	bool draws =
		nm_policy_draws(config->threads.policy) || config->threads.policy == NM_POLICY_AUTO;
	return young && draws ? fmin(usual_s, YOUNG_WARMUP_S) : usual_s;
}

static bool is_movable(const struct nm_snapshot_input *input,
		       const struct nm_managed_thread *managed)
{
	return seconds_since(input->time_ns, managed->adopted_ns) >=
		       warmup_s(input->config, managed) &&
	       input->interval >= managed->backoff_until &&
	       input->interval >= managed->delayed_until;
}

/* Returns what was measured of the thread, or NULL; *position only increases, because both lists
 * are ascending. */
static const struct nm_thread_stats *stats_of(const struct nm_snapshot_input *input,
					      size_t *position,
					      const struct nm_managed_thread *managed)
{
	while (*position < input->nr_sampled && input->sampled[*position].tid < managed->tid)
		(*position)++;
	if (*position == input->nr_sampled)
		return NULL;
	const struct nm_sampled_thread *one = &input->sampled[*position];
	/* Another process: the number was reused, and the task table does not know its new owner
	 * yet. */
	return one->tid == managed->tid && one->pid == managed->pid ? &one->stats : NULL;
}

void nm_snapshot_fill_threads(const struct nm_snapshot_input *input,
			      struct nm_snapshot_storage *storage)
{
	size_t position = 0, nodes = input->topology->nr_nodes;
	for (size_t i = 0; i < input->nr_managed; i++) {
		const struct nm_managed_thread *managed = &input->managed[i];
		double *accesses = storage->accesses + i * nodes;
		uint32_t *fresh = storage->fresh + i * nodes;
		struct nm_snap_thread *thread = &storage->view.threads[i];
		*thread = (struct nm_snap_thread){
			.tid = managed->tid,
			.pid = managed->pid,
			.start_ticks = managed->start_ticks,
			.adopted_ns = managed->adopted_ns,
			.stats = {.main_cpu = -1,
				  .main_node = -1,
				  .accesses = accesses,
				  .fresh = fresh,
				  .latency = NAN,
				  .recent_latency = NAN,
				  .instructions = NAN,
				  .operations = NAN},
			.local_share = NAN,
			.intensity = NAN,
			.performance = NAN,
			.relative = NAN,
			.preferred = -1,
			.allowed = managed->original,
			.everywhere = managed->everywhere,
			.unrestricted = managed->unrestricted,
			.assigned = -1,
			.yields = managed->yields || managed->process->yields,
			.only_watched = managed->only_watched,
			.left_alone = managed->left_alone,
			.movable = is_movable(input, managed),
		};
		const struct nm_thread_stats *stats = stats_of(input, &position, managed);
		if (stats)
			fill_stats(input, stats, thread, accesses, fresh);
	}
	storage->view.nr_threads = input->nr_managed;
}

static void fill_process(const struct nm_snapshot_input *input, const struct nm_process *process,
			 struct nm_snap_process *ret)
{
	bool shared_moves = input->config->pages.also & NM_ALSO_SHARED;
	*ret = (struct nm_snap_process){
		.pid = process->pid,
		.start_ticks = process->start_ticks,
		.uid = process->uid,
		.domain = process->domain,
		.program_ns = process->started_ns,
		.age_s = seconds_since(input->time_ns, process->started_ns),
		.anon_bytes = process->anon_bytes,
		.rss_bytes = process->rss_bytes,
		.pinned_bytes = process->pinned_bytes,
		.shared_bytes = shared_moves ? 0 : process->shared_bytes,
		.hugetlb_bytes = shared_moves ? 0 : process->hugetlb_bytes,
		.excluded_mems = process->excluded_mems,
		.cpu_limit = process->cpu_limit,
		.left_alone = process->left_alone,
		.keeps_memory = nm_config_keeps_memory(input->config, process->rss_bytes),
	};
}

int nm_snapshot_fill_processes(const struct nm_snapshot_input *input,
			       struct nm_snapshot_storage *storage)
{
	struct nm_snapshot *view = &storage->view;
	nm_auto(nm_tidmap_freep) struct nm_tidmap *index = nm_tidmap_new();
	storage->comms = nm_must(calloc(input->nr_managed + 1, sizeof(*storage->comms)));
	for (size_t i = 0; i < input->nr_managed; i++) {
		const struct nm_process *process = input->managed[i].process;
		uint32_t at = nm_tidmap_get(index, process->pid);
		if (at == NM_TIDMAP_NONE) {
			at = (uint32_t)view->nr_processes;
			int r = nm_tidmap_set(index, process->pid, at);
			if (r < 0)
				return r;
			fill_process(input, process, &view->processes[view->nr_processes++]);
			memcpy(storage->comms[at], process->comm, NM_COMM_BYTES - 1);
			view->processes[at].comm = storage->comms[at];
		}
		view->threads[i].process = at;
		view->processes[at].threads++;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Ends an interval: computes metrics from the table of threads, and decays the history. */
#include <math.h>
#include <string.h>

#include "metrics_table.h"

/* Historic accesses and latencies below this sum are dropped. */
#define WINDOW_FLOOR 0.01
#define CACHE_LINE 64

static void reserve_results(struct nm_metrics *metrics)
{
	size_t wanted = metrics->used, cells = wanted * metrics->nr_nodes;

	if (wanted <= metrics->result_capacity)
		return;
	metrics->sampled =
		nm_must(reallocarray(metrics->sampled, wanted, sizeof(*metrics->sampled)));
	metrics->accesses =
		nm_must(reallocarray(metrics->accesses, cells, sizeof(*metrics->accesses)));
	metrics->fresh = nm_must(reallocarray(metrics->fresh, cells, sizeof(*metrics->fresh)));
	metrics->result_capacity = wanted;
}

/* ---- CPUs ---- */

/* With more CPUs than slots, the exact counts per node decide first. Returns -1 if no slot is on
 * such a node. */
static int best_slot(const struct nm_metrics *metrics, const struct nm_entry *entry,
		     uint32_t least_node_runs)
{
	int best = -1;

	for (int i = 0; i < NM_RUN_SLOTS; i++) {
		int node = nm_cpu_node(metrics, entry->run_cpu[i]);
		uint32_t node_runs = node < 0 ? 0 : entry->counts[node];
		if (entry->run_count[i] == 0 || node_runs < least_node_runs)
			continue;
		if (best < 0 || entry->run_count[i] > entry->run_count[best] ||
		    (entry->run_count[i] == entry->run_count[best] &&
		     entry->run_last[i] > entry->run_last[best]))
			best = i;
	}
	return best;
}

static void set_home(const struct nm_metrics *metrics, const struct nm_entry *entry,
		     struct nm_thread_stats *stats)
{
	/* With more CPUs than slots, only the counts per node are exact. */
	int slot = best_slot(metrics, entry, entry->overflowed ? nm_most_runs(metrics, entry) : 0);

	stats->main_cpu = slot < 0 ? -1 : entry->run_cpu[slot];
	stats->main_node = slot < 0 ? -1 : nm_cpu_node(metrics, entry->run_cpu[slot]);
	stats->main_node_share = stats->main_node < 0 ? NAN
						      : (double)entry->counts[stats->main_node] /
								(double)entry->run_samples;
}

static double run_share(const struct nm_entry *entry, const struct nm_metrics_interval *interval,
			double factor)
{
	if (!(interval->run_sample_ns > 0.0) || interval->length_ns == 0)
		return NAN;
	double run_ns = (double)entry->run_samples * factor * interval->run_sample_ns;
	return fmin(1.0, run_ns / (double)interval->length_ns);
}

/* ---- accesses ---- */

/* Takes the accesses of the interval by node: memory samples served by DRAM, or all of them if none
 * contains its level, or page faults if there are none. */
static uint32_t take_fresh(const struct nm_metrics *metrics, const struct nm_entry *entry,
			   const struct nm_hardware *hardware, uint32_t *fresh)
{
	unsigned nr_nodes = metrics->nr_nodes;

	if (hardware->accesses == 0) {
		memcpy(fresh, entry->counts + nr_nodes, nr_nodes * sizeof(*fresh));
		return entry->access_new;
	}
	memcpy(fresh, hardware->counts + (hardware->levels ? nr_nodes : 0),
	       nr_nodes * sizeof(*fresh));
	return hardware->levels ? hardware->dram_accesses : hardware->accesses;
}

static void decay(const struct nm_metrics *metrics, struct nm_window *window, double total,
		  double keep)
{
	double factor = total * keep < WINDOW_FLOOR ? 0.0 : keep;

	for (unsigned k = 0; k < metrics->nr_nodes; k++)
		window->accesses[k] *= factor;
	window->access_samples *= factor;
	factor = window->latency_samples * keep < WINDOW_FLOOR ? 0.0 : keep;
	window->latency_sum *= factor;
	window->latency_samples *= factor;
}

/* ---- performance ---- */

static bool is_sampled(const struct nm_metrics_interval *interval, enum nm_event_kind kind)
{
	return (interval->kinds >> kind) & 1;
}

/* Adds the latencies of the interval to the window, if the thread still runs on the same node. */
static void set_latency(const struct nm_hardware *hardware, struct nm_window *window,
			struct nm_thread_stats *stats)
{
	stats->latency = stats->recent_latency = NAN;
	stats->latency_samples = hardware->latency_samples;
	if (hardware->latency_samples)
		stats->latency = (double)hardware->latency_sum / (double)hardware->latency_samples;
	if (stats->main_node >= 0 && stats->main_node != window->latency_node) {
		window->latency_sum = window->latency_samples = 0;
		window->latency_node = stats->main_node;
	}
	window->latency_sum += (double)hardware->latency_sum;
	window->latency_samples += (double)hardware->latency_samples;
	stats->recent_latency_samples = window->latency_samples;
	if (window->latency_samples > 0)
		stats->recent_latency = window->latency_sum / window->latency_samples;
}

static void set_performance(const struct nm_metrics *metrics, const struct nm_hardware *hardware,
			    const struct nm_metrics_interval *interval,
			    struct nm_thread_stats *stats)
{
	double length_s = (double)interval->length_ns / (double)NM_NSEC_PER_SEC;
	/*
	 * The minimum traffic in bytes per second: the amount that min_samples samples represent.
	 * It is a rate, based on the smallest amount that a sample has represented, so that a
	 * thread that uses only its caches does not appear to change when T, the period or a CPU's
	 * share of a counter changes.
	 */
	uint64_t sample_bytes =
		metrics->dram_sample_bytes ? metrics->dram_sample_bytes : CACHE_LINE;
	double traffic_floor = (double)interval->min_samples * (double)sample_bytes;

	stats->instructions = stats->operations = stats->traffic = NAN;
	if (!(length_s > 0))
		return;
	if (is_sampled(interval, NM_EVENT_INSTRUCTIONS))
		stats->instructions = (double)hardware->instructions / length_s;
	if (is_sampled(interval, NM_EVENT_FLOPS))
		stats->operations = stats->instructions + (double)hardware->flops / length_s;
	if (is_sampled(interval, NM_EVENT_DRAM))
		stats->traffic = fmax((double)hardware->dram_bytes / length_s, traffic_floor);
}

/* ---- end of the interval ---- */

static void clear_interval(const struct nm_metrics *metrics, uint32_t index)
{
	struct nm_entry *entry = nm_entry_at(metrics, index);
	size_t from = offsetof(struct nm_entry, run_samples);
	uint32_t silent = entry->silent;

	memset((uint8_t *)entry + from, 0, metrics->stride - from);
	entry->silent = silent;
	memset(nm_hardware_at(metrics, index), 0, metrics->hardware_stride);
}

/* Lost samples are assumed to be distributed like those received on the main CPU of the thread. */
static double taken_per_seen(const struct nm_metrics_interval *interval,
			     const struct nm_thread_stats *stats)
{
	int cpu = stats->main_cpu;

	if (!interval->taken_per_seen || cpu < 0 || (unsigned)cpu >= interval->nr_cpus)
		return 1.0;
	return fmax(interval->taken_per_seen[cpu], 1.0);
}

static void make_up_for_losses(const struct nm_metrics *metrics, double factor, uint32_t *fresh,
			       struct nm_hardware *hardware)
{
	if (!(factor > 1.0))
		return;
	for (unsigned k = 0; k < metrics->nr_nodes; k++)
		fresh[k] = (uint32_t)fmin(round(fresh[k] * factor), UINT32_MAX);
	hardware->instructions = (uint64_t)((double)hardware->instructions * factor);
	hardware->flops = (uint64_t)((double)hardware->flops * factor);
	hardware->dram_bytes = (uint64_t)((double)hardware->dram_bytes * factor);
}

/* Returns true if the thread has metrics, which are then in *ret. `first` is the index of its
 * values per node. */
static bool close_entry(struct nm_metrics *metrics, const struct nm_metrics_interval *interval,
			uint32_t index, struct nm_sampled_thread *ret, size_t first)
{
	double *accesses = metrics->accesses + first;
	uint32_t *fresh = metrics->fresh + first;
	struct nm_entry *entry = nm_entry_at(metrics, index);
	struct nm_hardware *hardware = nm_hardware_at(metrics, index);
	struct nm_window *window = nm_window_at(metrics, index);
	bool silent = nm_entry_is_silent(metrics, index), has_accesses = false;

	entry->silent = silent ? entry->silent + 1 : 0;
	for (unsigned k = 0; k < metrics->nr_nodes; k++)
		has_accesses |= window->accesses[k] > 0.0;
	if (silent && !has_accesses)
		return false;
	*ret = (struct nm_sampled_thread){.pid = entry->pid, .tid = entry->tid};
	struct nm_thread_stats *stats = &ret->stats;
	stats->run_samples = entry->run_samples;
	stats->fresh_samples = take_fresh(metrics, entry, hardware, fresh);
	stats->accesses = accesses;
	stats->fresh = fresh;
	set_home(metrics, entry, stats);
	double factor = taken_per_seen(interval, stats);
	make_up_for_losses(metrics, factor, fresh, hardware);
	stats->run_share = run_share(entry, interval, factor);
	for (unsigned k = 0; k < metrics->nr_nodes; k++) {
		window->accesses[k] += (double)fresh[k];
		accesses[k] = metrics->has_nodes ? window->accesses[k] : NAN;
		stats->access_total += accesses[k];
	}
	window->access_samples += stats->fresh_samples;
	stats->access_samples = window->access_samples;
	return true;
}

int nm_metrics_close(struct nm_metrics *metrics, const struct nm_metrics_interval *interval,
		     const struct nm_sampled_thread **ret)
{
	size_t count = 0;

	metrics->made_room = false;
	reserve_results(metrics);
	for (uint32_t tid = 0; (tid = nm_tidmap_next(metrics->index_of, tid)) != NM_TIDMAP_NONE;
	     tid++) {
		uint32_t index = nm_tidmap_get(metrics->index_of, tid);
		struct nm_entry *entry = nm_entry_at(metrics, index);
		struct nm_sampled_thread *one = &metrics->sampled[count];
		if (close_entry(metrics, interval, index, one, count * metrics->nr_nodes)) {
			struct nm_window *window = nm_window_at(metrics, index);
			struct nm_hardware *hardware = nm_hardware_at(metrics, index);
			set_latency(hardware, window, &one->stats);
			set_performance(metrics, hardware, interval, &one->stats);
			decay(metrics, window, one->stats.access_total, interval->keep);
			clear_interval(metrics, index);
			count++;
		}
		if (entry->silent >= NM_SILENT_INTERVALS_MAX)
			nm_metrics_forget(metrics, tid);
	}
	*ret = metrics->sampled;
	return (int)count;
}

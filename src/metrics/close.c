/* SPDX-License-Identifier: MIT */
/* The end of an interval: the table of threads → figures, and the decay of what is remembered. */
#include <math.h>
#include <string.h>

#include "table.h"

#define SILENT_INTERVALS_MAX 600U
/* Remembered accesses below this sum have no say in anything and are dropped. */
#define HISTORY_FLOOR 0.01

/* ---- ascending tid order ---- */

static int by_tid(const void *a, const void *b)
{
	const struct nm_entry_key *left = a, *right = b;

	if (left->tid != right->tid)
		return left->tid < right->tid ? -1 : 1;
	return (left->index > right->index) - (left->index < right->index);
}

/* Drops keys of entries that were given back, also those whose entry went to the same tid again. */
static void sort_keys(struct nm_metrics *metrics)
{
	struct nm_entry_key *keys = metrics->keys;
	size_t kept = 0;

	if (metrics->keys_unsorted)
		qsort(keys, metrics->key_count, sizeof(*keys), by_tid);
	metrics->keys_unsorted = false;
	for (size_t i = 0; i < metrics->key_count; i++) {
		bool stale = nm_entry_at(metrics, keys[i].index)->tid != keys[i].tid;
		bool twice = kept > 0 && by_tid(&keys[kept - 1], &keys[i]) == 0;
		if (!stale && !twice)
			keys[kept++] = keys[i];
	}
	metrics->key_count = kept;
}

static int reserve_figures(struct nm_metrics *metrics)
{
	size_t wanted = metrics->key_count;

	if (wanted <= metrics->figure_capacity)
		return 0;
	struct nm_figures *figures =
		reallocarray(metrics->figures, wanted, sizeof(*metrics->figures));
	if (!figures)
		return -ENOMEM;
	metrics->figures = figures;
	double *accesses = reallocarray(metrics->accesses, wanted * metrics->nr_nodes,
					sizeof(*metrics->accesses));
	if (!accesses)
		return -ENOMEM;
	metrics->accesses = accesses;
	uint32_t *fresh =
		reallocarray(metrics->fresh, wanted * metrics->nr_nodes, sizeof(*metrics->fresh));
	if (!fresh)
		return -ENOMEM;
	metrics->fresh = fresh;
	metrics->figure_capacity = wanted;
	return 0;
}

/* ---- where it ran ---- */

/* With more CPUs than slots the exact node counts decide first: -1 where no slot is on such a node.
 */
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
		     struct nm_figures *figures)
{
	/* With more CPUs than slots, only the nodes' counts are exact. */
	int slot = best_slot(metrics, entry, entry->overflowed ? nm_most_runs(metrics, entry) : 0);

	figures->home_cpu = slot < 0 ? -1 : entry->run_cpu[slot];
	figures->home_node = slot < 0 ? -1 : nm_cpu_node(metrics, entry->run_cpu[slot]);
	figures->home_node_share =
		figures->home_node < 0
			? NAN
			: (double)entry->counts[figures->home_node] / (double)entry->run_samples;
}

static double run_share(const struct nm_entry *entry, uint64_t interval_ns, double run_sample_ns)
{
	if (!(run_sample_ns > 0.0) || interval_ns == 0)
		return NAN;
	return fmin(1.0, (double)entry->run_samples * run_sample_ns / (double)interval_ns);
}

/* ---- what it touched ---- */

/* Adds the interval's counts to the window and copies it to `accesses`; returns the sum. */
static double take_accesses(const struct nm_metrics *metrics, const struct nm_entry *entry,
			    double *history, double *accesses)
{
	double total = 0.0;

	for (unsigned k = 0; k < metrics->nr_nodes; k++) {
		history[k] += (double)entry->counts[metrics->nr_nodes + k];
		accesses[k] = metrics->physmap ? history[k] : NAN;
		total += accesses[k];
	}
	history[metrics->nr_nodes] += entry->access_new;
	return total;
}

static void decay(const struct nm_metrics *metrics, double *history, double total, double keep)
{
	double factor = total * keep < HISTORY_FLOOR ? 0.0 : keep;

	for (unsigned k = 0; k <= metrics->nr_nodes; k++)
		history[k] *= factor;
}

/* ---- closing ---- */

static bool has_history(const struct nm_metrics *metrics, const double *history)
{
	for (unsigned k = 0; k < metrics->nr_nodes; k++)
		if (history[k] > 0.0)
			return true;
	return false;
}

static void clear_interval(const struct nm_metrics *metrics, struct nm_entry *entry)
{
	size_t from = offsetof(struct nm_entry, run_samples);
	uint32_t silent = entry->silent;

	memset((uint8_t *)entry + from, 0, metrics->stride - from);
	entry->silent = silent;
}

/* True where the thread has something to tell: `figures` is then filled; first: of its node values.
 */
static bool close_entry(struct nm_metrics *metrics, const struct nm_entry_key *key,
			struct nm_figures *figures, size_t first)
{
	double *accesses = metrics->accesses + first;
	uint32_t *fresh = metrics->fresh + first;
	struct nm_entry *entry = nm_entry_at(metrics, key->index);
	double *history = nm_history_of(metrics, key->index);
	bool silent = !entry->run_samples && !entry->access_new;

	entry->silent = silent ? entry->silent + 1 : 0;
	if (silent && !has_history(metrics, history))
		return false;
	memcpy(fresh, entry->counts + metrics->nr_nodes, metrics->nr_nodes * sizeof(*fresh));
	*figures = (struct nm_figures){
		.pid = entry->pid,
		.tid = entry->tid,
		.run_samples = entry->run_samples,
		.access_new = entry->access_new,
		.access_total = take_accesses(metrics, entry, history, accesses),
		.local_share = NAN,
		.accesses = accesses,
		.fresh = fresh,
	};
	figures->access_samples = history[metrics->nr_nodes];
	set_home(metrics, entry, figures);
	if (figures->home_node >= 0 && figures->access_total > 0.0)
		figures->local_share = accesses[figures->home_node] / figures->access_total;
	return true;
}

int nm_metrics_close(struct nm_metrics *metrics, uint64_t interval_ns, double run_sample_ns,
		     double keep, const struct nm_figures **ret)
{
	size_t count = 0;

	sort_keys(metrics);
	int r = reserve_figures(metrics);
	if (r < 0)
		return r;
	for (size_t i = 0; i < metrics->key_count; i++) {
		const struct nm_entry_key *key = &metrics->keys[i];
		struct nm_entry *entry = nm_entry_at(metrics, key->index);
		struct nm_figures *figures = &metrics->figures[count];
		if (close_entry(metrics, key, figures, count * metrics->nr_nodes)) {
			figures->run_share = run_share(entry, interval_ns, run_sample_ns);
			decay(metrics, nm_history_of(metrics, key->index), figures->access_total,
			      keep);
			clear_interval(metrics, entry);
			count++;
		}
		if (entry->silent >= SILENT_INTERVALS_MAX)
			nm_metrics_forget(metrics, key->tid);
	}
	*ret = metrics->figures;
	return (int)count;
}

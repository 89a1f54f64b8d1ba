/* SPDX-License-Identifier: MIT */
/* The processes that the daemon shows on the bus. */
#include <inttypes.h>
#include <string.h>

#include "report/views.h"

#define UNIT_BYTES 256

/* ---- sums over the threads of a process ---- */

struct sum {
	const struct nm_snap_process *process;
	double local, accesses;
	double latency; /* multiplied by the number of its samples */
	uint64_t latency_samples;
	double run;		    /* in CPUs; NaN: not known for any thread */
	double operations, traffic; /* of the threads with a known intensity */
	int64_t last_decision;	    /* -1: none in the history */
	uint32_t assigned;
	uint32_t *on_node; /* number of threads per node; nr_nodes values */
};

static void add_work(const struct nm_snap_thread *thread, struct sum *sum)
{
	if (isfinite(thread->stats.run_share))
		sum->run = (isfinite(sum->run) ? sum->run : 0) + thread->stats.run_share;
	if (thread->intensity > 0 && isfinite(thread->intensity) &&
	    isfinite(thread->stats.operations)) {
		sum->operations += thread->stats.operations;
		sum->traffic += thread->stats.operations / thread->intensity;
	}
}

static void add_decision(struct sum *sum, uint64_t id)
{
	if (id && (int64_t)id > sum->last_decision)
		sum->last_decision = (int64_t)id;
}

static void add_thread(const struct nm_snap_thread *thread, uint64_t decision, struct sum *sum)
{
	add_decision(sum, decision);
	add_work(thread, sum);
	if (thread->stats.main_node >= 0 && thread->stats.access_total > 0) {
		sum->local += thread->stats.accesses[thread->stats.main_node];
		sum->accesses += thread->stats.access_total;
	}
	if (isfinite(thread->stats.latency)) {
		sum->latency += thread->stats.latency * thread->stats.latency_samples;
		sum->latency_samples += thread->stats.latency_samples;
	}
	sum->assigned += thread->assigned >= 0;
	if (thread->stats.main_node >= 0)
		sum->on_node[thread->stats.main_node]++;
}

static int compare_sums(const void *a, const void *b)
{
	const struct sum *left = a, *right = b;
	return NM_COMPARE(left->process->pid, right->process->pid);
}

/* Returns one entry for each process of the snapshot in ascending pid order, followed by the
 * counts. */
static struct sum *sum_processes(const struct nm_view *view, const uint64_t *last,
				 size_t *ret_count)
{
	const struct nm_snapshot *snapshot = view->snapshot;
	unsigned nr_nodes = view->topology->nr_nodes;
	size_t count = snapshot ? snapshot->nr_processes : 0;
	struct sum *sums = nm_must(
		calloc(1, (count + 1) * (sizeof(*sums) + nr_nodes * sizeof(*sums->on_node))));
	uint32_t *on_node = (uint32_t *)(void *)(sums + count + 1);
	for (size_t i = 0; i < count; i++) {
		sums[i].process = &snapshot->processes[i];
		sums[i].on_node = on_node + i * nr_nodes;
		sums[i].run = (double)NAN;
		sums[i].last_decision = -1;
	}
	for (size_t i = 0; snapshot && i < snapshot->nr_threads; i++)
		add_thread(&snapshot->threads[i], last[i], &sums[snapshot->threads[i].process]);
	qsort(sums, count, sizeof(*sums), compare_sums);
	*ret_count = count;
	return sums;
}

static struct sum *find_sum(struct sum *sums, size_t count, uint32_t pid)
{
	const struct nm_snap_process process = {.pid = pid};
	const struct sum wanted = {.process = &process};
	return bsearch(&wanted, sums, count, sizeof(*sums), compare_sums);
}

/* Decisions about its pages. The name reveals another program that has reused the number. */
static void add_page_decisions(const struct nm_view *view, struct sum *sums, size_t count)
{
	const struct nm_history *history = view->history;
	for (uint64_t id = history->first; id < history->next; id++) {
		const struct nm_history_item *item = nm_history_find(history, id);
		const struct nm_step *step = item ? &item->decision.steps[0] : NULL;
		if (!step || item->decision.nr_steps == 0 || step->tid)
			continue;
		struct sum *sum = find_sum(sums, count, step->pid);
		if (sum && strcmp(sum->process->comm, step->comm) == 0)
			add_decision(sum, id);
	}
}

/* The node on which most of its threads run; tie: the first. */
static int main_node(const struct sum *sum, unsigned nr_nodes)
{
	int best = -1;
	for (unsigned node = 0; node < nr_nodes; node++)
		if (sum->on_node[node] > (best < 0 ? 0 : sum->on_node[best]))
			best = (int)node;
	return best;
}

static void fill_sum(const struct nm_view *view, const struct sum *sum, struct nm_process_row *row)
{
	row->threads = sum->process->threads;
	row->node = nm_topology_os_id(view->topology, main_node(sum, view->topology->nr_nodes));
	if (sum->accesses > 0)
		row->local_share = sum->local / sum->accesses;
	if (sum->latency_samples)
		row->latency_cycles = sum->latency / (double)sum->latency_samples;
	row->performance = sum->process->performance;
	row->run_share = sum->run;
	if (sum->traffic > 0)
		row->intensity = sum->operations / sum->traffic;
	row->assigned = sum->assigned;
	row->last_decision = sum->last_decision;
}

/* ---- pages of a process ---- */

/* From its sampled pages. `shares` has a value for each node. */
static void fill_pages(const struct nm_view *view, uint32_t pid, uint64_t *counts, double *shares,
		       struct nm_process_row *row)
{
	const struct nm_memory_process *process = nm_memory_process(view->memory, pid);
	unsigned nr_nodes = view->topology->nr_nodes;
	double total = 0;
	if (!process)
		return;
	const struct nm_pages *pages = nm_memory_pages(view->memory);
	struct nm_exclusivity sums = nm_pages_exclusivity(pages, process->owner);
	row->exclusivity = nm_exclusivity_average(&sums);
	/* Exclusivity is rounded to 0.1. */
	if (sums.pages > 0)
		row->shared_page_share =
			1 - (double)sums.histogram[NM_EXCLUSIVITY_STEPS - 1] / (double)sums.pages;
	memset(counts, 0, nr_nodes * sizeof(*counts));
	nm_pages_homes(pages, process->owner, counts);
	for (unsigned node = 0; node < nr_nodes; node++)
		total += (double)counts[node];
	for (unsigned node = 0; total > 0 && node < nr_nodes; node++)
		shares[node] = (double)counts[node] / total;
	if (total > 0)
		row->memory_shares = (struct nm_shares){shares, nr_nodes};
}

/* ---- one process ---- */

static bool is_moved(const struct nm_config *config, const struct nm_process *process)
{
	bool moves = config->threads.policy != NM_POLICY_NONE ||
		     config->pages.policy == NM_PAGES_EXCLUSIVITY;

	return moves && !nm_process_is_observed(process);
}

static const char *state_of(const struct nm_view *view, const struct nm_process *process,
			    bool has_threads)
{
	if (process->eligibility == NM_ELIGIBILITY_RELEASED)
		return "released";
	if (process->eligibility != NM_ELIGIBILITY_MANAGED)
		return nm_eligibility_reason(process->eligibility)->listed ? "refused" : "ignored";
	if (!has_threads)
		return process->nr_threads > 0 ? "refused" : "ignored";
	return is_moved(view->config, process) ? "managed" : "observed";
}

/* Finds the innermost service or scope; slices and sub-groups are less informative. */
static void find_unit(const char *cgroup, char *ret, size_t size)
{
	static const char *const suffixes[] = {".service", ".scope"};
	ret[0] = '\0';
	for (const char *part = cgroup ? cgroup : ""; *part;) {
		part += strspn(part, "/");
		size_t length = strcspn(part, "/");
		for (size_t i = 0; i < NM_ARRAY_SIZE(suffixes); i++) {
			size_t tail = strlen(suffixes[i]);
			if (length > tail && memcmp(part + length - tail, suffixes[i], tail) == 0)
				(void)nm_escape(ret, size, part, length);
		}
		part += length;
	}
}

/* ---- why a process is or is not managed ---- */

static const char *explain_left_alone(const struct nm_view *view, const struct nm_process *process)
{
	if (nm_trial_answer(view->trial, process->pid, process->start_ticks, view->now_ns) ==
	    NM_TRIAL_BARRED)
		return "it is left alone: such processes were slower when managed, compared with "
		       "those left alone";
	return "it is left alone for its first ten minutes, for comparison "
	       "(verify.control_percent)";
}

static const char *explain_management(const struct nm_view *view, const struct nm_process *process,
				      bool has_threads, char text[static NM_EXPLANATION_BYTES])
{
	const struct nm_config *config = view->config;
	if (!has_threads)
		return "it is about to be managed: none of its threads that may be moved has been "
		       "sampled yet";
	if (process->steering.value == NM_STEER_OBSERVE)
		return "it is only observed: the attribute " NM_STEER_ATTRIBUTE
		       " of its cgroups is observe";
	if (process->left_alone)
		return explain_left_alone(view, process);
	if (!is_moved(config, process))
		return "it is only observed: threads.policy is \"none\", and pages.policy moves no "
		       "pages";
	if (nm_config_keeps_memory(config, process->rss_bytes)) {
		(void)snprintf(text, NM_EXPLANATION_BYTES,
			       "it is managed, but its memory of %.1f GiB stays where it is: it "
			       "exceeds pages.max_gb_of_process (%" PRIu64 ")",
			       (double)process->rss_bytes / (double)(1 << 30),
			       config->pages.max_gb_of_process);
		return text;
	}
	return view->dry_run ? "it is managed, but in a dry run nothing is moved"
			     : nm_eligibility_reason(NM_ELIGIBILITY_MANAGED)->text;
}

/* Fills the reason and the sentence about a process that is not managed, or about one without a
 * home. `text` has room for the sentence. */
static void fill_reason(const struct nm_view *view, const struct nm_process *process,
			bool has_threads, char text[static NM_EXPLANATION_BYTES],
			struct nm_process_row *row)
{
	enum nm_eligibility refusal =
		has_threads ? NM_ELIGIBILITY_MANAGED : nm_tasks_refusal(view->tasks, process);
	bool eligible = refusal == NM_ELIGIBILITY_MANAGED || refusal == NM_ELIGIBILITY_SMALL ||
			refusal == NM_ELIGIBILITY_YOUNG || refusal == NM_ELIGIBILITY_IDLE;
	if (eligible && nm_topology_is_single(view->topology))
		refusal = NM_ELIGIBILITY_ONE_NODE;
	if (refusal == NM_ELIGIBILITY_MANAGED) {
		row->explanation = explain_management(view, process, has_threads, text);
		return;
	}
	row->reason = nm_eligibility_reason(refusal)->name;
	nm_tasks_explain(view->tasks, process, refusal, text);
	row->explanation = text;
}

/* The newer of the last count and the last migration home; unknown while the next count is awaited,
 * whose time replaces that of the last one. */
static int64_t age_of_location(const struct nm_view *view, const struct nm_home_state *state)
{
	uint64_t at_ns = state->location.query_id ? 0 : state->location.asked_ns;
	if (state->migration.ended_ns > at_ns)
		at_ns = state->migration.ended_ns;
	if (at_ns == 0 || at_ns > view->now_ns)
		return -1;
	return (int64_t)((view->now_ns - at_ns) / NM_NSEC_PER_SEC);
}

/* Policy "auto": its home, or why it has none. */
static void fill_placement(const struct nm_view *view, const struct nm_process *process,
			   struct nm_process_row *row)
{
	const struct nm_placement *placement = view->placement;
	const struct nm_home_state *state =
		placement ? nm_home_state_find(placement, process->pid) : NULL;
	if (!state || state->start_ticks != process->start_ticks)
		return;
	row->home = nm_topology_os_id(view->topology, state->home);
	if (state->home < 0)
		row->reason = nm_place_reason_text(state->reason);
	if (!state->located)
		return;
	row->memory_shares = (struct nm_shares){state->located_on, view->topology->nr_nodes};
	row->memory_age_s = age_of_location(view, state);
}

static json_t *process_json(const struct nm_view *view, const struct nm_process *process,
			    const struct sum *seen, uint64_t *counts, double *shares)
{
	bool managed = process->eligibility == NM_ELIGIBILITY_MANAGED;
	char unit[UNIT_BYTES], text[NM_EXPLANATION_BYTES];
	struct nm_process_row row;
	find_unit(process->cgroup, unit, sizeof(unit));
	nm_row_init(&nm_process_table, &row);
	row.pid = process->pid;
	row.comm = process->comm;
	row.uid = process->uid;
	row.unit = unit;
	row.state = state_of(view, process, seen != NULL);
	row.steer = nm_steer_name(process->steering.value);
	row.rss_bytes = (int64_t)process->rss_bytes;
	fill_reason(view, process, managed && seen, text, &row);
	if (managed && seen) {
		fill_sum(view, seen, &row);
		fill_pages(view, process->pid, counts, shares, &row);
	}
	fill_placement(view, process, &row);
	return nm_row_json(&nm_process_table, &row);
}

static int compare_processes(const void *a, const void *b)
{
	const struct nm_process *left = *(struct nm_process *const *)a;
	const struct nm_process *right = *(struct nm_process *const *)b;
	return NM_COMPARE(left->pid, right->pid);
}

static void show_processes(const struct nm_view *view, const uint64_t *last, struct nm_dump *dump)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	nm_autofree uint64_t *counts = nm_must(calloc(nr_nodes, sizeof(*counts)));
	nm_autofree double *shares = nm_must(calloc(nr_nodes, sizeof(*shares)));
	struct nm_process *const *known;
	size_t nr_sums, count = nm_tasks_processes(view->tasks, &known);
	nm_autofree struct nm_process **sorted = nm_must(calloc(count + 1, sizeof(*sorted)));
	nm_autofree struct sum *sums = sum_processes(view, last, &nr_sums);
	add_page_decisions(view, sums, nr_sums);
	if (count)
		memcpy(sorted, known, count * sizeof(struct nm_process *));
	qsort(sorted, count, sizeof(struct nm_process *), compare_processes);
	nm_dump_expect(dump, count + (view->snapshot ? view->snapshot->nr_threads : 0));
	for (size_t i = 0; i < count; i++)
		if (nm_dump_admit_of(dump, sorted[i]->domain))
			nm_dump_row(dump, process_json(view, sorted[i],
						       find_sum(sums, nr_sums, sorted[i]->pid),
						       counts, shares));
}

void nm_view_processes(const struct nm_view *view, const uint64_t *last, struct nm_dump *dump)
{
	nm_dump_begin(dump, nm_process_table.name);
	if (!view->paused)
		show_processes(view, last, dump);
	nm_dump_end(dump);
}

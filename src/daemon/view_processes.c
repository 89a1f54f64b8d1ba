/* SPDX-License-Identifier: MIT */
/* Data about processes and their pages, for the bus. */
#include <string.h>

#include "daemon.h"
#include "numa-migrd/base.h"

#define UNIT_BYTES 256

/* ---- sums over the threads of a process ---- */

struct sum {
	const struct nm_snap_process *process;
	double local, accesses;
	double latency; /* multiplied by the number of its samples */
	uint64_t latency_samples;
	double run;		    /* in CPUs; NaN: not known for any thread */
	double operations, traffic; /* of the threads with a known intensity */
	uint64_t last_decision;	    /* 0: none in the history */
	uint32_t leases;
	uint32_t *on_node; /* number of threads per node; nr_nodes values */
};

static void add_work(const struct nm_snap_thread *thread, struct sum *sum)
{
	if (isfinite(thread->run_share))
		sum->run = (isfinite(sum->run) ? sum->run : 0) + thread->run_share;
	if (thread->intensity > 0 && isfinite(thread->intensity) && isfinite(thread->operations)) {
		sum->operations += thread->operations;
		sum->traffic += thread->operations / thread->intensity;
	}
}

static void add_thread(struct nm_daemon *daemon, const struct nm_snap_thread *thread,
		       struct sum *sum)
{
	add_work(thread, sum);
	if (thread->main_node >= 0 && thread->access_total > 0) {
		sum->local += thread->accesses[thread->main_node];
		sum->accesses += thread->access_total;
	}
	if (isfinite(thread->latency)) {
		sum->latency += thread->latency * thread->latency_samples;
		sum->latency_samples += thread->latency_samples;
	}
	sum->leases +=
		nm_actuator_holds(daemon->pipeline.actuator, thread->tid, thread->start_ticks);
	if (thread->main_node >= 0)
		sum->on_node[thread->main_node]++;
}

static int compare_sums(const void *a, const void *b)
{
	const struct sum *left = a, *right = b;
	return (left->process->pid > right->process->pid) -
	       (left->process->pid < right->process->pid);
}

/* Returns one entry for each process of the snapshot in ascending pid order, followed by the
 * counts. Returns 0 or -ENOMEM. */
static int sum_processes(struct nm_daemon *daemon, struct sum **ret, size_t *ret_count)
{
	const struct nm_snapshot *snapshot = daemon->views.snapshot;
	unsigned nr_nodes = daemon->pipeline.topology->nr_nodes;
	size_t count = snapshot ? snapshot->nr_processes : 0;
	struct sum *sums =
		calloc(1, (count + 1) * (sizeof(*sums) + nr_nodes * sizeof(*sums->on_node)));
	if (!sums)
		return -ENOMEM;
	uint32_t *on_node = (uint32_t *)(void *)(sums + count + 1);
	for (size_t i = 0; i < count; i++) {
		sums[i].process = &snapshot->processes[i];
		sums[i].on_node = on_node + i * nr_nodes;
		sums[i].run = (double)NAN;
	}
	for (size_t i = 0; snapshot && i < snapshot->nr_threads; i++)
		add_thread(daemon, &snapshot->threads[i], &sums[snapshot->threads[i].process]);
	qsort(sums, count, sizeof(*sums), compare_sums);
	*ret = sums;
	*ret_count = count;
	return 0;
}

static struct sum *find_sum(struct sum *sums, size_t count, uint32_t pid)
{
	const struct nm_snap_process process = {.pid = pid};
	const struct sum wanted = {.process = &process};
	return bsearch(&wanted, sums, count, sizeof(*sums), compare_sums);
}

static void add_decision(struct sum *sum, uint64_t id)
{
	if (sum && id > sum->last_decision)
		sum->last_decision = id;
}

/* Decisions about its threads; those about exited threads are omitted. */
static void add_thread_decisions(const struct nm_daemon *daemon, struct sum *sums, size_t count,
				 const struct nm_last_decision *last, size_t nr_last)
{
	const struct nm_snapshot *snapshot = daemon->views.snapshot;
	for (size_t i = 0; snapshot && i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		add_decision(find_sum(sums, count, thread->pid),
			     nm_last_decision_of(last, nr_last, thread->tid, thread->start_ticks));
	}
}

/* Decisions about its pages. The name reveals another program that has reused the number. */
static void add_page_decisions(const struct nm_daemon *daemon, struct sum *sums, size_t count)
{
	const struct nm_history *history = &daemon->history;
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

static int add_decisions(const struct nm_daemon *daemon, struct sum *sums, size_t count)
{
	struct nm_last_decision *last;
	size_t nr_last;
	int r = nm_history_last(&daemon->history, &last, &nr_last);
	if (r < 0)
		return r;
	add_thread_decisions(daemon, sums, count, last, nr_last);
	add_page_decisions(daemon, sums, count);
	free(last);
	return 0;
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

static void write_sum(const struct nm_daemon *daemon, const struct sum *sum,
		      const struct nm_show *show)
{
	const struct nm_snap_process *process = sum->process;
	nm_show_u32(show, "threads", process->threads);
	nm_view_node(daemon, show, "node", main_node(sum, daemon->pipeline.topology->nr_nodes));
	nm_show_real(show, "local_share",
		     sum->accesses > 0 ? sum->local / sum->accesses : (double)NAN);
	nm_show_real(show, "latency_cycles",
		     sum->latency_samples ? sum->latency / (double)sum->latency_samples
					  : (double)NAN);
	nm_show_real(show, "performance", process->performance);
	nm_show_real(show, "run_share", sum->run);
	nm_show_real(show, "intensity",
		     sum->traffic > 0 ? sum->operations / sum->traffic : (double)NAN);
	nm_show_u32(show, "leases", sum->leases);
	if (sum->last_decision)
		nm_show_u64(show, "last_decision", sum->last_decision);
}

/* ---- pages of a process ---- */

/* Returns the share of the tracked pages that several nodes access, with exclusivity rounded to
 * 0.1. */
static double shared_page_share(const struct nm_exclusivity *sums)
{
	if (sums->pages == 0)
		return (double)NAN;
	return 1 - (double)sums->histogram[NM_EXCLUSIVITY_STEPS - 1] / (double)sums->pages;
}

static void write_exclusivity(const struct nm_daemon *daemon, uint32_t pid,
			      const struct nm_show *show)
{
	const struct nm_memory_process *process = nm_memory_process(daemon->pipeline.memory, pid);
	if (!process)
		return;
	struct nm_exclusivity sums =
		nm_pages_exclusivity(nm_memory_pages(daemon->pipeline.memory), process->owner);
	nm_show_real(show, "exclusivity", nm_exclusivity_average(&sums));
	nm_show_real(show, "shared_page_share", shared_page_share(&sums));
}

/* ---- one process ---- */

static bool is_moved(const struct nm_config *config, const struct nm_process *process)
{
	bool moves = config->threads.policy != NM_POLICY_NONE ||
		     config->pages.policy == NM_PAGES_EXCLUSIVITY;

	return moves && !nm_process_is_observed(process);
}

/* Returns NULL if the process is not managed and not shown. */
static const char *state_of(const struct nm_daemon *daemon, const struct nm_process *process,
			    bool has_threads)
{
	if (process->eligibility == NM_ELIGIBILITY_RELEASED)
		return "released";
	if (process->eligibility != NM_ELIGIBILITY_MANAGED)
		return nm_eligibility_reason(process->eligibility)->listed ? "refused" : NULL;
	if (!has_threads)
		return process->nr_threads > 0 ? "refused" : NULL;
	return is_moved(daemon->config, process) ? "managed" : "observed";
}

static void write_eligibility(const struct nm_daemon *daemon, const struct nm_process *process,
			      const char *state, const struct nm_show *show)
{
	enum nm_eligibility refusal = nm_roster_refusal(daemon->pipeline.roster, process);
	nm_show_text(show, "state", state);
	if (strcmp(state, "refused") == 0 && refusal != NM_ELIGIBILITY_MANAGED)
		nm_show_text(show, "reason", nm_eligibility_reason(refusal)->name);
	nm_show_text(show, "steer", nm_steer_name(process->steering.value));
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

/* Policy "auto": writes its home, or why it has none. */
static void write_placement(const struct nm_daemon *daemon, const struct nm_process *process,
			    const struct nm_show *show)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	const struct nm_home_state *home_state =
		placement ? nm_home_state_find(placement, process->pid) : NULL;
	if (!home_state || home_state->start_ticks != process->start_ticks)
		return;
	if (home_state->home >= 0)
		nm_view_node(daemon, show, "home", home_state->home);
	else
		nm_show_text(show, "reason", nm_place_reason_text(home_state->reason));
}

static void write_process(const struct nm_daemon *daemon, const struct nm_process *process,
			  const struct sum *seen, const char *state, const struct nm_show *show)
{
	char unit[UNIT_BYTES];
	find_unit(process->cgroup, unit, sizeof(unit));
	nm_show_u32(show, "pid", process->pid);
	nm_show_text(show, "comm", process->comm);
	nm_show_u32(show, "uid", process->uid);
	nm_show_text(show, "unit", unit);
	write_eligibility(daemon, process, state, show);
	nm_show_u64(show, "rss_bytes", process->rss_bytes);
	if (process->eligibility == NM_ELIGIBILITY_MANAGED && process->runtime != NM_RUNTIME_NONE)
		nm_show_text(show, "runtime", nm_runtime_name(process->runtime));
	write_placement(daemon, process, show);
	if (seen && process->eligibility == NM_ELIGIBILITY_MANAGED) {
		write_sum(daemon, seen, show);
		write_exclusivity(daemon, process->pid, show);
	}
}

static int compare_processes(const void *a, const void *b)
{
	const struct nm_process *left = *(struct nm_process *const *)a;
	const struct nm_process *right = *(struct nm_process *const *)b;
	return NM_COMPARE(left->pid, right->pid);
}

int nm_view_processes(void *context, const struct nm_show *show)
{
	struct nm_daemon *daemon = context;
	struct nm_process *const *known;
	nm_autofree struct sum *sums = NULL;
	size_t nr_sums = 0;
	if (daemon->paused)
		return 0;
	size_t count = nm_roster_processes(daemon->pipeline.roster, &known);
	nm_autofree struct nm_process **sorted = calloc(count + 1, sizeof(*sorted));
	int r = sorted ? sum_processes(daemon, &sums, &nr_sums) : -ENOMEM;
	if (r == 0)
		r = add_decisions(daemon, sums, nr_sums);
	if (r < 0)
		return r;
	if (count)
		memcpy(sorted, known, count * sizeof(struct nm_process *));
	qsort(sorted, count, sizeof(struct nm_process *), compare_processes);
	for (size_t i = 0; i < count; i++) {
		const struct sum *seen = find_sum(sums, nr_sums, sorted[i]->pid);
		const char *state = state_of(daemon, sorted[i], seen != NULL);
		if (!state)
			continue;
		show->open(show->context);
		write_process(daemon, sorted[i], seen, state, show);
		show->close(show->context);
	}
	return 0;
}

/* ---- why a process is or is not managed ---- */

static const char *explain_left_alone(const struct nm_daemon *daemon,
				      const struct nm_process *process)
{
	if (nm_trial_answer(daemon->trial.group, process->pid, process->start_ticks) ==
	    NM_TRIAL_BARRED)
		return "it is left alone: such processes were slower when managed, compared with "
		       "those left alone";
	return "it is left alone for its first ten minutes, for comparison "
	       "(verify.control_percent)";
}

static const char *explain_management(const struct nm_daemon *daemon,
				      const struct nm_process *process, bool has_threads)
{
	const struct nm_config *config = daemon->config;
	if (!has_threads)
		return "it is about to be managed: none of its threads that may be moved has been "
		       "sampled yet";
	if (process->steering.value == NM_STEER_OBSERVE)
		return "it is only observed: the attribute " NM_STEER_ATTRIBUTE
		       " of its cgroups is observe";
	if (process->left_alone)
		return explain_left_alone(daemon, process);
	if (!is_moved(config, process))
		return "it is only observed: threads.policy is \"none\", and pages.policy moves no "
		       "pages";
	return nm_daemon_is_dry_run(daemon) ? "it is managed, but in a dry run nothing is moved"
					    : nm_eligibility_reason(NM_ELIGIBILITY_MANAGED)->text;
}

/* The row of a process that ListProcesses would omit. */
static void write_refused(const struct nm_explanation *explanation, uint32_t pid,
			  const struct nm_show *show)
{
	nm_show_u32(show, "pid", pid);
	nm_show_text(show, "comm", explanation->comm);
	nm_show_u32(show, "uid", explanation->uid);
	nm_show_text(show, "state",
		     explanation->eligibility == NM_ELIGIBILITY_RELEASED ? "released" : "refused");
	nm_show_text(show, "reason", nm_eligibility_reason(explanation->eligibility)->name);
	nm_show_u64(show, "rss_bytes", explanation->rss_bytes);
}

int nm_view_process_reason(void *context, uint32_t pid, const struct nm_show *show)
{
	struct nm_daemon *daemon = context;
	nm_autofree struct sum *sums = NULL;
	struct nm_explanation explanation;
	size_t nr_sums = 0;
	if (daemon->paused)
		return -EAGAIN;
	struct nm_platform *platform = daemon->pipeline.platform;
	int r = nm_roster_explain(daemon->pipeline.roster, pid, platform->ops->now_ns(platform),
				  &explanation);
	if (r == 0)
		r = sum_processes(daemon, &sums, &nr_sums);
	if (r == 0)
		r = add_decisions(daemon, sums, nr_sums);
	if (r < 0)
		return r;
	const struct nm_process *process = nm_view_process(daemon, pid);
	const struct sum *seen = find_sum(sums, nr_sums, pid);
	if (explanation.eligibility != NM_ELIGIBILITY_MANAGED || !process) {
		write_refused(&explanation, pid, show);
		nm_show_text(show, "explanation", explanation.text);
		return 0;
	}
	const char *state = state_of(daemon, process, seen != NULL);
	write_process(daemon, process, seen, state ? state : "refused", show);
	nm_show_text(show, "explanation",
		     explain_management(daemon, process,
					seen && process->eligibility == NM_ELIGIBILITY_MANAGED));
	return 0;
}

/* ---- Pages ---- */

/* No page has an exclusivity below a node's equal share, so that the first step is empty for up to
 * 20 nodes. */
static void write_histogram(const struct nm_exclusivity *sums, const struct nm_show *show)
{
	uint64_t histogram[NM_EXCLUSIVITY_STEPS - 1];
	memcpy(histogram, sums->histogram + 1, sizeof(histogram));
	histogram[0] += sums->histogram[0];
	nm_show_u64s(show, "histogram", histogram, NM_ARRAY_SIZE(histogram));
}

static int write_homes(const struct nm_daemon *daemon, const struct nm_pages *pages, uint16_t owner,
		       const struct nm_show *show)
{
	unsigned nr_nodes = daemon->pipeline.topology->nr_nodes;
	nm_autofree uint64_t *homes = calloc(nr_nodes, sizeof(*homes));
	if (!homes)
		return -ENOMEM;
	nm_pages_homes(pages, owner, homes);
	nm_show_u64s(show, "by_node", homes, nr_nodes);
	return 0;
}

static void write_sharing(const struct nm_daemon *daemon, uint32_t pid, const struct nm_show *show)
{
	const struct nm_snapshot *snapshot = daemon->views.snapshot;
	size_t most = snapshot ? snapshot->nr_threads : 0, count = 0;
	nm_autofree uint32_t *tids = calloc(most + 1, sizeof(*tids));
	struct nm_sharing sharing;
	for (size_t i = 0; tids && i < most; i++)
		if (snapshot->threads[i].pid == pid)
			tids[count++] = snapshot->threads[i].tid;
	if (!tids || nm_affinity_sharing(nm_memory_affinity(daemon->pipeline.memory), tids, count,
					 &sharing) < 0)
		return;
	nm_show_real(show, "heterogeneity", sharing.heterogeneity);
	nm_show_real(show, "sharing", sharing.amount);
}

int nm_view_pages(void *context, uint32_t pid, const struct nm_show *show)
{
	const struct nm_daemon *daemon = context;
	const struct nm_memory_process *process = nm_memory_process(daemon->pipeline.memory, pid);
	struct nm_memory *memory = daemon->pipeline.memory;
	if (!nm_view_is_managed(daemon, pid))
		return -ESRCH;
	if (!process) /* pages are not counted, or not yet for this process */
		return 0;
	struct nm_exclusivity sums = nm_pages_exclusivity(nm_memory_pages(memory), process->owner);
	nm_show_u64(show, "tracked", sums.pages);
	nm_show_real(show, "exclusivity", nm_exclusivity_average(&sums));
	nm_show_u64(show, "ping_pong", nm_pages_ping_pong(nm_memory_pages(memory), process->owner));
	write_histogram(&sums, show);
	write_sharing(daemon, pid, show);
	return write_homes(daemon, nm_memory_pages(memory), process->owner, show);
}

/* ---- regions of a process ---- */

static const char *kind_of(const struct nm_daemon *daemon, const struct nm_region *region)
{
	double even = 1.0 / daemon->pipeline.topology->nr_nodes;
	if (region->exclusivity >= NM_REGION_EXCLUSIVITY)
		return "exclusive";
	return region->exclusivity <= even + NM_REGION_EVEN_BAND ? "shared" : "mixed";
}

static void write_region(const struct nm_daemon *daemon, const struct nm_region *region,
			 bool addresses, const struct nm_show *show)
{
	show->open(show->context);
	if (addresses) {
		nm_show_u64(show, "start", region->start);
		nm_show_u64(show, "end", region->end);
	}
	nm_show_u64(show, "bytes", region->end - region->start);
	nm_show_u64(show, "samples", (uint64_t)region->samples);
	nm_show_real(show, "exclusivity", region->exclusivity);
	nm_view_node(daemon, show, "node", region->node);
	if (isfinite(region->exclusivity))
		nm_show_text(show, "kind", kind_of(daemon, region));
	show->close(show->context);
}

/* The owner of the process's directory in /proc determines access. For a program with more
 * privileges than its user this is root (proc(5)), and its addresses are shown only to root. */
static bool may_see_addresses(const struct nm_daemon *daemon, const struct nm_process *process,
			      uid_t caller)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_owner owner;
	if (caller == 0)
		return true;
	if (caller != process->uid)
		return false;
	int directory = nm_proc_open_same(platform, 0, process->pid, process->start_ticks, NULL);
	if (directory < 0)
		return false;
	bool owned = platform->ops->owner(platform, directory, &owner) == 0 && owner.uid == caller;
	platform->ops->close(platform, directory);
	return owned;
}

int nm_view_regions(void *context, uint32_t pid, uid_t caller, const struct nm_show *show)
{
	const struct nm_daemon *daemon = context;
	const struct nm_process *process = nm_view_process(daemon, pid);
	if (!process)
		return -ESRCH;
	const struct nm_page_process *pages =
		daemon->pipeline.pages ? nm_page_process_of(&daemon->pipeline.pages->processes, pid)
				       : NULL;
	if (!pages || !pages->regions)
		return 0;
	bool addresses = may_see_addresses(daemon, process, caller);
	for (size_t i = 0; i < nm_regions_count(pages->regions); i++) {
		struct nm_region region = nm_regions_at(pages->regions, i);
		write_region(daemon, &region, addresses, show);
	}
	return 0;
}

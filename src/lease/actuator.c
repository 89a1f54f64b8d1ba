/* SPDX-License-Identifier: MIT */
#include "actuator.h"

#include <string.h>

#include "numa-migrd/file.h"

/*
 * Takes over the lines that nm_restore() left in the ledger because it could not restore some
 * affinities. Their threads are not members, so each round tries again to restore them.
 */
static int take_over_ledger(struct nm_actuator *actuator, const char *boot_id)
{
	struct nm_ledger_contents contents;
	int r = nm_ledger_read(actuator->runtime_directory, boot_id, &contents);
	if (r < 0)
		return r;
	nm_lease_reserve(actuator, contents.count);
	for (size_t i = 0; r == 0 && i < contents.count; i++) {
		r = nm_lease_reserve_place(actuator, contents.entries[i].pid,
					   contents.entries[i].tid);
		if (r == 0)
			r = nm_shares_take(&actuator->lease_shares, contents.entries[i].domain,
					   UINT32_MAX);
		if (r == 0)
			(void)nm_lease_put(actuator, &contents.entries[i]);
	}
	/* Tasks with inherited affinity have to be found, too. */
	actuator->missed = actuator->count > 0;
	nm_ledger_contents_clear(&contents);
	return r;
}

int nm_actuator_new(struct nm_platform *platform, const struct nm_topology *topology,
		    int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
		    void *context, struct nm_actuator **ret)
{
	nm_auto(nm_actuator_freep) struct nm_actuator *actuator =
		nm_must(calloc(1, sizeof(*actuator)));
	actuator->platform = platform;
	actuator->masks.platform = platform;
	actuator->masks.topology = topology;
	actuator->runtime_directory = runtime_directory;
	actuator->progress = (struct nm_progress){
		.platform = platform, .on_event = on_event, .context = context};
	actuator->turn_steps = NM_LEASE_TURN_STEPS;
	actuator->most_leases = NM_LEASE_MOST;

	actuator->masks.cgroups = nm_cgroups_new(platform);
	actuator->by_tid = nm_tidmap_new();
	actuator->by_pid = nm_tidmap_new();
	actuator->settled = nm_settled_new();
	actuator->descent = nm_descent_new(&actuator->masks);
	if (runtime_directory >= 0 || runtime_directory == NM_NOWHERE) {
		int r = nm_ledger_open(runtime_directory, boot_id, &actuator->ledger);
		if (r == 0)
			r = take_over_ledger(actuator, boot_id);
		if (r < 0)
			return r;
	}
	*ret = NM_TAKE(actuator);
	return 0;
}

static unsigned count_refused(const struct nm_actuator *actuator)
{
	unsigned count = 0;
	for (size_t i = 0; i < actuator->count; i++)
		count += actuator->leases[i].refused;
	return count;
}

void nm_actuator_free(struct nm_actuator *actuator)
{
	if (!actuator)
		return;
	/* The next start needs the ledger only if it has an active entry, or if tasks with
	 * inherited affinity have not been found or restored yet. */
	if (actuator->ledger && nm_actuator_leases(actuator) == 0 &&
	    !nm_lease_may_be_missed(actuator) && count_refused(actuator) == 0)
		(void)nm_ledger_remove(actuator->runtime_directory);
	nm_ledger_free(actuator->ledger);
	for (size_t i = 0; i < actuator->count; i++)
		nm_ledger_entry_clear(&actuator->leases[i].terms);
	free(actuator->leases);
	nm_descent_walk_clear(&actuator->walk.course);
	nm_descent_free(actuator->descent);
	nm_settled_free(actuator->settled);
	nm_cgroups_free(actuator->masks.cgroups);
	nm_shares_clear(&actuator->inherited_shares);
	nm_shares_clear(&actuator->lease_shares);
	nm_tidmap_free(actuator->by_tid);
	nm_tidmap_free(actuator->by_pid);
	free(actuator);
}

void nm_actuator_retarget(struct nm_actuator *actuator, const struct nm_topology *topology)
{
	/* Leases do not depend on node indices, which may have changed. */
	actuator->masks.topology = topology;
}

/* ---- updating leases ---- */

/* A member with the same number may be another thread. */
static bool is_member(const struct nm_actuator_input *input, const struct nm_ledger_entry *terms)
{
	_Static_assert(offsetof(struct nm_member, tid) == 0, "bsearch compares the first field");
	const struct nm_member *member =
		input->nr_members ? bsearch(&terms->tid, input->members, input->nr_members,
					    sizeof(*input->members), nm_compare_u32)
				  : NULL;
	return member && member->start_ticks == terms->start_ticks;
}

#define EVIDENCE_SAMPLES 10

/* Returns the accesses to the nodes nearest to the CPUs of `node`: to its own memory, and to that
 * of nodes without CPUs beside it. */
static double accesses_beside(const struct nm_topology *topology, const struct nm_figures *figures,
			      int node)
{
	double sum = 0;

	for (unsigned k = 0; k < topology->nr_nodes; k++)
		if (topology->nodes[k].nearest_with_cpus == node)
			sum += figures->accesses[k];
	return sum;
}

/* Returns whether clearly more of the thread's accesses are to another node. If so, activity does
 * not renew the lease. */
static bool speaks_against(const struct nm_actuator *actuator, const struct nm_lease *lease,
			   const struct nm_figures *figures)
{
	const struct nm_topology *topology = actuator->masks.topology;
	int held = nm_topology_node_of_cpu(topology, hwloc_bitmap_first(lease->terms.target));
	if (held < 0 || !figures->accesses || figures->access_samples < EVIDENCE_SAMPLES)
		return false;
	double here = accesses_beside(topology, figures, held);
	for (unsigned node = 0; node < topology->nr_nodes; node++)
		if (accesses_beside(topology, figures, (int)node) > 2 * here)
			return true;
	return false;
}

/* Metrics identify threads by number only. */
static struct nm_lease *active_of_number(const struct nm_actuator *actuator, uint32_t tid)
{
	for (uint32_t i = nm_lease_first_of_tid(actuator, tid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_tid)
		if (nm_lease_active(&actuator->leases[i]))
			return &actuator->leases[i];
	return NULL;
}

static void renew(struct nm_actuator *actuator, const struct nm_actuator_input *input)
{
	for (size_t i = 0; i < input->nr_figures; i++) {
		const struct nm_figures *figures = &input->figures[i];
		if (figures->run_samples == 0 && figures->access_new == 0)
			continue;
		struct nm_lease *lease = active_of_number(actuator, figures->tid);
		if (lease && !speaks_against(actuator, lease, figures))
			lease->renewed_ns = input->now_ns;
	}
}

/* Returns whether the leased affinity is still in force. If not, nm_lease_give_back() determines
 * the reason. */
static bool carries_target(struct nm_actuator *actuator, const struct nm_lease *lease)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	struct nm_platform *platform = actuator->platform;
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	if (platform->ops->affinity_get(platform, (pid_t)terms->tid, current) < 0)
		return false;
	if (hwloc_bitmap_isequal(current, terms->target))
		return true;
	int directory =
		nm_proc_open_same(platform, terms->pid, terms->tid, terms->start_ticks, NULL);
	if (directory < 0)
		return false;
	int state = nm_mask_judge(&actuator->masks, directory, terms, current);
	platform->ops->close(platform, directory);
	return state == NM_MASK_OURS;
}

static bool is_quiet(const struct nm_lease *lease, const struct nm_actuator_input *input)
{
	return input->expiry_ns > 0 && input->now_ns > lease->renewed_ns &&
	       input->now_ns - lease->renewed_ns > input->expiry_ns;
}

static void update_lease(struct nm_actuator *actuator, size_t index,
			 const struct nm_actuator_input *input)
{
	const struct nm_lease *lease = &actuator->leases[index];
	if (is_quiet(lease, input))
		(void)nm_lease_give_back(actuator, index, NM_LEASE_EXPIRED);
	else if (!is_member(input, &lease->terms) || !carries_target(actuator, lease))
		(void)nm_lease_give_back(actuator, index, NM_LEASE_RETURNED);
}

void nm_lease_compact_ledger(struct nm_actuator *actuator)
{
	if (!actuator->ledger)
		return;
	nm_autofree const struct nm_ledger_entry **entries =
		nm_must(calloc(actuator->count + 1, sizeof(*entries)));
	size_t count = nm_lease_collect(actuator, true, entries);
	/* If this fails, the longer file with the same contents stays. */
	if (nm_ledger_lines(actuator->ledger) > 2 * count + 256)
		(void)nm_ledger_compact(actuator->ledger, entries, count);
}

bool nm_actuator_holds(void *context, uint32_t tid, uint64_t start_ticks)
{
	return nm_lease_active_of(context, tid, start_ticks) != NULL;
}

/* ---- tasks that no record reported ---- */

void nm_actuator_records_lost(struct nm_actuator *actuator)
{
	actuator->missed = true;
}

/* The records drained since the last round report all tasks created before it. */
static void note_reported(struct nm_actuator *actuator)
{
	if (nm_lease_may_be_missed(actuator) || actuator->count == 0)
		return;
	if (actuator->reported_ticks < actuator->tended_ticks)
		actuator->reported_ticks = actuator->tended_ticks;
	actuator->tended_ticks = nm_proc_ticks_now(actuator->platform);
}

void nm_actuator_update(struct nm_actuator *actuator, const struct nm_actuator_input *input)
{
	actuator->round++;
	nm_cgroups_begin(actuator->masks.cgroups, input->now_ns);
	nm_descent_forget_processes(actuator->descent);
	renew(actuator, input);
	nm_lease_retry_inherited(actuator);
	for (size_t i = 0; i < actuator->count; i++)
		if (nm_lease_active(&actuator->leases[i]))
			update_lease(actuator, i, input);
	nm_lease_walk_on(actuator);
	nm_lease_forget_past(actuator);
	nm_lease_compact_ledger(actuator);
	note_reported(actuator);
}

/* ---- transient affinities ---- */

static bool seen_on_node(struct nm_actuator *actuator, const struct nm_lease *lease)
{
	const struct nm_ledger_entry *terms = &lease->terms;
	struct nm_proc_stat stat;
	return nm_proc_stat_of(actuator->platform, terms->pid, terms->tid, &stat) == 0 &&
	       stat.start_ticks == terms->start_ticks && stat.processor >= 0 &&
	       hwloc_bitmap_isset(terms->target, (unsigned)stat.processor);
}

void nm_actuator_poll_nudges(struct nm_actuator *actuator, uint64_t now_ns)
{
	nm_cgroups_begin(actuator->masks.cgroups, now_ns);
	for (size_t i = 0; i < actuator->count; i++) {
		struct nm_lease *lease = &actuator->leases[i];
		if (!nm_lease_active(lease) || lease->pin != NM_STEP_NUDGE)
			continue;
		if (seen_on_node(actuator, lease))
			(void)nm_lease_give_back(actuator, i, NM_LEASE_WIDENED);
		else if (now_ns >= lease->nudge_end_ns)
			(void)nm_lease_give_back(actuator, i, NM_LEASE_UNSEEN);
	}
}

size_t nm_actuator_nudges(const struct nm_actuator *actuator)
{
	size_t nudges = 0;
	for (size_t i = 0; i < actuator->count; i++)
		nudges += nm_lease_active(&actuator->leases[i]) &&
			  actuator->leases[i].pin == NM_STEP_NUDGE;
	return nudges;
}

size_t nm_actuator_leases(const struct nm_actuator *actuator)
{
	size_t active = 0;
	for (size_t i = 0; i < actuator->count; i++)
		active += nm_lease_active(&actuator->leases[i]);
	return active;
}

/* ---- restoring ---- */

unsigned nm_actuator_return_thread(struct nm_actuator *actuator, uint32_t tid, uint64_t start_ticks)
{
	const struct nm_lease *lease = nm_lease_active_of(actuator, tid, start_ticks);
	if (!lease)
		return 0;
	return nm_lease_give_back(actuator, (size_t)(lease - actuator->leases), NM_LEASE_RETURNED) <
	       0;
}

/* No record shows yet what an exec or fork has just done to a leased thread, so a walk is needed if
 * there is one. */
unsigned nm_actuator_return_process(struct nm_actuator *actuator, uint32_t pid)
{
	unsigned failed = 0;
	for (uint32_t i = nm_lease_first_of_pid(actuator, pid); i != NM_LEASE_NONE;
	     i = actuator->leases[i].next_of_pid) {
		if (!nm_lease_active(&actuator->leases[i]))
			continue;
		actuator->missed = true;
		failed += nm_lease_give_back(actuator, i, NM_LEASE_RETURNED) < 0;
	}
	return failed;
}

/* Tasks with inherited affinity are searched for afterwards, because more may be created until
 * then. */
static unsigned return_leases(struct nm_actuator *actuator)
{
	bool missed = nm_lease_may_be_missed(actuator);
	actuator->progress.reported_ns = 0;
	nm_descent_forget_processes(actuator->descent);
	actuator->missed = true;
	unsigned failed = 0;
	for (size_t i = 0; i < actuator->count; i++) {
		if (!nm_lease_active(&actuator->leases[i]))
			continue;
		failed += nm_lease_give_back(actuator, i, NM_LEASE_RETURNED) < 0;
		nm_progress_note(&actuator->progress);
	}
	nm_lease_retry_inherited(actuator);
	int r = nm_lease_search(actuator);
	if (r == 0)
		actuator->missed = missed;
	return failed + (r < 0 ? 1U : (unsigned)r);
}

unsigned nm_actuator_return_all(struct nm_actuator *actuator)
{
	actuator->ends = true;
	unsigned failed = return_leases(actuator);
	actuator->ends = false;
	unsigned refused = count_refused(actuator);
	if (failed < refused)
		failed = refused;
	if (failed == 0) {
		actuator->missed = false;
		nm_lease_walk_stop(actuator);
	}
	return failed;
}

/* SPDX-License-Identifier: MIT */
#include "actuator.h"

#include <string.h>

#include "mask.h"

int nm_actuator_new(struct nm_platform *platform, const struct nm_topology *topology,
		    int runtime_directory, const char *boot_id, nm_lease_event_fn on_event,
		    void *context, struct nm_actuator **ret)
{
	nm_auto(nm_actuator_freep) struct nm_actuator *actuator = calloc(1, sizeof(*actuator));
	if (!actuator)
		return -ENOMEM;
	actuator->platform = platform;
	actuator->topology = topology;
	actuator->runtime_directory = runtime_directory;
	actuator->on_event = on_event;
	actuator->context = context;

	int r = nm_tidmap_new(&actuator->by_tid);
	if (r < 0)
		return r;
	if (runtime_directory >= 0) {
		r = nm_ledger_open(runtime_directory, boot_id, &actuator->ledger);
		if (r < 0)
			return r;
	}
	*ret = NM_TAKE(actuator);
	return 0;
}

void nm_actuator_free(struct nm_actuator *actuator)
{
	if (!actuator)
		return;
	/* A ledger without a live entry has nothing to tell the next start. */
	if (actuator->ledger && nm_actuator_leases(actuator) == 0)
		(void)nm_ledger_remove(actuator->runtime_directory);
	nm_ledger_free(actuator->ledger);
	for (size_t i = 0; i < actuator->count; i++)
		nm_ledger_entry_clear(&actuator->leases[i].terms);
	free(actuator->leases);
	nm_tidmap_free(actuator->by_tid);
	free(actuator);
}

void nm_actuator_retarget(struct nm_actuator *actuator, const struct nm_topology *topology)
{
	actuator->topology = topology;
	/* Node indices may have changed: leases stay, by their masks; nudges end at their time. */
	for (size_t i = 0; i < actuator->count; i++)
		actuator->leases[i].node = -1;
}

/* ---- looking after leases ---- */

static int compare_tid(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a;
	uint32_t right = *(const uint32_t *)b;
	return (left > right) - (left < right);
}

static bool is_member(const struct nm_tend_input *input, uint32_t tid)
{
	_Static_assert(offsetof(struct nm_member, tid) == 0, "bsearch compares the first field");
	return bsearch(&tid, input->members, input->nr_members, sizeof(*input->members),
		       compare_tid);
}

static void renew(struct nm_actuator *actuator, const struct nm_tend_input *input)
{
	for (size_t i = 0; i < input->nr_figures; i++) {
		const struct nm_figures *figures = &input->figures[i];
		if (figures->run_samples == 0 && figures->access_new == 0)
			continue;
		struct nm_lease *lease = nm_lease_find(actuator, figures->tid);
		if (lease && nm_lease_active(lease))
			lease->renewed_ns = input->now_ns;
	}
}

/* Has somebody else changed the mask since? Threads that ended are seen to by the give-back. */
static bool changed_by_others(struct nm_actuator *actuator, const struct nm_lease *lease)
{
	nm_autobitmap current = hwloc_bitmap_alloc();
	struct nm_platform *platform = actuator->platform;
	if (!current || platform->ops->affinity_get(platform, (pid_t)lease->terms.tid, current) < 0)
		return false;
	return !nm_mask_is_ours(platform, current, lease->terms.target, lease->terms.cgroup);
}

static void tend_lease(struct nm_actuator *actuator, struct nm_lease *lease,
		       const struct nm_tend_input *input)
{
	bool quiet = input->now_ns - lease->renewed_ns > input->expiry_ns;

	if (quiet || changed_by_others(actuator, lease))
		(void)nm_lease_give_back(actuator, lease, NM_LEASE_EXPIRED, input->now_ns);
	else if (!is_member(input, lease->terms.tid))
		(void)nm_lease_give_back(actuator, lease, NM_LEASE_RETURNED, input->now_ns);
}

/* Drops leases that ended long enough ago, and rewrites the ledger when most of its lines are dead.
 */
static void forget_past(struct nm_actuator *actuator, uint64_t now_ns)
{
	size_t kept = 0;
	for (size_t i = 0; i < actuator->count; i++) {
		struct nm_lease *lease = &actuator->leases[i];
		if (!nm_lease_active(lease) && now_ns - lease->past_ns > NM_LEASE_MEMORY_NS) {
			nm_tidmap_remove(actuator->by_tid, lease->terms.tid);
			nm_ledger_entry_clear(&lease->terms);
			continue;
		}
		actuator->leases[kept] = *lease;
		(void)nm_tidmap_set(actuator->by_tid, lease->terms.tid, (uint32_t)kept);
		kept++;
	}
	actuator->count = kept;
}

static size_t active_terms(const struct nm_actuator *actuator, const struct nm_ledger_entry **ret)
{
	size_t active = 0;
	for (size_t i = 0; i < actuator->count; i++)
		if (nm_lease_active(&actuator->leases[i]))
			ret[active++] = &actuator->leases[i].terms;
	return active;
}

static void compact_ledger(struct nm_actuator *actuator)
{
	if (!actuator->ledger ||
	    nm_ledger_lines(actuator->ledger) <= 2 * nm_actuator_leases(actuator) + 256)
		return;
	const struct nm_ledger_entry **entries = calloc(actuator->count + 1, sizeof(*entries));
	if (!entries)
		return;
	/* A refusal leaves the longer file, which says the same. */
	(void)nm_ledger_compact(actuator->ledger, entries, active_terms(actuator, entries));
	free(entries);
}

bool nm_actuator_holds(void *context, uint32_t tid)
{
	const struct nm_lease *lease = nm_lease_find(context, tid);
	return lease && nm_lease_active(lease);
}

void nm_actuator_records_lost(struct nm_actuator *actuator)
{
	actuator->missed_heirs = true;
}

static void find_missed_heirs(struct nm_actuator *actuator)
{
	if (!actuator->missed_heirs)
		return;
	actuator->missed_heirs = false;
	const struct nm_ledger_entry **entries = calloc(actuator->count + 1, sizeof(*entries));
	size_t count = 0;
	if (!entries)
		return;
	for (size_t i = 0; i < actuator->count; i++)
		if (!actuator->leases[i].heir)
			entries[count++] = &actuator->leases[i].terms;
	nm_lease_return_heirs(actuator, entries, count);
	free(entries);
}

void nm_actuator_tend(struct nm_actuator *actuator, const struct nm_tend_input *input)
{
	renew(actuator, input);
	find_missed_heirs(actuator);
	for (size_t i = 0; i < actuator->count; i++)
		if (nm_lease_active(&actuator->leases[i]))
			tend_lease(actuator, &actuator->leases[i], input);
	forget_past(actuator, input->now_ns);
	compact_ledger(actuator);
}

/* ---- nudges ---- */

static bool seen_on_node(struct nm_actuator *actuator, const struct nm_lease *lease)
{
	struct nm_proc_stat stat;
	int directory = nm_mask_open(actuator->platform, lease->terms.pid, lease->terms.tid,
				     lease->terms.start_ticks, &stat);
	if (directory < 0)
		return false;
	actuator->platform->ops->close(actuator->platform, directory);
	return stat.processor >= 0 &&
	       hwloc_bitmap_isset(lease->terms.target, (unsigned)stat.processor);
}

void nm_actuator_poll_nudges(struct nm_actuator *actuator, uint64_t now_ns)
{
	for (size_t i = 0; i < actuator->count; i++) {
		struct nm_lease *lease = &actuator->leases[i];
		if (!nm_lease_active(lease) || lease->pin != NM_STEP_NUDGE)
			continue;
		if (seen_on_node(actuator, lease))
			(void)nm_lease_give_back(actuator, lease, NM_LEASE_WIDENED, now_ns);
		else if (now_ns >= lease->nudge_end_ns)
			(void)nm_lease_give_back(actuator, lease, NM_LEASE_UNSEEN, now_ns);
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

/* ---- giving back ---- */

unsigned nm_actuator_return_thread(struct nm_actuator *actuator, uint32_t tid, uint64_t now_ns)
{
	struct nm_lease *lease = nm_lease_find(actuator, tid);
	if (!lease || !nm_lease_active(lease))
		return 0;
	return nm_lease_give_back(actuator, lease, NM_LEASE_RETURNED, now_ns) < 0;
}

/* pid 0: every process. Heirs are looked for afterwards: until then more may be born. */
static unsigned return_leases(struct nm_actuator *actuator, uint32_t pid, uint64_t now_ns)
{
	const struct nm_ledger_entry **entries = calloc(actuator->count + 1, sizeof(*entries));
	size_t count = 0;
	unsigned failed = 0;

	for (size_t i = 0; i < actuator->count; i++) {
		struct nm_lease *lease = &actuator->leases[i];
		if (lease->heir || (pid && lease->terms.pid != pid))
			continue;
		if (nm_lease_active(lease))
			failed +=
				nm_lease_give_back(actuator, lease, NM_LEASE_RETURNED, now_ns) < 0;
		if (entries)
			entries[count++] = &lease->terms;
	}
	if (entries)
		nm_lease_return_heirs(actuator, entries, count);
	free(entries);
	return failed;
}

unsigned nm_actuator_return_process(struct nm_actuator *actuator, uint32_t pid, uint64_t now_ns)
{
	return return_leases(actuator, pid, now_ns);
}

unsigned nm_actuator_return_all(struct nm_actuator *actuator, uint64_t now_ns)
{
	return return_leases(actuator, 0, now_ns);
}

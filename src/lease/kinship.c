/* SPDX-License-Identifier: MIT */
/*
 * The rule of descent, which proves that a thread inherited its affinity. Leases are sorted by
 * process and by cgroup; each process is read once, and its parents are followed once for all of
 * its threads. Therefore the cost for a thread depends neither on the number of leases nor on the
 * depth of the process tree.
 */
#include <string.h>
#include <unistd.h>

#include "descent.h"

#define MOST_ANCESTORS 64
#define GRACE_S 2

#define KEYS_OF_LEASE 2

enum key_kind { KEY_PROCESS, KEY_SESSION, KEY_CGROUP };

/* Has no padding, because memcmp(3) compares it. */
struct key {
	uint64_t kind;
	uint64_t id;  /* number of the process or session, or hash of the cgroup's path; 0: none */
	uint64_t uid; /* 0 for KEY_PROCESS */
	uint64_t target; /* index in nm_descent.targets */
};

struct nm_index_entry {
	struct key key;
	const struct nm_ledger_entry *terms;
	/* Of this lease and those with the same key given before it, the one that can be inherited
	 * for the longest time. */
	const struct nm_ledger_entry *longest;
};

/* ---- leases ---- */

uint64_t nm_descent_last_birth(const struct nm_ledger_entry *terms)
{
	const uint64_t grace_ticks = GRACE_S * (uint64_t)sysconf(_SC_CLK_TCK);
	if (!terms->ended_ticks || terms->ended_ticks > UINT64_MAX - grace_ticks)
		return UINT64_MAX;
	return terms->ended_ticks + grace_ticks;
}

bool nm_descent_born_under(const struct nm_ledger_entry *terms, uint64_t start_ticks)
{
	return start_ticks >= terms->given_ticks && start_ticks <= nm_descent_last_birth(terms);
}

static int compare_targets(const void *a, const void *b)
{
	const struct nm_ledger_entry *left = a;
	const struct nm_ledger_entry *right = b;
	return hwloc_bitmap_compare(left->target, right->target);
}

static int compare_entries(const void *a, const void *b)
{
	const struct nm_index_entry *left = a, *right = b;
	return memcmp(&left->key, &right->key, sizeof(left->key))
		       ?: NM_COMPARE(left->terms->given_ticks, right->terms->given_ticks);
}

/* The session stands for a cgroup that is not known, or that is the root. */
static struct key group_key(uint64_t cgroup, uint64_t session, uint64_t uid, uint64_t target)
{
	return (struct key){cgroup ? KEY_CGROUP : KEY_SESSION, cgroup ?: session, uid, target};
}

void nm_kinship_drop_leases(struct nm_descent *descent)
{
	free(descent->entries);
	free(descent->targets);
	free(descent->index);
	descent->entries = NULL;
	descent->targets = NULL;
	descent->index = NULL;
	descent->nr_targets = descent->nr_index = 0;
	if (descent->other) /* NULL if nm_descent_new() has failed */
		hwloc_bitmap_zero(descent->other);
}

void nm_kinship_take_leases(struct nm_descent *descent, const struct nm_ledger_entry *const *leases,
			    size_t count)
{
	nm_kinship_drop_leases(descent);
	struct nm_ledger_entry *entries = nm_must(calloc(count + 1, sizeof(*entries)));
	descent->entries = entries;
	descent->targets = nm_must(calloc(count + 1, sizeof(*descent->targets)));
	descent->index = nm_must(calloc(count * KEYS_OF_LEASE + 1, sizeof(*descent->index)));
	for (size_t i = 0; i < count; i++)
		entries[i] = *leases[i];
	qsort(entries, count, sizeof(*entries), compare_targets);
	for (size_t i = 0; i < count; i++) {
		const struct nm_ledger_entry *terms = &entries[i];
		if (i == 0 || compare_targets(terms, terms - 1) != 0)
			descent->targets[descent->nr_targets++] = terms->target;
		const uint64_t target = descent->nr_targets - 1;
		const struct key keys[KEYS_OF_LEASE] = {
			{KEY_PROCESS, terms->pid, 0, target},
			group_key(terms->cgroup, terms->session, terms->uid, target),
		};
		for (size_t k = 0; k < KEYS_OF_LEASE; k++)
			if (keys[k].id)
				descent->index[descent->nr_index++] = (struct nm_index_entry){
					.key = keys[k], .terms = terms, .longest = terms};
	}
	qsort(descent->index, descent->nr_index, sizeof(*descent->index), compare_entries);
	for (size_t i = 1; i < descent->nr_index; i++) {
		struct nm_index_entry *index = &descent->index[i];
		const struct nm_index_entry *before = index - 1;
		if (memcmp(&index->key, &before->key, sizeof(index->key)) == 0 &&
		    nm_descent_last_birth(before->longest) > nm_descent_last_birth(index->terms))
			index->longest = before->longest;
	}
}

/* Returns the lease that can be inherited for the longest time, among those with this key that were
 * given no later than until_ticks, or NULL. */
static const struct nm_ledger_entry *find_longest(struct nm_descent *descent, const struct key *key,
						  uint64_t until_ticks)
{
	const struct nm_ledger_entry until = {.given_ticks = until_ticks};
	const struct nm_index_entry wanted = {.key = *key, .terms = &until};
	size_t low = 0, high = descent->nr_index;
	descent->steps += NM_STEPS_LOOKUP;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_entries(&descent->index[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	const struct nm_index_entry *last = low > 0 ? &descent->index[low - 1] : NULL;
	return last && memcmp(&last->key, key, sizeof(*key)) == 0 ? last->longest : NULL;
}

/* ---- processes ---- */

static int read_process(struct nm_descent *descent, struct nm_descent_process *process)
{
	struct nm_platform *platform = descent->platform;
	nm_autofree char *cgroup = NULL;
	struct nm_proc_stat stat;
	descent->steps += 5 * NM_STEPS_CALL;
	int directory = nm_proc_open_stat(platform, process->pid, process->pid, &stat);
	if (directory < 0)
		return directory;
	(void)nm_proc_read_cgroup(platform, directory, &cgroup);
	int r = nm_proc_read_owner(platform, directory, &process->uid);
	platform->ops->close(platform, directory);
	if (r < 0)
		return r;
	process->ppid = stat.ppid;
	process->session = stat.session;
	process->start_ticks = stat.start_ticks;
	process->cgroup = nm_ledger_cgroup(cgroup);
	process->domain = nm_proc_domain(platform, process->uid, cgroup);
	process->adopts = strcmp(stat.comm, "systemd") == 0;
	return 0;
}

/* Returns whether orphans become its children: a service manager, or the init process of a PID
 * namespace. Only its status shows the latter. */
static bool adopts(struct nm_descent *descent, struct nm_descent_process *process)
{
	struct nm_proc_status status;
	if (process->adopts || process->is_asked)
		return process->adopts;
	process->is_asked = true;
	descent->steps += 3 * NM_STEPS_CALL;
	int directory = nm_proc_open_same(descent->platform, process->pid, process->pid,
					  process->start_ticks, NULL);
	if (directory < 0)
		return false;
	process->adopts = nm_proc_read_status_in(descent->platform, directory, process->domain,
						 &descent->costly, &status) == 0 &&
			  status.ns_pid == 1;
	descent->platform->ops->close(descent->platform, directory);
	return process->adopts;
}

static int add_process(struct nm_descent *descent, uint32_t pid)
{
	nm_autofree struct nm_descent_process *process = nm_must(calloc(1, sizeof(*process)));
	const size_t index = descent->nr_processes;
	NM_RESERVE(descent->processes, descent->processes_capacity, index);
	process->pid = pid;
	int r = read_process(descent, process);
	process->gone = r < 0;
	r = nm_descent_if_passing(r);
	if (r == 0)
		r = nm_tidmap_set(descent->process_of, pid, (uint32_t)index);
	if (r < 0)
		return r;
	descent->processes[descent->nr_processes++] = NM_TAKE(process);
	return 0;
}

struct nm_descent_process *nm_kinship_find_process(struct nm_descent *descent, uint32_t pid)
{
	descent->steps++;
	if (nm_tidmap_get(descent->process_of, pid) == NM_TIDMAP_NONE) {
		int r = add_process(descent, pid);
		if (r < 0) {
			descent->error = r;
			return NULL;
		}
	}
	struct nm_descent_process *process =
		descent->processes[nm_tidmap_get(descent->process_of, pid)];
	return process->gone ? NULL : process;
}

/* Returns whether this is the leased process, and not a later one with its number: a process is not
 * younger than its threads. */
static bool is_leased_process(const struct nm_ledger_entry *terms,
			      const struct nm_descent_process *process)
{
	return process && process->pid == terms->pid && process->start_ticks <= terms->start_ticks;
}

/* ---- creation ---- */

/* The parent, or NULL if it has exited: the number may belong to another process by now, which is
 * younger than the child. */
static struct nm_descent_process *find_parent(struct nm_descent *descent,
					      const struct nm_descent_process *child)
{
	struct nm_descent_process *parent =
		child->ppid > 1 ? nm_kinship_find_process(descent, child->ppid) : NULL;
	return parent && parent->start_ticks <= child->start_ticks ? parent : NULL;
}

/* Adds the lease with this key under which `child` was created, if there is one. `child` was
 * created by the leased process, or its line ends at a parent that is older than the lease. */
static void consider(struct nm_descent *descent, const struct nm_descent_process *child,
		     const struct nm_descent_process *parent, const struct key *key)
{
	struct nm_inheritable *inheritable = &descent->inheritable;
	const struct nm_ledger_entry *terms =
		key->id ? find_longest(descent, key, child->start_ticks) : NULL;
	if (!terms)
		return;
	if (key->kind == KEY_PROCESS ? !is_leased_process(terms, parent)
				     : parent && terms->given_ticks <= parent->start_ticks)
		return;
	if (!inheritable->nearest)
		inheritable->nearest = inheritable->longest = terms;
	if (nm_descent_last_birth(terms) > nm_descent_last_birth(inheritable->longest))
		inheritable->longest = terms;
}

/*
 * Follows the line of parents. One that reaches a leased process is its descent. One that ends at a
 * parent that has exited, or that adopts orphans, may come from a leased process that has exited,
 * too, if the user and the cgroup are those of the lease. A line that passes any other parent from
 * before the lease, such as a shell that ran numactl(8), finds no lease: the affinity is the
 * owner's choice.
 */
static void find_inheritable(struct nm_descent *descent, uint32_t pid, uint32_t target)
{
	if (descent->inheritable.pid == pid && descent->inheritable.target == target)
		return;
	descent->inheritable = (struct nm_inheritable){.pid = pid, .target = target};
	const struct nm_descent_process *process = nm_kinship_find_process(descent, pid);
	const struct nm_descent_process *child = process;
	struct nm_descent_process *parent;
	for (unsigned depth = 0; child && depth < MOST_ANCESTORS; depth++, child = parent) {
		parent = find_parent(descent, child);
		if (parent)
			consider(descent, child, parent,
				 &(struct key){KEY_PROCESS, parent->pid, 0, target});
		if (parent && !adopts(descent, parent))
			continue;
		const struct key group =
			group_key(process->cgroup, process->session, process->uid, target);
		consider(descent, child, parent, &group);
		return;
	}
}

static bool covers(const struct nm_ledger_entry *terms, uint64_t start_ticks)
{
	return terms && nm_descent_last_birth(terms) >= start_ticks;
}

const struct nm_ledger_entry *nm_kinship_find_terms(struct nm_descent *descent, uint32_t pid,
						    uint32_t tid, uint64_t start_ticks,
						    uint32_t target)
{
	const struct key key = {KEY_PROCESS, pid, 0, target};
	const struct nm_ledger_entry *beside =
		tid != pid ? find_longest(descent, &key, start_ticks) : NULL;
	if (covers(beside, start_ticks) &&
	    is_leased_process(beside, nm_kinship_find_process(descent, pid)))
		return beside;
	find_inheritable(descent, pid, target);
	if (covers(descent->inheritable.nearest, start_ticks))
		return descent->inheritable.nearest;
	return covers(descent->inheritable.longest, start_ticks) ? descent->inheritable.longest
								 : NULL;
}

/* SPDX-License-Identifier: MIT */
/* The window of a move: checked, written to its slot, narrowed, restored. */
#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "moves.h"

#define SLOW_FACTOR 100
#define RECORD_TICKS 2	   /* from the start of a task to its record */
#define SCHED_EXT_POLICY 7 /* SCHED_EXT of Linux 6.12 */

/* ---- one slot ---- */

void nm_moves_report(const struct nm_moves *moves, const struct nm_narrowing *terms, uint32_t pid,
		     uint32_t tid, uint64_t start_ticks, enum nm_move_event_kind kind, int error)
{
	const struct nm_descendant task = {.pid = pid, .tid = tid, .start_ticks = start_ticks};
	nm_progress_report(&moves->progress, terms, &task, kind, error);
}

static void report(const struct nm_moves *moves, const struct nm_slot *slot,
		   enum nm_move_event_kind kind, int error)
{
	const struct nm_narrowing *terms = &slot->terms;
	nm_moves_report(moves, terms, terms->pid, terms->tid, terms->start_ticks, kind, error);
}

uint64_t nm_moves_ticks(struct nm_moves *moves)
{
	const uint64_t tick_ns = NM_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t now_ns = moves->platform->ops->now_ns(moves->platform);
	if (!moves->clock_ticks || now_ns - moves->clock_ns > NM_NSEC_PER_SEC) {
		moves->clock_ticks = nm_proc_ticks_now(moves->platform);
		moves->clock_ns = now_ns;
	}
	return moves->clock_ticks ? moves->clock_ticks + (now_ns - moves->clock_ns) / tick_ns : 0;
}

uint64_t nm_moves_known(struct nm_moves *moves)
{
	uint64_t now_ticks = nm_moves_ticks(moves);
	return now_ticks > RECORD_TICKS ? now_ticks - RECORD_TICKS : 0;
}

void nm_slot_free(struct nm_moves *moves, struct nm_slot *slot)
{
	for (size_t i = 0; i < slot->nr_follows; i++)
		nm_follow_end(moves, &slot->follows[i]);
	(void)nm_slots_clear(moves->file, (size_t)(slot - moves->slots));
	nm_narrowing_clear(&slot->terms);
	moves->open -= slot->narrow && !slot->failed;
	moves->used--;
	struct nm_follow *follows = slot->follows;
	*slot = (struct nm_slot){.follows = follows, .capacity = slot->capacity};
}

static struct nm_slot *find_open(const struct nm_moves *moves, uint32_t tid, uint64_t start_ticks)
{
	for (size_t i = 0; moves->open > 0 && i < NM_MOVE_SLOTS; i++) {
		struct nm_slot *slot = &moves->slots[i];
		if (slot->narrow && slot->terms.tid == tid &&
		    slot->terms.start_ticks == start_ticks)
			return slot;
	}
	return NULL;
}

/* The affinity is no longer narrow, or belongs to its owner. */
static void close_window(struct nm_moves *moves, struct nm_slot *slot)
{
	moves->open -= !slot->failed;
	slot->narrow = slot->failed = false;
	slot->restored_round = moves->round;
	slot->restored_ticks = nm_moves_ticks(moves);
	for (size_t i = 0; i < slot->nr_follows; i++)
		if (slot->follows[i].tid == slot->terms.tid && !slot->follows[i].end_ticks)
			slot->follows[i].end_ticks = nm_moves_ticks(moves);
}

static void note_refusal(struct nm_moves *moves, struct nm_slot *slot, int error)
{
	if (slot->failed)
		return;
	slot->failed = true;
	moves->open--;
	report(moves, slot, NM_MOVE_FAILED, error);
}

void nm_slot_restore(struct nm_moves *moves, struct nm_slot *slot)
{
	const struct nm_narrowing *terms = &slot->terms;
	int r = nm_mask_restore(&moves->masks, terms, terms->pid, terms->tid, terms->start_ticks);
	bool gone = r == -ESRCH;
	if (gone) {
		r = nm_children_follow_exec(moves, slot);
		r = r == -ESRCH ? 0 : r;
	}
	if (r < 0) {
		note_refusal(moves, slot, r);
		return;
	}
	close_window(moves, slot);
	if (!gone && r == 0)
		report(moves, slot, NM_MOVE_FOREIGN, 0);
}

/* Returns whether the thread last ran on the CPUs of the narrowed affinity, or waits there. */
static bool is_there(struct nm_moves *moves, const struct nm_slot *slot)
{
	const struct nm_narrowing *terms = &slot->terms;
	struct nm_proc_stat stat;
	if (nm_proc_stat_of(moves->platform, terms->pid, terms->tid, &stat) < 0 ||
	    stat.start_ticks != terms->start_ticks || stat.processor < 0 ||
	    (unsigned)stat.processor >= moves->masks.topology->nr_cpus ||
	    !hwloc_bitmap_isset(terms->target, (unsigned)stat.processor))
		return false;
	int core = moves->masks.topology->cpus[stat.processor].core;
	nm_must_do(hwloc_bitmap_set(moves->given, (unsigned)stat.processor));
	if (core >= 0)
		nm_must_do(hwloc_bitmap_set(moves->given_cores, (unsigned)core));
	return true;
}

static void poll_slot(struct nm_moves *moves, struct nm_slot *slot, uint64_t now_ns)
{
	bool there = is_there(moves, slot);
	if (!there && now_ns < slot->end_ns)
		return;
	nm_slot_restore(moves, slot);
	moves->counts.arrived += there;
	moves->counts.missed += !there;
	if (!there && !slot->narrow)
		report(moves, slot, NM_MOVE_MISSED, 0);
}

void nm_moves_poll(struct nm_moves *moves, uint64_t now_ns)
{
	nm_cgroups_begin(moves->masks.cgroups, now_ns);
	for (size_t i = 0; moves->open > 0 && i < NM_MOVE_SLOTS; i++)
		if (moves->slots[i].narrow && !moves->slots[i].failed)
			poll_slot(moves, &moves->slots[i], now_ns);
}

/* ---- a step ---- */

/* A step in progress. */
struct attempt {
	const struct nm_step *step;
	struct nm_receipt_step *receipt;
	hwloc_bitmap_t before;
	int directory;
	bool there;	      /* already: nothing is to be done */
	struct nm_slot *slot; /* NULL: none yet */
};

static int refuse(struct attempt *attempt, int error, const char *what)
{
	attempt->receipt->error = error;
	attempt->receipt->what = what;
	return error;
}

static bool is_ordinary(const struct nm_proc_stat *stat)
{
	return !(stat->flags & NM_PROC_KTHREAD) && stat->policy != SCHED_FIFO &&
	       stat->policy != SCHED_RR && stat->policy != SCHED_DEADLINE &&
	       stat->policy != SCHED_EXT_POLICY;
}

static bool rests(const struct nm_moves *moves, uint32_t tid, uint64_t now_ns)
{
	uint32_t until = nm_tidmap_get(moves->resting, tid);
	return until != NM_TIDMAP_NONE && now_ns / NM_MOVE_TURN_NS < until;
}

/* The original affinity may contain offline CPUs, which sched_getaffinity(2) does not return. */
static bool is_as_known(const struct nm_moves *moves, const struct attempt *attempt)
{
	return hwloc_bitmap_isequal(attempt->before, attempt->step->original) ||
	       nm_is_part(attempt->before, attempt->step->original, moves->masks.topology->online);
}

/* The load that a thread meets on the CPU: that of the last interval, and of the threads that were
 * moved there since; half of it on a sibling. */
static double load_of(const struct nm_moves *moves, const double *busy_share, unsigned cpu)
{
	int core = moves->masks.topology->cpus[cpu].core;
	double busy = busy_share && busy_share[cpu] >= 0 ? busy_share[cpu] : 0;
	return busy + (hwloc_bitmap_isset(moves->given, cpu) ? 2 : 0) +
	       (core >= 0 && hwloc_bitmap_isset(moves->given_cores, (unsigned)core) ? 0.5 : 0);
}

#define SIMILAR 0.1

/* Selects the CPUs of the target that are about as free as the freest one. */
static hwloc_bitmap_t narrowed(const struct nm_moves *moves, const double *busy_share,
			       hwloc_const_bitmap_t target)
{
	hwloc_bitmap_t cpus = nm_must(hwloc_bitmap_alloc());
	const int nr_cpus = (int)moves->masks.topology->nr_cpus;
	double least = INFINITY;
	for (int pass = 0; pass < 2; pass++)
		for (int cpu = hwloc_bitmap_first(target); cpu >= 0 && cpu < nr_cpus;
		     cpu = hwloc_bitmap_next(target, cpu)) {
			double load = load_of(moves, busy_share, (unsigned)cpu);
			if (pass == 0)
				least = fmin(least, load);
			else if (load <= least + SIMILAR)
				nm_must_do(hwloc_bitmap_set(cpus, (unsigned)cpu));
		}
	return cpus;
}

/* Descent is proved by the owner's data and by the time; without them, nothing is narrowed. */
static int fill_terms(struct nm_moves *moves, const struct attempt *attempt,
		      const struct nm_proc_stat *stat, struct nm_narrowing *ret)
{
	const struct nm_step *step = attempt->step;
	nm_autofree char *cgroup = NULL;
	uint64_t now_ticks = nm_moves_ticks(moves);
	uint32_t uid = 0;
	int r = nm_proc_read_cgroup(moves->platform, attempt->directory, &cgroup);
	if (r == 0 || r == -ENODATA)
		r = nm_proc_read_owner(moves->platform, attempt->directory, &uid);
	if (r == 0 && !now_ticks)
		r = -ENODATA;
	if (r < 0)
		return r;
	*ret = (struct nm_narrowing){
		.tid = step->tid,
		.pid = step->pid,
		.start_ticks = step->start_ticks,
		.given_ticks = now_ticks,
		.session = stat->session,
		.uid = uid,
		.ran_ticks = stat->ran_ticks,
		.cgroup = nm_narrowing_cgroup(cgroup),
		.domain = nm_domain_of(uid, cgroup),
		.unrestricted = step->unrestricted,
	};
	return 0;
}

static struct nm_slot *find_free(const struct nm_moves *moves, uint64_t domain)
{
	struct nm_slot *found = NULL;
	struct nm_quota quota = {.limit = NM_MOVE_SLOTS};
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++) {
		struct nm_slot *slot = &moves->slots[i];
		if (slot->terms.tid)
			nm_quota_count(&quota, domain, slot->terms.domain, 1);
		else if (!found)
			found = slot;
	}
	return nm_quota_permits(&quota, domain) ? found : NULL;
}

/* Returns whether a task with this affinity could have inherited it in two moves, which would
 * restore different affinities. */
static bool is_ambiguous(const struct nm_moves *moves, const struct nm_narrowing *terms)
{
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++) {
		const struct nm_narrowing *other = &moves->slots[i].terms;
		if (other->tid && other->domain == terms->domain &&
		    hwloc_bitmap_isequal(other->target, terms->target) &&
		    !hwloc_bitmap_isequal(other->original, terms->original))
			return true;
	}
	return false;
}

static int take_slot(struct nm_moves *moves, struct attempt *attempt,
		     const struct nm_proc_stat *stat, uint64_t decision, const double *busy_share,
		     uint64_t now_ns)
{
	struct nm_narrowing terms;
	int r = fill_terms(moves, attempt, stat, &terms);
	if (r < 0)
		return refuse(attempt, r, "identity");
	struct nm_slot *slot = find_free(moves, terms.domain);
	if (!slot || nm_moves_rests(moves, terms.domain, now_ns))
		return refuse(attempt, -EAGAIN, "slot");
	terms.decision = decision;
	terms.original = nm_must(hwloc_bitmap_dup(attempt->step->original));
	terms.target = narrowed(moves, busy_share, attempt->step->target);
	r = is_ambiguous(moves, &terms)
		    ? -EAGAIN
		    : nm_slots_take(moves->file, (size_t)(slot - moves->slots), &terms);
	if (r < 0) {
		nm_narrowing_clear(&terms);
		return refuse(attempt, r, "slot");
	}
	*slot = (struct nm_slot){.terms = terms,
				 .narrow = true,
				 .end_ns = now_ns + NM_MOVE_WINDOW_NS,
				 .follows = slot->follows,
				 .capacity = slot->capacity};
	moves->used++;
	moves->open++;
	attempt->slot = slot;
	return 0;
}

static int prepare(struct nm_moves *moves, struct attempt *attempt, uint64_t decision,
		   const double *busy_share, uint64_t now_ns)
{
	const struct nm_step *step = attempt->step;
	struct nm_proc_stat stat;
	if (!moves->file)
		return refuse(attempt, -EROFS, "slot");
	if (moves->bar)
		return refuse(attempt, -EAGAIN, "scheduler");
	if (moves->lost || rests(moves, step->tid, now_ns) ||
	    find_open(moves, step->tid, step->start_ticks))
		return refuse(attempt, -EAGAIN, "rest");
	attempt->directory =
		nm_proc_open_same(moves->platform, step->pid, step->tid, step->start_ticks, &stat);
	if (attempt->directory < 0)
		return refuse(attempt, attempt->directory, "identity");
	if (!is_ordinary(&stat))
		return refuse(attempt, -EPERM, "scheduling policy");
	attempt->before = nm_must(hwloc_bitmap_alloc());
	int r = moves->platform->ops->affinity_get(moves->platform, (pid_t)step->tid,
						   attempt->before);
	if (r < 0)
		return refuse(attempt, r, "sched_getaffinity");
	if (!is_as_known(moves, attempt))
		return refuse(attempt, -ESTALE, "mask");
	attempt->there =
		stat.processor >= 0 && hwloc_bitmap_isset(step->target, (unsigned)stat.processor);
	if (attempt->there)
		return 0;
	return take_slot(moves, attempt, &stat, decision, busy_share, now_ns);
}

/* Writing the slot takes time. If the owner has changed the affinity meanwhile, that one stays. */
static int look_again(const struct nm_moves *moves, struct attempt *attempt)
{
	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	int r = moves->platform->ops->affinity_get(moves->platform, (pid_t)attempt->step->tid,
						   current);
	if (r < 0)
		return refuse(attempt, r, "sched_getaffinity");
	return hwloc_bitmap_isequal(current, attempt->before) ? 0
							      : refuse(attempt, -ESTALE, "mask");
}

/* The loop spends at most 1 % of its time in slow calls about one thread. */
static uint32_t slow_turns(uint64_t took_ns)
{
	const uint64_t turns = SLOW_FACTOR * took_ns / NM_MOVE_TURN_NS;
	return turns < NM_MOVE_SLOW_TURNS ? (uint32_t)turns : NM_MOVE_SLOW_TURNS;
}

/* Narrows the affinity. The call waits for a thread that runs to leave its CPU; if that takes long,
 * the thread rests. */
static int narrow(struct nm_moves *moves, struct attempt *attempt)
{
	struct nm_platform *platform = moves->platform;
	if (attempt->there) {
		attempt->receipt->applied = true;
		return 0;
	}
	const struct nm_narrowing *terms = &attempt->slot->terms;
	int r = look_again(moves, attempt);
	if (r < 0)
		return r;
	uint64_t began_ns = platform->ops->now_ns(platform);
	attempt->receipt->tried = true;
	r = nm_mask_set(&moves->masks, attempt->directory, terms->tid, terms->start_ticks,
			terms->target);
	uint64_t took_ns = platform->ops->now_ns(platform) - began_ns;
	if (took_ns > moves->counts.longest_ns)
		moves->counts.longest_ns = took_ns;
	if (took_ns > NM_MOVE_WINDOW_NS)
		nm_moves_rest_thread(moves, terms->tid, slow_turns(took_ns));
	(void)nm_follow_add(moves, attempt->slot, terms->pid, terms->tid, terms->start_ticks);
	if (r < 0)
		return refuse(attempt, r, "sched_setaffinity");
	attempt->receipt->applied = true;
	moves->counts.asked++;
	return 0;
}

static void finish(struct nm_moves *moves, struct attempt *attempt, bool applied, uint64_t now_ns)
{
	struct nm_slot *slot = attempt->slot;
	if (slot && applied)
		poll_slot(moves, slot, now_ns);
	else if (slot && attempt->receipt->tried)
		nm_slot_restore(moves, slot);
	else if (slot)
		nm_slot_free(moves, slot);
	hwloc_bitmap_free(attempt->before);
	if (attempt->directory >= 0)
		moves->platform->ops->close(moves->platform, attempt->directory);
}

static void run_decision(struct nm_moves *moves, const struct nm_decision *decision,
			 const double *busy_share, uint64_t now_ns, struct nm_receipt *receipt)
{
	struct attempt attempts[2] = {0};
	int r = 0;
	for (unsigned i = 0; i < decision->nr_steps; i++)
		attempts[i] = (struct attempt){.step = &decision->steps[i],
					       .receipt = &receipt->steps[i],
					       .directory = -1};
	for (unsigned i = 0; r == 0 && i < decision->nr_steps; i++)
		r = prepare(moves, &attempts[i], decision->id, busy_share, now_ns);
	for (unsigned i = 0; r == 0 && i < decision->nr_steps; i++)
		r = narrow(moves, &attempts[i]);
	receipt->applied = r == 0;
	for (unsigned i = 0; i < decision->nr_steps; i++)
		finish(moves, &attempts[i], r == 0, now_ns);
}

void nm_moves_run(struct nm_moves *moves, const struct nm_plan *plan, const double *busy_share,
		  uint64_t now_ns, struct nm_receipt *receipts)
{
	nm_cgroups_begin(moves->masks.cgroups, now_ns);
	for (size_t i = 0; i < plan->count; i++) {
		const struct nm_decision *decision = &plan->decisions[i];
		receipts[i] = (struct nm_receipt){.decision = decision->id,
						  .nr_steps = decision->nr_steps};
		run_decision(moves, decision, busy_share, now_ns, &receipts[i]);
	}
}

/* ---- for the task table ---- */

bool nm_moves_original(void *context, uint32_t tid, uint64_t start_ticks,
		       hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
		       bool *ret_unrestricted)
{
	const struct nm_slot *slot = find_open(context, tid, start_ticks);
	if (!slot || !hwloc_bitmap_isincluded(current, slot->terms.target))
		return false;
	*ret_original = slot->terms.original;
	*ret_unrestricted = slot->terms.unrestricted;
	return true;
}

bool nm_moves_is_moving(void *context, uint32_t tid, uint64_t start_ticks)
{
	return find_open(context, tid, start_ticks) != NULL;
}

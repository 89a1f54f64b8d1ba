/* SPDX-License-Identifier: MIT */
/* The life of the slots: taken over, updated in each interval, and ended. */
#include "moves.h"

#include <stdio.h>
#include <string.h>

#include "numa-migrd/file.h"

#define END_ROUNDS 2 /* intervals in whose moves tasks may have been created that are not known */

/* Takes over the slots that nm_moves_restore() left because it could not restore some affinities.
 */
static int take_over(struct nm_moves *moves, const char *boot_id)
{
	nm_auto(nm_slots_contents_clear) struct nm_slots_contents contents = {0};
	int r = nm_slots_read(moves->runtime_directory, boot_id, &contents);
	if (r < 0)
		return r;
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++) {
		struct nm_slot *slot = &moves->slots[i];
		if (!contents.terms[i].tid)
			continue;
		*slot = (struct nm_slot){
			.terms = contents.terms[i], .narrow = true, .failed = true, .lost = true};
		contents.terms[i] = (struct nm_narrowing){0};
		moves->used++;
	}
	return 0;
}

/* With a scheduler of sched_ext an affinity may be ignored, and in a kernel with PREEMPT_RT the
 * call may wait without limit. */
static void read_scheduler(struct nm_moves *moves)
{
	static const struct {
		const char *file, *value, *reason;
	} bars[] = {
		{"sys/kernel/sched_ext/state", "enabled", "a scheduler of sched_ext is active"},
		{"sys/kernel/realtime", "1", "the kernel is PREEMPT_RT"},
	};
	char text[32];
	moves->bar = NULL;
	for (size_t i = 0; i < NM_ARRAY_SIZE(bars) && !moves->bar; i++) {
		ssize_t length = moves->platform->ops->read_file(moves->platform, NM_ROOT,
								 bars[i].file, text, sizeof(text));
		if (length > 0 && strncmp(text, bars[i].value, strlen(bars[i].value)) == 0)
			moves->bar = bars[i].reason;
	}
}

const char *nm_moves_bar(const struct nm_moves *moves)
{
	return moves->bar;
}

int nm_moves_new(struct nm_platform *platform, const struct nm_topology *topology,
		 int runtime_directory, const char *boot_id, nm_move_event_fn on_event,
		 void *context, struct nm_moves **ret)
{
	nm_auto(nm_moves_freep) struct nm_moves *moves = nm_must(calloc(1, sizeof(*moves)));
	moves->platform = platform;
	moves->masks.platform = platform;
	moves->masks.topology = topology;
	moves->runtime_directory = runtime_directory;
	moves->progress = (struct nm_progress){
		.platform = platform, .on_event = on_event, .context = context};
	moves->turn_steps = NM_MOVE_TURN_STEPS;
	moves->slots = nm_must(calloc(NM_MOVE_SLOTS, sizeof(*moves->slots)));
	moves->masks.cgroups = nm_cgroups_new(platform);
	moves->followed = nm_tidmap_new();
	moves->resting = nm_tidmap_new();
	moves->given = nm_must(hwloc_bitmap_alloc());
	moves->given_cores = nm_must(hwloc_bitmap_alloc());
	moves->descent = nm_descent_new(&moves->masks);
	if (runtime_directory >= 0 || runtime_directory == NM_NOWHERE) {
		int r = nm_slots_open(runtime_directory, boot_id, &moves->file);
		if (r == 0 && runtime_directory >= 0)
			r = take_over(moves, boot_id);
		if (r < 0)
			return r;
	}
	read_scheduler(moves);
	*ret = NM_TAKE(moves);
	return 0;
}

void nm_moves_free(struct nm_moves *moves)
{
	if (!moves)
		return;
	if (moves->file && moves->used == 0)
		(void)nm_slots_remove(moves->runtime_directory);
	nm_slots_free(moves->file);
	for (size_t i = 0; moves->slots && i < NM_MOVE_SLOTS; i++) {
		nm_narrowing_clear(&moves->slots[i].terms);
		free(moves->slots[i].follows);
	}
	free(moves->slots);
	nm_descent_walk_clear(&moves->walk);
	nm_descent_free(moves->descent);
	nm_cgroups_free(moves->masks.cgroups);
	nm_tidmap_free(moves->followed);
	nm_tidmap_free(moves->resting);
	hwloc_bitmap_free(moves->given);
	hwloc_bitmap_free(moves->given_cores);
	free(moves);
}

void nm_moves_retarget(struct nm_moves *moves, const struct nm_topology *topology)
{
	moves->masks.topology = topology;
}

/* ---- rests ---- */

void nm_moves_rest_thread(struct nm_moves *moves, uint32_t tid, uint32_t turns)
{
	uint64_t now_ns = moves->platform->ops->now_ns(moves->platform);
	uint32_t until = (uint32_t)(now_ns / NM_MOVE_TURN_NS) + turns;
	uint32_t known = nm_tidmap_get(moves->resting, tid);
	if (known == NM_TIDMAP_NONE || known < until)
		(void)nm_tidmap_set(moves->resting, tid, until);
}

void nm_moves_rest(struct nm_moves *moves, uint64_t domain)
{
	uint64_t until_ns = moves->platform->ops->now_ns(moves->platform) + NM_MOVE_REST_NS;
	moves->rests[moves->next_rest].domain = domain;
	moves->rests[moves->next_rest].until_ns = until_ns;
	moves->next_rest = (moves->next_rest + 1) % NM_MOVE_REST_DOMAINS;
}

bool nm_moves_rests(const struct nm_moves *moves, uint64_t domain, uint64_t now_ns)
{
	for (size_t i = 0; i < NM_MOVE_REST_DOMAINS; i++)
		if (moves->rests[i].domain == domain && now_ns < moves->rests[i].until_ns)
			return true;
	return false;
}

/* ---- one interval ---- */

void nm_moves_records_lost(struct nm_moves *moves)
{
	moves->lost = true;
	nm_moves_records_begin(moves);
}

void nm_moves_records_begin(struct nm_moves *moves)
{
	for (size_t i = 0; moves->used > 0 && i < NM_MOVE_SLOTS; i++)
		if (moves->slots[i].terms.tid)
			moves->slots[i].lost = true;
}

static bool is_over(const struct nm_moves *moves, const struct nm_slot *slot)
{
	bool all_done = true;
	if (slot->narrow || slot->lost)
		return false;
	for (size_t i = 0; i < slot->nr_follows; i++) {
		if (slot->follows[i].refused)
			return false;
		all_done &= slot->follows[i].done;
	}
	return all_done || moves->round - slot->restored_round >= NM_MOVE_KEPT_ROUNDS;
}

static void update_slot(struct nm_moves *moves, struct nm_slot *slot, uint64_t known_ticks)
{
	if (!slot->lost && slot->terms.known_ticks < known_ticks)
		slot->terms.known_ticks = known_ticks;
	if (slot->failed)
		nm_slot_restore(moves, slot);
	nm_children_retry(moves, slot);
	if (is_over(moves, slot))
		nm_slot_free(moves, slot);
}

static void end_rests(struct nm_moves *moves, uint64_t now_ns)
{
	uint64_t now = now_ns / NM_MOVE_TURN_NS;
	for (uint32_t tid = 0; (tid = nm_tidmap_next(moves->resting, tid)) != NM_TIDMAP_NONE; tid++)
		if (now >= nm_tidmap_get(moves->resting, tid))
			nm_tidmap_remove(moves->resting, tid);
}

void nm_moves_update(struct nm_moves *moves, uint64_t now_ns)
{
	/* The rings were drained when the interval began. */
	uint64_t known_ticks = moves->lost ? 0 : moves->drained_ticks;
	moves->drained_ticks = nm_moves_known(moves);
	moves->round++;
	moves->lost = false;
	hwloc_bitmap_zero(moves->given);
	hwloc_bitmap_zero(moves->given_cores);
	end_rests(moves, now_ns);
	read_scheduler(moves);
	if (moves->used == 0)
		return;
	nm_cgroups_begin(moves->masks.cgroups, now_ns);
	(void)nm_children_walk(moves, moves->turn_steps);
	for (size_t i = 0; i < NM_MOVE_SLOTS; i++)
		if (moves->slots[i].terms.tid)
			update_slot(moves, &moves->slots[i], known_ticks);
}

size_t nm_moves_open(const struct nm_moves *moves)
{
	return moves->open;
}

struct nm_move_counts nm_moves_counts(const struct nm_moves *moves)
{
	return moves->counts;
}

/* ---- the end ---- */

unsigned nm_moves_end(struct nm_moves *moves)
{
	unsigned failed = 0;
	moves->progress.reported_ns = 0;
	for (size_t i = 0; moves->used > 0 && i < NM_MOVE_SLOTS; i++) {
		struct nm_slot *slot = &moves->slots[i];
		if (!slot->terms.tid)
			continue;
		slot->lost |= slot->narrow || moves->round - slot->restored_round < END_ROUNDS;
		if (slot->narrow)
			nm_slot_restore(moves, slot);
		failed += slot->narrow;
		nm_progress_note(&moves->progress);
	}
	int r = moves->used > 0 ? nm_children_walk(moves, 0) : 0;
	failed += r < 0 ? 1U : (unsigned)r;
	/* `--restore` finds a task that is still being created. */
	for (size_t i = 0; failed == 0 && i < NM_MOVE_SLOTS; i++)
		if (moves->slots[i].terms.tid && !nm_children_may_appear(moves, &moves->slots[i]))
			nm_slot_free(moves, &moves->slots[i]);
	return failed;
}

/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/escape.h"
#include "replay.h"

#define SHOWN_MOST 40U
#define CLEAN_BYTES (4 * NM_COMM_BYTES + 4)

int nm_replay_note(struct nm_replay_moves *moves, const struct nm_decision *decision,
		   uint64_t interval)
{
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		int r = nm_reserve((void **)&moves->items, &moves->room, moves->count,
				   sizeof(*moves->items));
		if (r < 0)
			return r;
		struct nm_replay_move *move = &moves->items[moves->count++];
		*move = (struct nm_replay_move){
			.interval = interval,
			.decision = decision->id,
			.tid = step->tid,
			.node_from = step->node_from,
			.node_to = step->node_to,
			.kind = decision->kind,
		};
		memcpy(move->comm, step->comm, sizeof(move->comm));
	}
	return 0;
}

static size_t end_of(const struct nm_replay_moves *moves, size_t from)
{
	size_t to = from;
	while (to < moves->count && moves->items[to].interval == moves->items[from].interval)
		to++;
	return to;
}

static bool has(const struct nm_replay_moves *moves, size_t from, size_t to,
		const struct nm_replay_move *wanted)
{
	for (size_t i = from; i < to; i++)
		if (moves->items[i].tid == wanted->tid &&
		    moves->items[i].node_to == wanted->node_to &&
		    moves->items[i].kind == wanted->kind)
			return true;
	return false;
}

static const char *kind_name(enum nm_decision_kind kind)
{
	return kind == NM_DECISION_MIGRATE ? "migrate"
	       : kind == NM_DECISION_SWAP  ? "swap"
					   : "rollback";
}

/* A name should be escaped already, but for that there is only the recording's word: backslashes
 * stay. */
static void clean_name(const char *name, char ret[CLEAN_BYTES])
{
	const char *end = name + strnlen(name, NM_COMM_BYTES);
	size_t used = 0;
	while (name < end) {
		size_t length = strcspn(name, "\\");
		used += nm_escape(ret + used, CLEAN_BYTES - used, name, length);
		name += length;
		if (name < end)
			ret[used++] = *name++;
	}
	ret[used] = '\0';
}

struct comparison {
	uint64_t same, only_recorded, only_replayed, shown;
	bool all;
	FILE *out;
};

static void tell_move(const struct comparison *comparison, const char *who,
		      const struct nm_replay_move *move)
{
	char name[CLEAN_BYTES];
	clean_name(move->comm, name);
	(void)fprintf(comparison->out,
		      "interval %" PRIu64 ": only %s: %s %s[%" PRIu32 "] from node %d to node %d\n",
		      move->interval, who, kind_name(move->kind), name, move->tid, move->node_from,
		      move->node_to);
}

/* Those of one list that the other lacks. */
static uint64_t tell_missing(struct comparison *comparison, const char *who,
			     const struct nm_replay_moves *moves, size_t from, size_t to,
			     const struct nm_replay_moves *other, size_t other_from,
			     size_t other_to)
{
	uint64_t missing = 0;
	for (size_t i = from; i < to; i++) {
		const struct nm_replay_move *move = &moves->items[i];
		if (has(other, other_from, other_to, move))
			continue;
		missing++;
		if (comparison->all || comparison->shown++ < SHOWN_MOST)
			tell_move(comparison, who, move);
	}
	return missing;
}

static void compare_interval(struct comparison *comparison, const struct nm_replay_moves *recorded,
			     size_t from, size_t to, const struct nm_replay_moves *replayed,
			     size_t replayed_from, size_t replayed_to)
{
	uint64_t missing = tell_missing(comparison, "recorded", recorded, from, to, replayed,
					replayed_from, replayed_to);
	comparison->only_recorded += missing;
	comparison->same += to - from - missing;
	comparison->only_replayed += tell_missing(comparison, "replayed", replayed, replayed_from,
						  replayed_to, recorded, from, to);
}

static void count_kinds(const struct nm_replay_moves *moves, const char *who, FILE *out)
{
	uint64_t counts[NM_DECISION_ROLLBACK + 1] = {0};
	for (size_t i = 0; i < moves->count; i++)
		counts[moves->items[i].kind]++;
	(void)fprintf(out,
		      "%s: %zu threads sent (%" PRIu64 " moved, %" PRIu64 " swapped, %" PRIu64
		      " rolled back)\n",
		      who, moves->count, counts[NM_DECISION_MIGRATE], counts[NM_DECISION_SWAP],
		      counts[NM_DECISION_ROLLBACK]);
}

bool nm_replay_compare(const struct nm_replay_moves *recorded,
		       const struct nm_replay_moves *replayed, uint64_t intervals, bool all,
		       FILE *out)
{
	struct comparison comparison = {.all = all, .out = out};
	size_t i = 0, k = 0;
	while (i < recorded->count || k < replayed->count) {
		uint64_t one = i < recorded->count ? recorded->items[i].interval : UINT64_MAX;
		uint64_t other = k < replayed->count ? replayed->items[k].interval : UINT64_MAX;
		size_t to = one <= other ? end_of(recorded, i) : i;
		size_t replayed_to = other <= one ? end_of(replayed, k) : k;
		compare_interval(&comparison, recorded, i, to, replayed, k, replayed_to);
		i = to;
		k = replayed_to;
	}
	if (!all && comparison.shown > SHOWN_MOST)
		(void)fprintf(out, "... and %" PRIu64 " more (--all shows them)\n",
			      comparison.shown - SHOWN_MOST);
	count_kinds(recorded, "recorded", out);
	count_kinds(replayed, "replayed", out);
	(void)fprintf(out,
		      "%" PRIu64 " intervals: %" PRIu64 " of these were the same, %" PRIu64
		      " only recorded, %" PRIu64 " only replayed\n",
		      intervals, comparison.same, comparison.only_recorded,
		      comparison.only_replayed);
	return comparison.only_recorded == 0 && comparison.only_replayed == 0;
}

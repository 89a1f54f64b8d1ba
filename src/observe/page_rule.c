/* SPDX-License-Identifier: MIT */
/*
 * Determines when a page should move (kMAF, section 3.3, equation 6), and prevents repeated moves.
 */
#include <math.h>

#include "bucket.h"

/* A page is no longer moved after it has moved back and forth twice. The first time ends with one
 * reversal, the second adds two. */
#define REVERSALS_MOST 3U

static uint16_t whole_seconds(double seconds)
{
	return (uint16_t)ceil(seconds);
}

double nm_evidence_over(double other)
{
	const double sigmas = NM_EVIDENCE_SIGMAS;

	return other + sigmas * sigmas / 2 + sigmas * sqrt(sigmas * sigmas / 4 + 2 * other);
}

/* Without a minimum number of accesses, equation 6 alone decides, as published. */
static double needed_over(const struct nm_config *config, unsigned second)
{
	double published = config->rules.page_factor * second + 1;

	return config->rules.page_min_accesses > 0 ? fmax(published, nm_evidence_over(second))
						   : published;
}

void nm_rule_set(struct nm_page_rules *rules, const struct nm_config *config)
{
	rules->max_tracked = config->rules.max_tracked;
	for (unsigned second = 0; second < NM_ARRAY_SIZE(rules->needed); second++)
		rules->needed[second] = (uint16_t)needed_over(config, second);
	rules->min_accesses = (uint32_t)config->rules.page_min_accesses;
	rules->cooldown_s = whole_seconds(config->rules.page_cooldown_s);
	rules->decays = config->rules.page_decay_s > 0;
	rules->decay_s = rules->decays ? whole_seconds(config->rules.page_decay_s) : UINT16_MAX;
	rules->window_s = (uint8_t)config->rules.sharing_window_s;
}

static bool may_move(const struct nm_pages *pages, struct nm_slot slot, uint32_t now_s)
{
	struct nm_bucket *bucket = slot.bucket;
	uint8_t *state = &bucket->state[slot.way];

	if (*state & (NM_STATE_PENDING | NM_STATE_ALONE) || !bucket->home[slot.way] ||
	    pages->owners[nm_key_owner(bucket->key[slot.way])].held)
		return false;
	if (!(*state & NM_STATE_BARRED))
		return true;
	if ((int16_t)(bucket->barred[slot.way] - (uint16_t)now_s) > 0)
		return false;
	*state &= (uint8_t)~NM_STATE_BARRED;
	return true;
}

int nm_rule_target(const struct nm_pages *pages, struct nm_slot slot, uint32_t now_s)
{
	const uint8_t *vector = nm_slot_vector(pages, slot);
	unsigned most = 0, second = 0, node = 0;
	uint32_t total = 0;

	if (!may_move(pages, slot, now_s))
		return -1;
	unsigned home = slot.bucket->home[slot.way] - 1U;
	for (unsigned k = 0; k < pages->nr_nodes; k++) {
		unsigned count = vector[k], lesser = count < most ? count : most;
		total += count;
		second = lesser > second ? lesser : second;
		node = count > most ? k : node;
		most = count > most ? count : most;
	}
	if (most <= pages->rules.needed[second] || total < pages->rules.min_accesses ||
	    node == home || (home < pages->nr_nodes && node == pages->replacement_node[home]))
		return -1;
	return (int)node;
}

static void count_turning_back(struct nm_pages *pages, struct nm_slot slot)
{
	uint8_t *state = &slot.bucket->state[slot.way];

	if ((*state & NM_STATE_REVERSALS) != NM_STATE_REVERSALS)
		*state = (uint8_t)(*state + NM_STATE_REVERSAL);
	unsigned reversals = (unsigned)(*state & NM_STATE_REVERSALS) / NM_STATE_REVERSAL;
	if (reversals < REVERSALS_MOST || *state & NM_STATE_ALONE)
		return;
	*state |= NM_STATE_ALONE;
	pages->counts.ping_pong++;
}

void nm_rule_moved(struct nm_pages *pages, struct nm_slot slot, unsigned node)
{
	struct nm_bucket *bucket = slot.bucket;
	uint8_t *vector = nm_slot_vector(pages, slot);
	uint16_t home = bucket->home[slot.way];

	for (unsigned k = 0; k < pages->nr_nodes; k++)
		vector[k] >>= 1;
	if (bucket->previous[slot.way] == node + 1)
		count_turning_back(pages, slot);
	bucket->previous[slot.way] = home;
	bucket->home[slot.way] = (uint16_t)(node + 1);
}

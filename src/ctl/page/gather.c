/* SPDX-License-Identifier: MIT */
/* Second pass over a recording: collects values of the selected threads and processes. */
#include <math.h>
#include <string.h>

#include "picture.h"

#define CONFIG_BYTES_MOST 65536U
#define TEXT_BYTES_MOST 1000U

static int keep_text(const char *text, size_t most, char **ret)
{
	char *copy = strndup(text, most);
	if (!copy)
		return -ENOMEM;
	free(*ret);
	*ret = copy;
	return 0;
}

static int see_start(struct nm_picture *picture, const struct nm_recorded_start *start)
{
	picture->has_start = true;
	picture->start = *start;
	picture->start.config = picture->start.config_name = NULL;
	int r = keep_text(start->config_name ? start->config_name : "", TEXT_BYTES_MOST,
			  &picture->config_name);
	if (r == 0)
		r = keep_text(start->config ? start->config : "", CONFIG_BYTES_MOST,
			      &picture->config);
	return r;
}

/* A recording begins before the source is opened. */
static int see_source(struct nm_picture *picture, const struct nm_recorded_source *source)
{
	if (!source->open || picture->source)
		return 0;
	return keep_text(source->status.name, sizeof(source->status.name), &picture->source);
}

static void see_topology(struct nm_picture *picture, const struct nm_topology *topology)
{
	picture->nr_nodes = topology->nr_nodes;
	picture->nr_cpus = (unsigned)hwloc_bitmap_weight(topology->online);
	picture->memory_bytes = 0;
	for (unsigned k = 0; k < topology->nr_nodes; k++)
		picture->memory_bytes += topology->nodes[k].memory_bytes;
}

/* ---- time ---- */

static unsigned bin_at(const struct nm_picture *picture, double at_s)
{
	double share = picture->span_s > 0 ? at_s / picture->span_s : 0;
	return (unsigned)fmin(fmax(share, 0) * NM_PICTURE_BINS, NM_PICTURE_BINS - 1);
}

static void see_interval(struct nm_picture *picture, const struct nm_recorded_interval *about)
{
	uint64_t since_ns = about->time_ns > picture->census->first_ns
				    ? about->time_ns - picture->census->first_ns
				    : 0;
	picture->now_s = (double)since_ns / 1e9;
	picture->length_s = nm_census_seconds(about);
	/* The end belongs to the next bin. */
	double before_s = picture->now_s * (1 - 1e-9);
	picture->first_bin = bin_at(picture, picture->now_s - picture->length_s);
	picture->last_bin = bin_at(picture, before_s);
	if (picture->first_bin > picture->last_bin)
		picture->first_bin = picture->last_bin;
	if (!isfinite(about->local_share))
		return;
	for (unsigned bin = picture->first_bin; bin <= picture->last_bin; bin++) {
		picture->overall[bin].sum += fmin(fmax(about->local_share, 0), 1);
		picture->overall[bin].weight += 1;
	}
}

/* ---- threads ---- */

static void see_track(struct nm_picture *picture, const struct nm_recorded_thread *thread)
{
	int at = nm_picked_index(&picture->picked[NM_PICKED_TRACKS], thread->tid, thread->pid);
	if (at < 0 || thread->main_node < 0 || thread->main_node >= UINT16_MAX)
		return;
	uint16_t *track = &picture->tracks[(size_t)at * NM_PICTURE_BINS];
	for (unsigned bin = picture->first_bin; bin <= picture->last_bin; bin++)
		track[bin] = (uint16_t)(thread->main_node + 1);
}

static void see_line(struct nm_picture *picture, const struct nm_recorded_thread *thread)
{
	int at = nm_picked_index(&picture->picked[NM_PICKED_LINES], thread->pid, thread->pid);
	double accesses = nm_census_sane(thread->access_total);
	if (at < 0 || !isfinite(thread->local_share) || !(accesses > 0))
		return;
	struct nm_mean *line = &picture->lines[(size_t)at * NM_PICTURE_BINS];
	for (unsigned bin = picture->first_bin; bin <= picture->last_bin; bin++) {
		line[bin].sum += fmin(fmax(thread->local_share, 0), 1) * accesses;
		line[bin].weight += accesses;
	}
}

static void see_threads(struct nm_picture *picture, const struct nm_recorded *record)
{
	for (size_t i = 0; i < record->threads.count; i++) {
		see_track(picture, &record->threads.items[i]);
		see_line(picture, &record->threads.items[i]);
	}
}

/* ---- decisions ---- */

/* Ids are ascending; decisions that violate this are omitted. */
static int add_decision(struct nm_picture *picture, const struct nm_shown_decision *shown,
			uint64_t *skip)
{
	if (*skip > 0) {
		(*skip)--;
		return 0;
	}
	if (picture->nr_decisions > 0 &&
	    picture->decisions[picture->nr_decisions - 1].id >= shown->id)
		return 0;
	int r = NM_RESERVE(picture->decisions, picture->room_decisions, picture->nr_decisions);
	if (r < 0)
		return r;
	picture->decisions[picture->nr_decisions] = *shown;
	picture->decisions[picture->nr_decisions].at_s = picture->now_s;
	picture->decisions[picture->nr_decisions++].state = NM_SHOWN_OPEN;
	return 0;
}

static int see_decision(struct nm_picture *picture, const struct nm_decision *decision,
			uint64_t *skip)
{
	struct nm_shown_decision shown = {
		.id = decision->id,
		.kind = decision->kind,
	};
	if (nm_decision_is_to_home(decision))
		return 0;
	for (unsigned i = 0; i < decision->nr_steps && i < NM_ARRAY_SIZE(shown.tids); i++) {
		shown.tids[i] = decision->steps[i].tid;
		shown.pids[i] = decision->steps[i].pid;
		shown.from[i] = decision->steps[i].node_from;
		shown.to[i] = decision->steps[i].node_to;
		if (decision->steps[i].tid)
			shown.nr_threads++;
	}
	return add_decision(picture, &shown, skip);
}

static void see_state(const struct nm_picture *picture, uint64_t id, unsigned state)
{
	struct nm_shown_decision *shown = nm_picture_decision(picture, id);
	if (shown)
		shown->state = (uint8_t)state;
}

/* A home remains one if a thread could not follow. */
static void see_receipt(const struct nm_picture *picture, const struct nm_receipt *receipt)
{
	struct nm_shown_decision *shown = nm_picture_decision(picture, receipt->decision);
	if (shown && !receipt->applied && shown->kind != NM_DECISION_HOME)
		shown->state = NM_SHOWN_NOT_DONE;
}

/* The first entry is the decision, and the first one after the verdict is that; others are events
 * of leases. */
static int see_entry(struct nm_picture *picture, const struct nm_recorded_entry *entry)
{
	uint64_t reported_from =
		picture->census->decisions > NM_PICTURE_TOLD + picture->skipped_decisions
			? picture->census->decisions - NM_PICTURE_TOLD - picture->skipped_decisions
			: 0;
	struct nm_shown_decision *shown =
		entry->decision ? nm_picture_decision(picture, entry->decision) : NULL;
	if (!shown || !entry->text || (size_t)(shown - picture->decisions) < reported_from)
		return 0;
	char **text = shown->state < NM_SHOWN_OPEN ? &shown->judged : &shown->said;
	return *text ? 0 : keep_text(entry->text, TEXT_BYTES_MOST, text);
}

static int see(struct nm_picture *picture, const struct nm_recorded *record, uint64_t *skip)
{
	switch (record->kind) {
	case NM_RECORDED_START:
		return see_start(picture, &record->start);
	case NM_RECORDED_SOURCE:
		return see_source(picture, &record->source);
	case NM_RECORDED_TOPOLOGY:
		see_topology(picture, record->topology);
		return 0;
	case NM_RECORDED_INTERVAL:
		see_interval(picture, &record->about);
		return 0;
	case NM_RECORDED_THREADS:
		see_threads(picture, record);
		return 0;
	case NM_RECORDED_VERDICT:
		see_state(picture, record->verdict.decision, record->verdict.kind);
		picture->pages_moved += record->verdict.results.moved;
		return 0;
	case NM_RECORDED_DECISION:
		return see_decision(picture, &record->decision, skip);
	case NM_RECORDED_RECEIPT:
		see_receipt(picture, &record->receipt);
		return 0;
	case NM_RECORDED_ENTRY:
		return see_entry(picture, &record->entry);
	case NM_RECORDED_END:
		return keep_text(record->end ? record->end : "", TEXT_BYTES_MOST, &picture->end);
	default:
		return 0;
	}
}

int nm_picture_gather(struct nm_picture *picture, struct nm_recording *recording)
{
	struct nm_recorded record;
	uint64_t skip = picture->skipped_decisions;
	const uint32_t inputs =
		1U << NM_RECORDED_CALL | 1U << NM_RECORDED_ANSWER | 1U << NM_RECORDED_SAMPLES;
	int r = 0;
	nm_recording_rewind(recording);
	nm_recording_only(recording, ~inputs);
	while (r == 0 && (r = nm_recording_next(recording, &record)) > 0)
		r = see(picture, &record, &skip);
	picture->torn = nm_recording_torn(recording);
	for (size_t i = 0; i < picture->nr_decisions; i++)
		picture->states[picture->decisions[i].state]++;
	return r;
}

/* SPDX-License-Identifier: MIT */
/* Replaces the rings by the recorded samples. */
#include <stdlib.h>
#include <string.h>

#include "replay.h"

struct nm_source {
	struct nm_player *player;
	struct nm_source_status status;
	double *taken_per_seen;
	unsigned nr_cpus;
};

static int copy_status(struct nm_source *source, const struct nm_recorded_source *recorded)
{
	source->status = recorded->status;
	source->nr_cpus = 0;
	if (recorded->nr_cpus == 0)
		return 0;
	double *taken = reallocarray(source->taken_per_seen, recorded->nr_cpus, sizeof(*taken));
	if (!taken)
		return -ENOMEM;
	memcpy(taken, recorded->taken_per_seen, recorded->nr_cpus * sizeof(*taken));
	source->taken_per_seen = taken;
	source->nr_cpus = recorded->nr_cpus;
	return 0;
}

/* Updates the status from the recording. */
static void refresh(struct nm_source *source)
{
	const struct nm_recorded *record = nm_player_peek(source->player);
	if (!record || record->kind != NM_RECORDED_SOURCE)
		return;
	record = nm_player_take(source->player, NM_RECORDED_SOURCE, "the source");
	if (record && copy_status(source, &record->source) < 0)
		nm_player_stop(source->player, "out of memory");
}

int nm_source_open(struct nm_platform *platform, const struct nm_topology *topology,
		   const struct nm_config *config, char *error, size_t error_size,
		   struct nm_source **ret)
{
	(void)topology, (void)config, (void)error, (void)error_size;
	struct nm_player *player = nm_player_of(platform);
	const struct nm_recorded *record =
		nm_player_take(player, NM_RECORDED_SOURCE, "the opening of the source");
	if (!record || !record->source.open)
		return -ENODEV;
	struct nm_source *source = calloc(1, sizeof(*source));
	if (!source)
		return -ENOMEM;
	source->player = player;
	int r = copy_status(source, &record->source);
	if (r < 0) {
		free(source);
		return r;
	}
	*ret = source;
	return 0;
}

void nm_source_free(struct nm_source *source)
{
	if (!source)
		return;
	free(source->taken_per_seen);
	free(source);
}

int nm_source_fd(const struct nm_source *source)
{
	(void)source;
	return -1;
}

void nm_source_flush(struct nm_source *source)
{
	(void)source;
}

size_t nm_source_drain(struct nm_source *source, const struct nm_sample_sink *sink)
{
	const struct nm_recorded *record =
		nm_player_take(source->player, NM_RECORDED_SAMPLES, "emptying the rings");
	if (!record)
		return 0;
	const struct nm_recorded_samples *samples = &record->samples;
	for (size_t i = 0; i < samples->nr_samples; i++) {
		struct nm_sample sample = samples->samples[i];
		sink->on_sample(sink->context, &sample);
	}
	for (size_t i = 0; i < samples->nr_events; i++)
		sink->on_task(sink->context, &samples->events[i]);
	source->player->samples += samples->nr_samples;
	return samples->nr_samples + samples->nr_events;
}

int nm_source_retarget(struct nm_source *source, const struct nm_topology *topology)
{
	(void)source, (void)topology;
	return 0;
}

void nm_source_follow_load(struct nm_source *source, const double *busy_share, unsigned nr_cpus)
{
	(void)source, (void)busy_share, (void)nr_cpus;
}

bool nm_source_control_cost(struct nm_source *source, double cost_share)
{
	(void)source, (void)cost_share;
	return false;
}

void nm_source_thin_runs(struct nm_source *source, bool thin)
{
	(void)source, (void)thin;
}

void nm_source_thin_faults(struct nm_source *source, bool thin)
{
	(void)source, (void)thin;
}

bool nm_source_is_held_back(const struct nm_source *source)
{
	(void)source;
	return false;
}

const struct nm_source_status *nm_source_status(struct nm_source *source)
{
	refresh(source);
	return &source->status;
}

const struct nm_source_problem *nm_source_news(struct nm_source *source, size_t *ret_count)
{
	(void)source;
	*ret_count = 0;
	return NULL;
}

const double *nm_source_taken_per_seen(struct nm_source *source, unsigned *ret_nr_cpus)
{
	refresh(source);
	*ret_nr_cpus = source->nr_cpus;
	return source->nr_cpus ? source->taken_per_seen : NULL;
}

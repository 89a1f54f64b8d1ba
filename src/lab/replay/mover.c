/* SPDX-License-Identifier: MIT */
/* Replaces the mover by the recorded results. */
#include <string.h>

#include "numa-migrd/recording.h"
#include "replay.h"

enum { WAITING_MAX = 4096 };

struct nm_mover {
	struct nm_player *player;
	struct nm_page_batch *waiting[WAITING_MAX];
	size_t nr_waiting;
};

/* Returns NULL if the replay is over. */
static const struct nm_recorded_answer *next_answer_of(struct nm_mover *mover, const char *function)
{
	return nm_player_answer(mover->player, function, 0, "");
}

int nm_mover_new(struct nm_platform *platform, const struct nm_topology *topology,
		 const struct nm_config *config, struct nm_mover **ret)
{
	(void)topology, (void)config;
	struct nm_mover *mover = calloc(1, sizeof(*mover));
	if (!mover)
		return -ENOMEM;
	mover->player = nm_player_of(platform);
	*ret = mover;
	return 0;
}

uint64_t nm_mover_work(struct nm_mover *mover)
{
	(void)mover;
	return UINT64_MAX;
}

void nm_mover_free(struct nm_mover *mover)
{
	if (!mover)
		return;
	for (size_t i = 0; i < mover->nr_waiting; i++)
		nm_page_batch_free(mover->waiting[i]);
	free(mover);
}

void nm_mover_configure(struct nm_mover *mover, const struct nm_topology *topology,
			const struct nm_config *config)
{
	(void)mover, (void)topology, (void)config;
}

bool nm_mover_is_barred(struct nm_mover *mover)
{
	const struct nm_recorded_answer *answer = next_answer_of(mover, "mover_is_barred");
	return answer && answer->result;
}

int nm_mover_submit(struct nm_mover *mover, struct nm_page_batch *batch)
{
	const struct nm_recorded_answer *answer = next_answer_of(mover, "mover_submit");
	if (answer && answer->result < 0)
		return (int)answer->result;
	if (mover->nr_waiting == WAITING_MAX)
		return -EAGAIN;
	mover->waiting[mover->nr_waiting++] = batch;
	return 0;
}

static struct nm_page_batch *pull_batch(struct nm_mover *mover, size_t index)
{
	struct nm_page_batch *batch = mover->waiting[index];
	memmove(mover->waiting + index, mover->waiting + index + 1,
		(--mover->nr_waiting - index) * sizeof(mover->waiting[0]));
	return batch;
}

struct nm_page_batch *nm_mover_collect(struct nm_mover *mover, bool bulk)
{
	(void)bulk;
	uint64_t decision;
	size_t i = 0;
	const struct nm_recorded_answer *answer = next_answer_of(mover, "mover_collect");
	if (!answer || answer->result == 0)
		return NULL;
	if (nm_batch_decision(answer->bytes, answer->length, &decision) < 0)
		decision = 0;
	while (i < mover->nr_waiting && mover->waiting[i]->decision != decision)
		i++;
	if (i == mover->nr_waiting ||
	    nm_batch_get(answer->bytes, answer->length, mover->waiting[i]) < 0) {
		nm_player_stop(mover->player, "a batch of pages in the recording is damaged");
		return NULL;
	}
	return pull_batch(mover, i);
}

/* The batch is returned when the recording contains it. */
void nm_mover_drop(struct nm_mover *mover, uint32_t pid, bool bulk)
{
	(void)mover, (void)pid, (void)bulk;
}

void nm_mover_discard(struct nm_mover *mover, bool bulk)
{
	for (size_t i = mover->nr_waiting; i > 0; i--)
		if (mover->waiting[i - 1]->bulk == bulk)
			nm_page_batch_free(pull_batch(mover, i - 1));
}

size_t nm_mover_room(struct nm_mover *mover, uint64_t now_ns)
{
	(void)now_ns;
	const struct nm_recorded_answer *answer = next_answer_of(mover, "mover_room");
	return answer ? (size_t)answer->result : 0;
}

uint64_t nm_mover_room_bytes(struct nm_mover *mover, uint64_t now_ns)
{
	(void)now_ns;
	const struct nm_recorded_answer *answer = next_answer_of(mover, "mover_room_bytes");
	return answer ? (uint64_t)answer->result : 0;
}

int nm_mover_ranges(struct nm_mover *mover, uint32_t pid, uint64_t start_ticks,
		    struct nm_range **ret, size_t *ret_count)
{
	(void)start_ticks;
	const struct nm_recorded_answer *answer =
		nm_player_answer(mover->player, "mover_ranges", pid, "");
	if (!answer)
		return -EAGAIN;
	if (answer->result < 0)
		return (int)answer->result;
	return nm_ranges_get(answer->bytes, answer->length, ret, ret_count);
}

struct nm_mover_counts nm_mover_counts(struct nm_mover *mover)
{
	return (struct nm_mover_counts){.waiting = mover->nr_waiting};
}

/* SPDX-License-Identifier: MIT */
/*
 * A mover that processes its batches when the test requests it, by a function of the test. Defined
 * here instead of the library. Include after cmocka.h.
 */
#ifndef NM_TEST_FAKE_MOVER_H
#define NM_TEST_FAKE_MOVER_H

#include <string.h>

#include "mover/mover.h"

enum { FAKE_MOVER_BATCHES = 256 };

struct nm_mover {
	int unused;
};

static struct fake_mover {
	struct nm_mover mover;
	struct nm_page_batch *waiting[FAKE_MOVER_BATCHES];
	size_t nr_waiting;
	/* Processes the batch, as the worker would; NULL: every page moves from the node where it
	 * was sampled. */
	void (*perform)(struct nm_page_batch *batch);
	bool asleep;	     /* batches are not processed */
	bool full, barred;   /* submissions are rejected; moves are barred */
	int maps_error;	     /* of nm_mover_ranges() */
	uint64_t room_bytes; /* per interval; 0: 32 MiB */
	struct nm_range ranges[8];
	size_t nr_ranges;
	void (*work)(void); /* called by nm_mover_work(), or NULL */
	unsigned submitted, drops, configured, alive;
	unsigned ranges_asked; /* calls of nm_mover_ranges() */
} fake_mover;

static inline void fake_mover_move_all(struct nm_page_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		batch->steps[i].fate = NM_PAGE_FATE_MOVED;
		batch->steps[i].found_on = batch->steps[i].from;
	}
}

/* Records the steps that moved, as the mover does, unless the test has recorded them. */
static inline void fake_mover_record(struct nm_page_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		const struct nm_page_step *step = &batch->steps[i];
		if (step->fate != NM_PAGE_FATE_MOVED)
			continue;
		batch->moved++;
		if (step->base_pages)
			continue;
		batch->bytes += step->bytes;
		batch->base_pages = reallocarray(batch->base_pages, batch->nr_base_pages + 1,
						 sizeof(*batch->base_pages));
		batch->base_pages[batch->nr_base_pages++] = (struct nm_base_pages){
			.address = step->address,
			.pages = (uint32_t)(step->bytes / 4096),
			.was_on = step->found_on >= 0 ? step->found_on : step->from,
			.now_on = step->to};
	}
}

void nm_mover_new(struct nm_platform *platform, const struct nm_topology *topology,
		  const struct nm_config *config, struct nm_mover **ret)
{
	(void)platform, (void)topology, (void)config;
	fake_mover.alive++;
	*ret = &fake_mover.mover;
}

uint64_t nm_mover_work(struct nm_mover *mover)
{
	(void)mover;
	if (fake_mover.work)
		fake_mover.work();
	return 10 * NM_NSEC_PER_SEC;
}

void nm_mover_free(struct nm_mover *mover)
{
	if (!mover)
		return;
	fake_mover.alive--;
	for (size_t i = 0; i < fake_mover.nr_waiting; i++)
		nm_page_batch_free(fake_mover.waiting[i]);
	fake_mover.nr_waiting = 0;
}

void nm_mover_configure(struct nm_mover *mover, const struct nm_topology *topology,
			const struct nm_config *config)
{
	(void)mover, (void)topology, (void)config;
	fake_mover.configured++;
}

bool nm_mover_is_barred(struct nm_mover *mover)
{
	(void)mover;
	return fake_mover.barred;
}

int nm_mover_submit(struct nm_mover *mover, struct nm_page_batch *batch)
{
	(void)mover;
	if (fake_mover.full || fake_mover.nr_waiting == FAKE_MOVER_BATCHES)
		return -EAGAIN;
	assert_true((batch->bulk || batch->count > 0 || batch->nr_back > 0) &&
		    batch->start_ticks > 0);
	for (size_t i = 0; i < batch->count; i++)
		assert_true(batch->steps[i].address % batch->steps[i].bytes == 0);
	fake_mover.submitted++;
	fake_mover.waiting[fake_mover.nr_waiting++] = batch;
	return 0;
}

static inline struct nm_page_batch *fake_mover_pull(size_t i)
{
	struct nm_page_batch *batch = fake_mover.waiting[i];
	memmove(fake_mover.waiting + i, fake_mover.waiting + i + 1,
		(--fake_mover.nr_waiting - i) * sizeof(fake_mover.waiting[0]));
	return batch;
}

struct nm_page_batch *nm_mover_collect(struct nm_mover *mover, bool bulk)
{
	size_t i = 0;
	(void)mover;
	while (i < fake_mover.nr_waiting && fake_mover.waiting[i]->bulk != bulk)
		i++;
	if (i == fake_mover.nr_waiting || fake_mover.asleep)
		return NULL;
	struct nm_page_batch *batch = fake_mover_pull(i);
	if (batch->error == 0)
		(fake_mover.perform ? fake_mover.perform : fake_mover_move_all)(batch);
	fake_mover_record(batch);
	return batch;
}

void nm_mover_drop(struct nm_mover *mover, uint32_t pid, bool bulk)
{
	(void)mover;
	fake_mover.drops++;
	for (size_t i = 0; i < fake_mover.nr_waiting; i++)
		if (fake_mover.waiting[i]->pid == pid && fake_mover.waiting[i]->bulk == bulk)
			fake_mover.waiting[i]->error = -ECANCELED;
}

void nm_mover_discard(struct nm_mover *mover, bool bulk)
{
	(void)mover;
	for (size_t i = fake_mover.nr_waiting; i > 0; i--)
		if (fake_mover.waiting[i - 1]->bulk == bulk)
			nm_page_batch_free(fake_mover_pull(i - 1));
}

uint64_t nm_mover_room_bytes(struct nm_mover *mover, uint64_t now_ns)
{
	(void)mover, (void)now_ns;
	return fake_mover.room_bytes ? fake_mover.room_bytes : 32ULL << 20;
}

int nm_mover_ranges(struct nm_mover *mover, uint32_t pid, uint64_t start_ticks, uint64_t domain,
		    struct nm_range **ret, size_t *ret_count)
{
	(void)mover, (void)pid, (void)start_ticks, (void)domain;
	fake_mover.ranges_asked++;
	if (fake_mover.maps_error)
		return fake_mover.maps_error;
	*ret = calloc(fake_mover.nr_ranges + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, fake_mover.ranges, fake_mover.nr_ranges * sizeof(**ret));
	*ret_count = fake_mover.nr_ranges;
	return 0;
}

struct nm_mover_counts nm_mover_counts(struct nm_mover *mover)
{
	(void)mover;
	return (struct nm_mover_counts){.backoffs = 3, .splits = 2};
}

#endif

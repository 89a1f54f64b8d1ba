/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "mover_internal.h"

struct nm_migration *nm_migration_find(const struct nm_migrations *migrations, uint64_t decision)
{
	for (size_t i = 0; i < migrations->count; i++)
		if (migrations->items[i].decision.id == decision)
			return &migrations->items[i];
	return NULL;
}

uint64_t nm_migrations_remembered(const struct nm_migrations *migrations)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < migrations->count; i++)
		for (size_t k = 0; k < migrations->items[i].nr_origins; k++)
			pages += migrations->items[i].origins[k].pages;
	return pages;
}

int nm_migration_begin(struct nm_migrations *migrations, struct nm_mover *mover,
		       const struct nm_migration *one, struct nm_page_batch **batch)
{
	(*batch)->decision = one->decision.id;
	(*batch)->pid = one->decision.steps[0].pid;
	(*batch)->start_ticks = one->decision.steps[0].start_ticks;
	(*batch)->domain = one->domain;
	int r = nm_mover_submit(mover, *batch);
	if (r < 0)
		return r;
	(void)NM_TAKE(*batch);
	NM_RESERVE(migrations->items, migrations->capacity, migrations->count);
	migrations->items[migrations->count] = *one;
	migrations->items[migrations->count++].moving = true;
	return 0;
}

uint64_t nm_migration_remember(const struct nm_migrations *migrations, struct nm_migration *one,
			       const struct nm_page_batch *batch, const struct nm_config *config)
{
	struct nm_quota quota = {.limit = (double)config->rules.rollback_pages};
	uint64_t pages = 0;
	size_t count = one->nr_origins + batch->nr_base_pages;

	for (size_t i = 0; i < migrations->count; i++)
		nm_quota_count(&quota, one->domain, migrations->items[i].domain,
			       migrations->items[i].nr_origins);
	if (one->abandoned || count == 0 || !nm_quota_permits(&quota, one->domain))
		return 0;
	one->origins = nm_must(reallocarray(one->origins, count, sizeof(*one->origins)));
	for (size_t i = 0; i < batch->nr_base_pages; i++) {
		if (batch->base_pages[i].was_on < 0)
			continue;
		if (!nm_quota_permits(&quota, one->domain))
			break;
		nm_quota_count(&quota, one->domain, one->domain, 1);
		one->origins[one->nr_origins++] = batch->base_pages[i];
		pages += batch->base_pages[i].pages;
	}
	return pages;
}

int nm_migration_roll_back(struct nm_migrations *migrations, struct nm_mover *mover,
			   struct nm_migration *one, const struct nm_migration *as)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		nm_must(calloc(1, sizeof(*batch)));
	size_t index = (size_t)(one - migrations->items);

	*batch = (struct nm_page_batch){.rollback = true,
					.to = -1,
					.back = NM_TAKE(one->origins),
					.nr_back = one->nr_origins};
	int r = nm_migration_begin(migrations, mover, as, &batch);
	one = &migrations->items[index];
	if (r == -EAGAIN)
		one->origins = NM_TAKE(batch->back);
	else
		nm_migration_drop(migrations, one);
	return r;
}

void nm_migration_drop(struct nm_migrations *migrations, struct nm_migration *one)
{
	if (!one)
		return;
	size_t after = (size_t)(migrations->items + migrations->count - one) - 1;
	free(one->origins);
	memmove(one, one + 1, after * sizeof(*one));
	migrations->count--;
}

void nm_migrations_drop(struct nm_migrations *migrations, bool roll_back)
{
	for (size_t i = migrations->count; i-- > 0;)
		if (!roll_back || migrations->items[i].roll_back)
			nm_migration_drop(migrations, &migrations->items[i]);
}

void nm_migrations_abandon(struct nm_migrations *migrations, uint32_t pid)
{
	for (size_t i = migrations->count; i-- > 0;) {
		struct nm_migration *one = &migrations->items[i];
		if (one->decision.steps[0].pid != pid)
			continue;
		one->abandoned = true;
		if (!one->moving)
			nm_migration_drop(migrations, one);
	}
}

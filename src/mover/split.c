// SPDX-License-Identifier: MIT
#include "split.h"

#include "numa-migrd/proc.h"

static uint64_t read_splits(struct nm_mover *mover)
{
	char text[NM_VMSTAT_BYTES];
	uint64_t splits = 0;

	nm_vmstat_read(mover->platform, text);
	(void)nm_vmstat_value(text, "thp_migration_split", &splits);
	return splits;
}

void nm_splits_begin(struct nm_mover *mover)
{
	mover->splits_before = read_splits(mover);
}

void nm_splits_look(struct nm_mover *mover)
{
	uint64_t now = mover->platform->ops->now_ns(mover->platform);

	if (now - mover->splits_ns < NM_NSEC_PER_SEC)
		return;
	mover->splits_ns = now;
	uint64_t splits = read_splits(mover);
	if (splits > mover->splits_before)
		mover->counts.splits = splits - mover->splits_before;
}

// SPDX-License-Identifier: MIT
#include "split.h"

#include <string.h>

#define VMSTAT_BYTES 16384U

uint64_t nm_splits_parse(const char *vmstat)
{
	static const char name[] = "\nthp_migration_split ";
	const char *line = strstr(vmstat, name);

	return line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

static uint64_t read_splits(struct nm_mover *mover)
{
	char text[VMSTAT_BYTES];
	ssize_t length = mover->platform->ops->read_file(mover->platform, NM_ROOT, "proc/vmstat",
							 text, sizeof(text));

	return length > 0 ? nm_splits_parse(text) : 0;
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
	pthread_mutex_lock(&mover->lock);
	if (splits > mover->splits_before)
		mover->counts.splits = splits - mover->splits_before;
	pthread_mutex_unlock(&mover->lock);
}

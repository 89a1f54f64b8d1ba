/* SPDX-License-Identifier: MIT */
/* A source that reads from a feed: no rings, and no periods to control. */
#include "source.h"

void nm_source_open_feed(const struct nm_feed *feed, struct nm_source **ret)
{
	struct nm_source *source = nm_must(calloc(1, sizeof(*source)));
	source->feed = *feed;
	source->epoll = -1;
	*ret = source;
}

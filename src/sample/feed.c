/* SPDX-License-Identifier: MIT */
/* A source that reads from a feed: no rings, and no periods to control. */
#include "source.h"

int nm_source_open_feed(const struct nm_feed *feed, struct nm_source **ret)
{
	struct nm_source *source = calloc(1, sizeof(*source));
	if (!source)
		return -ENOMEM;
	source->feed = *feed;
	source->epoll = -1;
	*ret = source;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "stream.h"

bool lab_stream_follow(struct lab_streams *streams, uint64_t line)
{
	unsigned int at = 0;
	bool known;

	while (at < LAB_STREAMS && (streams->next[at] != line || line % LAB_STREAM_PAGE == 0))
		at++;
	if (at == LAB_STREAMS) {
		at = streams->oldest++ % LAB_STREAMS;
		streams->next[at] = line + 1;
		streams->known[at] = false;
		return false;
	}
	known = streams->known[at];
	streams->next[at] = line + 1;
	streams->known[at] = true;
	return known;
}

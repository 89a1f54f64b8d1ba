/* SPDX-License-Identifier: MIT */
/*
 * hwloc tells why it refuses an XML file on stderr only, and only if asked for by the environment
 * (HWLOC_XML_VERBOSE): while one is loaded, what is written there is kept.
 */
#ifndef NM_TOPOLOGY_COMPLAINTS_H
#define NM_TOPOLOGY_COMPLAINTS_H

#include <stddef.h>

#define NM_COMPLAINT_BYTES 128

struct nm_complaints {
	int stderr_kept, file; /* negative: nothing is kept */
};

/* Until the end, stderr is ours: not beside other threads. */
void nm_complaints_begin(struct nm_complaints *ret);
/* Puts stderr back; the last complaint about the file, escaped, "" if there is none. */
void nm_complaints_end(struct nm_complaints *complaints, const char *path,
		       char ret[NM_COMPLAINT_BYTES]);

#endif

/* SPDX-License-Identifier: MIT */
/* hwloc reports why it rejects an XML file only on stderr, and only if the environment requests it
 * (HWLOC_XML_VERBOSE). While a file is loaded, the text written there is captured. */
#ifndef NM_TOPOLOGY_COMPLAINTS_H
#define NM_TOPOLOGY_COMPLAINTS_H

#include <stddef.h>

#define NM_COMPLAINT_BYTES 128

struct nm_complaints {
	int stderr_kept, file; /* negative: nothing is captured */
};

/* Until nm_complaints_end(), stderr is redirected; no other thread may run. */
void nm_complaints_begin(struct nm_complaints *ret);
/* Restores stderr, and returns the last message about the file, escaped, or "" if there is none. */
void nm_complaints_end(struct nm_complaints *complaints, const char *path,
		       char ret[NM_COMPLAINT_BYTES]);

#endif

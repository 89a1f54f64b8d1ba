/* SPDX-License-Identifier: MIT */
/* hwloc reports why it rejects an XML file only on stderr, and only if the environment requests it
 * (HWLOC_XML_VERBOSE). While a file is loaded, the text written there is captured. */
#ifndef NM_TOPOLOGY_STDERR_CAPTURE_H
#define NM_TOPOLOGY_STDERR_CAPTURE_H

#include <stddef.h>

#define NM_STDERR_MESSAGE_BYTES 128

struct nm_stderr_capture {
	int saved_stderr, file; /* negative: nothing is captured */
};

/* Until nm_stderr_capture_end(), stderr is redirected; no other thread may run. */
void nm_stderr_capture_begin(struct nm_stderr_capture *ret);
/* Restores stderr, and returns the last message about the file, escaped, or "" if there is none. */
void nm_stderr_capture_end(struct nm_stderr_capture *capture, const char *path,
			   char ret[NM_STDERR_MESSAGE_BYTES]);

#endif

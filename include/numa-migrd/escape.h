/* SPDX-License-Identifier: MIT */
/*
 * The one way in which text that belongs to somebody else (command names, unit names, cgroup paths)
 * enters the journal, the bus, a terminal or a file of ours.
 */
#ifndef NUMA_MIGRD_ESCAPE_H
#define NUMA_MIGRD_ESCAPE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes `text` (length bytes, may hold NULs and any bytes) to `out` as printable, valid UTF-8 on one
 * line: valid printable UTF-8 stays, everything else (control characters, C1, DEL, backslash, bidi
 * controls, line separators, invalid bytes) becomes \xNN per byte. Output that does not fit is cut at a
 * whole character and ends in "…". `out` is always NUL-terminated (out_size >= 4). Returns its length.
 */
size_t nm_escape(char *out, size_t out_size, const char *text, size_t length);

/*
 * The well-formed UTF-8 sequence at the start of text (length bytes; Unicode 15, table 3-7): returns its
 * size, 1 to 4, and its code point; 0, with *ret_code untouched, where there is none.
 */
size_t nm_utf8_decode(const char *text, size_t length, uint32_t *ret_code);

#endif

/* SPDX-License-Identifier: MIT */
/* All text from outside (command names, unit names, cgroup paths) passes through this function
 * before it enters the journal, the bus, a terminal or a file. */
#ifndef NUMA_MIGRD_ESCAPE_H
#define NUMA_MIGRD_ESCAPE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes `text` (length bytes, which may include NULs and arbitrary bytes) to `out` as printable,
 * valid UTF-8 on one line. Valid printable UTF-8 is copied; all other bytes (control characters,
 * C1, DEL, backslash, bidi controls, line separators, invalid bytes) become \xNN each. Output that
 * does not fit is cut at a whole character and ends in "…". `out` is always NUL-terminated
 * (out_size >= 4). Returns its length.
 */
size_t nm_escape(char *out, size_t out_size, const char *text, size_t length);

/*
 * Decodes the well-formed UTF-8 sequence at the start of text (length bytes; Unicode 15, table
 * 3-7). Returns its size, 1 to 4, and its code point; or 0 with *ret_code unchanged if there is
 * none.
 */
size_t nm_utf8_decode(const char *text, size_t length, uint32_t *ret_code);

#endif

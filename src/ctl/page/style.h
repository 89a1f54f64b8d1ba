/* SPDX-License-Identifier: MIT */
#ifndef NM_REPORT_STYLE_H
#define NM_REPORT_STYLE_H

/* The style sheet, which is the same for all pages, and its SHA-256 in base64: the page's content
 * security policy allows no other style. */
extern const char nm_style_text[];
extern const char nm_style_hash[];

#endif

/* SPDX-License-Identifier: MIT */
#ifndef NM_REPORT_STYLE_H
#define NM_REPORT_STYLE_H

/* The style sheet, which is the same of all pages, and its SHA-256 in base64, by which alone the
 * page's content security policy lets it in. */
extern const char nm_style_text[];
extern const char nm_style_hash[];

#endif

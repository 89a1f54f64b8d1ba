/* SPDX-License-Identifier: MIT */
/* The sections of the page: each is a plot, or the reason for its absence. */
#ifndef NM_REPORT_PLOTS_H
#define NM_REPORT_PLOTS_H

#include "picture.h"

void nm_show_facts(const struct nm_picture *picture, FILE *out);
void nm_show_timeline(const struct nm_picture *picture, FILE *out);
void nm_show_locality(const struct nm_picture *picture, FILE *out);
void nm_show_decisions(const struct nm_picture *picture, FILE *out);
void nm_show_config(const struct nm_picture *picture, FILE *out);

/* Marks for the states of decisions: their shapes, written once per page; an item of the legend; a
 * name. */
void nm_show_marks(FILE *out);
void nm_show_mark_key(unsigned state, FILE *out);
const char *nm_state_name(unsigned state);

#endif

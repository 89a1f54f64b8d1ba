/* SPDX-License-Identifier: MIT */
/*
 * Axes and the frame of a plot. A plot is as wide as its place: lengths across are in per cent,
 * those down and the size of text in pixels, so that it is read on a phone as on a desk.
 */
#ifndef NM_REPORT_AXIS_H
#define NM_REPORT_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NM_AXIS_TICKS_MOST 12U
#define NM_SHADES 7U /* of what is told by a colour's depth: classes h0 to h6 */
#define NM_HUES 8U   /* of nodes: classes n0 to n7, then again from the first */

struct nm_axis {
	double low, high; /* log: above 0 */
	bool log;
};

/* Grows the axis to a whole step around the values, and never to nothing. */
void nm_axis_fit(struct nm_axis *axis);
/* Where a value is on it, within [0, 1]. */
double nm_axis_at(const struct nm_axis *axis, double value);
/* Round values on it, `most` at most (and at most NM_AXIS_TICKS_MOST). */
size_t nm_axis_ticks(const struct nm_axis *axis, size_t most, double *ret);
/* The same of time: whole seconds, minutes, hours. */
size_t nm_axis_times(double span_s, size_t most, double *ret);
/* Which of NM_SHADES: deeper for more. */
unsigned nm_axis_shade(const struct nm_axis *axis, double value);

/* ---- parts of a page ---- */

void nm_section_open(FILE *out, const char *id, const char *title);
void nm_section_close(FILE *out);
/* What would be here, and why it is not: a sentence of ours. */
void nm_absent(FILE *out, const char *why);
/* "… and 12 more threads", or nothing. */
void nm_more(FILE *out, uint64_t more, const char *one, const char *several);

/* Until nm_plot_close(); `height` is that of the plot's inside, `says` what it shows, in words of
 * ours. */
void nm_plot_open(FILE *out, unsigned height, const char *says);
void nm_plot_close(FILE *out);
/* Lines across the plot and their labels; above it stands what they measure. */
void nm_plot_up(FILE *out, const struct nm_axis *axis, unsigned height);
void nm_plot_across(FILE *out, const struct nm_axis *axis, unsigned height);
void nm_plot_time(FILE *out, double span_s, unsigned height);

/* A legend's items go between. */
void nm_legend_open(FILE *out);
void nm_legend_close(FILE *out);
void nm_legend_nodes(FILE *out, unsigned nr_nodes);
void nm_legend_shades(FILE *out, const struct nm_axis *axis, const char *what);

#endif

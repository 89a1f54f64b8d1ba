/* SPDX-License-Identifier: MIT */
/*
 * Axes and the frame of a plot. A plot has the width of the page: horizontal lengths are in per
 * cent, vertical ones and text sizes in pixels, so that it is readable on small and large screens.
 */
#ifndef NM_REPORT_AXIS_H
#define NM_REPORT_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NM_AXIS_TICKS_MOST 12U
#define NM_SHADES 7U /* of a color scale: classes h0 to h6 */
#define NM_HUES 8U   /* of nodes: classes n0 to n7, repeated */

struct nm_axis {
	double low, high; /* above 0 if log */
	bool log;
};

/* Extends the axis to a whole step around the values; never leaves it empty. */
void nm_axis_fit(struct nm_axis *axis);
/* Returns the position of a value, within [0, 1]. */
double nm_axis_at(const struct nm_axis *axis, double value);
/* Returns at most `most` (and NM_AXIS_TICKS_MOST) round values. */
size_t nm_axis_ticks(const struct nm_axis *axis, size_t most, double *ret);
/* The same for time: whole seconds, minutes, hours. */
size_t nm_axis_times(double span_s, size_t most, double *ret);
/* Returns one of NM_SHADES, deeper for larger values. */
unsigned nm_axis_shade(const struct nm_axis *axis, double value);

/* ---- parts of a page ---- */

/* Writes why a part is missing, as a literal sentence. */
void nm_absent(FILE *out, const char *why);
/* Writes "… and 12 more threads", or nothing. */
void nm_more(FILE *out, uint64_t more, const char *one, const char *several);

/*
 * Opens a plot until nm_plot_close(). `height` is the inner height, `says` a literal description.
 */
void nm_plot_open(FILE *out, unsigned height, const char *says);
void nm_plot_close(FILE *out);
/* Draw lines across the plot with their labels, and the quantity above. */
void nm_plot_up(FILE *out, const struct nm_axis *axis, unsigned height);
void nm_plot_across(FILE *out, const struct nm_axis *axis, unsigned height);
void nm_plot_time(FILE *out, double span_s, unsigned height);

/* The items of a legend are written in between. */
void nm_legend_open(FILE *out);
void nm_legend_close(FILE *out);
void nm_legend_nodes(FILE *out, unsigned nr_nodes);
void nm_legend_shades(FILE *out, const struct nm_axis *axis, const char *what);

#endif

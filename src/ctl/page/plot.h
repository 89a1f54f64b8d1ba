/* SPDX-License-Identifier: MIT */
/*
 * The frame of a plot. A plot has the width of the page: horizontal lengths are in per cent,
 * vertical ones and text sizes in pixels, so that it is readable on small and large screens.
 */
#ifndef NM_REPORT_PLOT_H
#define NM_REPORT_PLOT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NM_PLOT_TICKS_MOST 12U
#define NM_HUES 8U /* of nodes: classes n0 to n7, repeated */

/* Returns at most `most` + 1 (and NM_PLOT_TICKS_MOST) round times: whole seconds, minutes, hours.
 */
size_t nm_plot_times(double span_s, size_t most, double *ret);

/* Writes why a part is missing, as a literal sentence. */
void nm_absent(FILE *out, const char *why);
/* Writes "… and 12 more threads", or nothing. */
void nm_more(FILE *out, uint64_t more, const char *one, const char *several);

/* Opens a plot until NM_PLOT_CLOSE. `height` is the inner height, `says` a literal description. */
void nm_plot_open(FILE *out, unsigned height, const char *says);
#define NM_PLOT_CLOSE "</svg></div>\n"
/* Draw lines across the plot with their labels: 0 to 100 upwards, and time. */
void nm_plot_percent(FILE *out, unsigned height);
void nm_plot_time(FILE *out, double span_s, unsigned height);

/* The items of a legend are written in between. */
#define NM_LEGEND_OPEN "<ul class=\"legend\">"
#define NM_LEGEND_CLOSE "</ul>\n"
void nm_legend_nodes(FILE *out, unsigned nr_nodes);

#endif

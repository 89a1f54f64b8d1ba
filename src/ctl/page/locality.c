/* SPDX-License-Identifier: MIT */
/* The local access ratio over time. */
#include "html.h"
#include "plot.h"
#include "picture.h"

#define HEIGHT 200U

static bool has_weight(const struct nm_mean *bin)
{
	return bin->weight > 0;
}

static double share_of_bin(const struct nm_mean *bin)
{
	return bin->sum / bin->weight;
}

/* Draws a line over consecutive bins; in 1/1000 of the plot, which is stretched. */
static unsigned put_run(const struct nm_mean *bins, unsigned from, const char *class, FILE *out)
{
	unsigned to = from;
	while (to < NM_PICTURE_BINS && has_weight(&bins[to]))
		to++;
	nm_html(out, "<polyline class=\"%s\" points=\"", class);
	for (unsigned i = from; i < to; i++) {
		double y = 1000 - 1000 * share_of_bin(&bins[i]);
		/* Points within a straight line are omitted. */
		if (i > from && i + 1 < to && bins[i - 1].sum == bins[i].sum &&
		    bins[i + 1].sum == bins[i].sum && bins[i - 1].weight == bins[i].weight &&
		    bins[i + 1].weight == bins[i].weight)
			continue;
		nm_html(out, "%.1f,%.1f ", 1000 * (i + 0.5) / NM_PICTURE_BINS, y);
	}
	if (to == from + 1)
		nm_html(out, "%.1f,%.1f", 1000 * (from + 0.9) / NM_PICTURE_BINS,
			1000 - 1000 * share_of_bin(&bins[from]));
	nm_html(out, "\"/>\n");
	return to;
}

static bool has_any(const struct nm_mean *bins)
{
	for (unsigned i = 0; i < NM_PICTURE_BINS; i++)
		if (has_weight(&bins[i]))
			return true;
	return false;
}

static void put_line(const struct nm_mean *bins, const char *class, FILE *out)
{
	for (unsigned i = 0; i < NM_PICTURE_BINS; i++)
		if (has_weight(&bins[i]))
			i = put_run(bins, i, class, out);
}

/* CSS classes of the lines of processes. */
static const char *const classes[] = {"line p0", "line p1", "line p2", "line p3"};

static const struct nm_mean *line_of(const struct nm_picture *picture, size_t i)
{
	return &picture->lines[i * NM_PICTURE_BINS];
}

static size_t nr_lines(const struct nm_picture *picture)
{
	size_t count = picture->picked[NM_PICKED_LINES].count;
	return count < NM_ARRAY_SIZE(classes) ? count : NM_ARRAY_SIZE(classes);
}

static void put_key(const char *class, FILE *out)
{
	nm_html(out,
		"<li><svg class=\"key\" width=\"28\" height=\"10\"><line class=\"%s\" x1=\"1\" "
		"y1=\"5\" x2=\"27\" y2=\"5\"/></svg> ",
		class);
}

static void put_legend(const struct nm_picture *picture, FILE *out)
{
	nm_html(out, NM_LEGEND_OPEN);
	put_key("line all", out);
	nm_html(out, "all managed threads</li>");
	for (size_t i = 0; i < nr_lines(picture); i++) {
		uint32_t pid = picture->picked[NM_PICKED_LINES].items[i].pid;
		if (!has_any(line_of(picture, i)))
			continue;
		put_key(classes[i], out);
		nm_html(out, "%u ", pid);
		nm_picture_put_comm(picture, pid, out);
		nm_html(out, "</li>");
	}
	nm_html(out, NM_LEGEND_CLOSE);
}

static void put_plot(const struct nm_picture *picture, FILE *out)
{
	nm_html(out, "<p class=\"measure\">\xe2\x86\x91 local accesses, per cent</p>\n");
	nm_plot_open(out, HEIGHT, "Share of local accesses over time");
	nm_plot_percent(out, HEIGHT);
	nm_plot_time(out, picture->span_s, HEIGHT);
	nm_html(out,
		"<svg width=\"100%%\" height=\"%u\" viewBox=\"0 0 1000 1000\" "
		"preserveAspectRatio=\"none\">\n",
		HEIGHT);
	for (size_t i = nr_lines(picture); i-- > 0;)
		put_line(line_of(picture, i), classes[i], out);
	put_line(picture->overall, "line all", out);
	nm_html(out, "</svg>\n");
	nm_html(out, NM_PLOT_CLOSE);
}

void nm_show_locality(const struct nm_picture *picture, FILE *out)
{
	bool any = has_any(picture->overall);
	for (size_t i = 0; i < nr_lines(picture); i++)
		any |= has_any(line_of(picture, i));
	if (!any) {
		nm_absent(out,
			  "This recording has no share of local accesses: no access of a managed "
			  "thread was sampled, or the nodes of the memory were unknown.");
		return;
	}
	nm_html(out,
		"<p>Share of memory accesses to the node on which the thread ran, for all managed "
		"threads and for the busiest processes.</p>\n");
	put_legend(picture, out);
	put_plot(picture, out);
}

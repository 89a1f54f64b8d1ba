/* SPDX-License-Identifier: MIT */
/* Threads that share memory: kMAF's communication matrix (section 3.2) as a heat map. */
#include <math.h>

#include "axis.h"
#include "html.h"
#include "plots.h"

#define LABELS_MOST 20U

static double mean_of(const struct nm_picture *picture, size_t a, size_t b)
{
	size_t width = picture->picked[NM_PICKED_MATRIX].count;
	return picture->matrix[a * width + b] / (double)picture->shared_intervals;
}

static struct nm_axis axis_of(const struct nm_picture *picture)
{
	size_t width = picture->picked[NM_PICKED_MATRIX].count;
	struct nm_axis axis = {.low = (double)INFINITY, .high = 0};
	for (size_t i = 0; i < width * width; i++) {
		double mean = mean_of(picture, i / width, i % width);
		if (!(mean > 0))
			continue;
		axis.low = fmin(axis.low, mean);
		axis.high = fmax(axis.high, mean);
	}
	axis.log = axis.high / axis.low > 10;
	/* Similar values must look similar. */
	if (!axis.log)
		axis.low = 0;
	return axis;
}

static void put_cell(const struct nm_picture *picture, const struct nm_axis *axis, size_t a,
		     size_t b, FILE *out)
{
	const struct nm_pick *threads = &picture->picked[NM_PICKED_MATRIX];
	double mean = mean_of(picture, a, b), side = 100.0 / (double)threads->count;
	char text[NM_AMOUNT_SIZE];
	if (!(mean > 0))
		return;
	nm_html(out,
		"<rect class=\"h%u\" x=\"%.3f%%\" y=\"%.3f%%\" width=\"%.3f%%\" height=\"%.3f%%\">"
		"<title>%u and %u: %s</title></rect>\n",
		nm_axis_shade(axis, mean), (double)b * side, (double)a * side, side, side,
		threads->items[a].id, threads->items[b].id, nm_html_amount(mean, text));
}

/* Draws lines between processes, and thread ids as far as there is room. */
static void put_matrix(const struct nm_pick *threads, FILE *out)
{
	double side = 100.0 / (double)threads->count;
	size_t every = (threads->count + LABELS_MOST - 1) / LABELS_MOST;
	for (size_t i = 0; i < threads->count; i++) {
		if (i % every == 0)
			nm_html(out,
				"<text class=\"up\" x=\"-6\" y=\"%.3f%%\" dy=\"4\">%u</text>\n",
				((double)i + 0.5) * side, threads->items[i].id);
		if (i == 0 || threads->items[i].pid == threads->items[i - 1].pid)
			continue;
		double at = (double)i * side;
		nm_html(out,
			"<line class=\"edge\" x1=\"0\" y1=\"%.3f%%\" x2=\"100%%\" y2=\"%.3f%%\"/>"
			"<line class=\"edge\" x1=\"%.3f%%\" y1=\"0\" x2=\"%.3f%%\" "
			"y2=\"100%%\"/>\n",
			at, at, at, at);
	}
}

/* Lists the rows of each process. */
static void put_owners(const struct nm_picture *picture, FILE *out)
{
	const struct nm_pick *threads = &picture->picked[NM_PICKED_MATRIX];
	nm_html(out, "<ul class=\"owners\">\n");
	for (size_t from = 0, to; from < threads->count; from = to) {
		uint32_t pid = threads->items[from].pid;
		to = from + 1;
		while (to < threads->count && threads->items[to].pid == pid)
			to++;
		nm_html(out, "<li>%u ", pid);
		nm_picture_put_comm(picture, pid, out);
		nm_html(out, ": %zu %s from %u on</li>\n", to - from,
			nm_plural(to - from, "thread", "threads"), threads->items[from].id);
	}
	nm_html(out, "</ul>\n");
}

static void put_affinity_plot(const struct nm_picture *picture, const struct nm_axis *axis,
			      FILE *out)
{
	const struct nm_pick *threads = &picture->picked[NM_PICKED_MATRIX];
	nm_html(out,
		"<div class=\"plot square\"><svg width=\"100%%\" height=\"100%%\" role=\"img\" "
		"aria-label=\"How much each two threads share memory\">\n"
		"<rect class=\"field\" width=\"100%%\" height=\"100%%\"/>\n");
	for (size_t a = 0; a < threads->count; a++)
		for (size_t b = 0; b < threads->count; b++)
			put_cell(picture, axis, a, b, out);
	put_matrix(threads, out);
	nm_plot_close(out);
}

void nm_show_affinity(const struct nm_picture *picture, FILE *out)
{
	const struct nm_pick *threads = &picture->picked[NM_PICKED_MATRIX];
	struct nm_axis axis = axis_of(picture);
	if (threads->count == 0 || !(axis.high > 0)) {
		nm_absent(out, "This recording has no threads that share memory: it was not looked "
			       "for, or none was found. Settings that look for it are pages.policy "
			       "and threads.policy = \"kmaf\".");
		return;
	}
	nm_html(out,
		"<p>A cell is how much two threads share, the mean over the recording; rows and "
		"columns are threads in the same order, those of a process together. Of each "
		"thread, the recording has the eight strongest partners.</p>\n");
	nm_legend_open(out);
	nm_legend_shades(out, &axis, "sharings");
	nm_html(out, "<li><svg class=\"key\" width=\"14\" height=\"14\"><rect class=\"field\" "
		     "width=\"14\" height=\"14\"/></svg> none</li>");
	nm_legend_close(out);
	put_affinity_plot(picture, &axis, out);
	put_owners(picture, out);
	nm_more(out, threads->more, "thread", "threads");
}

/* SPDX-License-Identifier: MIT */
/* Distribution of the sampled pages over nodes: over time, and per process. */
#include <math.h>
#include <string.h>

#include "axis.h"
#include "html.h"
#include "plots.h"

#define HEIGHT 180U
#define ROW 30U

static double sum_of(const uint64_t *pages, unsigned nr_nodes)
{
	double sum = 0;
	for (unsigned k = 0; k < nr_nodes; k++)
		sum += (double)pages[k];
	return sum;
}

static unsigned nodes_of(const struct nm_picture *picture)
{
	return picture->nr_nodes < NM_PICTURE_NODES ? picture->nr_nodes : NM_PICTURE_NODES;
}

static double most_of(const struct nm_picture *picture)
{
	double most = 0;
	for (unsigned bin = 0; bin < NM_PICTURE_BINS; bin++)
		most = fmax(most, sum_of(picture->pages[bin], nodes_of(picture)));
	return most;
}

static void put_stack(const struct nm_picture *picture, unsigned from, unsigned to,
		      const struct nm_axis *axis, FILE *out)
{
	const uint64_t *pages = picture->pages[from];
	double below = 0;
	char text[NM_AMOUNT_SIZE];
	for (unsigned k = 0; k < nodes_of(picture); k++) {
		if (pages[k] == 0)
			continue;
		double low = nm_axis_at(axis, below) * HEIGHT;
		below += (double)pages[k];
		double high = nm_axis_at(axis, below) * HEIGHT;
		nm_html(out,
			"<rect class=\"stack n%u\" x=\"%.2f%%\" y=\"%.1f\" width=\"%.2f%%\" "
			"height=\"%.1f\">"
			"<title>node %u: %s pages</title></rect>",
			k % NM_HUES, 100.0 * from / NM_PICTURE_BINS, HEIGHT - high,
			100.0 * (to - from) / NM_PICTURE_BINS, high - low, k,
			nm_html_amount((double)pages[k], text));
	}
	nm_html(out, "\n");
}

static void put_over_time(const struct nm_picture *picture, const struct nm_axis *axis, FILE *out)
{
	size_t size = sizeof(picture->pages[0]);
	nm_html(out, "<p class=\"measure\">\xe2\x86\x91 sampled pages</p>\n");
	nm_plot_open(out, HEIGHT, "Sampled pages on each node over time");
	nm_plot_up(out, axis, HEIGHT);
	nm_plot_time(out, picture->span_s, HEIGHT);
	for (unsigned from = 0, to; from < NM_PICTURE_BINS; from = to) {
		to = from + 1;
		while (to < NM_PICTURE_BINS && picture->pages_seen[to] &&
		       memcmp(picture->pages[from], picture->pages[to], size) == 0)
			to++;
		if (picture->pages_seen[from])
			put_stack(picture, from, to, axis, out);
	}
	nm_plot_close(out);
}

/* ---- processes ---- */

static void put_split(const uint64_t *pages, unsigned nr_nodes, unsigned y, unsigned height,
		      FILE *out)
{
	double sum = sum_of(pages, nr_nodes), before = 0;
	for (unsigned k = 0; k < nr_nodes; k++) {
		double share = sum > 0 ? (double)pages[k] / sum : 0;
		if (!(share > 0))
			continue;
		nm_html(out,
			"<rect class=\"bar n%u\" x=\"%.2f%%\" y=\"%u\" width=\"%.2f%%\" "
			"height=\"%u\">"
			"<title>node %u: %.1f %%</title></rect>",
			k % NM_HUES, 100 * before, y, 100 * share, height, k, 100 * share);
		if (share >= 0.07 && height >= 12)
			nm_html(out, "<text class=\"on\" x=\"%.2f%%\" y=\"%u\">%u</text>",
				100 * (before + share / 2), y + height / 2 + 4, k);
		before += share;
	}
	nm_html(out, "\n");
}

static void put_process_names(const struct nm_picture *picture, FILE *out)
{
	const struct nm_pick *spaces = &picture->picked[NM_PICKED_SPACES];
	char text[NM_AMOUNT_SIZE];
	nm_html(out, "<ol class=\"names tall\">");
	for (size_t i = 0; i < spaces->count; i++) {
		double pages = sum_of(picture->spaces[i].last_pages, nodes_of(picture));
		nm_html(out, "<li title=\"%.0f pages of ", pages);
		nm_html_say(out, "%s", nm_picture_comm(picture, spaces->items[i].pid));
		nm_html(out, "\"><b>%u</b> ", spaces->items[i].pid);
		nm_picture_put_comm(picture, spaces->items[i].pid, out);
		nm_html(out, "<br/>%s pages</li>\n", nm_html_amount(pages, text));
	}
	nm_html(out, "</ol>\n");
}

static void put_processes(const struct nm_picture *picture, FILE *out)
{
	size_t count = picture->picked[NM_PICKED_SPACES].count;
	nm_html(out,
		"<p>Of each process: above when its pages were first seen, below at the end.</p>\n"
		"<div class=\"rows\">");
	put_process_names(picture, out);
	nm_plot_open(out, (unsigned)count * ROW, "Sampled pages of each process by node");
	for (size_t i = 0; i < count; i++) {
		put_split(picture->spaces[i].first_pages, nodes_of(picture), (unsigned)i * ROW + 2,
			  7, out);
		put_split(picture->spaces[i].last_pages, nodes_of(picture), (unsigned)i * ROW + 11,
			  14, out);
	}
	nm_plot_close(out);
	nm_html(out, "</div>\n");
}

void nm_show_pages(const struct nm_picture *picture, FILE *out)
{
	struct nm_axis axis = {.low = 0, .high = most_of(picture)};
	if (!picture->any_tracked || !(axis.high > 0) || picture->nr_nodes > NM_PICTURE_NODES) {
		nm_absent(
			out,
			picture->nr_nodes > NM_PICTURE_NODES
				? "The machine has more nodes than this plot can distinguish."
			: picture->any_tracked
				? "Pages were sampled, but the node of none was known."
				: "This recording has no pages: none were looked at. Settings that "
				  "look at them are pages.policy and threads.policy = \"kmaf\".");
		return;
	}
	nm_axis_fit(&axis);
	nm_html(out,
		"<p>Where the pages are that were sampled lately, of all processes whose pages "
		"are looked at. It is a sample: a process has more.</p>\n");
	nm_legend_open(out);
	nm_legend_nodes(out, picture->nr_nodes);
	nm_legend_close(out);
	put_over_time(picture, &axis, out);
	put_processes(picture, out);
	nm_more(out, picture->picked[NM_PICKED_SPACES].more, "process", "processes");
}

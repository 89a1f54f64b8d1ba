/* SPDX-License-Identifier: MIT */
/* The exclusivity of pages (kMAF, figure 2): a histogram per process. */
#include <math.h>

#include "axis.h"
#include "html.h"
#include "plots.h"

#define HEIGHT 110U

static double share_at(const struct nm_exclusivity *sums, unsigned step)
{
	return sums->pages ? 100.0 * (double)sums->histogram[step] / (double)sums->pages : 0;
}

/* The same axis for all, so that they can be compared. */
static struct nm_axis axis_of(const struct nm_picture *picture)
{
	double most = 0;
	for (size_t i = 0; i < picture->picked[NM_PICKED_SPACES].count; i++)
		for (unsigned step = 0; step < NM_EXCLUSIVITY_STEPS; step++)
			most = fmax(most, fmax(share_at(&picture->spaces[i].first, step),
					       share_at(&picture->spaces[i].last, step)));
	return (struct nm_axis){.low = 0, .high = most > 50 ? 100 : most > 25 ? 50 : 25};
}

static void put_bar(const char *class, unsigned step, double share, const struct nm_axis *axis,
		    FILE *out)
{
	double height = nm_axis_at(axis, share) * HEIGHT;
	if (share > 0)
		nm_html(out,
			"<rect class=\"%s\" x=\"%.2f%%\" y=\"%.1f\" width=\"%.2f%%\" "
			"height=\"%.1f\"><title>%.1f: %.1f %% of the pages</title></rect>",
			class, 100 * (step + 0.1) / NM_EXCLUSIVITY_STEPS, HEIGHT - height,
			80.0 / NM_EXCLUSIVITY_STEPS, height, step / 10.0, share);
}

static void put_steps(FILE *out)
{
	for (unsigned step = 0; step < NM_EXCLUSIVITY_STEPS; step += 2)
		nm_html(out, "<text class=\"across\" x=\"%.2f%%\" y=\"%u\">%.1f</text>",
			100 * (step + 0.5) / NM_EXCLUSIVITY_STEPS, HEIGHT + 16, step / 10.0);
	nm_html(out, "\n");
}

static void put_process(const struct nm_picture *picture, size_t i, const struct nm_axis *axis,
			FILE *out)
{
	const struct nm_space *space = &picture->spaces[i];
	uint32_t pid = picture->picked[NM_PICKED_SPACES].items[i].pid;
	char pages[NM_AMOUNT_SIZE];
	nm_html(out, "<div class=\"panel\"><h3>%u ", pid);
	nm_picture_put_comm(picture, pid, out);
	nm_html(out, "</h3><p class=\"measure\">%s pages, mean %.2f</p>\n",
		nm_html_amount((double)space->last.pages, pages),
		space->last.accesses ? (double)space->last.most / (double)space->last.accesses
				     : 0.0);
	nm_plot_open(out, HEIGHT, "Pages of a process by exclusivity, per cent");
	nm_plot_up(out, axis, HEIGHT);
	put_steps(out);
	for (unsigned step = 0; step < NM_EXCLUSIVITY_STEPS; step++) {
		put_bar("fill", step, share_at(&space->last, step), axis, out);
		put_bar("was", step, share_at(&space->first, step), axis, out);
	}
	nm_plot_close(out);
	nm_html(out, "</div>\n");
}

void nm_show_exclusivity(const struct nm_picture *picture, FILE *out)
{
	const struct nm_pick *spaces = &picture->picked[NM_PICKED_SPACES];
	struct nm_axis axis = axis_of(picture);
	bool any = false;
	for (size_t i = 0; i < spaces->count; i++)
		any |= picture->spaces[i].seen;
	if (!any) {
		nm_absent(out,
			  "This recording has no pages: none were looked at. Settings that look "
			  "at them are pages.policy and threads.policy = \"kmaf\".");
		return;
	}
	nm_html(out,
		"<p>Per cent of the sampled pages by the share of their accesses that comes from "
		"one node, to the nearest tenth: at 1, pages that a single node uses. Filled: at "
		"the end; outlined: when pages of the process were first seen.</p>\n"
		"<div class=\"panels\">\n");
	for (size_t i = 0; i < spaces->count; i++)
		if (picture->spaces[i].seen)
			put_process(picture, i, &axis, out);
	nm_html(out, "</div>\n");
	nm_more(out, spaces->more, "process", "processes");
}

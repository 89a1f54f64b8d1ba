/* SPDX-License-Identifier: MIT */
#include "plot.h"

#include <math.h>

#include "html.h"
#include "numa-migrd/base.h"

#define NODES_IN_LEGEND 16U

/* Returns 1, 2 or 5 times a power of ten, at least as large as the argument. */
static double round_step(double least)
{
	double power = pow(10, floor(log10(least)));
	double part = least / power;
	return power * (part <= 1.0001 ? 1 : part <= 2.0001 ? 2 : part <= 5.0001 ? 5 : 10);
}

size_t nm_plot_times(double span_s, size_t most, double *ret)
{
	static const double steps[] = {1,   2,	 5,    10,   15,   30,	  60,	 120,	300,
				       600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400};
	double step = round_step(fmax(span_s, 1e-3) / (double)most);
	size_t count = 0;
	if (step >= 1) {
		size_t i = 0;
		while (i + 1 < NM_ARRAY_SIZE(steps) && span_s / steps[i] > (double)most)
			i++;
		step = span_s / steps[i] > (double)most ? step : steps[i];
	}
	for (; count < NM_PLOT_TICKS_MOST && (double)count * step <= span_s * (1 + 1e-9); count++)
		ret[count] = (double)count * step;
	return count;
}

/* ---- parts of a page ---- */

void nm_absent(FILE *out, const char *why)
{
	nm_html(out, "<p class=\"absent\">%s</p>\n", why);
}

void nm_more(FILE *out, uint64_t more, const char *one, const char *several)
{
	if (more == 0)
		return;
	nm_html(out, "<p class=\"more\">\xe2\x80\xa6 and %llu more %s.</p>\n",
		(unsigned long long)more, nm_plural(more, one, several));
}

void nm_plot_open(FILE *out, unsigned height, const char *says)
{
	nm_html(out,
		"<div class=\"plot\"><svg width=\"100%%\" height=\"%u\" role=\"img\" "
		"aria-label=\"%s\">\n",
		height, says);
}

void nm_plot_percent(FILE *out, unsigned height)
{
	for (unsigned percent = 0; percent <= 100; percent += 20) {
		double y = (100 - percent) / 100.0 * height;
		nm_html(out, "<line class=\"grid\" x1=\"0\" y1=\"%.1f\" x2=\"100%%\" y2=\"%.1f\"/>",
			y, y);
		nm_html(out, "<text class=\"up\" x=\"-6\" y=\"%.1f\">%u</text>\n", y + 4, percent);
	}
}

static void put_tick(FILE *out, double share, unsigned height, const char *text)
{
	const char *anchor = share < 0.02 ? "begin" : share > 0.98 ? "end" : "across";
	nm_html(out, "<line class=\"grid\" x1=\"%.2f%%\" y1=\"0\" x2=\"%.2f%%\" y2=\"%u\"/>",
		100 * share, 100 * share, height);
	nm_html(out, "<text class=\"%s\" x=\"%.2f%%\" y=\"%u\">%s</text>\n", anchor, 100 * share,
		height + 16, text);
}

void nm_plot_time(FILE *out, double span_s, unsigned height)
{
	double ticks[NM_PLOT_TICKS_MOST];
	char text[NM_TIME_SIZE];
	size_t count = nm_plot_times(span_s, 5, ticks);
	for (size_t i = 0; i < count; i++)
		put_tick(out, span_s > 0 ? ticks[i] / span_s : 0, height,
			 nm_html_time(ticks[i], text));
}

void nm_legend_nodes(FILE *out, unsigned nr_nodes)
{
	unsigned shown = nr_nodes < NODES_IN_LEGEND ? nr_nodes : NODES_IN_LEGEND;
	for (unsigned k = 0; k < shown; k++)
		nm_html(out,
			"<li><svg class=\"key\" width=\"14\" height=\"14\"><rect class=\"n%u\" "
			"width=\"14\" height=\"14\"/></svg> node %u</li>",
			k % NM_HUES, k);
	if (nr_nodes > NM_HUES)
		nm_html(out, "<li>%s and so on (colours repeat; compare the numbers)</li>",
			shown < nr_nodes ? "\xe2\x80\xa6" : "");
}

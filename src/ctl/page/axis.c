/* SPDX-License-Identifier: MIT */
#include "axis.h"

#include <math.h>

#include "html.h"
#include "numa-migrd/base.h"

#define NODES_IN_LEGEND 16U

/* ---- values ---- */

/* Returns 1, 2 or 5 times a power of ten, at least as large as the argument. */
static double round_step(double least)
{
	double power = pow(10, floor(log10(least)));
	double part = least / power;
	return power * (part <= 1.0001 ? 1 : part <= 2.0001 ? 2 : part <= 5.0001 ? 5 : 10);
}

static void fit_log(struct nm_axis *axis)
{
	if (axis->high / axis->low < 1e2) {
		double middle = sqrt(axis->low * axis->high);
		axis->low = fmin(axis->low / 1.25, middle / 3);
		axis->high = fmax(axis->high * 1.25, middle * 3);
		return;
	}
	axis->low /= 1.5;
	axis->high *= 1.5;
}

void nm_axis_fit(struct nm_axis *axis)
{
	if (axis->log) {
		fit_log(axis);
		return;
	}
	if (!(axis->high > axis->low))
		axis->high = axis->low + 1;
	double step = round_step((axis->high - axis->low) / 4);
	axis->high = ceil(axis->high / step - 1e-9) * step;
}

double nm_axis_at(const struct nm_axis *axis, double value)
{
	double share = axis->log ? log(value / axis->low) / log(axis->high / axis->low)
				 : (value - axis->low) / (axis->high - axis->low);
	return isfinite(share) ? fmin(fmax(share, 0), 1) : 0;
}

unsigned nm_axis_shade(const struct nm_axis *axis, double value)
{
	return (unsigned)fmin(nm_axis_at(axis, value) * NM_SHADES, NM_SHADES - 1);
}

static size_t add_tick(const struct nm_axis *axis, double value, size_t count, double *ret)
{
	double margin = axis->log ? axis->low * 1e-9 : (axis->high - axis->low) * 1e-9;
	if (count < NM_AXIS_TICKS_MOST && value >= axis->low - margin &&
	    value <= axis->high * (1 + 1e-9) + margin)
		ret[count++] = value;
	return count;
}

/* Returns `parts` of the values 1, 2 (or 3) and 5 times a power of ten, for every power that is a
 * multiple of `apart`. */
static size_t log_parts(const struct nm_axis *axis, size_t parts, int apart, double *ret)
{
	static const double factors[][3] = {{1}, {1, 3}, {1, 2, 5}};
	int power = (int)floor(floor(log10(axis->low)) / apart) * apart;
	size_t count = 0;
	for (; power <= log10(axis->high) + 1e-9; power += apart)
		for (size_t i = 0; i < parts; i++)
			count = add_tick(axis, factors[parts - 1][i] * pow(10, power), count, ret);
	return count;
}

static size_t log_ticks(const struct nm_axis *axis, size_t most, double *ret)
{
	int apart = (int)fmax(ceil(log10(axis->high / axis->low) / (double)most), 1);
	for (size_t parts = 3; apart == 1 && parts > 1; parts--) {
		size_t count = log_parts(axis, parts, 1, ret);
		if (count <= most)
			return count;
	}
	return log_parts(axis, 1, apart, ret);
}

size_t nm_axis_ticks(const struct nm_axis *axis, size_t most, double *ret)
{
	size_t count = 0;
	if (axis->log)
		return log_ticks(axis, most, ret);
	double step = round_step((axis->high - axis->low) / (double)most);
	double first = ceil(axis->low / step - 1e-9) * step + 0.0; /* no -0 */
	for (size_t i = 0; i < NM_AXIS_TICKS_MOST; i++)
		count = add_tick(axis, first + (double)i * step, count, ret);
	return count;
}

size_t nm_axis_times(double span_s, size_t most, double *ret)
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
	for (; count < NM_AXIS_TICKS_MOST && (double)count * step <= span_s * (1 + 1e-9); count++)
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

void nm_plot_close(FILE *out)
{
	nm_html(out, "</svg></div>\n");
}

void nm_plot_up(FILE *out, const struct nm_axis *axis, unsigned height)
{
	double ticks[NM_AXIS_TICKS_MOST];
	char text[NM_AMOUNT_SIZE];
	size_t count = nm_axis_ticks(axis, 6, ticks);
	for (size_t i = 0; i < count; i++) {
		double y = (1 - nm_axis_at(axis, ticks[i])) * height;
		nm_html(out, "<line class=\"grid\" x1=\"0\" y1=\"%.1f\" x2=\"100%%\" y2=\"%.1f\"/>",
			y, y);
		nm_html(out, "<text class=\"up\" x=\"-6\" y=\"%.1f\">%s</text>\n", y + 4,
			nm_html_amount(ticks[i], text));
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

void nm_plot_across(FILE *out, const struct nm_axis *axis, unsigned height)
{
	double ticks[NM_AXIS_TICKS_MOST];
	char text[NM_AMOUNT_SIZE];
	size_t count = nm_axis_ticks(axis, 6, ticks);
	for (size_t i = 0; i < count; i++)
		put_tick(out, nm_axis_at(axis, ticks[i]), height, nm_html_amount(ticks[i], text));
}

void nm_plot_time(FILE *out, double span_s, unsigned height)
{
	double ticks[NM_AXIS_TICKS_MOST];
	char text[NM_AMOUNT_SIZE];
	size_t count = nm_axis_times(span_s, 5, ticks);
	for (size_t i = 0; i < count; i++)
		put_tick(out, span_s > 0 ? ticks[i] / span_s : 0, height,
			 nm_html_time(ticks[i], text));
}

void nm_legend_open(FILE *out)
{
	nm_html(out, "<ul class=\"legend\">");
}

void nm_legend_close(FILE *out)
{
	nm_html(out, "</ul>\n");
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
		nm_html(out, "<li>%s and so on; the colours repeat, the numbers differ</li>",
			shown < nr_nodes ? "\xe2\x80\xa6" : "");
}

void nm_legend_shades(FILE *out, const struct nm_axis *axis, const char *what)
{
	char low[NM_AMOUNT_SIZE], high[NM_AMOUNT_SIZE];
	nm_html(out, "<li>%s: %s ", what, nm_html_amount(axis->low, low));
	nm_html(out, "<svg class=\"key\" width=\"%u\" height=\"14\">", NM_SHADES * 16);
	for (unsigned i = 0; i < NM_SHADES; i++)
		nm_html(out, "<rect class=\"h%u\" x=\"%u\" width=\"16\" height=\"14\"/>", i,
			i * 16);
	nm_html(out, "</svg> %s%s</li>", nm_html_amount(axis->high, high),
		axis->log ? " (logarithmic)" : "");
}

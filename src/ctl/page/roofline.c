/* SPDX-License-Identifier: MIT */
/*
 * The 3DyRM roofline (lbma-imar2, section 3): operations over their intensity, both logarithmic,
 * with the latency of accesses as color. The roofs are properties of the machine, which a recording
 * does not contain; the diagonals show traffic as a scale.
 */
#include <math.h>

#include "axis.h"
#include "html.h"
#include "plots.h"

#define HEIGHT 340U
#define DOT_LEAST 3.5
#define DOT_GROWS 4.5 /* growth for a whole CPU */

struct roofline {
	struct nm_axis intensity, operations, latency;
	bool any, any_latency;
};

struct spot {
	double intensity, operations, latency; /* NaN: not known */
};

static struct spot spot_of(const struct nm_roof *roof)
{
	return (struct spot){
		.intensity = roof->bytes > 0 ? roof->operations / roof->bytes : (double)NAN,
		.operations = roof->seconds > 0 ? roof->operations / roof->seconds : (double)NAN,
		.latency = roof->accesses > 0 ? roof->cycles / roof->accesses : (double)NAN,
	};
}

static bool is_known(const struct spot *spot)
{
	return isfinite(spot->intensity) && isfinite(spot->operations) && spot->intensity > 0 &&
	       spot->operations > 0;
}

static void take_in(struct nm_axis *axis, double value)
{
	axis->low = fmin(axis->low, value);
	axis->high = fmax(axis->high, value);
}

static void add_roof(struct roofline *roofline, const struct nm_roof *roof)
{
	struct spot spot = spot_of(roof);
	if (!is_known(&spot))
		return;
	roofline->any = true;
	take_in(&roofline->intensity, spot.intensity);
	take_in(&roofline->operations, spot.operations);
	if (!isfinite(spot.latency))
		return;
	roofline->any_latency = true;
	take_in(&roofline->latency, spot.latency);
}

/* Similar latencies must look similar: the range covers at least a factor of two. */
static void widen(struct nm_axis *latency)
{
	double middle = sqrt(latency->low * latency->high);
	latency->log = latency->high / latency->low > 10;
	latency->low = fmin(latency->low, middle / sqrt(2));
	latency->high = fmax(latency->high, middle * sqrt(2));
}

static struct roofline axes_of(const struct nm_picture *picture)
{
	const struct nm_axis empty = {.low = (double)INFINITY, .high = 0, .log = true};
	struct roofline roofline = {.intensity = empty, .operations = empty, .latency = empty};
	for (size_t i = 0; i < picture->picked[NM_PICKED_POINTS].count; i++)
		add_roof(&roofline, &picture->roofs[i]);
	for (size_t i = 0; i < (size_t)NM_PICTURE_TRAILS * NM_PICTURE_STEPS; i++)
		add_roof(&roofline, &picture->trails[i]);
	nm_axis_fit(&roofline.intensity);
	nm_axis_fit(&roofline.operations);
	widen(&roofline.latency);
	return roofline;
}

/* ---- diagonals: operations = intensity × traffic ---- */

static void put_diagonal(const struct roofline *roofline, double traffic, FILE *out)
{
	double left = roofline->intensity.low, right = roofline->intensity.high;
	char text[NM_AMOUNT_SIZE];
	left = fmax(left, roofline->operations.low / traffic);
	right = fmin(right, roofline->operations.high / traffic);
	double x1 = nm_axis_at(&roofline->intensity, left);
	double x2 = nm_axis_at(&roofline->intensity, right);
	double y1 = (1 - nm_axis_at(&roofline->operations, left * traffic)) * HEIGHT;
	double y2 = (1 - nm_axis_at(&roofline->operations, right * traffic)) * HEIGHT;
	if (x2 - x1 < 0.1)
		return;
	nm_html(out, "<line class=\"roof\" x1=\"%.2f%%\" y1=\"%.1f\" x2=\"%.2f%%\" y2=\"%.1f\"/>\n",
		100 * x1, y1, 100 * x2, y2);
	/* Diagonals that end at the top have their label at the left, the others above. */
	if (x2 > 0.25 || y2 > 1)
		nm_html(out,
			"<text class=\"scale end\" x=\"%.2f%%\" dx=\"-8\" "
			"y=\"%.1f\">%s%sB/s</text>\n",
			100 * x2, y2 > 20 ? y2 - 6 : 12, nm_html_amount(traffic, text),
			traffic < 999.5 ? " " : "");
}

static void put_diagonals(const struct roofline *roofline, FILE *out)
{
	int least = (int)floor(log10(roofline->operations.low / roofline->intensity.high));
	int most = (int)ceil(log10(roofline->operations.high / roofline->intensity.low));
	int apart = (most - least + 6) / 7;
	for (int power = least; power <= most; power += apart > 1 ? apart : 1)
		put_diagonal(roofline, pow(10, power), out);
}

/* ---- threads ---- */

/* The path over time, which ends with a dot; in 1/1000 of the plot, which is stretched. */
static void put_trail(const struct roofline *roofline, const struct nm_roof *steps, FILE *out)
{
	unsigned count = 0;
	double x = 0, y = 0;
	for (unsigned i = 0; i < NM_PICTURE_STEPS; i++) {
		struct spot spot = spot_of(&steps[i]);
		if (!is_known(&spot))
			continue;
		x = 1000 * nm_axis_at(&roofline->intensity, spot.intensity);
		y = 1000 - 1000 * nm_axis_at(&roofline->operations, spot.operations);
		nm_html(out, "%s%.1f,%.1f", count++ ? " " : "<polyline class=\"trail\" points=\"",
			x, y);
	}
	if (count)
		nm_html(out, "\"/><polyline class=\"trail tip\" points=\"%.1f,%.1f %.1f,%.1f\"/>\n",
			x, y, x, y);
}

static void put_trails(const struct nm_picture *picture, const struct roofline *roofline, FILE *out)
{
	size_t count = picture->picked[NM_PICKED_POINTS].count;
	nm_html(out,
		"<svg width=\"100%%\" height=\"%u\" viewBox=\"0 0 1000 1000\" "
		"preserveAspectRatio=\"none\">\n",
		HEIGHT);
	for (size_t i = 0; i < count && i < NM_PICTURE_TRAILS; i++)
		put_trail(roofline, &picture->trails[i * NM_PICTURE_STEPS], out);
	nm_html(out, "</svg>\n");
}

static void put_point(const struct nm_picture *picture, const struct roofline *roofline, size_t i,
		      FILE *out)
{
	const struct nm_seen *thread = &picture->picked[NM_PICKED_POINTS].items[i];
	const struct nm_roof *roof = &picture->roofs[i];
	struct spot spot = spot_of(roof);
	char operations[NM_AMOUNT_SIZE], intensity[NM_AMOUNT_SIZE], latency[NM_AMOUNT_SIZE];
	if (!is_known(&spot))
		return;
	double run = fmin(roof->there_s > 0 ? roof->run_s / roof->there_s : 0, 1);
	if (isfinite(spot.latency))
		nm_html(out, "<circle class=\"dot h%u\"",
			nm_axis_shade(&roofline->latency, spot.latency));
	else
		nm_html(out, "<circle class=\"dot unknown\"");
	nm_html(out, " cx=\"%.2f%%\" cy=\"%.1f\" r=\"%.1f\"><title>",
		100 * nm_axis_at(&roofline->intensity, spot.intensity),
		(1 - nm_axis_at(&roofline->operations, spot.operations)) * HEIGHT,
		DOT_LEAST + DOT_GROWS * run);
	nm_html_say(
		out,
		"%u %s: %s operations a second, %s to a byte, latency %s cycles, %.0f %% of a CPU",
		thread->id, nm_picture_comm(picture, thread->pid),
		nm_html_amount(spot.operations, operations),
		nm_html_amount(spot.intensity, intensity), nm_html_amount(spot.latency, latency),
		100 * run);
	nm_html(out, "</title></circle>\n");
}

static void put_plot(const struct nm_picture *picture, const struct roofline *roofline, FILE *out)
{
	nm_html(out, "<p class=\"measure\">\xe2\x86\x91 operations a second</p>\n");
	nm_plot_open(out, HEIGHT, "Operations a second of each thread against operations per byte");
	nm_plot_up(out, &roofline->operations, HEIGHT);
	nm_plot_across(out, &roofline->intensity, HEIGHT);
	put_diagonals(roofline, out);
	put_trails(picture, roofline, out);
	/* The busiest one on top. */
	for (size_t i = picture->picked[NM_PICKED_POINTS].count; i-- > 0;)
		put_point(picture, roofline, i, out);
	nm_plot_close(out);
	nm_html(out, "<p class=\"measure right\">operations to a byte of memory traffic "
		     "\xe2\x86\x92</p>\n");
}

void nm_show_roofline(const struct nm_picture *picture, FILE *out)
{
	struct roofline roofline = axes_of(picture);
	if (!roofline.any) {
		nm_absent(out, "This recording has no operations and memory traffic of threads: "
			       "what was sampled did not count them, or no thread was managed.");
		return;
	}
	nm_html(out,
		"<p>A dot is the mean of a thread over the recording; it is larger if the thread ran more. "
		"To the left a thread asks memory for more with each operation; lower, it gets "
		"less done. The diagonals are memory traffic of one thread. A line is the way a "
		"busy thread took over time, to its small dot.</p>\n");
	put_plot(picture, &roofline, out);
	nm_legend_open(out);
	if (roofline.any_latency)
		nm_legend_shades(out, &roofline.latency, "latency of accesses, cycles");
	else
		nm_html(out, "<li>no latency was sampled</li>");
	nm_legend_close(out);
	nm_more(out, picture->picked[NM_PICKED_POINTS].more, "thread", "threads");
}

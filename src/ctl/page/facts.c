/* SPDX-License-Identifier: MIT */
/* The subject of a recording, and its result as a few values. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "html.h"
#include "plot.h"
#include "picture.h"

static void put_begin(const struct nm_picture *picture, FILE *out)
{
	time_t seconds = (time_t)picture->start.time_s;
	char text[64] = "";
	struct tm when;
	if (!gmtime_r(&seconds, &when) || !strftime(text, sizeof(text), "%F %T UTC", &when))
		return;
	nm_html(out, "<dt>Begun</dt><dd>");
	nm_html_printf(out, "%s", text);
	nm_html(out, "</dd>\n");
}

static void put_start(const struct nm_picture *picture, FILE *out)
{
	const struct nm_recorded_start *start = &picture->start;
	if (!picture->has_start) {
		nm_html(out, "<dt>Begun</dt><dd>unknown: the first record is missing</dd>\n");
		return;
	}
	put_begin(picture, out);
	nm_html(out, "<dt>Made by</dt><dd>");
	nm_html_printf(out, "numa-migrd %.*s", (int)sizeof(start->version), start->version);
	nm_html(out, "</dd>\n<dt>Sampled</dt><dd>");
	if (picture->source)
		nm_html_printf(out, "%s", picture->source);
	else
		nm_html_printf(out, "%.*s", (int)sizeof(start->source), start->source);
	nm_html(out, "</dd>\n");
	if (start->dry_run)
		nm_html(out, "<dt>Dry run</dt><dd>decisions were made and logged, but nothing was "
			     "moved</dd>\n");
}

static void put_length(const struct nm_picture *picture, FILE *out)
{
	uint64_t intervals = picture->census->intervals;
	char text[NM_TIME_SIZE];
	nm_html(out, "<dt>Length</dt><dd>%s in %llu %s</dd>\n", nm_html_time(picture->span_s, text),
		(unsigned long long)intervals, nm_plural(intervals, "interval", "intervals"));
	nm_html(out, "<dt>End</dt><dd>");
	if (picture->end)
		nm_html_text(out, picture->end, strlen(picture->end));
	else
		nm_html(out, "not recorded: the recording is still running or was interrupted");
	if (picture->torn)
		nm_html(out, "; the last %llu bytes are incomplete and were ignored",
			(unsigned long long)picture->torn);
	nm_html(out, "</dd>\n");
}

static void put_machine(const struct nm_picture *picture, FILE *out)
{
	if (picture->nr_nodes == 0)
		return;
	nm_html(out, "<dt>Machine</dt><dd>%u %s, %u %s", picture->nr_nodes,
		nm_plural(picture->nr_nodes, "node", "nodes"), picture->nr_cpus,
		nm_plural(picture->nr_cpus, "CPU", "CPUs"));
	if (picture->memory_bytes)
		nm_html(out, ", %.3g GiB of memory", ldexp((double)picture->memory_bytes, -30));
	nm_html(out, "</dd>\n");
}

static void put_watched(const struct nm_picture *picture, FILE *out)
{
	const struct nm_census *census = picture->census;
	size_t threads = census->threads.count, processes = census->processes.count;
	nm_html(out, "<dt>Watched</dt><dd>%zu %s of %zu %s</dd>\n", threads,
		nm_plural(threads, "thread", "threads"), processes,
		nm_plural(processes, "process", "processes"));
}

/* ---- values ---- */

/* Over the first and the last 10 % of the known bins. */
static double share_in(const struct nm_picture *picture, unsigned from, unsigned to)
{
	struct nm_mean all = {0};
	for (unsigned bin = from; bin < to; bin++) {
		all.sum += picture->overall[bin].sum;
		all.weight += picture->overall[bin].weight;
	}
	return all.weight > 0 ? 100 * all.sum / all.weight : (double)NAN;
}

static void put_share(const struct nm_picture *picture, FILE *out)
{
	unsigned tenth = NM_PICTURE_BINS / 10;
	double first = share_in(picture, 0, tenth);
	double last = share_in(picture, NM_PICTURE_BINS - tenth, NM_PICTURE_BINS);
	if (isfinite(first) && isfinite(last))
		nm_html(out,
			"<li><b>%.0f %% \xe2\x86\x92 %.0f %%</b> local accesses, "
			"first and last tenth of the time</li>\n",
			first, last);
}

static void put_states(const struct nm_picture *picture, FILE *out)
{
	nm_html(out, "<li><b>%llu</b> %s</li>\n", (unsigned long long)picture->census->decisions,
		nm_plural(picture->census->decisions, "decision", "decisions"));
	for (unsigned state = 0; state < NM_SHOWN_STATES; state++)
		if (picture->states[state])
			nm_html(out, "<li><b>%llu</b> %s</li>\n",
				(unsigned long long)picture->states[state], nm_state_name(state));
	if (picture->pages_moved)
		nm_html(out, "<li><b>%llu</b> %s moved</li>\n",
			(unsigned long long)picture->pages_moved,
			nm_plural(picture->pages_moved, "page", "pages"));
}

void nm_show_facts(const struct nm_picture *picture, FILE *out)
{
	nm_html(out, "<ul class=\"values\">\n");
	put_share(picture, out);
	put_states(picture, out);
	nm_html(out, "</ul>\n<dl>\n");
	put_start(picture, out);
	put_length(picture, out);
	put_machine(picture, out);
	put_watched(picture, out);
	nm_html(out, "</dl>\n");
}

void nm_show_config(const struct nm_picture *picture, FILE *out)
{
	if (!picture->config || picture->config[0] == '\0') {
		nm_absent(out, "This recording contains no configuration file: the defaults were "
			       "used, or its first record is missing.");
		return;
	}
	nm_html(out, "<details><summary>");
	nm_html_printf(out, "%s, as the service read it",
		    picture->config_name[0] ? picture->config_name : "The configuration");
	nm_html(out, "</summary>\n<pre>");
	nm_html_text(out, picture->config, strlen(picture->config));
	nm_html(out, "</pre>%s</details>\n",
		picture->start.config_length > strlen(picture->config)
			? "<p class=\"more\">\xe2\x80\xa6 and more of it.</p>"
			: "");
}

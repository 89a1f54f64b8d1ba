/* SPDX-License-Identifier: MIT */
/* The nodes on which threads ran, and the decisions about them. */
#include <string.h>

#include "html.h"
#include "plot.h"
#include "picture.h"

#define ROW 18U
#define BAR 12U
#define LABEL_SHARE 0.07 /* minimum width of a bar with a label */
#define SLOTS 60U	 /* of time: decisions on a thread within one slot share a mark */

struct slot {
	unsigned count, states[NM_SHOWN_STATES];
	const struct nm_shown_decision *last;
};

/* ---- nodes of a thread ---- */

static void put_bar(const struct nm_picture *picture, unsigned row, unsigned from, unsigned to,
		    unsigned node, FILE *out)
{
	double x = (double)from / NM_PICTURE_BINS, width = (double)(to - from) / NM_PICTURE_BINS;
	char begin[NM_TIME_SIZE], end[NM_TIME_SIZE];
	nm_html(out,
		"<rect class=\"bar n%u\" x=\"%.2f%%\" y=\"%u\" width=\"%.2f%%\" height=\"%u\">"
		"<title>node %u, %s to %s</title></rect>",
		node % NM_HUES, 100 * x, row * ROW + (ROW - BAR) / 2, 100 * width, BAR, node,
		nm_html_time(x * picture->span_s, begin),
		nm_html_time((x + width) * picture->span_s, end));
	if (width >= LABEL_SHARE)
		nm_html(out, "<text class=\"on\" x=\"%.2f%%\" y=\"%u\">%u</text>",
			100 * (x + width / 2), row * ROW + ROW / 2 + 4, node);
}

static void put_track(const struct nm_picture *picture, size_t track, unsigned row, FILE *out)
{
	const uint16_t *nodes = &picture->tracks[track * NM_PICTURE_BINS];
	for (unsigned from = 0, to; from < NM_PICTURE_BINS; from = to) {
		to = from + 1;
		while (to < NM_PICTURE_BINS && nodes[to] == nodes[from])
			to++;
		if (nodes[from] != 0)
			put_bar(picture, row, from, to, nodes[from] - 1U, out);
	}
	nm_html(out, "\n");
}

/* ---- decisions ---- */

static bool is_of(const struct nm_shown_decision *shown, const struct nm_seen *thread)
{
	if (shown->kind == NM_DECISION_HOME)
		return shown->pids[0] == thread->pid;
	for (unsigned i = 0; i < shown->nr_threads; i++)
		if (shown->tids[i] == thread->id && shown->pids[i] == thread->pid)
			return true;
	return false;
}

static void put_words(const struct slot *slot, FILE *out)
{
	char at[NM_TIME_SIZE];
	if (slot->count == 1) {
		nm_html_printf(out, "decision %llu at %s: %s", (unsigned long long)slot->last->id,
			    nm_html_time(slot->last->at_s, at), nm_state_name(slot->last->state));
		return;
	}
	nm_html(out, "%u decisions:", slot->count);
	for (unsigned state = 0; state < NM_SHOWN_STATES; state++)
		if (slot->states[state])
			nm_html(out, " %u %s", slot->states[state], nm_state_name(state));
}

/* For one thread; NULL: decisions about pages. */
static void put_marks(const struct nm_picture *picture, const struct nm_seen *thread, unsigned row,
		      FILE *out)
{
	struct slot slots[SLOTS] = {0};
	for (size_t i = 0; i < picture->nr_decisions; i++) {
		const struct nm_shown_decision *shown = &picture->decisions[i];
		if (thread ? !is_of(shown, thread) : shown->kind != NM_DECISION_PAGES)
			continue;
		double share = picture->span_s > 0 ? shown->at_s / picture->span_s : 0;
		struct slot *slot = &slots[share < 1 ? (unsigned)(share * SLOTS) : SLOTS - 1];
		slot->count++;
		slot->states[shown->state]++;
		slot->last = shown;
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		if (slots[i].count == 0)
			continue;
		double share = picture->span_s > 0 ? slots[i].last->at_s / picture->span_s : 0;
		nm_html(out, "<use href=\"#m%u\" x=\"%.2f%%\" y=\"%u\"><title>",
			(unsigned)slots[i].last->state, 100 * (share < 1 ? share : 1),
			row * ROW + ROW / 2);
		put_words(&slots[i], out);
		nm_html(out, "</title></use>\n");
	}
}

static bool has_page_decisions(const struct nm_picture *picture)
{
	for (size_t i = 0; i < picture->nr_decisions; i++)
		if (picture->decisions[i].kind == NM_DECISION_PAGES)
			return true;
	return false;
}

/* Counts decisions on threads that are not on the plot. */
static uint64_t decisions_elsewhere(const struct nm_picture *picture)
{
	const struct nm_pick *tracks = &picture->picked[NM_PICKED_TRACKS];
	uint64_t count = 0;
	for (size_t i = 0; i < picture->nr_decisions; i++) {
		const struct nm_shown_decision *shown = &picture->decisions[i];
		bool here = shown->kind == NM_DECISION_PAGES;
		for (size_t k = 0; k < tracks->count && !here; k++)
			here = is_of(shown, &tracks->items[k]);
		count += !here;
	}
	return count;
}

/* ---- section ---- */

static void put_names(const struct nm_picture *picture, bool pages, FILE *out)
{
	const struct nm_pick *tracks = &picture->picked[NM_PICKED_TRACKS];
	nm_html(out, "<ol class=\"names\">");
	if (pages)
		nm_html(out, "<li>pages moved</li>");
	for (size_t i = 0; i < tracks->count; i++) {
		nm_html(out, "<li title=\"");
		nm_html_printf(out, "thread %u of %s (%u)", tracks->items[i].id,
			    nm_picture_comm(picture, tracks->items[i].pid), tracks->items[i].pid);
		nm_html(out, "\"><b>%u</b> ", tracks->items[i].id);
		nm_picture_put_comm(picture, tracks->items[i].pid, out);
		nm_html(out, "</li>\n");
	}
	nm_html(out, "</ol>\n");
}

static void put_lanes(const struct nm_picture *picture, bool pages, FILE *out)
{
	const struct nm_pick *tracks = &picture->picked[NM_PICKED_TRACKS];
	unsigned height = (unsigned)(tracks->count + pages) * ROW;
	nm_plot_open(out, height, "The node each thread ran on over time, and decisions");
	nm_plot_time(out, picture->span_s, height);
	for (size_t i = 0; i < tracks->count; i++)
		put_track(picture, i, (unsigned)i + pages, out);
	if (pages)
		put_marks(picture, NULL, 0, out);
	for (size_t i = 0; i < tracks->count; i++)
		put_marks(picture, &tracks->items[i], (unsigned)i + pages, out);
	nm_html(out, NM_PLOT_CLOSE);
}

static void put_legend(const struct nm_picture *picture, FILE *out)
{
	nm_html(out, NM_LEGEND_OPEN);
	nm_legend_nodes(out, picture->nr_nodes);
	for (unsigned state = 0; state < NM_SHOWN_STATES; state++)
		if (picture->states[state])
			nm_show_mark_key(state, out);
	nm_html(out, NM_LEGEND_CLOSE);
}

void nm_show_timeline(const struct nm_picture *picture, FILE *out)
{
	bool pages = has_page_decisions(picture);
	if (picture->picked[NM_PICKED_TRACKS].count == 0) {
		nm_absent(out,
			  "This recording has no threads: none was managed while it was made.");
		return;
	}
	nm_html(out,
		"<p>Each line is a thread; the busiest come first. The colour shows the node on "
		"which the thread ran; a gap means that it was not sampled. Each sign is a "
		"decision that moved the thread, and shows its verdict. If several signs "
		"overlap, only the last one is drawn.</p>\n");
	put_legend(picture, out);
	nm_html(out, "<div class=\"rows\">");
	put_names(picture, pages, out);
	put_lanes(picture, pages, out);
	nm_html(out, "</div>\n");
	nm_more(out, picture->picked[NM_PICKED_TRACKS].more, "thread", "threads");
	uint64_t elsewhere = decisions_elsewhere(picture);
	if (elsewhere)
		nm_html(out, "<p class=\"more\">%llu %s about threads that are not shown.</p>\n",
			(unsigned long long)elsewhere,
			nm_plural(elsewhere, "decision is", "decisions are"));
	if (picture->nr_decisions == 0)
		nm_html(out, "<p class=\"more\">Nothing was decided.</p>\n");
	if (picture->skipped_decisions)
		nm_html(out, "<p class=\"more\">%llu earlier decisions have no sign.</p>\n",
			(unsigned long long)picture->skipped_decisions);
}

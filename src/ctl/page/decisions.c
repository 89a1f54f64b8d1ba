/* SPDX-License-Identifier: MIT */
/* The last decisions as text, and the marks of verdicts. */
#include <string.h>

#include "html.h"
#include "plot.h"
#include "picture.h"

static const struct {
	const char *name, *sign;
} states[NM_SHOWN_STATES] = {
	[NM_VERDICT_IMPROVED] = {"improved", "<circle class=\"ink\" r=\"4.5\"/>"},
	[NM_VERDICT_NEUTRAL] = {"neutral",
				"<path class=\"ink\" d=\"M0,-4.5 L4.5,0 L0,4.5 L-4.5,0 Z\"/>"},
	[NM_VERDICT_ROLLED_BACK] = {"rolled back",
				    "<path class=\"stroke\" d=\"M-4,-4 L4,4 M-4,4 L4,-4\"/>"},
	[NM_VERDICT_CANCELLED] = {"cancelled",
				  "<rect class=\"stroke\" x=\"-3.5\" y=\"-3.5\" width=\"7\" "
				  "height=\"7\"/>"},
	[NM_VERDICT_INCONCLUSIVE] = {"inconclusive", "<circle class=\"stroke\" r=\"3.8\"/>"},
	[NM_SHOWN_OPEN] = {"without a verdict yet", "<circle class=\"ink\" r=\"2\"/>"},
	[NM_SHOWN_NOT_DONE] = {"not carried out", "<path class=\"stroke\" d=\"M-4,0 L4,0\"/>"},
};

const char *nm_state_name(unsigned state)
{
	return states[state].name;
}

void nm_show_marks(FILE *out)
{
	nm_html(out, "<svg class=\"store\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\n");
	for (unsigned state = 0; state < NM_SHOWN_STATES; state++)
		nm_html(out, "<g id=\"m%u\"><circle class=\"halo\" r=\"7\"/>%s</g>\n", state,
			states[state].sign);
	nm_html(out, "</defs></svg>\n");
}

void nm_show_mark_key(unsigned state, FILE *out)
{
	nm_html(out,
		"<li><svg class=\"key\" width=\"16\" height=\"16\"><use href=\"#m%u\" x=\"8\" "
		"y=\"8\"/></svg> %s</li>",
		state, nm_state_name(state));
}

/* ---- text ---- */

static void put_place(int node, FILE *out)
{
	if (node >= 0)
		nm_html(out, "node %d", node);
	else
		nm_html(out, "several nodes");
}

static void put_node(const struct nm_shown_decision *shown, unsigned i, FILE *out)
{
	nm_html(out, i ? "; " : "");
	if (shown->nr_threads)
		nm_html(out, "%u: ", shown->tids[i]);
	if (shown->kind != NM_DECISION_HOME)
		put_place(shown->from[i], out);
	nm_html(out, " \xe2\x86\x92 ");
	put_place(shown->to[i], out);
}

/* Writes the text of the journal; if it is not in the recording, a shorter description. */
static void put_said(const struct nm_picture *picture, const struct nm_shown_decision *shown,
		     FILE *out)
{
	static const char *const kinds[] = {
		[NM_DECISION_MIGRATE] = "moved",       [NM_DECISION_SWAP] = "swapped",
		[NM_DECISION_ROLLBACK] = "moved back", [NM_DECISION_HOME] = "placed",
		[NM_DECISION_PAGES] = "pages moved",
	};
	if (shown->said) {
		nm_html_text(out, shown->said, strlen(shown->said));
		return;
	}
	nm_html(out, "%s of ", kinds[shown->kind]);
	nm_picture_put_comm(picture, shown->pids[0], out);
	nm_html(out, ": ");
	for (unsigned i = 0; i < (shown->nr_threads ? shown->nr_threads : 1U); i++)
		put_node(shown, i, out);
}

static void put_decision(const struct nm_picture *picture, const struct nm_shown_decision *shown,
			 FILE *out)
{
	char at[NM_TIME_SIZE];
	nm_html(out, "<tr><td class=\"number\">%llu</td><td class=\"number\">%s</td><td>",
		(unsigned long long)shown->id, nm_html_time(shown->at_s, at));
	nm_html(out,
		"<svg class=\"key\" width=\"16\" height=\"16\" aria-hidden=\"true\"><use "
		"href=\"#m%u\" x=\"8\" y=\"8\"/></svg> %s</td><td>",
		(unsigned)shown->state, nm_state_name(shown->state));
	put_said(picture, shown, out);
	if (shown->judged) {
		nm_html(out, "<br/>");
		nm_html_text(out, shown->judged, strlen(shown->judged));
	}
	nm_html(out, "</td></tr>\n");
}

void nm_show_decisions(const struct nm_picture *picture, FILE *out)
{
	size_t shown =
		picture->nr_decisions < NM_PICTURE_TOLD ? picture->nr_decisions : NM_PICTURE_TOLD;
	uint64_t earlier = picture->nr_decisions - shown + picture->skipped_decisions;
	if (shown == 0) {
		nm_absent(out, "This recording has no decisions.");
		return;
	}
	if (earlier)
		nm_html(out,
			"<p>The last %zu; %llu earlier %s only in the timeline. "
			"<code>numa-migrctl dump</code> prints all.</p>\n",
			shown, (unsigned long long)earlier,
			nm_plural(earlier, "one is", "ones are"));
	nm_html(out,
		"<table><thead><tr><th class=\"number\">Decision</th><th class=\"number\">At</th>"
		"<th>Verdict</th><th>Message</th></tr></thead>\n<tbody>\n");
	for (size_t i = picture->nr_decisions - shown; i < picture->nr_decisions; i++)
		put_decision(picture, &picture->decisions[i], out);
	nm_html(out, "</tbody></table>\n");
}

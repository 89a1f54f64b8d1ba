/* SPDX-License-Identifier: MIT */
#include "report/decision_lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "policy/homes.h"
#include "report/journal.h"

#define LINE_BYTES 512
#define CPUS_BYTES 256
#define NUMBER_BYTES 32

/* C libraries print NaN in two ways. */
static const char *number(double value, char text[static NUMBER_BYTES])
{
	if (isnan(value))
		return "-";
	(void)snprintf(text, NUMBER_BYTES, "%.17g", value);
	return text;
}
#define NUMBER(value) number((value), (char[NUMBER_BYTES]){0})

__attribute__((format(printf, 3, 4))) static void
add_line(struct nm_decision_lines *lines, const char *kind, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list arguments;
	if (!lines)
		return;
	int used = snprintf(text, sizeof(text), "%s interval=%" PRIu64 " ", kind, lines->interval);
	va_start(arguments, format);
	(void)vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
	va_end(arguments);
	lines->digest = nm_hash_add(lines->digest, text, strlen(text) + 1);
	if (lines->out)
		(void)fprintf(lines->out, "%s\n", text);
}

static void add_step(struct nm_decision_lines *lines, const struct nm_step *step,
		     const struct nm_receipt_step *result)
{
	char cpus[CPUS_BYTES];
	(void)hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), step->target);
	add_line(lines, "step", "pid=%u tid=%u cpu=%d>%d node=%d>%d cpus=%s applied=%d error=%d",
		 step->pid, step->tid, step->cpu_from, step->cpu_to, step->node_from, step->node_to,
		 cpus, result->applied, result->error);
}

static void add_home(struct nm_decision_lines *lines, const struct nm_decision *decision)
{
	const struct nm_home_reason *home = &decision->home;
	add_line(lines, "home",
		 "id=%" PRIu64 " pid=%u node=%d reason=%d threads=%u demand=%s distance=%s>%s "
		 "load=%s bytes_away=%" PRIu64,
		 decision->id, decision->steps[0].pid, decision->steps[0].node_to,
		 (int)home->reason, home->threads, NUMBER(home->demand_cpus),
		 NUMBER(home->distance_now), NUMBER(home->distance_home), NUMBER(home->load),
		 home->bytes_away);
}

static void add_pages(struct nm_decision_lines *lines, const struct nm_decision *decision)
{
	const struct nm_step *step = &decision->steps[0];
	add_line(lines, "pages",
		 "id=%" PRIu64 " undoes=%" PRIu64 " pid=%u reason=%d node=%d>%d pages=%" PRIu64
		 " exclusivity=%s",
		 decision->id, decision->undoes, step->pid, (int)decision->pages.reason,
		 step->node_from, step->node_to, decision->pages.pages,
		 NUMBER(decision->pages.exclusivity));
}

static void add_move(struct nm_decision_lines *lines, const struct nm_decision *decision,
		     const struct nm_receipt *receipt)
{
	add_line(lines, "decision",
		 "id=%" PRIu64 " kind=%s policy=%s undoes=%" PRIu64
		 " tickets=%s draw=%s gain=%s candidates=%zu applied=%d",
		 decision->id, nm_decision_kind_name(decision->kind),
		 nm_policy_name(decision->policy), decision->undoes,
		 NUMBER(decision->tickets.total), NUMBER(decision->draw), NUMBER(decision->gain),
		 decision->nr_candidates, receipt->applied);
	for (unsigned i = 0; i < decision->nr_steps; i++)
		add_step(lines, &decision->steps[i], &receipt->steps[i]);
}

void nm_lines_decision(struct nm_decision_lines *lines, const struct nm_decision *decision,
		       const struct nm_receipt *receipt)
{
	if (decision->kind == NM_DECISION_HOME)
		add_home(lines, decision);
	else if (decision->kind == NM_DECISION_PAGES)
		add_pages(lines, decision);
	else
		add_move(lines, decision, receipt);
}

void nm_lines_verdict(struct nm_decision_lines *lines, const struct nm_verdict *verdict)
{
	if (verdict->of == NM_DECISION_PAGES) {
		add_line(lines, "pages-verdict",
			 "id=%" PRIu64 " verdict=%s waited=%u together=%u moved=%" PRIu64,
			 verdict->decision, nm_verdict_kind_name(verdict->kind), verdict->intervals,
			 verdict->together, verdict->results.moved);
		return;
	}
	if (verdict->of == NM_DECISION_HOME) {
		add_line(lines, "home-verdict",
			 "id=%" PRIu64 " pid=%u verdict=%s judged_by=%d change=%s pages=%" PRIu64,
			 verdict->decision, verdict->threads[0].pid,
			 nm_verdict_kind_name(verdict->kind), (int)verdict->judged_by,
			 NUMBER(verdict->change), verdict->results.moved);
		return;
	}
	add_line(lines, "verdict",
		 "id=%" PRIu64 " verdict=%s of=%s waited=%u by_performance=%d by_sharing=%d",
		 verdict->decision, nm_verdict_kind_name(verdict->kind),
		 nm_decision_kind_name(verdict->of), verdict->intervals, verdict->by_performance,
		 nm_policy_is_by_sharing(verdict->policy));
}

void nm_lines_home_end(struct nm_decision_lines *lines, const struct nm_home_action *action)
{
	add_line(lines, "home-end", "id=%" PRIu64 " pid=%u node=%d", action->id, action->pid,
		 action->home);
}

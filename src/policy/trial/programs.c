/* SPDX-License-Identifier: MIT */
/* The control group: results of programs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trial.h"

#define DAY_NS (24 * 3600 * NM_NSEC_PER_SEC)
#define BARRED_DAYS_MOST 30U
/* Of the control units of a program: if more outlive the window, the others are not typical. */
#define OUTLIVING_MOST 0.05

void nm_trial_new(uint64_t seed, struct nm_trial **ret)
{
	nm_auto(nm_trial_freep) struct nm_trial *trial = nm_must(calloc(1, sizeof(*trial)));
	trial->process_of = nm_tidmap_new();
	nm_rng_seed(&trial->rng, seed);
	trial->day = -1;
	*ret = NM_TAKE(trial);
}

void nm_trial_free(struct nm_trial *trial)
{
	if (!trial)
		return;
	nm_trial_forget(trial);
	for (size_t i = 0; i < trial->nr_programs; i++)
		free(trial->programs[i]);
	free(trial->programs);
	free(trial->processes);
	nm_tidmap_free(trial->process_of);
	free(trial);
}

static void clear_span(struct nm_trial *trial, enum nm_trial_span span)
{
	memset(trial->conditions[span], 0, sizeof(trial->conditions[span]));
	for (size_t i = 0; i < trial->nr_programs; i++) {
		struct nm_trial_program *program = trial->programs[i];
		memset(program->sums[span], 0, sizeof(program->sums[span]));
		program->controls[span] = program->outlived[span] = 0;
	}
}

void nm_trial_configure(struct nm_trial *trial, double control_share, double tolerance)
{
	/* Work may change over time: units of different shares are not comparable. */
	if (control_share != trial->control_share)
		clear_span(trial, NM_TRIAL_EVIDENCE);
	trial->control_share = control_share;
	trial->tolerance = tolerance;
}

void nm_trial_raise(struct nm_trial *trial, double control_share, uint64_t now_ns,
		    uint64_t duration_ns)
{
	clear_span(trial, NM_TRIAL_RAISED);
	trial->raised = (struct nm_trial_period){control_share, now_ns, now_ns + duration_ns};
	trial->period++;
}

void nm_trial_lower(struct nm_trial *trial, uint64_t now_ns)
{
	if (now_ns >= trial->raised.until_ns)
		return;
	trial->raised.until_ns = now_ns;
	trial->period++;
}

struct nm_trial_period nm_trial_period(const struct nm_trial *trial)
{
	return trial->raised;
}

bool nm_trial_is_on(const struct nm_trial *trial, uint64_t now_ns)
{
	return trial->control_share > 0 || now_ns < trial->raised.until_ns;
}

static struct nm_trial_program *find(const struct nm_trial *trial, uint64_t domain,
				     const char *comm)
{
	for (size_t i = 0; i < trial->nr_programs; i++)
		if (trial->programs[i]->domain == domain &&
		    strcmp(trial->programs[i]->comm, comm) == 0)
			return trial->programs[i];
	return NULL;
}

const struct nm_trial_program *nm_trial_program(const struct nm_trial *trial, uint64_t domain,
						const char *comm)
{
	return find(trial, domain, comm);
}

struct nm_trial_program *nm_trial_program_for(struct nm_trial *trial, uint64_t domain,
					      const char *comm)
{
	struct nm_trial_program *program = find(trial, domain, comm);
	size_t of_domain = 0;
	if (program)
		return program;
	for (size_t i = 0; i < trial->nr_programs; i++)
		of_domain += trial->programs[i]->domain == domain;
	if (of_domain >= NM_TRIAL_PROGRAMS_MOST - trial->nr_programs)
		return NULL;
	NM_RESERVE(trial->programs, trial->programs_capacity, trial->nr_programs);
	program = nm_must(calloc(1, sizeof(*program)));
	program->domain = domain;
	program->announced = true;
	(void)snprintf(program->comm, sizeof(program->comm), "%s", comm);
	return trial->programs[trial->nr_programs++] = program;
}

size_t nm_trial_programs(const struct nm_trial *trial, struct nm_trial_program *const **ret)
{
	*ret = trial->programs;
	return trial->nr_programs;
}

const struct nm_trial_program *nm_trial_next_loss(struct nm_trial *trial)
{
	for (size_t i = 0; trial->has_news && i < trial->nr_programs; i++)
		if (!trial->programs[i]->announced) {
			trial->programs[i]->announced = true;
			return trial->programs[i];
		}
	trial->has_news = false;
	return NULL;
}

bool nm_trial_program_result(const struct nm_trial_program *program, enum nm_trial_span span,
			     enum nm_trial_measure measure, struct nm_trial_difference *ret)
{
	if (measure != NM_TRIAL_INSTRUCTION &&
	    program->outlived[span] > OUTLIVING_MOST * program->controls[span])
		return false;
	return nm_trial_compare(program->sums[span][measure], ret);
}

bool nm_trial_result(const struct nm_trial *trial, enum nm_trial_span span,
		     enum nm_trial_measure measure, struct nm_trial_difference *ret)
{
	nm_autofree struct nm_trial_row *rows =
		nm_must(calloc(trial->nr_programs + 1, sizeof(*rows)));
	size_t count = 0;
	*ret = (struct nm_trial_difference){.mean = NAN, .half = NAN};
	for (size_t i = 0; i < trial->nr_programs; i++) {
		const struct nm_trial_program *program = trial->programs[i];
		rows[count].domain = program->domain;
		count += nm_trial_program_result(program, span, measure, &rows[count].difference);
		for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++)
			ret->units[arm] += program->sums[span][measure][arm].n;
	}
	return nm_trial_total(rows, count, ret);
}

void nm_trial_follow_day(struct nm_trial *trial, int day)
{
	if (day != trial->day && trial->day >= 0) {
		trial->has_yesterday =
			nm_trial_result(trial, NM_TRIAL_TODAY, NM_TRIAL_CPU, &trial->yesterday);
		clear_span(trial, NM_TRIAL_TODAY);
	}
	trial->day = day;
}

const struct nm_trial_difference *nm_trial_yesterday(const struct nm_trial *trial)
{
	return trial->has_yesterday ? &trial->yesterday : NULL;
}

const struct nm_trial_sum *nm_trial_sums(const struct nm_trial *trial,
					 enum nm_trial_measure measure, enum nm_trial_arm arm)
{
	return &trial->sums[measure][arm];
}

const struct nm_trial_conditions *
nm_trial_conditions(const struct nm_trial *trial, enum nm_trial_span span, enum nm_trial_arm arm)
{
	return &trial->conditions[span][arm];
}

static void clear_evidence(struct nm_trial_program *program)
{
	memset(program->sums[NM_TRIAL_EVIDENCE], 0, sizeof(program->sums[NM_TRIAL_EVIDENCE]));
	program->controls[NM_TRIAL_EVIDENCE] = program->outlived[NM_TRIAL_EVIDENCE] = 0;
}

/* After a loss evidence starts anew, and half of the units are control, until a loss is excluded in
 * both measures. */
static void judge(struct nm_trial *trial, struct nm_trial_program *program, enum nm_trial_span span,
		  uint64_t now_ns)
{
	const double most = log1p(trial->tolerance);
	struct nm_trial_difference difference;
	unsigned excluded = 0;
	for (unsigned measure = NM_TRIAL_ELAPSED; measure <= NM_TRIAL_CPU; measure++) {
		if (!nm_trial_program_result(program, span, measure, &difference))
			continue;
		excluded += difference.mean + difference.half < most;
		/* False without an interval. */
		if (!(difference.mean - difference.half > most))
			continue;
		unsigned days =
			program->nr_losses < 5 ? 1U << program->nr_losses : BARRED_DAYS_MOST;
		program->nr_losses++;
		program->barred_until_ns = now_ns + days * DAY_NS;
		program->loss = difference.mean;
		program->lost_in = measure;
		program->announced = false;
		trial->has_news = true;
		clear_evidence(program);
		for (size_t i = 0; i < trial->nr_processes; i++)
			trial->processes[i].barred |= trial->processes[i].program == program;
		return;
	}
	if (program->nr_losses > 0 && span == NM_TRIAL_EVIDENCE && excluded == 2) {
		program->nr_losses = 0;
		clear_evidence(program); /* of another share */
	}
}

static void keep_part(struct nm_trial *trial, const struct nm_trial_unit *unit,
		      const struct nm_trial_part *part, enum nm_trial_span span)
{
	struct nm_trial_program *program = part->program;
	if (unit->arm == NM_TRIAL_CONTROL) {
		program->controls[span]++;
		program->outlived[span] += part->outlived;
	}
	for (unsigned measure = 0; measure < NM_TRIAL_MEASURES; measure++) {
		double value = part->sum[measure] / part->n[measure];
		if (part->n[measure] == 0 || (part->outlived && measure != NM_TRIAL_INSTRUCTION))
			continue;
		nm_trial_sum_add(&program->sums[span][measure][unit->arm], value);
		if (span != NM_TRIAL_EVIDENCE)
			nm_trial_sum_add(&trial->sums[measure][unit->arm], value);
	}
}

void nm_trial_keep(struct nm_trial *trial, struct nm_trial_unit *unit, uint64_t now_ns)
{
	/* Those of a period that was interrupted do not count. */
	bool counts = !unit->period || unit->period == trial->period;
	enum nm_trial_span span = unit->period ? NM_TRIAL_RAISED : NM_TRIAL_EVIDENCE;
	for (const struct nm_trial_part *part = unit->parts; counts && part; part = part->next) {
		/* Neither arm is decided about any more. */
		if (now_ns < part->program->barred_until_ns)
			continue;
		keep_part(trial, unit, part, span);
		if (!unit->period)
			keep_part(trial, unit, part, NM_TRIAL_TODAY);
		judge(trial, part->program, span, now_ns);
	}
	nm_trial_unit_free(unit);
}

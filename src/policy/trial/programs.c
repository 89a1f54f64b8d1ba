/* SPDX-License-Identifier: MIT */
/* The control group: results of programs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draws.h"

#define DAY_NS (24 * 3600 * NM_NSEC_PER_SEC)
#define BARRED_DAYS_MOST 30U
#define STALE_NS DAY_NS
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

int nm_trial_extend(struct nm_trial *trial, double control_share, uint64_t until_ns)
{
	if (control_share != trial->raised.control_share)
		return -EBUSY;
	if (until_ns > trial->raised.until_ns)
		trial->raised.until_ns = until_ns;
	return 0;
}

bool nm_trial_is_raised(const struct nm_trial *trial, uint64_t now_ns)
{
	return now_ns < trial->raised.until_ns;
}

void nm_trial_lower(struct nm_trial *trial, uint64_t now_ns)
{
	if (!nm_trial_is_raised(trial, now_ns))
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
	return trial->control_share > 0 || nm_trial_is_raised(trial, now_ns);
}

/* ---- sums ---- */

/* If many of its control units outlive the window, the others are not typical. */
static bool is_typical(const struct nm_trial_program *program, enum nm_trial_span span)
{
	return program->outlived[span] <= OUTLIVING_MOST * program->controls[span];
}

/* Adds the units of an arm of a program, as nm_trial_sums() describes them. */
static void add_bounded(struct nm_trial_sum *sum, const struct nm_trial_program *program,
			enum nm_trial_measure measure, enum nm_trial_arm arm)
{
	const struct nm_trial_sum *sums = program->sums[NM_TRIAL_ALWAYS][measure];
	const struct nm_trial_sum *of_arm = &sums[arm];
	struct nm_trial_difference found;
	if (!nm_trial_compare(sums, &found))
		return;
	double mean = 0, own_mean = of_arm->sum / of_arm->n;
	if (arm == NM_TRIAL_TREATED && is_typical(program, NM_TRIAL_ALWAYS))
		mean = nm_trial_clip(found.mean);
	sum->n += of_arm->n;
	sum->sum += of_arm->n * mean;
	sum->squares += fmax(of_arm->squares - of_arm->n * own_mean * own_mean, 0) +
			of_arm->n * mean * mean;
}

struct nm_trial_sum nm_trial_sums(const struct nm_trial *trial, enum nm_trial_measure measure,
				  enum nm_trial_arm arm)
{
	struct nm_trial_sum sum = trial->sums[measure][arm];
	for (size_t i = 0; i < trial->nr_programs; i++)
		add_bounded(&sum, trial->programs[i], measure, arm);
	return sum;
}

/* ---- the table ---- */

static struct nm_trial_program *find(const struct nm_trial *trial, uint64_t domain, uint32_t uid,
				     const char *comm)
{
	for (size_t i = 0; i < trial->nr_programs; i++)
		if (trial->programs[i]->domain == domain && trial->programs[i]->uid == uid &&
		    strcmp(trial->programs[i]->comm, comm) == 0)
			return trial->programs[i];
	return NULL;
}

const struct nm_trial_program *nm_trial_program(const struct nm_trial *trial, uint64_t domain,
						uint32_t uid, const char *comm)
{
	return find(trial, domain, uid, comm);
}

bool nm_trial_is_barred(const struct nm_trial_program *program, uint64_t now_ns)
{
	return program && now_ns < program->barred_until_ns;
}

/* ---- room ---- */

/* Programs whose results nobody waits for. */
static bool may_make_room(const struct nm_trial_program *program, uint64_t now_ns)
{
	return program->parts == 0 && program->announced && !program->bar_applies &&
	       !nm_trial_is_barred(program, now_ns);
}

static bool is_stale(const struct nm_trial_program *program, uint64_t now_ns)
{
	return may_make_room(program, now_ns) && now_ns - program->drawn_ns >= STALE_NS;
}

/* The programs of which one makes room. */
enum scope { OF_ALL, OF_DOMAIN, OF_USER };

/* Returns the index of the program that was drawn longest ago, or the number of programs. */
static size_t find_oldest(const struct nm_trial *trial, const struct nm_trial_candidate *one,
			  enum scope scope, uint64_t now_ns)
{
	size_t oldest = trial->nr_programs;
	for (size_t i = 0; i < trial->nr_programs; i++) {
		const struct nm_trial_program *program = trial->programs[i];
		if (!may_make_room(program, now_ns) ||
		    (scope != OF_ALL && program->domain != one->domain) ||
		    (scope == OF_USER && program->uid != one->uid))
			continue;
		if (oldest == trial->nr_programs ||
		    program->drawn_ns < trial->programs[oldest]->drawn_ns)
			oldest = i;
	}
	return oldest;
}

/* A user with half of the domain's programs gives up one of them. */
static enum scope scope_in_domain(const struct nm_trial *trial,
				  const struct nm_trial_candidate *one)
{
	size_t of_domain = 0, of_user = 0;
	for (size_t i = 0; i < trial->nr_programs; i++) {
		const struct nm_trial_program *program = trial->programs[i];
		of_domain += program->domain == one->domain;
		of_user += program->domain == one->domain && program->uid == one->uid;
	}
	return 2 * of_user >= of_domain ? OF_USER : OF_DOMAIN;
}

static void remove_program(struct nm_trial *trial, size_t index)
{
	struct nm_trial_program *program = trial->programs[index];
	for (unsigned measure = 0; measure < NM_TRIAL_MEASURES; measure++)
		for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++)
			add_bounded(&trial->sums[measure][arm], program, measure, arm);
	for (size_t i = 0; i < trial->nr_processes; i++)
		if (trial->processes[i].program == program)
			trial->processes[i].program = NULL;
	trial->programs[index] = trial->programs[--trial->nr_programs];
	free(program);
}

/* Returns whether there is room for another program of the domain, after one has made it if
 * necessary. */
static bool make_room(struct nm_trial *trial, const struct nm_trial_candidate *one, uint64_t now_ns)
{
	struct nm_quota quota = {.limit = NM_TRIAL_PROGRAMS_MOST};
	for (size_t i = 0; i < trial->nr_programs; i++)
		if (!is_stale(trial->programs[i], now_ns))
			nm_quota_count(&quota, one->domain, trial->programs[i]->domain, 1);
	bool granted = nm_quota_permits(&quota, one->domain);
	if (granted && trial->nr_programs < NM_TRIAL_PROGRAMS_MOST)
		return true;
	size_t oldest =
		find_oldest(trial, one, granted ? OF_ALL : scope_in_domain(trial, one), now_ns);
	if (oldest == trial->nr_programs)
		return false;
	remove_program(trial, oldest);
	return true;
}

struct nm_trial_program *nm_trial_program_for(struct nm_trial *trial,
					      const struct nm_trial_candidate *one, uint64_t now_ns)
{
	struct nm_trial_program *program = find(trial, one->domain, one->uid, one->comm);
	if (!program && make_room(trial, one, now_ns)) {
		NM_RESERVE(trial->programs, trial->programs_capacity, trial->nr_programs);
		program = nm_must(calloc(1, sizeof(*program)));
		program->domain = one->domain;
		program->uid = one->uid;
		program->announced = true;
		(void)snprintf(program->comm, sizeof(program->comm), "%s", one->comm);
		trial->programs[trial->nr_programs++] = program;
	}
	if (program)
		program->drawn_ns = now_ns;
	return program;
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

const struct nm_trial_program *nm_trial_next_retry(struct nm_trial *trial, uint64_t now_ns)
{
	for (size_t i = 0; trial->nr_bars > 0 && i < trial->nr_programs; i++) {
		struct nm_trial_program *program = trial->programs[i];
		if (!program->bar_applies || nm_trial_is_barred(program, now_ns))
			continue;
		program->bar_applies = false;
		trial->nr_bars--;
		return program;
	}
	return NULL;
}

bool nm_trial_program_result(const struct nm_trial_program *program, enum nm_trial_span span,
			     enum nm_trial_measure measure, struct nm_trial_difference *ret)
{
	return is_typical(program, span) && nm_trial_compare(program->sums[span][measure], ret);
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
	if (day != trial->day && trial->day >= 0)
		clear_span(trial, NM_TRIAL_TODAY);
	trial->day = day;
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
		trial->nr_bars += !program->bar_applies;
		program->bar_applies = true;
		clear_evidence(program);
		return;
	}
	if (program->nr_losses > 0 && span == NM_TRIAL_EVIDENCE && excluded == 2) {
		program->nr_losses = 0;
		clear_evidence(program); /* of another share */
	}
}

static void keep_part(const struct nm_trial_unit *unit, const struct nm_trial_part *part,
		      enum nm_trial_span span)
{
	struct nm_trial_program *program = part->program;
	if (unit->arm == NM_TRIAL_CONTROL) {
		program->controls[span]++;
		program->outlived[span] += part->outlived;
	}
	for (unsigned measure = 0; !part->outlived && measure < NM_TRIAL_MEASURES; measure++) {
		double value = part->sum[measure] / part->n[measure];
		if (part->n[measure] > 0)
			nm_trial_sum_add(&program->sums[span][measure][unit->arm], value);
	}
}

void nm_trial_keep(struct nm_trial *trial, struct nm_trial_unit *unit, uint64_t now_ns)
{
	/* Those of a period that was interrupted do not count. */
	bool counts = !unit->period || unit->period == trial->period;
	enum nm_trial_span span = unit->period ? NM_TRIAL_RAISED : NM_TRIAL_EVIDENCE;
	for (const struct nm_trial_part *part = unit->parts; counts && part; part = part->next) {
		/* Neither arm is decided about any more. */
		if (nm_trial_is_barred(part->program, now_ns))
			continue;
		keep_part(unit, part, span);
		keep_part(unit, part, NM_TRIAL_ALWAYS);
		if (!unit->period)
			keep_part(unit, part, NM_TRIAL_TODAY);
		judge(trial, part->program, span, now_ns);
	}
	nm_trial_unit_free(unit);
}

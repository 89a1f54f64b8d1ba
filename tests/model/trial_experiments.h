/* SPDX-License-Identifier: MIT */
/* Simulated experiments with the control group, for test_trial_compare and nm_trials. */
#ifndef NM_TRIAL_EXPERIMENTS_H
#define NM_TRIAL_EXPERIMENTS_H

#include <math.h>
#include <stdio.h>

#include "policy/trial.h"

enum shape { SHAPE_NORMAL, SHAPE_HEAVY, SHAPE_BIMODAL, SHAPES };
static const char *const shape_names[SHAPES] = {"normal", "t, 3 degrees", "bimodal"};

struct experiment {
	enum shape shape;
	double deviation;   /* of the logarithm, of one process */
	unsigned processes; /* of a unit, at most */
	double control_share;
	double effect;	/* of the treatment, on the logarithm */
	unsigned units; /* of a run; there is a look after each */
	unsigned runs;
};

static inline double draw_normal(struct nm_rng *rng)
{
	double u = 1 - nm_rng_unit(rng), v = nm_rng_unit(rng);
	return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* Mean 0 and variance 1. Bimodal: one run in twenty takes longer. */
static inline double draw_value(struct nm_rng *rng, enum shape shape)
{
	if (shape == SHAPE_NORMAL)
		return draw_normal(rng);
	if (shape == SHAPE_BIMODAL)
		return ((nm_rng_unit(rng) < 0.05) - 0.05) / sqrt(0.05 * 0.95);
	double squares = 0;
	for (unsigned i = 0; i < 3; i++) {
		double one = draw_normal(rng);
		squares += one * one;
	}
	return draw_normal(rng) / sqrt(squares / 3) / sqrt(3);
}

/* Half of the variance is common to the processes of a unit. */
static inline double draw_unit(struct nm_rng *rng, const struct experiment *one)
{
	uint64_t processes = 1 + nm_rng_below(rng, one->processes);
	double common = draw_value(rng, one->shape), own = 0;
	for (uint64_t i = 0; i < processes; i++)
		own += draw_value(rng, one->shape);
	return one->deviation * sqrt(0.5) * (common + own / (double)processes);
}

/* Returns how many runs ever excluded the true effect. */
static inline unsigned count_errors(const struct experiment *one, uint64_t seed)
{
	unsigned errors = 0;
	for (unsigned run = 0; run < one->runs; run++) {
		struct nm_trial_sum sums[NM_TRIAL_ARMS] = {{0}};
		struct nm_trial_difference found;
		struct nm_rng rng;
		bool excluded = false;
		nm_rng_seed(&rng, seed + run);
		for (unsigned i = 0; i < one->units && !excluded; i++) {
			bool treated = nm_rng_unit(&rng) >= one->control_share;
			nm_trial_sum_add(&sums[treated ? NM_TRIAL_TREATED : NM_TRIAL_CONTROL],
					 draw_unit(&rng, one) + (treated ? one->effect : 0));
			excluded = nm_trial_compare(sums, &found) && !isnan(found.half) &&
				   fabs(found.mean - one->effect) > found.half;
		}
		errors += excluded;
	}
	return errors;
}

/*
 * Runs processes of one program, each a unit, until it is barred. Returns the number of units, or 0
 * if that does not happen.
 */
static inline unsigned units_until_barred(const struct experiment *one, uint64_t seed)
{
	struct nm_trial *trial;
	struct nm_rng rng;
	unsigned units = 0;
	nm_trial_new(seed, &trial);
	nm_rng_seed(&rng, ~seed);
	nm_trial_configure(trial, one->control_share, 0.05);
	for (unsigned i = 1; i <= one->units && !units; i++) {
		struct nm_trial_candidate process = {.pid = i,
						     .start_ticks = i,
						     .parent = 1000000 + i,
						     .comm = "program",
						     .takes_part = true};
		enum nm_trial_answer answer = nm_trial_draw(trial, &process, 0);
		double effect = answer == NM_TRIAL_LEAVE ? 0 : one->effect;
		uint64_t ran_ns = (uint64_t)(1e10 * exp(draw_unit(&rng, one) + effect));
		nm_trial_thread_ended(trial, i, ran_ns, ran_ns);
		nm_trial_process_ended(trial, i, ran_ns);
		if (nm_trial_next_loss(trial))
			units = i;
	}
	nm_trial_free(trial);
	return units;
}

#endif

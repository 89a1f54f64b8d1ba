/* SPDX-License-Identifier: MIT */
/* nm_trials: all simulated experiments with the control group, of which test_trial_compare runs a
 * part. Prints a table; fails if an error rate is above its limit. Takes some minutes. */
#include "trial_experiments.h"

static const double deviations[] = {0.05, 0.2, 0.5, 1.5}, shares[] = {0.05, 0.5};
static const unsigned processes[] = {1, 10, 50};

static bool run_errors(double effect, unsigned limit)
{
	unsigned most = 0;
	printf("\nTrue effect %g: runs of 1,000 that ever excluded it; limit %u\n"
	       "| values | processes per unit | control | sd 0.05 | 0.2 | 0.5 | 1.5 |\n",
	       effect, limit);
	for (unsigned shape = 0; shape < SHAPES; shape++)
		for (size_t p = 0; p < NM_ARRAY_SIZE(processes); p++)
			for (size_t s = 0; s < NM_ARRAY_SIZE(shares); s++) {
				printf("| %s | 1 to %u | %g %% |", shape_names[shape], processes[p],
				       100 * shares[s]);
				for (size_t d = 0; d < NM_ARRAY_SIZE(deviations); d++) {
					struct experiment one = {.shape = shape,
								 .deviation = deviations[d],
								 .processes = processes[p],
								 .control_share = shares[s],
								 .effect = effect,
								 .units = processes[p] == 1 ? 5000
											    : 1000,
								 .runs = 1000};
					unsigned errors = count_errors(&one, 1);
					most = errors > most ? errors : most;
					printf(" %u |", errors);
				}
				printf("\n");
				(void)fflush(stdout);
			}
	printf("most: %u\n", most);
	return most <= limit;
}

static int compare_units(const void *left, const void *right)
{
	const unsigned *a = left, *b = right;
	return NM_COMPARE(*a, *b);
}

/* limit: units, for a loss; otherwise programs that may be barred. */
static bool run_bars(double effect, double share, unsigned limit)
{
	enum { RUNS = 1000 };
	unsigned units[RUNS], barred = 0;
	struct experiment one = {.deviation = 0.1,
				 .processes = 1,
				 .control_share = share,
				 .effect = effect,
				 .units = 5000};
	for (unsigned run = 0; run < RUNS; run++) {
		units[run] = units_until_barred(&one, run);
		barred += units[run] > 0;
	}
	qsort(units, RUNS, sizeof(*units), compare_units);
	printf("loss %g, %g %% control: %u of 1,000 programs barred", effect, 100 * share, barred);
	if (effect > 0)
		printf(", after %u units (median), %u (99 %%), %u (most)", units[RUNS / 2],
		       units[RUNS * 99 / 100], units[RUNS - 1]);
	printf("\n");
	return effect > 0 ? barred == RUNS && units[RUNS - 1] <= limit : barred <= limit;
}

int main(void)
{
	bool ok = run_errors(0, 65);
	ok = run_errors(-0.2, 60) && ok;
	printf("\n");
	ok = run_bars(0.2, 0.5, 100) && ok;
	ok = run_bars(0.2, 0.05, 1000) && ok;
	ok = run_bars(0, 0.5, 10) && ok;
	ok = run_bars(0, 0.05, 10) && ok;
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

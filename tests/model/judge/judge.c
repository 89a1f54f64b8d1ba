/* SPDX-License-Identifier: MIT */
/*
 * nm_judge [-n SEEDS] [-s SEED] [-v | -c | -m | -k | -a] [SCENARIO…]: how often policy "auto" is as good
 * as the better of doing nothing and the kernel, and whether its verdicts are right, in the model.
 * Prints `name value unit` lines; -v prints every row and every lost run on standard error; -c
 * judges the control group instead; -m and -k print rows of the tables in docs/simulation.md: of all
 * policies, and of "auto" beside the kernel against the kernel alone; -a prints what becomes of
 * moved threads and pages, summed over the scenarios. Not installed.
 */
#include "judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "report/journal.h"

#define WON_WITHIN 1.01	  /* relative to the time of the better one */
#define JUDGED_OVER_S 2.0 /* before a verdict */
#define KEPT_FOR_S 3.0	  /* after it */
#define COUNTS 0.05	  /* minimum change of an improved or worse decision */
#define TOLERANCE 0.025	  /* tolerance on both sides of it */
#define ORACLE_GAINS 0.01 /* minimum gain of the oracle, relative to the time */

static const double wanders[] = {0, 0.02, 0.1};
#define NR_WANDERS NM_ARRAY_SIZE(wanders)

#define THREADS(policy) "threads: { policy = \"" policy "\"; };"
#define PAGES " pages: { policy = \"exclusivity\"; };"
#define AUTO THREADS("auto")

enum {
	BASELINE,
	KERNEL,
	A_NODE_EACH,
	IN_ORDER,
	FIRST_AUTO,
	BESIDE_KERNEL,
	NO_PMU,
	BESIDE_KERNEL_NO_PMU,
	FIRST_OTHER = FIRST_AUTO + 5
};
static const struct row {
	struct nm_sim_policy policy;
	bool no_pmu;
	bool in_document; /* a column of the table of -m */
} rows[] = {
	[BASELINE] = {.policy = {.name = "baseline"}},
	[KERNEL] = {.policy = {.name = "kernel", .numa_balancing = true}, .in_document = true},
	[A_NODE_EACH] = {.policy = {.name = "node-each",
				    .placed = true,
				    .placement = NM_SIM_PLACE_DIRECT}},
	[IN_ORDER] = {.policy = {.name = "in-order",
				 .placed = true,
				 .placement = NM_SIM_PLACE_ORACLE}},
	[FIRST_AUTO] = {.policy = {.name = "auto", .config = AUTO}, .in_document = true},
	[BESIDE_KERNEL] = {.policy = {.name = "auto+kernel",
				      .config = AUTO,
				      .numa_balancing = true},
			   .in_document = true},
	[NO_PMU] = {.policy = {.name = "auto-no-pmu", .config = AUTO},
		    .no_pmu = true,
		    .in_document = true},
	[BESIDE_KERNEL_NO_PMU] = {.policy = {.name = "auto+kernel-no-pmu",
					     .config = AUTO,
					     .numa_balancing = true},
				  .no_pmu = true},
	{.policy = {.name = "auto+pages", .config = AUTO PAGES}},
	/* Rows to compare "auto" with, which is not judged by them. */
	[FIRST_OTHER] = {.policy = {.name = "lbma", .config = THREADS("lbma")},
			 .in_document = true},
	{.policy = {.name = "imar2", .config = THREADS("imar2")}},
	{.policy = {.name = "imar2+pages", .config = THREADS("imar2") PAGES}, .in_document = true},
	{.policy = {.name = "imar2+kernel", .config = THREADS("imar2"), .numa_balancing = true}},
	{.policy = {.name = "kmaf+pages", .config = THREADS("kmaf") PAGES}, .in_document = true},
};
#define NR_ROWS NM_ARRAY_SIZE(rows)

struct count {
	unsigned of, all;
};

/* Of the changes of a row, relative to the baseline. */
struct changes {
	double sum, squares;
};

struct tally {
	struct count won, right;
	struct count unverified;      /* of all verdicts */
	struct count inconclusive[2]; /* of those with a measurement before; with and without a PMU */
	double gained[NR_ROWS];	      /* seconds, summed over runs with an oracle */
	double oracle_gained;
	struct changes change[NR_ROWS][NR_WANDERS];
	struct count row_won[NR_ROWS][NR_WANDERS];
};

struct judge {
	const struct judge_scenario *scenario;
	const struct nm_sim_machine *machine;
	unsigned seeds;
	uint64_t first_seed;
	bool verbose, control, document, harm, aftermath;
};

static void add_count(struct count *to, struct count from)
{
	to->of += from.of;
	to->all += from.all;
}

static void add_change(struct changes *to, double change)
{
	to->sum += change;
	to->squares += change * change;
}

static double share(struct count count)
{
	return count.all ? (double)count.of / count.all : (double)NAN;
}

/* ---- runs ---- */

/* The run ends after limit_s if it is above 0. */
static int run(const struct judge *judge, const struct row *row,
	       const struct nm_sim_options *options, double limit_s, struct nm_sim_outcome *ret)
{
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	struct nm_sim_case what = {.machine = judge->machine,
				   .workload = &workload,
				   .how = {.runs = 1, .options = *options}};
	what.how.options.no_pmu = row->no_pmu;
	what.how.options.cache_aware = judge->scenario->cache_aware;
	int r = judge_fill(judge->scenario, judge->machine, options->seed, &workload);
	if (limit_s > 0)
		workload.limit_s = limit_s;
	return r < 0 ? r : nm_sim_case_run(&what, &row->policy, ret);
}

/* Sum over all programs that end, in seconds. */
static int time_of(const struct judge *judge, size_t row, const struct nm_sim_options *options,
		   struct nm_sim_outcome *outcome, double *ret)
{
	if ((row == A_NODE_EACH && !judge->scenario->a_node_each) ||
	    (row == IN_ORDER && !judge->scenario->in_order)) {
		*ret = INFINITY;
		return 0;
	}
	int r = run(judge, &rows[row], options, 0, outcome);
	if (r == 0 && !outcome->all_ended)
		r = -ETIME;
	*ret = outcome->computing_s;
	return r;
}

/* ---- verdicts ---- */

/*
 * Work of the process around the verdict, with its home or, with the same random numbers, without
 * it. NaN: it has exited.
 */
static int work_of(const struct judge *judge, size_t row, struct nm_sim_options options,
		   const struct nm_simulated_verdict *verdict, bool with, double *ret)
{
	struct nm_sim_outcome outcome;
	options.watched_pid = verdict->pid;
	options.watched_from_s = verdict->time_s - JUDGED_OVER_S;
	options.unmovable_pid = with ? 0 : verdict->pid;
	int r = run(judge, &rows[row], &options, verdict->time_s + KEPT_FOR_S, &outcome);
	const struct nm_sim_figures *figures = &outcome.last.figures;
	*ret = r == 0 && !figures->watched_ended ? figures->watched_giga : (double)NAN;
	return r;
}

static bool is_right(enum nm_verdict_kind outcome, double change)
{
	if (outcome == NM_VERDICT_IMPROVED)
		return change > COUNTS - TOLERANCE;
	if (outcome == NM_VERDICT_WORSE)
		return change < -COUNTS + TOLERANCE;
	return fabs(change) < COUNTS + TOLERANCE;
}

static int check_verdict(const struct judge *judge, size_t row,
			 const struct nm_sim_options *options,
			 const struct nm_simulated_verdict *verdict, struct tally *tally)
{
	double with = 0, without = 0;
	int r = work_of(judge, row, *options, verdict, true, &with);
	if (r == 0)
		r = work_of(judge, row, *options, verdict, false, &without);
	if (r < 0 || isnan(with) || !(without > 0))
		return r;
	double change = with / without - 1;
	bool right = is_right(verdict->kind, change);
	add_count(&tally->right, (struct count){right, 1});
	if (judge->verbose && !right)
		(void)fprintf(stderr,
			      "wrong %s %s wander %g seed %lu: pid %u at %.1f s %s, is %+.1f %%\n",
			      judge->scenario->name, rows[row].policy.name, options->wander_per_s,
			      (unsigned long)options->seed, verdict->pid, verdict->time_s,
			      nm_verdict_kind_name(verdict->kind), 100 * change);
	return 0;
}

/* All verdicts are counted, and conclusive ones are checked. */
static int check_verdicts(const struct judge *judge, size_t row,
			  const struct nm_sim_options *options, const struct nm_simulated *done,
			  struct tally *tally)
{
	const struct nm_simulated_verdict *drawn = NULL;
	struct nm_rng rng;
	nm_rng_seed(&rng, options->seed + row);
	unsigned concluded = 0;
	for (size_t i = 0; i < done->nr_verdicts; i++) {
		bool young = done->verdicts[i].kind == NM_VERDICT_UNVERIFIED;
		bool none = done->verdicts[i].kind == NM_VERDICT_INCONCLUSIVE;
		add_count(&tally->unverified, (struct count){young, 1});
		if (young)
			continue;
		add_count(&tally->inconclusive[rows[row].no_pmu], (struct count){none, 1});
		if (!none && nm_rng_below(&rng, ++concluded) == 0)
			drawn = &done->verdicts[i];
	}
	return drawn ? check_verdict(judge, row, options, drawn, tally) : 0;
}

/* ---- one seed at one rate ---- */

static void compare(const struct judge *judge, const struct nm_sim_options *options, size_t wander,
		    const double times[NR_ROWS], struct tally *tally)
{
	double better = fmin(times[BASELINE], times[KERNEL]);
	double oracle = fmin(times[A_NODE_EACH], times[IN_ORDER]);
	bool gains = oracle < (1 - ORACLE_GAINS) * times[BASELINE];
	tally->oracle_gained += gains ? times[BASELINE] - oracle : 0;
	for (size_t row = 0; row < NR_ROWS; row++) {
		bool won = times[row] <= WON_WITHIN * better;
		double change = times[row] / times[BASELINE] - 1;
		add_change(&tally->change[row][wander], change);
		tally->gained[row] += gains ? times[BASELINE] - times[row] : 0;
		add_count(&tally->row_won[row][wander], (struct count){won, 1});
		if (row < FIRST_AUTO || row >= FIRST_OTHER)
			continue;
		add_count(&tally->won, (struct count){won, 1});
		if (judge->verbose && !won)
			(void)fprintf(stderr,
				      "lost %s %s wander %g seed %lu: %.2f s, baseline %.2f, "
				      "kernel %.2f\n",
				      judge->scenario->name, rows[row].policy.name,
				      options->wander_per_s, (unsigned long)options->seed,
				      times[row], times[BASELINE], times[KERNEL]);
	}
}

static int run_pair(const struct judge *judge, uint64_t seed, size_t wander, struct tally *tally)
{
	const struct nm_sim_options options = {.seed = seed, .wander_per_s = wanders[wander]};
	double times[NR_ROWS];
	for (size_t row = 0; row < NR_ROWS; row++) {
		struct nm_sim_outcome outcome = {0};
		int r = time_of(judge, row, &options, &outcome, &times[row]);
		if (r == 0 && row >= FIRST_AUTO && row < FIRST_OTHER)
			r = check_verdicts(judge, row, &options, &outcome.last, tally);
		if (r < 0)
			return r;
	}
	compare(judge, &options, wander, times, tally);
	return 0;
}

/* ---- output ---- */

static void print_share(const char *name, const char *of, double value)
{
	if (!isnan(value))
		printf("%s%s%s %.3f share\n", name, *of ? "_" : "", of, value);
}

static void print_tally(const char *of, const struct tally *tally)
{
	print_share("win_rate", of, share(tally->won));
	print_share("verdict_right", of, share(tally->right));
	print_share("verdict_unverified", of, share(tally->unverified));
	print_share("verdict_inconclusive", of, share(tally->inconclusive[0]));
	print_share("verdict_inconclusive_no_pmu", of, share(tally->inconclusive[1]));
	if (tally->oracle_gained > 0)
		print_share("auto_of_oracle", of, tally->gained[FIRST_AUTO] / tally->oracle_gained);
	(void)fflush(stdout);
}

/* Mean and standard error, in percent. */
static void print_changes(FILE *to, const struct changes *changes, unsigned count)
{
	double mean = changes->sum / count;
	double variance = fmax(changes->squares / count - mean * mean, 0);
	double error = count > 1 ? sqrt(variance / (count - 1)) : (double)NAN;
	(void)fprintf(to, " %+.1f ± %.1f", 100 * mean, 100 * error);
}

static void print_rows(const struct judge *judge, const struct tally *tally)
{
	const char *name = judge->scenario->name;
	(void)fprintf(stderr, "%-10s %-20s change in %%, its error, and win rate at wander", name,
		      "");
	for (size_t w = 0; w < NR_WANDERS; w++)
		(void)fprintf(stderr, " %g", wanders[w]);
	for (size_t row = 1; row < NR_ROWS; row++) {
		if (isinf(tally->change[row][0].sum))
			continue;
		(void)fprintf(stderr, "\n%-10s %-20s", name, rows[row].policy.name);
		for (size_t w = 0; w < NR_WANDERS; w++) {
			print_changes(stderr, &tally->change[row][w], judge->seeds);
			(void)fprintf(stderr, " %4.2f", share(tally->row_won[row][w]));
		}
	}
	(void)fputc('\n', stderr);
}

static void add_tally(struct tally *sum, const struct tally *tally)
{
	add_count(&sum->won, tally->won);
	add_count(&sum->right, tally->right);
	add_count(&sum->unverified, tally->unverified);
	add_count(&sum->inconclusive[0], tally->inconclusive[0]);
	add_count(&sum->inconclusive[1], tally->inconclusive[1]);
}

static int run_control(const struct judge *judge, const struct judge_scenario *scenario)
{
	static const char *const measures[] = {"elapsed", "cpu"};
	struct judge_effect effects[NM_TRIAL_MEASURES];
	int r = judge_control_group(scenario, judge->seeds, judge->first_seed, effects);
	for (size_t i = 0; r == 0 && i < NM_ARRAY_SIZE(measures); i++) {
		const char *name = scenario->name, *measure = measures[i];
		double estimate = expm1(effects[i].estimate);
		double counterfactual = expm1(effects[i].counterfactual);
		printf("%s_estimate_%s %.3f share\n", measure, name, estimate);
		printf("%s_counterfactual_%s %.3f share\n", measure, name, counterfactual);
		printf("%s_interference_%s %.3f share\n", measure, name,
		       estimate - counterfactual);
		printf("%s_units_%s %.0f units\n", measure, name, effects[i].units);
	}
	(void)fflush(stdout);
	return r;
}

/* Runs only what the table in the document shows: the usual rate, without a check of verdicts. */
static int run_for_document(const struct judge *judge)
{
	struct tally tally = {0};
	struct nm_sim_outcome outcome;
	double baseline_s, time_s;
	int r = 0;
	for (unsigned i = 0; i < judge->seeds && r == 0; i++) {
		const struct nm_sim_options options = {.seed = judge->first_seed + i,
						       .wander_per_s = NM_SIM_WANDER_USUAL};
		r = time_of(judge, BASELINE, &options, &outcome, &baseline_s);
		for (size_t row = 0; row < NR_ROWS && r == 0; row++) {
			if (!rows[row].in_document)
				continue;
			r = time_of(judge, row, &options, &outcome, &time_s);
			add_change(&tally.change[row][0], time_s / baseline_s - 1);
		}
	}
	if (r < 0)
		return r;
	printf("| `%s`: %s |", judge->scenario->name, judge->scenario->words);
	for (size_t row = 0; row < NR_ROWS; row++)
		if (rows[row].in_document) {
			print_changes(stdout, &tally.change[row][0], judge->seeds);
			(void)fputs(" |", stdout);
		}
	putchar('\n');
	(void)fflush(stdout);
	return 0;
}

/* Changes of one seed at one rate: of "auto" and the kernel against nobody, and of both together
 * against the kernel alone, with and without a PMU. */
struct harm {
	struct changes kernel, alone, both, beside, beside_no_pmu;
};

static int run_against_kernel(const struct judge *judge, const struct nm_sim_options *options,
			      struct harm *sum)
{
	static const size_t compared[] = {BASELINE, KERNEL, FIRST_AUTO, BESIDE_KERNEL,
					  BESIDE_KERNEL_NO_PMU};
	double times[NR_ROWS];
	for (size_t i = 0; i < NM_ARRAY_SIZE(compared); i++) {
		struct nm_sim_outcome outcome;
		int r = time_of(judge, compared[i], options, &outcome, &times[compared[i]]);
		if (r < 0)
			return r;
	}
	if (judge->verbose)
		(void)fprintf(stderr,
			      "%s wander %g seed %lu: baseline %.1f s, kernel %.1f, auto %.1f, "
			      "beside the kernel %.1f, without a PMU %.1f\n",
			      judge->scenario->name, options->wander_per_s,
			      (unsigned long)options->seed, times[BASELINE], times[KERNEL],
			      times[FIRST_AUTO], times[BESIDE_KERNEL], times[BESIDE_KERNEL_NO_PMU]);
	add_change(&sum->kernel, times[KERNEL] / times[BASELINE] - 1);
	add_change(&sum->alone, times[FIRST_AUTO] / times[BASELINE] - 1);
	add_change(&sum->both, times[BESIDE_KERNEL] / times[BASELINE] - 1);
	add_change(&sum->beside, times[BESIDE_KERNEL] / times[KERNEL] - 1);
	add_change(&sum->beside_no_pmu, times[BESIDE_KERNEL_NO_PMU] / times[KERNEL] - 1);
	return 0;
}

/* The first columns are of the usual rate, the last ones of all. */
static void print_harm(const struct judge *judge, const struct harm harms[NR_WANDERS])
{
	const struct harm *usual = &harms[1];
	printf("| `%s`: %s |", judge->scenario->name, judge->scenario->words);
	for (const struct changes *changes = &usual->kernel; changes <= &usual->both; changes++) {
		print_changes(stdout, changes, judge->seeds);
		(void)fputs(" |", stdout);
	}
	for (size_t w = 0; w < NR_WANDERS; w++) {
		print_changes(stdout, &harms[w].beside, judge->seeds);
		(void)fputs(" |", stdout);
	}
	print_changes(stdout, &usual->beside_no_pmu, judge->seeds);
	(void)fputs(" |\n", stdout);
	(void)fflush(stdout);
}

static int run_for_harm(const struct judge *judge)
{
	struct harm harms[NR_WANDERS] = {0};
	int r = 0;
	for (size_t w = 0; w < NR_WANDERS; w++)
		for (unsigned i = 0; i < judge->seeds && r == 0; i++) {
			const struct nm_sim_options options = {.seed = judge->first_seed + i,
							       .wander_per_s = wanders[w]};
			r = run_against_kernel(judge, &options, &harms[w]);
		}
	if (r == 0)
		print_harm(judge, harms);
	return r;
}

static int run_scenario(struct judge *judge, const struct judge_scenario *scenario,
			struct tally *sum)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	struct tally tally = {0};
	if (judge->control)
		return run_control(judge, scenario);
	int r = nm_sim_machine_by_name(scenario->machine, &machine);
	judge->scenario = scenario;
	judge->machine = machine;
	if (r == 0 && judge->document)
		return run_for_document(judge);
	if (r == 0 && judge->harm)
		return run_for_harm(judge);
	for (size_t wander = 0; wander < NR_WANDERS; wander++)
		for (unsigned i = 0; i < judge->seeds && r == 0; i++)
			r = run_pair(judge, judge->first_seed + i, wander, &tally);
	if (r < 0)
		return r;
	print_tally(scenario->name, &tally);
	if (judge->verbose)
		print_rows(judge, &tally);
	add_tally(sum, &tally);
	return 0;
}

static int usage(void)
{
	(void)fputs("usage: nm_judge [-n SEEDS] [-s SEED] [-v | -c | -m | -k | -a] [SCENARIO...]\n"
		    "Scenarios:\n",
		    stderr);
	for (size_t i = 0; i < judge_scenario_count; i++)
		(void)fprintf(stderr, "  %-12s %s\n", judge_scenarios[i].name,
			      judge_scenarios[i].words);
	return EX_USAGE;
}

static const struct judge_scenario *find(const char *name)
{
	for (size_t i = 0; i < judge_scenario_count; i++)
		if (strcmp(judge_scenarios[i].name, name) == 0)
			return &judge_scenarios[i];
	return NULL;
}

static int run_asked(struct judge *judge, char *const *names, struct tally *sum)
{
	int r = 0;
	for (size_t i = 0; !*names && i < judge_scenario_count && r == 0; i++)
		if (judge->harm || !judge_scenarios[i].is_situation)
			r = run_scenario(judge, &judge_scenarios[i], sum);
	for (; *names && r == 0; names++)
		r = run_scenario(judge, find(*names), sum);
	return r;
}

static bool is_asked(const struct judge_scenario *scenario, char *const *names)
{
	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], scenario->name) == 0)
			return true;
	return !names[0] && !scenario->is_situation;
}

static void print_stays(const struct nm_sim_stays *stays)
{
	if (stays->all)
		printf(" %.1f %% |", 100 * (double)stays->of / (double)stays->all);
	else
		printf(" – |");
}

/* A row of the table for each policy. */
static int print_aftermath(const struct judge *judge, char *const *names)
{
	const struct nm_sim_policy *policy;
	int r = 0;
	for (size_t row = 0; r == 0 && (policy = judge_moves_policy(row)); row++) {
		struct judge_moved sum = {0};
		for (size_t i = 0; r == 0 && i < judge_scenario_count; i++)
			if (is_asked(&judge_scenarios[i], names))
				r = judge_moves(&judge_scenarios[i], policy, judge->seeds,
						judge->first_seed, &sum);
		if (r < 0)
			break;
		printf("| `%s` | %" PRIu64 " | %" PRIu64 " |", policy->name, sum.asked,
		       sum.arrived);
		for (unsigned i = 0; i < NM_SIM_STAYS; i++)
			print_stays(&sum.stays[i]);
		printf(" %" PRIu64 " | %" PRIu64 " |\n", sum.pages, sum.returned);
		(void)fflush(stdout);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct judge judge = {.seeds = 20, .first_seed = 1};
	struct tally sum = {0};
	for (int c; (c = getopt(argc, argv, "n:s:vcmka")) != -1;) {
		if (c == 'n')
			judge.seeds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 's')
			judge.first_seed = strtoull(optarg, NULL, 10);
		else if (c == 'v')
			judge.verbose = true;
		else if (c == 'c')
			judge.control = true;
		else if (c == 'm')
			judge.document = true;
		else if (c == 'k')
			judge.harm = true;
		else if (c == 'a')
			judge.aftermath = true;
		else
			return usage();
	}
	for (int i = optind; i < argc; i++)
		if (!find(argv[i]))
			return usage();
	if (judge.seeds == 0)
		return usage();
	int r = judge.aftermath ? print_aftermath(&judge, argv + optind)
				: run_asked(&judge, argv + optind, &sum);
	if (r < 0) {
		(void)fprintf(stderr, "nm_judge: %s\n", strerror(-r));
		return 1;
	}
	if (!judge.control && !judge.document && !judge.harm && !judge.aftermath)
		print_tally("", &sum);
	return 0;
}

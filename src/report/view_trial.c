/* SPDX-License-Identifier: MIT */
/* Results of the control group, for the bus. */
#include <math.h>
#include <stdio.h>

#include "report/views.h"

/* From this number of units in each arm on, the deviation is known well enough for a forecast. */
#define FORECAST_UNITS 10
#define FORECAST_S 60
#define SECONDS(ns) ((double)(ns) / (double)NM_NSEC_PER_SEC)

static void fill_units(struct nm_comparison_row *row, const struct nm_trial_difference *found)
{
	row->managed_units = (int64_t)found->units[NM_TRIAL_TREATED];
	row->control_units = (int64_t)found->units[NM_TRIAL_CONTROL];
}

static void fill_conditions(struct nm_comparison_row *row, const struct nm_trial *group)
{
	const struct nm_trial_conditions *managed =
		nm_trial_conditions(group, NM_TRIAL_RAISED, NM_TRIAL_TREATED);
	const struct nm_trial_conditions *alone =
		nm_trial_conditions(group, NM_TRIAL_RAISED, NM_TRIAL_CONTROL);
	row->managed_local = managed->near / managed->accesses;
	row->managed_distance = managed->distance / managed->accesses;
	row->managed_waiting = managed->waited_s / managed->ran_s;
	row->control_local = alone->near / alone->accesses;
	row->control_distance = alone->distance / alone->accesses;
	row->control_waiting = alone->waited_s / alone->ran_s;
}

/* The change and the ends of its interval, which are logarithms. Without an interval the change may
 * be anything, and is not shown. */
static void fill_change(const struct nm_trial_difference *found, double *change, double *low,
			double *high)
{
	if (isnan(found->half))
		return;
	*change = expm1(found->mean);
	*low = expm1(found->mean - found->half);
	*high = expm1(found->mean + found->half);
}

#define FORECAST_BYTES 128

/* Says how long it would take to find 5 %, from the deviation and the rate so far. Returns NULL if
 * it cannot be known. */
static const char *forecast(const struct nm_trial_period *period, uint64_t now_ns,
			    const struct nm_trial_difference *found, char text[FORECAST_BYTES])
{
	double units = found->units[NM_TRIAL_CONTROL] + found->units[NM_TRIAL_TREATED];
	double since_s = SECONDS(now_ns - period->since_ns);
	double needed = nm_trial_units_needed(found->deviation, period->control_share);
	if (found->units[NM_TRIAL_CONTROL] < FORECAST_UNITS ||
	    found->units[NM_TRIAL_TREATED] < FORECAST_UNITS || since_s < FORECAST_S)
		return NULL;
	(void)snprintf(text, FORECAST_BYTES,
		       "about %.0f minutes to find a difference of 5 %% (%.0f units)",
		       ceil(since_s * needed / units / 60), needed);
	return text;
}

static json_t *total_json(const struct nm_view *view)
{
	const struct nm_trial *group = view->trial;
	struct nm_trial_difference cpu, elapsed;
	char result[NM_TRIAL_TEXT_BYTES], outlook[FORECAST_BYTES];
	struct nm_comparison_row row;
	nm_row_init(&nm_trial_table, &row);
	struct nm_trial_period period = nm_trial_period(group);
	uint64_t now_ns = view->now_ns;
	/* A pause has ended the trial. */
	bool over = view->paused || now_ns >= period.until_ns;
	uint64_t left_ns = over ? 0 : period.until_ns - now_ns;
	row.remaining_s = (int64_t)(left_ns / NM_NSEC_PER_SEC);
	row.drawing = left_ns > NM_TRIAL_WINDOW_NS;
	row.control_percent = 100 * period.control_share;
	bool known = nm_trial_result(group, NM_TRIAL_RAISED, NM_TRIAL_CPU, &cpu);
	nm_trial_describe(&cpu, result, sizeof(result));
	row.result = result;
	row.ended_early = view->trial_cause;
	fill_units(&row, &cpu);
	fill_conditions(&row, group);
	if (known) {
		fill_change(&cpu, &row.cpu_change, &row.cpu_low, &row.cpu_high);
		if (nm_trial_result(group, NM_TRIAL_RAISED, NM_TRIAL_ELAPSED, &elapsed))
			fill_change(&elapsed, &row.elapsed_change, &row.elapsed_low,
				    &row.elapsed_high);
		row.forecast = over ? NULL : forecast(&period, now_ns, &cpu, outlook);
	}
	return nm_row_json(&nm_trial_table, &row);
}

static const char *state_of(const struct nm_trial_program *program,
			    const struct nm_trial_difference *cpu)
{
	if (program->nr_losses > 0)
		return "slower, left alone";
	return isnan(cpu->half) ? "too few units" : "compared";
}

static json_t *list_programs(const struct nm_view *view, struct nm_dump *dump)
{
	struct nm_trial_program *const *programs;
	size_t count = nm_trial_programs(view->trial, &programs);
	struct nm_trial_difference cpu, elapsed;
	struct nm_comparison_row row;
	json_t *list = nm_must(json_array());
	nm_row_init(&nm_program_table, &row);
	for (size_t i = 0; i < count; i++) {
		if (!nm_trial_program_result(programs[i], NM_TRIAL_RAISED, NM_TRIAL_CPU, &cpu) ||
		    !nm_trial_program_result(programs[i], NM_TRIAL_RAISED, NM_TRIAL_ELAPSED,
					     &elapsed) ||
		    !nm_dump_admit(dump))
			continue;
		row.comm = programs[i]->comm;
		row.state = state_of(programs[i], &cpu);
		fill_units(&row, &cpu);
		fill_change(&cpu, &row.cpu_change, &row.cpu_low, &row.cpu_high);
		fill_change(&elapsed, &row.elapsed_change, &row.elapsed_low, &row.elapsed_high);
		nm_must_do(json_array_append_new(list, nm_row_json(&nm_program_table, &row)));
	}
	return list;
}

json_t *nm_view_trial(const struct nm_view *view, struct nm_dump *dump)
{
	json_t *total = total_json(view);
	json_t *programs = list_programs(view, dump);
	nm_must_do(json_object_set_new(total, nm_program_table.name, programs));
	return total;
}

/* SPDX-License-Identifier: MIT */
/* Results of the control group, for the bus. */
#include <math.h>
#include <stdio.h>

#include "daemon.h"

/* From this number of units in each arm on, the deviation is known well enough for a forecast. */
#define FORECAST_UNITS 10
#define FORECAST_S 60
#define SECONDS(ns) ((double)(ns) / (double)NM_NSEC_PER_SEC)

int nm_command_raise_control(void *context, uint32_t minutes, double percent, uid_t uid)
{
	struct nm_daemon *daemon = context;
	uint64_t duration_ns = (uint64_t)minutes * 60 * NM_NSEC_PER_SEC;
	if (uid != 0)
		return -EACCES;
	if (daemon->paused)
		return -EAGAIN;
	if (minutes == 0) {
		nm_trial_lower(daemon->trial.group, nm_daemon_now_ns(daemon));
		return 0;
	}
	if (duration_ns <= NM_TRIAL_WINDOW_NS || minutes > NM_TRIAL_MINUTES_MOST ||
	    !(percent >= 1 && percent <= 50))
		return -EINVAL;
	nm_trial_raise(daemon->trial.group, percent / 100, nm_daemon_now_ns(daemon), duration_ns);
	nm_report(daemon, NM_MESSAGE_RELOAD, LOG_NOTICE,
		  "Trial: %g %% of the processes left alone for %u min", percent, minutes);
	return 0;
}

/* ---- what is shown ---- */

static void show_difference(const struct nm_show *show, const char *measure,
			    const struct nm_trial_difference *found)
{
	const struct {
		const char *suffix;
		double logarithm;
	} values[] = {{"change", found->mean},
		      {"low", found->mean - found->half},
		      {"high", found->mean + found->half}};
	char name[32];
	for (size_t i = 0; i < NM_ARRAY_SIZE(values); i++) {
		(void)snprintf(name, sizeof(name), "%s_%s", measure, values[i].suffix);
		nm_show_real(show, name, expm1(values[i].logarithm));
	}
}

static void show_units(const struct nm_show *show, const struct nm_trial_difference *found)
{
	nm_show_u64(show, "managed_units", (uint64_t)found->units[NM_TRIAL_TREATED]);
	nm_show_u64(show, "control_units", (uint64_t)found->units[NM_TRIAL_CONTROL]);
}

/* Rates that are not known are not shown. */
static void show_conditions(const struct nm_show *show, const struct nm_trial *group)
{
	static const char *const names[NM_TRIAL_ARMS][3] = {
		[NM_TRIAL_CONTROL] = {"control_local", "control_distance", "control_waiting"},
		[NM_TRIAL_TREATED] = {"managed_local", "managed_distance", "managed_waiting"},
	};
	for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++) {
		const struct nm_trial_conditions *sums =
			nm_trial_conditions(group, NM_TRIAL_RAISED, arm);
		nm_show_real(show, names[arm][0], sums->near / sums->accesses);
		nm_show_real(show, names[arm][1], sums->distance / sums->accesses);
		nm_show_real(show, names[arm][2], sums->waited_s / sums->ran_s);
	}
}

/* Says how long it would take to find 5 %, from the deviation and the rate so far. */
static void show_forecast(const struct nm_show *show, const struct nm_trial_period *period,
			  uint64_t now_ns, const struct nm_trial_difference *found)
{
	double units = found->units[NM_TRIAL_CONTROL] + found->units[NM_TRIAL_TREATED];
	double since_s = SECONDS(now_ns - period->since_ns);
	double needed = nm_trial_units_needed(found->deviation, period->control_share);
	char text[128];
	if (found->units[NM_TRIAL_CONTROL] < FORECAST_UNITS ||
	    found->units[NM_TRIAL_TREATED] < FORECAST_UNITS || since_s < FORECAST_S)
		return;
	(void)snprintf(text, sizeof(text),
		       "about %.0f minutes to find a difference of 5 %% (%.0f units)",
		       ceil(since_s * needed / units / 60), needed);
	nm_show_text(show, "forecast", text);
}

int nm_view_trial(void *context, const struct nm_show *show)
{
	struct nm_daemon *daemon = context;
	const struct nm_trial *group = daemon->trial.group;
	struct nm_trial_difference cpu, elapsed;
	char text[NM_TRIAL_TEXT_BYTES];
	if (daemon->paused)
		return -EAGAIN;
	struct nm_trial_period period = nm_trial_period(group);
	uint64_t now_ns = nm_daemon_now_ns(daemon);
	uint64_t left_ns = now_ns < period.until_ns ? period.until_ns - now_ns : 0;
	nm_show_u64(show, "remaining_s", left_ns / NM_NSEC_PER_SEC);
	nm_show_flag(show, "drawing", left_ns > NM_TRIAL_WINDOW_NS);
	nm_show_real(show, "control_percent", 100 * period.control_share);
	bool known = nm_trial_result(group, NM_TRIAL_RAISED, NM_TRIAL_CPU, &cpu);
	nm_trial_describe(&cpu, text, sizeof(text));
	nm_show_text(show, "result", text);
	show_units(show, &cpu);
	show_conditions(show, group);
	if (!known)
		return 0;
	show_difference(show, "cpu", &cpu);
	if (nm_trial_result(group, NM_TRIAL_RAISED, NM_TRIAL_ELAPSED, &elapsed))
		show_difference(show, "elapsed", &elapsed);
	show_forecast(show, &period, now_ns, &cpu);
	return 0;
}

static const char *state_of(const struct nm_trial_program *program,
			    const struct nm_trial_difference *cpu)
{
	if (program->nr_losses > 0)
		return "slower, left alone";
	return isnan(cpu->half) ? "too few units" : "compared";
}

int nm_view_trial_programs(void *context, const struct nm_show *show)
{
	struct nm_daemon *daemon = context;
	struct nm_trial_program *const *programs;
	size_t count = nm_trial_programs(daemon->trial.group, &programs);
	struct nm_trial_difference cpu, elapsed;
	for (size_t i = 0; i < count; i++) {
		if (!nm_trial_program_result(programs[i], NM_TRIAL_RAISED, NM_TRIAL_CPU, &cpu) ||
		    !nm_trial_program_result(programs[i], NM_TRIAL_RAISED, NM_TRIAL_ELAPSED,
					     &elapsed))
			continue;
		show->open(show->context);
		nm_show_text(show, "comm", programs[i]->comm);
		show_units(show, &cpu);
		show_difference(show, "cpu", &cpu);
		show_difference(show, "elapsed", &elapsed);
		nm_show_text(show, "state", state_of(programs[i], &cpu));
		show->close(show->context);
	}
	return 0;
}

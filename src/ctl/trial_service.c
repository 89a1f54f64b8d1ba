/* SPDX-License-Identifier: MIT */
/* A trial of a service: periods with and without numa-migrd, and a measure of the caller's. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "ctl.h"
#include "numa-migrd/file.h"
#include "tasks/tasks.h"
#include "periods.h"

#define OUTPUT_BYTES 4096

/* ---- the measure ---- */

/* Takes a number above 0 from the last line. */
static int parse_output(char *text, double *ret)
{
	char *end;
	size_t length = strlen(text);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]))
		text[--length] = '\0';
	const char *line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	double value = strtod(line, &end);
	if (end == line || *end != '\0' || !isfinite(value) || value <= 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* Runs the command with a shell, with the privileges and the signals of the caller. */
static int run_command(const char *command, const sigset_t *signals, double *ret)
{
	char *const words[] = {"sh", "-c", (char *)command, NULL};
	char text[OUTPUT_BYTES];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int pipes[2], status = -1;
	pid_t child;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setsigmask(&attributes, signals);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	int r = -posix_spawn(&child, "/bin/sh", &actions, &attributes, words, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	close(pipes[1]);
	int length = r < 0 ? r : nm_read_all(pipes[0], text, sizeof(text));
	close(pipes[0]);
	if (r == 0)
		(void)waitpid(child, &status, 0);
	if (length < 0)
		return length;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? parse_output(text, ret) : -ECHILD;
}

/* ---- periods ---- */

struct service_trial {
	const struct nm_ctl *ctl;
	char directory[PATH_MAX]; /* of its cgroup */
	char before[64];	  /* the attribute; "": none */
	sigset_t blocked, usual;
	struct nm_period *periods;
	size_t done;
};

static int set_value(const struct service_trial *trial, const char *value)
{
	int r = value[0] ? setxattr(trial->directory, NM_STEER_ATTRIBUTE, value, strlen(value), 0)
			 : removexattr(trial->directory, NM_STEER_ATTRIBUTE);
	return r < 0 && errno != ENODATA ? -errno : 0;
}

/* Returns whether the caller has interrupted it. */
static bool wait_for_period(const struct service_trial *trial)
{
	const struct timespec wait = {.tv_sec = trial->ctl->seconds};
	int signal;
	do
		signal = sigtimedwait(&trial->blocked, NULL, &wait);
	while (signal < 0 && errno == EINTR);
	return signal > 0;
}

static int run_periods(struct service_trial *trial)
{
	const struct nm_ctl *ctl = trial->ctl;
	for (size_t i = 0; i < ctl->periods; i++) {
		struct nm_period *period = &trial->periods[i];
		int r = set_value(trial, period->with ? trial->before : "observe");
		if (r < 0)
			return r;
		if (wait_for_period(trial))
			return 0;
		r = run_command(ctl->measure, &trial->usual, &period->value);
		if (r < 0)
			return r;
		trial->done++;
		(void)fprintf(stderr, "period %zu of %" PRIu32 ", %s: %g\n", i + 1, ctl->periods,
			      period->with ? "with" : "without", period->value);
	}
	return 0;
}

/* ---- before and after ---- */

/* Returns what makes periods of both kinds alike; NULL: nothing. */
static const char *obstacle(const json_t *document, const char *value)
{
	const json_t *status = json_object_get(document, "status");
	const json_t *trial = json_object_get(document, "trial");
	if (json_is_true(json_object_get(status, "paused")))
		return "numa-migrd is paused: nothing is moved";
	if (json_is_true(json_object_get(status, "dry_run")))
		return "dry run: nothing is moved";
	if (json_is_true(json_object_get(status, "idle")))
		return "one node has CPUs: nothing is moved";
	if (json_integer_value(json_object_get(trial, "remaining_s")) > 0)
		return "a trial is running: numa-migrctl trial stop";
	if (value[0] && strcmp(value, "on") != 0)
		return "its attribute excludes it (reset it)";
	return NULL;
}

static int open_trial(struct service_trial *trial, const char *unit)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(json_decrefp) json_t *document = NULL;
	nm_autofree char *cgroup = NULL;
	int r = nm_ctl_open(&bus);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_fetch(bus, &document);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_unit_cgroup(bus, unit, &cgroup);
	if (r != EXIT_SUCCESS)
		return r;
	(void)snprintf(trial->directory, sizeof(trial->directory), NM_CTL_CGROUPS "%s", cgroup);
	ssize_t length = getxattr(trial->directory, NM_STEER_ATTRIBUTE, trial->before,
				  sizeof(trial->before) - 1);
	trial->before[length > 0 ? length : 0] = '\0';
	trial->before[strcspn(trial->before, " \n")] = '\0';
	const char *why = obstacle(document, trial->before);
	return why ? nm_ctl_fail(unit, why) : EXIT_SUCCESS;
}

static int print_service_result(const struct service_trial *trial, const char *unit,
				struct nm_rng *rng)
{
	struct nm_periods_result result;
	char text[NM_PERIODS_TEXT_BYTES];
	nm_periods_compare(rng, trial->periods, trial->done, &result);
	nm_periods_describe(&result, text, sizeof(text));
	if (trial->ctl->json)
		return nm_ctl_print_document(
			"service",
			json_pack("{sssssisiso*so*so*}", "unit", unit, "result", text, "with",
				  (int)result.with, "without", (int)result.without, "change",
				  json_real(result.change), "low", json_real(result.low), "high",
				  json_real(result.high)));
	(void)printf("Result: %s.\n"
		     "The interval contains the true change with a probability of 95 %%. Memory "
		     "that was\nmigrated stays in the periods without, so that the change may be "
		     "understated.\n",
		     text);
	return nm_ctl_close_output();
}

static void announce(const struct nm_ctl *ctl, const char *unit)
{
	double minutes = (double)ctl->periods * ctl->seconds / 60;
	(void)fprintf(stderr,
		      "%" PRIu32 " periods of %" PRIu32 " s, at least %.0f min in all; in half of "
		      "them, drawn at random,\n%s is only observed. After each one runs: %s\n",
		      ctl->periods, ctl->seconds, ceil(minutes), unit, ctl->measure);
}

static int report_failure(const struct service_trial *trial, int r)
{
	if (r == -EINVAL)
		return nm_ctl_fail(trial->ctl->measure, "its last line is no number above 0");
	if (r == -ECHILD)
		return nm_ctl_fail(trial->ctl->measure, "failed");
	(void)nm_ctl_fail(trial->directory, strerror(-r));
	return r == -EPERM || r == -EACCES ? NM_CTL_NOT_ALLOWED : EXIT_FAILURE;
}

int nm_ctl_trial_service(const struct nm_ctl *ctl, const char *unit)
{
	nm_autofree struct nm_period *periods = nm_must(calloc(ctl->periods, sizeof(*periods)));
	struct service_trial trial = {.ctl = ctl, .periods = periods};
	uint64_t seed = 0;
	struct nm_rng rng;
	if (!ctl->measure)
		return nm_ctl_wrong_usage("trial service needs --measure COMMAND", NULL);
	int r = open_trial(&trial, unit);
	if (r != EXIT_SUCCESS)
		return r;
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = nm_clock_ns();
	nm_rng_seed(&rng, seed);
	nm_periods_draw(&rng, periods, ctl->periods);
	/* Blocked, so that the attribute is restored. */
	(void)sigemptyset(&trial.blocked);
	(void)sigaddset(&trial.blocked, SIGINT);
	(void)sigaddset(&trial.blocked, SIGTERM);
	(void)sigaddset(&trial.blocked, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &trial.blocked, &trial.usual);
	announce(ctl, unit);
	r = run_periods(&trial);
	int restored = set_value(&trial, trial.before);
	if (r == 0)
		r = restored;
	if (r < 0)
		return report_failure(&trial, r);
	return print_service_result(&trial, unit, &rng);
}

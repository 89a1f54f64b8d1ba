/* SPDX-License-Identifier: MIT */
/* A complete replay: the stages of the recorded daemon, its calls in order, and the result. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "numa-migrd/file.h"
#include "replay.h"

static int fail_replay(const struct nm_replay_request *request, const char *what)
{
	(void)fprintf(request->err, "numa-migrctl: %s: %s\n", request->file, what);
	return EXIT_FAILURE;
}

/* ---- the machine ---- */

static int open_outside(void *context, const struct nm_platform_options *options,
			struct nm_platform **ret)
{
	struct nm_player *player = context;
	(void)options;
	*ret = &player->outside;
	return 0;
}

static int load_next_topology(void *context, struct nm_topology **ret)
{
	struct nm_player *player = context;
	struct nm_recorded record;
	int r = nm_recording_next(player->topologies, &record);
	if (r <= 0)
		return r < 0 ? r : -ENODATA;
	return nm_topology_copy(record.topology, ret);
}

/* ---- the daemon ---- */

/* Disables settings that could affect this machine, or only matter for sampling. */
static void disable_side_effects(struct nm_config *config, bool dry_run)
{
	config->general.dry_run = dry_run;
	config->metrics.file[0] = '\0';
	config->sampling.inject = NM_INJECT_NONE;
}

static int report_config_errors(const struct nm_replay_request *request,
				const struct nm_config_errors *errors, int r)
{
	for (size_t i = 0; i < errors->count; i++)
		(void)fprintf(request->err, "%s\n", errors->text[i]);
	if (errors->count == 0)
		(void)fprintf(request->err, "numa-migrctl: the configuration: %s\n", strerror(-r));
	return r;
}

static int load_config(const struct nm_replay_request *request,
		       const struct nm_recorded_start *start, struct nm_daemon *daemon)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	int r = nm_config_parse("the recorded configuration", start->config, strlen(start->config),
				&errors, &daemon->config);
	if (r < 0)
		return report_config_errors(request, &errors, r);
	disable_side_effects(daemon->config, start->dry_run);
	return 0;
}

/* Restores the released processes and threads from the daemon's file, which is in the recording. */
static int load_released(struct nm_daemon *daemon, const struct nm_recorded_answer *given_back,
			 char **ret_text)
{
	(void)snprintf(daemon->runtime.boot_id, sizeof(daemon->runtime.boot_id), "%s",
		       given_back->path);
	if (given_back->result <= 0)
		return 0;
	*ret_text = strndup((const char *)given_back->bytes, given_back->length);
	return *ret_text ? 0 : -ENOMEM;
}

static void apply_start(struct nm_daemon *daemon, const struct nm_recorded_start *start)
{
	daemon->options.own_pid = start->pid;
	daemon->seed = start->seed;
	nm_rng_seed(&daemon->rng, start->seed);
	daemon->next_decision = start->next_decision;
	daemon->tally.intervals = start->intervals;
	daemon->tally.local_share = NAN;
}

static void daemon_clear(struct nm_daemon *daemon)
{
	(void)nm_recorder_end(daemon, "");
	nm_pipeline_clear(daemon);
	nm_config_free(daemon->config);
}

/* ---- the calls ---- */

static void reload(struct nm_daemon *daemon, struct nm_player *player,
		   const struct nm_recorded_step *step)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_config *config;
	nm_autofree char *text = strdup(step->text);
	int r = text ? nm_config_parse("the configuration reloaded", text, strlen(text), &errors,
				       &config)
		     : -ENOMEM;
	if (r < 0) {
		nm_player_stop(player, "a configuration that was reloaded cannot be read here");
		return;
	}
	disable_side_effects(config, daemon->config->general.dry_run);
	nm_command_apply(daemon, config, NM_TAKE(text));
}

static void run_call(struct nm_daemon *daemon, struct nm_player *player,
		     const struct nm_recorded_step *step)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	int r = 0;
	switch (step->call) {
	case NM_CALL_TICK:
		r = nm_tick(daemon);
		break;
	case NM_CALL_DRAIN:
		nm_drain(daemon);
		break;
	case NM_CALL_NUDGES:
		nm_actuator_poll_nudges(daemon->pipeline.actuator, platform->ops->now_ns(platform));
		break;
	case NM_CALL_EXAMINE:
		nm_home_stage_examine(daemon, (unsigned)step->number);
		break;
	case NM_CALL_OPEN_SOURCE:
		nm_pipeline_open_source(daemon);
		break;
	case NM_CALL_RELEASE:
		(void)nm_command_release(daemon, (uint32_t)step->number);
		break;
	case NM_CALL_RELOAD:
		reload(daemon, player, step);
		break;
	case NM_CALLS:
		break;
	}
	if (r == -ENOMEM)
		nm_player_stop(player, "out of memory");
}

static void run_calls(struct nm_daemon *daemon, struct nm_player *player)
{
	while (nm_player_peek(player)) {
		const struct nm_recorded *record =
			nm_player_take(player, NM_RECORDED_CALL, "the next call");
		if (!record)
			return;
		struct nm_recorded_step step = record->step;
		run_call(daemon, player, &step);
	}
}

/* ---- interface ---- */

static int open_recording(const struct nm_replay_request *request, struct nm_recording **ret)
{
	char error[256];
	int fd = open(request->file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail_replay(request, strerror(errno));
	if (nm_recording_open(fd, error, sizeof(error), ret) < 0)
		return fail_replay(request, error);
	return EXIT_SUCCESS;
}

static int open_player(const struct nm_replay_request *request, struct nm_player *player)
{
	int status = open_recording(request, &player->stream);
	if (status == EXIT_SUCCESS)
		status = open_recording(request, &player->topologies);
	if (status != EXIT_SUCCESS)
		return status;
	nm_recording_only(player->topologies, 1U << NM_RECORDED_TOPOLOGY);
	nm_player_machine(player);
	return EXIT_SUCCESS;
}

static int report_result(const struct nm_replay_request *request, const struct nm_player *player)
{
	(void)fprintf(request->out,
		      "%" PRIu64 " intervals, %" PRIu64 " samples, %" PRIu64 " threads sent\n",
		      player->intervals, player->samples, player->sent);
	if (player->problem[0])
		return fail_replay(request, player->problem);
	if (player->checked == 0)
		(void)fputs("nothing was decided in it that could be the same\n", request->out);
	else
		(void)fprintf(request->out,
			      "the same decisions, bit for bit (%" PRIu64 " records)\n",
			      player->checked);
	return EXIT_SUCCESS;
}

static int report(const struct nm_replay_request *request, struct nm_player *player)
{
	uint64_t torn = nm_recording_torn(player->stream);
	int status = report_result(request, player);
	if (torn)
		(void)fprintf(request->err,
			      "numa-migrctl: %s: the last %" PRIu64
			      " bytes are incomplete, and were dropped\n",
			      request->file, torn);
	return status;
}

static int run_daemon(struct nm_daemon *daemon, struct nm_player *player, char *given_back)
{
	struct nm_record_sink sink = nm_player_sink(player);
	int r = nm_recorder_attach(daemon, &sink);
	if (r == 0)
		r = nm_pipeline_open(daemon);
	if (r < 0)
		return r;
	if (given_back)
		(void)nm_released_list_take(daemon->runtime.released, daemon->pipeline.platform,
					    given_back, daemon->runtime.boot_id);
	run_calls(daemon, player);
	player->ended = true;
	nm_pipeline_close(daemon);
	return 0;
}

static int prepare_replay(const struct nm_replay_request *request, struct nm_daemon *daemon,
			  struct nm_player *player, char **ret_given_back)
{
	const struct nm_recorded *record =
		nm_player_take(player, NM_RECORDED_START, "its beginning");
	if (!record || load_config(request, &record->start, daemon) < 0)
		return record ? EX_CONFIG
			      : fail_replay(request,
					    player->problem[0] ? player->problem : "it is empty");
	apply_start(daemon, &record->start);
	record = nm_player_peek(player);
	const struct nm_recorded_answer *given_back =
		record && record->kind == NM_RECORDED_ANSWER
			? nm_player_answer(player, "given_back", 0, record->answer.path)
			: NULL;
	if (!given_back)
		return fail_replay(request,
				   player->problem[0] ? player->problem : "it has only begun");
	int r = load_released(daemon, given_back, ret_given_back);
	return r < 0 ? fail_replay(request, strerror(-r)) : EXIT_SUCCESS;
}

static int replay(const struct nm_replay_request *request, struct nm_player *player)
{
	nm_auto(daemon_clear) struct nm_daemon daemon = {
		.options = {.config_path = "",
			    .topology = {.load = load_next_topology, .context = player},
			    .open_platform = open_outside,
			    .platform_context = player},
		.runtime.directory = NM_NOWHERE,
	};
	nm_autofree char *given_back = NULL;
	player->daemon = &daemon;
	if (nm_journal_new(&daemon.journal) < 0 ||
	    nm_released_list_new(&daemon.runtime.released) < 0)
		return fail_replay(request, "out of memory");
	int status = prepare_replay(request, &daemon, player, &given_back);
	if (status != EXIT_SUCCESS)
		return status;
	int r = run_daemon(&daemon, player, given_back);
	if (r < 0 && !player->problem[0])
		return fail_replay(request, strerror(-r));
	return report(request, player);
}

int nm_replay_run(const struct nm_replay_request *request)
{
	struct nm_player player = {0};
	int status = open_player(request, &player);
	if (status == EXIT_SUCCESS)
		status = replay(request, &player);
	nm_player_clear(&player);
	return status;
}

/* SPDX-License-Identifier: MIT */
/* The daemon on a model of a machine: the same pipeline and the same ticks, without event loop and
 * bus. */
#include "sim.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>

#include "../../src/daemon/daemon.h"
#include "../../src/daemon/loop.h"
#include "../../src/daemon/pipeline_build.h"
#include "../../src/daemon/report.h"
#include "../../src/daemon/stages.h"
#include "report/decision_lines.h"
#include "numa-migrd/base.h"
#include "numa-migrd/file.h"

#define THIN_RUN_SAMPLE_S 0.04 /* nm_source_thin() */

struct trial {
	struct nm_sim *sim;
	struct nm_feed feed;
	struct nm_config config; /* a copy, which the daemon reads until it is cleared */
	struct nm_daemon daemon;
	struct nm_decision_lines lines;
	double next_wakeup_s;
	bool lends_group; /* that of the daemon is the caller's */
};

static int open_platform(void *context, const struct nm_platform_options *options,
			 struct nm_platform **ret)
{
	(void)options;
	*ret = nm_sim_platform(context);
	return 0;
}

/* The strings of the configuration belong to the caller of nm_simulate(). */
static void trial_clear(struct trial *trial)
{
	struct nm_daemon *daemon = &trial->daemon;
	if (daemon->pipeline.platform)
		nm_pipeline_close(daemon);
	if (trial->lends_group)
		daemon->trial.group = NULL;
	nm_pipeline_clear(daemon);
	nm_sim_free(trial->sim);
}

static int open_daemon(struct trial *trial, const struct nm_config *config,
		       const struct nm_sim_options *options, FILE *decisions)
{
	struct nm_daemon *daemon = &trial->daemon;
	trial->lines = (struct nm_decision_lines){.out = decisions, .digest = NM_HASH_START};
	trial->feed = nm_sim_feed(trial->sim);
	daemon->options = (struct nm_options){
		.open_platform = open_platform,
		.platform_context = trial->sim,
		.topology = {.load = nm_sim_load_topology, .context = trial->sim},
		.feed = &trial->feed,
		.lines = &trial->lines};
	/* The type of the daemon's pointer is not const. */
	trial->config = *config;
	trial->config.verify.control_percent = options->group ? 100 * options->control_share : 0;
	daemon->config = &trial->config;
	trial->lends_group = options->group;
	daemon->trial = (struct nm_trial_stage){.group = options->group};
	daemon->next_decision = 1;
	daemon->tally.local_share = (double)NAN;
	daemon->seed = options->seed;
	nm_rng_seed(&daemon->rng, daemon->seed);
	nm_journal_new(&daemon->journal);
	nm_released_list_new(&daemon->runtime.released);
	nm_journal_configure(daemon->journal, config->journal.level);
	int r = nm_pipeline_open(daemon);
	daemon->trial.since_ns = 0; /* programs that begin with the daemon take part */
	trial->next_wakeup_s = nm_loop_wakeup_s(daemon);
	return r;
}

static int tick(struct trial *trial)
{
	struct nm_daemon *daemon = &trial->daemon;
	int r = nm_tick(daemon);
	if (daemon->pipeline.mover)
		nm_mover_work(daemon->pipeline.mover);
	return r;
}

static struct nm_simulated_verdict *verdict_on(struct nm_simulated *done, uint64_t decision)
{
	for (size_t i = 0; i < done->nr_verdicts; i++)
		if (done->verdicts[i].decision == decision)
			return &done->verdicts[i];
	if (done->nr_verdicts == NM_ARRAY_SIZE(done->verdicts))
		return NULL;
	done->verdicts[done->nr_verdicts] =
		(struct nm_simulated_verdict){.decision = decision, .time_s = -1};
	return &done->verdicts[done->nr_verdicts++];
}

static void take_verdicts(const struct nm_daemon *daemon, double now_s, struct nm_simulated *done)
{
	for (uint64_t id = daemon->history.first; id < daemon->history.next; id++) {
		const struct nm_history_item *item = nm_history_find(&daemon->history, id);
		if (!item || !item->judged || item->decision.policy != NM_POLICY_AUTO)
			continue;
		struct nm_simulated_verdict *verdict = verdict_on(done, id);
		if (!verdict || (verdict->time_s >= 0 && verdict->kind == item->verdict))
			continue;
		verdict->pid = item->decision.steps[0].pid;
		verdict->time_s = now_s;
		verdict->kind = item->verdict;
	}
}

/* Does the work of the main loop between ticks: drains rings and handles transient affinities. */
static int watch_trial(struct trial *trial, struct nm_simulated *done)
{
	struct nm_daemon *daemon = &trial->daemon;
	struct nm_platform *platform = daemon->pipeline.platform;
	const struct nm_sim_figures figures = nm_sim_figures(trial->sim);
	nm_drain(daemon);
	nm_moves_poll(daemon->pipeline.moves, platform->ops->now_ns(platform));
	/* The sum of steps may differ slightly from that time. */
	if (figures.time_s + 1e-6 < trial->next_wakeup_s)
		return 0;
	nm_loop_examine(daemon);
	if (nm_placement_of(&daemon->pipeline))
		nm_mover_work(daemon->pipeline.mover);
	int r = nm_loop_interval_continues(daemon) ? 0 : tick(trial);
	take_verdicts(daemon, figures.time_s, done);
	trial->next_wakeup_s += nm_loop_wakeup_s(daemon);
	return r;
}

static int run_trial(struct trial *trial, bool watched, struct nm_simulated *done)
{
	int r = 0;
	while (r == 0 && !nm_sim_is_finished(trial->sim)) {
		r = nm_sim_step(trial->sim);
		if (r == 0 && watched)
			r = watch_trial(trial, done);
	}
	return r;
}

static void take_tally(const struct nm_daemon *daemon, struct nm_simulated *done)
{
	const struct nm_tally *tally = &daemon->tally;
	done->intervals = tally->intervals;
	done->decisions = tally->decisions;
	done->improved = tally->verdicts[NM_VERDICT_IMPROVED];
	done->neutral = tally->verdicts[NM_VERDICT_NEUTRAL];
	done->rolled_back =
		tally->verdicts[NM_VERDICT_ROLLED_BACK] + tally->verdicts[NM_VERDICT_WORSE];
}

int nm_simulate(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload,
		const struct nm_sim_options *options, const struct nm_config *config,
		FILE *decisions, struct nm_simulated *ret)
{
	nm_auto(trial_clear) struct trial trial = {.daemon = {.runtime.directory = NM_NOWHERE}};
	struct nm_sim_options asked = *options;
	struct nm_simulated done = {0};
	asked.unobserved = !config;
	if (config && config->threads.policy == NM_POLICY_AUTO && !(asked.run_sample_s > 0))
		asked.run_sample_s = THIN_RUN_SAMPLE_S;
	int r = nm_sim_new(machine, workload, &asked, &trial.sim);
	if (r < 0)
		return r;
	if (config)
		r = open_daemon(&trial, config, options, decisions);
	if (r == 0)
		r = run_trial(&trial, config, &done);
	if (r == 0 && config && options->group)
		r = tick(&trial); /* counts the last programs */
	if (r < 0)
		return r;
	take_tally(&trial.daemon, &done);
	if (config) {
		struct nm_move_counts counts = nm_moves_counts(trial.daemon.pipeline.moves);
		done.asked = counts.asked;
		done.arrived = counts.arrived;
	}
	done.figures = nm_sim_figures(trial.sim);
	done.digest = nm_sim_digest(trial.sim);
	done.decisions_digest = trial.lines.digest;
	*ret = done;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The state of the daemon, shared by the files of this folder. All of it is used by one thread. */
#ifndef NM_DAEMON_DAEMON_H
#define NM_DAEMON_DAEMON_H

#include <systemd/sd-event.h>

#include "pipeline.h"
#include "platform/hardware.h"
#include "platform/isolation.h"
#include "policy/page_choice.h"
#include "policy/trial.h"
#include "report/history.h"
#include "report/statistics.h"
#include "runtime.h"
#include "sample/sample.h"

struct nm_control;

/* The metrics file. */
struct nm_exporter {
	char path[NM_CONFIG_PATH_BYTES]; /* path of the file; "": none */
	uint64_t written_ns;
	bool write_failed; /* writing it has failed, and this was logged */
};

/* Set by a command, until the next reload. */
enum nm_dry_run_request {
	NM_DRY_RUN_NOT_REQUESTED,
	NM_DRY_RUN_BEGIN,
	NM_DRY_RUN_END,
};

struct nm_loop_state {
	sd_event *event;
	sd_event_source *timer, *move_timer, *mover_timer, *ring_source, *query_source;
};

/* The machine as last read. */
struct nm_machine_state {
	struct nm_cpu_load load; /* in the last interval */
	struct nm_online online;
	struct nm_isolation isolation; /* {0} before the first interval */
	int balancing;		       /* kernel.numa_balancing; -1: not supported by this kernel */
	enum nm_balancing_mode balancing_mode; /* see pages.numa_balancing */
	bool balancing_switched;	       /* by the daemon, see sampling.inject */
	bool balancing_unusable;	       /* it cannot be; logged once */
	int balancing_error; /* of the last attempt to enable it; logged when it changes */
};

/* The side-band records of one drain. */
struct nm_drained {
	struct nm_task_event *events; /* in the order of reading */
	size_t nr_events, capacity;
	uint64_t newest_ns; /* latest time, by perf's clock */
	uint64_t lost_seen; /* lost records, as of the last drain */
};

/* The cost of the daemon, and how it is limited. */
struct nm_costs {
	struct nm_ring_counts counts; /* as of the last tick */
	uint64_t own_cpu_ns;	      /* as of the last tick */
	uint64_t drain_ns;	      /* CPU time used for draining rings since then */
	/*
	 * external_ns is CPU time that other programs cause and that is not limited by a budget:
	 * calls on the bus, processing of forks, results of workers. handler_end_ns is the CPU time
	 * when the last handler of an interval ended.
	 */
	uint64_t external_ns, handler_end_ns;
	bool held_back; /* periods are above the configured ones, and this was logged */
	uint64_t losses_reported_ns;
};

/* The state that was reported last; only changes are reported. */
struct nm_reported {
	const char *move_bar; /* why no threads are moved, as reported last */
	/* The limitation of P: the metrics that are missing (0: none), and the setting. */
	uint32_t missing;
	enum nm_performance performance;
	bool first_touches;		   /* that only first touches are sampled */
	char status[NM_STATUS_LINE_BYTES]; /* sent to systemd */
	uint64_t status_ns, composed_ns;   /* when it was sent; when it was last composed */
	uint64_t summary_ns;		   /* time of the last summary */
};

/* The control group, which survives a pause; its processes do not. */
struct nm_trial_stage {
	struct nm_trial *group;
	uint64_t since_ns; /* older programs take no part: their start was not seen */
	size_t cursor;	   /* the last process that was read */
	bool running;	   /* a trial, whose end was not reported yet */
	const char *cause; /* why the last one ended early; NULL: it did not */
};

/* Data of the last interval for views; all zero: none yet. */
struct nm_views {
	struct nm_snapshot *snapshot;
	double *served; /* accesses of all threads by node of the memory */
};

struct nm_daemon {
	struct nm_options options;
	struct nm_config *config;
	struct nm_pipeline pipeline;
	struct nm_runtime_state runtime;
	struct nm_loop_state loop;
	struct nm_machine_state machine;
	struct nm_drained drained;
	struct nm_costs costs;
	struct nm_tally tally;
	struct nm_reported reported;
	struct nm_exporter exporter;
	struct nm_trial_stage trial;
	struct nm_views views; /* of the pipeline's last interval */
	struct nm_history history;
	struct nm_journal *journal;
	struct nm_control *control;
	enum nm_dry_run_request dry_run_request;
	bool paused;
	uint64_t seed;
	struct nm_rng rng;
	uint64_t next_decision;
	uint64_t last_tick_ns;
};

/* Returns CLOCK_MONOTONIC of the platform, which is modelled in tests. */
static inline uint64_t nm_daemon_now_ns(const struct nm_daemon *daemon)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	return platform->ops->now_ns(platform);
}

/* ---- what several stages ask ---- */

/* Set by the command line, by a command, or else by the configuration. */
bool nm_daemon_is_dry_run(const struct nm_daemon *daemon);
/* Returns T: the configured interval, the one set by IMAR²'s feedback, or kMAF's shorter period. */
double nm_interval_s(const struct nm_daemon *daemon);
/* Returns the CPU time of this process in ns. */
uint64_t nm_own_cpu_ns(void);
uint64_t nm_own_loop_ns(const struct nm_daemon *daemon); /* nm_own_cpu_ns() without external_ns */
/* Returns whether the daemon should sample memory accesses and cannot: there is no source, or one
 * that only samples which threads run, or first touches. The effect on the policy is a separate
 * question. False on a machine with one node. */
bool nm_lacks_accesses(const struct nm_daemon *daemon);
/* No hardware samples accesses, and nothing causes repeated page faults. */
bool nm_samples_first_touches_only(const struct nm_daemon *daemon);
/* Returns whether threads may be drawn by a lottery: always, except with policy "auto" beside
 * automatic NUMA balancing, or without samples of repeated accesses. Called before the proposals of
 * a tick. */
bool nm_may_draw_threads(const struct nm_daemon *daemon);
/* Reads kernel.numa_balancing, which root, sampling.inject and pages.numa_balancing change. If that
 * fails, the last value stays. */
void nm_machine_read_balancing(struct nm_daemon *daemon);

#endif

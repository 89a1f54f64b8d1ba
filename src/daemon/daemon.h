/* SPDX-License-Identifier: MIT */
/* The daemon's own state, shared by the files of this folder. Everything runs on one thread. */
#ifndef NM_DAEMON_DAEMON_H
#define NM_DAEMON_DAEMON_H

#include <systemd/sd-event.h>

#include "decision_lines.h"
#include "history.h"
#include "numa-migrd/actuate.h"
#include "numa-migrd/config.h"
#include "numa-migrd/control.h"
#include "numa-migrd/daemon.h"
#include "numa-migrd/export.h"
#include "numa-migrd/feedback.h"
#include "numa-migrd/generation.h"
#include "numa-migrd/journal.h"
#include "numa-migrd/memory.h"
#include "numa-migrd/metrics.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/policy.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/record.h"
#include "numa-migrd/rng.h"
#include "numa-migrd/roster.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/snapshot.h"
#include "numa-migrd/steer.h"
#include "numa-migrd/topology.h"
#include "numa-migrd/verify.h"
#include "numa-migrd/worker.h"
#include "page_stage.h"
#include "placement_stage.h"
#include "recorder.h"
#include "views.h"

/* What happened since the start; for the status and the summaries. */
/* What became of homes that policy "auto" gave, and what was moved to them. */
struct nm_home_tally {
	uint64_t granted, expired, yielded, rolled_back;
	uint64_t pages, bytes;
};

struct nm_tally {
	uint64_t intervals, decisions, applied, failed;
	uint64_t late_max_usec; /* by how much an interval ended too late, at worst */
	uint64_t improved, neutral, rolled_back, cancelled, inconclusive;
	uint64_t injected;  /* processes write-protected for sampling */
	double local_share; /* over managed threads in the last interval; NaN: unknown */
	double cpu_share;   /* of one CPU, own and caused */
	uint64_t caused_ns; /* what taking samples cost the programs */
	struct nm_home_tally homes;
	uint64_t suppressed; /* journal entries, as of the last summary */
};

/* Of the machine's memory, as last read: tells a change. */
struct nm_memory_mark {
	uint64_t seen_ns, total_kb;
	uint64_t blocks, block_sum; /* of /sys/devices/system/memory, and of their numbers */
	char nodes[512];	    /* the kernel's list */
};

/* The file of metrics, and what of the last interval goes there. */
struct nm_exporter {
	char path[NM_CONFIG_PATH_BYTES]; /* where it is; "": nowhere */
	uint64_t written_ns;
	bool troubled;	/* it could not be written, and that was told */
	double latency; /* NaN: not known, as the next where nr_nodes is 0 */
	struct {
		unsigned threads;
		double accesses;
	} *nodes;
	unsigned nr_nodes;
};

/* The stages' state: built at start and resume, torn down at pause and stop. */
struct nm_pipeline {
	struct nm_platform *machine;
	struct nm_platform *platform; /* the same for the stages of the loop, see recorder.h */
	struct nm_topology *topology;
	struct nm_physmap *physmap;
	struct nm_source *source; /* NULL: blind, see nm_daemon.no_source_until_ns */
	struct nm_metrics *metrics;
	struct nm_steer *steer;
	struct nm_roster *roster;
	struct nm_actuator *actuator;
	struct nm_verifier *verifier;
	struct nm_record *record; /* IMAR²'s, as the next */
	struct nm_feedback *feedback;
	struct nm_memory *memory;     /* NULL: nobody asks for it, see nm_watch_restart() */
	struct nm_page_stage *pages;  /* NULL: pages are not moved */
	struct nm_balancer *balancer; /* NULL: nodes are not balanced, or not yet */
	struct nm_placement *placement; /* policy "auto"; NULL: another one, or not yet */
};

/* By a command, until the next reload. */
enum nm_dry_run_asked {
	NM_DRY_RUN_NOT_ASKED,
	NM_DRY_RUN_BEGIN,
	NM_DRY_RUN_END,
};

struct nm_daemon {
	struct nm_options options;
	struct nm_config *config;
	struct nm_pipeline pipeline;
	struct nm_views views; /* of the pipeline's last interval */
	struct nm_history history;
	struct nm_released_list *given_back;
	struct nm_unresponsive_list *unanswered; /* NULL: on no machine of this kind */
	bool unsaved_reported, unanswered_reported; /* that these could not be saved */
	struct nm_recorder *recorder; /* NULL: nothing is recorded */
	char *config_text;	      /* that the configuration was read from */
	struct nm_journal *journal;
	struct nm_control *control;
	sd_event *event;
	sd_event_source *timer, *nudge_timer, *ring_source;
	int runtime_directory;
	struct nm_generation *generation; /* whose it is; NULL: of nobody but us */
	unsigned unrestored; /* CPU affinities that the last stop or pause could not restore */
	bool ledger_was_damaged; /* at the start: what some of it said is not known */
	char boot_id[64];
	char status[192]; /* what systemd was told last, and when */
	uint64_t status_ns;

	enum nm_dry_run_asked dry_run_asked;

	uint64_t seed;
	struct nm_rng rng;
	uint64_t next_decision;
	uint64_t last_tick_ns;
	uint64_t mapped_ns;    /* when the last mapping period ended */
	bool paused;

	struct nm_cpu_times *cpu_times; /* at the last tick, per CPU id */
	double *busy_share;
	unsigned nr_cpus;
	size_t stat_bytes; /* room for /proc/stat; 0: the usual */
	char online[4096]; /* the kernel's list, as last read: tells a change */
	struct nm_memory_mark memory_mark;

	struct nm_task_event *events; /* side-band records of one drain, as they were read */
	size_t nr_events, events_capacity;
	uint64_t newest_ns; /* of the records of one drain, by perf's clock */
	struct nm_ring_counts counts; /* as of the last tick */
	uint64_t lost_seen;	      /* records, as of the last drain */
	uint64_t losses_reported_ns;
	bool held_back;	       /* periods are above the configured ones, and it was told */
	uint64_t own_cpu_ns;   /* as of the last tick */
	uint64_t drain_ns;     /* CPU time spent emptying rings since then */
	/* CPU time of the loop for what others cause, and no budget of ours pays: calls on the bus,
	 * and what follows from forks. And that of the loop when it left what it does for itself.
	 */
	uint64_t foreign_ns, left_ns;
	uint64_t latency_seen; /* interval of the last one since the source was opened; 0: none */
	/* What was told last of P: which kinds it lacks (0: none), and by which setting. */
	uint32_t missing_reported;
	enum nm_performance performance_reported;
	struct nm_injector injector;
	bool inject_dead;	 /* soft-dirty has no effect here, or is not allowed: told once */
	int balancing_error;	 /* of the last attempt to switch kernel.numa_balancing on; told when it changes */
	bool balancing_switched; /* by us, see sampling.inject */
	int balancing;		 /* kernel.numa_balancing as last read; -1: this kernel has none */
	bool first_touches_reported; /* that nothing else is seen */
	uint64_t no_source_until_ns; /* when to try the source again */
	uint64_t summary_ns;	 /* when the last summary was written */
	struct nm_tally tally;
	struct nm_exporter exporter;
	uint64_t started_s; /* since 1970 */
};

/* By the command line, by a command, or else by the configuration. */
bool nm_daemon_is_dry_run(const struct nm_daemon *daemon);

/* ---- pipeline.c: building and taking down ---- */

int nm_pipeline_open(struct nm_daemon *daemon);
/* Only the platform, for a look at a process while paused; nm_pipeline_close() ends it. */
int nm_pipeline_open_platform(struct nm_daemon *daemon);
void nm_pipeline_close(struct nm_daemon *daemon);
/* IMAR²'s memory, begun anew: at start and when the policy changes. */
int nm_pipeline_forget_performance(struct nm_daemon *daemon);
/* (Re)opens the source of the current configuration; tells what is unavailable. */
void nm_pipeline_open_source(struct nm_daemon *daemon);
/* It should see which memory is accessed, and does not: one of the two below. What the policy makes
 * of it is another question; on one node there is nothing to see. */
bool nm_pipeline_is_blind(const struct nm_daemon *daemon);
/* There is no source, or one that counts who runs alone. */
bool nm_pipeline_sees_no_accesses(const struct nm_daemon *daemon);
/* No hardware shows accesses, and nothing makes them fault again. */
bool nm_pipeline_sees_first_touches_only(const struct nm_daemon *daemon);

/* ---- machine.c: what the machine is like now ---- */

/* Each CPU's busy share since the last call, NaN where unknown; without memory those of before
 * stay. -ENOMEM: there are more CPUs than shares. Start and each tick. */
int nm_machine_read_load(struct nm_daemon *daemon);
/* CPUs that came or went are seen at once, nodes and blocks of memory within ten seconds. */
void nm_machine_follow_topology(struct nm_daemon *daemon, uint64_t now_ns);
int nm_machine_read_balancing(struct nm_daemon *daemon);
/* Root may switch it at any time: seen within ten intervals. */
void nm_machine_follow_balancing(struct nm_daemon *daemon);
/* physmap is NULL where nothing tells which node an address is on. */
int nm_machine_load_topology(const struct nm_topology_source *source,
			     struct nm_topology **ret_topology, struct nm_physmap **ret_physmap,
			     char *error, size_t error_size);
int nm_machine_open_platform(const struct nm_daemon *daemon,
			     const struct nm_platform_options *options, struct nm_platform **ret);
int nm_machine_read_boot_id(struct nm_platform *platform, char *ret, size_t size);

/* ---- tick.c ---- */

/* One interval, from samples to decisions: reads as the picture in ARCHITECTURE.md. 0 or -errno. */
int nm_tick(struct nm_daemon *daemon);
/* The CPU time of this process, in ns. */
uint64_t nm_own_cpu_ns(void);
uint64_t nm_loop_cpu_ns(void); /* of the thread that calls it */
uint64_t nm_loop_own_ns(const struct nm_daemon *daemon); /* likewise, but for foreign_ns */
/* Empties the rings into metrics, roster and actuator; also between ticks when a ring fills. */
void nm_drain(struct nm_daemon *daemon);

/* ---- verdicts.c: what came of earlier moves ---- */

/* The look back on the performance; sets whether this tick may propose. A policy that does not
 * choose by performance need not wait for it. 0 or -errno. */
int nm_apply_feedback(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		      bool *ret_may_propose);
/* Verdicts that are due: reported, and followed: threads are left alone for a while, or may be moved
 * again; rollbacks go into the plan. 0 or -errno. */
int nm_judge(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, struct nm_plan *plan);

/* ---- propose.c: the configured policy ---- */

/* Plans what the configured policy proposes. 0 or -ENOMEM. */
int nm_propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, struct nm_plan *plan);

/* ---- watch.c: pages, and who shares them ---- */

/* Begins, goes on under new rules, or ends as the configuration wants it; -ENOMEM. */
int nm_watch_configure(struct nm_daemon *daemon);
/* Begins anew: nodes have other numbers. Nothing is begun where neither pages.policy nor
 * threads.policy wants it. */
int nm_watch_restart(struct nm_daemon *daemon);
/* Who is managed now; before the pages are decided about. */
void nm_watch_follow(struct nm_daemon *daemon);
/* Housekeeping; after that. */
void nm_watch_update(struct nm_daemon *daemon);

/* ---- page_stage.c: moving them to the nodes that use them ---- */

/* As nm_watch_configure() and nm_watch_restart(), which call them. */
int nm_page_stage_configure(struct nm_daemon *daemon);
int nm_page_stage_restart(struct nm_daemon *daemon);
void nm_page_stage_close(struct nm_daemon *daemon);
/* An access, where pages are moved. The hot path. */
void nm_page_stage_add(struct nm_daemon *daemon, const struct nm_sample *sample);
/* Its threads' pages stay until the new node shows in what is counted. */
void nm_page_stage_threads_moved(struct nm_daemon *daemon, const struct nm_decision *decision);
void nm_page_stage_task_event(struct nm_daemon *daemon, const struct nm_task_event *event);
/* The process is released. */
void nm_page_stage_drop(struct nm_daemon *daemon, uint32_t pid);
/* One interval: what became of the last moves, and which are next. 0 or -ENOMEM. */
int nm_page_stage_tick(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       const struct nm_figures *figures, size_t nr_figures, uint64_t interval_ns);

/* ---- sharing.c: threads that share memory ---- */

/* Policy "kmaf": proposes where a mapping period is over, lets pages go, and ages the matrix. 0 or
 * -ENOMEM; *ret is as it was where there is nothing to propose. */
int nm_sharing_propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       struct nm_proposals *ret);
/* Ages the matrix under other policies. After nm_watch_update(). */
void nm_sharing_tick(struct nm_daemon *daemon, uint64_t now_ns);

/* ---- balance.c: nodes that are overloaded ---- */

/* Policy "balance": whether nodes are to be balanced, and who would go; once in each interval. 0 or
 * -ENOMEM. */
int nm_balance_look(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		    const struct nm_figures *figures, size_t nr_figures);
/* What the last look found; after it, in the same interval. -ENOMEM. */
int nm_balance_propose(const struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       struct nm_proposals *ret);
/* A decision of this interval was carried out. */
void nm_balance_applied(struct nm_daemon *daemon, const struct nm_decision *decision);
/* An access, while nodes are balanced. The hot path. */
void nm_balance_add(struct nm_daemon *daemon, const struct nm_sample *sample);
/* Forgets all of it: the machine or the policy is another. */
void nm_balance_end(struct nm_daemon *daemon);

/* ---- placement.c: a home node for each process ---- */

/* Policy "auto": judges, gives homes, sends threads there and brings their memory. 0 or -ENOMEM. */
int nm_placement_tick(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		      uint64_t interval_ns);
/* A process begins or ends. Drain. */
void nm_placement_task_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			     uint64_t now_ns);
/* How often rings are emptied, in seconds; and whether an interval is to end after that. Loop. */
double nm_placement_beat_s(const struct nm_daemon *daemon);
bool nm_placement_is_awaited(const struct nm_daemon *daemon, uint64_t now_ns);
/* How many processes nm_placement_examine() may examine now; -1: it need not be called. Loop. */
int nm_placement_room_to_examine(const struct nm_daemon *daemon, uint64_t now_ns);
/* Examines the processes that are due between intervals, `most` of them, and hands memory to the
 * mover. */
void nm_placement_examine(struct nm_daemon *daemon, unsigned most);
/* Forgets all of it: the machine or the policy is another. */
void nm_placement_end(struct nm_daemon *daemon);
/* False for other policies than "auto" and unknown processes. Tick. */
bool nm_placement_has_home(const struct nm_daemon *daemon, uint32_t pid);
/* The same policy under other rules: its mover follows them. */
void nm_placement_configure(struct nm_daemon *daemon);

/* ---- steering.c: attributes of cgroups ---- */

int nm_steering_open(struct nm_daemon *daemon);

/* ---- metrics_file.c: figures for Prometheus ---- */

/* Keeps what is only known while the interval's snapshot is. */
void nm_exporter_note(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);
/* Writes the file when it is time; also while paused. Trouble is told once. */
void nm_exporter_tick(struct nm_daemon *daemon);
/* All figures as they are now; the caller clears. 0 or -ENOMEM. */
int nm_exporter_text(const struct nm_daemon *daemon, struct nm_export *ret);
/* Removes the file: a stopped service has no metrics. */
void nm_exporter_close(struct nm_daemon *daemon);

/* ---- inject.c ---- */

void nm_inject(struct nm_daemon *daemon);
void nm_inject_configure(struct nm_daemon *daemon);

/* ---- report.c, report_status.c: entries of the journal, and the status for systemd ---- */

/* Writes an entry to the journal and to the recording. */
void nm_report_entry(struct nm_daemon *daemon, const struct nm_entry *entry);
void nm_report(struct nm_daemon *daemon, enum nm_message message, int priority, const char *format,
	       ...) __attribute__((format(printf, 4, 5)));
/* "none" where nothing is sampled. */
const char *nm_report_source_name(const struct nm_daemon *daemon);
void nm_report_start(struct nm_daemon *daemon);
void nm_report_source(struct nm_daemon *daemon);
/* That first touches alone are seen, or no longer: once each, and anew for each source. After a
 * tick, and where source and injection have been configured, in this order. */
void nm_report_sampling_source(struct nm_daemon *daemon);
/* The end of the sentence that injection is refused. */
const char *nm_report_consequence(struct nm_daemon *daemon);
void nm_report_news(struct nm_daemon *daemon); /* problems of the source since the last call */
/* Tells once that P falls back to locality and why, and again when that changes. */
void nm_report_locality(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);
void nm_report_coexistence(struct nm_daemon *daemon);
/* Who has not answered since the last call. */
void nm_report_workers(struct nm_daemon *daemon);
void nm_report_decisions(struct nm_daemon *daemon, const struct nm_plan *plan,
			 const struct nm_receipt *receipts);
void nm_report_verdicts(struct nm_daemon *daemon, const struct nm_verdicts *verdicts);
void nm_report_page_decision(struct nm_daemon *daemon, const struct nm_page_decision *decision);
void nm_report_page_verdict(struct nm_daemon *daemon, const struct nm_page_verdict *verdict);
void nm_report_placement(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			 const struct nm_placed *placed, const struct nm_place_proposal *proposal);
void nm_report_placement_verdict(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
				 const struct nm_placed *placed,
				 const struct nm_place_verdict *verdict);
/* It has no home any more, and no verdict says why. */
void nm_report_placement_end(struct nm_daemon *daemon, const struct nm_snap_process *process,
			     const struct nm_placed *placed, const char *why);
void nm_report_lease(void *context, const struct nm_lease_event *event);
void nm_report_summary(struct nm_daemon *daemon);
void nm_report_status(struct nm_daemon *daemon);
/* Half a sentence: whether the pipeline that was closed last has restored every CPU affinity. */
const char *nm_report_restoration(const struct nm_daemon *daemon);
void nm_report_config_errors(struct nm_daemon *daemon, enum nm_message message,
			     const struct nm_config_errors *errors);

/* ---- commands.c: pause, resume, release, reload, dry run ---- */

int nm_command_pause(void *context);
int nm_command_resume(void *context);
int nm_command_release(void *context, uint32_t pid);
size_t nm_command_status(void *context, struct nm_status_item *items, size_t room);
/* The errors go to the journal, and into `error` (which may be NULL) one a line. */
int nm_command_reload(void *context, char *error, size_t size);
int nm_command_set_dry_run(void *context, bool wanted, uid_t uid);
/* Takes both over. */
void nm_command_apply(struct nm_daemon *daemon, struct nm_config *config, char *text);
/* As struct nm_control_ops has them. */
int nm_command_record(void *context, int fd, const struct nm_control_recording *wanted);
int nm_command_stop_recording(void *context);
/* The journal says who steers. */
void nm_command_asked(void *context, const char *method, uid_t uid);

/* ---- loop.c ---- */

/* T: the configured one, what IMAR²'s feedback has made of it, or kMAF's shorter period. */
double nm_loop_interval_s(const struct nm_daemon *daemon);
/* From one look at the clock to the next: T, or shorter with policy "auto", whose intervals end early
 * when somebody waits. */
double nm_loop_beat_s(const struct nm_daemon *daemon);
/* After a beat, with the rings drained: examines processes that are due. */
void nm_loop_examine(struct nm_daemon *daemon);
/* After that: does the interval go on? */
bool nm_loop_goes_on(const struct nm_daemon *daemon);
/* What the timer does: ends the interval unless it goes on, and keeps status and metrics.file current
 * either way. */
void nm_loop_beat(struct nm_daemon *daemon);
int nm_loop_run(struct nm_daemon *daemon);
/* The interval has changed, or a nudge wants looking after. */
void nm_loop_arm(struct nm_daemon *daemon);
/* Watches the source's rings (after it was reopened). */
void nm_loop_watch_source(struct nm_daemon *daemon);

/* ---- confine.c ---- */

/*
 * Confines this process, and the threads it begins from now on, by Landlock (landlock(7)) to what
 * it reads and writes: not /proc/PID/root, cwd and exe of other processes. Once the configuration
 * is read and the runtime directory is open. 0; -EOPNOTSUPP where the kernel has none; -errno.
 */
int nm_confine(const struct nm_daemon *daemon);

/* ---- runtime.c: the runtime directory and --restore ---- */

/* Opens RUNTIME_DIRECTORY or /run/numa-migrd and takes it over: -EBUSY while another daemon holds
 * it. */
int nm_runtime_open(struct nm_daemon *daemon);
/* No later start has taken the runtime directory over; else nothing may be touched any more. */
bool nm_runtime_is_ours(const struct nm_daemon *daemon);
/* Closes it. After a stop that restored everything only what was released, and who did not
 * answer, stays there. */
void nm_runtime_close(struct nm_daemon *daemon, bool restored);
/* Restores what the ledger says; used at start and by --restore. 0; 1 where something could not be
 * restored, or is not known any more; -errno. Reported in the journal. */
int nm_runtime_restore(struct nm_daemon *daemon);
/* Released processes and threads, over a restart; errors are logged. Needs the platform.
 */
void nm_runtime_recall(struct nm_daemon *daemon);
void nm_runtime_remember(struct nm_daemon *daemon);
/* Likewise who does not answer workers. */
void nm_runtime_recall_unanswered(struct nm_daemon *daemon);
void nm_runtime_remember_unanswered(struct nm_daemon *daemon);

#endif

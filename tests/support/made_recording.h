/* SPDX-License-Identifier: MIT */
/*
 * Synthetic recordings: threads start far from their memory and are moved to it one after another,
 * with hostile names. The same parameters give the same recording.
 */
#ifndef NUMA_MIGRD_TESTS_MADE_RECORDING_H
#define NUMA_MIGRD_TESTS_MADE_RECORDING_H

#include <fcntl.h>
#include <math.h>

#include "machine.h"
#include "numa-migrd/base.h"
#include "numa-migrd/recording.h"

struct made_recording_options {
	unsigned nodes, processes, threads; /* threads per process */
	unsigned intervals;
	bool accesses; /* local access ratios */
	bool pages;    /* decisions about pages */
	bool moves;    /* decisions; otherwise threads stay far from their memory */
	const char *const *names; /* of processes, in turn, NULL at the end; NULL: default names */
	const char *message;	  /* replaces the entries of the journal; NULL: default entries */
	const char *config;
};

/* Initializers: all kinds of records, and also a default size. */
#define MADE_ALL .accesses = true, .moves = true, .pages = true
#define MADE_USUAL                                                                                 \
	MADE_ALL, .nodes = 4, .processes = 3, .threads = 8, .intervals = 90,                       \
		  .config = "threads = { policy = \"imar2\"; };\n"

static const struct made_recording_options made_usual = {MADE_USUAL};

/* Hostile contents of names, configurations and entries of the journal. */
static const char *const made_hostile_names[] = {
	"</title><script>alert(1)</script>",
	"\"><img src=x onerror=alert(2)>",
	"' onload='alert(3)",
	"]]>&lt;&#0;&nosuch;<!--",
	"a\x01\x1b[31m\xff\xc3(\xed\xa0\x80\xe2\x80\xae"
	"dlrow",
	"<style>*{display:none}</style>",
	"WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
	"\xd8\xb9\xd8\xb1\xd8\xa8\xd9\x8a \xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x92\xbe",
	NULL,
};

struct made {
	const struct made_recording_options *options;
	struct nm_recorder_writer *writer;
	uint64_t next_decision;
	int *node; /* current node of each thread; its memory is on node thread % nodes */
	struct nm_recorded_thread *threads;
	int error;
};

static inline unsigned made_count(const struct made_recording_options *options)
{
	return options->processes * options->threads;
}

static inline uint32_t made_pid(const struct made_recording_options *options, unsigned thread)
{
	return 1000 + thread / options->threads * (options->threads + 10);
}

static inline uint32_t made_tid(const struct made_recording_options *options, unsigned thread)
{
	return made_pid(options, thread) + thread % options->threads;
}

static inline int made_home(const struct made_recording_options *options, unsigned thread)
{
	return (int)(thread % options->nodes);
}

static inline const char *made_name(const struct made_recording_options *options, unsigned process)
{
	static const char *const usual[] = {"lu.C.x",	"cg.C.x", "postgres",
					    "mariadbd", "stream", NULL};
	const char *const *names = options->names ? options->names : usual;
	unsigned count = 0;
	while (names[count])
		count++;
	return names[process % count];
}

static inline void made_add(struct made *made, const struct nm_recorded *record)
{
	if (made->error == 0)
		made->error = nm_recording_add(made->writer, record);
}

static inline void made_start(struct made *made)
{
	const char *config = made->options->config ? made->options->config : "";
	struct nm_topology *topology =
		machine_topology(made->options->nodes, made->options->nodes * 8);
	struct nm_recorded record = {.kind = NM_RECORDED_START,
				     .start = {.version = "0.1.0",
					       .time_s = 1763800000,
					       .seed = 7,
					       .source = "cycles, PEBS",
					       .config_name = "/etc/numa-migrd.conf",
					       .config = config,
					       .config_length = strlen(config)}};
	made_add(made, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_TOPOLOGY, .topology = topology};
	made_add(made, &record);
	nm_topology_free(topology);
}

/* ---- an interval ---- */

static inline double made_share(const struct made *made, unsigned thread)
{
	bool home = made->node[thread] == made_home(made->options, thread);
	return home ? 0.9 + 0.05 * (thread % 3) / 2 : 0.15 + 0.02 * (thread % 5);
}

static inline void made_set_thread(struct made *made, unsigned i)
{
	const struct made_recording_options *options = made->options;
	double share = made_share(made, i);
	made->threads[i] = (struct nm_recorded_thread){
		.tid = made_tid(options, i),
		.pid = made_pid(options, i),
		.main_cpu = made->node[i] * 8 + (int)(i % 8),
		.main_node = made->node[i],
		.preferred = made_home(options, i),
		.run_share = 0.3 + 0.7 / (1 + i % 4),
		.local_share = options->accesses ? share : (double)NAN,
		.access_total = options->accesses ? 200 + i : 0,
		.latency = (double)NAN,
		.instructions = (double)NAN,
		.operations = (double)NAN,
		.intensity = (double)NAN,
		.performance = (double)NAN,
		.relative = (double)NAN,
	};
}

static inline void made_interval(struct made *made, unsigned number)
{
	const struct made_recording_options *options = made->options;
	double sum = 0;
	for (unsigned i = 0; i < made_count(options); i++) {
		made_set_thread(made, i);
		sum += made_share(made, i);
	}
	struct nm_recorded record = {.kind = NM_RECORDED_INTERVAL,
				     .about = {.number = number,
					       .time_ns = (5000 + number) * NM_NSEC_PER_SEC,
					       .length_ns = NM_NSEC_PER_SEC,
					       .local_share = options->accesses
								      ? sum / made_count(options)
								      : (double)NAN,
					       .performance = (double)NAN,
					       .nr_threads = made_count(options)}};
	made_add(made, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_THREADS};
	record.threads.items = made->threads;
	record.threads.count = made_count(options);
	made_add(made, &record);
}

static inline void made_processes(struct made *made)
{
	const struct made_recording_options *options = made->options;
	struct nm_recorded_process *items = calloc(options->processes + 1, sizeof(*items));
	for (unsigned p = 0; p < options->processes; p++) {
		items[p] =
			(struct nm_recorded_process){.pid = made_pid(options, p * options->threads),
						     .threads = options->threads,
						     .performance = (double)NAN};
		snprintf(items[p].comm, sizeof(items[p].comm), "%s", made_name(options, p));
	}
	struct nm_recorded record = {.kind = NM_RECORDED_PROCESSES};
	record.processes.items = items;
	record.processes.count = options->processes;
	made_add(made, &record);
	free(items);
}

/* ---- decisions ---- */

static inline void made_log_entry(struct made *made, uint64_t decision, const char *text,
				  bool verdict)
{
	const struct nm_recorded record = {
		.kind = NM_RECORDED_ENTRY,
		.entry = {.decision = decision,
			  .text = made->options->message ? made->options->message : text,
			  .fields = verdict ? "DECISION=1\nVERDICT=improved"
					    : "DECISION=1\nKIND=migrate"}};
	made_add(made, &record);
}

static inline void made_judge(struct made *made, uint64_t id)
{
	char text[128];
	struct nm_recorded record = {
		.kind = NM_RECORDED_VERDICT,
		.verdict = {.decision = id,
			    .kind = (enum nm_verdict_kind)(id % 7 > 3 ? 0 : id % 7)}};
	snprintf(text, sizeof(text), "decision %u: local share 18 %% before, 92 %% after",
		 (unsigned)id);
	made_add(made, &record);
	made_log_entry(made, id, text, true);
}

static inline void made_decide(struct made *made, unsigned thread)
{
	const struct made_recording_options *options = made->options;
	char text[256];
	uint64_t id = made->next_decision++;
	int home = made_home(options, thread);
	struct nm_recorded record = {.kind = NM_RECORDED_DECISION,
				     .decision = {.id = id,
						  .kind = NM_DECISION_MIGRATE,
						  .policy = NM_POLICY_IMAR2,
						  .nr_steps = 1,
						  .steps = {{.tid = made_tid(options, thread),
							     .pid = made_pid(options, thread),
							     .node_from = made->node[thread],
							     .node_to = home}}}};
	snprintf(text, sizeof(text),
		 "thread %u (%s) goes from node %d to node %d, where its memory is",
		 made_tid(options, thread), made_name(options, thread / options->threads),
		 made->node[thread], home);
	made_add(made, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_RECEIPT,
				      .receipt = {.decision = id, .applied = id % 11 != 5}};
	made_add(made, &record);
	made_log_entry(made, id, text, false);
	if (id % 11 == 5)
		return;
	made->node[thread] = home;
	if (id % 5 != 4)
		made_judge(made, id);
}

static inline void made_move_pages(struct made *made)
{
	uint64_t id = made->next_decision++;
	struct nm_recorded record = {.kind = NM_RECORDED_DECISION,
				     .decision = {.id = id,
						  .kind = NM_DECISION_PAGES,
						  .pages = {.pages = 512},
						  .nr_steps = 1,
						  .steps = {{.pid = made_pid(made->options, 0),
							     .node_from = -1,
							     .node_to = 1}}}};
	made_add(made, &record);
	record = (struct nm_recorded){.kind = NM_RECORDED_VERDICT,
				      .verdict = {.decision = id,
						  .of = NM_DECISION_PAGES,
						  .results = {.moved = 500},
						  .kind = NM_VERDICT_IMPROVED}};
	made_add(made, &record);
}

static inline void made_live(struct made *made, unsigned number)
{
	const struct made_recording_options *options = made->options;
	made_interval(made, number);
	made_processes(made);
	unsigned thread = (number * 7) % made_count(options);
	if (options->moves && number > 3 && made->node[thread] != made_home(options, thread))
		made_decide(made, thread);
	else if (options->moves && number > 30 && number % 12 == 0)
		made->node[thread] = (made->node[thread] + 1) % (int)options->nodes;
	if (options->pages && number % 20 == 10)
		made_move_pages(made);
}

/* Writes to an empty file and leaves fd open. Returns 0 or -errno. */
static inline int made_recording(int fd, const struct made_recording_options *options)
{
	struct made made = {.options = options, .next_decision = 1};
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	int r = copy < 0 ? -errno : nm_recording_create(copy, 0, &made.writer);
	if (r < 0)
		return r;
	made.node = calloc(made_count(options) + 1, sizeof(*made.node));
	made.threads = calloc(made_count(options) + 1, sizeof(*made.threads));
	for (unsigned i = 0; i < made_count(options); i++)
		made.node[i] = (made_home(options, i) + 1 + (int)(i % 3)) % (int)options->nodes;
	made_start(&made);
	for (unsigned i = 1; i <= options->intervals; i++)
		made_live(&made, i);
	const struct nm_recorded end = {.kind = NM_RECORDED_END, .end = "its time is over"};
	made_add(&made, &end);
	nm_recording_close(made.writer);
	free(made.node);
	free(made.threads);
	return made.error;
}

#endif

/* SPDX-License-Identifier: MIT */
#include "recorder.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"
#include "numa-migrd/file.h"
#include "numa-migrd/recording.h"

struct nm_recorder {
	struct nm_record_sink sink;
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: no time limit */
	struct nm_sample *samples;
	size_t nr_samples, room_samples;
	int error; /* error after which the sink accepts no more data; 0: none */
};

int nm_recorder_add(struct nm_daemon *daemon, const struct nm_recorded *record)
{
	struct nm_recorder *recorder = daemon->recorder;
	if (!recorder)
		return -ENOENT;
	if (recorder->error == 0)
		recorder->error = recorder->sink.add(recorder->sink.context, record);
	return recorder->error;
}

void nm_recorder_failed(struct nm_daemon *daemon, int error)
{
	if (daemon->recorder && daemon->recorder->error == 0 && error < 0)
		daemon->recorder->error = error;
}

static void add_output(struct nm_daemon *daemon, const struct nm_recorded *record)
{
	(void)nm_recorder_add(daemon, record);
}

static bool records_inputs(const struct nm_daemon *daemon)
{
	return daemon->recorder && daemon->recorder->sink.inputs;
}

/* ---- begin and end ---- */

static void recorder_free(struct nm_recorder *recorder)
{
	if (!recorder)
		return;
	if (recorder->sink.free)
		recorder->sink.free(recorder->sink.context);
	free(recorder->samples);
	free(recorder);
}

static int write_record(void *context, const struct nm_recorded *record)
{
	return nm_recording_add(context, record);
}

static int flush_file(void *context)
{
	return nm_recording_flush(context);
}

static void close_file(void *context)
{
	nm_recording_close(context);
}

int nm_recorder_file(int fd, uint64_t limit_bytes, struct nm_record_sink *ret)
{
	struct nm_recorder_writer *writer;
	int r = nm_recording_create(fd, limit_bytes, &writer);
	if (r < 0)
		return r;
	*ret = (struct nm_record_sink){
		.context = writer,
		.add = write_record,
		.flush = flush_file,
		.free = close_file,
		.inputs = true,
	};
	return 0;
}

int nm_recorder_attach(struct nm_daemon *daemon, const struct nm_record_sink *sink)
{
	struct nm_recorder *recorder = calloc(1, sizeof(*recorder));
	if (!recorder) {
		if (sink->free)
			sink->free(sink->context);
		return -ENOMEM;
	}
	recorder->sink = *sink;
	daemon->recorder = recorder;
	return 0;
}

/* Resets the state to that of a daemon that has just started. */
static void reset_state(struct nm_daemon *daemon)
{
	nm_rng_seed(&daemon->rng, daemon->seed);
	daemon->pipeline.kmaf_clock = (struct nm_kmaf_clock){0};
	daemon->machine.online[0] = '\0';
	daemon->injection.injector = (struct nm_injector){0};
	daemon->injection.unusable = false;
	for (unsigned cpu = 0; cpu < daemon->machine.nr_cpus; cpu++)
		daemon->machine.cpu_times[cpu] = (struct nm_cpu_times){0};
}

static void add_start(struct nm_daemon *daemon)
{
	struct nm_recorded record = {.kind = NM_RECORDED_START,
				     .start = {.version = NM_VERSION,
					       .time_s = (uint64_t)time(NULL),
					       .monotonic_ns = daemon->last_tick_ns,
					       .pid = (uint32_t)getpid(),
					       .seed = daemon->seed,
					       .next_decision = daemon->next_decision,
					       .intervals = daemon->tally.intervals,
					       .dry_run = nm_daemon_is_dry_run(daemon),
					       .config_name = daemon->options.config_path,
					       .config = daemon->config_text,
					       .config_length = strlen(daemon->config_text)}};
	(void)snprintf(record.start.source, sizeof(record.start.source), "%s",
		       nm_report_source_name(daemon));
	add_output(daemon, &record);
}

/* Records the released processes and threads; the file names the boot. */
static void add_given_back(struct nm_daemon *daemon)
{
	static const size_t most = 1 << 20;
	nm_autofree char *text = malloc(most);
	int length =
		text ? nm_read_text(daemon->runtime.directory, NM_ROSTER_MEMORY_NAME, text, most)
		     : -ENOMEM;
	struct nm_recorded record = {.kind = NM_RECORDED_ANSWER,
				     .answer = {.operation = "given_back",
						.path = daemon->runtime.boot_id,
						.result = length,
						.bytes = (const uint8_t *)text,
						.length = length > 0 ? (size_t)length : 0}};
	add_output(daemon, &record);
}

int nm_recorder_begin(struct nm_daemon *daemon, const struct nm_record_sink *sink, uint64_t seconds)
{
	int r = daemon->recorder ? -EBUSY : daemon->paused ? -EAGAIN : 0;
	if (r < 0) {
		if (sink->free)
			sink->free(sink->context);
		return r;
	}
	if (daemon->pipeline.platform)
		nm_pipeline_close(daemon);
	reset_state(daemon);
	r = nm_recorder_start(daemon, sink);
	int opened = nm_pipeline_open(daemon);
	if (opened < 0)
		return opened;
	nm_runtime_load_released(daemon);
	if (r == 0 && seconds)
		daemon->recorder->until_ns = daemon->last_tick_ns + seconds * NM_NSEC_PER_SEC;
	nm_loop_arm(daemon);
	return r;
}

int nm_recorder_end(struct nm_daemon *daemon, const char *reason)
{
	struct nm_recorded end = {.kind = NM_RECORDED_END, .end = reason};
	struct nm_recorder *recorder = daemon->recorder;
	if (!recorder)
		return -ENOENT;
	add_output(daemon, &end);
	if (recorder->sink.flush && recorder->error == 0)
		recorder->error = recorder->sink.flush(recorder->sink.context);
	daemon->recorder = NULL;
	if (recorder->error < 0 && recorder->error != -EFBIG)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING, "Recording incomplete: %s",
			  strerror(-recorder->error));
	else
		nm_report(daemon, NM_MESSAGE_RECORD, LOG_NOTICE, "Recording ended: %s",
			  recorder->error == -EFBIG ? "size limit reached" : reason);
	/* The tap stays in the pipeline until that is closed, and has no receiver. */
	recorder_free(recorder);
	return 0;
}

void nm_recorder_tick(struct nm_daemon *daemon)
{
	struct nm_recorder *recorder = daemon->recorder;
	if (!recorder)
		return;
	if (recorder->error == 0 && recorder->sink.flush)
		recorder->error = recorder->sink.flush(recorder->sink.context);
	if (recorder->error < 0)
		(void)nm_recorder_end(daemon, "file not writable");
	else if (recorder->until_ns && daemon->last_tick_ns >= recorder->until_ns)
		(void)nm_recorder_end(daemon, "time limit reached");
}

int nm_recorder_start(struct nm_daemon *daemon, const struct nm_record_sink *sink)
{
	int r = nm_recorder_attach(daemon, sink);
	if (r < 0)
		return r;
	add_start(daemon);
	add_given_back(daemon);
	return 0;
}

/* ---- inputs ---- */

static void record_answer(void *context, const struct nm_recorded_answer *answer)
{
	struct nm_daemon *daemon = context;
	struct nm_recorded record = {.kind = NM_RECORDED_ANSWER, .answer = *answer};
	if (records_inputs(daemon))
		add_output(daemon, &record);
}

int nm_recorder_open_platform(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	const struct nm_record_sink *sink = daemon->recorder ? &daemon->recorder->sink : NULL;
	pipeline->platform = pipeline->machine;
	if (sink && sink->open_platform)
		return sink->open_platform(sink->context, &pipeline->platform);
	if (!records_inputs(daemon))
		return 0;
	return nm_tap_new(pipeline->machine, record_answer, daemon, &pipeline->platform);
}

void nm_recorder_call(struct nm_daemon *daemon, enum nm_recorded_call call, uint64_t number,
		      const char *text)
{
	struct nm_recorded record = {.kind = NM_RECORDED_CALL,
				     .step = {.call = call,
					      .number = number,
					      .text = text,
					      .length = text ? strlen(text) : 0}};
	if (records_inputs(daemon))
		add_output(daemon, &record);
}

void nm_recorder_topology(struct nm_daemon *daemon)
{
	struct nm_recorded record = {.kind = NM_RECORDED_TOPOLOGY,
				     .topology = daemon->pipeline.topology};
	if (records_inputs(daemon))
		add_output(daemon, &record);
}

void nm_recorder_sample(struct nm_daemon *daemon, const struct nm_sample *sample)
{
	struct nm_recorder *recorder = daemon->recorder;
	if (!records_inputs(daemon) || recorder->error < 0)
		return;
	recorder->error =
		NM_RESERVE(recorder->samples, recorder->room_samples, recorder->nr_samples);
	if (recorder->error < 0)
		return;
	struct nm_sample *kept = &recorder->samples[recorder->nr_samples++];
	*kept = *sample;
	kept->physical_address = 0;
}

void nm_recorder_drained(struct nm_daemon *daemon)
{
	struct nm_recorder *recorder = daemon->recorder;
	if (!records_inputs(daemon))
		return;
	struct nm_recorded record = {.kind = NM_RECORDED_SAMPLES,
				     .samples = {.samples = recorder->samples,
						 .nr_samples = recorder->nr_samples,
						 .events = daemon->drained.events,
						 .nr_events = daemon->drained.nr_events}};
	add_output(daemon, &record);
	recorder->nr_samples = 0;
	nm_recorder_source(daemon, NULL, 0);
}

void nm_recorder_source(struct nm_daemon *daemon, const double *taken_per_seen, unsigned nr_cpus)
{
	struct nm_source *source = daemon->pipeline.source;
	struct nm_recorded record = {.kind = NM_RECORDED_SOURCE,
				     .source = {.open = source != NULL,
						.taken_per_seen = taken_per_seen,
						.nr_cpus = taken_per_seen ? nr_cpus : 0}};
	if (!records_inputs(daemon))
		return;
	if (source)
		record.source.status = *nm_source_status(source);
	add_output(daemon, &record);
}

static void add_answer(struct nm_daemon *daemon, const char *function, int64_t handle,
		       int64_t result, const uint8_t *bytes, size_t length)
{
	struct nm_recorded record = {.kind = NM_RECORDED_ANSWER,
				     .answer = {.operation = function,
						.handle = handle,
						.path = "",
						.result = result,
						.bytes = bytes,
						.length = length}};
	add_output(daemon, &record);
}

void nm_recorder_mover(struct nm_daemon *daemon, const char *function, int64_t result)
{
	if (records_inputs(daemon))
		add_answer(daemon, function, 0, result, NULL, 0);
}

void nm_recorder_batch(struct nm_daemon *daemon, const struct nm_page_batch *batch)
{
	nm_autofree uint8_t *bytes = NULL;
	size_t size = 0;
	if (!records_inputs(daemon))
		return;
	nm_recorder_failed(daemon, batch ? nm_batch_put(batch, &bytes, &size) : 0);
	add_answer(daemon, "mover_collect", 0, batch != NULL, bytes, size);
}

void nm_recorder_ranges(struct nm_daemon *daemon, uint32_t pid, int result,
			const struct nm_range *ranges, size_t count)
{
	nm_autofree uint8_t *bytes = NULL;
	size_t size = 0;
	if (!records_inputs(daemon))
		return;
	nm_recorder_failed(daemon, result < 0 ? 0 : nm_ranges_put(ranges, count, &bytes, &size));
	add_answer(daemon, "mover_ranges", pid, result, bytes, size);
}

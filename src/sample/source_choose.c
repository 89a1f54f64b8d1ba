/* SPDX-License-Identifier: MIT */
/* Determines by a trial on one CPU which events count on this machine. */
#include <stdio.h>
#include <time.h>

#include "source.h"

/* Returns 0 if the event has been on a counter, otherwise -EBUSY. */
static int has_run(struct nm_platform *platform, int fd)
{
	struct nm_event_count count = {0};
	int r = platform->ops->event_read(platform, fd, &count, sizeof(count));

	if (r < 0)
		return r;
	return count.running_ns > 0 ? 0 : -EBUSY;
}

static void wait_for_trial(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NM_TRIAL_NS}, NULL);
}

struct nm_event_selection nm_event_selection_of(const struct nm_config *config,
						enum nm_memory_source source)
{
	return (struct nm_event_selection){
		.source = source,
		.load_latency = NM_LOAD_LATENCY,
		.pmu = config->sampling.pmu,
		.event = config->sampling.event,
	};
}

/* ---- cycles or clock ---- */

/* Returns 0 if a cycle counter opened on the CPU and counted, -EBUSY if it opened but did not
 * count. */
static int try_cycles(struct nm_source *source, int cpu)
{
	struct nm_platform *platform = source->platform;

	int fd = platform->ops->event_open(platform, NM_EVENT_CYCLES, cpu,
					   nm_source_period(source, NM_EVENT_CYCLES));
	if (fd < 0)
		return fd;
	int r = platform->ops->event_ioctl(platform, fd, PERF_EVENT_IOC_ENABLE, NULL);
	if (r == 0) {
		wait_for_trial();
		r = has_run(platform, fd);
	}
	platform->ops->close(platform, fd);
	return r;
}

static void choose_run_kind(struct nm_source *source, int cpu)
{
	struct nm_platform *platform = source->platform;
	char path[96], text[32];

	/* Most virtual machines do not report it. */
	snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", cpu);
	source->cycles_per_ns = 0.0;
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) >= 0)
		source->cycles_per_ns = (double)strtoull(text, NULL, 10) / 1e6; /* kHz */
	int r = source->cycles_per_ns > 0.0 ? try_cycles(source, cpu) : -ENOENT;

	if (r == -EBUSY)
		nm_problems_add(&source->problems, NM_STEP_TRIAL, NM_EVENT_CYCLES, cpu, r);
	if (r == 0)
		source->run_kind = NM_EVENT_CYCLES;
	else
		source->cycles_per_ns = 0.0;
}

/* ---- hardware events ---- */

struct trial {
	struct nm_event_fds fds[NM_EVENT_LIST_MAX];
	int results[NM_EVENT_LIST_MAX];
};

static bool is_access(enum nm_event_kind kind)
{
	return kind == NM_EVENT_MEMORY || kind == NM_EVENT_STORE;
}

/* Tries either the accesses or the amounts of a list, all at once: the kernel multiplexes them. */
static void try_words(struct nm_source *source, int cpu, const struct nm_event_list *list,
		      bool accesses, struct trial *trial)
{
	struct nm_platform *platform = source->platform;
	bool any = false;

	for (unsigned i = 0; i < list->count; i++) {
		trial->fds[i] = (struct nm_event_fds){-1, -1};
		int r = -ENOENT;
		if (is_access(list->words[i].kind) == accesses)
			r = nm_source_open_word(source, &list->words[i], cpu, &trial->fds[i]);
		if (r >= 0)
			r = platform->ops->event_ioctl(platform, trial->fds[i].event,
						       PERF_EVENT_IOC_ENABLE, NULL);
		trial->results[i] = r;
		any |= r == 0;
	}
	if (any)
		wait_for_trial();
	for (unsigned i = 0; i < list->count; i++) {
		if (trial->results[i] == 0)
			trial->results[i] = has_run(platform, trial->fds[i].event);
		nm_event_close(platform, trial->fds[i]);
	}
}

/*
 * Adds the words that counted to those that will be opened, and also those that opened but did not
 * count, because another program may release the counter. Reports those that exist but cannot be
 * used.
 */
static void add_words(struct nm_source *source, int cpu, const struct nm_event_list *list,
		      bool accesses, const struct trial *trial)
{
	unsigned reported = 0;

	for (unsigned i = 0; i < list->count; i++) {
		const struct nm_event_word *word = &list->words[i];
		int r = trial->results[i];
		if (is_access(word->kind) != accesses)
			continue;
		if (r == -EBUSY)
			source->busy_words |= 1U << source->hardware.count;
		if (r == 0 || r == -EBUSY)
			source->hardware.words[source->hardware.count++] = *word;
		if (r == 0 || r == -ENOENT || (reported & 1U << word->kind))
			continue;
		nm_problems_add(&source->problems, r == -EBUSY ? NM_STEP_STARVED : NM_STEP_COUNTER,
				word->kind, cpu, r);
		reported |= 1U << word->kind;
	}
}

/* SPE does not count without its areas. */
static int try_spe(struct nm_source *source, int cpu, const struct nm_event_list *list)
{
	struct nm_platform *platform = source->platform;
	struct nm_spe_ring *ring = NULL;
	enum nm_problem_step step;
	int r = nm_source_open_spe(source, list, cpu, &step, &ring);

	if (r < 0 && step == NM_STEP_MAP) /* with another remedy */
		nm_problems_add(&source->problems, step, NM_EVENT_MEMORY, cpu, r);
	if (r < 0)
		return step == NM_STEP_MAP ? -ENOSPC : r;
	r = platform->ops->event_ioctl(platform, ring->fds.event, PERF_EVENT_IOC_ENABLE, NULL);
	if (r == 0) {
		wait_for_trial();
		r = has_run(platform, ring->fds.event);
	}
	nm_spe_ring_close(platform, ring);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < list->count; i++)
		if (list->words[i].aux)
			source->hardware.words[source->hardware.count++] = list->words[i];
	return 0;
}

/* Returns 0 if loads are sampled with that source, which is then used. even_busy: also uses it if
 * the result is -EBUSY. */
static int try_source(struct nm_source *source, int cpu, enum nm_memory_source memory,
		      bool even_busy)
{
	struct nm_event_list list;
	struct trial trial;

	source->selection.source = memory;
	int r = source->platform->ops->hardware_list(source->platform, &source->selection, &list);
	if (r < 0)
		return r;
	if (list.count == 0 || list.words[0].kind != NM_EVENT_MEMORY)
		return -ENOENT;
	if (memory == NM_MEMORY_SPE)
		return try_spe(source, cpu, &list);
	try_words(source, cpu, &list, true, &trial);
	if (trial.results[0] == 0 || (even_busy && trial.results[0] == -EBUSY))
		add_words(source, cpu, &list, true, &trial);
	return trial.results[0];
}

/* In the order of the trials; sources named in the configuration come first. */
static const enum nm_memory_source order[] = {NM_MEMORY_PMU, NM_MEMORY_EVENT, NM_MEMORY_PEBS,
					      NM_MEMORY_IBS, NM_MEMORY_SPE};

static bool is_kind_wanted(const struct nm_source *source, enum nm_memory_source memory)
{
	switch (source->choice) {
	case NM_SOURCE_AUTO:
		return (memory != NM_MEMORY_PMU || source->pmu[0]) &&
		       (memory != NM_MEMORY_EVENT || source->event[0]);
	case NM_SOURCE_PEBS:
		return memory == NM_MEMORY_PEBS;
	case NM_SOURCE_IBS:
		return memory == NM_MEMORY_IBS;
	case NM_SOURCE_SPE:
		return memory == NM_MEMORY_SPE;
	case NM_SOURCE_EVENT:
		return memory == (source->pmu[0] ? NM_MEMORY_PMU : NM_MEMORY_EVENT);
	default:
		return false;
	}
}

/*
 * A machine without a source that was not requested by name has no problem. If no source counts,
 * the first one whose counter another program seems to hold is opened and waits, and page faults
 * replace it meanwhile.
 */
static void choose_memory(struct nm_source *source, int cpu)
{
	enum nm_memory_source busy = NM_MEMORY_NONE;

	for (size_t i = 0; i < NM_ARRAY_SIZE(order); i++) {
		if (!is_kind_wanted(source, order[i]))
			continue;
		int r = try_source(source, cpu, order[i], false);
		if (r == 0)
			return;
		if (r == -EBUSY && busy == NM_MEMORY_NONE && order[i] != NM_MEMORY_SPE) {
			busy = order[i];
			continue;
		}
		bool event = order[i] == NM_MEMORY_EVENT;
		bool asked = source->choice != NM_SOURCE_AUTO || order[i] == NM_MEMORY_PMU || event;
		if (asked || r != -ENOENT)
			nm_problems_add(&source->problems, event ? NM_STEP_EVENT : NM_STEP_SOURCE,
					NM_EVENT_MEMORY, cpu, r);
	}
	source->selection.source = NM_MEMORY_NONE;
	if (busy == NM_MEMORY_NONE)
		return;
	int r = try_source(source, cpu, busy, true);
	if (r < 0 && r != -EBUSY)
		source->selection.source = NM_MEMORY_NONE;
}

void nm_source_choose(struct nm_source *source, const struct nm_topology *topology)
{
	int cpu = hwloc_bitmap_first(topology->usable);
	struct nm_event_list amounts;
	struct trial trial;

	source->run_kind = NM_EVENT_CLOCK;
	if (cpu < 0 || source->choice == NM_SOURCE_FAULTS)
		return;
	choose_run_kind(source, cpu);
	choose_memory(source, cpu);
	if (source->platform->ops->hardware_list(source->platform, &source->selection, &amounts) <
	    0)
		return;
	try_words(source, cpu, &amounts, false, &trial);
	add_words(source, cpu, &amounts, false, &trial);
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "problem.h"

struct remedy {
	enum nm_problem_step step;
	int error;
	const char *text; /* follows "Sampling of … on CPU …: " */
};

#define PRIVILEGE "CAP_PERFMON missing; enable numa-migrd-helper.socket"

/* Errors documented in perf_event_open(2), and those of the helper's socket. */
static const struct remedy remedies[] = {
	{NM_STEP_OPEN, -EACCES, PRIVILEGE},
	{NM_STEP_OPEN, -EPERM, PRIVILEGE},
	{NM_STEP_OPEN, -ENODEV, "CPU offline; sampled again once it is online"},
	{NM_STEP_OPEN, -EMFILE, "too many open files; raise LimitNOFILE= of the unit"},
	{NM_STEP_OPEN, -ENFILE, "too many open files; raise fs.file-max"},
	{NM_STEP_OPEN, -ENOENT, "event not offered by this kernel or machine"},
	{NM_STEP_OPEN, -EOPNOTSUPP, "event not offered by this kernel or machine"},
	{NM_STEP_OPEN, -ENOSYS, "the kernel lacks CONFIG_PERF_EVENTS"},
	{NM_STEP_OPEN, -EBUSY, "another program holds the counter; stop it"},
	{NM_STEP_OPEN, -EINVAL, "request not understood; Linux 6.1 is required"},
	{NM_STEP_OPEN, -ENOMEM, "kernel out of memory"},
	{NM_STEP_OPEN, -ENOPKG, "event not encoded; install libpfm4 4.13 or newer"},
	{NM_STEP_OPEN, -ECONNREFUSED, "no answer of numa-migrd-helper.socket"},
	{NM_STEP_OPEN, -ETIMEDOUT, "no answer of numa-migrd-helper.service"},
	{NM_STEP_MAP, -EPERM, "buffer not locked; raise LimitMEMLOCK= of the unit"},
	{NM_STEP_MAP, -ENOMEM, "no memory for the buffer"},
	{NM_STEP_SMALL, -EPERM, "small buffer; raise LimitMEMLOCK= of the unit"},
	{NM_STEP_SMALL, -ENOMEM, "small buffer, memory short"},
	{NM_STEP_TRIAL, -EBUSY, "did not count in 100 ms; cpu-clock is used"},
	{NM_STEP_SOURCE, -EBUSY, "did not count in 100 ms; page faults are used"},
	{NM_STEP_SOURCE, -ENOSPC, "buffers not mapped; page faults are used"},
	{NM_STEP_SOURCE, -ENOENT, "source not offered here; page faults are used"},
	{NM_STEP_SOURCE, -EINVAL, "sampling.event refused; page faults are used"},
	{NM_STEP_EVENT, -ENOPKG, "sampling.event unknown; another source is used"},
	{NM_STEP_EVENT, -EINVAL, "sampling.event has no accesses; another source is used"},
	{NM_STEP_COUNTER, -EBUSY, "not counting; the value is unavailable"},
	{NM_STEP_STARVED, -EBUSY, "counter held by another profiler or nmi_watchdog"},
	{NM_STEP_COUNTER, -EINVAL, "event refused; the value is unavailable"},
};

static const char *const subjects[NM_EVENT_KIND_MAX] = {
	[NM_EVENT_SIDEBAND] = "forks and exits",
	[NM_EVENT_CLOCK] = "threads (cpu-clock)",
	[NM_EVENT_CYCLES] = "threads (cycles)",
	[NM_EVENT_FAULT_MIN] = "minor page faults",
	[NM_EVENT_FAULT_MAJ] = "major page faults",
	[NM_EVENT_MEMORY] = "memory accesses",
	[NM_EVENT_STORE] = "stores",
	[NM_EVENT_INSTRUCTIONS] = "instructions",
	[NM_EVENT_FLOPS] = "floating-point operations",
	[NM_EVENT_DRAM] = "memory traffic",
};

/* A trial fails for the same reasons as any opening, unless it has its own entry. */
static const char *remedy_text(enum nm_problem_step step, int error)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(remedies); i++)
		if (remedies[i].step == step && remedies[i].error == error)
			return remedies[i].text;
	return step >= NM_STEP_SOURCE ? remedy_text(NM_STEP_OPEN, error) : NULL;
}

const char *nm_problem_remedy(int error)
{
	return remedy_text(NM_STEP_OPEN, error);
}

static void write_text(struct nm_source_problem *problem, enum nm_problem_step step)
{
	const char *remedy = remedy_text(step, problem->error);
	char others[32] = "";

	if (problem->count > 1)
		snprintf(others, sizeof(others), " and %u more", problem->count - 1);
	if (remedy)
		snprintf(problem->text, sizeof(problem->text), "Sampling of %s on CPU %d%s: %s",
			 subjects[problem->kind], problem->first_cpu, others, remedy);
	else
		snprintf(problem->text, sizeof(problem->text),
			 "Sampling of %s on CPU %d%s failed: %s", subjects[problem->kind],
			 problem->first_cpu, others, strerrordesc_np(-problem->error));
}

/* Returns the index of an entry, or the count if there is none. */
static size_t find(const struct nm_problems *problems, const struct nm_problem_cause *cause)
{
	size_t i = 0;

	while (i < problems->count &&
	       (problems->steps[i] != cause->step || problems->items[i].kind != cause->kind ||
		problems->items[i].error != cause->error))
		i++;
	return i;
}

/* The same, but adds an entry if there is room; otherwise returns NM_PROBLEMS_MAX. */
static size_t find_or_make(struct nm_problems *problems, const struct nm_problem_cause *cause,
			   int cpu)
{
	size_t i = find(problems, cause);

	if (i < problems->count || i == NM_PROBLEMS_MAX)
		return i;
	problems->items[i] = (struct nm_source_problem){
		.error = cause->error, .kind = cause->kind, .first_cpu = cpu};
	problems->steps[i] = cause->step;
	problems->count++;
	return i;
}

static void drop(struct nm_problems *problems, size_t i)
{
	size_t behind = --problems->count - i;

	memmove(&problems->items[i], &problems->items[i + 1], behind * sizeof(problems->items[0]));
	memmove(&problems->steps[i], &problems->steps[i + 1], behind * sizeof(problems->steps[0]));
}

void nm_problems_add(struct nm_problems *problems, enum nm_problem_step step,
		     enum nm_event_kind kind, int cpu, int error)
{
	const struct nm_problem_cause cause = {.step = step, .kind = kind, .error = error};
	size_t i = find_or_make(problems, &cause, cpu);

	if (i == NM_PROBLEMS_MAX)
		return;
	problems->items[i].count++;
	write_text(&problems->items[i], step);
}

void nm_problems_set(struct nm_problems *problems, enum nm_problem_step step,
		     enum nm_event_kind kind, int error, int cpu, unsigned count)
{
	const struct nm_problem_cause cause = {.step = step, .kind = kind, .error = error};

	if (count == 0) {
		size_t i = find(problems, &cause);
		if (i < problems->count)
			drop(problems, i);
		return;
	}
	size_t i = find_or_make(problems, &cause, cpu);
	if (i == NM_PROBLEMS_MAX)
		return;
	problems->items[i].count = count;
	problems->items[i].first_cpu = cpu;
	write_text(&problems->items[i], step);
}

void nm_problems_drop_rings(struct nm_problems *problems)
{
	for (size_t i = problems->count; i-- > 0;)
		if (problems->steps[i] <= NM_STEP_JOIN)
			drop(problems, i);
}

/* ---- news ---- */

static bool was_reported(const struct nm_problems *problems, size_t item)
{
	for (size_t i = 0; i < problems->nr_reported; i++) {
		const struct nm_problem_cause *reported = &problems->reported[i];
		if (reported->step == problems->steps[item] &&
		    reported->kind == problems->items[item].kind &&
		    reported->error == problems->items[item].error)
			return true;
	}
	return false;
}

/* The end of other problems is visible elsewhere: CPUs come back, sources are selected. */
static size_t report_ends(struct nm_problems *problems)
{
	size_t kept = 0, count = 0;

	for (size_t i = 0; i < problems->nr_reported; i++) {
		const struct nm_problem_cause *reported = &problems->reported[i];
		if (find(problems, reported) < problems->count) {
			problems->reported[kept++] = *reported;
		} else if (reported->step == NM_STEP_STARVED) {
			struct nm_source_problem *news = &problems->news[count++];
			*news = (struct nm_source_problem){
				.error = reported->error, .kind = reported->kind, .over = true};
			snprintf(news->text, sizeof(news->text), "Sampling of %s: counting again",
				 subjects[reported->kind]);
		}
	}
	problems->nr_reported = kept;
	return count;
}

const struct nm_source_problem *nm_problems_news(struct nm_problems *problems, size_t *ret_count)
{
	size_t count = report_ends(problems);

	for (size_t i = 0; i < problems->count; i++) {
		if (was_reported(problems, i))
			continue;
		problems->news[count++] = problems->items[i];
		problems->reported[problems->nr_reported++] =
			(struct nm_problem_cause){.step = problems->steps[i],
						  .kind = problems->items[i].kind,
						  .error = problems->items[i].error};
	}
	*ret_count = count;
	return problems->news;
}

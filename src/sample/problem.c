/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "problem.h"

struct remedy {
	enum nm_problem_step step;
	int error;
	const char *text; /* completes "Sampling of … on CPU …: " */
};

#define PRIVILEGE                                                                                  \
	"it takes CAP_PERFMON and kernel.perf_event_paranoid at 2 or lower, or "                   \
	"numa-migrd-helper.socket: enable that."
#define LOCKED_MEMORY                                                                              \
	"raise kernel.perf_event_mlock_kb or LimitMEMLOCK=, or lower sampling.ring_kb."

/* The errors perf_event_open(2) documents, and what has been seen of the helper's socket. */
static const struct remedy remedies[] = {
	{NM_STEP_OPEN, -EACCES, PRIVILEGE},
	{NM_STEP_OPEN, -EPERM, PRIVILEGE},
	{NM_STEP_OPEN, -ENODEV, "the CPU is offline; it is sampled again once it is back."},
	{NM_STEP_OPEN, -EMFILE,
	 "the limit of open files is too low; raise LimitNOFILE= in numa-migrd.service."},
	{NM_STEP_OPEN, -ENFILE, "the system's table of open files is full; raise fs.file-max."},
	{NM_STEP_OPEN, -ENOENT, "this kernel or machine does not offer the event."},
	{NM_STEP_OPEN, -EOPNOTSUPP, "this kernel or machine does not offer the event."},
	{NM_STEP_OPEN, -ENOSYS, "the kernel lacks CONFIG_PERF_EVENTS; boot one that has it."},
	{NM_STEP_OPEN, -EBUSY, "another program holds the counter; stop the other profiler."},
	{NM_STEP_OPEN, -EINVAL,
	 "the kernel does not understand the request; Linux 6.1 or newer is needed."},
	{NM_STEP_OPEN, -ENOMEM, "the kernel has no memory left for it; lower sampling.ring_kb."},
	{NM_STEP_OPEN, -ENOPKG,
	 "the installed libpfm4 does not encode the event (numa-migrd --list-events shows it); "
	 "install version 4.13 or newer."},
	{NM_STEP_OPEN, -ECONNREFUSED,
	 "the helper does not answer; see systemctl status numa-migrd-helper.socket."},
	{NM_STEP_OPEN, -ETIMEDOUT,
	 "the helper does not answer; see systemctl status numa-migrd-helper.service."},
	{NM_STEP_MAP, -EPERM, "no memory may be locked for the buffer; " LOCKED_MEMORY},
	{NM_STEP_MAP, -ENOMEM, "there is no memory for the buffer; lower sampling.ring_kb."},
	{NM_STEP_SMALL, -EPERM,
	 "the buffer is smaller than configured and may overflow; " LOCKED_MEMORY},
	{NM_STEP_SMALL, -ENOMEM,
	 "the buffer is smaller than configured, as memory is short; lower sampling.ring_kb."},
	{NM_STEP_TRIAL, -EBUSY,
	 "the counter did not count in 100 ms (another profiler or the NMI watchdog may hold it); "
	 "cpu-clock stands in."},
	{NM_STEP_SOURCE, -EBUSY,
	 "the event did not count in 100 ms (another profiler may hold it); page faults stand in."},
	{NM_STEP_SOURCE, -ENOSPC, "its buffers cannot be mapped; page faults stand in."},
	{NM_STEP_SOURCE, -ENOENT,
	 "this kernel or machine does not offer the source that is configured; page faults stand "
	 "in."},
	{NM_STEP_SOURCE, -EINVAL,
	 "sampling.pmu is not understood here (numa-migrd --list-events), or the kernel refuses "
	 "the "
	 "event; page faults stand in."},
	{NM_STEP_EVENT, -ENOPKG,
	 "sampling.event is no event of this CPU (numa-migrd --check-config gives the reason); "
	 "another source or page faults stand in."},
	{NM_STEP_EVENT, -EINVAL,
	 "the kernel samples no accesses by sampling.event; another source or page faults stand "
	 "in."},
	{NM_STEP_COUNTER, -EBUSY,
	 "the counter does not count (another profiler may hold it); the figure is unavailable."},
	{NM_STEP_STARVED, -EBUSY,
	 "the counter does not count, and the figure is unavailable until it does; another "
	 "profiler holds it: end that, or free a counter by sysctl kernel.nmi_watchdog=0."},
	{NM_STEP_COUNTER, -EINVAL, "the kernel refuses the event; the figure is unavailable."},
};

static const char *const subjects[NM_EVENT_KIND_MAX] = {
	[NM_EVENT_SIDEBAND] = "thread starts and ends",
	[NM_EVENT_CLOCK] = "running threads (cpu-clock)",
	[NM_EVENT_CYCLES] = "running threads (cycles)",
	[NM_EVENT_FAULT_MIN] = "minor page faults",
	[NM_EVENT_FAULT_MAJ] = "major page faults",
	[NM_EVENT_MEMORY] = "memory accesses",
	[NM_EVENT_STORE] = "stores",
	[NM_EVENT_INSTRUCTIONS] = "instructions",
	[NM_EVENT_FLOPS] = "floating-point operations",
	[NM_EVENT_DRAM] = "memory traffic",
};

/* A trial fails for the same reasons as any opening, unless it has one of its own. */
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
			 "Sampling of %s on CPU %d%s failed: %s.", subjects[problem->kind],
			 problem->first_cpu, others, strerrordesc_np(-problem->error));
}

/* The place of an entry, or the count where there is none. */
static size_t find(const struct nm_problems *problems, const struct nm_problem_cause *cause)
{
	size_t i = 0;

	while (i < problems->count &&
	       (problems->steps[i] != cause->step || problems->items[i].kind != cause->kind ||
		problems->items[i].error != cause->error))
		i++;
	return i;
}

/* The same, and a new entry where there is room for one; NM_PROBLEMS_MAX where not. */
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

void nm_problems_forget_rings(struct nm_problems *problems)
{
	for (size_t i = problems->count; i-- > 0;)
		if (problems->steps[i] <= NM_STEP_JOIN)
			drop(problems, i);
}

/* ---- news ---- */

static bool was_told(const struct nm_problems *problems, size_t item)
{
	for (size_t i = 0; i < problems->nr_told; i++) {
		const struct nm_problem_cause *told = &problems->told[i];
		if (told->step == problems->steps[item] &&
		    told->kind == problems->items[item].kind &&
		    told->error == problems->items[item].error)
			return true;
	}
	return false;
}

static struct nm_source_problem ended(const struct nm_problem_cause *cause)
{
	struct nm_source_problem news = {.error = cause->error, .kind = cause->kind, .over = true};

	snprintf(news.text, sizeof(news.text), "Sampling of %s: the counter counts again.",
		 subjects[cause->kind]);
	return news;
}

/* That something else is no problem any more shows elsewhere: CPUs come back, sources are chosen.
 */
static size_t tell_ends(struct nm_problems *problems)
{
	size_t kept = 0, count = 0;

	for (size_t i = 0; i < problems->nr_told; i++) {
		const struct nm_problem_cause *told = &problems->told[i];
		if (find(problems, told) < problems->count)
			problems->told[kept++] = *told;
		else if (told->step == NM_STEP_STARVED)
			problems->news[count++] = ended(told);
	}
	problems->nr_told = kept;
	return count;
}

const struct nm_source_problem *nm_problems_news(struct nm_problems *problems, size_t *ret_count)
{
	size_t count = tell_ends(problems);

	for (size_t i = 0; i < problems->count; i++) {
		if (was_told(problems, i))
			continue;
		problems->news[count++] = problems->items[i];
		problems->told[problems->nr_told++] =
			(struct nm_problem_cause){.step = problems->steps[i],
						  .kind = problems->items[i].kind,
						  .error = problems->items[i].error};
	}
	*ret_count = count;
	return problems->news;
}

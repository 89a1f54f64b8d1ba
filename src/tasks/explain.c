/* SPDX-License-Identifier: MIT */
/* Why a process is or is not managed: the table of reasons, and the reason of one process. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "roster_internal.h"

#define THREADS_TRIED 64U

static const struct nm_eligibility_reason reasons[NM_ELIGIBILITY_MAX] = {
	[NM_ELIGIBILITY_MANAGED] = {"managed", "it is managed", false},
	[NM_ELIGIBILITY_NOT_TARGET] = {"not-target", "no pattern of targets.include matches it",
				       false},
	[NM_ELIGIBILITY_EXCLUDED] = {"excluded", "a pattern of targets.exclude matches it", false},
	[NM_ELIGIBILITY_SMALL] = {"small", "its resident memory is less than targets.min_rss_mb",
				  false},
	[NM_ELIGIBILITY_IDLE] = {"little-cpu", "it uses less CPU than targets.min_cpu_percent",
				 false},
	[NM_ELIGIBILITY_UNREADABLE] = {"unreadable", "its status in /proc is too long", false},
	[NM_ELIGIBILITY_KERNEL] = {"kernel-thread", "it is a kernel thread", false},
	[NM_ELIGIBILITY_REALTIME] = {"real-time", "its threads are real-time or deadline threads",
				     true},
	[NM_ELIGIBILITY_SELF] = {"numa-migrd", "it is a part of numa-migrd", false},
	[NM_ELIGIBILITY_PINNED] = {"pinned", "the CPU affinity of its threads allows only one node",
				   true},
	[NM_ELIGIBILITY_FOREIGN] = {"foreign-mask",
				    "another program changed the CPU affinity of its threads",
				    true},
	[NM_ELIGIBILITY_RELEASED] = {"released", "it was released by numa-migrctl release", true},
	[NM_ELIGIBILITY_ONE_NODE] = {"one-node", "one node has CPUs: nothing is moved", false},
	[NM_ELIGIBILITY_OFF] = {"off", "the attribute " NM_STEER_ATTRIBUTE " of its cgroups is off",
				true},
};

const struct nm_eligibility_reason *nm_eligibility_reason(enum nm_eligibility eligibility)
{
	return &reasons[eligibility];
}

/* ---- the threads ---- */

struct survey {
	struct nm_roster *roster;
	struct nm_process *process;
	uint64_t now_ns;
	unsigned tried, counts[NM_ELIGIBILITY_MAX];
};

static int survey_thread(void *context, const char *name)
{
	struct survey *survey = context;
	struct nm_roster_thread thread = {
		.process = survey->process,
		.member = {.pid = survey->process->pid,
			   .tid = (uint32_t)strtoul(name, NULL, 10),
			   .process = survey->process},
	};
	if (survey->tried++ == THREADS_TRIED)
		return -ECANCELED;
	if (nm_roster_check_thread(survey->roster, &thread, survey->now_ns) == 0)
		survey->counts[thread.eligibility]++;
	hwloc_bitmap_free(thread.original);
	return survey->counts[NM_ELIGIBILITY_MANAGED] ? -ECANCELED : 0;
}

/* Returns MANAGED if any thread may be managed; otherwise the reason of most of them. */
static enum nm_eligibility judge_threads(struct nm_roster *roster, struct nm_process *process,
					 uint64_t now_ns)
{
	struct survey survey = {.roster = roster, .process = process, .now_ns = now_ns};
	enum nm_eligibility most = NM_ELIGIBILITY_MANAGED;
	char path[32];
	(void)snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", process->pid);
	(void)roster->platform->ops->list_directory(roster->platform, NM_ROOT, path, survey_thread,
						    &survey);
	if (survey.counts[NM_ELIGIBILITY_MANAGED])
		return NM_ELIGIBILITY_MANAGED;
	for (unsigned i = 0; i < NM_ELIGIBILITY_MAX; i++)
		if (survey.counts[i] > survey.counts[most])
			most = (enum nm_eligibility)i;
	return most;
}

/* ---- the text ---- */

static void print_size(const struct nm_roster *roster, const struct nm_process *process,
		       struct nm_explanation *explanation)
{
	double mib = 1 << 20;
	(void)snprintf(explanation->text, sizeof(explanation->text),
		       "its resident memory of %.1f MiB is less than targets.min_rss_mb (%s%.1f "
		       "MiB)",
		       (double)process->rss_bytes / mib,
		       roster->config->targets.min_rss_mb ? "" : "0: by the size of the cache, ",
		       (double)nm_roster_min_rss_bytes(roster) / mib);
}

static void print_cpu(const struct nm_roster *roster, const struct nm_process *process,
		      struct nm_explanation *explanation)
{
	double percent = isfinite(process->cpu_share) ? 100 * process->cpu_share : 0;
	(void)snprintf(explanation->text, sizeof(explanation->text),
		       "it used %.1f %% of a CPU, less than targets.min_cpu_percent (%g)", percent,
		       roster->config->targets.min_cpu_percent);
}

static void print_reason(const struct nm_roster *roster, const struct nm_process *process,
			 struct nm_explanation *explanation)
{
	const struct nm_target *target = nm_roster_excluded_by(roster, process);
	char pattern[256];

	(void)snprintf(explanation->text, sizeof(explanation->text), "%s",
		       reasons[explanation->eligibility].text);
	if (explanation->eligibility == NM_ELIGIBILITY_SMALL)
		print_size(roster, process, explanation);
	else if (explanation->eligibility == NM_ELIGIBILITY_IDLE)
		print_cpu(roster, process, explanation);
	else if (explanation->eligibility == NM_ELIGIBILITY_EXCLUDED && target)
		(void)snprintf(explanation->text, sizeof(explanation->text),
			       "targets.exclude matches it: %s",
			       nm_config_print_target(target, pattern, sizeof(pattern)));
	else if (explanation->eligibility == NM_ELIGIBILITY_NOT_TARGET &&
		 roster->config->targets.cgroup_attribute == NM_ATTRIBUTE_ONLY)
		(void)snprintf(
			explanation->text, sizeof(explanation->text),
			"targets.cgroup_attribute is \"only\", and no attribute of its cgroups "
			"selects it");
}

/* ---- one process ---- */

/* A process that no sample has shown uses almost no CPU time. */
static enum nm_eligibility size_of(const struct nm_roster *roster, const struct nm_process *process,
				   bool sampled, uint64_t now_ns)
{
	enum nm_eligibility size = nm_roster_size(roster, process, now_ns);
	return size == NM_ELIGIBILITY_MANAGED && !sampled ? NM_ELIGIBILITY_IDLE : size;
}

static bool depends_on_threads(enum nm_eligibility eligibility)
{
	return eligibility == NM_ELIGIBILITY_MANAGED || eligibility == NM_ELIGIBILITY_SMALL ||
	       eligibility == NM_ELIGIBILITY_IDLE;
}

static enum nm_eligibility judge(struct nm_roster *roster, struct nm_process *process,
				 uint32_t flags, bool sampled, uint64_t now_ns)
{
	enum nm_eligibility eligibility =
		nm_roster_judge(roster, process, flags, size_of(roster, process, sampled, now_ns));
	enum nm_eligibility of_threads = NM_ELIGIBILITY_MANAGED;

	if (depends_on_threads(eligibility) && nm_topology_is_single(roster->topology))
		return NM_ELIGIBILITY_ONE_NODE;
	if (depends_on_threads(eligibility))
		of_threads = judge_threads(roster, process, now_ns);
	/* The pages of a pinned program are managed, if any are. */
	if (of_threads == NM_ELIGIBILITY_PINNED && nm_config_follows_pages(roster->config))
		return eligibility;
	return of_threads == NM_ELIGIBILITY_MANAGED ? eligibility : of_threads;
}

/* Copies what is known of the process, and reads the rest into the copy, so that nothing in the
 * table changes. */
static int read_copy(struct nm_roster *roster, const struct nm_process *known,
		     struct nm_process *process, struct nm_proc_stat *ret)
{
	if (known)
		*process = *known;
	process->cgroup = NULL;
	process->runtime_ticket = 0;
	process->steering = (struct nm_steering){0};
	return nm_roster_read_process(roster, process, ret);
}

int nm_roster_explain(struct nm_roster *roster, uint32_t pid, uint64_t now_ns,
		      struct nm_explanation *ret)
{
	const struct nm_process *known = nm_roster_process(roster, pid);
	struct nm_process process = {.pid = pid};
	struct nm_explanation explanation = {.eligibility = NM_ELIGIBILITY_UNREADABLE};
	struct nm_proc_stat stat;

	int r = read_copy(roster, known, &process, &stat);
	if (r == -ESRCH && known) { /* its number may have been reused */
		free(process.cgroup);
		known = NULL;
		process = (struct nm_process){.pid = pid};
		r = read_copy(roster, NULL, &process, &stat);
	}
	if (r == 0) {
		(void)nm_roster_read_steering(roster, &process);
		explanation.eligibility =
			judge(roster, &process, stat.flags, known != NULL, now_ns);
	}
	if (r == 0 || r == -EFBIG) {
		memcpy(explanation.comm, process.comm, sizeof(explanation.comm));
		explanation.uid = process.uid;
		explanation.rss_bytes = process.rss_bytes;
		print_reason(roster, &process, &explanation);
		*ret = explanation;
		r = 0;
	}
	free(process.cgroup);
	return r;
}

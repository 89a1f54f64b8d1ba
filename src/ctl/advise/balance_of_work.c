/* SPDX-License-Identifier: MIT */
/*
 * Threads with equal shares of work wait for each other if the memory of some is farther away
 * (stencil paper, section 6.3); shares in proportion to their speed avoid that (section 6.4, up to
 * 1.1 times faster there).
 */
#include <inttypes.h>
#include <stdio.h>

#include "rules.h"

#define WORKERS_LEAST 4U
#define WORKERS_NAMED 32U
#define SPREAD_LEAST 1.2 /* ratio of the highest to the lowest access cost */
#define SPREAD_LARGE 1.5
#define CORRELATION_LEAST 0.5
#define WAIT_LEAST 0.05 /* minimum difference of the run shares of the two halves that indicates
			 * waiting */
/* Share of a thread's time that is assumed to be spent on accesses if it was not measured. */
#define MEMORY_SHARE 0.5

struct worker {
	const struct nm_advise_thread *thread;
	double cost;   /* of an access, in cycles or relative to local accesses */
	double weight; /* suitable share of the work; the mean is 1 */
};

struct crew {
	struct worker *workers;
	size_t count;
	bool measured;		      /* costs are latencies */
	double least, most;	      /* cost */
	double run_cheap, run_costly; /* mean run share of each half; NaN: not sampled */
};

static double far_cost(const struct nm_advise_input *input, int node)
{
	double sum = 0;

	if (node < 0 || input->nr_nodes < 2 || !input->distance)
		return 2.0;
	for (unsigned other = 0; other < input->nr_nodes; other++)
		if (other != (unsigned)node)
			sum += input->distance[(unsigned)node * input->nr_nodes + other];
	return sum / (10.0 * (input->nr_nodes - 1));
}

static double cost_of_thread(const struct nm_advise_input *input,
			     const struct nm_advise_thread *thread, bool measured)
{
	if (measured)
		return thread->latency_cycles;
	return thread->local_share + (1 - thread->local_share) * far_cost(input, thread->node);
}

static bool all_measured(const struct nm_advise_input *input)
{
	for (size_t i = 0; i < input->nr_threads; i++)
		if (nm_is_worker(&input->threads[i]) && !(input->threads[i].latency_cycles > 0))
			return false;
	return true;
}

static int by_cost(const void *a, const void *b)
{
	const struct worker *one = a, *other = b;

	return NM_COMPARE(one->cost, other->cost)
		       ?: NM_COMPARE(one->thread->tid, other->thread->tid);
}

static double mean_run(const struct worker *workers, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += workers[i].thread->run_share;
	return sum / (double)count;
}

/* Sorted by cost. Returns 0 or -ENOMEM. */
static int gather_crew(const struct nm_advise_input *input, struct crew *ret)
{
	ret->workers = calloc(input->nr_threads + 1, sizeof(*ret->workers));
	if (!ret->workers)
		return -ENOMEM;
	ret->measured = all_measured(input);
	for (size_t i = 0; i < input->nr_threads; i++)
		if (nm_is_worker(&input->threads[i]))
			ret->workers[ret->count++] = (struct worker){
				.thread = &input->threads[i],
				.cost = cost_of_thread(input, &input->threads[i], ret->measured)};
	if (ret->count < WORKERS_LEAST)
		return 0;
	qsort(ret->workers, ret->count, sizeof(*ret->workers), by_cost);
	ret->least = ret->workers[0].cost;
	ret->most = ret->workers[ret->count - 1].cost;
	ret->run_cheap = mean_run(ret->workers, ret->count / 2);
	ret->run_costly = mean_run(ret->workers + (ret->count + 1) / 2, ret->count / 2);
	return 0;
}

/* Pearson correlation of cost and remote share: shows whether the distance makes accesses
 * expensive. */
static double correlation(const struct crew *crew)
{
	double n = (double)crew->count, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

	for (size_t i = 0; i < crew->count; i++) {
		double cost = crew->workers[i].cost;
		double remote = 1 - crew->workers[i].thread->local_share;
		x += cost;
		y += remote;
		xx += cost * cost;
		yy += remote * remote;
		xy += cost * remote;
	}
	double spread = (n * xx - x * x) * (n * yy - y * y);
	return spread > 0 ? (n * xy - x * y) / sqrt(spread) : 0;
}

/*
 * Returns whether threads with cheap accesses run less than the others, because they wait for them.
 */
static bool wait_is_seen(const struct crew *crew)
{
	return crew->run_costly - crew->run_cheap >= WAIT_LEAST;
}

/* A thread that did the same work in 50 % of the time can do twice the work. If no waiting is
 * visible (threads may spin), 50 % of a thread's time is assumed to be accesses. */
static void weigh_crew(struct crew *crew)
{
	bool waits = wait_is_seen(crew);
	double mean_cost = 0, sum = 0;

	for (size_t i = 0; i < crew->count; i++)
		mean_cost += crew->workers[i].cost / (double)crew->count;
	for (size_t i = 0; i < crew->count; i++) {
		struct worker *worker = &crew->workers[i];
		worker->weight =
			waits ? 1 / worker->thread->run_share
			      : 1 / (1 - MEMORY_SHARE + MEMORY_SHARE * worker->cost / mean_cost);
		sum += worker->weight;
	}
	for (size_t i = 0; i < crew->count; i++)
		crew->workers[i].weight *= (double)crew->count / sum;
}

static void say_weights(const struct crew *crew, struct nm_findings *findings)
{
	char text[WORKERS_NAMED * 24];
	size_t used = 0;

	for (size_t i = 0; i < crew->count && i < WORKERS_NAMED; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu32 ": %.2f",
					 i ? ", " : "", crew->workers[i].thread->tid,
					 crew->workers[i].weight);
	nm_findings_remedy(
		findings,
		"give each thread a share of the work by its weight (tid: weight, 1 is an equal "
		"share): %s%s",
		text, crew->count > WORKERS_NAMED ? ", …" : "");
}

static void say_spread(const struct crew *crew, struct nm_findings *findings)
{
	const struct worker *cheap = &crew->workers[0];
	const struct worker *costly = &crew->workers[crew->count - 1];

	nm_findings_evidence(
		findings,
		"%s from %.4g (thread %" PRIu32 ", %.0f %% local) to %.4g (thread %" PRIu32
		", %.0f %% local) over %zu threads",
		crew->measured ? "cycles of an access:"
			       : "cost of an access by distance, 1 is local:",
		cheap->cost, cheap->thread->tid, 100 * cheap->thread->local_share, costly->cost,
		costly->thread->tid, 100 * costly->thread->local_share, crew->count);
	if (wait_is_seen(crew))
		nm_findings_evidence(
			findings,
			"the half with cheaper accesses runs %.0f %% of the time, the other "
			"%.0f %%: the weights are computed from that",
			100 * crew->run_cheap, 100 * crew->run_costly);
	else
		nm_findings_evidence(
			findings,
			"no thread waits (threads may spin): the weights assume that accesses "
			"take 50 %% of the time");
}

static void judge_crew(const char *name, struct crew *crew, struct nm_findings *findings)
{
	if (crew->count < WORKERS_LEAST || !(crew->most >= SPREAD_LEAST * crew->least))
		return;
	if (correlation(crew) < CORRELATION_LEAST)
		return;
	weigh_crew(crew);
	nm_findings_add(
		findings, name,
		crew->most >= SPREAD_LARGE * crew->least ? NM_SEVERITY_WARNING : NM_SEVERITY_NOTE,
		"Memory is farther away for some threads: equal shares of work take them longer.");
	say_spread(crew, findings);
	say_weights(crew, findings);
	nm_findings_remedy(findings, "or migrate their memory first, as other findings describe, "
				     "and run this again");
}

void nm_rule_work_weights(const char *name, const struct nm_advise_input *input,
			  struct nm_findings *findings)
{
	struct crew crew = {0};

	if (gather_crew(input, &crew) < 0)
		findings->error = -ENOMEM;
	else
		judge_crew(name, &crew, findings);
	free(crew.workers);
}

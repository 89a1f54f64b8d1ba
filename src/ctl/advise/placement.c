/* SPDX-License-Identifier: MIT */
/* Advice about the location of memory, and of the threads that use it. */
#include <inttypes.h>

#include "rules.h"

#define ONE_NODE_SHARE 0.8   /* share of the pages from which all count as being on one node */
#define ELSEWHERE_SHARE 0.25 /* share of the running time from which other nodes count as using
			      * them */
#define LOCAL_ENOUGH 0.75    /* share of local accesses from which there is little to gain */
#define ROOM_SHARE 0.8	     /* share of a node's memory that a program may use */
#define BOUND_LOCAL 0.5
#define BOUND_NAMED 8U

/* ---- nodes of threads ---- */

static double run_of(const struct nm_advise_thread *thread)
{
	return isnan(thread->run_share) ? 1 : thread->run_share;
}

/* Share of the workers' running time on other nodes than this one. */
static double run_elsewhere(const struct nm_advise_input *input, int node)
{
	double all = 0, elsewhere = 0;

	for (size_t i = 0; i < input->nr_threads; i++) {
		const struct nm_advise_thread *thread = &input->threads[i];
		if (!nm_is_worker(thread) || thread->node < 0)
			continue;
		all += run_of(thread);
		if (thread->node != node)
			elsewhere += run_of(thread);
	}
	return all > 0 ? elsewhere / all : 0;
}

static int fullest(const struct nm_advise_input *input, double *ret_share)
{
	uint64_t all = 0;
	unsigned node = 0;

	for (unsigned i = 0; i < input->nr_nodes; i++) {
		all += input->nodes[i].pages;
		if (input->nodes[i].pages > input->nodes[node].pages)
			node = i;
	}
	if (all == 0)
		return -1;
	*ret_share = (double)input->nodes[node].pages / (double)all;
	return (int)node;
}

/* ---- first touch ---- */

static void say_how_to_touch(const struct nm_advise_input *input, struct nm_findings *findings)
{
	double common = nm_common_share(input);

	if (!(common > 0.5))
		nm_findings_remedy(
			findings,
			"let each thread initialise the data that it will use (OpenMP: the same "
			"schedule(static) in both loops), and bind the threads: "
			"OMP_PROC_BIND=spread");
	if (!(common <= 0.5))
		nm_findings_remedy(findings,
				   "spread memory that all threads use over the nodes: numactl "
				   "--interleave=all does so for the whole program");
	nm_findings_remedy(findings,
			   "without changing the program: pages.policy = \"exclusivity\" in "
			   "numa-migrd.conf, or kernel.numa_balancing, migrates the memory later");
}

void nm_rule_first_touch(const char *name, const struct nm_advise_input *input,
			 struct nm_findings *findings)
{
	double share = 0;
	int node = fullest(input, &share);

	if (node < 0 || share < ONE_NODE_SHARE || input->local_share >= LOCAL_ENOUGH)
		return;
	double elsewhere = run_elsewhere(input, node);
	if (elsewhere < ELSEWHERE_SHARE)
		return;
	nm_findings_add(findings, name, NM_SEVERITY_WARNING,
			"Nearly all memory is on node %u, and threads run on others: probably one "
			"thread initialised it.",
			input->nodes[node].os_id);
	nm_findings_evidence(findings,
			     "%.0f %% of the sampled pages are there; threads run elsewhere "
			     "for %.0f %% of the time",
			     100 * share, 100 * elsewhere);
	if (!isnan(input->local_share))
		nm_findings_evidence(findings, "%.0f %% of the accesses are local",
				     100 * input->local_share);
	say_how_to_touch(input, findings);
}

/* ---- programs that fit one node ---- */

static bool runs_on_several(const struct nm_advise_input *input, size_t *ret_workers)
{
	int first = -1;
	bool several = false;

	*ret_workers = 0;
	for (size_t i = 0; i < input->nr_threads; i++) {
		const struct nm_advise_thread *thread = &input->threads[i];
		if (!nm_is_worker(thread) || thread->node < 0)
			continue;
		++*ret_workers;
		several |= first >= 0 && thread->node != first;
		first = thread->node;
	}
	return several;
}

void nm_rule_fits_a_node(const char *name, const struct nm_advise_input *input,
			 struct nm_findings *findings)
{
	size_t workers;
	double share = 0;
	int node = fullest(input, &share);

	if (!runs_on_several(input, &workers) || node < 0 || input->local_share >= LOCAL_ENOUGH)
		return;
	const struct nm_advise_node *home = &input->nodes[node];
	if (workers > home->cpus || input->rss_bytes == 0 ||
	    (double)input->rss_bytes > ROOM_SHARE * (double)home->memory_bytes)
		return;
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"The program would fit on one node, but its threads run on several.");
	nm_findings_evidence(findings,
			     "%zu working threads, node %u has %u CPUs; %" PRIu64
			     " MiB in memory, the node has %" PRIu64 " MiB",
			     workers, home->os_id, home->cpus, input->rss_bytes >> 20,
			     home->memory_bytes >> 20);
	nm_findings_remedy(findings,
			   "if nothing else needs that node, start it with numactl "
			   "--cpunodebind=%u --membind=%u",
			   home->os_id, home->os_id);
}

/* ---- threads bound to the wrong node ---- */

static bool is_bound_away(const struct nm_advise_thread *thread)
{
	return nm_is_worker(thread) && thread->bound >= 0 && thread->preferred >= 0 &&
	       thread->bound != thread->preferred && thread->local_share < BOUND_LOCAL;
}

void nm_rule_bound_away(const char *name, const struct nm_advise_input *input,
			struct nm_findings *findings)
{
	size_t count = 0;

	for (size_t i = 0; i < input->nr_threads; i++)
		count += is_bound_away(&input->threads[i]);
	if (count == 0)
		return;
	nm_findings_add(
		findings, name, NM_SEVERITY_WARNING,
		"%zu %s bound away from most of the memory in use; numa-migrd does not move "
		"bound threads.",
		count, count == 1 ? "thread is" : "threads are");
	for (size_t i = 0, named = 0; i < input->nr_threads && named < BOUND_NAMED; i++) {
		const struct nm_advise_thread *thread = &input->threads[i];
		if (!is_bound_away(thread))
			continue;
		named++;
		nm_findings_evidence(
			findings, "thread %" PRIu32 " on node %u, memory on node %u, %.0f %% local",
			thread->tid, input->nodes[thread->bound].os_id,
			input->nodes[thread->preferred].os_id, 100 * thread->local_share);
	}
	nm_findings_remedy(findings,
			   "bind them to the node of their memory, or bind threads and memory "
			   "(numactl --cpunodebind=N --membind=N), or neither");
}

/* SPDX-License-Identifier: MIT */
/* Policies by name, and runs of a workload with one. */
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "policies.h"

#define THREADS(policy) "threads: { policy = \"" policy "\"; };"
#define PAGES " pages: { policy = \"exclusivity\"; };"
/* "-paper" follows the paper in every rule. */
/* clang-format off */
static const struct nm_sim_policy policies[] = {
	{.name = "none", .words = "no service: first touch, load balancing by the scheduler"},
	{.name = "direct", .words = "numactl: one node for each user",
	 .placed = true, .placement = NM_SIM_PLACE_DIRECT},
	{.name = "interleave", .words = "numactl --interleave=all",
	 .placed = true, .placement = NM_SIM_PLACE_INTERLEAVE},
	{.name = "oracle", .words = "threads bound in order, each next to its block of memory",
	 .placed = true, .placement = NM_SIM_PLACE_ORACLE},
	{.name = "kernel", .words = "automatic NUMA balancing",
	 .numa_balancing = true},
	{.name = "cache-aware", .words = "the scheduler gathers threads of a process under one cache",
	 .cache_aware = true},
	{.name = "cache-aware+auto", .words = "the same, and policy auto", .cache_aware = true,
	 .config = THREADS("auto")},
	{.name = "lbma", .words = "policy lbma", .config = THREADS("lbma")},
	{.name = "imar2", .words = "policy imar2", .config = THREADS("imar2")},
	{.name = "kmaf", .words = "policy kmaf, with page exclusivity",
	 .config = THREADS("kmaf") PAGES},
	{.name = "kmaf-threads", .words = "policy kmaf, threads only", .config = THREADS("kmaf")},
	{.name = "pages", .words = "page exclusivity only",
	 .config = THREADS("none") PAGES},
	{.name = "balance", .words = "policy balance",
	 .config = THREADS("balance")},
	{.name = "best", .words = "policy imar2, with page exclusivity",
	 .config = THREADS("imar2") PAGES},
	{.name = "kernel+lbma", .words = "automatic NUMA balancing and policy lbma",
	 .numa_balancing = true, .config = THREADS("lbma")},
	{.name = "kernel+imar2", .words = "automatic NUMA balancing and policy imar2",
	 .numa_balancing = true, .config = THREADS("imar2")},
	{.name = "kernel+auto",
	 .words = "automatic NUMA balancing and policy auto: the default on Debian",
	 .numa_balancing = true, .config = THREADS("auto")},
	{.name = "auto", .words = "policy auto, the default",
	 .config = THREADS("auto")},
	{.name = "lbma-paper", .words = "LBMA as published", .config = THREADS("lbma-paper")},
	{.name = "imar2-paper", .words = "IMAR2 as published", .config = THREADS("imar2-paper")},
	{.name = "kmaf-paper", .words = "kMAF as published",
	 .config = THREADS("kmaf-paper") PAGES},
};
/* clang-format on */

const struct nm_sim_policy *nm_sim_policy_at(size_t index)
{
	return index < NM_ARRAY_SIZE(policies) ? &policies[index] : NULL;
}

const struct nm_sim_policy *nm_sim_policy_by_name(const char *name)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(policies); i++)
		if (strcmp(policies[i].name, name) == 0)
			return &policies[i];
	return NULL;
}

static int read_config(const struct nm_sim_policy *policy, struct nm_config **ret)
{
	const char *text = policy->config;
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	if (!text)
		return 0;
	int r = nm_config_parse(policy->name, text, strlen(text), &errors, ret);
	for (size_t i = 0; r < 0 && i < errors.count; i++)
		(void)fprintf(stderr, "simulate: %s\n", errors.text[i]);
	if (r == 0 && policy->paper_rules)
		(*ret)->rules = nm_rules_paper;
	if (r == 0 && policy->dtas)
		(*ret)->threads.dtas = true;
	return r;
}

int nm_sim_policy_check(const struct nm_sim_policy *policy)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	return read_config(policy, &config);
}

/* Uses the nodes with CPUs in turn: numactl refuses to run a program on others. */
static int node_in_turn(const struct nm_topology *topology, size_t turn)
{
	unsigned count = 0;
	for (unsigned k = 0; k < topology->nr_nodes; k++)
		count += !hwloc_bitmap_iszero(topology->nodes[k].cpus);
	turn = count ? turn % count : 0;
	for (unsigned k = 0; k < topology->nr_nodes; k++)
		if (!hwloc_bitmap_iszero(topology->nodes[k].cpus) && turn-- == 0)
			return (int)k;
	return 0;
}

/* The policy replaces the placements of the workload while it runs. */
static void place_programs(const struct nm_sim_case *what, const struct nm_sim_policy *policy)
{
	const struct nm_topology *topology = what->machine->topology;
	for (size_t u = 0; policy->placed && u < what->workload->nr_users; u++) {
		struct nm_sim_user *user = &what->workload->users[u];
		if (user->placement != NM_SIM_PLACE_SYSTEM)
			continue;
		user->placement = policy->placement;
		user->node =
			policy->placement == NM_SIM_PLACE_DIRECT ? node_in_turn(topology, u) : -1;
	}
}

static void add_run(const struct nm_simulated *run, double runs, struct nm_sim_outcome *sum)
{
	const struct nm_sim_figures *figures = &run->figures;
	sum->time_s += figures->time_s / runs;
	sum->computing_s += figures->computing_s / runs;
	sum->slowest_user_s += figures->slowest_user_s / runs;
	if (figures->accesses > 0)
		sum->local_share += figures->local_accesses / figures->accesses / runs;
	sum->moves += (double)figures->moves / runs;
	sum->choices += (double)figures->choices / runs;
	sum->chosen += (double)figures->chosen / runs;
	sum->samples += (double)figures->samples / runs;
	sum->pages_moved += (double)figures->pages_moved / runs;
	sum->decisions += (double)run->decisions / runs;
	sum->improved += (double)run->improved / runs;
	sum->neutral += (double)run->neutral / runs;
	sum->rolled_back += (double)run->rolled_back / runs;
	sum->decisions_digest = nm_hash_add(sum->decisions_digest, &run->decisions_digest,
					    sizeof(run->decisions_digest));
	sum->programs_ended += (double)figures->programs_ended / runs;
}

/* Counts users without `repeat`. */
static size_t count_finite(const struct nm_sim_workload *workload)
{
	size_t count = 0;
	for (size_t u = 0; u < workload->nr_users; u++)
		count += !workload->users[u].for_ever;
	return count;
}

static int run_all(const struct nm_sim_case *what, const struct nm_sim_policy *policy,
		   const struct nm_config *config, struct nm_sim_outcome *ret)
{
	size_t finite = count_finite(what->workload);
	struct nm_sim_outcome sum = {.all_ended = finite > 0, .decisions_digest = NM_HASH_START};
	for (unsigned i = 0; i < what->how.runs; i++) {
		struct nm_sim_options options = what->how.options;
		options.seed += i;
		options.numa_balancing = policy->numa_balancing;
		options.cache_aware |= policy->cache_aware;
		if (policy->choice != NM_SIM_CHOOSE_NONE)
			options.choice = policy->choice;
		if (policy->dense > 0)
			options.dense = policy->dense;
		struct nm_simulated run;
		int r = nm_simulate(what->machine, what->workload, &options, config,
				    what->decisions, &run);
		if (r < 0)
			return r;
		add_run(&run, what->how.runs, &sum);
		sum.all_ended &= run.figures.users_ended == finite;
		sum.last = run;
	}
	*ret = sum;
	return 0;
}

int nm_sim_case_run(const struct nm_sim_case *what, const struct nm_sim_policy *policy,
		    struct nm_sim_outcome *ret)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	int r = read_config(policy, &config);
	if (r < 0)
		return r;
	if (config)
		config->journal.level = what->log_entries ? NM_JOURNAL_DEBUG : NM_JOURNAL_ERROR;
	size_t size = what->workload->nr_users * sizeof(*what->workload->users);
	nm_autofree struct nm_sim_user *before = malloc(size + 1);
	if (!before)
		return -ENOMEM;
	memcpy(before, what->workload->users, size);
	place_programs(what, policy);
	r = run_all(what, policy, config, ret);
	memcpy(what->workload->users, before, size);
	return r;
}

/* SPDX-License-Identifier: MIT */
#include "advise.h"

#include <inttypes.h>

#include "rules.h"

static nm_rule_fn rule_enough, rule_memory_unseen;

static const struct nm_advise_rule rules[] = {
	{"enough-seen", rule_enough},
	{"bound-away", nm_rule_bound_away},
	{"fits-a-node", nm_rule_fits_a_node},
	{"first-touch", nm_rule_first_touch},
	{"shared-ranges", nm_rule_shared_ranges},
	{"false-sharing", nm_rule_false_sharing},
	{"kernel-balancing", nm_rule_kernel_balancing},
	{"memory-unseen", rule_memory_unseen},
	{"as-it-is", NULL},
};

const struct nm_advise_rule *nm_advise_rules(size_t *ret_count)
{
	*ret_count = NM_ARRAY_SIZE(rules);
	return rules;
}

/* ---- shared functions ---- */

double nm_all_samples(const struct nm_advise_input *input)
{
	double all = 0;

	for (size_t i = 0; i < input->nr_regions; i++)
		all += input->regions[i].samples;
	return all;
}

double nm_common_share(const struct nm_advise_input *input)
{
	double all = nm_all_samples(input), common = 0;

	for (size_t i = 0; i < input->nr_regions; i++)
		if (input->regions[i].kind != NM_ADVISE_EXCLUSIVE)
			common += input->regions[i].samples;
	return all > 0 ? common / all : input->shared_page_share;
}

static size_t count_workers(const struct nm_advise_input *input)
{
	size_t count = 0;

	for (size_t i = 0; i < input->nr_threads; i++)
		count += nm_is_worker(&input->threads[i]);
	return count;
}

/* ---- first and last rule ---- */

static void rule_enough(const char *name, const struct nm_advise_input *input,
			struct nm_findings *findings)
{
	double accesses = 0;

	if (input->nr_nodes < 2) {
		nm_findings_add(findings, name, NM_SEVERITY_NOTE,
				"This machine has one NUMA node: all memory is equally near.");
		return;
	}
	if (count_workers(input) > 0)
		return;
	for (size_t i = 0; i < input->nr_threads; i++)
		accesses += isnan(input->threads[i].accesses) ? 0 : input->threads[i].accesses;
	nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
			"Process %" PRIu32 ": too few samples.", input->pid);
	nm_findings_evidence(findings,
			     "%zu threads, %.0f accesses in all; %.0f are needed for each "
			     "running thread",
			     input->nr_threads, accesses, NM_WORKER_ACCESSES);
	nm_findings_remedy(findings,
			   "run this again while the program works; numa-migrctl doctor "
			   "shows the sampling source");
}

/* Pages and ranges are only tracked with some configurations. */
static void rule_memory_unseen(const char *name, const struct nm_advise_input *input,
			       struct nm_findings *findings)
{
	bool pages = !isnan(input->exclusivity);

	if (input->nr_regions > 0)
		return;
	nm_findings_add(
		findings, name, NM_SEVERITY_UNSEEN, "%s",
		pages ? "Accesses are not counted per range of memory: shared ranges are unknown."
		      : "Its threads were examined, its memory was not.");
	nm_findings_remedy(findings, "pages.policy = \"exclusivity\" in numa-migrd.conf "
				     "counts accesses per range; with "
				     "general.dry_run = true nothing is moved");
}

/* The finding if no rule applies. */
static void say_nothing_to_change(const struct nm_advise_input *input, struct nm_findings *findings)
{
	nm_findings_add(findings, rules[NM_ARRAY_SIZE(rules) - 1].name, NM_SEVERITY_FINE,
			"Process %" PRIu32 ": nothing to improve.", input->pid);
	if (!isnan(input->local_share))
		nm_findings_evidence(findings, "%.0f %% of its accesses are local",
				     100 * input->local_share);
}

/* Counts the findings from there on that are more severe than missing data. */
static size_t count_advice(const struct nm_findings *findings, size_t from)
{
	size_t count = 0;

	for (size_t i = from; i < findings->count; i++)
		count += findings->items[i].severity != NM_SEVERITY_UNSEEN;
	return count;
}

int nm_advise(const struct nm_advise_input *input, struct nm_findings *ret)
{
	size_t before = ret->count;

	rules[0].rule(rules[0].name, input, ret);
	if (ret->count > before)
		return ret->error;
	for (size_t i = 1; rules[i].rule; i++)
		rules[i].rule(rules[i].name, input, ret);
	if (count_advice(ret, before) == 0)
		say_nothing_to_change(input, ret);
	return ret->error;
}

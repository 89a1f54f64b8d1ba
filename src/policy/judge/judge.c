/* SPDX-License-Identifier: MIT */
#include "policy/judge.h"

static struct nm_judgement judgement_by(enum nm_measure by, const struct nm_change *change)
{
	return (struct nm_judgement){
		.kind = nm_change_kind(change), .by = by, .change = change->value};
}

struct nm_judgement nm_judge_by(const struct nm_criterion *criteria,
				const struct nm_change changes[NM_MEASURES])
{
	struct nm_judgement first = {.kind = NM_VERDICT_INCONCLUSIVE, .change = NAN};
	for (; criteria->by != NM_BY_NOTHING; criteria++) {
		const struct nm_change *change = &changes[criteria->by];
		struct nm_judgement next = judgement_by(criteria->by, change);
		if (!change->known) {
			if (first.by == NM_BY_NOTHING && first.needed == 0)
				first.needed = change->needed;
			continue;
		}
		if (criteria->use == NM_CRITERION_VETOES && next.kind != NM_VERDICT_ROLLED_BACK)
			continue;
		if (first.by == NM_BY_NOTHING)
			first = next;
		else if (criteria->use == NM_CRITERION_CONFIRMS && first.change >= 0 &&
			 next.kind == NM_VERDICT_IMPROVED)
			first.kind = NM_VERDICT_IMPROVED;
	}
	return first;
}

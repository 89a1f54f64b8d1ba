/* SPDX-License-Identifier: MIT */
/*
 * Writes each decision, home and verdict of a simulation as a line of text, and computes a digest
 * of all lines. They show whether a change of the code changes decisions (tests/check-decisions).
 * Therefore they contain no times of day, and exact numbers.
 */
#ifndef NUMA_MIGRD_DECISION_LINES_H
#define NUMA_MIGRD_DECISION_LINES_H

#include <stdio.h>

#include "policy/judge.h"
#include "affinity/move.h"
#include "policy/plan.h"

struct nm_home_action;

struct nm_decision_lines {
	FILE *out;	   /* borrowed; NULL: only the digest is computed */
	uint64_t digest;   /* initially NM_HASH_START */
	uint64_t interval; /* of the lines that follow */
};

/* Called when decisions and verdicts are recorded. Without lines (NULL), these functions have no
 * effect. */
void nm_lines_decision(struct nm_decision_lines *lines, const struct nm_decision *decision,
		       const struct nm_receipt *receipt);
void nm_lines_verdict(struct nm_decision_lines *lines, const struct nm_verdict *verdict);

/* Called when a home ends without a verdict. */
void nm_lines_home_end(struct nm_decision_lines *lines, const struct nm_home_action *action);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Writes each decision, home and verdict of a simulation as a line of text, and computes a digest
 * of all lines. They show whether a change of the code changes decisions (tests/check-decisions).
 * Therefore they contain no times of day, and exact numbers.
 */
#ifndef NM_DAEMON_DECISION_LINES_H
#define NM_DAEMON_DECISION_LINES_H

#include <stdio.h>

#include "numa-migrd/judge.h"
#include "numa-migrd/lease.h"
#include "numa-migrd/plan.h"

struct nm_daemon;
struct nm_home_state;

struct nm_decision_lines {
	FILE *out;	 /* borrowed; NULL: only the digest is computed */
	uint64_t digest; /* initially NM_HASH_START */
};

/* ---- without lines in the daemon's options these functions have no effect ---- */

/* Called when decisions and verdicts are recorded. */
void nm_lines_decision(const struct nm_daemon *daemon, const struct nm_decision *decision,
		       const struct nm_receipt *receipt);
void nm_lines_verdict(const struct nm_daemon *daemon, const struct nm_verdict *verdict);

/* Called when a home ends without a verdict. */
void nm_lines_home_end(const struct nm_daemon *daemon, const struct nm_home_state *state);

#endif

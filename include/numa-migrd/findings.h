/* SPDX-License-Identifier: MIT */
/*
 * What a look at a machine or a program found, in words a person can act on: one finding for each
 * thing that was looked at, with what it rests on and what can be done. Pure.
 */
#ifndef NUMA_MIGRD_FINDINGS_H
#define NUMA_MIGRD_FINDINGS_H

#include "numa-migrd/base.h"

enum nm_severity {
	NM_SEVERITY_FINE,    /* as it should be */
	NM_SEVERITY_NOTE,    /* good to know */
	NM_SEVERITY_UNSEEN,  /* could not be looked at; the remedy says how it can */
	NM_SEVERITY_WARNING, /* works, but worse than it could */
	NM_SEVERITY_PROBLEM, /* does not work */
	NM_SEVERITY_MAX,
};

/* "fine", "note", "unseen", "warning", "problem". */
const char *nm_severity_name(enum nm_severity severity);

struct nm_finding {
	const char *check; /* whose it is: a name that stays, of letters and "-" */
	enum nm_severity severity;
	char *what;	/* a whole sentence */
	char *evidence; /* what was read, with its source; NULL: nothing beyond `what` */
	char *remedy;	/* NULL: there is nothing to do */
};

/* Begins as {0}. Foreign text is escaped (escape.h) before it gets here. */
struct nm_findings {
	struct nm_finding *items;
	size_t count, capacity;
	int error; /* -ENOMEM once something could not be added; asked for at the end */
};

/* Begins a finding; the next two complete the one begun last. */
void nm_findings_add(struct nm_findings *findings, const char *check, enum nm_severity severity,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Further evidence is put behind the first, after "; ". */
void nm_findings_evidence(struct nm_findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Further remedies are put behind the first, after "; ". */
void nm_findings_remedy(struct nm_findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* How many are of that severity. */
size_t nm_findings_count(const struct nm_findings *findings, enum nm_severity severity);

void nm_findings_clear(struct nm_findings *findings);

#endif

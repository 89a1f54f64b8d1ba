/* SPDX-License-Identifier: MIT */
/* The results of an examination of a machine or a program as text: one finding for each check, with
 * its evidence and a remedy. Pure. */
#ifndef NM_CTL_FINDINGS_H
#define NM_CTL_FINDINGS_H

#include "numa-migrd/base.h"

enum nm_severity {
	NM_SEVERITY_FINE,    /* as it should be */
	NM_SEVERITY_NOTE,    /* information */
	NM_SEVERITY_UNSEEN,  /* could not be checked; the remedy describes how to enable it */
	NM_SEVERITY_WARNING, /* works, but not as well as it could */
	NM_SEVERITY_PROBLEM, /* does not work */
	NM_SEVERITY_MAX,
};

/* Returns "fine", "note", "unseen", "warning" or "problem". */
const char *nm_severity_name(enum nm_severity severity);

struct nm_finding {
	const char *check; /* name of the check, which never changes, of letters and "-" */
	enum nm_severity severity;
	char *what;	/* a whole sentence */
	char *evidence; /* the value read and its source; NULL: none beyond `what` */
	char *remedy;	/* NULL: no action needed */
};

/* A list of findings, initially {0}. Text from outside must be escaped (base.h) before it is
 * added. */
struct nm_findings {
	struct nm_finding *items;
	size_t count, capacity;
};

/* Adds a finding. The next two functions complete the most recent one, which must exist. */
void nm_findings_add(struct nm_findings *findings, const char *check, enum nm_severity severity,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds evidence; further evidence is appended after "; ". */
void nm_findings_evidence(struct nm_findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds a remedy; further remedies are appended after "; ". */
void nm_findings_remedy(struct nm_findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Returns the number of findings with this severity. */
size_t nm_findings_count(const struct nm_findings *findings, enum nm_severity severity);

void nm_findings_clear(struct nm_findings *findings);

#endif

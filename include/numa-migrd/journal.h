/* SPDX-License-Identifier: MIT */
/*
 * Every stage's record → one line a person can read and fields a program can (design section 5). The
 * daemon is the only caller: libraries never log.
 */
#ifndef NUMA_MIGRD_JOURNAL_H
#define NUMA_MIGRD_JOURNAL_H

#include <stdint.h>
#include <syslog.h>

#include "numa-migrd/actuate.h"
#include "numa-migrd/config.h"
#include "numa-migrd/page_verify.h"
#include "numa-migrd/placement.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/snapshot.h"
#include "numa-migrd/verify.h"

/* Kinds of entries: each has a MESSAGE_ID (128-bit, made for this project) and a catalog text. */
enum nm_message {
	NM_MESSAGE_START, /* version, source, topology, policy, seed */
	NM_MESSAGE_STOP,
	NM_MESSAGE_RELOAD,
	NM_MESSAGE_RELOAD_REFUSED,
	NM_MESSAGE_PROBLEM, /* something is unavailable: why, and the remedy */
	NM_MESSAGE_DECISION,
	NM_MESSAGE_VERDICT,
	NM_MESSAGE_LEASE,   /* given back, foreign, inheritor, failed */
	NM_MESSAGE_SUMMARY, /* intervals without a decision, suppressed entries, counters */
	NM_MESSAGE_PAUSE,
	NM_MESSAGE_RESUME,
	NM_MESSAGE_COEXIST, /* kernel.numa_balancing, numad and others found at work */
	NM_MESSAGE_RESTORE,
	NM_MESSAGE_PAGES,  /* a decision about pages; its verdict is a VERDICT */
	NM_MESSAGE_RECORD, /* a recording begins or ends */
	NM_MESSAGE_MAX,
};

/* The 32 hex digits of a kind's MESSAGE_ID, as in the catalog. */
const char *nm_message_id(enum nm_message message);

#define NM_ENTRY_FIELDS 64

/* One entry under construction: fixed size, no allocation; what does not fit is cut and marked. */
struct nm_entry {
	enum nm_message message;
	int priority; /* syslog(3) */
	unsigned count;
	char text[1024];
	size_t reason; /* where in the text it begins to say why, after what; 0: it does not */
	char fields[NM_ENTRY_FIELDS][192]; /* "NAME=value" */
};

/* Empties the entry; sets KIND to the message's name ("start", "reload", …). Journal stage. */
void nm_entry_begin(struct nm_entry *entry, enum nm_message message, int priority);
/* Replaces the text. Control characters become spaces, what does not fit is cut and ends in "…". */
void nm_entry_text(struct nm_entry *entry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets a field (a second value for a name replaces the first; beyond NM_ENTRY_FIELDS it is dropped); name
 * in journald's alphabet, short. Values must already be escaped where they are foreign. */
void nm_entry_field(struct nm_entry *entry, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- what the stages hand over, formatted (pure) ---- */

struct nm_entry_context {
	uint64_t seed;
	const char *policy;
	const struct nm_topology *topology; /* for the kernel's node numbers */
	bool dry_run;
	const char *performance; /* threads.performance, as the file spells it */
};

/*
 * A decision with what became of it (receipt->nr_steps == decision->nr_steps), its verdict, and what
 * happens to a lease. Fields of the second thread of a swap end in "_2"; unavailable figures are left out.
 */
void nm_entry_decision(struct nm_entry *entry, const struct nm_entry_context *context,
		       const struct nm_decision *decision, const struct nm_receipt *receipt);
void nm_entry_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
		      const struct nm_verdict *verdict);
/* Pages that were handed to the mover (in a dry run: would be), and later what came of it. */
void nm_entry_page_decision(struct nm_entry *entry, const struct nm_entry_context *context,
			    const struct nm_page_decision *decision);
void nm_entry_page_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
			   const struct nm_page_verdict *verdict);
/* A process's home, and its verdict (policy "auto"). */
struct nm_entry_home {
	uint64_t decision;
	uint32_t pid;
	const char *comm; /* escaped */
	int node;
	unsigned threads;
	double demand_cpus;
	double age_s; /* of its program */
	uint64_t pages_moved;
	double move_s; /* that moving what is elsewhere would take; NaN: it stays there */
	enum nm_runtime runtime; /* its program's */
	bool nudged; /* its threads are not leased for that */
};
void nm_entry_placement(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_entry_home *home, const struct nm_place_proposal *proposal);
void nm_entry_placement_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
				const struct nm_entry_home *home,
				const struct nm_place_verdict *verdict);
void nm_entry_lease(struct nm_entry *entry, const struct nm_lease_event *event);

/* The values of fields: "migrate", "swap", "rollback". Static, as the next two. */
const char *nm_decision_kind_name(enum nm_decision_kind kind);
/* "improved", "neutral", "rolled-back", "cancelled", "inconclusive". */
const char *nm_verdict_kind_name(enum nm_verdict_kind kind);
/* The same of the verdict on a home; none is "cancelled". */
const char *nm_place_outcome_name(enum nm_place_outcome outcome);

/* ---- where entries go ---- */

struct nm_journal;

/* To journald when started by systemd (JOURNAL_STREAM) and stderr is the journal, else text on stderr. */
int nm_journal_new(struct nm_journal **ret);
void nm_journal_free(struct nm_journal *journal);
NM_DEFINE_CLEANUP(struct nm_journal, nm_journal_free);

/* Level and rate. Only decisions, verdicts, leases and problems below LOG_ERR are limited. Start and
 * reload; without it, level "decisions" and 20 per second. */
void nm_journal_configure(struct nm_journal *journal, enum nm_journal_level level,
			  uint64_t rate_per_s);

/* Writes or suppresses (and counts) one entry; now_ns: CLOCK_MONOTONIC, for the rate (token bucket). */
void nm_journal_emit(struct nm_journal *journal, const struct nm_entry *entry, uint64_t now_ns);

/* Entries suppressed since the last call (for the summary). */
uint64_t nm_journal_suppressed(struct nm_journal *journal);

#endif

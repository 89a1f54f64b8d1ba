/* SPDX-License-Identifier: MIT */
/* Formats the records of all stages as journal entries: one line of text for users, and fields for
 * programs. Only the daemon calls these functions; libraries never log. */
#ifndef NUMA_MIGRD_JOURNAL_H
#define NUMA_MIGRD_JOURNAL_H

#include <stdint.h>
#include <syslog.h>

#include "numa-migrd/config.h"
#include "policy/judge.h"
#include "affinity/move.h"
#include "policy/plan.h"
#include "numa-migrd/snapshot.h"

/*
 * Kinds of entries. Each has a MESSAGE_ID (128-bit, created for this project) and a catalog text.
 */
enum nm_message {
	NM_MESSAGE_START, /* version, source, topology, policy, seed */
	NM_MESSAGE_STOP,
	NM_MESSAGE_RELOAD,
	NM_MESSAGE_RELOAD_REFUSED,
	NM_MESSAGE_PROBLEM, /* something is unavailable: the reason and the remedy */
	NM_MESSAGE_DECISION,
	NM_MESSAGE_VERDICT,
	NM_MESSAGE_AFFINITY, /* an affinity was restored, changed externally or inherited, or an
			      * operation on it failed */
	NM_MESSAGE_SUMMARY,  /* intervals without a decision, suppressed entries, counters */
	NM_MESSAGE_PAUSE,
	NM_MESSAGE_RESUME,
	NM_MESSAGE_COEXIST, /* kernel.numa_balancing, numad and others were found active */
	NM_MESSAGE_RESTORE,
	NM_MESSAGE_TRIAL, /* its begin and its end, with the result */
	NM_MESSAGE_MAX,
};

/* Returns the 32 hex digits of the MESSAGE_ID of a kind, as in the catalog. */
const char *nm_message_id(enum nm_message message);

#define NM_ENTRY_FIELDS 64

/* One entry under construction. It has a fixed size and needs no allocation; text that does not fit
 * is cut and marked. */
struct nm_entry {
	enum nm_message message;
	int priority;	   /* syslog(3) */
	uint64_t decision; /* which it is about; 0: none */
	uint64_t domain;   /* of the process that it is about; 0: none, or not known */
	unsigned count;
	unsigned thread; /* index of the thread that added fields describe */
	char text[1024];
	size_t reason; /* offset in `text` of the reason, which follows the event; 0: none */
	char fields[NM_ENTRY_FIELDS][192]; /* "NAME=value" */
};

/* Empties the entry and sets KIND to the name of the message ("start", "reload", …). */
void nm_entry_begin(struct nm_entry *entry, enum nm_message message, int priority);
/* Replaces the text. Control characters become spaces; text that does not fit is cut and ends in
 * "…". */
void nm_entry_text(struct nm_entry *entry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Sets a field. A second value for the same name replaces the first; a field beyond NM_ENTRY_FIELDS
 * is dropped. The name is short and uses journald's alphabet. Values from outside must be escaped.
 */
void nm_entry_field(struct nm_entry *entry, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Sets the decision that the entry is about, also as a field. */
void nm_entry_set_decision(struct nm_entry *entry, uint64_t decision);
/* Returns all fields, one per line, which the caller frees. */
char *nm_entry_fields(const struct nm_entry *entry);

/* ---- formatting the results of the stages (pure) ---- */

struct nm_entry_context {
	uint64_t seed;
	const char *policy;
	const struct nm_topology *topology; /* for the kernel's node numbers */
	bool dry_run;
	const char *performance; /* threads.performance in the spelling of the configuration file */
};

/*
 * Format a decision with its receipt (receipt->nr_steps == decision->nr_steps; NULL for a home and
 * for pages), its verdict, and an event of a move. Fields of the second thread of a swap end in
 * "_2"; unavailable metrics are omitted.
 */
void nm_entry_decision(struct nm_entry *entry, const struct nm_entry_context *context,
		       const struct nm_decision *decision, const struct nm_receipt *receipt);
void nm_entry_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
		      const struct nm_verdict *verdict);
void nm_entry_move(struct nm_entry *entry, const struct nm_move_event *event);

/* Returns the value of a field: "migrate", "swap", "rollback", "home", "pages". A static string, as
 * for the next functions. */
const char *nm_decision_kind_name(enum nm_decision_kind kind);
/* Returns the name of the policy that made a decision of this kind. */
const char *nm_decision_policy_name(enum nm_decision_kind kind, enum nm_thread_policy policy);
/* Returns "applied", "dry-run" or "refused"; without a receipt "asked" or "dry-run". */
const char *nm_decision_result_name(const struct nm_entry_context *context,
				    const struct nm_receipt *receipt);
/* Returns "improved", "neutral", "rolled-back", "cancelled" or "inconclusive". */
const char *nm_verdict_kind_name(enum nm_verdict_kind kind);

/* ---- output ---- */

struct nm_journal;

/* Opens the journal: journald if systemd started the daemon (JOURNAL_STREAM) and stderr is the
 * journal, otherwise text on stderr. */
void nm_journal_new(struct nm_journal **ret);
void nm_journal_free(struct nm_journal *journal);
NM_DEFINE_CLEANUP(struct nm_journal, nm_journal_free);

/* Sets the level; "decisions" before. */
void nm_journal_configure(struct nm_journal *journal, enum nm_journal_level level);

/* Writes one entry, or suppresses and counts it: at most 20 decisions, verdicts, events of moves
 * and problems below LOG_ERR per second, of which one domain leaves some to others. Never waits for
 * journald: an entry that it does not take at once is dropped and counted. now_ns is
 * CLOCK_MONOTONIC, for the rate limit (token bucket). */
void nm_journal_emit(struct nm_journal *journal, const struct nm_entry *entry, uint64_t now_ns);

/* Returns the number of entries suppressed or dropped since the last call, for the summary. */
uint64_t nm_journal_suppressed(struct nm_journal *journal);

#endif

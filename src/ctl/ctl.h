/* SPDX-License-Identifier: MIT */
/* numa-migrctl: a command line in front of the bus object (numa-migrctl(1), org.numamigrd1(5)). */
#ifndef NM_CTL_H
#define NM_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <systemd/sd-bus.h>

#include "numa-migrd/base.h"
#include "text.h"

#define NM_CTL_UNAVAILABLE 69 /* EX_UNAVAILABLE of sysexits.h(3head): no daemon, no bus */
#define NM_CTL_NOT_ALLOWED 77 /* EX_NOPERM */

#define NM_CTL_JSON_VERSION 1 /* of every JSON document; raised when a name changes or goes */

#define NM_CTL_POLICIES_MOST 16U

/* What the options of "simulate" say. */
struct nm_ctl_simulate {
	const char *machine, *workload, *record; /* NULL: not given */
	const char *policies[NM_CTL_POLICIES_MOST];
	unsigned nr_policies;
	bool given; /* any of them */
	uint64_t seed;
	unsigned runs;
	double wander_per_s;
};

/* What the options say, the same for every command. */
struct nm_ctl {
	bool json;
	uint32_t lines; /* -n */
	bool lines_given;
	uint64_t seconds, limit_mb; /* record; 0: not given */
	bool hash;	    /* record */
	const char *output; /* report; NULL: not given */
	struct nm_style style;
	struct nm_ctl_simulate simulate;
};

/* ---- commands: `words` are those behind the command, NULL at the end; they return an exit status
 * ---- */

int nm_ctl_status(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_top(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_threads(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_processes(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_pages(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_decisions(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_explain(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_pause(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_resume(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_release(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_dry_run(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_reload(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_doctor(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_advise(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_record(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_replay(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_dump(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_report(const struct nm_ctl *ctl, char *const *words);
int nm_ctl_simulate(const struct nm_ctl *ctl, char *const *words);

/* ---- recordings ---- */

struct nm_recording;
/* Exit status; says on stderr what is wrong with it. */
int nm_ctl_open_recording(const char *file, struct nm_recording **ret);
/* The same once it was read, and r is what reading came to. */
int nm_ctl_recording_read(const char *file, const struct nm_recording *recording, int r);
/* A decision of it with the names of org.numamigrd1(5), and what stopped others. Exit status, told.
 */
int nm_ctl_find_decision(const char *file, uint64_t id, json_t **ret);
/* What the daemon does with the process of this number, or why nothing. Exit status, told. */
int nm_ctl_explain_process(const struct nm_ctl *ctl, const char *word);

/* ---- words ---- */

/* "numa-migrctl: what: which" and where to read on, on stderr. Returns EX_USAGE. */
int nm_ctl_wrong_usage(const char *what, const char *which);
/* A decimal number in the range; anything else, also text behind it, is refused. */
bool nm_ctl_number(const char *word, uint64_t least, uint64_t most, uint64_t *ret);
/* A process id, or EX_USAGE (told) where the word is none. */
int nm_ctl_pid(const char *word, uint32_t *ret);

/* ---- the bus ---- */

struct nm_failure {
	int status;	 /* what to exit with */
	char text[4096]; /* printable, one line or several */
};

enum nm_right {
	NM_RIGHT_READ,
	NM_RIGHT_STEER,
};

/* What a failed call means for the person who asked. */
void nm_ctl_explain_failure(const sd_bus_error *error, int r, enum nm_right right,
			    struct nm_failure *ret);

/* Opens the system bus. Exit status; says on stderr what went wrong. */
int nm_ctl_open(sd_bus **ret);

/*
 * Calls a method of the daemon, with arguments of these types as sd_bus_message_append(3) has them.
 * *ret, which the caller drops: what it returned (several values: an array of them; nothing: null).
 * Exit status; says on stderr what went wrong.
 */
int nm_ctl_ask(sd_bus *bus, const char *method, json_t **ret, const char *types, ...);

/* The same on a connection of its own. A person is asked to prove who they are where polkit has an
 * agent. */
int nm_ctl_ask_once(const char *method, enum nm_right right, json_t **ret, const char *types, ...);

/* Makes a call of the daemon's method without sending it; -errno. */
int nm_ctl_new_call(sd_bus *bus, const char *method, sd_bus_message **ret);

/* Turns a message's values into JSON, without its strings' control characters. -errno. */
int nm_value_read(sd_bus_message *message, json_t **ret);

/* ---- output ---- */

/* Exit status: 1, told, where not all could be written on standard output. */
int nm_ctl_close_output(void);

/* Prints a document on standard output; NULL: no memory. Exit status. */
int nm_ctl_print_json(const json_t *document);

/* Prints {"version": 1, name: value}; takes the value over. Exit status. */
int nm_ctl_print_document(const char *name, json_t *value);
/* The same of two, which stay the caller's. */
int nm_ctl_print_pair(const char *name, const json_t *value, const char *second_name,
		      const json_t *second_value);

/* "name: value" a line, names right-aligned; arrays in one line, objects left out. */
void nm_ctl_print_lines(FILE *out, const struct nm_style *style, const json_t *object);

#endif

/* SPDX-License-Identifier: MIT */
/* numa-migrctl: a command-line client of the bus object (numa-migrctl(1), org.numamigrd1(5)). */
#ifndef NM_CTL_H
#define NM_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <systemd/sd-bus.h>

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "report/fields.h"
#include "text.h"

#define NM_CTL_UNAVAILABLE 69 /* EX_UNAVAILABLE of sysexits.h(3head): no daemon, no bus */
#define NM_CTL_NOT_ALLOWED 77 /* EX_NOPERM */

#define NM_CTL_JSON_VERSION                                                                        \
	2 /* of every JSON document; raised when a name changes or is removed                      \
	   */

/* Options common to all commands. */
struct nm_ctl {
	bool json;
	uint32_t lines; /* -n */
	bool lines_given;
	uint32_t minutes, percent; /* of a trial */
	bool trial_given;
	bool all;			/* processes: every one, with every column */
	const char *user, *unit, *sort; /* of processes; NULL: not given */
	uint32_t cpus;			/* place; 0: not given */
	uint64_t memory_bytes;		/* the same */
	const char *measure;		/* trial service; NULL: not given */
	uint32_t periods, seconds;	/* the same */
	bool periods_given;
	bool permanent; /* the attribute of a unit */
	const char *report; /* doctor: the file to write; NULL: none */
	bool names;	    /* the same: with names */
	struct nm_style style;
};

/* A command: `words` are the arguments after it, NULL-terminated; it returns an exit status. */
typedef int nm_ctl_command(const struct nm_ctl *ctl, char *const *words);

nm_ctl_command nm_ctl_status, nm_ctl_top, nm_ctl_threads, nm_ctl_processes, nm_ctl_decisions;
nm_ctl_command nm_ctl_explain, nm_ctl_pause, nm_ctl_resume, nm_ctl_release, nm_ctl_manage;
nm_ctl_command nm_ctl_dry_run, nm_ctl_steer, nm_ctl_reload, nm_ctl_trial, nm_ctl_doctor;
nm_ctl_command nm_ctl_nodes, nm_ctl_place, nm_ctl_show_config;

/* ---- words ---- */

/* Prints "numa-migrctl: what: which" and a pointer to the help to stderr. Returns EX_USAGE. */
int nm_ctl_wrong_usage(const char *what, const char *which);

/* Prints "numa-migrctl: file: why" to stderr. Returns EXIT_FAILURE. */
int nm_ctl_fail(const char *file, const char *why);
/* Parses a decimal number in the range; returns false for other text. */
bool nm_ctl_number(const char *word, uint64_t least, uint64_t most, uint64_t *ret);
/* Parses a PID. Returns 0, or EX_USAGE with a message. */
int nm_ctl_pid(const char *word, uint32_t *ret);

/* ---- the bus ---- */

struct nm_failure {
	int status;	 /* exit status */
	char text[4096]; /* printable, one or more lines */
};

/* Explains a failed call to the user. `changes`: it was not Dump. */
void nm_ctl_explain_failure(const sd_bus_error *error, int r, bool changes, struct nm_failure *ret);

/* Opens the system bus. Returns the exit status; prints errors to stderr. */
int nm_ctl_open(sd_bus **ret);

/* Creates a call of a method of the daemon without sending it. Returns 0 or a negative errno. */
int nm_ctl_new_call(sd_bus *bus, const char *method, sd_bus_message **ret);

/* Calls a method that changes something, with arguments of these types as for
 * sd_bus_message_append(3). Returns the exit status; prints errors to stderr. */
int nm_ctl_change(const char *method, const char *types, ...);

/* Fetches the document of the daemon, which the caller releases, over a connection or, if `bus` is
 * NULL, over one of its own. Returns the exit status; prints errors to stderr, and, if the user may
 * not read it, the status line of the unit to stdout. */
int nm_ctl_fetch(sd_bus *bus, json_t **ret);

/* The same without messages, within the time limit of the connection. Returns NULL if the daemon
 * does not run, does not answer, or this user may not read it. */
json_t *nm_ctl_try_fetch(sd_bus *bus);

/* Reads the document in the answer to Dump. Returns 0; -EFBIG if it is too large; -EBADMSG if it is
 * no such document; or another negative errno. */
int nm_ctl_read_document(sd_bus_message *reply, json_t **ret);
/* The same for its text. All names and texts in the document are printable; only the fields of an
 * entry have several lines. */
int nm_ctl_parse_document(const char *text, size_t size, json_t **ret);

/* Returns the rows of a table in the document, or NULL. */
const json_t *nm_ctl_rows(const json_t *document, const struct nm_table *table);

/* Returns the first row whose value of this name is the number, or NULL. */
const json_t *nm_ctl_find_row(const json_t *rows, const char *name, uint64_t number);

/* Prints why the daemon does not know a process. Returns EXIT_FAILURE. */
int nm_ctl_unknown_process(const json_t *document, uint32_t pid);

/* ---- output ---- */

/* Returns the exit status: 1, with a message, if not everything could be written to standard
 * output. */
int nm_ctl_close_output(void);

/* Prints a document to standard output; NULL: out of memory. Returns the exit status. */
int nm_ctl_print_json(const json_t *document);

/* Prints {"version": 1, name: value} and takes over the value. Returns the exit status. */
int nm_ctl_print_document(const char *name, json_t *value);
/* The same for two values, which the caller keeps. */
int nm_ctl_print_pair(const char *name, const json_t *value, const char *second_name,
		      const json_t *second_value);

/* Reports a change: nothing, as kill(1), or a document with the result as a word. Returns the exit
 * status. */
int nm_ctl_done(const struct nm_ctl *ctl, const char *result);

/* Prints lines of the form "name: value", with names right-aligned; arrays on one line, without
 * objects. */
void nm_ctl_print_lines(FILE *out, const struct nm_style *style, const json_t *object);

/* Returns the effective settings as rows, with the place of each. The caller releases them. */
json_t *nm_ctl_config_rows(const struct nm_config *config);

/* ---- unit.c: units of systemd ---- */

#define NM_CTL_CGROUPS "/sys/fs/cgroup"
#define NM_CTL_UNIT_BYTES 256

/* As systemctl: a name without a type is that of a service, also with dots in it. Returns false if
 * it cannot be the name of a unit. */
bool nm_ctl_unit_name(const char *word, char ret[NM_CTL_UNIT_BYTES]);
/* Finds the cgroup of a unit (org.freedesktop.systemd1(5)), which the caller frees. Returns the
 * exit status, and prints why there is none. */
int nm_ctl_unit_cgroup(sd_bus *bus, const char *word, char **ret);

struct nm_pids {
	uint32_t *items;
	size_t count, capacity;
};
/* Adds the processes of a cgroup's directory, and of the cgroups below it. The caller frees them.
 */
void nm_ctl_cgroup_pids(const char *directory, struct nm_pids *ret);

/* ---- steer.c ---- */

/* Writes or, for "reset", removes the drop-in that sets the attribute at every start of a service,
 * below a folder of units. Returns 0 or a negative errno. */
int nm_ctl_write_drop_in(const char *units, const char *unit, const char *value);

/* ---- trial_service.c ---- */

/* Compares periods of a unit with and without numa-migrd. Returns the exit status. */
int nm_ctl_trial_service(const struct nm_ctl *ctl, const char *unit);

/* ---- trial.c ---- */

/* Returns whether the document's trial runs, or is the last one since the daemon started. */
bool nm_ctl_trial_has_run(const json_t *trial);
/* Writes how far it is. */
void nm_ctl_trial_state(const json_t *trial, char *out, size_t size);

#endif

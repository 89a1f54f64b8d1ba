/* SPDX-License-Identifier: MIT */
/* What is known of a machine before anything is judged: read once, then only looked at. */
#ifndef NUMA_MIGRD_DOCTOR_FACTS_H
#define NUMA_MIGRD_DOCTOR_FACTS_H

#include "numa-migrd/config.h"
#include "numa-migrd/event.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/topology.h"
#include "runtime.h"

#define NM_WORD_SIZE 64
#define NM_FACTS_PROBLEMS 8
#define NM_FACTS_UNIT "numa-migrd.service"
#define NM_FACTS_USER "numa-migrd"

/* A number from a file. */
struct nm_reading {
	int error; /* 0: it was read; -ENOENT: there is no such file; any other: it was not seen */
	int64_t value;
};

/* numa-migrd or its helper, if it runs. */
struct nm_facts_service {
	uint32_t pid;			/* 0: it does not run */
	struct nm_reading capabilities; /* effective ones, as bits */
	struct nm_reading files;	/* limit of open ones */
	struct nm_reading locked; /* limit of locked memory in bytes; INT64_MAX: none */
};

/* The service's unit, as systemd reports it. */
struct nm_facts_unit {
	int error;			 /* -errno: systemd was not reached */
	bool exists;			 /* else nothing that follows is set */
	char load[NM_WORD_SIZE];	 /* "loaded", "masked", "bad-setting", …; escaped */
	char active[NM_WORD_SIZE];	 /* "active", "inactive", "failed", …; escaped */
	struct nm_reading capabilities;	 /* ambient and bounding ones, as bits */
	struct nm_reading files, locked; /* hard limits; INT64_MAX: none */
};

/* Programs with a runtime that asks for its CPU affinity again. */
struct nm_facts_runtime {
	unsigned count;
	uint32_t pid; /* of the first */
	char comm[NM_WORD_SIZE];
};

enum nm_trial {
	NM_TRIAL_NOT_ASKED,
	NM_TRIAL_DAEMON_RUNS, /* which may want the same counters */
	NM_TRIAL_REFUSED,     /* nothing could be opened: `trial_error` */
	NM_TRIAL_DONE,
};

/* Text is "" if it could not be read, and escaped unless something else is said. */
struct nm_facts {
	bool root;   /* the caller is */
	bool hidden; /* others' processes are not shown to the caller (hidepid of proc(5)) */

	/* the machine */
	struct nm_topology *topology; /* NULL: topology_error says why */
	char topology_error[256];
	bool knows_homes; /* which node a physical address is on */
	bool virtual_machine;
	const char *container; /* the file that shows that this is one; NULL: it is not */
	char lockdown[NM_WORD_SIZE];

	/* sampling */
	struct nm_reading paranoid, mlock_kb, balancing;
	struct nm_reading soft_dirty;	    /* value: 1 it has an effect, 0 none */
	bool offered[NM_MEMORY_SOURCE_MAX]; /* the machine has such a source */
	bool has_counters;		    /* instructions, operations or memory traffic */
	char table[NM_WORD_SIZE];	    /* entry of the table of events */
	enum nm_trial trial;
	int trial_error;
	char trial_text[320];
	struct nm_source_status tried; /* without its pointers */
	char problems[NM_FACTS_PROBLEMS][320];
	size_t nr_problems;

	/* processes and cgroups */
	struct nm_facts_runtime runtimes[NM_RUNTIME_MAX];
	unsigned unread_programs; /* whose files the caller may not read */
	bool unified;		  /* the v2 hierarchy is there */
	unsigned nr_cgroups, nr_cpusets;
	bool cgroups_cut;      /* there are more than were looked at */
	char cpuset_path[256]; /* the first that is narrowed; raw */

	/* the service */
	struct nm_facts_service daemon, helper;
	struct nm_facts_unit unit;
	struct nm_reading helper_socket; /* value: 1 it is there, 0 not */
	struct nm_reading ledger;	 /* in the runtime directory; likewise */
	struct nm_reading nr_open;
	/* NULL: it cannot be used. The shipped one if it may not be read, or before installing. */
	struct nm_config *config;
	int config_error;
	struct nm_config_errors config_errors;
	char config_path[256];

	/* reported by the running daemon */
	char running_source[NM_WORD_SIZE]; /* escaped */
	uint64_t threads_measured, threads_undersampled;
	uint64_t workers_stuck, workers_given_up;
};

/* Frees what the facts hold, not the facts. */
void nm_facts_clear(struct nm_facts *facts);

#endif

/* SPDX-License-Identifier: MIT */
/* What is known of a machine before anything is judged: read once, then only looked at. */
#ifndef NUMA_MIGRD_DOCTOR_FACTS_H
#define NUMA_MIGRD_DOCTOR_FACTS_H

#include "numa-migrd/config.h"
#include "numa-migrd/event.h"
#include "numa-migrd/others.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/topology.h"
#include "runtime.h"
#include "unit.h"

#define NM_WORD_SIZE 64
#define NM_FACTS_PROBLEMS 8
#define NM_FACTS_UNIT "numa-migrd.service"
#define NM_FACTS_USER "numa-migrd"

/* A number from a file. */
struct nm_reading {
	int error; /* 0: it was read; -ENOENT: there is no such file; any other: it was not seen */
	int64_t value;
};

/* numa-migrd or its helper, where it runs. */
struct nm_facts_service {
	uint32_t pid;			/* 0: it does not run */
	struct nm_reading capabilities; /* effective ones, as bits */
	struct nm_reading no_new_privileges, seccomp;
	struct nm_reading files;  /* limit of open ones */
	struct nm_reading locked; /* limit of locked memory in bytes; INT64_MAX: none */
};

/* Another program that places threads or memory, or that is often taken for one. */
struct nm_facts_other {
	uint32_t pid;
	const struct nm_other *other;
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

/* Text is "" where it could not be read, and escaped where nothing else is said. */
struct nm_facts {
	bool root;   /* who asks is */
	bool hidden; /* others' processes are not shown to him (hidepid of proc(5)) */

	/* the machine */
	struct nm_topology *topology; /* NULL: topology_error says why */
	char topology_error[256];
	bool knows_homes;	       /* which node a physical address is on */
	struct nm_reading *free_bytes; /* by node index */
	bool virtual_machine;
	const char *container;	   /* what tells that this is one; NULL: nothing */
	char kernel[NM_WORD_SIZE]; /* its release */
	char thp[NM_WORD_SIZE], thp_defrag[NM_WORD_SIZE];
	char clocksource[NM_WORD_SIZE], lockdown[NM_WORD_SIZE];
	bool has_schedstat, has_numa_maps;

	/* sampling */
	struct nm_reading paranoid, sample_rate, cpu_time_percent, mlock_kb, nmi_watchdog;
	struct nm_reading balancing;
	struct nm_reading top_frequency_khz; /* of the first usable CPU */
	struct nm_reading soft_dirty;	     /* value: 1 it has an effect, 0 none */
	bool offered[NM_MEMORY_SOURCE_MAX];  /* the machine has such a source */
	bool has_counters;		     /* instructions, operations or memory traffic */
	char table[NM_WORD_SIZE];	     /* entry of the table of events */
	enum nm_trial trial;
	int trial_error;
	char trial_text[320];
	struct nm_source_status tried; /* without its pointers */
	char problems[NM_FACTS_PROBLEMS][320];
	size_t nr_problems;
	char running_source[NM_WORD_SIZE]; /* escaped */
	uint64_t threads_measured, threads_undersampled;

	/* others */
	struct nm_facts_other *others;
	size_t nr_others, others_capacity;
	struct nm_facts_runtime runtimes[NM_RUNTIME_MAX];
	unsigned unread_programs; /* whose files who asks may not read */
	char tuned[NM_WORD_SIZE], sched_ext[NM_WORD_SIZE];
	bool kubelet_pins;

	/* cgroups */
	bool unified; /* the v2 hierarchy is there */
	unsigned nr_cgroups, nr_cpusets;
	bool cgroups_cut;      /* there are more than were looked at */
	char cpuset_path[256]; /* the first that is narrowed; raw */

	/* the service */
	struct nm_facts_service daemon, helper;
	struct nm_reading helper_socket; /* value: 1 it is there, 0 not */
	struct nm_unit unit;
	bool has_unit;
	char drop_ins[256]; /* names, raw */
	/* In the runtime directory; value: 1 it is there, 0 not. */
	struct nm_reading ledger, damaged;
	/* NULL: it cannot be used. The shipped one where it may not be read, or before installing.
	 */
	struct nm_config *config;
	int config_error;
	struct nm_config_errors config_errors;
	char config_path[256];
	struct nm_reading metrics_directory; /* of metrics.file, where that is set; value: 1 */
	struct nm_reading nr_open;
};

/* Frees what the facts hold, not the facts. */
void nm_facts_clear(struct nm_facts *facts);

#endif

/* SPDX-License-Identifier: MIT */
/* Facts about a machine, which are read once and then judged. */
#ifndef NUMA_MIGRD_DOCTOR_FACTS_H
#define NUMA_MIGRD_DOCTOR_FACTS_H

#include "numa-migrd/config.h"
#include "numa-migrd/topology.h"

#define NM_WORD_SIZE 64
#define NM_FACTS_PROBLEMS 8
#define NM_FACTS_UNIT "numa-migrd.service"
#define NM_FACTS_USER "numa-migrd"

/* A number read from a file. */
struct nm_reading {
	int error; /* 0: success; -ENOENT: no such file; other: could not be read */
	int64_t value;
};

/* The unit of the service, as systemd reports it. */
struct nm_facts_unit {
	int error;		   /* negative errno: no connection to systemd */
	bool exists;		   /* false: the following fields are not set */
	char load[NM_WORD_SIZE];   /* "loaded", "masked", "bad-setting", …; escaped */
	char active[NM_WORD_SIZE]; /* "active", "inactive", "failed", …; escaped */
};

/* Large programs of one kind. */
struct nm_facts_program {
	unsigned count;
	uint32_t pid; /* of the first one */
};

enum nm_trial {
	NM_TRIAL_UNKNOWN,
	NM_TRIAL_DAEMON_RUNS, /* it may need the same counters */
	NM_TRIAL_REFUSED,     /* no event could be opened: `trial_error` */
	NM_TRIAL_DONE,
};

/* Result of opening the configured sampling source on one CPU. */
struct nm_facts_tried {
	char name[NM_WORD_SIZE];   /* "clock+faults", "cycles+pebs+instructions", … */
	char memory[NM_WORD_SIZE]; /* hardware that samples memory accesses; "": page faults */
	bool cycles, accesses, instructions, flops, dram;
};

/* Text is "" if it could not be read; it is escaped unless noted otherwise. */
struct nm_facts {
	bool root;   /* the caller is root */
	bool hidden; /* processes of other users are hidden from the caller (hidepid of proc(5)) */

	/* machine */
	struct nm_topology *topology; /* NULL: see topology_error */
	char topology_error[256];
	bool knows_homes; /* the nodes of physical addresses are known */
	bool virtual_machine;
	const char *container; /* the file that identifies a container; NULL: no container */
	char lockdown[NM_WORD_SIZE];
	/* sched_ext: whether a BPF scheduler is in charge, and its name. */
	bool bpf_scheduler;
	char scheduler[NM_WORD_SIZE];

	/* sampling */
	struct nm_reading paranoid, balancing;
	int events_error;	    /* numa-migrd did not list the events; 0: it did */
	char sources[NM_WORD_SIZE]; /* that the machine has: "pebs, ibs" */
	bool has_counters;	    /* instructions, operations or memory traffic */
	/* The CPUs have Arm's SPE, and the kernel its driver, which found the buffer inaccessible.
	 */
	bool spe_device, spe_driver;
	char table[NM_WORD_SIZE]; /* entry of the event table */
	enum nm_trial trial;
	int trial_error;
	char trial_text[320];
	struct nm_facts_tried tried;
	char problems[NM_FACTS_PROBLEMS][320];
	size_t nr_problems;

	/* cgroups */
	bool unified; /* the v2 hierarchy exists */
	unsigned nr_cgroups, nr_cpusets;
	bool cgroups_cut;      /* there are more than were examined */
	char cpuset_path[256]; /* the first restricted one; raw */

	/* service */
	uint32_t daemon_pid, helper_pid; /* 0: not running */
	struct nm_facts_unit unit;
	struct nm_reading helper_socket; /* value: 1: exists, 0: does not */
	/* Of narrowed affinities, in the runtime directory; 1: exists, 0: does not. */
	struct nm_reading left_record;
	/* NULL: it is invalid. The default one if the file may not be read, or before the
	 * installation. */
	struct nm_config *config;
	int config_error;
	struct nm_config_errors config_errors;
	char config_path[256];
	bool config_missing; /* neither the file nor a drop-in exists: these are the defaults */
	/* For metrics.file: 0, or the negative errno of the service if it wrote the file; -EROFS:
	 * its unit makes the folder read-only. */
	int metrics_error;

	/* programs for which little can be done; of virtual machines and databases those with
	 * mostly shared memory */
	struct nm_facts_program shared_machines, databases, pinned;

	/* reported by the running daemon */
	char running_source[NM_WORD_SIZE]; /* escaped */
	uint64_t threads_measured, threads_undersampled;
	char trial_state[256], trial_result[256]; /* escaped; "": no trial since its start */
};

/* Frees the contents of the facts, but not the struct. */
void nm_facts_clear(struct nm_facts *facts);

#endif

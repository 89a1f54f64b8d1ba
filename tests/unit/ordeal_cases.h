/* SPDX-License-Identifier: MIT */
/*
 * The errors that each call may plausibly return, its purpose, and the expected outcomes. The sweep
 * compares each outcome with this table, and docs/failures.md has a row for each case.
 */
#ifndef NM_TEST_ORDEAL_CASES_H
#define NM_TEST_ORDEAL_CASES_H

#include "ordeal_gate.h"

#define CASE_ERRORS 10
#define CASE_WORDS 19

/* Outcomes in addition to that the service continues. */
#define MAY_NOT_START 1U
#define MAY_END 2U
/* If each such call fails, the service logs it. */
#define IS_LOGGED 4U

/* Permitted prefixes of the entries that the service logs about it. */
#define OF_AFFINITIES                                                                              \
	"Could not move ", "Affinity of N/N not restored, will be tried again",                    \
		"Paused; affinities not restored: N ", "Stopped; affinities not restored: N "
#define OF_SAMPLING "Sampling of ", "Nothing moved: Sampling "
#define OF_LEDGER                                                                                  \
	"Moves not recorded: E", "Affinities not restored: E", "Runtime directory unusable: E",    \
		"given-back in the runtime ", "unanswered in the runtime ", "Exiting: E"
#define OF_METRICS                                                                                 \
	"metrics.file …/figures.prom not written: E", "metrics.file …/figures.prom written again"
#define OF_CONFIG "…/numa-migrd.conf", "…/parameters", "Reload failed: …/numa-migrd.conf"
#define CUT_SHORT "Interval aborted: E"

static const struct ordeal_case {
	enum gate_op op;
	const char *name, *what;
	const char *then;	     /* consequence for the service */
	const char *waits, *bound;   /* what the loop waits for, and for how long */
	int errors[CASE_ERRORS + 1]; /* ends with 0 */
	unsigned ends;
	const char *says[CASE_WORDS]; /* ends with NULL */
} ordeal_cases[] = {
	{GATE_OPEN_DIRECTORY,
	 "open_directory",
	 "opens the directory of a process, thread or cgroup",
	 "the process or thread is skipped until the next interval; inheritors of "
	 "affinities are searched for again",
	 "RCU and short locks of the kernel",
	 "–",
	 {ENOENT, ESRCH, EACCES, EMFILE, ENFILE, ENOMEM},
	 MAY_END,
	 {OF_AFFINITIES, CUT_SHORT}},
	{GATE_READ_FILE,
	 "read_file",
	 "reads stat, statm, status, cgroup, cpuset, schedstat, comm, the load, the boot ID or "
	 "a sysctl",
	 "as above; without the load no CPU counts as idle, without the boot ID the "
	 "service does not start, and a sysctl keeps its last value",
	 "no lock of a memory map; maps, numa_maps, cmdline and environ are not read "
	 "here",
	 "–",
	 {ENOENT, ESRCH, EACCES, EIO, EMFILE, EFBIG, ENOMEM},
	 MAY_NOT_START | MAY_END | IS_LOGGED,
	 {OF_AFFINITIES, CUT_SHORT, "Affinities not restored: E",
	  "Only first touches sampled: ", "kernel.numa_balancing migrates the same pages"}},
	{GATE_LIST_DIRECTORY,
	 "list_directory",
	 "lists /proc, or the threads of a process",
	 "listed again in the next interval; inheritors are searched for until that "
	 "succeeds, after the end by --restore",
	 "RCU",
	 "–",
	 {ENOENT, ESRCH, EACCES, EMFILE, ENOMEM},
	 MAY_END,
	 {OF_AFFINITIES}},
	{GATE_READ_ATTRIBUTE,
	 "read_attribute",
	 "reads user.numa-migrd of a cgroup",
	 "the cgroup keeps its value, or counts as one without",
	 "locks of the cgroup file system",
	 "–",
	 {ENODATA, EOPNOTSUPP, ERANGE, EACCES, ENOENT, EIO},
	 0,
	 {"cgroup /"}},
	{GATE_OWNER,
	 "owner",
	 "reads the owner of a cgroup or a process",
	 "only off and observe count there; the process is not managed",
	 "as above",
	 "–",
	 {ENOENT, EIO},
	 0,
	 {"Could not move "}},
	{GATE_AFFINITY_GET,
	 "affinity_get",
	 "sched_getaffinity(2)",
	 "the thread is skipped and examined again",
	 "the lock of a run queue",
	 "–",
	 {ESRCH, EPERM, EINVAL},
	 MAY_END,
	 {OF_AFFINITIES}},
	{GATE_AFFINITY_SET,
	 "affinity_set",
	 "sched_setaffinity(2)",
	 "the move counts as refused; an affinity that is not restored stays "
	 "recorded, and is tried again",
	 "the migration thread of the CPU, which has the highest priority",
	 "–",
	 {ESRCH, EPERM, EINVAL, ENOMEM},
	 MAY_END,
	 {OF_AFFINITIES}},
	{GATE_EVENT_OPEN,
	 "event_open",
	 "opens a software event on a CPU",
	 "sampling continues without this event or CPU, or with another source; without "
	 "any, nothing is moved, and it is tried each minute",
	 "an answer of that CPU, or of the helper",
	 "0.5 s for the helper, which is then not asked for a minute",
	 {EACCES, EPERM, ENOENT, ENODEV, EBUSY, EMFILE, ENOMEM, ENOSPC, ECONNREFUSED, ETIMEDOUT},
	 IS_LOGGED,
	 {OF_SAMPLING}},
	{GATE_HARDWARE_LIST,
	 "hardware_list",
	 "lists hardware events in /sys",
	 "sampling continues without hardware events",
	 "nothing",
	 "–",
	 {ENOENT, ENODEV, EINVAL, EACCES, ENOMEM},
	 0,
	 {OF_SAMPLING}},
	{GATE_HARDWARE_OPEN,
	 "hardware_open",
	 "opens a hardware event on a CPU",
	 "sampling continues without this event",
	 "as event_open",
	 "0.5 s for the helper",
	 {EACCES, ENOENT, ENODEV, EBUSY, EOPNOTSUPP, EMFILE, EINVAL, ETIMEDOUT},
	 0,
	 {OF_SAMPLING}},
	{GATE_EVENT_MAP,
	 "event_map",
	 "maps a ring",
	 "a smaller ring is tried, then sampling continues without this CPU",
	 "the own memory map only",
	 "–",
	 {EPERM, ENOMEM, EINVAL, ENODEV},
	 IS_LOGGED,
	 {OF_SAMPLING}},
	{GATE_EVENT_IOCTL,
	 "event_ioctl",
	 "turns an event on or off, sets its period or its ring",
	 "sampling continues without this event or CPU, or at the old rate",
	 "an answer of that CPU",
	 "–",
	 {ENODEV, EINVAL, EIO},
	 IS_LOGGED,
	 {OF_SAMPLING}},
	{GATE_EVENT_READ,
	 "event_read",
	 "reads whether an event counts",
	 "the event is closed",
	 "an answer of that CPU",
	 "–",
	 {EIO, ENODEV},
	 0,
	 {OF_SAMPLING}},
	{GATE_NUMA_BALANCING_SET,
	 "numa_balancing_set",
	 "sets kernel.numa_balancing",
	 "sampling continues without injected page faults",
	 "all CPUs, or the helper",
	 "0.5 s for the helper, which is then not asked for a minute",
	 {EPERM, ENOENT, ECONNREFUSED, EIO, ETIMEDOUT},
	 IS_LOGGED,
	 {"kernel.numa_balancing = N refused: E", "kernel.numa_balancing migrates the same pages",
	  "Repeated accesses are sampled again"}},
	{GATE_ASK,
	 "ask",
	 "sends a request about memory to a worker; ETIMEDOUT: the worker never answers",
	 "the location of the pages, or the program, stays unknown",
	 "nothing: the worker makes the call",
	 "2 s, then the worker is replaced",
	 {EAGAIN, ENOMEM, EPERM, ESRCH, ETIMEDOUT},
	 0,
	 {NULL}},
	{GATE_OPENAT,
	 "openat",
	 "opens the configuration, the record of moves, or a file of /sys",
	 "without a configuration or record the service does not start; a reload keeps "
	 "the previous configuration",
	 "the disk; a file on a network file system is root's choice",
	 "that of the disk",
	 {ENOENT, EACCES, EMFILE, ENOSPC, EROFS, EIO},
	 MAY_NOT_START | IS_LOGGED,
	 {OF_LEDGER, OF_METRICS, OF_CONFIG, "Nothing is moved: no node ranges in "}},
	{GATE_WRITE,
	 "write",
	 "writes the record of moves, released threads, or metrics",
	 "a thread whose move cannot be recorded stays; metrics are written again later",
	 "as openat",
	 "that of the disk",
	 {ENOSPC, EDQUOT, EIO},
	 MAY_NOT_START | IS_LOGGED,
	 {OF_LEDGER, OF_METRICS, "Could not move "}},
	{GATE_PREAD,
	 "pread",
	 "reads the record of moves",
	 "the service does not start, or does not resume",
	 "as openat",
	 "that of the disk",
	 {EIO},
	 MAY_NOT_START | IS_LOGGED,
	 {OF_LEDGER}},
	{GATE_FTRUNCATE,
	 "ftruncate",
	 "empties the record of an earlier boot",
	 "the service does not start, or does not resume",
	 "as openat",
	 "that of the disk",
	 {EIO, EROFS},
	 MAY_NOT_START | IS_LOGGED,
	 {OF_LEDGER}},
	{GATE_RENAMEAT,
	 "renameat",
	 "replaces a file",
	 "the old file stays, and it is tried again",
	 "as openat",
	 "that of the disk",
	 {ENOSPC, EIO, EROFS, EACCES},
	 MAY_NOT_START | IS_LOGGED,
	 {OF_LEDGER, OF_METRICS}},
	{GATE_UNLINKAT,
	 "unlinkat",
	 "removes a file",
	 "the file stays; a remaining record is empty",
	 "as openat",
	 "that of the disk",
	 {EACCES, EROFS, EIO},
	 MAY_NOT_START | IS_LOGGED,
	 {OF_LEDGER, OF_METRICS}},
};

#define ORDEAL_CASES (sizeof(ordeal_cases) / sizeof(*ordeal_cases))

#endif

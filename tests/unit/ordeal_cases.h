/* SPDX-License-Identifier: MIT */
/*
 * Which errors each call may plausibly return, what it is for, and what may become of the daemon
 * then: what is found is held against that, and is the rows of docs/failures.md.
 */
#ifndef NM_TEST_ORDEAL_CASES_H
#define NM_TEST_ORDEAL_CASES_H

#include "ordeal_gate.h"

#define CASE_ERRORS 10
#define CASE_WORDS 18

/* Besides going on, which it may always. */
#define MAY_NOT_START 1U
#define MAY_END 2U
/* Where each such call fails, an administrator hears of it. */
#define IS_TOLD 4U

/* What may be said of it: how it begins. */
#define OF_MASKS                                                                                   \
	"Could not move ", "Affinity of N/N not restored, will be tried again",     \
		"Paused; affinities not restored: N ",   \
		"Stopped; affinities not restored: N "
#define OF_SAMPLING "Sampling of ", "Nothing sampled, nothing moved: Sampling "
#define OF_LEDGER                                                                                  \
	"Ledger not opened: E",                                      \
		"Ledger not replayed: E",                            \
		"Runtime directory unusable: E", "given-back in the runtime ",      \
		"unanswered in the runtime ", "Exiting: E"
#define OF_FIGURES                                                                                 \
	"metrics.file …/figures.prom not written: E",                                        \
		"metrics.file …/figures.prom written again"
#define OF_CONFIG "…/numa-migrd.conf", "Reload failed: …/numa-migrd.conf"
#define CUT_SHORT "Interval aborted: E"

static const struct ordeal_case {
	enum gate_op op;
	const char *name, *what;
	const char *then;	     /* what the daemon does about it */
	const char *waits;	     /* why the loop does not wait for it for long */
	int errors[CASE_ERRORS + 1]; /* ends with 0 */
	unsigned ends;
	const char *says[CASE_WORDS]; /* ends with NULL */
} ordeal_cases[] = {
	{GATE_OPEN_DIRECTORY,
	 "open_directory",
	 "the directory of a process or thread below /proc, or of a cgroup, is opened",
	 "the thread or process is left alone in this interval, and looked at again in the next; "
	 "what may be an heir of a lease is looked for until it could be read",
	 "the entry is found under RCU and short locks of the kernel; no lock of the "
	 "process on its memory map is taken",
	 {ENOENT, ESRCH, EACCES, EMFILE, ENFILE, ENOMEM},
	 MAY_END,
	 {OF_MASKS, CUT_SHORT}},
	{GATE_READ_FILE,
	 "read_file",
	 "a file below /proc or /sys is read: stat, status, cgroup, cpuset, load, boot id, sysctls",
	 "as for open_directory; without the load no CPU counts as free; without a boot id it does "
	 "not start",
	 "what is read takes no lock on a memory map: stat, status, cgroup, cpuset, "
	 "schedstat and comm, and not maps, numa_maps, cmdline or environ, which do",
	 {ENOENT, ESRCH, EACCES, EIO, EMFILE, EFBIG, ENOMEM},
	 MAY_NOT_START | MAY_END | IS_TOLD,
	 {OF_MASKS, CUT_SHORT, "Ledger not replayed: E", "Only first touches sampled: "}},
	{GATE_LIST_DIRECTORY,
	 "list_directory",
	 "/proc or a process's task directory is listed",
	 "what could not be listed is listed again in the next interval; heirs are looked for "
	 "until it could, after the end by --restore",
	 "numbers are listed under RCU, and no process is asked",
	 {ENOENT, ESRCH, EACCES, EMFILE, ENOMEM},
	 MAY_END,
	 {OF_MASKS}},
	{GATE_READ_ATTRIBUTE,
	 "read_attribute",
	 "the attribute user.numa-migrd of a cgroup is read",
	 "the cgroup counts as one without an attribute, or as it did until then",
	 "the file system of cgroups is in memory, behind locks of its own that "
	 "no ordinary user holds",
	 {ENODATA, EOPNOTSUPP, ERANGE, EACCES, ENOENT, EIO},
	 0,
	 {"cgroup /"}},
	{GATE_OWNER,
	 "owner",
	 "the owner of a cgroup's directory is read",
	 "only off and observe count there",
	 "as for read_attribute",
	 {ENOENT, EIO},
	 0,
	 {NULL}},
	{GATE_AFFINITY_GET,
	 "affinity_get",
	 "a thread's mask is read",
	 "the thread is left alone, and looked at again",
	 "it takes the lock of a run queue, which the kernel holds for microseconds",
	 {ESRCH, EPERM, EINVAL},
	 MAY_END,
	 {OF_MASKS}},
	{GATE_AFFINITY_SET,
	 "affinity_set",
	 "a thread's mask is set or given back",
	 "the move counts as refused; what could not be given back stays in the ledger, and is "
	 "tried again",
	 "it waits until the thread has left its CPU, for which the kernel has a thread "
	 "above all others; no sleep of the thread itself delays it",
	 {ESRCH, EPERM, EINVAL, ENOMEM},
	 MAY_END,
	 {OF_MASKS}},
	{GATE_EVENT_OPEN,
	 "event_open",
	 "an event of the software is opened on a CPU",
	 "sampling goes on without this event or this CPU, or by another source; without any "
	 "nothing is moved, and it is tried every minute",
	 "events are of CPUs and not of threads, so that it waits for an answer of that "
	 "CPU and for no process; where the helper opens it, for half a second at most, "
	 "and then for a minute not at all",
	 {EACCES, EPERM, ENOENT, ENODEV, EBUSY, EMFILE, ENOMEM, ENOSPC, ECONNREFUSED, ETIMEDOUT},
	 IS_TOLD,
	 {OF_SAMPLING}},
	{GATE_HARDWARE_LIST,
	 "hardware_list",
	 "the events of the hardware are listed",
	 "sampling goes on without events of the hardware",
	 "these are small files of /sys that the kernel makes of its memory",
	 {ENOENT, ENODEV, EINVAL, EACCES, ENOMEM},
	 0,
	 {OF_SAMPLING}},
	{GATE_HARDWARE_OPEN,
	 "hardware_open",
	 "an event of the hardware is opened on a CPU",
	 "sampling goes on without this event",
	 "as for event_open",
	 {EACCES, ENOENT, ENODEV, EBUSY, EOPNOTSUPP, EMFILE, EINVAL, ETIMEDOUT},
	 0,
	 {OF_SAMPLING}},
	{GATE_EVENT_MAP,
	 "event_map",
	 "a ring is mapped",
	 "a smaller ring is tried, then sampling goes on without this CPU",
	 "it takes the lock on our own memory map only, which the loop alone takes",
	 {EPERM, ENOMEM, EINVAL, ENODEV},
	 IS_TOLD,
	 {OF_SAMPLING}},
	{GATE_EVENT_IOCTL,
	 "event_ioctl",
	 "an event is switched on or off, slowed down, or told to use another's ring",
	 "sampling goes on without this event or this CPU, or at the old rate",
	 "it waits for an answer of that CPU",
	 {ENODEV, EINVAL, EIO},
	 IS_TOLD,
	 {OF_SAMPLING}},
	{GATE_EVENT_READ,
	 "event_read",
	 "it is read whether an event counts",
	 "the event counts as one that does not count, and is closed",
	 "as for event_ioctl",
	 {EIO, ENODEV},
	 0,
	 {OF_SAMPLING}},
	{GATE_NUMA_BALANCING_SET,
	 "numa_balancing_set",
	 "kernel.numa_balancing is switched on, or put back",
	 "sampling goes on without faults of our causing",
	 "it waits until all CPUs have seen that the kernel has changed its code, which "
	 "takes milliseconds; where the helper does it, for half a second at most, and "
	 "then for a minute not at all",
	 {EPERM, ENOENT, ECONNREFUSED, EIO, ETIMEDOUT},
	 IS_TOLD,
	 {"kernel.numa_balancing = N refused: E", "kernel.numa_balancing migrates the same pages",
	  "Repeated accesses are sampled again"}},
	{GATE_ASK,
	 "ask",
	 "numa-migrd-worker is asked about another process's memory; ETIMEDOUT: it never answers, "
	 "since a call hangs in the kernel",
	 "what was to be known of the pages stays unknown, and a program whose runtime is not "
	 "known is leased as most are; a question without an answer is forgotten, and nothing "
	 "waits for it",
	 "the call may hang, and does so in the worker: the question is only handed "
	 "over; where the helper is to write-protect memory, it is waited for as with "
	 "event_open",
	 {EAGAIN, ENOMEM, EPERM, ESRCH, ETIMEDOUT},
	 0,
	 {NULL}},
	{GATE_OPENAT,
	 "openat",
	 "a file is opened: the configuration, the ledger, /sys at the start",
	 "without a configuration or a ledger it does not start; a reload that cannot be read "
	 "leaves the old configuration",
	 "on /etc, /run and /sys nothing but the disk is waited for; a configuration or "
	 "metrics.file on a network file system that does not answer is waited for, and "
	 "is root's choice",
	 {ENOENT, EACCES, EMFILE, ENOSPC, EROFS, EIO},
	 MAY_NOT_START | IS_TOLD,
	 {OF_LEDGER, OF_FIGURES, OF_CONFIG, "Nothing is moved: no node ranges in "}},
	{GATE_WRITE,
	 "write",
	 "the ledger, what was given back, or the figures are written",
	 "a lease that cannot be written down is not given; figures are written again later",
	 "as for openat",
	 {ENOSPC, EDQUOT, EIO},
	 MAY_NOT_START | IS_TOLD,
	 {OF_LEDGER, OF_FIGURES, "Could not move "}},
	{GATE_PREAD,
	 "pread",
	 "the ledger's first line is read, and its last byte",
	 "the ledger is not trusted: it does not start, or does not go on after a pause",
	 "as for openat",
	 {EIO},
	 MAY_NOT_START | IS_TOLD,
	 {OF_LEDGER}},
	{GATE_FTRUNCATE,
	 "ftruncate",
	 "an old ledger is emptied, or a torn line cut",
	 "it does not start, or does not go on after a pause",
	 "as for openat",
	 {EIO, EROFS},
	 MAY_NOT_START | IS_TOLD,
	 {OF_LEDGER}},
	{GATE_RENAMEAT,
	 "renameat",
	 "a file written anew takes the old one's place",
	 "the old file stays, and it is tried again",
	 "as for openat",
	 {ENOSPC, EIO, EROFS, EACCES},
	 MAY_NOT_START | IS_TOLD,
	 {OF_LEDGER, OF_FIGURES}},
	{GATE_UNLINKAT,
	 "unlinkat",
	 "a file is removed",
	 "the file stays; a ledger that stays has nothing to tell",
	 "as for openat",
	 {EACCES, EROFS, EIO},
	 MAY_NOT_START | IS_TOLD,
	 {OF_LEDGER, OF_FIGURES}},
	{GATE_MEMORY,
	 "memory",
	 "memory is asked for",
	 "the interval is cut short and the next one starts anew; at the start it ends",
	 "the kernel may have to free some first; the unit's MemoryMax bounds what is "
	 "asked for",
	 {ENOMEM},
	 MAY_NOT_START | MAY_END | IS_TOLD,
	 {OF_MASKS, OF_LEDGER, OF_FIGURES, OF_CONFIG, CUT_SHORT,
	  "Topology not readable: ", OF_SAMPLING}},
};

#define ORDEAL_CASES (sizeof(ordeal_cases) / sizeof(*ordeal_cases))

#endif

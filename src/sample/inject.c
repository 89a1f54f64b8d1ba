/* SPDX-License-Identifier: MIT */
/* Soft-dirty injection: selects the processes to write-protect next, within a rate. */
#include "numa-migrd/sample.h"

#include <math.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "numa-migrd/proc.h"

#define BYTES_PER_MB 1e6
/* One write walks a whole process with its mappings locked, and cannot be interrupted. */
#define WRITE_NS_MAX (100.0 * NM_NSEC_PER_MSEC)
/* Before the first measurement: 50 µs per MB. */
#define FIRST_NS_PER_BYTE 0.05
/* Small enough to be measured repeatedly. */
#define ALWAYS_BYTES (256.0 * BYTES_PER_MB)
/* Cost of a page fault, including its sample, for the thread that writes to a protected page. */
#define FAULT_COST_NS 2300.0
#define PAGE_BYTES 4096.0

double nm_inject_rate(const struct nm_config *config)
{
	double cap_share = config->sampling.overhead_percent / 100;
	double affordable =
		cap_share * (double)NM_NSEC_PER_SEC / FAULT_COST_NS * PAGE_BYTES / BYTES_PER_MB;
	return fmin(NM_SOFT_DIRTY_MB_S, affordable);
}

const char *nm_inject_remedy(int error)
{
	switch (error) {
	case -EPERM:
		return "allow it in /etc/numa-migrd.conf, owned by root, for this target";
	case -EAGAIN:
		return "more than twice 256 MB/s";
	case -ETIMEDOUT:
	case -EALREADY:
		return "memory map locked, skipped for 10 min";
	case -ENOENT:
	case -ECONNREFUSED:
	case -EACCES:
		return "check numa-migrd-helper.socket";
	default:
		return "see systemctl status numa-migrd-helper";
	}
}

/* Adds the budget since the last call. It is limited to one second's worth, or to the size of the
 * next target (`need`), so that a large one gets its turn. */
static void refill(struct nm_injector *injector, double rate, double need, uint64_t now_ns)
{
	double elapsed_s = 1.0; /* the first call may use one second's worth */
	double most = need > rate ? need : rate;

	if (injector->last_time_ns)
		elapsed_s = (double)(now_ns - injector->last_time_ns) / (double)NM_NSEC_PER_SEC;
	injector->last_time_ns = now_ns;
	injector->budget_bytes += rate * elapsed_s;
	if (injector->budget_bytes > most)
		injector->budget_bytes = most;
}

static bool takes_too_long(const struct nm_injector *injector,
			   const struct nm_inject_target *target)
{
	double per_byte = injector->ns_per_byte > 0 ? injector->ns_per_byte : FIRST_NS_PER_BYTE;
	return (double)target->resident_bytes > ALWAYS_BYTES &&
	       per_byte * (double)target->resident_bytes > WRITE_NS_MAX;
}

static void note_error(struct nm_injector *injector, int error)
{
	if (error != -ESRCH)
		injector->last_error = error;
}

/* Returns true if the process was protected. If the answer was late, it may have been protected
 * later. */
static bool handle_answer(struct nm_injector *injector, const struct nm_inject_target *target,
			  const struct nm_memory_answer *answer)
{
	if (answer->result == 0) {
		double bytes = (double)target->resident_bytes, took_ns = (double)answer->took_ns;
		/* Keeps the lowest cost per byte: additional time is due to other load. */
		if (bytes > 0 && took_ns > 0 &&
		    (injector->ns_per_byte == 0 || took_ns / bytes < injector->ns_per_byte))
			injector->ns_per_byte = took_ns / bytes;
		return true;
	}
	if (answer->result != -ETIMEDOUT)
		injector->budget_bytes += (double)target->resident_bytes;
	note_error(injector, answer->result);
	return false;
}

static int handle_answers(struct nm_injector *injector, struct nm_platform *platform)
{
	unsigned kept = 0;
	int protected = 0;

	for (unsigned i = 0; i < injector->nr_queries; i++) {
		nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
		int r = platform->ops->memory_poll(platform, injector->queries[i].ticket, &answer);
		if (r == -EAGAIN)
			injector->queries[kept++] = injector->queries[i];
		else if (r == 0)
		protected += handle_answer(injector, &injector->queries[i].target, &answer);
	}
	injector->nr_queries = kept;
	return protected;
}

/* A target that has exited or is refused has had its turn, too. */
static void protect(struct nm_injector *injector, struct nm_platform *platform,
		    const struct nm_inject_target *target)
{
	const struct nm_memory_query query = {.kind = NM_MEMORY_QUERY_CLEAR_REFS,
					      .pid = target->pid,
					      .start_ticks = target->start_ticks};
	uint64_t ticket = 0;

	injector->last_pid = target->pid;
	if (takes_too_long(injector, target)) {
		injector->too_large++;
		return;
	}
	int r = platform->ops->memory_query(platform, &query, &ticket);
	if (r < 0) {
		note_error(injector, r);
		return;
	}
	injector->queries[injector->nr_queries].ticket = ticket;
	injector->queries[injector->nr_queries++].target = *target;
	injector->budget_bytes -= (double)target->resident_bytes;
}

int nm_inject_soft_dirty(struct nm_injector *injector, struct nm_platform *platform,
			 const struct nm_inject_target *targets, size_t count, double mb_per_s,
			 uint64_t now_ns)
{
	int protected = handle_answers(injector, platform);

	if (!count)
		return protected;
	size_t next = 0; /* the first target after the last one, with wrap-around */
	while (next < count && targets[next].pid <= injector->last_pid)
		next++;
	next %= count;
	refill(injector, mb_per_s * BYTES_PER_MB, (double)targets[next].resident_bytes, now_ns);
	for (size_t turn = 0; turn < count && injector->nr_queries < NM_INJECTIONS_MAX; turn++) {
		if ((double)targets[next].resident_bytes > injector->budget_bytes)
			break; /* it keeps its turn, so that small targets do not starve large
				* ones */
		protect(injector, platform, &targets[next]);
		next = (next + 1) % count;
	}
	return protected + handle_answers(injector, platform);
}

void nm_injector_clear(struct nm_injector *injector, struct nm_platform *platform)
{
	for (unsigned i = 0; i < injector->nr_queries; i++)
		platform->ops->memory_cancel(platform, injector->queries[i].ticket);
	*injector = (struct nm_injector){0};
}

/* ---- test of soft-dirty protection ---- */

static long minor_faults(void)
{
	struct rusage usage;
	return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : usage.ru_minflt;
}

int nm_inject_try(int (*clear)(void *context), void *context)
{
	volatile char *page =
		mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -errno;
	*page = 1;
	int r = clear(context);
	long before = minor_faults();
	*page = 2;
	long after = minor_faults();
	(void)munmap((void *)page, 1);
	if (r < 0)
		return r;
	return after > before ? 0 : -EOPNOTSUPP;
}

static int clear_own(void *context)
{
	struct nm_platform *platform = context;
	uint32_t pid = (uint32_t)getpid();
	struct nm_proc_stat stat;
	int r = nm_proc_stat_of(platform, pid, pid, &stat);
	return r < 0 ? r : platform->ops->clear_refs(platform, (pid_t)pid, stat.start_ticks);
}

int nm_inject_probe(struct nm_platform *platform)
{
	return nm_inject_try(clear_own, platform);
}

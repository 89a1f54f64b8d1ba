/* SPDX-License-Identifier: MIT */
/* The perf rings: opened, drained and closed per CPU (perf_event_open(2); sampling.md section 2).
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "numa-migrd/sample.h"
#include "period.h"
#include "source.h"

#define TRIAL_NS (100 * (long)NM_NSEC_PER_MSEC)
#define WAKE_FRACTION 4 /* the reader is woken at a quarter of a ring */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- opening one ring ---- */

static void ring_reset(struct nm_ring *ring)
{
	*ring = (struct nm_ring){0};
	for (size_t i = 0; i < NM_ARRAY_SIZE(ring->fds); i++)
		ring->fds[i] = -1;
}

static void ring_close(struct nm_source *source, struct nm_ring *ring)
{
	struct nm_platform *platform = source->platform;

	if (ring->map) {
		/* The mapping keeps the file alive, and a live file stays in the epoll set. */
		(void)epoll_ctl(source->epoll, EPOLL_CTL_DEL, ring->fds[NM_EVENT_SIDEBAND], NULL);
		platform->ops->event_unmap(platform, ring->map, ring->data_bytes);
	}
	for (size_t i = NM_ARRAY_SIZE(ring->fds); i-- > 0;)
		if (ring->fds[i] >= 0)
			platform->ops->close(platform, ring->fds[i]);
	ring_reset(ring);
}

static void complain(struct nm_source *source, struct nm_ring *ring, enum nm_problem_step step,
		     enum nm_event_kind kind, int error)
{
	ring->complete = false;
	nm_problems_add(&source->problems, step, kind, (int)ring->layout.cpu, error);
}

/* One try at the leader with a ring of that size; the event's wake-up mark depends on the size. */
static int try_leader(struct nm_source *source, struct nm_ring *ring, size_t bytes,
		      enum nm_problem_step *step)
{
	struct nm_platform *platform = source->platform;

	*step = NM_STEP_OPEN;
	int fd = platform->ops->event_open(platform, NM_EVENT_SIDEBAND, (int)ring->layout.cpu,
					   bytes / WAKE_FRACTION);
	if (fd < 0)
		return fd;
	*step = NM_STEP_MAP;
	int r = platform->ops->event_map(platform, fd, bytes, &ring->map);
	if (r < 0) {
		ring->map = NULL;
		platform->ops->close(platform, fd);
		return r;
	}
	ring->fds[NM_EVENT_SIDEBAND] = fd;
	ring->data_bytes = bytes;
	return 0;
}

/* Opens the side-band event and its ring; where mapping is refused, with half the size each time.
 */
static int open_leader(struct nm_source *source, struct nm_ring *ring)
{
	enum nm_problem_step step;
	size_t bytes = source->ring_bytes;
	int refused = 0;
	int r = try_leader(source, ring, bytes, &step);

	while ((r == -EPERM || r == -ENOMEM) && step == NM_STEP_MAP && bytes > page_bytes()) {
		refused = r;
		bytes /= 2;
		r = try_leader(source, ring, bytes, &step);
	}
	if (r < 0)
		complain(source, ring, step, NM_EVENT_SIDEBAND, r);
	else if (refused < 0)
		complain(source, ring, NM_STEP_SMALL, NM_EVENT_SIDEBAND, refused);
	return r;
}

/* Puts an open event onto the ring and learns the id its records will carry. */
static int join(struct nm_source *source, struct nm_ring *ring, enum nm_event_kind kind, int fd)
{
	struct nm_platform *platform = source->platform;
	/* ioctl(2) takes this one as a number. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	void *leader = (void *)(intptr_t)ring->fds[NM_EVENT_SIDEBAND];
	uint64_t id = 0;
	int r = 0;

	if (kind != NM_EVENT_SIDEBAND)
		r = platform->ops->event_ioctl(platform, fd, PERF_EVENT_IOC_SET_OUTPUT, leader);
	if (r == 0)
		r = platform->ops->event_ioctl(platform, fd, PERF_EVENT_IOC_ID, &id);
	if (r < 0)
		return r;
	ring->layout.events[ring->layout.count].id = id;
	ring->layout.events[ring->layout.count].kind = kind;
	ring->layout.count++;
	return 0;
}

static int open_member(struct nm_source *source, struct nm_ring *ring, enum nm_event_kind kind)
{
	struct nm_platform *platform = source->platform;
	int fd = platform->ops->event_open(platform, kind, (int)ring->layout.cpu,
					   nm_source_period(source, kind));

	if (fd < 0) {
		complain(source, ring, NM_STEP_OPEN, kind, fd);
		return fd;
	}
	int r = join(source, ring, kind, fd);
	if (r < 0) {
		platform->ops->close(platform, fd);
		complain(source, ring, NM_STEP_JOIN, kind, r);
		return r;
	}
	ring->fds[kind] = fd;
	return 0;
}

/* The leader first: births are then known before samples refer to the newborn. */
static void enable_all(struct nm_source *source, struct nm_ring *ring)
{
	struct nm_platform *platform = source->platform;

	for (int kind = 0; kind < NM_EVENT_KIND_MAX; kind++) {
		if (ring->fds[kind] < 0)
			continue;
		int r = platform->ops->event_ioctl(platform, ring->fds[kind], PERF_EVENT_IOC_ENABLE,
						   NULL);
		if (r < 0)
			complain(source, ring, NM_STEP_JOIN, (enum nm_event_kind)kind, r);
	}
}

static int watch_ring(struct nm_source *source, struct nm_ring *ring)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = ring->layout.cpu};

	if (epoll_ctl(source->epoll, EPOLL_CTL_ADD, ring->fds[NM_EVENT_SIDEBAND], &event) < 0)
		return -errno;
	return 0;
}

static void ring_open(struct nm_source *source, unsigned cpu)
{
	struct nm_ring *ring = &source->rings[cpu];

	ring_reset(ring);
	ring->layout.cpu = cpu;
	ring->complete = true;
	if (open_leader(source, ring) < 0)
		return;
	int r = join(source, ring, NM_EVENT_SIDEBAND, ring->fds[NM_EVENT_SIDEBAND]);
	if (r == 0)
		r = watch_ring(source, ring);
	if (r < 0) {
		complain(source, ring, NM_STEP_JOIN, NM_EVENT_SIDEBAND, r);
		ring_close(source, ring);
		return;
	}
	/* The CPUs of a machine can differ: where one has no cycle counter, its clock stands in. */
	if (open_member(source, ring, source->run_kind) < 0 && source->run_kind == NM_EVENT_CYCLES)
		(void)open_member(source, ring, NM_EVENT_CLOCK);
	(void)open_member(source, ring, NM_EVENT_FAULT_MIN);
	(void)open_member(source, ring, NM_EVENT_FAULT_MAJ);
	enable_all(source, ring);
}

/* ---- cycles or clock ---- */

/* Returns 0 where a cycle counter opened on the CPU and ran, -EBUSY where it opened and did not. */
static int try_cycles(struct nm_source *source, unsigned cpu)
{
	struct nm_platform *platform = source->platform;
	struct {
		uint64_t value, enabled_ns, running_ns;
	} count = {0};

	int fd = platform->ops->event_open(platform, NM_EVENT_CYCLES, (int)cpu,
					   nm_source_period(source, NM_EVENT_CYCLES));
	if (fd < 0)
		return fd;
	int r = platform->ops->event_ioctl(platform, fd, PERF_EVENT_IOC_ENABLE, NULL);
	if (r == 0) {
		nanosleep(&(struct timespec){.tv_nsec = TRIAL_NS}, NULL);
		r = platform->ops->event_read(platform, fd, &count, sizeof(count));
	}
	platform->ops->close(platform, fd);
	if (r < 0)
		return r;
	return count.running_ns > 0 ? 0 : -EBUSY;
}

/* The highest frequency in cycles per ns; 0 where the kernel does not tell (most virtual machines).
 */
static double cpu_cycles_per_ns(struct nm_platform *platform, unsigned cpu)
{
	char path[96], text[32];

	snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq", cpu);
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) < 0)
		return 0.0;
	return (double)strtoull(text, NULL, 10) / 1e6; /* kHz */
}

static void choose_run_kind(struct nm_source *source, const struct nm_topology *topology)
{
	int cpu = hwloc_bitmap_first(topology->usable);

	source->run_kind = NM_EVENT_CLOCK;
	if (cpu < 0 || source->choice != NM_SOURCE_AUTO)
		return;
	source->cycles_per_ns = cpu_cycles_per_ns(source->platform, (unsigned)cpu);
	int r = source->cycles_per_ns > 0.0 ? try_cycles(source, (unsigned)cpu) : -ENOENT;
	if (r == -EBUSY)
		nm_problems_add(&source->problems, NM_STEP_TRIAL, NM_EVENT_CYCLES, cpu, r);
	if (r == 0)
		source->run_kind = NM_EVENT_CYCLES;
	else
		source->cycles_per_ns = 0.0;
}

/* ---- the source ---- */

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* too few show as EMFILE, which is told */
}

static int grow_rings(struct nm_source *source, unsigned nr_cpus)
{
	if (nr_cpus <= source->nr_rings)
		return 0;
	struct nm_ring *rings = reallocarray(source->rings, nr_cpus, sizeof(*rings));
	if (!rings)
		return -ENOMEM;
	for (unsigned cpu = source->nr_rings; cpu < nr_cpus; cpu++)
		ring_reset(&rings[cpu]);
	source->rings = rings;
	source->nr_rings = nr_cpus;
	return 0;
}

static struct nm_source *source_new(struct nm_platform *platform, const struct nm_config *config)
{
	struct nm_source *source = calloc(1, sizeof(*source));

	if (!source)
		return NULL;
	source->platform = platform;
	source->choice = config->sampling.source;
	source->cap_share = config->sampling.overhead_percent / 100.0;
	source->run_kind = NM_EVENT_CLOCK;
	source->run_ns_configured = (uint64_t)(1e9 / config->sampling.clock_hz);
	source->run_ns = source->run_ns_configured;
	source->faults_configured = config->sampling.fault_period;
	source->faults = source->faults_configured;
	source->ring_bytes = (size_t)config->sampling.ring_kb * 1024;
	if (source->ring_bytes < page_bytes())
		source->ring_bytes = page_bytes();
	source->epoll = -1;
	return source;
}

static int prepare(struct nm_source *source, const struct nm_topology *topology)
{
	source->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (source->epoll < 0)
		return -errno;
	raise_file_limit();
	return grow_rings(source, topology->nr_cpus);
}

/* The reason why nothing at all is open: its errno, and in words. */
static int explain_nothing(const struct nm_source *source, char *error, size_t error_size)
{
	if (!source->problems.count) {
		snprintf(error, error_size, "No CPU may be sampled: all are isolated or offline.");
		return -ENODEV;
	}
	snprintf(error, error_size, "%s", source->problems.items[0].text);
	return source->problems.items[0].error;
}

static unsigned open_count(const struct nm_source *source)
{
	unsigned count = 0;

	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
		count += source->rings[cpu].map != NULL;
	return count;
}

static void open_missing(struct nm_source *source, const struct nm_topology *topology)
{
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
		if (hwloc_bitmap_isset(topology->usable, cpu) && !source->rings[cpu].map)
			ring_open(source, cpu);
}

int nm_source_open(struct nm_platform *platform, const struct nm_topology *topology,
		   const struct nm_config *config, char *error, size_t error_size,
		   struct nm_source **ret)
{
	nm_auto(nm_source_freep) struct nm_source *source = source_new(platform, config);

	int r = source ? prepare(source, topology) : -ENOMEM;
	if (r < 0) {
		snprintf(error, error_size, "Sampling could not begin: %s.", strerrordesc_np(-r));
		return r;
	}
	if (source->choice != NM_SOURCE_NONE) {
		choose_run_kind(source, topology);
		open_missing(source, topology);
		if (open_count(source) == 0)
			return explain_nothing(source, error, error_size);
	}
	*ret = NM_TAKE(source);
	return 0;
}

void nm_source_free(struct nm_source *source)
{
	if (!source)
		return;
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
		ring_close(source, &source->rings[cpu]);
	free(source->rings);
	if (source->epoll >= 0)
		close(source->epoll);
	free(source);
}

int nm_source_fd(const struct nm_source *source)
{
	return source->epoll;
}

/* The kernel publishes records by moving data_head and may reuse what data_tail has passed. */
static void drain_ring(struct nm_source *source, struct nm_ring *ring,
		       const struct nm_sample_sink *sink)
{
	struct perf_event_mmap_page *control = ring->map;
	const uint8_t *data = (const uint8_t *)ring->map + control->data_offset;
	uint64_t tail = control->data_tail; /* only we write it */
	uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);

	tail = nm_ring_decode(&ring->layout, data, ring->data_bytes, tail, head, sink,
			      &source->counts);
	__atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
}

size_t nm_source_drain(struct nm_source *source, const struct nm_sample_sink *sink)
{
	uint64_t before = source->counts.samples + source->counts.task_events;

	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
		if (source->rings[cpu].map)
			drain_ring(source, &source->rings[cpu], sink);
	return (size_t)(source->counts.samples + source->counts.task_events - before);
}

int nm_source_retarget(struct nm_source *source, const struct nm_topology *topology)
{
	if (source->choice == NM_SOURCE_NONE)
		return 0;
	int r = grow_rings(source, topology->nr_cpus);
	if (r < 0)
		return r;
	source->problems.count = 0; /* what is incomplete is tried again below, and told again */
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++) {
		struct nm_ring *ring = &source->rings[cpu];
		if (ring->map && (!ring->complete || !hwloc_bitmap_isset(topology->usable, cpu)))
			ring_close(source, ring);
	}
	open_missing(source, topology);
	return 0;
}

const struct nm_source_status *nm_source_status(struct nm_source *source)
{
	struct nm_source_status *status = &source->status;

	*status = (struct nm_source_status){
		.has_cycles = source->run_kind == NM_EVENT_CYCLES,
		.cpus_open = open_count(source),
		.clock_period = nm_source_period(source, source->run_kind),
		.fault_period = nm_source_period(source, NM_EVENT_FAULT_MIN),
		.counts = source->counts,
		.problems = source->problems.items,
		.problem_count = source->problems.count,
	};
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++) {
		const int *fds = source->rings[cpu].fds;
		status->runs |= fds[NM_EVENT_CLOCK] >= 0 || fds[NM_EVENT_CYCLES] >= 0;
		status->accesses |= fds[NM_EVENT_FAULT_MIN] >= 0;
	}
	if (status->runs)
		status->run_sample_ns = (double)status->clock_period /
					(status->has_cycles ? source->cycles_per_ns : 1.0);
	return status;
}

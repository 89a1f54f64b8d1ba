/* SPDX-License-Identifier: MIT */
/* The perf ring of one CPU with its events: opens and closes them (perf_event_open(2)). */
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "source.h"

#define WAKE_FRACTION 4 /* the reader is woken when 1/4 of a ring is full */
#define WEIGHT_ONE 256.0

void nm_event_close(struct nm_platform *platform, struct nm_event_fds fds)
{
	if (fds.event >= 0)
		platform->ops->close(platform, fds.event);
	if (fds.leader >= 0)
		platform->ops->close(platform, fds.leader);
}

void nm_ring_close(struct nm_source *source, struct nm_ring *ring)
{
	struct nm_platform *platform = source->platform;

	if (ring->map) {
		/* The mapping keeps the file open, and an open file stays in the epoll set. */
		(void)epoll_ctl(source->epoll, EPOLL_CTL_DEL, ring->events[0].fds.event, NULL);
		platform->ops->event_unmap(platform, ring->map, ring->data_bytes);
	}
	for (unsigned i = ring->layout.count; i-- > 0;)
		nm_event_close(platform, ring->events[i].fds);
	if (ring->spe)
		(void)epoll_ctl(source->epoll, EPOLL_CTL_DEL, ring->spe->fds.event, NULL);
	nm_spe_ring_close(platform, ring->spe);
	*ring = (struct nm_ring){0};
}

int nm_ring_find(const struct nm_ring *ring, enum nm_event_kind kind)
{
	for (unsigned i = 0; i < ring->layout.count; i++)
		if (ring->layout.events[i].kind == kind)
			return (int)i;
	return -1;
}

static void report_problem(struct nm_source *source, struct nm_ring *ring,
			   enum nm_problem_step step, enum nm_event_kind kind, int error)
{
	ring->complete = false;
	/* A kind with several events counts its CPU once. */
	if (kind >= NM_EVENT_MEMORY && (ring->reported_kinds & 1U << kind))
		return;
	ring->reported_kinds |= 1U << kind;
	nm_problems_add(&source->problems, step, kind, (int)ring->layout.cpu, error);
}

/*
 * Tries to open the leader with a ring of this size, on which the event's wakeup watermark depends.
 */
static int try_leader(struct nm_source *source, struct nm_ring *ring, size_t bytes,
		      enum nm_problem_step *step, int *ret_fd)
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
	ring->data_bytes = bytes;
	*ret_fd = fd;
	return 0;
}

/*
 * Opens the side-band event and its ring; if mapping is refused, halves the size and tries again.
 */
static int open_leader(struct nm_source *source, struct nm_ring *ring, int *ret_fd)
{
	enum nm_problem_step step;
	size_t bytes = source->ring_bytes, page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	int refused = 0;
	int r = try_leader(source, ring, bytes, &step, ret_fd);

	while ((r == -EPERM || r == -ENOMEM) && step == NM_STEP_MAP && bytes > page_bytes) {
		refused = r;
		bytes /= 2;
		r = try_leader(source, ring, bytes, &step, ret_fd);
	}
	if (r < 0)
		report_problem(source, ring, step, NM_EVENT_SIDEBAND, r);
	else if (refused < 0)
		report_problem(source, ring, NM_STEP_SMALL, NM_EVENT_SIDEBAND, refused);
	return r;
}

/* Adds the event to the ring, which closes it from now on. */
static struct nm_ring_event *add_event(struct nm_ring *ring, enum nm_event_kind kind, uint64_t id,
				       struct nm_event_fds fds)
{
	unsigned i = ring->layout.count++;

	ring->layout.events[i].id = id;
	ring->layout.events[i].kind = kind;
	ring->layout.events[i].remote = false;
	ring->layout.events[i].weight = 0;
	ring->events[i] = (struct nm_ring_event){.fds = fds, .share = 1.0};
	return &ring->events[i];
}

/* Redirects an open event to the ring, and reads the id of its records; closes it on failure. */
static int attach_event(struct nm_source *source, struct nm_ring *ring, enum nm_event_kind kind,
			struct nm_event_fds fds, struct nm_ring_event **ret)
{
	struct nm_platform *platform = source->platform;
	/* ioctl(2) takes this one as a number. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	void *leader = (void *)(intptr_t)ring->events[0].fds.event;
	uint64_t id = 0;
	int r = 0;

	if (kind != NM_EVENT_SIDEBAND)
		r = platform->ops->event_ioctl(platform, fds.event, PERF_EVENT_IOC_SET_OUTPUT,
					       leader);
	if (r == 0)
		r = platform->ops->event_ioctl(platform, fds.event, PERF_EVENT_IOC_ID, &id);
	if (r < 0) {
		report_problem(source, ring, NM_STEP_JOIN, kind, r);
		if (kind != NM_EVENT_SIDEBAND)
			nm_event_close(platform, fds);
		return r;
	}
	*ret = add_event(ring, kind, id, fds);
	return 0;
}

static int open_member(struct nm_source *source, struct nm_ring *ring, enum nm_event_kind kind)
{
	struct nm_platform *platform = source->platform;
	struct nm_ring_event *event;
	int fd = platform->ops->event_open(platform, kind, (int)ring->layout.cpu,
					   nm_source_period(source, kind));

	if (fd < 0) {
		report_problem(source, ring, NM_STEP_OPEN, kind, fd);
		return fd;
	}
	return attach_event(source, ring, kind, (struct nm_event_fds){fd, -1}, &event);
}

void nm_ring_amount(const struct nm_source *source, struct nm_ring *ring, unsigned i)
{
	double weight = WEIGHT_ONE / ring->events[i].share;

	ring->layout.events[i].weight = weight < UINT16_MAX ? (uint16_t)weight : UINT16_MAX;
	if (ring->layout.events[i].kind < NM_EVENT_MEMORY)
		return;
	const struct nm_event_word *word = &source->hardware.words[ring->events[i].word];
	double amount = (double)nm_source_word_period(source, word) * word->unit;
	ring->layout.events[i].amount = (uint64_t)(amount / ring->events[i].share);
}

static struct nm_event_request request_for(const struct nm_source *source,
					   const struct nm_event_word *word, int cpu)
{
	return (struct nm_event_request){.kind = word->kind,
					 .index = word->index,
					 .cpu = cpu,
					 .period = nm_source_word_period(source, word),
					 .selection = source->selection};
}

int nm_source_open_word(struct nm_source *source, const struct nm_event_word *word, int cpu,
			struct nm_event_fds *ret)
{
	const struct nm_event_request request = request_for(source, word, cpu);

	*ret = (struct nm_event_fds){-1, -1};
	return source->platform->ops->hardware_open(source->platform, &request, ret);
}

int nm_source_open_spe(struct nm_source *source, const struct nm_event_list *list, int cpu,
		       enum nm_problem_step *ret_step, struct nm_spe_ring **ret)
{
	int r = -ENOENT;

	for (unsigned w = 0; w < list->count && r == -ENOENT; w++) {
		const struct nm_event_word *word = &list->words[w];
		if (!word->aux)
			continue;
		const struct nm_event_request request = request_for(source, word, cpu);
		r = nm_spe_ring_open(source->platform, &request, source->ring_bytes, ret_step, ret);
		if (r == 0)
			(*ret)->word = w;
	}
	return r;
}

static void open_word(struct nm_source *source, struct nm_ring *ring, unsigned w)
{
	const struct nm_event_word *word = &source->hardware.words[w];
	struct nm_event_fds fds;
	struct nm_ring_event *event;
	int r = nm_source_open_word(source, word, (int)ring->layout.cpu, &fds);

	if (r < 0) {
		report_problem(source, ring, NM_STEP_OPEN, word->kind, r);
		return;
	}
	if (attach_event(source, ring, word->kind, fds, &event) < 0)
		return;
	event->word = w;
	event->starved = source->busy_words >> w & 1;
	event->idle_checks = event->starved ? NM_STARVED_CHECKS : 0;
	unsigned i = ring->layout.count - 1;
	ring->layout.events[i].remote = word->remote;
	nm_ring_amount(source, ring, i);
}

static int watch(const struct nm_source *source, int fd, uint32_t cpu)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = cpu};

	return epoll_ctl(source->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void add_spe(struct nm_source *source, struct nm_ring *ring)
{
	struct nm_platform *platform = source->platform;
	enum nm_problem_step step = NM_STEP_OPEN;
	struct nm_spe_ring *spe = NULL;
	int r = nm_source_open_spe(source, &source->hardware, (int)ring->layout.cpu, &step, &spe);

	if (r == 0) {
		step = NM_STEP_JOIN;
		r = watch(source, spe->fds.event, ring->layout.cpu);
	}
	if (r == 0)
		r = platform->ops->event_ioctl(platform, spe->fds.event, PERF_EVENT_IOC_ENABLE,
					       NULL);
	ring->spe = spe; /* closed with the ring, even after a partial failure */
	if (r < 0)
		report_problem(source, ring, step, NM_EVENT_MEMORY, r);
}

/* Opens the ring's leader and watches it. Returns 0, or a negative errno after having reported a
 * problem. */
static int open_ring_leader(struct nm_source *source, struct nm_ring *ring)
{
	struct nm_ring_event *event;
	int fd, r = open_leader(source, ring, &fd);

	if (r < 0)
		return r;
	/* From here on closed with the ring, even without an id. */
	ring->events[0].fds = (struct nm_event_fds){fd, -1};
	r = attach_event(source, ring, NM_EVENT_SIDEBAND, ring->events[0].fds, &event);
	if (r < 0) {
		(void)add_event(ring, NM_EVENT_SIDEBAND, 0, (struct nm_event_fds){fd, -1});
		return r;
	}
	r = watch(source, fd, ring->layout.cpu);
	if (r < 0)
		report_problem(source, ring, NM_STEP_JOIN, NM_EVENT_SIDEBAND, r);
	return r;
}

void nm_ring_open(struct nm_source *source, unsigned cpu)
{
	struct nm_platform *platform = source->platform;
	struct nm_ring *ring = &source->rings[cpu];

	*ring = (struct nm_ring){.layout.cpu = cpu, .complete = true};
	if (open_ring_leader(source, ring) < 0) {
		nm_ring_close(source, ring);
		return;
	}
	/* The CPUs of a machine can differ: on one without a cycle counter the clock is used. */
	if (open_member(source, ring, source->run_kind) < 0 && source->run_kind == NM_EVENT_CYCLES)
		(void)open_member(source, ring, NM_EVENT_CLOCK);
	for (unsigned w = 0; w < source->hardware.count; w++)
		if (!source->hardware.words[w].aux)
			open_word(source, ring, w);
	if (source->selection.source == NM_MEMORY_SPE)
		add_spe(source, ring);
	/* Page faults are used only if the hardware samples no accesses, because the two cannot be
	 * added up. */
	if (source->selection.source == NM_MEMORY_NONE) {
		(void)open_member(source, ring, NM_EVENT_FAULT_MIN);
		(void)open_member(source, ring, NM_EVENT_FAULT_MAJ);
	}
	nm_ring_update_substitutes(source, ring);
	/* The leader first, so that forks are known before samples of the new tasks. */
	for (unsigned i = 0; i < ring->layout.count; i++) {
		int r = platform->ops->event_ioctl(platform, ring->events[i].fds.event,
						   PERF_EVENT_IOC_ENABLE, NULL);
		if (r < 0)
			report_problem(source, ring, NM_STEP_JOIN, ring->layout.events[i].kind, r);
	}
}

void nm_ring_substitute(struct nm_source *source, struct nm_ring *ring, enum nm_event_kind kind,
			bool wanted)
{
	int there = nm_ring_find(ring, kind);

	if (!wanted) {
		ring->refused &= ~(1U << kind);
		if (there < 0 || !ring->events[there].is_substitute)
			return;
		unsigned behind = --ring->layout.count - (unsigned)there;
		nm_event_close(source->platform, ring->events[there].fds);
		memmove(&ring->events[there], &ring->events[there + 1],
			behind * sizeof(ring->events[0]));
		memmove(&ring->layout.events[there], &ring->layout.events[there + 1],
			behind * sizeof(ring->layout.events[0]));
		ring->clock_stopped &= nm_ring_find(ring, NM_EVENT_CLOCK) >= 0;
		return;
	}
	if (there >= 0 || (ring->refused & 1U << kind))
		return;
	if (open_member(source, ring, kind) < 0) {
		ring->refused |= 1U << kind;
		return;
	}
	struct nm_ring_event *event = &ring->events[ring->layout.count - 1];
	event->is_substitute = true;
	(void)source->platform->ops->event_ioctl(source->platform, event->fds.event,
						 PERF_EVENT_IOC_ENABLE, NULL);
}

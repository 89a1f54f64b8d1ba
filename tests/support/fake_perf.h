/* SPDX-License-Identifier: MIT */
/* A machine whose perf events are eventfds (so that epoll accepts them) and that refuses calls as a
 * test requests. */
#ifndef NUMA_MIGRD_TESTS_FAKE_PERF_H
#define NUMA_MIGRD_TESTS_FAKE_PERF_H

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_ask.h"
#include "numa-migrd/platform.h"
#include "records.h"

#define FAKE_FDS 1024
#define FAKE_CPUS 64
#define FAKE_PAGE 4096U

struct fake_event {
	bool open, enabled;
	enum nm_event_kind kind;
	int cpu;
	unsigned index;
	uint64_t period;
	uint64_t enabled_ns, running_ns; /* beyond the first 100 ms */
	int output; /* fd whose ring it writes to, or its own if it is mapped; -1: none */
	uint8_t *map;
	size_t map_bytes;
	uint8_t *aux;
	size_t aux_bytes;
	unsigned flushes; /* number of times it was disabled and enabled again */
};

struct fake_perf {
	struct nm_platform platform;
	struct fake_event events[FAKE_FDS];
	unsigned open_count, map_count;

	/* the call that fails, and its error; the n-th call of all kinds counts from 0 */
	unsigned calls, fail_call; /* fail_call 0: none */
	int fail_call_error;
	int open_error[NM_EVENT_KIND_MAX];
	int cpu_error[FAKE_CPUS];
	unsigned opens_allowed; /* limit, then -EMFILE; 0: no limit */
	size_t map_most;	/* data bytes; 0: no limit */
	int map_error;
	const char *max_khz;	 /* cpuinfo_max_freq; NULL: no such file */
	unsigned long long midr; /* of each CPU; 0: not an Arm */
	uint64_t cycles_running_ns;

	/* hardware sources of the machine, and those that fail to open or to run */
	struct nm_event_list hardware[NM_MEMORY_SOURCE_MAX];
	int list_error[NM_MEMORY_SOURCE_MAX];
	bool never_runs[NM_EVENT_KIND_MAX];
	unsigned busy_index; /* index of a memory event that never runs; 0: none */
	bool with_leader;
	uint64_t index_cpus[NM_EVENT_LIST_MAX]; /* CPUs that have a memory event; 0: every CPU */
	size_t aux_most;			/* limit in bytes, then map_error; 0: no limit */
	unsigned questions; /* pages_where: bits 32 and above of an address are its node */
	int where_error;
};

static inline struct fake_perf *fake_perf(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct fake_perf, platform);
}

static inline int fake_fails(struct fake_perf *fake)
{
	fake->calls++;
	return fake->fail_call && fake->calls == fake->fail_call ? fake->fail_call_error : 0;
}

static inline int fake_open(struct nm_platform *platform, enum nm_event_kind kind, int cpu,
			    uint64_t period)
{
	struct fake_perf *fake = fake_perf(platform);
	struct perf_event_attr attr;

	int r = fake_fails(fake);
	if (r == 0)
		r = fake->open_error[kind];
	if (r == 0)
		r = fake->cpu_error[cpu];
	if (r == 0 && fake->opens_allowed && fake->open_count >= fake->opens_allowed)
		r = -EMFILE;
	if (r == 0)
		r = nm_event_attr(kind, period, &attr); /* the range of periods */
	if (r < 0)
		return r;
	int fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0 || fd >= FAKE_FDS)
		abort();
	fake->events[fd] = (struct fake_event){
		.open = true, .kind = kind, .cpu = cpu, .period = period, .output = -1};
	fake->open_count++;
	return fd;
}

static inline struct fake_event *fake_event(struct fake_perf *fake, int fd)
{
	if (fd < 0 || fd >= FAKE_FDS || !fake->events[fd].open)
		abort();
	return &fake->events[fd];
}

static inline int fake_map(struct nm_platform *platform, int fd, size_t data_bytes, void **ret)
{
	struct fake_perf *fake = fake_perf(platform);
	struct fake_event *event = fake_event(fake, fd);

	int r = fake_fails(fake);
	if (r == 0 && data_bytes > fake->map_most && fake->map_error)
		r = fake->map_error;
	if (r < 0)
		return r;
	event->map_bytes = FAKE_PAGE + data_bytes;
	event->map = mmap(NULL, event->map_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (event->map == MAP_FAILED)
		abort();
	event->output = fd;
	fake->map_count++;
	struct perf_event_mmap_page *page = (void *)event->map;
	page->data_offset = FAKE_PAGE;
	page->data_size = data_bytes;
	*ret = event->map;
	return 0;
}

static inline void fake_unmap(struct nm_platform *platform, void *ring, size_t data_bytes)
{
	struct fake_perf *fake = fake_perf(platform);

	for (int fd = 0; fd < FAKE_FDS; fd++) {
		struct fake_event *event = &fake->events[fd];
		if (event->map != ring)
			continue;
		if (event->map_bytes != FAKE_PAGE + data_bytes)
			abort();
		munmap(event->map, event->map_bytes);
		event->map = NULL;
		fake->map_count--;
		return;
	}
	abort();
}

static inline int fake_aux_map(struct nm_platform *platform, int fd, void *ring, size_t data_bytes,
			       size_t aux_bytes, void **ret)
{
	struct fake_perf *fake = fake_perf(platform);
	struct fake_event *event = fake_event(fake, fd);

	int r = fake_fails(fake);
	if (r == 0 && fake->aux_most && aux_bytes > fake->aux_most)
		r = fake->map_error;
	if (r < 0)
		return r;
	if (event->map != ring || event->map_bytes != FAKE_PAGE + data_bytes || event->enabled)
		abort(); /* the kernel requires the ring first, and a disabled event */
	event->aux = calloc(1, aux_bytes);
	event->aux_bytes = aux_bytes;
	fake->map_count++;
	*ret = event->aux;
	return 0;
}

static inline void fake_aux_unmap(struct nm_platform *platform, void *area, size_t aux_bytes)
{
	struct fake_perf *fake = fake_perf(platform);

	for (int fd = 0; fd < FAKE_FDS; fd++) {
		struct fake_event *event = &fake->events[fd];
		if (event->aux != area)
			continue;
		if (event->aux_bytes != aux_bytes || !event->map)
			abort();
		free(event->aux);
		event->aux = NULL;
		fake->map_count--;
		return;
	}
	abort();
}

static inline int fake_set_output(struct fake_perf *fake, struct fake_event *event, int target)
{
	if (fake_event(fake, target)->cpu != event->cpu || !fake_event(fake, target)->map)
		return -EINVAL;
	event->output = target;
	return 0;
}

static inline int fake_ioctl(struct nm_platform *platform, int fd, unsigned long request,
			     void *argument)
{
	struct fake_perf *fake = fake_perf(platform);
	struct fake_event *event = fake_event(fake, fd);

	int r = fake_fails(fake);
	if (r < 0)
		return r;
	switch (request) {
	case PERF_EVENT_IOC_ENABLE:
	case PERF_EVENT_IOC_DISABLE:
		event->flushes += event->enabled && request == PERF_EVENT_IOC_DISABLE;
		event->enabled = request == PERF_EVENT_IOC_ENABLE;
		return 0;
	case PERF_EVENT_IOC_PERIOD:
		event->period = *(const uint64_t *)argument;
		return 0;
	case PERF_EVENT_IOC_ID:
		*(uint64_t *)argument = 1000 + (uint64_t)fd;
		return 0;
	case PERF_EVENT_IOC_SET_OUTPUT:
		return fake_set_output(fake, event, (int)(intptr_t)argument);
	default:
		abort();
	}
}

static inline int fake_read(struct nm_platform *platform, int fd, void *buffer, size_t size)
{
	struct fake_perf *fake = fake_perf(platform);
	const struct fake_event *event = fake_event(fake, fd);
	uint64_t trial_ns = 100 * NM_NSEC_PER_MSEC;
	bool busy =
		fake->never_runs[event->kind] || (event->kind == NM_EVENT_MEMORY && event->index &&
						  event->index == fake->busy_index);
	uint64_t running_ns = busy ? 0 : trial_ns;
	uint64_t values[3] = {1, trial_ns + event->enabled_ns, running_ns + event->running_ns};

	if (event->kind == NM_EVENT_CYCLES)
		values[2] = fake->cycles_running_ns;
	if (size != sizeof(values))
		return -EINVAL;
	memcpy(buffer, values, sizeof(values));
	return (int)sizeof(values);
}

static inline void fake_close(struct nm_platform *platform, int fd)
{
	struct fake_perf *fake = fake_perf(platform);

	if (fake_event(fake, fd)->map || fake_event(fake, fd)->aux)
		abort(); /* a mapping outlives its use */
	fake->events[fd].open = false;
	fake->open_count--;
	close(fd);
}

static inline ssize_t fake_read_file(struct nm_platform *platform, int directory, const char *path,
				     char *buffer, size_t size)
{
	const struct fake_perf *fake = fake_perf(platform);

	(void)directory;
	if (fake->midr && strstr(path, "midr_el1"))
		return snprintf(buffer, size, "0x%016llx\n", fake->midr);
	if (!strstr(path, "cpuinfo_max_freq") || !fake->max_khz)
		return -ENOENT;
	return snprintf(buffer, size, "%s\n", fake->max_khz);
}

static inline int fake_hardware_list(struct nm_platform *platform,
				     const struct nm_event_selection *selection,
				     struct nm_event_list *ret)
{
	const struct fake_perf *fake = fake_perf(platform);

	if (fake->list_error[selection->source] < 0)
		return fake->list_error[selection->source];
	*ret = fake->hardware[selection->source];
	return 0;
}

/* Returns a descriptor of the fake for an event of any kind. */
static inline int fake_descriptor(struct fake_perf *fake, const struct nm_event_request *request)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0 || fd >= FAKE_FDS)
		abort();
	fake->events[fd] = (struct fake_event){.open = true,
					       .kind = request->kind,
					       .cpu = request->cpu,
					       .index = request->index,
					       .period = request->period,
					       .output = -1};
	fake->open_count++;
	return fd;
}

static inline int fake_hardware_open(struct nm_platform *platform,
				     const struct nm_event_request *request,
				     struct nm_event_fds *ret)
{
	struct fake_perf *fake = fake_perf(platform);
	int r = fake_fails(fake);

	if (r == 0)
		r = fake->open_error[request->kind];
	if (r == 0)
		r = fake->cpu_error[request->cpu];
	uint64_t cpus = request->kind == NM_EVENT_MEMORY ? fake->index_cpus[request->index] : 0;
	if (r == 0 && cpus && !(cpus >> request->cpu & 1))
		r = -ENOENT;
	if (r < 0)
		return r;
	ret->event = fake_descriptor(fake, request);
	if (fake->with_leader && request->kind == NM_EVENT_MEMORY) {
		struct nm_event_request leader = *request;
		leader.kind = NM_EVENT_KIND_MAX;
		ret->leader = fake_descriptor(fake, &leader);
	}
	return 0;
}

static inline int fake_pages_where(struct nm_platform *platform, unsigned count,
				   const uint64_t *addresses, int *ret)
{
	struct fake_perf *fake = fake_perf(platform);

	fake->questions++;
	for (unsigned i = 0; i < count; i++)
		ret[i] = addresses[i] >> 40 ? -ENOENT : (int)(addresses[i] >> 32);
	return fake->where_error;
}

static inline int fake_perf_ask(struct nm_platform *platform, const struct nm_memory_query *query,
				uint64_t *ret_query_id)
{
	fake_asked.where = fake_pages_where;
	return fake_ask(platform, query, ret_query_id);
}

static const struct nm_platform_ops fake_perf_ops = {
	.read_file = fake_read_file,
	.close = fake_close,
	.event_open = fake_open,
	.hardware_list = fake_hardware_list,
	.hardware_open = fake_hardware_open,
	.memory_query = fake_perf_ask,
	.memory_poll = fake_take,
	.memory_cancel = fake_forget,
	.event_map = fake_map,
	.event_unmap = fake_unmap,
	.aux_map = fake_aux_map,
	.aux_unmap = fake_aux_unmap,
	.event_ioctl = fake_ioctl,
	.event_read = fake_read,
};

/* Returns the open event of that kind on a CPU, or NULL. */
static inline struct fake_event *fake_find(struct fake_perf *fake, enum nm_event_kind kind, int cpu)
{
	for (int fd = 0; fd < FAKE_FDS; fd++) {
		struct fake_event *event = &fake->events[fd];
		if (event->open && event->kind == kind && event->cpu == cpu)
			return event;
	}
	return NULL;
}

/* As fake_find(), but the event must exist. */
static inline struct fake_event *fake_get(struct fake_perf *fake, enum nm_event_kind kind, int cpu)
{
	struct fake_event *event = fake_find(fake, kind, cpu);

	if (!event)
		abort();
	return event;
}

/* Returns the id in the records of the event. */
static inline uint64_t fake_id(struct fake_perf *fake, enum nm_event_kind kind, int cpu)
{
	return 1000 + (uint64_t)(fake_get(fake, kind, cpu) - fake->events);
}

/* Returns the ring of a CPU to write records to; fake_publish() shows them to the reader. */
static inline struct record_ring fake_ring(struct fake_perf *fake, int cpu)
{
	struct fake_event *leader = fake_get(fake, NM_EVENT_SIDEBAND, cpu);
	struct perf_event_mmap_page *page = (void *)leader->map;

	return (struct record_ring){.bytes = leader->map + FAKE_PAGE,
				    .size = leader->map_bytes - FAKE_PAGE,
				    .head = page->data_head};
}

static inline struct perf_event_mmap_page *fake_page(struct fake_perf *fake, int cpu)
{
	return (void *)fake_get(fake, NM_EVENT_SIDEBAND, cpu)->map;
}

static inline void fake_publish(struct fake_perf *fake, int cpu, const struct record_ring *ring)
{
	__atomic_store_n(&fake_page(fake, cpu)->data_head, ring->head, __ATOMIC_RELEASE);
}

#endif

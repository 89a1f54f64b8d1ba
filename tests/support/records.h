/* SPDX-License-Identifier: MIT */
/* Writes perf records as the kernel would into a ring of any size, wrapping at its end. */
#ifndef NUMA_MIGRD_TESTS_RECORDS_H
#define NUMA_MIGRD_TESTS_RECORDS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct record_ring {
	uint8_t *bytes;
	size_t size;   /* power of two */
	uint64_t head; /* increases without limit */
};

static inline void record_put(struct record_ring *ring, const void *data, size_t size)
{
	size_t offset = ring->head & (ring->size - 1);
	size_t first = size < ring->size - offset ? size : ring->size - offset;

	memcpy(ring->bytes + offset, data, first);
	memcpy(ring->bytes, (const uint8_t *)data + first, size - first);
	ring->head += size;
}

static inline void record_put_u64(struct record_ring *ring, uint64_t value)
{
	record_put(ring, &value, sizeof(value));
}

static inline void record_put_u32(struct record_ring *ring, uint32_t first, uint32_t second)
{
	record_put(ring, &first, sizeof(first));
	record_put(ring, &second, sizeof(second));
}

static inline void record_header(struct record_ring *ring, uint32_t type, uint16_t misc,
				 size_t size)
{
	const struct perf_event_header header = {
		.type = type, .misc = misc, .size = (uint16_t)size};

	record_put(ring, &header, sizeof(header));
}

/* sample_id_all: TID, TIME, IDENTIFIER. */
static inline void record_trailer(struct record_ring *ring, uint32_t pid, uint32_t tid,
				  uint64_t time, uint64_t id)
{
	record_put_u32(ring, pid, tid);
	record_put_u64(ring, time);
	record_put_u64(ring, id);
}

static inline void record_run(struct record_ring *ring, uint64_t id, uint32_t pid, uint32_t tid,
			      uint64_t time)
{
	record_header(ring, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 32);
	record_put_u64(ring, id);
	record_put_u32(ring, pid, tid);
	record_put_u64(ring, time);
}

static inline void record_fault(struct record_ring *ring, uint64_t id, uint32_t pid, uint32_t tid,
				uint64_t time, uint64_t address, uint64_t physical)
{
	record_header(ring, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 56);
	record_put_u64(ring, id);
	record_put_u32(ring, pid, tid);
	record_put_u64(ring, time);
	record_put_u64(ring, address);
	record_put_u64(ring, physical);
	record_put_u64(ring, 4096);
}

/* One memory access as IDENTIFIER|TID|TIME|ADDR|WEIGHT|DATA_SRC|PHYS_ADDR. */
struct record_access {
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time, address, weight, data_src, physical;
};

static inline void record_memory(struct record_ring *ring, const struct record_access *access)
{
	record_header(ring, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 64);
	record_put_u64(ring, access->id);
	record_put_u32(ring, access->pid, access->tid);
	record_put_u64(ring, access->time);
	record_put_u64(ring, access->address);
	record_put_u64(ring, access->weight);
	record_put_u64(ring, access->data_src);
	record_put_u64(ring, access->physical);
}

static inline void record_fork_exit(struct record_ring *ring, bool fork, const uint32_t ids[4],
				    uint64_t time)
{
	record_header(ring, fork ? PERF_RECORD_FORK : PERF_RECORD_EXIT, 0, 56);
	record_put_u32(ring, ids[0], ids[1]); /* pid, ppid */
	record_put_u32(ring, ids[2], ids[3]); /* tid, ptid */
	record_put_u64(ring, time);
	record_trailer(ring, ids[1], ids[3], time, 0);
}

/* comm is padded to a multiple of 8 bytes, at most 16. */
static inline void record_comm(struct record_ring *ring, bool exec, uint32_t pid, uint32_t tid,
			       const char *comm, uint64_t time)
{
	char padded[16] = {0};
	size_t length = strlen(comm);

	memcpy(padded, comm, length);
	length = (length + 1 + 7) / 8 * 8;
	record_header(ring, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0,
		      16 + length + 24);
	record_put_u32(ring, pid, tid);
	record_put(ring, padded, length);
	record_trailer(ring, pid, tid, time, 0);
}

static inline void record_lost(struct record_ring *ring, uint64_t id, uint64_t lost)
{
	record_header(ring, PERF_RECORD_LOST, 0, 48);
	record_put_u64(ring, id);
	record_put_u64(ring, lost);
	record_trailer(ring, 0, 0, 0, id);
}

static inline void record_lost_samples(struct record_ring *ring, uint64_t id, uint64_t lost)
{
	record_header(ring, PERF_RECORD_LOST_SAMPLES, 0, 40);
	record_put_u64(ring, lost);
	record_trailer(ring, 0, 0, 0, id);
}

static inline void record_throttle(struct record_ring *ring, bool begins, uint64_t id)
{
	record_header(ring, begins ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE, 0, 56);
	record_put_u64(ring, 1);
	record_put_u64(ring, id);
	record_put_u64(ring, id);
	record_trailer(ring, 0, 0, 1, id);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Decodes the bytes of a ring into samples and side-band events. Layouts: perf_event_open(2), "MMAP
 * layout". */
#include <linux/perf_event.h>
#include <string.h>

#include "data_src.h"

/* sample_id_all, for TID|TIME|IDENTIFIER: pid and tid, time, id. */
#define TRAILER_BYTES 24U
#define TRAILER_TIME_FROM_END 16U
#define RECORD_MAX 65536U /* perf_event_header.size is a u16 */

enum { BODY = sizeof(struct perf_event_header) };

struct decoder {
	const struct nm_ring_layout *layout;
	const struct nm_sample_sink *sink;
	struct nm_ring_counts *counts;
};

static inline uint64_t load_u64(const uint8_t *from)
{
	uint64_t value;
	memcpy(&value, from, sizeof(value));
	return value;
}

static inline uint32_t load_u32(const uint8_t *from)
{
	uint32_t value;
	memcpy(&value, from, sizeof(value));
	return value;
}

/*
 * Offsets in the body of a sample: the order is the kernel's, independent of the order of the bits.
 */
enum {
	AT_ID = BODY,
	AT_PID = BODY + 8,
	AT_TID = BODY + 12,
	AT_TIME = BODY + 16,
	RUN_BYTES = BODY + 24,
	AT_ADDRESS = BODY + 24, /* ADDR, PHYS_ADDR, DATA_PAGE_SIZE */
	AT_FAULT_PHYSICAL = BODY + 32,
	AT_FAULT_PAGE = BODY + 40,
	FAULT_BYTES = BODY + 48,
	AT_WEIGHT = BODY + 32, /* ADDR, WEIGHT, DATA_SRC, PHYS_ADDR */
	AT_DATA_SRC = BODY + 40,
	AT_PHYSICAL = BODY + 48,
	MEMORY_BYTES = BODY + 56,
};

static inline unsigned event_of(const struct nm_ring_layout *layout, uint64_t id)
{
	unsigned i = 0;

	while (i < layout->count && layout->events[i].id != id)
		i++;
	return i;
}

static inline bool emit_sample(const struct decoder *decoder, struct nm_sample *sample)
{
	decoder->counts->samples++;
	decoder->sink->on_sample(decoder->sink->context, sample);
	return true;
}

static inline bool decode_fault(const struct decoder *decoder, const uint8_t *record, size_t size,
				struct nm_sample *sample)
{
	if (size < FAULT_BYTES)
		return false;
	sample->address = load_u64(record + AT_ADDRESS);
	sample->physical_address = load_u64(record + AT_FAULT_PHYSICAL);
	sample->page_bytes = load_u64(record + AT_FAULT_PAGE);
	return emit_sample(decoder, sample);
}

/* The lower half of WEIGHT is the latency, and so is the first field of WEIGHT_STRUCT. A load
 * sampled by a store event counts as a load, and vice versa. */
static inline bool decode_memory(const struct decoder *decoder, const uint8_t *record, size_t size,
				 struct nm_sample *sample)
{
	if (size < MEMORY_BYTES)
		return false;
	uint64_t source = load_u64(record + AT_DATA_SRC);
	if (!nm_data_src_is_memory(source)) {
		decoder->counts->no_access++;
		return true;
	}
	sample->address = load_u64(record + AT_ADDRESS);
	if (sample->address >> 63) {
		decoder->counts->kernel++;
		return true;
	}
	sample->kind = nm_data_src_is_store(source) ? NM_EVENT_STORE : NM_EVENT_MEMORY;
	sample->latency_cycles = load_u32(record + AT_WEIGHT);
	sample->level = (uint8_t)nm_data_src_level(source);
	sample->remote = nm_data_src_remote(source);
	sample->physical_address = load_u64(record + AT_PHYSICAL);
	return emit_sample(decoder, sample);
}

static inline bool decode_sample(const struct decoder *decoder, const uint8_t *record, size_t size)
{
	if (size < RUN_BYTES)
		return false;
	unsigned event = event_of(decoder->layout, load_u64(record + AT_ID));
	if (event == decoder->layout->count) {
		decoder->counts->unknown++;
		return true;
	}
	struct nm_sample sample = {
		.kind = decoder->layout->events[event].kind,
		.pid = load_u32(record + AT_PID),
		.tid = load_u32(record + AT_TID),
		.cpu = decoder->layout->cpu,
		.time_ns = load_u64(record + AT_TIME),
		.weight = decoder->layout->events[event].weight,
	};
	switch (sample.kind) {
	case NM_EVENT_FAULT_MIN:
	case NM_EVENT_FAULT_MAJ:
		return decode_fault(decoder, record, size, &sample);
	case NM_EVENT_MEMORY:
	case NM_EVENT_STORE:
		return decode_memory(decoder, record, size, &sample);
	case NM_EVENT_SIDEBAND:
		decoder->counts->unknown++;
		return true;
	default:
		sample.amount = decoder->layout->events[event].amount;
		sample.remote = decoder->layout->events[event].remote;
		return emit_sample(decoder, &sample);
	}
}

static void emit_task(const struct decoder *decoder, const struct nm_task_event *event)
{
	decoder->counts->task_events++;
	decoder->sink->on_task(decoder->sink->context, event);
}

/* FORK and EXIT share one layout: pid, ppid, tid, ptid, time. */
static bool decode_fork_exit(const struct decoder *decoder, const uint8_t *record, size_t size,
			     bool fork)
{
	if (size < BODY + 24)
		return false;
	struct nm_task_event event = {
		.kind = fork ? NM_TASK_FORK : NM_TASK_EXIT,
		.pid = load_u32(record + BODY),
		.tid = load_u32(record + BODY + 8),
		.parent_pid = fork ? load_u32(record + BODY + 4) : 0,
		.parent_tid = fork ? load_u32(record + BODY + 12) : 0,
		.time_ns = load_u64(record + BODY + 16),
	};
	emit_task(decoder, &event);
	return true;
}

/* COMM has no time of its own; the trailer has. */
static bool decode_comm(const struct decoder *decoder, const uint8_t *record, size_t size,
			uint16_t misc)
{
	if (size < BODY + 8 + TRAILER_BYTES)
		return false;
	struct nm_task_event event = {
		.kind = misc & PERF_RECORD_MISC_COMM_EXEC ? NM_TASK_EXEC : NM_TASK_COMM,
		.pid = load_u32(record + BODY),
		.tid = load_u32(record + BODY + 4),
		.time_ns = load_u64(record + size - TRAILER_TIME_FROM_END),
	};
	emit_task(decoder, &event);
	return true;
}

static bool decode_lost(const struct decoder *decoder, const uint8_t *record, size_t size,
			size_t offset)
{
	if (size < offset + 8)
		return false;
	decoder->counts->lost += load_u64(record + offset);
	return true;
}

/* Decodes rare records, which are not samples. Returns false if the record is too short for its
 * type. */
static __attribute__((noinline)) bool decode_other(const struct decoder *decoder,
						   const struct perf_event_header *header,
						   const uint8_t *record)
{
	switch (header->type) {
	case PERF_RECORD_FORK:
		return decode_fork_exit(decoder, record, header->size, true);
	case PERF_RECORD_EXIT:
		return decode_fork_exit(decoder, record, header->size, false);
	case PERF_RECORD_COMM:
		return decode_comm(decoder, record, header->size, header->misc);
	case PERF_RECORD_LOST: /* id, lost */
		return decode_lost(decoder, record, header->size, BODY + 8);
	case PERF_RECORD_LOST_SAMPLES:
		return decode_lost(decoder, record, header->size, BODY);
	case PERF_RECORD_THROTTLE:
		decoder->counts->throttled++;
		return true;
	case PERF_RECORD_UNTHROTTLE:
		return true;
	default:
		decoder->counts->unknown++;
		return true;
	}
}

static inline bool decode_record(const struct decoder *decoder,
				 const struct perf_event_header *header, const uint8_t *record)
{
	if (header->type == PERF_RECORD_SAMPLE)
		return decode_sample(decoder, record, header->size);
	return decode_other(decoder, header, record);
}

/* Copies a record that wraps around the end of the ring to a buffer. A separate function, so that
 * other records do not pay for it. */
static __attribute__((noinline)) bool decode_wrapped(const struct decoder *decoder,
						     const struct perf_event_header *header,
						     const uint8_t *ring, size_t size,
						     size_t offset)
{
	uint8_t scratch[RECORD_MAX];
	size_t before_end = size - offset;

	memcpy(scratch, ring + offset, before_end);
	memcpy(scratch + before_end, ring, header->size - before_end);
	return decode_record(decoder, header, scratch);
}

/* Decodes the record at tail. Returns its size, or 0 if it is invalid. The kernel writes multiples
 * of 8 bytes, so that a header never wraps. */
static inline size_t decode_one(const struct decoder *decoder, const uint8_t *ring, size_t size,
				uint64_t tail, uint64_t available)
{
	size_t offset = (size_t)(tail & (size - 1));
	struct perf_event_header header;

	memcpy(&header, ring + offset, sizeof(header));
	if (header.size < BODY || header.size % 8 != 0 || header.size > available)
		return 0;
	bool whole = offset + header.size <= size
			     ? decode_record(decoder, &header, ring + offset)
			     : decode_wrapped(decoder, &header, ring, size, offset);
	return whole ? header.size : 0;
}

uint64_t nm_ring_decode(const struct nm_ring_layout *layout, const uint8_t *ring, size_t size,
			uint64_t tail, uint64_t head, const struct nm_sample_sink *sink,
			struct nm_ring_counts *counts)
{
	const struct decoder decoder = {.layout = layout, .sink = sink, .counts = counts};
	bool possible = head - tail <= size && tail % 8 == 0;

	while (possible && tail != head) {
		size_t used = decode_one(&decoder, ring, size, tail, head - tail);
		possible = used != 0;
		tail += used;
	}
	if (!possible)
		counts->corrupt++;
	return head;
}

/* SPDX-License-Identifier: MIT */
/*
 * The part of the file format of perf(1) that the recordings need: attributes, and the records of
 * the data section (tools/perf/Documentation/perf.data-file-format.txt).
 */
#ifndef NUMA_MIGRD_TESTS_PERF_DATA_H
#define NUMA_MIGRD_TESTS_PERF_DATA_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct perf_data {
	const uint8_t *bytes;
	size_t size;
	struct perf_event_attr attr; /* of the first event */
	size_t at, end;		     /* the data section */
};

/* The fields of a sample; 0 if the recording lacks them. */
struct perf_data_sample {
	uint64_t id, ip, time, address, weight, data_src, physical;
	uint32_t pid, tid, cpu;
};

static inline uint64_t perf_data_u64(const struct perf_data *file, size_t at)
{
	uint64_t value = 0;

	if (at + sizeof(value) <= file->size)
		memcpy(&value, file->bytes + at, sizeof(value));
	return value;
}

/* Header: magic, size, size of an attribute with its ids, and sections of offset and length. */
static inline bool perf_data_open(struct perf_data *file, const uint8_t *bytes, size_t size)
{
	*file = (struct perf_data){.bytes = bytes, .size = size};
	if (size < 104 || memcmp(bytes, "PERFILE2", 8) != 0)
		return false;
	uint64_t attr_size = perf_data_u64(file, 16) - 16, attrs = perf_data_u64(file, 24);
	if (attr_size < PERF_ATTR_SIZE_VER0 || attrs + attr_size > size)
		return false;
	memcpy(&file->attr, bytes + attrs,
	       attr_size < sizeof(file->attr) ? attr_size : sizeof(file->attr));
	file->at = perf_data_u64(file, 40);
	file->end = file->at + perf_data_u64(file, 48);
	return file->end <= size;
}

/* Returns the next record, or NULL at the end or at an invalid one. */
static inline const struct perf_event_header *perf_data_next(struct perf_data *file)
{
	const struct perf_event_header *header = (const void *)(file->bytes + file->at);

	if (file->at + sizeof(*header) > file->end || header->size < sizeof(*header) ||
	    header->size > file->end - file->at)
		return NULL;
	file->at += header->size;
	return header;
}

/* The fields in the order of the kernel. A field that recordings never have ends the walk. */
static inline bool perf_data_sample(const struct perf_data *file,
				    const struct perf_event_header *header,
				    struct perf_data_sample *ret)
{
	const uint64_t type = file->attr.sample_type;
	const uint8_t *at = (const uint8_t *)(header + 1);
	const uint8_t *end = (const uint8_t *)header + header->size;
	struct perf_data_sample sample = {0};
	uint64_t skipped, pair_tid = 0, pair_cpu = 0;
	const struct {
		uint64_t bit;
		uint64_t *to;
	} fields[] = {
		{PERF_SAMPLE_IDENTIFIER, &sample.id},
		{PERF_SAMPLE_IP, &sample.ip},
		{PERF_SAMPLE_TID, &pair_tid},
		{PERF_SAMPLE_TIME, &sample.time},
		{PERF_SAMPLE_ADDR, &sample.address},
		{PERF_SAMPLE_ID, &sample.id},
		{PERF_SAMPLE_STREAM_ID, &skipped},
		{PERF_SAMPLE_CPU, &pair_cpu},
		{PERF_SAMPLE_PERIOD, &skipped},
		{PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, &sample.weight},
		{PERF_SAMPLE_DATA_SRC, &sample.data_src},
		{PERF_SAMPLE_PHYS_ADDR, &sample.physical},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!(type & fields[i].bit))
			continue;
		if (end - at < 8)
			return false;
		memcpy(fields[i].to, at, 8);
		at += 8;
	}
	sample.pid = (uint32_t)pair_tid;
	sample.tid = (uint32_t)(pair_tid >> 32);
	sample.cpu = (uint32_t)pair_cpu;
	*ret = sample;
	return true;
}

#endif

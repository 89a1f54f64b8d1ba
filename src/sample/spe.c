/* SPDX-License-Identifier: MIT */
#include "spe.h"

#include <string.h>

/* The first byte of a packet, or the second if the first is an extension. */
enum {
	HEADER_PAD = 0x00,
	HEADER_END = 0x01,
	HEADER_TIMESTAMP = 0x71,
	HEADER_EXTENDED = 0x20, /* bits 7–5 */
	HEADER_EVENTS = 0x42,	/* bits 7–6 and 3–0 */
	HEADER_SOURCE = 0x43,
	HEADER_OPERATION = 0x48, /* bits 7–2 without the size */
	HEADER_CONTEXT = 0x44,
	HEADER_COUNTER = 0x88, /* bits 7–3 without the size */
	HEADER_ADDRESS = 0x80,
	SIZE_BITS = 0x30,
};

enum { ADDRESS_DATA = 2, ADDRESS_PHYSICAL = 3, COUNTER_TOTAL = 0 };
enum { CLASS_MEMORY = 1, CLASS_BRANCH = 2 };

#define ADDRESS_MASK ((1ULL << 56) - 1)
#define KERNEL_BIT (1ULL << 55)
#define EVENT_L1_ACCESS (1U << 2)
#define EVENT_L1_REFILL (1U << 3)
#define EVENT_LLC_ACCESS (1U << 8)
#define EVENT_LLC_MISS (1U << 9)
#define EVENT_REMOTE (1U << 10)

struct packet {
	unsigned header; /* without the size, the index and the extension */
	unsigned index;
	uint64_t payload;
	size_t length; /* 0: incomplete; SIZE_MAX: invalid */
};

#define NO_PACKET SIZE_MAX

static bool has_kind(struct packet *packet, unsigned header, unsigned mask, unsigned kind)
{
	if ((header & mask & ~(unsigned)SIZE_BITS) != (kind & ~(unsigned)SIZE_BITS))
		return false;
	packet->header = kind;
	return true;
}

/* Identifies the packet that a header begins; its index is in the upper bits of an extended one. */
static bool classify(struct packet *packet, unsigned header)
{
	if (header == HEADER_TIMESTAMP) {
		packet->header = HEADER_TIMESTAMP;
		return true;
	}
	if (has_kind(packet, header, 0xcf, HEADER_EVENTS) ||
	    has_kind(packet, header, 0xcf, HEADER_SOURCE))
		return true;
	if (has_kind(packet, header, 0xfc, HEADER_OPERATION) ||
	    has_kind(packet, header, 0xfc, HEADER_CONTEXT)) {
		packet->index |= header & 3;
		return true;
	}
	packet->index |= header & 7;
	return has_kind(packet, header, 0xf8, HEADER_COUNTER) ||
	       has_kind(packet, header, 0xf8, HEADER_ADDRESS);
}

static struct packet read_packet(const uint8_t *data, size_t size, uint64_t position)
{
	struct packet packet = {.length = NO_PACKET};
	unsigned header = data[0];
	size_t headers = 1;

	if (header == HEADER_PAD || header == HEADER_END)
		return (struct packet){.header = header, .length = 1};
	if ((header & 0xe0) == HEADER_EXTENDED) {
		if (size < 2)
			return (struct packet){.length = 0};
		if (data[1] == HEADER_PAD) { /* pads to a multiple of its power of two */
			uint64_t multiple = 2ULL << (header & 0xf);
			packet.header = HEADER_PAD;
			packet.length = (size_t)(multiple - (position & (multiple - 1)));
			return packet;
		}
		packet.index = (header & 3) << 3;
		header = data[1];
		headers = 2;
	}
	if (!classify(&packet, header))
		return packet;
	size_t bytes = (size_t)1 << ((header & SIZE_BITS) >> 4);
	packet.length = headers + bytes <= size ? headers + bytes : 0;
	if (packet.length)
		memcpy(&packet.payload, data + headers,
		       bytes); /* little-endian, as on every Arm Linux */
	return packet;
}

static enum nm_spe_operation operation_of(const struct packet *packet)
{
	if (packet->index == CLASS_MEMORY)
		return packet->payload & 1 ? NM_SPE_STORE : NM_SPE_LOAD;
	return packet->index == CLASS_BRANCH ? NM_SPE_BRANCH : NM_SPE_OTHER;
}

/* Returns true if the packet ends its record. */
static bool add_packet(struct nm_spe_record *record, const struct packet *packet)
{
	switch (packet->header) {
	case HEADER_TIMESTAMP:
		record->ticks = packet->payload;
		return true;
	case HEADER_END:
		return true;
	case HEADER_EVENTS:
		record->events = packet->payload;
		return false;
	case HEADER_SOURCE:
		record->source = (uint16_t)packet->payload;
		record->has_source = true;
		return false;
	case HEADER_OPERATION:
		record->operation = (uint8_t)operation_of(packet);
		return false;
	case HEADER_CONTEXT:
		record->context = (uint32_t)packet->payload;
		record->has_context = true;
		return false;
	case HEADER_COUNTER:
		if (packet->index == COUNTER_TOTAL)
			record->latency_cycles = (uint16_t)packet->payload;
		return false;
	case HEADER_ADDRESS:
		if (packet->index == ADDRESS_DATA)
			record->address = packet->payload & ADDRESS_MASK;
		else if (packet->index == ADDRESS_PHYSICAL)
			record->physical_address = packet->payload & ADDRESS_MASK;
		return false;
	default:
		return false;
	}
}

size_t nm_spe_decode(const uint8_t *data, size_t size, uint64_t offset, nm_spe_fn each,
		     void *context, struct nm_spe_counts *counts)
{
	struct nm_spe_record record = {0};
	size_t at = 0, used = 0;
	bool begun = false;

	while (at < size) {
		struct packet packet = read_packet(data + at, size - at, offset + at);
		if (packet.length == NO_PACKET) {
			counts->corrupt++;
			return size;
		}
		if (packet.length == 0 || packet.length > size - at)
			return used;
		at += packet.length;
		begun |= packet.header != HEADER_PAD;
		if (add_packet(&record, &packet)) {
			counts->records++;
			each(context, &record);
			record = (struct nm_spe_record){0};
			begun = false;
		}
		if (!begun)
			used = at;
	}
	return used;
}

/* ---- conversion of records to samples ---- */

static enum nm_level level_by_source(unsigned source)
{
	static const uint8_t levels[16] = {
		[0x0] = NM_LEVEL_L1,	  [0x8] = NM_LEVEL_L2,	[0x9] = NM_LEVEL_CACHE,
		[0xa] = NM_LEVEL_CACHE,	  [0xb] = NM_LEVEL_L3,	[0xc] = NM_LEVEL_CACHE,
		[0xd] = NM_LEVEL_UNKNOWN, [0xe] = NM_LEVEL_DRAM};

	return source < NM_ARRAY_SIZE(levels) ? (enum nm_level)levels[source] : NM_LEVEL_UNKNOWN;
}

static enum nm_level level_by_events(uint64_t events)
{
	if (events & EVENT_LLC_MISS)
		return NM_LEVEL_DRAM;
	if (events & EVENT_LLC_ACCESS)
		return NM_LEVEL_L3;
	if ((events & EVENT_L1_ACCESS) && !(events & EVENT_L1_REFILL))
		return NM_LEVEL_L1;
	return NM_LEVEL_UNKNOWN;
}

bool nm_spe_sample(const struct nm_spe_record *record, struct nm_sample *ret)
{
	enum { SOURCE_REMOTE = 0xd };
	bool store = record->operation == NM_SPE_STORE;

	if ((!store && record->operation != NM_SPE_LOAD) || (record->address & KERNEL_BIT))
		return false;
	ret->kind = store ? NM_EVENT_STORE : NM_EVENT_MEMORY;
	ret->address = record->address;
	ret->physical_address = record->physical_address;
	ret->latency_cycles = record->latency_cycles;
	ret->level = (uint8_t)(record->has_source ? level_by_source(record->source)
						  : level_by_events(record->events));
	ret->remote = record->has_source ? record->source == SOURCE_REMOTE
					 : (record->events & EVENT_REMOTE) != 0;
	return true;
}

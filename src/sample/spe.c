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

/* Fields of MIDR_EL1. */
#define IMPLEMENTER(midr) ((unsigned)((midr) >> 24) & 0xff)
#define PART(midr) ((unsigned)((midr) >> 4) & 0xfff)
enum { MAKER_ARM = 0x41, MAKER_HISILICON = 0x48, MAKER_MICROSOFT = 0x6d, MAKER_AMPERE = 0xc0 };
enum { PART_HIP12 = 0xd06, PART_COBALT_100 = 0xd49, PART_AMPERE1A = 0xac4 };

enum nm_spe_sources nm_spe_sources_of(uint64_t midr)
{
	unsigned maker = IMPLEMENTER(midr), part = PART(midr);

	if (maker == MAKER_ARM || (maker == MAKER_MICROSOFT && part == PART_COBALT_100))
		return NM_SPE_SOURCES_ARM;
	if (maker == MAKER_AMPERE && part == PART_AMPERE1A)
		return NM_SPE_SOURCES_AMPEREONE;
	if (maker == MAKER_HISILICON && part == PART_HIP12)
		return NM_SPE_SOURCES_HIP12;
	return NM_SPE_SOURCES_UNKNOWN;
}

#define SOURCES 32U
struct source {
	uint8_t level; /* enum nm_level */
	bool remote;
};

/* A source that is not listed is unknown: that of a device, or of a later core. */
static const struct source sources_of[][SOURCES] =
	{
		[NM_SPE_SOURCES_ARM] =
			{
				[0x0] = {NM_LEVEL_L1, false}, /* its own first cache */
				[0x8] = {NM_LEVEL_L2, false},
				[0x9] = {NM_LEVEL_CACHE, false}, /* of another core */
				[0xa] = {NM_LEVEL_CACHE, false}, /* of its cluster */
				[0xb] = {NM_LEVEL_L3, false},	 /* of the system */
				[0xc] = {NM_LEVEL_CACHE, false}, /* of another cluster */
				[0xd] = {NM_LEVEL_UNKNOWN, true},
				[0xe] = {NM_LEVEL_DRAM, false},
			},
		[NM_SPE_SOURCES_AMPEREONE] =
			{
				[0x0] = {NM_LEVEL_CACHE, false}, /* of its chip, or a device */
				[0x3] = {NM_LEVEL_L3, false},	 /* of the system */
				[0x5] = {NM_LEVEL_CACHE, true},	 /* of another chip */
				[0x7] = {NM_LEVEL_DRAM, false},
				[0x8] = {NM_LEVEL_L1, false},
				[0x9] = {NM_LEVEL_L2, false},
			},
		[NM_SPE_SOURCES_HIP12] =
			{
				[0x0] = {NM_LEVEL_CACHE,
					 false}, /* of another core; odd numbers: modified there */
				[0x1] = {NM_LEVEL_CACHE, false},
				[0x2] = {NM_LEVEL_L3, false},
				[0x3] = {NM_LEVEL_L3, false},
				[0x4] = {NM_LEVEL_CACHE, false}, /* of another cluster */
				[0x5] = {NM_LEVEL_CACHE, false},
				[0x6] = {NM_LEVEL_CACHE, true}, /* of another socket */
				[0x7] = {NM_LEVEL_CACHE, true},
				[0x8] = {NM_LEVEL_DRAM, false},
				[0x9] = {NM_LEVEL_DRAM, true},
				[0x10] = {NM_LEVEL_L2, false},
				[0x11] = {NM_LEVEL_L2, false},
				[0x12] = {NM_LEVEL_L1, false},
			},
};

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

/* Returns the level and the remote flag of an access. */
static struct source source_of(const struct nm_spe_record *record, enum nm_spe_sources sources)
{
	bool known = record->has_source && sources != NM_SPE_SOURCES_UNKNOWN;

	if (known && record->source < SOURCES)
		return sources_of[sources][record->source];
	if (known)
		return (struct source){NM_LEVEL_UNKNOWN, false};
	return (struct source){(uint8_t)level_by_events(record->events),
			       (record->events & EVENT_REMOTE) != 0};
}

bool nm_spe_sample(const struct nm_spe_record *record, enum nm_spe_sources sources,
		   struct nm_sample *ret)
{
	bool store = record->operation == NM_SPE_STORE;

	if ((!store && record->operation != NM_SPE_LOAD) || (record->address & KERNEL_BIT))
		return false;
	struct source source = source_of(record, sources);
	ret->kind = store ? NM_EVENT_STORE : NM_EVENT_MEMORY;
	ret->address = record->address;
	ret->physical_address = record->physical_address;
	ret->latency_cycles = record->latency_cycles;
	ret->level = source.level;
	ret->remote = source.remote;
	return true;
}

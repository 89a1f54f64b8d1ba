/* SPDX-License-Identifier: MIT */
#include "spe_read.h"

#include <linux/perf_event.h>
#include <string.h>

#define TURNS_MAX 8192U	 /* shared: newest */
#define RECORD_ROOM 128U /* the records that are used are smaller */
#define LOOK_BACK 64U

/* sample_id_all, from the end: pid and tid, time, id. */
enum { TRAILER_BYTES = 24, PID_FROM_END = 24, TID_FROM_END = 20, TIME_FROM_END = 16 };
enum { BODY = sizeof(struct perf_event_header) };

/* One piece of the AUX area during decoding. */
struct piece {
	const struct nm_spe_reader *reader;
	const struct nm_sample_sink *sink;
	struct nm_ring_counts *counts;
	uint64_t time_ns; /* time at which it was handed over */
	size_t turn;	  /* turn of the last sample */
};

static uint64_t load_u64(const uint8_t *from)
{
	uint64_t value;
	memcpy(&value, from, sizeof(value));
	return value;
}

static uint32_t load_u32(const uint8_t *from)
{
	uint32_t value;
	memcpy(&value, from, sizeof(value));
	return value;
}

uint64_t nm_spe_time_ns(const struct nm_spe_clock *clock, uint64_t ticks)
{
	if (clock->wraps)
		ticks = clock->cycles + ((ticks - clock->cycles) & clock->mask);
	uint64_t whole = ticks >> clock->shift;
	uint64_t rest = ticks & ((1ULL << clock->shift) - 1);
	return clock->zero_ns + whole * clock->mult + (rest * clock->mult >> clock->shift);
}

/* ---- assignment to threads ---- */

/* Records are almost in order of time: it is the turn found last, or one nearby. */
static const struct nm_spe_turn *turn_at(struct piece *piece, uint64_t time_ns)
{
	const struct nm_spe_reader *reader = piece->reader;

	while (piece->turn + 1 < reader->nr_turns &&
	       reader->turns[piece->turn + 1].time_ns <= time_ns)
		piece->turn++;
	while (piece->turn > 0 && reader->turns[piece->turn].time_ns > time_ns)
		piece->turn--;
	return reader->turns[piece->turn].time_ns <= time_ns ? &reader->turns[piece->turn] : NULL;
}

static const struct nm_spe_turn *turn_of(const struct nm_spe_reader *reader, uint32_t tid)
{
	for (size_t i = reader->nr_turns; i-- > 0 && reader->nr_turns - i <= LOOK_BACK;)
		if (reader->turns[i].tid == tid)
			return &reader->turns[i];
	return NULL;
}

static const struct nm_spe_turn *turn_of_record(struct piece *piece,
						const struct nm_spe_record *record)
{
	const struct nm_spe_reader *reader = piece->reader;
	const struct nm_spe_turn *turn = NULL;

	if (!reader->turns || reader->nr_turns == 0)
		return NULL;
	if (reader->clock.known && record->ticks)
		turn = turn_at(piece, nm_spe_time_ns(&reader->clock, record->ticks));
	else if (reader->nr_turns == 1 && reader->carried)
		turn = &reader->turns[0];
	if (!record->has_context || (turn && turn->tid == record->context))
		return turn;
	const struct nm_spe_turn *named = turn_of(reader, record->context);
	return named ? named : turn;
}

static void on_spe_record(void *context, const struct nm_spe_record *record)
{
	struct piece *piece = context;
	const struct nm_spe_clock *clock = &piece->reader->clock;
	struct nm_sample sample = {.cpu = piece->reader->cpu};

	if (!nm_spe_sample(record, piece->reader->sources, &sample)) {
		piece->counts->no_access++;
		return;
	}
	const struct nm_spe_turn *turn = turn_of_record(piece, record);
	if (!turn) {
		piece->counts->unknown++;
		return;
	}
	sample.pid = turn->pid;
	sample.tid = turn->tid;
	sample.time_ns = clock->known && record->ticks ? nm_spe_time_ns(clock, record->ticks)
						       : piece->time_ns;
	piece->counts->samples++;
	piece->sink->on_sample(piece->sink->context, &sample);
}

/* ---- the ring ---- */

static const uint8_t *unwrap(const struct nm_spe_areas *areas, uint64_t offset, size_t size)
{
	size_t start = (size_t)(offset & (areas->aux_bytes - 1));
	size_t before_end = areas->aux_bytes - start;

	if (size <= before_end)
		return areas->aux + start;
	memcpy(areas->scratch, areas->aux + start, before_end);
	memcpy(areas->scratch + before_end, areas->aux, size - before_end);
	return areas->scratch;
}

/* Each piece consists of complete records, unless it reports that data were lost. */
static void take_spe_piece(struct nm_spe_reader *reader, const struct nm_spe_areas *areas,
			   const uint8_t *record, size_t size, struct piece *piece)
{
	struct nm_spe_counts decoded = {0};
	uint64_t offset = load_u64(record + BODY), bytes = load_u64(record + BODY + 8);
	uint64_t flags = load_u64(record + BODY + 16);

	piece->time_ns = load_u64(record + size - TIME_FROM_END);
	if (flags & (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION))
		piece->counts->lost++;
	reader->stopped |= (flags & PERF_AUX_FLAG_TRUNCATED) != 0;
	if (bytes > areas->aux_bytes) {
		piece->counts->corrupt++;
		return;
	}
	(void)nm_spe_decode(unwrap(areas, offset, (size_t)bytes), (size_t)bytes, offset,
			    on_spe_record, piece, &decoded);
	piece->counts->corrupt += decoded.corrupt;
	if (reader->nr_turns > 1)
		reader->turns[0] = reader->turns[reader->nr_turns - 1];
	reader->carried = reader->nr_turns > 0;
	reader->nr_turns = reader->carried;
}

/* After a loss the running thread is not known until the next switch. */
static void take_loss(struct nm_spe_reader *reader, uint64_t lost, struct nm_ring_counts *counts)
{
	counts->lost += lost;
	reader->nr_turns = 0;
	reader->carried = false;
}

/* Without pieces for a long time, older turns are dropped. */
static void take_reader_turn(struct nm_spe_reader *reader, uint32_t pid, uint32_t tid,
			     uint64_t time_ns)
{
	if (reader->nr_turns == TURNS_MAX) {
		reader->nr_turns = TURNS_MAX / 2;
		memmove(reader->turns, reader->turns + TURNS_MAX / 2,
			TURNS_MAX / 2 * sizeof(*reader->turns));
	}
	NM_RESERVE(reader->turns, reader->capacity, reader->nr_turns);
	reader->turns[reader->nr_turns++] =
		(struct nm_spe_turn){.time_ns = time_ns, .pid = pid, .tid = tid};
}

/* Returns the minimum size of a record of this type, before the trailer. */
static size_t least_bytes(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_AUX:
		return BODY + 24;
	case PERF_RECORD_LOST:
		return BODY + 16;
	default:
		return BODY + 8;
	}
}

/* Returns false for a record too short for its type. */
static bool take_record(struct nm_spe_reader *reader, const struct nm_spe_areas *areas,
			const struct perf_event_header *header, const uint8_t *record,
			struct piece *piece)
{
	size_t size = header->size;
	const uint8_t *end = record + size;

	if (size < least_bytes(header->type) + TRAILER_BYTES)
		return header->type != PERF_RECORD_AUX &&
		       header->type != PERF_RECORD_SWITCH_CPU_WIDE;
	switch (header->type) {
	case PERF_RECORD_AUX:
		piece->turn = 0;
		take_spe_piece(reader, areas, record, size, piece);
		return true;
	case PERF_RECORD_ITRACE_START:
		take_reader_turn(reader, load_u32(record + BODY), load_u32(record + BODY + 4),
				 load_u64(end - TIME_FROM_END));
		return true;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (!(header->misc & PERF_RECORD_MISC_SWITCH_OUT))
			take_reader_turn(reader, load_u32(end - PID_FROM_END),
					 load_u32(end - TID_FROM_END),
					 load_u64(end - TIME_FROM_END));
		return true;
	case PERF_RECORD_LOST:
		take_loss(reader, load_u64(record + BODY + 8), piece->counts);
		return true;
	case PERF_RECORD_LOST_SAMPLES:
		take_loss(reader, load_u64(record + BODY), piece->counts);
		return true;
	case PERF_RECORD_THROTTLE:
		piece->counts->throttled++;
		return true;
	default:
		return true;
	}
}

/* Copies the beginning of a record and its trailer, which are adjacent in all records that are
 * used. Returns its size, or 0 if it is invalid. */
static size_t copy_record(const struct nm_spe_areas *areas, uint64_t tail, uint64_t available,
			  uint8_t record[RECORD_ROOM])
{
	struct perf_event_header header;
	size_t offset = (size_t)(tail & (areas->ring_bytes - 1));

	memcpy(&header, areas->ring + offset, sizeof(header));
	if (header.size < BODY || header.size % 8 != 0 || header.size > available)
		return 0;
	size_t wanted = header.size < RECORD_ROOM ? header.size : RECORD_ROOM;
	size_t before_end = areas->ring_bytes - offset;
	size_t first = wanted < before_end ? wanted : before_end;
	memcpy(record, areas->ring + offset, first);
	memcpy(record + first, areas->ring, wanted - first);
	return header.size;
}

uint64_t nm_spe_read(struct nm_spe_reader *reader, const struct nm_spe_areas *areas, uint64_t tail,
		     uint64_t head, const struct nm_sample_sink *sink,
		     struct nm_ring_counts *counts)
{
	struct piece piece = {.reader = reader, .sink = sink, .counts = counts};
	uint8_t record[RECORD_ROOM];
	bool possible = head - tail <= areas->ring_bytes && tail % 8 == 0;

	while (possible && tail != head) {
		size_t size = copy_record(areas, tail, head - tail, record);
		struct perf_event_header header;
		memcpy(&header, record, sizeof(header));
		possible = size != 0;
		if (possible && size <= RECORD_ROOM)
			possible = take_record(reader, areas, &header, record, &piece);
		tail += size;
	}
	if (!possible) {
		counts->corrupt++;
		take_loss(reader, 0, counts);
	}
	return head;
}

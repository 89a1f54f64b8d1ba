/* SPDX-License-Identifier: MIT */
/*
 * Encodes samples as differences from the previous one: threads run for a while and time advances
 * slowly, so that most samples take about a dozen bytes. Pure; reading is the hot path of a replay.
 */
#include <inttypes.h>

#include "fields.h"

/* The first byte: the kind, and flags for the following values. */
#define KIND_BITS 4
#define OTHER_THREAD 0x10U
#define OTHER_CPU 0x20U
#define ADDRESS 0x40U
#define MORE 0x80U
/* The second byte, with MORE. */
#define HOME 0x01U
#define PAGE 0x02U
#define LATENCY 0x04U
#define LEVEL 0x08U
#define REMOTE 0x10U
#define WEIGHT 0x20U
#define AMOUNT 0x40U
#define ALL_MORE 0x7fU

_Static_assert(NM_EVENT_KIND_MAX <= 1 << KIND_BITS, "a kind has its bits");

/* Two bytes of flags, and twelve numbers. */
#define SAMPLE_MOST (2 + 12 * NM_VARINT_MOST)

static unsigned more_of(const struct nm_sample *sample)
{
	return (sample->page_node ? HOME : 0) | (sample->page_bytes ? PAGE : 0) |
	       (sample->latency_cycles ? LATENCY : 0) | (sample->level ? LEVEL : 0) |
	       (sample->remote ? REMOTE : 0) | (sample->weight ? WEIGHT : 0) |
	       (sample->amount ? AMOUNT : 0);
}

static uint8_t *write_more(uint8_t *at, const struct nm_sample *sample, unsigned more)
{
	*at++ = (uint8_t)more;
	if (more & HOME)
		at = nm_varint_write(at, sample->page_node);
	if (more & PAGE)
		at = nm_varint_write(at, sample->page_bytes);
	if (more & LATENCY)
		at = nm_varint_write(at, sample->latency_cycles);
	if (more & LEVEL)
		*at++ = sample->level;
	if (more & WEIGHT)
		at = nm_varint_write(at, sample->weight);
	if (more & AMOUNT)
		at = nm_varint_write(at, sample->amount);
	return at;
}

static uint8_t *write_difference(uint8_t *at, uint64_t now, uint64_t before)
{
	return nm_varint_write(at, nm_zigzag((int64_t)(now - before)));
}

static uint8_t *write_sample(uint8_t *at, const struct nm_sample *sample,
			     const struct nm_sample *before, uint64_t *address)
{
	unsigned more = more_of(sample);
	unsigned flags = (unsigned)sample->kind | (more ? MORE : 0) |
			 (sample->cpu != before->cpu ? OTHER_CPU : 0) |
			 (sample->address ? ADDRESS : 0);
	if (sample->tid != before->tid || sample->pid != before->pid)
		flags |= OTHER_THREAD;
	*at++ = (uint8_t)flags;
	if (flags & OTHER_THREAD) {
		at = write_difference(at, sample->tid, before->tid);
		at = write_difference(at, sample->pid, before->pid);
	}
	if (flags & OTHER_CPU)
		at = nm_varint_write(at, sample->cpu);
	at = write_difference(at, sample->time_ns, before->time_ns);
	if (flags & ADDRESS) {
		at = write_difference(at, sample->address, *address);
		*address = sample->address;
	}
	return more ? write_more(at, sample, more) : at;
}

static void put_event(const struct nm_task_event *event, struct nm_bytes *ret)
{
	nm_put_uint(ret, event->kind);
	nm_put_uint(ret, event->pid);
	nm_put_uint(ret, event->tid);
	nm_put_uint(ret, event->parent_pid);
	nm_put_uint(ret, event->parent_tid);
	nm_put_uint(ret, event->time_ns);
}

void nm_samples_put(const struct nm_recorded_samples *samples, struct nm_bytes *ret)
{
	struct nm_sample first = {0};
	const struct nm_sample *before = &first;
	uint64_t address = 0;
	nm_put_uint(ret, samples->nr_events);
	for (size_t i = 0; i < samples->nr_events; i++)
		put_event(&samples->events[i], ret);
	nm_put_uint(ret, samples->nr_samples);
	for (size_t i = 0; i < samples->nr_samples; i++) {
		uint8_t *at = nm_bytes_room(ret, SAMPLE_MOST);
		if (!at)
			return;
		at = write_sample(at, &samples->samples[i], before, &address);
		ret->used = (size_t)(at - ret->data);
		before = &samples->samples[i];
	}
}

/* ---- reading ---- */

/* Reads at most NM_VARINT_MOST bytes, which must be available. */
static inline uint64_t read_varint(const uint8_t **at)
{
	const uint8_t *byte = *at;
	uint64_t value = *byte & 0x7f;
	for (unsigned shift = 7; *byte >= 0x80 && shift < 70; shift += 7)
		value |= (uint64_t)(*++byte & 0x7f) << (shift & 63);
	*at = byte + 1;
	return value;
}

static inline uint64_t read_difference(const uint8_t **at, uint64_t before)
{
	return before + (uint64_t)nm_unzigzag(read_varint(at));
}

static inline bool read_more(const uint8_t **at, struct nm_sample *sample)
{
	unsigned more = *(*at)++;
	if (more & HOME)
		sample->page_node = (uint32_t)read_varint(at);
	if (more & PAGE)
		sample->page_bytes = read_varint(at);
	if (more & LATENCY)
		sample->latency_cycles = (uint32_t)read_varint(at);
	if (more & LEVEL)
		sample->level = *(*at)++;
	sample->remote = more & REMOTE;
	if (more & WEIGHT)
		sample->weight = (uint16_t)read_varint(at);
	if (more & AMOUNT)
		sample->amount = read_varint(at);
	return (more & ~ALL_MORE) == 0 && sample->level <= NM_LEVEL_DRAM &&
	       sample->page_node <= NM_RECORDING_NODES_MOST;
}

/* SAMPLE_MOST bytes must be readable at `at`. */
static inline bool read_sample(const uint8_t **at, const struct nm_sample *before,
			       uint64_t *address, struct nm_sample *ret)
{
	unsigned flags = *(*at)++;
	*ret = (struct nm_sample){
		.kind = flags & ((1U << KIND_BITS) - 1),
		.pid = before->pid,
		.tid = before->tid,
		.cpu = before->cpu,
	};
	if (flags & OTHER_THREAD) {
		ret->tid = (uint32_t)read_difference(at, before->tid);
		ret->pid = (uint32_t)read_difference(at, before->pid);
	}
	if (flags & OTHER_CPU)
		ret->cpu = (uint32_t)read_varint(at);
	ret->time_ns = read_difference(at, before->time_ns);
	if (flags & ADDRESS)
		ret->address = *address = read_difference(at, *address);
	return (!(flags & MORE) || read_more(at, ret)) && ret->kind < NM_EVENT_KIND_MAX;
}

/* The last samples may end anywhere: they are read from a copy with room after it. */
static bool read_at_end(struct nm_cursor *cursor, const struct nm_sample *before, uint64_t *address,
			struct nm_sample *ret)
{
	uint8_t copy[2 * SAMPLE_MOST] = {0};
	size_t left = nm_cursor_left(cursor);
	memcpy(copy, cursor->at, left < SAMPLE_MOST ? left : SAMPLE_MOST);
	const uint8_t *at = copy;
	if (left == 0 || !read_sample(&at, before, address, ret) || (size_t)(at - copy) > left)
		return false;
	cursor->at += at - copy;
	return true;
}

static bool get_samples(struct nm_cursor *cursor, size_t count, struct nm_sample *samples)
{
	struct nm_sample first = {0};
	const struct nm_sample *before = &first;
	uint64_t address = 0;
	for (size_t i = 0; i < count; i++) {
		bool whole = nm_cursor_left(cursor) >= SAMPLE_MOST;
		if (whole ? !read_sample(&cursor->at, before, &address, &samples[i])
			  : !read_at_end(cursor, before, &address, &samples[i]))
			return false;
		before = &samples[i];
	}
	return true;
}

static struct nm_task_event get_event(struct nm_cursor *cursor)
{
	uint64_t kind = nm_get_uint(cursor);
	cursor->bad |= kind > NM_TASK_EXEC;
	struct nm_task_event event = {.kind = kind > NM_TASK_EXEC ? NM_TASK_EXIT
								  : (enum nm_task_event_kind)kind};
	event.pid = (uint32_t)nm_get_uint(cursor);
	event.tid = (uint32_t)nm_get_uint(cursor);
	event.parent_pid = (uint32_t)nm_get_uint(cursor);
	event.parent_tid = (uint32_t)nm_get_uint(cursor);
	event.time_ns = nm_get_uint(cursor);
	return event;
}

/* The contents need not be copied, because they are overwritten. */
static int reserve_items(void **items, size_t *room, uint64_t count, size_t size)
{
	if (count <= *room)
		return 0;
	void *larger = calloc((size_t)count, size);
	if (!larger)
		return -ENOMEM;
	free(*items);
	*items = larger;
	*room = (size_t)count;
	return 0;
}

int nm_samples_get(struct nm_cursor *cursor, struct nm_sample_room *room,
		   struct nm_recorded_samples *ret)
{
	uint64_t nr_events = nm_get_uint(cursor);
	/* An event takes at least six bytes, a sample two. */
	if (nr_events > nm_cursor_left(cursor) / 6)
		return -EBADMSG;
	int r = reserve_items((void **)&room->events, &room->room_events, nr_events,
			      sizeof(*room->events));
	for (size_t i = 0; r == 0 && i < nr_events; i++)
		room->events[i] = get_event(cursor);
	uint64_t nr_samples = nm_get_uint(cursor);
	if (r == 0 && (cursor->bad || nr_samples > nm_cursor_left(cursor) / 2))
		return -EBADMSG;
	if (r == 0)
		r = reserve_items((void **)&room->samples, &room->room_samples, nr_samples,
				  sizeof(*room->samples));
	if (r < 0)
		return r;
	if (!get_samples(cursor, (size_t)nr_samples, room->samples))
		return -EBADMSG;
	*ret = (struct nm_recorded_samples){
		.samples = room->samples,
		.nr_samples = (size_t)nr_samples,
		.events = room->events,
		.nr_events = (size_t)nr_events,
	};
	return 0;
}

/* ---- dump ---- */

static void print_event(const struct nm_task_event *event, FILE *out)
{
	static const char *const names[] = {
		[NM_TASK_FORK] = "fork",
		[NM_TASK_EXIT] = "exit",
		[NM_TASK_COMM] = "comm",
		[NM_TASK_EXEC] = "exec",
	};
	(void)fprintf(out,
		      "\n  %s pid=%" PRIu32 " tid=%" PRIu32 " parent_pid=%" PRIu32
		      " parent_tid=%" PRIu32 " time_ns=%" PRIu64,
		      names[event->kind], event->pid, event->tid, event->parent_pid,
		      event->parent_tid, event->time_ns);
}

static void print_sample(const struct nm_sample *sample, FILE *out)
{
	(void)fprintf(out,
		      "\n  %s pid=%" PRIu32 " tid=%" PRIu32 " cpu=%" PRIu32 " time_ns=%" PRIu64,
		      nm_event_name(sample->kind), sample->pid, sample->tid, sample->cpu,
		      sample->time_ns);
	if (sample->address)
		(void)fprintf(out, " address=%#" PRIx64, sample->address);
	if (sample->page_node)
		(void)fprintf(out, " home=%" PRIu32, sample->page_node - 1);
	if (sample->page_bytes)
		(void)fprintf(out, " page_bytes=%" PRIu64, sample->page_bytes);
	if (sample->latency_cycles)
		(void)fprintf(out, " latency_cycles=%" PRIu32, sample->latency_cycles);
	if (sample->level)
		(void)fprintf(out, " level=%u", sample->level);
	if (sample->remote)
		(void)fputs(" remote=1", out);
	if (sample->weight)
		(void)fprintf(out, " weight=%u", sample->weight);
	if (sample->amount)
		(void)fprintf(out, " amount=%" PRIu64, sample->amount);
}

void nm_samples_print(const struct nm_recorded_samples *samples, FILE *out)
{
	(void)fprintf(out, "samples=%zu events=%zu", samples->nr_samples, samples->nr_events);
	for (size_t i = 0; i < samples->nr_events; i++)
		print_event(&samples->events[i], out);
	for (size_t i = 0; i < samples->nr_samples; i++)
		print_sample(&samples->samples[i], out);
}

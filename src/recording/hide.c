/* SPDX-License-Identifier: MIT */
#include "hide.h"

#include <stdio.h>

#define PAGE_BITS 12

static inline uint64_t rotate(uint64_t value, unsigned bits)
{
	return value << bits | value >> (64 - bits);
}

static void mix(uint64_t v[4], unsigned rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void take_in(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix(v, 2);
	v[0] ^= word;
}

static uint64_t load_word(const uint8_t *at, size_t size)
{
	uint64_t word = 0;
	for (size_t i = 0; i < size; i++)
		word |= (uint64_t)at[i] << 8 * i;
	return word;
}

uint64_t nm_hide_hash(const uint64_t key[2], const void *data, size_t size)
{
	const uint8_t *at = data;
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
	for (size_t left = size; left >= 8; left -= 8, at += 8)
		take_in(v, load_word(at, 8));
	take_in(v, load_word(at, size % 8) | (uint64_t)size << 56);
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void nm_hide_name(const uint64_t key[2], const char *name, char ret[NM_HIDDEN_NAME_BYTES])
{
	ret[0] = '\0';
	if (name[0] != '\0')
		(void)snprintf(ret, NM_HIDDEN_NAME_BYTES, "~%013llx",
			       (unsigned long long)(nm_hide_hash(key, name, strlen(name)) >> 12));
}

uint64_t nm_hide_address(const uint64_t key[2], uint64_t address)
{
	uint8_t page[8];
	if (address == 0)
		return 0;
	nm_store_u32(page, (uint32_t)(address >> PAGE_BITS));
	nm_store_u32(page + 4, (uint32_t)(address >> PAGE_BITS >> 32));
	/* 47 bits, like addresses of programs; never 0, which means that there is none. */
	return (nm_hide_hash(key, page, sizeof(page)) >> 17 | 1ULL << PAGE_BITS) &
	       ~((1ULL << PAGE_BITS) - 1);
}

bool nm_hide_may_show(const struct nm_recorded *record)
{
	return record->kind != NM_RECORDED_ANSWER &&
	       !(record->kind == NM_RECORDED_CALL && record->step.call == NM_CALL_RELOAD);
}

/* Names of fields whose values are words of this program. */
static bool is_own_word(const char *line, size_t length)
{
	static const char *const names[] = {
		"KIND",		  "POLICY", "RESULT",	 "REASON",	"DECISION_KIND", "VERDICT",
		"PERFORMANCE_OF", "LEASE",  "SELECTION", "SELECTED_BY", "PIN"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == length && memcmp(line, names[i], length) == 0)
			return true;
	return false;
}

static bool may_stay(const char *line, size_t length)
{
	const char *equals = memchr(line, '=', length);
	if (!equals)
		return false;
	size_t name = (size_t)(equals - line);
	/* A program may be called 1234. */
	if (strncmp(line, "COMM", 4) == 0)
		return false;
	for (const char *at = equals + 1; at < line + length; at++)
		if (!strchr("0123456789.+-", *at))
			return is_own_word(line, name);
	return true;
}

static void keep_fields(const char *fields, struct nm_bytes *room)
{
	room->used = 0;
	for (const char *line = fields ? fields : ""; *line;) {
		size_t length = strcspn(line, "\n");
		if (may_stay(line, length)) {
			if (room->used > 0)
				nm_put_bytes(room, "\n", 1);
			nm_put_bytes(room, line, length);
		}
		line += length + (line[length] != '\0');
	}
	nm_put_bytes(room, "", 1);
}

struct nm_recorded nm_hide_texts(const struct nm_recorded *record, struct nm_bytes *room)
{
	struct nm_recorded shown = *record;
	if (shown.kind == NM_RECORDED_START) {
		shown.start.hashed = true;
		shown.start.config = shown.start.config_name = "";
		shown.start.config_length = 0;
	} else if (shown.kind == NM_RECORDED_ENTRY) {
		keep_fields(shown.entry.fields, room);
		shown.entry.text = "";
		shown.entry.fields = room->failed ? "" : (const char *)room->data;
	}
	return shown;
}

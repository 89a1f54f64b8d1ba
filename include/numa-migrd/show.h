/* SPDX-License-Identifier: MIT */
/*
 * An interface for showing data to users as dictionaries of names and values. The daemon writes to
 * it, and the bus (or a test) implements it. Names are lower_case_with_unit and static; text is
 * escaped.
 */
#ifndef NUMA_MIGRD_SHOW_H
#define NUMA_MIGRD_SHOW_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nm_value_type {
	NM_VALUE_TEXT,
	NM_VALUE_FLAG,
	NM_VALUE_U32,
	NM_VALUE_I32,
	NM_VALUE_U64,
	NM_VALUE_REAL,
	NM_VALUE_U64S,
};

struct nm_value {
	const char *name;
	enum nm_value_type type;
	union {
		const char *text;
		bool flag;
		uint32_t u32;
		int32_t i32;
		uint64_t u64;
		double real;
		struct {
			const uint64_t *items;
			size_t count;
		} u64s;
	};
};

/* The implementation keeps errors: a writer need not check for them. */
struct nm_show {
	void *context;
	void (*open)(void *context); /* begins a dictionary */
	void (*put)(void *context, const struct nm_value *value);
	void (*close)(void *context);
	/* Begins a list as a value of the open dictionary: other dictionaries may be opened and
	 * closed within it. */
	void (*begin)(void *context, const char *name);
	void (*end)(void *context);
};

static inline void nm_show_text(const struct nm_show *show, const char *name, const char *text)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_TEXT, .text = text};
	show->put(show->context, &value);
}

static inline void nm_show_flag(const struct nm_show *show, const char *name, bool flag)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_FLAG, .flag = flag};
	show->put(show->context, &value);
}

static inline void nm_show_u32(const struct nm_show *show, const char *name, uint32_t number)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_U32, .u32 = number};
	show->put(show->context, &value);
}

static inline void nm_show_i32(const struct nm_show *show, const char *name, int32_t number)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_I32, .i32 = number};
	show->put(show->context, &value);
}

static inline void nm_show_u64(const struct nm_show *show, const char *name, uint64_t number)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_U64, .u64 = number};
	show->put(show->context, &value);
}

/* NaN means not available, and is omitted. */
static inline void nm_show_real(const struct nm_show *show, const char *name, double real)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_REAL, .real = real};
	if (isfinite(real))
		show->put(show->context, &value);
}

static inline void nm_show_u64s(const struct nm_show *show, const char *name, const uint64_t *items,
				size_t count)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_U64S, .u64s = {items, count}};
	show->put(show->context, &value);
}

#endif

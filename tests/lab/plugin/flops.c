/* SPDX-License-Identifier: MIT */
#include "flops.h"

#include <stdbool.h>

enum {
	DOUBLE = 0x66, /* packed; without a prefix: packed, single */
	SCALAR_DOUBLE = 0xf2,
	SCALAR_SINGLE = 0xf3,
	REX = 0x40, /* to 0x4f */
	ESCAPE = 0x0f,
	VEX2 = 0xc5, /* two bytes of it, or three */
	VEX3 = 0xc4,
	MAP_MASK = 0x1f, /* of the second of three bytes */
	MAP_0F = 1,
	MAP_0F38 = 2,
	VEX_LONG = 0x04, /* of the last byte: 256 bits */
	VEX_WIDE = 0x80, /* elements of eight bytes */
	PREFIX_MASK = 0x03,
	SQUARE_ROOT = 0x51,
	ADD = 0x58,
	MULTIPLY = 0x59,
	SUBTRACT = 0x5c,
	DIVIDE = 0x5e,
};

static bool is_arithmetic(unsigned int operation)
{
	return operation == SQUARE_ROOT || operation == ADD || operation == MULTIPLY ||
	       operation == SUBTRACT || operation == DIVIDE;
}

/* In 128 bits. */
static unsigned int elements(unsigned int prefix)
{
	switch (prefix) {
	case SCALAR_DOUBLE:
	case SCALAR_SINGLE:
		return 1;
	case DOUBLE:
		return 2;
	default:
		return 4;
	}
}

/* 96 to 9f, a6 to af and b6 to bf: in three orders of operands; from 9 of each on, the odd ones are
 * scalar. */
static unsigned int fused_elements(unsigned int operation, unsigned int vex)
{
	unsigned int kind = operation & 0x0f, order = operation >> 4;

	if (order < 9 || order > 11 || kind < 6)
		return 0;
	if (kind > 8 && kind % 2 == 1)
		return 1;
	return vex & VEX_WIDE ? 2 : 4;
}

static unsigned int flops_of_vex(const unsigned char *code, size_t size)
{
	static const unsigned char prefixes[] = {0, DOUBLE, SCALAR_SINGLE, SCALAR_DOUBLE};
	size_t last = code[0] == VEX3 ? 2 : 1;
	unsigned int map = code[0] == VEX3 && size > 2 ? code[1] & MAP_MASK : MAP_0F;
	unsigned int vex, operation, count = 0;

	if (size <= last + 1)
		return 0;
	vex = code[last];
	operation = code[last + 1];
	if (map == MAP_0F38)
		count = fused_elements(operation, vex);
	else if (map == MAP_0F && is_arithmetic(operation))
		count = elements(prefixes[vex & PREFIX_MASK]);
	if (count > 1 && (vex & VEX_LONG))
		count *= 2;
	return map == MAP_0F38 ? 2 * count : count;
}

unsigned int lab_flops(const unsigned char *code, size_t size)
{
	unsigned int prefix = 0;
	size_t at = 0;

	if (size > 0 && (code[0] == VEX2 || code[0] == VEX3))
		return flops_of_vex(code, size);
	for (; at < size &&
	       (code[at] == DOUBLE || code[at] == SCALAR_DOUBLE || code[at] == SCALAR_SINGLE);
	     at++)
		prefix = code[at];
	if (at < size && (code[at] & 0xf0) == REX)
		at++;
	if (at + 1 >= size || code[at] != ESCAPE || !is_arithmetic(code[at + 1]))
		return 0;
	return elements(prefix);
}

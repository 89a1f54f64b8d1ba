/* SPDX-License-Identifier: MIT */
#include "strings.h"

enum {
	REPEATED = 0xf3,
	HALF = 0x66, /* operands of two bytes */
	WIDE = 0x48, /* of eight */
	WIDE_MASK = 0xf8,
	BY_BYTE = 0xfe, /* the last bit selects between bytes and larger units */
	COPY = 0xa4,
	FILL = 0xaa,
};

unsigned int lab_string_bytes(const unsigned char *code, size_t size)
{
	unsigned int bytes = 4, repeated = 0;

	for (size_t i = 0; i < size; i++) {
		unsigned int operation = code[i] & BY_BYTE;

		if (code[i] == REPEATED)
			repeated = 1;
		else if (code[i] == HALF)
			bytes = 2;
		else if ((code[i] & WIDE_MASK) == WIDE)
			bytes = 8;
		else if (operation == COPY || operation == FILL)
			return repeated && i + 1 == size ? (code[i] & 1 ? bytes : 1) : 0;
		else
			return 0;
	}
	return 0;
}

unsigned int lab_string_cycles(unsigned int *left, unsigned int bytes)
{
	unsigned int sum = *left + bytes;

	*left = sum % LAB_STRING_BYTES;
	return sum / LAB_STRING_BYTES;
}

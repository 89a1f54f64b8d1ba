// SPDX-License-Identifier: MIT
/*
 * Sets of CPUs or nodes as text. hwloc's own parsers accept infinite ranges, make room for any
 * number, and abort the program if a group of digits is too long; therefore their input is checked
 * first.
 */
#include <ctype.h>
#include <string.h>

#include "numa-migrd/topology.h"

#define GROUP_DIGITS 8U /* in a map: 32 bits */
#define GROUPS_MAX ((NM_LIST_MAX + 1) / 32)

static bool ends(char c)
{
	return c == '\0' || c == '\n';
}

/* strtoul() alone would accept signs and spaces. */
static const char *read_number(const char *text, unsigned *ret)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	unsigned long number = strtoul(text, &end, 10);
	if (number > NM_LIST_MAX)
		return NULL;
	*ret = (unsigned)number;
	return end;
}

/* Reads one "3" or "0-15"; NULL: invalid. */
static const char *read_range(const char *text, hwloc_bitmap_t set)
{
	unsigned first = 0;

	const char *end = read_number(text, &first);
	unsigned last = first;
	if (end && *end == '-')
		end = read_number(end + 1, &last);
	if (!end || last < first)
		return NULL;
	nm_must_do(hwloc_bitmap_set_range(set, first, (int)last));
	return end;
}

int nm_list_parse(const char *text, hwloc_bitmap_t ret)
{
	nm_autobitmap set = nm_must(hwloc_bitmap_alloc());

	for (const char *at = text;; at++) {
		at = read_range(at, set);
		if (!at)
			return -EINVAL;
		if (ends(*at))
			break;
		if (*at != ',')
			return -EINVAL;
	}
	nm_must_do(hwloc_bitmap_copy(ret, set));
	return 0;
}

static bool is_map(const char *text)
{
	size_t groups = 1, digits = 0;

	for (; !ends(*text); text++) {
		if (*text == ',' && digits > 0) {
			groups++;
			digits = 0;
		} else if (!isxdigit((unsigned char)*text) || ++digits > GROUP_DIGITS) {
			return false;
		}
	}
	return digits > 0 && groups <= GROUPS_MAX;
}

int nm_map_parse(const char *text, hwloc_bitmap_t ret)
{
	char copy[GROUPS_MAX * (GROUP_DIGITS + 1) + 1];

	if (!is_map(text))
		return -EINVAL;
	size_t length = strcspn(text, "\n");
	memcpy(copy, text, length);
	copy[length] = '\0';
	return hwloc_bitmap_sscanf(ret, copy) < 0 ? -EINVAL : 0;
}

/* SPDX-License-Identifier: MIT */
#include "turns.h"

#include <stdlib.h>

static int compare_numbers(uint32_t left, uint32_t right)
{
	return (left > right) - (left < right);
}

static int compare_users(const void *a, const void *b)
{
	const struct nm_turn *left = a;
	const struct nm_turn *right = b;
	int order = compare_numbers(left->uid, right->uid);
	return order ? order : compare_numbers(left->index, right->index);
}

static int compare_rounds(const void *a, const void *b)
{
	const struct nm_turn *left = a;
	const struct nm_turn *right = b;
	int order = compare_numbers(left->round, right->round);
	return order ? order : compare_numbers(left->uid, right->uid);
}

void nm_turns_order(struct nm_turn *turns, size_t count)
{
	qsort(turns, count, sizeof(*turns), compare_users);
	for (size_t i = 0; i < count; i++)
		turns[i].round = i && turns[i].uid == turns[i - 1].uid ? turns[i - 1].round + 1 : 0;
	qsort(turns, count, sizeof(*turns), compare_rounds);
}

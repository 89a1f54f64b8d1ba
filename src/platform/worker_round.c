// SPDX-License-Identifier: MIT
/*
 * The kernel reports the status of a page only if it does not give up: near a page that it could
 * not migrate, others may have moved without a status, and later ones may not have been tried.
 * Therefore pages without a status are queried, and tried once more in the opposite order.
 */
#include <errno.h>

#include "numa-migrd/worker.h"

#define NO_STATUS INT32_MIN /* the kernel reported none */

/* The pages of a call, its arguments and its results. */
struct selection {
	unsigned count;
	unsigned pages[NM_WORKER_PAGES_MOST]; /* index in the round */
	uint64_t addresses[NM_WORKER_PAGES_MOST];
	int nodes[NM_WORKER_PAGES_MOST], statuses[NM_WORKER_PAGES_MOST];
};

/* Returns whether the page may still move: it was in use, or was never reached. */
static bool is_left(int status, int to)
{
	return status != to &&
	       (status >= 0 || status == NO_STATUS || status == -EBUSY || status == -EAGAIN);
}

/* Other errors concern the process or our permissions. */
static bool is_about_pages(int error)
{
	return error == -ENOMEM || error == -EACCES || error == -ENODEV || error == -EBUSY ||
	       error == -EAGAIN || error == -EINTR;
}

/* Selects the pages that may still move. */
static void select_left(const struct nm_page_round *round, const struct nm_worker_moved *moved,
			bool backwards, struct selection *ret)
{
	ret->count = 0;
	for (unsigned i = 0; i < round->count; i++) {
		unsigned page = backwards ? round->count - 1 - i : i;
		if (!is_left(moved->pages[page].node, round->nodes[page]))
			continue;
		ret->pages[ret->count] = page;
		ret->addresses[ret->count] = round->addresses[page];
		ret->nodes[ret->count] = round->nodes[page];
		ret->statuses[ret->count++] = NO_STATUS;
	}
}

static int make_a_try(const struct nm_page_round *round, const struct nm_round_calls *calls,
		      unsigned number, struct selection *left, struct nm_worker_moved *ret)
{
	select_left(round, ret, number > 0, left);
	if (left->count == 0)
		return 0;
	ret->tries[number].pages = left->count;
	int r = calls->move(calls->context, left->count, left->addresses, left->nodes,
			    left->statuses, &ret->tries[number].held_ns);
	if (r < 0 && !is_about_pages(r))
		return r;
	for (unsigned i = 0; i < left->count; i++)
		ret->pages[left->pages[i]].node = left->statuses[i];
	select_left(round, ret, false, left);
	if (left->count == 0 ||
	    calls->where(calls->context, left->count, left->addresses, left->statuses) < 0)
		return 0;
	/* A node that the cpuset excludes ends a try, but not the next one, which begins with the
	 * last page. */
	bool is_final = r < 0 && (r != -EACCES || number > 0);
	for (unsigned i = 0; i < left->count; i++) {
		int on = left->statuses[i];
		if (on < 0 || on == left->nodes[i])
			ret->pages[left->pages[i]].node = on;
		else if (is_final)
			ret->pages[left->pages[i]].node = r;
	}
	return 0;
}

int nm_round_perform(const struct nm_page_round *round, const struct nm_round_calls *calls,
		     struct nm_worker_moved *ret)
{
	struct selection left;

	ret->tries[0] = ret->tries[1] = (struct nm_worker_try){0};
	for (unsigned i = 0; i < round->count; i++)
		ret->pages[i].node = NO_STATUS;
	int r = make_a_try(round, calls, 0, &left, ret);
	if (r < 0)
		return r;
	if (ret->tries[0].held_ns <= round->slow_ns)
		(void)make_a_try(round, calls, 1, &left, ret);
	for (unsigned i = 0; i < round->count; i++) {
		if (is_left(ret->pages[i].node, round->nodes[i]))
			ret->pages[i].node = -EBUSY;
		ret->pages[i].last = ret->pages[i].node;
	}
	if (round->last_offset == 0)
		return 0;
	for (unsigned i = 0; i < round->count; i++)
		left.addresses[i] = round->addresses[i] + round->last_offset;
	if (calls->where(calls->context, round->count, left.addresses, left.statuses) < 0)
		return 0;
	for (unsigned i = 0; i < round->count; i++)
		ret->pages[i].last = left.statuses[i];
	return 0;
}

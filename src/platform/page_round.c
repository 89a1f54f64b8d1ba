// SPDX-License-Identifier: MIT
/*
 * The kernel reports the status of a page only if it does not give up: near a page that it could
 * not migrate, others may have moved without a status, and later ones may not have been tried.
 * Therefore pages without a status are queried, and tried once more in the opposite order.
 */
#include <errno.h>

#include "platform/page_jobs.h"

#define NO_STATUS INT32_MIN /* the kernel reported none */

/* The pages of a call, its arguments and its results. */
struct selection {
	unsigned count;
	unsigned pages[NM_UNITS_MOST]; /* index in the round */
	uint64_t addresses[NM_UNITS_MOST];
	int nodes[NM_UNITS_MOST], statuses[NM_UNITS_MOST];
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
static void select_left(const struct nm_page_round *round, const int *statuses, bool backwards,
			struct selection *ret)
{
	ret->count = 0;
	for (unsigned i = 0; i < round->count; i++) {
		unsigned page = backwards ? round->count - 1 - i : i;
		if (!is_left(statuses[page], round->nodes[page]))
			continue;
		ret->pages[ret->count] = page;
		ret->addresses[ret->count] = round->addresses[page];
		ret->nodes[ret->count] = round->nodes[page];
		ret->statuses[ret->count++] = NO_STATUS;
	}
}

static int make_a_try(const struct nm_page_round *round, const struct nm_page_calls *calls,
		      bool again, struct selection *left, struct nm_page_try *ret, int *statuses)
{
	select_left(round, statuses, again, left);
	if (left->count == 0)
		return 0;
	ret->pages = left->count;
	int r = calls->move(calls->context, left->count, left->addresses, left->nodes,
			    left->statuses, &ret->held_ns);
	if (r < 0 && !is_about_pages(r))
		return r;
	for (unsigned i = 0; i < left->count; i++)
		statuses[left->pages[i]] = left->statuses[i];
	select_left(round, statuses, false, left);
	if (left->count == 0 ||
	    calls->where(calls->context, left->count, left->addresses, left->statuses) < 0)
		return 0;
	/* A node that the cpuset excludes ends a try, but not the next one, which begins with the
	 * last page. */
	bool is_final = r < 0 && (r != -EACCES || again);
	for (unsigned i = 0; i < left->count; i++) {
		int on = left->statuses[i];
		if (on < 0 || on == left->nodes[i])
			statuses[left->pages[i]] = on;
		else if (is_final)
			statuses[left->pages[i]] = r;
	}
	return 0;
}

int nm_page_round(const struct nm_page_round *round, const struct nm_page_calls *calls,
		  struct nm_page_try *ret_tries, int *ret_statuses)
{
	struct selection left;

	ret_tries[0] = ret_tries[1] = (struct nm_page_try){0};
	for (unsigned i = 0; i < round->count; i++)
		ret_statuses[i] = NO_STATUS;
	int r = make_a_try(round, calls, false, &left, &ret_tries[0], ret_statuses);
	if (r < 0)
		return r;
	if (ret_tries[0].held_ns <= round->slow_ns)
		(void)make_a_try(round, calls, true, &left, &ret_tries[1], ret_statuses);
	for (unsigned i = 0; i < round->count; i++)
		if (is_left(ret_statuses[i], round->nodes[i]))
			ret_statuses[i] = -EBUSY;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * How often each sender on the bus may call within a second. Who it is only the bus can say, and its
 * answer comes behind everything that has been sent by then: so that a flood delays nobody, calls are
 * bounded before. Pure.
 */
#ifndef NM_CONTROL_CALLERS_H
#define NM_CONTROL_CALLERS_H

#include <stdint.h>

#define NM_CALLERS_PLACES 1024U /* a power of two, twice as many as are counted */
#define NM_CALLS_MOST 512U	/* answered in a second, shared by those who call */
#define NM_CALLS_LEAST 4U	/* of one sender, however many there are */
#define NM_REFUSALS_MOST 16U	/* of one sender in a second */

enum nm_admission {
	NM_CALL_ANSWERED,
	NM_CALL_REFUSED,
	NM_CALL_DROPPED, /* the bus lets a sender have so many calls without an answer, and then no more */
};

struct nm_caller {
	uint64_t sender; /* a hash of its unique name; 0: free */
	unsigned calls, refused;
};

struct nm_callers {
	uint64_t began_ns; /* the second that is counted */
	unsigned count, before; /* senders in it, and in the one before */
	struct nm_caller places[NM_CALLERS_PLACES];
};

/* One more call. Of more senders than places each call is answered: a connection costs its owner more. */
enum nm_admission nm_callers_admit(struct nm_callers *callers, const char *sender, uint64_t now_ns);

/* What it was answered took so much more than other answers do. */
void nm_callers_charge(struct nm_callers *callers, const char *sender, unsigned calls);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Limits the calls of each sender on the bus per second. Only the bus knows the user of a sender,
 * and its answer arrives after all messages sent before. Therefore calls are limited before the
 * user is known, so that a flood of calls does not delay other users. Pure.
 */
#ifndef NM_CONTROL_CALLERS_H
#define NM_CONTROL_CALLERS_H

#include <stdint.h>

#define NM_CALLERS_PLACES 1024U /* a power of two, twice the number of senders that are counted */
#define NM_CALLS_MAX 512U	/* answered per second, shared by all senders */
#define NM_CALLS_MIN 4U		/* minimum for one sender, regardless of the number of senders */
#define NM_REFUSALS_MAX 16U	/* for one sender per second */

enum nm_admission {
	NM_CALL_ANSWERED,
	NM_CALL_REFUSED,
	NM_CALL_DROPPED, /* not answered; the bus limits the number of unanswered calls of a
			  * sender */
};

struct nm_caller {
	uint64_t sender; /* hash of its unique name; 0: not used */
	unsigned calls, refused;
};

struct nm_callers {
	uint64_t began_ns; /* beginning of the current second */
	unsigned count, before; /* number of senders in it, and in the previous one */
	struct nm_caller places[NM_CALLERS_PLACES];
};

/* Counts a call and decides whether it is answered. If there are more senders than places, calls of
 * the additional ones are answered, because a connection costs its owner more. */
enum nm_admission nm_callers_admit(struct nm_callers *callers, const char *sender, uint64_t now_ns);

/* Charges the sender for an answer that was as expensive as this number of calls. */
void nm_callers_charge(struct nm_callers *callers, const char *sender, unsigned calls);

#endif

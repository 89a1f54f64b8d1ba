/* SPDX-License-Identifier: MIT */
#include "callers.h"

#include <string.h>

#include "numa-migrd/base.h"

static uint64_t hash(const char *text)
{
	uint64_t value = nm_hash_add(NM_HASH_START, text, strlen(text));
	return value ? value : 1;
}

static void begin_second(struct nm_callers *callers, uint64_t now_ns)
{
	bool next = now_ns - callers->began_ns < 2 * NM_NSEC_PER_SEC;

	if (callers->began_ns && now_ns - callers->began_ns < NM_NSEC_PER_SEC)
		return;
	callers->before = next ? callers->count : 0;
	callers->began_ns = now_ns;
	callers->count = 0;
	memset(callers->places, 0, sizeof(callers->places));
}

/* Returns NULL if there are too many. */
static struct nm_caller *find_caller(struct nm_callers *callers, uint64_t sender)
{
	size_t place = sender % NM_CALLERS_PLACES;

	while (callers->places[place].sender && callers->places[place].sender != sender)
		place = (place + 1) % NM_CALLERS_PLACES;
	if (callers->places[place].sender)
		return &callers->places[place];
	if (callers->count >= NM_CALLERS_PLACES / 2)
		return NULL;
	callers->count++;
	callers->places[place].sender = sender;
	return &callers->places[place];
}

static unsigned share(const struct nm_callers *callers)
{
	unsigned senders = callers->count > callers->before ? callers->count : callers->before;
	unsigned calls = NM_CALLS_MAX / (senders ? senders : 1);

	return calls > NM_CALLS_MIN ? calls : NM_CALLS_MIN;
}

enum nm_admission nm_callers_admit(struct nm_callers *callers, const char *sender, uint64_t now_ns)
{
	begin_second(callers, now_ns);
	struct nm_caller *caller = find_caller(callers, hash(sender));
	if (!caller)
		return NM_CALL_ANSWERED;
	if (caller->calls < share(callers)) {
		caller->calls++;
		return NM_CALL_ANSWERED;
	}
	if (caller->refused == NM_REFUSALS_MAX)
		return NM_CALL_DROPPED;
	caller->refused++;
	return NM_CALL_REFUSED;
}

void nm_callers_charge(struct nm_callers *callers, const char *sender, unsigned calls)
{
	struct nm_caller *caller = find_caller(callers, hash(sender));

	if (caller)
		caller->calls += calls;
}

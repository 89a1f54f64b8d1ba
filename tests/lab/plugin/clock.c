/* SPDX-License-Identifier: MIT */
#include "clock.h"

static bool try_lock(struct lab_clock *clock)
{
	return !atomic_flag_test_and_set_explicit(&clock->locked, memory_order_acquire);
}

static void unlock(struct lab_clock *clock)
{
	atomic_flag_clear_explicit(&clock->locked, memory_order_release);
}

void lab_clock_begin(struct lab_clock *clock, uint64_t host_ns)
{
	*clock = (struct lab_clock){
		.now_ns = host_ns, .host_ns = host_ns, .due_ns = LAB_CLOCK_NEVER};
	atomic_flag_clear(&clock->locked);
}

void lab_clock_pace(struct lab_clock *clock)
{
	while (!try_lock(clock))
		;
	for (unsigned int cpu = 0; cpu < NUMALAB_MAX_CPUS; cpu++)
		clock->cpus[cpu].at_ns = clock->now_ns;
	clock->paced = true;
	unlock(clock);
}

/* How far it may go at most. */
static uint64_t limit(struct lab_clock *clock)
{
	uint64_t ret = clock->due_ns;

	for (unsigned int cpu = 0; cpu < NUMALAB_MAX_CPUS; cpu++) {
		const struct lab_clock_cpu *at = &clock->cpus[cpu];

		if (at->busy && at->at_ns < ret)
			ret = at->at_ns;
	}
	return ret;
}

uint64_t lab_clock_read(struct lab_clock *clock, uint64_t host_ns)
{
	uint64_t next, furthest;

	if (!try_lock(clock))
		return clock->now_ns;
	next = clock->now_ns;
	if (host_ns > clock->host_ns) {
		next += host_ns - clock->host_ns;
		clock->host_ns = host_ns;
	}
	furthest = clock->paced ? limit(clock) : LAB_CLOCK_NEVER;
	if (next > furthest)
		next = furthest;
	if (next > clock->now_ns)
		clock->now_ns = next;
	unlock(clock);
	return clock->now_ns;
}

void lab_clock_wake(struct lab_clock *clock, unsigned int cpu)
{
	struct lab_clock_cpu *at = &clock->cpus[cpu];

	if (at->busy)
		return;
	if (at->at_ns < clock->now_ns)
		at->at_ns = clock->now_ns;
	at->busy = true;
}

void lab_clock_rest(struct lab_clock *clock, unsigned int cpu)
{
	clock->cpus[cpu].busy = false;
}

uint64_t lab_clock_work(struct lab_clock *clock, unsigned int cpu, uint64_t ns)
{
	return atomic_fetch_add(&clock->cpus[cpu].at_ns, ns) + ns;
}

bool lab_clock_is_held(const struct lab_clock *clock)
{
	for (unsigned int cpu = 0; clock->paced && cpu < NUMALAB_MAX_CPUS; cpu++)
		if (clock->cpus[cpu].busy)
			return true;
	return false;
}

void lab_clock_expect(struct lab_clock *clock, uint64_t due_ns)
{
	clock->due_ns = due_ns;
}

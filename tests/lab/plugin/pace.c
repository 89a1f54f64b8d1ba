/* SPDX-License-Identifier: MIT */
#include "pace.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	SLACK_CYCLES = 50000, /* a CPU may be so far ahead of the slowest */
	TELL_CYCLES = SLACK_CYCLES / 4,
	HOLD_NS = 1000000, /* of the host's; never long: another CPU may wait for this one to leave
			      its block */
};

static struct {
	struct lab_clock clock;
	unsigned int mhz;
	uint64_t slack_ns;
	_Atomic uint32_t epoch; /* what those wait on that are held */
	_Atomic uint64_t epoch_ns;
	atomic_uint holding;
	struct {
		uint64_t cycles, told_cycles;
		uint64_t ahead_ns; /* further than it may be */
		bool held;
	} cpus[NUMALAB_MAX_CPUS];
} pace;

/* By the system call: the C library's function is replaced by interpose.c. */
static uint64_t host_now_ns(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void lab_pace_begin(unsigned int mhz)
{
	pace.mhz = mhz;
	pace.slack_ns = SLACK_CYCLES * 1000ULL / mhz;
	lab_clock_begin(&pace.clock, host_now_ns());
}

struct lab_clock *lab_pace_clock(void)
{
	return &pace.clock;
}

static void release_held(void)
{
	pace.epoch++;
	syscall(SYS_futex, &pace.epoch, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

uint64_t lab_pace_now_ns(void)
{
	uint64_t now = lab_clock_read(&pace.clock, host_now_ns());

	if (now >= pace.clock.due_ns)
		lab_interpose_due();
	if (pace.holding && now - pace.epoch_ns >= pace.slack_ns / 4) {
		pace.epoch_ns = now;
		release_held();
	}
	return now;
}

static uint64_t cycles_in(uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * pace.mhz / 1000);
}

uint64_t lab_pace_tsc(void)
{
	return cycles_in(lab_pace_now_ns());
}

uint64_t lab_pace_now_cycles(void)
{
	return cycles_in(pace.clock.now_ns);
}

void lab_pace_charge(unsigned int vcpu, uint64_t cycles)
{
	pace.cpus[vcpu].cycles += cycles;
}

uint64_t lab_pace_cycles(unsigned int vcpu)
{
	return pace.cpus[vcpu].cycles;
}

/* Returns where the CPU is now. */
static uint64_t tell(unsigned int vcpu)
{
	uint64_t before = pace.cpus[vcpu].told_cycles, now = pace.cpus[vcpu].cycles;

	pace.cpus[vcpu].told_cycles = now;
	return lab_clock_work(&pace.clock, vcpu, now * 1000 / pace.mhz - before * 1000 / pace.mhz);
}

static void hold(uint32_t epoch)
{
	struct timespec limit = {.tv_nsec = HOLD_NS};

	pace.holding++;
	syscall(SYS_futex, &pace.epoch, FUTEX_WAIT_PRIVATE, epoch, &limit, NULL, 0);
	pace.holding--;
}

static uint64_t newly_ahead(unsigned int vcpu, uint64_t ahead_ns)
{
	uint64_t allowed = 2 * pace.slack_ns, before = pace.cpus[vcpu].ahead_ns;
	uint64_t beyond = ahead_ns > allowed ? ahead_ns - allowed : 0;

	pace.cpus[vcpu].ahead_ns = beyond;
	return beyond > before ? beyond - before : 0;
}

uint64_t lab_pace_block(unsigned int vcpu, uint64_t instructions)
{
	uint64_t at, now;
	uint32_t epoch;

	lab_pace_charge(vcpu, instructions);
	if (!pace.cpus[vcpu].held &&
	    pace.cpus[vcpu].cycles - pace.cpus[vcpu].told_cycles < TELL_CYCLES)
		return 0;
	if (!pace.clock.paced) {
		pace.cpus[vcpu].told_cycles = pace.cpus[vcpu].cycles;
		return 0;
	}
	at = tell(vcpu);
	epoch = pace.epoch;
	now = lab_pace_now_ns();
	pace.cpus[vcpu].held = at > now + pace.slack_ns;
	if (!pace.cpus[vcpu].held)
		return newly_ahead(vcpu, 0);
	hold(epoch);
	return newly_ahead(vcpu, at - now);
}

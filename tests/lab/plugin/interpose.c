/* SPDX-License-Identifier: MIT */
/*
 * Replaces functions of the C library and of the processor for QEMU, so that its clocks are the
 * guest's: the monotonic clock, the wait of its main loop for timers, and the time stamp counter.
 * Calls of pthread_cond_wait(3) and pthread_cond_broadcast(3) show which CPUs are busy: QEMU's own
 * hooks report a CPU that wakes up only after the host has given it time.
 */
#include "pace.h"
#include "qemu.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	NS_PER_S = 1000000000,
	LOOK_NS = 2000000, /* of the host's, between two checks for due timers without a
			      notification */
	FILES_MAX = 64,
	REST_NS = 50000000, /* a CPU that is idle looks so often whether it missed being woken */
};

typedef int (*wait_function)(pthread_cond_t *, pthread_mutex_t *);
typedef int (*timed_wait_function)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int (*broadcast_function)(pthread_cond_t *);

static bool interposed;
static int due_event = -1;
static atomic_bool waits_for_timer;
static pthread_cond_t *_Atomic rests_on[NUMALAB_MAX_CPUS];

static _Thread_local unsigned int own_vcpu = UINT_MAX;
static _Thread_local bool goes_to_rest;

/* ---- the clock ---- */

QEMU_EXPORT int clock_gettime(clockid_t which, struct timespec *ret)
{
	uint64_t now;

	if (!interposed || which != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, which, ret);
	now = lab_pace_now_ns();
	*ret = (struct timespec){(time_t)(now / NS_PER_S), (long)(now % NS_PER_S)};
	return 0;
}

/* ---- timers ---- */

static int poll_once(struct pollfd *files, nfds_t count, uint64_t ns, const sigset_t *mask)
{
	struct timespec limit = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};

	return (int)syscall(SYS_ppoll, files, count, &limit, mask, _NSIG / 8);
}

void lab_interpose_due(void)
{
	uint64_t one = 1;

	if (atomic_exchange(&waits_for_timer, false))
		(void)!write(due_event, &one, sizeof(one));
}

/* The clock is never faster than the host's, and a CPU that holds it reports when the timer is due.
 */
static uint64_t next_look(uint64_t now_ns, uint64_t due_ns)
{
	uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;

	return left_ns < LOOK_NS && lab_clock_is_held(lab_pace_clock()) ? LOOK_NS : left_ns;
}

/* Until the guest's clock is there. The last of the files is the event. */
static int poll_until(struct pollfd *files, nfds_t count, uint64_t due_ns, const sigset_t *mask)
{
	for (;;) {
		uint64_t now, event;
		int ready;

		waits_for_timer = true;
		now = lab_pace_now_ns();
		ready = poll_once(files, count, now < due_ns ? next_look(now, due_ns) : 0, mask);
		waits_for_timer = false;
		if (ready > 0 && files[count - 1].revents)
			ready -= read(due_event, &event, sizeof(event)) > 0;
		if (ready != 0 || now >= due_ns)
			return ready;
	}
}

/* Only the main loop waits for timers. While it serves them the clock stays where the last one was
 * due. */
QEMU_EXPORT int ppoll(struct pollfd *files, nfds_t count, const struct timespec *limit,
		      const sigset_t *mask)
{
	struct pollfd all[FILES_MAX + 1];
	uint64_t due_ns;
	int ready;

	if (!interposed || gettid() != getpid() || count > FILES_MAX)
		return (int)syscall(SYS_ppoll, files, count, limit, mask, _NSIG / 8);
	if (!limit) {
		lab_clock_expect(lab_pace_clock(), LAB_CLOCK_NEVER);
		return (int)syscall(SYS_ppoll, files, count, NULL, mask, _NSIG / 8);
	}
	due_ns = lab_pace_now_ns() + (uint64_t)limit->tv_sec * NS_PER_S + (uint64_t)limit->tv_nsec;
	lab_clock_expect(lab_pace_clock(), due_ns);
	memcpy(all, files, count * sizeof(*files));
	all[count] = (struct pollfd){.fd = due_event, .events = POLLIN};
	ready = poll_until(all, count + 1, due_ns, mask);
	memcpy(files, all, count * sizeof(*files));
	return ready;
}

/* ---- who is at work ---- */

void lab_interpose_rest(unsigned int vcpu)
{
	own_vcpu = vcpu;
	goes_to_rest = true;
}

static struct timespec realtime_in(uint64_t ns)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
	ns += (uint64_t)now.tv_nsec;
	return (struct timespec){now.tv_sec + (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

/* Woken too soon, it comes back: QEMU waits in loops. */
static int rest(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	static _Atomic timed_wait_function wait_really;
	struct timespec until = realtime_in(REST_NS);

	if (!wait_really)
		wait_really = (timed_wait_function)dlvsym(RTLD_NEXT, "pthread_cond_timedwait",
							  "GLIBC_2.3.2");
	lab_clock_rest(lab_pace_clock(), own_vcpu);
	wait_really(condition, mutex, &until);
	lab_clock_wake(lab_pace_clock(), own_vcpu);
	return 0;
}

QEMU_EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	static _Atomic wait_function wait_really;

	if (goes_to_rest) {
		goes_to_rest = false;
		rests_on[own_vcpu] = condition;
	}
	if (own_vcpu != UINT_MAX && rests_on[own_vcpu] == condition)
		return rest(condition, mutex);
	if (!wait_really)
		wait_really = (wait_function)dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	return wait_really(condition, mutex);
}

/* From here on the CPU is at work, though the host may take its time to run it. */
QEMU_EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
	static _Atomic broadcast_function broadcast_really;

	for (unsigned int vcpu = 0; interposed && vcpu < NUMALAB_MAX_CPUS; vcpu++)
		if (rests_on[vcpu] == condition)
			lab_clock_wake(lab_pace_clock(), vcpu);
	if (!broadcast_really)
		broadcast_really = (broadcast_function)dlvsym(RTLD_NEXT, "pthread_cond_broadcast",
							      "GLIBC_2.3.2");
	return broadcast_really(condition);
}

/* ---- the time stamp counter ---- */

static int64_t read_guest_counter(void)
{
	return (int64_t)lab_pace_tsc();
}

/* The function of QEMU's of that name becomes a jump to another one. */
static bool replace(const char *name, int64_t (*function)(void))
{
	enum { ADDRESS_AT = 2 };
	unsigned char jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, /* movabs $FUNCTION, %rax */
				0xff, 0xe0};			    /* jmp *%rax */
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first;
	void *at = dlsym(RTLD_DEFAULT, name);

	if (!at)
		return false;
	memcpy(jump + ADDRESS_AT, &function, sizeof(function));
	first = (uintptr_t)at / page * page;
	if (mprotect((void *)first, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return false;
	memcpy(at, jump, sizeof(jump));
	return mprotect((void *)first, 2 * page, PROT_READ | PROT_EXEC) == 0;
}

bool lab_interpose(void)
{
	if (dlsym(RTLD_DEFAULT, "ppoll") != (void *)ppoll)
		return false;
	due_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (due_event < 0 || !replace("cpu_get_ticks", read_guest_counter))
		return false;
	interposed = true;
	return true;
}

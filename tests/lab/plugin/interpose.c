/* SPDX-License-Identifier: MIT */
/*
 * What QEMU is handed in place of the C library's and the processor's, so that its clocks are the
 * guest's: the monotonic clock, the wait of its main loop for timers, and the time stamp counter.
 * Calls of pthread_cond_wait(3) and pthread_cond_broadcast(3) tell which CPUs are at work: QEMU's
 * own hooks tell of a CPU that wakes only once the host has given it time.
 */
#include "pace.h"
#include "qemu.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

enum {
	NS_PER_S = 1000000000,
	LOOK_NS = 2000000, /* of the host's, between two looks whether a timer is due, if nobody
			      tells */
	FILES_MAX = 64,
	REST_NS = 50000000, /* a CPU that is idle looks so often whether it missed being woken */
};

typedef int (*wait_function)(pthread_cond_t *, pthread_mutex_t *);
typedef int (*timed_wait_function)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int (*broadcast_function)(pthread_cond_t *);

static bool interposed;
static int due_event = -1;
static atomic_bool waits_for_timer;
static struct {
	uintptr_t first, end;
} qemu_text;
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

/* The host's; but not by the counter that is trapped here. */
QEMU_EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	return (int)syscall(SYS_gettimeofday, ret, zone);
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

/* The clock is never faster than the host's, and if a CPU holds it, that CPU tells when the timer
 * is due. */
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

static uint64_t read_really(unsigned int *ret_cpu)
{
	uint64_t ret;

	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	ret = __rdtscp(ret_cpu);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	return ret;
}

/* Length of the instruction, if it is rdtsc or rdtscp; else 0. */
static size_t length_of(uintptr_t ip)
{
	static const unsigned char rdtsc[] = {0x0f, 0x31}, rdtscp[] = {0x0f, 0x01, 0xf9};

	if (memcmp((const void *)ip, rdtsc, sizeof(rdtsc)) == 0)
		return sizeof(rdtsc);
	return memcmp((const void *)ip, rdtscp, sizeof(rdtscp)) == 0 ? sizeof(rdtscp) : 0;
}

/* In QEMU's own code it is the guest's; in a library or the vdso the host's. */
static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t ip = (uintptr_t)registers[REG_RIP];
	size_t length = info->si_code == SI_KERNEL ? length_of(ip) : 0;
	unsigned int cpu = 0;
	uint64_t value;

	if (length == 0) {
		signal(number, SIG_DFL); /* and so it fails anew on return */
		return;
	}
	if (ip >= qemu_text.first && ip < qemu_text.end)
		value = lab_pace_tsc();
	else
		value = read_really(&cpu);
	registers[REG_RAX] = (greg_t)(value & UINT32_MAX);
	registers[REG_RDX] = (greg_t)(value >> 32);
	if (length == 3)
		registers[REG_RCX] = (greg_t)cpu;
	registers[REG_RIP] += (greg_t)length;
}

/* The program itself comes first. */
static int note_text(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X) {
			qemu_text.first = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
			qemu_text.end = qemu_text.first + object->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

bool lab_interpose(void)
{
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	if (dlsym(RTLD_DEFAULT, "ppoll") != (void *)ppoll)
		return false;
	due_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (due_event < 0)
		return false;
	dl_iterate_phdr(note_text, NULL);
	if (sigaction(SIGSEGV, &trap, NULL) < 0 || prctl(PR_SET_TSC, PR_TSC_SIGSEGV) < 0)
		return false;
	interposed = true;
	return true;
}

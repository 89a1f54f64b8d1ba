/* SPDX-License-Identifier: MIT */
/*
 * All calls of the tested daemon to the machine, the allocator of the C library and the file system
 * pass one gate here: any call may be made to fail, or be the last before a sudden exit.
 * CMakeLists.txt makes the linker replace the functions of the library by those named __wrap_… in
 * the code of this project (ld(1), --wrap), but not in other libraries.
 */
#ifndef NM_TEST_ORDEAL_GATE_H
#define NM_TEST_ORDEAL_GATE_H

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum gate_op {
	GATE_OPEN_DIRECTORY,
	GATE_READ_FILE,
	GATE_LIST_DIRECTORY,
	GATE_READ_ATTRIBUTE,
	GATE_OWNER,
	GATE_AFFINITY_GET,
	GATE_AFFINITY_SET,
	GATE_EVENT_OPEN,
	GATE_HARDWARE_LIST,
	GATE_HARDWARE_OPEN,
	GATE_EVENT_MAP,
	GATE_EVENT_IOCTL,
	GATE_EVENT_READ,
	GATE_NUMA_BALANCING_SET,
	GATE_ASK,
	GATE_OPENAT,
	GATE_WRITE,
	GATE_PREAD,
	GATE_FTRUNCATE,
	GATE_RENAMEAT,
	GATE_UNLINKAT,
	GATE_MEMORY, /* the last; not a call to the machine */
	GATE_OPS
};

#define GATE_DIED 98
#define GATE_HANGS ETIMEDOUT /* for queries: no answer instead of an error */
#define GATE_LIVE (1U << 18) /* number of pointers tracked; a power of two */

static struct gate {
	bool on;
	unsigned calls[GATE_OPS];
	unsigned all; /* except memory */
	enum gate_op fail_op;
	unsigned fail_at; /* the call of this kind that fails; 0: none */
	bool lasting;	  /* and all later calls */
	int error;	  /* positive */
	unsigned failed;
	unsigned die_at; /* the call of any kind before which the process exits; 0: none */
	bool torn;	 /* half of a write is performed first */
	bool full;	 /* the disk took half of the last write, and is full */
	uint64_t now_ns; /* CLOCK_MONOTONIC; the CPU time is constant except for cpu_ns */
	uint64_t cpu_ns;
	uint64_t cpu_step_ns; /* added by each read of the CPU clock */
	int64_t wall_step_ns; /* offset of the wall clock */
	uintptr_t live[GATE_LIVE];
	unsigned nr_live;
} gate;

/* Counts a call; returns a negative errno if it must fail. */
static inline int gate_check(enum gate_op op)
{
	if (!gate.on)
		return 0;
	unsigned call = ++gate.calls[op];
	if (op != GATE_MEMORY && ++gate.all == gate.die_at)
		_exit(GATE_DIED);
	if (op != gate.fail_op || gate.fail_at == 0 || call < gate.fail_at)
		return 0;
	if (call > gate.fail_at && !gate.lasting)
		return 0;
	gate.failed++;
	return -gate.error;
}

/* ---- pointers that the code of this project must free ---- */

static inline unsigned gate_place(const void *pointer)
{
	uint64_t hash = (uint64_t)(uintptr_t)pointer * UINT64_C(0x9e3779b97f4a7c15);
	unsigned place = (unsigned)(hash >> 32) & (GATE_LIVE - 1);
	while (gate.live[place] && gate.live[place] != (uintptr_t)pointer)
		place = (place + 1) & (GATE_LIVE - 1);
	return place;
}

static inline void gate_forget(const void *pointer)
{
	unsigned hole = gate_place(pointer);
	if (!pointer || !gate.live[hole])
		return;
	gate.nr_live--;
	gate.live[hole] = 0;
	for (unsigned next = (hole + 1) & (GATE_LIVE - 1); gate.live[next];
	     next = (next + 1) & (GATE_LIVE - 1)) {
		uintptr_t moved = gate.live[next];
		gate.live[next] = 0;
		gate.live[gate_place((void *)moved)] = moved;
	}
}

static inline void *gate_keep(void *pointer)
{
	if (!gate.on || !pointer || gate.nr_live >= GATE_LIVE / 2)
		return pointer;
	unsigned place = gate_place(pointer);
	gate.nr_live += !gate.live[place];
	gate.live[place] = (uintptr_t)pointer;
	return pointer;
}

static inline bool gate_starves(void)
{
	if (gate_check(GATE_MEMORY) == 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t most);
void __real_free(void *pointer);
hwloc_bitmap_t __real_hwloc_bitmap_alloc(void);
hwloc_bitmap_t __real_hwloc_bitmap_dup(hwloc_const_bitmap_t bitmap);
void __real_hwloc_bitmap_free(hwloc_bitmap_t bitmap);
int __real_hwloc_bitmap_list_asprintf(char **ret, hwloc_const_bitmap_t bitmap);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
void __wrap_free(void *pointer);
int __wrap_vasprintf(char **ret, const char *format, va_list list)
	__attribute__((format(printf, 2, 0)));
int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list list)
	__attribute__((format(printf, 3, 0)));
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
hwloc_bitmap_t __wrap_hwloc_bitmap_alloc(void);
hwloc_bitmap_t __wrap_hwloc_bitmap_dup(hwloc_const_bitmap_t bitmap);
void __wrap_hwloc_bitmap_free(hwloc_bitmap_t bitmap);
int __wrap_hwloc_bitmap_list_asprintf(char **ret, hwloc_const_bitmap_t bitmap);

void *__wrap_malloc(size_t size)
{
	return gate_starves() ? NULL : gate_keep(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return gate_starves() ? NULL : gate_keep(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	return __wrap_reallocarray(old, 1, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	if (gate_starves())
		return NULL;
	gate_forget(old);
	void *grown = __real_reallocarray(old, count, size);
	if (!grown)
		abort();
	return gate_keep(grown);
}

char *__wrap_strdup(const char *text)
{
	return gate_starves() ? NULL : gate_keep(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t most)
{
	return gate_starves() ? NULL : gate_keep(__real_strndup(text, most));
}

void __wrap_free(void *pointer)
{
	gate_forget(pointer);
	__real_free(pointer);
}

/* Like that of glibc, it leaves an undefined value in *ret on failure. */
int __wrap_vasprintf(char **ret, const char *format, va_list list)
{
	char *text = NULL;
	size_t size = 0;
	if (gate_starves()) {
		*ret = (char *)(uintptr_t)1;
		return -1;
	}
	FILE *stream = open_memstream(&text, &size);
	int length = stream ? vfprintf(stream, format, list) : -1;
	if (!stream || fclose(stream) != 0 || length < 0)
		abort();
	*ret = gate_keep(text);
	return length;
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int length = __wrap_vasprintf(ret, format, list);
	va_end(list);
	return length;
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list list)
{
	(void)flag;
	return __wrap_vasprintf(ret, format, list);
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
	va_list list;
	(void)flag;
	va_start(list, format);
	int length = __wrap_vasprintf(ret, format, list);
	va_end(list);
	return length;
}

hwloc_bitmap_t __wrap_hwloc_bitmap_alloc(void)
{
	return gate_starves() ? NULL : gate_keep(__real_hwloc_bitmap_alloc());
}

hwloc_bitmap_t __wrap_hwloc_bitmap_dup(hwloc_const_bitmap_t bitmap)
{
	return gate_starves() ? NULL : gate_keep(__real_hwloc_bitmap_dup(bitmap));
}

void __wrap_hwloc_bitmap_free(hwloc_bitmap_t bitmap)
{
	gate_forget(bitmap);
	__real_hwloc_bitmap_free(bitmap);
}

int __wrap_hwloc_bitmap_list_asprintf(char **ret, hwloc_const_bitmap_t bitmap)
{
	if (gate_starves()) {
		*ret = NULL;
		return -1;
	}
	int length = __real_hwloc_bitmap_list_asprintf(ret, bitmap);
	gate_keep(*ret);
	return length;
}

/* ---- files ---- */

int __real_openat(int directory, const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __real_pread(int fd, void *bytes, size_t size, off_t offset);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
int __real_ftruncate(int fd, off_t size);
int __real_renameat(int from_directory, const char *from, int to_directory, const char *to);
int __real_unlinkat(int directory, const char *path, int flags);

int __wrap_openat(int directory, const char *path, int flags, ...);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_renameat(int from_directory, const char *from, int to_directory, const char *to);
int __wrap_unlinkat(int directory, const char *path, int flags);

static inline bool gate_refuses(enum gate_op op)
{
	int r = gate_check(op);
	if (r < 0)
		errno = -r;
	return r < 0;
}

int __wrap_openat(int directory, const char *path, int flags, ...)
{
	mode_t mode = 0;
	if (flags & O_CREAT) {
		va_list list;
		va_start(list, flags);
		mode = va_arg(list, mode_t);
		va_end(list);
	}
	return gate_refuses(GATE_OPENAT) ? -1 : __real_openat(directory, path, flags, mode);
}

/* A disk that becomes full first writes what fits. */
static inline ssize_t gate_write_short(int fd, const void *bytes, size_t size)
{
	if (gate.error != ENOSPC || gate.full || size < 2) {
		gate.full = false;
		errno = gate.error;
		return -1;
	}
	gate.full = true;
	return __real_write(fd, bytes, size / 2);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	bool dies = gate.on && gate.die_at && gate.all + 1 == gate.die_at;
	if (dies && gate.torn)
		(void)!__real_write(fd, bytes, size / 2);
	if (gate_refuses(GATE_WRITE) || gate.full)
		return gate_write_short(fd, bytes, size);
	return __real_write(fd, bytes, size);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	bool dies = gate.on && gate.die_at && gate.all + 1 == gate.die_at;
	if (dies && gate.torn)
		(void)!__real_pwrite(fd, bytes, size / 2, offset);
	if (gate_refuses(GATE_WRITE))
		return -1;
	if (gate.full) {
		errno = ENOSPC;
		return -1;
	}
	return __real_pwrite(fd, bytes, size, offset);
}

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
	return gate_refuses(GATE_PREAD) ? -1 : __real_pread(fd, bytes, size, offset);
}

int __wrap_ftruncate(int fd, off_t size)
{
	return gate_refuses(GATE_FTRUNCATE) ? -1 : __real_ftruncate(fd, size);
}

int __wrap_renameat(int from_directory, const char *from, int to_directory, const char *to)
{
	return gate_refuses(GATE_RENAMEAT)
		       ? -1
		       : __real_renameat(from_directory, from, to_directory, to);
}

int __wrap_unlinkat(int directory, const char *path, int flags)
{
	return gate_refuses(GATE_UNLINKAT) ? -1 : __real_unlinkat(directory, path, flags);
}

/* ---- time ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_nanosleep(const struct timespec *length, struct timespec *left);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	bool cpu = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
	if (cpu)
		gate.cpu_ns += gate.cpu_step_ns;
	uint64_t ns = cpu ? gate.cpu_ns : gate.now_ns;
	if (clock == CLOCK_REALTIME)
		ns += (uint64_t)gate.wall_step_ns;
	ret->tv_sec = (time_t)(ns / 1000000000);
	ret->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

int __wrap_nanosleep(const struct timespec *length, struct timespec *left)
{
	(void)left;
	gate.now_ns += (uint64_t)length->tv_sec * 1000000000 + (uint64_t)length->tv_nsec;
	return 0;
}

#endif

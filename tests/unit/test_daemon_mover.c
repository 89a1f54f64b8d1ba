/* SPDX-License-Identifier: MIT */
/*
 * The daemon with its mover's thread beside the loop. What the thread meets of the machine is apart
 * from what the loop meets, and is told by relaxed atomics: a lock here would put the two in the
 * order that the daemon itself must see to, and hide from ThreadSanitizer what is to be found.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "whole_daemon_fixture.h"

#define PID 100U
#define BASE UINT64_C(0x7f0000000000) /* of the pages that the world's workers touch */
#define LONG 600		      /* seconds without an outcome */
#define VERDICT "80 of 80 pages migrated"

/* By the thread: as in mover_fixture.h, numbers that stand for what is open. */
enum { DIRECTORY = 3000, MAPS, NUMA_MAPS };

#define WITHOUT WORLD_SETTINGS "threads: { policy = \"none\"; };\n"
#define SETTINGS WITHOUT "pages: { policy = \"exclusivity\"; cooldown_s = 0; };\n"

static struct world *world;
static struct nm_platform_ops ops;
static const struct nm_platform_ops *loops;
static pthread_t loop;
static struct fake_thread process; /* as the thread sees it */
static uint64_t now_ns;
static int home[SAMPLES_S];
static unsigned moved, moved_by_loop;
static size_t offset[2]; /* the thread's */

static bool by_loop(void)
{
	return pthread_equal(pthread_self(), loop);
}

static unsigned count(const unsigned *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* ---- the machine, for both ---- */

static uint64_t either_now_ns(struct nm_platform *platform)
{
	(void)platform;
	return __atomic_load_n(&now_ns, __ATOMIC_RELAXED);
}

static int either_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	if (by_loop())
		return loops->open_directory(platform, directory, path);
	return strcmp(path, "proc/100") == 0 ? DIRECTORY : -ENOENT;
}

static void either_close(struct nm_platform *platform, int fd)
{
	if (by_loop())
		loops->close(platform, fd);
}

static ssize_t thread_reads(const char *path, char *buffer, size_t size)
{
	char text[2048];

	if (strcmp(path, "stat") == 0)
		fake_write_stat(&process, text, sizeof(text));
	else if (strcmp(path, "status") == 0)
		fake_write_status(&process, text, sizeof(text));
	else if (strstr(path, "/meminfo"))
		snprintf(text, sizeof(text), "Node 0 MemTotal: 8192 kB\nNode 0 MemFree: 8192 kB\n");
	else
		return -ENOENT;
	return world_give(buffer, size, text);
}

static ssize_t either_read_file(struct nm_platform *platform, int directory, const char *path,
				char *buffer, size_t size)
{
	if (by_loop())
		return loops->read_file(platform, directory, path, buffer, size);
	return thread_reads(path, buffer, size);
}

/* ---- for the thread ---- */

static int thread_open_maps(struct nm_platform *platform, int directory, const char *path)
{
	int fd = strcmp(path, "maps") == 0 ? MAPS : NUMA_MAPS;

	(void)platform;
	assert(directory == DIRECTORY);
	offset[fd - MAPS] = 0;
	return fd;
}

static ssize_t thread_read_maps(struct nm_platform *platform, int directory, int fd, char *buffer,
				size_t size, uint64_t budget_ns, uint64_t *ret_held_ns)
{
	char text[128];

	(void)platform, (void)directory, (void)budget_ns;
	*ret_held_ns = 0;
	if (fd == MAPS)
		snprintf(text, sizeof(text), "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n",
			 BASE, BASE + SAMPLES_S * 4096);
	else
		snprintf(text, sizeof(text),
			 "%" PRIx64 " default anon=9 N1=9 kernelpagesize_kB=4\n", BASE);
	size_t length = strnlen(text + offset[fd - MAPS], size);
	memcpy(buffer, text + offset[fd - MAPS], length);
	offset[fd - MAPS] += length;
	return (ssize_t)length;
}

static int thread_pages_where(struct nm_platform *platform, pid_t pid, uint64_t start_ticks,
			      unsigned pages, const uint64_t *addresses, int *ret)
{
	(void)platform, (void)start_ticks;
	assert(pid == PID);
	for (unsigned i = 0; i < pages; i++)
		ret[i] = __atomic_load_n(&home[(addresses[i] - BASE) / 4096], __ATOMIC_RELAXED);
	return 0;
}

static int thread_pages_move(struct nm_platform *platform, pid_t pid, uint64_t start_ticks,
			     unsigned pages, const uint64_t *addresses, const int *nodes,
			     int *statuses, uint64_t *ret_held_ns)
{
	(void)platform, (void)start_ticks;
	assert(pid == PID);
	*ret_held_ns = 0;
	for (unsigned i = 0; i < pages; i++) {
		statuses[i] = nodes[i];
		__atomic_store_n(&home[(addresses[i] - BASE) / 4096], nodes[i], __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(by_loop() ? &moved_by_loop : &moved, pages, __ATOMIC_RELAXED);
	return 0;
}

/* ---- what happens ---- */

static void all_are_on(int node)
{
	for (unsigned i = 0; i < SAMPLES_S; i++)
		__atomic_store_n(&home[i], node, __ATOMIC_RELAXED);
	__atomic_store_n(&moved, 0, __ATOMIC_RELAXED);
}

static void pass_second(struct world *w)
{
	__atomic_store_n(&now_ns, w->fake->now_ns, __ATOMIC_RELAXED);
	w->workers[0].memory_node = count(&moved) < SAMPLES_S;
	if (w->seconds > LONG)
		raise(SIGTERM);
}

static void stop_when_verified(struct world *w)
{
	pass_second(w);
	if (strstr(world_said(w), VERDICT))
		raise(SIGTERM);
}

static void its_thread_moves_pages_beside_the_loop(void **state)
{
	(void)state;
	world->each_second = stop_when_verified;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_int_equal(count(&moved), SAMPLES_S);
	assert_int_equal(count(&moved_by_loop), 0);
	for (unsigned i = 0; i < SAMPLES_S; i++)
		assert_int_equal(home[i], 0);
	world_assert_said(world, VERDICT);
}

static unsigned rounds, off_since;

static void reload(struct world *w, const char *text)
{
	world_configure(w, text);
	raise(SIGHUP);
}

/* The policy goes as soon as the pages have gone, and comes when they are back. */
static void come_and_go(struct world *w)
{
	pass_second(w);
	if (!off_since && count(&moved) >= SAMPLES_S) {
		off_since = w->seconds;
		rounds++;
		reload(w, WITHOUT);
	} else if (off_since && w->seconds > off_since + 2) {
		off_since = 0;
		all_are_on(1);
		reload(w, SETTINGS);
	}
	if (rounds == 3)
		raise(SIGTERM);
}

static void it_comes_and_goes_with_the_policy(void **state)
{
	(void)state;
	world->each_second = come_and_go;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_int_equal(rounds, 3);
}

static int set_up(void **state)
{
	(void)state;
	world = world_new();
	world_configure(world, SETTINGS);
	world_worker(world, PID, 1);
	process = *fake_get(world->fake, PID);
	loops = world->platform.ops;
	loop = pthread_self();
	now_ns = world->fake->now_ns;
	rounds = off_since = moved_by_loop = 0;
	all_are_on(1);
	ops = *loops;
	ops.now_ns = either_now_ns;
	ops.open_directory = either_open_directory;
	ops.close = either_close;
	ops.read_file = either_read_file;
	ops.read_maps = thread_read_maps;
	ops.open_maps = thread_open_maps;
	ops.pages_where = thread_pages_where;
	ops.pages_move = thread_pages_move;
	world->platform.ops = &ops;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	world_free(world);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(its_thread_moves_pages_beside_the_loop, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(it_comes_and_goes_with_the_policy, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

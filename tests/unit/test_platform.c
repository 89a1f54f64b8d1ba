/* SPDX-License-Identifier: MIT */
#define SET_UP helper_fixture_setup
#define TEAR_DOWN helper_fixture_teardown
#include "../support/test.h"

#include <stdint.h>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "helper_fixture.h"
#include "numa-migrd/platform.h"

#define RING_BYTES (4U << 12)

static struct nm_platform *platform_with(const struct nm_platform_options *options)
{
	struct nm_platform *platform = NULL;

	assert_int_equal(nm_platform_linux_new(options, &platform), 0);
	return platform;
}

static struct nm_platform *platform_of(const struct helper_fixture *f, bool dry_run)
{
	return platform_with(&(struct nm_platform_options){.root_path = f->root,
							   .config = {.path = f->config},
							   .state_path = f->state,
							   .dry_run = dry_run});
}

TEST(the_clock_does_not_go_back)
{
	nm_auto(nm_platform_freep) struct nm_platform *p = platform_of(*state, false);
	uint64_t before = p->ops->now_ns(p);

	assert_true(before > 0);
	assert_true(p->ops->now_ns(p) >= before);
}

TEST(files_are_read_below_the_root)
{
	struct helper_fixture *f = *state;
	nm_auto(nm_platform_freep) struct nm_platform *p = platform_of(f, false);
	char text[16];

	fixture_file(f->root, "proc/word", "twelve bytes");
	assert_int_equal(p->ops->read_file(p, NM_ROOT, "proc/word", text, sizeof(text)), 12);
	assert_string_equal(text, "twelve bytes");
	assert_int_equal(p->ops->read_file(p, NM_ROOT, "proc/word", text, 13), 12);
	assert_int_equal(p->ops->read_file(p, NM_ROOT, "proc/word", text, 12), -EFBIG);
	assert_int_equal(p->ops->read_file(p, NM_ROOT, "proc/word", text, 0), -EINVAL);
	assert_int_equal(p->ops->read_file(p, NM_ROOT, "proc/none", text, sizeof(text)), -ENOENT);
	assert_int_equal(p->ops->read_file(p, NM_ROOT, "proc/100", text, sizeof(text)), -EISDIR);
	fixture_file(f->root, "proc/word", "");
	assert_int_equal(p->ops->read_file(p, NM_ROOT, "proc/word", text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

TEST(files_are_read_below_a_directory)
{
	const struct helper_fixture *f = *state;
	nm_auto(nm_platform_freep) struct nm_platform *p = platform_of(f, false);
	char text[256];

	fixture_directory(f->root, "proc/100/fd");
	int process = p->ops->open_directory(p, NM_ROOT, "proc/100");
	assert_true(process >= 0);
	assert_true(fcntl(process, F_GETFD) & FD_CLOEXEC);
	assert_true(p->ops->read_file(p, process, "stat", text, sizeof(text)) > 0);
	int inner = p->ops->open_directory(p, process, "fd");
	assert_true(inner >= 0);
	assert_int_equal(p->ops->open_directory(p, process, "stat"), -ENOTDIR);
	assert_int_equal(p->ops->open_directory(p, process, "none"), -ENOENT);
	p->ops->close(p, inner);
	p->ops->close(p, process);
	assert_int_equal(p->ops->read_file(p, process, "stat", text, sizeof(text)), -EBADF);
	p->ops->close(p, -1);
}

struct names {
	unsigned count, zero, one, dots;
	int stop;
};

static int on_name(void *context, const char *name)
{
	struct names *names = context;

	names->count++;
	names->zero += strcmp(name, "0") == 0;
	names->one += strcmp(name, "1") == 0;
	names->dots += name[0] == '.';
	return names->stop;
}

TEST(directories_are_listed)
{
	const struct helper_fixture *f = *state;
	nm_auto(nm_platform_freep) struct nm_platform *p = platform_of(f, false);
	struct names names = {0}, stopped = {.stop = -ECANCELED};

	fixture_directory(f->root, "proc/100/fd");
	fixture_file(f->root, "proc/100/fd/0", "");
	fixture_file(f->root, "proc/100/fd/1", "");
	assert_int_equal(p->ops->list_directory(p, NM_ROOT, "proc/100/fd", on_name, &names), 0);
	assert_int_equal(names.count, 2);
	assert_int_equal(names.zero + names.one, 2);
	assert_int_equal(names.dots, 0);
	assert_int_equal(p->ops->list_directory(p, NM_ROOT, "proc/100/fd", on_name, &stopped),
			 -ECANCELED);
	assert_int_equal(stopped.count, 1);
	assert_int_equal(p->ops->list_directory(p, NM_ROOT, "proc/x", on_name, &names), -ENOENT);
}

TEST_BETWEEN(NULL, NULL, a_missing_root_is_reported)
{
	struct nm_platform *platform = NULL;
	struct nm_platform_options options = {.root_path = "/nonexistent"};
	char empty[FIXTURE_PATH];

	assert_int_equal(nm_platform_linux_new(&options, &platform), -ENOENT);
	fixture_make(empty, sizeof(empty));
	options.root_path = empty;
	assert_int_equal(nm_platform_linux_new(&options, &platform), -ENOENT);
	assert_null(platform);
	fixture_remove(empty);
	nm_platform_free(NULL);
}

/* ---- affinity, on the test's own thread ---- */

static pid_t own_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

TEST(affinity_is_set_and_read)
{
	nm_auto(nm_platform_freep) struct nm_platform *p = platform_of(*state, false);
	hwloc_bitmap_t before = hwloc_bitmap_alloc(), wanted = hwloc_bitmap_alloc(),
		       after = hwloc_bitmap_alloc();

	assert_int_equal(p->ops->affinity_get(p, own_tid(), before), 0);
	assert_true(hwloc_bitmap_weight(before) >= 1);
	hwloc_bitmap_only(wanted, (unsigned)hwloc_bitmap_first(before));
	assert_int_equal(p->ops->affinity_set(p, own_tid(), wanted), 0);
	assert_int_equal(p->ops->affinity_get(p, own_tid(), after), 0);
	assert_true(hwloc_bitmap_isequal(after, wanted));
	hwloc_bitmap_fill(wanted);
	assert_int_equal(p->ops->affinity_set(p, own_tid(), wanted), 0);
	assert_int_equal(p->ops->affinity_get(p, own_tid(), after), 0);
	assert_true(hwloc_bitmap_isincluded(before, after));
	hwloc_bitmap_zero(wanted);
	assert_int_equal(p->ops->affinity_set(p, own_tid(), wanted), -EINVAL);
	assert_int_equal(p->ops->affinity_set(p, own_tid(), before), 0);
	hwloc_bitmap_free(before);
	hwloc_bitmap_free(wanted);
	hwloc_bitmap_free(after);
}

TEST(a_missing_thread_is_reported)
{
	nm_auto(nm_platform_freep) struct nm_platform *p = platform_of(*state, false);
	hwloc_bitmap_t set = hwloc_bitmap_alloc_full();

	assert_int_equal(p->ops->affinity_get(p, INT_MAX, set), -ESRCH);
	assert_int_equal(p->ops->affinity_set(p, INT_MAX, set), -ESRCH);
	assert_true(hwloc_bitmap_isfull(set));
	hwloc_bitmap_free(set);
}

/* ---- dry run ---- */

TEST(a_dry_run_changes_nothing)
{
	struct helper_fixture *f = *state;
	hwloc_bitmap_t before = hwloc_bitmap_alloc(), one = hwloc_bitmap_alloc(),
		       after = hwloc_bitmap_alloc();
	char text[256];

	fixture_file(f->root, "numa-migrd.conf", CONFIG_BALANCING);
	struct nm_platform *p = platform_of(f, true);
	assert_true(p->ops->read_file(p, NM_ROOT, "proc/100/stat", text, sizeof(text)) > 0);
	assert_int_equal(p->ops->affinity_get(p, own_tid(), before), 0);
	hwloc_bitmap_only(one, (unsigned)hwloc_bitmap_first(before));
	assert_int_equal(p->ops->affinity_set(p, own_tid(), one), -EROFS);
	assert_int_equal(p->ops->affinity_get(p, own_tid(), after), 0);
	assert_true(hwloc_bitmap_isequal(before, after));
	assert_int_equal(p->ops->numa_balancing_set(p, 1), -EROFS);
	nm_platform_free(p);
	assert_string_equal(fixture_read(f->root, SYSCTL), "0\n");
	assert_string_equal(fixture_read(f->root, "run/numa_balancing"), "");
	hwloc_bitmap_free(before);
	hwloc_bitmap_free(one);
	hwloc_bitmap_free(after);
}

/* ---- operations in this process ---- */

TEST(acts_in_process_ask_the_configuration)
{
	struct helper_fixture *f = *state;
	struct nm_platform *p = platform_of(f, false);

	assert_int_equal(p->ops->numa_balancing_set(p, 1), -EPERM);
	nm_platform_free(p);
	p = platform_with(&(struct nm_platform_options){.root_path = f->root});
	assert_int_equal(p->ops->numa_balancing_set(p, 1), -EPERM);
	nm_platform_free(p);
	assert_string_equal(fixture_read(f->root, SYSCTL), "0\n");
}

TEST(acts_in_process_are_undone_at_the_end)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	fixture_file(f->root, "numa-migrd.conf", CONFIG_BALANCING);
	struct nm_platform *p = platform_of(f, false);
	assert_int_equal(p->ops->numa_balancing_set(p, 1), 0);
	assert_string_equal(fixture_read(f->root, SYSCTL), "1\n");
	nm_platform_free(p);
	assert_string_equal(fixture_read(f->root, SYSCTL), "0\n");
}

/* ---- events ---- */

TEST(wrong_events_are_refused)
{
	nm_auto(nm_platform_freep) struct nm_platform *p = platform_of(*state, false);

	assert_int_equal(p->ops->event_open(p, NM_EVENT_CLOCK, 0, 1), -EINVAL);
	assert_int_equal(p->ops->event_open(p, NM_EVENT_KIND_MAX, 0, 10000000), -EINVAL);
}

static int open_or_skip(struct nm_platform *p, enum nm_event_kind kind, uint64_t period)
{
	int fd = p->ops->event_open(p, kind, 0, period);

	if (fd < 0) {
		print_message("this kernel opens no %s event for us (%s): skipped\n",
			      nm_event_name(kind), strerror(-fd));
		skip();
	}
	return fd;
}

TEST(events_open_on_a_cpu)
{
	nm_auto(nm_platform_freep) struct nm_platform *p = platform_of(*state, false);
	struct {
		uint64_t value, enabled, running;
	} count;
	uint64_t id = 0;
	void *ring = NULL;

	int leader = open_or_skip(p, NM_EVENT_SIDEBAND, RING_BYTES / 4);
	int clock = open_or_skip(p, NM_EVENT_CLOCK, 10000000);
	assert_true(fcntl(clock, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(p->ops->event_map(p, leader, RING_BYTES, &ring), 0);
	assert_int_equal(((struct perf_event_mmap_page *)ring)->data_size, RING_BYTES);
	assert_int_equal(p->ops->event_ioctl(
				 p, clock, PERF_EVENT_IOC_SET_OUTPUT,
				 (void *)(intptr_t)leader /* NOLINT(performance-no-int-to-ptr) */),
			 0);
	assert_int_equal(p->ops->event_ioctl(p, clock, PERF_EVENT_IOC_ID, &id), 0);
	assert_true(id != 0);
	assert_int_equal(p->ops->event_read(p, clock, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count.enabled, 0);
	assert_int_equal(p->ops->event_ioctl(p, clock, PERF_EVENT_IOC_ENABLE, NULL), 0);
	p->ops->event_unmap(p, ring, RING_BYTES);
	p->ops->event_unmap(p, NULL, RING_BYTES);
	p->ops->close(p, clock);
	p->ops->close(p, leader);
	assert_true(p->ops->event_map(p, leader, RING_BYTES, &ring) < 0);
	assert_true(p->ops->event_ioctl(p, clock, PERF_EVENT_IOC_ENABLE, NULL) < 0);
	assert_int_equal(p->ops->event_read(p, clock, &count, sizeof(count)), -EBADF);
}

TEST(every_software_event_is_known_to_the_kernel)
{
	static const enum nm_event_kind kinds[] = {NM_EVENT_SIDEBAND, NM_EVENT_CLOCK,
						   NM_EVENT_FAULT_MIN, NM_EVENT_FAULT_MAJ};
	nm_auto(nm_platform_freep) struct nm_platform *p = platform_of(*state, false);

	for (size_t i = 0; i < NM_ARRAY_SIZE(kinds); i++)
		p->ops->close(p, open_or_skip(p, kinds[i], 1000000));
}

RUN_TESTS()

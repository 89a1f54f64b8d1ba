// SPDX-License-Identifier: MIT
/* The Linux implementation of struct nm_platform_ops, and a variant that writes nothing. */
#include "linux.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "numa-migrd/base.h"
#include "pmu.h"
#include "privileged.h"

/* ---- affinities ---- */

/* Calls sched_getaffinity(2) and sched_setaffinity(2) directly, because glibc's CPU sets end at
 * 1024 CPUs. */
#define LONG_BITS (sizeof(unsigned long) * 8)
#define MASK_LONGS_FIRST (1024U / LONG_BITS)
#define MASK_LONGS_MAX (1U << 16)

/* The kernel refuses buffers smaller than its CPU bitmaps, and does not report their width
 * otherwise. */
static int linux_mask_init(struct nm_linux *self)
{
	for (unsigned longs = MASK_LONGS_FIRST; longs <= MASK_LONGS_MAX; longs *= 2) {
		unsigned long *mask = nm_must(reallocarray(self->mask, longs, sizeof(*mask)));
		self->mask = mask;
		self->mask_longs = longs;
		if (syscall(SYS_sched_getaffinity, 0, longs * sizeof(*mask), mask) >= 0)
			return 0;
		if (errno != EINVAL)
			return -errno;
	}
	return -EINVAL;
}

static int linux_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	struct nm_linux *self = nm_linux(platform);
	size_t size = self->mask_longs * sizeof(*self->mask);

	memset(self->mask, 0, size);
	if (syscall(SYS_sched_getaffinity, tid, size, self->mask) < 0)
		return -errno;
	nm_must_do(hwloc_bitmap_from_ulongs(ret, self->mask_longs, self->mask));
	return 0;
}

static int linux_affinity_set(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus)
{
	struct nm_linux *self = nm_linux(platform);
	size_t size = self->mask_longs * sizeof(*self->mask);

	if (hwloc_bitmap_to_ulongs(cpus, self->mask_longs, self->mask) < 0)
		return -EINVAL;
	return syscall(SYS_sched_setaffinity, tid, size, self->mask) < 0 ? -errno : 0;
}

/* ---- privileged operations ---- */

static bool connection_is_gone(int error)
{
	return error == -EPIPE || error == -ECONNRESET || error == -ENOTCONN;
}

static void helper_close(struct nm_linux *self)
{
	nm_closep(&self->helper);
	self->helper = -1;
}

/* The main loop waits for a late helper at most once in this time. */
#define HELPER_REST_NS (60 * NM_NSEC_PER_SEC)

/* After a late or malformed reply, replies would no longer match requests, so the connection is
 * closed. */
static int helper_call(struct nm_linux *self, const struct nm_helper_request *request,
		       struct nm_event_fds *ret_fds)
{
	int r = nm_helper_call(self->helper, request, ret_fds);

	if (connection_is_gone(r) || r == -ETIMEDOUT || r == -EPROTO)
		helper_close(self);
	if (r == -ETIMEDOUT)
		self->helper_rest_ns = nm_clock_ns() + HELPER_REST_NS;
	return r;
}

/* A helper that was restarted has restored the sysctl, so the request to its predecessor is
 * repeated. */
static int helper_open(struct nm_linux *self)
{
	const struct nm_helper_request again = {.version = NM_HELPER_VERSION,
						.act = NM_HELPER_NUMA_BALANCING,
						.value = self->balancing};
	struct nm_event_fds none;

	if (self->helper >= 0)
		return 0;
	if (nm_clock_ns() < self->helper_rest_ns)
		return -ETIMEDOUT;
	int fd = nm_helper_connect(self->helper_socket);
	if (fd == -ETIMEDOUT)
		self->helper_rest_ns = nm_clock_ns() + HELPER_REST_NS;
	if (fd < 0)
		return fd;
	self->helper = fd;
	if (self->balancing < 0)
		return 0;
	int r = helper_call(self, &again, &none);
	if (self->helper < 0)
		return r;
	if (r < 0)
		self->balancing =
			-1; /* no longer permitted; the next numa_balancing_set() reports it */
	return 0;
}

static int helper_ask(struct nm_linux *self, const struct nm_helper_request *request,
		      struct nm_event_fds *ret_fds)
{
	for (bool again = self->helper >= 0;; again = false) {
		int r = helper_open(self);
		if (r == 0)
			r = helper_call(self, request, ret_fds);
		if (!again || !connection_is_gone(r))
			return r;
	}
}

static int perform(struct nm_linux *self, const struct nm_helper_request *request,
		   struct nm_event_fds *ret_fds)
{
	const struct nm_helper_context context = {
		.config = {.path = self->config_path, .folder = self->config_folder},
		.state_path = self->state_path,
		.proc_fd = self->proc,
		.root_fd = self->files.root};

	if (self->helper_socket)
		return helper_ask(self, request, ret_fds);
	return nm_helper_serve(&context, request, ret_fds);
}

static int linux_numa_balancing_set(struct nm_platform *platform, int value)
{
	struct nm_linux *self = nm_linux(platform);
	const struct nm_helper_request request = {
		.version = NM_HELPER_VERSION, .act = NM_HELPER_NUMA_BALANCING, .value = value};
	struct nm_event_fds none;
	int r = perform(self, &request, &none);

	if (r == 0)
		self->balancing = value;
	return r;
}

/* ---- events ---- */

static int linux_hardware_list(struct nm_platform *platform,
			       const struct nm_event_selection *selection,
			       struct nm_event_list *ret)
{
	return nm_event_list_read(nm_linux(platform)->files.root, selection, NM_EVENT_KIND_MAX,
				  ret);
}

static int linux_hardware_open(struct nm_platform *platform, const struct nm_event_request *event,
			       struct nm_event_fds *ret)
{
	struct nm_linux *self = nm_linux(platform);
	const struct nm_helper_request request = {.version = NM_HELPER_VERSION,
						  .act = NM_HELPER_OPEN_EVENT,
						  .kind = (uint32_t)event->kind,
						  .cpu = event->cpu,
						  .period = event->period,
						  .index = event->index,
						  .source = event->selection.source,
						  .load_latency = event->selection.load_latency};
	int refused = nm_event_open(self->files.root, event, ret);

	if ((refused != -EACCES && refused != -EPERM) || !self->helper_socket)
		return refused;
	/*
	 * Without a helper, the kernel's error is more informative than that of the missing socket.
	 */
	if (helper_open(self) < 0)
		return refused;
	return helper_ask(self, &request, ret);
}

static int linux_event_open(struct nm_platform *platform, enum nm_event_kind kind, int cpu,
			    uint64_t period)
{
	const struct nm_event_request request = {.kind = kind, .cpu = cpu, .period = period};
	struct nm_event_fds fds = {-1, -1};
	int r = linux_hardware_open(platform, &request, &fds);

	return r < 0 ? r : fds.event;
}

static size_t ring_bytes(size_t data_bytes)
{
	return data_bytes + (size_t)sysconf(_SC_PAGESIZE);
}

static int linux_event_map(struct nm_platform *platform, int fd, size_t data_bytes, void **ret)
{
	void *ring = mmap(NULL, ring_bytes(data_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	(void)platform;
	if (ring == MAP_FAILED)
		return -errno;
	*ret = ring;
	return 0;
}

static void linux_event_unmap(struct nm_platform *platform, void *ring, size_t data_bytes)
{
	(void)platform;
	if (ring)
		munmap(ring, ring_bytes(data_bytes));
}

static int linux_aux_map(struct nm_platform *platform, int fd, void *ring, size_t data_bytes,
			 size_t aux_bytes, void **ret)
{
	struct perf_event_mmap_page *page = ring;

	(void)platform;
	page->aux_offset = ring_bytes(data_bytes);
	page->aux_size = aux_bytes;
	void *area = mmap(NULL, aux_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  (off_t)page->aux_offset);
	if (area == MAP_FAILED)
		return -errno;
	*ret = area;
	return 0;
}

static void linux_aux_unmap(struct nm_platform *platform, void *area, size_t aux_bytes)
{
	(void)platform;
	munmap(area, aux_bytes);
}

static int linux_event_ioctl(struct nm_platform *platform, int fd, unsigned long request,
			     void *argument)
{
	int r = ioctl(fd, request, argument);

	(void)platform;
	return r < 0 ? -errno : r;
}

static int linux_event_read(struct nm_platform *platform, int fd, void *buffer, size_t size)
{
	ssize_t got;

	(void)platform;
	do
		got = read(fd, buffer, size);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : (int)got;
}

/* ---- dry run ---- */

static int dry_units_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			  const struct nm_units_order *order, struct nm_units_moved *ret)
{
	(void)platform, (void)tid, (void)start_ticks, (void)order;
	ret->nr_tries = 0;
	ret->tried_bytes = 0;
	return -EROFS;
}

static int dry_ranges_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			   const struct nm_ranges_order *order, struct nm_ranges_moved *ret)
{
	(void)platform, (void)tid, (void)start_ticks, (void)order;
	ret->nr_tries = 0;
	ret->tried_bytes = 0;
	return -EROFS;
}

static int dry_affinity_set(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus)
{
	(void)platform, (void)tid, (void)cpus;
	return -EROFS;
}

static int dry_numa_balancing_set(struct nm_platform *platform, int value)
{
	(void)platform, (void)value;
	return -EROFS;
}

#define NM_LINUX_READS                                                                             \
	NM_FILES_OPS, .affinity_get = linux_affinity_get, .event_open = linux_event_open,          \
		      .hardware_list = linux_hardware_list, .hardware_open = linux_hardware_open,  \
		      .event_map = linux_event_map, .event_unmap = linux_event_unmap,              \
		      .aux_map = linux_aux_map, .aux_unmap = linux_aux_unmap,                      \
		      .event_ioctl = linux_event_ioctl, .event_read = linux_event_read,            \
		      .memory_query = nm_linux_memory_query, .memory_poll = nm_linux_memory_poll,  \
		      .memory_cancel = nm_linux_memory_cancel, .query_fd = nm_linux_query_fd,      \
		      .query_progress = nm_linux_query_progress,                                   \
		      .mappings_read = nm_linux_mappings_read, .pages_poll = nm_linux_pages_poll,  \
		      .pages_cancel = nm_linux_pages_cancel, .worker_news = nm_linux_worker_news,  \
		      .worker_counts = nm_linux_worker_counts

static const struct nm_platform_ops linux_ops = {
	NM_LINUX_READS,
	.affinity_set = linux_affinity_set,
	.units_move = nm_linux_units_move,
	.ranges_move = nm_linux_ranges_move,
	.numa_balancing_set = linux_numa_balancing_set,
};

static const struct nm_platform_ops dry_run_ops = {
	NM_LINUX_READS,
	.affinity_set = dry_affinity_set,
	.units_move = dry_units_move,
	.ranges_move = dry_ranges_move,
	.numa_balancing_set = dry_numa_balancing_set,
};

/* ---- construction ---- */

/* With a helper, closing the connection makes it restore the sysctl. */
static void linux_free(struct nm_platform *platform)
{
	struct nm_linux *self = nm_linux(platform);

	if (!self->helper_socket && self->balancing >= 0)
		(void)linux_numa_balancing_set(platform, -1);
	nm_linux_queries_free(self->queries);
	helper_close(self);
	nm_worker_client_free(self->workers);
	nm_closep(&self->proc);
	nm_closep(&self->files.root);
	free(self->helper_socket);
	free(self->config_path);
	free(self->config_folder);
	free(self->state_path);
	free(self->mask);
	free(self);
}

static char *copy_text(const char *text)
{
	return text ? nm_must(strdup(text)) : NULL;
}

static int open_all(struct nm_linux *self, const struct nm_platform_options *options)
{
	const char *root = options->root_path ? options->root_path : "/";

	self->files.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (self->files.root < 0)
		return -errno;
	self->proc = openat(self->files.root, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (self->proc < 0)
		return -errno;
	int r = linux_mask_init(self);
	if (r < 0)
		return r;
	const struct nm_worker_options workers = {.socket_path = options->worker_socket,
						  .program = options->worker_program,
						  .memory = options->unresponsive,
						  .proc_fd = self->proc};
	nm_worker_client_new(&workers, &self->workers);
	r = nm_linux_queries_new(self->workers, &self->queries);
	if (r == 0 && options->start_workers)
		nm_worker_client_start(self->workers);
	return r;
}

int nm_platform_linux_new(const struct nm_platform_options *options, struct nm_platform **ret)
{
	struct nm_linux *self = nm_must(calloc(1, sizeof(*self)));
	const char *state = options->state_path ? options->state_path : NM_HELPER_STATE_PATH;

	self->files.base.ops = options->dry_run ? &dry_run_ops : &linux_ops;
	self->files.base.free = linux_free;
	self->files.root = self->proc = self->helper = self->balancing = -1;
	self->helper_socket = copy_text(options->helper_socket);
	self->config_path = copy_text(options->config.path);
	self->config_folder = copy_text(options->config.folder);
	self->state_path = copy_text(state);
	int r = open_all(self, options);
	if (r < 0) {
		nm_platform_free(&self->files.base);
		return r;
	}
	*ret = &self->files.base;
	return 0;
}

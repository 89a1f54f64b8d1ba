/* SPDX-License-Identifier: MIT */
#include "numa-migrd/recording.h"

#include <string.h>

#include "bytes.h"
#include "numa-migrd/platform.h"

struct tap {
	struct nm_platform base;
	struct nm_platform *machine;
	nm_answer_fn on_answer;
	void *context;
	struct nm_paths paths;
	struct nm_bytes scratch;
	struct {
		uint64_t ticket; /* 0: not used */
		uint32_t pid;
	} asked[NM_QUERIES_MOST];
};

static struct tap *tap_of(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct tap, base);
}

static void record_answer(struct tap *tap, const char *operation, int64_t handle, const char *path,
			  int64_t result, const void *bytes, size_t length)
{
	struct nm_recorded_answer answer = {
		.operation = operation,
		.handle = handle,
		.path = path ? path : "",
		.result = result,
		.bytes = bytes,
		.length = length,
	};
	tap->on_answer(tap->context, &answer);
}

/* The same for a path below a directory. */
static void report_below(struct tap *tap, const char *operation, int directory, const char *path,
			 int64_t result, const void *bytes)
{
	nm_autofree char *whole = nm_paths_join(&tap->paths, directory, path);
	record_answer(tap, operation, directory, whole, result, bytes,
		      bytes && result > 0 ? (size_t)result : 0);
}

static uint64_t tap_now_ns(struct nm_platform *platform)
{
	struct tap *tap = tap_of(platform);
	uint64_t now_ns = tap->machine->ops->now_ns(tap->machine);
	record_answer(tap, "now_ns", 0, NULL, (int64_t)now_ns, NULL, 0);
	return now_ns;
}

static int tap_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	struct tap *tap = tap_of(platform);
	int fd = tap->machine->ops->open_directory(tap->machine, directory, path);
	report_below(tap, "open_directory", directory, path, fd, NULL);
	char *whole = nm_paths_join(&tap->paths, directory, path);
	/* If memory is short, files below it have no path in the recording. */
	if (whole)
		(void)nm_paths_set(&tap->paths, fd, whole);
	return fd;
}

static ssize_t tap_read_file(struct nm_platform *platform, int directory, const char *path,
			     char *buffer, size_t size)
{
	struct tap *tap = tap_of(platform);
	ssize_t length = tap->machine->ops->read_file(tap->machine, directory, path, buffer, size);
	report_below(tap, "read_file", directory, path, length, buffer);
	return length;
}

static int keep_name(void *context, const char *name)
{
	struct nm_bytes *names = context;
	nm_put_bytes(names, name, strlen(name) + 1);
	return 0;
}

/* All names are collected first, because other operations may happen in between. */
static int tap_list_directory(struct nm_platform *platform, int directory, const char *path,
			      nm_name_fn each, void *context)
{
	struct tap *tap = tap_of(platform);
	struct nm_bytes names = {0};
	int r = tap->machine->ops->list_directory(tap->machine, directory, path, keep_name, &names);
	if (names.failed)
		r = -ENOMEM;
	nm_autofree char *whole = nm_paths_join(&tap->paths, directory, path);
	record_answer(tap, "list_directory", directory, whole, r, names.data,
		      r < 0 ? 0 : names.used);
	for (size_t at = 0; r >= 0 && at < names.used;) {
		const char *name = (const char *)names.data + at;
		at += strlen(name) + 1;
		r = each(context, name);
	}
	nm_bytes_clear(&names);
	return r < 0 ? r : 0;
}

static void tap_close(struct nm_platform *platform, int fd)
{
	struct tap *tap = tap_of(platform);
	tap->machine->ops->close(tap->machine, fd);
	if (fd >= 0 && (size_t)fd < tap->paths.count)
		(void)nm_paths_set(&tap->paths, fd, NULL);
}

static ssize_t tap_read_attribute(struct nm_platform *platform, int directory, const char *name,
				  void *buffer, size_t size)
{
	struct tap *tap = tap_of(platform);
	ssize_t length =
		tap->machine->ops->read_attribute(tap->machine, directory, name, buffer, size);
	report_below(tap, "read_attribute", directory, name, length, buffer);
	return length;
}

static int tap_owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	struct tap *tap = tap_of(platform);
	uint8_t bytes[NM_ANSWER_OWNER_BYTES];
	nm_autofree char *whole = nm_paths_join(&tap->paths, directory, "");
	int r = tap->machine->ops->owner(tap->machine, directory, ret);
	if (r >= 0)
		nm_answer_put_owner(ret, bytes);
	record_answer(tap, "owner", directory, whole, r, bytes, r < 0 ? 0 : sizeof(bytes));
	return r;
}

static void report_mask(struct tap *tap, const char *operation, pid_t tid, int result,
			hwloc_const_bitmap_t cpus)
{
	nm_autofree char *text = NULL;
	if (result >= 0 && hwloc_bitmap_list_asprintf(&text, cpus) < 0)
		text = NULL;
	record_answer(tap, operation, tid, NULL, result, text, text ? strlen(text) : 0);
}

static int tap_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	struct tap *tap = tap_of(platform);
	int r = tap->machine->ops->affinity_get(tap->machine, tid, ret);
	report_mask(tap, "affinity_get", tid, r, ret);
	return r;
}

static int tap_affinity_set(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus)
{
	struct tap *tap = tap_of(platform);
	int r = tap->machine->ops->affinity_set(tap->machine, tid, cpus);
	report_mask(tap, "affinity_set", tid, r, cpus);
	return r;
}

/* Returns the process of the ticket, and assigns the slot to a new ticket. */
static uint32_t trade_ticket(struct tap *tap, uint64_t ticket, uint64_t new_ticket,
			     uint32_t new_pid)
{
	for (unsigned i = 0; i < NM_QUERIES_MOST; i++) {
		if (tap->asked[i].ticket != ticket)
			continue;
		uint32_t pid = tap->asked[i].pid;
		tap->asked[i].ticket = new_ticket;
		tap->asked[i].pid = new_pid;
		return pid;
	}
	return 0;
}

static int tap_ask(struct nm_platform *platform, const struct nm_memory_query *question,
		   uint64_t *ret_ticket)
{
	struct tap *tap = tap_of(platform);
	int r = tap->machine->ops->memory_query(tap->machine, question, ret_ticket);
	if (r == 0)
		(void)trade_ticket(tap, 0, *ret_ticket, question->pid);
	record_answer(tap, "ask", question->pid, NULL, r, NULL, 0);
	return r;
}

static int tap_take(struct nm_platform *platform, uint64_t ticket, struct nm_memory_answer *ret)
{
	struct tap *tap = tap_of(platform);
	int r = tap->machine->ops->memory_poll(tap->machine, ticket, ret);
	uint32_t pid = trade_ticket(tap, ticket, 0, 0);
	if (r == -EAGAIN)
		(void)trade_ticket(tap, 0, ticket, pid);
	tap->scratch.used = 0;
	if (r == 0)
		nm_memory_answer_put(ret, &tap->scratch);
	record_answer(tap, "take", pid, NULL, r, tap->scratch.data, tap->scratch.used);
	return r;
}

static void tap_forget(struct nm_platform *platform, uint64_t ticket)
{
	struct tap *tap = tap_of(platform);
	(void)trade_ticket(tap, ticket, 0, 0);
	tap->machine->ops->memory_cancel(tap->machine, ticket);
}

static int tap_numa_balancing_set(struct nm_platform *platform, int value)
{
	struct tap *tap = tap_of(platform);
	int r = tap->machine->ops->numa_balancing_set(tap->machine, value);
	record_answer(tap, "numa_balancing_set", value, NULL, r, NULL, 0);
	return r;
}

static void tap_free(struct nm_platform *platform)
{
	struct tap *tap = tap_of(platform);
	nm_paths_clear(&tap->paths);
	nm_bytes_clear(&tap->scratch);
	free(tap);
}

/* The main loop does not use the other operations: the source and the mover use the machine
 * directly. */
static const struct nm_platform_ops tap_ops = {
	.now_ns = tap_now_ns,
	.open_directory = tap_open_directory,
	.read_file = tap_read_file,
	.list_directory = tap_list_directory,
	.close = tap_close,
	.read_attribute = tap_read_attribute,
	.owner = tap_owner,
	.affinity_get = tap_affinity_get,
	.affinity_set = tap_affinity_set,
	.memory_query = tap_ask,
	.memory_poll = tap_take,
	.memory_cancel = tap_forget,
	.numa_balancing_set = tap_numa_balancing_set,
};

int nm_tap_new(struct nm_platform *machine, nm_answer_fn on_answer, void *context,
	       struct nm_platform **ret)
{
	struct tap *tap = calloc(1, sizeof(*tap));
	if (!tap)
		return -ENOMEM;
	*tap = (struct tap){
		.base = {.ops = &tap_ops, .free = tap_free},
		.machine = machine,
		.on_answer = on_answer,
		.context = context,
	};
	*ret = &tap->base;
	return 0;
}

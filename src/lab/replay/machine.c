/* SPDX-License-Identifier: MIT */
/* The operations table that answers from the recording. */
#include <string.h>

#include "replay.h"

/* The result for unknown files: neither present nor missing. */
#define UNKNOWN (-EACCES)

static const struct nm_platform_ops stage_ops, outside_ops;

struct nm_player *nm_player_of(struct nm_platform *platform)
{
	return platform->ops == &stage_ops ? NM_CONTAINER_OF(platform, struct nm_player, stages)
					   : NM_CONTAINER_OF(platform, struct nm_player, outside);
}

static const struct nm_recorded_answer *
next_answer(struct nm_platform *platform, const char *operation, int64_t handle, const char *path)
{
	return nm_player_answer(nm_player_of(platform), operation, handle, path);
}

static const struct nm_recorded_answer *next_answer_below(struct nm_platform *platform,
							  const char *operation, int directory,
							  const char *path)
{
	nm_autofree char *whole = nm_paths_join(&nm_player_of(platform)->paths, directory, path);
	return next_answer(platform, operation, directory, whole ? whole : "");
}

static int result_of(const struct nm_recorded_answer *answer)
{
	return answer ? (int)answer->result : UNKNOWN;
}

static uint64_t player_now_ns(struct nm_platform *platform)
{
	const struct nm_recorded_answer *answer = next_answer(platform, "now_ns", 0, "");
	return answer ? (uint64_t)answer->result : 0;
}

static int player_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	struct nm_player *player = nm_player_of(platform);
	char *whole = nm_paths_join(&player->paths, directory, path);
	if (!whole)
		return UNKNOWN;
	const struct nm_recorded_answer *answer =
		nm_player_answer(player, "open_directory", directory, whole);
	int fd = answer ? (int)answer->result : UNKNOWN;
	int r = nm_paths_set(&player->paths, fd, whole);
	return r < 0 ? r : fd;
}

static ssize_t copy_bytes(const struct nm_recorded_answer *answer, void *buffer, size_t size)
{
	if (!answer)
		return UNKNOWN;
	if (answer->result < 0)
		return (ssize_t)answer->result;
	if (answer->length > size)
		return -EFBIG;
	if (answer->length)
		memcpy(buffer, answer->bytes, answer->length);
	return (ssize_t)answer->length;
}

static ssize_t player_read_file(struct nm_platform *platform, int directory, const char *path,
				char *buffer, size_t size)
{
	ssize_t length = copy_bytes(next_answer_below(platform, "read_file", directory, path),
				    buffer, size - 1);
	if (length >= 0)
		buffer[length] = '\0';
	return length;
}

/* The names are copied, because other operations happen in between. */
static int player_list_directory(struct nm_platform *platform, int directory, const char *path,
				 nm_name_fn each, void *context)
{
	const struct nm_recorded_answer *answer =
		next_answer_below(platform, "list_directory", directory, path);
	if (!answer || answer->result < 0)
		return result_of(answer);
	size_t length = answer->length;
	nm_autofree char *names = malloc(length + 1);
	if (!names)
		return -ENOMEM;
	if (length)
		memcpy(names, answer->bytes, length);
	names[length] = '\0';
	int r = 0;
	for (size_t at = 0; r >= 0 && at < length; at += strlen(names + at) + 1)
		r = each(context, names + at);
	return r < 0 ? r : 0;
}

static void player_close(struct nm_platform *platform, int fd)
{
	struct nm_player *player = nm_player_of(platform);
	if (fd >= 0 && (size_t)fd < player->paths.count)
		(void)nm_paths_set(&player->paths, fd, NULL);
}

static ssize_t player_read_attribute(struct nm_platform *platform, int directory, const char *name,
				     void *buffer, size_t size)
{
	return copy_bytes(next_answer_below(platform, "read_attribute", directory, name), buffer,
			  size);
}

static int player_owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	const struct nm_recorded_answer *answer =
		next_answer_below(platform, "owner", directory, "");
	if (!answer || answer->result < 0)
		return result_of(answer);
	if (answer->length != NM_ANSWER_OWNER_BYTES)
		return UNKNOWN;
	nm_answer_get_owner(answer->bytes, ret);
	return 0;
}

static int player_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	const struct nm_recorded_answer *answer = next_answer(platform, "affinity_get", tid, "");
	char text[8192];
	ssize_t length = copy_bytes(answer, text, sizeof(text) - 1);
	if (length < 0)
		return (int)length;
	text[length] = '\0';
	return nm_list_parse(text, ret) < 0 ? UNKNOWN : 0;
}

static int player_affinity_set(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus)
{
	(void)cpus;
	return result_of(next_answer(platform, "affinity_set", tid, ""));
}

/* A ticket is the process's number. */
static int player_memory_query(struct nm_platform *platform, const struct nm_memory_query *query,
			       uint64_t *ret_ticket)
{
	*ret_ticket = query->pid;
	return result_of(next_answer(platform, "ask", query->pid, ""));
}

/* An answer with another number of nodes than was requested is invalid. */
static int player_memory_poll(struct nm_platform *platform, uint64_t ticket,
			      struct nm_memory_answer *ret)
{
	const struct nm_recorded_answer *answer =
		next_answer(platform, "take", (int64_t)ticket, "");
	if (!answer || answer->result < 0)
		return answer ? (int)answer->result : -ENOENT;
	return nm_memory_answer_get(answer->bytes, answer->length, ret) < 0 ? -ENOENT : 0;
}

static void player_memory_cancel(struct nm_platform *platform, uint64_t ticket)
{
	(void)platform, (void)ticket;
}

static int player_numa_balancing_set(struct nm_platform *platform, int value)
{
	return result_of(next_answer(platform, "numa_balancing_set", value, ""));
}

static void player_free(struct nm_platform *platform)
{
	(void)platform;
}

static const struct nm_platform_ops stage_ops = {
	.now_ns = player_now_ns,
	.open_directory = player_open_directory,
	.read_file = player_read_file,
	.list_directory = player_list_directory,
	.close = player_close,
	.read_attribute = player_read_attribute,
	.owner = player_owner,
	.affinity_get = player_affinity_get,
	.affinity_set = player_affinity_set,
	.memory_query = player_memory_query,
	.memory_poll = player_memory_poll,
	.memory_cancel = player_memory_cancel,
	.numa_balancing_set = player_numa_balancing_set,
};

/* ---- operations outside the stages, which are not recorded ---- */

static ssize_t outside_read_file(struct nm_platform *platform, int directory, const char *path,
				 char *buffer, size_t size)
{
	(void)platform, (void)directory, (void)path, (void)buffer, (void)size;
	return UNKNOWN;
}

static int outside_open(struct nm_platform *platform, int directory, const char *path)
{
	(void)platform, (void)directory, (void)path;
	return UNKNOWN;
}

static void outside_close(struct nm_platform *platform, int fd)
{
	(void)platform, (void)fd;
}

static const struct nm_platform_ops outside_ops = {
	.open_directory = outside_open,
	.read_file = outside_read_file,
	.close = outside_close,
};

void nm_player_machine(struct nm_player *player)
{
	player->stages = (struct nm_platform){.ops = &stage_ops, .free = player_free};
	player->outside = (struct nm_platform){.ops = &outside_ops, .free = player_free};
}

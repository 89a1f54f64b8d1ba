/* SPDX-License-Identifier: MIT */
/* Functions shared by recording and replaying operations. Pure. */
#include <stdio.h>

#include "bytes.h"
#include "numa-migrd/recording.h"

#define DESCRIPTORS_MOST (1 << 20)

char *nm_paths_join(const struct nm_paths *paths, int directory, const char *path)
{
	char *joined = NULL;
	if (directory == NM_ROOT)
		return strdup(path);
	if (directory < 0 || (size_t)directory >= paths->count || !paths->items[directory])
		return NULL;
	if (path[0] == '\0')
		return strdup(paths->items[directory]);
	return asprintf(&joined, "%s/%s", paths->items[directory], path) < 0 ? NULL : joined;
}

int nm_paths_set(struct nm_paths *paths, int fd, char *path)
{
	if (fd < 0 || fd >= DESCRIPTORS_MOST) {
		free(path);
		return fd < 0 ? 0 : -ENOMEM;
	}
	size_t wanted = (size_t)fd + 1;
	if (wanted > paths->count) {
		char **items = reallocarray(paths->items, 2 * wanted, sizeof(*items));
		if (!items) {
			free(path);
			return -ENOMEM;
		}
		memset(items + paths->count, 0, (2 * wanted - paths->count) * sizeof(*items));
		paths->items = items;
		paths->count = 2 * wanted;
	}
	free(paths->items[fd]);
	paths->items[fd] = path;
	return 0;
}

void nm_paths_clear(struct nm_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->items[i]);
	free(paths->items);
	*paths = (struct nm_paths){0};
}

void nm_answer_put_owner(const struct nm_owner *owner, uint8_t ret[NM_ANSWER_OWNER_BYTES])
{
	nm_store_u32(ret, owner->uid);
	ret[4] = owner->others_write;
}

void nm_answer_get_owner(const uint8_t bytes[NM_ANSWER_OWNER_BYTES], struct nm_owner *ret)
{
	*ret = (struct nm_owner){.uid = nm_load_u32(bytes), .others_write = bytes[4] != 0};
}

/* The result, then the number of nodes and the nodes, then text to the end. */
void nm_memory_answer_put(const struct nm_memory_answer *answer, struct nm_bytes *bytes)
{
	nm_put_int(bytes, answer->result);
	nm_put_uint(bytes, answer->count);
	for (unsigned i = 0; i < answer->count; i++)
		nm_put_int(bytes, answer->nodes[i]);
	if (answer->text)
		nm_put_bytes(bytes, answer->text, strlen(answer->text));
}

static int get_nodes(struct nm_cursor *cursor, uint64_t count, struct nm_memory_answer *ret)
{
	if (count > nm_cursor_left(cursor))
		return -EBADMSG;
	ret->nodes = calloc(count + 1, sizeof(*ret->nodes));
	if (!ret->nodes)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		ret->nodes[i] = (int)nm_get_int(cursor);
	ret->count = (unsigned)count;
	return cursor->bad ? -EBADMSG : 0;
}

int nm_memory_answer_get(const uint8_t *bytes, size_t length, struct nm_memory_answer *ret)
{
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	struct nm_cursor cursor = {.at = bytes, .end = bytes + length};
	answer.result = (int)nm_get_int(&cursor);
	uint64_t count = nm_get_uint(&cursor);
	int r = cursor.bad ? -EBADMSG : get_nodes(&cursor, count, &answer);
	if (r < 0)
		return r;
	answer.text = strndup((const char *)cursor.at, nm_cursor_left(&cursor));
	if (!answer.text)
		return -ENOMEM;
	*ret = answer;
	answer = (struct nm_memory_answer){0};
	return 0;
}

// SPDX-License-Identifier: MIT
// SECURITY: many-groups, attributes
/*
 * Attributes of control groups, whose they are and what inotify tells, over a life of looks,
 * changes and forgetting. The input is the machine's answers.
 */
#include <sys/inotify.h>

#include "fuzz.h"
#include "numa-migrd/steer.h"

#define WATCH 1002
#define GROUPS 8U

struct life {
	struct nm_platform platform;
	struct fuzz_input input;
	unsigned open;
	bool told_now; /* inotify has told once in this drain */
};

static struct life *life_of(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct life, platform);
}

static int open_directory(struct nm_platform *platform, int directory, const char *path)
{
	struct life *life = life_of(platform);
	static const int errors[] = {0, 0, 0, 0, 0, -ENOENT, -EACCES, -EMFILE};
	int r = errors[fuzz_byte(&life->input) % NM_ARRAY_SIZE(errors)];

	(void)directory, (void)path;
	if (r < 0)
		return r;
	life->open++;
	return FUZZ_DIRECTORY;
}

static ssize_t read_file(struct nm_platform *platform, int directory, const char *path,
			 char *buffer, size_t size)
{
	(void)platform, (void)directory, (void)path, (void)size;
	buffer[0] = '\0';
	return 0;
}

static void close_directory(struct nm_platform *platform, int fd)
{
	if (fd == FUZZ_DIRECTORY)
		FUZZ_REQUIRE(life_of(platform)->open-- > 0);
}

static ssize_t read_attribute(struct nm_platform *platform, int directory, const char *name,
			      void *buffer, size_t size)
{
	struct life *life = life_of(platform);
	size_t length = fuzz_byte(&life->input);

	(void)directory, (void)name;
	if (length == 255)
		return -ENODATA;
	if (length > size)
		return -ERANGE;
	if (length > life->input.size)
		length = life->input.size;
	memcpy(buffer, life->input.data, length);
	life->input.data += length;
	life->input.size -= length;
	return (ssize_t)length;
}

static int owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	uint8_t byte = fuzz_byte(&life_of(platform)->input);

	(void)directory;
	*ret = (struct nm_owner){.uid = byte & 1 ? 1000 : 0, .others_write = byte & 2};
	return byte & 4 ? -EIO : 0;
}

static int watch_open(struct nm_platform *platform)
{
	return fuzz_byte(&life_of(platform)->input) & 1 ? -EMFILE : WATCH;
}

static int watch_add(struct nm_platform *platform, int watch, int directory)
{
	uint8_t byte = fuzz_byte(&life_of(platform)->input);

	(void)directory;
	FUZZ_REQUIRE(watch == WATCH);
	return byte & 0x80 ? -ENOSPC : byte % (int)GROUPS;
}

static void watch_remove(struct nm_platform *platform, int watch, int descriptor)
{
	(void)platform;
	FUZZ_REQUIRE(watch == WATCH && descriptor >= 0);
}

/* One event with a name of up to 15 bytes, as the kernel would write it. */
static ssize_t read_event(struct nm_platform *platform, int fd, char *buffer, size_t size)
{
	static const uint32_t masks[] = {
		IN_ATTRIB,  IN_ATTRIB | IN_ISDIR, IN_DELETE | IN_ISDIR, IN_DELETE_SELF,
		IN_IGNORED, IN_Q_OVERFLOW,	  IN_UNMOUNT,		IN_DELETE};
	struct life *life = life_of(platform);
	struct inotify_event event = {0};

	FUZZ_REQUIRE(fd == WATCH && size >= sizeof(event) + 16);
	if (life->told_now || life->input.size == 0)
		return -EAGAIN;
	life->told_now = true;
	event.wd = (int)(fuzz_byte(&life->input) % (GROUPS + 1)) - 1;
	event.mask = masks[fuzz_byte(&life->input) % NM_ARRAY_SIZE(masks)];
	size_t length = fuzz_byte(&life->input) % 16;
	event.len = length ? 16 : 0;
	memcpy(buffer, &event, sizeof(event));
	memset(buffer + sizeof(event), 0, 16);
	for (size_t i = 0; i < length; i++)
		buffer[sizeof(event) + i] = (char)fuzz_byte(&life->input);
	return (ssize_t)(sizeof(event) + event.len);
}

static const struct nm_platform_ops life_ops = {
	.open_directory = open_directory,
	.read_file = read_file,
	.close = close_directory,
	.read_attribute = read_attribute,
	.owner = owner,
	.watch_open = watch_open,
	.watch_add = watch_add,
	.watch_remove = watch_remove,
	.read_some = read_event,
};

static void tell(void *context, const struct nm_steer_news *news)
{
	(void)context;
	FUZZ_REQUIRE(!strpbrk(news->directory, "\n\033") && !strpbrk(news->said, "\n\033"));
}

static void changed(void *context, const char *directory, const struct nm_steering *said)
{
	(void)context;
	FUZZ_REQUIRE(directory[0] == '/' && (!said || nm_steer_name(said)));
}

static void live(struct nm_steer *steer, struct life *life)
{
	for (uint64_t now_ns = 1; life->input.size > 0; now_ns += 50 * NM_NSEC_PER_SEC) {
		struct nm_steering found = {0};
		uint8_t what = fuzz_byte(&life->input);
		char *path = what & 4 ? fuzz_piece(&life->input) : strdup("/a.slice/b/c");

		FUZZ_REQUIRE(path);
		life->told_now = false;
		if (nm_steer_look(steer, path, now_ns, &found) == 0)
			FUZZ_REQUIRE(nm_steer_name(&found));
		if (what & 1)
			nm_steer_drain(steer);
		if (what & 2)
			nm_steer_tend(steer, now_ns);
		if (what & 8)
			nm_steer_note_excluded(steer, path);
		free(path);
	}
	FUZZ_REQUIRE(life->open == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nm_steer_ops ops = {.tell = tell, .changed = changed};
	struct life life = {.platform = {.ops = &life_ops}, .input = {data, size}};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	nm_auto(nm_steer_freep) struct nm_steer *steer = NULL;
	struct nm_steering said;

	if (nm_steer_parse((const char *)data, size, &said) == 0)
		FUZZ_REQUIRE(nm_steer_name(&said)[0]);
	FUZZ_REQUIRE(nm_config_default(&config) == 0);
	FUZZ_REQUIRE(nm_steer_new(&life.platform, config, &ops, &steer) == 0);
	live(steer, &life);
	return 0;
}

// SPDX-License-Identifier: MIT
// SECURITY: many-groups, attributes
/* Attributes and owners of cgroups over a series of look-ups. The input provides the answers of the
 * machine. */
#include "fuzz.h"
#include "tasks/tasks.h"

struct life {
	struct nm_platform platform;
	struct fuzz_input input;
	unsigned open;
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

static const struct nm_platform_ops life_ops = {
	.open_directory = open_directory,
	.close = close_directory,
	.read_attribute = read_attribute,
	.owner = owner,
};

static void live(struct life *life)
{
	while (life->input.size > 0) {
		struct nm_steering found = {0};
		char *path = fuzz_byte(&life->input) & 4 ? fuzz_piece(&life->input)
							 : strdup("/a.slice/b/c");

		FUZZ_REQUIRE(path);
		if (nm_steer_read(&life->platform, path, &found) == 0)
			FUZZ_REQUIRE(found.value <= NM_STEER_ON);
		free(path);
	}
	FUZZ_REQUIRE(life->open == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct life life = {.platform = {.ops = &life_ops}, .input = {data, size}};
	enum nm_steer_value value;

	if (nm_steer_parse((const char *)data, size, &value) == 0)
		FUZZ_REQUIRE(nm_steer_name(value)[0]);
	live(&life);
	return 0;
}

// SPDX-License-Identifier: MIT
// SECURITY: impostor, proc-sys
/*
 * Runs `doctor` on a machine on which each file and directory contains the next piece of the input.
 * Its output must be clean text.
 */
#include <unistd.h>

#include "../../src/ctl/doctor/checks.h"
#include "../../src/ctl/doctor/gather.h"
#include "../support/machine.h"
#include "fuzz.h"
#include "numa-migrd/base.h"

#define NODES 2U
#define NAMES_MOST 3U

struct strange {
	struct nm_platform platform;
	struct fuzz_input input;
	unsigned open;
};

static struct strange *strange_of(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct strange, platform);
}

static ssize_t read_file(struct nm_platform *platform, int directory, const char *path,
			 char *buffer, size_t size)
{
	struct strange *strange = strange_of(platform);
	(void)directory, (void)path;
	if (strange->input.size == 0)
		return -ENOENT;
	nm_autofree char *piece = fuzz_piece(&strange->input);
	size_t length = strlen(piece);
	memcpy(buffer, piece, length < size ? length + 1 : size);
	return length < size ? (ssize_t)length : -EFBIG;
}

static int list_directory(struct nm_platform *platform, int directory, const char *path,
			  nm_name_fn each, void *context)
{
	struct strange *strange = strange_of(platform);
	(void)directory, (void)path;
	int r = 0;
	for (unsigned i = 0; i < NAMES_MOST && r >= 0 && strange->input.size > 0; i++) {
		nm_autofree char *name = fuzz_piece(&strange->input);
		if (name[0] && !strchr(name, '/') && strlen(name) < 256)
			r = each(context, name);
	}
	return r;
}

static int open_directory(struct nm_platform *platform, int directory, const char *path)
{
	struct strange *strange = strange_of(platform);
	(void)directory, (void)path;
	if (strange->input.size == 0)
		return -ENOENT;
	strange->open++;
	return FUZZ_DIRECTORY;
}

static void close_directory(struct nm_platform *platform, int fd)
{
	FUZZ_REQUIRE(fd == FUZZ_DIRECTORY && strange_of(platform)->open-- > 0);
}

/* Every process is one of the caller, so that a name is enough to be taken for the service. */
static int owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	(void)platform;
	FUZZ_REQUIRE(directory == FUZZ_DIRECTORY);
	*ret = (struct nm_owner){.uid = geteuid()};
	return 0;
}

static const struct nm_platform_ops strange_ops = {
	.read_file = read_file,
	.list_directory = list_directory,
	.open_directory = open_directory,
	.owner = owner,
	.close = close_directory,
};

static void require_clean(const char *text)
{
	uint32_t code;

	for (size_t at = 0, size; text && text[at]; at += size) {
		size = nm_utf8_decode(text + at, strlen(text + at), &code);
		FUZZ_REQUIRE(size > 0 && code >= 0x20 && code != 0x7f);
		FUZZ_REQUIRE(!(code >= 0x80 && code < 0xa0));
	}
}

static void gather(struct nm_platform *platform, struct nm_facts *facts)
{
	static const struct nm_doctor_options options = {.root_path = "/nonexistent"};

	facts->topology = machine_topology(NODES, NODES);
	FUZZ_REQUIRE(facts->topology);
	FUZZ_REQUIRE(nm_gather_processes(platform, facts) == 0);
	nm_gather_unit(&options, facts);
	nm_gather_service(platform, &options, facts);
	nm_gather_cgroups(platform, facts);
	facts->paranoid = nm_gather_number(platform, "a");
	facts->balancing = nm_gather_number(platform, "c");
	nm_gather_choice(platform, "e", facts->lockdown, sizeof(facts->lockdown));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strange strange = {.platform = {.ops = &strange_ops}, .input = {data, size}};
	struct nm_findings findings = {0};
	struct nm_facts facts = {0};

	gather(&strange.platform, &facts);
	FUZZ_REQUIRE(strange.open == 0);
	nm_doctor_examine(&facts, &findings);
	for (size_t i = 0; i < findings.count; i++) {
		require_clean(findings.items[i].what);
		require_clean(findings.items[i].evidence);
		require_clean(findings.items[i].remedy);
	}
	nm_findings_clear(&findings);
	nm_facts_clear(&facts);
	return 0;
}
